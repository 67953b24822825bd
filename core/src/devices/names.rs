//! The list of this machine's GPUs, and which GPU a name means.

use crate::config::Config;
use crate::error::{Error, Result, Status, fail};
use crate::fpenv::DefaultEnvironment;
use crate::hal::registry::{self, Backend};
use crate::hal::{DeviceInfo, DeviceKind};
use crate::log::log;
use crate::machine::Mode;
use std::fmt;

/// Lists the GPUs that `ADEAD_VISIBLE_DEVICES` allows, once for each backend that has them. Backends come in the
/// registry's order; each backend lists its preferred GPU first. `backend_unavailable` if no backend has a driver.
pub fn gpus(config: &Config) -> Result<Vec<DeviceInfo>> {
    // Returns before any driver is loaded.
    if config.visible_devices.as_deref() == Some("none") {
        return Ok(Vec::new());
    }
    let _environment = DefaultEnvironment::enter();
    let lists: Vec<_> = registry::BACKENDS.iter().map(|backend| (backend.enumerate)()).collect();
    for list in &lists {
        match list {
            Ok(list) => list.iter().for_each(|info| log!(Info, "devices", "found {}", Described(info))),
            Err(error) => log!(Info, "devices", "{}", error.message()),
        }
    }
    if lists.iter().all(Result::is_err) {
        let reasons: Vec<_> = lists.iter().flat_map(|list| list.as_ref().err()).map(Error::message).collect();
        fail!(BackendUnavailable, "{}", reasons.join("; "));
    }
    let mut all: Vec<_> = lists.into_iter().flatten().flatten().collect();
    if let Some(visible) = &config.visible_devices {
        all.retain(|info| names_of(visible).any(|name| names_device(name, info)));
    }
    Ok(all)
}

/// Splits a list at its commas.
fn names_of(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim_ascii)
}

/// Returns the names in `ADEAD_VISIBLE_DEVICES` that match no GPU of this machine, except `none`: probably typing
/// errors.
pub fn unknown_visible(config: &Config) -> Vec<String> {
    let Some(visible) = config.visible_devices.as_deref().filter(|&visible| visible != "none") else {
        return Vec::new();
    };
    let all = gpus(&Config { visible_devices: None, ..Config::default() }).unwrap_or_default();
    let unknown = names_of(visible).filter(|name| !all.iter().any(|info| names_device(name, info)));
    unknown.map(String::from).collect()
}

/// Formats a device for a message.
pub(crate) struct Described<'a>(pub &'a DeviceInfo);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeviceInfo { id, name, arch, units, memory, driver, contract, .. } = self.0;
        write!(f, "{id}: {name}, {arch}, {units} units, {memory} bytes of memory, {} contract", contract.name())?;
        if driver.is_empty() { Ok(()) } else { write!(f, ", driver {driver}") }
    }
}

/// Returns the id of the same GPU in another backend, by its UUID: `vulkan:0` for a device that is also `cuda:0`.
pub(crate) fn same_through(backend: &Backend, info: &DeviceInfo) -> Option<String> {
    let all = gpus(&Config::load().ok()?).ok()?;
    let uuid = Some(info.uuid?);
    all.into_iter().find(|other| other.uuid == uuid && backend.has(&other.id)).map(|other| other.id)
}

/// The devices that a context opens for a device name.
pub(crate) struct Choice {
    /// Whether the CPU is one of them.
    pub cpu: bool,
    pub gpus: Vec<DeviceInfo>,
    /// Whether large operations are divided among them.
    pub hybrid: bool,
    pub named: Named,
}

impl Choice {
    /// Adds a GPU that a name of a list means. `invalid_argument` if it is there already.
    #[inline(never)]
    fn add(&mut self, info: DeviceInfo, list: &str, name: &str) -> Result<()> {
        let same = |other: &&DeviceInfo| other.id == info.id || (info.uuid.is_some() && other.uuid == info.uuid);
        if let Some(other) = self.gpus.iter().find(same) {
            fail!(InvalidArgument, "'{list}': '{name}' is the same GPU as {}", other.id);
        }
        self.gpus.push(info);
        Ok(())
    }
}

