//! The recorded graph: values and the operations between them.

use super::cache::Cache;
use super::compiled::Compiled;
use crate::context::Context;
use crate::contract::Precision;
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::operand::Meta;
use crate::ops::{Attrs, MetaList, Op};
use crate::shape::{MAX_RANK, Shape};
use crate::tensor::Tensor;
#[cfg(feature = "autograd")]
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A value of a [`Pipeline`]: an input, a constant, or the result of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    pipeline: u32,
    node: u32,
}

impl Value {
    /// Returns the value as a number, for languages that have no such type.
    pub fn to_bits(self) -> u64 {
        u64::from(self.pipeline) << 32 | u64::from(self.node)
    }

    /// Makes a value from a number. An operation refuses a number that no pipeline gave out.
    pub fn from_bits(bits: u64) -> Value {
        Value { pipeline: (bits >> 32) as u32, node: bits as u32 }
    }
}

/// Records operations on a context, to be run as a whole. Each thread needs a pipeline of its own.
#[derive(Clone)]
pub struct Pipeline {
    context: Context,
    id: u32,
    pub(crate) graph: Graph,
    /// The values that no gradient passes through, in order.
    #[cfg(feature = "autograd")]
    pub(crate) detached: Vec<u32>,
    /// Whether what is recorded now is among them.
    #[cfg(feature = "autograd")]
    pub(crate) no_grad: bool,
    /// Whether gradients are being recorded.
    #[cfg(feature = "autograd")]
    pub(crate) in_gradients: bool,
    /// The parts that a backward pass computes again, in order.
    #[cfg(feature = "autograd")]
    pub(crate) recomputed: Vec<Range<u32>>,
}

/// What [`Pipeline::gradients_with`] calls.
#[cfg(feature = "autograd")]
pub type Hook<'a> = dyn FnMut(&mut Pipeline, usize, Value) -> Result<Value> + 'a;

/// Operands as node numbers.
pub(crate) type Operands = Vec<Option<u32>>;

/// Values in the order of recording, and which of them are inputs and outputs.
#[derive(Clone, Default)]
pub(crate) struct Graph {
    pub nodes: Vec<Node>,
    /// The inputs' nodes, in order.
    pub inputs: Vec<u32>,
    /// The outputs' nodes, in order.
    pub outputs: Vec<u32>,
    /// The states, in order.
    pub states: Vec<State>,
    /// The first node of what runs as soon as its operands are computed.
    #[cfg(feature = "lend")]
    early: Option<u32>,
}

/// A tensor that runs change.
#[derive(Clone, Copy)]
pub(crate) struct State {
    /// Its value at the beginning of a run.
    pub node: u32,
    /// What it becomes at the end of a run.
    pub next: Option<u32>,
}

/// A value: its description and its source.
#[derive(Clone)]
pub(crate) struct Node {
    pub meta: Meta,
    pub source: Source,
}

/// Where a value comes from.
#[derive(Clone)]
pub(crate) enum Source {
    Input,
    Constant(Tensor),
    /// A state, which has these values before the first run.
    State(Tensor),
    /// A state of a compiled graph.
    Held,
    /// The same elements in another shape.
    Reshape(u32),
    /// Entries of the first axis, from this one on.
    Rows(u32, usize),
    Op(Op, Attrs, Operands),
}

impl Graph {
    /// The node whose memory this node uses: itself, or the node that it reshapes or is rows of.
    pub fn root(&self, node: u32) -> u32 {
        self.place(node).0
    }

    /// The node whose memory this node uses, and the byte from which on.
    pub fn place(&self, mut node: u32) -> (u32, usize) {
        let mut offset = 0;
        loop {
            match self.nodes[node as usize].source {
                Source::Reshape(of) => node = of,
                Source::Rows(of, first) => {
                    let meta = self.meta(of);
                    offset += first * meta.bytes().checked_div(meta.shape.dims()[0]).unwrap_or(0);
                    node = of;
                }
                _ => return (node, offset),
            }
        }
    }

