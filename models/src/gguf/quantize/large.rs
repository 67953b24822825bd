//! Blocks of 256 values: the rules of `docs/contract.md`, "Quantising". A search finds each part's scale by weighted squares.

use super::{Fault, half};
use adead::contract::{BlockFormat, f16_to_f32};

/// Ranges and scales below 2⁻⁴⁰ count as 0: the f16 of a block that had nothing larger would be 0 too.
const LEAST: f32 = f32::from_bits((127 - 40) << 23);
/// The greatest magnitude, 2²⁸. No sum of the search overflows, and no scale in f16 reaches beyond.
const MOST: f32 = f32::from_bits((127 + 28) << 23);

/// Writes a block. The values are finite.
pub(super) fn block(format: BlockFormat, x: &[f32], out: &mut [u8]) -> Result<(), Fault> {
    if let Some(&large) = x.iter().find(|x| x.abs() > MOST) {
        return Err(Fault::Large(large));
    }
    match format {
        BlockFormat::Q4_K => with_minima(x, 15, (-1.0, 20), out),
        BlockFormat::Q5_K => with_minima(x, 31, (-0.5, 15), out),
        _ => without_minima(x, out),
    }
}

/// To the nearest integer, ties to even.
fn nearest(x: f32) -> i32 {
    x.round_ties_even() as i32
}

fn nearest_in(x: f32, least: i32, most: i32) -> i32 {
    nearest(x).clamp(least, most)
}

/// q4_k and q5_k: codes from 0 to `most`.
fn with_minima(x: &[f32], most: i32, search: (f32, u8), out: &mut [u8]) -> Result<(), Fault> {
    let (mut scales, mut minima) = ([0f32; 8], [0f32; 8]);
    for (part, x) in x.chunks_exact(32).enumerate() {
        (scales[part], minima[part]) = affine(x, most, search);
    }
    let largest = |of: &[f32; 8]| of.iter().fold(0f32, |largest, &x| if x > largest { x } else { largest });
    let (scale, minimum) = (largest(&scales), largest(&minima));
    let factor = |largest: f32| if largest >= LEAST { 63.0 / largest } else { 0.0 };
    let (scale_factor, minimum_factor) = (factor(scale), factor(minimum));
    let (d, m) = (half(scale / 63.0)?, half(minimum / 63.0)?);
    out.fill(0);
    out[..2].copy_from_slice(&d);
    out[2..4].copy_from_slice(&m);
    let (d, m) = (f16_to_f32(u16::from_le_bytes(d)), f16_to_f32(u16::from_le_bytes(m)));
    let (head, first) = if most == 31 { (16, 48) } else { (16, 16) };
    for (part, x) in x.chunks_exact(32).enumerate() {
        let own_scale = nearest_in(scale_factor * scales[part], 0, 63);
        let own_minimum = nearest_in(minimum_factor * minima[part], 0, 63);
        put_scales(&mut out[4..16], part, own_scale as u8, own_minimum as u8);
        let (d, m) = (d * own_scale as f32, m * own_minimum as f32);
        if d == 0.0 {
            continue;
        }
        for (i, x) in x.iter().enumerate() {
            let code = nearest_in((x + m) / d, 0, most) as u8;
            out[first + part / 2 * 32 + i] |= (code & 15) << (part % 2 * 4);
            if most == 31 {
                out[head + i] |= (code >> 4) << part;
            }
        }
    }
    Ok(())
}

/// Puts a part's scale and minimum, of 6 bits each, into the 12 bytes for eight parts.
fn put_scales(bytes: &mut [u8], part: usize, scale: u8, minimum: u8) {
    if part < 4 {
        bytes[part] |= scale;
        bytes[part + 4] |= minimum;
    } else {
        bytes[part + 4] |= scale & 15 | (minimum & 15) << 4;
        bytes[part - 4] |= scale >> 4 << 6;
        bytes[part] |= minimum >> 4 << 6;
    }
}

