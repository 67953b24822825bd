//! A command buffer under construction, and everything that must live until its work is done.

use super::concurrent::{ConcurrentKernels, Uses};
use super::logical::Lane;
use super::memory::{Allocation, Space};
use super::shared::Shared;
use super::steps::{ALL, Kind, Step, Steps};
use crate::error::Result;
use crate::fpenv::DefaultEnvironment;
use crate::hal::lowering::Explain;
use ash::vk;
use std::any::Any;
use std::ptr;
use std::sync::Arc;

/// Something that work uses, kept alive until the work is done.
pub type KeepAlive = Arc<dyn Any + Send + Sync>;

/// A command buffer with its own command pool.
pub struct Recorder {
    pub shared: Arc<Shared>,
    pub lane: Lane,
    pool: vk::CommandPool,
    pub commands: vk::CommandBuffer,
    kept: Vec<KeepAlive>,
    faults: Vec<(Arc<Allocation>, Explain)>,
    /// Memory for kernels' parameters, and the bytes taken of it.
    parameters: Option<(Arc<Allocation>, usize)>,
    bound: vk::Pipeline,
    /// The kind of the last command.
    last: Option<Kind>,
    /// What the kernels since the last barrier use.
    concurrent: ConcurrentKernels,
    /// The number of commands in the buffer.
    pub count: u32,
    /// The bytes of memory for intermediate values that they hold.
    pub held: u64,
    state: State,
    /// The recorded steps, if they are one command's: then an equal command can submit the buffer again unchanged.
    recipe: Option<Steps>,
    /// Whether the host will read memory that the work writes.
    to_host: bool,
}

/// The state of the command buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is empty.
    Initial,
    /// It is being recorded.
    Begun,
    /// It is complete, and its work is done.
    Finished,
    /// It is complete, and will be submitted again unchanged.
    Reused,
}

// SAFETY: only the thread that owns the recorder writes the mapped parameters.
unsafe impl Send for Recorder {}
// SAFETY: through a shared reference, a recorder is only submitted and read.
unsafe impl Sync for Recorder {}

/// Bytes of one allocation for parameters.
const PARAMETERS: usize = 16 << 10;

