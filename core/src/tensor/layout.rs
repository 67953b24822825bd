//! Orders of elements in memory that suit GPUs: tiles, aligned rows, coalesced structures, Morton order.
//!
//! A [`Layout`] says how a matrix that lies row by row is arranged, and moves elements there and back. It works on bytes:
//! elements of 1, 2, 4 or 8 of them, whatever they mean. [`optimize_matrix`], [`align`], [`coalesce`] and [`morton`] do
//! the same for slices.

use crate::error::{Error, Result, Status, fail};

/// Elements are moved in blocks of this many rows and columns, so that both sides stay in the cache.
const BLOCK: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Tiles(usize),
    Rows,
    Columns,
    Morton,
}

/// How the elements of a row-major matrix are arranged. Padding is zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    order: Order,
    element: usize,
    rows: usize,
    cols: usize,
    padded: (usize, usize),
}

impl Layout {
    /// Tiles of `tile` by `tile` elements, one after the other in row-major order, each row-major within. Rows and columns
    /// are padded to multiples of `tile`.
    pub fn tiles(element: usize, rows: usize, cols: usize, tile: usize) -> Result<Layout> {
        if tile == 0 {
            fail!(InvalidArgument, "layout: a tile size of 0; it is 1 or more");
        }
        let padded = (rows.checked_next_multiple_of(tile), cols.checked_next_multiple_of(tile));
        Layout::new(Order::Tiles(tile), element, rows, cols, padded)
    }

    /// Rows that begin at multiples of `alignment` bytes, a multiple of the element's size. The dimensions laid out are the
    /// rows and the elements from one row to the next.
    pub fn aligned(element: usize, rows: usize, cols: usize, alignment: usize) -> Result<Layout> {
        if alignment == 0 || element == 0 || !alignment.is_multiple_of(element) {
            fail!(
                InvalidArgument,
                "layout: an alignment of {alignment} bytes for elements of {element}; it is a multiple"
            );
        }
        let padded = (Some(rows), cols.checked_next_multiple_of(alignment / element));
        Layout::new(Order::Rows, element, rows, cols, padded)
    }

    /// Elements that lie `stride` apart, side by side: structures of `stride` fields become arrays of each field.
    /// `shape_mismatch` unless `elements` is a multiple of `stride`. The dimensions laid out are the fields and the
    /// structures.
    pub fn coalesced(element: usize, elements: usize, stride: usize) -> Result<Layout> {
        if stride == 0 {
            fail!(InvalidArgument, "layout: a stride of 0; it is 1 or more");
        }
        if !elements.is_multiple_of(stride) {
            fail!(
                ShapeMismatch,
                "layout: {elements} elements with a stride of {stride}; {} are left over",
                elements % stride
            );
        }
        Layout::new(Order::Columns, element, elements / stride, stride, (Some(stride), Some(elements / stride)))
    }

    /// Morton (Z) order: bits of row and column alternate in an element's place, the column's first, and the higher bits of
    /// the longer side are above them. Rows and columns are padded to powers of two.
    pub fn morton(element: usize, rows: usize, cols: usize) -> Result<Layout> {
        let padded = |n: usize| if n == 0 { Some(0) } else { n.checked_next_power_of_two() };
        Layout::new(Order::Morton, element, rows, cols, (padded(rows), padded(cols)))
    }

    fn new(
        order: Order,
        element: usize,
        rows: usize,
        cols: usize,
        padded: (Option<usize>, Option<usize>),
    ) -> Result<Layout> {
        if !matches!(element, 1 | 2 | 4 | 8) {
            fail!(InvalidArgument, "layout: elements of {element} bytes; they have 1, 2, 4 or 8");
        }
        if let (Some(r), Some(c)) = padded
            && r.checked_mul(c).and_then(|n| n.checked_mul(element)).is_some_and(|bytes| bytes <= isize::MAX as usize)
        {
            return Ok(Layout { order, element, rows, cols, padded: (r, c) });
        }
        fail!(InvalidArgument, "layout: {rows} by {cols} elements of {element} bytes, padded, don't fit into memory")
    }

    /// Rows and columns as laid out, with the padding.
    pub fn dims(&self) -> (usize, usize) {
        self.padded
    }

    /// Bytes of the plain matrix.
    pub fn plain_bytes(&self) -> usize {
        self.rows * self.cols * self.element
    }

