//! Elementwise operations, of one operand and of two with broadcasting.

use super::{Call, Exec, Shared, chunks};
use crate::contract::{Activation, GeluForm};
use crate::error::Result;
use crate::hal::cpu::simd::{self, Kernel, Simd, TwoSided, VectorFn, VectorFn2, dispatch};
use crate::interrupt::pieces;
use crate::isa::Isa;
use crate::ops::{Binary, Unary};
use crate::shape::MAX_RANK;

/// Elements of the cheapest operations that are worth handing to another thread: about 20 µs, as waking one takes 10.
const GRAIN: usize = 256 * 1024;

/// The same of an operation of some fifty instructions.
const CHAIN_GRAIN: usize = 32 * 1024;

/// An elementwise operation of one operand.
trait Elementwise: Copy {
    /// `y = canonical(f(x))`.
    ///
    /// # Safety
    /// Called from a kernel; x and y cover n values and are equal or disjoint.
    unsafe fn row<S: Simd>(self, x: *const f32, y: *mut f32, n: usize);
}

/// Names the loop of `simd` over a row that an operation goes through.
macro_rules! elementwise {
    ($name:ident $map:ident) => {
        impl Elementwise for $name {
            #[inline(always)]
            unsafe fn row<S: Simd>(self, x: *const f32, y: *mut f32, n: usize) {
                // SAFETY: passed on.
                unsafe { simd::$map::<S>(x, y, n, self) };
            }
        }
    };
}

macro_rules! functions {
    ($($kind:ident $name:ident($($field:ident: $type:ty),*) = |$self:ident, $x:ident| $body:expr;)*) => {
        $(
            #[derive(Clone, Copy)]
            struct $name { $($field: $type),* }

            impl VectorFn for $name {
                const CHAIN: bool = functions!(@ $kind);

                #[inline(always)]
                unsafe fn apply<S: Simd>($self, $x: S::F, _: usize) -> S::F {
                    // SAFETY: called from a kernel, as the trait asks.
                    unsafe { $body }
                }
            }

            elementwise!($name map_row);
        )*
    };
    (@ short) => { false };
    (@ chain) => { true };
}

functions! {
    short Scale(alpha: f32) = |self, x| S::mul(x, S::splat(self.alpha));
    short Neg() = |self, x| simd::neg::<S>(x);
    short Abs() = |self, x| simd::abs::<S>(x);
    chain Exp() = |self, x| simd::exp::<S>(x);
    chain Log() = |self, x| simd::log::<S>(x);
    short Sqrt() = |self, x| S::sqrt(x);
    short Rsqrt() = |self, x| simd::rsqrt::<S>(x);
    short Relu() = |self, x| simd::relu::<S>(x);
    short Floor() = |self, x| simd::floor::<S>(x);
    short Round() = |self, x| simd::round::<S>(x);
    short Clamp(min: f32, max: f32) = |self, x| {
        simd::minimum::<S>(simd::maximum::<S>(x, S::splat(self.min)), S::splat(self.max))
    };
}

/// What is made of a sigmoid: a division stands in the middle, so that it comes in two halves. One kernel for all three,
/// as deciding which takes no time beside the rest.
#[derive(Clone, Copy)]
enum Logistic {
    Sigmoid,
    Silu,
    GeluTanh,
}

impl VectorFn for Logistic {
    const CHAIN: bool = true;
    const HALVES: bool = true;

    #[inline(always)]
    unsafe fn apply<S: Simd>(self, x: S::F, _: usize) -> S::F {
        // SAFETY: called from a kernel, as the trait asks.
        unsafe {
            let held = self.begin::<S>(x);
            self.end::<S>(held)
        }
    }
    #[inline(always)]
    unsafe fn begin<S: Simd>(self, x: S::F) -> [S::F; 3] {
        // SAFETY: as above.
        unsafe {
            let argument = if matches!(self, Logistic::GeluTanh) { simd::gelu_tanh_argument::<S>(x) } else { x };
            let (z, e) = simd::sigmoid_powers::<S>(argument);
            [x, z, e]
        }
    }
    #[inline(always)]
    unsafe fn end<S: Simd>(self, [x, z, e]: [S::F; 3]) -> S::F {
        // SAFETY: as above.
        unsafe {
            let s = simd::sigmoid_of_powers::<S>(x, z, e);
            if matches!(self, Logistic::Sigmoid) { s } else { S::mul(x, s) }
        }
    }
}

