//! Memory layouts that suit GPUs.

use crate::pointers::{Out, array, fail, null, reference};
use crate::status::{adead_status, guard, guard_destroy};
use adead_core::Result;
use adead_core::layout::Layout;
use std::ffi::c_void;

/// An arrangement of a row-major matrix's elements in memory. Elements have 1, 2, 4 or 8 bytes, and padding is zero. A
/// layout never changes, so threads may share one.
pub struct adead_layout {
    layout: Layout,
    element: usize,
}

/// # Safety
/// `out` is NULL or may be written.
unsafe fn make(element: usize, layout: Result<Layout>, out: *mut *mut adead_layout) -> Result<()> {
    // SAFETY: passed on.
    let out = unsafe { Out::new(out, "out") }?;
    if !matches!(element, 1 | 2 | 4 | 8) {
        fail!(InvalidArgument, "element is {element}; elements have 1, 2, 4 or 8 bytes");
    }
    out.give(adead_layout { layout: layout?, element });
    Ok(())
}

/// Creates a layout of tiles of `tile_size` by `tile_size` elements of `element` bytes. The tiles follow each other in
/// row-major order, and each is row-major inside. Rows and columns are padded to multiples of `tile_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_layout_optimize_matrix(
    element: usize,
    rows: usize,
    cols: usize,
    tile_size: usize,
    out: *mut *mut adead_layout,
) -> adead_status {
    // SAFETY: the caller vouches for the pointer.
    guard(|| unsafe { make(element, Layout::tiled(rows, cols, tile_size), out) })
}

/// Creates a layout whose rows begin at multiples of `alignment` bytes, a multiple of `element`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_layout_align(
    element: usize,
    rows: usize,
    cols: usize,
    alignment: usize,
    out: *mut *mut adead_layout,
) -> adead_status {
    // SAFETY: the caller vouches for the pointer.
    guard(|| unsafe { make(element, Layout::aligned(rows, cols, element, alignment), out) })
}

/// Creates a layout that puts elements `stride` apart next to each other. An array of structures with `stride` fields
/// becomes an array of each field. `invalid_argument` unless `elements` is a multiple of `stride`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_layout_coalesce(
    element: usize,
    elements: usize,
    stride: usize,
    out: *mut *mut adead_layout,
) -> adead_status {
    // SAFETY: the caller vouches for the pointer.
    guard(|| unsafe { make(element, Layout::coalesced(elements, stride), out) })
}

/// Creates a layout in Morton (Z) order. Bits of row and column alternate in an element's index, the column's first.
/// The higher bits of the longer side are above them. Rows and columns are padded to powers of two.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_layout_morton(
    element: usize,
    rows: usize,
    cols: usize,
    out: *mut *mut adead_layout,
) -> adead_status {
    // SAFETY: the caller vouches for the pointer.
    guard(|| unsafe { make(element, Layout::morton(rows, cols), out) })
}

/// Destroys a layout; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_layout_destroy(layout: *mut adead_layout) {
    guard_destroy(layout);
}

/// Writes the rows and columns of the arranged matrix, with padding. For coalesced elements these are the fields and
/// the structures.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_layout_dims(
    layout: *const adead_layout,
    out_rows: *mut usize,
    out_cols: *mut usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let (rows, cols) = reference(layout, "layout")?.layout.dims();
            let (out_rows, out_cols) = (Out::new(out_rows, "out_rows")?, Out::new(out_cols, "out_cols")?);
            out_rows.write(rows);
            out_cols.write(cols);
            Ok(())
        }
    })
}

/// Writes the bytes of the plain matrix, and of the arranged one with padding.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_layout_bytes(
    layout: *const adead_layout,
    out_plain: *mut usize,
    out_arranged: *mut usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let adead_layout { layout, element } = reference(layout, "layout")?;
            let (plain, arranged) = (Out::new(out_plain, "out_plain")?, Out::new(out_arranged, "out_arranged")?);
            plain.write(layout.elements() * element);
            arranged.write(layout.stored() * element);
            Ok(())
        }
    })
}

/// Arranges or restores a matrix of `bytes` bytes into `out`, which has `out_bytes`. The two must not overlap.
///
/// # Safety
/// As for the functions below.
unsafe fn apply(
    layout: *const adead_layout,
    data: *const c_void,
    bytes: usize,
    out: *mut c_void,
    out_bytes: usize,
    restore: bool,
) -> Result<()> {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        let adead_layout { layout, element } = reference(layout, "layout")?;
        let from = array(data.cast::<u8>(), bytes, "data")?;
        if out.is_null() && out_bytes > 0 {
            return Err(null("out"));
        }
        let (start, other) = (out.addr(), from.as_ptr().addr());
        if out_bytes > isize::MAX as usize {
            fail!(InvalidArgument, "out can't have {out_bytes} bytes");
        }
        if start < other + bytes && other < start + out_bytes {
            fail!(InvalidArgument, "data, of {bytes} bytes, and out, of {out_bytes}, overlap");
        }
        // Not NULL unless empty, of a size that exists, and the caller allows writes to it.
        let to = if out_bytes == 0 { &mut [] } else { std::slice::from_raw_parts_mut(out.cast::<u8>(), out_bytes) };
        if restore { layout.undo_bytes(*element, from, to) } else { layout.apply_bytes(*element, from, to) }
    }
}

/// Arranges a plain matrix. `bytes` and `out_bytes` must be the sizes that `adead_layout_bytes` gives, or else the call
/// fails with `shape_mismatch`. `data` and `out` must not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_layout_arrange(
    layout: *const adead_layout,
    data: *const c_void,
    bytes: usize,
    out: *mut c_void,
    out_bytes: usize,
) -> adead_status {
    // SAFETY: passed on.
    guard(|| unsafe { apply(layout, data, bytes, out, out_bytes, false) })
}

/// Restores the plain matrix from an arranged one: the inverse of `adead_layout_arrange`. Ignores the padding.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_layout_restore(
    layout: *const adead_layout,
    data: *const c_void,
    bytes: usize,
    out: *mut c_void,
    out_bytes: usize,
) -> adead_status {
    // SAFETY: passed on.
    guard(|| unsafe { apply(layout, data, bytes, out, out_bytes, true) })
}
