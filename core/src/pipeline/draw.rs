//! A compiled pipeline as text and as a graph in the DOT language.

use super::compiled::Compiled;
use super::fuse::Step;
use super::graph::{Graph, Source};
use super::plan::Place;
use std::fmt::{self, Write};

/// Writes the recorded operations of a step, such as `matmul+add+relu`. A precision other than f32 follows the operation's name:
/// `matmul fixed24+add`.
pub(super) fn name(step: &Step, graph: &Graph, to: &mut dyn Write) -> fmt::Result {
    for (i, &node) in step.recorded().enumerate() {
        if let Source::Op(op, attrs, _) = &graph.nodes[node as usize].source {
            write!(to, "{}{op}", if i > 0 { "+" } else { "" })?;
            if let Some(precision) = attrs.fixed_precision(*op) {
                write!(to, " {}", precision.name())?;
            }
        }
    }
    Ok(())
}

/// Lists the values that a step reads, each once, without those that the step computes itself.
pub(super) fn read(step: &Step) -> Vec<u32> {
    let mut nodes = Vec::new();
    for link in &step.links {
        for &node in link.operands.iter().flatten() {
            if !nodes.contains(&node) && !step.nodes.contains(&node) {
                nodes.push(node);
            }
        }
    }
    nodes
}

impl Compiled {
    /// Writes the name of a value: `input 0`, `constant 1`, `step 2`.
    fn value(&self, node: u32, to: &mut dyn Write) -> fmt::Result {
        let root = self.plan.graph.root(node);
        let number = |nodes: &[u32]| nodes.iter().position(|&other| other == root).unwrap_or(0);
        match self.plan.graph.nodes[root as usize].source {
            Source::Input => write!(to, "input {}", number(&self.plan.graph.inputs)),
            Source::Constant(_) => write!(to, "constant {}", number(&self.plan.constants)),
            Source::State(_) | Source::Held => write!(to, "state {}", number(&self.plan.graph.state_nodes())),
            _ => {
                let step = self.plan.steps.iter().position(|step| step.result() == root);
                write!(to, "step {}", step.unwrap_or(0))
            }
        }
    }

    /// Returns the plan in the DOT language. Graphviz draws it: `dot -Tsvg`.
    pub fn to_dot(&self) -> String {
        let mut text = String::new();
        // Writing to a String can't fail.
        let _ = self.dot(&mut text);
        text
    }

    fn dot(&self, to: &mut dyn Write) -> fmt::Result {
        let graph = &self.plan.graph;
        to.write_str("digraph pipeline {\n  node [shape=box, fontname=\"sans-serif\"];\n")?;
        let states = graph.state_nodes();
        for (nodes, style) in [(&graph.inputs, "rounded"), (&self.plan.constants, "dashed"), (&states, "bold")] {
            for &node in nodes {
                to.write_str("  \"")?;
                self.value(node, to)?;
                to.write_str("\" [label=\"")?;
                self.value(node, to)?;
                writeln!(to, "\\n{:?}\", style={style}];", graph.meta(node))?;
            }
        }
        for (i, step) in self.plan.steps.iter().enumerate() {
            write!(to, "  \"step {i}\" [label=\"{i}: ")?;
            name(step, graph, to)?;
            writeln!(to, "\\n{:?}\"];", graph.meta(step.result()))?;
            for node in read(step) {
                to.write_str("  \"")?;
                self.value(node, to)?;
                writeln!(to, "\" -> \"step {i}\";")?;
            }
        }
        for (i, &node) in graph.outputs.iter().enumerate() {
            write!(to, "  \"output {i}\" [style=rounded];\n  \"")?;
            self.value(node, to)?;
            writeln!(to, "\" -> \"output {i}\";")?;
        }
        to.write_str("}\n")
    }
}

/// The plan, one line for each step: its operations, its operands, the place of its result.
impl fmt::Display for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (plan, graph) = (&self.plan, &self.plan.graph);
        writeln!(
            f,
            "{} operations in {} steps on {}: {} inputs, {} constants, {} outputs; {} bytes of values in {}",
            self.operations(),
            self.steps(),
            self.device().id,
            graph.inputs.len(),
            plan.constants.len(),
            graph.outputs.len(),
            plan.values,
            plan.block
        )?;
        for (i, step) in plan.steps.iter().enumerate() {
            write!(f, "{i:>4}  ")?;
            name(step, graph, f)?;
            f.write_str("(")?;
            for (i, node) in read(step).into_iter().enumerate() {
                f.write_str(if i > 0 { ", " } else { "" })?;
                self.value(node, f)?;
                write!(f, ": {:?}", graph.meta(node))?;
            }
            write!(f, ") -> {:?}", graph.meta(step.result()))?;
            match plan.places[step.result() as usize] {
                Place::Output(i) => writeln!(f, ", computed output {i}")?,
                Place::Block(at) => writeln!(f, ", at {at}")?,
                Place::State(i) => writeln!(f, ", in state {i}")?,
                _ => f.write_str("\n")?,
            }
        }
        Ok(())
    }
}
