//! The precision of a context: what it means for products that don't say theirs, on every road that an operation takes.

mod backend;

use adead_core::contract::Precision;
use adead_core::program::{Program, RunOptions};
use adead_core::{Attrs, Command, Context, MatmulOptions, Op, Tensor, ViewMut};

/// The CPU, and the GPU that `ADEAD_TEST_BACKEND` names.
fn contexts() -> Vec<Context> {
    let backend = backend::named();
    let gpu = backend.map(|backend| Context::open(&format!("{backend}:0")).unwrap());
    [Context::open("cpu").unwrap()].into_iter().chain(gpu).collect()
}

fn draw(seed: u32, dims: &[usize]) -> Tensor {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let values: Vec<f32> = (0..dims.iter().product()).map(|_| next()).collect();
    Tensor::new(&values, dims).unwrap()
}

/// x, w, w2 and what products of each precision give of x and w.
fn operands() -> ([Tensor; 3], [Tensor; 3]) {
    let (x, w, w2) = (draw(1, &[5, 70]), draw(2, &[70, 9]), draw(3, &[9, 4]));
    let plain = Context::open("cpu").unwrap();
    let product = |precision| {
        let options = MatmulOptions { precision: Some(precision), ..MatmulOptions::default() };
        plain.matmul_with(&x, &w, options).unwrap()
    };
    let products = Precision::ALL.map(product);
    assert!(products[0].bytes() != products[1].bytes() && products[1].bytes() != products[2].bytes());
    ([x, w, w2], products)
}

#[test]
fn calls_have_it_where_they_say_none() {
    let ([x, w, w2], expected) = operands();
    for context in contexts() {
        assert_eq!(context.precision(), Precision::F32);
        let clone = context.clone();
        for (precision, expected_now) in Precision::ALL.into_iter().zip(&expected) {
            clone.set_precision(precision);
            assert_eq!(context.precision(), precision);
            let got = context.matmul(&x, &w).unwrap();
            assert!(got.bytes() == expected_now.bytes(), "{context:?}");
            // What a call says is what it gets.
            for (said, expected) in Precision::ALL.into_iter().zip(&expected) {
                let options = MatmulOptions { precision: Some(said), ..MatmulOptions::default() };
                assert!(
                    context.matmul_with(&x, &w, options).unwrap().bytes() == expected.bytes(),
                    "{context:?} {said:?}"
                );
            }
            let both = |precision| {
                let attrs = Attrs { precision, ..Attrs::default() };
                context.run(Op::Ffn, &attrs, &[Some(&x), Some(&w), None, Some(&w2)]).unwrap()
            };
            assert!(both(None).bytes() == both(Some(precision)).bytes(), "{context:?}");
            assert_eq!(format!("{context:?}").contains("products in"), precision != Precision::F32);
            // Operations without products don't see it.
            assert!(
                context.add(&x, &x).is_ok()
                    && context.explain(Op::Matmul, &Attrs::default(), &[Some(&x), Some(&w)]).is_ok()
            );
        }
    }
}

#[test]
fn a_context_with_its_own_changes_no_other() {
    let ([x, w, w2], expected) = operands();
    for context in contexts() {
        let own = Precision::ALL.map(|precision| context.with_precision(precision));
        for (at, (own, expected)) in own.iter().zip(&expected).enumerate() {
            assert_eq!((own.precision(), context.precision()), (Precision::ALL[at], Precision::F32), "{context:?}");
            assert!(own.matmul(&x, &w).unwrap().bytes() == expected.bytes(), "{own:?}");
            // The same pipeline of each, all of which share one cache.
            let chained = own.pipeline().matmul(&x, &w).matmul(&w2).execute().unwrap();
            let apart = own.matmul(&own.matmul(&x, &w).unwrap(), &w2).unwrap();
            assert!(chained.bytes() == apart.bytes(), "{own:?}");
            let profiles = [own, &context].map(|context| context.dispatcher().profiles().len());
            assert_eq!(profiles[0], profiles[1]);
        }
        own[1].set_precision(Precision::Fixed16);
        assert_eq!(own.each_ref().map(Context::precision), [Precision::F32, Precision::Fixed16, Precision::Fixed16]);
        assert_eq!(context.precision(), Precision::F32);
        context.set_precision(Precision::Fixed24);
        assert_eq!(own[0].precision(), Precision::F32);
        context.set_precision(Precision::F32);
    }
}

