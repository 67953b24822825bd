//! Runs a program as one graph, through the pipeline that the context caches for it.

use super::Program;
use super::engine::Outcome;
use super::flow::{Flow, Given, Made};
use super::plan::Plan;
use crate::context::Context;
use crate::error::{Result, fail};
use crate::pipeline::Source;
use crate::tensor::Tensor;
use std::time::Instant;

/// Runs the program. Its values may take at most `limit` bytes besides inputs and constants.
pub(super) fn run(
    context: &Context,
    program: &Program,
    plan: &Plan<'_>,
    flow: &Flow,
    given: &[Option<&Tensor>],
    limit: usize,
) -> Result<Outcome> {
    let graph = &flow.graph;
    let Some(left) = limit.checked_sub(flow.scratch) else {
        fail!(OutOfMemory, "the scratch of all operations takes {} bytes; the limit is {limit}", flow.scratch)
    };
    let compiled = if graph.outputs.is_empty() { None } else { Some(graph.prepared(context, left)?) };
    let begin = Instant::now();
    let mut inputs = Vec::with_capacity(flow.inputs.len());
    for (from, &node) in flow.inputs.iter().zip(&graph.inputs) {
        let meta = graph.meta(node);
        inputs.push(match *from {
            Given::Slot(slot) => required(given, slot)?.clone(),
            Given::Zeros => Tensor::zeros(meta.dtype, meta.shape.dims())?,
        });
    }
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    let (mut computed, mut times) = (Vec::new(), Vec::new());
    if let Some(compiled) = &compiled {
        computed = compiled.run_timed(&inputs, Some(&mut times))?;
    }
    let mut outputs = Vec::with_capacity(flow.outputs.len());
    for &(slot, made) in &flow.outputs {
        let slot = &program.slots()[slot];
        let dims = slot.meta.shape.dims();
        // Copied, because the caller may write to its tensor's memory after the run.
        let copy = |tensor: &Tensor| Tensor::from_bytes(tensor.host_bytes()?, slot.meta.dtype, dims);
        let tensor = match made {
            Made::Computed(output) => match computed.get(output) {
                Some(tensor) => tensor.clone(),
                None => fail!(Internal, "the output '{}' was not computed", slot.name),
            },
            Made::Slot(from) => copy(required(given, from)?)?,
            Made::Constant(tensor) => match &program.code.tensors[tensor].data {
                Some(tensor) => copy(tensor)?,
                None => fail!(Internal, "a constant has no contents"),
            },
            Made::Zeros => Tensor::zeros(slot.meta.dtype, dims)?,
        };
        outputs.push((slot.name.clone(), tensor));
    }
    let seconds = begin.elapsed().as_secs_f64();
    let mut spent = vec![[0.0; 3]; program.len()];
    let mut device = &context.device_info().id;
    if let Some(compiled) = &compiled {
        device = &compiled.device().id;
        let mut steps: Vec<Vec<u32>> = compiled.recorded().collect();
        if times.len() != steps.len() {
            // A GPU runs everything as one submission, so only the total time is known.
            (steps, times) = (vec![steps.concat()], vec![seconds]);
        }
        for (nodes, &seconds) in steps.iter().zip(&times) {
            let first = nodes.iter().filter_map(|&node| flow.instructions[node as usize]).min();
            let Some(first) = first else { continue };
            let spent = &mut spent[first];
            spent[0] += seconds;
            for &node in nodes {
                let node = &graph.nodes[node as usize];
                let Source::Op(op, attrs, operands) = &node.source else { continue };
                let cost = op.info().cost(attrs, &graph.metas(operands), &node.meta);
                (spent[1], spent[2]) = (spent[1] + cost.flops, spent[2] + cost.bytes);
            }
        }
    }
    Ok(Outcome::new(program, plan, outputs, seconds, device, &spent))
}

/// The caller's tensor for a slot that operations read. `given` has checked that it is there.
fn required<'a>(given: &[Option<&'a Tensor>], slot: usize) -> Result<&'a Tensor> {
    match given.get(slot).copied().flatten() {
        Some(tensor) => Ok(tensor),
        None => fail!(Internal, "an input disappeared"),
    }
}
