//! Device profiles: the figures of the cost model, and where they come from.

use super::exact::Exact;
use crate::error::{Float, Result, fail};
use crate::family::Family;
use crate::hal::cpu::CpuDevice;
use crate::hal::{DeviceInfo, DeviceKind};
use crate::host;
use crate::isa::Isa;
use crate::ops::Cost;
use std::fmt;

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The processor. Its memory is the host's.
    Cpu,
    /// A GPU in the processor, on the same memory chips.
    Integrated,
    /// A GPU with memory of its own, behind a bus.
    Discrete,
}

/// The speed of operations of one family on a whole device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Floating-point operations per nanosecond.
    pub gflops: f64,
    /// Bytes read and written per nanosecond.
    pub gbytes: f64,
}

/// A link between host memory and a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Nanoseconds before the first byte arrives.
    pub latency_ns: f64,
    /// Bytes per nanosecond.
    pub gbytes: f64,
}

/// Where figures come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A table of what makers document. The text names the row, and the reason why a calibration was ignored.
    BuiltIn(String),
    /// Measured on this machine. The text is the file's path.
    Calibrated(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, text) = match self {
            Source::BuiltIn(text) => ("built-in figures", text),
            Source::Calibrated(text) => ("calibrated", text),
        };
        write!(f, "{word}: {text}")
    }
}

/// The figures of a device. All are positive. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceProfile {
    /// The name that opens the device: `cpu`, `cuda:0`.
    pub id: String,
    /// The kind of device.
    pub kind: Kind,
    /// Where the figures come from.
    pub source: Source,
    /// The time from a call to the beginning of the work, plus the time from its end to the return.
    pub launch_ns: f64,
    /// The time to wake the other threads; 0 if there are none.
    pub wake_ns: f64,
    /// The share of the device's arithmetic that one thread has; 1 if there is nothing to wake.
    pub alone: f64,
    /// The share of the memory's rate that one thread gets.
    pub alone_memory: f64,
    /// Bytes that a cache is likely to hold from one operation to the next.
    pub cache_bytes: f64,
    /// How many times as fast as memory that cache is.
    pub cache_gain: f64,
    /// Bytes of memory; 0 if unknown.
    pub memory: u64,
    /// From host memory to the device.
    pub upload: Link,
    /// From the device to host memory.
    pub download: Link,
    /// From the memory of another GPU that copies directly; `None` if it copies through host memory.
    pub peer: Option<Link>,
    /// The rates, by [`Family`].
    pub rates: [Rate; Family::COUNT],
    /// The unit and the rates of products in exact integers.
    pub exact: Exact,
}

/// The figures that a GPU's maker documents.
struct Figures {
    name: &'static str,
    text: &'static str,
    kind: Kind,
    gflops: f64,
    gbytes: f64,
    memory: u64,
    link: Link,
    launch_ns: f64,
}

const GB: u64 = 1_000_000_000;

/// Reference GPUs, to compare with when the machine has none. Link rates are those of copies from and to pageable memory, which
/// is pinned piece by piece: about half of the bus's rate.
const REFERENCES: [Figures; 3] = [
    Figures {
        name: "integrated",
        text: "an integrated GPU of 2 TFLOP/s (such as Intel Iris Xe, 96 units at 1.35 GHz) on 51 GB/s of DDR4",
        kind: Kind::Integrated,
        gflops: 2_070.0,
        gbytes: 51.2,
        memory: 4 * GB,
        // The memory is shared, but one thread copies to the GPU's part of it.
        link: Link { latency_ns: 10_000.0, gbytes: 12.0 },
        launch_ns: 20_000.0,
    },
    Figures {
        name: "mid",
        text: "a mid-range GPU of 12.7 TFLOP/s and 360 GB/s (such as GeForce RTX 3060) behind PCIe 4.0 x16",
        kind: Kind::Discrete,
        gflops: 12_740.0,
        gbytes: 360.0,
        memory: 12 * GB,
        link: Link { latency_ns: 15_000.0, gbytes: 12.0 },
        launch_ns: 10_000.0,
    },
    Figures {
        name: "datacentre",
        text: "a data-centre GPU of 67 TFLOP/s and 4.8 TB/s (such as NVIDIA H200) behind PCIe 5.0 x16",
        kind: Kind::Discrete,
        gflops: 67_000.0,
        gbytes: 4_800.0,
        memory: 141 * GB,
        // Measured on an H200 with transfers of 64 KiB to 64 MiB.
        link: Link { latency_ns: 15_000.0, gbytes: 21.0 },
        launch_ns: 9_000.0,
    },
];

