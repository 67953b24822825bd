//! Matrices of f32 and streams as numbers, for interpreters and foreign function interfaces. Every invalid call returns
//! a status and changes nothing: a number that was freed or is of another kind, a NULL, a count that doesn't fit.
//! Threads may call concurrently; the calls run one after the other.

use crate::flat_table::{Entry, Kind, Place, Table, count_of, gpu_count, id};
use crate::pointers::{Out, array, array_mut, fail, optional_text, text};
use crate::status::{adead_status, guard};
use adead_core::{Attrs, Op, Result};
use std::ffi::{CStr, c_char};
use std::sync::{Mutex, PoisonError};

/// A matrix or a stream as a number. It is never 0 and never negative. A freed number is not reused for 2^24
/// allocations.
pub type adead_flat_handle = i64;

const MOST_OPERANDS: i32 = 16;

static TABLE: Mutex<Table> = Mutex::new(Table::new());

/// Runs a call with the table locked.
fn locked(call: impl FnOnce(&mut Table) -> Result<()>) -> adead_status {
    guard(|| call(&mut TABLE.lock().unwrap_or_else(PoisonError::into_inner)))
}

fn place(use_gpu: i32, device: i32) -> Place {
    Place { use_gpu: use_gpu != 0, device }
}

/// Allocates `count` copies of a value in host memory.
fn host_values(count: usize, value: f32) -> Result<Vec<f32>> {
    let mut values = Vec::new();
    if values.try_reserve_exact(count).is_err() {
        fail!(OutOfMemory, "can't allocate {} bytes", count.saturating_mul(size_of::<f32>()));
    }
    values.resize(count, value);
    Ok(values)
}

/// Parses attributes from "name=value;name=value".
fn attributes(op: Op, text: &str) -> Result<Attrs> {
    let mut attrs = Attrs::default();
    for part in text.split_terminator(';') {
        match part.split_once('=') {
            Some((name, value)) => attrs.set(op, name, value)?,
            None => fail!(InvalidArgument, "'{}' is not name=value", part.chars().take(200).collect::<String>()),
        }
    }
    Ok(attrs)
}

/// Writes whether the machine has a GPU: 0 or 1. Opens no GPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_flat_gpu_available(out: *mut i32) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new(out, "out") }?;
        out.write((gpu_count()? > 0).into());
        Ok(())
    })
}

/// Writes how many GPUs the machine has. They are numbered from 0, the preferred one first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_flat_device_count(out: *mut i32) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new(out, "out") }?;
        out.write(gpu_count()?);
        Ok(())
    })
}

/// Writes the backend of a device: "cpu" if `use_gpu` is 0, else "cuda" or "vulkan". The text is never freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_flat_backend_name(use_gpu: i32, device: i32, out: *mut *const c_char) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new(out, "out") }?;
        let id = id(place(use_gpu, device))?;
        let backends: [(&str, &CStr); 3] = [("cpu", c"cpu"), ("cuda", c"cuda"), ("vulkan", c"vulkan")];
        match backends.iter().find(|(name, _)| id.starts_with(name)) {
            Some((_, text)) => out.write(text.as_ptr()),
            None => fail!(Internal, "this library does not know the backend of device '{id}'"),
        }
        Ok(())
    })
}

/// Creates a matrix of zeros in the memory of GPU `device`, or of the CPU if `use_gpu` is 0 (then `device` must be 0).
/// `out_of_memory` reports the bytes requested and free. `backend_unavailable` if there is no such GPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_flat_alloc_zeros(
    rows: i64,
    cols: i64,
    use_gpu: i32,
    device: i32,
    out: *mut adead_flat_handle,
) -> adead_status {
    locked(|table| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new(out, "out") }?;
        out.write(table.make(None, rows, cols, place(use_gpu, device))?);
        Ok(())
    })
}

/// Creates a matrix of ones, as `adead_flat_alloc_zeros` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_flat_alloc_ones(
    rows: i64,
    cols: i64,
    use_gpu: i32,
    device: i32,
    out: *mut adead_flat_handle,
) -> adead_status {
    locked(|table| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new(out, "out") }?;
        let ones = host_values(count_of(rows, cols)?, 1.0)?;
        out.write(table.make(Some(bytes_of(&ones)), rows, cols, place(use_gpu, device))?);
        Ok(())
    })
}

