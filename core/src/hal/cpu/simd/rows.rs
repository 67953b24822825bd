//! Loops over rows of values. Each stands once in a kernel: what is left of the last vector goes through the same loop
//! on a copy, so that a function of fifty instructions is not compiled a second time for the tail.

use super::Simd;
use super::math::{abs, canonical, with_sign};
use super::twice::Twice;
use std::mem::MaybeUninit;

/// A function of one vector. A trait and not a closure: a closure that the compiler does not inline has lost the
/// instruction set, which is slow and not sound.
pub trait VectorFn: Copy {
    /// Whether it is a long chain of instructions that wait for each other, so that several vectors should be under way.
    const CHAIN: bool = false;
    /// What a row's last vector is filled with.
    const PADDING: f32 = 0.0;

    /// Whether it also comes as two halves. Then a row's first halves are done some vectors ahead of the second ones,
    /// so that nobody waits for the division that stands between.
    const HALVES: bool = false;

    /// The first half: what the second one needs.
    ///
    /// # Safety
    /// As [`VectorFn::apply`].
    #[inline(always)]
    unsafe fn begin<S: Simd>(self, x: S::F) -> [S::F; 3] {
        [x; 3]
    }

    /// The second half.
    ///
    /// # Safety
    /// As [`VectorFn::apply`].
    #[inline(always)]
    unsafe fn end<S: Simd>(self, held: [S::F; 3]) -> S::F {
        held[0]
    }

    /// The function of x, whose first value has this offset in its row. Implementations are `#[inline(always)]`.
    ///
    /// # Safety
    /// Called from a kernel.
    unsafe fn apply<S: Simd>(self, x: S::F, at: usize) -> S::F;
}

/// An odd function of x's multiple, in one way near 0 and in another beyond a limit, and something made of it.
pub trait TwoSided: Copy {
    /// Beyond this the other way is taken; NaN is near.
    const LIMIT: f32;

    /// What the function is taken of: a positive multiple of x.
    ///
    /// # Safety
    /// Called from a kernel, as all of these.
    unsafe fn argument<S: Simd>(self, x: S::F) -> S::F;

    /// The function of a magnitude up to the limit.
    ///
    /// # Safety
    /// As above.
    unsafe fn near<S: Simd>(self, a: S::F) -> S::F;

    /// The function of a magnitude beyond.
    ///
    /// # Safety
    /// As above.
    unsafe fn far<S: Simd>(self, a: S::F) -> S::F;

    /// What is made of x and the function's value.
    ///
    /// # Safety
    /// As above.
    unsafe fn finish<S: Simd>(self, x: S::F, value: S::F) -> S::F;
}

/// Both sides of a function, chosen from value by value.
#[derive(Clone, Copy)]
struct BothSides<F>(F);

impl<F: TwoSided> VectorFn for BothSides<F> {
    const CHAIN: bool = true;

    #[inline(always)]
    unsafe fn apply<S: Simd>(self, x: S::F, _: usize) -> S::F {
        // SAFETY: passed on.
        unsafe {
            let a = abs::<S>(self.0.argument::<S>(x));
            let value = S::select(S::lt(S::splat(F::LIMIT), a), self.0.far::<S>(a), self.0.near::<S>(a));
            self.0.finish::<S>(x, with_sign::<S>(value, x))
        }
    }
}

/// A function that vectors compute only below a magnitude; what is beyond is rare.
pub trait Bounded: VectorFn {
    /// The bits of the least magnitude beyond.
    const LIMIT: i32;

    /// The function of a value beyond, or of NaN.
    fn beyond(self, x: f32) -> f32;
}

/// A function of two vectors, as [`VectorFn`].
pub trait VectorFn2: Copy {
    /// The function.
    ///
    /// # Safety
    /// Called from a kernel.
    unsafe fn apply<S: Simd>(self, a: S::F, b: S::F) -> S::F;
}

/// Values in the longest vector that a [`VectorFn`] may be given.
pub const LONGEST: usize = 64;

/// `y[i] = canonical(f(x[i]))`, vector by vector; `f` may read beyond the row's end only what is there.
///
/// # Safety
/// Called from a kernel; x and y cover n values and are equal or disjoint.
#[inline(always)]
pub unsafe fn map_row<S: Simd>(x: *const f32, y: *mut f32, n: usize, f: impl VectorFn) {
    // SAFETY: passed on.
    unsafe { map::<S, _, true>(x, y, n, f) }
}

/// As [`map_row`], for results that are not NaN or are read again: NaN is stored as it comes.
///
/// # Safety
/// As [`map_row`].
#[inline(always)]
pub unsafe fn map_row_raw<S: Simd>(x: *const f32, y: *mut f32, n: usize, f: impl VectorFn) {
    // SAFETY: passed on.
    unsafe { map::<S, _, false>(x, y, n, f) }
}

