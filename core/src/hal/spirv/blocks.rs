//! The blocks of a function: the jumps between them, and which block dominates which.

use super::check::Checker;
use super::sort;

/// A block of a function.
#[derive(Clone, Copy)]
struct Block {
    /// The position of its label.
    place: u32,
    /// The labels of its merge block and its continue target; 0 without one.
    merge: u32,
    next: u32,
    /// The block that jumps back to it, plus 1; 0 if none does.
    back: u32,
    /// Whether it is the merge block of some header.
    merged: bool,
    /// Its position in postorder; 0 if the search has not reached it.
    order: u32,
    /// Its place in the dominator tree: its depth (0 if no path leads to it), its immediate dominator, and a dominator
    /// farther up. With these, any dominator is found in logarithmic time.
    depth: u32,
    above: u32,
    further: u32,
}

const NONE: Block =
    Block { place: 0, merge: 0, next: 0, back: 0, merged: false, order: 0, depth: 0, above: 0, further: 0 };

/// A function's blocks, numbered by position.
#[derive(Default)]
pub(super) struct Blocks {
    list: Vec<Block>,
    /// The jumps, each once: target in the upper half, source in the lower half. Sorted by target.
    jumps: Vec<u64>,
    /// The blocks that a path leads to, in postorder.
    order: Vec<u32>,
}

impl Blocks {
    /// Returns the number of the block that contains a word of the function's body.
    #[inline(never)]
    pub fn number(&self, place: u32) -> Option<u32> {
        (self.list.partition_point(|block| block.place <= place) as u32).checked_sub(1)
    }

    #[inline(never)]
    fn get(&self, number: u32) -> &Block {
        self.list.get(number as usize).unwrap_or(&NONE)
    }

    /// Returns whether the block around one word dominates the block around another. Also true if no path leads to the
    /// second, or if the first is a parameter.
    #[inline(never)]
    pub fn reaches(&self, from: u32, to: u32) -> bool {
        match (self.number(from), self.number(to)) {
            (Some(from), Some(to)) => self.dominates(from, to),
            _ => true,
        }
    }

    #[inline(never)]
    fn dominates(&self, a: u32, b: u32) -> bool {
        let (above, below) = (self.get(a).depth, self.get(b).depth);
        below == 0 || above > 0 && above <= below && self.up(b, above) == a
    }

    /// Returns the dominator of `b` at this depth.
    #[inline(never)]
    fn up(&self, mut b: u32, depth: u32) -> u32 {
        loop {
            let block = self.get(b);
            if block.depth <= depth {
                return b;
            }
            b = if self.get(block.further).depth >= depth { block.further } else { block.above };
        }
    }

    /// Returns the lowest block that dominates both.
    fn common(&self, a: u32, b: u32) -> u32 {
        let depth = self.get(a).depth.min(self.get(b).depth);
        let (mut a, mut b) = (self.up(a, depth), self.up(b, depth));
        while a != b {
            let (x, y) = (self.get(a), self.get(b));
            (a, b) = if x.further != y.further { (x.further, y.further) } else { (x.above, y.above) };
        }
        a
    }

    /// Follows all jumps, depth first. False if a loop has more than one jump back, or a jump back leads to no loop
    /// header.
    fn search(&mut self) -> bool {
        const OPEN: u32 = u32::MAX;
        self.order.clear();
        let mut current = 0;
        while let Some(block) = self.list.get_mut(current as usize) {
            // During the search, `further` is the block's next jump, and `above` the block that it was reached from.
            block.order = OPEN;
            let (jump, above) = (block.further, block.above);
            block.further += 1;
            let jump = self.jumps.get(jump as usize).filter(|&&jump| jump as u32 == current);
            let Some(to) = jump.map(|jump| (jump >> 32) as u32) else {
                self.order.push(current);
                block.order = self.order.len() as u32;
                if current == 0 {
                    break;
                }
                current = above;
                continue;
            };
            let Some(block) = self.list.get_mut(to as usize) else {
                return false;
            };
            if block.order == 0 {
                block.above = current;
                current = to;
            } else if block.order == OPEN {
                if block.next == 0 || block.back != 0 && block.back != current + 1 {
                    return false;
                }
                block.back = current + 1;
            }
        }
        true
    }

