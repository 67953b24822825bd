//! Which constants are packed, and which stay beside their digits.

use super::*;
use crate::error::fail;
use crate::pipeline::{Pipeline, Value};
use std::cell::RefCell;

const FIXED: Attrs = Attrs { precision: Some(Precision::Fixed24), ..Attrs::DEFAULT };
const TURNED: Attrs = Attrs { trans_b: true, ..FIXED };

fn constant(pipeline: &mut Pipeline, dims: &[usize]) -> Value {
    let tensor = Tensor::new(&vec![0.5f32; dims.iter().product()], dims).unwrap();
    pipeline.constant(&tensor).unwrap()
}

fn op(pipeline: &mut Pipeline, op: Op, attrs: &Attrs, operands: &[Value]) -> Value {
    let operands: Vec<_> = operands.iter().copied().map(Some).collect();
    pipeline.op(op, attrs, &operands).unwrap()
}

#[test]
fn right_operands_in_exact_integers_are_packed_once() {
    let context = Context::open("cpu").unwrap();
    let mut pipeline = context.pipeline();
    let x = pipeline.input(DType::F32, &[8, 8]).unwrap();
    let mut matrix = |dims: &[usize]| constant(&mut pipeline, dims);
    let [square, turned, plain] = [(); 3].map(|()| matrix(&[8, 8]));
    let [first, second, many] = [&[8, 9][..], &[9, 8], &[2, 8, 8]].map(matrix);
    let mut y = x;
    // A matrix that two products read in one way, and one that they read in both ways.
    for (attrs, b) in [(FIXED, square), (FIXED, square), (FIXED, turned), (TURNED, turned), (Attrs::DEFAULT, plain)] {
        y = op(&mut pipeline, Op::Matmul, &attrs, &[y, b]);
    }
    // A left operand and a batch of matrices are not packed.
    let left = op(&mut pipeline, Op::Matmul, &FIXED, &[plain, y]);
    let batched = op(&mut pipeline, Op::Matmul, &FIXED, &[left, many]);
    let rows = pipeline.rows(second, 2, 4).unwrap();
    let of_rows = op(&mut pipeline, Op::Matmul, &TURNED, &[x, rows]);
    let ffn = pipeline.op(Op::Ffn, &FIXED, &[Some(y), Some(first), None, Some(second), None]).unwrap();
    // Something else reads this constant too.
    let sum = op(&mut pipeline, Op::Add, &Attrs::DEFAULT, &[ffn, square]);
    for value in [batched, of_rows, sum] {
        pipeline.output(value).unwrap();
    }
    let plan = Arrangement::new(pipeline.graph, false);
    let seen = RefCell::new(Vec::new());
    let pack = |matrix: &Tensor, dtype: DType, transposed: bool, precision: Precision| {
        seen.borrow_mut().push((matrix.dims().to_vec(), transposed));
        context.cpu().pack(&matrix.view(), dtype, transposed, precision).map(Some)
    };
    let weights = Weights::new(&context, &plan, false, &pack).unwrap();
    assert!(Weights::new(&context, &plan, true, &pack).unwrap().0.is_empty());
    let mut seen = seen.into_inner();
    seen.sort();
    let expected: [(&[usize], bool); 6] =
        [(&[4, 8], true), (&[8, 8], false), (&[8, 8], false), (&[8, 8], true), (&[8, 9], false), (&[9, 8], false)];
    assert_eq!(seen, expected.map(|(dims, transposed)| (dims.to_vec(), transposed)));
    let left: Vec<_> = plan.constants.iter().map(|&node| weights.leave(&plan, node)).collect();
    // `square` is added too, `plain` is multiplied in f32, the batch is not packed.
    assert_eq!(left, [true, false, true, false, false, true]);
}

#[test]
fn without_memory_nothing_is_packed() {
    let context = Context::open("cpu").unwrap();
    let mut pipeline = context.pipeline();
    let x = pipeline.input(DType::F32, &[8, 8]).unwrap();
    let [a, b] = [(); 2].map(|()| constant(&mut pipeline, &[8, 8]));
    let y = op(&mut pipeline, Op::Matmul, &FIXED, &[x, a]);
    let y = op(&mut pipeline, Op::Matmul, &FIXED, &[y, b]);
    pipeline.output(y).unwrap();
    let plan = Arrangement::new(pipeline.graph, false);
    let count = RefCell::new(0);
    let weights = Weights::new(&context, &plan, false, &|matrix, dtype, transposed, precision| {
        *count.borrow_mut() += 1;
        match *count.borrow() {
            1 => context.cpu().pack(&matrix.view(), dtype, transposed, precision).map(Some),
            _ => fail!(OutOfMemory, "full"),
        }
    });
    assert!(weights.unwrap().0.is_empty());
    assert_eq!(count.into_inner(), 2);
    let other = Weights::new(&context, &plan, false, &|_, _, _, _| fail!(Io, "lost"));
    assert_eq!(other.err().unwrap().status(), Status::Io);
}
