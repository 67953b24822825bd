//! Operations that are one step of E arithmetic or one decision, each under its operation's name.

use super::functions::{GeluForm, gelu_erf, gelu_tanh};
use super::reduce::{max_key, max_of_keys};
use super::{canonical, is_nan};

/// x·alpha.
pub fn scale(x: f32, alpha: f32) -> f32 {
    x * alpha
}

/// −x.
pub fn neg(x: f32) -> f32 {
    -x
}

/// |x|.
pub fn abs(x: f32) -> f32 {
    x.abs()
}

/// The square root.
pub fn sqrt(x: f32) -> f32 {
    x.sqrt()
}

/// The Gaussian error linear unit.
pub fn gelu(x: f32, form: GeluForm) -> f32 {
    match form {
        GeluForm::Erf => gelu_erf(x),
        GeluForm::Tanh => gelu_tanh(x),
    }
}

/// The nearest integer, ties to even, with the sign of x: 2²³ above |x| nothing is left of a fraction.
pub fn round(x: f32) -> f32 {
    let a = x.abs();
    if a < 8_388_608.0 { ((a + 8_388_608.0) - 8_388_608.0).copysign(x) } else { x }
}

/// The largest integer that is not above x.
pub fn floor(x: f32) -> f32 {
    let r = round(x);
    if r > x { r - 1.0 } else { r }
}

/// The larger one in MAX's order.
pub fn maximum(a: f32, b: f32) -> f32 {
    max_of_keys(max_key(a).max(max_key(b)))
}

/// The smaller one in MAX's order; NaN wins here too.
pub fn minimum(a: f32, b: f32) -> f32 {
    if is_nan(a) || is_nan(b) { f32::NAN } else { max_of_keys(max_key(a).min(max_key(b))) }
}

/// A pair turned by the angle of that cosine and sine.
pub fn rope([a, b]: [f32; 2], cos: f32, sin: f32) -> [f32; 2] {
    [canonical(a * cos - b * sin), canonical(b * cos + a * sin)]
}

/// Not below min and not above max.
pub fn clamp(x: f32, min: f32, max: f32) -> f32 {
    minimum(maximum(x, min), max)
}

/// a + b.
pub fn add(a: f32, b: f32) -> f32 {
    a + b
}

/// a − b.
pub fn sub(a: f32, b: f32) -> f32 {
    a - b
}

/// a·b.
pub fn mul(a: f32, b: f32) -> f32 {
    a * b
}

/// a / b.
pub fn div(a: f32, b: f32) -> f32 {
    a / b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_points() {
        for (x, below, nearest) in [
            (0.5, 0.0, 0.0),
            (1.5, 1.0, 2.0),
            (2.5, 2.0, 2.0),
            (-0.5, -1.0, -0.0),
            (-1.5, -2.0, -2.0),
            (-0.0, -0.0, -0.0),
            (1e-45, 0.0, 0.0),
            (-1e-45, -1.0, -0.0),
            (8_388_607.5, 8_388_607.0, 8_388_608.0),
            (-8_388_609.0, -8_388_609.0, -8_388_609.0),
            (f32::INFINITY, f32::INFINITY, f32::INFINITY),
        ] {
            assert_eq!(floor(x).to_bits(), f32::to_bits(below), "floor of {x}");
            assert_eq!(round(x).to_bits(), f32::to_bits(nearest), "round of {x}");
        }
        assert!(floor(f32::NAN).is_nan() && round(f32::NAN).is_nan());
        for [a, b] in [[-0.0, 0.0], [0.0, -0.0]] {
            assert_eq!(maximum(a, b).to_bits(), 0);
            assert_eq!(minimum(a, b).to_bits(), f32::to_bits(-0.0));
        }
        for [a, b] in [[-1.0, f32::NAN], [f32::NAN, -1.0]] {
            assert!(maximum(a, b).is_nan() && minimum(a, b).is_nan());
        }
        assert_eq!(clamp(3.0, -1.0, 1.0), 1.0);
        assert_eq!(clamp(3.0, 2.0, 1.0), 1.0);
        assert_eq!(clamp(0.0, 0.0, -0.0).to_bits(), f32::to_bits(-0.0));
    }
}
