//! Tests of `adead embed` and `adead search` with the small model of `tests/sentences`, and of their errors.
#![cfg(feature = "models")]

mod common;

use common::{adead, adead_with, after, bad, command, file, floats, folder, good, names, npy, repository};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

fn model() -> String {
    repository("tests/sentences/tiny")
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().into()
}

/// The hash in a report.
fn hash(report: &str) -> &str {
    after(report, "sha256 ")
}

/// The command's arguments for embedding a file.
fn embed<'a>(model: &'a str, input: &'a str, output: &'a str) -> Vec<&'a str> {
    vec!["embed", "--model", model, "--in", input, "--out", output]
}

#[test]
fn a_file_becomes_rows_with_the_same_bits_however_it_is_embedded() {
    let folder = folder("embed");
    let (model, input) = (model(), repository("tests/sentences/tiny.txt"));
    let output = text(&folder.join("rows.npy"));
    let ended = adead(&embed(&model, &input, &output));
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(ended.err, "adead: note: 3 sentences were cut to 24 tokens, the first in line 18\n");
    assert!(ended.out.contains("32 sentences, 3 of them cut") && ended.out.contains("f32[32, 32]"), "{}", ended.out);
    let written = fs::read(&output).unwrap();
    assert!(
        written.starts_with(b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (32, 32), }")
    );
    assert_eq!((written.len(), written[127]), (128 + 32 * 32 * 4, b'\n'));
    // Close to the oracle's values.
    let expected = fs::read(repository("tests/sentences/tiny.npy")).unwrap();
    let value = |bytes: &[u8], i: usize| f32::from_le_bytes(bytes[128 + 4 * i..][..4].try_into().unwrap());
    assert!((0..32 * 32).all(|i| (value(&written, i) - value(&expected, i)).abs() < 1e-6));
    for more in [&["--batch", "1"][..], &["--batch", "3", "--threads", "1"], &["--isa", "sse2"], &["--threads", "3"]] {
        if more[0] == "--isa" && cfg!(not(target_arch = "x86_64")) {
            continue;
        }
        let ended = adead(&[&embed(&model, &input, &output)[..], more].concat());
        assert_eq!((ended.code, hash(&ended.out)), (0, hash(&good_report(&model, &input, &output))), "{more:?}");
        assert_eq!(fs::read(&output).unwrap(), written, "{more:?}");
    }
    let exact = [&embed(&model, &input, &output)[..], &["--precision", "fixed24"]].concat();
    assert_ne!(hash(&adead(&exact).out), hash(&good_report(&model, &input, &output)));
    let wrong = adead(&[&embed(&model, &input, &output)[..], &["--precision", "f16"]].concat());
    assert!(wrong.code == 2 && wrong.err.contains("f32, fixed24, fixed16"), "{wrong:?}");
    assert_eq!(names(&folder), ["rows.npy"], "no temporary file stays");
}

/// The report of an embedding that prints a note.
fn good_report(model: &str, input: &str, output: &str) -> String {
    let ended = adead(&embed(model, input, output));
    assert_eq!(ended.code, 0, "{ended:?}");
    ended.out
}

#[test]
fn lines_come_from_stdin_and_as_json_too() {
    let folder = folder("embed_lines");
    let (model, output) = (model(), text(&folder.join("rows.npy")));
    let plain = file(&folder, "plain.txt", "the ferry\n\nÉ 港\n".as_bytes());
    let report = good(&embed(&model, &plain, &output));
    let expected = hash(&report);
    assert!(report.contains("3 sentences"), "{report}");
    let same = |args: &[&str], input: &str| {
        let (code, out, err) =
            adead_with(&[&["embed", "--model", &model, "--out", &output], args].concat(), input.as_bytes());
        let out = String::from_utf8(out).unwrap();
        assert_eq!((code, hash(&out), &err[..]), (0, expected, ""), "{args:?} {input:?} {out}");
    };
    same(&[], "the ferry\n\nÉ 港\n");
    same(&["--in", "-"], "the ferry\r\n\r\nÉ 港");
    same(&["--jsonl"], "\"the ferry\"\n\"\"\n{\"text\": \"\\u00c9 港\", \"id\": 3}\n");
    same(&["--jsonl", "body"], "{\"body\":\"the ferry\"}\n{\"body\":\"\"}\n{\"body\":\"É 港\"}\n");
    let json = file(&folder, "lines.jsonl", "\"the ferry\"\n\"\"\n\"É 港\"\n".as_bytes());
    assert_eq!(hash(&good(&embed(&model, &json, &output))), expected);
    let report = good(&[&embed(&model, &plain, &output)[..], &["--json"]].concat());
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!((report["sha256"].as_str(), report["shape"].to_string()), (Some(expected), "[3,32]".into()));
    assert_eq!((&report["truncated"], &report["max_tokens"]), (&0.into(), &24.into()));
    // An empty file gives a file without rows.
    let none = file(&folder, "none.txt", b"");
    assert!(good(&embed(&model, &none, &output)).contains("f32[0, 32]"));
    assert_eq!(fs::read(&output).unwrap().len(), 128);
}

