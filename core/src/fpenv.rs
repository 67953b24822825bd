//! The floating-point environment of a kernel: E arithmetic under the defaults, M arithmetic flushing subnormals.
//!
//! Rust assumes the default environment. So nothing but a kernel runs inside [`flushing`]: it is reached through an
//! opaque call, takes its numbers from memory and puts them there, and leaves no float in flight for the compiler to
//! move across the change.

/// Runs `f` under the default environment (nearest even, gradual underflow, no traps), whatever the host process has
/// set, and puts the host's back, also when `f` panics.
#[inline(always)]
pub fn default_environment<R>(f: impl FnOnce() -> R) -> R {
    let _restore = arch::Restore::set_if_needed(arch::DEFAULT);
    f()
}

/// The default environment, until this is dropped.
pub struct DefaultEnvironment {
    _restore: arch::Restore,
}

impl DefaultEnvironment {
    /// Sets it where it is not.
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

/// As [`flushing`], and whether a result was flushed.
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
    /// The sticky exception flags, which are nobody's mode.
    const FLAGS: u32 = 0x3f;

    #[inline(always)]
    fn read() -> u32 {
        let mut mxcsr = 0u32;
        // SAFETY: stores MXCSR to four bytes that are there. As a memory operation it stays in order with the kernels'.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack, preserves_flags)) };
        mxcsr
    }

    #[inline(always)]
    fn write(mxcsr: u32) {
        // SAFETY: every value passed here has its reserved bits clear: it was read before or is a constant above.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const mxcsr, options(nostack, preserves_flags)) };
    }

    /// Puts the earlier environment back when dropped.
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

    /// Round to nearest even, gradual underflow, no traps, none of the alternative behaviours.
    pub const DEFAULT: u64 = 0;
    /// FZ: subnormal operands and results become zeros.
    pub const FLUSHING: u64 = 1 << 24;
    /// FPSR's sticky underflow flag. Under FZ a result that is flushed sets it, and nothing else does.
    const UFC: u64 = 1 << 3;

    #[inline(always)]
    fn read() -> u64 {
        let fpcr;
        // SAFETY: reads a register. Not `nomem`, so that it stays in order with the kernels' memory.
        unsafe { asm!("mrs {}, fpcr", out(reg) fpcr, options(nostack, preserves_flags)) };
        fpcr
    }

    #[inline(always)]
    fn write(fpcr: u64) {
        // SAFETY: every value passed here was read before or is a constant above.
        unsafe { asm!("msr fpcr, {}", in(reg) fpcr, options(nostack, preserves_flags)) };
    }

    /// Puts the earlier environment back when dropped.
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
        // SAFETY: reads a register, in order with the kernels' memory.
        unsafe { asm!("mrs {}, fpsr", out(reg) fpsr, options(nostack, preserves_flags)) };
        fpsr
    }

    fn write_flags(fpsr: u64) {
        // SAFETY: sticky flags that were read before; they change nothing that is computed.
        unsafe { asm!("msr fpsr, {}", in(reg) fpsr, options(nostack, preserves_flags)) };
    }

    /// Watches for underflow; puts the host's flags back when dropped.
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
    // The portable kernels emulate M, so no mode is needed; Rust guarantees the default for E.
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
