//! Gradients against differences of the loss, for every operation.

use crate::context::Context;
use crate::contract::{Activation, GeluForm, Precision};
use crate::dtype::DType;
use crate::error::{Result, Status};
use crate::ops::{Attrs, Axis, Op, PerAxis, Permutation};
use crate::pipeline::{Pipeline, Value};
use crate::tensor::Tensor;
use std::collections::BTreeSet;

/// Numbers from a to b, the same in every run.
pub(super) struct Draw(pub(super) u64);

impl Draw {
    pub(super) fn tensor(&mut self, dims: &[usize], from: f32, to: f32) -> Tensor {
        let mut next = || {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            from + (to - from) * ((self.0 >> 40) as f32 / (1u64 << 24) as f32)
        };
        let values: Vec<f32> = (0..dims.iter().product()).map(|_| next()).collect();
        Tensor::new(&values, dims).unwrap()
    }
}

/// Compares the gradients of a loss by its inputs with central differences. The loss is the sum of what `build` records, each element
/// with a weight of its own.
pub(super) fn check(what: &str, inputs: &[Tensor], build: impl Fn(&mut Pipeline, &[Value]) -> Result<Value>) {
    let context = Context::open("cpu").unwrap();
    let mut pipeline = context.pipeline();
    let values: Vec<Value> = inputs.iter().map(|tensor| pipeline.input(DType::F32, tensor.dims()).unwrap()).collect();
    let y = build(&mut pipeline, &values).unwrap();
    let shape = pipeline.meta(y).unwrap().shape;
    let weights = Draw(7).tensor(shape.dims(), 0.5, 1.5);
    let weights = pipeline.constant(&weights).unwrap();
    let weighted = pipeline.op(Op::Mul, &Attrs::DEFAULT, &[Some(y), Some(weights)]).unwrap();
    let all = Attrs { axis: Axis::All, ..Attrs::DEFAULT };
    let loss = pipeline.op(Op::Sum, &all, &[Some(weighted)]).unwrap();
    let gradients = pipeline.gradients(loss, &values).unwrap_or_else(|error| panic!("{what}: {error}"));
    pipeline.output(weighted).unwrap();
    for (gradient, value) in gradients.iter().zip(&values) {
        assert_eq!(pipeline.meta(*gradient).unwrap(), pipeline.meta(*value).unwrap(), "{what}");
        let gradient = pipeline.op(Op::Scale, &Attrs::DEFAULT, &[Some(*gradient)]).unwrap();
        pipeline.output(gradient).unwrap();
    }
    let compiled = pipeline.compile().unwrap();
    let run = |inputs: &[Tensor]| compiled.run(&inputs.iter().collect::<Vec<_>>()).unwrap();
    let total = |inputs: &[Tensor]| run(inputs)[0].to_vec::<f32>().unwrap().iter().map(|&x| f64::from(x)).sum::<f64>();
    let found = run(inputs);
    for (i, input) in inputs.iter().enumerate() {
        let (own, gradient) = (input.to_vec::<f32>().unwrap(), found[i + 1].to_vec::<f32>().unwrap());
        for at in 0..own.len() {
            const STEP: f32 = 1.0 / 128.0;
            let moved = |by: f32| {
                let mut changed = own.clone();
                changed[at] += by;
                let mut inputs = inputs.to_vec();
                inputs[i] = Tensor::new(&changed, input.dims()).unwrap();
                total(&inputs)
            };
            let slope = (moved(STEP) - moved(-STEP)) / f64::from(2.0 * STEP);
            let apart = (slope - f64::from(gradient[at])).abs();
            assert!(
                apart < 4e-3 * slope.abs().max(1.0),
                "{what}: input {i}, element {at}: {} and {slope}",
                gradient[at]
            );
        }
    }
}

/// Records one operation on all inputs.
fn only(op: Op, attrs: Attrs) -> impl Fn(&mut Pipeline, &[Value]) -> Result<Value> {
    move |pipeline, values| pipeline.op(op, &attrs, &values.iter().copied().map(Some).collect::<Vec<_>>())
}

