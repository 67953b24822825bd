//! Which operations can be computed in parts, and what of their operands a part takes.
//!
//! A part is some rows of the result: its first axes seen as one, as many of them as can be. What is computed for a row
//! depends on no other row, so parts have the bits of the whole wherever they are cut. An operand is cut with the result or
//! shared by all parts; a part is a command of its own, whose shapes its operation's rule checks like any other's.

use super::{
    Attrs, Axis, LAYERNORM_RESIDUAL, MatmulPlan, MetaList, Metas, Op, OpKind, Permutation, RMSNORM_RESIDUAL,
    concat_axis, cumsum_axis, rules, softmax_axis, topk_axis,
};
use crate::error::{Result, fail};
use crate::operand::{Inputs, Meta, Place, View, ViewMut};
use crate::shape::{MAX_RANK, Shape};
use smallvec::SmallVec;
use std::ptr::NonNull;

/// Which of an operand's axes are those of the result: all but its last `own` ones, which end where the result's axis `end`
/// begins.
#[derive(Clone, Copy)]
struct Axes {
    own: usize,
    end: usize,
}

impl Axes {
    /// None of them: a vector of weights, a table.
    const NONE: Axes = Axes { own: MAX_RANK, end: 0 };

    /// How many of the operand's axes belong to the result's first `axes` ones.
    fn among(self, axes: usize, shape: &Shape) -> usize {
        (axes.min(self.end) + shape.rank().saturating_sub(self.own)).saturating_sub(self.end)
    }

    /// The operand's dimension that belongs to an axis of the result; 1 where it has none.
    fn at(self, axis: usize, shape: &Shape) -> usize {
        if axis < self.end && self.among(axis + 1, shape) > self.among(axis, shape) {
            shape.dims()[self.among(axis, shape)]
        } else {
            1
        }
    }
}

/// How many of the result's first axes may be cut, and what the operands' axes are to them; of more than five operands, the
/// rest are like the fifth. Axes in the attributes become such as are counted from the end. `None`: it has no parts.
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
        // The last axis of an operand is half as long or as long as the result's.
        Op::Rope => {
            operands[1..].fill(Axes { own: 1, end: rank - 1 });
            rank - 1
        }
        Op::Embedding => {
            operands[0] = Axes::NONE;
            operands[1].end = rank_of(1);
            rank_of(1)
        }
        Op::Matmul => {
            let batch = MatmulPlan::new(attrs, inputs).ok()?.batch_rank();
            // Rows of A that is stored transposed do not lie one after the other.
            let rows = usize::from(rank_of(0) > 1 && !attrs.trans_a);
            operands[0] = Axes { own: 2 - rows, end: batch + rows };
            operands[1] = Axes { own: 2, end: batch };
            operands[3] = Axes::NONE;
            batch + rows
        }
        Op::Attention => {
            operands = [Axes { own: 2, end: rank - 2 }; 5];
            (operands[0], operands[3]) = (Axes { own: 1, end: rank - 1 }, Axes { own: 1, end: rank - 1 });
            // Which keys causality hides depends on a query's number.
            if attrs.causal { rank - 2 } else { rank - 1 }
        }
        Op::Dot | Op::Transpose | Op::Slice | Op::Pad | Op::Gather => return None,
        // Element by element.
        _ => rank,
    };
    Some((axes, operands))
}

/// An operation on operands in host memory, or on descriptions alone, that can be computed in parts.
pub(crate) struct Cut<'a> {
    op: Op,
    /// The whole's, with axes counted from the end, where the parts have them too.
    attrs: Attrs,
    inputs: Metas<'a>,
    output: &'a Meta,
    /// The result's first axes, which are one in a part.
    axes: usize,
    operands: [Axes; 5],
    /// How many rows there are to divide.
    pub rows: usize,
}

impl<'a> Cut<'a> {
    /// The operation.
    pub fn op(&self) -> Op {
        self.op
    }

