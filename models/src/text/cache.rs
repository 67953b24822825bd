//! Keys and values of the tokens that a sequence has so far, in host memory.

use super::on_device::OnDevice;
use adead::{Context, Error, Result, Status};
use std::alloc::{Layout, alloc_zeroed};
use std::ops::Range;

/// The keys and values of a sequence: for every layer, keys or values, and head `[capacity][values]`, so that what a head has so far is
/// contiguous. The capacity doubles up to the model's context length. Or they are on a GPU.
pub(crate) struct Cache {
    /// Nothing is in host memory then.
    pub on_device: Option<OnDevice>,
    /// In one piece, which the system clears when it is written. Small pieces it would clear at once.
    memory: Vec<f32>,
    length: usize,
    capacity: usize,
    /// The capacity that is expected to be needed.
    expected: usize,
    most: usize,
    layers: usize,
    heads: usize,
    width: usize,
}

/// The floats that are worth several threads.
const IN_PARALLEL: usize = 16 << 10;

/// The first capacity.
const FIRST: usize = 64;

impl Cache {
    /// Makes the cache of a sequence without tokens.
    pub fn new(layers: usize, heads: usize, width: usize, most: usize) -> Cache {
        let memory = Vec::new();
        Cache { on_device: None, memory, length: 0, capacity: 0, expected: 0, most, layers, heads, width }
    }

    /// Makes the cache of a sequence whose layers a GPU computes.
    pub fn on_device(layers: usize, most: usize) -> Cache {
        Cache { on_device: Some(OnDevice::new(layers)), ..Cache::new(0, 0, 0, most) }
    }

    /// Returns the number of tokens.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Forgets all but the first tokens.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Makes room for so many tokens when it grows next.
    pub fn expect(&mut self, tokens: usize) {
        self.expected = tokens;
    }

    /// Makes room for more tokens. `invalid_argument` if they exceed the context length, `out_of_memory` without memory.
    pub fn reserve(&mut self, more: usize) -> Result<()> {
        let needed = self.length.saturating_add(more);
        if needed > self.most {
            let text = format!("{needed} tokens exceed the model's context length of {}", self.most);
            return Err(Error::new(Status::InvalidArgument, text));
        }
        if needed <= self.capacity || self.on_device.is_some() {
            return Ok(());
        }
        let mut capacity = self.capacity.max(FIRST);
        while capacity < needed {
            capacity = capacity.saturating_mul(2);
        }
        capacity = capacity.max(self.expected).min(self.most);
        let parts = self.layers.saturating_mul(2).saturating_mul(self.heads);
        let floats = parts.saturating_mul(capacity).saturating_mul(self.width);
        let Some(memory) = zeros(floats) else {
            let text = format!("no memory for the keys and values of {capacity} tokens: {floats} f32");
            return Err(Error::new(Status::OutOfMemory, text));
        };
        let grown = Cache { on_device: None, memory, capacity, ..*self };
        *self = self.copied(grown, self.length);
        Ok(())
    }

    /// Copies the first `length` tokens to a cache that has room for them, and returns it.
    fn copied(&self, mut to: Cache, length: usize) -> Cache {
        if !self.memory.is_empty() {
            let from = self.memory.chunks_exact(self.capacity * self.width);
            for (from, to) in from.zip(to.memory.chunks_exact_mut(to.capacity * to.width)) {
                to[..length * self.width].copy_from_slice(&from[..length * self.width]);
            }
        }
        to.length = length;
        to
    }

    /// Returns a cache with the first `length` of these tokens. On a GPU it has the same memory until one of them changes.
    pub fn fork(&self, context: &Context, length: usize) -> Result<Cache> {
        let on_device = self.on_device.as_ref().map(|cache| cache.fork(context, length)).transpose()?;
        let mut fork = Cache { on_device, memory: Vec::new(), length: 0, capacity: 0, expected: 0, ..*self };
        if length == 0 {
            return Ok(fork);
        }
        fork.reserve(length)?;
        Ok(self.copied(fork, length))
    }

    /// Writes the keys and values of a layer for the tokens behind those that it has, rows of `[heads, values]`. [`reserve`] must
    /// have made room.
    ///
    /// [`reserve`]: Cache::reserve
    pub fn write(&mut self, context: &Context, layer: usize, keys: &[f32], values: &[f32]) {
        let (heads, width, capacity, first) = (self.heads, self.width, self.capacity, self.length);
        let parts = self.memory.chunks_exact_mut(capacity * width).skip(2 * layer * heads).take(2 * heads).enumerate();
        let parts = parts.map(|(at, to)| (at % heads, to, if at < heads { keys } else { values }));
        let copy = |(head, to, from): (usize, &mut [f32], &[f32])| {
            for (to, from) in to[first * width..].chunks_exact_mut(width).zip(from.chunks_exact(heads * width)) {
                to.copy_from_slice(&from[head * width..][..width]);
            }
        };
        // Memory that is written for the first time costs more than the copy, so it is worth several threads.
        match keys.len() >= IN_PARALLEL {
            true => drop(context.map(parts.collect(), copy)),
            false => parts.for_each(copy),
        }
    }

