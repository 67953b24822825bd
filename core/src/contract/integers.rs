//! Arithmetic on integers and bools. Results are exact, and an element keeps their lowest bits. Bools count as 0 and 1, and a bool
//! result is true unless it is 0.

/// `−x`.
pub fn neg(x: i64) -> i64 {
    x.wrapping_neg()
}

/// `|x|`.
pub fn abs(x: i64) -> i64 {
    x.wrapping_abs()
}

/// `a + b`.
pub fn add(a: i64, b: i64) -> i64 {
    a.wrapping_add(b)
}

/// `a − b`.
pub fn sub(a: i64, b: i64) -> i64 {
    a.wrapping_sub(b)
}

/// `a·b`.
pub fn mul(a: i64, b: i64) -> i64 {
    a.wrapping_mul(b)
}

/// The largest integer ≤ `a / b`; 0 if b is 0.
pub fn div(a: i64, b: i64) -> i64 {
    if b == 0 {
        return 0;
    }
    let (quotient, rest) = (a.wrapping_div(b), a.wrapping_rem(b));
    // Rust rounds toward zero, which is one too large if the quotient is negative and not exact.
    if rest != 0 && (rest < 0) != (b < 0) { quotient - 1 } else { quotient }
}

/// The larger of a and b.
pub fn maximum(a: i64, b: i64) -> i64 {
    a.max(b)
}

/// The smaller of a and b.
pub fn minimum(a: i64, b: i64) -> i64 {
    a.min(b)
}

/// The sum of a line; 0 for no elements.
pub fn sum(x: &[i64]) -> i64 {
    x.iter().fold(0, |sum, &x| add(sum, x))
}

/// The product of a line; 1 for no elements.
pub fn prod(x: &[i64]) -> i64 {
    x.iter().fold(1, |product, &x| mul(product, x))
}

/// The maximum of a line.
pub fn max(x: &[i64]) -> Option<i64> {
    x.iter().copied().max()
}

/// The minimum of a line.
pub fn min(x: &[i64]) -> Option<i64> {
    x.iter().copied().min()
}

/// The index of the first maximum.
pub fn argmax(x: &[i64]) -> Option<usize> {
    (0..x.len()).rev().max_by_key(|&i| x[i])
}

/// The index of the first minimum.
pub fn argmin(x: &[i64]) -> Option<usize> {
    (0..x.len()).min_by_key(|&i| x[i])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_rounded_down() {
        let quotients =
            [(7, 2, 3), (-7, 2, -4), (7, -2, -4), (-7, -2, 3), (6, -2, -3), (0, -5, 0), (5, 0, 0), (-1, 9, -1)];
        for (a, b, quotient) in quotients {
            assert_eq!(div(a, b), quotient, "{a} / {b}");
        }
        assert_eq!(div(i64::MIN, -1), i64::MIN);
    }

    #[test]
    fn the_first_of_equal_elements_is_found() {
        assert_eq!((argmax(&[1, 7, 7, 3]), argmin(&[2, 1, 5, 1])), (Some(1), Some(1)));
        assert_eq!((argmax(&[]), min(&[]), sum(&[]), prod(&[])), (None, None, 0, 1));
    }
}