    /// The parts' attributes.
    pub fn attrs(&self) -> &Attrs {
        &self.attrs
    }

    /// Operands of which only a look at their elements tells whether ids are among the table's rows. A part would name the position
    /// in itself of one that is not.
    pub fn unchecked(&self) -> Option<&'a [Option<View<'a>>]> {
        match self.inputs {
            Metas::Of(views) if self.op == Op::Embedding => Some(views),
            _ => None,
        }
    }

    /// The finest cut of an operation, whose operands fit it. `None` if it has no parts, if there is one row or none, or if
    /// an operand is packed or where the host can't address it.
    pub fn of(op: Op, attrs: &Attrs, inputs: impl Into<Metas<'a>>, output: &'a Meta) -> Option<Cut<'a>> {
        let inputs = inputs.into();
        let here = |view: &View<'_>| match view.place() {
            Place::Packed(_) => false,
            Place::Tensor(tensor, _) => tensor.if_on_host().is_some(),
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
        let cut = Cut { op, attrs, inputs, output, axes: 0, operands, rows: 0 };
        (1..=most).rev().find_map(|axes| {
            let rows = cut.rows_of(axes)?;
            (rows > 1).then_some(Cut { axes, rows, ..cut })
        })
    }

    /// Rows of the result's first axes; `None` if an operand is neither cut with them nor the same for all.
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
                // What the last axis is behind is not one with it.
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

    /// What a part of so many rows looks like, from a row on.
    pub fn part(&self, first: usize, count: usize) -> Part {
        let part = |meta: &Meta, of: Axes| {
            let shape = &meta.shape;
            let (leading, rest) = shape.dims().split_at(of.among(self.axes, shape));
            let of_all: usize = leading.iter().product();
            let mut dims = [1; MAX_RANK];
            // Where it has the last of those axes, an axis of it takes their place.
            let place = usize::from(!leading.is_empty() && self.axes <= of.end);
            let cut = of_all > 1;
            if cut {
                dims[0] = of_all / self.rows * count;
            }
            dims[place..place + rest.len()].copy_from_slice(rest);
            let skipped = if cut { meta.bytes() / self.rows * first } else { 0 };
            // It has no more elements than the whole.
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

/// A part of a cut: what its operands and, behind them, its result look like, and how many of the whole's bytes lie before
/// each.
pub(crate) struct Part {
    places: Vec<(Meta, usize)>,
}

impl Part {
    /// The result's description.
    pub fn result(&self) -> &Meta {
        // There is always one.
        &self.places[self.places.len() - 1].0
    }

    /// The operands' descriptions.
    pub fn metas(&self, cut: &Cut<'_>) -> MetaList<'_> {
        let pairs = cut.inputs.iter().zip(&self.places);
        pairs.map(|(whole, (meta, _))| whole.map(|_| meta)).collect()
    }

    /// The operands, in the whole's.
    pub fn inputs<'p>(&'p self, cut: &Cut<'p>) -> Result<Inputs<'p>> {
        let Metas::Of(views) = cut.inputs else { fail!(Internal, "a part of descriptions has no memory") };
        let mut inputs = Inputs::new();
        for (view, (meta, skipped)) in views.iter().zip(&self.places) {
            inputs.push(match view {
                // SAFETY: the part lies in the whole, whose maker vouched for it while it is borrowed, and begins with an
                // element.
                Some(view) => Some(unsafe { View::from_raw(NonNull::new_unchecked(view.host()?.add(*skipped)), meta) }),
                None => None,
            });
        }
        Ok(inputs)
    }

    /// The result, in the whole's. Nobody else may have the same part of it.
    pub fn output<'p>(&'p self, whole: &ViewMut<'_>) -> Result<ViewMut<'p>> {
        let (meta, skipped) = &self.places[self.places.len() - 1];
        // SAFETY: as of the operands; parts do not overlap.
        Ok(unsafe { ViewMut::from_raw(NonNull::new_unchecked(whole.host()?.add(*skipped)), meta) })
    }
}
