//! Optimisers: how gradients change parameters. Their rules and defaults are PyTorch's.

use super::flat::Flat;
use super::replay::Slot;
use super::schedule::{Schedule, power};
use adead_core::pipeline::{Pipeline, Value};
use adead_core::{Attrs, Axis, DType, Error, Op, Result, Status, Tensor};

/// The rule of an optimiser, for a parameter p, its gradient g and the learning rate r.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// b = momentum·b + g; p = p − r·b, or with nesterov p − r·(g + momentum·b).
    Sgd {
        /// The fraction of the last step that is kept; 0 for none.
        momentum: f64,
        /// Whether to use Nesterov's momentum.
        nesterov: bool,
    },
    /// m = m + (1 − β₁)·(g − m); v = v + (1 − β₂)·(g² − v); p = p − r/(1 − β₁ᵗ) · m / (√v/√(1 − β₂ᵗ) + eps). A decoupled weight
    /// decay first shrinks p to p·d with d = 1 − r·decay; it is computed as (p − step/d)·d.
    Adam {
        /// β₁ and β₂.
        betas: [f64; 2],
        /// The number added to the root.
        eps: f64,
        /// Whether the weight decay shrinks the parameters directly (AdamW), instead of changing the gradients.
        decoupled: bool,
    },
}

/// An optimiser.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimizer {
    /// The rule.
    pub rule: Rule,
    /// The learning rate.
    pub rate: f64,
    /// The weight decay.
    pub weight_decay: f64,
    /// The greatest norm of all gradients together. Gradients with a greater norm are scaled down to it.
    pub clip_norm: Option<f64>,
    /// How the learning rate changes.
    pub schedule: Schedule,
    /// The decay of a moving average of the parameters: the fraction of the average that each step keeps. `None` keeps no
    /// average.
    pub average: Option<f64>,
}

impl Optimizer {
    fn of(rule: Rule, rate: f64, weight_decay: f64) -> Optimizer {
        Optimizer { rule, rate, weight_decay, clip_norm: None, schedule: Schedule::Constant, average: None }
    }

    /// Makes stochastic gradient descent with momentum; 0 is none.
    pub fn sgd(rate: f64, momentum: f64) -> Optimizer {
        Optimizer::of(Rule::Sgd { momentum, nesterov: false }, rate, 0.0)
    }

    /// Makes Adam with β 0.9 and 0.999, eps 1e-8.
    pub fn adam(rate: f64) -> Optimizer {
        Optimizer::of(Rule::Adam { betas: [0.9, 0.999], eps: 1e-8, decoupled: false }, rate, 0.0)
    }

    /// Makes AdamW: Adam with a decoupled weight decay of 0.01.
    pub fn adamw(rate: f64) -> Optimizer {
        Optimizer::of(Rule::Adam { betas: [0.9, 0.999], eps: 1e-8, decoupled: true }, rate, 0.01)
    }

    /// Returns an error if a step would erase all parameters.
    pub(super) fn check(&self) -> Result<()> {
        let decoupled = matches!(self.rule, Rule::Adam { decoupled: true, .. });
        if decoupled && self.rate * self.weight_decay >= 1.0 {
            let text = format!("a rate of {} with a weight decay of {}", self.rate, self.weight_decay);
            let text = format!("{text}: their product must be below 1, or a step erases all parameters");
            return Err(Error::new(Status::InvalidArgument, text));
        }
        Ok(())
    }

    /// Returns the learning rate at a step, counted from 1.
    pub fn rate_at(&self, step: u64) -> f64 {
        self.rate * self.schedule.factor(step)
    }