/// Returns the values as bytes.
fn bytes_of(values: &[f32]) -> &[u8] {
    // SAFETY: a float is readable as its bytes.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// Creates a matrix from a copy of rows * cols values, as `adead_flat_alloc_zeros` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_flat_alloc_upload(
    values: *const f32,
    rows: i64,
    cols: i64,
    use_gpu: i32,
    device: i32,
    out: *mut adead_flat_handle,
) -> adead_status {
    locked(|table| {
        let bytes = count_of(rows, cols)? * size_of::<f32>();
        // SAFETY: the caller vouches for the pointers.
        let (values, out) = unsafe { (array(values.cast::<u8>(), bytes, "values")?, Out::new(out, "out")?) };
        out.write(table.make(Some(values), rows, cols, place(use_gpu, device))?);
        Ok(())
    })
}

/// Frees a matrix. Work that is already enqueued can still use it.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_free(matrix: adead_flat_handle) -> adead_status {
    locked(|table| table.remove(matrix, Kind::Matrix))
}

/// Writes the rows and columns of a matrix. Either pointer may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_flat_shape(matrix: adead_flat_handle, rows: *mut i64, cols: *mut i64) -> adead_status {
    locked(|table| {
        let matrix = table.matrix(matrix)?;
        // SAFETY: the caller vouches for the pointers.
        unsafe { (give(rows, matrix.rows), give(cols, matrix.cols)) };
        Ok(())
    })
}

/// Writes which device holds a matrix. Either pointer may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_flat_device(
    matrix: adead_flat_handle,
    use_gpu: *mut i32,
    device: *mut i32,
) -> adead_status {
    locked(|table| {
        let Place { use_gpu: on_gpu, device: number } = table.matrix(matrix)?.place;
        // SAFETY: the caller vouches for the pointers.
        unsafe { (give(use_gpu, on_gpu.into()), give(device, number)) };
        Ok(())
    })
}

/// Writes an output that the caller may leave out.
///
/// # Safety
/// `to` is NULL or may be written.
unsafe fn give<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: not NULL, so the caller allows writes to it.
        unsafe { to.write(value) };
    }
}

/// Copies `count` values to a matrix, after all earlier work that uses it. `shape_mismatch` unless `count` is rows *
/// cols.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_flat_upload(matrix: adead_flat_handle, values: *const f32, count: i64) -> adead_status {
    locked(|table| {
        let bytes = table.bytes(matrix, count)?;
        // SAFETY: the caller vouches for the pointer.
        let values = unsafe { array(values.cast::<u8>(), bytes, "values") }?;
        if values.is_empty() {
            return Ok(());
        }
        let (used_in, at, buffer) = table.matrix(matrix).map(|it| (it.used_in, it.place, it.buffer.clone()))?;
        table.wait(used_in, at)?;
        buffer.write_bytes(0, values)
    })
}

/// Waits for the work that computes a matrix, and copies its `count` values to `values`. `shape_mismatch` unless
/// `count` is rows * cols.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_flat_download(matrix: adead_flat_handle, values: *mut f32, count: i64) -> adead_status {
    locked(|table| {
        let bytes = table.bytes(matrix, count)?;
        // SAFETY: the caller vouches for the pointer.
        let into = unsafe { array_mut(values.cast(), bytes, "values") }?;
        if into.is_empty() { Ok(()) } else { table.values(matrix, into) }
    })
}

/// Copies a matrix to another device, or to a new matrix on the same one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_flat_to(
    matrix: adead_flat_handle,
    use_gpu: i32,
    device: i32,
    out: *mut adead_flat_handle,
) -> adead_status {
    locked(|table| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new(out, "out") }?;
        let (rows, cols) = table.matrix(matrix).map(|it| (it.rows, it.cols))?;
        let mut values = host_values(count_of(rows, cols)?, 0.0)?;
        // SAFETY: a float may have any bits.
        let bytes = unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast::<u8>(), size_of_val(&*values)) };
        if !bytes.is_empty() {
            table.values(matrix, bytes)?;
        }
        out.write(table.make(Some(bytes_of(&values)), rows, cols, place(use_gpu, device))?);
        Ok(())
    })
}

/// Multiplies a and b: [m, k] and [k, n] give [m, n]. The work runs on the device that holds both, on `stream`, or on
/// the device's own stream if `stream` is 0. The call returns when the work is enqueued.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_flat_matmul(
    a: adead_flat_handle,
    b: adead_flat_handle,
    stream: adead_flat_handle,
    out: *mut adead_flat_handle,
) -> adead_status {
    locked(|table| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new(out, "out") }?;
        out.write(table.multiply([a, b], stream)?);
        Ok(())
    })
}

