//! Written GGUF files: the bytes that the tests' own writer gives, and what is refused.

mod common;

use adead::Status;
use adead_models::gguf::{Gguf, Header, Kind, Value};
use common::gguf::{Builder, Item};

fn text(result: adead::Result<impl Sized>) -> (Status, String) {
    match result {
        Ok(_) => panic!("it was not refused"),
        Err(error) => (error.status(), error.message().to_owned()),
    }
}

#[test]
fn files_have_the_bytes_of_the_tests_own_writer() {
    for alignment in [None, Some(8), Some(64), Some(4096)] {
        let (mut builder, mut header) = (Builder::new(), Header::new());
        if let Some(alignment) = alignment {
            builder = builder.alignment(alignment);
            header.set("general.alignment", alignment).unwrap();
        }
        macro_rules! both {
            ($($key:literal: $value:expr, $own:expr;)*) => {$(
                builder = builder.value($key, $value);
                header.set($key, $own).unwrap();
            )*};
        }
        both! {
            "u8": 7u8, 7u8;
            "i8": -7i8, -7i8;
            "u16": 7u16, 7u16;
            "i16": -7i16, -7i16;
            "u32": 7u32, 7u32;
            "i32": -7i32, -7i32;
            "u64": 7u64, 7u64;
            "i64": -7i64, -7i64;
            "f32": 0.1f32, 0.1f32;
            "f64": 0.1f64, 0.1f64;
            "bool": true, true;
            "text": "grüße", "grüße";
            "texts": vec!["a", "", "▁b"], &["a", "", "▁b"][..];
            "floats": vec![0.5f32, -0.0], &[0.5f32, -0.0][..];
            "integers": vec![1i32, -2, 3], &[1i32, -2, 3][..];
            "none": Item::array(4, vec![]), &[0u32; 0][..];
        }
        let values: Vec<u8> = (0..=255).cycle().take(3 * 34).collect();
        let tensors: [(&str, &[usize], Kind, &[u8]); 4] = [
            ("blocks", &[3, 32], Kind::Q8_0, &values),
            ("one", &[1], Kind::F32, &values[..4]),
            ("halves", &[2, 1, 5], Kind::BF16, &values[..20]),
            ("last", &[2, 2, 2, 2], Kind::F16, &values[..32]),
        ];
        for (name, dims, kind, bytes) in tensors {
            builder = builder.tensor(name, dims, kind, bytes);
            header.tensor(name, dims, kind).unwrap();
        }
        let mut writer = header.begin(Vec::new()).unwrap();
        for (index, (.., bytes)) in tensors.iter().enumerate() {
            // In pieces of any size.
            bytes.chunks([1, 7, 100, 32][index]).for_each(|piece| writer.write(piece).unwrap());
        }
        let size = writer.size();
        let written = writer.finish().unwrap();
        assert_eq!(size, written.len() as u64);
        // The last tensor is padded too.
        let expected = builder.finish();
        let rest = written.len() - expected.len();
        assert!(written.starts_with(&expected) && written[expected.len()..].iter().all(|&byte| byte == 0));
        assert_eq!((written.len() % builder.alignment as usize, rest / builder.alignment as usize), (0, 0));
        // What was read is written again as it was.
        let gguf = Gguf::from_bytes(written.clone()).unwrap();
        let mut again = Header::new();
        gguf.metadata().for_each(|(key, value)| again.set(key, value.clone()).unwrap());
        gguf.tensors().iter().for_each(|info| again.tensor(info.name(), info.dims(), info.kind()).unwrap());
        let mut writer = again.begin(Vec::new()).unwrap();
        gguf.tensors().iter().for_each(|info| writer.write(gguf.bytes(info)).unwrap());
        assert!(writer.finish().unwrap() == written);
    }
}

#[test]
fn a_key_is_set_again_in_its_place() {
    let mut header = Header::new();
    header.set("a", 1u32).unwrap();
    header.set("b", 2u32).unwrap();
    header.set("a", "new").unwrap();
    assert_eq!(header.value("a"), Some(&Value::from("new")));
    let gguf = Gguf::from_bytes(header.begin(Vec::new()).unwrap().finish().unwrap()).unwrap();
    assert_eq!(gguf.metadata().map(|(key, _)| key).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn tensors_without_values_take_no_bytes() {
    let mut header = Header::new();
    for (name, rows) in [("none", 0), ("some", 1), ("none again", 0), ("and", 0)] {
        header.tensor(name, &[rows, 2], Kind::F16).unwrap();
    }
    let mut writer = header.begin(Vec::new()).unwrap();
    writer.write(&[]).unwrap();
    writer.write(&[1, 2, 3, 4]).unwrap();
    let gguf = Gguf::from_bytes(writer.finish().unwrap()).unwrap();
    assert_eq!(gguf.bytes(gguf.tensor("some").unwrap()), [1, 2, 3, 4]);
}

#[test]
fn what_no_file_may_have_is_refused() {
    let refused = |text: &str| (Status::InvalidArgument, text.to_owned());
    let mut header = Header::new();
    assert_eq!(text(header.set("", 1u32)), refused("the key '' has 0 bytes; 1 to 65535 are allowed"));
    assert!(text(header.set(&"k".repeat(65536), 1u32)).1.contains("has 65536 bytes"));
    for wrong in [Value::from(12u32), Value::from(4u32), Value::from(32u64)] {
        assert!(
            text(header.set("general.alignment", wrong))
                .1
                .ends_with("it must be a u32, a power of two and a multiple of 8")
        );
    }
    header.tensor("a", &[1, 32], Kind::Q4_0).unwrap();
    assert_eq!(
        text(header.set("general.alignment", 64u32)),
        refused("'general.alignment' must be set before the first tensor")
    );
    assert_eq!(text(header.tensor("a", &[1], Kind::F32)), refused("the tensor 'a' is there already"));
    assert_eq!(
        text(header.tensor("b", &[], Kind::F32)),
        refused("the tensor 'b' has 0 dimensions; 1 to 4 are allowed")
    );
    assert_eq!(
        text(header.tensor("b", &[2, 33], Kind::Q4_0)),
        refused("the tensor 'b' has rows of 33 values; Q4_0 has blocks of 32")
    );
    let (status, said) = text(header.tensor("b", &[256], Kind::Other(10)));
    assert_eq!(status, Status::Unsupported);
    assert!(said.starts_with("the tensor 'b' can't be stored as Q2_K; supported are F32, F16, Q4_0,"), "{said}");
    assert!(text(header.tensor(&"n".repeat(65), &[1], Kind::F32)).1.contains("has 65 bytes; 64 are allowed"));
    let large = [1 << 40, 1 << 40];
    assert!(text(header.tensor("b", &large, Kind::F32)).1.ends_with("of F32: too many bytes"));
    // Nothing of that is left.
    let mut writer = header.clone().begin(Vec::new()).unwrap();
    assert_eq!(text(writer.write(&[0; 19])), refused("19 bytes come for the tensor 'a', which has 18 and lacks 18"));
    writer.write(&[0; 10]).unwrap();
    assert_eq!(text(writer.finish()), refused("the tensor 'a' lacks 8 of its 18 bytes"));
    let mut writer = header.begin(Vec::new()).unwrap();
    writer.write(&[0; 18]).unwrap();
    assert_eq!(text(writer.write(&[0; 1])), refused("1 bytes come after those of all 1 tensors"));
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is full"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    assert_eq!(text(Header::new().begin(Full)), (Status::Io, "the disk is full".into()));
}
