//! Hostile input: it is refused with the offset, and nothing panics.

use super::examples::hybrid;
use super::{LIMIT, Random, adead, agpu, context, example, refused};
use adead_core::program::{Program, RunOptions};
use adead_core::{Op, Status, Tensor};

/// CRC-32 bit by bit, to make malformed files with a right checksum.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len().saturating_sub(4);
    bytes.truncate(end);
    let checksum = crc32(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

/// The bytes with a little-endian number written at an offset.
fn patched<const N: usize>(bytes: &[u8], at: usize, value: [u8; N]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + N].copy_from_slice(&value);
    bytes
}

fn message(bytes: &[u8]) -> String {
    refused(Program::decode(bytes))
}

#[test]
fn agpu_binaries() {
    let bytes = agpu("alloc 64 r0\nmatmul r0 r0 r0 1 2 3\nend").encode_agpu().unwrap();
    let cases = [
        (patched(&bytes, 4, 2u16.to_le_bytes()), "byte 0x4: AGPU version 2"),
        (patched(&bytes, 6, u16::MAX.to_le_bytes()), "byte 0x37: truncated: an opcode takes 4 bytes and 0 are left"),
        (patched(&bytes, 6, 2u16.to_le_bytes()), "byte 0x32: 5 bytes follow the end of the 2 instructions"),
        (patched(&bytes, 8, 0xC0DA_00FFu32.to_le_bytes()), "byte 0x8: unknown AGPU opcode C0DA00FF"),
        (patched(&bytes, 8, 0u32.to_le_bytes()), "byte 0x8: unknown AGPU opcode 00000000"),
        (patched(&bytes, 12, [3]), "byte 0x8: ALLOC has 3 operands; it takes 2 (bytes, register)"),
        (patched(&bytes, 25, [255]), "byte 0x15: MATMUL has 255 operands"),
        (patched(&bytes, 26, 1u32.to_le_bytes()), "byte 0x15: MATMUL: r1 was never allocated"),
        (patched(&bytes, 9, [0xff]), "byte 0x8: unknown AGPU opcode C0DAFF10"),
    ];
    for (bytes, expected) in cases {
        assert!(message(&bytes).starts_with(expected), "{expected}: {}", message(&bytes));
    }
    let six = b"AGPU\x01\0\x01\0\x42\0\xda\xc0\x06";
    assert!(message(six).starts_with("byte 0x8: FFN has 6 operands; it takes 7"), "{}", message(six));
    assert!(message(six).contains("names no weights"));
}

#[test]
fn hex_text() {
    let cases = [
        ("0000: 0100DAC000\n0004: FFFFDAC000", "line 2: at byte 0x5: the offset 0004 overlaps bytes that came before"),
        ("0000: 0100DAC000\n0006: FFFFDAC000", "line 2: at byte 0x5: the offset 0006 leaves a gap"),
        ("0000: 0100DAC000\nFFFFFFFFFFFFFFFFFF: 00", "line 2: at byte 0x5: the offset FFFFFFFFFFFFFFFFFF leaves a gap"),
        ("0000: 0100DAC00", "line 1: at byte 0x4: an odd number of hexadecimal digits"),
        ("0000: 0100DAC0zz", "line 1: at byte 0x4: 'z' is not a hexadecimal digit"),
        ("0000: 0100DAC000\nhello", "line 2: at byte 0x5: expected 'OFFSET: HEXBYTES ; comment'"),
        ("0000: 0100DAC000\n: 00", "line 2: at byte 0x5: expected"),
        ("0000: 1000DAC0020000400000", "byte 0x9: truncated: ALLOC's operand register takes 4 bytes and 1 are left"),
        ("0000: 0100", "byte 0x0: truncated: an opcode takes 4 bytes and 2 are left"),
        ("0000: FFFFDAC000\n0005: 0000DAC000", "byte 0x5: nop follows end"),
        ("0000: FFFFDAC0FF", "byte 0x0: END has 255 operands; it takes 0"),
    ];
    for (text, expected) in cases {
        assert!(message(text.as_bytes()).starts_with(expected), "{text}: {}", message(text.as_bytes()));
    }
}

