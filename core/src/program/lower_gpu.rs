//! Validation of AGPU's opcodes. A register is memory whose size in bytes ALLOC fixes. An operation uses as many of its first
//! bytes as the operation's sizes require.

use super::lower::{Do, Located, Lowering, Register};
use super::opcodes::{Action, Opcode};
use crate::contract::{Activation, GeluForm};
use crate::dtype::DType;
use crate::error::Result;
use crate::operand::Meta;
use crate::ops::{Attrs, Op, Permutation};
use crate::shape::Shape;

/// Bytes of an AGPU element.
const WORD: usize = DType::F32.size();

pub(super) fn instruction(to: &mut Lowering<'_>, opcode: &Opcode, action: Action, operands: &[u32]) -> Result<()> {
    let name = opcode.name;
    match (action, operands) {
        (Action::Alloc, &[bytes, register]) => {
            let next = to.registers.len();
            let index = *to.register_index.entry(register).or_insert(next);
            if to.registers.get(index).is_some_and(|register| register.alive) {
                return Err(to.fault(format_args!("{name}: r{register} is allocated already")));
            }
            let bytes = bytes as usize;
            let cell = to.allocate(bytes, true);
            let register = Register { alive: true, cell, bytes, from: None, holds: None };
            match to.registers.get_mut(index) {
                Some(freed) => *freed = register,
                None => to.registers.push(register),
            }
        }
        (Action::Free, &[register]) => {
            let freed = alive(to, name, register)?;
            freed.alive = false;
            let cell = freed.cell;
            to.step(Do::Release(cell));
        }
        (Action::Upload, &[address, register, bytes]) => {
            let (cell, slot) = copied(to, name, register, address, bytes)?;
            let target = alive(to, name, register)?;
            (target.from, target.holds) = (Some(slot), None);
            let step = Do::Copy { from: cell, to: target.cell, bytes: bytes as usize };
            to.step(step);
        }
        (Action::Download, &[register, address, bytes]) => {
            let (cell, slot) = copied(to, name, register, address, bytes)?;
            let source = alive(to, name, register)?;
            let (from, holds) = (source.cell, source.holds);
            if let Some(meta) = holds {
                to.lowered.slots.hint(slot, meta);
            }
            to.step(Do::Copy { from, to: cell, bytes: bytes as usize });
        }
        (Action::Fill, &[register, value, bytes]) => {
            check_size(to, name, register, bytes as usize)?;
            let target = alive(to, name, register)?;
            (target.from, target.holds) = (None, None);
            let step = Do::Fill { cell: target.cell, value: value as u8, bytes: bytes as usize };
            to.step(step);
        }
        (Action::Matmul, &[a, b, c, m, n, k]) => {
            simple(to, name, Op::Matmul, Attrs::default(), &[Some((a, &[m, k])), Some((b, &[k, n]))], c)?;
        }
        (Action::Binary(op), &[a, b, c, n]) => {
            simple(to, name, op, Attrs::default(), &[Some((a, &[n])), Some((b, &[n]))], c)?;
        }
        (Action::Scale, &[src, dst, n, bits]) => {
            let attrs = Attrs { alpha: f32::from_bits(bits), ..Attrs::default() };
            simple(to, name, Op::Scale, attrs, &[Some((src, &[n]))], dst)?;
        }
        (Action::Unary(op), &[src, dst, n]) => {
            // Only gelu reads the form.
            let attrs = Attrs { form: GeluForm::Tanh, ..Attrs::default() };
            simple(to, name, op, attrs, &[Some((src, &[n]))], dst)?;
        }
        (Action::Rows(op), &[src, dst, rows, cols]) => {
            simple(to, name, op, Attrs::default(), &[Some((src, &[rows, cols]))], dst)?;
        }
        (Action::Attention, &[q, k, v, out, seq, dim]) => {
            let dims: &[u32] = &[seq, dim];
            let inputs = [q, k, v].map(|register| Some((register, dims)));
            simple(to, name, Op::Attention, Attrs::default(), &inputs, out)?;
        }
        (Action::Multihead, &[q, k, v, out, seq, dim, heads]) => {
            multihead(to, name, [q, k, v], out, [seq, dim, heads])?
        }
        (Action::Ffn, &[x, w1, w2, out, rows, dim, hidden]) => {
            let attrs = Attrs { activation: Some(Activation::Relu), ..Attrs::default() };
            let inputs: [Option<(u32, &[u32])>; 4] =
                [Some((x, &[rows, dim])), Some((w1, &[dim, hidden])), None, Some((w2, &[hidden, dim]))];
            simple(to, name, Op::Ffn, attrs, &inputs, out)?;
        }
        (Action::Embedding, &[table, ids, out, count, dim]) => {
            if dim == 0 {
                return Err(to.fault(format_args!("{name}: dim is 0, so the table's rows can't be counted")));
            }
            let rows = alive(to, name, table)?.bytes / (dim as usize * WORD);
            let table = operand(to, name, table, DType::F32, &[rows, dim as usize])?;
            let ids = operand(to, name, ids, DType::U32, &[count as usize])?;
            write(to, name, Op::Embedding, Attrs::default(), vec![Some(table), Some(ids)], out)?;
        }
        _ => opcode.check_count(to.at, operands.len())?,
    }
    Ok(())
}

