//! The opcode table: number, name, operands and meaning of every fixed opcode. Decoders, encoders, the text form, validation and
//! the test of `docs/program-format.md` all read it.

use super::fault::{Where, invalid};
use crate::error::Result;
use crate::ops::Op;

/// The kind of an operand, which decides how text writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperandKind {
    /// A register of an AGPU program: `r0`.
    Register,
    /// The address that names a slot: `0x1000`.
    Address,
    /// A count, a size or a value: `1024`.
    Number,
    /// The bits of an f32: `0.5` or `0x3f000000`.
    Bits,
    /// An entry of the tensor table: its name.
    Tensor,
}

/// One operand of an opcode.
#[derive(Debug)]
pub(super) struct OperandName {
    /// The name, padded with zeros. A pointer to it would take five times the space in the library.
    name: [u8; LONGEST],
    pub kind: OperandKind,
}

/// The length of the longest operand name.
const LONGEST: usize = 8;

impl OperandName {
    const fn new(name: &str, kind: OperandKind) -> OperandName {
        let mut bytes = [0; LONGEST];
        let mut i = 0;
        while i < name.len() {
            bytes[i] = name.as_bytes()[i];
            i += 1;
        }
        OperandName { name: bytes, kind }
    }

    /// The operand's name.
    pub fn name(&self) -> &str {
        let end = self.name.iter().position(|&byte| byte == 0).unwrap_or(LONGEST);
        std::str::from_utf8(&self.name[..end]).unwrap_or_default()
    }
}

/// What an opcode does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Does nothing.
    Nothing,
    /// Instructions before it finish before instructions after it begin.
    Barrier,
    /// Ends the program.
    End,
    /// AGPU: allocates zeroed memory for a register.
    Alloc,
    /// AGPU: frees a register's memory.
    Free,
    /// AGPU: copies from a slot to a register.
    Upload,
    /// AGPU: copies from a register to a slot.
    Download,
    /// AGPU: sets bytes to one value.
    Fill,
    /// AGPU: computes the matrix product.
    Matmul,
    /// AGPU: an elementwise operation with two operands.
    Binary(Op),
    /// AGPU: an elementwise operation with one operand.
    Unary(Op),
    /// AGPU: an operation on every row of a matrix.
    Rows(Op),
    /// AGPU: multiplies by a number.
    Scale,
    /// AGPU: attention with one head.
    Attention,
    /// AGPU: attention with several heads side by side in a row.
    Multihead,
    /// AGPU: two products with relu in between.
    Ffn,
    /// AGPU: copies rows of a table.
    Embedding,
    /// Allocates a temporary (or an output), zeroed.
    TensorAlloc,
    /// Frees a temporary's memory.
    TensorFree,
    /// Copies an input or a constant.
    Load,
    /// Copies into an output.
    Store,
    /// An operation of the op table on tensors.
    Operation(Op),
}

/// One row of the table.
#[derive(Debug)]
pub(super) struct Opcode {
    pub number: u32,
    pub name: &'static str,
    pub operands: &'static [OperandName],
    pub action: Action,
}

/// `CALL + Op as u32` is the opcode of any operation of the op table, with any operands and attributes.
pub(super) const CALL: u32 = 0x0004_0000;

/// The number of operands that a fixed-size instruction holds in place.
pub(super) const IN_PLACE: usize = 4;

macro_rules! opcodes {
    ($($number:literal $name:ident $action:expr, [$($operand:ident $kind:ident),*];)*) => {
        /// Every fixed opcode.
        pub(super) static TABLE: &[Opcode] = &[$(Opcode {
            number: $number,
            name: stringify!($name),
            operands: &[$(OperandName::new(stringify!($operand), OperandKind::$kind)),*],
            action: $action,
        },)*];
    };
}

