//! Tests of operations in parts on two CPU devices, and on this machine's GPU if `ADEAD_TEST_BACKEND` names a backend. At every
//! split point the bits are those of the whole.

use super::*;
use crate::config::Config;
use crate::devices::{Slot, choose};
use crate::hal::{Device, DeviceInfo, Event, Kernel, KernelSource, MemoryUse, Priority, Recording, Timestamp};
use crate::operand::{Meta, View};
use crate::{Attrs, DType, Error, Op, Shape, Status, Tensor};
use draws::{Random, draw, plain};

#[path = "../../tests/backend/mod.rs"]
mod backend;
#[path = "../../tests/draws/mod.rs"]
mod draws;

/// A CPU that computes on the caller's thread, and devices with streams: another CPU, and the GPU if there is one.
fn devices() -> (Arc<CpuDevice>, Vec<Arc<Opened>>) {
    let cpu = || Arc::new(CpuDevice::open(None, Some(2)).unwrap());
    let mut devices = vec![Opened::new(cpu(), Default::default()).unwrap()];
    if let Some(backend) = backend::named() {
        let config = Config::default();
        match choose(&backend, &config) {
            Ok(choice) => {
                let slot = Slot::new(choice.gpus[0].clone(), &config, cpu(), Default::default(), |_, _| {});
                devices.insert(0, slot.opened().unwrap().clone());
            }
            Err(error) => backend::skip(&backend, &error),
        }
    }
    (cpu(), devices)
}

/// An output in memory of its own that was not written yet.
fn unwritten(meta: &Meta) -> Vec<u64> {
    vec![0xa5a5_a5a5_a5a5_a5a5; meta.bytes().div_ceil(8)]
}

fn view<'a>(memory: &'a mut [u64], meta: &'a Meta) -> ViewMut<'a> {
    let data = std::ptr::NonNull::from(memory).cast();
    // SAFETY: the memory is aligned to eight bytes, as long as the description says, and mutably borrowed.
    unsafe { ViewMut::from_raw(data, meta) }
}

fn bytes<'a>(memory: &'a [u64], meta: &Meta) -> &'a [u8] {
    // SAFETY: the memory has at least this many bytes.
    unsafe { slice::from_raw_parts(memory.as_ptr().cast(), meta.bytes()) }
}

/// A call that can be cut, and its result computed by the CPU alone.
struct Call {
    op: Op,
    attrs: Attrs,
    operands: Vec<Option<Tensor>>,
    meta: Meta,
}

impl Call {
    fn new(op: Op, attrs: Attrs, operands: Vec<Option<Tensor>>) -> Call {
        let views: Vec<_> = operands.iter().map(|it| it.as_ref().map(Tensor::view)).collect();
        let meta = op.info().infer(&attrs, &views).unwrap();
        Call { op, attrs, operands, meta }
    }

    fn whole(&self) -> Tensor {
        let operands: Vec<_> = self.operands.iter().map(Option::as_ref).collect();
        plain().run(self.op, &self.attrs, &operands).unwrap()
    }

    /// The number of rows; 0 if it can't be cut.
    fn rows(&self) -> usize {
        let views: Vec<_> = self.operands.iter().map(|it| it.as_ref().map(Tensor::view)).collect();
        Cut::of(self.op, &self.attrs, &views, &self.meta).map_or(0, |cut| cut.rows)
    }

    /// Computes the call in parts.
    fn run(&self, cpu: &CpuDevice, parts: &[(Option<&Opened>, usize)]) -> Result<Vec<u64>> {
        let views: Vec<_> = self.operands.iter().map(|it| it.as_ref().map(Tensor::view)).collect();
        let cut = Cut::of(self.op, &self.attrs, &views, &self.meta).unwrap();
        let mut memory = unwritten(&self.meta);
        let done = execute((cpu, &Profiler::default()), parts, &cut, &mut view(&mut memory, &self.meta));
        if done.is_err() {
            assert!(memory == unwritten(&self.meta), "{} failed and wrote", self.op);
        }
        done.map(|()| memory)
    }
}