/// A software GPU. It computes on the processor, slower than the processor's own kernels.
const SOFTWARE: Figures = Figures {
    name: "software",
    text: "a software GPU on the processor",
    kind: Kind::Integrated,
    gflops: 2.0,
    gbytes: 5.0,
    memory: 4 * GB,
    link: Link { latency_ns: 30_000.0, gbytes: 5.0 },
    launch_ns: 100_000.0,
};

impl DeviceProfile {
    /// Returns the rate of a family.
    pub fn rate(&self, family: Family) -> Rate {
        self.rates[family as usize]
    }

    /// Returns the highest rates of any family. Shares of a device's peak refer to them.
    pub fn peak(&self) -> Rate {
        let most = |of: fn(&Rate) -> f64| self.rates.iter().map(of).fold(0.0, f64::max);
        Rate { gflops: most(|rate| rate.gflops), gbytes: most(|rate| rate.gbytes) }
    }

    /// Returns the least nanoseconds that work takes at [`DeviceProfile::peak`]: those of arithmetic or of memory, whichever is
    /// more. Bytes that a cache may hold count at the cache's rate.
    pub fn least_ns(&self, cost: &Cost) -> f64 {
        let peak = self.peak();
        (cost.flops / peak.gflops).max(self.memory_ns(cost, peak.gbytes))
    }

    /// Nanoseconds to read and write the bytes at a memory rate. The bytes that a cache holds count at the cache's rate.
    pub(super) fn memory_ns(&self, cost: &Cost, gbytes: f64) -> f64 {
        let near = cost.bytes.min(self.cache_bytes);
        (near / self.cache_gain + (cost.bytes - near)) / gbytes
    }