    /// Bytes as laid out, with the padding.
    pub fn bytes(&self) -> usize {
        self.padded.0 * self.padded.1 * self.element
    }

    /// Arranges a plain matrix. `shape_mismatch` unless `from` has [`plain_bytes`](Self::plain_bytes) and `to`
    /// [`bytes`](Self::bytes) bytes.
    pub fn arrange(&self, from: &[u8], to: &mut [u8]) -> Result<()> {
        self.check(from.len(), to.len())?;
        if self.bytes() > self.plain_bytes() {
            to.fill(0);
        }
        self.run(from, to, false);
        Ok(())
    }

    /// Makes the plain matrix of an arranged one: the inverse of [`arrange`](Self::arrange). Padding is not looked at.
    pub fn restore(&self, from: &[u8], to: &mut [u8]) -> Result<()> {
        self.check(to.len(), from.len())?;
        self.run(from, to, true);
        Ok(())
    }

    fn check(&self, plain: usize, laid: usize) -> Result<()> {
        if (plain, laid) != (self.plain_bytes(), self.bytes()) {
            fail!(
                ShapeMismatch,
                "layout: {} by {} elements of {} bytes take {} bytes and {} laid out; the memory given has {plain} and {laid}",
                self.rows,
                self.cols,
                self.element,
                self.plain_bytes(),
                self.bytes()
            );
        }
        Ok(())
    }

    /// Moves everything; sizes were checked.
    fn run(&self, from: &[u8], to: &mut [u8], restore: bool) {
        match (self.order, self.element) {
            (Order::Tiles(tile), _) => self.rows_of(tile, self.cols.min(tile), tile, from, to, restore),
            (Order::Rows, _) => self.rows_of(1, self.cols, self.padded.1, from, to, restore),
            (_, 1) => self.elements::<1>(from, to, restore),
            (_, 2) => self.elements::<2>(from, to, restore),
            (_, 4) => self.elements::<4>(from, to, restore),
            _ => self.elements::<8>(from, to, restore),
        }
    }

    /// Moves pieces of rows, of `width` elements or what is left: pieces that are below each other in `high` rows lie
    /// `apart` elements apart.
    fn rows_of(&self, high: usize, width: usize, apart: usize, from: &[u8], to: &mut [u8], restore: bool) {
        let mut start = 0;
        for top in (0..self.rows).step_by(high) {
            for left in (0..self.cols).step_by(width.max(1)) {
                let bytes = width.min(self.cols - left) * self.element;
                for row in top..self.rows.min(top + high) {
                    let plain = (row * self.cols + left) * self.element;
                    let laid = (start + (row - top) * apart) * self.element;
                    let (at, out) = if restore { (laid, plain) } else { (plain, laid) };
                    to[out..out + bytes].copy_from_slice(&from[at..at + bytes]);
                }
                start += high * apart;
            }
        }
    }

    /// Moves elements one by one, in blocks.
    fn elements<const N: usize>(&self, from: &[u8], to: &mut [u8], restore: bool) {
        let (from, to) = (from.as_ptr().cast::<[u8; N]>(), to.as_mut_ptr().cast::<[u8; N]>());
        let (row_bits, col_bits) = self.masks();
        // The next number that has bits only there.
        let next = |bits: usize, mask: usize| bits.wrapping_sub(mask) & mask;
        let mut row_place = 0;
        let mut col_place;
        for top in (0..self.rows).step_by(BLOCK) {
            let first_row = row_place;
            col_place = 0;
            for left in (0..self.cols).step_by(BLOCK) {
                let first_col = col_place;
                row_place = first_row;
                for row in top..self.rows.min(top + BLOCK) {
                    col_place = first_col;
                    for col in left..self.cols.min(left + BLOCK) {
                        let plain = row * self.cols + col;
                        let laid =
                            if self.order == Order::Morton { row_place | col_place } else { col * self.rows + row };
                        let (at, out) = if restore { (laid, plain) } else { (plain, laid) };
                        // SAFETY: `plain` is below rows * cols and `laid` below the product of the padded dimensions, of
                        // elements of N bytes; `check` compared the lengths with both. Arrays of bytes are aligned anywhere.
                        unsafe { to.add(out).write(from.add(at).read()) };
                        col_place = next(col_place, col_bits);
                    }
                    row_place = next(row_place, row_bits);
                }
            }
        }
    }

