//! Descriptions of the work that a profile records.

use super::record::{Activity, Reason};
use crate::command::Command;
use crate::operand::{Meta, Place, View};
use crate::ops::{Attrs, Cost, Op};
use std::borrow::Cow;
use std::fmt::Write;

/// The description of a piece of work. It only borrows its parts, because most calls are not recorded.
pub(crate) struct What<'a> {
    pub(super) reason: Reason,
    work: Work<'a>,
}

/// The description of several operations that run as one.
#[derive(Default)]
pub(crate) struct Described {
    /// The operations' names, joined with `+`.
    pub name: String,
    /// The operands and the result.
    pub operands: String,
    pub cost: Cost,
}

enum Work<'a> {
    Step(&'a Described),
    Operation(Op, &'a Attrs, &'a [Option<View<'a>>], &'a Meta),
    Kernel(&'a str, [u32; 3]),
    /// Bytes that move, and the purpose.
    Bytes(Activity, usize, &'a str),
}

impl<'a> What<'a> {
    /// Describes a command.
    #[inline]
    pub fn command(command: &'a Command<'_>, reason: Reason) -> What<'a> {
        What::operation(command.op(), command.attrs(), command.inputs(), command.output().meta(), reason)
    }

    /// Describes an operation on operands that fit it.
    #[inline]
    pub fn operation(
        op: Op,
        attrs: &'a Attrs,
        inputs: &'a [Option<View<'_>>],
        output: &'a Meta,
        reason: Reason,
    ) -> What<'a> {
        What { reason, work: Work::Operation(op, attrs, inputs, output) }
    }

    /// Describes operations that run as one.
    pub fn step(described: &'a Described, reason: Reason) -> What<'a> {
        What { reason, work: Work::Step(described) }
    }

    /// Describes bytes that move, with the purpose.
    #[inline]
    pub fn bytes(activity: Activity, bytes: usize, purpose: &'a str, reason: Reason) -> What<'a> {
        What { reason, work: Work::Bytes(activity, bytes, purpose) }
    }

    /// Describes a user's kernel with this many workgroups.
    #[inline]
    pub fn kernel(name: &'a str, groups: [u32; 3], reason: Reason) -> What<'a> {
        What { reason, work: Work::Kernel(name, groups) }
    }

    /// Describes a replay.
    #[inline]
    pub fn replay() -> What<'a> {
        What::bytes(Activity::Replay, 0, "", Reason::Stream)
    }

    /// Returns the kind of work, its name, its operands and its cost.
    pub(super) fn describe(&self) -> (Activity, Cow<'static, str>, String, Cost) {
        let mut operands = String::new();
        match self.work {
            Work::Operation(op, attrs, inputs, output) => {
                for view in inputs.iter().flatten() {
                    let comma = if operands.is_empty() { "" } else { ", " };
                    let _ = write!(operands, "{comma}{:?}", view.meta());
                }
                let _ = write!(operands, " -> {output:?}");
                (Activity::Operation, name(op, attrs, inputs), operands, op.info().cost(attrs, inputs, output))
            }
            Work::Step(Described { name, operands, cost }) => {
                (Activity::Operation, Cow::Owned(name.clone()), operands.clone(), *cost)
            }
            Work::Kernel(name, [x, y, z]) => {
                let _ = write!(operands, "{x} x {y} x {z} workgroups");
                (Activity::Kernel, Cow::Owned(name.into()), operands, Cost::default())
            }
            Work::Bytes(activity, bytes, purpose) => {
                operands.push_str(purpose);
                (activity, activity.name().into(), operands, Cost { flops: 0.0, bytes: bytes as f64 })
            }
        }
    }
}

/// Returns the operation's name, with its precision if that is not f32: `matmul fixed24`. A packed matrix has a precision of its own.
fn name(op: Op, attrs: &Attrs, inputs: &[Option<View<'_>>]) -> Cow<'static, str> {
    let packed = inputs.iter().flatten().find_map(|view| match view.place() {
        Place::Packed(matrix) => Some(matrix.precision()),
        _ => None,
    });
    let fixed = Attrs { precision: packed.or(attrs.precision), ..*attrs }.fixed_precision(op);
    match fixed {
        Some(precision) => [op.name(), " ", precision.name()].concat().into(),
        None => op.name().into(),
    }
}
