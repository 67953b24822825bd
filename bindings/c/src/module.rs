//! Modules: layers of neural networks over tensors.

use crate::context::adead_context;
use crate::elementwise::adead_gelu_form;
use crate::matrix::{activation, adead_activation};
use crate::pointers::{self, Error, Out, array, fail, growing, null, optional_text, reference, report, text};
use crate::safetensors::adead_safetensors;
use crate::status::{adead_status, guard, guard_destroy};
use crate::tensor::adead_tensor;
use adead::nn::{
    Embedding, Forward, Gelu, LayerNorm, Linear, Module, MultiHeadAttention, Relu, TransformerConfig,
    TransformerEncoder, TransformerLayer,
};
use adead_core::Result;
use adead_core::contract::{Activation, GeluForm};
use std::ffi::c_char;

/// A layer: it computes a tensor from a tensor. It keeps its tensors, its modules and its context's devices alive, so the caller
/// may destroy its own handles to them at any time. A module never changes, so threads may share one.
pub struct adead_module(Module);

/// A kind of layer, one of `ADEAD_MODULE_…`.
pub type adead_module_kind = i32;

/// A linear layer.
pub const ADEAD_MODULE_LINEAR: adead_module_kind = 0;
/// A table whose rows are looked up by id.
pub const ADEAD_MODULE_EMBEDDING: adead_module_kind = 1;
/// Layer normalisation.
pub const ADEAD_MODULE_LAYER_NORM: adead_module_kind = 2;
/// max(x, 0).
pub const ADEAD_MODULE_RELU: adead_module_kind = 3;
/// The Gaussian error linear unit.
pub const ADEAD_MODULE_GELU: adead_module_kind = 4;
/// Modules that are applied in order.
pub const ADEAD_MODULE_SEQUENTIAL: adead_module_kind = 5;
/// Two linear layers with an activation between them.
pub const ADEAD_MODULE_FEED_FORWARD: adead_module_kind = 6;
/// Multi-head self-attention.
pub const ADEAD_MODULE_ATTENTION: adead_module_kind = 7;
/// Attention and feed-forward, with normalisation after each.
pub const ADEAD_MODULE_TRANSFORMER_LAYER: adead_module_kind = 8;
/// Transformer layers that are applied in order.
pub const ADEAD_MODULE_TRANSFORMER_ENCODER: adead_module_kind = 9;

/// The names of the kinds, by their numbers.
const KINDS: [&str; 10] = [
    "linear",
    "embedding",
    "layer_norm",
    "relu",
    "gelu",
    "sequential",
    "feed_forward",
    "attention",
    "transformer_layer",
    "transformer_encoder",
];

/// Options of `adead_module_load`. Start from `ADEAD_MODULE_OPTIONS_INIT`, and set `kind` and the fields that name this kind.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_module_options {
    /// `sizeof(adead_module_options)`.
    pub struct_size: usize,
    /// A kind with weights, one of `ADEAD_MODULE_…`.
    pub kind: adead_module_kind,
    /// Transformers: the activation between the two products of the feed-forward part.
    pub activation: adead_activation,
    /// Linear: the number of values of an input row. Embedding: the number of rows of the table.
    pub inputs: usize,
    /// Linear: the number of values of an output row.
    pub outputs: usize,
    /// All kinds but linear: the number of values of a row.
    pub width: usize,
    /// Attention and transformers: the number of heads.
    pub heads: usize,
    /// Transformers: the number of values between the two products of the feed-forward part.
    pub hidden: usize,
    /// Transformer encoder: the number of layers, `PREFIX.0`, `PREFIX.1` and so on.
    pub layers: usize,
    /// Attention: the names of four linear layers: query, key, value, output. The prefix is put before each name.
    pub parts: *const *const c_char,
    /// Layer norm and transformers: the number that is added to a variance.
    pub eps: f32,
    /// Always 0.
    pub reserved: i32,
}

// SAFETY: as `Growing` requires; the caller vouches for the pointers where they are used.
growing!(unsafe adead_module_options, 80);

