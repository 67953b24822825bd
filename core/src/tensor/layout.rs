//! Layouts of elements that suit how a kernel reads memory, and their inverses.
//!
//! A [`Layout`] says where each element of a row-major matrix (or of a sequence) goes. Zeros fill the positions between
//! and after the elements. [`Layout::apply`] arranges elements, and [`Layout::undo`] restores the original order
//! exactly.

use crate::error::{Result, fail};
use crate::shape::MAX_ELEMENTS;
use crate::tensor::Element;

/// Arranges elements in memory. Sizes are in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    kind: Kind,
    elements: usize,
    stored: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Tiles in row-major order; each tile is row-major too.
    Tiled { rows: usize, cols: usize, tile: usize },
    /// Rows that begin `pitch` elements apart.
    Rows { cols: usize, pitch: usize },
    /// First the elements 0, stride, 2·stride …, then 1, stride + 1 …
    Apart { stride: usize },
    /// The bits of column and row interleaved, starting with the column's lowest. The longer index's further bits go on
    /// top.
    Morton { rows: usize, cols: usize },
}

/// The side of the squares that a transposition copies through a small buffer. Both sides are then accessed in runs of
/// whole cache lines, however far apart the lines are.
const SIDE: usize = 64;

impl Layout {
    /// Lays out a matrix as tiles of `tile` × `tile`, with tiles at the edges padded with zeros. A workgroup can then
    /// read its tile in one piece. `invalid_argument` for a tile of 0 or sizes beyond [`MAX_ELEMENTS`].
    pub fn tiled(rows: usize, cols: usize, tile: usize) -> Result<Layout> {
        if tile == 0 {
            fail!(InvalidArgument, "layout: tiles of 0 rows and columns; they must have at least 1");
        }
        let up = |n: usize| n.div_ceil(tile).checked_mul(tile);
        let stored = up(rows).zip(up(cols)).and_then(|(rows, cols)| rows.checked_mul(cols));
        Layout::new(Kind::Tiled { rows, cols, tile }, rows.checked_mul(cols), stored)
    }

    /// Lays out a matrix so that each row begins at a multiple of `alignment` bytes from the first, for elements of
    /// `size` bytes. `invalid_argument` unless the alignment is a multiple of that size.
    pub fn aligned(rows: usize, cols: usize, size: usize, alignment: usize) -> Result<Layout> {
        if size == 0 || alignment == 0 || !alignment.is_multiple_of(size) {
            fail!(
                InvalidArgument,
                "layout: an alignment of {alignment} bytes is not a multiple of the element size, {size} bytes"
            );
        }
        let pitch = cols.checked_next_multiple_of(alignment / size);
        let stored = pitch.and_then(|pitch| pitch.checked_mul(rows));
        Layout::new(Kind::Rows { cols, pitch: pitch.unwrap_or(0) }, rows.checked_mul(cols), stored)
    }

    /// Lays out groups of `stride` elements as `stride` sequences: first the first elements of all groups, then all
    /// second elements, and so on. This turns an array of structures into a structure of arrays, where neighbouring
    /// threads read neighbouring elements. `invalid_argument` unless the elements are whole groups.
    pub fn coalesced(elements: usize, stride: usize) -> Result<Layout> {
        if stride == 0 || !elements.is_multiple_of(stride) {
            fail!(
                InvalidArgument,
                "layout: {elements} elements are not whole groups of {stride}; the stride must divide their number"
            );
        }
        Layout::new(Kind::Apart { stride }, Some(elements), Some(elements))
    }

    /// Lays out a matrix along the Z-order curve (Morton, 1966): elements close in both directions are close in memory.
    /// Rows and columns are padded to powers of two.
    pub fn morton(rows: usize, cols: usize) -> Result<Layout> {
        let up = |n: usize| if n == 0 { Some(0) } else { n.checked_next_power_of_two() };
        let stored = up(rows).zip(up(cols)).and_then(|(rows, cols)| rows.checked_mul(cols));
        Layout::new(Kind::Morton { rows, cols }, rows.checked_mul(cols), stored)
    }

    fn new(kind: Kind, elements: Option<usize>, stored: Option<usize>) -> Result<Layout> {
        match (elements, stored) {
            (Some(elements), Some(stored)) if stored <= MAX_ELEMENTS => Ok(Layout { kind, elements, stored }),
            _ => fail!(InvalidArgument, "layout: {kind:?} has more than {MAX_ELEMENTS} elements"),
        }
    }