    /// Makes a node's tensor from the tensor of its root.
    pub fn of_root(&self, node: u32, root: &Tensor) -> Result<Tensor> {
        let shape = &self.meta(node).shape;
        match self.nodes[node as usize].source {
            Source::Reshape(of) => self.of_root(of, root)?.reshape(shape.dims()),
            Source::Rows(of, first) => self.of_root(of, root)?.rows(first, shape.dims()[0]),
            _ => Ok(root.clone()),
        }
    }

    /// The first node of what runs as soon as its operands are computed.
    pub fn early(&self) -> Option<u32> {
        #[cfg(feature = "lend")]
        return self.early;
        #[cfg(not(feature = "lend"))]
        None
    }

    /// Drops the tensors that the states begin with.
    pub fn forget_states(&mut self) {
        for i in 0..self.states.len() {
            self.nodes[self.states[i].node as usize].source = Source::Held;
        }
    }

    /// The states' nodes, in order.
    pub fn state_nodes(&self) -> Vec<u32> {
        self.states.iter().map(|state| state.node).collect()
    }

    /// Whether an operation computes a node.
    fn is_computed(&self, node: u32) -> bool {
        matches!(self.nodes[self.root(node) as usize].source, Source::Op(..))
    }

    /// A node's description.
    pub fn meta(&self, node: u32) -> &Meta {
        &self.nodes[node as usize].meta
    }

    /// Operands' descriptions, for shape rules and costs.
    pub fn metas(&self, operands: &[Option<u32>]) -> MetaList<'_> {
        operands.iter().map(|operand| operand.map(|node| self.meta(node))).collect()
    }

    /// Turns every constant into an input, and returns the constants in the order of those inputs. Graphs with different
    /// constants then share one compiled form.
    pub fn abstracted(mut self) -> (Graph, Vec<Tensor>) {
        let mut tensors = Vec::new();
        for (i, node) in self.nodes.iter_mut().enumerate() {
            if let Source::Constant(tensor) = &node.source {
                tensors.push(tensor.clone());
                node.source = Source::Input;
                self.inputs.push(i as u32);
            }
        }
        (self, tensors)
    }

    /// Returns the compiled form of the graph on a context, from the context's cache or new. Fails with `out_of_memory` if its
    /// values take more than `limit` bytes besides inputs and constants.
    pub(crate) fn prepared(&self, context: &Context, limit: usize) -> Result<Arc<Compiled>> {
        let cache = Cache::of(context)?;
        match self.said(context.precision()) {
            Some(graph) => cache.get(context, &graph, limit),
            None => cache.get(context, self, limit),
        }
    }

    /// Returns the graph with this precision in every operation that has a precision and gives none. `None` for f32, which is the
    /// precision of such operations anyway.
    fn said(&self, precision: Precision) -> Option<Graph> {
        if precision == Precision::F32 {
            return None;
        }
        let mut graph = self.clone();
        for node in &mut graph.nodes {
            if let Source::Op(op, attrs, _) = &mut node.source
                && let Some(said) = attrs.with_precision(*op, precision)
            {
                *attrs = said;
            }
        }
        Some(graph)
    }

    /// Whether both graphs record the same operations with the same tensors as constants.
    pub fn is_like(&self, other: &Graph) -> bool {
        let like = |(a, b): (&Node, &Node)| {
            a.meta == b.meta
                && match (&a.source, &b.source) {
                    (Source::Input, Source::Input) => true,
                    (Source::Constant(a), Source::Constant(b)) => a.is_same(b),
                    (Source::Reshape(a), Source::Reshape(b)) => a == b,
                    (Source::Rows(a, first), Source::Rows(b, other)) => (a, first) == (b, other),
                    // Runs of one would change the other's.
                    (Source::State(_), Source::State(_)) => false,
                    (Source::Op(a, a_attrs, a_operands), Source::Op(b, b_attrs, b_operands)) => {
                        a == b && a_attrs == b_attrs && a_operands == b_operands
                    }
                    _ => false,
                }
        };
        self.nodes.len() == other.nodes.len()
            && self.inputs == other.inputs
            && self.outputs == other.outputs
            && self.early() == other.early()
            && self.nodes.iter().zip(&other.nodes).all(like)
    }
}

