//! Trainers of batches in shards: gradients are added up, by one trainer or with other ranks, and then the parameters change.

use super::fixed;
use super::joined::Summing;
use super::network::check_batch;
use super::trainer::{Trainer, invalid, number};
use super::tree::Nodes;
use super::whole::Whole;
use adead_core::{Context, Error, Result, Shape, Status, Tensor};

pub(super) fn no_sum() -> Error {
    Error::new(Status::Internal, "no sum of gradients".to_owned())
}

impl Trainer {
    /// Computes the gradients of the next shards of a batch and adds them up. Each tensor holds one or more shards, one after
    /// another. [`Trainer::apply`] then trains with the sum.
    ///
    /// With ranks, the last shard's call begins to exchange the gradients, while it computes the rest of them.
    ///
    /// # Errors `invalid_argument` if the trainer was not made [`in_shards`](Trainer::in_shards), for a wrong number of
    /// tensors, or for more shards than a batch has. `shape_mismatch` for tensors that don't hold whole shards. After these nothing has
    /// changed. After another error in the last shard's call, such as `io` if a rank is lost, the accumulated gradients are gone and the
    /// trainer must join ranks again, unless nothing was exchanged yet.
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
        // Without a part under way, the other ranks have not been told anything.
        let has_begun = self.summing.take().is_some_and(|summing| summing.has_begun());
        if let Some(ranks) = self.ranks.as_mut().filter(|_| has_begun) {
            ranks.leave(&error);
            self.partial.iter_mut().for_each(|nodes| drop(nodes.take()));
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
            (Some(summing), Some(ranks)) => {
                summing.finish(ranks, &self.context).inspect_err(|error| ranks.leave(error))?
            }
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
}

/// The sum of a trainer's own nodes, which are a whole batch.
fn own_sum(context: &Context, nodes: &mut Nodes<Tensor>, fixed_gradients: bool) -> Result<Tensor> {
    let mut nodes = nodes.take();
    match fixed_gradients {
        true => fixed::sum(context, nodes)?.ok_or_else(no_sum),
        false => nodes.pop().map(|node| node.sum).ok_or_else(no_sum),
    }
}
