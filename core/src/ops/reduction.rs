//! Reductions along one axis, several axes or all axes.

use super::rules::{Lines, axis_index};
use super::{Attrs, Axis, Metas, Op, Values, rules, scalar};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::operand::{Meta, View};
use crate::shape::{MAX_RANK, Shape};

/// What a reduction computes from a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// A number, even for an empty line.
    Value,
    /// A number that is divided by the line's length.
    Mean,
    /// One of the line's elements, so the line may not be empty.
    Element,
    /// The index of one of the line's elements.
    Index,
}

impl Gives {
    /// Returns the attributes of such a reduction. An index along several axes is not defined, so `Index` has no `axes`.
    pub(super) const fn attrs(self) -> &'static [&'static str] {
        match self {
            Gives::Index => &["axis", "keepdim", "dtype"],
            _ => &["axis", "keepdim", "axes"],
        }
    }
}

/// A reduction's operand as lines.
pub(crate) struct Reduced {
    /// The order to which x's axes must be transposed first, if the reduced axes are not adjacent. Entries from the rank on are
    /// `MAX_RANK`.
    pub order: Option<[u8; MAX_RANK]>,
    pub lines: Lines,
}

impl Reduced {
    /// Divides a shape into the lines that a reduction's attributes ask for. Its shape rule has accepted them.
    pub fn new(shape: &Shape, attrs: &Attrs) -> Reduced {
        let (rank, dims) = (shape.rank(), shape.dims());
        let index = |axis: i32| if axis < 0 { axis + rank as i32 } else { axis } as usize;
        let together = |lines| Reduced { order: None, lines };
        let list = match (attrs.axes.axes(), attrs.axis) {
            (Some(list), _) => list,
            (None, Axis::At(axis)) => return together(Lines::along(shape, index(axis))),
            (None, _) => return together(Lines::flat(shape)),
        };
        let mut reduced = [false; MAX_RANK];
        list.iter().for_each(|&axis| reduced[index(axis.into())] = true);
        // The position of an axis of length 1 does not matter.
        let counts = |axis: &usize| dims[*axis] != 1;
        let n = (0..rank).filter(|&axis| reduced[axis]).map(|axis| dims[axis]).product();
        let mut reduced_axes = (0..rank).filter(counts).filter(|&axis| reduced[axis]);
        let Some(first) = reduced_axes.next() else {
            return together(Lines { outer: shape.elements(), n, inner: 1 });
        };
        let last = reduced_axes.next_back().unwrap_or(first);
        let kept = |from: usize, to: usize| (from..to).filter(|&axis| !reduced[axis]).map(|axis| dims[axis]).product();
        let lines = Lines { outer: kept(0, last), n, inner: kept(last + 1, rank) };
        if (first..last).filter(counts).all(|axis| reduced[axis]) || shape.elements() == 0 {
            return together(lines);
        }
        // Axes after the last reduced one stay in place.
        let mut order = [MAX_RANK as u8; MAX_RANK];
        let before = (0..=last).filter(|&axis| !reduced[axis]);
        let all = before.chain((0..=last).filter(|&axis| reduced[axis])).chain(last + 1..rank);
        order.iter_mut().zip(all).for_each(|(to, axis)| *to = axis as u8);
        Reduced { order: Some(order), lines }
    }
}

/// Sets `to` to `shape` without the reduced axes, or with 1 in their places.
fn set_shape(op: &str, attrs: &Attrs, shape: &Shape, to: &mut Shape) -> Result<()> {
    let mut reduced = [false; MAX_RANK];
    match (attrs.axes.axes(), attrs.axis) {
        (Some(_), Axis::At(_) | Axis::All) => {
            fail!(InvalidArgument, "{op}: axis and axes are both given; pass only one")
        }
        (Some([]), _) => fail!(InvalidArgument, "{op}: axes is empty; omit it to reduce all axes"),
        (Some(list), _) => {
            for &axis in list {
                let index = axis_index(op, axis.into(), shape)?;
                if std::mem::replace(&mut reduced[index], true) {
                    fail!(InvalidArgument, "{op}: axes {list:?} name axis {index} of {shape} twice");
                }
            }
        }
        (None, Axis::At(axis)) => reduced[axis_index(op, axis, shape)?] = true,
        (None, _) => reduced = [true; MAX_RANK],
    }
    let (mut dims, mut kept) = ([1; MAX_RANK], 0);
    for (axis, &n) in shape.dims().iter().enumerate() {
        if !reduced[axis] || attrs.keepdim {
            dims[kept] = if reduced[axis] { 1 } else { n };
            kept += 1;
        }
    }
    to.set(&dims[..kept])
}

