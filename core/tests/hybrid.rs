//! Contexts of several devices: their names, and that dividing work changes no bit, on this machine's GPU through the backend in
//! `ADEAD_TEST_BACKEND`. Without a GPU the second part is left out.

mod backend;
mod draws;

use adead_core::config::Config;
use adead_core::dispatch::{DeviceProfile, Kind, calibration};
use adead_core::{Attrs, Context, ContextOptions, DType, Family, Gpu, MatmulOptions, Op, Status, Tensor};
use draws::{Random, draw, plain};
use std::path::PathBuf;

const OPTIONS: ContextOptions = ContextOptions { isa: None, threads: Some(2), precision: None };

/// The error of opening a context with this name.
fn refused(device: &str) -> (Status, String) {
    let error = Context::open(device).err().unwrap_or_else(|| panic!("'{device}' is opened"));
    (error.status(), error.message().to_string())
}

#[test]
fn a_list_names_each_device_once() {
    for (list, status, text) in [
        ("cpu,", Status::InvalidArgument, "'cpu,': a name is missing before or after a comma"),
        (",", Status::InvalidArgument, "',': a name is missing before or after a comma"),
        ("cpu,cpu", Status::InvalidArgument, "'cpu,cpu': 'cpu' is listed twice"),
        (
            "cpu, auto",
            Status::InvalidArgument,
            "'cpu, auto': 'auto' can't be part of a list, because it chooses devices itself",
        ),
        (
            "hybrid,cpu",
            Status::InvalidArgument,
            "'hybrid,cpu': 'hybrid' can't be part of a list, because it chooses devices itself",
        ),
    ] {
        assert_eq!(refused(list), (status, text.into()));
    }
    // The error names the missing device, wherever it stands in the list.
    for list in ["cpu,cuda:99", "cuda:99,cpu"] {
        let (status, text) = refused(list);
        assert_eq!(status, Status::BackendUnavailable);
        assert!(text.starts_with("there is no 'cuda:99' on this machine"), "{text}");
    }
    let (status, text) = refused("cpu,quantum");
    assert_eq!(status, Status::InvalidArgument);
    assert!(text.starts_with("no device 'quantum': "), "{text}");
    assert_eq!(Gpu::open("hybrid").unwrap_err().status(), Status::BackendUnavailable);
}

#[test]
fn without_a_gpu_hybrid_is_the_cpu() {
    let none = Config { visible_devices: Some("none".into()), ..Config::default() };
    let named = Config { device: Some("hybrid".into()), ..none.clone() };
    let without = Config { use_gpu: Some(false), ..Config::default() };
    for (device, config) in [(Some("hybrid"), &none), (None, &named), (Some("hybrid"), &without)] {
        let ctx = Context::configured(device, &OPTIONS, config).unwrap();
        assert_eq!((ctx.device_info().id.as_str(), ctx.devices().len(), ctx.select(1 << 30)), ("cpu", 1, "cpu"));
        let x = Tensor::new(&[1.0f32, -2.0], &[2]).unwrap();
        assert_eq!(ctx.relu(&x).unwrap().to_vec::<f32>().unwrap(), [1.0, 0.0]);
        let why = ctx.explain(Op::Relu, &Attrs::default(), &[Some(&x)]).unwrap();
        assert_eq!((why.split.is_none(), &*why.reason), (true, "cpu is the only device"));
        assert_eq!(ctx.buffer(&[1.0f32]).unwrap().to_vec::<f32>().unwrap(), [1.0]);
    }
}

