//! Programs: lists of opcodes from files, validated as a whole and then run through the same commands as direct calls.
//!
//! A [`Program`] is decoded from an `.adead` container, an AGPU binary, `.hex` text or an AHYB hybrid file, which their bytes
//! distinguish, or it is assembled from text. `docs/program-format.md` describes every format. The data that a program exchanges
//! with its caller are named [`Slot`]s. No number in a program is ever used as an address, and machine code is never executed.
//!
//! ```
//! # fn main() -> adead_core::Result<()> {
//! use adead_core::program::{Program, RunOptions};
//! use adead_core::{Context, Tensor};
//!
//! let program = Program::assemble(
//!     ".adead 1
//!      input  a f32[2,2]
//!      const  w f32[2,2] = 3f800000 40000000 0.5 -1.0
//!      temp   t f32[2,2]
//!      output c f32[2,2]
//!      t = matmul a w trans_b=1
//!      c = relu t
//!      halt",
//! )?;
//! let a = Tensor::new(&[1.0f32, 0.0, 0.0, 1.0], &[2, 2])?;
//! let outcome = program.run(&Context::open("cpu")?, &RunOptions::new().input("a", a))?;
//! assert_eq!(outcome.output("c").unwrap().to_vec::<f32>()?, [1.0, 0.5, 2.0, 0.0]);
//! # Ok(())
//! # }
//! ```

mod agpu;
mod ahyb;
mod code;
mod container;
mod crc;
mod engine;
mod fault;
mod flow;
mod hex;
mod lower;
mod lower_gpu;
mod opcodes;
mod plan;
mod scheduler;
mod slots;
mod survey;
mod text;
mod walk;
mod whole;

pub use ahyb::Symbol;
pub use engine::{OpcodeEngine, Outcome, Trace};
pub use fault::Where;
pub use plan::Plan;
pub use slots::{Direction, Slot};
pub use survey::{Finding, Survey, SurveyStep, Waste};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use code::{Code, Instruction, Kind};
use flow::Flow;
use lower::{Lowered, Lowering};
use opcodes::Action;
use std::path::Path;
use std::sync::OnceLock;

/// The format that a program was decoded from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// adead's own container.
    Adead,
    /// An AGPU binary.
    Agpu,
    /// AGPU instructions as hexadecimal text.
    Hex,
    /// The hybrid container. Only its AGPU program is used.
    Ahyb,
    /// Assembler text.
    Text,
}

impl Format {
    /// Returns `adead`, `agpu`, `hex`, `ahyb` or `text`.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Adead => "adead",
            Format::Agpu => "agpu",
            Format::Hex => "hex",
            Format::Ahyb => "ahyb",
            Format::Text => "text",
        }
    }
}

/// A decoded program.
pub struct Program {
    code: Code,
    agpu: bool,
    format: Format,
    symbols: Vec<Symbol>,
    report: Vec<String>,
    lowered: Lowered,
    /// The program as one graph, if it can be one.
    flow: Option<Flow>,
    /// The most bytes alive at one time, counted when the program is first validated.
    memory: OnceLock<usize>,
    fault: Option<Error>,
}

/// How to run a program.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The inputs with the names of their slots.
    pub inputs: Vec<(String, Tensor)>,
    /// The most bytes that registers, temporaries and outputs may take at one time. Default: 1 GiB.
    pub memory_limit: usize,
    /// Whether independent instructions of a program that runs instruction by instruction may run at the same time. The results
    /// are the same. Default: no.
    pub parallel: bool,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions { inputs: Vec::new(), memory_limit: 1 << 30, parallel: false }
    }
}

impl RunOptions {
    /// Makes the default options: no inputs, at most 1 GiB, one instruction after the other.
    pub fn new() -> RunOptions {
        RunOptions::default()
    }

    /// Adds an input.
    pub fn input(mut self, name: impl Into<String>, tensor: Tensor) -> RunOptions {
        self.inputs.push((name.into(), tensor));
        self
    }

    /// Sets the memory limit in bytes.
    pub fn memory_limit(mut self, bytes: usize) -> RunOptions {
        self.memory_limit = bytes;
        self
    }

    /// Chooses whether independent instructions may run at the same time.
    pub fn parallel(mut self, parallel: bool) -> RunOptions {
        self.parallel = parallel;
        self
    }
}

impl Program {
    /// Reads and decodes a file: see [`Program::decode`]. Returns `io` if the file can't be read.
    pub fn load(path: &Path) -> Result<Program> {
        Program::decode(&crate::files::read(path)?)
    }

