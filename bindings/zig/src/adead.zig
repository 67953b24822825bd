//! adead for Zig: tensor operations with the same bits on every device.
//!
//! A thin layer over the C interface: errors are an error set, with the text in `lastError()`; arrays are slices;
//! `deinit` destroys. README.md is the guide. `c` is adead.h as the build system translates it.
//! docs/NAME.md in comments is https://adead.github.io/adead/NAME.html.

const std = @import("std");
pub const c = @import("c");

const context = @import("context.zig");
const enums = @import("enums.zig");
const failure = @import("failure.zig");
const gpu_ = @import("gpu.zig");
const machine = @import("hardware.zig");
const memory = @import("memory.zig");
const overlapping = @import("overlap.zig");
const pipelines = @import("pipeline.zig");
const profiles = @import("profile.zig");
const program = @import("program.zig");
const random = @import("random.zig");
const tensor = @import("tensor.zig");

/// Layers of neural networks, and their weights from safetensors files.
pub const nn = @import("nn.zig");
/// Messages of the runtime.
pub const log = @import("log.zig");
pub const operations = @import("operations.zig");
/// Flags that end long calls early.
pub const interrupt = @import("interrupt.zig");

pub const Error = enums.Error;
pub const Status = enums.Status;
pub const statusOf = enums.statusOf;
pub const check = enums.check;

pub const DType = enums.DType;
pub const Op = enums.Op;
pub const Activation = enums.Activation;
pub const GeluForm = enums.GeluForm;
pub const Precision = enums.Precision;
pub const ContractLevel = enums.ContractLevel;
pub const Priority = enums.Priority;
pub const DeviceKind = enums.DeviceKind;
pub const Mode = enums.Mode;
pub const Family = enums.Family;
pub const Format = enums.Format;
pub const Direction = enums.Direction;
pub const Activity = enums.Activity;
pub const LogLevel = enums.LogLevel;

pub const Context = context.Context;
pub const Packed = context.Packed;
pub const Explanation = context.Explanation;
pub const Random = random.Random;
pub const Tensor = tensor.Tensor;
pub const Attrs = tensor.Attrs;
pub const Buffer = gpu_.Buffer;
pub const Kernel = gpu_.Kernel;
pub const Operand = gpu_.Operand;
pub const Event = gpu_.Event;
pub const Download = gpu_.Download;
pub const Timestamp = gpu_.Timestamp;
pub const Recording = gpu_.Recording;
pub const Stream = gpu_.Stream;
pub const overlap = overlapping.overlap;
pub const Overlap = overlapping.Overlap;
pub const OverlapResult = overlapping.Result;
pub const Stage = overlapping.Stage;
pub const max_depth = overlapping.max_depth;
pub const DataLoader = @import("loader.zig").DataLoader;
pub const Interrupt = interrupt.Interrupt;
pub const Pipeline = pipelines.Pipeline;
pub const Compiled = pipelines.Compiled;
pub const Value = pipelines.Value;
pub const Program = program.Program;
pub const Slot = program.Slot;
pub const Binding = program.Binding;
pub const Outcome = program.Outcome;
pub const Trace = program.Trace;
pub const Allocator = memory.Allocator;
pub const Arena = memory.Arena;
pub const Layout = memory.Layout;
pub const Hardware = machine.Hardware;
pub const DeviceInfo = machine.DeviceInfo;
pub const Profile = profiles.Profile;

pub const hardware = machine.hardware;
pub const gpuCount = machine.gpuCount;
pub const gpuInfo = machine.gpuInfo;
pub const gpuBackendCount = machine.gpuBackendCount;
pub const gpuBackendInfo = machine.gpuBackendInfo;

/// Opens the best GPU and returns a Context.
pub const gpu = Context.openGpu;

/// All axes: the operation treats the tensor as one row-major vector.
pub const all_axes: i32 = c.ADEAD_AXIS_ALL;
/// A wait without a limit.
pub const forever: u64 = std.math.maxInt(u64);
/// No threshold: the cost model decides.
pub const no_threshold: usize = std.math.maxInt(usize);
pub const max_rank = c.ADEAD_MAX_RANK;

/// Returns the error text of the last call that failed on this thread. Valid until the next one fails.
pub const lastError = failure.lastError;

/// Returns the version of the library.
pub fn version() [:0]const u8 {
    return std.mem.span(c.adead_version());
}

/// Returns the version of the arithmetic contract. Libraries with the same version compute the same bits.
pub fn contractVersion() [:0]const u8 {
    return std.mem.span(c.adead_contract_version());
}
