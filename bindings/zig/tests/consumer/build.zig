//! A project that depends on adead. The package's options choose between both ways to link it; an option that is
//! null is not passed on.

const std = @import("std");

pub fn build(b: *std.Build) void {
    const target = b.standardTargetOptions(.{});
    const optimize = b.standardOptimizeOption(.{});
    const adead = b.dependency("adead", .{
        .target = target,
        .optimize = optimize,
        .linkage = b.option(std.builtin.LinkMode, "linkage", "How to link adead") orelse .static,
        .@"adead-prefix" = b.option([]const u8, "adead-prefix", "Where adead is installed"),
        .@"cargo-target-dir" = b.option([]const u8, "cargo-target-dir", "Where cargo builds adead"),
    });
    const exe = b.addExecutable(.{
        .name = "consumer",
        .root_module = b.createModule(.{
            .root_source_file = b.path("src/main.zig"),
            .target = target,
            .optimize = optimize,
            .imports = &.{.{ .name = "adead", .module = adead.module("adead") }},
        }),
    });
    b.installArtifact(exe);
    b.step("run", "Run it").dependOn(&b.addRunArtifact(exe).step);
}
