//! What stands between the products and the attention of a step of text generation, as one kernel: slices of rows, rope of their heads,
//! and `where` that puts heads into a cache at chosen positions. Each of these kernels takes longer to start than to run.
//!
//! All threads of the kernel run at the same time, so nothing that it reads may be written, and nothing may be written twice.

use super::moves::{Arguments, HEADS, dispatch};
use super::{Call, Encoder, Operand};
use crate::command::Command;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{Op, SlicePlan, slice_plan};
use smallvec::SmallVec;

/// The most parts of rows, for which there is room in a table.
const PARTS: usize = 3;

/// The most elements of a head, each of which has a thread.
const WIDTH: usize = 256;

/// Bools that a thread reads at once.
const BOOLS: usize = 16;

/// Memory: an address and bytes.
pub type Range = (u64, u64);

pub fn overlap((a, a_bytes): Range, (b, b_bytes): Range) -> bool {
    a < b + b_bytes && b < a + a_bytes
}

/// Neighbouring columns of rows.
#[derive(Clone, Copy)]
pub struct Columns {
    pub from: u64,
    pub rows: usize,
    pub count: usize,
    /// Elements from one row to the next.
    pub pitch: usize,
    /// Where a slice of them goes.
    pub sliced: u64,
}

impl Columns {
    /// What a slice takes, if it takes neighbouring columns of all rows of f32.
    pub fn of(call: &Call<'_>) -> Option<Columns> {
        let x = call.operand(0);
        let &[rows, pitch] = x.shape.dims() else { return None };
        let SlicePlan { dims, first, step } = slice_plan(call.attrs, x.shape).ok()?;
        let fits = x.dtype == DType::F32 && dims[0] == rows && step[..2] == [1, 1] && dims[1] > 0;
        let from = x.address + 4 * first[1] as u64;
        fits.then_some(Columns { from, rows, count: dims[1], pitch, sliced: call.output.address })
    }

    /// The memory that is read.
    pub fn read(&self) -> Range {
        (self.from, 4 * ((self.rows - 1) * self.pitch + self.count) as u64)
    }

    /// The memory of as many elements without gaps.
    pub fn at(&self, address: u64) -> Range {
        (address, 4 * (self.rows * self.count) as u64)
    }
}

/// A part of rows, and where it goes.
struct Part {
    columns: Columns,
    turned: u64,
    /// The positions to which it is put.
    kept: u64,
}

impl Part {
    fn of_rows(from: u64, [rows, heads, width]: [usize; 3]) -> Part {
        let count = heads * width;
        Part { columns: Columns { from, rows, count, pitch: count, sliced: 0 }, turned: 0, kept: 0 }
    }

    /// The last thing that becomes of it, which `where` may put somewhere.
    fn result(&self) -> u64 {
        [self.turned, self.columns.sliced, self.columns.from].into_iter().find(|&at| at != 0).unwrap_or(0)
    }
}

/// The parts of the same rows, and what is the same for all of them.
#[derive(Default)]
struct Heads {
    parts: SmallVec<[Part; PARTS]>,
    rows: usize,
    width: usize,
    /// Cosines and sines.
    tables: Option<[u64; 2]>,
    interleaved: bool,
    /// The bools, and the number of positions.
    chosen: Option<(u64, usize)>,
}

