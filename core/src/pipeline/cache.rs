//! The cache of compiled pipelines. It finds the compiled form of an earlier graph with the same operations and shapes.

use super::compiled::Compiled;
use super::graph::Graph;
use crate::context::{Context, Kept};
use crate::error::{Error, Result, Status};
use crate::log::log;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// At most this many compiled pipelines are kept.
const MOST: usize = 32;

/// A context's compiled pipelines, the most recently used first.
#[derive(Default)]
pub(crate) struct Cache(Mutex<Lists>);

#[derive(Default)]
struct Lists {
    compiled: Vec<Arc<Compiled>>,
    hits: u64,
    misses: u64,
}

/// Counts how a context's cache of pipelines was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Pipelines in the cache.
    pub entries: usize,
    /// The most pipelines that the cache holds. The least recently used one is evicted first.
    pub most: usize,
    /// Executions that found their pipeline in the cache.
    pub hits: u64,
    /// Executions that had to compile.
    pub misses: u64,
}

impl Cache {
    /// Finds the cache of a context.
    pub(super) fn of(context: &Context) -> Result<&Cache> {
        context.kept().ok_or_else(|| Error::new(Status::Internal, "a context's pipelines have another type"))
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the compiled form of a graph, compiled now if the cache has none. Fails if its values take more than `limit`
    /// bytes.
    pub(super) fn get(&self, context: &Context, graph: &Graph, limit: usize) -> Result<Arc<Compiled>> {
        let forgotten: Vec<_> = {
            let mut kept = self.lists();
            if let Some(at) = kept.compiled.iter().position(|compiled| compiled.serves(context, graph)) {
                kept.hits += 1;
                kept.compiled[..=at].rotate_right(1);
                let found = kept.compiled[0].clone();
                drop(kept);
                found.check(limit)?;
                return Ok(found);
            }
            kept.misses += 1;
            kept.compiled.extract_if(.., |compiled| compiled.is_forgotten()).collect()
        };
        drop(forgotten);
        // The lock is released: compiling may take long, and other threads' pipelines must not wait for it.
        let compiled = Arc::new(Compiled::new(context, graph.clone(), limit, true)?);
        log!(
            Debug,
            "pipeline",
            "compiled {} operations to {} steps for {}",
            compiled.operations(),
            compiled.steps(),
            compiled.device().id
        );
        let mut kept = self.lists();
        kept.compiled.insert(0, compiled.clone());
        let most = MOST.min(kept.compiled.len());
        let surplus = kept.compiled.split_off(most);
        // Evicted pipelines are dropped without the lock, because freeing device memory may take long.
        drop(kept);
        if !surplus.is_empty() {
            log!(Debug, "pipeline", "evicted {}: at most {MOST} are kept", surplus.len());
        }
        drop(surplus);
        Ok(compiled)
    }

    fn usage(&self) -> CacheUse {
        let kept = self.lists();
        CacheUse { entries: kept.compiled.len(), most: MOST, hits: kept.hits, misses: kept.misses }
    }
}

impl Kept for Cache {
    fn clear(&self) {
        let compiled = std::mem::take(&mut self.lists().compiled);
        drop(compiled);
    }
}

impl Context {
    /// Returns how the cache was used by [`Pipeline::execute`](super::Pipeline::execute) and by runs of programs.
    /// [`Context::trim`] empties it.
    pub fn pipeline_cache(&self) -> CacheUse {
        Cache::of(self).map_or_else(|_| CacheUse::default(), Cache::usage)
    }
}
