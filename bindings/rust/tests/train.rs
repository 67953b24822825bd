//! Training: the same bits however it is run, what optimisers compute, checkpoints, errors.
#![cfg(feature = "train")]

use adead::device::Isa;
use adead::nn::Weights;
use adead::train::layers::{self, Heads, Window};
use adead::train::{Init, LossScale, Network, Optimizer, Predictor, Rule, Schedule, Trainer, losses};
use adead::{Context, ContextOptions, DType, Op, Result, Status, Tensor};
use std::path::PathBuf;

#[path = "../../../core/tests/backend/mod.rs"]
mod backend;

fn cpu(threads: usize) -> Context {
    Context::with_options("cpu", &ContextOptions { threads: Some(threads), ..Default::default() }).unwrap()
}

/// Numbers between -1 and 1, the same in every run.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Images of 8 × 8 and their classes, of which the mean decides.
fn images(count: usize, seed: u64) -> (Tensor, Tensor) {
    let values = numbers(count * 64, seed);
    let classes = values.chunks(64).map(|image| if image.iter().sum::<f32>() > 0.0 { 1i64 } else { 0 });
    (Tensor::new(&values, &[count, 1, 8, 8]).unwrap(), Tensor::new(&classes.collect::<Vec<_>>(), &[count]).unwrap())
}

/// A network with most kinds of layers: a convolution, pooling, attention, norms, dropout.
fn network(context: &Context, batch: usize) -> Result<(Network, adead::pipeline::Value)> {
    let mut net = Network::new(context, 7);
    let x = net.input(DType::F32, &[batch, 1, 8, 8])?;
    let classes = net.input(DType::I64, &[batch])?;
    let h = layers::conv2d(&mut net, "conv", x, 4, Window { size: 3, stride: 1, padding: 1 })?;
    let h = net.op(Op::Relu, &[h])?;
    let h = layers::max_pool2d(&mut net, h, Window { size: 2, stride: 2, padding: 0 })?;
    let h = net.pipeline().reshape(h, &[batch, 4, 16])?;
    let h = layers::transformer_block(&mut net, "block", h, Heads { count: 2, causal: true }, 24, 0.1)?;
    let h = layers::rms_norm(&mut net, "norm", h, 1e-5)?;
    let h = layers::flatten(&mut net, h)?;
    let logits = layers::linear(&mut net, "out", h, 2)?;
    let loss = losses::cross_entropy(&mut net, logits, classes)?;
    Ok((net, loss))
}

fn optimizer() -> Optimizer {
    Optimizer {
        clip_norm: Some(1.0),
        schedule: Schedule::Cosine { warmup: 3, steps: 40, end: 0.1 },
        average: Some(0.9),
        ..Optimizer::adamw(0.01)
    }
}

/// The bits of everything that a trainer has, and its losses.
fn trained(context: &Context, steps: u64) -> (Vec<u32>, Vec<f32>) {
    let (net, loss) = network(context, 16).unwrap();
    let mut trainer = Trainer::new(net, loss, optimizer()).unwrap();
    let losses = (0..steps).map(|step| {
        let (x, classes) = images(16, step % 2);
        trainer.step(&[&x, &classes]).unwrap()
    });
    let losses = losses.collect();
    (bits(&trainer), losses)
}

fn bits(trainer: &Trainer) -> Vec<u32> {
    let all = trainer.parameters().unwrap().into_iter().chain(trainer.averages().unwrap().unwrap_or_default());
    all.flat_map(|(_, tensor)| tensor.to_vec::<f32>().unwrap()).map(f32::to_bits).collect()
}

#[test]
fn training_has_the_same_bits_everywhere() {
    let (expected, losses) = trained(&cpu(2), 12);
    let mean = |losses: &[f32]| losses.iter().sum::<f32>() / losses.len() as f32;
    assert!(mean(&losses[8..]) < mean(&losses[..4]), "{losses:?}");
    let mut contexts = vec![cpu(1), cpu(3), cpu(7)];
    for isa in Isa::available() {
        let options = ContextOptions { isa: Some(isa), threads: Some(2), precision: None };
        contexts.push(Context::with_options("cpu", &options).unwrap());
    }
    if let Some(backend) = backend::named() {
        for name in [format!("{backend}:0"), format!("cpu,{backend}:0")] {
            match Context::open(&name) {
                Ok(context) => contexts.push(context),
                Err(error) => backend::skip(&name, &error),
            }
        }
    }
    for context in contexts {
        assert!(trained(&context, 12).0 == expected, "{context:?}");
    }
}

