//! The chains of a register tile on x86-64, in assembly. In Rust, the compiler moves accumulators through memory as
//! soon as the loop does anything else, such as prefetching.
//!
//! Every few products, the first loop prefetches memory that is needed much later. It does so slowly enough that the
//! loop's own misses don't queue behind the prefetches. The second loop does the last products, and prefetches a row of
//! the result with each.

use super::Simd;
use super::tile::{Chains, MAX_TILE_VECTORS};
use super::x86::{Avx2, Avx512};
use std::arch::asm;

/// One product of every chain.
macro_rules! product {
    // Two vectors of B across. Arguments: the loads, a register for a value of A, the vectors of B, and the tallest
    // tile's rows.
    ($load0:literal, $load1:literal, $x:literal, $b0:literal, $b1:literal, $rows:tt;
     $([$n:literal $address:literal $r0:tt $r1:tt])*) => {
        concat!(
            $load0, "\n", $load1, "\n",
            $("vbroadcastss ", $x, ", dword ptr [", $address, "]\n",
              "vfmadd231ps ", $r0, ", ", $x, ", ", $b0, "\n",
              "vfmadd231ps ", $r1, ", ", $x, ", ", $b1, "\n",)*
            steps!($rows)
        )
    };
    // One vector of B across.
    ($load0:literal, $x:literal, $b0:literal, $rows:tt; $([$n:literal $address:literal $r0:tt $r1:tt])*) => {
        concat!(
            $load0, "\n",
            $("vbroadcastss ", $x, ", dword ptr [", $address, "]\n",
              "vfmadd231ps ", $r0, ", ", $x, ", ", $b0, "\n",)*
            steps!($rows)
        )
    };
}

/// Moves to the next product. An operand in an assembly comment is one that this height doesn't need.
macro_rules! steps {
    (12) => {
        "add {b}, {b_row}\n# {a_row}\nadd {a0}, {a_step}\nadd {a3}, {a_step}\nadd {a6}, {a_step}\nadd {a9}, {a_step}\n"
    };
    (6) => {
        "add {b}, {b_row}\n# {a_row} {a6} {a9}\nadd {a0}, {a_step}\nadd {a3}, {a_step}\n"
    };
}

/// The products of a turn, and as many prefetches every few turns.
macro_rules! turn {
    (4; $($product:tt)*) => {
        concat!(
            product!($($product)*), product!($($product)*), product!($($product)*), product!($($product)*),
            "test {depth:e}, {mask:e}\njnz 3f\n",
            ahead!(), ahead!(), ahead!(), ahead!(),
            "3:\n"
        )
    };
    (1; $($product:tt)*) => {
        concat!(product!($($product)*), "test {depth:e}, {mask:e}\njnz 3f\n", ahead!(), "3:\n")
    };
}

/// Prefetches two cache lines.
macro_rules! ahead {
    () => {
        "prefetcht1 [{next}]\nprefetcht1 [{next} + 64]\nadd {next}, {next_row}\n"
    };
}

