//! A stream: it gives work to the driver at once, and keeps what the work uses in batches.

use super::CudaBuffer;
use super::api::{Handle, LaunchAttribute, LaunchConfig};
use super::batch::{Batch, Fault, KeepAlive};
use super::encoder::CudaEncoder;
use super::event::{CudaTimestamp, Mark};
use super::kernels::Function;
use super::memory::{Allocation, Space};
use super::recording::{self, CudaRecording, Graph};
use super::scratch::Scratch;
use super::shared::{Entered, Shared};
use super::user::UserKernel;
use crate::command::Command;
#[cfg(feature = "integers")]
use crate::contract::Precision;
use crate::error::{Result, fail};
use crate::hal::lowering::{self, Explain, Kernels};
use crate::hal::{
    Buffer, Download, Event, Kernel, Priority, Recording, Slice, Stream, Timestamp, check_slice, not_there,
};
use std::collections::VecDeque;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::Arc;

/// The number of functions that a stream remembers.
const CACHED_FUNCTIONS: usize = 16;

/// A stream of a device.
pub struct CudaStream {
    pub shared: Arc<Shared>,
    pub(super) stream: Handle,
    /// The enqueued work without an event behind it.
    pub(super) open: Batch,
    /// The recording under construction, if the stream is recording.
    pub(super) recording: Option<Batch>,
    /// The last event. It is the stream's point while `open` is empty.
    pub(super) last: Option<Arc<Mark>>,
    pub(super) in_flight: VecDeque<(Arc<Mark>, Batch)>,
    pub(super) idle: Vec<Batch>,
    pub(super) failure: Result<()>,
    pub(super) scratch: Scratch,
    /// Functions that it launched, by their names' addresses.
    functions: [(*const c_char, Function); CACHED_FUNCTIONS],
}

// SAFETY: any thread may use the handles, and the addresses are of constants.
unsafe impl Send for CudaStream {}

impl CudaStream {
    /// Makes a stream without work.
    pub fn new(shared: &Arc<Shared>, priority: Priority) -> Result<CudaStream> {
        Ok(CudaStream {
            stream: shared.new_stream(priority)?,
            shared: shared.clone(),
            open: Batch::default(),
            recording: None,
            last: None,
            in_flight: VecDeque::new(),
            idle: Vec::new(),
            failure: Ok(()),
            scratch: Scratch::default(),
            functions: [(ptr::null(), Function::NONE); CACHED_FUNCTIONS],
        })
    }

    /// Keeps something alive until the work up to the next command is done.
    pub fn keep(&mut self, what: KeepAlive) {
        self.batch().keep(what);
    }

    /// Keeps memory alive as [`CudaStream::keep`] does, and returns its address.
    pub fn keep_memory(&mut self, memory: &Arc<Allocation>) -> u64 {
        self.batch().keep_memory(memory.clone());
        memory.address
    }

    /// Returns the address of four words, zero before the next launch, for a kernel that finds invalid data. If the
    /// first word is not zero afterwards, the next synchronisation returns the error that `explain` makes of the words.
    pub fn fault_words(&mut self, explain: Explain) -> Result<u64> {
        let words = Allocation::new(&self.shared, 16, Space::Local, "faults")?;
        self.zero(&words, 0, 16)?;
        let address = words.address;
        self.batch().faults.push(Fault { words, explain });
        Ok(address)
    }

    /// Returns a function of the operations' kernels. Recent ones are found without the lock that all streams share.
    pub fn function(&mut self, kernels: Kernels, name: &'static CStr) -> Result<Function> {
        let at = (name.as_ptr().addr() as u32).wrapping_mul(0x9e37_79b1) as usize >> (32 - CACHED_FUNCTIONS.ilog2());
        let (known, function) = self.functions[at];
        if ptr::eq(known, name.as_ptr()) {
            return Ok(function);
        }
        let function = self.shared.modules.function(&self.shared, kernels, name)?;
        self.functions[at] = (name.as_ptr(), function);
        Ok(function)
    }

