//! States of pipelines, parts of values, and steps that share kernels, on the processor and on the machine's first GPU (also a software
//! one), through Vulkan or the backend in `ADEAD_TEST_BACKEND` (`vulkan`, `cuda`).

mod backend;
#[allow(dead_code)]
mod draws;
mod pipelines;

use adead_core::pipeline::{Compiled, Pipeline, Value};
use adead_core::{Attrs, Context, DType, Op, Status, Tensor};
use draws::Random;
use pipelines::{contexts, status};

fn row(values: &[f32]) -> Tensor {
    Tensor::new(values, &[values.len()]).unwrap()
}

fn state(compiled: &Compiled, number: usize) -> Vec<f32> {
    compiled.state(number).unwrap().as_slice::<f32>().unwrap().to_vec()
}

/// Records an operation with default attributes.
fn op<const N: usize>(pipeline: &mut Pipeline, op: Op, operands: [Value; N]) -> Value {
    pipeline.op(op, &Attrs::default(), &operands.map(Some)).unwrap()
}

#[test]
fn states_outlive_runs() {
    for context in contexts() {
        let mut pipeline = context.pipeline();
        let sum = pipeline.state(&row(&[1.0, 2.0, 3.0])).unwrap();
        let product = pipeline.state(&row(&[1.0, 1.0, 1.0])).unwrap();
        let kept = pipeline.state(&row(&[7.0])).unwrap();
        let x = pipeline.input(DType::F32, &[3]).unwrap();
        let next = op(&mut pipeline, Op::Add, [sum, x]);
        let multiplied = op(&mut pipeline, Op::Mul, [product, x]);
        // Reads the old sum behind its next value, so that one can't be written over it.
        let both = op(&mut pipeline, Op::Sub, [next, sum]);
        let with_kept = op(&mut pipeline, Op::Mul, [both, kept]);
        pipeline.assign(sum, next).unwrap();
        pipeline.assign(product, multiplied).unwrap();
        pipeline.output(with_kept).unwrap();
        let compiled = pipeline.compile().unwrap();
        let text = format!("{compiled:?} {compiled}");
        assert!(text.contains("in state 1") && !text.contains("in state 0"), "{text}");
        for (run, expected) in [(2.0, [3.0, 4.0, 5.0]), (3.0, [6.0, 7.0, 8.0]), (0.5, [6.5, 7.5, 8.5])] {
            let outputs = compiled.run(&[&row(&[run; 3])]).unwrap();
            assert_eq!(outputs[0].as_slice::<f32>().unwrap(), [7.0 * run; 3], "{context:?}");
            assert_eq!(state(&compiled, 0), expected, "{context:?}");
        }
        assert_eq!((state(&compiled, 1), state(&compiled, 2)), (vec![3.0; 3], vec![7.0]));
        compiled.set_state(0, &row(&[0.0; 3])).unwrap();
        compiled.write_state(1, 1, &row(&[5.0, 6.0])).unwrap();
        compiled.run(&[&row(&[1.0, 2.0, 3.0])]).unwrap();
        assert_eq!((state(&compiled, 0), state(&compiled, 1)), (vec![1.0, 2.0, 3.0], vec![3.0, 10.0, 18.0]));
        assert_eq!(compiled.states().len(), 3);
    }
}

#[test]
fn a_run_of_operations_is_written_over_a_state_unless_it_reads_the_state_twice() {
    for context in contexts() {
        for twice in [false, true] {
            let mut pipeline = context.pipeline();
            let w = pipeline.state(&row(&[1.0, 2.0])).unwrap();
            let x = pipeline.input(DType::F32, &[2]).unwrap();
            let added = op(&mut pipeline, Op::Add, [w, x]);
            let next = op(&mut pipeline, Op::Mul, [added, if twice { w } else { x }]);
            pipeline.assign(w, next).unwrap();
            assert_eq!(pipeline.outputs(), 0);
            let compiled = pipeline.compile().unwrap();
            assert_eq!(compiled.to_string().contains("in state 0"), !twice, "{compiled}");
            let mut expected = [1.0f32, 2.0];
            for _ in 0..3 {
                assert!(compiled.run(&[&row(&[3.0, 4.0])]).unwrap().is_empty());
                for (w, x) in expected.iter_mut().zip([3.0, 4.0]) {
                    *w = (*w + x) * if twice { *w } else { x };
                }
                assert_eq!(state(&compiled, 0), expected, "{context:?}");
            }
        }
    }
}

