//! Host memory, within the limits of this process's control groups.

use super::groups;
use std::fs;
use std::path::Path;

/// Bytes of host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The bytes that this process could use if no other process ran.
    pub total: u64,
    /// The bytes that it could use now.
    pub available: u64,
}

impl Memory {
    /// Examines this machine's memory.
    pub fn detect() -> Memory {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Memory::of(&read("/proc/meminfo"), &read(groups::OWN), Path::new(groups::ROOT))
    }

    /// Computes it from the texts of /proc/meminfo and /proc/self/cgroup, and the mount point of control groups.
    fn of(info: &str, groups: &str, root: &Path) -> Memory {
        let mut memory = Memory { total: field(info, "MemTotal"), available: field(info, "MemAvailable") };
        groups::visit(groups, root, "memory", &mut |folder, first| {
            memory.limit(folder, if first { &VERSION_1 } else { &VERSION_2 });
        });
        memory.available = memory.available.min(memory.total);
        memory
    }

    /// Reduces the bytes to a group's limit.
    fn limit(&mut self, folder: &Path, files: &Files) {
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
        // "max" and numbers above the machine's memory are no limits.
        if let Some(limit) = number(files.limit).filter(|&limit| limit < u64::MAX / 2) {
            self.total = self.total.min(limit);
            // The kernel drops inactive file pages before it refuses memory, so they count as free.
            let stat = read("memory.stat").unwrap_or_default();
            let dropped = stat.lines().find_map(|line| line.strip_prefix(files.inactive)?.trim().parse().ok());
            let used = number(files.usage).unwrap_or(0).saturating_sub(dropped.unwrap_or(0));
            self.available = self.available.min(limit.saturating_sub(used));
        }
    }
}

/// The names of files and fields in a version of control groups.
struct Files {
    limit: &'static str,
    usage: &'static str,
    /// With a trailing space, because other fields have the same prefix.
    inactive: &'static str,
}

const VERSION_1: Files =
    Files { limit: "memory.limit_in_bytes", usage: "memory.usage_in_bytes", inactive: "total_inactive_file " };

const VERSION_2: Files = Files { limit: "memory.max", usage: "memory.current", inactive: "inactive_file " };

/// Reads a field of /proc/meminfo, in bytes.
fn field(info: &str, name: &str) -> u64 {
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).map_or(0, |kib| kib.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    const INFO: &str = "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:   800 kB\n";

    #[test]
    fn fields_are_kibibytes() {
        assert_eq!(field(INFO, "MemTotal"), 1000 * 1024);
        assert_eq!(field(INFO, "Nothing"), 0);
    }

    /// Makes a folder with files like the kernel's.
    fn mounted(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("adead-cgroup-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn of(name: &str, groups: &str, files: &[(&str, &str)]) -> (u64, u64) {
        let root = mounted(name, files);
        let memory = Memory::of(INFO, groups, &root);
        let _ = fs::remove_dir_all(&root);
        (memory.total, memory.available)
    }

    const FREE: (u64, u64) = (1000 * 1024, 800 * 1024);

    #[test]
    fn without_a_limit_it_is_the_machine_s() {
        assert_eq!(of("none", "", &[]), FREE);
        assert_eq!(of("max", "0::/a\n", &[("a/memory.max", "max\n"), ("a/memory.current", "5\n")]), FREE);
        assert_eq!(of("more", "0::/a\n", &[("a/memory.max", "99999999\n"), ("a/memory.current", "5\n")]), FREE);
        let unlimited = [("memory/a/memory.limit_in_bytes", "9223372036854771712\n")];
        assert_eq!(of("unlimited", "4:memory:/a\n", &unlimited), FREE);
        assert_eq!(of("other", "4:cpu,cpuacct:/a\n0::/a\n", &[("a/memory.max", "nonsense")]), FREE);
    }

    #[test]
    fn version_2_limits() {
        let files = [
            ("a/memory.max", "100000\n"),
            ("a/memory.current", "70000\n"),
            ("a/memory.stat", "anon 40000\ninactive_file_x 9\ninactive_file 20000\nactive_file 1\n"),
        ];
        assert_eq!(of("v2", "0::/a\n", &files), (100_000, 50_000));
        assert_eq!(of("v2-in", "0::/a/b/c\n", &files), (100_000, 50_000), "a group above has the limit");
        let own = [&files[..], &[("a/b/memory.max", "60000"), ("a/b/memory.current", "1000")]].concat();
        assert_eq!(of("v2-both", "0::/a/b\n", &own), (60_000, 50_000), "each has to have room");
        let container = [("memory.max", "4096\n"), ("memory.current", "96\n")];
        assert_eq!(of("v2-root", "0::/not/mounted/here\n", &container), (4096, 4000));
        assert_eq!(of("v2-over", "0::/\n", &[("memory.max", "10"), ("memory.current", "20")]), (10, 0));
    }

    #[test]
    fn version_1_limits() {
        let files = [
            ("memory/a/memory.limit_in_bytes", "200000\n"),
            ("memory/a/memory.usage_in_bytes", "150000\n"),
            ("memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 50000\n"),
        ];
        assert_eq!(of("v1", "9:memory:/a\n", &files), (200_000, 100_000));
        assert_eq!(of("v1-joined", "9:hugetlb,memory:/a\n0::/x\n", &files), (200_000, 100_000));
    }

    #[test]
    fn this_machine_has_memory() {
        let memory = Memory::detect();
        assert!(memory.available <= memory.total);
        #[cfg(target_os = "linux")]
        assert!(memory.total > 1 << 20);
    }
}
