//! Families: operations that a device runs at much the same rates, so that one row of figures prices them all.

use super::Cost;
use crate::error::{Error, Result, Status};
use std::fmt;

/// A kind of operation, for pricing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Family {
    /// Matrix products: matmul, ffn.
    Matmul = 0,
    /// attention.
    Attention = 1,
    /// A few instructions for each element: add, mul, relu, cast.
    Elementwise = 2,
    /// A polynomial for each element: exp, log, tanh, sigmoid, gelu.
    Function = 3,
    /// Along an axis: sum, max, dot, softmax, the norms.
    Reduction = 4,
    /// No arithmetic: transpose, concat, embedding.
    Move = 5,
}

impl Family {
    /// How many there are.
    pub const COUNT: usize = Family::ALL.len();

    /// Every family, in numeric order.
    pub const ALL: [Family; 6] =
        [Family::Matmul, Family::Attention, Family::Elementwise, Family::Function, Family::Reduction, Family::Move];

    /// The name in every language, such as `matmul`.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Matmul => "matmul",
            Family::Attention => "attention",
            Family::Elementwise => "elementwise",
            Family::Function => "function",
            Family::Reduction => "reduction",
            Family::Move => "move",
        }
    }

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

    /// The family of that number, if there is one.
    pub fn from_code(code: u32) -> Option<Family> {
        Family::ALL.get(code as usize).copied()
    }
}

impl std::str::FromStr for Family {
    type Err = Error;

    fn from_str(name: &str) -> Result<Family> {
        Family::ALL.into_iter().find(|family| family.name() == name).ok_or_else(|| {
            let known = Family::ALL.map(Family::name).join(", ");
            Error::new(Status::InvalidArgument, format!("no family '{name}': {known}"))
        })
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use crate::command::{Meta, View};
    use crate::contract::Activation;
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
        // An embedding takes indices.
        assert!(met.len() >= Op::ALL.len() - 1, "{met:?}");
    }
}
