//! The host side on a driver in host memory: the device layer's suite, and a driver that fails.

use super::api::Api;
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

/// Everything went back, and nothing was done that the driver would not forgive.
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

#[test]
fn conformance() {
    let fake = Fake::new(&[Card::default()]);
    let device = open(&fake);
    let shared: Arc<dyn Device> = device.clone();
    crate::hal::cts::run_without_operations(&shared);
    drop(shared);
    clean(&fake, device);
}

/// Writes these words to a new buffer.
fn upload(device: &Arc<CudaDevice>, stream: &mut dyn Stream, words: &[u32]) -> Arc<dyn Buffer> {
    let buffer = device.allocate_unset(4 * words.len()).unwrap();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    stream.write(&*buffer, 0, &bytes).unwrap();
    buffer
}

/// The push constants of bump.
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
        // SAFETY: nothing of the table is called.
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
    // And one that has no devices.
    let error = CudaDevice::open(0, &fake.opening()).err().unwrap();
    assert_eq!(error.status(), Status::BackendUnavailable);
    // What this machine has can be asked for, whatever that is.
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
    assert_eq!(&*all[1].bus, "0000:3c:00.0");
    let error = CudaDevice::open(1, &fake.opening()).err().unwrap();
    assert_eq!(error.status(), Status::Unsupported);
    assert!(error.message().contains("6.1") && error.message().contains("7.0"), "{error}");
    assert_eq!(status(CudaDevice::open(3, &fake.opening())), Some(Status::BackendUnavailable));
    assert_eq!(fake.live(), 0);
}

#[test]
fn out_of_memory() {
    let fake = Fake::new(&[Card { memory: 64 << 20, ..Card::default() }]);
    let device = open(&fake);
    // What is idle is given back and the driver asked again, for no more than is needed.
    drop(device.allocate_unset(30 << 20).unwrap());
    assert_eq!(device.memory().held, 30 << 20);
    let kept = device.allocate_unset(40 << 20).unwrap();
    assert_eq!((device.memory().held, device.memory().free), (40 << 20, 24 << 20));
    assert_eq!(fake.calls("memory_allocate"), 3);
    // No more is there: an error with the numbers, and what is there stays.
    let error = device.allocate_unset(30 << 20).err().unwrap();
    assert_eq!(error.status(), Status::OutOfMemory);
    for part in ["31457280 bytes", "25165824 of 67108864 bytes are free", "1 allocations"] {
        assert!(error.message().contains(part), "{error}");
    }
    assert_eq!(status(device.allocate(usize::MAX)), Some(Status::OutOfMemory));
    let small = device.allocate(20 << 20).unwrap();
    // Without pinned memory nothing moves, and nothing is lost.
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
    for way in 0..4 {
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
            2 => fake.fail("event_query", 0, 1, 714),
            _ => fake.fail("event_record", 0, 1, 702),
        }
        let lost = stream.write(&*buffer, 0, &[2; 1000]).and_then(|()| stream.synchronize()).unwrap_err();
        assert_eq!(lost.status(), Status::DeviceLost, "{lost}");
        assert!(lost.message().contains("open it anew"), "{lost}");
        // From here on everything says so, though the driver would answer.
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
        // The other device works on.
        assert_eq!(other.allocate(16).unwrap().size(), 16);
        drop((buffer, stream, event));
        clean_lost(&fake, device);
        // Another opening of it is another device.
        let again = open(&fake);
        assert_eq!(again.allocate(16).unwrap().size(), 16);
        drop(other);
        clean(&fake, again);
    }
}

/// As [`clean`], with another device still open.
fn clean_lost(fake: &Fake, device: Arc<CudaDevice>) {
    assert_eq!(device.live(), 0);
    let left = fake.live();
    drop(device);
    assert!(fake.live() < left);
    assert_eq!(fake.violations(), Vec::<String>::new());
}