    /// Which bits of a place in Morton order are the row's and which the column's.
    fn masks(&self) -> (usize, usize) {
        let bits = |side: usize| side.max(1).trailing_zeros();
        let (rows, cols) = (bits(self.padded.0), bits(self.padded.1));
        let shared = 2 * rows.min(cols);
        // 0101… as far as both sides have bits; all above are the longer side's.
        let mut col = usize::MAX / 3 & ((1 << shared) - 1);
        if cols > rows {
            col |= ((1 << (cols - rows)) - 1) << shared;
        }
        (((1 << (rows + cols)) - 1) ^ col, col)
    }
}

/// Numbers that can be seen as their bytes.
///
/// # Safety
/// The type has 1, 2, 4 or 8 bytes, none of them padding, and every pattern of bits is a value.
pub unsafe trait Plain: Copy + 'static {}

macro_rules! plain {
    ($($type:ty)*) => { $(
        // SAFETY: a plain number.
        unsafe impl Plain for $type {}
    )* };
}
plain!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

fn bytes_of<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: `Plain` promises that there is no padding.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// A vector of `bytes` bytes that `fill` writes.
fn filled<T: Plain>(bytes: usize, fill: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Vec<T>> {
    let mut values: Vec<T> = Vec::new();
    let count = bytes / size_of::<T>();
    if values.try_reserve_exact(count).is_err() {
        return Err(Error::new(Status::OutOfMemory, format!("layout: no memory for {bytes} bytes")));
    }
    // SAFETY: the memory is there, and zeros are values of a `Plain`.
    unsafe {
        values.as_mut_ptr().write_bytes(0, count);
        values.set_len(count);
    }
    // SAFETY: the values' own memory; `Plain` promises that every byte may be written.
    fill(unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), bytes) })?;
    Ok(values)
}

impl Layout {
    /// [`arrange`](Self::arrange) into a new vector.
    pub fn arranged<T: Plain>(&self, values: &[T]) -> Result<Vec<T>> {
        self.check_type::<T>()?;
        filled(self.bytes(), |to| self.arrange(bytes_of(values), to))
    }

    /// [`restore`](Self::restore) into a new vector.
    pub fn restored<T: Plain>(&self, values: &[T]) -> Result<Vec<T>> {
        self.check_type::<T>()?;
        filled(self.plain_bytes(), |to| self.restore(bytes_of(values), to))
    }

    fn check_type<T>(&self) -> Result<()> {
        if size_of::<T>() != self.element {
            fail!(DtypeMismatch, "layout: of elements of {} bytes, not {}", self.element, size_of::<T>());
        }
        Ok(())
    }
}

/// A row-major matrix in tiles of `tile_size` by `tile_size`, and the [`Layout::tiles`] that restores it.
pub fn optimize_matrix<T: Plain>(data: &[T], rows: usize, cols: usize, tile_size: usize) -> Result<(Vec<T>, Layout)> {
    let layout = Layout::tiles(size_of::<T>(), rows, cols, tile_size)?;
    Ok((layout.arranged(data)?, layout))
}

/// Rows of `row` elements, each padded with zeros to a multiple of `alignment` bytes, and the [`Layout::aligned`] that
/// restores them. With `row` the whole length it is the whole that is padded.
pub fn align<T: Plain>(data: &[T], row: usize, alignment: usize) -> Result<(Vec<T>, Layout)> {
    let rows = data.len().checked_div(row).unwrap_or(0);
    let layout = Layout::aligned(size_of::<T>(), rows, row, alignment)?;
    Ok((layout.arranged(data)?, layout))
}

/// Elements that lie `stride` apart, side by side, and the [`Layout::coalesced`] that restores them: structures of
/// `stride` fields become an array of each field, so that neighbouring threads read neighbouring elements.
pub fn coalesce<T: Plain>(data: &[T], stride: usize) -> Result<(Vec<T>, Layout)> {
    let layout = Layout::coalesced(size_of::<T>(), data.len(), stride)?;
    Ok((layout.arranged(data)?, layout))
}

/// A row-major matrix in Morton order, and the [`Layout::morton`] that restores it.
pub fn morton<T: Plain>(data: &[T], rows: usize, cols: usize) -> Result<(Vec<T>, Layout)> {
    let layout = Layout::morton(size_of::<T>(), rows, cols)?;
    Ok((layout.arranged(data)?, layout))
}
