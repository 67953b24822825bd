//! Records: what a profile keeps of each piece of work.

use crate::dispatch::Why;
use std::borrow::Cow;
use std::fmt;

/// The kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// An operation of the op table.
    Operation,
    /// A user's kernel.
    Kernel,
    /// A replay of a recording.
    Replay,
    /// A transfer from the host to a device.
    Upload,
    /// A transfer from a device to the host.
    Download,
    /// A copy from one buffer of a device to another.
    Copy,
    /// Setting bytes of a buffer to zero.
    Clear,
}

impl Activity {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Activity; 7] = [
        Activity::Operation,
        Activity::Kernel,
        Activity::Replay,
        Activity::Upload,
        Activity::Download,
        Activity::Copy,
        Activity::Clear,
    ];

    /// Returns `operation`, `kernel`, `replay`, `upload`, `download`, `copy` or `clear`.
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

    /// Returns whether bytes move between the host and a device.
    pub const fn is_transfer(self) -> bool {
        matches!(self, Activity::Upload | Activity::Download)
    }
}

/// Why work ran on its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The dispatcher chose the device.
    Chosen(Why),
    /// An operand is in the device's memory.
    Operands,
    /// An operand is a packed matrix, which only the CPU accepts.
    Packed,
    /// The work was given to a stream of the device.
    Stream,
    /// The dispatcher divided the operation. This work is some rows of its result.
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

/// A span of time, in nanoseconds since the profile began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// When it began.
    pub begin_ns: u64,
    /// When it ended; never before it began.
    pub end_ns: u64,
}

impl Span {
    /// Returns its length in nanoseconds.
    pub const fn ns(self) -> u64 {
        self.end_ns - self.begin_ns
    }
}

/// A piece of work: an operation, a user's kernel, a transfer.
#[derive(Clone, Debug)]
pub struct Record {
    /// The kind of work.
    pub activity: Activity,
    /// The name of the operation or kernel. For other work, the name of its kind. A precision other than f32 follows the
    /// operation's name: `matmul fixed24`.
    pub name: Cow<'static, str>,
    /// Its operands: `f32[2, 3], f32[3, 4] -> f32[2, 4]`, a kernel's workgroups, or the purpose of a transfer.
    pub operands: String,
    /// The device, by its index in [`Report::devices`](super::Report::devices).
    pub device: usize,
    /// Why it ran on this device.
    pub reason: Reason,
    /// The thread that called, numbered from 0 in the order of first records.
    pub thread: usize,
    /// The device's stream. 0 is the context's own; others are numbered in the order in which they were made.
    pub stream: usize,
    /// The call. A device that works asynchronously only receives the work in this time.
    pub host: Span,
    /// The work itself, on the host's clock. On the CPU this is the call. On a GPU the device measures it. `None` if the device
    /// has no timestamps, or if the work was not done when the profile ended.
    pub work: Option<Span>,
    /// Cycles of the CPU's time stamp counter. `None` on GPUs and on processors without a counter.
    pub cycles: Option<u64>,
    /// Floating-point operations. A multiply-add counts as two. 0 if unknown.
    pub flops: f64,
    /// Bytes read and written, each operand counted once. For transfers and copies, the bytes that moved. 0 if unknown.
    pub bytes: f64,
}