#[test]
fn every_operation_has_the_slope_of_its_differences() {
    let mut draw = Draw(1);
    let mut seen = BTreeSet::new();
    let plain = Attrs::DEFAULT;
    for &op in Op::ALL {
        let name = op.info().name;
        let (a, near_one) = (draw.tensor(&[3, 4], -2.0, 2.0), draw.tensor(&[3, 4], 0.5, 2.0));
        let row = draw.tensor(&[4], 0.5, 2.0);
        match op {
            Op::Neg | Op::Exp | Op::Sigmoid | Op::Tanh | Op::Silu | Op::Erf | Op::Sin | Op::Cos | Op::Expm1 => {
                check(name, &[a], only(op, plain));
            }
            Op::Abs | Op::Relu => {
                // Not near 0.
                let away: Vec<f32> = a.to_vec::<f32>().unwrap().iter().map(|x| x + 0.1f32.copysign(*x)).collect();
                check(name, &[Tensor::new(&away, &[3, 4]).unwrap()], only(op, plain));
            }
            Op::Log | Op::Sqrt | Op::Rsqrt | Op::Log1p => check(name, &[near_one], only(op, plain)),
            Op::Scale => check(name, &[a], only(op, Attrs { alpha: -1.5, ..plain })),
            Op::Gelu => {
                for form in [GeluForm::Erf, GeluForm::Tanh] {
                    check(name, &[draw.tensor(&[9], -3.0, 3.0)], only(op, Attrs { form, ..plain }));
                }
            }
            Op::Clamp => {
                let x = Tensor::new(&[-2.0f32, -1.1, -0.9, 0.0, 0.7, 0.9, 3.0], &[7]).unwrap();
                check(name, &[x], only(op, Attrs { min: -1.0, max: 0.8, ..plain }));
            }
            Op::Add | Op::Sub | Op::Mul | Op::Maximum | Op::Minimum => {
                check(name, &[a.clone(), row.clone()], only(op, plain));
                check(name, &[draw.tensor(&[1, 4], -1.0, 1.0), draw.tensor(&[2, 3, 1], -1.0, 1.0)], only(op, plain));
            }
            Op::Div => check(name, &[a, row], only(op, plain)),
            Op::Pow => {
                check(name, &[near_one, draw.tensor(&[4], -2.0, 2.0)], only(op, plain));
                let squares = only(op, plain);
                check("x^2", &[a], |pipeline, values| {
                    let two = pipeline.constant(&Tensor::new(&[2.0f32], &[])?)?;
                    squares(pipeline, &[values[0], two])
                });
            }
            Op::Sum | Op::Mean => {
                for axis in [Axis::All, Axis::At(0), Axis::At(-1)] {
                    check(name, std::slice::from_ref(&a), only(op, Attrs { axis, ..plain }));
                }
                let axes = Permutation::new(&[0, -1]).unwrap();
                let x = draw.tensor(&[2, 3, 2], -1.0, 1.0);
                check(name, &[x], only(op, Attrs { axes, keepdim: true, ..plain }));
            }
            Op::Max | Op::Min => {
                let x = Tensor::new(&[1.0f32, 3.0, -2.0, 0.5, 2.5, -1.0], &[2, 3]).unwrap();
                check(name, std::slice::from_ref(&x), only(op, Attrs { axis: Axis::At(1), ..plain }));
                check(name, &[x], only(op, Attrs { axis: Axis::All, ..plain }));
            }
            Op::Softmax => {
                check(name, std::slice::from_ref(&a), only(op, plain));
                check(name, &[a], only(op, Attrs { axis: Axis::At(0), ..plain }));
            }
            Op::Layernorm => {
                let inputs = [a.clone(), row.clone(), draw.tensor(&[4], -1.0, 1.0), draw.tensor(&[3, 4], -1.0, 1.0)];
                check(name, &inputs, only(op, plain));
                check(name, &inputs[..1], only(op, Attrs { eps: 0.1, ..plain }));
            }
            Op::Rmsnorm => {
                check(name, &[a.clone(), row, draw.tensor(&[3, 4], -1.0, 1.0)], only(op, plain));
                check(name, &[a], only(op, Attrs { eps: 0.1, ..plain }));
            }
            Op::Cumsum => check(name, &[a], only(op, Attrs { axis: Axis::At(0), ..plain })),
            Op::Matmul => products(&mut draw),
            Op::Dot => check(name, &[draw.tensor(&[5], -1.0, 1.0), draw.tensor(&[5], -1.0, 1.0)], only(op, plain)),
            Op::Ffn => {
                let shapes: [&[usize]; 5] = [&[2, 3], &[3, 5], &[5], &[5, 2], &[2]];
                let inputs = shapes.map(|dims| draw.tensor(dims, -1.0, 1.0));
                for activation in [None, Some(Activation::GeluErf), Some(Activation::Silu)] {
                    check(name, &inputs, only(op, Attrs { activation, ..plain }));
                }
            }
            Op::Attention => attention(&mut draw),
            Op::Embedding => with_ids(op, plain, &draw.tensor(&[4, 3], -1.0, 1.0), &[3, 0, 3, 1], &[2, 2]),
            Op::Gather => {
                let attrs = Attrs { axis: Axis::At(0), ..plain };
                with_ids(op, attrs, &draw.tensor(&[4, 2], -1.0, 1.0), &[3, 0, 3, 1, 2, 1], &[3, 2]);
                with_ids(op, plain, &draw.tensor(&[2, 3], -1.0, 1.0), &[2, 0], &[2, 1]);
            }
            Op::Topk => {
                let x = Tensor::new(&[1.0f32, 3.0, -2.0, 0.5, 2.5, -1.0], &[2, 3]).unwrap();
                check(name, &[x], only(op, Attrs { k: 2, ..plain }));
            }
            Op::Transpose => {
                let x = draw.tensor(&[2, 3, 4], -1.0, 1.0);
                check(name, std::slice::from_ref(&x), only(op, plain));
                check(name, &[x], only(op, Attrs { perm: Permutation::new(&[1, -1, 0]).unwrap(), ..plain }));
            }
            Op::Concat => {
                let parts = [draw.tensor(&[2, 3], -1.0, 1.0), draw.tensor(&[2, 1], -1.0, 1.0)];
                check(name, &parts, only(op, Attrs { axis: Axis::At(1), ..plain }));
            }
            Op::Slice => {
                let per_axis = |numbers: &[i32]| PerAxis::new(numbers).unwrap();
                let (start, stop) = (per_axis(&[1, 0]), per_axis(&[6, 4]));
                let attrs = Attrs { start, stop, step: per_axis(&[2, 3]), ..plain };
                check(name, &[draw.tensor(&[7, 5], -1.0, 1.0)], only(op, attrs));
                check(name, &[draw.tensor(&[7, 5], -1.0, 1.0)], only(op, Attrs { start, ..plain }));
            }
            Op::Pad => {
                let per_axis = |numbers: &[i32]| PerAxis::new(numbers).unwrap();
                let attrs = Attrs { start: per_axis(&[1, 0]), stop: per_axis(&[0, 2]), ..plain };
                for attrs in [attrs, Attrs { step: per_axis(&[3, 2]), ..attrs }] {
                    check(name, &[draw.tensor(&[2, 3], -1.0, 1.0), draw.tensor(&[], -1.0, 1.0)], only(op, attrs));
                }
            }
            Op::Rope => {
                let tables = [draw.tensor(&[3, 1, 2], -1.0, 1.0), draw.tensor(&[3, 1, 2], -1.0, 1.0)];
                for interleaved in [false, true] {
                    check(name, &[draw.tensor(&[3, 2, 4], -1.0, 1.0)], |pipeline, values| {
                        let [cos, sin] = [&tables[0], &tables[1]].map(|table| pipeline.constant(table).unwrap());
                        only(op, Attrs { interleaved, ..plain })(pipeline, &[values[0], cos, sin])
                    });
                }
            }
            Op::Where => check(name, &[a, row], |pipeline, values| {
                let condition = pipeline.constant(&Tensor::from_bools(&[true, false, true], &[3, 1])?)?;
                only(op, plain)(pipeline, &[condition, values[0], values[1]])
            }),
            Op::QuantizedMatmul => quantized(&mut draw),
            Op::Cast => check(name, &[a], |pipeline, values| {
                let half = pipeline.op(op, &Attrs { dtype: Some(DType::F16), ..plain }, &[Some(values[0])])?;
                let whole = pipeline.op(op, &Attrs { dtype: Some(DType::F32), ..plain }, &[Some(half)])?;
                // The steps of f16 are too coarse for differences, so the cast's part is small.
                let part = pipeline.op(Op::Scale, &Attrs { alpha: 1e-4, ..plain }, &[Some(whole)])?;
                pipeline.op(Op::Add, &plain, &[Some(part), Some(values[0])])
            }),
            Op::Prod => {
                let context = Context::open("cpu").unwrap();
                let mut pipeline = context.pipeline();
                let x = pipeline.input(DType::F32, &[3]).unwrap();
                let y = only(op, Attrs { axis: Axis::All, ..plain })(&mut pipeline, &[x]).unwrap();
                let error = pipeline.gradients(y, &[x]).unwrap_err();
                assert_eq!(error.status(), Status::Unsupported);
            }
            _ => {
                assert!(!super::rules::has_gradient(op), "{name} has no test");
                continue;
            }
        }
        seen.insert(name);
    }
    assert_eq!(seen.len(), Op::ALL.len() - 12);
}

