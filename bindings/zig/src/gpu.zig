//! Memory on a device, kernels of one's own, and streams of work.

const std = @import("std");
const c = @import("c");
const enums = @import("enums.zig");
const hardware = @import("hardware.zig");
const Attrs = @import("tensor.zig").Attrs;
const Context = @import("context.zig").Context;
const Error = enums.Error;
const call = @import("call.zig");
const check = enums.check;

/// Memory on a device, with a size in bytes and no type. Threads may share one.
pub const Buffer = extern struct {
    handle: ?*c.adead_buffer = null,

    pub fn deinit(self: Buffer) void {
        c.adead_buffer_destroy(self.handle);
    }

    /// Gives the memory back, once work that uses it is done; deinit() is still to come.
    pub fn free(self: Buffer) Error!void {
        try check(c.adead_buffer_free(self.handle));
    }

    /// Bytes.
    pub fn size(self: Buffer) Error!usize {
        return call.asked(usize, c.adead_buffer_size, .{self.handle});
    }

    /// Copies values to it from byte `offset` on, behind everything that its context enqueued.
    pub fn write(self: Buffer, offset: usize, comptime T: type, values: []const T) Error!void {
        const bytes = std.mem.sliceAsBytes(values);
        try check(c.adead_buffer_write(self.handle, offset, bytes.ptr, bytes.len));
    }

    /// Waits for everything that its context enqueued and copies from byte `offset` on.
    pub fn read(self: Buffer, offset: usize, comptime T: type, to: []T) Error!void {
        const bytes = std.mem.sliceAsBytes(to);
        try check(c.adead_buffer_read(self.handle, offset, bytes.ptr, bytes.len));
    }
};

/// A kernel, compiled for a context's GPU. It never changes, so threads may share one.
pub const Kernel = struct {
    handle: ?*c.adead_kernel = null,

    /// Of PTX and cubins: the kernel's name, null for the first; its workgroup's threads, null for as many as it says.
    pub const Entry = struct {
        name: ?[:0]const u8 = null,
        workgroup: ?[3]u32 = null,
    };

    /// From a SPIR-V file.
    pub fn loadSpirv(ctx: Context, path: [:0]const u8) Error!Kernel {
        return call.made(Kernel, c.adead_kernel_load_spirv, .{ ctx.handle, path.ptr });
    }

    /// From a SPIR-V module in memory.
    pub fn loadSpirvBytes(ctx: Context, code: []const u8) Error!Kernel {
        return call.made(Kernel, c.adead_kernel_load_spirv_bytes, .{ ctx.handle, code.ptr, code.len });
    }

    /// From a PTX file, its first.
    pub fn loadPtx(ctx: Context, path: [:0]const u8) Error!Kernel {
        return call.made(Kernel, c.adead_kernel_load_ptx, .{ ctx.handle, path.ptr });
    }

    /// From PTX in memory.
    pub fn loadPtxBytes(ctx: Context, code: []const u8, entry: Entry) Error!Kernel {
        return loadEntry(c.adead_kernel_load_ptx_bytes, ctx, code, entry);
    }

    /// From a cubin or fatbin file, its first.
    pub fn loadCubin(ctx: Context, path: [:0]const u8) Error!Kernel {
        return call.made(Kernel, c.adead_kernel_load_cubin, .{ ctx.handle, path.ptr });
    }

    /// From a cubin or fatbin in memory.
    pub fn loadCubinBytes(ctx: Context, code: []const u8, entry: Entry) Error!Kernel {
        return loadEntry(c.adead_kernel_load_cubin_bytes, ctx, code, entry);
    }

    fn loadEntry(comptime load: anytype, ctx: Context, code: []const u8, entry: Entry) Error!Kernel {
        const name = if (entry.name) |name| name.ptr else null;
        const threads: [3]u32 = entry.workgroup orelse .{ 0, 0, 0 };
        const workgroup: [*c]const u32 = if (entry.workgroup != null) &threads else null;
        var out: Kernel = .{};
        try check(load(ctx.handle, code.ptr, code.len, name, workgroup, &out.handle));
        return out;
    }

    /// The module of a kernel as another kernel: with another entry point, with specialization constants set.
    pub fn createPipeline(ctx: Context, kernel: Kernel, entry: ?[:0]const u8, constants: []const c.adead_constant) Error!Kernel {
        var out: Kernel = .{};
        const name = if (entry) |it| it.ptr else null;
        try check(c.adead_pipeline_create(ctx.handle, kernel.handle, name, constants.ptr, constants.len, &out.handle));
        return out;
    }

    pub fn deinit(self: Kernel) void {
        c.adead_kernel_destroy(self.handle);
    }

    /// What a dispatch must give: name, parameter_count, push_bytes, workgroup.
    pub fn info(self: Kernel) Error!c.adead_kernel_details {
        var out = hardware.sized(c.adead_kernel_details);
        try check(c.adead_kernel_info(self.handle, &out));
        return out;
    }

    /// Buffer `index` of the kernel: least, stride, set, binding, readonly.
    pub fn parameter(self: Kernel, index: usize) Error!c.adead_parameter {
        var out = hardware.sized(c.adead_parameter);
        try check(c.adead_kernel_parameter_at(self.handle, index, &out));
        return out;
    }
};