#[test]
fn hybrid_files() {
    let bytes = hybrid(&agpu("alloc 4 r0\nend").encode_agpu().unwrap());
    assert!(Program::decode(&bytes).is_ok());
    // The header takes 24 bytes and the CPU section 16, so the AGPU program begins at 0x28.
    let cases = [
        (patched(&bytes, 4, 9u16.to_le_bytes()), "byte 0x4: AHYB version 9"),
        (patched(&bytes, 8, u32::MAX.to_le_bytes()), "byte 0x18: truncated: the CPU section takes 4294967295 bytes"),
        (patched(&bytes, 12, u32::MAX.to_le_bytes()), "byte 0x28: truncated: the GPU section takes 4294967295 bytes"),
        (patched(&bytes, 12, 3u32.to_le_bytes()), "byte 0x28: truncated: the magic takes 4 bytes and 3 are left"),
        (patched(&bytes, 16, u32::MAX.to_le_bytes()), "byte 0x42: truncated: the data section"),
        (
            patched(&bytes, 20, u32::MAX.to_le_bytes()),
            "byte 0x46: truncated: 4294967295 symbols take 154618822620 bytes",
        ),
        (patched(&bytes, 20, 1u32.to_le_bytes()), "byte 0x6a: 36 bytes follow the end of the 1 symbols"),
        (patched(&bytes, 40, *b"AGPV"), "byte 0x28: not an AGPU program"),
        (patched(&bytes, 48, 5u32.to_le_bytes()), "byte 0x30: unknown AGPU opcode 00000005"),
        (patched(&bytes, 0x46, [0]), "byte 0x46: symbol 0 is named ''"),
        (patched(&bytes, 0x47, [0x80]), "byte 0x46: symbol 0 is named 'm\\x80in'"),
    ];
    for (bytes, expected) in cases {
        assert!(message(&bytes).starts_with(expected), "{expected}: {}", message(&bytes));
    }
    let nothing = b"AHYB\x01\0\x05\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let program = Program::decode(nothing).unwrap();
    assert_eq!(
        program.report(),
        ["there is no GPU section: nothing runs", "flags 0x0005 ignored: the format gives them no meaning"]
    );
}

