//! Sequences whose next tokens a GPU computes together, one token each. Such a step is one recording of hundreds of small kernels,
//! because starting each of them by itself takes longer than the kernel. Keys and values stay in the recording's states.

use super::config::Config;
use super::decoder::Choices;
use super::layer::Layer;
use super::weights::Linear;
use adead::pipeline::{Compiled, Pipeline, Value};
use adead::{Attrs, Axis, Context, DType, Op, Result, Tensor};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The smallest number of positions for which there is room.
const LEAST: usize = 256;

/// A recording for a number of sequences with a number of positions each.
pub(crate) struct Slots {
    /// For every layer two states, `[count, heads, capacity, values]`: keys and values.
    compiled: Compiled,
    count: usize,
    capacity: usize,
    heads: usize,
    width: usize,
    /// On the device: what clears a sequence's keys or values.
    zeros: Tensor,
    places: Mutex<Vec<Place>>,
}

/// What is known of a slot.
#[derive(Clone, Copy, Default)]
struct Place {
    taken: bool,
    /// Whether an earlier sequence has left keys and values. Hidden ones count as zeros, but an infinity among them would not.
    used: bool,
}

/// A sequence's place in a recording. It is free again when this is dropped.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    number: usize,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.lock()[self.number] = Place { taken: false, used: true };
    }
}

/// What layers see, in the order of the slots.
pub(crate) struct Sight {
    /// The cosines and sines of the rows' positions, `[count, 1, pairs]`.
    pub angles: [Tensor; 2],
    /// 0 for keys that a row sees and −inf for others, `[count, 1, 1, capacity]`.
    pub mask: Tensor,
}

/// The values of a pipeline for [`Sight`].
struct Seen {
    angles: [Value; 2],
    mask: Value,
}

impl Slots {
    /// Records a step of `count` sequences with up to `capacity` positions. `ends` is the norm behind the last layer, `head` makes
    /// logits of what it gives.
    pub fn new(
        context: &Context,
        config: &Config,
        layers: &[Layer],
        ends: &Tensor,
        head: &Linear,
        [count, capacity]: [usize; 2],
    ) -> Result<Slots> {
        let Config { width, heads, kv_heads, head_width, eps, score_scale, window, .. } = *config;
        let mut to = context.pipeline();
        let mut x = to.input(DType::F32, &[count, width])?;
        let chosen = to.input(DType::Bool, &[count, 1, capacity, 1])?;
        let seen = |to: &mut Pipeline| -> Result<Seen> {
            let dims = [count, 1, head_width / 2];
            let angles = [to.input(DType::F32, &dims)?, to.input(DType::F32, &dims)?];
            Ok(Seen { angles, mask: to.input(DType::F32, &[count, 1, 1, capacity])? })
        };
        let everything = seen(&mut to)?;
        let local = window.map(|_| seen(&mut to)).transpose()?;
        let empty = Tensor::zeros(DType::F32, &[count, kv_heads, capacity, head_width])?;
        let attrs = Attrs { scale: score_scale, ..Attrs::DEFAULT };
        for (number, layer) in layers.iter().enumerate() {
            let seen = match (&window, &local) {
                (Some(window), Some(local)) if window.applies_to(number) => local,
                _ => &everything,
            };
            let [queries, keys, values] = layer.before(&mut to, config, count, &x, seen.angles.each_ref())?;
            let mut kept = |new: Value| -> Result<Value> {
                let state = to.state(&empty)?;
                let new = to.reshape(new, &[count, kv_heads, 1, head_width])?;
                let next = to.op(Op::Where, &Attrs::DEFAULT, &[Some(chosen), Some(new), Some(state)])?;
                to.assign(state, next)?;
                Ok(next)
            };
            let (keys, values) = (kept(keys)?, kept(values)?);
            let queries = to.reshape(queries, &[count, heads, 1, head_width])?;
            let attended = to.op(Op::Attention, &attrs, &[queries, keys, values, seen.mask].map(Some))?;
            let attended = to.reshape(attended, &[count, heads * head_width])?;
            x = layer.behind(&mut to, config, count, &x, &attended)?;
        }
        let ends = to.constant(ends)?;
        let ended = to.op(Op::Rmsnorm, &Attrs { eps, ..Attrs::DEFAULT }, &[Some(x), Some(ends)])?;
        to.output(ended)?;
        if head.is_of_blocks() {
            let logits = head.record(&mut to, ended)?;
            let along = Attrs { axis: Axis::At(-1), ..Attrs::DEFAULT };
            let greatest = to.op(Op::Argmax, &Attrs { dtype: Some(DType::I32), ..along }, &[Some(logits)])?;
            // NaN is the greatest, and does not equal itself.
            let most = to.op(Op::Max, &along, &[Some(logits)])?;
            let is_number = to.op(Op::Equal, &Attrs::DEFAULT, &[Some(most), Some(most)])?;
            let none = to.constant(&Tensor::new(&[-1i32], &[1])?)?;
            let greatest = to.op(Op::Where, &Attrs::DEFAULT, &[Some(is_number), Some(greatest), Some(none)])?;
            to.output(logits)?;
            to.output(greatest)?;
        }
        let zeros = Tensor::zeros(DType::F32, &[kv_heads * capacity, head_width])?;
        let zeros = context.to(&zeros, &context.device_info().id)?;
        let places = Mutex::new(vec![Place::default(); count]);
        Ok(Slots { compiled: to.compile()?, count, capacity, heads: kv_heads, width: head_width, zeros, places })
    }

