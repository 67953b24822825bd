//! The processor: by CPUID on x86, by the kernel elsewhere and for what CPUID does not tell.

use std::fs;

/// A processor.
#[derive(Clone, Debug, Default)]
pub struct Cpu {
    /// `GenuineIntel`, `AuthenticAMD`, …
    pub vendor: String,
    /// The maker's name for it.
    pub model: String,
    /// Physical cores that this process may use.
    pub cores: usize,
    /// Hardware threads that this process may use.
    pub threads: usize,
    /// Nominal frequency in MHz, 0 where unknown.
    pub frequency_mhz: u32,
    /// Data and unified caches, from the nearest.
    pub caches: Vec<Cache>,
    /// Instruction-set extensions that kernels may use, as the architecture names them.
    pub features: Vec<String>,
}

/// A cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// 1 is the nearest.
    pub level: u8,
    /// Bytes.
    pub size: usize,
    /// Bytes of a line.
    pub line: usize,
}

impl Cpu {
    /// Looks at this machine's processor.
    pub fn detect() -> Cpu {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = info.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
            Some(line.split_once(':')?.1.trim().to_string())
        };
        let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
        let mut cpu = Cpu {
            vendor: field("vendor_id").or_else(|| field("CPU implementer")).unwrap_or_else(|| "unknown".into()),
            model: field("model name").unwrap_or_else(|| std::env::consts::ARCH.into()),
            cores: physical_cores(&info).clamp(1, threads),
            threads,
            frequency_mhz: field("cpu MHz").and_then(|mhz| mhz.split('.').next()?.parse().ok()).unwrap_or(0),
            caches: kernel_caches(),
            features: features(),
        };
        cpu.ask_processor();
        cpu
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

/// Distinct (package, core) pairs.
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
    // Where the kernel names no cores, threads are cores as far as anyone can tell.
    if cores.is_empty() { usize::MAX } else { cores.len() }
}

/// The first processor's caches from sysfs.
fn kernel_caches() -> Vec<Cache> {
    let mut caches = Vec::new();
    for index in 0..8 {
        let folder = format!("/sys/devices/system/cpu/cpu0/cache/index{index}");
        let read = |name: &str| fs::read_to_string(format!("{folder}/{name}")).map(|text| text.trim().to_string());
        let (Ok(kind), Ok(level), Ok(size)) = (read("type"), read("level"), read("size")) else { continue };
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
            let line = read("coherency_line_size").ok().and_then(|line| line.parse().ok()).unwrap_or(64);
            caches.push(Cache { level, size: size * unit, line });
        }
    }
    caches
}

#[cfg(target_arch = "x86_64")]
fn features() -> Vec<String> {
    macro_rules! present {
        ($($feature:tt)*) => {
            [$(($feature, std::is_x86_feature_detected!($feature)),)*]
        };
    }
    present!("sse2" "sse4.1" "avx" "f16c" "fma" "avx2" "avx512f" "avx512dq" "avx512bw" "avx512vl" "avx512bf16" "avx512fp16")
        .into_iter()
        .filter(|&(_, there)| there)
        .map(|(name, _)| name.to_string())
        .collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn features() -> Vec<String> {
    Vec::new()
}
