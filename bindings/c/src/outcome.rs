//! The outcome of a program's run.

use crate::call::asked;
use crate::pointers::{Out, fail, fixed, growing, reference, report, text};
use crate::status::{adead_status, guard, guard_destroy};
use crate::tensor::adead_tensor;
use adead_core::program::Outcome;
use std::ffi::{CString, c_char};

/// The outcome of a program's run: its outputs and its statistics.
pub struct adead_outcome {
    outcome: Outcome,
    names: Vec<CString>,
}

/// Statistics of a run. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_outcome_stats {
    /// `sizeof(adead_outcome_stats)`.
    pub struct_size: usize,
    /// The number of instructions that ran.
    pub instructions: usize,
    /// The most bytes that registers, temporaries and outputs took at the same time.
    pub memory: usize,
    /// Floating-point operations; a multiply-add counts as two.
    pub flops: f64,
    /// Seconds from the start of the first instruction to the end of the last.
    pub seconds: f64,
}

// SAFETY: as `Growing` requires.
growing!(unsafe adead_outcome_stats, 40);

/// Statistics of one instruction in a run. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_trace {
    /// `sizeof(adead_trace)`.
    pub struct_size: usize,
    /// Its index in the program.
    pub instruction: usize,
    /// Seconds that it took.
    pub seconds: f64,
    /// Floating-point operations; a multiply-add counts as two.
    pub flops: f64,
    /// Bytes read and written, counting each operand once.
    pub bytes: f64,
    /// Its name.
    pub name: [c_char; 32],
    /// The device that it ran on.
    pub device: [c_char; 32],
}

// SAFETY: as `Growing` requires.
growing!(unsafe adead_trace, 104);

pub(crate) fn outcome(outcome: Outcome) -> adead_outcome {
    let names = outcome.outputs.iter().map(|(name, _)| CString::new(name.as_str()).unwrap_or_default()).collect();
    adead_outcome { outcome, names }
}

/// Destroys an outcome; NULL is allowed. Tensors taken from it stay valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_outcome_destroy(outcome: *mut adead_outcome) {
    guard_destroy(outcome);
}

/// Returns the output with a name, as a new handle that the caller must destroy. `invalid_argument` if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_outcome_output(
    outcome: *const adead_outcome,
    name: *const c_char,
    out: *mut *mut adead_tensor,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (outcome, name, out) =
            unsafe { (reference(outcome, "outcome")?, text(name, "name")?, Out::new(out, "out")?) };
        match outcome.outcome.output(name) {
            Some(tensor) => out.give(adead_tensor(tensor.clone())),
            None => {
                let names: Vec<_> = outcome.outcome.outputs.iter().map(|(name, _)| name.as_str()).collect();
                fail!(InvalidArgument, "no output '{name}': the outputs are {}", names.join(", "))
            }
        }
        Ok(())
    })
}

/// Returns the number of outputs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_outcome_output_count(outcome: *const adead_outcome, out: *mut usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(outcome, "outcome", out, |outcome| Ok(outcome.names.len())) }
}

/// Returns the name of output `index`, in the order of the program's slots. The text lives as long as the outcome.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_outcome_output_name(
    outcome: *const adead_outcome,
    index: usize,
    out: *mut *const c_char,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (outcome, out) = unsafe { (reference(outcome, "outcome")?, Out::new(out, "out")?) };
        match outcome.names.get(index) {
            Some(name) => out.write(name.as_ptr()),
            None => fail!(InvalidArgument, "index is {index}; there are {} outputs", outcome.names.len()),
        }
        Ok(())
    })
}

/// Reports the statistics of the run. The caller sets `out->struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_outcome_report(
    outcome: *const adead_outcome,
    out: *mut adead_outcome_stats,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let outcome = &reference(outcome, "outcome")?.outcome;
            report(out, "out", |struct_size| {
                Ok(adead_outcome_stats {
                    struct_size,
                    instructions: outcome.instructions,
                    memory: outcome.memory,
                    flops: outcome.flops,
                    seconds: outcome.seconds,
                })
            })
        }
    })
}

/// Returns the number of traced instructions. Every instruction of the program is traced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_outcome_trace_count(outcome: *const adead_outcome, out: *mut usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(outcome, "outcome", out, |outcome| Ok(outcome.outcome.trace.len())) }
}

/// Reports the statistics of instruction `index`. The caller sets `out->struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_outcome_trace_at(
    outcome: *const adead_outcome,
    index: usize,
    out: *mut adead_trace,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let traces = &reference(outcome, "outcome")?.outcome.trace;
            report(out, "out", |struct_size| match traces.get(index) {
                Some(trace) => Ok(adead_trace {
                    struct_size,
                    instruction: trace.instruction,
                    seconds: trace.seconds,
                    flops: trace.flops,
                    bytes: trace.bytes,
                    name: fixed(&trace.name),
                    device: fixed(&trace.device),
                }),
                None => fail!(InvalidArgument, "index is {index}; there are {} instructions", traces.len()),
            })
        }
    })
}
