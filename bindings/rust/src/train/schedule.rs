//! Learning rates that change with the step.

/// How the learning rate changes. Rates are computed in f64.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Schedule {
    /// The rate is constant.
    Constant,
    /// The rate rises linearly from 0 over the first `warmup` steps. It then falls along half a cosine to `end` times the rate
    /// at step `steps`, and stays there.
    Cosine {
        /// The number of steps of the rise.
        warmup: u64,
        /// The last step of the fall.
        steps: u64,
        /// The final rate, as a fraction of the full rate.
        end: f64,
    },
    /// The rate is multiplied by `factor` after every `every` steps.
    Steps {
        /// The number of steps between two changes.
        every: u64,
        /// The factor.
        factor: f64,
    },
}

impl Schedule {
    /// Returns the factor of the learning rate at a step, counted from 1.
    pub fn factor(&self, step: u64) -> f64 {
        match *self {
            Schedule::Constant => 1.0,
            Schedule::Cosine { warmup, .. } if step <= warmup => step as f64 / warmup as f64,
            Schedule::Cosine { warmup, steps, end } => {
                let part = (step - warmup) as f64 / steps.saturating_sub(warmup).max(1) as f64;
                end + (1.0 - end) * 0.5 * (1.0 + half_turn(part.min(1.0)))
            }
            Schedule::Steps { every, factor } => power(factor, step.saturating_sub(1) / every.max(1)),
        }
    }
}

/// cos(π·x) for x in [0, 1], as a polynomial: platforms compute `f64::cos` differently.
fn half_turn(x: f64) -> f64 {
    // sin(π·y/2) for y in [−1, 1] by its series; cos(π·x) = sin(π·(1 − 2x)/2).
    let t = (1.0 - 2.0 * x) * std::f64::consts::FRAC_PI_2;
    let square = t * t;
    let mut term = t;
    let mut sum = t;
    for i in 1..12 {
        term *= -square / f64::from(2 * i * (2 * i + 1));
        sum += term;
    }
    sum
}

/// `x^n` by squaring, in the same order everywhere.
pub(super) fn power(x: f64, n: u64) -> f64 {
    let (mut result, mut base, mut left) = (1.0, x, n);
    while left > 0 {
        if left & 1 == 1 {
            result *= base;
        }
        base *= base;
        left >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_rise_and_fall() {
        let cosine = Schedule::Cosine { warmup: 10, steps: 110, end: 0.1 };
        let found: Vec<f64> = [1, 10, 60, 110, 500].map(|step| cosine.factor(step)).to_vec();
        let expected = [0.1, 1.0, 0.55, 0.1, 0.1];
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
        let plain = Schedule::Cosine { warmup: 0, steps: 10, end: 0.0 };
        assert!((plain.factor(5) - 0.5).abs() < 1e-12 && plain.factor(10).abs() < 1e-12);
        let steps = Schedule::Steps { every: 3, factor: 0.5 };
        assert_eq!([1, 3, 4, 7].map(|step| steps.factor(step)), [1.0, 1.0, 0.5, 0.25]);
        assert!((power(0.999, 1000) - 0.999f64.powi(1000)).abs() < 1e-12);
    }
}
