//! `ADEAD_CHECK_BUFFERS=1`: users' buffers lie between guards, memory with a known pattern that nobody may write. Behind each of the
//! user's kernels the host waits and looks at every guard of the device, so that a kernel which writes past its buffers is named, with
//! the place. For finding a fault: every dispatch waits, and no two kernels run at once.
//!
//! Behind every buffer is a guard; before it too where the device has addresses to share, as CUDA has.

use super::Opened;
use crate::config::checks_buffers;
use crate::error::{Error, Result, Status, fail};
use crate::hal::{self, DeviceKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Bytes of a guard. What is written further away is not noticed.
pub(crate) const GUARD: usize = 64 << 10;

/// A guard's words: no number in any float type, so that what reads past its buffers shows, too.
const PATTERN: [u8; 4] = 0xffad_ffad_u32.to_ne_bytes();

/// The guarded buffers of a device.
#[derive(Default)]
pub(crate) struct Guards {
    all: Mutex<Vec<Guarded>>,
}

/// A buffer between its guards.
struct Guarded {
    memory: Weak<dyn hal::Buffer>,
    /// Bytes before the buffer, and its own.
    before: usize,
    bytes: usize,
    number: usize,
}

/// What was written of a guard.
struct Broken {
    number: usize,
    bytes: usize,
    /// The first byte and how many from it to the last, counted from the buffer's beginning.
    first: isize,
    span: usize,
}

impl Guards {
    /// Those of a device, if the environment wants them and it runs users' kernels.
    pub fn wanted(kind: DeviceKind) -> Result<Option<Guards>> {
        Ok((kind != DeviceKind::Cpu && checks_buffers()?).then(Guards::default))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Guarded>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many buffers are kept.
    #[cfg(all(test, feature = "cuda"))]
    pub fn listed(&self) -> usize {
        self.lock().len()
    }

    /// Memory for a buffer between guards, and the buffer's number.
    pub fn allocate(&self, opened: &Opened, bytes: usize, zeroed: bool) -> Result<(Arc<dyn hal::Buffer>, usize)> {
        let Some(all) = bytes.checked_add(2 * GUARD) else {
            fail!(OutOfMemory, "a buffer of {bytes} bytes and its guards of {GUARD} are more than there are addresses");
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
            // SAFETY: so many bytes behind the front guard are of that memory, which goes with the buffer over it.
            Some(address) => unsafe { opened.device.over(address + GUARD as u64, bytes, Box::new(memory.clone())) }?,
            None => memory.clone(),
        };
        let mut list = self.lock();
        let number = list.last().map_or(0, |last| last.number + 1);
        list.push(Guarded { memory: Arc::downgrade(&memory), before, bytes, number });
        Ok((shown, number))
    }

    /// Runs a kernel's dispatch, or what else runs kernels, and looks at the guards. `invalid_kernel` names it where one was broken,
    /// with the place; the guard is whole again then. `place_of` gives a guarded buffer's place among those of the work, by its number.
    pub fn watch(
        &self,
        stream: &mut dyn hal::Stream,
        name: &str,
        place_of: &dyn Fn(usize) -> Option<usize>,
        work: &mut dyn FnMut(&mut dyn hal::Stream) -> Result<()>,
    ) -> Result<()> {
        // One at a time, so that what is broken is this one's doing.
        let mut list = self.lock();
        work(stream)?;
        let looked = stream.synchronize().and_then(|()| look(&mut list, stream));
        match looked {
            Ok(None) => Ok(()),
            Ok(Some(broken)) => Err(broken.error(name, place_of)),
            // A device that is lost was lost by this.
            Err(error) => Err(Error::new(error.status(), format!("{name}: {}", error.message()))),
        }
    }
}

/// Where the guards of a buffer begin.
fn places(before: usize, bytes: usize) -> impl Iterator<Item = usize> {
    (before > 0).then_some(0).into_iter().chain([before + bytes])
}

/// The first guard that was broken. All are whole after it.
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
    fn error(&self, name: &str, place_of: &dyn Fn(usize) -> Option<usize>) -> Error {
        let &Broken { number, bytes, first, span } = self;
        let whose = match place_of(number) {
            Some(place) => format!("its buffer {place}"),
            None => "a buffer that it was not given".into(),
        };
        let text = format!(
            "{name} wrote outside {whose}, which has {bytes} bytes (0 to {}): {span} bytes from byte {first} on were changed; \
             give it a larger buffer, or mend the kernel's index",
            bytes as isize - 1
        );
        Error::new(Status::InvalidKernel, text)
    }
}
