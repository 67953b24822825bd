//! Tests of `adead run`: inputs, outputs, and their errors.

mod common;

use common::{adead, adead_with, after, bad, file, floats, folder, good, names, npy};
use std::path::Path;

const RELU: &str = ".adead 1\ninput x f32[2,3]\noutput y f32[2,3]\ny = relu x\nhalt\n";
const EMBED: &str = ".adead 1\ninput t f32[4,2]\ninput i i32[3]\noutput y f32[3,2]\ny = embedding t i\nhalt\n";

/// A program that transposes a tensor of this dtype.
fn transpose(dtype: &str) -> String {
    format!(".adead 1\ninput x {dtype}[2,3]\noutput y {dtype}[3,2]\ny = transpose x\nhalt\n")
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().into()
}

#[test]
fn npy_files_go_in_and_out() {
    let folder = folder("run_npy");
    let program = file(&folder, "p.asm", RELU.as_bytes());
    let values = floats(&[1.0, -2.0, 3.5, -0.0, f32::INFINITY, -1e-40]);
    let expected = floats(&[1.0, 0.0, 3.5, 0.0, f32::INFINITY, 0.0]);
    let y = folder.join("y.npy");
    for version in [1, 2, 3] {
        let x = file(&folder, "x.npy", &npy(version, "<f4", false, "(2, 3)", &values));
        let out = good(&["run", &program, "--in", &format!("x={x}"), "--out", &format!("y={}", text(&y))]);
        assert!(out.contains("y f32[2, 3] sha256") && out.contains("-> "), "{out}");
        let written = std::fs::read(&y).unwrap();
        assert_eq!(written.len(), 128 + expected.len());
        assert!(
            written.starts_with(b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }")
        );
        assert_eq!((written[127], &written[128..]), (b'\n', &expected[..]));
        // The written file can be read: applying relu again changes nothing.
        let again = good(&["run", &program, "--in", &format!("x={}", text(&y))]);
        assert_eq!(after(&again, "sha256 "), after(&out, "sha256 "));
    }
    assert_eq!(names(&folder), ["p.asm", "x.npy", "y.npy"], "no temporary file stays");
}

#[test]
fn every_dtype_and_order_is_read_and_written() {
    let folder = folder("run_dtypes");
    for (dtype, kind, size) in
        [("f32", "f4", 4), ("f16", "f2", 2), ("i32", "i4", 4), ("i64", "i8", 8), ("u32", "u4", 4), ("f64", "f8", 8)]
    {
        let program = file(&folder, "p.asm", transpose(dtype).as_bytes());
        // Six elements of distinct small bytes, none of them a NaN: in row-major order, then in Fortran order.
        let element = |i: u8| (0..size).map(|byte| i * 8 + byte).collect::<Vec<u8>>();
        let rows: Vec<u8> = (0..6).flat_map(element).collect();
        let columns: Vec<u8> = [0, 3, 1, 4, 2, 5].into_iter().flat_map(element).collect();
        let swap = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            bytes.chunks_exact_mut(size as usize).for_each(<[u8]>::reverse);
            bytes
        };
        for (order, fortran, data) in [
            ('<', false, rows.clone()),
            ('<', true, columns.clone()),
            ('>', false, swap(&rows)),
            ('>', true, swap(&columns)),
        ] {
            let x = file(&folder, "x.npy", &npy(1, &format!("{order}{kind}"), fortran, "(2, 3)", &data));
            let y = folder.join("y.npy");
            good(&["run", &program, "--in", &format!("x={x}"), "--out", &format!("y={}", text(&y))]);
            let written = std::fs::read(&y).unwrap();
            assert_eq!(written[128..], columns, "{dtype} {order} {fortran}");
            assert!(String::from_utf8_lossy(&written[..128]).contains(&format!("'<{kind}'")));
        }
    }
}

#[test]
fn shapes_of_every_rank_are_written_as_numpy_does() {
    let folder = folder("run_ranks");
    for (dims, tuple) in [("", "()"), ("4", "(4,)"), ("0", "(0,)"), ("1,2,1,1,1,1,1,1", "(1, 2, 1, 1, 1, 1, 1, 1)")] {
        let source = format!(".adead 1\ninput x f32[{dims}]\noutput y f32[{dims}]\ny = relu x\nhalt\n");
        let program = file(&folder, "p.asm", source.as_bytes());
        let y = folder.join("y.npy");
        good(&["run", &program, "--in", "x=rand:1", "--out", &format!("y={}", text(&y))]);
        let written = std::fs::read(&y).unwrap();
        assert!(String::from_utf8_lossy(&written).contains(&format!("'shape': {tuple}, }}")), "{tuple}");
        good(&["run", &program, "--in", &format!("x={}", text(&y))]);
    }
}

