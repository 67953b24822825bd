//! The text form: an assembler, and a disassembler that inverts it.

use super::code::{Code, Declared, Instruction, Kind, Operation, Role};
use super::fault::{Where, invalid, invalid_because};
use super::opcodes::{Action, Opcode, OperandKind};
use super::{Format, hex};
use crate::contract::{bf16_from_f32, f16_from_f32};
use crate::dtype::DType;
use crate::error::Result;
use crate::operand::Meta;
use crate::ops::Op;
use crate::ops::{parse_f32, parse_f64};
use crate::shape::Shape;
use crate::tensor::Tensor;
use std::collections::HashMap;
use std::fmt::Write;

/// Stands for an operand that is left out.
const ABSENT: &str = "-";

/// Returns the lines with content, without their comments (from `;`), each with its number from 1.
pub(super) fn lines(source: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let source = source.strip_prefix(b"\xef\xbb\xbf").unwrap_or(source);
    let cut = |line: &'_ [u8]| line.iter().position(|&byte| byte == b';').unwrap_or(line.len());
    source
        .split(|&byte| byte == b'\n')
        .enumerate()
        .map(move |(i, line)| (i + 1, line[..cut(line)].trim_ascii()))
        .filter(|(_, line)| !line.is_empty())
}

/// Whether a line is the first line of program text. The value says whether it is AGPU text.
fn header(line: &[u8]) -> Option<bool> {
    match line.split(u8::is_ascii_whitespace).next() {
        Some(b".agpu") => Some(true),
        Some(b".adead") => Some(false),
        _ => None,
    }
}

struct Assembler<'a> {
    code: Code,
    names: HashMap<&'a str, usize>,
    /// Whether opcodes without a prefix are AGPU's.
    gpu: bool,
    /// The bytes of the last constant, while further lines may continue it.
    contents: Option<Vec<u8>>,
}

/// Decodes text of either form, or `.hex`.
pub(super) fn decode(bytes: &[u8]) -> Result<(Code, Format)> {
    match lines(bytes).next() {
        Some((_, line)) if header(line).is_some() => Ok((assemble(bytes)?, Format::Text)),
        Some((_, line)) if hex::looks_like(line) => Ok((hex::decode(bytes)?, Format::Hex)),
        _ => Err(invalid(
            Where::Byte(0),
            format_args!(
                "not a recognised program: it begins with '{}'; .adead, AGPU and AHYB files begin with their names, .hex text \
                 with an offset and a colon, program text with '.adead 1' or '.agpu 1'",
                bytes[..bytes.len().min(16)].escape_ascii()
            ),
        )),
    }
}

/// Assembles text.
pub(super) fn assemble(source: &[u8]) -> Result<Code> {
    let mut assembler = None;
    for (number, line) in lines(source) {
        let at = Where::Line(number);
        let Ok(line) = std::str::from_utf8(line) else {
            return Err(invalid(at, format_args!("the line is not UTF-8")));
        };
        // Messages quote lines. A control character in them could move the terminal's cursor.
        if line.chars().any(|char| char.is_control() && char != '\t') {
            return Err(invalid(at, format_args!("the line holds control characters")));
        }
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match (&mut assembler, header(line.as_bytes())) {
            (None, Some(gpu)) if words.get(1..) == Some(&["1"]) => {
                assembler = Some(Assembler { code: Code::default(), names: HashMap::new(), gpu, contents: None });
            }
            (None, Some(_)) => return Err(invalid(at, format_args!("'{line}': this version reads '{} 1'", words[0]))),
            (None, None) => return Err(invalid(at, format_args!("program text begins with '.adead 1' or '.agpu 1'"))),
            (Some(assembler), _) => assembler.line(at, &words)?,
        }
    }
    match assembler {
        Some(mut assembler) => {
            assembler.finish_constant()?;
            Ok(assembler.code)
        }
        None => Err(invalid(Where::Line(1), format_args!("the program text is empty"))),
    }
}

