//! Fused pipelines: the caller records operations first, then runs them as a whole.

use crate::call::made;
use crate::context::adead_context;
use crate::op::{adead_attrs, adead_op, operation};
use crate::pointers::{Out, array, dimensions, exclusive, fail, fixed, growing, reference, report};
use crate::status::{adead_status, guard, guard_destroy, texts};
use crate::tensor::{adead_dtype, adead_tensor, dtype};
use adead_core::pipeline::{CacheUse, Compiled, Pipeline, Value};
use adead_core::{Attrs, Result, Tensor};
use std::ffi::{CString, c_char};
use std::sync::OnceLock;

/// A pipeline under construction. One thread at a time may use it.
pub struct adead_chain(pub(crate) Pipeline);

/// A chain that was compiled for a device. It can run any number of times. Threads may share one.
pub struct adead_compiled {
    compiled: Compiled,
    text: OnceLock<CString>,
    dot: OnceLock<CString>,
}

/// A value of a chain: an input, a constant, or the result of an operation. Functions refuse another chain's values.
pub type adead_value = u64;

/// Stands for an absent optional operand.
pub const ADEAD_NO_VALUE: adead_value = u64::MAX;

/// The result of compiling a chain. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_compiled_info {
    /// `sizeof(adead_compiled_info)`.
    pub struct_size: usize,
    /// The number of inputs that a run needs.
    pub inputs: usize,
    /// The number of outputs.
    pub outputs: usize,
    /// The number of recorded operations that the outputs depend on.
    pub operations: usize,
    /// The number of steps that these operations became.
    pub steps: usize,
    /// Bytes of the memory that intermediate values share. On a GPU it includes inputs and outputs.
    pub memory: usize,
    /// The device that it runs on: "cpu", "cuda:0".
    pub device: [c_char; 32],
}

// SAFETY: as `Growing` requires.
growing!(unsafe adead_compiled_info, 48 + 32);

/// The use of the cache of executed chains. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_cache_use {
    /// `sizeof(adead_cache_use)`.
    pub struct_size: usize,
    /// The number of chains in the cache.
    pub entries: u64,
    /// The most chains that the cache holds. It evicts the least recently used one.
    pub most: u64,
    /// The number of executions that found their chain in the cache.
    pub hits: u64,
    /// The number of executions that compiled their chain.
    pub misses: u64,
}

// SAFETY: as `Growing` requires.
growing!(unsafe adead_cache_use, 40);

/// Creates an empty chain on a context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_chain_create(context: *const adead_context, out: *mut *mut adead_chain) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { made(context, "context", out, |context| Ok(adead_chain(context.0.pipeline()))) }
}

/// Destroys a chain; NULL is allowed. Chains that were compiled from it stay valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_chain_destroy(chain: *mut adead_chain) {
    guard_destroy(chain);
}

/// Adds an input: a tensor that the caller passes at each run, in the order of these calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_chain_input(
    chain: *mut adead_chain,
    dtype_: adead_dtype,
    dims: *const usize,
    rank: usize,
    out: *mut adead_value,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (chain, dims, out) =
            unsafe { (exclusive(chain, "chain")?, dimensions(dims, rank)?, Out::new(out, "out")?) };
        out.write(chain.0.input(dtype(dtype_)?, dims)?.to_bits());
        Ok(())
    })
}

/// Adds a constant: a tensor that is the same in each run, such as weights. The caller may destroy its handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_chain_constant(
    chain: *mut adead_chain,
    tensor: *const adead_tensor,
    out: *mut adead_value,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (chain, tensor, out) =
            unsafe { (exclusive(chain, "chain")?, reference(tensor, "tensor")?, Out::new(out, "out")?) };
        out.write(chain.0.constant(&tensor.0)?.to_bits());
        Ok(())
    })
}

/// Adds an operation on `count` values, in the order of docs/operations.md. Pass `ADEAD_NO_VALUE` for an absent
/// optional operand; trailing ones may be left out. If `attrs` is NULL, every attribute has its default. The errors are
/// those of the operation; on an error the chain is unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_chain_op(
    chain: *mut adead_chain,
    op: adead_op,
    operands: *const adead_value,
    count: usize,
    attrs: *const adead_attrs,
    out: *mut adead_value,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (chain, operands, attrs, out) = unsafe {
            let attrs = attrs.as_ref().map_or(&Attrs::DEFAULT, |attrs| &attrs.0);
            (exclusive(chain, "chain")?, array(operands, count, "operands")?, attrs, Out::new(out, "out")?)
        };
        let value = |&bits: &adead_value| (bits != ADEAD_NO_VALUE).then(|| Value::from_bits(bits));
        let operands: Vec<Option<Value>> = operands.iter().map(value).collect();
        out.write(chain.0.op(operation(op)?, attrs, &operands)?.to_bits());
        Ok(())
    })
}

/// Reshapes a value without a copy; the new shape must have as many elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_chain_reshape(
    chain: *mut adead_chain,
    value: adead_value,
    dims: *const usize,
    rank: usize,
    out: *mut adead_value,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (chain, dims, out) =
            unsafe { (exclusive(chain, "chain")?, dimensions(dims, rank)?, Out::new(out, "out")?) };
        out.write(chain.0.reshape(Value::from_bits(value), dims)?.to_bits());
        Ok(())
    })
}

/// Makes a value an output, in the order of these calls. Without any call, the last value is the output.
/// `invalid_argument` for an input or a constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_chain_output(chain: *mut adead_chain, value: adead_value) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        unsafe { exclusive(chain, "chain") }?.0.output(Value::from_bits(value))
    })
}

