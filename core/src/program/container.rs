//! The `.adead` container. `docs/program-format.md` describes every byte; this code follows the document from top to bottom.

use super::code::{Code, Declared, Instruction, Kind, Operation, Role, check_name};
use super::crc::crc32;
use super::fault::{Reader, Where, invalid, invalid_because};
use super::opcodes::{Action, CALL, IN_PLACE, Opcode, OperandKind, TABLE};
use crate::dtype::DType;
use crate::error::Result;
use crate::operand::Meta;
use crate::ops::Op;
use crate::shape::{MAX_RANK, Shape};
use crate::tensor::Tensor;

/// The first bytes of an `.adead` file. The line ending and the control character reveal a file that was copied as text.
pub(super) const MAGIC: &[u8] = b"ADEAD\r\n\x1a";

const HEADER: usize = 64;
const TENSOR: usize = 80;
const INSTRUCTION: usize = 20;
/// Constants, and their section, begin at multiples of this.
const ALIGNMENT: usize = 64;
/// Stands for an operand that is left out.
const ABSENT: u32 = u32::MAX;

/// The attributes of each value of MATMUL's flags.
const MATMUL_FLAGS: [&str; 4] = ["", "trans_a=1", "trans_b=1", "trans_a=1 trans_b=1"];

/// Decodes a whole file.
pub(super) fn decode(bytes: &[u8]) -> Result<Code> {
    let mut reader = Reader::new(bytes, 0);
    let mut header = Reader::new(reader.take(HEADER as u64, "the header")?, 0);
    header.take(MAGIC.len() as u64, "the magic")?;
    header.version(".adead")?;
    zero(&mut header, 2, "the flags")?;
    let tensors = header.u32("the tensor count")?;
    let instructions = header.u32("the instruction count")?;
    let operands = header.u32("the operand count")?;
    let attributes = header.u32("the attribute bytes")?;
    let names = header.u32("the name bytes")?;
    let constants = header.u64("the constant bytes")?;
    let at = header.here();
    let size = header.u64("the file size")?;
    zero(&mut header, 16, "the reserved bytes")?;
    if size != bytes.len() as u64 {
        return Err(invalid(at, format_args!("the header says {size} bytes and the file has {}", bytes.len())));
    }

    // Every section must be complete before anything is decoded. So decoding allocates no more than the file's length.
    let mut tensors = Reader::new(reader.take(u64::from(tensors) * TENSOR as u64, "the tensor table")?, HEADER);
    let at = reader.offset();
    let mut names = Reader::new(reader.take(names.into(), "the names")?, at);
    let at = reader.offset();
    let mut code = Reader::new(reader.take(u64::from(instructions) * INSTRUCTION as u64, "the instructions")?, at);
    let at = reader.offset();
    let mut operands = Reader::new(reader.take(u64::from(operands) * 4, "the operand list")?, at);
    let at = reader.offset();
    let mut attributes = Reader::new(reader.take(attributes.into(), "the attribute text")?, at);
    let padding = reader.offset().next_multiple_of(ALIGNMENT) - reader.offset();
    zero(&mut reader, padding as u64, "the padding before the constants")?;
    let at = reader.offset();
    let mut constants = Reader::new(reader.take(constants, "the constants")?, at);
    let at = reader.here();
    let checksum = reader.u32("the checksum")?;
    reader.finish("the checksum")?;
    let found = crc32(&bytes[..bytes.len() - 4]);
    if checksum != found {
        return Err(invalid(at, format_args!("the checksum is {checksum:08x} and the file's bytes have {found:08x}")));
    }

    let mut program = Code::default();
    while tensors.left() > 0 {
        program.tensors.push(tensor(&mut tensors, &mut names, &mut constants)?);
    }
    names.finish("the last tensor's name")?;
    constants.finish("the last constant")?;
    while code.left() > 0 {
        program.instructions.push(instruction(&mut code, &mut operands, &mut attributes, program.tensors.len())?);
    }
    operands.finish("the last instruction's operands")?;
    attributes.finish("the last instruction's attributes")?;
    Ok(program)
}

/// Checks that the next bytes are zero.
fn zero(reader: &mut Reader<'_>, count: u64, what: &str) -> Result<()> {
    let at = reader.here();
    match reader.take(count, what)?.iter().all(|&byte| byte == 0) {
        true => Ok(()),
        false => Err(invalid(at, format_args!("{what} must be zero"))),
    }
}

