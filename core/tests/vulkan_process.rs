//! What happens to a process that uses a GPU and ends, dies or forks, and to a process without a loader or a driver.
//!
//! Each scenario runs in its own process: the test starts this executable again with its own name. The copy finds
//! `ADEAD_TEST_CHILD` set and plays the scenario.
#![cfg(unix)]

use adead_core::gpu::{Recording, Stream};
use adead_core::{Context, Status, Tensor};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const ROLE: &str = "ADEAD_TEST_CHILD";
/// The copy prints this when its work is in progress.
const UNDER_WAY: &str = "work is under way";
/// A scenario that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);
const BYTES: usize = 64 << 20;

const SIGABRT: i32 = 6;
const SIGKILL: i32 = 9;

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
    fn alarm(seconds: u32) -> u32;
}

/// Whether this process is the copy.
fn is_child() -> bool {
    std::env::var_os(ROLE).is_some()
}

/// Whether this machine has a GPU that can be opened. Prints the reason if not.
fn has_gpu() -> bool {
    match Context::open("vulkan") {
        Ok(_) => true,
        Err(error) if error.status() == Status::BackendUnavailable => {
            println!("skipped: vulkan: {error}");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

/// A copy of this process that plays a scenario. Its output goes to a file.
struct Copy {
    child: Child,
    printed: PathBuf,
    _folder: Folder,
}

impl Copy {
    fn start(scenario: &str, environment: &[(&str, &OsStr)]) -> Copy {
        let folder = Folder::new(scenario);
        let printed = folder.0.join("printed");
        let file = File::create(&printed).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", scenario, "--nocapture", "--test-threads=1"]).env(ROLE, "1");
        command.envs(environment.iter().copied()).stdin(Stdio::null());
        command.stdout(file.try_clone().unwrap()).stderr(file);
        Copy { child: command.spawn().unwrap(), printed, _folder: folder }
    }

    fn printed(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.printed).unwrap()).into_owned()
    }

    /// Waits until its work is in progress. Returns its exit status if it ends before that.
    fn until_under_way(&mut self) -> Option<ExitStatus> {
        self.poll(|copy| copy.printed().contains(UNDER_WAY))
    }

    /// Waits until it ends.
    fn ended(mut self) -> ExitStatus {
        let status = self.poll(|_| false).unwrap();
        self.printed().lines().for_each(|line| println!("| {line}"));
        status
    }

    /// Waits until it ends or `enough` returns true.
    fn poll(&mut self, enough: impl Fn(&Copy) -> bool) -> Option<ExitStatus> {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            let status = self.child.try_wait().unwrap();
            if status.is_some() || enough(self) {
                return status;
            }
            sleep(Duration::from_millis(5));
        }
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        panic!("the process hangs; it printed: {}", self.printed());
    }
}

/// Plays a scenario that must succeed.
fn succeeds(scenario: &str, environment: &[(&str, &OsStr)]) {
    let status = Copy::start(scenario, environment).ended();
    assert!(status.success(), "{scenario}: {status}");
}

/// Checks that the GPU works, after another process misused it.
fn works() {
    let ctx = Context::open("vulkan").unwrap();
    let buffer = ctx.buffer(&[1.0f32, -2.0, 3.0]).unwrap();
    let mut stream = ctx.stream().unwrap();
    let copy = ctx.buffer_zeroed(12).unwrap();
    stream.copy((&buffer, 0), (&copy, 0), 12).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(copy.to_vec::<f32>().unwrap(), [1.0, -2.0, 3.0]);
}

