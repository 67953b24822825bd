//! Six ways to process batches on a device: matrix products, the same in each way.

use adead::gpu::{Buffer, Download, Operand, Stream};
use adead::overlap::Stage;
use adead::{Attrs, Context, DType, DataLoader, Meta, Op, Result, Shape};
use std::sync::Arc;
use std::time::Instant;

/// Takes a result: the batch's number and its bytes.
pub type Take<'a> = &'a mut dyn FnMut(usize, &[u8]);

/// A way to process all batches of some work on its device. It may return only some of the results.
pub type Pattern = fn(&Work, Take<'_>) -> Result<()>;

/// The ways by name. The others are compared with the first one.
pub const PATTERNS: [(&str, Pattern); 6] = [
    ("sequential", |work, take| work.by_hand(1, take)),
    ("double buffering", |work, take| work.buffered(2, take)),
    ("triple buffering", |work, take| work.buffered(3, take)),
    ("training with prefetch", |work, take| work.training(take).map(drop)),
    ("data loader", |work, take| work.loaded(take)),
    ("four streams", |work, take| work.by_hand(4, take)),
];

/// The work of a batch's stage: repeated products with the same matrix.
#[derive(Clone)]
struct Products {
    matrix: Arc<Buffer>,
    batch: Meta,
    square: Meta,
    steps: usize,
}

impl Products {
    /// Multiplies `x`, back and forth between two buffers. Returns the one with the last product.
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

    /// Does the same in a stage of `overlap`.
    fn stage(&self, stage: &mut Stage<'_>) -> Result<Arc<Buffer>> {
        let (x, bytes) = (stage.input(), self.batch.bytes());
        let between = [stage.buffer(bytes)?, stage.buffer(bytes)?];
        self.enqueue(stage, &x, [&between[0], &between[1]])?;
        let [even, odd] = between;
        Ok(if self.steps.is_multiple_of(2) { odd } else { even })
    }
}

/// The batches, and their work.
pub struct Work {
    pub ctx: Context,
    pub batches: Arc<[Vec<f32>]>,
    products: Products,
}

/// Seconds that a batch takes in each stage when it runs alone.
pub struct Stages {
    pub upload: f64,
    pub compute: f64,
    pub download: f64,
}

impl Work {
    /// Makes `count` batches of `rows` rows, each multiplied `steps` times by a square matrix.
    pub fn new(ctx: &Context, count: usize, [rows, width]: [usize; 2], steps: usize) -> Result<Work> {
        let batch = |n: usize| (0..rows * width).map(|i| ((i * 31 + n * 17) % 101) as f32 / 101.0 - 0.5).collect();
        // The entries are so small that products of products stay in range.
        let matrix: Vec<f32> =
            (0..width * width).map(|i| ((i * 37 % 103) as f32 / 51.0 - 1.0) / width as f32).collect();
        let meta = |dims: [usize; 2]| Ok::<_, adead::Error>(Meta::new(DType::F32, Shape::new(&dims)?));
        let (batch_meta, square) = (meta([rows, width])?, meta([width, width])?);
        let products = Products { matrix: Arc::new(ctx.buffer(&matrix)?), batch: batch_meta, square, steps };
        Ok(Work { ctx: ctx.clone(), batches: (0..count).map(batch).collect(), products })
    }

    /// Returns the number of products per batch.
    pub fn steps(&self) -> usize {
        self.products.steps
    }

    /// Returns the bytes of a batch, and of its result.
    pub fn bytes(&self) -> usize {
        self.products.batch.bytes()
    }

    /// Sets the number of products so that they take about as long as the slower copy. Returns the time of each stage
    /// then.
    pub fn balance(&mut self) -> Result<Stages> {
        self.products.steps = 1;
        self.stages()?; // warms up drivers and caches
        let one = self.stages()?;
        self.products.steps = (one.upload.max(one.download) / one.compute).round().max(1.0) as usize;
        self.stages()
    }

    /// Measures how long a batch takes in each stage; the best of five runs.
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

    /// Loops over streams; a batch waits until the one before it on its stream is done. One stream is sequential;
    /// several run concurrently, in no order.
    fn by_hand(&self, streams: usize, take: Take<'_>) -> Result<()> {
        let mut lanes = (0..streams).map(|_| Lane::new(self)).collect::<Result<Vec<_>>>()?;
        let mut bytes = vec![0; self.bytes()];
        for n in 0..self.batches.len() + streams {
            let lane = &mut lanes[n % streams];
            if let Some(download) = lane.download.take() {
                download.take(&mut bytes)?;
                lane.stream.synchronize()?; // returns errors that only the device can find
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

    /// Returns every batch, as an iterator that can move to another thread.
    fn all(&self) -> impl Iterator<Item = Batch> + Send + 'static {
        let batches = self.batches.clone();
        (0..batches.len()).map(move |n| Batch(batches.clone(), n))
    }

    /// Keeps `depth` batches in flight.
    fn buffered(&self, depth: usize, take: Take<'_>) -> Result<()> {
        let products = self.products.clone();
        for result in adead::overlap(&self.ctx, self.all(), depth, move |stage| products.stage(stage))? {
            let result = result?;
            take(result.index(), &result);
        }
        Ok(())
    }

    /// Changes a state on the device with every batch, while a loader makes the next batch and it is uploaded. Only the
    /// last batch downloads the state, so its result is the sum of all products. `take` gets the other results without
    /// bytes.
    pub fn training(&self, take: Take<'_>) -> Result<Vec<f32>> {
        let (products, bytes) = (self.products.clone(), self.bytes());
        let state = Arc::new(self.ctx.buffer_zeroed(bytes)?);
        let shared = state.clone();
        let loader = DataLoader::new(self.all().map(Ok::<_, adead::Error>), 2)?;
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

    /// A loader makes batches, at most four ahead, and three are in flight.
    fn loaded(&self, take: Take<'_>) -> Result<()> {
        let products = self.products.clone();
        // A producer that reads and decodes goes here. Its error takes the place of its result.
        let loader = DataLoader::new(self.all().map(Ok::<_, adead::Error>), 4)?;
        for result in adead::overlap(&self.ctx, loader, 3, move |stage| products.stage(stage))? {
            let result = result?;
            take(result.index(), &result);
        }
        Ok(())
    }
}

/// One of the batches, shared without a copy.
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
