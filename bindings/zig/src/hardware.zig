//! What machine this is: processor, memory, GPUs.

const std = @import("std");
const c = @import("c");
const enums = @import("enums.zig");
const Error = enums.Error;
const call = @import("call.zig");
const check = enums.check;

/// A text of the C interface in an array of its own.
pub fn text(array: anytype) [:0]const u8 {
    return std.mem.span(@as([*:0]const u8, @ptrCast(array)));
}

/// A report on the machine; `raw` has the numbers.
pub const Hardware = struct {
    raw: c.adead_hardware,

    pub fn cpuVendor(self: *const Hardware) [:0]const u8 {
        return text(&self.raw.cpu_vendor);
    }
    pub fn cpuModel(self: *const Hardware) [:0]const u8 {
        return text(&self.raw.cpu_model);
    }
    /// Instruction-set extensions that kernels may use, with a space between them.
    pub fn cpuFeatures(self: *const Hardware) [:0]const u8 {
        return text(&self.raw.cpu_features);
    }
    /// From the nearest.
    pub fn caches(self: *const Hardware) []const c.adead_cache {
        return self.raw.cpu_caches[0..self.raw.cpu_cache_count];
    }
    /// The mode that suits the machine.
    pub fn recommended(self: *const Hardware) enums.Mode {
        return @enumFromInt(self.raw.recommended);
    }
};

/// What a device is; `raw` has the numbers.
pub const DeviceInfo = struct {
    raw: c.adead_device_info,

    /// How to open it: "cpu", "cuda:0", "vulkan:1".
    pub fn id(self: *const DeviceInfo) [:0]const u8 {
        return text(&self.raw.id);
    }
    /// What its maker calls it.
    pub fn name(self: *const DeviceInfo) [:0]const u8 {
        return text(&self.raw.name);
    }
    /// What its kernels are built for.
    pub fn arch(self: *const DeviceInfo) [:0]const u8 {
        return text(&self.raw.arch);
    }
    pub fn vendor(self: *const DeviceInfo) [:0]const u8 {
        return text(&self.raw.vendor);
    }
    pub fn driver(self: *const DeviceInfo) [:0]const u8 {
        return text(&self.raw.driver);
    }
    /// Where it is on the PCI bus, or "".
    pub fn bus(self: *const DeviceInfo) [:0]const u8 {
        return text(&self.raw.bus);
    }
    pub fn kind(self: *const DeviceInfo) enums.DeviceKind {
        return @enumFromInt(self.raw.kind);
    }
    pub fn contract(self: *const DeviceInfo) enums.ContractLevel {
        return @enumFromInt(self.raw.contract);
    }
    /// What names this very device among all; null for a processor.
    pub fn uuid(self: *const DeviceInfo) ?[16]u8 {
        return if (self.raw.has_uuid != 0) self.raw.uuid else null;
    }
};

/// An empty report, which says its size first.
pub fn sized(comptime T: type) T {
    var report: T = std.mem.zeroes(T);
    report.struct_size = @sizeOf(T);
    return report;
}

/// Looks at the machine.
pub fn hardware() Error!Hardware {
    var out: Hardware = .{ .raw = sized(c.adead_hardware) };
    try check(c.adead_hardware_report(&out.raw));
    return out;
}

/// How many GPUs this machine has, of those that `ADEAD_VISIBLE_DEVICES` leaves.
pub fn gpuCount() Error!usize {
    return call.asked(usize, c.adead_gpu_count, .{});
}

/// What GPU `index` is: the preferred one is 0. It is not opened.
pub fn gpuInfo(index: usize) Error!DeviceInfo {
    var out: DeviceInfo = .{ .raw = sized(c.adead_device_info) };
    try check(c.adead_gpu_info(index, &out.raw));
    return out;
}

/// Through how many backends there is GPU `index`.
pub fn gpuBackendCount(index: usize) Error!usize {
    return call.asked(usize, c.adead_gpu_backend_count, .{index});
}

/// What GPU `index` is through its backend `backend`.
pub fn gpuBackendInfo(index: usize, backend: usize) Error!DeviceInfo {
    var out: DeviceInfo = .{ .raw = sized(c.adead_device_info) };
    try check(c.adead_gpu_backend_info(index, backend, &out.raw));
    return out;
}
