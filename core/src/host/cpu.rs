//! The processor. CPUID describes it on x86. The kernel describes it elsewhere, and what CPUID lacks.

#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "x86"))))]
use super::arm;
use std::fs;

/// Returns a file's text, if the file exists.
type Read<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// A processor.
#[derive(Clone, Debug, Default)]
pub struct Cpu {
    /// `GenuineIntel`, `AuthenticAMD`, `Arm`, …
    pub vendor: String,
    /// The maker's name of the processor. On Arm the name of the design, or designs.
    pub model: String,
    /// Physical cores that this process may use.
    pub cores: usize,
    /// Hardware threads that this process may use.
    pub threads: usize,
    /// Nominal frequency in MHz, 0 if unknown. On other processors than x86, the highest frequency of any core.
    pub frequency_mhz: u32,
    /// Data and unified caches, the nearest first.
    pub caches: Vec<Cache>,
    /// Instruction-set extensions that kernels may use, with the architecture's names.
    pub features: Vec<String>,
}

/// A cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// The level. 1 is the nearest.
    pub level: u8,
    /// The size in bytes.
    pub size: usize,
    /// The size of a line in bytes.
    pub line: usize,
}

impl Cpu {
    /// Examines this machine's processor.
    pub fn detect() -> Cpu {
        let threads = super::available_threads();
        let mut cpu = Cpu::from_kernel(&|path| fs::read_to_string(path).ok(), threads);
        cpu.features = features();
        cpu.ask_processor();
        cpu
    }

    /// Reads what Linux reports in files through `read`. Every file may be missing.
    fn from_kernel(read: &Read<'_>, threads: usize) -> Cpu {
        let info = read("/proc/cpuinfo").unwrap_or_default();
        let mut cpu = Cpu {
            vendor: field(&info, "vendor_id").unwrap_or_else(|| "unknown".into()),
            model: field(&info, "model name").unwrap_or_else(|| std::env::consts::ARCH.into()),
            cores: physical_cores(&info),
            threads,
            frequency_mhz: field(&info, "cpu MHz").and_then(|mhz| mhz.split('.').next()?.parse().ok()).unwrap_or(0),
            caches: kernel_caches(read),
            features: Vec::new(),
        };
        #[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "x86"))))]
        cpu.ask_kernel(&info, read);
        cpu.cores = cpu.cores.clamp(1, threads);
        cpu
    }

