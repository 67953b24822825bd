//! Trainers of several ranks: what they exchange.

use super::fixed;
use super::ranks::{Reader, Transport, tell};
use super::trainer::{Trainer, invalid};
use super::tree::{Node, Nodes, nodes_of, root, shards_of};
use super::whole::Whole;
use adead_core::{Attrs, Axis, Context, DType, Op, Result, Tensor};
use std::ops::Range;

impl Trainer {
    /// Joins other ranks, which then train together. All ranks receive the parameters, the optimiser's tensors and the step of
    /// rank 0. From then on, pass only the shards of [`Trainer::own_shards`], in order.
    ///
    /// # Errors `invalid_argument` if the trainer was not made [`in_shards`](Trainer::in_shards), if there are more ranks than
    /// shards, in the middle of a batch, or if the ranks' networks, optimisers or seeds differ. `io` if a rank is lost.
    pub fn join(&mut self, mut ranks: Box<dyn Transport>) -> Result<()> {
        let size = ranks.size();
        if matches!(self.whole, Whole::Once(_)) || size > self.shards {
            return invalid(format!("{size} ranks for a batch of {} shards; `in_shards` cuts it", self.shards));
        }
        if self.accumulated() > 0 {
            return invalid("a batch is under way: apply it before the trainer joins ranks".into());
        }
        compare(ranks.as_mut(), &self.description())?;
        ranks.attach(&self.context, self.device())?;
        let scaling = self.scaling.map(|scaling| scaling.tensor()).transpose()?;
        let mut tensors = self.all()?;
        tensors.extend(scaling.clone());
        let (step, mut tensors) = share(ranks.as_mut(), self.step, &tensors)?;
        let scaling = match (self.scaling, tensors.pop_if(|_| scaling.is_some())) {
            (Some(own), Some(theirs)) => Some(own.read(&theirs)?),
            _ => None,
        };
        self.whole.set(&self.context, &tensors)?;
        (self.step, self.scaling) = (step, scaling);
        self.own = shards_of(ranks.rank(), size, self.shards);
        let Whole::Shards { partial, .. } = &mut self.whole else { unreachable!("it was looked at above") };
        *partial = Nodes::new(self.own.start);
        self.ranks = Some(ranks);
        Ok(())
    }

    /// Returns the shards of a batch that this trainer computes: all, unless it has joined ranks.
    pub fn own_shards(&self) -> Range<usize> {
        self.own.clone()
    }

    /// What ranks must have in common, line by line.
    fn description(&self) -> String {
        let order = if cfg!(target_endian = "little") { "little" } else { "big" };
        let mut text = format!("byte order {order}\nshards {}\nseed {}\n", self.shards, self.seed());
        text += if self.fixed_gradients { "gradients fixed\n" } else { "" };
        text += &format!("{:?}\n", self.optimizer);
        text += &self.scaling.map_or(String::new(), |scaling| format!("{:?}\n", scaling.rule));
        for input in &self.inputs {
            text += &format!("input {} {}\n", input.dtype, input.shape);
        }
        for (name, dims) in self.names.iter().zip(self.flat.dims()) {
            text += &format!("{name} {dims:?}\n");
        }
        text
    }
}

/// Returns an error unless all ranks have the same text. It has the first line that differs.
pub(super) fn compare(ranks: &mut dyn Transport, text: &str) -> Result<()> {
    let all = tell(ranks, text.as_bytes())?;
    let first = String::from_utf8_lossy(&all[0]);
    for (rank, other) in all.iter().enumerate() {
        let other = String::from_utf8_lossy(other);
        if other == first {
            continue;
        }
        let end = "nothing more";
        let lines = |text: &'_ str| text.lines().map(String::from).chain([end.to_owned()]).collect::<Vec<_>>();
        let (own, theirs) = (lines(&first), lines(&other));
        let at = own.iter().zip(&theirs).position(|(a, b)| a != b).unwrap_or(own.len().min(theirs.len()) - 1);
        return invalid(format!("the ranks' trainings differ: rank 0 has '{}', rank {rank} '{}'", own[at], theirs[at]));
    }
    Ok(())
}

