// A checked command, its operands' descriptions and views can't be changed.
#![forbid(unsafe_code)]

use adead::{Command, Op, Shape};

fn change(command: &mut Command<'_>, mut shape: Shape) {
    command.op = Op::Exp;
    shape.elements = 4;
}

fn main() {}
