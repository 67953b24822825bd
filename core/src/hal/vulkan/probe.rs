//! Known-answer tests: how a device's own arithmetic behaves, and which emulations it needs.

use super::VulkanBuffer;
use super::encoder::VulkanEncoder;
use super::logical::Logical;
use super::memory::{Allocation, Space};
use super::shared::Shared;
use super::stream::VulkanStream;
use crate::contract;
use crate::error::{Result, fail};
use crate::fpenv::default_environment;
use crate::hal::Stream;
use crate::hal::lowering::{Encoder, Kernels, Push};
use std::sync::Arc;

/// The device's modes: specialization constants, by id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// How kernels compute `fmaz`: 0 with the device's `fma`, 1 with it and flushed subnormals, 2 with integers.
    pub fma: u32,
    /// Whether the device rounds divisions and square roots correctly.
    pub exact_divide: u32,
    /// Threads of a subgroup; 1 if the device can't shuffle values in one.
    pub subgroup: u32,
}

impl Modes {
    /// Returns the modes as specialization constants from id 0.
    pub fn constants(self) -> [u32; 3] {
        [self.fma, self.exact_divide, self.subgroup]
    }
}

/// A primitive and its operands: 0 add, 1 sub, 2 mul, 3 div, 4 sqrt, 5 fmaz.
type Case = [u32; 4];

const ADD: u32 = 0;
const DIV: u32 = 3;
const SQRT: u32 = 4;
const FMAZ: u32 = 5;
const NAMES: [&str; 6] = ["add", "sub", "mul", "div", "sqrt", "fmaz"];

/// The number of cases. A division that is sometimes wrong in the last bit fails hundreds of them.
const CASES: usize = 6144;

/// Finds the modes in which the device keeps the contract. `unsupported` if no modes do.
pub fn decide(logical: &Arc<Logical>) -> Result<Modes> {
    let cases = cases();
    let expected = default_environment(|| cases.iter().map(expected).collect::<Vec<u32>>());
    let physical = &logical.physical;
    let subgroup = if physical.optional.shuffle { physical.subgroup } else { 1 };
    let mut modes = Modes { fma: 0, exact_divide: 1, subgroup };
    for round in 0.. {
        let found = run(&Arc::new(Shared::trial(logical, modes)), &cases, round)?;
        let wrong = |ops: std::ops::RangeInclusive<u32>| {
            (0..CASES).find(|&i| ops.contains(&cases[i][0]) && found[i] != expected[i])
        };
        let (plain, divide, fma) = (wrong(ADD..=2), wrong(DIV..=SQRT), wrong(FMAZ..=FMAZ));
        let before = modes;
        // Emulated divisions use the multiply-add, so they count only once the multiply-add is right.
        modes.fma += u32::from(fma.is_some() && modes.fma < 2);
        modes.exact_divide &= u32::from(divide.is_none());
        if modes != before && plain.is_none() {
            continue;
        }
        if let Some(i) = plain.or(divide).or(fma) {
            let ([op, a, b, c], name) = (cases[i], &physical.name);
            fail!(
                Unsupported,
                "{name} can't keep {}: {} of {a:08x} {b:08x} {c:08x} gives {:08x} instead of {:08x}",
                contract::VERSION,
                NAMES[op as usize],
                found[i],
                expected[i]
            );
        }
        break;
    }
    Ok(modes)
}

/// Computes the cases on the device in its current modes. Each round has its own pipeline.
fn run(shared: &Arc<Shared>, cases: &[Case], round: u32) -> Result<Vec<u32>> {
    let bytes = 4 * cases.len();
    let memory = Allocation::new(shared, bytes, Space::Local, "probe")?;
    let y = memory.address;
    let buffer = VulkanBuffer { memory, shared: shared.clone(), bytes };
    let mut stream = VulkanStream::new(shared)?;
    stream.encode(|encoder: &mut VulkanEncoder<'_>| {
        let x = encoder.parameters(cases.as_flattened())?;
        let n = cases.len() as u32;
        let push = Push::new().address(x).address(y).word(n);
        encoder.dispatch(Kernels::Probe, &[round], &push, [n.div_ceil(64), 1, 1])
    })?;
    let mut answers = vec![0; bytes];
    stream.read(&buffer, 0, &mut answers)?;
    Ok(answers.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]])).collect())
}

/// Returns the contract's result of a case.
fn expected(&[op, a, b, c]: &Case) -> u32 {
    let [a, b, c] = [a, b, c].map(f32::from_bits);
    let result = match op {
        0 => a + b,
        1 => a - b,
        2 => a * b,
        DIV => a / b,
        SQRT => a.sqrt(),
        _ => contract::fmaz(a, b, c),
    };
    contract::canonical(result).to_bits()
}

