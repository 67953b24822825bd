//! The steps of a thread: random ones, with several results in progress.

use crate::Shared;
use crate::draws::{Random, draw, plain};
use adead_core::gpu::{Buffer, Download, Kernel, Operand, Stream};
use adead_core::{Attrs, Context, DType, Error, Meta, Op, Result, Shape, Status, Tensor};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::thread::sleep;
use std::time::Duration;

/// The kinds of steps.
pub const KINDS: [&str; COUNT] =
    ["operations", "transfers", "recordings", "user kernels", "handovers", "allocations", "errors", "direct calls"];
pub const COUNT: usize = 8;

const VECADD_SPV: &[u8] = include_bytes!("../../../../../../examples/kernels/vecadd.spv");
const VECADD_PTX: &[u8] = include_bytes!("../../../../../../examples/kernels/vecadd.ptx");

/// The most results in progress of a thread, and the most bytes of a transfer.
const UNDER_WAY: usize = 8;
const TRANSFER: usize = 6 << 20;

/// A failure, as text.
pub struct Fault(pub String);

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault(error.to_string())
    }
}

type Outcome<T = ()> = std::result::Result<T, Fault>;

/// A download in progress and its expected bytes.
struct Awaited {
    what: String,
    download: Download,
    expected: Vec<u8>,
}

/// A thread's own state: a stream for work, another one for handovers, the CPU for comparison.
pub struct Worker<'a> {
    shared: &'a Shared,
    r: Random,
    /// The generator's state when the step began.
    began: u64,
    cpu: Context,
    stream: Stream,
    other: Stream,
    vecadd: Kernel,
    awaited: VecDeque<Awaited>,
}

/// c = a + b of f32s.
fn load(shared: &Shared) -> Result<Kernel> {
    let gpu = &shared.gpu;
    if gpu.device_info().id.starts_with("cuda") {
        gpu.load_ptx_bytes(VECADD_PTX)
    } else {
        gpu.load_spirv_bytes(VECADD_SPV)
    }
}

