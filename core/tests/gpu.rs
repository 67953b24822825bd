//! Buffers, users' kernels, streams and events, on the machine's first GPU (also a software one), through Vulkan or the backend
//! in `ADEAD_TEST_BACKEND`. Without a GPU every test says so and passes, unless the variable is set.

mod backend;

use adead_core::config::Config;
use adead_core::devices::gpus;
use adead_core::gpu::{Buffer, Kernel, Number, Operand, PipelineOptions};
use adead_core::{Attrs, Command, Context, DType, Gpu, Interrupt, Meta, Op, Shape, Status, Tensor, View, ViewMut};
use backend::{backend, skip};
use std::path::Path;
use std::sync::Arc;

fn gpu() -> Option<Gpu> {
    match Gpu::open(&backend()) {
        Ok(gpu) => Some(gpu),
        Err(error) if error.status() == Status::BackendUnavailable => {
            skip(&backend(), &error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// An example kernel, in the repository, or else in the current folder, as in a bundle of `ci/gpu-pack`.
fn example(name: &str) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/kernels");
    if folder.exists() { folder.join(name) } else { Path::new("examples/kernels").join(name) }
}

/// c = a + b, in the language that the device accepts.
fn vecadd(gpu: &Gpu) -> Kernel {
    let kernel = match &*backend() {
        "cuda" => gpu.load_ptx(example("vecadd.ptx")),
        _ => gpu.load_spirv(example("vecadd.spv")),
    };
    kernel.unwrap()
}

fn status<T>(result: adead_core::Result<T>) -> Option<Status> {
    result.err().map(|error| error.status())
}

#[test]
fn vectors_are_added() {
    let Some(gpu) = gpu() else { return };
    let kernel = vecadd(&gpu);
    let n = 1000;
    let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let b: Vec<f32> = (0..n).map(|i| (i * i) as f32).collect();
    let (x, y, z) = (gpu.buffer(&a).unwrap(), gpu.buffer(&b).unwrap(), gpu.buffer_zeroed(4 * n).unwrap());
    let groups = (n as u32).div_ceil(kernel.workgroup()[0]);
    let push = kernel.pack(&[Number::Integer(n as i128)]).unwrap();
    assert_eq!(push, (n as u32).to_ne_bytes());
    for wrong in [Number::Float(0.5), Number::Integer(-1 << 32)] {
        assert_eq!(status(kernel.pack(&[wrong])), Some(Status::InvalidArgument), "{wrong}");
    }
    gpu.dispatch_with(&kernel, &[&x, &y, &z], &push, [groups, 1, 1]).unwrap();
    gpu.wait().unwrap();
    let sum: Vec<f32> = z.to_vec().unwrap();
    assert!(sum.iter().enumerate().all(|(i, &sum)| sum == a[i] + b[i]));

    // Calls that don't fit are refused, and change nothing.
    let small = gpu.buffer_zeroed(4).unwrap();
    let other = Gpu::open(&backend()).unwrap().buffer_zeroed(4 * n).unwrap();
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
    let spirv = std::fs::read(example("matmul.spv")).unwrap();
    let ptx = std::fs::read(example("vecadd.ptx")).unwrap();
    let options = PipelineOptions::default;
    if backend() == "cuda" {
        assert_eq!(status(gpu.load_ptx("no such file.ptx")), Some(Status::Io));
        for none in [&[][..], b"\x7fELF", b"int main() {}", &[0xff; 100], &0xba55_ed50_u32.to_le_bytes()] {
            assert_eq!(status(gpu.load_ptx_bytes(none)), Some(Status::InvalidKernel), "{none:?}");
            assert_eq!(status(gpu.load_cubin_bytes(none)), Some(Status::InvalidKernel), "{none:?}");
        }
        let end = ptx.iter().rposition(|&byte| byte == b'}').unwrap();
        for cut in (0..end).step_by(44) {
            assert_eq!(status(gpu.load_ptx_bytes(&ptx[..cut])), Some(Status::InvalidKernel), "cut to {cut} bytes");
        }
        let kernel = gpu.load_ptx_bytes(&ptx).unwrap();
        assert_eq!((kernel.name(), kernel.push_bytes(), kernel.workgroup()), ("vecadd", 4, [256, 1, 1]));
        let small = gpu.create_pipeline(&kernel, &options().entry("vecadd").workgroup([64, 1, 1])).unwrap();
        assert_eq!(small.workgroup(), [64, 1, 1]);
        assert_eq!(status(gpu.load_ptx_with(&ptx, &options().workgroup([512, 1, 1]))), Some(Status::Unsupported));
        assert_eq!(status(gpu.create_pipeline(&kernel, &options().entry("nobody"))), Some(Status::InvalidArgument));
        assert_eq!(status(gpu.create_pipeline(&kernel, &options().constant(0, 1))), Some(Status::InvalidArgument));
    } else {
        assert_eq!(status(gpu.load_spirv("no such file.spv")), Some(Status::Io));
        assert_eq!(status(gpu.load_spirv_bytes(&[])), Some(Status::InvalidKernel));
        assert_eq!(status(gpu.load_spirv_bytes(&ptx)), Some(Status::InvalidKernel));
        for cut in (0..spirv.len()).step_by(44) {
            assert_eq!(status(gpu.load_spirv_bytes(&spirv[..cut])), Some(Status::InvalidKernel), "cut to {cut} bytes");
        }
        let kernel = gpu.load_spirv_bytes(&spirv).unwrap();
        assert_eq!(status(gpu.create_pipeline(&kernel, &options().entry("nobody"))), Some(Status::InvalidArgument));
        assert_eq!(status(gpu.create_pipeline(&kernel, &options().constant(77, 1))), Some(Status::InvalidArgument));
        assert_eq!(gpu.create_pipeline(&kernel, &options().entry("main")).unwrap().name(), "main");
    }
    // The processor has buffers but no kernels.
    let cpu = Context::open("cpu").unwrap();
    assert_eq!(cpu.buffer(&[1.0f32, 2.0]).unwrap().to_vec::<f32>().unwrap(), [1.0, 2.0]);
    for error in [cpu.load_spirv_bytes(&spirv).unwrap_err(), cpu.load_ptx_bytes(&ptx).unwrap_err()] {
        assert_eq!(error.status(), Status::Unsupported);
        assert!(error.message().contains("vulkan"), "{error}");
    }
}

/// A module for another backend is refused. The error names the device to open, or says that the backend does not see this GPU.
#[test]
fn modules_of_the_other_backend() {
    let Some(gpu) = gpu() else { return };
    let spirv = std::fs::read(example("matmul.spv")).unwrap();
    let ptx = std::fs::read(example("vecadd.ptx")).unwrap();
    let other = if backend() == "cuda" { "vulkan" } else { "cuda" };
    let errors = match other {
        "vulkan" => vec![
            gpu.load_spirv_bytes(&spirv).unwrap_err(),
            gpu.load_spirv_bytes(&ptx).unwrap_err(),
            gpu.load_ptx_bytes(&spirv).unwrap_err(),
        ],
        _ => vec![
            gpu.load_ptx_bytes(&ptx).unwrap_err(),
            gpu.load_ptx_bytes(&spirv).unwrap_err(),
            gpu.load_cubin_bytes(b"\x7fELF").unwrap_err(),
        ],
    };
    let uuid = gpu.device_info().uuid;
    let same =
        gpus(&Config::default()).unwrap().into_iter().find(|info| info.uuid == uuid && info.id.starts_with(other));
    let named = match same {
        Some(info) => format!("open '{}'", info.id),
        None => format!("{other} does not see this GPU"),
    };
    for error in errors {
        assert_eq!(error.status(), Status::Unsupported, "{error}");
        assert!(error.message().contains(&named), "{error}");
    }
}

#[test]
fn streams_are_ordered_by_events() {
    let Some(gpu) = gpu() else { return };
    let kernel = vecadd(&gpu);
    let n = 4096usize;
    let push: Vec<u8> = if kernel.push_bytes() > 0 { (n as u32).to_ne_bytes().to_vec() } else { Vec::new() };
    let groups = [(n as u32).div_ceil(kernel.workgroup()[0]), 1, 1];
    let (ones, zeros) = (vec![1.0f32; n], vec![0.0f32; n]);
    let (one, sum) = (gpu.buffer(&ones).unwrap(), gpu.buffer(&zeros).unwrap());
    let (mut a, mut b) = (gpu.stream().unwrap(), gpu.stream().unwrap());
    // sum ← sum + 1, alternating between two streams. The kernel reads and writes one element in one thread.
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

    // The same kernel, recorded once and replayed.
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
    let kernel = vecadd(&gpu);
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

/// Operands of an operation with an empty result are released like any others, although there is no work to wait for.
#[test]
fn work_that_is_none_keeps_nothing() {
    let Some(gpu) = gpu() else { return };
    let metas = [[0, 3], [1, 2]].map(|dims| Meta::new(DType::F32, Shape::new(&dims).unwrap()));
    let mut stream = gpu.stream().unwrap();
    let mut relu = |of: &[&Meta]| {
        for meta in of {
            let (a, b) = (gpu.buffer_zeroed(16).unwrap(), gpu.buffer_zeroed(16).unwrap());
            let [a, b] = [&a, &b].map(|buffer| Operand { buffer, offset: 0, meta });
            stream.run(Op::Relu, &Attrs::default(), &[Some(a)], b).unwrap();
        }
        stream.synchronize().unwrap();
        assert_eq!(gpu.memory().unwrap().allocations, 0, "{:?}", gpu.memory());
    };
    let [none, some] = &metas;
    relu(&[none]);
    relu(&[some, none]);
    relu(&[none]);
}

/// Runs `work` in a host that rounds upwards, flushes subnormals, and traps every floating-point exception.
#[cfg(target_arch = "x86_64")]
fn in_a_mode_of_its_own<R>(work: impl FnOnce() -> R) -> R {
    use std::arch::asm;
    let (mode, usual) = (0xc040u32, 0x1f80u32);
    // SAFETY: MXCSR's reserved bits are clear, and nothing is computed here until the mode is restored.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const mode) };
    let result = work();
    let mut after = 0u32;
    // SAFETY: as above.
    unsafe { asm!("stmxcsr [{}]", "ldmxcsr [{}]", in(reg) &raw mut after, in(reg) &raw const usual) };
    // The low bits are the exception flags.
    assert_eq!(after & !0x3f, mode, "the mode was left alone");
    result
}

#[cfg(target_arch = "x86_64")]
#[test]
fn what_the_host_does_with_floats_is_its_own_business() {
    let Some(gpu) = gpu() else { return };
    let (rows, n) = (37, 41);
    let values: Vec<f32> = (0..rows * n).map(|i| (i as f32 - 700.0) * 1e-3).collect();
    let x = adead_core::Tensor::new(&values, &[rows, n]).unwrap();
    let auto = Context::auto().unwrap();
    let work = |gpu: &Gpu| -> adead_core::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // One context chooses among its devices, the other has one.
        for context in [&auto, &**gpu] {
            let sum = context.softmax(&context.add(&x, &x)?, -1)?;
            bytes.extend_from_slice(sum.bytes());
        }
        let kernel = vecadd(gpu);
        let mut stream = gpu.stream()?;
        let (a, b) = (gpu.buffer(&values)?, gpu.buffer_zeroed(x.bytes().len())?);
        stream.upload(&a, 0, x.bytes())?;
        stream.copy((&a, 0), (&b, 0), x.bytes().len())?;
        let groups = (values.len() as u32).div_ceil(kernel.workgroup()[0]);
        stream.dispatch(
            &kernel,
            &[&a, &b, &b],
            &(values.len() as u32).to_ne_bytes()[..kernel.push_bytes()],
            [groups, 1, 1],
        )?;
        bytes.extend(stream.download(&b, 0, x.bytes().len())?.to_bytes()?);
        stream.synchronize()?;
        Ok(bytes)
    };
    let expected = work(&gpu).unwrap();
    // Everything that can be opened again is opened in that mode, because a driver does some work only on first use.
    let (again, explained) = in_a_mode_of_its_own(|| {
        let gpu = Gpu::open(&backend());
        let explained = auto.explain(Op::Add, &Attrs::default(), &[Some(&x), Some(&x)]).map(|_| ());
        (gpu.and_then(|gpu| work(&gpu)), explained)
    });
    explained.unwrap();
    assert!(again.unwrap() == expected);
}

#[test]
fn buffers_over_memory_of_others() {
    let Some(gpu) = gpu() else { return };
    let owned = gpu.buffer(&[1.0f32, -2.0, 3.0, -4.0, 5.0]).unwrap();
    let memory = owned.memory().unwrap();
    let (id, owner) = (gpu.device_info().id.clone(), Arc::new(()));
    let over = |device: &str, address: u64, bytes: usize| {
        let kept = Box::new((memory.clone(), owner.clone()));
        // SAFETY: the memory is a buffer of that device, and the owner keeps it. Only one place at a time uses it. Ranges beyond
        // it are refused before they are used.
        unsafe { gpu.buffer_over(device, address, bytes, kept) }
    };
    let Some(address) = memory.device_address() else {
        assert_eq!(status(over(&id, 4096, 20)), Some(Status::Unsupported), "Vulkan's addresses are its own");
        assert_eq!(Arc::strong_count(&owner), 1, "what is refused is given back");
        return;
    };
    gpu.wait_for_others().unwrap();
    assert_eq!(status(over("cuda:99", address, 20)), Some(Status::InvalidArgument), "another device's");
    assert_eq!(status(over(&id, address + 4, 16)), Some(Status::InvalidArgument), "not aligned");
    assert_eq!(Arc::strong_count(&owner), 1, "what is refused is given back");

    let shared = over(&id, address, 20).unwrap();
    assert_eq!(shared.to_vec::<f32>().unwrap(), [1.0, -2.0, 3.0, -4.0, 5.0]);
    shared.write(4, &[7.0f32]).unwrap();
    assert_eq!(owned.to_vec::<f32>().unwrap()[1], 7.0);
    let result = gpu.buffer_zeroed(20).unwrap();
    let meta = Meta::new(DType::F32, Shape::new(&[5]).unwrap());
    let mut stream = gpu.stream().unwrap();
    let operand = |buffer| Operand { buffer, offset: 0, meta: &meta };
    stream.run(Op::Neg, &Attrs::default(), &[Some(operand(&shared))], operand(&result)).unwrap();
    // Enqueued work keeps the memory.
    drop(shared);
    stream.synchronize().unwrap();
    assert_eq!(result.to_vec::<f32>().unwrap(), [-1.0, -7.0, -3.0, 4.0, -5.0]);
    drop(stream);
    assert_eq!(Arc::strong_count(&owner), 1, "nothing uses it any more");

    // Of the 18 bytes, the last word is only partly theirs.
    let odd = over(&id, address, 18).unwrap();
    let mut stream = gpu.stream().unwrap();
    assert_eq!(status(stream.clear(&odd, 0, 18)), Some(Status::InvalidArgument));
    stream.clear(&odd, 0, 16).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(owned.to_vec::<f32>().unwrap(), [0.0, 0.0, 0.0, 0.0, 5.0]);
}

#[test]
fn buffers_become_tensors() {
    let Some(gpu) = gpu() else { return };
    let buffer = gpu.buffer(&[1i32, 2, 3, 4]).unwrap();
    let meta = Meta::new(DType::I32, Shape::new(&[1, 3]).unwrap());
    let tensor = buffer.to_tensor(4, &meta).unwrap();
    assert_eq!((tensor.dims(), tensor.to_vec::<i32>().unwrap()), (&[1, 3][..], vec![2, 3, 4]));
    assert_eq!(status(buffer.to_tensor(8, &meta)), Some(Status::InvalidArgument));
}

/// The example's sizes follow from its buffers: any product is right, and sizes that don't fit are detected.
#[test]
fn the_example_product_takes_its_sizes_from_its_buffers() {
    let Some(gpu) = gpu() else { return };
    if backend() != "vulkan" {
        return;
    }
    let kernel = gpu.load_spirv(example("matmul.spv")).unwrap();
    for [m, n, k] in [[64, 64, 64], [512, 512, 512], [1, 1, 1], [7, 33, 129], [300, 1, 5], [1, 100, 3], [17, 16, 15]] {
        let a: Vec<f32> = (0..m * k).map(|i| (i % 7) as f32 - 3.0).collect();
        let b: Vec<f32> = (0..k * n).map(|i| (i % 5) as f32 - 2.0).collect();
        let (x, y, z) = (gpu.buffer(&a).unwrap(), gpu.buffer(&b).unwrap(), gpu.buffer_zeroed(4 * m * n).unwrap());
        let groups = [n.div_ceil(16) as u32, m.div_ceil(16) as u32, 1];
        gpu.dispatch(&kernel, &[&x, &y, &z], groups).unwrap();
        let product: Vec<f32> = z.to_vec().unwrap();
        // Small integers are exact in any order.
        let expected = |i: usize| (0..k).map(|j| a[i / n * k + j] * b[j * n + i % n]).sum::<f32>();
        assert!(product.iter().enumerate().all(|(i, &value)| value == expected(i)), "{m} {n} {k}");
    }
    let (small, large) = (gpu.buffer_zeroed(4 * 15).unwrap(), gpu.buffer_zeroed(4 * 64).unwrap());
    gpu.dispatch(&kernel, &[&large, &large, &small], [1, 1, 1]).unwrap();
    assert!(small.to_vec::<f32>().unwrap().iter().all(|value| value.is_nan()));
    // Constants select a part of larger buffers, and can't reach beyond them.
    let sized = |m, n, k| PipelineOptions::default().constant(0, m).constant(1, n).constant(2, k);
    let (ones, out) = (gpu.buffer(&[1.0f32; 64]).unwrap(), gpu.buffer_zeroed(4 * 64).unwrap());
    let part = gpu.create_pipeline(&kernel, &sized(2, 2, 3)).unwrap();
    gpu.dispatch(&part, &[&ones, &ones, &out], [1, 1, 1]).unwrap();
    assert_eq!(out.to_vec::<f32>().unwrap()[..6], [3.0, 3.0, 3.0, 3.0, 0.0, 0.0]);
    let beyond = gpu.create_pipeline(&kernel, &sized(9, 8, 8)).unwrap();
    gpu.dispatch(&beyond, &[&ones, &ones, &out], [1, 1, 1]).unwrap();
    assert!(out.to_vec::<f32>().unwrap().iter().all(|value| value.is_nan()));
}

/// The examples stay within their buffers, whatever number of elements the user passes.
#[test]
fn the_examples_stay_within_their_buffers() {
    let Some(gpu) = gpu() else { return };
    if backend() != "vulkan" {
        return;
    }
    let push = 100_000_000u32.to_ne_bytes();
    let ones = gpu.buffer(&[1.0f32; 1000]).unwrap();
    let add = gpu.load_spirv(example("vecadd.spv")).unwrap();
    let sum = gpu.buffer_zeroed(4000).unwrap();
    gpu.dispatch_with(&add, &[&ones, &ones, &sum], &push, [50_000, 1, 1]).unwrap();
    assert_eq!(sum.to_vec::<f32>().unwrap(), [2.0; 1000]);
    let reduce = gpu.load_spirv(example("reduce.spv")).unwrap();
    let sums = gpu.buffer_zeroed(8).unwrap();
    gpu.dispatch_with(&reduce, &[&ones, &sums], &push, [50_000, 1, 1]).unwrap();
    assert_eq!(sums.to_vec::<f32>().unwrap(), [512.0, 488.0]);
}

/// If the work ends first, the read returns the values; both outcomes are right.
#[test]
fn reading_ends_early_and_gives_everything_afterwards() {
    let Some(gpu) = gpu() else { return };
    let (n, stop) = (256, Interrupt::new());
    let meta = Meta::new(DType::F32, Shape::new(&[n, n]).unwrap());
    let (x, y) = (gpu.buffer(&vec![1f32; n * n]).unwrap(), gpu.buffer_zeroed(4 * n * n).unwrap());
    let (from, to) = (x.memory().unwrap(), y.memory().unwrap());
    let inputs = [Some(View::buffer(&*from, 0, &meta).unwrap()); 2];
    for _ in 0..12 {
        let output = ViewMut::buffer(&*to, 0, &meta).unwrap();
        gpu.execute(&mut Command::new(Op::Matmul, Attrs::default(), &inputs, output).unwrap()).unwrap();
    }
    let square = Tensor::new(&vec![1f32; n * n], &[n, n]).unwrap();
    let product = gpu.matmul(&square, &square).unwrap();
    let right = vec![n as f32; n * n];
    stop.set(true);
    for read in [&|| y.to_vec::<f32>(), &|| product.to_vec()] as [&dyn Fn() -> adead_core::Result<Vec<f32>>; 2] {
        match stop.run(read) {
            Ok(values) => assert_eq!(values, right),
            Err(error) => assert_eq!(error.status(), Status::NotReady, "{error}"),
        }
        assert_eq!(read().unwrap(), right);
    }
}
