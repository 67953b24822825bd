//! What the tests share: files of `tests/sentences` and `tests/text`, and contexts.

// Every test file takes what it needs of this.
#![allow(dead_code)]

pub mod convert;
pub mod gguf;

#[path = "../../../core/tests/backend/mod.rs"]
mod backend;

use adead::{Context, ContextOptions, Status};
use std::path::{Path, PathBuf};

/// A folder that is gone at the end of a test.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let folder = std::env::temp_dir().join(format!("adead-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    pub fn write(&self, file: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(file), text).unwrap();
        self.path(file)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A file of `tests/sentences`.
pub fn shared(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/sentences").join(name)
}

/// The lines of a file.
pub fn lines(name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(shared(name)).unwrap();
    text.strip_suffix('\n').unwrap().split('\n').map(String::from).collect()
}

/// A file of `tests/text`.
pub fn text(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/text").join(name)
}

/// The values of a `.npy` file of `tests/sentences`.
pub fn npy(name: &str) -> Vec<f32> {
    npy_at(&shared(name))
}

/// The values of a `.npy` file whose header takes 128 bytes, as these do.
pub fn npy_at(path: &Path) -> Vec<f32> {
    let bytes = std::fs::read(path).unwrap();
    assert!(bytes.starts_with(b"\x93NUMPY\x01\x00\x76\x00"), "{path:?}");
    bytes[128..].chunks_exact(4).map(|float| f32::from_le_bytes(float.try_into().unwrap())).collect()
}

/// The CPU with so many threads.
pub fn cpu(threads: usize) -> Context {
    Context::with_options("cpu", &ContextOptions { threads: Some(threads), ..Default::default() }).unwrap()
}

/// The context of a device, unless this machine lacks it; then it says so.
pub fn open(device: &str, options: &ContextOptions) -> Option<Context> {
    match Context::with_options(device, options) {
        Ok(context) => Some(context),
        Err(error) if matches!(error.status(), Status::BackendUnavailable | Status::Unsupported) => {
            backend::skip(&format!("{device} {options:?}"), &error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The GPU that `ADEAD_TEST_BACKEND` names, alone and with the CPU.
pub fn gpus() -> Vec<Context> {
    let Some(backend) = backend::named() else { return Vec::new() };
    let names = [format!("{backend}:0"), format!("cpu,{backend}:0")];
    names.iter().filter_map(|name| open(name, &ContextOptions::default())).collect()
}

/// The bits of values, which tell zeros and NaNs apart.
pub fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}
