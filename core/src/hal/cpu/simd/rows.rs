//! Loops over rows of values. A kernel contains each loop once: the rest of the last vector goes through the same loop
//! on a copy. So a function of fifty instructions is not compiled again for the tail.

use super::Simd;
use super::math::{abs, canonical, with_sign};
use super::twice::Twice;
use std::mem::MaybeUninit;

/// A function of one vector. It is a trait, because a closure that the compiler does not inline loses the instruction
/// set, which is slow and unsound.
pub trait VectorFn: Copy {
    /// Whether it is a long chain of dependent instructions, so that several vectors should be in flight.
    const CHAIN: bool = false;
    /// The value that fills up a row's last vector.
    const PADDING: f32 = 0.0;

    /// Whether it also exists as two halves. The first halves of a row then run some vectors ahead of the second
    /// halves, which hides the latency of the division between them.
    const HALVES: bool = false;

    /// Computes the first half: the values that the second half needs.
    ///
    /// # Safety
    /// As for [`VectorFn::apply`].
    #[inline(always)]
    unsafe fn begin<S: Simd>(self, x: S::F) -> [S::F; 4] {
        [x; 4]
    }

    /// Computes the second half.
    ///
    /// # Safety
    /// As for [`VectorFn::apply`].
    #[inline(always)]
    unsafe fn end<S: Simd>(self, held: [S::F; 4]) -> S::F {
        held[0]
    }

    /// Computes the function of x, whose first value has offset `at` in its row. Implementations are
    /// `#[inline(always)]`.
    ///
    /// # Safety
    /// Only kernels may call it.
    unsafe fn apply<S: Simd>(self, x: S::F, at: usize) -> S::F;
}

/// An odd function with two methods, one near 0 and one beyond a limit. Its argument is a multiple of x.
pub trait TwoSided: Copy {
    /// The limit between the methods. A NaN counts as near.
    const LIMIT: f32;

    /// Returns the function's argument: a positive multiple of x.
    ///
    /// # Safety
    /// Only kernels may call these methods.
    unsafe fn argument<S: Simd>(self, x: S::F) -> S::F;

    /// Computes the function of a magnitude up to the limit.
    ///
    /// # Safety
    /// As above.
    unsafe fn near<S: Simd>(self, a: S::F) -> S::F;

    /// Computes the function of a magnitude beyond the limit.
    ///
    /// # Safety
    /// As above.
    unsafe fn far<S: Simd>(self, a: S::F) -> S::F;

    /// Computes the result from x and the function's value.
    ///
    /// # Safety
    /// As above.
    unsafe fn finish<S: Simd>(self, x: S::F, value: S::F) -> S::F;
}

/// Computes both methods and selects one for each value.
#[derive(Clone, Copy)]
struct BothSides<F>(F);

impl<F: TwoSided> VectorFn for BothSides<F> {
    const CHAIN: bool = true;

    #[inline(always)]
    unsafe fn apply<S: Simd>(self, x: S::F, _: usize) -> S::F {
        // SAFETY: the caller's promises are passed on.
        unsafe {
            let a = abs::<S>(self.0.argument::<S>(x));
            let value = S::select(S::lt(S::splat(F::LIMIT), a), self.0.far::<S>(a), self.0.near::<S>(a));
            self.0.finish::<S>(x, with_sign::<S>(value, x))
        }
    }
}

/// A function that vectors compute only below a limit. Magnitudes beyond it are rare.
pub trait Bounded: VectorFn {
    /// The bits of the least magnitude beyond the limit.
    const LIMIT: i32;

    /// Computes the function of a value beyond the limit, or of NaN.
    fn beyond(self, x: f32) -> f32;
}

/// A function of two vectors; see [`VectorFn`].
pub trait VectorFn2: Copy {
    /// Computes the function.
    ///
    /// # Safety
    /// Only kernels may call it.
    unsafe fn apply<S: Simd>(self, a: S::F, b: S::F) -> S::F;
}

