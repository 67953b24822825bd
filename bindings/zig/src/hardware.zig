//! A description of this machine: processor, memory, GPUs.

const std = @import("std");
const c = @import("c");
const enums = @import("enums.zig");
const Error = enums.Error;
const call = @import("call.zig");
const check = enums.check;

/// Returns the text in a fixed array of the C interface.
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
    /// Returns the instruction-set extensions that kernels may use, separated by spaces.
    pub fn cpuFeatures(self: *const Hardware) [:0]const u8 {
        return text(&self.raw.cpu_features);
    }
    /// Returns the caches, from the nearest level.
    pub fn caches(self: *const Hardware) []const c.adead_cache {
        return self.raw.cpu_caches[0..self.raw.cpu_cache_count];
    }
    /// Returns the mode that suits the machine.
    pub fn recommended(self: *const Hardware) enums.Mode {
        return @enumFromInt(self.raw.recommended);
    }
};

/// Describes a device; `raw` has the numbers.
pub const DeviceInfo = struct {
    raw: c.adead_device_info,

    /// Returns the name that opens it: "cpu", "cuda:0", "vulkan:1".
    pub fn id(self: *const DeviceInfo) [:0]const u8 {
        return text(&self.raw.id);
    }
    /// Returns the vendor's name for it.
    pub fn name(self: *const DeviceInfo) [:0]const u8 {
        return text(&self.raw.name);
    }
    /// Returns what its kernels are built for.
    pub fn arch(self: *const DeviceInfo) [:0]const u8 {
        return text(&self.raw.arch);
    }
    pub fn vendor(self: *const DeviceInfo) [:0]const u8 {
        return text(&self.raw.vendor);
    }
    pub fn driver(self: *const DeviceInfo) [:0]const u8 {
        return text(&self.raw.driver);
    }
    /// Returns its address on the PCI bus, or "".
    pub fn bus(self: *const DeviceInfo) [:0]const u8 {
        return text(&self.raw.bus);
    }
    pub fn kind(self: *const DeviceInfo) enums.DeviceKind {
        return @enumFromInt(self.raw.kind);
    }
    pub fn contract(self: *const DeviceInfo) enums.ContractLevel {
        return @enumFromInt(self.raw.contract);
    }
    /// Returns its unique identifier; null for a CPU.
    pub fn uuid(self: *const DeviceInfo) ?[16]u8 {
        return if (self.raw.has_uuid != 0) self.raw.uuid else null;
    }
};

/// Returns an empty report, with its size set.
pub fn sized(comptime T: type) T {
    var report: T = std.mem.zeroes(T);
    report.struct_size = @sizeOf(T);
    return report;
}

/// Describes the machine.
pub fn hardware() Error!Hardware {
    var out: Hardware = .{ .raw = sized(c.adead_hardware) };
    try check(c.adead_hardware_report(&out.raw));
    return out;
}

/// Returns how many GPUs this machine has, among those that `ADEAD_VISIBLE_DEVICES` allows.
pub fn gpuCount() Error!usize {
    return call.asked(usize, c.adead_gpu_count, .{});
}

/// Describes GPU `index`; 0 is the preferred one. Opens none.
pub fn gpuInfo(index: usize) Error!DeviceInfo {
    var out: DeviceInfo = .{ .raw = sized(c.adead_device_info) };
    try check(c.adead_gpu_info(index, &out.raw));
    return out;
}

/// Returns how many backends see GPU `index`.
pub fn gpuBackendCount(index: usize) Error!usize {
    return call.asked(usize, c.adead_gpu_backend_count, .{index});
}

/// Describes GPU `index` as its backend `backend` sees it.
pub fn gpuBackendInfo(index: usize, backend: usize) Error!DeviceInfo {
    var out: DeviceInfo = .{ .raw = sized(c.adead_device_info) };
    try check(c.adead_gpu_backend_info(index, backend, &out.raw));
    return out;
}