/// Encodes the slices, ropes and choices with which the commands begin. Returns how many they are, or 0 if no kernel does all of that.
pub fn encode(encoder: &mut dyn Encoder, commands: &[Command<'_>]) -> Result<usize> {
    if !encoder.limits().makes_rows() {
        return Ok(0);
    }
    let (mut heads, mut count) = (Heads::default(), 0);
    for command in commands {
        let takes: fn(&mut Heads, &Call<'_>) -> Option<()> = match command.op() {
            Op::Slice => Heads::slice,
            Op::Rope => Heads::turn,
            Op::Where => Heads::put,
            _ => break,
        };
        if takes(&mut heads, &Call::of(encoder, command)?).is_none() {
            break;
        }
        count += 1;
    }
    if count < 2 || heads.tables.is_none() && heads.chosen.is_none() || !heads.fits() {
        return Ok(0);
    }
    heads.dispatch(encoder)?;
    Ok(count)
}

impl Heads {
    /// Whether an operation of so many rows of so many elements can join.
    fn joins(&mut self, rows: usize, width: usize) -> bool {
        let of_head = width == self.width || self.width == 0;
        let fits = (rows == self.rows || self.rows == 0) && rows > 0 && of_head;
        if fits {
            (self.rows, self.width) = (rows, width);
        }
        fits
    }

    fn slice(&mut self, call: &Call<'_>) -> Option<()> {
        let columns = Columns::of(call)?;
        let width = self.width;
        if self.parts.len() == PARTS || !self.joins(columns.rows, width) {
            return None;
        }
        self.parts.push(Part { columns, turned: 0, kept: 0 });
        Some(())
    }

    fn turn(&mut self, call: &Call<'_>) -> Option<()> {
        let [x, cos, sin] = [0, 1, 2].map(|i| call.operand(i));
        let &[rows, heads, width] = x.shape.dims() else { return None };
        let pairs = |table: Operand<'_>| table.dtype == DType::F32 && table.shape.dims() == [rows, 1, width / 2];
        let tables = [cos.address, sin.address];
        let same = self.tables.is_none_or(|known| known == tables && self.interleaved == call.attrs.interleaved);
        let empty = heads * width == 0;
        if empty || x.dtype != DType::F32 || ![cos, sin].into_iter().all(pairs) || !same || !self.joins(rows, width) {
            return None;
        }
        let whole = |part: &Part| part.columns.sliced == x.address && part.columns.count == heads * width;
        let at = self.parts.iter().position(whole).unwrap_or(self.parts.len());
        if at == PARTS {
            return None;
        }
        if at == self.parts.len() {
            self.parts.push(Part::of_rows(x.address, [rows, heads, width]));
        }
        let part = &mut self.parts[at];
        if part.turned != 0 || part.kept != 0 {
            return None;
        }
        part.turned = call.output.address;
        (self.tables, self.interleaved) = (Some(tables), call.attrs.interleaved);
        Some(())
    }

    fn put(&mut self, call: &Call<'_>) -> Option<()> {
        let [chosen, new, old] = [0, 1, 2].map(|i| call.operand(i));
        let &[rows, heads, positions, width] = call.output.shape.dims() else { return None };
        let fits = heads * width > 0
            && new.dtype == DType::F32
            && old.address == call.output.address
            && old.shape == call.output.shape
            && new.shape.dims() == [rows, heads, 1, width]
            && chosen.shape.dims() == [rows, 1, positions, 1];
        let bools = (chosen.address, positions);
        let aligned = chosen.address.is_multiple_of(16) && positions.is_multiple_of(BOOLS);
        if !fits || !aligned || self.chosen.is_some_and(|known| known != bools) || !self.joins(rows, width) {
            return None;
        }
        let part = self.part_of(new.address, heads * width)?;
        if part.kept != 0 {
            return None;
        }
        part.kept = call.output.address;
        self.chosen = Some(bools);
        Some(())
    }

    /// Returns the part whose result is at an address, and which has so many elements of a row.
    fn part_of(&mut self, address: u64, count: usize) -> Option<&mut Part> {
        let (rows, width) = (self.rows, self.width);
        if let Some(at) = self.parts.iter().position(|part| part.result() == address && part.columns.count == count) {
            return self.parts.get_mut(at);
        }
        if self.parts.len() == PARTS {
            return None;
        }
        // The last heads of a part of a single row are a part of their own.
        let end = address + 4 * count as u64;
        let last = |part: &Part| {
            let result = part.result();
            rows == 1
                && part.kept == 0
                && result < address
                && end == part.columns.at(result).0 + part.columns.at(result).1
        };
        let part = match self.parts.iter().position(last) {
            Some(at) => {
                let part = &mut self.parts[at];
                let before = part.columns.count - count;
                let behind = |at: u64| if at == 0 { 0 } else { at + 4 * before as u64 };
                let Columns { from, sliced, pitch, .. } = part.columns;
                part.columns.count = before;
                let columns = Columns { from: behind(from), sliced: behind(sliced), count, pitch, rows };
                Part { columns, turned: behind(part.turned), kept: 0 }
            }
            None => Part::of_rows(address, [rows, count / width, width]),
        };
        self.parts.push(part);
        self.parts.last_mut()
    }

    /// Whether the kernel can do it: in widths that it has, and with all that is written apart from all that is read.
    fn fits(&mut self) -> bool {
        let (rows, width) = (self.rows, self.width);
        if !width.is_multiple_of(4) || width > WIDTH {
            return false;
        }
        let (mut reads, mut writes) = (SmallVec::<[Range; 8]>::new(), SmallVec::<[Range; 9]>::new());
        for Part { columns, turned, kept } in &mut self.parts {
            if !columns.count.is_multiple_of(width) || !kept.is_multiple_of(16) {
                return false;
            }
            // What is turned in place replaces the slice.
            if columns.sliced == *turned {
                columns.sliced = 0;
            }
            reads.push(columns.read());
            writes.extend([columns.sliced, *turned].into_iter().filter(|&at| at != 0).map(|at| columns.at(at)));
            if *kept != 0 {
                let positions = self.chosen.map_or(0, |(_, positions)| positions);
                writes.push((*kept, columns.at(*kept).1 * positions as u64));
            }
        }
        reads.extend(self.tables.into_iter().flatten().map(|table| (table, 2 * (rows * width) as u64)));
        reads.extend(self.chosen.map(|(bools, positions)| (bools, (rows * positions) as u64)));
        writes.iter().enumerate().all(|(i, &write)| {
            let apart = |&other: &Range| !overlap(write, other);
            reads.iter().all(apart) && writes[i + 1..].iter().all(apart)
        })
    }

    fn dispatch(&self, encoder: &mut dyn Encoder) -> Result<()> {
        let (mut words, mut all) = (SmallVec::<[u32; 10 * PARTS]>::new(), 0);
        for Part { columns, turned, kept } in &self.parts {
            for address in [columns.from, columns.sliced, *turned, *kept] {
                words.extend([address as u32, (address >> 32) as u32]);
            }
            let heads = (columns.count / self.width) as u32;
            words.extend([heads, columns.pitch as u32]);
            all += heads;
        }
        let ([x, ids], (flag, positions)) = (self.tables.unwrap_or_default(), self.chosen.unwrap_or_default());
        let outer = encoder.parameters(&words)?;
        let (n, m, inner) = (all, positions as u32, self.width as u32);
        let arguments = Arguments { x, ids, flag, outer, n, m, inner, ..Arguments::default() };
        dispatch(encoder, &[HEADS, 4, self.interleaved.into()], &arguments, self.rows as u32 * all)
    }
}
