//! Every operation except products on this machine's first GPU, software or not, against the scalar references, bit for bit.
//! Without a GPU nothing is tested.

mod draws;
mod on_gpu;
#[path = "on_gpu/quantized.rs"]
mod quantized;

use adead_core::contract::GeluForm;
use adead_core::hal::Buffer;
use adead_core::{
    Attrs, Axis, Command, DType, Gives, Inputs, MAX_RANK, Meta, Op, OpKind, Permutation, Shape, Tensor, View, ViewMut,
    contract, reference,
};
use draws::{Random, plain};
use on_gpu::Gpu;
use std::sync::Arc;

/// gpu_products.rs tests products.
#[test]
fn every_operation_equals_its_reference_on_random_calls() {
    let Some(mut gpu) = Gpu::open() else { return };
    let others: Vec<Op> = Op::ALL.iter().copied().filter(|op| !on_gpu::PRODUCTS.contains(op)).collect();
    gpu.random_calls(&others, 48);
}

/// An operand that is on the GPU too, this many elements after the beginning of its buffer, with a margin before and after it.
struct There {
    tensor: Tensor,
    buffer: Arc<dyn Buffer>,
    offset: usize,
}

impl There {
    fn new(gpu: &mut Gpu, tensor: Tensor, shift: usize) -> There {
        let offset = 4 * shift;
        let bytes = [&vec![0xa5; offset], tensor.bytes(), &vec![0xa5; offset]].concat();
        let buffer = gpu.device.allocate_unset(bytes.len()).unwrap();
        gpu.stream.write(&*buffer, 0, &bytes).unwrap();
        There { tensor, buffer, offset }
    }

    fn view(&self) -> View<'_> {
        View::buffer(&*self.buffer, self.offset, self.tensor.view().meta()).unwrap()
    }
}

/// Elementwise commands in place, submitted together: on a GPU they become few kernels.
#[test]
fn runs_equal_their_operations_one_by_one() {
    let Some(mut gpu) = Gpu::open() else { return };
    let cpu = plain();
    let (unary, binary) = (draws::of(OpKind::Unary), draws::of(OpKind::Binary));
    for seed in 0..80 {
        let mut r = Random(seed << 8 | 0xf5);
        let sizes = [1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 32, 33, 100, 128, 255, 256, 300];
        let rank = 1 + r.below(3);
        let mut dims: Vec<usize> = (0..rank).map(|_| sizes[r.below(sizes.len())]).collect();
        dims[0] *= [1, 1, 4, 16, 20][r.below(5)];
        let dims = match dims.iter().product::<usize>() {
            ..100_000 => dims,
            _ => dims[..rank.min(2)].to_vec(),
        };
        // In half of the rounds everything is aligned to 16 bytes, in the others only some of it.
        let shift = |r: &mut Random| if seed % 2 == 0 || r.flag() { 0 } else { r.below(9) };
        let drawn = |gpu: &mut Gpu, r: &mut Random, dims: &[usize]| {
            let (tensor, shift) = (r.float(DType::F32, dims), shift(r));
            There::new(gpu, tensor, shift)
        };
        let (x, y) = (drawn(&mut gpu, &mut r, &dims), drawn(&mut gpu, &mut r, &dims));
        let meta = *y.tensor.view().meta();
        let (mut calls, mut value) = (Vec::new(), if r.flag() { x.tensor.clone() } else { y.tensor.clone() });
        let first = if value.bytes() == x.tensor.bytes() { &x } else { &y };
        let mut others = Vec::new();
        for _ in 0..2 + r.below(19) {
            let form = if r.flag() { GeluForm::Tanh } else { GeluForm::Erf };
            let alpha = [0.5, -1.0, 3e-39, f32::NAN][r.below(4)];
            let attrs = Attrs { alpha, form, min: -alpha, max: [0.25, 1.0, -0.0][r.below(3)], ..Attrs::default() };
            let (op, sides) = match r.below(3) {
                0 => (unary[r.below(unary.len())], vec![None]),
                _ => {
                    let other = match r.below(30) {
                        0..8 => dims.clone(),
                        8..16 => dims[dims.len() - 1..].to_vec(),
                        16..20 => dims[1..].to_vec(),
                        20 | 21 => vec![1; r.below(2)],
                        22..26 => [&dims[..1], &vec![1; dims.len() - 1]].concat(),
                        26 => [&[1], &dims[1..]].concat(),
                        27 if seed % 8 == 0 => [&dims[..dims.len() - 1], &[1]].concat(),
                        _ => Vec::new(),
                    };
                    let op = binary[r.below(binary.len())];
                    let itself = r.below(8) == 0;
                    if !itself {
                        others.push(if r.below(8) == 0 { None } else { Some(drawn(&mut gpu, &mut r, &other)) });
                    }
                    let other = if itself { None } else { Some(others.len() - 1) };
                    (op, if r.flag() { vec![None, other] } else { vec![other, None] })
                }
            };
            // The other operand: one of its own, or the run's first value, if that is not overwritten.
            let of = |side: &Option<usize>| match side {
                Some(i) => others[*i].as_ref().map_or(&x.tensor, |other| &other.tensor),
                None => &value,
            };
            let operands: Vec<_> = sides.iter().map(|side| Some(of(side))).collect();
            value = cpu.run(op, &attrs, &operands).unwrap();
            calls.push((op, attrs, sides));
        }
        let place = |i: usize, side: &Option<usize>| match side {
            Some(other) => Some(others[*other].as_ref().unwrap_or(&x).view()),
            None => Some(if i == 0 { first.view() } else { y.view() }),
        };
        let inputs =
            |(i, call): (usize, &(Op, Attrs, Vec<Option<usize>>))| call.2.iter().map(|side| place(i, side)).collect();
        let inputs: Vec<Inputs<'_>> = calls.iter().enumerate().map(inputs).collect();
        let mut commands: Vec<Command<'_>> = Vec::new();
        for ((op, attrs, _), inputs) in calls.iter().zip(&inputs) {
            let output = ViewMut::buffer(&*y.buffer, y.offset, &meta).unwrap();
            commands.push(Command::new(*op, *attrs, inputs, output).unwrap());
        }
        gpu.stream.submit(&mut commands).unwrap();
        let mut bytes = vec![0; y.buffer.size()];
        gpu.stream.read(&*y.buffer, 0, &mut bytes).unwrap();
        let expected = [&vec![0xa5; y.offset], value.bytes(), &vec![0xa5; y.offset]].concat();
        let at = bytes.iter().zip(&expected).position(|(a, b)| a != b);
        assert!(at.is_none(), "seed {seed} {dims:?} shifted {}: byte {at:?} after {calls:?}", y.offset / 4);
    }
}

