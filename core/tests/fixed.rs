//! Products in exact integers (`precision`) against the scalar reference, for every instruction set and several thread counts,
//! and on this machine's first GPU. The data rounds at ties, has digits at their limits, scales at both ends of f32, and long K.

#[allow(dead_code)] // Other tests use the random calls.
mod draws;
#[allow(dead_code)]
mod on_gpu;

use adead_core::contract::{Activation, Precision, fixed_dot};
use adead_core::hal::cpu::Isa;
use adead_core::{Attrs, Context, ContextOptions, DType, MatmulOptions, Op, Status, Tensor, View, reference};
use draws::Random;
use on_gpu::Gpu;

const FIXED: [Precision; 2] = [Precision::Fixed24, Precision::Fixed16];

fn contexts(threads: &[usize]) -> Vec<Context> {
    let mut contexts = Vec::new();
    for isa in Isa::available() {
        for &threads in threads {
            let options = ContextOptions { isa: Some(isa), threads: Some(threads), precision: None };
            contexts.push(Context::with_options("cpu", &options).unwrap());
        }
    }
    contexts
}

/// A value of a kind, in a line whose largest value is about 2^e.
fn value(r: &mut Random, kind: usize, e: i32) -> f32 {
    let sign = if r.flag() { 1.0 } else { -1.0 };
    let unit = (r.next() >> 40) as f64 / (1u64 << 24) as f64;
    let x = match kind {
        // Any value below the largest.
        0 => unit,
        // Halves of the last bit kept: ties.
        1 => ((r.below(1 << 16) * 2 + 1) as f64) * 2f64.powi(if r.flag() { -24 } else { -16 }),
        // The largest numbers; their lower digits are 127 or -128.
        2 => [8_355_711.0, 8_355_584.0, 8_355_712.5, 8_323_199.0, 32_639.0 * 256.0][r.below(5)] / 8_388_608.0,
        3 => 1.0,
        // Digits of -128.
        4 => [0x80_8080, 0x7f_8080, 0x80_80, 0x40_8080][r.below(4)] as f64 / 16_777_216.0,
        // Some values are much larger than the others.
        5 => unit * if r.below(50) == 0 { 1.0 } else { 1e-5 },
        _ => 0.0,
    };
    let bits = (sign * x * 2f64.powi(e)) as f32;
    if bits.is_infinite() { f32::MAX } else { bits }
}

/// A matrix of lines along K, `[lines, k]`, each of one kind and size. Some lines have values that are not finite.
fn lines(r: &mut Random, count: usize, k: usize, sizes: &[i32]) -> Vec<f32> {
    let mut all = Vec::with_capacity(count * k);
    for _ in 0..count {
        let (kind, e) = (r.below(7), sizes[r.below(sizes.len())] + r.below(3) as i32);
        let from = all.len();
        all.extend((0..k).map(|_| value(r, kind, e)));
        if k > 0 && r.below(12) == 0 {
            all[from + r.below(k)] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY][r.below(3)];
        }
    }
    all
}

fn turned(values: &[f32], [rows, columns]: [usize; 2]) -> Vec<f32> {
    (0..rows * columns).map(|i| values[i % rows * columns + i / rows]).collect()
}

/// A call: attributes and operands.
fn call(r: &mut Random, precision: Precision, [m, n, k]: [usize; 3], sizes: &[i32]) -> (Attrs, Vec<Option<Tensor>>) {
    let mut attrs = Attrs { precision: Some(precision), trans_a: r.flag(), trans_b: r.flag(), ..Attrs::default() };
    let (a, b) = (lines(r, m, k, sizes), lines(r, n, k, sizes));
    let a = if attrs.trans_a { Tensor::new(&turned(&a, [m, k]), &[k, m]) } else { Tensor::new(&a, &[m, k]) };
    let b = if attrs.trans_b { Tensor::new(&b, &[n, k]) } else { Tensor::new(&turned(&b, [n, k]), &[k, n]) };
    let mut operands = vec![Some(a.unwrap()), Some(b.unwrap()), None, None];
    if r.below(3) == 0 {
        (attrs.alpha, attrs.beta) = (1.5, -0.75);
        let dims = vec![vec![m, n], vec![n], vec![m, 1], vec![1, 1]].swap_remove(r.below(4));
        operands[2] = Some(r.float(DType::F32, &dims));
        operands[3] = Some(r.float(DType::F32, &[n]));
        attrs.set(Op::Matmul, "activation", ["relu", "gelu_tanh", "none"][r.below(3)]).unwrap();
    }
    (attrs, operands)
}