impl Context {
    /// Begins to record operations: see [`Pipeline`], and [`Chain`](super::Chain) for the short form.
    pub fn pipeline(&self) -> Pipeline {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Pipeline {
            context: self.clone(),
            id: NEXT.fetch_add(1, Relaxed),
            graph: Graph::default(),
            #[cfg(feature = "autograd")]
            detached: Vec::new(),
            #[cfg(feature = "autograd")]
            no_grad: false,
            #[cfg(feature = "autograd")]
            in_gradients: false,
            #[cfg(feature = "autograd")]
            recomputed: Vec::new(),
        }
    }
}

impl Pipeline {
    /// Returns the context that the pipeline runs on.
    pub fn context(&self) -> &Context {
        &self.context
    }

    pub(crate) fn push(&mut self, meta: Meta, source: Source) -> Result<Value> {
        /// More values than any model has, so that counters stay far below 32 bits.
        const MOST: usize = 1 << 20;
        let node = self.graph.nodes.len();
        if node == MOST {
            fail!(InvalidArgument, "a pipeline has at most {MOST} values");
        }
        self.graph.nodes.push(Node { meta, source });
        #[cfg(feature = "autograd")]
        if self.no_grad {
            self.detached.push(node as u32);
        }
        Ok(Value { pipeline: self.id, node: node as u32 })
    }

    pub(crate) fn node(&self, value: Value) -> Result<u32> {
        if value.pipeline != self.id || value.node as usize >= self.graph.nodes.len() {
            fail!(InvalidArgument, "the value belongs to another pipeline");
        }
        Ok(value.node)
    }

    /// Returns the value of a node.
    #[cfg(feature = "autograd")]
    pub(crate) fn value_of(&self, node: u32) -> Value {
        Value { pipeline: self.id, node }
    }

    /// Adds an input: a tensor that each run receives. Inputs are numbered in the order of these calls.
    pub fn input(&mut self, dtype: DType, dims: &[usize]) -> Result<Value> {
        let value = self.push(Meta::new(dtype, Shape::new(dims)?), Source::Input)?;
        self.graph.inputs.push(value.node);
        Ok(value)
    }

    /// Adds a constant: a tensor that is the same in each run, such as weights. A GPU receives it once.
    pub fn constant(&mut self, tensor: &Tensor) -> Result<Value> {
        self.push(*tensor.view().meta(), Source::Constant(tensor.clone()))
    }

    /// Adds a state: a tensor that stays on the device between runs and that runs change. Before the first run it is a copy of
    /// `tensor`. States are numbered in the order of these calls. Everything that a run computes from a state uses its value from
    /// before the run.
    ///
    /// ```
    /// use adead_core::{Context, Tensor};
    ///
    /// let mut pipeline = Context::open("cpu")?.pipeline();
    /// let sum = pipeline.state(&Tensor::new(&[0.0f32, 0.0], &[2])?)?;
    /// let x = pipeline.input(adead_core::DType::F32, &[2])?;
    /// let next = pipeline.op(adead_core::Op::Add, &Default::default(), &[Some(sum), Some(x)])?;
    /// pipeline.assign(sum, next)?;
    /// let compiled = pipeline.compile()?;
    /// let x = Tensor::new(&[1.0f32, 2.0], &[2])?;
    /// for _ in 0..3 {
    ///     compiled.run(&[&x])?;
    /// }
    /// assert_eq!(compiled.state(0)?.as_slice::<f32>()?, [3.0, 6.0]);
    /// # Ok::<(), adead_core::Error>(())
    /// ```
    pub fn state(&mut self, tensor: &Tensor) -> Result<Value> {
        let value = self.push(*tensor.view().meta(), Source::State(tensor.clone()))?;
        self.graph.states.push(State { node: value.node, next: None });
        Ok(value)
    }