fn products(draw: &mut Draw) {
    let mut case = |a: &[usize], b: &[usize], attrs: Attrs| {
        let inputs = [draw.tensor(a, -1.0, 1.0), draw.tensor(b, -1.0, 1.0)];
        check(&format!("matmul {a:?} {b:?} {attrs:?}"), &inputs, only(Op::Matmul, attrs));
    };
    let plain = Attrs::DEFAULT;
    for (trans_a, trans_b) in [(false, false), (true, false), (false, true), (true, true)] {
        let (a, b) = (if trans_a { [3, 2] } else { [2, 3] }, if trans_b { [4, 3] } else { [3, 4] });
        let attrs = Attrs { trans_a, trans_b, alpha: 0.5, ..plain };
        case(&a, &b, attrs);
        case(&[&[2][..], &a].concat(), &b, attrs);
        case(&[&[2, 1][..], &a].concat(), &[&[3][..], &b].concat(), attrs);
    }
    case(&[3], &[3, 4], plain);
    case(&[2, 3], &[3], plain);
    case(&[2, 2, 3], &[3], plain);
    case(&[3], &[3], plain);
    let inputs = [&[2, 3][..], &[3, 4], &[2, 1], &[4]].map(|dims| draw.tensor(dims, -1.0, 1.0));
    for activation in Activation::ALL {
        // With relu, no element is near the corner.
        let alpha = if activation == Activation::Relu { 1.5 } else { 0.25 };
        let attrs = Attrs { activation: Some(activation), beta: -0.5, alpha, ..plain };
        check(activation.name(), &inputs, only(Op::Matmul, attrs));
    }
    check("fixed24", &inputs[..2], only(Op::Matmul, Attrs { precision: Some(Precision::Fixed24), ..plain }));
}