/// The contexts of the processor, and of a GPU if one was named.
fn both() -> Vec<Context> {
    let gpu = backend::named().map(|backend| format!("{backend}:0"));
    let gpu = gpu.and_then(|name| Context::open(&name).map_err(|error| backend::skip(&name, &error)).ok());
    [cpu(2)].into_iter().chain(gpu).collect()
}

#[test]
fn a_step_that_is_refused_changes_nothing() {
    for context in both() {
        for scale in [None, Some(LossScale::Fixed(8.0))] {
            let trainer = || {
                let (net, loss) = network(&context, 16).unwrap();
                let net = match scale {
                    Some(scale) => net.with_loss_scale(scale).unwrap(),
                    None => net,
                };
                Trainer::new(net, loss, optimizer()).unwrap()
            };
            let [mut one, mut other] = [trainer(), trainer()];
            for step in 0..3 {
                let (x, classes) = images(16, step);
                assert_eq!(one.step(&[&x, &classes]).unwrap(), other.step(&[&x, &classes]).unwrap());
                let outside = Tensor::new(&[[0i64; 15].as_slice(), &[99]].concat(), classes.dims()).unwrap();
                let error = one.step(&[&x, &outside]).unwrap_err();
                assert!(error.message().contains("id 99 at position 15"), "{error}");
                let mut pixels = x.to_vec::<f32>().unwrap();
                pixels[7] = f32::INFINITY;
                let error = one.step(&[&Tensor::new(&pixels, x.dims()).unwrap(), &classes]).unwrap_err();
                assert!(
                    error.message().contains("the first parameter whose new values are not finite is '"),
                    "{error}"
                );
            }
            assert_eq!(one.steps(), 3);
            for (mine, theirs) in [
                (one.parameters().unwrap(), other.parameters().unwrap()),
                (one.averages().unwrap().unwrap(), other.averages().unwrap().unwrap()),
            ] {
                for ((name, mine), (_, theirs)) in mine.iter().zip(&theirs) {
                    assert!(mine.host_bytes().unwrap() == theirs.host_bytes().unwrap(), "{context:?}: {name}");
                }
            }
        }
    }
}

#[test]
fn a_gpu_keeps_the_weights() {
    let Some(backend) = backend::named() else { return };
    let name = format!("{backend}:0");
    let context = match Context::open(&name) {
        Ok(context) => context,
        Err(error) => return backend::skip(&name, &error),
    };
    let (net, loss) = network(&context, 16).unwrap();
    let mut trainer = Trainer::new(net, loss, optimizer()).unwrap();
    let (x, classes) = images(16, 0);
    for _ in 0..2 {
        trainer.step(&[&x, &classes]).unwrap();
        for (parameter, tensor) in trainer.parameters().unwrap().into_iter().chain(trainer.averages().unwrap().unwrap())
        {
            assert_eq!(tensor.places(), [name.as_str()], "{parameter}");
        }
    }
}

#[test]
fn a_gpu_s_step_brings_only_the_loss_to_the_host() {
    let Some(backend) = backend::named() else { return };
    let name = format!("{backend}:0");
    let context = match Context::open(&name) {
        Ok(context) => context,
        Err(error) => return backend::skip(&name, &error),
    };
    for (fixed, shards) in [(false, None), (false, Some(2)), (true, Some(2))] {
        let (net, loss) = network(&context, if shards.is_some() { 8 } else { 16 }).unwrap();
        let net = net.with_fixed_gradients(fixed);
        let mut trainer = match shards {
            Some(shards) => Trainer::in_shards(net, loss, optimizer(), shards).unwrap(),
            None => Trainer::new(net, loss, optimizer()).unwrap(),
        };
        let (x, classes) = images(16, 0);
        trainer.step(&[&x, &classes]).unwrap();
        let profile = context.profile().unwrap();
        trainer.step(&[&x, &classes]).unwrap();
        let report = profile.finish();
        let gpu = report.devices.iter().find(|device| device.id == name).unwrap();
        assert!(gpu.downloaded <= 16, "{} bytes, fixed {fixed}, shards {shards:?}", gpu.downloaded);
    }
}

