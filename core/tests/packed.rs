//! Products with packed matrices: the same bits as without packing, on every instruction set and thread count, and an error where
//! an operand can't be packed.

use adead_core::contract::{Activation, Precision};
use adead_core::hal::cpu::Isa;
use adead_core::{
    Attrs, Command, Context, ContextOptions, DType, Inputs, MatmulOptions, Meta, Op, Packed, Shape, Status, Tensor,
    View, ViewMut, reference,
};

/// A small generator: a failure can be repeated from its seed alone.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 ^ self.0 >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 16
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn flag(&mut self) -> bool {
        self.below(2) == 1
    }

    fn pick(&mut self, sizes: &[usize]) -> usize {
        sizes[self.below(sizes.len())]
    }

    /// Values around 1. A quarter of the tensors have special values too.
    fn tensor(&mut self, dtype: DType, dims: &[usize]) -> Tensor {
        let wild = self.below(4) == 0;
        let values: Vec<f32> = (0..dims.iter().product())
            .map(|_| match (wild, self.below(40)) {
                (true, 0) => [-0.0, f32::INFINITY, f32::NAN, 1e-40, -1e-38, 3e38][self.below(6)],
                _ => self.below(1 << 20) as f32 / (1 << 19) as f32 - 1.0,
            })
            .collect();
        let tensor = Tensor::new(&values, dims).unwrap();
        if dtype == DType::F32 { tensor } else { open(Isa::best(), 1).cast(&tensor, dtype).unwrap() }
    }
}

const FIXED: [Precision; 2] = [Precision::Fixed24, Precision::Fixed16];

fn open(isa: Isa, threads: usize) -> Context {
    Context::with_options("cpu", &ContextOptions { isa: Some(isa), threads: Some(threads), precision: None }).unwrap()
}

/// Every instruction set with one thread and with three.
fn contexts() -> Vec<Context> {
    Isa::available().flat_map(|isa| [1, 3].map(|threads| open(isa, threads))).collect()
}

#[track_caller]
fn fails<T: std::fmt::Debug>(result: adead_core::Result<T>, status: Status, words: &str) {
    let error = result.unwrap_err();
    assert!(error.status() == status && error.message().contains(words), "{error}");
}

/// Checks a product with options in each context, with b packed there.
fn check(contexts: &[Context], a: &Tensor, b: &Tensor, options: MatmulOptions<'_>, expected: &[u8], what: &str) {
    for ctx in contexts {
        ctx.set_precision(options.precision.unwrap_or_default());
        let packed = ctx.pack(b, options.trans_b).unwrap();
        let plain = ctx.matmul_with(a, b, options).unwrap();
        let got = ctx.matmul_packed(a, &packed, MatmulOptions { trans_b: false, ..options }).unwrap();
        assert_eq!(got.dims(), plain.dims(), "{what} on {ctx:?}");
        assert!(plain.bytes() == expected, "{what} on {ctx:?}, without packing");
        assert!(got.bytes() == expected, "{what} on {ctx:?}, packed");
    }
}

#[test]
fn products_of_random_shapes_equal_the_reference_and_the_unpacked() {
    let contexts = contexts();
    for seed in 0..128u64 {
        let mut r = Random(seed);
        let precision =
            [None, Some(Precision::F32), Some(Precision::Fixed24), Some(Precision::Fixed16)][seed as usize % 4];
        let dtype = [DType::F32, DType::F32, DType::F16, DType::BF16][r.below(4)];
        let m = if r.flag() { 1 + r.below(14) } else { 1 + r.below(100) };
        let n = r.pick(&[0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 65, 100]);
        let k = r.pick(&[0, 1, 2, 5, 31, 100, 255, 256, 257, 300, 512, 520, 700]);
        let (trans_a, trans_b) = (r.below(4) == 0, r.flag());
        let lead = [vec![], vec![], vec![1], vec![2], vec![3, 2]][r.below(5)].clone();
        let vector = lead.is_empty() && !trans_a && r.below(8) == 0;
        let (mut a, mut full) = (lead.clone(), lead.clone());
        a.extend(if trans_a { [k, m] } else { [m, k] });
        full.extend([m, n]);
        if vector {
            (a, full) = (vec![k], vec![n]);
        }
        let a = r.tensor(dtype, &a);
        let b = r.tensor(dtype, &if trans_b { [n, k] } else { [k, n] });
        let c = [full.clone(), vec![n], vec![]][r.below(3)].clone();
        let c = r.flag().then(|| r.tensor(dtype, &c));
        let bias = r.flag().then(|| r.tensor(dtype, &[n]));
        let options = MatmulOptions {
            trans_a,
            trans_b,
            alpha: if r.flag() { 1.0 } else { -0.75 },
            beta: if c.is_some() { 1.5 } else { 0.0 },
            c: c.as_ref(),
            bias: bias.as_ref(),
            activation: Activation::ALL[r.below(Activation::ALL.len())],
            precision,
        };
        let MatmulOptions { alpha, beta, activation, .. } = options;
        let activation = Some(activation);
        let attrs = Attrs { trans_a, trans_b, alpha, beta, activation, precision, ..Attrs::default() };
        let views: Inputs<'_> =
            [Some(&a), Some(&b), c.as_ref(), bias.as_ref()].iter().map(|t| t.map(Tensor::view)).collect();
        let meta = Op::Matmul.info().infer(&attrs, &views).unwrap();
        let expected = reference(Op::Matmul, &attrs, &views, &meta).unwrap();
        check(&contexts, &a, &b, options, &expected, &format!("seed {seed}: {a:?} by {b:?}, {attrs:?}"));
    }
}

