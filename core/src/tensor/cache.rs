//! What of a device's memory tensors may keep: those that were used last stay.

use super::copies::{Copies, Keeper};
use crate::error::Result;
use crate::log::log;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Where a device does not tell how much memory it has.
const UNKNOWN: u64 = 1 << 30;

/// What tensors keep on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TensorCacheUse {
    /// The most bytes that tensors keep there.
    pub budget: u64,
    /// Bytes that they keep. More than the budget only where the operands and the result of one operation are.
    pub used: u64,
    /// How many tensors do.
    pub tensors: u64,
    /// How often an operand of an operation was there.
    pub hits: u64,
    /// How often one had to be moved there.
    pub misses: u64,
    /// How often one had to leave for others.
    pub evictions: u64,
}

/// The tensors that have a copy on a device.
pub(crate) struct Cache(Mutex<State>);

struct State {
    now: TensorCacheUse,
    /// Counts uses.
    tick: u64,
    /// Among them those that are gone, until there are many.
    entries: Vec<Weak<Copies>>,
}

impl Cache {
    /// None yet, on a device with so much memory: they may have half of it.
    pub fn new(memory: u64) -> Cache {
        let budget = if memory == 0 { UNKNOWN } else { memory / 2 };
        let now = TensorCacheUse { budget, ..TensorCacheUse::default() };
        Cache(Mutex::new(State { now, tick: 0, entries: Vec::new() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a use.
    pub fn use_one(&self) -> u64 {
        let mut state = self.state();
        state.tick += 1;
        state.tick
    }

    /// Counts operands that were there and that were not.
    pub fn count(&self, hits: u64, misses: u64) {
        let now = &mut self.state().now;
        (now.hits, now.misses) = (now.hits + hits, now.misses + misses);
    }

    /// A tensor has a copy there now.
    pub fn enter(&self, copies: &Arc<Copies>, bytes: usize) {
        let mut state = self.state();
        if state.entries.len() == state.entries.capacity() {
            state.entries.retain(|entry| entry.strong_count() > 0);
        }
        state.entries.push(Arc::downgrade(copies));
        (state.now.used, state.now.tensors) = (state.now.used + bytes as u64, state.now.tensors + 1);
    }

    /// A tensor has none there any more. One that had to leave, which is given, may come again.
    pub fn left(&self, bytes: usize, evicted: Option<&Copies>) {
        let mut state = self.state();
        if let Some(copies) = evicted {
            let at = state.entries.iter().position(|entry| std::ptr::eq(entry.as_ptr(), copies));
            at.map(|at| state.entries.swap_remove(at));
        }
        let now = &mut state.now;
        (now.used, now.tensors) = (now.used.saturating_sub(bytes as u64), now.tensors.saturating_sub(1));
        now.evictions += u64::from(evicted.is_some());
    }

    /// How many entries are kept.
    #[cfg(all(test, feature = "cuda"))]
    pub fn listed(&self) -> usize {
        self.state().entries.len()
    }

    /// What there is.
    pub fn now(&self) -> TensorCacheUse {
        self.state().now
    }

    /// Makes room for so many bytes more within the budget; see [`Cache::shrink`].
    pub fn make_room(&self, keeper: &dyn Keeper, bytes: u64, since: u64) -> Result<bool> {
        let most = self.state().now.budget.saturating_sub(bytes);
        self.shrink(keeper, most, since)
    }

    /// Another budget; what does not fit leaves.
    pub fn set_budget(&self, keeper: &dyn Keeper, bytes: u64) -> Result<()> {
        self.state().now.budget = bytes;
        self.shrink(keeper, bytes, u64::MAX).map(|_| ())
    }

    /// Gives up the copies of what is in host memory too.
    pub fn trim(&self, keeper: &dyn Keeper) {
        let live: Vec<_> = self.state().entries.iter().filter_map(Weak::upgrade).collect();
        for copies in live.iter().filter(|copies| copies.are_on_host()) {
            // Nothing has to be read, so nothing fails.
            let _ = copies.leave(keeper);
        }
    }

    /// Lets tensors keep at most so many bytes: the copies that were not used for the longest time go, but for those that were
    /// used after `since`. Whether any went. No stream may be locked by the caller, as values may have to be read.
    pub fn shrink(&self, keeper: &dyn Keeper, most: u64, since: u64) -> Result<bool> {
        let live: Vec<_> = {
            let state = self.state();
            if state.now.used <= most {
                return Ok(false);
            }
            state.entries.iter().filter_map(Weak::upgrade).collect()
        };
        // Not under the lock, which the end of a copy takes too.
        let mut oldest = BinaryHeap::new();
        for (i, copies) in live.iter().enumerate() {
            if let Some(used) = copies.used(keeper).filter(|&used| used <= since) {
                oldest.push((u64::MAX - used, i));
            }
        }
        let mut any = false;
        while self.state().now.used > most {
            let Some((_, i)) = oldest.pop() else { break };
            any |= live[i].leave(keeper)?;
            log!(Debug, "tensors", "a tensor left {} for others", keeper.id());
        }
        Ok(any)
    }
}
