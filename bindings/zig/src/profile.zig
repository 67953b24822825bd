//! Profiles: how long a context's operations, kernels and transfers took, and where they ran.

const std = @import("std");
const c = @import("c");
const enums = @import("enums.zig");
const failure = @import("failure.zig");
const sized = @import("hardware.zig").sized;
const Error = enums.Error;
const check = enums.check;

/// A profile of a context: `Context.profile` starts it, `finish` ends it.
pub const Profile = struct {
    handle: ?*c.adead_profile = null,

    /// Destroys the profile and the texts of its report. An active profile ends.
    pub fn deinit(self: Profile) void {
        c.adead_profile_destroy(self.handle);
    }

    /// Ends the profile and returns its report, in memory of the allocator. The profile owns the texts, which stay
    /// valid until `deinit`. Waits for everything that the context has enqueued; synchronise your own streams before.
    /// InvalidArgument if the profile has already ended.
    pub fn finish(self: Profile, allocator: std.mem.Allocator) Error!Report {
        try check(c.adead_profile_finish(self.handle));
        return self.report(allocator);
    }

    /// Returns a finished profile as a table. As for the next two functions, the profile owns the text, which stays
    /// valid until `deinit`.
    pub fn table(self: Profile) Error![:0]const u8 {
        return written(self.handle, c.adead_profile_table);
    }
    /// Returns it as JSON.
    pub fn json(self: Profile) Error![:0]const u8 {
        return written(self.handle, c.adead_profile_json);
    }
    /// Returns it as a trace for Perfetto and chrome://tracing.
    pub fn trace(self: Profile) Error![:0]const u8 {
        return written(self.handle, c.adead_profile_trace);
    }

    /// Returns the report of a finished profile again.
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

/// Returns a text that a function of the C interface writes.
fn written(handle: ?*c.adead_profile, write: anytype) Error![:0]const u8 {
    var out: [*c]const u8 = null;
    try check(write(handle, &out));
    return std.mem.span(@as([*:0]const u8, out));
}

/// Returns every element that a function of the C interface fills in.
fn all(comptime T: type, comptime Raw: type, handle: ?*c.adead_profile, count: usize, at: anytype, allocator: std.mem.Allocator) Error![]T {
    const list = allocator.alloc(T, count) catch return failure.outOfMemory();
    errdefer allocator.free(list);
    for (list, 0..) |*one, i| {
        one.raw = sized(Raw);
        try check(at(handle, i, &one.raw));
    }
    return list;
}

/// The report of a profile. Times are nanoseconds; those of records count from the profile's start.
pub const Report = struct {
    allocator: std.mem.Allocator,
    /// Every piece of work, in the order in which the calls returned.
    records: []Record,
    /// By kind, name, device and reason; the one with the longest total time is first.
    totals: []Total,
    /// The devices that worked.
    devices: []Device,
    /// ns, busy_ns, overlapped_ns, overlap, and the number of dropped records.
    summary: c.adead_profile_summary,

    pub fn deinit(self: Report) void {
        self.allocator.free(self.records);
        self.allocator.free(self.totals);
        self.allocator.free(self.devices);
    }
};

/// A begin and an end, in nanoseconds since the profile's start.
pub const Span = struct {
    begin_ns: u64,
    end_ns: u64,

    pub fn ns(self: Span) u64 {
        return self.end_ns - self.begin_ns;
    }
};

/// A piece of work: an operation, a user's kernel or a transfer; `raw` has the numbers.
pub const Record = struct {
    raw: c.adead_profile_record,

    pub fn activity(self: Record) enums.Activity {
        return @enumFromInt(self.raw.activity);
    }
    /// Returns the name of the operation or the kernel; for other work, the name of its kind.
    pub fn name(self: Record) [:0]const u8 {
        return std.mem.span(self.raw.name);
    }
    /// Returns the operands: dtypes and shapes, a kernel's workgroups, or the operation that a transfer serves.
    pub fn operands(self: Record) [:0]const u8 {
        return std.mem.span(self.raw.operands);
    }
    /// Returns the device's id.
    pub fn device(self: Record) [:0]const u8 {
        return std.mem.span(self.raw.device_id);
    }
    /// Returns why it ran there. For "threshold", `raw.threshold` is the threshold in elements.
    pub fn reason(self: Record) [:0]const u8 {
        return std.mem.span(self.raw.reason);
    }
    /// Returns the time of the call.
    pub fn host(self: Record) Span {
        return .{ .begin_ns = self.raw.host_begin_ns, .end_ns = self.raw.host_end_ns };
    }
    /// Returns the time of the work itself, on the host's clock. Null if the device measures no times, and for work
    /// that had not finished when the profile ended.
    pub fn work(self: Record) ?Span {
        if (self.raw.has_work == 0) return null;
        return .{ .begin_ns = self.raw.work_begin_ns, .end_ns = self.raw.work_end_ns };
    }
    /// Returns the cycles of the processor's time stamp counter; null on GPUs and on processors without a counter.
    pub fn cycles(self: Record) ?u64 {
        return if (self.raw.has_cycles != 0) self.raw.cycles else null;
    }
};

/// The total of records with one kind, name, device and reason; `raw` has the numbers.
pub const Total = struct {
    raw: c.adead_profile_total,

    pub fn activity(self: Total) enums.Activity {
        return @enumFromInt(self.raw.activity);
    }
    pub fn name(self: Total) [:0]const u8 {
        return std.mem.span(self.raw.name);
    }
    /// Returns the device's id.
    pub fn device(self: Total) [:0]const u8 {
        return std.mem.span(self.raw.device_id);
    }
    /// Returns why the work ran there. For "threshold", `raw.threshold` is the threshold in elements.
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
    /// Returns the source of its peak rates; null if there are none.
    pub fn figures(self: Device) ?[:0]const u8 {
        return if (self.raw.figures) |text| std.mem.span(@as([*:0]const u8, text)) else null;
    }
};