/// Both loops for one height: the start of a product, then the address and accumulators of each row.
macro_rules! loops {
    ($t:ident, $p:ident, $rows:literal, $unroll:tt, [$($begin:tt)*], [$($end:tt)*], [$($masks:tt)*],
     [$($row:tt)*], [$([$n0:tt $r0:tt])*], [$([$n1:tt $r1:tt])*]) => {{
        // The second loop does one product for each row of the result.
        let turns = Chains::turns($t.depth, $rows);
        let (mut a0, mut b) = ($t.a, $t.b);
        if turns > 0 {
            asm!(
                "2:",
                turn!($unroll; $($begin)* $($end)*; $($row)*),
                "dec {depth:e}",
                "jnz 2b",
                a0 = inout(reg) a0,
                a3 = inout(reg) a0.wrapping_add(3 * $t.a_row) => _,
                a6 = inout(reg) a0.wrapping_add(6 * $t.a_row) => _,
                a9 = inout(reg) a0.wrapping_add(9 * $t.a_row) => _,
                a_row = in(reg) 4 * $t.a_row,
                a_step = in(reg) 4 * $t.a_step,
                b = inout(reg) b,
                b_row = in(reg) 4 * $t.b_row,
                depth = inout(reg) turns as u32 => _,
                next = inout(reg) $t.next => _,
                next_row = in(reg) 4 * $t.next_row,
                mask = in(reg) $t.period - 1,
                $($masks)*
                $(inout($r0) $p[$n0][0],)*
                $(inout($r1) $p[$n1][1],)*
                options(nostack),
            );
        }
        let left = $t.depth - Chains::unrolled($rows) * turns;
        if left > 0 {
            asm!(
                "2:",
                product!($($begin)* $($end)*; $($row)*),
                "prefetchw [{out}]",
                "prefetchw [{out} + 64]",
                "add {out}, {out_row}",
                "dec {depth:e}",
                "jnz 2b",
                a0 = inout(reg) a0 => _,
                a3 = inout(reg) a0.wrapping_add(3 * $t.a_row) => _,
                a6 = inout(reg) a0.wrapping_add(6 * $t.a_row) => _,
                a9 = inout(reg) a0.wrapping_add(9 * $t.a_row) => _,
                a_row = in(reg) 4 * $t.a_row,
                a_step = in(reg) 4 * $t.a_step,
                b = inout(reg) b => _,
                b_row = in(reg) 4 * $t.b_row,
                depth = inout(reg) left as u32 => _,
                out = inout(reg) $t.out => _,
                out_row = in(reg) 4 * $t.out_row,
                $($masks)*
                $(inout($r0) $p[$n0][0],)*
                $(inout($r1) $p[$n1][1],)*
                options(nostack),
            );
        }
        let _ = (&mut a0, &mut b);
    }};
}

/// Both widths of one height on AVX-512. A single vector across is masked, which costs a little.
macro_rules! avx512 {
    ($t:ident, $v:ident, $p:ident, $rows:literal, $unroll:tt; $([$n:tt $address:literal $r0:tt $r1:tt])*) => {{
        if $v == 2 {
            loops!($t, $p, $rows, $unroll,
                ["vmovups zmm0, [{b}]", "vmovups zmm1, [{b} + 64]",],
                ["zmm2", "zmm0", "zmm1", 12],
                [out("zmm0") _, out("zmm1") _, out("zmm2") _,],
                [$([$n $address $r0 $r1])*], [$([$n $r0])*], [$([$n $r1])*])
        } else {
            let lanes = ((1u32 << $t.columns) - 1) as u16;
            loops!($t, $p, $rows, $unroll,
                ["vmovups zmm0 {{{lanes}}} {{z}}, [{b}]",],
                ["zmm2", "zmm0", 12],
                [lanes = in(kreg) lanes, out("zmm0") _, out("zmm2") _,],
                [$([$n $address $r0 $r1])*], [$([$n $r0])*], [])
        }
    }};
}

/// Both widths of one height on AVX2.
macro_rules! avx2 {
    ($t:ident, $v:ident, $p:ident, $rows:literal, $unroll:tt; $([$n:tt $address:literal $r0:tt $r1:tt])*) => {{
        if $v == 2 {
            loops!($t, $p, $rows, $unroll,
                ["vmovups ymm0, [{b}]", "vmovups ymm1, [{b} + 32]",],
                ["ymm2", "ymm0", "ymm1", 6],
                [out("ymm0") _, out("ymm1") _, out("ymm2") _,],
                [$([$n $address $r0 $r1])*], [$([$n $r0])*], [$([$n $r1])*])
        } else {
            loops!($t, $p, $rows, $unroll,
                ["vmovups ymm0, [{b}]",],
                ["ymm2", "ymm0", 6],
                [out("ymm0") _, out("ymm2") _,],
                [$([$n $address $r0 $r1])*], [$([$n $r0])*], [])
        }
    }};
}