/// Every split point if there are few rows. With many rows, the outermost ones and some in between.
fn points(rows: usize, r: &mut Random) -> Vec<usize> {
    if rows <= 40 {
        return (0..=rows).collect();
    }
    let mut points = vec![0, 1, 2, rows / 2, rows - 1, rows];
    points.extend((0..6).map(|_| r.below(rows + 1)));
    points
}

/// The most elements of an operand of a call that is split at many points. A software GPU takes up to half a second for longer ones.
const MOST: usize = 1 << 14;

#[test]
fn every_split_point_has_the_bits_of_the_whole() {
    let (cpu, devices) = devices();
    // A software GPU is slow.
    let seeds = if devices.len() > 1 { 8 } else { 16 };
    for &op in Op::ALL {
        let (mut cut, mut compared) = (0, 0);
        // Some operations are seldom drawn with rows.
        for seed in 0..100 {
            if seed >= seeds && cut > 0 {
                break;
            }
            let mut r = Random(seed << 8 | op as u64);
            let dtype = [DType::F32, DType::F32, DType::F16, DType::BF16][r.below(4)];
            let (attrs, operands) = draw(op, dtype, &mut r);
            let call = Call::new(op, attrs, operands);
            let rows = call.rows();
            if rows == 0 || call.operands.iter().flatten().any(|operand| operand.len() > MOST) {
                continue;
            }
            cut += 1;
            let expected = call.whole();
            for point in points(rows, &mut r) {
                let other = &devices[r.below(devices.len())];
                // Two parts in both orders, and three parts, of which the CPU has the middle one.
                let third = r.below(rows - point + 1);
                let parts: [&[(Option<&Opened>, usize)]; 3] = [
                    &[(None, point), (Some(other), rows - point)],
                    &[(Some(other), point), (None, rows - point)],
                    &[
                        (Some(&devices[0]), point),
                        (None, third),
                        (devices.get(1).map(|it| &**it), rows - point - third),
                    ],
                ];
                // Without a third device the CPU would have two parts.
                for parts in &parts[..if devices.len() > 1 { 3 } else { 2 }] {
                    let memory = call.run(&cpu, parts).unwrap_or_else(|error| panic!("{op} seed {seed}: {error}"));
                    let same = bytes(&memory, &call.meta) == expected.bytes();
                    assert!(same, "{op} seed {seed} {dtype} {attrs:?} {point} of {rows}: {:?}", call.operands);
                    compared += 1;
                }
            }
        }
        match op {
            Op::Dot | Op::Slice | Op::Pad | Op::Gather => assert_eq!(cut, 0, "{op} has no parts"),
            _ => assert!(cut > 0, "{op} was never cut"),
        }
        println!("{op}: {cut} calls equal the whole in {compared} splits");
    }
}

fn metas(shapes: &[&[usize]]) -> Vec<Meta> {
    shapes.iter().map(|dims| Meta::new(DType::F32, Shape::new(dims).unwrap())).collect()
}

/// The rows of a call with these shapes, and the shapes of operands and result in a part of `count` rows.
fn shapes(op: Op, attrs: &Attrs, shapes: &[&[usize]], count: usize) -> (usize, Vec<Vec<usize>>) {
    let metas = metas(shapes);
    let metas: Vec<_> = metas.iter().map(Some).collect();
    let output = op.info().infer(attrs, &metas).unwrap();
    let Some(cut) = Cut::of(op, attrs, &metas, &output) else { return (0, Vec::new()) };
    let part = cut.part(0, count);
    let mut dims: Vec<Vec<usize>> = part.metas(&cut).iter().flatten().map(|meta| meta.shape.dims().to_vec()).collect();
    dims.push(part.result().shape.dims().to_vec());
    (cut.rows, dims)
}

