//! Blocks of as many rows of the matrix as a vector has lanes, unpacked: each lane is a row's.

use super::CHUNK;
use crate::contract::BlockFormat;
use crate::hal::cpu::simd::Simd;

/// The most lanes of a vector.
const LANES: usize = 16;

/// [`CHUNK`] elements of some rows, or the rest of K. Each entry is a vector.
#[repr(align(64))]
pub struct Panel {
    /// Pairs of elements, as halves of 16 bits, in the order of the rows of x. Elements are at least 0: see [`middle`].
    pub pairs: [[i32; LANES]; CHUNK / 2],
    /// The blocks' scales, and the factors of their minima.
    pub d: [[f32; LANES]; CHUNK / 32],
    pub m: [[f32; LANES]; CHUNK / 32],
    /// The scales and minima of the parts of a block of 256.
    pub scales: [[i32; LANES]; 16],
    pub minima: [[i32; LANES]; 8],
}

impl Panel {
    pub const ZERO: Panel = Panel {
        pairs: [[0; LANES]; CHUNK / 2],
        d: [[0.0; LANES]; CHUNK / 32],
        m: [[0.0; LANES]; CHUNK / 32],
        scales: [[0; LANES]; 16],
        minima: [[0; LANES]; 8],
    };
}

/// Returns what a panel's elements are above the format's.
pub fn middle(format: BlockFormat) -> i32 {
    match format {
        BlockFormat::Q8_0 => 128,
        BlockFormat::Q4_0 => 8,
        BlockFormat::Q5_0 => 16,
        BlockFormat::Q6_K => 32,
        _ => 0,
    }
}

/// An entry of a panel. Pointers are passed on instead of slices, whose checks cost as much as the work.
type Entry = *mut [i32; LANES];

#[inline(always)]
unsafe fn put<S: Simd>(to: Entry, x: S::I) {
    // SAFETY: an entry has room for a vector.
    unsafe { S::store(to.cast(), S::from_bits(x)) }
}

/// Stores four elements of each row, a byte each, as two pairs.
#[inline(always)]
unsafe fn put_four<S: Simd>(to: Entry, four: S::I) {
    // SAFETY: the caller has two entries.
    unsafe {
        let even = S::splat_i(0x00ff_00ff);
        put::<S>(to, S::and_i(four, even));
        put::<S>(to.add(1), S::and_i(S::sar::<8>(four), even));
    }
}

/// The value of each lane's low 16 bits as f16.
#[inline(always)]
unsafe fn widen<S: Simd>(half: S::I) -> S::F {
    // SAFETY: the instruction set is available.
    unsafe {
        let magnitude = S::and_i(half, S::splat_i(0x7fff));
        let sign = S::shl::<16>(S::and_i(half, S::splat_i(0x8000)));
        let exponent = S::to_float(S::and_i(half, S::splat_i(0x7c00)));
        let normal = S::add_i(S::shl::<13>(magnitude), S::splat_i(112 << 23));
        // Infinities and NaNs have the largest exponent here too.
        let special = S::add_i(normal, S::splat_i(112 << 23));
        // A subnormal is its integer times 2⁻²⁴.
        let tiny = S::bits(S::mul(S::to_float(magnitude), S::splat(f32::from_bits((127 - 24) << 23))));
        let value = S::select_i(S::eq(exponent, S::splat(0.0)), tiny, normal);
        let value = S::select_i(S::eq(exponent, S::splat(0x7c00 as f32)), special, value);
        S::from_bits(S::or_i(value, sign))
    }
}