#[test]
fn generators_are_those_of_the_conformance_format() {
    let folder = folder("run_generators");
    let output = |dtype: &str, source: &str| {
        let program = file(&folder, "p.asm", transpose(dtype).as_bytes());
        let y = folder.join("y.npy");
        good(&["run", &program, "--in", &format!("x={source}"), "--out", &format!("y={}", text(&y))]);
        std::fs::read(&y).unwrap()[128..].to_vec()
    };
    let z = |i: u64| adead_conformance::generate::splitmix64(7, i);
    // The result is transposed: elements 0, 3, 1, 4, 2, 5.
    let order = [0, 3, 1, 4, 2, 5];
    let rand: Vec<f32> = order.map(|i| ((z(i) >> 40) as f32 - 8388608.0) / 8388608.0).to_vec();
    assert_eq!(output("f32", "rand:7"), floats(&rand));
    let scaled: Vec<f32> = rand.iter().map(|value| value / 8.0).collect();
    assert_eq!(output("f32", "rand:7:-3"), floats(&scaled));
    let ids: Vec<u8> = order.iter().flat_map(|&i| ((((z(i) >> 32) * 100) >> 32) as i64).to_le_bytes()).collect();
    assert_eq!(output("i64", "ids:7:100"), ids);
    assert_eq!(output("u32", "fill:0000abcd"), [0xcd, 0xab, 0, 0].repeat(6));
    assert_eq!(output("i32", "zeros"), [0; 24]);
    assert_eq!(output("f16", "fill:3c00"), [0, 0x3c].repeat(6));
    assert!(
        good(&["run", &file(&folder, "p.asm", transpose("bf16").as_bytes()), "--in", "x=wild:3"])
            .contains("bf16[3, 2]")
    );
}

#[test]
fn inputs_that_do_not_fit_are_refused_with_both_sides() {
    let folder = folder("run_misfits");
    let program = file(&folder, "p.asm", RELU.as_bytes());
    let x = |descr: &str, shape: &str, bytes: usize| {
        format!("x={}", file(&folder, "x.npy", &npy(1, descr, false, shape, &vec![0; bytes])))
    };
    let run = |code: i32, input: &str| bad(code, &["run", &program, "--in", input]);
    let error = run(12, &x("<f4", "(3, 3)", 36));
    assert!(error.contains("slot x is f32[2, 3]") && error.contains("f32[3, 3], 36 bytes (shape_mismatch)"), "{error}");
    assert!(run(12, &x("<f4", "(3, 2)", 24)).contains("holds f32[3, 2] (shape_mismatch)"));
    assert!(run(13, &x("<i4", "(2, 3)", 24)).contains("holds i32[2, 3] (dtype_mismatch)"));
    assert!(
        run(13, &x("<f8", "(2, 3)", 48)).contains("holds f64[2, 3]; save it with .astype('float32') (dtype_mismatch)")
    );
    assert!(run(11, &x("<f4", "(2, 3)", 23)).contains("takes 24 bytes and 23 follow the header"));
    assert!(run(11, &x("<f4", "(2, 3)", 25)).contains("takes 24 bytes and more follow the header"));
    assert!(run(11, &format!("x={}", file(&folder, "x.txt", b"1 2 3\n"))).contains("not a .npy file"));
    assert!(run(11, &format!("x={}", file(&folder, "x.txt", b""))).contains("too short"));
    assert!(run(21, "x=nowhere.npy").contains("nowhere.npy: "));
    assert!(run(21, &format!("x={}", text(&folder))).contains("(io)"));
    assert!(run(13, "x=ids:1:5").contains("slot x is f32, which ids:1:5 can't generate"));
    assert!(run(11, "x=fill:3f80").contains("needs 8 hexadecimal digits, got 4"));
    assert!(run(11, "x=rand:1:101").contains("the exponent must be from -100 to 100"));
    let halves = file(&folder, "h.asm", transpose("f16").as_bytes());
    assert!(bad(11, &["run", &halves, "--in", "x=rand:1:16"]).contains("from -4 to 15"));
    let ids = file(&folder, "i.asm", transpose("i32").as_bytes());
    assert!(bad(13, &["run", &ids, "--in", "x=rand:1"]).contains("slot x is i32"));
}

