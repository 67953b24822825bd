//! A command buffer under construction, and what must live until its work is done.

use super::beside::{Stretch, Uses};
use super::logical::Lane;
use super::memory::{Allocation, Space};
use super::shared::Shared;
use crate::error::Result;
use crate::fpenv::DefaultEnvironment;
use crate::hal::lowering::{Explain, Push};
use ash::vk;
use smallvec::SmallVec;
use std::any::Any;
use std::ptr;
use std::sync::Arc;

/// Something that work uses.
pub type Kept = Arc<dyn Any + Send + Sync>;

/// A command buffer with a pool of its own.
pub struct Recorder {
    pub shared: Arc<Shared>,
    pub lane: Lane,
    pool: vk::CommandPool,
    pub commands: vk::CommandBuffer,
    kept: Vec<Kept>,
    faults: Vec<(Arc<Allocation>, Explain)>,
    /// Memory for parameters, and how much of it is taken.
    parameters: Option<(Arc<Allocation>, usize)>,
    bound: vk::Pipeline,
    /// The last command, if there is one.
    last: Option<Kind>,
    /// What the kernels since the last barrier use.
    stretch: Stretch,
    /// Commands in it.
    pub count: u32,
    state: State,
    /// What is recorded, where that is the steps of one command: then the command may be submitted again as it is.
    recipe: Option<Steps>,
    /// Whether the host reads what is written.
    to_host: bool,
}

/// What the command buffer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Empty.
    Initial,
    /// Being recorded.
    Begun,
    /// Whole: as it was recorded for work that is done.
    Old,
    /// Whole, and wanted again as it is.
    Again,
}

/// What a command does, in order.
pub type Steps = SmallVec<[Step; 4]>;

/// A part of a command.
pub enum Step {
    Kernel { pipeline: vk::Pipeline, push: Push, groups: [u32; 3] },
    Clear(Arc<Allocation>),
}

impl Step {
    /// Whether it is the same and can be had again. A step that holds memory is not kept.
    fn repeats(&self, other: &Step) -> bool {
        match (self, other) {
            (Step::Kernel { pipeline, push, groups }, Step::Kernel { pipeline: p, push: other, groups: g }) => {
                (pipeline, push.bytes(), groups) == (p, other.bytes(), g)
            }
            _ => false,
        }
    }
}

// SAFETY: the mapped parameters are written by the thread that has the recorder only.
unsafe impl Send for Recorder {}
// SAFETY: a shared recorder is only submitted and read.
unsafe impl Sync for Recorder {}

/// What a command is, for those that must see what it wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A dispatch.
    Kernel,
    /// A copy or a fill.
    Copy,
    /// The taking of a time, which sees nothing and is seen by nobody, and comes behind everything.
    Time,
}

const ALL: vk::PipelineStageFlags = vk::PipelineStageFlags::ALL_COMMANDS;

impl Kind {
    fn stage(self) -> vk::PipelineStageFlags {
        match self {
            Kind::Kernel => vk::PipelineStageFlags::COMPUTE_SHADER,
            Kind::Copy => vk::PipelineStageFlags::TRANSFER,
            Kind::Time => ALL,
        }
    }

    fn reads(self) -> vk::AccessFlags {
        match self {
            Kind::Kernel => vk::AccessFlags::SHADER_READ | vk::AccessFlags::UNIFORM_READ,
            Kind::Copy => vk::AccessFlags::TRANSFER_READ,
            Kind::Time => vk::AccessFlags::MEMORY_READ,
        }
    }

    fn writes(self) -> vk::AccessFlags {
        match self {
            Kind::Kernel => vk::AccessFlags::SHADER_WRITE,
            Kind::Copy => vk::AccessFlags::TRANSFER_WRITE,
            // Behind it, everything before it.
            Kind::Time => vk::AccessFlags::MEMORY_WRITE,
        }
    }
}

/// Bytes of a piece of memory for parameters.
const PARAMETERS: usize = 16 << 10;