/// A point in a stream. Threads may share one.
pub const Event = struct {
    handle: ?*c.adead_event = null,

    pub fn deinit(self: Event) void {
        c.adead_event_destroy(self.handle);
    }

    /// Whether its stream has come there.
    pub fn query(self: Event) Error!bool {
        return try call.asked(i32, c.adead_event_query, .{self.handle}) != 0;
    }

    /// Waits until its stream has come there, at most so many nanoseconds; `forever` is no limit. NotReady if they did not do.
    pub fn wait(self: Event, nanoseconds: u64) Error!void {
        try check(c.adead_event_wait(self.handle, nanoseconds));
    }
};

/// Bytes on their way to the host. One thread at a time.
pub const Download = struct {
    handle: ?*c.adead_download = null,

    pub fn deinit(self: Download) void {
        c.adead_download_destroy(self.handle);
    }

    /// Whether the bytes have arrived; also once they were read.
    pub fn query(self: Download) Error!bool {
        return try call.asked(i32, c.adead_download_query, .{self.handle}) != 0;
    }

    /// Waits for the bytes and says where they are, without a copy, until they are read or the download is gone: memory that the
    /// device reaches, not to be kept for long.
    pub fn data(self: Download) Error![*]const u8 {
        var out: ?*const anyopaque = null;
        try check(c.adead_download_data(self.handle, &out));
        return @ptrCast(out.?);
    }

    /// Waits for the bytes and copies them, once: as many as the download has.
    pub fn read(self: Download, comptime T: type, to: []T) Error!void {
        const bytes = std.mem.sliceAsBytes(to);
        try check(c.adead_download_read(self.handle, bytes.ptr, bytes.len));
    }
};

/// A time that a device took. Threads may share one.
pub const Timestamp = struct {
    handle: ?*c.adead_timestamp = null,

    pub fn deinit(self: Timestamp) void {
        c.adead_timestamp_destroy(self.handle);
    }

    /// Nanoseconds from `earlier` to this, both of one device. NotReady before both were taken.
    pub fn since(self: Timestamp, earlier: Timestamp) Error!u64 {
        return call.asked(u64, c.adead_timestamp_since, .{ self.handle, earlier.handle });
    }
};

/// Work that was recorded. Threads may share one.
pub const Recording = struct {
    handle: ?*c.adead_recording = null,

    pub fn deinit(self: Recording) void {
        c.adead_recording_destroy(self.handle);
    }
};

/// A buffer as an operand of an operation; without one, an optional operand is absent.
pub const Operand = extern struct {
    raw: c.adead_operand,

    pub const none: Operand = .{ .raw = std.mem.zeroes(c.adead_operand) };

    /// The elements begin at byte `offset`. The dimensions are borrowed.
    pub fn of(buffer: Buffer, dtype: enums.DType, dims: []const usize, offset: usize) Operand {
        var operand = none;
        operand.raw.buffer = buffer.handle;
        operand.raw.offset = offset;
        operand.raw.dims = dims.ptr;
        operand.raw.rank = dims.len;
        operand.raw.dtype = @intFromEnum(dtype);
        return operand;
    }
};