#[test]
fn an_agpu_slot_takes_any_shape_of_its_size() {
    let folder = folder("run_agpu");
    let source = ".agpu 1\nalloc 24 r0\ncopy_h2d 0x1000 r0 24\nrelu r0 r0 6\ncopy_d2h r0 0x2000 24\nend\n";
    let program = file(&folder, "p.asm", source.as_bytes());
    for shape in ["(6,)", "(2, 3)", "(3, 1, 2)"] {
        let x = file(&folder, "x.npy", &npy(1, "<f4", false, shape, &floats(&[-1.0; 6])));
        for slot in ["0x1000", "0X1000", "0x00001000", "4096"] {
            let out = good(&["run", &program, "--in", &format!("{slot}={x}")]);
            assert!(out.contains("out      0x2000 f32[6]"), "{out}");
        }
    }
    let x = file(&folder, "x.npy", &npy(1, "<f4", false, "(7,)", &floats(&[-1.0; 7])));
    let error = bad(12, &["run", &program, "--in", &format!("0x1000={x}")]);
    assert!(error.contains("slot 0x1000 is 24 bytes") && error.contains("f32[7], 28 bytes"), "{error}");
}

#[test]
fn bindings_are_checked_before_anything_runs() {
    let folder = folder("run_bindings");
    let program = file(&folder, "p.asm", EMBED.as_bytes());
    let run = |code: i32, more: &[&str]| bad(code, &[&["run", program.as_str()], more].concat());
    let error = run(11, &[]);
    assert!(
        error.contains("missing inputs: t, i; the program has t (in, 32 bytes), i (in, 12 bytes), y (out, 24 bytes)"),
        "{error}"
    );
    assert!(error.contains("add --in t=FILE.npy --in i=FILE.npy"), "{error}");
    assert!(run(11, &["--in", "t=zeros"]).contains("missing inputs: i;"));
    assert!(run(11, &["--in", "q=zeros"]).contains("no slot 'q'; the program has t (in"));
    assert!(run(11, &["--in", "y=zeros"]).contains("slot y is an output"));
    assert!(run(11, &["--in", "t=zeros", "--in", "t=rand:1"]).contains("bound twice"));
    let all = ["--in", "t=rand:1", "--in", "i=ids:1:4"];
    let with = |more: &[&'static str]| [&all[..], more].concat();
    assert!(run(11, &with(&["--out", "q=a.npy"])).contains("no slot 'q'"));
    assert!(run(11, &with(&["--out", "t=a.npy"])).contains("slot t is an input"));
    assert!(run(21, &with(&["--out", "y=nowhere/a.npy"])).contains("nowhere/a.npy: "));
    assert!(run(14, &with(&["--memory-limit", "23"])).contains("the limit is 23"));
    // The two inputs of 32 and 12 bytes count too.
    assert!(run(14, &with(&["--memory-limit", "67"])).contains("the limit is 67"));
    good(&[&["run", &program], &with(&["--memory-limit", "68"])[..]].concat());
    let twice = format!("y={}", text(&folder.join("a.npy")));
    assert!(run(11, &[&all[..], &["--out", &twice, "--out", &twice]].concat()).contains("twice"));
    assert_eq!(names(&folder), ["p.asm"]);
}

#[test]
fn bools_go_in_and_out() {
    let folder = folder("run_bools");
    let program = ".adead 1\ninput m bool[3]\ninput a f32[3]\nconst c bool[3] = 01 00 01\ntemp b f32[3]\noutput y f32[3]\n\
                   output l bool[3]\nb = neg a\ny = where m a b\nl = equal m c\nhalt\n";
    let program = file(&folder, "p.asm", program.as_bytes());
    let m = file(&folder, "m.npy", &npy(1, "|b1", false, "(3,)", &[0, 1, 1]));
    let a = file(&folder, "a.npy", &npy(1, "<f4", false, "(3,)", &floats(&[1.0, 2.0, f32::NAN])));
    let (y, l) = (folder.join("y.npy"), folder.join("l.npy"));
    let (inputs, outputs) =
        ([format!("m={m}"), format!("a={a}")], [format!("y={}", text(&y)), format!("l={}", text(&l))]);
    good(&["run", &program, "--in", &inputs[0], "--in", &inputs[1], "--out", &outputs[0], "--out", &outputs[1]]);
    assert!(std::fs::read(&y).unwrap().ends_with(&floats(&[-1.0, 2.0, f32::NAN])));
    let written = std::fs::read(&l).unwrap();
    assert!(
        written.ends_with(&[0, 0, 1]) && String::from_utf8_lossy(&written).contains("'descr': '|b1'"),
        "{written:?}"
    );
    good(&["run", &program, "--in", "m=ids:1:2", "--in", "a=rand:1"]);
}

#[test]
fn a_failed_run_leaves_files_as_they_were() {
    let folder = folder("run_failed");
    let program = file(&folder, "p.asm", EMBED.as_bytes());
    let y = file(&folder, "y.npy", b"as it was");
    // The third id is not a row of the table, which only the run can find.
    let i = file(&folder, "i.npy", &npy(1, "<i4", false, "(3,)", &[0, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0]));
    let args = ["run", &program, "--in", "t=rand:1", "--in", &format!("i={i}"), "--out", &format!("y={y}")];
    let error = bad(11, &args);
    assert!(error.contains("4"), "{error}");
    assert_eq!(std::fs::read(&y).unwrap(), b"as it was");
    assert_eq!(names(&folder), ["i.npy", "p.asm", "y.npy"]);
    let bf16 = file(&folder, "b.asm", transpose("bf16").as_bytes());
    let error = bad(19, &["run", &bf16, "--in", "x=rand:1", "--out", &format!("y={y}")]);
    assert!(error.contains(".npy has no type for bf16"), "{error}");
    assert_eq!(std::fs::read(&y).unwrap(), b"as it was");
}

#[cfg(unix)]
#[test]
fn links_lead_to_the_file_and_devices_are_not_replaced() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    let folder = folder("run_links");
    let program = file(&folder, "p.asm", RELU.as_bytes());
    let real = file(&folder, "real.npy", b"old");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&real, folder.join("link.npy")).unwrap();
    let link = folder.join("link.npy");
    good(&["run", &program, "--in", "x=rand:1", "--out", &format!("y={}", text(&link))]);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(std::fs::read(&real).unwrap().starts_with(b"\x93NUMPY"));
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    good(&["run", &program, "--in", "x=rand:1", "--out", "y=/dev/null"]);
    assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    assert!(bad(21, &["run", &program, "--in", "x=rand:1", "--out", &format!("y={}", text(&folder))]).contains("(io)"));
}