elementwise!(Logistic map_row);

/// Functions that are computed in two ways.
macro_rules! two_sided {
    ($($name:ident beyond $limit:literal, $near:ident, $far:ident, |$x:ident| $argument:expr, |$e:ident| $result:expr;)*) => {
        $(
            #[derive(Clone, Copy)]
            struct $name;

            impl TwoSided for $name {
                const LIMIT: f32 = f32::from_bits($limit);

                #[inline(always)]
                #[allow(unused_unsafe)]
                unsafe fn argument<S: Simd>(self, $x: S::F) -> S::F {
                    // SAFETY: called from a kernel, as the trait asks.
                    unsafe { $argument }
                }
                #[inline(always)]
                unsafe fn near<S: Simd>(self, a: S::F) -> S::F {
                    // SAFETY: as above.
                    unsafe { simd::$near::<S>(a) }
                }
                #[inline(always)]
                unsafe fn far<S: Simd>(self, a: S::F) -> S::F {
                    // SAFETY: as above.
                    unsafe { simd::$far::<S>(a) }
                }
                #[inline(always)]
                #[allow(unused_unsafe, unused_variables)]
                unsafe fn finish<S: Simd>(self, $x: S::F, $e: S::F) -> S::F {
                    // SAFETY: as above.
                    unsafe { $result }
                }
            }

            elementwise!($name map_sides);
        )*
    };
}

// The limits are the last numbers below those of the contract, which belong to the far side.
two_sided! {
    Tanh beyond 0x3f6b_851e, tanh_near, tanh_far, |x| x, |e| e;
    Erf beyond 0x3f54_7ae0, erf_near, erf_far, |x| x, |e| e;
    GeluErf beyond 0x3f54_7ae0, erf_near, erf_far, |x| S::mul(x, S::splat(f32::from_bits(0x3f35_04f3))), |e| {
        let h = S::mul(S::splat(0.5), x);
        S::add(S::mul(h, e), h)
    };
}

struct Whole<F> {
    x: *const f32,
    y: *mut f32,
    n: usize,
    f: F,
}

impl<F: Elementwise> Kernel for Whole<F> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Whole { x, y, n, f } = self;
        // SAFETY: passed on.
        unsafe { f.row::<S>(x, y, n) };
    }
}

/// What is applied to every element.
#[derive(Clone, Copy)]
enum Function {
    Scale(f32),
    Neg,
    Abs,
    Exp,
    Log,
    Sqrt,
    Rsqrt,
    Relu,
    Floor,
    Round,
    Clamp { min: f32, max: f32 },
    Tanh,
    Erf,
    GeluErf,
    Logistic(Logistic),
}

impl Function {
    /// Elements that are worth handing to another thread.
    fn grain(self) -> usize {
        match self {
            Function::Exp
            | Function::Log
            | Function::Tanh
            | Function::Erf
            | Function::GeluErf
            | Function::Logistic(_) => CHAIN_GRAIN,
            _ => GRAIN,
        }
    }

    /// `y = canonical(f(x))`.
    ///
    /// # Safety
    /// x and y cover n values and are equal or disjoint.
    unsafe fn row(self, isa: Isa, x: *const f32, y: *mut f32, n: usize) {
        macro_rules! apply {
            ($f:expr) => {
                // SAFETY: passed on.
                unsafe { dispatch(isa, Whole { x, y, n, f: $f }) }
            };
        }
        match self {
            Function::Scale(alpha) => apply!(Scale { alpha }),
            Function::Neg => apply!(Neg {}),
            Function::Abs => apply!(Abs {}),
            Function::Exp => apply!(Exp {}),
            Function::Log => apply!(Log {}),
            Function::Sqrt => apply!(Sqrt {}),
            Function::Rsqrt => apply!(Rsqrt {}),
            Function::Relu => apply!(Relu {}),
            Function::Floor => apply!(Floor {}),
            Function::Round => apply!(Round {}),
            Function::Clamp { min, max } => apply!(Clamp { min, max }),
            Function::Tanh => apply!(Tanh),
            Function::Erf => apply!(Erf),
            Function::GeluErf => apply!(GeluErf),
            Function::Logistic(which) => apply!(which),
        }
    }
}

