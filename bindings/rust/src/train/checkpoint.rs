//! Checkpoints: a trainer's state in a safetensors file.

use super::scaling::STATE;
use super::trainer::Trainer;
use crate::nn::Weights;
use adead_core::{Error, Result, Status, Tensor};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

/// The numbers of a trainer in a checkpoint: the step and the seed, in words of 16 bits, lowest first, which f32 has exactly.
const COUNTERS: &str = "training.counters";

/// The state of the loss scale, where the trainer has one.
const SCALE: &str = "training.scale";

fn words(numbers: [u64; 2]) -> Vec<f32> {
    numbers.iter().flat_map(|number| (0..4).map(move |word| (number >> (16 * word) & 0xffff) as f32)).collect()
}

fn numbers(words: &[f32]) -> [u64; 2] {
    [0, 4].map(|first| (0..4).map(|word| (words[first + word] as u64) << (16 * word)).sum())
}

/// The name of a parameter's tensor of the optimiser.
fn state_name(state: &str, parameter: &str) -> String {
    format!("training.{state}.{parameter}")
}

impl Trainer {
    /// Writes the parameters, the optimiser's tensors, the step and the loss scale to a safetensors file, atomically.
    /// Parameters keep their names, so the file is also a file of weights. `io` if it can't be written, `invalid_argument`
    /// between the shards of a batch.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        if self.accumulated() > 0 {
            let text = "a batch is under way: apply it before the trainer is saved";
            return Err(Error::new(Status::InvalidArgument, text.to_owned()));
        }
        let counters = Tensor::new(&words([self.step, self.seed()]), &[8])?;
        let mut tensors = self.parameters()?;
        for (i, state) in self.optimizer.states().iter().enumerate() {
            let all = &self.whole.trained(1 + i)?;
            tensors.extend(self.names.iter().map(|name| state_name(state, name)).zip(self.flat.parts(all)?));
        }
        tensors.push((COUNTERS.into(), counters));
        if let Some(scaling) = &self.scaling {
            tensors.push((SCALE.into(), scaling.tensor()?));
        }
        write_tensors(path, &tensors)
    }

    /// Continues from a checkpoint of the same network and optimiser. The next steps have the same bits as without the
    /// interruption. After an error nothing has changed.
    ///
    /// # Errors Those of [`Weights::open`]; `invalid_argument` also if a tensor is missing or the seed differs;
    /// `shape_mismatch` if a shape differs.
    pub fn load(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let weights = Weights::open(path.as_ref())?;
        let [step, seed] = numbers(weights.tensor(COUNTERS, &[8])?.as_slice::<f32>()?);
        if seed != self.seed() {
            let text = format!("{}: its seed is {seed}, and the trainer's {}", weights.path().display(), self.seed());
            return Err(Error::new(Status::InvalidArgument, text));
        }
        let read = |named: &dyn Fn(&str) -> String| {
            let tensor = |(name, dims): (&String, &Vec<usize>)| weights.tensor(&named(name), dims);
            let tensors = self.names.iter().zip(self.flat.dims()).map(tensor).collect::<Result<Vec<_>>>()?;
            self.flat.joined(&tensors)
        };
        let mut tensors = vec![read(&|name| name.to_owned())?];
        for state in self.optimizer.states() {
            tensors.push(read(&|name| state_name(state, name))?);
        }
        let scaling = self.scaling.map(|own| own.read(&weights.tensor(SCALE, &[STATE])?)).transpose()?;
        self.whole.set(&self.context, &tensors)?;
        (self.step, self.scaling) = (step, scaling);
        Ok(())
    }
}

/// Writes tensors of f32 to a safetensors file, sorted by name. It replaces an older file atomically. Its metadata contain
/// `format: pt`, which Hugging Face's libraries require.
///
/// # Errors `io` if it can't be written, `dtype_mismatch` unless every tensor is f32.
pub fn write_tensors(path: impl AsRef<Path>, tensors: &[(String, Tensor)]) -> Result<()> {
    let path = path.as_ref();
    let mut sorted: Vec<&(String, Tensor)> = tensors.iter().collect();
    sorted.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let values = sorted.iter().map(|(_, tensor)| tensor.as_slice::<f32>()).collect::<Result<Vec<_>>>()?;
    let (mut header, mut end) = (String::from("{\"__metadata__\":{\"format\":\"pt\"}"), 0);
    for (name, tensor) in &sorted {
        let begin = end;
        end += 4 * tensor.shape().elements();
        let dims = tensor.dims();
        let _ = write!(
            header,
            ",{}:{{\"dtype\":\"F32\",\"shape\":{dims:?},\"data_offsets\":[{begin},{end}]}}",
            quoted(name)
        );
    }
    header.push('}');
    while header.len() % 8 != 0 {
        header.push(' ');
    }
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".part");
    let unfinished = Path::new(&unfinished);
    let all = || -> std::result::Result<(), std::io::Error> {
        let mut file = BufWriter::new(File::create(unfinished)?);
        file.write_all(&(header.len() as u64).to_le_bytes())?;
        file.write_all(header.as_bytes())?;
        for value in values.iter().flat_map(|values| values.iter()) {
            file.write_all(&value.to_le_bytes())?;
        }
        file.into_inner()?.sync_all()?;
        fs::rename(unfinished, path)
    };
    all().map_err(|error| {
        let _ = fs::remove_file(unfinished);
        Error::new(Status::Io, format!("{}: {error}", path.display()))
    })
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
