//! SUM, PROD and MAX over contiguous values, computed as vectors. Reductions, softmax and norms use them.

use crate::contract::{self, SUM_BLOCK, SUM_LANES};
use crate::hal::cpu::simd::{self, MAX_SUM_VECTORS, Simd, VectorFn, unroll};
use crate::interrupt::Looks;
use smallvec::SmallVec;

/// Computes the SUM of `map(x)` over at most 1024 values. `padding` is a value that `map` takes to 0: it fills the last
/// vector if n is not a multiple of the vector's lanes.
#[inline(always)]
unsafe fn block<S: Simd>(x: *const f32, n: usize, map: impl VectorFn, padding: f32) -> f32 {
    // SAFETY: only kernels call this, and offsets stay below n.
    unsafe {
        let vectors = SUM_LANES / S::LANES;
        let mut lanes = [S::splat(0.0); MAX_SUM_VECTORS];
        let mut i = 0;
        while i + SUM_LANES <= n {
            unroll!(v < vectors => {
                if v < MAX_SUM_VECTORS {
                    lanes[v] = S::add(lanes[v], map.apply::<S>(S::load(x.add(i + v * S::LANES)), 0));
                }
            });
            i += SUM_LANES;
        }
        let mut lane = [0.0f32; SUM_LANES];
        unroll!(v < vectors => {
            if v < MAX_SUM_VECTORS {
                S::store(lane.as_mut_ptr().add(v * S::LANES), lanes[v]);
            }
        });
        // The values after the last whole 32 are added to their lanes. The other lanes get the padding, whose map is 0.
        let mut at = 0;
        while i + at < n {
            let count = S::LANES.min(n - i - at);
            let mut last = [padding; 16];
            S::store_head(last.as_mut_ptr(), count, S::load_head(x.add(i + at), count));
            let p = lane.as_mut_ptr().add(at);
            S::store(p, S::add(S::load(p), map.apply::<S>(S::load(last.as_ptr()), 0)));
            at += S::LANES;
        }
        fold::<S>(&mut lane)
    }
}

/// Combines a vector's lanes in halves: 0 with 8, … then 0 with 4, … A macro, because a closure would not be compiled for the
/// kernel's instruction set. Lane 0 has the result.
macro_rules! across {
    ($S:ident, $vector:ident, |$other:ident| $combined:expr) => {
        if $S::LANES > 8 {
            let $other = $S::across::<8>($vector);
            $vector = $combined;
        }
        if $S::LANES > 4 {
            let $other = $S::across::<4>($vector);
            $vector = $combined;
        }
        let $other = $S::across::<2>($vector);
        $vector = $combined;
        let $other = $S::across::<1>($vector);
        $vector = $combined;
    };
}

/// Combines the lanes to their SUM.
#[inline(always)]
unsafe fn fold<S: Simd>(lane: &mut [f32; SUM_LANES]) -> f32 {
    // SAFETY: only kernels call this, and a vector that starts below `step` ends within the lanes.
    unsafe {
        let mut step = SUM_LANES / 2;
        while step >= S::LANES {
            let mut l = 0;
            while l < step {
                let p = lane.as_mut_ptr().add(l);
                S::store(p, S::add(S::load(p), S::load(p.add(step))));
                l += S::LANES;
            }
            step /= 2;
        }
        let mut total = S::load(lane.as_ptr());
        across!(S, total, |other| S::add(total, other));
        S::store(lane.as_mut_ptr(), total);
        // The machine decides which NaN a sum of NaNs is. The stored NaN must not depend on it.
        contract::canonical(lane[0])
    }
}

/// Computes the SUM of parts of a row.
pub(super) trait Part: Copy {
    /// Computes the SUM of `n` values from `start`, at most 1024. Implementations are `#[inline(always)]`.
    ///
    /// # Safety
    /// Only kernels call this, with parts that lie inside the row.
    unsafe fn sum<S: Simd>(self, start: usize, n: usize) -> f32;
}

/// Computes the SUM of `n` values from the SUMs of their blocks.
///
/// # Safety
/// Only kernels call this, and the row covers `n` values.
#[inline(always)]
pub(super) unsafe fn sum_of_parts<S: Simd>(n: usize, part: impl Part) -> f32 {
    let (mut partial, mut looks) = (Partial::new(), Looks::NEW);
    let mut start = 0;
    loop {
        let length = SUM_BLOCK.min(n - start);
        // SAFETY: the part lies inside the row, and the caller's promise covers the rest.
        let sum = unsafe { part.sum::<S>(start, length) };
        start += length;
        if start == n && partial.is_empty() {
            return sum;
        }
        keep(&mut partial, sum);
        if start == n || looks.before(SUM_BLOCK) {
            return contract::sum(&partial);
        }
    }
}

