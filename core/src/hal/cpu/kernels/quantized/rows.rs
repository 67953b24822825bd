//! Rows of an operand, cut into blocks of integers of 8 bits.

use super::CHUNK;
use crate::contract::{BlockFormat, block_scale};
use crate::hal::cpu::simd::{Kernel, Simd};
use crate::interrupt::Looks;

/// What a cut row consists of: first its integers, then the blocks' scales, then the sums of parts that share a scale.
#[derive(Clone, Copy)]
pub struct Layout {
    pub format: BlockFormat,
    pub k: usize,
    /// Whether a word holds four integers, or else two.
    pub fours: bool,
    /// The elements of a part: what shares a scale in the matrix.
    pub part: usize,
    /// Where scales and sums begin, and the whole length, in words.
    pub scales: usize,
    pub sums: usize,
    pub words: usize,
}

impl Layout {
    pub fn new(format: BlockFormat, k: usize, fours: bool) -> Layout {
        let part = if format == BlockFormat::Q6_K { 16 } else { 32 };
        let scales = k / if fours { 4 } else { 2 };
        let sums = scales + k / format.elements();
        Layout { format, k, fours, part, scales, sums, words: sums + k / part }
    }
}

/// Cuts rows of x. Four integers are the bytes of a word, or the halves of two: the first and third, then the second and fourth.
pub struct Cut {
    pub x: *const f32,
    pub rows: usize,
    pub layout: Layout,
    pub to: *mut i32,
}

/// 1.5·2²³: adding it rounds a small number to an integer, which are then the sum's low bits.
const ROUNDING: f32 = 12_582_912.0;

impl Kernel for Cut {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Cut { x, rows, layout: Layout { format, k, fours, part, scales, sums, words }, to } = self;
        let (elements, mut looks) = (format.elements(), Looks::NEW);
        // Known to the compiler where no instruction set has fours.
        let fours = fours && cfg!(feature = "avx512");
        let mut integers = [0i32; CHUNK];
        for row in 0..rows {
            if looks.before(k) {
                return;
            }
            for block in 0..k / elements {
                // SAFETY: the block is the row's, its integers fit the buffer, and `to` has the layout's words for each row. Blocks
                // and parts are whole vectors.
                unsafe {
                    let (x, to) = (x.add(row * k + block * elements), to.add(row * words));
                    let mut most = S::splat_i(0);
                    for i in (0..elements).step_by(S::LANES) {
                        let magnitude = S::and_i(S::bits(S::load(x.add(i))), S::splat_i(0x7fff_ffff));
                        most = S::max_i(most, magnitude);
                    }
                    let (scale, factor) = block_scale(S::largest_lane(most) as u32);
                    to.add(scales + block).cast::<f32>().write(scale);
                    let bytes = to.cast::<i8>().add(block * elements);
                    for first in (0..elements).step_by(part) {
                        let mut sum = S::splat_i(0);
                        for i in (first..first + part).step_by(S::LANES) {
                            let mut integer = S::splat_i(0);
                            if factor != 0.0 {
                                let shifted = S::add(S::mul(S::load(x.add(i)), S::splat(factor)), S::splat(ROUNDING));
                                integer = S::sub_i(S::bits(shifted), S::splat_i(ROUNDING.to_bits() as i32));
                            }
                            sum = S::add_i(sum, integer);
                            match fours {
                                // The words' bytes, in order: only little-endian processors add fours.
                                true => S::store_bytes(bytes.add(i), integer),
                                false => S::store(integers.as_mut_ptr().add(i).cast(), S::from_bits(integer)),
                            }
                        }
                        to.add(sums + (block * elements + first) / part).write(S::sum_lanes(sum));
                    }
                    if fours {
                        continue;
                    }
                    let to = to.add(block * elements / 2);
                    for (i, &[a, b, c, d]) in integers[..elements].as_chunks::<4>().0.iter().enumerate() {
                        to.add(2 * i).write(a & 0xffff | c << 16);
                        to.add(2 * i + 1).write(b & 0xffff | d << 16);
                    }
                }
            }
        }
    }
}