fn attention(draw: &mut Draw) {
    let inputs = [&[2, 4, 3, 2][..], &[2, 2, 5, 2], &[2, 2, 5, 3], &[4, 3, 5]].map(|dims| draw.tensor(dims, -1.0, 1.0));
    for causal in [false, true] {
        let attrs = Attrs { causal, ..Attrs::DEFAULT };
        check("attention", &inputs[..3], only(Op::Attention, attrs));
        check("attention with a mask", &inputs, only(Op::Attention, Attrs { scale: 0.3, ..attrs }));
        let fixed = Attrs { precision: Some(Precision::Fixed24), ..attrs };
        check("attention in fixed24", &inputs, only(Op::Attention, fixed));
    }
    // Three blocks of queries, the first of which sees no key.
    let inputs = [&[2, 600, 1][..], &[1, 300, 1], &[1, 300, 1], &[600, 1]].map(|dims| draw.tensor(dims, -1.0, 1.0));
    check("attention with many queries", &inputs, only(Op::Attention, Attrs { causal: true, ..Attrs::DEFAULT }));
    // The first queries see no key.
    let inputs = [&[4, 2][..], &[2, 2], &[2, 2]].map(|dims| draw.tensor(dims, -1.0, 1.0));
    check("attention without keys", &inputs, only(Op::Attention, Attrs { causal: true, ..Attrs::DEFAULT }));
}

