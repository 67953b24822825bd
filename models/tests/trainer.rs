//! Trainers made from descriptions: one hash everywhere, what they compute, what they refuse.

use adead::device::Isa;
use adead::{Context, ContextOptions, Status, Tensor};
use adead_models::train::{Description, Trainer, connect};
use serde_json::Value;
use std::time::Duration;

#[path = "../../core/tests/backend/mod.rs"]
mod backend;

fn cpu(threads: usize, isa: Option<Isa>) -> Context {
    Context::with_options("cpu", &ContextOptions { threads: Some(threads), isa, precision: None }).unwrap()
}

/// The training that every language repeats.
fn shared() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/train/trainer.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Its samples.
fn samples(count: usize) -> [Tensor; 2] {
    let x: Vec<f32> = (0..count * 6).map(|k| ((k * 7919 % 1009) as f64 / 504.5 - 1.0) as f32).collect();
    let classes: Vec<i64> = x.chunks(6).map(|row| i64::from(row[0] > 0.0) + i64::from(row[1] > 0.3)).collect();
    [Tensor::new(&x, &[count, 6]).unwrap(), Tensor::new(&classes, &[count]).unwrap()]
}

fn trainer(context: &Context, change: impl FnOnce(&mut Value)) -> adead::Result<Trainer> {
    let mut description = shared()["description"].clone();
    change(&mut description);
    Trainer::new(context, &description.to_string().parse::<Description>()?)
}

fn message<T>(result: adead::Result<T>) -> (Status, String) {
    let error = result.err().unwrap();
    (error.status(), error.message().to_owned())
}

#[test]
fn the_shared_training_has_its_hash_on_every_device() {
    let shared = shared();
    let [x, classes] = samples(shared["samples"].as_u64().unwrap() as usize);
    let epochs = shared["epochs"].as_u64().unwrap() as u32;
    let mut contexts = vec![cpu(1, None), cpu(2, None), cpu(3, None), cpu(7, None)];
    contexts.extend(Isa::available().map(|isa| cpu(2, Some(isa))));
    if let Some(backend) = backend::named() {
        // Both together only where that takes no minutes: software GPUs compile for each.
        let hybrid = std::env::var_os("ADEAD_EXHAUSTIVE").map(|_| format!("cpu,{backend}:0"));
        for name in [format!("{backend}:0")].into_iter().chain(hybrid) {
            match Context::open(&name) {
                Ok(context) => contexts.push(context),
                Err(error) => backend::skip(&name, &error),
            }
        }
    }
    for context in contexts {
        let mut trainer = trainer(&context, |_| {}).unwrap();
        let before = trainer.evaluate(&x, &classes).unwrap();
        let mut told = 0;
        let mean = trainer.fit(&x, &classes, epochs, &mut |epoch, step, loss| {
            told += 1;
            assert_eq!((u64::from(epoch), step), ((told - 1) / 10 + 1, told));
            assert!(loss.is_finite());
            Ok(())
        });
        assert_eq!((told, trainer.steps()), (200, 200));
        let after = trainer.evaluate(&x, &classes).unwrap();
        assert!(
            after.loss < before.loss && mean.unwrap() < before.loss && after.accuracy > 0.9,
            "{before:?} {after:?}"
        );
        assert_eq!(Some(&*trainer.sha256().unwrap()), shared["sha256"].as_str(), "{context:?}");
    }
}

#[test]
fn ranks_are_given_whole_batches() {
    let shared = shared();
    let [x, classes] = samples(shared["samples"].as_u64().unwrap() as usize);
    let epochs = shared["epochs"].as_u64().unwrap() as u32;
    let at = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let found = std::thread::scope(|scope| {
        let start = |rank: usize| {
            let (x, classes) = (&x, &classes);
            scope.spawn(move || {
                let mut trainer = trainer(&cpu(1, None), |_| {}).unwrap();
                trainer.join(connect(&format!("{rank}/3@{at}"), Duration::from_secs(60)).unwrap()).unwrap();
                trainer.fit(x, classes, epochs, &mut |_, _, _| Ok(())).unwrap();
                trainer.sha256().unwrap()
            })
        };
        let all = [0, 1, 2].map(start);
        all.map(|thread| thread.join().unwrap())
    });
    assert!(found.iter().all(|hash| Some(&**hash) == shared["sha256"].as_str()), "{found:?}");
}

