//! Profiles: what a context's operations, kernels and transfers took, and where they ran.

const std = @import("std");
const c = @import("c");
const enums = @import("enums.zig");
const failure = @import("failure.zig");
const sized = @import("hardware.zig").sized;
const Error = enums.Error;
const check = enums.check;

/// A profile of a context: `Context.profile` begins it, `finish` ends it.
pub const Profile = struct {
    handle: ?*c.adead_profile = null,

    /// Gives it up, and the texts of its report with it. One that is under way ends.
    pub fn deinit(self: Profile) void {
        c.adead_profile_destroy(self.handle);
    }

    /// Ends it: what was recorded, in memory of the allocator's; texts are the profile's and stay until `deinit`. Waits for what the
    /// context enqueued; synchronize streams of your own before. InvalidArgument if it is finished already.
    pub fn finish(self: Profile, allocator: std.mem.Allocator) Error!Report {
        try check(c.adead_profile_finish(self.handle));
        return self.report(allocator);
    }

    /// A finished profile as a table. Like the other two, the text is the profile's and stays until `deinit`.
    pub fn table(self: Profile) Error![:0]const u8 {
        return written(self.handle, c.adead_profile_table);
    }
    /// As JSON.
    pub fn json(self: Profile) Error![:0]const u8 {
        return written(self.handle, c.adead_profile_json);
    }
    /// As a trace for Perfetto and chrome://tracing.
    pub fn trace(self: Profile) Error![:0]const u8 {
        return written(self.handle, c.adead_profile_trace);
    }

    /// What a finished profile recorded, once more.
    pub fn report(self: Profile, allocator: std.mem.Allocator) Error!Report {
        var summary = sized(c.adead_profile_summary);
        try check(c.adead_profile_report(self.handle, &summary));
        const records = try all(Record, c.adead_profile_record, self.handle, summary.records, c.adead_profile_record_at, allocator);
        errdefer allocator.free(records);
        const totals = try all(Total, c.adead_profile_total, self.handle, summary.totals, c.adead_profile_total_at, allocator);
        errdefer allocator.free(totals);
        const devices = try all(Device, c.adead_profile_device, self.handle, summary.devices, c.adead_profile_device_at, allocator);
        return .{ .allocator = allocator, .records = records, .totals = totals, .devices = devices, .summary = summary };
    }
};

/// A text that a function of the C interface writes.
fn written(handle: ?*c.adead_profile, write: anytype) Error![:0]const u8 {
    var out: [*c]const u8 = null;
    try check(write(handle, &out));
    return std.mem.span(@as([*:0]const u8, out));
}

/// Every element that a function of the C interface fills.
fn all(comptime T: type, comptime Raw: type, handle: ?*c.adead_profile, count: usize, at: anytype, allocator: std.mem.Allocator) Error![]T {
    const list = allocator.alloc(T, count) catch return failure.outOfMemory();
    errdefer allocator.free(list);
    for (list, 0..) |*one, i| {
        one.raw = sized(Raw);
        try check(at(handle, i, &one.raw));
    }
    return list;
}

/// What was recorded. Times are nanoseconds, those of records since the profile's beginning.
pub const Report = struct {
    allocator: std.mem.Allocator,
    /// Every piece of work, in the order in which the calls returned.
    records: []Record,
    /// By kind, name, device and reason; what took longest is first.
    totals: []Total,
    /// The devices that worked.
    devices: []Device,
    /// ns, busy_ns, overlapped_ns, overlap, and how many records were dropped.
    summary: c.adead_profile_summary,

    pub fn deinit(self: Report) void {
        self.allocator.free(self.records);
        self.allocator.free(self.totals);
        self.allocator.free(self.devices);
    }
};

/// From when to when, in nanoseconds since the profile's beginning.
pub const Span = struct {
    begin_ns: u64,
    end_ns: u64,

    pub fn ns(self: Span) u64 {
        return self.end_ns - self.begin_ns;
    }
};

/// A piece of work: an operation, a user's kernel, a transfer; `raw` has the numbers.
pub const Record = struct {
    raw: c.adead_profile_record,

    pub fn activity(self: Record) enums.Activity {
        return @enumFromInt(self.raw.activity);
    }
    /// The operation's or the kernel's name; of the others, that of their kind.
    pub fn name(self: Record) [:0]const u8 {
        return std.mem.span(self.raw.name);
    }
    /// What it worked on: dtypes and shapes, a kernel's workgroups, the operation that bytes travel for.
    pub fn operands(self: Record) [:0]const u8 {
        return std.mem.span(self.raw.operands);
    }
    /// The device's id.
    pub fn device(self: Record) [:0]const u8 {
        return std.mem.span(self.raw.device_id);
    }
    /// Why there; of "threshold", `raw.threshold` is how many elements.
    pub fn reason(self: Record) [:0]const u8 {
        return std.mem.span(self.raw.reason);
    }
    /// The call.
    pub fn host(self: Record) Span {
        return .{ .begin_ns = self.raw.host_begin_ns, .end_ns = self.raw.host_end_ns };
    }
    /// The work itself, on the host's clock; null where the device takes no times, and for work that was not done when the profile
    /// ended.
    pub fn work(self: Record) ?Span {
        if (self.raw.has_work == 0) return null;
        return .{ .begin_ns = self.raw.work_begin_ns, .end_ns = self.raw.work_end_ns };
    }
    /// Cycles of the processor's time stamp counter; null on GPUs and where the processor has none.
    pub fn cycles(self: Record) ?u64 {
        return if (self.raw.has_cycles != 0) self.raw.cycles else null;
    }
};

/// What was recorded of one kind and name, on one device, for one reason; `raw` has the numbers.
pub const Total = struct {
    raw: c.adead_profile_total,

    pub fn activity(self: Total) enums.Activity {
        return @enumFromInt(self.raw.activity);
    }
    pub fn name(self: Total) [:0]const u8 {
        return std.mem.span(self.raw.name);
    }
    /// The device's id.
    pub fn device(self: Total) [:0]const u8 {
        return std.mem.span(self.raw.device_id);
    }
    /// Why there; of "threshold", `raw.threshold` is how many elements.
    pub fn reason(self: Total) [:0]const u8 {
        return std.mem.span(self.raw.reason);
    }
};

/// A device that worked; `raw` has the numbers.
pub const Device = struct {
    raw: c.adead_profile_device,

    pub fn id(self: Device) [:0]const u8 {
        return std.mem.span(self.raw.id);
    }
    /// Where its peak figures are from; null where there are none.
    pub fn figures(self: Device) ?[:0]const u8 {
        return if (self.raw.figures) |text| std.mem.span(@as([*:0]const u8, text)) else null;
    }
};