/// Returns the register if it is allocated.
fn alive<'a>(to: &'a mut Lowering<'_>, name: &str, register: u32) -> Result<&'a mut Register> {
    let index = to.register_index.get(&register).copied();
    match index.and_then(|index| to.registers.get(index)) {
        Some(Register { alive: true, .. }) => Ok(&mut to.registers[index.unwrap_or_default()]),
        other => {
            let word = if other.is_some() { "was freed" } else { "was never allocated" };
            Err(to.fault(format_args!("{name}: r{register} {word}")))
        }
    }
}

fn check_size(to: &mut Lowering<'_>, name: &str, register: u32, bytes: usize) -> Result<()> {
    let has = alive(to, name, register)?.bytes;
    if bytes > has {
        return Err(to.fault(format_args!("{name}: {bytes} bytes of r{register}, which has {has}")));
    }
    Ok(())
}

/// Checks what both copies check, and returns the slot's cell and number.
fn copied(to: &mut Lowering<'_>, name: &str, register: u32, address: u32, bytes: u32) -> Result<(usize, usize)> {
    check_size(to, name, register, bytes as usize)?;
    if !(bytes as usize).is_multiple_of(WORD) {
        return Err(to.fault(format_args!("{name}: {bytes} bytes; a slot's size is a multiple of {WORD}")));
    }
    match to.slot(address) {
        Some((cell, slot)) if to.lowered.slots.list[slot].meta.bytes() == to.lowered.slots.list[slot].bytes => {
            Ok((cell, slot))
        }
        _ => Err(to.fault(format_args!("{name}: no tensor can have the size of the slot {address:#x}"))),
    }
}

fn described(to: &Lowering<'_>, dtype: DType, dims: &[usize]) -> Result<Meta> {
    match Shape::new(dims) {
        Ok(shape) => Ok(Meta::new(dtype, shape)),
        Err(error) => Err(to.fault(format_args!("{}", error.message()))),
    }
}

/// Makes an operand from a register that is read.
fn operand(to: &mut Lowering<'_>, name: &str, register: u32, dtype: DType, dims: &[usize]) -> Result<Located> {
    let meta = described(to, dtype, dims)?;
    let Register { cell, bytes, from, .. } = *alive(to, name, register)?;
    if meta.bytes() > bytes {
        let takes = meta.bytes();
        return Err(to.fault(format_args!("{name}: {meta:?} takes {takes} bytes and r{register} has {bytes}")));
    }
    if let Some(slot) = from {
        to.lowered.slots.hint(slot, meta);
    }
    Ok(Located { cell, meta })
}

