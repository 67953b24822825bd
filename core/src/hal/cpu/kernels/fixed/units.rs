//! The processor's units that multiply bytes and add the products exactly: AMX and AVX-512 VNNI.

use super::digits::PLANE;
use crate::hal::cpu::simd::unroll;
use std::arch::asm;
use std::arch::x86_64::*;
use std::sync::OnceLock;

/// 32-bit sums of 16 rows by 16 columns.
pub type Square = [i32; 256];

/// The largest K. Up to three products of a signed and an unsigned byte for each of K then fit in 32 bits.
pub const MOST: usize = 16_384;

/// A unit that multiplies bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Amx,
    Vnni,
}

impl Unit {
    /// Returns the fastest unit of this processor that this process may use.
    pub fn best() -> Option<Unit> {
        static BEST: OnceLock<Option<Unit>> = OnceLock::new();
        *BEST.get_or_init(|| {
            let vectors = std::is_x86_feature_detected!("avx512bw") && std::is_x86_feature_detected!("avx512dq");
            if !vectors || !std::is_x86_feature_detected!("avx512vl") {
                None
            } else if amx() {
                Some(Unit::Amx)
            } else if std::is_x86_feature_detected!("avx512vnni") {
                Some(Unit::Vnni)
            } else {
                None
            }
        })
    }

    /// Adds the products of two panels' digits to `sums`, over `depths` times [`DEPTH`](super::digits::DEPTH) of K. In the `first` part
    /// of K, `sums` begin at zero, whatever they hold.
    ///
    /// # Safety
    /// The unit is this processor's and set up on this thread ([`Session`]). The panels hold that much of K, and `depths` is not 0. All
    /// parts of K together are at most [`MOST`]. `sums` has room for the unit's squares and is this call's alone.
    #[inline]
    pub unsafe fn multiply(self, digits: usize, panels: [*const u8; 2], depths: usize, first: bool, sums: *mut Square) {
        let [left, right] = panels;
        // SAFETY: passed on.
        unsafe {
            match (self, digits) {
                (Unit::Amx, 3) => amx_3(left, right, depths, first, sums),
                (Unit::Amx, _) => amx_2(left, right, depths, first, sums),
                (Unit::Vnni, 3) => vnni_3(left, right, depths, first, sums),
                (Unit::Vnni, _) => vnni_2(left, right, depths, first, sums),
            }
        }
    }
}

/// A thread's use of a unit. AMX needs its tiles configured.
pub struct Session(Unit);

impl Session {
    /// Sets the unit up on this thread until the session is dropped.
    ///
    /// # Safety
    /// The unit is [`Unit::best`]'s.
    pub unsafe fn new(unit: Unit) -> Session {
        if unit == Unit::Amx {
            /// Palette 1: eight tiles of 16 rows of 64 bytes.
            #[repr(C, align(64))]
            struct Configuration {
                palette: [u8; 16],
                bytes: [u16; 16],
                rows: [u8; 16],
            }
            let mut all = Configuration { palette: [0; 16], bytes: [0; 16], rows: [0; 16] };
            all.palette[0] = 1;
            all.bytes[..8].fill(64);
            all.rows[..8].fill(16);
            // SAFETY: the processor has AMX, and the system lets this process use it.
            unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const all, options(nostack)) };
        }
        Session(unit)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.0 == Unit::Amx {
            // SAFETY: as in `new`.
            unsafe { asm!("tilerelease", options(nostack)) };
        }
    }
}

/// Returns whether the processor has AMX for 8-bit integers and Linux lets this process use it. Linux requires the request.
fn amx() -> bool {
    #[cfg(target_os = "linux")]
    {
        const TILE_AND_INT8: u32 = 3 << 24;
        const TILE_STATE: u64 = 3 << 17;
        const ARCH_PRCTL: usize = 158;
        const ARCH_REQ_XCOMP_PERM: usize = 0x1023;
        const TILE_DATA: usize = 18;
        let leaf = __cpuid_count(7, 0);
        // SAFETY: processors with AVX-512 have XGETBV.
        if leaf.edx & TILE_AND_INT8 != TILE_AND_INT8 || unsafe { extended_states() } & TILE_STATE != TILE_STATE {
            return false;
        }
        let answer: isize;
        // SAFETY: a system call that reads no memory.
        unsafe {
            asm!("syscall", inlateout("rax") ARCH_PRCTL => answer, in("rdi") ARCH_REQ_XCOMP_PERM, in("rsi") TILE_DATA,
                out("rcx") _, out("r11") _, options(nostack));
        }
        answer == 0
    }
    #[cfg(not(target_os = "linux"))]
    false
}

#[cfg(target_os = "linux")]
#[target_feature(enable = "xsave")]
unsafe fn extended_states() -> u64 {
    // SAFETY: register 0 is there with XGETBV.
    unsafe { _xgetbv(0) }
}