    /// Returns the stored rows and columns, including zeros. For coalesced elements, returns the number of sequences
    /// and their length.
    pub fn dims(&self) -> (usize, usize) {
        match self.kind {
            Kind::Tiled { rows, cols, tile } => (rows.next_multiple_of(tile), cols.next_multiple_of(tile)),
            Kind::Rows { cols, pitch } => (self.elements.checked_div(cols).unwrap_or(0), pitch),
            Kind::Apart { stride } => (stride, self.elements / stride),
            Kind::Morton { rows, cols } => (1 << bits(rows), 1 << bits(cols)),
        }
    }

    /// Returns the number of elements before the arrangement.
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// Returns the number of elements after the arrangement, including zeros.
    pub fn stored(&self) -> usize {
        self.stored
    }

    /// Returns the elements in this arrangement. `shape_mismatch` unless there are [`Layout::elements`] of them.
    pub fn apply<T: Element + Default>(&self, data: &[T]) -> Result<Vec<T>> {
        let mut arranged = defaults(self.stored)?;
        self.apply_bytes(size_of::<T>(), bytes(data), bytes_mut(&mut arranged))?;
        Ok(arranged)
    }

    /// Returns the elements in their original order. `shape_mismatch` unless there are [`Layout::stored`] of them.
    pub fn undo<T: Element + Default>(&self, arranged: &[T]) -> Result<Vec<T>> {
        let mut data = defaults(self.elements)?;
        self.undo_bytes(size_of::<T>(), bytes(arranged), bytes_mut(&mut data))?;
        Ok(data)
    }

    /// Does as [`Layout::apply`] for elements of `size` bytes (1, 2, 4 or 8), from and to memory of the caller.
    /// Positions without an element become zero.
    pub fn apply_bytes(&self, size: usize, data: &[u8], arranged: &mut [u8]) -> Result<()> {
        self.check(size, data.len(), arranged.len())?;
        if self.stored > self.elements {
            arranged.fill(0);
        }
        if let Kind::Apart { stride } = self.kind {
            turn(size, data, arranged, self.elements / stride, stride);
        }
        self.lines(&mut |from, to, len| {
            arranged[to * size..(to + len) * size].copy_from_slice(&data[from * size..(from + len) * size]);
        });
        Ok(())
    }

    /// Does as [`Layout::undo`] for elements of `size` bytes (1, 2, 4 or 8), from and to memory of the caller.
    pub fn undo_bytes(&self, size: usize, arranged: &[u8], data: &mut [u8]) -> Result<()> {
        self.check(size, data.len(), arranged.len())?;
        if let Kind::Apart { stride } = self.kind {
            turn(size, arranged, data, stride, self.elements / stride);
        }
        self.lines(&mut |from, to, len| {
            data[from * size..(from + len) * size].copy_from_slice(&arranged[to * size..(to + len) * size]);
        });
        Ok(())
    }

    fn check(&self, size: usize, data: usize, arranged: usize) -> Result<()> {
        if !matches!(size, 1 | 2 | 4 | 8) {
            fail!(InvalidArgument, "layout: elements have {size} bytes; they must have 1, 2, 4 or 8");
        }
        if data != self.elements * size || arranged != self.stored * size {
            fail!(
                ShapeMismatch,
                "layout: {data} bytes plain and {arranged} arranged; it needs {} and {}",
                self.elements * size,
                self.stored * size
            );
        }
        Ok(())
    }

    /// Calls `each` for every run of elements that stays contiguous: its start before and after, and its length.
    /// Together the runs hold every element once.
    fn lines(&self, each: &mut dyn FnMut(usize, usize, usize)) {
        match self.kind {
            Kind::Tiled { rows, cols, tile } => {
                let across = cols.div_ceil(tile);
                for row in 0..rows {
                    for first in (0..cols).step_by(tile) {
                        let at = (row / tile * across + first / tile) * tile * tile + row % tile * tile;
                        each(row * cols + first, at, tile.min(cols - first));
                    }
                }
            }
            Kind::Rows { cols, pitch } => {
                let rows = self.elements.checked_div(cols).unwrap_or(0);
                (0..rows).for_each(|row| each(row * cols, row * pitch, cols));
            }
            Kind::Apart { .. } => {}
            Kind::Morton { rows, cols } => {
                let (x_bits, y_bits) = (bits(cols), bits(rows));
                let shared = x_bits.min(y_bits);
                // Two neighbouring columns stay together. Beyond that, every column has its own place.
                let pair = if shared > 0 || y_bits == 0 { 2.min(cols) } else { 1 };
                let columns: Vec<usize> = (0..cols).step_by(pair.max(1)).map(|x| spread(x, shared, 0)).collect();
                for row in 0..rows {
                    let at = spread(row, shared, 1);
                    for (i, x) in columns.iter().enumerate() {
                        let first = i * pair;
                        each(row * cols + first, at + x, pair.min(cols - first));
                    }
                }
            }
        }
    }
}

