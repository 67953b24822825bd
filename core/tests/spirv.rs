//! Users' SPIR-V modules: what reflection reports, and that malformed modules are refused.

use adead_core::Status;
use adead_core::hal::spirv::{Binding, BindingKind, ConstantKind, EntryPoint, Member, Module};
use adead_core::hal::{NumberKind, PushNumber};
use proptest::prelude::*;
use std::io::Write;
use std::process::{Command, Stdio};

const VECADD: &[u8] = include_bytes!("../../examples/kernels/vecadd.spv");
const MATMUL: &[u8] = include_bytes!("../../examples/kernels/matmul.spv");
const REDUCE: &[u8] = include_bytes!("../../examples/kernels/reduce.spv");
const OLD: &[u8] = include_bytes!("data/old.spv");
const CONSTANTS: &[u8] = include_bytes!("data/constants.spv");
const MANY: &[u8] = include_bytes!("data/many.spv");
const PUSH: &[u8] = include_bytes!("data/push.spv");
const ALL: [&[u8]; 7] = [VECADD, MATMUL, REDUCE, OLD, CONSTANTS, MANY, PUSH];

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn storage(set: u32, binding: u32, stride: u64) -> Binding {
    let kind = BindingKind::StorageBuffer;
    Binding { set, binding, kind, count: 1, readable: true, writable: true, bytes: 0, stride }
}

fn read(binding: u32) -> Binding {
    Binding { writable: false, ..storage(0, binding, 4) }
}

fn written(binding: u32) -> Binding {
    Binding { readable: false, ..storage(0, binding, 4) }
}

fn only(module: &Module) -> &EntryPoint {
    assert_eq!(module.entry_points().len(), 1);
    assert_eq!(module.entry_points()[0].name, "main");
    &module.entry_points()[0]
}

fn refused(words: &[u32], text: &str) {
    let error = Module::parse(&bytes(words)).expect_err(text);
    assert_eq!(error.status(), Status::InvalidKernel);
    assert!(error.message().contains(text), "{error}, expected: {text}");
}

#[test]
fn the_examples() {
    let module = Module::parse(VECADD).unwrap();
    assert_eq!((module.words(), module.capabilities()), (&words(VECADD)[..], &[1][..]));
    assert!(module.extensions().is_empty() && module.constants().is_empty());
    let main = only(&module);
    assert_eq!((main.workgroup_size, main.workgroup_constants, main.shared_bytes), ([256, 1, 1], [None; 3], 0));
    assert_eq!(main.bindings, [read(0), read(1), written(2)]);
    let push = main.push_constants.as_ref().unwrap();
    assert_eq!((push.bytes, &push.members[..]), (4, &[Member { offset: 0, bytes: 4 }][..]));
    assert_eq!(push.numbers, [PushNumber { name: "n".into(), offset: 0, kind: NumberKind::Uint(4) }]);

    let module = Module::parse(MATMUL).unwrap();
    let main = only(&module);
    assert_eq!((main.workgroup_size, main.shared_bytes), ([16, 16, 1], 2 * 16 * 17 * 4));
    assert_eq!((&main.bindings[..], &main.push_constants), (&[read(0), read(1), written(2)][..], &None));
    let constants: Vec<_> = module.constants().iter().map(|c| (c.id, c.kind, c.bytes, c.default)).collect();
    assert_eq!(constants, [0, 1, 2].map(|id| (id, ConstantKind::Uint, 4, 0)));

    let module = Module::parse(REDUCE).unwrap();
    let main = only(&module);
    assert_eq!((main.workgroup_size, main.workgroup_constants), ([256, 1, 1], [Some(0), None, None]));
    assert_eq!((&main.bindings[..], main.shared_bytes), (&[read(0), written(1)][..], 1024));
    let half = module.specialized(&[(0, 128)]).unwrap();
    assert_eq!((only(&half).workgroup_size, only(&half).shared_bytes), ([128, 1, 1], 512));
    assert_eq!((half.words(), half.constants()), (module.words(), module.constants()));
    let error = module.specialized(&[(0, 128), (7, 1)]).unwrap_err();
    assert_eq!((error.status(), error.message().contains("constant 7")), (Status::InvalidArgument, true));
    assert_eq!(module.specialized(&[(0, 0)]).unwrap_err().status(), Status::InvalidKernel);
}