    /// The names of the tensors that it keeps for each parameter.
    pub(super) fn states(&self) -> Vec<&'static str> {
        let mut states = match self.rule {
            Rule::Sgd { momentum: 0.0, .. } => vec![],
            Rule::Sgd { .. } => vec!["momentum"],
            Rule::Adam { .. } => vec!["mean", "square"],
        };
        if self.average.is_some() {
            states.push("average");
        }
        states
    }

    /// The numbers of a step, in the order in which they are recorded.
    pub(super) fn numbers(&self, step: u64) -> Vec<f32> {
        let rate = self.rate_at(step);
        let numbers = match self.rule {
            Rule::Sgd { .. } => vec![rate],
            Rule::Adam { betas: [first, second], decoupled, .. } => {
                let shrinks = if decoupled { 1.0 - rate * self.weight_decay } else { 1.0 };
                let rate = rate / (1.0 - power(first, step)) / shrinks;
                let mut numbers = vec![rate, (1.0 - power(second, step)).sqrt()];
                if decoupled && self.weight_decay != 0.0 {
                    numbers.push(shrinks);
                }
                numbers
            }
        };
        numbers.into_iter().map(|number| number as f32).collect()
    }

    /// Records a step from the present parameters, their gradients and the present states. Returns the new parameters and states. With
    /// `taken`, a bool, the present ones are states of the pipeline, and become the new ones if it is true.
    pub(super) fn record(
        &self,
        pipeline: &mut Pipeline,
        slots: &mut Vec<Slot>,
        flat: &Flat,
        [parameters, gradients]: [Value; 2],
        old: &[Value],
        taken: Option<Value>,
    ) -> Result<Vec<Value>> {
        let mut to = Step { pipeline, slots, taken };
        let numbers = (0..self.numbers(1).len()).map(|i| to.input(Slot::Number(i), &[])).collect::<Result<Vec<_>>>()?;
        let gradients = match self.clip_norm {
            Some(most) => to.clip(flat, gradients, most)?,
            None => gradients,
        };
        let mut new = self.one(&mut to, parameters, gradients, old, &numbers)?;
        if let (Some(part), Some(&average)) = (self.average, old.last()) {
            let moved = to.mixed(average, new[0], part)?;
            new.push(to.replaced(average, moved)?);
        }
        Ok(new)
    }

    /// The new parameters, and the new states of the rule.
    fn one(&self, to: &mut Step<'_>, p: Value, g: Value, old: &[Value], numbers: &[Value]) -> Result<Vec<Value>> {
        let decay = self.weight_decay as f32;
        let coupled = decay != 0.0 && !matches!(self.rule, Rule::Adam { decoupled: true, .. });
        let g = if coupled {
            let part = to.scale(p, decay)?;
            to.op(Op::Add, &[g, part])?
        } else {
            g
        };
        match self.rule {
            Rule::Sgd { momentum, nesterov } => {
                let (mut step, mut states) = (g, vec![]);
                if momentum != 0.0 {
                    let rest = to.scale(old[0], momentum as f32)?;
                    let buffer = to.op(Op::Add, &[rest, g])?;
                    let buffer = to.replaced(old[0], buffer)?;
                    step = buffer;
                    if nesterov {
                        let ahead = to.scale(buffer, momentum as f32)?;
                        step = to.op(Op::Add, &[g, ahead])?;
                    }
                    states.push(buffer);
                }
                let step = to.op(Op::Mul, &[step, numbers[0]])?;
                let new = to.op(Op::Sub, &[p, step])?;
                states.insert(0, to.replaced(p, new)?);
                Ok(states)
            }
            Rule::Adam { betas: [first, second], eps, .. } => {
                let mean = to.mixed(old[0], g, first)?;
                let mean = to.replaced(old[0], mean)?;
                let squares = to.op(Op::Mul, &[g, g])?;
                let square = to.mixed(old[1], squares, second)?;
                let square = to.replaced(old[1], square)?;
                let root = to.op(Op::Sqrt, &[square])?;
                let root = to.op(Op::Div, &[root, numbers[1]])?;
                let eps = to.pipeline.constant(&Tensor::new(&[eps as f32], &[])?)?;
                let root = to.op(Op::Add, &[root, eps])?;
                let direction = to.op(Op::Div, &[mean, root])?;
                let step = to.op(Op::Mul, &[direction, numbers[0]])?;
                let mut new = to.op(Op::Sub, &[p, step])?;
                if let Some(&shrinks) = numbers.get(2) {
                    new = to.op(Op::Mul, &[new, shrinks])?;
                }
                Ok(vec![to.replaced(p, new)?, mean, square])
            }
        }
    }
}

/// Records an optimiser's step.
struct Step<'a> {
    pipeline: &'a mut Pipeline,
    slots: &'a mut Vec<Slot>,
    taken: Option<Value>,
}

impl Step<'_> {
    /// What becomes of a state. A state is replaced at once, so that its new value needs memory only until then.
    fn replaced(&mut self, old: Value, new: Value) -> Result<Value> {
        let Some(taken) = self.taken else { return Ok(new) };
        let next = self.op(Op::Where, &[taken, new, old])?;
        self.pipeline.assign(old, next)?;
        Ok(next)
    }

    fn input(&mut self, slot: Slot, dims: &[usize]) -> Result<Value> {
        self.slots.push(slot);
        self.pipeline.input(DType::F32, dims)
    }

    fn op(&mut self, op: Op, operands: &[Value]) -> Result<Value> {
        let operands: Vec<Option<Value>> = operands.iter().copied().map(Some).collect();
        self.pipeline.op(op, &Attrs::DEFAULT, &operands)
    }

    fn scale(&mut self, x: Value, alpha: f32) -> Result<Value> {
        self.pipeline.op(Op::Scale, &Attrs { alpha, ..Attrs::DEFAULT }, &[Some(x)])
    }

    /// `old + (1 − part)·(new − old)`: each operation takes the result of the one before, so that they are one pass.
    fn mixed(&mut self, old: Value, new: Value, part: f64) -> Result<Value> {
        let difference = self.op(Op::Sub, &[new, old])?;
        let moved = self.scale(difference, (1.0 - part) as f32)?;
        self.op(Op::Add, &[moved, old])
    }

    /// Shortens gradients whose norm together is more: each is multiplied by most / (norm + 1e-6). The norm's square is the sum of
    /// the parameters' own, in their order.
    fn clip(&mut self, flat: &Flat, gradients: Value, most: f64) -> Result<Value> {
        let squares = self.op(Op::Mul, &[gradients, gradients])?;
        let mut total = None;
        for squares in flat.values(self.pipeline, squares)? {
            let sum = self.pipeline.op(Op::Sum, &Attrs { axis: Axis::All, ..Attrs::DEFAULT }, &[Some(squares)])?;
            total = Some(match total {
                Some(total) => self.op(Op::Add, &[total, sum])?,
                None => sum,
            });
        }
        let Some(total) = total else { return Ok(gradients) };
        let norm = self.op(Op::Sqrt, &[total])?;
        let number = |to: &mut Step<'_>, number: f32| to.pipeline.constant(&Tensor::new(&[number], &[])?);
        let (tiny, most, one) = (number(self, 1e-6)?, number(self, most as f32)?, number(self, 1.0)?);
        let norm = self.op(Op::Add, &[norm, tiny])?;
        let factor = self.op(Op::Div, &[most, norm])?;
        let factor = self.op(Op::Minimum, &[factor, one])?;
        self.op(Op::Mul, &[gradients, factor])
    }
}
