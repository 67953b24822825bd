//! `dequantize`: the f32 values of quantised blocks.

use super::{Attrs, Metas, OpInfo, Values, scalar, rules};
use crate::contract::{self, BlockFormat};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::operand::{Meta, View};
use crate::shape::{MAX_RANK, Shape};

pub(super) const INFO: OpInfo = OpInfo {
    name: "dequantize",
    operands: &["w"],
    attrs: &["format"],
    in_place: false,
    shape: |attrs, inputs, output| {
        let (_, shape) = blocks("dequantize", attrs, inputs, 0)?;
        output.assign(&Meta::new(DType::F32, shape));
        Ok(())
    },
    // Bound by memory, as moves are.
    flops: |_, _, _| 0.0,
};

/// The error of a library that was built without the feature `quantized`.
pub(crate) fn without_quantized<T>() -> Result<T> {
    fail!(Unsupported, "this build of adead has no quantised matrices: build it with the feature quantized, or without ADEAD_MINIMAL")
}

/// Returns the format of operand `i`, which holds rows of blocks, and the shape of its elements.
pub(super) fn blocks(op: &str, attrs: &Attrs, inputs: Metas<'_>, i: usize) -> Result<(BlockFormat, Shape)> {
    if !cfg!(feature = "quantized") {
        return without_quantized();
    }
    let w = rules::required(inputs, i);
    if w.dtype != DType::U8 {
        fail!(DtypeMismatch, "{op}: w is {}; it must be u8, the bytes of its blocks", w.dtype);
    }
    let Some(format) = attrs.format else {
        let names = BlockFormat::ALL.map(BlockFormat::name).join(", ");
        fail!(InvalidArgument, "{op}: the format of w's blocks is missing; it must be one of {names}");
    };
    let rank = w.shape.rank();
    if rank == 0 || !w.shape.from_end(0).is_multiple_of(format.bytes()) {
        fail!(
            ShapeMismatch,
            "{op}: w is {}; its rows must be whole blocks of {}, of {} bytes each",
            w.shape,
            format.name(),
            format.bytes()
        );
    }
    let mut dims = [0; MAX_RANK];
    dims[..rank].copy_from_slice(w.shape.dims());
    dims[rank - 1] = dims[rank - 1] / format.bytes() * format.elements();
    Ok((format, Shape::new(&dims[..rank])?))
}

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let (format, _) = blocks("dequantize", attrs, inputs.into(), 0)?;
    let blocks = scalar::bytes(inputs, 0)?.chunks_exact(format.bytes());
    Ok(scalar::stored(blocks.flat_map(|block| contract::block_floats(format, block)), output.dtype))
}
