//! Jobs that train a model of sentences further, with the small made-up model of `tests/sentences`.

mod common;

use adead::device::Isa;
use adead::nn::Weights;
use adead::{Context, ContextOptions, Status};
use adead_models::SentenceEncoder;
use adead_models::train::{Job, Outcome, RunOptions, hash};
use common::{Scratch, cpu, open, shared};
use std::fs;
use std::path::PathBuf;

const PAIRS: &str = "the ferry was quiet\tein schiff\nthe harbour\tle port\nthe ferry came in\t港 口\nquiet harbour\tи и\n\
a b c\td e f\n1 2 3\t4 5 6\nthe port\tein port\nwas in the ferry\tle ferry\nx y\tz z\nquiet!\tquiet?\n7 8\t9 0\nharbours\tferrying\n";

const JOB: &str = r#"
seed = 3
batch = 4
epochs = 3
shards = 2
result = "tuned"
data = { kind = "pairs", files = ["pairs.tsv"], held_out = 3 }
model = { kind = "sentences", folder = "MODEL", length = 12, dropout = 0.1 }
optimizer = { kind = "adamw", rate = 0.003, clip_norm = 1.0 }
checkpoint = { file = "state.safetensors" }
"#;

/// A folder with a job.
struct Folder(Scratch);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = Scratch::new(&format!("pairs-{name}"));
        folder.write("pairs.tsv", PAIRS);
        Folder(folder)
    }

    fn job(&self, from: &str, to: &str) -> adead::Result<Job> {
        let tiny = shared("tiny").canonicalize().unwrap();
        let text = JOB.replacen(from, to, 1).replace("MODEL", tiny.to_str().unwrap());
        Job::read(self.0.write("job.toml", &text))
    }

    /// The error of a job, without the folder's path.
    fn refusal(&self, from: &str, to: &str) -> (Status, String) {
        let run = self.job(from, to).and_then(|job| run(&job, &cpu(1), false));
        let error = run.err().unwrap();
        (error.status(), error.message().replace(&*self.0.0.to_string_lossy(), "F"))
    }
}

fn run(job: &Job, context: &Context, resume: bool) -> adead::Result<Outcome> {
    job.run(context, RunOptions { resume, ranks: None }, &mut |_| Ok(()))
}

#[test]
fn a_model_learns_pairs_and_its_folder_can_be_opened() {
    let folder = Folder::new("learns");
    let job = folder.job("epochs = 3", "epochs = 12").unwrap();
    let outcome = run(&job, &cpu(2), false).unwrap();
    let losses: Vec<f64> = outcome.epochs.iter().map(|epoch| epoch.loss).collect();
    assert!(losses[11] < 0.5 * losses[0] && (0.0..=1.0).contains(&outcome.epochs[11].accuracy), "{losses:?}");

    let (old, new) = (shared("tiny"), folder.0.path("tuned"));
    let (before, after) =
        (SentenceEncoder::open(&old, &cpu(1)).unwrap(), SentenceEncoder::open(&new, &cpu(1)).unwrap());
    let close = |encoder: &SentenceEncoder| {
        let rows = encoder.encode(&["the ferry was quiet", "ein schiff"]).unwrap();
        rows.row(0).iter().zip(rows.row(1)).map(|(a, b)| a * b).sum::<f32>()
    };
    assert!(close(&after) > close(&before) + 0.1, "{} {}", close(&before), close(&after));

    // What no sentence has is as it was: words, positions and the second type.
    let weights = |folder: &PathBuf| Weights::open(folder.join("model.safetensors")).unwrap();
    let (old, new) = (weights(&old), weights(&new));
    assert_eq!(old.names(), new.names());
    let rows = |weights: &Weights, table: &str, count: usize| {
        let name = format!("embeddings.{table}_embeddings.weight");
        weights.tensor(&name, &[count, 32]).unwrap().to_vec::<f32>().unwrap()
    };
    for (table, count, kept, learnt) in [("word", 92, 4, 74), ("position", 40, 30, 3), ("token_type", 2, 1, 0)] {
        let (old, new) = (rows(&old, table, count), rows(&new, table, count));
        assert_eq!(old[kept * 32..][..32], new[kept * 32..][..32], "{table}");
        assert_ne!(old[learnt * 32..][..32], new[learnt * 32..][..32], "{table}");
    }
}