fn equals_reference(contexts: &[Context], attrs: &Attrs, operands: &[Option<Tensor>], name: &str) {
    equal(contexts, Op::Matmul, attrs, operands, name);
}

fn equal(contexts: &[Context], op: Op, attrs: &Attrs, operands: &[Option<Tensor>], name: &str) {
    let views: Vec<Option<View<'_>>> = operands.iter().map(|t| t.as_ref().map(Tensor::view)).collect();
    let meta = op.info().infer(attrs, &views).unwrap();
    let expected = reference(op, attrs, &views, &meta).unwrap();
    let operands: Vec<_> = operands.iter().map(Option::as_ref).collect();
    for ctx in contexts {
        let got = ctx.run(op, attrs, &operands).unwrap();
        let words =
            |bytes: &[u8]| bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect::<Vec<_>>();
        let (got, expected) = (words(got.bytes()), words(&expected));
        let at = got.iter().zip(&expected).position(|(a, b)| a != b);
        assert!(
            at.is_none(),
            "{name} {attrs:?} on {ctx:?}: {at:?}: {:08x} {:08x}",
            got[at.unwrap()],
            expected[at.unwrap()]
        );
    }
}

const SIZES: [[usize; 3]; 14] = [
    [1, 1, 1],
    [1, 1, 300],
    [3, 5, 2],
    [8, 24, 128],
    [9, 25, 129],
    [1, 40, 257],
    [40, 1, 256],
    [17, 50, 255],
    [7, 9, 600],
    [70, 65, 33],
    [6, 8, 0],
    [50, 100, 64],
    [130, 10, 65],
    [10, 130, 127],
];

/// Exponents of lines: usual ones, the smallest, the largest, so that sums overflow and underflow f32.
const SCALES: [&[i32]; 5] = [&[0, 3, -5], &[-149, -140, -126], &[-70, -76, -80], &[60, 64, 66], &[127, -149, 0]];

#[test]
fn every_instruction_set_equals_the_reference() {
    let contexts = contexts(&[1, 3]);
    for (i, &sizes) in SIZES.iter().enumerate() {
        for precision in FIXED {
            for (j, scales) in SCALES.iter().enumerate() {
                let mut r = Random((i * 8 + j) as u64);
                let (attrs, operands) = call(&mut r, precision, sizes, scales);
                equals_reference(&contexts, &attrs, &operands, &format!("{sizes:?} {scales:?}"));
            }
        }
    }
}

/// Calls of attention: heads that share keys, rows that see no key, blocks of keys that are hidden or not whole, lines that are not
/// finite, and sizes that take several chunks.
fn attention_calls() -> Vec<(String, Attrs, Vec<Option<Tensor>>)> {
    // Heads, heads of keys, queries, keys, width, value width.
    let sizes = [
        [1, 1, 1, 1, 1, 1],
        [4, 2, 3, 63, 16, 5],
        [6, 2, 1, 65, 8, 64],
        [2, 1, 70, 64, 32, 33],
        [1, 1, 5, 200, 80, 128],
        [3, 3, 17, 129, 3, 4],
        [2, 2, 9, 40, 0, 3],
        [2, 2, 130, 20, 7, 16],
        [12, 2, 1, 130, 129, 40],
        [1, 1, 20, 130, 260, 150],
        [1, 1, 210, 4000, 2, 100],
        [1, 1, 70_000, 3, 1, 1],
        [40_000, 40_000, 2, 2, 1, 1],
    ];
    let mut calls = Vec::new();
    for (i, &[heads, kv_heads, queries, keys, width, value_width]) in sizes.iter().enumerate() {
        for precision in FIXED {
            for (j, scales) in [SCALES[0], SCALES[0], SCALES[0], SCALES[1], SCALES[4]].into_iter().enumerate() {
                if heads * queries * keys > 50_000 && j > 0 {
                    continue;
                }
                let mut r = Random((i * 8 + j) as u64);
                let mut some = |heads: usize, rows: usize, width: usize, across: bool| {
                    let of_head = |r: &mut Random| match across {
                        true => turned(&lines(r, width, rows, scales), [width, rows]),
                        false => lines(r, rows, width, scales),
                    };
                    let values: Vec<f32> = (0..heads).flat_map(|_| of_head(&mut r)).collect();
                    Some(Tensor::new(&values, &[heads, rows, width]).unwrap())
                };
                let mut operands = vec![
                    some(heads, queries, width, false),
                    some(kv_heads, keys, width, false),
                    some(kv_heads, keys, value_width, true),
                    None,
                ];
                let scale = if j == 2 { -0.7 } else { 0.0 };
                let attrs = Attrs { precision: Some(precision), causal: j % 2 == 1, scale, ..Attrs::default() };
                if j > 0 {
                    let dims =
                        vec![vec![queries, keys], vec![heads, 1, keys], vec![queries, 1]].swap_remove(r.below(3));
                    let hidden = |r: &mut Random| if r.below(3) == 0 { f32::NEG_INFINITY } else { value(r, 0, 2) };
                    let mask: Vec<f32> = (0..dims.iter().product()).map(|_| hidden(&mut r)).collect();
                    operands[3] = Some(Tensor::new(&mask, &dims).unwrap());
                }
                calls.push((format!("{:?} {scales:?}", sizes[i]), attrs, operands));
            }
        }
    }
    calls
}

