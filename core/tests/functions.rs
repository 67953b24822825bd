//! The functions of the contract: vector forms against scalar forms, and both against double precision.
//!
//! CI tests every 1,021st input. `ADEAD_EXHAUSTIVE=1 cargo test --release -p adead-core --test functions` tests all 2³².

use adead_core::contract::{self, GeluForm};
use adead_core::hal::cpu::Isa;
use adead_core::{Attrs, Context, ContextOptions, Op, OpKind, Tensor, reference};

/// The step between tested inputs: a prime, so that all exponents and low bit patterns occur.
fn step() -> usize {
    if std::env::var_os("ADEAD_EXHAUSTIVE").is_some() { 1 } else { 1021 }
}

/// Inputs in batches.
fn batches() -> impl Iterator<Item = Vec<f32>> {
    let step = step();
    let batch = (1usize << 16) * step;
    (0..1usize << 32).step_by(batch).map(move |start| {
        (start..(start + batch).min(1 << 32)).step_by(step).map(|bits| f32::from_bits(bits as u32)).collect()
    })
}

type Scalar = fn(f32) -> f32;
type Truth<'a> = &'a (dyn Fn(f64) -> f64 + Sync);

#[test]
fn vector_forms_equal_the_scalar_ones() {
    let unary = Op::ALL.iter().filter(|op| op.kind() == OpKind::Unary);
    let mut functions: Vec<_> =
        unary.map(|&op| (op, Attrs { alpha: 0.3, min: -0.0, max: 1.5, ..Attrs::default() })).collect();
    functions.push((Op::Gelu, Attrs { form: GeluForm::Tanh, ..Attrs::default() }));
    let contexts: Vec<_> = Isa::available()
        .map(|isa| {
            Context::with_options("cpu", &ContextOptions { isa: Some(isa), threads: Some(1), precision: None }).unwrap()
        })
        .collect();
    in_parallel(|batch| {
        let x = Tensor::new(&batch, &[batch.len()]).unwrap();
        for (op, attrs) in &functions {
            let expected = reference(*op, attrs, &[Some(x.view())], x.view().meta()).unwrap();
            let expected = expected.chunks_exact(4).map(|bytes| u32::from_ne_bytes(bytes.try_into().unwrap()));
            for ctx in &contexts {
                let y = ctx.run(*op, attrs, &[Some(&x)]).unwrap();
                for (i, (y, expected)) in y.as_slice::<f32>().unwrap().iter().zip(expected.clone()).enumerate() {
                    let isa = &ctx.device_info().arch;
                    assert_eq!(y.to_bits(), expected, "{op} of {:08x} with {isa}", batch[i].to_bits());
                }
            }
        }
    });
    println!("{} instruction sets: equal on every {} input", contexts.len(), step());
}

/// Passes every batch to `check`, on all processors.
fn in_parallel(check: impl Fn(Vec<f32>) + Sync) {
    let batches = std::sync::Mutex::new(batches());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |threads| threads.get()) {
            scope.spawn(|| {
                loop {
                    let next = batches.lock().unwrap().next();
                    let Some(batch) = next else { break };
                    check(batch);
                }
            });
        }
    });
}

/// The error in units in the last place of the true value's binade; 2⁻¹⁴⁹ below the smallest normal number.
fn ulps(ours: f32, truth: f64) -> f64 {
    let exponent = (((truth.to_bits() >> 52) & 0x7ff) as i32 - 1023).max(-126);
    (ours as f64 - truth).abs() / 2f64.powi(exponent - 23)
}

/// erf in double precision: its Maclaurin series, and above 2.5 one minus its continued fraction.
/// (Abramowitz and Stegun, "Handbook of Mathematical Functions", 7.1.6 and 7.1.14.)
fn erf(x: f64) -> f64 {
    let a = x.abs();
    let y = if a < 2.5 {
        let (mut term, mut sum, mut n) = (a, a, 0.0);
        while term > sum * 1e-18 {
            n += 1.0;
            term *= 2.0 * a * a / (2.0 * n + 1.0);
            sum += term;
        }
        sum * (-a * a).exp() * std::f64::consts::FRAC_2_SQRT_PI
    } else if a < 6.5 {
        let fraction = (1..=120).rev().fold(0.0, |f, n| n as f64 / 2.0 / (a + f));
        1.0 - (-a * a).exp() / (a + fraction) * std::f64::consts::FRAC_2_SQRT_PI / 2.0
    } else {
        a.min(1.0)
    };
    y.copysign(x)
}

