//! Host memory, within the limits of the control group that this process is in.

use std::fs;

/// Bytes of host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What this process could use if it were alone.
    pub total: u64,
    /// What it could use now.
    pub available: u64,
}

impl Memory {
    /// Looks at this machine's memory.
    pub fn detect() -> Memory {
        let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let machine = Memory { total: field(&info, "MemTotal"), available: field(&info, "MemAvailable") };
        match control_group() {
            Some((limit, used)) if limit < machine.total => {
                Memory { total: limit, available: machine.available.min(limit.saturating_sub(used)) }
            }
            _ => machine,
        }
    }
}

/// A field of /proc/meminfo, in bytes.
fn field(info: &str, name: &str) -> u64 {
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).map_or(0, |kib| kib * 1024)
}

/// Limit and use of this process's control group, version 2 or 1.
fn control_group() -> Option<(u64, u64)> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let (root, limit, usage) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max", "memory.current"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
            _ => continue,
        };
        // In a container the group's own path is often not mounted; its root then is the group.
        for folder in [format!("{root}{path}"), root.to_string()] {
            let read = |name: &str| fs::read_to_string(format!("{folder}/{name}")).ok()?.trim().parse::<u64>().ok();
            if let (Some(limit), Some(usage)) = (read(limit), read(usage)) {
                return Some((limit, usage));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_kibibytes() {
        let info = "MemTotal:       24644476 kB\nMemFree: 1 kB\nMemAvailable:   24000000 kB\n";
        assert_eq!(field(info, "MemTotal"), 24644476 * 1024);
        assert_eq!(field(info, "Nothing"), 0);
    }
}