#[test]
fn commands_have_it() {
    let ([x, w, _], expected) = operands();
    let context = Context::open("cpu").unwrap();
    for (precision, expected) in Precision::ALL.into_iter().zip(&expected) {
        context.set_precision(precision);
        let mut out = [0.0f32; 45];
        let (inputs, meta) = ([Some(x.view()), Some(w.view())], *expected.view().meta());
        let output = ViewMut::f32(&mut out, &meta).unwrap();
        let mut command = Command::new(Op::Matmul, Attrs::default(), &inputs, output).unwrap();
        context.execute(&mut command).unwrap();
        assert!(out.iter().flat_map(|x| x.to_le_bytes()).eq(expected.bytes().iter().copied()), "{precision:?}");
    }
}

#[test]
fn what_is_packed_stays_as_it_was_packed() {
    let ([x, w, _], expected) = operands();
    let context = Context::open("cpu").unwrap();
    let packed = Precision::ALL.map(|precision| {
        context.set_precision(precision);
        context.pack(&w, false).unwrap()
    });
    for ((packed, expected), own) in packed.iter().zip(&expected).zip(Precision::ALL) {
        assert_eq!(packed.precision(), own);
        for said in [None].into_iter().chain(Precision::ALL.map(Some)) {
            let options = MatmulOptions { precision: said, ..MatmulOptions::default() };
            let got = context.matmul_packed(&x, packed, options);
            if said.is_none_or(|said| said == own) {
                assert!(got.unwrap().bytes() == expected.bytes(), "{packed:?} {said:?}");
            } else {
                let error = got.unwrap_err().to_string();
                assert!(error.contains(&format!("b is packed for products in {}", own.name())), "{error}");
            }
        }
    }
}

#[test]
fn pipelines_keep_what_they_were_recorded_with() {
    let ([x, w, _], expected) = operands();
    for context in contexts() {
        let record = |precision| {
            context.set_precision(precision);
            let mut pipeline = context.pipeline();
            let value = pipeline.input(x.dtype(), x.dims()).unwrap();
            let weight = pipeline.constant(&w).unwrap();
            pipeline.op(Op::Matmul, &Attrs::default(), &[Some(value), Some(weight)]).unwrap();
            pipeline
        };
        let compiled = Precision::ALL.map(|precision| record(precision).compile().unwrap());
        for (compiled, expected) in compiled.iter().zip(&expected) {
            assert!(compiled.run(&[&x]).unwrap()[0].bytes() == expected.bytes(), "{context:?}");
        }
    }
}

#[test]
fn programs_have_what_the_context_has_when_they_run() {
    let ([x, w, _], expected) = operands();
    let text = ".adead 1\ninput x f32[5,70]\ninput w f32[70,9]\noutput y f32[5,9]\ny = matmul x w\n";
    let program = Program::assemble(text).unwrap();
    let said = Program::assemble(&text.replace("matmul x w", "matmul x w precision=f32")).unwrap();
    for context in contexts() {
        // Back and forth, because plans are kept.
        for at in [0, 1, 2, 1, 0] {
            context.set_precision(Precision::ALL[at]);
            let of = |program: &Program| {
                let options = RunOptions::new().input("x", x.clone()).input("w", w.clone());
                program.run(&context, &options).unwrap().output("y").unwrap().bytes().to_vec()
            };
            assert!(of(&program) == expected[at].bytes(), "{context:?} {at}");
            assert!(of(&said) == expected[0].bytes(), "{context:?} {at}");
        }
    }
}

#[test]
fn a_name_that_is_none_is_refused() {
    let error = "f16".parse::<Precision>().unwrap_err();
    assert_eq!(error.message(), "precision is 'f16'; it must be one of f32, fixed24, fixed16");
}