/// A context, a stream with a second or two of enqueued work, and the recording that it runs.
fn busy() -> (Context, Stream, Recording) {
    let ctx = Context::open("vulkan").unwrap();
    let buffer = ctx.buffer_zeroed(BYTES).unwrap();
    let mut stream = ctx.stream().unwrap();
    // Measures one replay; the first one warms up.
    let mut nanoseconds = 1;
    for _ in 0..2 {
        let before = stream.timestamp().unwrap();
        stream.clear(&buffer, 0, BYTES).unwrap();
        let after = stream.timestamp().unwrap();
        stream.synchronize().unwrap();
        nanoseconds = after.since(&before).unwrap().max(1_000);
    }
    let piece = (50_000_000 / nanoseconds).clamp(1, 10_000);
    let recording = stream.record(|stream| (0..piece).try_for_each(|_| stream.clear(&buffer, 0, BYTES))).unwrap();
    for _ in 0..30 {
        stream.replay(&recording).unwrap();
    }
    stream.flush().unwrap();
    let event = stream.event().unwrap();
    assert!(!event.is_done().unwrap(), "30 times {piece} fillings of {nanoseconds} ns are done at once");
    println!("{UNDER_WAY}");
    (ctx, stream, recording)
}

#[test]
fn a_process_that_returns_with_work_under_way_ends_well() {
    if is_child() {
        drop(busy());
        return;
    }
    if has_gpu() {
        succeeds("a_process_that_returns_with_work_under_way_ends_well", &[]);
        works();
    }
}

#[test]
fn a_process_that_exits_with_work_under_way_ends_well() {
    if is_child() {
        let _held = busy();
        std::process::exit(0);
    }
    if has_gpu() {
        succeeds("a_process_that_exits_with_work_under_way_ends_well", &[]);
        works();
    }
}

#[test]
fn a_thread_that_panics_with_work_under_way_unwinds() {
    if is_child() {
        let _held = busy();
        panic!("as the test wants it");
    }
    if has_gpu() {
        let status = Copy::start("a_thread_that_panics_with_work_under_way_unwinds", &[]).ended();
        // libtest's exit code for a test that panicked.
        assert_eq!(status.code(), Some(101), "{status}");
        works();
    }
}

#[test]
fn a_process_that_aborts_with_work_under_way_leaves_the_gpu_usable() {
    if is_child() {
        let _held = busy();
        std::process::abort();
    }
    if has_gpu() {
        let status = Copy::start("a_process_that_aborts_with_work_under_way_leaves_the_gpu_usable", &[]).ended();
        assert_eq!(status.signal(), Some(SIGABRT), "{status}");
        works();
    }
}

#[test]
fn a_process_that_is_killed_with_work_under_way_leaves_the_gpu_usable() {
    if is_child() {
        let (_ctx, mut stream, recording) = busy();
        loop {
            stream.replay(&recording).unwrap();
        }
    }
    if has_gpu() {
        let mut copy = Copy::start("a_process_that_is_killed_with_work_under_way_leaves_the_gpu_usable", &[]);
        assert_eq!(copy.until_under_way(), None, "it ended by itself");
        copy.child.kill().unwrap();
        let status = copy.ended();
        assert_eq!(status.signal(), Some(SIGKILL), "{status}");
        works();
    }
}

/// A forked child has the handles but not the driver's threads. Every call to the GPU returns an error instead of hanging. The
/// CPU works in the child, and the parent continues.
#[test]
fn a_forked_child_gets_an_error_and_its_parent_goes_on() {
    if is_child() {
        let (ctx, mut stream, recording) = busy();
        let buffer = ctx.buffer(&[1.0f32; 64]).unwrap();
        let event = stream.event().unwrap();
        // SAFETY: the child calls only what is tested here, and ends by `_exit` or by the alarm.
        let process = unsafe { fork() };
        assert!(process >= 0);
        if process == 0 {
            // SAFETY: it only sets a timer, which ends a child that hangs.
            unsafe { alarm(60) };
            let refused = [
                stream.replay(&recording).err(),
                stream.synchronize().err(),
                stream.upload(&buffer, 0, &[0; 4]).err(),
                stream.timestamp().err(),
                event.wait().err(),
                buffer.read::<f32>(0, &mut [0.0; 4]).err(),
                ctx.buffer_zeroed(1 << 20).err(),
                ctx.stream().err(),
                Context::open("vulkan").err(),
            ];
            // Work that is known to be done needs no driver, so this must only return.
            let _ = ctx.wait();
            let wrong = refused.iter().enumerate().find(|(_, error)| {
                error.as_ref().is_none_or(|error| {
                    error.status() != Status::BackendUnavailable || !error.message().contains("fork")
                })
            });
            if let Some((i, error)) = wrong {
                eprintln!("call {i} in the child: {error:?}");
                // SAFETY: ends the process.
                unsafe { _exit(1) };
            }
            let cpu = Context::open("cpu").unwrap();
            let x = Tensor::new(&[1.0f32, 2.0], &[2]).unwrap();
            let sum = cpu.add(&x, &x).unwrap();
            let right = sum.as_slice::<f32>().unwrap() == [2.0, 4.0];
            drop((stream, recording, buffer, event, ctx));
            // SAFETY: ends the process.
            unsafe { _exit(if right { 0 } else { 2 }) };
        }
        let mut status = -1;
        // SAFETY: it writes one integer.
        assert_eq!(unsafe { waitpid(process, &mut status, 0) }, process);
        assert_eq!(status, 0, "how the child ended");
        stream.synchronize().unwrap();
        assert_eq!(buffer.to_vec::<f32>().unwrap(), [1.0; 64]);
        return;
    }
    if has_gpu() {
        succeeds("a_forked_child_gets_an_error_and_its_parent_goes_on", &[]);
    }
}