    /// Launches a function. `parameters` are in the form that the function has in memory, each at its own offset.
    ///
    /// # Safety
    /// The function must be of this device and have that many bytes of parameters. The memory that they name must be
    /// kept.
    pub unsafe fn launch(
        &mut self,
        function: Function,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        parameters: &[u8],
        _: &Entered,
    ) -> Result<()> {
        let mut bytes = parameters.len();
        // CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END.
        let mut extra = [
            ptr::without_provenance_mut::<c_void>(1),
            parameters.as_ptr().cast_mut().cast(),
            ptr::without_provenance_mut(2),
            (&raw mut bytes).cast(),
            ptr::null_mut(),
        ];
        let ([x, y, z], [a, b, c]) = (grid, block);
        let none = ptr::null_mut();
        let extra = if bytes == 0 { none } else { extra.as_mut_ptr() };
        let result = match self.shared.overlaps.filter(|_| function.waits) {
            Some(launch) => {
                let attribute = LaunchAttribute::STARTS_EARLY;
                let config = LaunchConfig {
                    grid,
                    block,
                    shared_bytes,
                    stream: self.stream,
                    attributes: &attribute,
                    attribute_count: 1,
                };
                // SAFETY: as below. The function waits for the kernel before it.
                unsafe { launch(&config, function.handle, none, extra) }
            }
            // SAFETY: the caller vouches for the function. The driver copies the parameters before the call returns.
            None => unsafe {
                (self.shared.api().launch)(function.handle, x, y, z, a, b, c, shared_bytes, self.stream, none, extra)
            },
        };
        self.check_enqueued(result, "launching a kernel")
    }

    /// Checks the result of a call that enqueues work. A command that was enqueued belongs to the open batch.
    pub(super) fn check_enqueued(&mut self, result: i32, doing: &str) -> Result<()> {
        self.shared.check(result, doing)?;
        self.batch().count += 1;
        Ok(())
    }

    fn refuse_while_recording(&self, what: &str) -> Result<()> {
        if self.recording.is_some() {
            fail!(InvalidArgument, "{what} can't be recorded: finish the recording first");
        }
        Ok(())
    }

    /// Enqueues a fill with zeros. `bytes` is rounded up to whole 4-byte words, which every allocation has.
    fn zero(&mut self, memory: &Arc<Allocation>, offset: usize, bytes: usize) -> Result<()> {
        let _entered = self.shared.enter()?;
        // SAFETY: the range lies inside the allocation, which is kept.
        let result =
            unsafe { (self.shared.api().set_words)(memory.address + offset as u64, 0, bytes.div_ceil(4), self.stream) };
        self.check_enqueued(result, "clearing memory")?;
        self.keep_memory(memory);
        Ok(())
    }
}