/// The most values in a vector that a [`VectorFn`] may get.
pub const LONGEST: usize = 64;

/// Computes `y[i] = canonical(f(x[i]))`, vector by vector. Behind the row's end, `f` may read only existing memory.
///
/// # Safety
/// Only kernels may call it. x and y must cover n values, and be equal or disjoint.
#[inline(always)]
pub unsafe fn map_row<S: Simd>(x: *const f32, y: *mut f32, n: usize, f: impl VectorFn) {
    // SAFETY: the caller's promises are passed on.
    unsafe { map::<S, _, true>(x, y, n, f) }
}

/// Does as [`map_row`] without [`canonical`], for results that are not NaN or that are read again.
///
/// # Safety
/// As for [`map_row`].
#[inline(always)]
pub unsafe fn map_row_raw<S: Simd>(x: *const f32, y: *mut f32, n: usize, f: impl VectorFn) {
    // SAFETY: the caller's promises are passed on.
    unsafe { map::<S, _, false>(x, y, n, f) }
}

#[inline(always)]
unsafe fn map<S: Simd, F: VectorFn, const CANONICAL: bool>(x: *const f32, y: *mut f32, n: usize, f: F) {
    // SAFETY: the caller's promises are passed on.
    unsafe {
        if F::HALVES && S::SIDE_BY_SIDE == 4 {
            return map_halves::<Twice<Twice<S>>, F>(x, y, n, f);
        }
        if F::HALVES && S::SIDE_BY_SIDE == 2 {
            return map_halves::<Twice<S>, F>(x, y, n, f);
        }
        // A short function takes two vectors, which unrolls the loop.
        match if F::CHAIN { S::SIDE_BY_SIDE } else { S::SIDE_BY_SIDE.min(2) } {
            4 => map_vectors::<Twice<Twice<S>>, F, CANONICAL>(x, y, n, f),
            2 => map_vectors::<Twice<S>, F, CANONICAL>(x, y, n, f),
            _ => map_vectors::<S, F, CANONICAL>(x, y, n, f),
        }
    }
}

/// Computes `y[i] = canonical(f(x[i]))` for a function with two methods.
///
/// # Safety
/// As for [`map_row`].
#[inline(always)]
pub unsafe fn map_sides<S: Simd>(x: *const f32, y: *mut f32, n: usize, f: impl TwoSided) {
    // SAFETY: the caller's promises are passed on.
    unsafe {
        if S::PACKS {
            map_packed::<Twice<Twice<S>>, _>(x, y, n, f);
        } else {
            map_row::<S>(x, y, n, BothSides(f));
        }
    }
}

/// [`map_bounded`] checks the magnitudes of this many values together.
const BOUNDED: usize = 256;

/// Computes `y[i] = canonical(f(x[i]))` for a function that vectors compute only below a limit.
///
/// # Safety
/// As for [`map_row`].
#[inline(always)]
pub unsafe fn map_bounded<S: Simd, F: Bounded>(x: *const f32, y: *mut f32, n: usize, f: F) {
    let mut kept = MaybeUninit::<[f32; BOUNDED]>::uninit();
    let kept = kept.as_mut_ptr().cast::<f32>();
    let magnitude = |x: f32| x.to_bits() as i32 & i32::MAX;
    let mut start = 0;
    // SAFETY: every block lies below n, and `kept` holds one block.
    unsafe {
        while start < n {
            let count = BOUNDED.min(n - start);
            let (from, to) = (x.add(start), y.add(start));
            let (mut largest, mut i) = (S::splat_i(0), 0);
            while i < count {
                let values = S::load_head(from.add(i), S::LANES.min(count - i));
                largest = S::max_i(largest, S::and_i(S::bits(values), S::splat_i(i32::MAX)));
                i += S::LANES;
            }
            let mut each = [0.0f32; LONGEST];
            S::store(each.as_mut_ptr(), S::from_bits(largest));
            let any = each.iter().any(|&x| magnitude(x) >= F::LIMIT);
            if any {
                kept.copy_from_nonoverlapping(from, count);
            }
            map_row::<S>(from, to, count, f);
            if any {
                for i in 0..count {
                    let x = *kept.add(i);
                    if magnitude(x) >= F::LIMIT {
                        *to.add(i) = crate::contract::canonical(f.beyond(x));
                    }
                }
            }
            start += count;
        }
    }
}