fn with_ids(op: Op, attrs: Attrs, x: &Tensor, ids: &[i32], dims: &[usize]) {
    let ids = Tensor::new(ids, dims).unwrap();
    check(op.info().name, std::slice::from_ref(x), |pipeline, values| {
        let ids = pipeline.constant(&ids)?;
        pipeline.op(op, &attrs, &[Some(values[0]), Some(ids)])
    });
}

fn quantized(draw: &mut Draw) {
    // Rows are cut to 8 bits, so differences are coarse: what remains exact is the product with the matrix as floats.
    let bytes: Vec<u8> = (0..2 * 34).map(|i| if i % 34 == 1 { 0x20 } else { (i * 37 % 101) as u8 }).collect();
    let w = Tensor::from_bytes(&bytes, DType::U8, &[2, 34]).unwrap();
    let format = Some(crate::contract::BlockFormat::Q8_0);
    let context = Context::open("cpu").unwrap();
    let mut pipeline = context.pipeline();
    let x = pipeline.input(DType::F32, &[3, 32]).unwrap();
    let w = pipeline.constant(&w).unwrap();
    let attrs = Attrs { format, ..Attrs::DEFAULT };
    let y = pipeline.op(Op::QuantizedMatmul, &attrs, &[Some(x), Some(w)]).unwrap();
    let loss = pipeline.op(Op::Sum, &Attrs { axis: Axis::All, ..Attrs::DEFAULT }, &[Some(y)]).unwrap();
    let gradient = pipeline.gradients(loss, &[x]).unwrap()[0];
    let floats = pipeline.op(Op::Dequantize, &attrs, &[Some(w)]).unwrap();
    pipeline.output(gradient).unwrap();
    pipeline.output(floats).unwrap();
    let found = pipeline.compile().unwrap().run(&[&draw.tensor(&[3, 32], -1.0, 1.0)]).unwrap();
    let (gradient, floats) = (found[0].to_vec::<f32>().unwrap(), found[1].to_vec::<f32>().unwrap());
    for (at, gradient) in gradient.iter().enumerate() {
        assert_eq!(*gradient, floats[at % 32] + floats[32 + at % 32]);
    }
}

#[test]
fn a_value_used_twice_has_the_sum() {
    check("x·x + x", &[Draw(3).tensor(&[5], -1.0, 1.0)], |pipeline, values| {
        let square = pipeline.op(Op::Mul, &Attrs::DEFAULT, &[Some(values[0]), Some(values[0])])?;
        pipeline.op(Op::Add, &Attrs::DEFAULT, &[Some(square), Some(values[0])])
    });
}

