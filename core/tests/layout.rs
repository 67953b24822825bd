//! Layouts: there and back, and against definitions element by element.

use adead_core::Status;
use adead_core::layout::{Layout, align, coalesce, morton, optimize_matrix};
use proptest::prelude::*;

/// Where an element of a plain matrix goes, by the definition.
type Place = fn(row: usize, col: usize, rows: usize, cols: usize, parameter: usize) -> usize;

fn tile_place(row: usize, col: usize, _: usize, cols: usize, tile: usize) -> usize {
    let across = cols.div_ceil(tile);
    ((row / tile) * across + col / tile) * tile * tile + (row % tile) * tile + col % tile
}

fn morton_place(row: usize, col: usize, rows: usize, cols: usize, _: usize) -> usize {
    let bits = |side: usize| side.next_power_of_two().trailing_zeros();
    let (mut place, mut bit) = (0, 0);
    for level in 0..usize::BITS {
        for (index, bits) in [(col, bits(cols)), (row, bits(rows))] {
            if level < bits {
                place |= (index >> level & 1) << bit;
                bit += 1;
            }
        }
    }
    place
}

/// Elements of `N` bytes, all different where that is possible.
fn data<const N: usize>(count: usize) -> Vec<u8> {
    (0..count)
        .flat_map(|i| (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()[8 - N..].to_vec())
        .collect()
}

fn agrees<const N: usize>(layout: &Layout, rows: usize, cols: usize, parameter: usize, place: Place) {
    let plain = data::<N>(rows * cols);
    assert_eq!((layout.plain_bytes(), layout.bytes()), (plain.len(), layout.dims().0 * layout.dims().1 * N));
    let mut expected = vec![0; layout.bytes()];
    for row in 0..rows {
        for col in 0..cols {
            let (from, to) = ((row * cols + col) * N, place(row, col, rows, cols, parameter) * N);
            expected[to..to + N].copy_from_slice(&plain[from..from + N]);
        }
    }
    let mut laid = vec![0xa5; layout.bytes()];
    layout.arrange(&plain, &mut laid).unwrap();
    assert!(laid == expected, "{layout:?}");
    let mut back = vec![0xa5; plain.len()];
    layout.restore(&laid, &mut back).unwrap();
    assert!(back == plain, "{layout:?}");
}

fn every_order<const N: usize>(rows: usize, cols: usize, parameter: usize) {
    agrees::<N>(&Layout::tiles(N, rows, cols, parameter).unwrap(), rows, cols, parameter, tile_place);
    agrees::<N>(&Layout::morton(N, rows, cols).unwrap(), rows, cols, parameter, morton_place);
    agrees::<N>(&Layout::aligned(N, rows, cols, parameter * N).unwrap(), rows, cols, parameter, |r, c, _, cols, n| {
        r * cols.next_multiple_of(n) + c
    });
    if cols > 0 {
        let layout = Layout::coalesced(N, rows * cols, cols).unwrap();
        agrees::<N>(&layout, rows, cols, 0, |r, c, rows, _, _| c * rows + r);
        assert_eq!(layout.dims(), (cols, rows));
    }
}

proptest! {
    #[test]
    fn as_defined_and_back(rows in 0..150usize, cols in 0..150usize, parameter in 1..70usize, size in 0..4) {
        match size {
            0 => every_order::<1>(rows, cols, parameter),
            1 => every_order::<2>(rows, cols, parameter),
            2 => every_order::<4>(rows, cols, parameter),
            _ => every_order::<8>(rows, cols, parameter),
        }
    }
}

#[test]
fn sides_that_differ_much() {
    for (rows, cols) in [(1, 1), (1, 1000), (1000, 1), (3, 4097), (4097, 3), (33, 31), (64, 64), (0, 7), (7, 0)] {
        every_order::<4>(rows, cols, 16);
        every_order::<8>(rows, cols, 1);
    }
}

#[test]
fn slices() {
    let (tiled, layout) = optimize_matrix(&[1u16, 2, 3, 4, 5, 6], 2, 3, 2).unwrap();
    assert_eq!((&tiled[..], layout.dims()), (&[1, 2, 4, 5, 3, 0, 6, 0][..], (2, 4)));
    assert_eq!(layout.restored(&tiled).unwrap(), [1u16, 2, 3, 4, 5, 6]);
    let (aligned, layout) = align(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], 3, 16).unwrap();
    assert_eq!((&aligned[..], layout.dims()), (&[1.0, 2.0, 3.0, 0.0, 4.0, 5.0, 6.0, 0.0][..], (2, 4)));
    let (whole, layout) = align(&[7u8; 5], 5, 8).unwrap();
    assert_eq!((&whole[..], layout.bytes(), layout.plain_bytes()), (&[7, 7, 7, 7, 7, 0, 0, 0][..], 8, 5));
    // Two structures of x, y, z.
    let (fields, layout) = coalesce(&[1i64, 2, 3, 10, 20, 30], 3).unwrap();
    assert_eq!((&fields[..], layout.dims()), (&[1, 10, 2, 20, 3, 30][..], (3, 2)));
    let (z, layout) = morton(&[0u32, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], 3, 4).unwrap();
    assert_eq!(z, [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 0, 0, 10, 11, 0, 0]);
    assert_eq!(layout.restored(&z).unwrap(), (0..12).collect::<Vec<u32>>());
    assert_eq!(layout.restored(&[0u8; 64]).unwrap_err().status(), Status::DtypeMismatch);
}

