//! Jobs that train adapters, and text that is generated with them, with the small made-up models of `tests/text`.

mod common;

use adead::device::Isa;
use adead::nn::Weights;
use adead::train::write_tensors;
use adead::{Context, ContextOptions, Status, Tensor};
use adead_models::TextGenerator;
use adead_models::text::{GenerateOptions, OpenOptions};
use adead_models::train::{Job, Outcome, RunOptions, hash};
use common::{Scratch, bits, cpu, open, text};
use std::fs;
use std::path::PathBuf;

const MODELS: [&str; 3] = ["llama", "qwen3", "gemma3"];

const TEXT: &str = "the ferry came in and the harbour was quiet. ";

const JOB: &str = r#"
seed = 3
batch = 4
epochs = 2
shards = 2
result = "adapters.safetensors"
data = { kind = "text", files = ["text"], held_out = 4 }
model = { kind = "adapters", file = "MODEL", context = 16, rank = 2, on = ["attn_q", "attn_v", "ffn_down"], dropout = 0.1 }
optimizer = { kind = "adamw", rate = 0.01, clip_norm = 1.0 }
checkpoint = { file = "state.safetensors" }
"#;

/// A folder with a job.
struct Folder(Scratch);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = Scratch::new(&format!("adapters-{name}"));
        folder.write("text", &TEXT.repeat(12));
        Folder(folder)
    }

    fn job(&self, model: &str, changes: &[(&str, &str)]) -> adead::Result<Job> {
        let mut job = JOB.to_owned();
        for (from, to) in changes {
            assert!(job.contains(from), "{from}");
            job = job.replacen(from, to, 1);
        }
        let model = text(&format!("{model}.gguf")).canonicalize().unwrap();
        Job::read(self.0.write("job.toml", &job.replace("MODEL", model.to_str().unwrap())))
    }

    fn result(&self) -> PathBuf {
        self.0.path("adapters.safetensors")
    }
}

fn run(job: &Job, context: &Context, resume: bool) -> adead::Result<Outcome> {
    job.run(context, RunOptions { resume, ranks: None }, &mut |_| Ok(()))
}

fn with(model: &str, context: Context, adapters: Option<PathBuf>) -> adead::Result<TextGenerator> {
    let options = OpenOptions { context: Some(context), adapters, ..Default::default() };
    TextGenerator::open_with(text(&format!("{model}.gguf")), &options)
}

/// The mean of −log p of each token but the first, in one sequence.
fn loss(model: &TextGenerator, tokens: &[u32]) -> f64 {
    let found = model.logprobs(tokens).unwrap();
    assert_eq!(found.len(), tokens.len() - 1);
    -found.iter().map(|&x| f64::from(x)).sum::<f64>() / found.len() as f64
}

#[test]
fn adapters_learn_and_generation_computes_with_them_what_was_trained() {
    for name in MODELS {
        let folder = Folder::new(name);
        let job = folder.job(name, &[("epochs = 2", "epochs = 6"), ("dropout = 0.1", "dropout = 0.0")]).unwrap();
        let outcome = run(&job, &cpu(2), false).unwrap();
        let losses: Vec<f64> = outcome.epochs.iter().map(|epoch| epoch.held_out_loss).collect();
        assert!(losses[5] < losses[0], "{name}: {losses:?}");

        // The job's held-out loss, computed by generation's network.
        let generator = with(name, cpu(1), Some(folder.result())).unwrap();
        let all = generator.tokenize(&fs::read_to_string(folder.0.path("text")).unwrap()).unwrap();
        let first = all.len() / 4 * 3;
        let begins: Vec<usize> = (first..all.len() - 16).step_by(16).collect();
        let sum: f64 = begins.iter().map(|&at| loss(&generator, &all[at..at + 17])).sum();
        let found = sum / begins.len() as f64;
        assert!((found - losses[5]).abs() < 1e-6, "{name}: {found} and {}", losses[5]);
        let plain = with(name, cpu(1), None).unwrap();
        assert!(loss(&plain, &all[..17]) > loss(&generator, &all[..17]), "{name}");
    }
}

