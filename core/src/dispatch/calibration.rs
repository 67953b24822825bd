//! Calibrations: figures of one machine, measured on request (`adead calibrate`), kept in a file of the cache folder.
//!
//! A file is text: a version, the machine that it is about, and a table for each device. One that is malformed or about
//! another machine is ignored, and the profile says why; figures can make a choice slower, never a result different.

use super::profile::{DeviceProfile, Source};
use crate::config::{Config, Entry, entries};
use crate::contract;
use crate::error::{Error, Result, Status, fail};
use crate::hal::DeviceInfo;
use crate::number::parse_f32;
use crate::ops::Family;
use std::fmt::Write;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The version of the files.
const VERSION: &str = "1";

/// No calibration is larger.
const LARGEST: u64 = 64 << 10;

/// What a calibration is about, as a text: processor, instruction set, threads and arithmetic contract.
pub fn machine(cpu: &DeviceInfo) -> String {
    let name = cpu.name.replace(['"', '\\', '\n'], " ");
    format!("{name}; {}; {} threads; {}", cpu.arch, cpu.units, contract::VERSION)
}

/// The file of a machine in a cache folder: several machines may share the folder.
pub fn file(folder: &Path, machine: &str) -> PathBuf {
    // FNV-1a; the file itself names the machine, so that two of one hash are told apart.
    let hash = machine
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    folder.join(format!("calibration-{hash:016x}.toml"))
}

/// The figures that a file has of a device, by name.
fn figures(profile: &mut DeviceProfile) -> Vec<(String, &mut f64)> {
    let DeviceProfile {
        launch_ns, wake_ns, alone, alone_memory, cache_bytes, cache_gain, upload, download, rates, ..
    } = profile;
    let mut list: Vec<(String, &mut f64)> = vec![
        ("launch_ns".into(), launch_ns),
        ("wake_ns".into(), wake_ns),
        ("alone".into(), alone),
        ("alone_memory".into(), alone_memory),
        ("cache_bytes".into(), cache_bytes),
        ("cache_gain".into(), cache_gain),
        ("upload_latency_ns".into(), &mut upload.latency_ns),
        ("upload_gbytes".into(), &mut upload.gbytes),
        ("download_latency_ns".into(), &mut download.latency_ns),
        ("download_gbytes".into(), &mut download.gbytes),
    ];
    for (family, rate) in Family::ALL.into_iter().zip(rates) {
        list.push((format!("{family}_gflops"), &mut rate.gflops));
        list.push((format!("{family}_gbytes"), &mut rate.gbytes));
    }
    list
}

/// The text of a file.
pub fn encode(machine: &str, profiles: &[DeviceProfile]) -> String {
    let mut text = format!(
        "# Measured by `adead calibrate`. Figures change which device is chosen, never a result.\n\
         # Without this file the built-in figures hold.\nversion = {VERSION}\nmachine = \"{machine}\"\n"
    );
    for profile in profiles {
        // Writing to a String can't fail.
        let _ = writeln!(text, "\n[{}]", profile.id);
        for (name, value) in figures(&mut profile.clone()) {
            let _ = writeln!(text, "{name} = {}", *value as f32);
        }
    }
    text
}

/// Puts the figures of a file's text into the profile of the device that they are about. On an error, which says what is
/// wrong with the text, the profile is as it was.
pub fn decode(text: &str, machine: &str, profile: &mut DeviceProfile) -> Result<(), String> {
    let mut found = profile.clone();
    let (mut version, mut about) = (None, None);
    let mut figures = figures(&mut found);
    let mut missing: Vec<bool> = vec![true; figures.len()];
    entries(text, |Entry { table, key, value, line }| {
        match (table, key) {
            ("", "version") => version = Some(value),
            ("", "machine") => about = Some(value.trim_matches('"')),
            (table, _) if table == profile.id => {
                let Some(i) = figures.iter().position(|(name, _)| name == key) else {
                    return Err(format!("line {line}: no figure is named '{key}'"));
                };
                match parse_f32(value) {
                    Some(number) => *figures[i].1 = f64::from(number),
                    None => return Err(format!("line {line}: '{value}' is no number")),
                }
                missing[i] = false;
            }
            // Devices that are not there today.
            (table, _) if !table.is_empty() => {}
            _ => return Err(format!("line {line}: nothing is named '{key}'")),
        }
        Ok(())
    })?;
    match (version, about) {
        (Some(VERSION), Some(about)) if about == machine => {}
        (Some(VERSION), Some(about)) => return Err(format!("it is about another machine, {about}")),
        (Some(VERSION), None) => return Err("it names no machine".into()),
        (Some(other), _) => return Err(format!("its version is {other}, not {VERSION}")),
        (None, _) => return Err("it has no version".into()),
    }
    if let Some(i) = missing.iter().position(|missing| *missing) {
        return Err(format!("{} of {} is missing", figures[i].0, profile.id));
    }
    found.check().map_err(|error| error.message().to_string())?;
    *profile = found;
    Ok(())
}

