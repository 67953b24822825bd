//! How an operation puts its kernels into a stream.

use super::kernels::Launch;
use super::stream::{CudaStream, of_device};
use crate::command::Place;
use crate::error::{Result, fail};
use crate::hal::lowering::{Encoder, Explain, Kernels, Limits, PUSH_BYTES, Push};
use smallvec::SmallVec;
use std::sync::Arc;

/// Puts the kernels of one command behind what a stream has: all of them, or none if one can't be had.
pub struct CudaEncoder<'a> {
    stream: &'a mut CudaStream,
    steps: SmallVec<[Step; 4]>,
    /// Words for the next kernel.
    table: SmallVec<[u32; TABLE]>,
}

/// A kernel with its parameters.
struct Step {
    function: super::api::Handle,
    launch: Launch,
    push: Push,
    table: SmallVec<[u32; TABLE]>,
}

/// Words of the table that every kernel has among its parameters.
const TABLE: usize = 32;

impl CudaEncoder<'_> {
    /// One that writes to a stream.
    pub fn new(stream: &mut CudaStream) -> CudaEncoder<'_> {
        CudaEncoder { stream, steps: SmallVec::new(), table: SmallVec::new() }
    }

    /// Launches what was encoded.
    pub fn commit(self) -> Result<()> {
        let CudaEncoder { stream, steps, .. } = self;
        for Step { function, launch, push, table } in steps {
            // Push constants, to a multiple of eight bytes, as structures of addresses are; the constants; the table.
            let mut words: SmallVec<[u32; 96]> = SmallVec::from_slice(&push);
            words.resize(push.len().next_multiple_of(2), 0);
            words.extend_from_slice(&launch.words.0[..launch.words.1]);
            let end = words.len() + TABLE;
            words.extend_from_slice(&table);
            words.resize(end, 0);
            // SAFETY: words are readable as their bytes.
            let bytes = unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), 4 * words.len()) };
            let block = [launch.threads, 1, 1];
            // SAFETY: a function of ours with these parameters; what they name is kept by the stream.
            unsafe { stream.launch(function, launch.groups, block, launch.shared_bytes, bytes) }?;
        }
        Ok(())
    }
}

impl Encoder for CudaEncoder<'_> {
    fn address(&mut self, place: Place<'_>) -> Result<u64> {
        let Place::Buffer(buffer, offset) = place else {
            fail!(InvalidArgument, "an operand of work on {} is not on it", self.stream.shared.id());
        };
        let memory = Arc::clone(of_device(buffer, &self.stream.shared)?);
        Ok(self.stream.keep_memory(&memory) + offset as u64)
    }

    fn dispatch(&mut self, kernels: Kernels, constants: &[u32], push: &[u32], groups: [u32; 3]) -> Result<()> {
        debug_assert!(push.len() * 4 <= PUSH_BYTES && groups.iter().all(|&n| n > 0), "{push:?} {groups:?}");
        let shared = &self.stream.shared;
        let launch = Launch::plan(kernels, constants, push, groups, shared.physical.capability)?;
        let function = shared.modules.function(shared, kernels, launch.name)?;
        let table = std::mem::take(&mut self.table);
        self.steps.push(Step { function, launch, push: Push::of(push), table });
        Ok(())
    }

    fn scratch(&mut self, bytes: u64) -> Result<u64> {
        self.stream.scratch(bytes)
    }

    /// They go among the next kernel's parameters; the address is not used.
    fn parameters(&mut self, words: &[u32]) -> Result<u64> {
        if words.len() > TABLE {
            fail!(Internal, "a table of {} words", words.len());
        }
        self.table = SmallVec::from_slice(words);
        Ok(1)
    }

    fn fault(&mut self, explain: Explain) -> Result<u64> {
        self.stream.fault_words(explain)
    }

    fn limits(&self) -> Limits {
        Limits::of_cuda(&self.stream.shared)
    }
}