#[test]
fn errors_are_within_the_stated_bounds() {
    let logistic = |x: f64| if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) };
    // The bounds of docs/contract.md.
    let functions: [(&str, Scalar, Truth<'_>, f64); 9] = [
        ("exp", contract::exp, &f64::exp, 0.90),
        ("log", contract::log, &f64::ln, 0.88),
        ("tanh", contract::tanh, &f64::tanh, 0.96),
        ("erf", contract::erf, &erf, 0.89),
        ("sigmoid", contract::sigmoid, &logistic, 0.81),
        ("sin", contract::sin, &f64::sin, 0.84),
        ("cos", contract::cos, &f64::cos, 0.84),
        ("log1p", contract::log1p, &f64::ln_1p, 0.90),
        ("expm1", contract::expm1, &f64::exp_m1, 1.07),
    ];
    for (name, ours, truth, bound) in functions {
        let worst = std::sync::Mutex::new((0.0, 0.0f32));
        in_parallel(|batch| {
            let found = batch.into_iter().map(|x| (error(name, x, ours, truth), x)).fold((0.0, 0.0), larger);
            let mut worst = worst.lock().unwrap();
            *worst = larger(*worst, found);
        });
        let (worst, at) = worst.into_inner().unwrap();
        println!("{name}: at most {worst:.4} ulp, at {:08x}", at.to_bits());
        assert!(worst <= bound, "{name}: {worst} ulp at {:08x}, the contract says {bound}", at.to_bits());
    }
}

/// Pairs of every kind, and pairs whose power is a moderate number, which is rare among random pairs.
#[test]
fn powers_are_within_the_stated_bound() {
    let contexts: Vec<_> = Isa::available()
        .map(|isa| {
            Context::with_options("cpu", &ContextOptions { isa: Some(isa), threads: Some(1), precision: None }).unwrap()
        })
        .collect();
    let worst = std::sync::Mutex::new(0.0f64);
    in_parallel(|batch| {
        let pairs = batch.iter().enumerate().map(|(i, &x)| {
            let mixed = (x.to_bits().wrapping_mul(0x9e37_79b9) ^ 0x5bd1_e995).rotate_left(13).wrapping_mul(0x85eb_ca6b);
            let near = f32::from_bits(0x3f00_0000 + (x.to_bits() & 0xff_ffff));
            let power = mixed as i32 as f64 / 2f64.powi(31) * 150.0;
            match i % 4 {
                0 => (x, f32::from_bits(mixed)),
                1 => (near, (power / (near as f64).log2()) as f32),
                2 => (x.abs(), (power / (x.abs() as f64).log2()) as f32),
                _ => (x, (mixed as i32 >> 24) as f32),
            }
        });
        let (a, b): (Vec<f32>, Vec<f32>) = pairs.unzip();
        let expected: Vec<f32> = a.iter().zip(&b).map(|(&a, &b)| contract::canonical(contract::pow(a, b))).collect();
        let [x, y] = [&a, &b].map(|values| Tensor::new(values, &[values.len()]).unwrap());
        for ctx in &contexts {
            let vectors = ctx.run(Op::Pow, &Attrs::default(), &[Some(&x), Some(&y)]).unwrap();
            for (i, (ours, expected)) in vectors.as_slice::<f32>().unwrap().iter().zip(&expected).enumerate() {
                let isa = &ctx.device_info().arch;
                assert_eq!(ours.to_bits(), expected.to_bits(), "{:e} to the {:e} with {isa}", a[i], b[i]);
            }
        }
        let mut found = 0.0;
        for ((&x, &y), &ours) in a.iter().zip(&b).zip(&expected) {
            let truth = (x as f64).powf(y as f64);
            if truth.is_nan() {
                assert!(ours.is_nan(), "{x:e} to the {y:e} is {ours:e}");
            } else if truth.abs() >= 3.402823567e38 {
                assert_eq!(ours as f64, f64::INFINITY.copysign(truth), "{x:e} to the {y:e}");
            } else if truth == 0.0 {
                assert_eq!(ours.to_bits(), (truth as f32).to_bits(), "{x:e} to the {y:e}");
            } else {
                found = f64::max(found, ulps(ours, truth));
            }
        }
        let mut worst = worst.lock().unwrap();
        *worst = worst.max(found);
    });
    let worst = worst.into_inner().unwrap();
    println!("pow: at most {worst:.4} ulp");
    assert!(worst <= 0.88, "pow: {worst} ulp, the contract says 0.88");
}

fn larger(a: (f64, f32), b: (f64, f32)) -> (f64, f32) {
    if b.0 > a.0 { b } else { a }
}

/// The error at x. NaN and overflow must be exact.
fn error(name: &str, x: f32, ours: Scalar, truth: Truth<'_>) -> f64 {
    let y = ours(x);
    if contract::is_nan(x) {
        assert!(y.is_nan(), "{name} of NaN {:08x}", x.to_bits());
        return 0.0;
    }
    let t = truth(x as f64);
    if t.is_nan() {
        assert!(y.is_nan(), "{name}({x:e}) is {y:e}, not NaN");
    } else if t.abs() >= 3.402823567e38 {
        assert_eq!(y.abs(), f32::INFINITY, "{name}({x:e})");
    } else {
        return ulps(y, t);
    }
    0.0
}
