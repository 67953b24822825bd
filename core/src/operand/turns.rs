//! Buffers of the CPU device: host memory that several threads share, each in its turn.
//!
//! Any thread may write a buffer through a stream, or pass it to a command. A thread that accesses a buffer's bytes holds the
//! buffer's turn. So safe code can't make one thread read what another one is writing. (An embedding reads its ids twice, and
//! they must not change in between.)

use super::{Buffer, Place, View};
use crate::error::{Result, fail};
use crate::memory::host::HostBuffer;
use smallvec::SmallVec;
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError, TryLockResult};

/// Host memory as a device's buffer.
pub struct CpuBuffer {
    memory: HostBuffer,
    turn: RwLock<()>,
}

impl CpuBuffer {
    /// Allocates zeroed memory.
    pub fn zeroed(bytes: usize) -> Result<CpuBuffer> {
        Ok(CpuBuffer { memory: HostBuffer::zeroed(bytes)?, turn: RwLock::new(()) })
    }
}

// SAFETY: the memory is owned and initialised, has the stated size, and stays in place.
unsafe impl Buffer for CpuBuffer {
    fn size(&self) -> usize {
        self.memory.len()
    }

    fn device_name(&self) -> &str {
        "cpu"
    }

    fn host_pointer(&self) -> Option<NonNull<u8>> {
        Some(self.memory.pointer())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// The turn of one buffer.
enum Turn<'a> {
    Read(#[allow(dead_code, reason = "held, not read")] RwLockReadGuard<'a, ()>),
    Write(#[allow(dead_code, reason = "held, not read")] RwLockWriteGuard<'a, ()>),
}

/// The turns of all CPU buffers that a piece of work uses. They end when this is dropped.
pub(crate) struct Turns<'a>(#[allow(dead_code, reason = "held, not read")] SmallVec<[Turn<'a>; 4]>);

thread_local! {
    /// How many of this thread's pieces of work hold turns. It exceeds one only if a caller's check runs inside its work.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

impl Drop for Turns<'_> {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
    }
}

impl<'a> Turn<'a> {
    /// Waits for the turn. Returns an error if this thread might wait for itself.
    fn of(buffer: &'a CpuBuffer, written: bool) -> Result<Turn<'a>> {
        let (turn, waits) = (&buffer.turn, HELD.get() == 0);
        Ok(match written {
            true if waits => Turn::Write(turn.write().unwrap_or_else(PoisonError::into_inner)),
            false if waits => Turn::Read(turn.read().unwrap_or_else(PoisonError::into_inner)),
            true => Turn::Write(now(turn.try_write())?),
            false => Turn::Read(now(turn.try_read())?),
        })
    }
}

fn now<T>(turn: TryLockResult<T>) -> Result<T> {
    match turn {
        Ok(turn) => Ok(turn),
        Err(TryLockError::Poisoned(turn)) => Ok(turn.into_inner()),
        Err(TryLockError::WouldBlock) => {
            fail!(NotReady, "the buffer is in use by the call around this one: use it after that call has returned")
        }
    }
}

impl<'a> Turns<'a> {
    /// Waits for the turns of the buffers; those marked `true` are written. Buffers of other devices have no turns.
    pub fn of(uses: impl Iterator<Item = (&'a dyn Buffer, bool)>) -> Result<Turns<'a>> {
        let mut buffers = SmallVec::<[(&'a CpuBuffer, bool); 4]>::new();
        for (buffer, written) in uses {
            let Some(buffer) = buffer.as_any().downcast_ref::<CpuBuffer>() else { continue };
            // All threads take turns in the order of addresses, so they can't deadlock.
            let address = |buffer| std::ptr::from_ref::<CpuBuffer>(buffer).addr();
            let place = buffers.partition_point(|(other, _)| address(other) < address(buffer));
            match buffers.get_mut(place) {
                Some((other, both)) if std::ptr::eq(*other, buffer) => *both |= written,
                _ => buffers.insert(place, (buffer, written)),
            }
        }
        let turns = buffers.into_iter().map(|(buffer, written)| Turn::of(buffer, written)).collect::<Result<_>>()?;
        HELD.set(HELD.get() + 1);
        Ok(Turns(turns))
    }

    /// Waits for the turns of operands in buffers, and of a result in a buffer.
    #[inline(never)]
    pub fn of_operands(inputs: &[Option<View<'a>>], output: Option<Place<'a>>) -> Result<Turns<'a>> {
        let buffer = |place, written| match place {
            Place::Buffer(buffer, _) => Some((buffer, written)),
            _ => None,
        };
        let inputs = inputs.iter().flatten().filter_map(|view| buffer(view.place(), false));
        Turns::of(inputs.chain(output.and_then(|output| buffer(output, true))))
    }
}