#[test]
fn adead_files() {
    let source = "input a f32[2]\nconst w f32[2] = 1.0 2.0\nconst v f32[2] = 1.0 2.0\noutput c f32[2]\n\
                  c = add a w\nc = gelu a form=tanh";
    let bytes = adead(source).encode();
    // Tables at 0x40 (80 bytes each), names at 0x180, code at 0x184, list at 0x1ac, text at 0x1b0, constants at 0x1c0.
    let word = |at: usize, value: u32| with_checksum(patched(&bytes, at, value.to_le_bytes()));
    let long = |at: usize, value: u64| with_checksum(patched(&bytes, at, value.to_le_bytes()));
    let byte = |at: usize, value: u8| with_checksum(patched(&bytes, at, [value]));
    let no_call = 0x40000 + Op::NUMBERS as u32;
    let no_opcode = format!("byte 0x184: unknown opcode {no_call:08X}");
    let cases = [
        (byte(8, 2), "byte 0x8: .adead version 2"),
        (byte(10, 1), "byte 0xa: the flags must be zero"),
        (word(12, u32::MAX), "byte 0x40: truncated: the tensor table takes 343597383600 bytes"),
        (word(16, u32::MAX), "byte 0x184: truncated: the instructions takes 85899345900 bytes"),
        (word(20, u32::MAX), "byte 0x1ac: truncated: the operand list takes 17179869180 bytes"),
        (word(24, u32::MAX), "byte 0x1b0: truncated: the attribute text takes 4294967295 bytes"),
        (word(28, u32::MAX), "byte 0x180: truncated: the names takes 4294967295 bytes"),
        (long(32, u64::MAX), "byte 0x1c0: truncated: the constants takes 18446744073709551615 bytes"),
        (long(40, u64::MAX), "byte 0x28: the header says 18446744073709551615 bytes and the file has"),
        (byte(48, 1), "byte 0x30: the reserved bytes must be zero"),
        (patched(&bytes, 0x1c0, [1]), "byte 0x208: the checksum is"),
        (byte(0x40, 200), "byte 0x180: truncated: a tensor's name takes 200 bytes and 4 are left"),
        (byte(0x40, 0), "byte 0x40: \"\" is not a valid name"),
        (byte(0x42, 9), "byte 0x40: 'a': unknown dtype 9"),
        (byte(0x43, 4), "byte 0x40: 'a': unknown role 4"),
        (byte(0x43, 2), "byte 0x88: 'a' begins at 0x0, before 0x1c0: it overlaps the data there"),
        (byte(0x44, 9), "byte 0x40: 'a': rank 9"),
        (byte(0x44, 0), "byte 0x40: 'a': rank 0 with the dimensions [2, 0"),
        (byte(0x45, 1), "byte 0x45: the bytes after a rank must be zero"),
        (long(0x48, u64::MAX), "byte 0x40: the shape [18446744073709551615] has more than"),
        (long(0x98, 1 << 40), "byte 0x1c0: truncated: the constant 'w' takes 4398046511104 bytes and 72 are left"),
        (long(0x88, 0x1c0), "byte 0x88: 'a' is not a constant but has contents at 0x1c0"),
        (long(0x128, 0x1c0), "byte 0x128: 'v' begins at 0x1c0, before 0x1c8: it overlaps the data there"),
        (long(0x128, 0x240), "byte 0x128: 'v' begins at 0x240; it must begin at 0x200"),
        (byte(0x1d0, 1), "byte 0x1c8: the padding between constants must be zero"),
        (byte(0x180, b'9'), "byte 0x40: \"9\" is not a valid name"),
        (byte(0x180, b'w'), "byte 0x90: a second tensor is named 'w'"),
        (byte(0x180, 0xff), "byte 0x40: the tensor name '\\xff' is not UTF-8"),
        (word(0x184, 0x7777), "byte 0x184: unknown opcode 00007777"),
        (word(0x184, no_call), &*no_opcode),
        (word(0x188, 4), "byte 0x184: operand 4 is not a tensor: the table has 4"),
        (word(0x194, 1), "byte 0x184: opcode 00020000: operand fields from 3 on must be 0"),
        (word(0x184, 0x30000), "byte 0x184: matmul: 'c' is f32[2]; the result is f32[]"),
        (with_checksum(patched(&word(0x184, 0x30000), 0x194, [4])), "byte 0x184: flags 0x4: bit 0 transposes a"),
        (word(0x1a0, u32::MAX), "byte 0x1ac: truncated: a call's operands takes 17179869180 bytes"),
        (word(0x1a0, 0), "byte 0x1ac: 4 bytes follow the end of the last instruction's operands"),
        (word(0x1a4, 10), "byte 0x1b0: truncated: a call's attributes takes 10 bytes and 9 are left"),
        (word(0x1a4, 0), "byte 0x1b0: 9 bytes follow the end of the last instruction's attributes"),
        (word(0x1ac, 77), "byte 0x198: operand 77 is not a tensor"),
        (word(0x1ac, u32::MAX), "byte 0x198: gelu: operand 0 (x) is missing"),
        (byte(0x1b0, b' '), "byte 0x198: gelu has no attribute 'orm'"),
        (
            with_checksum(patched(&bytes, 0x1b5, *b"erf ")),
            "byte 0x1b0: the attributes \"form=erf \" must be written \"form=erf\"",
        ),
        (byte(0x1b5, b' '), "byte 0x198: gelu: form is ''; it must be erf or tanh"),
        (byte(0x1b5, b';'), "byte 0x198: gelu: \"form=;anh\" is not an attribute"),
        (byte(0x1b5, 0xff), "byte 0x1b0: the attributes are not UTF-8"),
        (byte(0x1b9, 1), "byte 0x1b9: the padding before the constants must be zero"),
        (word(0x198, 0xC0DA_0020), "byte 0x198: opcode C0DA0020: operand fields from 1 on must be 0"),
    ];
    for (bytes, expected) in cases {
        assert!(message(&bytes).starts_with(expected), "{expected}: {}", message(&bytes));
    }
    let names = with_checksum(patched(&adead("temp ab f32[1]").encode(), 0x40, [1]));
    assert!(message(&names).starts_with("byte 0x91: 1 bytes follow the end of the last tensor's name"));
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(message(&longer).starts_with("byte 0x28: the header says"));
}

