//! Which recording computes the next tokens of which sequences.

use super::cache::Cache;
use super::decoder::{Decoder, Step};
use super::slots::{Slot, Slots};
use adead::{Result, Status};
use std::sync::{Arc, Mutex, PoisonError};

/// The recordings of a model. Those without a sequence wait for the next one.
#[derive(Default)]
pub(crate) struct Recordings(Mutex<Vec<Arc<Slots>>>);

/// The most recordings that are kept without a sequence.
const UNUSED: usize = 4;

/// At least one of so many slots of a recording has a sequence of the step: rows of the others take time too.
const SPARSE: usize = 4;

impl Recordings {
    /// Brings sequences into one recording that has room for their next tokens.
    pub fn place(&self, decoder: &Decoder, steps: &mut [&mut Step<'_>]) -> Result<Arc<Slots>> {
        let longest = steps.iter().map(|step| step.cache.length() + 1).max().unwrap_or(1);
        let fits = |slots: &Slots| slots.capacity() >= longest && slots.count() < SPARSE * steps.len().max(1);
        let present = steps.iter().find_map(|step| step.slots().filter(|slots| fits(slots)).cloned());
        if let Some(slots) = present {
            let outside = |step: &Step<'_>| step.slots().is_none_or(|own| !Arc::ptr_eq(own, &slots));
            if let Some(places) = slots.take(steps.iter().filter(|step| outside(step)).count()) {
                let strangers = steps.iter_mut().filter(|step| outside(step));
                enter(decoder, strangers.map(|step| &mut *step.cache), places)?;
                return Ok(slots);
            }
        }
        let sizes = Slots::sizes(steps.len(), longest, decoder.positions());
        let (slots, places) = self.free(decoder, sizes, steps.len())?;
        enter(decoder, steps.iter_mut().map(|step| &mut *step.cache), places)?;
        Ok(slots)
    }

    /// Returns a recording of these sizes that has no sequence, and takes so many places in it.
    fn free(&self, decoder: &Decoder, sizes: [usize; 2], sequences: usize) -> Result<(Arc<Slots>, Vec<Slot>)> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = lock();
        let found = all.iter().find_map(|slots| {
            let fits = [slots.count(), slots.capacity()] == sizes;
            // Sequences of other threads have recordings of their own: in one, they would take turns.
            if fits && slots.is_unused() { Some((slots.clone(), slots.take(sequences)?)) } else { None }
        });
        if let Some(found) = found {
            return Ok(found);
        }
        // The newest of those without a sequence are kept.
        let mut unused = all.iter().filter(|slots| slots.is_unused()).count();
        all.retain(|slots| {
            let goes = slots.is_unused() && unused > UNUSED - 1;
            unused -= usize::from(goes);
            !goes
        });
        drop(all);
        // The lock is released: recording takes some milliseconds.
        let slots = match decoder.record(sizes) {
            Err(error) if error.status() == Status::OutOfMemory => {
                lock().retain(|slots| !slots.is_unused());
                decoder.record(sizes)?
            }
            recorded => recorded?,
        };
        let slots = Arc::new(slots);
        let Some(places) = slots.take(sequences) else { unreachable!("a new recording has as many places") };
        lock().push(slots.clone());
        Ok((slots, places))
    }
}

/// Moves sequences to places.
fn enter<'a>(decoder: &Decoder, caches: impl Iterator<Item = &'a mut Cache>, places: Vec<Slot>) -> Result<()> {
    for (cache, place) in caches.zip(places) {
        let length = cache.length();
        if let Some(cache) = &mut cache.on_device {
            cache.enter(decoder.context(), length, place)?;
        }
    }
    Ok(())
}

impl Step<'_> {
    /// The recording that its sequence has a place in.
    fn slots(&self) -> Option<&Arc<Slots>> {
        Some(self.cache.on_device.as_ref()?.slot()?.slots())
    }
}
