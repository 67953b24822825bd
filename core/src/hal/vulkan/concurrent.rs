//! Which commands can run beside each other: commands that write nothing another one reads or writes. On an H200, a
//! kernel behind a barrier starts 1.5 µs after the previous one, and 0.3 µs without a barrier.

use smallvec::SmallVec;

/// Each new command is compared with at most this many operands. With more, a barrier ends the kernels.
const MOST: usize = 32;

/// A range of device memory that a command reads or writes.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    pub address: u64,
    pub bytes: u64,
    pub writes: bool,
}

impl Use {
    fn conflicts(&self, other: &Use) -> bool {
        let overlap = self.address < other.address + other.bytes && other.address < self.address + self.bytes;
        (self.writes || other.writes) && overlap
    }
}

/// The ranges that one command uses.
pub type Uses = SmallVec<[Use; 5]>;

/// The ranges that all kernels since the last barrier use.
#[derive(Default)]
pub struct ConcurrentKernels {
    /// `None` if the memory of some work is unknown.
    uses: Option<SmallVec<[Use; MOST]>>,
}

impl ConcurrentKernels {
    /// Returns whether a command with these uses can run beside all kernels of the kernels.
    pub fn admits(&self, command: &Uses) -> bool {
        self.uses.as_ref().is_some_and(|before| {
            !command.is_empty()
                && before.len() + command.len() <= MOST
                && before.iter().all(|old| command.iter().all(|new| !old.conflicts(new)))
        })
    }

    /// Starts anew with a command that follows a barrier. Without known uses, nothing can run beside it.
    pub fn begin(&mut self, command: &Uses) {
        self.uses = if command.is_empty() { None } else { Some(command.as_slice().into()) };
    }

    /// Adds a command that was admitted.
    pub fn join(&mut self, command: &Uses) {
        if let Some(uses) = &mut self.uses {
            uses.extend_from_slice(command);
        }
    }

    /// Forgets the kernels, because work with unknown memory was recorded.
    pub fn end(&mut self) {
        self.uses = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(reads: &[(u64, u64)], writes: (u64, u64)) -> Uses {
        let of = |&(address, bytes): &(u64, u64), writes| Use { address, bytes, writes };
        reads.iter().map(|range| of(range, false)).chain([of(&writes, true)]).collect()
    }

    #[test]
    fn a_command_is_admitted_where_nothing_written_is_touched() {
        let mut kernels = ConcurrentKernels::default();
        let first = command(&[(0, 64)], (100, 64));
        assert!(!kernels.admits(&first), "what came before is not known");
        kernels.begin(&first);
        // Both commands read the same range.
        assert!(kernels.admits(&command(&[(0, 64)], (200, 64))));
        // These read a written range, write a read one, and write a written one, at its first or last byte.
        for refused in [command(&[(163, 1)], (200, 8)), command(&[], (63, 8)), command(&[(64, 8)], (92, 9))] {
            assert!(!kernels.admits(&refused), "{refused:?}");
        }
        // Ranges of one buffer that are adjacent but don't overlap.
        assert!(kernels.admits(&command(&[(164, 36)], (64, 36))));
        kernels.join(&command(&[(0, 64)], (200, 64)));
        assert!(!kernels.admits(&command(&[(263, 1)], (300, 8))));
        assert!(!kernels.admits(&Uses::new()), "nothing is known of it");
        kernels.end();
        assert!(!kernels.admits(&command(&[], (1000, 8))));
    }

    #[test]
    fn too_many_operands_admit_no_more() {
        let mut kernels = ConcurrentKernels::default();
        kernels.begin(&command(&[], (0, 8)));
        let mut count = 1;
        while kernels.admits(&command(&[], (8 * count, 8))) {
            kernels.join(&command(&[], (8 * count, 8)));
            count += 1;
        }
        assert_eq!(count, MOST as u64);
    }
}
