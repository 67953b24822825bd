//! Replaces the profiler without the feature `profile`. It has the same crate-internal names, but does and stores nothing, so
//! that callers need no condition.

use crate::command::Command;
use crate::dispatch::Why;
use crate::error::Result;
use crate::hal::cpu::CpuDevice;
use crate::hal::{Device, Stream};
use crate::operand::{Meta, View};
use crate::ops::{Attrs, Cost, Op};
use std::marker::PhantomData;
use std::sync::Arc;

/// The disabled profiler.
#[derive(Clone, Default)]
pub(crate) struct Profiler(());

/// The handle that a context shares with its devices.
pub(crate) type ProfilerHandle = Profiler;

impl Profiler {
    /// Returns whether a profile is running: never.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        false
    }

    /// Returns a number for a new stream.
    #[inline(always)]
    pub fn number_stream(&self) -> usize {
        0
    }

    /// Executes a command on the CPU.
    #[inline(always)]
    pub fn execute(&self, cpu: &CpuDevice, command: &mut Command<'_>, _: Reason) -> Result<()> {
        cpu.execute(command)
    }

    /// Runs work of several operations on the CPU.
    #[inline(always)]
    pub fn perform(
        &self,
        _: &CpuDevice,
        _: Reason,
        _: &dyn Fn() -> Described,
        work: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        work()
    }
}

/// The description of several operations that run as one.
#[derive(Default)]
#[allow(dead_code)] // the same fields as the profiler's
pub(crate) struct Described {
    pub name: String,
    pub operands: String,
    pub cost: Cost,
}

/// The kind of work.
pub(crate) enum Activity {
    Upload,
    Download,
    Copy,
    Clear,
}

/// Why work runs where it does. A zero-sized struct, so that the disabled profiler adds no field.
#[derive(Clone, Copy)]
pub(crate) struct Reason;

#[allow(non_upper_case_globals, non_snake_case)] // the same names as the profiler's variants
impl Reason {
    pub const Operands: Reason = Reason;
    pub const Packed: Reason = Reason;
    pub const Stream: Reason = Reason;
    pub const Split: Reason = Reason;
    pub const Fallback: Reason = Reason;

    #[inline(always)]
    pub fn Chosen(_: Why) -> Reason {
        Reason
    }
}

/// The description of a piece of work.
pub(crate) struct What<'a>(PhantomData<&'a ()>);

impl<'a> What<'a> {
    #[inline(always)]
    pub fn command(_: &'a Command<'_>, _: Reason) -> What<'a> {
        What(PhantomData)
    }

    #[inline(always)]
    pub fn operation(_: Op, _: &Attrs, _: &[Option<View<'_>>], _: &Meta, _: Reason) -> What<'a> {
        What(PhantomData)
    }

    #[inline(always)]
    pub fn step(_: &'a Described, _: Reason) -> What<'a> {
        What(PhantomData)
    }

    #[inline(always)]
    pub fn bytes(_: Activity, _: usize, _: &str, _: Reason) -> What<'a> {
        What(PhantomData)
    }

    #[inline(always)]
    pub fn kernel(_: &str, _: [u32; 3], _: Reason) -> What<'a> {
        What(PhantomData)
    }

    #[inline(always)]
    pub fn replay() -> What<'a> {
        What(PhantomData)
    }
}

/// A watch over the work of a stream.
pub(crate) struct Watch<'a>(PhantomData<&'a ProfilerHandle>);

impl<'a> Watch<'a> {
    #[inline(always)]
    pub fn nothing() -> Watch<'a> {
        Watch(PhantomData)
    }

    #[inline(always)]
    pub fn begin(_: &'a ProfilerHandle, _: &'a Arc<dyn Device>, _: usize, _: &mut dyn Stream) -> Watch<'a> {
        Watch(PhantomData)
    }

    #[inline(always)]
    pub fn step(&mut self, _: &mut dyn Stream, _: &What<'_>) {}
}
