//! Keys and values of the tokens that a sequence has so far, where a GPU computes with them.

use super::slots::Slot;
use adead::{Context, Result, Tensor};

/// Keys and values while the tokens of a prompt are added, or their place in a recording while those of an answer are.
pub(crate) struct OnDevice {
    /// For every layer the keys and the values, `[heads, tokens, values]`. A step joins its own to them in new memory, which a GPU
    /// copies in less time than it reads a layer's weights. Empty while there is a slot.
    layers: Vec<Option<[Tensor; 2]>>,
    slot: Option<Slot>,
}

impl OnDevice {
    pub fn new(layers: usize) -> OnDevice {
        OnDevice { layers: vec![None; layers], slot: None }
    }

    pub fn slot(&self) -> Option<&Slot> {
        self.slot.as_ref()
    }

    /// Returns the first `length` keys and values, without a slot. [`append`](Self::append) cuts off what is behind them.
    pub fn fork(&self, context: &Context, length: usize) -> Result<OnDevice> {
        let layers = match &self.slot {
            Some(slot) if length > 0 => slot.read(context, length)?.into_iter().map(Some).collect(),
            _ => self.layers.clone(),
        };
        Ok(OnDevice { layers, slot: None })
    }

    /// Moves the first `length` keys and values to a slot.
    pub fn enter(&mut self, context: &Context, length: usize, slot: Slot) -> Result<()> {
        let layers = match &self.slot {
            _ if length == 0 => Vec::new(),
            Some(old) => old.read(context, length)?,
            None => self.layers.iter().flatten().cloned().collect(),
        };
        slot.write(length, &layers)?;
        self.slot = Some(slot);
        self.layers.iter_mut().for_each(|layer| *layer = None);
        Ok(())
    }

    /// Takes the first `length` keys and values back from the slot, if they are in one.
    pub fn leave(&mut self, context: &Context, length: usize) -> Result<()> {
        let Some(slot) = &self.slot else { return Ok(()) };
        if length > 0 {
            self.layers = slot.read(context, length)?.into_iter().map(Some).collect();
        }
        self.slot = None;
        Ok(())
    }

    /// Adds the keys and values of tokens to the first `length` of a layer, and returns all of them. Those behind the first are
    /// forgotten: they are of a step that failed, or of an answer that was taken back.
    ///
    /// New ones are rows of `[heads, values]`. There must be no slot.
    pub fn append(&mut self, context: &Context, layer: usize, length: usize, new: [Tensor; 2]) -> Result<&[Tensor; 2]> {
        let [keys, values] = new;
        let of_layer = &mut self.layers[layer];
        let joined = |place: usize, new: Tensor| {
            let (rows, heads, width) = (new.dims()[0], new.dims()[1], new.dims()[2]);
            // One row has the same order in memory.
            let new = match rows {
                1 => new.reshape(&[heads, 1, width])?,
                _ => context.permute(&new, &[1, 0, 2])?,
            };
            match of_layer.as_ref().map(|both| &both[place]) {
                Some(old) if length > 0 => match old.dims()[1] == length {
                    true => context.concat(&[old, &new], 1),
                    false => context.concat(&[&context.slice(old, &[0, 0], &[i32::MAX, length as i32], &[])?, &new], 1),
                },
                _ => Ok(new),
            }
        };
        let both = [joined(0, keys)?, joined(1, values)?];
        Ok(of_layer.insert(both))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of two heads of two values, which tell the position, the head and the place.
    fn rows(first: usize, count: usize) -> Tensor {
        let value = |i: usize| ((first + i / 4) * 100 + i % 4) as f32;
        Tensor::new(&(0..4 * count).map(value).collect::<Vec<_>>(), &[count, 2, 2]).unwrap()
    }

    #[test]
    fn tokens_are_added_to_the_first_ones() {
        let context = Context::open("cpu").unwrap();
        let mut cache = OnDevice::new(2);
        // The third step fails in a later layer, and the fifth follows an answer that was taken back.
        for (length, count) in [(0, 3), (3, 1), (4, 2), (4, 1), (2, 2), (0, 1)] {
            let [keys, values] =
                cache.append(&context, 1, length, [rows(length, count), rows(length + 10, count)]).unwrap();
            for (both, more) in [(keys, 0), (values, 10)] {
                assert_eq!(both.dims(), [2, length + count, 2]);
                let own = both.as_slice::<f32>().unwrap();
                for (i, &value) in own.iter().enumerate() {
                    let (head, token) = (i / 2 / (length + count), i / 2 % (length + count));
                    assert_eq!(value, ((token + more) * 100 + head * 2 + i % 2) as f32, "{length} {count} {i}");
                }
            }
        }
    }
}
