//! Every kernel against the scalar reference, on random shapes, for every instruction set and several thread counts, with NaN,
//! infinities, subnormals and −0 mixed in.

mod draws;

use adead_core::hal::cpu::Isa;
use adead_core::program::{Program, RunOptions};
use adead_core::{
    Attrs, Axis, Command, Context, ContextOptions, DType, Op, Permutation, Tensor, View, ViewMut, reference,
};
use draws::{Random, draw, plain};
use std::ptr::NonNull;

fn contexts() -> Vec<Context> {
    let mut contexts = Vec::new();
    for isa in Isa::available() {
        for threads in [1, 2, 3, 7] {
            let options = ContextOptions { isa: Some(isa), threads: Some(threads), precision: None };
            contexts.push(Context::with_options("cpu", &options).unwrap());
        }
    }
    contexts
}

#[test]
fn every_operation_equals_its_reference_on_random_calls() {
    let contexts = contexts();
    for &op in Op::ALL {
        for seed in 0..48u64 {
            let mut r = Random(seed << 8 | op as u64);
            let dtype = [DType::F32, DType::F32, DType::F16, DType::BF16][r.below(4)];
            let (attrs, operands) = draw(op, dtype, &mut r);
            let views: Vec<Option<View<'_>>> = operands.iter().map(|t| t.as_ref().map(Tensor::view)).collect();
            let meta = op.info().infer(&attrs, &views).unwrap_or_else(|error| panic!("{op} seed {seed}: {error}"));
            let expected = reference(op, &attrs, &views, &meta).unwrap();
            let operands: Vec<_> = operands.iter().map(Option::as_ref).collect();
            for ctx in &contexts {
                let got = ctx.run(op, &attrs, &operands).unwrap();
                let at = got.bytes().iter().zip(&expected).position(|(a, b)| a != b);
                assert!(
                    got.bytes().len() == expected.len() && at.is_none(),
                    "{op} seed {seed} {dtype} {attrs:?} {operands:?} on {ctx:?}: byte {at:?} of {meta:?}"
                );
            }
        }
    }
}

/// M arithmetic rounds before it tests for a tiny result. Some processors test first.
#[test]
fn sums_that_round_up_to_the_smallest_normal_number_are_kept() {
    let mut r = Random(126);
    let least = f32::MIN_POSITIVE;
    // Products lie within a few units in the last place of ±2⁻¹²⁶, so sums cancel to about that, or to nothing.
    let mut draw = |dims: &[usize]| {
        let values: Vec<f32> = (0..dims.iter().product())
            .map(|_| {
                let near = 1.0 + (r.below(3) as f32 - 1.0) * 2f32.powi(-13);
                let sign = [1.0, -1.0, 0.0][r.below(3)];
                sign * near * 2f32.powi(-63)
            })
            .collect();
        Tensor::new(&values, dims).unwrap()
    };
    let contexts = contexts();
    let mut kept = 0;
    for (m, n, k) in [(1, 1, 2), (3, 70, 5), (1, 40, 300), (20, 40, 1), (30, 70, 9), (13, 33, 600)] {
        let (a, b) = (draw(&[m, k]), draw(&[k, n]));
        let mut pairs = vec![(Op::Matmul, a, b)];
        pairs.extend((0..20).map(|_| (Op::Dot, draw(&[k]), draw(&[k]))));
        for (op, a, b) in &pairs {
            let (attrs, views) = (Attrs::default(), [Some(a.view()), Some(b.view())]);
            let expected = reference(*op, &attrs, &views, &op.info().infer(&attrs, &views).unwrap()).unwrap();
            let exactly_least = |bytes: &&[u8]| f32::from_le_bytes((**bytes).try_into().unwrap()).abs() == least;
            kept += expected.chunks_exact(4).filter(exactly_least).count();
            for ctx in &contexts {
                let got = ctx.run(*op, &attrs, &[Some(a), Some(b)]).unwrap();
                assert!(got.bytes() == expected, "{op} {m}×{n}×{k} on {ctx:?}");
            }
        }
    }
    assert!(kept > 300, "only {kept} results are 2⁻¹²⁶");
}

