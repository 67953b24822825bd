//! Pipelines give the bits of the same operations called one after another: random graphs and chains, on the processor and on the
//! machine's first GPU (also a software one), through Vulkan or the backend in `ADEAD_TEST_BACKEND` (`vulkan`, `cuda`).

mod backend;
#[allow(dead_code)]
mod draws;
mod pipelines;

use adead_core::pipeline::{Compiled, Pipeline, Value};
use adead_core::{Attrs, Axis, Context, DType, Op, OpKind, Permutation, Status, Tensor};
use draws::{Random, plain};
use pipelines::{contexts, status};

/// A graph under construction, with the results of the same unfused calls.
struct Both<'a> {
    cpu: &'a Context,
    pipeline: Pipeline,
    values: Vec<(Value, Tensor)>,
    inputs: Vec<Tensor>,
}

impl Both<'_> {
    /// Adds a tensor as an input or a constant.
    fn given(&mut self, tensor: Tensor, input: bool) -> usize {
        let value = if input {
            self.inputs.push(tensor.clone());
            self.pipeline.input(tensor.dtype(), tensor.dims()).unwrap()
        } else {
            self.pipeline.constant(&tensor).unwrap()
        };
        self.values.push((value, tensor));
        self.values.len() - 1
    }

    fn op(&mut self, op: Op, attrs: Attrs, operands: &[usize]) -> usize {
        let values: Vec<_> = operands.iter().map(|&i| Some(self.values[i].0)).collect();
        let tensors: Vec<_> = operands.iter().map(|&i| Some(&self.values[i].1)).collect();
        let result = self.cpu.run(op, &attrs, &tensors).unwrap();
        let value = self.pipeline.op(op, &attrs, &values).unwrap();
        self.values.push((value, result));
        self.values.len() - 1
    }

    fn reshape(&mut self, of: usize, dims: &[usize]) -> usize {
        let value = self.pipeline.reshape(self.values[of].0, dims).unwrap();
        let result = self.values[of].1.reshape(dims).unwrap();
        self.values.push((value, result));
        self.values.len() - 1
    }
}

/// A random graph of matrices `[rows, n]`: chains with branches, residuals, reshapes, unused values.
fn graph(cpu: &Context, on: &Context, dtype: DType, r: &mut Random) -> (Pipeline, Vec<Tensor>, Vec<Tensor>) {
    let mut both = Both { cpu, pipeline: on.pipeline(), values: Vec::new(), inputs: Vec::new() };
    let (rows, n) = (1 + r.below(90), 1 + r.below(300));
    let x = r.float(dtype, &[rows, n]);
    let mut live = vec![both.given(x, true)];
    for _ in 0..1 + r.below(14) {
        // Usually the last value, as in a chain.
        let at = if r.below(4) > 0 { live.len() - 1 } else { r.below(live.len()) };
        let x = live[at];
        let dims = both.values[x].1.dims().to_vec();
        let n = dims[1];
        let made = match r.below(12) {
            0..=2 => {
                let to = 1 + r.below(200);
                let (w, input) = (r.float(dtype, &[n, to]), r.below(4) == 0);
                let w = both.given(w, input);
                both.op(Op::Matmul, Attrs::default(), &[x, w])
            }
            3 | 4 => {
                let shape = [vec![n], vec![1, n], vec![1], vec![dims[0], 1], dims.clone(), vec![]][r.below(6)].clone();
                let other = r.float(dtype, &shape);
                let other = both.given(other, false);
                let op = [Op::Add, Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Maximum, Op::Minimum][r.below(7)];
                if r.flag() {
                    both.op(op, Attrs::default(), &[x, other])
                } else {
                    both.op(op, Attrs::default(), &[other, x])
                }
            }
            5..=7 => {
                let unary = draws::of(OpKind::Unary);
                let op = unary[r.below(unary.len())];
                both.op(op, Attrs { alpha: 0.5, ..Attrs::default() }, &[x])
            }
            8 => {
                // A residual: another value of the same shape, if there is one.
                let like: Vec<_> = live.iter().copied().filter(|&i| both.values[i].1.dims() == dims).collect();
                let other = like[r.below(like.len())];
                both.op(Op::Add, Attrs::default(), &[x, other])
            }
            9 => both.op(Op::Softmax, Attrs { axis: Axis::At(-1), ..Attrs::default() }, &[x]),
            10 => {
                let (gamma, beta) = (r.float(dtype, &[n]), r.float(dtype, &[n]));
                let (gamma, beta) = (both.given(gamma, false), both.given(beta, false));
                both.op(Op::Layernorm, Attrs::default(), &[x, gamma, beta])
            }
            _ => {
                let flat = both.reshape(x, &[n, dims[0]]);
                both.op(Op::Transpose, Attrs::default(), &[flat])
            }
        };
        live.push(made);
    }
    let mut expected = Vec::new();
    let outputs = 1 + r.below(3);
    for _ in 0..outputs {
        let computed = &live[1..];
        let mut out = computed[computed.len() - 1 - r.below(computed.len()).min(r.below(computed.len()))];
        if r.below(4) == 0 {
            let count = both.values[out].1.len();
            out = both.reshape(out, &[count]);
        }
        both.pipeline.output(both.values[out].0).unwrap();
        expected.push(both.values[out].1.clone());
    }
    (both.pipeline, both.inputs, expected)
}

