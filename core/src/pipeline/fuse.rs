//! Fusion: which operations become one step. A product takes an addition and an activation that follow it as its own bias,
//! residual and activation, which it applies in the same order (`docs/contract.md`). Consecutive elementwise operations become a
//! run.

use super::draw::{name, read};
use super::graph::{Graph, Operands, Source};
use crate::contract::{Activation, GeluForm};
use crate::dtype::DType;
use crate::operand::Meta;
use crate::ops::{Attrs, Cost, Op};
use crate::profile::Described;
use std::fmt::Write;

/// An operation of a step.
#[derive(Clone)]
pub(super) struct Link {
    pub op: Op,
    pub attrs: Attrs,
    pub operands: Operands,
    /// The nodes that it computes: the operation's own node first, then those of the operations folded into it.
    pub recorded: Vec<u32>,
}

/// Operations that execute as one: a single operation, or a run of elementwise operations, each working in place on the previous
/// result.
pub(super) struct Step {
    pub links: Vec<Link>,
    /// The nodes of the links' results. The last one is the step's result.
    pub nodes: Vec<u32>,
}

impl Step {
    /// The nodes that the step computes, in order.
    pub fn recorded(&self) -> impl Iterator<Item = &u32> {
        self.links.iter().flat_map(|link| &link.recorded)
    }

    /// The work of one link. Values that a run passes from one operation to the next count as neither read nor written.
    pub fn cost(&self, graph: &Graph, link: usize) -> Cost {
        let Link { op, attrs, operands, .. } = &self.links[link];
        let meta = graph.meta(self.nodes[link]);
        let mut cost = op.info().cost(attrs, &graph.metas(operands), meta);
        let mut handed = usize::from(link + 1 < self.links.len());
        if let Some(before) = link.checked_sub(1) {
            handed += operands.iter().filter(|operand| **operand == Some(self.nodes[before])).count();
        }
        cost.bytes = (cost.bytes - handed as f64 * meta.bytes() as f64).max(0.0);
        cost
    }

    /// Describes the step for a profile.
    pub fn described(&self, graph: &Graph) -> Described {
        let (mut text, mut cost) = (Described::default(), Cost::default());
        for link in 0..self.links.len() {
            let Cost { flops, bytes } = self.cost(graph, link);
            (cost.flops, cost.bytes) = (cost.flops + flops, cost.bytes + bytes);
        }
        // Writing to a String can't fail.
        let _ = name(self, graph, &mut text.name);
        for node in read(self) {
            let comma = if text.operands.is_empty() { "" } else { ", " };
            let _ = write!(text.operands, "{comma}{:?}", graph.meta(node));
        }
        let _ = write!(text.operands, " -> {:?}", graph.meta(self.result()));
        Described { cost, ..text }
    }

    /// Whether a GPU may share kernels between this step and the next one: products with blocks cut the same rows once, a norm adds up
    /// what it normalises, and a product with blocks makes its rows and adds to its result. Slices of rows, rope and `where` are one
    /// kernel.
    pub fn shares_kernels(&self, next: &Step, graph: &Graph) -> bool {
        let root = |operand: Option<&Option<u32>>| operand.copied().flatten().map(|node| graph.root(node));
        let x = root(next.links[0].operands.first());
        let (own, of_next) = match (&self.links[..], &next.links[..]) {
            ([own], [of_next]) => (own, of_next),
            // Only CUDA has such kernels.
            _ if cfg!(not(feature = "cuda")) => return false,
            ([_, _], [of_next]) => {
                return self.is_gate() && of_next.op == Op::QuantizedMatmul && x == Some(self.result());
            }
            ([own], [_, product]) => {
                let read = || [x].into_iter().chain(product.operands.iter().map(|node| root(Some(node))));
                return own.op == Op::Slice && next.is_gate() && read().any(|node| node == Some(self.result()));
            }
            _ => return false,
        };
        match (own.op, of_next.op) {
            (Op::QuantizedMatmul, Op::QuantizedMatmul) => x == root(own.operands.first()),
            (Op::Add, Op::Rmsnorm | Op::Layernorm) => x == Some(self.result()),
            _ if cfg!(not(feature = "cuda")) => false,
            (Op::Rmsnorm, Op::QuantizedMatmul) => x == Some(self.result()),
            (Op::QuantizedMatmul, Op::Add) => of_next.operands.iter().flatten().any(|&node| node == self.result()),
            (Op::Slice | Op::Rope | Op::Where, Op::Slice | Op::Rope | Op::Where) => true,
            _ => false,
        }
    }

    /// Whether it is a function and a product with other rows, of which a kernel makes the rows of a product with blocks.
    fn is_gate(&self) -> bool {
        let gates =
            |[function, product]: [&Link; 2]| matches!(function.op, Op::Silu | Op::Gelu) && product.op == Op::Mul;
        matches!(&self.links[..], [function, product] if gates([function, product]))
    }

