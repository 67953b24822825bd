//! Products with matrices of quantised blocks on this machine's first GPU, software or not, and their conversion to f32, against the
//! scalar references, bit for bit. Without a GPU nothing is tested.

use super::on_gpu::Gpu;
use crate::draws::{self, Random};
use adead_core::contract::BlockFormat;
use adead_core::{Attrs, DType, Op, OpKind, Tensor};

fn of_bytes(bytes: &[u8], dims: &[usize]) -> Tensor {
    Tensor::from_bytes(bytes, DType::U8, dims).unwrap()
}

/// Rows of blocks with any bits, most of whose scales are ordinary numbers.
fn blocks(r: &mut Random, format: BlockFormat, rows: usize, k: usize) -> Tensor {
    let (row, size) = (k / format.elements() * format.bytes(), format.bytes());
    let mut bytes: Vec<u8> = (0..rows * row).map(|_| (r.next() >> 24) as u8).collect();
    let scale = if format == BlockFormat::Q6_K { 208 } else { 0 };
    for block in bytes.chunks_exact_mut(size) {
        // Exponents from 2⁻¹⁰ to 2⁵; a few stay as they are, among them infinities, NaNs and subnormals.
        for at in [scale + 1, 3].into_iter().take(if format.has_minimum() { 2 } else { 1 }) {
            if r.below(64) > 0 {
                block[at] = block[at] & 0x83 | ((5 + r.below(16) as u8) << 2);
            }
        }
    }
    of_bytes(&bytes, &[rows, row])
}

/// Numbers of different sizes: whole blocks of zeros, tiny and huge ones, and some that are not finite.
fn rows(r: &mut Random, m: usize, k: usize) -> Tensor {
    let mut values = Vec::with_capacity(m * k);
    for _ in 0..m * k / 32 {
        let size = match r.below(24) {
            0 => 0.0,
            1 => 2f32.powi(-90),
            2 => 2f32.powi(-140),
            3 => 2f32.powi(120),
            4 => 2f32.powi(-60),
            _ => 1.0,
        };
        let wrong = (r.below(40) == 0).then(|| r.below(32));
        for i in 0..32 {
            let x = (r.next() >> 40) as f32 / 8_388_608.0 - 1.0;
            let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0];
            values.push(if wrong == Some(i) { special[r.below(4)] } else { x * size });
        }
    }
    Tensor::new(&values, &[m, k]).unwrap()
}

#[test]
fn products_equal_their_reference() {
    let Some(mut gpu) = Gpu::open() else { return };
    for format in BlockFormat::ALL {
        let attrs = Attrs { format: Some(format), ..Attrs::default() };
        let block = format.elements();
        // Rows of x, rows of the matrix, blocks: rows that share a step, several steps, tiles with remainders, several strips.
        let mut shapes = vec![
            [1, 1, 1],
            [1, 130, 3],
            [3, 17, 5],
            [2, 9, 16],
            [8, 5, 17],
            [9, 40, 8],
            [1, 3, 4096 / block + 1],
            [5, 2, 9000 / block],
            [16, 70, 9],
            [17, 1, 1],
            [17, 65, 9],
            [33, 64, 2],
            [70, 130, 11],
            [40, 3, 2000 / block],
            [0, 3, 2],
            [3, 0, 2],
            [3, 200, 0],
        ];
        shapes.push([18, 66, 20_000 / block]);
        if format == BlockFormat::Q4_1 {
            // K is cut where a device limits loops.
            shapes.extend([[1, 2, 4_000_000 / block], [8, 1, 800_000 / block], [17, 3, 70_000 / block]]);
        }
        for (seed, [m, n, count]) in shapes.into_iter().enumerate() {
            let mut r = Random((seed as u64) << 8 | format as u64);
            let (x, w) = (rows(&mut r, m, count * block), blocks(&mut r, format, n, count * block));
            let shifts = [[0, 0, 0], [1, 3, 0], [2, 1, 1], [0, 2, 2], [3, 0, 15]][seed % 5];
            let what = format!("{} {m}×{n}×{}", format.name(), count * block);
            gpu.check(&what, Op::QuantizedMatmul, &attrs, &[Some(x), Some(w)], &shifts);
        }
    }
}

#[test]
fn values_equal_their_reference() {
    let Some(mut gpu) = Gpu::open() else { return };
    for format in BlockFormat::ALL {
        let attrs = Attrs { format: Some(format), ..Attrs::default() };
        for (seed, [n, count]) in [[1, 1], [3, 5], [1, 127], [2, 128], [7, 300], [0, 2], [4, 0]].into_iter().enumerate()
        {
            let mut r = Random((seed as u64) << 8 | format as u64);
            let w = blocks(&mut r, format, n, count * format.elements());
            let shifts = [[0, 0], [1, 3], [2, 2], [3, 1]][seed % 4];
            gpu.check(&format!("{} {n}×{count}", format.name()), Op::Dequantize, &attrs, &[Some(w)], &shifts);
        }
    }
}

/// Every pair of dtypes with u8 among them, and comparisons of u8.
#[test]
fn bytes_are_cast_and_compared() {
    let Some(mut gpu) = Gpu::open() else { return };
    let floats =
        [0.0, -0.0, 0.5, 0.99, 1.0, -0.5, -1.0, 127.9, 255.0, 255.9, 256.0, 300.0, -7.0, 1e30, -1e30, f32::NAN];
    let floats = [&floats[..], &[f32::INFINITY, f32::NEG_INFINITY, 1e-40, 128.0, 65504.0]].concat();
    let integers: Vec<i64> =
        vec![0, 1, -1, 127, 128, 255, 256, 257, -128, -256, 1 << 31, (1 << 40) + 3, i64::MIN, i64::MAX, 7];
    let bytes: Vec<u8> = (0..=255).chain([0, 3, 9]).collect();
    let cpu = draws::plain();
    let tensors = [
        Tensor::new(&floats, &[floats.len()]).unwrap(),
        Tensor::new(&integers, &[integers.len()]).unwrap(),
        of_bytes(&bytes, &[bytes.len()]),
    ];
    for tensor in &tensors {
        for from in DType::ALL {
            let from = cpu.cast(tensor, from).unwrap();
            for to in DType::ALL {
                let attrs = Attrs { dtype: Some(to), ..Attrs::default() };
                for shifts in [[0, 0], [1, 3]] {
                    gpu.check(&format!("to {to}"), Op::Cast, &attrs, &[Some(from.clone())], &shifts);
                }
            }
        }
    }
    let (a, b) = (tensors[2].clone(), of_bytes(&[127], &[1]));
    for op in draws::of(OpKind::Comparison) {
        for (x, y) in [(&a, &b), (&b, &a), (&a, &a)] {
            gpu.check("bytes", op, &Attrs::default(), &[Some(x.clone()), Some(y.clone())], &[0, 1, 2]);
        }
    }
}