#[inline(always)]
unsafe fn map<S: Simd, F: VectorFn, const CANONICAL: bool>(x: *const f32, y: *mut f32, n: usize, f: F) {
    // SAFETY: passed on.
    unsafe {
        if F::HALVES && S::SIDE_BY_SIDE == 4 {
            return map_halves::<Twice<Twice<S>>, F>(x, y, n, f);
        }
        if F::HALVES && S::SIDE_BY_SIDE == 2 {
            return map_halves::<Twice<S>, F>(x, y, n, f);
        }
        // Of a short function two, which is the loop unrolled.
        match if F::CHAIN { S::SIDE_BY_SIDE } else { S::SIDE_BY_SIDE.min(2) } {
            4 => map_vectors::<Twice<Twice<S>>, F, CANONICAL>(x, y, n, f),
            2 => map_vectors::<Twice<S>, F, CANONICAL>(x, y, n, f),
            _ => map_vectors::<S, F, CANONICAL>(x, y, n, f),
        }
    }
}

/// `y[i] = canonical(f(x[i]))` for a function of two sides.
///
/// # Safety
/// As [`map_row`].
#[inline(always)]
pub unsafe fn map_sides<S: Simd>(x: *const f32, y: *mut f32, n: usize, f: impl TwoSided) {
    // SAFETY: passed on.
    unsafe {
        if S::PACKS {
            map_packed::<Twice<Twice<S>>, _>(x, y, n, f);
        } else {
            map_row::<S>(x, y, n, BothSides(f));
        }
    }
}

/// Values whose magnitudes [`map_bounded`] looks at together.
const BOUNDED: usize = 256;

/// `y[i] = canonical(f(x[i]))` for a function that vectors compute only of small values.
///
/// # Safety
/// As [`map_row`].
#[inline(always)]
pub unsafe fn map_bounded<S: Simd, F: Bounded>(x: *const f32, y: *mut f32, n: usize, f: F) {
    let mut kept = MaybeUninit::<[f32; BOUNDED]>::uninit();
    let kept = kept.as_mut_ptr().cast::<f32>();
    let magnitude = |x: f32| x.to_bits() as i32 & i32::MAX;
    let mut start = 0;
    // SAFETY: blocks lie below n, and `kept` holds one.
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

/// Values that are taken through the steps of [`map_packed`] at a time: few enough to stay in the first cache.
const PACKED: usize = 1024;

/// The near side of all values; the far side of those that need it, packed side by side; both put together.
#[inline(always)]
unsafe fn map_packed<S: Simd, F: TwoSided>(x: *const f32, y: *mut f32, n: usize, f: F) {
    let mut values = MaybeUninit::<[f32; PACKED]>::uninit();
    let mut packed = MaybeUninit::<[f32; PACKED + 2 * LONGEST]>::uninit();
    let (values, packed) = (values.as_mut_ptr().cast::<f32>(), packed.as_mut_ptr().cast::<f32>());
    let mut ragged = MaybeUninit::<[f32; PACKED]>::uninit();
    let ragged = ragged.as_mut_ptr().cast::<f32>();
    let mut start = 0;
    // SAFETY: blocks lie below n; one that is not made of whole vectors goes through `ragged`, which has room for them.
    // At most PACKED values are packed, and at most a vector is read or written behind them.
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

/// Values whose first halves are held at a time.
const HELD: usize = 256;

#[inline(always)]
unsafe fn map_halves<S: Simd, F: VectorFn>(x: *const f32, y: *mut f32, n: usize, f: F) {
    let mut held = [MaybeUninit::<[f32; HELD]>::uninit(); 3];
    let [first, second, third] = held.each_mut().map(|held| held.as_mut_ptr().cast::<f32>());
    let mut start = 0;
    // SAFETY: blocks lie below n; one that is not made of whole vectors goes through `first`, which has room for them.
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
                let [a, b, c] = f.begin::<S>(S::load(from.add(i)));
                S::store(first.add(i), a);
                S::store(second.add(i), b);
                S::store(third.add(i), c);
                i += S::LANES;
            }
            let mut i = 0;
            while i < count {
                let held = [S::load(first.add(i)), S::load(second.add(i)), S::load(third.add(i))];
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
    // SAFETY: whole vectors lie below n; the rest is handled in `last`, which holds any vector.
    unsafe {
        let tail = n % S::LANES;
        let whole = n - tail;
        let mut last = [F::PADDING; LONGEST];
        // Copied out and back outside the loop, which then has no call in it and keeps its constants.
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

/// `y[i] = canonical(f(a[i·A], b[i·B]))` for steps A and B of 0 or 1.
///
/// # Safety
/// Called from a kernel; y covers n values, a and b as many or, where the step is 0, one. An operand is y or disjoint.
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
