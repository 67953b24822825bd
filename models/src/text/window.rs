//! Sliding windows: the last positions that a layer attends to.

use adead::contract::KEY_BLOCK;
use adead::{Result, Tensor};

/// The layers that see the last positions only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    /// A position sees so many, itself among them.
    pub length: usize,
    /// The last of so many layers sees everything.
    pub period: usize,
    /// The base of their positions' angles.
    pub rope_base: f64,
}

impl Window {
    /// Whether a layer sees the window only.
    pub fn applies_to(&self, layer: usize) -> bool {
        layer % self.period != self.period - 1
    }

    /// Returns the first position that a position sees.
    pub fn begins(&self, position: usize) -> usize {
        (position + 1).saturating_sub(self.length)
    }

    /// Returns what `rows` positions behind the first `before` ones see. Attention that begins with a later block of keys has the same
    /// bits, because hidden blocks are skipped (`docs/contract.md`).
    pub fn seen(&self, before: usize, rows: usize) -> Result<Seen> {
        let hidden = |position: usize| self.begins(position);
        let first = hidden(before) / KEY_BLOCK * KEY_BLOCK;
        let all = before + rows;
        if rows == 0 || hidden(all - 1) <= first {
            return Ok(Seen { first, mask: None });
        }
        let mask = (before..all).flat_map(|position| {
            (first..all).map(move |key| if key < hidden(position) { f32::NEG_INFINITY } else { 0.0 })
        });
        let mask = Tensor::new(&mask.collect::<Vec<f32>>(), &[rows, all - first])?;
        Ok(Seen { first, mask: Some(mask) })
    }
}

/// What the rows of a step see of the keys.
#[derive(Default)]
pub(crate) struct Seen {
    /// The keys before this one are hidden from all rows.
    pub first: usize,
    /// Hides keys from this one on, `[rows, keys]`, if any are hidden.
    pub mask: Option<Tensor>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_sees_the_window_before_it() {
        let window = Window { length: 40, period: 6, rope_base: 1.0 };
        assert!(window.applies_to(0) && window.applies_to(4) && !window.applies_to(5) && window.applies_to(6));
        for (before, rows, first) in [(0, 40, 0), (0, 50, 0), (39, 1, 0), (102, 1, 0), (103, 3, 64), (150, 70, 64)] {
            let seen = window.seen(before, rows).unwrap();
            assert_eq!(seen.first, first, "{before} {rows}");
            let mask = seen.mask.map(|mask| mask.to_vec::<f32>().unwrap());
            let all = before + rows;
            assert_eq!(mask.is_some(), all > 40 + first, "{before} {rows}");
            for (row, key) in (0..rows).flat_map(|row| (0..all).map(move |key| (row, key))) {
                let hidden = match &mask {
                    _ if key < first => true,
                    Some(mask) => mask[row * (all - first) + key - first] != 0.0,
                    None => false,
                };
                assert_eq!(hidden, key + 40 <= before + row, "{before} {rows}: {row} {key}");
            }
        }
    }
}
