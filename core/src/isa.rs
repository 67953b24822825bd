//! The kernels' instruction set: the best one of the machine, or the one that `ADEAD_ISA` names.

use crate::error::{Error, Result, Status, fail};

/// An instruction set that kernels are built for. All of them return the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    /// Plain Rust, for processors without kernels of their own. On x86-64 only with the feature `portable`, for tests.
    Portable,
    /// x86-64's baseline. The fused multiply-add is emulated exactly.
    Sse2,
    /// AVX2 with FMA3.
    Avx2,
    /// AVX-512 F, DQ, BW and VL. Kernels need the feature `avx512`, which is on by default.
    Avx512,
    /// aarch64's baseline.
    Neon,
}

impl Isa {
    /// All instruction sets, from the least to the best.
    pub const ALL: [Isa; 5] = [Isa::Portable, Isa::Sse2, Isa::Avx2, Isa::Avx512, Isa::Neon];

    /// Returns the name, as in `ADEAD_ISA`.
    pub const fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Sse2 => "sse2",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
            Isa::Neon => "neon",
        }
    }

    /// Whether this machine (processor and operating system) runs it and this build has kernels for it.
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
            // Instruction sets of other architectures.
            #[allow(unreachable_patterns)]
            _ => false,
        }
    }

    /// Lists those that this machine runs, from the least to the best.
    pub fn available() -> impl Iterator<Item = Isa> {
        Isa::ALL.into_iter().filter(|isa| isa.is_available())
    }

    /// Returns the best one that this machine runs.
    pub fn best() -> Isa {
        Isa::available().last().unwrap_or(Isa::Portable)
    }

    /// Returns the one that `ADEAD_ISA` names, or else the best one. An unknown or unavailable name is an error.
    pub fn from_environment() -> Result<Isa> {
        match std::env::var("ADEAD_ISA") {
            Ok(name) if !name.is_empty() => name.parse::<Isa>().and_then(Isa::checked),
            _ => Ok(Isa::best()),
        }
    }

    /// Returns itself, or an error if this machine does not run it.
    pub fn checked(self) -> Result<Isa> {
        if self == Isa::Avx512 && !cfg!(feature = "avx512") {
            fail!(
                Unsupported,
                "this is a minimal build of adead, which has no kernels for avx512: build it without ADEAD_MINIMAL (cargo: the \
                 feature avx512); this machine runs {}",
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
            Error::new(Status::InvalidArgument, format!("no instruction set '{name}': expected {known}"))
        })
    }
}
