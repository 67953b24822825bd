//! Matrix products and attention on this machine's first GPU, software or not, against the scalar references, bit for bit.
//! Without a GPU nothing is tested.

mod draws;
mod on_gpu;

use adead_core::{Attrs, DType, Meta, Op, Shape, Status, Tensor};
use draws::Random;
use on_gpu::Gpu;

#[test]
fn every_product_equals_its_reference_on_random_calls() {
    let Some(mut gpu) = Gpu::open() else { return };
    // Fewer calls: products have many kernels, and compiling each takes long in software.
    gpu.random_calls(&on_gpu::PRODUCTS, 24);
}

/// A product of these sizes with these layouts of operands, with or without C and a bias.
fn product(gpu: &mut Gpu, r: &mut Random, [m, n, k]: [usize; 3], trans: [bool; 2], added: bool, shifts: &[usize]) {
    let mut attrs = Attrs { trans_a: trans[0], trans_b: trans[1], ..Attrs::default() };
    let a = r.float(DType::F32, &if trans[0] { [k, m] } else { [m, k] });
    let b = r.float(DType::F32, &if trans[1] { [n, k] } else { [k, n] });
    let mut operands = vec![Some(a), Some(b)];
    if added {
        (attrs.alpha, attrs.beta) = (1.5, -0.5);
        attrs.set(Op::Matmul, "activation", "relu").unwrap();
        operands.extend([Some(r.float(DType::F32, &[m, n])), Some(r.float(DType::F32, &[n]))]);
    }
    gpu.check(&format!("{m}x{n}x{k}"), Op::Matmul, &attrs, &operands, shifts);
}

/// Sizes for which each of the tiles is chosen, one more and one less, with few blocks of K and with many.
#[test]
fn tiles() {
    let Some(mut gpu) = Gpu::open() else { return };
    let mut r = Random(11);
    for [m, n, k] in [
        [644, 640, 257],
        [643, 650, 40],
        [260, 516, 256],
        [200, 328, 70],
        [100, 132, 516],
        [61, 67, 1030],
        [33, 34, 5000],
        [40, 4, 300],
        [3, 500, 513],
        [1, 300, 1500],
        [300, 1, 1500],
        [7, 200, 600],
        [200, 6, 600],
        [14, 260, 515],
        [260, 15, 300],
        [30, 260, 515],
        [260, 31, 300],
        [5, 5, 9000],
        [1, 1, 70_001],
    ] {
        product(&mut gpu, &mut r, [m, n, k], [false, n % 3 == 0], n % 2 == 0, &[0]);
        product(&mut gpu, &mut r, [m.min(300), n, k.min(600)], [true, n % 3 != 0], n % 2 == 1, &[0]);
        product(&mut gpu, &mut r, [m.min(100), n, k.min(300)], [m % 2 == 0, n % 2 == 0], true, &[1, 2, 3, 0, 1]);
    }
}

/// Batches whose axes are broadcast in one operand or the other, and in C in other ways.
#[test]
fn batches() {
    let Some(mut gpu) = Gpu::open() else { return };
    let mut r = Random(12);
    for seed in 0..40 {
        let rank = 1 + r.below(4);
        let dims: Vec<usize> = (0..rank).map(|_| [1, 2, 3][r.below(3)]).collect();
        let narrow = |r: &mut Random| -> Vec<usize> {
            let from = if r.flag() { 0 } else { r.below(rank + 1) };
            dims[from..].iter().map(|&n| if r.below(3) > 0 { n } else { 1 }).collect()
        };
        let (mut a, mut b, mut c) = (narrow(&mut r), narrow(&mut r), Vec::new());
        let (m, n, k) = ([1, 4, 6, 40][r.below(4)], [1, 4, 7, 36][r.below(4)], [3, 8, 260, 520][r.below(4)]);
        let mut attrs = Attrs { trans_a: r.flag(), trans_b: r.flag(), ..Attrs::default() };
        a.extend(if attrs.trans_a { [k, m] } else { [m, k] });
        b.extend(if attrs.trans_b { [n, k] } else { [k, n] });
        let (a, b) = (r.float(DType::F32, &a), r.float(DType::F32, &b));
        let inputs = [Some(a.view()), Some(b.view())];
        let result = Op::Matmul.info().infer(&attrs, &inputs).unwrap();
        for &n in result.shape.dims() {
            c.push(if r.below(3) > 0 { n } else { 1 });
        }
        c.drain(..r.below(c.len()));
        let mut operands = vec![Some(a), Some(b)];
        if r.below(4) > 0 {
            (attrs.alpha, attrs.beta) = (-1.0, 2.0);
            operands.push(Some(r.float(DType::F32, &c)));
        }
        gpu.check(&format!("seed {seed}"), Op::Matmul, &attrs, &operands, &[0, r.below(2) * 3, 0, r.below(2)]);
    }
}

/// Without k and without hidden values the result is zeros, plus what is added.
#[test]
fn nothing_to_multiply() {
    let Some(mut gpu) = Gpu::open() else { return };
    let mut r = Random(13);
    for added in [false, true] {
        product(&mut gpu, &mut r, [5, 70, 0], [false, false], added, &[0]);
        product(&mut gpu, &mut r, [1, 1, 0], [false, true], added, &[0]);
    }
    let empty = |dims: &[usize]| Some(Tensor::new(&[] as &[f32], dims).unwrap());
    gpu.check("", Op::Dot, &Attrs::default(), &[empty(&[0]), empty(&[0])], &[0]);
    let (x, bias) = (r.float(DType::F32, &[3, 4]), r.float(DType::F32, &[6]));
    gpu.check("", Op::Ffn, &Attrs::default(), &[Some(x), empty(&[4, 0]), None, empty(&[0, 6]), Some(bias)], &[0]);
    for (q, k, v) in [([1, 2, 3, 8], [1, 2, 0, 8], [1, 2, 0, 5]), ([1, 2, 3, 0], [1, 2, 70, 0], [1, 2, 70, 5])] {
        let operands = [q, k, v].map(|dims| Some(r.float(DType::F32, &dims)));
        gpu.check("", Op::Attention, &Attrs::default(), &operands, &[0]);
    }
}

