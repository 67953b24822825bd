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

#[test]
fn values_are_read() {
    for version in [2, 3] {
        let gguf = Gguf::from_bytes(sample(version).finish()).unwrap();
        assert_eq!((gguf.version(), gguf.alignment()), (version, 32));
        assert_eq!(gguf.metadata().len(), 18);
        assert_eq!(gguf.metadata().nth(1), Some(("u8", &Value::U8(200))));
        assert_eq!(gguf.value("u16"), Some(&Value::U16(60000)));
        assert_eq!(gguf.require::<u64>("u64").unwrap(), u64::MAX);
        assert_eq!(gguf.require::<&str>("general.architecture").unwrap(), "llama");
        assert_eq!(gguf.require::<Vec<&str>>("tokens").unwrap(), ["<s>", "", "schön"]);
    }
}
