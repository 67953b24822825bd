//! Tests of the host side on the fake driver: the device layer's suite, and a driver that fails.

mod modules;
#[cfg(unix)]
mod processes;
pub mod signatures;
mod streams;
mod transfers;

use super::api::{Api, Handle};
use super::fake::{Card, Fake};
use super::*;
use crate::error::{Error, Status};
use crate::hal::{DeviceKind, Slice};
use std::ffi::CStr;

const VECADD: &str = "
// c = a + b
.version 8.0
.target sm_70
.address_size 64
.visible .entry vecadd(
    .param .u64 vecadd_a, .param .u64 .ptr .global .align 4 vecadd_b,
    .param .u64 vecadd_c, /* of n */ .param .u32 vecadd_n
)
.reqntid 256
{
    ret;
}
.visible .entry bump(.param .u64 p, .param .u32 n, .param .align 8 .b8 by[8]) .maxntid 64, 2 .minnctapersm 1 { ret; }
.visible .entry complain(.param .u64 p, .param .u32 word) { { ret; } }
.visible .entry crash() .reqntid 1, 1, 1 { ret; }
";

fn source(code: &str) -> KernelSource<'_> {
    KernelSource { code: code.as_bytes(), entry: None, constants: &[], workgroup: None }
}

fn entry(name: &str) -> KernelSource<'_> {
    KernelSource { entry: Some(name), ..source(VECADD) }
}

fn open(fake: &Fake) -> Arc<CudaDevice> {
    Arc::new(CudaDevice::open(0, &fake.opening()).unwrap())
}

fn status<T>(result: Result<T>) -> Option<Status> {
    result.err().map(|error| error.status())
}

/// Checks that everything was freed, and that no rule of the driver was violated.
fn clean(fake: &Fake, device: Arc<CudaDevice>) {
    assert_eq!(device.live(), 0, "memory that is still in use");
    drop(device);
    assert_eq!((fake.violations(), fake.live()), (Vec::new(), 0));
}

fn whole(buffer: &dyn Buffer) -> Slice<'_> {
    Slice { buffer, offset: 0, bytes: buffer.size() }
}

fn words(stream: &mut dyn Stream, buffer: &dyn Buffer) -> Vec<u32> {
    let mut bytes = vec![0; buffer.size()];
    stream.read(buffer, 0, &mut bytes).unwrap();
    bytes.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect()
}

/// The caller's floating-point environment must not reach the driver: with traps, its divisions by zero would end the
/// process.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_driver_is_called_in_the_default_floating_point_environment() {
    /// Sets traps for division by zero, and flushing of subnormals.
    fn set(mxcsr: u32) {
        // SAFETY: a value of MXCSR without reserved bits. Nothing in this function computes with floats until it is
        // restored.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mxcsr, options(nostack, preserves_flags)) };
    }
    let fake = Fake::new(&[Card::default()]);
    set(0x1f80 & !0x200 | 0x8040);
    let device = open(&fake);
    let mut stream = device.clone().stream().unwrap();
    let buffer = device.allocate(1 << 20).unwrap();
    stream.write(&*buffer, 0, &[1; 1 << 20]).unwrap();
    let kernel = device.clone().kernel(&entry("bump")).unwrap();
    stream.dispatch(&*kernel, &[whole(&*buffer)], &[0; 16], [1; 3]).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(words(&mut *stream, &*buffer).len(), 1 << 18);
    drop((kernel, buffer, stream));
    let live = device.live();
    drop(device);
    set(0x1f80);
    assert_eq!((live, fake.violations()), (0, Vec::new()));
}

/// Runs the whole suite on this machine's GPU, or on the driver that tests/cuda builds. The fake driver has no kernels.
#[test]
fn conformance_of_this_machine() {
    let device = match CudaDevice::open(0, &Opening::default()) {
        Ok(device) => Arc::new(device),
        Err(error) if error.status() == Status::BackendUnavailable => return println!("skipped: cuda: {error}"),
        Err(error) => panic!("{error}"),
    };
    crate::hal::cts::run(device.clone());
    assert_eq!(device.live(), 0, "memory that is still in use");
}

#[test]
fn conformance() {
    let fake = Fake::new(&[Card::default()]);
    let device = open(&fake);
    let shared: Arc<dyn Device> = device.clone();
    crate::hal::cts::run_without_operations(&shared);
    drop(shared);
    clean(&fake, device);
}

/// Writes words to a new buffer.
fn upload(device: &Arc<CudaDevice>, stream: &mut dyn Stream, words: &[u32]) -> Arc<dyn Buffer> {
    let buffer = device.allocate_unset(4 * words.len()).unwrap();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    stream.write(&*buffer, 0, &bytes).unwrap();
    buffer
}

