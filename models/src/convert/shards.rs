//! The tensors of a folder's safetensors files.

use super::json::Object;
use crate::text::fault;
use adead::nn::Weights;
use adead::{Error, Result, Status, Tensor};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One file, or several with an index.
pub(super) struct Shards {
    folder: PathBuf,
    files: Vec<Weights>,
    /// The file of each tensor.
    tensors: BTreeMap<String, usize>,
    /// The bytes of all files.
    pub bytes: u64,
}

const INDEX: &str = "model.safetensors.index.json";
const WHOLE: &str = "model.safetensors";

impl Shards {
    /// Opens the files of a folder: those of the index, or `model.safetensors`. `io` for a file that is missing or can't be read,
    /// `invalid_argument` for one that is malformed, and for an index that names other tensors than the files have.
    pub fn open(folder: &Path) -> Result<Shards> {
        let mut shards = Shards { folder: folder.into(), files: vec![], tensors: BTreeMap::new(), bytes: 0 };
        let Some(index) = Object::open(&folder.join(INDEX))? else {
            if !folder.join(WHOLE).exists() {
                let text = format!("it has neither {WHOLE} nor {INDEX}; models are converted from safetensors files");
                return Err(fault(Status::Io, folder, text));
            }
            shards.add(WHOLE)?;
            return Ok(shards);
        };
        let map = index.object("weight_map")?.ok_or_else(|| index.wrong("weight_map", "an object"))?;
        let mut wanted: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (tensor, file) in map.fields() {
            // A name, so that no file outside the folder is read.
            let name = file.as_str().filter(|name| Path::new(name).file_name().is_some_and(|own| own == *name));
            let name = name.ok_or_else(|| map.wrong(tensor, "the name of a file in the folder"))?;
            wanted.entry(name).or_default().push(tensor);
        }
        for (name, tensors) in wanted {
            let file = shards.files.len();
            shards.add(name)?;
            if let Some(tensor) = tensors.iter().find(|&&tensor| shards.tensors.get(tensor) != Some(&file)) {
                let text = format!("the tensor '{tensor}' is said to be in {name}, which lacks it");
                return Err(index.error(Status::InvalidArgument, text));
            }
        }
        let all = map.fields().len();
        if shards.tensors.len() != all {
            let text = format!("it names {all} tensors, and the files have {}", shards.tensors.len());
            return Err(index.error(Status::InvalidArgument, text));
        }
        Ok(shards)
    }

    fn add(&mut self, name: &str) -> Result<()> {
        let path = self.folder.join(name);
        let weights = Weights::open(&path)?;
        self.bytes += std::fs::metadata(&path).map_err(|error| fault(Status::Io, &path, error))?.len();
        for tensor in weights.names() {
            if let Some(other) = self.tensors.insert(tensor.clone(), self.files.len()) {
                let text = format!("it has the tensor '{tensor}', as {} does", self.files[other].path().display());
                return Err(fault(Status::InvalidArgument, &path, text));
            }
        }
        self.files.push(weights);
        Ok(())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    fn file(&self, name: &str) -> Result<&Weights> {
        let missing = || {
            let text = format!("the tensor '{name}' is not among the {} tensors of its files", self.tensors.len());
            Error::new(Status::InvalidArgument, format!("{}: {text}", self.folder.display()))
        };
        Ok(&self.files[*self.tensors.get(name).ok_or_else(missing)?])
    }

    /// Checks that there is a tensor of these dimensions. `invalid_argument` without it, `shape_mismatch` for others.
    pub fn check(&self, name: &str, dims: &[usize]) -> Result<()> {
        let file = self.file(name)?;
        let found = file.dims(name)?;
        if found != dims {
            let text = format!("the tensor '{name}' is {found:?}; by config.json it must be {dims:?}");
            return Err(fault(Status::ShapeMismatch, file.path(), text));
        }
        Ok(())
    }

    /// Reads a tensor as f32.
    pub fn tensor(&self, name: &str, dims: &[usize]) -> Result<Tensor> {
        self.file(name)?.tensor(name, dims)
    }
}
