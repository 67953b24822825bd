//! Tests of `adead convert`.
#![cfg(feature = "models")]

mod common;

use common::{adead, after, bad, command, file, folder, good, names, repository};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;

fn hash(path: &str) -> String {
    Sha256::digest(fs::read(path).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_folder_becomes_a_file_that_runs() {
    let folder = folder("convert-folder");
    let out = folder.join("llama.gguf");
    let out = out.to_str().unwrap();
    let model = repository("tests/text/llama-hf");
    let report = good(&["convert", &model, "--out", out, "--type", "q8_0"]);
    assert!(report.contains("\ntensors  29: Q8_0 22, F32 7; 110592 values\n"), "{report}");
    assert!(report.contains(&format!("{out}, ")) && report.contains(" of before)"), "{report}");
    assert_eq!(after(&report, "sha256 "), hash(out));
    assert_eq!(names(&folder), ["llama.gguf"]);
    let text = good_text(&["generate", "--model", out, "--prompt", "the ferry", "--max-tokens", "5"]);
    assert!(text.ends_with('\n'), "{text:?}");
    assert!(good(&["gguf", out]).contains("general.file_type"), "it is a GGUF file");
    // The same bytes, over the old file, with any number of threads.
    let again = command(&["convert", &model, "--out", out, "--type", "q8_0", "--json"])
        .env("ADEAD_NUM_THREADS", "1")
        .output()
        .unwrap();
    let json: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(json["sha256"], hash(out));
    assert_eq!(json["sha256"], after(&report, "sha256 "));
    assert_eq!((&json["tensors"], &json["kinds"]["Q8_0"], &json["kinds"]["F32"]), (&29.into(), &22.into(), &7.into()));
    assert_eq!(json["bytes"], fs::metadata(out).unwrap().len());
    assert_eq!((&json["values"], json["notes"].as_array().unwrap().len()), (&110_592.into(), 0));
    assert!(json["bytes_before"].as_u64() > json["bytes"].as_u64());
    // Without a type as the folder has them.
    assert!(good(&["convert", &model, "--out", out]).contains("\ntensors  29: F32 29; "));
}

/// stdout of a command that may write to stderr.
fn good_text(args: &[&str]) -> String {
    let ended = adead(args);
    assert_eq!(ended.code, 0, "{ended:?}");
    ended.out
}

#[test]
fn a_file_becomes_another_even_in_its_own_place() {
    let folder = folder("convert-file");
    let path = file(&folder, "model.gguf", &fs::read(repository("tests/text/qwen3.gguf")).unwrap());
    let out = folder.join("out.gguf");
    let out = out.to_str().unwrap();
    let report = good(&["convert", &path, "--out", out, "--type", "bf16"]);
    assert!(report.contains(" BF16 "), "{report}");
    let ended = adead(&["convert", &path, "--out", &path, "--type", "q4_k"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let note =
        "adead: note: 16 matrices have rows that Q4_K's blocks of 256 values don't divide: they are stored as F16;";
    assert!(ended.err.starts_with(note) && ended.err.lines().count() == 1, "{ended:?}");
    good_text(&["generate", "--model", &path, "--prompt", "the ferry", "--max-tokens", "2"]);
    // To stdout, with the report on stderr.
    let ended = command(&["convert", &path, "--out", "-", "--type", "bf16"]).output().unwrap();
    assert!(ended.status.success() && ended.stdout.starts_with(b"GGUF"));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("tensors  "));
    assert_eq!(names(&folder), ["model.gguf", "out.gguf"]);
}

#[test]
fn what_goes_wrong_is_said_and_leaves_no_file() {
    let folder = folder("convert-wrong");
    let out = folder.join("out.gguf");
    let out = out.to_str().unwrap();
    let model = repository("tests/text/llama.gguf");
    let says = |code, args: &[&str], part: &str| {
        let said = bad(code, args);
        assert!(said.contains(part), "{args:?}: {said}");
    };
    says(
        2,
        &["convert", &model, "--out", out],
        "--type is missing: choose the type of the new GGUF file from f32, bf16, f16, q8_0",
    );
    says(2, &["convert", &model, "--out", out, "--type", "q3_k"], "q4_k");
    says(2, &["convert", &model], "--out");
    says(2, &["convert", &model, "--out", out, "--type", "f16", "--device", "cpu"], "does not use a device");
    says(21, &["convert", "none", "--out", out], "none: no such file or folder; a model is a Hugging Face folder");
    says(11, &["convert", &repository("README.md"), "--out", out, "--type", "f16"], "not a valid GGUF file");
    says(
        21,
        &["convert", &repository("tests/text"), "--out", out],
        "config.json: no such file; a model's folder has it",
    );
    says(21, &["convert", &model, "--out", folder.join("none/x").to_str().unwrap(), "--type", "f16"], "none/x");
    // A value that no block can hold: nothing is left, and an old file stays.
    let large = Large::new(&folder, 1e9);
    file(&folder, "out.gguf", b"old");
    says(
        11,
        &["convert", &large.0, "--out", out, "--type", "q8_0"],
        "the tensor 'a': the block from value 0 of row 1 on needs",
    );
    assert_eq!(
        (names(&folder), fs::read(out).unwrap()),
        (vec!["large.gguf".to_owned(), "out.gguf".into()], b"old".to_vec())
    );
    assert!(good(&["convert", "--help"]).contains("EXAMPLES"));
}

/// A GGUF file with a value in its second row.
struct Large(String);

impl Large {
    fn new(folder: &std::path::Path, value: f32) -> Large {
        use adead_models::gguf::{Header, Kind};
        let mut header = Header::new();
        header.set("general.architecture", "llama").unwrap();
        header.tensor("a", &[2, 32], Kind::F32).unwrap();
        let mut writer = header.begin(Vec::new()).unwrap();
        writer.write(&[0; 256 - 4]).unwrap();
        writer.write(&value.to_le_bytes()).unwrap();
        Large(file(folder, "large.gguf", &writer.finish().unwrap()))
    }
}
