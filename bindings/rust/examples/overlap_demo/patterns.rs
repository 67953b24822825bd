//! Six ways to take batches through a device: matrix products, and always the same ones.

use adead::gpu::{Buffer, Download, Operand, Stream};
use adead::overlap::Stage;
use adead::{Attrs, Context, DType, DataLoader, Meta, Op, Result, Shape};
use std::sync::Arc;
use std::time::Instant;

/// What is done with a result: the batch's number, its bytes.
pub type Take<'a> = &'a mut dyn FnMut(usize, &[u8]);

/// A way to take all batches of some work through its device. Which results it takes is up to it.
pub type Pattern = fn(&Work, Take<'_>) -> Result<()>;

/// By name; the first one is what the others are compared with.
pub const PATTERNS: [(&str, Pattern); 6] = [
    ("sequential", |work, take| work.by_hand(1, take)),
    ("double buffering", |work, take| work.buffered(2, take)),
    ("triple buffering", |work, take| work.buffered(3, take)),
    ("training with prefetch", |work, take| work.training(take).map(drop)),
    ("data loader", |work, take| work.loaded(take)),
    ("four streams", |work, take| work.by_hand(4, take)),
];

/// What a batch's stage enqueues: so many products with the same matrix.
#[derive(Clone)]
struct Products {
    matrix: Arc<Buffer>,
    batch: Meta,
    square: Meta,
    steps: usize,
}

impl Products {
    /// From `x`, to and fro between two buffers; the one where the last product is.
    fn enqueue<'a>(&self, stream: &mut Stream, x: &'a Buffer, between: [&'a Buffer; 2]) -> Result<&'a Buffer> {
        let mut from = x;
        for step in 0..self.steps {
            let to = between[step % 2];
            let a = Operand { buffer: from, offset: 0, meta: &self.batch };
            let b = Operand { buffer: &self.matrix, offset: 0, meta: &self.square };
            stream.run(Op::Matmul, &Attrs::default(), &[Some(a), Some(b)], Operand { buffer: to, ..a })?;
            from = to;
        }
        Ok(from)
    }

    /// The same in a stage of `overlap`.
    fn stage(&self, stage: &mut Stage<'_>) -> Result<Arc<Buffer>> {
        let (x, bytes) = (stage.input(), self.batch.bytes());
        let between = [stage.buffer(bytes)?, stage.buffer(bytes)?];
        self.enqueue(stage, &x, [&between[0], &between[1]])?;
        let [even, odd] = between;
        Ok(if self.steps.is_multiple_of(2) { odd } else { even })
    }
}

/// Batches, and what is done with each.
pub struct Work {
    pub ctx: Context,
    pub batches: Arc<[Vec<f32>]>,
    products: Products,
}

/// Seconds that a batch takes in each of its stages when it is alone.
pub struct Stages {
    pub upload: f64,
    pub compute: f64,
    pub download: f64,
}

impl Work {
    /// So many batches of so many rows, each multiplied `steps` times by a square matrix.
    pub fn new(ctx: &Context, count: usize, [rows, width]: [usize; 2], steps: usize) -> Result<Work> {
        let batch = |n: usize| (0..rows * width).map(|i| ((i * 31 + n * 17) % 101) as f32 / 101.0 - 0.5).collect();
        // Its rows are so small that products of products stay in range.
        let matrix: Vec<f32> =
            (0..width * width).map(|i| ((i * 37 % 103) as f32 / 51.0 - 1.0) / width as f32).collect();
        let meta = |dims: [usize; 2]| Ok::<_, adead::Error>(Meta::new(DType::F32, Shape::new(&dims)?));
        let (batch_meta, square) = (meta([rows, width])?, meta([width, width])?);
        let products = Products { matrix: Arc::new(ctx.buffer(&matrix)?), batch: batch_meta, square, steps };
        Ok(Work { ctx: ctx.clone(), batches: (0..count).map(batch).collect(), products })
    }

    /// Products per batch.
    pub fn steps(&self) -> usize {
        self.products.steps
    }

    /// Bytes of a batch, and of its result.
    pub fn bytes(&self) -> usize {
        self.products.batch.bytes()
    }

    /// So many products that they take about as long as the slower of the two copies; and how long each stage takes then.
    pub fn balance(&mut self) -> Result<Stages> {
        self.products.steps = 1;
        self.stages()?; // drivers and caches get into the swing
        let one = self.stages()?;
        self.products.steps = (one.upload.max(one.download) / one.compute).round().max(1.0) as usize;
        self.stages()
    }

    /// How long a batch takes in each stage; the best of five.
    pub fn stages(&self) -> Result<Stages> {
        let mut lane = Lane::new(self)?;
        let mut bytes = vec![0; self.bytes()];
        let mut best = Stages { upload: f64::MAX, compute: f64::MAX, download: f64::MAX };
        for _ in 0..5 {
            let begin = Instant::now();
            let mut since = 0.0;
            let mut lap = |stage: &mut f64| {
                let now = begin.elapsed().as_secs_f64();
                *stage = stage.min(now - since);
                since = now;
            };
            lane.stream.upload(&lane.x, 0, bytes_of(&self.batches[0]))?;
            lane.stream.synchronize()?;
            lap(&mut best.upload);
            let result = self.products.enqueue(&mut lane.stream, &lane.x, [&lane.y[0], &lane.y[1]])?;
            lane.stream.synchronize()?;
            lap(&mut best.compute);
            lane.stream.download(result, 0, bytes.len())?.take(&mut bytes)?;
            lap(&mut best.download);
        }
        Ok(best)
    }

    /// A loop over streams: a batch waits until the one before it on its stream is done. With one stream that is sequential;
    /// several run beside each other, and nothing orders them.
    fn by_hand(&self, streams: usize, take: Take<'_>) -> Result<()> {
        let mut lanes = (0..streams).map(|_| Lane::new(self)).collect::<Result<Vec<_>>>()?;
        let mut bytes = vec![0; self.bytes()];
        for n in 0..self.batches.len() + streams {
            let lane = &mut lanes[n % streams];
            if let Some(download) = lane.download.take() {
                download.take(&mut bytes)?;
                lane.stream.synchronize()?; // what only the device can find
                take(n - streams, &bytes);
            }
            if let Some(batch) = self.batches.get(n) {
                lane.stream.upload(&lane.x, 0, bytes_of(batch))?;
                let result = self.products.enqueue(&mut lane.stream, &lane.x, [&lane.y[0], &lane.y[1]])?;
                lane.download = Some(lane.stream.download(result, 0, bytes.len())?);
            }
        }
        Ok(())
    }

    /// Every batch, as an iterator that may go to another thread.
    fn all(&self) -> impl Iterator<Item = Batch> + Send + 'static {
        let batches = self.batches.clone();
        (0..batches.len()).map(move |n| Batch(batches.clone(), n))
    }

    /// So many batches under way at once.
    fn buffered(&self, depth: usize, take: Take<'_>) -> Result<()> {
        let products = self.products.clone();
        for result in adead::overlap(&self.ctx, self.all(), depth, move |stage| products.stage(stage))? {
            let result = result?;
            take(result.index(), &result);
        }
        Ok(())
    }

    /// Every batch changes a state that stays on the device: the next one is made by a loader and uploaded meanwhile. Only
    /// the last batch brings it to the host, so its result is the sum of all products. `take` gets the others' without bytes.
    pub fn training(&self, take: Take<'_>) -> Result<Vec<f32>> {
        let (products, bytes) = (self.products.clone(), self.bytes());
        let state = Arc::new(self.ctx.buffer_zeroed(bytes)?);
        let shared = state.clone();
        let loader = DataLoader::new(self.all().map(|batch| Ok::<_, adead::Error>(batch.0[batch.1].clone())), 2)?;
        let results = adead::overlap(&self.ctx, loader, 2, move |stage| {
            let y = products.stage(stage)?;
            let next = stage.buffer(bytes)?;
            let operand = |buffer| Operand { buffer, offset: 0, meta: &products.batch };
            stage.run(Op::Add, &Attrs::default(), &[Some(operand(&shared)), Some(operand(&y))], operand(&next))?;
            stage.copy((&next, 0), (&shared, 0), bytes)
        })?;
        for result in results {
            let result = result?;
            take(result.index(), &result);
        }
        state.to_vec()
    }

    /// A loader makes batches, at most four ahead, and three are under way.
    fn loaded(&self, take: Take<'_>) -> Result<()> {
        let products = self.products.clone();
        // Whatever reads and decodes: an error in it would come in its place among the results.
        let loader = DataLoader::new(self.all().map(|batch| Ok::<_, adead::Error>(batch.0[batch.1].clone())), 4)?;
        for result in adead::overlap(&self.ctx, loader, 3, move |stage| products.stage(stage))? {
            let result = result?;
            take(result.index(), &result);
        }
        Ok(())
    }
}

/// One of the batches, without a copy.
struct Batch(Arc<[Vec<f32>]>, usize);

impl adead::Batch for Batch {
    fn bytes(&self) -> Result<&[u8]> {
        self.0[self.1].bytes()
    }
}

/// A stream with buffers for one batch.
struct Lane {
    stream: Stream,
    x: Buffer,
    y: [Buffer; 2],
    download: Option<Download>,
}

impl Lane {
    fn new(work: &Work) -> Result<Lane> {
        let buffer = || work.ctx.buffer_zeroed(work.bytes());
        Ok(Lane { stream: work.ctx.stream()?, x: buffer()?, y: [buffer()?, buffer()?], download: None })
    }
}

fn bytes_of(values: &[f32]) -> &[u8] {
    // SAFETY: an f32 is readable as its bytes.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}
