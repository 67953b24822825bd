//! How an operation's kernels get into a command buffer, and the tiles of products and attention for Vulkan.

use super::concurrent::{Use, Uses};
use super::recorder::Recorder;
use super::shared::Shared;
use super::steps::{Step, Steps};
use super::stream::of_device;
use crate::command::Command;
use crate::error::{Result, fail};
use crate::hal::lowering::attention::{Sizes as AttentionSizes, Tile as AttentionTile};
use crate::hal::lowering::tiles::{Cost, Sizes, Tile, TileCosts, mirrored, tile};
use crate::hal::lowering::{Encoder, Explain, Kernels, Limits, PUSH_BYTES, Push};
use crate::operand::{Meta, Place};
use std::sync::Arc;

/// The tiles of products, with costs measured on an NVIDIA H200.
pub static TILES: [Cost; 5] = [
    Cost { tile: tile(256, [128, 128], [8, 8], 32, 1), alone: 92.0, shared: 92.0, slots: 1 },
    Cost { tile: tile(128, [64, 128], [8, 8], 16, 2), alone: 58.0, shared: 48.6, slots: 2 },
    Cost { tile: tile(64, [64, 64], [8, 8], 16, 1), alone: 56.0, shared: 25.0, slots: 4 },
    Cost { tile: tile(128, [32, 64], [4, 4], 16, 2), alone: 27.0, shared: 18.0, slots: 4 },
    Cost { tile: tile(64, [32, 32], [4, 4], 32, 1), alone: 25.0, shared: 9.3, slots: 6 },
];

/// Returns the tile for a product with at most 32 rows or columns.
fn narrow(sizes: &Sizes) -> Option<Tile> {
    let &Sizes { m, n, trans_a, trans_b, .. } = sizes;
    match (m.min(n), m <= n) {
        (33.., _) => None,
        // With few rows, reading B takes the time; with few columns, reading A does.
        (_, true) => Some(along(m, n, trans_b)),
        (_, false) => Some(mirrored(along(n, m, !trans_a))),
    }
}

/// Returns the tile for `short` rows. `along_k`: the elements of the long operand are contiguous along k.
fn along(short: u32, long: u32, along_k: bool) -> Tile {
    let (threads, [own, other], [t_own, t_other], buffers) = match short {
        // Each thread computes all rows, and reads 4 columns (or rows) of the long operand that no other thread reads.
        0..=4 if along_k || long <= 128 => (32, [4, 128], [4, 4], 1),
        0..=4 => (64, [4, 256], [4, 4], 2),
        5..=8 => (64, [8, 128], [4, 4], 1),
        9..=16 => (128, [16, 128], [4, 4], 1),
        _ => (128, [32, 128], [4, 8], 1),
    };
    tile(threads, [own, other], [t_own, t_other], 16, buffers)
}

/// Returns the tile for attention: two threads for each query, and `columns` columns of the values at a time.
fn attention(limits: &Limits, sizes: &AttentionSizes) -> AttentionTile {
    let threads = match (sizes.queries, limits.shared_memory) {
        (0..=16, _) | (_, ..24576) => 32,
        (17..=32, _) => 64,
        _ => 128,
    };
    let (columns, of_thread) = match sizes.value_width {
        0..=32 => (32, 4),
        33..=64 => (64, 4),
        _ => (128, 8),
    };
    AttentionTile { threads, queries: threads / 2, columns, of_thread, of_block: false }
}

impl Limits {
    /// Returns the limits of a device.
    pub fn of(shared: &Shared) -> Limits {
        let physical = &shared.physical;
        Limits {
            shared_memory: physical.limits.max_compute_shared_memory_size,
            threads: physical.limits.max_compute_work_group_invocations,
            units: if physical.units > 0 { physical.units as u32 } else { 32 },
            iterations: physical.iterations,
            pitched: false,
            tiles: shared.tiles.table(),
            narrow,
            fixed_tile: [64, 32],
            fixed_wide: None,
            finds_most: false,
            matrices: if cfg!(feature = "integers") { physical.optional.matrices } else { None },
            tensor_tiles: false,
            makes_rows: false,
            attention,
            merges_by_warps: false,
        }
    }
}

/// Collects the kernels of one command and appends them to a recorder: all of them, or none if one can't be made.
pub struct VulkanEncoder<'a> {
    recorder: &'a mut Recorder,
    steps: Steps,
    uses: Uses,
}

impl VulkanEncoder<'_> {
    /// Makes an encoder that appends to `recorder`.
    pub fn new(recorder: &mut Recorder) -> VulkanEncoder<'_> {
        VulkanEncoder { recorder, steps: Steps::new(), uses: Uses::new() }
    }

    /// Declares what the encoded commands read and write, so that other commands can run beside them.
    pub fn uses(&mut self, commands: &[Command<'_>]) -> Result<()> {
        for command in commands {
            for view in command.inputs().iter().flatten() {
                self.use_of(view.place(), view.meta(), false)?;
            }
            self.use_of(command.output().place(), command.output().meta(), true)?;
        }
        Ok(())
    }

    fn use_of(&mut self, place: Place<'_>, meta: &Meta, writes: bool) -> Result<()> {
        let Place::Buffer(buffer, offset) = place.in_memory() else {
            fail!(Internal, "an operand of an encoded command is not on the device");
        };
        let memory = of_device(buffer, &self.recorder.shared)?;
        self.uses.push(Use { address: memory.address + offset as u64, bytes: meta.bytes() as u64, writes });
        Ok(())
    }

    /// Records the collected kernels.
    pub fn commit(self) -> Result<()> {
        self.recorder.record(self.steps, &self.uses)
    }
}

impl Encoder for VulkanEncoder<'_> {
    fn address(&mut self, place: Place<'_>) -> Result<u64> {
        let Place::Buffer(buffer, offset) = place else {
            fail!(InvalidArgument, "an operand is not in the memory of {}", self.recorder.shared.info.id);
        };
        let memory = of_device(buffer, &self.recorder.shared)?;
        let address = memory.address + offset as u64;
        let memory = Arc::clone(memory);
        self.recorder.keep(memory);
        Ok(address)
    }

    fn dispatch(&mut self, kernels: Kernels, constants: &[u32], push: &[u32], groups: [u32; 3]) -> Result<()> {
        let shared = &self.recorder.shared;
        let pipeline = shared.pipelines.get(shared, kernels, constants)?;
        debug_assert!(push.len() * 4 <= PUSH_BYTES && groups.iter().all(|&n| n > 0), "{push:?} {groups:?}");
        self.steps.push(Step::Kernel { pipeline, push: Push::of(push), groups });
        Ok(())
    }

    fn scratch(&mut self, bytes: u64) -> Result<u64> {
        self.recorder.scratch(bytes)
    }

    fn parameters(&mut self, words: &[u32]) -> Result<u64> {
        self.recorder.parameters(words)
    }

    fn fault(&mut self, explain: Explain) -> Result<u64> {
        let memory = self.recorder.fault_words(explain)?;
        let address = memory.address;
        // A step, because it must run each time that the work runs.
        self.steps.push(Step::Clear(memory));
        Ok(address)
    }

    fn limits(&self) -> Limits {
        Limits::of(&self.recorder.shared)
    }

    fn costs(&self) -> &TileCosts {
        &self.recorder.shared.tiles
    }
}
