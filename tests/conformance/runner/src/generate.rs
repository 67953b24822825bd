//! The input generators of `FORMAT.md`.

use adead_core::DType;

/// Output `i` of splitmix64 seeded with `seed`.
/// (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.)
pub fn splitmix64(seed: u64, i: u64) -> u64 {
    let mut z = seed.wrapping_add((i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

const WILD_F32: [u32; 16] = [
    0x0000_0000,
    0x8000_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0xffc1_2345,
    0x7f80_0001,
    0x0000_0001,
    0x8000_0001,
    0x007f_ffff,
    0x0080_0000,
    0x8080_0000,
    0x7f7f_ffff,
    0xff7f_ffff,
];
const WILD_F16: [u16; 16] = [
    0x0000, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01, 0x0001, 0x8001, 0x03ff, 0x0400, 0x8400,
    0x7bff, 0xfbff,
];
const WILD_BF16: [u16; 16] = [
    0x0000, 0x8000, 0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x7f81, 0x0001, 0x8001, 0x007f, 0x0080, 0x8080,
    0x7f7f, 0xff7f,
];

/// `(z − half)·2^e`, exact for the few bits of z and the exponents that the format allows.
fn centred(z: u64, half: i64, e: i32) -> f32 {
    (z as i64 - half) as f32 * 2f32.powi(e / 2) * 2f32.powi(e - e / 2)
}

/// Collects elements as bytes, in memory reserved at once: growing it would take up to three times as much.
fn bytes<const N: usize>(elements: impl ExactSizeIterator<Item = [u8; N]>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(elements.len() * N);
    elements.for_each(|element| bytes.extend_from_slice(&element));
    bytes
}

/// `rand:SEED:E`: n elements as bytes. `None` for a dtype it is not defined for.
pub fn rand(dtype: DType, n: usize, seed: u64, e: i32) -> Option<Vec<u8>> {
    let z = (0..n).map(|i| splitmix64(seed, i as u64));
    Some(match dtype {
        DType::F32 => bytes(z.map(|z| centred(z >> 40, 1 << 23, e - 23).to_ne_bytes())),
        DType::F16 => {
            bytes(z.map(|z| adead_core::contract::f16_from_f32(centred(z >> 53, 1 << 10, e - 10)).to_ne_bytes()))
        }
        DType::BF16 => bytes(z.map(|z| ((centred(z >> 56, 1 << 7, e - 7).to_bits() >> 16) as u16).to_ne_bytes())),
        _ => return None,
    })
}

/// `wild:SEED`: n elements as bytes. `None` for a dtype it is not defined for.
pub fn wild(dtype: DType, n: usize, seed: u64) -> Option<Vec<u8>> {
    let z = (0..n).map(|i| splitmix64(seed, i as u64));
    let entry = |z: u64| (z & 3 == 0).then_some((z >> 2 & 15) as usize);
    let half = |table: [u16; 16]| move |z: u64| entry(z).map_or((z >> 48) as u16, |i| table[i]).to_ne_bytes();
    Some(match dtype {
        DType::F32 => bytes(z.map(|z| entry(z).map_or((z >> 32) as u32, |i| WILD_F32[i]).to_ne_bytes())),
        DType::F16 => bytes(z.map(half(WILD_F16))),
        DType::BF16 => bytes(z.map(half(WILD_BF16))),
        _ => return None,
    })
}

/// `ids:SEED:N`: n elements as bytes. `None` for a dtype it is not defined for.
pub fn ids(dtype: DType, n: usize, seed: u64, below: u64) -> Option<Vec<u8>> {
    let z = (0..n).map(|i| ((splitmix64(seed, i as u64) >> 32) * below) >> 32);
    Some(match dtype {
        DType::I64 => bytes(z.map(|id| (id as i64).to_ne_bytes())),
        DType::I32 | DType::U32 => bytes(z.map(|id| (id as u32).to_ne_bytes())),
        DType::U8 if below <= 256 => z.map(|id| id as u8).collect(),
        DType::Bool if below <= 2 => z.map(|id| id as u8).collect(),
        _ => return None,
    })
}