/// Plans a chain for the device with the lowest estimated time. The chain may grow and be compiled again afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_chain_compile(chain: *const adead_chain, out: *mut *mut adead_compiled) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (chain, out) = unsafe { (reference(chain, "chain")?, Out::new(out, "out")?) };
        let compiled = chain.0.clone().compile()?;
        out.give(adead_compiled { compiled, text: OnceLock::new(), dot: OnceLock::new() });
        Ok(())
    })
}

/// Runs a chain without inputs once, and returns its `count` outputs. The compiled form is cached: the next chain with
/// the same operations and shapes reuses it, whatever its constants.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_chain_execute(
    chain: *const adead_chain,
    outputs: *mut *mut adead_tensor,
    count: usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (chain, outputs) = unsafe { (reference(chain, "chain")?, Outputs::new(outputs, count)?) };
        outputs.give(chain.0.outputs(), || chain.0.clone().execute())
    })
}

/// Destroys a compiled chain; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_compiled_destroy(compiled: *mut adead_compiled) {
    guard_destroy(compiled);
}

/// Runs a compiled chain with its `input_count` inputs, and returns its `output_count` outputs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_compiled_run(
    compiled: *const adead_compiled,
    inputs: *const *const adead_tensor,
    input_count: usize,
    outputs: *mut *mut adead_tensor,
    output_count: usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (compiled, inputs, outputs) = unsafe {
            let inputs = array(inputs, input_count, "inputs")?;
            (reference(compiled, "compiled")?, inputs, Outputs::new(outputs, output_count)?)
        };
        let mut tensors = Vec::with_capacity(inputs.len());
        for &input in inputs {
            // SAFETY: the caller vouches for the handles.
            tensors.push(&unsafe { reference(input, "an input") }?.0);
        }
        outputs.give(compiled.compiled.outputs().len(), || compiled.compiled.run(&tensors))
    })
}

/// Describes a compiled chain. The caller sets `out->struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_compiled_describe(
    compiled: *const adead_compiled,
    out: *mut adead_compiled_info,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let compiled = &reference(compiled, "compiled")?.compiled;
            report(out, "out", |struct_size| {
                Ok(adead_compiled_info {
                    struct_size,
                    inputs: compiled.inputs().len(),
                    outputs: compiled.outputs().len(),
                    operations: compiled.operations(),
                    steps: compiled.steps(),
                    memory: compiled.memory(),
                    device: fixed(&compiled.device().id),
                })
            })
        }
    })
}

/// Returns the plan as text, with a line for each step. The text lives as long as `compiled`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_compiled_text(compiled: *const adead_compiled, out: *mut *const c_char) -> adead_status {
    guard(|| {
        texts()?;
        // SAFETY: the caller vouches for the pointers.
        let (compiled, out) = unsafe { (reference(compiled, "compiled")?, Out::new(out, "out")?) };
        let text = || CString::new(compiled.compiled.to_string()).unwrap_or_default();
        out.write(compiled.text.get_or_init(text).as_ptr());
        Ok(())
    })
}

/// Returns the plan as a graph in the DOT language, which Graphviz draws. The text lives as long as `compiled`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_compiled_dot(compiled: *const adead_compiled, out: *mut *const c_char) -> adead_status {
    guard(|| {
        texts()?;
        // SAFETY: the caller vouches for the pointers.
        let (compiled, out) = unsafe { (reference(compiled, "compiled")?, Out::new(out, "out")?) };
        let text = || CString::new(compiled.compiled.to_dot()).unwrap_or_default();
        out.write(compiled.dot.get_or_init(text).as_ptr());
        Ok(())
    })
}

/// Reports the use of the context's cache, which holds the chains that `adead_chain_execute` compiled.
/// `adead_context_trim` empties the cache. The caller sets `out->struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_chain_cache(context: *const adead_context, out: *mut adead_cache_use) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let context = reference(context, "context")?;
            report(out, "out", |struct_size| {
                let CacheUse { entries, most, hits, misses } = context.0.pipeline_cache();
                Ok(adead_cache_use { struct_size, entries: entries as u64, most: most as u64, hits, misses })
            })
        }
    })
}

/// The destinations of several new tensors.
struct Outputs(*mut *mut adead_tensor, usize);

impl Outputs {
    /// # Safety
    /// `pointer` is NULL or `count` pointers may be written there during the call.
    unsafe fn new(pointer: *mut *mut adead_tensor, count: usize) -> Result<Outputs> {
        // SAFETY: this reads only the pointer's address.
        unsafe { array(pointer.cast_const().cast::<usize>(), count, "outputs") }?;
        Ok(Outputs(pointer, count))
    }

    /// Writes handles of the tensors that `make` returns. `invalid_argument` unless the array has exactly `expected`
    /// elements.
    fn give(self, expected: usize, make: impl FnOnce() -> Result<Vec<Tensor>>) -> Result<()> {
        if self.1 != expected {
            fail!(InvalidArgument, "the call has room for {} outputs; the chain has {expected}", self.1);
        }
        for (i, tensor) in make()?.into_iter().enumerate().take(expected) {
            let handle = Box::into_raw(Box::new(adead_tensor(tensor)));
            // SAFETY: the caller of `new` vouched for this many pointers.
            unsafe { self.0.add(i).write(handle) };
        }
        Ok(())
    }
}
