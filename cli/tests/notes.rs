//! Tests of mistakes that a command could ignore silently: each gives an error or a note that says what to do.

mod common;

use common::{Ended, adead, adead_with, bad, command, file, folder, good, has_gpu, npy, repository};
use serde_json::Value;

const RELU: &str = ".adead 1\ninput x f32[2,3]\noutput y f32[2,3]\ny = relu x\nhalt\n";

#[test]
fn a_source_that_is_no_file_names_the_generators() {
    let folder = folder("notes_sources");
    let program = file(&folder, "p.asm", RELU.as_bytes());
    let error = bad(21, &["run", &program, "--in", "x=random:1"]);
    let words = "random:1: no such file; for generated values, write zeros, rand:SEED[:E], wild:SEED, ids:SEED:N or \
                 fill:HEX";
    assert!(error.contains(words), "{error}");
}

#[test]
fn the_gpu_is_a_device() {
    let names = ["cpu", "gpu", "hybrid"];
    let info: Value = serde_json::from_str(&good(&["info", "--json"])).unwrap();
    assert!(names.contains(&info["recommended"].as_str().unwrap()));
    for name in names {
        let ended = adead(&["verify", "--device", name, "--filter", "unary/relu"]);
        match name {
            "gpu" if !has_gpu() => assert!(ended.code == 15 && ended.err.contains("there is no 'gpu'"), "{ended:?}"),
            _ => assert_eq!(ended.code, 0, "{name}: {ended:?}"),
        }
    }
    let hidden = command(&["info", "--device", "gpu"]).env("ADEAD_VISIBLE_DEVICES", "none").output().unwrap();
    assert_eq!(hidden.status.code(), Some(15));
    let help = good(&["--help"]);
    for word in ["auto,", "cpu,", "gpu ", "cuda,", "cuda:1,", "vulkan,"] {
        assert!(help.contains(word), "{word}: {help}");
    }
}

