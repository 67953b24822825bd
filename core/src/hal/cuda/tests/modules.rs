//! Tests of users' kernels: what modules declare, and what is refused.

use super::*;
use crate::hal::cuda::api::code;
use crate::hal::lowering::Kernels;
use crate::hal::{NumberKind, PushNumber};

/// Returns the number of images that are tried before a kernel's module is loaded.
fn tried(fake: &Fake) -> usize {
    let device = open(fake);
    let before = fake.calls("module_load");
    // A driver in host memory has no kernels of operations.
    let error = device.shared.modules.function(&device.shared, Kernels::Elementwise, c"elementwise").unwrap_err();
    assert_eq!(error.status(), Status::Internal, "{error}");
    let tried = fake.calls("module_load") - before;
    clean(fake, device);
    tried
}

#[test]
fn what_the_driver_refuses_is_replaced_by_ptx() {
    let fake = Fake::new(&[Card::default()]);
    assert_eq!(tried(&fake), 1, "machine code");
    for refused in [code::INVALID_IMAGE, code::NO_BINARY_FOR_GPU] {
        fake.fail("module_load", 0, 1, refused);
        assert_eq!(tried(&fake), 2, "{refused}: PTX behind it");
        fake.fail("module_load", 0, 2, refused);
        assert_eq!(tried(&fake), 2, "{refused}: nothing is left");
        fake.heal();
    }
    fake.fail("module_load", 0, 1, code::OUT_OF_MEMORY);
    let device = open(&fake);
    let error = device.shared.modules.function(&device.shared, Kernels::Elementwise, c"elementwise").unwrap_err();
    assert_eq!(error.status(), Status::OutOfMemory, "{error}");
    clean(&fake, device);
    // Without machine code, nothing follows the PTX.
    let fake = {
        drop(fake);
        Fake::new(&[Card { capability: 75, ..Card::default() }])
    };
    fake.fail("module_load", 0, 1, code::NO_BINARY_FOR_GPU);
    assert_eq!(tried(&fake), 1);
}

/// A kernel from the examples for users.
const EXAMPLE: &str = include_str!("../../../../../examples/kernels/vecadd.ptx");

