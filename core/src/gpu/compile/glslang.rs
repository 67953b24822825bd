//! GLSL becomes SPIR-V through the program glslangValidator.

use crate::error::{Error, Result, Status, fail};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio, id};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The variable that names the compiler, and its usual names.
const VARIABLE: &str = "ADEAD_GLSLANG";
const NAMES: [&str; 2] = ["glslangValidator", "glslang"];

/// Files of a compilation, removed at its end.
struct Files {
    source: PathBuf,
    module: PathBuf,
}

impl Files {
    fn new() -> Files {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let stem = std::env::temp_dir().join(format!("adead-{}-{}", id(), NUMBER.fetch_add(1, Relaxed)));
        Files { source: stem.with_extension("comp"), module: stem.with_extension("spv") }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.source);
        let _ = fs::remove_file(&self.module);
    }
}

fn run(program: &str, files: &Files) -> std::io::Result<Output> {
    Command::new(program)
        .args(["--quiet", "-V", "--target-env", "vulkan1.2", "-S", "comp", "-o"])
        .args([&files.module, &files.source])
        .stdin(Stdio::null())
        .output()
}

/// Returns the SPIR-V module of a compute shader.
pub fn compile(source: &str, name: &str) -> Result<Vec<u8>> {
    let files = Files::new();
    let fault = |error: std::io::Error| Error::new(Status::Io, format!("{}: {error}", files.source.display()));
    let create = || fs::File::create_new(&files.source)?.write_all(source.as_bytes());
    create().map_err(fault)?;
    let named = std::env::var(VARIABLE).ok();
    let names: Vec<&str> = match &named {
        Some(name) => vec![name],
        None => NAMES.to_vec(),
    };
    for program in &names {
        let output = match run(program, &files) {
            Ok(output) => output,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => fail!(BackendUnavailable, "{program}: {error}"),
        };
        if output.status.success() {
            return fs::read(&files.module).map_err(fault);
        }
        let own = files.source.display().to_string();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).replace(&own, name);
        // The compiler begins with the file's name alone.
        let text = text.trim().strip_prefix(name).unwrap_or(&text).trim();
        fail!(InvalidKernel, "{name}: {text}");
    }
    fail!(BackendUnavailable, "no compiler of GLSL: none of {} is there; {VARIABLE} may name it", names.join(", "))
}
