//! Gradients of chains.

use crate::chain::{adead_chain, adead_value};
use crate::pointers::{Out, array, exclusive, fail};
use crate::status::{adead_status, guard};
use adead_core::Result;
use adead_core::pipeline::Value;

/// Returns a value with the same elements. No gradient passes through it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_chain_detach(
    chain: *mut adead_chain,
    value: adead_value,
    out: *mut adead_value,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (chain, out) = unsafe { (exclusive(chain, "chain")?, Out::new(out, "out")?) };
        out.write(chain.0.detach(Value::from_bits(value))?.to_bits());
        Ok(())
    })
}

/// Adds the gradients of a value of one element, such as a loss, with respect to `count` values: inputs, constants or results. Writes them
/// to `gradients`, which has room for `count`. docs/training.md gives the rule of each operation. `invalid_argument` if the loss does not
/// depend on a value through operations that have gradients, `dtype_mismatch` for values that are not floating-point, `unsupported` for an
/// operand without a rule. On an error the chain is unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_chain_gradients(
    chain: *mut adead_chain,
    loss: adead_value,
    values: *const adead_value,
    count: usize,
    gradients: *mut adead_value,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (chain, values) = unsafe { (exclusive(chain, "chain")?, array(values, count, "values")?) };
        if count > 0 && gradients.is_null() {
            fail!(InvalidArgument, "gradients is NULL");
        }
        let by: Vec<Value> = values.iter().map(|&bits| Value::from_bits(bits)).collect();
        let found: Result<Vec<Value>> = chain.0.gradients(Value::from_bits(loss), &by);
        for (i, gradient) in found?.into_iter().enumerate() {
            // SAFETY: the caller vouches for room for `count` values, and there are as many gradients.
            unsafe { gradients.add(i).write(gradient.to_bits()) };
        }
        Ok(())
    })
}
