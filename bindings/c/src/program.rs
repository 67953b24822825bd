//! Programs: decoded or assembled, validated, and run with tensors that are bound to their slots by name.

use crate::call::asked;
use crate::context::adead_context;
use crate::outcome::{adead_outcome, outcome};
use crate::pointers::{self, Out, array, fail, growing, null, reference, report, text};
use crate::status::{adead_status, guard, guard_destroy};
use crate::tensor::{ADEAD_MAX_RANK, adead_dtype, adead_tensor};
use adead_c_support::c_text;
use adead_core::Result;
use adead_core::program::{Format, Program, RunOptions};
use std::ffi::{CString, c_char, c_void};
use std::sync::OnceLock;

/// The format that a program has or was decoded from, one of `ADEAD_FORMAT_…`.
pub type adead_format = i32;

/// The direction of a slot's contents, one of `ADEAD_DIRECTION_…`.
pub type adead_direction = i32;

/// A decoded program. It never changes, so threads may share one.
pub struct adead_program {
    program: Program,
    slot_names: Vec<CString>,
    notes: Vec<CString>,
    /// Each format's bytes and a NUL, encoded on first use.
    encoded: [OnceLock<Vec<u8>>; FORMATS.len()],
}

const FORMATS: [Format; 5] = [Format::Adead, Format::Agpu, Format::Hex, Format::Ahyb, Format::Text];

/// A named input or output of a program. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_slot {
    /// `sizeof(adead_slot)`.
    pub struct_size: usize,
    /// The tensor's name; for AGPU programs the host address as text, such as "0x1000". It belongs to the program.
    pub name: *const c_char,
    /// Bytes of its contents.
    pub bytes: usize,
    /// The direction of its contents.
    pub direction: adead_direction,
    /// The type of its elements.
    pub dtype: adead_dtype,
    /// Not 0: a tensor bound to it must have exactly this dtype and shape. 0: it must only have this many bytes.
    pub typed: i32,
    /// Not 0: the caller must bind a tensor to it.
    pub required: i32,
    /// The number of dimensions.
    pub rank: usize,
    /// The dimensions.
    pub dims: [usize; ADEAD_MAX_RANK],
}

// SAFETY: as `Growing` requires; it is only written.
growing!(unsafe adead_slot, 112);

/// How to run a program. Start from `ADEAD_RUN_OPTIONS_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_run_options {
    /// `sizeof(adead_run_options)`.
    pub struct_size: usize,
    /// The most bytes that registers, temporaries and outputs may take at the same time.
    pub memory_limit: usize,
    /// Not 0: independent instructions may run at the same time. The results are the same.
    pub parallel: i32,
    /// Always 0.
    pub reserved: i32,
}

// SAFETY: as `Growing` requires.
growing!(unsafe adead_run_options, 24);

fn handle(program: Program) -> adead_program {
    adead_program {
        slot_names: program.slots().iter().map(|slot| c_text(&slot.name)).collect(),
        notes: program.report().iter().map(|note| c_text(note)).collect(),
        encoded: [const { OnceLock::new() }; FORMATS.len()],
        program,
    }
}

impl adead_program {
    fn encode(&self, format: adead_format) -> Result<&Vec<u8>> {
        let known = FORMATS.into_iter().zip(&self.encoded).find(|(known, _)| *known as adead_format == format);
        let Some((format, cell)) = known else {
            fail!(InvalidArgument, "format is {format}; it must be one of ADEAD_FORMAT_…");
        };
        if let Some(bytes) = cell.get() {
            return Ok(bytes);
        }
        let mut bytes = match format {
            Format::Adead => self.program.encode(),
            Format::Agpu => self.program.encode_agpu()?,
            Format::Hex => self.program.encode_hex()?.into_bytes(),
            Format::Text => self.program.disassemble().into_bytes(),
            Format::Ahyb => fail!(Unsupported, "AHYB files are read, not written; use ADEAD_FORMAT_AGPU"),
        };
        bytes.push(0);
        Ok(cell.get_or_init(|| bytes))
    }
}

/// Decodes an .adead file, an AGPU binary, an AHYB file, .hex text or program text. The bytes determine the format.
/// `invalid_program` reports the offset at which they are malformed. `adead_program_validate` checks the meaning of
/// instructions. docs/program-format.md specifies the formats.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_program_decode(
    data: *const c_void,
    bytes: usize,
    out: *mut *mut adead_program,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (out, data) = unsafe { (Out::new(out, "out")?, array(data.cast::<u8>(), bytes, "data")?) };
        out.give(handle(Program::decode(data)?));
        Ok(())
    })
}

/// Decodes a file. `io` if it can't be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_program_load(path: *const c_char, out: *mut *mut adead_program) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (out, path) = unsafe { (Out::new(out, "out")?, text(path, "path")?) };
        out.give(handle(Program::load(path.as_ref())?));
        Ok(())
    })
}

/// Assembles program text, ".adead 1" or ".agpu 1". `invalid_program` reports the malformed line.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_program_assemble(source: *const c_char, out: *mut *mut adead_program) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (out, source) = unsafe { (Out::new(out, "out")?, text(source, "source")?) };
        out.give(handle(Program::assemble(source)?));
        Ok(())
    })
}

/// Destroys a program; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_program_destroy(program: *mut adead_program) {
    guard_destroy(program);
}

