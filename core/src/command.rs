//! Commands: an operation with its attributes and operands. The runtime executes nothing else.
//!
//! A command borrows its operands from its maker's stack and holds no heap memory, so making one is cheap.

use crate::contract::Precision;
use crate::error::{Result, fail};
use crate::operand::{Layout, Meta, Packed, Place, View, ViewMut, in_buffers, overlaps, same_place};
use crate::ops::{Attrs, Op};

/// An operation with attributes and operands that fit it. It can be priced and executed. Kernels rely on the fit: a constructor
/// checks it, or is unsafe and leaves it to the caller.
pub struct Command<'a> {
    op: Op,
    attrs: Held<'a>,
    inputs: &'a [Option<View<'a>>],
    output: ViewMut<'a>,
}

/// Attributes. They are borrowed if they outlive the command, because copying their two hundred bytes would cost short calls a
/// few percent.
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
    /// Makes a checked command. Operands, dtypes, shapes and attributes must fit the operation. The output must have the shape
    /// and dtype that follow from them. It must not overlap an input, except exactly, for elementwise operations.
    #[inline]
    pub fn new(op: Op, attrs: Attrs, inputs: &'a [Option<View<'a>>], output: ViewMut<'a>) -> Result<Command<'a>> {
        check(op, &attrs, inputs, &output)?;
        Ok(Command { op, attrs: Held::Own(attrs), inputs, output })
    }

    /// Makes a checked command like [`Command::new`], with attributes that outlive it and are not copied.
    #[inline]
    pub fn lent(op: Op, attrs: &'a Attrs, inputs: &'a [Option<View<'a>>], output: ViewMut<'a>) -> Result<Command<'a>> {
        check(op, attrs, inputs, &output)?;
        Ok(Command { op, attrs: Held::Lent(attrs), inputs, output })
    }

    /// Makes a command without the checks of [`Command::new`], whose result the caller already knows.
    ///
    /// # Safety
    /// The operation's rule must accept these attributes and inputs. The output must have the description that the rule returns.
    /// It must share no memory with an input, except exactly, for an operation that works in place.
    #[inline(always)]
    pub(crate) unsafe fn unchecked(
        op: Op,
        attrs: &'a Attrs,
        inputs: &'a [Option<View<'a>>],
        output: ViewMut<'a>,
    ) -> Command<'a> {
        Command { op, attrs: Held::Lent(attrs), inputs, output }
    }

    /// Makes the same command with another output.
    ///
    /// # Safety
    /// The output must have the same description as this one's, and share no memory with an input.
    #[inline(always)]
    pub(crate) unsafe fn with_output<'b>(&'b self, output: ViewMut<'b>) -> Command<'b> {
        Command { op: self.op, attrs: Held::Lent(self.attrs()), inputs: self.inputs, output }
    }

    /// Returns the operation.
    #[inline(always)]
    pub fn op(&self) -> Op {
        self.op
    }

    /// Returns the attributes.
    #[inline(always)]
    pub fn attrs(&self) -> &Attrs {
        self.attrs.get()
    }

    /// Returns the operands in the operation's order, `None` for an optional operand that is absent.
    #[inline(always)]
    pub fn inputs(&self) -> &'a [Option<View<'a>>] {
        self.inputs
    }

    /// Returns the output.
    #[inline(always)]
    pub fn output(&self) -> &ViewMut<'a> {
        &self.output
    }

    /// Whether an operand or the output is in a buffer.
    #[inline(always)]
    pub(crate) fn has_buffers(&self) -> bool {
        matches!(self.output.place(), Place::Buffer(..)) || in_buffers(self.inputs)
    }

    /// Sets the command's precision if its operation has one and none is given. A packed operand has a precision of its own.
    #[inline(always)]
    pub(crate) fn say(&mut self, precision: Precision) {
        if precision != Precision::F32 {
            self.say_fixed(precision);
        }
    }

    #[inline(never)]
    fn say_fixed(&mut self, precision: Precision) {
        if let Some(attrs) = said(self.op, self.attrs(), self.inputs, precision) {
            self.attrs = Held::Own(attrs);
        }
    }

    /// All parts, with the output mutable.
    #[inline(always)]
    pub(crate) fn parts(&mut self) -> (Op, &Attrs, &'a [Option<View<'a>>], &mut ViewMut<'a>) {
        (self.op, self.attrs.get(), self.inputs, &mut self.output)
    }
}

/// Returns the attributes with this precision if the operation has a precision and none is given. Returns `None` for a packed
/// operand, which has a precision of its own. Without packed operands, no shape rule depends on the precision.
pub(crate) fn said(op: Op, attrs: &Attrs, inputs: &[Option<View<'_>>], precision: Precision) -> Option<Attrs> {
    let packed = inputs.iter().flatten().any(|view| matches!(view.place(), Place::Packed(_)));
    if packed { None } else { attrs.with_precision(op, precision) }
}

/// Checks the fit: see [`Command::new`].
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
        if let Place::Packed(packed) = input.place() {
            may_be_packed(op, i, attrs, packed)?;
        } else if overlaps(input, output) && !(info.in_place && same_place(input, output)) {
            fail!(InvalidArgument, "{op}: the output overlaps operand {i}");
        }
    }
    Ok(())
}

/// Only the right operand of matmul may be a packed matrix, and those of ffn with digits for its precision, which pipelines pack.
#[cold]
#[inline(never)]
fn may_be_packed(op: Op, i: usize, attrs: &Attrs, packed: &Packed) -> Result<()> {
    let digits = || matches!(packed.layout, Layout::Digits(precision) if precision == attrs.precision());
    match (op, i) {
        (Op::Matmul, 1) => Ok(()),
        (Op::Ffn, 1 | 3) if digits() => Ok(()),
        _ => fail!(InvalidArgument, "{op}: operand {i} is a packed matrix: only matmul's b may be packed"),
    }
}