/// [`map_packed`] takes this many values through its steps at a time. They stay in the first-level cache.
const PACKED: usize = 1024;

/// Computes the near method for all values and the far method only for those that need it, packed contiguously, then
/// merges both.
#[inline(always)]
unsafe fn map_packed<S: Simd, F: TwoSided>(x: *const f32, y: *mut f32, n: usize, f: F) {
    let mut values = MaybeUninit::<[f32; PACKED]>::uninit();
    let mut packed = MaybeUninit::<[f32; PACKED + 2 * LONGEST]>::uninit();
    let (values, packed) = (values.as_mut_ptr().cast::<f32>(), packed.as_mut_ptr().cast::<f32>());
    let mut ragged = MaybeUninit::<[f32; PACKED]>::uninit();
    let ragged = ragged.as_mut_ptr().cast::<f32>();
    let mut start = 0;
    // SAFETY: blocks lie below n. A block that is not whole vectors goes through `ragged`, which has room for whole
    // ones. At most PACKED values are packed, and at most one vector is read or written behind them.
    unsafe {
        let limit = S::splat(F::LIMIT);
        while start < n {
            let count = PACKED.min(n - start);
            let whole = count.is_multiple_of(S::LANES);
            let (mut from, mut to) = (x.add(start), y.add(start));
            if !whole {
                ragged.add(count).write_bytes(0, S::LANES - count % S::LANES);
                ragged.copy_from_nonoverlapping(from, count);
                (from, to) = (ragged, ragged);
            }
            let (mut i, mut far) = (0, 0);
            while i < count {
                let a = abs::<S>(f.argument::<S>(S::load(from.add(i))));
                S::store(values.add(i), f.near::<S>(a));
                far += S::pack(packed.add(far), S::lt(limit, a), a);
                i += S::LANES;
            }
            S::store(packed.add(far), limit);
            let mut i = 0;
            while i < far {
                S::store(packed.add(i), f.far::<S>(S::load(packed.add(i))));
                i += S::LANES;
            }
            let (mut i, mut far) = (0, 0);
            while i < count {
                let x = S::load(from.add(i));
                let beyond = S::lt(limit, abs::<S>(f.argument::<S>(x)));
                let (value, used) = S::unpack(packed.add(far), beyond, S::load(values.add(i)));
                S::store(to.add(i), canonical::<S>(f.finish::<S>(x, with_sign::<S>(value, x))));
                far += used;
                i += S::LANES;
            }
            if !whole {
                y.add(start).copy_from_nonoverlapping(ragged, count);
            }
            start += count;
        }
    }
}

/// [`map_halves`] holds the first halves of this many values at a time.
const HELD: usize = 256;

