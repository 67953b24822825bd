//! The libraries of Vulkan and CUDA.

use super::Finding;
use libloading::Library;
use serde_json::Value;
use std::ffi::{CStr, c_char, c_int};
use std::path::{Path, PathBuf};

/// Examines Vulkan's loader and drivers, and CUDA's driver.
pub fn examine(root: &Path) -> Vec<Finding> {
    let mut found = vec![vulkan()];
    if cfg!(target_os = "linux") {
        found.extend(icds(&manifests(root)));
        found.extend(nvidia(root));
    }
    found.push(cuda());
    found
}

/// Loads the first library that exists.
fn load(names: &[&str]) -> Option<Library> {
    // SAFETY: these are the names under which drivers install the libraries that adead itself loads. Their initialisers need
    // nothing of this process.
    names.iter().find_map(|name| unsafe { Library::new(*name) }.ok())
}

fn vulkan() -> Finding {
    let names: &[&str] = if cfg!(windows) { &["vulkan-1.dll"] } else { &["libvulkan.so.1", "libvulkan.1.dylib"] };
    let Some(library) = load(names) else {
        let todo = "install it to use GPUs through Vulkan (Debian: libvulkan1, Fedora: vulkan-loader)";
        return Finding::note("vulkan loader", format!("{} is not installed", names[0]), todo);
    };
    type Version = unsafe extern "system" fn(*mut u32) -> i32;
    // SAFETY: Vulkan defines this function with this type from 1.1 on. It writes one u32.
    let version = unsafe {
        library.get::<Version>(b"vkEnumerateInstanceVersion\0").ok().map(|version| {
            let mut number = 0;
            (version(&mut number), number)
        })
    };
    match version {
        Some((0, number)) => {
            let text = format!("Vulkan {}.{}.{}", number >> 22 & 0x7f, number >> 12 & 0x3ff, number & 0xfff);
            Finding::ok("vulkan loader", text)
        }
        _ => Finding::note("vulkan loader", "older than Vulkan 1.1", "adead needs Vulkan 1.2: update the loader"),
    }
}

/// Returns the manifests of Vulkan drivers, in the loader's order.
fn manifests(root: &Path) -> Vec<PathBuf> {
    let listed = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(files) = listed("VK_DRIVER_FILES").or_else(|| listed("VK_ICD_FILENAMES")) {
        return std::env::split_paths(&files).collect();
    }
    let mut folders = ["etc/xdg", "etc", "usr/local/share", "usr/share"].map(|folder| root.join(folder)).to_vec();
    if let Some(home) = listed("HOME") {
        folders.insert(0, Path::new(&home).join(".local/share"));
    }
    let mut files: Vec<PathBuf> = listed("VK_ADD_DRIVER_FILES").iter().flat_map(std::env::split_paths).collect();
    for folder in folders {
        let entries = folder.join("vulkan/icd.d").read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
        let mut here: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|it| it == "json")).collect();
        here.sort();
        files.extend(here);
    }
    files
}

/// Returns the library that a manifest names, or why there is none. A name without a folder is looked up by the system's loader.
fn library_of(manifest: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(manifest).map_err(|error| error.to_string())?;
    let json: Value = serde_json::from_str(&text).map_err(|_| "it is not JSON")?;
    let library = json["ICD"]["library_path"].as_str().ok_or("it names no library_path")?;
    if library.contains('/') {
        let path = manifest.parent().unwrap_or(Path::new("")).join(library);
        if !path.exists() {
            return Err(format!("its library {} is missing", path.display()));
        }
    }
    Ok(library.into())
}

fn icds(manifests: &[PathBuf]) -> Vec<Finding> {
    if manifests.is_empty() {
        let todo = "install your GPU's driver (Mesa on Debian: mesa-vulkan-drivers, which has a software GPU too)";
        return vec![Finding::note("vulkan driver", "none is installed", todo)];
    }
    manifests
        .iter()
        .map(|manifest| match library_of(manifest) {
            Ok(library) => Finding::ok("vulkan driver", format!("{} ({library})", manifest.display())),
            Err(why) => {
                let todo = "install the driver again, or correct VK_DRIVER_FILES if it is set";
                Finding::note("vulkan driver", format!("{} is not a usable driver: {why}", manifest.display()), todo)
            }
        })
        .collect()
}