/// Lines longer than a workgroup holds, than a block of SUM, and than a block of blocks; contiguous and strided.
#[test]
fn long_lines() {
    let Some(mut gpu) = Gpu::open() else { return };
    let mut r = Random(3);
    for dims in [&[3, 9001][..], &[2, 30_000], &[1_100_000], &[2, 2500, 3], &[1200, 70], &[8192, 2], &[40, 8191]] {
        let x = Some(r.float(DType::F32, dims));
        let along = |axis: i32| Attrs { axis: Axis::At(axis), ..Attrs::default() };
        let axis = if dims.len() == 3 || dims[0] > 1000 && dims.len() == 2 { dims.len() as i32 - 2 } else { -1 };
        for op in [draws::of(OpKind::Reduction), vec![Op::Softmax, Op::Cumsum]].concat() {
            gpu.check("along", op, &along(axis), std::slice::from_ref(&x), &[0]);
        }
        for op in [Op::Topk, Op::Argtopk] {
            for k in [1, 40, 1025] {
                gpu.check("along", op, &Attrs { k, ..along(axis) }, std::slice::from_ref(&x), &[0]);
            }
        }
        for op in draws::of(OpKind::Reduction) {
            let index = op.gives() == Some(Gives::Index);
            let attrs = Attrs { axis: Axis::All, dtype: index.then_some(DType::U32), ..Attrs::default() };
            gpu.check("all", op, &attrs, std::slice::from_ref(&x), &[0, 1]);
        }
        let n = dims[dims.len() - 1];
        let (gamma, beta) = (Some(r.float(DType::F32, &[n])), Some(r.float(DType::F32, &[n])));
        let residual = Some(r.float(DType::F32, dims));
        let operands = [x.clone(), gamma.clone(), beta, residual.clone()];
        gpu.check("", Op::Layernorm, &Attrs::default(), &operands[..3], &[0]);
        gpu.check("of a sum", Op::Layernorm, &Attrs::default(), &operands, &[0]);
        gpu.check("", Op::Rmsnorm, &Attrs::default(), &[x.clone(), gamma.clone()], &[0, 2, 1, 3]);
        gpu.check("of a sum", Op::Rmsnorm, &Attrs::default(), &[x, gamma, residual], &[0, 2, 1, 3]);
    }
}