/// Returns rank 0's step and tensors.
pub(super) fn share(ranks: &mut dyn Transport, step: u64, tensors: &[Tensor]) -> Result<(u64, Vec<Tensor>)> {
    let step = step.to_le_bytes();
    let mut own: Vec<&[u8]> = Vec::new();
    if ranks.rank() == 0 {
        own.push(&step);
        for tensor in tensors {
            own.push(tensor.host_bytes()?);
        }
    }
    let mut all = ranks.exchange(&vec![own; ranks.size()])?;
    if ranks.rank() == 0 {
        return Ok((u64::from_le_bytes(step), tensors.to_vec()));
    }
    let mut from = Reader { bytes: &std::mem::take(&mut all[0]), rank: 0 };
    let step = u64::from_le_bytes(from.take(8)?.try_into().unwrap_or_default());
    let tensors = tensors.iter().map(|like| from.tensor(like.dtype(), like.dims())).collect::<Result<_>>()?;
    from.end().map(|()| (step, tensors))
}

/// Adds the ranks' nodes up to the sum over all shards. Each rank adds one part of the elements, in the tree's order, and sends the
/// sum to all.
pub(super) fn sum(
    ranks: &mut dyn Transport,
    context: &Context,
    shards: usize,
    nodes: &[Node<Tensor>],
) -> Result<Tensor> {
    let size = ranks.size();
    let of_rank = |rank: usize| nodes_of(shards_of(rank, size, shards));
    let all = (0..size).map(of_rank).collect::<Result<Vec<_>>>()?;
    let counts: Vec<usize> = all.iter().map(Vec::len).collect();
    let own: Vec<&Tensor> = nodes.iter().map(|node| &node.sum).collect();
    let found = scatter(ranks, &own, &counts)?;
    let sums = all.into_iter().flatten().zip(found.into_iter().flatten());
    let joined = sums.map(|(Node { level, index, .. }, sum)| Node { level, index, sum }).collect();
    let Some(sum) = root(context, joined)? else { return invalid("the ranks' shards do not make up a batch".into()) };
    gather(ranks, context, sum, own.first().map_or(0, |sum| sum.len()))
}

/// Adds the ranks' integers up, which have no order: each rank sends the sum of its own shards.
pub(super) fn sum_of_integers(
    ranks: &mut dyn Transport,
    context: &Context,
    nodes: Vec<Node<Tensor>>,
) -> Result<Tensor> {
    let missing = || invalid("a rank has no shards".into());
    let Some(own) = fixed::sum(context, nodes)? else { return missing() };
    let counts = vec![1; ranks.size()];
    let found = scatter(ranks, &[&own], &counts)?.into_iter().flatten();
    let all = found.enumerate().map(|(index, sum)| Node { level: 0, index, sum });
    let Some(sum) = fixed::sum(context, all)? else { return missing() };
    gather(ranks, context, sum, own.len())
}

/// The elements that a rank adds up.
fn chunk(elements: usize, rank: usize, size: usize) -> Range<usize> {
    rank * elements / size..(rank + 1) * elements / size
}

/// Sends every rank its chunk of these tensors. Returns this rank's chunk of all ranks' tensors, of which they have so many.
fn scatter(ranks: &mut dyn Transport, tensors: &[&Tensor], counts: &[usize]) -> Result<Vec<Vec<Tensor>>> {
    let (rank, size) = (ranks.rank(), ranks.size());
    let elements = tensors.first().map_or(0, |tensor| tensor.len());
    let dtype = tensors.first().map_or(DType::F32, |tensor| tensor.dtype());
    let part = |to: usize| {
        let chunk = chunk(elements, to, size);
        tensors.iter().map(|tensor| tensor.rows(chunk.start, chunk.len())).collect::<Result<Vec<_>>>()
    };
    let own = chunk(elements, rank, size).len();
    let expected: Vec<_> = counts.iter().map(|&count| vec![own; count]).collect();
    let parts = (0..size).map(|to| if to == rank { Ok(Vec::new()) } else { part(to) }).collect::<Result<Vec<_>>>()?;
    let mut found = ranks.exchange_tensors(&parts, dtype, &expected)?;
    found[rank] = part(rank)?;
    Ok(found)
}

/// Sends this rank's chunk of a vector to all ranks, and returns the whole vector.
fn gather(ranks: &mut dyn Transport, context: &Context, own: Tensor, elements: usize) -> Result<Tensor> {
    let (rank, size) = (ranks.rank(), ranks.size());
    let expected: Vec<_> = (0..size).map(|rank| vec![chunk(elements, rank, size).len()]).collect();
    let parts: Vec<_> = (0..size).map(|to| if to == rank { Vec::new() } else { vec![own.clone()] }).collect();
    let mut found = ranks.exchange_tensors(&parts, own.dtype(), &expected)?;
    found[rank] = vec![own];
    let all: Vec<Tensor> = found.into_iter().flatten().collect();
    let operands: Vec<_> = all.iter().map(Some).collect();
    context.run(Op::Concat, &Attrs { axis: Axis::At(0), ..Attrs::DEFAULT }, &operands)
}