impl Recorder {
    /// An empty one for a lane, not begun.
    pub fn new(shared: &Arc<Shared>, lane: Lane) -> Result<Recorder> {
        shared.usable()?;
        let (api, device) = (&shared.api, shared.device);
        let info = vk::CommandPoolCreateInfo::default()
            .queue_family_index(shared.family(lane))
            .flags(vk::CommandPoolCreateFlags::TRANSIENT);
        let mut recorder = Recorder {
            shared: shared.clone(),
            lane,
            pool: vk::CommandPool::null(),
            commands: vk::CommandBuffer::null(),
            kept: Vec::new(),
            faults: Vec::new(),
            parameters: None,
            bound: vk::Pipeline::null(),
            last: None,
            stretch: Stretch::default(),
            count: 0,
            state: State::Initial,
            recipe: None,
            to_host: false,
        };
        // SAFETY: structures live until each call returns; the pool is destroyed with the recorder.
        unsafe {
            let result = (api.create_command_pool)(device, &info, ptr::null(), &mut recorder.pool);
            shared.check(result, "making a command pool")?;
            let info = vk::CommandBufferAllocateInfo::default()
                .command_pool(recorder.pool)
                .level(vk::CommandBufferLevel::PRIMARY)
                .command_buffer_count(1);
            let result = (api.allocate_command_buffers)(device, &info, &mut recorder.commands);
            shared.check(result, "making a command buffer")?;
        }
        Ok(recorder)
    }

    /// Begins it for a recording, which may be under way several times at once.
    pub fn begin_recording(&mut self) -> Result<()> {
        self.begin(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE)
    }

    fn begin(&mut self, flags: vk::CommandBufferUsageFlags) -> Result<()> {
        let info = vk::CommandBufferBeginInfo::default().flags(flags);
        // SAFETY: the buffer is of this device and not in use.
        let result = unsafe { (self.shared.api.begin_command_buffer)(self.commands, &info) };
        self.shared.check(result, "beginning a command buffer")?;
        self.state = State::Begun;
        Ok(())
    }

    /// Makes it ready for commands: what is in it from before goes, unless it is wanted again.
    pub fn start(&mut self) -> Result<()> {
        if self.state == State::Begun {
            return Ok(());
        }
        let again = self.state == State::Again;
        if self.state != State::Initial {
            self.state = State::Initial;
            let flags = vk::CommandPoolResetFlags::empty();
            // SAFETY: none of its buffers is in use.
            let result = unsafe { (self.shared.api.reset_command_pool)(self.shared.device, self.pool, flags) };
            self.shared.check(result, "resetting a command pool")?;
        }
        self.begin(vk::CommandBufferUsageFlags::empty())?;
        if let Some(steps) = self.recipe.take().filter(|_| again) {
            self.count = 0;
            self.play(&steps, &Uses::new());
        }
        Ok(())
    }

    /// Records a command that uses that memory, none where it is not known. If the command is all that the buffer had the last
    /// time, nothing needs to be recorded.
    pub fn record(&mut self, steps: Steps, uses: &Uses) -> Result<()> {
        let same = |old: &Steps| old.len() == steps.len() && old.iter().zip(&steps).all(|(old, new)| old.repeats(new));
        if self.state == State::Old && self.recipe.as_ref().is_some_and(same) {
            self.state = State::Again;
            self.count = steps.len() as u32;
            return Ok(());
        }
        self.start()?;
        let first = self.count == 0;
        self.play(&steps, uses);
        let kept = first && steps.iter().all(|step| step.repeats(step));
        self.recipe = if kept { Some(steps) } else { None };
        Ok(())
    }

    fn play(&mut self, steps: &Steps, uses: &Uses) {
        let layout = self.shared.pipelines.layout;
        let beside = self.last == Some(Kind::Kernel) && self.stretch.admits(uses);
        for (i, step) in steps.iter().enumerate() {
            match step {
                Step::Clear(memory) => self.clear(memory, 0, memory.bytes()),
                Step::Kernel { pipeline, push, groups } => {
                    if beside && i == 0 {
                        self.count += 1;
                    } else {
                        self.barrier(Kind::Kernel);
                    }
                    self.bind(*pipeline);
                    self.push(layout, push.bytes());
                    self.groups(*groups);
                }
            }
        }
        match steps.as_slice() {
            [] => {}
            [Step::Kernel { .. }] if beside => self.stretch.join(uses),
            _ => self.stretch.begin(uses),
        }
    }

