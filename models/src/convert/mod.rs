//! Converts models to GGUF files, from a Hugging Face folder or from another GGUF file.
//!
//! ```no_run
//! use adead_models::convert::Conversion;
//! use adead_models::gguf::Kind;
//!
//! let conversion = Conversion::from_path("SmolLM2-135M-Instruct", Some(Kind::Q8_0.into()))?;
//! for note in conversion.notes() {
//!     eprintln!("{note}");
//! }
//! conversion.write_file("SmolLM2-135M-Instruct.Q8_0.gguf", |_, _| Ok(()))?;
//! # Ok::<(), adead::Error>(())
//! ```

mod config;
mod file;
mod folder;
mod from_gguf;
mod json;
mod kinds;
mod rope;
mod scores;
mod shards;
mod special;
mod target;
mod tensors;
mod tokens;
mod words;

use crate::gguf::{Gguf, Header, Kind, Rows};
use adead::{Error, Result};
use shards::Shards;
use std::io::Write;
use std::path::Path;
pub use target::Target;
use tensors::Change;

/// A planned file: its metadata and tensors. [`write`](Conversion::write) writes it.
pub struct Conversion {
    header: Header,
    source: Source,
    tensors: Vec<PlannedTensor>,
    notes: Vec<String>,
    source_bytes: u64,
}

/// The source of the values.
enum Source {
    Folder(Shards),
    Gguf(Box<Gguf>),
}

/// A tensor of the new file.
#[derive(Clone, Debug)]
pub struct PlannedTensor {
    name: String,
    dims: Vec<usize>,
    kind: Kind,
    origin: Origin,
}

#[derive(Clone, Debug)]
enum Origin {
    /// A tensor of the folder.
    Folder(String, Change),
    /// Values computed from the configuration.
    Values(Vec<f32>),
    /// A tensor of the file, by its number.
    Gguf(usize),
}

impl PlannedTensor {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the dimensions, outermost first.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Returns how its values are stored.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the number of values.
    pub fn elements(&self) -> usize {
        self.dims.iter().product()
    }
}

impl Conversion {
    /// Plans the file of a model in a Hugging Face folder. The folder must have `config.json`, `tokenizer.json`, and
    /// `model.safetensors` or the files of `model.safetensors.index.json`. `tokenizer_config.json` and `generation_config.json` are
    /// optional; they contain special tokens and the chat template. Matrices are stored as `kind`, or as in the folder if it is
    /// `None`; vectors are stored as f32. Matrices whose rows are not whole blocks are stored as f16, and
    /// [`notes`](Conversion::notes) name them.
    ///
    /// # Errors `io` if a file is missing or can't be read, `invalid_argument` or `shape_mismatch` if one is malformed or the files
    /// don't fit each other, `unsupported` for another kind of model or tokenizer.
    pub fn from_folder(folder: impl AsRef<Path>, kind: Option<Target>) -> Result<Conversion> {
        folder::plan(folder.as_ref(), kind)
    }

    /// Plans a copy of a GGUF file in which matrices are stored as `kind`. Blocks are decoded as by
    /// [`dequantize`](adead::Context::dequantize). Three kinds of tensors are copied unchanged: vectors, tensors that are already
    /// stored as `kind`, and blocks in rows that are not a multiple of `kind`'s block.
    ///
    /// # Errors
    /// `unsupported` for a model of another architecture and for tensors whose values can't be read, `invalid_argument` for metadata
    /// that is missing or too long.
    pub fn from_gguf(gguf: Gguf, kind: impl Into<Target>) -> Result<Conversion> {
        from_gguf::plan(gguf, kind.into())
    }

    /// Returns the tensors, in the order of the new file.
    pub fn tensors(&self) -> &[PlannedTensor] {
        &self.tensors
    }

    /// Returns notes for the user: which tensors are stored in another type, and which settings a GGUF file can't hold.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the total size of the source files in bytes.
    pub fn source_bytes(&self) -> u64 {
        self.source_bytes
    }

    /// Returns the number of values in all tensors.
    pub fn elements(&self) -> u64 {
        self.tensors.iter().map(|tensor| tensor.elements() as u64).sum()
    }

    /// Writes the file tensor by tensor; only one is in memory at a time. `progress` is called with the number of values written so
    /// far and the total; its error ends the conversion. The same model gives the same bytes on every machine.
    ///
    /// # Errors
    /// `io` if a file can't be read or written, `invalid_argument` with the tensor for a value that is NaN or infinite, or that the
    /// kind can't hold; the error of `progress`.
    pub fn write<W: Write>(self, out: W, mut progress: impl FnMut(u64, u64) -> Result<()>) -> Result<W> {
        let all = self.elements();
        let mut writer = self.header.begin(out)?;
        let mut done = 0;
        for tensor in &self.tensors {
            let mut put = |values: usize, bytes: &[u8]| {
                writer.write(bytes)?;
                done += values as u64;
                progress(done, all)
            };
            let named = |error: Error| {
                let text = format!("the tensor '{}': {}", tensor.name, error.message());
                Error::new(error.status(), text)
            };
            let width = tensor.dims.last().copied().unwrap_or(1).max(1);
            let rows = Rows { width, first: 0 };
            match (&tensor.origin, &self.source) {
                (Origin::Values(values), _) => {
                    put(values.len(), &kinds::encode(tensor.kind, values, rows).map_err(named)?)?;
                }
                (Origin::Folder(from, change), Source::Folder(shards)) => {
                    let values = shards.tensor(from, &tensor.dims)?;
                    let values = change.apply(values.as_slice()?, if tensor.dims.len() == 1 { 1 } else { width });
                    put(values.len(), &kinds::encode(tensor.kind, &values, rows).map_err(named)?)?;
                }
                (&Origin::Gguf(index), Source::Gguf(gguf)) => {
                    from_gguf::parts(gguf, index, tensor.kind, &mut |part| {
                        let (values, bytes) = part.map_err(named)?;
                        put(values, &bytes)
                    })?;
                }
                _ => unreachable!("a tensor is planned from the source"),
            }
        }
        writer.finish()
    }
}

impl std::fmt::Debug for Conversion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Conversion({} tensors, {} values)", self.tensors.len(), self.elements())
    }
}
