//! The operations' kernels in SPIR-V, unpacked at first use. `ci/kernels` compiles them from `core/kernels/vulkan`.

use super::packing::*;
use crate::error::{Error, Result, Status};
use crate::hal::lowering::Kernels;
use crate::hal::lzma::unpack;
use std::sync::OnceLock;

/// All modules, packed by `core/build.rs`.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vulkan.packed"));

/// Returns the words of a family's module.
pub fn code(kernels: Kernels) -> Result<&'static [u32]> {
    static UNPACKED: OnceLock<Option<[Vec<u32>; Kernels::COUNT]>> = OnceLock::new();
    match UNPACKED.get_or_init(|| Unpacker::new(PACKED)?.modules()) {
        Some(modules) => Ok(&modules[kernels as usize]),
        None => Err(Error::new(Status::Internal, "the kernels in this library are damaged")),
    }
}

/// Above every opcode in use.
const OPCODES: usize = 1 << 13;

/// The unpacked bytes of all streams, and the position in each half of each stream.
struct Unpacker(Vec<u8>, [usize; 2 * STREAMS]);

impl Unpacker {
    fn new(packed: &[u8]) -> Option<Unpacker> {
        let bytes = unpack(packed)?;
        let (mut from, mut at) = ([0; 2 * STREAMS], 8 * STREAMS);
        for (from, length) in from.iter_mut().zip(bytes.chunks_exact(4)) {
            *from = at;
            at += u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
        }
        (at == bytes.len()).then_some(Unpacker(bytes, from))
    }

    fn byte(&mut self, part: usize) -> Option<u8> {
        let at = self.1.get_mut(part)?;
        *at += 1;
        self.0.get(*at - 1).copied()
    }

    /// Reads a number: its low seven bits from the stream's first half, further groups of seven from the second.
    fn number(&mut self, stream: usize) -> Option<u32> {
        let (mut value, mut shift, mut part) = (0, 0, 2 * stream);
        loop {
            let byte = self.byte(part)?;
            value |= u32::from(byte & 127).checked_shl(shift)?;
            if byte < 128 {
                return Some(value);
            }
            (shift, part) = (shift + 7, 2 * stream + 1);
        }
    }

    /// Reads a signed difference.
    fn difference(&mut self, stream: usize) -> Option<u32> {
        self.number(stream).map(unfolded)
    }

    /// Reads an id. `last` is the id that was defined last, `before` the id that was at this place.
    fn id(&mut self, last: u32, before: u32) -> Option<u32> {
        Some(match self.number(ID)? {
            age @ 0..YOUNG => last.wrapping_sub(age),
            difference => before.wrapping_add(unfolded(difference - YOUNG)),
        })
    }

    fn modules(mut self) -> Option<[Vec<u32>; Kernels::COUNT]> {
        let (mut classes, mut before) = (vec![None; OPCODES], vec![[0; PLACES]; OPCODES]);
        let mut modules: [Vec<u32>; Kernels::COUNT] = Default::default();
        for words in &mut modules {
            let total = self.number(NUMBER)? as usize;
            words.push(0x0723_0203);
            for _ in 0..4 {
                words.push(self.number(NUMBER)?);
            }
            let mut lengths = vec![0u32; OPCODES];
            let mut last = 0u32;
            while words.len() < total {
                let opcode = self.number(OPCODE)?;
                let class = match *classes.get(opcode as usize)? {
                    Some(class) => class,
                    None => self.number(CLASS)?,
                };
                classes[opcode as usize] = Some(class);
                let length = lengths[opcode as usize].wrapping_add(self.difference(LENGTH)?);
                lengths[opcode as usize] = length;
                let end = words.len() + length as usize;
                words.push(length << 16 | opcode);
                if class & HAS_TYPE != 0 {
                    words.push(self.number(TYPE)?);
                }
                if class & HAS_RESULT != 0 {
                    last = last.wrapping_add(1).wrapping_add(self.difference(RESULT)?);
                    words.push(last);
                }
                for place in 0..end.saturating_sub(words.len()) {
                    words.push(match class & (NUMBERS | LITERALS) {
                        NUMBERS => self.number(NUMBER)?,
                        LITERALS => {
                            let mut bytes = [0; 4];
                            for byte in &mut bytes {
                                *byte = self.byte(2 * LITERAL)?;
                            }
                            u32::from_le_bytes(bytes)
                        }
                        _ => {
                            let before = &mut before[opcode as usize][place.min(PLACES - 1)];
                            *before = self.id(last, *before)?;
                            *before
                        }
                    });
                }
            }
        }
        Some(modules)
    }
}

/// A signed difference, in zigzag encoding.
fn unfolded(value: u32) -> u32 {
    value >> 1 ^ (value & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unpacked_is_what_was_compiled() {
        let compiled: [(Kernels, &[u8]); Kernels::COUNT] = [
            (Kernels::Attention, include_bytes!("../../../kernels/vulkan/generated/attention.spv")),
            (Kernels::Elementwise, include_bytes!("../../../kernels/vulkan/generated/elementwise.spv")),
            (Kernels::Fixed, include_bytes!("../../../kernels/vulkan/generated/fixed.spv")),
            (Kernels::Integers, include_bytes!("../../../kernels/vulkan/generated/integers.spv")),
            (Kernels::Lines, include_bytes!("../../../kernels/vulkan/generated/lines.spv")),
            (Kernels::Matmul, include_bytes!("../../../kernels/vulkan/generated/matmul.spv")),
            (Kernels::Moves, include_bytes!("../../../kernels/vulkan/generated/moves.spv")),
            (Kernels::Quantized, include_bytes!("../../../kernels/vulkan/generated/quantized.spv")),
            (Kernels::Probe, include_bytes!("../../../kernels/vulkan/generated/probe.spv")),
            (Kernels::Matrices, include_bytes!("../../../kernels/vulkan/generated/matrices.spv")),
        ];
        for (shader, bytes) in compiled {
            let unpacked: Vec<u8> = code(shader).unwrap().iter().flat_map(|word| word.to_le_bytes()).collect();
            assert!(unpacked == bytes, "{shader:?}");
        }
    }

    #[test]
    fn an_end_too_soon_is_seen() {
        assert!(Unpacker::new(&PACKED[..PACKED.len() / 2]).and_then(Unpacker::modules).is_none());
    }
}
