//! Products of cut rows with panels.

use super::CHUNK;
use super::panels::{Ahead, Panel, middle, unpack, unpack_rows};
use super::rows::Layout;
use crate::hal::cpu::simd::{Kernel, SMALLEST, Simd, unroll};
use crate::interrupt::Looks;

/// The rows of x that are multiplied side by side.
const SIDE_BY_SIDE: usize = 4;

/// A part of the result: some cut rows of x by some rows of the matrix. With `FOURS`, four elements are multiplied at once in each lane,
/// else two.
#[derive(Clone, Copy)]
pub struct Part<const FOURS: bool> {
    pub layout: Layout,
    pub x: *const i32,
    pub rows: usize,
    pub w: *const u8,
    /// The matrix's rows, which are the result's columns.
    pub columns: usize,
    pub row_bytes: usize,
    pub y: *mut f32,
    pub y_row: usize,
}

impl<const FOURS: bool> Kernel for Part<FOURS> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Part { layout, x, rows, w, columns, row_bytes, y, y_row } = self;
        let (format, k) = (layout.format, layout.k);
        let mut looks = Looks::NEW;
        let (mut panel, mut totals) = (Panel::ZERO, [[0f32; 16]; super::ROWS]);
        let mut copy = [0u8; 16 * MOST_CHUNK_BYTES];
        for first in (0..columns).step_by(S::LANES) {
            let there = S::LANES.min(columns - first);
            for start in (0..k).step_by(CHUNK) {
                let blocks = CHUNK.min(k - start) / format.elements();
                let bytes = blocks * format.bytes();
                // The next panel's bytes follow this one's. Its rows are read side by side, which no processor foresees.
                let next = w.wrapping_add((first + S::LANES) * row_bytes + S::LANES * row_bytes * start / k);
                let mut ahead = Ahead { at: next, lines: (S::LANES * bytes).div_ceil(64) };
                // SAFETY: the rows of the matrix and of x have this chunk. Where there are fewer rows than lanes, the other lanes
                // read what the copy has there.
                unsafe {
                    let mut from = w.add(first * row_bytes + start / format.elements() * format.bytes());
                    let mut stride = row_bytes;
                    if !SMALLEST && there < S::LANES {
                        for row in 0..there {
                            let to = copy[row * MOST_CHUNK_BYTES..].as_mut_ptr();
                            to.copy_from_nonoverlapping(from.add(row * row_bytes), bytes);
                        }
                        (from, stride) = (copy.as_ptr(), MOST_CHUNK_BYTES);
                    }
                    match SMALLEST {
                        true => unpack_rows(format, from, stride, there, blocks, &mut panel),
                        false => unpack::<S, FOURS>(format, from, stride, blocks, &mut panel, &mut ahead),
                    }
                    let mut row = 0;
                    // The smallest library has one way for all rows.
                    while !SMALLEST && row + SIDE_BY_SIDE <= rows {
                        let x = x.add(row * layout.words);
                        chunk::<S, SIDE_BY_SIDE, FOURS>(&layout, &panel, x, start, blocks, &mut totals[row..]);
                        row += SIDE_BY_SIDE;
                    }
                    while row < rows {
                        chunk::<S, 1, FOURS>(
                            &layout,
                            &panel,
                            x.add(row * layout.words),
                            start,
                            blocks,
                            &mut totals[row..],
                        );
                        row += 1;
                    }
                    if looks.before((rows + 1) * S::LANES * CHUNK) {
                        return;
                    }
                }
            }
            for (row, total) in totals[..rows].iter_mut().enumerate() {
                // SAFETY: the part of the result has this row, and these columns.
                unsafe {
                    let total = if k == 0 { S::splat(0.0) } else { S::settle(S::load(total.as_ptr())) };
                    S::store_head(y.add(row * y_row + first), there, total);
                }
            }
        }
    }
}

/// The most bytes of a row's chunk, rounded up: 256 elements of Q8_0.
const MOST_CHUNK_BYTES: usize = 8 * 34;

