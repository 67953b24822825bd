//! The plan of a file from a folder of Hugging Face.

use super::config::Config;
use super::json::Object;
use super::shards::Shards;
use super::special::Special;
use super::target::{Plan, Target};
use super::tensors;
use super::tokens::Tokens;
use super::{Conversion, Origin, PlannedTensor, Source};
use crate::gguf::{Header, Kind};
use crate::text::fault;
use adead::{Result, Status};
use std::path::Path;

/// llama.cpp's number of how blocks are made.
const QUANTIZATION_VERSION: u32 = 2;

pub(super) fn plan(folder: &Path, target: Option<Target>) -> Result<Conversion> {
    match std::fs::metadata(folder) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(fault(Status::InvalidArgument, folder, "a model is a folder, and this is a file")),
        Err(error) => return Err(fault(Status::Io, folder, error)),
    }
    let file = Object::required(&folder.join("config.json"))?;
    let config = Config::read(&file)?;
    let tokenizer = Object::required(&folder.join("tokenizer.json"))?;
    let mut tokens = Tokens::read(&tokenizer, config.words)?;
    let shards = Shards::open(folder)?;
    let target = target.unwrap_or(config.kind.into());

    let mut header = Header::new();
    header.set("general.architecture", config.architecture.name)?;
    header.set("general.type", "model")?;
    if let Some(name) = name(folder) {
        header.set("general.name", name.as_str())?;
    }
    config.write(&mut header)?;
    set_target(&mut header, target)?;
    tokens.write(&mut header)?;
    Special { folder, config: &file, tokenizer: &tokenizer }.write(&mut header, &tokens)?;

    let mut planned = Vec::new();
    if let Some(factors) = &config.rope.factors {
        planned.push(PlannedTensor {
            name: "rope_freqs.weight".into(),
            dims: vec![factors.len()],
            kind: Kind::F32,
            origin: Origin::Values(factors.clone()),
        });
    }
    let tensors = tensors::map(&config, &shards)?;
    let head = tensors.iter().any(|tensor| tensor.name == "output.weight");
    let plan = Plan { target, layers: config.layers, head };
    let mut others = Vec::new();
    for tensor in tensors {
        let (kind, fits) = plan.kind(&tensor.name, &tensor.dims);
        others.extend((!fits).then_some(kind));
        let origin = Origin::Folder(tensor.from, tensor.change);
        planned.push(PlannedTensor { name: tensor.name, dims: tensor.dims, kind, origin });
    }
    for tensor in &planned {
        header.tensor(&tensor.name, &tensor.dims, tensor.kind)?;
    }
    let mut notes = tokens.notes;
    notes.extend(plan.note(&others, "are stored as {}"));
    let source_bytes = shards.bytes;
    Ok(Conversion { header, source: Source::Folder(shards), tensors: planned, notes, source_bytes })
}

/// Says how matrices are stored.
pub(super) fn set_target(header: &mut Header, target: Target) -> Result<()> {
    header.set("general.file_type", target.file_type()?)?;
    if target.main().block() > Some(1) {
        header.set("general.quantization_version", QUANTIZATION_VERSION)?;
    }
    Ok(())
}

/// The folder's own name.
fn name(folder: &Path) -> Option<String> {
    let path = folder.canonicalize().ok()?;
    Some(path.file_name()?.to_string_lossy().into_owned())
}