/// Adds an operation on f32 registers with these dimensions.
fn simple(
    to: &mut Lowering<'_>,
    name: &str,
    op: Op,
    attrs: Attrs,
    inputs: &[Option<(u32, &[u32])>],
    out: u32,
) -> Result<()> {
    let mut operands = Vec::new();
    for input in inputs {
        operands.push(match input {
            Some((register, dims)) => {
                let dims: Vec<usize> = dims.iter().map(|&dim| dim as usize).collect();
                Some(operand(to, name, *register, DType::F32, &dims)?)
            }
            None => None,
        });
    }
    write(to, name, op, attrs, operands, out)
}

/// Adds an operation whose result is written to the beginning of a register.
fn write(
    to: &mut Lowering<'_>,
    name: &str,
    op: Op,
    attrs: Attrs,
    inputs: Vec<Option<Located>>,
    out: u32,
) -> Result<()> {
    let meta = to.infer(op, &attrs, &inputs)?;
    let output = result(to, name, out, meta)?;
    to.command(op, attrs, inputs, output)
}

/// Makes a result from the beginning of a register.
fn result(to: &mut Lowering<'_>, name: &str, register: u32, meta: Meta) -> Result<Located> {
    let target = alive(to, name, register)?;
    let (cell, bytes) = (target.cell, target.bytes);
    (target.from, target.holds) = (None, Some(meta));
    if meta.bytes() > bytes {
        let takes = meta.bytes();
        return Err(
            to.fault(format_args!("{name}: the result {meta:?} takes {takes} bytes and r{register} has {bytes}"))
        );
    }
    Ok(Located { cell, meta })
}

/// Heads lie side by side in a row. Each operand is transposed to `[heads, seq, head_dim]`, attention runs per head, and the
/// result is transposed back. The copies for that count as memory of the program.
fn multihead(to: &mut Lowering<'_>, name: &str, inputs: [u32; 3], out: u32, [seq, dim, heads]: [u32; 3]) -> Result<()> {
    if heads == 0 || !dim.is_multiple_of(heads) {
        return Err(to.fault(format_args!("{name}: {dim} columns can't be split into {heads} heads")));
    }
    let (whole, split) = ([seq as usize, dim as usize], [seq as usize, heads as usize, (dim / heads) as usize]);
    let swap = Attrs { perm: Permutation::new(&[1, 0, 2])?, ..Attrs::default() };
    let mut operands = Vec::new();
    for register in inputs {
        operands.push(operand(to, name, register, DType::F32, &whole)?);
    }
    let joined = result(to, name, out, operands[0].meta)?;
    let split = described(to, DType::F32, &split)?;
    if operands.iter().any(|operand| operand.cell == joined.cell) {
        return Err(to.fault(format_args!("{name}: the result would overwrite an operand; it needs its own memory")));
    }
    let mut separate = Vec::new();
    for operand in operands {
        let input = vec![Some(Located { meta: split, ..operand })];
        let meta = to.infer(Op::Transpose, &swap, &input)?;
        let scratch = Located { cell: to.allocate(meta.bytes(), false), meta };
        to.command(Op::Transpose, swap, input, scratch)?;
        separate.push(Some(scratch));
    }
    let meta = to.infer(Op::Attention, &Attrs::DEFAULT, &separate)?;
    let attended = Located { cell: to.allocate(meta.bytes(), false), meta };
    let scratch: Vec<usize> = separate.iter().flatten().map(|operand: &Located| operand.cell).collect();
    to.command(Op::Attention, Attrs::default(), separate, attended)?;
    scratch.into_iter().for_each(|cell| to.step(Do::Release(cell)));
    to.command(Op::Transpose, swap, [Some(attended)].into_iter().collect(), Located { meta: split, ..joined })?;
    to.step(Do::Release(attended.cell));
    Ok(())
}