/// The SUMs of a row's blocks.
type Partial = SmallVec<[f32; 64]>;

/// Keeps one more SUM. Compiled once for all instruction sets.
#[inline(never)]
fn keep(partial: &mut Partial, sum: f32) {
    partial.push(sum);
}

#[derive(Clone, Copy)]
struct Mapped<F> {
    x: *const f32,
    map: F,
    padding: f32,
}

impl<F: VectorFn> Part for Mapped<F> {
    #[inline(always)]
    unsafe fn sum<S: Simd>(self, start: usize, n: usize) -> f32 {
        // SAFETY: the caller's promise covers this.
        unsafe { block::<S>(self.x.add(start), n, self.map, self.padding) }
    }
}

/// Computes the SUM of `map(x)`. `padding` is a value whose map is +0. `map` must be cheap, because it is compiled into
/// several places.
///
/// # Safety
/// Only kernels call this, and `x` covers `n` values.
#[inline(always)]
pub(super) unsafe fn sum_of<S: Simd>(x: *const f32, n: usize, map: impl VectorFn, padding: f32) -> f32 {
    // SAFETY: the caller's promise covers this.
    unsafe { sum_of_parts::<S>(n, Mapped { x, map, padding }) }
}

/// Stores `y = f(x)`, with any NaN as it comes, and computes its SUM. f must be +0 for `F::PADDING`.
#[derive(Clone, Copy)]
pub(super) struct Stored<F> {
    pub x: *const f32,
    pub y: *mut f32,
    pub f: F,
}

impl<F: VectorFn> Part for Stored<F> {
    #[inline(always)]
    unsafe fn sum<S: Simd>(self, start: usize, n: usize) -> f32 {
        let mut lanes = [0.0; SUM_LANES];
        // SAFETY: x and y cover the part. `at` starts at 0 for each part, and the lanes have room for every offset
        // modulo 32.
        unsafe {
            let f = Summed { f: self.f, lanes: lanes.as_mut_ptr(), next: self.x.wrapping_add(start + n) };
            simd::map_row_raw::<S>(self.x.add(start), self.y.add(start), n, f);
            fold::<S>(&mut lanes)
        }
    }
}

/// A function that adds its results to lanes.
#[derive(Clone, Copy)]
struct Summed<F> {
    f: F,
    lanes: *mut f32,
    /// The values behind the part, which are prefetched: the rest of the row, or the next row.
    next: *const f32,
}

impl<F: VectorFn> VectorFn for Summed<F> {
    const CHAIN: bool = F::CHAIN;
    const PADDING: f32 = F::PADDING;

    #[inline(always)]
    unsafe fn apply<S: Simd>(self, x: S::F, at: usize) -> S::F {
        // SAFETY: the caller's promise covers this.
        unsafe {
            let y = self.f.apply::<S>(x, at);
            S::add_to_lanes(self.lanes, at, y);
            S::prefetch(self.next.wrapping_add(at));
            y
        }
    }
}

/// The function that returns x.
#[derive(Clone, Copy)]
struct Same;

impl VectorFn for Same {
    #[inline(always)]
    unsafe fn apply<S: Simd>(self, x: S::F, _: usize) -> S::F {
        x
    }
}

/// Computes the PROD of at most 1024 values.
///
/// # Safety
/// Only kernels call this, and `x` covers `n` values.
#[inline(always)]
unsafe fn product_of_block<S: Simd>(x: *const f32, n: usize) -> f32 {
    let mut lanes = [1.0f32; SUM_LANES];
    let (mut i, mut step) = (0, SUM_LANES / 2);
    // SAFETY: offsets stay below n, and a vector that starts below `step` ends within the lanes.
    unsafe {
        while i < n {
            let (lane, count) = (lanes.as_mut_ptr().add(i % SUM_LANES), S::LANES.min(n - i));
            let mut values = [1.0; 16];
            let from = if count == S::LANES {
                x.add(i)
            } else {
                S::store_head(values.as_mut_ptr(), count, S::load_head(x.add(i), count));
                values.as_ptr()
            };
            S::store(lane, S::mul(S::load(lane), S::load(from)));
            i += S::LANES;
        }
        while step > 0 {
            for l in 0..step {
                lanes[l] *= lanes[l + step];
            }
            step /= 2;
        }
    }
    contract::canonical(lanes[0])
}

