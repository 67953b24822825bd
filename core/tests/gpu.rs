//! Buffers, users' kernels, streams and events, on the machine's first GPU (a software one too). Without a GPU every test says so
//! and passes.

use adead_core::gpu::{Buffer, Operand, PipelineOptions};
use adead_core::{Attrs, Context, DType, Gpu, Meta, Op, Shape, Status};
use std::path::Path;

fn gpu() -> Option<Gpu> {
    match Gpu::new() {
        Ok(gpu) => Some(gpu),
        Err(error) if error.status() == Status::BackendUnavailable => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// An example kernel: where the repository is, or else in the folder that this runs in, as in a bundle of `ci/gpu-pack`.
fn example(name: &str) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/kernels");
    if folder.exists() { folder.join(name) } else { Path::new("examples/kernels").join(name) }
}

fn status<T>(result: adead_core::Result<T>) -> Option<Status> {
    result.err().map(|error| error.status())
}

#[test]
fn vectors_are_added() {
    let Some(gpu) = gpu() else { return };
    let kernel = gpu.load_spirv(example("vecadd.spv")).unwrap();
    let n = 1000;
    let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let b: Vec<f32> = (0..n).map(|i| (i * i) as f32).collect();
    let (x, y, z) = (gpu.buffer(&a).unwrap(), gpu.buffer(&b).unwrap(), gpu.buffer_zeroed(4 * n).unwrap());
    let groups = (n as u32).div_ceil(kernel.workgroup()[0]);
    let push: Vec<u8> = if kernel.push_bytes() > 0 { (n as u32).to_ne_bytes().to_vec() } else { Vec::new() };
    gpu.dispatch_with(&kernel, &[&x, &y, &z], &push, [groups, 1, 1]).unwrap();
    gpu.wait().unwrap();
    let sum: Vec<f32> = z.to_vec().unwrap();
    assert!(sum.iter().enumerate().all(|(i, &sum)| sum == a[i] + b[i]));

    // Everything that does not fit is refused, and changes nothing.
    let small = gpu.buffer_zeroed(4).unwrap();
    let other = Gpu::new().unwrap().buffer_zeroed(4 * n).unwrap();
    let call = |buffers: &[&Buffer], push: &[u8], groups| status(gpu.dispatch_with(&kernel, buffers, push, groups));
    assert_eq!(call(&[&x, &y], &push, [groups, 1, 1]), Some(Status::InvalidArgument), "a buffer is missing");
    assert_eq!(call(&[&x, &y, &z, &small], &push, [groups, 1, 1]), Some(Status::InvalidArgument), "one too many");
    assert_eq!(call(&[&x, &y, &other], &push, [groups, 1, 1]), Some(Status::InvalidArgument), "another context's");
    assert_eq!(call(&[&x, &y, &z], &[1, 2, 3], [groups, 1, 1]), Some(Status::InvalidArgument), "push constants");
    for none in [[0, 1, 1], [1, 0, 1], [1, 1, 0], [1, u32::MAX, 1]] {
        assert_eq!(call(&[&x, &y, &z], &push, none), Some(Status::InvalidArgument), "{none:?}");
    }
    z.free().unwrap();
    assert_eq!(call(&[&x, &y, &z], &push, [groups, 1, 1]), Some(Status::InvalidArgument), "freed");
    assert_eq!(status(z.free()), Some(Status::InvalidArgument), "freed twice");
    assert_eq!(status(z.to_vec::<f32>()), Some(Status::InvalidArgument), "read after free");
    assert_eq!(status(z.write(0, &[1.0f32])), Some(Status::InvalidArgument), "written after free");
}

#[test]
fn kernels_that_are_none_are_refused() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(status(gpu.load_spirv("no such file.spv")), Some(Status::Io));
    assert_eq!(status(gpu.load_spirv_bytes(&[])), Some(Status::InvalidKernel));
    let good = std::fs::read(example("matmul.spv")).unwrap();
    for cut in (0..good.len()).step_by(44) {
        assert_eq!(status(gpu.load_spirv_bytes(&good[..cut])), Some(Status::InvalidKernel), "cut to {cut} bytes");
    }
    let kernel = gpu.load_spirv_bytes(&good).unwrap();
    let options = |entry: Option<&str>| PipelineOptions { entry: entry.map(Into::into), ..PipelineOptions::default() };
    assert_eq!(status(gpu.create_pipeline(&kernel, &options(Some("nobody")))), Some(Status::InvalidArgument));
    assert_eq!(status(gpu.create_pipeline(&kernel, &options(None).constant(77, 1))), Some(Status::InvalidArgument));
    assert_eq!(gpu.create_pipeline(&kernel, &options(Some("main"))).unwrap().name(), "main");
    // On the processor there are buffers and no kernels.
    let cpu = Context::open("cpu").unwrap();
    assert_eq!(cpu.buffer(&[1.0f32, 2.0]).unwrap().to_vec::<f32>().unwrap(), [1.0, 2.0]);
    let error = cpu.load_spirv_bytes(&good).unwrap_err();
    assert_eq!(error.status(), Status::Unsupported);
    assert!(error.message().contains("vulkan"), "{error}");
}