    /// Lists the names that [`DeviceProfile::reference`] accepts.
    pub fn references() -> impl Iterator<Item = &'static str> {
        REFERENCES.iter().map(|figures| figures.name)
    }

    /// Returns a reference GPU with its maker's figures, to compare with: `integrated`, `mid` or `datacentre`. Its id is `gpu:`
    /// and the name. Returns `invalid_argument` for another name.
    pub fn reference(name: &str) -> Result<DeviceProfile> {
        let Some(figures) = REFERENCES.iter().find(|figures| figures.name == name) else {
            let known = DeviceProfile::references().collect::<Vec<_>>().join(", ");
            fail!(InvalidArgument, "no reference GPU '{name}': {known}");
        };
        Ok(DeviceProfile::of_figures(format!("gpu:{name}"), figures, Source::BuiltIn(figures.text.into())))
    }

    /// The profile of a GPU without calibration: the figures of the most similar reference.
    pub(crate) fn of_gpu(info: &DeviceInfo) -> DeviceProfile {
        let figures = match info.kind {
            DeviceKind::Discrete | DeviceKind::Virtual if info.memory >= 32 * GB => &REFERENCES[2],
            DeviceKind::Discrete | DeviceKind::Virtual => &REFERENCES[1],
            DeviceKind::Integrated => &REFERENCES[0],
            DeviceKind::Software | DeviceKind::Cpu => &SOFTWARE,
        };
        let source = Source::BuiltIn(format!("not measured; assumed to be {}", figures.text));
        let mut profile = DeviceProfile::of_figures(info.id.clone(), figures, source);
        profile.memory = info.memory;
        profile.exact = Exact::of_gpu(&info.arch, profile.rate(Family::Matmul).gflops);
        if info.id.starts_with("cuda") {
            // Large GPUs have NVLink; between others the driver copies through host memory. Measured on two H200s.
            let gbytes = if info.memory >= 32 * GB { 250.0 } else { 10.0 };
            profile.peer = Some(Link { latency_ns: 10_000.0, gbytes });
        }
        if profile.kind == Kind::Discrete && info.id.starts_with("vulkan") {
            // Measured on an H200. The references' times are CUDA's.
            profile.launch_ns = 20_000.0;
            (profile.upload.latency_ns, profile.download.latency_ns) = (33_000.0, 33_000.0);
        }
        profile
    }

    fn of_figures(id: String, figures: &Figures, source: Source) -> DeviceProfile {
        // The share of the peak that kernels reach, by family: arithmetic and memory. Products: 0.63 measured on an H200.
        let share = |arithmetic, memory| Rate { gflops: figures.gflops * arithmetic, gbytes: figures.gbytes * memory };
        let products = share(0.6, 0.85);
        DeviceProfile {
            id,
            kind: figures.kind,
            source,
            launch_ns: figures.launch_ns,
            wake_ns: 0.0,
            alone: 1.0,
            alone_memory: 1.0,
            cache_bytes: 0.0,
            cache_gain: 1.0,
            memory: figures.memory,
            upload: figures.link,
            download: figures.link,
            peer: None,
            exact: Exact::of_gpu("", products.gflops),
            rates: [products, share(0.4, 0.7), share(0.5, 0.85), share(0.4, 0.85), share(0.2, 0.7), share(0.5, 0.6)],
        }
    }

    /// The profile of a processor, from its instruction set, threads, nominal frequency and cache.
    pub(crate) fn of_cpu(device: &CpuDevice) -> DeviceProfile {
        let cpu = host::cpu();
        let mhz = if cpu.frequency_mhz > 0 { cpu.frequency_mhz } else { 2500 };
        let nearest = cpu.caches.iter().filter(|cache| cache.level <= 2).map(|cache| cache.size).max();
        let memory = host::memory().total;
        let cores = (device.isa(), device.integer_unit(), device.threads());
        DeviceProfile::of_threads(cores, mhz, nearest.unwrap_or(512 << 10), memory)
    }

    /// The profile of a processor, from its instruction set, its unit for exact integers and its threads. `cache` is the size
    /// of its second-level cache in bytes.
    pub(super) fn of_threads(
        (isa, unit, threads): (Isa, &'static str, usize),
        mhz: u32,
        cache: usize,
        memory: u64,
    ) -> DeviceProfile {
        // Operations per nominal cycle and thread, measured on a Xeon of 2.1 GHz and an EPYC of 2.6 GHz, which run above their
        // nominal frequency. In order: products, attention, elementwise, functions, reductions.
        let cycle = match isa {
            Isa::Avx512 => [47.0, 34.0, 16.0, 20.0, 18.0],
            Isa::Avx2 => [29.0, 20.0, 8.0, 10.0, 9.0],
            // SSE2 emulates the multiply-add of products.
            Isa::Sse2 => [0.3, 0.25, 4.0, 4.5, 4.0],
            // Half of AVX2's, not measured.
            Isa::Neon => [14.0, 10.0, 4.0, 5.0, 4.5],
            Isa::Portable => [0.2, 0.2, 1.0, 1.0, 0.8],
        };
        let (n, ghz) = (threads as f64, f64::from(mhz) / 1000.0);
        // A thread gets some 20 GB/s. Few threads share two memory channels. Many threads mean a server with up to twelve
        // channels.
        let channels = if n > 8.0 { (n / 2.0).min(12.0) } else { n.min(4.0) };
        let rate = |cycle: f64, share: f64| Rate { gflops: cycle * ghz * n, gbytes: 20.0 * channels * share };
        let [matmul, attention, elementwise, function, reduction] = cycle.map(|cycle| rate(cycle, 1.0));
        let nothing = Link { latency_ns: 0.0, gbytes: 1000.0 };
        DeviceProfile {
            id: "cpu".into(),
            kind: Kind::Cpu,
            source: Source::BuiltIn(format!("{} at {mhz} MHz, {threads} threads", isa.name())),
            launch_ns: 100.0,
            // From the times of products with 16 threads.
            wake_ns: if threads > 1 { 3_000.0 + 2_000.0 * n } else { 0.0 },
            alone: 1.0 / n,
            alone_memory: 1.0 / channels,
            cache_bytes: cache as f64,
            cache_gain: 3.0,
            memory,
            upload: nothing,
            download: nothing,
            peer: None,
            rates: [matmul, attention, elementwise, function, reduction, rate(1.0, 0.7)],
            exact: Exact::of_cpu(isa, unit, ghz * n),
        }
    }

    /// All figures, in the order of [`NAMES`].
    pub(super) fn figures(&self) -> [f64; COUNT] {
        let DeviceProfile { upload, download, rates, exact, .. } = self;
        let mut figures = [0.0; COUNT];
        figures[..10].copy_from_slice(&[
            self.launch_ns,
            self.wake_ns,
            self.cache_bytes,
            upload.latency_ns,
            download.latency_ns,
            upload.gbytes,
            download.gbytes,
            self.cache_gain,
            self.alone,
            self.alone_memory,
        ]);
        for (to, rate) in figures[10..].chunks_exact_mut(2).zip(rates) {
            to.copy_from_slice(&[rate.gflops, rate.gbytes]);
        }
        figures[COUNT - 2..].copy_from_slice(&exact.gflops);
        figures
    }

    /// Sets all figures, in the order of [`NAMES`].
    #[cfg(any(test, feature = "settings"))]
    pub(super) fn set_figures(&mut self, figures: &[f64; COUNT]) {
        let DeviceProfile {
            launch_ns, wake_ns, cache_bytes, upload, download, cache_gain, alone, alone_memory, ..
        } = self;
        let up = [launch_ns, wake_ns, cache_bytes, &mut upload.latency_ns, &mut download.latency_ns];
        let more = [&mut upload.gbytes, &mut download.gbytes, cache_gain, alone, alone_memory];
        up.into_iter().chain(more).zip(figures).for_each(|(to, from)| *to = *from);
        for (rate, from) in self.rates.iter_mut().zip(figures[10..].chunks_exact(2)) {
            *rate = Rate { gflops: from[0], gbytes: from[1] };
        }
        self.exact.gflops.copy_from_slice(&figures[COUNT - 2..]);
    }

    /// Checks that every figure is in range.
    pub(super) fn check(&self) -> Result<()> {
        match check(&self.figures()) {
            Some((name, value)) => {
                fail!(InvalidArgument, "{name} of {} is {}, which is out of range", self.id, Float(value))
            }
            None => Ok(()),
        }
    }
}

