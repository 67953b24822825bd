//! The differences between the build systems of Zig 0.15, 0.16 and 0.17.

const std = @import("std");

/// Returns the arguments after `--` on the command line.
pub fn passArguments(b: *std.Build, run: *std.Build.Step.Run) void {
    if (@hasDecl(std.Build.Step.Run, "addPassthruArgs")) return run.addPassthruArgs();
    if (b.args) |arguments| run.addArgs(arguments);
}
