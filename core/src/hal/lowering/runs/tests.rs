//! Tests which commands become one kernel. `tests/runs.rs` checks on devices that the bits are those of single calls.

use super::super::{Encoder, Explain, Kernels, Limits, encode};
use super::*;
use crate::error::{Status, fail};
use crate::hal::{Buffer, TileCosts};
use crate::operand::{Inputs, Meta, Place, ViewMut};
use crate::ops::{Attrs, Op};
use std::any::Any;
use std::ptr::NonNull;

/// Memory of no device: an address and a number of bytes.
pub struct Memory(pub u64, pub usize);

// SAFETY: nothing reads or writes memory at the address, because the tests only inspect what would be executed.
unsafe impl Buffer for Memory {
    fn size(&self) -> usize {
        self.1
    }

    fn device_name(&self) -> &str {
        "nowhere"
    }

    fn host_pointer(&self) -> Option<NonNull<u8>> {
        None
    }

    fn device_address(&self) -> Option<u64> {
        (self.0 != 0).then_some(self.0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The kernels that commands become: for each, whether it is a run, and its push constants. The limits are a device's; elementwise
/// operations need none.
#[derive(Default)]
pub struct Dispatches(pub Vec<(bool, Vec<u32>)>, pub Option<Limits>);

impl Encoder for Dispatches {
    fn address(&mut self, place: Place<'_>) -> Result<u64> {
        match place {
            Place::Buffer(buffer, offset) if buffer.device_address().is_some() => {
                Ok(buffer.device_address().unwrap_or_default() + offset as u64)
            }
            _ => fail!(InvalidArgument, "an operand is elsewhere"),
        }
    }

    fn dispatch(&mut self, kernels: Kernels, constants: &[u32], push: &[u32], _: [u32; 3]) -> Result<()> {
        let run = (kernels, constants[0]) == (Kernels::Elementwise, function::RUN);
        self.0.push((run, push.to_vec()));
        Ok(())
    }

    fn scratch(&mut self, _: u64) -> Result<u64> {
        Ok(1 << 40)
    }

    fn parameters(&mut self, _: &[u32]) -> Result<u64> {
        Ok(1 << 41)
    }

    fn fault(&mut self, _: Explain) -> Result<u64> {
        unreachable!("elementwise operations find nothing wrong")
    }

    fn limits(&self) -> Limits {
        self.1.expect("elementwise operations need none")
    }

    fn costs(&self) -> &TileCosts {
        unreachable!("products have them")
    }
}

impl Dispatches {
    /// Encodes all commands. Returns how many commands each kernel took.
    pub fn all(&mut self, mut commands: &[Command<'_>]) -> Result<Vec<usize>> {
        let mut counts = Vec::new();
        while !commands.is_empty() {
            counts.push(encode(self, commands)?);
            commands = &commands[counts[counts.len() - 1]..];
        }
        Ok(counts)
    }
}

/// An operation with its operands and its result. Each of them is memory with a shape and a dtype.
type Called<'a> = (Op, &'a [(&'a Memory, &'a Meta)], (&'a Memory, &'a Meta));

/// Returns how many of these commands each kernel or single command takes, and the kernels.
fn encoded(calls: &[Called<'_>]) -> (Vec<usize>, Vec<(bool, Vec<u32>)>) {
    fn view<'a>(&(memory, meta): &(&'a Memory, &'a Meta)) -> Option<View<'a>> {
        Some(View::buffer(memory, 0, meta).unwrap())
    }
    let inputs: Vec<Inputs<'_>> = calls.iter().map(|call| call.1.iter().map(view).collect()).collect();
    let attrs = Attrs { alpha: 0.5, ..Attrs::default() };
    let mut commands = Vec::new();
    for (call, inputs) in calls.iter().zip(&inputs) {
        let output = ViewMut::buffer(call.2.0, 0, call.2.1).unwrap();
        commands.push(Command::new(call.0, attrs, inputs, output).unwrap());
    }
    let mut dispatches = Dispatches::default();
    let counts = dispatches.all(&commands).unwrap();
    (counts, dispatches.0)
}

fn meta(dtype: DType, dims: &[usize]) -> Meta {
    Meta::new(dtype, Shape::new(dims).unwrap())
}

fn f32s(dims: &[usize]) -> Meta {
    meta(DType::F32, dims)
}

const X: Memory = Memory(0x1_0000_0000, 1 << 16);
const Y: Memory = Memory(0x1_0010_0000, 1 << 16);
const P: Memory = Memory(0x2_0000_0010, 1 << 16);
const ODD: Memory = Memory(0x3_0000_0004, 1 << 16);

#[test]
fn what_follows_in_place_is_one_kernel() {
    let (all, row, column, one) = (f32s(&[6, 8]), f32s(&[8]), f32s(&[6, 1]), f32s(&[1]));
    let (y, p) = ((&Y, &all), (&P, &all));
    let (counts, kernels) = encoded(&[
        (Op::Mul, &[(&P, &row), (&X, &all)], y),
        (Op::Add, &[y, (&ODD, &row)], y),
        (Op::Scale, &[y], y),
        (Op::Gelu, &[y], y),
        (Op::Sub, &[(&P, &column), y], y),
        (Op::Div, &[y, (&P, &one)], y),
        (Op::Mul, &[y, y], y),
        (Op::Sub, &[p, y], y),
        // The ninth command begins the next kernel.
        (Op::Neg, &[y], y),
        (Op::Add, &[y, p], y),
        // One command alone.
        (Op::Exp, &[(&X, &all)], p),
    ]);
    assert_eq!(counts, [8, 2, 1]);
    let runs: Vec<bool> = kernels.iter().map(|kernel| kernel.0).collect();
    assert_eq!(runs, [true, true, false]);
    let words = &kernels[0].1;
    assert_eq!(words[..6], [0, 1, 0x10_0000, 1, 48, 8]);
    let [mul, add, sub, div] = [16, 14, 15, 17];
    let steps: Vec<[u32; 3]> = words[6..DIVIDES].chunks(3).map(|step| [step[0], step[1], step[2]]).collect();
    assert_eq!(
        steps,
        [
            [0x10, 2, mul | FOUR | (8 << PER)],
            [4, 3, add | (8 << PER)],
            [0.5f32.to_bits(), 0, function::SCALE],
            [0, 0, 5],
            [0x10, 2, sub | LEFT | ROWS | ONE | (8 << PER)],
            [0x10, 2, div | ROWS | ONE],
            [0x10_0000, 1, mul | ITSELF],
            [0x10, 2, sub | LEFT | FOUR],
        ]
    );
    assert_eq!(words[DIVIDES..], [1 << 31, 8]);
    // The words after the last step are zero.
    assert_eq!(kernels[1].1[..9], [0x10_0000, 1, 0x10_0000, 1, 48, 2, 0, 0, 8]);
    assert_eq!((kernels[1].1.len(), &kernels[1].1[12..]), (WORDS, &[0; 20][..]));
}

#[test]
fn what_does_not_follow_is_a_kernel_of_its_own() {
    let (all, row, column) = (f32s(&[6, 8]), f32s(&[8]), f32s(&[6, 1]));
    let (x, y, p) = ((&X, &all), (&Y, &all), (&P, &all));
    // No operand of the first command has the result's shape, so it can't begin a run. The rest is a run.
    let begun = (Op::Add, &[(&P, &row), (&X, &column)][..], y);
    assert_eq!(encoded(&[begun, (Op::Exp, &[y], y), (Op::Abs, &[y], y)]).0, [1, 2]);
    // Another result, a command that doesn't read the previous result, and another shape at the same address.
    let exp = (Op::Exp, &[x][..], y);
    assert_eq!(encoded(&[exp, (Op::Exp, &[y], p)]).0, [1, 1]);
    assert_eq!(encoded(&[exp, (Op::Exp, &[x], y)]).0, [1, 1]);
    let flat = f32s(&[48]);
    assert_eq!(encoded(&[exp, (Op::Exp, &[(&Y, &flat)], (&Y, &flat))]).0, [1, 1]);
    // Another dtype, another operation, and an empty result.
    let half = meta(DType::F16, &[6, 8]);
    let (from, to) = ((&X, &half), (&Y, &half));
    assert_eq!(encoded(&[(Op::Exp, &[from], to), (Op::Exp, &[to], to)]).0, [1, 1]);
    let cast = (Op::Cast, &[x][..], y);
    assert_eq!(encoded(&[exp, cast]).0, [1, 1]);
    let none = f32s(&[0, 8]);
    let empty = (&Y, &none);
    assert_eq!(encoded(&[(Op::Exp, &[empty], empty), (Op::Exp, &[empty], empty)]), (vec![1, 1], vec![]));
    // An operand that is repeated neither row by row nor within each row.
    let (cube, middle) = (f32s(&[2, 3, 4]), f32s(&[3, 1]));
    let (from, to) = ((&X, &cube), (&Y, &cube));
    assert_eq!(encoded(&[(Op::Exp, &[from], to), (Op::Add, &[to, (&P, &middle)], to)]).0, [1, 1]);
    // Rows of another length begin the next run.
    let (matrix, row) = (f32s(&[3, 4]), f32s(&[4]));
    let [exp, by_row, by_matrix] =
        [(Op::Exp, &[from][..], to), (Op::Mul, &[to, (&P, &row)], to), (Op::Mul, &[to, (&P, &matrix)], to)];
    let (counts, kernels) = encoded(&[exp, by_row, by_row, by_matrix, by_matrix, exp]);
    assert_eq!(counts, [3, 2, 1]);
    let lengths: Vec<u32> = kernels[..2].iter().map(|kernel| kernel.1[OF_ROW]).collect();
    assert_eq!(lengths, [4, 12]);
    // These are runs: rows of several dimensions, and an operand of another rank with as many elements.
    let same = f32s(&[1, 2, 3, 4]);
    assert_eq!(encoded(&[exp, by_matrix]).0, [2]);
    let (from, to) = ((&X, &same), (&Y, &same));
    assert_eq!(encoded(&[(Op::Exp, &[from], to), (Op::Mul, &[(&P, &cube), to], to)]).0, [2]);
}

#[test]
fn multiplying_by_the_reciprocal_divides() {
    let most = MOST_IN_ROWS as u32 - 1;
    let lengths = (2..5000).chain((1..22).flat_map(|k| [(1 << k) - 1, 1 << k, (1 << k) + 1])).chain([MOST_PER - 1]);
    for per in lengths.filter(|&per| (2..MOST_PER).contains(&per)) {
        let divides = reciprocal(per) as u64;
        // The numbers next to multiples are the ones that could go wrong, large ones first.
        let last = most / per * per;
        let multiples = (0..40).flat_map(|k| [last.wrapping_sub(k * per), k * per]);
        for e in multiples.flat_map(|m| [m.wrapping_sub(1), m, m.wrapping_add(1)]).chain([most]).filter(|&e| e <= most)
        {
            let row = ((e as u64 * divides) >> 32) as u32 >> (31 - (per - 1).leading_zeros());
            assert_eq!(row, e / per, "{e} / {per}");
        }
    }
}

#[test]
fn the_same_memory_by_another_name_is_seen() {
    let all = f32s(&[4, 8]);
    let y = (&Y, &all);
    let [alias, shifted] = [Memory(Y.0, 1 << 16), Memory(Y.0 + 4, 1 << 16)];
    // A later step would not find the values that were there when the run began.
    let exp = (Op::Exp, &[(&X, &all)][..], y);
    assert_eq!(encoded(&[exp, (Op::Add, &[y, (&shifted, &all)], y)]).0, [1, 1]);
    let (counts, kernels) = encoded(&[exp, (Op::Add, &[y, (&alias, &all)], y)]);
    assert_eq!((counts, kernels[0].1[11]), (vec![2], 14 | ITSELF));
    let one = f32s(&[1]);
    assert_eq!(encoded(&[exp, (Op::Add, &[y, (&alias, &one)], y)]).0, [1, 1]);
    assert_eq!(encoded(&[(Op::Exp, &[(&shifted, &all)], y), (Op::Exp, &[y], y)]).0, [1, 1]);
}

#[test]
fn an_operand_elsewhere_is_its_command_s_error() {
    let all = f32s(&[4, 8]);
    let (nowhere, y) = (Memory(0, 1 << 16), (&Y, &all));
    let view = |memory| Some(View::buffer(memory, 0, &all).unwrap());
    let inputs = [[view(&X), None], [view(&Y), view(&nowhere)]];
    let output = || ViewMut::buffer(y.0, 0, y.1).unwrap();
    let exp = Command::new(Op::Exp, Attrs::default(), &inputs[0][..1], output()).unwrap();
    let add = Command::new(Op::Add, Attrs::default(), &inputs[1], output()).unwrap();
    let mut dispatches = Dispatches::default();
    let error = dispatches.all(&[exp, add]).unwrap_err();
    assert_eq!((error.status(), dispatches.0.len()), (Status::InvalidArgument, 1));
}
