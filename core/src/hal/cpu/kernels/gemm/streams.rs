//! One row times a B that was packed in advance. Several panels pass at a time, because memory delivers several streams faster than
//! one.

use super::{Block, Panels};
use crate::contract::K_BLOCK;
use crate::hal::cpu::simd::{self, Kernel, MAX_TILE_VECTORS, Simd, unroll};
use crate::interrupt::Looks;

/// A block of one row. Returns whether the instruction set has this way; if not, nothing is written.
#[derive(Clone, Copy)]
pub(super) struct Streams<'a>(pub &'a Block, pub Panels);

impl Kernel for Streams<'_> {
    type Output = bool;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> bool {
        // Without a fused instruction, arithmetic takes longer than memory.
        if !S::FUSED {
            return false;
        }
        let Block { n, k, .. } = *self.0;
        let width = S::TILE_VECTORS * S::LANES;
        let mut looks = Looks::NEW;
        let mut p = 0;
        while p < k && !looks.before(n * K_BLOCK) {
            let depth = K_BLOCK.min(k - p);
            let mut j = 0;
            while j < n {
                let panels = (n - j).div_ceil(width);
                // SAFETY: the panels lie inside B. As many chains fit in the registers.
                j += width
                    * unsafe {
                        match panels {
                            8.. if S::LANES >= 16 => self.pass::<S, 8>(p, depth, j),
                            4.. if S::LANES < 16 => self.pass::<S, 4>(p, depth, j),
                            _ => self.pass::<S, 1>(p, depth, j),
                        }
                    };
            }
            p += depth;
        }
        true
    }
}

impl Streams<'_> {
    /// Computes one K block of P panels from column j. Returns P.
    #[inline(always)]
    unsafe fn pass<S: Simd, const P: usize>(self, p: usize, depth: usize, j: usize) -> usize {
        let Block { n, a, out, .. } = *self.0;
        let width = S::TILE_VECTORS * S::LANES;
        // SAFETY: the caller promises that the K block and the panels lie inside the operands. A prefetch accesses no memory.
        unsafe {
            let (zero, one) = (S::splat(0.0), S::splat(1.0));
            let mut chains = [[zero; MAX_TILE_VECTORS]; P];
            let mut x = a.at(0, p).data;
            // Panels of a K block follow each other.
            let (mut b, panel) = (self.1.at(p, depth, j), depth * width);
            for _ in 0..depth {
                let factor = S::splat(*x);
                unroll!(r < P => {
                    let (b, next) = (b.add(r * panel), b.wrapping_add((P + r) * panel));
                    S::prefetch_to_second(next);
                    chains[r][0] = S::fmaz(factor, S::load(b), chains[r][0]);
                    if S::TILE_VECTORS > 1 {
                        // A row of the panel is one cache line or two.
                        if width > 16 {
                            S::prefetch_to_second(next.wrapping_add(16));
                        }
                        chains[r][1] = S::fmaz(factor, S::load(b.add(S::LANES)), chains[r][1]);
                    }
                });
                x = x.wrapping_add(a.column);
                b = b.add(width);
            }
            for (r, chains) in chains.iter().enumerate() {
                for (v, &chain) in chains.iter().enumerate().take(S::TILE_VECTORS) {
                    let c = j + r * width + v * S::LANES;
                    let count = n.saturating_sub(c).min(S::LANES);
                    let old = if p == 0 { zero } else { S::load_head(out.wrapping_add(c), count) };
                    let t = S::add(S::fmaz(chain, one, old), zero);
                    S::store_head(out.wrapping_add(c), count, simd::canonical::<S>(t));
                }
            }
        }
        P
    }
}