/// Unpacks `blocks` blocks of each lane's row. The first row's begin at `from`, and rows are `stride` bytes apart.
///
/// # Safety
/// All of the lanes' rows have these blocks.
#[inline(always)]
pub unsafe fn unpack<S: Simd>(format: BlockFormat, from: *const u8, stride: usize, blocks: usize, to: &mut Panel) {
    for block in 0..blocks {
        // SAFETY: blocks have these bytes; each read of 16 lies inside one.
        unsafe {
            let at = from.add(block * format.bytes());
            let head = S::columns(at, stride);
            let pairs = to.pairs.as_mut_ptr().add(block * format.elements() / 2);
            let (d, m) = (to.d[block].as_mut_ptr(), to.m[block].as_mut_ptr());
            match format {
                BlockFormat::Q8_0 => {
                    S::store(d, widen::<S>(head[0]));
                    for half in 0..2 {
                        let four = S::columns(at.add(2 + 16 * half), stride);
                        for i in 0..4 {
                            put_four::<S>(
                                pairs.add(8 * half + 2 * i),
                                S::xor_i(four[i], S::splat_i(0x8080_8080_u32 as i32)),
                            );
                        }
                    }
                }
                BlockFormat::Q4_0 | BlockFormat::Q4_1 | BlockFormat::Q5_0 | BlockFormat::Q5_1 => {
                    S::store(d, widen::<S>(head[0]));
                    S::store(m, widen::<S>(S::sar::<16>(head[0])));
                    let (first, bits) = match format {
                        BlockFormat::Q4_0 => (2, None),
                        BlockFormat::Q4_1 => (4, None),
                        BlockFormat::Q5_0 => {
                            let low = S::and_i(S::sar::<16>(head[0]), S::splat_i(0xffff));
                            (6, Some(S::or_i(low, S::shl::<16>(head[1]))))
                        }
                        _ => (8, Some(head[1])),
                    };
                    nibbles::<S>(S::columns(at.add(first), stride), bits, pairs);
                }
                BlockFormat::Q4_K | BlockFormat::Q5_K => {
                    S::store(d, widen::<S>(head[0]));
                    // Minima are subtracted.
                    S::store(
                        m,
                        S::from_bits(S::xor_i(S::bits(widen::<S>(S::sar::<16>(head[0]))), S::splat_i(i32::MIN))),
                    );
                    part_scales::<S>([head[1], head[2], head[3]], to);
                    let bits = (format == BlockFormat::Q5_K).then(|| at.add(16));
                    fours_and_fives::<S>(at.add(if bits.is_some() { 48 } else { 16 }), bits, stride, pairs);
                }
                BlockFormat::Q6_K => {
                    let tail = S::columns(at.add(194), stride);
                    S::store(d, widen::<S>(S::sar::<16>(tail[3])));
                    let mut scales = S::columns(at.add(192), stride);
                    for byte in 0..16 {
                        let four = &mut scales[byte / 4];
                        put::<S>(&mut to.scales[byte], S::sar::<24>(S::shl::<24>(*four)));
                        *four = S::sar::<8>(*four);
                    }
                    sixes::<S>(at, stride, pairs);
                }
            }
        }
    }
}

/// Unpacks 32 elements: low halves of bytes, then high ones. `bits` has a fifth bit of each, the first element's lowest.
#[inline(always)]
unsafe fn nibbles<S: Simd>(bytes: [S::I; 4], bits: Option<S::I>, pairs: Entry) {
    // SAFETY: the instruction set is available.
    unsafe {
        let low = S::splat_i(0x0f0f_0f0f);
        let mut bits = bits;
        for i in 0..8 {
            let bytes = bytes[i % 4];
            let mut four = S::and_i(if i < 4 { bytes } else { S::sar::<4>(bytes) }, low);
            if let Some(rest) = &mut bits {
                let first = S::and_i(S::shl::<4>(*rest), S::splat_i(0x10));
                let second = S::and_i(S::shl::<11>(*rest), S::splat_i(0x1000));
                let third = S::and_i(S::shl::<18>(*rest), S::splat_i(0x10_0000));
                let fourth = S::and_i(S::shl::<25>(*rest), S::splat_i(0x1000_0000));
                four = S::or_i(four, S::or_i(S::or_i(first, second), S::or_i(third, fourth)));
                *rest = S::sar::<4>(*rest);
            }
            put_four::<S>(pairs.add(2 * i), four);
        }
    }
}

