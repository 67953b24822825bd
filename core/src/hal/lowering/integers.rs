//! Arithmetic on integers and bools: the operations that the table marks so.

use super::compare::broadcast;
use super::operands::packed;
use super::{Call, Encoder, Kernels, moves};
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{Gives, Lines, Op, OpKind, Reduced};

// The values of the first constant of `integers.comp`.
const ARITHMETIC: u32 = 0;
const FOLD: u32 = 1;

/// Lines of at least so many elements have a workgroup each, shorter ones a thread.
const LONG: usize = 128;

/// Encodes an operation on integers or bools.
#[inline(never)]
pub fn run(encoder: &mut dyn Encoder, op: Op, call: &Call<'_>) -> Result<()> {
    let (x, y, n) = (call.operand(0), call.output, call.output.elements());
    if op.kind() != OpKind::Reduction {
        // The function of one operand finds it twice.
        let other = call.input(1).unwrap_or(x);
        let axes = broadcast(encoder, call, [x, other, other])?;
        let push: [u32; 15] =
            packed(&[x.address, other.address, y.address, axes.outer], &[axes.rank, op as u32, n, 0, 0, 0, 0]);
        return encoder.dispatch(Kernels::Integers, &[ARITHMETIC, x.dtype as u32], &push, [n.div_ceil(1024), 1, 1]);
    }
    let Reduced { order, lines: Lines { n: rows, inner, .. } } = Reduced::new(x.shape, call.attrs);
    let mut from = x.address;
    // If the reduced axes are not adjacent, the elements are permuted first.
    if let Some(order) = order {
        let size = x.dtype.size() as u64;
        from = encoder.scratch(size * x.elements() as u64)?;
        moves::permute(encoder, x.shape, &order, size, x.address, from)?;
    }
    let words = match op.gives() {
        Some(Gives::Index) if y.dtype == DType::I64 => 2,
        Some(Gives::Index) => 1,
        _ => 0,
    };
    let long = rows >= LONG;
    let push: [u32; 15] =
        packed(&[from, 0, y.address, 0], &[0, op as u32, n, rows as u32, inner as u32, long.into(), words]);
    let groups = if long { n } else { n.div_ceil(256) };
    encoder.dispatch(Kernels::Integers, &[FOLD, x.dtype as u32], &push, [groups, 1, 1])
}

#[cfg(test)]
mod tests {
    use crate::ops::Op;
    use std::fmt::Write;
    use std::path::Path;

    #[test]
    fn kernels_have_the_tables_operations() {
        let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
        let mut expected = String::from(
            "// Generated from the table of operations by `ADEAD_BLESS=1 cargo test -p adead-core --lib integers`; don't edit.\n\
             // CUDA's kernels include it too.\n\n// The operations on integers, by their numbers.\n",
        );
        let names = || {
            Op::ALL.iter().filter(|op| op.takes_integers()).map(|op| (op, format!("OP_{}", op.name().to_uppercase())))
        };
        names().for_each(|(&op, name)| writeln!(expected, "const uint {name} = {}u;", op as u32).unwrap());
        let path = kernels.join("vulkan/integer_operations.glsl");
        if std::env::var_os("ADEAD_BLESS").is_some() {
            std::fs::write(&path, &expected).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == expected, "{}: ADEAD_BLESS=1 cargo test -p adead-core --lib integers", path.display());
        // What is left when no name matches: these two of a pair, the other one of which is named.
        let last = ["OP_MINIMUM", "OP_MIN", "OP_ARGMIN"];
        for file in ["vulkan/integers.comp", "cuda/integers.cu"] {
            let text = std::fs::read_to_string(kernels.join(file)).unwrap();
            for (op, name) in names().filter(|(_, name)| !last.contains(&name.as_str())) {
                let is_name = |word: &str| word == name;
                let named = text.split(|c: char| !c.is_alphanumeric() && c != '_').any(is_name);
                assert!(named, "{file} computes {op} as another operation");
            }
        }
    }
}
