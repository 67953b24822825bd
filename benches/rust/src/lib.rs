//! Code that the benchmarks share. They are in `benches/`; `cargo bench -p adead-benches` runs them. `benches/compare.py`
//! compares whole operations with other libraries.

/// Marsaglia's xorshift with a multiplier: negligible in a measurement, and the same on every machine.
pub struct Random(u64);

impl Random {
    /// Begins a sequence.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(2).wrapping_add(1))
    }

    /// Returns 32 bits.
    #[inline]
    pub fn bits(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) as u32
    }

    /// Returns a number below `n`.
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        ((self.bits() as u64 * n as u64) >> 32) as u32
    }
}