#[test]
fn large_calls_are_the_same_for_every_thread_count() {
    let contexts = contexts();
    let mut r = Random(77);
    let a = r.float(DType::F32, &[300, 700]);
    let b = r.float(DType::F32, &[700, 500]);
    let long = r.float(DType::F32, &[1_500_000]);
    type Call<'a> = (&'a str, Box<dyn Fn(&Context) -> Tensor + 'a>);
    let calls: Vec<Call<'_>> = vec![
        ("matmul", Box::new(|ctx| ctx.matmul(&a, &b).unwrap())),
        ("transpose", Box::new(|ctx| ctx.transpose(&b).unwrap())),
        ("sum", Box::new(|ctx| ctx.sum(&long, Axis::All, false).unwrap())),
        ("max", Box::new(|ctx| ctx.max(&long, Axis::All, false).unwrap())),
        ("tanh", Box::new(|ctx| ctx.tanh(&long).unwrap())),
        ("relu", Box::new(|ctx| ctx.relu(&long).unwrap())),
        ("add", Box::new(|ctx| ctx.add(&long, &long).unwrap())),
        ("sigmoid", Box::new(|ctx| ctx.sigmoid(&long).unwrap())),
        ("softmax of rows", Box::new(|ctx| ctx.softmax(&b, -1).unwrap())),
        ("layernorm", Box::new(|ctx| ctx.layernorm(&b, None, None, 1e-5).unwrap())),
        ("columns", Box::new(|ctx| ctx.sum(&b, Axis::At(0), false).unwrap())),
        ("softmax", Box::new(|ctx| ctx.softmax(&b, 0).unwrap())),
    ];
    // The portable form is scalar code with an emulated multiply-add. The random calls above cover it.
    let fast: Vec<_> = contexts.iter().filter(|ctx| ctx.device_info().arch != "portable").collect();
    for (name, call) in &calls {
        let expected = call(fast[0]);
        for ctx in &fast {
            assert!(call(ctx).bytes() == expected.bytes(), "{name} on {ctx:?}");
        }
    }
}

/// Compares every context with the reference.
fn assert_equals_reference(contexts: &[Context], op: Op, attrs: &Attrs, operand: &Tensor) {
    let views = [Some(operand.view())];
    let meta = op.info().infer(attrs, &views).unwrap();
    let expected = reference(op, attrs, &views, &meta).unwrap();
    for ctx in contexts {
        let got = ctx.run(op, attrs, &[Some(operand)]).unwrap();
        let at = got.bytes().iter().zip(&expected).position(|(a, b)| a != b);
        assert!(
            got.bytes().len() == expected.len() && at.is_none(),
            "{op} {attrs:?} of {operand:?} on {ctx:?}: byte {at:?}"
        );
    }
}

/// Functions whose kernels process blocks in several steps. Lengths are near the blocks; values lie on one side of the point
/// where a function changes its polynomial, on the other, or on both, with NaN among them.
#[test]
fn functions_are_the_same_at_every_length_and_for_every_mixture_of_sides() {
    let contexts = contexts();
    let mut r = Random(11);
    let gelu_tanh = Attrs { form: adead_core::contract::GeluForm::Tanh, ..Attrs::default() };
    for n in [1, 15, 16, 17, 63, 64, 65, 127, 255, 256, 257, 320, 1023, 1024, 1025, 1088, 2100] {
        for (least, most) in [(0.0, 0.5), (2.0, 90.0), (0.0, 3.0), (80.0, 110.0)] {
            let mut values: Vec<f32> = (0..n)
                .map(|_| {
                    let bits = r.next();
                    let x = least + (most - least) * ((bits >> 40) as f32 / 16_777_216.0);
                    if bits & 1 == 1 { -x } else { x }
                })
                .collect();
            if r.flag() {
                values[r.below(n)] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e-40][r.below(5)];
            }
            let x = Tensor::new(&values, &[n]).unwrap();
            for op in [Op::Tanh, Op::Gelu, Op::Sigmoid, Op::Silu, Op::Exp, Op::Log, Op::Relu] {
                assert_equals_reference(&contexts, op, &Attrs::default(), &x);
            }
            assert_equals_reference(&contexts, Op::Gelu, &gelu_tanh, &x);
        }
    }
}

