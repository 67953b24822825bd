//! Encoding and decoding of bytes and text.

use super::{LIMIT, adead, agpu, refused};
use adead_core::program::{Format, Program};
use adead_core::{Op, Status};

#[test]
fn an_agpu_binary_byte_by_byte() {
    let program = agpu("alloc 64 r7\nscale r7 r7 16 -0.0\nend");
    let expected =
        "414750550100 0300 1000dac0 02 40000000 07000000 2500dac0 04 07000000 07000000 10000000 00000080 ffffdac0 00";
    let bytes: Vec<u8> = expected
        .split_whitespace()
        .collect::<String>()
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    assert_eq!(program.encode_agpu().unwrap(), bytes);
    assert_eq!(Program::decode(&bytes).unwrap().disassemble(), ".agpu 1\nalloc 64 r7\nscale r7 r7 16 -0.0\nend\n");
}

#[test]
fn an_adead_file_field_by_field() {
    let program = adead(
        "input a f32[2]\nconst w f32[2] = 1.0 40000000\noutput c f32[2]\nc = add a w\nc = gelu c form=tanh\nhalt",
    );
    let bytes = program.encode();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!(&bytes[..12], b"ADEAD\r\n\x1a\x01\0\0\0");
    assert_eq!([word(12), word(16), word(20), word(24), word(28), word(32)], [3, 3, 1, 9, 3, 8]);
    assert_eq!(word(40) as usize, bytes.len());
    let code = 64 + 3 * 80 + 3;
    assert_eq!([word(code), word(code + 4), word(code + 8), word(code + 12), word(code + 16)], [0x20000, 2, 0, 1, 0]);
    let call = [word(code + 20), word(code + 24), word(code + 28), word(code + 32), word(code + 36)];
    assert_eq!(call, [0x40000 + Op::Gelu as u32, 2, 1, 9, 0]);
    assert_eq!(word(code + 40), 0xFF);
    assert_eq!((word(code + 60), &bytes[code + 64..code + 73]), (2, &b"form=tanh"[..]));
    // The constant begins at the next multiple of 64; its table entry says where.
    assert_eq!((word(64 + 80 + 72), word(384), word(388)), (384, 0x3f800000, 0x40000000));
    assert_eq!(bytes.len(), 384 + 8 + 4);
    assert_eq!(Program::decode(&bytes).unwrap().format(), Format::Adead);
}

#[test]
fn what_comments_of_hex_text_count_is_compared() {
    let hex = agpu("alloc 64 r7\nscale r7 r7 16 -0.0\nend").encode_hex().unwrap();
    let decode = |text: String| Program::decode(text.as_bytes());
    for good in
        ["; Instructions: 3\n", "; Total size: 39 bytes\n", "; Instructions: some\n", "; three Instructions: 4\n"]
    {
        assert_eq!(decode(format!("{good}{hex}")).unwrap().report(), [""; 0], "{good}");
    }
    for (wrong, words) in [
        ("; Instructions: 13\n", "line 1: the comment says 13 instructions, but the file has 3"),
        ("\n;Total size: 161 bytes\n", "line 2: the comment says 161 bytes, but the file has 39"),
    ] {
        let error = decode(format!("{wrong}{hex}")).unwrap_err();
        assert_eq!(error.status(), Status::InvalidProgram);
        assert!(error.message().starts_with(words), "{error}");
    }
    // Without its last line the program has no end.
    let cut: String = hex.lines().take(2).map(|line| format!("{line}\n")).collect();
    assert_eq!(decode(cut).unwrap().report(), ["no END after its 2 instructions: the program may be truncated"]);
}

#[test]
fn every_operation_is_written_and_read() {
    // The decoder does not check whether these operands fit.
    for op in Op::ALL {
        let program = adead(&format!("input a f32[2,2]\noutput c f32[2,2]\nc = {op} a - a"));
        let again = Program::decode(&program.encode()).unwrap();
        assert_eq!(again.disassemble(), program.disassemble());
        assert!(again.line(0).unwrap().starts_with(&format!("c = {op} ")));
    }
}

