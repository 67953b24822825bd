//! Tests of GPUs in `info`, `run` and `verify`, and of `kernel` and `dispatch`. Tests that need a GPU are skipped without one.

mod common;

use common::{adead, adead_with, after, bad, command, file, floats, folder, good, has_gpu, names, npy, repository};
use serde_json::Value;

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&good(args)).expect("JSON")
}

fn kernel(name: &str) -> String {
    repository(&format!("examples/kernels/{name}.spv"))
}

#[test]
fn info_lists_every_gpu() {
    if !has_gpu() {
        return;
    }
    let found = json(&["info", "--json"]);
    let gpus = found["gpus"].as_array().unwrap();
    assert!(!gpus.is_empty());
    let text = good(&["info"]);
    let mut seen = Vec::new();
    for gpu in gpus {
        let id = gpu["id"].as_str().unwrap();
        let backends = gpu["backends"].as_array().unwrap();
        assert!(["discrete", "integrated", "virtual", "software"].contains(&gpu["kind"].as_str().unwrap()));
        assert!(gpu["memory"].as_u64().unwrap() > 0 && !gpu["driver"].as_str().unwrap().is_empty());
        let uuid = gpu["uuid"].as_str().unwrap();
        assert_eq!(uuid.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert!(text.contains(&format!("gpu          {id}: ")) && text.contains(uuid), "{text}");
        assert_eq!(backends[0]["id"], id);
        for backend in backends {
            let id = backend["id"].as_str().unwrap();
            assert!(!seen.contains(&id) && backend["uuid"] == uuid && text.contains(&format!(" {id}: ")), "{text}");
            seen.push(id);
            assert!(["native", "emulated", "refused"].contains(&backend["contract_level"].as_str().unwrap()));
            assert_eq!(backend["contract_level"] == "refused", backend["refused"].is_string());
            if backend["contract_level"] != "refused" {
                let opened = json(&["info", "--json", "--device", id]);
                assert_eq!(
                    (&opened["devices"][1]["id"], &opened["devices"][1]["uuid"]),
                    (&backend["id"], &gpu["uuid"])
                );
            }
        }
        if gpu["contract_level"] != "refused" {
            // Its UUID and its name open the preferred backend.
            let opened = json(&["info", "--json", "--device", &uuid.to_uppercase()]);
            assert_eq!(opened["devices"][1]["id"], id);
            let named = json(&["info", "--json", "--device", gpu["name"].as_str().unwrap()]);
            assert_eq!(named["devices"][1]["name"], gpu["name"]);
        }
    }
}

#[test]
fn hidden_gpus_are_not_there() {
    let hidden = |args: &[&str]| command(args).env("ADEAD_VISIBLE_DEVICES", "none").output().unwrap();
    let found: Value = serde_json::from_slice(&hidden(&["info", "--json"]).stdout).unwrap();
    assert_eq!(found["gpus"], Value::Array(Vec::new()));
    assert_eq!(found["recommended"], "cpu");
    let refused = hidden(&["verify", "--device", "vulkan"]);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(15));
    assert!(error.contains("ADEAD_VISIBLE_DEVICES ('none')"), "{error}");
}

#[test]
fn verify_keeps_to_the_device_that_is_named() {
    if !has_gpu() {
        return;
    }
    let ended = adead(&["verify", "--device", "vulkan:0", "--filter", "unary/"]);
    let lines: Vec<&str> = ended.out.lines().filter(|line| !line.starts_with("FAIL ")).collect();
    assert!(ended.code == 0 && lines.len() == 1 && lines[0].starts_with("vulkan:0 (vulkan 1."), "{ended:?}");
    let out = good(&["verify", "--device", "cpu", "--filter", "unary/"]);
    assert!(out.starts_with("cpu (") && out.lines().count() == 1, "{out}");
    assert!(bad(15, &["verify", "--device", "vulkan:99"]).contains("vulkan:0 ("));
}

