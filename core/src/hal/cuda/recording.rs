//! Recordings: what a stream captured, as a graph that is launched as a whole.

use super::api::Handle;
use super::batch::{Batch, Fault};
use super::shared::Shared;
use crate::error::Result;
use crate::hal::Recording;
use std::any::Any;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

/// A graph, and what it uses.
pub struct Graph {
    shared: Arc<Shared>,
    /// One thread's at a time, as graphs are.
    graph: Mutex<Handle>,
    batch: Batch,
}

// SAFETY: a handle behind a lock; what is kept is only held.
unsafe impl Send for Graph {}
// SAFETY: the same.
unsafe impl Sync for Graph {}

/// Begins to capture what a stream gets.
pub fn begin(shared: &Shared, stream: Handle) -> Result<()> {
    /// Memory may be taken meanwhile, by this thread and others.
    const RELAXED: i32 = 2;
    let _entered = shared.enter()?;
    // SAFETY: a stream of this device that captures nothing.
    shared.check(unsafe { (shared.api().capture_begin)(stream, RELAXED) }, "beginning a recording")
}

/// What a stream captured, to be destroyed: null if that failed.
fn end(shared: &Shared, stream: Handle) -> (Handle, i32) {
    let mut graph = ptr::null_mut();
    // SAFETY: a stream of this device; it writes a handle.
    let result = unsafe { (shared.api().capture_end)(stream, &mut graph) };
    (graph, result)
}

fn destroy(shared: &Shared, graph: Handle) {
    if !graph.is_null() {
        // SAFETY: a graph that nobody else has.
        let _ = unsafe { (shared.api().graph_destroy)(graph) };
    }
}

/// Throws away what a stream captured.
pub fn abandon(shared: &Shared, stream: Handle) {
    if let Some(_entered) = shared.enter_to_destroy() {
        destroy(shared, end(shared, stream).0);
    }
}

impl Graph {
    /// What a stream captured, with what it uses.
    pub fn finish(shared: &Arc<Shared>, stream: Handle, batch: Batch) -> Result<Graph> {
        let _entered = match shared.enter() {
            Ok(entered) => entered,
            Err(error) => {
                abandon(shared, stream);
                return Err(error);
            }
        };
        let (captured, result) = end(shared, stream);
        let mut graph = ptr::null_mut();
        let made = shared.check(result, "ending a recording").and_then(|()| {
            // SAFETY: a graph that was captured; it writes a handle.
            let result = unsafe { (shared.api().graph_instantiate)(&mut graph, captured, 0) };
            shared.check(result, "making a recording")
        });
        destroy(shared, captured);
        made.map(|()| Graph { shared: shared.clone(), graph: Mutex::new(graph), batch })
    }

    /// Enqueues it.
    pub fn launch(&self, stream: Handle) -> Result<()> {
        let _entered = self.shared.enter()?;
        let graph = self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a graph and a stream of this device; whoever launches it keeps it until it is done.
        self.shared.check(unsafe { (self.shared.api().graph_launch)(*graph, stream) }, "replaying a recording")
    }

    /// Whether it is of that device.
    pub fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    /// Where its kernels say that data is wrong.
    pub fn faults(&self) -> &[Fault] {
        &self.batch.faults
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Some(_entered) = self.shared.enter_to_destroy() {
            let graph = *self.graph.get_mut().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: launches hold it until they are done, so none is.
            let _ = unsafe { (self.shared.api().graph_exec_destroy)(graph) };
        }
    }
}

/// A recording of a stream.
pub struct CudaRecording(pub Arc<Graph>);

// SAFETY: `as_any` is itself.
unsafe impl Recording for CudaRecording {
    fn as_any(&self) -> &dyn Any {
        self
    }
}
