//! Neural network layers and weight files: the functions behind the classes in `nn/index.js`. JavaScript holds the objects that
//! they return and passes them back.

use crate::context::Context;
use crate::run::signal;
use crate::tensor::Value;
use adead::nn::{
    Embedding, Forward, Gelu, LayerNorm, Linear, Module, MultiHeadAttention, Relu, TransformerConfig, TransformerLayer,
    Weights,
};
use adead::{Activation, Attrs, Op, Result, Tensor};
use adead_node_support::args::{Dims, Fields, List, Number, Of, Size, Text};
use adead_node_support::error::{fail, guard, refused};
use adead_node_support::task::{Job, promise_with};
use napi::bindgen_prelude::{AsyncTask, External, FromNapiRef, FromNapiValue};
use napi::{Env, sys};
use napi_derive::napi;
use std::cell::RefCell;

/// A weight file: its path, and its weights until it is closed.
pub struct File {
    path: String,
    weights: RefCell<Option<Weights>>,
}

impl File {
    /// Returns the weights, or `io` once the file is closed. Tensors and layers don't need the file.
    fn weights(&self) -> Result<Weights> {
        match &*self.weights.borrow() {
            Some(weights) => Ok(weights.clone()),
            None => fail!(Io, "{}: the file was closed", self.path),
        }
    }
}

/// Opens a safetensors file.
#[napi(skip_typescript)]
pub fn weights_open(env: Env, path: Text) -> napi::Result<External<File>> {
    guard(env, || {
        let weights = RefCell::new(Some(Weights::open(&*path)?));
        Ok(External::new(File { path: path.into(), weights }))
    })
}

/// Closes the file.
#[napi(skip_typescript)]
pub fn weights_close(file: &External<File>) {
    file.weights.take();
}

/// Returns the name of every tensor.
#[napi(skip_typescript)]
pub fn weights_names(env: Env, file: &External<File>) -> napi::Result<Vec<String>> {
    guard(env, || Ok(file.weights()?.names()))
}

/// Returns whether the file has a tensor of that name.
#[napi(skip_typescript)]
pub fn weights_has(env: Env, file: &External<File>, name: Text) -> napi::Result<bool> {
    guard(env, || Ok(file.weights()?.contains(&name)))
}

/// Returns a tensor's dimensions.
#[napi(skip_typescript)]
pub fn weights_dims(env: Env, file: &External<File>, name: Text) -> napi::Result<Vec<f64>> {
    guard(env, || Ok(file.weights()?.dims(&name)?.iter().map(|&dim| dim as f64).collect()))
}

/// Reads a tensor of the given dimensions.
#[napi(skip_typescript)]
pub fn weights_tensor(env: Env, file: &External<File>, name: Text, dims: Dims) -> napi::Result<Value> {
    guard(env, || Ok(Value(file.weights()?.tensor(&name, &dims)?)))
}

/// Wraps a new layer and reports its weights to V8 as `bytes` bytes.
fn wrap_layer<L: Into<Module>>(
    env: Env,
    bytes: usize,
    layer: impl FnOnce() -> Result<L>,
) -> napi::Result<External<Module>> {
    Ok(External::new_with_size_hint(guard(env, || layer().map(L::into))?, bytes))
}

fn activation(name: &str) -> Result<Activation> {
    let mut attrs = Attrs::default();
    attrs.set(Op::Matmul, "activation", name)?;
    Ok(attrs.activation.unwrap_or_default())
}

/// `new Linear`.
#[napi(skip_typescript)]
pub fn layer_linear(
    env: Env,
    context: Of<Context>,
    weight: Value,
    bias: Option<Value>,
) -> napi::Result<External<Module>> {
    let (weight, bias) = (weight.0, bias.map(|bias| bias.0));
    wrap_layer(env, weight.byte_len(), || Linear::new(&weight, bias.as_ref(), &context.inner))
}

/// `new Embedding`.
#[napi(skip_typescript)]
pub fn layer_embedding(env: Env, context: Of<Context>, table: Value) -> napi::Result<External<Module>> {
    wrap_layer(env, table.0.byte_len(), || Embedding::new(&table.0, &context.inner))
}

/// `new LayerNorm`.
#[napi(skip_typescript)]
pub fn layer_norm(
    env: Env,
    context: Of<Context>,
    weight: Value,
    bias: Value,
    eps: Number,
) -> napi::Result<External<Module>> {
    wrap_layer(env, 0, || LayerNorm::new(&weight.0, &bias.0, eps.0 as f32, &context.inner))
}

/// `new ReLU`.
#[napi(skip_typescript)]
pub fn layer_relu(env: Env, context: Of<Context>) -> napi::Result<External<Module>> {
    wrap_layer(env, 0, || Ok(Relu::new(&context.inner)))
}

/// `new GELU`.
#[napi(skip_typescript)]
pub fn layer_gelu(env: Env, context: Of<Context>, form: Text) -> napi::Result<External<Module>> {
    wrap_layer(env, 0, || {
        let mut attrs = Attrs::default();
        attrs.set(Op::Gelu, "form", &form)?;
        Ok(Gelu::new(attrs.form, &context.inner))
    })
}

