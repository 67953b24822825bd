//! Comparisons.

use std::cmp::Ordering;

/// What a is to b, as a bit: 1 below it, 2 equal, 4 above it, 8 neither, as one of them is NaN. −0 equals +0.
#[inline(always)]
pub fn outcome<T: PartialOrd>(a: T, b: T) -> u8 {
    match a.partial_cmp(&b) {
        Some(Ordering::Less) => 1,
        Some(Ordering::Equal) => 2,
        Some(Ordering::Greater) => 4,
        None => 8,
    }
}
