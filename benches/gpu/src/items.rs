//! The items that are measured: operations, sizes, and what each reads, writes and computes.

use adead_core::contract::Precision;
use adead_core::{Attrs, Axis, DType, Meta, Op, Result, Shape};
use serde_json::{Value, json};

/// An operation on operands of fixed shapes.
pub struct Item {
    /// A unique name: `matmul 256x256x256`.
    pub name: String,
    /// The table of the item.
    pub group: &'static str,
    pub op: Op,
    pub attrs: Attrs,
    pub shapes: Vec<Vec<usize>>,
    pub output: Vec<usize>,
    pub flops: f64,
    /// Bytes read and written, each operand and result counted once.
    pub bytes: f64,
    /// Whether `--quick` measures it.
    pub quick: bool,
}

impl Item {
    /// The descriptions of operands and result.
    pub fn metas(&self) -> Result<(Vec<Meta>, Meta)> {
        let meta = |dims: &[usize]| Ok(Meta::new(DType::F32, Shape::new(dims)?));
        Ok((self.shapes.iter().map(|dims| meta(dims)).collect::<Result<_>>()?, meta(&self.output)?))
    }

    /// Bytes of each operand.
    pub fn operand_bytes(&self) -> impl Iterator<Item = usize> {
        self.shapes.iter().map(|dims| bytes_of(dims))
    }

    /// Bytes of the result.
    pub fn output_bytes(&self) -> usize {
        bytes_of(&self.output)
    }

    /// The item as JSON, for programs that measure the same elsewhere.
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "group": self.group,
            "op": self.op.name(),
            "causal": self.attrs.causal,
            "precision": self.attrs.precision().name(),
            "axis": match self.attrs.axis { Axis::At(axis) => json!(axis), _ => Value::Null },
            "shapes": self.shapes,
            "output": self.output,
            "flops": self.flops,
            "bytes": self.bytes,
        })
    }
}

fn bytes_of(dims: &[usize]) -> usize {
    4 * dims.iter().product::<usize>()
}

fn matmul(m: usize, k: usize, n: usize, quick: bool) -> Item {
    Item {
        name: format!("matmul {m}x{k}x{n}"),
        group: "matmul",
        op: Op::Matmul,
        attrs: Attrs::default(),
        shapes: vec![vec![m, k], vec![k, n]],
        output: vec![m, n],
        flops: 2.0 * (m * k) as f64 * n as f64,
        bytes: 4.0 * (m * k + k * n + m * n) as f64,
        quick,
    }
}

/// The same in exact integers.
fn in_precision(precision: Precision, item: Item) -> Item {
    let attrs = Attrs { precision: Some(precision), ..item.attrs };
    let group = if item.group == "matmul" { "fixed" } else { item.group };
    Item { name: format!("{} {}", item.name, precision.name()), group, attrs, ..item }
}

/// `relu(x·w1 + b1)·w2 + b2`.
fn mlp(rows: usize, width: usize, hidden: usize) -> Item {
    Item {
        name: format!("mlp {rows}x{width}x{hidden}x{width}"),
        group: "mlp",
        op: Op::Ffn,
        attrs: Attrs::default(),
        shapes: vec![vec![rows, width], vec![width, hidden], vec![hidden], vec![hidden, width], vec![width]],
        output: vec![rows, width],
        flops: 4.0 * (rows * width) as f64 * hidden as f64,
        bytes: 4.0 * (2 * rows * width + 2 * width * hidden + width + hidden) as f64,
        quick: rows == 32,
    }
}

fn attention([batch, heads, length, width]: [usize; 4], causal: bool, quick: bool) -> Item {
    let shape = vec![batch, heads, length, width];
    // A causal query sees half of the keys on average. Counting all of them, as is usual, would make it look twice as fast.
    let share = if causal { (length + 1) as f64 / (2 * length) as f64 } else { 1.0 };
    Item {
        name: format!("attention {batch}x{heads}x{length}x{width}{}", if causal { " causal" } else { "" }),
        group: "attention",
        op: Op::Attention,
        attrs: Attrs { causal, ..Attrs::default() },
        flops: 4.0 * share * (batch * heads * length * length) as f64 * width as f64,
        bytes: 16.0 * shape.iter().product::<usize>() as f64,
        shapes: vec![shape.clone(); 3],
        output: shape,
        quick,
    }
}

