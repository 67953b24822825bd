//! Keys and values of the tokens that a sequence has so far, in host memory.

use super::on_device::OnDevice;
use adead::{Context, Error, Result, Status};
use std::alloc::{Layout, alloc_zeroed};
use std::ops::Range;

/// The keys and values of a sequence: for every layer `[head][capacity][values]`, so that what a head has so far is contiguous. The
/// capacity doubles up to the model's context length. Or they are on a GPU.
pub(crate) struct Cache {
    /// Nothing is in host memory then.
    pub on_device: Option<OnDevice>,
    layers: Vec<Layer>,
    length: usize,
    capacity: usize,
    most: usize,
    heads: usize,
    width: usize,
}

#[derive(Clone, Default)]
struct Layer {
    keys: Vec<f32>,
    values: Vec<f32>,
}

/// The floats that are worth several threads.
const IN_PARALLEL: usize = 16 << 10;

/// The first capacity.
const FIRST: usize = 64;

impl Cache {
    /// Makes the cache of a sequence without tokens.
    pub fn new(layers: usize, heads: usize, width: usize, most: usize) -> Cache {
        Cache { on_device: None, layers: vec![Layer::default(); layers], length: 0, capacity: 0, most, heads, width }
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
        capacity = capacity.min(self.most);
        let mut grown = Vec::with_capacity(self.layers.len());
        for layer in 0..self.layers.len() {
            let keys = self.grown(&self.layers[layer].keys, capacity)?;
            let values = self.grown(&self.layers[layer].values, capacity)?;
            grown.push(Layer { keys, values });
        }
        (self.layers, self.capacity) = (grown, capacity);
        Ok(())
    }

    /// Returns a copy for a larger capacity.
    fn grown(&self, from: &[f32], capacity: usize) -> Result<Vec<f32>> {
        let (width, heads) = (self.width, self.heads);
        let floats = heads.saturating_mul(capacity).saturating_mul(width);
        let Some(mut to) = zeros(floats) else {
            let text = format!(
                "no memory for {capacity} tokens: {floats} f32 for the keys of a layer, and as many for its values"
            );
            return Err(Error::new(Status::OutOfMemory, text));
        };
        let used = self.length * width;
        for head in 0..heads {
            let own = &from[head * self.capacity * width..][..used];
            to[head * capacity * width..][..used].copy_from_slice(own);
        }
        Ok(to)
    }

    /// Returns a cache with the first `length` of these tokens. On a GPU it has the same memory until one of them changes.
    pub fn fork(&self, context: &Context, length: usize) -> Result<Cache> {
        let on_device = self.on_device.as_ref().map(|cache| cache.fork(context, length)).transpose()?;
        let layers = vec![Layer::default(); self.layers.len()];
        let mut fork = Cache { on_device, layers, length: 0, capacity: 0, ..*self };
        if length == 0 {
            return Ok(fork);
        }
        fork.reserve(length)?;
        let copy = |from: &[f32], to: &mut [f32]| {
            for (from, to) in
                from.chunks_exact(self.capacity * self.width).zip(to.chunks_exact_mut(fork.capacity * self.width))
            {
                to[..length * self.width].copy_from_slice(&from[..length * self.width]);
            }
        };
        for (from, to) in self.layers.iter().zip(&mut fork.layers) {
            copy(&from.keys, &mut to.keys);
            copy(&from.values, &mut to.values);
        }
        fork.length = length;
        Ok(fork)
    }

    /// Writes the keys and values of a layer for the tokens behind those that it has, rows of `[heads, values]`. [`reserve`] must
    /// have made room.
    ///
    /// [`reserve`]: Cache::reserve
    pub fn write(&mut self, context: &Context, layer: usize, keys: &[f32], values: &[f32]) {
        let (heads, width, capacity, first) = (self.heads, self.width, self.capacity, self.length);
        let layer = &mut self.layers[layer];
        let parts = [(&mut layer.keys, keys), (&mut layer.values, values)].into_iter();
        let parts = parts.flat_map(|(to, from)| {
            to.chunks_exact_mut(capacity * width).enumerate().map(move |(head, to)| (head, to, from))
        });
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
        let (first, floats) = ((head * self.capacity + positions.start) * self.width, positions.len() * self.width);
        let Layer { keys, values } = &self.layers[layer];
        (&keys[first..][..floats], &values[first..][..floats])
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
