//! A trainer: a network with its gradients and an optimiser, compiled once and replayed for each batch.

use super::fixed;
use super::flat::Flat;
use super::joined::Summing;
use super::network::{Network, check_batch};
use super::optimizer::Optimizer;
use super::random;
use super::ranks::Transport;
use super::replay::Slot;
use super::scaling::Scaling;
use super::shards::no_sum;
use super::tree::Nodes;
use super::whole::Whole;
use adead_core::pipeline::Value;
use adead_core::{Context, Error, Meta, Result, Status, Tensor, interruptible};
use std::ops::Range;

/// Trains a network. A step's bits are a function of the parameters, the batch, the seed and the step's number.
pub struct Trainer {
    pub(super) context: Context,
    pub(super) optimizer: Optimizer,
    seed: u64,
    pub(super) names: Vec<String>,
    /// A batch's tensors, of one shard.
    pub(super) inputs: Vec<Meta>,
    pub(super) shards: usize,
    /// The shards of the batch that this trainer computes: all, unless it has joined ranks.
    pub(super) own: Range<usize>,
    pub(super) ranks: Option<Box<dyn Transport>>,
    /// Whether the shards' gradients are integers.
    pub(super) fixed_gradients: bool,
    pub(super) whole: Whole,
    /// By part of the gradients: the sums of the shards so far.
    pub(super) partial: Vec<Nodes<Tensor>>,
    /// The sums of all ranks' shards, once this rank has computed its last one.
    pub(super) summing: Option<Summing>,
    pub(super) flat: Flat,
    pub(super) step: u64,
    pub(super) scaling: Option<Scaling>,
    /// The results beside the loss, of the last step.
    results: Vec<Tensor>,
}

pub(super) fn invalid<T>(text: String) -> Result<T> {
    Err(Error::new(Status::InvalidArgument, text))
}

impl Trainer {
    /// Compiles a network's training. `shape_mismatch` if the loss has more than one element, `invalid_argument` if it does not
    /// depend on a parameter or a batch is empty, and the errors of [`Pipeline::gradients`](adead_core::pipeline::Pipeline::gradients).
    pub fn new(network: Network, loss: Value, optimizer: Optimizer) -> Result<Trainer> {
        Trainer::with(network, loss, &[], optimizer, None)
    }

    /// Like [`Trainer::new`], with further results that each step computes, such as logits. [`Trainer::results`] returns them.
    pub fn with_results(network: Network, loss: Value, results: &[Value], optimizer: Optimizer) -> Result<Trainer> {
        Trainer::with(network, loss, results, optimizer, None)
    }

    /// Compiles the training of a network that was recorded for one shard: a batch is cut into `shards` shards. Their gradients
    /// are added in a binary tree over the shards' numbers, so a step's bits don't depend on how many shards each call of
    /// [`Trainer::accumulate`] passes. `invalid_argument` unless `shards` is a power of two, or from 1 to 2,048 with
    /// [`Network::with_fixed_gradients`].
    pub fn in_shards(network: Network, loss: Value, optimizer: Optimizer, shards: usize) -> Result<Trainer> {
        if network.fixed_gradients {
            fixed::check(shards)?;
        } else if !shards.is_power_of_two() {
            return invalid(format!("a batch of {shards} shards; the number must be a power of two"));
        }
        Trainer::with(network, loss, &[], optimizer, Some(shards))
    }

    fn with(
        network: Network,
        loss: Value,
        results: &[Value],
        optimizer: Optimizer,
        shards: Option<usize>,
    ) -> Result<Trainer> {
        if let Some(i) = network.inputs.iter().position(|meta| meta.shape.elements() == 0) {
            return invalid(format!("input {i} is {}; a batch can't be empty", network.inputs[i].shape));
        }
        optimizer.check()?;
        if network.parameters.is_empty() {
            return invalid("the network has no parameters".into());
        }
        let context = network.pipeline.context().clone();
        for parameter in &network.parameters {
            if !network.pipeline.has_gradient(loss, parameter.value)? {
                let name = &parameter.name;
                return invalid(format!(
                    "the loss does not depend on the parameter '{name}' in a way that has a gradient"
                ));
            }
        }
        let (inputs, seed) = (network.inputs.clone(), network.seed);
        let names = network.parameters.iter().map(|parameter| parameter.name.clone()).collect();
        let (scaling, fixed_gradients) = (network.loss_scale.map(Scaling::new), network.fixed_gradients);
        let flat = Flat::new(&network.parameters);
        let whole = Whole::new(network, &flat, loss, results, &optimizer, shards)?;
        Ok(Trainer {
            names,
            shards: shards.unwrap_or(1),
            own: 0..shards.unwrap_or(1),
            ranks: None,
            fixed_gradients,
            partial: vec![Nodes::new(0); flat.parts_elements().len()],
            summing: None,
            inputs,
            seed,
            scaling,
            context,
            optimizer,
            whole,
            flat,
            step: 0,
            results: Vec::new(),
        })
    }

