//! What trainers of several ranks say to each other.

use super::ranks::Transport;
use super::trainer::{Trainer, invalid};
use super::tree::{Node, Nodes, nodes_of, root, shards_of};
use super::whole::Whole;
use adead_core::{Context, DType, Error, Result, Status, Tensor};
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
        let tensors: Vec<Tensor> = [&self.parameters].into_iter().chain(&self.states).chain(&scaling).cloned().collect();
        let (step, mut tensors) = share(ranks.as_mut(), self.step, &tensors)?;
        let scaling = match (self.scaling, tensors.pop_if(|_| scaling.is_some())) {
            (Some(own), Some(theirs)) => Some(own.read(&theirs)?),
            _ => None,
        };
        let mut tensors = tensors.iter().map(|tensor| self.placed(tensor)).collect::<Result<Vec<_>>>()?;
        self.states = tensors.split_off(1);
        (self.parameters, self.step, self.scaling) = (tensors.remove(0), step, scaling);
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
        let order = if cfg!(target_endian = "little") { "little" } else { "big" };
        let mut text = format!("byte order {order}\nshards {}\nseed {}\n", self.shards, self.seed());
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

/// Sends every other rank the same bytes, and returns what the ranks sent: `own` for this one.
fn tell(ranks: &mut dyn Transport, own: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut all = ranks.exchange(&vec![vec![own]; ranks.size()])?;
    all[ranks.rank()] = own.to_vec();
    Ok(all)
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
    let tensors = tensors.iter().map(|like| from.tensor(like.dims())).collect::<Result<_>>()?;
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
    let (rank, size) = (ranks.rank(), ranks.size());
    let elements = nodes.first().map_or(0, |node| node.sum.len());
    let chunk = |rank: usize| rank * elements / size..(rank + 1) * elements / size;
    let own = chunk(rank);
    // Scatter: every rank receives its chunk of each node.
    let values = nodes.iter().map(|node| node.sum.host_bytes()).collect::<Result<Vec<_>>>()?;
    let part = |to: usize| values.iter().map(|bytes| &bytes[4 * chunk(to).start..4 * chunk(to).end]).collect();
    let found = ranks.exchange(&(0..size).map(part).collect::<Vec<_>>())?;
    let mut all = Vec::new();
    for (other, bytes) in found.iter().enumerate() {
        if other == rank {
            for Node { level, index, sum } in nodes {
                all.push(Node { level: *level, index: *index, sum: sum.rows(own.start, own.len())? });
            }
            continue;
        }
        let mut from = Reader { bytes, rank: other };
        for node in nodes_of(shards_of(other, size, shards))? {
            all.push(Node { level: node.level, index: node.index, sum: from.tensor(&[own.len()])? });
        }
        from.end()?;
    }
    let Some(sum) = root(context, all)? else { return invalid("the ranks' shards do not make up a batch".into()) };
    // Gather: every rank receives all chunks.
    let own = sum.host_bytes()?;
    let found = ranks.exchange(&vec![vec![own]; size])?;
    let mut whole = Vec::with_capacity(4 * elements);
    for (other, bytes) in found.iter().enumerate() {
        let mut from = Reader { bytes: if other == rank { own } else { bytes }, rank: other };
        whole.extend_from_slice(from.take(4 * chunk(other).len())?);
        from.end()?;
    }
    Tensor::from_bytes(&whole, DType::F32, &[elements])
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

    /// A tensor of f32.
    fn tensor(&mut self, dims: &[usize]) -> Result<Tensor> {
        Tensor::from_bytes(self.take(4 * dims.iter().product::<usize>())?, DType::F32, dims)
    }

    fn end(&self) -> Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        Err(Error::new(Status::Io, format!("rank {} sent {} bytes too many", self.rank, self.bytes.len())))
    }
}