/// The number of figures of a profile.
pub(super) const COUNT: usize = 12 + 2 * Family::COUNT;

/// The figures' names in calibrations, separated by spaces: times and sizes, which may be 0; rates, which may not; shares, which
/// are at most 1; then the families' rates, and those of products in exact integers.
pub(super) const NAMES: &str = "launch_ns wake_ns cache_bytes upload_latency_ns download_latency_ns upload_gbytes \
    download_gbytes cache_gain alone alone_memory matmul_gflops matmul_gbytes attention_gflops attention_gbytes \
    elementwise_gflops elementwise_gbytes function_gflops function_gbytes reduction_gflops reduction_gbytes \
    move_gflops move_gbytes fixed24_gflops fixed16_gflops";

/// Finds the first figure that is out of range.
pub(super) fn check(figures: &[f64; COUNT]) -> Option<(&'static str, f32)> {
    figures.iter().zip(NAMES.split(' ')).enumerate().find_map(|(i, (&value, name))| {
        let least = if i < 5 { 0.0 } else { 1e-9 };
        let most = if matches!(i, 8 | 9) { 1.0 } else { 1e18 };
        // NaN is in no range.
        if (least..=most).contains(&value) { None } else { Some((name, value as f32)) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_profile_can_be_computed_with() {
        for name in DeviceProfile::references() {
            let profile = DeviceProfile::reference(name).unwrap();
            profile.check().unwrap();
            assert_eq!(profile.id, format!("gpu:{name}"));
        }
        let error = DeviceProfile::reference("mine").unwrap_err();
        assert_eq!(error.message(), "no reference GPU 'mine': integrated, mid, datacentre");
        for isa in Isa::available() {
            for threads in [1, 2, 64] {
                let device = CpuDevice::open(Some(isa), Some(threads)).unwrap();
                DeviceProfile::of_cpu(&device).check().unwrap();
            }
        }
    }

    #[test]
    fn the_least_time_is_that_of_the_best_family() {
        let mut profile = DeviceProfile::reference("mid").unwrap();
        for (i, rate) in profile.rates.iter_mut().enumerate() {
            *rate = Rate { gflops: 10.0 + i as f64, gbytes: 8.0 - i as f64 };
        }
        (profile.cache_bytes, profile.cache_gain) = (80.0, 4.0);
        assert_eq!(profile.peak(), Rate { gflops: 15.0, gbytes: 8.0 });
        let ns = |flops, bytes| profile.least_ns(&Cost { flops, bytes });
        assert_eq!([ns(0.0, 0.0), ns(150.0, 8.0), ns(15.0, 64.0), ns(0.0, 160.0)], [0.0, 10.0, 2.0, 12.5]);
    }

    #[test]
    fn figures_that_make_no_sense_are_refused() {
        let good = DeviceProfile::reference("mid").unwrap();
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            let mut profile = good.clone();
            profile.rates[2].gbytes = wrong;
            assert!(profile.check().unwrap_err().message().starts_with("elementwise_gbytes of gpu:mid is "));
        }
        for wrong in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(DeviceProfile { launch_ns: wrong, ..good.clone() }.check().is_err(), "{wrong}");
        }
        assert!(DeviceProfile { alone: 1.5, ..good.clone() }.check().is_err());
        // Each figure has a name, and set_figures puts it back where figures read it.
        assert_eq!(NAMES.split(' ').count(), COUNT);
        let figures = std::array::from_fn(|i| 0.5 + i as f64 / 100.0);
        let mut other = good;
        other.set_figures(&figures);
        assert_eq!(other.figures(), figures);
        assert_eq!((other.launch_ns, other.alone_memory, other.rate(Family::Move).gbytes), (0.5, 0.59, 0.71));
        let names: Vec<&str> = NAMES.split(' ').skip(10).step_by(2).take(Family::COUNT).collect();
        assert_eq!(names, Family::ALL.map(|family| format!("{family}_gflops")));
    }
}