#[test]
fn options_that_change_nothing_are_refused() {
    let folder = folder("notes_options");
    let program = file(&folder, "p.asm", RELU.as_bytes());
    let kernel = repository("examples/kernels/vecadd.spv");
    for args in
        [&["asm", &program, "-o", "-"][..], &["disasm", &program], &["kernel", &kernel], &["completions", "bash"]]
    {
        let with = |more: &[&'static str]| bad(2, &[args, more].concat());
        assert!(
            with(&["--device", "banana"]).contains("'--device' is not accepted: this command does not use a device")
        );
        assert!(with(&["--threads", "2"]).contains("'--threads'"));
        assert!(with(&["--isa", "portable"]).contains("'--isa'"));
    }
}

#[test]
fn a_program_that_is_cut_off_is_told() {
    let whole = std::fs::read_to_string(repository("examples/programs/matmul_1024.hex")).unwrap();
    let inputs = ["--in", "0x1000=zeros", "--in", "0x2000=zeros"];
    let run = |text: &str, more: &[&'static str]| adead_with(&[&["run", "-"], more].concat(), text.as_bytes());
    let (code, _, error) = run(&whole, &inputs);
    assert_eq!((code, error.as_str()), (0, ""));
    let lines: Vec<&str> = whole.lines().collect();
    for kept in [3, 5, 9, lines.len() - 4] {
        let cut: String = lines[..kept].iter().map(|line| format!("{line}\n")).collect();
        let (code, out, error) = run(&cut, &[]);
        assert!(code == 18 && out.is_empty(), "{kept}: {error}");
        if kept > 4 {
            assert!(error.contains("line 2: the comment says 13 instructions, but the file has "), "{error}");
        }
    }
    // The same with a later comment that counts bytes.
    let (code, _, error) = run(&whole.replace("size: 161", "size: 160"), &inputs);
    assert!(code == 18 && error.contains("the comment says 160 bytes, but the file has 161"), "{error}");
    // Without a count the program runs, and a note says that its end is missing.
    let endless: String = lines[3..lines.len() - 4].iter().map(|line| format!("{line}\n")).collect();
    let (code, _, error) = run(&endless, &inputs);
    assert_eq!(
        (code, error.as_str()),
        (0, "adead: note: no END after its 12 instructions: the program may be truncated\n")
    );
    let (code, _, error) = adead_with(&["disasm", "-"], RELU.replace("halt\n", "").as_bytes());
    assert_eq!(
        (code, error.as_str()),
        (0, "adead: note: no HALT after its 1 instructions: the program may be truncated\n")
    );
}

#[test]
fn a_kernel_for_cuda_is_told_as_such() {
    let ptx = repository("examples/kernels/vecadd.ptx");
    for args in [&["kernel", &ptx][..], &["dispatch", &ptx, "--groups", "1"]] {
        let error = bad(17, args);
        assert!(error.contains("vecadd.ptx is PTX, which is for CUDA; this command takes SPIR-V"), "{error}");
    }
    let folder = folder("notes_kernels");
    let other = file(&folder, "x.spv", b"int main() { return 0; }");
    assert!(bad(17, &["kernel", &other]).contains("x.spv: SPIR-V: "));
}

#[test]
fn values_of_another_type_are_noted() {
    let folder = folder("notes_types");
    let source = ".agpu 1\nalloc 24 r0\ncopy_h2d 0x1000 r0 24\nrelu r0 r0 6\ncopy_d2h r0 0x2000 24\nend\n";
    let program = file(&folder, "p.asm", source.as_bytes());
    let run = |descr: &str| {
        let x = file(&folder, "x.npy", &npy(1, descr, false, "(6,)", &[0; 24]));
        adead(&["run", &program, "--in", &format!("0x1000={x}")])
    };
    let noted = run("<i4");
    let words = "is used as f32 and ";
    assert!(
        noted.code == 0 && noted.err.starts_with("adead: note: slot 0x1000 ") && noted.err.contains(words),
        "{noted:?}"
    );
    assert_eq!(run("<f4").err, "");
}

#[test]
fn a_name_of_another_format_is_noted() {
    let folder = folder("notes_formats");
    let program = file(&folder, "p.asm", RELU.as_bytes());
    let asm = |name: &str, more: &[&'static str]| {
        let path = folder.join(name).to_str().unwrap().to_string();
        let ended = adead(&[&["asm", &program, "-o", &path], more].concat());
        assert!(ended.code == 0 && folder.join(name).exists(), "{ended:?}");
        ended.err
    };
    let note = asm("mlp.json", &[]);
    assert!(
        note.contains("mlp.json has the format adead, not json; choose a format with the ending .adead, .agpu or .hex"),
        "{note}"
    );
    assert!(asm("p.hex", &["--to", "adead"]).ends_with("p.hex has the format adead, not hex\n"));
    for quiet in ["p.adead", "p.bin", "p"] {
        assert_eq!(asm(quiet, &[]), "", "{quiet}");
    }
}

#[test]
fn devices_that_are_not_there_are_noted() {
    let run = |visible: &str| -> Ended {
        let args = ["verify", "--filter", "unary/relu", "--device", "cpu"];
        command(&args).env("ADEAD_VISIBLE_DEVICES", visible).output().expect("it runs").into()
    };
    let noted = run("99");
    assert_eq!(noted.code, 0);
    assert_eq!(noted.err, "adead: note: ADEAD_VISIBLE_DEVICES names '99', but this machine has no such GPU\n");
    assert_eq!(run("none").err, "");
    if has_gpu() {
        assert_eq!(run("0").err, "");
        assert!(run("0,geforce 9").err.contains("'geforce 9'"));
    }
}

#[test]
fn verify_prints_json() {
    let json = |args: &[&str]| -> (i32, Value) {
        let ended = adead(args);
        (ended.code, serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {ended:?}")))
    };
    let (code, found) = json(&["verify", "--device", "cpu", "--filter", "unary/relu", "--json"]);
    let device = &found["devices"][0];
    assert!(code == 0 && device["device"].as_str().unwrap().starts_with("cpu ("), "{found}");
    assert!(
        device["ran"].as_u64().unwrap() > 0 && device["failed"] == 0 && device["failures"] == Value::Array(Vec::new())
    );
    let (_, ids) = json(&["verify", "--list", "--filter", "unary/relu", "--json"]);
    assert_eq!(ids.as_array().unwrap().len() as u64, device["ran"].as_u64().unwrap());
    // Wrong cases fail with their ids.
    let folder = folder("notes_verify");
    let case = "format 1 adead-contract-2\n\ncase unary/wrong\nop relu\nin f32 1 bits:3f800000\nout f32 1 bits:40000000\nend\n";
    file(&folder, "unary.txt", case.as_bytes());
    let (code, found) = json(&["verify", "--device", "cpu", "--cases", folder.to_str().unwrap(), "--json"]);
    let device = &found["devices"][0];
    assert_eq!(
        (code, &device["failed"], &device["failures"][0]["id"]),
        (1, &1.into(), &"unary/wrong".into()),
        "{found}"
    );
}

#[test]
fn push_constants_of_another_type_are_refused() {
    let kernel = repository("examples/kernels/vecadd.spv");
    let refused = |push: &str| {
        let error = bad(11, &["dispatch", &kernel, "--groups", "1", "--push", push, "--buffer", "zeros:4"]);
        assert!(error.contains("push constant"), "{error}");
        error
    };
    assert!(refused("0.5").contains("push constant 0 ('n') is u32, a whole number from 0 to 4294967295; got 0.5"));
    assert!(refused("-1").contains("got -1"));
    assert!(refused("4294967296").contains("got 4294967296"));
    assert!(refused("f32:1").contains("is u32; got f32:1"));
    assert!(refused("1,2").contains("takes 1 push constants (n u32); got 2 numbers"));
    let shown = good(&["kernel", &kernel]);
    assert!(shown.lines().any(|line| line == "push    4 bytes: u32 n at 0"), "{shown}");
    let json: Value = serde_json::from_str(&good(&["kernel", &kernel, "--json"])).unwrap();
    let numbers = &json["entry_points"][0]["push_constants"]["numbers"];
    assert_eq!(*numbers, serde_json::json!([{"name": "n", "type": "u32", "offset": 0}]));
    // The kernel stays within its buffers, whatever count it receives.
    if has_gpu() {
        let buffers =
            ["--buffer", "f32[100]:fill:3f800000", "--buffer", "f32[100]:fill:3f800000", "--buffer", "f32[100]:zeros"];
        let sums = |push: &str| {
            let text = good(&[&["dispatch", &kernel, "--groups", "5000", "--push", push][..], &buffers].concat());
            common::after(&text, "sha256 ").to_string()
        };
        assert_eq!(sums("100000000"), sums("100"));
    }
}

/// The commands with a help, including `adead` itself.
const HELPS: [&[&str]; 15] = [
    &[],
    &["info"],
    &["run"],
    &["asm"],
    &["disasm"],
    &["verify"],
    &["explain"],
    &["kernel"],
    &["dispatch"],
    &["bench"],
    &["calibrate"],
    &["embed"],
    &["search"],
    &["gguf"],
    &["completions"],
];

#[test]
fn examples_in_the_help_fit_a_terminal() {
    for args in HELPS {
        if cfg!(not(feature = "models")) && matches!(args, ["embed" | "search" | "gguf"]) {
            continue;
        }
        let wide = good(&[args, &["--help"]].concat());
        let narrow = command(&[args, &["--help"]].concat()).env("COLUMNS", "80").output().unwrap();
        let narrow = String::from_utf8(narrow.stdout).unwrap();
        let behind =
            |help: &str| help.split_once("EXAMPLES").unwrap_or_else(|| panic!("{args:?}: {help}")).1.to_string();
        assert_eq!(behind(&wide), behind(&narrow), "{args:?} wraps at 80 columns");
        for line in behind(&wide).lines() {
            assert!(line.chars().count() <= 80, "{args:?}: {line}");
        }
    }
    assert!(good(&["--help"]).contains("\n  130  SIGINT or SIGTERM ended it"));
}