#[test]
fn what_does_not_fit() {
    let failure = |layout: adead_core::Result<Layout>, status: Status, text: &str| {
        let error = layout.unwrap_err();
        assert_eq!(error.status(), status, "{error}");
        assert!(error.message().contains(text), "{error}");
    };
    use Status::{InvalidArgument, ShapeMismatch};
    failure(Layout::tiles(4, 2, 3, 0), InvalidArgument, "tile size of 0");
    failure(Layout::tiles(3, 2, 3, 2), InvalidArgument, "elements of 3 bytes");
    failure(Layout::tiles(4, 1, 1, 1 << 31), InvalidArgument, "1 by 1 elements");
    failure(Layout::tiles(4, 1, 1, usize::MAX), InvalidArgument, "don't fit");
    failure(Layout::tiles(8, 1 << 40, 1 << 40, 16), InvalidArgument, "1099511627776 by 1099511627776");
    failure(Layout::aligned(4, 2, 3, 6), InvalidArgument, "alignment of 6 bytes for elements of 4");
    failure(Layout::aligned(4, 2, 3, 0), InvalidArgument, "alignment of 0");
    failure(Layout::aligned(0, 2, 3, 8), InvalidArgument, "elements of 0");
    failure(Layout::aligned(4, 2, usize::MAX, 8), InvalidArgument, "don't fit");
    failure(Layout::coalesced(4, 7, 3), ShapeMismatch, "7 elements with a stride of 3; 1 are left over");
    failure(Layout::coalesced(4, 7, 0), InvalidArgument, "stride of 0");
    failure(Layout::morton(4, usize::MAX, 1), InvalidArgument, "don't fit");
    failure(Layout::morton(16, 1, 1), InvalidArgument, "elements of 16 bytes");

    let layout = Layout::tiles(2, 3, 3, 2).unwrap();
    let (plain, mut laid) = ([1; 18], [9; 32]);
    for (from, to) in [(17, 32), (18, 31), (19, 32), (18, 33), (0, 0)] {
        let error = layout.arrange(&vec![1; from], &mut vec![9; to]).unwrap_err();
        assert_eq!(error.status(), ShapeMismatch);
        let numbers = format!("take 18 bytes and 32 laid out; the memory given has {from} and {to}");
        assert!(error.message().contains(&numbers), "{error}");
        assert_eq!(layout.restore(&vec![1; to], &mut vec![9; from]).unwrap_err().message(), error.message());
    }
    assert_eq!(layout.arrange(&plain[1..], &mut laid).unwrap_err().status(), ShapeMismatch);
    assert_eq!(laid, [9; 32]);
    assert_eq!(optimize_matrix(&[1.0f32; 5], 2, 3, 2).unwrap_err().status(), ShapeMismatch);
    assert_eq!(align(&[1.0f32; 5], 2, 8).unwrap_err().status(), ShapeMismatch);
    assert_eq!(align(&[1.0f32; 5], 0, 8).unwrap_err().status(), ShapeMismatch);
}