impl<'a> Assembler<'a> {
    fn line(&mut self, at: Where, words: &[&'a str]) -> Result<()> {
        if let ["=", data @ ..] = words {
            return self.contents(at, data);
        }
        self.finish_constant()?;
        if let [target, "=", op, rest @ ..] = words {
            return self.call(at, target, op, rest);
        }
        match *words {
            [word, name, kind, ref data @ ..] if Role::ALL.iter().any(|role| role.word() == word) => {
                self.declare(at, word, name, kind, data)
            }
            [word, ref operands @ ..] => self.plain(at, word, operands),
            [] => Ok(()),
        }
    }

    fn declare(&mut self, at: Where, word: &str, name: &'a str, kind: &str, data: &[&str]) -> Result<()> {
        let role = Role::ALL.into_iter().find(|role| role.word() == word).unwrap_or(Role::Temporary);
        if self.gpu {
            return Err(invalid(
                at,
                format_args!("an '.agpu' program has registers and no tensors; begin it with '.adead 1'"),
            ));
        }
        let meta = parse_meta(kind)
            .ok_or_else(|| {
                invalid(at, format_args!("'{kind}' is not a dtype and shape; write them as f32[2,3], without spaces"))
            })?
            .map_err(|error| invalid_because(at, error))?;
        match (role, data) {
            (Role::Constant, ["=", data @ ..]) => {
                self.contents = Some(Vec::new());
                self.code.tensors.push(Declared { at, name: name.into(), role, meta, data: None });
                self.contents(at, data)?;
            }
            (Role::Constant, _) => {
                return Err(invalid(at, format_args!("'{name}' needs its contents: = and the elements")));
            }
            (_, []) => self.code.tensors.push(Declared { at, name: name.into(), role, meta, data: None }),
            _ => return Err(invalid(at, format_args!("'{}' after the {word} '{name}'", data.join(" ")))),
        }
        self.names.insert(name, self.code.tensors.len() - 1);
        Ok(())
    }

    /// Adds elements to the last constant.
    fn contents(&mut self, at: Where, words: &[&str]) -> Result<()> {
        let (Some(bytes), Some(tensor)) = (&mut self.contents, self.code.tensors.last()) else {
            return Err(invalid(at, format_args!("'=' continues a constant, and there is none before it")));
        };
        for word in words {
            let Some(bits) = parse_element(word, tensor.meta.dtype) else {
                let (dtype, digits) = (tensor.meta.dtype, tensor.meta.dtype.size() * 2);
                let text = format!(
                    "'{word}' is not an element of {dtype}: {digits} hexadecimal digits, or a decimal with a '.'"
                );
                return Err(invalid(at, format_args!("{text}")));
            };
            // Native byte order, from the low bytes of the pattern.
            match tensor.meta.dtype.size() {
                1 => bytes.push(bits as u8),
                2 => bytes.extend((bits as u16).to_ne_bytes()),
                4 => bytes.extend((bits as u32).to_ne_bytes()),
                _ => bytes.extend(bits.to_ne_bytes()),
            }
        }
        Ok(())
    }

    fn finish_constant(&mut self) -> Result<()> {
        let (Some(bytes), Some(tensor)) = (self.contents.take(), self.code.tensors.last_mut()) else {
            return Ok(());
        };
        let Meta { dtype, shape } = tensor.meta;
        if bytes.len() != tensor.meta.bytes() {
            let (wanted, given) = (shape.elements(), bytes.len() / dtype.size());
            let text = format!("'{}' is {dtype}{shape}: it has {wanted} elements, but got {given}", tensor.name);
            return Err(invalid(tensor.at, format_args!("{text}")));
        }
        tensor.data = Some(Tensor::from_bytes(&bytes, dtype, shape.dims())?);
        Ok(())
    }

    fn tensor(&self, at: Where, name: &str) -> Result<u32> {
        match self.names.get(name) {
            Some(&index) => Ok(index as u32),
            None => Err(invalid(at, format_args!("no tensor is named '{name}'"))),
        }
    }

    fn call(&mut self, at: Where, target: &str, op: &str, rest: &[&str]) -> Result<()> {
        let output = self.tensor(at, target)?;
        let op = Op::from_name(op).map_err(|error| invalid_because(at, error))?;
        let split = rest.iter().position(|word| word.contains('=')).unwrap_or(rest.len());
        let inputs = rest[..split]
            .iter()
            .map(|&word| if word == ABSENT { Ok(None) } else { self.tensor(at, word).map(Some) })
            .collect::<Result<_>>()?;
        let call = Operation::new(at, op, &rest[split..].join(" "), inputs, output)?;
        self.code.instructions.push(Instruction { at, kind: Kind::Operation(Box::new(call)) });
        Ok(())
    }

    fn plain(&mut self, at: Where, word: &str, operands: &[&str]) -> Result<()> {
        let (name, gpu) = match word.strip_prefix("gpu.") {
            Some(name) if !self.gpu => (name, true),
            _ => (word, self.gpu),
        };
        let Some(opcode) = Opcode::find_text(name, gpu) else {
            return Err(invalid(at, format_args!("unknown opcode '{word}'")));
        };
        if let Action::Operation(op) = opcode.action {
            return Err(invalid(at, format_args!("write it as an assignment: dst = {op} …")));
        }
        opcode.check_count(at, operands.len())?;
        let mut numbers = Vec::with_capacity(operands.len());
        for (text, operand) in operands.iter().zip(opcode.operands) {
            let number = match operand.kind {
                OperandKind::Tensor => Some(self.tensor(at, text)?),
                OperandKind::Register => text.strip_prefix('r').and_then(parse_number),
                OperandKind::Address => text.strip_prefix("0x").and_then(|hex| u32::from_str_radix(hex, 16).ok()),
                OperandKind::Number => parse_number(text),
                OperandKind::Bits => parse_bits(text),
            };
            let Some(number) = number else {
                let example = match operand.kind {
                    OperandKind::Register => "a register such as r0",
                    OperandKind::Address => "a slot such as 0x1000",
                    OperandKind::Bits => "a number such as 0.5 or 0x3f000000",
                    _ => "a number from 0 to 4294967295",
                };
                return Err(invalid(at, format_args!("{name}: {} is '{text}'; write {example}", operand.name())));
            };
            numbers.push(number);
        }
        self.code.instructions.push(Instruction { at, kind: Kind::Plain(opcode, numbers) });
        Ok(())
    }
}

fn parse_number(text: &str) -> Option<u32> {
    // `parse` accepts a plus sign, but the disassembler would not write it again.
    if text.starts_with('+') { None } else { text.parse().ok() }
}

fn parse_bits(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => parse_f32(text).map(f32::to_bits),
    }
}

