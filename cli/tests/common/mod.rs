//! Shared by the tests: running the command, a folder for each test, `.npy` files written by hand.

// Each test file uses only some of this.
#![allow(dead_code)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The command, without the settings of the user who runs the tests.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_adead"));
    for name in ["ADEAD_DEVICE", "ADEAD_VISIBLE_DEVICES", "ADEAD_NUM_THREADS", "ADEAD_ISA", "ADEAD_LOG", "ADEAD_CONFIG"]
    {
        command.env_remove(name);
    }
    // It ignores the user's calibrations too.
    command.env("ADEAD_CACHE_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-cache"));
    command.args(args).stdin(Stdio::null());
    command
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        Ended {
            code: output.status.code().expect("it ended by itself"),
            out: String::from_utf8(output.stdout).expect("text on stdout"),
            err: String::from_utf8(output.stderr).expect("text on stderr"),
        }
    }
}

/// Runs the command.
pub fn adead(args: &[&str]) -> Ended {
    command(args).output().expect("it runs").into()
}

/// Runs the command with input on stdin. Returns stdout as bytes.
pub fn adead_with(args: &[&str], input: &[u8]) -> (i32, Vec<u8>, String) {
    let mut child =
        command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    child.stdin.take().expect("stdin").write_all(input).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    (output.status.code().expect("it ended by itself"), output.stdout, String::from_utf8_lossy(&output.stderr).into())
}

/// Runs the command and returns stdout. The command must succeed and write nothing to stderr.
pub fn good(args: &[&str]) -> String {
    let ended = adead(args);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{args:?} {ended:?}");
    ended.out
}

/// Runs the command and returns its line on stderr. It must fail with this code and write nothing to stdout.
pub fn bad(code: i32, args: &[&str]) -> String {
    let ended = adead(args);
    assert_eq!((ended.code, ended.out.as_str()), (code, ""), "{args:?} {ended:?}");
    assert!(ended.err.starts_with("adead: error: ") && ended.err.ends_with('\n'), "{ended:?}");
    if code != 2 {
        assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
    }
    ended.err
}

/// Whether this machine has a GPU, software or not. Prints a line if it has none.
pub fn has_gpu() -> bool {
    let ended = adead(&["info", "--device", "vulkan"]);
    if ended.code == 15 {
        println!("skipped: {}", ended.err.trim_end());
    } else {
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    ended.code == 0
}

/// An empty folder that only this test uses.
pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Writes a file into a folder and returns its path.
pub fn file(folder: &Path, name: &str, contents: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, contents).expect("a file");
    path.to_str().expect("a path of text").into()
}

/// The names in a folder, including hidden ones.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A file of the repository.
pub fn repository(path: &str) -> String {
    format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"))
}

/// A `.npy` file of version 1, 2 or 3.
pub fn npy(version: u8, descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    match version {
        1 => bytes.extend((text.len() as u16).to_le_bytes()),
        _ => bytes.extend((text.len() as u32).to_le_bytes()),
    }
    bytes.extend(text.bytes());
    bytes.extend(data);
    bytes
}

/// f32 values, little endian.
pub fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The text after a word in a line: `sha256 500e…`.
pub fn after<'a>(text: &'a str, word: &str) -> &'a str {
    let rest = text.split_once(word).unwrap_or_else(|| panic!("no '{word}' in {text}")).1;
    rest.split_whitespace().next().expect("something follows")
}
