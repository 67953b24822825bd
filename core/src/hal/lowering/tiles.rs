//! How a matrix product is divided into workgroups: its tile, and whether every K block has its own workgroups.

use super::Limits;
use crate::contract::K_BLOCK;
pub use crate::hal::tiles::{Cost, Tile, TileCosts, tile};

impl Tile {
    /// Returns how many tiles cover a matrix.
    fn count(&self, m: u32, n: u32) -> u64 {
        m.div_ceil(self.bm) as u64 * n.div_ceil(self.bn) as u64
    }

    /// Returns whether a device allows such a workgroup.
    fn fits(&self, limits: &Limits) -> bool {
        let shared = 4 * self.buffers * self.bk * (self.bm + self.bn) + self.held;
        self.threads <= limits.threads && shared <= limits.shared_memory
    }

    /// Returns an upper bound of the loop iterations in a thread of `matmul.comp`, with no loop unrolled.
    pub fn iterations(&self, k: u32) -> u64 {
        let Tile { threads, bm, bn, tm, tn, bk, .. } = *self;
        let multiplied = 1 + (tm + tn) / 4 * 5 + tm * (1 + tn);
        // A thread fetches and stages its share of vectors, with four elements each.
        let moved = 1 + 10 * ((bm * bk / 4).div_ceil(threads) + (bn * bk / 4).div_ceil(threads));
        let finished = 1 + tm * tn * 8;
        let per = |count: u32, each: u32| count as u64 * each as u64;
        per(k.next_multiple_of(bk), multiplied)
            + per(k.div_ceil(bk), moved)
            + per(k.div_ceil(K_BLOCK as u32), 1 + tm * tn)
            + per(2, finished)
    }

    /// Returns whether a thread may run that many iterations, for this K.
    pub fn reaches(&self, k: u32, limits: &Limits) -> bool {
        limits.iterations == u32::MAX || self.iterations(k) <= limits.iterations as u64
    }
}

/// The nanoseconds that a second kernel takes, and the bytes of stored blocks that are moved in one nanosecond.
const MERGE: f64 = 4000.0;
const BYTES: f64 = 3500.0;

/// The most bytes of stored blocks.
const MOST_STORED: u64 = 1 << 28;

/// The sizes and layout of a matrix product.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub m: u32,
    pub n: u32,
    pub k: u32,
    pub batches: u32,
    pub trans_a: bool,
    pub trans_b: bool,
}

impl Sizes {
    /// Returns the number of K blocks.
    pub fn blocks(&self) -> u32 {
        self.k.div_ceil(K_BLOCK as u32)
    }
}

/// Chooses the tile for a product on a device, and whether each K block is computed on its own and merged later.
pub fn choose(sizes: Sizes, limits: &Limits, costs: &TileCosts) -> (Tile, bool) {
    let Sizes { m, n, k, batches, .. } = sizes;
    let blocks = u64::from(sizes.blocks());
    let stored = 4 * blocks * batches as u64 * m as u64 * n.next_multiple_of(4) as u64;
    let unlimited = limits.iterations == u32::MAX;
    let may_split = blocks > 1 && blocks <= 0xffff && (stored <= MOST_STORED || !unlimited);
    let units = limits.units as u64;
    if let Some(tile) = (limits.narrow)(&sizes) {
        // A tile of one row shares out K itself.
        let few = tile.bm > 1 && tile.count(m, n) * (batches as u64) < 4 * units && stored <= MOST_STORED;
        return (tile, may_split && (few || !tile.reaches(k, limits)));
    }
    let last = limits.tiles[limits.tiles.len() - 1].tile;
    let mut best = (last, may_split && !last.reaches(k, limits));
    let mut least = f64::INFINITY;
    for (&Cost { tile, slots, .. }, [alone, shared]) in limits.tiles.iter().zip(costs.all()) {
        for split in [false, true] {
            if split && !may_split || !split && !tile.reaches(k, limits) || !tile.fits(limits) {
                continue;
            }
            let groups = tile.count(m, n) * batches as u64 * if split { blocks } else { 1 };
            let resident = slots * units;
            let each = if groups <= resident {
                alone.max(groups.div_ceil(units) as f64 * shared)
            } else if slots <= 2 {
                groups.div_ceil(resident) as f64 * slots as f64 * shared
            } else {
                // Workgroups end at different times, and others start at once.
                (groups as f64 / units as f64 + slots as f64 / 2.0) * shared
            };
            let merging = if split { MERGE + 2.0 * stored as f64 / BYTES } else { 0.0 };
            let time = each * if split { K_BLOCK as f64 } else { k as f64 } + merging;
            if time < least {
                (least, best) = (time, (tile, split));
            }
        }
    }
    best
}

