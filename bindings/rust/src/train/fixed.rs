//! Gradients as integers, whose sums have no order: any number of shards, added in any order, has the same sum.
//!
//! A number x becomes the integer nearest to x·2³⁶, ties to even. It must be below 2¹⁶ in magnitude, so that the sum of 2,048
//! shards fits in 64 bits.

use super::flat::joined;
use super::trainer::invalid;
use super::tree::Node;
use adead_core::pipeline::{Pipeline, Value};
use adead_core::{Attrs, Axis, Context, DType, Op, Result, Tensor};

/// 1 in units.
const ONE: f32 = (1u64 << 36) as f32;

/// What a number in units must be below.
const LIMIT: f32 = (1u64 << 52) as f32;

/// The most shards whose sum fits.
const SHARDS: usize = 1 << 11;

/// `invalid_argument` if a batch has too many shards.
pub(super) fn check(shards: usize) -> Result<()> {
    match shards {
        1..=SHARDS => Ok(()),
        _ => invalid(format!("a batch of {shards} shards; with fixed gradients it must have 1 to {SHARDS}")),
    }
}

/// Records the integers of a part of a shard's gradients, which has `elements` of them and may have the loss behind them. Behind the
/// integers it puts how many gradients are in range, and whether the loss is.
pub(super) fn encode(pipeline: &mut Pipeline, all: Value, elements: usize) -> Result<Value> {
    let units = op(pipeline, Op::Scale, Attrs { alpha: ONE, ..Attrs::DEFAULT }, &[all])?;
    let magnitude = op(pipeline, Op::Abs, Attrs::DEFAULT, &[units])?;
    let limit = pipeline.constant(&Tensor::new(&[LIMIT], &[])?)?;
    let fits = op(pipeline, Op::Less, Attrs::DEFAULT, &[magnitude, limit])?;
    let whole = op(pipeline, Op::Round, Attrs::DEFAULT, &[units])?;
    let zero = pipeline.constant(&Tensor::new(&[0.0f32], &[])?)?;
    let whole = op(pipeline, Op::Where, Attrs::DEFAULT, &[fits, whole, zero])?;
    let to = |dtype: DType| Attrs { dtype: Some(dtype), ..Attrs::DEFAULT };
    let whole = op(pipeline, Op::Cast, to(DType::I64), &[whole])?;
    let fits = op(pipeline, Op::Cast, to(DType::I64), &[fits])?;
    let gradients = pipeline.rows(fits, 0, elements)?;
    let along = Attrs { axis: Axis::At(0), ..Attrs::DEFAULT };
    let count = op(pipeline, Op::Sum, Attrs { keepdim: true, ..along }, &[gradients])?;
    let mut joined = vec![whole, count];
    if pipeline.meta(all)?.shape.elements() > elements {
        joined.push(pipeline.rows(fits, elements, 1)?);
    }
    op(pipeline, Op::Concat, along, &joined)
}

/// Records the mean of the shards' gradients, and of their losses, from the sums of their parts' integers. `elements` has the numbers of
/// gradients in the parts; the loss is in the first. All gradients are NaN if one of a shard was out of range; so is the loss.
pub(super) fn decode(
    pipeline: &mut Pipeline,
    sums: &[Value],
    elements: &[usize],
    shards: usize,
) -> Result<(Value, Value)> {
    let float = Attrs { dtype: Some(DType::F32), ..Attrs::DEFAULT };
    let part = 1.0 / (f64::from(ONE) * shards as f64);
    let mean = Attrs { alpha: part as f32, ..Attrs::DEFAULT };
    let (mut gradients, mut counts, mut losses) = (Vec::new(), None, None);
    for (i, (&sum, &count)) in sums.iter().zip(elements).enumerate() {
        let numbers = pipeline.rows(sum, 0, count + usize::from(i == 0))?;
        let floats = op(pipeline, Op::Cast, float, &[numbers])?;
        let means = op(pipeline, Op::Scale, mean, &[floats])?;
        gradients.push(pipeline.rows(means, 0, count)?);
        let found = pipeline.rows(sum, count + usize::from(i == 0), 1)?;
        counts = Some(match counts {
            Some(before) => op(pipeline, Op::Add, Attrs::DEFAULT, &[before, found])?,
            None => found,
        });
        if i == 0 {
            losses = Some((pipeline.rows(means, count, 1)?, pipeline.rows(sum, count + 2, 1)?));
        }
    }
    let (Some(counts), Some((loss, loss_count))) = (counts, losses) else {
        return invalid("there are no parts of gradients".into());
    };
    let gradients = if let [all] = gradients[..] { all } else { joined(pipeline, &gradients)? };
    let nan = pipeline.constant(&Tensor::new(&[f32::NAN], &[1])?)?;
    let mut checked = |values: Value, found: Value, count: usize| {
        let due = pipeline.constant(&Tensor::new(&[(count * shards) as i64], &[1])?)?;
        let fits = op(pipeline, Op::Equal, Attrs::DEFAULT, &[found, due])?;
        op(pipeline, Op::Where, Attrs::DEFAULT, &[fits, values, nan])
    };
    Ok((checked(gradients, counts, elements.iter().sum())?, checked(loss, loss_count, 1)?))
}

