//! The greatest elements of lines, and their indices.
//!
//! A line's k greatest so far are a heap with the least of them on top. An element that comes later goes in only if it is greater than
//! that one, so blocks whose maximum is not are passed over.

use super::sum::max_key;
use super::{Call, Exec, Shared, chunks};
use crate::contract;
use crate::dtype::DType;
use crate::error::Result;
use crate::hal::cpu::simd::{Kernel, Simd, dispatch};
use crate::interrupt::Looks;
use crate::ops::{Lines, topk_axis};

/// Values that are worth handing to another thread.
const GRAIN: usize = 32 * 1024;

/// Elements that are taken or passed over at a time.
const BLOCK: usize = 256;

/// Columns that are taken at a time.
const STRIP: usize = 16;

/// An element: its key, and behind it its index with all bits flipped. The greater comes first.
type Entry = u64;

fn entry(key: i32, index: usize) -> Entry {
    u64::from(key as u32 ^ 0x8000_0000) << 32 | u64::from(!(index as u32))
}

/// `topk` of the op table.
pub(super) fn topk(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let y = Shared(call.out()?);
    greatest(exec, call, &|at, entry| {
        let key = ((entry >> 32) as u32 ^ 0x8000_0000) as i32;
        // SAFETY: the result has that element.
        unsafe { y.get().add(at).write(contract::max_of_keys(key)) };
    })
}

/// `argtopk` of the op table.
pub(super) fn argtopk(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let (y, long) = (Shared(call.output.host()?), call.output.dtype() == DType::I64);
    greatest(exec, call, &|at, entry| {
        let index = !(entry as u32);
        // SAFETY: the result has that element, of this dtype.
        unsafe {
            match long {
                true => y.get().cast::<i64>().add(at).write(index.into()),
                false => y.get().cast::<u32>().add(at).write(index),
            }
        }
    })
}

/// Puts every line's k greatest elements where they belong in the result, which is not empty.
fn greatest(exec: &Exec<'_>, call: &Call<'_, '_>, put: &(dyn Fn(usize, Entry) + Sync)) -> Result<()> {
    let shape = &call.meta(0).shape;
    let Lines { outer, n, inner } = Lines::along(shape, topk_axis(call.attrs, shape)?);
    let (x, k, lines) = (Shared(call.f32(0)?.cast_mut()), call.attrs.k as usize, outer * inner);
    // Few long lines are cut for the threads, where parts have much more than k elements.
    let parts = match inner {
        1 => (exec.pool.threads() / lines).min(n / GRAIN.max(8 * k)).max(1),
        _ => 1,
    };
    let scratch = exec.scratch.take(2 * lines * parts * k)?;
    let heaps = Shared(scratch.pointer().cast::<Entry>());
    // SAFETY: there is one for every part of every line, and its task alone has it.
    let heap = |i: usize| unsafe { std::slice::from_raw_parts_mut(heaps.get().add(i * k), k) };
    if inner == 1 {
        chunks(exec, lines * parts, GRAIN.div_ceil(n / parts), |start, end| {
            for task in start..end {
                let (line, part) = (task / parts, task % parts);
                let elements = part * n / parts..(part + 1) * n / parts;
                // SAFETY: the part lies inside its line.
                unsafe { contiguous(exec, x.get().add(line * n), elements, heap(task)) };
            }
        })?;
    } else {
        let strips = inner.div_ceil(STRIP);
        chunks(exec, outer * strips, GRAIN.div_ceil(n * STRIP), |start, end| {
            for task in start..end {
                let (o, first) = (task / strips, task % strips * STRIP);
                let (width, mut looks) = (STRIP.min(inner - first), Looks::NEW);
                for i in 0..n {
                    if looks.before(width) {
                        return;
                    }
                    for column in 0..width {
                        // SAFETY: the element lies inside the view.
                        let value = unsafe { *x.get().add((o * n + i) * inner + first + column) };
                        offer(heap(o * inner + first + column), i, entry(contract::max_key(value), i));
                    }
                }
            }
        })?;
    }
    chunks(exec, lines, GRAIN.div_ceil(parts * k), |start, end| {
        for line in start..end {
            let all = heap(line * parts);
            for part in 1..parts {
                heap(line * parts + part).iter().for_each(|&entry| offer(all, k, entry));
            }
            sort(all);
            let (o, i) = (line / inner, line % inner);
            all.iter().enumerate().for_each(|(place, &entry)| put((o * k + place) * inner + i, entry));
        }
    })
}

/// Offers a heap some elements of a line.
///
/// # Safety
/// x covers them.
unsafe fn contiguous(exec: &Exec<'_>, x: *const f32, elements: std::ops::Range<usize>, heap: &mut [Entry]) {
    let (mut looks, mut start) = (Looks::NEW, elements.start);
    while start < elements.end && !looks.before(BLOCK) {
        let end = elements.end.min(start + BLOCK);
        // SAFETY: the block lies inside the line.
        unsafe {
            let full = start - elements.start >= heap.len();
            let most = if full { dispatch(exec.isa, Most { x: x.add(start), n: end - start }) } else { i32::MAX };
            if !full || entry(most, start) > heap[0] {
                for i in start..end {
                    offer(heap, i - elements.start, entry(contract::max_key(*x.add(i)), i));
                }
            }
        }
        start = end;
    }
}

/// The greatest key of a block.
struct Most {
    x: *const f32,
    n: usize,
}

impl Kernel for Most {
    type Output = i32;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> i32 {
        // SAFETY: x covers n values.
        unsafe { max_key::<S>(self.x, self.n, 0) }
    }
}

/// Offers a heap, the first of whose `count` elements are there, another one. Its least element is the first.
fn offer(heap: &mut [Entry], count: usize, entry: Entry) {
    if count < heap.len() {
        heap[count] = entry;
        if count + 1 == heap.len() {
            (0..heap.len() / 2).rev().for_each(|at| sink(heap, at));
        }
    } else if entry > heap[0] {
        heap[0] = entry;
        sink(heap, 0);
    }
}

/// Brings an element below those that are less.
fn sink(heap: &mut [Entry], mut at: usize) {
    loop {
        let mut least = 2 * at + 1;
        if least >= heap.len() {
            return;
        }
        if least + 1 < heap.len() && heap[least + 1] < heap[least] {
            least += 1;
        }
        if heap[at] <= heap[least] {
            return;
        }
        heap.swap(at, least);
        at = least;
    }
}

/// Makes a heap a list, the greatest element first.
fn sort(heap: &mut [Entry]) {
    for end in (1..heap.len()).rev() {
        heap.swap(0, end);
        sink(&mut heap[..end], 0);
    }
}
