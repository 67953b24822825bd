//! Products with matrices of quantised blocks, and their conversion to f32.
//!
//! First the rows of x are cut into blocks of 8-bit integers (`rows.rs`). Then threads claim parts of the result. A part goes
//! through the matrix in panels of as many rows as a vector has lanes: a panel's blocks are unpacked once (`panels.rs`) and
//! multiplied with all of the part's rows of x (`products.rs`).

mod panels;
mod products;
mod rows;

use super::{Call, Exec, Shared, chunks};
use crate::contract::{BlockFormat, block_floats};
use crate::error::Result;
use crate::hal::cpu::simd::{Kernel, Simd, adds_fours, beside_products, dispatch, dispatch_m, dispatch_m_fours};
use crate::ops::QuantizedPlan;
use products::Part;
use rows::{Cut, Layout};

/// The most rows of x in a part, and the multiply-adds that are worth a task.
const ROWS: usize = 128;
const TASK: usize = 1 << 16;

/// The elements of x that are worth a task, when they are cut.
const ELEMENTS: usize = 1 << 13;

/// The elements of K that make one chain of multiply-adds.
const CHUNK: usize = 256;

/// `quantized_matmul` of the op table.
pub(super) fn quantized_matmul(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let QuantizedPlan { format, m, n, k } = QuantizedPlan::new(call.attrs, call.inputs.into())?;
    let (x, w, y) =
        (Shared(call.f32(0)?.cast_mut()), Shared(call.f32(1)?.cast_mut().cast::<u8>()), Shared(call.out()?));
    let fours = adds_fours(exec.isa);
    let layout = Layout::new(format, k, fours);
    let scratch = exec.scratch.take(m * layout.words)?;
    let cut = Shared(scratch.pointer().cast::<i32>());
    let isa = exec.isa;
    chunks(exec, m, ELEMENTS.div_ceil(k.max(1)), |start, end| {
        // SAFETY: rows start..end are x's, each has `layout.words` words of scratch, and no two tasks have the same.
        unsafe {
            let to = cut.get().add(start * layout.words);
            dispatch(isa, Cut { x: x.get().add(start * k), rows: end - start, layout, to });
        }
    })?;
    // SAFETY: an `Isa` value comes only from a device that runs that instruction set.
    let lanes = unsafe { dispatch(isa, Lanes) };
    let row_bytes = k / format.elements() * format.bytes();
    let down = m.div_ceil(ROWS);
    let rows = m.div_ceil(down);
    // Panels of a task: enough to be worth waking a thread, and few enough that every thread has some.
    let panels = n.div_ceil(lanes);
    let least = TASK.div_ceil(rows.saturating_mul(lanes).saturating_mul(k.max(1)));
    let each = least.max(panels.div_ceil(8 * exec.pool.threads())).min(panels);
    let across = panels.div_ceil(each);
    exec.pool.try_run(down * across, &|task, _| {
        let (first, row) = (task / down * each * lanes, task % down * rows);
        // SAFETY: the part lies inside the result, and parts are disjoint. The rows of x are cut, and w has n rows.
        unsafe {
            let x = cut.get().add(row * layout.words);
            let (w, y) = (w.get().add(first * row_bytes), y.get().add(row * n + first));
            let (rows, columns) = (rows.min(m - row), (each * lanes).min(n - first));
            match fours {
                true => dispatch_m_fours(Part::<true> { layout, x, rows, w, columns, row_bytes, y, y_row: n }),
                false => dispatch_m(
                    beside_products(isa),
                    Part::<false> { layout, x, rows, w, columns, row_bytes, y, y_row: n },
                ),
            }
        }
    })
}

/// The lanes of the vectors with which products run.
struct Lanes;

impl Kernel for Lanes {
    type Output = usize;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> usize {
        S::LANES
    }
}

/// `dequantize` of the op table.
pub(super) fn dequantize(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let format = call.attrs.format.unwrap_or(BlockFormat::Q8_0);
    let (w, y) = (Shared(call.f32(0)?.cast_mut().cast::<u8>()), Shared(call.out()?));
    let (elements, bytes) = (format.elements(), format.bytes());
    chunks(exec, call.output.shape().elements() / elements, ELEMENTS / elements / 8, |start, end| {
        for block in start..end {
            // SAFETY: the operand holds these blocks, and the result their elements.
            unsafe {
                let from = std::slice::from_raw_parts(w.get().add(block * bytes), bytes);
                let to = y.get().add(block * elements);
                block_floats(format, from)
                    .enumerate()
                    .for_each(|(i, value)| to.add(i).write(crate::contract::canonical(value)));
            }
        }
    })
}