/// Makes cases for every primitive: first values that drivers get wrong, then pseudo-random numbers from a fixed seed.
fn cases() -> Vec<Case> {
    const SPECIAL: [u32; 16] = [
        0,
        0x8000_0000,
        0x3f80_0000,
        0xbf80_0000,
        0x7f80_0000,
        0xff80_0000,
        // A NaN with a payload.
        0xffc1_2345,
        // The least and the largest subnormal, the least normal number, one just above it, and the largest finite
        // number.
        1,
        0x807f_ffff,
        0x0080_0000,
        0x8080_0001,
        0x7f7f_ffff,
        // All bits of the significand are 1.
        0x3fff_ffff,
        // 2⁻⁶³ and its neighbours: their products lie at the edge of the normal numbers.
        0x2000_0000,
        0x9fff_ffff,
        0x2000_0001,
    ];
    // (1 + 2⁻¹²)² - (1 + 2⁻¹¹) is 2⁻²⁴ if it is rounded once. The next sums round at 2⁻¹²⁶, up to it and below it.
    let mut cases: Vec<Case> = vec![
        [FMAZ, 0x3f80_0800, 0x3f80_0800, 0xbf80_1000],
        [FMAZ, 0x8080_0000, 0x3380_0000, 0x0080_0000],
        [FMAZ, 0x8080_0000, 0x3300_0000, 0x0080_0000],
        [FMAZ, 0x8080_0000, 0xb300_0000, 0x8080_0000],
        [FMAZ, 0x0080_0000, 0xb280_0000, 0x0080_0000],
        [FMAZ, 0x0080_0000, 0x3f7f_ffff, 0],
        [FMAZ, 0x0080_0000, 0xbf00_0000, 0x8000_0000],
        [FMAZ, 0x3f80_0000, 1, 0x8000_0000],
    ];
    // Any full-period 64-bit generator would do.
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 32) as u32
    };
    while cases.len() < CASES {
        let mut number = || {
            let (bits, sign) = (next(), next() & 0x8000_0000);
            match next() >> 28 {
                0..4 => SPECIAL[(bits >> 28) as usize],
                // Numbers around one, and numbers near the smallest with the same last bits.
                4..8 => sign | (0x3f00_0000 + (bits >> 8)),
                8..10 => sign | (bits >> 8),
                10..12 => sign | (0x1fff_fffc + (bits >> 29)),
                _ => bits,
            }
        };
        let (a, b, mut c) = (number(), number(), number());
        let op = cases.len() as u32 % 6;
        if op == FMAZ && cases.len().is_multiple_of(4) {
            // A sum in which almost everything cancels.
            let product = -(f32::from_bits(a) * f32::from_bits(b));
            c = product.to_bits().wrapping_add(c & 3);
        }
        cases.push([op, a, b, c]);
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::super::{Opening, physical};
    use super::*;

    /// Emulated divisions and the integer multiply-add give the contract's bits on every device.
    #[test]
    fn emulations_are_exact() {
        let Ok(all) = physical::enumerate() else { return };
        let Some(physical) = all.first() else { return };
        let logical = Arc::new(Logical::new(physical, "vulkan:0", &Opening::default()).unwrap());
        let shared = Shared::trial(&logical, Modes { fma: 2, exact_divide: 0, subgroup: 1 });
        let cases = cases();
        let found = run(&Arc::new(shared), &cases, 0).unwrap();
        for (case, found) in cases.iter().zip(found) {
            assert_eq!(found, expected(case), "{} of {:08x?}", NAMES[case[0] as usize], &case[1..]);
        }
    }

    /// Many cases detect a device that flushes, fuses or rounds differently.
    #[test]
    fn cases_tell_wrong_arithmetic() {
        let cases = cases();
        assert_eq!(cases.len(), CASES);
        let flush = |x: f32| if x.is_subnormal() { 0.0f32.copysign(x) } else { x };
        let differing = |op: u32, f: &dyn Fn(f32, f32, f32) -> f32| {
            let wrong = |case: &&Case| {
                let [a, b, c] = [case[1], case[2], case[3]].map(f32::from_bits);
                case[0] == op && contract::canonical(f(a, b, c)).to_bits() != expected(case)
            };
            cases.iter().filter(wrong).count()
        };
        for (op, name) in (0..).zip(NAMES) {
            let exact: &dyn Fn(f32, f32, f32) -> f32 = match op {
                0 => &|a, b, _| a + b,
                1 => &|a, b, _| a - b,
                2 => &|a, b, _| a * b,
                DIV => &|a, b, _| a / b,
                SQRT => &|a, _, _| a.sqrt(),
                _ => &contract::fmaz,
            };
            assert_eq!(differing(op, exact), 0, "{name}");
            if op < FMAZ {
                let flushed = differing(op, &|a, b, c| flush(exact(flush(a), flush(b), c)));
                assert!(flushed > 10, "{name}: {flushed} cases have subnormals");
            }
        }
        let reciprocal = differing(DIV, &|a, b, _| a * (1.0 / b));
        assert!(reciprocal > 50, "{reciprocal} cases tell a product with the reciprocal from a quotient");
        let root = differing(SQRT, &|a, _, _| 1.0 / (1.0 / a.sqrt()));
        assert!(root > 50, "{root} cases tell a square root by its reciprocal");
        for (name, f) in [
            ("unfused", (&|a, b, c| flush(flush(flush(a) * flush(b)) + flush(c))) as &dyn Fn(f32, f32, f32) -> f32),
            ("subnormals kept", &|a: f32, b, c| a.mul_add(b, c)),
            ("flushed before rounding", &|a, b, c| {
                let (a, b, c) = (flush(a), flush(b), flush(c));
                let exact = a as f64 * b as f64 + c as f64;
                if exact.abs() < f32::MIN_POSITIVE as f64 { 0.0f32.copysign(exact as f32) } else { a.mul_add(b, c) }
            }),
        ] {
            let wrong = differing(FMAZ, f);
            assert!(wrong > 2, "{wrong} cases tell a multiply-add that is {name}");
        }
    }
}