#[test]
fn blocks_of_spirv_1_0() {
    let module = Module::parse(OLD).unwrap();
    let main = only(&module);
    assert_eq!((main.workgroup_size, main.shared_bytes, &main.push_constants), ([8, 4, 2], 0, &None));
    // vec4, two mat4x3 by rows (3 rows of 16 bytes each), int. Unused bindings are not listed.
    let uniform = Binding { kind: BindingKind::UniformBuffer, writable: false, bytes: 116, ..storage(0, 1, 0) };
    let log = Binding { readable: false, bytes: 40, ..storage(0, 7, 0) };
    // vec3, float, mat3 as three columns of 16 bytes.
    let particles = Binding { bytes: 16, ..storage(1, 3, 64) };
    assert_eq!(main.bindings, [uniform, log, particles]);
}

#[test]
fn constants_and_what_depends_on_them() {
    let module = Module::parse(CONSTANTS).unwrap();
    assert_eq!(module.capabilities(), [1, 10, 11, 22]);
    let constants: Vec<_> = module.constants().iter().map(|c| (c.id, c.kind, c.bytes, c.default)).collect();
    let expected = [
        (1, ConstantKind::Bool, 4, 1),
        (2, ConstantKind::Int, 4, u64::from(-3i32 as u32)),
        (3, ConstantKind::Uint, 4, 4),
        (4, ConstantKind::Float, 4, u64::from(0.5f32.to_bits())),
        (5, ConstantKind::Float, 8, 0.25f64.to_bits()),
        (6, ConstantKind::Int, 8, -5i64 as u64),
        (7, ConstantKind::Uint, 2, 7),
        (10, ConstantKind::Uint, 4, 1),
        (12, ConstantKind::Uint, 4, 1),
    ];
    assert_eq!(constants, expected);
    let main = only(&module);
    assert_eq!((main.workgroup_size, main.workgroup_constants), ([1, 2, 1], [Some(10), None, Some(12)]));
    assert_eq!(main.shared_bytes, (4 * 4 + 1) * 2 * 4);
    assert_eq!(main.bindings, [Binding { bytes: 72, ..storage(0, 0, 0) }]);
    let push = main.push_constants.as_ref().unwrap();
    let members = [(16, 8), (32, 28), (64, 12)].map(|(offset, bytes)| Member { offset, bytes });
    assert_eq!((push.bytes, &push.members[..]), (76, &members[..]));

    let module = module.specialized(&[(10, 32), (1, 0), (12, 2), (3, 3)]).unwrap();
    let main = only(&module);
    assert_eq!((main.workgroup_size, main.shared_bytes), ([32, 2, 2], 9 * 2 * 4));
}

/// The numbers of push constants as text.
fn numbers(entry: &EntryPoint) -> Vec<String> {
    let numbers = &entry.push_constants.as_ref().unwrap().numbers;
    numbers.iter().map(|number| format!("{} {} {}", number.offset, number.kind, number.name)).collect()
}

#[test]
fn push_constants_are_numbers() {
    let module = Module::parse(PUSH).unwrap();
    let expected = [
        "0 u64 big",
        "8 f64 exact",
        // In row-major order, a column's numbers are one row apart.
        "16 f32 turn[0].x",
        "24 f32 turn[0].y",
        "32 f32 turn[0].z",
        "20 f32 turn[1].x",
        "28 f32 turn[1].y",
        "36 f32 turn[1].z",
        "40 i16 parts[0].small",
        "42 f16 parts[0].fraction",
        "44 u8 parts[0].bytes[0]",
        "45 u8 parts[0].bytes[1]",
        "46 u8 parts[0].bytes[2]",
        "48 i16 parts[1].small",
        "50 f16 parts[1].fraction",
        "52 u8 parts[1].bytes[0]",
        "53 u8 parts[1].bytes[1]",
        "54 u8 parts[1].bytes[2]",
        "64 i32 at.x",
        "68 i32 at.y",
        "72 i32 at.z",
        "80 u64 far",
    ];
    assert_eq!(numbers(only(&module)), expected);
    // Without names, as after spirv-opt --strip-debug, the numbers are the same.
    let mut words = words(PUSH);
    let (mut at, mut left) = (5, words[..5].to_vec());
    while at < words.len() {
        let next = at + (words[at] >> 16) as usize;
        if !matches!(words[at] & 0xffff, 5 | 6) {
            left.extend(&words[at..next]);
        }
        at = next;
    }
    words = left;
    let stripped = Module::parse(&bytes(&words)).unwrap();
    let nameless = expected.map(|text| text.rsplit_once(' ').unwrap().0.to_string() + " ");
    assert_eq!(numbers(only(&stripped)), nameless);

    let module = Module::parse(CONSTANTS).unwrap();
    let matrix = [(32, "[0].x"), (36, "[0].y"), (40, "[0].z"), (48, "[1].x"), (52, "[1].y"), (56, "[1].z")];
    let mut expected = vec!["16 f32 origin.x".to_string(), "20 f32 origin.y".into()];
    expected.extend(matrix.map(|(at, name)| format!("{at} f32 turn{name}")));
    expected.extend((0..3).map(|i| format!("{} i32 flags[{i}]", 64 + 4 * i)));
    assert_eq!(numbers(only(&module)), expected);
}

