//! Types and constants: the shape, size and members of types, and the values that sizes depend on.

use super::check::Checker;
use super::names::*;

/// The shape of a scalar or vector: class, bits of a component, and number of components. Other types have shape 0.
pub(super) const CLASS: u32 = 0xff_0000;
pub(super) const WIDTH: u32 = 0xff00;
pub(super) const COUNT: u32 = 0xff;
pub(super) const BOOL: u32 = 1 << 16;
pub(super) const INTEGER: u32 = 2 << 16;
pub(super) const FLOAT: u32 = 3 << 16;

/// The opcode of a cooperative matrix type. A subgroup shares the components of such a matrix.
pub(super) const COOPERATIVE: u32 = 4456;

/// What is known of a type: bytes of its fixed part, its nesting depth, whether it ends in an array without a length,
/// and whether each of its parts has an offset.
const BYTES: u64 = (1 << 40) - 1;
const DEPTH: u32 = 40;
const DEEPEST: u64 = 255;
const RUNTIME: u64 = 1 << 50;
const LAID_OUT: u64 = 1 << 51;
/// What is known of a pointer, and of a pointer that is declared but not defined yet.
pub(super) const POINTER: u64 = 8 | LAID_OUT;
pub(super) const FORWARD: u64 = 1 << 63;

/// The capabilities that some types and instructions need. The index here is the bit in `Checker::has`.
pub(super) const CAPABILITIES: [u16; 26] = [
    9, 10, 11, 12, 22, 39, 61, 62, 63, 64, 65, 66, 67, 68, 4433, 4434, 4435, 4448, 4449, 4450, 6016, 6017, 6018, 6019,
    6022, 6033,
];
const FLOAT_16: u32 = 1 | 7 << 14;
const FLOAT_64: u32 = 1 << 1;
const INTEGER_8: u32 = 1 << 5 | 7 << 17;
const INTEGER_16: u32 = 1 << 4 | 7 << 14;
const INTEGER_64: u32 = 3 << 2;
pub(super) const SUBGROUP: u32 = 0xff << 6;
pub(super) const DOT_ANY: u32 = 1 << 20;
pub(super) const DOT_BYTES: u32 = DOT_ANY | 1 << 21;
pub(super) const DOT_PACKED: u32 = 1 << 22;
pub(super) const DOT: u32 = 1 << 23;
const MATRICES: u32 = 1 << 24;
pub(super) const ATOMIC_FLOAT: u32 = 1 << 25;

