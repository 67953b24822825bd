//! SUM, PROD, CUMSUM, MAX and MIN.

use super::{NAN, canonical, positive_zero};
use std::cmp::Reverse;

/// SUM has this many lanes.
pub const SUM_LANES: usize = 32;

/// SUM takes its input in blocks of this many.
pub const SUM_BLOCK: usize = 1024;

/// SUM of at most [`SUM_BLOCK`] values.
fn sum_block(x: &[f32]) -> f32 {
    let mut lane = [0.0f32; SUM_LANES];
    for (i, &x) in x.iter().enumerate() {
        lane[i % SUM_LANES] += x;
    }
    let mut step = SUM_LANES / 2;
    while step > 0 {
        for l in 0..step {
            lane[l] += lane[l + step];
        }
        step /= 2;
    }
    canonical(positive_zero(lane[0]))
}

/// SUM. Of nothing: +0.
pub fn sum(x: &[f32]) -> f32 {
    if x.len() <= SUM_BLOCK {
        return sum_block(x);
    }
    let blocks: Vec<f32> = x.chunks(SUM_BLOCK).map(sum_block).collect();
    sum(&blocks)
}

/// CUMSUM has chains of this many.
pub const CUMSUM_BLOCK: usize = 256;

/// CUMSUM: each block's chain from +0, onto which the CUMSUM of the totals of the blocks before it is added.
pub fn cumsum(x: &[f32]) -> Vec<f32> {
    let mut y = Vec::with_capacity(x.len());
    let mut totals = Vec::new();
    for block in x.chunks(CUMSUM_BLOCK) {
        let mut chain = 0.0f32;
        for &x in block {
            chain += x;
            y.push(chain);
        }
        totals.push(chain);
    }
    if totals.len() > 1 {
        let before = cumsum(&totals);
        for (block, before) in y.chunks_mut(CUMSUM_BLOCK).skip(1).zip(before) {
            block.iter_mut().for_each(|y| *y += before);
        }
    }
    y.iter_mut().for_each(|y| *y = canonical(*y));
    y
}

/// PROD of at most [`SUM_BLOCK`] values.
fn prod_block(x: &[f32]) -> f32 {
    let mut lane = [1.0f32; SUM_LANES];
    for (i, &x) in x.iter().enumerate() {
        lane[i % SUM_LANES] *= x;
    }
    let mut step = SUM_LANES / 2;
    while step > 0 {
        for l in 0..step {
            lane[l] *= lane[l + step];
        }
        step /= 2;
    }
    canonical(lane[0])
}

/// PROD: SUM's tree with products in the place of sums. Of nothing: 1.
pub fn prod(x: &[f32]) -> f32 {
    if x.len() <= SUM_BLOCK {
        return prod_block(x);
    }
    let blocks: Vec<f32> = x.chunks(SUM_BLOCK).map(prod_block).collect();
    prod(&blocks)
}

/// SUM / n. Of nothing: NaN.
pub fn mean(x: &[f32]) -> f32 {
    canonical(sum(x) / x.len() as f32)
}

/// The key of the canonical NaN: above that of +∞.
pub const MAX_KEY_NAN: i32 = 0x7fc0_0000;

/// The integer whose order is MAX's order. It is its own inverse on the bits.
pub fn max_key(x: f32) -> i32 {
    let u = canonical(x).to_bits() as i32;
    u ^ ((u >> 31) & 0x7fff_ffff)
}

/// The value of the largest key.
pub fn max_of_keys(key: i32) -> f32 {
    f32::from_bits((key ^ ((key >> 31) & 0x7fff_ffff)) as u32)
}

/// MAX. `None` of nothing.
pub fn max(x: &[f32]) -> Option<f32> {
    x.iter().map(|&x| max_key(x)).max().map(max_of_keys)
}

/// The lowest index of the maximum. `None` of nothing.
pub fn argmax(x: &[f32]) -> Option<usize> {
    let best = x.iter().map(|&x| max_key(x)).max()?;
    x.iter().position(|&x| max_key(x) == best)
}

/// The indices of the k greatest elements, the greatest first, of equals the lower index first.
pub fn topk(x: &[f32], k: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..x.len()).collect();
    order.sort_unstable_by_key(|&i| (Reverse(max_key(x[i])), i));
    order.truncate(k);
    order
}

/// −x, by which MIN is MAX. NaN stays NaN.
fn negated(x: f32) -> f32 {
    f32::from_bits(x.to_bits() ^ 0x8000_0000)
}

/// MIN, −MAX(−x): NaN wins here too. `None` of nothing.
pub fn min(x: &[f32]) -> Option<f32> {
    x.iter().map(|&x| max_key(negated(x))).max().map(|key| canonical(negated(max_of_keys(key))))
}

/// The lowest index of the minimum. `None` of nothing.
pub fn argmin(x: &[f32]) -> Option<usize> {
    let best = x.iter().map(|&x| max_key(negated(x))).max()?;
    x.iter().position(|&x| max_key(negated(x)) == best)
}

const _: () = assert!(MAX_KEY_NAN == NAN.to_bits() as i32);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::is_nan;

    #[test]
    fn order() {
        assert_eq!(max(&[-0.0, 0.0]).unwrap().to_bits(), 0);
        assert_eq!(max(&[-0.0]).unwrap().to_bits(), 0x8000_0000);
        assert!(is_nan(max(&[f32::INFINITY, f32::from_bits(0xffc0_0001)]).unwrap()));
        assert_eq!(max(&[-2.0, f32::NEG_INFINITY, -1.0]), Some(-1.0));
        assert_eq!(argmax(&[1.0, 3.0, 3.0]), Some(1));
        assert_eq!(max(&[]), None);
        assert_eq!(min(&[-0.0, 0.0]).unwrap().to_bits(), 0x8000_0000);
        assert_eq!(min(&[0.0]).unwrap().to_bits(), 0);
        assert!(is_nan(min(&[f32::NEG_INFINITY, f32::from_bits(0xffc0_0001)]).unwrap()));
        assert_eq!(min(&[2.0, f32::INFINITY, 1.0]), Some(1.0));
        assert_eq!((argmin(&[3.0, 1.0, 1.0]), argmin(&[1.0, f32::NAN, f32::NAN])), (Some(1), Some(1)));
        assert_eq!((min(&[]), argmin(&[])), (None, None));
        assert_eq!(topk(&[1.0, f32::NAN, 3.0, -0.0, 3.0, 0.0], 6), [1, 2, 4, 0, 5, 3]);
    }

    #[test]
    fn sums() {
        assert_eq!(sum(&[]).to_bits(), 0);
        assert_eq!(sum(&[-0.0]).to_bits(), 0);
        let ones = vec![1.0; 1024 * 1024 + 1];
        assert_eq!(sum(&ones), 1_048_577.0);
    }

    #[test]
    fn products() {
        assert_eq!(prod(&[]).to_bits(), 1f32.to_bits());
        assert_eq!(prod(&[-0.0]).to_bits(), 0x8000_0000);
        // Lanes keep what one after another would lose.
        let mut x = [1.0; 64];
        (x[0], x[1], x[32], x[33]) = (1e30, 1e30, 1e-30, 1e-30);
        assert_eq!(prod(&x), (1e30f32 * 1e-30) * (1e30f32 * 1e-30));
        assert_eq!(prod(&[-1.0; 1025]), -1.0);
    }
}
