//! Training jobs: files, data, runs that stop and go on.

use adead::nn::Weights;
use adead::{Context, ContextOptions, Error, Status};
use adead_models::train::{Event, Job, RunOptions};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder that is gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("adead-job-{}-{name}", std::process::id()));
        fs::create_dir_all(folder.join("digits")).unwrap();
        Folder(folder)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.0.join(name), text).unwrap();
        self.0.join(name)
    }

    /// Digits that are easy to tell apart: digit d has a bright column 2d, and one brighter pixel that tells images apart.
    fn digits(&self, each: usize) {
        for digit in 0..10 {
            let image = |number: usize| {
                let pixel = move |at: usize| {
                    if at % 28 / 2 == digit {
                        1.0
                    } else if at == 27 + 28 * number {
                        0.5
                    } else {
                        0.0
                    }
                };
                (0..784).map(pixel).collect::<Vec<f32>>()
            };
            let all: Vec<f32> = (0..each).flat_map(image).collect();
            self.write(&format!("digits/{digit}.json"), format!("{{\"data\":{all:?}}}"));
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const DIGITS: &str = r#"
seed = 3
batch = 16
epochs = 4
shards = 2
data = { kind = "digits", folder = "digits", held_out = 5, shift = 1 }
optimizer = { kind = "adamw", rate = 0.01, warmup = 2, schedule = "cosine", average = 0.5, clip_norm = 1.0 }
checkpoint = { file = "state.safetensors" }
result = "weights.safetensors"

[model]
kind = "layers"
layers = [
    { conv = { channels = 2, size = 3, stride = 2, padding = 1 } }, "gelu", { avg_pool = 2 }, "flatten", "layer_norm",
    { dropout = 0.1 }, { linear = 10 },
]
"#;

fn cpu(threads: usize) -> Context {
    Context::with_options("cpu", &ContextOptions { threads: Some(threads), ..Default::default() }).unwrap()
}

/// Runs a job. Returns the weights' bits and the last epoch's accuracy.
fn run(job: &Job, threads: usize, resume: bool) -> (Vec<u32>, Option<f64>) {
    let outcome = job.run(&cpu(threads), RunOptions { resume, ranks: None }, &mut |_| Ok(())).unwrap();
    let values = outcome.parameters.iter().flat_map(|(_, tensor)| tensor.to_vec::<f32>().unwrap());
    (values.map(f32::to_bits).collect(), outcome.epochs.last().map(|epoch| epoch.accuracy))
}

#[test]
fn a_job_learns_and_ends_in_the_same_bits_when_it_was_stopped() {
    let folder = Folder::new("digits");
    folder.digits(24);
    let job = Job::read(folder.write("job.toml", DIGITS)).unwrap();
    let (expected, accuracy) = run(&job, 2, false);
    assert!(accuracy.unwrap() > 0.9, "{accuracy:?}");
    assert!(run(&job, 1, false).0 == expected && run(&job, 3, false).0 == expected);
    // The result has the weights alone.
    let weights = Weights::open(folder.0.join("weights.safetensors")).unwrap();
    let names = weights.names();
    assert!(names == ["0.bias", "0.weight", "4.bias", "4.weight", "6.bias", "6.weight"], "{names:?}");
    let found = job.run(&cpu(1), RunOptions::default(), &mut |_| Ok(())).unwrap();
    for (name, tensor) in &found.parameters {
        let written = weights.tensor(name, tensor.dims()).unwrap().to_vec::<f32>().unwrap();
        assert_eq!(written, tensor.to_vec::<f32>().unwrap(), "{name}");
    }

    // Stopped within the third epoch: the checkpoint is of the second one.
    let mut steps = 0;
    let stopped = job.run(&cpu(2), RunOptions::default(), &mut |event| match event {
        Event::Step { epoch: 3, .. } => Err(Error::new(Status::NotReady, "enough".to_owned())),
        Event::Step { step, steps: all, loss, .. } => {
            steps += 1;
            assert!(*step == steps && *all == 48 && loss.is_finite());
            Ok(())
        }
        Event::Epoch(_) => Ok(()),
    });
    assert_eq!(stopped.err().unwrap().message(), "enough");
    assert!(run(&job, 3, true).0 == expected);
    // Nothing is left to do.
    assert_eq!(run(&job, 1, true), (expected, None));
}

#[test]
fn a_decoder_learns_a_text() {
    let folder = Folder::new("text");
    folder.write("text", "the ferry came in and the harbour was quiet. ".repeat(60));
    let job = r#"
batch = 8
epochs = 3
data = { kind = "text", files = ["text"], held_out = 4 }
model = { kind = "gpt", layers = 1, heads = 2, width = 16, context = 16, dropout = 0.1 }
optimizer = { kind = "adam", rate = 0.02 }
"#;
    let job = Job::read(folder.write("job.toml", job)).unwrap();
    let mut losses = Vec::new();
    job.run(&cpu(2), RunOptions::default(), &mut |event| {
        if let Event::Epoch(epoch) = event {
            losses.push(epoch.held_out_loss);
        }
        Ok(())
    })
    .unwrap();
    assert!(losses.len() == 3 && losses[2] < 2.5 && losses[2] < losses[0], "{losses:?}");
}

#[test]
fn faulty_jobs_are_refused_with_what_is_wrong() {
    let folder = Folder::new("faulty");
    folder.digits(4);
    let message = |from: &str, to: &str| {
        let text = DIGITS.replacen(from, to, 1);
        assert_ne!(text, DIGITS);
        let path = folder.write("job.toml", text);
        let error = match Job::read(&path) {
            Ok(job) => job.run(&cpu(1), RunOptions { resume: true, ranks: None }, &mut |_| Ok(())).err().unwrap(),
            Err(error) => error,
        };
        error.message().replace(&*folder.0.to_string_lossy(), "F")
    };
    for (from, to, text) in [
        ("batch = 16", "batch = 0", "F/job.toml: batch is 0 and epochs 4; both must be at least 1"),
        ("shards = 2", "shards = 3", "F/job.toml: shards is 3; it must divide the batch of 16"),
        ("shards = 2", "shards = 0", "F/job.toml: shards is 0; it must divide the batch of 16"),
        (
            "held_out = 5",
            "held_out = 1",
            "F/job.toml: data.held_out is 1; it must be at least 2: one sample in so many is held out",
        ),
        ("\"adamw\"", "\"lion\"", "F/job.toml: optimizer.kind is 'lion'; it can be sgd, adam or adamw"),
        ("\"cosine\"", "\"steps\"", "F/job.toml: optimizer.schedule is 'steps'; it can be constant or cosine"),
        ("rate = 0.01", "rate = 0.0", "F/job.toml: optimizer.rate is 0; it must be more than 0"),
        ("epochs = 4", "epochs = 4\nepoch = 1", "unknown field `epoch`"),
        ("\"gelu\"", "\"swish\"", "unknown variant `swish`"),
        ("batch = 16", "batch = 64", "a batch of 64 is more than the 40 samples to train with"),
        ("linear = 10", "linear = 9", "gather: id 9"),
        ("folder = \"digits\"", "folder = \"none\"", "F/none/0.json: No such file"),
        ("size = 3", "size = 40", "a window of 40 × 40 with a step of 2 does not fit 28 × 28"),
    ] {
        let found = message(from, to);
        assert!(found.contains(text), "{found}\n{text}");
    }
    folder.write("digits/4.json", "{\"data\":[0.5]}");
    assert!(message("seed = 3", "seed = 4").contains("4.json: 1 numbers; images of 28 × 28 have a multiple of 784"));
    assert_eq!(Job::read(Path::new("/nowhere/job.toml")).unwrap_err().status(), Status::Io);
}

#[test]
fn a_checkpoint_of_another_job_is_refused() {
    let folder = Folder::new("other");
    folder.digits(24);
    let job = Job::read(folder.write("job.toml", DIGITS)).unwrap();
    run(&job, 2, false);
    let mut other = job.clone();
    other.batch = 18;
    let error = other.run(&cpu(1), RunOptions { resume: true, ranks: None }, &mut |_| Ok(())).err().unwrap();
    assert!(error.message().ends_with("state.safetensors: it has 48 steps; the job has 44, 11 an epoch"), "{error}");
}
