//! Operations that can be computed in parts, and the sections of their operands that a part takes.
//!
//! A part is a range of rows of the result. The result's first axes, as many as possible, are flattened into one axis of rows.
//! Rows are computed independently, so parts have the bits of the whole wherever it is cut. An operand is cut with the result or
//! shared by all parts. A part is a command of its own, and the operation's shape rule checks it.

use super::{
    Attrs, Axis, LAYERNORM_RESIDUAL, MatmulPlan, MetaList, Metas, Op, OpKind, Permutation, RMSNORM_RESIDUAL,
    concat_axis, cumsum_axis, rules, softmax_axis, topk_axis, transpose_axes,
};
use crate::error::{Result, fail};
use crate::operand::{Inputs, Meta, Place, View, ViewMut};
use crate::shape::{MAX_RANK, Shape};
use smallvec::SmallVec;
use std::ptr::NonNull;

/// Maps an operand's axes to the result's. All but the operand's last `own` axes map to the result's axes directly before axis
/// `end`.
#[derive(Clone, Copy)]
struct Axes {
    own: usize,
    end: usize,
}

impl Axes {
    /// No axis maps to the result's: a vector of weights, a table.
    const NONE: Axes = Axes { own: MAX_RANK, end: 0 };

    /// Returns how many of the operand's axes map to the result's first `axes` axes.
    fn among(self, axes: usize, shape: &Shape) -> usize {
        (axes.min(self.end) + shape.rank().saturating_sub(self.own)).saturating_sub(self.end)
    }

    /// Returns the operand's dimension that maps to an axis of the result, or 1 if there is none.
    fn at(self, axis: usize, shape: &Shape) -> usize {
        if axis < self.end && self.among(axis + 1, shape) > self.among(axis, shape) {
            shape.dims()[self.among(axis, shape)]
        } else {
            1
        }
    }
}

