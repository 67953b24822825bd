//! How an operation's kernels get into a stream.

use super::kernels::{CONSTANTS, Function, Launch};
use super::shared::Entered;
use super::stream::{CudaStream, of_device};
use crate::error::{Result, fail};
use crate::hal::TileCosts;
use crate::hal::lowering::{Encoder, Explain, Kernels, Limits, PUSH_BYTES};
use crate::operand::Place;
use smallvec::SmallVec;
use std::sync::Arc;

/// Collects the kernels of one command and launches them on a stream: all of them, or none if one can't be made.
pub struct CudaEncoder<'a> {
    stream: &'a mut CudaStream,
    steps: SmallVec<[Step; 4]>,
    /// A table of words for the next kernel.
    table: SmallVec<[u32; TABLE]>,
}

/// A kernel with its parameters: push constants, padded to a multiple of eight bytes as structures with addresses are,
/// then its own constants, then the table.
struct Step {
    function: Function,
    launch: Launch,
    words: [u32; MOST],
    count: usize,
}

/// The words of the table, which is a parameter of every kernel.
const TABLE: usize = 32;
/// The most words of parameters of a kernel.
const MOST: usize = PUSH_BYTES / 4 + CONSTANTS + TABLE;

impl CudaEncoder<'_> {
    /// Makes an encoder for `stream`.
    pub fn new(stream: &mut CudaStream) -> CudaEncoder<'_> {
        CudaEncoder { stream, steps: SmallVec::new(), table: SmallVec::new() }
    }

    /// Launches the collected kernels.
    pub fn commit(&mut self, entered: &Entered) -> Result<()> {
        for Step { function, launch, words, count } in &self.steps {
            // SAFETY: the words are initialised, and any memory can be read as bytes.
            let bytes = unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), 4 * count) };
            let block = [launch.threads, 1, 1];
            // SAFETY: the function is one of adead's with these parameters, and the stream keeps the memory that they
            // name.
            unsafe { self.stream.launch(*function, launch.groups, block, launch.shared_bytes, bytes, entered) }?;
        }
        Ok(())
    }
}

impl Encoder for CudaEncoder<'_> {
    fn address(&mut self, place: Place<'_>) -> Result<u64> {
        let Place::Buffer(buffer, offset) = place else {
            fail!(InvalidArgument, "an operand is not in the memory of {}", self.stream.shared.id());
        };
        let memory = Arc::clone(of_device(buffer, &self.stream.shared)?);
        Ok(self.stream.keep_memory(&memory) + offset as u64)
    }

    fn dispatch(&mut self, kernels: Kernels, constants: &[u32], push: &[u32], groups: [u32; 3]) -> Result<()> {
        debug_assert!(push.len() * 4 <= PUSH_BYTES && groups.iter().all(|&n| n > 0), "{push:?} {groups:?}");
        let launch = Launch::plan(kernels, constants, push, groups)?;
        let (needed, most) = (launch.shared_bytes, self.limits().shared_memory);
        if needed > most {
            fail!(Unsupported, "operands of this width need {needed} bytes of shared memory; the device has {most}");
        }
        let function = self.stream.function(kernels, launch.name)?;
        let own = &launch.words.0[..launch.words.1];
        let at = push.len().max(launch.pushed).next_multiple_of(2);
        let count = at + own.len() + TABLE;
        let mut words = [0; MOST];
        words[..push.len()].copy_from_slice(push);
        words[at..at + own.len()].copy_from_slice(own);
        words[at + own.len()..][..self.table.len()].copy_from_slice(&self.table);
        self.table.clear();
        self.steps.push(Step { function, launch, words, count });
        Ok(())
    }

    fn scratch(&mut self, bytes: u64) -> Result<u64> {
        self.stream.scratch(bytes)
    }

    /// Puts the words among the next kernel's parameters. No kernel uses the returned address.
    fn parameters(&mut self, words: &[u32]) -> Result<u64> {
        if words.len() > TABLE {
            fail!(Internal, "a table has {} words; kernels take {TABLE}", words.len());
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

    fn costs(&self) -> &TileCosts {
        &self.stream.shared.tiles
    }
}