    /// Builds the dominator tree. False unless every block comes after its immediate dominator.
    fn dominators(&mut self) -> bool {
        self.list[0].further = 0;
        for index in (0..self.order.len()).rev() {
            let to = self.order[index];
            let mut block = *self.get(to);
            let mut jump = self.jumps.partition_point(|&jump| (jump >> 32) < u64::from(to));
            block.above = u32::from(to == 0).wrapping_sub(1);
            while let Some(&from) = self.jumps.get(jump).filter(|&&jump| (jump >> 32) as u32 == to) {
                jump += 1;
                let from = from as u32;
                // Skips jumps from unreachable blocks, and jumps back.
                if self.get(from).order > block.order {
                    block.above = if block.above == u32::MAX { from } else { self.common(block.above, from) };
                }
            }
            if block.above > to {
                return false;
            }
            let above = self.get(block.above);
            let further = self.get(above.further);
            let even = above.depth + self.get(further.further).depth == 2 * further.depth;
            block.further = if even { further.further } else { block.above };
            block.depth = above.depth + 1;
            self.list[to as usize] = block;
        }
        true
    }

    /// Returns whether `from`, sorted, are exactly the blocks that jump to the block around a word.
    pub fn come_from(&self, place: u32, from: &[u64]) -> bool {
        let to = u64::from(self.number(place).unwrap_or(0)) << 32;
        let first = self.jumps.partition_point(|&jump| jump < to);
        let last = self.jumps.partition_point(|&jump| jump < to + (1 << 32));
        self.jumps.get(first..last).is_some_and(|jumps| jumps.iter().map(|&jump| jump - to).eq(from.iter().copied()))
    }
}

impl Checker<'_> {
    fn block_of(&self, label: u32) -> u32 {
        self.blocks.number(self.place(label)).unwrap_or(0)
    }

    /// Reads the blocks of the function from here to `end`. False if a block or jump is malformed.
    pub fn read_blocks(&mut self, end: u32) -> bool {
        let (at, next) = (self.at, self.end);
        self.blocks.list.clear();
        self.blocks.jumps.clear();
        while self.next() && self.at < end {
            let (a, b) = (self.word(self.at + 1), self.word(self.at + 2));
            let opcode = self.word(self.at) & 0xffff;
            if opcode == 248 {
                let further = self.blocks.jumps.len() as u32;
                self.blocks.list.push(Block { place: self.at, further, ..NONE });
            }
            let from = self.blocks.list.len() as u64;
            if let (246 | 247, Some(block)) = (opcode, self.blocks.list.last_mut()) {
                (block.merge, block.next) = (a, if opcode == 246 { b } else { 0 });
            }
            if let 249..=251 = opcode {
                // A switch has numbers between its labels.
                let step = if opcode == 251 { (self.shape(self.type_of(a)) >> 8 & 0xff).div_ceil(32) + 1 } else { 1 };
                let mut label = self.at + if opcode == 249 { 1 } else { 2 };
                let last = if opcode == 250 { label + 2 } else { self.end };
                while label < last {
                    self.blocks.jumps.push(u64::from(self.word(label)) << 32 | (from - 1));
                    label += step;
                }
                if label - step + 1 != last {
                    return false;
                }
            }
        }
        (self.at, self.end) = (at, next);
        for index in 0..self.blocks.jumps.len() {
            let jump = self.blocks.jumps[index];
            let label = (jump >> 32) as u32;
            if !self.label(label, false) {
                return false;
            }
            self.blocks.jumps[index] = u64::from(self.block_of(label)) << 32 | jump & 0xffff_ffff;
        }
        if !self.blocks.search() {
            return false;
        }
        sort(&mut self.blocks.jumps);
        self.blocks.jumps.dedup();
        if !self.blocks.dominators() {
            return false;
        }

        for header in 0..self.blocks.list.len() as u32 {
            let Block { place, merge, next, back, .. } = *self.blocks.get(header);
            if merge == 0 {
                continue;
            }
            if !self.label(merge, false) || next != 0 && !self.label(next, false) {
                return false;
            }
            self.about = place;
            let (merge, last) = (self.block_of(merge), if next == 0 { header } else { self.block_of(next) });
            let blocks = &mut self.blocks;
            let taken = std::mem::replace(&mut blocks.list[merge as usize].merged, true);
            let mut good = !taken && merge != last && blocks.dominates(header, merge) && blocks.dominates(header, last);
            good &= back == 0 || blocks.dominates(last, back - 1) && blocks.dominates(header, back - 1);
            if !good {
                return false;
            }
        }
        true
    }
}