#[test]
fn attention_equals_the_reference() {
    let contexts = contexts(&[1, 3]);
    for (name, attrs, operands) in attention_calls() {
        equal(&contexts, Op::Attention, &attrs, &operands, &name);
    }
}

#[test]
fn attention_on_a_gpu_equals_the_reference() {
    let Some(mut gpu) = Gpu::open() else { return };
    for (name, attrs, operands) in attention_calls() {
        // A software GPU would take half a minute.
        if name.contains("4000") {
            continue;
        }
        gpu.check(&name, Op::Attention, &attrs, &operands, &[0, 1, 3, 0]);
    }
}

/// The longest K of units that multiply bytes, and one more. More than 32-bit sums of digits hold, and more than 64-bit sums of the
/// largest numbers hold.
#[test]
fn long_sums_are_exact() {
    let contexts = contexts(&[1]);
    for precision in FIXED {
        for k in [16_384, 16_385, 43_691, 140_000] {
            let mut r = Random(k as u64);
            // Every product is the largest possible one: the total has 46 + 17 bits.
            let most = if precision == Precision::Fixed24 { 8_355_711.0 } else { 32_639.0 };
            let same = Tensor::new(&vec![most; 2 * k], &[2, k]).unwrap();
            let other: Vec<f32> = (0..2 * k).map(|i| if i < k { most } else { value(&mut r, 0, 2) }).collect();
            let attrs = Attrs { precision: Some(precision), trans_b: true, ..Attrs::default() };
            let operands = [Some(same), Some(Tensor::new(&other, &[2, k]).unwrap())];
            equals_reference(&contexts, &attrs, &operands, &format!("{k}"));
            let y = contexts[0].run(Op::Matmul, &attrs, &[operands[0].as_ref(), operands[1].as_ref()]).unwrap();
            let total = (most as i128) * (most as i128) * k as i128;
            assert_eq!(f32::from_le_bytes(y.bytes()[..4].try_into().unwrap()), total as f32, "rounded once");
        }
    }
}

#[test]
fn batches_and_halves() {
    let contexts = contexts(&[2]);
    let mut r = Random(77);
    for (a, b) in [(&[2, 3][..], &[3][..]), (&[2], &[]), (&[], &[2]), (&[2, 1], &[1, 3]), (&[0], &[1])] {
        for precision in FIXED {
            for dtype in [DType::F32, DType::F16, DType::BF16] {
                let mut attrs = Attrs {
                    precision: Some(precision),
                    trans_a: r.flag(),
                    trans_b: r.flag(),
                    beta: 0.5,
                    ..Attrs::default()
                };
                attrs.set(Op::Matmul, "activation", "relu").unwrap();
                let (m, n, k) = (1 + r.below(9), 1 + r.below(30), r.below(3) * 90);
                let (mut a, mut b) = (a.to_vec(), b.to_vec());
                a.extend(if attrs.trans_a { [k, m] } else { [m, k] });
                b.extend(if attrs.trans_b { [n, k] } else { [k, n] });
                let mut few = |dims: &[usize]| {
                    let values: Vec<f32> = (0..dims.iter().product()).map(|_| value(&mut r, 0, 1)).collect();
                    contexts[0].cast(&Tensor::new(&values, dims).unwrap(), dtype).unwrap()
                };
                let operands: Vec<_> = [few(&a), few(&b), few(&[m, n])].into_iter().collect();
                let views: Vec<_> = operands.iter().map(|x| Some(x.view())).collect();
                let meta = Op::Matmul.info().infer(&attrs, &views).unwrap();
                let expected = reference(Op::Matmul, &attrs, &views, &meta).unwrap();
                for ctx in &contexts {
                    let got = ctx.run(Op::Matmul, &attrs, &operands.iter().map(Some).collect::<Vec<_>>()).unwrap();
                    assert!(got.bytes() == expected, "{dtype} {a:?} {b:?} {attrs:?} on {ctx:?}");
                }
            }
        }
    }
}

