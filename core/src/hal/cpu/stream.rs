//! Streams of the CPU: work has finished when the call that enqueues it returns.

use super::{CpuDevice, HostBuffer};
use crate::command::Command;
use crate::error::{Result, fail};
use crate::hal::{Buffer, Download, Event, Kernel, Recording, Slice, Stream, Timestamp, check_slice};
use crate::interrupt::{self, pieces};
use crate::operand::{CpuBuffer, Turns};
use std::any::Any;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// A stream of the CPU. It never has pending work.
pub struct CpuStream {
    device: Arc<CpuDevice>,
}

impl CpuStream {
    /// Makes a stream of a device.
    pub fn new(device: Arc<CpuDevice>) -> CpuStream {
        CpuStream { device }
    }
}

/// Returns the address of a slice, after checking its bounds.
fn place(slice: Slice<'_>, what: &str) -> Result<*mut u8> {
    check_slice(what, slice.buffer.size(), slice.offset, slice.bytes)?;
    match slice.buffer.as_any().downcast_ref::<CpuBuffer>().and_then(Buffer::host_pointer) {
        // SAFETY: the slice lies inside the buffer, which was checked above.
        Some(first) => Ok(unsafe { first.as_ptr().add(slice.offset) }),
        None => fail!(InvalidArgument, "a buffer is on {}, not on cpu", slice.buffer.device_name()),
    }
}

/// Copies bytes in pieces, so that the copy can be interrupted.
///
/// # Safety
/// As for `copy_nonoverlapping`.
unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) -> Result<()> {
    interrupt::alone(&mut || {
        // SAFETY: every piece lies inside both ranges.
        pieces!(bytes, |at, count| unsafe { to.add(at).copy_from_nonoverlapping(from.add(at), count) })
    })
}

/// Takes the turn to read or write one buffer.
fn turn(buffer: &dyn Buffer, written: bool) -> Result<Turns<'_>> {
    Turns::of([(buffer, written)].into_iter())
}

