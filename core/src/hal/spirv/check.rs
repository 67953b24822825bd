//! The structural check: after it, every instruction is whole, in its place, and about things that exist and fit.

use super::blocks::Blocks;
use super::grammar::{GLSL, pattern};
use super::types::{POINTER, Shape};
use crate::error::{Error, Result, Status};

/// `OpTypeForwardPointer` was seen; in [`Checker::value`].
const FORWARD: u64 = 1 << 63;
/// No member: a decoration of the whole.
pub(super) const WHOLE: u32 = u32::MAX;
/// The most ids of a module, by the specification's limits.
const MOST_IDS: u32 = 0x3f_ffff;

/// A module under check.
pub(super) struct Checker<'a> {
    pub words: &'a [u32],
    /// Where each id is defined; 0 if nowhere.
    pub define: Vec<u32>,
    /// Of a constant its bits, of a type what `rules.rs` knows of it, of a block the place of its function, of a function
    /// its end.
    pub value: Vec<u64>,
    /// Target, member, decoration and its first number; sorted once the types begin.
    pub decorations: Vec<[u32; 4]>,
    sorted: bool,
    /// The capabilities that are declared, of those in `needs`.
    pub capabilities: u64,
    /// Place of a function, and a function or global variable that it uses.
    pub uses: Vec<[u32; 2]>,
    /// The functions' ids.
    pub functions: Vec<u32>,
    /// Specialization constants, with values instead of their defaults.
    pub specialization: &'a [(u32, u64)],
    /// The instruction under check and its end.
    pub at: usize,
    pub end: usize,
    /// Where functions begin.
    pub body: usize,
    /// The function under check, 0 outside; its type, the next of its parameters, its first block and the current one.
    pub function: usize,
    pub signature: usize,
    pub parameter: usize,
    pub first_block: usize,
    pub block: usize,
    pub blocks: Blocks,
}

/// The section of the module's layout that an opcode belongs to; 0: where it comes, from the types on.
fn section(opcode: u32) -> u32 {
    match opcode {
        17 => 1,
        10 => 2,
        11 => 3,
        14 => 4,
        15 => 5,
        16 | 331 => 6,
        2..=4 | 7 => 7,
        5 | 6 => 8,
        330 => 9,
        71 | 72 | 332 | 5632 | 5633 => 10,
        19..=52 | 4456 => TYPES,
        1 | 8 | 12 | 59 | 317 => 0,
        _ => FUNCTIONS,
    }
}
const TYPES: u32 = 11;
const FUNCTIONS: u32 = 12;