#[test]
fn no_gradient_passes_through_what_is_recorded_without() {
    let context = Context::open("cpu").unwrap();
    let mut pipeline = context.pipeline();
    let x = pipeline.input(DType::F32, &[]).unwrap();
    assert!(pipeline.set_grad_enabled(false));
    let (y, square) = {
        let square = pipeline.op(Op::Mul, &Attrs::DEFAULT, &[Some(x), Some(x)]).unwrap();
        (pipeline.input(DType::F32, &[]).unwrap(), square)
    };
    assert!(!pipeline.set_grad_enabled(true));
    let product = pipeline.op(Op::Mul, &Attrs::DEFAULT, &[Some(square), Some(x)]).unwrap();
    let sum = pipeline.op(Op::Add, &Attrs::DEFAULT, &[Some(product), Some(y)]).unwrap();
    assert!(!pipeline.has_gradient(square, x).unwrap() && pipeline.has_gradient(sum, x).unwrap());
    // A value that was recorded without gradients has one of its own.
    for gradient in pipeline.gradients(sum, &[x, y, square]).unwrap() {
        let same = pipeline.op(Op::Neg, &Attrs::DEFAULT, &[Some(gradient)]).unwrap();
        pipeline.output(same).unwrap();
    }
    let three = Tensor::new(&[3.0f32], &[]).unwrap();
    let found = pipeline.compile().unwrap().run(&[&three, &three]).unwrap();
    let found: Vec<f32> = found.iter().map(|tensor| tensor.as_slice::<f32>().unwrap()[0]).collect();
    assert_eq!(found, [-9.0, -1.0, -3.0]);
}

#[test]
fn hooks_replace_gradients_where_they_are_whole() {
    let context = Context::open("cpu").unwrap();
    let mut pipeline = context.pipeline();
    let x = pipeline.input(DType::F32, &[2]).unwrap();
    let other = pipeline.input(DType::F32, &[2]).unwrap();
    let doubled = pipeline.op(Op::Add, &Attrs::DEFAULT, &[Some(x), Some(x)]).unwrap();
    let products = pipeline.op(Op::Mul, &Attrs::DEFAULT, &[Some(doubled), Some(doubled)]).unwrap();
    let sum = pipeline.op(Op::Sum, &Attrs { axis: Axis::All, ..Attrs::DEFAULT }, &[Some(products)]).unwrap();
    let nodes = pipeline.graph.nodes.len();
    for (wrong, status) in [(sum, Status::ShapeMismatch), (Value::from_bits(u64::MAX), Status::InvalidArgument)] {
        let error = pipeline.gradients_with(sum, &[x], &[doubled], &mut |pipeline, _, gradient| {
            pipeline.output(gradient)?;
            Ok(wrong)
        });
        assert_eq!(error.unwrap_err().status(), status);
        assert_eq!((pipeline.graph.nodes.len(), pipeline.graph.outputs.len()), (nodes, 0));
    }
    let within = pipeline.gradients_with(sum, &[x], &[doubled], &mut |pipeline, _, _| {
        pipeline.gradients(sum, &[x]).map(|found| found[0])
    });
    assert!(within.unwrap_err().message().contains("a hook can't record gradients"));
    let mut calls = Vec::new();
    let hooked = [x, other, doubled, doubled];
    let found = pipeline.gradients_with(sum, &[x], &hooked, &mut |pipeline, number, gradient| {
        calls.push(number);
        let alpha = [1.0, 0.0, 10.0, 3.0][number];
        pipeline.op(Op::Scale, &Attrs { alpha, ..Attrs::DEFAULT }, &[Some(gradient)])
    });
    pipeline.output(found.unwrap()[0]).unwrap();
    assert_eq!(calls, [2, 3, 0]);
    let x = Tensor::new(&[1.0f32, -2.0], &[2]).unwrap();
    // d/dx of the sum of (2x)² is 8x.
    let found = pipeline.compile().unwrap().run(&[&x, &x]).unwrap();
    assert_eq!(found[0].as_slice::<f32>().unwrap(), [240.0, -480.0]);
}

