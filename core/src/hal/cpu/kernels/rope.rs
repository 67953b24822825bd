//! Pairs of elements turned by angles.

use super::{Call, Exec, Shared, chunks};
use crate::contract;
use crate::error::Result;
use crate::hal::cpu::simd::{Kernel, Simd, dispatch};
use crate::ops::rope_tables;

/// Values that are worth handing to another thread.
const GRAIN: usize = 8 * 1024;

/// `rope` of the op table.
pub(super) fn rope(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let (pairs, strides) = rope_tables(&call.meta(0).shape, &call.meta(1).shape)?;
    let (half, last) = (pairs.from_end(0), pairs.rank() - 1);
    let [x, cos, sin] = [call.f32(0)?, call.f32(1)?, call.f32(2)?].map(|operand| Shared(operand.cast_mut()));
    let (y, interleaved, step) = (Shared(call.out()?), call.attrs.interleaved, strides[last]);
    chunks(exec, pairs.elements() / half, GRAIN.div_ceil(2 * half), |start, end| {
        for row in start..end {
            let (mut rest, mut at) = (row, 0);
            for axis in (0..last).rev() {
                at += rest % pairs.dims()[axis] * strides[axis];
                rest /= pairs.dims()[axis];
            }
            // SAFETY: the row lies inside x and y, and the tables broadcast to its pairs.
            unsafe {
                let (x, y) = (x.get().add(2 * half * row), y.get().add(2 * half * row));
                let row = Row { x, cos: cos.get().add(at), sin: sin.get().add(at), y, half, step };
                match interleaved || step == 0 {
                    true => row.pairs(0, if interleaved { 1 } else { half }),
                    false => dispatch(exec.isa, row),
                }
            }
        }
    })
}

/// A row: `half` pairs, of which each has its cosine and sine, or with step 0 all have one.
struct Row {
    x: *const f32,
    cos: *const f32,
    sin: *const f32,
    y: *mut f32,
    half: usize,
    step: usize,
}

impl Row {
    /// Pairs from the first one on, whose elements lie so far apart.
    ///
    /// # Safety
    /// The row lies inside its operands.
    unsafe fn pairs(&self, first: usize, apart: usize) {
        for i in first..self.half {
            let at = if apart == 1 { 2 * i } else { i };
            // SAFETY: both elements are the row's.
            unsafe {
                let (x, y) = (self.x.add(at), self.y.add(at));
                let [cos, sin] = [*self.cos.add(i * self.step), *self.sin.add(i * self.step)];
                [*y, *y.add(apart)] = contract::rope([*x, *x.add(apart)], cos, sin);
            }
        }
    }
}

impl Kernel for Row {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let mut i = 0;
        // SAFETY: offsets stay below the row's pairs.
        unsafe {
            while i + S::LANES <= self.half {
                let (a, b) = (S::load(self.x.add(i)), S::load(self.x.add(self.half + i)));
                let (cos, sin) = (S::load(self.cos.add(i)), S::load(self.sin.add(i)));
                let first = S::sub(S::mul(a, cos), S::mul(b, sin));
                let second = S::add(S::mul(b, cos), S::mul(a, sin));
                S::store(self.y.add(i), S::canonical(first));
                S::store(self.y.add(self.half + i), S::canonical(second));
                i += S::LANES;
            }
            self.pairs(i, self.half);
        }
    }
}
