//! A network: a pipeline that is recorded, with its parameters by name.

use super::random;
use super::replay::{Replay, Slot};
use super::scaling::LossScale;
use crate::nn::Weights;
use adead_core::pipeline::{Pipeline, Value};
use adead_core::{Attrs, Context, DType, Error, Meta, Op, Result, Status, Tensor};
use std::sync::OnceLock;

/// A parameter's initial values. Random ones depend only on the network's seed and the number of earlier parameters.
#[derive(Clone, Debug)]
pub enum Init {
    /// Every element is this number.
    Constant(f32),
    /// Uniform between −bound and bound.
    Uniform(f32),
    /// Normal with mean 0 and this standard deviation, computed as the sum of twelve uniform numbers.
    Normal(f32),
    /// These values.
    Tensor(Tensor),
}

/// A parameter: a tensor that training changes.
#[derive(Clone)]
pub(super) struct Parameter {
    pub name: String,
    pub value: Value,
    pub tensor: Tensor,
}

/// Records a network on a context. [`layers`](super::layers) and [`losses`](super::losses) record common parts,
/// [`op`](Network::op) and [`pipeline`](Network::pipeline) any operation.
pub struct Network {
    pub(super) pipeline: Pipeline,
    pub(super) parameters: Vec<Parameter>,
    /// By the pipeline's inputs: what each of them receives.
    pub(super) slots: Vec<Slot>,
    /// The batch's tensors.
    pub(super) inputs: Vec<Meta>,
    pub(super) seed: u64,
    pub(super) loss_scale: Option<LossScale>,
    pub(super) fixed_gradients: bool,
    recompute: bool,
    training: bool,
    weights: Option<Weights>,
}

fn invalid<T>(text: String) -> Result<T> {
    Err(Error::new(Status::InvalidArgument, text))
}

impl Network {
    /// Begins a network to train. The seed determines its initial parameters and dropout.
    pub fn new(context: &Context, seed: u64) -> Network {
        Network {
            pipeline: context.pipeline(),
            parameters: Vec::new(),
            slots: Vec::new(),
            inputs: Vec::new(),
            seed,
            loss_scale: None,
            fixed_gradients: false,
            recompute: false,
            training: true,
            weights: None,
        }
    }

    /// Begins a network that only predicts: it has no dropout, and a [`Predictor`] receives its parameters.
    pub fn for_prediction(context: &Context) -> Network {
        Network { training: false, ..Network::new(context, 0) }
    }

    /// Takes initial parameters from a file, for each name that the file has.
    #[must_use]
    pub fn with_weights(mut self, weights: &Weights) -> Network {
        self.weights = Some(weights.clone());
        self
    }

    /// Computes gradients from the loss times a factor, and divides them by it. `invalid_argument` unless the factor is a power
    /// of two from 2⁻²⁴ to 2²⁴.
    pub fn with_loss_scale(mut self, scale: LossScale) -> Result<Network> {
        self.loss_scale = Some(scale.check()?);
        Ok(self)
    }

    /// Adds the gradients of shards as integers, in units of 2⁻³⁶, instead of in a tree: a batch may have any number of shards up to
    /// 2,048, and ranks exchange one sum each. A gradient or a loss of 2¹⁶ or more counts as not finite. Only for
    /// [`Trainer::in_shards`](super::Trainer::in_shards).
    #[must_use]
    pub fn with_fixed_gradients(mut self, fixed: bool) -> Network {
        self.fixed_gradients = fixed;
        self
    }

    /// Lets the backward pass compute the values of each part again ([`end_part`](Network::end_part)) instead of keeping them: less
    /// memory for a third more products. Gradients have the same bits.
    #[must_use]
    pub fn with_recompute(mut self, recompute: bool) -> Network {
        self.recompute = recompute;
        self
    }

    /// Ends a part of the network, such as a block, that began when the pipeline had `since`
    /// [values](adead_core::pipeline::Pipeline::values). Does nothing unless the network was begun
    /// [with](Network::with_recompute) recomputation. The errors are those of
    /// [`Pipeline::recompute`](adead_core::pipeline::Pipeline::recompute).
    pub fn end_part(&mut self, since: usize) -> Result<()> {
        if self.recompute { self.pipeline.recompute(since) } else { Ok(()) }
    }

    /// Returns whether the network is recorded for training.
    pub fn is_training(&self) -> bool {
        self.training
    }

    /// Returns the pipeline, for operations that are not layers.
    pub fn pipeline(&mut self) -> &mut Pipeline {
        &mut self.pipeline
    }

    /// Returns a value's dimensions.
    pub fn dims(&self, value: Value) -> Result<Vec<usize>> {
        Ok(self.pipeline.meta(value)?.shape.dims().to_vec())
    }

    /// Adds a tensor of the batch, in the order of these calls.
    pub fn input(&mut self, dtype: DType, dims: &[usize]) -> Result<Value> {
        let value = self.pipeline.input(dtype, dims)?;
        self.slots.push(Slot::Batch(self.inputs.len()));
        self.inputs.push(self.pipeline.meta(value)?);
        Ok(value)
    }