fn same(got: &[Tensor], expected: &[Tensor], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert_eq!((got.dtype(), got.dims()), (expected.dtype(), expected.dims()), "{what}, output {i}");
        let differs = got.bytes().iter().zip(expected.bytes()).position(|(a, b)| a != b);
        assert_eq!(differs, None, "{what}, output {i}: the byte that differs");
    }
}

#[test]
fn random_graphs_give_the_bits_of_single_calls() {
    let cpu = plain();
    let mut fused = 0;
    for on in contexts() {
        let mut r = Random(7);
        // A software Vulkan driver needs about a second to compile the pipelines of one round.
        let rounds = [("cpu", 300), ("cuda", 100)].iter().find(|(id, _)| on.device_info().id.starts_with(id));
        for round in 0..rounds.map_or(15, |(_, rounds)| *rounds) {
            let dtype = [DType::F32, DType::F32, DType::F32, DType::F16, DType::BF16][r.below(5)];
            let began = r.0;
            let (pipeline, inputs, expected) = graph(&cpu, &on, dtype, &mut r);
            let compiled = pipeline.compile().unwrap();
            fused += compiled.operations() - compiled.steps();
            let inputs: Vec<&Tensor> = inputs.iter().collect();
            for _ in 0..2 {
                let what = format!("{} round {round}, random state {began:#x}\n{compiled}", on.device_info().id);
                same(&compiled.run(&inputs).unwrap(), &expected, &what);
            }
        }
    }
    assert!(fused > 500, "only {fused} operations were fused");
}

#[test]
fn long_runs_go_by_parts_and_by_several_threads_or_through_registers() {
    let cpu = plain();
    let mut r = Random(3);
    let sizes = [(1, 1_048_579), (1049, 1000), (9000, 3), (1 << 18, 1), (3, 100_003), (9, 1000), (70, 130), (200, 127)];
    for (on, (rows, n)) in contexts().iter().skip(1).flat_map(|on| sizes.map(|size| (on, size))) {
        let x = r.float(DType::F32, &[rows, n]);
        let (row, one, all) = (r.float(DType::F32, &[n]), r.float(DType::F32, &[]), r.float(DType::F32, &[rows, n]));
        let run = on.pipeline().begin(&x).mul(&row).add(&all).gelu(Attrs::default().form).div(&one).tanh();
        let compiled = run.clone().compile().unwrap();
        assert_eq!((compiled.steps(), compiled.operations()), (1, 5));
        let mut y = cpu.add(&cpu.mul(&x, &row).unwrap(), &all).unwrap();
        y = cpu.div(&cpu.gelu(&y, Attrs::default().form).unwrap(), &one).unwrap();
        same(&[run.execute().unwrap()], &[cpu.tanh(&y).unwrap()], &format!("{rows}x{n}"));
        // The result before is the second operand, is both, or comes from values that are used again.
        let mut pipeline = on.pipeline();
        let across = pipeline.constant(&row).unwrap();
        let begun = pipeline.begin(&x).neg().relu();
        let value = begun.value().unwrap();
        let run = begun.switch_to(across).sub(value).pow(&one).maximum(&all);
        let before = run.value().unwrap();
        let run = run.mul(before).add(&all);
        let mut y = cpu.sub(&row, &cpu.relu(&cpu.neg(&x).unwrap()).unwrap()).unwrap();
        y = cpu.maximum(&cpu.pow(&y, &one).unwrap(), &all).unwrap();
        y = cpu.add(&cpu.mul(&y, &y).unwrap(), &all).unwrap();
        same(&[run.execute().unwrap()], &[y], &format!("{rows}x{n}, reversed"));
    }
}