/// Returns the number in the table of the tile that is chosen for a product; `None` if it is none of them.
pub fn number([m, n, k]: [u32; 3], limits: &Limits, costs: &TileCosts) -> Option<usize> {
    let (tile, _) = choose(Sizes { m, n, k, batches: 1, trans_a: false, trans_b: false }, limits, costs);
    limits.tiles.iter().position(|cost| cost.tile == tile)
}

/// Returns the tile for the mirrored product.
pub fn mirrored(tile: Tile) -> Tile {
    let Tile { bm, bn, tm, tn, .. } = tile;
    Tile { bm: bn, bn: bm, tm: tn, tn: tm, ..tile }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest tile comes first.
    const COSTS: [Cost; 3] = [
        Cost { tile: tile(256, [128, 128], [8, 8], 32, 1), alone: 92.0, shared: 92.0, slots: 1 },
        Cost { tile: tile(64, [64, 64], [8, 8], 16, 1), alone: 56.0, shared: 25.0, slots: 4 },
        Cost { tile: tile(64, [32, 32], [4, 4], 32, 1), alone: 25.0, shared: 9.3, slots: 6 },
    ];

    fn attention(_: &Limits, _: &crate::hal::lowering::attention::Sizes) -> crate::hal::lowering::attention::Tile {
        unreachable!("products have none")
    }

    fn narrow(sizes: &Sizes) -> Option<Tile> {
        let own = sizes.m.min(sizes.n).next_multiple_of(8);
        let tile = tile(64, [own, 128], [own.min(8), 4], 16, 1);
        (own <= 32).then(|| if sizes.m <= sizes.n { tile } else { mirrored(tile) })
    }

    fn h200() -> Limits {
        Limits {
            shared_memory: 49152,
            threads: 1024,
            units: 132,
            iterations: u32::MAX,
            pitched: false,
            tiles: &COSTS,
            narrow,
            fixed_tile: [64, 64],
            fixed_wide: None,
            finds_most: false,
            matrices: None,
            tensor_tiles: false,
            makes_rows: false,
            attention,
            merges_by_warps: false,
        }
    }

    fn with(costs: &TileCosts, [m, n, k]: [u32; 3], limits: &Limits) -> (Tile, bool) {
        choose(Sizes { m, n, k, batches: 1, trans_a: false, trans_b: false }, limits, costs)
    }

    fn of(sizes: [u32; 3], limits: &Limits) -> (Tile, bool) {
        with(&TileCosts::new(&COSTS), sizes, limits)
    }

    #[test]
    fn large_products_have_large_tiles_and_small_ones_many() {
        let limits = h200();
        for n in [2048, 4096, 8192] {
            assert_eq!(of([n; 3], &limits), (COSTS[0].tile, false), "{n}");
        }
        assert_eq!(of([256; 3], &limits), (COSTS[2].tile, false));
        let (tile, split) = of([128, 768, 3072], &limits);
        assert!(split && tile.count(128, 768) * 12 >= 132, "few tiles share out K: {tile:?}");
    }

    #[test]
    fn measured_costs_change_the_choice() {
        let costs = TileCosts::new(&COSTS);
        costs.set(0, [900.0, 900.0]);
        assert_eq!((costs.all()[0], costs.all()[1]), ([900.0; 2], [56.0, 25.0]));
        assert_eq!(with(&costs, [4096; 3], &h200()), (COSTS[1].tile, false));
        // A cost that rules a tile out.
        costs.set(1, [f64::INFINITY; 2]);
        assert_eq!(with(&costs, [4096; 3], &h200()), (COSTS[2].tile, false));
    }

    #[test]
    fn tiles_fit_the_least_device_there_may_be() {
        let least = Limits {
            shared_memory: 16384,
            threads: 128,
            units: 1,
            iterations: 0xffff,
            pitched: false,
            tiles: &COSTS,
            narrow,
            fixed_tile: [64, 64],
            fixed_wide: None,
            finds_most: false,
            matrices: None,
            tensor_tiles: false,
            makes_rows: false,
            attention,
            merges_by_warps: false,
        };
        for m in [1, 4, 5, 9, 17, 33, 100, 1000, 10_000] {
            for n in [1, 4, 5, 9, 17, 33, 100, 1000, 10_000] {
                let (tile, split) = of([m, n, 7000], &least);
                assert!(tile.reaches(if split { K_BLOCK as u32 } else { 7000 }, &least), "{m}x{n}: {tile:?}");
                // Operands that bypass shared memory need none.
                let direct = tile.bm == 4 && tile.bn == 4 * tile.threads;
                assert!(tile.fits(&least) || direct && tile.threads <= 128, "{m}x{n}: {tile:?}");
            }
        }
    }
}
