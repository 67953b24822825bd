//! GGUF files: what is read, and what is refused with which words.

mod common;

use adead::Status;
use adead_models::gguf::{Array, Gguf, Kind, Value, ValueType};
use common::gguf::{Builder, Item, Stored, string};

/// The error of a file, behind what all of them begin with.
#[track_caller]
fn refused(builder: &Builder) -> String {
    refused_bytes(builder.finish())
}

#[track_caller]
fn refused_bytes(bytes: Vec<u8>) -> String {
    let error = Gguf::from_bytes(bytes).unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument);
    error.message().strip_prefix("not a valid GGUF file: ").unwrap().to_string()
}

/// A file with values of every type, nested arrays, and tensors of some kinds.
fn sample(version: u32) -> Builder {
    let nested =
        Item::array(9, vec![vec![1u8, 2].into(), vec!["x", ""].into(), Item::array(9, vec![vec![true].into()])]);
    Builder::new()
        .version(version)
        .value("general.architecture", "llama")
        .value("u8", 200u8)
        .value("i8", -100i8)
        .value("u16", 60000u16)
        .value("i16", -30000i16)
        .value("u32", 4_000_000_000u32)
        .value("i32", -2_000_000_000i32)
        .value("f32", 1e-5f32)
        .value("bool", true)
        .value("u64", u64::MAX)
        .value("i64", i64::MIN)
        .value("f64", 0.1f64)
        .value("tokens", vec!["<s>", "", "schön"])
        .value("scores", vec![0.5f32, -0.0, f32::INFINITY])
        .value("types", vec![1i32, 2, 3])
        .value("flags", vec![false, true])
        .value("none", Vec::<u64>::new())
        .value("nested", nested)
        .tensor("token_embd.weight", &[3, 32], Kind::Q8_0, &[1; 3 * 34])
        .tensor("norm", &[5], Kind::F32, &[2; 20])
        .tensor("empty", &[0, 7], Kind::F16, &[])
        .tensor("cube", &[2, 1, 2, 256], Kind::Q6_K, &[3; 4 * 210])
}

fn gguf(builder: &Builder) -> Gguf {
    Gguf::from_bytes(builder.finish()).unwrap()
}

#[test]
fn values_are_read() {
    for version in [2, 3] {
        let gguf = gguf(&sample(version));
        assert_eq!((gguf.version(), gguf.alignment()), (version, 32));
        let fixed = [
            ("general.architecture", Value::String("llama".into())),
            ("u8", Value::U8(200)),
            ("i8", Value::I8(-100)),
            ("u16", Value::U16(60000)),
            ("i16", Value::I16(-30000)),
            ("u32", Value::U32(4_000_000_000)),
            ("i32", Value::I32(-2_000_000_000)),
            ("f32", Value::F32(1e-5)),
            ("bool", Value::Bool(true)),
            ("u64", Value::U64(u64::MAX)),
            ("i64", Value::I64(i64::MIN)),
            ("f64", Value::F64(0.1)),
        ];
        assert_eq!(gguf.metadata().len(), 18);
        for ((key, value), found) in fixed.iter().zip(gguf.metadata()) {
            assert_eq!((*key, value), found);
            assert_eq!(gguf.value(key), Some(value));
        }
        assert_eq!(gguf.value("u"), None);
        assert_eq!(format!("{gguf:?}"), format!("Gguf(version {version}, 18 keys, 4 tensors)"));
    }
}