#[test]
fn a_selection_is_written_over_a_state() {
    for context in contexts() {
        let mut pipeline = context.pipeline();
        let rows = pipeline.state(&Tensor::new(&[0.0f32; 12], &[2, 3, 2]).unwrap()).unwrap();
        let condition = pipeline.input(DType::Bool, &[3, 1]).unwrap();
        let new = pipeline.input(DType::F32, &[2, 1, 2]).unwrap();
        let next = op(&mut pipeline, Op::Where, [condition, new, rows]);
        let total = op(&mut pipeline, Op::Neg, [next]);
        pipeline.assign(rows, next).unwrap();
        pipeline.output(total).unwrap();
        let compiled = pipeline.compile().unwrap();
        assert!(compiled.to_string().contains("in state 0"), "{compiled}");
        let mut expected = [0.0f32; 12];
        for place in [1, 0, 2, 1] {
            let new: Vec<f32> = (0..4).map(|i| (10 * place + i + 1) as f32).collect();
            let chosen: Vec<u8> = (0..3).map(|i| u8::from(i == place)).collect();
            let chosen = Tensor::from_bytes(&chosen, DType::Bool, &[3, 1]).unwrap();
            let given = [chosen, Tensor::new(&new, &[2, 1, 2]).unwrap()];
            let outputs = compiled.run(&[&given[0], &given[1]]).unwrap();
            for (i, value) in new.iter().enumerate() {
                expected[i / 2 * 6 + place * 2 + i % 2] = *value;
            }
            assert_eq!(state(&compiled, 0), expected, "{context:?}");
            assert_eq!(compiled.state_rows(0, 1, 1).unwrap().to_vec::<f32>().unwrap(), expected[6..]);
            assert_eq!(outputs[0].as_slice::<f32>().unwrap(), expected.map(|x| -x));
        }
    }
}

#[test]
fn an_input_becomes_a_state() {
    for context in contexts() {
        let mut pipeline = context.pipeline();
        let x = pipeline.input(DType::F32, &[2]).unwrap();
        let sum = pipeline.input(DType::F32, &[2]).unwrap();
        let next = op(&mut pipeline, Op::Add, [sum, x]);
        let wrong = [
            (next, row(&[1.0, 2.0]), Status::InvalidArgument),
            (sum, row(&[1.0]), Status::ShapeMismatch),
            (sum, Tensor::new(&[1i32, 2], &[2]).unwrap(), Status::DtypeMismatch),
        ];
        for (value, tensor, expected) in &wrong {
            assert_eq!(status(pipeline.hold(*value, tensor)), Some(*expected));
        }
        pipeline.hold(sum, &row(&[10.0, 20.0])).unwrap();
        assert_eq!(status(pipeline.hold(sum, &row(&[10.0, 20.0]))), Some(Status::InvalidArgument));
        pipeline.assign(sum, next).unwrap();
        let compiled = pipeline.compile().unwrap();
        assert_eq!((compiled.inputs().len(), compiled.states().len()), (1, 1));
        for _ in 0..2 {
            compiled.run(&[&row(&[1.0, 2.0])]).unwrap();
        }
        assert_eq!(state(&compiled, 0), [12.0, 24.0], "{context:?}");
    }
}