/// Optional arguments of `adead_module_forward`. Start from `ADEAD_FORWARD_OPTIONS_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_forward_options {
    /// `sizeof(adead_forward_options)`.
    pub struct_size: usize,
    /// Linear, feed-forward, attention: a tensor that is added to the result; linear adds it before its activation. NULL: none.
    pub residual: *const adead_tensor,
    /// Attention and transformers: the number of rows of each sequence. The rows after them are padding: nothing attends to them,
    /// and their results have no meaning. NULL: no padding.
    pub lengths: *const usize,
    /// The number of lengths.
    pub count: usize,
    /// Linear: the activation of the result, one of `ADEAD_ACTIVATION_…`.
    pub activation: adead_activation,
    /// Always 0.
    pub reserved: i32,
}

// SAFETY: as `Growing` requires; the caller vouches for the pointers where they are used.
growing!(unsafe adead_forward_options, 40);

/// A description of a module. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_module_info {
    /// `sizeof(adead_module_info)`.
    pub struct_size: usize,
    /// The kind of layer, one of `ADEAD_MODULE_…`.
    pub kind: adead_module_kind,
    /// Always 0.
    pub reserved: i32,
    /// Linear: the values of an input row. Embedding: the rows of the table. Sequential and encoder: the layers. Else 0.
    pub inputs: usize,
    /// Linear: the values of an output row. Embedding: the values of a row. Else 0.
    pub outputs: usize,
}

// SAFETY: as `Growing` requires.
growing!(unsafe adead_module_info, 32);

/// Writes a handle of the module that `make` returns.
///
/// # Safety
/// `out` is NULL or may be written.
unsafe fn made(out: *mut *mut adead_module, make: impl FnOnce() -> Result<Module>) -> adead_status {
    guard(|| {
        // SAFETY: passed on.
        let out = unsafe { Out::new(out, "out") }?;
        out.give(adead_module(make()?));
        Ok(())
    })
}

/// Returns the modules of an array of handles. `invalid_argument` if one is NULL.
///
/// # Safety
/// `modules` is NULL or points to `count` handles.
unsafe fn all(modules: *const *const adead_module, count: usize) -> Result<Vec<Module>> {
    // SAFETY: passed on.
    let handles = unsafe { array(modules, count, "modules") }?;
    let module = |(i, &handle): (usize, &*const adead_module)| {
        // SAFETY: passed on.
        Ok(unsafe { reference(handle, &format!("module {i}")) }?.0.clone())
    };
    handles.iter().enumerate().map(module).collect()
}

/// Creates a linear layer, which computes `x·W^T + bias` for x `[…, inputs]`. The weight is `[outputs, inputs]`, the bias
/// `[outputs]` or NULL. If the context has no GPU, the weight is packed once. `shape_mismatch` if the two don't fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_module_linear(
    context: *const adead_context,
    weight: *const adead_tensor,
    bias: *const adead_tensor,
    out: *mut *mut adead_module,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        made(out, || {
            let (context, weight) = (reference(context, "context")?, reference(weight, "weight")?);
            Ok(Linear::new(&weight.0, bias.as_ref().map(|bias| &bias.0), &context.0)?.into())
        })
    }
}

/// Creates an embedding layer, which looks up rows of a table `[count, width]` by id. Ids are i32, i64 or u32, of any shape.
/// `shape_mismatch` unless the table is a matrix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_module_embedding(
    context: *const adead_context,
    table: *const adead_tensor,
    out: *mut *mut adead_module,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        made(out, || {
            let context = reference(context, "context")?;
            Ok(Embedding::new(&reference(table, "table")?.0, &context.0)?.into())
        })
    }
}

/// Creates a layer norm, which normalises mean and variance over the last axis, multiplies by a weight and adds a bias, both
/// `[width]`. `eps` is added to the variance; the usual value is 1e-5.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_module_layer_norm(
    context: *const adead_context,
    weight: *const adead_tensor,
    bias: *const adead_tensor,
    eps: f32,
    out: *mut *mut adead_module,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        made(out, || {
            let (weight, bias) = (reference(weight, "weight")?, reference(bias, "bias")?);
            Ok(LayerNorm::new(&weight.0, &bias.0, eps, &reference(context, "context")?.0)?.into())
        })
    }
}