/// More than one block of columns and of rows, many panels, and enough rows for A to be packed.
#[test]
fn large_products_equal_the_unpacked() {
    let mut contexts = contexts();
    // The portable form is scalar code with an emulated multiply-add. The random calls above cover it.
    contexts.retain(|ctx| ctx.device_info().arch != "portable");
    let shapes = [(1, 2100, 600), (2, 1500, 770), (12, 1025, 1024), (50, 700, 513), (420, 130, 300), (2100, 40, 257)];
    for (i, (m, n, k)) in shapes.into_iter().enumerate() {
        let mut r = Random(1000 + i as u64);
        for (trans_b, precision) in
            [(false, None), (true, None), (i % 2 == 0, Some(FIXED[i % 2])), (true, Some(FIXED[i / 2 % 2]))]
        {
            let a = r.tensor(DType::F32, &[m, k]);
            let b = r.tensor(DType::F32, &if trans_b { [n, k] } else { [k, n] });
            let bias = r.tensor(DType::F32, &[n]);
            let options = MatmulOptions { trans_b, bias: Some(&bias), precision, ..MatmulOptions::default() };
            contexts[0].set_precision(precision.unwrap_or_default());
            let expected = contexts[0].matmul_with(&a, &b, options).unwrap();
            check(
                &contexts,
                &a,
                &b,
                options,
                expected.bytes(),
                &format!("{m}x{k}x{n}, trans_b {trans_b}, {precision:?}"),
            );
        }
    }
}

#[test]
fn what_a_packed_matrix_says() {
    for isa in Isa::available() {
        let width = match isa {
            Isa::Avx512 => 32,
            Isa::Avx2 => 16,
            Isa::Sse2 | Isa::Portable | Isa::Neon => 8,
        };
        let ctx = open(isa, 1);
        for (k, n) in [(300, 33), (256, 32), (1, 1), (0, 5), (5, 0), (0, 0)] {
            let mut r = Random(7);
            let b = r.tensor(DType::BF16, &[k, n]);
            let packed = ctx.pack(&b, false).unwrap();
            assert_eq!((packed.shape().dims(), packed.dtype()), (&[k, n][..], DType::BF16));
            // Only existing rows are stored.
            assert_eq!(packed.bytes(), 4 * k * usize::next_multiple_of(n, width));
            let turned = ctx.pack(&r.tensor(DType::F32, &[n, k]), true).unwrap();
            assert_eq!((turned.shape().dims(), turned.dtype()), (&[k, n][..], DType::F32));
            assert_eq!(turned.bytes(), packed.bytes());
        }
    }
}

#[test]
fn packing_refuses_what_is_no_matrix_of_floats() {
    let ctx = open(Isa::best(), 1);
    let zeros = |dtype, dims: &[usize]| Tensor::zeros(dtype, dims).unwrap();
    fails(ctx.pack(&zeros(DType::F32, &[4]), false), Status::ShapeMismatch, "[4], of rank 1");
    fails(ctx.pack(&zeros(DType::F16, &[2, 3, 4]), true), Status::ShapeMismatch, "[2, 3, 4], of rank 3");
    fails(ctx.pack(&zeros(DType::I64, &[2, 3]), false), Status::DtypeMismatch, "b is i64");
    // A shape at the limit of sizes.
    let empty = zeros(DType::F32, &[0, 1 << 40]);
    assert_eq!(ctx.pack(&empty, false).unwrap().bytes(), 0);
}

#[test]
fn products_refuse_what_does_not_fit() {
    let ctx = open(Isa::best(), 1);
    let zeros = |dtype, dims: &[usize]| Tensor::zeros(dtype, dims).unwrap();
    let packed = ctx.pack(&zeros(DType::F32, &[3, 4]), false).unwrap();
    let plain = MatmulOptions::default;
    fails(
        ctx.matmul_packed(&zeros(DType::F32, &[2, 4]), &packed, plain()),
        Status::ShapeMismatch,
        "A's columns (4) must equal B's rows (3)",
    );
    fails(
        ctx.matmul_packed(&zeros(DType::F16, &[2, 3]), &packed, plain()),
        Status::DtypeMismatch,
        "operands are f16 and f32",
    );
    let a = zeros(DType::F32, &[2, 3]);
    let turned = MatmulOptions { trans_b: true, ..plain() };
    fails(ctx.matmul_packed(&a, &packed, turned), Status::InvalidArgument, "trans_b must be 0");
    let square = ctx.pack(&zeros(DType::F32, &[3, 3]), false).unwrap();
    fails(ctx.matmul_packed(&a, &square, turned), Status::InvalidArgument, "trans_b must be 0");
    let bias = zeros(DType::F32, &[3]);
    let biased = MatmulOptions { bias: Some(&bias), ..plain() };
    fails(ctx.matmul_packed(&a, &packed, biased), Status::ShapeMismatch, "bias is [3]; it must be [4]");
    // A matrix packed for another instruction set.
    for (of, on) in Isa::available().flat_map(|of| Isa::available().map(move |on| (of, on))) {
        let packed = open(of, 1).pack(&zeros(DType::F32, &[3, 4]), false).unwrap();
        let got = open(on, 1).matmul_packed(&a, &packed, plain());
        match of == on {
            true => assert_eq!(got.unwrap().dims(), [2, 4]),
            false => {
                fails(got, Status::InvalidArgument, &format!("packed for {} and is used on {}", of.name(), on.name()))
            }
        }
    }
}