#[test]
fn users_kernels() {
    let fake = Fake::new(&[Card::default()]);
    let device = open(&fake);
    let mut stream = device.clone().stream().unwrap();
    let vecadd = device.kernel(&source(VECADD)).unwrap();
    assert_eq!((vecadd.name(), vecadd.parameters().len(), vecadd.push_bytes()), ("vecadd", 3, 4));
    assert_eq!((vecadd.workgroup(), vecadd.parameters()[2].slot), ([256, 1, 1], (0, 2)));
    let ones = upload(&device, &mut *stream, &[1f32.to_bits(); 1000]);
    let twos = upload(&device, &mut *stream, &[2f32.to_bits(); 1000]);
    let first = device.allocate(4000).unwrap();
    let (n, groups) = (1000u32.to_ne_bytes(), [4, 1, 1]);
    let buffers = [whole(&*ones), whole(&*twos), whole(&*first)];
    stream.dispatch(&*vecadd, &buffers, &n, groups).unwrap();
    // It may be dropped while it runs.
    drop(vecadd);
    assert_eq!(words(&mut *stream, &*first), [3f32.to_bits(); 1000]);

    // And so may its buffers, whoever takes their place.
    let sums = {
        let (fives, sums) = (upload(&device, &mut *stream, &[5f32.to_bits(); 1000]), device.allocate(4000).unwrap());
        let vecadd = device.kernel(&source(VECADD)).unwrap();
        // Nothing but the kernel uses them.
        stream.synchronize().unwrap();
        stream.dispatch(&*vecadd, &[whole(&*fives), whole(&*fives), whole(&*sums)], &n, groups).unwrap();
        sums
    };
    let mut other = device.clone().stream().unwrap();
    let others: Vec<_> = (0..10).map(|i| upload(&device, &mut *other, &[i; 1000])).collect();
    other.synchronize().unwrap();
    assert_eq!(words(&mut *stream, &*sums), [10f32.to_bits(); 1000]);
    drop((other, others));
    stream.write(&*sums, 0, &3f32.to_ne_bytes().repeat(1000)).unwrap();

    // Push constants at their own offsets: the second one stands on a multiple of eight.
    let bump = device.kernel(&entry("bump")).unwrap();
    assert_eq!((bump.parameters().len(), bump.push_bytes(), bump.workgroup()), (1, 16, [64, 2, 1]));
    let part = Slice { buffer: &*sums, offset: 16, bytes: 400 };
    stream.dispatch(&*bump, &[part], &bump_by(100, 7), [1, 1, 1]).unwrap();
    let bumped = words(&mut *stream, &*sums);
    assert_eq!(
        (bumped[3], bumped[4], bumped[103], bumped[104]),
        (3f32.to_bits(), 3f32.to_bits() + 7, 3f32.to_bits() + 7, 3f32.to_bits())
    );

    let refused = [
        stream.dispatch(&*bump, &[], &bump_by(1, 1), [1, 1, 1]),
        stream.dispatch(&*bump, &[part], &[0; 15], [1, 1, 1]),
        stream.dispatch(&*bump, &[part], &bump_by(1, 1), [1, 0, 1]),
        stream.dispatch(&*bump, &[part], &bump_by(1, 1), [1, 65_536, 1]),
        stream.dispatch(&*bump, &[part], &bump_by(1, 1), [u32::MAX, 1, 1]),
        stream.dispatch(&*bump, &[Slice { offset: 8, ..part }], &bump_by(1, 1), [1, 1, 1]),
        stream.dispatch(&*bump, &[Slice { bytes: 4000, ..part }], &bump_by(1, 1), [1, 1, 1]),
    ];
    for (i, refused) in refused.into_iter().enumerate() {
        assert_eq!(status(refused), Some(Status::InvalidArgument), "refusal {i}");
    }
    assert_eq!(words(&mut *stream, &*sums), bumped, "nothing was written");
    drop((ones, twos, first, sums, bump));
    // A stream that goes with work under way takes its time.
    let late = upload(&device, &mut *stream, &[1; 1000]);
    stream.clear(whole(&*late)).unwrap();
    drop((late, stream));
    device.trim();
    clean(&fake, device);
}

const CUBIN: &[u8] = include_bytes!("testdata/kernels.cubin");
const PTX: &str = include_str!("testdata/kernels.ptx");

