//! The first command of the README: a program of the original project whose result equals the oracle's.

mod common;

use common::{adead, after, folder, good, repository};

fn program() -> String {
    repository("examples/programs/matmul_1024.hex")
}

const INPUTS: [&str; 4] = ["--in", "0x1000=rand:1", "--in", "0x2000=rand:2"];

/// The result that the oracle expects of the conformance case `matmul/program_1024`, which has the same inputs.
fn expected() -> String {
    let cases = std::fs::read_to_string(repository("tests/conformance/cases/matmul.txt")).unwrap();
    let case = cases.split("case matmul/program_1024\n").nth(1).unwrap().split("\nend").next().unwrap();
    let inputs: Vec<&str> = case.lines().filter(|line| line.starts_with("in ")).collect();
    assert_eq!(inputs, ["in f32 1024,1024 rand:1", "in f32 1024,1024 rand:2"]);
    after(case, "sha256:").to_string()
}

fn run(program: &str, more: &[&str]) -> String {
    good(&[&["run", program], &INPUTS[..], more].concat())
}

#[test]
fn the_hash_is_the_oracles() {
    let out = run(&program(), &[]);
    assert_eq!(after(&out, "sha256 "), expected(), "{out}");
    assert!(out.contains("GFLOP/s") && out.contains("device   cpu (") && out.contains("13 instructions"), "{out}");
}

#[test]
fn every_way_to_run_it_gives_that_hash() {
    let expected = expected();
    let info: serde_json::Value = serde_json::from_str(&good(&["info", "--json"])).unwrap();
    for isa in info["cpu"]["isas"].as_array().unwrap() {
        let isa = isa.as_str().unwrap();
        if isa == "portable" {
            continue; // A thousand million emulated multiply-adds take too long; the conformance cases cover it.
        }
        let out = run(&program(), &["--isa", isa, "--threads", "3"]);
        assert_eq!(after(&out, "sha256 "), expected, "{isa}");
    }
    for more in [&["--threads", "1"][..], &["--repeat", "3"], &["--device", "cpu"], &["--sequential"]] {
        let out = run(&program(), more);
        assert_eq!(after(&out, "sha256 "), expected, "{more:?}");
    }
}

#[test]
fn other_formats_of_it_and_its_json_have_that_hash() {
    let folder = folder("main_job");
    for name in ["p.adead", "p.agpu", "p.hex"] {
        let path = folder.join(name).to_str().unwrap().to_string();
        good(&["asm", &program(), "-o", &path]);
        let json: serde_json::Value = serde_json::from_str(&run(&path, &["--json"])).unwrap();
        assert_eq!(json["outputs"][0]["sha256"], expected(), "{name}");
        assert_eq!(json["outputs"][0]["slot"], "0x3000");
        assert_eq!(json["outputs"][0]["shape"], serde_json::json!([1024, 1024]));
        assert_eq!(json["flops"], 2f64.powi(31));
        assert!(json["gflops"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn other_inputs_give_another_hash() {
    let ended = adead(&["run", &program(), "--in", "0x1000=rand:1", "--in", "0x2000=rand:3"]);
    assert_eq!(ended.code, 0);
    assert_ne!(after(&ended.out, "sha256 "), expected());
}
