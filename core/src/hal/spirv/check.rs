//! The structural check: every instruction is complete and in its place, and its operands exist and fit.
//!
//! To keep the library small, each check is a few comparisons that return true or false. One error reports the word at
//! fault, the kind of fault, and an id or number. Missing words and ids read as 0, which is no id, type or instruction,
//! so no access is out of bounds.

use super::blocks::Blocks;
use super::grammar::{Pattern, pattern, refused};
use super::sort;
use super::types::COOPERATIVE;
use crate::error::{Error, Result, Status};

/// The most ids that the specification lets a module have.
const MOST_IDS: u32 = 0x3f_ffff;
/// The sections of types and of functions in a module's layout.
const TYPES: u32 = 11;
const FUNCTIONS: u32 = 12;

/// The kind of a fault.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Wrong {
    Nothing,
    Length,
    Opcode,
    Order,
    Again,
    Undefined,
    Early,
    Interface,
}

/// A module that is being checked.
pub(super) struct Checker<'a> {
    pub words: &'a [u32],
    /// The position of each id's definition; 0 without one.
    pub define: Vec<u32>,
    /// What is known of each id. A constant: its bits. A type: see `types.rs`. A block: its function's position. A
    /// function: its end.
    pub value: Vec<u64>,
    /// Decorations: target, member, kind and position. Sorted once the types begin.
    pub decorations: Vec<u64>,
    sorted: bool,
    /// Uses: a function's position, and a function or global variable that it uses.
    pub uses: Vec<u64>,
    /// The functions' ids, and the positions of entry points and execution modes.
    pub functions: Vec<u32>,
    pub entries: Vec<u32>,
    pub modes: Vec<u32>,
    /// The declared capabilities, and the positions of the extensions.
    pub capabilities: Vec<u32>,
    pub extensions: Vec<u32>,
    /// The declared capabilities that `types.rs` needs, as bits.
    pub has: u32,
    /// The specialization constants that are set, with their values.
    pub specialization: &'a [(u32, u64)],
    /// The instruction under check: its position and its end.
    pub at: u32,
    pub end: u32,
    /// The position of the first function.
    pub body: u32,
    /// The function under check (0 outside), its type, the index of its next parameter, and its blocks.
    pub function: u32,
    pub signature: u32,
    pub parameter: u32,
    pub blocks: Blocks,
    /// The fault that was found, and the id or number that the error names.
    pub wrong: Wrong,
    pub about: u32,
}

/// Returns the section of the module's layout that an opcode belongs to. 0 if it may come anywhere from the types on.
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

/// Returns how many words of result come before the operands.
pub(super) fn operands_of(pattern: &Pattern) -> u32 {
    if pattern[1] == b'R' { 2 } else { u32::from(matches!(pattern[0], b'r' | b'0')) }
}