#[test]
fn machine_code() {
    // What the file says is what the text that it was made of says.
    let (mut of_cubin, mut of_text) = (cubin::entries(CUBIN).unwrap(), ptx::entries(PTX).unwrap());
    for entries in [&mut of_cubin, &mut of_text] {
        entries.sort_by(|a, b| a.name.cmp(&b.name));
    }
    assert_eq!(of_cubin, of_text);
    assert_eq!(of_cubin[0].parameters, [(0, 8), (8, 4), (16, 8)]);

    let size = (CUBIN.len() + 9) as u64;
    let fatbin =
        [&0xba55_ed50_u32.to_le_bytes()[..], &[1, 0, 16, 0], &size.to_le_bytes(), b"of vecadd", CUBIN].concat();
    for tells in [true, false] {
        let fake = Fake::with(&[Card::default()], |api| {
            if !tells {
                api.function_parameter = None;
                api.function_name = None;
            }
        });
        let device = open(&fake);
        let of = |code, entry, workgroup| device.kernel(&KernelSource { code, entry, constants: &[], workgroup });
        let bump = of(CUBIN, Some("bump"), None).unwrap();
        assert_eq!((bump.parameters().len(), bump.push_bytes(), bump.workgroup()), (1, 16, [64, 2, 1]));
        assert_eq!(status(of(CUBIN, Some("gone"), None)), Some(Status::InvalidArgument));
        let kernel = of(&fatbin, None, Some([32, 2, 1]));
        match tells {
            true => {
                let kernel = kernel.unwrap();
                assert_eq!((kernel.name(), kernel.push_bytes(), kernel.workgroup()), ("vecadd", 4, [32, 2, 1]));
                assert_eq!(
                    status(of(&fatbin, None, None)),
                    Some(Status::InvalidArgument),
                    "nobody says how many threads"
                );
            }
            false => assert_eq!(status(kernel), Some(Status::Unsupported)),
        }
        assert_eq!(status(of(&fatbin[..fatbin.len() - 1], None, None)), Some(Status::InvalidKernel));
        drop(bump);
        clean(&fake, device);
    }

    // Cut off anywhere, or with any byte changed: an error or another module, and never a panic.
    for end in 0..CUBIN.len() {
        let cut = cubin::entries(&CUBIN[..end]);
        assert!(cut.is_err() || end > 0x1370, "{end}");
    }
    let mut damaged = CUBIN.to_vec();
    let mut refused = 0;
    for at in 0..damaged.len() {
        for change in [0xff, 0x80, 0x01] {
            damaged[at] ^= change;
            refused += usize::from(cubin::entries(&damaged).is_err());
            damaged[at] ^= change;
        }
    }
    assert!(refused > 500, "{refused}");
}

#[test]
fn workgroups() {
    let fake = Fake::new(&[Card::default()]);
    let device = open(&fake);
    let of = |name, workgroup| {
        let kernel = device.kernel(&KernelSource { workgroup, ..entry(name) })?;
        Ok::<_, Error>(kernel.workgroup())
    };
    assert_eq!(of("vecadd", None).unwrap(), [256, 1, 1]);
    assert_eq!(of("vecadd", Some([256, 1, 1])).unwrap(), [256, 1, 1]);
    assert_eq!(status(of("vecadd", Some([128, 1, 1]))), Some(Status::InvalidArgument), "it requires 256");
    assert_eq!(of("bump", Some([32, 1, 1])).unwrap(), [32, 1, 1], "no more than 128");
    assert_eq!(status(of("bump", Some([64, 3, 1]))), Some(Status::Unsupported), "it takes no more than 128");
    assert_eq!(of("complain", Some([4, 4, 4])).unwrap(), [4, 4, 4]);
    assert_eq!(status(of("complain", None)), Some(Status::InvalidArgument), "nobody says how many");
    for size in [[0, 1, 1], [1025, 1, 1], [1, 1, 65], [1024, 2, 1]] {
        assert_eq!(status(of("complain", Some(size))), Some(Status::Unsupported), "{size:?}");
    }
    clean(&fake, device);
}

