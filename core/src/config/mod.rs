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

#[cfg(feature = "settings")]
use crate::error::{Error, Status};
use crate::error::{Result, fail};
use crate::family::Family;
use crate::isa::Isa;
use crate::log::log;
use std::path::PathBuf;
use std::{env, fs, io};

#[cfg(feature = "settings")]
mod entries;
#[cfg(feature = "settings")]
mod settings;

#[cfg(feature = "settings")]
pub(crate) use entries::{Fault, entries};

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
            Ok(text) => Config::of_file(&text, &path.to_string_lossy())?,
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

    #[cfg(feature = "settings")]
    fn of_file(text: &str, name: &str) -> Result<Config> {
        Config::parse(text).map_err(|fault| Error::new(Status::InvalidArgument, format!("{name}, {fault}")))
    }

    /// A build without the feature `settings` refuses a file that says something: passed over, another device might be opened than
    /// the one that it names.
    #[cfg(not(feature = "settings"))]
    fn of_file(text: &str, name: &str) -> Result<Config> {
        if !text.trim().is_empty() {
            fail!(
                Unsupported,
                "{name} has settings, and this is a minimal build of adead, which reads none: set ADEAD_DEVICE and others in the \
                 environment, or build it without ADEAD_MINIMAL (cargo: with the feature settings)"
            );
        }
        Ok(Config::default())
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
}

/// What ADEAD_LOG and the file's `log` may say.
#[cfg(feature = "log")]
const LEVELS: &str = "log must be \"off\", \"error\", \"warn\", \"info\", \"debug\" or \"trace\"";

/// The level of a name.
#[cfg(feature = "log")]
fn level(name: &str) -> Option<::log::LevelFilter> {
    ::log::LevelFilter::iter().find(|level| level.as_str().eq_ignore_ascii_case(name))
}

#[cfg(all(test, not(feature = "settings")))]
mod tests {
    use super::*;
    use crate::error::Status;

    #[test]
    fn settings_are_refused() {
        assert_eq!(Config::of_file(" \n", "adead.toml").unwrap(), Config::default());
        let error = Config::of_file("device = \"cpu\"", "adead.toml").unwrap_err();
        assert_eq!(error.status(), Status::Unsupported);
        assert!(
            error.message().starts_with("adead.toml has settings, and this is a minimal build"),
            "{}",
            error.message()
        );
    }
}