#[test]
fn push_constants_of_too_many_numbers_are_bytes() {
    // Changes the length of an array of floats in the block.
    let mut words = words(CONSTANTS);
    let length = words.windows(4).position(|w| w[0] == 4 << 16 | 43 && w[3] == 3).expect("the constant 3");
    for (count, numbers) in [(4, 12), (1000, 1008), (1100, 0), (0x1000_0000, 0)] {
        words[length + 3] = count;
        let module = Module::parse(&bytes(&words)).unwrap();
        assert_eq!(only(&module).push_constants.as_ref().unwrap().numbers.len(), numbers, "{count}");
    }
}

#[test]
fn many_kinds() {
    let module = Module::parse(MANY).unwrap();
    let main = only(&module);
    let expected = [
        storage(0, 0, 8),
        Binding { writable: false, bytes: 32, ..storage(0, 1, 1) },
        Binding { count: 3, ..storage(0, 2, 4) },
        Binding { readable: false, ..storage(0, 3, 16) },
    ];
    assert_eq!((&main.bindings[..], main.shared_bytes), (&expected[..], 4 + 20));
    assert_eq!(module.capabilities(), [1, 61, 63, 64, 65, 4433, 4448, 5301, 5308, 5347]);
}

#[test]
fn the_kernels_of_adead_itself() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/vulkan/generated");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "spv") {
            let module = Module::parse(&std::fs::read(&path).unwrap()).unwrap_or_else(|e| panic!("{path:?}: {e}"));
            let main = only(&module);
            assert!(main.bindings.is_empty(), "{path:?}");
            assert!(main.push_constants.as_ref().is_some_and(|push| push.bytes <= 128), "{path:?}");
            count += 1;
        }
    }
    assert!(count > 0);
}

#[test]
fn either_byte_order() {
    for module in ALL {
        let swapped: Vec<u8> = module.chunks(4).flat_map(|word| [word[3], word[2], word[1], word[0]]).collect();
        let (there, here) = (Module::parse(&swapped).unwrap(), Module::parse(module).unwrap());
        assert_eq!((there.words(), there.entry_points()), (here.words(), here.entry_points()));
    }
}

#[test]
fn headers() {
    for length in (0..20).chain([21, 22, 23]) {
        let error = Module::parse(&VECADD[..length]).unwrap_err();
        assert_eq!(error.status(), Status::InvalidKernel);
        assert!(error.message().contains(&format!("{length} bytes")), "{error}");
    }
    let good = words(VECADD);
    let with = |index: usize, word: u32| {
        let mut changed = good.clone();
        changed[index] = word;
        changed
    };
    refused(&good[..5], "at section 1");
    refused(&with(0, 0x0723_0204), "begins with 0x07230203; this one begins with 0x07230204");
    for version in [0, 0x0000_0500, 0x0001_0700, 0x0002_0000, 0x0001_0001, 0x0101_0000] {
        refused(&with(1, version), "1.0 to 1.6");
    }
    refused(&with(4, 1), "schema 1");
    for bound in [0, 0x40_0000, u32::MAX] {
        refused(&with(3, bound), &format!("bound of ids: {bound}"));
    }
    refused(&with(3, 5), "instruction 21: its result is not below the bound");
    refused(&with(5, 0x11), "word 5, instruction 17: its length in words can't be 0");
    refused(&with(5, 0xffff_0011), "its length in words can't be 65535");
    assert!(Module::parse(&vec![3; 1 << 24]).unwrap_err().message().contains("16777216 bytes"));
}

#[test]
fn cut_off_anywhere() {
    for module in ALL {
        for end in (0..module.len()).step_by(4) {
            assert_eq!(Module::parse(&module[..end]).unwrap_err().status(), Status::InvalidKernel, "{end}");
        }
    }
}