/// Returns the number of bits that the numbers below `n` need.
fn bits(n: usize) -> u32 {
    usize::BITS - n.saturating_sub(1).leading_zeros()
}

/// Places the lowest `shared` bits of `n` at every second bit from `offset` on, and its other bits above all of those.
fn spread(n: usize, shared: u32, offset: u32) -> usize {
    let low: usize = (0..shared).map(|bit| (n >> bit & 1) << (2 * bit + offset)).sum();
    low | (n >> shared) << (2 * shared)
}

/// Transposes a matrix of `rows` × `cols`.
fn turn(size: usize, source: &[u8], target: &mut [u8], rows: usize, cols: usize) {
    match size {
        1 => turn_elements::<1>(source, target, rows, cols),
        2 => turn_elements::<2>(source, target, rows, cols),
        4 => turn_elements::<4>(source, target, rows, cols),
        _ => turn_elements::<8>(source, target, rows, cols),
    }
}

fn turn_elements<const N: usize>(source: &[u8], target: &mut [u8], rows: usize, cols: usize) {
    let ((source, _), (target, _)) = (source.as_chunks::<N>(), target.as_chunks_mut::<N>());
    let mut square = [[[0; N]; SIDE]; SIDE];
    for top in (0..rows).step_by(SIDE) {
        for left in (0..cols).step_by(SIDE) {
            let (high, wide) = (SIDE.min(rows - top), SIDE.min(cols - left));
            for row in 0..high {
                let first = (top + row) * cols + left;
                for (line, element) in square.iter_mut().zip(&source[first..first + wide]) {
                    line[row] = *element;
                }
            }
            for (col, line) in square[..wide].iter().enumerate() {
                let first = (left + col) * rows + top;
                target[first..first + high].copy_from_slice(&line[..high]);
            }
        }
    }
}

/// Arranges a matrix of `rows` × `cols` as tiles of `tile_size` × `tile_size`. [`restore_matrix`] is the inverse.
pub fn optimize_matrix<T: Element + Default>(data: &[T], rows: usize, cols: usize, tile_size: usize) -> Result<Vec<T>> {
    Layout::tiled(rows, cols, tile_size)?.apply(data)
}

/// Restores the matrix that [`optimize_matrix`] arranged.
pub fn restore_matrix<T: Element + Default>(data: &[T], rows: usize, cols: usize, tile_size: usize) -> Result<Vec<T>> {
    Layout::tiled(rows, cols, tile_size)?.undo(data)
}

/// Pads values with zeros to a multiple of `alignment` bytes. The first values of the result are the original ones.
pub fn align<T: Element + Default>(data: &[T], alignment: usize) -> Result<Vec<T>> {
    Layout::aligned(1, data.len(), size_of::<T>(), alignment)?.apply(data)
}

/// Gathers values that are `stride` apart, so that they are contiguous. [`scatter`] is the inverse.
pub fn coalesce<T: Element + Default>(data: &[T], stride: usize) -> Result<Vec<T>> {
    Layout::coalesced(data.len(), stride)?.apply(data)
}

/// Restores the values that [`coalesce`] arranged.
pub fn scatter<T: Element + Default>(data: &[T], stride: usize) -> Result<Vec<T>> {
    Layout::coalesced(data.len(), stride)?.undo(data)
}

/// Makes `count` default values. Returns an error if they don't fit in memory, because a layout can be larger.
fn defaults<T: Element + Default>(count: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    if values.try_reserve_exact(count).is_err() {
        fail!(OutOfMemory, "layout: {count} elements of {} bytes each don't fit in host memory", size_of::<T>());
    }
    values.resize(count, T::default());
    Ok(values)
}