/// Several threads compute blocks of the result, and K is cut into several parts.
#[test]
fn large_products_equal_sampled_results() {
    let mut r = Random(5);
    let (m, n, k) = (300, 410, 520);
    let (a, b) = (lines(&mut r, m, k, &[0, 1]), lines(&mut r, n, k, &[0, -3]));
    let (x, y) = (Tensor::new(&a, &[m, k]).unwrap(), Tensor::new(&turned(&b, [n, k]), &[k, n]).unwrap());
    for precision in FIXED {
        let options = MatmulOptions { precision: Some(precision), ..MatmulOptions::default() };
        let mut first: Option<Tensor> = None;
        for ctx in contexts(&[1, 3]) {
            let got = ctx.matmul_with(&x, &y, options).unwrap();
            if let Some(first) = &first {
                assert!(got.bytes() == first.bytes(), "{ctx:?}");
                continue;
            }
            for sample in 0..500 {
                let (i, j) = (sample * 7919 % m, sample * 104_729 % n);
                let want = fixed_dot(precision, k, |p| a[i * k + p], |p| b[j * k + p]);
                let at = 4 * (i * n + j);
                assert_eq!(got.bytes()[at..at + 4], want.to_le_bytes(), "[{i}, {j}]");
            }
            first = Some(got);
        }
    }
}