/// Checks the steps and the bits of a chain.
fn fuses(on: &Context, cpu: &Context, compiled: &Compiled, steps: &[&str], got: &Tensor, expected: &Tensor) {
    let text = compiled.to_string();
    let lines: Vec<&str> = text.lines().skip(1).map(|line| line[6..].split('(').next().unwrap()).collect();
    assert_eq!(lines, steps, "{text}");
    same(std::slice::from_ref(got), std::slice::from_ref(expected), &format!("{on:?} {cpu:?}\n{text}"));
}

#[test]
fn what_follows_a_product_is_folded_into_it() {
    let cpu = plain();
    let mut r = Random(5);
    let mut float = |dims: &[usize]| r.float(DType::F32, dims);
    let (x, w1, b1, w2, b2) = (float(&[9, 40]), float(&[40, 60]), float(&[60]), float(&[60, 40]), float(&[40]));
    let residual = float(&[9, 40]);
    for on in contexts() {
        let chain = || on.pipeline().matmul(&x, &w1).bias(&b1).relu().matmul(&w2);
        let hidden = cpu.relu(&cpu.add(&cpu.matmul(&x, &w1).unwrap(), &b1).unwrap()).unwrap();
        let y = cpu.matmul(&hidden, &w2).unwrap();
        let check = |chain: adead_core::pipeline::Chain, steps: &[&str], expected: &Tensor| {
            let compiled = chain.clone().compile().unwrap();
            let got = compiled.run(&[]).unwrap();
            fuses(&on, &cpu, &compiled, steps, &got[0], expected);
            same(&[chain.execute().unwrap()], std::slice::from_ref(expected), "executed");
        };
        let add = |a: &Tensor, b: &Tensor| cpu.add(a, b).unwrap();
        check(chain(), &["matmul+add+relu", "matmul"], &y);
        check(chain().bias(&b2), &["matmul+add+relu", "matmul+add"], &add(&y, &b2));
        check(
            chain().add(&residual).bias(&b2).tanh(),
            &["matmul+add+relu", "matmul+add+add+tanh"],
            &cpu.tanh(&add(&add(&y, &residual), &b2)).unwrap(),
        );
        // A product adds its bias last, so operations after the bias are a step of their own.
        check(
            chain().bias(&b2).add(&residual).relu(),
            &["matmul+add+relu", "matmul+add", "add+relu"],
            &cpu.relu(&add(&add(&y, &b2), &residual)).unwrap(),
        );
        // A value that is an output, or is used twice, is not folded.
        let once = on.pipeline().matmul(&x, &w1);
        let product = once.value().unwrap();
        let twice = once.relu().mul(product);
        let expected = cpu.matmul(&x, &w1).unwrap();
        check(twice, &["matmul", "relu+mul"], &cpu.mul(&cpu.relu(&expected).unwrap(), &expected).unwrap());
        // A sum that is wider than the product.
        let wide = Tensor::zeros(DType::F32, &[2, 9, 40]).unwrap();
        check(chain().add(&wide), &["matmul+add+relu", "matmul", "add"], &add(&y, &wide));
    }
}