#[test]
fn users_kernels() {
    let fake = Fake::new(&[Card::default()]);
    let device = open(&fake);
    let mut stream = device.clone().stream().unwrap();
    let vecadd = device.kernel(&source(VECADD)).unwrap();
    assert_eq!((vecadd.name(), vecadd.parameters().len(), vecadd.push_bytes()), ("vecadd", 3, 4));
    assert_eq!((vecadd.workgroup(), vecadd.parameters()[2].slot), ([256, 1, 1], (0, 2)));
    let n = PushNumber { name: "n".into(), offset: 0, kind: NumberKind::Word(4) };
    assert_eq!(vecadd.push_numbers(), std::slice::from_ref(&n));
    // Compilers leave no names, and no types of a structure's fields.
    assert_eq!(device.kernel(&source(EXAMPLE)).unwrap().push_numbers(), [PushNumber { name: String::new(), ..n }]);
    assert_eq!(device.kernel(&entry("bump")).unwrap().push_numbers(), []);
    let ones = upload(&device, &mut *stream, &[1f32.to_bits(); 1000]);
    let twos = upload(&device, &mut *stream, &[2f32.to_bits(); 1000]);
    let first = device.allocate(4000).unwrap();
    let (n, groups) = (1000u32.to_ne_bytes(), [4, 1, 1]);
    let buffers = [whole(&*ones), whole(&*twos), whole(&*first)];
    stream.dispatch(&*vecadd, &buffers, &n, groups).unwrap();
    // A kernel may be dropped while it runs.
    drop(vecadd);
    assert_eq!(words(&mut *stream, &*first), [3f32.to_bits(); 1000]);

    // Buffers may too, and others may take their place.
    let sums = {
        let (fives, sums) = (upload(&device, &mut *stream, &[5f32.to_bits(); 1000]), device.allocate(4000).unwrap());
        let vecadd = device.kernel(&source(EXAMPLE)).unwrap();
        // Only the kernel uses the buffers.
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

    // Push constants have their own offsets: the second is at a multiple of eight.
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
    // A stream that is dropped with work in flight waits for it.
    let late = upload(&device, &mut *stream, &[1; 1000]);
    stream.clear(whole(&*late)).unwrap();
    drop((late, stream));
    device.trim();
    clean(&fake, device);
}

const CUBIN: &[u8] = include_bytes!("../testdata/kernels.cubin");
const PTX: &str = include_str!("../testdata/kernels.ptx");

#[test]
fn machine_code() {
    // A cubin and the PTX that it was made from declare the same, except for types.
    let (mut of_cubin, mut of_text) = (cubin::entries(CUBIN).unwrap(), ptx::entries(PTX).unwrap());
    for entries in [&mut of_cubin, &mut of_text] {
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries.iter_mut().for_each(|entry| entry.numbers.clear());
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

    // A file cut off anywhere, or with any byte changed, gives an error or another module, and never a panic.
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
        ("hello", "expected .version, got 'hello'"),
        (".version eight\n", "expected a version, got 'eight'"),
        (".version 8.0\n.target texmode_unified\n", "line 2"),
        (".version 8.0\n.target sm_70\n.address_size 32\n", "line 3"),
        (".version 8.0\n.target sm_70\n.entry f() { ret; }", "expected .address_size 64"),
    ];
    for (text, part) in malformed {
        let error = of(text);
        assert_eq!(error.status(), Status::InvalidKernel, "{text:?}");
        assert!(error.message().contains(part), "{text:?}: {error}");
    }
    for (text, part) in [
        (".entry", "line 4: expected "),
        (".entry 7f() { ret; }", "expected a name, got '7f'"),
        (".entry f(.param .u64 a) {\n ret;", "line 5: expected }, got the end"),
        (".entry f(.param .u64 a) { ret; ) }", "expected }, got ')'"),
        ("}\n", "expected an opening bracket, got '}'"),
        (".entry f(.param .u64 a,\n) { ret; }", "line 5"),
        (".entry f(.param .u64 a .param .u64 b) { ret; }", "expected ',' or ')'"),
        (".entry f(.reg .u64 a) { ret; }", "expected .param, got '.reg'"),
        (".entry f(.param .texref a) { ret; }", "expected a parameter's type, got '.texref'"),
        (".entry f(.param a) { ret; }", "expected a parameter's type, got 'a'"),
        (".entry f(.param .u64) { ret; }", "expected a parameter's name, got ')'"),
        (".entry f(.param .align 3 .b8 a[8]) { ret; }", "power of two"),
        (".entry f(.param .b8 a[0]) { ret; }", "0 bytes"),
        (".entry f(.param .b8 a[40000]) { ret; }", "0 bytes, or"),
        (".entry f(.param .b8 a[x]) { ret; }", "expected an array's length, got 'x'"),
        (".entry f() .reqntid { ret; }", "expected a number of threads, got '.reqntid'"),
        (".entry f() .reqntid 0 { ret; }", "expected a number of threads, got '.reqntid'"),
        (".entry f() .maxntid 1,2,3,4 { ret; }", "no fourth"),
        (".entry f() .maxntid 1, { ret; }", "expected a number, got '{'"),
        (".entry f() ret;", "expected a kernel's body, got 'ret'"),
        (".entry f() { .entry g() { ret; } }", "expected }, got '.entry'"),
        ("/* no end", "comment does not end"),
        (".file 1 \"no end\n", "quotes does not end"),
        ("\u{7f}", "does not use"),
        (".global .u32 x;", "it has no kernel"),
        (".entry f() ;", "it has no kernel"),
    ] {
        let error = of(&format!("{head}{text}"));
        assert_eq!(error.status(), Status::InvalidKernel, "{text:?}");
        assert!(error.message().contains(part), "{text:?}: {error}");
    }
    assert_eq!(fake.calls("module_load"), 0, "the driver sees none of them");
    // PTX cut off anywhere.
    for end in 0..PTX.trim_end().len() {
        if let Err(error) = ptx::entries(&PTX[..end]) {
            assert_eq!(error.status(), Status::InvalidKernel);
        }
    }

    let other = |code: &[u8], constants: &[(u32, u32)]| {
        device.kernel(&KernelSource { code, entry: None, constants, workgroup: None }).err().unwrap()
    };
    let spirv = other(include_bytes!("../../../../../examples/kernels/vecadd.spv"), &[]);
    assert_eq!(spirv.status(), Status::InvalidKernel);
    assert!(spirv.message().contains("Vulkan"), "{spirv}");
    assert_eq!(other(b"\xff\xfe\x00\x01", &[]).status(), Status::InvalidKernel);
    assert_eq!(other(b"\x7fELF of something else", &[]).status(), Status::InvalidKernel);
    assert_eq!(other(VECADD.as_bytes(), &[(10, 1)]).status(), Status::InvalidArgument);
    assert_eq!(status(device.kernel(&entry("gone"))), Some(Status::InvalidArgument));
    // Reasons that the driver gives.
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
    let typed: Vec<_> = entries[0].numbers.iter().map(|number| (number.offset, number.kind)).collect();
    assert_eq!(
        typed,
        [(0, NumberKind::Word(8)), (8, NumberKind::Word(4)), (16, NumberKind::Word(8)), (96, NumberKind::Word(1))]
    );
}
