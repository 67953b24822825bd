//! Tests of `adead verify`: built-in cases, cases of a folder, failing cases and malformed ones.

mod common;

use common::{adead, bad, command, file, folder, good, repository};

const CASE: &str = "case x/relu\nop relu\nin f32 2 bits:bf8000003f800000\nout f32 2 bits:000000003f800000\nend\n";

fn header() -> String {
    let cases = std::fs::read_to_string(repository("tests/conformance/cases/unary.txt")).unwrap();
    cases.lines().next().unwrap().to_string() + "\n"
}

#[test]
fn the_device_passes_with_a_line() {
    let out = good(&["verify", "--threads", "2", "--filter", "matmul/"]);
    let line = out.lines().last().unwrap();
    assert_eq!(out.lines().count(), 1, "{out}");
    assert!(line.starts_with("cpu (") && line.contains(", 2 threads): "), "{out}");
    assert!(line.ends_with(" ran, 0 failed, 0 skipped"), "{out}");
}

#[test]
fn the_cpu_passes_with_every_instruction_set() {
    let out = good(&["verify", "--all-isas", "--threads", "1", "--filter", "softmax/"]);
    let info: serde_json::Value = serde_json::from_str(&good(&["info", "--json"])).unwrap();
    let isas: Vec<&str> = info["cpu"]["isas"].as_array().unwrap().iter().map(|isa| isa.as_str().unwrap()).collect();
    assert_eq!(out.lines().count(), isas.len(), "{out}");
    for (line, isa) in out.lines().zip(isas) {
        assert!(line.starts_with(&format!("cpu ({isa}, 1 thread): ")) && line.contains(" 0 failed"), "{out}");
    }
}

#[test]
fn a_precision_is_refused_because_cases_say_theirs() {
    let ended = adead(&["verify", "--precision", "fixed24", "--filter", "matmul/"]);
    assert!(ended.code == 11 && ended.err.contains("each case specifies its own"), "{ended:?}");
}

#[test]
fn every_case_is_run_and_listed() {
    let list = good(&["verify", "--list"]);
    let ids: Vec<&str> = list.lines().collect();
    let all = adead_conformance::cases().unwrap();
    assert!(ids.iter().copied().eq(all.iter().map(|case| case.id)));
    let out = good(&["verify"]);
    assert!(out.contains(&format!("{} ran, 0 failed", ids.len())), "{out}");
    // The source folder has the same cases.
    let folder = repository("tests/conformance/cases");
    assert_eq!(good(&["verify", "--list", "--cases", &folder]), list);
    assert!(good(&["verify", "--cases", &folder, "--filter", "sum"]).contains(" 0 failed"));
}

#[test]
fn a_mismatch_is_told_and_exits_with_1() {
    let folder = folder("verify_wrong");
    let path = folder.to_str().unwrap();
    file(&folder, "x.txt", (header() + CASE).as_bytes());
    assert!(good(&["verify", "--cases", path]).ends_with(": 1 ran, 0 failed, 0 skipped\n"));
    let wrong = CASE.replace("x/relu", "x/wrong").replace("bits:000000003f800000", "bits:000000003f800001");
    file(&folder, "x.txt", (header() + CASE + &wrong).as_bytes());
    let ended = adead(&["verify", "--cases", path]);
    assert_eq!((ended.code, ended.err.as_str()), (1, ""), "{ended:?}");
    let lines: Vec<&str> = ended.out.lines().collect();
    assert_eq!(lines.len(), 2, "{ended:?}");
    assert_eq!(lines[0], "FAIL x/wrong: expected 3f800001, got 3f800000 at element 1");
    assert!(lines[1].ends_with(": 2 ran, 1 failed, 0 skipped"), "{ended:?}");
    // Cases that are not run can't fail.
    assert!(good(&["verify", "--cases", path, "--filter", "relu"]).contains("1 ran, 0 failed"));
}

#[test]
fn malformed_cases_and_folders_are_errors() {
    let folder = folder("verify_malformed");
    let path = folder.to_str().unwrap();
    assert!(bad(11, &["verify", "--cases", path]).contains("no case files"));
    file(&folder, "readme.md", b"no case file");
    assert!(bad(11, &["verify", "--cases", path]).contains("no case files"));
    file(&folder, "x.txt", b"nonsense\n");
    assert!(bad(11, &["verify", "--cases", path]).contains("x.txt does not begin with"));
    file(&folder, "x.txt", header().as_bytes());
    assert!(bad(11, &["verify", "--cases", path]).contains("there is no case; nothing was verified"));
    file(&folder, "x.txt", (header() + CASE + "out of place\n").as_bytes());
    assert!(bad(11, &["verify", "--cases", path]).contains("x.txt:7: 'out of place' is not valid here"));
    file(&folder, "x.txt", b"\xff\xff");
    assert!(bad(21, &["verify", "--cases", path]).contains("x.txt: "));
    assert!(bad(21, &["verify", "--cases", "nowhere"]).contains("nowhere: "));
    assert!(bad(11, &["verify", "--filter", "no such case"]).contains("no case whose id contains 'no such case'"));
    bad(2, &["verify", "--all-isas", "--isa", "avx2"]);
}

#[test]
fn the_environment_chooses_the_device() {
    let run = |name: &str, value: &str| {
        let output = command(&["verify", "--filter", "matmul/error"]).env(name, value).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(run("ADEAD_DEVICE", "cuda").0, 15);
    assert_eq!(run("ADEAD_DEVICE", "nonsense").0, 11);
    assert_eq!(run("ADEAD_DEVICE", "").0, 0);
    assert_eq!(run("ADEAD_DEVICE", "hybrid").0, 0);
    assert_eq!(run("ADEAD_DEVICE", "cpu,cuda:99").0, 15);
    assert!(run("ADEAD_NUM_THREADS", "3").1.contains(", 3 threads)"));
    assert_eq!(run("ADEAD_NUM_THREADS", "none").0, 11);
    #[cfg(target_arch = "x86_64")]
    assert!(run("ADEAD_ISA", "sse2").1.contains("cpu (sse2, "));
    assert_eq!(run("ADEAD_ISA", "sse9").0, 11);
    // An argument takes precedence over the environment.
    let mut argument = command(&["verify", "--filter", "matmul/error", "--device", "cpu", "--threads", "1"]);
    let output = argument.env("ADEAD_DEVICE", "cuda").env("ADEAD_NUM_THREADS", "none").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}