#[test]
fn a_trainer_goes_on_from_its_file() {
    let [x, classes] = samples(96);
    let run = |trainer: &mut Trainer, epochs: u32| trainer.fit(&x, &classes, epochs, &mut |_, _, _| Ok(())).unwrap();
    let mut whole = trainer(&cpu(2, None), |_| {}).unwrap();
    run(&mut whole, 3);
    let file = std::env::temp_dir().join(format!("adead-trainer-{}.safetensors", std::process::id()));
    let mut first = trainer(&cpu(2, None), |_| {}).unwrap();
    run(&mut first, 1);
    first.save(&file).unwrap();
    let mut second = trainer(&cpu(1, None), |_| {}).unwrap();
    second.load(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(second.steps(), 4);
    run(&mut second, 2);
    assert_eq!(second.sha256().unwrap(), whole.sha256().unwrap());
}

#[test]
fn a_line_is_found_by_least_squares() {
    // y = 3·a − 2·b + 0.5, without noise.
    let values: Vec<f32> = (0..40).map(|k| (k * 17 % 23) as f32 / 11.0 - 1.0).collect();
    let targets: Vec<f32> = values.chunks(2).map(|row| 3.0 * row[0] - 2.0 * row[1] + 0.5).collect();
    let (x, y) = (Tensor::new(&values, &[20, 2]).unwrap(), Tensor::new(&targets, &[20, 1]).unwrap());
    let text = r#"{ "model": { "kind": "layers", "layers": [{ "linear": 1 }] }, "input": [2], "loss": "mse", "batch": 20,
        "optimizer": { "kind": "sgd", "rate": 0.3, "momentum": 0.5 } }"#;
    let mut trainer = Trainer::new(&cpu(1, None), &text.parse().unwrap()).unwrap();
    let loss = trainer.fit(&x, &y, 200, &mut |_, _, _| Ok(())).unwrap();
    assert!(loss < 1e-8, "{loss}");
    let found: Vec<f32> =
        trainer.trained().unwrap().iter().flat_map(|(_, tensor)| tensor.to_vec::<f32>().unwrap()).collect();
    for expected in [3.0, -2.0, 0.5] {
        assert!(found.iter().any(|value| (value - expected).abs() < 1e-3), "{found:?}");
    }
    // Any number of samples, of which the last batch is not full.
    let more = Tensor::new(&[values.clone(), vec![1.0, 1.0]].concat(), &[21, 2]).unwrap();
    let predicted = trainer.predict(&more).unwrap();
    assert_eq!(predicted.dims(), [21, 1]);
    assert!((predicted.to_vec::<f32>().unwrap()[20] - 1.5).abs() < 1e-3);
    let (status, text) = message(trainer.evaluate(&x, &y));
    assert!(status == Status::Unsupported && text.contains("the loss has none"), "{text}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let context = cpu(1, None);
    let mut good = trainer(&context, |_| {}).unwrap();
    let before = good.sha256().unwrap();
    let [x, classes] = samples(24);
    let (status, text) = message(good.step(&x.rows(0, 23).unwrap(), &classes.rows(0, 23).unwrap()));
    assert!(status == Status::ShapeMismatch && text == "23 samples; a step takes a batch of 24", "{text}");
    let (status, text) = message(good.step(&x, &classes.rows(0, 23).unwrap()));
    assert!(status == Status::ShapeMismatch && text == "targets is [23]; for 24 samples it must be [24]", "{text}");
    let (status, text) = message(good.step(&classes, &classes));
    assert!(status == Status::DtypeMismatch && text == "x is i64; the network takes f32", "{text}");
    let wrong = Tensor::new(&[[0i64; 23].as_slice(), &[3]].concat(), &[24]).unwrap();
    let (status, text) = message(good.step(&x, &wrong));
    assert!(status == Status::InvalidArgument && text == "element 23 of targets is 3; there are 3 classes, from 0 on");
    let (_, text) = message(good.fit(&x.rows(0, 5).unwrap(), &classes.rows(0, 5).unwrap(), 1, &mut |_, _, _| Ok(())));
    assert_eq!(text, "5 samples and 1 epochs; a batch has 24 samples");
    let none = [Tensor::new::<f32>(&[], &[0, 6]).unwrap(), Tensor::new::<i64>(&[], &[0]).unwrap()];
    assert_eq!(message(good.evaluate(&none[0], &none[1])).1, "there are no samples to measure");
    assert_eq!(good.predict(&none[0]).unwrap().dims(), [0, 3]);
    assert_eq!((good.steps(), good.sha256().unwrap()), (0, before));

    let refused = |change: fn(&mut Value)| message(trainer(&context, change)).1;
    assert!(refused(|it| it["batch"] = 0.into()).contains("batch is 0 and shards 8"));
    assert!(
        refused(|it| it["shards"] = 3.into())
            .contains("shards is 3; it must be a power of two, or gradient_sum 'fixed'")
    );
    assert!(refused(|it| it["shards"] = 5.into()).contains("shards is 5; it must divide the batch of 24"));
    assert!(refused(|it| it["optimizer"]["kind"] = "lion".into()).contains("it can be sgd, adam or adamw"));
    assert!(refused(|it| it["optimizer"]["schedule"] = "cosine".into()).contains("which needs the number of steps"));
    assert!(refused(|it| it["colour"] = 1.into()).contains("unknown field `colour`"));
    assert!(refused(|it| it["model"]["layers"][0] = "lstm".into()).contains("unknown variant `lstm`"));
    let sentences =
        |it: &mut Value| it["model"] = serde_json::json!({ "kind": "sentences", "folder": "a", "length": 8 });
    assert!(refused(sentences).contains("are trained by jobs, not with arrays"));
    assert!(message("{".parse::<Description>()).1.starts_with("the training's description: EOF"));
}

#[test]
fn narrow_values_and_a_loss_scale_have_one_hash_too() {
    let [x, classes] = samples(240);
    let trained = |context: &Context, storage: Value, scale: Value| {
        let mut trainer = trainer(context, |description| {
            description["model"]["layers"] = serde_json::json!([{ "linear": 16 }, "gelu", { "linear": 3 }]);
            (description["storage"], description["loss_scale"]) = (storage, scale);
        })?;
        trainer.fit(&x, &classes, 10, &mut |_, _, _| Ok(()))?;
        let accuracy = trainer.evaluate(&x, &classes)?.accuracy;
        Ok::<_, adead::Error>((trainer.sha256()?, accuracy > 0.6, trainer.loss_scale(), trainer.skipped()))
    };
    let mut contexts = vec![cpu(1, None), cpu(3, None)];
    contexts.extend(Isa::available().map(|isa| cpu(2, Some(isa))));
    let plain = trained(&cpu(2, None), Value::Null, Value::Null).unwrap();
    for storage in ["f16", "bf16"] {
        let expected = trained(&cpu(2, None), storage.into(), "dynamic".into()).unwrap();
        assert!(expected.0 != plain.0 && expected.1 && expected.2.is_some() && plain.2.is_none(), "{expected:?}");
        for context in &contexts {
            assert_eq!(trained(context, storage.into(), "dynamic".into()).unwrap(), expected, "{context:?}");
        }
    }
    // Where nothing is rounded, a factor changes no bit.
    assert_eq!(trained(&cpu(2, None), Value::Null, 1024.into()).unwrap().0, plain.0);
    for (scale, text) in [
        (Value::from(1000), "a loss scale of 1000: it must be a power of two from 2^-24 to 2^24"),
        ("static".into(), "loss_scale is 'static'; it can be a power of two or 'dynamic'"),
    ] {
        assert_eq!(message(trained(&cpu(1, None), Value::Null, scale)), (Status::InvalidArgument, text.into()));
    }
    assert!(message(trained(&cpu(1, None), "f8".into(), Value::Null)).1.contains("unknown variant `f8`"));
}

#[test]
fn recomputation_takes_less_memory_and_changes_no_bit() {
    let [x, classes] = samples(240);
    let convolution = || [serde_json::json!({ "conv": { "channels": 6, "size": 3, "padding": 1 } }), "gelu".into()];
    let mut layers: Vec<Value> = (0..6).flat_map(|_| convolution()).collect();
    layers.extend([serde_json::json!({ "dropout": 0.1 }), "flatten".into(), serde_json::json!({ "linear": 3 })]);
    let convolutions = serde_json::json!({ "kind": "layers", "layers": layers });
    let x = x.reshape(&[240, 1, 2, 3]).unwrap();
    let trained = |recompute: bool| {
        let change = |description: &mut Value| {
            (description["model"], description["input"]) = (convolutions.clone(), serde_json::json!([1, 2, 3]));
            (description["batch"], description["shards"]) = (240.into(), 1.into());
            description["recompute"] = recompute.into();
        };
        let mut trainer = trainer(&cpu(2, None), change).unwrap();
        trainer.fit(&x, &classes, 2, &mut |_, _, _| Ok(())).unwrap();
        (trainer.sha256().unwrap(), trainer.memory())
    };
    let (kept, recomputed) = (trained(false), trained(true));
    assert_eq!(kept.0, recomputed.0);
    assert!(3 * recomputed.1 < 2 * kept.1, "{} and {} bytes", recomputed.1, kept.1);
}

#[test]
fn fixed_gradients_learn_in_any_number_of_shards() {
    let [x, classes] = samples(240);
    let trained = |context: &Context, shards: u64, scale: Value| {
        let mut trainer = trainer(context, |description| {
            (description["gradient_sum"], description["shards"]) = ("fixed".into(), shards.into());
            description["loss_scale"] = scale.clone();
        })
        .unwrap();
        trainer.fit(&x, &classes, 10, &mut |_, _, _| Ok(())).unwrap();
        (trainer.sha256().unwrap(), trainer.evaluate(&x, &classes).unwrap().accuracy)
    };
    for shards in [1, 3, 8] {
        let (own, accuracy) = trained(&cpu(1, None), shards, Value::Null);
        assert_eq!(trained(&cpu(3, None), shards, Value::Null).0, own);
        assert!(accuracy > 0.8, "{accuracy}");
        // In units of 2⁻³⁶, times a factor that the step takes back: nearly the same weights.
        assert!(trained(&cpu(1, None), shards, 1024.into()).1 > 0.8);
    }
}

#[test]
fn a_decoder_that_recomputes_its_blocks_learns_the_same() {
    let model =
        serde_json::json!({ "kind": "gpt", "layers": 6, "heads": 2, "width": 32, "context": 32, "dropout": 0.1 });
    let ids = Tensor::new(&(0..256).map(|i| i * 7 % 256).collect::<Vec<i64>>(), &[8, 32]).unwrap();
    let trained = |recompute: bool, shards: u64| {
        let mut trainer = trainer(&cpu(2, None), |description| {
            (description["model"], description["input"]) = (model.clone(), serde_json::json!([]));
            (description["batch"], description["shards"]) = (8.into(), shards.into());
            description["recompute"] = recompute.into();
        })
        .unwrap();
        let losses: Vec<u32> = (0..3).map(|_| trainer.step(&ids, &ids).unwrap().to_bits()).collect();
        (losses, trainer.sha256().unwrap(), trainer.memory())
    };
    for shards in [1, 4] {
        let (kept, recomputed) = (trained(false, shards), trained(true, shards));
        assert_eq!((&kept.0, &kept.1), (&recomputed.0, &recomputed.1));
        assert!(5 * recomputed.2 < 4 * kept.2, "{shards} shards: {} and {} bytes", recomputed.2, kept.2);
    }
}
