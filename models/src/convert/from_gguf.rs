//! The plan of a file from a GGUF file, and its tensors' values in parts.

use super::{Conversion, Origin, PlannedTensor, Source, folder, kinds};
use crate::gguf::{Gguf, Header, Kind, Rows};
use crate::text::architecture::Architecture;
use crate::text::blocks;
use adead::{Result, Status};

/// Values that are converted at once.
const PART: usize = 1 << 22;

pub(super) fn plan(gguf: Gguf, kind: Kind) -> Result<Conversion> {
    let name: &str = gguf.require("general.architecture")?;
    if Architecture::of(name).is_none() {
        let text = format!("the architecture is '{name}'; supported are {}", Architecture::names());
        return Err(gguf.error(Status::Unsupported, text));
    }
    let mut header = Header::new();
    for (key, value) in gguf.metadata() {
        header.set(key, value.clone())?;
    }
    folder::set_kind(&mut header, kind)?;
    let (mut planned, mut source_bytes) = (Vec::new(), 0);
    for (index, info) in gguf.tensors().iter().enumerate() {
        blocks::check(info.kind()).map_err(|error| {
            gguf.error(error.status(), format!("the tensor '{}': {}", info.name(), error.message()))
        })?;
        let own = match kinds::kind_of(info.dims(), kind) {
            _ if info.dims().len() == 1 => info.kind(),
            // f16 would make them larger, and no better.
            other if other != kind && info.kind().block() > Some(1) => info.kind(),
            own => own,
        };
        header.tensor(info.name(), info.dims(), own)?;
        source_bytes = source_bytes.max(info.range().end as u64);
        let (name, dims) = (info.name().to_owned(), info.dims().to_vec());
        planned.push(PlannedTensor { name, dims, kind: own, origin: Origin::Gguf(index) });
    }
    let matrices = planned.iter().filter(|tensor| tensor.dims.len() > 1);
    let others: Vec<Kind> = matrices.map(|tensor| tensor.kind).filter(|&own| own != kind).collect();
    let floats = others.iter().filter(|own| own.block() == Some(1)).count();
    let mut notes: Vec<String> = kinds::note(floats, kind, "are stored as F16").into_iter().collect();
    notes.extend(kinds::note(others.len() - floats, kind, "stay as they are"));
    let twice = gguf.tensors().iter().zip(&planned);
    let twice = twice.filter(|(info, own)| info.kind().block() > Some(1) && info.kind() != own.kind).count();
    if twice > 0 && kind.block() > Some(1) {
        notes.push(format!(
            "{twice} tensors are blocks already, and lose again: convert the model of floats if you can"
        ));
    }
    Ok(Conversion { header, source: Source::Gguf(Box::new(gguf)), tensors: planned, notes, source_bytes })
}

/// Gives a tensor's bytes as another kind, in parts of whole rows, each with the number of its values.
pub(super) fn parts(
    gguf: &Gguf,
    index: usize,
    kind: Kind,
    give: &mut dyn FnMut(Result<(usize, Vec<u8>)>) -> Result<()>,
) -> Result<()> {
    let info = &gguf.tensors()[index];
    let (bytes, from) = (gguf.bytes(info), info.kind());
    let width = info.dims()[info.dims().len() - 1];
    let (Some(block), Some(block_bytes)) = (from.block(), from.block_bytes()) else {
        unreachable!("the kind was checked");
    };
    let row = width / block * block_bytes;
    let rows = (PART / width.max(1)).max(1);
    for (part, bytes) in bytes.chunks((rows * row).max(1)).enumerate() {
        let count = bytes.len() / block_bytes * block;
        let converted = if from == kind {
            Ok(bytes.to_vec())
        } else {
            let values = blocks::floats(from, bytes)?;
            kinds::encode(kind, &values, Rows { width: width.max(1), first: part * rows })
        };
        give(converted.map(|bytes| (count, bytes)))?;
    }
    Ok(())
}
