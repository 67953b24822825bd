//! A compiled pipeline whose inputs come from different places.

use adead_core::pipeline::{Compiled, Ids, Pipeline};
use adead_core::{Result, Tensor};

/// What an input of the pipeline receives.
#[derive(Clone, Debug)]
pub(super) enum Slot {
    /// A tensor of the batch.
    Batch(usize),
    Parameter(usize),
    /// A mask that is drawn for each step.
    Dropout {
        number: u32,
        dims: Vec<usize>,
        probability: f32,
    },
    /// The vector of all parameters (number 0), or of a tensor of the optimiser.
    Trained(usize),
    /// A part of the sum of the shards' gradients, the first one with the sum of their losses behind it.
    Sum(usize),
    /// A number that the optimiser computes for each step.
    Number(usize),
    /// The factor of the loss, and 1 divided by it.
    Scale,
    Unscale,
    /// Whether the step is taken in any case.
    Forced,
}

/// A compiled pipeline and what its inputs receive.
pub(super) struct Replay {
    compiled: Compiled,
    ids: Ids,
    slots: Vec<Slot>,
}

impl Replay {
    pub fn new(pipeline: Pipeline, slots: Vec<Slot>) -> Result<Replay> {
        let compiled = pipeline.compile()?;
        Ok(Replay { ids: compiled.ids(), compiled, slots })
    }

    /// Returns its inputs, unless an id among them is wrong.
    pub fn inputs(&self, of: impl FnMut(&Slot) -> Result<Tensor>) -> Result<Vec<Tensor>> {
        let tensors = self.slots.iter().map(of).collect::<Result<Vec<_>>>()?;
        self.ids.check(&tensors.iter().collect::<Vec<_>>())?;
        Ok(tensors)
    }

    /// Runs it, unless an id among the inputs is wrong. On a GPU the results stay there.
    pub fn run(&self, of: impl FnMut(&Slot) -> Result<Tensor>) -> Result<Vec<Tensor>> {
        let inputs = self.inputs(of)?;
        self.compiled.run_staying(&inputs.iter().collect::<Vec<_>>())
    }

    /// Runs it with its inputs, and passes on each result with its number as soon as it is computed or enqueued.
    pub fn run_early(&self, inputs: &[Tensor], each: &mut dyn FnMut(usize, Tensor) -> Result<()>) -> Result<()> {
        self.compiled.run_early(&inputs.iter().collect::<Vec<_>>(), each)
    }

    /// Returns a copy of a state.
    pub fn state(&self, number: usize) -> Result<Tensor> {
        self.compiled.state(number)
    }

    pub fn set_state(&self, number: usize, tensor: &Tensor) -> Result<()> {
        self.compiled.set_state(number, tensor)
    }

    /// Bytes of the values between the inputs and the outputs.
    pub fn memory(&self) -> usize {
        self.compiled.memory()
    }

    /// Where it computes.
    pub fn device(&self) -> &str {
        &self.compiled.device().id
    }
}
