//! Tests of `bench --report` and `bench --trace`. `ci/report` tests how a report looks in a browser.

mod common;

use common::{bad, folder, good, names};
use serde_json::Value;

const ROWS: [&str; 9] = [
    "matmul/256",
    "matmul/512",
    "matmul/1024",
    "attention/8x512x64",
    "ffn/256x512x2048",
    "softmax/2048x1024",
    "layernorm/2048x1024",
    "gelu/2048x1024",
    "transpose/2048x1024",
];

#[test]
fn a_report_is_one_page_that_loads_nothing() {
    let folder = folder("report");
    let path = folder.join("report.html").to_str().unwrap().to_string();
    let said = good(&["bench", "--report", &path, "--seconds", "0", "--device", "cpu"]);
    assert_eq!(said, format!("{path}: 9 operations on cpu\n"));
    let html = std::fs::read_to_string(&path).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"));
    for loads in ["<script", "src=", "http:", "https:", "@import", "url("] {
        assert!(!html.contains(loads), "{loads}");
    }
    // In a plot of speeds, in a plot of parts and in two tables.
    for row in ROWS {
        assert!(html.matches(&format!(">{row}<")).count() >= 4, "{row}");
    }
    for part in ["GFLOP/s", "GB/s", "peak", "only device", "prefers-color-scheme: dark", adead::VERSION] {
        assert!(html.contains(part), "{part}");
    }
    for tag in ["svg", "figure", "table", "tr", "th", "td", "div", "p", "h2", "ul", "li", "dl", "dd", "text"] {
        let open = html.matches(&format!("<{tag}>")).count() + html.matches(&format!("<{tag} ")).count();
        assert_eq!(open, html.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    assert_eq!(names(&folder), ["report.html"]);
}

#[test]
fn a_report_has_the_rows_that_are_asked_for() {
    let folder = folder("report-only");
    let path = folder.join("r.html").to_str().unwrap().to_string();
    good(&["bench", "--report", &path, "--seconds", "0", "--device", "cpu", "--only", "matmul/256"]);
    let html = std::fs::read_to_string(&path).unwrap();
    assert!(html.contains("matmul/256") && !html.contains("softmax/"), "{html}");
    assert!(
        bad(11, &["bench", "--report", &path, "--only", "tanh"])
            .contains("no row contains 'tanh': the rows are matmul/256, ")
    );
    bad(2, &["bench", "--report", &path, "--json"]);
    let nowhere = folder.join("no/r.html").to_str().unwrap().to_string();
    bad(21, &["bench", "--report", &nowhere, "--device", "cpu"]);
    let other = folder.join("other.html").to_str().unwrap().to_string();
    bad(15, &["bench", "--report", &other, "--device", "cuda"]);
    assert_eq!(names(&folder), ["r.html"], "what fails leaves no file");
}

#[test]
fn a_trace_has_every_run() {
    let folder = folder("trace");
    let path = folder.join("t.json").to_str().unwrap().to_string();
    let only = ["--only", "matmul/64", "--only", "sum/64k"];
    good(&[&["bench", "--seconds", "0", "--device", "cpu", "--trace", &path], &only[..]].concat());
    let trace: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    for (name, operands) in [("matmul", "f32[64, 64], f32[64, 64] -> f32[64, 64]"), ("sum", "f32[65536] -> f32[]")] {
        let runs = events.iter().filter(|event| event["name"] == name && event["ph"] == "X").collect::<Vec<_>>();
        assert_eq!(runs.len(), 3);
        assert!(runs.iter().all(|event| event["args"]["operands"] == operands), "{runs:?}");
    }
}