#[test]
fn cuts_into_micro_batches_change_no_bit() {
    let mut all = Vec::new();
    for cut in [&[8][..], &[1; 8], &[3, 3, 2], &[4, 4], &[7, 1]] {
        let (net, loss) = network(&cpu(2), 4).unwrap();
        let mut trainer = Trainer::in_shards(net, loss, optimizer(), 8).unwrap();
        for step in 0..4 {
            let (x, classes) = images(32, step);
            let mut first = 0;
            for &shards in cut {
                let (from, rows) = (first * 4, shards * 4);
                trainer.accumulate(&[&x.rows(from, rows).unwrap(), &classes.rows(from, rows).unwrap()]).unwrap();
                first += shards;
                assert_eq!(trainer.accumulated(), first);
            }
            trainer.apply().unwrap();
        }
        all.push((cut, bits(&trainer)));
    }
    for (cut, found) in &all {
        assert!(*found == all[0].1, "{cut:?}");
    }
    let (net, loss) = network(&cpu(2), 4).unwrap();
    let mut trainer = Trainer::in_shards(net, loss, optimizer(), 8).unwrap();
    for step in 0..4 {
        let (x, classes) = images(32, step);
        trainer.step(&[&x, &classes]).unwrap();
    }
    assert!(bits(&trainer) == all[0].1);
}

/// A file that is gone at the end.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        File(std::env::temp_dir().join(format!("adead-train-{}-{name}.safetensors", std::process::id())))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_run_that_was_stopped_ends_in_the_same_bits() {
    let file = File::new("resumed");
    let new = || network(&cpu(2), 16).and_then(|(net, loss)| Trainer::new(net, loss, optimizer())).unwrap();
    let run = |trainer: &mut Trainer, steps: std::ops::Range<u64>| {
        for step in steps {
            let (x, classes) = images(16, step);
            trainer.step(&[&x, &classes]).unwrap();
        }
    };
    let mut whole = new();
    run(&mut whole, 0..9);
    let mut first = new();
    run(&mut first, 0..5);
    first.save(&file.0).unwrap();
    let mut second = new();
    second.load(&file.0).unwrap();
    assert_eq!(second.steps(), 5);
    run(&mut second, 5..9);
    assert!(bits(&second) == bits(&whole));

    // The file is one of weights too, which another network takes.
    let weights = Weights::open(&file.0).unwrap();
    assert_eq!(weights.dims("conv.weight").unwrap(), [4, 1, 3, 3]);
    let mut net = Network::new(&cpu(1), 1).with_weights(&weights);
    let x = net.input(DType::F32, &[1, 1, 8, 8]).unwrap();
    layers::conv2d(&mut net, "conv", x, 4, Window { size: 3, stride: 1, padding: 1 }).unwrap();

    let mut other = Network::new(&cpu(1), 8);
    let x = other.input(DType::F32, &[1, 3]).unwrap();
    let y = layers::linear(&mut other, "one", x, 1).unwrap();
    let mut other = Trainer::new(other, y, Optimizer::sgd(0.1, 0.0)).unwrap();
    let error = other.load(&file.0).unwrap_err();
    assert!(error.message().ends_with("its seed is 7, and the trainer's 8"), "{error}");
    assert_eq!(other.load("/nowhere").unwrap_err().status(), Status::Io);
}

