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

/// Parts of lines of at least so many elements have a workgroup each, shorter ones a thread.
const LONG: u32 = 128;

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
    let fold = Fold { op, dtype: x.dtype, from, rows: rows as u32, inner: inner as u32 };
    let parts = fold.rows.div_ceil(PART).max(1);
    if parts == 1 {
        return fold.encode(encoder, 1, [0, 0], n, y.address, words);
    }
    if words == 0 {
        // The results of all parts of a line are a line of their own.
        let found = encoder.scratch(x.dtype.size() as u64 * u64::from(n) * u64::from(parts))?;
        fold.encode(encoder, parts, [0, 0], n * parts, found, 0)?;
        return Fold { from: found, rows: parts, inner: 1, ..fold }.encode(encoder, 1, [0, 0], n, y.address, 0);
    }
    let places = encoder.scratch(4 * u64::from(n) * u64::from(parts))?;
    fold.encode(encoder, parts, [0, 0], n * parts, places, 1)?;
    fold.encode(encoder, 1, [places, parts.into()], n, y.address, words)
}

/// The most elements of a line that one workgroup reduces: some 64 by each thread. Drivers that run kernels on the processor end
/// loops of more than 65,535 rounds.
const PART: u32 = 1 << 14;

/// A reduction of lines of `rows` elements, which are `inner` apart.
#[derive(Clone, Copy)]
struct Fold {
    op: Op,
    dtype: DType,
    from: u64,
    rows: u32,
    inner: u32,
}

impl Fold {
    /// Divides each line into parts and stores a result for each part, `n` in all, at `to`: a value, or a place of that many
    /// words. `chosen` is the address of the places that are looked at, and how many a line has; 0 to look at all.
    fn encode(
        &self,
        encoder: &mut dyn Encoder,
        parts: u32,
        chosen: [u64; 2],
        n: u32,
        to: u64,
        words: u32,
    ) -> Result<()> {
        let count = if chosen[0] == 0 { self.rows.div_ceil(parts) } else { chosen[1] as u32 };
        let together = count >= LONG;
        let groups = if together { n } else { n.div_ceil(256) };
        let addresses = [self.from, chosen[0], to, chosen[1]];
        let numbers = [parts, self.op as u32, n, self.rows, self.inner, together.into(), words];
        let push: [u32; 15] = packed(&addresses, &numbers);
        encoder.dispatch(Kernels::Integers, &[FOLD, self.dtype as u32], &push, [groups, 1, 1])
    }
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
