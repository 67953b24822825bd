//! Cases of pipelines. Each is recorded, compiled and run with each set of inputs, and executed with the inputs as constants.

use super::{Outcome, check, meta, operand, shape};
use adead_core::pipeline::{Pipeline, Value};
use adead_core::{Attrs, Context, DType, Error, Op, Tensor};

/// The recorded values of a case, and the inputs and results of each run.
#[derive(Debug)]
pub(crate) struct Recorded<'a> {
    values: Vec<Source<'a>>,
    outputs: Vec<usize>,
    runs: Vec<Run<'a>>,
}

/// The source of a value.
#[derive(Debug)]
enum Source<'a> {
    /// A constant with its text, or an input.
    Given(DType, Vec<usize>, Option<&'a str>),
    Reshape(usize, Vec<usize>),
    Op(&'a str, Vec<Option<usize>>, Vec<(&'a str, &'a str)>),
}

#[derive(Debug, Default)]
struct Run<'a> {
    inputs: Vec<&'a str>,
    expected: Vec<&'a str>,
}

impl<'a> Recorded<'a> {
    pub fn new() -> Recorded<'a> {
        Recorded { values: Vec::new(), outputs: Vec::new(), runs: vec![Run::default()] }
    }

    /// Reads a line. Returns `None` if it is malformed.
    pub fn line(&mut self, line: &'a str) -> Option<()> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let first = self.runs.len() == 1;
        let run = self.runs.last_mut()?;
        let number = |word: &str| word.parse().ok().filter(|&value| value < self.values.len());
        match word {
            "in" => {
                if first {
                    let (dtype, dims, _) = meta(rest)?;
                    self.values.push(Source::Given(dtype, dims, None));
                }
                run.inputs.push(rest);
            }
            "out" | "error" => run.expected.push(line),
            "again" => self.runs.push(Run::default()),
            "const" => {
                let (dtype, dims, _) = meta(rest)?;
                self.values.push(Source::Given(dtype, dims, Some(rest)));
            }
            "reshape" => {
                let (of, dims) = rest.split_once(' ')?;
                self.values.push(Source::Reshape(number(of)?, shape(dims)?));
            }
            "do" => {
                let mut words = rest.split(' ');
                let (op, mut operands, mut attrs) = (words.next()?, Vec::new(), Vec::new());
                for word in words {
                    match word.split_once('=') {
                        Some(attr) => attrs.push(attr),
                        None if word == "-" => operands.push(None),
                        None => operands.push(Some(number(word)?)),
                    }
                }
                self.values.push(Source::Op(op, operands, attrs));
            }
            "give" => self.outputs.push(number(rest)?),
            _ => return None,
        }
        Some(())
    }

    /// Runs it compiled, and executes it.
    pub fn run(&self, ctx: &Context) -> Result<Outcome, String> {
        let mut tensors = Vec::new();
        for value in &self.values {
            tensors.push(if let Source::Given(.., Some(text)) = value { Some(operand(text)?) } else { None });
        }
        let compiled = self.record(ctx, &tensors).and_then(Pipeline::compile);
        for (i, run) in self.runs.iter().enumerate() {
            let inputs = run.inputs.iter().map(|text| operand(text)).collect::<Result<Vec<_>, _>>()?;
            let result = compiled.as_ref().map_err(Error::clone);
            let result = result.and_then(|compiled| compiled.run(&inputs.iter().collect::<Vec<_>>()));
            if let Some(wrong) = check(&run.expected, result)? {
                return Ok(Outcome::Failed(format!("run {i}, compiled: {wrong}")));
            }
            // Other shapes of inputs would make another pipeline.
            if !self.replace(&mut tensors, inputs) {
                continue;
            }
            let result = self.record(ctx, &tensors).and_then(Pipeline::execute);
            if let Some(wrong) = check(&run.expected, result)? {
                return Ok(Outcome::Failed(format!("run {i}, executed: {wrong}")));
            }
        }
        Ok(Outcome::Passed)
    }

    /// Replaces values by a run's inputs, if their dtypes and shapes are the recorded ones.
    fn replace(&self, tensors: &mut [Option<Tensor>], inputs: Vec<Tensor>) -> bool {
        let mut recorded = Vec::new();
        for (value, tensor) in self.values.iter().zip(tensors) {
            if let Source::Given(dtype, dims, None) = value {
                recorded.push((*dtype, dims, tensor));
            }
        }
        let fits = |(input, (dtype, dims, _)): (&Tensor, &(DType, &Vec<usize>, _))| {
            input.dtype() == *dtype && input.dims() == dims.as_slice()
        };
        if inputs.len() != recorded.len() || !inputs.iter().zip(&recorded).all(fits) {
            return false;
        }
        recorded.into_iter().zip(inputs).for_each(|((_, _, tensor), input)| *tensor = Some(input));
        true
    }

    /// Records the pipeline. Values with a tensor become constants.
    fn record(&self, ctx: &Context, tensors: &[Option<Tensor>]) -> adead_core::Result<Pipeline> {
        let mut pipeline = ctx.pipeline();
        let mut values: Vec<Value> = Vec::new();
        for (source, tensor) in self.values.iter().zip(tensors) {
            values.push(match (source, tensor) {
                (_, Some(tensor)) => pipeline.constant(tensor)?,
                (Source::Given(dtype, dims, _), None) => pipeline.input(*dtype, dims)?,
                (Source::Reshape(of, dims), None) => pipeline.reshape(values[*of], dims)?,
                (Source::Op(op, operands, texts), None) => {
                    let (op, mut attrs) = (Op::from_name(op)?, Attrs::default());
                    texts.iter().try_for_each(|(name, text)| attrs.set(op, name, text))?;
                    let operands: Vec<_> = operands.iter().map(|operand| operand.map(|i| values[i])).collect();
                    pipeline.op(op, &attrs, &operands)?
                }
            });
        }
        self.outputs.iter().try_for_each(|&output| pipeline.output(values[output]))?;
        Ok(pipeline)
    }
}
