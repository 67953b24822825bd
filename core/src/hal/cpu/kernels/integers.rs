//! Arithmetic on integers and bools: the operations that the table marks so. The reference is [`crate::contract::integers`].

use super::compare::{GRAIN, lines};
use super::{Call, Exec, Shared, chunks, moves};
use crate::contract::integers as contract;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{Gives, Lines, Op, OpKind, Reduced};
use std::sync::{Mutex, PoisonError};

/// An element as it is stored. Arithmetic is done in i64, whose lowest bits are the result's.
trait Element: Copy {
    fn wide(self) -> i64;
    fn stored(value: i64) -> Self;
}

macro_rules! elements {
    ($($own:ident)*) => {$(
        impl Element for $own {
            #[inline(always)]
            fn wide(self) -> i64 {
                self as i64
            }

            #[inline(always)]
            fn stored(value: i64) -> $own {
                value as $own
            }
        }
    )*};
}
elements!(i32 i64 u32 u8);

/// A byte that is true unless it is 0.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Truth(u8);

impl Element for Truth {
    #[inline(always)]
    fn wide(self) -> i64 {
        i64::from(self.0 != 0)
    }

    #[inline(always)]
    fn stored(value: i64) -> Truth {
        Truth(u8::from(value != 0))
    }
}

/// Computes a line of elements. The arguments are where a, b and the result begin, the steps in a and b, and how many elements.
type Line = unsafe fn(*const u8, *const u8, *mut u8, [usize; 2], usize);

/// Reduces a line or a part of it. The arguments are its first element, the step from one to the next, how many there are, and the
/// index of the first one.
type Part = unsafe fn(*const u8, usize, usize, usize) -> Found;

/// What a reduction found in a part of a line: a value and, of an element of the line, its index.
type Found = (i64, usize);

/// A function of lines for one dtype, from a function of two elements.
macro_rules! line {
    ($f:expr) => {{
        unsafe fn line<T: Element>(a: *const u8, b: *const u8, y: *mut u8, [a_step, b_step]: [usize; 2], n: usize) {
            let (a, b, y) = (a.cast::<T>(), b.cast::<T>(), y.cast::<T>());
            for i in 0..n {
                // SAFETY: the caller's lines have this many elements.
                unsafe { y.add(i).write(T::stored($f((*a.add(i * a_step)).wide(), (*b.add(i * b_step)).wide()))) };
            }
        }
        line::<T>
    }};
}

/// A function of parts for one dtype, from a function that adds an element to what was found.
macro_rules! part {
    ($from:expr, $f:expr) => {{
        unsafe fn part<T: Element>(x: *const u8, step: usize, n: usize, first: usize) -> Found {
            let (x, mut found): (*const T, Found) = (x.cast(), $from);
            for i in 0..n {
                // SAFETY: the caller's part has this many elements.
                found = $f(found, (unsafe { (*x.add(i * step)).wide() }, first + i));
            }
            found
        }
        part::<T>
    }};
}

/// The index of no element.
const NOWHERE: usize = usize::MAX;

/// Combines what was found in two parts of a line.
fn combined(op: Op, a: Found, b: Found) -> Found {
    match op {
        Op::Sum => (contract::add(a.0, b.0), 0),
        Op::Prod => (contract::mul(a.0, b.0), 0),
        Op::Max | Op::Argmax => better(a, b, b.0 > a.0),
        _ => better(a, b, b.0 < a.0),
    }
}

/// Chooses b if it is better or, of equal elements, the first one.
#[inline(always)]
fn better(a: Found, b: Found, b_is_better: bool) -> Found {
    if a.1 == NOWHERE || b_is_better || (b.0 == a.0 && b.1 < a.1) { b } else { a }
}

/// Fails to compile if the table marks an operation that the following functions don't know.
const _: () = {
    let known = [
        Op::Neg,
        Op::Abs,
        Op::Add,
        Op::Sub,
        Op::Mul,
        Op::Div,
        Op::Maximum,
        Op::Minimum,
        Op::Sum,
        Op::Prod,
        Op::Max,
        Op::Argmax,
        Op::Min,
        Op::Argmin,
    ];
    let mut marked = 0;
    while marked < Op::ALL.len() {
        let (op, mut i) = (Op::ALL[marked], 0);
        while op.takes_integers() && known[i] as u16 != op as u16 {
            i += 1;
            assert!(i < known.len(), "an operation on integers has no kernel");
        }
        marked += 1;
    }
};

fn line_of<T: Element>(op: Op) -> Line {
    match op {
        Op::Neg => line!(|x, _| contract::neg(x)),
        Op::Abs => line!(|x, _| contract::abs(x)),
        Op::Add => line!(contract::add),
        Op::Sub => line!(contract::sub),
        Op::Mul => line!(contract::mul),
        Op::Div => line!(contract::div),
        Op::Maximum => line!(contract::maximum),
        _ => line!(contract::minimum),
    }
}

