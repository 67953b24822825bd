//! Programs: decoded or assembled, validated, and run with tensors bound to their slots by name.

use crate::context::Context;
use crate::dispatch::Estimate;
use crate::run::signal;
use crate::tensor::Value;
use adead::Result;
use adead::program::{self, RunOptions};
use adead_node_support::args::{Fields, Flag, Of, Size, Text};
use adead_node_support::array::{Array, bytes_of};
use adead_node_support::error::{fail, guard};
use adead_node_support::task::{Job, promise, promise_with};
use napi::bindgen_prelude::{AsyncTask, FromNapiValue, Object, Unknown};
use napi::{Env, JsValue};
use napi_derive::napi;
use std::sync::Arc;

/// A decoded program. It never changes.
#[napi]
pub struct Program {
    inner: Arc<program::Program>,
}

impl From<program::Program> for Program {
    fn from(program: program::Program) -> Program {
        Program { inner: Arc::new(program) }
    }
}

/// A named input or output of a program.
#[napi(object)]
pub struct Slot {
    /// The tensor's name. In AGPU programs it is the host address as text, such as "0x1000".
    pub name: String,
    /// The direction in which its contents move.
    #[napi(ts_type = "'in' | 'out' | 'both'")]
    pub direction: String,
    /// The size of its contents in bytes.
    pub bytes: f64,
    /// The dtype of its elements.
    #[napi(ts_type = "DType")]
    pub dtype: String,
    /// Its dimensions.
    pub dims: Vec<f64>,
    /// Whether a bound tensor must have exactly this dtype and shape. Otherwise only the number of bytes must match.
    pub typed: bool,
    /// Whether the caller must supply it.
    pub required: bool,
}

/// A symbol of an AHYB file.
#[napi(object)]
pub struct ProgramSymbol {
    /// The symbol's name.
    pub name: String,
    /// The symbol's value.
    pub value: u32,
}

/// The execution of one instruction in a run.
#[napi(object)]
pub struct Trace {
    /// The instruction's index. `Program.line` returns its text.
    pub instruction: u32,
    /// The instruction's name.
    pub name: String,
    /// The device that ran it.
    pub device: String,
    /// Seconds spent on it.
    pub seconds: f64,
    /// Floating-point operations. A multiply-add counts as two.
    pub flops: f64,
    /// Bytes read and written, each operand counted once.
    pub bytes: f64,
}

/// The estimated costs of a program's step.
#[napi(object)]
pub struct SurveyStep {
    /// The index of the step's instruction.
    pub instruction: u32,
    /// The operation. Missing for a copy.
    #[napi(ts_type = "OpName")]
    pub op: Option<String>,
    /// Operands and result, or the bytes of a copy.
    pub shapes: String,
    /// Why its device was chosen.
    pub reason: String,
    /// The estimate for the chosen device.
    pub estimate: Estimate,
    /// Each device's estimate of the step if all steps run there.
    pub alone: Vec<Estimate>,
}

/// A place where a program would waste a GPU.
#[napi(object)]
pub struct Finding {
    /// The kind of waste.
    #[napi(ts_type = "'too_small' | 'transfers' | 'no_faster' | 'unfused' | 'round_trip'")]
    pub waste: String,
    /// The GPU.
    pub device: String,
    /// The indices of the first and the last step.
    #[napi(ts_type = "[number, number]")]
    pub steps: Vec<u32>,
    /// The nanoseconds lost.
    pub lost_ns: f64,
    /// The reason, with numbers.
    pub reason: String,
}

/// The estimated costs of a program.
#[napi(object)]
pub struct Survey {
    /// The steps that compute or move data, in order.
    pub steps: Vec<SurveyStep>,
    /// The places where a GPU would be wasted, the costliest first.
    pub findings: Vec<Finding>,
    /// Nanoseconds of all steps on the devices that the dispatcher chooses.
    pub chosen_ns: f64,
    /// Nanoseconds if all steps run on one device, in the order of the context's devices.
    pub alone_ns: Vec<f64>,
}

/// Reads the inputs and options of a run.
fn run_options(Fields(inputs): &Fields, options: Option<&Fields>) -> napi::Result<RunOptions> {
    let mut run = RunOptions::new();
    for name in Object::keys(inputs)? {
        if let Some(Value(tensor)) = inputs.get::<Value>(&name)? {
            run = run.input(name, tensor);
        }
    }
    if let Some(Fields(options)) = options {
        if let Some(limit) = options.get::<Size>("memoryLimit")? {
            run = run.memory_limit(limit.0);
        }
        if let Some(Flag(parallel)) = options.get::<Flag>("parallel")? {
            run = run.parallel(parallel);
        }
    }
    Ok(run)
}

