//! Loss scaling, which keeps small gradients from vanishing in f16 or bf16.

use super::replay::Slot;
use adead_core::pipeline::{Pipeline, Value};
use adead_core::{Attrs, Axis, DType, Error, Op, Result, Status, Tensor};

/// Multiplies the loss by a factor before gradients are computed, and divides the gradients by it. The factor is a power of
/// two, so it changes bits only where gradients vanish or overflow. A step whose gradients are not all finite is skipped: it
/// changes no parameter and no tensor of the optimiser, and neither the optimiser nor the schedule counts it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossScale {
    /// A constant factor.
    Fixed(f32),
    /// A factor that is halved after every skipped step, and doubled after `every` steps without one.
    Dynamic {
        /// The factor of the first step.
        first: f32,
        /// The number of steps without a skipped one until the factor is doubled.
        every: u64,
    },
}

/// The factors that a dynamic scale stays between: 2⁻²⁴ and 2²⁴.
const LEAST: f32 = 1.0 / MOST;
const MOST: f32 = 16_777_216.0;

fn invalid<T>(text: String) -> Result<T> {
    Err(Error::new(Status::InvalidArgument, text))
}

impl LossScale {
    /// PyTorch's defaults: the first factor is 65536, and 2000 steps double it.
    pub const DYNAMIC: LossScale = LossScale::Dynamic { first: 65_536.0, every: 2000 };

    /// Returns an error unless the factor is a power of two between 2⁻²⁴ and 2²⁴, and the number of steps is not 0.
    pub(super) fn check(self) -> Result<LossScale> {
        let (factor, every) = match self {
            LossScale::Fixed(factor) => (factor, 1),
            LossScale::Dynamic { first, every } => (first, every),
        };
        // A power of two has no bit set in its fraction.
        if !(LEAST..=MOST).contains(&factor) || factor.to_bits() << 9 != 0 {
            return invalid(format!("a loss scale of {factor}: it must be a power of two from 2^-24 to 2^24"));
        }
        if every == 0 {
            return invalid("a loss scale that is doubled every 0 steps: it must be 1 or more".into());
        }
        Ok(self)
    }
}

/// The state of a trainer's loss scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scaling {
    pub rule: LossScale,
    pub factor: f32,
    /// Steps since the factor changed, or one was skipped.
    good: u64,
    pub skipped: u64,
}

impl Scaling {
    pub fn new(rule: LossScale) -> Scaling {
        let (LossScale::Fixed(factor) | LossScale::Dynamic { first: factor, .. }) = rule;
        Scaling { rule, factor, good: 0, skipped: 0 }
    }

    /// Counts a step whose gradients are finite.
    pub fn made(&mut self) {
        self.good += 1;
        if let LossScale::Dynamic { every, .. } = self.rule
            && self.good >= every
        {
            (self.factor, self.good) = ((2.0 * self.factor).min(MOST), 0);
        }
    }

    /// Counts a step that is skipped. `invalid_argument` if the smallest factor is too large.
    pub fn skip(&mut self) -> Result<()> {
        if let LossScale::Dynamic { .. } = self.rule {
            if self.factor <= LEAST {
                return invalid("the gradients are not finite, with a loss scale of 2^-24 either".into());
            }
            self.factor *= 0.5;
        }
        (self.good, self.skipped) = (0, self.skipped + 1);
        Ok(())
    }

    /// The state as f32, which has each of these numbers: the factor, and words of 16 bits.
    pub fn tensor(&self) -> Result<Tensor> {
        let words = |number: u64| (0..4).map(move |word| (number >> (16 * word) & 0xffff) as f32);
        let all: Vec<f32> = [self.factor].into_iter().chain(words(self.good)).chain(words(self.skipped)).collect();
        Tensor::new(&all, &[STATE])
    }

    /// The state of [`tensor`](Scaling::tensor), with this one's rule.
    pub fn read(&self, tensor: &Tensor) -> Result<Scaling> {
        let values = tensor.as_slice::<f32>()?;
        let number = |first: usize| (0..4).map(|word| (values[first + word] as u64) << (16 * word)).sum();
        let found = Scaling { rule: self.rule, factor: values[0], good: number(1), skipped: number(5) };
        LossScale::Fixed(found.factor).check().map(|_| found)
    }
}

/// The elements of a state.
pub(super) const STATE: usize = 9;

/// Records the loss times the factor.
pub(super) fn scaled(pipeline: &mut Pipeline, slots: &mut Vec<Slot>, loss: Value) -> Result<Value> {
    let factor = pipeline.input(DType::F32, &[])?;
    slots.push(Slot::Scale);
    pipeline.op(Op::Mul, &Attrs::DEFAULT, &[Some(loss), Some(factor)])
}

/// Records the gradients divided by the factor, and a number that is 0 if they all are finite, else NaN.
pub(super) fn unscaled(pipeline: &mut Pipeline, slots: &mut Vec<Slot>, gradients: &mut Value) -> Result<Value> {
    let inverse = pipeline.input(DType::F32, &[])?;
    slots.push(Slot::Unscale);
    *gradients = pipeline.op(Op::Mul, &Attrs::DEFAULT, &[Some(*gradients), Some(inverse)])?;
    // 0·x is NaN for an infinity and for NaN.
    let zeros = pipeline.op(Op::Scale, &Attrs { alpha: 0.0, ..Attrs::DEFAULT }, &[Some(*gradients)])?;
    pipeline.op(Op::Sum, &Attrs { axis: Axis::All, ..Attrs::DEFAULT }, &[Some(zeros)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_is_halved_and_doubled() {
        let mut scaling = Scaling::new(LossScale::Dynamic { first: 8.0, every: 2 }.check().unwrap());
        scaling.made();
        scaling.skip().unwrap();
        assert_eq!((scaling.factor, scaling.skipped), (4.0, 1));
        scaling.made();
        assert_eq!(scaling.factor, 4.0);
        scaling.made();
        assert_eq!(scaling.factor, 8.0);
        assert_eq!(Scaling::new(scaling.rule).read(&scaling.tensor().unwrap()).unwrap(), scaling);
        while scaling.factor > LEAST {
            scaling.skip().unwrap();
        }
        assert!(scaling.skip().is_err());
        let mut fixed = Scaling::new(LossScale::Fixed(2.0));
        fixed.skip().unwrap();
        (0..5000).for_each(|_| fixed.made());
        assert_eq!((fixed.factor, fixed.skipped), (2.0, 1));
    }

    #[test]
    fn factors_are_powers_of_two() {
        for wrong in [0.0, -2.0, 3.0, f32::INFINITY, f32::NAN, 2f32.powi(25), 2f32.powi(-25)] {
            assert!(LossScale::Fixed(wrong).check().is_err(), "{wrong}");
        }
        for right in [1.0, 0.5, 1024.0, MOST, LEAST] {
            LossScale::Fixed(right).check().unwrap();
        }
        assert!(LossScale::Dynamic { first: 2.0, every: 0 }.check().is_err());
    }
}