// SAFETY: when a call returns, its work has finished. The work stays inside the buffers that it names, and holds their
// turns.
unsafe impl Stream for CpuStream {
    fn submit(&mut self, commands: &mut [Command<'_>]) -> Result<()> {
        commands.iter_mut().try_for_each(|command| {
            let _turns = Turns::of_operands(command.inputs(), Some(command.output().place()))?;
            self.device.execute(command)
        })
    }

    fn dispatch(&mut self, kernel: &dyn Kernel, _: &[Slice<'_>], _: &[u8], _: [u32; 3]) -> Result<()> {
        fail!(InvalidArgument, "the kernel '{}' was built for a GPU, and the stream is on the CPU", kernel.name())
    }

    fn write(&mut self, to: &dyn Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
        let _turn = turn(to, true)?;
        let to = place(Slice { buffer: to, offset, bytes: bytes.len() }, "write")?;
        // SAFETY: the range lies inside the buffer, and this call holds the turn to write it.
        unsafe { copy(bytes.as_ptr(), to, bytes.len()) }
    }

    fn read(&mut self, from: &dyn Buffer, offset: usize, into: &mut [u8]) -> Result<()> {
        let _turn = turn(from, false)?;
        let from = place(Slice { buffer: from, offset, bytes: into.len() }, "read")?;
        // SAFETY: the range lies inside the buffer, and this call holds the turn to read it.
        unsafe { copy(from, into.as_mut_ptr(), into.len()) }
    }

    fn download(&mut self, from: Slice<'_>) -> Result<Box<dyn Download>> {
        check_slice("download", from.buffer.size(), from.offset, from.bytes)?;
        let bytes = HostBuffer::uninitialised(from.bytes)?;
        let _turn = turn(from.buffer, false)?;
        let source = place(from, "download")?;
        // SAFETY: as in `read`. The new memory has as many bytes, and nothing else uses it.
        unsafe { copy(source, bytes.pointer().as_ptr(), from.bytes) }?;
        Ok(Box::new(Done(bytes)))
    }

    fn copy(&mut self, from: Slice<'_>, to: Slice<'_>) -> Result<()> {
        let _turns = Turns::of([(from.buffer, false), (to.buffer, true)].into_iter())?;
        let (source, target) = (place(from, "copy")?, place(to, "copy")?);
        let (a, b, bytes) = (from.offset, to.offset, from.bytes);
        let apart = (source as usize).abs_diff(target as usize) >= bytes;
        if to.bytes != bytes || !apart {
            fail!(InvalidArgument, "copy: {bytes} bytes at {a} to {} at {b}: sizes differ or parts overlap", to.bytes);
        }
        // SAFETY: both ranges lie inside their buffers and don't overlap.
        unsafe { copy(source, target, bytes) }
    }

    fn clear(&mut self, to: Slice<'_>) -> Result<()> {
        let _turn = turn(to.buffer, true)?;
        let target = place(to, "clear")?;
        // SAFETY: the range lies inside the buffer, and this call holds the turn to write it.
        interrupt::alone(&mut || pieces!(to.bytes, |at, count| unsafe { target.add(at).write_bytes(0, count) }))
    }

    fn event(&mut self) -> Result<Arc<dyn Event>> {
        Ok(Arc::new(Now))
    }

    fn wait(&mut self, event: &dyn Event) -> Result<()> {
        event.wait(u64::MAX)
    }

    fn timestamp(&mut self) -> Result<Arc<dyn Timestamp>> {
        static START: OnceLock<Instant> = OnceLock::new();
        Ok(Arc::new(At(START.get_or_init(Instant::now).elapsed().as_nanos() as u64)))
    }

    fn start_recording(&mut self) -> Result<()> {
        fail!(Unsupported, "the CPU has no recordings: it runs work at once")
    }

    fn finish_recording(&mut self) -> Result<Arc<dyn Recording>> {
        fail!(InvalidArgument, "the stream is not recording")
    }

    fn replay(&mut self, _: &dyn Recording) -> Result<()> {
        fail!(InvalidArgument, "the recording was made on a GPU, and the stream is on the CPU")
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn synchronize(&mut self) -> Result<()> {
        Ok(())
    }

    fn is_idle(&mut self) -> Result<bool> {
        Ok(true)
    }
}

/// A point that is always reached.
struct Now;

// SAFETY: it holds no memory.
unsafe impl Event for Now {
    fn is_done(&self) -> Result<bool> {
        Ok(true)
    }

    fn wait(&self, _: u64) -> Result<()> {
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A download that has arrived.
struct Done(HostBuffer);

// SAFETY: its bytes are written, and nothing writes them again.
unsafe impl Download for Done {
    fn size(&self) -> usize {
        self.0.len()
    }

    fn is_done(&self) -> Result<bool> {
        Ok(true)
    }

    fn event(&self) -> Option<&dyn Event> {
        None
    }

    fn bytes(&self) -> Result<&[u8]> {
        // SAFETY: the bytes were written when this was made, and nothing writes them again.
        Ok(unsafe { std::slice::from_raw_parts(self.0.pointer().as_ptr(), self.size()) })
    }

    fn take(self: Box<Self>, into: &mut [u8]) -> Result<()> {
        if into.len() != self.size() {
            fail!(InvalidArgument, "the download has {} bytes, but its destination has {}", self.size(), into.len());
        }
        // SAFETY: `into` has the same length, and the bytes were written when this was made.
        unsafe { into.as_mut_ptr().copy_from_nonoverlapping(self.0.pointer().as_ptr(), into.len()) };
        Ok(())
    }
}

/// A timestamp: nanoseconds since the first timestamp of the process.
struct At(u64);

// SAFETY: it holds no memory.
unsafe impl Timestamp for At {
    fn nanoseconds(&self) -> Result<u64> {
        Ok(self.0)
    }
}