#[test]
fn gradients_stop_at_detached_values_and_pass_reshapes() {
    let context = Context::open("cpu").unwrap();
    let mut pipeline = context.pipeline();
    let x = pipeline.input(DType::F32, &[2, 2]).unwrap();
    let flat = pipeline.reshape(x, &[4]).unwrap();
    let still = pipeline.detach(flat).unwrap();
    let y = pipeline.op(Op::Mul, &Attrs::DEFAULT, &[Some(flat), Some(still)]).unwrap();
    let loss = pipeline.op(Op::Sum, &Attrs { axis: Axis::All, ..Attrs::DEFAULT }, &[Some(y)]).unwrap();
    let by = pipeline.gradients(loss, &[x, flat]).unwrap();
    for value in by {
        pipeline.output(value).unwrap();
    }
    let x = Tensor::new(&[1.0f32, -2.0, 3.0, 0.5], &[2, 2]).unwrap();
    let found = pipeline.compile().unwrap().run(&[&x]).unwrap();
    assert_eq!(found[0].dims(), [2, 2]);
    assert!(found.iter().all(|found| found.to_vec::<f32>().unwrap() == [1.0, -2.0, 3.0, 0.5]));
}

#[test]
fn rows_have_the_gradient_of_their_place() {
    let x = Draw(3).tensor(&[5, 4], -1.0, 1.0);
    check("rows", std::slice::from_ref(&x), |pipeline, values| {
        let squares = pipeline.op(Op::Mul, &Attrs::DEFAULT, &[Some(values[0]); 2])?;
        let last = pipeline.rows(squares, 3, 2)?;
        let first = pipeline.rows(values[0], 0, 2)?;
        pipeline.op(Op::Mul, &Attrs::DEFAULT, &[Some(last), Some(first)])
    });
}

#[test]
fn what_has_no_gradient_is_refused() {
    let context = Context::open("cpu").unwrap();
    let mut pipeline = context.pipeline();
    let x = pipeline.input(DType::F32, &[3]).unwrap();
    let other = pipeline.input(DType::F32, &[3]).unwrap();
    let ids = pipeline.input(DType::I32, &[3]).unwrap();
    let round = pipeline.op(Op::Round, &Attrs::DEFAULT, &[Some(x)]).unwrap();
    let all = Attrs { axis: Axis::All, ..Attrs::DEFAULT };
    let sum = pipeline.op(Op::Sum, &all, &[Some(round)]).unwrap();
    let prod = pipeline.op(Op::Prod, &all, &[Some(other)]).unwrap();
    let later = pipeline.op(Op::Exp, &Attrs::DEFAULT, &[Some(x)]).unwrap();
    let count = pipeline.graph.nodes.len();
    let mut message = |of, by: &[Value]| {
        let error = pipeline.gradients(of, by).unwrap_err();
        assert_eq!(pipeline.graph.nodes.len(), count);
        error.message().to_owned()
    };
    assert_eq!(message(x, &[x]), "gradients: the value is [3]; it must have one element, as a loss does");
    assert_eq!(message(sum, &[ids]), "gradients: value 0 is i32; gradients are of f32, f16 or bf16");
    let depends = "gradients: the loss does not depend on value 0 in a way that has a gradient";
    assert_eq!(message(sum, &[x]), depends);
    assert_eq!(message(sum, &[later]), depends);
    assert_eq!(message(sum, &[other]), depends);
    assert_eq!(message(prod, &[other]), "gradients: prod has none in this version; use sum and log");
}

