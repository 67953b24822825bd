//! Blocks of as many rows of the matrix as a vector has lanes, unpacked: each lane is a row's.

use super::CHUNK;
use crate::contract::{BlockFormat, BlockValues, read_block};
use crate::hal::cpu::simd::{Simd, unroll};

/// The most lanes of a vector.
const LANES: usize = 16;

/// [`CHUNK`] elements of some rows, or the rest of K. Each entry is a vector.
#[repr(align(64))]
pub struct Panel {
    /// Elements, in the order of the rows of x: four to an entry, as bytes, or two, as halves of 16 bits. They are at least 0: see
    /// [`middle`].
    pub elements: [[i32; LANES]; CHUNK / 2],
    /// The blocks' scales, and the factors of their minima.
    pub d: [[f32; LANES]; CHUNK / 32],
    pub m: [[f32; LANES]; CHUNK / 32],
    /// The scales and minima of the parts of a block of 256.
    pub scales: [[i32; LANES]; 16],
    pub minima: [[i32; LANES]; 8],
}

impl Panel {
    pub const ZERO: Panel = Panel {
        elements: [[0; LANES]; CHUNK / 2],
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

/// Stores the elements 4i to 4i + 3 of each row, which are bytes: as one entry if `FOURS`, else as two.
#[inline(always)]
unsafe fn put_four<S: Simd, const FOURS: bool>(to: Entry, i: usize, four: S::I) {
    // SAFETY: the panel has these entries.
    unsafe {
        if FOURS {
            return put::<S>(to.add(i), four);
        }
        let even = S::splat_i(0x00ff_00ff);
        put::<S>(to.add(2 * i), S::and_i(four, even));
        put::<S>(to.add(2 * i + 1), S::and_i(S::sar::<8>(four), even));
    }
}

/// Memory that is asked for ahead of its use, a few lines of the cache at a time: a processor waits if it asks for many at once.
pub struct Ahead {
    pub at: *const u8,
    pub lines: usize,
}

impl Ahead {
    #[inline(always)]
    unsafe fn ask<S: Simd>(&mut self, lines: usize) {
        let lines = lines.min(self.lines);
        for line in 0..lines {
            // SAFETY: a hint, for any address.
            unsafe { S::prefetch_to_second(self.at.wrapping_add(64 * line).cast()) };
        }
        self.at = self.at.wrapping_add(64 * lines);
        self.lines -= lines;
    }
}

/// Unpacks `blocks` blocks of each lane's row. The first row's begin at `from`, and rows are `stride` bytes apart.
///
/// # Safety
/// All of the lanes' rows have these blocks.
#[inline(always)]
pub unsafe fn unpack<S: Simd, const FOURS: bool>(
    format: BlockFormat,
    from: *const u8,
    stride: usize,
    blocks: usize,
    to: &mut Panel,
    ahead: &mut Ahead,
) {
    for block in 0..blocks {
        // SAFETY: blocks have these bytes; each read of 16 lies inside one.
        unsafe {
            let at = from.add(block * format.bytes());
            let head = S::columns(at, stride);
            if format.elements() == 32 {
                ahead.ask::<S>((S::LANES * format.bytes()).div_ceil(64));
            }
            let elements = to.elements.as_mut_ptr().add(block * format.elements() / if FOURS { 4 } else { 2 });
            let (d, m) = (to.d[block].as_mut_ptr(), to.m[block].as_mut_ptr());
            match format {
                BlockFormat::Q8_0 => {
                    S::store(d, S::from_half(head[0]));
                    for half in 0..2 {
                        let four = S::columns(at.add(2 + 16 * half), stride);
                        for i in 0..4 {
                            put_four::<S, FOURS>(
                                elements,
                                4 * half + i,
                                S::xor_i(four[i], S::splat_i(0x8080_8080_u32 as i32)),
                            );
                        }
                    }
                }
                BlockFormat::Q4_0 | BlockFormat::Q4_1 | BlockFormat::Q5_0 | BlockFormat::Q5_1 => {
                    S::store(d, S::from_half(head[0]));
                    S::store(m, S::from_half(S::sar::<16>(head[0])));
                    let (first, bits) = match format {
                        BlockFormat::Q4_0 => (2, None),
                        BlockFormat::Q4_1 => (4, None),
                        BlockFormat::Q5_0 => {
                            let low = S::and_i(S::sar::<16>(head[0]), S::splat_i(0xffff));
                            (6, Some(S::or_i(low, S::shl::<16>(head[1]))))
                        }
                        _ => (8, Some(head[1])),
                    };
                    nibbles::<S, FOURS>(S::columns(at.add(first), stride), bits, elements);
                }
                BlockFormat::Q4_K | BlockFormat::Q5_K => {
                    S::store(d, S::from_half(head[0]));
                    // Minima are subtracted.
                    S::store(
                        m,
                        S::from_bits(S::xor_i(S::bits(S::from_half(S::sar::<16>(head[0]))), S::splat_i(i32::MIN))),
                    );
                    part_scales::<S>([head[1], head[2], head[3]], to);
                    let bits = (format == BlockFormat::Q5_K).then(|| at.add(16));
                    let at = at.add(if bits.is_some() { 48 } else { 16 });
                    fours_and_fives::<S, FOURS>(at, bits, stride, elements, ahead);
                }
                BlockFormat::Q6_K => {
                    let tail = S::columns(at.add(194), stride);
                    S::store(d, S::from_half(S::sar::<16>(tail[3])));
                    let mut scales = S::columns(at.add(192), stride);
                    for byte in 0..16 {
                        let four = &mut scales[byte / 4];
                        put::<S>(&mut to.scales[byte], S::sar::<24>(S::shl::<24>(*four)));
                        *four = S::sar::<8>(*four);
                    }
                    sixes::<S, FOURS>(at, stride, elements, ahead);
                }
            }
        }
    }
}

/// Unpacks what [`unpack`] does, row by row and in a twelfth of the code, for the smallest library. Lanes without a row keep what
/// they have.
///
/// # Safety
/// As for [`unpack`].
pub unsafe fn unpack_rows(
    format: BlockFormat,
    from: *const u8,
    stride: usize,
    lanes: usize,
    blocks: usize,
    to: &mut Panel,
) {
    for (lane, block) in (0..lanes).flat_map(|lane| (0..blocks).map(move |block| (lane, block))) {
        // SAFETY: the lane's row has this block.
        let bytes =
            unsafe { std::slice::from_raw_parts(from.add(lane * stride + block * format.bytes()), format.bytes()) };
        let BlockValues { d, m, part, scales, minima, values } = read_block(format, bytes);
        (to.d[block][lane], to.m[block][lane]) = (d, m);
        for part in 0..format.elements() / part {
            to.scales[part][lane] = scales[part];
            if let Some(of_part) = to.minima.get_mut(part) {
                of_part[lane] = minima[part];
            }
        }
        // An entry has elements 0 and 2 of four, the next 1 and 3.
        let elements = &mut to.elements[block * format.elements() / 2..];
        for (i, four) in values[..format.elements()].chunks_exact(4).enumerate() {
            let pair = |low: i32, high: i32| (low + middle(format)) | ((high + middle(format)) << 16);
            elements[2 * i][lane] = pair(four[0], four[2]);
            elements[2 * i + 1][lane] = pair(four[1], four[3]);
        }
    }
}

/// Unpacks 32 elements: low halves of bytes, then high ones. `bits` has a fifth bit of each, the first element's lowest.
#[inline(always)]
unsafe fn nibbles<S: Simd, const FOURS: bool>(bytes: [S::I; 4], bits: Option<S::I>, elements: Entry) {
    // SAFETY: the instruction set is available.
    unsafe {
        let low = S::splat_i(0x0f0f_0f0f);
        let mut fours = [low; 8];
        unroll!(i < 4 => {
            fours[i] = S::and_i(bytes[i], low);
            fours[i + 4] = S::and_i(S::sar::<4>(bytes[i]), low);
        });
        if let Some(bits) = bits {
            let mut rest = bits;
            for four in &mut fours {
                let first = S::and_i(S::shl::<4>(rest), S::splat_i(0x10));
                let second = S::and_i(S::shl::<11>(rest), S::splat_i(0x1000));
                let third = S::and_i(S::shl::<18>(rest), S::splat_i(0x10_0000));
                let fourth = S::and_i(S::shl::<25>(rest), S::splat_i(0x1000_0000));
                *four = S::or_i(*four, S::or_i(S::or_i(first, second), S::or_i(third, fourth)));
                rest = S::sar::<4>(rest);
            }
        }
        unroll!(i < 8 => { put_four::<S, FOURS>(elements, i, fours[i]); });
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
unsafe fn fours_and_fives<S: Simd, const FOURS: bool>(
    at: *const u8,
    bits: Option<*const u8>,
    stride: usize,
    elements: Entry,
    ahead: &mut Ahead,
) {
    // SAFETY: the block has these bytes.
    unsafe {
        let low = S::splat_i(0x0f0f_0f0f);
        let mut fifths = [low; 8];
        if let Some(bits) = bits {
            fifths = both::<S>(bits, stride);
        }
        for group in 0..4 {
            ahead.ask::<S>(S::LANES * 176 / 64 / 4);
            let mut bytes = both::<S>(at.add(32 * group), stride);
            for part in 2 * group..2 * group + 2 {
                let mut fours = [low; 8];
                unroll!(i < 8 => {
                    fours[i] = S::and_i(bytes[i], low);
                    bytes[i] = S::sar::<4>(bytes[i]);
                });
                if bits.is_some() {
                    unroll!(i < 8 => {
                        fours[i] = S::or_i(fours[i], S::and_i(S::shl::<4>(fifths[i]), S::splat_i(0x1010_1010)));
                        fifths[i] = S::sar::<1>(fifths[i]);
                    });
                }
                unroll!(i < 8 => { put_four::<S, FOURS>(elements, part * 8 + i, fours[i]); });
            }
        }
    }
}

/// Unpacks 256 elements of 6 bits: each half has 64 bytes of four low bits and, behind both of them, 32 of two high bits.
#[inline(always)]
unsafe fn sixes<S: Simd, const FOURS: bool>(at: *const u8, stride: usize, elements: Entry, ahead: &mut Ahead) {
    // SAFETY: the block has these bytes.
    unsafe {
        for half in 0..2 {
            let low = [both::<S>(at.add(64 * half), stride), both::<S>(at.add(64 * half + 32), stride)];
            let mut high = both::<S>(at.add(128 + 32 * half), stride);
            for quarter in 0..4 {
                ahead.ask::<S>((S::LANES * 210).div_ceil(64 * 8));
                for i in 0..8 {
                    let bytes = low[quarter % 2][i];
                    let four = S::and_i(if quarter < 2 { bytes } else { S::sar::<4>(bytes) }, S::splat_i(0x0f0f_0f0f));
                    let two = S::and_i(S::shl::<4>(high[i]), S::splat_i(0x3030_3030));
                    put_four::<S, FOURS>(elements, (4 * half + quarter) * 8 + i, S::or_i(four, two));
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