/// How a device name selects devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// All usable devices, each opened when first needed.
    Chosen,
    /// All usable devices, opened at once.
    Usable,
    /// Exactly these devices: each of them must open.
    Each,
}

/// Returns the devices for `auto`, `hybrid`, a device's name, all GPUs of a backend (`cuda:*`), or a list of names separated by commas.
pub(crate) fn choose(device: &str, config: &Config) -> Result<Choice> {
    match device {
        "cpu" => return Ok(Choice { cpu: true, gpus: Vec::new(), hybrid: false, named: Named::Each }),
        "auto" => {
            let gpus = unnamed_gpus(config);
            // The hardware report recommends the same mode.
            let mode = Mode::for_gpu_memory(gpus.iter().map(|info| info.memory).max());
            let gpus = if mode == Mode::Cpu { Vec::new() } else { gpus };
            return Ok(Choice { cpu: true, gpus, hybrid: mode == Mode::Hybrid, named: Named::Chosen });
        }
        "hybrid" => return Ok(Choice { cpu: true, gpus: unnamed_gpus(config), hybrid: true, named: Named::Usable }),
        _ => {}
    }
    let all = gpus(config).unwrap_or_default();
    // A GPU's own name can contain a comma.
    if (device.contains(',') || device.ends_with(ALL)) && !all.iter().any(|info| names_device(device, info)) {
        return choose_list(device, config, &all);
    }
    Ok(Choice { cpu: true, gpus: vec![find(device, config, &all)?], hybrid: false, named: Named::Each })
}

/// Returns the GPUs that are used without being named: all hardware GPUs, each once.
fn unnamed_gpus(config: &Config) -> Vec<DeviceInfo> {
    if config.use_gpu == Some(false) {
        return Vec::new();
    }
    let mut all = gpus(config).unwrap_or_default();
    all.retain(|info| info.kind != DeviceKind::Software);
    // If several backends have a GPU, the first of them is used.
    let mut taken: Vec<DeviceInfo> = Vec::new();
    for info in all {
        let same = |other: &DeviceInfo| other.uuid.is_some() && other.uuid == info.uuid;
        let first = |other: &DeviceInfo| Backend::place(&other.id) < Backend::place(&info.id);
        if !taken.iter().any(|other| same(other) && first(other)) {
            taken.push(info);
        }
    }
    taken
}

/// What follows a backend's name for all of its GPUs: `cuda:*`.
const ALL: &str = ":*";

/// Returns the devices of a list of names.
fn choose_list(list: &str, config: &Config, all: &[DeviceInfo]) -> Result<Choice> {
    let mut choice = Choice { cpu: false, gpus: Vec::new(), hybrid: true, named: Named::Each };
    for name in list.split(',').map(str::trim_ascii) {
        match name {
            "" => fail!(InvalidArgument, "'{list}': a name is missing before or after a comma"),
            "auto" | "hybrid" => {
                fail!(InvalidArgument, "'{list}': '{name}' can't be part of a list, because it chooses devices itself")
            }
            "cpu" if choice.cpu => fail!(InvalidArgument, "'{list}': 'cpu' is listed twice"),
            "cpu" => choice.cpu = true,
            _ => {
                let backend = name.strip_suffix(ALL);
                let before = choice.gpus.len();
                for info in all {
                    let is_of = |backend: &str| info.id.split(':').next() == Some(backend);
                    if backend.is_some_and(is_of) && info.kind != DeviceKind::Software {
                        choice.add(info.clone(), list, name)?;
                    }
                }
                // A software GPU counts if there is no other.
                if choice.gpus.len() == before {
                    choice.add(find(backend.unwrap_or(name), config, all)?, list, name)?;
                }
            }
        }
    }
    choice.hybrid = choice.gpus.len() + usize::from(choice.cpu) > 1;
    Ok(choice)
}

