//! The network, recorded from operations that have gradients. It computes what `model.rs` computes, with the same bits.

use super::ATTENTION;
use super::files::Files;
use adead::pipeline::Value;
use adead::train::{Init, Network};
use adead::{Activation, Attrs, Axis, Op, Permutation, Result, Tensor};

/// Those rows of one of the model's tables that learn.
pub(super) struct Table {
    /// The table's name in the model's file.
    pub name: String,
    /// The rows' numbers in it. Sorted.
    pub numbers: Vec<u32>,
    /// The rows, `[numbers, width]`.
    pub rows: Tensor,
}

impl Table {
    /// Takes rows of a model's table, which has `count` of them.
    pub fn new(files: &Files, name: &str, count: usize, numbers: Vec<u32>) -> Result<Table> {
        let name = format!("{}embeddings.{name}_embeddings.weight", files.root());
        let width = files.config.width;
        let whole = files.weights.tensor(&name, &[count, width])?;
        let values = whole.as_slice::<f32>()?;
        let rows = numbers.iter().flat_map(|&row| &values[row as usize * width..][..width]);
        let rows = Tensor::new(&rows.copied().collect::<Vec<f32>>(), &[numbers.len(), width])?;
        Ok(Table { name, numbers, rows })
    }

    /// The name of the rows as a parameter.
    pub fn parameter(&self) -> String {
        format!("{}.rows", self.name)
    }
}

/// Records the embeddings of sentences, `[sentences, width]`, before they are divided by their lengths. `tables` have words, as many
/// positions as `length`, and the one type. `ids` are numbers of the first table's rows, and `kept` is 1 for those that count and 0 for
/// padding, both `[…, length]`.
pub(super) fn record(
    net: &mut Network,
    files: &Files,
    tables: &[Table; 3],
    [ids, kept]: [Value; 2],
    dropout: f32,
) -> Result<Value> {
    let dims = net.dims(ids)?;
    let length = dims.last().copied().unwrap_or(1);
    let sentences = dims.iter().product::<usize>() / length.max(1);
    let (root, width) = (files.root(), files.config.width);
    let mut to = Recorder { net, files, sentences, length, dropout };
    let rows = sentences * length;

    let [words, positions, kind] = tables;
    let mut table =
        |table: &Table| to.net.parameter(&table.parameter(), table.rows.dims(), &Init::Tensor(table.rows.clone()));
    let (words, positions, kind) = (table(words)?, table(positions)?, table(kind)?);
    let ids = to.net.pipeline().reshape(ids, &[rows])?;
    let found = to.net.op(Op::Embedding, &[words, ids])?;
    let places = to.net.op(Op::Add, &[positions, kind])?;
    let found = to.net.pipeline().reshape(found, &[sentences, length, width])?;
    let sum = to.net.op(Op::Add, &[found, places])?;
    let sum = to.net.pipeline().reshape(sum, &[rows, width])?;
    let normed = to.norm(&format!("{root}embeddings.LayerNorm"), sum)?;
    let mut x = to.net.dropout(normed, dropout)?;

    // log 1 = 0 for what is seen, and log 0 = −inf for padding.
    let mask = to.net.pipeline().reshape(kept, &[sentences, 1, 1, length])?;
    let mask = to.net.op(Op::Log, &[mask])?;
    for number in 0..files.layers {
        let since = to.net.pipeline().values();
        x = to.layer(&format!("{root}encoder.layer.{number}"), x, mask)?;
        to.net.end_part(since)?;
    }

    let tokens = to.net.pipeline().reshape(x, &[sentences, length, width])?;
    let own = to.net.pipeline().reshape(kept, &[sentences, length, 1])?;
    let seen = to.net.op(Op::Mul, &[tokens, own])?;
    let along = Attrs { axis: Axis::At(1), ..Attrs::DEFAULT };
    let (sums, lengths) = (to.net.op_with(Op::Sum, &along, &[seen])?, to.net.op_with(Op::Sum, &along, &[own])?);
    to.net.op(Op::Div, &[sums, lengths])
}

