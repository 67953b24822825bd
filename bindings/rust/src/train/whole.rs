//! How a trainer's step is computed: the pipelines, compiled.

use super::fixed;
use super::flat::{Flat, joined};
use super::network::Network;
use super::optimizer::Optimizer;
use super::replay::{Replay, Slot};
use super::scaling::{scaled, unscaled};
use super::trainer::placed;
use adead_core::pipeline::Value;
use adead_core::{Attrs, Context, DType, Op, Result, Tensor};

/// How a step is computed, and what it trains. Parameters, gradients and the optimiser's tensors are vectors ([`Flat`]).
pub(super) enum Whole {
    /// The loss, the results, and with a loss scale whether all gradients are finite. The parameters and the optimiser's tensors are
    /// states, which the step writes over unless the loss or these gradients are not finite.
    Once(Box<Replay>),
    /// The parts of each shard's gradients, the first one with the loss behind them; then, from their sums, the loss, the finiteness, and
    /// the new parameters and tensors of the optimiser. The present ones are `trained`.
    Shards { gradients: Box<Replay>, update: Box<Replay>, trained: Vec<Tensor> },
}

impl Whole {
    /// Compiles a network's training.
    pub fn new(
        mut network: Network,
        flat: &Flat,
        loss: Value,
        results: &[Value],
        optimizer: &Optimizer,
        shards: Option<usize>,
    ) -> Result<Whole> {
        let tensors: Vec<Tensor> = network.parameters.iter().map(|parameter| parameter.tensor.clone()).collect();
        let mut trained = vec![flat.joined(&tensors)?];
        let zeros = Tensor::zeros(DType::F32, &[flat.elements()])?;
        for name in optimizer.states() {
            trained.push(if name == "average" { trained[0].clone() } else { zeros.clone() });
        }
        let context = network.pipeline.context().clone();
        let values: Vec<Value> = network.parameters.iter().map(|parameter| parameter.value).collect();
        let scales = network.loss_scale.is_some();
        let from = match scales {
            true => scaled(&mut network.pipeline, &mut network.slots, loss)?,
            false => loss,
        };
        let gradients = network.pipeline.gradients(from, &values)?;
        let parameters = network.pipeline.join_inputs(&flat.ordered(&values))?;
        network.slots.retain(|slot| !matches!(slot, Slot::Parameter(_)));
        let Network { mut pipeline, mut slots, fixed_gradients, .. } = network;
        let Some(shards) = shards else {
            pipeline.hold(parameters, &trained[0])?;
            let tensors = trained[1..].iter().map(|tensor| pipeline.state(tensor)).collect::<Result<Vec<_>>>()?;
            pipeline.output(loss)?;
            results.iter().try_for_each(|&result| pipeline.output(result))?;
            let mut gradients = flat.gather(&mut pipeline, &gradients)?;
            // NaN unless the loss is finite, and the gradients are.
            let mut zero = pipeline.op(Op::Sub, &Attrs::DEFAULT, &[Some(loss), Some(loss)])?;
            if scales {
                let finite = unscaled(&mut pipeline, &mut slots, &mut gradients)?;
                pipeline.output(finite)?;
                zero = pipeline.op(Op::Add, &Attrs::DEFAULT, &[Some(zero), Some(finite)])?;
            }
            let forced = pipeline.input(DType::Bool, &[])?;
            slots.push(Slot::Forced);
            let zero = pipeline.reshape(zero, &[])?;
            let finite = pipeline.op(Op::Equal, &Attrs::DEFAULT, &[Some(zero), Some(zero)])?;
            let taken = pipeline.op(Op::Where, &Attrs::DEFAULT, &[forced, forced, finite].map(Some))?;
            let given = [parameters, gradients];
            optimizer.record(&mut pipeline, &mut slots, flat, given, &tensors, Some(taken))?;
            return Ok(Whole::Once(Box::new(Replay::new(pipeline, slots)?)));
        };
        slots.push(Slot::Trained(0));
        pipeline.hand_out();
        for (part, elements) in flat.parts_elements().into_iter().enumerate() {
            let behind = if part == 0 { &[loss][..] } else { &[] };
            let mut own = flat.gather_part(&mut pipeline, part, &gradients, behind)?;
            if fixed_gradients {
                own = fixed::encode(&mut pipeline, own, elements)?;
            }
            pipeline.output(own)?;
        }
        let first = Replay::new(pipeline, slots)?;
        let update = update(&context, flat, optimizer, shards, scales, fixed_gradients)?;
        let trained = trained.iter().map(|tensor| placed(&context, first.device(), tensor)).collect::<Result<_>>()?;
        Ok(Whole::Shards { gradients: Box::new(first), update: Box::new(update), trained })
    }

