//! The conformance test suite of the device layer: it checks what every [`Device`] must do.
//!
//! A backend's tests open a device and call [`run`]. A new trait method gets its check here, once for all devices.

use super::{Buffer, Device, DeviceKind, Priority, Slice, Stream};
use crate::command::Command;
use crate::dtype::DType;
use crate::error::{Result, Status};
use crate::operand::{Inputs, Meta, View, ViewMut};
use crate::ops::{Attrs, Op, reference};
use crate::shape::Shape;
use std::sync::Arc;

/// Runs every check on a device. Panics with the name of the check that fails.
pub fn run(device: Arc<dyn Device>) {
    run_without_operations(&device);
    let checks: [(&str, Check); 4] = [
        ("commands on buffers", commands),
        ("commands run in order", order),
        ("a failed submission writes nothing", failure),
        ("recordings", recordings),
    ];
    run_all(&device, &checks);
    from_threads(device);
}

/// Runs the checks that need no operation, for a backend that is tested without kernels.
pub fn run_without_operations(device: &Arc<dyn Device>) {
    let checks: [(&str, Check); 10] = [
        ("info", info),
        ("buffers are zeroed and sized", buffers),
        ("what is written is read", transfers),
        ("copies and clearing", copies),
        ("downloads", downloads),
        ("events", events),
        ("timestamps", timestamps),
        ("views are bounded", views),
        ("host and buffer views of one memory overlap", overlap),
        ("many buffers come and go", churn),
    ];
    run_all(device, &checks);
}

type Check = fn(&Arc<dyn Device>) -> Result<()>;

fn run_all(device: &Arc<dyn Device>, checks: &[(&str, Check)]) {
    for (name, check) in checks {
        if let Err(error) = check(device) {
            panic!("{}: {name}: {error}", device.info().id);
        }
    }
}

fn info(device: &Arc<dyn Device>) -> Result<()> {
    let info = device.info();
    assert!(!info.id.is_empty() && !info.name.is_empty() && !info.arch.is_empty(), "{info:?}");
    assert!(info.units > 0 || info.kind != DeviceKind::Cpu, "{info:?}");
    Ok(())
}

fn buffers(device: &Arc<dyn Device>) -> Result<()> {
    for bytes in [0, 1, 4, 4096, 1_000_003] {
        let buffer = device.allocate(bytes)?;
        assert_eq!(buffer.size(), bytes);
        assert!(!buffer.device_name().is_empty());
        assert!(download(device, &*buffer)?.iter().all(|&byte| byte == 0));
        assert_eq!(device.allocate_unset(bytes)?.size(), bytes);
    }
    let held = device.memory();
    assert!(held.used <= held.held && held.total >= held.used, "{held:?}");
    let refused = device.allocate(usize::MAX / 2).err().map(|error| error.status());
    assert_eq!(refused, Some(Status::OutOfMemory));
    Ok(())
}

fn vector(n: usize) -> Result<Meta> {
    Ok(Meta::new(DType::F32, Shape::new(&[n])?))
}

fn views(device: &Arc<dyn Device>) -> Result<()> {
    let buffer = device.allocate(64)?;
    assert!(View::buffer(&*buffer, 0, &vector(16)?).is_ok());
    assert!(View::buffer(&*buffer, 60, &vector(1)?).is_ok());
    for (offset, n) in [(0, 17), (64, 1), (usize::MAX, 1), (2, 1)] {
        assert!(View::buffer(&*buffer, offset, &vector(n)?).is_err(), "{n} values at {offset}");
        assert!(ViewMut::buffer(&*buffer, offset, &vector(n)?).is_err(), "{n} values at {offset}");
    }
    Ok(())
}

