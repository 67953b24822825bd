//! Settings that the caller did not pass as arguments: from the environment, or else from a file `adead.toml`. This module also
//! chooses the folder for files that outlive a process. Two variables are read elsewhere: `ADEAD_ISA` by `isa.rs`,
//! `ADEAD_NUM_THREADS` by the CPU device.
//!
//! ```toml
//! device = "cpu"            # the device to open if the caller names none, like ADEAD_DEVICE
//! use_gpu = false           # "auto" uses no GPU
//! num_threads = 4           # like ADEAD_NUM_THREADS
//! isa = "avx2"              # like ADEAD_ISA
//! cache_dir = "/var/cache/adead"  # like ADEAD_CACHE_DIR
//! log = "warn"              # like ADEAD_LOG; ignored without the feature `log`
//!
//! [thresholds]              # operations with at least this many elements go to the GPU
//! matmul = 65536
//! ```
//!
//! `ADEAD_CONFIG` names the file; otherwise it is `adead.toml` in the current directory. An argument takes precedence over the
//! environment, and the environment over the file.

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

/// What a build without the feature `settings` says of files.
#[cfg(not(feature = "settings"))]
pub(crate) const UNREAD: &str = "this is a minimal build of adead, which reads none: build it without ADEAD_MINIMAL (cargo: with the feature settings)";

/// The settings of the environment and of `adead.toml`, `None` where neither has one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// The device to open if the caller names none.
    pub device: Option<String>,
    /// Whether `auto` may use a GPU.
    pub use_gpu: Option<bool>,
    /// CPU threads, from the file. `None` if `ADEAD_NUM_THREADS` is set: the CPU device reads that itself.
    pub threads: Option<usize>,
    /// The CPU's instruction set, from the file. `None` if `ADEAD_ISA` is set: the CPU device reads that itself.
    pub isa: Option<Isa>,
    /// The folder for files that outlive a process.
    pub cache_dir: Option<PathBuf>,
    /// `ADEAD_VISIBLE_DEVICES`: the GPUs that may be used, as numbers, names or UUIDs separated by commas. `none` hides all.
    pub visible_devices: Option<String>,
    /// The least severe level of messages that programs and bindings print if no other logger is set.
    #[cfg(feature = "log")]
    pub log: Option<::log::LevelFilter>,
    /// By [`Family`]: operations with at least this many elements go to the GPU.
    pub thresholds: [Option<usize>; Family::COUNT],
}

/// Reads an environment variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    let value = env::var_os(name)?;
    #[cfg(feature = "log")]
    log!(Debug, "config", "{name} = {}", value.to_string_lossy());
    if value.is_empty() { None } else { Some(value.to_string_lossy().into_owned()) }
}

/// Reads `ADEAD_CHECK_BUFFERS`: whether users' buffers lie between guards.
pub(crate) fn checks_buffers() -> Result<bool> {
    match variable("ADEAD_CHECK_BUFFERS").as_deref() {
        None | Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(other) => fail!(InvalidArgument, "ADEAD_CHECK_BUFFERS is '{other}'; it must be 0 or 1"),
    }
}

impl Config {
    /// Reads the environment and the file. Malformed settings are `invalid_argument` with file and line. A file that can't be
    /// read is `io`.
    pub fn load() -> Result<Config> {
        let (path, named) = match env::var_os("ADEAD_CONFIG").filter(|path| !path.is_empty()) {
            Some(path) => (PathBuf::from(path), true),
            None => (PathBuf::from("adead.toml"), false),
        };
        log!(Debug, "config", "{} is read if it exists", path.to_string_lossy());
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

    /// A build without the feature `settings` refuses a file with settings. If it ignored the file, it could open another device
    /// than the file names.
    #[cfg(not(feature = "settings"))]
    fn of_file(text: &str, name: &str) -> Result<Config> {
        if !text.trim().is_empty() {
            fail!(Unsupported, "{name} has settings, and {UNREAD}");
        }
        Ok(Config::default())
    }

    /// Returns the device to open if the caller names none.
    pub fn device_name(&self) -> &str {
        self.device.as_deref().unwrap_or("auto")
    }

    /// Returns the folder for files that outlive a process, such as calibrations. It is `cache_dir`, or else `adead` in the
    /// user's cache folder (`XDG_CACHE_HOME`, or else `.cache` in `HOME`). `None` if there is no home either. The folder may not
    /// exist yet.
    pub fn cache_folder(&self) -> Option<PathBuf> {
        let folder = |name: &str| env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
        let users = || Some(folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?.join("adead"));
        self.cache_dir.clone().or_else(users)
    }
}

/// The allowed values of ADEAD_LOG and of the file's `log`.
#[cfg(feature = "log")]
const LEVELS: &str = "log must be \"off\", \"error\", \"warn\", \"info\", \"debug\" or \"trace\"";

/// The level with this name.
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
