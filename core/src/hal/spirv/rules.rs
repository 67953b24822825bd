//! What the patterns don't say: sizes and members of types, values of constants, and rules of single instructions.

use super::check::{Checker, WHOLE};
use super::grammar::GLSL;
use crate::error::Result;

/// A scalar's or vector's class, bits of a component and components; anything else has class 0.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub class: u32,
    pub width: u32,
    pub count: u32,
}

impl Shape {
    pub const BOOL: u32 = 20;
    pub const INTEGER: u32 = 21;
    pub const FLOAT: u32 = 22;
    const NONE: Shape = Shape { class: 0, width: 0, count: 0 };

    const fn new(class: u32, width: u32, count: u32) -> Shape {
        Shape { class, width, count }
    }
}

/// What [`Checker::value`] has of a type: its bytes, how deep it is, whether it ends in an array of any length,
/// and whether every part says where it lies.
const BYTES: u64 = (1 << 40) - 1;
const DEPTH: u32 = 40;
const DEEPEST: u64 = 255;
const RUNTIME: u64 = 1 << 50;
const LAID_OUT: u64 = 1 << 51;
/// The most bytes of a variable that is not a buffer.
const MOST_BYTES: u64 = 1 << 24;

/// Storage classes.
pub(super) const CONSTANT: u32 = 0;
const INPUT: u32 = 1;
pub(super) const UNIFORM: u32 = 2;
pub(super) const WORKGROUP: u32 = 4;
const PRIVATE: u32 = 6;
const FUNCTION: u32 = 7;
pub(super) const PUSH: u32 = 9;
const IMAGE: u32 = 11;
pub(super) const STORAGE: u32 = 12;
const PHYSICAL: u32 = 5349;

/// Decorations.
pub(super) mod decoration {
    pub const SPEC_ID: u32 = 1;
    pub const BLOCK: u32 = 2;
    pub const BUFFER_BLOCK: u32 = 3;
    pub const ROW_MAJOR: u32 = 4;
    pub const ARRAY_STRIDE: u32 = 6;
    pub const MATRIX_STRIDE: u32 = 7;
    pub const BUILT_IN: u32 = 11;
    pub const NON_WRITABLE: u32 = 24;
    pub const NON_READABLE: u32 = 25;
    pub const BINDING: u32 = 33;
    pub const SET: u32 = 34;
    pub const OFFSET: u32 = 35;
}

