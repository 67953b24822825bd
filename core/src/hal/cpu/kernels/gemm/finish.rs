//! The epilogue: E arithmetic on a finished block.

use super::Block;
use crate::hal::cpu::simd::{self, Kernel, Simd};

/// Multiplies by alpha, adds beta·c and adds the bias, in place.
pub(super) struct Finish<'a>(pub &'a Block);

impl Kernel for Finish<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Block { m, n, out, out_row, epilogue: e, .. } = *self.0;
        for i in 0..m {
            let mut j = 0;
            while j < n {
                let count = S::LANES.min(n - j);
                // SAFETY: the block covers m × n values, and no access goes beyond `count`.
                unsafe {
                    let at = out.add(i * out_row + j);
                    let mut t = S::mul(part::<S>(at, 1, count), S::splat(e.alpha));
                    if e.beta != 0.0 {
                        let c = part::<S>(e.c.at(i, j).data, e.c.column, count);
                        t = S::add(t, S::mul(S::splat(e.beta), c));
                    }
                    if !e.bias.is_null() {
                        t = S::add(t, part::<S>(e.bias.add(j), 1, count));
                    }
                    S::store_head(at, count, simd::canonical::<S>(t));
                }
                j += count;
            }
        }
    }
}

/// Loads up to a vector of values: neighbours, or one repeated value if the step is 0.
#[inline(always)]
unsafe fn part<S: Simd>(p: *const f32, step: usize, count: usize) -> S::F {
    // SAFETY: p covers `count` values, or one value if the step is 0.
    unsafe { if step == 0 { S::splat(*p) } else { S::load_head(p, count) } }
}
