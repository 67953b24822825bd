//! The tiles of products and of attention on a GPU, and the limits that shape its kernels.

use super::physical::Physical;
use super::shared::Shared;
use crate::hal::TileCosts;
use crate::hal::lowering::Limits;
use crate::hal::lowering::attention::{Sizes as AttentionSizes, Tile as AttentionTile};
use crate::hal::lowering::tiles::{Cost, Sizes, Tile, tile};

/// The tiles of products, with costs measured side by side on an H200. `lowering::tiles` defines the terms.
const TILES: [Cost; 4] = [
    Cost { tile: held(256, [128, 128], [8, 8], 16), alone: 110.0, shared: 95.0, slots: 2 },
    Cost { tile: held(128, [64, 64], [8, 4], 32), alone: 38.0, shared: 33.0, slots: 4 },
    Cost { tile: held(128, [32, 64], [4, 4], 32), alone: 31.0, shared: 21.8, slots: 4 },
    Cost { tile: held(64, [16, 32], [2, 4], 64), alone: 17.0, shared: 8.8, slots: 4 },
];

/// The same tiles for GPUs with less shared memory per multiprocessor than an H200's 228 KiB, where fewer blocks share
/// one. Compute capability 7.5 has 64 KiB, 7.0 has 96, 8.6, 8.9 and 12.0 have 100, 8.0 and 8.7 have 164.
static BY_SHARED_MEMORY: [(u32, [Cost; 4]); 5] =
    [(228, TILES), (164, within(164)), (100, within(100)), (96, within(96)), (64, within(64))];

/// Returns the tiles with as many slots as the shared memory holds. `shared` then lies between `alone` and the full
/// value.
const fn within(kibibytes: u32) -> [Cost; 4] {
    let mut tiles = TILES;
    let mut i = 0;
    while i < tiles.len() {
        let Cost { tile, alone, shared, slots } = tiles[i];
        // The driver reserves 1 KiB for each block.
        let room = (kibibytes << 10) / (shared_of(tile.bm, tile.bn, tile.bk) + 1024);
        if room > 0 && (room as u64) < slots {
            // The time of all slots together, for each k: interpolated between one block and a full multiprocessor.
            let full = slots as f64 * shared;
            let some = alone + (full - alone) * (room - 1) as f64 / (slots - 1) as f64;
            tiles[i] = Cost { tile, alone, shared: some / room as f64, slots: room as u64 };
        }
        i += 1;
    }
    tiles
}

const fn held(threads: u32, [bm, bn]: [u32; 2], own: [u32; 2], bk: u32) -> Tile {
    let steps = 4 * 2 * bk * (bm + bn);
    Tile { held: shared_of(bm, bn, bk) - steps, ..tile(threads, [bm, bn], own, bk, 2) }
}

/// Returns the tile for products with at most four rows, which reads B in place. With one row, a workgroup has a warp for each of up to
/// 16 K blocks, unless few workgroups would share a long K.
fn narrow(sizes: &Sizes) -> Option<Tile> {
    let &Sizes { m, n, batches, trans_b, .. } = sizes;
    let blocks = sizes.blocks();
    let alone = m == 1 && (blocks <= 16 || n.div_ceil(32) as u64 * batches as u64 >= 64);
    let rows =
        if alone { tile(32 * blocks.clamp(1, 16), [1, 32], [1, 1], 1, 2) } else { tile(128, [4, 128], [4, 1], 1, 2) };
    (m <= 4 && !trans_b).then_some(rows)
}

/// Returns the rows and columns of a tile of the tensor-core kernel. Tiles are half as wide if then no multiprocessor has two of them.
fn fixed_wide(limits: &Limits, digits: u32, [m, n, batches]: [u32; 3]) -> [u32; 2] {
    let columns = if digits == 3 { 64 } else { 128 };
    let narrow = m.div_ceil(128) as u64 * n.div_ceil(columns / 2) as u64 * batches as u64;
    [128, if narrow <= limits.units as u64 { columns / 2 } else { columns }]
}

/// Returns the bytes of shared memory of attention's block: keys, values, weights and queries of a chunk. Rows are
/// padded by four.
pub fn attention_bytes(columns: u32, threads: u32, of_thread: u32, width: u32) -> u32 {
    if threads == FEW_ROWS.threads {
        return row_bytes(width, columns);
    }
    let warps = threads / 32;
    let weights = warps * 64 * (4 * of_thread + 4);
    4 * (64 * 68 + 64 * columns + weights + width.next_multiple_of(64) * (4 * of_thread * warps + 4))
}

