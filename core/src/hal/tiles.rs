//! The tiles of a GPU's matrix products, and what they cost.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a workgroup computes, and how. The fields have the names of the constants in `matmul.comp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    pub threads: u32,
    pub bm: u32,
    pub bn: u32,
    pub tm: u32,
    pub tn: u32,
    pub bk: u32,
    pub buffers: u32,
    /// The bytes of shared memory that the tile uses besides those for its steps.
    pub held: u32,
}

/// Makes a tile for a table.
pub const fn tile(threads: u32, [bm, bn]: [u32; 2], [tm, tn]: [u32; 2], bk: u32, buffers: u32) -> Tile {
    Tile { threads, bm, bn, tm, tn, bk, buffers, held: 0 }
}

/// The cost of a tile, in nanoseconds for each k: alone on a multiprocessor, and if `slots` workgroups share it. Only
/// ratios matter for the choice. A table's last tile must fit every device.
#[derive(Debug)]
pub struct Cost {
    pub tile: Tile,
    pub alone: f64,
    pub shared: f64,
    pub slots: u64,
}

/// The costs of a device's tiles: those of its table, until measured ones are set.
pub struct TileCosts {
    table: &'static [Cost],
    /// The bits of `alone` and `shared`.
    costs: [[AtomicU64; 2]; MOST_TILES],
}

/// The most tiles of a table.
pub const MOST_TILES: usize = 5;

impl TileCosts {
    /// Begins with the costs of a table.
    pub fn new(table: &'static [Cost]) -> TileCosts {
        let of = |i: usize| table.get(i).map_or([0.0; 2], |cost| [cost.alone, cost.shared]);
        TileCosts { table, costs: std::array::from_fn(|i| of(i).map(|cost| AtomicU64::new(cost.to_bits()))) }
    }

    /// Returns the table's tiles. Their costs may be others.
    pub fn table(&self) -> &'static [Cost] {
        self.table
    }

    /// Returns `alone` and `shared` of each tile.
    pub fn all(&self) -> [[f64; 2]; MOST_TILES] {
        self.costs.each_ref().map(|cost| cost.each_ref().map(|bits| f64::from_bits(bits.load(Relaxed))))
    }

    /// Sets `alone` and `shared` of a tile. That changes which tiles are chosen from now on, and no bit of a result.
    pub fn set(&self, tile: usize, cost: [f64; 2]) {
        self.costs[tile].iter().zip(cost).for_each(|(bits, cost)| bits.store(cost.to_bits(), Relaxed));
    }
}
