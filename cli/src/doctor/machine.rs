//! What the operating system grants: processor time, huge pages, device files. All paths are below a root, so tests bring their own.

use super::Finding;
use std::fs::{OpenOptions, read_dir, read_to_string};
use std::path::{Path, PathBuf};

/// Examines what Linux shows in files. Other systems get no findings.
pub fn examine(root: &Path) -> Vec<Finding> {
    if !cfg!(target_os = "linux") {
        return Vec::new();
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut found = vec![quota(root, cpus)];
    found.extend(huge_pages(root));
    found.extend(device_files(root));
    found
}

/// The processors that a control group grants, from version 2's `cpu.max` or version 1's files.
fn granted(root: &Path) -> Option<f64> {
    let own = read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let path = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let base = root.join("sys/fs/cgroup");
    let second = [base.join(path), base.clone()].into_iter().filter_map(|folder| {
        let text = read_to_string(folder.join("cpu.max")).ok()?;
        let mut words = text.split_whitespace().map(str::parse::<f64>);
        Some(words.next()?.ok()? / words.next()?.ok()?)
    });
    let number = |name: &str| read_to_string(base.join("cpu").join(name)).ok()?.trim().parse::<f64>().ok();
    let first = || Some(number("cpu.cfs_quota_us").filter(|quota| *quota > 0.0)? / number("cpu.cfs_period_us")?);
    second.reduce(f64::min).or_else(first)
}

fn quota(root: &Path, cpus: usize) -> Finding {
    match granted(root) {
        Some(granted) if granted < 1.0 || granted + 0.5 < cpus as f64 => Finding::note(
            "processor time",
            format!("the control group grants {granted:.2} of {cpus} processors"),
            "raise its CPU quota (Docker: --cpus), or pass --threads so that threads don't wait for each other",
        ),
        Some(granted) => Finding::ok("processor time", format!("{cpus} threads, quota {granted:.2} processors")),
        None => Finding::ok("processor time", format!("{cpus} threads, no quota")),
    }
}

fn huge_pages(root: &Path) -> Option<Finding> {
    let text = read_to_string(root.join("sys/kernel/mm/transparent_hugepage/enabled")).ok()?;
    let chosen = text.split_once('[')?.1.split(']').next()?;
    Some(match chosen {
        "never" => Finding::note(
            "huge pages",
            "transparent huge pages are off",
            "large matrices are a little faster with them: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, as root",
        ),
        chosen => Finding::ok("huge pages", format!("transparent huge pages: {chosen}")),
    })
}

/// Looks for GPUs' device files, and opens each as a driver would.
fn device_files(root: &Path) -> Vec<Finding> {
    let named = |folder: &str, wanted: fn(&str) -> bool| -> Vec<PathBuf> {
        let entries = read_dir(root.join(folder)).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> =
            entries.filter(|entry| entry.file_name().to_str().is_some_and(wanted)).map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
    let render = named("dev/dri", |name| name.starts_with("renderD"));
    let nvidia = named("dev", |name| {
        name.strip_prefix("nvidia").is_some_and(|rest| {
            rest == "ctl" || rest == "-uvm" || (!rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
        })
    });
    let group = "add yourself to the group that owns it ('sudo usermod -aG render $USER', then log in again)";
    let container =
        "its permissions deny you: check 'ls -l /dev/nvidia*'; in a container pass the GPU on (Docker: --gpus all)";
    let mut found = Vec::new();
    for (name, paths, todo) in [("/dev/dri", render, group), ("/dev/nvidia*", nvidia, container)] {
        if paths.is_empty() {
            found.push(Finding::ok(name, "no device file, so no GPU's driver is loaded here"));
        }
        for path in paths {
            let shown = path.display();
            found.push(match OpenOptions::new().read(true).write(true).open(&path) {
                Ok(_) => Finding::ok(name, format!("{shown} opens")),
                Err(error) => Finding::problem(name, format!("{shown} can't be opened: {error}"), todo),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;
    use std::fs::{create_dir_all, write};

    fn root(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("adead-doctor-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        create_dir_all(&root).unwrap();
        for (path, text) in files {
            let path = root.join(path);
            create_dir_all(path.parent().unwrap()).unwrap();
            write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn quotas_of_both_versions_are_read() {
        let second = root("v2", &[("sys/fs/cgroup/cpu.max", "50000 100000\n")]);
        assert_eq!(granted(&second), Some(0.5));
        assert_eq!(quota(&second, 2).state, State::Note);
        let own = root(
            "own",
            &[
                ("proc/self/cgroup", "0::/a/b\n"),
                ("sys/fs/cgroup/a/b/cpu.max", "200000 100000"),
                ("sys/fs/cgroup/cpu.max", "max 100000"),
            ],
        );
        assert_eq!(granted(&own), Some(2.0));
        assert_eq!((quota(&own, 2).state, quota(&own, 8).state), (State::Ok, State::Note));
        let first = root(
            "v1",
            &[("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000"), ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000")],
        );
        assert_eq!(granted(&first), Some(1.5));
        let none = root(
            "none",
            &[("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1"), ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000")],
        );
        assert_eq!((granted(&none), quota(&none, 4).state), (None, State::Ok));
        for root in [second, own, first, none] {
            std::fs::remove_dir_all(root).unwrap();
        }
    }

    #[test]
    fn huge_pages_that_are_off_get_advice() {
        let path = "sys/kernel/mm/transparent_hugepage/enabled";
        for (text, state) in [("always [madvise] never", State::Ok), ("always madvise [never]", State::Note)] {
            let root = root("huge", &[(path, text)]);
            assert_eq!(huge_pages(&root).unwrap().state, state);
            std::fs::remove_dir_all(root).unwrap();
        }
    }

    #[test]
    fn device_files_that_do_not_open_are_problems() {
        let root = root(
            "dev",
            &[("dev/dri/renderD128", ""), ("dev/dri/card0", ""), ("dev/nvidia0", ""), ("dev/nvidia-modeset", "")],
        );
        // A folder can't be opened for writing, whoever runs the test.
        create_dir_all(root.join("dev/nvidiactl")).unwrap();
        let states: Vec<_> = device_files(&root).into_iter().map(|it| (it.name, it.state)).collect();
        let expected = [("/dev/dri", State::Ok), ("/dev/nvidia*", State::Ok), ("/dev/nvidia*", State::Problem)];
        assert_eq!(states, expected);
        std::fs::remove_dir_all(root).unwrap();
    }
}
