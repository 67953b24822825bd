//! Tests of `adead gguf`.
#![cfg(feature = "models")]

#[path = "../../models/tests/common/gguf.rs"]
#[allow(dead_code)]
mod builder;
mod common;

use adead_models::gguf::Kind;
use builder::{Builder, Item};
use common::{bad, file, folder, good};

fn written(name: &str) -> String {
    let tokens: Vec<String> = (0..9).map(|i| format!("a long token {i}")).collect();
    let nested = Item::array(9, vec![vec![1u8, 2].into()]);
    let contents = Builder::new()
        .value("general.architecture", "llama")
        .value("general.name", "x".repeat(100) + "\n")
        .value("line\nbreak", "\x1b[31mred")
        .value("eps", 1e-5f32)
        .value("wide", 0.1f64)
        .value("negative", -3i64)
        .value("tokens", tokens)
        .value("scores", vec![f32::INFINITY, 0.5])
        .value("nested", nested)
        .tensor("token_embd.weight", &[3, 32], Kind::Q8_0, &[1; 3 * 34])
        .tensor("other", &[7], Kind::Other(99), &[2; 7]);
    file(&folder(name), "model.gguf", &contents.finish())
}

#[test]
fn a_file_is_shown() {
    let path = written("gguf-table");
    let expected = format!(
        "file     {path} (GGUF 3)
tensors  2: 103 values in 109 bytes, aligned to 32

general.architecture  string        llama
general.name          string        {}…
line\\nbreak           string        \\u{{1b}}[31mred
eps                   f32           1e-5
wide                  f64           0.1
negative              i64           -3
tokens                [string; 9]   'a long token…', 'a long token…', 'a long token…', 'a long token…', …
scores                [f32; 2]      inf, 0.5
nested                [array; 1]    [u8; 2]

tensor             kind     dims          size  at byte
token_embd.weight  Q8_0     [3, 32]  102 bytes      736
other              type 99  [7]        7 bytes      864
",
        "x".repeat(60)
    );
    let squeezed =
        |text: &str| text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>();
    let shown = good(&["gguf", &path]);
    assert_eq!(squeezed(&shown), squeezed(&expected), "{shown}");
}

#[test]
fn json_has_all_of_it() {
    let path = written("gguf-json");
    let json: serde_json::Value = serde_json::from_str(&good(&["gguf", &path, "--json"])).unwrap();
    assert_eq!((&json["version"], &json["alignment"]), (&3.into(), &32.into()));
    let value = |key: &str| {
        let metadata = json["metadata"].as_array().unwrap();
        metadata.iter().find(|entry| entry["key"] == key).unwrap_or_else(|| panic!("{key}"))
    };
    assert_eq!(json["metadata"].as_array().unwrap().len(), 9);
    assert_eq!(*value("eps"), serde_json::json!({ "key": "eps", "type": "f32", "value": 1e-5 }));
    assert_eq!(value("line\nbreak")["value"], "\x1b[31mred");
    assert_eq!(value("tokens")["value"].as_array().unwrap().len(), 9);
    assert_eq!(value("tokens")["elements"], "string");
    assert_eq!(value("scores")["value"], serde_json::json!(["inf", 0.5]));
    assert_eq!(value("nested")["value"], serde_json::json!([[1, 2]]));
    let tensor = &json["tensors"][0];
    assert_eq!((&tensor["name"], &tensor["kind"]), (&"token_embd.weight".into(), &"Q8_0".into()));
    assert_eq!((&tensor["dims"], &tensor["bytes"]), (&serde_json::json!([3, 32]), &102.into()));
}

#[test]
fn what_is_no_such_file_is_refused() {
    let folder = folder("gguf-refused");
    let path = file(&folder, "short.gguf", b"GGUF");
    let error = bad(11, &["gguf", &path]);
    assert!(
        error.ends_with("short.gguf: not a valid GGUF file: it has 4 bytes, and a header has 24 (invalid_argument)\n"),
        "{error}"
    );
    bad(21, &["gguf", folder.join("missing").to_str().unwrap()]);
    assert!(bad(2, &["gguf", &path, "--device", "cpu"]).contains("does not use a device"));
}