#[test]
fn arrays_are_decoded_when_they_are_asked_for() {
    let gguf = gguf(&sample(3));
    let array = |key: &str| gguf.require::<&Array>(key).unwrap();
    let tokens = array("tokens");
    assert_eq!((tokens.len(), tokens.is_empty(), tokens.element_type()), (3, false, ValueType::String));
    assert_eq!(tokens.strings().unwrap().collect::<Vec<_>>(), ["<s>", "", "schön"]);
    assert_eq!(tokens.iter().nth(2), Some(Value::String("schön".into())));
    assert_eq!(array("types").bytes(), [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
    assert!(array("types").strings().is_none());
    assert!(array("none").is_empty() && array("none").iter().next().is_none());
    let nested: Vec<Value> = array("nested").iter().collect();
    let inner = |index: usize| match &nested[index] {
        Value::Array(array) => array.iter().collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(format!("{nested:?}"), "[Array([u8; 2]), Array([string; 2]), Array([array; 1])]");
    assert_eq!(inner(0), [Value::U8(1), Value::U8(2)]);
    assert_eq!(inner(1), [Value::String("x".into()), Value::String("".into())]);
    let Value::Array(innermost) = &inner(2)[0] else { panic!() };
    assert_eq!(innermost.iter().collect::<Vec<_>>(), [Value::Bool(true)]);
    // An array outlives the file's struct.
    let kept = tokens.clone();
    drop(gguf);
    assert_eq!(kept.strings().unwrap().count(), 3);
}

#[test]
fn values_become_types_of_rust() {
    let gguf = gguf(&sample(3));
    assert_eq!(gguf.require::<u32>("u8").unwrap(), 200);
    assert_eq!(gguf.require::<usize>("u16").unwrap(), 60000);
    assert_eq!(gguf.require::<i64>("i8").unwrap(), -100);
    assert_eq!(gguf.require::<i32>("i32").unwrap(), -2_000_000_000);
    assert_eq!(gguf.require::<u64>("u64").unwrap(), u64::MAX);
    assert_eq!(gguf.require::<f32>("f32").unwrap(), 1e-5);
    assert_eq!(gguf.require::<f64>("f32").unwrap(), f64::from(1e-5f32));
    assert_eq!(gguf.require::<f64>("f64").unwrap(), 0.1);
    assert!(gguf.require::<bool>("bool").unwrap());
    assert_eq!(gguf.require::<&str>("general.architecture").unwrap(), "llama");
    assert_eq!(gguf.require::<Vec<&str>>("tokens").unwrap(), ["<s>", "", "schön"]);
    assert_eq!(gguf.require::<Vec<f32>>("scores").unwrap(), [0.5, -0.0, f32::INFINITY]);
    assert_eq!(gguf.require::<Vec<i32>>("types").unwrap(), [1, 2, 3]);
    assert_eq!(gguf.require::<Vec<u32>>("types").unwrap(), [1, 2, 3]);
    assert_eq!(gguf.require::<Vec<bool>>("flags").unwrap(), [false, true]);
    assert_eq!(gguf.optional::<u32>("u8").unwrap(), Some(200));
    assert_eq!(gguf.optional::<u32>("u9").unwrap(), None);
}

#[test]
fn a_value_of_another_type_is_an_error_that_names_both() {
    let gguf = gguf(&sample(3));
    let error = |result: adead::Result<()>, status: Status, text: &str| {
        let error = result.unwrap_err();
        assert_eq!((error.status(), error.message()), (status, text));
    };
    error(
        gguf.require::<u32>("llama.block_count").map(drop),
        Status::InvalidArgument,
        "the key 'llama.block_count' is not among the file's 18 keys; it must be an integer from 0 to 2^32 - 1",
    );
    let differs = |result, text| error(result, Status::DtypeMismatch, text);
    differs(
        gguf.require::<u32>("f32").map(drop),
        "the value of 'f32' is the f32 1e-5; it must be an integer from 0 to 2^32 - 1",
    );
    differs(
        gguf.require::<u32>("u64").map(drop),
        "the value of 'u64' is the u64 18446744073709551615; it must be an integer from 0 to 2^32 - 1",
    );
    differs(
        gguf.optional::<u64>("i8").map(drop),
        "the value of 'i8' is the i8 -100; it must be an integer from 0 to 2^64 - 1",
    );
    differs(gguf.require::<f32>("f64").map(drop), "the value of 'f64' is the f64 0.1; it must be an f32");
    differs(
        gguf.require::<bool>("general.architecture").map(drop),
        "the value of 'general.architecture' is the string 'llama'; it must be a bool",
    );
    differs(
        gguf.require::<&str>("tokens").map(drop),
        "the value of 'tokens' is the array [string; 3]; it must be a string",
    );
    differs(
        gguf.require::<Vec<&str>>("types").map(drop),
        "the value of 'types' is the array [i32; 3]; it must be an array of strings",
    );
    differs(gguf.require::<Vec<f32>>("u8").map(drop), "the value of 'u8' is the u8 200; it must be an array of f32");
    let signed = Builder::new().value("a", vec![7i32, -1]);
    let signed = Gguf::from_bytes(signed.finish()).unwrap();
    differs(
        signed.require::<Vec<u32>>("a").map(drop),
        "the value of 'a' is the array [i32; 2], whose element 1 is the i32 -1; it must be an array of integers from 0 to \
         2^32 - 1",
    );
}

#[test]
fn tensors_are_where_the_file_says() {
    for builder in [sample(2), sample(3), sample(3).alignment(8), sample(3).alignment(4096)] {
        let gguf = gguf(&builder);
        let shown: Vec<_> = gguf.tensors().iter().map(|info| (info.name(), info.dims(), info.kind())).collect();
        assert_eq!(
            shown,
            [
                ("token_embd.weight", &[3, 32][..], Kind::Q8_0),
                ("norm", &[5], Kind::F32),
                ("empty", &[0, 7], Kind::F16),
                ("cube", &[2, 1, 2, 256], Kind::Q6_K),
            ]
        );
        for (info, stored) in gguf.tensors().iter().zip(&builder.tensors) {
            assert_eq!(gguf.bytes(info), stored.bytes);
            assert_eq!(info.size(), stored.bytes.len());
            assert_eq!(info.range().start as u64 % builder.alignment, 0);
            assert_eq!(gguf.tensor(info.name()).unwrap().range(), info.range());
        }
        assert_eq!(gguf.tensor("cube").unwrap().elements(), 1024);
        let error = gguf.tensor("cub").unwrap_err();
        assert_eq!(error.status(), Status::InvalidArgument);
        assert_eq!(error.message(), "the tensor 'cub' is not among the file's 4 tensors");
    }
}

#[test]
fn every_kind_has_its_blocks() {
    for kind in Kind::ALL {
        let (block, bytes) = (kind.block().unwrap(), kind.block_bytes().unwrap());
        let builder = Builder::new().tensor("a", &[2, 3 * block], kind, &vec![0; 6 * bytes]);
        assert_eq!(gguf(&builder).tensor("a").unwrap().size(), 6 * bytes);
        assert_eq!(Kind::from_number(kind.number()), kind);
        assert_eq!(kind.name().unwrap(), format!("{kind:?}"));
        let mut short = builder.finish();
        short.pop();
        let expected = format!(
            "the tensor 'a' (said at byte 24) has {} bytes at offset 0 of the tensors, which begin at byte 96; the file has {} bytes",
            6 * bytes,
            95 + 6 * bytes
        );
        assert_eq!(refused_bytes(short), expected);
    }
}

#[test]
fn a_tensor_of_another_type_fails_when_it_is_used() {
    let builder = Builder::new()
        .tensor("a", &[2, 256], Kind::Other(10), &[1; 2 * 84])
        .tensor("b", &[7], Kind::Other(99), &[2; 50])
        .tensor("c", &[1], Kind::F32, &[3; 4]);
    let gguf = gguf(&builder);
    let error = |name: &str| {
        let error = gguf.tensor(name).unwrap_err();
        assert_eq!(error.status(), Status::Unsupported);
        error.message().to_string()
    };
    const SUPPORTED: &str = "supported are F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, BF16";
    assert_eq!(error("a"), format!("the tensor 'a' is stored as Q2_K (10); {SUPPORTED}"));
    assert_eq!(error("b"), format!("the tensor 'b' is stored as type 99 (99); {SUPPORTED}"));
    assert_eq!(gguf.tensor("c").unwrap().size(), 4);
    // They are listed. Those of unknown blocks have what lies before the next tensor.
    let [a, b, _] = gguf.tensors() else { panic!() };
    assert_eq!((a.kind(), gguf.bytes(a)), (Kind::Other(10), &[1; 168][..]));
    assert_eq!((b.kind(), b.size()), (Kind::Other(99), 64));
    assert_eq!(gguf.bytes(b)[..50], [2; 50]);
}

#[test]
fn the_header_is_checked() {
    assert_eq!(refused_bytes(vec![]), "it has 0 bytes, and a header has 24");
    assert_eq!(refused_bytes(b"GGUF\x03\0\0\0".to_vec()), "it has 8 bytes, and a header has 24");
    let mut other = sample(3).finish();
    other[..4].copy_from_slice(b"PK\x03\x04");
    assert_eq!(refused_bytes(other), r"it begins with 'PK\x03\x04' instead of 'GGUF'");
    for version in [0, 1, 4, u32::MAX] {
        let expected = format!("its version is {version} at byte 4; 2 and 3 are supported");
        assert_eq!(refused(&sample(version)), expected);
    }
    assert_eq!(
        refused(&sample(3u32.swap_bytes())),
        "it is big-endian: version 3 at byte 4 has its bytes in the other order; little-endian files are supported"
    );
    for (tensors, entries) in [(0, 1), (1, 0), (u64::MAX, 0), (0, u64::MAX), (1 << 59, 1 << 59)] {
        let mut builder = Builder::new();
        (builder.counted_tensors, builder.counted_entries) = (Some(tensors), Some(entries));
        let expected = format!(
            "it counts {tensors} tensors at byte 8 and {entries} keys at byte 16, which take at least 32 and 13 bytes each; 0 \
             bytes follow"
        );
        assert_eq!(refused(&builder), expected);
    }
    let mut builder = Builder::new().value("a long text", "in the place of tensors");
    builder.counted_tensors = Some(1);
    assert_eq!(
        refused(&builder),
        "it counts 1 tensors at byte 8, which take at least 32 bytes each; 0 bytes follow the metadata, which ends at \
         byte 78"
    );
}

/// A file with a value of any bytes.
fn raw(kind: u32, bytes: Vec<u8>) -> Builder {
    let mut builder = Builder::new().value("a", Item { kind, bytes });
    builder.entries.push(("the end".into(), 0u8.into()));
    builder
}

#[test]
fn keys_are_checked() {
    let mut builder = Builder::new().value("a", 1u8).value("b", 2u8);
    builder.entries[1].0 = b"b\xff".to_vec();
    assert_eq!(refused(&builder), "key 1 at byte 38 isn't UTF-8: byte 47 is 0xff");
    builder.entries[1].0 = vec![b'k'; 65536];
    assert_eq!(refused(&builder), "key 1 at byte 38 has 65536 bytes; at most 65535 are allowed");
    builder.entries[1].0 = vec![b'k'; 65535];
    assert_eq!(gguf(&builder).metadata().len(), 2);
    builder.entries[1].0 = b"a".to_vec();
    assert_eq!(refused(&builder), "key 1 at byte 38 is 'a', as key 0 at byte 24");
    // Names in errors are shortened, and can't break lines.
    let long = format!("\n{}", "x".repeat(100));
    let builder = Builder::new().value(&long, 1u8).value("b", 1u8).value(&long, 1u8);
    assert_eq!(refused(&builder), format!("key 2 at byte 152 is '\\n{}…', as key 0 at byte 24", "x".repeat(79)));
    let mut bytes = Builder::new().value("abc", 1u64).finish();
    bytes[24] = 200;
    assert_eq!(refused_bytes(bytes), "key 0: 200 bytes at byte 32; the file ends 15 bytes later");
}

#[test]
fn values_are_checked() {
    assert_eq!(refused(&raw(13, vec![0])), "the value of 'a' has type 13 at byte 33; types are 0 to 12");
    assert_eq!(refused(&raw(7, vec![2])), "the value of 'a' is 2 at byte 37; a bool is 0 or 1");
    assert_eq!(refused(&raw(8, string(b"a\xc3"))), "the value of 'a' at byte 37 isn't UTF-8: byte 46 is 0xc3");
    assert_eq!(
        refused(&raw(8, u64::MAX.to_le_bytes().into())),
        "the value of 'a': 18446744073709551615 bytes at byte 45; the file ends 20 bytes later"
    );
    let array =
        |kind: u32, count: u64, bytes: &[u8]| raw(9, [&kind.to_le_bytes(), &count.to_le_bytes()[..], bytes].concat());
    assert_eq!(
        refused(&array(13, 1, &[])),
        "the elements of the value of 'a' has type 13 at byte 37; types are 0 to 12"
    );
    for (kind, name, bytes) in [(0, "u8", 1), (4, "u32", 4), (8, "string", 8), (9, "array", 12), (12, "f64", 8)] {
        for count in [21, u64::MAX, 1 << 61] {
            let expected = format!(
                "the value of 'a' at byte 37 counts {count} elements of type {name}, each of at least {bytes} bytes; the file \
                 has 20 bytes left"
            );
            assert_eq!(refused(&array(kind, count, &[])), expected);
        }
    }
    assert_eq!(refused(&array(7, 2, &[1, 9])), "element 1 of the value of 'a' is 9 at byte 50; a bool is 0 or 1");
    let strings = [string(b"ok"), string(b"\x80")].concat();
    assert_eq!(
        refused(&array(8, 2, &strings)),
        "element 1 of the value of 'a' at byte 59 isn't UTF-8: byte 67 is 0x80"
    );
    assert_eq!(
        refused(&array(8, 1, &99u64.to_le_bytes())),
        "element 0 of the value of 'a': 99 bytes at byte 57; the file ends 20 bytes later"
    );
    let nested = |depth: usize| (1..depth).fold(Item::from(vec![1u8]), |item, _| Item::array(9, vec![item]));
    assert_eq!(gguf(&Builder::new().value("a", nested(4))).metadata().len(), 1);
    assert_eq!(
        refused(&Builder::new().value("a", nested(5))),
        "element 0 of element 0 of element 0 of element 0 of the value of 'a' at byte 85 is array 5 of nested arrays; at \
         most 4 are allowed"
    );
    assert_eq!(
        refused(&Builder::new().value("a", nested(2000))).split(" at byte").nth(1),
        Some(" 85 is array 5 of nested arrays; at most 4 are allowed")
    );
}

#[test]
fn the_alignment_is_checked() {
    let of = |shown: &str| {
        format!("'general.alignment' at byte 38 is {shown}; it must be a u32, a power of two and a multiple of 8")
    };
    for alignment in [0u32, 1, 4, 12, 24, 33, u32::MAX] {
        let builder = Builder::new().value("a", 1u8).value("general.alignment", alignment);
        assert_eq!(refused(&builder), of(&format!("the u32 {alignment}")));
    }
    assert_eq!(refused(&Builder::new().value("a", 1u8).value("general.alignment", 32u64)), of("the u64 32"));
    assert_eq!(refused(&Builder::new().value("a", 1u8).value("general.alignment", "32")), of("the string '32'"));
    // So large that the tensors begin beyond the file.
    let builder = Builder::new().tensor("a", &[1], Kind::F32, &[0; 4]).value("general.alignment", 1u32 << 31);
    assert_eq!(
        refused(&builder),
        "the tensor 'a' (said at byte 57) has 4 bytes at offset 0 of the tensors, which begin at byte 2147483648; the file \
         has 100 bytes"
    );
    assert_eq!(gguf(&Builder::new().value("general.alignment", 1u32 << 31)).alignment(), 1 << 31);
}

/// A file with a tensor as it is said: sizes innermost first.
fn one(name: &str, sizes: &[u64], kind: u32, offset: u64, bytes: usize) -> Builder {
    let (name, sizes) = (name.into(), sizes.into());
    Builder::new().stored(Stored { name, sizes, kind, offset: Some(offset), bytes: vec![0; bytes] })
}

#[test]
fn what_is_said_of_a_tensor_is_checked() {
    let long = "x".repeat(64);
    assert_eq!(gguf(&one(&long, &[1], 0, 0, 4)).tensor(&long).unwrap().size(), 4);
    assert_eq!(
        refused(&one(&"x".repeat(65), &[1], 0, 0, 4)),
        "the name of tensor 0 at byte 24 has 65 bytes; at most 64 are allowed"
    );
    let mut builder = one("a", &[1], 0, 0, 4);
    builder.tensors[0].name = vec![0xff];
    assert_eq!(refused(&builder), "the name of tensor 0 at byte 24 isn't UTF-8: byte 32 is 0xff");
    assert_eq!(refused(&one("a", &[], 0, 0, 32)), "the tensor 'a' has 0 dimensions at byte 33; 1 to 4 are allowed");
    assert_eq!(refused(&one("a", &[1; 5], 0, 0, 4)), "the tensor 'a' has 5 dimensions at byte 33; 1 to 4 are allowed");
    for sizes in [&[1 << 32, 1 << 32][..], &[u64::MAX], &[1 << 62], &[0, u64::MAX, 2], &[2, u64::MAX, 0], &[1 << 61]] {
        let expected = format!("the tensor 'a' has dimensions {sizes:?} of F32 at byte 37: too many bytes");
        assert_eq!(refused(&one("a", sizes, 0, 0, 4)), expected);
    }
    assert_eq!(
        refused(&one("a", &[48, 2], 8, 0, 102)),
        "the tensor 'a' has rows of 48 values at byte 37; Q8_0 at byte 53 has blocks of 32"
    );
    assert_eq!(
        refused(&one("a", &[32, 256], 12, 0, 4096)),
        "the tensor 'a' has rows of 32 values at byte 37; Q4_K at byte 53 has blocks of 256"
    );
    for offset in [1, 8, 33, u64::MAX] {
        let expected = format!("the tensor 'a' has the offset {offset} at byte 49; it must be a multiple of 32");
        assert_eq!(refused(&one("a", &[1], 0, offset, 4)), expected);
    }
    for (offset, sizes) in [(32, 1), (u64::MAX - 31, 1), (0, 2)] {
        let expected = format!(
            "the tensor 'a' (said at byte 24) has {} bytes at offset {offset} of the tensors, which begin at byte 64; the \
             file has 68 bytes",
            sizes * 4
        );
        assert_eq!(refused(&one("a", &[sizes], 0, offset, 4)), expected);
    }
    assert_eq!(
        refused(&one("a", &[1], 99, 32, 32)),
        "the tensor 'a' (said at byte 24) begins at byte 96; the file has 96 bytes"
    );
    let twice = Builder::new().tensor("a", &[1], Kind::F32, &[0; 4]).tensor("b", &[1], Kind::F32, &[0; 4]).tensor(
        "a",
        &[1],
        Kind::F32,
        &[0; 4],
    );
    assert_eq!(refused(&twice), "tensor 2 at byte 90 is named 'a', as tensor 0 at byte 24");
}

#[test]
fn tensors_that_overlap_are_refused() {
    let two = |second: u64| {
        let mut builder =
            Builder::new().tensor("a", &[16], Kind::F32, &[0; 64]).tensor("b", &[16], Kind::F32, &[0; 64]);
        builder.tensors[1].offset = Some(second);
        builder
    };
    assert_eq!(gguf(&two(64)).tensors().len(), 2);
    assert_eq!(
        refused(&two(32)),
        "the tensor 'a' (said at byte 24) has bytes 96..160 of the file, and the tensor 'b' (said at byte 57) begins at 128"
    );
    assert_eq!(
        refused(&two(0)),
        "the tensor 'a' (said at byte 24) has bytes 96..160 of the file, and the tensor 'b' (said at byte 57) begins at 96"
    );
    // The order in the file doesn't matter, gaps don't, and a tensor without values is nowhere.
    let mut swapped = two(0);
    swapped.tensors[0].offset = Some(64);
    assert_eq!(gguf(&swapped).tensor("b").unwrap().range(), 96..160);
    let mut empty = two(0);
    empty.tensors[1].sizes = vec![0];
    assert_eq!(gguf(&empty).tensor("b").unwrap().size(), 0);
    // A tensor whose blocks are unknown has at least a byte.
    let mut unknown = two(0);
    unknown.tensors[0].kind = 77;
    assert_eq!(
        refused(&unknown),
        "the tensor 'a' (said at byte 24) has bytes 96..96 of the file, and the tensor 'b' (said at byte 57) begins at 96"
    );
}

#[test]
fn a_file_may_end_nowhere_before_its_end() {
    for version in [2, 3] {
        let file = sample(version).finish();
        for length in 0..file.len() {
            let text = refused_bytes(file[..length].to_vec());
            assert!(text.contains("byte"), "{text}");
        }
        let mut longer = file.clone();
        longer.extend([0; 100]);
        assert_eq!(Gguf::from_bytes(longer).unwrap().tensors().len(), 4);
    }
}

#[test]
fn files_are_read_and_mapped() {
    let folder = std::env::temp_dir().join(format!("adead gguf {}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("model.gguf");
    std::fs::write(&path, sample(3).finish()).unwrap();
    for mapped in [false, true] {
        // SAFETY: nothing changes the file until it is dropped.
        let gguf = if mapped { unsafe { Gguf::map(&path) } } else { Gguf::open(&path) }.unwrap();
        for (info, stored) in gguf.tensors().iter().zip(&sample(3).tensors) {
            assert_eq!(gguf.bytes(info), stored.bytes);
            assert!(!mapped || stored.bytes.is_empty() || gguf.bytes(info).as_ptr().addr().is_multiple_of(32));
        }
        assert_eq!(gguf.require::<Vec<&str>>("tokens").unwrap(), ["<s>", "", "schön"]);
        // Errors name the file.
        let error = gguf.require::<u32>("f32").unwrap_err();
        assert!(error.message().starts_with(&format!("{}: the value of 'f32' is", path.display())), "{error}");
        // What another file says about its tensors is no access outside this one.
        let larger = Builder::new().tensor("a", &[1 << 16], Kind::F32, &vec![0; 4 << 16]);
        let larger = Gguf::from_bytes(larger.finish()).unwrap();
        assert!(gguf.bytes(&larger.tensors()[0]).is_empty());
    }
    std::fs::write(&path, b"").unwrap();
    let error = Gguf::open(&path).unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert_eq!(
        error.message(),
        format!("{}: not a valid GGUF file: it has 0 bytes, and a header has 24", path.display())
    );
    for missing in [&folder, &folder.join("missing.gguf")] {
        // SAFETY: there is no such file.
        for error in [Gguf::open(missing).unwrap_err(), unsafe { Gguf::map(missing) }.unwrap_err()] {
            assert_eq!(error.status(), Status::Io);
            assert!(error.message().starts_with(&missing.display().to_string()), "{error}");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
