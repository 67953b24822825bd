//! The cache of tensors on a device: a memory budget, and eviction of the least recently used copies.

use super::copies::{Copies, Keeper};
use crate::error::Result;
use crate::log::log;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The budget on a device that doesn't report its memory.
const UNKNOWN: u64 = 1 << 30;

/// Reports what tensors keep on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TensorCacheUse {
    /// The most bytes that tensors may keep there.
    pub budget: u64,
    /// The bytes that they keep. Exceeds the budget only if the operands and the result of one operation do.
    pub used: u64,
    /// The number of tensors with a copy there.
    pub tensors: u64,
    /// How often an operand already had a copy there.
    pub hits: u64,
    /// How often an operand had to be copied there.
    pub misses: u64,
    /// How often a copy was evicted.
    pub evictions: u64,
}

/// The tensors that have a copy on a device.
pub(crate) struct Cache(Mutex<State>);

struct State {
    now: TensorCacheUse,
    /// The number of uses so far.
    tick: u64,
    /// Includes dropped tensors until the list is full, and then removes them.
    entries: Vec<Weak<Copies>>,
}

impl Cache {
    /// Makes an empty cache for a device with this much memory. Tensors may use half of it.
    pub fn new(memory: u64) -> Cache {
        let budget = if memory == 0 { UNKNOWN } else { memory / 2 };
        let now = TensorCacheUse { budget, ..TensorCacheUse::default() };
        Cache(Mutex::new(State { now, tick: 0, entries: Vec::new() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a use, and returns its number.
    pub fn use_one(&self) -> u64 {
        let mut state = self.state();
        state.tick += 1;
        state.tick
    }

    /// Counts operands that had a copy there, and operands that had none.
    pub fn count(&self, hits: u64, misses: u64) {
        let now = &mut self.state().now;
        (now.hits, now.misses) = (now.hits + hits, now.misses + misses);
    }

    /// Records that a tensor now has a copy there.
    pub fn enter(&self, copies: &Arc<Copies>, bytes: usize) {
        let mut state = self.state();
        if state.entries.len() == state.entries.capacity() {
            state.entries.retain(|entry| entry.strong_count() > 0);
        }
        state.entries.push(Arc::downgrade(copies));
        (state.now.used, state.now.tensors) = (state.now.used + bytes as u64, state.now.tensors + 1);
    }

    /// Records that a tensor's part there has become a larger one.
    pub fn grow(&self, bytes: usize) {
        self.state().now.used += bytes as u64;
    }

    /// Records that a copy is gone. An evicted tensor's entry is removed too, because the tensor may be copied again.
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

    /// Returns the number of entries.
    #[cfg(all(test, feature = "cuda"))]
    pub fn listed(&self) -> usize {
        self.state().entries.len()
    }

    /// Returns the current use.
    pub fn now(&self) -> TensorCacheUse {
        self.state().now
    }

    /// Evicts copies until `bytes` more fit in the budget; see [`Cache::shrink`].
    pub fn make_room(&self, keeper: &dyn Keeper, bytes: u64, since: u64) -> Result<bool> {
        let most = self.state().now.budget.saturating_sub(bytes);
        self.shrink(keeper, most, since)
    }

    /// Sets the budget, and evicts what exceeds it.
    pub fn set_budget(&self, keeper: &dyn Keeper, bytes: u64) -> Result<()> {
        self.state().now.budget = bytes;
        self.shrink(keeper, bytes, u64::MAX).map(|_| ())
    }

    /// Drops the copies of tensors that are also in host memory.
    pub fn trim(&self, keeper: &dyn Keeper) {
        let live: Vec<_> = self.state().entries.iter().filter_map(Weak::upgrade).collect();
        for copies in live.iter().filter(|copies| copies.are_on_host()) {
            // `leave` fails only when it has to read values, and it reads none here.
            let _ = copies.leave(keeper);
        }
    }

    /// Evicts least recently used copies until at most `most` bytes remain, but no copy used after `since`. Returns
    /// whether it evicted any. The caller must hold no stream's lock, because values may have to be read.
    pub fn shrink(&self, keeper: &dyn Keeper, most: u64, since: u64) -> Result<bool> {
        let live: Vec<_> = {
            let state = self.state();
            if state.now.used <= most {
                return Ok(false);
            }
            state.entries.iter().filter_map(Weak::upgrade).collect()
        };
        // The lock is not held here, because dropping a copy takes it too.
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