#[inline(always)]
unsafe fn map_halves<S: Simd, F: VectorFn>(x: *const f32, y: *mut f32, n: usize, f: F) {
    let mut held = [MaybeUninit::<[f32; HELD]>::uninit(); 4];
    let [first, second, third, fourth] = held.each_mut().map(|held| held.as_mut_ptr().cast::<f32>());
    let mut start = 0;
    // SAFETY: blocks lie below n. A block that is not whole vectors goes through `first`, which has room for whole
    // ones.
    unsafe {
        while start < n {
            let count = HELD.min(n - start);
            let whole = count.is_multiple_of(S::LANES);
            let (mut from, mut to) = (x.add(start), y.add(start));
            if !whole {
                first.add(count).write_bytes(0, S::LANES - count % S::LANES);
                first.copy_from_nonoverlapping(from, count);
                (from, to) = (first, first);
            }
            let mut i = 0;
            while i < count {
                let [a, b, c, d] = f.begin::<S>(S::load(from.add(i)));
                S::store(first.add(i), a);
                S::store(second.add(i), b);
                S::store(third.add(i), c);
                S::store(fourth.add(i), d);
                i += S::LANES;
            }
            let mut i = 0;
            while i < count {
                let held =
                    [S::load(first.add(i)), S::load(second.add(i)), S::load(third.add(i)), S::load(fourth.add(i))];
                S::store(to.add(i), canonical::<S>(f.end::<S>(held)));
                i += S::LANES;
            }
            if !whole {
                y.add(start).copy_from_nonoverlapping(first, count);
            }
            start += count;
        }
    }
}

#[inline(always)]
unsafe fn map_vectors<S: Simd, F: VectorFn, const CANONICAL: bool>(x: *const f32, y: *mut f32, n: usize, f: F) {
    // SAFETY: whole vectors lie below n. The rest goes through `last`, which holds the longest vector.
    unsafe {
        let tail = n % S::LANES;
        let whole = n - tail;
        let mut last = [F::PADDING; LONGEST];
        // Copied outside the loop, so the loop contains no call and keeps its constants in registers.
        last.as_mut_ptr().copy_from_nonoverlapping(x.add(whole), tail);
        let (mut from, mut to, mut base, mut end) = (x, y, 0, whole);
        loop {
            let mut i = 0;
            while i < end {
                let result = f.apply::<S>(S::load(from.add(i)), base + i);
                S::store(to.add(i), if CANONICAL { canonical::<S>(result) } else { result });
                i += S::LANES;
            }
            if base + i >= n {
                break;
            }
            (from, to, base, end) = (last.as_ptr(), last.as_mut_ptr(), whole, S::LANES);
        }
        y.add(whole).copy_from_nonoverlapping(last.as_ptr(), tail);
    }
}

/// Computes `y[i] = canonical(f(a[i·A], b[i·B]))` for steps A and B of 0 or 1.
///
/// # Safety
/// Only kernels may call it. y must cover n values; a and b too, or one value if their step is 0. An operand must equal
/// y or be disjoint from it.
#[inline(always)]
pub unsafe fn zip_row<S: Simd, const A: usize, const B: usize>(
    a: *const f32,
    b: *const f32,
    y: *mut f32,
    n: usize,
    f: impl VectorFn2,
) {
    // SAFETY: as in `map_vectors`.
    unsafe {
        let tail = n % S::LANES;
        let whole = n - tail;
        let (mut last_a, mut last_b) = ([0.0f32; 16], [0.0f32; 16]);
        last_a.as_mut_ptr().copy_from_nonoverlapping(a.add(whole * A), if A == 0 { 1 } else { tail });
        last_b.as_mut_ptr().copy_from_nonoverlapping(b.add(whole * B), if B == 0 { 1 } else { tail });
        let (a_one, b_one) = (S::splat(if A == 0 { *a } else { 0.0 }), S::splat(if B == 0 { *b } else { 0.0 }));
        let (mut from_a, mut from_b, mut to, mut base, mut end) = (a, b, y, 0, whole);
        loop {
            let mut i = 0;
            while i < end {
                let left = if A == 0 { a_one } else { S::load(from_a.add(i)) };
                let right = if B == 0 { b_one } else { S::load(from_b.add(i)) };
                S::store(to.add(i), canonical::<S>(f.apply::<S>(left, right)));
                i += S::LANES;
            }
            if base + i >= n {
                break;
            }
            (from_a, from_b, to) = (last_a.as_ptr(), last_b.as_ptr(), last_a.as_mut_ptr());
            (base, end) = (whole, S::LANES);
        }
        y.add(whole).copy_from_nonoverlapping(last_a.as_ptr(), tail);
    }
}
