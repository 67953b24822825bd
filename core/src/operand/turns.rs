//! Buffers of the CPU device: host memory that several threads may use at once, each in its turn.
//!
//! A buffer is shared: any thread may write it through a stream, or give it to a command. Whoever touches its bytes holds its turn,
//! so safe code can't have one thread read what another one writes. (An embedding reads its ids twice: they must not change between.)

use super::{Buffer, Place, View};
use crate::error::Result;
use crate::memory::host::HostBuffer;
use smallvec::SmallVec;
use std::ptr::NonNull;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Host memory as a device's buffer.
pub struct CpuBuffer {
    memory: HostBuffer,
    turn: RwLock<()>,
}

impl CpuBuffer {
    /// Memory whose contents are zero.
    pub fn zeroed(bytes: usize) -> Result<CpuBuffer> {
        Ok(CpuBuffer { memory: HostBuffer::zeroed(bytes)?, turn: RwLock::new(()) })
    }
}

// SAFETY: the memory is owned, initialised, as large as it says, and stays where it is.
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

/// The turns of all CPU buffers that a piece of work uses; they end when it is dropped.
pub(crate) struct Turns<'a>(#[allow(dead_code, reason = "held, not read")] SmallVec<[Turn<'a>; 4]>);

impl<'a> Turns<'a> {
    /// Waits for the turns of buffers, of which those marked are written. Buffers of other devices have none.
    pub fn of(uses: impl Iterator<Item = (&'a dyn Buffer, bool)>) -> Turns<'a> {
        let mut buffers = SmallVec::<[(&'a CpuBuffer, bool); 4]>::new();
        for (buffer, written) in uses {
            let Some(buffer) = buffer.as_any().downcast_ref::<CpuBuffer>() else { continue };
            match buffers.iter_mut().find(|(other, _)| std::ptr::eq(*other, buffer)) {
                Some((_, both)) => *both |= written,
                None => buffers.push((buffer, written)),
            }
        }
        // In one order, whoever waits for them: so nobody waits for a turn while another waits for its own.
        buffers.sort_unstable_by_key(|(buffer, _)| std::ptr::from_ref(*buffer).addr());
        let turn = |(buffer, written): (&'a CpuBuffer, bool)| match written {
            true => Turn::Write(buffer.turn.write().unwrap_or_else(PoisonError::into_inner)),
            false => Turn::Read(buffer.turn.read().unwrap_or_else(PoisonError::into_inner)),
        };
        Turns(buffers.into_iter().map(turn).collect())
    }

    /// Waits for the turns of operands in buffers, and of a result there.
    #[inline(never)]
    pub fn of_operands(inputs: &[Option<View<'a>>], output: Option<Place<'a>>) -> Turns<'a> {
        let buffer = |place, written| match place {
            Place::Buffer(buffer, _) => Some((buffer, written)),
            _ => None,
        };
        let inputs = inputs.iter().flatten().filter_map(|view| buffer(view.place(), false));
        Turns::of(inputs.chain(output.and_then(|output| buffer(output, true))))
    }
}
