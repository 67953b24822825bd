//! Unpacks what `core/build.rs` packs the operations' kernels into: LZMA, as "LZMA specification" (Igor Pavlov, 2015) defines it,
//! without end mark. Before it stand a byte with the three parameters and the size of what comes out, four bytes.
//!
//! Whatever the bytes are, it ends, touches nothing but its own memory, and says so where they are not what was packed.

use std::slice;

// Where the odds of each kind of decision begin. Those with a position have 16 for each state.
const MATCH: usize = 0;
const SHORT: usize = MATCH + 12 * 16;
const REPEAT: usize = SHORT + 12 * 16;
const NOT_LAST: usize = REPEAT + 12;
const NOT_SECOND: usize = NOT_LAST + 12;
const NOT_THIRD: usize = NOT_SECOND + 12;
/// Distances: how many bits, for each of four lengths; the bits but the last four of short ones; the last four of long ones.
const SLOT: usize = NOT_THIRD + 12;
const MIDDLE: usize = SLOT + 4 * 64;
const ALIGN: usize = MIDDLE + 128;
/// Lengths, of matches and of repeated ones: two choices, 16 trees of eight, 16 of eight, one of 256.
const LENGTH: usize = ALIGN + 16;
const LENGTHS: usize = 2 + 16 * 8 + 16 * 8 + 256;
const LITERAL: usize = LENGTH + 2 * LENGTHS;

/// The range coder's state, and how likely each decision is a 0, of 2048.
struct Decoder<'a> {
    packed: slice::Iter<'a, u8>,
    /// Bytes that were asked for behind the end.
    missing: usize,
    range: u32,
    code: u32,
    odds: Vec<u16>,
}

impl Decoder<'_> {
    #[inline(always)]
    fn shift(&mut self) {
        if self.range < 1 << 24 {
            let byte = self.packed.next().copied();
            self.missing += usize::from(byte.is_none());
            self.range <<= 8;
            self.code = self.code << 8 | u32::from(byte.unwrap_or(0));
        }
    }

    /// A decision. Inlined wherever it is needed it would be a twentieth faster, and everything here twice as large.
    #[inline(never)]
    fn bit(&mut self, at: usize) -> usize {
        let Some(odds) = self.odds.get_mut(at) else { return 0 };
        let bound = (self.range >> 11) * u32::from(*odds);
        let bit = self.code >= bound;
        if bit {
            self.range -= bound;
            self.code -= bound;
            *odds -= *odds >> 5;
        } else {
            self.range = bound;
            *odds += (2048 - *odds) >> 5;
        }
        self.shift();
        usize::from(bit)
    }

    /// So many bits that are each as likely, the highest first.
    fn even(&mut self, count: u32) -> usize {
        let mut value = 0;
        for _ in 0..count {
            self.range >>= 1;
            let bit = self.code >= self.range;
            self.code -= if bit { self.range } else { 0 };
            self.shift();
            value = value << 1 | usize::from(bit);
        }
        value
    }

    /// So many bits, the highest first, each with the odds of those before it.
    fn tree(&mut self, at: usize, count: u32) -> usize {
        let mut node = 1;
        for _ in 0..count {
            node = node << 1 | self.bit(at + node);
        }
        node - (1 << count)
    }

    /// The same, the lowest first.
    fn reversed(&mut self, at: usize, count: u32) -> usize {
        let (mut node, mut value) = (1, 0);
        for i in 0..count {
            let bit = self.bit(at + node);
            node = node << 1 | bit;
            value |= bit << i;
        }
        value
    }

    fn length(&mut self, at: usize, position: usize) -> usize {
        if self.bit(at) == 0 {
            2 + self.tree(at + 2 + 8 * position, 3)
        } else if self.bit(at + 1) == 0 {
            10 + self.tree(at + 130 + 8 * position, 3)
        } else {
            18 + self.tree(at + 258, 8)
        }
    }

    /// A distance, less one.
    fn distance(&mut self, length: usize) -> usize {
        let slot = self.tree(SLOT + 64 * (length - 2).min(3), 6);
        if slot < 4 {
            return slot;
        }
        let bits = slot as u32 / 2 - 1;
        let high = (2 | slot & 1) << bits;
        if slot < 14 {
            high + self.reversed(MIDDLE + high - slot, bits)
        } else {
            high + (self.even(bits - 4) << 4) + self.reversed(ALIGN, 4)
        }
    }
}