#[test]
fn every_instruction_set_every_number_of_threads_and_a_stop_give_the_same_bits() {
    let folder = Folder::new("bits");
    let job = folder.job("", "").unwrap();
    let expected = hash(&run(&job, &cpu(2), false).unwrap().parameters).unwrap();
    let written = fs::read(folder.0.path("tuned/model.safetensors")).unwrap();
    let mut contexts = vec![cpu(1), cpu(3)];
    for isa in Isa::available() {
        contexts.extend(open("cpu", &ContextOptions { isa: Some(isa), threads: Some(2), precision: None }));
    }
    contexts.extend(common::gpus());
    for context in &contexts {
        assert_eq!(hash(&run(&job, context, false).unwrap().parameters).unwrap(), expected, "{context:?}");
    }
    let recomputed = run(&folder.job("epochs = 3", "epochs = 3\nrecompute = true").unwrap(), &cpu(2), false).unwrap();
    assert_eq!(hash(&recomputed.parameters).unwrap(), expected);
    run(&folder.job("epochs = 3", "epochs = 1").unwrap(), &cpu(1), false).unwrap();
    let rest = run(&folder.job("", "").unwrap(), &cpu(2), true).unwrap();
    assert_eq!((hash(&rest.parameters).unwrap(), rest.epochs.len()), (expected, 2));
    assert!(fs::read(folder.0.path("tuned/model.safetensors")).unwrap() == written);
}

#[test]
fn faulty_jobs_are_refused_with_what_is_wrong() {
    let folder = Folder::new("faulty");
    let tiny = shared("tiny").canonicalize().unwrap();
    let tiny = tiny.to_str().unwrap();
    for (from, to, text) in [
        (
            "shards = 2",
            "shards = 4",
            "a shard has 1 pair of the batch of 4; the other pairs are what a pair is told apart",
        ),
        ("length = 12", "length = 25", "model.length is 25; it must be from 3 to the 24 tokens of the model"),
        ("held_out = 3", "held_out = 9", "12 pairs, and one in 9 is held out: that must be 2 or more"),
        ("held_out = 3", "held_out = 1", "data.held_out is 1; it must be at least 2"),
        ("\"MODEL\"", "\"none\"", "F/none: No such file"),
        (
            "result = \"tuned\"",
            &format!("result = \"{tiny}\""),
            "the result would replace the model that the job begins from",
        ),
        ("\"pairs\"", "\"text\"", "digits need a model of the kind 'layers'"),
        ("seed = 3", "storage = 'f16'", "storage is for models of the kinds 'layers' and 'gpt'"),
        ("seed = 3", "loss_scale = 'static'", "loss_scale is 'static'; it can be a power of two or 'dynamic'"),
        ("batch = 4", "batch = 16", "a batch of 16 is more than the 8 samples to train with"),
    ] {
        let (_, found) = folder.refusal(from, to);
        assert!(found.contains(text), "{found}\n{text}");
    }
    for bad in ["one sentence\n", "a\tb\tc\n"] {
        folder.0.write("pairs.tsv", &format!("a\tb\n{bad}"));
        let (status, text) = folder.refusal("", "");
        assert_eq!(status, Status::InvalidArgument);
        assert_eq!(text, "F/pairs.tsv: line 2 has no pair: two sentences with one tab between them");
    }
    folder.0.write("pairs.tsv", PAIRS);
    let mut job = folder.job("", "").unwrap();
    job.set_model(folder.0.path("none")).unwrap();
    assert_eq!(run(&job, &cpu(1), false).err().unwrap().status(), Status::Io);
}
