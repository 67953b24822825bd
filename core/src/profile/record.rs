//! What a profile keeps of a piece of work.

use crate::dispatch::Why;
use std::borrow::Cow;
use std::fmt;

/// What kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// An operation of the table.
    Operation,
    /// A user's kernel.
    Kernel,
    /// A recording that was run.
    Replay,
    /// Bytes from the host to a device.
    Upload,
    /// Bytes from a device to the host.
    Download,
    /// Bytes from one buffer of a device to another.
    Copy,
    /// Bytes of a buffer set to zero.
    Clear,
}

impl Activity {
    /// All, in the order of their numbers.
    pub const ALL: [Activity; 7] = [
        Activity::Operation,
        Activity::Kernel,
        Activity::Replay,
        Activity::Upload,
        Activity::Download,
        Activity::Copy,
        Activity::Clear,
    ];

    /// `operation`, `kernel`, `replay`, `upload`, `download`, `copy` or `clear`.
    pub const fn name(self) -> &'static str {
        match self {
            Activity::Operation => "operation",
            Activity::Kernel => "kernel",
            Activity::Replay => "replay",
            Activity::Upload => "upload",
            Activity::Download => "download",
            Activity::Copy => "copy",
            Activity::Clear => "clear",
        }
    }

    /// Whether bytes travel between the host and a device.
    pub const fn is_transfer(self) -> bool {
        matches!(self, Activity::Upload | Activity::Download)
    }
}

/// Why work was done where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The dispatcher said so.
    Chosen(Why),
    /// An operand is in that device's memory.
    Operands,
    /// An operand is a packed matrix, which only the CPU takes.
    Packed,
    /// It was given to a stream of that device.
    Stream,
    /// The dispatcher divided the operation: these are some rows of its result.
    Split,
    /// The GPU that the dispatcher chose can't be opened.
    Fallback,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Chosen(Why::Only) => "only device",
            Reason::Chosen(Why::Forced) => "forced",
            Reason::Chosen(Why::Threshold(elements)) => return write!(f, "threshold of {elements} elements"),
            Reason::Chosen(Why::Cheapest) => "cheapest",
            Reason::Operands => "operands are there",
            Reason::Packed => "packed operand",
            Reason::Stream => "stream's device",
            Reason::Split => "divided",
            Reason::Fallback => "chosen GPU can't be opened",
        })
    }
}

/// From when to when, in nanoseconds since the profile's beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// When it began.
    pub begin_ns: u64,
    /// When it ended; never before it began.
    pub end_ns: u64,
}

impl Span {
    /// How long it is, in nanoseconds.
    pub const fn ns(self) -> u64 {
        self.end_ns - self.begin_ns
    }
}

/// A piece of work: an operation, a user's kernel, a transfer.
#[derive(Clone, Debug)]
pub struct Record {
    /// What kind.
    pub activity: Activity,
    /// The operation's or the kernel's name; of the others, that of their kind.
    pub name: Cow<'static, str>,
    /// What it worked on: `f32[2, 3], f32[3, 4] -> f32[2, 4]`, a kernel's workgroups, the operation that bytes travel for.
    pub operands: String,
    /// The device, by its index in [`Report::devices`](super::Report::devices).
    pub device: usize,
    /// Why there.
    pub reason: Reason,
    /// The thread that called, counted from 0 in the order of their first records.
    pub thread: usize,
    /// The device's stream: 0 is the context's own, others are numbered in the order in which they were made.
    pub stream: usize,
    /// The call. Where the device works behind the caller's back, it only hands work over.
    pub host: Span,
    /// The work itself, on the host's clock. On the CPU it is the call; on a GPU the device tells, and `None` is a device that
    /// takes no times, or work that was not done when the profile ended.
    pub work: Option<Span>,
    /// Cycles of the time stamp counter that it took on the CPU; `None` on GPUs and where the processor has none.
    pub cycles: Option<u64>,
    /// Floating-point operations; a multiply-add is two. 0 where nobody knows.
    pub flops: f64,
    /// Bytes read and written, each operand once; of transfers and copies, the bytes that travelled. 0 where nobody knows.
    pub bytes: f64,
}
