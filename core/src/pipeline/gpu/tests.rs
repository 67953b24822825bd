//! Which commands of a plan go together, and how many kernels they become.

use super::*;
use crate::context::Context;
use crate::contract::BlockFormat;
use crate::dtype::DType;
use crate::hal::lowering::run_tests::{Dispatches, Memory};
use crate::ops::{Attrs, PerAxis};
use crate::pipeline::{Pipeline, Value};

#[test]
fn steps_that_share_kernels_go_together() {
    let context = Context::open("cpu").unwrap();
    let mut pipeline = context.pipeline();
    let [a, b] = [(); 2].map(|()| pipeline.input(crate::dtype::DType::F32, &[2, 64]).unwrap());
    let w = pipeline.constant(&Tensor::zeros(crate::dtype::DType::U8, &[5, 40]).unwrap()).unwrap();
    let attrs = Attrs { format: Some(BlockFormat::Q4_1), ..Attrs::DEFAULT };
    let mut op = |op, attrs: &Attrs, operands: &[Value]| {
        let operands: Vec<_> = operands.iter().copied().map(Some).collect();
        pipeline.op(op, attrs, &operands).unwrap()
    };
    let sum = op(Op::Add, &Attrs::DEFAULT, &[a, b]);
    let normed = op(Op::Rmsnorm, &Attrs::DEFAULT, &[sum]);
    let [first, second] = [(); 2].map(|()| op(Op::QuantizedMatmul, &attrs, &[normed, w]));
    let other = op(Op::QuantizedMatmul, &attrs, &[sum, w]);
    // A function and a product make the rows of another one, to whose result something is added.
    let function = op(Op::Silu, &Attrs::DEFAULT, &[a]);
    let gated = op(Op::Mul, &Attrs::DEFAULT, &[function, b]);
    let product = op(Op::QuantizedMatmul, &attrs, &[gated, w]);
    let last = op(Op::Add, &Attrs::DEFAULT, &[first, product]);
    for value in [first, second, other, last] {
        pipeline.output(value).unwrap();
    }
    let plan = Arrangement::new(pipeline.graph, true);
    // What a kernel reads for all of them is not written before the last of them.
    let bytes = |node: u32| match plan.places[node as usize] {
        Place::Block(begin) => begin..begin + plan.graph.meta(node).bytes(),
        place => panic!("{place:?}"),
    };
    let [gated, last] = [gated, last].map(|value| bytes(plan.graph.root(value.to_bits() as u32)));
    assert!(gated.end <= last.start || last.end <= gated.start, "{gated:?} {last:?}");
    let block = Memory(1 << 32, 1 << 20);
    let constants: Vec<Constant> = vec![Some((Arc::new(Memory(2 << 32, 1 << 12)), 0))];
    let memory = super::Memory { block: &block, constants: &constants, weights: &Weights::default(), states: &[] };
    for (together, expected) in [(true, &[4, 1, 4][..]), (false, &[1, 1, 1, 1, 1, 2, 1, 1])] {
        let mut counts = Vec::new();
        record(&plan, 0..plan.steps.len(), &memory, together, &mut |_, commands| {
            counts.push(commands.len());
            Ok(())
        })
        .unwrap();
        assert_eq!(counts, expected);
    }
}

#[test]
fn a_run_is_one_kernel_on_a_gpu() {
    let context = Context::open("cpu").unwrap();
    let [x, row, one] = [&[50, 30][..], &[30], &[]].map(|dims| Tensor::new(&vec![0.5f32; dims.iter().product()], dims));
    let (x, row, one) = (x.unwrap(), row.unwrap(), one.unwrap());
    let mut pipeline = context.pipeline();
    let begun = pipeline.input(x.dtype(), x.dims()).unwrap();
    let [row, one] = [&row, &one].map(|tensor| pipeline.constant(tensor).unwrap());
    let mut op = |op, operands: &[_]| {
        let operands: Vec<_> = operands.iter().copied().map(Some).collect();
        pipeline.op(op, &Default::default(), &operands).unwrap()
    };
    let h = op(Op::Mul, &[begun, row]);
    let h = op(Op::Add, &[row, h]);
    let h = op(Op::Gelu, &[h]);
    let h = op(Op::Sub, &[one, h]);
    let h = op(Op::Mul, &[h, h]);
    let h = op(Op::Add, &[h, begun]);
    let h = op(Op::Scale, &[h]);
    let h = op(Op::Div, &[begun, h]);
    // `h` is used twice, so the operations after it form a run of their own.
    let twice = op(Op::Tanh, &[h]);
    let last = op(Op::Exp, &[twice]);
    let last = op(Op::Add, &[last, h]);
    pipeline.output(last).unwrap();
    let graph = pipeline.graph;
    let plan = Arrangement::new(graph, true);
    let lengths: Vec<usize> = plan.steps.iter().map(|step| step.links.len()).collect();
    let block = Memory(1 << 32, 1 << 20);
    let constants: Vec<Constant> =
        vec![Some((Arc::new(Memory(2 << 32, 1 << 12)), 0)), Some((Arc::new(Memory(3 << 32, 1 << 12)), 0))];
    let mut dispatches = Dispatches::default();
    let mut counts = Vec::new();
    let memory = super::Memory { block: &block, constants: &constants, weights: &Weights::default(), states: &[] };
    record(&plan, 0..plan.steps.len(), &memory, true, &mut |_, commands| {
        counts.extend(dispatches.all(commands)?);
        Ok(())
    })
    .unwrap();
    assert_eq!((lengths, counts), (vec![8, 3], vec![8, 3]));
    assert!(dispatches.0.iter().all(|kernel| kernel.0));
}

