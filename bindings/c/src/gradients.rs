//! Gradients of chains.

use crate::callback::{Failure, guard_own};
use crate::chain::{adead_chain, adead_value};
use crate::pointers::{Out, array, exclusive, fail, null};
use crate::status::{adead_status, guard};
use adead_c_support::failures;
use adead_core::Result;
use adead_core::pipeline::{Hook, Pipeline, Value};
use std::ffi::c_void;

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
    // SAFETY: the caller vouches for the pointers.
    guard(|| unsafe { record(chain, loss, (values, count), &[], &mut |_, _, gradient| Ok(gradient), gradients) })
}

/// Takes the gradient of a hooked value, and writes to `out` what takes its place; the gradient stands there. `number` says which of the
/// hooked values it is. Operations are recorded with the `chain` that it receives, which it must not destroy. Any status other than
/// `ADEAD_OK` ends the recording, which returns it.
pub type adead_hook = Option<
    unsafe extern "C" fn(
        chain: *mut adead_chain,
        number: usize,
        gradient: adead_value,
        out: *mut adead_value,
        user: *mut c_void,
    ) -> adead_status,
>;

// A hook's pipeline is given to it as a chain.
const _: () = assert!(size_of::<adead_chain>() == size_of::<Pipeline>() && std::mem::offset_of!(adead_chain, 0) == 0);

/// Works like `adead_chain_gradients`, and calls `hook` when the gradient of one of the `hooked` values is recorded. Values on which no
/// gradient depends have no call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_chain_gradients_with(
    chain: *mut adead_chain,
    loss: adead_value,
    values: *const adead_value,
    count: usize,
    hooked: *const adead_value,
    hooked_count: usize,
    hook: adead_hook,
    user: *mut c_void,
    gradients: *mut adead_value,
) -> adead_status {
    guard_own(|| {
        let call = hook.ok_or_else(|| null("hook"))?;
        // SAFETY: the caller vouches for the pointers.
        let hooked = values_of(unsafe { array(hooked, hooked_count, "hooked")? });
        let mut failed = None;
        let mut hook = |pipeline: &mut Pipeline, number: usize, gradient: Value| {
            let (before, mut out) = (failures(), gradient.to_bits());
            let chain: *mut adead_chain = (&raw mut *pipeline).cast();
            // SAFETY: a chain is this pipeline and nothing else, as is checked above. The caller vouches for the callback and its pointer.
            let status = unsafe { call(chain, number, out, &raw mut out, user) };
            if status != 0 {
                failed = Some(Failure::returned(status, &format!("hook {number}"), before));
                fail!(InvalidArgument, "a hook failed");
            }
            Ok(Value::from_bits(out))
        };
        // SAFETY: the caller vouches for the pointers.
        let done = unsafe { record(chain, loss, (values, count), &hooked, &mut hook, gradients) };
        match failed {
            Some(failure) => Err(failure),
            None => Ok(done?),
        }
    })
}

/// Says whether gradients pass through the operations recorded from now on: 1, as in a new chain, or 0. Writes what it was to `before`,
/// unless that is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_chain_set_grad_enabled(
    chain: *mut adead_chain,
    enabled: i32,
    before: *mut i32,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let was = unsafe { exclusive(chain, "chain")? }.0.set_grad_enabled(enabled != 0);
        if !before.is_null() {
            // SAFETY: as above.
            unsafe { before.write(was.into()) };
        }
        Ok(())
    })
}

fn values_of(bits: &[adead_value]) -> Vec<Value> {
    bits.iter().map(|&bits| Value::from_bits(bits)).collect()
}

/// # Safety
/// The pointers are valid, `gradients` for as many values as are given.
unsafe fn record(
    chain: *mut adead_chain,
    loss: adead_value,
    (values, count): (*const adead_value, usize),
    hooked: &[Value],
    hook: &mut Hook<'_>,
    gradients: *mut adead_value,
) -> Result<()> {
    // SAFETY: the caller vouches for the pointers.
    let (chain, values) = unsafe { (exclusive(chain, "chain")?, array(values, count, "values")?) };
    if count > 0 && gradients.is_null() {
        fail!(InvalidArgument, "gradients is NULL");
    }
    let found = chain.0.gradients_with(Value::from_bits(loss), &values_of(values), hooked, hook)?;
    for (i, gradient) in found.into_iter().enumerate() {
        // SAFETY: the caller vouches for room for `count` values, and there are as many gradients.
        unsafe { gradients.add(i).write(gradient.to_bits()) };
    }
    Ok(())
}
