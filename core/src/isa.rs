//! Which instruction set the kernels use: the best one of the machine, or the one that `ADEAD_ISA` pins.

use crate::error::{Error, Result, Status, fail};

/// An instruction set that kernels are built for. All give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    /// Plain Rust, on processors without kernels of their own; on x86-64 only with the feature `portable`, for tests.
    Portable,
    /// x86-64's baseline; the fused multiply-add is emulated exactly.
    Sse2,
    /// AVX2 with FMA3.
    Avx2,
    /// AVX-512 F, DQ, BW and VL; kernels only with the feature `avx512`, which is on by default.
    Avx512,
    /// aarch64's baseline.
    Neon,
}

impl Isa {
    /// Every instruction set, from the least to the best.
    pub const ALL: [Isa; 5] = [Isa::Portable, Isa::Sse2, Isa::Avx2, Isa::Avx512, Isa::Neon];

    /// The name, as `ADEAD_ISA` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Sse2 => "sse2",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
            Isa::Neon => "neon",
        }
    }

    /// Whether this machine (processor and operating system) runs it, and this build has kernels for it.
    pub fn is_available(self) -> bool {
        match self {
            Isa::Portable => cfg!(any(not(target_arch = "x86_64"), test, feature = "portable")),
            #[cfg(target_arch = "x86_64")]
            Isa::Sse2 => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                cfg!(feature = "avx512")
                    && Isa::Avx2.is_available()
                    && std::is_x86_feature_detected!("avx512f")
                    && std::is_x86_feature_detected!("avx512dq")
                    && std::is_x86_feature_detected!("avx512bw")
                    && std::is_x86_feature_detected!("avx512vl")
                    && std::is_x86_feature_detected!("popcnt")
            }
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => std::arch::is_aarch64_feature_detected!("neon"),
            // Another architecture's.
            #[allow(unreachable_patterns)]
            _ => false,
        }
    }

    /// Those that this machine runs, from the least to the best.
    pub fn available() -> impl Iterator<Item = Isa> {
        Isa::ALL.into_iter().filter(|isa| isa.is_available())
    }

    /// The best that this machine runs.
    pub fn best() -> Isa {
        Isa::available().last().unwrap_or(Isa::Portable)
    }

    /// The one that `ADEAD_ISA` names, else the best. An unknown or unavailable name is an error.
    pub fn from_environment() -> Result<Isa> {
        match std::env::var("ADEAD_ISA") {
            Ok(name) if !name.is_empty() => name.parse::<Isa>().and_then(Isa::checked),
            _ => Ok(Isa::best()),
        }
    }

    /// Itself, if this machine runs it.
    pub fn checked(self) -> Result<Isa> {
        if self == Isa::Avx512 && !cfg!(feature = "avx512") {
            fail!(
                Unsupported,
                "this is a minimal build of adead, which has no kernels for avx512: build it without ADEAD_MINIMAL (cargo: with the \
                 feature avx512); without it this machine runs {}",
                names(Isa::available())
            );
        }
        if !self.is_available() {
            fail!(Unsupported, "this machine does not run {}; it runs {}", self.name(), names(Isa::available()));
        }
        Ok(self)
    }
}

fn names(isas: impl Iterator<Item = Isa>) -> String {
    isas.map(Isa::name).collect::<Vec<_>>().join(", ")
}

impl std::str::FromStr for Isa {
    type Err = Error;

    fn from_str(name: &str) -> Result<Isa> {
        Isa::ALL.into_iter().find(|isa| isa.name() == name).ok_or_else(|| {
            let known = names(Isa::ALL.into_iter());
            Error::new(Status::InvalidArgument, format!("no instruction set '{name}': {known}"))
        })
    }
}