/// Tries a packed matrix as every operand of every operation except matmul's b, through checked commands and through calls that
/// allocate their results.
#[test]
fn nothing_but_b_of_matmul_may_be_packed() {
    let ctx = open(Isa::best(), 1);
    let tensor = Tensor::new(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap();
    let vector = tensor.reshape(&[4]).unwrap();
    let packed: Packed = ctx.pack(&tensor, false).unwrap();
    let mut refused = 0;
    for &op in Op::ALL {
        let names = op.info().operands;
        for i in 0..names.len() {
            if (op, i) == (Op::Matmul, 1) {
                continue;
            }
            let mut inputs: Vec<Option<View<'_>>> = names.iter().map(|_| Some(tensor.view())).collect();
            if op == Op::Dot || op == Op::Ffn || op == Op::Layernorm || op == Op::Rmsnorm {
                inputs.iter_mut().for_each(|input| *input = Some(vector.view()));
            }
            inputs[i] = Some(View::packed(&packed));
            let mut attrs = Attrs::default();
            attrs.beta = if op == Op::Matmul { 1.0 } else { attrs.beta };
            let meta = match op.info().infer(&attrs, &inputs) {
                Ok(meta) => meta,
                Err(error) => {
                    // Shapes or dtypes don't fit anyway, so nothing was executed.
                    assert_ne!(error.status(), Status::Internal, "{op} {i}");
                    continue;
                }
            };
            let mut memory = vec![7u64; meta.bytes().div_ceil(8)];
            let mut output = || {
                // SAFETY: the vector has at least this many bytes, is aligned for every dtype, and nothing else uses it
                // meanwhile.
                unsafe { ViewMut::from_raw(std::ptr::NonNull::from(&mut memory[..]).cast(), &meta) }
            };
            let words = format!("{op}: operand {i} is a packed matrix");
            fails(Command::new(op, attrs, &inputs, output()).map(|_| ()), Status::InvalidArgument, &words);
            fails(ctx.run_views(op, &attrs, &inputs), Status::InvalidArgument, "packed matrix: only matmul's b");
            assert!(memory.iter().all(|&word| word == 7), "{op}: operand {i} changed the output");
            fails(reference(op, &attrs, &inputs, &meta), Status::InvalidArgument, "packed matrix");
            refused += 1;
        }
    }
    assert!(refused > 20, "only {refused} operands were tried");
    // The host can't read a packed matrix either.
    fails(View::packed(&packed).host(), Status::InvalidArgument, "packed matrix");
}

/// The path of bindings: a checked command that writes into the caller's memory.
#[test]
fn a_command_takes_a_packed_b() {
    let ctx = open(Isa::best(), 1);
    let mut r = Random(3);
    let (a, b) = (r.tensor(DType::F32, &[5, 40]), r.tensor(DType::F32, &[40, 9]));
    let packed = ctx.pack(&b, false).unwrap();
    let meta = Meta::new(DType::F32, Shape::new(&[5, 9]).unwrap());
    let mut values = vec![0.0f32; 45];
    let inputs = [Some(a.view()), Some(View::packed(&packed))];
    let output = ViewMut::f32(&mut values, &meta).unwrap();
    ctx.execute(&mut Command::new(Op::Matmul, Attrs::default(), &inputs, output).unwrap()).unwrap();
    let expected = ctx.matmul(&a, &b).unwrap().to_vec::<f32>().unwrap();
    assert!(values.iter().zip(&expected).all(|(got, expected)| got.to_bits() == expected.to_bits()));
}

#[test]
fn threads_share_a_packed_matrix() {
    let ctx = open(Isa::best(), 3);
    let mut r = Random(11);
    let (a, b) = (r.tensor(DType::F32, &[9, 700]), r.tensor(DType::F32, &[700, 130]));
    let expected = ctx.matmul(&a, &b).unwrap();
    let packed = ctx.pack(&b, false).unwrap();
    drop(b);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let got = ctx.matmul_packed(&a, &packed, MatmulOptions::default()).unwrap();
                    assert!(got.bytes() == expected.bytes());
                }
            });
        }
    });
}