/// Valid programs in every format, to be truncated and changed.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> =
        ["matmul_1024.hex", "mlp.asm", "mlp.adead", "softmax.asm", "hybrid.ahyb", "attention.asm", "attention.hex"]
            .map(|name| std::fs::read(example(name)).unwrap())
            .into();
    seeds.push(Program::decode(&seeds[5]).unwrap().encode_agpu().unwrap());
    seeds.push(Program::decode(&seeds[5]).unwrap().encode());
    seeds
}

#[test]
fn every_truncation_is_refused() {
    for bytes in seeds().into_iter().filter(|bytes| bytes.starts_with(b"A")) {
        for length in 0..bytes.len() {
            let message = message(&bytes[..length]);
            assert!(message.contains("byte 0x"), "{length}: {message}");
        }
    }
}

/// Decodes, validates, encodes and runs. Any outcome is accepted, except a panic.
fn try_everything(bytes: &[u8], counts: &mut [usize; 3]) {
    const SMALL: usize = 64 << 10;
    let program = match Program::decode(bytes) {
        Ok(program) => program,
        Err(error) => {
            assert_eq!(error.status(), Status::InvalidProgram, "{error}");
            assert!(error.message().starts_with("byte ") || error.message().starts_with("line "), "{error}");
            counts[0] += 1;
            return;
        }
    };
    if let Err(error) = program.validate(SMALL) {
        assert!(matches!(error.status(), Status::InvalidProgram | Status::OutOfMemory), "{error}");
        counts[1] += 1;
        return;
    }
    let text = program.disassemble();
    let again = Program::assemble(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(again.encode(), program.encode(), "{text}");
    assert_eq!(Program::decode(&program.encode()).unwrap().disassemble(), text);
    let mut options = RunOptions::new().memory_limit(SMALL).parallel(bytes.len().is_multiple_of(2));
    for slot in program.slots().iter().filter(|slot| slot.required) {
        if slot.bytes > SMALL {
            return;
        }
        options = options.input(&slot.name, Tensor::zeros(slot.meta.dtype, slot.meta.shape.dims()).unwrap());
    }
    // The run may fail, for example because of wrong ids.
    let _ = program.run(&context(), &options);
    counts[2] += 1;
}

#[test]
fn changed_bytes_never_panic() {
    let mut random = Random(8);
    let mut counts = [0; 3];
    for seed in seeds() {
        for _ in 0..700 {
            let mut bytes = seed.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len());
                match random.below(6) {
                    0 => bytes[at] = random.next() as u8,
                    1 => bytes[at] ^= 1 << random.below(8),
                    2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b'0', b' ', b'\n'][random.below(8)],
                    3 => drop(bytes.remove(at)),
                    4 => bytes.insert(at, random.next() as u8),
                    _ => {
                        let from = random.below(bytes.len());
                        let length = random.below(32).min(bytes.len() - at.max(from));
                        bytes.copy_within(from..from + length, at);
                    }
                }
                if bytes.is_empty() {
                    break;
                }
            }
            if bytes.starts_with(b"ADEAD\r\n") && random.below(4) > 0 && bytes.len() > 48 {
                let size = bytes.len() as u64;
                bytes[40..48].copy_from_slice(&size.to_le_bytes());
                bytes = with_checksum(bytes);
            }
            try_everything(&bytes, &mut counts);
        }
    }
    assert!(counts.iter().all(|&count| count > 100), "every stage is reached: {counts:?}");
}

