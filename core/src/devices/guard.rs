//! Guards around users' buffers, for `ADEAD_CHECK_BUFFERS=1`. A guard is memory with a known pattern that no kernel may
//! write. After each user kernel the host waits and checks every guard of the device. A kernel that writes past its
//! buffers gets an error with its name and the place. Guards find faults at the cost of speed: every dispatch waits, so
//! no two kernels overlap.
//!
//! Every buffer has a guard behind it. On a device with shareable addresses, as CUDA's, it has one in front too.

use super::Opened;
use crate::config::checks_buffers;
use crate::error::{Error, Result, Status, fail};
use crate::hal::{self, DeviceKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Bytes of a guard. Writes further away go unnoticed.
pub(crate) const GUARD: usize = 64 << 10;

/// The word that fills a guard. It is a NaN in every float type, so reads past a buffer show up in results.
const PATTERN: [u8; 4] = 0xffad_ffad_u32.to_ne_bytes();

/// The guarded buffers of a device.
#[derive(Default)]
pub(crate) struct Guards {
    all: Mutex<Vec<Guarded>>,
}

/// A buffer between its guards.
struct Guarded {
    memory: Weak<dyn hal::Buffer>,
    /// Bytes of the guard in front of the buffer, and bytes of the buffer.
    before: usize,
    bytes: usize,
    number: usize,
}

/// A guard that a kernel changed.
struct Broken {
    number: usize,
    bytes: usize,
    /// The first changed byte, counted from the start of the buffer, and the number of bytes from it to the last
    /// changed one.
    first: isize,
    span: usize,
}

impl Guards {
    /// Makes the guards of a device, if `ADEAD_CHECK_BUFFERS` asks for them and the device runs user kernels.
    pub fn wanted(kind: DeviceKind) -> Result<Option<Guards>> {
        Ok((kind != DeviceKind::Cpu && checks_buffers()?).then(Guards::default))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Guarded>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of buffers in the list.
    #[cfg(all(test, feature = "cuda"))]
    pub fn listed(&self) -> usize {
        self.lock().len()
    }

    /// Allocates a buffer between guards, and returns it with its number.
    pub fn allocate(&self, opened: &Opened, bytes: usize, zeroed: bool) -> Result<(Arc<dyn hal::Buffer>, usize)> {
        let Some(all) = bytes.checked_add(2 * GUARD) else {
            fail!(OutOfMemory, "a buffer of {bytes} bytes with guards of {GUARD} bytes exceeds the address space");
        };
        let memory = opened.allocate(all, zeroed)?;
        let own = memory.device_address();
        let before = if own.is_some() { GUARD } else { 0 };
        opened.with(|stream| {
            for guard in places(before, bytes) {
                stream.write(&*memory, guard, &pattern())?;
            }
            stream.synchronize()
        })?;
        let shown = match own {
            // SAFETY: the range of `bytes` bytes behind the front guard lies in `memory`, which the new buffer owns a
            // reference to.
            Some(address) => unsafe { opened.device.over(address + GUARD as u64, bytes, Box::new(memory.clone())) }?,
            None => memory.clone(),
        };
        let mut list = self.lock();
        let number = list.last().map_or(0, |last| last.number + 1);
        list.push(Guarded { memory: Arc::downgrade(&memory), before, bytes, number });
        Ok((shown, number))
    }

    /// Runs work with kernels and then checks the guards. `invalid_kernel` says which kernel changed a guard and where;
    /// the guard is restored. `device_of` maps the number of a guarded buffer to its place among the buffers of the
    /// work.
    pub fn watch(
        &self,
        stream: &mut dyn hal::Stream,
        name: &str,
        device_of: &dyn Fn(usize) -> Option<usize>,
        work: &mut dyn FnMut(&mut dyn hal::Stream) -> Result<()>,
    ) -> Result<()> {
        // The lock keeps other kernels out, so a changed guard is this kernel's fault.
        let mut list = self.lock();
        work(stream)?;
        let looked = stream.synchronize().and_then(|()| look(&mut list, stream));
        match looked {
            Ok(None) => Ok(()),
            Ok(Some(broken)) => Err(broken.error(name, device_of)),
            // This kernel is also the cause if the device was lost.
            Err(error) => Err(Error::new(error.status(), format!("{name}: {}", error.message()))),
        }
    }
}

/// Returns the offsets of a buffer's guards.
fn places(before: usize, bytes: usize) -> impl Iterator<Item = usize> {
    (before > 0).then_some(0).into_iter().chain([before + bytes])
}

/// Returns the first changed guard, and restores all.
fn look(list: &mut Vec<Guarded>, stream: &mut dyn hal::Stream) -> Result<Option<Broken>> {
    let (whole, mut seen, mut found) = (pattern(), vec![0; GUARD], None);
    list.retain(|guarded| guarded.memory.strong_count() > 0);
    for &Guarded { ref memory, before, bytes, number } in list.iter() {
        let Some(memory) = memory.upgrade() else { continue };
        for place in places(before, bytes) {
            stream.read(&*memory, place, &mut seen)?;
            let differs = |(seen, whole): (&u8, &u8)| seen != whole;
            let Some(first) = seen.iter().zip(&whole).position(differs) else { continue };
            let last = seen.iter().zip(&whole).rposition(differs).unwrap_or(first);
            stream.write(&*memory, place, &whole)?;
            stream.synchronize()?;
            let first_of_buffer = (place + first) as isize - before as isize;
            found.get_or_insert(Broken { number, bytes, first: first_of_buffer, span: last - first + 1 });
        }
    }
    Ok(found)
}

fn pattern() -> Vec<u8> {
    PATTERN.iter().copied().cycle().take(GUARD).collect()
}

impl Broken {
    #[cold]
    fn error(&self, name: &str, device_of: &dyn Fn(usize) -> Option<usize>) -> Error {
        let &Broken { number, bytes, first, span } = self;
        let whose = match device_of(number) {
            Some(place) => format!("its buffer {place}"),
            None => "a buffer that it was not given".into(),
        };
        let text = format!(
            "{name} wrote outside {whose}, which has {bytes} bytes (0 to {}): {span} bytes from byte {first} on were changed; \
             give it a larger buffer, or correct the kernel's index",
            bytes as isize - 1
        );
        Error::new(Status::InvalidKernel, text)
    }
}
