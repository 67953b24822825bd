//! Tests of `adead train` with a text of its own, and of its errors.
#![cfg(feature = "models")]

mod common;

use common::{adead, after, bad, repository};
use std::fs;
use std::path::PathBuf;

const JOB: &str = r#"
batch = 8
epochs = 2
data = { kind = "text", files = ["text"] }
model = { kind = "gpt", layers = 1, heads = 1, width = 8, context = 16 }
optimizer = { kind = "adam", rate = 0.01 }
checkpoint = { file = "state.safetensors" }
"#;

/// A folder with a job, which is gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, job: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("adead-cli-train-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("text"), "a ferry came in, and nobody noticed. ".repeat(40)).unwrap();
        fs::write(folder.join("job.toml"), job).unwrap();
        Folder(folder)
    }

    fn job(&self) -> String {
        self.0.join("job.toml").to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_job_is_told_epoch_by_epoch_and_has_one_hash() {
    let folder = Folder::new("told", JOB);
    let job = folder.job();
    let whole = adead(&["train", &job, "--device", "cpu"]);
    assert_eq!(whole.code, 0, "{whole:?}");
    let lines: Vec<&str> = whole.out.lines().collect();
    assert!(lines.len() == 3 && lines[0] == "epoch      loss  held out  accuracy  seconds", "{whole:?}");
    assert!(lines[1].starts_with("    1    ") && lines[2].starts_with("    2    "), "{whole:?}");
    let hash = after(&whole.err, "sha256    ").trim_end().to_owned();
    assert_eq!(hash.len(), 64, "{whole:?}");

    // Stopped after an epoch, and continued by another number of threads.
    fs::remove_file(folder.0.join("state.safetensors")).unwrap();
    assert_eq!(adead(&["train", &job, "--device", "cpu", "--epochs", "1"]).code, 0);
    let rest = adead(&["train", &job, "--device", "cpu", "--threads", "3", "--resume", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&rest.out).unwrap();
    assert_eq!((json["sha256"].as_str(), json["device"].as_str()), (Some(&*hash), Some("cpu")), "{rest:?}");
    assert_eq!(json["epochs"].as_array().unwrap().len(), 1);
    assert_eq!(json["epochs"][0]["epoch"], 2);
}

#[test]
fn the_examples_can_be_read() {
    for name in ["mnist", "mlp", "gpt", "pairs", "adapters"] {
        let text = fs::read_to_string(repository(&format!("examples/train/{name}.toml"))).unwrap();
        let folder = Folder::new(name, &text);
        // Their data are elsewhere.
        let text = bad(21, &["train", &folder.job(), "--device", "cpu"]);
        assert!(text.contains("No such file"), "{text}");
    }
}

#[test]
fn errors_name_the_file() {
    let folder = Folder::new("errors", &JOB.replace("rate = 0.01", "rate = -1.0"));
    let text = bad(11, &["train", &folder.job()]);
    assert!(text.contains("job.toml: optimizer.rate is -1; it must be more than 0 (invalid_argument)"), "{text}");
    bad(21, &["train", "/nowhere.toml"]);
}

#[test]
fn ranks_end_in_the_hash_of_one_process() {
    let text = JOB.replace("batch = 8", "batch = 8\nshards = 4\nstorage = 'f16'\nloss_scale = 'dynamic'");
    let folder = Folder::new("ranks", &text);
    let job = folder.job();
    let alone = adead(&["train", &job, "--device", "cpu", "--json"]);
    let hash = |out: &str| serde_json::from_str::<serde_json::Value>(out).unwrap()["sha256"].clone();
    let expected = hash(&alone.out);
    for size in [2, 3] {
        fs::remove_file(folder.0.join("state.safetensors")).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let start = |rank: usize| {
            let mut command = common::command(&["train", &job, "--device", "cpu", "--threads", "1", "--json"]);
            // One way for each number of ranks: an argument, and torchrun's variables.
            match size {
                2 => command.args(["--ranks", &format!("{rank}/2@127.0.0.1:{port}")]),
                _ => command
                    .args(["--ranks", "env"])
                    .envs([("RANK", rank.to_string()), ("WORLD_SIZE", size.to_string())])
                    .envs([("MASTER_ADDR", "127.0.0.1".to_owned()), ("MASTER_PORT", port.to_string())]),
            };
            command.stdout(std::process::Stdio::piped()).spawn().unwrap()
        };
        let all: Vec<_> = (0..size).map(start).collect();
        for (rank, process) in all.into_iter().enumerate() {
            let output = process.wait_with_output().unwrap();
            let out = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success() && hash(&out) == expected, "rank {rank} of {size}: {out}");
            let json: serde_json::Value = serde_json::from_str(&out).unwrap();
            let epochs = json["epochs"].as_array().unwrap().len();
            assert_eq!((json["rank"].as_u64(), epochs), (Some(rank as u64), if rank == 0 { 2 } else { 0 }));
        }
    }
    let wrong = bad(11, &["train", &job, "--ranks", "2/2@127.0.0.1:1"]);
    assert!(wrong.contains("rank 2 of 2: ranks count from 0"), "{wrong}");
}

#[test]
fn a_report_is_a_page_with_the_curves_and_the_job() {
    let folder = Folder::new("report", JOB);
    let (job, path) = (folder.job(), folder.0.join("run.html"));
    let path = path.to_str().unwrap();
    let run = adead(&["train", &job, "--device", "cpu", "--report", path]);
    // stdout is no terminal, so there is no curve.
    assert!(run.code == 0 && run.out.lines().count() == 3, "{run:?}");
    let html = fs::read_to_string(path).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"));
    for loads in ["<script", "src=", "http:", "https:", "@import", "url("] {
        assert!(!html.contains(loads), "{loads}");
    }
    let hash = after(&run.err, "sha256    ").trim_end().to_owned();
    for part in ["Loss by step", "Loss by epoch", "Accuracy by epoch", "kind = &quot;gpt&quot;", "job.toml", &hash] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert_eq!(html.matches("<polyline ").count(), 4, "{html}");
    for tag in ["svg", "figure", "table", "tr", "th", "td", "div", "p", "h2", "ul", "li", "dl", "dd", "text", "pre"] {
        let open = html.matches(&format!("<{tag}>")).count() + html.matches(&format!("<{tag} ")).count();
        assert_eq!(open, html.matches(&format!("</{tag}>")).count(), "{tag}");
    }

    // Nothing is left to train; and a page on stdout leaves the rest to stderr.
    let rest = adead(&["train", &job, "--device", "cpu", "--resume", "--report", "-"]);
    assert!(rest.out.starts_with("<!DOCTYPE html>") && rest.out.contains("nothing was left to train"), "{rest:?}");
    bad(2, &["train", &job, "--device", "cpu", "--json", "--report", "-"]);
    bad(21, &["train", &job, "--device", "cpu", "--report", folder.0.join("no/run.html").to_str().unwrap()]);
}

#[test]
fn a_curve_is_drawn_where_it_is_asked_for() {
    let folder = Folder::new("curve", JOB);
    let run = adead(&["train", &folder.job(), "--device", "cpu", "--curve"]);
    assert!(run.code == 0 && run.out.lines().count() == 3 + 13, "{run:?}");
    assert!(run.out.contains("o held-out loss after each epoch") && run.out.contains("step 1 "), "{}", run.out);
    bad(2, &["train", &folder.job(), "--curve", "--json"]);
}

#[test]
fn sentences_are_trained_further_and_embed_opens_the_result() {
    let text = r#"
batch = 4
epochs = 2
shards = 2
result = "tuned"
data = { kind = "pairs", files = ["pairs.tsv"], held_out = 3 }
model = { kind = "sentences", folder = "none", length = 8 }
optimizer = { kind = "adam", rate = 0.001 }
"#;
    let folder = Folder::new("tuned", text);
    let pairs = "ferry\tschiff\nharbour\tport\na b\tc d\nquiet\tle\n1 2\t3 4\nx\ty\nwas in\tcame\n7\t8\n";
    fs::write(folder.0.join("pairs.tsv"), pairs).unwrap();
    let tiny = &repository("tests/sentences/tiny");
    let job = folder.job();
    assert!(bad(21, &["train", &job, "--device", "cpu"]).contains("none"));
    let json =
        |run: &common::Ended| serde_json::from_str::<serde_json::Value>(&run.out).unwrap_or_else(|_| panic!("{run:?}"));
    let run = adead(&["train", &job, "--model", tiny, "--device", "cpu", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let tuned = folder.0.join("tuned");
    fs::write(folder.0.join("lines.txt"), "the ferry\nein schiff\n").unwrap();
    let (lines, rows) = (folder.0.join("lines.txt"), folder.0.join("rows.npy"));
    let embed = |model: &str| {
        let paths = [lines.to_str().unwrap(), rows.to_str().unwrap()];
        json(&adead(&["embed", "--model", model, "--in", paths[0], "--out", paths[1], "--json"]))["sha256"].clone()
    };
    assert_ne!(embed(tuned.to_str().unwrap()), embed(tiny));

    // Two processes, each with a shard of the batch.
    fs::remove_dir_all(&tuned).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let start = |rank: usize| {
        let ranks = format!("{rank}/2@127.0.0.1:{port}");
        let words = ["train", &job, "--model", tiny, "--device", "cpu", "--json", "--ranks", &ranks];
        common::command(&words).stdout(std::process::Stdio::piped()).spawn().unwrap()
    };
    for process in [start(0), start(1)] {
        let output = process.wait_with_output().unwrap();
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["sha256"], json(&run)["sha256"]);
    }
    assert!(tuned.join("model.safetensors").exists());
    let plain = Folder::new("no-model", JOB);
    assert!(bad(11, &["train", &plain.job(), "--model", tiny]).contains("the job's model begins from nothing"));
}

#[test]
fn adapters_are_trained_and_generate_takes_them() {
    let text = r#"
batch = 4
epochs = 3
result = "adapters.safetensors"
data = { kind = "text", files = ["text"], held_out = 4 }
model = { kind = "adapters", file = "none", context = 8, rank = 2 }
optimizer = { kind = "adam", rate = 0.02 }
"#;
    let folder = Folder::new("adapted", text);
    let model = &repository("tests/text/llama.gguf");
    let run = adead(&["train", &folder.job(), "--model", model, "--device", "cpu"]);
    assert!(run.code == 0 && run.out.lines().count() == 4, "{run:?}");
    let adapters = folder.0.join("adapters.safetensors");
    let adapters = adapters.to_str().unwrap();
    let generate = |more: &[&str]| {
        let words = ["generate", "--model", model, "--prompt", "a ferry", "--max-tokens", "12", "--json"];
        let ended = adead(&[&words[..], more].concat());
        serde_json::from_str::<serde_json::Value>(&ended.out).unwrap_or_else(|_| panic!("{ended:?}"))["sha256"].clone()
    };
    let with = generate(&["--adapters", adapters]);
    assert_ne!(with, generate(&[]));
    assert_eq!(with, generate(&["--adapters", adapters, "--threads", "1", "--chunk", "1"]));
    let other = repository("tests/text/gemma3.gguf");
    let text = bad(12, &["generate", "--model", &other, "--prompt", "a", "--adapters", adapters]);
    assert!(text.contains("lora_a"), "{text}");
}