/// Rows whose weights are too small to compute a quotient without dividing, whose sums have extreme mantissas, or which hold
/// infinities and NaN.
#[test]
fn softmax_divides_correctly_in_every_range() {
    let contexts = contexts();
    let mut r = Random(12);
    for n in [1, 2, 15, 33, 64, 100, 1000, 1024, 1025, 2500] {
        for spread in [0.0, 1e-6, 1.0, 54.9, 55.0, 55.1, 80.0, 100.0, 110.0, 1e30] {
            let rows: Vec<f32> = (0..3 * n)
                .map(|i| {
                    let x = -spread * ((r.next() >> 40) as f32 / 16_777_216.0);
                    if i % n == n / 2 {
                        -spread
                    } else if i % n == n / 3 {
                        0.0
                    } else {
                        x
                    }
                })
                .collect();
            let mut wild = rows.clone();
            wild[r.below(n)] = f32::NEG_INFINITY;
            wild[n + r.below(n)] = f32::NAN;
            wild[2 * n + r.below(n)] = f32::INFINITY;
            for values in [rows, wild] {
                assert_equals_reference(
                    &contexts,
                    Op::Softmax,
                    &Attrs::default(),
                    &Tensor::new(&values, &[3, n]).unwrap(),
                );
            }
        }
    }
    // One weight of 1 and one of e^x: sums on both sides of powers of two, with mantissas of all ones and all zeros.
    for k in 0..400 {
        let x = f32::from_bits(0xb300_0000u32.wrapping_add(k * 40_503));
        assert_equals_reference(&contexts, Op::Softmax, &Attrs::default(), &Tensor::new(&[0.0, x], &[1, 2]).unwrap());
    }
}

/// Squares of vectors, the remainders around them, and elements of every size.
#[test]
fn transposes_of_every_shape() {
    let contexts = contexts();
    let mut r = Random(13);
    let shapes: [(&[usize], &[i32]); 12] = [
        (&[64, 64], &[1, 0]),
        (&[16, 16], &[1, 0]),
        (&[15, 17], &[1, 0]),
        (&[17, 16], &[1, 0]),
        (&[128, 33], &[1, 0]),
        (&[70, 1000], &[1, 0]),
        (&[1000, 70], &[1, 0]),
        (&[3, 40, 50], &[0, 2, 1]),
        (&[3, 40, 50], &[2, 1, 0]),
        (&[40, 3, 70], &[2, 0, 1]),
        (&[2, 33, 5, 20], &[3, 1, 0, 2]),
        (&[2, 33, 5, 20], &[0, 3, 2, 1]),
    ];
    for (dims, perm) in shapes {
        let attrs = Attrs { perm: Permutation::new(perm).unwrap(), ..Attrs::default() };
        let n: usize = dims.iter().product();
        let wide: Vec<i64> = (0..n).map(|_| r.next() as i64).collect();
        let x = Tensor::new(&wide, dims).unwrap();
        assert_equals_reference(&contexts, Op::Transpose, &attrs, &x);
        for dtype in [DType::F32, DType::I32, DType::F16] {
            assert_equals_reference(&contexts, Op::Transpose, &attrs, &plain().cast(&x, dtype).unwrap());
        }
    }
}

/// FTZ, DAZ, round towards +∞, all exceptions masked.
#[cfg(target_arch = "x86_64")]
const ODD_MODE: u32 = 0x1f80 | 0x8040 | 0x4000;