/// Gradients of a network of blocks by its inputs: x and a weight. A block is recomputed if `recompute` says so.
fn of_blocks(context: &Context, recompute: bool) -> (usize, Vec<Tensor>) {
    let mut pipeline = context.pipeline();
    let dims = [64, 32];
    let (x, weight) = (pipeline.input(DType::F32, &dims).unwrap(), pipeline.input(DType::F32, &[32, 32]).unwrap());
    let op = |pipeline: &mut Pipeline, op, operands: &[Value]| {
        pipeline.op(op, &Attrs::DEFAULT, &operands.iter().copied().map(Some).collect::<Vec<_>>()).unwrap()
    };
    let (mut last, mut all_soft) = (x, None);
    for _ in 0..6 {
        let since = pipeline.values();
        // A softmax's gradient reads its result, a detached value has none, and the reshaped product is used behind the block too.
        let product = op(&mut pipeline, Op::Matmul, &[last, weight]);
        let soft = op(&mut pipeline, Op::Softmax, &[product]);
        let still = pipeline.detach(soft).unwrap();
        let flat = pipeline.reshape(product, &[64 * 32]).unwrap();
        let gated = op(&mut pipeline, Op::Mul, &[soft, still]);
        let wave = op(&mut pipeline, Op::Sin, &[gated]);
        let wave = op(&mut pipeline, Op::Gelu, &[wave]);
        last = op(&mut pipeline, Op::Add, &[wave, last]);
        if recompute {
            pipeline.recompute(since).unwrap();
        }
        all_soft = Some(flat);
    }
    let flat = pipeline.reshape(last, &[64 * 32]).unwrap();
    let sum = op(&mut pipeline, Op::Mul, &[flat, all_soft.unwrap()]);
    let loss = pipeline.op(Op::Sum, &Attrs { axis: Axis::All, ..Attrs::DEFAULT }, &[Some(sum)]).unwrap();
    // Twice, as the first backward pass must leave the parts as they were.
    for _ in 0..2 {
        for gradient in pipeline.gradients(loss, &[x, weight]).unwrap() {
            pipeline.output(gradient).unwrap();
        }
    }
    let compiled = pipeline.compile().unwrap();
    let (x, weight) = (Draw(5).tensor(&dims, -1.0, 1.0), Draw(6).tensor(&[32, 32], -0.5, 0.5));
    (compiled.memory(), compiled.run(&[&x, &weight]).unwrap())
}

#[test]
fn recomputed_values_take_less_memory_and_change_no_bit() {
    let context = Context::open("cpu").unwrap();
    let ((kept, expected), (recomputed, found)) = (of_blocks(&context, false), of_blocks(&context, true));
    let bits = |tensors: &[Tensor]| tensors.iter().map(|it| it.host_bytes().unwrap().to_vec()).collect::<Vec<_>>();
    assert_eq!(bits(&found), bits(&expected));
    assert_eq!(bits(&found[..2]), bits(&found[2..]));
    assert!(found[1].to_vec::<f32>().unwrap().iter().any(|&x| x != 0.0));
    assert!(2 * recomputed < kept, "{recomputed} and {kept} bytes");
}

#[test]
fn parts_that_can_not_be_recomputed_are_refused() {
    let mut pipeline = Context::open("cpu").unwrap().pipeline();
    let x = pipeline.input(DType::F32, &[3]).unwrap();
    pipeline.op(Op::Exp, &Attrs::DEFAULT, &[Some(x)]).unwrap();
    let error = pipeline.recompute(3).unwrap_err();
    assert_eq!(error.message(), "recompute since value 3; the pipeline has 2 values");
    pipeline.recompute(1).unwrap();
    let error = pipeline.recompute(1).unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert_eq!(error.message(), "recompute since value 1; an earlier part that is recomputed ends at 2");
    pipeline.recompute(2).unwrap();
}

#[test]
fn attentions_gradient_takes_less_memory_than_all_scores() {
    let mut pipeline = Context::open("cpu").unwrap().pipeline();
    let n = 2048;
    let [q, k, v] = [0; 3].map(|_| pipeline.input(DType::F32, &[n, 2]).unwrap());
    let attrs = Attrs { causal: true, ..Attrs::DEFAULT };
    let y = pipeline.op(Op::Attention, &attrs, &[Some(q), Some(k), Some(v)]).unwrap();
    let loss = pipeline.op(Op::Sum, &Attrs { axis: Axis::All, ..Attrs::DEFAULT }, &[Some(y)]).unwrap();
    for gradient in pipeline.gradients(loss, &[q, k, v]).unwrap() {
        pipeline.output(gradient).unwrap();
    }
    let (memory, scores) = (pipeline.compile().unwrap().memory(), n * n * 4);
    assert!(2 * memory < scores, "{memory} bytes; all scores take {scores}");
}
