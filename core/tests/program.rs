//! Programs: every format, every opcode, every kind of malformed input.

#[path = "program/examples.rs"]
mod examples;
#[path = "program/formats.rs"]
mod formats;
#[path = "program/hostile.rs"]
mod hostile;
#[path = "program/opcodes.rs"]
mod opcodes;
#[path = "program/order.rs"]
mod order;

use adead_core::program::{Outcome, Program, RunOptions};
use adead_core::{Context, ContextOptions, Error, Status, Tensor};

/// 1 GiB, the default.
const LIMIT: usize = 1 << 30;

/// A CPU with three threads, whatever the machine has.
fn context() -> Context {
    Context::with_options("cpu", &ContextOptions { threads: Some(3), ..ContextOptions::default() }).unwrap()
}

/// splitmix64, the generator of the conformance cases.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0).collect()
    }

    fn tensor(&mut self, dims: &[usize]) -> Tensor {
        Tensor::new(&self.floats(dims.iter().product()), dims).unwrap()
    }
}

/// Makes an AGPU program from text lines.
fn agpu(lines: &str) -> Program {
    Program::assemble(&format!(".agpu 1\n{lines}")).unwrap()
}

/// Makes an `.adead` program from text lines.
fn adead(lines: &str) -> Program {
    Program::assemble(&format!(".adead 1\n{lines}")).unwrap()
}

/// The `invalid_program` message of a refused program, from the decoder or from validation.
fn refused(program: Result<Program, Error>) -> String {
    let error = match program {
        Ok(program) => program.validate(LIMIT).expect_err("the program is valid"),
        Err(error) => error,
    };
    assert_eq!(error.status(), Status::InvalidProgram, "{error}");
    error.message().to_string()
}

/// Runs a program with inputs by name.
fn run(program: &Program, inputs: &[(&str, &Tensor)]) -> Outcome {
    let options =
        inputs.iter().fold(RunOptions::new(), |options, (name, tensor)| options.input(*name, (*tensor).clone()));
    program.run(&context(), &options).unwrap()
}

/// The path of an example program, in the repository, or else in the current folder, as in a bundle of `ci/gpu-pack`.
fn example(name: &str) -> std::path::PathBuf {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/programs");
    if folder.exists() { folder.join(name) } else { std::path::Path::new("examples/programs").join(name) }
}

/// An example program.
fn decode_example(name: &str) -> Program {
    Program::decode(&std::fs::read(example(name)).unwrap()).unwrap()
}