    /// Returns the bytes of a step's values, beside the parameters and the optimiser's tensors. [`Network::with_recompute`] makes them
    /// fewer.
    pub fn memory(&self) -> usize {
        self.whole.memory()
    }

    /// Trains with a batch and returns the loss before the step. After an error nothing has changed.
    ///
    /// # Errors `invalid_argument` for a wrong number of tensors, or if the loss is not finite: the text names the step and the
    /// first parameter whose new values are not finite. `shape_mismatch` if a tensor's shape differs from the recorded one.
    pub fn step(&mut self, batch: &[&Tensor]) -> Result<f32> {
        if !matches!(self.whole, Whole::Once(_)) {
            self.accumulate(batch)?;
            return self.apply();
        }
        check_batch(&self.inputs, batch)?;
        let (mut found, loss, finite) = match self.device() {
            "cpu" => self.once(batch, false)?,
            // Nothing can end a step that a GPU has begun.
            _ => interruptible(&|| false, || self.once(batch, false))?,
        };
        if !loss.is_finite() {
            return Err(self.explained(batch, loss)?);
        }
        self.count(finite)?;
        self.results = found.split_off(1);
        Ok(loss)
    }

    /// Computes a step at once. Returns the results, of which the first is the loss, the loss, and a number that is 0 if the gradients
    /// are finite.
    fn once(&self, batch: &[&Tensor], forced: bool) -> Result<(Vec<Tensor>, f32, f32)> {
        let Whole::Once(replay) = &self.whole else { unreachable!("it was looked at above") };
        let forced = Tensor::from_bools(&[forced], &[])?;
        let mut found = replay.run(|slot| match slot {
            Slot::Forced => Ok(forced.clone()),
            _ => self.operand(slot, batch, 0, None),
        })?;
        let finite = self.scaling.and_then(|_| found.pop()).map_or(Ok(0.0), |finite| number(&finite))?;
        let loss = number(&found[0])?;
        Ok((found, loss, finite))
    }

    /// Returns the error of a step whose loss is not finite: takes the step, looks at the new parameters, and restores the old ones.
    fn explained(&mut self, batch: &[&Tensor], loss: f32) -> Result<Error> {
        let present = self.all()?;
        interruptible(&|| false, || {
            let looked = self.once(batch, true).and_then(|_| self.unfit(loss, &self.whole.trained(0)?));
            self.whole.set(&self.context, &present).and(looked)
        })
    }

    /// Counts a step, which was skipped if its gradients were not finite.
    pub(super) fn count(&mut self, finite: f32) -> Result<()> {
        match &mut self.scaling {
            Some(scaling) if finite != 0.0 => scaling.skip()?,
            scaling => scaling.iter_mut().for_each(Scaling::made),
        }
        self.step += 1;
        Ok(())
    }

    /// What an input of a pipeline receives.
    pub(super) fn operand(
        &self,
        slot: &Slot,
        batch: &[&Tensor],
        shard: usize,
        sums: Option<&[Tensor]>,
    ) -> Result<Tensor> {
        match slot {
            Slot::Batch(i) => Ok(batch[*i].clone()),
            Slot::Parameter(i) => Ok(self.flat.parts(&self.whole.trained(0)?)?.swap_remove(*i)),
            Slot::Trained(i) => self.whole.trained(*i),
            Slot::Forced => Tensor::from_bools(&[false], &[]),
            Slot::Sum(part) => sums.map(|sums| sums[*part].clone()).ok_or_else(no_sum),
            Slot::Dropout { number, dims, probability } => {
                let number = number + ((shard as u32) << 16);
                random::dropout(self.seed, number, self.step as u32, dims, *probability)
            }
            Slot::Number(i) => {
                let made = self.step - self.skipped();
                Tensor::new(&[self.optimizer.numbers(made + 1)[*i]], &[])
            }
            Slot::Scale => Tensor::new(&[self.loss_scale().unwrap_or(1.0)], &[]),
            Slot::Unscale => Tensor::new(&[1.0 / self.loss_scale().unwrap_or(1.0)], &[]),
        }
    }

