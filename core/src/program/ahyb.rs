//! AHYB, the hybrid container: CPU machine code (never executed), an AGPU program, data, symbols.

use super::agpu;
use super::code::Code;
use super::fault::{Reader, invalid};
use crate::error::Result;

/// The first bytes of an AHYB file.
pub(super) const MAGIC: &[u8] = b"AHYB";

/// The size of a symbol in bytes: a name of 32, then a u32.
const SYMBOL: u64 = 36;

/// A name that an AHYB file gives to a number. The format does not define what the number means, so nothing is bound through it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The name.
    pub name: String,
    /// The number.
    pub value: u32,
}

/// Returns the AGPU program in the file, its symbols, and notes on the parts that were skipped.
pub(super) fn decode(bytes: &[u8]) -> Result<(Code, Vec<Symbol>, Vec<String>)> {
    let mut reader = Reader::new(bytes, 0);
    reader.take(4, "the magic")?;
    reader.version("AHYB")?;
    let flags = reader.u16("the flags")?;
    let cpu = reader.u32("the size of the CPU code")?;
    let gpu = reader.u32("the size of the GPU code")?;
    let data = reader.u32("the size of the data")?;
    let count = reader.u32("the symbol count")?;

    let mut notes = Vec::new();
    reader.take(cpu.into(), "the CPU section")?;
    if cpu > 0 {
        notes.push(format!("CPU section of {cpu} bytes skipped: machine code is never executed"));
    }
    let base = reader.offset();
    let section = reader.take(gpu.into(), "the GPU section")?;
    let code = if gpu > 0 { agpu::decode(section, base)? } else { Code::default() };
    if gpu == 0 {
        notes.push("there is no GPU section: nothing runs".into());
    }
    reader.take(data.into(), "the data section")?;
    if data > 0 {
        notes.push(format!("data section of {data} bytes skipped: no opcode refers to it"));
    }
    if flags != 0 {
        notes.push(format!("flags {flags:#06x} ignored: the format gives them no meaning"));
    }

    let at = reader.here();
    if u64::from(count) * SYMBOL > reader.left() as u64 {
        return Err(invalid(
            at,
            format_args!(
                "truncated: {count} symbols take {} bytes and {} are left",
                u64::from(count) * SYMBOL,
                reader.left()
            ),
        ));
    }
    let mut symbols = Vec::with_capacity(count as usize);
    for i in 0..count {
        let at = reader.here();
        let field = reader.take(32, "a symbol's name")?;
        let name = field.split(|&byte| byte == 0).next().unwrap_or_default();
        if name.is_empty() || !name.iter().all(u8::is_ascii_graphic) {
            return Err(invalid(
                at,
                format_args!(
                    "symbol {i} is named '{}': a name is 1 to 32 printable ASCII characters without spaces",
                    name.escape_ascii()
                ),
            ));
        }
        let name = String::from_utf8_lossy(name).into_owned();
        symbols.push(Symbol { name, value: reader.u32("a symbol's value")? });
    }
    reader.finish(&format!("the {count} symbols"))?;
    Ok((code, symbols, notes))
}
