//! Settings that the caller did not give as arguments: the environment, and behind it a file `adead.toml`. Where files
//! that outlive a process go stands here too. Everything else asks this module.
//!
//! ```toml
//! device = "cpu"            # what "auto" is: as ADEAD_DEVICE
//! use_gpu = false           # "auto" takes no GPU
//! num_threads = 4           # as ADEAD_NUM_THREADS
//! isa = "avx2"              # as ADEAD_ISA
//! cache_dir = "/var/cache/adead"  # as ADEAD_CACHE_DIR
//!
//! [thresholds]              # from how many elements on an operation goes to the GPU
//! matmul = 65536
//! ```
//!
//! The file is the one that `ADEAD_CONFIG` names, else `adead.toml` in the current directory. An argument beats the
//! environment, the environment beats the file.

use crate::error::{Error, Result, Status, fail};
use crate::hal::cpu::Isa;
use crate::ops::Family;
use std::path::PathBuf;
use std::{env, fs, io};

/// What the environment and `adead.toml` say; `None` where neither does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// The device to open when the caller names none.
    pub device: Option<String>,
    /// Whether `auto` may take a GPU.
    pub use_gpu: Option<bool>,
    /// CPU threads, from the file; unset where `ADEAD_NUM_THREADS` is, which the CPU device reads itself.
    pub threads: Option<usize>,
    /// The CPU's instruction set, from the file; unset where `ADEAD_ISA` is, which the CPU device reads itself.
    pub isa: Option<Isa>,
    /// Where files that outlive a process go.
    pub cache_dir: Option<PathBuf>,
    /// From how many elements on operations of a family go to the GPU.
    pub thresholds: Vec<(Family, usize)>,
}

/// An environment variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    let value = env::var_os(name)?;
    if value.is_empty() { None } else { Some(value.to_string_lossy().into_owned()) }
}

impl Config {
    /// Reads both. `invalid_argument` with file and line for what is malformed, `io` for a file that can't be read.
    pub fn load() -> Result<Config> {
        let (path, named) = match env::var_os("ADEAD_CONFIG").filter(|path| !path.is_empty()) {
            Some(path) => (PathBuf::from(path), true),
            None => (PathBuf::from("adead.toml"), false),
        };
        let mut config = match fs::read_to_string(&path) {
            Ok(text) => Config::parse(&text)
                .map_err(|text| Error::new(Status::InvalidArgument, format!("{}, {text}", path.to_string_lossy())))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !named => Config::default(),
            Err(error) => fail!(Io, "{}: {error}", path.to_string_lossy()),
        };
        if let Some(device) = variable("ADEAD_DEVICE") {
            config.device = Some(device);
        }
        if variable("ADEAD_NUM_THREADS").is_some() {
            config.threads = None;
        }
        if variable("ADEAD_ISA").is_some() {
            config.isa = None;
        }
        if let Some(folder) = env::var_os("ADEAD_CACHE_DIR").filter(|folder| !folder.is_empty()) {
            config.cache_dir = Some(folder.into());
        }
        Ok(config)
    }

    /// The device to open when the caller names none.
    pub fn device_name(&self) -> &str {
        self.device.as_deref().unwrap_or("auto")
    }

    /// The folder for files that outlive a process, such as calibrations: what is set, else `adead` in the user's cache
    /// folder (`XDG_CACHE_HOME`, else `.cache` at home); `None` where there is no home either. It may not exist yet.
    pub fn cache_folder(&self) -> Option<PathBuf> {
        let folder = |name: &str| env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
        let users = || Some(folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?.join("adead"));
        self.cache_dir.clone().or_else(users)
    }

    fn parse(text: &str) -> Result<Config, String> {
        let mut config = Config::default();
        entries(text, &mut |entry| {
            config.set(&entry).map_err(|what| {
                let Entry { key, value, line, .. } = entry;
                format!("line {line}: {key} = {value}; {what}")
            })
        })?;
        if config.use_gpu == Some(false) && !matches!(config.device.as_deref(), None | Some("auto" | "cpu")) {
            return Err(format!("device is '{}' and use_gpu is false", config.device_name()));
        }
        Ok(config)
    }