/// Returns how many of the result's first axes may be cut, and how the operands' axes map to them. Operands after the fifth are
/// like the fifth. Axes in the attributes are changed to count from the end. `None` if the operation has no parts.
fn axes(op: Op, attrs: &mut Attrs, inputs: Metas<'_>, output: &Shape) -> Option<(usize, [Axes; 5])> {
    let rank = output.rank();
    let rank_of = |i| rules::required(inputs, i).shape.rank();
    let mut operands = [Axes { own: 0, end: rank }; 5];
    let from_end = |axis: usize, rank: usize| Axis::At(axis as i32 - rank as i32);
    let axes = match op {
        Op::Softmax => {
            let axis = softmax_axis(attrs, output).ok()?;
            attrs.axis = from_end(axis, rank);
            axis
        }
        Op::Cumsum => {
            let axis = cumsum_axis(attrs, output).ok()?;
            attrs.axis = from_end(axis, rank);
            axis
        }
        Op::Topk | Op::Argtopk => {
            let axis = topk_axis(attrs, output).ok()?;
            attrs.axis = from_end(axis, rank);
            operands[0] = Axes { own: rank - axis, end: axis };
            axis
        }
        Op::Concat => {
            let axis = concat_axis(attrs, output).ok()?;
            attrs.axis = from_end(axis, rank);
            axis
        }
        _ if op.kind() == OpKind::Reduction => {
            let of = rank_of(0);
            let index = |axis: i32| if axis < 0 { axis + of as i32 } else { axis } as usize;
            let axis = match (attrs.axes.axes(), attrs.axis) {
                (None, Axis::At(axis)) => {
                    attrs.axis = from_end(index(axis), of);
                    index(axis)
                }
                (Some(list), _) => {
                    let list: SmallVec<[i32; MAX_RANK]> = list.iter().map(|&axis| index(axis.into()) as i32).collect();
                    let from_end: SmallVec<[i32; MAX_RANK]> = list.iter().map(|axis| axis - of as i32).collect();
                    attrs.axes = Permutation::new(&from_end).ok()?;
                    list.iter().min().map_or(0, |&axis| axis as usize)
                }
                _ => return None,
            };
            operands[0] = Axes { own: of - axis, end: axis };
            axis
        }
        Op::Layernorm | Op::Rmsnorm | Op::Ffn => {
            let whole = operands[0];
            operands[1..].fill(Axes::NONE);
            match op {
                Op::Layernorm => operands[LAYERNORM_RESIDUAL] = whole,
                Op::Rmsnorm => operands[RMSNORM_RESIDUAL] = whole,
                _ => {}
            }
            rank - 1
        }
        // The last axis of cos and sin is not as long as the result's, so it does not map to it.
        Op::Rope => {
            operands[1..].fill(Axes { own: 1, end: rank - 1 });
            rank - 1
        }
        Op::Embedding => {
            operands[0] = Axes::NONE;
            operands[1].end = rank_of(1);
            rank_of(1)
        }
        Op::QuantizedMatmul => {
            operands[1] = Axes::NONE;
            rank - 1
        }
        Op::Dequantize => {
            // A row's bytes are not as many as its elements.
            operands[0] = Axes { own: 1, end: rank - 1 };
            rank - 1
        }
        Op::Matmul => {
            let batch = MatmulPlan::new(attrs, inputs).ok()?.batch_rank();
            // If A is stored transposed, its rows are not contiguous.
            let rows = usize::from(rank_of(0) > 1 && !attrs.trans_a);
            operands[0] = Axes { own: 2 - rows, end: batch + rows };
            operands[1] = Axes { own: 2, end: batch };
            operands[3] = Axes::NONE;
            batch + rows
        }
        Op::Attention => {
            operands = [Axes { own: 2, end: rank - 2 }; 5];
            (operands[0], operands[3]) = (Axes { own: 1, end: rank - 1 }, Axes { own: 1, end: rank - 1 });
            // The keys that the causal mask hides depend on the query's index.
            if attrs.causal { rank - 2 } else { rank - 1 }
        }
        Op::Transpose => {
            // If the first axis stays the first, each of its parts is permuted on its own.
            if rank < 3 || transpose_axes(attrs, &rules::required(inputs, 0).shape).ok()?[0] != 0 {
                return None;
            }
            operands[0] = Axes { own: rank - 1, end: 1 };
            1
        }
        Op::Dot | Op::Slice | Op::Pad | Op::Gather => return None,
        // Element by element.
        _ => rank,
    };
    Some((axes, operands))
}

/// An operation on operands in host memory or tensors on devices, or on descriptions alone, that can be computed in parts.
pub(crate) struct Cut<'a> {
    op: Op,
    /// The whole's attributes, with axes counted from the end, so that they fit the parts too.
    attrs: Attrs,
    inputs: Metas<'a>,
    output: &'a Meta,
    /// The number of the result's first axes that are flattened into rows.
    axes: usize,
    operands: [Axes; 5],
    /// The number of rows to divide.
    pub rows: usize,
    stays: bool,
}

impl<'a> Cut<'a> {
    /// Returns the operation.
    pub fn op(&self) -> Op {
        self.op
    }

    /// Returns whether devices take operands from one another, and keep their rows of the result. Only CUDA's do.
    pub fn stays(&self) -> bool {
        cfg!(feature = "cuda") && self.stays
    }

    /// Returns the parts' attributes.
    pub fn attrs(&self) -> &Attrs {
        &self.attrs
    }

