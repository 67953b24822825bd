//! The conformance test suite of the device layer: what every [`Device`] must do, whatever it is.
//!
//! A backend's tests open the device and call [`run`]. A new trait method gets its check here, once for all devices.

use super::{Device, Stream};
use crate::command::{Command, Inputs, Meta, View, ViewMut};
use crate::dtype::DType;
use crate::error::{Result, Status};
use crate::ops::{Attrs, Op, reference};
use crate::shape::Shape;
use std::sync::Arc;

/// Runs every check on a device; panics with the check's name where one fails.
pub fn run(device: Arc<dyn Device>) {
    type Check = fn(&dyn Device) -> Result<()>;
    let checks: [(&str, Check); 8] = [
        ("info", info),
        ("buffers are zeroed and sized", buffers),
        ("views are bounded", views),
        ("host and buffer views of one memory overlap", overlap),
        ("commands on buffers", commands),
        ("commands run in order", order),
        ("a failed submission writes nothing", failure),
        ("many buffers come and go", churn),
    ];
    for (name, check) in checks {
        if let Err(error) = check(&*device) {
            panic!("{}: {name}: {error}", device.info().id);
        }
    }
    from_threads(device);
}

fn info(device: &dyn Device) -> Result<()> {
    let info = device.info();
    assert!(!info.id.is_empty() && !info.name.is_empty() && !info.arch.is_empty() && info.units > 0, "{info:?}");
    Ok(())
}

fn buffers(device: &dyn Device) -> Result<()> {
    for bytes in [0, 1, 4, 4096, 1_000_003] {
        let buffer = device.allocate(bytes)?;
        assert_eq!(buffer.size(), bytes);
        assert!(!buffer.device_name().is_empty());
        if let Some(pointer) = buffer.host_pointer() {
            // SAFETY: the buffer has that many bytes and nobody writes it.
            let contents = unsafe { std::slice::from_raw_parts(pointer.as_ptr(), bytes) };
            assert!(contents.iter().all(|&byte| byte == 0));
        }
    }
    let refused = device.allocate(usize::MAX / 2).err().map(|error| error.status());
    assert_eq!(refused, Some(Status::OutOfMemory));
    Ok(())
}

fn vector(n: usize) -> Result<Meta> {
    Ok(Meta::new(DType::F32, Shape::new(&[n])?))
}

fn views(device: &dyn Device) -> Result<()> {
    let buffer = device.allocate(64)?;
    assert!(View::buffer(&*buffer, 0, &vector(16)?).is_ok());
    assert!(View::buffer(&*buffer, 60, &vector(1)?).is_ok());
    for (offset, n) in [(0, 17), (64, 1), (usize::MAX, 1), (2, 1)] {
        assert!(View::buffer(&*buffer, offset, &vector(n)?).is_err(), "{n} values at {offset}");
        assert!(ViewMut::buffer(&*buffer, offset, &vector(n)?).is_err(), "{n} values at {offset}");
    }
    Ok(())
}

/// Memory that the host can address is one memory, whether an operand names it as a buffer or by its address.
fn overlap(device: &dyn Device) -> Result<()> {
    let buffer = device.allocate(64)?;
    let Some(pointer) = buffer.host_pointer() else { return Ok(()) };
    let four = vector(4)?;
    let input = |at: usize| -> Result<[Option<View<'_>>; 1]> {
        // SAFETY: the four values lie inside the buffer, which outlives the view; nothing is executed.
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

/// Runs one operation from host values on buffers of the device and compares it with its reference.
fn one(device: &dyn Device, stream: &mut dyn Stream, op: Op, operands: &[(&[f32], &[usize])]) -> Result<()> {
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
    device.submit(stream, &mut [command])?;
    stream.synchronize()?;
    assert!(stream.is_idle()?);
    assert_eq!(download(&*result), expected, "{op}");
    Ok(())
}

fn upload(device: &dyn Device, values: &[f32]) -> Result<Arc<dyn super::Buffer>> {
    let buffer = device.allocate(size_of_val(values))?;
    if let Some(pointer) = buffer.host_pointer() {
        // SAFETY: the buffer is as long as the values and nobody else has it.
        unsafe { pointer.cast::<f32>().as_ptr().copy_from_nonoverlapping(values.as_ptr(), values.len()) };
    }
    Ok(buffer)
}

fn download(buffer: &dyn super::Buffer) -> Vec<u8> {
    match buffer.host_pointer() {
        // SAFETY: the buffer has that many bytes and its work is done.
        Some(pointer) => unsafe { std::slice::from_raw_parts(pointer.as_ptr(), buffer.size()).to_vec() },
        None => Vec::new(),
    }
}

fn commands(device: &dyn Device) -> Result<()> {
    let mut stream = device.stream()?;
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

fn order(device: &dyn Device) -> Result<()> {
    // x ← x + x, ten times in one submission: 2¹⁰ if they run one after the other.
    let buffer = upload(device, &[1.0, -3.0])?;
    let meta = vector(2)?;
    let view = View::buffer(&*buffer, 0, &meta)?;
    let inputs = [Some(view), Some(view)];
    let mut commands = Vec::new();
    for _ in 0..10 {
        commands.push(Command::new(Op::Add, Attrs::default(), &inputs, ViewMut::buffer(&*buffer, 0, &meta)?)?);
    }
    let mut stream = device.stream()?;
    device.submit(&mut *stream, &mut commands)?;
    stream.synchronize()?;
    let expected: Vec<u8> = [1024.0f32, -3072.0].into_iter().flat_map(f32::to_ne_bytes).collect();
    assert_eq!(download(&*buffer), expected);
    Ok(())
}

fn failure(device: &dyn Device) -> Result<()> {
    let table = upload(device, &[1.0, 2.0])?;
    let ids = upload(device, &[f32::from_bits(0), f32::from_bits(7)])?;
    let result = upload(device, &[5.0, 5.0])?;
    let (two, ids_meta) = (vector(2)?, Meta::new(DType::U32, Shape::new(&[2])?));
    let inputs = Inputs::from_iter([Some(View::buffer(&*table, 0, &two)?), Some(View::buffer(&*ids, 0, &ids_meta)?)]);
    let output = ViewMut::buffer(&*result, 0, &two)?;
    let command = Command::new(Op::Embedding, Attrs::default(), &inputs, output)?;
    let mut stream = device.stream()?;
    let outcome = device.submit(&mut *stream, &mut [command]).and_then(|()| stream.synchronize());
    assert_eq!(outcome.err().map(|error| error.status()), Some(Status::InvalidArgument));
    let untouched: Vec<u8> = [5.0f32, 5.0].into_iter().flat_map(f32::to_ne_bytes).collect();
    assert_eq!(download(&*result), untouched);
    Ok(())
}

fn churn(device: &dyn Device) -> Result<()> {
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
                let outcome = device.stream().and_then(|mut stream| {
                    (0..10)
                        .try_for_each(|_| one(&*device, &mut *stream, Op::Matmul, &[(&x, &[64, 64]), (&x, &[64, 64])]))
                });
                outcome.expect("work from several threads");
            });
        }
    });
}
