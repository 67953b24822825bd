//! The angles by which positions rotate queries and keys.

use adead::{Result, Tensor};
use std::sync::{Mutex, PoisonError};

/// How positions are scaled, to reach beyond those that a model was trained with first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scaling {
    None,
    /// Positions are divided by this factor.
    Linear(f64),
}

/// The frequencies of a head's pairs, and the cosines and sines of the first positions, by position and pair.
pub(crate) struct Rope {
    frequencies: Vec<f64>,
    known: Mutex<[Vec<f32>; 2]>,
}

impl Rope {
    /// Pair i of a head of `width` values turns by base^(−2i/width) at every position, divided by the scaling's factor and by its
    /// own one, if there are `factors` (Llama 3). All of it is computed in f64 by functions in Rust, which give the same bits
    /// everywhere.
    pub fn new(base: f64, width: usize, scaling: Scaling, factors: Option<&[f32]>) -> Rope {
        let scale = if let Scaling::Linear(factor) = scaling { factor } else { 1.0 };
        let frequency = |pair: usize| {
            let own = factors.and_then(|factors| factors.get(pair)).map_or(1.0, |&factor| f64::from(factor));
            libm::pow(base, -2.0 * pair as f64 / width as f64) / scale / own
        };
        Rope { frequencies: (0..width / 2).map(frequency).collect(), known: Mutex::default() }
    }

    /// Returns the cosines and sines of positions, each `[positions, 1, pairs]`: f64, rounded to f32. Those of all positions up to the
    /// largest one are kept, because computing them takes as long as a GPU takes for a layer.
    pub fn tables(&self, positions: &[usize]) -> Result<(Tensor, Tensor)> {
        let pairs = self.frequencies.len();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let [cosines, sines] = &mut *known;
        let (first, end) = (sines.len() / pairs.max(1), positions.iter().max().map_or(0, |&last| last + 1));
        for position in first..end {
            for frequency in &self.frequencies {
                let (sine, cosine) = libm::sincos(position as f64 * frequency);
                cosines.push(cosine as f32);
                sines.push(sine as f32);
            }
        }
        let rows = |of: &[f32]| {
            let values: Vec<f32> = positions.iter().flat_map(|&at| &of[at * pairs..][..pairs]).copied().collect();
            Tensor::new(&values, &[positions.len(), 1, pairs])
        };
        Ok((rows(cosines)?, rows(sines)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn angles_are_positions_by_frequencies() {
        let rope = Rope::new(10_000.0, 4, Scaling::None, None);
        assert_eq!(rope.frequencies, [1.0, 0.01]);
        let (cos, sin) = rope.tables(&[0, 3]).unwrap();
        assert_eq!((cos.dims(), sin.dims()), (&[2, 1, 2][..], &[2, 1, 2][..]));
        assert_eq!(cos.to_vec::<f32>().unwrap(), [1.0, 1.0, 3f64.cos() as f32, 0.03f64.cos() as f32]);
        assert_eq!(sin.to_vec::<f32>().unwrap(), [0.0, 0.0, 3f64.sin() as f32, 0.03f64.sin() as f32]);
    }

    #[test]
    fn factors_divide_frequencies() {
        assert_eq!(Rope::new(10_000.0, 4, Scaling::Linear(4.0), None).frequencies, [0.25, 0.0025]);
        assert_eq!(Rope::new(10_000.0, 4, Scaling::None, Some(&[1.0, 8.0])).frequencies, [1.0, 0.00125]);
    }
}