/// Runs any operation of docs/operations.md by its name, into an existing matrix. The `count` operands are in the
/// operation's order, with 0 for an absent optional operand. Attributes are "name=value;name=value" or NULL. All
/// matrices must be on one device. `result` must have the shape that follows from the operands, and must not be one of
/// them. `stream` is as for `adead_flat_matmul`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_flat_run(
    op: *const c_char,
    operands: *const adead_flat_handle,
    count: i32,
    attrs: *const c_char,
    stream: adead_flat_handle,
    result: adead_flat_handle,
) -> adead_status {
    locked(|table| {
        if !(0..=MOST_OPERANDS).contains(&count) {
            fail!(InvalidArgument, "{count} operands: an operation has 0 to {MOST_OPERANDS}");
        }
        // SAFETY: the caller vouches for the pointers.
        let (op, operands, attrs) =
            unsafe { (text(op, "op")?, array(operands, count as usize, "operands")?, optional_text(attrs, "attrs")?) };
        let op = Op::from_name(op)?;
        table.enqueue(op, operands, &attributes(op, attrs.unwrap_or_default())?, stream, result)
    })
}

/// Creates a stream. Its work runs in order, concurrently with other streams' work. Before a stream uses a matrix, it
/// waits for the work of the stream that used the matrix last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_flat_stream_create(
    use_gpu: i32,
    device: i32,
    out: *mut adead_flat_handle,
) -> adead_status {
    locked(|table| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new(out, "out") }?;
        table.reserve()?;
        let at = place(use_gpu, device);
        let stream = table.device(at)?.context.stream()?;
        out.write(table.add(Entry::Stream(at, stream)));
        Ok(())
    })
}

/// Waits for all work of a stream. Returns the first error that the device found in it.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_stream_sync(stream: adead_flat_handle) -> adead_status {
    locked(|table| table.stream(stream)?.1.synchronize())
}

/// Writes whether a stream has finished all its work: 0 or 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_flat_stream_query(stream: adead_flat_handle, out: *mut i32) -> adead_status {
    locked(|table| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new(out, "out") }?;
        out.write(table.stream(stream)?.1.query()?.into());
        Ok(())
    })
}

/// Waits for a stream and frees it.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_stream_destroy(stream: adead_flat_handle) -> adead_status {
    locked(|table| {
        table.stream(stream)?.1.synchronize()?;
        table.remove(stream, Kind::Stream)
    })
}

/// Enqueues `batch` uploads of `counts[i]` values at `values[i]` to `matrices[i]`. The caller may reuse the values when
/// the call returns. All arguments are checked before anything is enqueued.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_flat_async_upload_batch(
    stream: adead_flat_handle,
    matrices: *const adead_flat_handle,
    values: *const *const f32,
    counts: *const i64,
    batch: i32,
) -> adead_status {
    locked(|table| {
        let at = table.stream(stream)?.0;
        let Ok(count) = usize::try_from(batch) else {
            fail!(InvalidArgument, "batch is {batch}; it can't be negative")
        };
        // SAFETY: the caller vouches for the pointers.
        let (matrices, values, counts) = unsafe {
            (array(matrices, count, "matrices")?, array(values, count, "values")?, array(counts, count, "counts")?)
        };
        let mut copies = Vec::with_capacity(count);
        for i in 0..count {
            let bytes = table.bytes(matrices[i], counts[i])?;
            // SAFETY: as above.
            copies.push(unsafe { array(values[i].cast::<u8>(), bytes, &format!("values[{i}]")) }?);
            if table.matrix(matrices[i])?.place != at {
                fail!(InvalidArgument, "matrix {i} of the batch is on another device than the stream");
            }
        }
        for (&matrix, bytes) in matrices.iter().zip(copies) {
            table.hand_over(matrix, stream)?;
            if !bytes.is_empty() {
                let buffer = table.matrix(matrix)?.buffer.clone();
                table.stream(stream)?.1.upload(&buffer, 0, bytes)?;
            }
        }
        Ok(())
    })
}

/// Writes how many matrices and streams exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_flat_count(out: *mut i64) -> adead_status {
    locked(|table| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new(out, "out") }?;
        out.write(table.live() as i64);
        Ok(())
    })
}

/// Waits for all work, frees every matrix and stream, and closes every device. All earlier numbers become invalid.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_reset() -> adead_status {
    locked(|table| {
        table.reset();
        Ok(())
    })
}