impl Checker<'_> {
    #[inline(never)]
    pub fn shape(&self, of: u32) -> u32 {
        match self.opcode(of) {
            20 => BOOL | 1,
            21 => INTEGER | self.part(of, 2) << 8 | 1,
            22 => FLOAT | self.part(of, 2) << 8 | 1,
            // The component was checked to be a scalar.
            23 => self.shape(self.part(of, 2)) & !COUNT | self.part(of, 3),
            // More components than a vector has.
            COOPERATIVE => self.shape(self.part(of, 2)) | COUNT,
            _ => 0,
        }
    }

    /// Returns the type of a vector's components; for other types the type itself.
    #[inline(never)]
    pub fn component(&self, of: u32) -> u32 {
        if self.opcode(of) == 23 { self.part(of, 2) } else { of }
    }

    /// Returns the position of a decoration's number; 0 without such a decoration.
    #[inline(never)]
    pub fn find(&self, target: u32, member: u32, kind: u32) -> u32 {
        let key = decoration(target, member, kind);
        let found = self.decorations.partition_point(|&entry| entry < key);
        match self.decorations.get(found) {
            Some(&entry) if entry >> PLACE == key >> PLACE => (entry & ((1 << PLACE) - 1)) as u32,
            _ => 0,
        }
    }

    /// Returns the bytes of a type's fixed part; 0 for types without one.
    pub fn bytes(&self, of: u32) -> u64 {
        self.known(of) & BYTES
    }

    pub fn runtime(&self, of: u32) -> bool {
        self.known(of) & RUNTIME != 0
    }

    pub fn laid_out(&self, of: u32) -> bool {
        self.known(of) & LAID_OUT != 0
    }

    /// Returns the number of members of a type.
    #[inline(never)]
    pub fn members(&self, of: u32) -> u64 {
        match self.opcode(of) {
            23 | 24 => self.part(of, 3).into(),
            28 => self.known(self.part(of, 3)),
            29 => u64::MAX,
            COOPERATIVE => self.known(self.part(of, 4)).saturating_mul(self.known(self.part(of, 5))),
            30 => (self.length(of) - 2).into(),
            _ => 0,
        }
    }

    /// Returns the type of a member; 0 if there is none.
    #[inline(never)]
    pub fn member(&self, of: u32, index: u64) -> u32 {
        if index >= self.members(of) {
            return 0;
        }
        self.part(of, if self.opcode(of) == 30 { 2 + index as u32 } else { 2 })
    }

    /// Returns the element type of nested arrays.
    #[inline(never)]
    pub fn element(&self, mut of: u32) -> u32 {
        while let 28 | 29 = self.opcode(of) {
            of = self.part(of, 2);
        }
        of
    }

    /// Returns the bytes of a member from its first to its last byte.
    #[inline(never)]
    pub fn extent(&self, structure: u32, index: u32) -> u64 {
        let of = self.part(structure, 2 + index);
        let (matrix, stride) = (self.element(of), self.find(structure, index, MATRIX_STRIDE));
        if self.opcode(matrix) != 24 || stride == 0 {
            return self.bytes(of);
        }
        // The known size is that of a dense matrix. A stride can leave gaps between the columns, or between the rows if
        // it is row-major.
        let (columns, column) = (self.part(matrix, 3), self.part(matrix, 2));
        let turned = self.find(structure, index, ROW_MAJOR) != 0;
        let vectors = u64::from(if turned { self.part(column, 3) } else { columns });
        let dense = self.bytes(matrix);
        let vector = dense.checked_div(vectors).unwrap_or(0);
        self.bytes(of) + (vectors.saturating_sub(1)) * u64::from(self.word(stride)).saturating_sub(vector)
    }

    /// Returns the bytes between the elements of an array.
    pub fn stride(&self, array: u32) -> u64 {
        match self.find(array, WHOLE, ARRAY_STRIDE) {
            0 => self.bytes(self.part(array, 2)),
            place => self.word(place).into(),
        }
    }

    /// Checks a type's rules and records what is known of it.
    pub fn type_rules(&mut self, opcode: u32) -> bool {
        let (id, a, b) = (self.word(self.at + 1), self.word(self.at + 2), self.word(self.at + 3));
        let shape = self.shape(a);
        let within = match opcode {
            23 | 24 | 28 | 29 => self.known(a),
            32 => self.known(b) & (DEEPEST << DEPTH) | LAID_OUT,
            _ => LAID_OUT,
        };
        let (mut depth, mut flags) = (within >> DEPTH & DEEPEST, within & (RUNTIME | LAID_OUT));
        let mut bytes = within & BYTES;
        let good = match opcode {
            20 => {
                (bytes, flags) = (4, 0);
                true
            }
            21 | 22 => {
                bytes = u64::from(a / 8);
                match (opcode, a) {
                    (_, 32) => b < 2 || opcode == 22,
                    (21, 8) => self.has & INTEGER_8 != 0 && b < 2,
                    (21, 16) => self.has & INTEGER_16 != 0 && b < 2,
                    (21, 64) => self.has & INTEGER_64 != 0 && b < 2,
                    (22, 16) => self.has & FLOAT_16 != 0,
                    (22, 64) => self.has & FLOAT_64 != 0,
                    _ => false,
                }
            }
            23 | 24 => {
                bytes *= u64::from(b);
                let parts = if opcode == 23 { shape & COUNT == 1 } else { shape & CLASS == FLOAT && shape & COUNT > 1 };
                parts && matches!(b, 2..=4)
            }
            28 | 29 => {
                let (length, stride) = (self.known(b), self.find(id, WHOLE, ARRAY_STRIDE));
                if stride == 0 {
                    flags &= !LAID_OUT;
                }
                let stride = if stride == 0 { bytes } else { self.word(stride).into() };
                bytes = bytes.saturating_add(stride.saturating_mul(length.saturating_sub(1)));
                if opcode == 29 {
                    (bytes, flags) = (0, flags | RUNTIME);
                }
                !matches!(self.opcode(a), 19 | 29 | 33) && (opcode == 29 || (1..1 << 32).contains(&length))
            }
            30 => {
                let (count, mut next, mut good) = (self.end - self.at - 2, 0u64, true);
                for index in 0..count {
                    let of = self.word(self.at + 2 + index);
                    // Only the last member may be an array without a length.
                    let ends = !self.runtime(of) || self.opcode(of) == 29 && index + 1 == count;
                    good &= ends && !matches!(self.opcode(of), 19 | 33);
                    depth = depth.max(self.known(of) >> DEPTH & DEEPEST);
                    let offset = self.find(id, index, OFFSET);
                    let matrix = self.opcode(self.element(of)) == 24;
                    let strided = !matrix || self.find(id, index, MATRIX_STRIDE) != 0;
                    if offset == 0 || !strided || !self.laid_out(of) {
                        flags = 0;
                    }
                    if self.runtime(of) {
                        flags |= RUNTIME;
                    }
                    if offset != 0 {
                        next = self.word(offset).into();
                    }
                    next = next.saturating_add(self.extent(id, index));
                    bytes = bytes.max(next);
                }
                good && count < WHOLE
            }
            COOPERATIVE => {
                let [rows, columns, usage] = [4, 5, 6].map(|at| self.known(self.word(self.at + at)));
                // The device decides the layout in memory.
                (bytes, flags) = (rows.saturating_mul(columns).saturating_mul(u64::from(shape >> 8 & 0xff) / 8), 0);
                let sizes = (1..1 << 16).contains(&rows) && (1..1 << 16).contains(&columns) && usage < 3;
                self.has & MATRICES != 0 && shape & CLASS >= INTEGER && shape & COUNT == 1 && sizes
            }
            32 => {
                bytes = 8;
                let known = matches!(
                    a,
                    UNIFORM_CONSTANT..=UNIFORM | WORKGROUP | PRIVATE | FUNCTION | PUSH | STORAGE | PHYSICAL
                );
                known && !matches!(self.opcode(b), 19 | 33)
            }
            33 => {
                // Only a return type may be void.
                let bad = |at: u32| matches!(self.opcode(self.word(at)), 19 | 29 | 33);
                !(self.at + 3..self.end).any(bad) && !matches!(self.opcode(a), 29 | 33)
            }
            _ => true,
        };
        depth += 1;
        self.learn(id, bytes.min(BYTES) | depth << DEPTH | flags);
        good && depth < DEEPEST
    }

    /// Checks a constant's rules and records its value.
    pub fn constant_rules(&mut self, opcode: u32, of: u32) -> bool {
        let (id, low, shape) = (self.word(self.at + 2), self.word(self.at + 3), self.shape(of));
        let mut value = u64::from(matches!(opcode, 41 | 48));
        let good = match opcode {
            43 | 50 => {
                let (width, words) = (shape >> 8 & 0xff, self.end - self.at - 3);
                let high = if words == 2 { self.word(self.at + 4) } else { 0 };
                value = u64::from(high) << 32 | u64::from(low);
                // The upper bits of a narrow number are zeros, or copies of its sign if it is signed.
                let unused = 32u32.saturating_sub(width) & 31;
                let signed = shape & CLASS == INTEGER && self.part(of, 3) == 1;
                let plain = if signed {
                    (low << unused) as i32 >> unused == low as i32
                } else {
                    low << unused >> unused == low
                };
                shape & CLASS >= INTEGER && shape & COUNT == 1 && words == width.div_ceil(32) && plain
            }
            44 | 51 => return self.composite(of, self.at + 3, false),
            46 => self.bytes(of) > 0 && !self.runtime(of),
            52 => {
                let allowed = matches!(low, 79 | 81 | 82 | 113..=116 | 126 | 128 | 130 | 132 | 134 | 135 | 137..=139
                    | 164..=179 | 194..=200);
                if !allowed || !self.operands(low, self.at + 4) {
                    return false;
                }
                value = self.evaluate(low, shape);
                true
            }
            _ => true,
        };
        let number = self.find(id, WHOLE, SPEC_ID);
        if number != 0 {
            let number = self.word(number);
            let given = self.specialization.iter().find(|entry| entry.0 == number);
            value = given.map_or(value, |entry| entry.1);
        }
        self.learn(id, value);
        good
    }

    /// Returns the value of an operation that sizes can depend on; 1 for other operations.
    fn evaluate(&self, opcode: u32, shape: u32) -> u64 {
        let (x, y, z) = (self.word(self.at + 4), self.word(self.at + 5), self.word(self.at + 6));
        let (a, b) = (self.known(x), self.known(y));
        let value = match opcode {
            81 => {
                let composite = matches!(self.opcode(x), 44 | 51) && self.end == self.at + 6;
                if composite { self.known(self.part(x, 3 + y)) } else { 1 }
            }
            113 => a,
            128 => a.wrapping_add(b),
            130 => a.wrapping_sub(b),
            132 => a.wrapping_mul(b),
            134 => a.checked_div(b).unwrap_or(0),
            137 => a.checked_rem(b).unwrap_or(0),
            169 => self.known(if a != 0 { y } else { z }),
            170 => u64::from(a == b),
            171 => u64::from(a != b),
            172 => u64::from(a > b),
            176 => u64::from(a < b),
            194 => a.checked_shr(b as u32).unwrap_or(0),
            196 => a.checked_shl(b as u32).unwrap_or(0),
            _ => 1,
        };
        let unused = 64 - (shape >> 8 & 0xff).clamp(1, 64);
        value << unused >> unused
    }

    /// Checks that a composite's parts fit its members. With `joined`, vectors can form a larger vector.
    pub fn composite(&mut self, of: u32, first: u32, joined: bool) -> bool {
        if self.opcode(of) == COOPERATIVE {
            // A cooperative matrix has one value for all components.
            return self.end == first + 1 && self.value(self.word(first)) == self.part(of, 2);
        }
        let (mut count, vector) = (0, self.component(of));
        for at in first..self.end {
            let given = self.value(self.word(at));
            let part = if joined && vector != of {
                if self.component(given) != vector {
                    return false;
                }
                u64::from(self.shape(given) & COUNT)
            } else {
                if given == 0 || given != self.member(of, count) {
                    return false;
                }
                1
            };
            count += part;
        }
        count == self.members(of) && (self.end > first + 1 || vector == of)
    }

    /// Returns the type at the end of a path of indices, which are literals or ids; 0 if the path leads nowhere.
    pub fn walk(&self, mut of: u32, from: u32, literal: bool) -> u32 {
        for at in from..self.end {
            let (word, structure) = (self.word(at), self.opcode(of) == 30);
            // At run time, any index can occur. A structure needs a constant index, and a type without elements has
            // none.
            let index = match (literal, structure) {
                (true, _) if self.opcode(of) != 29 => word.into(),
                (false, true) if self.opcode(word) == 43 => self.known(word),
                (false, false) => 0,
                _ => return 0,
            };
            of = self.member(of, index);
        }
        of
    }
}