// SAFETY: batches keep what their work uses until it is done. Host bytes are copied to pinned memory before a call
// returns.
unsafe impl Stream for CudaStream {
    fn submit(&mut self, commands: &mut [Command<'_>]) -> Result<()> {
        let entered = self.shared.enter()?;
        let mut rest = &*commands;
        while !rest.is_empty() {
            self.scratch.next();
            let mut encoder = CudaEncoder::new(self);
            let done = lowering::encode(&mut encoder, rest)?;
            encoder.commit(&entered)?;
            self.close_if_full()?;
            rest = &rest[done..];
        }
        Ok(())
    }

    #[cfg(feature = "integers")]
    fn digits_bytes(&self, precision: Precision, sizes: [usize; 2]) -> Option<usize> {
        lowering::digits_bytes(precision, sizes)
    }

    #[cfg(feature = "integers")]
    fn cut(
        &mut self,
        from: Slice<'_>,
        precision: Precision,
        sizes: [usize; 2],
        transposed: bool,
        to: &dyn Buffer,
    ) -> Result<()> {
        let entered = self.shared.enter()?;
        self.scratch.next();
        let mut encoder = CudaEncoder::new(self);
        lowering::cut_matrix(&mut encoder, from, precision, sizes, transposed, to)?;
        encoder.commit(&entered)?;
        self.close_if_full()
    }

    fn dispatch(&mut self, kernel: &dyn Kernel, buffers: &[Slice<'_>], push: &[u8], groups: [u32; 3]) -> Result<()> {
        let Some(kernel) = kernel.as_any().downcast_ref::<UserKernel>() else {
            fail!(InvalidArgument, "the kernel '{}' was not built for {}", kernel.name(), self.shared.id());
        };
        kernel.launch(self, buffers, push, groups)?;
        self.close_if_full()
    }

    fn write(&mut self, to: &dyn Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
        self.refuse_while_recording("a write from the host")?;
        check_slice("write", to.size(), offset, bytes.len())?;
        let memory = of_device(to, &self.shared)?.clone();
        self.upload(&memory, offset, bytes)
    }

    fn read(&mut self, from: &dyn Buffer, offset: usize, into: &mut [u8]) -> Result<()> {
        self.refuse_while_recording("a read by the host")?;
        check_slice("read", from.size(), offset, into.len())?;
        if into.is_empty() {
            return self.synchronize();
        }
        let memory = of_device(from, &self.shared)?.clone();
        self.read_back(&memory, offset, into)
    }

    fn download(&mut self, from: Slice<'_>) -> Result<Box<dyn Download>> {
        self.refuse_while_recording("a download")?;
        check_slice("download", from.buffer.size(), from.offset, from.bytes)?;
        let memory = of_device(from.buffer, &self.shared)?.clone();
        Ok(Box::new(self.fetch(&memory, from.offset, from.bytes)?))
    }

    fn copy(&mut self, from: Slice<'_>, to: Slice<'_>) -> Result<()> {
        check_slice("copy", from.buffer.size(), from.offset, from.bytes)?;
        check_slice("copy", to.buffer.size(), to.offset, to.bytes)?;
        let (source, target) = (of_device(from.buffer, &self.shared)?, of_device(to.buffer, &self.shared)?);
        let (a, b, bytes) = (from.offset, to.offset, from.bytes);
        if to.bytes != bytes || (Arc::ptr_eq(source, target) && a < b + bytes && b < a + bytes && bytes > 0) {
            fail!(InvalidArgument, "copy: {bytes} bytes at {a} to {} at {b}: sizes differ or parts overlap", to.bytes);
        }
        if bytes == 0 {
            return self.shared.usable();
        }
        let _entered = self.shared.enter()?;
        let (x, y) = (source.address + a as u64, target.address + b as u64);
        // SAFETY: both ranges lie inside their allocations, which are kept.
        let result = unsafe { (self.shared.api().copy_on_device)(y, x, bytes, self.stream) };
        self.check_enqueued(result, "copying")?;
        self.keep_memory(source);
        self.keep_memory(target);
        self.close_if_full()
    }

    fn copy_from(&mut self, from: Slice<'_>, after: &dyn Event, to: Slice<'_>) -> Result<()> {
        self.refuse_while_recording("a copy from another device")?;
        check_slice("copy", from.buffer.size(), from.offset, from.bytes)?;
        check_slice("copy", to.buffer.size(), to.offset, to.bytes)?;
        let (source, target) = (peer_of(from.buffer, &self.shared), of_device(to.buffer, &self.shared)?);
        let mark = after.as_any().downcast_ref::<Mark>();
        let (Some(source), Some(mark)) = (source, mark.filter(|mark| mark.shared().is_peer_of(&self.shared))) else {
            fail!(
                InvalidArgument,
                "copy: the source or its event is on {}, not on another CUDA device",
                from.buffer.device_name()
            );
        };
        if to.bytes != from.bytes {
            fail!(InvalidArgument, "copy: {} bytes from another device to {}", from.bytes, to.bytes);
        }
        if !mark.is_done()? {
            mark.enqueue_wait(&self.shared, self.stream)?;
            self.open.count += 1;
        }
        if to.bytes > 0 {
            let _entered = self.shared.enter()?;
            self.shared.reach(source.shared());
            let (x, y) = (source.address + from.offset as u64, target.address + to.offset as u64);
            let [own, peer] = [&self.shared, source.shared()].map(|shared| shared.context());
            // SAFETY: both ranges lie inside their allocations, which are kept, and the contexts are theirs.
            let result = unsafe { (self.shared.api().copy_from_peer)(y, own, x, peer, to.bytes, self.stream) };
            self.check_enqueued(result, "copying from another device")?;
            self.keep_memory(source);
            self.keep_memory(target);
        }
        self.close_if_full()
    }

    fn clear(&mut self, to: Slice<'_>) -> Result<()> {
        check_slice("clear", to.buffer.size(), to.offset, to.bytes)?;
        let end = to.offset + to.bytes;
        let memory = of_device(to.buffer, &self.shared)?.clone();
        // An allocation from the pool has the rest of the last word behind the end of its buffer.
        let to_end = end == to.buffer.size() && end.next_multiple_of(4) <= memory.bytes();
        if !to.offset.is_multiple_of(4) || !(end.is_multiple_of(4) || to_end) {
            fail!(InvalidArgument, "clear: {} bytes at {} are not whole 4-byte words", to.bytes, to.offset);
        }
        if to.bytes == 0 {
            return self.shared.usable();
        }
        self.zero(&memory, to.offset, to.bytes)?;
        self.close_if_full()
    }

    fn event(&mut self) -> Result<Arc<dyn Event>> {
        Ok(self.point()?)
    }

    fn wait(&mut self, event: &dyn Event) -> Result<()> {
        self.refuse_while_recording("waiting for an event")?;
        let Some(mark) = event.as_any().downcast_ref::<Mark>().filter(|mark| mark.is_of(&self.shared)) else {
            fail!(
                InvalidArgument,
                "the event is not from this opening of {}: wait for it on the host",
                self.shared.id()
            );
        };
        if mark.is_done()? {
            return Ok(());
        }
        mark.enqueue_wait(&self.shared, self.stream)?;
        self.open.count += 1;
        Ok(())
    }

    fn timestamp(&mut self) -> Result<Arc<dyn Timestamp>> {
        self.refuse_while_recording("a timestamp")?;
        let taken = CudaTimestamp::new(&self.shared, self.stream)?;
        self.open.count += 1;
        Ok(taken)
    }

    fn start_recording(&mut self) -> Result<()> {
        self.refuse_while_recording("a recording")?;
        self.point()?;
        recording::begin(&self.shared, self.stream)?;
        self.scratch.clear();
        self.recording = Some(Batch::default());
        Ok(())
    }

    fn finish_recording(&mut self) -> Result<Arc<dyn Recording>> {
        let Some(batch) = self.recording.take() else {
            fail!(InvalidArgument, "the stream is not recording");
        };
        self.scratch.clear();
        Ok(Arc::new(CudaRecording(Arc::new(Graph::finish(&self.shared, self.stream, batch)?))))
    }

    fn replay(&mut self, recording: &dyn Recording) -> Result<()> {
        self.refuse_while_recording("a replay")?;
        let recording = recording.as_any().downcast_ref::<CudaRecording>();
        let Some(CudaRecording(graph)) = recording.filter(|recording| recording.0.is_of(&self.shared)) else {
            fail!(InvalidArgument, "the recording was not made on this opening of {}", self.shared.id());
        };
        graph.launch(self.stream)?;
        self.open.count += 1;
        self.keep(graph.clone());
        for fault in graph.faults() {
            self.open.fetch(&self.shared, self.stream, fault.clone())?;
        }
        self.close_if_full()
    }

    fn flush(&mut self) -> Result<()> {
        if self.recording.is_some() {
            return Ok(());
        }
        if self.shared.physical.driver.collects { self.poll_idle().map(|_| ()) } else { self.shared.usable() }
    }

    fn synchronize(&mut self) -> Result<()> {
        self.finish()?;
        self.take_failure()
    }

    fn is_idle(&mut self) -> Result<bool> {
        self.poll_idle()
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        if self.recording.take().is_some() {
            recording::abandon(&self.shared, self.stream);
        }
        // The device must be done with the work before what it uses is freed, even if the device is lost.
        let done = self.finish();
        let Some(_entered) = self.shared.enter_to_destroy() else { return };
        let api = self.shared.api();
        // SAFETY: a stream of this device that nothing else has.
        unsafe {
            if done.is_err() {
                let _ = (api.stream_synchronize)(self.stream);
            }
            let _ = (api.stream_destroy)(self.stream);
        }
    }
}

/// Returns the memory of a buffer of another device of the same driver.
pub fn peer_of<'a>(buffer: &'a dyn Buffer, shared: &Arc<Shared>) -> Option<&'a Arc<Allocation>> {
    let memory = &buffer.as_any().downcast_ref::<CudaBuffer>()?.memory;
    memory.shared().is_peer_of(shared).then_some(memory)
}

/// Returns the memory of a buffer. `invalid_argument` if the buffer is not of this opening of the device.
pub fn of_device<'a>(buffer: &'a dyn Buffer, shared: &Arc<Shared>) -> Result<&'a Arc<Allocation>> {
    match buffer.as_any().downcast_ref::<CudaBuffer>() {
        Some(buffer) if buffer.memory.is_of(shared) => Ok(&buffer.memory),
        _ => Err(not_there(buffer, shared.id())),
    }
}
