//! AGPU binaries: a header, then instructions. Each instruction states its number of operands.

use super::code::{Code, Instruction, Kind};
use super::fault::{Reader, invalid};
use super::opcodes::Opcode;
use crate::error::{Result, fail};

/// The first bytes of an AGPU binary.
pub(super) const MAGIC: &[u8] = b"AGPU";

/// The smallest size of an instruction in bytes.
const SMALLEST: usize = 5;

/// Decodes a whole binary that begins at offset `base` of its file.
pub(super) fn decode(bytes: &[u8], base: usize) -> Result<Code> {
    let mut reader = Reader::new(bytes, base);
    let at = reader.here();
    if reader.take(4, "the magic")? != MAGIC {
        return Err(invalid(at, format_args!("not an AGPU program: it must begin with 'AGPU'")));
    }
    reader.version("AGPU")?;
    let count = reader.u16("the instruction count")? as usize;
    // The file may claim any count. The allocation is bounded by the bytes that follow.
    let mut instructions = Vec::with_capacity(count.min(reader.left() / SMALLEST));
    for _ in 0..count {
        instructions.push(instruction(&mut reader)?);
    }
    reader.finish(&format!("the {count} instructions that the header announces"))?;
    Ok(Code { instructions, ..Code::default() })
}

/// Decodes instructions to the end of the bytes, as `.hex` text stores them.
pub(super) fn decode_stream(bytes: &[u8]) -> Result<Code> {
    let mut reader = Reader::new(bytes, 0);
    let mut instructions = Vec::new();
    while reader.left() > 0 {
        instructions.push(instruction(&mut reader)?);
    }
    Ok(Code { instructions, ..Code::default() })
}

fn instruction(reader: &mut Reader<'_>) -> Result<Instruction> {
    let at = reader.here();
    let number = reader.u32("an opcode")?;
    let Some(opcode) = Opcode::find(number).filter(|opcode| opcode.is_gpu()) else {
        return Err(invalid(at, format_args!("unknown AGPU opcode {number:08X}")));
    };
    let count = reader.u8("an operand count")? as usize;
    opcode.check_count(at, count)?;
    let mut operands = Vec::with_capacity(count);
    for operand in opcode.operands {
        operands.push(reader.u32(&format!("{}'s operand {}", opcode.name, operand.name()))?);
    }
    Ok(Instruction { at, kind: Kind::Plain(opcode, operands) })
}

/// Encodes each instruction to bytes. Returns `unsupported` if AGPU can't express the program.
pub(super) fn encode_instructions(code: &Code) -> Result<Vec<Vec<u8>>> {
    if !code.is_agpu() {
        fail!(Unsupported, "the program has tensors or runtime opcodes, which AGPU can't hold; encode it as .adead");
    }
    let encoded = code.instructions.iter().filter_map(|instruction| match &instruction.kind {
        Kind::Plain(opcode, operands) => {
            let mut bytes = opcode.number.to_le_bytes().to_vec();
            bytes.push(operands.len() as u8);
            bytes.extend(operands.iter().flat_map(|operand| operand.to_le_bytes()));
            Some(bytes)
        }
        Kind::Operation(_) => None,
    });
    Ok(encoded.collect())
}

/// Encodes a whole binary.
pub(super) fn encode(code: &Code) -> Result<Vec<u8>> {
    let instructions = encode_instructions(code)?;
    let Ok(count) = u16::try_from(instructions.len()) else {
        fail!(Unsupported, "AGPU holds at most 65535 instructions and the program has {}", instructions.len());
    };
    let mut bytes = MAGIC.to_vec();
    bytes.extend(1u16.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    bytes.extend(instructions.into_iter().flatten());
    Ok(bytes)
}
