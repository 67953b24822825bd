//! Layers of neural networks and files of their weights, for the classes of `adead.nn`.

use crate::context::PyContext;
use crate::errors::{Result, detached, fail, interruptible};
use crate::sharing::lent;
use crate::tensor::PyTensor;
use adead::nn::{
    Embedding, Forward, Gelu, LayerNorm, Linear, Module, MultiHeadAttention, Relu, TransformerConfig, TransformerLayer,
    Weights,
};
use adead::{Activation, GeluForm};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ffi::OsString;
use std::path::PathBuf;

/// An open safetensors file. Opening reads only the header; a tensor is read when it is requested.
///
/// ``IoError`` if the file can't be read, ``InvalidArgumentError`` if it is not a safetensors file.
#[pyclass(frozen, module = "adead.nn", name = "Weights")]
pub struct PyWeights(Weights);

#[pymethods]
impl PyWeights {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> Result<PyWeights> {
        Ok(PyWeights(detached(py, || Weights::open(path))?))
    }

    /// The file's path.
    #[getter]
    fn path(&self) -> OsString {
        self.0.path().into()
    }

    /// Every tensor's name, sorted.
    fn names(&self) -> Vec<String> {
        self.0.names()
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> bool {
        name.extract::<String>().is_ok_and(|name| self.0.contains(&name))
    }

    /// Returns a tensor's dimensions. ``InvalidArgumentError`` if there is no tensor of that name.
    fn shape<'py>(&self, py: Python<'py>, name: &str) -> Result<Bound<'py, PyTuple>> {
        Ok(PyTuple::new(py, self.0.dims(name)?)?)
    }

    /// Reads a tensor as f32; f16 and bf16 are widened, f64 is rounded.
    ///
    /// ``InvalidArgumentError`` if there is no tensor of that name, ``ShapeMismatchError`` if its dimensions differ,
    /// ``DtypeMismatchError`` for other elements, ``IoError`` if it can't be read.
    fn tensor(&self, py: Python<'_>, name: &str, shape: Vec<usize>) -> Result<PyTensor> {
        Ok(PyTensor(detached(py, || self.0.tensor(name, &shape))?))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// A layer of the runtime.
#[pyclass(frozen, module = "adead.nn", name = "_Module")]
pub struct PyLayer(Module);

type Given<'a, 'py> = &'a Bound<'py, PyLayer>;

fn activation(name: &str) -> Result<Activation> {
    match Activation::ALL.into_iter().find(|known| known.name() == name) {
        Some(activation) => Ok(activation),
        None => {
            let known = Activation::ALL.map(Activation::name).join(", ");
            fail!(InvalidArgument, "activation is '{name}'; it must be one of {known}")
        }
    }
}

fn form(name: &str) -> Result<GeluForm> {
    match name {
        "erf" => Ok(GeluForm::Erf),
        "tanh" => Ok(GeluForm::Tanh),
        _ => fail!(InvalidArgument, "form is '{name}'; it must be erf or tanh"),
    }
}

#[pymethods]
impl PyLayer {
    #[staticmethod]
    fn linear(
        py: Python<'_>,
        context: &Bound<'_, PyContext>,
        weight: &Bound<'_, PyTensor>,
        bias: Option<&Bound<'_, PyTensor>>,
    ) -> Result<PyLayer> {
        let (context, weight, bias) = (&context.get().inner, &weight.get().0, bias.map(|bias| &bias.get().0));
        Ok(PyLayer(detached(py, || Linear::new(weight, bias, context))?.into()))
    }

    #[staticmethod]
    fn embedding(context: &Bound<'_, PyContext>, table: &Bound<'_, PyTensor>) -> Result<PyLayer> {
        Ok(PyLayer(Embedding::new(&table.get().0, &context.get().inner)?.into()))
    }

    #[staticmethod]
    fn layer_norm(
        context: &Bound<'_, PyContext>,
        weight: &Bound<'_, PyTensor>,
        bias: &Bound<'_, PyTensor>,
        eps: f32,
    ) -> Result<PyLayer> {
        Ok(PyLayer(LayerNorm::new(&weight.get().0, &bias.get().0, eps, &context.get().inner)?.into()))
    }

    #[staticmethod]
    fn relu(context: &Bound<'_, PyContext>) -> PyLayer {
        PyLayer(Relu::new(&context.get().inner).into())
    }

    #[staticmethod]
    fn gelu(context: &Bound<'_, PyContext>, form: &str) -> Result<PyLayer> {
        Ok(PyLayer(Gelu::new(self::form(form)?, &context.get().inner).into()))
    }

    #[staticmethod]
    fn feed_forward(inner: Given<'_, '_>, outer: Given<'_, '_>, activation: &str) -> Result<PyLayer> {
        Ok(PyLayer(Module::feed_forward(&inner.get().0, &outer.get().0, self::activation(activation)?)?))
    }

    #[staticmethod]
    fn attention(qkv: Given<'_, '_>, output: Given<'_, '_>, heads: usize) -> Result<PyLayer> {
        Ok(PyLayer(Module::attention(&qkv.get().0, &output.get().0, heads)?))
    }

    #[staticmethod]
    fn transformer_layer(
        attention: Given<'_, '_>,
        attention_norm: Given<'_, '_>,
        feed_forward: Given<'_, '_>,
        output_norm: Given<'_, '_>,
    ) -> Result<PyLayer> {
        let [attention, norm, feed_forward, output_norm] =
            [attention, attention_norm, feed_forward, output_norm].map(|layer| &layer.get().0);
        Ok(PyLayer(Module::transformer_layer(attention, norm, feed_forward, output_norm)?))
    }

    #[staticmethod]
    fn transformer_encoder(layers: Vec<Bound<'_, PyLayer>>) -> Result<PyLayer> {
        let layers: Vec<Module> = layers.iter().map(|layer| layer.get().0.clone()).collect();
        Ok(PyLayer(Module::transformer_encoder(&layers)?))
    }

    #[staticmethod]
    fn load_attention(
        py: Python<'_>,
        context: &Bound<'_, PyContext>,
        weights: &Bound<'_, PyWeights>,
        prefixes: [String; 4],
        width: usize,
        heads: usize,
    ) -> Result<PyLayer> {
        let (context, weights, prefixes) =
            (&context.get().inner, &weights.get().0, prefixes.each_ref().map(String::as_str));
        Ok(PyLayer(detached(py, || MultiHeadAttention::load(weights, prefixes, width, heads, context))?.into()))
    }

    #[staticmethod]
    fn load_transformer_layer(
        py: Python<'_>,
        context: &Bound<'_, PyContext>,
        weights: &Bound<'_, PyWeights>,
        prefix: &str,
        config: (usize, usize, usize, String, f32),
    ) -> Result<PyLayer> {
        let (width, heads, hidden, activation, eps) = config;
        let config = TransformerConfig { width, heads, hidden, activation: self::activation(&activation)?, eps };
        let (context, weights) = (&context.get().inner, &weights.get().0);
        Ok(PyLayer(detached(py, || TransformerLayer::load(weights, prefix, &config, context))?.into()))
    }

    #[pyo3(signature = (x, residual=None, activation="none", lengths=None))]
    fn forward(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        residual: Option<&Bound<'_, PyAny>>,
        activation: &str,
        lengths: Option<Vec<usize>>,
    ) -> Result<PyTensor> {
        let (x, residual) = (lent(x)?, residual.map(lent).transpose()?);
        let (activation, lengths) = (self::activation(activation)?, lengths.as_deref());
        let with = Forward { residual: residual.as_ref(), activation, lengths };
        Ok(PyTensor(interruptible(py, || self.0.forward_with(&x, with))?))
    }
}
