//! Activation checkpointing: values that a backward pass computes again instead of keeping them.

use crate::error::{Result, fail};
use crate::pipeline::{Pipeline, Source};

/// For each node up to the loss: the node that the backward pass reads instead. Nodes that are not computed again stand for
/// themselves.
pub(super) struct Stands {
    nodes: Vec<u32>,
    /// The parts that have not been computed again, which are the first ones.
    parts: usize,
}

impl Pipeline {
    /// Returns how many values the pipeline has: the place from which [`recompute`](Pipeline::recompute) counts.
    pub fn values(&self) -> usize {
        self.graph.nodes.len()
    }

    /// Lets [`gradients`](Pipeline::gradients) compute the values recorded since `since` again when the backward pass needs them.
    /// Then they take no memory between the forward and the backward pass. The gradients have the same bits, because the operations
    /// are the same. Values that later parts of the network use are kept.
    ///
    /// ```
    /// # fn main() -> adead_core::Result<()> {
    /// use adead_core::{Attrs, Context, DType, Op};
    /// let mut pipeline = Context::open("cpu")?.pipeline();
    /// let mut x = pipeline.input(DType::F32, &[1])?;
    /// let weight = x;
    /// for _ in 0..4 {
    ///     let since = pipeline.values();
    ///     let y = pipeline.op(Op::Sin, &Attrs::DEFAULT, &[Some(x)])?;
    ///     x = pipeline.op(Op::Exp, &Attrs::DEFAULT, &[Some(y)])?;
    ///     pipeline.recompute(since)?;
    /// }
    /// let gradients = pipeline.gradients(x, &[weight])?;
    /// # assert_eq!(gradients.len(), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `invalid_argument` if `since` is greater than [`values`](Pipeline::values), or lies before the end of an earlier such part.
    pub fn recompute(&mut self, since: usize) -> Result<()> {
        let (now, earlier) = (self.values(), self.recomputed.last().map_or(0, |part| part.end as usize));
        if since > now {
            fail!(InvalidArgument, "recompute since value {since}; the pipeline has {now} values");
        }
        if since < earlier {
            fail!(
                InvalidArgument,
                "recompute since value {since}; an earlier part that is recomputed ends at {earlier}"
            );
        }
        self.recomputed.push(since as u32..now as u32);
        Ok(())
    }

    /// Begins a backward pass over the nodes up to a loss.
    pub(super) fn stands(&self, last: u32) -> Stands {
        Stands { nodes: (0..=last).collect(), parts: self.recomputed.len() }
    }
}

impl Stands {
    /// The node to read for this one.
    pub fn of(&self, node: u32) -> u32 {
        self.nodes[node as usize]
    }

    /// Prepares the gradient of a node. The backward pass goes from the last node to the first, so the first node of a part that it
    /// comes to makes the part be recorded again.
    pub fn enter(&mut self, pipeline: &mut Pipeline, node: u32) -> Result<()> {
        while self.parts > 0 && pipeline.recomputed[self.parts - 1].end > node {
            self.parts -= 1;
            let part = pipeline.recomputed[self.parts].clone();
            if part.contains(&node) {
                self.record(pipeline, part.start, node + 1)?;
            }
        }
        Ok(())
    }

    /// Records the nodes from `start` to `end` again, except those that nodes behind them use: these are kept anyway.
    fn record(&mut self, pipeline: &mut Pipeline, start: u32, end: u32) -> Result<()> {
        let mut kept = vec![false; (end - start) as usize];
        let mut keep = |node: u32| {
            if (start..end).contains(&node) {
                kept[(node - start) as usize] = true;
            }
        };
        let later = &pipeline.graph.nodes[end as usize..self.nodes.len()];
        later.iter().for_each(|node| operands(&node.source).into_iter().for_each(&mut keep));
        pipeline.graph.outputs.iter().copied().for_each(&mut keep);
        for node in (start..end).rev() {
            let source = &pipeline.graph.nodes[node as usize].source;
            if let (true, Source::Reshape(from) | Source::Rows(from, _)) = (kept[(node - start) as usize], source)
                && *from >= start
            {
                kept[(from - start) as usize] = true;
            }
        }
        for node in start..end {
            let mut again = pipeline.graph.nodes[node as usize].clone();
            let stands = |from: &mut u32| *from = self.nodes[*from as usize];
            match &mut again.source {
                _ if kept[(node - start) as usize] => continue,
                Source::Input | Source::Constant(_) | Source::State(_) | Source::Held => continue,
                Source::Reshape(from) | Source::Rows(from, _) => stands(from),
                Source::Op(_, _, operands) => operands.iter_mut().flatten().for_each(stands),
            }
            let value = pipeline.push(again.meta, again.source)?;
            let recorded = pipeline.node(value)?;
            if pipeline.detached.binary_search(&node).is_ok() {
                pipeline.detached.push(recorded);
            }
            self.nodes[node as usize] = recorded;
        }
        Ok(())
    }
}

/// The nodes that a node is computed from.
fn operands(source: &Source) -> Vec<u32> {
    match source {
        Source::Input | Source::Constant(_) | Source::State(_) | Source::Held => Vec::new(),
        Source::Reshape(from) | Source::Rows(from, _) => vec![*from],
        Source::Op(_, _, operands) => operands.iter().flatten().copied().collect(),
    }
}