#[test]
fn what_goes_wrong_is_said_and_leaves_no_file() {
    let folder = folder("embed_wrong");
    let (model, output) = (model(), text(&folder.join("rows.npy")));
    let plain = file(&folder, "plain.txt", b"the ferry\n");
    let says = |code, args: &[&str], part: &str| {
        let said = bad(code, args);
        assert!(said.contains(part), "{args:?}: {said}");
    };
    says(
        21,
        &embed(&text(&folder.join("no model")), &plain, &output),
        "no model: no such folder; a model is a folder that",
    );
    says(
        21,
        &embed("all-MiniLM-L6-v2", &plain, &output),
        "'hf download sentence-transformers/all-MiniLM-L6-v2 --local-dir",
    );
    says(11, &embed(&plain, &plain, &output), "a model is a folder");
    says(21, &embed(&text(&folder), &plain, &output), "config.json");
    says(21, &embed(&model, "no such file", &output), "no such file");
    says(21, &embed(&model, &plain, &text(&folder.join("no folder/rows.npy"))), "no folder");
    says(11, &embed(&model, &plain, "-"), "--out must be a file");
    let broken = file(&folder, "broken.txt", &[b"fine\n".repeat(200), b"the \xff ferry\n".to_vec()].concat());
    says(11, &embed(&model, &broken, &output), "broken.txt: line 201: byte 5 is not UTF-8: 0xff");
    #[cfg(unix)]
    says(11, &embed(&model, "/dev/zero", &output), "/dev/zero: line 1: it has more than 16777216 bytes");
    for (line, part) in [
        ("{", "line 2: not JSON"),
        ("7", "line 2: it is neither a string nor an object"),
        ("{\"text\": 7}", "line 2: 'text' is not a string"),
        ("{\"body\": \"a\"}", "line 2: the object has no 'text'"),
        ("", "line 2: not JSON"),
    ] {
        let lines = file(&folder, "lines.jsonl", format!("\"a\"\n{line}\n").as_bytes());
        says(11, &embed(&model, &lines, &output), part);
    }
    says(2, &[&embed(&model, &plain, &output)[..], &["--batch", "0"]].concat(), "--batch");
    // A model whose weights do not fit its configuration, and a model without a tokenizer.
    let spoiled = folder.join("spoiled");
    fs::create_dir_all(spoiled.join("1_Pooling")).unwrap();
    for name in ["config.json", "tokenizer.json", "modules.json", "1_Pooling/config.json", "model.safetensors"] {
        fs::copy(format!("{model}/{name}"), spoiled.join(name)).unwrap();
    }
    let config = fs::read_to_string(spoiled.join("config.json")).unwrap();
    fs::write(spoiled.join("config.json"), config.replace("\"intermediate_size\": 48", "\"intermediate_size\": 40"))
        .unwrap();
    says(12, &embed(&text(&spoiled), &plain, &output), "is [48, 32]; it must be [40, 32]");
    fs::write(spoiled.join("config.json"), config).unwrap();
    fs::remove_file(spoiled.join("tokenizer.json")).unwrap();
    says(21, &embed(&text(&spoiled), &plain, &output), "tokenizer.json");
    assert_eq!(names(&folder), ["broken.txt", "lines.jsonl", "plain.txt", "spoiled"]);
    // An existing file stays unchanged.
    fs::write(&output, b"kept").unwrap();
    says(11, &embed(&model, &broken, &output), "not UTF-8");
    assert_eq!(fs::read(&output).unwrap(), b"kept");
}