#[test]
fn modules_that_are_refused() {
    let fake = Fake::new(&[Card::default()]);
    let device = open(&fake);
    let head = ".version 8.0\n.target sm_70\n.address_size 64\n";
    let of = |text: &str| device.kernel(&source(text)).err().unwrap();
    let malformed = [
        ("", "line 1"),
        ("hello", "'hello' where '.version'"),
        (".version eight\n", "'eight' is no version"),
        (".version 8.0\n.target texmode_unified\n", "line 2"),
        (".version 8.0\n.target sm_70\n.address_size 32\n", "line 3"),
        (".version 8.0\n.target sm_70\n.entry f() { ret; }", "no '.address_size 64'"),
    ];
    for (text, part) in malformed {
        let error = of(text);
        assert_eq!(error.status(), Status::InvalidKernel, "{text:?}");
        assert!(error.message().contains(part), "{text:?}: {error}");
    }
    for (text, part) in [
        (".entry", "line 4: the text ends"),
        (".entry 7f() { ret; }", "'7f' where a name"),
        (".entry f(.param .u64 a) {\n ret;", "line 5: the text ends where a closing bracket"),
        (".entry f(.param .u64 a) { ret; ) }", "')' closes a '{'"),
        ("}\n", "'}' closes nothing"),
        (".entry f(.param .u64 a,\n) { ret; }", "line 5"),
        (".entry f(.param .u64 a .param .u64 b) { ret; }", "where ',' or ')'"),
        (".entry f(.reg .u64 a) { ret; }", "'.reg' where '.param'"),
        (".entry f(.param .texref a) { ret; }", "type '.texref'"),
        (".entry f(.param a) { ret; }", "'a' where a parameter's type"),
        (".entry f(.param .u64) { ret; }", "')' where a parameter's type"),
        (".entry f(.param .align 3 .b8 a[8]) { ret; }", "an alignment of 3"),
        (".entry f(.param .b8 a[0]) { ret; }", "0 bytes"),
        (".entry f(.param .b8 a[40000]) { ret; }", "40000 bytes"),
        (".entry f(.param .b8 a[x]) { ret; }", "'x' where an array's length"),
        (".entry f() .reqntid { ret; }", ".reqntid has no number"),
        (".entry f() .reqntid 0 { ret; }", ".reqntid has no number"),
        (".entry f() .maxntid 1,2,3,4 { ret; }", "more than three"),
        (".entry f() .maxntid 1, { ret; }", "'{' where a number"),
        (".entry f() ret;", "'ret' where the body"),
        (".entry f() { .entry g() { ret; } }", "a kernel in what"),
        ("/* no end", "comment does not end"),
        (".file 1 \"no end\n", "quotes does not end"),
        ("\u{7f}", "0x7f"),
        (".global .u32 x;", "the module has no kernel"),
        (".entry f() ;", "the module has no kernel"),
    ] {
        let error = of(&format!("{head}{text}"));
        assert_eq!(error.status(), Status::InvalidKernel, "{text:?}");
        assert!(error.message().contains(part), "{text:?}: {error}");
    }
    assert_eq!(fake.calls("module_load"), 0, "the driver sees none of them");
    // Cut off anywhere.
    for end in 0..PTX.trim_end().len() {
        if let Err(error) = ptx::entries(&PTX[..end]) {
            assert_eq!(error.status(), Status::InvalidKernel);
        }
    }

    let other = |code: &[u8], constants: &[(u32, u32)]| {
        device.kernel(&KernelSource { code, entry: None, constants, workgroup: None }).err().unwrap()
    };
    let spirv = other(include_bytes!("../../../../examples/kernels/vecadd.spv"), &[]);
    assert_eq!(spirv.status(), Status::InvalidKernel);
    assert!(spirv.message().contains("Vulkan"), "{spirv}");
    assert_eq!(other(b"\xff\xfe\x00\x01", &[]).status(), Status::InvalidKernel);
    assert_eq!(other(b"\x7fELF of something else", &[]).status(), Status::InvalidKernel);
    assert_eq!(other(VECADD.as_bytes(), &[(10, 1)]).status(), Status::InvalidArgument);
    assert_eq!(status(device.kernel(&entry("gone"))), Some(Status::InvalidArgument));
    // The driver's own reasons.
    let error = of(&VECADD.replace("ret;", "refuse;"));
    assert_eq!(error.status(), Status::InvalidKernel);
    assert!(
        error.message().contains("CUDA_ERROR_INVALID_PTX") && error.message().contains("no instruction"),
        "{error}"
    );
    assert_eq!(of(&VECADD.replace("sm_70", "sm_999")).status(), Status::Unsupported);
    assert_eq!(of(&VECADD.replace("vecadd", "unknown")).status(), Status::InvalidKernel);
    clean(&fake, device);
}