    /// Returns the keys and values of a layer's head at some positions, each `[positions, values]`.
    pub fn read(&self, layer: usize, head: usize, positions: Range<usize>) -> (&[f32], &[f32]) {
        let first = ((2 * layer * self.heads + head) * self.capacity + positions.start) * self.width;
        let (keys, values) = (first, first + self.heads * self.capacity * self.width);
        let floats = positions.len() * self.width;
        (&self.memory[keys..][..floats], &self.memory[values..][..floats])
    }

    /// Counts the tokens that were written to all layers.
    pub fn advance(&mut self, tokens: usize) {
        self.length += tokens;
    }
}

/// Returns zeros, or `None` without memory. The system gives them page by page when they are written, so a large capacity costs
/// nothing before.
fn zeros(floats: usize) -> Option<Vec<f32>> {
    let layout = Layout::array::<f32>(floats).ok().filter(|layout| layout.size() > 0)?;
    // SAFETY: the layout has a size.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        return None;
    }
    // SAFETY: the memory comes from the global allocator with the layout of as many floats, and zero bytes are floats.
    Some(unsafe { Vec::from_raw_parts(memory.cast(), floats, floats) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes rows whose values tell layer, position and head.
    fn fill(cache: &mut Cache, rows: usize) {
        cache.reserve(rows).unwrap();
        let context = Context::open("cpu").unwrap();
        for layer in 0..2 {
            let value = |i: usize| ((cache.length() + i / 6) * 100 + i % 6 * 10 + layer) as f32;
            let keys: Vec<f32> = (0..rows * 6).map(value).collect();
            let values: Vec<f32> = keys.iter().map(|key| -key).collect();
            cache.write(&context, layer, &keys, &values);
        }
        cache.advance(rows);
    }

    #[test]
    fn a_fork_has_the_first_tokens_and_goes_its_own_way() {
        let context = Context::open("cpu").unwrap();
        let mut cache = Cache::new(2, 3, 2, 300);
        fill(&mut cache, 200);
        let mut fork = cache.fork(&context, 70).unwrap();
        assert_eq!((fork.length(), fork.capacity), (70, 128));
        for (layer, head) in [(0, 0), (1, 2)] {
            assert_eq!(fork.read(layer, head, 0..70), cache.read(layer, head, 0..70));
        }
        cache.truncate(64);
        fill(&mut cache, 7);
        fill(&mut fork, 1);
        assert_eq!(fork.read(1, 1, 70..71), cache.read(1, 1, 70..71));
        assert_eq!(fork.length(), 71);
        let empty = cache.fork(&context, 0).unwrap();
        assert_eq!(empty.length(), 0);
    }

    #[test]
    fn what_is_written_is_read_after_it_grew() {
        let mut cache = Cache::new(2, 3, 2, 300);
        for rows in [1, 63, 1, 100, 120] {
            fill(&mut cache, rows);
        }
        assert_eq!((cache.length(), cache.capacity), (285, 300));
        for (layer, head) in [(0, 0), (1, 1), (0, 2)] {
            let (keys, values) = cache.read(layer, head, 0..285);
            let expected = |i: usize| (i / 2 * 100 + (2 * head + i % 2) * 10 + layer) as f32;
            assert!(keys.iter().enumerate().all(|(i, &key)| key == expected(i)), "{layer} {head}");
            assert!(values.iter().enumerate().all(|(i, &value)| value == -expected(i)), "{layer} {head}");
        }
        cache.truncate(64);
        fill(&mut cache, 1);
        assert_eq!(cache.read(1, 1, 64..65).0, [6421.0, 6431.0]);
    }

    #[test]
    fn the_context_length_is_the_limit() {
        let mut cache = Cache::new(2, 3, 2, 70);
        fill(&mut cache, 69);
        cache.reserve(1).unwrap();
        let error = cache.reserve(2).unwrap_err();
        let text = "71 tokens exceed the model's context length of 70";
        assert_eq!((error.status(), error.message()), (Status::InvalidArgument, text));
        let error = Cache::new(1, 1 << 20, 1 << 20, usize::MAX).reserve(1 << 30).unwrap_err();
        assert_eq!(error.status(), Status::OutOfMemory);
    }
}