/// Values for a word that might do harm.
fn hostile(words: &[u32], at: usize) -> [u32; 16] {
    let (word, bound) = (words[at], words[3]);
    [
        0,
        1,
        u32::MAX,
        0x8000_0000,
        0x7fff_ffff,
        bound - 1,
        bound,
        word.wrapping_add(1),
        word.wrapping_sub(1),
        word ^ 0x1_0000,
        word & 0xffff | 0xffff_0000,
        word & 0xffff_0000,
        word.rotate_left(16),
        words[(at * 7 + 3) % words.len()],
        (at as u32 * 31 + 7) % bound,
        (at as u32 * 17 + 3) % bound,
    ]
}

#[test]
fn any_word_overwritten() {
    for module in ALL {
        let mut words = words(module);
        for at in 0..words.len() {
            let good = words[at];
            for word in hostile(&words, at) {
                words[at] = word;
                // Parsing must return, with any result.
                _ = Module::parse(&bytes(&words));
            }
            words[at] = good;
        }
    }
}

/// Returns what spirv-val reports of a module.
fn validate(words: &[u32], environment: &str) -> Result<(), String> {
    let mut child = Command::new("spirv-val")
        .args(["--target-env", environment, "--scalar-block-layout", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&bytes(words)).unwrap();
    let output = child.wait_with_output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// The Vulkan version of each module of [`ALL`].
const ENVIRONMENTS: [&str; 6] = ["vulkan1.2", "vulkan1.2", "vulkan1.2", "vulkan1.0", "vulkan1.3", "vulkan1.2"];

/// Errors that spirv-val may report for an accepted module, as the documentation of `hal::spirv` states.
const LEFT_TO_VALIDATORS: &[&str] = &[
    // The nesting of constructs.
    "construct",
    "block <ID>",
    "back-edge",
    "Back-edges",
    "must be different labels",
    "must not both be specified",
    // Signedness, and types declared twice.
    "UMod",
    "UDiv",
    "BitReverse",
    "Duplicate non-aggregate type declarations",
    "width-only conversions",
    "8- or 16-bit result",
    // Decorations.
    "ecoration",
    "cannot be applied",
    "can only be applied",
    "decorated with",
    "rounding mode",
    "Invariant",
    "BufferBlock",
    "expected AliasedPointer or RestrictPointer",
    "Operand 2 of Decorate requires",
    "Operand 3 of MemberDecorate requires",
    "while decoding OpMemberDecorate",
    // The layout of blocks.
    "layout rules",
    "explicitly laid out",
    // Stores to memory that is not writable.
    "cannot store to Uniform Blocks",
    "may not allocate a pointer type",
    // Scopes and semantics.
    "Semantics",
    "Scope",
    "scope",
    // Capabilities, versions, and the contents of OpSource.
    "apability",
    "capabilities",
    "requires SPIR-V version",
    "requires one of these extensions",
    "source language",
];

/// Accepted modules are valid except for the documented exceptions. This needs spirv-val and half a minute, so it runs only with
/// `ADEAD_SPIRV_VAL=STEP`, which validates every STEP-th accepted module.
#[test]
fn what_is_taken_is_valid() {
    let Some(step) = std::env::var("ADEAD_SPIRV_VAL").ok().and_then(|step| step.parse::<usize>().ok()) else {
        return;
    };
    let (mut taken, mut good, mut unknown) = (0, 0, Vec::new());
    for (module, environment) in ALL.into_iter().zip(ENVIRONMENTS) {
        let mut words = words(module);
        validate(&words, environment).unwrap();
        for at in 0..words.len() {
            let before = words[at];
            for word in hostile(&words, at) {
                words[at] = word;
                if word == before || Module::parse(&bytes(&words)).is_err() {
                    continue;
                }
                taken += 1;
                if taken % step != 0 {
                    continue;
                }
                match validate(&words, environment) {
                    Ok(()) => good += 1,
                    Err(text) => {
                        if !LEFT_TO_VALIDATORS.iter().any(|known| text.contains(known)) {
                            unknown.push(format!("{environment}, word {at}, {before:#x} set to {word:#x}: {text}"));
                        }
                    }
                }
            }
            words[at] = before;
        }
    }
    println!("{taken} taken, of {} {good} valid", taken / step);
    assert!(unknown.is_empty(), "{} are wrong in other ways: {unknown:#?}", unknown.len());
    assert!(good * 10 > taken / step * 9);
}

proptest! {
    #[test]
    fn random_mutations(
        which in 0..ALL.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u32>(), 0..6u32), 1..6),
    ) {
        let mut words = words(ALL[which]);
        for (at, from, value, how) in changes {
            let (at, from) = (at.index(words.len()), from.index(words.len()));
            match how {
                0 => words[at] = value,
                1 => words[at] = words[from],
                2 => words[at] = value % words[3].max(1),
                3 => _ = words.remove(at),
                4 => words.insert(at, words[from]),
                _ => words.swap(at, from),
            }
            if words.len() < 8 {
                break;
            }
        }
        _ = Module::parse(&bytes(&words));
    }
}

