//! Trainers of several ranks: what they exchange.

use super::fixed;
use super::ranks::{Exchange, Reader, Transport, tell};
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
        self.partial.iter_mut().for_each(|nodes| *nodes = Nodes::new(self.own.start));
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

/// The sums of all ranks' gradients, under way. For each part of the gradients, every rank adds up some of the elements and tells the
/// others. That goes on while later parts are computed.
pub(super) struct Summing {
    shards: usize,
    fixed_gradients: bool,
    /// In the order in which they were computed, which is that of all ranks.
    parts: Vec<Part>,
}

struct Part {
    number: usize,
    elements: usize,
    stage: Stage,
}

enum Stage {
    /// The ranks send each other the elements to add. `own` are those of this rank.
    Scatter(Exchange, Vec<Tensor>),
    /// The ranks tell each other the sums.
    Gather(Exchange, Tensor),
    Nothing,
}

impl Summing {
    pub fn new(shards: usize, fixed_gradients: bool) -> Summing {
        Summing { shards, fixed_gradients, parts: Vec::new() }
    }

    /// Whether a part is under way.
    pub fn has_begun(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Begins with the sums of this rank's shards of a part.
    pub fn begin(
        &mut self,
        ranks: &mut dyn Transport,
        context: &Context,
        number: usize,
        nodes: Vec<Node<Tensor>>,
    ) -> Result<()> {
        let own = match self.fixed_gradients {
            // Integers have no order, so a rank sends one sum.
            true => fixed::sum(context, nodes)?.into_iter().collect(),
            false => nodes.into_iter().map(|node| node.sum).collect::<Vec<_>>(),
        };
        let counts = self.nodes(ranks.size())?.iter().map(Vec::len).collect::<Vec<_>>();
        let elements = own.first().map_or(0, Tensor::len);
        let (exchange, own) = scatter(ranks, &own, &counts)?;
        self.parts.push(Part { number, elements, stage: Stage::Scatter(exchange, own) });
        // The part before has come meanwhile, or comes while the device computes this one.
        match self.parts.len().checked_sub(2) {
            Some(before) => self.tell(ranks, context, before),
            None => Ok(()),
        }
    }

    /// By rank: the nodes of the tree that it sends.
    fn nodes(&self, size: usize) -> Result<Vec<Vec<Node<()>>>> {
        let of_rank = |rank: usize| match self.fixed_gradients {
            true => Ok(vec![Node { level: 0, index: rank, sum: () }]),
            false => nodes_of(shards_of(rank, size, self.shards)),
        };
        (0..size).map(of_rank).collect()
    }

    /// Adds up this rank's elements of a part, and begins to tell the others.
    fn tell(&mut self, ranks: &mut dyn Transport, context: &Context, at: usize) -> Result<()> {
        let nodes = self.nodes(ranks.size())?;
        let part = &mut self.parts[at];
        let (exchange, own) = match std::mem::replace(&mut part.stage, Stage::Nothing) {
            Stage::Scatter(exchange, own) => (exchange, own),
            told => {
                part.stage = told;
                return Ok(());
            }
        };
        let mut found = ranks.end(exchange)?;
        found[ranks.rank()] = own;
        let sums = nodes.into_iter().flatten().zip(found.into_iter().flatten());
        let all = sums.map(|(Node { level, index, .. }, sum)| Node { level, index, sum }).collect::<Vec<_>>();
        let sum = if self.fixed_gradients { fixed::sum(context, all)? } else { root(context, all)? };
        let Some(sum) = sum else { return invalid("the ranks' shards do not make up a batch".into()) };
        part.stage = Stage::Gather(gather(ranks, &sum, part.elements)?, sum);
        Ok(())
    }

    /// Returns the sums, by the parts' numbers.
    pub fn finish(mut self, ranks: &mut dyn Transport, context: &Context) -> Result<Vec<Tensor>> {
        (0..self.parts.len()).try_for_each(|at| self.tell(ranks, context, at))?;
        let mut sums = Vec::new();
        for part in self.parts {
            let Stage::Gather(exchange, own) = part.stage else { continue };
            let mut found = ranks.end(exchange)?;
            found[ranks.rank()] = vec![own];
            let all: Vec<Tensor> = found.into_iter().flatten().collect();
            let operands: Vec<_> = all.iter().map(Some).collect();
            let sum = context.run(Op::Concat, &Attrs { axis: Axis::At(0), ..Attrs::DEFAULT }, &operands)?;
            sums.push((part.number, sum));
        }
        sums.sort_unstable_by_key(|(number, _)| *number);
        Ok(sums.into_iter().map(|(_, sum)| sum).collect())
    }
}

/// The elements that a rank adds up.
fn chunk(elements: usize, rank: usize, size: usize) -> Range<usize> {
    rank * elements / size..(rank + 1) * elements / size
}

/// Begins to send every rank its chunk of these tensors, and to receive this rank's chunk of all ranks' tensors, of which they have so
/// many. Returns this rank's chunk of its own tensors too.
fn scatter(ranks: &mut dyn Transport, tensors: &[Tensor], counts: &[usize]) -> Result<(Exchange, Vec<Tensor>)> {
    let (rank, size) = (ranks.rank(), ranks.size());
    let elements = tensors.first().map_or(0, |tensor| tensor.len());
    let dtype = tensors.first().map_or(DType::F32, |tensor| tensor.dtype());
    let part = |to: usize| {
        let chunk = chunk(elements, to, size);
        tensors.iter().map(|tensor| tensor.rows(chunk.start, chunk.len())).collect::<Result<Vec<_>>>()
    };
    let own = chunk(elements, rank, size).len();
    let expected = counts.iter().map(|&count| vec![own; count]).collect();
    let parts = (0..size).map(|to| if to == rank { Ok(Vec::new()) } else { part(to) }).collect::<Result<_>>()?;
    Ok((ranks.begin(parts, dtype, expected)?, part(rank)?))
}

/// Begins to send this rank's chunk of a vector to all ranks, and to receive theirs.
fn gather(ranks: &mut dyn Transport, own: &Tensor, elements: usize) -> Result<Exchange> {
    let (rank, size) = (ranks.rank(), ranks.size());
    let expected = (0..size).map(|rank| vec![chunk(elements, rank, size).len()]).collect();
    let parts = (0..size).map(|to| if to == rank { Vec::new() } else { vec![own.clone()] }).collect();
    ranks.begin(parts, own.dtype(), expected)
}