    /// Reads what other architectures report in other places than x86.
    #[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "x86"))))]
    fn ask_kernel(&mut self, info: &str, read: &Read<'_>) {
        if let Some(implementer) = field(info, "CPU implementer") {
            self.vendor = arm::vendor(&implementer);
        }
        // RISC-V has "uarch", POWER has "cpu".
        let other = || field(info, "uarch").or_else(|| field(info, "cpu"));
        if field(info, "model name").is_none()
            && let Some(model) = arm::model(info).or_else(other)
        {
            self.model = model;
        }
        let (mut siblings, mut kilohertz) = (Vec::new(), 0u32);
        for processor in info.lines().filter_map(|line| line.strip_prefix("processor")?.split_once(':')) {
            let folder = format!("/sys/devices/system/cpu/cpu{}", processor.1.trim());
            // Threads of one core have the same list of siblings.
            if let Some(set) = read(&format!("{folder}/topology/thread_siblings_list"))
                && !siblings.contains(&set)
            {
                siblings.push(set);
            }
            let highest = read(&format!("{folder}/cpufreq/cpuinfo_max_freq"));
            kilohertz = kilohertz.max(highest.and_then(|text| text.trim().parse().ok()).unwrap_or(0));
        }
        if self.cores == usize::MAX && !siblings.is_empty() {
            self.cores = siblings.len();
        }
        if self.frequency_mhz == 0 {
            self.frequency_mhz = kilohertz / 1000;
        }
    }

    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    fn ask_processor(&mut self) {
        let cpuid = raw_cpuid::CpuId::new();
        if let Some(vendor) = cpuid.get_vendor_info() {
            self.vendor = vendor.as_str().into();
        }
        if let Some(brand) = cpuid.get_processor_brand_string() {
            self.model = brand.as_str().trim().into();
        }
        if let Some(frequency) = cpuid.get_processor_frequency_info()
            && frequency.processor_base_frequency() > 0
        {
            self.frequency_mhz = frequency.processor_base_frequency() as u32;
        }
        if self.caches.is_empty()
            && let Some(parameters) = cpuid.get_cache_parameters()
        {
            self.caches = parameters
                .filter(|cache| {
                    matches!(cache.cache_type(), raw_cpuid::CacheType::Data | raw_cpuid::CacheType::Unified)
                })
                .map(|cache| Cache {
                    level: cache.level(),
                    size: cache.sets() * cache.associativity() * cache.coherency_line_size(),
                    line: cache.coherency_line_size(),
                })
                .collect();
        }
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
    fn ask_processor(&mut self) {}
}

/// The first field with this name in /proc/cpuinfo.
fn field(info: &str, name: &str) -> Option<String> {
    let line = info.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

/// Counts distinct (package, core) pairs. Returns `usize::MAX` if /proc/cpuinfo names no cores.
fn physical_cores(info: &str) -> usize {
    let mut cores = Vec::new();
    let mut package = "";
    for line in info.lines() {
        match line.split_once(':').map(|(key, value)| (key.trim(), value.trim())) {
            Some(("physical id", id)) => package = id,
            Some(("core id", id)) if !cores.contains(&(package, id)) => cores.push((package, id)),
            _ => {}
        }
    }
    // The caller then counts every thread as a core.
    if cores.is_empty() { usize::MAX } else { cores.len() }
}

/// Reads the first processor's caches from sysfs.
fn kernel_caches(read: &Read<'_>) -> Vec<Cache> {
    let mut caches = Vec::new();
    for index in 0..8 {
        let folder = format!("/sys/devices/system/cpu/cpu0/cache/index{index}");
        let read = |name: &str| read(&format!("{folder}/{name}")).map(|text| text.trim().to_string());
        let (Some(kind), Some(level), Some(size)) = (read("type"), read("level"), read("size")) else { continue };
        if kind == "Instruction" {
            continue;
        }
        let (digits, unit) = size.split_at(size.find(|c: char| !c.is_ascii_digit()).unwrap_or(size.len()));
        let unit = match unit {
            "K" => 1 << 10,
            "M" => 1 << 20,
            _ => 1,
        };
        if let (Ok(level), Ok(size)) = (level.parse(), digits.parse::<usize>()) {
            let line = read("coherency_line_size").and_then(|line| line.parse().ok()).unwrap_or(64);
            caches.push(Cache { level, size: size * unit, line });
        }
    }
    caches
}

/// Lists the named features that this machine has.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! present {
    ($detected:ident: $($feature:tt)*) => {
        [$(($feature, std::arch::$detected!($feature)),)*]
            .into_iter()
            .filter(|&(_, there)| there)
            .map(|(name, _)| name.to_string())
            .collect()
    };
}

#[cfg(target_arch = "x86_64")]
fn features() -> Vec<String> {
    present!(is_x86_feature_detected: "sse2" "sse4.1" "avx" "f16c" "fma" "avx2" "avx512f" "avx512dq" "avx512bw" "avx512vl"
        "avx512bf16" "avx512fp16")
}

#[cfg(target_arch = "aarch64")]
fn features() -> Vec<String> {
    present!(is_aarch64_feature_detected: "neon" "fp16" "fhm" "dotprod" "bf16" "i8mm" "sve" "sve2")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn features() -> Vec<String> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a processor from a machine's files: (path, text).
    fn machine(files: Vec<(String, String)>, threads: usize) -> Cpu {
        Cpu::from_kernel(&|path| files.iter().find(|(name, _)| name == path).map(|(_, text)| text.clone()), threads)
    }

    fn cache(files: &mut Vec<(String, String)>, index: usize, level: u8, kind: &str, size: &str) {
        let folder = format!("/sys/devices/system/cpu/cpu0/cache/index{index}");
        for (name, text) in
            [("type", kind), ("level", &level.to_string()), ("size", size), ("coherency_line_size", "64")]
        {
            files.push((format!("{folder}/{name}"), format!("{text}\n")));
        }
    }

    fn arm_processor(number: usize, part: &str) -> String {
        format!(
            "processor\t: {number}\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd evtstrm aes crc32 cpuid\n\
             CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: {part}\nCPU revision\t: 1\n\n"
        )
    }

    #[test]
    fn a_neoverse_server() {
        let mut files = vec![("/proc/cpuinfo".into(), (0..4).map(|n| arm_processor(n, "0xd0c")).collect())];
        for n in 0..4 {
            files.push((format!("/sys/devices/system/cpu/cpu{n}/topology/thread_siblings_list"), format!("{n}\n")));
        }
        cache(&mut files, 0, 1, "Data", "64K");
        cache(&mut files, 1, 1, "Instruction", "64K");
        cache(&mut files, 2, 2, "Unified", "1024K");
        cache(&mut files, 3, 3, "Unified", "32M");
        let cpu = machine(files, 4);
        assert_eq!((cpu.vendor.as_str(), cpu.model.as_str()), ("Arm", "Neoverse-N1"));
        assert_eq!((cpu.cores, cpu.threads, cpu.frequency_mhz), (4, 4, 0), "it tells no frequency");
        let sizes: Vec<_> = cpu.caches.iter().map(|cache| (cache.level, cache.size, cache.line)).collect();
        assert_eq!(sizes, [(1, 64 << 10, 64), (2, 1 << 20, 64), (3, 32 << 20, 64)]);
    }

    #[test]
    fn a_raspberry_pi() {
        let mut info: String = (0..4).map(|n| arm_processor(n, "0xd08")).collect();
        info += "Hardware\t: BCM2835\nRevision\t: c03114\nSerial\t\t: 100000001\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n";
        let mut files = vec![("/proc/cpuinfo".into(), info)];
        for n in 0..4 {
            files.push((format!("/sys/devices/system/cpu/cpu{n}/cpufreq/cpuinfo_max_freq"), "1800000\n".into()));
            files.push((format!("/sys/devices/system/cpu/cpu{n}/topology/thread_siblings_list"), format!("{n}\n")));
        }
        let cpu = machine(files, 3);
        assert_eq!((cpu.vendor.as_str(), cpu.model.as_str()), ("Arm", "Cortex-A72"));
        assert_eq!((cpu.cores, cpu.threads, cpu.frequency_mhz), (3, 3, 1800), "three are this process's");
        assert!(cpu.caches.is_empty());
    }

    #[test]
    fn two_designs_with_two_threads_a_core() {
        let info = arm_processor(0, "0xd05") + &arm_processor(1, "0xd05") + &arm_processor(2, "0xd0b");
        let mut files = vec![("/proc/cpuinfo".into(), info)];
        for (n, (set, frequency)) in [("0-1", 1_800_000), ("0-1", 1_800_000), ("2", 2_400_000)].into_iter().enumerate()
        {
            let folder = format!("/sys/devices/system/cpu/cpu{n}");
            files.push((format!("{folder}/topology/thread_siblings_list"), set.into()));
            files.push((format!("{folder}/cpufreq/cpuinfo_max_freq"), frequency.to_string()));
        }
        let cpu = machine(files, 3);
        assert_eq!((cpu.model.as_str(), cpu.cores, cpu.frequency_mhz), ("Cortex-A55 + Cortex-A76", 2, 2400));
    }

    #[test]
    fn what_has_no_name_keeps_its_number() {
        let info = "processor\t: 0\nCPU implementer\t: 0x99\nCPU part\t: 0x123\n";
        let cpu = machine(vec![("/proc/cpuinfo".into(), info.into())], 1);
        assert_eq!((cpu.vendor.as_str(), cpu.model.as_str()), ("0x99", "0x99 part 0x123"));
    }

    #[test]
    fn nothing_is_told() {
        let cpu = machine(Vec::new(), 2);
        assert_eq!((cpu.vendor.as_str(), cpu.model.as_str()), ("unknown", std::env::consts::ARCH));
        assert_eq!((cpu.cores, cpu.threads, cpu.frequency_mhz), (2, 2, 0));
    }
}
