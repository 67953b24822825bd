//! Random tensors: functions of a seed, a stream and a position alone.

use adead_core::contract;
use adead_core::{Result, Tensor};

/// What a stream of numbers is for. The upper 32 bits of a stream are this, the lower ones a number that the caller chooses.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    Parameter = 1,
    Dropout = 2,
    Order = 3,
}

/// Words of a stream: word i is word i mod 4 of the counter (i / 4, `step`, number, purpose) under the seed.
pub(super) fn words(seed: u64, purpose: Purpose, number: u32, step: u32) -> impl Iterator<Item = u32> {
    contract::words(seed, [step, number, purpose as u32])
}

/// A number in (0, 1): the upper 23 bits of a word and a half.
fn unit(word: u32) -> f64 {
    (f64::from(word >> 9) + 0.5) / f64::from(1u32 << 23)
}

/// Numbers in (−bound, bound).
pub(super) fn uniform(seed: u64, number: u32, dims: &[usize], bound: f32) -> Result<Tensor> {
    let count = dims.iter().product();
    let values = words(seed, Purpose::Parameter, number, 0).take(count);
    let values: Vec<f32> = values.map(|word| ((2.0 * unit(word) - 1.0) * f64::from(bound)) as f32).collect();
    Tensor::new(&values, dims)
}

/// Numbers of the normal distribution with this deviation: the sum of twelve uniform ones less six, which needs no function that
/// platforms compute differently.
pub(super) fn normal(seed: u64, number: u32, dims: &[usize], deviation: f32) -> Result<Tensor> {
    let count: usize = dims.iter().product();
    let mut words = words(seed, Purpose::Parameter, number, 0);
    let mut draw = || {
        let sum: f64 = words.by_ref().take(12).map(unit).sum();
        ((sum - 6.0) * f64::from(deviation)) as f32
    };
    let values: Vec<f32> = (0..count).map(|_| draw()).collect();
    Tensor::new(&values, dims)
}

/// A mask of dropout: 0 with this probability, else 1 / (1 − probability).
pub(super) fn dropout(seed: u64, number: u32, step: u32, dims: &[usize], probability: f32) -> Result<Tensor> {
    let kept = 1.0 / (1.0 - probability);
    let count = dims.iter().product();
    let values = words(seed, Purpose::Dropout, number, step).take(count);
    let values: Vec<f32> = values.map(|word| if unit(word) < f64::from(probability) { 0.0 } else { kept }).collect();
    Tensor::new(&values, dims)
}

/// The numbers below `count` in the order of an epoch: each is swapped with one drawn from those up to it, from the last on.
pub(super) fn order(seed: u64, epoch: u32, count: usize) -> Vec<usize> {
    contract::drawn_order(words(seed, Purpose::Order, 0, epoch), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_distributions() {
        let values = uniform(7, 0, &[10_000], 0.5).unwrap().to_vec::<f32>().unwrap();
        let mean = values.iter().sum::<f32>() / 10_000.0;
        assert!(mean.abs() < 0.01 && values.iter().all(|x| x.abs() < 0.5), "{mean}");
        let values = normal(7, 1, &[10_000], 2.0).unwrap().to_vec::<f32>().unwrap();
        let variance = values.iter().map(|x| x * x).sum::<f32>() / 10_000.0;
        assert!((variance - 4.0).abs() < 0.2, "{variance}");
        let mask = dropout(7, 0, 3, &[10_000], 0.25).unwrap().to_vec::<f32>().unwrap();
        let zeros = mask.iter().filter(|&&x| x == 0.0).count();
        assert!((2300..2700).contains(&zeros) && mask.iter().all(|&x| x == 0.0 || x == 4.0 / 3.0), "{zeros}");
        assert_ne!(mask, dropout(7, 0, 4, &[10_000], 0.25).unwrap().to_vec::<f32>().unwrap());
    }

    #[test]
    fn an_order_has_every_number_once() {
        let mut found = order(7, 0, 1000);
        assert_ne!(found, order(7, 1, 1000));
        found.sort_unstable();
        assert_eq!(found, (0..1000).collect::<Vec<_>>());
        assert!(order(7, 0, 0).is_empty());
    }
}