#[test]
fn random_bytes_never_panic() {
    let mut random = Random(9);
    let mut counts = [0; 3];
    let heads: [&[u8]; 6] = [b"", b"AGPU\x01\0", b"AHYB\x01\0", b"ADEAD\r\n\x1a\x01\0\0\0", b".adead 1\n", b"0000: "];
    for i in 0..4000 {
        let mut bytes = heads[i % heads.len()].to_vec();
        bytes.extend((0..random.below(200)).map(|_| match random.below(3) {
            0 => random.next() as u8,
            1 => b"0123456789ABCDEF: \n\0\x01"[random.below(21)],
            _ => b"\xda\xc0\0\x10\x20"[random.below(5)],
        }));
        try_everything(&bytes, &mut counts);
    }
    assert!(counts[0] > 3000, "{counts:?}");
}

#[test]
fn many_random_instructions_never_panic() {
    // Random words of the text form, which reach deeper than random bytes.
    let words = "alloc free copy_h2d copy_d2h memset matmul add div scale relu gelu softmax layernorm attention \
                 multihead_attn ffn embedding sync end";
    let words: Vec<&str> = words.split_whitespace().collect();
    let mut random = Random(10);
    let mut counts = [0; 3];
    for _ in 0..1500 {
        let mut text = String::from(".agpu 1\nalloc 256 r0\nalloc 256 r1\nalloc 64 r2\n");
        for _ in 0..1 + random.below(4) {
            let word = words[random.below(words.len())];
            let registers = match word {
                "sync" | "end" => 0,
                "alloc" | "free" | "memset" => 1,
                "copy_h2d" | "copy_d2h" => 1,
                "matmul" | "add" | "div" | "embedding" => 3,
                "attention" | "multihead_attn" | "ffn" => 4,
                _ => 2,
            };
            let numbers = match word {
                "matmul" | "multihead_attn" | "ffn" => 3,
                "softmax" | "layernorm" | "attention" | "embedding" | "memset" | "scale" => 2,
                "add" | "div" | "relu" | "gelu" | "alloc" | "copy_h2d" | "copy_d2h" => 1,
                _ => 0,
            };
            let registers: Vec<String> = (0..registers).map(|_| format!("r{}", random.below(4))).collect();
            let sizes = [0, 1, 2, 3, 4, 4, 8, 8, 16, 64, u32::MAX];
            let numbers: Vec<String> = (0..numbers).map(|_| sizes[random.below(sizes.len())].to_string()).collect();
            let (registers, numbers) = (registers.join(" "), numbers.join(" "));
            text += &match word {
                "alloc" => format!("alloc {numbers} {registers}\n"),
                "copy_h2d" => format!("copy_h2d 0x7 {registers} {numbers}\n"),
                "copy_d2h" => format!("copy_d2h {registers} 0x7 {numbers}\n"),
                _ => format!("{word} {registers} {numbers}\n"),
            };
        }
        try_everything(text.as_bytes(), &mut counts);
    }
    assert!(counts[1] > 100 && counts[2] > 100, "{counts:?}");
}

