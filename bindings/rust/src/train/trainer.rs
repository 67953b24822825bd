//! A trainer: a network with its gradients and an optimiser, compiled once and replayed for each batch.

use super::joined;
use super::network::{Network, Parameter, check_batch};
use super::optimizer::Optimizer;
use super::random;
use super::ranks::Transport;
use super::replay::{Replay, Slot};
use super::tree::{Nodes, shards_of};
use adead_core::pipeline::Value;
use adead_core::{Context, DType, Error, Meta, Op, Result, Shape, Status, Tensor};
use std::ops::Range;

/// Trains a network. A step's bits are a function of the parameters, the batch, the seed and the step's number.
pub struct Trainer {
    context: Context,
    optimizer: Optimizer,
    seed: u64,
    names: Vec<String>,
    /// A batch's tensors, of one shard.
    inputs: Vec<Meta>,
    shards: usize,
    /// The shards of the batch that this trainer computes: all, unless it has joined ranks.
    own: Range<usize>,
    ranks: Option<Box<dyn Transport>>,
    whole: Whole,
    pub(super) parameters: Vec<Tensor>,
    /// The optimiser's tensors: those of the first parameter, then those of the next one.
    pub(super) states: Vec<Tensor>,
    pub(super) step: u64,
    /// The results beside the loss, of the last step.
    results: Vec<Tensor>,
}

/// How a step is computed.
enum Whole {
    /// The loss, the results and the new parameters and states at once.
    Once(Box<Replay>),
    /// The loss, the results and the gradients of each shard; then, from the sum of the gradients, the rest.
    Shards { gradients: Box<Replay>, update: Box<Replay>, partial: Nodes<Vec<Tensor>> },
}

impl Whole {
    /// The pipeline that computes first.
    fn first(&self) -> &Replay {
        match self {
            Whole::Once(replay) => replay,
            Whole::Shards { gradients, .. } => gradients,
        }
    }
}

fn invalid<T>(text: String) -> Result<T> {
    Err(Error::new(Status::InvalidArgument, text))
}

impl Trainer {
    /// Compiles a network's training. `shape_mismatch` if the loss has more than one element, `invalid_argument` if it does not
    /// depend on a parameter or a batch is empty, and the errors of [`Pipeline::gradients`](adead_core::pipeline::Pipeline::gradients).
    pub fn new(network: Network, loss: Value, optimizer: Optimizer) -> Result<Trainer> {
        Trainer::with(network, loss, &[], optimizer, None)
    }

    /// As [`Trainer::new`], with results that each step computes too, such as logits: [`Trainer::results`].
    pub fn with_results(network: Network, loss: Value, results: &[Value], optimizer: Optimizer) -> Result<Trainer> {
        Trainer::with(network, loss, results, optimizer, None)
    }

    /// Compiles the training of a network that was recorded for one of `shards` parts of a batch. The gradients of the parts are
    /// added up in a binary tree over their numbers, so a step's bits do not depend on how many parts are given at once
    /// ([`Trainer::accumulate`]). `invalid_argument` unless the number is a power of two.
    pub fn in_shards(network: Network, loss: Value, optimizer: Optimizer, shards: usize) -> Result<Trainer> {
        if !shards.is_power_of_two() {
            return invalid(format!("a batch of {shards} shards; the number must be a power of two"));
        }
        Trainer::with(network, loss, &[], optimizer, Some(shards))
    }