#[test]
fn cuts_are_as_fine_as_they_can_be() {
    let plain = Attrs::default();
    // Products: rows of all batches if they share one B, otherwise batches.
    assert_eq!(
        shapes(Op::Matmul, &plain, &[&[8, 5, 7], &[8, 7, 3]], 2),
        (8, vec![vec![2, 5, 7], vec![2, 7, 3], vec![2, 5, 3]])
    );
    assert_eq!(
        shapes(Op::Matmul, &plain, &[&[8, 5, 7], &[7, 3]], 11),
        (40, vec![vec![11, 7], vec![7, 3], vec![11, 3]])
    );
    assert_eq!(shapes(Op::Matmul, &plain, &[&[8, 5, 7], &[1, 7, 3]], 4).0, 40);
    // One row for each batch: a batch is not a row of one product then.
    assert_eq!(shapes(Op::Matmul, &plain, &[&[8, 1, 7], &[8, 7, 3]], 2).1[2], [2, 1, 3]);
    assert_eq!(shapes(Op::Matmul, &plain, &[&[5, 7], &[7]], 2), (5, vec![vec![2, 7], vec![7], vec![2]]));
    assert_eq!(shapes(Op::Matmul, &plain, &[&[7], &[7, 3]], 2).0, 0);
    let turned = Attrs { trans_a: true, ..plain };
    assert_eq!(shapes(Op::Matmul, &turned, &[&[7, 5], &[7, 3]], 2).0, 0);
    assert_eq!(shapes(Op::Matmul, &turned, &[&[4, 7, 5], &[7, 3]], 2).0, 4);
    // Elementwise: elements if nothing is broadcast, otherwise the leading axes.
    assert_eq!(shapes(Op::Add, &plain, &[&[4, 5, 6], &[4, 5, 6]], 7), (120, vec![vec![7], vec![7], vec![7]]));
    assert_eq!(shapes(Op::Add, &plain, &[&[4, 5, 6], &[6]], 7), (20, vec![vec![7, 6], vec![6], vec![7, 6]]));
    assert_eq!(shapes(Op::Add, &plain, &[&[4, 1, 6], &[5, 6]], 3), (4, vec![vec![3, 1, 6], vec![5, 6], vec![3, 5, 6]]));
    assert_eq!(shapes(Op::Add, &plain, &[&[1, 6], &[4, 1]], 3), (4, vec![vec![1, 6], vec![3, 1], vec![3, 6]]));
    // Along an axis: the axes before it.
    let along = |axis| Attrs { axis: crate::Axis::At(axis), ..plain };
    assert_eq!(shapes(Op::Softmax, &plain, &[&[4, 5, 6]], 7).0, 20);
    assert_eq!(shapes(Op::Softmax, &along(1), &[&[4, 5, 6]], 3), (4, vec![vec![3, 5, 6], vec![3, 5, 6]]));
    assert_eq!(shapes(Op::Sum, &along(1), &[&[4, 5, 6]], 3), (4, vec![vec![3, 5, 6], vec![3, 6]]));
    assert_eq!(shapes(Op::Sum, &along(-1), &[&[4, 5, 6]], 3), (20, vec![vec![3, 6], vec![3]]));
    assert_eq!(shapes(Op::Sum, &along(0), &[&[4, 5, 6]], 3).0, 0);
    assert_eq!(shapes(Op::Sum, &plain, &[&[4, 5, 6]], 3).0, 0);
    // Attention: heads, together with those that share their keys. Queries of a single head, unless causality counts them.
    let causal = Attrs { causal: true, ..plain };
    let (q, kv): (&[usize], &[usize]) = (&[2, 6, 9, 8], &[2, 3, 10, 8]);
    assert_eq!(
        shapes(Op::Attention, &causal, &[q, kv, kv], 2),
        (6, vec![vec![4, 9, 8], vec![2, 10, 8], vec![2, 10, 8], vec![4, 9, 8]])
    );
    assert_eq!(shapes(Op::Attention, &plain, &[q, q, q], 2).0, 12);
    assert_eq!(shapes(Op::Attention, &causal, &[&[6, 9, 8], &[1, 10, 8], &[1, 10, 8]], 2).1[1], [1, 10, 8]);
    assert_eq!(shapes(Op::Attention, &plain, &[&[6, 9, 8], &[1, 10, 8], &[1, 10, 8]], 2).0, 54);
    assert_eq!(shapes(Op::Attention, &plain, &[&[1, 9, 8], &[1, 10, 8], &[1, 10, 8], &[9, 10]], 2).0, 9);
    assert_eq!(shapes(Op::Attention, &causal, &[&[1, 9, 8], &[1, 10, 8], &[1, 10, 8]], 2).0, 0);
    // Transposition: the first axis, if it stays the first.
    let perm = |perm: &[i32]| Attrs { perm: crate::Permutation::new(perm).unwrap(), ..plain };
    let (x, turned) = (&[4, 5, 6][..], vec![vec![3, 5, 6], vec![3, 6, 5]]);
    assert_eq!(shapes(Op::Transpose, &perm(&[0, 2, 1]), &[x], 3), (4, turned));
    assert_eq!(shapes(Op::Transpose, &perm(&[1, 0, 2]), &[x], 3).0, 0);
    assert_eq!(shapes(Op::Transpose, &plain, &[x], 3).0, 0);
    assert_eq!(shapes(Op::Ffn, &plain, &[&[4, 5, 6], &[6, 7], &[7], &[7, 3]], 7).0, 20);
    // Nothing to compute, and a single row.
    assert_eq!(shapes(Op::Relu, &plain, &[&[4, 0]], 0).0, 0);
    assert_eq!(shapes(Op::Relu, &plain, &[&[1, 1]], 0).0, 0);
}

