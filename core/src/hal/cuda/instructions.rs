//! The packed form of machine code. An instruction has 16 bytes. Three of them are mostly registers; the form has their differences to
//! those of the last instruction with the same opcode. Every instruction is reversed: then the bytes that are rarely equal come last.
//! It packs to 4 % less. `core/build.rs` includes this file too, to write the form and to check that it reads back.

const LENGTH: usize = 16;

/// The bytes with registers: of the result and of two operands.
type Registers = [u8; 3];

/// The last registers of each opcode.
struct Last(Vec<Registers>);

impl Last {
    fn new() -> Last {
        Last(vec![[0; 3]; 1 << 12])
    }

    /// Returns an instruction's registers, and the last ones of its opcode, the lowest twelve bits.
    fn of<'a>(&'a mut self, instruction: &'a mut [u8; LENGTH]) -> impl Iterator<Item = (&'a mut u8, &'a mut u8)> {
        let opcode = u16::from_le_bytes([instruction[0], instruction[1]]) & 0xfff;
        instruction[2..5].iter_mut().zip(&mut self.0[usize::from(opcode)])
    }
}

/// Brings code into the packed form. A rest that is no whole instruction stays.
#[allow(dead_code)] // core/build.rs packs.
pub fn pack(code: &mut [u8]) {
    let mut last = Last::new();
    for instruction in code.as_chunks_mut().0 {
        for (register, last) in last.of(instruction) {
            (*register, *last) = (register.wrapping_sub(*last), *register);
        }
        instruction.reverse();
    }
}

/// Restores code from the packed form.
pub fn unpack(code: &mut [u8]) {
    let mut last = Last::new();
    for instruction in code.as_chunks_mut().0 {
        instruction.reverse();
        for (register, last) in last.of(instruction) {
            *register = register.wrapping_add(*last);
            *last = *register;
        }
    }
}