/// The id of the tested GPU.
fn gpu() -> Option<String> {
    let backend = backend::backend();
    match Context::open(&backend) {
        Ok(ctx) => Some(ctx.device_info().id.clone()),
        Err(error) if error.status() == Status::BackendUnavailable => {
            backend::skip(&backend, &error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A folder with a calibration. It is removed after the context that is made after it, which may write there when it is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A context of these devices with a calibration in which launches and transfers are free and the GPU is `times` as fast as the
/// processor. So every operation with rows is divided.
fn divided(name: &str, device: &str, times: f64) -> (Folder, Context) {
    let folder = Folder(std::env::temp_dir().join(format!("adead-hybrid-{}-{name}", std::process::id())));
    let config = Config { cache_dir: Some(folder.0.clone()), ..Config::default() };
    let ctx = Context::configured(Some(device), &OPTIONS, &config).unwrap();
    let even = |profile: &DeviceProfile| {
        let mut profile = profile.clone();
        let times = if profile.kind == Kind::Cpu { 1.0 } else { times };
        (profile.launch_ns, profile.wake_ns, profile.alone, profile.cache_bytes) = (0.0, 0.0, 1.0, 0.0);
        for link in [&mut profile.upload, &mut profile.download] {
            (link.latency_ns, link.gbytes) = (0.0, 1e15);
        }
        profile.rates.iter_mut().for_each(|rate| (rate.gflops, rate.gbytes) = (times, times));
        profile
    };
    let profiles: Vec<DeviceProfile> = ctx.dispatcher().profiles().iter().map(even).collect();
    let cpu = Context::configured(Some("cpu"), &OPTIONS, &config).unwrap();
    calibration::store(&folder.0, &calibration::machine(cpu.device_info()), &profiles).unwrap();
    let ctx = Context::configured(Some(device), &OPTIONS, &config).unwrap();
    assert!(ctx.dispatcher().is_hybrid() && ctx.dispatcher().forced().is_none());
    (folder, ctx)
}

/// Compares random calls of every operation with the CPU's. Returns how many were divided.
fn compare(ctx: &Context, seeds: std::ops::Range<u64>) -> usize {
    let (mut count, cpu) = (0, plain());
    for &op in Op::ALL {
        for seed in seeds.clone() {
            let mut r = Random(seed << 8 | op as u64);
            let dtype = [DType::F32, DType::F32, DType::F16, DType::BF16][r.below(4)];
            let (attrs, operands) = draw(op, dtype, &mut r);
            // A software GPU takes up to a second for the longest.
            if operands.iter().flatten().any(|operand| operand.len() > 1 << 15) {
                continue;
            }
            let operands: Vec<_> = operands.iter().map(Option::as_ref).collect();
            let expected = cpu.run(op, &attrs, &operands).unwrap();
            let got = ctx.run(op, &attrs, &operands).unwrap_or_else(|error| panic!("{op} seed {seed}: {error}"));
            assert!(got.bytes() == expected.bytes() && got.dims() == expected.dims(), "{op} seed {seed} {operands:?}");
            let why = ctx.explain(op, &attrs, &operands).unwrap();
            let Some(split) = why.split else { continue };
            let most = split.rows.iter().max();
            assert!(split.rows.iter().filter(|&&rows| rows > 0).count() > 1, "{split:?}");
            assert!(split.rows.get(why.device) == most && split.ns < why.estimates[0].total_ns(), "{split:?}");
            let first = &ctx.dispatcher().profiles()[0].id;
            assert!(why.reason.contains(&format!(" {} on {first},", split.rows[0])), "{}", why.reason);
            count += 1;
        }
    }
    count
}

#[test]
fn whatever_is_divided_has_the_same_bits() {
    let Some(gpu) = gpu() else { return };
    for (i, times) in [0.1, 1.0, 8.0].into_iter().enumerate() {
        let (_folder, ctx) = divided(&format!("bits-{i}"), &format!("cpu,{gpu}"), times);
        let count = compare(&ctx, i as u64 * 10..i as u64 * 10 + 10);
        assert!(count > 40, "{count} calls were divided");
        println!("{ctx:?}: {count} divided calls of a GPU {times} times as fast equal the CPU's");
    }
}

/// A context of all GPUs, which take operands from one another. `None` if there are fewer than two.
fn gpus(name: &str) -> Option<(Folder, Context)> {
    gpu()?;
    let all = Context::with_options("cuda:*", &OPTIONS).ok().filter(|ctx| ctx.devices().len() > 1);
    if all.is_none() {
        let wanted = std::env::var("ADEAD_TEST_GPUS").is_ok();
        assert!(!wanted, "ADEAD_TEST_GPUS is set, but 'cuda:*' is not several devices");
        println!("with several CUDA devices there is more to compare");
    }
    all.map(|_| divided(name, "cuda:*", 1.0))
}

#[test]
fn operations_on_several_gpus_have_the_same_bits() {
    let Some((_folder, ctx)) = gpus("gpus") else { return };
    let count = compare(&ctx, 300..310);
    assert!(count > 40, "{count} calls were divided");
    println!("{ctx:?}: {count} divided calls equal the CPU's");
}

#[test]
fn results_of_several_gpus_stay_with_them() {
    let Some((_folder, ctx)) = gpus("stay") else { return };
    let mut r = Random(7);
    let mut random = |dims: &[usize]| {
        let values: Vec<f32> = (0..dims.iter().product()).map(|_| r.below(1000) as f32 / 500.0 - 1.0).collect();
        Tensor::new(&values, dims).unwrap()
    };
    let (x, up, down, bias) = (random(&[65, 48]), random(&[48, 96]), random(&[96, 48]), random(&[48]));
    // Products, functions, sums and moves: results with rows on each GPU, all of a tensor on one, operands of both kinds.
    let layer = |ctx: &Context| -> adead_core::Result<Vec<Tensor>> {
        let hidden = ctx.relu(&ctx.matmul(&x, &up)?)?;
        let y = ctx.add(&ctx.matmul(&hidden, &down)?, &bias)?;
        let z = ctx.softmax(&ctx.add(&y, &x)?, -1)?;
        let turned = ctx.transpose(&z)?;
        let square = ctx.matmul(&turned, &y)?;
        let heads = y.reshape(&[65, 1, 4, 12])?;
        let attended = ctx.run(Op::Attention, &Attrs::default(), &[Some(&heads), Some(&heads), Some(&heads)])?;
        let part = ctx.exp(&y.rows(3, 50)?)?;
        let column = ctx.run(Op::Sum, &Attrs { axis: adead_core::Axis::At(0), ..Attrs::default() }, &[Some(&z)])?;
        Ok(vec![hidden, y, z, turned, square, attended, part, column])
    };
    let (expected, got) = (layer(&plain()).unwrap(), layer(&ctx).unwrap());
    let ids: Vec<String> = ctx.devices().into_iter().map(|info| info.id).collect();
    assert_eq!((got[0].places(), got[0].is_on_host()), (ids.clone(), false), "the rows stay where they are");
    assert!(x.is_on_host() && ids.iter().all(|id| x.is_on(id)), "each has its rows of what was uploaded");
    // Few rows are read alone, also where the part of one GPU ends and that of the next one begins.
    for first in 0..60 {
        let rows = got[2].rows(first, 5).unwrap();
        assert_eq!(rows.bytes(), expected[2].rows(first, 5).unwrap().bytes(), "rows from {first} on");
    }
    assert!(!got[2].is_on_host());
    // Downloads that begin before the read, and reads of parts on their own.
    got[1].to_cpu().unwrap();
    assert_eq!(got[0].rows(1, 64).unwrap().bytes(), expected[0].rows(1, 64).unwrap().bytes());
    for (i, (got, expected)) in got.iter().zip(&expected).enumerate() {
        assert!(got.bytes() == expected.bytes() && got.dims() == expected.dims(), "result {i}");
    }
    // To one device by name, and out of the cache: no value is lost.
    let again = layer(&ctx).unwrap();
    let there = ctx.to(&again[0], &ids[1]).unwrap();
    let one = Context::with_options(&ids[1], &OPTIONS).unwrap();
    assert_eq!(one.exp(&there).unwrap().bytes(), plain().exp(&expected[0]).unwrap().bytes());
    ctx.set_tensor_cache(0).unwrap();
    assert!(again.iter().zip(&expected).all(|(again, expected)| again.bytes() == expected.bytes()));
}

#[test]
fn several_threads_share_several_gpus() {
    let Some((_folder, ctx)) = gpus("gpu-threads") else { return };
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let ctx = &ctx;
            scope.spawn(move || assert!(compare(ctx, 400 + thread * 3..403 + thread * 3) > 10));
        }
    });
}

#[test]
fn names_of_several_devices() {
    let Some(gpu) = gpu() else { return };
    for list in [format!("cpu,{gpu}"), format!("{gpu}, cpu")] {
        let ctx = Context::with_options(&list, &OPTIONS).unwrap();
        let ids: Vec<String> = ctx.devices().into_iter().map(|info| info.id).collect();
        assert_eq!(ids, ["cpu".to_string(), gpu.clone()]);
        assert!(format!("{ctx:?}").starts_with(&format!("Context(cpu,{gpu}: ")), "{ctx:?}");
        assert_eq!(ctx.device_info().id, "cpu");
        // Buffers and operations on them are on the GPU.
        let x = ctx.buffer(&[1.0f32, -2.0]).unwrap();
        assert_eq!(ctx.memory().unwrap().total, Context::open(&gpu).unwrap().memory().unwrap().total);
        assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, -2.0]);
        // Token-sized work stays on the CPU.
        let token = Tensor::new(&[0.5f32; 16], &[1, 16]).unwrap();
        let why = ctx.explain(Op::Softmax, &Attrs::default(), &[Some(&token)]).unwrap();
        assert_eq!((why.id(), why.split.is_none()), ("cpu", true));
        // One device for everything, then both again.
        ctx.dispatcher().force(Some(&gpu)).unwrap();
        assert_eq!(ctx.device_info().id, gpu);
        ctx.dispatcher().force(None).unwrap();
        assert_eq!(ctx.device_info().id, "cpu");
    }
    let twice = format!("{gpu},cpu,{gpu}");
    assert_eq!(refused(&twice), (Status::InvalidArgument, format!("'{twice}': '{gpu}' is the same GPU as {gpu}")));
    // The configuration may name several devices too.
    let config = Config { device: Some(format!("cpu,{gpu}")), ..Config::default() };
    assert_eq!(Context::configured(None, &OPTIONS, &config).unwrap().devices().len(), 2);
}