fn tensor(table: &mut Reader<'_>, names: &mut Reader<'_>, constants: &mut Reader<'_>) -> Result<Declared> {
    let at = table.here();
    let length = table.u16("a name's length")?;
    let dtype = table.u8("a dtype")?;
    let role = table.u8("a role")?;
    let rank = table.u8("a rank")? as usize;
    zero(table, 3, "the bytes after a rank")?;
    let mut dims = [0; MAX_RANK];
    for (i, dim) in dims.iter_mut().enumerate() {
        let value = table.u64("a dimension")?;
        *dim = usize::try_from(value).map_err(|_| invalid(at, format_args!("dimension {i} is {value}")))?;
    }
    let data_at = table.here();
    let data = table.u64("a constant's offset")?;

    let name = names.take(length.into(), "a tensor's name")?;
    let name = String::from_utf8(name.to_vec())
        .map_err(|_| invalid(at, format_args!("the tensor name '{}' is not UTF-8", name.escape_ascii())))?;
    check_name(at, &name)?;
    let Some(dtype) = DType::from_code(dtype.into()) else {
        return Err(invalid(at, format_args!("'{name}': unknown dtype {dtype}")));
    };
    let Some(&role) = Role::ALL.get(role as usize) else {
        return Err(invalid(at, format_args!("'{name}': unknown role {role}")));
    };
    if rank > MAX_RANK || dims[rank..].iter().any(|&dim| dim != 0) {
        return Err(invalid(
            at,
            format_args!("'{name}': rank {rank} with the dimensions {dims:?}; unused ones must be 0"),
        ));
    }
    let shape = Shape::new(&dims[..rank]).map_err(|error| invalid_because(at, error))?;
    let meta = Meta::new(dtype, shape);
    let data = if role == Role::Constant {
        Some(constant(&name, meta, data, data_at, constants)?)
    } else if data == 0 {
        None
    } else {
        return Err(invalid(data_at, format_args!("'{name}' is not a constant but has contents at {data:#x}")));
    };
    Ok(Declared { at, name, role, meta, data })
}

/// Reads the next constant. It must begin at the next multiple of 64 after the previous one.
fn constant(name: &str, meta: Meta, offset: u64, at: Where, constants: &mut Reader<'_>) -> Result<Tensor> {
    let before = constants.offset() as u64;
    if offset < before {
        return Err(invalid(
            at,
            format_args!("'{name}' begins at {offset:#x}, before {before:#x}: it overlaps the data there"),
        ));
    }
    let expected = before.next_multiple_of(ALIGNMENT as u64);
    if offset != expected {
        return Err(invalid(at, format_args!("'{name}' begins at {offset:#x}; it must begin at {expected:#x}")));
    }
    zero(constants, expected - before, "the padding between constants")?;
    let bytes = constants.take(meta.bytes() as u64, &format!("the constant '{name}'"))?;
    Tensor::from_bytes(&native(bytes, meta.dtype), meta.dtype, meta.shape.dims())
}

/// Converts elements between little-endian and native byte order, in either direction.
fn native(bytes: &[u8], dtype: DType) -> std::borrow::Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        return bytes.into();
    }
    bytes.chunks_exact(dtype.size()).flat_map(|element| element.iter().rev().copied()).collect()
}

fn instruction(
    code: &mut Reader<'_>,
    list: &mut Reader<'_>,
    attributes: &mut Reader<'_>,
    tensors: usize,
) -> Result<Instruction> {
    let at = code.here();
    let number = code.u32("an opcode")?;
    let mut fields = [0; IN_PLACE];
    for field in &mut fields {
        *field = code.u32("an operand")?;
    }
    let index = |index: u32| match (index as usize) < tensors {
        true => Ok(index),
        false => Err(invalid(at, format_args!("operand {index} is not a tensor: the table has {tensors}"))),
    };
    let unused = |used: usize| match fields[used..].iter().all(|&field| field == 0) {
        true => Ok(()),
        false => Err(invalid(at, format_args!("opcode {number:08X}: operand fields from {used} on must be 0"))),
    };

    if let Some(op) = number.checked_sub(CALL).and_then(Op::from_code) {
        unused(3)?;
        let [output, count, bytes, _] = fields;
        let mut words = Reader::new(list.take(u64::from(count) * 4, "a call's operands")?, 0);
        let mut inputs = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let operand = words.u32("an operand")?;
            inputs.push(if operand == ABSENT { None } else { Some(index(operand)?) });
        }
        let text_at = attributes.here();
        let raw = attributes.take(bytes.into(), "a call's attributes")?;
        let text =
            std::str::from_utf8(raw).map_err(|_| invalid(text_at, format_args!("the attributes are not UTF-8")))?;
        let call = Operation::new(at, op, text, inputs, index(output)?)?;
        if call.text != text {
            return Err(invalid(text_at, format_args!("the attributes {text:?} must be written {:?}", call.text)));
        }
        return Ok(Instruction { at, kind: Kind::Operation(Box::new(call)) });
    }

    let Some(opcode) = Opcode::find(number) else {
        return Err(invalid(at, format_args!("unknown opcode {number:08X}")));
    };
    let count = opcode.operands.len();
    if count > IN_PLACE {
        // The operands are in the list; the instruction has their number.
        unused(1)?;
        opcode.check_count(at, fields[0] as usize)?;
        let mut words = Reader::new(list.take(count as u64 * 4, "an instruction's operands")?, 0);
        let operands = (0..count).map(|_| words.u32("an operand")).collect::<Result<_>>()?;
        return Ok(Instruction { at, kind: Kind::Plain(opcode, operands) });
    }
    unused(count)?;
    for (field, operand) in fields.iter().zip(opcode.operands) {
        if operand.kind == OperandKind::Tensor {
            index(*field)?;
        }
    }
    let Action::Operation(op) = opcode.action else {
        return Ok(Instruction { at, kind: Kind::Plain(opcode, fields[..count].into()) });
    };
    let tensors = opcode.operands.iter().filter(|operand| operand.kind == OperandKind::Tensor).count();
    let flags = fields[tensors..count].first().copied().unwrap_or(0);
    let Some(text) = MATMUL_FLAGS.get(flags as usize) else {
        return Err(invalid(at, format_args!("flags {flags:#x}: bit 0 transposes a, bit 1 b, the others must be 0")));
    };
    let inputs = fields[1..tensors].iter().map(|&field| Some(field)).collect();
    Ok(Instruction { at, kind: Kind::Operation(Box::new(Operation::new(at, op, text, inputs, fields[0])?)) })
}

