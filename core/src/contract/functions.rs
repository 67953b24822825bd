//! The contract's functions: what stands around their [`steps`], and the primitives that the steps call.

use super::{fmaz, is_nan, steps};

/// Returns the binary32 number with these bits.
pub(super) const fn c(bits: u32) -> f32 {
    f32::from_bits(bits)
}

/// Evaluates a polynomial by Horner's scheme. Each step is rounded once. Coefficients go from the lowest to the highest.
pub(super) fn horner<const N: usize>(x: f32, coefficients: [u32; N]) -> f32 {
    let mut q = c(coefficients[N - 1]);
    for i in (0..N - 1).rev() {
        q = fmaz(q, x, c(coefficients[i]));
    }
    q
}

/// Returns 2^n for n in [−126, 127].
pub fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// Returns n from t = n + 4b400000. For NaN the result is unspecified.
fn integer(t: f32) -> i32 {
    (t.to_bits() as i32).wrapping_sub(0x4b40_0000)
}

/// Returns 2^n for t = n + 4b400000.
pub(super) fn power(t: f32) -> f32 {
    power_of_two(integer(t))
}

/// Returns x·2^n for t = n + 4b400000, multiplied in two steps so that each power is a normal number.
pub(super) fn scale(x: f32, t: f32) -> f32 {
    let n = integer(t);
    let half = n >> 1;
    (x * power_of_two(half)) * power_of_two(n.wrapping_sub(half))
}

/// Returns k with x = m·2^k, where m lies around 1.
pub(super) fn exponent(x: f32) -> f32 {
    ((x.to_bits() as i32).wrapping_sub(0x3f35_04f3) >> 23) as f32
}

/// Returns the m of [`exponent`].
pub(super) fn mantissa(x: f32) -> f32 {
    let bits = x.to_bits() as i32;
    f32::from_bits(bits.wrapping_sub(bits.wrapping_sub(0x3f35_04f3) >> 23 << 23) as u32)
}

/// Returns the upper 12 of a number's 24 bits.
pub(super) fn upper(x: f32) -> f32 {
    f32::from_bits(x.to_bits() & 0xffff_f000)
}

/// Returns e^x.
pub fn exp(x: f32) -> f32 {
    if is_nan(x) { x } else { steps::exp_steps(x) }
}

/// Returns the natural logarithm.
pub fn log(x: f32) -> f32 {
    if is_nan(x) || x < 0.0 {
        return f32::NAN;
    }
    if x == 0.0 {
        return f32::NEG_INFINITY;
    }
    if x == f32::INFINITY { x } else { steps::log_steps(x) }
}

/// Returns the hyperbolic tangent.
pub fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let y = if a < c(0x3900_0000) {
        // Flushing would change the sum of such numbers. All of them round to a.
        a
    } else if a < c(0x3f6b_851f) {
        steps::tanh_near(a)
    } else {
        steps::tanh_far(a)
    };
    y.copysign(x)
}

/// Returns the error function.
pub fn erf(x: f32) -> f32 {
    if is_nan(x) {
        return x;
    }
    let a = x.abs();
    let y = if a < c(0x3f54_7ae1) { steps::erf_near(a) } else { steps::erf_far(a) };
    y.copysign(x)
}

/// Returns 1/(1 + e^−x).
pub fn sigmoid(x: f32) -> f32 {
    if is_nan(x) {
        return x;
    }
    let (h, l, t) = steps::sigmoid_power(x);
    steps::sigmoid_of_power(x, h, l, t)
}

/// Returns max(x, +0). NaN stays NaN, and −0 becomes +0.
pub fn relu(x: f32) -> f32 {
    if x > 0.0 || is_nan(x) { x } else { 0.0 }
}

/// Returns x·sigmoid(x).
pub fn silu(x: f32) -> f32 {
    x * sigmoid(x)
}

/// Returns the Gaussian error linear unit in its tanh form, written with the sigmoid.
pub fn gelu_tanh(x: f32) -> f32 {
    x * sigmoid(steps::gelu_argument(x))
}