/// Memory that the host can address counts as the same memory, whether an operand names it as a buffer or by its
/// address.
fn overlap(device: &Arc<dyn Device>) -> Result<()> {
    let buffer = device.allocate(64)?;
    let Some(pointer) = buffer.host_pointer() else { return Ok(()) };
    let four = vector(4)?;
    let input = |at: usize| -> Result<[Option<View<'_>>; 1]> {
        // SAFETY: the four values lie inside the buffer, which outlives the view, and no command reads the view.
        Ok([Some(unsafe { View::from_raw(pointer.add(at), &four) })])
    };
    let scaled = |input: &[Option<View<'_>>]| {
        let output = ViewMut::buffer(&*buffer, 0, &four)?;
        Command::new(Op::Scale, Attrs::default(), input, output).map(|_| ())
    };
    assert!(scaled(&input(0)?).is_ok(), "exactly in place");
    assert!(scaled(&input(16)?).is_ok(), "side by side");
    let refused = scaled(&input(4)?).err().map(|error| error.status());
    assert_eq!(refused, Some(Status::InvalidArgument), "partly over each other");
    Ok(())
}

/// Runs one operation on buffers of the device, from host values, and compares the result with the reference.
fn one(device: &Arc<dyn Device>, stream: &mut dyn Stream, op: Op, operands: &[(&[f32], &[usize])]) -> Result<()> {
    let attrs = Attrs::default();
    let metas: Vec<Meta> =
        operands.iter().map(|(_, dims)| Ok(Meta::new(DType::F32, Shape::new(dims)?))).collect::<Result<_>>()?;
    let mut host = Vec::new();
    for ((values, _), meta) in operands.iter().zip(&metas) {
        host.push(Some(View::f32(values, meta)?));
    }
    let meta = op.info().infer(&attrs, &host)?;
    let expected = reference(op, &attrs, &host, &meta)?;
    let buffers: Vec<_> = operands.iter().map(|(values, _)| upload(device, values)).collect::<Result<_>>()?;
    let result = device.allocate(meta.bytes())?;
    let mut inputs = Inputs::new();
    for (buffer, view) in buffers.iter().zip(host.iter().flatten()) {
        inputs.push(Some(View::buffer(&**buffer, 0, view.meta())?));
    }
    let command = Command::new(op, attrs, &inputs, ViewMut::buffer(&*result, 0, &meta)?)?;
    stream.submit(&mut [command])?;
    stream.synchronize()?;
    assert!(stream.is_idle()?);
    assert_eq!(download(device, &*result)?, expected, "{op}");
    Ok(())
}

fn upload(device: &Arc<dyn Device>, values: &[f32]) -> Result<Arc<dyn Buffer>> {
    let buffer = device.allocate_unset(size_of_val(values))?;
    let bytes: Vec<u8> = values.iter().copied().flat_map(f32::to_ne_bytes).collect();
    let mut stream = device.clone().stream()?;
    stream.write(&*buffer, 0, &bytes)?;
    stream.synchronize()?;
    Ok(buffer)
}

fn download(device: &Arc<dyn Device>, buffer: &dyn Buffer) -> Result<Vec<u8>> {
    let mut bytes = vec![0xa5; buffer.size()];
    device.clone().stream()?.read(buffer, 0, &mut bytes)?;
    Ok(bytes)
}

/// Returns bytes in which neighbours differ.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 31 + i / 255) as u8).collect()
}

fn transfers(device: &Arc<dyn Device>) -> Result<()> {
    let mut stream = device.clone().stream()?;
    // Sizes below, at and above a single transfer piece.
    for bytes in [1, 5, 4096, (1 << 20) + 3, 40_000_001] {
        let (buffer, data) = (device.allocate(bytes)?, pattern(bytes));
        stream.write(&*buffer, 0, &data)?;
        let mut back = vec![0; bytes];
        stream.read(&*buffer, 0, &mut back)?;
        assert!(back == data, "{bytes} bytes");
    }
    let buffer = device.allocate(100)?;
    stream.write(&*buffer, 33, &[7; 10])?;
    let mut part = [0; 12];
    stream.read(&*buffer, 32, &mut part)?;
    assert_eq!(part, [0, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0]);
    stream.write(&*buffer, 100, &[])?;
    for (offset, bytes) in [(91, 10), (101, 0), (usize::MAX, 1)] {
        let mut into = vec![0; bytes];
        let refused = [stream.write(&*buffer, offset, &into), stream.read(&*buffer, offset, &mut into)];
        for refused in refused {
            assert_eq!(refused.err().map(|error| error.status()), Some(Status::InvalidArgument), "{bytes} at {offset}");
        }
    }
    Ok(())
}

