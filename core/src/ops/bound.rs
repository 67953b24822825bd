//! Upper bounds of operations' costs, computed from the number of their elements alone.

use super::{Cost, Family, Op};

impl Op {
    /// The number of bounds.
    pub(crate) const BOUNDS: usize = Family::COUNT + 1;

    /// Returns the number of the bound that the operation shares with others.
    #[inline]
    pub(crate) fn bound(self) -> usize {
        // ffn and attention also multiply intermediate values, which are not counted. So matmul's bound is below its family's.
        if matches!(self, Op::Matmul) { Family::COUNT } else { self.family() as usize }
    }
}

/// Returns an upper bound of the cost of operations with this bound, whose operands and result together have this many elements.
///
/// A product of `m`×`k` and `k`×`n` has `mkn` multiplications, the square root of `mk · kn · mn`. Three numbers whose sum is `e`
/// have a product of at most `(e/3)³`, so there are fewer than `e^1.5 / 5` multiplications.
pub(crate) fn most(bound: usize, elements: usize) -> Cost {
    const ATTENTION: usize = Family::Attention as usize;
    const FFN: usize = Family::Matmul as usize;
    let elements = elements as f64;
    let products = match bound {
        Family::COUNT => 0.4 * elements * elements.sqrt(),
        FFN | ATTENTION => 4.0 * elements * elements,
        _ => 0.0,
    };
    Cost { flops: products + 64.0 * elements, bytes: 8.0 * elements }
}

#[cfg(test)]
mod tests {
    use crate::contract::{Activation, BlockFormat};
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
                        // Only ffn takes this list of five: its biases are left out.
                        let inputs =
                            if count == 5 { vec![input, input, None, input, None] } else { vec![input; count] };
                        let mut output = Meta::scalar();
                        if op.info().describe(&attrs, (&inputs).into(), &mut output).is_err() {
                            continue;
                        }
                        let cost = op.info().cost(&attrs, &inputs, &output);
                        let all = inputs.iter().flatten().count() * elements + output.shape.elements();
                        let most = super::most(op.bound(), all);
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
        // Six operations take other operands: embedding and gather indices, where a bool, rope tables of another shape,
        // quantized_matmul and dequantize bytes.
        assert!(met.len() >= Op::ALL.len() - 6, "{met:?}");
    }

    #[test]
    fn nor_do_operations_on_quantised_blocks() {
        for format in BlockFormat::ALL {
            let attrs = Attrs { format: Some(format), ..Attrs::default() };
            for (m, n, blocks) in
                [(1, 1, 1), (9, 1, 1), (1, 9, 1), (1, 1, 9), (300, 300, 1), (300, 300, 9), (1, 3000, 9)]
            {
                let x = Meta::new(DType::F32, Shape::new(&[m, blocks * format.elements()]).unwrap());
                let w = Meta::new(DType::U8, Shape::new(&[n, blocks * format.bytes()]).unwrap());
                for (op, inputs) in [(Op::QuantizedMatmul, &[Some(&x), Some(&w)][..]), (Op::Dequantize, &[Some(&w)])] {
                    let output = op.info().infer(&attrs, inputs).unwrap();
                    let cost = op.info().cost(&attrs, inputs, &output);
                    let all = inputs.iter().flatten().chain([&&output]).map(|meta| meta.shape.elements()).sum();
                    let most = super::most(op.bound(), all);
                    let within = cost.flops <= most.flops && cost.bytes <= most.bytes;
                    assert!(within, "{op} of {m}x{n}x{blocks} {}: {cost:?}", format.name());
                }
            }
        }
    }
}
