//! Tests of `doctor`, `man`, suggestions, and the text for a call without arguments.

mod common;

use common::{Ended, adead, bad, command, file, folder, good, names};

#[test]
fn doctor_reports_every_check_and_exits_by_the_problems() {
    // This machine may have a problem, such as a device file that the user may not open.
    let ended = adead(&["doctor", "--device", "cpu"]);
    assert!([0, 1].contains(&ended.code) && ended.err.is_empty(), "{ended:?}");
    for word in ["processor ", "memory ", "vulkan loader ", "cuda driver ", "device ", "cache folder ", "calibration "]
    {
        assert!(ended.out.contains(word), "{word}: {ended:?}");
    }
    assert!(!ended.out.contains('\x1b'), "{ended:?}");
    assert_eq!(ended.code == 0, ended.out.contains("\n0 problems, "), "{ended:?}");
    let ended = adead(&["doctor", "--json", "--device", "cpu"]);
    let json: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    let checks = json["checks"].as_array().unwrap();
    for check in checks {
        let state = check["state"].as_str().unwrap();
        assert!(["ok", "note", "problem"].contains(&state) && !check["text"].as_str().unwrap().is_empty(), "{check}");
        assert_eq!(state == "ok", check["todo"].as_str().unwrap().is_empty(), "{check}");
    }
    for (number, state) in [("notes", "note"), ("problems", "problem")] {
        assert_eq!(json[number], checks.iter().filter(|check| check["state"] == state).count());
    }
    assert_eq!(ended.code == 0, json["problems"] == 0);
}

#[test]
fn a_problem_is_shown_with_its_remedy_and_exits_with_1() {
    let folder = folder("doctor");
    let not_a_folder = file(&folder, "file", b"");
    let config = file(&folder, "adead.toml", b"\ndevice = 5\n");
    let cache = format!("{not_a_folder}/cache");
    for (name, value, check) in [
        ("ADEAD_CONFIG", config.as_str(), "configuration"),
        ("ADEAD_CACHE_DIR", &cache, "cache folder"),
        ("ADEAD_DEVICE", "cdua", "device"),
    ] {
        let ended: Ended = command(&["doctor", "--json"]).env(name, value).output().unwrap().into();
        assert!(ended.code == 1 && ended.err.is_empty(), "{ended:?}");
        let json: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
        let broken = |it: &&serde_json::Value| it["state"] == "problem" && it["name"] == check;
        let found = json["checks"].as_array().unwrap().iter().find(broken);
        assert!(!found.expect("a problem")["todo"].as_str().unwrap().is_empty());
    }
    assert_eq!(names(&folder), ["adead.toml", "file"]);
}

#[test]
fn manual_pages_have_the_helps_texts() {
    let page = good(&["man", "run"]);
    for word in [".TH adead-run 1", ".SH NAME", ".SH OPTIONS", ".SH EXAMPLES\n.nf\n", "memory\\-limit", "rand:SEED"] {
        assert!(page.contains(word), "{word}: {page}");
    }
    let first = good(&["man"]);
    assert!(page.is_ascii() && first.is_ascii() && first.contains("\\[u2026]"), "{first}");
    assert!(first.contains(".TH adead 1") && first.contains(".SH \"EXIT CODES\"\n.nf\n"), "{first}");
    let folder = folder("man");
    let within = folder.join("man1");
    good(&["man", "--dir", within.to_str().unwrap()]);
    let written = names(&within);
    // A page for each command, and one for `adead`.
    let help = good(&["--help"]);
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let commands = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    for name in commands.filter(|name| !name.is_empty() && *name != "help") {
        assert!(written.contains(&format!("adead-{name}.1")), "{name}: {written:?}");
    }
    assert!(written.contains(&"adead.1".to_string()) && !written.contains(&"adead-help.1".to_string()));
    assert_eq!(std::fs::read_to_string(within.join("adead-run.1")).unwrap(), page);
    assert!(bad(2, &["man", "rnu"]).contains("did you mean 'run'?"));
    bad(2, &["man", "run", "--dir", "x"]);
}

#[test]
fn mistyped_names_get_a_suggestion() {
    assert!(bad(2, &["inof"]).contains("'info'"));
    assert!(bad(2, &["info", "--jsn"]).contains("'--json'"));
    assert!(bad(11, &["verify", "--device", "cdua"]).contains("did you mean 'cuda'?"));
    assert!(bad(11, &["bench", "--only", "matmul/65"]).contains("did you mean 'matmul/64'?"));
    let folder = folder("nearest");
    for text in ["y = rleu x", "rleu x"] {
        let text = format!(".adead 1\ninput x f32[2]\noutput y f32[2]\n{text}\nhalt\n");
        let error = bad(18, &["asm", &file(&folder, "p.asm", text.as_bytes()), "-o", "-"]);
        assert!(error.contains("did you mean 'relu'?"), "{error}");
    }
}

#[test]
fn without_arguments_it_says_what_to_do_next() {
    let ended = adead(&[]);
    assert!(ended.code == 2 && ended.out.is_empty(), "{ended:?}");
    for word in ["Usage: adead", "adead doctor", "adead --help"] {
        assert!(ended.err.contains(word), "{ended:?}");
    }
}