fn copies(device: &Arc<dyn Device>) -> Result<()> {
    let mut stream = device.clone().stream()?;
    let (a, b) = (device.allocate(64)?, device.allocate(64)?);
    stream.write(&*a, 0, &pattern(64))?;
    stream.copy(Slice { buffer: &*a, offset: 8, bytes: 24 }, Slice { buffer: &*b, offset: 32, bytes: 24 })?;
    stream.clear(Slice { buffer: &*a, offset: 16, bytes: 8 })?;
    stream.copy(Slice { buffer: &*a, offset: 0, bytes: 8 }, Slice { buffer: &*a, offset: 8, bytes: 8 })?;
    let (mut of_a, mut of_b) = (vec![0; 64], vec![0; 64]);
    stream.read(&*a, 0, &mut of_a)?;
    stream.read(&*b, 0, &mut of_b)?;
    let mut expected = pattern(64);
    assert_eq!((&of_b[..32], &of_b[32..56], &of_b[56..]), (&[0; 32][..], &expected[8..32], &[0; 8][..]));
    expected[16..24].fill(0);
    expected.copy_within(0..8, 8);
    assert_eq!(of_a, expected);
    let part = |buffer, offset, bytes| Slice { buffer, offset, bytes };
    // Large copies, at multiples of 16 and at other offsets.
    let (c, d) = (device.allocate(300_000)?, device.allocate(300_000)?);
    let numbers = pattern(300_000);
    stream.write(&*c, 0, &numbers)?;
    for (from, to, bytes) in
        [(0, 0, 300_000), (16, 4096, 70_000), (160, 16, 262_144), (3, 16, 100_000), (16, 32, 99_999)]
    {
        stream.clear(part(&*d, 0, 300_000))?;
        stream.copy(part(&*c, from, bytes), part(&*d, to, bytes))?;
        let (mut of_d, mut expected) = (vec![1; 300_000], vec![0; 300_000]);
        stream.read(&*d, 0, &mut of_d)?;
        expected[to..to + bytes].copy_from_slice(&numbers[from..from + bytes]);
        assert!(of_d == expected, "{bytes} bytes from {from} to {to}");
    }
    let refused = [
        stream.copy(part(&*a, 0, 65), part(&*b, 0, 65)),
        stream.copy(part(&*a, 0, 8), part(&*b, 0, 9)),
        stream.copy(part(&*a, 0, 16), part(&*a, 8, 16)),
        stream.clear(part(&*a, 60, 8)),
    ];
    for (i, refused) in refused.into_iter().enumerate() {
        assert_eq!(refused.err().map(|error| error.status()), Some(Status::InvalidArgument), "refusal {i}");
    }
    Ok(())
}

