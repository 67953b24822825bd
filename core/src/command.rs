//! Commands: an operation, its attributes and its operands. Everything the runtime does is one of these.
//!
//! A command borrows its operands from its maker's stack and holds no heap memory; making one copies nothing large.

use crate::error::{Result, fail};
use crate::operand::{Meta, Place, View, ViewMut, in_buffers, overlaps, same_place};
use crate::ops::{Attrs, Op};

/// An operation with its attributes and operands, which fit it: ready to be priced and executed. Kernels trust that, so a command
/// is made by [`Command::new`] alone and never changes.
pub struct Command<'a> {
    op: Op,
    attrs: Held<'a>,
    inputs: &'a [Option<View<'a>>],
    output: ViewMut<'a>,
}

/// Attributes. Copying two hundred bytes of them costs a call of tens of nanoseconds some percent, so they are borrowed where they
/// outlive the command.
enum Held<'a> {
    Own(Attrs),
    Lent(&'a Attrs),
}

impl Held<'_> {
    #[inline(always)]
    fn get(&self) -> &Attrs {
        match self {
            Held::Own(attrs) => attrs,
            Held::Lent(attrs) => attrs,
        }
    }
}

impl<'a> Command<'a> {
    /// A checked command: operands, dtypes, shapes and attributes fit the operation, the output has the shape and dtype
    /// that follow from them, and does not overlap an input (except exactly, for elementwise operations).
    #[inline]
    pub fn new(op: Op, attrs: Attrs, inputs: &'a [Option<View<'a>>], output: ViewMut<'a>) -> Result<Command<'a>> {
        check(op, &attrs, inputs, &output)?;
        Ok(Command { op, attrs: Held::Own(attrs), inputs, output })
    }

    /// [`Command::new`] with attributes that outlive it: they are not copied.
    #[inline]
    pub fn lent(op: Op, attrs: &'a Attrs, inputs: &'a [Option<View<'a>>], output: ViewMut<'a>) -> Result<Command<'a>> {
        check(op, attrs, inputs, &output)?;
        Ok(Command { op, attrs: Held::Lent(attrs), inputs, output })
    }

    /// A command of which everything is known that [`Command::new`] would find out.
    ///
    /// # Safety
    /// The operation's rule accepts these attributes and inputs; the output has the description that it gives, and no memory of an
    /// input's, unless exactly that of an operation that works in place.
    #[inline(always)]
    pub(crate) unsafe fn unchecked(
        op: Op,
        attrs: &'a Attrs,
        inputs: &'a [Option<View<'a>>],
        output: ViewMut<'a>,
    ) -> Command<'a> {
        Command { op, attrs: Held::Lent(attrs), inputs, output }
    }

    /// The same command with another output.
    ///
    /// # Safety
    /// The output is described as this one's and has no memory of an input's.
    #[inline(always)]
    pub(crate) unsafe fn with_output<'b>(&'b self, output: ViewMut<'b>) -> Command<'b> {
        Command { op: self.op, attrs: Held::Lent(self.attrs()), inputs: self.inputs, output }
    }

    /// What to do.
    #[inline(always)]
    pub fn op(&self) -> Op {
        self.op
    }

    /// How.
    #[inline(always)]
    pub fn attrs(&self) -> &Attrs {
        self.attrs.get()
    }

    /// With what, in the operation's order; `None` where an optional operand is absent.
    #[inline(always)]
    pub fn inputs(&self) -> &'a [Option<View<'a>>] {
        self.inputs
    }

    /// Where to.
    #[inline(always)]
    pub fn output(&self) -> &ViewMut<'a> {
        &self.output
    }

    /// Whether an operand or the output is in a buffer.
    #[inline(always)]
    pub(crate) fn has_buffers(&self) -> bool {
        matches!(self.output.place(), Place::Buffer(..)) || in_buffers(self.inputs)
    }

    /// All of it, with the output to be written.
    #[inline(always)]
    pub(crate) fn parts(&mut self) -> (Op, &Attrs, &'a [Option<View<'a>>], &mut ViewMut<'a>) {
        (self.op, self.attrs.get(), self.inputs, &mut self.output)
    }
}

/// Whether they fit: see [`Command::new`].
fn check(op: Op, attrs: &Attrs, inputs: &[Option<View<'_>>], output: &ViewMut<'_>) -> Result<()> {
    let info = op.info();
    let mut expected = Meta::scalar();
    info.describe(attrs, inputs.into(), &mut expected)?;
    if expected.dtype != output.dtype() {
        fail!(DtypeMismatch, "{op}: the output is {}; it must be {}", output.dtype(), expected.dtype);
    }
    if expected.shape != *output.shape() {
        fail!(ShapeMismatch, "{op}: the output is {}; it must be {}", output.shape(), expected.shape);
    }
    for (i, input) in inputs.iter().enumerate() {
        let Some(input) = input else { continue };
        if let Place::Packed(_) = input.place() {
            may_be_packed(op, i)?;
        } else if overlaps(input, output) && !(info.in_place && same_place(input, output)) {
            fail!(InvalidArgument, "{op}: the output overlaps operand {i}");
        }
    }
    Ok(())
}

/// Only one operand of one operation may be a packed matrix.
#[cold]
#[inline(never)]
fn may_be_packed(op: Op, i: usize) -> Result<()> {
    if op != Op::Matmul || i != 1 {
        fail!(InvalidArgument, "{op}: operand {i} is a packed matrix: only matmul's b may be");
    }
    Ok(())
}
