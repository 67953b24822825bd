//! What computes on the CPU: one file per family of operations, written once for every instruction set.
//!
//! Kernels of floats compute in f32. Operands stored as f16 and bf16 are widened before and the result narrowed after, in
//! one place, here. Scratch is taken before anything is written.

mod attention;
mod binary;
mod cast;
mod compare;
mod cumsum;
mod elementwise;
mod fixed;
mod gemm;
mod grid;
#[cfg(feature = "integers")]
mod integers;
mod matmul;
mod moves;
mod normalise;
mod parts;
#[cfg_attr(not(feature = "quantized"), path = "without_quantized.rs")]
mod quantized;
mod reduce;
mod rope;
mod runs;
mod sum;
mod topk;

pub use fixed::{digits_room, integer_unit};
pub use gemm::Panels;
pub use matmul::{multiply_small, panel_width};
pub(crate) use moves::check_all_ids;
pub(crate) use runs::{Elementwise, Operand as RunOperand, Reach, Run, RunStep};

use super::pool::Pool;
use crate::command::Command;
use crate::dtype::DType;
use crate::error::Result;
use crate::interrupt;
use crate::isa::Isa;
use crate::memory::host::{Scratch, ScratchPool};
use crate::operand::{Inputs, Meta, Place, View, ViewMut};
use crate::ops::{Attrs, Binary, Op, Reduction, Unary, table};
use std::ptr::NonNull;

/// What a kernel may use.
pub struct Exec<'a> {
    pub isa: Isa,
    pub pool: &'a Pool,
    pub scratch: &'a ScratchPool,
    /// Bytes of the second-level cache.
    pub cache: usize,
}

/// A raw pointer that tasks of one job share; each task touches its own part.
pub struct Shared<T>(pub *mut T);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Shared<T> {}

// SAFETY: whoever makes one gives every task a disjoint part to write.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// The pointer. (A method, so that closures capture the whole value and not the bare field.)
    #[inline(always)]
    pub fn get(self) -> *mut T {
        self.0
    }
}

/// A command whose operands are f32 or moves, as a kernel gets it.
pub(super) struct Call<'a, 'b> {
    pub attrs: &'a Attrs,
    pub inputs: &'a [Option<View<'b>>],
    pub output: &'a mut ViewMut<'b>,
    /// The dtype that the command's first operand is stored in.
    pub stored: DType,
}

impl Call<'_, '_> {
    /// The first f32 of operand `i`, null where it is absent.
    #[inline]
    pub fn f32(&self, i: usize) -> Result<*const f32> {
        match self.inputs.get(i) {
            Some(Some(view)) => Ok(view.host()?.cast_const().cast()),
            _ => Ok(std::ptr::null()),
        }
    }

    /// The first f32 of the output.
    #[inline]
    pub fn out(&self) -> Result<*mut f32> {
        Ok(self.output.host()?.cast())
    }

    /// The operand's description; it is present.
    #[inline]
    pub fn meta(&self, i: usize) -> &Meta {
        match &self.inputs[i] {
            Some(view) => view.meta(),
            None => unreachable!("a required operand was checked"),
        }
    }
}

/// Executes a checked command whose operands the host can address.
#[inline]
pub fn execute(exec: &Exec<'_>, command: &mut Command<'_>) -> Result<()> {
    // Ids are still to be checked.
    if command.output().shape().elements() == 0 && !command.op().checks_ids() {
        return Ok(());
    }
    let moves = command.op().is_move();
    let stored = command.inputs().first().and_then(|view| view.as_ref()).map_or(DType::F32, |view| view.dtype());
    if !moves && stored.is_half() {
        return widened(exec, command, stored);
    }
    let (op, attrs, inputs, output) = command.parts();
    run(exec, op, &mut Call { attrs, inputs, output, stored })
}