/// Calls a macro for height R with its first R rows.
macro_rules! heights {
    ($call:ident, $t:ident, $v:ident, $p:ident, $r:ident; $($rows:literal $unroll:tt: [$($row:tt)*])*) => {
        match $r {
            $($rows => $call!($t, $v, $p, $rows, $unroll; $($row)*),)*
            _ => unreachable!("no tile of {} rows", $r),
        }
    };
}

macro_rules! prefixes {
    ($call:ident, $t:ident, $v:ident, $p:ident, $r:ident; [$($done:tt)*] [$($arms:tt)*] []) => {
        heights!($call, $t, $v, $p, $r; $($arms)*)
    };
    ($call:ident, $t:ident, $v:ident, $p:ident, $r:ident; [$($done:tt)*] [$($arms:tt)*]
     [($rows:literal $unroll:tt $row:tt) $($left:tt)*]) => {
        prefixes!($call, $t, $v, $p, $r; [$($done)* $row] [$($arms)* $rows $unroll: [$($done)* $row]] [$($left)*])
    };
}

/// [`Simd::chains`] with AVX-512.
///
/// # Safety
/// As for [`super::tile::chains`].
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")]
#[allow(clippy::out_of_bounds_indexing, unconditional_panic)] // Heights other than R are not compiled.
pub unsafe fn chains_avx512<const R: usize, const V: usize>(
    t: &Chains,
    mut p: [[<Avx512 as Simd>::F; MAX_TILE_VECTORS]; R],
) -> [[<Avx512 as Simd>::F; MAX_TILE_VECTORS]; R] {
    // SAFETY: the loops read `depth` values of R rows of A and the columns of `depth` rows of B, and write registers
    // only. A prefetch accesses no memory.
    unsafe {
        prefixes!(avx512, t, V, p, R; [] [] [
            (1 1 [0 "{a0}" "zmm8" "zmm9"])
            (2 1 [1 "{a0} + {a_row}" "zmm10" "zmm11"])
            (3 1 [2 "{a0} + 2*{a_row}" "zmm12" "zmm13"])
            (4 1 [3 "{a3}" "zmm14" "zmm15"])
            (5 1 [4 "{a3} + {a_row}" "zmm16" "zmm17"])
            (6 4 [5 "{a3} + 2*{a_row}" "zmm18" "zmm19"])
            (7 4 [6 "{a6}" "zmm20" "zmm21"])
            (8 4 [7 "{a6} + {a_row}" "zmm22" "zmm23"])
            (9 4 [8 "{a6} + 2*{a_row}" "zmm24" "zmm25"])
            (10 4 [9 "{a9}" "zmm26" "zmm27"])
            (11 4 [10 "{a9} + {a_row}" "zmm28" "zmm29"])
            (12 4 [11 "{a9} + 2*{a_row}" "zmm30" "zmm31"])
        ]);
        p
    }
}

/// [`Simd::chains`] with AVX2.
///
/// # Safety
/// As for [`super::tile::chains`].
#[inline]
#[target_feature(enable = "avx2,fma")]
#[allow(clippy::out_of_bounds_indexing, unconditional_panic)] // Heights other than R are not compiled.
pub unsafe fn chains_avx2<const R: usize, const V: usize>(
    t: &Chains,
    mut p: [[<Avx2 as Simd>::F; MAX_TILE_VECTORS]; R],
) -> [[<Avx2 as Simd>::F; MAX_TILE_VECTORS]; R] {
    // SAFETY: as in `chains_avx512`.
    unsafe {
        prefixes!(avx2, t, V, p, R; [] [] [
            (1 1 [0 "{a0}" "ymm4" "ymm5"])
            (2 1 [1 "{a0} + {a_row}" "ymm6" "ymm7"])
            (3 1 [2 "{a0} + 2*{a_row}" "ymm8" "ymm9"])
            (4 1 [3 "{a3}" "ymm10" "ymm11"])
            (5 1 [4 "{a3} + {a_row}" "ymm12" "ymm13"])
            (6 4 [5 "{a3} + 2*{a_row}" "ymm14" "ymm15"])
        ]);
        p
    }
}
