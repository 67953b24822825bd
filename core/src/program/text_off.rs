//! Programs in a build without the text form: text is refused, and errors name an instruction without its operands.

use super::Format;
use super::code::{Code, Instruction};
use super::fault::{Where, invalid};
use crate::error::{Result, fail};

/// Returns the error for bytes that are no binary format.
pub(super) fn decode(bytes: &[u8]) -> Result<(Code, Format)> {
    if std::str::from_utf8(bytes).is_ok_and(|text| !text.trim().is_empty()) {
        assemble(bytes)?;
    }
    let text = "not a recognised program: .adead, AGPU and AHYB files begin with their names";
    Err(invalid(Where::Byte(0), format_args!("{text}")))
}

/// Refuses program text as unsupported.
pub(super) fn assemble(_: &[u8]) -> Result<Code> {
    fail!(
        Unsupported,
        "this is a minimal build of adead, which reads no program text: build it without ADEAD_MINIMAL (cargo: with the feature text), \
         or have another build write the program as a binary file"
    )
}

/// The name of an instruction.
pub(super) fn line(_: &Code, _: bool, instruction: &Instruction) -> String {
    instruction.name()
}

#[cfg(test)]
mod tests {
    use crate::Status;
    use crate::program::Program;

    #[test]
    fn text_is_refused_with_what_to_do() {
        for text in [".adead 1\nhalt", "; a comment\n.agpu 1\nend", "0000: FF"] {
            let error = Program::decode(text.as_bytes()).unwrap_err();
            assert_eq!(error.status(), Status::Unsupported);
            assert!(error.message().contains("with the feature text"), "{error}");
        }
        for bytes in [&b""[..], b" \n", &[0xff; 40]] {
            assert_eq!(Program::decode(bytes).unwrap_err().status(), Status::InvalidProgram);
        }
    }
}