/// Finds a scale and a minimum of 32 values: those with which `scale·code − minimum` is closest to them, of the first division and
/// `steps + 1` others around it.
fn affine(x: &[f32], most: i32, (begin, steps): (f32, u8)) -> (f32, f32) {
    let squares = x.iter().fold(0.0, |sum, x| sum + x * x);
    let mean = (squares / 32.0).sqrt();
    let weight = |x: f32| mean + x.abs();
    let least = x.iter().fold(0f32, |least, &x| if x < least { x } else { least });
    let largest = x.iter().copied().fold(x[0], |largest, x| if x > largest { x } else { largest });
    let range = largest - least;
    if range < LEAST {
        return (0.0, -least);
    }
    let (mut sum_w, mut sum_x) = (0.0, 0.0);
    for &x in x {
        sum_w += weight(x);
        sum_x += weight(x) * x;
    }
    let mut codes = [0f32; 32];
    let error = |codes: &[f32; 32], scale: f32, minimum: f32| {
        let terms = x.iter().zip(codes).map(|(&x, code)| {
            let apart = scale * code + minimum - x;
            weight(x) * (apart * apart)
        });
        terms.fold(0.0, |sum, term| sum + term)
    };
    let divide = |codes: &mut [f32; 32], factor: f32| {
        for (code, x) in codes.iter_mut().zip(x) {
            *code = nearest_in(factor * (x - least), 0, most) as f32;
        }
    };
    let factor = most as f32 / range;
    divide(&mut codes, factor);
    let (mut scale, mut minimum) = (1.0 / factor, least);
    let mut best = error(&codes, scale, minimum);
    for step in 0..=steps {
        divide(&mut codes, (begin + 0.1 * f32::from(step) + most as f32) / range);
        let (mut sum_l, mut sum_ll, mut sum_xl) = (0.0, 0.0, 0.0);
        for (&x, code) in x.iter().zip(&codes) {
            let weighted = weight(x) * code;
            sum_l += weighted;
            sum_ll += weighted * code;
            sum_xl += weighted * x;
        }
        let divisor = sum_w * sum_ll - sum_l * sum_l;
        if !(divisor > 0.0) {
            continue;
        }
        let mut own_scale = (sum_w * sum_xl - sum_x * sum_l) / divisor;
        let mut own_minimum = (sum_ll * sum_x - sum_l * sum_xl) / divisor;
        if own_minimum > 0.0 {
            (own_scale, own_minimum) = (sum_xl / sum_ll, 0.0);
        }
        let own = error(&codes, own_scale, own_minimum);
        if own < best {
            (best, scale, minimum) = (own, own_scale, own_minimum);
        }
    }
    (scale, -minimum)
}

/// q6_k: codes from −32 to 31, stored with 32 added.
fn without_minima(x: &[f32], out: &mut [u8]) -> Result<(), Fault> {
    let mut scales = [0f32; 16];
    for (scale, x) in scales.iter_mut().zip(x.chunks_exact(16)) {
        *scale = symmetric(x);
    }
    let largest = scales.iter().fold(0f32, |largest, &x| if x.abs() > largest.abs() { x } else { largest });
    out.fill(0);
    if largest.abs() < LEAST {
        return Ok(());
    }
    let factor = -128.0 / largest;
    let d = half(1.0 / factor)?;
    out[208..210].copy_from_slice(&d);
    let d = f16_to_f32(u16::from_le_bytes(d));
    for (part, x) in x.chunks_exact(16).enumerate() {
        let scale = nearest_in(factor * scales[part], -128, 127);
        out[192 + part] = (scale as i8).cast_unsigned();
        let d = d * scale as f32;
        if d == 0.0 {
            continue;
        }
        for (i, x) in x.iter().enumerate() {
            let code = (nearest_in(x / d, -32, 31) + 32) as u8;
            let i = part * 16 + i;
            let (half, quarter, at) = (i / 128, i % 128 / 32, i % 32);
            out[half * 64 + quarter % 2 * 32 + at] |= (code & 15) << (quarter / 2 * 4);
            out[128 + half * 32 + at] |= (code >> 4) << (quarter * 2);
        }
    }
    Ok(())
}

/// Finds the scale of 16 values: that with which `scale·code` is closest to them, of 19 divisions. Squares weigh errors, so that
/// large values keep more of their bits.
fn symmetric(x: &[f32]) -> f32 {
    let largest = x.iter().fold(0f32, |largest, &x| if x.abs() > largest.abs() { x } else { largest });
    if largest.abs() < LEAST {
        return 0.0;
    }
    let sums = |factor: f32| {
        x.iter().fold((0.0, 0.0), |(sum_xl, sum_ll), &x| {
            let code = nearest_in(factor * x, -32, 31) as f32;
            let weight = x * x;
            (sum_xl + weight * x * code, sum_ll + weight * code * code)
        })
    };
    let (sum_xl, sum_ll) = sums(-32.0 / largest);
    let mut scale = if sum_ll == 0.0 { 0.0 } else { sum_xl / sum_ll };
    let mut best = scale * sum_xl;
    for step in (-9i8..=9).filter(|&step| step != 0) {
        let (sum_xl, sum_ll) = sums(-(32.0 + 0.1 * f32::from(step)) / largest);
        if sum_ll > 0.0 && sum_xl * sum_xl > best * sum_ll {
            scale = sum_xl / sum_ll;
            best = scale * sum_xl;
        }
    }
    scale
}