/// NVIDIA GPUs on the bus, and the version of their kernel module.
fn nvidia(root: &Path) -> Option<Finding> {
    if let Ok(text) = std::fs::read_to_string(root.join("proc/driver/nvidia/version")) {
        return Some(Finding::ok("nvidia module", text.lines().next().unwrap_or_default()));
    }
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let devices = root.join("sys/bus/pci/devices").read_dir().into_iter().flatten().flatten();
    let gpus = devices.filter(|device| {
        let path = device.path();
        read(path.join("vendor")).trim() == "0x10de" && read(path.join("class")).starts_with("0x03")
    });
    match gpus.count() {
        0 => None,
        count => {
            let todo = "install NVIDIA's driver (Debian: nvidia-driver, Ubuntu: 'ubuntu-drivers install'), and restart";
            Some(Finding::problem("nvidia module", format!("{count} NVIDIA GPUs, but no driver is loaded"), todo))
        }
    }
}

fn cuda() -> Finding {
    let name = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };
    let Some(library) = load(&[name]) else {
        let todo = "only NVIDIA GPUs need it; their driver installs it (in a container: --gpus all)";
        return if Path::new("/proc/driver/nvidia/version").exists() {
            Finding::problem("cuda driver", format!("NVIDIA's module is loaded, but {name} is missing"), todo)
        } else {
            Finding::ok("cuda driver", format!("{name} is not installed; only NVIDIA GPUs need it"))
        };
    };
    type Init = unsafe extern "C" fn(u32) -> c_int;
    type Version = unsafe extern "C" fn(*mut c_int) -> c_int;
    type Text = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;
    // SAFETY: CUDA's driver API defines these functions with these types. The text is the library's own and lives as long as it.
    let (status, version, why) = unsafe {
        let status = library.get::<Init>(b"cuInit\0").map(|init| init(0)).unwrap_or(-1);
        let mut version = 0;
        let _ = library.get::<Version>(b"cuDriverGetVersion\0").map(|get| get(&mut version));
        let mut text = std::ptr::null();
        let _ = library.get::<Text>(b"cuGetErrorString\0").map(|get| get(status, &mut text));
        let why = if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() };
        (status, version, why)
    };
    // An initialised driver has threads that must not outlive its code.
    std::mem::forget(library);
    let text = format!("{name}, CUDA {}.{}", version / 1000, version % 1000 / 10);
    match status {
        0 => Finding::ok("cuda driver", text),
        // CUDA_ERROR_NO_DEVICE: the library is installed where there is no GPU.
        100 => Finding::ok("cuda driver", format!("{text}: no NVIDIA GPU")),
        status => {
            let todo = "library and kernel module must have the same version: restart after an update; see the lines on /dev/nvidia*";
            Finding::problem("cuda driver", format!("{text}: cuInit fails with {status}: {why}"), todo)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn a_manifest_names_its_library() {
        let folder = std::env::temp_dir().join(format!("adead-icd-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let by_name = file("a.json", r#"{"ICD": {"library_path": "libvulkan_x.so"}}"#);
        let own = by_name.display().to_string();
        let by_path = file("b.json", &format!(r#"{{"ICD": {{"library_path": "{own}"}}}}"#));
        let lost = file("c.json", r#"{"ICD": {"library_path": "/nowhere/lib.so"}}"#);
        assert_eq!(library_of(&by_name), Ok("libvulkan_x.so".into()));
        assert_eq!(library_of(&by_path), Ok(own));
        assert_eq!(library_of(&lost), Err("its library /nowhere/lib.so is missing".into()));
        assert_eq!(library_of(&file("d.json", "{}")), Err("it names no library_path".into()));
        assert_eq!(library_of(&file("e.json", "x")), Err("it is not JSON".into()));
        let states: Vec<State> = icds(&[by_name, lost]).into_iter().map(|it| it.state).collect();
        assert_eq!(states, [State::Ok, State::Note]);
        assert_eq!(icds(&[])[0].state, State::Note);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_gpu_without_a_driver_is_a_problem() {
        let root = std::env::temp_dir().join(format!("adead-pci-{}", std::process::id()));
        let device = root.join("sys/bus/pci/devices/0000:01:00.0");
        std::fs::create_dir_all(&device).unwrap();
        std::fs::write(device.join("vendor"), "0x10de\n").unwrap();
        std::fs::write(device.join("class"), "0x040300\n").unwrap();
        assert!(nvidia(&root).is_none());
        std::fs::write(device.join("class"), "0x030000\n").unwrap();
        assert_eq!(nvidia(&root).unwrap().state, State::Problem);
        let version = root.join("proc/driver/nvidia");
        std::fs::create_dir_all(&version).unwrap();
        std::fs::write(version.join("version"), "NVRM version: 580\nGCC\n").unwrap();
        assert_eq!(nvidia(&root).unwrap().text, "NVRM version: 580");
        std::fs::remove_dir_all(root).unwrap();
    }
}
