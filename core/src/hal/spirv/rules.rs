//! Rules for single instructions, beyond their patterns.

use super::check::{Checker, Wrong};
use super::grammar::GLSL;
use super::names::*;
use super::sort;
use super::types::*;

/// The instructions whose result may be a cooperative matrix: constants, parameters, calls, loads, composites,
/// conversions, arithmetic, phis, and those of the extension.
const COOPERATIVE_RESULTS: &[u32] = &[
    1, 12, 44, 46, 51, 54, 55, 57, 61, 80, 81, 82, 83, 109, 110, 111, 112, 113, 114, 115, 124, 126, 127, 128, 129, 130,
    131, 132, 133, 134, 135, 136, 143, 169, 245, 4457, 4459,
];

impl Checker<'_> {
    /// Checks an instruction's own rules. Its operands start at `first`; `of` is the type of its result.
    pub fn rules(&mut self, opcode: u32, first: u32, of: u32) -> bool {
        let (a, b, c) = (self.word(first), self.word(first + 1), self.word(first + 2));
        let count = self.end - first;
        if self.opcode(of) == COOPERATIVE && !COOPERATIVE_RESULTS.contains(&opcode) {
            return false;
        }
        match opcode {
            6 => {
                if b < WHOLE {
                    self.decorations.push(decoration(a, b, NAME) | u64::from(first + 2));
                }
                self.opcode(a) == 30 && b < self.length(a) - 2
            }
            3 if count > 2 => self.opcode(c) == 7,
            8 => self.opcode(a) == 7,
            10 => {
                self.extensions.push(self.at);
                true
            }
            11 => self.named(self.at, "GLSL.std.450\0") || self.named(self.at, "NonSemantic."),
            12 => self.import(a, b, first + 2),
            14 => matches!(a, 0 | 5348) && matches!(b, 1 | 3),
            15 => {
                self.entries.push(self.at);
                self.entries.len() <= MOST && a == 5 && self.opcode(b) == 54
            }
            16 | 331 => {
                self.modes.push(self.at);
                let numbers = match (opcode, b) {
                    (16, 17) | (331, 38) => 3,
                    (16, 4459..=4463) => 1,
                    (16, 31 | 4421 | 6023) => 0,
                    _ => return false,
                };
                self.opcode(a) == 54 && count - 2 == numbers
            }
            17 => {
                self.capabilities.push(a);
                let known = CAPABILITIES.iter().position(|&number| u32::from(number) == a);
                self.has |= known.map_or(0, |place| 1 << place);
                true
            }
            71 => self.decoration(a, WHOLE, first + 1),
            72 => self.opcode(a) == 30 && b < WHOLE.min(self.length(a) - 2) && self.decoration(a, b, first + 2),
            39 => {
                self.learn(a, FORWARD | POINTER);
                self.opcode(a) == 32 && b == PHYSICAL && self.part(a, 2) == b
            }
            19..=33 | COOPERATIVE => self.type_rules(opcode),
            41..=52 => self.constant_rules(opcode, of),
            54 => {
                self.function = self.at;
                self.signature = self.place(b);
                self.parameter = 3;
                let end = self.known(self.word(self.at + 2)) as u32;
                a < 16 && self.opcode(b) == 33 && self.part(b, 2) == of && self.read_blocks(end)
            }
            55 => {
                self.parameter += 1;
                self.parameter <= self.word(self.signature) >> 16
                    && self.word(self.signature + self.parameter - 1) == of
            }
            56 => {
                self.function = 0;
                true
            }
            248 => self.parameter == self.word(self.signature) >> 16,
            57 => {
                let signature = self.part(a, 4);
                self.uses.push(u64::from(self.function) << 32 | u64::from(a));
                let fits = self.opcode(a) == 54 && self.opcode(signature) == 33 && self.part(signature, 2) == of;
                let argument = |index: u32| self.type_of(self.word(first + index)) == self.part(signature, 2 + index);
                let entry = self.entries.iter().any(|&at| self.word(at + 2) == a);
                fits && !entry && self.length(signature) == count + 2 && (1..count).all(argument)
            }
            59 => self.variable(of, a, if count > 1 { b } else { 0 }),
            61 => !self.runtime(of),
            62 | 63 => {
                let ((to, class), other) = (self.pointer(a), if opcode == 63 { self.pointer(b).0 } else { 0 });
                let fits = opcode == 62 || to == other;
                fits && !self.runtime(to) && !matches!(class, UNIFORM_CONSTANT | INPUT | PUSH)
            }
            65 | 66 | 67 | 70 => {
                let (to, class) = self.pointer(a);
                let to = self.walk(to, first + if opcode > 66 { 2 } else { 1 }, false);
                self.part(of, 2) == class && self.part(of, 3) == to
            }
            68 => {
                let (to, _) = self.pointer(a);
                self.opcode(to) == 30 && self.runtime(to) && b.checked_add(3) == Some(self.length(to))
            }
            79 => {
                let (x, y) = (self.type_of(a), self.type_of(b));
                let vectors = [x, y, of].iter().all(|&of| self.opcode(of) == 23 && self.part(of, 2) == self.part(x, 2));
                let parts = self.part(x, 3) + self.part(y, 3);
                let within = |at: u32| self.word(at) < parts || self.word(at) == u32::MAX;
                vectors && self.part(of, 3) == count - 2 && (first + 2..self.end).all(within)
            }
            80 => self.composite(of, first, true),
            81 => self.walk(self.type_of(a), first + 1, true) == of,
            82 => self.walk(of, first + 2, true) == self.type_of(a),
            84 | 143..=147 => self.product(opcode, self.type_of(a), self.type_of(b), of),
            117 | 120 => self.part(if opcode == 120 { of } else { self.type_of(a) }, 2) == PHYSICAL,
            124 => self.bits(self.type_of(a)) == self.bits(of) && self.bits(of) != 0,
            149..=152 => self.pair(of, self.type_of(a), self.type_of(a)),
            169 => {
                let condition = self.shape(self.type_of(a));
                let fits = matches!(condition & COUNT, 1) || condition & COUNT == self.shape(of) & COUNT;
                condition & CLASS == BOOL && fits
            }
            6035 if self.has & ATOMIC_FLOAT == 0 || self.shape(of) != FLOAT | 32 << 8 | 1 => false,
            227..=242 | 6035 => {
                let (to, class) = self.pointer(a);
                let given = if opcode == 228 { self.type_of(self.word(first + 3)) } else { to };
                let number = self.shape(to) & CLASS >= INTEGER && self.shape(to) & COUNT == 1;
                matches!(class, UNIFORM | WORKGROUP | STORAGE | PHYSICAL) && number && given == to
            }
            245 => {
                let end = self.known(self.word(self.function + 2)) as u32;
                let mut from = Vec::new();
                for at in (first..self.end).step_by(2) {
                    let [id, label] = [self.word(at), self.word(at + 1)];
                    let (place, given) = (self.place(id), self.type_of(id));
                    let here = (self.function..end).contains(&place) && self.blocks.reaches(place, self.place(label));
                    if !self.label(label, true) || given != of || !here && place >= self.body {
                        return false;
                    }
                    from.push(self.blocks.number(self.place(label)).unwrap_or(0).into());
                }
                sort(&mut from);
                count.is_multiple_of(2) && self.blocks.come_from(self.at, &from)
            }
            246 | 247 => {
                let next = self.word(self.end) & 0xffff;
                let (control, numbers) = if opcode == 246 { (c, count - 3) } else { (b, 0) };
                let limit = if opcode == 246 { 0x200 } else { 4 };
                let branch = next == 250 || next == if opcode == 246 { 249 } else { 251 };
                branch && control < limit && (control >> 3).count_ones() == numbers
            }
            250 => matches!(count, 3 | 5),
            253 => self.opcode(self.word(self.signature + 2)) == 19,
            254 => self.word(self.signature + 2) == self.type_of(a),
            333..=366 => {
                let operation = !matches!(opcode, 342 | 349..=364) || b < 3 || b == 3 && count == 4 && opcode != 342;
                self.has & SUBGROUP != 0 && operation
            }
            4450..=4455 => {
                let (x, y, result) = (self.shape(self.type_of(a)), self.shape(self.type_of(b)), self.shape(of));
                let packed = count > if opcode < 4453 { 2 } else { 3 };
                let fits = if packed {
                    let one = INTEGER | 32 << 8 | 1;
                    self.has & DOT_PACKED != 0 && x == one && y == one && self.word(self.end - 1) == 0
                } else {
                    let bytes = x == INTEGER | 8 << 8 | 4 && self.has & DOT_BYTES != 0;
                    x == y && matches!(x & COUNT, 2..=4) && (bytes || self.has & DOT_ANY != 0)
                };
                let wide = packed && result & WIDTH >= 8 << 8 || result & WIDTH >= x & WIDTH;
                self.has & DOT != 0 && fits && x & CLASS == INTEGER && result & COUNT == 1 && wide
            }
            4457 | 4458 => {
                let value = if opcode == 4457 { of } else { self.type_of(b) };
                let (to, class) = self.pointer(a);
                let plain = matches!(self.shape(to) & COUNT, 1..=4) && self.shape(to) & CLASS >= INTEGER;
                plain && matches!(class, WORKGROUP | STORAGE | PHYSICAL) && self.opcode(value) == COOPERATIVE
            }
            4459 => {
                let [x, y, z] = [a, b, c].map(|id| self.type_of(id));
                let all = [x, y, z].iter().all(|&of| self.opcode(of) == COOPERATIVE);
                let size = |of: u32, at: u32| self.known(self.part(of, at));
                let inner = size(x, 5) == size(y, 4);
                let outer = size(x, 4) == size(z, 4) && size(y, 5) == size(z, 5);
                all && z == of && inner && outer && [x, y, z].map(|of| size(of, 6)) == [0, 1, 2]
            }
            4460 => self.opcode(a) == COOPERATIVE,
            _ => true,
        }
    }

    /// Returns the bits of a number, a vector of numbers or an address; 0 for other types.
    fn bits(&self, of: u32) -> u32 {
        let shape = self.shape(of);
        if self.opcode(of) == 32 && self.part(of, 2) == PHYSICAL {
            return 64;
        }
        if shape & CLASS > BOOL { (shape >> 8 & 0xff) * (shape & COUNT) } else { 0 }
    }

    /// Returns whether a type is a structure of `a` and `b`.
    fn pair(&self, of: u32, a: u32, b: u32) -> bool {
        self.opcode(of) == 30 && self.length(of) == 4 && self.part(of, 2) == a && self.part(of, 3) == b
    }

    /// Returns the type of a component, the columns and the rows. A vector is one column.
    #[inline(never)]
    fn matrix(&self, of: u32) -> (u32, u32, u32) {
        let (a, b) = (self.part(of, 2), self.part(of, 3));
        match self.opcode(of) {
            24 => (self.part(a, 2), b, self.part(a, 3)),
            23 => (a, 1, b),
            _ => (of, 0, 0),
        }
    }

    /// Checks that the columns and rows of products and transposes fit.
    fn product(&self, opcode: u32, x: u32, y: u32, of: u32) -> bool {
        let (x, y, result) = (self.matrix(x), self.matrix(y), self.matrix(of));
        let sizes = match opcode {
            84 => return x == (result.0, result.2, result.1) && x.2 != 0,
            143 if x.0 == of => return self.opcode(of) == COOPERATIVE && y == (self.part(of, 2), 0, 0),
            143 => x == result && x.1 > 1 && y.1 == 0,
            144 => x.1 == 1 && y.1 > 1 && x.2 == y.2 && (result.1, result.2) == (1, y.1),
            147 => x.1 == 1 && y.1 == 1 && (result.1, result.2) == (y.2, x.2),
            _ => x.1 == y.2 && (result.1, result.2) == (y.1, x.2) && (y.1 > 1) == (opcode == 146),
        };
        sizes && x.0 == result.0 && y.0 == result.0 && x.2 != 0
    }

    /// Checks a variable of storage class `class`, with an initial value unless `initial` is 0.
    fn variable(&mut self, of: u32, class: u32, initial: u32) -> bool {
        let (id, to) = (self.word(self.at + 2), self.part(of, 3));
        let element = self.opcode(self.element(to));
        let first = self.blocks.number(self.at) == Some(0);
        let own = matches!(class, WORKGROUP | PRIVATE | FUNCTION);
        let good = match class {
            // Less than 16 MiB.
            _ if own => (1..1 << 24).contains(&self.bytes(to)) && !self.runtime(to),
            UNIFORM | STORAGE => element == 30,
            PUSH => self.opcode(to) == 30,
            INPUT => {
                let number = self.find(id, WHOLE, BUILT_IN);
                let count = match self.word(number) {
                    24 | 26..=28 => 3,
                    29 | 36 | 38 | 40 | 41 | 4438 => 1,
                    4416..=4420 => 4,
                    _ => 0,
                };
                number != 0 && self.shape(to) == INTEGER | 32 << 8 | count
            }
            _ => false,
        };
        let inside = self.function != 0;
        let placed = self.part(of, 2) == class && inside == (class == FUNCTION) && (!inside || first);
        let initial = initial == 0 || own && self.value(initial) == to && matches!(self.opcode(initial), 41..=52);
        good && placed && initial
    }

    /// Checks and records a decoration, whose kind is at `from`.
    fn decoration(&mut self, target: u32, member: u32, from: u32) -> bool {
        // The decorations with one number.
        const ONE: u64 = 0x3bff << 32 | 0xe000_08c2;
        let (kind, numbers, number) = (self.word(from), self.end - from - 1, self.word(from + 1));
        if let 4469 | 4470 | 5300 | 5355 | 5356 = kind {
            return numbers == 0;
        }
        if kind > 45 || kind != 41 && u64::from(numbers) != ONE >> kind & 1 {
            return false;
        }
        self.decorations.push(decoration(target, member, kind) | u64::from(from + 1));
        let (of, whole) = (self.opcode(target), member == WHOLE);
        match kind {
            SPEC_ID => matches!(of, 48..=50),
            BLOCK | BUFFER_BLOCK => of == 30 && whole,
            ROW_MAJOR | MATRIX_STRIDE | OFFSET => !whole,
            ARRAY_STRIDE => matches!(of, 28 | 29 | 32) && whole && number > 0,
            BINDING | SET => of == 59,
            BUILT_IN if number == 25 => matches!(of, 44 | 51),
            BUILT_IN => of == 59 && whole,
            41 => self.text(from + 1) + 1 == self.end,
            _ => true,
        }
    }

    /// Returns whether the text behind an instruction's result starts with `text`.
    fn named(&self, place: u32, text: &str) -> bool {
        let byte = |i: usize| self.word(place + 2 + i as u32 / 4).to_le_bytes()[i % 4];
        text.bytes().enumerate().all(|(i, wanted)| byte(i) == wanted)
    }

    /// Checks an extended instruction of a set, with its operands from `first`.
    fn import(&mut self, set: u32, number: u32, first: u32) -> bool {
        if self.opcode(set) != 11 {
            return false;
        }
        if self.named(self.place(set), "GLSL") {
            return self.function != 0 && number < 82 && self.operands(GLSL + number, first);
        }
        // Instructions of other sets do nothing.
        match (first..self.end).map(|at| self.word(at)).find(|&id| self.place(id) == 0) {
            Some(id) => self.no(Wrong::Undefined, id),
            None => true,
        }
    }

    /// Checks the rules of an extended instruction, beyond its pattern.
    pub fn extended(&mut self, number: u32, first: u32, of: u32) -> bool {
        if self.opcode(of) == COOPERATIVE {
            return false;
        }
        let (result, given) = (self.shape(of), self.type_of(self.word(first)));
        let shape = self.shape(given);
        match number {
            33 => self.opcode(given) == 24 && self.component(self.part(given, 2)) == of,
            34 => self.opcode(of) == 24,
            36 => self.pair(of, given, given),
            51 | 52 => {
                let integer = if number == 52 { self.part(of, 3) } else { self.pointer(self.word(first + 1)).0 };
                let fits = self.shape(integer) & (CLASS | COUNT) == INTEGER | shape & COUNT;
                fits && (number == 51 || self.pair(of, given, integer))
            }
            59 | 65 => self.bits(given) == 64 && self.bits(of) == 64,
            66 | 67 => self.component(given) == of,
            68 => result & COUNT == 3,
            _ => true,
        }
    }
}
