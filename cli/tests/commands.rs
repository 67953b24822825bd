//! Tests of `info`, `asm`, `disasm`, `bench`, `completions`, help, usage errors and exit codes.

mod common;

use common::{Ended, adead, adead_with, bad, command, file, folder, good, repository};
use std::io::Write;
use std::process::Stdio;

const COMMANDS: [&str; 13] = [
    "info",
    "doctor",
    "man",
    "run",
    "asm",
    "disasm",
    "verify",
    "explain",
    "kernel",
    "dispatch",
    "bench",
    "calibrate",
    "completions",
];

const RELU: &str = ".adead 1\ninput x f32[2,3]\noutput y f32[2,3]\ny = relu x\nhalt\n";

#[test]
fn info_tells_about_the_machine() {
    let text = good(&["info"]);
    for word in
        ["version ", adead::VERSION, adead::contract::VERSION, "processor ", "isas ", "memory ", "device ", "cpu ("]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
    let json: serde_json::Value = serde_json::from_str(&good(&["info", "--json", "--threads", "2"])).unwrap();
    assert_eq!(json["version"], adead::VERSION);
    assert_eq!(json["contract"], adead::contract::VERSION);
    assert_eq!(json["devices"][0]["id"], "cpu");
    assert_eq!(json["devices"][0]["units"], 2);
    assert!(json["memory"]["total"].as_u64().unwrap() > 1 << 20);
    assert!(["cpu", "hybrid", "gpu"].contains(&json["recommended"].as_str().unwrap()));
}

#[test]
fn info_of_a_device_that_is_not_there_tells_the_rest() {
    let ended = adead(&["info", "--device", "cuda"]);
    assert_eq!(ended.code, 15);
    assert!(ended.out.contains("processor ") && !ended.out.contains("device "), "{ended:?}");
    assert!(
        ended.err.starts_with("adead: error: there is no 'cuda' on this machine: ")
            && ended.err.ends_with("(backend_unavailable)\n"),
        "{ended:?}"
    );
}

#[test]
fn what_is_assembled_disassembles_to_itself() {
    let folder = folder("asm");
    let source = file(&folder, "p.asm", RELU.as_bytes());
    let binary = folder.join("p.adead").to_str().unwrap().to_string();
    assert_eq!(good(&["asm", &source, "-o", &binary]), "");
    assert!(std::fs::read(&binary).unwrap().starts_with(b"ADEAD\r\n\x1a"));
    let text = good(&["disasm", &binary]);
    assert!(text.starts_with("; adead, 2 instructions\n; in x: f32[2, 3]\n; out y: f32[2, 3]\n.adead 1\n"), "{text}");
    assert!(text.ends_with(RELU), "{text}");
    let again = file(&folder, "again.asm", text.as_bytes());
    let second = folder.join("second.adead").to_str().unwrap().to_string();
    good(&["asm", &again, "-o", &second]);
    assert_eq!(std::fs::read(&binary).unwrap(), std::fs::read(&second).unwrap());
    let written = folder.join("out.asm").to_str().unwrap().to_string();
    assert_eq!(good(&["disasm", &binary, "-o", &written]), "");
    assert_eq!(std::fs::read_to_string(&written).unwrap(), text);
}

#[test]
fn a_program_of_the_original_project_survives_every_format() {
    let original = repository("examples/programs/matmul_1024.hex");
    let text = good(&["disasm", &original]);
    assert!(text.contains("; in 0x1000: 4194304 bytes") && text.contains("matmul r0 r1 r2 1024 1024 1024\n"), "{text}");
    let code =
        |text: &str| text.lines().filter(|line| !line.starts_with(';')).map(|l| format!("{l}\n")).collect::<String>();
    for format in ["adead", "agpu", "hex"] {
        let (exit, converted, error) = adead_with(&["asm", "-", "-o", "-", "--to", format], text.as_bytes());
        assert_eq!((exit, error.as_str()), (0, ""), "{format}");
        let (exit, back, _) = adead_with(&["disasm", "-"], &converted);
        assert_eq!((exit, code(&String::from_utf8(back).unwrap())), (0, code(&text)), "{format}");
    }
    // The text form without its comments gives the bytes of the file.
    let (_, hex, _) = adead_with(&["asm", "-", "-o", "-", "--to", "hex"], text.as_bytes());
    let bytes = |text: &str| {
        let lines = text.lines().map(|line| line.split(';').next().unwrap().trim().to_string());
        lines.filter(|line| !line.is_empty()).collect::<Vec<_>>()
    };
    assert_eq!(bytes(&String::from_utf8(hex).unwrap()), bytes(&std::fs::read_to_string(&original).unwrap()));
}