/// The loss w² + w·x of one parameter, whose gradient is 2w + x.
fn parabola(start: f32, optimizer: Optimizer) -> Trainer {
    let mut net = Network::new(&cpu(1), 0);
    let x = net.input(DType::F32, &[1]).unwrap();
    let w = net.parameter("w", &[1], &Init::Constant(start)).unwrap();
    let square = net.op(Op::Mul, &[w, w]).unwrap();
    let product = net.op(Op::Mul, &[w, x]).unwrap();
    let loss = net.op(Op::Add, &[square, product]).unwrap();
    Trainer::new(net, loss, optimizer).unwrap()
}

#[test]
fn optimisers_follow_their_rules() {
    let sgd = |momentum, nesterov| Optimizer { rule: Rule::Sgd { momentum, nesterov }, ..Optimizer::sgd(0.1, 0.0) };
    let all = [
        sgd(0.0, false),
        Optimizer { weight_decay: 0.2, ..sgd(0.0, false) },
        sgd(0.9, false),
        Optimizer { weight_decay: 0.1, ..sgd(0.9, true) },
        Optimizer { clip_norm: Some(0.5), ..sgd(0.0, false) },
        Optimizer::adam(0.05),
        Optimizer { weight_decay: 0.1, ..Optimizer::adam(0.05) },
        Optimizer::adamw(0.05),
        Optimizer { schedule: Schedule::Steps { every: 2, factor: 0.5 }, ..Optimizer::adamw(0.05) },
    ];
    for optimizer in all {
        let mut trainer = parabola(1.5, optimizer);
        // The rules of the papers, in f64.
        let (mut w, mut buffer, mut mean, mut square) = (1.5f64, 0.0, 0.0, 0.0);
        for step in 1..=6 {
            let x = f64::from(step) * 0.25 - 1.0;
            let loss = trainer.step(&[&Tensor::new(&[x as f32], &[1]).unwrap()]).unwrap();
            assert!((f64::from(loss) - (w * w + w * x)).abs() < 1e-5, "{optimizer:?}, step {step}: {loss}");
            let rate = optimizer.rate_at(step as u64);
            let mut g = 2.0 * w + x;
            if let Some(most) = optimizer.clip_norm {
                g *= (most / (g.abs() + 1e-6)).min(1.0);
            }
            match optimizer.rule {
                Rule::Sgd { momentum, nesterov } => {
                    g += optimizer.weight_decay * w;
                    buffer = momentum * buffer + g;
                    w -= rate * if nesterov { g + momentum * buffer } else { buffer };
                }
                Rule::Adam { betas: [first, second], eps, decoupled } => {
                    if decoupled {
                        w *= 1.0 - rate * optimizer.weight_decay;
                    } else {
                        g += optimizer.weight_decay * w;
                    }
                    mean = first * mean + (1.0 - first) * g;
                    square = second * square + (1.0 - second) * g * g;
                    let root = f64::sqrt(square / (1.0 - second.powi(step)));
                    w -= rate / (1.0 - first.powi(step)) * mean / (root + eps);
                }
            }
            let own = f64::from(trainer.parameters().unwrap()[0].1.to_vec::<f32>().unwrap()[0]);
            assert!((own - w).abs() < 2e-6, "{optimizer:?}, step {step}: {own} and {w}");
        }
    }
    let mut trainer = parabola(1.0, Optimizer { average: Some(0.75), ..sgd(0.0, false) });
    trainer.step(&[&Tensor::new(&[0.0f32], &[1]).unwrap()]).unwrap();
    assert_eq!(trainer.averages().unwrap().unwrap()[0].1.to_vec::<f32>().unwrap(), [0.95]);
}

#[test]
fn a_predictor_computes_with_a_trainers_parameters() {
    let (net, loss) = network(&cpu(2), 16).unwrap();
    let mut trainer = Trainer::new(net, loss, optimizer()).unwrap();
    let (x, classes) = images(16, 0);
    trainer.step(&[&x, &classes]).unwrap();
    let mut net = Network::for_prediction(&cpu(2));
    let x = net.input(DType::F32, &[2, 64]).unwrap();
    let y = layers::linear(&mut net, "out", x, 2).unwrap();
    let dropped = net.dropout(y, 0.5).unwrap();
    assert_eq!(dropped, y);
    let predictor = Predictor::new(net, &[y]).unwrap();
    let x = Tensor::new(&numbers(128, 3), &[2, 64]).unwrap();
    let found = predictor.run(&trainer.parameters().unwrap(), &[&x]).unwrap();
    assert_eq!(found[0].dims(), [2, 2]);
    let error = predictor.run(&[], &[&x]).unwrap_err();
    assert_eq!(error.message(), "there is no parameter 'out.weight' of the shape [2, 64]");
}

