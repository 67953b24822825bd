//! How many threads this process may run at a time.

/// What the processors that it may use and the quotas of its control groups leave, at least 1: what the standard library says, which
/// takes four times as much code to say it.
#[cfg(target_os = "linux")]
pub fn available() -> usize {
    use std::ffi::{c_int, c_long, c_ulong};
    use std::path::Path;
    unsafe extern "C" {
        fn sched_getaffinity(process: c_int, bytes: usize, mask: *mut c_ulong) -> c_int;
        fn sysconf(name: c_int) -> c_long;
    }
    // _SC_NPROCESSORS_ONLN.
    const ONLINE: c_int = 84;

    // Of 8192 processors.
    let mut mask = [0; 8192 / c_ulong::BITS as usize];
    // SAFETY: it writes at most so many bytes of the mask.
    let usable = match unsafe { sched_getaffinity(0, size_of_val(&mask), mask.as_mut_ptr()) } {
        0 => mask.iter().map(|word| word.count_ones() as usize).sum(),
        // SAFETY: it takes any number.
        _ => usize::try_from(unsafe { sysconf(ONLINE) }).unwrap_or(1),
    };
    let groups = std::fs::read_to_string(super::groups::OWN).unwrap_or_default();
    usable.min(quota(&groups, Path::new(super::groups::ROOT))).max(1)
}

/// What the standard library says, at least 1.
#[cfg(not(target_os = "linux"))]
pub fn available() -> usize {
    std::thread::available_parallelism().map_or(1, |threads| threads.get())
}

/// Whole processors that the quotas of these groups allow.
#[cfg(target_os = "linux")]
fn quota(groups: &str, root: &std::path::Path) -> usize {
    let mut least = usize::MAX;
    super::groups::visit(groups, root, "cpu", &mut |folder, first| {
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        // Microseconds of processors' time, of each period of so many; "max" or −1 is no limit.
        let text = if first { read("cpu.cfs_quota_us") + " " + &read("cpu.cfs_period_us") } else { read("cpu.max") };
        let mut numbers = text.split_whitespace().map(|number| number.parse::<usize>());
        if let (Some(Ok(time)), Some(Ok(period @ 1..))) = (numbers.next(), numbers.next()) {
            least = least.min((time / period).max(1));
        }
    });
    least
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs;

    fn of(name: &str, groups: &str, files: &[(&str, &str)]) -> usize {
        let root = std::env::temp_dir().join(format!("adead-quota-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let threads = quota(groups, &root);
        let _ = fs::remove_dir_all(&root);
        threads
    }

    #[test]
    fn it_is_what_the_standard_library_says() {
        assert_eq!(available(), std::thread::available_parallelism().map_or(1, |threads| threads.get()));
    }

    #[test]
    fn version_2_quotas() {
        assert_eq!(of("none", "0::/a\n", &[]), usize::MAX);
        assert_eq!(of("max", "0::/a\n", &[("a/cpu.max", "max 100000\n")]), usize::MAX);
        assert_eq!(of("v2", "0::/a\n", &[("a/cpu.max", "350000 100000\n")]), 3);
        assert_eq!(of("least", "0::/a\n", &[("a/cpu.max", "5000 100000\n")]), 1);
        let both = [("a/b/cpu.max", "800000 100000\n"), ("a/cpu.max", "200000 100000\n")];
        assert_eq!(of("above", "0::/a/b\n", &both), 2);
        assert_eq!(of("root", "0::/not/mounted/here\n", &[("cpu.max", "400000 100000\n")]), 4);
        assert_eq!(of("nonsense", "0::/a\n", &[("a/cpu.max", "4 0\n")]), usize::MAX);
    }

    #[test]
    fn version_1_quotas() {
        let files = [("cpu/a/cpu.cfs_quota_us", "250000\n"), ("cpu/a/cpu.cfs_period_us", "100000\n")];
        assert_eq!(of("v1", "4:cpu,cpuacct:/a\n9:memory:/a\n", &files), 2);
        let none = [("cpu/a/cpu.cfs_quota_us", "-1\n"), ("cpu/a/cpu.cfs_period_us", "100000\n")];
        assert_eq!(of("v1-none", "4:cpu:/a\n", &none), usize::MAX);
    }
}