/// Axes that are reduced together and are not adjacent, long enough for several blocks.
#[test]
fn several_axes() {
    let Some(mut gpu) = Gpu::open() else { return };
    let mut r = Random(5);
    for (dims, axes) in [
        (&[40, 3, 60][..], &[0, 2][..]),
        (&[40, 3, 60, 5], &[2, 0]),
        (&[7, 4, 1, 9, 6], &[1, 3]),
        (&[5, 300, 2, 70], &[3, 1]),
    ] {
        let x = [Some(r.float(DType::F32, dims))];
        let attrs = Attrs { axes: Permutation::new(axes).unwrap(), ..Attrs::default() };
        for op in [Op::Sum, Op::Mean, Op::Max, Op::Min, Op::Prod] {
            gpu.check("axes", op, &attrs, &x, &[0, 1]);
        }
    }
}

/// Ties, NaN and zeros of both signs: which of several maxima and minima is chosen.
#[test]
fn the_first_maximum_is_found() {
    let Some(mut gpu) = Gpu::open() else { return };
    let mut r = Random(4);
    for n in [1, 31, 33, 1024, 1025, 5000, 1_050_000] {
        for palette in [&[0.0, -0.0][..], &[f32::NAN, f32::INFINITY], &[f32::NEG_INFINITY], &[1.0, 2.0, -1.0]] {
            let values: Vec<f32> = (0..n).map(|_| palette[r.below(palette.len())]).collect();
            let x = [Some(Tensor::new(&values, &[n]).unwrap())];
            for op in [Op::Argmax, Op::Max, Op::Argmin, Op::Min] {
                gpu.check("ties", op, &Attrs::default(), &x, &[0]);
            }
        }
    }
}

/// Broadcasting with every pattern of broadcast dimensions, up to the highest rank.
#[test]
fn broadcasting() {
    let Some(mut gpu) = Gpu::open() else { return };
    let mut r = Random(5);
    for seed in 0..120 {
        let rank = 1 + r.below(MAX_RANK);
        let dims: Vec<usize> = (0..rank).map(|_| [1, 2, 3, 4, 8][r.below(5)]).collect();
        let mut narrow = || -> Vec<usize> {
            let from = if r.flag() { 0 } else { r.below(rank + 1) };
            dims[from..].iter().map(|&n| if r.flag() { n } else { 1 }).collect()
        };
        let (a, b) = (narrow(), narrow());
        let operands = [Some(r.float(DType::F32, &a)), Some(r.float(DType::F32, &b))];
        let binary = draws::of(OpKind::Binary);
        let op = binary[r.below(binary.len())];
        gpu.check(&format!("seed {seed}"), op, &Attrs::default(), &operands, &[0, r.below(3) * 2]);
    }
    // Large enough that an invocation processes several vectors.
    let (a, row) = (r.float(DType::F32, &[2100, 2052]), r.float(DType::F32, &[2052]));
    let column = r.float(DType::F32, &[2100, 1]);
    for (op, a, b) in [(Op::Add, &a, &row), (Op::Div, &column, &a), (Op::Mul, &a, &a)] {
        gpu.check("large", op, &Attrs::default(), &[Some(a.clone()), Some(b.clone())], &[0]);
    }
    gpu.check("large", Op::Exp, &Attrs::default(), &[Some(a.clone())], &[0]);
    gpu.check("large", Op::Exp, &Attrs::default(), &[Some(a)], &[1]);
}

/// A binary64: any bits, a number of a binary32's size, or one beside a midpoint of a shorter float or beside an integer's limit.
fn double(r: &mut Random) -> f64 {
    let beside = |x: f64, r: &mut Random| f64::from_bits(x.to_bits().wrapping_add(r.below(3) as u64).wrapping_sub(1));
    match r.below(5) {
        0 => f64::from_bits(r.next()),
        1 => (r.next() as f64 / 1e19 - 0.9) * f64::exp2(r.below(300) as f64 - 150.0),
        2 => {
            let x =
                f64::exp2([31.0, 32.0, 63.0, 8.0, 0.0, -149.0, -126.0, -24.0, -14.0, -133.0, 128.0, 16.0][r.below(12)]);
            beside(x * [1.0, 0.5, -1.0, -1.5][r.below(4)], r)
        }
        _ => {
            // The midpoint of two neighbours with 24, 11 or 8 bits.
            let kept = [24, 11, 8][r.below(3)];
            let bits = f64::from(f32::from_bits(r.next() as u32)).to_bits();
            beside(f64::from_bits((bits >> (53 - kept) | 1) << (53 - kept)), r)
        }
    }
}

