//! What every function of the fake driver does first: it counts the call, injects faults and looks up handles.

use super::work::{Item, Work};
use super::{Event, State, Stream, state};
use crate::hal::cuda::api::{Handle, code};
use std::ffi::{CStr, c_char, c_int};
use std::ptr::without_provenance_mut;
use std::slice;

/// Returns whether the floating-point environment is the default that compiled code expects: round to nearest even,
/// subnormals, no traps.
#[cfg(target_arch = "x86_64")]
fn default_environment() -> bool {
    let mut mxcsr = 0u32;
    // SAFETY: the instruction stores MXCSR to the four bytes of `mxcsr`.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack, preserves_flags)) };
    mxcsr & !0x3f == 0x1f80
}

#[cfg(not(target_arch = "x86_64"))]
fn default_environment() -> bool {
    true
}

/// Runs a function of the driver, unless an injected fault applies.
pub(super) fn call(name: &'static str, work: impl FnOnce(&mut State) -> Result<(), i32>) -> c_int {
    let mut state = state();
    let Some(state) = state.as_mut() else { return 4 };
    *state.calls.entry(name).or_default() += 1;
    if !default_environment() {
        state.violation(format!("{name} is called in another floating-point environment"));
    }
    let device = state.current();
    if let Some(fault) = state.faults.iter_mut().find(|fault| fault.function == name && fault.times > 0) {
        if fault.after > 0 {
            fault.after -= 1;
        } else {
            fault.times -= 1;
            let result = fault.result;
            if name == "capture_end" {
                // The capture ends, even if it fails.
                state.streams.values_mut().for_each(|stream| stream.captured = None);
            }
            if let (Ok(device), 700..=719) = (device, result) {
                state.devices[device].broken = result;
            }
            return result;
        }
    }
    // Contexts and devices can be used in any state. Every other call reports a broken device.
    let broken = device.map_or(0, |device| state.devices[device].broken);
    if broken != 0 && !name.starts_with("context") && !name.starts_with("device") {
        return broken;
    }
    let result = work(state).err().unwrap_or(0);
    // Work that ran during this call may have broken the device.
    match device {
        Ok(device) if result == 0 && state.devices[device].broken != broken && !name.starts_with("context") => {
            state.devices[device].broken
        }
        _ => result,
    }
}

pub(super) fn id(handle: Handle) -> usize {
    handle.addr()
}

pub(super) fn handle(id: usize) -> Handle {
    without_provenance_mut(id)
}

pub(super) const INVALID_HANDLE: i32 = 400;
const CAPTURE_UNSUPPORTED: i32 = 900;

impl State {
    pub(super) fn stream(&mut self, stream: Handle) -> Result<&mut Stream, i32> {
        let current = self.current()?;
        self.streams
            .get_mut(&id(stream))
            .filter(|stream| stream.device == current && !stream.orphan)
            .ok_or(INVALID_HANDLE)
    }

    /// Enqueues work on a stream, or adds it to the stream's capture.
    pub(super) fn enqueue(&mut self, stream: Handle, work: Work) -> Result<(), i32> {
        let stream = self.stream(stream)?;
        match &mut stream.captured {
            Some(captured) => captured.push(work),
            None => stream.queue.push_back(Item::Work(work)),
        }
        Ok(())
    }

    /// Returns an error while a stream is capturing.
    pub(super) fn not_captured(&mut self, stream: Handle) -> Result<(), i32> {
        if self.stream(stream)?.captured.is_some() { Err(CAPTURE_UNSUPPORTED) } else { Ok(()) }
    }

    pub(super) fn copy(&mut self, from: (u64, bool), to: (u64, bool), bytes: usize, stream: Handle) -> Result<(), i32> {
        let bytes = bytes as u64;
        if bytes == 0 || !self.holds(from.0, bytes, from.1) || !self.holds(to.0, bytes, to.1) {
            return Err(code::INVALID_VALUE);
        }
        self.enqueue(stream, Work::Copy { from, to, bytes })
    }

    pub(super) fn event(&mut self, event: Handle) -> Result<&mut Event, i32> {
        self.events.get_mut(&id(event)).ok_or(INVALID_HANDLE)
    }

    pub(super) fn function(&self, function: Handle) -> Result<(usize, &'static str), i32> {
        self.functions.get(&id(function)).copied().ok_or(INVALID_HANDLE)
    }
}

/// Returns the bytes of a module.
///
/// # Safety
/// `at` must point to a complete module: a text with its NUL, a cubin or a fatbin.
pub(super) unsafe fn image<'a>(at: *const u8) -> &'a [u8] {
    // SAFETY: every module has at least these bytes, and as many as its header or its NUL says.
    unsafe {
        let word = |offset: usize| at.add(offset).cast::<u64>().read_unaligned();
        match slice::from_raw_parts(at, 4) {
            b"\x7fELF" => slice::from_raw_parts(at, word(40) as usize),
            [0x50, 0xed, 0x55, 0xba] => slice::from_raw_parts(at, 16 + word(8) as usize),
            _ => CStr::from_ptr(at.cast()).to_bytes(),
        }
    }
}

pub(super) fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

pub(super) fn put_text(text: &str, to: *mut c_char, size: c_int) {
    let bytes = text.bytes().take(size.max(1) as usize - 1).chain([0]);
    for (i, byte) in bytes.enumerate() {
        // SAFETY: at most `size` bytes, which the caller's array has.
        unsafe { to.add(i).write(byte as c_char) };
    }
}
