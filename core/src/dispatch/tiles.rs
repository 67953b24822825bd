//! Costs of the tiles of a GPU's products, measured on request (`adead calibrate --kernels`) and stored in a file in the cache folder,
//! for a device and its driver. They change which kernels compute a product, never a bit of it.

use crate::error::{Result, fail};
use crate::hal::{Device, DeviceInfo, TileCosts};
#[cfg(feature = "settings")]
use crate::log::log;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The version of the file format.
const VERSION: &str = "1";

/// Returns the text that identifies a device and its driver: the backend, both names.
fn text_of(info: &DeviceInfo) -> String {
    let backend = info.id.split(':').next().unwrap_or_default();
    // A quote would end the TOML string.
    format!("{backend}; {}; {}", info.name, info.driver).replace('"', "'")
}

/// Returns the path of a device's file in a cache folder.
pub fn file(folder: &Path, info: &DeviceInfo) -> PathBuf {
    folder.join(format!("tiles-{:016x}.toml", super::calibration::hash(&text_of(info))))
}

/// Returns the names of a tile's two costs in a file: `128x64_alone`, `128x64_shared`.
fn names(costs: &TileCosts, tile: usize) -> [String; 2] {
    let tile = &costs.table()[tile].tile;
    ["alone", "shared"].map(|cost| format!("{}x{}_{cost}", tile.bm, tile.bn))
}

/// Returns the text of a file.
fn encode(info: &DeviceInfo, costs: &TileCosts) -> String {
    let mut text = format!(
        "# Fitted by `adead calibrate --kernels`: nanoseconds of a tile for each k, alone on a multiprocessor and beside others.\n\
         # They change which tiles compute a product, never a bit of it. Without this file the built-in ones hold.\n\
         version = {VERSION}\ndevice = \"{}\"\n",
        text_of(info)
    );
    for (tile, cost) in costs.all().iter().enumerate().take(costs.table().len()) {
        for (name, cost) in names(costs, tile).iter().zip(cost) {
            // Writing to a String can't fail.
            let _ = writeln!(text, "{name} = {}", *cost as f32);
        }
    }
    text
}

/// Writes the costs of a device's tiles to its file in a cache folder, and returns the file's path. The folder must exist. The file appears
/// whole or not at all.
pub fn store(folder: &Path, info: &DeviceInfo, costs: &TileCosts) -> Result<PathBuf> {
    let path = file(folder, info);
    let draft = folder.join(format!("tiles-{}.tmp", std::process::id()));
    let written = fs::write(&draft, encode(info, costs)).and_then(|()| fs::rename(&draft, &path));
    if let Err(error) = written {
        let _ = fs::remove_file(&draft);
        fail!(Io, "{}: {error}; ADEAD_CACHE_DIR names another folder", path.display());
    }
    Ok(path)
}

/// Sets the costs of a device's tiles to those of its file in a cache folder, if it has a valid one. A build that reads no settings does
/// nothing.
#[cfg(not(feature = "settings"))]
pub(crate) fn load(_: Option<&Path>, _: &dyn Device) {}

/// Sets the costs of a device's tiles to those of its file in a cache folder, if it has a valid one.
#[cfg(feature = "settings")]
pub(crate) fn load(folder: Option<&Path>, device: &dyn Device) {
    let (Some(folder), Some(costs)) = (folder, device.tiles()) else { return };
    let path = file(folder, device.info());
    let Ok(text) = fs::read_to_string(&path) else { return };
    match read(&text, device.info(), costs) {
        Ok(()) => log!(Debug, "dispatch", "costs of tiles of {} are those of {}", device.info().id, path.display()),
        Err(why) => log!(Warn, "dispatch", "{} is ignored: {why}", path.display()),
    }
}