/// An empty folder, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("adead-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Opening the GPU fails with this reason, twice the same. `auto` computes on the CPU.
fn there_is_no_gpu(why: &str) {
    for _ in 0..2 {
        for device in ["vulkan", "vulkan:0"] {
            let error = Context::open(device).unwrap_err();
            assert_eq!(error.status(), Status::BackendUnavailable, "{error}");
            assert!(error.message().contains(why), "{error}");
        }
        // A GPU without a name is CUDA's then, if there is one.
        match adead_core::gpu::Gpu::new() {
            Ok(gpu) => assert!(gpu.device_info().id.starts_with("cuda:")),
            Err(error) => {
                assert!(error.status() == Status::BackendUnavailable && error.message().contains(why), "{error}")
            }
        }
    }
    let ctx = Context::auto().unwrap();
    let x = Tensor::new(&[1.0f32, -2.0], &[2]).unwrap();
    assert_eq!(ctx.relu(&x).unwrap().as_slice::<f32>().unwrap(), [1.0, 0.0]);
    assert!(ctx.devices().iter().all(|info| !info.id.starts_with("vulkan:")));
}

/// Both variables: loaders before 1.3.207 know only the second.
fn drivers(path: &Path) -> [(&str, &OsStr); 2] {
    [("VK_DRIVER_FILES", path.as_os_str()), ("VK_ICD_FILENAMES", path.as_os_str())]
}

#[test]
fn without_a_driver_the_reason_is_said_and_the_cpu_computes() {
    if is_child() {
        return there_is_no_gpu("Vulkan");
    }
    let folder = Folder::new("drivers");
    let missing = folder.0.join("not_there.json");
    let library = folder.0.join("libnot_there.so");
    let text = |library: &str| {
        format!(r#"{{"file_format_version": "1.0.0", "ICD": {{"library_path": "{library}", "api_version": "1.3.0"}}}}"#)
    };
    let without_library = folder.file("without_library.json", &text(library.to_str().unwrap()));
    let malformed = folder.file("malformed.json", "{\"file_format_version\"");
    for path in [missing, without_library, malformed] {
        succeeds("without_a_driver_the_reason_is_said_and_the_cpu_computes", &drivers(&path));
    }
}

/// `dlopen` finds a file first that is no library, and stops there, as on a machine without a loader.
#[cfg(target_os = "linux")]
#[test]
fn without_a_loader_the_reason_is_said_and_the_cpu_computes() {
    if is_child() {
        return there_is_no_gpu("no Vulkan loader");
    }
    let folder = Folder::new("loader");
    for name in ["libvulkan.so.1", "libvulkan.so"] {
        folder.file(name, "");
    }
    let scenario = "without_a_loader_the_reason_is_said_and_the_cpu_computes";
    succeeds(scenario, &[("LD_LIBRARY_PATH", folder.0.as_os_str())]);
}