/// Returns the push constants of bump.
fn bump_by(n: u32, by: u64) -> Vec<u8> {
    [&n.to_ne_bytes()[..], &[0; 4], &by.to_ne_bytes()].concat()
}

#[test]
fn no_driver() {
    let error = api::open(&["libadead-has-no-such-driver.so.7"]).err().unwrap();
    assert_eq!(error.status(), Status::BackendUnavailable);
    assert!(error.message().contains("libadead-has-no-such-driver.so.7"), "{error}");
}

#[test]
fn a_symbol_that_is_missing() {
    unsafe extern "system" fn nothing() {}
    let without = |missing: &'static CStr| {
        // SAFETY: no function of the table is called.
        unsafe { Api::load(&|name| if name == missing { None } else { Some(nothing as unsafe extern "system" fn()) }) }
    };
    let error = without(c"cuLaunchKernel").err().unwrap();
    assert_eq!(error.status(), Status::BackendUnavailable);
    assert!(error.message().contains("cuLaunchKernel"), "{error}");
    let older = without(c"cuFuncGetParamInfo").unwrap();
    assert!(older.function_parameter.is_none() && older.function_name.is_some());
}

#[test]
fn a_driver_that_does_not_start() {
    unsafe extern "system" fn none(_: u32) -> i32 {
        100
    }
    let mut table = None;
    let fake = Fake::with(&[], |api| table = Some(*api));
    let error = api::Driver::start(Api { init: none, ..table.unwrap() }).err().unwrap();
    assert_eq!(error.status(), Status::BackendUnavailable);
    assert!(error.message().contains("CUDA_ERROR_NO_DEVICE"), "{error}");
    // A driver without devices.
    let error = CudaDevice::open(0, &fake.opening()).err().unwrap();
    assert_eq!(error.status(), Status::BackendUnavailable);
    // Listing this machine's devices must not fail in another way.
    if let Err(error) = enumerate() {
        assert_eq!(error.status(), Status::BackendUnavailable, "{error}");
    }
}

#[test]
fn devices() {
    let old = Card { capability: 61, ..Card::default() };
    let inside = Card { capability: 87, memory: 4 << 30, integrated: true };
    let fake = Fake::new(&[Card::default(), old, inside]);
    let all = physical::enumerate(fake.driver()).unwrap();
    let info: Vec<&DeviceInfo> = all.iter().map(|physical| &physical.info).collect();
    assert_eq!(info.iter().map(|info| &*info.id).collect::<Vec<_>>(), ["cuda:0", "cuda:1", "cuda:2"]);
    assert_eq!(info.iter().map(|info| &*info.arch).collect::<Vec<_>>(), ["sm_90", "sm_61", "sm_87"]);
    assert_eq!((info[0].kind, info[2].kind), (DeviceKind::Discrete, DeviceKind::Integrated));
    assert_eq!((&*info[1].name, &*info[1].vendor, &*info[1].driver), ("Fake 1", "NVIDIA", "CUDA 12.4"));
    assert_eq!((info[2].memory, info[2].units, info[2].uuid), (4 << 30, 132, Some([3; 16])));
    assert_eq!(info[1].bus.as_deref(), Some("0000:3c:00.0"));
    let error = CudaDevice::open(1, &fake.opening()).err().unwrap();
    assert_eq!(error.status(), Status::Unsupported);
    assert!(error.message().contains("sm_61") && error.message().contains("sm_70"), "{error}");
    assert_eq!(status(CudaDevice::open(3, &fake.opening())), Some(Status::BackendUnavailable));
    assert_eq!(fake.live(), 0);
}

#[test]
fn out_of_memory() {
    let fake = Fake::new(&[Card { memory: 64 << 20, ..Card::default() }]);
    let device = open(&fake);
    // Idle memory is returned, and the driver is asked again for no more than is needed.
    drop(device.allocate_unset(30 << 20).unwrap());
    assert_eq!(device.memory().held, 30 << 20);
    let kept = device.allocate_unset(40 << 20).unwrap();
    assert_eq!((device.memory().held, device.memory().free), (40 << 20, 24 << 20));
    assert_eq!(fake.calls("memory_allocate"), 3);
    // No memory is left: the error has the numbers, and existing memory stays usable.
    let error = device.allocate_unset(30 << 20).err().unwrap();
    assert_eq!(error.status(), Status::OutOfMemory);
    for part in ["31457280 bytes", "25165824 of 67108864 bytes are free", "1 allocations"] {
        assert!(error.message().contains(part), "{error}");
    }
    assert_eq!(status(device.allocate(usize::MAX)), Some(Status::OutOfMemory));
    let small = device.allocate(20 << 20).unwrap();
    // Without pinned memory a copy fails, and nothing is lost.
    let mut stream = device.clone().stream().unwrap();
    fake.fail("host_allocate", 0, 2, 2);
    assert_eq!(status(stream.write(&*kept, 0, &[1; 100])), Some(Status::OutOfMemory));
    stream.write(&*kept, 0, &[2; 100]).unwrap();
    let mut bytes = [0; 100];
    stream.read(&*kept, 0, &mut bytes).unwrap();
    assert_eq!(bytes, [2; 100]);
    drop((kept, small, stream));
    clean(&fake, device);
}