#[test]
fn ids_are_checked_without_a_run() {
    for context in contexts() {
        for by_axis in [false, true] {
            let mut pipeline = context.pipeline();
            let sum = pipeline.state(&Tensor::new(&[0.0f32; 4], &[2, 2]).unwrap()).unwrap();
            let ids = pipeline.input(DType::I64, if by_axis { &[2, 2] } else { &[2] }).unwrap();
            let table = pipeline.constant(&Tensor::new(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap()).unwrap();
            let found = op(&mut pipeline, if by_axis { Op::Gather } else { Op::Embedding }, [table, ids]);
            let next = op(&mut pipeline, Op::Add, [sum, found]);
            pipeline.assign(sum, next).unwrap();
            let compiled = pipeline.compile().unwrap();
            let ids = |last: i64| {
                let ids = if by_axis { vec![0, 1, 1, last] } else { vec![1, last] };
                Tensor::new(&ids, if by_axis { &[2, 2] } else { &[2] }).unwrap()
            };
            compiled.ids().check(&[&ids(1)]).unwrap();
            assert_eq!(status(compiled.ids().check(&[])), Some(Status::InvalidArgument));
            let bytes = Tensor::new(&[0u8; 4], &[4]).unwrap();
            assert_eq!(status(compiled.ids().check(&[&bytes])), Some(Status::DtypeMismatch));
            compiled.run(&[&ids(0)]).unwrap();
            let before = state(&compiled, 0);
            assert_eq!(before, if by_axis { [1.0, 2.0, 4.0, 3.0] } else { [3.0, 4.0, 1.0, 2.0] }, "{context:?}");
            for (wrong, position) in [(2, "id 2 at position"), (-1, "id -1 at position")] {
                let error = compiled.ids().check(&[&ids(wrong)]).unwrap_err();
                assert!(error.message().contains(position), "{error}");
                assert_eq!(state(&compiled, 0), before, "{context:?}");
            }
        }
    }
}

#[test]
fn rows_are_parts_without_a_copy() {
    for context in contexts() {
        let cpu = Context::open("cpu").unwrap();
        let x = Tensor::new(&(0..30).map(|i| i as f32 - 14.5).collect::<Vec<_>>(), &[5, 6]).unwrap();
        let mut pipeline = context.pipeline();
        let given = pipeline.input(DType::F32, &[5, 6]).unwrap();
        let negated = op(&mut pipeline, Op::Neg, [given]);
        // Of an input, of a result, of rows in another shape; added, as a state's next value and as outputs.
        let of_input = pipeline.rows(given, 1, 2).unwrap();
        let of_result = pipeline.rows(negated, 3, 2).unwrap();
        let flat = pipeline.reshape(of_result, &[4, 3]).unwrap();
        let inner = pipeline.rows(flat, 1, 2).unwrap();
        let sum = op(&mut pipeline, Op::Add, [of_input, of_result]);
        let doubled = op(&mut pipeline, Op::Add, [inner, inner]);
        let kept = pipeline.state(&Tensor::zeros(DType::F32, &[2, 3]).unwrap()).unwrap();
        pipeline.assign(kept, inner).unwrap();
        for value in [sum, doubled, of_result, inner] {
            pipeline.output(value).unwrap();
        }
        assert_eq!(status(pipeline.output(of_input)), Some(Status::InvalidArgument));
        assert_eq!(status(pipeline.rows(given, 4, 2)), Some(Status::InvalidArgument));
        assert_eq!(status(pipeline.rows(given, usize::MAX, 2)), Some(Status::InvalidArgument));
        let compiled = pipeline.compile().unwrap();
        let y = cpu.neg(&x).unwrap();
        let part = y.rows(3, 2).unwrap();
        let inner = part.reshape(&[4, 3]).unwrap().rows(1, 2).unwrap();
        let expected = [
            cpu.add(&x.rows(1, 2).unwrap(), &part).unwrap(),
            cpu.add(&inner, &inner).unwrap(),
            part.clone(),
            inner.clone(),
        ];
        for _ in 0..2 {
            let found = compiled.run(&[&x]).unwrap();
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(
                    (found.dims(), found.host_bytes().unwrap()),
                    (expected.dims(), expected.bytes()),
                    "{context:?}"
                );
            }
            assert_eq!(compiled.state(0).unwrap().host_bytes().unwrap(), inner.bytes());
        }
    }
}