opcodes! {
    0xC0DA_0000 NOP Action::Nothing, [];
    0xC0DA_0001 INIT Action::Barrier, [];
    0xC0DA_0002 SHUTDOWN Action::Barrier, [];
    0xC0DA_0010 ALLOC Action::Alloc, [bytes Number, register Register];
    0xC0DA_0011 FREE Action::Free, [register Register];
    0xC0DA_0012 COPY_H2D Action::Upload, [address Address, register Register, bytes Number];
    0xC0DA_0013 COPY_D2H Action::Download, [register Register, address Address, bytes Number];
    0xC0DA_0014 MEMSET Action::Fill, [register Register, value Number, bytes Number];
    0xC0DA_0020 MATMUL Action::Matmul, [a Register, b Register, c Register, m Number, n Number, k Number];
    0xC0DA_0021 ADD Action::Binary(Op::Add), [a Register, b Register, c Register, elements Number];
    0xC0DA_0022 SUB Action::Binary(Op::Sub), [a Register, b Register, c Register, elements Number];
    0xC0DA_0023 MUL Action::Binary(Op::Mul), [a Register, b Register, c Register, elements Number];
    0xC0DA_0024 DIV Action::Binary(Op::Div), [a Register, b Register, c Register, elements Number];
    0xC0DA_0025 SCALE Action::Scale, [src Register, dst Register, elements Number, factor Bits];
    0xC0DA_0030 RELU Action::Unary(Op::Relu), [src Register, dst Register, elements Number];
    0xC0DA_0031 SIGMOID Action::Unary(Op::Sigmoid), [src Register, dst Register, elements Number];
    0xC0DA_0032 TANH Action::Unary(Op::Tanh), [src Register, dst Register, elements Number];
    0xC0DA_0033 SOFTMAX Action::Rows(Op::Softmax), [src Register, dst Register, rows Number, cols Number];
    0xC0DA_0034 GELU Action::Unary(Op::Gelu), [src Register, dst Register, elements Number];
    0xC0DA_0040 ATTENTION Action::Attention,
        [q Register, k Register, v Register, out Register, seq Number, dim Number];
    0xC0DA_0041 MULTIHEAD_ATTN Action::Multihead,
        [q Register, k Register, v Register, out Register, seq Number, dim Number, heads Number];
    0xC0DA_0042 FFN Action::Ffn,
        [x Register, w1 Register, w2 Register, out Register, rows Number, dim Number, hidden Number];
    0xC0DA_0043 LAYERNORM Action::Rows(Op::Layernorm), [src Register, dst Register, rows Number, cols Number];
    0xC0DA_0044 EMBEDDING Action::Embedding,
        [table Register, ids Register, out Register, count Number, dim Number];
    0xC0DA_00F0 SYNC Action::Barrier, [];
    0xC0DA_00F1 BARRIER Action::Barrier, [];
    0xC0DA_FFFF END Action::End, [];

    0x0000_0000 NOP Action::Nothing, [];
    0x0000_00FF HALT Action::End, [];
    0x0001_0000 ALLOC Action::TensorAlloc, [dst Tensor];
    0x0001_0001 FREE Action::TensorFree, [dst Tensor];
    0x0001_0010 LOAD Action::Load, [dst Tensor, src Tensor];
    0x0001_0011 STORE Action::Store, [src Tensor, dst Tensor];
    0x0002_0000 ADD Action::Operation(Op::Add), [dst Tensor, a Tensor, b Tensor];
    0x0002_0001 SUB Action::Operation(Op::Sub), [dst Tensor, a Tensor, b Tensor];
    0x0002_0002 MUL Action::Operation(Op::Mul), [dst Tensor, a Tensor, b Tensor];
    0x0002_0003 DIV Action::Operation(Op::Div), [dst Tensor, a Tensor, b Tensor];
    0x0003_0000 MATMUL Action::Operation(Op::Matmul), [dst Tensor, a Tensor, b Tensor, flags Number];
    0x0003_0001 TRANSPOSE Action::Operation(Op::Transpose), [dst Tensor, src Tensor];
    0x0003_0002 SOFTMAX Action::Operation(Op::Softmax), [dst Tensor, src Tensor];
    0x0003_0003 RELU Action::Operation(Op::Relu), [dst Tensor, src Tensor];

    0x564B_0001 VK_INIT Action::Barrier, [];
    0x564B_0010 VK_COMPUTE Action::Nothing, [x Number, y Number, z Number];
    0x564B_0020 VK_SUBMIT Action::Barrier, [];
    0x564B_00F0 VK_SYNC Action::Barrier, [];
}

impl Opcode {
    /// Finds the opcode with this number.
    pub fn find(number: u32) -> Option<&'static Opcode> {
        TABLE.iter().find(|opcode| opcode.number == number)
    }

    /// Finds the opcode with this name in text, among AGPU's or among the others.
    pub fn find_text(name: &str, gpu: bool) -> Option<&'static Opcode> {
        TABLE.iter().find(|opcode| opcode.is_gpu() == gpu && opcode.name.to_ascii_lowercase() == name)
    }

    /// Returns whether it is an AGPU opcode.
    pub fn is_gpu(&self) -> bool {
        self.number >> 16 == 0xC0DA
    }

    /// Returns whether it dispatches or orders Vulkan work. A run of a program has no such work.
    pub fn is_vulkan(&self) -> bool {
        self.number >> 16 == 0x564B
    }

    /// The operands' names, as messages and the documentation list them.
    pub fn signature(&self) -> String {
        self.operands.iter().map(OperandName::name).collect::<Vec<_>>().join(", ")
    }

    /// Checks the number of operands.
    pub fn check_count(&self, at: Where, count: usize) -> Result<()> {
        if count == self.operands.len() {
            return Ok(());
        }
        let mut text = format!("{} has {count} operands; it takes {}", self.name, self.operands.len());
        if !self.operands.is_empty() {
            text += &format!(" ({})", self.signature());
        }
        if self.action == Action::Ffn && count == 6 {
            text += ". The old six-operand form (x, scratch, out, rows, dim, hidden) names no weights, so it can't \
                     mean anything";
        }
        Err(invalid(at, format_args!("{text}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_unique() {
        for (i, a) in TABLE.iter().enumerate() {
            for b in &TABLE[i + 1..] {
                assert_ne!(a.number, b.number);
                assert!(a.is_gpu() != b.is_gpu() || a.name != b.name, "{}", a.name);
            }
            assert!(!(CALL..=CALL + 0xFFFF).contains(&a.number));
        }
    }

    #[test]
    fn the_documentation_lists_every_opcode() {
        let docs = include_str!("../../../docs/program-format.md");
        for opcode in TABLE {
            let operands = if opcode.operands.is_empty() { "–".into() } else { opcode.signature() };
            let row = format!("| {:08X} | {} | {operands} |", opcode.number, opcode.name);
            assert!(docs.contains(&row), "docs/program-format.md has no row {row}");
        }
        for &op in Op::ALL {
            let row = format!("| {:08X} | `{op}` |", CALL + op as u32);
            assert!(docs.contains(&row), "docs/program-format.md has no row {row}");
        }
    }
}