#[test]
fn texts_as_compilers_write_them() {
    let text = "
// Generated by NVIDIA NVVM Compiler
.version 8.4
.target sm_90a, debug
.address_size 64
.extern .func (.param .b32 func_retval0) vprintf (.param .b64 a, .param .b64 b);
.global .align 4 .b8 table[8] = {0, 1, 2, 3, 4, 5, 6, 7};
.extern .shared .align 16 .b8 tile[];
.func (.reg .f32 r) twice(.reg .f32 x) { add.f32 r, x, x; ret; }
.visible .entry _Z5firstPfiS_(
\t.param .u64 .ptr .align 1 _Z5firstPfiS__param_0,
\t.param .u32 _Z5firstPfiS__param_1,
\t.param .u64 .ptr .global .align 16 _Z5firstPfiS__param_2,
\t.param .align 16 .b8 _Z5firstPfiS__param_3[48],
\t.param .f64 _Z5firstPfiS__param_4[2],
\t.param .s8 _Z5firstPfiS__param_5
)
.maxntid 0x80, 1, 1
.minnctapersm 2
.pragma \"a pragma\";
{
\t.reg .pred %p<2>;
\t.loc 1 3 1 // { not a bracket
\t@%p1 bra $L__BB0_2;
\tld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+16];
$L__BB0_2:
\tret;
}
.file 1 \"/src/a (1).cu\"
.section .debug_str { .b8 95, 90 }
";
    let entries = ptx::entries(text).unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!((&*entries[0].name, entries[0].most, entries[0].required), ("_Z5firstPfiS_", Some([128, 1, 1]), None));
    assert_eq!(entries[0].parameters, [(0, 8), (8, 4), (16, 8), (32, 48), (80, 16), (96, 1)]);
}

#[test]
fn recordings() {
    let fake = Fake::new(&[Card::default()]);
    let device = open(&fake);
    let mut stream = device.clone().stream().unwrap();
    let (buffer, copy) = (upload(&device, &mut *stream, &[1, 10, 100]), device.allocate(12).unwrap());
    let bump = device.kernel(&entry("bump")).unwrap();
    stream.start_recording().unwrap();
    stream.dispatch(&*bump, &[whole(&*buffer)], &bump_by(2, 5), [1, 1, 1]).unwrap();
    stream.copy(whole(&*buffer), whole(&*copy)).unwrap();
    let mut byte = [0];
    let refused = [
        stream.read(&*buffer, 0, &mut byte),
        stream.write(&*buffer, 0, &byte),
        stream.synchronize(),
        stream.event().map(drop),
        stream.timestamp().map(drop),
        stream.start_recording(),
        stream.download(whole(&*buffer)).map(drop),
    ];
    for (i, refused) in refused.into_iter().enumerate() {
        assert_eq!(status(refused), Some(Status::InvalidArgument), "refusal {i}");
    }
    let recording = stream.finish_recording().unwrap();
    assert_eq!(status(stream.finish_recording()), Some(Status::InvalidArgument));
    assert_eq!(words(&mut *stream, &*copy), [0; 3], "recording runs nothing");
    for _ in 0..100 {
        stream.replay(&*recording).unwrap();
    }
    assert_eq!(words(&mut *stream, &*copy), [501, 510, 100]);
    let mut other = device.clone().stream().unwrap();
    other.replay(&*recording).unwrap();
    // Its memory and kernel live as long as it and its work.
    drop((recording, bump, buffer));
    assert_eq!(words(&mut *other, &*copy), [506, 515, 100]);
    // One that is never finished, and one that the driver spoils.
    other.start_recording().unwrap();
    other.clear(whole(&*copy)).unwrap();
    drop(other);
    fake.fail("capture_end", 0, 1, 901);
    stream.start_recording().unwrap();
    stream.clear(whole(&*copy)).unwrap();
    assert_eq!(status(stream.finish_recording()), Some(Status::Internal));
    drop((stream, copy));
    clean(&fake, device);
}

/// What the words of a fault say.
fn explain(words: [u32; 4]) -> Error {
    Error::new(Status::InvalidArgument, format!("{words:?} is wrong"))
}