/// Converts an outcome to a JavaScript object.
fn outcome(env: Env, outcome: program::Outcome) -> napi::Result<Unknown<'static>> {
    let mut outputs = Object::new(&env)?;
    for (name, tensor) in outcome.outputs {
        outputs.set(&name, Value(tensor))?;
    }
    let trace = outcome.trace.iter().map(|step| Trace {
        instruction: step.instruction as u32,
        name: step.name.clone(),
        device: step.device.to_string(),
        seconds: step.seconds,
        flops: step.flops,
        bytes: step.bytes,
    });
    let mut object = Object::new(&env)?;
    object.set("outputs", outputs)?;
    object.set("instructions", outcome.instructions as f64)?;
    object.set("flops", outcome.flops)?;
    object.set("seconds", outcome.seconds)?;
    object.set("memory", outcome.memory as f64)?;
    object.set("trace", trace.collect::<Vec<_>>())?;
    // SAFETY: a value of this environment, which takes it at once.
    unsafe { Unknown::from_napi_value(env.raw(), object.raw()) }
}

#[napi]
impl Program {
    /// Decodes `.adead`, AGPU, AHYB, `.hex` text or assembler text. The bytes determine the format. Malformed bytes are `invalid_program`
    /// with the offset.
    #[napi(ts_args_type = "data: TypedArray")]
    pub fn decode(env: Env, data: Array) -> napi::Result<Program> {
        guard(env, || Ok(program::Program::decode(data.bytes())?.into()))
    }

    /// Reads and decodes a file. `io` if it can't be read.
    #[napi(ts_args_type = "path: string")]
    pub fn load(env: Env, path: Text) -> napi::Result<Program> {
        guard(env, || Ok(program::Program::load(std::path::Path::new(&*path))?.into()))
    }

    /// Runs `load` on another thread.
    #[napi(ts_args_type = "path: string", ts_return_type = "Promise<Program>")]
    pub fn load_async(path: Text) -> AsyncTask<Job> {
        promise(Ok(move || program::Program::load(std::path::Path::new(&*path))), |_, program| {
            Ok(Program::from(program))
        })
    }

    /// Assembles program text, `.adead 1` or `.agpu 1`. Malformed text is `invalid_program` with the line.
    #[napi(ts_args_type = "text: string")]
    pub fn assemble(env: Env, text: Text) -> napi::Result<Program> {
        guard(env, || Ok(program::Program::assemble(&text)?.into()))
    }

    /// Returns the program as text, which `assemble` turns back into this program.
    #[napi]
    pub fn disassemble(&self) -> String {
        self.inner.disassemble()
    }

    /// Returns the text of one instruction, or null if there is none at this index.
    #[napi(ts_args_type = "instruction: number")]
    pub fn line(&self, instruction: Size) -> Option<String> {
        self.inner.line(instruction.0)
    }