/// A queue of work on a context's device. One thread at a time.
pub const Stream = struct {
    handle: ?*c.adead_stream = null,

    /// Waits for what the stream was given.
    pub fn deinit(self: Stream) void {
        c.adead_stream_destroy(self.handle);
    }

    /// Enqueues a copy of values to a buffer from byte `offset` on; they are the caller's again when it returns.
    pub fn upload(self: Stream, to: Buffer, offset: usize, comptime T: type, values: []const T) Error!void {
        const bytes = std.mem.sliceAsBytes(values);
        try check(c.adead_stream_upload(self.handle, to.handle, offset, bytes.ptr, bytes.len));
    }

    /// Enqueues a copy of bytes of a buffer to the host; the download has them.
    pub fn download(self: Stream, from: Buffer, offset: usize, bytes: usize) Error!Download {
        return call.made(Download, c.adead_stream_download, .{ self.handle, from.handle, offset, bytes });
    }

    /// Enqueues a copy from one buffer to another. Within one buffer the parts must not overlap.
    pub fn copy(self: Stream, from: Buffer, from_offset: usize, to: Buffer, to_offset: usize, bytes: usize) Error!void {
        try check(c.adead_stream_copy(self.handle, from.handle, from_offset, to.handle, to_offset, bytes));
    }

    /// Enqueues the zeroing of bytes: whole 4-byte words, but for a buffer's end.
    pub fn clear(self: Stream, buffer: Buffer, offset: usize, bytes: usize) Error!void {
        try check(c.adead_stream_clear(self.handle, buffer.handle, offset, bytes));
    }

    /// Enqueues a kernel, with buffers in the order of their set and binding, and its push constants' bytes.
    pub fn dispatch(self: Stream, kernel: Kernel, buffers: []const Buffer, groups: [3]u32, push: []const u8) Error!void {
        try check(c.adead_stream_dispatch(self.handle, kernel.handle, @ptrCast(buffers.ptr), buffers.len, push.ptr, push.len, &groups));
    }

    /// Enqueues an operation on buffers: its operands in order, and where its result goes, with the dtype and shape that follow
    /// from them. What only the device can find comes from sync().
    pub fn run(self: Stream, op: enums.Op, operands: []const Operand, result: Operand, attrs: Attrs) Error!void {
        const all: [*]const c.adead_operand = @ptrCast(operands.ptr);
        try check(c.adead_stream_run(self.handle, @intFromEnum(op), all, operands.len, attrs.handle, &result.raw));
    }

    /// The point after everything that the stream was given so far.
    pub fn event(self: Stream) Error!Event {
        return call.made(Event, c.adead_stream_event, .{self.handle});
    }

    /// Everything from now on waits for an event of the same device.
    pub fn waitEvent(self: Stream, it: Event) Error!void {
        try check(c.adead_stream_wait_event(self.handle, it.handle));
    }

    /// Enqueues the taking of a time.
    pub fn timestamp(self: Stream) Error!Timestamp {
        return call.made(Timestamp, c.adead_stream_timestamp, .{self.handle});
    }

    /// From here to recordEnd the stream records instead of running. Uploads, downloads, events and timestamps can't be.
    pub fn recordBegin(self: Stream) Error!void {
        try check(c.adead_stream_record_begin(self.handle));
    }

    /// What was recorded, to be run any number of times.
    pub fn recordEnd(self: Stream) Error!Recording {
        return call.made(Recording, c.adead_stream_record_end, .{self.handle});
    }

    /// Enqueues a recording of the same device.
    pub fn replay(self: Stream, recording: Recording) Error!void {
        try check(c.adead_stream_replay(self.handle, recording.handle));
    }

    /// Hands what the stream was given to the device now, without waiting.
    pub fn flush(self: Stream) Error!void {
        try check(c.adead_stream_flush(self.handle));
    }

    /// Waits until everything has finished. The first error that the device found in it.
    pub fn sync(self: Stream) Error!void {
        try check(c.adead_stream_sync(self.handle));
    }

    /// Whether everything has finished.
    pub fn query(self: Stream) Error!bool {
        return try call.asked(i32, c.adead_stream_query, .{self.handle}) != 0;
    }
};