#[test]
fn a_gpu_is_calibrated_beside_the_processor() {
    if !has_gpu() {
        return;
    }
    let folder = folder("calibrate_gpu");
    let cached = |arguments: &[&str]| {
        let output = command(arguments).env("ADEAD_CACHE_DIR", &folder).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    cached(&["calibrate", "--quick", "--device", "cpu"]);
    let text = cached(&["calibrate", "--quick", "--device", "vulkan:0"]);
    for words in ["vulkan:0, before: built-in figures: ", "upload, latency", "matmul, arithmetic", "written "] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // The processor's figures are kept.
    for device in ["cpu", "vulkan:0"] {
        let text = cached(&["explain", &repository("examples/programs/softmax.asm"), "--device", device]);
        assert!(text.contains("calibrated: "), "{device}: {text}");
    }
}

#[test]
fn a_program_has_the_same_hash_on_a_gpu() {
    if !has_gpu() {
        return;
    }
    let program = repository("examples/programs/softmax.asm");
    let hash = |device: &str| {
        let out = json(&["run", &program, "--device", device, "--in", "0x1000=rand:3", "--json"]);
        out["outputs"][0]["sha256"].as_str().unwrap().to_string()
    };
    assert_eq!(hash("cpu"), hash("vulkan"));
}

#[test]
fn kernels_are_shown_without_a_gpu() {
    let text = good(&["kernel", &kernel("reduce")]);
    for line in [
        "entry     main, workgroup 256 x 1 x 1 (x is constant 0)",
        "shared    1024 bytes in a workgroup",
        "buffer    0: set 0, binding 0, storage buffer, read, elements of 4 bytes",
        "buffer    1: set 0, binding 1, storage buffer, written, elements of 4 bytes",
        "push      4 bytes: u32 n at 0",
        "constant  0: u32, 256 if it is not set",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let found = json(&["kernel", &kernel("vecadd"), "--json"]);
    let entry = &found["entry_points"][0];
    assert_eq!((&entry["name"], &entry["workgroup"]), (&"main".into(), &serde_json::json!([256, 1, 1])));
    assert_eq!(entry["bindings"].as_array().unwrap().len(), 3);
    assert_eq!((&entry["bindings"][2]["writable"], &entry["push_constants"]["bytes"]), (&true.into(), &4.into()));
    let bytes = std::fs::read(kernel("vecadd")).unwrap();
    let (code, out, _) = adead_with(&["kernel", "-"], &bytes);
    assert!(code == 0 && out.starts_with(b"module  stdin (SPIR-V 1.5, "), "{}", String::from_utf8_lossy(&out));
    for cut in [0, 3, 20, 100, bytes.len() - 4] {
        assert_eq!(adead_with(&["kernel", "-"], &bytes[..cut]).0, 17, "{cut}");
    }
    bad(21, &["kernel", "nowhere.spv"]);
}

#[test]
fn a_kernel_runs() {
    if !has_gpu() {
        return;
    }
    let folder = folder("dispatch");
    let a = file(&folder, "a.npy", &npy(1, "<f4", false, "(3,)", &floats(&[1.0, 2.5, -3.0])));
    let c = folder.join("c.npy").to_str().unwrap().to_string();
    let out = format!("2={c}");
    let args = ["dispatch", &kernel("vecadd"), "--groups", "1", "--push", "3", "--buffer", &a];
    let more = ["--buffer", "f32[3]:fill:3f800000", "--buffer", "f32[3]:zeros", "--out", &out];
    let text = good(&[&args[..], &more].concat());
    let sum = npy(1, "<f4", false, "(3,)", &floats(&[2.0, 3.5, -2.0]));
    let written = std::fs::read(&c).unwrap();
    assert_eq!(written[written.len() - 12..], sum[sum.len() - 12..]);
    assert!(text.contains("in      0 f32[3] 12 bytes\n") && text.contains(&format!(" -> {c}\n")), "{text}");
    assert!(text.contains("groups  1 x 1 x 1 of 256 x 1 x 1\n"), "{text}");

    // With constants: a product of 16 by 16 with the identity, which keeps the other matrix.
    let identity: Vec<f32> = (0..256).map(|i| if i % 17 == 0 { 1.0 } else { 0.0 }).collect();
    let one = file(&folder, "one.npy", &npy(1, "<f4", false, "(16, 16)", &floats(&identity)));
    let product = kernel("matmul");
    let args = ["dispatch", &product, "--groups", "1,1", "--constant", "0=16", "--constant", "1=16"];
    let more = ["--constant", "2=16", "--buffer", &one, "--buffer", "f32[16,16]:rand:5", "--buffer", "zeros:1KiB"];
    let found = json(&[&args[..], &more, &["--repeat", "3", "--json"]].concat());
    assert_eq!((&found["runs"], &found["buffers"][2]["shape"]), (&3.into(), &serde_json::json!([256])));
    let adder = kernel("vecadd");
    let args = ["dispatch", &adder, "--groups", "1", "--push", "256", "--buffer", "f32[256]:rand:5"];
    let more = ["--buffer", "zeros:1KiB", "--buffer", "zeros:1KiB"];
    let same = good(&[&args[..], &more].concat());
    assert_eq!(found["buffers"][2]["sha256"], after(&same, "sha256 "));
    assert_eq!(names(&folder), ["a.npy", "c.npy", "one.npy"]);
}

#[test]
fn what_a_kernel_does_not_take_is_refused() {
    let folder = folder("dispatch_errors");
    let out = folder.join("out.npy").to_str().unwrap().to_string();
    let (add, reduce) = (kernel("vecadd"), kernel("reduce"));
    // These errors come before a GPU is looked for.
    bad(21, &["dispatch", "nowhere.spv", "--groups", "1"]);
    let broken = file(&folder, "broken.spv", &std::fs::read(&add).unwrap()[..400]);
    bad(17, &["dispatch", &broken, "--groups", "1"]);
    assert!(
        bad(11, &["dispatch", &reduce, "--groups", "1", "--constant", "7=1"]).contains("no constant 7: it has [0]")
    );
    assert!(bad(11, &["dispatch", &reduce, "--groups", "1", "--constant", "0=-1"]).contains("constant 0: "));
    let twice = ["--constant", "0=64", "--constant", "0=32"];
    assert!(bad(11, &[&["dispatch", &reduce, "--groups", "1"][..], &twice].concat()).contains("set twice"));
    let missing = format!("1={out}");
    let text = bad(11, &["dispatch", &add, "--groups", "1", "--buffer", "zeros:4", "--out", &missing]);
    assert!(text.contains("1 buffers are given"), "{text}");
    let first = format!("0={out}");
    let bf16 = ["dispatch", &add, "--groups", "1", "--buffer", "bf16[2]:zeros", "--out", &first];
    assert!(bad(19, &bf16).contains("bf16"));
    assert!(!folder.join("out.npy").exists());
    if !has_gpu() {
        return;
    }
    let three = ["--buffer", "zeros:4", "--buffer", "zeros:4", "--buffer", "zeros:4", "--out", &first];
    let start = ["dispatch", &add, "--groups", "1"];
    let call = |more: &[&'static str]| [&start[..], &three, more].concat();
    assert!(bad(11, &call(&[])).contains("takes 1 push constants (n u32); got 0 numbers"));
    assert!(bad(11, &call(&["--push", "1,2"])).contains("got 2 numbers"));
    assert!(bad(11, &call(&["--push", "hex:00000001ff"])).contains("got 5"));
    assert!(bad(11, &call(&["--push", "1", "--buffer", "zeros:4"])).contains("takes 3 buffers"));
    assert!(bad(11, &call(&["--push", "1", "--entry", "other"])).contains("'other'"));
    assert!(bad(11, &call(&["--push", "1", "--buffer", "zeros:6"])).contains("zeros:6"));
    assert!(bad(13, &call(&["--push", "1", "--buffer", "f32[2]:ids:1:2"])).contains("buffer 3 is f32"));
    assert!(bad(19, &call(&["--push", "1", "--device", "cpu"])).contains("vulkan"));
    assert!(bad(15, &call(&["--push", "1", "--device", "vulkan:99"])).contains("vulkan:99"));
    assert!(!folder.join("out.npy").exists());
    assert_eq!(names(&folder), ["broken.spv"]);
    good(&call(&["--push", "1"]));
    assert!(folder.join("out.npy").exists());
}