/// The elements of the first part of a shard's vector, with the loss and what was in range.
#[cfg(test)]
fn length(elements: usize) -> usize {
    elements + 3
}

/// The sum of all nodes.
pub(super) fn sum(context: &Context, nodes: impl IntoIterator<Item = Node<Tensor>>) -> Result<Option<Tensor>> {
    let mut sums = nodes.into_iter().map(|node| node.sum);
    let first = sums.next();
    sums.try_fold(first, |sum, next| sum.map(|sum| context.add(&sum, &next)).transpose())
}

fn op(pipeline: &mut Pipeline, op: Op, attrs: Attrs, operands: &[Value]) -> Result<Value> {
    let operands: Vec<Option<Value>> = operands.iter().copied().map(Some).collect();
    pipeline.op(op, &attrs, &operands)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The integers of a vector whose last element is the loss.
    fn encoded(values: &[f32]) -> Vec<i64> {
        let context = Context::open("cpu").unwrap();
        let mut pipeline = context.pipeline();
        let x = pipeline.input(DType::F32, &[values.len()]).unwrap();
        let found = encode(&mut pipeline, x, values.len() - 1).unwrap();
        pipeline.output(found).unwrap();
        let x = Tensor::new(values, &[values.len()]).unwrap();
        pipeline.compile().unwrap().run(&[&x]).unwrap()[0].to_vec().unwrap()
    }

    /// The mean gradients and the mean loss of shards' vectors.
    fn means(shards: &[&[f32]]) -> (Vec<f32>, f32) {
        let context = Context::open("cpu").unwrap();
        let elements = shards[0].len() - 1;
        let nodes = shards.iter().enumerate().map(|(index, values)| {
            let sum = Tensor::new(&encoded(values), &[length(elements)]).unwrap();
            Node { level: 0, index, sum }
        });
        let total = sum(&context, nodes).unwrap().unwrap();
        let mut pipeline = context.pipeline();
        let x = pipeline.input(DType::I64, &[length(elements)]).unwrap();
        let (gradients, loss) = decode(&mut pipeline, &[x], &[elements], shards.len()).unwrap();
        pipeline.output(gradients).unwrap();
        pipeline.output(loss).unwrap();
        let found = pipeline.compile().unwrap().run(&[&total]).unwrap();
        (found[0].to_vec().unwrap(), found[1].to_vec::<f32>().unwrap()[0])
    }

    #[test]
    fn numbers_become_the_nearest_integers() {
        let unit = 1.0 / ONE;
        assert_eq!(
            encoded(&[1.0, -0.5, 0.5 * unit, 1.5 * unit, 65535.9, 2.0]),
            [1 << 36, -(1 << 35), 0, 2, (65535.9f32 * ONE) as i64, 1 << 37, 5, 1]
        );
        assert_eq!(encoded(&[65536.0, f32::NAN, f32::NEG_INFINITY, 1.0]), [0, 0, 0, 1 << 36, 0, 1]);
    }

    #[test]
    fn means_are_those_of_the_numbers() {
        assert_eq!(means(&[&[1.0, -3.0, 4.0], &[2.0, 1.0, 8.0]]), (vec![1.5, -1.0], 6.0));
        assert_eq!(means(&[&[1.0, 4.0], &[2.0, 8.0], &[3.0, 0.0]]), (vec![2.0], 4.0));
    }

    #[test]
    fn what_is_out_of_range_makes_all_gradients_nan() {
        let (gradients, loss) = means(&[&[1.0, 2.0, 4.0], &[7e4, 1.0, 8.0]]);
        assert!(gradients.iter().all(|x| x.is_nan()) && loss == 6.0);
        let (gradients, loss) = means(&[&[1.0, 2.0, 4.0], &[3.0, 4.0, f32::NAN]]);
        assert!(gradients == [2.0, 3.0] && loss.is_nan());
        assert!(check(0).is_err() && check(SHARDS + 1).is_err() && check(SHARDS).is_ok() && check(3).is_ok());
    }
}
