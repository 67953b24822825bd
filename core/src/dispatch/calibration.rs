//! Calibrations: figures of one machine, measured on request (`adead calibrate`) and stored in a file in the cache folder.
//!
//! A file is text: a version, the machine that it describes, and a table for each device. A file that is malformed or describes
//! another machine is ignored, and the profile says why. Wrong figures can make a choice slower, but never change a result.

use super::profile::{DeviceProfile, NAMES, Source};
use crate::config::Config;
use crate::contract;
use crate::error::{Error, Result, Status, fail};
use crate::hal::DeviceInfo;
use crate::log::log;
use std::fmt::{Display, Write};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[cfg(feature = "settings")]
mod reading;

#[cfg(feature = "settings")]
use reading::read;

/// The version of the file format.
const VERSION: &str = "3";

/// Returns the text that identifies a machine: processor, instruction set, threads and arithmetic contract.
pub fn machine(cpu: &DeviceInfo) -> String {
    // A quote would end the TOML string.
    let name = cpu.name.replace('"', "'");
    format!("{name}; {}; {} threads; {}", cpu.arch, cpu.units, contract::VERSION)
}

/// Returns the path of a machine's file in a cache folder, which several machines may share.
pub fn file(folder: &Path, machine: &str) -> PathBuf {
    // The file also contains the machine's text, which distinguishes machines with the same hash.
    folder.join(format!("calibration-{:016x}.toml", hash(machine)))
}

/// FNV-1a.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Returns the text of a calibration file.
pub fn encode(machine: &str, profiles: &[DeviceProfile]) -> String {
    let mut text = format!(
        "# Measured by `adead calibrate`. Figures change which device is chosen, never a result.\n\
         # Without this file the built-in figures hold.\nversion = {VERSION}\nmachine = \"{machine}\"\n"
    );
    for profile in profiles {
        // Writing to a String can't fail.
        let _ = writeln!(text, "\n[\"{}\"]", profile.id);
        for (name, value) in NAMES.split(' ').zip(profile.figures()) {
            let _ = writeln!(text, "{name} = {}", value as f32);
        }
    }
    text
}

/// Reads the figures of the profile's device from a file's text into the profile. On an error, which says what is wrong with the
/// text, the profile is unchanged.
pub fn decode(text: &str, machine: &str, profile: &mut DeviceProfile) -> Result<(), String> {
    read(text, machine, profile).map_err(|fault| fault.to_string())
}

#[cfg(not(feature = "settings"))]
fn read(_: &str, _: &str, _: &mut DeviceProfile) -> Result<(), &'static str> {
    Err(crate::config::UNREAD)
}

/// Logs that a calibration is ignored, and returns a note with the reason.
#[inline(never)]
fn ignored(profile: &DeviceProfile, name: &str, why: &dyn Display) -> String {
    let note = format!("{name} is ignored: {why}");
    log!(Warn, "dispatch", "figures of {}: {note}", profile.id);
    note
}

/// Returns the device's profile with the figures of this machine's calibration. Without a valid calibration it returns the
/// built-in figures and a note with the reason.
#[inline(never)]
pub(crate) fn profile(config: &Config, machine: &str, mut profile: DeviceProfile) -> DeviceProfile {
    let note = match config.cache_folder().map(|folder| file(&folder, machine)) {
        None => "there is no cache folder".into(),
        Some(path) => {
            let name = path.to_string_lossy();
            match fs::read_to_string(&path) {
                Ok(text) => match read(&text, machine, &mut profile) {
                    Ok(()) => {
                        log!(Debug, "dispatch", "figures of {} are those of {name}", profile.id);
                        profile.source = Source::Calibrated(name.into());
                        return profile;
                    }
                    Err(wrong) => ignored(&profile, &name, &wrong),
                },
                Err(error) if error.kind() == io::ErrorKind::NotFound => "no calibration".into(),
                Err(error) => ignored(&profile, &name, &error.kind()),
            }
        }
    };
    if let Source::BuiltIn(text) = &mut profile.source {
        text.push_str("; ");
        text.push_str(&note);
    }
    profile
}

/// Writes a machine's calibration into a cache folder and returns the file's path. The folder is created if it is missing. The
/// file appears whole or not at all. Returns `io` on failure.
pub fn store(folder: &Path, machine: &str, profiles: &[DeviceProfile]) -> Result<PathBuf> {
    for profile in profiles {
        profile.check()?;
    }
    let path = file(folder, machine);
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let write = || {
        fs::create_dir_all(folder)?;
        fs::write(&temporary, encode(machine, profiles))?;
        fs::rename(&temporary, &path)
    };
    if let Err(error) = write() {
        let _ = fs::remove_file(&temporary);
        fail!(Io, "{}: {error}; ADEAD_CACHE_DIR names another folder", path.display());
    }
    Ok(path)
}

/// Returns the cache folder, or an error that says how to name one.
pub fn folder(config: &Config) -> Result<PathBuf> {
    let none =
        || Error::new(Status::Io, "there is no cache folder: neither ADEAD_CACHE_DIR, XDG_CACHE_HOME nor HOME is set");
    config.cache_folder().ok_or_else(none)
}