#[test]
fn a_result_may_replace_an_operand() {
    let (cpu, devices) = devices();
    let values: Vec<f32> = (0..64).map(|i| i as f32 - 31.5).collect();
    let meta = &metas(&[&[8, 8]])[0];
    for device in &devices {
        for rows in 0..=64 {
            let mut memory = values.clone();
            let data = std::ptr::NonNull::from(&mut memory[..]).cast();
            // SAFETY: both views are of the vector, which nothing else uses. The operation may work in place.
            let (x, mut y) = unsafe { ([Some(View::from_raw(data, meta))], ViewMut::from_raw(data, meta)) };
            let cut = Cut::of(Op::Relu, &Attrs::DEFAULT, &x, meta).unwrap();
            execute((&cpu, &Profiler::default()), &[(None, rows), (Some(device), 64 - rows)], &cut, &mut y).unwrap();
            assert!(memory.iter().zip(&values).all(|(y, x)| *y == x.max(0.0)), "{rows} rows");
        }
    }
}

#[test]
fn wrong_ids_are_named_by_their_place_in_the_whole() {
    let (cpu, devices) = devices();
    let table = Tensor::new(&[0.5f32; 6], &[3, 2]).unwrap();
    for wrong in 0..8 {
        let ids: Vec<i64> = (0..8).map(|i| if i >= wrong { 7 } else { 1 }).collect();
        let ids = Tensor::new(&ids, &[8]).unwrap();
        let call = Call::new(Op::Embedding, Attrs::DEFAULT, vec![Some(table.clone()), Some(ids)]);
        let error = call.run(&cpu, &[(None, 4), (Some(&devices[0]), 4)]).unwrap_err();
        let expected = format!("embedding: id 7 at position {wrong} is outside the table's 3 rows");
        assert_eq!((error.status(), error.message()), (Status::InvalidArgument, &*expected));
    }
}

/// Where a device fails.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Memory,
    Submission,
    Work,
}

/// A CPU whose streams fail.
struct Failing(Arc<CpuDevice>, Fault);

struct FailingStream(Box<dyn Stream>, Fault);

fn failed<T>(what: &str) -> Result<T> {
    Err(Error::new(Status::DeviceLost, what))
}

// SAFETY: everything is the CPU device's own, or an error.
unsafe impl Device for Failing {
    fn info(&self) -> &DeviceInfo {
        self.0.info()
    }

    fn memory(&self) -> MemoryUse {
        Device::memory(&*self.0)
    }

    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Buffer>> {
        if self.1 == Fault::Memory { failed("memory") } else { self.0.allocate(bytes) }
    }

    fn allocate_unset(&self, bytes: usize) -> Result<Arc<dyn Buffer>> {
        self.allocate(bytes)
    }

    fn stream_with(self: Arc<Self>, priority: Priority) -> Result<Box<dyn Stream>> {
        Ok(Box::new(FailingStream(self.0.clone().stream_with(priority)?, self.1)))
    }

