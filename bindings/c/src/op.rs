//! Operations by number and attributes by text, for tools and bindings. Every typed function runs through this module.

use crate::context::adead_context;
use crate::pointers::{Out, array, exclusive, fail, reference, text};
use crate::status::{Names, adead_status, guard, guard_destroy};
use crate::tensor::adead_tensor;
use adead_core::{Attrs, Op, Result, Tensor};
use std::ffi::c_char;

/// An operation, one of `ADEAD_OP_…`.
pub type adead_op = i32;

/// Attributes of an operation; each has its default until it is set. One thread at a time may change them.
pub struct adead_attrs(pub(crate) Attrs);

/// Returns the operation of a number.
pub(crate) fn operation(code: adead_op) -> Result<Op> {
    match u32::try_from(code).ok().and_then(Op::from_code) {
        Some(op) => Ok(op),
        None => fail!(InvalidArgument, "op is {code}; it must be one of ADEAD_OP_…"),
    }
}

/// Executes an operation. Every typed function calls this.
///
/// # Safety
/// The pointers are NULL or valid for their types.
pub(crate) unsafe fn run(
    context: *const adead_context,
    op: Op,
    attrs: &Attrs,
    operands: &[*const adead_tensor],
    out: *mut *mut adead_tensor,
) -> Result<()> {
    // SAFETY: the caller vouches for the pointers.
    let (context, out) = unsafe { (reference(context, "context")?, Out::new(out, "out")?) };
    // SAFETY: a handle is the address of its Tensor, and NULL is None. The operation's own check reports a required
    // operand that is NULL.
    let operands = unsafe { std::slice::from_raw_parts(operands.as_ptr().cast::<Option<&Tensor>>(), operands.len()) };
    out.give(adead_tensor(context.0.run(op, attrs, operands)?));
    Ok(())
}

/// Works like [`run`], for functions without checks of their own, so that they share one guard.
///
/// # Safety
/// As for [`run`].
#[inline(never)]
pub(crate) unsafe fn run_guarded(
    context: *const adead_context,
    op: Op,
    attrs: &Attrs,
    operands: &[*const adead_tensor],
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: passed on.
    guard(|| unsafe { run(context, op, attrs, operands, out) })
}

/// Returns one more than the largest number of an operation. Numbers never change. Smaller numbers without an operation
/// have no name.
#[unsafe(no_mangle)]
pub extern "C" fn adead_op_count() -> usize {
    Op::NUMBERS
}

/// Returns the name of an operation, such as "matmul", or NULL for an unknown number. The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn adead_op_name(op: adead_op) -> *const c_char {
    static NAMES: Names = Names::new();
    let at = Op::ALL.iter().position(|&known| known as adead_op == op);
    NAMES.get(at, &mut Op::ALL.iter().map(|op| op.name()))
}

/// Returns the operation with a name. `invalid_argument` if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_op_from_name(name: *const c_char, out: *mut adead_op) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (name, out) = unsafe { (text(name, "name")?, Out::new(out, "out")?) };
        out.write(Op::from_name(name)? as adead_op);
        Ok(())
    })
}

/// Executes any operation. `operands` are `count` tensors in the order of docs/operations.md, with NULL for an absent
/// optional operand; trailing ones may be left out. If `attrs` is NULL, every attribute has its default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_op_run(
    context: *const adead_context,
    op: adead_op,
    operands: *const *const adead_tensor,
    count: usize,
    attrs: *const adead_attrs,
    out: *mut *mut adead_tensor,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let operands = array(operands, count, "operands")?;
            let attrs = attrs.as_ref().map_or(&Attrs::DEFAULT, |attrs| &attrs.0);
            run(context, operation(op)?, attrs, operands, out)
        }
    })
}

/// Creates attributes, all with their defaults.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_attrs_create(out: *mut *mut adead_attrs) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        unsafe { Out::new(out, "out") }?.give(adead_attrs(Attrs::default()));
        Ok(())
    })
}

/// Destroys attributes; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_attrs_destroy(attrs: *mut adead_attrs) {
    guard_destroy(attrs);
}

/// Sets an attribute of `op` from text. Integers and flags are decimal ("-1", "1"). Floats are decimal, or 0x and the
/// eight digits of their bits. Words are as in "relu" and "i32", "all" stands for every axis, and lists use commas
/// ("1,0,2"). docs/operations.md lists the attributes. `invalid_argument` for a name that `op` does not have and for a
/// value that the attribute can't take.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_attrs_set(
    attrs: *mut adead_attrs,
    op: adead_op,
    name: *const c_char,
    value: *const c_char,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (attrs, name, value) = unsafe { (exclusive(attrs, "attrs")?, text(name, "name")?, text(value, "value")?) };
        let mut changed = attrs.0;
        changed.set(operation(op)?, name, value)?;
        attrs.0 = changed;
        Ok(())
    })
}