impl<'a> Worker<'a> {
    pub fn new(shared: &'a Shared, seed: u64) -> Outcome<Worker<'a>> {
        let (stream, other) = (shared.gpu.stream()?, shared.gpu.stream()?);
        let (r, vecadd) = (Random(seed << 32), load(shared)?);
        Ok(Worker { shared, r, began: 0, cpu: plain(), stream, other, vecadd, awaited: VecDeque::new() })
    }

    /// Works until the time is over. `tick` counts the steps.
    pub fn run(&mut self, tick: &AtomicU64) -> Outcome {
        while !self.shared.over.load(Relaxed) {
            if self.shared.pause.load(SeqCst) {
                self.rest()?;
            }
            let step = tick.fetch_add(1, Relaxed);
            // The first steps are one of each kind. Later ones are mostly of the first kind, operations.
            let kinds = &self.shared.kinds;
            let any = self.r.below(2 * kinds.len()).saturating_sub(kinds.len());
            let kind = *kinds.get(step as usize).unwrap_or(&kinds[any]);
            self.began = self.r.0;
            let done = match kind {
                0 => self.operation(),
                1 => self.transfer(),
                2 => self.recording(),
                3 => self.kernel(),
                4 => self.handover(),
                5 => self.allocations(),
                6 => self.error(),
                _ => self.direct(),
            };
            let began = self.began;
            done.map_err(|Fault(text)| Fault(format!("{}, random state {began:#x}: {text}", KINDS[kind])))?;
            self.shared.done[kind].fetch_add(1, Relaxed);
            while self.awaited.len() > UNDER_WAY {
                self.settle()?;
            }
        }
        self.finish()
    }

    /// Waits until nothing is in progress.
    fn finish(&mut self) -> Outcome {
        while !self.awaited.is_empty() {
            self.settle()?;
        }
        self.stream.synchronize()?;
        Ok(self.other.synchronize()?)
    }

    /// Pauses while memory is measured.
    fn rest(&mut self) -> Outcome {
        self.finish()?;
        self.cpu.trim();
        self.shared.resting.fetch_add(1, SeqCst);
        while self.shared.pause.load(SeqCst) && !self.shared.over.load(Relaxed) {
            sleep(Duration::from_millis(1));
        }
        self.shared.resting.fetch_sub(1, SeqCst);
        Ok(())
    }

    /// Waits for the oldest result and compares it.
    fn settle(&mut self) -> Outcome {
        let Some(Awaited { what, download, expected }) = self.awaited.pop_front() else { return Ok(()) };
        same(&what, &download.to_bytes()?, &expected)
    }

    /// Begins a download that is compared later.
    fn await_bytes(&mut self, what: String, buffer: &Buffer, offset: usize, expected: Vec<u8>) -> Outcome {
        let what = format!("{what} (random state {:#x})", self.began);
        let download = self.stream.download(buffer, offset, expected.len())?;
        self.awaited.push_back(Awaited { what, download, expected });
        Ok(())
    }

    /// A random call of a random operation, with operands at random offsets.
    fn operation(&mut self) -> Outcome {
        let op = Op::ALL[self.r.below(Op::ALL.len())];
        let dtype = [DType::F32, DType::F32, DType::F16, DType::BF16][self.r.below(4)];
        let (attrs, operands) = draw(op, dtype, &mut self.r);
        let given: Vec<Option<&Tensor>> = operands.iter().map(Option::as_ref).collect();
        let expected = self.cpu.run(op, &attrs, &given)?;
        let (buffer, offset) = self.on_device(op, &attrs, &given, expected.view().meta())?;
        self.await_bytes(format!("{op} of {dtype}"), &buffer, offset, expected.bytes().to_vec())
    }

    /// Runs a call and returns the result's buffer and its offset there.
    fn on_device(&mut self, op: Op, attrs: &Attrs, given: &[Option<&Tensor>], meta: &Meta) -> Result<(Buffer, usize)> {
        let mut buffers = Vec::new();
        for tensor in given {
            let offset = self.r.below(4) * 16;
            buffers.push(match tensor {
                Some(tensor) => {
                    let buffer = self.shared.gpu.buffer_zeroed(offset + tensor.bytes().len())?;
                    self.stream.upload(&buffer, offset, tensor.bytes())?;
                    Some((buffer, offset, *tensor.view().meta()))
                }
                None => None,
            });
        }
        let operands: Vec<Option<Operand<'_>>> = buffers
            .iter()
            .map(|given| given.as_ref().map(|(buffer, offset, meta)| Operand { buffer, offset: *offset, meta }))
            .collect();
        let offset = self.r.below(4) * 16;
        let buffer = self.shared.gpu.buffer_zeroed(offset + meta.bytes())?;
        self.stream.run(op, attrs, &operands, Operand { buffer: &buffer, offset, meta })?;
        Ok((buffer, offset))
    }

    /// Moves bytes to the device, between buffers, and back in part.
    fn transfer(&mut self) -> Outcome {
        let most = if self.r.below(8) == 0 { TRANSFER } else { 50_000 };
        let bytes = 1 + self.r.below(most);
        let data = self.bytes(bytes);
        let (from, n) = (self.r.below(bytes), self.r.below(bytes) + 1);
        let n = n.min(bytes - from);
        let mut copied = || -> Result<Buffer> {
            let (a, b) = (self.shared.gpu.buffer_zeroed(bytes)?, self.shared.gpu.buffer_zeroed(bytes + 5)?);
            self.stream.upload(&a, 0, &data)?;
            self.stream.copy((&a, from), (&b, 5), n)?;
            if self.r.flag() {
                self.stream.clear(&a, 0, bytes)?;
            }
            Ok(b)
        };
        let b = copied()?;
        let mut expected = vec![0; 5];
        expected.extend(&data[from..from + n]);
        expected.resize(bytes + 5, 0);
        self.await_bytes(format!("{n} of {bytes} bytes from {from}"), &b, 0, expected)
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = Vec::with_capacity(n + 8);
        while bytes.len() < n {
            bytes.extend(self.r.next().to_le_bytes());
        }
        bytes.truncate(n);
        bytes
    }

    /// x ← relu(x·w + x), recorded and replayed.
    fn recording(&mut self) -> Outcome {
        let (rows, n, times) = (1 + self.r.below(20), 1 + self.r.below(60), 1 + self.r.below(6));
        let (x, w) = (self.r.float(DType::F32, &[rows, n]), self.r.float(DType::F32, &[n, n]));
        let attrs = Attrs::default();
        let mut expected = x.clone();
        for _ in 0..times {
            expected = self.cpu.relu(&self.cpu.add(&self.cpu.matmul(&expected, &w)?, &expected)?)?;
        }
        let gpu = &self.shared.gpu;
        let mut replayed = || -> Result<Buffer> {
            let (a, b) = (gpu.buffer_of_bytes(x.bytes())?, gpu.buffer_of_bytes(w.bytes())?);
            let product = gpu.buffer_zeroed(x.bytes().len())?;
            let (of_x, of_w) = (*x.view().meta(), *w.view().meta());
            let operand = |buffer, meta| Operand { buffer, offset: 0, meta };
            let (a_, b_, product_) = (operand(&a, &of_x), operand(&b, &of_w), operand(&product, &of_x));
            let recording = self.stream.record(|stream| {
                stream.run(Op::Matmul, &attrs, &[Some(a_), Some(b_)], product_)?;
                stream.run(Op::Add, &attrs, &[Some(product_), Some(a_)], product_)?;
                stream.run(Op::Relu, &attrs, &[Some(product_)], a_)
            })?;
            (0..times).try_for_each(|_| self.stream.replay(&recording))?;
            Ok(a)
        };
        let a = replayed()?;
        self.await_bytes(format!("{times} replays of {rows}x{n}"), &a, 0, expected.bytes().to_vec())
    }

    /// Runs a user's kernel, which is sometimes loaded again.
    fn kernel(&mut self) -> Outcome {
        let n = 1 + self.r.below(5000);
        let (x, y) = (self.r.float(DType::F32, &[n]), self.r.float(DType::F32, &[n]));
        let expected = self.cpu.add(&x, &y)?;
        let gpu = &self.shared.gpu;
        let mut added = || -> Result<Buffer> {
            if self.r.below(16) == 0 {
                self.vecadd = load(self.shared)?;
            }
            let (a, b) = (gpu.buffer_of_bytes(x.bytes())?, gpu.buffer_of_bytes(y.bytes())?);
            let c = gpu.buffer_zeroed(4 * n)?;
            let groups = [(n as u32).div_ceil(self.vecadd.workgroup()[0]), 1, 1];
            self.stream.dispatch(&self.vecadd, &[&a, &b, &c], &(n as u32).to_ne_bytes(), groups)?;
            Ok(c)
        };
        let c = added()?;
        // The device decides how a user's kernel handles subnormals and NaN.
        if [&x, &y, &expected].into_iter().any(is_wild) {
            return Ok(());
        }
        self.await_bytes(format!("vecadd of {n}"), &c, 0, expected.bytes().to_vec())
    }

    /// One stream writes a buffer, and another stream uses it after an event.
    fn handover(&mut self) -> Outcome {
        let n = 1 + self.r.below(200_000);
        let data = self.bytes(n);
        let mut handed = || -> Result<Buffer> {
            let (a, b) = (self.shared.gpu.buffer_zeroed(n)?, self.shared.gpu.buffer_zeroed(n)?);
            self.other.upload(&a, 0, &data)?;
            let written = self.other.event()?;
            self.stream.wait_for(&written)?;
            self.stream.copy((&a, 0), (&b, 0), n)?;
            let copied = self.stream.event()?;
            self.other.wait_for(&copied)?;
            self.other.clear(&a, 0, n)?;
            if self.r.flag() {
                copied.wait()?;
            }
            Ok(b)
        };
        let b = handed()?;
        self.await_bytes(format!("{n} bytes handed over"), &b, 0, data)
    }

    /// Allocates and drops buffers. New ones must be zeroed.
    fn allocations(&mut self) -> Outcome {
        let mut size = || {
            let most = 1 << self.r.below(20);
            1 + self.r.below(most)
        };
        let sizes: Vec<usize> = (0..20).map(|_| size()).collect();
        let gpu = &self.shared.gpu;
        let held = sizes.iter().map(|&bytes| gpu.buffer_zeroed(bytes)).collect::<Result<Vec<_>>>()?;
        let one = self.r.below(held.len());
        self.await_bytes("a new buffer".into(), &held[one], 0, vec![0; sizes[one]])?;
        if self.r.below(200) == 0 {
            gpu.trim();
        }
        let too_many = gpu.buffer_zeroed(usize::MAX / 4).err().map(|error| error.status());
        if too_many != Some(Status::OutOfMemory) {
            return Err(Fault(format!("2⁶² bytes give {too_many:?}")));
        }
        Ok(())
    }

    /// An id outside its table: synchronising the stream returns the error, and the stream stays usable.
    fn error(&mut self) -> Outcome {
        let (rows, n) = (1 + self.r.below(50), 1 + self.r.below(3000));
        let mut ids: Vec<u32> = (0..n).map(|_| self.r.below(rows) as u32).collect();
        ids[self.r.below(n)] = (rows + self.r.below(9)) as u32;
        let table = self.r.float(DType::F32, &[rows, 3]);
        let gpu = &self.shared.gpu;
        let mut asked = || -> Result<(Option<Status>, Buffer)> {
            let metas = [Meta::new(DType::U32, Shape::new(&[n])?), Meta::new(DType::F32, Shape::new(&[n, 3])?)];
            let (a, b) = (gpu.buffer_of_bytes(table.bytes())?, gpu.buffer(&ids)?);
            let c = gpu.buffer_zeroed(12 * n)?;
            let of_table = *table.view().meta();
            let operand = |buffer, meta| Operand { buffer, offset: 0, meta };
            let inputs = [Some(operand(&a, &of_table)), Some(operand(&b, &metas[0]))];
            let run = self.other.run(Op::Embedding, &Attrs::default(), &inputs, operand(&c, &metas[1]));
            let outcome = run.and_then(|()| self.other.synchronize());
            Ok((outcome.err().map(|error| error.status()), c))
        };
        let (status, c) = asked()?;
        if status != Some(Status::InvalidArgument) {
            return Err(Fault(format!("an id outside the table gives {status:?}")));
        }
        self.await_bytes("what a refused command left".into(), &c, 0, vec![0; 12 * n])
    }

    /// A call with operands in host memory, on the context's stream, which all threads share.
    fn direct(&mut self) -> Outcome {
        let (m, n, k) = (1 + self.r.below(40), 1 + self.r.below(40), 1 + self.r.below(300));
        let (a, b) = (self.r.float(DType::F32, &[m, k]), self.r.float(DType::F32, &[k, n]));
        let (cpu, gpu) = (self.cpu.matmul(&a, &b)?, self.shared.gpu.matmul(&a, &b)?);
        same(&format!("matmul {m}x{n}x{k}"), gpu.bytes(), cpu.bytes())
    }
}

fn same(what: &str, got: &[u8], expected: &[u8]) -> Outcome {
    match got.iter().zip(expected).position(|(a, b)| a != b) {
        None if got.len() == expected.len() => Ok(()),
        at => Err(Fault(format!("{what}: byte {at:?} differs; {} bytes of {}", got.len(), expected.len()))),
    }
}

/// Whether a tensor of f32s contains a subnormal or a NaN.
fn is_wild(tensor: &Tensor) -> bool {
    let float = |word: &[u8]| f32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
    tensor.bytes().chunks_exact(4).map(float).any(|x| x.is_subnormal() || x.is_nan())
}