macro_rules! dispatch {
    (
        unary { $($(#[$unary_doc:meta])* $unary:ident = $unary_number:literal $unary_name:ident $attrs:tt:
            $unary_family:ident $unary_flops:literal, $of_x:tt $($of_x_integers:ident)?;)* }
        binary { $($(#[$binary_doc:meta])* $binary:ident = $binary_number:literal $binary_name:ident:
            $binary_family:ident $binary_flops:literal, $of_both:tt $($of_both_integers:ident)?;)* }
        comparison { $($(#[$comparison_doc:meta])* $comparison:ident = $comparison_number:literal $comparison_name:ident:
            $comparison_family:ident $comparison_flops:literal, $truths:literal;)* }
        reduction { $($(#[$reduction_doc:meta])* $reduction:ident = $reduction_number:literal
            $reduction_name:ident: $reduction_family:ident, $function:ident = $function_number:literal $gives:ident $($reduction_integers:ident)?;)* }
        own { $($(#[$own_doc:meta])* $own:ident = $own_number:literal
            $own_name:ident: $own_family:ident, $room:ident::$kernel:ident;)* }
    ) => {
        fn run(exec: &Exec<'_>, op: Op, call: &mut Call<'_, '_>) -> Result<()> {
            #[cfg(feature = "integers")]
            if !call.meta(0).dtype.is_float() && op.takes_integers() {
                return integers::run(exec, op, call);
            }
            match op {
                $(Op::$unary => elementwise::unary(exec, Unary::$unary, call),)*
                $(Op::$binary => binary::binary(exec, Binary::$binary, call),)*
                $(Op::$comparison => compare::compare(exec, $truths, call),)*
                $(Op::$reduction => reduce::reduce(exec, Reduction::$reduction, call),)*
                $(Op::$own => $room::$kernel(exec, call),)*
            }
        }

        impl Elementwise {
            /// Returns what applies an operation of f32 values to every element. `None` if it is no such operation.
            pub fn of(op: Op, attrs: &Attrs) -> Option<Elementwise> {
                match op {
                    $(Op::$unary => Some(Elementwise::One(elementwise::Function::of(Unary::$unary, attrs))),)*
                    $(Op::$binary => Some(Elementwise::Two(Binary::$binary)),)*
                    _ => None,
                }
            }
        }
    };
}
table!(dispatch);

/// Runs a command of f16 or bf16 operands on f32 copies.
fn widened(exec: &Exec<'_>, command: &mut Command<'_>, stored: DType) -> Result<()> {
    let mut metas = Vec::with_capacity(command.inputs().len());
    command.inputs().iter().flatten().for_each(|view| metas.push(Meta::new(DType::F32, *view.shape())));
    let mut kept: Vec<Scratch<'_>> = Vec::with_capacity(command.inputs().len());
    let mut inputs = Inputs::new();
    let mut next = metas.iter();
    for input in command.inputs() {
        let (Some(view), Some(meta)) = (input, input.and_then(|_| next.next())) else {
            inputs.push(None);
            continue;
        };
        // What is packed was widened then.
        if let Place::Packed(_) = view.place() {
            inputs.push(Some(view.described(meta)));
            continue;
        }
        let n = view.shape().elements();
        let copy = exec.scratch.take(n)?;
        cast::widen(exec, stored, view.host()?.cast_const().cast(), copy.pointer(), n)?;
        // SAFETY: the scratch holds n values, is aligned and lives in `kept` until this function returns.
        inputs.push(Some(unsafe { View::from_raw(NonNull::new_unchecked(copy.pointer().cast()), meta) }));
        kept.push(copy);
    }
    // Indices and bools need no narrowing.
    if !command.output().dtype().is_float() {
        let (op, attrs, _, output) = command.parts();
        return run(exec, op, &mut Call { attrs, inputs: &inputs, output: &mut output.reborrow(), stored });
    }
    let n = command.output().shape().elements();
    let result = exec.scratch.take(n)?;
    let meta = Meta::new(DType::F32, *command.output().shape());
    // SAFETY: as above; nobody else has this scratch.
    let mut output = unsafe { ViewMut::from_raw(NonNull::new_unchecked(result.pointer().cast()), &meta) };
    run(exec, command.op(), &mut Call { attrs: command.attrs(), inputs: &inputs, output: &mut output, stored })?;
    cast::narrow(exec, stored, result.pointer(), command.output().host()?.cast(), n)
}

/// Cuts `n` units of work into chunks for the pool: of `grain` units each, the last one of what is left, which is less
/// than two of them. So `grain` is what is worth waking a thread for. Work that is worth several threads is cut finer, so that
/// many threads share it evenly.
#[inline]
pub(super) fn chunks(exec: &Exec<'_>, n: usize, grain: usize, body: impl Fn(usize, usize) + Sync) -> Result<()> {
    in_chunks(exec, n, grain, &body)
}

/// The same, compiled once.
fn in_chunks(exec: &Exec<'_>, n: usize, grain: usize, body: &(dyn Fn(usize, usize) + Sync)) -> Result<()> {
    let mut grain = grain.max(1);
    let mut tasks = n / grain;
    if tasks > 1 {
        grain = n.div_ceil((4 * tasks.min(exec.pool.threads())).max(tasks)).max(1);
        tasks = n.div_ceil(grain);
    }
    // Who may end it asks between chunks, and inside of one unit, which may be long.
    let asks = (tasks > 1 || grain == 1) && interrupt::is_possible();
    if (tasks <= 1 || exec.pool.threads() == 1) && !asks {
        if n > 0 {
            body(0, n);
        }
        return Ok(());
    }
    exec.pool.try_run_near(tasks, &|task, _| {
        let start = task * grain;
        body(start, if task + 1 == tasks { n } else { start + grain });
    })
}