/// Sets the floating-point mode. Returns the previous one without the sticky flags.
#[cfg(target_arch = "x86_64")]
fn set_mode(mode: u32) -> u32 {
    let mut before = 0u32;
    // SAFETY: stores the mode into `before`, then loads a valid one.
    unsafe { std::arch::asm!("stmxcsr [{}]", "ldmxcsr [{}]", in(reg) &mut before, in(reg) &mode) };
    before & !0x3f
}

/// DN, FZ, round towards +∞.
#[cfg(target_arch = "aarch64")]
const ODD_MODE: u64 = 1 << 25 | 1 << 24 | 1 << 22;

/// Sets the floating-point mode. Returns the previous one.
#[cfg(target_arch = "aarch64")]
fn set_mode(mode: u64) -> u64 {
    let before;
    // SAFETY: reads the mode, then sets a valid one.
    unsafe { std::arch::asm!("mrs {}, fpcr", "msr fpcr, {}", out(reg) before, in(reg) mode) };
    before
}

/// A host that flushes subnormals and rounds upwards gets the contract's bits, and its own mode back.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[test]
fn the_host_s_floating_point_mode_neither_matters_nor_changes() {
    let mut r = Random(5);
    let x = r.float(DType::F32, &[64, 64]);
    let tiny = Tensor::new(&vec![1e-39f32; 100], &[100]).unwrap();
    let ctx = Context::with_options("cpu", &ContextOptions { isa: None, threads: Some(3), precision: None }).unwrap();
    let work = || {
        let parts = [
            ctx.add(&tiny, &tiny).unwrap(),
            ctx.matmul(&x, &x).unwrap(),
            ctx.softmax(&x, -1).unwrap(),
            ctx.div(&x, &x).unwrap(),
        ];
        parts.map(|part| part.bytes().to_vec())
    };
    let expected = work();
    let usual = set_mode(ODD_MODE);
    let got = work();
    let mut attrs = Attrs::default();
    attrs.set(Op::Scale, "alpha", "0.7").unwrap();
    let program = Program::assemble(".adead 1\nconst c f32[1] = 0.7\noutput y f32[1]\ny = neg c\n").unwrap();
    assert_eq!(set_mode(usual), ODD_MODE, "the host's mode is back");
    assert!(got == expected);
    assert_eq!(attrs.alpha.to_bits(), 0x3f33_3333, "decimals in attributes");
    let outcome = program.run(&ctx, &RunOptions::new()).unwrap();
    assert_eq!(outcome.output("y").unwrap().to_vec::<f32>().unwrap()[0].to_bits(), 0xbf33_3333, "in programs");
}

/// The axes of a reduction form one line in row-major order, in whatever order they are given.
#[test]
fn several_axes_are_reduced_as_one_line() {
    let (ctx, mut r) = (plain(), Random(9));
    let x = r.float(DType::F32, &[40, 3, 50]);
    let line = ctx.permute(&x, &[1, 0, 2]).unwrap().reshape(&[3, 2000]).unwrap();
    for op in [Op::Sum, Op::Mean, Op::Max, Op::Min, Op::Prod] {
        let expected = ctx.run(op, &Attrs { axis: Axis::At(1), ..Attrs::default() }, &[Some(&line)]).unwrap();
        for axes in [[0, 2], [2, 0], [-1, -3]] {
            assert_eq!(ctx.reduce(op, &x, &axes, false).unwrap().bytes(), expected.bytes(), "{op} {axes:?}");
        }
        assert_eq!(ctx.reduce(op, &x, &[0, 2], true).unwrap().dims(), [1, 3, 1]);
    }
    for (op, axes, why) in [
        (Op::Argmax, &[0, 1][..], "argmax does not reduce along several axes"),
        (Op::Neg, &[0], "neg does not reduce along several axes"),
        (Op::Sum, &[0, 3], "axis 3 is out of range for [40, 3, 50]"),
        (Op::Sum, &[0, -3], "name axis 0 of [40, 3, 50] twice"),
        (Op::Sum, &[], "axes is empty"),
    ] {
        let error = ctx.reduce(op, &x, axes, false).unwrap_err();
        assert!(error.message().contains(why), "{error}");
    }
}