    fn with(
        mut network: Network,
        loss: Value,
        results: &[Value],
        optimizer: Optimizer,
        shards: Option<usize>,
    ) -> Result<Trainer> {
        if let Some(i) = network.inputs.iter().position(|meta| meta.shape.elements() == 0) {
            return invalid(format!("input {i} is {}; a batch can't be empty", network.inputs[i].shape));
        }
        if network.parameters.is_empty() {
            return invalid("the network has no parameters".into());
        }
        let context = network.pipeline.context().clone();
        let values: Vec<Value> = network.parameters.iter().map(|parameter| parameter.value).collect();
        for parameter in &network.parameters {
            if !network.pipeline.has_gradient(loss, parameter.value)? {
                let name = &parameter.name;
                return invalid(format!(
                    "the loss does not depend on the parameter '{name}' in a way that has a gradient"
                ));
            }
        }
        let gradients = network.pipeline.gradients(loss, &values)?;
        network.pipeline.output(loss)?;
        results.iter().try_for_each(|&result| network.pipeline.output(result))?;
        let whole = match shards {
            None => {
                let (new, states) =
                    optimizer.record(&mut network.pipeline, &mut network.slots, &network.parameters, &gradients)?;
                new.iter().chain(&states).try_for_each(|&value| network.pipeline.output(value))?;
                Whole::Once(Box::new(Replay::new(network.pipeline, network.slots)?))
            }
            Some(shards) => {
                gradients.iter().try_for_each(|&gradient| network.pipeline.output(gradient))?;
                let first = Replay::new(network.pipeline, network.slots)?;
                let update = update(&context, &network.parameters, &optimizer, shards)?;
                Whole::Shards { gradients: Box::new(first), update: Box::new(update), partial: Nodes::new(0) }
            }
        };
        let device = whole.first().device().to_owned();
        let place = |tensor: &Tensor| placed(&context, &device, tensor);
        let mut states = Vec::new();
        for parameter in &network.parameters {
            for name in optimizer.states() {
                states.push(match name {
                    "average" => place(&parameter.tensor)?,
                    _ => place(&Tensor::zeros(DType::F32, parameter.tensor.dims())?)?,
                });
            }
        }
        Ok(Trainer {
            parameters: network.parameters.iter().map(|parameter| place(&parameter.tensor)).collect::<Result<_>>()?,
            names: network.parameters.into_iter().map(|parameter| parameter.name).collect(),
            shards: shards.unwrap_or(1),
            own: 0..shards.unwrap_or(1),
            ranks: None,
            inputs: network.inputs,
            seed: network.seed,
            context,
            optimizer,
            whole,
            states,
            step: 0,
            results: Vec::new(),
        })
    }

    /// Trains with a batch and returns its loss, from before the step. After an error nothing has changed.
    ///
    /// # Errors
    /// `invalid_argument` for another number of tensors, or if the loss is not a finite number: the text names the step and the
    /// first parameter whose new values are not finite. `shape_mismatch` for tensors that the network was not recorded for.
    pub fn step(&mut self, batch: &[&Tensor]) -> Result<f32> {
        if !matches!(self.whole, Whole::Once(_)) {
            self.accumulate(batch)?;
            return self.apply();
        }
        check_batch(&self.inputs, batch)?;
        let Whole::Once(replay) = &self.whole else { unreachable!("it was looked at above") };
        let mut found = replay.run(|slot| self.operand(slot, batch, 0, &[]))?;
        let loss = number(&found[0])?;
        let states = found.split_off(found.len() - self.states.len());
        let parameters = found.split_off(found.len() - self.parameters.len());
        self.check(loss, &parameters)?;
        self.results = found.split_off(1);
        (self.parameters, self.states) = (parameters, states);
        self.step += 1;
        Ok(loss)
    }

    /// Computes the gradients of the next shards of a batch, one or more of them behind each other in every tensor, and adds them
    /// up. [`Trainer::apply`] then trains with them.
    ///
    /// # Errors
    /// `invalid_argument` if the trainer was not made [`in_shards`](Trainer::in_shards), for another number of tensors, or more
    /// shards than a batch has. `shape_mismatch` for tensors that are no whole shards.
    pub fn accumulate(&mut self, batch: &[&Tensor]) -> Result<()> {
        let (shards, done) = (self.own.len(), self.accumulated());
        if matches!(self.whole, Whole::Once(_)) {
            return invalid("the trainer takes whole batches; make it with `in_shards`".into());
        }
        if batch.len() != self.inputs.len() {
            return invalid(format!(
                "the network has {} inputs and was given {} tensors",
                self.inputs.len(),
                batch.len()
            ));
        }
        let rows = |shape: &Shape| shape.dims().first().copied().unwrap_or(1);
        let count = batch.first().map_or(1, |tensor| rows(tensor.shape()) / rows(&self.inputs[0].shape).max(1));
        if count == 0 || done + count > shards {
            return invalid(format!("{count} shards were given after {done}, and {} {shards}", self.has()));
        }
        // The shards' tensors first, so that an error changes nothing.
        let mut all = Vec::new();
        for shard in 0..count {
            let parts = batch.iter().zip(&self.inputs).map(|(tensor, meta)| {
                let own = rows(&meta.shape);
                if rows(tensor.shape()) != count * own || tensor.dims().is_empty() {
                    let text = format!(
                        "a tensor is {:?} and a shard's is {}; it must have {count} times as many rows",
                        tensor.dims(),
                        meta.shape
                    );
                    return Err(Error::new(Status::ShapeMismatch, text));
                }
                tensor.rows(shard * own, own)
            });
            let parts = parts.collect::<Result<Vec<_>>>()?;
            check_batch(&self.inputs, &parts.iter().collect::<Vec<_>>())?;
            all.push(parts);
        }
        let Whole::Shards { gradients, .. } = &self.whole else { unreachable!("it was looked at above") };
        let first = self.own.start + done;
        let found = all.iter().enumerate().map(|(shard, parts)| {
            let parts: Vec<&Tensor> = parts.iter().collect();
            gradients.run(|slot| self.operand(slot, &parts, first + shard, &[]))
        });
        let found = found.collect::<Result<Vec<_>>>()?;
        let context = self.context.clone();
        let Whole::Shards { partial, .. } = &mut self.whole else { unreachable!("it was looked at above") };
        let add = |a: &Vec<Tensor>, b: &Vec<Tensor>| a.iter().zip(b).map(|(a, b)| context.add(a, b)).collect();
        found.into_iter().try_for_each(|tensors| partial.push(tensors, add))
    }

