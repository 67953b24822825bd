//! A project that depends on adead and on its models. An option that is null is not passed on.

const std = @import("std");

pub fn build(b: *std.Build) void {
    const target = b.standardTargetOptions(.{});
    const optimize = b.standardOptimizeOption(.{});
    const prefix = b.option([]const u8, "adead-prefix", "Where adead is installed");
    const folder = b.option([]const u8, "cargo-target-dir", "Where cargo builds adead");
    const exe = b.addExecutable(.{
        .name = "models_consumer",
        .root_module = b.createModule(.{
            .root_source_file = b.path("src/main.zig"),
            .target = target,
            .optimize = optimize,
        }),
    });
    inline for (.{ "adead", "adead_models" }) |name| {
        const package = b.dependency(name, .{
            .target = target,
            .optimize = optimize,
            .@"adead-prefix" = prefix,
            .@"cargo-target-dir" = folder,
        });
        exe.root_module.addImport(name, package.module(name));
    }
    b.installArtifact(exe);
    b.step("run", "Run it").dependOn(&b.addRunArtifact(exe).step);
}
