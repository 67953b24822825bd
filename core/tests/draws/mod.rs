//! Draws random calls of every operation, with NaN, infinities, subnormals and −0 mixed in.

use adead_core::contract::{BlockFormat, Precision};
use adead_core::{Attrs, Axis, Context, ContextOptions, DType, Gives, Op, OpKind, PerAxis, Permutation, Tensor};

/// A small generator: a failure can be repeated from its seed alone.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn flag(&mut self) -> bool {
        self.next() & 1 == 1
    }

    /// Usually a small size, sometimes one near the sizes at which kernels switch methods.
    pub fn size(&mut self, most: usize) -> usize {
        let edges = [0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 127, 128, 129, 255, 256, 257, 513, 1025];
        let n = if self.below(3) == 0 { edges[self.below(edges.len())] } else { 1 + self.below(40) };
        n.min(most)
    }

    pub fn dims(&mut self, rank: usize, most: usize) -> Vec<usize> {
        (0..rank).map(|_| self.size(most)).collect()
    }

    /// A tensor of a floating dtype, or any bits for the others.
    pub fn float(&mut self, dtype: DType, dims: &[usize]) -> Tensor {
        let n: usize = dims.iter().product();
        if !dtype.is_float() {
            let bytes: Vec<u8> = (0..n * dtype.size()).map(|_| self.next() as u8).collect();
            return Tensor::from_bytes(&bytes, dtype, dims).unwrap();
        }
        // Most tensors are tame, so that sums and products stay interesting; some are wild.
        let wild = self.below(4) == 0;
        let values: Vec<f32> = (0..n)
            .map(|_| {
                let bits = self.next();
                match (wild, bits & 15) {
                    (true, 0) => f32::from_bits((bits >> 32) as u32),
                    (true, 1) => [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-40, -1e-38, 3e38]
                        [(bits >> 8) as usize & 7],
                    (true, 2) => f32::from_bits((bits >> 32) as u32 & 0x80ff_ffff),
                    _ => (bits >> 40) as f32 / 8_388_608.0 - 1.0,
                }
            })
            .collect();
        let tensor = Tensor::new(&values, dims).unwrap();
        if dtype == DType::F32 { tensor } else { plain().cast(&tensor, dtype).unwrap() }
    }

    /// A tensor of any dtype with many equal elements. Floats include NaN, infinities and −0.
    pub fn few(&mut self, dtype: DType, dims: &[usize]) -> Tensor {
        let values = [0.0, 1.0, -1.0, 2.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
        let values: Vec<f32> = (0..dims.iter().product()).map(|_| values[self.below(8)]).collect();
        plain().cast(&Tensor::new(&values, dims).unwrap(), dtype).unwrap()
    }

    /// Rows of quantised blocks with any bytes. The scales of most tensors are ordinary; those of the others include NaN, infinities
    /// and subnormals.
    pub fn blocks(&mut self, format: BlockFormat, rows: &[usize], blocks: usize) -> Tensor {
        let wild = self.below(4) == 0;
        // Where the high bytes of a block's f16 numbers are.
        let numbers: &[usize] = match format.name() {
            "q6_k" => &[209],
            "q8_0" | "q4_0" | "q5_0" => &[1],
            _ => &[1, 3],
        };
        let count = rows.iter().product::<usize>() * blocks;
        let mut bytes: Vec<u8> = (0..count * format.bytes()).map(|_| self.next() as u8).collect();
        if !wild {
            for block in bytes.chunks_exact_mut(format.bytes()) {
                numbers.iter().for_each(|&at| block[at] = block[at] & 0x83 | 0x20);
            }
        }
        Tensor::from_bytes(&bytes, DType::U8, &[rows, &[blocks * format.bytes()]].concat()).unwrap()
    }

    pub fn axis(&mut self, rank: usize) -> Axis {
        Axis::At(self.below(rank) as i32 - if self.flag() { rank as i32 } else { 0 })
    }
}

fn precision(r: &mut Random) -> Option<Precision> {
    [None, Some(Precision::F32), Some(Precision::Fixed24), Some(Precision::Fixed16)][r.below(6).saturating_sub(2)]
}

pub fn plain() -> Context {
    Context::with_options("cpu", &ContextOptions { isa: None, threads: Some(1), precision: None }).unwrap()
}

/// The operations of a kind.
#[allow(dead_code)] // Not every test uses it.
pub fn of(kind: OpKind) -> Vec<Op> {
    Op::ALL.iter().copied().filter(|op| op.kind() == kind).collect()
}

