//! The blocks of a function: who jumps where, and which lie on every path to which.

use super::check::Checker;
use super::types::Shape;
use crate::error::Result;

/// A function's blocks, numbered as they come.
#[derive(Default)]
pub(super) struct Blocks {
    /// Where their labels are.
    places: Vec<u32>,
    /// Jumps as pairs of to and from, each once, sorted.
    jumps: Vec<[u32; 2]>,
    /// The tree of dominators: how deep a block is (0: no path leads to it), the one above it, and one further up, so that
    /// any that is above is found in logarithmic time.
    depth: Vec<u32>,
    above: Vec<u32>,
    further: Vec<u32>,
}

impl Blocks {
    /// The number of the block around a word of the function's body.
    pub fn at(&self, place: usize) -> Option<usize> {
        self.places.partition_point(|&label| label as usize <= place).checked_sub(1)
    }

    /// Whether every path to the block `b` leads through `a`; so it is where none leads to `b`.
    pub fn dominates(&self, a: usize, b: usize) -> bool {
        let depth = self.depth[a];
        self.depth[b] == 0 || depth > 0 && depth <= self.depth[b] && self.up(b, depth) == a
    }

    /// The block above `b` at that depth.
    fn up(&self, mut b: usize, depth: u32) -> usize {
        while self.depth[b] > depth {
            let further = self.further[b] as usize;
            b = if self.depth[further] >= depth { further } else { self.above[b] as usize };
        }
        b
    }

    /// The lowest block above both.
    fn common(&self, a: usize, b: usize) -> usize {
        let depth = self.depth[a].min(self.depth[b]);
        let (mut a, mut b) = (self.up(a, depth), self.up(b, depth));
        while a != b {
            let apart = self.further[a] != self.further[b];
            let next = if apart { &self.further } else { &self.above };
            (a, b) = (next[a] as usize, next[b] as usize);
        }
        a
    }

    /// Puts a block below another one.
    fn put(&mut self, block: usize, above: usize) {
        let further = self.further[above] as usize;
        let even = self.depth[above] + self.depth[self.further[further] as usize] == 2 * self.depth[further];
        self.depth[block] = self.depth[above] + 1;
        self.above[block] = above as u32;
        self.further[block] = if even { self.further[further] } else { above as u32 };
    }

    /// Whether these, sorted, are the blocks that jump to `to`.
    pub fn come_from(&self, to: usize, from: &[u32]) -> bool {
        let first = self.jumps.partition_point(|jump| jump[0] < to as u32);
        let found = self.jumps[first..].iter().take_while(|jump| jump[0] == to as u32).map(|jump| jump[1]);
        found.eq(from.iter().copied())
    }
}

impl Checker<'_> {
    /// The number of a label's block.
    pub fn block_of(&self, label: u32) -> usize {
        self.blocks.at(self.define[label as usize] as usize).unwrap_or(0)
    }

    /// Reads the blocks of the function that begins here, whose last word is at `end`.
    pub fn read_blocks(&mut self, end: usize) -> Result<()> {
        let (at, next) = (self.at, self.end);
        self.blocks = Blocks::default();
        // Merge and continue labels by block, and where each one's successors begin.
        let (mut merges, mut successors, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        while self.next()? && self.at < end {
            match self.words[self.at] & 0xffff {
                248 => {
                    self.blocks.places.push(self.at as u32);
                    starts.push(successors.len());
                    merges.push([0; 2]);
                    self.first_block = self.blocks.places[0] as usize;
                }
                opcode @ (246 | 247) => {
                    let second = if opcode == 246 { self.words[self.at + 2] } else { 0 };
                    *merges.last_mut().expect("the first pass saw a label") = [self.words[self.at + 1], second];
                }
                249 => successors.push(self.words[self.at + 1]),
                250 => successors.extend(&self.words[self.at + 2..self.at + 4]),
                251 => {
                    let of = self.type_of(self.words[self.at + 1])?;
                    let shape = self.shape(of);
                    self.ensure(shape.class == Shape::INTEGER && shape.count == 1, "it is no integer, of type", of)?;
                    let step = shape.width.div_ceil(32) as usize + 1;
                    self.ensure((self.end - self.at - 3).is_multiple_of(step), "its words don't fit the type", of)?;
                    successors.extend(self.words[self.at + 2..self.end].iter().step_by(step));
                }
                _ => {}
            }
        }
        self.at = at;
        self.end = next;
        starts.push(successors.len());
        let count = merges.len();
        for label in &mut successors {
            self.label(*label, false)?;
            *label = self.block_of(*label) as u32;
        }
        let from = |block: usize| &successors[starts[block]..starts[block + 1]];

        // Depth first; a block comes behind all that it leads to, but for those that lead to it.
        const NEW: u32 = u32::MAX;
        const OPEN: u32 = NEW - 1;
        let (mut order, mut place, mut stack) = (Vec::new(), vec![NEW; count], vec![(0, 0)]);
        let mut back = vec![NEW; count];
        place[0] = OPEN;
        while let Some((block, index)) = stack.last_mut() {
            let Some(&to) = from(*block).get(*index) else {
                place[*block] = order.len() as u32;
                order.push(*block);
                stack.pop();
                continue;
            };
            *index += 1;
            let to = to as usize;
            if place[to] == NEW {
                place[to] = OPEN;
                stack.push((to, 0));
            } else if place[to] == OPEN {
                let label = self.blocks.places[to];
                self.ensure(merges[to][1] != 0, "no loop begins where a jump goes back to, at word", label)?;
                let once = back[to] == NEW || back[to] == *block as u32;
                self.ensure(once, "jumps of more than one block go back to the loop at word", label)?;
                back[to] = *block as u32;
            }
        }

        let blocks = &mut self.blocks;
        for block in 0..count {
            blocks.jumps.extend(from(block).iter().map(|&to| [to, block as u32]));
        }
        blocks.jumps.sort_unstable();
        blocks.jumps.dedup();
        blocks.depth = vec![0; count];
        blocks.above = vec![0; count];
        blocks.further = vec![0; count];
        blocks.depth[0] = 1;
        let mut misplaced = false;
        for &block in order.iter().rev().skip(1) {
            let first = blocks.jumps.partition_point(|jump| jump[0] < block as u32);
            let froms = blocks.jumps[first..].iter().take_while(|jump| jump[0] == block as u32);
            // Not from where no path leads, and not back.
            let froms =
                froms.map(|jump| jump[1] as usize).filter(|&from| place[from] < NEW && place[from] > place[block]);
            let above = froms.reduce(|a, b| blocks.common(a, b)).expect("a path leads to it");
            misplaced |= above > block;
            blocks.put(block, above);
        }

        self.ensure(!misplaced, "a block comes before one that all paths to it lead through, of blocks", count as u32)?;
        let mut merged = vec![false; count];
        for header in (0..count).filter(|&header| merges[header][0] != 0) {
            let place = self.blocks.places[header];
            let [merge, next] = merges[header];
            self.label(merge, false)?;
            let merge = self.block_of(merge);
            let mut good = self.blocks.dominates(header, merge) && !std::mem::replace(&mut merged[merge], true);
            if next != 0 {
                self.label(next, false)?;
                let next = self.block_of(next);
                let last = back[header] as usize;
                good &= next != merge && self.blocks.dominates(header, next);
                good &= back[header] == NEW || self.blocks.dominates(next, last) && self.blocks.dominates(header, last);
            }
            self.ensure(
                good,
                "its merge or continue block is another's or can be reached past it, the block at word",
                place,
            )?;
        }
        Ok(())
    }
}
