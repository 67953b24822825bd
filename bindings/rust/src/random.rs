//! Random tensors by Philox4x32-10: the same numbers in every language and on every device.

use adead_core::{Attrs, Context, Element, Error, Op, PerAxis, Result, Status, Tensor, contract};

/// What the words are for, beside what training draws.
const PURPOSE: u32 = 5;
/// The most elements of a draw, each of which has a word.
const MOST: usize = 1 << 34;
/// The numbers below one are multiples of this.
const STEP: f32 = 1.0 / (1 << 24) as f32;

/// Draws random tensors. Draws are numbered from 0. Each element depends only on the seed, the number of its draw and its
/// position (`docs/contract.md`, "Random tensors"). A generator with the same seed and number of draws therefore continues with
/// the same numbers. A draw that fails doesn't count.
///
/// ```
/// # fn main() -> adead::Result<()> {
/// let context = adead::Context::open("cpu")?;
/// let mut random = adead::Random::new(7);
/// let x = random.uniform(&context, 0.0, 1.0, &[2, 3])?;
/// let z = random.standard_normal(&context, &[1000])?;
/// let order = random.permutation(10)?;
/// assert_eq!(random.draws(), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    seed: u64,
    draws: u64,
}

impl Random {
    /// Makes a generator before its first draw.
    pub fn new(seed: u64) -> Random {
        Random::after(seed, 0)
    }

    /// Makes a generator that has drawn `draws` times.
    pub fn after(seed: u64, draws: u64) -> Random {
        Random { seed, draws }
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the number of draws so far.
    pub fn draws(&self) -> u64 {
        self.draws
    }

    /// Draws uniform numbers in [0, 1), f32: multiples of 2⁻²⁴. `out_of_memory` if memory is short, `invalid_argument` for more
    /// than 2³⁴ elements.
    pub fn units(&mut self, dims: &[usize]) -> Result<Tensor> {
        self.drawn(dims, |word| (word >> 8) as f32 * STEP)
    }

    /// Draws uniform numbers from `low` to below `high`, f32: u·(high − low) + low with u of [`units`](Random::units).
    ///
    /// # Errors
    /// Those of `units`.
    pub fn uniform(&mut self, context: &Context, low: f64, high: f64, dims: &[usize]) -> Result<Tensor> {
        let mut next = self.clone();
        let units = next.units(dims)?;
        let drawn = context.add(&context.scale(&units, (high - low) as f32)?, &number(low as f32)?)?;
        *self = next;
        Ok(drawn)
    }

    /// Draws normal numbers with mean 0 and deviation 1, f32, by the Box–Muller transform of two uniform numbers.
    ///
    /// # Errors
    /// Those of `units`.
    pub fn standard_normal(&mut self, context: &Context, dims: &[usize]) -> Result<Tensor> {
        let mut next = self.clone();
        let count = elements(dims)?;
        let pairs = next.units(&[count, 2])?;
        let column = |first: i32| -> Result<Tensor> {
            let attrs = Attrs {
                start: PerAxis::new(&[0, first])?,
                stop: PerAxis::new(&[i32::MAX, first + 1])?,
                ..Attrs::DEFAULT
            };
            context.run(Op::Slice, &attrs, &[Some(&pairs)])
        };
        // Above 0, so that the logarithm is finite.
        let first = context.log(&context.add(&column(0)?, &number(STEP)?)?)?;
        let radius = context.sqrt(&context.scale(&first, -2.0)?)?;
        let angle = context.cos(&context.scale(&column(1)?, std::f32::consts::TAU)?)?;
        let drawn = context.mul(&radius, &angle)?.reshape(dims)?;
        *self = next;
        Ok(drawn)
    }

    /// Draws normal numbers, f32: z·deviation + mean with z of [`standard_normal`](Random::standard_normal).
    ///
    /// # Errors
    /// Those of `units`, and `invalid_argument` for a deviation that is not at least 0.
    pub fn normal(&mut self, context: &Context, mean: f32, deviation: f32, dims: &[usize]) -> Result<Tensor> {
        if !(deviation >= 0.0) {
            return Err(invalid(format_args!("the deviation of normal numbers is at least 0, not {deviation}")));
        }
        let mut next = self.clone();
        let drawn = next.standard_normal(context, dims)?;
        let drawn = context.add(&context.scale(&drawn, deviation)?, &number(mean)?)?;
        *self = next;
        Ok(drawn)
    }

    /// Draws integers from `low` to below `low + count`, i64.
    ///
    /// # Errors Those of `units`, and `invalid_argument` for a count of 0 or above 2³², or if an i64 can't hold the largest
    /// one.
    pub fn integers(&mut self, low: i64, count: u64, dims: &[usize]) -> Result<Tensor> {
        if count == 0 || count > 1 << 32 || low.checked_add_unsigned(count - 1).is_none() {
            return Err(invalid(format_args!(
                "integers are drawn from 1 to 2^32 different ones, not {count} from {low} on"
            )));
        }
        self.drawn(dims, |word| low + ((u128::from(word) * u128::from(count)) >> 32) as i64)
    }

    /// Draws a random order of the numbers below `count`, i64.
    ///
    /// # Errors
    /// Those of `units`.
    pub fn permutation(&mut self, count: usize) -> Result<Tensor> {
        elements(&[count])?;
        let mut order = reserved::<i64>(count)?;
        // The core's function would abort without memory.
        drop(reserved::<usize>(count)?);
        order.extend(contract::drawn_order(self.words(), count).into_iter().map(|at| at as i64));
        let order = Tensor::new(&order, &[count])?;
        self.draws = self.draws.wrapping_add(1);
        Ok(order)
    }

    fn words(&self) -> impl Iterator<Item = u32> + use<> {
        contract::words(self.seed, [self.draws as u32, (self.draws >> 32) as u32, PURPOSE])
    }

    /// Draws a number for each word.
    fn drawn<T: Element>(&mut self, dims: &[usize], number: impl Fn(u32) -> T) -> Result<Tensor> {
        let count = elements(dims)?;
        let mut values = reserved(count)?;
        values.extend(self.words().take(count).map(number));
        let drawn = Tensor::new(&values, dims)?;
        self.draws = self.draws.wrapping_add(1);
        Ok(drawn)
    }
}

/// A scalar.
fn number(value: f32) -> Result<Tensor> {
    Tensor::new(&[value], &[])
}

fn invalid(text: std::fmt::Arguments<'_>) -> Error {
    Error::new(Status::InvalidArgument, text.to_string())
}

fn elements(dims: &[usize]) -> Result<usize> {
    match dims.iter().try_fold(1usize, |all, &dim| all.checked_mul(dim)) {
        Some(count) if count <= MOST => Ok(count),
        _ => Err(invalid(format_args!("a draw has at most {MOST} elements; the shape is {dims:?}"))),
    }
}

fn reserved<T>(count: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    match values.try_reserve_exact(count) {
        Ok(()) => Ok(values),
        Err(_) => {
            let bytes = count.saturating_mul(size_of::<T>());
            Err(Error::new(Status::OutOfMemory, format!("no memory for a draw: {bytes} bytes for {count} elements")))
        }
    }
}
