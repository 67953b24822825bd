//! Gradients of single operations against the oracle's bits (`tests/conformance/gradients.txt`), for every instruction set and on the
//! machine's first GPU (also a software one), through Vulkan or the backend in `ADEAD_TEST_BACKEND` (`vulkan`, `cuda`).

mod backend;
#[allow(dead_code)]
mod draws;
#[allow(dead_code)]
mod pipelines;

use adead_core::hal::cpu::Isa;
use adead_core::{Attrs, Axis, Context, ContextOptions, DType, Op, Tensor};
use pipelines::contexts;
use std::collections::BTreeSet;

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/conformance/gradients.txt");

#[derive(Default)]
struct Case {
    name: String,
    op: Option<Op>,
    attrs: Attrs,
    operands: Vec<Option<Tensor>>,
    g: Option<Tensor>,
    /// Operands' numbers, and what they receive.
    by: Vec<(usize, Tensor)>,
}

/// A tensor from its dtype, dimensions and elements' bits, the highest digit of each first.
fn tensor(text: &str) -> Tensor {
    let [dtype, dims, bits] = text.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
    let dtype: DType = dtype.parse().unwrap();
    let dims: Vec<usize> = if dims == "-" { vec![] } else { dims.split(',').map(|n| n.parse().unwrap()).collect() };
    let digits = bits.strip_prefix("bits:").unwrap().as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let mut bytes: Vec<u8> = digits.chunks_exact(2).map(byte).collect();
    if cfg!(target_endian = "little") {
        bytes.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
    }
    Tensor::from_bytes(&bytes, dtype, &dims).unwrap()
}

fn cases() -> Vec<Case> {
    let text = std::fs::read_to_string(CASES).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("format 1 adead-gradients"));
    let (mut all, mut case) = (Vec::new(), Case::default());
    for line in lines.filter(|line| !line.is_empty()) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "case" => case.name = rest.into(),
            "op" => case.op = Some(Op::from_name(rest).unwrap()),
            "attr" => {
                let (name, value) = rest.split_once(' ').unwrap();
                case.attrs.set(case.op.unwrap(), name, value).unwrap();
            }
            "in" => case.operands.push((rest != "none").then(|| tensor(rest))),
            "g" => case.g = Some(tensor(rest)),
            "by" => {
                let (number, rest) = rest.split_once(' ').unwrap();
                case.by.push((number.parse().unwrap(), tensor(rest)));
            }
            "end" => all.push(std::mem::take(&mut case)),
            _ => panic!("{line}"),
        }
    }
    all
}

/// What the operands receive from the loss SUM(y·g).
fn gradients(context: &Context, case: &Case) -> adead_core::Result<Vec<Tensor>> {
    let mut pipeline = context.pipeline();
    let (mut operands, mut inputs) = (Vec::new(), Vec::new());
    for operand in &case.operands {
        operands.push(match operand {
            Some(tensor) => {
                inputs.push(tensor);
                Some(pipeline.input(tensor.dtype(), tensor.dims())?)
            }
            None => None,
        });
    }
    let y = pipeline.op(case.op.unwrap(), &case.attrs, &operands)?;
    let g = pipeline.constant(case.g.as_ref().unwrap())?;
    let product = pipeline.op(Op::Mul, &Attrs::default(), &[Some(y), Some(g)])?;
    let loss = pipeline.op(Op::Sum, &Attrs { axis: Axis::All, ..Attrs::default() }, &[Some(product)])?;
    let by: Vec<_> = case.by.iter().map(|&(number, _)| operands[number].unwrap()).collect();
    for gradient in pipeline.gradients(loss, &by)? {
        // A copy, as g itself may be the gradient, and a pipeline gives no constant.
        let copy = pipeline.op(Op::Scale, &Attrs::default(), &[Some(gradient)])?;
        pipeline.output(copy)?;
    }
    pipeline.compile()?.run(&inputs)
}

#[test]
fn gradients_have_the_oracles_bits() {
    let all = cases();
    let operations: BTreeSet<_> = all.iter().map(|case| case.op.map(|op| op.info().name)).collect();
    assert!(operations.len() >= 47, "{operations:?}");
    let mut contexts = contexts();
    for isa in Isa::available() {
        let options = ContextOptions { isa: Some(isa), threads: Some(2), precision: None };
        contexts.push(Context::with_options("cpu", &options).unwrap());
    }
    let mut wrong = Vec::new();
    for context in &contexts {
        for case in &all {
            let found =
                gradients(context, case).unwrap_or_else(|error| panic!("{} on {context:?}: {error}", case.name));
            for ((number, expected), found) in case.by.iter().zip(found) {
                if (found.dtype(), found.dims(), found.bytes()) != (expected.dtype(), expected.dims(), expected.bytes())
                {
                    wrong.push(format!("{} by {number} on {context:?}: {found:?} instead of {expected:?}", case.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
