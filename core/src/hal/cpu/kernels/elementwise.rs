//! Elementwise operations of one operand.

use super::{Call, Exec, Shared, chunks};
use crate::contract::{self, Activation, GeluForm};
use crate::error::Result;
use crate::hal::cpu::simd::{self, Bounded, Kernel, Simd, TwoSided, VectorFn, dispatch};
use crate::isa::Isa;
use crate::ops::{Attrs, Unary};

/// The least number of elements of a cheap operation that is worth another thread: about 20 µs of work, because waking
/// a thread takes 10 µs.
pub(super) const GRAIN: usize = 64 * 1024;

/// The same for an operation of about fifty instructions.
pub(super) const CHAIN_GRAIN: usize = 32 * 1024;

/// An elementwise operation of one operand.
trait Elementwise: Copy {
    /// Computes `y = canonical(f(x))`.
    ///
    /// # Safety
    /// Only kernels call this. x and y cover n values and are equal or disjoint.
    unsafe fn row<S: Simd>(self, x: *const f32, y: *mut f32, n: usize);
}

/// Implements [`Elementwise`] with the named loop of `simd`.
macro_rules! elementwise {
    ($name:ident $map:ident) => {
        impl Elementwise for $name {
            #[inline(always)]
            unsafe fn row<S: Simd>(self, x: *const f32, y: *mut f32, n: usize) {
                // SAFETY: the caller's promise covers this.
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
                    // SAFETY: only kernels call this, as the trait asks.
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
    chain Log1p() = |self, x| simd::log1p::<S>(x);
    chain Expm1() = |self, x| simd::expm1::<S>(x);
    short Clamp(min: f32, max: f32) = |self, x| {
        simd::minimum::<S>(simd::maximum::<S>(x, S::splat(self.min)), S::splat(self.max))
    };
}

/// The functions made from a sigmoid. The division in the middle makes two halves of each. One kernel serves all three,
/// because choosing between them costs nothing beside the rest.
#[derive(Clone, Copy)]
pub enum Logistic {
    Sigmoid,
    Silu,
    GeluTanh,
}

impl VectorFn for Logistic {
    const CHAIN: bool = true;
    const HALVES: bool = true;

    #[inline(always)]
    unsafe fn apply<S: Simd>(self, x: S::F, _: usize) -> S::F {
        // SAFETY: only kernels call this, as the trait asks.
        unsafe {
            let held = self.begin::<S>(x);
            self.end::<S>(held)
        }
    }
    #[inline(always)]
    unsafe fn begin<S: Simd>(self, x: S::F) -> [S::F; 4] {
        // SAFETY: as above.
        unsafe {
            let argument = if matches!(self, Logistic::GeluTanh) { simd::gelu_argument::<S>(x) } else { x };
            let (h, l, t) = simd::sigmoid_power::<S>(argument);
            [x, h, l, t]
        }
    }
    #[inline(always)]
    unsafe fn end<S: Simd>(self, [x, h, l, t]: [S::F; 4]) -> S::F {
        // SAFETY: as above.
        unsafe {
            let y = simd::sigmoid_of_power::<S>(x, h, l, t);
            if matches!(self, Logistic::Sigmoid) { y } else { S::mul(x, y) }
        }
    }
}

elementwise!(Logistic map_row);

/// Implements functions that have one formula near 0 and another one beyond a limit.
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
                    // SAFETY: only kernels call this, as the trait asks.
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

// Each limit is the last number below that of the contract, which belongs to the far side.
two_sided! {
    Tanh beyond 0x3f6b_851e, tanh_near, tanh_far, |x| x, |e| e;
    Erf beyond 0x3f54_7ae0, erf_near, erf_far, |x| x, |e| e;
    GeluErf beyond 0x3f54_7ae0, erf_near, erf_far, |x| S::mul(x, S::splat(f32::from_bits(0x3f35_04f3))), |e| {
        let h = S::mul(S::splat(0.5), x);
        S::add(S::mul(h, e), h)
    };
}

/// Sine and cosine share one kernel. Large angles are reduced one by one.
#[derive(Clone, Copy)]
pub enum Angle {
    Sin,
    Cos,
}

impl VectorFn for Angle {
    const CHAIN: bool = true;

    #[inline(always)]
    unsafe fn apply<S: Simd>(self, x: S::F, _: usize) -> S::F {
        // SAFETY: only kernels call this, as the trait asks.
        unsafe { simd::sin_or_cos::<S>(x, matches!(self, Angle::Cos)) }
    }
}

impl Bounded for Angle {
    const LIMIT: i32 = contract::LARGE_ANGLE.to_bits() as i32;

    fn beyond(self, x: f32) -> f32 {
        match self {
            Angle::Sin => contract::sin(x),
            Angle::Cos => contract::cos(x),
        }
    }
}

impl Elementwise for Angle {
    #[inline(always)]
    unsafe fn row<S: Simd>(self, x: *const f32, y: *mut f32, n: usize) {
        // SAFETY: the caller's promise covers this.
        unsafe { simd::map_bounded::<S, _>(x, y, n, self) };
    }
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
        // SAFETY: whoever makes a `Whole` promises what `row` asks.
        unsafe { f.row::<S>(x, y, n) };
    }
}

/// A function that is applied to every element.
#[derive(Clone, Copy)]
pub enum Function {
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
    Angle(Angle),
    Log1p,
    Expm1,
    Tanh,
    Erf,
    GeluErf,
    Logistic(Logistic),
}

impl Function {
    /// Returns the function of an operation with these attributes.
    pub(super) fn of(op: Unary, attrs: &Attrs) -> Function {
        match op {
            Unary::Scale => Function::Scale(attrs.alpha),
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
            Unary::Clamp => Function::Clamp { min: attrs.min, max: attrs.max },
            Unary::Sin => Function::Angle(Angle::Sin),
            Unary::Cos => Function::Angle(Angle::Cos),
            Unary::Log1p => Function::Log1p,
            Unary::Expm1 => Function::Expm1,
            Unary::Silu => Function::Logistic(Logistic::Silu),
            Unary::Gelu if attrs.form == GeluForm::Tanh => Function::Logistic(Logistic::GeluTanh),
            Unary::Gelu => Function::GeluErf,
        }
    }

    /// Returns the least number of elements that is worth another thread.
    pub(super) fn grain(self) -> usize {
        match self {
            Function::Exp
            | Function::Log
            | Function::Angle(_)
            | Function::Log1p
            | Function::Expm1
            | Function::Tanh
            | Function::Erf
            | Function::GeluErf
            | Function::Logistic(_) => CHAIN_GRAIN,
            _ => GRAIN,
        }
    }

    /// Computes `y = canonical(f(x))`.
    ///
    /// # Safety
    /// x and y cover n values and are equal or disjoint.
    pub(super) unsafe fn row(self, isa: Isa, x: *const f32, y: *mut f32, n: usize) {
        macro_rules! apply {
            ($f:expr) => {
                // SAFETY: the caller's promise covers this.
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
            Function::Angle(which) => apply!(which),
            Function::Log1p => apply!(Log1p {}),
            Function::Expm1 => apply!(Expm1 {}),
            Function::Tanh => apply!(Tanh),
            Function::Erf => apply!(Erf),
            Function::GeluErf => apply!(GeluErf),
            Function::Logistic(which) => apply!(which),
        }
    }
}

/// Computes an elementwise operation of one operand.
pub(super) fn unary(exec: &Exec<'_>, op: Unary, call: &mut Call<'_, '_>) -> Result<()> {
    let function = Function::of(op, call.attrs);
    let (x, y) = (Shared(call.f32(0)?.cast_mut()), Shared(call.out()?));
    chunks(exec, call.output.shape().elements(), function.grain(), |start, end| {
        // SAFETY: the command's views cover the elements, and chunks are disjoint.
        unsafe { function.row(exec.isa, x.get().add(start), y.get().add(start), end - start) }
    })?;
    Ok(())
}

/// Applies an activation to a row in place.
///
/// # Safety
/// `row` covers `n` values that no other thread accesses.
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
    // SAFETY: the caller's promise covers this.
    unsafe { function.row(isa, row, row, n) }
}