    /// The shards whose gradients are added up.
    pub fn accumulated(&self) -> usize {
        match &self.whole {
            Whole::Once(_) => 0,
            Whole::Shards { partial, .. } => partial.len(),
        }
    }

    /// Trains with the gradients of a whole batch and returns its loss. With ranks, each of them calls it.
    ///
    /// # Errors
    /// `invalid_argument` if shards are missing, and as [`Trainer::step`]. `io` if a rank is lost: what was accumulated is gone, the
    /// parameters and the step are as they were, and the trainer must join ranks again.
    pub fn apply(&mut self) -> Result<f32> {
        let (done, shards) = (self.accumulated(), self.own.len());
        let has = self.has();
        let Whole::Shards { partial, .. } = &mut self.whole else {
            return invalid("the trainer takes whole batches; make it with `in_shards`".into());
        };
        if done != shards {
            return invalid(format!("{done} shards were accumulated, and {has} {shards}"));
        }
        let nodes = partial.take();
        let sum = match self.ranks.as_deref_mut() {
            Some(ranks) => joined::sum(ranks, &self.context, self.shards, nodes)?,
            None => nodes.into_iter().next().map_or(Vec::new(), |root| root.sum),
        };
        let Whole::Shards { update, .. } = &self.whole else { unreachable!("it was looked at above") };
        let loss = number(&sum[0])? / self.shards as f32;
        let mut parameters = update.run(|slot| self.operand(slot, &[], 0, &sum[1..]))?;
        let states = parameters.split_off(self.parameters.len());
        self.check(loss, &parameters)?;
        (self.parameters, self.states) = (parameters, states);
        self.step += 1;
        Ok(loss)
    }

