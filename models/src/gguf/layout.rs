//! Where the tensors' bytes are.

use super::cursor::{Found, Name};
use super::tensor::TensorInfo;

/// Counts the tensors' offsets from the beginning of the file, and checks that the tensors are in it and don't overlap.
/// Tensors whose block size is unknown get the bytes before the next tensor. `end` is the offset behind the last word
/// about tensors.
pub(super) fn place(tensors: &mut [TensorInfo], end: usize, alignment: u64, file: usize) -> Found<()> {
    // The file's size is an isize, so this can't overflow but by a large alignment.
    let begin = usize::try_from((end as u64).next_multiple_of(alignment)).unwrap_or(usize::MAX);
    for tensor in tensors.iter_mut() {
        let (offset, bytes) = (tensor.start, tensor.bytes);
        let last = begin.checked_add(offset).and_then(|start| start.checked_add(bytes)).filter(|&last| last <= file);
        // Without values there is nothing to read.
        let Some(last) = last.or((least(tensor) == 0).then_some(file)) else {
            return Err(format!(
                "the tensor {} (said at byte {}) has {bytes} bytes at offset {offset} of the tensors, which begin at byte \
                 {begin}; the file has {file} bytes",
                Name(&tensor.name),
                tensor.described
            ));
        };
        tensor.start = last - bytes;
    }
    let mut order: Vec<usize> = (0..tensors.len()).filter(|&index| least(&tensors[index]) > 0).collect();
    order.sort_unstable_by_key(|&index| (tensors[index].start, index));
    // From the last: of a tensor of unknown size the end is where the next begins.
    let mut next: Option<usize> = None;
    for &index in order.iter().rev() {
        let limit = next.map_or(file, |next| tensors[next].start);
        let tensor = &mut tensors[index];
        if tensor.kind.block().is_none() {
            tensor.bytes = limit - tensor.start;
        }
        if tensor.start + tensor.bytes.max(1) > limit {
            return Err(overlap(&tensors[index], next.map(|next| &tensors[next]), file));
        }
        next = Some(index);
    }
    Ok(())
}

/// The fewest bytes that the tensor has.
fn least(tensor: &TensorInfo) -> usize {
    match tensor.dims().contains(&0) {
        true => 0,
        false => tensor.bytes.max(1),
    }
}

fn overlap(tensor: &TensorInfo, next: Option<&TensorInfo>, file: usize) -> String {
    let of = |tensor: &TensorInfo| format!("{} (said at byte {})", Name(&tensor.name), tensor.described);
    let range = tensor.range();
    match next {
        Some(next) => {
            format!(
                "the tensor {} has bytes {range:?} of the file, and the tensor {} begins at {}",
                of(tensor),
                of(next),
                next.start
            )
        }
        None => format!("the tensor {} begins at byte {}; the file has {file} bytes", of(tensor), range.start),
    }
}