#[test]
fn faults_that_kernels_find() {
    let fake = Fake::new(&[Card::default()]);
    let device = open(&fake);
    let source = entry("complain");
    let module = UserKernel::new(&device.shared, &KernelSource { workgroup: Some([1, 1, 1]), ..source }).unwrap();
    let mut stream = CudaStream::new(&device.shared).unwrap();
    // The kernel's own buffer is four words of the stream's.
    let complain = |stream: &mut CudaStream, word: u32| -> Result<()> {
        let words = stream.fault_words(explain)?;
        let parameters = [&words.to_ne_bytes()[..], &word.to_ne_bytes()].concat();
        // SAFETY: a function with a pointer and a word.
        unsafe { stream.launch(module.function(), [1, 1, 1], [1, 1, 1], 0, &parameters)? };
        stream.close_if_full()
    };
    complain(&mut stream, 0).unwrap();
    stream.synchronize().unwrap();
    // The first of several, once.
    for word in [0, 7, 8, 0] {
        complain(&mut stream, word).unwrap();
    }
    let error = stream.synchronize().unwrap_err();
    assert_eq!(error.message(), "[7, 1, 2, 3] is wrong");
    stream.synchronize().unwrap();
    // More than a batch of them.
    for i in 0..200 {
        complain(&mut stream, if i == 150 { 150 } else { 0 }).unwrap();
    }
    assert_eq!(stream.synchronize().unwrap_err().message(), "[150, 1, 2, 3] is wrong");
    // What is read may come of wrong data: then nothing is.
    let buffer = device.allocate(4).unwrap();
    complain(&mut stream, 9).unwrap();
    let mut bytes = [0xaa; 4];
    assert_eq!(status(stream.read(&*buffer, 0, &mut bytes)), Some(Status::InvalidArgument));
    assert_eq!(bytes, [0xaa; 4]);
    stream.read(&*buffer, 0, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 4]);
    // Each replay finds its own, in whichever stream.
    stream.start_recording().unwrap();
    complain(&mut stream, 0).unwrap();
    complain(&mut stream, 5).unwrap();
    let recording = stream.finish_recording().unwrap();
    stream.synchronize().unwrap();
    let mut other = CudaStream::new(&device.shared).unwrap();
    for stream in [&mut stream, &mut other] {
        for _ in 0..2 {
            stream.replay(&*recording).unwrap();
            assert_eq!(stream.synchronize().unwrap_err().message(), "[5, 1, 2, 3] is wrong");
            stream.synchronize().unwrap();
        }
    }
    drop((stream, other, recording, buffer, module));
    clean(&fake, device);
}