/// Returns the tile for attention.
fn attention(limits: &Limits, sizes: &AttentionSizes) -> AttentionTile {
    let AttentionSizes { queries, width, value_width, .. } = *sizes;
    let narrow_rows = (width | value_width).is_multiple_of(4) && width <= 128 && value_width <= 128;
    if queries <= 2 * FEW_ROWS.queries
        && narrow_rows
        && sizes.splits()
        && row_bytes(width, value_width) <= limits.shared_memory
    {
        return AttentionTile { columns: value_width.max(1), ..FEW_ROWS };
    }
    tiled(limits, sizes)
}

/// Returns the tile for attention on GPUs before 8.0, for which few queries have no kernel of their own.
fn tiled(limits: &Limits, sizes: &AttentionSizes) -> AttentionTile {
    let AttentionSizes { heads, queries, width, value_width, .. } = *sizes;
    if queries <= 16 || width > 256 {
        return FEW;
    }
    let narrow = value_width <= 64;
    // Blocks of half the rows are faster unless each multiprocessor gets two blocks of full size.
    let many = narrow && heads * queries.div_ceil(128) as u64 > 2 * limits.units as u64;
    let tile = |columns, of_thread| AttentionTile {
        threads: 128,
        queries: 16 * of_thread,
        columns,
        of_thread,
        of_block: false,
    };
    let fits = |tile: &AttentionTile| {
        attention_bytes(tile.columns, tile.threads, tile.of_thread, width) <= limits.shared_memory
    };
    let tiles = [many.then(|| tile(64, 8)), (!narrow).then(|| tile(128, 4)), Some(tile(64, 4))];
    tiles.into_iter().flatten().find(fits).unwrap_or(FEW)
}

const FEW: AttentionTile = AttentionTile { threads: 32, queries: 16, columns: 64, of_thread: 4, of_block: false };

/// Of few queries: all columns, one block of keys.
const FEW_ROWS: AttentionTile = AttentionTile { threads: 256, queries: 4, columns: 128, of_thread: 1, of_block: true };

/// Returns the bytes of shared memory of [`FEW_ROWS`]: keys, values, queries, weights, the warps' greatest scores.
fn row_bytes(width: u32, value_width: u32) -> u32 {
    4 * (64 * (width + 4) + 64 * value_width + 4 * width + 4 * 64 + 8)
}

/// Returns the bytes of shared memory of a product's block: two steps of both operands, rows padded by four, and the
/// totals.
pub const fn shared_of(bm: u32, bn: u32, bk: u32) -> u32 {
    4 * (2 * bk * (bm + 4 + bn + 4) + bm * bn)
}

/// Returns the tiles of a GPU with their built-in costs.
pub fn tile_costs(physical: &Physical) -> TileCosts {
    // A driver that doesn't report its shared memory gets the tiles for the least.
    let has = |&&(kibibytes, _): &&(u32, _)| kibibytes << 10 <= physical.shared_memory_of_unit;
    let (_, tiles) = BY_SHARED_MEMORY.iter().find(has).unwrap_or(&BY_SHARED_MEMORY[4]);
    TileCosts::new(tiles)
}

