//! The floating-point environment of kernels: E arithmetic uses the default environment, M arithmetic flushes subnormals.
//!
//! Rust assumes the default environment. So only kernels run inside [`flushing`], behind an opaque call. A kernel reads its
//! numbers from memory and writes them back, so the compiler can't move float operations across the change of environment.

/// Runs `f` in the default environment (round to nearest even, gradual underflow, no traps), whatever the host process has set.
/// Restores the host's environment afterwards, also if `f` panics.
#[inline(always)]
pub fn default_environment<R>(f: impl FnOnce() -> R) -> R {
    let _restore = arch::Restore::set_if_needed(arch::DEFAULT);
    f()
}

/// Keeps the default environment until it is dropped.
pub struct DefaultEnvironment {
    _restore: arch::Restore,
}

impl DefaultEnvironment {
    /// Sets the default environment if another one is active.
    #[inline(always)]
    pub fn enter() -> DefaultEnvironment {
        DefaultEnvironment { _restore: arch::Restore::set_if_needed(arch::DEFAULT) }
    }
}

/// Runs `f` with subnormals flushed on input and output: the M environment.
#[inline(never)]
pub fn flushing<R>(f: impl FnOnce() -> R) -> R {
    let _restore = arch::Restore::set_if_needed(arch::FLUSHING);
    opaque(f)
}

/// Runs `f` like [`flushing`], and reports whether a result was flushed.
#[cfg(target_arch = "aarch64")]
#[inline(never)]
pub fn flushing_noted<R>(f: impl FnOnce() -> R) -> (R, bool) {
    let _restore = arch::Restore::set_if_needed(arch::FLUSHING);
    let underflow = arch::Underflow::watch();
    let result = opaque(f);
    (result, underflow.seen())
}

#[inline(never)]
fn opaque<R>(f: impl FnOnce() -> R) -> R {
    f()
}

#[cfg(target_arch = "x86_64")]
mod arch {
    use std::arch::asm;

    /// All exceptions masked, round to nearest even.
    pub const DEFAULT: u32 = 0x1f80;
    /// The same with FTZ (bit 15) and DAZ (bit 6).
    pub const FLUSHING: u32 = DEFAULT | 0x8040;
    /// The sticky exception flags, which are not part of the mode.
    const FLAGS: u32 = 0x3f;

    #[inline(always)]
    fn read() -> u32 {
        let mut mxcsr = 0u32;
        // SAFETY: stores MXCSR to the four bytes of `mxcsr`. As a memory operation it stays in order with the kernels'.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack, preserves_flags)) };
        mxcsr
    }

    #[inline(always)]
    fn write(mxcsr: u32) {
        // SAFETY: every value passed here has its reserved bits clear, because it was read before or is a constant above.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const mxcsr, options(nostack, preserves_flags)) };
    }

    /// Restores the previous environment when dropped.
    pub struct Restore(Option<u32>);

    impl Restore {
        #[inline(always)]
        pub fn set_if_needed(wanted: u32) -> Restore {
            let current = read();
            if current & !FLAGS == wanted {
                return Restore(None);
            }
            write(wanted);
            Restore(Some(current))
        }
    }

    impl Drop for Restore {
        #[inline(always)]
        fn drop(&mut self) {
            if let Some(before) = self.0 {
                write(before);
            }
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    use std::arch::asm;

    /// Round to nearest even, gradual underflow, no traps, no alternative behaviours.
    pub const DEFAULT: u64 = 0;
    /// FZ: subnormal operands and results become zeros.
    pub const FLUSHING: u64 = 1 << 24;
    /// FPSR's sticky underflow flag. Under FZ only a flushed result sets it.
    const UFC: u64 = 1 << 3;

    #[inline(always)]
    fn read() -> u64 {
        let fpcr;
        // SAFETY: reads a register. It is not `nomem`, so it stays in order with the kernels' memory accesses.
        unsafe { asm!("mrs {}, fpcr", out(reg) fpcr, options(nostack, preserves_flags)) };
        fpcr
    }

    #[inline(always)]
    fn write(fpcr: u64) {
        // SAFETY: every value passed here was read before or is a constant above.
        unsafe { asm!("msr fpcr, {}", in(reg) fpcr, options(nostack, preserves_flags)) };
    }

    /// Restores the previous environment when dropped.
    pub struct Restore(Option<u64>);

    impl Restore {
        #[inline(always)]
        pub fn set_if_needed(wanted: u64) -> Restore {
            let current = read();
            if current == wanted {
                return Restore(None);
            }
            write(wanted);
            Restore(Some(current))
        }
    }

    impl Drop for Restore {
        #[inline(always)]
        fn drop(&mut self) {
            if let Some(before) = self.0 {
                write(before);
            }
        }
    }

    fn read_flags() -> u64 {
        let fpsr;
        // SAFETY: reads a register, in order with the kernels' memory accesses.
        unsafe { asm!("mrs {}, fpsr", out(reg) fpsr, options(nostack, preserves_flags)) };
        fpsr
    }

    fn write_flags(fpsr: u64) {
        // SAFETY: the sticky flags were read before, and they don't change any computation.
        unsafe { asm!("msr fpsr, {}", in(reg) fpsr, options(nostack, preserves_flags)) };
    }

    /// Watches for underflow. Restores the host's flags when dropped.
    pub struct Underflow(u64);

    impl Underflow {
        pub fn watch() -> Underflow {
            let before = read_flags();
            write_flags(before & !UFC);
            Underflow(before)
        }

        pub fn seen(&self) -> bool {
            read_flags() & UFC != 0
        }
    }

    impl Drop for Underflow {
        fn drop(&mut self) {
            write_flags(self.0);
        }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod arch {
    // The portable kernels emulate M, so they need no mode. Rust guarantees the default environment for E.
    pub const DEFAULT: u32 = 0;
    pub const FLUSHING: u32 = 0;

    pub struct Restore;

    impl Restore {
        #[inline(always)]
        pub fn set_if_needed(_: u32) -> Restore {
            Restore
        }
    }
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn environments_nest_and_are_restored() {
        let halve = || black_box(f32::MIN_POSITIVE) * black_box(0.5);
        assert!(halve() > 0.0);
        flushing(|| {
            assert_eq!(halve(), 0.0);
            default_environment(|| assert!(halve() > 0.0));
            assert_eq!(halve(), 0.0);
        });
        assert!(halve() > 0.0);
        let caught = std::panic::catch_unwind(|| flushing(|| panic!("in a kernel")));
        assert!(caught.is_err() && halve() > 0.0, "a panic restores the environment");
    }
    #[cfg(target_arch = "aarch64")]
    #[test]
    fn what_is_flushed_is_noted() {
        let least = f32::MIN_POSITIVE;
        let product = |a: f32, b: f32| flushing_noted(|| black_box(black_box(a) * black_box(b)));
        assert_eq!(product(least, 0.5), (0.0, true), "a result");
        assert_eq!(product(f32::from_bits(1), f32::MAX), (0.0, false), "an operand");
        assert_eq!(product(least, 1.1), (least * 1.1, false), "an inexact result");
        let (root, part) = (2f32.powi(-63), 2f32.powi(-13));
        let rounds_to_least = product(root * (1.0 + part), root * (1.0 - part));
        assert_eq!(rounds_to_least, (0.0, true), "one that is normal once rounded");
        assert_eq!(product(0.0, 1.0), (0.0, false), "zero");
    }
}