    /// Encodes the program as an `.adead` container, an AGPU binary, `.hex` text or assembler text. AGPU and `.hex` can't
    /// express tensors: `unsupported`.
    #[napi(ts_args_type = "format: 'adead' | 'agpu' | 'hex' | 'text'", ts_return_type = "Uint8Array")]
    pub fn encode(&self, env: Env, format: Text) -> napi::Result<Unknown<'static>> {
        let bytes = guard(env, || match &*format {
            "adead" => Ok(self.inner.encode()),
            "agpu" => self.inner.encode_agpu(),
            "hex" => Ok(self.inner.encode_hex()?.into_bytes()),
            "text" => Ok(self.inner.disassemble().into_bytes()),
            other => fail!(InvalidArgument, "format is '{other}'; it must be adead, agpu, hex or text"),
        })?;
        bytes_of(env, &bytes)
    }

    /// The number of instructions.
    #[napi(getter)]
    pub fn length(&self) -> u32 {
        self.inner.len() as u32
    }

    /// The format that the program was decoded from.
    #[napi(getter, ts_return_type = "'adead' | 'agpu' | 'hex' | 'ahyb' | 'text'")]
    pub fn format(&self) -> &'static str {
        self.inner.format().name()
    }

    /// Whether the whole program is AGPU.
    #[napi(getter)]
    pub fn is_agpu(&self) -> bool {
        self.inner.is_agpu()
    }

    /// The named inputs and outputs.
    #[napi(getter)]
    pub fn slots(&self) -> Vec<Slot> {
        let slot = |slot: &program::Slot| Slot {
            name: slot.name.clone(),
            direction: slot.direction.name().into(),
            bytes: slot.bytes as f64,
            dtype: slot.meta.dtype.name().into(),
            dims: slot.meta.shape.dims().iter().map(|&dim| dim as f64).collect(),
            typed: slot.typed,
            required: slot.required,
        };
        self.inner.slots().iter().map(slot).collect()
    }

    /// The symbols of an AHYB file.
    #[napi(getter)]
    pub fn symbols(&self) -> Vec<ProgramSymbol> {
        let symbols = self.inner.symbols().iter();
        symbols.map(|symbol| ProgramSymbol { name: symbol.name.clone(), value: symbol.value }).collect()
    }

    /// Notes for the user: parts that were skipped, opcodes that do nothing.
    #[napi(getter)]
    pub fn report(&self) -> Vec<String> {
        self.inner.report().to_vec()
    }

    /// Checks everything that can be checked without data. Returns the most bytes that registers, temporaries and outputs take
    /// at one time. `invalid_program` with the offset or line, `out_of_memory` above the limit.
    #[napi(ts_args_type = "memoryLimit?: number")]
    pub fn validate(&self, env: Env, memory_limit: Option<Size>) -> napi::Result<f64> {
        guard(env, || {
            let limit = memory_limit.map_or(RunOptions::default().memory_limit, |limit| limit.0);
            Ok(self.inner.validate(limit)?.memory() as f64)
        })
    }

    /// Validates the program, binds tensors to its slots by name and runs it. A run that fails has no outcome.
    #[napi(
        ts_args_type = "context: Context, inputs: Record<string, Tensor>, options?: ProgramOptions",
        ts_return_type = "Outcome"
    )]
    pub fn run(
        &self,
        env: Env,
        context: Of<Context>,
        inputs: Fields,
        options: Option<Fields>,
    ) -> napi::Result<Unknown<'static>> {
        let options = run_options(&inputs, options.as_ref())?;
        let result = guard(env, || self.inner.run(&context.inner, &options))?;
        outcome(env, result)
    }

    /// Runs `run` on another thread.
    #[napi(
        ts_args_type = "context: Context, inputs: Record<string, Tensor>, options?: ProgramOptions & Abortable",
        ts_return_type = "Promise<Outcome>"
    )]
    pub fn run_async(
        &self,
        env: Env,
        context: Of<Context>,
        inputs: Fields,
        options: Option<Fields>,
    ) -> napi::Result<AsyncTask<Job>> {
        let run = run_options(&inputs, options.as_ref())?;
        let signal = options.map_or(Ok(None), |options| signal(env, &options))?;
        let (program, context) = (self.inner.clone(), context.inner.clone());
        Ok(promise_with(Ok(move || program.run(&context, &run)), outcome, signal))
    }

    /// Estimates the costs of the program on a context's devices, step by step, without running it.
    #[napi(ts_args_type = "context: Context")]
    pub fn survey(&self, env: Env, context: Of<Context>) -> napi::Result<Survey> {
        guard(env, || survey(&self.inner, &context.inner))
    }
}

fn survey(program: &program::Program, context: &adead::Context) -> Result<Survey> {
    let dispatcher = context.dispatcher();
    let id = |device: usize| dispatcher.profiles()[device].id.as_str();
    let survey = program.survey(dispatcher)?;
    let step = |step: &program::SurveyStep| SurveyStep {
        instruction: step.instruction as u32,
        op: step.op.map(|op| op.name().into()),
        shapes: step.shapes.clone(),
        reason: step.reason.clone(),
        estimate: Estimate::new(id(step.device), &step.estimate),
        alone: step.alone.iter().enumerate().map(|(device, it)| Estimate::new(id(device), it)).collect(),
    };
    let finding = |finding: &program::Finding| Finding {
        waste: finding.waste.name().into(),
        device: id(finding.device).into(),
        steps: vec![finding.steps.0 as u32, finding.steps.1 as u32],
        lost_ns: finding.lost_ns,
        reason: finding.reason.clone(),
    };
    Ok(Survey {
        steps: survey.steps.iter().map(step).collect(),
        findings: survey.findings.iter().map(finding).collect(),
        chosen_ns: survey.chosen_ns,
        alone_ns: survey.alone_ns.clone(),
    })
}
