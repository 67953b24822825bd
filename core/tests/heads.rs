//! What stands between the products and the attention of a step of text generation, on the machine's first GPU (also a software one),
//! through Vulkan or the backend in `ADEAD_TEST_BACKEND` (`vulkan`, `cuda`): the bits of the processor.

mod backend;
#[allow(dead_code)]
mod draws;
#[allow(dead_code)]
mod pipelines;

use adead_core::contract::{BlockFormat, GeluForm};
use adead_core::pipeline::{Pipeline, Value};
use adead_core::{Attrs, Context, DType, Op, PerAxis, Tensor};
use draws::Random;
use pipelines::contexts;

fn values(random: &mut Random, dims: &[usize]) -> Tensor {
    let values: Vec<f32> = (0..dims.iter().product()).map(|_| random.below(2001) as f32 / 1000.0 - 1.0).collect();
    Tensor::new(&values, dims).unwrap()
}

fn op<const N: usize>(to: &mut Pipeline, op: Op, attrs: &Attrs, operands: [Value; N]) -> Value {
    to.op(op, attrs, &operands.map(Some)).unwrap()
}

fn columns(to: &mut Pipeline, x: Value, rows: usize, [first, count]: [usize; 2]) -> Value {
    let list = |list: [usize; 2]| PerAxis::new(&list.map(|n| n as i32)).unwrap();
    let attrs = Attrs { start: list([0, first]), stop: list([rows, first + count]), ..Attrs::DEFAULT };
    op(to, Op::Slice, &attrs, [x])
}

/// The sizes of a step.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    rows: usize,
    heads: usize,
    kv: usize,
    width: usize,
    positions: usize,
    interleaved: bool,
    /// Whether rope turns the heads of queries and keys at once, as it does those of one row.
    joined: bool,
}

/// Records a step that puts keys and values into two states, and outputs the queries and what else is asked for.
fn record(context: &Context, sizes: Sizes, shown: bool) -> Pipeline {
    let Sizes { rows, heads, kv, width, positions, interleaved, joined } = sizes;
    let mut to = context.pipeline();
    let x = to.input(DType::F32, &[rows, (heads + 2 * kv) * width]).unwrap();
    let chosen = to.input(DType::Bool, &[rows, 1, positions, 1]).unwrap();
    let tables = [(); 2].map(|()| to.input(DType::F32, &[rows, 1, width / 2]).unwrap());
    let rope = Attrs { interleaved, ..Attrs::DEFAULT };
    let (queries, keys, parts);
    if joined {
        let all = to.reshape(x, &[heads + 2 * kv, width]).unwrap();
        let both = to.rows(all, 0, heads + kv).unwrap();
        let both = to.reshape(both, &[rows, heads + kv, width]).unwrap();
        let both = op(&mut to, Op::Rope, &rope, [both, tables[0], tables[1]]);
        let both = to.reshape(both, &[heads + kv, width]).unwrap();
        (queries, keys) = (to.rows(both, 0, heads).unwrap(), to.rows(both, heads, kv).unwrap());
        parts = [queries, keys, to.rows(all, heads + kv, kv).unwrap()];
    } else {
        let counts = [heads, kv, kv].map(|heads| heads * width);
        let mut first = 0;
        parts = counts.map(|count| {
            let part = columns(&mut to, x, rows, [first, count]);
            first += count;
            part
        });
        let mut turned = |part: usize, heads: usize| {
            let part = to.reshape(parts[part], &[rows, heads, width]).unwrap();
            op(&mut to, Op::Rope, &rope, [part, tables[0], tables[1]])
        };
        (queries, keys) = (turned(0, heads), turned(1, kv));
    }
    let empty = Tensor::zeros(DType::F32, &[rows, kv, positions, width]).unwrap();
    for new in [keys, parts[2]] {
        let state = to.state(&empty).unwrap();
        let new = to.reshape(new, &[rows, kv, 1, width]).unwrap();
        let next = op(&mut to, Op::Where, &Attrs::DEFAULT, [chosen, new, state]);
        to.assign(state, next).unwrap();
    }
    to.output(queries).unwrap();
    if shown {
        // The values of a single row are the input's.
        let shown = &parts[..if joined { 2 } else { 3 }];
        shown.iter().chain([&keys]).for_each(|&value| to.output(value).unwrap());
    }
    to
}