#[test]
fn the_format_follows_the_name_unless_it_is_given() {
    let folder = folder("asm_formats");
    let original = repository("examples/programs/matmul_1024.hex");
    for (name, begins, more) in [
        ("a.adead", "ADEAD", &[][..]),
        ("a.bin", "ADEAD", &[]),
        ("a.agpu", "AGPU", &[]),
        ("a.hex", "0000: ", &[]),
        ("b.hex", "AGPU", &["--to", "agpu"]),
    ] {
        let path = folder.join(name).to_str().unwrap().to_string();
        let ended = adead(&[&["asm", &original, "-o", &path], more].concat());
        assert_eq!((ended.code, ended.err.is_empty()), (0, more.is_empty()), "{name}: {ended:?}");
        assert!(std::fs::read(&path).unwrap().starts_with(begins.as_bytes()), "{name}");
    }
}

#[test]
fn what_can_not_be_assembled_is_not_written() {
    let folder = folder("asm_errors");
    let out = folder.join("out.adead").to_str().unwrap().to_string();
    let asm = |code: i32, text: &str, more: &[&str]| {
        let source = file(&folder, "p.asm", text.as_bytes());
        let error = bad(code, &[&["asm", &source, "-o", &out], more].concat());
        assert!(!folder.join("out.adead").exists());
        error
    };
    assert!(asm(18, ".adead 1\nnonsense x\n", &[]).contains("line 2"));
    assert!(asm(18, ".adead 1\ninput x f32[2]\noutput y f32[3]\ny = relu x\nhalt\n", &[]).contains("line 4"));
    assert!(asm(19, RELU, &["--to", "agpu"]).contains("(unsupported)"));
    assert!(asm(19, RELU, &["--to", "hex"]).contains("(unsupported)"));
    let source = file(&folder, "p.asm", RELU.as_bytes());
    assert!(bad(21, &["asm", &source, "-o", "nowhere/out.adead"]).contains("nowhere/out.adead: "));
    assert!(bad(21, &["asm", "nowhere.asm", "-o", &out]).contains("nowhere.asm: "));
    assert!(bad(18, &["disasm", &file(&folder, "x", b"\0\0")]).contains("not a recognised program"));
    // A program that can't run is shown too.
    let broken = file(&folder, "p.asm", b".agpu 1\nfree r0\nend\n");
    let ended = adead(&["disasm", &broken]);
    assert!(ended.code == 0 && ended.err.starts_with("adead: warning: the program can't run: "), "{ended:?}");
    assert!(ended.out.ends_with(".agpu 1\nfree r0\nend\n"), "{ended:?}");
}