/// Computes PROD.
///
/// # Safety
/// Only kernels call this, and `x` covers `n` values.
#[inline(always)]
pub(super) unsafe fn product<S: Simd>(x: *const f32, n: usize) -> f32 {
    let (mut partial, mut looks) = (Partial::new(), Looks::NEW);
    let mut start = 0;
    loop {
        let length = SUM_BLOCK.min(n - start);
        // SAFETY: the block lies inside the line.
        keep(&mut partial, unsafe { product_of_block::<S>(x.add(start), length) });
        start += length;
        if start == n || looks.before(SUM_BLOCK) {
            // PROD of one value is that value.
            return contract::prod(&partial);
        }
    }
}

/// Computes SUM.
///
/// # Safety
/// Only kernels call this, and `x` covers `n` values.
#[inline(always)]
pub(super) unsafe fn sum<S: Simd>(x: *const f32, n: usize) -> f32 {
    // SAFETY: the caller's promise covers this.
    unsafe { sum_of::<S>(x, n, Same, 0.0) }
}

/// Returns the key of MAX over `n` values whose sign bits are flipped by `flip`, which is 0 or the sign bit. Of no
/// values, returns a key below that of any value.
///
/// # Safety
/// Only kernels call this, and `x` covers `n` values.
#[inline(always)]
pub(super) unsafe fn max_key<S: Simd>(x: *const f32, n: usize, flip: i32) -> i32 {
    // SAFETY: offsets stay below n.
    unsafe {
        let flips = S::splat_i(flip);
        let mut best = [S::splat_i(i32::MIN); 2];
        let mut i = 0;
        while i + 2 * S::LANES <= n {
            // A macro, because a closure would not be compiled for the kernel's instruction set.
            unroll!(v < 2 => {
                let flipped = S::xor_i(S::bits(S::load(x.add(i + v * S::LANES))), flips);
                best[v] = S::max_i(best[v], simd::max_key::<S>(S::from_bits(flipped)));
            });
            i += 2 * S::LANES;
        }
        let (mut keys, mut first) = (S::from_bits(S::max_i(best[0], best[1])), [0.0f32; 16]);
        across!(S, keys, |other| S::from_bits(S::max_i(S::bits(keys), S::bits(other))));
        S::store(first.as_mut_ptr(), keys);
        let mut most = first[0].to_bits() as i32;
        while i < n {
            most = most.max(contract::max_key(f32::from_bits((*x.add(i)).to_bits() ^ flip as u32)));
            i += 1;
        }
        most
    }
}

/// Returns the least and the largest of `n` values, n > 0, in numeric order. Zeros are equal, and a NaN is dropped or
/// wins.
///
/// # Safety
/// Only kernels call this, and `x` covers `n` values.
#[inline(always)]
pub(super) unsafe fn range<S: Simd>(x: *const f32, n: usize) -> (f32, f32) {
    // SAFETY: offsets stay below n.
    unsafe {
        let (mut low, mut high) = ([S::splat(*x); 4], [S::splat(*x); 4]);
        let mut i = 0;
        while i + 4 * S::LANES <= n {
            unroll!(v < 4 => {
                let values = S::load(x.add(i + v * S::LANES));
                low[v] = S::min(values, low[v]);
                high[v] = S::max(values, high[v]);
            });
            i += 4 * S::LANES;
        }
        let mut low = S::min(S::min(low[0], low[1]), S::min(low[2], low[3]));
        let mut high = S::max(S::max(high[0], high[1]), S::max(high[2], high[3]));
        across!(S, low, |other| S::min(low, other));
        across!(S, high, |other| S::max(high, other));
        let (mut lows, mut highs) = ([0.0f32; 16], [0.0f32; 16]);
        S::store(lows.as_mut_ptr(), low);
        S::store(highs.as_mut_ptr(), high);
        let (mut least, mut most) = (lows[0], highs[0]);
        while i < n {
            let value = *x.add(i);
            least = if value < least { value } else { least };
            most = if most < value { value } else { most };
            i += 1;
        }
        (least, most)
    }
}
