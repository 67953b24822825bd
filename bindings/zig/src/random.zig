//! Random tensors: the same numbers in every language and on every device.

const c = @import("c");
const call = @import("call.zig");
const Context = @import("context.zig").Context;
const Error = @import("enums.zig").Error;
const Tensor = @import("tensor.zig").Tensor;

/// Draws random tensors. Draws are numbered from 0. Each element depends only on the seed, the number of its draw and its
/// position (docs/contract.md, "Random tensors"). A generator with the same seed and number of draws therefore continues with
/// the same numbers. A draw that fails doesn't count.
pub const Random = struct {
    seed: u64,
    /// The number of draws so far.
    draws: u64 = 0,

    fn drawn(self: *Random, function: anytype, arguments: anytype) Error!Tensor {
        var raw: c.adead_random = .{ .seed = self.seed, .draws = self.draws };
        const tensor = try call.made(Tensor, function, .{&raw} ++ arguments);
        self.draws = raw.draws;
        return tensor;
    }

    /// Draws uniform numbers from `low` to below `high`, f32.
    pub fn uniform(self: *Random, context: Context, low: f64, high: f64, dims: []const usize) Error!Tensor {
        return self.drawn(c.adead_random_uniform, .{ context.handle, low, high, dims.ptr, dims.len });
    }

    /// Draws normal numbers with mean 0 and deviation 1, f32.
    pub fn standardNormal(self: *Random, context: Context, dims: []const usize) Error!Tensor {
        return self.drawn(c.adead_random_standard_normal, .{ context.handle, dims.ptr, dims.len });
    }

    /// Draws normal numbers, f32.
    pub fn normal(self: *Random, context: Context, mean: f32, deviation: f32, dims: []const usize) Error!Tensor {
        return self.drawn(c.adead_random_normal, .{ context.handle, mean, deviation, dims.ptr, dims.len });
    }

    /// Draws integers from `low` to below `high`, at most 2³² different ones, i64.
    pub fn integers(self: *Random, low: i64, high: i64, dims: []const usize) Error!Tensor {
        return self.drawn(c.adead_random_integers, .{ low, high, dims.ptr, dims.len });
    }

    /// Draws an order of the numbers below `count`, i64.
    pub fn permutation(self: *Random, count: usize) Error!Tensor {
        return self.drawn(c.adead_random_permutation, .{count});
    }
};
