//! The blocks of a function: who jumps where, and which lie on every path to which.

use super::check::Checker;

/// A block.
#[derive(Clone, Copy)]
struct Block {
    /// Where its label is.
    place: u32,
    /// The labels of its merge and continue blocks, 0 if it has none.
    merge: u32,
    next: u32,
    /// The block that jumps back to it, plus 1; 0 if none does.
    back: u32,
    /// Whether it is some block's merge block.
    merged: bool,
    /// When all that it leads to was seen: 0 never, as long as no path leads to it.
    order: u32,
    /// In the tree of dominators: how deep it is (0: no path leads to it), the block above it, and one further up, so that
    /// any that is above is found in logarithmic time.
    depth: u32,
    above: u32,
    further: u32,
}

const NONE: Block =
    Block { place: 0, merge: 0, next: 0, back: 0, merged: false, order: 0, depth: 0, above: 0, further: 0 };

/// A function's blocks, numbered as they come.
#[derive(Default)]
pub(super) struct Blocks {
    list: Vec<Block>,
    /// Jumps, to and from; each once, sorted.
    jumps: Vec<u64>,
    /// The blocks that a path leads to, each behind all that it leads to, but for loops.
    order: Vec<u32>,
}

impl Blocks {
    /// The number of the block around a word of the function's body.
    #[inline(never)]
    pub fn number(&self, place: u32) -> Option<u32> {
        (self.list.partition_point(|block| block.place <= place) as u32).checked_sub(1)
    }

    #[inline(never)]
    fn get(&self, number: u32) -> &Block {
        self.list.get(number as usize).unwrap_or(&NONE)
    }

    /// Whether every path to the block around one word of this function leads through that around another; so it is where
    /// none leads there, and of parameters.
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

    /// The block above `b` at that depth.
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

    /// The lowest block above both.
    fn common(&self, a: u32, b: u32) -> u32 {
        let depth = self.get(a).depth.min(self.get(b).depth);
        let (mut a, mut b) = (self.up(a, depth), self.up(b, depth));
        while a != b {
            let (x, y) = (self.get(a), self.get(b));
            (a, b) = if x.further != y.further { (x.further, y.further) } else { (x.above, y.above) };
        }
        a
    }

    /// Goes along all jumps, depth first; loops have one jump back.
    fn search(&mut self) -> bool {
        const OPEN: u32 = u32::MAX;
        self.order.clear();
        let mut current = 0;
        while let Some(block) = self.list.get_mut(current as usize) {
            // So far `further` is its next jump, and `above` the block that it was reached from.
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

    /// Makes the tree of dominators; a block comes behind its dominators.
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
                // Not from where no path leads, and not back.
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

    /// Whether these, sorted, are the blocks that jump to the one around a word.
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

    /// Reads the blocks of the function that begins here and ends at `end`.
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
                // Of a switch there are numbers between the labels.
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
        self.blocks.jumps.sort_unstable();
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