/// Returns the GPU with this name, or an error with the reason and the names that exist.
fn find(device: &str, config: &Config, all: &[DeviceInfo]) -> Result<DeviceInfo> {
    let backend = device.split(':').next().unwrap_or_default();
    let ids = || match all.iter().map(|info| format!("{} ({})", info.id, info.name)).collect::<Vec<_>>() {
        none if none.is_empty() => match &config.visible_devices {
            Some(visible) => format!("no GPU that ADEAD_VISIBLE_DEVICES ('{visible}') allows"),
            None => "no GPU".into(),
        },
        some => some.join(", "),
    };
    let found = match device {
        // `gpu` means the first hardware GPU, or a software GPU if there is no other.
        "gpu" => all.iter().find(|info| info.kind != DeviceKind::Software).or(all.first()),
        _ => all.iter().find(|info| names_device(device, info)),
    };
    match (found, Backend::named(backend)) {
        (Some(info), _) => Ok(info.clone()),
        (None, _) if device == "gpu" => {
            let listed = if config.visible_devices.is_some() { Ok(Vec::new()) } else { gpus(config) };
            let why = listed.err().map(|error| format!(": {}", error.message())).unwrap_or_default();
            fail!(BackendUnavailable, "there is no 'gpu' on this machine{why}; it has {}", ids())
        }
        (None, Some(backend)) => {
            // With a filter the driver isn't asked for a reason: the filter is the likely one, and `none` must load no
            // driver.
            let listed = if config.visible_devices.is_some() { Ok(Vec::new()) } else { (backend.enumerate)() };
            let why = listed.err().map(|error| format!(": {}", error.message())).unwrap_or_default();
            fail!(BackendUnavailable, "there is no '{device}' on this machine{why}; it has {}", ids())
        }
        (None, None) => fail!(
            InvalidArgument,
            "no device '{device}': pass 'auto', 'cpu', 'gpu', 'hybrid', 'cuda', 'cuda:*', 'vulkan:0', part of a GPU's name, \
             its UUID, or names separated by commas; this machine has {}",
            ids()
        ),
    }
}

/// Returns whether a name means this GPU: its backend, number, id, UUID or a part of its own name, in any case.
#[inline(never)]
pub(crate) fn names_device(name: &str, info: &DeviceInfo) -> bool {
    let (backend, number) = info.id.split_once(':').unwrap_or((&info.id, ""));
    if name == backend || name == number || name == info.id {
        return true;
    }
    // A software GPU's name contains a comma, but a lone comma must match no GPU.
    let any = |is: fn(&u8) -> bool| name.as_bytes().iter().any(is);
    if name.contains(':') || !any(u8::is_ascii_alphanumeric) || !any(|byte| !byte.is_ascii_digit()) {
        return false;
    }
    let plain = name.to_ascii_lowercase();
    is_uuid(&plain, info.uuid) || info.name.to_ascii_lowercase().contains(&plain)
}

/// Whether a text has the digits of a UUID, with dashes anywhere or without.
fn is_uuid(text: &str, uuid: Option<[u8; 16]>) -> bool {
    let Some(uuid) = uuid else { return false };
    let digits = text.bytes().filter(|&byte| byte != b'-');
    let nibbles = (0..32).map(|i| uuid[i / 2] >> (4 - 4 * (i % 2)) & 15);
    digits.eq(nibbles.map(|nibble| b"0123456789abcdef"[usize::from(nibble)]))
}

