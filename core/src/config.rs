//! Settings that the caller did not give as arguments: the environment, and behind it a file `adead.toml`. Where files
//! that outlive a process go stands here too. Everything else asks this module.
//!
//! ```toml
//! device = "cpu"            # what is opened where nothing is named: as ADEAD_DEVICE
//! use_gpu = false           # "auto" takes no GPU
//! num_threads = 4           # as ADEAD_NUM_THREADS
//! isa = "avx2"              # as ADEAD_ISA
//! cache_dir = "/var/cache/adead"  # as ADEAD_CACHE_DIR
//! log = "warn"              # as ADEAD_LOG; without the feature `log` it has no effect
//!
//! [thresholds]              # from how many elements on an operation goes to the GPU
//! matmul = 65536
//! ```
//!
//! The file is the one that `ADEAD_CONFIG` names, else `adead.toml` in the current directory. An argument beats the
//! environment, the environment beats the file.

use crate::error::{Error, Result, Status, fail};
use crate::hal::cpu::Isa;
use crate::log::log;
use crate::ops::Family;
use std::path::PathBuf;
use std::{env, fmt, fs, io};

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
    /// `ADEAD_VISIBLE_DEVICES`: the GPUs that may be used, as numbers, names or UUIDs with commas between them; `none`
    /// leaves none.
    pub visible_devices: Option<String>,
    /// From which level on messages are printed, where nothing else takes them: for the programs and bindings that print.
    #[cfg(feature = "log")]
    pub log: Option<::log::LevelFilter>,
    /// By [`Family`]: from how many elements on its operations go to the GPU.
    pub thresholds: [Option<usize>; Family::COUNT],
}

/// An environment variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    let value = env::var_os(name)?;
    #[cfg(feature = "log")]
    log!(Debug, "config", "{name} = {}", value.to_string_lossy());
    if value.is_empty() { None } else { Some(value.to_string_lossy().into_owned()) }
}