/// Creates a ReLU layer, which computes max(x, 0).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_module_relu(context: *const adead_context, out: *mut *mut adead_module) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { made(out, || Ok(Relu::new(&reference(context, "context")?.0).into())) }
}

/// Creates a GELU layer, the Gaussian error linear unit. `form`, with erf or with tanh, is one of `ADEAD_GELU_…`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_module_gelu(
    context: *const adead_context,
    form: adead_gelu_form,
    out: *mut *mut adead_module,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        made(out, || {
            let context = reference(context, "context")?;
            match [GeluForm::Erf, GeluForm::Tanh].into_iter().find(|&known| known as adead_gelu_form == form) {
                Some(form) => Ok(Gelu::new(form, &context.0).into()),
                None => fail!(InvalidArgument, "form is {form}; it must be one of ADEAD_GELU_…"),
            }
        })
    }
}

/// Creates a module that applies `count` modules in order: each takes the result of the previous one. With none it returns its
/// input.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_module_sequential(
    modules: *const *const adead_module,
    count: usize,
    out: *mut *mut adead_module,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { made(out, || Ok(Module::sequential(&all(modules, count)?))) }
}

/// Creates a feed-forward layer from two linear layers. It computes `activation(x·W1^T + b1)·W2^T + b2`. `shape_mismatch` unless
/// `outer` takes as many values as `inner` returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_module_feed_forward(
    inner: *const adead_module,
    outer: *const adead_module,
    activation: adead_activation,
    out: *mut *mut adead_module,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        made(out, || {
            let (inner, outer) = (reference(inner, "inner")?, reference(outer, "outer")?);
            Module::feed_forward(&inner.0, &outer.0, crate::matrix::activation(activation)?)
        })
    }
}

/// Creates a self-attention layer from two linear layers. `qkv` returns queries, keys and values, concatenated; `output` maps the
/// attended values. The layer takes sequences `[count, length, width]`, or one sequence `[length, width]`. `shape_mismatch` if
/// the two don't fit each other, `invalid_argument` unless `heads` divides the width.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_module_attention(
    qkv: *const adead_module,
    output: *const adead_module,
    heads: usize,
    out: *mut *mut adead_module,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { made(out, || Module::attention(&reference(qkv, "qkv")?.0, &reference(output, "output")?.0, heads)) }
}

/// Creates a transformer layer with normalisation after each part, as in BERT: `h = norm(x + attention(x))`, then
/// `norm(h + feed_forward(h))`. `invalid_argument` if a part is of another kind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_module_transformer_layer(
    attention: *const adead_module,
    attention_norm: *const adead_module,
    feed_forward: *const adead_module,
    output_norm: *const adead_module,
    out: *mut *mut adead_module,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        made(out, || {
            let (attention, norm) = (reference(attention, "attention")?, reference(attention_norm, "attention_norm")?);
            let feed_forward = reference(feed_forward, "feed_forward")?;
            Module::transformer_layer(&attention.0, &norm.0, &feed_forward.0, &reference(output_norm, "output_norm")?.0)
        })
    }
}

/// Creates a transformer encoder, which applies `count` transformer layers in order. A sequence's rows have the same bits alone,
/// among other sequences, and padded.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_module_transformer_encoder(
    layers: *const *const adead_module,
    count: usize,
    out: *mut *mut adead_module,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { made(out, || Module::transformer_encoder(&all(layers, count)?)) }
}

