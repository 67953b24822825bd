//! `ADEAD_CHECK_BUFFERS=1`: users' buffers lie between guards, memory with a known pattern that nobody may write. Behind each of the
//! user's kernels the host waits and looks at every guard of the device, so that a kernel which writes past its buffers is named, with
//! the place. For finding a fault: every dispatch waits, and no two kernels run at once.
//!
//! Behind every buffer is a guard; before it too where the device has addresses to share, as CUDA has.

use super::Buffer;
use crate::config::checks_buffers;
use crate::devices::Opened;
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
    /// with the place; the guard is whole again then.
    pub fn watch(
        &self,
        stream: &mut dyn hal::Stream,
        name: &str,
        buffers: &[&Buffer],
        work: &mut dyn FnMut(&mut dyn hal::Stream) -> Result<()>,
    ) -> Result<()> {
        // One at a time, so that what is broken is this one's doing.
        let mut list = self.lock();
        work(stream)?;
        let looked = stream.synchronize().and_then(|()| look(&mut list, stream));
        match looked {
            Ok(None) => Ok(()),
            Ok(Some(broken)) => Err(broken.error(name, buffers)),
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
    fn error(&self, name: &str, buffers: &[&Buffer]) -> Error {
        let &Broken { number, bytes, first, span } = self;
        let whose = match buffers.iter().position(|buffer| buffer.guard() == Some(number)) {
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

#[cfg(all(test, feature = "cuda"))]
mod tests {
    use super::*;
    use crate::hal::cuda::CudaDevice;
    use crate::hal::cuda::fake::{Card, Fake};
    use crate::hal::{Device, KernelSource, Slice};

    const BUMP: &[u8] = b"
.version 8.0
.target sm_70
.address_size 64
.visible .entry bump(.param .u64 p, .param .u32 n, .param .align 8 .b8 by[8]) .maxntid 64, 2 .minnctapersm 1 { ret; }
";

    #[test]
    fn a_guard_that_is_broken_is_found_and_mended() {
        let fake = Fake::new(&[Card::default()]);
        let device = Arc::new(CudaDevice::open(0, &fake.opening()).unwrap());
        let guards = Some(Guards::default());
        let opened = Opened::with_guards(device.clone(), Default::default(), guards).unwrap();
        let (buffer, beside) = (Buffer::new(&opened, 100, true).unwrap(), Buffer::new(&opened, 7, false).unwrap());
        assert_eq!((buffer.to_vec::<u32>().unwrap(), buffer.size()), (vec![0; 25], 100));
        let kernel =
            opened.device.kernel(&KernelSource { code: BUMP, entry: None, constants: &[], workgroup: None }).unwrap();
        // All of the device's memory, as a kernel reaches it.
        let (own, other) = (buffer.memory().unwrap(), beside.memory().unwrap());
        let address = |memory: &Arc<dyn hal::Buffer>| memory.device_address().unwrap();
        // SAFETY: the guards of a buffer, which is kept; the fake driver looks at what is touched.
        let around =
            unsafe { device.over(address(&own) - GUARD as u64, 2 * GUARD + 100, Box::new(own.clone())) }.unwrap();
        // Adds one to so many words from a byte of the buffer on.
        let bump = |from: isize, words: u32| {
            let push = [&words.to_ne_bytes()[..], &[0; 4], &1u64.to_ne_bytes()].concat();
            let offset = (GUARD as isize + from) as usize;
            let slice = Slice { buffer: &*around, offset, bytes: 4 * words as usize };
            let guards = opened.guards.as_ref().unwrap();
            let mut work = |stream: &mut dyn hal::Stream| stream.dispatch(&*kernel, &[slice], &push, [8, 1, 1]);
            opened.with(|stream| guards.watch(stream, "bump", &[&beside, &buffer], &mut work))
        };
        bump(0, 25).unwrap();
        let words = |buffer: &Buffer| buffer.to_vec::<u32>().unwrap();
        assert_eq!(words(&buffer), [1; 25]);
        for _ in 0..2 {
            let error = bump(96, 3).unwrap_err();
            assert_eq!(error.status(), Status::InvalidKernel);
            let text =
                "bump wrote outside its buffer 1, which has 100 bytes (0 to 99): 5 bytes from byte 100 on were changed";
            assert!(error.message().starts_with(text), "{error}");
        }
        let error = bump(-16, 1).unwrap_err();
        assert!(error.message().contains("1 bytes from byte -16 on"), "{error}");
        bump(0, 25).unwrap();
        // What is gone has no guards any more; the others have theirs.
        drop((own, around, buffer));
        opened.with(|stream| opened.guards.as_ref().unwrap().watch(stream, "nothing", &[], &mut |_| Ok(()))).unwrap();
        assert_eq!(opened.guards.as_ref().unwrap().lock().len(), 1);
        drop((other, beside, kernel, opened));
        assert_eq!((device.live(), fake.violations()), (0, Vec::<String>::new()));
    }
}
