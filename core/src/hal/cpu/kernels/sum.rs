//! SUM and MAX over contiguous values, as vectors: what reductions, softmax and norms are made of.

use crate::contract::{SUM_BLOCK, SUM_LANES};
use crate::hal::cpu::simd::{self, MAX_SUM_VECTORS, Simd};
use smallvec::SmallVec;

/// SUM's 32 lanes in registers.
pub(super) struct Lanes<S: Simd>([S::F; MAX_SUM_VECTORS]);

impl<S: Simd> Lanes<S> {
    const VECTORS: usize = SUM_LANES / S::LANES;

    /// All +0.
    #[inline(always)]
    pub unsafe fn zero() -> Self {
        // SAFETY: called from a kernel.
        Lanes([unsafe { S::splat(0.0) }; MAX_SUM_VECTORS])
    }

    /// Adds 32 values, given vector by vector.
    #[inline(always)]
    pub unsafe fn add(&mut self, mut values: impl FnMut(usize) -> S::F) {
        for v in 0..Self::VECTORS {
            // SAFETY: called from a kernel.
            self.0[v] = unsafe { S::add(self.0[v], values(v * S::LANES)) };
        }
    }

    /// The tree over the lanes.
    #[inline(always)]
    pub unsafe fn total(&self) -> f32 {
        let mut lane = [0.0f32; SUM_LANES];
        for v in 0..Self::VECTORS {
            // SAFETY: VECTORS·LANES is 32.
            unsafe { S::store(lane.as_mut_ptr().add(v * S::LANES), self.0[v]) };
        }
        let mut step = SUM_LANES / 2;
        while step > 0 {
            for l in 0..step {
                lane[l] += lane[l + step];
            }
            step /= 2;
        }
        // NaN payloads are not part of the contract; the result's is.
        crate::contract::canonical(lane[0])
    }
}

/// SUM of `f(x)` over at most 1024 values. `store` gets each vector of `f(x)` with its offset, 32 values at a time, the
/// last ones zero beyond `n`.
#[inline(always)]
unsafe fn block<S: Simd>(x: *const f32, n: usize, map: &mut impl FnMut(S::F, usize) -> S::F) -> f32 {
    // SAFETY: called from a kernel; offsets stay below n, the rest is padded with zeros, which don't change a sum.
    unsafe {
        let mut lanes = Lanes::<S>::zero();
        let mut i = 0;
        while i + SUM_LANES <= n {
            lanes.add(|at| map(S::load(x.add(i + at)), i + at));
            i += SUM_LANES;
        }
        if i < n {
            let mut rest = [0.0f32; SUM_LANES];
            rest.as_mut_ptr().copy_from_nonoverlapping(x.add(i), n - i);
            let mut mapped = [0.0f32; SUM_LANES];
            let mut at = 0;
            while i + at < n {
                S::store(mapped.as_mut_ptr().add(at), map(S::load(rest.as_ptr().add(at)), i + at));
                at += S::LANES;
            }
            mapped[n - i..].fill(0.0);
            lanes.add(|at| S::load(mapped.as_ptr().add(at)));
        }
        lanes.total()
    }
}

/// SUM of `map(x)`. `map` gets every vector of x once, in order, with its offset; the last one may reach beyond `n`,
/// and what it gives there does not count.
///
/// # Safety
/// Called from a kernel; `x` covers `n` values.
#[inline(always)]
pub(super) unsafe fn sum_of<S: Simd>(x: *const f32, n: usize, mut map: impl FnMut(S::F, usize) -> S::F) -> f32 {
    // SAFETY: passed on.
    unsafe {
        if n <= SUM_BLOCK {
            return block::<S>(x, n, &mut map);
        }
        let mut partial: SmallVec<[f32; 64]> = SmallVec::new();
        let mut start = 0;
        while start < n {
            let length = SUM_BLOCK.min(n - start);
            partial.push(block::<S>(x.add(start), length, &mut |v, at| map(v, start + at)));
            start += length;
        }
        sum_of_sums::<S>(&partial)
    }
}

/// SUM of the SUMs of blocks.
///
/// # Safety
/// Called from a kernel.
#[inline(always)]
pub(super) unsafe fn sum_of_sums<S: Simd>(partial: &[f32]) -> f32 {
    // SAFETY: called from a kernel; the slices cover what is read.
    unsafe {
        if partial.len() <= SUM_BLOCK {
            return block::<S>(partial.as_ptr(), partial.len(), &mut |v, _| v);
        }
        let mut next: SmallVec<[f32; 64]> =
            partial.chunks(SUM_BLOCK).map(|part| block::<S>(part.as_ptr(), part.len(), &mut |v, _| v)).collect();
        while next.len() > SUM_BLOCK {
            next = next.chunks(SUM_BLOCK).map(|part| block::<S>(part.as_ptr(), part.len(), &mut |v, _| v)).collect();
        }
        block::<S>(next.as_ptr(), next.len(), &mut |v, _| v)
    }
}

/// The key of MAX over `n` values; the key of −∞'s lower neighbour (less than any) of none.
///
/// # Safety
/// Called from a kernel; `x` covers `n` values.
#[inline(always)]
pub(super) unsafe fn max_key<S: Simd>(x: *const f32, n: usize) -> i32 {
    // SAFETY: offsets stay below n; the rest is padded with its own first value, which changes no maximum.
    unsafe {
        if n == 0 {
            return i32::MIN;
        }
        let (mut best, mut second) = (S::splat_i(i32::MIN), S::splat_i(i32::MIN));
        let mut i = 0;
        while i + 2 * S::LANES <= n {
            best = S::max_i(best, simd::max_key::<S>(S::load(x.add(i))));
            second = S::max_i(second, simd::max_key::<S>(S::load(x.add(i + S::LANES))));
            i += 2 * S::LANES;
        }
        while i < n {
            let count = S::LANES.min(n - i);
            let mut rest = [*x.add(i); 16];
            rest.as_mut_ptr().copy_from_nonoverlapping(x.add(i), count);
            best = S::max_i(best, simd::max_key::<S>(S::load(rest.as_ptr())));
            i += count;
        }
        let mut keys = [0.0f32; 16];
        S::store(keys.as_mut_ptr(), S::from_bits(S::max_i(best, second)));
        keys[..S::LANES].iter().map(|key| key.to_bits() as i32).max().unwrap_or(i32::MIN)
    }
}
