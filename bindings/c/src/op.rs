//! Operations by number and attributes by text, for tools and languages; and the road that every typed function takes.

use crate::context::adead_context;
use crate::pointers::{Out, array, exclusive, fail, reference, text};
use crate::status::{Names, adead_status, guard, guard_destroy};
use crate::tensor::adead_tensor;
use adead_core::{Attrs, Op, Result, Tensor};
use std::ffi::c_char;

/// An operation, one of `ADEAD_OP_…`.
pub type adead_op = i32;

/// Attributes of an operation, each with its default until it is set. One thread at a time may change one.
pub struct adead_attrs(pub(crate) Attrs);

/// The operation of that number.
pub(crate) fn operation(code: adead_op) -> Result<Op> {
    match u32::try_from(code).ok().and_then(Op::from_code) {
        Some(op) => Ok(op),
        None => fail!(InvalidArgument, "op is {code}; it must be one of ADEAD_OP_…"),
    }
}

/// Executes an operation: what every typed function does.
///
/// # Safety
/// The pointers are NULL or what their types say.
pub(crate) unsafe fn run(
    context: *const adead_context,
    op: Op,
    attrs: &Attrs,
    operands: &[*const adead_tensor],
    out: *mut *mut adead_tensor,
) -> Result<()> {
    // SAFETY: the caller vouches for the pointers.
    let (context, out) = unsafe { (reference(context, "context")?, Out::new(out, "out")?) };
    // SAFETY: a handle is the address of its Tensor, and NULL is None. A required operand that is NULL is named by
    // the operation's own check.
    let operands = unsafe { std::slice::from_raw_parts(operands.as_ptr().cast::<Option<&Tensor>>(), operands.len()) };
    out.give(adead_tensor(context.0.run(op, attrs, operands)?));
    Ok(())
}

/// The same for functions that have nothing to check themselves, so that one guard serves all of them.
///
/// # Safety
/// As [`run`].
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

/// One more than the largest number of an operation. Numbers never change; those below it that no operation has are without a name.
#[unsafe(no_mangle)]
pub extern "C" fn adead_op_count() -> usize {
    Op::NUMBERS
}

/// The name of an operation, such as "matmul"; NULL for a number that is none. Never freed.
#[unsafe(no_mangle)]
pub extern "C" fn adead_op_name(op: adead_op) -> *const c_char {
    static NAMES: Names = Names::new();
    let at = Op::ALL.iter().position(|&known| known as adead_op == op);
    NAMES.get(at, &mut Op::ALL.iter().map(|op| op.name()))
}

/// The operation of that name. `invalid_argument` if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_op_from_name(name: *const c_char, out: *mut adead_op) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (name, out) = unsafe { (text(name, "name")?, Out::new(out, "out")?) };
        out.write(Op::from_name(name)? as adead_op);
        Ok(())
    })
}

/// Executes any operation. `operands` are `count` tensors in the order of docs/operations.md, NULL where an optional one
/// is absent; trailing ones may be left out. `attrs` may be NULL: every attribute has its default.
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

/// New attributes, all with their defaults.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_attrs_create(out: *mut *mut adead_attrs) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        unsafe { Out::new(out, "out") }?.give(adead_attrs(Attrs::default()));
        Ok(())
    })
}

/// Gives attributes up; NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_attrs_destroy(attrs: *mut adead_attrs) {
    guard_destroy(attrs);
}

/// Sets an attribute of `op` from text: integers and flags in decimal ("-1", "1"), floats in decimal or as 0x and the
/// eight digits of their bits, words ("relu", "i32"), "all" for axis, lists with commas ("1,0,2"). docs/operations.md
/// lists them. `invalid_argument` for a name that `op` does not have and for a value that it can't take.
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