#[cfg(feature = "cuda")]
#[test]
fn a_step_of_text_generation_is_few_kernels() {
    let context = Context::open("cpu").unwrap();
    for (rows, expected) in [(1, &[2, 3, 1, 2, 2, 4][..]), (3, &[2, 7, 1, 2, 2, 6])] {
        let (heads, kv, width, positions) = (3, 1, 64, 256);
        let (wide, all) = (heads * width, (heads + 2 * kv) * width);
        let mut to = context.pipeline();
        let x = to.input(DType::F32, &[rows, wide]).unwrap();
        let chosen = to.input(DType::Bool, &[rows, 1, positions, 1]).unwrap();
        let angles = [(); 2].map(|()| to.input(DType::F32, &[rows, 1, width / 2]).unwrap());
        let weights = to.constant(&Tensor::new(&vec![1.0f32; wide], &[wide]).unwrap()).unwrap();
        let attrs = Attrs { format: Some(BlockFormat::Q4_1), ..Attrs::DEFAULT };
        let op = |to: &mut Pipeline, op, attrs: &Attrs, operands: &[Value]| {
            to.op(op, attrs, &operands.iter().copied().map(Some).collect::<Vec<_>>()).unwrap()
        };
        let product = |to: &mut Pipeline, x, outputs: usize| {
            let w = Tensor::zeros(DType::U8, &[outputs, wide / 32 * 20]).unwrap();
            let w = to.constant(&w).unwrap();
            op(to, Op::QuantizedMatmul, &attrs, &[x, w])
        };
        let columns = |to: &mut Pipeline, x, first: usize, count: usize| {
            let list = |list: [usize; 2]| PerAxis::new(&list.map(|n| n as i32)).unwrap();
            let attrs = Attrs { start: list([0, first]), stop: list([rows, first + count]), ..Attrs::DEFAULT };
            to.op(Op::Slice, &attrs, &[Some(x)]).unwrap()
        };
        let none = Attrs::DEFAULT;
        let normed = op(&mut to, Op::Rmsnorm, &none, &[x, weights]);
        let y = product(&mut to, normed, all);
        let turned = |to: &mut Pipeline, x, heads| {
            let x = to.reshape(x, &[rows, heads, width]).unwrap();
            op(to, Op::Rope, &none, &[x, angles[0], angles[1]])
        };
        let parts = if rows == 1 {
            let column = to.reshape(y, &[heads + 2 * kv, width]).unwrap();
            let both = to.rows(column, 0, heads + kv).unwrap();
            let both = turned(&mut to, both, heads + kv);
            let both = to.reshape(both, &[heads + kv, width]).unwrap();
            [(both, 0, heads), (both, heads, kv), (column, heads + kv, kv)]
                .map(|(of, first, count)| to.rows(of, first, count).unwrap())
        } else {
            let [q, k, v] = [(0, heads), (heads, kv), (heads + kv, kv)]
                .map(|(first, count)| columns(&mut to, y, first * width, count * width));
            [turned(&mut to, q, heads), turned(&mut to, k, kv), v]
        };
        let empty = Tensor::zeros(DType::F32, &[rows, kv, positions, width]).unwrap();
        let [keys, values] = [parts[1], parts[2]].map(|new| {
            let state = to.state(&empty).unwrap();
            let new = to.reshape(new, &[rows, kv, 1, width]).unwrap();
            let next = op(&mut to, Op::Where, &none, &[chosen, new, state]);
            to.assign(state, next).unwrap();
            next
        });
        let queries = to.reshape(parts[0], &[rows, heads, 1, width]).unwrap();
        let attended = op(&mut to, Op::Attention, &none, &[queries, keys, values]);
        let attended = to.reshape(attended, &[rows, wide]).unwrap();
        let product_of = product(&mut to, attended, wide);
        let x = op(&mut to, Op::Add, &none, &[x, product_of]);
        let normed = op(&mut to, Op::Rmsnorm, &none, &[x, weights]);
        let both = product(&mut to, normed, 2 * wide);
        let [gate, up] = if rows == 1 {
            let column = to.reshape(both, &[2 * wide, 1]).unwrap();
            [0, wide].map(|first| {
                let part = to.rows(column, first, wide).unwrap();
                to.reshape(part, &[1, wide]).unwrap()
            })
        } else {
            [0, wide].map(|first| columns(&mut to, both, first, wide))
        };
        let gate = op(&mut to, Op::Silu, &none, &[gate]);
        let between = op(&mut to, Op::Mul, &none, &[gate, up]);
        let down = product(&mut to, between, wide);
        let last = op(&mut to, Op::Add, &none, &[x, down]);
        to.output(last).unwrap();
        let plan = Arrangement::new(to.graph, true);
        let buffer = |number: u64| -> Arc<dyn Buffer> { Arc::new(Memory(number << 32, 1 << 24)) };
        let constants: Vec<_> = (0..plan.constants.len()).map(|i| Some((buffer(2 + i as u64), 0))).collect();
        let states: Vec<_> = (0..plan.graph.states.len()).map(|i| buffer(100 + i as u64)).collect();
        let block = buffer(1);
        let memory =
            super::Memory { block: &*block, constants: &constants, weights: &Weights::default(), states: &states };
        let mut dispatches = Dispatches(Vec::new(), Some(crate::hal::cuda::test_limits(90)));
        let mut counts = Vec::new();
        record(&plan, 0..plan.steps.len(), &memory, true, &mut |_, commands| {
            counts.extend(dispatches.all(commands)?);
            Ok(())
        })
        .unwrap();
        assert_eq!(counts, expected, "{rows} rows");
    }
}
