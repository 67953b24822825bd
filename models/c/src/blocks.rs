//! Values as quantised blocks.

use adead_c_support::pointers::{Out, array, array_mut};
use adead_c_support::{fail, guard};
use adead_core::contract::BlockFormat;
use std::ffi::c_void;

/// The result of a call; see adead.h.
type adead_status = i32;
/// The format of a block; see adead.h.
type adead_block_format = i32;

/// Writes `count` values as blocks of a format, such as `ADEAD_BLOCK_FORMAT_Q4_0`, and the number of the blocks' bytes to `*size`. `blocks`
/// has room for `capacity` bytes; if it is NULL, only the number is written. A call may write several rows of a matrix. The result, as a u8
/// tensor `[rows, bytes of a row]`, is an operand of `adead_tensor_quantized_matmul`. The same values give the same bytes on every machine.
///
/// `shape_mismatch` if the values are not whole blocks. `invalid_argument` if the capacity is too small, and, with the position, for a
/// value that is NaN or infinite and for a block whose scale is above 65504.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_quantize(
    values: *const f32,
    count: usize,
    format: adead_block_format,
    blocks: *mut c_void,
    capacity: usize,
    size: *mut usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let size = unsafe { Out::new(size, "size") }?;
        let Some(format) = BlockFormat::ALL.into_iter().find(|&known| known as adead_block_format == format) else {
            fail!(InvalidArgument, "format is {format}; it must be one of ADEAD_BLOCK_FORMAT_…");
        };
        if !count.is_multiple_of(format.elements()) {
            let (name, elements) = (format.name(), format.elements());
            fail!(ShapeMismatch, "{count} values; {name} takes a multiple of {elements}, the values of a block");
        }
        let bytes = count / format.elements() * format.bytes();
        if !blocks.is_null() {
            if bytes > capacity {
                fail!(InvalidArgument, "blocks has room for {capacity} bytes; {count} values take {bytes}");
            }
            // SAFETY: as above.
            let found = adead_models::gguf::quantize(unsafe { array(values, count, "values") }?, format)?;
            // SAFETY: as above; bytes have no alignment.
            unsafe { array_mut(blocks.cast(), found.len(), "blocks") }?.copy_from_slice(&found);
        }
        size.write(bytes);
        Ok(())
    })
}