#[test]
fn short_opcodes_and_calls_mean_the_same() {
    let declared = "input a f32[2,2]\noutput c f32[2,2]\n";
    for (flags, attrs) in ["", " trans_a=1", " trans_b=1", " trans_a=1 trans_b=1"].into_iter().enumerate() {
        let bytes = adead(&format!("{declared}c = matmul a a{attrs}")).encode();
        let code = 64 + 2 * 80 + 2;
        assert_eq!(bytes[code..code + 4], 0x30000u32.to_le_bytes());
        assert_eq!(bytes[code + 16], flags as u8);
        assert!(Program::decode(&bytes).unwrap().line(0).unwrap().ends_with(&format!("matmul a a{attrs}")));
    }
    for line in ["c = matmul a a trans_b=1 trans_a=1", "c = matmul a a alpha=2", "c = add a -", "c = relu a a"] {
        let program = adead(&format!("{declared}{line}"));
        assert_eq!(Program::decode(&program.encode()).unwrap().line(0).unwrap(), line);
    }
}

#[test]
fn agpu_opcodes_stand_in_adead_files_too() {
    let program = adead(
        "input a f32[2]\noutput c f32[2]\nc = relu a\ngpu.alloc 64 r0\ngpu.matmul r0 r0 r0 0 1 2\n\
         gpu.copy_d2h r0 0x10 64\nvk_init\nvk_compute 1 2 3\nhalt",
    );
    assert!(!program.is_agpu());
    let again = Program::decode(&program.encode()).unwrap();
    assert_eq!(again.disassemble(), program.disassemble());
    again.validate(LIMIT).unwrap();
    assert_eq!(again.slots().len(), 3);
    assert!(again.report()[0].starts_with("2 Vulkan opcodes, the first VK_INIT"));
    assert_eq!(program.encode_agpu().unwrap_err().status(), Status::Unsupported);
    assert_eq!(program.encode_hex().unwrap_err().status(), Status::Unsupported);
}

#[test]
fn constants_of_every_dtype() {
    let program = adead(
        "const a f32[3] = 7fc12345 -0.5 1.5e-3\nconst b f16[2] = 3c00 0.1\nconst c bf16[1] = 3f80\n\
         const d i32[2] = ffffffff 00000001\nconst e i64[1] = 0123456789abcdef\nconst f u32[] = 89abcdef\nconst g f32[0,7] =",
    );
    let text = program.disassemble();
    assert!(text.contains("const a f32[3] = 7fc12345 bf000000 3ac49ba6\n"), "{text}");
    assert!(text.contains("const b f16[2] = 3c00 2e66\n"), "{text}");
    assert!(
        text.contains("const e i64[1] = 0123456789abcdef\nconst f u32[] = 89abcdef\nconst g f32[0,7] =\n"),
        "{text}"
    );
    assert_eq!(Program::decode(&program.encode()).unwrap().disassemble(), text);
}

#[test]
fn bytes_decide_the_format() {
    let hex = "; a comment\r\n\r\n 0000: 0000DAC0 00 ; nothing\r\n5 : FFFFDAC000";
    let program = Program::decode(hex.as_bytes()).unwrap();
    assert_eq!((program.format(), program.disassemble().as_str()), (Format::Hex, ".agpu 1\nnop\nend\n"));
    let text = "\u{feff}; first\n  .adead 1 ; second\nhalt\n";
    assert_eq!(Program::decode(text.as_bytes()).unwrap().format(), Format::Text);
    for bytes in [&b""[..], b"AGP", b"hello", b"\xff\xfe\x00", b"; only a comment", b"\x7fELF\x02\x01\x01"] {
        assert!(refused(Program::decode(bytes)).starts_with("byte 0x0: not a recognised program"));
    }
    // Comments may contain bytes that are not UTF-8.
    assert!(Program::decode(b"0000: 0000DAC000 ; caf\xe9").is_ok());
}