fn downloads(device: &Arc<dyn Device>) -> Result<()> {
    let mut stream = device.clone().stream()?;
    let buffer = device.allocate(3_000_000)?;
    stream.write(&*buffer, 0, &pattern(3_000_000))?;
    let (first, second) = (
        stream.download(Slice { buffer: &*buffer, offset: 0, bytes: 1000 })?,
        stream.download(Slice { buffer: &*buffer, offset: 1000, bytes: 2_999_000 })?,
    );
    // Later work must not change the values of an earlier download.
    stream.clear(Slice { buffer: &*buffer, offset: 0, bytes: 3_000_000 })?;
    let mut bytes = vec![0; 3_000_000];
    let (head, tail) = bytes.split_at_mut(1000);
    assert_eq!((first.size(), second.size()), (1000, 2_999_000));
    if let Some(event) = second.event() {
        event.wait(u64::MAX)?;
        assert!(event.is_done()? && second.is_done()?);
    }
    assert!(*second.bytes()? == pattern(3_000_000)[1000..]);
    second.take(tail)?;
    assert!(first.is_done()? && *first.bytes()? == pattern(3_000_000)[..1000]);
    first.take(head)?;
    assert!(bytes == pattern(3_000_000));
    let third = stream.download(Slice { buffer: &*buffer, offset: 0, bytes: 8 })?;
    assert_eq!(third.take(&mut [0; 7]).err().map(|error| error.status()), Some(Status::InvalidArgument));
    Ok(())
}

/// One stream writes; another waits for its event and reads.
fn events(device: &Arc<dyn Device>) -> Result<()> {
    let (mut writer, mut reader) = (device.clone().stream()?, device.clone().stream()?);
    let buffer = device.allocate(5_000_000)?;
    for round in 0..20u8 {
        writer.write(&*buffer, 0, &vec![round + 1; 5_000_000])?;
        let written = writer.event()?;
        reader.wait(&*written)?;
        let mut bytes = vec![0; 5_000_000];
        reader.read(&*buffer, 0, &mut bytes)?;
        assert!(bytes.iter().all(|&byte| byte == round + 1), "round {round}");
        assert!(written.is_done()?);
        written.wait(0)?;
        let read = reader.event()?;
        read.wait(u64::MAX)?;
    }
    assert!(writer.is_idle()? && reader.is_idle()?);
    Ok(())
}

fn timestamps(device: &Arc<dyn Device>) -> Result<()> {
    let mut stream = device.clone().stream()?;
    let buffer = device.allocate(1 << 20)?;
    let before = stream.timestamp()?;
    stream.clear(Slice { buffer: &*buffer, offset: 0, bytes: 1 << 20 })?;
    let after = stream.timestamp()?;
    stream.synchronize()?;
    assert!(after.nanoseconds()? >= before.nanoseconds()?);
    Ok(())
}

/// A recording runs only when it is replayed, and as often.
fn recordings(device: &Arc<dyn Device>) -> Result<()> {
    let mut stream = device.clone().stream()?;
    match stream.start_recording() {
        // A device may lack recordings.
        Err(error) if error.status() == Status::Unsupported => return Ok(()),
        started => started?,
    }
    let buffer = upload(device, &[1.0, -3.0])?;
    let meta = vector(2)?;
    let inputs = [Some(View::buffer(&*buffer, 0, &meta)?); 2];
    for _ in 0..3 {
        let output = ViewMut::buffer(&*buffer, 0, &meta)?;
        stream.submit(&mut [Command::new(Op::Add, Attrs::default(), &inputs, output)?])?;
    }
    let mut byte = [0];
    assert!(
        stream.read(&*buffer, 0, &mut byte).is_err() && stream.event().is_err() && stream.start_recording().is_err()
    );
    let recording = stream.finish_recording()?;
    assert!(stream.finish_recording().is_err());
    let bytes = |values: [f32; 2]| -> Vec<u8> { values.into_iter().flat_map(f32::to_ne_bytes).collect() };
    assert_eq!(download(device, &*buffer)?, bytes([1.0, -3.0]), "recording runs nothing");
    for _ in 0..4 {
        stream.replay(&*recording)?;
    }
    stream.synchronize()?;
    assert_eq!(download(device, &*buffer)?, bytes([4096.0, -12288.0]));
    let mut other = device.clone().stream_with(Priority::High)?;
    other.replay(&*recording)?;
    drop(recording);
    other.synchronize()?;
    assert_eq!(download(device, &*buffer)?, bytes([32768.0, -98304.0]));
    Ok(())
}