/// The shape rule of reductions.
pub(super) fn rule(op: Op, gives: Gives, attrs: &Attrs, inputs: Metas<'_>, output: &mut Meta) -> Result<()> {
    let mut dtype = rules::one_dtype(op, inputs)?;
    let op = op.name();
    if gives == Gives::Index {
        dtype = index_dtype(op, attrs)?;
    }
    let x = &rules::required(inputs, 0).shape;
    output.dtype = dtype;
    set_shape(op, attrs, x, &mut output.shape)?;
    if output.shape.elements() > 0 && x.elements() == 0 && matches!(gives, Gives::Element | Gives::Index) {
        fail!(InvalidArgument, "{op}: {x} has no elements to reduce; {op} needs at least one");
    }
    if gives == Gives::Index {
        check_indices(op, dtype, Reduced::new(x, attrs).lines.n)?;
    }
    Ok(())
}

/// Returns the dtype of indices.
pub(super) fn index_dtype(op: &str, attrs: &Attrs) -> Result<DType> {
    let dtype = attrs.dtype.unwrap_or(DType::I64);
    if !dtype.is_index() {
        fail!(InvalidArgument, "{op}: indices are i64, i32 or u32, not {dtype}");
    }
    Ok(dtype)
}

/// Checks that a dtype holds every index below n.
pub(super) fn check_indices(op: &str, dtype: DType, n: usize) -> Result<()> {
    if dtype != DType::I64 && n > 1 << 31 {
        fail!(InvalidArgument, "{op}: {dtype} can't hold an index below {n}; use i64");
    }
    Ok(())
}

/// Returns an index as bytes of a dtype.
pub(super) fn stored_index(index: usize, dtype: DType) -> Values {
    match dtype {
        DType::I64 => (index as i64).to_ne_bytes().to_vec(),
        _ => (index as i32).to_ne_bytes().to_vec(),
    }
}

/// A value that a function of the contract returns for a line. It is stored as bytes of the result's dtype.
pub(super) trait Given {
    fn stored(self, dtype: DType) -> Values;
}

impl Given for f32 {
    fn stored(self, dtype: DType) -> Values {
        scalar::stored([self], dtype)
    }
}

impl Given for i64 {
    fn stored(self, dtype: DType) -> Values {
        scalar::stored_integers([self], dtype)
    }
}

impl Given for Option<f32> {
    fn stored(self, dtype: DType) -> Values {
        self.map_or_else(Values::new, |value| value.stored(dtype))
    }
}

impl Given for Option<i64> {
    fn stored(self, dtype: DType) -> Values {
        self.map_or_else(Values::new, |value| value.stored(dtype))
    }
}

impl Given for Option<usize> {
    fn stored(self, dtype: DType) -> Values {
        stored_index(self.unwrap_or_default(), dtype)
    }
}

/// Computes the result with a function of the contract, which is called on each line of the operand's elements, x.
pub(super) fn reference<T: Copy, R: Given>(
    attrs: &Attrs,
    inputs: &[Option<View<'_>>],
    output: &Meta,
    x: &[T],
    f: impl Fn(&[T]) -> R,
) -> Result<Values> {
    let shape = rules::required(inputs, 0).shape;
    let (rank, dims) = (shape.rank(), shape.dims());
    let mut along = [false; MAX_RANK];
    match (attrs.axes.axes(), attrs.axis) {
        (Some(list), _) => {
            for &axis in list {
                along[axis_index("axes", axis.into(), &shape)?] = true;
            }
        }
        (None, Axis::At(axis)) => along[axis_index("axis", axis, &shape)?] = true,
        (None, _) => along = [true; MAX_RANK],
    }
    // Each element of x belongs to the result with the same index on the axes that are not reduced.
    let mut lines = vec![Vec::new(); output.shape.elements()];
    for (flat, &value) in x.iter().enumerate() {
        let (mut rest, mut line, mut step) = (flat, 0, 1);
        for axis in (0..rank).rev() {
            if !along[axis] {
                line += rest % dims[axis] * step;
                step *= dims[axis];
            }
            rest /= dims[axis];
        }
        lines[line].push(value);
    }
    Ok(lines.iter().flat_map(|line| f(line).stored(output.dtype)).collect())
}