fn bytes<T: Element>(values: &[T]) -> &[u8] {
    // SAFETY: a slice of an `Element` has no padding bytes, so all of its bytes are initialised.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

fn bytes_mut<T: Element>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: elements may have any bits, so a slice of them is writable as its bytes.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Status;
    use proptest::prelude::*;

    #[test]
    fn a_small_matrix_by_hand() {
        let data: Vec<i32> = (1..=15).collect();
        // 3 × 5 in tiles of 2.
        let tiled = optimize_matrix(&data, 3, 5, 2).unwrap();
        assert_eq!(tiled, [1, 2, 6, 7, 3, 4, 8, 9, 5, 0, 10, 0, 11, 12, 0, 0, 13, 14, 0, 0, 15, 0, 0, 0]);
        assert_eq!(coalesce(&data, 3).unwrap(), [1, 4, 7, 10, 13, 2, 5, 8, 11, 14, 3, 6, 9, 12, 15]);
        assert_eq!(align(&data, 64).unwrap()[14..], [15, 0]);
        let rows = Layout::aligned(3, 5, 4, 32).unwrap().apply(&data).unwrap();
        assert_eq!(rows[..16], [1, 2, 3, 4, 5, 0, 0, 0, 6, 7, 8, 9, 10, 0, 0, 0]);
        let square: Vec<i32> = (0..16).collect();
        let z = Layout::morton(4, 4).unwrap().apply(&square).unwrap();
        assert_eq!(z, [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let status = |result: Result<Layout>| result.err().map(|error| error.status());
        assert_eq!(status(Layout::tiled(2, 2, 0)), Some(Status::InvalidArgument));
        assert_eq!(status(Layout::tiled(usize::MAX, 2, 4)), Some(Status::InvalidArgument));
        assert_eq!(status(Layout::coalesced(10, 3)), Some(Status::InvalidArgument));
        assert_eq!(status(Layout::coalesced(10, 0)), Some(Status::InvalidArgument));
        assert_eq!(status(Layout::aligned(2, 2, 4, 6)), Some(Status::InvalidArgument));
        assert_eq!(status(Layout::aligned(2, 2, 4, 0)), Some(Status::InvalidArgument));
        assert_eq!(status(Layout::morton(usize::MAX, 1)), Some(Status::InvalidArgument));
        let layout = Layout::tiled(2, 2, 2).unwrap();
        assert_eq!(layout.apply(&[1.0f32; 3]).err().map(|error| error.status()), Some(Status::ShapeMismatch));
        assert_eq!(layout.undo(&[1.0f32; 5]).err().map(|error| error.status()), Some(Status::ShapeMismatch));
        assert!(layout.apply_bytes(3, &[0; 12], &mut [0; 12]).is_err());
    }

    /// Returns where element (row, column) is stored, computed from the definitions alone.
    fn place(layout: &Layout, row: usize, column: usize, cols: usize) -> usize {
        match layout.kind {
            Kind::Tiled { tile, .. } => {
                let across = cols.div_ceil(tile);
                (row / tile * across + column / tile) * tile * tile + row % tile * tile + column % tile
            }
            Kind::Rows { pitch, .. } => row * pitch + column,
            Kind::Apart { stride } => {
                let i = row * cols + column;
                i % stride * (layout.elements / stride) + i / stride
            }
            Kind::Morton { rows, cols } => {
                let (mut at, mut next) = (0, 0);
                let (x_bits, y_bits) = (bits(cols), bits(rows));
                for bit in 0..usize::BITS {
                    for (value, own) in [(column, x_bits), (row, y_bits)] {
                        if bit < own {
                            at |= (value >> bit & 1) << next;
                            next += 1;
                        }
                    }
                }
                at
            }
        }
    }

    proptest! {
        #[test]
        fn every_layout_is_as_defined_and_comes_back(rows in 0usize..150, cols in 0usize..150, n in 1usize..9) {
            let layouts = [
                Layout::tiled(rows, cols, n).unwrap(),
                Layout::aligned(rows, cols, 4, 4 * n).unwrap(),
                Layout::coalesced(rows * cols, if (rows * cols).is_multiple_of(n) { n } else { 1 }).unwrap(),
                Layout::morton(rows, cols).unwrap(),
            ];
            let data: Vec<u32> = (1..=(rows * cols) as u32).collect();
            let wide: Vec<i64> = data.iter().map(|&x| i64::from(x) << 33 | 1).collect();
            for layout in layouts {
                let arranged = layout.apply(&data).unwrap();
                prop_assert_eq!(arranged.len(), layout.stored());
                prop_assert!(data.is_empty() || layout.dims().0 * layout.dims().1 == layout.stored());
                prop_assert_eq!(arranged.iter().filter(|&&x| x != 0).count(), data.len());
                for (i, x) in data.iter().enumerate() {
                    prop_assert_eq!(arranged[place(&layout, i / cols, i % cols, cols)], *x, "{:?}", layout);
                }
                prop_assert_eq!(layout.undo(&arranged).unwrap(), data.clone());
                prop_assert_eq!(layout.undo(&layout.apply(&wide).unwrap()).unwrap(), wide.clone());
                let halves: Vec<u8> = (0..2 * data.len()).map(|i| i as u8).collect();
                let (mut there, mut back) = (vec![9; 2 * layout.stored()], vec![9; halves.len()]);
                layout.apply_bytes(2, &halves, &mut there).unwrap();
                layout.undo_bytes(2, &there, &mut back).unwrap();
                prop_assert_eq!(back, halves);
            }
        }
    }
}