/// A tensor of any dtype with any bits.
fn bits(r: &mut Random, dtype: DType, dims: &[usize]) -> Tensor {
    let n: usize = dims.iter().product();
    match dtype {
        DType::U8 => Tensor::from_bytes(&(0..n).map(|_| r.next() as u8).collect::<Vec<_>>(), dtype, dims).unwrap(),
        DType::I64 => Tensor::new(&(0..n).map(|_| r.next() as i64 >> (r.below(64))).collect::<Vec<_>>(), dims).unwrap(),
        DType::I32 => Tensor::new(&(0..n).map(|_| r.next() as i32 >> r.below(32)).collect::<Vec<_>>(), dims).unwrap(),
        DType::U32 => Tensor::new(&(0..n).map(|_| r.next() as u32 >> r.below(32)).collect::<Vec<_>>(), dims).unwrap(),
        DType::F64 => Tensor::from_doubles(&(0..n).map(|_| double(r)).collect::<Vec<_>>(), dims).unwrap(),
        _ => {
            let edges = [31.0, 32.0, 62.0, 63.0, 64.0, 23.0, 24.0, 0.0, -1.0];
            let values: Vec<f32> = (0..n)
                .map(|i| match i % 3 {
                    0 => f32::from_bits(r.next() as u32),
                    1 => (r.next() as f32 / 1e19 - 0.9) * f32::exp2(r.below(70) as f32),
                    _ => {
                        let edge = f32::exp2(edges[r.below(9)]);
                        f32::from_bits(edge.to_bits() - 1 + r.below(3) as u32) * if r.flag() { 1.0 } else { -1.0 }
                    }
                })
                .collect();
            plain().cast(&Tensor::new(&values, dims).unwrap(), dtype).unwrap()
        }
    }
}

#[test]
fn casts_between_all_dtypes() {
    let Some(mut gpu) = Gpu::open() else { return };
    let mut r = Random(6);
    for from in DType::ALL {
        for to in DType::ALL {
            for n in [1, 3, 64, 1001, 5000] {
                let attrs = Attrs { dtype: Some(to), ..Attrs::default() };
                let x = [Some(bits(&mut r, from, &[n]))];
                gpu.check("aligned", Op::Cast, &attrs, &x, &[0]);
                gpu.check("anywhere", Op::Cast, &attrs, &x, &[r.below(8), r.below(8)]);
            }
        }
    }
    // Every f16 value.
    let every: Vec<f32> = (0..=u16::MAX).map(contract::f16_to_f32).collect();
    let x = plain().cast(&Tensor::new(&every, &[1 << 16]).unwrap(), DType::F16).unwrap();
    gpu.check("every", Op::Cast, &Attrs { dtype: Some(DType::F32), ..Attrs::default() }, &[Some(x)], &[0]);
}

#[test]
fn long_lines_of_integers() {
    let Some(mut gpu) = Gpu::open() else { return };
    let mut r = Random(12);
    let mut check = |gpu: &mut Gpu, dtype: DType, dims: &[usize], axis: Axis, ops: &[Op]| {
        let x = [Some(bits(&mut r, dtype, dims))];
        for &op in ops {
            gpu.check(&format!("{dtype}{dims:?}"), op, &Attrs { axis, ..Attrs::default() }, &x, &[0]);
        }
    };
    let all = [Op::Sum, Op::Prod, Op::Max, Op::Min, Op::Argmax, Op::Argmin];
    for dtype in [DType::I32, DType::I64, DType::U32, DType::U8, DType::Bool] {
        check(&mut gpu, dtype, &[3, 16_385], Axis::At(1), &all);
        check(&mut gpu, dtype, &[50_001, 2], Axis::At(0), &all);
    }
    // More rounds than some drivers let a loop have, if one workgroup had all elements.
    check(&mut gpu, DType::U8, &[1 << 24], Axis::All, &[Op::Sum, Op::Argmin]);
}