    /// Makes a value what a state becomes at the end of each run. An operation that works in place, such as an addition or
    /// `where`, then writes the state's own memory if nothing after it needs the old values; otherwise the values are copied.
    ///
    /// Returns `invalid_argument` for a value that is not computed, for a state that is assigned already and for a value that is no
    /// state, and `dtype_mismatch` or `shape_mismatch` for a value of another dtype or shape.
    pub fn assign(&mut self, state: Value, value: Value) -> Result<()> {
        let (state, next) = (self.node(state)?, self.node(value)?);
        let Some(number) = self.graph.states.iter().position(|own| own.node == state) else {
            fail!(InvalidArgument, "a value is assigned to a state; this value is none");
        };
        if self.graph.states[number].next.is_some() {
            fail!(InvalidArgument, "state {number} is assigned already");
        }
        let (expected, given) = (self.graph.meta(state), self.graph.meta(next));
        if expected.dtype != given.dtype {
            fail!(DtypeMismatch, "state {number} is {}; the value is {}", expected.dtype, given.dtype);
        }
        if expected.shape != given.shape {
            fail!(ShapeMismatch, "state {number} is {}; the value is {}", expected.shape, given.shape);
        }
        if !self.graph.is_computed(next) {
            fail!(InvalidArgument, "state {number}: the value must be computed; it is an input, a constant or a state");
        }
        self.graph.states[number].next = Some(next);
        Ok(())
    }

    /// Records an operation on values. `operands` are in the operation's order, `None` for an optional operand that is left out.
    /// Returns the operation's own errors, and `invalid_argument` for a value of another pipeline. On an error nothing is
    /// recorded.
    pub fn op(&mut self, op: Op, attrs: &Attrs, operands: &[Option<Value>]) -> Result<Value> {
        let mut nodes = Operands::new();
        for operand in operands {
            nodes.push(operand.map(|value| self.node(value)).transpose()?);
        }
        let said = self.context.said(op, attrs, &[]);
        let attrs = said.as_ref().unwrap_or(attrs);
        let meta = op.info().infer(attrs, &self.graph.metas(&nodes))?;
        self.push(meta, Source::Op(op, *attrs, nodes))
    }

    /// Gives a value's elements another shape of as many elements, without a copy.
    pub fn reshape(&mut self, value: Value, dims: &[usize]) -> Result<Value> {
        let (node, shape) = (self.node(value)?, Shape::new(dims)?);
        let Meta { dtype, shape: from } = *self.graph.meta(node);
        if shape.elements() != from.elements() {
            fail!(
                ShapeMismatch,
                "can't reshape {from} to {shape}: {} elements against {}",
                from.elements(),
                shape.elements()
            );
        }
        self.push(Meta::new(dtype, shape), Source::Reshape(node))
    }

    /// Takes `count` entries of a value's first axis, from entry `first` on, without a copy. `shape_mismatch` for a scalar,
    /// `invalid_argument` if the range goes beyond the end.
    pub fn rows(&mut self, value: Value, first: usize, count: usize) -> Result<Value> {
        let node = self.node(value)?;
        let Meta { dtype, shape } = *self.graph.meta(node);
        let mut dims = [0; MAX_RANK];
        let dims = &mut dims[..shape.rank()];
        dims.copy_from_slice(shape.dims());
        let Some(rows) = dims.first_mut() else { fail!(ShapeMismatch, "a scalar has no rows") };
        if first > *rows || count > *rows - first {
            fail!(InvalidArgument, "{count} rows from row {first} exceed {shape}");
        }
        *rows = count;
        self.push(Meta::new(dtype, Shape::new(dims)?), Source::Rows(node, first))
    }