/// Multiplies a panel with R rows of x, and adds the chains to the rows' totals.
#[inline(always)]
unsafe fn chunk<S: Simd, const R: usize, const FOURS: bool>(
    layout: &Layout,
    panel: &Panel,
    x: *const i32,
    start: usize,
    blocks: usize,
    totals: &mut [[f32; 16]],
) {
    let Layout { format, part, scales, sums, words, .. } = *layout;
    let (elements, middle, each) = (format.elements(), middle(format), if FOURS { 4 } else { 2 });
    let (has_minimum, has_minima) = (format.has_minimum(), format.has_minimum() && elements > 32);
    // SAFETY: R rows of x have this chunk, and the panel holds it.
    unsafe {
        let mut chains = [S::splat(0.0); R];
        for block in 0..blocks {
            let at = start / elements + block;
            let entries = panel.elements.as_ptr().add(block * elements / each);
            let x_entries = x.add(at * elements / each);
            let mut of_block = [S::splat_i(0); R];
            let mut of_minima = [S::splat(0.0); R];
            if elements == 32 {
                let s = sums_of::<S, R, FOURS>(entries, 32 / each, x_entries, words);
                unroll!(r < R => {
                    let sum = *x.add(r * words + sums + at);
                    of_block[r] = S::sub_i(s[r], S::splat_i(middle * sum));
                    of_minima[r] = S::splat(sum as f32);
                });
            } else {
                let mut minima = [S::splat_i(0); R];
                for index in 0..elements / part {
                    let first = index * part / each;
                    let s = sums_of::<S, R, FOURS>(entries.add(first), part / each, x_entries.add(first), words);
                    let scale = S::bits(S::load(panel.scales[index].as_ptr().cast()));
                    unroll!(r < R => {
                        let sum = *x.add(r * words + sums + at * (elements / part) + index);
                        let of_part = S::sub_i(s[r], S::splat_i(middle * sum));
                        of_block[r] = S::add_i(of_block[r], S::mul_i(scale, of_part));
                        if has_minima {
                            let minimum = S::bits(S::load(panel.minima[index].as_ptr().cast()));
                            minima[r] = S::add_i(minima[r], S::mul_i(minimum, S::splat_i(sum)));
                        }
                    });
                }
                unroll!(r < R => { of_minima[r] = S::to_float(minima[r]); });
            }
            let (d, m) = (S::load(panel.d[block].as_ptr()), S::load(panel.m[block].as_ptr()));
            unroll!(r < R => {
                let scale = S::splat(*x.add(r * words + scales + at).cast::<f32>());
                chains[r] = S::fmaz(S::to_float(of_block[r]), S::mul(d, scale), chains[r]);
            });
            if has_minimum {
                unroll!(r < R => {
                    let scale = S::splat(*x.add(r * words + scales + at).cast::<f32>());
                    chains[r] = S::fmaz(of_minima[r], S::mul(m, scale), chains[r]);
                });
            }
        }
        unroll!(r < R => {
            let total = totals[r].as_mut_ptr();
            let sum = if start == 0 { chains[r] } else { S::fmaz(chains[r], S::splat(1.0), S::load(total)) };
            S::store(total, sum);
        });
    }
}

/// The sums of the products of a part's entries, a multiple of four, with those of R rows of x.
#[inline(always)]
unsafe fn sums_of<S: Simd, const R: usize, const FOURS: bool>(
    elements: *const [i32; 16],
    entries: usize,
    x: *const i32,
    words: usize,
) -> [S::I; R] {
    // SAFETY: the panel and the rows have as many entries.
    unsafe {
        let mut sums = [[S::splat_i(0); 2]; R];
        for i in 0..entries / 4 {
            unroll!(h < 4 => {
                let w = S::bits(S::load(elements.add(4 * i + h).cast()));
                unroll!(r < R => {
                    let x = S::splat_i(*x.add(r * words + 4 * i + h));
                    let sum = &mut sums[r][h % 2];
                    *sum = if FOURS { S::add_fours(*sum, w, x) } else { S::add_pairs(*sum, w, x) };
                });
            });
        }
        let mut all = [S::splat_i(0); R];
        unroll!(r < R => { all[r] = S::add_i(sums[r][0], sums[r][1]); });
        all
    }
}