#[test]
fn wrong_use_says_what_is_wrong_and_changes_nothing() {
    let mut trainer = parabola(1.0, Optimizer::sgd(0.1, 0.0));
    let message = |result: Result<f32>| result.unwrap_err().message().to_owned();
    assert_eq!(message(trainer.step(&[])), "the network has 1 inputs and was given 0 tensors");
    let two = Tensor::new(&[1.0f32, 2.0], &[2]).unwrap();
    let text = "input 0 is f32 of [2]; the network was recorded for f32 of [1]";
    assert_eq!(message(trainer.step(&[&two])), text);
    let nan = Tensor::new(&[f32::NAN], &[1]).unwrap();
    let text =
        "step 1: the loss is NaN; the first parameter whose new values are not finite is 'w'. Nothing has changed";
    assert_eq!(message(trainer.step(&[&nan])), text);
    assert_eq!((trainer.steps(), trainer.parameters().unwrap()[0].1.to_vec::<f32>().unwrap()[0]), (0, 1.0));
    assert!(message(trainer.apply()).starts_with("the trainer takes whole batches"));
    assert!(trainer.accumulate(&[&two]).is_err());

    let mut net = Network::new(&cpu(1), 0);
    let x = net.input(DType::F32, &[1]).unwrap();
    net.parameter("w", &[1], &Init::Constant(1.0)).unwrap();
    for (name, text) in [
        ("w", "there is a parameter 'w' already"),
        ("", "a parameter can't have the name ''"),
        ("training.w", "a parameter can't have the name 'training.w'"),
    ] {
        assert_eq!(net.parameter(name, &[1], &Init::Constant(1.0)).unwrap_err().message(), text);
    }
    assert!(net.dropout(x, 1.0).is_err());
    assert!(layers::conv2d(&mut net, "c", x, 1, Window { size: 3, stride: 1, padding: 0 }).is_err());
    let loss = net.op(Op::Mul, &[x, x]).unwrap();
    let error = Trainer::new(net, loss, Optimizer::adam(0.1)).err().unwrap();
    assert_eq!(error.message(), "the loss does not depend on the parameter 'w' in a way that has a gradient");

    let mut net = Network::new(&cpu(1), 0);
    let x = net.input(DType::F32, &[0, 3]).unwrap();
    let y = layers::linear(&mut net, "l", x, 1).unwrap();
    let loss = losses::mse(&mut net, y, y).unwrap();
    let error = Trainer::new(net, loss, Optimizer::adam(0.1)).err().unwrap();
    assert_eq!(error.message(), "input 0 is [0, 3]; a batch can't be empty");

    let (net, loss) = network(&cpu(1), 4).unwrap();
    let erases = Optimizer { weight_decay: 2.0, ..Optimizer::adamw(0.5) };
    let error = Trainer::new(net, loss, erases).err().unwrap();
    assert!(error.message().starts_with("a rate of 0.5 with a weight decay of 2: their product"));
    let (net, loss) = network(&cpu(1), 4).unwrap();
    assert!(Trainer::in_shards(net, loss, optimizer(), 3).is_err());
    let (net, loss) = network(&cpu(1), 4).unwrap();
    let mut trainer = Trainer::in_shards(net, loss, optimizer(), 2).unwrap();
    let (x, classes) = images(12, 0);
    assert!(message(trainer.step(&[&x, &classes])).starts_with("3 shards were given after 0, and a batch has 2"));
    let (x, classes) = (x.rows(0, 4).unwrap(), classes.rows(0, 3).unwrap());
    assert!(trainer.accumulate(&[&x, &classes]).is_err());
    assert_eq!(trainer.accumulated(), 0);
}
