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

/// Runs `f` with subnormals flushed on input and output: the M environment.
#[inline(never)]
pub fn flushing<R>(f: impl FnOnce() -> R) -> R {
    let _restore = arch::Restore::set_if_needed(arch::FLUSHING);
    opaque(f)
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

#[cfg(not(target_arch = "x86_64"))]
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

#[cfg(all(test, target_arch = "x86_64"))]
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
}