/// A memory-bound operation on rows by columns.
fn memory(op: Op, rows: usize, columns: usize, quick: bool) -> Item {
    let shape = vec![rows, columns];
    let n = (rows * columns) as f64;
    let (mut attrs, mut output, mut shapes) = (Attrs::default(), shape.clone(), vec![shape.clone()]);
    let (flops, bytes_each) = match op {
        Op::Softmax => (8.0, 8.0),
        Op::Layernorm => {
            shapes.extend([vec![columns], vec![columns]]);
            (8.0, 8.0)
        }
        Op::Add => {
            shapes.push(shape);
            (1.0, 12.0)
        }
        Op::Sum => {
            (attrs.axis, output) = (Axis::All, vec![]);
            (1.0, 4.0)
        }
        Op::Transpose => {
            output = vec![columns, rows];
            (0.0, 8.0)
        }
        Op::Gelu => (30.0, 8.0),
        _ => (1.0, 8.0),
    };
    Item {
        name: format!("{op} {rows}x{columns}"),
        group: "memory",
        op,
        attrs,
        shapes,
        output,
        flops: flops * n,
        bytes: bytes_each * n,
        quick,
    }
}

/// Sums of the rows.
fn row_sums(rows: usize, columns: usize) -> Item {
    let mut item = memory(Op::Sum, rows, columns, false);
    item.name = format!("sum of rows {rows}x{columns}");
    (item.attrs.axis, item.output) = (Axis::At(-1), vec![rows]);
    item
}

/// All items, smaller before larger within a kind, so that a device too slow for one item does not get the next.
pub fn all() -> Vec<Item> {
    let mut items = vec![];
    for n in [256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192] {
        items.push(matmul(n, n, n, matches!(n, 256 | 1024 | 4096)));
    }
    items.push(matmul(32, 384, 1536, true));
    items.push(matmul(128, 1024, 4096, false));
    items.push(matmul(1, 4096, 4096, true));
    items.push(matmul(4, 4096, 4096, false));
    items.push(matmul(4096, 64, 4096, false));
    items.push(matmul(64, 8192, 64, false));
    for precision in [Precision::Fixed24, Precision::Fixed16] {
        for n in [512, 1024, 2048, 4096, 8192] {
            items.push(in_precision(precision, matmul(n, n, n, matches!(n, 1024 | 4096))));
        }
        items.push(in_precision(precision, matmul(32, 384, 1536, true)));
        items.push(in_precision(precision, matmul(128, 1024, 4096, true)));
    }
    for (shape, quick) in [([1, 8, 2048, 64], true), ([4, 16, 2048, 64], false), ([1, 16, 4096, 128], false)] {
        items.push(attention(shape, false, quick));
        items.push(attention(shape, true, quick));
    }
    for precision in [Precision::Fixed24, Precision::Fixed16] {
        for shape in [[4, 16, 2048, 64], [1, 16, 4096, 128]] {
            for causal in [false, true] {
                items.push(in_precision(precision, attention(shape, causal, false)));
            }
        }
    }
    let of_rows = [Op::Softmax, Op::Layernorm, Op::Relu, Op::Gelu, Op::Add, Op::Sum, Op::Transpose];
    for (rows, columns) in [(1024, 1024), (16384, 4096)] {
        for op in of_rows {
            items.push(memory(op, rows, columns, true));
        }
        items.push(row_sums(rows, columns));
    }
    for op in [Op::Softmax, Op::Layernorm] {
        items.push(memory(op, 64, 128_256, false));
    }
    for rows in [1, 32, 1024] {
        items.push(mlp(rows, 512, 2048));
    }
    items
}
