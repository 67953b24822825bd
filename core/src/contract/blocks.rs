//! Matrices in blocks of GGUF's formats: what a block's bytes mean, and products with rows that are cut into blocks of 8 bits.

use super::{f16_to_f32, fmaz};
use crate::error::{Error, Result, Status};
use std::str::FromStr;

/// How the elements of a quantised matrix are stored: in blocks along a row, each with its scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
#[allow(non_camel_case_types)] // As GGUF names them.
pub enum BlockFormat {
    /// 32 elements of 8 bits, one scale: 34 bytes.
    Q8_0 = 0,
    /// 32 elements of 4 bits, one scale: 18 bytes.
    Q4_0 = 1,
    /// 32 elements of 4 bits, a scale and a minimum: 20 bytes.
    Q4_1 = 2,
    /// 32 elements of 5 bits, one scale: 22 bytes.
    Q5_0 = 3,
    /// 32 elements of 5 bits, a scale and a minimum: 24 bytes.
    Q5_1 = 4,
    /// 256 elements of 4 bits, a scale and a minimum for each 32: 144 bytes.
    Q4_K = 5,
    /// 256 elements of 5 bits, a scale and a minimum for each 32: 176 bytes.
    Q5_K = 6,
    /// 256 elements of 6 bits, a scale for each 16: 210 bytes.
    Q6_K = 7,
}

impl BlockFormat {
    /// Every format, in numeric order.
    pub const ALL: [BlockFormat; 8] = {
        use BlockFormat::*;
        [Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K]
    };

    /// Returns the name that every language uses, such as `q4_k`.
    pub const fn name(self) -> &'static str {
        match self {
            BlockFormat::Q8_0 => "q8_0",
            BlockFormat::Q4_0 => "q4_0",
            BlockFormat::Q4_1 => "q4_1",
            BlockFormat::Q5_0 => "q5_0",
            BlockFormat::Q5_1 => "q5_1",
            BlockFormat::Q4_K => "q4_k",
            BlockFormat::Q5_K => "q5_k",
            BlockFormat::Q6_K => "q6_k",
        }
    }

    /// Returns the number of elements in a block: 32 or 256.
    pub const fn elements(self) -> usize {
        match self {
            BlockFormat::Q4_K | BlockFormat::Q5_K | BlockFormat::Q6_K => 256,
            _ => 32,
        }
    }

    /// Returns the bytes of a block.
    pub const fn bytes(self) -> usize {
        match self {
            BlockFormat::Q8_0 => 34,
            BlockFormat::Q4_0 => 18,
            BlockFormat::Q4_1 => 20,
            BlockFormat::Q5_0 => 22,
            BlockFormat::Q5_1 => 24,
            BlockFormat::Q4_K => 144,
            BlockFormat::Q5_K => 176,
            BlockFormat::Q6_K => 210,
        }
    }

    /// Returns whether blocks have a minimum, or minima.
    pub const fn has_minimum(self) -> bool {
        matches!(self, BlockFormat::Q4_1 | BlockFormat::Q5_1 | BlockFormat::Q4_K | BlockFormat::Q5_K)
    }
}

impl FromStr for BlockFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<BlockFormat> {
        let known = BlockFormat::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| {
            let names = BlockFormat::ALL.map(BlockFormat::name).join(", ");
            Error::new(Status::InvalidArgument, format!("format is '{name}'; it must be one of {names}"))
        })
    }
}

/// A block's numbers. Element i is `d·scales[i / part]·values[i] + m·minima[i / part]`.
#[derive(Clone, Debug)]
pub struct BlockValues {
    /// The block's scale.
    pub d: f32,
    /// The factor of the minima; 0 without minima.
    pub m: f32,
    /// The number of elements that share a scale and a minimum.
    pub part: usize,
    /// The scales of the parts.
    pub scales: [i32; 16],
    /// The minima of the parts.
    pub minima: [i32; 16],
    /// The elements, as many as the format has in a block.
    pub values: [i32; 256],
}

/// Reads a block of a format's bytes.
pub fn read_block(format: BlockFormat, block: &[u8]) -> BlockValues {
    let float = |at: usize| f16_to_f32(u16::from_le_bytes([block[at], block[at + 1]]));
    let mut of = BlockValues { d: float(0), m: 0.0, part: 32, scales: [1; 16], minima: [0; 16], values: [0; 256] };
    if matches!(format, BlockFormat::Q4_1 | BlockFormat::Q5_1) {
        (of.m, of.minima) = (float(2), [1; 16]);
    }
    match format {
        BlockFormat::Q8_0 => (0..32).for_each(|i| of.values[i] = block[2 + i].cast_signed().into()),
        BlockFormat::Q4_0 | BlockFormat::Q4_1 | BlockFormat::Q5_0 | BlockFormat::Q5_1 => {
            let (first, high, middle) = match format {
                BlockFormat::Q4_0 => (2, None, 8),
                BlockFormat::Q4_1 => (4, None, 0),
                BlockFormat::Q5_0 => (6, Some(2), 16),
                _ => (8, Some(4), 0),
            };
            for i in 0..32 {
                let low = block[first + i % 16] >> (i / 16 * 4) & 15;
                let bit = high.map_or(0, |at: usize| block[at + i / 8] >> (i % 8) & 1);
                of.values[i] = i32::from(low | bit << 4) - middle;
            }
        }
        BlockFormat::Q4_K | BlockFormat::Q5_K => {
            of.m = -float(2);
            for part in 0..8 {
                (of.scales[part], of.minima[part]) = part_scales(&block[4..16], part);
            }
            let (bits, first) = if format == BlockFormat::Q5_K { (Some(16), 48) } else { (None, 16) };
            for i in 0..256 {
                let (part, at) = (i / 32, i % 32);
                let low = block[first + part / 2 * 32 + at] >> (part % 2 * 4) & 15;
                let bit = bits.map_or(0, |first: usize| block[first + at] >> part & 1);
                of.values[i] = (low | bit << 4).into();
            }
        }
        BlockFormat::Q6_K => {
            (of.d, of.part) = (float(208), 16);
            (0..16).for_each(|part| of.scales[part] = block[192 + part].cast_signed().into());
            for i in 0..256 {
                // Each half has 64 bytes of four low bits, and 32 of two high bits.
                let (half, quarter, at) = (i / 128, i % 128 / 32, i % 32);
                let low = block[half * 64 + quarter % 2 * 32 + at] >> (quarter / 2 * 4) & 15;
                let high = block[128 + half * 32 + at] >> (quarter * 2) & 3;
                of.values[i] = i32::from(low | high << 4) - 32;
            }
        }
    }
    of
}