#[test]
fn the_gradient_is_the_slope_of_generations_loss() {
    for name in MODELS {
        let folder = Folder::new(&format!("slope-{name}"));
        let plain = with(name, cpu(2), None).unwrap();
        let all = plain.tokenize(&TEXT.repeat(12)).unwrap();
        // One step with all samples, whose rate is 1.
        let cut = all.len() / 4 * 3;
        let begins: Vec<usize> = (0..cut - 16).step_by(16).collect();
        let batch = format!("batch = {}", begins.len());
        let changes = [
            ("batch = 4", &*batch),
            ("epochs = 2", "epochs = 1"),
            ("shards = 2", "shards = 1"),
            ("dropout = 0.1", "dropout = 0.0"),
            (
                r#"["attn_q", "attn_v", "ffn_down"]"#,
                r#"["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]"#,
            ),
            (r#"{ kind = "adamw", rate = 0.01, clip_norm = 1.0 }"#, r#"{ kind = "sgd", rate = 1.0 }"#),
        ];
        let outcome = run(&folder.job(name, &changes).unwrap(), &cpu(2), false).unwrap();
        assert_eq!(outcome.steps, 1);
        // B began with 0, so it is the gradient by B with the other sign, and A has none.
        let values = |name: &str, tensor: &Tensor| {
            if name.ends_with("lora_b") { tensor.to_vec::<f32>().unwrap() } else { vec![] }
        };
        let square: f64 = outcome
            .parameters
            .iter()
            .flat_map(|(name, tensor)| values(name, tensor))
            .map(|x| f64::from(x) * f64::from(x))
            .sum();
        let scale = ("adapters.scale".to_owned(), Tensor::new(&[2f32], &[1]).unwrap());
        let at = |along: f64| {
            let factor = (along / square.sqrt()) as f32;
            let moved = outcome.parameters.iter().map(|(name, tensor)| match &*values(name, tensor) {
                [] => (name.clone(), tensor.clone()),
                own => {
                    let own: Vec<f32> = own.iter().map(|x| x * factor).collect();
                    (name.clone(), Tensor::new(&own, tensor.dims()).unwrap())
                }
            });
            let file = folder.0.path("moved.safetensors");
            write_tensors(&file, &moved.chain([scale.clone()]).collect::<Vec<_>>()).unwrap();
            let generator = with(name, cpu(2), Some(file)).unwrap();
            begins.iter().map(|&at| loss(&generator, &all[at..at + 17])).sum::<f64>() / begins.len() as f64
        };
        assert!((at(0.0) - outcome.epochs[0].loss).abs() < 1e-6, "{name}: {} {}", at(0.0), outcome.epochs[0].loss);
        let along = 0.02;
        let (slope, expected) = ((at(-along) - at(along)) / (2.0 * along), square.sqrt());
        assert!((slope / expected - 1.0).abs() < 0.01, "{name}: {slope} and {expected}");
    }
}

#[test]
fn every_instruction_set_every_number_of_threads_and_a_stop_give_the_same_bits() {
    for name in MODELS {
        let folder = Folder::new(&format!("bits-{name}"));
        let job = folder.job(name, &[]).unwrap();
        let expected = hash(&run(&job, &cpu(2), false).unwrap().parameters).unwrap();
        let written = fs::read(folder.result()).unwrap();
        let mut contexts = vec![cpu(1), cpu(3)];
        for isa in Isa::available() {
            contexts.extend(open("cpu", &ContextOptions { isa: Some(isa), threads: Some(2), precision: None }));
        }
        contexts.extend(common::gpus());
        let options = GenerateOptions { max_tokens: 8, ..Default::default() };
        let mut texts = Vec::new();
        for context in contexts {
            let outcome = run(&job, &context, false).unwrap();
            assert_eq!(hash(&outcome.parameters).unwrap(), expected, "{name} {context:?}");
            let generator = with(name, context, Some(folder.result())).unwrap();
            let prompt: Vec<u32> = (5..25).collect();
            texts.push((bits(&generator.logits(&prompt).unwrap()), generator.generate("the", &options).unwrap()));
        }
        assert!(texts.iter().all(|text| *text == texts[0]), "{name}");
        let recomputed = folder.job(name, &[("epochs = 2", "epochs = 2\nrecompute = true")]).unwrap();
        assert_eq!(hash(&run(&recomputed, &cpu(2), false).unwrap().parameters).unwrap(), expected, "{name}");
        run(&folder.job(name, &[("epochs = 2", "epochs = 1")]).unwrap(), &cpu(1), false).unwrap();
        let rest = run(&folder.job(name, &[]).unwrap(), &cpu(2), true).unwrap();
        assert_eq!((hash(&rest.parameters).unwrap(), rest.epochs.len()), (expected, 1), "{name}");
        assert!(fs::read(folder.result()).unwrap() == written, "{name}");
    }
}

#[test]
fn adapters_that_add_nothing_change_no_bit() {
    let folder = Folder::new("nothing");
    run(&folder.job("llama", &[("epochs = 2", "epochs = 1")]).unwrap(), &cpu(2), false).unwrap();
    let weights = Weights::open(folder.result()).unwrap();
    let tensor = |name: &String| {
        let dims = weights.dims(name).unwrap();
        let own = weights.tensor(name, dims).unwrap();
        (
            name.clone(),
            if name.ends_with("lora_b") {
                Tensor::new(&vec![0f32; own.shape().elements()], dims).unwrap()
            } else {
                own
            },
        )
    };
    let file = folder.0.path("zeros.safetensors");
    write_tensors(&file, &weights.names().iter().map(tensor).collect::<Vec<_>>()).unwrap();
    let tokens: Vec<u32> = (3..40).collect();
    let logits = |adapters| bits(&with("llama", cpu(2), adapters).unwrap().logits(&tokens).unwrap());
    let plain = logits(None);
    assert!(logits(Some(file)) == plain && logits(Some(folder.result())) != plain);
}

#[test]
fn faulty_jobs_and_files_are_refused_with_what_is_wrong() {
    let folder = Folder::new("faulty");
    for (from, to, expected) in [
        ("rank = 2", "rank = 0", "adapters of rank 0 and scale"),
        (
            "\"ffn_down\"",
            "\"output\"",
            "model.on has 'output'; it can have attn_q, attn_k, attn_v, attn_output, ffn_gate,",
        ),
        ("context = 16", "context = 1000", "model.context is 1000; it must be from 1 to the"),
        ("held_out = 4", "held_out = 6000", "tokens are too few for samples of 16 to train with and to hold out"),
        ("\"MODEL\"", "\"none.gguf\"", "none.gguf: No such file"),
        ("\"text\"", "\"pairs\"", "and pairs one of the kind 'sentences'"),
    ] {
        let error = folder.job("llama", &[(from, to)]).and_then(|job| run(&job, &cpu(1), false)).err().unwrap();
        assert!(error.message().contains(expected), "{error}\n{expected}");
    }
    run(&folder.job("llama", &[("epochs = 2", "epochs = 1")]).unwrap(), &cpu(2), false).unwrap();
    let refused = |name: &str, adapters: PathBuf| {
        let error = with(name, cpu(1), Some(adapters)).err().unwrap();
        (error.status(), error.message().to_owned())
    };
    assert_eq!(refused("llama", folder.0.path("none")).0, Status::Io);
    let (status, text) = refused("llama", common::shared("tiny/model.safetensors"));
    assert!(status == Status::InvalidArgument && text.contains("the tensor 'adapters.scale' is not among"), "{text}");
    let (status, text) = refused("gemma3", folder.result());
    assert!(status == Status::ShapeMismatch && text.contains("lora_a"), "{text}");
    let scale = || ("adapters.scale".to_owned(), Tensor::new(&[1f32], &[1]).unwrap());
    let other = |name: &str| (name.to_owned(), Tensor::new(&[1f32], &[1, 1]).unwrap());
    for name in ["blk.99.attn_q.lora_a", "blk.0.attn_z.lora_a", "token_embd.lora_a", "blk.0.attn_q"] {
        let file = folder.0.path("other.safetensors");
        write_tensors(&file, &[scale(), other(name)]).unwrap();
        let (_, text) = refused("llama", file);
        assert!(text.contains(&format!("'{name}' is no adapter of a model with ")), "{text}");
    }
}
