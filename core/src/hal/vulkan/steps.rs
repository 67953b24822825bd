//! The steps of a command, and the kinds of commands with the barriers between them.

use super::memory::Allocation;
use crate::hal::lowering::Push;
use ash::vk;
use smallvec::SmallVec;
use std::sync::Arc;

/// The steps of a command, in order.
pub type Steps = SmallVec<[Step; 4]>;

/// A step of a command.
pub enum Step {
    Kernel { pipeline: vk::Pipeline, push: Push, groups: [u32; 3] },
    Clear(Arc<Allocation>),
}

impl Step {
    /// Returns whether both are the same kernel call, which can be submitted again. A step that holds memory never is.
    pub fn repeats(&self, other: &Step) -> bool {
        match (self, other) {
            (Step::Kernel { pipeline, push, groups }, Step::Kernel { pipeline: p, push: other, groups: g }) => {
                (pipeline, push.bytes(), groups) == (p, other.bytes(), g)
            }
            _ => false,
        }
    }
}

/// The kind of a command, which decides the barrier that makes its writes visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A dispatch.
    Kernel,
    /// A copy or a fill.
    Copy,
    /// A timestamp. It reads and writes no memory, but waits for all earlier work.
    Time,
}

/// Every stage of a queue.
pub const ALL: vk::PipelineStageFlags = vk::PipelineStageFlags::ALL_COMMANDS;

impl Kind {
    pub fn stage(self) -> vk::PipelineStageFlags {
        match self {
            Kind::Kernel => vk::PipelineStageFlags::COMPUTE_SHADER,
            Kind::Copy => vk::PipelineStageFlags::TRANSFER,
            Kind::Time => ALL,
        }
    }

    pub fn reads(self) -> vk::AccessFlags {
        match self {
            Kind::Kernel => vk::AccessFlags::SHADER_READ | vk::AccessFlags::UNIFORM_READ,
            Kind::Copy => vk::AccessFlags::TRANSFER_READ,
            Kind::Time => vk::AccessFlags::MEMORY_READ,
        }
    }

    pub fn writes(self) -> vk::AccessFlags {
        match self {
            Kind::Kernel => vk::AccessFlags::SHADER_WRITE,
            Kind::Copy => vk::AccessFlags::TRANSFER_WRITE,
            // A timestamp orders everything behind it after everything before it.
            Kind::Time => vk::AccessFlags::MEMORY_WRITE,
        }
    }
}
