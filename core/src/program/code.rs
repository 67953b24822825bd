//! The decoded form of every format: a table of tensors and a list of instructions.

use super::fault::{Where, invalid, invalid_because};
use super::opcodes::{Action, Opcode};
use crate::error::Result;
use crate::operand::Meta;
use crate::ops::{Attrs, Op};
use crate::tensor::Tensor;

/// The longest name of a tensor, in bytes.
pub(super) const MAX_NAME: usize = 64;

/// What a tensor of the table is for. `.adead` files store these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Role {
    /// The caller supplies it. Read only.
    Input = 0,
    /// The caller receives it. The program must write every output.
    Output = 1,
    /// Its contents are in the program. Read only.
    Constant = 2,
    /// It exists from its first write until FREE.
    Temporary = 3,
}

impl Role {
    pub const ALL: [Role; 4] = [Role::Input, Role::Output, Role::Constant, Role::Temporary];

    /// The role's keyword in text.
    pub const fn word(self) -> &'static str {
        match self {
            Role::Input => "input",
            Role::Output => "output",
            Role::Constant => "const",
            Role::Temporary => "temp",
        }
    }
}

/// An entry of the tensor table.
pub(super) struct Declared {
    pub at: Where,
    pub name: String,
    pub role: Role,
    pub meta: Meta,
    /// The contents of a constant.
    pub data: Option<Tensor>,
}

/// An instruction and its place in the source.
pub(super) struct Instruction {
    pub at: Where,
    pub kind: Kind,
}

/// An instruction.
pub(super) enum Kind {
    /// A fixed opcode with its numeric operands. Operands of kind `Tensor` are indexes into the table.
    Plain(&'static Opcode, Vec<u32>),
    /// An operation of the op table.
    Operation(Box<Operation>),
}

/// An operation on tensors of the table.
pub(super) struct Operation {
    pub op: Op,
    pub attrs: Attrs,
    /// The attributes as written: `name=value`, separated by one space.
    pub text: String,
    pub inputs: Vec<Option<u32>>,
    pub output: u32,
}

/// A decoded program, not yet validated.
#[derive(Default)]
pub(super) struct Code {
    pub tensors: Vec<Declared>,
    pub instructions: Vec<Instruction>,
}

impl Operation {
    /// Makes a call from attributes written as `name=value` words.
    pub fn new(at: Where, op: Op, text: &str, inputs: Vec<Option<u32>>, output: u32) -> Result<Operation> {
        let mut attrs = Attrs::default();
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        for (i, word) in words.iter().enumerate() {
            // Other characters could not be written in the text form, so they would be lost in a round trip.
            let clean = word.bytes().all(|byte| byte.is_ascii_graphic() && byte != b';');
            let Some((name, value)) = word.split_once('=').filter(|_| clean) else {
                return Err(invalid(at, format_args!("{op}: {word:?} is not an attribute; write name=value")));
            };
            if words[..i].iter().any(|other| other.split_once('=').is_some_and(|(other, _)| other == name)) {
                return Err(invalid(at, format_args!("{op}: the attribute {name} is given twice")));
            }
            attrs.set(op, name, value).map_err(|error| invalid_because(at, error))?;
        }
        Ok(Operation { op, attrs, text: words.join(" "), inputs, output })
    }
}

impl Instruction {
    /// The instruction's name in text.
    pub fn name(&self) -> String {
        match &self.kind {
            Kind::Plain(opcode, _) => opcode.name.to_ascii_lowercase(),
            Kind::Operation(call) => call.op.name().into(),
        }
    }
}

impl Code {
    /// Returns whether the whole program is AGPU.
    pub fn is_agpu(&self) -> bool {
        self.tensors.is_empty()
            && self.instructions.iter().all(|i| matches!(&i.kind, Kind::Plain(opcode, _) if opcode.is_gpu()))
    }

    /// Checks the rules of the table and the list that hold for every format.
    pub fn check(&self) -> Result<()> {
        let calls = self.instructions.iter().map(|instruction| match &instruction.kind {
            Kind::Operation(call) => (call.inputs.len(), call.text.len()),
            Kind::Plain(_, operands) => (operands.len(), 0),
        });
        let (operands, text) = calls.fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
        let names: usize = self.tensors.iter().map(|tensor| tensor.name.len()).sum();
        if [operands, text, names, self.tensors.len(), self.instructions.len()].iter().any(|&n| n >= u32::MAX as usize)
        {
            return Err(invalid(Where::Byte(0), format_args!("the program has more parts than its tables can count")));
        }
        // The map's values are unused. With values of usize it has the same type as other maps, so this code is compiled once.
        let mut names = std::collections::HashMap::<&str, usize>::new();
        for tensor in &self.tensors {
            check_name(tensor.at, &tensor.name)?;
            if names.insert(&tensor.name, 0).is_some() {
                return Err(invalid(tensor.at, format_args!("a second tensor is named '{}'", tensor.name)));
            }
        }
        for pair in self.instructions.windows(2) {
            if matches!(&pair[0].kind, Kind::Plain(opcode, _) if opcode.action == Action::End) {
                let text = format!("{} follows {}, which ends the program", pair[1].name(), pair[0].name());
                return Err(invalid(pair[1].at, format_args!("{text}")));
            }
        }
        Ok(())
    }
}

/// Checks a name: a letter or `_`, then letters, digits, `_` and `.`; at most [`MAX_NAME`] bytes.
pub(super) fn check_name(at: Where, name: &str) -> Result<()> {
    let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let rest = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.');
    if !first || !rest || name.len() > MAX_NAME {
        return Err(invalid(
            at,
            format_args!(
                "{name:?} is not a valid name: use a letter or _, then letters, digits, _ and ., at most {MAX_NAME} bytes"
            ),
        ));
    }
    Ok(())
}