    /// Returns the error of a step whose loss is not finite, from the parameters that it computed.
    pub(super) fn unfit(&self, loss: f32, parameters: &Tensor) -> Result<Error> {
        let step = self.step + 1;
        let mut first = None;
        for (name, tensor) in self.names.iter().zip(self.flat.parts(parameters)?) {
            if tensor.as_slice::<f32>()?.iter().any(|x| !x.is_finite()) {
                first = Some(name);
                break;
            }
        }
        let which = match first {
            Some(name) => format!("the first parameter whose new values are not finite is '{name}'"),
            None => "all new parameters are finite".into(),
        };
        let text = format!("step {step}: the loss is {loss}; {which}. Nothing has changed");
        Ok(Error::new(Status::InvalidArgument, text))
    }

    /// Returns the further results of the last step; none before the first step.
    pub fn results(&self) -> &[Tensor] {
        &self.results
    }

    /// Returns the number of steps so far.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Returns the factor of the loss at the next step, if the network has a loss scale.
    pub fn loss_scale(&self) -> Option<f32> {
        self.scaling.map(|scaling| scaling.factor)
    }

    /// Returns the number of steps that were skipped, because their gradients were not finite.
    pub fn skipped(&self) -> u64 {
        self.scaling.map_or(0, |scaling| scaling.skipped)
    }

    /// Returns the optimiser.
    pub fn optimizer(&self) -> &Optimizer {
        &self.optimizer
    }

    /// Returns the seed of the network.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the name of the transport between the ranks, such as `TCP` or `NCCL 2.28.3`. `None` without ranks.
    pub fn transport(&self) -> Option<String> {
        self.ranks.as_ref().map(|ranks| ranks.name())
    }

    /// Returns the device that trains.
    pub fn device(&self) -> &str {
        self.whole.first().device()
    }

    /// Returns the order in which an epoch goes through `count` samples. It depends only on the seed and the epoch.
    pub fn order(&self, epoch: u32, count: usize) -> Vec<usize> {
        random::order(self.seed, epoch, count)
    }

    /// Returns the parameters by name. They are parts of one vector, and reading one of them reads all.
    pub fn parameters(&self) -> Result<Vec<(String, Tensor)>> {
        self.named(&self.whole.trained(0)?)
    }

    /// Returns the averages of the parameters by name, if the optimiser keeps them.
    pub fn averages(&self) -> Result<Option<Vec<(String, Tensor)>>> {
        let at = self.optimizer.states().iter().position(|&state| state == "average");
        at.map(|at| self.named(&self.whole.trained(1 + at)?)).transpose()
    }

    /// Returns the trained parameters: the averages if the optimiser keeps them, else the parameters.
    pub fn trained(&self) -> Result<Vec<(String, Tensor)>> {
        Ok(match self.averages()? {
            Some(averages) => averages,
            None => self.parameters()?,
        })
    }

    /// The parameters and the optimiser's tensors.
    pub(super) fn all(&self) -> Result<Vec<Tensor>> {
        (0..=self.optimizer.states().len()).map(|number| self.whole.trained(number)).collect()
    }

    /// The parts of a vector by the parameters' names.
    fn named(&self, whole: &Tensor) -> Result<Vec<(String, Tensor)>> {
        Ok(self.names.iter().cloned().zip(self.flat.parts(whole)?).collect())
    }
}

/// Brings a tensor to a device. What a step computes from it stays there.
pub(super) fn placed(context: &Context, device: &str, tensor: &Tensor) -> Result<Tensor> {
    if device == "cpu" { Ok(tensor.clone()) } else { context.to(tensor, device) }
}

/// The one element of a tensor.
pub(super) fn number(tensor: &Tensor) -> Result<f32> {
    match tensor.as_slice::<f32>()? {
        [number] => Ok(*number),
        _ => invalid("a loss has one element".into()),
    }
}