    /// What has the number of shards that an error names.
    fn has(&self) -> &'static str {
        if self.ranks.is_some() { "this rank's part of a batch has" } else { "a batch has" }
    }

    /// Trains together with other processes from here on. All take the parameters, the optimiser's tensors and the step of rank 0.
    /// Each is given the shards of [`Trainer::own_shards`] alone, in their order.
    ///
    /// # Errors
    /// `invalid_argument` if the trainer was not made [`in_shards`](Trainer::in_shards), if there are more ranks than shards, in the
    /// middle of a batch, or if the ranks' networks, optimisers or seeds differ. `io` if a rank is lost.
    pub fn join(&mut self, mut ranks: Box<dyn Transport>) -> Result<()> {
        let size = ranks.size();
        if matches!(self.whole, Whole::Once(_)) || size > self.shards {
            return invalid(format!("{size} ranks for a batch of {} shards; `in_shards` cuts it", self.shards));
        }
        if self.accumulated() > 0 {
            return invalid("a batch is under way: apply it before the trainer joins ranks".into());
        }
        joined::compare(ranks.as_mut(), &self.description())?;
        let tensors: Vec<Tensor> = self.parameters.iter().chain(&self.states).cloned().collect();
        let (step, tensors) = joined::share(ranks.as_mut(), self.step, &tensors)?;
        let mut tensors = tensors.iter().map(|tensor| self.placed(tensor)).collect::<Result<Vec<_>>>()?;
        self.states = tensors.split_off(self.parameters.len());
        (self.parameters, self.step) = (tensors, step);
        self.own = shards_of(ranks.rank(), size, self.shards);
        let Whole::Shards { partial, .. } = &mut self.whole else { unreachable!("it was looked at above") };
        *partial = Nodes::new(self.own.start);
        self.ranks = Some(ranks);
        Ok(())
    }

    /// The shards of a batch that are this trainer's: all, unless it has joined ranks.
    pub fn own_shards(&self) -> Range<usize> {
        self.own.clone()
    }

    /// What ranks must have in common, line by line.
    fn description(&self) -> String {
        let mut text = format!("shards {}\nseed {}\n{:?}\n", self.shards, self.seed, self.optimizer);
        for input in &self.inputs {
            text += &format!("input {} {}\n", input.dtype, input.shape);
        }
        for (name, tensor) in self.names.iter().zip(&self.parameters) {
            text += &format!("{name} {:?}\n", tensor.dims());
        }
        text
    }

    /// Brings a tensor to where the trainer computes.
    pub(super) fn placed(&self, tensor: &Tensor) -> Result<Tensor> {
        placed(&self.context, self.device(), tensor)
    }

    /// What an input of a pipeline receives.
    fn operand(&self, slot: &Slot, batch: &[&Tensor], shard: usize, gradients: &[Tensor]) -> Result<Tensor> {
        match slot {
            Slot::Batch(i) => Ok(batch[*i].clone()),
            Slot::Parameter(i) => Ok(self.parameters[*i].clone()),
            Slot::State(i) => Ok(self.states[*i].clone()),
            Slot::Gradient(i) => Ok(gradients[*i].clone()),
            Slot::Dropout { number, dims, probability } => {
                let number = number + ((shard as u32) << 16);
                random::dropout(self.seed, number, self.step as u32, dims, *probability)
            }
            Slot::Number(i) => Tensor::new(&[self.optimizer.numbers(self.step + 1)[*i]], &[]),
        }
    }

    /// Returns an error if the loss is not finite.
    fn check(&self, loss: f32, parameters: &[Tensor]) -> Result<()> {
        if loss.is_finite() {
            return Ok(());
        }
        let step = self.step + 1;
        let mut first = None;
        for (name, tensor) in self.names.iter().zip(parameters) {
            if tensor.as_slice::<f32>()?.iter().any(|x| !x.is_finite()) {
                first = Some(name);
                break;
            }
        }
        let which = match first {
            Some(name) => format!("the first parameter whose new values are not finite is '{name}'"),
            None => "all new parameters are finite".into(),
        };
        invalid(format!("step {step}: the loss is {loss}; {which}. Nothing has changed"))
    }

    /// Returns the results beside the loss that the last step computed: none before the first one.
    pub fn results(&self) -> &[Tensor] {
        &self.results
    }

    /// Returns the number of steps so far.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Returns the optimiser.
    pub fn optimizer(&self) -> &Optimizer {
        &self.optimizer
    }

    /// Returns the seed of the network.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the device that trains.
    pub fn device(&self) -> &str {
        self.whole.first().device()
    }

    /// Returns the order in which an epoch goes through `count` samples: drawn by the seed.
    pub fn order(&self, epoch: u32, count: usize) -> Vec<usize> {
        random::order(self.seed, epoch, count)
    }

    /// Returns the parameters by name.
    pub fn parameters(&self) -> Vec<(String, Tensor)> {
        self.names.iter().cloned().zip(self.parameters.iter().cloned()).collect()
    }

    /// Returns the averages of the parameters by name, if the optimiser keeps them.
    pub fn averages(&self) -> Option<Vec<(String, Tensor)>> {
        let states = self.optimizer.states();
        let at = states.iter().position(|&state| state == "average")?;
        let own = self.states.iter().skip(at).step_by(states.len()).cloned();
        Some(self.names.iter().cloned().zip(own).collect())
    }

    /// The optimiser's tensors with their names in a checkpoint.
    pub(super) fn named_states(&self) -> Vec<String> {
        let states = self.optimizer.states();
        self.names.iter().flat_map(|name| states.iter().map(move |state| format!("training.{state}.{name}"))).collect()
    }
}

/// Brings a tensor to a device. What a step computes from it stays there.
fn placed(context: &Context, device: &str, tensor: &Tensor) -> Result<Tensor> {
    if device == "cpu" { Ok(tensor.clone()) } else { context.to(tensor, device) }
}

/// The one element of a tensor.
fn number(tensor: &Tensor) -> Result<f32> {
    match tensor.as_slice::<f32>()? {
        [number] => Ok(*number),
        _ => invalid("a loss has one element".into()),
    }
}

/// The optimiser's step from the sum of the shards' gradients.
fn update(context: &Context, parameters: &[Parameter], optimizer: &Optimizer, shards: usize) -> Result<Replay> {
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
        gradients.push(pipeline.op(Op::Mul, &Default::default(), &[Some(sum), Some(part)])?);
    }
    let (new, states) = optimizer.record(&mut pipeline, &mut slots, &own, &gradients)?;
    new.iter().chain(&states).try_for_each(|&value| pipeline.output(value))?;
    Replay::new(pipeline, slots)
}