    fn kernel(&self, source: &KernelSource<'_>) -> Result<Arc<dyn Kernel>> {
        self.0.kernel(source)
    }

    fn trim(&self) {}
}

// SAFETY: everything is the CPU stream's own, or an error.
unsafe impl Stream for FailingStream {
    fn submit(&mut self, commands: &mut [Command<'_>]) -> Result<()> {
        if self.1 == Fault::Submission { failed("submission") } else { self.0.submit(commands) }
    }

    fn synchronize(&mut self) -> Result<()> {
        if self.1 == Fault::Work { failed("work") } else { self.0.synchronize() }
    }

    fn dispatch(&mut self, kernel: &dyn Kernel, buffers: &[Slice<'_>], push: &[u8], groups: [u32; 3]) -> Result<()> {
        self.0.dispatch(kernel, buffers, push, groups)
    }

    fn write(&mut self, to: &dyn Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
        self.0.write(to, offset, bytes)
    }

    fn read(&mut self, from: &dyn Buffer, offset: usize, into: &mut [u8]) -> Result<()> {
        self.0.read(from, offset, into)
    }

    fn download(&mut self, from: Slice<'_>) -> Result<Box<dyn Download>> {
        self.0.download(from)
    }

    fn copy(&mut self, from: Slice<'_>, to: Slice<'_>) -> Result<()> {
        self.0.copy(from, to)
    }

    fn clear(&mut self, to: Slice<'_>) -> Result<()> {
        self.0.clear(to)
    }

    fn event(&mut self) -> Result<Arc<dyn Event>> {
        self.0.event()
    }

    fn wait(&mut self, event: &dyn Event) -> Result<()> {
        self.0.wait(event)
    }

    fn timestamp(&mut self) -> Result<Arc<dyn Timestamp>> {
        self.0.timestamp()
    }

    fn start_recording(&mut self) -> Result<()> {
        self.0.start_recording()
    }

    fn finish_recording(&mut self) -> Result<Arc<dyn Recording>> {
        self.0.finish_recording()
    }

    fn replay(&mut self, recording: &dyn Recording) -> Result<()> {
        self.0.replay(recording)
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush()
    }

    fn is_idle(&mut self) -> Result<bool> {
        self.0.is_idle()
    }
}

#[test]
fn an_error_of_any_part_is_the_command_s() {
    let (cpu, devices) = devices();
    let x = Tensor::new(&[1.0f32; 12], &[12]).unwrap();
    let call = Call::new(Op::Exp, Attrs::DEFAULT, vec![Some(x)]);
    for (fault, expected) in [(Fault::Memory, "memory"), (Fault::Submission, "submission")] {
        let failing = Opened::new(Arc::new(Failing(cpu.clone(), fault)), Default::default()).unwrap();
        // The failing device comes before or after a working one. Nothing is written, and the working one's stream stays usable.
        for parts in [
            [(Some(&*failing), 4), (None, 4), (Some(&*devices[0]), 4)],
            [(Some(&*devices[0]), 4), (None, 4), (Some(&*failing), 4)],
        ] {
            let error = call.run(&cpu, &parts).unwrap_err();
            assert_eq!((error.status(), error.message()), (Status::DeviceLost, expected));
        }
        call.run(&cpu, &[(Some(&devices[0]), 12)]).unwrap();
    }
    // A part that fails after the others have computed.
    let failing = Opened::new(Arc::new(Failing(cpu.clone(), Fault::Work)), Default::default()).unwrap();
    let views = [Some(call.operands[0].as_ref().unwrap().view())];
    let cut = Cut::of(call.op, &call.attrs, &views, &call.meta).unwrap();
    let mut memory = unwritten(&call.meta);
    let parts = [(None, 6), (Some(&*failing), 6)];
    let error = execute((&cpu, &Profiler::default()), &parts, &cut, &mut view(&mut memory, &call.meta)).unwrap_err();
    assert_eq!(error.message(), "work");
    assert!(bytes(&memory, &call.meta)[24..].iter().all(|&byte| byte == 0xa5), "its rows were written");
}
