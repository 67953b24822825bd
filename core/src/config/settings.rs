//! The settings of `adead.toml`.

use super::Config;
use super::entries::{Entry, Fault, entries};
use crate::family::Family;
use crate::host::MOST_THREADS;
use crate::isa::Isa;
use crate::log::log;

impl Config {
    /// Reads the settings of a text.
    pub(super) fn parse(text: &str) -> Result<Config, Fault> {
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

    /// Takes a setting from the file. The error says what the value must be.
    fn set(&mut self, entry: &Entry<'_>) -> Result<(), &'static str> {
        let quoted = || entry.string().filter(|text| !text.is_empty());
        match (&*entry.table, &*entry.key) {
            ("", "device") => self.device = Some(quoted().ok_or("device must be a string in quotes")?.into()),
            ("", "cache_dir") => self.cache_dir = Some(quoted().ok_or("cache_dir must be a string in quotes")?.into()),
            ("", "isa") => {
                let isa = Isa::ALL.into_iter().find(|isa| quoted() == Some(isa.name()));
                self.isa = Some(isa.ok_or("isa must name an instruction set, such as \"avx2\"")?);
            }
            ("", "use_gpu") => self.use_gpu = Some(entry.boolean().ok_or("use_gpu must be true or false")?),
            ("", "num_threads") => {
                let threads = entry.number().filter(|threads| (1..=MOST_THREADS).contains(threads));
                self.threads = Some(threads.ok_or("num_threads must be 1 to 1024")?);
            }
            ("thresholds", key) => {
                let Some(family) = Family::ALL.into_iter().find(|family| family.name() == key) else {
                    return Err(
                        "a threshold's key must be matmul, attention, elementwise, function, reduction or move",
                    );
                };
                self.thresholds[family as usize] =
                    Some(entry.number().ok_or("a threshold must be a number of elements")?);
            }
            #[cfg(feature = "log")]
            ("", "log") => self.log = Some(quoted().and_then(super::level).ok_or(super::LEVELS)?),
            // Other builds read the level from the same file.
            #[cfg(not(feature = "log"))]
            ("", "log") => {}
            _ => return Err(KEYS),
        }
        Ok(())
    }
}

/// The allowed keys of the file.
const KEYS: &str = "the keys are device, use_gpu, num_threads, isa, cache_dir, log and [thresholds]";

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

    const UNKNOWN: &str = "line 1: the keys are device, use_gpu, num_threads, isa, cache_dir, log and [thresholds]";

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
            ("device = \"\"", "line 1: device must be a string in quotes"),
            ("device = 7", "line 1: device must be a string in quotes"),
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
            // The first fault in the file is reported, not the first by name.
            ("use_gpu = 1\ndevice = 1", "line 1: use_gpu must be true or false"),
            ("[thresholds]\nmatmul = -1", "line 2: a threshold must be a number of elements"),
            (
                "[thresholds]\nconv = 1",
                "line 2: a threshold's key must be matmul, attention, elementwise, function, reduction or move",
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