/// Slices of one axis follow Python. Positions outside are refused or clamped.
#[test]
fn slices_pads_and_gathers() {
    let ctx = plain();
    let x = Tensor::new(&[0i64, 1, 2, 3, 4, 5, 6, 7], &[2, 4]).unwrap();
    let of =
        |start: &[i32], stop: &[i32], step: &[i32]| ctx.slice(&x, start, stop, step).unwrap().to_vec::<i64>().unwrap();
    assert_eq!(of(&[1], &[], &[]), [4, 5, 6, 7]);
    assert_eq!(of(&[0, -3], &[2, -1], &[]), [1, 2, 5, 6]);
    assert_eq!(of(&[], &[1, 100], &[1, 3]), [0, 3]);
    assert_eq!(of(&[0, 3], &[2, 1], &[]), []);
    let refused = ctx.slice(&x, &[], &[], &[0]).unwrap_err();
    assert!(refused.message().contains("the step of axis 0 is 0; it must be at least 1"), "{refused}");
    let value = Tensor::new(&[-9i64], &[1]).unwrap();
    let padded = ctx.pad(&x, &value, &[0, 1], &[1], &[]).unwrap();
    assert_eq!(padded.to_vec::<i64>().unwrap(), [-9, 0, 1, 2, 3, -9, 4, 5, 6, 7, -9, -9, -9, -9, -9]);
    let refused = ctx.pad(&x, &value, &[-1], &[], &[]).unwrap_err();
    assert!(refused.message().contains("before has -1"), "{refused}");
    let apart = ctx.pad(&x, &value, &[], &[], &[1, 2]).unwrap();
    assert_eq!(apart.to_vec::<i64>().unwrap(), [0, -9, 1, -9, 2, -9, 3, 4, -9, 5, -9, 6, -9, 7]);
    let refused = ctx.pad(&x, &value, &[], &[], &[1, 0]).unwrap_err();
    assert!(refused.message().contains("step has 0; it must be at least 1"), "{refused}");
    let refused = ctx.pad(&x, &value, &[i32::MAX], &[], &[i32::MAX, i32::MAX]).unwrap_err();
    assert_eq!(refused.status(), adead_core::Status::InvalidArgument, "{refused}");
    let ids = Tensor::new(&[3i32, 0], &[2, 1]).unwrap();
    assert_eq!(ctx.gather(&x, &ids, -1).unwrap().to_vec::<i64>().unwrap(), [3, 4]);
    let ids = Tensor::new(&[3i32, 4], &[2, 1]).unwrap();
    let refused = ctx.gather(&x, &ids, 1).unwrap_err();
    assert!(refused.message().contains("id 4 at position 1 is outside the axis of 4 elements"), "{refused}");
}

/// A norm of a sum may be written over any of its operands: the sum is not put where a vector is still to be read.
#[test]
fn a_norm_of_a_sum_works_in_place() {
    let mut r = Random(12);
    let operands: Vec<Tensor> = (0..4).map(|_| r.float(DType::F32, &[1500])).collect();
    let (all, meta) = (operands.iter().map(Some).collect::<Vec<_>>(), *operands[0].view().meta());
    for ctx in contexts() {
        let expected = ctx.run(Op::Layernorm, &Attrs::default(), &all).unwrap();
        for place in 0..operands.len() {
            let mut memory = operands[place].to_vec::<f32>().unwrap();
            let there = NonNull::from(&mut memory[..]).cast();
            let mut inputs: Vec<_> = operands.iter().map(|operand| Some(operand.view())).collect();
            // SAFETY: the memory holds as many values, and only the command touches it, which works in place.
            let output = unsafe {
                inputs[place] = Some(View::from_raw(there, &meta));
                ViewMut::from_raw(there, &meta)
            };
            ctx.execute(&mut Command::new(Op::Layernorm, Attrs::default(), &inputs, output).unwrap()).unwrap();
            let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(memory), bits(expected.to_vec().unwrap()), "over operand {place} on {ctx:?}");
        }
    }
}