#[test]
fn a_threshold_and_a_forced_device_divide_nothing() {
    let Some(gpu) = gpu() else { return };
    let (_folder, ctx) = divided("forced", &format!("cpu,{gpu}"), 1.0);
    let x = Tensor::new(&[0.25f32; 256], &[16, 16]).unwrap();
    let split = || ctx.explain(Op::Exp, &Attrs::default(), &[Some(&x)]).unwrap().split;
    assert_eq!(split().unwrap().rows, [128, 128]);
    ctx.dispatcher().set_threshold(Family::Function, Some(1));
    assert_eq!(split(), None);
    ctx.dispatcher().set_threshold(Family::Function, None);
    ctx.dispatcher().force(Some("cpu")).unwrap();
    assert_eq!(split(), None);
    ctx.dispatcher().force(None).unwrap();
    assert!(split().is_some());
    // A packed operand has the layout of the CPU's kernels, so the operation is not divided.
    let packed = ctx.pack(&x, false).unwrap();
    let product = ctx.matmul_packed(&x, &packed, MatmulOptions::default()).unwrap();
    assert!(product.bytes() == plain().matmul(&x, &x).unwrap().bytes());
}

#[cfg(feature = "profile")]
#[test]
fn a_profile_has_every_part() {
    use adead_core::profile::{Activity, Reason};
    let Some(gpu) = gpu() else { return };
    let (_folder, ctx) = divided("profile", &format!("cpu,{gpu}"), 1.0);
    let x = Tensor::new(&[0.25f32; 256], &[16, 16]).unwrap();
    let profile = ctx.profile().unwrap();
    ctx.exp(&x).unwrap();
    let report = profile.finish();
    let of = |id: &str| -> Vec<(Activity, &str, &str, f64)> {
        let own = report.records.iter().filter(|record| report.devices[record.device].id == id);
        own.map(|record| (record.activity, &*record.name, &*record.operands, record.bytes)).collect()
    };
    let part = (Activity::Operation, "exp", "f32[128] -> f32[128]", 1024.0);
    assert_eq!(of("cpu"), [part]);
    let (up, down) = ((Activity::Upload, "upload", "exp", 512.0), (Activity::Download, "download", "exp", 512.0));
    assert_eq!(of(&gpu), [up, part, down]);
    assert!(report.records.iter().all(|record| record.reason == Reason::Split && record.work.is_some()), "{report}");
}

#[test]
fn several_threads_divide_at_once() {
    let Some(gpu) = gpu() else { return };
    let (_folder, ctx) = divided("threads", &format!("cpu,{gpu}"), 1.0);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let ctx = &ctx;
            scope.spawn(move || {
                // One thread makes wrong calls and gets their errors; no other thread does.
                if thread > 0 {
                    assert!(compare(ctx, 100 + thread * 3..103 + thread * 3) > 10);
                    return;
                }
                let table = Tensor::new(&[1.0f32; 8], &[4, 2]).unwrap();
                let ids = Tensor::new(&[3i32, 2, 1, 0, 9, 3], &[6]).unwrap();
                for _ in 0..50 {
                    let error = ctx.embedding(&table, &ids).unwrap_err();
                    assert_eq!(error.message(), "embedding: id 9 at position 4 is outside the table's 4 rows");
                }
            });
        }
    });
}