    /// Makes a value an output. Outputs are numbered in the order of these calls. Without any call the last value is the output,
    /// unless a state is assigned: then there is none. Returns `invalid_argument` for an input, a constant or a state.
    pub fn output(&mut self, value: Value) -> Result<()> {
        let node = self.node(value)?;
        if !self.graph.is_computed(node) {
            fail!(InvalidArgument, "an output must be computed: this one is an input, a constant or a state");
        }
        self.graph.outputs.push(node);
        Ok(())
    }

    /// Returns the number of outputs: those that [`Pipeline::output`] named. If there were none, it is 0 for a pipeline that assigns
    /// a state, and 1 for others.
    pub fn outputs(&self) -> usize {
        let assigns = self.graph.states.iter().any(|state| state.next.is_some());
        self.graph.outputs.len().max(usize::from(!assigns))
    }

    /// Returns a value's dtype and shape.
    pub fn meta(&self, value: Value) -> Result<Meta> {
        Ok(*self.graph.meta(self.node(value)?))
    }

    /// Makes the last value the output if none was named and no state is assigned.
    fn finished(mut self) -> Result<(Context, Graph)> {
        if self.graph.outputs.is_empty() && self.graph.states.iter().all(|state| state.next.is_none()) {
            let Some(last) = self.graph.nodes.len().checked_sub(1) else {
                fail!(InvalidArgument, "the pipeline is empty");
            };
            self.output(Value { pipeline: self.id, node: last as u32 })?;
        }
        Ok((self.context, self.graph))
    }

    /// Makes what is recorded from here on run as soon as its operands are computed, instead of in the order of recording, so that
    /// [`Compiled::run_early`] can hand out each output before the rest of a run.
    ///
    /// ```
    /// use adead_core::{Context, DType, Op, Tensor};
    ///
    /// let mut pipeline = Context::open("cpu")?.pipeline();
    /// let x = pipeline.input(DType::F32, &[2])?;
    /// let first = pipeline.op(Op::Abs, &Default::default(), &[Some(x)])?;
    /// let second = pipeline.op(Op::Exp, &Default::default(), &[Some(first)])?;
    /// pipeline.hand_out();
    /// for value in [second, first] {
    ///     let copy = pipeline.op(Op::Neg, &Default::default(), &[Some(value)])?;
    ///     pipeline.output(copy)?;
    /// }
    /// let mut order = Vec::new();
    /// pipeline.compile()?.run_early(&[&Tensor::new(&[1.0f32, -2.0], &[2])?], &mut |number, _| Ok(order.push(number)))?;
    /// assert_eq!(order, [1, 0]);
    /// # Ok::<(), adead_core::Error>(())
    /// ```
    #[cfg(feature = "lend")]
    pub fn hand_out(&mut self) {
        self.graph.early.get_or_insert(self.graph.nodes.len() as u32);
    }

    /// Plans the pipeline for the cheapest device and uploads its constants there: see [`Compiled`].
    pub fn compile(self) -> Result<Compiled> {
        let (context, graph) = self.finished()?;
        Compiled::new(&context, graph, usize::MAX, false)
    }

    /// Runs the pipeline once and returns its outputs. Returns `invalid_argument` if it has inputs: compile it and run it with
    /// them. The compiled form is kept for the next pipeline with the same operations and shapes, whatever its constants: see
    /// [`Context::pipeline_cache`].
    pub fn execute(self) -> Result<Vec<Tensor>> {
        let (context, graph) = self.finished()?;
        if !graph.inputs.is_empty() {
            fail!(InvalidArgument, "the pipeline has {} inputs: compile it and run it with them", graph.inputs.len());
        }
        if !graph.states.is_empty() {
            fail!(
                InvalidArgument,
                "the pipeline has {} states: compile it, so that they outlive a run",
                graph.states.len()
            );
        }
        let (graph, tensors) = graph.abstracted();
        let compiled = graph.prepared(&context, usize::MAX)?;
        let tensors: Vec<&Tensor> = tensors.iter().collect();
        compiled.run(&tensors)
    }
}
