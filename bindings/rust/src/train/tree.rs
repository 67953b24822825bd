//! The tree in which shards are added up: a node of level l is the sum of 2^l neighbouring shards.

use adead_core::{Context, Result, Tensor};
use std::ops::Range;

/// A sum in the tree: number `index` of its level.
#[derive(Clone)]
pub(super) struct Node<T> {
    pub level: u32,
    pub index: usize,
    pub sum: T,
}

/// Sums of neighbouring shards from `first` on, which no further addition of the tree joins.
#[derive(Clone)]
pub(super) struct Nodes<T> {
    first: usize,
    nodes: Vec<Node<T>>,
}

impl<T> Nodes<T> {
    pub fn new(first: usize) -> Nodes<T> {
        Nodes { first, nodes: Vec::new() }
    }

    /// The number of shards in it.
    pub fn len(&self) -> usize {
        self.nodes.iter().map(|node| 1 << node.level).sum()
    }

    /// Adds the next shard. After an error nothing has changed.
    pub fn push(&mut self, shard: T, add: impl FnMut(&T, &T) -> Result<T>) -> Result<()> {
        self.put(Node { level: 0, index: self.first + self.len(), sum: shard }, add)
    }

    /// Adds the next node, and joins two nodes of one parent as long as there are such. After an error nothing has changed.
    fn put(&mut self, mut node: Node<T>, mut add: impl FnMut(&T, &T) -> Result<T>) -> Result<()> {
        let mut kept = self.nodes.len();
        while let Some(before) = kept.checked_sub(1).map(|last| &self.nodes[last]) {
            if before.level != node.level || before.index % 2 != 0 {
                break;
            }
            node = Node { level: node.level + 1, index: node.index / 2, sum: add(&before.sum, &node.sum)? };
            kept -= 1;
        }
        self.nodes.truncate(kept);
        self.nodes.push(node);
        Ok(())
    }

    /// Takes all nodes out.
    pub fn take(&mut self) -> Vec<Node<T>> {
        std::mem::take(&mut self.nodes)
    }
}

/// The nodes of a range of shards, without sums.
pub(super) fn nodes_of(shards: Range<usize>) -> Result<Vec<Node<()>>> {
    let mut nodes = Nodes::new(shards.start);
    shards.into_iter().try_for_each(|_| nodes.push((), |(), ()| Ok(())))?;
    Ok(nodes.take())
}

/// The shards of a rank: as even as they can be.
pub(super) fn shards_of(rank: usize, ranks: usize, shards: usize) -> Range<usize> {
    rank * shards / ranks..(rank + 1) * shards / ranks
}

/// The sum of all shards, from the nodes of neighbouring ranges in order.
pub(super) fn root(context: &Context, nodes: Vec<Node<Tensor>>) -> Result<Option<Tensor>> {
    let mut joined = Nodes::new(0);
    nodes.into_iter().try_for_each(|node| joined.put(node, |a, b| context.add(a, b)))?;
    let mut joined = joined.take();
    Ok(if joined.len() == 1 { joined.pop().map(|node| node.sum) } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sum that says how it was added up.
    fn text(shards: Range<usize>) -> Vec<String> {
        let mut nodes = Nodes::new(shards.start);
        for shard in shards {
            nodes.push(shard.to_string(), |a, b| Ok(format!("({a}+{b})"))).unwrap();
        }
        nodes.take().into_iter().map(|node| node.sum).collect()
    }

    #[test]
    fn neighbours_of_one_parent_are_added() {
        assert_eq!(text(0..8), ["(((0+1)+(2+3))+((4+5)+(6+7)))"]);
        assert_eq!(text(1..7), ["1", "(2+3)", "(4+5)", "6"]);
        assert_eq!(text(3..3), [""; 0]);
        let places: Vec<_> = nodes_of(1..7).unwrap().iter().map(|node| (node.level, node.index)).collect();
        assert_eq!(places, [(0, 1), (1, 1), (1, 2), (0, 6)]);
    }

    #[test]
    fn every_cut_has_the_same_root() {
        let context = Context::open("cpu").unwrap();
        // Numbers whose sum depends on the order of additions.
        let leaf = |shard: usize| Tensor::new(&[[1e8f32, 1.0, -1e8, 3.0][shard % 4] + shard as f32], &[1]).unwrap();
        let of = |ranks: usize| {
            let mut nodes = Vec::new();
            for rank in 0..ranks {
                let shards = shards_of(rank, ranks, 16);
                let mut own = Nodes::new(shards.start);
                for shard in shards {
                    own.push(leaf(shard), |a, b| context.add(a, b)).unwrap();
                }
                nodes.extend(own.take());
            }
            root(&context, nodes).unwrap().unwrap().to_vec::<f32>().unwrap()[0]
        };
        let whole = of(1);
        assert_ne!(whole, (0..16).map(|shard| leaf(shard).to_vec::<f32>().unwrap()[0]).sum::<f32>());
        for ranks in 2..=16 {
            assert_eq!(of(ranks), whole, "{ranks} ranks");
        }
    }

    #[test]
    fn an_addition_that_fails_changes_nothing() {
        let mut nodes = Nodes::new(0);
        nodes.push(1, |_, _| Ok(0)).unwrap();
        let error = || adead_core::Error::new(adead_core::Status::Io, "lost".to_owned());
        assert!(nodes.push(2, |_, _| Err(error())).is_err());
        assert_eq!(nodes.len(), 1);
        nodes.push(2, |a, b| Ok(a + b)).unwrap();
        assert_eq!(nodes.take()[0].sum, 3);
    }
}