    /// Takes a setting of the file; the error says what it must be.
    fn set(&mut self, &Entry { table, key, value, .. }: &Entry<'_>) -> Result<(), &'static str> {
        let text = || match value.trim_matches('"') {
            text if text.len() + 2 == value.len() && !text.is_empty() && !text.contains('\\') => Ok(text),
            _ => Err("it must be a text in double quotes, without backslashes"),
        };
        let twice = match (table, key) {
            ("thresholds", _) => {
                let known = "there are matmul, attention, elementwise, function, reduction, move";
                let family = key.parse().map_err(|_| known)?;
                let elements = value.parse().map_err(|_| "it must be a number of elements")?;
                let twice = self.thresholds.iter().any(|other| other.0 == family);
                self.thresholds.push((family, elements));
                twice
            }
            ("", "device") => self.device.replace(text()?.into()).is_some(),
            ("", "cache_dir") => self.cache_dir.replace(text()?.into()).is_some(),
            ("", "isa") => {
                let isa = text()?.parse().map_err(|_| "it must be \"avx512\", \"avx2\", \"sse2\" or \"portable\"")?;
                self.isa.replace(isa).is_some()
            }
            ("", "use_gpu") => self.use_gpu.replace(value.parse().map_err(|_| "it must be true or false")?).is_some(),
            ("", "num_threads") => match value.parse() {
                Ok(threads @ 1..=1024) => self.threads.replace(threads).is_some(),
                _ => return Err("it must be 1 to 1024"),
            },
            _ => return Err("there are device, use_gpu, num_threads, isa, cache_dir and [thresholds]"),
        };
        if twice { Err("it is set twice") } else { Ok(()) }
    }
}

/// A setting in a text file. A text still has its quotes.
pub(crate) struct Entry<'a> {
    pub table: &'a str,
    pub key: &'a str,
    pub value: &'a str,
    pub line: usize,
}

/// The settings of a text in the part of TOML that is used here: tables, `key = value` with a bare value or a text in
/// double quotes without escapes, comments. The error names the line.
pub(crate) fn entries<'a>(text: &'a str, each: &mut dyn FnMut(Entry<'a>) -> Result<(), String>) -> Result<(), String> {
    let mut table = "";
    for (i, whole) in text.lines().enumerate() {
        let line = i + 1;
        // A quoted text may hold a '#'.
        let quoted = |at: usize| whole[..at].matches('"').count() % 2 == 1;
        let end = whole.match_indices('#').map(|(at, _)| at).find(|&at| !quoted(at)).unwrap_or(whole.len());
        let content = whole[..end].trim();
        if content.is_empty() {
            continue;
        }
        if let Some(name) = content.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            table = name.trim();
            continue;
        }
        let Some((key, value)) = content.split_once('=').map(|(key, value)| (key.trim(), value.trim())) else {
            return Err(format!("line {line}: '{content}' is no 'key = value'"));
        };
        let quotes = value.matches('"').count();
        let quoted = quotes == 2 && value.len() > 1 && value.starts_with('"') && value.ends_with('"');
        if value.is_empty() || (quotes > 0 && !quoted) {
            return Err(format!("line {line}: '{value}' is no value; write a number, true, false or \"text\""));
        }
        each(Entry { table, key, value, line })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_read() {
        let text = "# adead\ndevice = \"a # b\" # which\nuse_gpu=true\n num_threads = 3\nisa = \"avx2\"\n\
                    cache_dir = \"/c\"\n[thresholds]\nmatmul = 4096\nfunction = 0\n";
        let config = Config::parse(text).unwrap();
        assert_eq!((config.device_name(), config.use_gpu, config.threads), ("a # b", Some(true), Some(3)));
        assert_eq!((config.isa, config.cache_folder()), (Some(Isa::Avx2), Some("/c".into())));
        assert_eq!(config.thresholds, [(Family::Matmul, 4096), (Family::Function, 0)]);
        assert_eq!(Config::parse("").unwrap(), Config::default());
        assert_eq!(Config::default().device_name(), "auto");
    }

    #[test]
    fn what_is_malformed_names_its_line() {
        for (text, words) in [
            ("\ndevice", "line 2: 'device' is no 'key = value'"),
            ("device = cpu", "line 1: device = cpu; it must be a text in double quotes"),
            ("device = \"cpu", "is no value"),
            ("device = \"\"", "in double quotes"),
            ("device = \"c\\\\pu\"", "without backslashes"),
            ("use_gpu = 1", "true or false"),
            ("num_threads = 0", "1 to 1024"),
            ("isa = \"mmx\"", "it must be \"avx512\", "),
            ("gpu = true", "there are device, "),
            ("device = \"cpu\"\ndevice = \"cpu\"", "line 2: device = \"cpu\"; it is set twice"),
            ("[thresholds]\nmatmul = -1", "number of elements"),
            ("[thresholds]\nconv = 1", "line 2: conv = 1; there are matmul, "),
            ("[other]\nx = 1", "there are device, "),
            ("device = \"cuda\"\nuse_gpu = false", "device is 'cuda' and use_gpu is false"),
        ] {
            let error = Config::parse(text).unwrap_err();
            assert!(error.contains(words), "{text:?}: {error}");
        }
    }
}
