//! Fused pipelines: operations recorded first, then run as a whole.

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

/// Operations under construction. One thread at a time.
pub struct adead_chain(Pipeline);

/// A chain planned for a device, to be run any number of times. Threads may share one.
pub struct adead_compiled {
    compiled: Compiled,
    text: OnceLock<CString>,
    dot: OnceLock<CString>,
}

/// A value of a chain: an input, a constant, or the result of an operation. Another chain's is refused.
pub type adead_value = u64;

/// In place of a value: an optional operand that is left out.
pub const ADEAD_NO_VALUE: adead_value = u64::MAX;

/// What a chain was compiled to. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_compiled_info {
    /// `sizeof(adead_compiled_info)`.
    pub struct_size: usize,
    /// Inputs that it is given.
    pub inputs: usize,
    /// Outputs that it gives.
    pub outputs: usize,
    /// Operations that were recorded and are needed.
    pub operations: usize,
    /// Steps that they became.
    pub steps: usize,
    /// Bytes of the memory that intermediate values share; on a GPU inputs and outputs too.
    pub memory: usize,
    /// The device that it runs on: "cpu", "cuda:0".
    pub device: [c_char; 32],
}

// SAFETY: as asked.
growing!(unsafe adead_compiled_info, 48 + 32);

/// How the cache of executed chains was used. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_cache_use {
    /// `sizeof(adead_cache_use)`.
    pub struct_size: usize,
    /// Chains in it.
    pub entries: u64,
    /// Chains that it holds at most; the one that was not used for longest goes first.
    pub most: u64,
    /// Executions that found theirs.
    pub hits: u64,
    /// Executions that compiled theirs.
    pub misses: u64,
}

// SAFETY: as asked.
growing!(unsafe adead_cache_use, 40);

/// An empty chain on a context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_chain_create(context: *const adead_context, out: *mut *mut adead_chain) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { made(context, "context", out, |context| Ok(adead_chain(context.0.pipeline()))) }
}

/// Gives a chain up; NULL is fine. What was compiled of it stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_chain_destroy(chain: *mut adead_chain) {
    guard_destroy(chain);
}

/// A tensor that is given each time it runs, in the order of these calls.
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

/// A tensor that is the same each time, such as weights. It may be given up.
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

/// An operation on `count` values in the order of docs/operations.md, `ADEAD_NO_VALUE` where an optional one is absent;
/// trailing ones may be left out. `attrs` may be NULL: every attribute has its default. The errors are the operation's own;
/// then nothing is recorded.
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

/// A value's elements in another shape of as many, without a copy.
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

/// Says that a value comes out: in the order of these calls. Without any, the last value does. `invalid_argument` for an input
/// or a constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_chain_output(chain: *mut adead_chain, value: adead_value) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        unsafe { exclusive(chain, "chain") }?.0.output(Value::from_bits(value))
    })
}

/// Plans a chain for the device that takes least. It may go on being built, and be compiled again.
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

/// Runs a chain without inputs once: its `count` outputs. What it was compiled to serves the next one with the same operations
/// and shapes, whatever its constants.
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

/// Gives up what a chain was compiled to; NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_compiled_destroy(compiled: *mut adead_compiled) {
    guard_destroy(compiled);
}

/// Runs it with its `input_count` inputs: its `output_count` outputs.
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

/// What it is. The caller sets `out->struct_size`.
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

/// The plan as a text, a line for each step. It belongs to `compiled` and goes with it.
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

/// The plan as a graph in the DOT language, which Graphviz draws. It belongs to `compiled` and goes with it.
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

/// How the context's cache of what `adead_chain_execute` compiled was used; `adead_context_trim` empties it. The caller sets
/// `out->struct_size`.
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

/// Where several new tensors go.
struct Outputs(*mut *mut adead_tensor, usize);

impl Outputs {
    /// # Safety
    /// `pointer` is NULL or `count` pointers may be written there during the call.
    unsafe fn new(pointer: *mut *mut adead_tensor, count: usize) -> Result<Outputs> {
        // SAFETY: only its address is looked at.
        unsafe { array(pointer.cast_const().cast::<usize>(), count, "outputs") }?;
        Ok(Outputs(pointer, count))
    }

    /// Hands out what `make` makes, if there is room for as many.
    fn give(self, expected: usize, make: impl FnOnce() -> Result<Vec<Tensor>>) -> Result<()> {
        if self.1 != expected {
            fail!(InvalidArgument, "there is room for {} outputs and the chain has {expected}", self.1);
        }
        for (i, tensor) in make()?.into_iter().enumerate().take(expected) {
            let handle = Box::into_raw(Box::new(adead_tensor(tensor)));
            // SAFETY: there are as many places, which the maker vouched for.
            unsafe { self.0.add(i).write(handle) };
        }
        Ok(())
    }
}
