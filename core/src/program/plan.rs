//! Plans: a validated program with its peak memory and the dependencies of its instructions.

use super::Program;
use super::lower::{Do, Lowered, Source};
use super::scheduler::{Schedule, in_order};
use crate::error::{Result, fail};
use std::sync::OnceLock;

/// A program that was validated against a memory limit.
pub struct Plan<'a> {
    program: &'a Program,
    schedule: OnceLock<Schedule>,
    memory: usize,
}

impl<'a> Plan<'a> {
    /// Checks the most memory alive at one time against the limit, without allocating any.
    pub(super) fn new(program: &'a Program, limit: usize) -> Result<Plan<'a>> {
        if let Some(&memory) = program.memory.get()
            && memory <= limit
        {
            return Ok(Plan { program, schedule: OnceLock::new(), memory });
        }
        let lowered = program.lowered();
        // A file may claim any sizes, so their sum may overflow a usize.
        let mut alive: u128 = 0;
        for source in &lowered.cells {
            let Source::Output(slot) = source else { continue };
            let slot = &lowered.slots.list[*slot];
            alive += slot.bytes as u128;
            if alive > limit as u128 {
                let (name, alive) = (&slot.name, told(alive));
                fail!(OutOfMemory, "with the output '{name}' the program takes {alive} bytes; the limit is {limit}");
            }
        }
        let mut peak = alive;
        for step in &lowered.steps {
            let size = |cell: usize| match lowered.cells[cell] {
                Source::Allocated(bytes) | Source::Scratch(bytes) => bytes as u128,
                _ => 0,
            };
            match step.action {
                Do::Allocate { cell, .. } => alive += size(cell),
                Do::Release(cell) => alive -= size(cell),
                _ => continue,
            }
            peak = peak.max(alive);
            if alive > limit as u128 {
                let at = program.code.instructions[step.instruction].at;
                let alive = told(alive);
                let line = super::text::line(&program.code, program.agpu, &program.code.instructions[step.instruction]);
                fail!(OutOfMemory, "{at}: with '{line}' the program takes {alive} bytes; the limit is {limit}");
            }
        }
        // The peak is below the limit, so it fits a usize. It is the same for every limit.
        let memory = *program.memory.get_or_init(|| peak as usize);
        Ok(Plan { program, schedule: OnceLock::new(), memory })
    }

    /// Returns the most bytes that registers, temporaries and outputs take at one time, including the scratch of `ffn` and of
    /// 16-bit operands. Inputs belong to the caller and constants to the program, so they are not counted.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Returns the instructions that must be done before this one begins, in order.
    pub fn depends_on(&self, instruction: usize) -> Vec<usize> {
        let steps = &self.lowered().steps;
        let of = steps.iter().enumerate().filter(|(_, step)| step.instruction == instruction);
        let found = of
            .flat_map(|(i, _)| self.schedule().before(i).iter().map(|&other| steps[other].instruction))
            .filter(|&other| other != instruction);
        in_order(found.collect())
    }

    pub(super) fn lowered(&self) -> &'a Lowered {
        self.program.lowered()
    }

    pub(super) fn schedule(&self) -> &Schedule {
        self.schedule.get_or_init(|| Schedule::new(&self.lowered().steps, self.lowered().cells.len()))
    }
}

/// Converts bytes for an error message; larger numbers saturate.
fn told(bytes: u128) -> u64 {
    bytes.try_into().unwrap_or(u64::MAX)
}

impl std::fmt::Debug for Plan<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Plan({} instructions, {} bytes)", self.program.len(), self.memory)
    }
}