#[test]
fn every_operation_on_random_shapes_never_panics() {
    let mut random = Random(11);
    let mut counts = [0; 3];
    let huge = ["4294967296", "1152921504606846975", "1000000"];
    for i in 0..6000 {
        let op = Op::ALL[i % Op::ALL.len()];
        let mut text = String::from(".adead 1\n");
        for name in ["a", "b", "d"] {
            let dims: Vec<String> = (0..random.below(5))
                .map(|_| match random.below(24) {
                    0 => huge[random.below(3)].into(),
                    n => [2, 2, 2, 3, 3, 1, 0][n % 7].to_string(),
                })
                .collect();
            let dtype = ["f32", "f32", "f32", "f16", "bf16", "i32", "i64", "u32"][random.below(8)];
            let dims = if name == "b" && random.below(2) == 0 { "2,2".into() } else { dims.join(",") };
            text += &format!("input {name} {dtype}[{dims}]\n");
        }
        let mut line = format!("c = {op}");
        for _ in 0..1 + random.below(op.info().operands.len().max(2)) {
            line += [" a", " a", " b", " d", " -"][random.below(5)];
        }
        for name in op.info().attrs {
            if random.below(2) == 0 {
                let values: &[&str] = match *name {
                    "axis" => &["0", "1", "-1", "all", "2147483647", "-2147483648"],
                    "axes" => &["", "0", "1,0", "0,0", "-1,0", "0,2", "7,7", "0,1,2,3,4,5,6,7"],
                    "start" | "stop" => &["", "0", "1,0", "-1", "2147483647,-2147483648", "1,1,1", "0,0,0,0,0,0,0,0,0"],
                    "step" => &["", "1", "2,1", "0", "-1", "2147483647,3"],
                    "before" | "after" => &["", "0", "1,2", "0,0,1", "-1", "2147483647,2147483647,2147483647"],
                    "perm" => &["", "0", "1,0", "0,0", "1,0,2", "7,7", "0,1,2,3,4,5,6,7"],
                    "dtype" => &["f32", "i32", "i64", "bf16"],
                    "precision" => &["f32", "fixed24", "fixed16"],
                    "activation" => &["none", "silu", "gelu_erf"],
                    "form" => &["erf", "tanh"],
                    "alpha" | "beta" | "eps" | "scale" | "min" | "max" => {
                        &["0", "-1.5", "0x7fc12345", "inf", "0x00000001"]
                    }
                    _ => &["0", "1"],
                };
                line += &format!(" {name}={}", values[random.below(values.len())]);
            }
        }
        // The shape rule states the expected result in its error.
        let wrong = format!("{text}output c u32[9,9,9]\n{line}");
        let result = match Program::assemble(&wrong).and_then(|program| program.validate(LIMIT).map(drop)) {
            Err(error) => error.message().rsplit_once("the result is ").map(|(_, meta)| meta.replace(' ', "")),
            Ok(()) => None,
        };
        let text = result.map_or(wrong, |meta| format!("{text}output c {meta}\n{line}"));
        try_everything(text.as_bytes(), &mut counts);
    }
    assert!(counts[1] > 100 && counts[2] > 100, "{counts:?}");
}

#[test]
fn a_header_of_many_instructions_takes_no_memory_for_them() {
    // The largest counts that the formats can express, in files of a few bytes. They are refused at once.
    let begin = std::time::Instant::now();
    let mut adead = b"ADEAD\r\n\x1a\x01\0\0\0".to_vec();
    adead.resize(64, 0xff);
    adead[40..48].copy_from_slice(&64u64.to_le_bytes());
    adead[48..].fill(0);
    for _ in 0..1000 {
        assert!(message(&adead).starts_with("byte 0x40: truncated: the tensor table takes 343597383600 bytes"));
        assert!(message(b"AGPU\x01\0\xff\xff").starts_with("byte 0x8: truncated"));
    }
    assert!(begin.elapsed().as_secs() < 5);
    assert!(Program::assemble(".adead 1\nconst a f32[1000000000000] = 0.0").is_err());
    assert!(adead_core::program::Program::decode(&vec![b'A'; LIMIT >> 10]).is_err());
}