#[test]
fn text_mistakes_name_their_line() {
    let cases = [
        ("halt", "line 1: program text begins with"),
        (".adead 2", "line 1: '.adead 2': this version reads '.adead 1'"),
        (".adead 1\n\nfoo", "line 3: unknown opcode 'foo'"),
        (".adead 1\nc = relu a", "line 2: no tensor is named 'c'"),
        (".adead 1\ninput a f32[2\n", "line 2: 'f32[2' is not a dtype and shape"),
        (".adead 1\ninput a f99[2]", "line 2: no dtype 'f99'"),
        (".adead 1\ninput a f32[1,1,1,1,1,1,1,1,1]", "line 2: a shape has at most 8 dimensions"),
        (".adead 1\ninput a f32[99999999999,99999999999]", "line 2: the shape"),
        (".adead 1\ninput 9 f32[2]", "line 2: \"9\" is not a valid name"),
        (".adead 1\ninput a f32[2]\ntemp a f32[2]", "line 3: a second tensor is named 'a'"),
        (".adead 1\nconst a f32[2]", "line 2: 'a' needs its contents"),
        (".adead 1\nconst a f32[2] = 1.0", "line 2: 'a' is f32[2]: it has 2 elements, but got 1"),
        (".adead 1\nconst a f32[2] = 1.0 2", "line 2: '2' is not an element of f32: 8 hexadecimal digits"),
        (".adead 1\nconst a i32[1] = 1.0", "line 2: '1.0' is not an element of i32"),
        (".adead 1\n= 00000000", "line 2: '=' continues a constant"),
        (".adead 1\ninput a f32[1] 5", "line 2: '5' after the input 'a'"),
        (".adead 1\ninput a f32[1]\na = nothing a", "line 3: no operation 'nothing'"),
        (".adead 1\ninput a f32[1]\na = relu a form=erf", "line 3: relu has no attribute 'form'"),
        (".adead 1\ninput a f32[1]\na = gelu a form=x", "line 3: gelu: form is 'x'; it must be erf or tanh"),
        (".adead 1\ninput a f32[1]\na = gelu a form=erf form=erf", "line 3: gelu: the attribute form is given twice"),
        (".adead 1\ninput a f32[1]\na = gelu a form=erf a", "line 3: gelu: \"a\" is not an attribute"),
        (".adead 1\nadd a b c", "line 2: write it as an assignment: dst = add"),
        (".adead 1\nalloc 5 r0", "line 2: ALLOC has 2 operands; it takes 1 (dst)"),
        (".agpu 1\nalloc 5", "line 2: ALLOC has 1 operands; it takes 2 (bytes, register)"),
        (".agpu 1\nalloc 5 5", "line 2: alloc: register is '5'; write a register such as r0"),
        (".agpu 1\nalloc 4294967296 r0", "line 2: alloc: bytes is '4294967296'"),
        (".agpu 1\nalloc +5 r0", "line 2: alloc: bytes is '+5'"),
        (".agpu 1\ncopy_h2d 4096 r0 5", "line 2: copy_h2d: address is '4096'; write a slot such as 0x1000"),
        (".agpu 1\nscale r0 r0 5 x", "line 2: scale: factor is 'x'"),
        (".agpu 1\ninput a f32[1]", "line 2: an '.agpu' program has registers and no tensors"),
        (".agpu 1\n\u{1b}[2J", "line 2: the line holds control characters"),
        (".agpu 1\nhalt", "line 2: unknown opcode 'halt'"),
        (".agpu 1\nend\nnop", "line 3: nop follows end, which ends the program"),
    ];
    for (text, expected) in cases {
        let message = refused(Program::assemble(text));
        assert!(message.starts_with(expected), "{text:?}: {message}");
    }
}