#[test]
fn a_packed_operand_is_refused() {
    let ctx = Context::open("cpu").unwrap();
    let x = Tensor::new(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap();
    let packed = ctx.pack(&x, false).unwrap();
    let options = MatmulOptions { precision: Some(Precision::Fixed24), ..MatmulOptions::default() };
    let error = ctx.matmul_packed(&x, &packed, options).unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert!(error.to_string().contains("precision can't be fixed24"), "{error}");
    let mut attrs = Attrs::default();
    let error = attrs.set(Op::Matmul, "precision", "f16").unwrap_err();
    assert!(error.to_string().contains("f32, fixed24, fixed16"), "{error}");
}

/// A pipeline keeps the digits of its constants, also of halves, of rows and of ffn's matrices.
#[test]
fn a_pipelines_constants_are_cut_once() {
    let mut contexts = contexts(&[1, 2]);
    if Gpu::open().is_some() {
        contexts.push(Context::open(&format!("{}:0", on_gpu::backend::backend())).unwrap());
    }
    for (i, precision) in FIXED.into_iter().cycle().take(8).enumerate() {
        let mut r = Random(i as u64);
        let (m, k, n) = ([1, 4, 3, 130][i / 2], 40 + r.below(300), 30 + r.below(190));
        let dtype = [DType::F32, DType::F16, DType::BF16, DType::F32][i / 2];
        let mut matrix = |rows: usize, columns: usize| {
            let values = lines(&mut r, rows, columns, SCALES[0]);
            let wide = Tensor::new(&values, &[rows, columns]).unwrap();
            let attrs = Attrs { dtype: Some(dtype), ..Attrs::default() };
            contexts[0].run(Op::Cast, &attrs, &[Some(&wide)]).unwrap()
        };
        let (x, first, turned, narrow) = (matrix(m, k), matrix(k, n), matrix(k, n), matrix(n, 24));
        let fixed = Attrs { precision: Some(precision), ..Attrs::default() };
        let turn = Attrs { trans_b: true, ..fixed };
        let rows = turned.rows(3, 20).unwrap();
        let expect = |op: Op, attrs: &Attrs, operands: &[Option<&Tensor>]| {
            let views: Vec<_> = operands.iter().map(|t| t.map(Tensor::view)).collect();
            let meta = op.info().infer(attrs, &views).unwrap();
            Tensor::from_bytes(&reference(op, attrs, &views, &meta).unwrap(), meta.dtype, meta.shape.dims()).unwrap()
        };
        let (c, bias) = (matrix(m, n), matrix(1, n).reshape(&[n]).unwrap());
        let activation = Some([Activation::Relu, Activation::GeluErf][i % 2]);
        let after = Attrs { alpha: 0.3, beta: -1.5, activation, ..fixed };
        let y = expect(Op::Matmul, &fixed, &[Some(&x), Some(&first)]);
        let expected = [
            y.clone(),
            expect(Op::Matmul, &turn, &[Some(&y), Some(&turned)]),
            expect(Op::Matmul, &turn, &[Some(&y), Some(&rows)]),
            expect(Op::Matmul, &after, &[Some(&x), Some(&first), Some(&c), Some(&bias)]),
            expect(Op::Ffn, &fixed, &[Some(&x), Some(&first), None, Some(&narrow), None]),
        ];
        for ctx in &contexts {
            let mut pipeline = ctx.pipeline();
            let input = pipeline.input(dtype, &[m, k]).unwrap();
            let [first, turned, narrow, c, bias] =
                [&first, &turned, &narrow, &c, &bias].map(|t| pipeline.constant(t).unwrap());
            let y = pipeline.op(Op::Matmul, &fixed, &[Some(input), Some(first)]).unwrap();
            let rows = pipeline.rows(turned, 3, 20).unwrap();
            let all = pipeline.op(Op::Matmul, &turn, &[Some(y), Some(turned)]).unwrap();
            let part = pipeline.op(Op::Matmul, &turn, &[Some(y), Some(rows)]).unwrap();
            let ffn = pipeline.op(Op::Ffn, &fixed, &[Some(input), Some(first), None, Some(narrow), None]).unwrap();
            let more = pipeline.op(Op::Matmul, &after, &[Some(input), Some(first), Some(c), Some(bias)]).unwrap();
            for value in [y, all, part, more, ffn] {
                pipeline.output(value).unwrap();
            }
            let compiled = pipeline.compile().unwrap();
            for _ in 0..2 {
                let got = compiled.run(&[&x]).unwrap();
                for (j, (got, expected)) in got.iter().zip(&expected).enumerate() {
                    assert!(
                        got.bytes() == expected.bytes(),
                        "call {i}, output {j}, {dtype} on {}",
                        ctx.device_info().arch
                    );
                }
            }
        }
    }
}

#[test]
fn a_gpu_equals_the_reference() {
    let Some(mut gpu) = Gpu::open() else { return };
    for (i, &sizes) in SIZES.iter().enumerate() {
        for precision in FIXED {
            let mut r = Random(i as u64);
            let (attrs, operands) = call(&mut r, precision, sizes, SCALES[i % SCALES.len()]);
            gpu.check(&format!("{sizes:?}"), Op::Matmul, &attrs, &operands, &[0, r.below(3), 0, 0]);
        }
    }
}

/// CUDA cuts large operands with kernels of their own if lines lie side by side.
#[test]
fn a_gpu_cuts_large_operands() {
    let Some(mut gpu) = Gpu::open() else { return };
    for (i, sizes) in [[5, 1100, 300], [130, 200, 1000], [40, 700, 513]].into_iter().enumerate() {
        for precision in FIXED {
            for [trans_a, trans_b] in [[false, false], [true, false], [true, true]] {
                let mut r = Random(i as u64);
                let [m, n, k] = sizes;
                let (a, b) = (lines(&mut r, m, k, SCALES[i]), lines(&mut r, n, k, SCALES[i]));
                let (a, a_dims) = if trans_a { (turned(&a, [m, k]), [k, m]) } else { (a, [m, k]) };
                let (b, b_dims) = if trans_b { (b, [n, k]) } else { (turned(&b, [n, k]), [k, n]) };
                let operands = [Tensor::new(&a, &a_dims), Tensor::new(&b, &b_dims)].map(|t| Some(t.unwrap()));
                let attrs = Attrs { precision: Some(precision), trans_a, trans_b, ..Attrs::default() };
                gpu.check(&format!("{sizes:?}"), Op::Matmul, &attrs, &operands, &[0, 1]);
            }
        }
    }
    let mut r = Random(9);
    let (a, b) = (lines(&mut r, 3 * 40, 600, SCALES[0]), lines(&mut r, 600, 3 * 130, SCALES[3]));
    let operands = [Tensor::new(&a, &[3, 40, 600]), Tensor::new(&b, &[3, 600, 130])].map(|t| Some(t.unwrap()));
    let attrs = Attrs { precision: Some(Precision::Fixed24), ..Attrs::default() };
    gpu.check("batches", Op::Matmul, &attrs, &operands, &[0]);
}

#[test]
fn a_gpu_adds_long_sums() {
    let Some(mut gpu) = Gpu::open() else { return };
    for precision in FIXED {
        let k = 140_000;
        let most = if precision == Precision::Fixed24 { 8_355_711.0 } else { 32_639.0 };
        let a = Tensor::new(&vec![most; 2 * k], &[2, k]).unwrap();
        let b = Tensor::new(&vec![-most; 2 * k], &[k, 2]).unwrap();
        let attrs = Attrs { precision: Some(precision), ..Attrs::default() };
        gpu.check("long", Op::Matmul, &attrs, &[Some(a), Some(b)], &[0]);
    }
}
