//! The angles by which positions rotate queries and keys.

use adead::{Result, Tensor};

/// How positions are scaled, to reach beyond those that a model was trained with first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scaling {
    None,
    /// Positions are divided by this factor.
    Linear(f64),
}

/// The frequencies of a head's pairs.
pub(crate) struct Rope(Vec<f64>);

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
        Rope((0..width / 2).map(frequency).collect())
    }

    /// Returns the cosines and sines of positions, each `[positions, 1, pairs]`: f64, rounded to f32.
    pub fn tables(&self, positions: &[usize]) -> Result<(Tensor, Tensor)> {
        let table = |function: fn(f64) -> f64| {
            let angles =
                positions.iter().flat_map(|&position| self.0.iter().map(move |frequency| position as f64 * frequency));
            let values: Vec<f32> = angles.map(|angle| function(angle) as f32).collect();
            Tensor::new(&values, &[positions.len(), 1, self.0.len()])
        };
        Ok((table(libm::cos)?, table(libm::sin)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn angles_are_positions_by_frequencies() {
        let rope = Rope::new(10_000.0, 4, Scaling::None, None);
        assert_eq!(rope.0, [1.0, 0.01]);
        let (cos, sin) = rope.tables(&[0, 3]).unwrap();
        assert_eq!((cos.dims(), sin.dims()), (&[2, 1, 2][..], &[2, 1, 2][..]));
        assert_eq!(cos.to_vec::<f32>().unwrap(), [1.0, 1.0, 3f64.cos() as f32, 0.03f64.cos() as f32]);
        assert_eq!(sin.to_vec::<f32>().unwrap(), [0.0, 0.0, 3f64.sin() as f32, 0.03f64.sin() as f32]);
    }

    #[test]
    fn factors_divide_frequencies() {
        assert_eq!(Rope::new(10_000.0, 4, Scaling::Linear(4.0), None).0, [0.25, 0.0025]);
        assert_eq!(Rope::new(10_000.0, 4, Scaling::None, Some(&[1.0, 8.0])).0, [1.0, 0.00125]);
    }
}
