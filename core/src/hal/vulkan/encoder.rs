//! How an operation puts its kernels into a command buffer.

use super::memory::Allocation;
use super::recorder::{Explain, Kind, Recorder};
use super::shaders::Shader;
use super::shared::Shared;
use super::stream::of_device;
use crate::command::Place;
use crate::error::{Result, fail};
use ash::vk;
use smallvec::SmallVec;
use std::sync::Arc;

/// What shapes kernels.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of memory that a workgroup shares.
    pub shared_memory: u32,
    /// Threads of a workgroup, in all.
    pub threads: u32,
    /// Multiprocessors, or a guess where the driver does not tell.
    pub units: u32,
    /// Loop iterations that a thread may run.
    pub iterations: u32,
}

impl Limits {
    /// Those of a device.
    pub fn of(shared: &Shared) -> Limits {
        let physical = &shared.physical;
        Limits {
            shared_memory: physical.limits.max_compute_shared_memory_size,
            threads: physical.limits.max_compute_work_group_invocations,
            units: if physical.units > 0 { physical.units as u32 } else { 32 },
            iterations: physical.iterations,
        }
    }
}

/// Puts the kernels of one command behind what a recorder has: all of them, or none if one can't be had.
pub struct Encoder<'a> {
    recorder: &'a mut Recorder,
    steps: SmallVec<[Step; 4]>,
}

/// What a command does.
enum Step {
    Kernel { pipeline: vk::Pipeline, push: Push, groups: [u32; 3] },
    Clear(Arc<Allocation>),
}

impl Encoder<'_> {
    /// One that writes to a recorder.
    pub fn new(recorder: &mut Recorder) -> Encoder<'_> {
        Encoder { recorder, steps: SmallVec::new() }
    }

    /// Records what was encoded.
    pub fn commit(self) {
        let Encoder { recorder, steps } = self;
        let layout = recorder.shared.pipelines.layout;
        for step in steps {
            match step {
                Step::Clear(memory) => recorder.clear(&memory, 0, memory.bytes()),
                Step::Kernel { pipeline, push, groups } => {
                    recorder.barrier(Kind::Kernel);
                    recorder.bind(pipeline);
                    recorder.push(layout, push.bytes());
                    recorder.groups(groups);
                }
            }
        }
    }

    /// The address of an operand, which is kept until the work is done.
    pub fn address(&mut self, place: Place<'_>) -> Result<u64> {
        let Place::Buffer(buffer, offset) = place else {
            fail!(InvalidArgument, "an operand of work on {} is not on it", self.recorder.shared.info.id);
        };
        let memory = of_device(buffer, &self.recorder.shared)?;
        let address = memory.address + offset as u64;
        let memory = Arc::clone(memory);
        self.recorder.keep(memory);
        Ok(address)
    }

    /// Enqueues a kernel behind everything encoded before, with its specialization constants (from id 10 on), its push
    /// constants and its workgroups.
    pub fn dispatch(&mut self, shader: Shader, constants: &[u32], push: &[u32], groups: [u32; 3]) -> Result<()> {
        let shared = &self.recorder.shared;
        let pipeline = shared.pipelines.get(shared, shader, constants)?;
        debug_assert!(push.len() * 4 <= PUSH_BYTES && groups.iter().all(|&n| n > 0), "{push:?} {groups:?}");
        let mut words = Push::new();
        words.len = push.len();
        words.words[..push.len()].copy_from_slice(push);
        self.steps.push(Step::Kernel { pipeline, push: words, groups });
        Ok(())
    }

    /// Device memory for intermediate values until the work is done: an address, a multiple of 256.
    pub fn scratch(&mut self, bytes: u64) -> Result<u64> {
        self.recorder.scratch(bytes)
    }

    /// The address of a copy of these words, for parameters that don't fit in push constants.
    pub fn parameters(&mut self, words: &[u32]) -> Result<u64> {
        self.recorder.parameters(words)
    }

    /// The address of four words, zero before the command runs: where a kernel that finds wrong data says so. If the first is
    /// not zero afterwards, what `explain` makes of them is what synchronising returns.
    pub fn fault(&mut self, explain: Explain) -> Result<u64> {
        let memory = self.recorder.fault_words(explain)?;
        let address = memory.address;
        // Each time that the work runs.
        self.steps.push(Step::Clear(memory));
        Ok(address)
    }

    /// What shapes kernels.
    pub fn limits(&self) -> Limits {
        Limits::of(&self.recorder.shared)
    }
}

/// Bytes of push constants that every device has.
pub const PUSH_BYTES: usize = 128;

/// Push constants under construction.
#[derive(Default)]
pub struct Push {
    words: [u32; PUSH_BYTES / 4],
    len: usize,
}

impl Push {
    /// None yet.
    pub fn new() -> Push {
        Push::default()
    }

    /// An address, low word first. An address stands on an even word, as the kernels' layout has it.
    pub fn address(self, address: u64) -> Push {
        debug_assert!(self.len.is_multiple_of(2), "an address at word {}", self.len);
        self.word(address as u32).word((address >> 32) as u32)
    }

    /// A word.
    pub fn word(mut self, word: u32) -> Push {
        self.words[self.len] = word;
        self.len += 1;
        self
    }

    /// A number.
    pub fn float(self, x: f32) -> Push {
        self.word(x.to_bits())
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: words are readable as their bytes.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), 4 * self.len) }
    }
}

impl std::ops::Deref for Push {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.words[..self.len]
    }
}