impl Config {
    /// Reads both. `invalid_argument` with file and line for what is malformed, `io` for a file that can't be read.
    pub fn load() -> Result<Config> {
        let (path, named) = match env::var_os("ADEAD_CONFIG").filter(|path| !path.is_empty()) {
            Some(path) => (PathBuf::from(path), true),
            None => (PathBuf::from("adead.toml"), false),
        };
        log!(Debug, "config", "{} is read if it is there", path.to_string_lossy());
        let mut config = match fs::read_to_string(&path) {
            Ok(text) => Config::parse(&text)
                .map_err(|fault| Error::new(Status::InvalidArgument, format!("{}, {fault}", path.to_string_lossy())))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !named => Config::default(),
            Err(error) => fail!(Io, "{}: {}", path.to_string_lossy(), error.kind()),
        };
        if let Some(device) = variable("ADEAD_DEVICE") {
            config.device = Some(device);
        }
        config.visible_devices = variable("ADEAD_VISIBLE_DEVICES");
        if variable("ADEAD_NUM_THREADS").is_some() {
            config.threads = None;
        }
        if variable("ADEAD_ISA").is_some() {
            config.isa = None;
        }
        if let Some(folder) = env::var_os("ADEAD_CACHE_DIR").filter(|folder| !folder.is_empty()) {
            config.cache_dir = Some(folder.into());
        }
        #[cfg(feature = "log")]
        if let Some(name) = variable("ADEAD_LOG") {
            let Some(level) = level(&name) else { fail!(InvalidArgument, "ADEAD_LOG is '{name}'; {LEVELS}") };
            config.log = Some(level);
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

    fn parse(text: &str) -> Result<Config, Fault> {
        let mut config = Config::default();
        entries(text, &mut |entry| {
            log!(Debug, "config", "{} = {}", entry.key, entry.value);
            config.set(&entry)
        })?;
        if config.use_gpu == Some(false) && !matches!(config.device.as_deref(), None | Some("auto" | "cpu")) {
            return Err(Fault { line: 0, what: "device names a GPU and use_gpu is false" });
        }
        Ok(config)
    }

    /// Takes a setting of the file; the error says what it must be.
    fn set(&mut self, entry: &Entry<'_>) -> Result<(), &'static str> {
        let &Entry { table, key, value, quoted, .. } = entry;
        let text = || if quoted && !value.is_empty() { Ok(value) } else { Err("it must be a text in double quotes") };
        let twice = match (table, key) {
            ("", "device") => self.device.replace(text()?.into()).is_some(),
            ("", "cache_dir") => self.cache_dir.replace(text()?.into()).is_some(),
            ("", "isa") => match Isa::ALL.into_iter().find(|isa| isa.name() == value) {
                Some(isa) if quoted => self.isa.replace(isa).is_some(),
                _ => return Err("isa must name an instruction set, such as \"avx2\""),
            },
            ("", "use_gpu") => match value {
                "true" | "false" => self.use_gpu.replace(value == "true").is_some(),
                _ => return Err("use_gpu must be true or false"),
            },
            ("", "num_threads") => match value.parse() {
                Ok(threads @ 1..=1024) => self.threads.replace(threads).is_some(),
                _ => return Err("num_threads must be 1 to 1024"),
            },
            ("thresholds", _) => {
                let Some(family) = Family::ALL.into_iter().find(|family| family.name() == key) else {
                    return Err("thresholds are of matmul, attention, elementwise, function, reduction, move");
                };
                let Ok(elements) = value.parse() else { return Err("a threshold must be a number of elements") };
                self.thresholds[family as usize].replace(elements).is_some()
            }
            #[cfg(feature = "log")]
            ("", "log") => match level(value) {
                Some(level) if quoted => self.log.replace(level).is_some(),
                _ => return Err(LEVELS),
            },
            // For others that read the file.
            #[cfg(not(feature = "log"))]
            ("", "log") => false,
            _ => return Err(KEYS),
        };
        if twice { Err("it is set twice") } else { Ok(()) }
    }
}

/// What a file may say.
const KEYS: &str = "there are device, use_gpu, num_threads, isa, cache_dir, log and [thresholds]";

/// What ADEAD_LOG and the file's `log` may say.
#[cfg(feature = "log")]
const LEVELS: &str = "log must be \"off\", \"error\", \"warn\", \"info\", \"debug\" or \"trace\"";

/// The level of a name.
#[cfg(feature = "log")]
fn level(name: &str) -> Option<::log::LevelFilter> {
    ::log::LevelFilter::iter().find(|level| level.as_str().eq_ignore_ascii_case(name))
}

/// A setting in a text file.
pub(crate) struct Entry<'a> {
    pub table: &'a str,
    pub key: &'a str,
    /// Without its quotes.
    pub value: &'a str,
    pub quoted: bool,
}

/// What is wrong with a text file; line 0 is all of it.
pub(crate) struct Fault {
    pub line: usize,
    pub what: &'static str,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(self.what),
            line => write!(f, "line {line}: {}", self.what),
        }
    }
}