/// Makes the error that says why no GPU can be used.
pub(crate) fn no_gpu(why: &str) -> Error {
    Error::new(Status::BackendUnavailable, format!("there is no GPU to use: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hal::ContractLevel;

    fn info(id: &str, name: &str, uuid: u8) -> DeviceInfo {
        DeviceInfo {
            id: id.into(),
            name: name.into(),
            contract: ContractLevel::Native,
            arch: "vulkan 1.3".into(),
            units: 1,
            memory: 1 << 30,
            kind: DeviceKind::Discrete,
            vendor: "NVIDIA".into(),
            driver: String::new(),
            uuid: Some([uuid; 16]),
            bus: None,
        }
    }

    #[test]
    fn names_mean_devices() {
        let gpu = info("vulkan:1", "NVIDIA GeForce RTX 3060", 0xab);
        for name in [
            "vulkan",
            "vulkan:1",
            "1",
            "GeForce",
            "rtx 3060",
            "abababab-abab-abab-abab-abababababab",
            "ABABABABABABABABABABABABABABABAB",
        ] {
            assert!(names_device(name, &gpu), "{name}");
        }
        for name in ["", "0", ",", ", ", "vulkan:0", "vulkan:11", "3060", "cuda", "abab", "radeon", "none"] {
            assert!(!names_device(name, &gpu), "{name}");
        }
    }

    #[test]
    fn the_gpu_is_the_first_that_is_no_program() {
        let mut all = [info("vulkan:0", "llvmpipe", 1), info("vulkan:1", "Radeon", 2)];
        all[0].kind = DeviceKind::Software;
        let config = Config::default();
        assert_eq!(find("gpu", &config, &all).unwrap().id, "vulkan:1");
        assert_eq!(find("gpu", &config, &all[..1]).unwrap().id, "vulkan:0");
        // Every mode that the hardware report recommends is a valid device name.
        let known =
            |mode: Mode| choose(mode.name(), &config).err().is_none_or(|e| e.status() != Status::InvalidArgument);
        assert!([Mode::Cpu, Mode::Gpu, Mode::Hybrid].into_iter().all(known));
    }

    #[test]
    fn all_gpus_of_a_backend() {
        let config = Config::default();
        let mut all = [info("cuda:0", "H100", 1), info("cuda:1", "H100", 2), info("vulkan:0", "llvmpipe", 3)];
        all[2].kind = DeviceKind::Software;
        let ids = |list: &str, all: &[DeviceInfo]| {
            let choice = choose_list(list, &config, all)?;
            Ok::<_, Error>((choice.gpus.into_iter().map(|info| info.id.to_string()).collect::<Vec<_>>(), choice.hybrid))
        };
        assert_eq!(ids("cuda:*", &all).unwrap(), (vec!["cuda:0".into(), "cuda:1".into()], true));
        assert_eq!(ids("cpu,cuda:*", &all[..1]).unwrap(), (vec!["cuda:0".into()], true));
        assert_eq!(ids("cuda:*", &all[..1]).unwrap(), (vec!["cuda:0".into()], false));
        // A software GPU counts if there is no other.
        assert_eq!(ids("vulkan:*", &all).unwrap().0, ["vulkan:0"]);
        all[0].id = "vulkan:1".into();
        assert_eq!(ids("vulkan:*", &all).unwrap().0, ["vulkan:1"]);
        let refused = |list| ids(list, &all[1..]).unwrap_err().status();
        assert_eq!(refused("cuda:*,cuda:1"), Status::InvalidArgument);
        assert_eq!(refused("quantum:*"), Status::InvalidArgument);
        assert_eq!(ids("cuda:*", &all[2..]).unwrap_err().status(), Status::BackendUnavailable);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let config = Config::default();
        assert!(choose("cpu", &config).unwrap().gpus.is_empty());
        let refused = |name| choose(name, &config).err().map(|error| error.status());
        assert_eq!(refused("cuda:99"), Some(Status::BackendUnavailable));
        assert_eq!(refused("vulkan:99"), Some(Status::BackendUnavailable));
        let hidden = Config { visible_devices: Some("none".into()), ..Config::default() };
        assert_eq!(choose("gpu", &hidden).err().map(|error| error.status()), Some(Status::BackendUnavailable));
        assert_eq!(refused("quantum"), Some(Status::InvalidArgument));
        assert_eq!(refused("cpu,vulkan:99"), Some(Status::BackendUnavailable));
    }
}