#[test]
fn zeros_and_nans_are_those_of_single_calls() {
    let cpu = plain();
    let values = [-0.0f32, 0.0, 1.0, -1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40, -1e-40, f32::MAX];
    let n = values.len();
    let x = Tensor::new(&values, &[n, 1]).unwrap();
    let w = Tensor::new(&values, &[1, n]).unwrap();
    let bias = Tensor::new(&values, &[n]).unwrap();
    let residual = Tensor::new(&values.map(|x| -x), &[n, 1]).unwrap();
    let product = cpu.matmul(&x, &w).unwrap();
    for on in contexts() {
        let begun = || on.pipeline().matmul(&x, &w);
        let cases = [
            (begun().bias(&bias), cpu.add(&product, &bias).unwrap()),
            (begun().add(&residual), cpu.add(&product, &residual).unwrap()),
            (begun().add(&residual).bias(&bias).relu(), {
                let sum = cpu.add(&cpu.add(&product, &residual).unwrap(), &bias).unwrap();
                cpu.relu(&sum).unwrap()
            }),
            (begun().silu(), cpu.silu(&product).unwrap()),
        ];
        for (i, (chain, expected)) in cases.into_iter().enumerate() {
            same(&[chain.execute().unwrap()], &[expected], &format!("{on:?} case {i}"));
        }
    }
}

#[test]
fn memory_is_used_again() {
    let on = plain();
    let mut pipeline = on.pipeline();
    let mut x = pipeline.input(DType::F32, &[64, 64]).unwrap();
    let w = pipeline.constant(&Tensor::zeros(DType::F32, &[64, 64]).unwrap()).unwrap();
    for _ in 0..10 {
        x = pipeline.op(Op::Matmul, &Attrs::default(), &[Some(x), Some(w)]).unwrap();
    }
    let compiled = pipeline.compile().unwrap();
    assert_eq!((compiled.steps(), compiled.memory()), (10, 2 * 64 * 64 * 4), "{compiled}");
    assert!(compiled.to_dot().contains("\"step 8\" -> \"step 9\";"), "{}", compiled.to_dot());
    assert!(compiled.to_string().starts_with("10 operations in 10 steps on cpu: 1 inputs, 1 constants, 1 outputs"));
}

#[test]
fn one_compiled_pipeline_serves_many_threads() {
    let cpu = plain();
    for on in contexts() {
        let mut r = Random(11);
        let w = r.float(DType::F32, &[70, 70]);
        let chain = on.pipeline().begin_with_input(DType::F32, &[3, 70]).matmul(&w).relu().matmul(&w);
        let compiled = chain.compile().unwrap();
        let inputs: Vec<Tensor> = (0..4).map(|_| r.float(DType::F32, &[3, 70])).collect();
        let once = |x| cpu.matmul(&cpu.relu(&cpu.matmul(x, &w).unwrap()).unwrap(), &w).unwrap();
        std::thread::scope(|scope| {
            for x in &inputs {
                let (compiled, expected) = (&compiled, once(x));
                scope.spawn(move || {
                    for _ in 0..30 {
                        same(&compiled.run(&[x]).unwrap(), std::slice::from_ref(&expected), "threads");
                    }
                });
            }
        });
    }
}

