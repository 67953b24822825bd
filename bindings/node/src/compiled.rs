//! Compiled pipelines.

use crate::hardware::DeviceInfo;
use crate::pipeline::dims;
use crate::run::optional_signal;
use crate::tensor::{Value, make, tensor_of};
use adead::{Meta, Result, Tensor, pipeline};
use adead_node_support::args::each;
use adead_node_support::error::guard;
use adead_node_support::task::{Job, promise_with};
use napi::bindgen_prelude::{AsyncTask, FromNapiValue, ObjectFinalize, ToNapiValue, Unknown};
use napi::{Env, sys};
use napi_derive::napi;
use std::sync::Arc;

/// The dtype and dimensions of a tensor.
#[napi(object)]
pub struct TensorType {
    /// The dtype of the elements.
    #[napi(ts_type = "DType")]
    pub dtype: String,
    /// The dimensions.
    pub dims: Vec<f64>,
}

impl From<&Meta> for TensorType {
    fn from(meta: &Meta) -> TensorType {
        TensorType { dtype: meta.dtype.name().into(), dims: dims(meta) }
    }
}

/// A compiled pipeline, to be run any number of times.
#[napi(custom_finalize)]
pub struct Compiled {
    inner: Arc<pipeline::Compiled>,
}

impl Compiled {
    /// Wraps a compiled pipeline and reports its memory to V8.
    pub fn new(env: Env, compiled: pipeline::Compiled) -> napi::Result<Compiled> {
        env.adjust_external_memory(compiled.memory() as i64)?;
        Ok(Compiled { inner: Arc::new(compiled) })
    }
}

impl ObjectFinalize for Compiled {
    fn finalize(self, env: Env) -> napi::Result<()> {
        env.adjust_external_memory(-(self.inner.memory() as i64)).map(|_| ())
    }
}

/// The inputs of a run: one tensor, or an array of tensors.
pub struct Inputs(Vec<Tensor>);

impl FromNapiValue for Inputs {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Inputs> {
        if let Some(tensor) = tensor_of(env, value) {
            return Ok(Inputs(vec![tensor]));
        }
        let mut tensors = Vec::new();
        each(env, value, |element| {
            // SAFETY: a value of this environment.
            tensors.push(unsafe { Value::from_napi_value(env, element) }?.0);
            Ok(())
        })?;
        Ok(Inputs(tensors))
    }
}

/// The outputs of a run: one tensor, or an array of tensors.
pub struct Outputs(pub Vec<Tensor>);

impl ToNapiValue for Outputs {
    unsafe fn to_napi_value(env: sys::napi_env, Outputs(mut tensors): Outputs) -> napi::Result<sys::napi_value> {
        if tensors.len() == 1 {
            return make(env, tensors.remove(0));
        }
        let tensors = tensors.into_iter().map(Value).collect();
        // SAFETY: the environment of this call.
        unsafe { Vec::<Value>::to_napi_value(env, tensors) }
    }
}

fn run(compiled: &pipeline::Compiled, inputs: Option<Inputs>) -> Result<Vec<Tensor>> {
    let inputs = inputs.map_or(Vec::new(), |inputs| inputs.0);
    compiled.run(&inputs.iter().collect::<Vec<_>>())
}

#[napi]
impl Compiled {
    /// The types of this method and the next are in `tensor.d.ts`.
    #[napi(skip_typescript)]
    pub fn run(&self, env: Env, inputs: Option<Inputs>) -> napi::Result<Outputs> {
        guard(env, || run(&self.inner, inputs)).map(Outputs)
    }

    #[napi(skip_typescript)]
    pub fn run_async(
        &self,
        env: Env,
        inputs: Option<Inputs>,
        options: Option<Unknown<'_>>,
    ) -> napi::Result<AsyncTask<Job>> {
        let (signal, compiled) = (optional_signal(env, options.as_ref())?, self.inner.clone());
        Ok(promise_with(Ok(move || run(&compiled, inputs)), |_, tensors| Ok(Outputs(tensors)), signal))
    }

    /// The device that the pipeline runs on.
    #[napi(getter)]
    pub fn device(&self) -> DeviceInfo {
        self.inner.device().into()
    }

    /// The dtype and dimensions that each input must have, in order.
    #[napi(getter)]
    pub fn inputs(&self) -> Vec<TensorType> {
        self.inner.inputs().iter().map(TensorType::from).collect()
    }

    /// The dtype and dimensions of each output, in order.
    #[napi(getter)]
    pub fn outputs(&self) -> Vec<TensorType> {
        self.inner.outputs().iter().map(TensorType::from).collect()
    }

    /// The number of steps. A step is one kernel if its operation needs only one.
    #[napi(getter)]
    pub fn steps(&self) -> f64 {
        self.inner.steps() as f64
    }

    /// The number of recorded operations that an output needs.
    #[napi(getter)]
    pub fn operations(&self) -> f64 {
        self.inner.operations() as f64
    }

    /// The bytes that intermediate values share. On a GPU, inputs and outputs are included.
    #[napi(getter)]
    pub fn memory(&self) -> f64 {
        self.inner.memory() as f64
    }

    /// Returns the plan as a graph in Graphviz's DOT language.
    #[napi]
    pub fn to_dot(&self, env: Env) -> napi::Result<String> {
        guard(env, || Ok(self.inner.to_dot()))
    }

    /// Returns the plan as text, one line per step.
    #[napi(js_name = "toString")]
    pub fn text(&self, env: Env) -> napi::Result<String> {
        guard(env, || Ok(self.inner.to_string()))
    }
}