/// Assembles a module of instructions, each given by its opcode and operands.
fn assembled(bound: u32, instructions: &[(u32, Vec<u32>)]) -> Vec<u32> {
    let mut words = vec![0x0723_0203, 0x0001_0600, 0, bound, 0];
    for (opcode, operands) in instructions {
        words.push((operands.len() as u32 + 1) << 16 | opcode);
        words.extend(operands);
    }
    words
}

/// Encodes a text as a module does.
fn text(text: &str) -> Vec<u32> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(text.len() / 4 * 4 + 4, 0);
    words(&bytes)
}

/// A kernel with these capabilities, types, constants and instructions. Ids 1 to 9 are void, its function's type, f32, u32, a
/// buffer of floats, a pointer to one, the variable, the function and its block.
fn kernel(capabilities: &[u32], types: &[(u32, Vec<u32>)], body: &[(u32, Vec<u32>)]) -> Vec<u32> {
    let mut all: Vec<(u32, Vec<u32>)> = [1, 5345].iter().chain(capabilities).map(|&it| (17, vec![it])).collect();
    all.push((10, text("SPV_KHR_cooperative_matrix")));
    all.push((14, vec![0, 3]));
    all.push((15, [vec![5, 8], text("main"), vec![7]].concat()));
    all.push((16, vec![8, 17, 32, 1, 1]));
    all.extend([
        (71, vec![10, 6, 4]),
        (72, vec![5, 0, 35, 0]),
        (71, vec![5, 2]),
        (71, vec![7, 34, 0]),
        (71, vec![7, 33, 0]),
    ]);
    all.extend([(19, vec![1]), (33, vec![2, 1]), (22, vec![3, 32]), (21, vec![4, 32, 0]), (29, vec![10, 3])]);
    all.extend([(30, vec![5, 10]), (32, vec![11, 12, 5]), (32, vec![6, 12, 3]), (59, vec![11, 7, 12])]);
    all.extend_from_slice(types);
    all.extend([(54, vec![1, 8, 0, 2]), (248, vec![9])]);
    all.extend_from_slice(body);
    all.extend([(253, vec![]), (56, vec![])]);
    assembled(60, &all)
}

#[test]
fn cooperative_matrices_are_taken() {
    // u32 constants 20 + i: 0, 1, 2, 3, 16, 8; the matrices A [16, 8], B [8, 16], C [16, 16]; a float.
    let number = |(i, value): (usize, u32)| (43, vec![4, 20 + i as u32, value]);
    let mut types: Vec<(u32, Vec<u32>)> = [0, 1, 2, 3, 16, 8].into_iter().enumerate().map(number).collect();
    types.extend([(4456, vec![30, 3, 23, 24, 25, 20]), (4456, vec![31, 3, 23, 25, 24, 21])]);
    types.extend([(4456, vec![32, 3, 23, 24, 24, 22]), (43, vec![3, 33, 0x3f80_0000]), (44, vec![32, 34, 33])]);
    let body = vec![
        (65, vec![6, 40, 7, 20, 20]),
        (4457, vec![30, 41, 40, 20, 25]),
        (4457, vec![31, 42, 40, 21, 25, 0]),
        (4459, vec![32, 43, 41, 42, 34]),
        (127, vec![32, 44, 43]),
        (143, vec![32, 45, 44, 33]),
        (81, vec![3, 46, 45, 0]),
        (4460, vec![4, 47, 32]),
        (4458, vec![40, 45, 20, 24]),
    ];
    let module = Module::parse(&bytes(&kernel(&[6022], &types, &body))).unwrap();
    assert_eq!(module.capabilities(), [1, 5345, 6022]);
    assert_eq!(adead_core::hal::spirv::capability_name(6022), Some("CooperativeMatrixKHR"));
    refused(&kernel(&[], &types, &body), "instruction 4456");
    let with = |at: usize, operands: Vec<u32>| {
        let mut body = body.clone();
        body[at].1 = operands;
        kernel(&[6022], &types, &body)
    };
    // A and B in the wrong order, sizes that don't fit, a result of another type, a value instead of a matrix, an index past the
    // end.
    refused(&with(3, vec![32, 43, 42, 41, 34]), "instruction 4459");
    refused(&with(3, vec![32, 43, 41, 41, 34]), "instruction 4459");
    refused(&with(3, vec![30, 43, 41, 42, 34]), "instruction 4459");
    refused(&with(8, vec![40, 33, 20, 24]), "instruction 4458");
    refused(&with(1, vec![3, 41, 40, 20, 25]), "instruction 4457");
    refused(&with(6, vec![3, 46, 45, 256]), "instruction 81");
    refused(&with(7, vec![4, 47, 3]), "instruction 4460");
    // No extended instruction accepts one.
    let mut sine = body.clone();
    sine[4] = (148, vec![32, 44, 43, 43]);
    refused(&kernel(&[6022], &types, &sine), "instruction 148");
    // A buffer with a layout can't contain one.
    let mut inside = types.clone();
    inside.extend([(30, vec![35, 32]), (32, vec![36, 12, 35]), (59, vec![36, 37, 12])]);
    assert!(Module::parse(&bytes(&kernel(&[6022], &inside, &body))).is_ok(), "as long as nobody uses it");
    let mut used = body.clone();
    used.push((61, vec![35, 48, 37]));
    assert!(Module::parse(&bytes(&kernel(&[6022], &inside, &used))).is_err());
}

