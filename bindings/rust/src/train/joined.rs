//! What trainers of several ranks say to each other.

use super::ranks::Transport;
use super::trainer::{Trainer, invalid};
use super::tree::{Node, Nodes, nodes_of, root, shards_of};
use super::whole::Whole;
use adead_core::{Context, Error, Result, Shape, Status, Tensor};
use std::ops::Range;

impl Trainer {
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
        compare(ranks.as_mut(), &self.description())?;
        let scaling = self.scaling.map(|scaling| scaling.tensor()).transpose()?;
        let tensors: Vec<Tensor> = self.parameters.iter().chain(&self.states).chain(&scaling).cloned().collect();
        let (step, mut tensors) = share(ranks.as_mut(), self.step, &tensors)?;
        let scaling = match (self.scaling, tensors.pop_if(|_| scaling.is_some())) {
            (Some(own), Some(theirs)) => Some(own.read(&theirs)?),
            _ => None,
        };
        let mut tensors = tensors.iter().map(|tensor| self.placed(tensor)).collect::<Result<Vec<_>>>()?;
        self.states = tensors.split_off(self.parameters.len());
        (self.parameters, self.step, self.scaling) = (tensors, step, scaling);
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
        let mut text = format!("shards {}\nseed {}\n{:?}\n", self.shards, self.seed(), self.optimizer);
        text += &self.scaling.map_or(String::new(), |scaling| format!("{:?}\n", scaling.rule));
        for input in &self.inputs {
            text += &format!("input {} {}\n", input.dtype, input.shape);
        }
        for (name, tensor) in self.names.iter().zip(&self.parameters) {
            text += &format!("{name} {:?}\n", tensor.dims());
        }
        text
    }
}

/// Returns an error unless all ranks have the same text. It has the first line that differs.
pub(super) fn compare(ranks: &mut dyn Transport, text: &str) -> Result<()> {
    let all = ranks.exchange(vec![text.as_bytes().to_vec(); ranks.size()])?;
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
    let mut bytes = Vec::new();
    if ranks.rank() == 0 {
        bytes.extend(step.to_le_bytes());
        put(&mut bytes, tensors.iter())?;
    }
    let all = ranks.exchange(vec![bytes; ranks.size()])?;
    let mut from = Reader { bytes: &all[0], rank: 0 };
    let step = u64::from_le_bytes(from.take(8)?.try_into().unwrap_or_default());
    let tensors = tensors.iter().map(|like| from.tensor(like.shape())).collect::<Result<_>>()?;
    from.end().map(|()| (step, tensors))
}

/// Adds the ranks' nodes up to the sum over all shards. Each rank adds one part of the elements, in the tree's order, and sends the
/// sum to all.
pub(super) fn sum(
    ranks: &mut dyn Transport,
    context: &Context,
    shards: usize,
    nodes: Vec<Node<Vec<Tensor>>>,
) -> Result<Vec<Tensor>> {
    let (rank, size) = (ranks.rank(), ranks.size());
    let shapes: Vec<Shape> = nodes[0].sum.iter().map(|tensor| *tensor.shape()).collect();
    let elements: usize = shapes.iter().map(Shape::elements).sum();
    let chunk = |rank: usize| rank * elements / size..(rank + 1) * elements / size;
    // Scatter: every rank receives its chunk of each node.
    let mut parts = vec![Vec::new(); size];
    for node in &nodes {
        let mut bytes = Vec::with_capacity(4 * elements);
        put(&mut bytes, node.sum.iter())?;
        for (to, part) in parts.iter_mut().enumerate() {
            part.extend_from_slice(&bytes[4 * chunk(to).start..4 * chunk(to).end]);
        }
    }
    drop(nodes);
    let found = ranks.exchange(parts)?;
    let (mut all, shape) = (Vec::new(), Shape::new(&[chunk(rank).len()])?);
    for (rank, bytes) in found.iter().enumerate() {
        let mut from = Reader { bytes, rank };
        for node in nodes_of(shards_of(rank, size, shards))? {
            all.push(Node { level: node.level, index: node.index, sum: from.tensor(&shape)? });
        }
        from.end()?;
    }
    let Some(own) = root(context, all)? else { return invalid("the ranks' shards do not make up a batch".into()) };
    // Gather: every rank receives all chunks.
    let mut bytes = Vec::new();
    put(&mut bytes, [own].iter())?;
    let found = ranks.exchange(vec![bytes; size])?;
    let whole: Vec<u8> = found.concat();
    let mut from = Reader { bytes: &whole, rank };
    let tensors = shapes.iter().map(|shape| from.tensor(shape)).collect::<Result<_>>()?;
    from.end().map(|()| tensors)
}

/// Appends the values of tensors of f32.
fn put<'a>(to: &mut Vec<u8>, tensors: impl Iterator<Item = &'a Tensor>) -> Result<()> {
    for tensor in tensors {
        let (values, first) = (tensor.as_slice::<f32>()?, to.len());
        // In place, which compilers turn into a copy.
        to.resize(first + 4 * values.len(), 0);
        for (to, value) in to[first..].chunks_exact_mut(4).zip(values) {
            to.copy_from_slice(&value.to_le_bytes());
        }
    }
    Ok(())
}

/// Reads what a rank sent.
struct Reader<'a> {
    bytes: &'a [u8],
    rank: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.bytes.split_at_checked(count) else {
            return Err(Error::new(Status::Io, format!("rank {} sent too little", self.rank)));
        };
        self.bytes = rest;
        Ok(taken)
    }

    fn tensor(&mut self, shape: &Shape) -> Result<Tensor> {
        let bytes = self.take(4 * shape.elements())?;
        let values: Vec<f32> = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        Tensor::new(&values, shape.dims())
    }

    fn end(&self) -> Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        Err(Error::new(Status::Io, format!("rank {} sent {} bytes too many", self.rank, self.bytes.len())))
    }
}