fn commands(device: &Arc<dyn Device>) -> Result<()> {
    let mut stream = device.clone().stream()?;
    let x: Vec<f32> = (0..35).map(|i| (i as f32 - 17.0) * 0.37).collect();
    let w: Vec<f32> = (0..21).map(|i| 1.0 / (i as f32 + 0.5)).collect();
    one(device, &mut *stream, Op::Matmul, &[(&x, &[5, 7]), (&w, &[7, 3])])?;
    one(device, &mut *stream, Op::Softmax, &[(&x, &[5, 7])])?;
    one(device, &mut *stream, Op::Sum, &[(&x, &[35])])?;
    one(device, &mut *stream, Op::Add, &[(&x, &[5, 7]), (&w[..7], &[7])])?;
    one(device, &mut *stream, Op::Tanh, &[(&x, &[35])])?;
    one(device, &mut *stream, Op::Transpose, &[(&x, &[5, 7])])?;
    one(device, &mut *stream, Op::Attention, &[(&x, &[5, 7]), (&x, &[5, 7]), (&x, &[5, 7])])
}

fn order(device: &Arc<dyn Device>) -> Result<()> {
    // x ← x + x, ten times in one submission, gives 2¹⁰ only if the commands run in order.
    let buffer = upload(device, &[1.0, -3.0])?;
    let meta = vector(2)?;
    let view = View::buffer(&*buffer, 0, &meta)?;
    let inputs = [Some(view), Some(view)];
    let mut commands = Vec::new();
    for _ in 0..10 {
        commands.push(Command::new(Op::Add, Attrs::default(), &inputs, ViewMut::buffer(&*buffer, 0, &meta)?)?);
    }
    let mut stream = device.clone().stream()?;
    stream.submit(&mut commands)?;
    stream.synchronize()?;
    let expected: Vec<u8> = [1024.0f32, -3072.0].into_iter().flat_map(f32::to_ne_bytes).collect();
    assert_eq!(download(device, &*buffer)?, expected);
    Ok(())
}

fn failure(device: &Arc<dyn Device>) -> Result<()> {
    let table = upload(device, &[1.0, 2.0])?;
    let ids = upload(device, &[f32::from_bits(0), f32::from_bits(7)])?;
    let result = upload(device, &[5.0, 5.0])?;
    let (two, ids_meta) = (vector(2)?, Meta::new(DType::U32, Shape::new(&[2])?));
    let inputs = Inputs::from_iter([Some(View::buffer(&*table, 0, &two)?), Some(View::buffer(&*ids, 0, &ids_meta)?)]);
    let output = ViewMut::buffer(&*result, 0, &two)?;
    let command = Command::new(Op::Embedding, Attrs::default(), &inputs, output)?;
    let mut stream = device.clone().stream()?;
    let outcome = stream.submit(&mut [command]).and_then(|()| stream.synchronize());
    assert_eq!(outcome.err().map(|error| error.status()), Some(Status::InvalidArgument));
    let untouched: Vec<u8> = [5.0f32, 5.0].into_iter().flat_map(f32::to_ne_bytes).collect();
    assert_eq!(download(device, &*result)?, untouched);
    Ok(())
}

fn churn(device: &Arc<dyn Device>) -> Result<()> {
    for round in 0..200 {
        let held: Vec<_> = (0..20).map(|i| device.allocate(1 + i * round * 7)).collect::<Result<_>>()?;
        assert_eq!(held.len(), 20);
    }
    Ok(())
}

fn from_threads(device: Arc<dyn Device>) {
    let x: Vec<f32> = (0..64 * 64).map(|i| (i % 97) as f32 * 0.01).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let outcome = device.clone().stream().and_then(|mut stream| {
                    (0..10)
                        .try_for_each(|_| one(&device, &mut *stream, Op::Matmul, &[(&x, &[64, 64]), (&x, &[64, 64])]))
                });
                outcome.expect("work from several threads");
            });
        }
    });
}