/// Encodes a whole file.
pub(super) fn encode(code: &Code) -> Vec<u8> {
    let (mut table, mut names) = (Vec::new(), Vec::new());
    let (mut words, mut list, mut attributes) = (Vec::<u32>::new(), Vec::<u32>::new(), Vec::new());
    for instruction in &code.instructions {
        words.extend(encode_instruction(&instruction.kind, &mut list, &mut attributes));
    }
    code.tensors.iter().for_each(|tensor| names.extend(tensor.name.bytes()));
    let before = HEADER + code.tensors.len() * TENSOR + names.len() + (words.len() + list.len()) * 4 + attributes.len();
    let start = before.next_multiple_of(ALIGNMENT);
    let mut constants: Vec<u8> = Vec::new();
    for tensor in &code.tensors {
        table.extend((tensor.name.len() as u16).to_le_bytes());
        table.extend([tensor.meta.dtype as u8, tensor.role as u8, tensor.meta.shape.rank() as u8, 0, 0, 0]);
        let dims = tensor.meta.shape.dims();
        (0..MAX_RANK).for_each(|i| table.extend((dims.get(i).copied().unwrap_or(0) as u64).to_le_bytes()));
        let offset = tensor.data.as_ref().map_or(0, |data| {
            constants.resize(constants.len().next_multiple_of(ALIGNMENT), 0);
            let offset = start + constants.len();
            constants.extend_from_slice(&native(data.bytes(), tensor.meta.dtype));
            offset as u64
        });
        table.extend(offset.to_le_bytes());
    }

    let mut bytes = MAGIC.to_vec();
    bytes.extend(1u16.to_le_bytes());
    bytes.extend(0u16.to_le_bytes());
    for count in [code.tensors.len(), code.instructions.len(), list.len(), attributes.len(), names.len()] {
        bytes.extend((count as u32).to_le_bytes());
    }
    bytes.extend((constants.len() as u64).to_le_bytes());
    bytes.extend(((start + constants.len() + 4) as u64).to_le_bytes());
    bytes.resize(HEADER, 0);
    bytes.extend(table);
    bytes.extend(names);
    bytes.extend(words.into_iter().chain(list).flat_map(u32::to_le_bytes));
    bytes.extend(attributes);
    bytes.resize(start, 0);
    bytes.extend(constants);
    let checksum = crc32(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

fn encode_instruction(kind: &Kind, list: &mut Vec<u32>, attributes: &mut Vec<u8>) -> [u32; 1 + IN_PLACE] {
    match kind {
        Kind::Plain(opcode, operands) if operands.len() > IN_PLACE => {
            list.extend(operands);
            [opcode.number, operands.len() as u32, 0, 0, 0]
        }
        Kind::Plain(opcode, operands) => filled(opcode.number, operands),
        Kind::Operation(call) => short(call).unwrap_or_else(|| {
            list.extend(call.inputs.iter().map(|input| input.unwrap_or(ABSENT)));
            attributes.extend(call.text.bytes());
            [CALL + call.op as u32, call.output, call.inputs.len() as u32, call.text.len() as u32, 0]
        }),
    }
}

fn filled(number: u32, operands: &[u32]) -> [u32; 1 + IN_PLACE] {
    let mut words = [0; 1 + IN_PLACE];
    words[0] = number;
    words[1..=operands.len()].copy_from_slice(operands);
    words
}

/// Encodes the call as an opcode of its own. Returns `None` if no such opcode expresses the whole call.
fn short(call: &Operation) -> Option<[u32; 1 + IN_PLACE]> {
    let opcode = TABLE.iter().find(|opcode| opcode.action == Action::Operation(call.op))?;
    let tensors = opcode.operands.iter().filter(|operand| operand.kind == OperandKind::Tensor).count();
    let flags = MATMUL_FLAGS.iter().position(|flags| *flags == call.text)?;
    let has_flags = tensors < opcode.operands.len();
    if call.inputs.len() + 1 != tensors || (flags > 0 && !has_flags) {
        return None;
    }
    let mut operands = vec![call.output];
    operands.extend(call.inputs.iter().copied().collect::<Option<Vec<u32>>>()?);
    if has_flags {
        operands.push(flags as u32);
    }
    Some(filled(opcode.number, &operands))
}