    /// Ends it, with what the host reads visible to it.
    pub fn end(&mut self) -> Result<()> {
        if self.state == State::Again {
            return Ok(());
        }
        self.start()?;
        if self.to_host || !self.faults.is_empty() {
            let barrier = vk::MemoryBarrier::default()
                .src_access_mask(vk::AccessFlags::MEMORY_WRITE)
                .dst_access_mask(vk::AccessFlags::HOST_READ | vk::AccessFlags::MEMORY_READ);
            self.memory_barrier(&barrier, ALL, vk::PipelineStageFlags::HOST | ALL);
        }
        // More may have come behind the command.
        if self.recipe.as_ref().is_some_and(|steps| steps.len() != self.count as usize) {
            self.recipe = None;
        }
        self.state = State::Old;
        // SAFETY: the buffer was begun.
        let result = unsafe { (self.shared.api.end_command_buffer)(self.commands) };
        self.shared.check(result, "ending a command buffer")
    }

    /// Lets go of what its work used, which is done. The first error that its kernels found.
    pub fn release(&mut self) -> Result<()> {
        let found = self.fault();
        self.kept.clear();
        self.faults.clear();
        self.parameters = None;
        self.bound = vk::Pipeline::null();
        self.last = None;
        self.stretch.end();
        self.count = 0;
        self.to_host = false;
        self.state = State::Old;
        found
    }

    /// The first error that its kernels found, once they have run.
    pub fn fault(&self) -> Result<()> {
        for (words, explain) in &self.faults {
            // SAFETY: four mapped words that the device has finished writing; it wrote or cleared them.
            let words = unsafe { words.mapped.cast::<[u32; 4]>().read_volatile() };
            if words[0] != 0 {
                return Err(explain(words));
            }
        }
        Ok(())
    }

    /// Keeps something until the work is done.
    pub fn keep(&mut self, what: Kept) {
        self.kept.push(what);
    }

    /// What comes now, of that kind, sees what was written before, in this buffer and in those before it on the queue.
    pub fn barrier(&mut self, next: Kind) {
        let before = self.last.replace(next);
        self.stretch.end();
        // Nobody knows what ended the buffers before. Between kernels a barrier that says so is several times as fast.
        let (from, written) = before.map_or((ALL, vk::AccessFlags::MEMORY_WRITE), |kind| (kind.stage(), kind.writes()));
        let barrier =
            vk::MemoryBarrier::default().src_access_mask(written).dst_access_mask(next.reads() | next.writes());
        self.memory_barrier(&barrier, from, next.stage());
        self.count += 1;
    }

    fn memory_barrier(
        &self,
        barrier: &vk::MemoryBarrier<'_>,
        from: vk::PipelineStageFlags,
        until: vk::PipelineStageFlags,
    ) {
        let flags = vk::DependencyFlags::empty();
        // SAFETY: the buffer is being recorded; the barrier lives until it returns.
        unsafe {
            (self.shared.api.cmd_pipeline_barrier)(
                self.commands,
                from,
                until,
                flags,
                1,
                barrier,
                0,
                ptr::null(),
                0,
                ptr::null(),
            );
        }
    }

    /// Binds a pipeline unless it is bound.
    pub fn bind(&mut self, pipeline: vk::Pipeline) {
        if self.bound != pipeline {
            self.bound = pipeline;
            // SAFETY: a compute pipeline of this device, which lives as long as the device or is kept.
            unsafe {
                (self.shared.api.cmd_bind_pipeline)(self.commands, vk::PipelineBindPoint::COMPUTE, pipeline);
            }
        }
    }

