//! A project that reads adead.h by @cImport, which Zig has until 0.16, and links the library
//! itself.

const std = @import("std");

pub fn build(b: *std.Build) void {
    const target = b.standardTargetOptions(.{});
    const optimize = b.standardOptimizeOption(.{});
    const folder = b.option([]const u8, "cargo-target-dir", "Where cargo builds adead");
    const adead = b.dependency("adead", .{ .target = target, .optimize = optimize, .@"cargo-target-dir" = folder });
    const root = b.createModule(.{
        .root_source_file = b.path("src/main.zig"),
        .target = target,
        .optimize = optimize,
        .link_libc = true,
    });
    root.addIncludePath(adead.namedLazyPath("include"));
    root.addObjectFile(adead.namedLazyPath("lib").path(b, "libadead.a"));
    root.linkSystemLibrary("unwind", .{});
    const exe = b.addExecutable(.{ .name = "cimport", .root_module = root });
    b.step("run", "Run it").dependOn(&b.addRunArtifact(exe).step);
}