/// Vectors of few blocks, and of more blocks than a workgroup has.
#[test]
fn long_vectors() {
    let Some(mut gpu) = Gpu::open() else { return };
    let mut r = Random(14);
    for n in [1, 255, 256, 257, 16_384, 16_389, 300_000, 600_007] {
        let operands = [Some(r.float(DType::F32, &[n])), Some(r.float(DType::F32, &[n]))];
        gpu.check("", Op::Dot, &Attrs::default(), &operands, &[0]);
        gpu.check("", Op::Dot, &Attrs::default(), &operands, &[1, 2, 3]);
    }
}

/// Every tile width and number of queries, few and many blocks of keys, masked keys, heads that share keys.
#[test]
fn attention() {
    let Some(mut gpu) = Gpu::open() else { return };
    let mut r = Random(15);
    let widths = [(64, 64), (30, 20), (128, 128), (33, 200), (260, 64), (4, 130)];
    for (i, (queries, keys)) in
        [(1, 700), (1, 64), (16, 130), (20, 300), (70, 256), (130, 65), (65, 1), (150, 40)].into_iter().enumerate()
    {
        for (width, value_width) in [widths[i % 6], widths[(i + 3) % 6]] {
            let (kv_heads, group) = [(1, 1), (2, 2), (1, 3)][r.below(3)];
            let (q, k, v) =
                ([kv_heads * group, queries, width], [kv_heads, keys, width], [kv_heads, keys, value_width]);
            let mut operands: Vec<_> = [q, k, v].iter().map(|dims| Some(r.float(DType::F32, dims))).collect();
            let mut attrs = Attrs { causal: r.flag(), ..Attrs::default() };
            if r.below(3) == 0 {
                attrs.scale = 0.25;
            }
            if r.flag() {
                // Half of the mask is −∞, some rows completely.
                let mut mask: Vec<f32> = (0..queries * keys).map(|_| [0.5, f32::NEG_INFINITY][r.below(2)]).collect();
                mask.chunks_mut(keys).step_by(3).for_each(|row| row.fill(f32::NEG_INFINITY));
                operands.push(Some(Tensor::new(&mask, &[queries, keys]).unwrap()));
            }
            let shifts = [0, r.below(2), 0, r.below(2)];
            gpu.check(&format!("{queries}x{keys}"), Op::Attention, &attrs, &operands, &shifts);
        }
    }
}

/// Chains so long that a thread computing one alone would exceed lavapipe's limit of iterations: its driver ends such loops
/// silently.
#[test]
fn long_chains() {
    let Some(mut gpu) = Gpu::open() else { return };
    let mut r = Random(16);
    // One product for each kind of tile.
    for [m, n, k] in [[260, 516, 3000], [130, 140, 3000], [40, 70, 9000], [300, 3, 20_000], [12, 300, 20_000]] {
        product(&mut gpu, &mut r, [m, n, k], [false, false], m == 130, &[0]);
    }
    for (queries, width) in [(70, 128), (3, 64), (3, 300)] {
        let (q, kv) = ([20, queries, width], [20, 1500, width]);
        let operands = [q, kv, kv].map(|dims| Some(r.float(DType::F32, &dims)));
        let attrs = Attrs { causal: queries > 3, ..Attrs::default() };
        gpu.check("many keys", Op::Attention, &attrs, &operands, &[0]);
    }
}

/// A vector that is too long for lavapipe's driver is refused there. Elsewhere its product is right.
#[test]
fn a_vector_too_long_is_refused() {
    let Some(mut gpu) = Gpu::open() else { return };
    let x = Tensor::new(&vec![0.5f32; 3_000_000], &[3_000_000]).unwrap();
    let operands = [Some(x.clone()), Some(x)];
    let meta = Meta::new(DType::F32, Shape::new(&[]).unwrap());
    match gpu.run(Op::Dot, &Attrs::default(), &operands, &meta, &[0]) {
        Ok(_) => gpu.check("3 million", Op::Dot, &Attrs::default(), &operands, &[0]),
        Err(error) => assert_eq!(error.status(), Status::Unsupported, "{error}"),
    }
}

/// Heads so wide that shared memory does not hold a tile of queries are refused. Elsewhere the result is right.
#[test]
fn heads_too_wide_are_refused() {
    let Some(mut gpu) = Gpu::open() else { return };
    let mut r = Random(17);
    let operands = [[2, 3, 3000], [2, 5, 3000], [2, 5, 8]].map(|dims| Some(r.float(DType::F32, &dims)));
    let meta = Meta::new(DType::F32, Shape::new(&[2, 3, 8]).unwrap());
    match gpu.run(Op::Attention, &Attrs::default(), &operands, &meta, &[0]) {
        Ok(_) => gpu.check("3000 wide", Op::Attention, &Attrs::default(), &operands, &[0]),
        Err(error) => assert_eq!(error.status(), Status::Unsupported, "{error}"),
    }
}
