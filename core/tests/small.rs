//! Small products, which take a shorter way: the same bits as the others, and only where nothing but bits is of interest.

use adead_core::contract::Precision;
use adead_core::hal::cpu::Isa;
use adead_core::{Context, ContextOptions, Op, Tensor, interruptible};

fn context(isa: Isa) -> Context {
    Context::with_options("cpu", &ContextOptions { isa: Some(isa), ..ContextOptions::default() }).unwrap()
}

/// Values of every kind: normal ones, zeros, subnormals, infinities and NaN.
fn values(count: usize, seed: u32, special: bool) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        state ^ state >> 16
    };
    let mut value = || match next() % 16 {
        0 if special => f32::from_bits(next()),
        1 => -0.0,
        2 => f32::from_bits(next() & 0x807f_ffff),
        _ => (next() >> 8) as f32 / 8_388_608.0 - 1.0,
    };
    (0..count).map(|_| value()).collect()
}

/// The product by the short way, if it was taken.
fn small(context: &Context, a: &[f32], b: &[f32], [m, n, k]: [usize; 3]) -> Option<Vec<u32>> {
    assert!(a.len() == m * k && b.len() == k * n);
    let mut out = vec![7f32; m * n + 1];
    // SAFETY: the slices have these lengths.
    let done = unsafe { context.multiply_small(a.as_ptr(), b.as_ptr(), out.as_mut_ptr(), [m, n, k]) };
    assert_eq!(out.pop(), Some(7.0), "wrote behind the result");
    assert!(done || out.iter().all(|&x| x == 7.0), "wrote, but refused");
    done.then(|| out.into_iter().map(f32::to_bits).collect())
}

#[test]
fn small_products_have_the_bits_of_the_others() {
    // No instruction set without a fused multiply-add has the short way.
    let plain = context(if cfg!(target_arch = "x86_64") { Isa::Sse2 } else { Isa::Neon });
    let mut taken = 0;
    for isa in Isa::available() {
        let fast = context(isa);
        for i in 0..400u32 {
            let size = [1 + i * 7 % 37, 1 + i * 11 % 41, 1 + i * 13 % 29].map(|size| size as usize);
            let [m, n, k] = size;
            let (a, b) = (values(m * k, i, i % 2 == 0), values(k * n, !i, i % 2 == 0));
            let Some(result) = small(&fast, &a, &b, size) else { continue };
            taken += 1;
            let [of_a, of_b] = [(&a, [m, k]), (&b, [k, n])].map(|(x, dims)| Tensor::new(x, &dims).unwrap());
            let expected = plain.run(Op::Matmul, &Default::default(), &[Some(&of_a), Some(&of_b)]).unwrap();
            let expected: Vec<u32> = expected.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect();
            assert_eq!(result, expected, "{isa:?} {size:?}");
        }
    }
    let sizes = (0..400).filter(|i| (1 + i * 7 % 37) * (1 + i * 11 % 41) * (1 + i * 13 % 29) <= 32 * 32 * 32).count();
    let fused = Isa::available().filter(|isa| matches!(isa, Isa::Avx2 | Isa::Avx512)).count();
    assert_eq!(taken, fused * sizes);
}

#[test]
fn what_is_not_small_or_not_plain_is_left_alone() {
    let Some(isa) = Isa::available().find(|isa| matches!(isa, Isa::Avx2 | Isa::Avx512)) else { return };
    let context = context(isa);
    let x = values(65 * 65, 1, false);
    let size = |m, n, k| small(&context, &x[..m * k], &x[..k * n], [m, n, k]).is_some();
    assert!(size(32, 32, 32) && size(1, 64, 64) && size(64, 8, 64));
    assert!(!size(33, 32, 32) && !size(1, 65, 1) && !size(65, 1, 1) && !size(1, 1, 65));
    assert!(!size(0, 4, 4) && !size(4, 0, 4) && !size(4, 4, 0));
    let (a, mut both) = (&x[..16], values(48, 2, false));
    // SAFETY: the pointers that are not null have 16 values, and what overlaps is only compared.
    let call = |a: *const f32, b: *const f32, out: *mut f32| unsafe { context.multiply_small(a, b, out, [4; 3]) };
    let (low, high) = (both.as_mut_ptr(), both.as_mut_ptr().wrapping_add(15));
    assert!(!call(low, a.as_ptr(), high) && !call(a.as_ptr(), low, high) && !call(high, a.as_ptr(), low));
    let null = std::ptr::null_mut();
    assert!(!call(null, low, high) && !call(low, null, high) && !call(low, low, null));
    assert!(!call(a.as_ptr(), a.as_ptr(), low.cast::<u8>().wrapping_add(1).cast()));
    for size in [[usize::MAX; 3], [usize::MAX, 1, 1], [1, 1, usize::MAX], [1 << 32, 1 << 32, 1]] {
        // SAFETY: sizes that are not small are refused before a pointer is read through.
        assert!(!unsafe { context.multiply_small(a.as_ptr(), a.as_ptr(), low, size) }, "{size:?}");
    }
    assert!(call(a.as_ptr(), a.as_ptr(), low) && call(a.as_ptr(), low, high.wrapping_add(1)));
    let asked = interruptible(&|| false, || size(4, 4, 4));
    assert!(!asked, "a caller who asks to be interrupted is asked");
    context.set_precision(Precision::Fixed24);
    assert!(!size(4, 4, 4));
    context.set_precision(Precision::F32);
    assert!(size(4, 4, 4));
}