/// Returns the Gaussian error linear unit in its form with the error function.
pub fn gelu_erf(x: f32) -> f32 {
    let h = 0.5 * x;
    h * erf(x * c(0x3f35_04f3)) + h
}

/// Returns 1/sqrt(x). Both the square root and the quotient are rounded.
pub fn rsqrt(x: f32) -> f32 {
    1.0 / x.sqrt()
}

/// Which form of gelu.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum GeluForm {
    /// By the error function.
    #[default]
    Erf = 0,
    /// By tanh.
    Tanh = 1,
}

/// What a matrix product may do to its result before storing it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Activation {
    /// Nothing.
    #[default]
    None = 0,
    /// [`relu`].
    Relu = 1,
    /// [`sigmoid`].
    Sigmoid = 2,
    /// [`tanh`].
    Tanh = 3,
    /// [`gelu_tanh`].
    GeluTanh = 4,
    /// [`gelu_erf`].
    GeluErf = 5,
    /// [`silu`].
    Silu = 6,
}

impl Activation {
    /// Every activation, in numeric order.
    pub const ALL: [Activation; 7] = [
        Activation::None,
        Activation::Relu,
        Activation::Sigmoid,
        Activation::Tanh,
        Activation::GeluTanh,
        Activation::GeluErf,
        Activation::Silu,
    ];

    /// Returns the name, as in `attr activation gelu_tanh`.
    pub const fn name(self) -> &'static str {
        match self {
            Activation::None => "none",
            Activation::Relu => "relu",
            Activation::Sigmoid => "sigmoid",
            Activation::Tanh => "tanh",
            Activation::GeluTanh => "gelu_tanh",
            Activation::GeluErf => "gelu_erf",
            Activation::Silu => "silu",
        }
    }

    /// Applies the activation to one value.
    pub fn apply(self, x: f32) -> f32 {
        match self {
            Activation::None => x,
            Activation::Relu => relu(x),
            Activation::Sigmoid => sigmoid(x),
            Activation::Tanh => tanh(x),
            Activation::GeluTanh => gelu_tanh(x),
            Activation::GeluErf => gelu_erf(x),
            Activation::Silu => silu(x),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_points() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY).to_bits(), 0);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert_eq!(log(1.0).to_bits(), 0);
        assert_eq!(log(0.0), f32::NEG_INFINITY);
        assert_eq!(log(-0.0), f32::NEG_INFINITY);
        assert!(log(-1.0).is_nan());
        assert_eq!(tanh(-0.0).to_bits(), 0x8000_0000);
        assert_eq!(tanh(f32::INFINITY), 1.0);
        assert_eq!(erf(f32::NEG_INFINITY), -1.0);
        assert_eq!(sigmoid(0.0), 0.5);
        assert_eq!(relu(-0.0).to_bits(), 0);
        for f in [exp, log, tanh, erf, sigmoid, silu, gelu_tanh, gelu_erf, relu] {
            assert!(f(f32::NAN).is_nan());
        }
    }

    /// Compares with double precision on a grid, which finds any wrong constant. The contract states the exhaustive
    /// error.
    #[test]
    fn near_the_true_values() {
        for i in -4000..4000 {
            let x = i as f32 / 500.0;
            let close = |ours: f32, truth: f64| {
                assert!((ours as f64 - truth).abs() <= truth.abs() * 4e-7 + 1e-10, "{x}: {ours} against {truth}");
            };
            close(exp(x), (x as f64).exp());
            close(tanh(x), (x as f64).tanh());
            close(sigmoid(x), 1.0 / (1.0 + (-x as f64).exp()));
            if x > 0.0 {
                close(log(x), (x as f64).ln());
            }
        }
        assert!((erf(0.5) as f64 - 0.5204998778130465).abs() < 1e-7);
        assert!((erf(-1.5) as f64 + 0.9661051464753108).abs() < 1e-7);
    }
}