/// Multiplies panels of three digits: nine products into five sums. The sums stay in five tiles; the operands share the other three.
unsafe fn amx_3(left: *const u8, right: *const u8, depths: usize, first: bool, sums: *mut Square) {
    // SAFETY: as `Unit::multiply`'s.
    unsafe {
        asm!(
            "test {first:l}, {first:l}",
            "jnz 3f",
            "tileloadd tmm0, [{to} + {line}*1]",
            "tileloadd tmm1, [{to} + {line}*1 + 1024]",
            "tileloadd tmm2, [{to} + {line}*1 + 2048]",
            "tileloadd tmm3, [{to} + {line}*1 + 3072]",
            "tileloadd tmm4, [{to} + {line}*1 + 4096]",
            "jmp 2f",
            "3:",
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "tilezero tmm4",
            "2:",
            "tileloadd tmm5, [{a} + {line}*1]",
            "tileloadd tmm7, [{b} + {line}*1]",
            "tdpbsud tmm0, tmm5, tmm7",
            "tileloadd tmm6, [{a} + {line}*1 + 1024]",
            "tdpbsud tmm1, tmm6, tmm7",
            "tileloadd tmm7, [{b} + {line}*1 + 1024]",
            "tdpbsud tmm2, tmm6, tmm7",
            "tdpbsud tmm1, tmm5, tmm7",
            "tileloadd tmm7, [{b} + {line}*1 + 2048]",
            "tdpbsud tmm3, tmm6, tmm7",
            "tdpbsud tmm2, tmm5, tmm7",
            "tileloadd tmm5, [{a} + {line}*1 + 2048]",
            "tdpbsud tmm4, tmm5, tmm7",
            "tileloadd tmm6, [{b} + {line}*1 + 1024]",
            "tdpbsud tmm3, tmm5, tmm6",
            "tileloadd tmm7, [{b} + {line}*1]",
            "tdpbsud tmm2, tmm5, tmm7",
            "add {a}, 3072",
            "add {b}, 3072",
            "dec {n}",
            "jnz 2b",
            "tilestored [{to} + {line}*1], tmm0",
            "tilestored [{to} + {line}*1 + 1024], tmm1",
            "tilestored [{to} + {line}*1 + 2048], tmm2",
            "tilestored [{to} + {line}*1 + 3072], tmm3",
            "tilestored [{to} + {line}*1 + 4096], tmm4",
            a = inout(reg) left => _, b = inout(reg) right => _, n = inout(reg) depths => _,
            line = in(reg) 64usize, to = in(reg) sums, first = in(reg_abcd) first as u32,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _, out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}

/// Multiplies panels of two digits: four products into four sums.
unsafe fn amx_2(left: *const u8, right: *const u8, depths: usize, first: bool, sums: *mut Square) {
    // SAFETY: as `Unit::multiply`'s.
    unsafe {
        asm!(
            "test {first:l}, {first:l}",
            "jnz 3f",
            "tileloadd tmm0, [{to} + {line}*1]",
            "tileloadd tmm1, [{to} + {line}*1 + 1024]",
            "tileloadd tmm2, [{to} + {line}*1 + 2048]",
            "tileloadd tmm3, [{to} + {line}*1 + 3072]",
            "jmp 2f",
            "3:",
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "2:",
            "tileloadd tmm4, [{a} + {line}*1]",
            "tileloadd tmm6, [{b} + {line}*1]",
            "tdpbsud tmm0, tmm4, tmm6",
            "tileloadd tmm5, [{a} + {line}*1 + 1024]",
            "tdpbsud tmm1, tmm5, tmm6",
            "tileloadd tmm7, [{b} + {line}*1 + 1024]",
            "tdpbsud tmm2, tmm4, tmm7",
            "tdpbsud tmm3, tmm5, tmm7",
            "add {a}, 2048",
            "add {b}, 2048",
            "dec {n}",
            "jnz 2b",
            "tilestored [{to} + {line}*1], tmm0",
            "tilestored [{to} + {line}*1 + 1024], tmm1",
            "tilestored [{to} + {line}*1 + 2048], tmm2",
            "tilestored [{to} + {line}*1 + 3072], tmm3",
            a = inout(reg) left => _, b = inout(reg) right => _, n = inout(reg) depths => _,
            line = in(reg) 64usize, to = in(reg) sums, first = in(reg_abcd) first as u32,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _, out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}

/// Adds the products of three digits of one row by 16 columns, over four of K. The instructions broadcast the row's digits from memory.
/// This is assembly because the compiler loads all rows' digits in advance and then spills the sums.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn dots_3(s: &mut [__m512i; 5], b: [__m512i; 3], a: *const u8) {
    let [s0, s1, s2, s3, s4] = s;
    // SAFETY: reads 4 bytes of each of the row's three planes, which the caller provides.
    unsafe {
        asm!(
            "vpdpbusd {s0}, {b0}, dword ptr [{a}]{{1to16}}",
            "vpdpbusd {s1}, {b1}, dword ptr [{a}]{{1to16}}",
            "vpdpbusd {s2}, {b2}, dword ptr [{a}]{{1to16}}",
            "vpdpbusd {s3}, {b2}, dword ptr [{a} + 1024]{{1to16}}",
            "vpdpbusd {s1}, {b0}, dword ptr [{a} + 1024]{{1to16}}",
            "vpdpbusd {s2}, {b1}, dword ptr [{a} + 1024]{{1to16}}",
            "vpdpbusd {s4}, {b2}, dword ptr [{a} + 2048]{{1to16}}",
            "vpdpbusd {s3}, {b1}, dword ptr [{a} + 2048]{{1to16}}",
            "vpdpbusd {s2}, {b0}, dword ptr [{a} + 2048]{{1to16}}",
            s0 = inout(zmm_reg) *s0, s1 = inout(zmm_reg) *s1, s2 = inout(zmm_reg) *s2, s3 = inout(zmm_reg) *s3,
            s4 = inout(zmm_reg) *s4, b0 = in(zmm_reg) b[0], b1 = in(zmm_reg) b[1], b2 = in(zmm_reg) b[2], a = in(reg) a,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
}

/// Adds the products of two digits; see [`dots_3`].
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn dots_2(s: &mut [__m512i; 3], b: [__m512i; 2], a: *const u8) {
    let [s0, s1, s2] = s;
    // SAFETY: reads 4 bytes of each of the row's two planes, which the caller provides.
    unsafe {
        asm!(
            "vpdpbusd {s0}, {b0}, dword ptr [{a}]{{1to16}}",
            "vpdpbusd {s1}, {b1}, dword ptr [{a}]{{1to16}}",
            "vpdpbusd {s2}, {b1}, dword ptr [{a} + 1024]{{1to16}}",
            "vpdpbusd {s1}, {b0}, dword ptr [{a} + 1024]{{1to16}}",
            s0 = inout(zmm_reg) *s0, s1 = inout(zmm_reg) *s1, s2 = inout(zmm_reg) *s2,
            b0 = in(zmm_reg) b[0], b1 = in(zmm_reg) b[1], a = in(reg) a,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn vnni_3(left: *const u8, right: *const u8, depths: usize, first: bool, sums: *mut Square) {
    // Four rows at a time take 20 registers for sums and three for b.
    for row in (0..16).step_by(4) {
        let mut s = [[_mm512_setzero_si512(); 5]; 4];
        let row_of = |g: usize, r: usize| sums.wrapping_add(g).cast::<i32>().wrapping_add((row + r) * 16);
        if !first {
            unroll!(g < 5 => {
                // SAFETY: 16 columns of each row.
                unroll!(r < 4 => { s[r][g] = unsafe { _mm512_loadu_si512(row_of(g, r).cast()) } });
            });
        }
        for depth in 0..depths {
            for step in 0..16 {
                // SAFETY: inside the panels.
                unsafe {
                    let a = left.add(depth * 3 * PLANE + row * 64 + step * 4);
                    let b = right.add(depth * 3 * PLANE + step * 64);
                    let b = [
                        _mm512_loadu_si512(b.cast()),
                        _mm512_loadu_si512(b.add(PLANE).cast()),
                        _mm512_loadu_si512(b.add(2 * PLANE).cast()),
                    ];
                    unroll!(r < 4 => { dots_3(&mut s[r], b, a.add(r * 64)); });
                }
            }
        }
        unroll!(g < 5 => {
            // SAFETY: 16 columns of each row.
            unroll!(r < 4 => { unsafe { _mm512_storeu_si512(row_of(g, r).cast(), s[r][g]) } });
        });
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn vnni_2(left: *const u8, right: *const u8, depths: usize, first: bool, sums: *mut Square) {
    // Eight rows at a time take 24 registers for sums and two for b.
    for row in (0..16).step_by(8) {
        let mut s = [[_mm512_setzero_si512(); 3]; 8];
        let row_of = |g: usize, r: usize| sums.wrapping_add(g).cast::<i32>().wrapping_add((row + r) * 16);
        if !first {
            unroll!(g < 3 => {
                // SAFETY: 16 columns of each row.
                unroll!(r < 8 => { s[r][g] = unsafe { _mm512_loadu_si512(row_of(g, r).cast()) } });
            });
        }
        for depth in 0..depths {
            for step in 0..16 {
                // SAFETY: inside the panels.
                unsafe {
                    let a = left.add(depth * 2 * PLANE + row * 64 + step * 4);
                    let b = right.add(depth * 2 * PLANE + step * 64);
                    let b = [_mm512_loadu_si512(b.cast()), _mm512_loadu_si512(b.add(PLANE).cast())];
                    unroll!(r < 8 => { dots_2(&mut s[r], b, a.add(r * 64)); });
                }
            }
        }
        unroll!(g < 3 => {
            // SAFETY: 16 columns of each row.
            unroll!(r < 8 => { unsafe { _mm512_storeu_si512(row_of(g, r).cast(), s[r][g]) } });
        });
    }
}