    /// Whether a kernel that it shares with others may read all operands until the end of the last one.
    pub fn reads_to_the_end(&self) -> bool {
        matches!(&self.links[..], [link] if matches!(link.op, Op::QuantizedMatmul | Op::Slice | Op::Rope | Op::Where))
    }

    /// The node of the step's result.
    pub fn result(&self) -> u32 {
        self.nodes[self.nodes.len() - 1]
    }
}

/// The product's activation that equals this operation.
fn activation(op: Op, attrs: &Attrs) -> Option<Activation> {
    Some(match op {
        Op::Relu => Activation::Relu,
        Op::Sigmoid => Activation::Sigmoid,
        Op::Tanh => Activation::Tanh,
        Op::Silu => Activation::Silu,
        Op::Gelu => match attrs.form {
            GeluForm::Tanh => Activation::GeluTanh,
            GeluForm::Erf => Activation::GeluErf,
        },
        _ => return None,
    })
}

/// Folds an operation into the product whose result is its operand `at`, if the product can do the operation last.
fn fold(product: &mut Link, of: &Meta, graph: &Graph, op: Op, attrs: &Attrs, operands: &Operands, at: usize) -> bool {
    // A product of f16 rounds its result once, after the epilogue; unfused operations round in between. In f32 both give the same
    // bits.
    if product.op != Op::Matmul
        || of.dtype != DType::F32
        || product.attrs.activation.unwrap_or(Activation::None) != Activation::None
    {
        return false;
    }
    if let Some(activation) = activation(op, attrs) {
        product.attrs.activation = Some(activation);
        return true;
    }
    let (Op::Add, Some(Some(other))) = (op, operands.get(1 - at)) else { return false };
    let added = &graph.meta(*other).shape;
    if !added.broadcasts_to(&of.shape) {
        return false;
    }
    product.operands.resize(4, None);
    // A product adds the residual first and the bias last, so nothing can follow a bias.
    if product.operands[3].is_some() {
        return false;
    }
    let n = of.shape.dims().last();
    let row = added.rank() == 1 && added.dims().last() == n && graph.meta(product_b(product)).shape.rank() > 1;
    if row {
        product.operands[3] = Some(*other);
    } else if product.operands[2].is_none() {
        product.operands[2] = Some(*other);
        product.attrs.beta = 1.0;
    } else {
        return false;
    }
    true
}

/// The right operand, which every product has.
fn product_b(product: &Link) -> u32 {
    product.operands[1].unwrap_or_default()
}

/// The steps of a graph, ordered so that every operand is computed before it is used. Values that no output needs are left out.
pub(super) fn steps(graph: &Graph) -> Vec<Step> {
    let uses = uses(graph);
    // By node: the step whose result the node is, while that step can still grow.
    let mut open: Vec<Option<Step>> = Vec::new();
    open.resize_with(graph.nodes.len(), || None);
    for (i, node) in graph.nodes.iter().enumerate() {
        let Source::Op(op, attrs, operands) = &node.source else { continue };
        if uses[i] == 0 {
            continue;
        }
        let link = || Link { op: *op, attrs: *attrs, operands: operands.clone(), recorded: vec![i as u32] };
        let mut joined = None;
        for (at, operand) in operands.iter().enumerate().take(2) {
            // A step joins only if nothing else uses its result and the shapes agree: a result that is broadcast must stay as it
            // was.
            let times = operands.iter().filter(|other| *other == operand).count();
            let alone = |&from: &u32| uses[from as usize] as usize == times && graph.meta(from) == &node.meta;
            let Some(from) = operand.filter(alone) else { continue };
            let Some(mut step) = open[from as usize].take() else { continue };
            let last = step.links.len() - 1;
            if last == 0 && times == 1 && fold(&mut step.links[0], &node.meta, graph, *op, attrs, operands, at) {
                step.links[0].recorded.push(i as u32);
                step.nodes[0] = i as u32;
                joined = Some(step);
            } else if op.is_elementwise() && step.links[last].op.is_elementwise() {
                step.links.push(link());
                step.nodes.push(i as u32);
                joined = Some(step);
            } else {
                open[from as usize] = Some(step);
                continue;
            }
            break;
        }
        open[i] = Some(joined.unwrap_or_else(|| Step { links: vec![link()], nodes: vec![i as u32] }));
    }
    open.into_iter().flatten().collect()
}

/// How often each node is used: by operations, by reshapes, as an output, as a state's next value. 0 if none of the latter needs
/// it.
fn uses(graph: &Graph) -> Vec<u32> {
    let mut uses = vec![0; graph.nodes.len()];
    graph.outputs.iter().for_each(|&node| uses[node as usize] += 1);
    graph.states.iter().filter_map(|state| state.next).for_each(|node| uses[node as usize] += 1);
    for (i, node) in graph.nodes.iter().enumerate().rev() {
        if uses[i] == 0 {
            continue;
        }
        match &node.source {
            Source::Reshape(of) | Source::Rows(of, _) => uses[*of as usize] += 1,
            Source::Op(_, _, operands) => operands.iter().flatten().for_each(|&of| uses[of as usize] += 1),
            _ => {}
        }
    }
    uses
}