/// Unpacks the scales and minima of eight parts, 6 bits each.
#[inline(always)]
unsafe fn part_scales<S: Simd>([scales, minima, rest]: [S::I; 3], to: &mut Panel) {
    // SAFETY: the instruction set is available.
    unsafe {
        let (mut scales, mut minima, mut rest) = (scales, minima, rest);
        let (six, four) = (S::splat_i(63), S::splat_i(15));
        for part in 0..4 {
            put::<S>(&mut to.scales[part], S::and_i(scales, six));
            put::<S>(&mut to.minima[part], S::and_i(minima, six));
            // The upper two bits of the fifth to eighth come from the bytes of the first to fourth.
            let upper = S::splat_i(48);
            let (of_scales, of_minima) = (S::and_i(S::sar::<2>(scales), upper), S::and_i(S::sar::<2>(minima), upper));
            put::<S>(&mut to.scales[part + 4], S::or_i(S::and_i(rest, four), of_scales));
            put::<S>(&mut to.minima[part + 4], S::or_i(S::and_i(S::sar::<4>(rest), four), of_minima));
            (scales, minima, rest) = (S::sar::<8>(scales), S::sar::<8>(minima), S::sar::<8>(rest));
        }
    }
}

/// Unpacks 256 elements of 4 bits: of each 32 bytes the low halves, then the high ones. `bits` has 32 bytes with a fifth bit, of
/// the first 32 elements the lowest.
#[inline(always)]
unsafe fn fours_and_fives<S: Simd>(at: *const u8, bits: Option<*const u8>, stride: usize, pairs: Entry) {
    // SAFETY: the block has these bytes.
    unsafe {
        let zero = S::splat_i(0);
        let mut fifths = [zero; 8];
        if let Some(bits) = bits {
            fifths = both::<S>(bits, stride);
        }
        for group in 0..4 {
            let bytes = both::<S>(at.add(32 * group), stride);
            for part in 0..2 {
                for i in 0..8 {
                    let four =
                        S::and_i(if part == 0 { bytes[i] } else { S::sar::<4>(bytes[i]) }, S::splat_i(0x0f0f_0f0f));
                    let fifth = S::and_i(S::shl::<4>(fifths[i]), S::splat_i(0x1010_1010));
                    put_four::<S>(pairs.add((2 * group + part) * 16 + 2 * i), S::or_i(four, fifth));
                    fifths[i] = S::sar::<1>(fifths[i]);
                }
            }
        }
    }
}

/// Unpacks 256 elements of 6 bits: each half has 64 bytes of four low bits and, behind both of them, 32 of two high bits.
#[inline(always)]
unsafe fn sixes<S: Simd>(at: *const u8, stride: usize, pairs: Entry) {
    // SAFETY: the block has these bytes.
    unsafe {
        for half in 0..2 {
            let low = [both::<S>(at.add(64 * half), stride), both::<S>(at.add(64 * half + 32), stride)];
            let mut high = both::<S>(at.add(128 + 32 * half), stride);
            for quarter in 0..4 {
                for i in 0..8 {
                    let bytes = low[quarter % 2][i];
                    let four = S::and_i(if quarter < 2 { bytes } else { S::sar::<4>(bytes) }, S::splat_i(0x0f0f_0f0f));
                    let two = S::and_i(S::shl::<4>(high[i]), S::splat_i(0x3030_3030));
                    put_four::<S>(pairs.add((4 * half + quarter) * 16 + 2 * i), S::or_i(four, two));
                    high[i] = S::sar::<2>(high[i]);
                }
            }
        }
    }
}

/// 32 bytes of each row.
#[inline(always)]
unsafe fn both<S: Simd>(at: *const u8, stride: usize) -> [S::I; 8] {
    // SAFETY: as the caller says.
    unsafe {
        let ([a, b, c, d], [e, f, g, h]) = (S::columns(at, stride), S::columns(at.add(16), stride));
        [a, b, c, d, e, f, g, h]
    }
}
