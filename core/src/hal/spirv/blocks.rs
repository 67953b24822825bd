//! The blocks of a function: who jumps where, and which lie on every path to which.

use super::check::Checker;

/// A function's blocks, numbered as they come.
#[derive(Default)]
pub(super) struct Blocks {
    /// Where their labels are.
    places: Vec<u32>,
    /// Jumps, to and from; each once, sorted.
    jumps: Vec<u64>,
    /// The tree of dominators: how deep a block is (0: no path leads to it), the one above it, and one further up, so that
    /// any that is above is found in logarithmic time.
    depth: Vec<u32>,
    above: Vec<u32>,
    further: Vec<u32>,
}

#[inline(never)]
fn get(of: &[u32], at: u32) -> u32 {
    of.get(at as usize).copied().unwrap_or(0)
}

#[inline(never)]
fn put(of: &mut [u32], at: u32, value: u32) {
    if let Some(place) = of.get_mut(at as usize) {
        *place = value;
    }
}

impl Blocks {
    /// The number of the block around a word of the function's body.
    #[inline(never)]
    pub fn number(&self, place: u32) -> Option<u32> {
        (self.places.partition_point(|&label| label <= place) as u32).checked_sub(1)
    }

    /// Whether every path to the block around one word of this function leads through that around another; so it is where
    /// none leads there, and of parameters.
    pub fn reaches(&self, from: u32, to: u32) -> bool {
        match (self.number(from), self.number(to)) {
            (Some(from), Some(to)) => self.dominates(from, to),
            _ => true,
        }
    }

    #[inline(never)]
    fn dominates(&self, a: u32, b: u32) -> bool {
        let (above, below) = (get(&self.depth, a), get(&self.depth, b));
        below == 0 || above > 0 && above <= below && self.up(b, above) == a
    }

    /// The block above `b` at that depth.
    #[inline(never)]
    fn up(&self, mut b: u32, depth: u32) -> u32 {
        while get(&self.depth, b) > depth {
            let further = get(&self.further, b);
            b = if get(&self.depth, further) >= depth { further } else { get(&self.above, b) };
        }
        b
    }

    /// The lowest block above both.
    fn common(&self, a: u32, b: u32) -> u32 {
        let depth = get(&self.depth, a).min(get(&self.depth, b));
        let (mut a, mut b) = (self.up(a, depth), self.up(b, depth));
        while a != b {
            let apart = get(&self.further, a) != get(&self.further, b);
            let next = if apart { &self.further } else { &self.above };
            (a, b) = (get(next, a), get(next, b));
        }
        a
    }

    /// The blocks that jump to a block.
    fn froms(&self, to: u32) -> impl Iterator<Item = u64> {
        let first = self.jumps.partition_point(|&jump| jump >> 32 < u64::from(to));
        self.jumps[first..].iter().take_while(move |&&jump| jump >> 32 == u64::from(to)).map(|jump| jump & 0xffff_ffff)
    }

    /// Whether these, sorted, are the blocks that jump to the one around a word.
    pub fn come_from(&self, place: u32, from: &[u64]) -> bool {
        self.froms(self.number(place).unwrap_or(0)).eq(from.iter().copied())
    }
}