/// Sets the costs to those of a file's text. On an error nothing has changed.
#[cfg(feature = "settings")]
fn read(text: &str, info: &DeviceInfo, costs: &TileCosts) -> Result<(), String> {
    let (mut version, mut device) = (None, None);
    let mut found = vec![[None; 2]; costs.table().len()];
    for entry in &crate::config::entries(text).map_err(|fault| fault.to_string())? {
        match &*entry.key {
            "version" => version = Some(entry.text),
            "device" => device = entry.string().map(str::to_owned),
            key => {
                let place = (0..found.len()).find_map(|tile| {
                    let cost = names(costs, tile).iter().position(|name| name == key)?;
                    Some((tile, cost))
                });
                let value = crate::ops::parse_f32(entry.text).filter(|value| *value > 0.0 && *value < 1e9);
                let (Some((tile, cost)), Some(value)) = (place, value) else {
                    return Err(format!("line {}: '{key}' is no cost of a tile", entry.line));
                };
                found[tile][cost] = Some(f64::from(value));
            }
        }
    }
    if version != Some(VERSION) {
        return Err("it has another version".into());
    }
    if device.as_deref() != Some(&*text_of(info)) {
        return Err("it is from another device or driver".into());
    }
    let all: Option<Vec<[f64; 2]>> = found.iter().map(|[alone, shared]| Some([(*alone)?, (*shared)?])).collect();
    let Some(all) = all else { return Err("it is not complete".into()) };
    all.into_iter().enumerate().for_each(|(tile, cost)| costs.set(tile, cost));
    Ok(())
}

#[cfg(all(test, feature = "settings"))]
mod tests {
    use super::*;
    use crate::hal::tiles::{Cost, tile};

    static TABLE: [Cost; 2] = [
        Cost { tile: tile(256, [128, 64], [8, 8], 32, 1), alone: 92.0, shared: 92.0, slots: 1 },
        Cost { tile: tile(64, [32, 32], [4, 4], 32, 1), alone: 25.0, shared: 9.3, slots: 6 },
    ];

    fn info(driver: &str) -> DeviceInfo {
        let cpu = crate::hal::cpu::CpuDevice::open(None, Some(1)).unwrap();
        DeviceInfo {
            id: "cuda:0".into(),
            name: "A \"GPU\"".into(),
            driver: driver.into(),
            ..Device::info(&cpu).clone()
        }
    }

    #[test]
    fn what_is_stored_is_read_for_the_same_driver() {
        let folder = std::env::temp_dir().join(format!("adead-tiles-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (measured, costs) = (TileCosts::new(&TABLE), TileCosts::new(&TABLE));
        measured.set(0, [50.5, 40.25]);
        measured.set(1, [3.0, 2.0]);
        let path = store(&folder, &info("1"), &measured).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing temporary is left");
        assert_ne!(path, file(&folder, &info("2")));
        let good = fs::read_to_string(&path).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        for (text, expected) in [
            ("[".to_owned(), "line 1"),
            (String::new(), "it has another version"),
            (good.replace("version = 1", "version = 2"), "it has another version"),
            (good.replace("; 1\"", "; 2\""), "it is from another device or driver"),
            (good.replace("128x64_alone", "128x65_alone"), "line 5: '128x65_alone' is no cost of a tile"),
            (good.replace("= 50.5", "= -50.5"), "line 5: '128x64_alone' is no cost of a tile"),
            (good.replace("= 50.5", "= inf"), "line 5: '128x64_alone' is no cost of a tile"),
            (good.replace("32x32_shared = 2\n", ""), "it is not complete"),
        ] {
            let why = read(&text, &info("1"), &costs).unwrap_err();
            assert!(why.starts_with(expected), "{why}");
            assert_eq!(costs.all(), TileCosts::new(&TABLE).all());
        }
        read(&good, &info("1"), &costs).unwrap();
        assert_eq!(costs.all(), measured.all());
    }

    #[test]
    fn a_folder_that_is_missing_is_an_error() {
        let error = store(Path::new("/does/not/exist"), &info("1"), &TileCosts::new(&TABLE)).unwrap_err();
        assert!(error.message().contains("ADEAD_CACHE_DIR"), "{error}");
    }
}
