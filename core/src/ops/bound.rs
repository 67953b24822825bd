//! What the operations of a family cost at most.

use super::{Cost, Family};

impl Family {
    /// No less than any of its operations costs whose operands have so many elements together, its result among them: a product
    /// has fewer multiplications than pairs of elements, attention has two products.
    pub(crate) fn most(self, elements: usize) -> Cost {
        let elements = elements as f64;
        let pairs = match self {
            Family::Matmul | Family::Attention => elements * elements,
            _ => 0.0,
        };
        Cost { flops: 4.0 * pairs + 64.0 * elements, bytes: 8.0 * elements }
    }
}

#[cfg(test)]
mod tests {
    use crate::contract::Activation;
    use crate::operand::{Meta, View};
    use crate::{Attrs, DType, Op, Shape};

    #[test]
    fn no_operation_costs_more_than_the_most_of_its_family() {
        let (values, mut met) = ([0f32; 2 * 9 * 9], Vec::new());
        let attrs = Attrs { activation: Some(Activation::GeluErf), alpha: 2.0, ..Attrs::default() };
        for &op in Op::ALL {
            for n in 1..=9 {
                for dims in [&[n][..], &[n, n], &[1, n], &[2, n, n]] {
                    let meta = Meta::new(DType::F32, Shape::new(dims).unwrap());
                    let elements = meta.shape.elements();
                    let input = Some(View::f32(&values[..elements], &meta).unwrap());
                    for (count, attrs) in (1..=5).flat_map(|count| [(count, Attrs::default()), (count, attrs)]) {
                        // Five are ffn's, without what is added.
                        let inputs =
                            if count == 5 { vec![input, input, None, input, None] } else { vec![input; count] };
                        let mut output = Meta::scalar();
                        if op.info().describe(&attrs, (&inputs).into(), &mut output).is_err() {
                            continue;
                        }
                        let cost = op.info().cost(&attrs, &inputs, &output);
                        let all = inputs.iter().flatten().count() * elements + output.shape.elements();
                        let most = op.family().most(all);
                        assert!(
                            cost.flops <= most.flops && cost.bytes <= most.bytes,
                            "{op} of {count} times {dims:?}: {cost:?}"
                        );
                        met.push(op);
                    }
                }
            }
        }
        met.dedup();
        // An embedding and gather take indices, where takes a bool, rope tables of another shape.
        assert!(met.len() >= Op::ALL.len() - 4, "{met:?}");
    }
}