impl Limits {
    /// Returns the limits of a GPU.
    pub fn of_cuda(shared: &Shared) -> Limits {
        let physical = &shared.physical;
        Limits {
            shared_memory: physical.shared_memory[1].max(physical.shared_memory[0]),
            threads: physical.threads,
            units: physical.info.units as u32,
            iterations: u32::MAX,
            pitched: true,
            tiles: shared.tiles.table(),
            narrow,
            fixed_tile: [64, 64],
            fixed_wide: (physical.capability == 90).then_some(fixed_wide),
            finds_most: true,
            matrices: None,
            tensor_tiles: physical.capability >= 80,
            makes_rows: true,
            attention: if physical.capability >= 80 { attention } else { tiled },
            merges_by_warps: true,
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::hal::cuda::fake::{Card, Fake};
    use crate::hal::cuda::{CudaDevice, Opening};
    use crate::hal::lowering::tiles::choose;

    /// The limits of a card of a compute capability.
    pub fn limits(capability: i32) -> Limits {
        let fake = Fake::new(&[Card { capability, ..Card::default() }]);
        let device = CudaDevice::open(0, &Opening { driver: Some(fake.driver()), ..Opening::default() }).unwrap();
        Limits::of_cuda(&device.shared)
    }

    #[test]
    fn as_many_tiles_share_a_multiprocessor_as_its_memory_holds() {
        let slots = |capability| limits(capability).tiles.iter().map(|cost| cost.slots).collect::<Vec<_>>();
        assert_eq!(slots(90), [2, 4, 4, 4]);
        assert_eq!(slots(100), [2, 4, 4, 4]);
        assert_eq!(slots(80), [1, 3, 4, 4]);
        for capability in [86, 89, 120] {
            assert_eq!(slots(capability), [1, 1, 2, 3], "{capability}");
        }
        assert_eq!(slots(75), [2, 1, 1, 2], "the first does not fit at all");
        // One block alone takes the time `alone`; more blocks take a time between both.
        for (here, whole) in limits(86).tiles.iter().zip(&TILES) {
            assert_eq!((here.tile, here.alone), (whole.tile, whole.alone));
            assert!(if here.slots == 1 { here.shared == here.alone } else { here.shared < here.alone });
            assert!(here.shared >= whole.shared);
        }
    }

    #[test]
    fn products_have_tiles_that_fit() {
        for capability in [70, 75, 80, 86, 90, 100, 120] {
            let limits = limits(capability);
            for n in [16, 64, 256, 1024, 4096] {
                let (tile, _) = choose(
                    Sizes { m: n, n, k: n, batches: 1, trans_a: false, trans_b: false },
                    &limits,
                    &TileCosts::new(limits.tiles),
                );
                let bytes = shared_of(tile.bm, tile.bn, tile.bk);
                assert!(bytes <= limits.shared_memory, "{capability}: {n}: {tile:?} takes {bytes} bytes");
            }
        }
        // Large products use the largest tile that fits.
        for (capability, bm) in [(75, 64), (80, 128), (86, 128), (90, 128), (120, 128)] {
            let sizes = Sizes { m: 4096, n: 4096, k: 4096, batches: 1, trans_a: false, trans_b: false };
            let limits = limits(capability);
            assert_eq!(choose(sizes, &limits, &TileCosts::new(limits.tiles)).0.bm, bm, "{capability}");
        }
    }

    #[test]
    fn attention_has_the_largest_tile_that_fits() {
        let of = |capability, width, value_width| {
            let limits = limits(capability);
            let sizes = AttentionSizes { heads: 64, queries: 2048, keys: 2048, width, value_width };
            let AttentionTile { threads, columns, of_thread, .. } = attention(&limits, &sizes);
            assert!(attention_bytes(columns, threads, of_thread, width) <= limits.shared_memory);
            (threads, columns, of_thread)
        };
        assert_eq!((of(90, 64, 64), of(90, 128, 128)), ((128, 64, 8), (128, 128, 4)));
        assert_eq!((of(80, 64, 64), of(80, 128, 128)), ((128, 64, 8), (128, 128, 4)));
        assert_eq!((of(86, 64, 64), of(120, 128, 128)), ((128, 64, 4), (128, 64, 4)));
        assert_eq!((of(75, 64, 64), of(90, 300, 64)), ((32, 64, 4), (32, 64, 4)));
    }

    #[test]
    fn few_queries_share_out_the_keys() {
        let of = |capability, queries, keys, width, value_width| {
            let sizes = AttentionSizes { heads: 96, queries, keys, width, value_width };
            let limits = limits(capability);
            let tile = (limits.attention)(&limits, &sizes);
            assert_eq!(tile.of_block, tile.threads == FEW_ROWS.threads);
            tile.of_block
        };
        assert!(
            !of(75, 1, 512, 64, 64)
                && of(90, 1, 512, 64, 64)
                && of(90, 8, 512, 128, 128)
                && of(120, 3, 100_000, 80, 64)
        );
        assert!(
            !of(90, 9, 512, 64, 64) && !of(90, 3, 512, 130, 64) && !of(90, 3, 512, 64, 30) && !of(90, 3, 512, 256, 64)
        );
        // Memory for all blocks.
        assert!(!of(90, 8, 10_000_000, 64, 64));
    }
}
