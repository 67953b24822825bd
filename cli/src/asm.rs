//! `adead asm` and `adead disasm`.

use crate::args::{AsmArgs, DisasmArgs, Target};
use crate::failure::{Result, complain_as};
use crate::files;
use crate::source::describe;
use adead::program::Program;
use std::fmt::Write;
use std::path::Path;

/// Assembles a program. A program that could not run is not written.
pub fn assemble(args: &AsmArgs) -> Result<()> {
    let program = load(&args.program)?;
    program.validate(usize::MAX)?;
    let target = args.to.unwrap_or_else(|| match args.output.extension().and_then(|extension| extension.to_str()) {
        Some("hex") => Target::Hex,
        Some("agpu") => Target::Agpu,
        _ => Target::Adead,
    });
    let bytes = match target {
        Target::Adead => program.encode(),
        Target::Agpu => program.encode_agpu()?,
        Target::Hex => program.encode_hex()?.into_bytes(),
    };
    let written = if target == Target::Hex {
        "hex"
    } else if target == Target::Agpu {
        "agpu"
    } else {
        "adead"
    };
    // .bin does not name a format.
    if let Some(ending) = args.output.extension().filter(|ending| *ending != written && *ending != "bin") {
        let (path, ending) = (args.output.display(), ending.display());
        let known = ["adead", "agpu", "hex"].iter().any(|known| ending.to_string() == *known);
        let instead = if known { "" } else { "; choose a format with the ending .adead, .agpu or .hex, or with --to" };
        complain_as("note", format_args!("{path} has the format {written}, not {ending}{instead}"));
    }
    files::put(&args.output, &bytes, target != Target::Hex)
}

/// Disassembles a program. A program that could not run is shown too, with a warning.
pub fn disassemble(args: &DisasmArgs) -> Result<()> {
    let program = load(&args.program)?;
    if let Err(error) = program.validate(usize::MAX) {
        complain_as("warning", format_args!("the program can't run: {error}"));
    }
    let mut text = format!("; {}, {} instructions\n", program.format().name(), program.len());
    for slot in program.slots() {
        // Writing to a String can't fail.
        let _ = writeln!(text, "; {} {}: {}", slot.direction.name(), slot.name, describe(slot));
    }
    for symbol in program.symbols() {
        let _ = writeln!(text, "; symbol {} = {:#x}", symbol.name, symbol.value);
    }
    text += &program.disassemble();
    files::put(&args.output, text.as_bytes(), false)
}

/// Reads a program, with notes on stderr about parts that are skipped.
pub fn load(path: &Path) -> Result<Program> {
    let bytes = files::read(path)?;
    let program = Program::decode(&bytes)
        .map_err(|error| adead::Error::new(error.status(), format!("{}: {}", files::name(path), error.message())))?;
    for note in program.report() {
        complain_as("note", note);
    }
    Ok(program)
}