/// Returns the format that the program was decoded from.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_program_format(program: *const adead_program, out: *mut adead_format) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(program, "program", out, |program| Ok(program.program.format() as adead_format)) }
}

/// Returns the number of instructions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_program_length(program: *const adead_program, out: *mut usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(program, "program", out, |program| Ok(program.program.len())) }
}

/// Encodes the program as a file of `format`: .adead, AGPU, .hex or text. The `out_bytes` bytes at `out_data` are
/// followed by a NUL, and live as long as the program. `unsupported` if the format can't express the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_program_encode(
    program: *const adead_program,
    format: adead_format,
    out_data: *mut *const c_void,
    out_bytes: *mut usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (program, data, size) = unsafe {
            (reference(program, "program")?, Out::new(out_data, "out_data")?, Out::new(out_bytes, "out_bytes")?)
        };
        let bytes = program.encode(format)?;
        data.write(bytes.as_ptr().cast());
        size.write(bytes.len() - 1);
        Ok(())
    })
}

/// Returns the program as text, which `adead_program_assemble` turns back into this program. The text lives as long as
/// the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_program_disassemble(
    program: *const adead_program,
    out: *mut *const c_char,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        asked(program, "program", out, |program| Ok(program.encode(Format::Text as adead_format)?.as_ptr().cast()))
    }
}

/// Returns the number of notes on the program, such as skipped parts and opcodes that do nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_program_note_count(program: *const adead_program, out: *mut usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(program, "program", out, |program| Ok(program.notes.len())) }
}

/// Returns note `index`. The text lives as long as the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_program_note_at(
    program: *const adead_program,
    index: usize,
    out: *mut *const c_char,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (program, out) = unsafe { (reference(program, "program")?, Out::new(out, "out")?) };
        match program.notes.get(index) {
            Some(note) => out.write(note.as_ptr()),
            None => fail!(InvalidArgument, "index is {index}; the program has {} notes", program.notes.len()),
        }
        Ok(())
    })
}

/// Returns the number of named inputs and outputs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_program_slot_count(program: *const adead_program, out: *mut usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(program, "program", out, |program| Ok(program.program.slots().len())) }
}

/// Describes input or output `index`. The caller sets `out->struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_program_slot_at(
    program: *const adead_program,
    index: usize,
    out: *mut adead_slot,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let program = reference(program, "program")?;
            report(out, "out", |struct_size| {
                let slots = program.program.slots();
                let Some(slot) = slots.get(index) else {
                    fail!(InvalidArgument, "index is {index}; the program has {} slots", slots.len());
                };
                let shape = slot.meta.shape;
                let mut dims = [1; ADEAD_MAX_RANK];
                dims[..shape.rank()].copy_from_slice(shape.dims());
                Ok(adead_slot {
                    struct_size,
                    name: program.slot_names[index].as_ptr(),
                    bytes: slot.bytes,
                    direction: slot.direction as adead_direction,
                    dtype: slot.meta.dtype as adead_dtype,
                    typed: slot.typed.into(),
                    required: slot.required.into(),
                    rank: shape.rank(),
                    dims,
                })
            })
        }
    })
}

/// Checks the program as far as is possible without data. Returns the most bytes that registers, temporaries and
/// outputs take at the same time. `memory_limit` 0 is the default limit. `invalid_program` reports the offset or line;
/// `out_of_memory` if the program needs more than the limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_program_validate(
    program: *const adead_program,
    memory_limit: usize,
    out: *mut usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (program, out) = unsafe { (reference(program, "program")?, Out::new(out, "out")?) };
        let limit = if memory_limit == 0 { RunOptions::default().memory_limit } else { memory_limit };
        out.write(program.program.validate(limit)?.memory());
        Ok(())
    })
}

/// Validates a program, binds `count` tensors to its slots by name, and runs it. `options` may be NULL. On an error
/// there is no outcome, and no data of the caller has changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_program_run(
    context: *const adead_context,
    program: *const adead_program,
    names: *const *const c_char,
    tensors: *const *const adead_tensor,
    count: usize,
    options: *const adead_run_options,
    out: *mut *mut adead_outcome,
) -> adead_status {
    guard(|| {
        let RunOptions { memory_limit, parallel, .. } = RunOptions::default();
        let defaults = adead_run_options { struct_size: 0, memory_limit, parallel: parallel.into(), reserved: 0 };
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let (context, program) = (reference(context, "context")?, reference(program, "program")?);
            let (options, out) = (pointers::options(options, defaults)?, Out::new(out, "out")?);
            if options.reserved != 0 {
                fail!(Unsupported, "reserved of adead_run_options is {}; it must be 0", options.reserved);
            }
            let mut run = RunOptions::new().memory_limit(options.memory_limit).parallel(options.parallel != 0);
            let (names, tensors) = (array(names, count, "names")?, array(tensors, count, "tensors")?);
            for (i, (&name, tensor)) in names.iter().zip(tensors).enumerate() {
                let Some(tensor) = tensor.as_ref() else { return Err(null(&format!("tensors[{i}]"))) };
                run = run.input(text(name, &format!("names[{i}]"))?, tensor.0.clone());
            }
            out.give(outcome(program.program.run(&context.0, &run)?));
        }
        Ok(())
    })
}
