//! Operands, and digests of results. The operands of all items are parts of one pool of numbers that any program can generate:
//! number i is `(splitmix64(1, i) >> 40) / 2²³ - 1`, exactly.

use adead_conformance::generate::splitmix64;
use adead_conformance::hash;
use adead_core::{Result, Tensor};

const SEED: u64 = 1;

/// Parts of the pool begin at multiples of this many bytes.
pub const ALIGN: usize = 256;

/// The first numbers of the pool.
pub fn pool(count: usize) -> Vec<f32> {
    let mut numbers = vec![0.0; count];
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let piece = count.div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        for (i, part) in numbers.chunks_mut(piece).enumerate() {
            scope.spawn(move || {
                for (j, number) in part.iter_mut().enumerate() {
                    let bits = splitmix64(SEED, (i * piece + j) as u64) >> 40;
                    *number = (bits as i64 - (1 << 23)) as f32 / (1u32 << 23) as f32;
                }
            });
        }
    });
    numbers
}

/// The positions of operands of these sizes, one after the other, and the position after the last.
pub fn places(sizes: impl Iterator<Item = usize>) -> (Vec<usize>, usize) {
    let mut end = 0;
    let places = sizes
        .map(|bytes| {
            let place = end;
            end = (end + bytes).next_multiple_of(ALIGN);
            place
        })
        .collect();
    (places, end)
}

/// A digest of a result: a hash of all of it, and some elements for implementations with other bits.
pub struct Digest {
    pub sha256: String,
    pub sample: Vec<f32>,
}

/// Elements in a sample.
const SAMPLES: usize = 64;

impl Digest {
    /// Makes the digest of f32 values given as bytes.
    pub fn of(bytes: &[u8]) -> Result<Digest> {
        let values: Vec<f32> =
            bytes.chunks_exact(4).map(|four| f32::from_ne_bytes([four[0], four[1], four[2], four[3]])).collect();
        let sample = positions(values.len()).map(|i| values[i]).collect();
        Ok(Digest { sha256: hash(&Tensor::new(&values, &[values.len()])?), sample })
    }
}

/// The positions of a sample from this many elements.
fn positions(count: usize) -> impl Iterator<Item = usize> {
    let samples = SAMPLES.min(count);
    (0..samples).map(move |i| i * count / samples)
}
