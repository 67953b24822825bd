//! Loss scaling: gradients that would vanish in f16, steps that are skipped, and the same bits however it is run.
#![cfg(feature = "train")]

use adead::device::Isa;
use adead::train::{Init, LossScale, Network, Optimizer, Trainer, layers, losses};
use adead::{Attrs, Context, ContextOptions, DType, Op, Result, Status, Tensor};

#[path = "../../../core/tests/backend/mod.rs"]
mod backend;

fn cpu(threads: usize, isa: Option<Isa>) -> Context {
    Context::with_options("cpu", &ContextOptions { threads: Some(threads), isa, precision: None }).unwrap()
}

fn cast(net: &mut Network, dtype: DType, x: adead::pipeline::Value) -> Result<adead::pipeline::Value> {
    net.op_with(Op::Cast, &Attrs { dtype: Some(dtype), ..Attrs::DEFAULT }, &[x])
}

/// loss = size·w, where w and the gradient by it pass through f16.
fn slope(context: &Context, size: f32, scale: Option<LossScale>, shards: Option<usize>) -> Result<Trainer> {
    let mut net = Network::new(context, 7);
    if let Some(scale) = scale {
        net = net.with_loss_scale(scale)?;
    }
    let x = net.input(DType::F32, &[1])?;
    let w = net.parameter("w", &[1], &Init::Constant(2.0))?;
    let narrow = cast(&mut net, DType::F16, w)?;
    let wide = cast(&mut net, DType::F32, narrow)?;
    let product = net.op(Op::Mul, &[wide, x])?;
    let loss = net.op_with(Op::Scale, &Attrs { alpha: size, ..Attrs::DEFAULT }, &[product])?;
    let loss = net.pipeline().reshape(loss, &[])?;
    let optimizer = Optimizer::adam(0.5);
    match shards {
        Some(shards) => Trainer::in_shards(net, loss, optimizer, shards),
        None => Trainer::new(net, loss, optimizer),
    }
}

fn one() -> Tensor {
    Tensor::new(&[1.0f32], &[1]).unwrap()
}

/// The value of w.
fn w(trainer: &Trainer) -> f32 {
    trainer.parameters().unwrap()[0].1.to_vec::<f32>().unwrap()[0]
}

#[test]
fn small_gradients_do_not_vanish() {
    // Half of the smallest number of f16, 2⁻²⁴, becomes 0.
    let step = |scale| {
        let mut trainer = slope(&cpu(1, None), 2f32.powi(-26), scale, None).unwrap();
        trainer.step(&[&one()]).unwrap();
        w(&trainer)
    };
    assert_eq!(step(None), 2.0);
    assert_eq!(step(Some(LossScale::Fixed(1.0))), 2.0);
    assert!((step(Some(LossScale::Fixed(1024.0))) - 1.5).abs() < 0.25);
    assert_eq!(step(Some(LossScale::Fixed(1024.0))), step(Some(LossScale::DYNAMIC)));
}

#[test]
fn a_step_that_overflows_is_skipped_and_the_scale_is_halved() {
    // The gradient is 8, and f16 ends at 65504.
    let dynamic = LossScale::Dynamic { first: 32_768.0, every: 3 };
    let mut trainer = slope(&cpu(1, None), 8.0, Some(dynamic), None).unwrap();
    let mut seen: Vec<(f32, u64, f32)> = Vec::new();
    for _ in 0..9 {
        let before = w(&trainer);
        assert!((trainer.step(&[&one()]).unwrap() - 8.0 * before).abs() < 0.02);
        seen.push((trainer.loss_scale().unwrap(), trainer.skipped(), w(&trainer)));
    }
    let scales: Vec<f32> = seen.iter().map(|it| it.0).collect();
    assert_eq!(scales, [16384.0, 8192.0, 4096.0, 4096.0, 4096.0, 8192.0, 4096.0, 4096.0, 4096.0]);
    assert_eq!(seen.iter().map(|it| it.1).collect::<Vec<_>>(), [1, 2, 3, 3, 3, 3, 4, 4, 4]);
    // A skipped step changes nothing, and Adam does not count it.
    let mut plain = slope(&cpu(1, None), 8.0, None, None).unwrap();
    let mut made = Vec::new();
    for _ in 0..5 {
        plain.step(&[&one()]).unwrap();
        made.push(w(&plain).to_bits());
    }
    let kept: Vec<u32> = [3, 4, 5, 7, 8].map(|at: usize| seen[at].2.to_bits()).to_vec();
    assert_eq!(kept, made);
    assert!(seen[0].2 == 2.0 && seen[2].2 == 2.0 && seen[6].2 == seen[5].2 && trainer.steps() == 9);

    let mut fixed = slope(&cpu(1, None), 8.0, Some(LossScale::Fixed(16_384.0)), None).unwrap();
    for _ in 0..3 {
        fixed.step(&[&one()]).unwrap();
    }
    assert_eq!((fixed.loss_scale(), fixed.skipped(), w(&fixed)), (Some(16_384.0), 3, 2.0));
}