#[test]
fn dot_products_of_integers_are_taken() {
    let types = vec![(43, vec![4, 20, 7]), (21, vec![21, 8, 1]), (23, vec![22, 21, 4]), (21, vec![23, 16, 1])];
    let types = [types, vec![(43, vec![21, 24, 5]), (44, vec![22, 25, 24, 24, 24, 24]), (23, vec![26, 4, 2])]].concat();
    let types = [types, vec![(44, vec![26, 27, 20, 20])]].concat();
    for opcode in 4450..4456u32 {
        let accumulated = opcode > 4452;
        let one = |result: u32, operand: u32, format: &[u32]| {
            let mut words = vec![result, 40, operand, operand];
            if accumulated {
                words.push(if result == 4 { 20 } else { 24 });
            }
            words.extend(format);
            (opcode, words)
        };
        let takes = |capabilities: &[u32], instruction| {
            let all: Vec<u32> = capabilities.iter().copied().chain([39, 22]).collect();
            Module::parse(&bytes(&kernel(&all, &types, &[instruction]))).is_ok()
        };
        // Four bytes in a word, a vector of bytes, a vector of words.
        assert!(takes(&[6019, 6018], one(4, 20, &[0])), "{opcode}");
        assert!(takes(&[6019, 6017], one(4, 25, &[])), "{opcode}");
        assert!(takes(&[6019, 6016], one(4, 27, &[])), "{opcode}");
        // Without their capabilities, in another format, with numbers instead of vectors, with a result of fewer bits.
        assert!(!takes(&[6018], one(4, 20, &[0])), "{opcode}");
        assert!(!takes(&[6019], one(4, 20, &[0])), "{opcode}");
        assert!(!takes(&[6019], one(4, 25, &[])), "{opcode}");
        assert!(!takes(&[6019, 6017], one(4, 27, &[])), "{opcode}");
        assert!(!takes(&[6019, 6018], one(4, 20, &[1])), "{opcode}");
        assert!(!takes(&[6019, 6018], one(4, 20, &[])), "{opcode}");
        assert!(!takes(&[6019, 6016], one(21, 27, &[])), "{opcode}");
    }
}

#[test]
fn floats_are_added_atomically_with_the_capability() {
    let number = vec![(43, vec![4, 20, 1]), (43, vec![4, 21, 0]), (43, vec![3, 22, 0x3f80_0000])];
    let body = vec![(65, vec![6, 40, 7, 21, 21]), (6035, vec![3, 41, 40, 20, 21, 22])];
    Module::parse(&bytes(&kernel(&[6033], &number, &body))).unwrap();
    refused(&kernel(&[], &number, &body), "instruction 6035");
}

#[test]
fn what_kernels_can_t_have_says_why() {
    for (opcode, why) in [
        (98, "images"),
        (207, "graphics"),
        (252, "graphics"),
        (264, "OpenCL"),
        (74, "decoration groups"),
        (5000, "compute kernels can't have"),
    ] {
        refused(&kernel(&[], &[], &[(opcode, vec![1, 40, 7, 7, 7])]), why);
    }
}