#[test]
fn heads_have_the_bits_of_the_cpu() {
    let cpu = Context::open("cpu").unwrap();
    let mut random = Random(7);
    let plain = Sizes { rows: 3, heads: 3, kv: 1, width: 64, positions: 48, interleaved: false, joined: false };
    let all = [
        plain,
        Sizes { rows: 1, joined: true, heads: 4, kv: 2, ..plain },
        Sizes { rows: 1, joined: true, interleaved: true, width: 4, ..plain },
        Sizes { rows: 5, heads: 2, kv: 2, width: 20, interleaved: true, ..plain },
        Sizes { rows: 2, width: 256, positions: 16, ..plain },
        // More positions than the threads of a workgroup look at together.
        Sizes { rows: 2, width: 8, positions: 8208, ..plain },
        // A kernel of its own for each operation: heads that are too wide, of other sizes, and bools that are not whole vectors.
        Sizes { width: 260, ..plain },
        Sizes { width: 6, ..plain },
        Sizes { positions: 40, ..plain },
    ];
    let contexts = contexts();
    for (sizes, shown) in all.into_iter().flat_map(|sizes| [(sizes, false), (sizes, true)]) {
        let Sizes { rows, heads, kv, width, positions, .. } = sizes;
        let expected = record(&cpu, sizes, shown).compile().unwrap();
        let found: Vec<_> = contexts.iter().map(|context| record(context, sizes, shown).compile().unwrap()).collect();
        for round in 0..3 {
            let x = values(&mut random, &[rows, (heads + 2 * kv) * width]);
            // A row may choose no position, or several.
            let count = [1, 0, 3][round];
            let mut chosen = vec![false; rows * positions];
            for row in 0..rows {
                (0..count).for_each(|_| chosen[row * positions + random.below(positions)] = true);
            }
            let chosen = Tensor::from_bools(&chosen, &[rows, 1, positions, 1]).unwrap();
            let [cos, sin] = [(); 2].map(|()| values(&mut random, &[rows, 1, width / 2]));
            let inputs = [&x, &chosen, &cos, &sin];
            let outputs = expected.run(&inputs).unwrap();
            for (found, context) in found.iter().zip(&contexts) {
                for (i, (found, expected)) in found.run(&inputs).unwrap().iter().zip(&outputs).enumerate() {
                    let same = found.host_bytes().unwrap() == expected.host_bytes().unwrap();
                    assert!(same, "{context:?}: {sizes:?}, {shown}, run {round}: output {i}");
                }
                for state in 0..2 {
                    let [found, expected] = [found, &expected].map(|of| of.state_rows(state, 0, rows).unwrap());
                    let same = found.host_bytes().unwrap() == expected.host_bytes().unwrap();
                    assert!(same, "{context:?}: {sizes:?}, {shown}, run {round}: state {state}");
                }
            }
        }
    }
}

#[test]
fn columns_of_rows_are_gated_and_multiplied() {
    let cpu = Context::open("cpu").unwrap();
    let mut random = Random(8);
    let contexts = contexts();
    let (width, outputs) = (320, 72);
    for (rows, function, format, shown, swapped) in [
        (2, Op::Silu, BlockFormat::Q4_1, false, false),
        (3, Op::Gelu, BlockFormat::Q8_0, true, false),
        (17, Op::Silu, BlockFormat::Q4_0, false, true),
        (40, Op::Silu, BlockFormat::Q5_1, true, true),
    ] {
        let w = random.blocks(format, &[outputs], width / format.elements());
        let [x, other] = [[rows, 2 * width], [rows, outputs]].map(|dims| values(&mut random, &dims));
        let record = |context: &Context| {
            let mut to = context.pipeline();
            let [x, other] = [&x, &other].map(|tensor| to.input(DType::F32, tensor.dims()).unwrap());
            let parts = [0, width].map(|first| columns(&mut to, x, rows, [first, width]));
            let gate = op(&mut to, function, &Attrs { form: GeluForm::Tanh, ..Attrs::DEFAULT }, [parts[0]]);
            let operands = if swapped { [parts[1], gate] } else { [gate, parts[1]] };
            let gated = op(&mut to, Op::Mul, &Attrs::DEFAULT, operands);
            let w = to.constant(&w).unwrap();
            let attrs = Attrs { format: Some(format), ..Attrs::DEFAULT };
            let y = op(&mut to, Op::QuantizedMatmul, &attrs, [gated, w]);
            let sum = op(&mut to, Op::Add, &Attrs::DEFAULT, [y, other]);
            to.output(sum).unwrap();
            if shown {
                [parts[0], parts[1], gated].into_iter().for_each(|value| to.output(value).unwrap());
            }
            to.compile().unwrap()
        };
        let expected = record(&cpu).run(&[&x, &other]).unwrap();
        for context in &contexts {
            let found = record(context).run(&[&x, &other]).unwrap();
            for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let same = found.host_bytes().unwrap() == expected.host_bytes().unwrap();
                assert!(same, "{context:?}: {rows} rows, {function:?}, {format:?}: output {i}");
            }
        }
    }
}
