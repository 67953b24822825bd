//! How a trainer's step is computed: the pipelines, compiled.

use super::network::{Network, Parameter};
use super::optimizer::Optimizer;
use super::replay::{Replay, Slot};
use super::scaling::{scaled, unscaled};
use super::tree::Nodes;
use adead_core::pipeline::Value;
use adead_core::{Context, DType, Result, Tensor};

/// How a step is computed.
pub(super) enum Whole {
    /// The loss, the results, with a loss scale whether all gradients are finite, and the new parameters and states at once.
    Once(Box<Replay>),
    /// The loss, the results and the gradients of each shard; then, from the sum of the gradients, the rest.
    Shards { gradients: Box<Replay>, update: Box<Replay>, partial: Nodes<Vec<Tensor>> },
}

impl Whole {
    /// Compiles a network's training.
    pub fn new(
        mut network: Network,
        loss: Value,
        results: &[Value],
        optimizer: &Optimizer,
        shards: Option<usize>,
    ) -> Result<Whole> {
        let context = network.pipeline.context().clone();
        let values: Vec<Value> = network.parameters.iter().map(|parameter| parameter.value).collect();
        let scales = network.loss_scale.is_some();
        let from = match scales {
            true => scaled(&mut network.pipeline, &mut network.slots, loss)?,
            false => loss,
        };
        let mut gradients = network.pipeline.gradients(from, &values)?;
        network.pipeline.output(loss)?;
        results.iter().try_for_each(|&result| network.pipeline.output(result))?;
        let Some(shards) = shards else {
            let Network { pipeline, slots, parameters, .. } = &mut network;
            if scales {
                let finite = unscaled(pipeline, slots, &mut gradients)?;
                pipeline.output(finite)?;
            }
            let (new, states) = optimizer.record(pipeline, slots, parameters, &gradients)?;
            new.iter().chain(&states).try_for_each(|&value| pipeline.output(value))?;
            return Ok(Whole::Once(Box::new(Replay::new(network.pipeline, network.slots)?)));
        };
        gradients.iter().try_for_each(|&gradient| network.pipeline.output(gradient))?;
        let first = Replay::new(network.pipeline, network.slots)?;
        let update = update(&context, &network.parameters, optimizer, shards, scales)?;
        Ok(Whole::Shards { gradients: Box::new(first), update: Box::new(update), partial: Nodes::new(0) })
    }

    /// The pipeline that computes first.
    pub fn first(&self) -> &Replay {
        match self {
            Whole::Once(replay) => replay,
            Whole::Shards { gradients, .. } => gradients,
        }
    }
}

/// The optimiser's step from the sum of the shards' gradients. With a loss scale, the first result says whether all of them are finite.
fn update(
    context: &Context,
    parameters: &[Parameter],
    optimizer: &Optimizer,
    shards: usize,
    scales: bool,
) -> Result<Replay> {
    let mut pipeline = context.pipeline();
    let (mut slots, mut own, mut gradients) = (Vec::new(), Vec::new(), Vec::new());
    for (i, parameter) in parameters.iter().enumerate() {
        let value = pipeline.input(DType::F32, parameter.tensor.dims())?;
        slots.push(Slot::Parameter(i));
        own.push(Parameter { value, ..parameter.clone() });
    }
    let part = pipeline.constant(&Tensor::new(&[1.0 / shards as f32], &[])?)?;
    for (i, parameter) in parameters.iter().enumerate() {
        let sum = pipeline.input(DType::F32, parameter.tensor.dims())?;
        slots.push(Slot::Gradient(i));
        gradients.push(pipeline.op(adead_core::Op::Mul, &Default::default(), &[Some(sum), Some(part)])?);
    }
    if scales {
        let finite = unscaled(&mut pipeline, &mut slots, &mut gradients)?;
        pipeline.output(finite)?;
    }
    let (new, states) = optimizer.record(&mut pipeline, &mut slots, &own, &gradients)?;
    new.iter().chain(&states).try_for_each(|&value| pipeline.output(value))?;
    Replay::new(pipeline, slots)
}