/// `new FeedForward`.
#[napi(skip_typescript)]
pub fn layer_feed_forward(
    env: Env,
    inner: &External<Module>,
    outer: &External<Module>,
    activation: Text,
) -> napi::Result<External<Module>> {
    wrap_layer(env, 0, || Module::feed_forward(inner, outer, self::activation(&activation)?))
}

/// `new MultiHeadAttention`.
#[napi(skip_typescript)]
pub fn layer_attention(
    env: Env,
    qkv: &External<Module>,
    output: &External<Module>,
    heads: Size,
) -> napi::Result<External<Module>> {
    wrap_layer(env, 0, || Module::attention(qkv, output, heads.0))
}

/// `MultiHeadAttention.load`.
#[napi(skip_typescript)]
pub fn layer_load_attention(
    env: Env,
    context: Of<Context>,
    file: &External<File>,
    prefixes: List<Text>,
    width: Size,
    heads: Size,
) -> napi::Result<External<Module>> {
    wrap_layer(env, 16 * width.0 * width.0, || {
        let [query, key, value, output] = &prefixes.0[..] else {
            fail!(InvalidArgument, "attention: {} prefixes; expected query, key, value, output", prefixes.0.len())
        };
        let prefixes: [&str; 4] = [query, key, value, output];
        MultiHeadAttention::load(&file.weights()?, prefixes, width.0, heads.0, &context.inner)
    })
}

/// `new TransformerLayer`.
#[napi(skip_typescript)]
pub fn layer_transformer(
    env: Env,
    attention: &External<Module>,
    attention_norm: &External<Module>,
    feed_forward: &External<Module>,
    output_norm: &External<Module>,
) -> napi::Result<External<Module>> {
    wrap_layer(env, 0, || Module::transformer_layer(attention, attention_norm, feed_forward, output_norm))
}

/// `TransformerLayer.load`.
#[napi(skip_typescript)]
pub fn layer_load_transformer(
    env: Env,
    context: Of<Context>,
    file: &External<File>,
    prefix: Text,
    sizes: Dims,
    activation: Text,
    eps: Number,
) -> napi::Result<External<Module>> {
    let &[width, heads, hidden] = &sizes[..] else { return Err(refused(env.raw(), "expected three sizes")) };
    wrap_layer(env, 16 * width * width + 8 * width * hidden, || {
        let activation = self::activation(&activation)?;
        let config = TransformerConfig { width, heads, hidden, activation, eps: eps.0 as f32 };
        TransformerLayer::load(&file.weights()?, &prefix, &config, &context.inner)
    })
}

/// A layer that is an element of an array.
pub struct Part(Module);

impl FromNapiValue for Part {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Part> {
        // SAFETY: the caller's guarantee is passed on.
        unsafe { External::<Module>::from_napi_ref(env, value) }.map(|layer| Part(Module::clone(layer)))
    }
}

/// `new TransformerEncoder`.
#[napi(skip_typescript)]
pub fn layer_encoder(env: Env, layers: List<Part>) -> napi::Result<External<Module>> {
    let layers: Vec<Module> = layers.0.into_iter().map(|Part(layer)| layer).collect();
    wrap_layer(env, 0, || Module::transformer_encoder(&layers))
}

/// The arguments of `forward` besides the tensor.
#[derive(Default)]
struct With {
    residual: Option<Tensor>,
    activation: Option<Text>,
    lengths: Option<Dims>,
}

impl With {
    fn new(options: Option<&Fields>) -> napi::Result<With> {
        let Some(Fields(options)) = options else { return Ok(With::default()) };
        Ok(With {
            residual: options.get::<Option<Value>>("residual")?.flatten().map(|residual| residual.0),
            activation: options.get("activation")?,
            lengths: options.get::<Option<Dims>>("lengths")?.flatten(),
        })
    }

    fn run(&self, layer: &Module, x: &Tensor) -> Result<Tensor> {
        let activation = self.activation.as_deref().map_or(Ok(Activation::None), activation)?;
        let (residual, lengths) = (self.residual.as_ref(), self.lengths.as_deref());
        layer.forward_with(x, Forward { residual, activation, lengths })
    }
}

/// `layer.forward`.
#[napi(skip_typescript)]
pub fn layer_forward(env: Env, layer: &External<Module>, x: Value, options: Option<Fields>) -> napi::Result<Value> {
    let with = With::new(options.as_ref())?;
    guard(env, || Ok(Value(with.run(layer, &x.0)?)))
}

/// `layer.forwardAsync`.
#[napi(skip_typescript)]
pub fn layer_forward_async(
    env: Env,
    layer: &External<Module>,
    x: Value,
    options: Option<Fields>,
) -> napi::Result<AsyncTask<Job>> {
    let with = With::new(options.as_ref())?;
    let signal = options.as_ref().map(|options| signal(env, options)).transpose()?.flatten();
    let layer = Module::clone(layer);
    Ok(promise_with(Ok(move || with.run(&layer, &x.0)), |_, tensor| Ok(Value(tensor)), signal))
}