#[test]
fn events_order_streams_and_memory_outlives_its_work() {
    let fake = Fake::new(&[Card::default()]);
    let device = open(&fake);
    let (mut a, mut b) = (device.clone().stream().unwrap(), device.clone().stream().unwrap());
    let bump = device.kernel(&entry("bump")).unwrap();
    let result = device.allocate(400).unwrap();
    {
        let buffer = upload(&device, &mut *a, &[3; 100]);
        for _ in 0..300 {
            a.dispatch(&*bump, &[whole(&*buffer)], &bump_by(100, 1), [1, 1, 1]).unwrap();
        }
        let event = a.event().unwrap();
        assert!(!event.is_done().unwrap());
        assert_eq!(status(event.wait(0)), Some(Status::NotReady));
        assert!(!a.is_idle().unwrap());
        b.wait(&*event).unwrap();
        b.copy(whole(&*buffer), whole(&*result)).unwrap();
    }
    // What was dropped is not given to others before its work is done.
    let others: Vec<_> = (0..50).map(|i| upload(&device, &mut *b, &[i; 100])).collect();
    let mut bytes = [0; 400];
    let download = b.download(whole(&*result)).unwrap();
    b.clear(whole(&*result)).unwrap();
    assert!(!download.is_done().unwrap());
    download.take(&mut bytes).unwrap();
    assert_eq!(bytes, *[303u32.to_ne_bytes(); 100].as_flattened());
    assert_eq!(words(&mut *b, &*others[49]), [49; 100]);
    assert!(a.is_idle().unwrap() && b.is_idle().unwrap());
    b.flush().unwrap();
    // A time is not there before the device comes to it.
    a.clear(whole(&*result)).unwrap();
    let time = a.timestamp().unwrap();
    assert_eq!(status(time.nanoseconds()), Some(Status::NotReady));
    a.synchronize().unwrap();
    assert!(time.nanoseconds().unwrap() > 0);
    // Of two openings.
    let second = open(&fake);
    let mut foreign = second.clone().stream().unwrap();
    let event = foreign.event().unwrap();
    assert_eq!(status(a.wait(&*event)), Some(Status::InvalidArgument));
    assert_eq!(status(foreign.clear(whole(&*result))), Some(Status::InvalidArgument));
    assert_eq!(status(foreign.dispatch(&*bump, &[], &[], [1, 1, 1])), Some(Status::InvalidArgument));
    drop((foreign, event, time, others, result, bump, a, b, second));
    clean(&fake, device);
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

#[test]
fn the_current_context_is_whose_it_was() {
    let fake = Fake::new(&[Card::default(), Card::default()]);
    let (first, second) = (open(&fake), Arc::new(CudaDevice::open(1, &fake.opening()).unwrap()));
    let api = &fake.driver().api;
    let current = || {
        let mut context = std::ptr::null_mut();
        // SAFETY: it writes a handle.
        unsafe { (api.context_current)(&mut context) };
        context
    };
    let entered = second.shared.enter().unwrap();
    let before = current();
    assert!(!before.is_null());
    let (mut a, mut b) = (first.clone().stream().unwrap(), second.clone().stream().unwrap());
    let (x, y) = (upload(&first, &mut *a, &[1, 2]), upload(&second, &mut *b, &[3, 4]));
    assert_eq!((words(&mut *a, &*x), words(&mut *b, &*y)), (vec![1, 2], vec![3, 4]));
    let pushes = fake.calls("context_push");
    b.clear(whole(&*y)).unwrap();
    assert_eq!((fake.calls("context_push"), current()), (pushes, before), "its own context was there");
    assert_eq!(status(a.copy(whole(&*y), whole(&*x))), Some(Status::InvalidArgument));
    drop((x, y, a, b, entered));
    assert!(current().is_null());
    // Several threads, none of which has a context.
    std::thread::scope(|scope| {
        for i in 0..4 {
            let (first, second) = (&first, &second);
            scope.spawn(move || {
                for device in [first, second].repeat(5) {
                    let mut stream = device.clone().stream().unwrap();
                    let buffer = upload(device, &mut *stream, &[i; 1000]);
                    assert_eq!(words(&mut *stream, &*buffer), [i; 1000]);
                }
            });
        }
    });
    drop(second);
    clean(&fake, first);
}

/// Something of everything.
fn everything(fake: &Fake) -> Result<()> {
    let device = Arc::new(CudaDevice::open(0, &fake.opening())?);
    let (mut a, mut b) = (device.clone().stream()?, device.clone().stream()?);
    let (x, y) = (device.allocate(4096)?, device.allocate_unset(9 << 20)?);
    let bump = device.kernel(&entry("bump"))?;
    a.write(&*x, 0, &[1; 4096])?;
    a.write(&*y, 0, &vec![2; 9 << 20])?;
    a.dispatch(&*bump, &[whole(&*x)], &bump_by(10, 1), [1, 1, 1])?;
    let event = a.event()?;
    b.wait(&*event)?;
    let begin = b.timestamp()?;
    let download = b.download(whole(&*x))?;
    b.start_recording()?;
    b.copy(whole(&*x), Slice { bytes: 4096, ..whole(&*y) })?;
    b.dispatch(&*bump, &[whole(&*x)], &bump_by(10, 1), [1, 1, 1])?;
    let recording = b.finish_recording()?;
    b.replay(&*recording)?;
    b.clear(whole(&*x))?;
    let mut bytes = vec![0; 9 << 20];
    b.read(&*y, 0, &mut bytes)?;
    assert_eq!((bytes[0], bytes[4], bytes[40], bytes[4096]), (2, 2, 1, 2));
    download.take(&mut bytes[..4096])?;
    assert_eq!((bytes[0], bytes[40]), (2, 1));
    assert!(begin.nanoseconds()? > 0);
    a.synchronize()?;
    b.flush()?;
    b.synchronize()?;
    event.wait(1)?;
    device.trim();
    Ok(())
}

#[test]
fn every_function_may_fail_at_any_time() {
    let fake = Fake::new(&[Card::default()]);
    everything(&fake).unwrap();
    assert_eq!((fake.violations(), fake.live()), (Vec::new(), 0));
    let mut failed = 0;
    for function in [
        "device_count",
        "device_get",
        "device_memory",
        "context_retain",
        "context_current",
        "memory_allocate",
        "host_allocate",
        "copy_to_device",
        "copy_to_host",
        "copy_on_device",
        "set_words",
        "stream_create",
        "stream_synchronize",
        "stream_wait",
        "capture_begin",
        "capture_end",
        "event_create",
        "event_record",
        "event_query",
        "event_synchronize",
        "event_elapsed",
        "module_load",
        "module_function",
        "function_attribute",
        "launch",
        "graph_instantiate",
        "graph_launch",
    ] {
        let before = fake.calls(function);
        everything(&fake).unwrap();
        let calls = fake.calls(function) - before;
        for after in (0..calls).step_by(1 + calls / 12) {
            for result in [1, 2, 719, 999] {
                fake.fail(function, after, 1, result);
                let outcome = everything(&fake);
                fake.heal();
                failed += usize::from(outcome.is_err());
                let lost = outcome.is_err_and(|error| error.status() == Status::DeviceLost);
                let context = function.starts_with("context") || function.starts_with("device");
                assert!(lost || result != 719 || context, "{function} after {after} calls");
                let what = format!("{function} after {after} calls gives {result}");
                assert_eq!((fake.violations(), fake.live()), (Vec::new(), 0), "{what}");
                everything(&fake).unwrap_or_else(|error| panic!("{what}, and then {error}"));
            }
        }
    }
    assert!(failed > 200, "{failed}");
}

#[cfg(unix)]
mod processes {
    use super::*;
    use std::process::Command;

    unsafe extern "C" {
        fn fork() -> i32;
        fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
        fn _exit(status: i32) -> !;
    }

    #[test]
    fn a_child_never_calls_the_driver() {
        let fake = Fake::new(&[Card::default()]);
        let device = open(&fake);
        let mut stream = device.clone().stream().unwrap();
        let buffer = device.allocate(1 << 20).unwrap();
        let bump = device.kernel(&entry("bump")).unwrap();
        stream.dispatch(&*bump, &[whole(&*buffer)], &bump_by(100, 1), [2, 1, 1]).unwrap();
        let event = stream.event().unwrap();
        let calls = fake.all_calls();
        // SAFETY: the child uses what this thread has, no lock of another's, and leaves by _exit.
        let child = unsafe { fork() };
        assert!(child >= 0);
        if child == 0 {
            let refused = [
                status(device.allocate(16)),
                status(device.clone().stream()),
                status(stream.clear(whole(&*buffer))),
                status(stream.synchronize()),
                status(event.is_done()),
                status(CudaDevice::open(0, &fake.opening())),
            ];
            let all = refused.iter().all(|status| *status == Some(Status::BackendUnavailable));
            drop((event, bump, buffer, stream));
            drop(device);
            let quiet = fake.all_calls() == calls;
            // SAFETY: it ends the child.
            unsafe { _exit(if all && quiet { 0 } else { 1 }) };
        }
        let mut status = -1;
        // SAFETY: a child of this process; it writes a number.
        assert_eq!(unsafe { waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0);
        stream.synchronize().unwrap();
        drop((event, bump, buffer, stream));
        clean(&fake, device);
    }

    /// Ends a process with work under way; run by the next test.
    fn leave() -> ! {
        let fake = Fake::new(&[Card::default()]);
        let device = open(&fake);
        let mut stream = device.clone().stream().unwrap();
        let buffer = device.allocate(1 << 20).unwrap();
        stream.clear(whole(&*buffer)).unwrap();
        std::process::exit(0);
    }

    #[test]
    fn a_process_may_end_with_work_under_way() {
        const LEAVE: &str = "ADEAD_TEST_LEAVE";
        if std::env::var_os(LEAVE).is_some() {
            leave();
        }
        let own = std::env::current_exe().unwrap();
        let name = "hal::cuda::tests::processes::a_process_may_end_with_work_under_way";
        let ended = Command::new(own).args(["--exact", name]).env(LEAVE, "1").output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
        // It ended where it was told to, before its test did.
        assert!(!String::from_utf8_lossy(&ended.stdout).contains("test result"), "{ended:?}");
    }
}
