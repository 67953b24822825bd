//! Helpers that the shape rules of several operations share.

use super::{Attrs, Axis, Metas, Op, OpInfo};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::operand::Meta;
use crate::shape::Shape;

/// Returns whether a name ends with a character. `str::ends_with` is a call of memcmp, which tiny operations would feel.
fn ends(name: &str, with: u8) -> bool {
    name.as_bytes().last() == Some(&with)
}

/// Checks that every required operand is present and none is surplus.
#[inline]
pub(super) fn operand_count(info: &OpInfo, inputs: Metas<'_>) -> Result<()> {
    let names = info.operands;
    let repeats = names.last().is_some_and(|name| ends(name, b'*'));
    if inputs.len() > names.len() && !repeats {
        let (count, s) = (names.len(), if names.len() == 1 { "" } else { "s" });
        let names = names.join(", ").replace('?', "");
        fail!(
            InvalidArgument,
            "{}: takes at most {count} operand{s} ({names}); {} were given",
            info.name,
            inputs.len()
        );
    }
    for (i, name) in names.iter().enumerate() {
        if !ends(name, b'?') && inputs.get(i).is_none() {
            fail!(InvalidArgument, "{}: operand {i} ({}) is missing", info.name, name.trim_end_matches('*'));
        }
    }
    if repeats && inputs.iter().any(|operand| operand.is_none()) {
        fail!(InvalidArgument, "{}: an operand is missing", info.name);
    }
    Ok(())
}

/// Returns operand `i`, which [`operand_count`] found present.
#[inline(always)]
pub(super) fn required<'a>(inputs: impl Into<Metas<'a>>, i: usize) -> &'a Meta {
    match inputs.into().get(i) {
        Some(meta) => meta,
        None => unreachable!("a required operand was checked"),
    }
}

/// Returns operand `i`, if it is present.
#[inline(always)]
pub(super) fn optional<'a>(inputs: impl Into<Metas<'a>>, i: usize) -> Option<&'a Meta> {
    inputs.into().get(i)
}

/// Checks that all operands have the same floating-point dtype, and returns it.
#[inline]
pub(super) fn one_float(op: &str, inputs: Metas<'_>) -> Result<DType> {
    let mut found: Option<DType> = None;
    for &Meta { dtype, .. } in inputs.present() {
        if !dtype.computes_as_f32() {
            fail!(DtypeMismatch, "{op}: computes on f32, f16 and bf16, not {dtype}; cast it first");
        }
        match found {
            Some(first) if first != dtype => {
                fail!(DtypeMismatch, "{op}: operands are {first} and {dtype}; cast one of them")
            }
            _ => found = Some(dtype),
        }
    }
    Ok(found.unwrap_or(DType::F32))
}

/// Checks that all operands have the same dtype, on which the operation is defined, and returns it.
#[inline]
pub(super) fn one_dtype(op: Op, inputs: Metas<'_>) -> Result<DType> {
    if required(inputs, 0).dtype.is_float() || !op.takes_integers() {
        return one_float(op.name(), inputs);
    }
    let first = required(inputs, 0);
    for meta in inputs.present() {
        same_dtype(op.name(), first, meta)?;
    }
    Ok(first.dtype)
}

/// The shape rule of an operation of the table's section `unary`.
#[inline]
pub(super) fn unary(op: Op, inputs: Metas<'_>, output: &mut Meta) -> Result<()> {
    one_dtype(op, inputs)?;
    output.assign(required(inputs, 0));
    Ok(())
}

/// The shape rule of `y = f(x)` on floats.
#[inline]
pub(super) fn elementwise(op: &str, inputs: Metas<'_>, output: &mut Meta) -> Result<()> {
    one_float(op, inputs)?;
    output.assign(required(inputs, 0));
    Ok(())
}

/// The shape rule of `y = f(a, b)` with broadcasting.
#[inline]
pub(super) fn broadcasting(op: Op, inputs: Metas<'_>, output: &mut Meta) -> Result<()> {
    let dtype = one_dtype(op, inputs)?;
    let (a, b) = (required(inputs, 0), required(inputs, 1));
    if a == b {
        output.assign(a);
        return Ok(());
    }
    let (a, b) = (&a.shape, &b.shape);
    match a.broadcast(b) {
        Some(shape) => output.assign(&Meta::new(dtype, shape)),
        None => fail!(
            ShapeMismatch,
            "{op}: {a} and {b} don't broadcast: counted from the end, dimensions must be equal or 1"
        ),
    }
    Ok(())
}

/// Checks that two operands have the same dtype.
pub(super) fn same_dtype(op: &str, a: &Meta, b: &Meta) -> Result<()> {
    if a.dtype != b.dtype {
        fail!(DtypeMismatch, "{op}: operands are {} and {}; cast one of them", a.dtype, b.dtype);
    }
    Ok(())
}

/// Sets the output to the shape that several operands broadcast to, and the first operand's dtype.
pub(super) fn broadcast(op: &str, operands: &[&Meta], output: &mut Meta) -> Result<()> {
    output.assign(operands[0]);
    for operand in &operands[1..] {
        let (a, b) = (output.shape, &operand.shape);
        match a.broadcast(b) {
            Some(shape) => output.shape = shape,
            None => fail!(
                ShapeMismatch,
                "{op}: {a} and {b} don't broadcast: counted from the end, dimensions must be equal or 1"
            ),
        }
    }
    Ok(())
}

/// Returns an axis of a shape as an index.
pub(super) fn axis_index(op: &str, axis: i32, shape: &Shape) -> Result<usize> {
    let rank = shape.rank() as i32;
    if axis < -rank || axis >= rank {
        fail!(InvalidArgument, "{op}: axis {axis} is out of range for {shape}, which has {rank} dimensions");
    }
    Ok(if axis < 0 { axis + rank } else { axis } as usize)
}

/// Returns, as an index, the axis of an operation that works along one axis.
pub(super) fn one_axis(op: &str, default: i32, attrs: &Attrs, shape: &Shape) -> Result<usize> {
    if shape.rank() == 0 {
        fail!(ShapeMismatch, "{op}: a scalar has no axis; at least one dimension is needed");
    }
    match attrs.axis {
        Axis::Default => axis_index(op, default, shape),
        Axis::At(axis) => axis_index(op, axis, shape),
        Axis::All => fail!(InvalidArgument, "{op}: works along one axis, not 'all'"),
    }
}

/// A shape seen from an axis: `outer` groups of `n` values that lie `inner` elements apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    pub outer: usize,
    pub n: usize,
    pub inner: usize,
}

impl Lines {
    /// Returns the lines along one axis.
    pub fn along(shape: &Shape, axis: usize) -> Lines {
        let dims = shape.dims();
        Lines { outer: dims[..axis].iter().product(), n: dims[axis], inner: dims[axis + 1..].iter().product() }
    }

    /// Returns all elements as one line.
    pub fn flat(shape: &Shape) -> Lines {
        Lines { outer: 1, n: shape.elements(), inner: 1 }
    }
}

/// Checks that an optional vector, such as a bias, has length `n`.
pub(super) fn vector_of(op: &str, name: &str, vector: Option<&Meta>, n: usize) -> Result<()> {
    match vector {
        Some(meta) if meta.shape.dims() != [n] => {
            fail!(ShapeMismatch, "{op}: {name} is {}; it must be [{n}]", meta.shape)
        }
        _ => Ok(()),
    }
}
