//! Rules of operations that compute each element by itself.

use super::recorder::Recorder;
use super::rules::{Gradients, Step};
use crate::contract::{Activation, GeluForm};
use crate::error::{Result, fail};
use crate::ops::Op;
use crate::pipeline::Value;

/// gelu's constants in the form with tanh, as the contract has them: x·sigmoid(x·(x²·CUBIC + LINEAR)).
const LINEAR: f32 = f32::from_bits(0x3fcc_422a);
const CUBIC: f32 = f32::from_bits(0x3d92_2279);
/// 1/√2, 1/√(2π) and 2/√π.
const ROOT_HALF: f32 = std::f32::consts::FRAC_1_SQRT_2;
const DENSITY: f32 = 0.398_942_3;
const ERF_SLOPE: f32 = std::f32::consts::FRAC_2_SQRT_PI;

#[cold]
#[inline(never)]
pub(super) fn backward(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    if step.inputs.len() == 2 { binary(to, step) } else { Ok(vec![Some(unary(to, step)?)]) }
}

#[cold]
#[inline(never)]
fn unary(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Value> {
    let (x, y, g) = (step.input(0)?, step.output, step.gradient);
    match step.op {
        Op::Scale => to.scale(g, step.attrs.alpha),
        Op::Neg => to.unary(Op::Neg, g),
        Op::Abs => {
            let zero = to.number(0.0, x)?;
            let (above, below) = (to.binary(Op::Greater, x, zero)?, to.binary(Op::Less, x, zero)?);
            let minus = to.unary(Op::Neg, g)?;
            let rest = to.only_where(below, minus)?;
            to.op(Op::Where, &Default::default(), &[above, g, rest])
        }
        Op::Exp => to.mul(g, y),
        Op::Log => to.div(g, x),
        Op::Sqrt => {
            let twice = to.scale(y, 2.0)?;
            to.div(g, twice)
        }
        Op::Rsqrt => {
            let square = to.mul(y, y)?;
            let cube = to.mul(square, y)?;
            let slope = to.scale(cube, -0.5)?;
            to.mul(g, slope)
        }
        Op::Relu => of_activation(to, Activation::Relu, x, y, g),
        Op::Sigmoid => of_activation(to, Activation::Sigmoid, x, y, g),
        Op::Tanh => of_activation(to, Activation::Tanh, x, y, g),
        Op::Silu => of_activation(to, Activation::Silu, x, y, g),
        Op::Gelu => match step.attrs.form {
            GeluForm::Erf => of_activation(to, Activation::GeluErf, x, y, g),
            GeluForm::Tanh => of_activation(to, Activation::GeluTanh, x, y, g),
        },
        Op::Erf => {
            let bell = bell(to, x, -1.0)?;
            let slope = to.scale(bell, ERF_SLOPE)?;
            to.mul(g, slope)
        }
        // What is at a bound counts as inside.
        Op::Clamp => {
            let inside = to.binary(Op::Equal, x, y)?;
            to.only_where(inside, g)
        }
        Op::Sin => {
            let slope = to.unary(Op::Cos, x)?;
            to.mul(g, slope)
        }
        Op::Cos => {
            let slope = to.unary(Op::Sin, x)?;
            let minus = to.unary(Op::Neg, slope)?;
            to.mul(g, minus)
        }
        Op::Log1p => {
            let one = to.number(1.0, x)?;
            let sum = to.add(x, one)?;
            to.div(g, sum)
        }
        Op::Expm1 => {
            let one = to.number(1.0, y)?;
            let slope = to.add(y, one)?;
            to.mul(g, slope)
        }
        op => fail!(Unsupported, "gradients: {op} has none in this version"),
    }
}

/// `exp(factor·x²)`.
#[cold]
#[inline(never)]
fn bell(to: &mut Recorder<'_>, x: Value, factor: f32) -> Result<Value> {
    let square = to.mul(x, x)?;
    let exponent = to.scale(square, factor)?;
    to.unary(Op::Exp, exponent)
}

/// The gradient by x of an activation y of x.
#[cold]
#[inline(never)]
pub(super) fn of_activation(
    to: &mut Recorder<'_>,
    activation: Activation,
    x: Value,
    y: Value,
    g: Value,
) -> Result<Value> {
    let slope = match activation {
        Activation::None => return Ok(g),
        Activation::Relu => {
            let zero = to.number(0.0, y)?;
            let above = to.binary(Op::Greater, y, zero)?;
            return to.only_where(above, g);
        }
        Activation::Sigmoid => {
            let rest = to.rest(y)?;
            to.mul(y, rest)?
        }
        Activation::Tanh => {
            let square = to.mul(y, y)?;
            to.rest(square)?
        }
        // σ·(1 + x·(1 − σ))
        Activation::Silu => {
            let s = to.unary(Op::Sigmoid, x)?;
            let rest = to.rest(s)?;
            let part = to.mul(x, rest)?;
            let one = to.number(1.0, x)?;
            let sum = to.add(part, one)?;
            to.mul(s, sum)?
        }
        // Φ(x) + x·φ(x)
        Activation::GeluErf => {
            let scaled = to.scale(x, ROOT_HALF)?;
            let erf = to.unary(Op::Erf, scaled)?;
            let half = to.scale(erf, 0.5)?;
            let middle = to.number(0.5, x)?;
            let below = to.add(half, middle)?;
            let bell = bell(to, x, -0.5)?;
            let density = to.scale(bell, DENSITY)?;
            let part = to.mul(x, density)?;
            to.add(below, part)?
        }
        // With u = x·(x²·c + l): σ(u) + x·σ(u)·(1 − σ(u))·(3·c·x² + l)
        Activation::GeluTanh => {
            let square = to.mul(x, x)?;
            let linear = to.number(LINEAR, x)?;
            let cubic = to.scale(square, CUBIC)?;
            let inner = to.add(cubic, linear)?;
            let u = to.mul(x, inner)?;
            let s = to.unary(Op::Sigmoid, u)?;
            let rest = to.rest(s)?;
            let product = to.mul(s, rest)?;
            let product = to.mul(x, product)?;
            let triple = to.scale(square, 3.0 * CUBIC)?;
            let slope = to.add(triple, linear)?;
            let part = to.mul(product, slope)?;
            to.add(s, part)?
        }
    };
    to.mul(g, slope)
}

#[cold]
#[inline(never)]
fn binary(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    let (a, b, y, g) = (step.input(0)?, step.input(1)?, step.output, step.gradient);
    let (mut by_a, mut by_b) = (None, None);
    match step.op {
        Op::Add => (by_a, by_b) = (Some(g), Some(g)),
        Op::Sub => {
            by_a = Some(g);
            if step.wants(1) {
                by_b = Some(to.unary(Op::Neg, g)?);
            }
        }
        Op::Mul => {
            if step.wants(0) {
                by_a = Some(to.mul(g, b)?);
            }
            if step.wants(1) {
                by_b = Some(to.mul(g, a)?);
            }
        }
        Op::Div => {
            let part = to.div(g, b)?;
            by_a = Some(part);
            if step.wants(1) {
                let product = to.mul(part, y)?;
                by_b = Some(to.unary(Op::Neg, product)?);
            }
        }
        // Where both are equal, a counts.
        Op::Maximum | Op::Minimum => {
            let (of_a, of_b) =
                if step.op == Op::Maximum { (Op::GreaterEqual, Op::Less) } else { (Op::LessEqual, Op::Greater) };
            let (a_counts, b_counts) = (to.binary(of_a, a, b)?, to.binary(of_b, a, b)?);
            by_a = Some(to.only_where(a_counts, g)?);
            by_b = Some(to.only_where(b_counts, g)?);
        }
        Op::Pow => {
            if step.wants(0) {
                let one = to.number(1.0, b)?;
                let lower = to.sub(b, one)?;
                let power = to.binary(Op::Pow, a, lower)?;
                let slope = to.mul(b, power)?;
                let zero = to.number(0.0, b)?;
                let counts = to.binary(Op::NotEqual, b, zero)?;
                let slope = to.only_where(counts, slope)?;
                by_a = Some(to.mul(g, slope)?);
            }
            if step.wants(1) {
                let log = to.unary(Op::Log, a)?;
                let slope = to.mul(y, log)?;
                let zero = to.number(0.0, a)?;
                let above = to.binary(Op::Greater, a, zero)?;
                let slope = to.only_where(above, slope)?;
                by_b = Some(to.mul(g, slope)?);
            }
        }
        op => fail!(Unsupported, "gradients: {op} has none in this version"),
    }
    let mut summed = |part: Option<Value>, operand: Value, wanted: bool| match part {
        Some(part) if wanted => {
            let shape = to.shape(operand)?;
            to.sum_to(part, &shape).map(Some)
        }
        _ => Ok(None),
    };
    Ok(vec![summed(by_a, a, step.wants(0))?, summed(by_b, b, step.wants(1))?])
}
