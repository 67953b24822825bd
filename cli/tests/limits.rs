//! Tests of inputs that are too large or never end, and of outputs that can't be written: an error, no file left, no abort.
#![cfg(target_os = "linux")]

mod common;

use common::{Ended, adead, bad, command, file, floats, folder, good, names};
use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const RELU: &str = ".adead 1\ninput x f32[2,3]\noutput y f32[2,3]\ny = relu x\nhalt\n";

fn square(rows: usize, columns: usize) -> String {
    format!(".adead 1\ninput x f32[{rows},{columns}]\noutput y f32[{rows},{columns}]\ny = relu x\nhalt\n")
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().into()
}

/// The command in a shell script, where `"$@"` is the command.
fn shell(script: &str, args: &[&str]) -> Output {
    let inner = command(args);
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script).arg("sh").arg(inner.get_program()).args(inner.get_args()).stdin(Stdio::null());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.output().expect("a shell")
}

#[test]
fn inputs_that_can_not_be_had_are_out_of_memory() {
    let folder = folder("limits_memory");
    let huge = file(&folder, "huge.asm", square(60_000, 60_000).as_bytes());
    let large = file(&folder, "large.asm", square(30_000, 10_000).as_bytes());
    let y = text(&folder.join("y.npy"));
    for program in [&huge, &large] {
        for source in ["x=zeros", "x=rand:1", "x=wild:1", "x=fill:3f800000"] {
            let args = ["run", program, "--in", source, "--memory-limit", "4000GiB", "--device", "cpu"];
            let out = format!("y={y}");
            let args = [&args[..], &["--out", &out]].concat();
            let ended: Ended = shell("ulimit -v 1500000; exec \"$@\"", &args).into();
            assert_eq!((ended.code, ended.out.as_str()), (14, ""), "{program} {source}: {ended:?}");
            assert!(ended.err.starts_with("adead: error: ") && ended.err.lines().count() == 1, "{ended:?}");
        }
    }
    assert_eq!(names(&folder), ["huge.asm", "large.asm"]);
    // More memory than any machine has is refused before anything is allocated.
    let beyond = file(&folder, "beyond.asm", square(4_000_000, 4_000_000).as_bytes());
    let error = bad(14, &["run", &beyond, "--in", "x=zeros", "--memory-limit", "16000000GiB"]);
    assert!(
        error.contains("the inputs take 64000000000000 bytes and the program 64000000000000; the machine has"),
        "{error}"
    );
}

#[test]
fn the_memory_limit_counts_inputs() {
    let folder = folder("limits_inputs");
    let source = ".adead 1\ninput x f32[1000,1000]\noutput y f32[1]\ny = sum x axis=0\nhalt\n";
    let source = source.replace("f32[1]", "f32[1000]");
    let program = file(&folder, "p.asm", source.as_bytes());
    let run =
        |limit: &'static str| ["run", program.as_str(), "--in", "x=zeros", "--memory-limit", limit].map(String::from);
    let with = |limit| run(limit).iter().map(String::clone).collect::<Vec<_>>();
    let args = |list: &[String]| adead(&list.iter().map(String::as_str).collect::<Vec<_>>());
    let refused = args(&with("1MiB"));
    assert_eq!(refused.code, 14);
    let words = "the inputs take 4000000 bytes and the program 4000; the limit is 1048576 (--memory-limit)";
    assert!(refused.err.contains(words), "{refused:?}");
    assert_eq!(args(&with("4004000")).code, 0);
    assert_eq!(args(&with("4003999")).code, 14);
}

#[test]
fn what_never_ends_is_refused() {
    for args in [&["run", "/dev/zero"][..], &["disasm", "/dev/zero"], &["kernel", "/dev/zero"]] {
        assert!(bad(21, args).contains("/dev/zero gives more than 268435456 bytes"), "{args:?}");
    }
    let endless: Ended = shell("yes | \"$@\"", &["asm", "-", "-o", "/dev/null"]).into();
    assert!(endless.code == 21 && endless.err.contains("stdin gives more than 268435456 bytes"), "{endless:?}");
}

#[test]
fn values_on_stdout_are_alone_there() {
    let folder = folder("limits_stdout");
    let program = file(&folder, "p.asm", RELU.as_bytes());
    let one = floats(&[1.0; 6]);
    for name in ["-", "/dev/stdout", "/proc/self/fd/1"] {
        for json in [false, true] {
            let out = format!("y={name}");
            let mut args = vec!["run", &program, "--in", "x=fill:3f800000", "--out", &out];
            args.extend(json.then_some("--json"));
            let output = command(&args).output().unwrap();
            assert!(output.status.success() && output.stdout.starts_with(b"\x93NUMPY"), "{name}: {output:?}");
            assert_eq!(output.stdout[128..], one, "{name}");
            let report = String::from_utf8(output.stderr).unwrap();
            assert!(report.contains("sha256") && report.starts_with('{') == json, "{report}");
            // Also if stdout is redirected to a file.
            let y = text(&folder.join("y.npy"));
            let script = format!("\"$@\" > {y}");
            let output = shell(&script, &args);
            assert!(output.status.success(), "{output:?}");
            assert_eq!(std::fs::read(&y).unwrap()[128..], one, "{name}");
        }
    }
    assert_eq!(names(&folder), ["p.asm", "y.npy"], "no file is named -");
    let two = ".adead 1\ninput x f32[1]\noutput y f32[1]\noutput z f32[1]\ny = relu x\nz = relu x\nhalt\n";
    let two = file(&folder, "two.asm", two.as_bytes());
    let both = ["run", &two, "--in", "x=zeros", "--out", "y=-", "--out", "z=/dev/stdout"];
    assert!(bad(11, &both).contains("another output goes to stdout"));
    // asm can write to stdout by this name too.
    let assembled = command(&["asm", &program, "-o", "/dev/stdout"]).output().unwrap();
    assert!(assembled.status.success() && assembled.stdout.starts_with(b"ADEAD\r\n"), "{assembled:?}");
}

#[test]
fn a_run_whose_report_is_lost_leaves_no_file() {
    let folder = folder("limits_report");
    let program = file(&folder, "p.asm", RELU.as_bytes());
    let out = format!("y={}", text(&folder.join("y.npy")));
    let args = ["run", &program, "--in", "x=zeros", "--out", &out];
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ended = command(&args).stdout(full).output().unwrap();
    assert_eq!(ended.status.code(), Some(21), "{ended:?}");
    assert_eq!(names(&folder), ["p.asm"]);
    let closed: Ended = shell("exec \"$@\" >&-", &args).into();
    assert_eq!((closed.code, closed.err.as_str()), (21, "adead: error: stdout: it is closed (io)\n"));
    assert_eq!(names(&folder), ["p.asm"]);
    for args in [&["info"][..], &["--help"], &["--version"], &["completions", "bash"]] {
        let closed: Ended = shell("exec \"$@\" >&-", args).into();
        assert!(closed.code == 21 && closed.err.contains("stdout: it is closed"), "{args:?}: {closed:?}");
    }
    // This command writes nothing to stdout.
    let written = text(&folder.join("p.adead"));
    let silent: Ended = shell("exec \"$@\" >&-", &["asm", &program, "-o", &written]).into();
    assert_eq!(silent.code, 0, "{silent:?}");
    good(&args);
    assert_eq!(names(&folder), ["p.adead", "p.asm", "y.npy"]);
}