/// The elementwise operations of one operand.
pub(super) fn unary(exec: &Exec<'_>, op: Unary, call: &mut Call<'_, '_>) -> Result<()> {
    let function = match op {
        Unary::Scale => Function::Scale(call.attrs.alpha),
        Unary::Neg => Function::Neg,
        Unary::Abs => Function::Abs,
        Unary::Exp => Function::Exp,
        Unary::Log => Function::Log,
        Unary::Sqrt => Function::Sqrt,
        Unary::Rsqrt => Function::Rsqrt,
        Unary::Relu => Function::Relu,
        Unary::Sigmoid => Function::Logistic(Logistic::Sigmoid),
        Unary::Tanh => Function::Tanh,
        Unary::Floor => Function::Floor,
        Unary::Round => Function::Round,
        Unary::Erf => Function::Erf,
        Unary::Clamp => Function::Clamp { min: call.attrs.min, max: call.attrs.max },
        Unary::Silu => Function::Logistic(Logistic::Silu),
        Unary::Gelu if call.attrs.form == GeluForm::Tanh => Function::Logistic(Logistic::GeluTanh),
        Unary::Gelu => Function::GeluErf,
    };
    let (x, y) = (Shared(call.f32(0)?.cast_mut()), Shared(call.out()?));
    chunks(exec, call.output.shape().elements(), function.grain(), |start, end| {
        // SAFETY: the command's views cover the elements; chunks are disjoint.
        unsafe { function.row(exec.isa, x.get().add(start), y.get().add(start), end - start) }
    })?;
    Ok(())
}

/// Applies an activation to a row in place.
///
/// # Safety
/// `row` covers `n` values that nobody else touches.
pub(super) unsafe fn activate(isa: Isa, activation: Activation, row: *mut f32, n: usize) {
    let function = match activation {
        Activation::None => return,
        Activation::Relu => Function::Relu,
        Activation::Sigmoid => Function::Logistic(Logistic::Sigmoid),
        Activation::Tanh => Function::Tanh,
        Activation::GeluTanh => Function::Logistic(Logistic::GeluTanh),
        Activation::GeluErf => Function::GeluErf,
        Activation::Silu => Function::Logistic(Logistic::Silu),
    };
    // SAFETY: passed on.
    unsafe { function.row(isa, row, row, n) }
}

impl VectorFn2 for Binary {
    #[inline(always)]
    unsafe fn apply<S: Simd>(self, a: S::F, b: S::F) -> S::F {
        // SAFETY: called from a kernel.
        unsafe {
            match self {
                Binary::Add => S::add(a, b),
                Binary::Sub => S::sub(a, b),
                Binary::Mul => S::mul(a, b),
                Binary::Div => S::div(a, b),
                Binary::Maximum => simd::maximum::<S>(a, b),
                Binary::Minimum => simd::minimum::<S>(a, b),
            }
        }
    }
}

/// A row of `y = f(a, b)`; an operand with step 0 is one repeated value (not both: a dimension is one of theirs).
struct Row {
    f: Binary,
    a: *const f32,
    a_step: usize,
    b: *const f32,
    b_step: usize,
    y: *mut f32,
    n: usize,
}

impl Kernel for Row {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(mut self) {
        // One loop per operation and per kind of operand, so that nothing is decided inside.
        if self.a_step == 0 && matches!(self.f, Binary::Add | Binary::Mul | Binary::Maximum | Binary::Minimum) {
            (self.a, self.a_step, self.b, self.b_step) = (self.b, self.b_step, self.a, self.a_step);
        }
        macro_rules! each {
            ($($f:ident $commutes:literal)*) => {
                // SAFETY: passed on.
                unsafe {
                    match self.f { $(Binary::$f => match (self.a_step, self.b_step) {
                        (0, _) if !$commutes => self.row::<S, 0, 1>(Binary::$f),
                        (_, 0) => self.row::<S, 1, 0>(Binary::$f),
                        _ => self.row::<S, 1, 1>(Binary::$f),
                    },)* }
                }
            };
        }
        each!(Add true Sub false Mul true Div false Maximum true Minimum true);
    }
}

