//! The first papers: each call that they name does what its name says. Kernels run on this machine's first GPU, through
//! Vulkan or the backend in `ADEAD_TEST_BACKEND`. Without a GPU, tests that need one say so and pass.

#[path = "../../../core/tests/backend/mod.rs"]
mod backend;

use adead::gpu::{Kernel, PipelineOptions};
use adead::layout::{align, coalesce, optimize_matrix, restore_matrix};
use adead::program::{Program, RunOptions};
use adead::{Attrs, Context, DType, Gpu, Op, Status, Tensor, hardware};
use backend::{backend, skip};
use std::path::{Path, PathBuf};

/// Returns the machine's GPU; `None` without one.
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

/// Returns a file of the examples: in the repository, or else in the working folder, as in a bundle of `ci/gpu-pack`.
fn example(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    if folder.exists() { folder.join(name) } else { Path::new("examples").join(name) }
}

/// Loads C = A B in the format that the device takes.
fn matmul(gpu: &Gpu) -> Kernel {
    let kernel = match &*backend() {
        "cuda" => gpu.load_ptx(example("kernels/matmul.ptx")),
        _ => gpu.load_spirv(example("kernels/matmul.spv")),
    };
    kernel.unwrap()
}

fn values(n: usize, step: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * step) % 101) as f32 / 50.0 - 1.0).collect()
}

#[test]
fn a_gpu_without_a_name_is_vulkans_or_else_cudas() {
    let [vulkan, cuda] = ["vulkan", "cuda"].map(|name| Gpu::open(name).ok().map(|gpu| gpu.device_info().id.clone()));
    let found = Gpu::new().map(|gpu| gpu.device_info().id.clone());
    println!("vulkan: {vulkan:?}, cuda: {cuda:?}, without a name: {found:?}");
    match vulkan.or(cuda) {
        Some(id) => assert_eq!(found.unwrap(), id),
        None => assert_eq!(found.unwrap_err().status(), Status::BackendUnavailable),
    }
}

#[test]
fn their_program_has_all_of_its_product() {
    const N: usize = 512;
    let Some(gpu) = gpu() else { return };
    let (data_a, data_b) = (values(N * N, 37), values(N * N, 59));
    let kernel = matmul(&gpu);
    let a = gpu.buffer(&data_a).unwrap();
    let b = gpu.buffer(&data_b).unwrap();
    let c = gpu.buffer_zeroed(N * N * size_of::<f32>()).unwrap();
    gpu.dispatch(&kernel, &[&a, &b, &c], [32, 32, 1]).unwrap();
    gpu.wait().unwrap();
    let result = c.to_vec::<f32>().unwrap();
    assert_eq!(result.len(), N * N);
    for (i, row) in result.chunks(N).enumerate() {
        for (j, &found) in row.iter().enumerate() {
            let exact: f64 = (0..N).map(|k| f64::from(data_a[i * N + k]) * f64::from(data_b[k * N + j])).sum();
            assert!((f64::from(found) - exact).abs() < 1e-3, "({i}, {j}): {found} for {exact}");
        }
    }
}

#[test]
fn a_kernel_of_ones_own() {
    let Some(gpu) = gpu() else { return };
    let kernel = matmul(&gpu);
    let pipeline = gpu.create_pipeline(&kernel, &PipelineOptions::default()).unwrap();
    assert_eq!((pipeline.name(), pipeline.parameters().len(), pipeline.push_bytes()), (kernel.name(), 3, 0));
}

#[test]
fn the_machine_and_its_devices() {
    let report = hardware::detect();
    assert!(["cpu", "gpu", "hybrid"].contains(&report.recommended.name()));
    assert!(report.cpu.threads >= 1 && report.memory.total > 0);
    assert_eq!(Context::open("cpu").unwrap().device_info().id, "cpu");
    assert!(Context::auto().unwrap().devices().iter().any(|device| device.id == "cpu"));
}

#[test]
fn memory_and_order() {
    let ctx = gpu().map_or_else(|| Context::open("cpu").unwrap(), |gpu| gpu.context().clone());
    let (x, y) = (ctx.buffer(&[-1.0f32, 2.0]).unwrap(), ctx.buffer_zeroed(8).unwrap());
    x.write(0, &[-3.0f32, 4.0]).unwrap();
    let meta = adead::Meta::new(DType::F32, adead::Shape::new(&[2]).unwrap());
    let operand = |buffer| adead::gpu::Operand { buffer, offset: 0, meta: &meta };
    let mut stream = ctx.stream().unwrap();
    stream.run(Op::Relu, &Attrs::default(), &[Some(operand(&x))], operand(&y)).unwrap();
    let event = stream.event().unwrap();
    ctx.stream().unwrap().wait_for(&event).unwrap();
    event.wait().unwrap();
    ctx.fence().unwrap().wait().unwrap();
    ctx.wait().unwrap();
    let mut found = [0.0f32; 2];
    y.read(0, &mut found).unwrap();
    assert_eq!(found, [0.0, 4.0]);
    y.free().unwrap();
    assert!(y.read(0, &mut found).is_err());
}

#[test]
fn a_chain_is_its_operations_and_the_decision_is_told() {
    let ctx = Context::open("cpu").unwrap();
    let tensor = |values: &[f32], dims: &[usize]| Tensor::new(values, dims).unwrap();
    let (x, w1, w2) =
        (tensor(&[1.0, -2.0], &[1, 2]), tensor(&[1.0, 0.0, 0.0, 1.0], &[2, 2]), tensor(&[2.0, 3.0], &[2, 1]));
    let chained = ctx.pipeline().matmul(&x, &w1).relu().matmul(&w2).execute().unwrap();
    assert_eq!(chained.to_vec::<f32>().unwrap(), [2.0]);
    assert_eq!(ctx.select(1024), "cpu");
    assert!(ctx.explain(Op::Matmul, &Attrs::default(), &[Some(&x), Some(&w1)]).is_ok());
}

#[test]
fn a_program_is_decoded_and_run() {
    let ctx = Context::open("cpu").unwrap();
    let path = example("programs/mlp.adead");
    let program = Program::decode(&std::fs::read(&path).unwrap()).unwrap();
    let mut options = RunOptions::default();
    options.inputs.push(("x".into(), Tensor::zeros(DType::F32, &[2, 4]).unwrap()));
    let outcome = program.run(&ctx, &options).unwrap();
    assert!(!outcome.outputs.is_empty() && ctx.load_adead(&path).is_ok());
}

#[test]
fn layouts() {
    let data = values(64 * 96, 37);
    let tiled = optimize_matrix(&data, 64, 96, 32).unwrap();
    assert_eq!(tiled[32], data[96]);
    assert_eq!(restore_matrix(&tiled, 64, 96, 32).unwrap(), data);
    assert_eq!(align(&data[..10], 64).unwrap().len(), 16);
    assert_eq!(coalesce(&[0.0f32, 1.0, 2.0, 3.0], 2).unwrap(), [0.0, 2.0, 1.0, 3.0]);
}
