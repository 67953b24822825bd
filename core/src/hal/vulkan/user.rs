//! Users' kernels: a module, its descriptors, its pipeline.

use super::recorder::Recorder;
use super::shared::Shared;
use crate::error::{Result, fail};
use crate::hal::{Kernel, KernelSource, Parameter, Slice};
use std::any::Any;
use std::sync::Arc;

/// A kernel of the user's.
pub struct UserKernel {
    name: String,
    parameters: Vec<Parameter>,
}

/// A checked call.
pub struct Call;

impl UserKernel {
    /// Builds it.
    pub fn new(shared: &Arc<Shared>, _source: &KernelSource<'_>) -> Result<UserKernel> {
        fail!(Unsupported, "{}: no user kernels yet", shared.info.id)
    }

    /// Checks a call.
    pub fn check(&self, _: &Arc<Shared>, _: &[Slice<'_>], _: &[u8], _: [u32; 3]) -> Result<Call> {
        Ok(Call)
    }

    /// Records a checked call.
    pub fn encode(&self, _: &mut Recorder, _: &Call, _: &[u8], _: [u32; 3]) -> Result<()> {
        Ok(())
    }
}

impl Kernel for UserKernel {
    fn name(&self) -> &str {
        &self.name
    }

    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    fn push_bytes(&self) -> usize {
        0
    }

    fn workgroup(&self) -> [u32; 3] {
        [1; 3]
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