impl Row {
    #[inline(always)]
    unsafe fn row<S: Simd, const A: usize, const B: usize>(&self, f: Binary) {
        // SAFETY: passed on.
        unsafe { simd::zip_row::<S, A, B>(self.a, self.b, self.y, self.n, f) };
    }
}

/// Elementwise operations of two operands with broadcasting.
pub(super) fn binary(exec: &Exec<'_>, f: Binary, call: &mut Call<'_, '_>) -> Result<()> {
    let n = call.output.shape().elements();
    let (a, b, y) = (Shared(call.f32(0)?.cast_mut()), Shared(call.f32(1)?.cast_mut()), Shared(call.out()?));
    if n == 0 {
        return Ok(());
    }
    let row = move |a_at, a_step, b_at, b_step, y_at, n| {
        // SAFETY: the offsets come from the shapes that the views cover.
        unsafe {
            let (a, b, y) = (a.get().add(a_at), b.get().add(b_at), y.get().add(y_at));
            dispatch(exec.isa, Row { f, a, a_step, b, b_step, y, n })
        }
    };
    let (mut a_step, mut b_step) = (1, 1);
    if call.meta(0).shape != call.meta(1).shape {
        let grid = Grid::new(call);
        if grid.outer_rank > 0 {
            let inner = grid.dims[grid.outer_rank];
            chunks(exec, n / inner, GRAIN.div_ceil(inner), |start, end| {
                for line in start..end {
                    let (a_at, b_at) = grid.offsets(line);
                    let (a_step, b_step) = (grid.a[grid.outer_rank], grid.b[grid.outer_rank]);
                    pieces!(inner, |at, count| {
                        row(a_at + at * a_step, a_step, b_at + at * b_step, b_step, line * inner + at, count)
                    });
                }
            })?;
            return Ok(());
        }
        (a_step, b_step) = (grid.a[0], grid.b[0]);
    }
    chunks(exec, n, GRAIN, |start, end| row(start * a_step, a_step, start * b_step, b_step, start, end - start))?;
    Ok(())
}

/// Two broadcast operands with neighbouring dimensions merged wherever both step through them alike.
struct Grid {
    dims: [usize; MAX_RANK],
    a: [usize; MAX_RANK],
    b: [usize; MAX_RANK],
    /// The dimensions before the innermost.
    outer_rank: usize,
}

impl Grid {
    fn new(call: &Call<'_, '_>) -> Grid {
        let shape = call.output.shape();
        let mut grid = Grid { dims: [1; MAX_RANK], a: [0; MAX_RANK], b: [0; MAX_RANK], outer_rank: 0 };
        let (a, b) = (&call.meta(0).shape, &call.meta(1).shape);
        let (a, b) = (a.broadcast_strides(shape), b.broadcast_strides(shape));
        let mut rank = 0;
        for axis in (0..shape.rank()).filter(|&axis| shape.dims()[axis] != 1) {
            let n = shape.dims()[axis];
            let merges = |strides: &[usize; MAX_RANK], kept: &[usize; MAX_RANK]| kept[rank - 1] == strides[axis] * n;
            if rank > 0 && merges(&a, &grid.a) && merges(&b, &grid.b) {
                grid.dims[rank - 1] *= n;
                (grid.a[rank - 1], grid.b[rank - 1]) = (a[axis], b[axis]);
            } else {
                (grid.dims[rank], grid.a[rank], grid.b[rank]) = (n, a[axis], b[axis]);
                rank += 1;
            }
        }
        grid.outer_rank = rank.max(1) - 1;
        if rank == 0 {
            // One element: both operands are read where they are.
            (grid.a[0], grid.b[0]) = (1, 1);
        }
        grid
    }

    /// Where a line of the innermost dimension begins in the operands.
    fn offsets(&self, mut line: usize) -> (usize, usize) {
        let (mut a, mut b) = (0, 0);
        for axis in (0..self.outer_rank).rev() {
            let index = line % self.dims[axis];
            line /= self.dims[axis];
            a += index * self.a[axis];
            b += index * self.b[axis];
        }
        (a, b)
    }
}