    /// Adds a parameter of f32. `invalid_argument` if the name is taken, or reserved for trainers.
    pub fn parameter(&mut self, name: &str, dims: &[usize], init: &Init) -> Result<Value> {
        if self.parameters.iter().any(|parameter| parameter.name == name) {
            return invalid(format!("there is a parameter '{name}' already"));
        }
        if name.is_empty() || name.starts_with("training.") {
            return invalid(format!("a parameter can't have the name '{name}'"));
        }
        let number = self.parameters.len() as u32;
        let stored = self.weights.as_ref().filter(|weights| weights.contains(name));
        let tensor = match (stored, init) {
            (Some(weights), _) => weights.tensor(name, dims)?,
            (None, Init::Constant(number)) => Tensor::new(&vec![*number; dims.iter().product()], dims)?,
            (None, Init::Uniform(bound)) => random::uniform(self.seed, number, dims, *bound)?,
            (None, Init::Normal(deviation)) => random::normal(self.seed, number, dims, *deviation)?,
            (None, Init::Tensor(tensor)) if tensor.dims() == dims && tensor.dtype() == DType::F32 => tensor.clone(),
            (None, Init::Tensor(tensor)) => {
                let text = format!(
                    "the parameter '{name}' is f32 of {dims:?} and was given {} of {:?}",
                    tensor.dtype(),
                    tensor.dims()
                );
                return Err(Error::new(Status::ShapeMismatch, text));
            }
        };
        let value = self.pipeline.input(DType::F32, dims)?;
        self.slots.push(Slot::Parameter(self.parameters.len()));
        self.parameters.push(Parameter { name: name.into(), value, tensor });
        Ok(value)
    }

    /// Records an operation without attributes.
    pub fn op(&mut self, op: Op, operands: &[Value]) -> Result<Value> {
        self.op_with(op, &Attrs::DEFAULT, operands)
    }

    /// Records an operation.
    pub fn op_with(&mut self, op: Op, attrs: &Attrs, operands: &[Value]) -> Result<Value> {
        let operands: Vec<Option<Value>> = operands.iter().copied().map(Some).collect();
        self.pipeline.op(op, attrs, &operands)
    }

    /// Sets elements to 0 with a probability in training, and divides the others by 1 − probability. `invalid_argument` for a
    /// probability outside [0, 1).
    pub fn dropout(&mut self, x: Value, probability: f32) -> Result<Value> {
        if !(0.0..1.0).contains(&probability) {
            return invalid(format!("a dropout of {probability}: it must be at least 0 and below 1"));
        }
        if !self.training || probability == 0.0 {
            return Ok(x);
        }
        let dims = self.dims(x)?;
        let mask = self.pipeline.input(DType::F32, &dims)?;
        let number = self.slots.iter().filter(|slot| matches!(slot, Slot::Dropout { .. })).count() as u32;
        self.slots.push(Slot::Dropout { number, dims, probability });
        self.op(Op::Mul, &[x, mask])
    }
}

/// A compiled network that only predicts.
pub struct Predictor {
    pipeline: Pipeline,
    slots: Vec<Slot>,
    /// Compiled by the first run, because a trainer may never predict.
    replay: OnceLock<Replay>,
    names: Vec<(String, Vec<usize>)>,
    inputs: Vec<Meta>,
}

impl Predictor {
    /// Prepares a network for these results. The first run compiles it.
    pub fn new(mut network: Network, outputs: &[Value]) -> Result<Predictor> {
        for &output in outputs {
            network.pipeline.output(output)?;
        }
        let names = network.parameters.iter().map(|it| (it.name.clone(), it.tensor.dims().to_vec())).collect();
        let Network { pipeline, slots, inputs, .. } = network;
        Ok(Predictor { pipeline, slots, replay: OnceLock::new(), names, inputs })
    }

    fn replay(&self) -> Result<&Replay> {
        if let Some(replay) = self.replay.get() {
            return Ok(replay);
        }
        let made = Replay::new(self.pipeline.clone(), self.slots.clone())?;
        Ok(self.replay.get_or_init(|| made))
    }

    /// Computes the results for a batch with these parameters. `invalid_argument` if one is missing.
    pub fn run(&self, parameters: &[(String, Tensor)], batch: &[&Tensor]) -> Result<Vec<Tensor>> {
        check_batch(&self.inputs, batch)?;
        let own = self.names.iter().map(|(name, dims)| {
            let found = parameters.iter().find(|(other, tensor)| other == name && tensor.dims() == dims);
            found.map(|(_, tensor)| tensor.clone()).ok_or_else(|| {
                Error::new(Status::InvalidArgument, format!("there is no parameter '{name}' of the shape {dims:?}"))
            })
        });
        let own = own.collect::<Result<Vec<_>>>()?;
        self.replay()?.run(|slot| match slot {
            Slot::Batch(i) => Ok(batch[*i].clone()),
            Slot::Parameter(i) => Ok(own[*i].clone()),
            _ => invalid("a network for prediction has no such input".into()),
        })
    }
}

/// Checks a batch against the network's inputs.
pub(super) fn check_batch(inputs: &[Meta], batch: &[&Tensor]) -> Result<()> {
    if batch.len() != inputs.len() {
        return invalid(format!("the network has {} inputs and was given {} tensors", inputs.len(), batch.len()));
    }
    for (i, (tensor, meta)) in batch.iter().zip(inputs).enumerate() {
        if tensor.dtype() != meta.dtype || *tensor.shape() != meta.shape {
            let text = format!(
                "input {i} is {} of {:?}; the network was recorded for {} of {:?}",
                tensor.dtype(),
                tensor.dims(),
                meta.dtype,
                meta.shape.dims()
            );
            return Err(Error::new(Status::ShapeMismatch, text));
        }
    }
    Ok(())
}