    /// Decodes `.adead`, AGPU, AHYB, `.hex` text or assembler text. The bytes tell which. Malformed bytes are `invalid_program`
    /// with the offset. The memory taken is proportional to the length. [`Program::validate`] checks what the instructions mean.
    /// Without the feature `text`, text is `unsupported`.
    pub fn decode(bytes: &[u8]) -> Result<Program> {
        if bytes.starts_with(container::MAGIC) {
            return Program::new(container::decode(bytes)?, Format::Adead);
        }
        if bytes.starts_with(agpu::MAGIC) {
            return Program::new(agpu::decode(bytes, 0)?, Format::Agpu);
        }
        if bytes.starts_with(ahyb::MAGIC) {
            let (code, symbols, notes) = ahyb::decode(bytes)?;
            let mut program = Program::new(code, Format::Ahyb)?;
            program.symbols = symbols;
            program.report.splice(..0, notes);
            return Ok(program);
        }
        let (code, format) = text::decode(bytes)?;
        Program::new(code, format)
    }

    /// Assembles program text, `.adead 1` or `.agpu 1`. Malformed text is `invalid_program` with the line. Without the feature
    /// `text`, it is `unsupported`.
    pub fn assemble(text: &str) -> Result<Program> {
        Program::new(text::assemble(text.as_bytes())?, Format::Text)
    }

    fn new(code: Code, format: Format) -> Result<Program> {
        code.check()?;
        let (lowered, result) = Lowering::run(&code);
        let vulkan = code.instructions.iter().filter_map(|instruction| match &instruction.kind {
            Kind::Plain(opcode, _) if opcode.is_vulkan() => Some((instruction.at, opcode.name)),
            _ => None,
        });
        let mut report = match (vulkan.clone().count(), vulkan.clone().next()) {
            (count, Some((at, name))) => {
                vec![format!(
                    "{count} Vulkan opcodes, the first {name} at {at}, only order the instructions around them"
                )]
            }
            _ => Vec::new(),
        };
        let agpu = code.is_agpu();
        let ends =
            |instruction: &Instruction| matches!(&instruction.kind, Kind::Plain(it, _) if it.action == Action::End);
        // An AHYB file may have no GPU section. `ahyb::decode` reports that.
        let whole = match code.instructions.last() {
            Some(last) => ends(last),
            None => format == Format::Ahyb,
        };
        if !whole {
            let (count, end) = (code.instructions.len(), if agpu { "END" } else { "HALT" });
            report.push(format!("no {end} after its {count} instructions: the program may be truncated"));
        }
        let flow = if result.is_ok() { Flow::new(&code, &lowered) } else { None };
        Ok(Program {
            code,
            agpu,
            format,
            symbols: Vec::new(),
            report,
            lowered,
            flow,
            memory: OnceLock::new(),
            fault: result.err(),
        })
    }

    /// Writes the program as text. [`Program::assemble`] makes the same program from it.
    pub fn disassemble(&self) -> String {
        text::disassemble(&self.code, self.agpu)
    }

    /// Returns the text of one instruction.
    pub fn line(&self, instruction: usize) -> Option<String> {
        Some(text::line(&self.code, self.agpu, self.code.instructions.get(instruction)?))
    }

    /// Encodes the program as an `.adead` file. This works for every program that validates.
    pub fn encode(&self) -> Vec<u8> {
        container::encode(&self.code)
    }

    /// Encodes the program as an AGPU binary. Returns `unsupported` if it has tensors, runtime opcodes or more than 65535
    /// instructions.
    pub fn encode_agpu(&self) -> Result<Vec<u8>> {
        agpu::encode(&self.code)
    }

    /// Encodes the program as `.hex` text, with the text form as comments. Returns `unsupported` if it has tensors or runtime
    /// opcodes.
    pub fn encode_hex(&self) -> Result<String> {
        hex::encode(&self.code)
    }

    /// Returns the number of instructions.
    pub fn len(&self) -> usize {
        self.code.instructions.len()
    }

    /// Returns whether the program has no instructions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the format that the program was decoded from.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns whether the whole program is AGPU, so that [`Program::encode_agpu`] can write it.
    pub fn is_agpu(&self) -> bool {
        self.agpu
    }

    /// Returns the named inputs and outputs.
    pub fn slots(&self) -> &[Slot] {
        &self.lowered.slots.list
    }

    /// Returns the symbols of an AHYB file.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// Returns notes for the user: parts that were skipped, opcodes that do nothing, a missing end.
    pub fn report(&self) -> &[String] {
        &self.report
    }

    /// Checks everything that can be checked without data: registers and tensors are alive, sizes, shapes, dtypes, slots, and the
    /// most memory alive at one time against the limit. Returns `invalid_program` with the offset or line, or `out_of_memory` if
    /// the limit is exceeded. It allocates none of the program's memory.
    pub fn validate(&self, memory_limit: usize) -> Result<Plan<'_>> {
        match &self.fault {
            Some(fault) => Err(fault.clone()),
            None => Plan::new(self, memory_limit),
        }
    }

    /// Validates the program and runs it on a context: see [`OpcodeEngine::run`].
    pub fn run(&self, context: &Context, options: &RunOptions) -> Result<Outcome> {
        OpcodeEngine::new(context).run(self, options)
    }

    fn lowered(&self) -> &Lowered {
        &self.lowered
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Program({}, {} instructions, {} slots)", self.format.name(), self.len(), self.slots().len())
    }
}