fn parse_element(text: &str, dtype: DType) -> Option<u64> {
    if text.contains('.') {
        let value = parse_f32(text)?;
        return match dtype {
            DType::F32 => Some(value.to_bits().into()),
            DType::F16 => Some(f16_from_f32(value).into()),
            DType::BF16 => Some(bf16_from_f32(value).into()),
            DType::F64 => parse_f64(text).map(f64::to_bits),
            _ => None,
        };
    }
    let digits = text.len() == dtype.size() * 2 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if digits { u64::from_str_radix(text, 16).ok() } else { None }
}

fn parse_meta(text: &str) -> Option<Result<Meta>> {
    let (dtype, dims) = text.strip_suffix(']')?.split_once('[')?;
    let dims: Option<Vec<usize>> = match dims {
        "" => Some(Vec::new()),
        _ => dims.split(',').map(|dim| dim.parse().ok()).collect(),
    };
    let dims = dims?;
    Some(dtype.parse().and_then(|dtype| Ok(Meta::new(dtype, Shape::new(&dims)?))))
}

fn meta_text(meta: &Meta) -> String {
    let dims: Vec<String> = meta.shape.dims().iter().map(usize::to_string).collect();
    format!("{}[{}]", meta.dtype, dims.join(","))
}

/// Writes the whole program as text. `agpu` is [`Code::is_agpu`].
pub(super) fn disassemble(code: &Code, agpu: bool) -> String {
    let mut out = String::from(if agpu { ".agpu 1\n" } else { ".adead 1\n" });
    for tensor in &code.tensors {
        // Writing to a String can't fail, here and below.
        let _ = write!(out, "{} {} {}", tensor.role.word(), tensor.name, meta_text(&tensor.meta));
        if let Some(data) = &tensor.data {
            let size = data.dtype().size();
            out.push_str(" =");
            for (i, element) in data.bytes().chunks_exact(size).enumerate() {
                if i > 0 && i % 8 == 0 {
                    out.push_str("\n  =");
                }
                out.push(' ');
                let digit = |byte: &u8| write!(out, "{byte:02x}");
                let _ = if cfg!(target_endian = "little") {
                    element.iter().rev().try_for_each(digit)
                } else {
                    element.iter().try_for_each(digit)
                };
            }
        }
        out.push('\n');
    }
    for instruction in &code.instructions {
        out += &line(code, agpu, instruction);
        out.push('\n');
    }
    out
}

/// Writes one instruction as text.
pub(super) fn line(code: &Code, agpu: bool, instruction: &Instruction) -> String {
    let name = |index: u32| code.tensors.get(index as usize).map_or("?", |tensor| tensor.name.as_str());
    match &instruction.kind {
        Kind::Operation(call) => {
            let mut out = format!("{} = {}", name(call.output), call.op);
            for input in &call.inputs {
                let _ = write!(out, " {}", input.map_or(ABSENT, name));
            }
            if !call.text.is_empty() {
                let _ = write!(out, " {}", call.text);
            }
            out
        }
        Kind::Plain(opcode, operands) => {
            let mut out = String::from(if opcode.is_gpu() && !agpu { "gpu." } else { "" });
            out += &opcode.name.to_ascii_lowercase();
            for (&value, operand) in operands.iter().zip(opcode.operands) {
                let float = f32::from_bits(value);
                let _ = match operand.kind {
                    OperandKind::Tensor => write!(out, " {}", name(value)),
                    OperandKind::Register => write!(out, " r{value}"),
                    OperandKind::Address => write!(out, " {value:#x}"),
                    OperandKind::Number => write!(out, " {value}"),
                    OperandKind::Bits if float.is_nan() => write!(out, " {value:#010x}"),
                    OperandKind::Bits => write!(out, " {float:?}"),
                };
            }
            out
        }
    }
}
