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
use super::tree::Nodes;
use super::whole::Whole;
use adead_core::pipeline::Value;
use adead_core::{Context, Error, Meta, Result, Shape, Status, Tensor, interruptible};
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
    summing: Option<Summing>,
    pub(super) flat: Flat,
    pub(super) step: u64,
    pub(super) scaling: Option<Scaling>,
    /// The results beside the loss, of the last step.
    results: Vec<Tensor>,
}

fn no_sum() -> Error {
    Error::new(Status::Internal, "no sum of gradients".to_owned())
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
    fn count(&mut self, finite: f32) -> Result<()> {
        match &mut self.scaling {
            Some(scaling) if finite != 0.0 => scaling.skip()?,
            scaling => scaling.iter_mut().for_each(Scaling::made),
        }
        self.step += 1;
        Ok(())
    }

    /// Computes the gradients of the next shards of a batch and adds them up. Each tensor holds one or more shards, one after
    /// another. [`Trainer::apply`] then trains with the sum.
    ///
    /// With ranks, the last shard's call begins to exchange the gradients, while it computes the rest of them.
    ///
    /// # Errors `invalid_argument` if the trainer was not made [`in_shards`](Trainer::in_shards), for a wrong number of
    /// tensors, or for more shards than a batch has. `shape_mismatch` for tensors that don't hold whole shards. After these nothing has
    /// changed. After another error in the last shard's call, such as `io` if a rank is lost, the accumulated gradients are gone and the
    /// trainer must join ranks again.
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
        let before = self.partial.clone();
        let found =
            (done..).zip(&all).try_for_each(|(shard, parts)| self.add(shard, &parts.iter().collect::<Vec<_>>()));
        let Err(error) = found else { return Ok(()) };
        self.partial = before;
        if let Some(ranks) = self.ranks.as_mut().filter(|_| self.summing.take().is_some()) {
            ranks.leave(&error);
            self.forget();
        }
        Err(error)
    }

    /// Computes the gradients of a shard, counted from this trainer's first one, and adds them up. Those of the last one are exchanged with
    /// the other ranks.
    fn add(&mut self, shard: usize, batch: &[&Tensor]) -> Result<()> {
        let Whole::Shards { gradients, .. } = &self.whole else { return Ok(()) };
        let inputs = gradients.inputs(|slot| self.operand(slot, batch, self.own.start + shard, None))?;
        let (context, partial) = (&self.context, &mut self.partial);
        let mut ranks = self.ranks.as_deref_mut().filter(|_| shard + 1 == self.own.len());
        if ranks.is_some() {
            self.summing = Some(Summing::new(self.shards, self.fixed_gradients));
        }
        gradients.run_early(&inputs, &mut |part, sum| {
            partial[part].push(sum, |a, b| context.add(a, b))?;
            match (&mut self.summing, &mut ranks) {
                (Some(summing), Some(ranks)) => summing.begin(*ranks, context, part, partial[part].take()),
                _ => Ok(()),
            }
        })
    }

    /// Drops the sums so far.
    fn forget(&mut self) {
        self.summing = None;
        self.partial.iter_mut().for_each(|nodes| drop(nodes.take()));
    }

    /// Returns the number of shards whose gradients are added up so far.
    pub fn accumulated(&self) -> usize {
        if self.summing.is_some() { self.own.len() } else { self.partial[0].len() }
    }

    /// Trains with the gradients of a whole batch and returns its loss. With ranks, every rank calls it.
    ///
    /// # Errors Those of [`Trainer::step`], and `invalid_argument` if shards are missing. `io` if a rank is lost: the
    /// accumulated gradients are gone, the parameters and the step are unchanged, and the trainer must join ranks again.
    pub fn apply(&mut self) -> Result<f32> {
        let (done, shards) = (self.accumulated(), self.own.len());
        let has = self.has();
        if matches!(self.whole, Whole::Once(_)) {
            return invalid("the trainer takes whole batches; make it with `in_shards`".into());
        }
        if done != shards {
            return invalid(format!("{done} shards were accumulated, and {has} {shards}"));
        }
        let sums = match (self.summing.take(), self.ranks.as_deref_mut()) {
            (Some(summing), Some(ranks)) => summing.finish(ranks, &self.context)?,
            _ => self
                .partial
                .iter_mut()
                .map(|nodes| own_sum(&self.context, nodes, self.fixed_gradients))
                .collect::<Result<_>>()?,
        };
        let Whole::Shards { update, .. } = &self.whole else { unreachable!("it was looked at above") };
        let mut new = update.run(|slot| self.operand(slot, &[], 0, Some(&sums)))?;
        let loss = number(&new.remove(0))?;
        let finite = self.scaling.map_or(Ok(0.0), |_| number(&new.remove(0)))?;
        if !loss.is_finite() {
            return Err(self.unfit(loss, &new[0])?);
        }
        self.count(finite)?;
        if finite == 0.0 {
            self.whole.set(&self.context, &new)?;
        }
        Ok(loss)
    }

    /// What has the number of shards that an error names.
    fn has(&self) -> &'static str {
        if self.ranks.is_some() { "this rank's part of a batch has" } else { "a batch has" }
    }

    /// What an input of a pipeline receives.
    fn operand(&self, slot: &Slot, batch: &[&Tensor], shard: usize, sums: Option<&[Tensor]>) -> Result<Tensor> {
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
    fn unfit(&self, loss: f32, parameters: &Tensor) -> Result<Error> {
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

/// The sum of a trainer's own nodes, which are a whole batch.
fn own_sum(context: &Context, nodes: &mut Nodes<Tensor>, fixed_gradients: bool) -> Result<Tensor> {
    let mut nodes = nodes.take();
    match fixed_gradients {
        true => fixed::sum(context, nodes)?.ok_or_else(no_sum),
        false => nodes.pop().map(|node| node.sum).ok_or_else(no_sum),
    }
}

/// The one element of a tensor.
fn number(tensor: &Tensor) -> Result<f32> {
    match tensor.as_slice::<f32>()? {
        [number] => Ok(*number),
        _ => invalid("a loss has one element".into()),
    }
}
