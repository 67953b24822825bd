use crate::autograd::tests::{Draw, check};
use crate::error::Result;
use crate::ops::{Attrs, Axis, Op, PerAxis};
use crate::pipeline::{Pipeline, Value};
use crate::{Context, DType};

/// The entries of a value from one on up to another, along an axis.
#[derive(Clone, Copy)]
struct Part(usize, usize, usize);

fn part(pipeline: &mut Pipeline, x: Value, Part(axis, first, end): Part) -> Result<Value> {
    let (mut start, mut stop) = (vec![0; axis], vec![i32::MAX; axis]);
    start.push(first as i32);
    stop.push(end as i32);
    let attrs = Attrs { start: PerAxis::new(&start)?, stop: PerAxis::new(&stop)?, ..Attrs::DEFAULT };
    pipeline.op(Op::Slice, &attrs, &[Some(x)])
}

/// The squares of parts of x, joined along axis 1.
fn squares(pipeline: &mut Pipeline, x: Value, parts: &[Part]) -> Result<Value> {
    let mut all = Vec::new();
    for &own in parts {
        let own = part(pipeline, x, own)?;
        all.push(Some(pipeline.op(Op::Mul, &Attrs::DEFAULT, &[Some(own); 2])?));
    }
    pipeline.op(Op::Concat, &Attrs { axis: Axis::At(1), ..Attrs::DEFAULT }, &all)
}

/// Parts of [4, 6], and how many operations compute x's gradient from theirs, if one joins them.
const CASES: [(&str, &[Part], bool); 7] = [
    ("together the whole", &[Part(1, 0, 2), Part(1, 2, 3), Part(1, 3, 6)], true),
    ("not in order", &[Part(1, 3, 6), Part(1, 0, 3)], true),
    ("with a gap", &[Part(1, 0, 2), Part(1, 3, 6)], false),
    ("without the end", &[Part(1, 0, 2), Part(1, 2, 5)], false),
    ("overlapping", &[Part(1, 0, 4), Part(1, 2, 6)], false),
    ("one of them twice", &[Part(1, 0, 3), Part(1, 3, 6), Part(1, 0, 3)], false),
    ("beside the whole", &[Part(1, 0, 3), Part(1, 3, 6), Part(1, 0, 6)], false),
];

#[test]
fn parts_have_the_gradient_of_their_place() {
    for (name, parts, _) in CASES {
        check(name, &[Draw(3).tensor(&[4, 6], -1.0, 1.0)], |pipeline, values| squares(pipeline, values[0], parts));
    }
    check("of rows", &[Draw(4).tensor(&[4, 6], -1.0, 1.0)], |pipeline, values| {
        let (last, first) = (pipeline.rows(values[0], 2, 2)?, pipeline.rows(values[0], 0, 2)?);
        pipeline.op(Op::Mul, &Attrs::DEFAULT, &[Some(first), Some(last)])
    });
    check("of other axes", &[Draw(5).tensor(&[4, 4], -1.0, 1.0)], |pipeline, values| {
        let rows = part(pipeline, values[0], Part(0, 0, 2))?;
        let columns = part(pipeline, values[0], Part(1, 2, 4))?;
        let columns = pipeline.reshape(columns, &[2, 4])?;
        pipeline.op(Op::Mul, &Attrs::DEFAULT, &[Some(rows), Some(columns)])
    });
}

#[test]
fn parts_that_are_the_whole_are_joined_by_one_operation() {
    let context = Context::open("cpu").unwrap();
    for (name, parts, joined) in CASES {
        let mut pipeline = context.pipeline();
        let x = pipeline.input(DType::F32, &[4, 6]).unwrap();
        let y = squares(&mut pipeline, x, parts).unwrap();
        let loss = pipeline.op(Op::Sum, &Attrs { axis: Axis::All, ..Attrs::DEFAULT }, &[Some(y)]).unwrap();
        let by = pipeline.gradients(loss, &[x]).unwrap()[0];
        let node = pipeline.node(by).unwrap() as usize;
        let crate::pipeline::Source::Op(op, ..) = &pipeline.graph.nodes[node].source else { panic!("{name}") };
        assert_eq!(*op == Op::Concat, joined, "{name}: {op:?}");
    }
}