    /// Returns the parameters (number 0) or a tensor of the optimiser.
    pub fn trained(&self, number: usize) -> Result<Tensor> {
        match self {
            Whole::Once(replay) => replay.state(number),
            Whole::Shards { trained, .. } => Ok(trained[number].clone()),
        }
    }

    /// Replaces the parameters and the optimiser's tensors.
    pub fn set(&mut self, context: &Context, tensors: &[Tensor]) -> Result<()> {
        match self {
            Whole::Once(replay) => tensors.iter().enumerate().try_for_each(|(i, tensor)| replay.set_state(i, tensor)),
            Whole::Shards { trained, gradients, .. } => {
                let device = gradients.device();
                *trained = tensors.iter().map(|tensor| placed(context, device, tensor)).collect::<Result<_>>()?;
                Ok(())
            }
        }
    }

    /// Bytes of a step's values.
    pub fn memory(&self) -> usize {
        match self {
            Whole::Once(replay) => replay.memory(),
            Whole::Shards { gradients, update, .. } => gradients.memory() + update.memory(),
        }
    }

    /// The pipeline that computes first.
    pub fn first(&self) -> &Replay {
        match self {
            Whole::Once(replay) => replay,
            Whole::Shards { gradients, .. } => gradients,
        }
    }
}

/// The loss and the optimiser's step from the sum of the shards' gradients. With a loss scale, the second result says whether all of
/// them are finite.
fn update(
    context: &Context,
    flat: &Flat,
    optimizer: &Optimizer,
    shards: usize,
    scales: bool,
    fixed_gradients: bool,
) -> Result<Replay> {
    let (mut pipeline, mut slots) = (context.pipeline(), vec![Slot::Trained(0)]);
    let elements = flat.elements();
    let parameters = pipeline.input(DType::F32, &[elements])?;
    let parts = flat.parts_elements();
    let mut sums = Vec::new();
    for (i, &count) in parts.iter().enumerate() {
        let (dtype, more) = match fixed_gradients {
            true => (DType::I64, if i == 0 { 3 } else { 1 }),
            false => (DType::F32, usize::from(i == 0)),
        };
        sums.push(pipeline.input(dtype, &[count + more])?);
        slots.push(Slot::Sum(i));
    }
    let (mut gradients, loss) = if fixed_gradients {
        fixed::decode(&mut pipeline, &sums, &parts, shards)?
    } else {
        let part = pipeline.constant(&Tensor::new(&[1.0 / shards as f32], &[])?)?;
        let loss = pipeline.rows(sums[0], parts[0], 1)?;
        sums[0] = pipeline.rows(sums[0], 0, parts[0])?;
        let all = if let [all] = sums[..] { all } else { joined(&mut pipeline, &sums)? };
        // The loss has a tensor of its own, because reading a part of a tensor on a GPU brings all of it to the host.
        let mut mean = |values: Value| pipeline.op(Op::Mul, &Attrs::DEFAULT, &[Some(values), Some(part)]);
        (mean(all)?, mean(loss)?)
    };
    pipeline.output(loss)?;
    if scales {
        let finite = unscaled(&mut pipeline, &mut slots, &mut gradients)?;
        pipeline.output(finite)?;
    }
    let mut tensors = Vec::new();
    for number in 1..=optimizer.states().len() {
        tensors.push(pipeline.input(DType::F32, &[elements])?);
        slots.push(Slot::Trained(number));
    }
    let new = optimizer.record(&mut pipeline, &mut slots, flat, [parameters, gradients], &tensors, None)?;
    new.iter().try_for_each(|&value| pipeline.output(value))?;
    Replay::new(pipeline, slots)
}