#[test]
fn bench_measures_what_is_asked_for() {
    let text = good(&["bench", "--only", "matmul/64", "--only", "sum/64k", "--seconds", "0"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(lines[0].starts_with("cpu (") && lines[2].starts_with("matmul/64 ") && lines[3].starts_with("sum/64k "));
    assert!(lines[2].ends_with(" GFLOP/s") && lines[3].ends_with(" GB/s"), "{text}");
    let json = good(&["bench", "--only", "tanh/64k", "--seconds", "0.01", "--json", "--threads", "1"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["device"]["units"], 1);
    let results = json["results"].as_array().unwrap();
    assert_eq!((results.len(), &results[0]["name"]), (1, &"tanh/64k".into()));
    assert!(results[0]["median_seconds"].as_f64().unwrap() >= results[0]["best_seconds"].as_f64().unwrap());
    assert!(results[0]["runs"].as_u64().unwrap() >= 3);
    assert!(bad(11, &["bench", "--only", "nothing"]).contains("no row contains 'nothing': the rows are matmul/64, "));
    bad(2, &["bench", "--seconds", "-1"]);
    bad(15, &["bench", "--device", "cuda"]);
}

#[test]
fn every_row_of_the_bench_runs() {
    let text = good(&["bench", "--seconds", "0"]);
    for op in ["matmul/64", "matmul/2048", "softmax/", "tanh/", "layernorm/", "sum/", "attention/"] {
        assert!(text.contains(op), "{op}: {text}");
    }
}

#[test]
fn completions_are_made_for_every_shell() {
    for (shell, word) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef adead"),
        ("fish", "complete -c adead"),
        ("powershell", "Register-ArgumentCompleter"),
        ("elvish", "edit:completion"),
    ] {
        let script = good(&["completions", shell]);
        assert!(script.contains(word) && script.contains("disasm") && script.contains("memory-limit"), "{shell}");
    }
    bad(2, &["completions", "nonsense"]);
}

#[test]
fn help_has_examples_and_exit_codes() {
    let help = good(&["--help"]);
    for word in ["EXAMPLES", "EXIT CODES", "11 invalid_argument", "22 internal", "--device", "--threads", "--isa"] {
        assert!(help.contains(word), "{word}: {help}");
    }
    for status in adead::Status::ALL.iter().skip(1) {
        let code = format!("{} {status}", 10 + *status as i32);
        assert!(help.contains(&code), "{code}");
        let docs = std::fs::read_to_string(repository("docs/cli.md")).unwrap();
        assert!(docs.contains(&format!("| {} | `{status}`", 10 + *status as i32)), "docs/cli.md has no {code}");
    }
    for command in COMMANDS {
        assert!(good(&[command, "--help"]).contains("EXAMPLES"), "{command}");
        assert!(help.contains(&format!("\n  {command} ")), "{command}");
    }
    assert_eq!(good(&["--version"]), format!("adead {}\n", adead::VERSION));
}

#[test]
fn the_documentation_has_every_option() {
    let docs = std::fs::read_to_string(repository("docs/cli.md")).unwrap();
    let models: &[&str] = if cfg!(feature = "models") { &["embed", "search", "generate", "chat", "gguf"] } else { &[] };
    for command in COMMANDS.iter().chain(models) {
        assert!(docs.contains(&format!("adead {command}")), "{command}");
        let help = good(&[command, "--help"]);
        for option in help.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 2) {
            let option = option.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            assert!(option == "--help" || docs.contains(&format!("`{option}")), "{command} {option}");
        }
    }
}

#[test]
fn a_wrong_command_line_exits_with_2() {
    for args in [
        &["nonsense"][..],
        &["info", "--nonsense"],
        &["run"],
        &["run", "a", "--in", "x"],
        &["run", "a", "--in", "x=ids:1:0"],
        &["run", "a", "--out", "=y"],
        &["run", "a", "--memory-limit", "1.5"],
        &["run", "a", "--repeat", "0"],
        &["asm", "a"],
        &["asm", "a", "-o", "b", "--to", "elf"],
        &["info", "--threads", "0"],
        &["info", "--threads", "1025"],
        &["info", "--isa", "sse9"],
        &["explain"],
        &["explain", "a", "--gpu", "mine"],
        &["calibrate", "--slow"],
        &["kernel"],
        &["dispatch", "a"],
        &["dispatch", "a", "--groups", "0"],
        &["dispatch", "a", "--groups", "1,2,3,4"],
        &["dispatch", "a", "--groups", "1", "--buffer", "f128[2]:zeros"],
        &["dispatch", "a", "--groups", "1", "--push", "x"],
        &["dispatch", "a", "--groups", "1", "--constant", "1"],
        &["dispatch", "a", "--groups", "1", "--out", "a.npy"],
    ] {
        bad(2, args);
    }
    let ended = adead(&[]);
    assert!(ended.code == 2 && ended.out.is_empty() && ended.err.contains("Usage: adead"), "{ended:?}");
    bad(11, &["verify", "--device", "nonsense"]);
}

#[cfg(unix)]
#[test]
fn a_reader_that_leaves_is_no_panic() {
    let mut command = command(&["disasm", "-"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    // It can't write before it has read, and by then the reader is gone.
    drop(child.stdout.take());
    child.stdin.take().expect("stdin").write_all(RELU.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(141), ""));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let output = command(&["info"]).stdout(full).output().expect("it runs");
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(21));
    assert!(error.starts_with("adead: error: stdout: ") && error.lines().count() == 1, "{error}");
}

#[test]
fn what_the_runtime_tells_is_printed_where_it_is_asked_for() {
    let run = |name: &str, value: &str| -> Ended {
        command(&["info", "--device", "cpu"]).env(name, value).output().expect("it runs").into()
    };
    let opened = "adead info devices: opened cpu: ";
    let told = run("ADEAD_LOG", "info");
    assert!(told.code == 0 && told.err.lines().any(|line| line.starts_with(opened)), "{told:?}");
    assert!(told.err.lines().all(|line| line.starts_with("adead info ")), "{told:?}");
    for quiet in ["", "off", "error"] {
        assert_eq!(run("ADEAD_LOG", quiet).err, "");
    }
    let folder = folder("log");
    let config = file(&folder, "adead.toml", b"log = \"debug\"\n");
    let told = run("ADEAD_CONFIG", &config);
    assert!(told.err.contains(&format!("adead debug config: {config} ")) && told.err.contains(opened), "{told:?}");
    let allowed = "log must be \"off\", \"error\", \"warn\", \"info\", \"debug\" or \"trace\"";
    let wrong = run("ADEAD_LOG", "loud");
    assert!(wrong.code != 0 && wrong.err.contains(&format!("ADEAD_LOG is 'loud'; {allowed}")), "{wrong:?}");
    let config = file(&folder, "adead.toml", b"\nlog = \"loud\"\n");
    let wrong = run("ADEAD_CONFIG", &config);
    assert!(wrong.code != 0 && wrong.err.contains(&format!("{config}, line 2: {allowed}")), "{wrong:?}");
}