#[test]
fn moves_of_every_element_size() {
    let Some(mut gpu) = Gpu::open() else { return };
    let mut r = Random(7);
    for dtype in [DType::Bool, DType::U8, DType::F16, DType::U32, DType::I64, DType::F64] {
        for dims in [&[70, 90][..], &[33, 64], &[64, 34, 2], &[3, 40, 50], &[5, 1, 7, 9], &[2, 3, 4, 5, 6], &[100, 3]] {
            for _ in 0..6 {
                let mut perm: Vec<i32> = (0..dims.len() as i32).collect();
                (1..dims.len()).for_each(|i| perm.swap(i, r.below(i + 1)));
                let attrs = Attrs { perm: Permutation::new(&perm).unwrap(), ..Attrs::default() };
                let x = [Some(bits(&mut r, dtype, dims))];
                gpu.check("", Op::Transpose, &attrs, &x, &[r.below(3), r.below(3)]);
                let mut other = dims.to_vec();
                let axis = r.below(dims.len());
                other[axis] = r.below(9);
                let operands = [x[0].clone(), Some(bits(&mut r, dtype, &other))];
                let attrs = Attrs { axis: Axis::At(axis as i32), ..Attrs::default() };
                gpu.check("", Op::Concat, &attrs, &operands, &[r.below(3), r.below(3), 0]);
            }
        }
    }
}

#[test]
fn embedding_checks_every_id_first() {
    let Some(mut gpu) = Gpu::open() else { return };
    let mut r = Random(8);
    for dtype in [DType::I32, DType::I64, DType::U32] {
        for (rows, width, n) in [(7, 5, 9), (300, 64, 700), (1000, 3, 40_000), (2, 0, 3)] {
            let ids: Vec<i64> = (0..n).map(|_| r.below(rows) as i64).collect();
            for of in [DType::F32, DType::BF16, DType::I64] {
                let table = Some(bits(&mut r, of, &[rows, width]));
                let cast = |ids: &[i64]| plain().cast(&Tensor::new(ids, &[n]).unwrap(), dtype).unwrap();
                let attrs = Attrs::default();
                gpu.check("", Op::Embedding, &attrs, &[table.clone(), Some(cast(&ids))], &[0, 1, 2]);
                // The error names the first wrong id, as on the CPU.
                let wrong = [rows as i64, i64::from(i32::MAX), if dtype == DType::U32 { 1 << 31 } else { -1 }];
                let mut ids = ids.clone();
                let second = n / 2 + r.below(n - n / 2);
                ids[second] = wrong[r.below(3)];
                ids[n / 2] = wrong[r.below(3)];
                let operands = [table, Some(cast(&ids))];
                let meta = Meta::new(of, Shape::new(&[n, width]).unwrap());
                let refused = gpu.run(Op::Embedding, &attrs, &operands, &meta, &[0]).unwrap_err();
                let views: Vec<_> = operands.iter().map(|t| t.as_ref().map(Tensor::view)).collect();
                assert_eq!(refused, reference(Op::Embedding, &attrs, &views, &meta).unwrap_err());
            }
        }
    }
}

/// Functions on inputs of every exponent and sign; with `ADEAD_EXHAUSTIVE` on all inputs.
#[test]
fn functions_on_every_exponent() {
    let Some(mut gpu) = Gpu::open() else { return };
    let exhaustive = std::env::var_os("ADEAD_EXHAUSTIVE").is_some();
    let gelu_tanh = Attrs { form: contract::GeluForm::Tanh, ..Attrs::default() };
    let plain = Attrs { alpha: 0.3, min: -0.0, max: 1.5, ..Attrs::default() };
    let calls = draws::of(OpKind::Unary).into_iter().map(|op| (op, plain));
    for (op, attrs) in calls.chain([(Op::Gelu, gelu_tanh)]) {
        let (steps, part) = if exhaustive { (256u32, 1 << 24) } else { (1, 1 << 18) };
        for step in 0..steps {
            // The patterns are a prime apart, so that the low bits vary.
            let value = |i: u32| if exhaustive { step << 24 | i } else { i.wrapping_mul(16411) };
            let values: Vec<f32> = (0..part).map(|i| f32::from_bits(value(i))).collect();
            gpu.check("", op, &attrs, &[Some(Tensor::new(&values, &[values.len()]).unwrap())], &[0]);
        }
    }
}