    /// Returns operands whose ids must be checked against the table before the operation is cut. A part would report a wrong id's
    /// position in the part.
    pub fn unchecked(&self) -> Option<&'a [Option<View<'a>>]> {
        match self.inputs {
            Metas::Of(views) if self.op == Op::Embedding => Some(views),
            _ => None,
        }
    }

    /// Returns the finest cut of an operation whose operands fit it. `None` if it has no parts or fewer than two rows, or if
    /// an operand is packed or not addressable by the host.
    pub fn of(op: Op, attrs: &Attrs, inputs: impl Into<Metas<'a>>, output: &'a Meta) -> Option<Cut<'a>> {
        Cut::new(op, attrs, inputs.into(), output, false)
    }

    /// Returns the finest cut like [`Cut::of`], for devices that take operands from one another and keep their rows of the result.
    pub fn staying(op: Op, attrs: &Attrs, inputs: impl Into<Metas<'a>>, output: &'a Meta) -> Option<Cut<'a>> {
        Cut::new(op, attrs, inputs.into(), output, true)
    }

    fn new(op: Op, attrs: &Attrs, inputs: Metas<'a>, output: &'a Meta, stays: bool) -> Option<Cut<'a>> {
        let here = |view: &View<'_>| match view.place() {
            Place::Packed(_) => false,
            Place::Tensor(tensor, _) => stays || tensor.if_on_host().is_some(),
            _ => view.host().is_ok(),
        };
        let all_here = match inputs {
            Metas::Of(views) => views.iter().flatten().all(here),
            Metas::Alone(_) => true,
        };
        if output.bytes() == 0 || !all_here {
            return None;
        }
        let mut attrs = *attrs;
        let (most, operands) = axes(op, &mut attrs, inputs, &output.shape)?;
        let cut = Cut { op, attrs, inputs, output, axes: 0, operands, rows: 0, stays };
        (1..=most).rev().find_map(|axes| {
            let rows = cut.rows_of(axes)?;
            (rows > 1).then_some(Cut { axes, rows, ..cut })
        })
    }

    /// Returns the rows of the result's first axes. `None` if an operand is neither cut with them nor shared by all parts.
    fn rows_of(&self, axes: usize) -> Option<usize> {
        let dims = &self.output.shape.dims()[..axes];
        let mut rows = dims.iter().product();
        for (i, meta) in self.inputs.iter().enumerate() {
            let Some(Meta { shape, .. }) = meta else { continue };
            let of = self.operands[i.min(4)];
            let differ = |axis: &usize| of.at(*axis, shape) != dims[*axis];
            let shared = (0..axes).all(|axis| of.at(axis, shape) == 1);
            match (0..axes).find(differ) {
                _ if shared => {}
                // The operand's own axes must come after these axes, or they can't be flattened into one.
                None if axes <= of.end => {}
                // Heads that share keys and values stay together.
                Some(axis) if self.op == Op::Attention && of.own == 2 && axis + 1 == of.end && axis + 1 == axes => {
                    rows = dims[..axis].iter().product::<usize>() * of.at(axis, shape);
                }
                _ => return None,
            }
        }
        Some(rows)
    }

    /// Returns each device's rows if an operand is divided among devices so that each has the rows which its part needs. `index`
    /// returns the place of a device's id in the result. The rows are in the devices' order, as in the operand.
    pub fn division(&self, devices: usize, index: &dyn Fn(&str) -> Option<usize>) -> Option<Vec<usize>> {
        let Metas::Of(views) = self.inputs else { return None };
        let part = self.part(0, 1);
        views.iter().zip(&part.places).find_map(|(view, (row, _))| {
            let Place::Tensor(tensor, 0) = (*view)?.place() else { return None };
            let (whole, row) = ((*view)?.meta().bytes(), row.bytes());
            let (mut rows, mut fits) = (vec![0; devices], row > 0 && whole == row.checked_mul(self.rows)?);
            let mut starts = vec![0; devices];
            tensor.each_device(&mut |id, bytes| match (index(id), bytes) {
                (Some(device), Some(bytes)) if rows[device] == 0 && bytes.start % row == 0 && bytes.end % row == 0 => {
                    (starts[device], rows[device]) = (bytes.start / row, bytes.len() / row);
                }
                _ => fits = false,
            });
            let mut first = 0;
            for (start, rows) in starts.iter().zip(&rows).filter(|(_, rows)| **rows > 0) {
                fits &= *start == first;
                first += rows;
            }
            (fits && first == self.rows).then_some(rows)
        })
    }

    /// Returns the part of `count` rows that begins at row `first`.
    pub fn part(&self, first: usize, count: usize) -> Part {
        let part = |meta: &Meta, of: Axes| {
            let shape = &meta.shape;
            let (leading, rest) = shape.dims().split_at(of.among(self.axes, shape));
            let of_all: usize = leading.iter().product();
            let mut dims = [1; MAX_RANK];
            // If an axis of the operand maps to the last of the flattened axes, one axis replaces them all.
            let place = usize::from(!leading.is_empty() && self.axes <= of.end);
            let cut = of_all > 1;
            if cut {
                dims[0] = of_all / self.rows * count;
            }
            dims[place..place + rest.len()].copy_from_slice(rest);
            let skipped = if cut { meta.bytes() / self.rows * first } else { 0 };
            // The part has no more elements than the whole, so its shape is valid.
            let shape = Shape::new(&dims[..place + rest.len()]).unwrap_or(Shape::SCALAR);
            (Meta::new(meta.dtype, shape), skipped)
        };
        let none = (Meta::scalar(), 0);
        let operand = |(i, meta): (usize, Option<&Meta>)| meta.map_or(none, |meta| part(meta, self.operands[i.min(4)]));
        let mut places: Vec<(Meta, usize)> = self.inputs.iter().enumerate().map(operand).collect();
        places.push(part(self.output, Axes { own: 0, end: self.output.shape.rank() }));
        Part { places }
    }
}