/// Draws operands and attributes of a call.
pub fn draw(op: Op, dtype: DType, r: &mut Random) -> (Attrs, Vec<Option<Tensor>>) {
    let mut attrs = Attrs::default();
    let mut operands = Vec::new();
    let dtype = match op {
        Op::Embedding | Op::Transpose | Op::Slice | Op::Pad | Op::Gather | Op::Concat if r.below(8) == 0 => DType::F64,
        Op::Embedding | Op::Transpose | Op::Slice | Op::Pad | Op::Gather | Op::Concat | Op::Cast if r.below(4) == 0 => {
            DType::U8
        }
        _ if op.takes_integers() && r.below(3) == 0 => {
            [DType::I32, DType::I64, DType::U32, DType::U8, DType::Bool][r.below(5)]
        }
        _ => dtype,
    };
    match op {
        Op::Matmul => {
            let (m, n, k) = (r.size(70), r.size(70), r.size(600));
            (attrs.trans_a, attrs.trans_b) = (r.flag(), r.flag());
            let lead = [vec![], vec![1], vec![2], vec![2, 1], vec![3, 2]];
            let (mut a, mut b) = (lead[r.below(3)].clone(), lead[r.below(3)].clone());
            if r.below(4) == 0 {
                (a, b) = (lead[3].clone(), lead[2].clone());
            }
            let mut c: Vec<usize> = if r.flag() { vec![m, n] } else { vec![n] };
            if r.below(4) == 0 {
                c = vec![1; 2];
            }
            a.extend(if attrs.trans_a { [k, m] } else { [m, k] });
            b.extend(if attrs.trans_b { [n, k] } else { [k, n] });
            operands = vec![Some(r.float(dtype, &a)), Some(r.float(dtype, &b)), None, None];
            if r.flag() {
                (attrs.alpha, attrs.beta) = (0.75, -1.5);
                operands[2] = Some(r.float(dtype, &c));
            }
            if r.flag() {
                operands[3] = Some(r.float(dtype, &[n]));
            }
            attrs.set(op, "activation", ["none", "relu", "gelu_erf", "gelu_tanh", "tanh", "silu"][r.below(6)]).unwrap();
            attrs.precision = precision(r);
        }
        Op::Dot => {
            let n = r.size(1025) * [1, 5, 9][r.below(3)];
            operands = vec![Some(r.float(dtype, &[n])), Some(r.float(dtype, &[n]))];
        }
        _ if op == Op::Where || matches!(op.kind(), OpKind::Binary | OpKind::Comparison) => {
            let rank = r.below(4);
            let dims = r.dims(rank, 40);
            let narrow = |r: &mut Random, dims: &[usize]| -> Vec<usize> {
                let kept = dims[r.below(dims.len() + 1).min(dims.len())..].iter();
                kept.map(|&n| if r.below(3) == 0 { 1 } else { n }).collect()
            };
            let (a, b) = match r.below(3) {
                0 => (dims.clone(), dims),
                1 => (dims.clone(), narrow(r, &dims)),
                _ => (narrow(r, &dims), dims),
            };
            if op.kind() == OpKind::Binary {
                operands = vec![Some(r.float(dtype, &a)), Some(r.float(dtype, &b))];
            } else {
                let of = DType::ALL[r.below(DType::ALL.len())];
                operands = vec![Some(r.few(of, &a)), Some(r.few(of, &b))];
                if op == Op::Where {
                    let dims = narrow(r, if a.len() > b.len() { &a } else { &b });
                    operands.insert(0, Some(r.few(DType::Bool, &dims)));
                }
            }
        }
        _ if matches!(op, Op::Softmax | Op::Cumsum | Op::Topk | Op::Argtopk) || op.kind() == OpKind::Reduction => {
            let rank = 1 + r.below(4);
            let mut dims = r.dims(rank, 70);
            if r.below(3) == 0 {
                dims[r.below(rank)] = 1000 + r.below(1200);
            }
            // Several long axes would make too many elements.
            let mut rest = 200_000;
            for n in &mut dims {
                *n = (*n).min(rest);
                rest /= (*n).max(1);
            }
            if matches!(op.gives(), Some(Gives::Element | Gives::Index)) {
                dims.iter_mut().for_each(|n| *n = (*n).max(1));
            }
            attrs.axis = r.axis(rank);
            if op.kind() == OpKind::Reduction {
                attrs.keepdim = r.flag();
                if r.below(4) == 0 {
                    attrs.axis = Axis::All;
                } else if op.gives() != Some(Gives::Index) && r.below(3) == 0 {
                    let mut axes: Vec<i32> = (0..rank as i32).collect();
                    (1..rank).for_each(|i| axes.swap(i, r.below(i + 1)));
                    axes.truncate(1 + r.below(rank));
                    axes.iter_mut().for_each(|axis| *axis -= if r.flag() { rank as i32 } else { 0 });
                    (attrs.axis, attrs.axes) = (Axis::Default, Permutation::new(&axes).unwrap());
                }
            }
            operands = vec![Some(if r.flag() { r.float(dtype, &dims) } else { r.few(dtype, &dims) })];
            if let (Op::Topk | Op::Argtopk, Axis::At(axis)) = (op, attrs.axis) {
                let n = dims[axis.rem_euclid(rank as i32) as usize];
                let most = if r.flag() { n } else { n.min(9) };
                attrs.k = r.below(most + 1) as u32;
            }
        }
        Op::QuantizedMatmul => {
            let format = BlockFormat::ALL[r.below(BlockFormat::ALL.len())];
            let (n, blocks) = (r.size(140), r.size(if format.elements() == 256 { 5 } else { 20 }));
            let rank = r.below(3);
            let mut dims = r.dims(rank, if rank == 1 { 70 } else { 9 });
            dims.push(blocks * format.elements());
            let mut x = r.float(DType::F32, &dims);
            if r.below(6) == 0 {
                // Blocks near 2^-90, below which they are zeros.
                let tiny = Attrs { alpha: 2f32.powi(-90 + r.below(3) as i32), ..Attrs::default() };
                x = plain().run(Op::Scale, &tiny, &[Some(&x)]).unwrap();
            }
            attrs.format = Some(format);
            operands = vec![Some(x), Some(r.blocks(format, &[n], blocks))];
        }
        Op::Dequantize => {
            let format = BlockFormat::ALL[r.below(BlockFormat::ALL.len())];
            let (rank, blocks) = (r.below(3), r.size(if format.elements() == 256 { 4 } else { 20 }));
            let rows = r.dims(rank, 17);
            attrs.format = Some(format);
            operands = vec![Some(r.blocks(format, &rows, blocks))];
        }
        Op::Rope => {
            let rank = 1 + r.below(4);
            let mut pairs = r.dims(rank, 40);
            // Tables have the last axes of the pairs, or one element in their place.
            let mut table = pairs[r.below(rank)..].to_vec();
            table.iter_mut().for_each(|n| *n = if r.below(4) == 0 { 1 } else { *n });
            attrs.interleaved = r.flag();
            pairs[rank - 1] *= 2;
            operands = [&pairs, &table, &table].map(|dims| Some(r.float(dtype, dims))).into();
        }
        Op::Layernorm | Op::Rmsnorm => {
            let n = if r.below(4) == 0 { 1000 + r.below(1200) } else { r.size(300) };
            let rows = r.size(20);
            operands = vec![Some(r.float(dtype, &[rows, n]))];
            for _ in 0..if op == Op::Layernorm { 2 } else { 1 } {
                let vector = r.flag().then(|| r.float(dtype, &[n]));
                operands.push(vector);
            }
            if r.flag() {
                operands.push(Some(r.float(dtype, &[rows, n])));
            }
        }
        Op::Attention => {
            let (kv, group, sq, sk) = (1 + r.below(2), 1 + r.below(3), r.size(140).min(140), r.size(200));
            let (d, dv) = ([1, 8, 64, 80, 300][r.below(5)], [1, 7, 16, 64, 300][r.below(5)]);
            let b = 1 + r.below(2);
            operands = vec![
                Some(r.float(dtype, &[b, kv * group, sq, d])),
                Some(r.float(dtype, &[b, kv, sk, d])),
                Some(r.float(dtype, &[b, kv, sk, dv])),
                None,
            ];
            attrs.precision = precision(r);
            attrs.causal = r.flag();
            if r.flag() {
                let shapes = [vec![sq, sk], vec![sk], vec![1, 1], vec![b, 1, sq, sk], vec![kv * group, 1, sk]];
                let shape = &shapes[r.below(5)];
                operands[3] = Some(r.float(dtype, shape));
            }
            attrs.precision = precision(r);
        }
        Op::Ffn => {
            let (rows, d, h, e) = (r.size(20), r.size(60), r.size(300), r.size(40));
            operands = vec![
                Some(r.float(dtype, &[rows, d])),
                Some(r.float(dtype, &[d, h])),
                r.flag().then(|| r.float(dtype, &[h])),
                Some(r.float(dtype, &[h, e])),
                r.flag().then(|| r.float(dtype, &[e])),
            ];
            attrs.precision = precision(r);
        }
        Op::Embedding => {
            let (rows, width) = (1 + r.size(50), r.size(70));
            let n = r.size(100);
            let ids: Vec<i64> = (0..n).map(|_| r.below(rows) as i64).collect();
            operands = vec![Some(r.float(dtype, &[rows, width])), Some(Tensor::new(&ids, &[ids.len()]).unwrap())];
        }
        Op::Transpose => {
            let rank = r.below(5);
            let dims = r.dims(rank, 35);
            let mut perm: Vec<i32> = (0..rank as i32).collect();
            (1..rank).for_each(|i| perm.swap(i, r.below(i + 1)));
            attrs.perm = Permutation::new(&perm).unwrap();
            operands = vec![Some(r.float(dtype, &dims))];
        }
        Op::Slice => {
            let rank = r.below(5);
            let dims = r.dims(rank, 35);
            let list = |r: &mut Random| -> Vec<i32> {
                (0..r.below(rank + 1)).map(|axis| r.below(2 * dims[axis] + 3) as i32 - dims[axis] as i32 - 1).collect()
            };
            (attrs.start, attrs.stop) = (PerAxis::new(&list(r)).unwrap(), PerAxis::new(&list(r)).unwrap());
            let steps: Vec<i32> = (0..r.below(rank + 1)).map(|_| [1, 1, 2, 5][r.below(4)]).collect();
            attrs.step = PerAxis::new(&steps).unwrap();
            operands = vec![Some(r.float(dtype, &dims))];
        }
        Op::Pad => {
            let rank = r.below(4);
            let dims = r.dims(rank, 35);
            let list = |r: &mut Random| -> Vec<i32> { (0..r.below(rank + 1)).map(|_| r.below(5) as i32).collect() };
            (attrs.start, attrs.stop) = (PerAxis::new(&list(r)).unwrap(), PerAxis::new(&list(r)).unwrap());
            let steps: Vec<i32> = (0..r.below(rank + 1)).map(|_| [1, 1, 2, 3][r.below(4)]).collect();
            attrs.step = PerAxis::new(&steps).unwrap();
            operands = vec![Some(r.float(dtype, &dims)), Some(r.float(dtype, &[]))];
        }
        Op::Gather => {
            let rank = 1 + r.below(3);
            let mut dims: Vec<usize> = r.dims(rank, 30).iter().map(|n| n + 1).collect();
            let axis = r.below(rank);
            attrs.axis = Axis::At(axis as i32 - if r.flag() { rank as i32 } else { 0 });
            operands.push(Some(r.float(dtype, &dims)));
            let n = std::mem::replace(&mut dims[axis], r.size(40));
            let ids: Vec<i64> = (0..dims.iter().product()).map(|_| r.below(n) as i64).collect();
            operands.push(Some(Tensor::new(&ids, &dims).unwrap()));
        }
        Op::Concat => {
            let rank = 1 + r.below(3);
            let dims = r.dims(rank, 30);
            let axis = r.below(rank);
            attrs.axis = Axis::At(axis as i32);
            for _ in 0..1 + r.below(4) {
                let mut dims = dims.clone();
                dims[axis] = r.size(30);
                operands.push(Some(r.float(dtype, &dims)));
            }
        }
        _ => {
            let rank = r.below(3);
            let dims = r.dims(rank, 1100);
            if op == Op::Cast {
                attrs.dtype = Some(DType::ALL[r.below(DType::ALL.len())]);
            }
            if op == Op::Gelu && r.flag() {
                attrs.set(op, "form", "tanh").unwrap();
            }
            attrs.alpha = if op == Op::Scale { -0.7 } else { 1.0 };
            if op == Op::Clamp {
                let bounds = [f32::NEG_INFINITY, -1.0, -0.0, 0.0, 0.25, f32::NAN];
                (attrs.min, attrs.max) = (bounds[r.below(6)], -bounds[r.below(6)]);
            }
            operands = vec![Some(r.float(dtype, &dims))];
        }
    }
    (attrs, operands)
}
