//! The plan of a file from a GGUF file, and its tensors' values in parts.

use super::target::{Plan, Target};
use super::{Conversion, Origin, PlannedTensor, Source, folder, kinds};
use crate::gguf::{Gguf, Header, Kind, Rows};
use crate::text::architecture::Architecture;
use crate::text::blocks;
use adead::{Result, Status};

/// Values that are converted at once.
const PART: usize = 1 << 22;

pub(super) fn plan(gguf: Gguf, target: Target) -> Result<Conversion> {
    let name: &str = gguf.require("general.architecture")?;
    if Architecture::of(name).is_none() {
        let text = format!("the architecture is '{name}'; supported are {}", Architecture::names());
        return Err(gguf.error(Status::Unsupported, text));
    }
    let mut header = Header::new();
    for (key, value) in gguf.metadata() {
        header.set(key, value.clone())?;
    }
    folder::set_target(&mut header, target)?;
    let layers: usize =
        gguf.optional::<u64>(&format!("{name}.block_count"))?.and_then(|n| n.try_into().ok()).unwrap_or(0);
    let head = gguf.tensors().iter().any(|info| info.name() == "output.weight");
    let plan = Plan { target, layers, head };
    let (mut planned, mut source_bytes) = (Vec::new(), 0);
    let (mut floats, mut blocks_left) = (Vec::new(), Vec::new());
    for (index, info) in gguf.tensors().iter().enumerate() {
        blocks::check(info.kind()).map_err(|error| {
            gguf.error(error.status(), format!("the tensor '{}': {}", info.name(), error.message()))
        })?;
        let own = match plan.kind(info.name(), info.dims()) {
            _ if info.dims().len() == 1 => info.kind(),
            // Another kind would make them larger, and no better.
            (_, false) if info.kind().block() > Some(1) => {
                blocks_left.push(info.kind());
                info.kind()
            }
            (own, fits) => {
                floats.extend((!fits).then_some(own));
                own
            }
        };
        header.tensor(info.name(), info.dims(), own)?;
        source_bytes = source_bytes.max(info.range().end as u64);
        let (name, dims) = (info.name().to_owned(), info.dims().to_vec());
        planned.push(PlannedTensor { name, dims, kind: own, origin: Origin::Gguf(index) });
    }
    let mut notes: Vec<String> = plan.note(&floats, "are stored as {}").into_iter().collect();
    notes.extend(plan.note(&blocks_left, "stay as they are"));
    let twice = gguf.tensors().iter().zip(&planned);
    let twice = twice.filter(|(info, own)| info.kind().block() > Some(1) && info.kind() != own.kind).count();
    if twice > 0 && target.main().block() > Some(1) {
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