impl<'a> Checker<'a> {
    /// Makes a checker for words that start with a header.
    pub fn new(words: &'a [u32], specialization: &'a [(u32, u64)]) -> Checker<'a> {
        let ids = words[3].min(MOST_IDS + 1) as usize;
        Checker {
            words,
            define: vec![0; ids],
            value: vec![0; ids],
            decorations: Vec::new(),
            sorted: false,
            uses: Vec::new(),
            functions: Vec::new(),
            entries: Vec::new(),
            modes: Vec::new(),
            capabilities: Vec::new(),
            extensions: Vec::new(),
            has: 0,
            specialization,
            at: 0,
            end: 5,
            body: u32::MAX,
            function: 0,
            signature: 0,
            parameter: 0,
            blocks: Blocks::default(),
            wrong: Wrong::Nothing,
            about: words[3],
        }
    }

    /// Checks the whole module.
    pub fn check(&mut self) -> Result<()> {
        let good = (1..=MOST_IDS).contains(&self.about) && self.outline() && self.all();
        if good { Ok(()) } else { Err(self.error()) }
    }

    /// Makes the error of the fault that was found.
    #[cold]
    pub fn error(&self) -> Error {
        let text = match self.wrong {
            Wrong::Nothing if self.at == 0 => "the header has an impossible bound of ids:",
            Wrong::Nothing => "its operands don't fit the instruction or each other; the last one checked is",
            Wrong::Length => "its length in words can't be",
            Wrong::Opcode => refused(self.about),
            Wrong::Order => "it is out of order in the module or the function, at section",
            Wrong::Again => "its result is not below the bound of ids, or is defined twice:",
            Wrong::Undefined => "nothing defines id",
            Wrong::Early => "some path to here does not define id",
            Wrong::Interface => "the entry point can't run, because of id",
        };
        let (at, opcode) = (self.at, self.word(self.at) & 0xffff);
        Error::formatted(
            Status::InvalidKernel,
            format_args!("SPIR-V word {at}, instruction {opcode}: {text} {}", self.about),
        )
    }

    #[inline(never)]
    pub fn no(&mut self, wrong: Wrong, about: u32) -> bool {
        (self.wrong, self.about) = (wrong, about);
        false
    }

    /// Returns a word of the module; 0 outside.
    #[inline(never)]
    pub fn word(&self, at: u32) -> u32 {
        self.words.get(at as usize).copied().unwrap_or(0)
    }

    /// Returns the position of an id's definition; 0 without one.
    #[inline(never)]
    pub fn place(&self, id: u32) -> u32 {
        self.define.get(id as usize).copied().unwrap_or(0)
    }

    /// Returns the opcode that defines an id; 0 without one.
    #[inline(never)]
    pub fn opcode(&self, id: u32) -> u32 {
        let place = self.place(id);
        if place == 0 { 0 } else { self.word(place) & 0xffff }
    }

    /// Returns a word of the instruction that defines an id.
    #[inline(never)]
    pub fn part(&self, id: u32, index: u32) -> u32 {
        self.word(self.place(id) + index)
    }

    /// Returns the number of words of the instruction that defines an id.
    pub fn length(&self, id: u32) -> u32 {
        self.part(id, 0) >> 16
    }

    /// Returns what is known of an id.
    #[inline(never)]
    pub fn known(&self, id: u32) -> u64 {
        self.value.get(id as usize).copied().unwrap_or(0)
    }

    #[inline(never)]
    pub fn learn(&mut self, id: u32, value: u64) {
        if let Some(known) = self.value.get_mut(id as usize) {
            *known = value;
        }
    }

    /// Moves to the next instruction. False at the end of the module, and if the instruction is cut off.
    pub fn next(&mut self) -> bool {
        self.at = self.end;
        let (length, rest) = (self.word(self.at) >> 16, self.words.len() as u32 - self.at);
        self.end += length;
        rest > 0 && ((1..=rest).contains(&length) || self.no(Wrong::Length, length))
    }

    /// The first pass: lengths, the order of instructions, blocks, and where ids are defined.
    fn outline(&mut self) -> bool {
        const OUTSIDE: u32 = 0;
        const PARAMETERS: u32 = 1;
        const BLOCKS: u32 = 2;
        const BLOCK: u32 = 3;
        let (mut stage, mut nest) = (1, OUTSIDE);
        while self.next() {
            let opcode = self.word(self.at) & 0xffff;
            let (pattern, length) = (pattern(opcode), self.end - self.at);
            if pattern[0] == 0 {
                return self.no(Wrong::Opcode, opcode);
            }
            let least = pattern.iter().take_while(|&&letter| !matches!(letter, 0 | b'0' | b'?' | b'!')).count();
            if length as usize <= least {
                return self.no(Wrong::Length, length);
            }

            let place = match section(opcode) {
                0 => stage.max(TYPES),
                place => place,
            };
            // There is exactly one memory model.
            let mut good = place >= stage && (place == 4) == (stage < 4 && place >= 4);
            stage = place;
            if place == FUNCTIONS {
                self.body = self.body.min(self.at);
                let before = nest;
                nest = match opcode {
                    8 | 317 => before,
                    54 => PARAMETERS,
                    55 => PARAMETERS,
                    56 => OUTSIDE,
                    248 => BLOCK,
                    249..=255 => BLOCKS,
                    _ => BLOCK,
                };
                good &= match opcode {
                    8 | 317 => true,
                    54 => before == OUTSIDE,
                    55 => before == PARAMETERS,
                    56 => before == BLOCKS,
                    248 => matches!(before, PARAMETERS | BLOCKS),
                    _ => before == BLOCK,
                };
            }
            if !good {
                return self.no(Wrong::Order, stage);
            }

            let result = match operands_of(&pattern) {
                2 => self.word(self.at + 2),
                _ if pattern[0] == b'r' => self.word(self.at + 1),
                _ => 0,
            };
            if result != 0 || pattern[1] == b'R' || pattern[0] == b'r' {
                match self.define.get_mut(result as usize) {
                    Some(place @ 0) if result != 0 => *place = self.at,
                    _ => return self.no(Wrong::Again, result),
                }
            }
            match opcode {
                54 => {
                    self.function = self.at;
                    self.functions.push(result);
                }
                // The end of the function, which phis and `read_blocks` need.
                56 => self.learn(self.word(self.function + 2), self.at.into()),
                248 => self.learn(result, self.function.into()),
                _ => {}
            }
        }
        self.function = 0;
        let whole = nest == OUTSIDE && stage >= 5;
        self.wrong == Wrong::Nothing && (whole || self.no(Wrong::Order, stage))
    }

    /// The second pass: types and operands.
    fn all(&mut self) -> bool {
        self.end = 5;
        while self.next() {
            let opcode = self.word(self.at) & 0xffff;
            let pattern = pattern(opcode);
            if !self.sorted && section(opcode) == TYPES {
                sort(&mut self.decorations);
                self.sorted = true;
            }
            let of = self.word(self.at + 1);
            let typed = pattern[1] != b'R' || self.is_type(of);
            self.about = of;
            let operands = if pattern[0] == b'0' { 1 } else { 1 + operands_of(&pattern) };
            if !typed || !self.operands(opcode, self.at + operands) {
                return false;
            }
        }
        true
    }

    /// Checks that an id is defined on every path to this instruction, and not in another function.
    fn before(&mut self, id: u32) -> bool {
        let place = self.place(id);
        if place == 0 {
            return self.no(Wrong::Undefined, id);
        }
        let local = place >= self.function && self.blocks.reaches(place, self.at);
        place < self.at && (place < self.body || local) || self.no(Wrong::Early, id)
    }

    /// Checks that an id is a type that is defined before this instruction.
    pub fn is_type(&mut self, id: u32) -> bool {
        self.before(id) && matches!(self.opcode(id), 19..=33 | COOPERATIVE)
    }

    /// Returns the type of a value that is defined before this instruction; 0 if there is none.
    pub fn value(&mut self, id: u32) -> u32 {
        self.about = id;
        if !self.before(id) {
            return 0;
        }
        if self.function != 0 && self.opcode(id) == 59 && self.place(id) < self.body {
            self.uses.push(u64::from(self.function) << 32 | u64::from(id));
        }
        self.type_of(id)
    }

    /// Returns the type of a value, wherever it is defined; 0 if there is none.
    pub fn type_of(&self, id: u32) -> u32 {
        let (opcode, of) = (self.opcode(id), self.part(id, 1));
        let typed = pattern(opcode)[1] == b'R' && opcode != 54 && self.opcode(of) != 19;
        if self.place(id) != 0 && typed { of } else { 0 }
    }

    /// Returns the type that a pointer points to, and its storage class; 0 for other values.
    pub fn pointer(&mut self, id: u32) -> (u32, u32) {
        let of = self.value(id);
        if self.opcode(of) == 32 { (self.part(of, 3), self.part(of, 2)) } else { (0, 0) }
    }

    /// Checks that an id is a block of this function. Only `first` allows the first block.
    pub fn label(&mut self, id: u32, first: bool) -> bool {
        let here = self.opcode(id) == 248 && self.known(id) == u64::from(self.function);
        self.about = id;
        here && (first || self.blocks.number(self.place(id)) != Some(0))
    }

    /// Returns the end of the text that starts at a word; 0 if the text does not end.
    pub fn text(&self, from: u32) -> u32 {
        let last = (from..self.end).find(|&at| self.word(at).to_le_bytes().contains(&0));
        last.map_or(0, |last| last + 1)
    }
}
