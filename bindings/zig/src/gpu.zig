//! Memory on a device, the caller's own kernels, and streams of work.

const std = @import("std");
const c = @import("c");
const enums = @import("enums.zig");
const hardware = @import("hardware.zig");
const Attrs = @import("tensor.zig").Attrs;
const Context = @import("context.zig").Context;
const Error = enums.Error;
const call = @import("call.zig");
const check = enums.check;

/// A range of memory on a device, with a size in bytes and no type. Threads may share one.
pub const Buffer = extern struct {
    handle: ?*c.adead_buffer = null,

    pub fn deinit(self: Buffer) void {
        c.adead_buffer_destroy(self.handle);
    }

    /// Frees the memory once the work that uses it has finished. The caller must still call deinit().
    pub fn free(self: Buffer) Error!void {
        try check(c.adead_buffer_free(self.handle));
    }

    /// Returns the size in bytes.
    pub fn size(self: Buffer) Error!usize {
        return call.asked(usize, c.adead_buffer_size, .{self.handle});
    }

    /// Copies values to the buffer at byte `offset`, after everything that its context has enqueued.
    pub fn write(self: Buffer, offset: usize, comptime T: type, values: []const T) Error!void {
        const bytes = std.mem.sliceAsBytes(values);
        try check(c.adead_buffer_write(self.handle, offset, bytes.ptr, bytes.len));
    }

    /// Waits for everything that its context has enqueued, and copies values at byte `offset` to `to`.
    pub fn read(self: Buffer, offset: usize, comptime T: type, to: []T) Error!void {
        const bytes = std.mem.sliceAsBytes(to);
        try check(c.adead_buffer_read(self.handle, offset, bytes.ptr, bytes.len));
    }
};

/// A kernel that was compiled for a context's GPU. It never changes, so threads may share one.
pub const Kernel = struct {
    handle: ?*c.adead_kernel = null,

    /// The kernel to load from PTX or a cubin. `name` null is the first kernel. `workgroup` null is the number of threads that
    /// the kernel declares.
    pub const Entry = struct {
        name: ?[:0]const u8 = null,
        workgroup: ?[3]u32 = null,
    };

    /// Loads a kernel from a SPIR-V file.
    pub fn loadSpirv(ctx: Context, path: [:0]const u8) Error!Kernel {
        return call.made(Kernel, c.adead_kernel_load_spirv, .{ ctx.handle, path.ptr });
    }

    /// Loads a kernel from a SPIR-V module in memory.
    pub fn loadSpirvBytes(ctx: Context, code: []const u8) Error!Kernel {
        return call.made(Kernel, c.adead_kernel_load_spirv_bytes, .{ ctx.handle, code.ptr, code.len });
    }

    /// Loads the first kernel of a PTX file.
    pub fn loadPtx(ctx: Context, path: [:0]const u8) Error!Kernel {
        return call.made(Kernel, c.adead_kernel_load_ptx, .{ ctx.handle, path.ptr });
    }

    /// Loads a kernel from PTX in memory.
    pub fn loadPtxBytes(ctx: Context, code: []const u8, entry: Entry) Error!Kernel {
        return loadEntry(c.adead_kernel_load_ptx_bytes, ctx, code, entry);
    }

    /// Loads the first kernel of a cubin or fatbin file.
    pub fn loadCubin(ctx: Context, path: [:0]const u8) Error!Kernel {
        return call.made(Kernel, c.adead_kernel_load_cubin, .{ ctx.handle, path.ptr });
    }

    /// Loads a kernel from a cubin or fatbin in memory.
    pub fn loadCubinBytes(ctx: Context, code: []const u8, entry: Entry) Error!Kernel {
        return loadEntry(c.adead_kernel_load_cubin_bytes, ctx, code, entry);
    }

    /// Compiles a kernel's source for the context's GPU, and loads it: CUDA C++ on a CUDA device, GLSL of a compute shader on a
    /// Vulkan device. Messages call the source `name`. InvalidKernel if it has errors; the message gives their lines.
    pub fn compileKernel(ctx: Context, source: [:0]const u8, name: ?[:0]const u8, entry: Entry) Error!Kernel {
        const said = if (name) |it| it.ptr else null;
        const of = if (entry.name) |it| it.ptr else null;
        const threads: [3]u32 = entry.workgroup orelse .{ 0, 0, 0 };
        const workgroup: [*c]const u32 = if (entry.workgroup != null) &threads else null;
        return call.made(Kernel, c.adead_kernel_compile, .{ ctx.handle, source.ptr, said, of, workgroup });
    }

    fn loadEntry(comptime load: anytype, ctx: Context, code: []const u8, entry: Entry) Error!Kernel {
        const name = if (entry.name) |name| name.ptr else null;
        const threads: [3]u32 = entry.workgroup orelse .{ 0, 0, 0 };
        const workgroup: [*c]const u32 = if (entry.workgroup != null) &threads else null;
        var out: Kernel = .{};
        try check(load(ctx.handle, code.ptr, code.len, name, workgroup, &out.handle));
        return out;
    }

    /// Makes another kernel from the module of a kernel, with another entry point and specialization constants set.
    pub fn createPipeline(ctx: Context, kernel: Kernel, entry: ?[:0]const u8, constants: []const c.adead_constant) Error!Kernel {
        var out: Kernel = .{};
        const name = if (entry) |it| it.ptr else null;
        try check(c.adead_pipeline_create(ctx.handle, kernel.handle, name, constants.ptr, constants.len, &out.handle));
        return out;
    }

    pub fn deinit(self: Kernel) void {
        c.adead_kernel_destroy(self.handle);
    }

    /// Describes the kernel: name, parameter_count, push_bytes, workgroup.
    pub fn info(self: Kernel) Error!c.adead_kernel_details {
        var out = hardware.sized(c.adead_kernel_details);
        try check(c.adead_kernel_info(self.handle, &out));
        return out;
    }

    /// Describes buffer `index` of the kernel: least, stride, set, binding, readonly.
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

    /// Returns whether the stream has reached the event.
    pub fn query(self: Event) Error!bool {
        return try call.asked(i32, c.adead_event_query, .{self.handle}) != 0;
    }

    /// Waits until the stream has reached the event, for at most the given nanoseconds; `forever` is no limit. NotReady
    /// if the time was too short.
    pub fn wait(self: Event, nanoseconds: u64) Error!void {
        try check(c.adead_event_wait(self.handle, nanoseconds));
    }
};