#[cfg(all(test, not(feature = "settings")))]
mod tests {
    use super::*;

    #[test]
    fn a_calibration_is_ignored_and_the_profile_says_so() {
        let mut profile = DeviceProfile::reference("mid").unwrap();
        let before = profile.clone();
        let why = decode(&encode("m", &[before.clone()]), "m", &mut profile).unwrap_err();
        assert!(why.starts_with("this is a minimal build of adead, which reads none"), "{why}");
        assert_eq!(profile, before);
    }
}

#[cfg(all(test, feature = "settings"))]
mod tests {
    use super::*;

    fn profile_of(id: &str) -> DeviceProfile {
        DeviceProfile { id: id.into(), ..DeviceProfile::reference("mid").unwrap() }
    }

    fn measured(id: &str) -> DeviceProfile {
        let mut profile = profile_of(id);
        profile.set_figures(&std::array::from_fn(|i| 1.0 / (i + 1) as f64));
        profile
    }

    #[test]
    fn what_is_encoded_decodes_to_the_same_figures() {
        let text = encode("a machine; x", &[measured("cpu"), measured("cuda:0")]);
        for id in ["cpu", "cuda:0"] {
            let mut profile = profile_of(id);
            decode(&text, "a machine; x", &mut profile).unwrap();
            assert_eq!(profile.figures(), measured(id).figures().map(|figure| f64::from(figure as f32)));
        }
    }

    #[test]
    fn what_is_wrong_is_said_and_changes_nothing() {
        let good = encode("m", &[measured("cpu")]);
        let cut = good.lines().take(good.lines().count() - 1).collect::<Vec<_>>().join("\n");
        for (text, expected) in [
            (String::new(), "it has another version"),
            ("\u{0}\u{1}garbage".into(), "line 1: "),
            (good.replace("version = 3", "version = 2"), "it has another version"),
            (good.replace("machine = \"m\"", "machine = \"n\""), "it is from another machine"),
            (good.replace("machine = \"m\"", ""), "it is from another machine"),
            (good.replace("machine", "mashine"), "line 4: the keys here are version and machine"),
            (good.replace("\"cpu\"", "\"gpu\""), "it has no figures for this device"),
            (good.replace("wake_ns", "woke_ns"), "line 8: it is not a device figure"),
            (good.replace("wake_ns = ", "wake_ns = 1_"), "line 8: it is not a device figure"),
            (good.replace("wake_ns = ", "wake_ns = x"), "line 8: "),
            (good.replace("matmul_gflops = ", "matmul_gflops = -"), "a figure is out of range"),
            (good.replace("matmul_gflops = ", "matmul_gflops = 0#"), "a figure is out of range"),
            (good.replace("alone = ", "alone = 1.5#"), "a figure is out of range"),
            (good.replace("alone = ", "alone = nan#"), "a figure is out of range"),
            (good.replace("alone = ", "alone = inf#"), "a figure is out of range"),
            (cut, "it is not complete"),
        ] {
            let mut profile = profile_of("cpu");
            let error = decode(&text, "m", &mut profile).unwrap_err();
            // The text after "line N: " may come from the TOML parser.
            assert!(error == expected || expected.ends_with(": ") && error.starts_with(expected), "{error}");
            assert_eq!(profile, profile_of("cpu"));
        }
    }

    #[test]
    fn files_are_found_again_and_bad_ones_explained() {
        let folder = std::env::temp_dir().join(format!("adead-calibration-{}", std::process::id()));
        let config = Config { cache_dir: Some(folder.clone()), ..Config::default() };
        let built_in = || DeviceProfile { source: Source::BuiltIn("mid".into()), ..profile_of("cpu") };
        let load = |machine: &str| profile(&config, machine, built_in());
        assert_eq!(load("m").source.to_string(), "built-in figures: mid; no calibration");
        let path = store(&folder, "m", &[measured("cpu")]).unwrap();
        assert_eq!(path, file(&folder, "m"));
        assert_eq!(load("m").source, Source::Calibrated(path.display().to_string()));
        assert_eq!(load("m").launch_ns, 1.0);
        assert_eq!(load("n").launch_ns, profile_of("cpu").launch_ns, "another machine has another file");
        // A file under the wrong name, and a file that is no calibration.
        fs::copy(&path, file(&folder, "n")).unwrap();
        let foreign = load("n").source.to_string();
        assert!(foreign.ends_with("is ignored: it is from another machine"), "{foreign}");
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(load("m").source.to_string().contains(" is ignored: "));
        store(&folder, "m", &[measured("cpu")]).unwrap();
        assert_eq!(load("m").launch_ns, 1.0, "written anew");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "nothing temporary is left");
        // A file in the place of the folder.
        let error = store(&path, "m", &[measured("cpu")]).unwrap_err();
        assert_eq!(error.status(), Status::Io);
        fs::remove_dir_all(&folder).unwrap();
    }
}