/// The settings of a text in the part of TOML that is used here: tables, `key = value` with a bare value or a text in
/// double quotes without escapes, comments.
pub(crate) fn entries<'a>(
    text: &'a str,
    each: &mut dyn FnMut(Entry<'a>) -> Result<(), &'static str>,
) -> Result<(), Fault> {
    let mut table = "";
    for (i, line) in text.lines().enumerate() {
        let fault = |what| Err(Fault { line: i + 1, what });
        // A quoted text may hold a '#'.
        let (before, quoted) = match line.split_once('"') {
            Some((before, rest)) if !before.contains('#') => (before, Some(rest)),
            _ => (line.split('#').next().unwrap_or(line), None),
        };
        let before = before.trim_ascii();
        if before.is_empty() && quoted.is_none() {
            continue;
        }
        if let Some(name) = before.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            table = name;
            continue;
        }
        let Some((key, bare)) = before.split_once('=') else { return fault("it is no 'key = value'") };
        let value = match quoted.map(|rest| rest.split_once('"')) {
            None => bare.trim_ascii(),
            Some(Some((value, rest))) if bare.trim_ascii().is_empty() && !value.contains('\\') => {
                let rest = rest.trim_ascii();
                if !rest.is_empty() && !rest.starts_with('#') {
                    return fault("something follows the text");
                }
                value
            }
            Some(_) => return fault("a text is in double quotes, without backslashes"),
        };
        if let Err(what) = each(Entry { table, key: key.trim_ascii(), value, quoted: quoted.is_some() }) {
            return fault(what);
        }
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
        let config = Config::parse(text).map_err(|fault| fault.to_string()).unwrap();
        assert_eq!((config.device_name(), config.use_gpu, config.threads), ("a # b", Some(true), Some(3)));
        assert_eq!((config.isa, config.cache_folder()), (Some(Isa::Avx2), Some("/c".into())));
        assert_eq!(config.thresholds, [Some(4096), None, None, Some(0), None, None]);
        assert_eq!(Config::parse("").map_err(|fault| fault.to_string()).unwrap(), Config::default());
        assert_eq!(Config::default().device_name(), "auto");
    }

    const UNKNOWN: &str = "line 1: there are device, use_gpu, num_threads, isa, cache_dir, log and [thresholds]";

    #[cfg(not(feature = "log"))]
    #[test]
    fn the_level_of_those_that_tell_something_is_no_fault() {
        assert!(Config::parse("log = \"warn\"").is_ok());
    }

    #[cfg(feature = "log")]
    #[test]
    fn levels_are_read() {
        use ::log::LevelFilter;
        let level = |text: &str| Config::parse(text).map(|config| config.log).map_err(|fault| fault.to_string());
        assert_eq!(level("log = \"off\""), Ok(Some(LevelFilter::Off)));
        assert_eq!(level("log = \"Trace\""), Ok(Some(LevelFilter::Trace)));
        assert_eq!(level(""), Ok(None));
        for text in ["#\nlog = \"loud\"", "#\nlog = warn", "#\nlog = 3"] {
            let expected = "line 2: log must be \"off\", \"error\", \"warn\", \"info\", \"debug\" or \"trace\"";
            assert_eq!(level(text), Err(expected.into()));
        }
        assert_eq!(level("log = \"warn\"\nlog = \"warn\""), Err("line 2: it is set twice".into()));
    }

    #[test]
    fn what_is_malformed_names_its_line() {
        for (text, expected) in [
            ("\ndevice", "line 2: it is no 'key = value'"),
            ("device = cpu", "line 1: it must be a text in double quotes"),
            ("device = \"\"", "line 1: it must be a text in double quotes"),
            ("device = \"cpu", "line 1: a text is in double quotes, without backslashes"),
            ("device = \"c\\pu\"", "line 1: a text is in double quotes, without backslashes"),
            ("device = x\"cpu\"", "line 1: a text is in double quotes, without backslashes"),
            ("device = \"cpu\" x", "line 1: something follows the text"),
            ("\"device = cpu", "line 1: it is no 'key = value'"),
            ("use_gpu = 1", "line 1: use_gpu must be true or false"),
            ("num_threads = 0", "line 1: num_threads must be 1 to 1024"),
            ("isa = \"mmx\"", "line 1: isa must name an instruction set, such as \"avx2\""),
            ("isa = avx2", "line 1: isa must name an instruction set, such as \"avx2\""),
            ("gpu = true", UNKNOWN),
            ("device = \"cpu\"\n#\ndevice = \"cpu\"", "line 3: it is set twice"),
            ("[thresholds]\nmatmul = 1\nmatmul = 1", "line 3: it is set twice"),
            ("[thresholds]\nmatmul = -1", "line 2: a threshold must be a number of elements"),
            (
                "[thresholds]\nconv = 1",
                "line 2: thresholds are of matmul, attention, elementwise, function, reduction, move",
            ),
            ("[other]\nx = 1", &UNKNOWN.replace("line 1", "line 2")),
            ("device = \"cuda\"\nuse_gpu = false", "device names a GPU and use_gpu is false"),
        ] {
            let Err(fault) = Config::parse(text) else { panic!("{text:?} is taken") };
            assert_eq!(fault.to_string(), expected, "{text:?}");
        }
    }

    #[test]
    fn the_message_names_every_family() {
        let Err(fault) = Config::parse("[thresholds]\nx = 1") else { panic!("taken") };
        assert!(Family::ALL.iter().all(|family| fault.what.contains(family.name())));
    }
}