/// A download of bytes to the host. One thread at a time may use it.
pub const Download = struct {
    handle: ?*c.adead_download = null,

    pub fn deinit(self: Download) void {
        c.adead_download_destroy(self.handle);
    }

    /// Returns whether the bytes have arrived. It stays true after they were read.
    pub fn query(self: Download) Error!bool {
        return try call.asked(i32, c.adead_download_query, .{self.handle}) != 0;
    }

    /// Waits for the bytes and returns their address without a copy. It is valid until they are read or the download is
    /// destroyed. Memory that the device can access is limited, so don't keep it for long.
    pub fn data(self: Download) Error![*]const u8 {
        var out: ?*const anyopaque = null;
        try check(c.adead_download_data(self.handle, &out));
        return @ptrCast(out.?);
    }

    /// Waits for the bytes and copies them, once. `to` must have the size of the download.
    pub fn read(self: Download, comptime T: type, to: []T) Error!void {
        const bytes = std.mem.sliceAsBytes(to);
        try check(c.adead_download_read(self.handle, bytes.ptr, bytes.len));
    }
};

/// A time on a device's clock. Threads may share one.
pub const Timestamp = struct {
    handle: ?*c.adead_timestamp = null,

    pub fn deinit(self: Timestamp) void {
        c.adead_timestamp_destroy(self.handle);
    }

    /// Returns the nanoseconds from `earlier` to this timestamp of the same device. NotReady until the device has taken both.
    pub fn since(self: Timestamp, earlier: Timestamp) Error!u64 {
        return call.asked(u64, c.adead_timestamp_since, .{ self.handle, earlier.handle });
    }
};

/// Recorded work. Threads may share one.
pub const Recording = struct {
    handle: ?*c.adead_recording = null,

    pub fn deinit(self: Recording) void {
        c.adead_recording_destroy(self.handle);
    }
};