#[test]
fn executed_pipelines_are_compiled_once() {
    for on in contexts() {
        let mut r = Random(13);
        let w = r.float(DType::F32, &[20, 30]);
        for i in 0..5 {
            let x = r.float(DType::F32, &[4, 20]);
            let y = on.pipeline().matmul(&x, &w).relu().execute().unwrap();
            same(&[y], &[plain().relu(&plain().matmul(&x, &w).unwrap()).unwrap()], "cached");
            let usage = on.pipeline_cache();
            assert_eq!((usage.entries, usage.hits, usage.misses), (1, i, 1));
        }
        for n in 1..50 {
            let x = r.float(DType::F32, &[n, 20]);
            on.pipeline().matmul(&x, &w).execute().unwrap();
        }
        let usage = on.pipeline_cache();
        assert_eq!((usage.entries, usage.hits, usage.misses), (usage.most, 4, 50));
        on.trim();
        assert_eq!(on.pipeline_cache().entries, 0);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let on = plain();
    let x = Tensor::zeros(DType::F32, &[2, 3]).unwrap();
    assert_eq!(status(on.pipeline().execute()), Some(Status::InvalidArgument));
    assert_eq!(status(on.pipeline().begin(&x).execute()), Some(Status::InvalidArgument), "a constant is no result");
    // A chain returns its first error.
    let failed = on.pipeline().matmul(&x, &x).relu().add(&Tensor::zeros(DType::F32, &[7]).unwrap());
    let error = failed.execute().unwrap_err();
    let direct = on.matmul(&x, &x).unwrap_err();
    assert_eq!((error.status(), error.message()), (direct.status(), direct.message()));
    let mut other = on.pipeline();
    let strange = other.input(DType::F32, &[2, 3]).unwrap();
    assert_eq!(status(on.pipeline().begin(&x).add(strange).execute()), Some(Status::InvalidArgument));
    assert_eq!(status(on.pipeline().begin(&x).reshape(&[7]).execute()), Some(Status::ShapeMismatch));

    // A refused call records nothing.
    let mut pipeline = on.pipeline();
    let begun = pipeline.input(DType::F32, &[2, 3]).unwrap();
    let refused = pipeline.record(Op::Matmul, &Attrs::default(), &[Some(begun.into()), Some((&x).into())]);
    assert_eq!(status(refused), Some(Status::ShapeMismatch));
    pipeline.record(Op::Add, &Attrs::default(), &[Some(begun.into()), Some((&x).into())]).unwrap();
    let text = pipeline.compile().unwrap().to_string();
    assert!(text.contains("1 inputs, 1 constants, 1 outputs"), "{text}");

    let chain = on.pipeline().begin_with_input(DType::F32, &[2, 3]).relu();
    assert_eq!(status(chain.clone().execute()), Some(Status::InvalidArgument), "its input is missing");
    let compiled = chain.compile().unwrap();
    assert_eq!(status(compiled.run(&[])), Some(Status::InvalidArgument));
    assert_eq!(status(compiled.run(&[&Tensor::zeros(DType::F32, &[3, 2]).unwrap()])), Some(Status::ShapeMismatch));
    assert_eq!(status(compiled.run(&[&Tensor::zeros(DType::F16, &[2, 3]).unwrap()])), Some(Status::DtypeMismatch));
    assert_eq!(compiled.run(&[&x]).unwrap()[0].dims(), [2, 3]);
}

#[test]
fn errors_that_only_data_shows_are_the_run_s() {
    for on in contexts() {
        let table = Tensor::new(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap();
        let mut pipeline = on.pipeline();
        let (table, ids) = (pipeline.constant(&table).unwrap(), pipeline.input(DType::U32, &[3]).unwrap());
        let rows = pipeline.op(Op::Embedding, &Attrs::default(), &[Some(table), Some(ids)]).unwrap();
        pipeline.op(Op::Relu, &Attrs::default(), &[Some(rows)]).unwrap();
        let compiled = pipeline.compile().unwrap();
        let run = |ids: [u32; 3]| compiled.run(&[&Tensor::new(&ids, &[3]).unwrap()]);
        assert_eq!(run([1, 0, 1]).unwrap()[0].to_vec::<f32>().unwrap(), [3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(status(run([1, 2, 1])), Some(Status::InvalidArgument));
        assert_eq!(run([0, 0, 1]).unwrap()[0].to_vec::<f32>().unwrap(), [1.0, 2.0, 1.0, 2.0, 3.0, 4.0]);
    }
}

#[test]
fn a_transformer_block() {
    let cpu = plain();
    let mut r = Random(17);
    let (s, heads, d) = (10, 3, 8);
    let n = heads * d;
    let mut float = |dims: &[usize]| r.float(DType::F32, dims);
    let x = float(&[s, n]);
    let w: Vec<Tensor> = (0..4).map(|_| float(&[n, n])).collect();
    let (up, down) = (float(&[n, 4 * n]), float(&[4 * n, n]));
    let (bias, wide, gamma, beta) = (float(&[n]), float(&[4 * n]), float(&[n]), float(&[n]));
    let perm = Permutation::new(&[1, 0, 2]).unwrap();
    let attrs = Attrs { perm, ..Attrs::default() };
    for on in contexts() {
        let mut both = Both { cpu: &cpu, pipeline: on.pipeline(), values: Vec::new(), inputs: Vec::new() };
        let x = both.given(x.clone(), true);
        let [gamma, beta, bias, wide, up, down] =
            [&gamma, &beta, &bias, &wide, &up, &down].map(|tensor| both.given(tensor.clone(), false));
        let plain = Attrs::default();
        let h = both.op(Op::Layernorm, plain, &[x, gamma, beta]);
        let mut parts = Vec::new();
        for w in &w[..3] {
            let w = both.given(w.clone(), false);
            let p = both.op(Op::Matmul, plain, &[h, w]);
            let p = both.op(Op::Add, plain, &[p, bias]);
            let p = both.reshape(p, &[s, heads, d]);
            parts.push(both.op(Op::Transpose, attrs, &[p]));
        }
        let a = both.op(Op::Attention, plain, &parts);
        let a = both.op(Op::Transpose, attrs, &[a]);
        let a = both.reshape(a, &[s, n]);
        let w = both.given(w[3].clone(), false);
        let a = both.op(Op::Matmul, plain, &[a, w]);
        let a = both.op(Op::Add, plain, &[a, x]);
        let a = both.op(Op::Add, plain, &[a, bias]);
        let h = both.op(Op::Layernorm, plain, &[a, gamma, beta]);
        let h = both.op(Op::Matmul, plain, &[h, up]);
        let h = both.op(Op::Add, plain, &[h, wide]);
        let h = both.op(Op::Gelu, plain, &[h]);
        let h = both.op(Op::Matmul, plain, &[h, down]);
        let h = both.op(Op::Add, plain, &[h, bias]);
        let y = both.op(Op::Add, plain, &[h, a]);
        let expected = both.values[y].1.clone();
        let compiled = both.pipeline.compile().unwrap();
        assert_eq!((compiled.operations(), compiled.steps()), (22, 14), "{compiled}");
        let inputs: Vec<&Tensor> = both.inputs.iter().collect();
        same(&compiled.run(&inputs).unwrap(), &[expected], "a transformer block");
    }
}

/// So many values are placed in the order of their steps.
#[test]
fn very_many_values() {
    let context = Context::open("cpu").unwrap();
    let mut pipeline = context.pipeline();
    let x = pipeline.input(DType::F32, &[2, 2]).unwrap();
    let (mut turned, mut sum) = (x, x);
    for step in 0..9000 {
        turned = pipeline.op(Op::Transpose, &Attrs::default(), &[Some(turned)]).unwrap();
        if step % 1000 == 0 {
            // Lives for a thousand steps.
            sum = pipeline.op(Op::Matmul, &Attrs::default(), &[Some(sum), Some(turned)]).unwrap();
        }
    }
    let last = pipeline.op(Op::Sub, &Attrs::default(), &[Some(sum), Some(turned)]).unwrap();
    pipeline.output(last).unwrap();
    let compiled = pipeline.compile().unwrap();
    assert!(compiled.steps() > 9000);
    // A symmetric permutation, whose tenth power is 1.
    let x = Tensor::new(&[0.0f32, 1.0, 1.0, 0.0], &[2, 2]).unwrap();
    assert_eq!(compiled.run(&[&x]).unwrap()[0].as_slice::<f32>().unwrap(), [1.0, -1.0, -1.0, 1.0]);
    assert!(compiled.memory() <= 8 * 256, "{}", compiled.memory());
}