impl<'a> Checker<'a> {
    /// Checks everything; `words` have a header.
    pub fn new(words: &'a [u32], specialization: &'a [(u32, u64)]) -> Result<Checker<'a>> {
        let ids = words[3].min(MOST_IDS) as usize;
        let mut checker = Checker {
            words,
            define: vec![0; ids],
            value: vec![0; ids],
            decorations: Vec::new(),
            sorted: false,
            capabilities: 0,
            uses: Vec::new(),
            functions: Vec::new(),
            specialization,
            at: 0,
            end: 5,
            body: words.len(),
            function: 0,
            signature: 0,
            parameter: 0,
            first_block: 0,
            block: 0,
            blocks: Blocks::default(),
        };
        checker.ensure((1..=MOST_IDS).contains(&words[3]), "the bound of ids is", words[3])?;
        checker.outline()?;
        checker.end = 5;
        while checker.next()? {
            checker.instruction()?;
        }
        checker.at = 0;
        Ok(checker)
    }

    #[cold]
    #[inline(never)]
    pub fn fault(&self, what: &str, number: u32) -> Error {
        let (at, opcode) = (self.at, self.words[self.at] & 0xffff);
        let place = if at == 0 { String::new() } else { format!(" at word {at}, instruction {opcode}") };
        Error::formatted(Status::InvalidKernel, format_args!("SPIR-V{place}: {what} {number}"))
    }

    pub fn ensure(&self, good: bool, what: &str, number: u32) -> Result<()> {
        if good { Ok(()) } else { Err(self.fault(what, number)) }
    }

    /// Goes to the next instruction; false at the end of the module.
    pub fn next(&mut self) -> Result<bool> {
        self.at = self.end;
        if self.at == self.words.len() {
            return Ok(false);
        }
        let length = self.words[self.at] >> 16;
        self.ensure(length > 0, "it has a length of", 0)?;
        self.ensure(length as usize <= self.words.len() - self.at, "the module ends within its words,", length)?;
        self.end = self.at + length as usize;
        Ok(true)
    }

    /// The first pass: lengths, the order of everything, blocks, and where ids are defined.
    fn outline(&mut self) -> Result<()> {
        enum Nest {
            Outside,
            Parameters,
            Blocks,
            Block,
        }
        let (mut stage, mut nest) = (1, Nest::Outside);
        while self.next()? {
            let opcode = self.words[self.at] & 0xffff;
            let Some(pattern) = pattern(opcode) else {
                return Err(self.fault("compute kernels can't have instructions of number", opcode));
            };
            let length = self.end - self.at;
            let least = pattern.iter().take_while(|&&code| !matches!(code, 0 | b'?' | b'!' | b'*')).count();
            let least = if pattern[0] == b'0' { 0 } else { least };
            self.ensure(length > least, "its words are too few:", length as u32)?;

            let place = match section(opcode) {
                0 => stage.max(TYPES),
                place => place,
            };
            let once = place == 4 && stage == 4;
            self.ensure(place >= stage && !once, "it is out of order, after instructions of section", stage)?;
            self.ensure(place <= 4 || stage >= 4, "it comes before OpMemoryModel, in section", stage)?;
            stage = place;
            if stage == FUNCTIONS {
                self.body = self.body.min(self.at);
                nest = match (opcode, nest) {
                    (8 | 317, nest) => nest,
                    (54, Nest::Outside) => {
                        self.function = self.at;
                        self.functions.push(self.words[self.at + 2]);
                        Nest::Parameters
                    }
                    (55, Nest::Parameters) => Nest::Parameters,
                    (248, Nest::Parameters | Nest::Blocks) => Nest::Block,
                    (56, Nest::Blocks) => {
                        // The function's id was checked when it began.
                        self.value[self.words[self.function + 2] as usize] = self.at as u64;
                        Nest::Outside
                    }
                    (249..=255, Nest::Block) => Nest::Blocks,
                    (54..=56 | 248, _) | (_, Nest::Outside | Nest::Parameters | Nest::Blocks) => {
                        return Err(
                            self.fault("it can't be here; the function around it begins at", self.function as u32)
                        );
                    }
                    (_, Nest::Block) => Nest::Block,
                };
            }

            let result = match pattern[0] {
                b'T' | b'F' | b'I' | b'B' | b'P' => self.words[self.at + 2],
                b'r' => self.words[self.at + 1],
                _ => continue,
            };
            let at = self.at as u32;
            match self.define.get(result as usize) {
                Some(0) if result != 0 => self.define[result as usize] = at,
                Some(_) if result != 0 => return Err(self.fault("it defines again the id", result)),
                _ => return Err(self.fault("its result is not below the bound of ids:", result)),
            }
            if opcode == 248 {
                self.value[result as usize] = self.function as u64;
            }
        }
        self.function = 0;
        self.at = 0;
        self.ensure(
            matches!(nest, Nest::Outside),
            "the module ends within a function at its word",
            self.words.len() as u32,
        )?;
        self.ensure(stage >= 5, "there is no OpEntryPoint in words", self.words.len() as u32)
    }

    /// Where an id is defined, wherever that is.
    pub fn place(&self, id: u32) -> Result<usize> {
        match self.define.get(id as usize) {
            Some(&place) if place != 0 => Ok(place as usize),
            _ => Err(self.fault("nothing defines the id", id)),
        }
    }

    /// The opcode that defines an id which is known to be defined.
    pub fn opcode(&self, id: u32) -> u32 {
        self.words[self.define[id as usize] as usize] & 0xffff
    }

    /// A word of the instruction that defines an id which is known to be defined.
    pub fn word(&self, id: u32, index: usize) -> u32 {
        self.words[self.define[id as usize] as usize + index]
    }

    /// The words of that instruction.
    pub fn length(&self, id: u32) -> usize {
        (self.word(id, 0) >> 16) as usize
    }

    /// An id that is defined before this instruction on every path, and in this function if in any.
    fn before(&self, id: u32) -> Result<usize> {
        let place = self.place(id)?;
        let visible = place < self.at && (place < self.body || place >= self.function && self.reaches(place, self.at));
        self.ensure(visible, "here is not defined yet the id", id)?;
        Ok(place)
    }

    /// Whether every path to the block around one word of this function leads through that around another; parameters
    /// are around all.
    pub fn reaches(&self, from: usize, to: usize) -> bool {
        match (self.blocks.at(from), self.blocks.at(to)) {
            (Some(from), Some(to)) => self.blocks.dominates(from, to),
            _ => true,
        }
    }

    pub fn type_id(&self, id: u32) -> Result<()> {
        self.before(id)?;
        self.ensure(matches!(self.opcode(id), 19..=33 | 4456), "a type should be the id", id)
    }

    /// The type of a value.
    pub fn value(&mut self, id: u32) -> Result<u32> {
        let place = self.before(id)?;
        let opcode = self.opcode(id);
        if self.function != 0 && opcode == 59 && place < self.body {
            self.uses.push([self.function as u32, id]);
        }
        self.type_of(id)
    }

    /// The type of a value that is defined, wherever.
    pub fn type_of(&self, id: u32) -> Result<u32> {
        self.place(id)?;
        let typed = pattern(self.opcode(id)).is_some_and(|p| matches!(p[0], b'T' | b'F' | b'I' | b'B' | b'P'));
        let value = typed && self.opcode(id) != 54 && self.opcode_of(self.word(id, 1)) != 19;
        self.ensure(value, "a value should be the id", id)?;
        Ok(self.word(id, 1))
    }

    /// The opcode that defines an id, 0 if none does.
    pub fn opcode_of(&self, id: u32) -> u32 {
        if self.place_of(id) == 0 { 0 } else { self.opcode(id) }
    }

    fn place_of(&self, id: u32) -> usize {
        self.define.get(id as usize).map_or(0, |&place| place as usize)
    }

    pub fn constant(&mut self, id: u32) -> Result<u32> {
        let of = self.value(id)?;
        self.ensure(matches!(self.opcode(id), 1 | 41..=52), "a constant should be the id", id)?;
        Ok(of)
    }

    /// Whether a constant is a scope, or the semantics of memory: one order at most.
    fn number(&self, shape: Shape, id: u32, semantics: bool) -> bool {
        let value = self.value[id as usize];
        let known = if semantics { value < 1 << 16 && (value & 0x1e).count_ones() < 2 } else { value < 7 };
        known && self.opcode(id) == 43 && shape == Shape { class: Shape::INTEGER, width: 32, count: 1 }
    }

    /// A pointer's storage class and what it points to.
    pub fn pointer(&mut self, id: u32) -> Result<(u32, u32)> {
        let of = self.value(id)?;
        self.ensure(self.opcode(of) == 32, "a pointer should be the id", id)?;
        Ok((self.word(of, 2), self.word(of, 3)))
    }

    /// A block of this function; only `first` may be the first one.
    pub fn label(&self, id: u32, first: bool) -> Result<()> {
        let place = self.place(id)?;
        let here = self.opcode(id) == 248 && self.value[id as usize] == self.function as u64;
        self.ensure(here && (first || place != self.first_block), "a block to go to should be the id", id)
    }

    /// A text; returns where it ends.
    pub fn text(&self, from: usize) -> Result<usize> {
        let last = self.words[from..self.end].iter().position(|word| word.to_le_bytes().contains(&0));
        match last {
            Some(last) => Ok(from + last + 1),
            None => Err(self.fault("a text is not ended, from word", from as u32)),
        }
    }

    /// Marks a pointer type that is declared before it is defined.
    pub fn forward(&mut self, id: u32) {
        self.value[id as usize] = FORWARD | POINTER;
    }

    /// The second pass, for one instruction.
    fn instruction(&mut self) -> Result<()> {
        let opcode = self.words[self.at] & 0xffff;
        if self.words[self.at + 1..self.end].is_empty() {
            return self.rules(opcode, self.end, 0);
        }
        let pattern = pattern(opcode).expect("the first pass refuses others");
        if !self.sorted && section(opcode) == TYPES {
            self.decorations.sort_unstable();
            self.sorted = true;
        }
        let first = match pattern[0] {
            b'T' | b'F' | b'I' | b'B' | b'P' => {
                self.type_id(self.words[self.at + 1])?;
                self.at + 3
            }
            b'r' => self.at + 2,
            _ => self.at + 1,
        };
        self.operands(opcode, first)
    }

    /// Checks the operands from the word `first` on by the opcode's pattern, and what else there is to it.
    pub fn operands(&mut self, opcode: u32, first: usize) -> Result<()> {
        let Some(pattern) = pattern(opcode) else {
            return Err(self.fault("there is no operation of number", opcode & 0x7fff));
        };
        let of = if first > self.at + 2 { self.words[self.at + 1] } else { 0 };
        let result = self.shape(of);
        let class = match pattern[0] {
            b'F' => result.class == Shape::FLOAT,
            b'I' => result.class == Shape::INTEGER,
            b'B' => result.class == Shape::BOOL,
            b'P' => self.opcode(of) == 32,
            _ => true,
        };
        self.ensure(class, "the result can't be of the type", of)?;

        let (mut next, mut previous) = (first, 0);
        let mut codes = pattern.iter().position(|&code| code == b'R').map_or(0, |result| result + 1);
        if matches!(pattern[0], b'r' | b'0') {
            codes = 1;
        }
        loop {
            let mut code = pattern.get(codes).copied().unwrap_or(0);
            if matches!(code, b'?' | b'*') && next == self.end || code == 0 || code == b'!' {
                break;
            }
            codes += 1;
            if code == b'?' {
                continue;
            }
            if code == b'*' {
                codes -= 1;
                code = pattern[codes - 1];
            }
            self.ensure(next < self.end, "its words are too few:", (self.end - self.at) as u32)?;
            let word = self.words[next];
            next += 1;
            match code {
                b'd' => {}
                b'n' => next = self.text(next - 1)?,
                b'x' => _ = self.place(word)?,
                b'l' => self.label(word, false)?,
                b't' => {
                    // A structure may have a pointer that is declared and not yet defined.
                    let forward =
                        opcode == 30 && self.value.get(word as usize).is_some_and(|value| value & FORWARD != 0);
                    if !forward {
                        self.type_id(word)?;
                    }
                }
                b'm' => {
                    self.ensure(word < 0x40, "unknown memory operands,", word)?;
                    next += (word & 0x1a).count_ones() as usize;
                }
                b'o' => {
                    self.ensure(word < 0x8000, "unknown image operands,", word)?;
                    let ids = (word & 0x3ff).count_ones() + (word >> 2 & 1);
                    for _ in 0..ids {
                        self.ensure(next < self.end, "image operands are missing of", word)?;
                        self.value(self.words[next])?;
                        next += 1;
                    }
                }
                b'q' | b'p' => {
                    let (_, to) = self.pointer(word)?;
                    self.ensure(code == b'q' || to == of, "to another type points the id", word)?;
                }
                b'c' => previous = self.constant(word)?,
                _ => {
                    let given =
                        if matches!(code, b'k' | b'e' | b's') { self.constant(word)? } else { self.value(word)? };
                    let (shape, before) = (self.shape(given), self.shape(previous));
                    let fits = match code {
                        b'=' => given == of,
                        b'f' => shape.class == Shape::FLOAT && shape.count == result.count,
                        b'i' => shape.class == Shape::INTEGER && shape.count == result.count,
                        b'b' => shape.class == Shape::BOOL && shape.count == result.count,
                        b'j' => shape == Shape { class: Shape::INTEGER, ..result },
                        b'h' => {
                            if shape.class == 0 {
                                given == previous
                            } else {
                                shape == before
                            }
                        }
                        b'u' | b'k' => shape.class == Shape::INTEGER && shape.count == 1,
                        b'e' | b's' => self.number(shape, word, code == b's'),
                        b'2' => shape.class == Shape::FLOAT && shape.count == 2,
                        b'4' => shape.class == Shape::FLOAT && shape.count == 4,
                        _ => true,
                    };
                    self.ensure(fits, "the type doesn't fit of the operand", word)?;
                    previous = given;
                }
            }
        }
        let rest = pattern.get(codes) == Some(&b'!');
        self.ensure(next <= self.end, "its words are too few:", (self.end - self.at) as u32)?;
        self.ensure(rest || next == self.end, "its words are too many:", (self.end - self.at) as u32)?;
        if opcode & GLSL != 0 { self.extended(opcode & !GLSL, first, of) } else { self.rules(opcode, first, of) }
    }
}