fn part_of<T: Element>(op: Op) -> Part {
    match op {
        Op::Sum => part!((0, 0), |a: Found, b: Found| (contract::add(a.0, b.0), 0)),
        Op::Prod => part!((1, 0), |a: Found, b: Found| (contract::mul(a.0, b.0), 0)),
        Op::Max | Op::Argmax => part!((0, NOWHERE), |a: Found, b: Found| better(a, b, b.0 > a.0)),
        _ => part!((0, NOWHERE), |a: Found, b: Found| better(a, b, b.0 < a.0)),
    }
}

/// Computes an operation on integers or bools.
#[inline(never)]
pub(super) fn run(exec: &Exec<'_>, op: Op, call: &mut Call<'_, '_>) -> Result<()> {
    let (line, part): (Line, Part) = match call.meta(0).dtype {
        DType::I32 => (line_of::<i32>(op), part_of::<i32>(op)),
        DType::U32 => (line_of::<u32>(op), part_of::<u32>(op)),
        DType::I64 => (line_of::<i64>(op), part_of::<i64>(op)),
        DType::U8 => (line_of::<u8>(op), part_of::<u8>(op)),
        _ => (line_of::<Truth>(op), part_of::<Truth>(op)),
    };
    if op.kind() == OpKind::Reduction { reduce(exec, op, part, call) } else { elementwise(exec, line, call) }
}

fn elementwise(exec: &Exec<'_>, line: Line, call: &mut Call<'_, '_>) -> Result<()> {
    let size = call.meta(0).dtype.size();
    let (a, y) = (Shared(call.f32(0)?.cast_mut().cast::<u8>()), Shared(call.output.host()?));
    if call.inputs.len() == 1 {
        // The function of one operand finds it twice.
        return chunks(exec, call.output.shape().elements(), GRAIN, |start, end| {
            // SAFETY: both cover the result's elements, and chunks are disjoint.
            unsafe {
                let x = a.get().add(start * size);
                line(x, x, y.get().add(start * size), [1, 1], end - start);
            }
        });
    }
    let b = Shared(call.f32(1)?.cast_mut().cast::<u8>());
    lines(exec, call, |[a_at, b_at], steps, at, n| {
        // SAFETY: the offsets come from the shapes that the views cover.
        unsafe {
            let (a, b) = (a.get().add(a_at * size), b.get().add(b_at * size));
            line(a, b, y.get().add(at * size), steps, n);
        }
    })
}

fn reduce(exec: &Exec<'_>, op: Op, part: Part, call: &mut Call<'_, '_>) -> Result<()> {
    let (shape, size) = (&call.meta(0).shape, call.meta(0).dtype.size());
    let Reduced { order, lines: Lines { outer, n, inner } } = Reduced::new(shape, call.attrs);
    let mut x = Shared(call.f32(0)?.cast_mut().cast::<u8>());
    let ordered;
    if let Some(order) = order {
        // If the reduced axes are not adjacent, the elements are permuted first.
        ordered = exec.scratch.take((shape.elements() * size).div_ceil(4))?;
        moves::permute(exec, shape, &order, size, x, Shared(ordered.pointer().cast()))?;
        x = Shared(ordered.pointer().cast());
    }
    let (y, width) = (Shared(call.output.host()?), call.output.dtype().size());
    let bool_result = call.output.dtype() == DType::Bool;
    let put = |line: usize, (value, index): Found| {
        let value = match op.gives() {
            Some(Gives::Index) => index as i64,
            _ if bool_result => i64::from(value != 0),
            _ => value,
        };
        // SAFETY: the line is below the number of results, which have this width.
        unsafe {
            match width {
                1 => y.get().add(line).write(value as u8),
                4 => y.get().cast::<i32>().add(line).write(value as i32),
                _ => y.get().cast::<i64>().add(line).write(value),
            }
        }
    };
    let one = outer * inner == 1 && n > GRAIN;
    // Of one long line, what was found in its parts so far: they are combined in any order.
    let all: Mutex<Option<Found>> = Mutex::new(None);
    let (units, grain) = if one { (n, GRAIN) } else { (outer * inner, GRAIN.div_ceil(n.max(1))) };
    chunks(exec, units, grain, |start, end| {
        if one {
            // SAFETY: the part lies inside the view.
            let found = unsafe { part(x.get().add(start * size), 1, end - start, start) };
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            *all = Some(all.map_or(found, |before| combined(op, before, found)));
            return;
        }
        for line in start..end {
            let first = line / inner * n * inner + line % inner;
            // SAFETY: the line lies inside the view.
            put(line, unsafe { part(x.get().add(first * size), inner, n, 0) });
        }
    })?;
    all.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().for_each(|found| put(0, found));
    Ok(())
}