/// Returns the scale and the minimum of a part, of 6 bits each, from the 12 bytes that hold those of eight parts.
fn part_scales(bytes: &[u8], part: usize) -> (i32, i32) {
    let (scale, minimum) = match part {
        0..4 => (bytes[part] & 63, bytes[part + 4] & 63),
        _ => (bytes[part + 4] & 15 | bytes[part - 4] >> 6 << 4, bytes[part + 4] >> 4 | bytes[part] >> 6 << 4),
    };
    (scale.into(), minimum.into())
}

/// The largest magnitude, as bits, of a block of an operand that counts as zero: below 2⁻⁹⁰. So the product of the scales of two
/// blocks is never subnormal.
pub const LEAST_BLOCK: u32 = 37 << 23;

/// Returns the scale of a block of an operand and the factor that makes integers of its elements, from the block's largest
/// `bits & 0x7fffffff`.
pub fn block_scale(largest: u32) -> (f32, f32) {
    match largest {
        0x7f80_0000.. => (f32::NAN, 0.0),
        ..LEAST_BLOCK => (0.0, 0.0),
        _ => (f32::from_bits(largest) / 127.0, 127.0 / f32::from_bits(largest)),
    }
}

/// Cuts a block of an operand: returns its scale and its integers.
fn cut(x: impl Iterator<Item = f32> + Clone) -> (f32, Vec<i32>) {
    let largest = x.clone().map(|x| x.to_bits() & 0x7fff_ffff).max().unwrap_or(0);
    let (scale, factor) = block_scale(largest);
    let integer = |x: f32| if factor == 0.0 { 0 } else { (x * factor).round_ties_even() as i32 };
    (scale, x.map(integer).collect())
}

/// Returns the product of k elements of an operand and a row of blocks. k must be a multiple of the format's block.
pub fn block_dot(format: BlockFormat, k: usize, x: impl Fn(usize) -> f32, row: &[u8]) -> f32 {
    let (elements, bytes) = (format.elements(), format.bytes());
    let mut total = 0.0;
    for start in (0..k).step_by(256) {
        let mut p = 0.0;
        for first in (start..k.min(start + 256)).step_by(elements) {
            let (scale, q) = cut((first..first + elements).map(&x));
            let block = read_block(format, &row[first / elements * bytes..][..bytes]);
            let (mut sum, mut of_minima) = (0, 0);
            for (i, &q) in q.iter().enumerate() {
                sum += block.scales[i / block.part] * block.values[i] * q;
                of_minima += block.minima[i / block.part] * q;
            }
            p = fmaz(sum as f32, block.d * scale, p);
            if format.has_minimum() {
                p = fmaz(of_minima as f32, block.m * scale, p);
            }
        }
        total = if start == 0 { p } else { fmaz(p, 1.0, total) };
    }
    total + 0.0
}

/// Returns the elements of a block.
pub fn block_floats(format: BlockFormat, block: &[u8]) -> impl Iterator<Item = f32> {
    let BlockValues { d, m, part, scales, minima, values } = read_block(format, block);
    (0..format.elements()).map(move |i| {
        let y = d * scales[i / part] as f32 * values[i] as f32;
        if format.has_minimum() { y + m * minima[i / part] as f32 } else { y }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_the_sizes_of_gguf() {
        let sizes = BlockFormat::ALL.map(|format| (format.elements(), format.bytes()));
        assert_eq!(sizes, [(32, 34), (32, 18), (32, 20), (32, 22), (32, 24), (256, 144), (256, 176), (256, 210)]);
        for format in BlockFormat::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
    }

    #[test]
    fn sums_of_a_block_fit_in_32_bits() {
        for format in BlockFormat::ALL {
            // The greatest scales and elements, and the least: Q6_K's have the bytes 128 and 0.
            let mut blocks = [vec![0xff; format.bytes()], vec![0x80; format.bytes()], vec![0; format.bytes()]];
            if format == BlockFormat::Q6_K {
                blocks[2][192..208].fill(0x80);
            }
            let largest = blocks.iter().map(|block| {
                let block = read_block(format, block);
                let element = |i: usize| i64::from(block.scales[i / block.part]) * i64::from(block.values[i]);
                (0..format.elements()).map(|i| 127 * element(i).abs()).sum::<i64>()
            });
            let largest = largest.max().unwrap();
            assert!(largest < 1 << 31, "{}: {largest}", format.name());
            if format == BlockFormat::Q6_K {
                assert_eq!(largest, 256 * 128 * 32 * 127);
            }
        }
    }

    #[test]
    fn the_product_of_scales_is_never_subnormal() {
        let least = block_scale(LEAST_BLOCK).0 * f16_to_f32(1);
        assert!(least.is_normal() && block_scale(LEAST_BLOCK - 1) == (0.0, 0.0));
    }
}