/// A buffer as an operand of an operation. Without a buffer, an optional operand is absent.
pub const Operand = extern struct {
    raw: c.adead_operand,

    pub const none: Operand = .{ .raw = std.mem.zeroes(c.adead_operand) };

    /// Makes an operand whose elements begin at byte `offset`. It borrows the dimensions.
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

/// A queue of work on a context's device. One thread at a time may use it.
pub const Stream = struct {
    handle: ?*c.adead_stream = null,

    /// Waits for the stream's work and destroys the stream.
    pub fn deinit(self: Stream) void {
        c.adead_stream_destroy(self.handle);
    }

    /// Enqueues a copy of values to a buffer at byte `offset`. The caller may reuse the values when the call returns.
    pub fn upload(self: Stream, to: Buffer, offset: usize, comptime T: type, values: []const T) Error!void {
        const bytes = std.mem.sliceAsBytes(values);
        try check(c.adead_stream_upload(self.handle, to.handle, offset, bytes.ptr, bytes.len));
    }

    /// Enqueues a copy of bytes of a buffer to the host. The download returns them.
    pub fn download(self: Stream, from: Buffer, offset: usize, bytes: usize) Error!Download {
        return call.made(Download, c.adead_stream_download, .{ self.handle, from.handle, offset, bytes });
    }

    /// Enqueues a copy from one buffer to another. Two ranges of one buffer must not overlap.
    pub fn copy(self: Stream, from: Buffer, from_offset: usize, to: Buffer, to_offset: usize, bytes: usize) Error!void {
        try check(c.adead_stream_copy(self.handle, from.handle, from_offset, to.handle, to_offset, bytes));
    }

    /// Enqueues a fill with zeros: whole 4-byte words, except at the buffer's end.
    pub fn clear(self: Stream, buffer: Buffer, offset: usize, bytes: usize) Error!void {
        try check(c.adead_stream_clear(self.handle, buffer.handle, offset, bytes));
    }

    /// Enqueues a kernel, with buffers in the order of set and binding, and the bytes of its push constants.
    pub fn dispatch(self: Stream, kernel: Kernel, buffers: []const Buffer, groups: [3]u32, push: []const u8) Error!void {
        try check(c.adead_stream_dispatch(self.handle, kernel.handle, @ptrCast(buffers.ptr), buffers.len, push.ptr, push.len, &groups));
    }

    /// Enqueues an operation on buffers: its operands in order, and a place for the result. The result's dtype and
    /// shape must be those that follow from the operands. Errors that only the device can find come from sync().
    pub fn run(self: Stream, op: enums.Op, operands: []const Operand, result: Operand, attrs: Attrs) Error!void {
        const all: [*]const c.adead_operand = @ptrCast(operands.ptr);
        try check(c.adead_stream_run(self.handle, @intFromEnum(op), all, operands.len, attrs.handle, &result.raw));
    }

    /// Makes an event at the point after everything that the stream has enqueued so far.
    pub fn event(self: Stream) Error!Event {
        return call.made(Event, c.adead_stream_event, .{self.handle});
    }

    /// Makes everything enqueued from now on wait for an event of the same device.
    pub fn waitEvent(self: Stream, it: Event) Error!void {
        try check(c.adead_stream_wait_event(self.handle, it.handle));
    }

    /// Enqueues a timestamp.
    pub fn timestamp(self: Stream) Error!Timestamp {
        return call.made(Timestamp, c.adead_stream_timestamp, .{self.handle});
    }

    /// Starts to record the stream's work instead of running it, until recordEnd(). Uploads, downloads, events and
    /// timestamps can't be recorded.
    pub fn recordBegin(self: Stream) Error!void {
        try check(c.adead_stream_record_begin(self.handle));
    }

    /// Ends the recording and returns it, to be run any number of times.
    pub fn recordEnd(self: Stream) Error!Recording {
        return call.made(Recording, c.adead_stream_record_end, .{self.handle});
    }

    /// Enqueues a recording of the same device.
    pub fn replay(self: Stream, recording: Recording) Error!void {
        try check(c.adead_stream_replay(self.handle, recording.handle));
    }

    /// Submits the stream's work to the device now, without waiting.
    pub fn flush(self: Stream) Error!void {
        try check(c.adead_stream_flush(self.handle));
    }

    /// Waits until all work has finished. Returns the first error that the device found in it.
    pub fn sync(self: Stream) Error!void {
        try check(c.adead_stream_sync(self.handle));
    }

    /// Returns whether all work has finished.
    pub fn query(self: Stream) Error!bool {
        return try call.asked(i32, c.adead_stream_query, .{self.handle}) != 0;
    }
};