#[test]
fn a_lost_device_stays_lost() {
    for way in 0..5 {
        let fake = Fake::new(&[Card::default(), Card::default()]);
        let device = open(&fake);
        let other = Arc::new(CudaDevice::open(1, &fake.opening()).unwrap());
        let mut stream = device.clone().stream().unwrap();
        let buffer = device.allocate(1 << 16).unwrap();
        stream.write(&*buffer, 0, &[1; 1000]).unwrap();
        stream.synchronize().unwrap();
        let event = stream.event().unwrap();
        match way {
            0 => {
                let crash = device.kernel(&entry("crash")).unwrap();
                stream.dispatch(&*crash, &[], &[], [1, 1, 1]).unwrap();
            }
            1 => fake.fail("copy_to_device", 0, 1, 719),
            2 => fake.fail("stream_query", 0, 1, 714),
            3 => fake.fail("event_query", 0, 1, 714),
            _ => fake.fail("event_record", 0, 1, 702),
        }
        let written = stream.write(&*buffer, 0, &[2; 1000]);
        let lost = match way {
            3 | 4 => written.and_then(|()| stream.event()?.wait(u64::MAX)),
            _ => written.and_then(|()| stream.synchronize()),
        };
        let lost = lost.unwrap_err();
        assert_eq!(lost.status(), Status::DeviceLost, "{lost}");
        assert!(lost.message().contains("open it again"), "{lost}");
        // From now on every call reports the loss, although the driver would answer.
        fake.heal();
        let mut byte = [0];
        assert_eq!(status(stream.read(&*buffer, 0, &mut byte)), Some(Status::DeviceLost));
        assert_eq!(status(stream.copy(whole(&*buffer), whole(&*buffer))), Some(Status::InvalidArgument));
        assert_eq!(status(stream.clear(whole(&*buffer))), Some(Status::DeviceLost));
        assert_eq!(status(stream.event()), Some(Status::DeviceLost));
        assert_eq!(status(stream.start_recording()), Some(Status::DeviceLost));
        assert_eq!(status(device.allocate(16)), Some(Status::DeviceLost));
        assert_eq!(status(device.clone().stream()), Some(Status::DeviceLost));
        assert_eq!(status(device.kernel(&entry("vecadd"))), Some(Status::DeviceLost));
        assert!(event.is_done().unwrap(), "what was seen to be done is");
        // The other device still works.
        assert_eq!(other.allocate(16).unwrap().size(), 16);
        drop((buffer, stream, event));
        clean_lost(&fake, device);
        // A new opening gets a new device.
        let again = open(&fake);
        assert_eq!(again.allocate(16).unwrap().size(), 16);
        drop(other);
        clean(&fake, again);
    }
}

/// Checks as [`clean`] does, with another device still open.
fn clean_lost(fake: &Fake, device: Arc<CudaDevice>) {
    assert_eq!(device.live(), 0);
    let left = fake.live();
    drop(device);
    assert!(fake.live() < left);
    assert_eq!(fake.violations(), Vec::<String>::new());
}

#[test]
fn thousands_of_buffers_take_few_blocks_and_leave_none() {
    let fake = Fake::new(&[Card::default()]);
    let device = open(&fake);
    let mut stream = device.clone().stream().unwrap();
    for round in 0..3 {
        let held: Vec<_> = (0..2000).map(|i| device.allocate_unset(1 + (i * 37 + round) % 5000).unwrap()).collect();
        for buffer in &held {
            stream.write(&**buffer, 0, &[round as u8]).unwrap();
        }
        assert!(fake.blocks() < 8, "{} blocks", fake.blocks());
        assert!(device.live() >= held.len());
    }
    stream.synchronize().unwrap();
    assert_eq!(device.live(), 0);
    assert!(fake.calls("event_create") < 100, "{} events", fake.calls("event_create"));
    device.trim();
    assert_eq!(fake.blocks(), 0);
    drop(stream);
    clean(&fake, device);
}
