//! Tests of `explain`, `calibrate` and `adead.toml`: what chooses a device, and that none of it changes a result.

mod common;

use common::{Ended, adead, after, bad, command, file, folder, good, names, repository};
use serde_json::Value;
use std::path::Path;

const SMALL: &str = ".adead 1\ninput x f32[64]\ntemp t f32[64]\noutput y f32[64]\nt = relu x\ny = exp t\nhalt\n";
const RAW: &str = ".agpu 1\nalloc 256 r0\nalloc 256 r1\ncopy_h2d 0x1 r0 256\nrelu r0 r1 64\nsigmoid r1 r0 64\n\
                   copy_d2h r0 0x2 256\nend\n";

/// Runs the command with a cache folder, and without GPUs, whose compiled kernels would be cached there too.
fn cached(folder: &Path, args: &[&str]) -> Ended {
    command(args).env("ADEAD_CACHE_DIR", folder).env("ADEAD_VISIBLE_DEVICES", "none").output().expect("it runs").into()
}

fn good_cached(folder: &Path, args: &[&str]) -> String {
    let ended = cached(folder, args);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{args:?} {ended:?}");
    ended.out
}

#[test]
fn explain_prices_a_product_and_wastes_nothing() {
    let program = repository("examples/programs/matmul_1024.hex");
    let text = good(&["explain", &program, "--gpu", "datacentre"]);
    for words in [
        "gpu:datacentre is not in this machine; its figures are the manufacturer's",
        "built-in figures: a data-centre GPU of 67 TFLOP/s",
        "f32[1024, 1024] f32[1024, 1024] -> f32[1024, 1024]",
        "cpu would take ",
        "no step would waste gpu:datacentre",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let product = text.lines().find(|line| line.contains(" matmul ")).unwrap();
    assert!(product.contains("gpu:datacentre"), "{product}");
}

#[test]
fn explain_tells_what_would_waste_a_gpu_and_why() {
    let folder = folder("explain_waste");
    let program = file(&folder, "small.asm", SMALL.as_bytes());
    let text = good(&["explain", &program]);
    assert!(text.contains("steps that would waste gpu:mid if they ran there:"), "{text}");
    // The steps run as one: the input moves there once, and the output back.
    assert!(text.contains("transfers: moving 512 bytes takes 30 µs, the work "), "{text}");
    let json: Value = serde_json::from_str(&good(&["explain", &program, "--json", "--gpu", "integrated"])).unwrap();
    assert_eq!(json["devices"][1]["id"], "gpu:integrated");
    assert_eq!((&json["devices"][0]["reference"], &json["devices"][1]["reference"]), (&false.into(), &true.into()));
    let steps = json["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 2);
    assert_eq!(
        (&steps[1]["operation"], &steps[1]["line"], &steps[1]["device"]),
        (&"exp".into(), &"y = exp t".into(), &"cpu".into())
    );
    let launches: Vec<f64> =
        steps.iter().map(|step| step["alone"]["gpu:integrated"]["launch_ns"].as_f64().unwrap()).collect();
    assert_eq!(launches, [20_000.0, 0.0], "one submission");
    let alone = |device: &str| json["alone_ns"][device].as_f64().unwrap();
    assert!(alone("cpu") < alone("gpu:integrated"), "{json}");
    assert_eq!(json["findings"][0]["waste"], "transfers", "{json}");
    let sum: f64 = steps.iter().map(|step| step["estimate"]["total_ns"].as_f64().unwrap()).sum();
    assert!((json["chosen_ns"].as_f64().unwrap() - sum).abs() < 1e-6);
    // Raw registers are in host memory between the steps, and each step is launched alone.
    let program = file(&folder, "raw.asm", RAW.as_bytes());
    let json: Value = serde_json::from_str(&good(&["explain", &program, "--json", "--gpu", "integrated"])).unwrap();
    let wastes: Vec<&str> =
        json["findings"].as_array().unwrap().iter().map(|it| it["waste"].as_str().unwrap()).collect();
    assert!(wastes.contains(&"unfused") && wastes.contains(&"transfers"), "{wastes:?}");
}

#[test]
fn the_reason_speaks_of_the_figures_beside_it() {
    let mut compared = 0;
    for (program, gpu) in [("mlp.adead", "datacentre"), ("matmul_1024.hex", "mid"), ("attention.asm", "integrated")] {
        let text = good(&["explain", &repository(&format!("examples/programs/{program}")), "--gpu", gpu]);
        for row in text.lines().filter(|row| row.contains(" times as long: ")) {
            let time = row.split_once("times as long: ").unwrap().1.split(',').next().unwrap();
            assert!(row.matches(&format!(" {time}")).count() >= 2, "{row}");
            compared += 1;
        }
        let alone = |device: &str| text.contains(&format!("\nall steps on {device}: "));
        assert!(alone("cpu") && alone(&format!("gpu:{gpu}")), "{text}");
    }
    assert!(compared >= 3);
}

#[test]
fn explain_takes_every_form_of_a_program_and_refuses_what_can_not_run() {
    let folder = folder("explain_forms");
    let text = repository("examples/programs/attention.asm");
    for form in ["adead", "agpu", "hex"] {
        let path = folder.join(format!("p.{form}")).to_str().unwrap().to_string();
        good(&["asm", &text, "-o", &path]);
        assert_eq!(good(&["explain", &path]).lines().count(), good(&["explain", &text]).lines().count(), "{form}");
    }
    good(&["explain", &repository("examples/programs/mlp.adead")]);
    let wrong = file(&folder, "wrong.asm", b".adead 1\ninput a f32[2,3]\noutput c f32[2,2]\nc = matmul a a\nhalt\n");
    assert!(bad(18, &["explain", &wrong]).contains("A's columns (3) must equal B's rows (2)"));
    assert!(bad(21, &["explain", "nowhere.asm"]).contains("nowhere.asm"));
}

#[test]
fn without_a_gpu_there_are_no_tiles_to_measure() {
    let folder = folder("tiles");
    let ended = cached(&folder, &["calibrate", "--kernels", "--device", "cpu"]);
    assert!(ended.code != 0 && ended.err.contains("no GPU here has tiles to measure"), "{ended:?}");
    assert_eq!(std::fs::read_dir(&folder).map_or(0, Iterator::count), 0, "nothing is written");
}

#[test]
fn calibrate_writes_one_file_that_everything_then_uses() {
    let folder = folder("calibrate").join("made/on/demand");
    let program = repository("examples/programs/matmul_1024.hex");
    let ran = ["run", &program, "--in", "0x1000=rand:1", "--in", "0x2000=rand:2"];
    // No other command calibrates: the folder does not exist.
    assert!(good_cached(&folder, &["info"]).contains("; no calibration"));
    good_cached(&folder, &["explain", &program]);
    good_cached(&folder, &["verify", "--filter", "relu"]);
    let bits = after(&good_cached(&folder, &ran), "sha256").to_string();
    assert!(!folder.exists());

    let text = good_cached(&folder, &["calibrate", "--quick"]);
    for words in ["before: built-in figures: ", "matmul, arithmetic", "a call", "GFLOP/s", "written "] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let files = names(&folder);
    assert!(files.len() == 1 && files[0].starts_with("calibration-") && files[0].ends_with(".toml"), "{files:?}");
    let path = folder.join(&files[0]);
    assert!(good_cached(&folder, &["info"]).contains(&format!("calibrated: {}", path.display())));
    assert!(good_cached(&folder, &["explain", &program]).contains("calibrated: "));
    // Fewer threads count as another machine, with its own file.
    assert!(good_cached(&folder, &["info", "--threads", "1023"]).contains("; no calibration"));
    let json: Value = serde_json::from_str(&good_cached(&folder, &["calibrate", "--quick", "--json"])).unwrap();
    assert!(json["devices"]["cpu"]["matmul, arithmetic"]["now"].as_f64().unwrap() > 0.0, "{json}");
    assert_eq!((json["file"].as_str().unwrap(), names(&folder)), (path.to_str().unwrap(), files));

    // A changed file changes the estimates and no bit of a result.
    let measured = std::fs::read_to_string(&path).unwrap();
    let doctored: String = measured
        .lines()
        .map(|line| match line.split_once(" = ") {
            Some((name, _)) if name.ends_with("_gflops") || name.ends_with("_gbytes") => format!("{name} = 0.0001\n"),
            Some((name @ ("launch_ns" | "wake_ns"), _)) => format!("{name} = 1000000\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    std::fs::write(&path, doctored).unwrap();
    let estimate = |text: String| text.lines().find(|line| line.contains(" matmul ")).unwrap().to_string();
    assert!(estimate(good_cached(&folder, &["explain", &program])).contains("gpu:mid"));
    assert_eq!(after(&good_cached(&folder, &ran), "sha256"), bits);
    assert!(good_cached(&folder, &["verify", "--filter", "softmax"]).contains(", 0 failed"));

    // A broken file is ignored with the reason, and calibrating replaces it.
    for broken in [&b"nonsense"[..], b"", b"\xff\xfe", &measured.as_bytes()[..measured.len() / 2]] {
        std::fs::write(&path, broken).unwrap();
        let text = good_cached(&folder, &["info"]);
        assert!(text.contains("built-in figures: ") && text.contains(" is ignored: "), "{text}");
        assert!(good_cached(&folder, &["explain", &program]).contains(" is ignored: "));
        assert_eq!(after(&good_cached(&folder, &ran), "sha256"), bits);
    }
    good_cached(&folder, &["calibrate", "--quick"]);
    assert!(good_cached(&folder, &["info"]).contains("calibrated: "));
    std::fs::write(&path, measured.replace("machine = \"", "machine = \"another ")).unwrap();
    assert!(good_cached(&folder, &["info"]).contains(" is ignored: it is from another machine"));
}

#[test]
fn calibrate_needs_somewhere_to_write() {
    let folder = folder("calibrate_nowhere");
    let path = file(&folder, "file", b"");
    let ended = cached(Path::new(&path), &["calibrate", "--quick"]);
    assert_eq!((ended.code, ended.out.as_str()), (21, ""), "{ended:?}");
    assert!(ended.err.contains("ADEAD_CACHE_DIR names another folder"), "{ended:?}");
    let none = command(&["calibrate", "--quick"])
        .env_remove("ADEAD_CACHE_DIR")
        .env_remove("XDG_CACHE_HOME")
        .env_remove("HOME")
        .output()
        .unwrap();
    let none: Ended = none.into();
    assert!(none.code == 21 && none.err.contains("neither ADEAD_CACHE_DIR, XDG_CACHE_HOME nor HOME"), "{none:?}");
    // Without a cache folder, the built-in figures are used.
    let info =
        command(&["info"]).env_remove("ADEAD_CACHE_DIR").env_remove("XDG_CACHE_HOME").env_remove("HOME").output();
    assert!(Ended::from(info.unwrap()).out.contains("there is no cache folder"));
    // The user's own cache folder is the default.
    let users = folder.join("xdg");
    let output =
        command(&["calibrate", "--quick"]).env_remove("ADEAD_CACHE_DIR").env("XDG_CACHE_HOME", &users).output();
    assert_eq!(Ended::from(output.unwrap()).code, 0);
    assert_eq!(names(&users.join("adead")).len(), 1);
}

#[test]
fn adead_toml_sets_what_nobody_else_does() {
    let folder = folder("config");
    let run = |args: &[&str], environment: &[(&str, &str)]| -> Ended {
        command(args).current_dir(&folder).envs(environment.iter().copied()).output().expect("it runs").into()
    };
    let write = |text: &str| std::fs::write(folder.join("adead.toml"), text).unwrap();
    write("device = \"cuda:1\"\n");
    assert!(run(&["info"], &[]).err.contains("there is no 'cuda:1' on this machine: "));
    assert_eq!(run(&["info"], &[("ADEAD_DEVICE", "cpu")]).code, 0, "the environment beats the file");
    assert_eq!(run(&["info", "--device", "cpu"], &[("ADEAD_DEVICE", "vulkan")]).code, 0, "an argument beats both");
    write("device = \"hybrid\"\n");
    assert_eq!(run(&["info"], &[]).code, 0, "without a GPU it is the CPU");
    write("device = \"cpu,cuda:99\"\n");
    assert!(run(&["info"], &[]).err.contains("there is no 'cuda:99' on this machine"));
    write("use_gpu = false\nnum_threads = 3\n[thresholds]\nmatmul = 16\n");
    assert!(run(&["info"], &[]).out.contains(", 3 threads)"));
    assert!(run(&["info"], &[("ADEAD_NUM_THREADS", "2")]).out.contains(", 2 threads)"));
    assert!(run(&["info", "--threads", "1"], &[]).out.contains(", 1 thread)"));
    let program = repository("examples/programs/matmul_1024.hex");
    assert!(run(&["explain", &program], &[]).out.contains("at least the threshold of matmul, 16"));
    write("use_gpu = maybe\n");
    let ended = run(&["info"], &[]);
    assert_eq!(ended.code, 11);
    assert!(ended.err.contains("adead.toml, line 1: string values must be quoted"), "{ended:?}");
    write("use_gpu = \"maybe\"\n");
    let ended = run(&["info"], &[]);
    assert_eq!(ended.code, 11);
    assert!(ended.err.contains("adead.toml, line 1: use_gpu must be true or false"), "{ended:?}");
    let other = file(&folder, "other.toml", b"device = \"nonsense\"\n");
    assert!(run(&["info"], &[("ADEAD_CONFIG", &other)]).err.contains("no device 'nonsense'"));
    assert_eq!(run(&["info"], &[("ADEAD_CONFIG", "nowhere.toml")]).code, 21);
    // What docs/dispatch.md shows. It names an instruction set.
    let shown = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/adead.toml");
    if cfg!(target_arch = "x86_64") {
        let ended = run(&["info"], &[("ADEAD_CONFIG", shown)]);
        assert!(ended.code == 0 && ended.out.contains("avx2"), "{ended:?}");
    }
    assert_eq!(adead(&["info"]).code, 0, "it is of the current directory");
}