/// The bytes; none where they are damaged or there is no memory for them.
pub fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let Some((&[parameters, a, b, c, d, 0, e, f, g, h], packed)) = packed.split_first_chunk() else { return None };
    let size = u32::from_le_bytes([a, b, c, d]) as usize;
    let [lc, lp, pb] = [parameters % 9, parameters / 9 % 5, parameters / 45].map(u32::from);
    let mut out = Vec::new();
    out.try_reserve_exact(size).ok()?;
    let mut decoder = Decoder {
        packed: packed.iter(),
        missing: 0,
        range: u32::MAX,
        code: u32::from_be_bytes([e, f, g, h]),
        odds: vec![1024; LITERAL + (0x300 << (lc + lp))],
    };
    let (mut state, mut distances) = (0, [0usize; 4]);
    while out.len() < size {
        if decoder.missing > 0 {
            return None;
        }
        let position = out.len() & ((1 << pb) - 1);
        if decoder.bit(MATCH + 16 * state + position) == 0 {
            let before = usize::from(out.last().copied().unwrap_or(0));
            let context = ((out.len() & ((1 << lp) - 1)) << lc) + (before >> (8 - lc));
            let at = LITERAL + 0x300 * context;
            let mut symbol = 1;
            if state >= 7 {
                // Behind a match: the byte that would have gone on with it says something.
                let mut other = usize::from(*out.get(out.len().checked_sub(distances[0] + 1)?)?);
                while symbol < 256 {
                    other <<= 1;
                    let guess = other & 256;
                    let bit = decoder.bit(at + 256 + guess + symbol);
                    symbol = symbol << 1 | bit;
                    if guess >> 8 != bit {
                        break;
                    }
                }
            }
            while symbol < 256 {
                symbol = symbol << 1 | decoder.bit(at + symbol);
            }
            out.push(symbol as u8);
            state = match state {
                0..4 => 0,
                4..10 => state - 3,
                _ => state - 6,
            };
            continue;
        }
        let literal = state < 7;
        let length = if decoder.bit(REPEAT + state) == 0 {
            distances.rotate_right(1);
            state = if literal { 7 } else { 10 };
            let length = decoder.length(LENGTH, position);
            distances[0] = decoder.distance(length);
            length
        } else {
            let which = if decoder.bit(NOT_LAST + state) == 0 {
                0
            } else if decoder.bit(NOT_SECOND + state) == 0 {
                1
            } else {
                2 + decoder.bit(NOT_THIRD + state)
            };
            if which == 0 && decoder.bit(SHORT + 16 * state + position) == 0 {
                state = if literal { 9 } else { 11 };
                1
            } else {
                distances[..=which].rotate_right(1);
                state = if literal { 8 } else { 11 };
                decoder.length(LENGTH + LENGTHS, position)
            }
        };
        let from = out.len().checked_sub(distances[0] + 1)?;
        if length > size - out.len() {
            return None;
        }
        for at in from..from + length {
            out.push(*out.get(at)?);
        }
    }
    // Whole: everything was read, and nothing is left of the number that the coder wrote.
    (decoder.missing == 0 && decoder.packed.len() == 0 && decoder.code == 0).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lzma_rust2::{EncodeMode, LzmaOptions, LzmaWriter, MfType};
    use proptest::prelude::*;
    use std::io::Write;

    fn pack(bytes: &[u8], [lc, lp, pb]: [u32; 3]) -> Vec<u8> {
        let mut options = LzmaOptions::with_preset(9);
        (options.lc, options.lp, options.pb, options.dict_size) = (lc, lp, pb, 1 << 20);
        (options.mode, options.mf) = (EncodeMode::Normal, MfType::Bt4);
        let mut packed = vec![options.get_props()];
        packed.extend((bytes.len() as u32).to_le_bytes());
        let mut writer = LzmaWriter::new_no_header(packed, &options, false).unwrap();
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    }

    /// Bytes of any kind, then again and again pieces of what was there: matches near and far, short and long, repeated distances.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let piece = (any::<u16>(), 1usize..600, any::<u8>(), prop::collection::vec(0u8..9, 0..40));
        prop::collection::vec(piece, 0..60).prop_map(|pieces| {
            let mut all = Vec::new();
            for (from, length, kind, fresh) in pieces {
                all.extend(fresh.iter().map(|byte| byte ^ kind & 0xf0));
                for i in 0..length * usize::from(!all.is_empty()) {
                    all.push(all[(usize::from(from) % all.len() + i) % all.len()].wrapping_add(u8::from(kind == 1)));
                }
            }
            all
        })
    }

    proptest! {
        #[test]
        fn what_is_unpacked_is_what_was_packed(
            bytes in bytes(), lc in 0u32..5, lp in 0u32..5, pb in 0u32..5,
        ) {
            let packed = pack(&bytes, [lc.min(4 - lp), lp, pb]);
            prop_assert!(unpack(&packed).as_deref() == Some(&bytes));
        }

        #[test]
        fn damage_is_seen(bytes in bytes(), at in any::<prop::sample::Index>(), flip in 1u8..=255) {
            let packed = pack(&bytes, [0, 0, 2]);
            let mut damaged = packed.clone();
            // Not the size, which may ask for more memory than there is.
            let at = match at.index(packed.len() - 4) { 0 => 0, at => at + 4 };
            damaged[at] ^= flip;
            // Other parameters may give the same bytes, of few.
            prop_assert!(unpack(&damaged).as_deref() != Some(&bytes) || at == 0);
            prop_assert!(unpack(&packed[..at]).is_none());
        }

        #[test]
        fn nonsense_ends(mut bytes in prop::collection::vec(any::<u8>(), 0..300), size in 0u32..10_000) {
            if let Some(own) = bytes.get_mut(1..6) {
                own[..4].copy_from_slice(&size.to_le_bytes());
                own[4] = 0;
            }
            prop_assert!(unpack(&bytes).is_none_or(|all| all.len() == size as usize));
        }
    }

    #[test]
    fn a_size_beyond_memory_is_seen() {
        let mut packed = pack(&[1, 2, 3], [0, 0, 0]);
        packed[1..5].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(unpack(&packed).is_none());
    }
}
