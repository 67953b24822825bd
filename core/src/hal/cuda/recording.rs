//! Recordings: the work that a stream captured, as a graph that is launched as a whole.

use super::api::Handle;
use super::batch::{Batch, Fault};
use super::shared::Shared;
use crate::error::Result;
use crate::hal::Recording;
use std::any::Any;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

/// A graph, and what its work uses.
pub struct Graph {
    shared: Arc<Shared>,
    /// One thread at a time may use a graph.
    graph: Mutex<Handle>,
    batch: Batch,
}

// SAFETY: the handle is behind a lock, and the batch is only held.
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Sync for Graph {}

/// Starts to capture the work that a stream gets.
pub fn begin(shared: &Shared, stream: Handle) -> Result<()> {
    /// Relaxed: this thread and others may allocate memory meanwhile.
    const RELAXED: i32 = 2;
    let _entered = shared.enter()?;
    // SAFETY: a stream of this device that is not capturing.
    shared.check(unsafe { (shared.api().capture_begin)(stream, RELAXED) }, "beginning a recording")
}

/// Ends the capture and returns its graph, for the caller to destroy; null if it failed.
fn end(shared: &Shared, stream: Handle) -> (Handle, i32) {
    let mut graph = ptr::null_mut();
    // SAFETY: a stream of this device, and the call writes one handle.
    let result = unsafe { (shared.api().capture_end)(stream, &mut graph) };
    (graph, result)
}

fn destroy(shared: &Shared, graph: Handle) {
    if !graph.is_null() {
        // SAFETY: nothing else has the graph.
        let _ = unsafe { (shared.api().graph_destroy)(graph) };
    }
}

/// Ends the capture and destroys its graph.
pub fn abandon(shared: &Shared, stream: Handle) {
    if let Some(_entered) = shared.enter_to_destroy() {
        destroy(shared, end(shared, stream).0);
    }
}

impl Graph {
    /// Makes a recording from the captured work and what it uses.
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
            // SAFETY: a captured graph, and the call writes one handle.
            let result = unsafe { (shared.api().graph_instantiate)(&mut graph, captured, 0) };
            shared.check(result, "making a recording")
        });
        destroy(shared, captured);
        made.map(|()| Graph { shared: shared.clone(), graph: Mutex::new(graph), batch })
    }

    /// Enqueues the graph on a stream.
    pub fn launch(&self, stream: Handle) -> Result<()> {
        let _entered = self.shared.enter()?;
        let graph = self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the graph and the stream are of this device. The stream keeps the graph until its work is done.
        self.shared.check(unsafe { (self.shared.api().graph_launch)(*graph, stream) }, "replaying a recording")
    }

    /// Returns whether it belongs to this opening of a device.
    pub fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    /// Returns the words that its kernels write if they find invalid data.
    pub fn faults(&self) -> &[Fault] {
        &self.batch.faults
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Some(_entered) = self.shared.enter_to_destroy() {
            let graph = *self.graph.get_mut().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: streams hold the graph until its launches are done, so none is in flight.
            let _ = unsafe { (self.shared.api().graph_exec_destroy)(graph) };
        }
    }
}

/// A recording of a stream.
pub struct CudaRecording(pub Arc<Graph>);

// SAFETY: `as_any` returns `self`.
unsafe impl Recording for CudaRecording {
    fn as_any(&self) -> &dyn Any {
        self
    }
}