impl Recorder {
    /// Makes an empty recorder for a lane. Its command buffer is not begun.
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
            concurrent: ConcurrentKernels::default(),
            count: 0,
            held: 0,
            state: State::Initial,
            recipe: None,
            to_host: false,
        };
        // SAFETY: the structures live until each call returns. Dropping the recorder destroys the pool.
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

    /// Begins a recording, whose command buffer can be in flight several times at once.
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

    /// Makes the buffer ready for commands. Drops its old commands, unless they are to run again; then it records them
    /// anew.
    pub fn start(&mut self) -> Result<()> {
        if self.state == State::Begun {
            return Ok(());
        }
        let again = self.state == State::Reused;
        if self.state != State::Initial {
            self.state = State::Initial;
            let flags = vk::CommandPoolResetFlags::empty();
            // SAFETY: no buffer of the pool is in use.
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

    /// Records a command that uses the memory in `uses`; empty uses mean that its memory is unknown. If the buffer's
    /// only command last time was the same, it is submitted again unchanged.
    pub fn record(&mut self, steps: Steps, uses: &Uses) -> Result<()> {
        let same = |old: &Steps| old.len() == steps.len() && old.iter().zip(&steps).all(|(old, new)| old.repeats(new));
        if self.state == State::Finished && self.recipe.as_ref().is_some_and(same) {
            self.state = State::Reused;
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
        let beside = self.last == Some(Kind::Kernel) && self.concurrent.admits(uses);
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
            [Step::Kernel { .. }] if beside => self.concurrent.join(uses),
            _ => self.concurrent.begin(uses),
        }
    }

    /// Ends the buffer, and makes visible to the host what it will read.
    pub fn end(&mut self) -> Result<()> {
        if self.state == State::Reused {
            return Ok(());
        }
        self.start()?;
        if self.to_host || !self.faults.is_empty() {
            let barrier = vk::MemoryBarrier::default()
                .src_access_mask(vk::AccessFlags::MEMORY_WRITE)
                .dst_access_mask(vk::AccessFlags::HOST_READ | vk::AccessFlags::MEMORY_READ);
            self.memory_barrier(&barrier, ALL, vk::PipelineStageFlags::HOST | ALL);
        }
        // Other commands may have followed the recipe's command.
        if self.recipe.as_ref().is_some_and(|steps| steps.len() != self.count as usize) {
            self.recipe = None;
        }
        self.state = State::Finished;
        // SAFETY: the buffer was begun.
        let result = unsafe { (self.shared.api.end_command_buffer)(self.commands) };
        self.shared.check(result, "ending a command buffer")
    }

    /// Releases what the work used; the work must be done. Returns the first error that its kernels found.
    pub fn release(&mut self) -> Result<()> {
        let found = self.fault();
        self.kept.clear();
        self.faults.clear();
        self.parameters = None;
        self.bound = vk::Pipeline::null();
        self.last = None;
        self.concurrent.end();
        self.count = 0;
        self.held = 0;
        self.to_host = false;
        self.state = State::Finished;
        found
    }

    /// Returns the first error that the kernels found. The work must be done.
    pub fn fault(&self) -> Result<()> {
        for (words, explain) in &self.faults {
            // SAFETY: four mapped words that the device has cleared or written, and finished writing.
            let words = unsafe { words.mapped.cast::<[u32; 4]>().read_volatile() };
            if words[0] != 0 {
                return Err(explain(words));
            }
        }
        Ok(())
    }

    /// Keeps something alive until the work is done.
    pub fn keep(&mut self, what: KeepAlive) {
        self.kept.push(what);
    }

    /// Adds a barrier: a command of kind `next` sees all earlier writes, of this buffer and of earlier ones on the
    /// queue.
    pub fn barrier(&mut self, next: Kind) {
        let before = self.last.replace(next);
        self.concurrent.end();
        // At the buffer's start the earlier kind is unknown. Naming it makes a barrier between kernels several times as
        // fast.
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
        // SAFETY: the buffer is being recorded, and the barrier lives until the call returns.
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

    /// Binds a pipeline unless it is bound already.
    pub fn bind(&mut self, pipeline: vk::Pipeline) {
        if self.bound != pipeline {
            self.bound = pipeline;
            // SAFETY: a compute pipeline of this device. It lives as long as the device, or the recorder keeps it.
            unsafe {
                (self.shared.api.cmd_bind_pipeline)(self.commands, vk::PipelineBindPoint::COMPUTE, pipeline);
            }
        }
    }

    /// Sets push constants.
    pub fn push(&mut self, layout: vk::PipelineLayout, bytes: &[u8]) {
        let stage = vk::ShaderStageFlags::COMPUTE;
        // SAFETY: the call reads `bytes.len()` bytes from the slice. The callers ensure that the layout has that many.
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

    /// Runs the bound pipeline over the workgroups, in several dispatches if x exceeds the device's limit.
    pub fn groups(&mut self, groups: [u32; 3]) {
        let most = self.shared.physical.limits.max_compute_work_group_count[0].max(1);
        let mut first = 0;
        while first < groups[0] {
            let count = (groups[0] - first).min(most);
            // SAFETY: the bound pipeline has the push constants and descriptors that its layout needs.
            unsafe {
                (self.shared.api.cmd_dispatch_base)(self.commands, first, 0, 0, count, groups[1], groups[2]);
            }
            first += count;
        }
    }

    /// Copies between ranges of two allocations, and keeps both.
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
        // SAFETY: both ranges lie inside their buffers, which are kept.
        unsafe { (self.shared.api.cmd_copy_buffer)(self.commands, from.buffer, to.buffer, 1, &region) };
        self.to_host |= !to.mapped.is_null();
        self.keep(from.clone());
        self.keep(to.clone());
    }

    /// Fills a range with zeros. `bytes` is rounded up to whole 4-byte words, which every allocation has.
    pub fn clear(&mut self, to: &Arc<Allocation>, at: usize, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.barrier(Kind::Copy);
        let (offset, bytes) = (to.offset() + at as u64, bytes.next_multiple_of(4) as u64);
        // SAFETY: the range lies inside its buffer, which is kept. Its offset and size are multiples of four.
        unsafe { (self.shared.api.cmd_fill_buffer)(self.commands, to.buffer, offset, bytes, 0) };
        self.keep(to.clone());
    }

    /// Allocates device memory that lives until the work is done, and returns its address.
    pub fn scratch(&mut self, bytes: u64) -> Result<u64> {
        let memory = Allocation::new(&self.shared, bytes as usize, Space::Local, "scratch")?;
        self.held += bytes;
        let address = memory.address;
        self.keep(memory);
        Ok(address)
    }

    /// Copies words to memory that kernels can read, and returns the address.
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
        // SAFETY: the words fit behind `at`. The device reads the memory only after the submission, and no part is
        // handed out twice.
        unsafe { memory.mapped.add(at).cast::<u32>().copy_from_nonoverlapping(words.as_ptr(), words.len()) };
        Ok(memory.address + at as u64)
    }

    /// Allocates four words that kernels write if they find invalid data.
    pub fn fault_words(&mut self, explain: Explain) -> Result<Arc<Allocation>> {
        let memory = Allocation::new(&self.shared, 16, Space::Host, "faults")?;
        // SAFETY: mapped memory of at least 16 bytes that no submitted work uses.
        unsafe { memory.mapped.write_bytes(0, 16) };
        self.faults.push((memory.clone(), explain));
        Ok(memory)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _environment = DefaultEnvironment::enter();
        if self.shared.opened_in_this_process() {
            // SAFETY: the owner has waited for the work before the drop. Destroying the pool frees its command buffer.
            unsafe { (self.shared.api.destroy_command_pool)(self.shared.device, self.pool, ptr::null()) };
        }
    }
}