/// Records layers.
struct Recorder<'a> {
    net: &'a mut Network,
    files: &'a Files,
    sentences: usize,
    length: usize,
    dropout: f32,
}

impl Recorder<'_> {
    fn parameter(&mut self, name: &str, dims: &[usize]) -> Result<Value> {
        let tensor = self.files.weights.tensor(name, dims)?;
        self.net.parameter(name, dims, &Init::Tensor(tensor))
    }

    fn norm(&mut self, name: &str, x: Value) -> Result<Value> {
        let width = self.files.config.width;
        let weight = self.parameter(&format!("{name}.weight"), &[width])?;
        let bias = self.parameter(&format!("{name}.bias"), &[width])?;
        let attrs = Attrs { eps: self.files.config.eps, ..Attrs::DEFAULT };
        self.net.op_with(Op::Layernorm, &attrs, &[x, weight, bias])
    }

    /// `activation(x·Wᵀ + residual + bias)` as one operation.
    fn linear(
        &mut self,
        name: &str,
        x: Value,
        [outputs, inputs]: [usize; 2],
        residual: Option<Value>,
        activation: Activation,
    ) -> Result<Value> {
        let weight = self.parameter(&format!("{name}.weight"), &[outputs, inputs])?;
        let bias = self.parameter(&format!("{name}.bias"), &[outputs])?;
        let beta = if residual.is_some() { 1.0 } else { 0.0 };
        let attrs = Attrs { trans_b: true, beta, activation: Some(activation), ..Attrs::DEFAULT };
        self.net.pipeline().op(Op::Matmul, &attrs, &[Some(x), Some(weight), residual, Some(bias)])
    }

    /// The product of a part's end, with what the part began from. Dropout comes between the two.
    fn closed(&mut self, name: &str, x: Value, dims: [usize; 2], before: Value) -> Result<Value> {
        if self.dropout == 0.0 || !self.net.is_training() {
            return self.linear(name, x, dims, Some(before), Activation::None);
        }
        let y = self.linear(name, x, dims, None, Activation::None)?;
        let y = self.net.dropout(y, self.dropout)?;
        self.net.op(Op::Add, &[y, before])
    }

    /// A layer with the norms last, as BERT has it.
    fn layer(&mut self, name: &str, x: Value, mask: Value) -> Result<Value> {
        let config = self.files.config;
        let (width, hidden) = (config.width, config.hidden);
        let square = [width, width];
        let part = |to: &mut Self, part: &str| -> Result<Value> {
            let y = to.linear(&format!("{name}.attention.self.{part}"), x, square, None, Activation::None)?;
            let dims = [to.sentences, to.length, config.heads, width / config.heads];
            let y = to.net.pipeline().reshape(y, &dims)?;
            to.net.op_with(Op::Transpose, &Attrs { perm: Permutation::new(&[0, 2, 1, 3])?, ..Attrs::DEFAULT }, &[y])
        };
        let (q, k, v) = (part(self, "query")?, part(self, "key")?, part(self, "value")?);
        let attrs = Attrs { precision: Some(ATTENTION), ..Attrs::DEFAULT };
        let y = self.net.op_with(Op::Attention, &attrs, &[q, k, v, mask])?;
        let attrs = Attrs { perm: Permutation::new(&[0, 2, 1, 3])?, ..Attrs::DEFAULT };
        let y = self.net.op_with(Op::Transpose, &attrs, &[y])?;
        let y = self.net.pipeline().reshape(y, &[self.sentences * self.length, width])?;
        let y = self.closed(&format!("{name}.attention.output.dense"), y, square, x)?;
        let h = self.norm(&format!("{name}.attention.output.LayerNorm"), y)?;
        let inner = format!("{name}.intermediate.dense");
        let between = self.linear(&inner, h, [hidden, width], None, config.activation)?;
        let y = self.closed(&format!("{name}.output.dense"), between, [width, hidden], h)?;
        self.norm(&format!("{name}.output.LayerNorm"), y)
    }
}