    /// Sets push constants.
    pub fn push(&mut self, layout: vk::PipelineLayout, bytes: &[u8]) {
        let stage = vk::ShaderStageFlags::COMPUTE;
        // SAFETY: as many bytes as the slice has; the callers know that the layout has room for them.
        unsafe {
            (self.shared.api.cmd_push_constants)(
                self.commands,
                layout,
                stage,
                0,
                bytes.len() as u32,
                bytes.as_ptr().cast(),
            );
        }
    }

    /// Runs the bound pipeline over so many workgroups; more in x than a device takes at once go in several pieces.
    pub fn groups(&mut self, groups: [u32; 3]) {
        let most = self.shared.physical.limits.max_compute_work_group_count[0].max(1);
        let mut first = 0;
        while first < groups[0] {
            let count = (groups[0] - first).min(most);
            // SAFETY: a pipeline with its layout's constants and descriptors is bound.
            unsafe {
                (self.shared.api.cmd_dispatch_base)(self.commands, first, 0, 0, count, groups[1], groups[2]);
            }
            first += count;
        }
    }

    /// Copies between parts of two allocations, which are kept.
    pub fn copy(&mut self, from: &Arc<Allocation>, at: usize, to: &Arc<Allocation>, to_at: usize, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.barrier(Kind::Copy);
        let region = vk::BufferCopy {
            src_offset: from.offset() + at as u64,
            dst_offset: to.offset() + to_at as u64,
            size: bytes as u64,
        };
        // SAFETY: both parts are inside their buffers, which are kept.
        unsafe { (self.shared.api.cmd_copy_buffer)(self.commands, from.buffer, to.buffer, 1, &region) };
        self.to_host |= !to.mapped.is_null();
        self.keep(from.clone());
        self.keep(to.clone());
    }

    /// Fills whole words with zeros: `bytes` is rounded up to four, which an allocation always has.
    pub fn clear(&mut self, to: &Arc<Allocation>, at: usize, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.barrier(Kind::Copy);
        let (offset, bytes) = (to.offset() + at as u64, bytes.next_multiple_of(4) as u64);
        // SAFETY: the part is inside its buffer, which is kept; its offset and size are multiples of four.
        unsafe { (self.shared.api.cmd_fill_buffer)(self.commands, to.buffer, offset, bytes, 0) };
        self.keep(to.clone());
    }

    /// Device memory until the work is done: its address.
    pub fn scratch(&mut self, bytes: u64) -> Result<u64> {
        let memory = Allocation::new(&self.shared, bytes as usize, Space::Local, "scratch")?;
        let address = memory.address;
        self.keep(memory);
        Ok(address)
    }

    /// A copy of these words that kernels can read: its address.
    pub fn parameters(&mut self, words: &[u32]) -> Result<u64> {
        let bytes = size_of_val(words);
        let at = match &self.parameters {
            Some((memory, used)) if used + bytes <= memory.bytes() => *used,
            _ => {
                let memory = Allocation::new(&self.shared, bytes.max(PARAMETERS), Space::Host, "parameters")?;
                self.keep(memory.clone());
                self.parameters = Some((memory, 0));
                0
            }
        };
        let Some((memory, used)) = &mut self.parameters else { return Ok(0) };
        *used = (at + bytes).next_multiple_of(16);
        // SAFETY: the words fit behind `at`, and the device reads no part that was not handed out before it is submitted.
        unsafe { memory.mapped.add(at).cast::<u32>().copy_from_nonoverlapping(words.as_ptr(), words.len()) };
        Ok(memory.address + at as u64)
    }

    /// Memory for four words that kernels write where data is wrong.
    pub fn fault_words(&mut self, explain: Explain) -> Result<Arc<Allocation>> {
        let memory = Allocation::new(&self.shared, 16, Space::Host, "faults")?;
        // SAFETY: mapped memory of at least 16 bytes that no work has been given.
        unsafe { memory.mapped.write_bytes(0, 16) };
        self.faults.push((memory.clone(), explain));
        Ok(memory)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _environment = DefaultEnvironment::enter();
        if self.shared.is_here() {
            // SAFETY: whoever drops it has waited for its work; the pool takes its buffer along.
            unsafe { (self.shared.api.destroy_command_pool)(self.shared.device, self.pool, ptr::null()) };
        }
    }
}