/// Creates a module with weights from a file. Linear and layer norm read `PREFIX.weight` and `PREFIX.bias`, an embedding
/// `PREFIX.weight`. A transformer layer reads BERT's names, `PREFIX.attention.self.query.weight` and so on. The errors are those
/// of `adead_safetensors_tensor` and of the function that creates this kind from tensors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_module_load(
    context: *const adead_context,
    file: *const adead_safetensors,
    prefix: *const c_char,
    options: *const adead_module_options,
    out: *mut *mut adead_module,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        made(out, || {
            let (context, file) = (&reference(context, "context")?.0, &reference(file, "file")?.weights);
            let prefix = text(prefix, "prefix")?;
            let options = reference(options, "options").and_then(|options| pointers::options(options, DEFAULTS))?;
            let adead_module_options { inputs, outputs, width, heads, hidden, layers, eps, .. } = options;
            let config = || {
                let activation = activation(options.activation)?;
                Ok::<_, Error>(TransformerConfig { width, heads, hidden, activation, eps })
            };
            Ok(match options.kind {
                ADEAD_MODULE_LINEAR => Linear::load(file, prefix, inputs, outputs, context)?.into(),
                ADEAD_MODULE_EMBEDDING => Embedding::load(file, prefix, inputs, width, context)?.into(),
                ADEAD_MODULE_LAYER_NORM => LayerNorm::load(file, prefix, width, eps, context)?.into(),
                ADEAD_MODULE_ATTENTION => {
                    if options.parts.is_null() {
                        return Err(null("parts"));
                    }
                    let mut names: [String; 4] = Default::default();
                    for (name, &part) in names.iter_mut().zip(array(options.parts, 4, "parts")?) {
                        let part = optional_text(part, "a name of parts")?;
                        *name = format!("{prefix}{}", part.ok_or_else(|| null("a name of parts"))?);
                    }
                    let names = names.each_ref().map(String::as_str);
                    MultiHeadAttention::load(file, names, width, heads, context)?.into()
                }
                ADEAD_MODULE_TRANSFORMER_LAYER => TransformerLayer::load(file, prefix, &config()?, context)?.into(),
                ADEAD_MODULE_TRANSFORMER_ENCODER => {
                    TransformerEncoder::load(file, prefix, layers, &config()?, context)?.into()
                }
                kind => {
                    fail!(InvalidArgument, "kind is {kind}; it must be one of ADEAD_MODULE_… that has weights")
                }
            })
        })
    }
}

const DEFAULTS: adead_module_options = adead_module_options {
    struct_size: 0,
    kind: ADEAD_MODULE_LINEAR,
    activation: Activation::GeluErf as adead_activation,
    inputs: 0,
    outputs: 0,
    width: 0,
    heads: 0,
    hidden: 0,
    layers: 0,
    parts: std::ptr::null(),
    eps: 1e-12,
    reserved: 0,
};

/// Destroys a module; NULL is allowed. Modules that were made from it stay valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_module_destroy(module: *mut adead_module) {
    guard_destroy(module);
}

/// Describes a module. The caller sets `out->struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_module_describe(
    module: *const adead_module,
    out: *mut adead_module_info,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let module = &reference(module, "module")?.0;
            report(out, "out", |struct_size| {
                let [inputs, outputs] = module.size();
                let kind = KINDS.iter().position(|&kind| kind == module.kind()).map_or(-1, |kind| kind as i32);
                Ok(adead_module_info { struct_size, kind, reserved: 0, inputs, outputs })
            })
        }
    })
}

/// Returns a module's result for x, computed on the devices of its context. `options` may be NULL. The errors are those of its
/// operations, and `invalid_argument` for an option that this kind of module does not take.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_module_forward(
    module: *const adead_module,
    x: *const adead_tensor,
    options: *const adead_forward_options,
    out: *mut *mut adead_tensor,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let (module, x, out) = (reference(module, "module")?, reference(x, "x")?, Out::new(out, "out")?);
            let defaults = adead_forward_options {
                struct_size: 0,
                residual: std::ptr::null(),
                lengths: std::ptr::null(),
                count: 0,
                activation: Activation::None as adead_activation,
                reserved: 0,
            };
            let options = pointers::options(options, defaults)?;
            let given = array(options.lengths, options.count, "lengths")?;
            let with = Forward {
                residual: options.residual.as_ref().map(|residual| &residual.0),
                activation: activation(options.activation)?,
                lengths: (!options.lengths.is_null()).then_some(given),
            };
            out.give(adead_tensor(module.0.forward_with(&x.0, with)?));
            Ok(())
        }
    })
}
