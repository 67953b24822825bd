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
use crate::hal::cpu::{Isa, MOST_THREADS};
use crate::log::log;
use crate::ops::Family;
use std::borrow::Cow;
use std::path::PathBuf;
use std::{env, fmt, fs, io};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

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

/// `ADEAD_CHECK_BUFFERS`: whether users' buffers lie between guards.
pub(crate) fn checks_buffers() -> Result<bool> {
    match variable("ADEAD_CHECK_BUFFERS").as_deref() {
        None | Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(other) => fail!(InvalidArgument, "ADEAD_CHECK_BUFFERS is '{other}'; it must be 0 or 1"),
    }
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
        for entry in entries(text)? {
            log!(Debug, "config", "{} = {}", entry.key, entry.text);
            config.set(&entry).map_err(|what| Fault { line: entry.line, what: what.into() })?;
        }
        if config.use_gpu == Some(false) && !matches!(config.device.as_deref(), None | Some("auto" | "cpu")) {
            return Err(Fault { line: 0, what: "device names a GPU and use_gpu is false".into() });
        }
        Ok(config)
    }

    /// Takes a setting of the file; the error says what it must be.
    fn set(&mut self, entry: &Entry<'_>) -> Result<(), &'static str> {
        let quoted = || entry.value.as_str().filter(|text| !text.is_empty());
        let number = || entry.value.as_integer().and_then(|it| usize::from_str_radix(it.as_str(), it.radix()).ok());
        match (&*entry.table, &*entry.key) {
            ("", "device") => self.device = Some(quoted().ok_or("device must be a text in quotes")?.into()),
            ("", "cache_dir") => self.cache_dir = Some(quoted().ok_or("cache_dir must be a text in quotes")?.into()),
            ("", "isa") => {
                let isa = Isa::ALL.into_iter().find(|isa| quoted() == Some(isa.name()));
                self.isa = Some(isa.ok_or("isa must name an instruction set, such as \"avx2\"")?);
            }
            ("", "use_gpu") => self.use_gpu = Some(entry.value.as_bool().ok_or("use_gpu must be true or false")?),
            ("", "num_threads") => {
                let threads = number().filter(|threads| (1..=MOST_THREADS).contains(threads));
                self.threads = Some(threads.ok_or("num_threads must be 1 to 1024")?);
            }
            ("thresholds", key) => {
                let Some(family) = Family::ALL.into_iter().find(|family| family.name() == key) else {
                    return Err("thresholds are of matmul, attention, elementwise, function, reduction, move");
                };
                self.thresholds[family as usize] = Some(number().ok_or("a threshold must be a number of elements")?);
            }
            #[cfg(feature = "log")]
            ("", "log") => self.log = Some(quoted().and_then(level).ok_or(LEVELS)?),
            // For others that read the file.
            #[cfg(not(feature = "log"))]
            ("", "log") => {}
            _ => return Err(KEYS),
        }
        Ok(())
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
    /// From 1.
    pub line: usize,
    /// The table's name, empty before any.
    pub table: Cow<'a, str>,
    pub key: Cow<'a, str>,
    pub value: DeValue<'a>,
    /// The value as it stands there.
    pub text: &'a str,
}

impl<'a> Entry<'a> {
    fn new(text: &'a str, table: Cow<'a, str>, key: Spanned<Cow<'a, str>>, value: Spanned<DeValue<'a>>) -> Entry<'a> {
        Entry {
            line: line(text, key.span().start),
            table,
            key: key.into_inner(),
            text: text.get(value.span()).unwrap_or_default(),
            value: value.into_inner(),
        }
    }
}

/// The number of the line that a byte is in.
fn line(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1
}

/// What is wrong with a text file; line 0 is all of it.
pub(crate) struct Fault {
    pub line: usize,
    pub what: Cow<'static, str>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.what),
            line => write!(f, "line {line}: {}", self.what),
        }
    }
}

/// The settings of a text in TOML, in its order: those before any table, and those of its tables.
pub(crate) fn entries(text: &str) -> Result<Vec<Entry<'_>>, Fault> {
    let all = DeTable::parse(text).map_err(|error| Fault {
        line: error.span().map_or(0, |span| line(text, span.start)),
        what: error.message().replace('\n', ", ").into(),
    })?;
    let mut entries = Vec::new();
    for (key, value) in all.into_inner() {
        if let DeValue::Table(table) = value.get_ref() {
            for (own, value) in table {
                entries.push(Entry::new(text, key.get_ref().clone(), own.clone(), value.clone()));
            }
        } else {
            entries.push(Entry::new(text, "".into(), key, value));
        }
    }
    // The first fault in the file is the one to tell.
    entries.sort_by_key(|entry| entry.line);
    Ok(entries)
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

    #[test]
    fn paths_of_windows_are_read() {
        let folder = |text: &str| Config::parse(text).map(|config| config.cache_dir).map_err(|fault| fault.to_string());
        for text in ["cache_dir = 'C:\\Users\\me'", "cache_dir = \"C:\\\\Users\\\\me\""] {
            assert_eq!(folder(text), Ok(Some("C:\\Users\\me".into())), "{text}");
        }
        let escapes = folder("\ncache_dir = \"C:\\me\"").unwrap_err();
        assert!(escapes.starts_with("line 2: "), "{escapes}");
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
        for text in ["#\nlog = \"loud\"", "#\nlog = 3"] {
            let expected = "line 2: log must be \"off\", \"error\", \"warn\", \"info\", \"debug\" or \"trace\"";
            assert_eq!(level(text), Err(expected.into()));
        }
        assert_eq!(level("log = \"warn\"\nlog = \"warn\""), Err("line 2: duplicate key".into()));
    }

    #[test]
    fn what_is_malformed_names_its_line() {
        for (text, expected) in [
            ("\ndevice", "line 2: key with no value, expected `=`"),
            ("device = cpu", "line 1: string values must be quoted, expected literal string"),
            ("device = \"\"", "line 1: device must be a text in quotes"),
            ("device = 7", "line 1: device must be a text in quotes"),
            ("#\ndevice = \"cpu", "line 2: invalid basic string, expected `\"`"),
            ("device = \"cpu\" x", "line 1: unexpected key or value, expected newline, `#`"),
            ("use_gpu = 1", "line 1: use_gpu must be true or false"),
            ("num_threads = 0", "line 1: num_threads must be 1 to 1024"),
            ("isa = \"mmx\"", "line 1: isa must name an instruction set, such as \"avx2\""),
            ("gpu = true", UNKNOWN),
            ("num_threads = 1025", "line 1: num_threads must be 1 to 1024"),
            ("num_threads = \"4\"", "line 1: num_threads must be 1 to 1024"),
            ("device = \"cpu\"\n#\ndevice = \"cpu\"", "line 3: duplicate key"),
            ("[thresholds]\nmatmul = 1\nmatmul = 1", "line 3: duplicate key"),
            // The first one in the file is named, not the first by name.
            ("use_gpu = 1\ndevice = 1", "line 1: use_gpu must be true or false"),
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