/// A device's profile from the calibration of this machine if there is a good one, else the built-in one that `built_in`
/// makes for a reason.
pub(crate) fn profile(config: &Config, machine: &str, built_in: impl FnOnce(&str) -> DeviceProfile) -> DeviceProfile {
    let Some(folder) = config.cache_folder() else { return built_in("there is no cache folder") };
    let path = file(&folder, machine);
    let text = match read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return built_in("no calibration"),
        Err(error) => return built_in(&format!("{} is ignored: {error}", path.display())),
    };
    let mut profile = built_in("no calibration");
    match decode(&text, machine, &mut profile) {
        Ok(()) => {
            profile.source = Source::Calibrated(path.display().to_string());
            profile
        }
        Err(wrong) => {
            if let Source::BuiltIn(text) = &mut profile.source {
                *text = text.replace("no calibration", &format!("{} is ignored: {wrong}", path.display()));
            }
            profile
        }
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(LARGEST).read_to_string(&mut text)?;
    Ok(text)
}

/// Writes the calibration of a machine into a cache folder, which is made if need be; the file appears whole or not at
/// all. Its path. `io` if that fails.
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

/// The cache folder, or the error that says how to name one.
pub fn folder(config: &Config) -> Result<PathBuf> {
    let none =
        || Error::new(Status::Io, "there is no cache folder: neither ADEAD_CACHE_DIR, XDG_CACHE_HOME nor HOME is set");
    config.cache_folder().ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile_of(id: &str) -> DeviceProfile {
        DeviceProfile { id: id.into(), ..DeviceProfile::reference("mid").unwrap() }
    }

    fn measured(id: &str) -> DeviceProfile {
        let mut profile = profile_of(id);
        for (i, (_, value)) in figures(&mut profile).into_iter().enumerate() {
            *value = 1.0 / (i + 1) as f64;
        }
        profile
    }

    #[test]
    fn what_is_encoded_decodes_to_the_same_figures() {
        let text = encode("a machine; x", &[measured("cpu"), measured("cuda:0")]);
        for id in ["cpu", "cuda:0"] {
            let mut profile = profile_of(id);
            decode(&text, "a machine; x", &mut profile).unwrap();
            let (mut expected, mut profile) = (measured(id), profile);
            for ((name, expected), (_, found)) in figures(&mut expected).into_iter().zip(figures(&mut profile)) {
                assert_eq!(*found, f64::from(*expected as f32), "{name}");
            }
        }
    }

    #[test]
    fn what_is_wrong_is_said_and_changes_nothing() {
        let good = encode("m", &[measured("cpu")]);
        let cut = good.lines().take(good.lines().count() - 1).collect::<Vec<_>>().join("\n");
        for (text, words) in [
            (String::new(), "it has no version"),
            ("\u{0}\u{1}garbage".into(), "line 1:"),
            (good.replace("version = 1", "version = 2"), "its version is 2, not 1"),
            (good.replace("machine = \"m\"", "machine = \"n\""), "it is about another machine, n"),
            (good.replace("machine = \"m\"", ""), "it names no machine"),
            (good.replace("[cpu]", "[gpu]"), "launch_ns of cpu is missing"),
            (good.replace("wake_ns", "woke_ns"), "no figure is named 'woke_ns'"),
            (good.replace("alone = ", "alone = x"), "is no number"),
            (good.replace("matmul_gflops = ", "matmul_gflops = -"), "a figure of -"),
            (good.replace("matmul_gflops = ", "matmul_gflops = 0#"), "a figure of 0"),
            (good.replace("alone = ", "alone = nan#"), "a figure of NaN"),
            (good.replace("alone = ", "alone = inf#"), "a figure of inf"),
            (cut, "move_gbytes of cpu is missing"),
        ] {
            let mut profile = profile_of("cpu");
            let error = decode(&text, "m", &mut profile).unwrap_err();
            assert!(error.contains(words), "{error}, not {words}");
            assert_eq!(profile, profile_of("cpu"));
        }
    }

    #[test]
    fn files_are_found_again_and_bad_ones_explained() {
        let folder = std::env::temp_dir().join(format!("adead-calibration-{}", std::process::id()));
        let config = Config { cache_dir: Some(folder.clone()), ..Config::default() };
        let built_in =
            |because: &str| DeviceProfile { source: Source::BuiltIn(format!("mid; {because}")), ..profile_of("cpu") };
        let load = |machine: &str| profile(&config, machine, built_in);
        assert_eq!(load("m").source.to_string(), "built-in figures: mid; no calibration");
        let path = store(&folder, "m", &[measured("cpu")]).unwrap();
        assert_eq!(path, file(&folder, "m"));
        assert_eq!(load("m").source, Source::Calibrated(path.display().to_string()));
        assert_eq!(load("m").launch_ns, 1.0);
        assert_eq!(load("n").launch_ns, profile_of("cpu").launch_ns, "another machine has another file");
        // A file under the wrong name, and one that is none.
        fs::copy(&path, file(&folder, "n")).unwrap();
        let foreign = load("n").source.to_string();
        assert!(foreign.ends_with("is ignored: it is about another machine, m"), "{foreign}");
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(load("m").source.to_string().contains(" is ignored: "));
        store(&folder, "m", &[measured("cpu")]).unwrap();
        assert_eq!(load("m").launch_ns, 1.0, "written anew");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "nothing temporary is left");
        // Where a folder can't be.
        let error = store(&path, "m", &[measured("cpu")]).unwrap_err();
        assert_eq!(error.status(), Status::Io);
        fs::remove_dir_all(&folder).unwrap();
    }
}
