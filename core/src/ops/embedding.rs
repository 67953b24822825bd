//! `embedding`: rows of a table by id.

use super::{Attrs, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::shape::MAX_RANK;
use std::ops::Range;

pub(super) const INFO: OpInfo = OpInfo {
    name: "embedding",
    operands: &["table", "ids"],
    attrs: &[],
    in_place: false,
    shape: |_, inputs, output| {
        let (table, ids) = (rules::required(inputs, 0), rules::required(inputs, 1));
        if !ids.dtype.is_index() {
            fail!(DtypeMismatch, "embedding: ids must be i32, i64 or u32, not {}", ids.dtype);
        }
        if table.shape.rank() == 0 {
            fail!(ShapeMismatch, "embedding: the table is a scalar; it must be [rows, …]");
        }
        let (n, row) = (ids.shape.rank(), &table.shape.dims()[1..]);
        let rank = n + row.len();
        if rank > MAX_RANK {
            fail!(
                ShapeMismatch,
                "embedding: ids {} and table {} give rank {rank}; the most is {MAX_RANK}",
                ids.shape,
                table.shape
            );
        }
        let mut dims = [0; MAX_RANK];
        dims[..n].copy_from_slice(ids.shape.dims());
        dims[n..rank].copy_from_slice(row);
        output.set(table.dtype, &dims[..rank])
    },
    flops: |_, _, _| 0.0,
};

/// Returns an id as a row number, or an error if the table has no such row. Callers check all ids before they write.
pub(crate) fn check_id(position: usize, id: i64, rows: usize) -> Result<usize> {
    match usize::try_from(id) {
        Ok(row) if row < rows => Ok(row),
        _ => fail!(InvalidArgument, "embedding: id {id} at position {position} is outside the table's {rows} rows"),
    }
}

/// Reads id `i` of the ids at an address.
///
/// # Safety
/// The memory must hold more than `i` ids of this dtype.
#[inline(always)]
pub(crate) unsafe fn id(ids: *const u8, dtype: DType, i: usize) -> i64 {
    // SAFETY: the caller promises that id `i` exists and has this dtype.
    unsafe {
        match dtype {
            DType::I64 => ids.cast::<i64>().add(i).read(),
            DType::U32 => ids.cast::<u32>().add(i).read() as i64,
            _ => ids.cast::<i32>().add(i).read() as i64,
        }
    }
}

/// Returns an error unless the ids at these positions are rows of the table. The ids must be in host memory.
pub(crate) fn check_ids(inputs: &[Option<View<'_>>], positions: Range<usize>) -> Result<()> {
    let (rows, ids) = (rules::required(inputs, 0).shape.dims()[0], rules::required(inputs, 1));
    let Some(view) = &inputs[1] else { return Ok(()) };
    let at = view.host()?.cast_const();
    for position in positions.start..positions.end.min(ids.shape.elements()) {
        // SAFETY: the view covers all of its elements, and `position` is below their number.
        check_id(position, unsafe { id(at, ids.dtype, position) }, rows)?;
    }
    Ok(())
}

pub(super) fn reference(_: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let (table, ids) = (scalar::bytes(inputs, 0)?, scalar::bytes(inputs, 1)?);
    let (rows, dtype) = (rules::required(inputs, 0).shape.dims()[0], rules::required(inputs, 1).dtype);
    let row_bytes = rules::required(inputs, 0).shape.dims()[1..].iter().product::<usize>() * output.dtype.size();
    let mut y = Vec::with_capacity(output.bytes());
    for (position, id) in ids.chunks_exact(dtype.size()).enumerate() {
        let id = match dtype {
            DType::I64 => i64::from_ne_bytes(id.try_into().unwrap_or_default()),
            DType::U32 => u32::from_ne_bytes(id.try_into().unwrap_or_default()) as i64,
            _ => i32::from_ne_bytes(id.try_into().unwrap_or_default()) as i64,
        };
        let row = check_id(position, id, rows)?;
        y.extend_from_slice(&table[row * row_bytes..(row + 1) * row_bytes]);
    }
    Ok(y)
}