#[cfg(unix)]
#[test]
fn what_is_told_to_end_leaves_no_file() {
    let folder = folder("embed_interrupted");
    let (model, output) = (model(), text(&folder.join("rows.npy")));
    for signal in ["INT", "TERM"] {
        let mut child = command(&embed(&model, "-", &output)).stdin(Stdio::piped()).spawn().unwrap();
        // Its input stays open, so it waits for more. The output file exists under its temporary name.
        let input = child.stdin.take().unwrap();
        while names(&folder).is_empty() {
            assert!(child.try_wait().unwrap().is_none(), "it ended before it began a file");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        assert_eq!(child.wait().unwrap().code(), Some(130), "SIG{signal}");
        drop(input);
        assert_eq!(names(&folder), [] as [&str; 0], "SIG{signal}");
    }
}

#[test]
fn search_finds_the_closest_rows_exactly() {
    let folder = folder("search");
    let (model, output) = (model(), text(&folder.join("rows.npy")));
    let lines = ["the ferry", "a port", "", "ein schiff", "the ferry", "quiet"];
    let input = file(&folder, "lines.txt", lines.join("\n").as_bytes());
    good(&embed(&model, &input, &output));
    let out =
        good(&["search", &output, "--model", &model, "--query", "The Ferry", "--top", "3", "--sentences", &input]);
    let found: Vec<&str> = out.lines().collect();
    assert_eq!(found[..3], ["The Ferry", "  1.000000  0  the ferry", "  1.000000  4  the ferry"], "{out}");
    assert_eq!(found.len(), 4, "{out}");
    // Each query finds its own row first, then all others in the order of their products.
    let out = good(&["search", &output, "--queries", &output, "--json"]);
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    let bytes = fs::read(&output).unwrap();
    let value = |row: usize, i: usize| {
        f64::from(f32::from_le_bytes(bytes[128 + 4 * (row * 32 + i)..][..4].try_into().unwrap()))
    };
    for query in 0..lines.len() {
        let hits = found["queries"][query]["hits"].as_array().unwrap();
        assert_eq!(hits.len(), lines.len());
        let mut last = f64::INFINITY;
        for hit in hits {
            let (row, cosine) = (hit["row"].as_u64().unwrap() as usize, hit["cosine"].as_f64().unwrap());
            let expected: f64 = (0..32).map(|i| value(query, i) * value(row, i)).sum();
            assert!((cosine - expected).abs() < 1e-5 && cosine <= last, "{query} {hit}");
            last = cosine;
        }
        let first = if query == 4 { 0 } else { query };
        assert_eq!(hits[0]["row"], first, "query {query}");
    }
    let zeros = file(&folder, "zeros.npy", &npy(1, "<f4", false, "(2, 2)", &floats(&[0.0, 0.0, 3.0, 4.0])));
    let query = file(&folder, "query.npy", &npy(1, "<f4", false, "(1, 2)", &floats(&[30.0, -40.0])));
    assert_eq!(good(&["search", &zeros, "--queries", &query]), "query 0\n  0.000000  0\n  -0.280000  1\n");
}

#[test]
fn a_search_that_can_not_be_is_refused() {
    let folder = folder("search_wrong");
    let (model, rows) = (model(), text(&folder.join("rows.npy")));
    let input = file(&folder, "lines.txt", b"a\nb\nc\n");
    good(&embed(&model, &input, &rows));
    let says = |code, args: &[&str], part: &str| {
        let said = bad(code, args);
        assert!(said.contains(part), "{args:?}: {said}");
    };
    let said = bad(2, &["search", &rows]);
    assert!(said.contains("<--query <TEXT>|--queries <FILE>>") && !said.contains("--model"), "{said}");
    says(2, &["search", &rows, "--query", "a", "--model", &model, "--queries", &rows], "--queries");
    says(2, &["search", &rows, "--query", "a"], "--model");
    says(2, &["search", &rows, "--queries", &rows, "--top", "0"], "--top");
    says(21, &["search", "no such file", "--queries", &rows], "no such file");
    let other = file(&folder, "other.npy", &npy(1, "<f4", false, "(1, 3)", &floats(&[1.0, 2.0, 3.0])));
    says(12, &["search", &rows, "--queries", &other], "rows of 32 values and");
    says(12, &["search", &other, "--model", &model, "--query", "a"], "rows of 3 values and");
    for (descr, fortran, shape) in
        [("<f2", false, "(3, 2)"), ("<f4", true, "(1, 3)"), (">f4", false, "(1, 3)"), ("<f4", false, "(3,)")]
    {
        let wrong = file(&folder, "wrong.npy", &npy(1, descr, fortran, shape, &[0; 12]));
        says(19, &["search", &wrong, "--queries", &rows], "expected rows of f32, [n, width]");
    }
    let short = file(&folder, "short.npy", &npy(1, "<f4", false, "(9, 3)", &[0; 12]));
    says(11, &["search", &short, "--queries", &other], "truncated: 96 bytes of the rows");
    let fewer = file(&folder, "fewer.txt", b"a\n");
    says(11, &["search", &rows, "--queries", &rows, "--sentences", &fewer], "has 1 sentences for 3 rows");
    let more = file(&folder, "more.txt", b"a\nb\nc\nd\n");
    says(11, &["search", &rows, "--queries", &rows, "--sentences", &more], "has 4 sentences for 3 rows");
}

#[test]
fn devices_are_compared_in_a_table() {
    let model = model();
    let only = ["--only", "sentences", "--only", "embedding", "--seconds", "0", "--device", "cpu"];
    let table = good(&[&["bench", "--compare", "--model", &model], &only[..]].concat());
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[..2], ["| | cpu | same bits |", "|---|---|---|"], "{table}");
    assert!(lines[2].starts_with("| embedding/8192of30522x384 | ") && lines[2].ends_with(" GB/s | yes |"), "{table}");
    assert!(lines[3].starts_with("| sentences/1x14 | ") && lines[4].starts_with("| sentences/32x126 | "), "{table}");
    assert!(lines[3..5].iter().all(|line| line.ends_with(" sentences/s | yes |")), "{table}");
    assert!(lines[6].contains("; f32; medians. cpu: cpu ("), "{table}");
    // Without a model there are no rows of sentences.
    assert!(
        bad(11, &["bench", "--compare", "--only", "sentences"])
            .contains("no row contains 'sentences': the rows are matmul/512, ")
    );
    bad(2, &["bench", "--model", &model]);
    bad(2, &["bench", "--compare", "--json"]);
    bad(21, &["bench", "--compare", "--model", "nowhere", "--device", "cpu"]);
    bad(15, &["bench", "--compare", "--device", "cuda"]);
}