impl Checker<'_> {
    pub fn shape(&self, of: u32) -> Shape {
        match self.opcode_of(of) {
            20 => Shape::new(Shape::BOOL, 0, 1),
            class @ (21 | 22) => Shape::new(class, self.word(of, 2), 1),
            23 => Shape { count: self.word(of, 3), ..self.shape(self.word(of, 2)) },
            // Cooperative matrices are computed with as vectors are; no vector has 0 components.
            4456 => Shape { count: 0, ..self.shape(self.word(of, 2)) },
            _ => Shape::NONE,
        }
    }

    /// A decoration's number, if there is one.
    pub fn find(&self, target: u32, member: u32, decoration: u32) -> Option<u32> {
        let key = [target, member, decoration, 0];
        let found = self.decorations.get(self.decorations.partition_point(|entry| *entry < key))?;
        (found[..3] == key[..3]).then_some(found[3])
    }

    /// Bytes of a type's fixed part, 0 of what has none.
    pub fn bytes(&self, of: u32) -> u64 {
        self.value[of as usize] & BYTES
    }

    pub fn runtime(&self, of: u32) -> bool {
        self.value[of as usize] & RUNTIME != 0
    }

    pub fn laid_out(&self, of: u32) -> bool {
        self.value[of as usize] & LAID_OUT != 0
    }

    /// The members of a type that has them all the same or numbered.
    fn members(&self, of: u32) -> u64 {
        match self.opcode(of) {
            23 | 24 => u64::from(self.word(of, 3)),
            28 => self.value[self.word(of, 3) as usize],
            29 => u64::MAX,
            30 => self.length(of) as u64 - 2,
            4456 => 1,
            _ => 0,
        }
    }

    /// The type of a member.
    pub fn member(&self, of: u32, index: u64) -> Result<u32> {
        self.ensure(index < self.members(of), "there is no such member:", index as u32)?;
        Ok(self.word(of, if self.opcode(of) == 30 { 2 + index as usize } else { 2 }))
    }

    /// What the arrays around a type hold.
    pub fn element(&self, mut of: u32) -> u32 {
        while let 28 | 29 = self.opcode(of) {
            of = self.word(of, 2);
        }
        of
    }

    /// Bytes that a member takes from its first to its last.
    pub fn extent(&self, structure: u32, index: u32) -> u64 {
        let mut of = self.word(structure, 2 + index as usize);
        let stride = self.find(structure, index, decoration::MATRIX_STRIDE).map(u64::from);
        let (Some(stride), 24) = (stride, self.opcode(self.element(of))) else {
            return self.bytes(of);
        };
        let mut bytes = 0u64;
        while self.opcode(of) == 28 {
            bytes = bytes.saturating_add(self.stride(of).saturating_mul(self.members(of) - 1));
            of = self.word(of, 2);
        }
        let column = self.shape(self.word(of, 2));
        let (columns, rows) = (u64::from(self.word(of, 3)), u64::from(column.count));
        let turned = self.find(structure, index, decoration::ROW_MAJOR).is_some();
        let (vectors, length) = if turned { (rows, columns) } else { (columns, rows) };
        bytes.saturating_add(stride * (vectors - 1) + length * u64::from(column.width / 8))
    }

    /// Bytes from one element of an array to the next.
    pub fn stride(&self, array: u32) -> u64 {
        let given = self.find(array, WHOLE, decoration::ARRAY_STRIDE).map(u64::from);
        given.unwrap_or_else(|| self.bytes(self.word(array, 2)))
    }

    /// Rules for types, and what is known of them later.
    fn type_rules(&mut self, opcode: u32) -> Result<()> {
        let id = self.words[self.at + 1];
        let operand = |index: usize| if self.at + index < self.end { self.words[self.at + index] } else { 0 };
        let (a, b) = (operand(2), operand(3));
        let mut runtime = false;
        let (mut depth, mut laid_out) = (0, true);
        if matches!(opcode, 23..=25 | 27..=29 | 4456) {
            depth = self.value[a as usize] >> DEPTH & DEEPEST;
            laid_out = self.laid_out(a);
        }
        let bytes = match opcode {
            20 => {
                laid_out = false;
                4
            }
            21 => {
                self.ensure(matches!(a, 8 | 16 | 32 | 64) && b < 2, "there are no integers of width", a)?;
                u64::from(a / 8)
            }
            22 => {
                self.ensure(matches!(a, 16 | 32 | 64), "there are no floats of width", a)?;
                u64::from(a / 8)
            }
            23 | 24 => {
                let of = self.shape(a);
                let good = if opcode == 23 { of.count == 1 } else { of.class == Shape::FLOAT && of.count > 1 };
                self.ensure(good && matches!(b, 2..=4), "its components don't fit:", b)?;
                self.bytes(a) * u64::from(b)
            }
            28 | 29 => {
                let good = !matches!(self.opcode(a), 19 | 29 | 33);
                self.ensure(good, "there are no arrays of the type", a)?;
                runtime = self.runtime(a) || opcode == 29;
                laid_out &= self.find(id, WHOLE, decoration::ARRAY_STRIDE).is_some();
                if opcode == 29 {
                    0
                } else {
                    let length = self.value[b as usize];
                    self.ensure((1..=u64::from(u32::MAX)).contains(&length), "its length can't be", length as u32)?;
                    self.bytes(a).saturating_add(self.stride_of(id, a).saturating_mul(length - 1))
                }
            }
            30 => {
                let members = self.end - self.at - 2;
                self.ensure(members <= 16383, "its members are too many:", members as u32)?;
                let (mut bytes, mut next) = (0u64, 0u64);
                for index in 0..members {
                    let of = self.words[self.at + 2 + index];
                    self.ensure(!matches!(self.opcode(of), 19 | 33), "no member can be of the type", of)?;
                    let ends = self.opcode(of) == 29 && index + 1 == members;
                    runtime = self.runtime(of);
                    self.ensure(!runtime || ends, "only a last member can be of the type", of)?;
                    depth = depth.max(self.value[of as usize] >> DEPTH & DEEPEST);
                    let index = index as u32;
                    let offset = self.find(id, index, decoration::OFFSET);
                    let matrix = self.opcode(self.element(of)) == 24;
                    let strided = !matrix || self.find(id, index, decoration::MATRIX_STRIDE).is_some();
                    laid_out &= offset.is_some() && strided && self.laid_out(of);
                    next = offset.map_or(next, u64::from).saturating_add(self.extent(id, index));
                    bytes = bytes.max(next);
                }
                bytes
            }
            32 => {
                let known = matches!(a, 0..=2 | 4 | 6 | 7 | 9 | 11 | 12 | PHYSICAL);
                self.ensure(known, "compute kernels have no storage class", a)?;
                self.ensure(!matches!(self.opcode(b), 19 | 33), "no pointer can be to the type", b)?;
                depth = self.value[b as usize] >> DEPTH & DEEPEST;
                8
            }
            33 => {
                for index in self.at + 3..self.end {
                    let of = self.words[index];
                    self.ensure(!matches!(self.opcode(of), 19 | 29 | 33), "no parameter can be of the type", of)?;
                }
                self.ensure(!matches!(self.opcode(a), 29 | 33), "no function can return the type", a)?;
                0
            }
            4456 => {
                self.ensure(self.shape(a).count == 1, "there are no matrices of the type", a)?;
                8
            }
            _ => 0,
        };
        self.ensure(depth < DEEPEST, "types are in each other more often than", DEEPEST as u32)?;
        self.value[id as usize] =
            bytes.min(BYTES) | (depth + 1) << DEPTH | u64::from(runtime) << 50 | u64::from(laid_out) << 51;
        Ok(())
    }

    fn stride_of(&self, array: u32, element: u32) -> u64 {
        self.find(array, WHOLE, decoration::ARRAY_STRIDE).map_or_else(|| self.bytes(element), u64::from)
    }

    /// Rules for constants, and their values.
    fn constant_rules(&mut self, opcode: u32, of: u32) -> Result<()> {
        let id = self.words[self.at + 2];
        let shape = self.shape(of);
        let value = match opcode {
            41 | 42 | 48 | 49 => {
                self.ensure(shape.count == 1, "it can't be of the type", of)?;
                u64::from(matches!(opcode, 41 | 48))
            }
            43 | 50 => {
                let number = matches!(shape.class, Shape::INTEGER | Shape::FLOAT) && shape.count == 1;
                let words = (self.end - self.at - 3) as u32;
                self.ensure(number && words == shape.width.div_ceil(32), "its words don't fit its type:", words)?;
                let high = if words == 2 { self.words[self.at + 4] } else { 0 };
                u64::from(high) << 32 | u64::from(self.words[self.at + 3])
            }
            44 | 51 => return self.composite(of, self.at + 3, false),
            46 => return self.ensure(self.bytes(of) > 0 && !self.runtime(of), "there is no zero of the type", of),
            _ => {
                let inner = self.words[self.at + 3];
                let allowed = matches!(inner, 79 | 81 | 82 | 113..=116 | 126 | 128 | 130 | 132 | 134 | 135 | 137..=139
                    | 164..=179 | 194..=200);
                self.ensure(allowed, "no constant is made by instruction", inner)?;
                self.operands(inner, self.at + 4)?;
                self.evaluate(inner, shape)
            }
        };
        let given = match self.find(id, WHOLE, decoration::SPEC_ID) {
            Some(number) if matches!(opcode, 48..=50) => self.specialization.iter().find(|entry| entry.0 == number),
            _ => None,
        };
        self.value[id as usize] = given.map_or(value, |entry| entry.1);
        Ok(())
    }

    /// The value of an operation on scalar integers and bools; 0 of others, which as a size is refused.
    fn evaluate(&self, opcode: u32, shape: Shape) -> u64 {
        let operand = |index: usize| {
            let id = if self.at + 4 + index < self.end { self.words[self.at + 4 + index] } else { 0 };
            let value = self.value.get(id as usize).copied().unwrap_or(0);
            let bits = self.shape(if id == 0 { 0 } else { self.word(id, 1) }).width.clamp(1, 64);
            // With the sign, and without.
            ((value << (64 - bits)) as i64 >> (64 - bits), value << (64 - bits) >> (64 - bits))
        };
        if opcode == 81 {
            let path = &self.words[self.at + 5..self.end];
            let part = path.iter().try_fold(self.words[self.at + 4], |of, &index| {
                // The path was walked through the types before.
                matches!(self.opcode(of), 44 | 51).then(|| self.word(of, 3 + index as usize))
            });
            return part.map_or(0, |part| self.value[part as usize]);
        }
        if shape.count != 1 || matches!(opcode, 79 | 82) {
            return 0;
        }
        let ((sa, a), (sb, b)) = (operand(0), if self.end > self.at + 5 { operand(1) } else { (0, 0) });
        let shift = b.min(64) as u32;
        let value = match opcode {
            113 => a,
            114 => sa as u64,
            126 => a.wrapping_neg(),
            128 => a.wrapping_add(b),
            130 => a.wrapping_sub(b),
            132 => a.wrapping_mul(b),
            134 => a.checked_div(b).unwrap_or(0),
            135 => sa.checked_div(sb).unwrap_or(0) as u64,
            137 => a.checked_rem(b).unwrap_or(0),
            138 => sa.checked_rem(sb).unwrap_or(0) as u64,
            139 => {
                sa.checked_rem(sb).map_or(0, |rest| if rest != 0 && (rest < 0) != (sb < 0) { rest + sb } else { rest })
                    as u64
            }
            164 | 170 => u64::from(a == b),
            165 | 171 => u64::from(a != b),
            166 | 197 => a | b,
            167 | 199 => a & b,
            168 => u64::from(a == 0),
            169 => self.value[self.words[self.at + if a != 0 { 5 } else { 6 }] as usize],
            172 => u64::from(a > b),
            173 => u64::from(sa > sb),
            174 => u64::from(a >= b),
            175 => u64::from(sa >= sb),
            176 => u64::from(a < b),
            177 => u64::from(sa < sb),
            178 => u64::from(a <= b),
            179 => u64::from(sa <= sb),
            194 => a.checked_shr(shift).unwrap_or(0),
            195 => sa.checked_shr(shift).unwrap_or(0) as u64,
            196 => a.checked_shl(shift).unwrap_or(0),
            198 => a ^ b,
            200 => !a,
            _ => 0,
        };
        let bits = shape.width.clamp(1, 64);
        value << (64 - bits) >> (64 - bits)
    }

    /// A composite's parts fit its members; a vector may be `joined` from vectors.
    fn composite(&mut self, of: u32, first: usize, joined: bool) -> Result<()> {
        let parts = (self.end - first) as u64;
        let vector = self.shape(of);
        if joined && self.opcode(of) == 23 {
            let mut count = 0;
            for index in first..self.end {
                let given = self.value(self.words[index])?;
                let part = self.shape(given);
                let fits = part.class == vector.class && part.width == vector.width;
                self.ensure(fits, "its type doesn't fit of the component", self.words[index])?;
                count += u64::from(part.count);
            }
            return self.ensure(count == u64::from(vector.count) && parts > 1, "its components are", count as u32);
        }
        self.ensure(parts == self.members(of), "its members are", parts as u32)?;
        for index in first..self.end {
            let member = self.member(of, (index - first) as u64)?;
            let given = self.value(self.words[index])?;
            self.ensure(given == member, "its type doesn't fit of the member", self.words[index])?;
        }
        Ok(())
    }

    /// The type that a path of indices ends at: literal ones, or ids.
    fn walk(&mut self, mut of: u32, from: usize, literal: bool) -> Result<u32> {
        for at in from..self.end {
            let word = self.words[at];
            let structure = self.opcode(of) == 30;
            let index = if literal {
                u64::from(word)
            } else if structure {
                self.ensure(self.opcode(word) == 43, "the index of a member is not a constant:", word)?;
                self.value[word as usize]
            } else {
                // Any index may come at run time; a type without elements has none.
                0
            };
            self.ensure(!literal || self.opcode(of) != 29, "a path goes through the type", of)?;
            of = self.member(of, index)?;
        }
        Ok(of)
    }

    /// What the patterns don't say of an instruction whose operands begin at `first`; `of` is its result's type.
    pub fn rules(&mut self, opcode: u32, first: usize, of: u32) -> Result<()> {
        let operand = |index: usize| if first + index < self.end { self.words[first + index] } else { 0 };
        let (a, b, c, d) = (operand(0), operand(1), operand(2), operand(3));
        let scalar = self.shape(of).count == 1;
        match opcode {
            3 => self.ensure(c == 0 || self.opcode(c) == 7, "it is not a text, id", c),
            6 => {
                let fits = self.opcode(a) == 30 && (b as usize) < self.length(a) - 2;
                self.ensure(fits, "it names the member", b)
            }
            8 => self.ensure(self.opcode(a) == 7, "it is not a text, id", a),
            12 => self.import(first),
            14 => {
                self.ensure(matches!(a, 0 | 5348), "Vulkan has no addressing model", a)?;
                self.ensure(matches!(b, 1 | 3), "Vulkan has no memory model", b)
            }
            15 => {
                self.ensure(a == 5, "entry points are of execution model GLCompute, 5, and not", a)?;
                self.ensure(self.opcode(b) == 54, "it is not a function, id", b)
            }
            16 | 331 => {
                self.ensure(self.opcode(a) == 54, "it is not a function, id", a)?;
                let numbers = match (opcode, b) {
                    (16, 17) | (331, 38) => 3,
                    (16, 4459..=4463) => 1,
                    (16, 31 | 4421 | 5289 | 5290 | 6023) => 0,
                    (331, 6028) => 2,
                    _ => return Err(self.fault("compute kernels have no execution mode", b)),
                };
                self.ensure(self.end - first - 2 == numbers, "its operands don't fit the mode", b)?;
                for index in if opcode == 331 { first + 2..self.end } else { 0..0 } {
                    self.place(self.words[index])?;
                }
                Ok(())
            }
            71 => self.decoration(a, WHOLE, first + 1),
            72 => {
                let fits = self.opcode(a) == 30 && (b as usize) < self.length(a) - 2;
                self.ensure(fits, "it decorates the member", b)?;
                self.decoration(a, b, first + 2)
            }
            39 => {
                let fits = self.opcode(a) == 32 && b == PHYSICAL && self.word(a, 2) == b;
                self.ensure(fits, "it can't be declared in advance, id", a)?;
                self.forward(a);
                Ok(())
            }
            19..=33 | 4456 => self.type_rules(opcode),
            41..=52 => self.constant_rules(opcode, of),
            54 => {
                let fits = self.opcode(b) == 33 && self.word(b, 2) == of;
                self.ensure(fits, "the function's type doesn't fit, id", b)?;
                self.function = self.at;
                self.signature = self.define[b as usize] as usize;
                self.parameter = 3;
                self.first_block = 0;
                Ok(())
            }
            55 => {
                let length = (self.words[self.signature] >> 16) as usize;
                let fits = self.parameter < length && self.words[self.signature + self.parameter] == of;
                self.parameter += 1;
                self.ensure(fits, "the function's type has no such parameter, of type", of)
            }
            56 => {
                self.function = 0;
                Ok(())
            }
            248 => {
                self.block = self.at;
                if self.first_block == 0 {
                    self.first_block = self.at;
                    let fits = self.parameter == (self.words[self.signature] >> 16) as usize;
                    return self.ensure(fits, "the function's parameters are", self.parameter as u32 - 3);
                }
                Ok(())
            }
            57 => {
                self.ensure(self.opcode(a) == 54, "it is not a function, id", a)?;
                let signature = self.word(a, 4);
                let fits = self.opcode_of(signature) == 33
                    && self.word(signature, 2) == of
                    && self.length(signature) - 3 == self.end - first - 1;
                self.ensure(fits, "the call doesn't fit the function", a)?;
                self.uses.push([self.function as u32, a]);
                for index in 1..self.end - first {
                    let given = self.value(self.words[first + index])?;
                    let fits = given == self.word(signature, 2 + index);
                    self.ensure(fits, "its type doesn't fit of the argument", self.words[first + index])?;
                }
                Ok(())
            }
            59 => self.variable(of, a, b),
            61 => self.ensure(!self.runtime(of), "nobody can load the type", of),
            62 | 63 => {
                let (class, to) = self.pointer(a)?;
                let given = if opcode == 62 { self.value(b)? } else { self.pointer(b)?.1 };
                self.ensure(to == given && !self.runtime(to), "its type doesn't fit of what is stored,", b)?;
                self.ensure(!matches!(class, CONSTANT | INPUT | PUSH), "it can't be written, storage class", class)
            }
            65 | 66 | 67 | 70 => {
                let (class, to) = self.pointer(a)?;
                let to = self.walk(to, first + if opcode > 66 { 2 } else { 1 }, false)?;
                let fits = self.word(of, 2) == class && self.word(of, 3) == to;
                self.ensure(fits, "the result doesn't point to what the indices lead to, of type", to)
            }
            68 => {
                let (_, to) = self.pointer(a)?;
                let last = self.opcode(to) == 30 && self.runtime(to) && b as usize == self.length(to) - 3;
                let fits = self.shape(of) == Shape::new(Shape::INTEGER, 32, 1);
                self.ensure(last && fits, "there is no array of any length at member", b)
            }
            77 | 78 => {
                let vector = self.value(a)?;
                let part = if opcode == 77 { of } else { self.value(b)? };
                let fits = self.opcode(vector) == 23 && self.word(vector, 2) == part;
                self.ensure(fits, "the component's type doesn't fit of the vector", a)
            }
            79 => {
                let (x, y, result) = (self.value(a)?, self.value(b)?, self.shape(of));
                let (x, y) = (self.shape(x), self.shape(y));
                let fits = (x.class, x.width) == (y.class, y.width)
                    && (x.class, x.width) == (result.class, result.width)
                    && self.opcode(of) == 23
                    && result.count as usize == self.end - first - 2;
                self.ensure(fits, "its vectors don't fit the type", of)?;
                let high = self.words[first + 2..self.end].iter().filter(|&&i| i != u32::MAX).max().copied();
                self.ensure(high.is_none_or(|i| i < x.count + y.count), "it takes the component", high.unwrap_or(0))
            }
            80 => self.composite(of, first, true),
            81 => {
                let from = self.value(a)?;
                let to = self.walk(from, first + 1, true)?;
                self.ensure(to == of, "the result's type doesn't fit the member's,", to)
            }
            82 => {
                let part = self.value(a)?;
                let to = self.walk(of, first + 2, true)?;
                self.ensure(to == part, "the part's type doesn't fit the member's,", to)
            }
            84 => self.ensure(self.opcode(of) == 24, "it is no matrix, type", of),
            117 | 120 => {
                let pointer = if opcode == 120 { of } else { self.value(a)? };
                self.ensure(self.word(pointer, 2) == PHYSICAL, "the pointer is of storage class", self.word(pointer, 2))
            }
            124 => {
                let from = self.value(a)?;
                let [from, to] = [from, of].map(|of| match self.shape(of) {
                    Shape { class: 21 | 22, width, count } => width * count,
                    _ if self.opcode(of) == 32 && self.word(of, 2) == PHYSICAL => 64,
                    _ => 0,
                });
                self.ensure(from == to && from != 0, "it reads bits of another number:", from)
            }
            142 | 143 => {
                let scalar = self.value(b)?;
                let matrix = opcode == 143 && self.opcode(of) == 24;
                let vector = if matrix { self.word(of, 2) } else { of };
                let fits = (matrix || opcode == 142) && self.opcode(vector) == 23 && self.word(vector, 2) == scalar;
                // Cooperative matrices are of a type of their own.
                let fits = fits || self.opcode(of) == 4456 && self.word(of, 2) == scalar;
                self.ensure(fits, "the factors don't fit, id", b)
            }
            144..=147 => self.product(opcode, a, b, of),
            148 => {
                let vector = self.value(a)?;
                self.ensure(self.opcode(vector) == 23 && self.word(vector, 2) == of, "it is no vector that fits, id", a)
            }
            149..=152 => {
                let given = self.value(a)?;
                let pair = self.opcode(of) == 30 && self.members(of) == 2;
                let fits = pair && (2..4).all(|index| self.word(of, index) == given);
                self.ensure(
                    fits && self.shape(given).class == Shape::INTEGER,
                    "the result is not two of the type",
                    given,
                )
            }
            154 | 155 => {
                let given = self.value(a)?;
                let fits = self.shape(given).class == Shape::BOOL && self.shape(given).count > 1;
                self.ensure(fits && scalar, "it is no vector of bools, id", a)
            }
            169 => {
                let given = self.value(a)?;
                let condition = self.shape(given);
                let fits = condition.count == 1 || condition.count == self.shape(of).count;
                self.ensure(condition.class == Shape::BOOL && fits, "it doesn't fit as the condition, id", a)
            }
            227..=242 | 5614 | 5615 | 6035 => {
                let (class, to) = self.pointer(a)?;
                let place = matches!(class, UNIFORM | WORKGROUP | IMAGE | STORAGE | PHYSICAL);
                let number = self.shape(to);
                let number = number.count == 1 && matches!(number.class, Shape::INTEGER | Shape::FLOAT);
                self.ensure(place && number, "nothing is atomic at the pointer", a)?;
                let given = if opcode == 228 { self.value(d)? } else { to };
                self.ensure(given == to, "its type doesn't fit of what is stored,", d)
            }
            245 => {
                self.ensure((self.end - first) % 2 == 0, "its words are too few:", (self.end - self.at) as u32)?;
                let end = self.value[self.words[self.function + 2] as usize] as usize;
                for index in (first..self.end).step_by(2) {
                    let id = self.words[index];
                    let (given, place) = (self.type_of(id)?, self.place(id)?);
                    let here = place < self.body || (self.function..end).contains(&place);
                    self.ensure(given == of && here, "its type doesn't fit of the operand", id)?;
                    self.label(self.words[index + 1], true)?;
                }
                Ok(())
            }
            246 | 247 => {
                let next = self.words[self.end] & 0xffff;
                let good = next == 250 || next == if opcode == 246 { 249 } else { 251 };
                self.ensure(good, "it stands before instruction", next)
            }
            250 => {
                let given = self.value(a)?;
                let good = self.shape(given) == Shape::new(Shape::BOOL, 0, 1);
                self.ensure(good && matches!(self.end - first, 3 | 5), "it is no condition, id", a)
            }
            251 => {
                let given = self.value(a)?;
                let shape = self.shape(given);
                self.ensure(shape.class == Shape::INTEGER && shape.count == 1, "it is no integer, id", a)?;
                let step = shape.width.div_ceil(32) as usize + 1;
                self.ensure((self.end - first - 2) % step == 0, "its words don't fit the type", given)?;
                for index in (first + 2..self.end).step_by(step) {
                    self.label(self.words[index + step - 1], false)?;
                }
                Ok(())
            }
            253 | 254 => {
                let returned = self.words[self.signature + 2];
                let fits = if opcode == 253 { self.opcode(returned) == 19 } else { self.value(a)? == returned };
                self.ensure(fits, "the function returns another type,", returned)
            }
            4460 => self.ensure(self.opcode(a) == 4456, "it is no matrix, type", a),
            _ => Ok(()),
        }
    }

    /// Products of matrices: columns and rows that fit.
    fn product(&mut self, opcode: u32, a: u32, b: u32, of: u32) -> Result<()> {
        let (x, y) = (self.value(a)?, self.value(b)?);
        // The type of a column, of a component, the columns and the rows; a vector is one column.
        let [x, y, result] = [x, y, of].map(|of| match self.opcode(of) {
            24 => (24, self.word(self.word(of, 2), 2), self.word(of, 3), self.shape(self.word(of, 2)).count),
            23 => (23, self.word(of, 2), 1, self.word(of, 3)),
            _ => (0, 0, 0, 0),
        });
        let kinds = (x.0, y.0, result.0);
        let fits = match opcode {
            144 => kinds == (23, 24, 23) && x.3 == y.3 && result.3 == y.2,
            145 => kinds == (24, 23, 23) && x.2 == y.3 && result.3 == x.3,
            146 => kinds == (24, 24, 24) && x.2 == y.3 && (result.2, result.3) == (y.2, x.3),
            _ => kinds == (23, 23, 24) && (result.2, result.3) == (y.3, x.3),
        };
        self.ensure(fits && x.1 == result.1 && y.1 == result.1, "the factors don't fit, id", b)
    }

    /// A variable of storage class `class`, with an initial value unless that is 0.
    fn variable(&mut self, of: u32, class: u32, initial: u32) -> Result<()> {
        let (id, to) = (self.words[self.at + 2], self.word(of, 3));
        let inside = self.function != 0;
        let placed = self.word(of, 2) == class && inside == (class == FUNCTION);
        self.ensure(
            placed && (!inside || self.block == self.first_block),
            "it can't be here, of storage class",
            class,
        )?;
        let element = self.opcode(self.element(to));
        let good = match class {
            FUNCTION | PRIVATE | WORKGROUP => (1..=MOST_BYTES).contains(&self.bytes(to)) && !self.runtime(to),
            UNIFORM | STORAGE => element == 30,
            PUSH => self.opcode(to) == 30,
            CONSTANT => matches!(element, 25..=27),
            INPUT => {
                let number = self.find(id, WHOLE, decoration::BUILT_IN).unwrap_or(u32::MAX);
                let count = match number {
                    24 | 26..=28 => 3,
                    29 | 36 | 38 | 40 | 41 | 4438 => 1,
                    4416..=4420 => 4,
                    _ => 0,
                };
                self.shape(to) == Shape::new(Shape::INTEGER, 32, count)
            }
            _ => false,
        };
        self.ensure(good, "no variable of this storage class can be of the type", to)?;
        if initial != 0 {
            let given = self.constant(initial)?;
            let good = given == to && matches!(class, FUNCTION | PRIVATE | WORKGROUP);
            self.ensure(good, "its type doesn't fit of the initial value", initial)?;
        }
        Ok(())
    }

    /// A decoration, its number at `from`.
    fn decoration(&mut self, target: u32, member: u32, from: usize) -> Result<()> {
        use decoration::*;
        const ONE: u64 =
            1 << 1 | 1 << 6 | 1 << 7 | 1 << 11 | 0xff << 29 | 1 << 37 | 7 << 38 | 1 << 43 | 1 << 44 | 1 << 45;
        let (kind, numbers) = (self.words[from], self.end - from - 1);
        let number = if numbers > 0 { self.words[from + 1] } else { 0 };
        let good = match kind {
            41 => self.text(from + 1)? + 1 == self.end,
            0..=63 => numbers as u64 == ONE >> kind & 1,
            _ => true,
        };
        self.ensure(good, "its words don't fit the decoration", kind)?;
        let of = self.opcode(target);
        let good = match kind {
            SPEC_ID => matches!(of, 48..=50),
            BLOCK | BUFFER_BLOCK => of == 30 && member == WHOLE,
            ROW_MAJOR | MATRIX_STRIDE | OFFSET => member != WHOLE,
            ARRAY_STRIDE => matches!(of, 28 | 29 | 32) && member == WHOLE && number > 0,
            BINDING | SET => of == 59,
            _ => true,
        };
        self.ensure(good, "nothing like its target has the decoration", kind)?;
        self.decorations.push([target, member, kind, number]);
        Ok(())
    }

    /// An extended instruction: its set at `first`, then its number.
    fn import(&mut self, first: usize) -> Result<()> {
        let (set, number) = (self.words[first], self.words[first + 1]);
        self.ensure(self.opcode(set) == 11, "it is not a set of extended instructions, id", set)?;
        let name = self.define[set as usize] as usize;
        let starts = |text: &[u8]| {
            let bytes = self.words[name + 2..].iter().flat_map(|word| word.to_le_bytes());
            bytes.take(text.len()).eq(text.iter().copied())
        };
        if starts(b"GLSL.std.450\0") {
            self.ensure(self.function != 0 && number < 82, "there is no extended instruction", number)?;
            return self.operands(GLSL + number, first + 2);
        }
        let silent = starts(b"NonSemantic.") || starts(b"OpenCL.DebugInfo.100\0");
        self.ensure(silent, "Vulkan has no such set of extended instructions, id", set)?;
        self.words[first + 2..self.end].iter().try_for_each(|&id| self.place(id).map(|_| ()))
    }

    /// What the patterns don't say of the extended instructions.
    pub fn extended(&mut self, number: u32, first: usize, of: u32) -> Result<()> {
        let result = self.shape(of);
        let given = self.value(self.words[first])?;
        let shape = self.shape(given);
        let fits = match number {
            33 => self.opcode(given) == 24 && self.word(self.word(given, 2), 2) == of,
            34 => self.opcode(of) == 24,
            36 | 52 => {
                let pair = self.opcode(of) == 30 && self.members(of) == 2 && self.word(of, 2) == given;
                let second = if pair { self.shape(self.word(of, 3)) } else { shape };
                let class = if number == 36 { Shape::FLOAT } else { Shape::INTEGER };
                pair && shape.class == Shape::FLOAT && second.class == class && second.count == shape.count
            }
            51 => {
                let (_, to) = self.pointer(self.words[first + 1])?;
                self.shape(to).class == Shape::INTEGER && self.shape(to).count == result.count
            }
            54..=58 => (result.width, result.count) == (32, 1),
            59 => (result.width, result.count) == (64, 1) && shape == Shape::new(Shape::INTEGER, 32, 2),
            60..=62 => (result.width, result.count) == (32, 2),
            63 | 64 => (result.width, result.count) == (32, 4),
            65 => result == Shape::new(Shape::INTEGER, 32, 2) && shape == Shape::new(Shape::FLOAT, 64, 1),
            66 | 67 => shape == (Shape { count: shape.count, ..result }) && result.count == 1,
            68 => result.count == 3,
            _ => true,
        };
        self.ensure(fits, "its operands don't fit the extended instruction", number)
    }
}