    /// Returns the numbers of slots and positions for so many sequences of up to `longest` positions, in a model of `most`: powers of
    /// two, so that few recordings serve all.
    pub fn sizes(sequences: usize, longest: usize, most: usize) -> [usize; 2] {
        [sequences.next_power_of_two(), longest.next_power_of_two().max(LEAST).min(most.max(longest))]
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn count(&self) -> usize {
        self.count
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether no sequence has a place.
    pub fn is_unused(&self) -> bool {
        self.lock().iter().all(|place| !place.taken)
    }

    /// Takes places for so many sequences, or none if there are not enough.
    pub fn take(self: &Arc<Slots>, sequences: usize) -> Option<Vec<Slot>> {
        let mut places = self.lock();
        let free: Vec<usize> = (0..self.count).filter(|&number| !places[number].taken).take(sequences).collect();
        (free.len() == sequences).then(|| {
            free.iter().for_each(|&number| places[number].taken = true);
            free.into_iter().map(|number| Slot { slots: self.clone(), number }).collect()
        })
    }

    /// Runs a step: x of all slots' rows, at which position each writes its keys and values, what the layers see (those with a window
    /// last). Returns what is behind the last norm, and what the recording says of next tokens. Rows without a position change
    /// nothing.
    pub fn run(&self, x: &Tensor, positions: &[Option<usize>], sights: &[&Sight]) -> Result<(Tensor, Option<Choices>)> {
        let mut chosen = vec![false; self.count * self.capacity];
        for (slot, position) in positions.iter().enumerate() {
            if let Some(position) = position {
                chosen[slot * self.capacity + position] = true;
            }
        }
        let chosen = Tensor::from_bools(&chosen, &[self.count, 1, self.capacity, 1])?;
        let mut given = vec![x, &chosen];
        for Sight { angles: [cos, sin], mask } in sights {
            given.extend([cos, sin, mask]);
        }
        let mut outputs = self.compiled.run_staying(&given)?.into_iter();
        let Some(hidden) = outputs.next() else { unreachable!("a recording has an output") };
        let choices = outputs.next().zip(outputs.next()).map(|(logits, greatest)| Choices { logits, greatest });
        Ok((hidden, choices))
    }
}

impl Slot {
    pub fn slots(&self) -> &Arc<Slots> {
        &self.slots
    }

    pub fn number(&self) -> usize {
        self.number
    }

    /// Writes the first `length` keys and values of each layer, `[heads, tokens, values]`, and clears what an earlier sequence left
    /// behind them.
    pub fn write(&self, length: usize, layers: &[[Tensor; 2]]) -> Result<()> {
        let Slots { compiled, capacity, heads, width, zeros, .. } = &*self.slots;
        let used = self.slots.lock()[self.number].used;
        let first = |head: usize| (self.number * heads + head) * capacity * width;
        for (state, tensor) in layers.iter().flatten().enumerate() {
            for head in 0..*heads {
                let own = tensor.rows(head, 1)?.reshape(&[tensor.dims()[1], *width])?.rows(0, length)?;
                compiled.write_state(state, first(head), &own)?;
            }
        }
        if used {
            // Without tokens the heads are one piece.
            let pieces = if length == 0 { 1 } else { *heads };
            let rest = zeros.rows(0, heads / pieces * capacity - length)?;
            for state in 0..compiled.states().len() {
                for head in 0..pieces {
                    compiled.write_state(state, first(head) + length * width, &rest)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the first `length` keys and values of each layer, `[heads, tokens, values]`.
    pub fn read(&self, context: &Context, length: usize) -> Result<Vec<[Tensor; 2]>> {
        let Slots { compiled, capacity, heads, width, .. } = &*self.slots;
        let state = |state: usize| -> Result<Tensor> {
            let own = compiled.state_rows(state, self.number, 1)?.reshape(&[*heads, *capacity, *width])?;
            context.slice(&own, &[0, 0], &[i32::MAX, length as i32], &[])
        };
        (0..compiled.states().len() / 2).map(|layer| Ok([state(2 * layer)?, state(2 * layer + 1)?])).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::text::decoder::{Step, Wanted};
    use crate::text::{OpenOptions, TextGenerator};

    /// The back end of the GPU that the tests use.
    fn backend() -> String {
        std::env::var("ADEAD_TEST_BACKEND").unwrap_or("vulkan".into())
    }

    #[test]
    fn a_recording_chooses_the_greatest_logits() {
        let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/text/llama.gguf");
        let options = OpenOptions { device: Some(format!("{}:0", backend())), ..OpenOptions::default() };
        let generator = match TextGenerator::open_with(model, &options) {
            Ok(generator) => generator,
            // Whoever names the back end wants the test to run.
            Err(error) if std::env::var_os("ADEAD_TEST_BACKEND").is_some() => panic!("{error}"),
            Err(error) => return println!("skipped: {error}"),
        };
        let inner = generator.inner();
        let mut caches = [(); 3].map(|()| inner.cache());
        let tokens: [[u32; 4]; 3] = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]];
        let mut seen = Vec::new();
        for at in 0..4 {
            let steps = caches.iter_mut().zip(&tokens).enumerate().map(|(number, (cache, tokens))| {
                // The second sequence wants nothing of its first tokens.
                let wanted = if number == 1 && at < 2 { Wanted::None } else { Wanted::Last };
                Step { cache, tokens: &tokens[at..=at], wanted }
            });
            let ahead = inner.model.forward(&mut steps.collect::<Vec<_>>()).unwrap().unwrap();
            let greatest = inner.model.greatest(&ahead).unwrap().expect("a recording chooses");
            let logits = inner.model.logits(&ahead).unwrap();
            let rows = logits.as_slice::<f32>().unwrap().chunks_exact(inner.model.vocabulary());
            let expected =
                rows.map(|row| row.iter().position(|&logit| logit == row.iter().copied().fold(f32::MIN, f32::max)));
            assert_eq!(greatest, expected.map(|id| id.unwrap() as u32).collect::<Vec<_>>());
            // They are those of the hidden states.
            let again = inner.model.logits_of(&inner.model.hidden(&ahead).unwrap()).unwrap();
            assert_eq!(logits.as_slice::<f32>().unwrap(), again.as_slice::<f32>().unwrap());
            seen.extend(greatest);
        }
        assert_eq!(seen.len(), 10);
        seen.dedup();
        assert!(seen.len() > 3, "{seen:?}");
    }
}