impl Checker<'_> {
    /// Reads the blocks of the function that begins here and ends at `end`.
    pub fn read_blocks(&mut self, end: u32) -> bool {
        let (at, next) = (self.at, self.end);
        // Merge and continue labels by block, and labels of successors, with where each block's begin.
        let (mut merges, mut successors, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        self.blocks = Blocks::default();
        while self.next() && self.at < end {
            let [a, b] = [1, 2].map(|index| self.word(self.at + index));
            let opcode = self.word(self.at) & 0xffff;
            let (first, step) = match opcode {
                249 => (1, 1),
                250 => (2, 1),
                251 => (2, (self.shape(self.type_of(a)) >> 8 & 0xff).div_ceil(32) + 1),
                _ => (0, 0),
            };
            match opcode {
                248 => {
                    self.blocks.places.push(self.at);
                    starts.push(successors.len() as u32);
                    merges.push(0);
                }
                246 | 247 => {
                    if let Some(merge) = merges.last_mut() {
                        *merge = u64::from(if opcode == 246 { b } else { 0 }) << 32 | u64::from(a);
                    }
                }
                249..=251 => {
                    let last = if opcode == 250 { self.at + 4 } else { self.end };
                    if opcode == 251 && !(self.end - self.at - 3).is_multiple_of(step) {
                        return false;
                    }
                    successors.extend((self.at + first..last).step_by(step as usize).map(|at| self.word(at)));
                }
                _ => {}
            }
        }
        (self.at, self.end) = (at, next);
        starts.push(successors.len() as u32);
        let count = merges.len();
        for label in &mut successors {
            if !self.label(*label, false) {
                return false;
            }
            *label = self.blocks.number(self.place(*label)).unwrap_or(0);
        }

        // Depth first; a block comes behind all that it leads to, but for those that lead to it.
        const NEW: u32 = 0;
        const OPEN: u32 = u32::MAX;
        let (mut order, mut stack) = (vec![0], vec![0u64]);
        let (mut place, mut back) = (vec![NEW; count], vec![0; count]);
        put(&mut place, 0, OPEN);
        while let Some(top) = stack.last_mut() {
            // A block, and the next of its successors.
            let (block, index) = (*top as u32, (*top >> 32) as u32);
            *top += 1 << 32;
            let successor = get(&starts, block) + index;
            if successor >= get(&starts, block + 1) {
                put(&mut place, block, order.len() as u32);
                order.push(block);
                stack.pop();
                continue;
            }
            let to = get(&successors, successor);
            match get(&place, to) {
                NEW => {
                    put(&mut place, to, OPEN);
                    stack.push(to.into());
                }
                // A loop begins there, and goes back from one block.
                OPEN => {
                    self.about = get(&self.blocks.places, to);
                    let known = get(&back, to);
                    if merges[to as usize] >> 32 == 0 || known != 0 && known != block + 1 {
                        return false;
                    }
                    put(&mut back, to, block + 1);
                }
                _ => {}
            }
        }

        let blocks = &mut self.blocks;
        for block in 0..count as u32 {
            for successor in get(&starts, block)..get(&starts, block + 1) {
                blocks.jumps.push(u64::from(get(&successors, successor)) << 32 | u64::from(block));
            }
        }
        super::sort(&mut blocks.jumps);
        blocks.jumps.dedup();
        [blocks.depth, blocks.above, blocks.further] = [(); 3].map(|()| vec![0; count]);
        put(&mut blocks.depth, 0, 1);
        let last = order.len() as u32 - 1;
        for index in (1..last).rev() {
            let block = get(&order, index);
            let mut above = u32::MAX;
            for from in blocks.froms(block) {
                let from = from as u32;
                // Not from where no path leads, and not back.
                if get(&place, from) > index {
                    above = if above == u32::MAX { from } else { blocks.common(above, from) };
                }
            }
            if above > block {
                return false;
            }
            let further = get(&blocks.further, above);
            let (near, far) = (get(&blocks.depth, above), get(&blocks.depth, further));
            let even = near + get(&blocks.depth, get(&blocks.further, further)) == 2 * far;
            let next = if even { get(&blocks.further, further) } else { above };
            put(&mut blocks.depth, block, near + 1);
            put(&mut blocks.above, block, above);
            put(&mut blocks.further, block, next);
        }

        let mut merged = vec![0; count];
        for header in 0..count as u32 {
            let [merge, next] = [merges[header as usize] as u32, (merges[header as usize] >> 32) as u32];
            if merge == 0 {
                continue;
            }
            if !self.label(merge, false) || next != 0 && !self.label(next, false) {
                return false;
            }
            let [merge, next] = [merge, next].map(|label| self.blocks.number(self.place(label)).unwrap_or(0));
            let (taken, from) = (get(&merged, merge), get(&back, header));
            put(&mut merged, merge, 1);
            let mut good = taken == 0 && self.blocks.dominates(header, merge) && next != merge;
            good &= next == 0 || self.blocks.dominates(header, next);
            good &= from == 0 || self.blocks.dominates(next, from - 1) && self.blocks.dominates(header, from - 1);
            if !good {
                self.about = get(&self.blocks.places, header);
                return false;
            }
        }
        true
    }
}