/// A part of a cut: the descriptions of its operands and, last, of its result. With each comes the number of the whole's bytes
/// before it.
pub(crate) struct Part {
    places: Vec<(Meta, usize)>,
}

impl Part {
    /// Returns the result's description.
    pub fn result(&self) -> &Meta {
        // There is always a result.
        &self.places[self.places.len() - 1].0
    }

    /// Returns the bytes of the whole's result before the part's.
    pub fn skipped(&self) -> usize {
        self.places[self.places.len() - 1].1
    }

    /// Returns the operands' descriptions.
    pub fn metas(&self, cut: &Cut<'_>) -> MetaList<'_> {
        let pairs = cut.inputs.iter().zip(&self.places);
        pairs.map(|(whole, (meta, _))| whole.map(|_| meta)).collect()
    }

    /// Returns the part's operands, as views into the whole's.
    pub fn inputs<'p>(&'p self, cut: &Cut<'p>) -> Result<Inputs<'p>> {
        let Metas::Of(views) = cut.inputs else { fail!(Internal, "a part of descriptions has no memory") };
        let mut inputs = Inputs::new();
        for (view, (meta, skipped)) in views.iter().zip(&self.places) {
            let Some(view) = view else {
                inputs.push(None);
                continue;
            };
            inputs.push(Some(match view.place() {
                Place::Tensor(tensor, at) if cut.stays() => View::tensor(tensor, at + skipped, meta),
                // SAFETY: the part lies in the whole and begins at an element. The whole's creator guarantees the memory while
                // it is borrowed.
                _ => unsafe { View::from_raw(NonNull::new_unchecked(view.host()?.add(*skipped)), meta) },
            }));
        }
        Ok(inputs)
    }

    /// Returns the part's result, as a view into the whole's. No other view of the same part may exist.
    pub fn output<'p>(&'p self, whole: &ViewMut<'_>) -> Result<ViewMut<'p>> {
        let (meta, skipped) = &self.places[self.places.len() - 1];
        // SAFETY: as for the operands. Parts do not overlap.
        Ok(unsafe { ViewMut::from_raw(NonNull::new_unchecked(whole.host()?.add(*skipped)), meta) })
    }
}
