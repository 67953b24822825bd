//! An instruction's operands, compared with the pattern of its opcode.

use super::check::{Checker, Wrong, operands_of};
use super::grammar::{GLSL, pattern};
use super::types::{BOOL, CLASS, COUNT, FLOAT, FORWARD, INTEGER, POINTER, WIDTH};

impl Checker<'_> {
    /// Checks the operands from the word `first` by the opcode's pattern, and then by its rules.
    pub fn operands(&mut self, opcode: u32, first: u32) -> bool {
        let pattern = pattern(opcode);
        let of = if first > self.at + 2 { self.word(self.at + 1) } else { 0 };
        let result = self.shape(of);
        let mut letters = operands_of(&pattern) as usize;
        if pattern[0] == 0 || letters == 2 && !self.fits(pattern[0], of, result, 0, 0) {
            return false;
        }
        let (mut next, mut previous) = (first, 0);
        loop {
            let mut letter = pattern.get(letters).copied().unwrap_or(0);
            if matches!(letter, b'?' | b'*') && next == self.end || matches!(letter, 0 | b'!') {
                break;
            }
            letters += 1;
            if letter == b'?' {
                continue;
            }
            if letter == b'*' {
                letters -= 1;
                letter = pattern[letters - 1];
            }
            let word = self.word(next);
            if next >= self.end {
                return self.no(Wrong::Length, self.end - self.at);
            }
            next += 1;
            let good = match letter {
                b'd' => true,
                b'n' => {
                    next = self.text(next - 1);
                    next != 0
                }
                b'x' => self.place(word) != 0 || self.no(Wrong::Undefined, word),
                b'l' => self.label(word, false),
                // A structure may have a pointer that is declared but not defined yet.
                b't' => opcode == 30 && self.known(word) == FORWARD | POINTER || self.is_type(word),
                b'm' => {
                    next += word >> 1 & 1;
                    let mut good = word < 0x40;
                    for _ in 0..(word & 0x18).count_ones() {
                        let scope = self.word(next);
                        let given = self.value(scope);
                        good &= self.fits(b'e', given, 0, 0, scope);
                        next += 1;
                    }
                    good
                }
                _ => {
                    let pointer = matches!(letter, b'q' | b'p');
                    let given = if pointer { self.pointer(word).0 } else { self.value(word) };
                    let constant =
                        !matches!(letter, b'c' | b'k' | b'e' | b's') || matches!(self.opcode(word), 1 | 41..=52);
                    let good = given != 0 && constant && self.fits(letter, given, result, previous, word);
                    let fits = match letter {
                        b'=' | b'p' => given == of,
                        b'~' => given == previous,
                        b'W' => self.component(given) == of && given != of,
                        b'y' => self.component(of) == given && given != of,
                        _ => true,
                    };
                    previous = given;
                    good && fits
                }
            };
            if !good {
                if self.wrong == Wrong::Nothing {
                    self.about = word;
                }
                return false;
            }
        }
        let rest = pattern.get(letters) == Some(&b'!');
        if next > self.end || !rest && next != self.end {
            return self.no(Wrong::Length, self.end - self.at);
        }
        self.about = of;
        if opcode & GLSL != 0 { self.extended(opcode & !GLSL, first, of) } else { self.rules(opcode, first, of) }
    }

    /// Returns whether a type fits a letter, given the result's shape and the type of the previous operand.
    fn fits(&self, letter: u8, of: u32, result: u32, previous: u32, id: u32) -> bool {
        let shape = self.shape(of);
        let value = self.known(id);
        let (want, mask) = match letter {
            b'F' => (FLOAT, CLASS),
            b'I' => (INTEGER, CLASS),
            b'B' => (BOOL, CLASS),
            b'U' => (INTEGER | 32 << 8 | 1, !0),
            b'1' => (BOOL | 1, CLASS | COUNT),
            b'2' => (FLOAT | 2, CLASS | COUNT),
            b'4' => (FLOAT | 4, CLASS | COUNT),
            b'f' => (FLOAT | result & COUNT, CLASS | COUNT),
            b'i' => (INTEGER | result & COUNT, CLASS | COUNT),
            b'b' => (BOOL | result & COUNT, CLASS | COUNT),
            b'j' => (INTEGER | result & (COUNT | WIDTH), !0),
            b'u' | b'k' => (INTEGER | 1, CLASS | COUNT),
            // There are six scopes, and at most one memory order.
            b'e' if value > 6 || self.opcode(id) != 43 => return false,
            b's' if value >> 16 != 0 || (value & 0x1e).count_ones() > 1 || self.opcode(id) != 43 => return false,
            b'e' | b's' => (INTEGER | 32 << 8 | 1, !0),
            b'h' if shape == 0 => return of == previous,
            b'h' => (self.shape(previous), !0),
            b'P' => return self.opcode(of) == 32,
            _ => (0, 0),
        };
        (shape ^ want) & mask == 0
    }
}
