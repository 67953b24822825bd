//! The contract's functions, computed with E primitives and with [`fmaz`] where flushing can't be told from gradual
//! underflow. Constants and the order of operations are those of the table in `docs/contract.md`.

use super::{fmaz, is_nan};

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
    f32::from_bits(((n + 127) as u32) << 23)
}

/// Returns (r, q, n) with e^x = (1 + r + r²·q)·2^n, for x between −105 and 89. (Cody and Waite's reduction, "Software
/// Manual for the Elementary Functions", 1980; the polynomial is minimax.)
fn exp_core(x: f32) -> (f32, f32, i32) {
    let magic = c(0x4b40_0000);
    let t = fmaz(x, c(0x3fb8_aa3b), magic);
    let n = t.to_bits() as i32 - magic.to_bits() as i32;
    let nf = t - magic;
    let r = fmaz(nf, -c(0x3f31_7200), x);
    let r = fmaz(nf, -c(0x35bf_be8e), r);
    (r, exp_series(r), n)
}

/// Returns (e^r − 1 − r)/r² for |r| up to ln 2 / 2.
pub(super) fn exp_series(r: f32) -> f32 {
    horner(r, [0x3eff_fffe, 0x3e2a_aa45, 0x3d2a_ac27, 0x3c09_1f97, 0x3ab5_6890])
}

/// Returns e^r from the results of [`exp_core`].
fn exp_near_0(r: f32, q: f32) -> f32 {
    fmaz(fmaz(q, r, 1.0), r, 1.0)
}

/// Returns x·2^n, multiplied in two steps so that each power is a normal number.
pub(super) fn scale_by_power(x: f32, n: i32) -> f32 {
    let half = n >> 1;
    (x * power_of_two(half)) * power_of_two(n - half)
}

/// Returns e^x.
pub fn exp(x: f32) -> f32 {
    if is_nan(x) {
        return x;
    }
    let x = if x < -105.0 { -105.0 } else { x };
    let x = if x > 89.0 { 89.0 } else { x };
    let (r, q, n) = exp_core(x);
    scale_by_power(exp_near_0(r, q), n)
}

/// Returns log(1 + f) + k·ln 2 + g. The upper part of ln 2 has 15 bits, so its product with k is exact.
pub(super) fn log_sum(f: f32, k: f32, g: f32) -> f32 {
    let q = horner(
        f,
        [
            0xbf00_0000,
            0x3eaa_aaa9,
            0xbe80_00f1,
            0x3e4c_d07e,
            0xbe2a_42d8,
            0x3e11_6ac1,
            0xbe06_6736,
            0x3e02_8da1,
            0xbd9d_c695,
        ],
    );
    let upper = k * c(0x3f31_7200);
    let h = upper + f;
    let l = fmaz(k, c(0x35bf_be8e), f - (h - upper)) + g;
    h + fmaz(f * f, q, l)
}

/// Returns the natural logarithm.
pub fn log(x: f32) -> f32 {
    if is_nan(x) || x < 0.0 {
        return f32::NAN;
    }
    if x == 0.0 {
        return f32::NEG_INFINITY;
    }
    if x == f32::INFINITY {
        return x;
    }
    let subnormal = x < f32::MIN_POSITIVE;
    let bits = if subnormal { x * 8_388_608.0 } else { x }.to_bits() as i32;
    let k = (bits - 0x3f35_04f3) >> 23;
    let m = f32::from_bits((bits - (k << 23)) as u32);
    let k = (if subnormal { k - 23 } else { k }) as f32;
    log_sum(m - 1.0, k, 0.0)
}

/// Returns the hyperbolic tangent.
pub fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let y = if a < c(0x3f6b_851f) {
        let y = a * a;
        let q = horner(y, [0xbeaa_aaa6, 0x3e08_8766, 0xbd5c_ddb2, 0x3cb1_3d3f, 0xbc06_7dd8, 0x3b25_b194, 0xb9e4_03e9]);
        // Flushing would change the sum of smaller numbers. All of them round to a.
        if a < c(0x3900_0000) { a } else { fmaz(a * y, q, a) }
    } else {
        let double = a + a;
        let (r, q, n) = exp_core(if double > 20.0 { 20.0 } else { double });
        let p = power_of_two(n);
        1.0 - 2.0 / fmaz(p, fmaz(r * r, q, r), p + 1.0)
    };
    y.copysign(x)
}

/// Returns the error function.
pub fn erf(x: f32) -> f32 {
    if is_nan(x) {
        return x;
    }
    let a = x.abs();
    let y = if a < c(0x3f54_7ae1) {
        let q = horner(a * a, [0x3e03_75d4, 0xbec0_9397, 0x3de7_13aa, 0xbcdb_ac93, 0x3ba6_3a36, 0xba28_e39d]);
        a * q + a
    } else {
        let a = if a > c(0x407c_cccd) { c(0x407c_cccd) } else { a };
        // y = 1 − e^P, where the polynomial P approximates log(erfc(a)). P is expanded at a point where that logarithm is
        // nearly a binary32 number.
        let d = a - c(0x3f7f_4000);
        let (r, q, n) = exp_core(horner(
            d,
            [0xbfeb_c2c5, 0xc028_93ed, 0xbf57_bddf, 0xbd2a_b2c8, 0x3c24_525e, 0xbafb_9c7e, 0x395c_e34f],
        ));
        let p = power_of_two(n);
        fmaz(-p, fmaz(r * r, q, r), 1.0 - p)
    };
    y.copysign(x)
}

/// Returns 1/(1 + e^−x) with one division. The remainder of the division and the rounding error of e^−|x| are added
/// back. All of this happens before the result is scaled by 2^n, so no step has a subnormal number that counts.
pub fn sigmoid(x: f32) -> f32 {
    if is_nan(x) {
        return x;
    }
    let a = -x.abs();
    let a = if a < -105.0 { -105.0 } else { a };
    let (r, q, n) = exp_core(a);
    let h = 1.0 + fmaz(r * r, q, r);
    let l = fmaz(r * r, q, r - (h - 1.0));
    let z = scale_by_power(h, n);
    let v = 1.0 / (1.0 + z);
    let y = h * v;
    let remainder = fmaz(-y, z, h - y);
    let w = scale_by_power(fmaz(fmaz(l, v, remainder), v, y), n);
    if x >= 0.0 { 1.0 - w } else { w }
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
    x * sigmoid(x * ((x * x) * c(0x3d92_2279) + c(0x3fcc_422a)))
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