#[test]
fn streams_are_ordered_by_events() {
    let Some(gpu) = gpu() else { return };
    let kernel = gpu.load_spirv(example("vecadd.spv")).unwrap();
    let n = 4096usize;
    let push: Vec<u8> = if kernel.push_bytes() > 0 { (n as u32).to_ne_bytes().to_vec() } else { Vec::new() };
    let groups = [(n as u32).div_ceil(kernel.workgroup()[0]), 1, 1];
    let (ones, zeros) = (vec![1.0f32; n], vec![0.0f32; n]);
    let (one, sum) = (gpu.buffer(&ones).unwrap(), gpu.buffer(&zeros).unwrap());
    let (mut a, mut b) = (gpu.stream().unwrap(), gpu.stream().unwrap());
    // sum ← sum + 1, by turns on two streams. The kernel reads and writes one element in one thread.
    for _ in 0..50 {
        for turn in 0..2 {
            let (stream, other) = if turn == 0 { (&mut a, &mut b) } else { (&mut b, &mut a) };
            stream.dispatch(&kernel, &[&sum, &one, &sum], &push, groups).unwrap();
            let event = stream.event().unwrap();
            other.wait_for(&event).unwrap();
        }
    }
    let last = a.event().unwrap();
    last.wait().unwrap();
    assert!(last.is_done().unwrap() && b.query().unwrap());
    let mut bytes = vec![0; 4 * n];
    a.download(&sum, 0, 4 * n).unwrap().take(&mut bytes).unwrap();
    assert!(bytes.chunks_exact(4).all(|word| f32::from_ne_bytes(word.try_into().unwrap()) == 100.0));

    // The same, recorded once and replayed.
    let recording = a
        .record(|stream| (0..10).try_for_each(|_| stream.dispatch(&kernel, &[&sum, &one, &sum], &push, groups)))
        .unwrap();
    let start = a.timestamp().unwrap();
    (0..5).for_each(|_| a.replay(&recording).unwrap());
    let end = a.timestamp().unwrap();
    a.synchronize().unwrap();
    assert!(end.since(&start).unwrap() > 0);
    a.download(&sum, 0, 4 * n).unwrap().take(&mut bytes).unwrap();
    assert!(bytes.chunks_exact(4).all(|word| f32::from_ne_bytes(word.try_into().unwrap()) == 150.0));
}

#[test]
fn operations_run_on_buffers() {
    let Some(gpu) = gpu() else { return };
    let (x, w) = (gpu.buffer(&[1.0f32, 2.0, 3.0, 4.0]).unwrap(), gpu.buffer(&[0.5f32, -1.0, 2.0, 0.25]).unwrap());
    let y = gpu.buffer_zeroed(16).unwrap();
    let meta = Meta::new(DType::F32, Shape::new(&[2, 2]).unwrap());
    let operand = |buffer| Operand { buffer, offset: 0, meta: &meta };
    let mut stream = gpu.stream().unwrap();
    let inputs = [Some(operand(&x)), Some(operand(&w))];
    stream.run(Op::Matmul, &Attrs::default(), &inputs, operand(&y)).unwrap();
    stream.run(Op::Relu, &Attrs::default(), &[Some(operand(&y))], operand(&y)).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [4.5, 0.0, 9.5, 0.0]);
    let wrong = Meta::new(DType::F32, Shape::new(&[2, 3]).unwrap());
    let outside = Operand { buffer: &y, offset: 0, meta: &wrong };
    assert_eq!(
        status(stream.run(Op::Relu, &Attrs::default(), &[Some(outside)], operand(&y))),
        Some(Status::InvalidArgument)
    );
}

#[test]
fn thousands_of_buffers_and_many_threads() {
    let Some(gpu) = gpu() else { return };
    let kernel = gpu.load_spirv(example("vecadd.spv")).unwrap();
    let push: Vec<u8> = if kernel.push_bytes() > 0 { 64u32.to_ne_bytes().to_vec() } else { Vec::new() };
    let groups = [64u32.div_ceil(kernel.workgroup()[0]), 1, 1];
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (gpu, kernel, push) = (&gpu, &kernel, &push);
            scope.spawn(move || {
                let mut stream = gpu.stream().unwrap();
                for round in 0..250 {
                    let value = (thread * 1000 + round) as f32;
                    let x = gpu.buffer(&[value; 64]).unwrap();
                    let y = gpu.buffer_zeroed(256).unwrap();
                    if round % 2 == 0 {
                        stream.dispatch(kernel, &[&x, &x, &y], push, groups).unwrap();
                        stream.synchronize().unwrap();
                    } else {
                        gpu.dispatch_with(kernel, &[&x, &x, &y], push, groups).unwrap();
                    }
                    assert_eq!(y.to_vec::<f32>().unwrap(), [2.0 * value; 64]);
                }
            });
        }
    });
    gpu.wait().unwrap();
    assert_eq!(gpu.memory().unwrap().allocations, 0, "{:?}", gpu.memory());
}