#[test]
fn wrong_uses_of_states_are_refused() {
    let context = Context::open("cpu").unwrap();
    let mut pipeline = context.pipeline();
    let s = pipeline.state(&row(&[1.0, 2.0])).unwrap();
    let x = pipeline.input(DType::F32, &[2]).unwrap();
    let sum = op(&mut pipeline, Op::Add, [s, x]);
    let total = op(&mut pipeline, Op::Sum, [s]);
    for (state, value, expected) in [
        (s, x, Status::InvalidArgument),
        (s, s, Status::InvalidArgument),
        (x, sum, Status::InvalidArgument),
        (s, total, Status::ShapeMismatch),
    ] {
        assert_eq!(status(pipeline.assign(state, value)), Some(expected));
    }
    assert_eq!(status(pipeline.output(s)), Some(Status::InvalidArgument));
    pipeline.assign(s, sum).unwrap();
    assert_eq!(status(pipeline.assign(s, sum)), Some(Status::InvalidArgument));
    assert_eq!(status(pipeline.clone().execute()), Some(Status::InvalidArgument));
    let compiled = pipeline.compile().unwrap();
    let (long, other) = (row(&[0.0; 3]), Tensor::new(&[0i32; 2], &[2]).unwrap());
    assert_eq!(status(compiled.state(1)), Some(Status::InvalidArgument));
    assert_eq!(status(compiled.state_rows(0, 1, 2)), Some(Status::InvalidArgument));
    assert_eq!(status(compiled.set_state(0, &long)), Some(Status::ShapeMismatch));
    assert_eq!(status(compiled.set_state(0, &other)), Some(Status::DtypeMismatch));
    for (first, tensor) in [(0, &long), (1, &row(&[0.0; 2])), (3, &row(&[])), (usize::MAX, &row(&[0.0]))] {
        assert_eq!(status(compiled.write_state(0, first, tensor)), Some(Status::InvalidArgument));
    }
    assert_eq!(state(&compiled, 0), [1.0, 2.0]);
    let mut alone = context.pipeline();
    alone.state(&row(&[1.0])).unwrap();
    let doubled = alone.state(&row(&[1.0])).unwrap();
    let doubled = op(&mut alone, Op::Add, [doubled, doubled]);
    alone.output(doubled).unwrap();
    assert_eq!(status(alone.execute()), Some(Status::InvalidArgument));
}

#[test]
fn steps_that_share_kernels_have_the_bits_of_single_calls() {
    for context in contexts() {
        let mut random = Random(11);
        for (rows, width) in [(1, 256), (3, 512), (9, 256), (1, 2304)] {
            let mut values = |dims: &[usize]| {
                let count = dims.iter().product();
                let values: Vec<f32> = (0..count).map(|_| (random.below(2001) as f32 - 1000.0) / 500.0).collect();
                Tensor::new(&values, dims).unwrap()
            };
            let (x, y, gamma, beta) =
                (values(&[rows, width]), values(&[rows, width]), values(&[width]), values(&[width]));
            let cpu = Context::open("cpu").unwrap();
            let mut pipeline = context.pipeline();
            let [a, b] = [&x, &y].map(|given| pipeline.input(given.dtype(), given.dims()).unwrap());
            let [g, h] = [&gamma, &beta].map(|given| pipeline.constant(given).unwrap());
            let mut expected = Vec::new();
            // A sum and its norm, both used behind it.
            let sum = op(&mut pipeline, Op::Add, [a, b]);
            let of_sum = cpu.add(&x, &y).unwrap();
            let normed = op(&mut pipeline, Op::Rmsnorm, [sum, g]);
            let of_normed = cpu.rmsnorm(&of_sum, Some(&gamma), Attrs::DEFAULT.eps).unwrap();
            // Products with the same rows, in blocks of 32 and of 256.
            for (seed, format) in ["q4_1", "q8_0", "q4_k", "q6_k", "q4_0"].into_iter().enumerate() {
                let attrs = {
                    let mut attrs = Attrs::DEFAULT;
                    attrs.set(Op::QuantizedMatmul, "format", format).unwrap();
                    attrs
                };
                let format = attrs.format.unwrap();
                let bytes = 5 * width / format.elements() * format.bytes();
                // Every byte's upper half is small, so that no scale is an infinity.
                let bytes: Vec<u8> = (0..bytes).map(|i| ((i * 37 + seed * 11) % 48) as u8).collect();
                let w = Tensor::new(&bytes, &[5, bytes.len() / 5]).unwrap();
                let constant = pipeline.constant(&w).unwrap();
                let product = pipeline.op(Op::QuantizedMatmul, &attrs, &[Some(normed), Some(constant)]).unwrap();
                pipeline.output(product).unwrap();
                expected.push(cpu.quantized_matmul(&of_normed, &w, format).unwrap());
            }
            // In place: nothing reads the sum again.
            let last = op(&mut pipeline, Op::Add, [sum, normed]);
            let last = op(&mut pipeline, Op::Layernorm, [last, g, h]);
            pipeline.output(last).unwrap();
            let of_last = cpu.add(&of_sum, &of_normed).unwrap();
            expected.push(cpu.layernorm(&of_last, Some(&gamma), Some(&beta), Attrs::DEFAULT.eps).unwrap());
            let compiled = pipeline.compile().unwrap();
            let found = compiled.run(&[&x, &y]).unwrap();
            for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert!(
                    found.host_bytes().unwrap() == expected.bytes(),
                    "{context:?}: output {i}, {rows} rows of {width}"
                );
            }
        }
    }
}
