//! What the patterns don't say of single instructions.

use super::check::{Checker, WHOLE};
use super::names::*;
use super::types::Shape;
use super::variables::{CAPABILITIES, any};
use crate::error::Result;

impl Checker<'_> {
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
            17 => {
                let known = CAPABILITIES.iter().position(|&number| u32::from(number) == a);
                self.capabilities |= known.map_or(0, |place| 1 << place);
                Ok(())
            }
            11 => {
                let set = self.words[self.at + 1];
                let known = self.named(set, b"GLSL.std.450\0") || self.named(set, b"NonSemantic.");
                self.ensure(known, "it is no set of extended instructions of Vulkan's, id", set)
            }
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
                self.ensure(self.words[first] < 16, "there is no function control", self.words[first])?;
                self.signature = self.define[b as usize] as usize;
                self.parameter = 3;
                self.block = 0;
                self.read_blocks(self.value[self.words[self.at + 2] as usize] as usize)
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
                if self.first_block == self.at {
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
            60 => {
                let (_, to) = self.pointer(a)?;
                let fits = self.opcode(to) == 25 && self.word(of, 2) == IMAGE;
                self.ensure(fits, "it is no pointer to an image, id", a)
            }
            86..=107 => {
                let given = self.value(a)?;
                let kind = if matches!(opcode, 87..=94 | 96 | 97 | 100 | 105) { 27 } else { 25 };
                let sampler = if opcode == 86 { self.value(b)? } else { 0 };
                let fits = opcode != 86 || self.opcode(sampler) == 26 && self.opcode(of) == 27;
                self.ensure(self.opcode(given) == kind && fits, "it is no image of the kind needed, id", a)
            }
            333 => self.needs(any(&[61, 62, 63, 64, 65, 66, 67, 68])),
            334..=336 => self.needs(any(&[62])),
            337..=341 | 343 | 344 => self.needs(any(&[64])),
            345 | 346 => self.needs(any(&[65])),
            347 | 348 => self.needs(any(&[66])),
            365 | 366 => self.needs(any(&[68])),
            342 | 349..=364 => {
                self.needs(if opcode == 342 { any(&[64]) } else { any(&[63, 67]) })?;
                let clustered = opcode != 342 && self.end - first == 4;
                self.ensure(if clustered { b == 3 } else { b < 3 }, "there is no such operation of a group:", b)
            }
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
                let (x, y) = (self.value(a)?, self.value(b)?);
                let vectors = [x, y, of].iter().all(|&of| self.opcode(of) == 23 && self.word(of, 2) == self.word(x, 2));
                let (x, y, result) = (self.shape(x), self.shape(y), self.shape(of));
                let fits = vectors && result.count as usize == self.end - first - 2;
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
            84 => {
                let given = self.value(a)?;
                let matrices = self.opcode(of) == 24 && self.opcode(given) == 24;
                let turned = matrices && {
                    let (x, y) = (self.word(given, 2), self.word(of, 2));
                    self.component(x) == self.component(y)
                        && (self.word(x, 3), self.word(given, 3)) == (self.word(of, 3), self.word(y, 3))
                };
                self.ensure(turned, "it is no matrix that fits, id", a)
            }
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
                self.ensure(
                    (self.end - first).is_multiple_of(2),
                    "its words are too few:",
                    (self.end - self.at) as u32,
                )?;
                let end = self.value[self.words[self.function + 2] as usize] as usize;
                let mut from = Vec::new();
                for index in (first..self.end).step_by(2) {
                    let [id, label] = [self.words[index], self.words[index + 1]];
                    let (given, place) = (self.type_of(id)?, self.place(id)?);
                    self.label(label, true)?;
                    let here = (self.function..end).contains(&place) && self.reaches(place, self.place(label)?);
                    let fits = given == of && (here || place < self.body);
                    self.ensure(fits, "its type or place doesn't fit of the operand", id)?;
                    from.push(self.block_of(label) as u32);
                }
                from.sort_unstable();
                let here = self.blocks.at(self.at).unwrap_or(0);
                self.ensure(
                    self.blocks.come_from(here, &from),
                    "its blocks are not those that jump here, in number",
                    from.len() as u32,
                )
            }
            246 | 247 => {
                let next = self.words[self.end] & 0xffff;
                let good = next == 250 || next == if opcode == 246 { 249 } else { 251 };
                self.ensure(good, "it stands before instruction", next)?;
                let (control, numbers) = if opcode == 246 { (c, self.end - first - 3) } else { (b, 0) };
                let good = if opcode == 246 {
                    control < 0x200 && (control >> 3).count_ones() as usize == numbers
                } else {
                    b < 4
                };
                self.ensure(good, "there is no such control of a branch:", control)
            }
            250 => {
                let given = self.value(a)?;
                let good = self.shape(given) == Shape::new(Shape::BOOL, 0, 1);
                self.ensure(good && matches!(self.end - first, 3 | 5), "it is no condition, id", a)
            }
            // 251 was checked when the function began.
            253 | 254 => {
                let returned = self.words[self.signature + 2];
                let fits = if opcode == 253 { self.opcode(returned) == 19 } else { self.value(a)? == returned };
                self.ensure(fits, "the function returns another type,", returned)
            }
            4460 => self.ensure(self.opcode(a) == 4456, "it is no matrix, type", a),
            _ => Ok(()),
        }
    }
}
