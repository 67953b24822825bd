//! `ADEAD_CHECK_BUFFERS=1` on this machine's first GPU, through Vulkan or the backend in `ADEAD_TEST_BACKEND`. The variable
//! applies to the whole process, so each test runs in a process of its own. Without a GPU every test says so and passes, unless the variable is set.

mod backend;

use adead_core::gpu::{Buffer, Kernel};
use adead_core::{Gpu, Status};
use backend::{backend, skip};
use std::path::Path;
use std::process::Command;

/// Runs the test of this name with the variable set to this value, in a process of its own. Returns false in that process.
fn elsewhere(test: &str, value: &str) -> bool {
    if std::env::var_os("ADEAD_CHECK_BUFFERS").is_some() {
        return false;
    }
    let own = std::env::current_exe().unwrap();
    let mut child = Command::new(own);
    let done = child.args(["--exact", test, "--nocapture"]).env("ADEAD_CHECK_BUFFERS", value).output().unwrap();
    let text = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(done.status.success() && text.contains("1 passed"), "{text}");
    true
}

/// A GPU and a kernel c = a + b.
fn gpu() -> Option<(Gpu, Kernel)> {
    let gpu = match Gpu::open(&backend()) {
        Ok(gpu) => gpu,
        Err(error) if error.status() == Status::BackendUnavailable => {
            skip(&backend(), &error);
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    // In the repository, or else in the current folder, as in a bundle of `ci/gpu-pack`.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/kernels");
    let folder = if folder.exists() { folder } else { "examples/kernels".into() };
    let kernel = match &*backend() {
        "cuda" => gpu.load_ptx(folder.join("vecadd.ptx")),
        _ => gpu.load_spirv(folder.join("vecadd.spv")),
    };
    Some((gpu, kernel.unwrap()))
}

/// Adds this many elements.
fn add(gpu: &Gpu, kernel: &Kernel, buffers: [&Buffer; 3], n: u32) -> adead_core::Result<()> {
    let push = n.to_ne_bytes();
    gpu.dispatch_with(kernel, &buffers, &push[..kernel.push_bytes()], [n.div_ceil(256), 1, 1])
}

#[test]
fn a_kernel_that_writes_behind_its_buffer_is_named() {
    if elsewhere("a_kernel_that_writes_behind_its_buffer_is_named", "1") {
        return;
    }
    let Some((gpu, kernel)) = gpu() else { return };
    let (n, m) = (4096u32, 1000u32);
    let ones = vec![1.0f32; n as usize];
    let (a, b) = (gpu.buffer(&ones).unwrap(), gpu.buffer(&ones).unwrap());
    let (small, beside) = (gpu.buffer_zeroed(4 * m as usize).unwrap(), gpu.buffer(&[7.0f32; 1000]).unwrap());
    let held = gpu.memory().unwrap();
    assert!(held.used >= 4 * 2 * 4096 + 4 * (64 << 10), "guards are there: {held:?}");
    // A call that fits gets no error, and its values are right.
    add(&gpu, &kernel, [&a, &b, &small], m).unwrap();
    assert_eq!(small.to_vec::<f32>().unwrap(), [2.0; 1000]);
    for _ in 0..2 {
        match add(&gpu, &kernel, [&a, &b, &small], n) {
            // Vulkan's driver suppresses the write outside the buffer.
            Ok(()) => assert!(backend() == "vulkan", "nothing was found"),
            Err(error) => {
                assert_eq!(error.status(), Status::InvalidKernel, "{error}");
                let name = format!("kernel '{}'", kernel.name());
                for part in [&*name, "its buffer 2", "4000 bytes (0 to 3999)", "12384 bytes from byte 4000 on"] {
                    assert!(error.message().contains(part), "{error}");
                }
            }
        }
    }
    // The next call is not blamed for it, not even on a stream.
    add(&gpu, &kernel, [&a, &b, &small], m).unwrap();
    let mut stream = gpu.stream().unwrap();
    let push = m.to_ne_bytes();
    let push = &push[..kernel.push_bytes()];
    stream.dispatch(&kernel, &[&a, &b, &small], push, [4, 1, 1]).unwrap();
    let recording = stream.record(|stream| stream.dispatch(&kernel, &[&a, &small, &small], push, [4, 1, 1])).unwrap();
    stream.replay(&recording).unwrap();
    assert_eq!(small.to_vec::<f32>().unwrap(), [3.0; 1000]);
    assert_eq!(beside.to_vec::<f32>().unwrap(), [7.0; 1000]);
}

#[test]
fn what_is_recorded_is_watched_when_it_runs() {
    if elsewhere("what_is_recorded_is_watched_when_it_runs", "1") {
        return;
    }
    let Some((gpu, kernel)) = gpu() else { return };
    let (a, small) = (gpu.buffer(&[1.0f32; 512]).unwrap(), gpu.buffer_zeroed(4).unwrap());
    let mut stream = gpu.stream().unwrap();
    let push = 512u32.to_ne_bytes();
    let push = &push[..kernel.push_bytes()];
    let recording = stream.record(|stream| stream.dispatch(&kernel, &[&a, &a, &small], push, [2, 1, 1])).unwrap();
    match stream.replay(&recording) {
        Ok(()) => assert!(backend() == "vulkan", "nothing was found"),
        Err(error) => {
            assert!(error.message().contains("a recording") && error.message().contains("from byte 4 on"), "{error}")
        }
    }
    assert_eq!(small.to_vec::<f32>().unwrap(), [2.0]);
}

#[test]
fn another_value_is_refused() {
    if elsewhere("another_value_is_refused", "yes") {
        return;
    }
    match Gpu::open(&backend()) {
        Err(error) if error.status() == Status::BackendUnavailable => skip(&backend(), &error),
        Err(error) => assert!(error.message().contains("'yes'; it must be 0 or 1"), "{error}"),
        Ok(gpu) => panic!("{} opened", gpu.device_info().id),
    }
}