#[test]
fn a_stop_and_micro_batches_change_nothing() {
    let folder = std::env::temp_dir().join(format!("adead-scaling-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("state.safetensors");
    let dynamic = Some(LossScale::Dynamic { first: 32_768.0, every: 3 });
    let state = |trainer: &Trainer| (w(trainer).to_bits(), trainer.loss_scale(), trainer.skipped(), trainer.steps());
    let mut whole = slope(&cpu(1, None), 8.0, dynamic, None).unwrap();
    let mut states = Vec::new();
    for _ in 0..9 {
        whole.step(&[&one()]).unwrap();
        states.push(state(&whole));
    }
    let mut first = slope(&cpu(1, None), 8.0, dynamic, None).unwrap();
    for _ in 0..5 {
        first.step(&[&one()]).unwrap();
    }
    first.save(&file).unwrap();
    let mut second = slope(&cpu(2, None), 8.0, dynamic, None).unwrap();
    second.load(&file).unwrap();
    assert_eq!(state(&second), states[4]);
    for expected in &states[5..] {
        second.step(&[&one()]).unwrap();
        assert_eq!(state(&second), *expected);
    }
    // A checkpoint without a scale is one of another training.
    slope(&cpu(1, None), 8.0, None, None).unwrap().save(&file).unwrap();
    let error = second.load(&file).unwrap_err();
    assert!(error.message().contains("'training.scale'"), "{error}");
    assert_eq!(state(&second), states[8]);
    std::fs::remove_dir_all(&folder).unwrap();

    // Four equal shards have the gradient of one, whatever is computed at once.
    for together in [1, 2, 4] {
        let mut cut = slope(&cpu(1, None), 8.0, dynamic, Some(4)).unwrap();
        for expected in &states {
            for _ in 0..4 / together {
                cut.accumulate(&[&Tensor::new(&vec![1.0f32; together], &[together]).unwrap()]).unwrap();
            }
            cut.apply().unwrap();
            assert_eq!(state(&cut), *expected);
        }
    }
}

/// A network of f32 in which nothing vanishes or overflows.
fn bits(context: &Context, scale: Option<LossScale>) -> Vec<u32> {
    let record = || -> Result<Trainer> {
        let mut net = Network::new(context, 7);
        if let Some(scale) = scale {
            net = net.with_loss_scale(scale)?;
        }
        let x = net.input(DType::F32, &[8, 5])?;
        let target = net.input(DType::I64, &[8])?;
        let h = layers::linear(&mut net, "hidden", x, 16)?;
        let h = net.op(Op::Tanh, &[h])?;
        let logits = layers::linear(&mut net, "out", h, 3)?;
        let loss = losses::cross_entropy(&mut net, logits, target)?;
        Trainer::new(net, loss, Optimizer { clip_norm: Some(1.0), ..Optimizer::adamw(0.02) })
    };
    let mut trainer = record().unwrap();
    let x: Vec<f32> = (0..40).map(|i| (i * 37 % 41) as f32 / 20.5 - 1.0).collect();
    let classes: Vec<i64> = (0..8).map(|i| i % 3).collect();
    let (x, classes) = (Tensor::new(&x, &[8, 5]).unwrap(), Tensor::new(&classes, &[8]).unwrap());
    for _ in 0..9 {
        trainer.step(&[&x, &classes]).unwrap();
    }
    let parameters = trainer.parameters().unwrap();
    parameters.iter().flat_map(|(_, tensor)| tensor.to_vec::<f32>().unwrap()).map(f32::to_bits).collect()
}

#[test]
fn a_scale_changes_no_bit_where_nothing_vanishes() {
    let expected = bits(&cpu(2, None), None);
    let mut contexts = vec![cpu(1, None), cpu(3, None)];
    contexts.extend(Isa::available().map(|isa| cpu(2, Some(isa))));
    if let Some(backend) = backend::named() {
        match Context::open(&format!("{backend}:0")) {
            Ok(context) => contexts.push(context),
            Err(error) => backend::skip(&backend, &error),
        }
    }
    for context in contexts {
        for scale in [LossScale::Fixed(1024.0), LossScale::DYNAMIC, LossScale::Dynamic { first: 1.0, every: 4 }] {
            assert!(bits(&context, Some(scale)) == expected, "{context:?} {scale:?}");
        }
    }
}

#[test]
fn other_factors_are_refused() {
    for (scale, text) in [
        (LossScale::Fixed(1000.0), "a loss scale of 1000: it must be a power of two from 2^-24 to 2^24"),
        (
            LossScale::Dynamic { first: 2.0, every: 0 },
            "a loss scale that is doubled every 0 steps: it must be 1 or more",
        ),
    ] {
        let error = slope(&cpu(1, None), 8.0, Some(scale), None).err().unwrap();
        assert_eq!((error.status(), error.message()), (Status::InvalidArgument, text));
    }
    // No scale helps: the gradient itself is beyond f16.
    let mut trainer = slope(&cpu(1, None), 1e38, Some(LossScale::Dynamic { first: 1.0, every: 9 }), None).unwrap();
    let failed = (0..30).find_map(|_| trainer.step(&[&one()]).err()).unwrap();
    assert!(failed.message().contains("the gradients are not finite, with a loss scale of 2^-24 either"), "{failed}");
    assert_eq!((w(&trainer), trainer.skipped()), (2.0, 24));
}