#[test]
fn programs_that_are_none_are_refused() {
    let folder = folder("run_programs");
    let run = |code: i32, name: &str, contents: &[u8]| bad(code, &["run", &file(&folder, name, contents)]);
    assert!(run(18, "empty", b"").contains("empty: "));
    assert!(run(18, "garbage", b"\xff\xfe\0\0").contains("(invalid_program)"));
    assert!(run(18, "cut", b"AGPU\x01\0").contains("truncated"));
    assert!(run(18, "bad.asm", b".adead 1\nnonsense\n").contains("line 2"));
    assert!(run(18, "wrong.asm", b".agpu 1\nfree r0\nend\n").contains("r0"));
    assert!(bad(21, &["run", "nowhere.hex"]).contains("nowhere.hex: "));
    let (code, _, error) = adead_with(&["run", "-"], b"x");
    assert!(code == 18 && error.contains("stdin: "), "{error}");
}

#[test]
fn a_program_comes_from_stdin_and_repeats() {
    let (code, out, error) = adead_with(&["run", "-", "--in", "x=fill:bf800000", "--repeat", "5"], RELU.as_bytes());
    let out = String::from_utf8(out).unwrap();
    assert_eq!((code, error.as_str()), (0, ""), "{out}");
    assert!(out.contains("stdin (text, 2 instructions)") && out.contains("median of 5 runs"), "{out}");
    // SHA-256 of 24 zero bytes.
    assert_eq!(after(&out, "sha256 "), "9d908ecfb6b256def8b49a7c504e6c889c4b0e41fe6ce3e01863dd7b61a20aa0");
}

#[test]
fn what_is_skipped_of_a_program_is_noted() {
    let folder = folder("run_notes");
    let agpu = {
        let path = folder.join("p.agpu");
        let source = ".agpu 1\nalloc 4 r0\ncopy_h2d 0x10 r0 4\ncopy_d2h r0 0x20 4\nend\n";
        good(&["asm", &file(&folder, "p.asm", source.as_bytes()), "-o", &text(&path)]);
        std::fs::read(path).unwrap()
    };
    let mut ahyb = b"AHYB\x01\0\0\0".to_vec();
    for size in [2, agpu.len() as u32, 0, 0] {
        ahyb.extend(size.to_le_bytes());
    }
    ahyb.extend(b"\x0f\x0b");
    ahyb.extend(&agpu);
    let program = file(&folder, "p.ahyb", &ahyb);
    let ended = adead(&["run", &program, "--in", "0x10=fill:3f800000"]);
    assert_eq!(ended.code, 0);
    assert!(ended.err.starts_with("adead: note: CPU section of 2 bytes skipped"), "{ended:?}");
    assert!(ended.out.contains("(ahyb, 4 instructions)"), "{ended:?}");
}
