//! The package `adead_models` for Zig projects. Cargo builds the library from the sources around this folder, or the
//! build takes an installed one:
//!
//!     const models = b.dependency("adead_models", .{ .target = target, .optimize = optimize });
//!     exe.root_module.addImport("adead_models", models.module("adead_models"));

const std = @import("std");
const adead = @import("adead");

pub fn build(b: *std.Build) void {
    const target = b.standardTargetOptions(.{});
    const optimize = b.standardOptimizeOption(.{});
    const prefix = b.option([]const u8, "adead-prefix", "Where adead is installed, with its models (default: cargo builds it)");
    const cargo: adead.Cargo = .options(b, "adead-models-c");
    const library = if (prefix) |it| adead.installed(b, it) else built(b, cargo);
    // For projects that translate the header themselves.
    b.addNamedLazyPath("include", library.include);
    b.addNamedLazyPath("lib", library.folder);

    const header = b.addTranslateC(.{
        .root_source_file = library.include.path(b, "adead/models.h"),
        .target = target,
        .optimize = optimize,
    });
    header.addIncludePath(library.include);
    const c = header.addModule("c");
    c.link_libc = true;
    c.addLibraryPath(library.folder);
    c.addRPath(library.folder);
    c.linkSystemLibrary("adead_models", .{ .use_pkg_config = .no });
    // The package of tensors has the code for errors and calls. Only these of its sources are used.
    const base = b.dependency("adead", .{ .target = target, .optimize = optimize });
    const shared = b.createModule(.{
        .root_source_file = base.namedLazyPath("shared").path(b, "shared.zig"),
        .target = target,
        .optimize = optimize,
        .imports = &.{.{ .name = "c", .module = c }},
    });
    const models = b.addModule("adead_models", .{
        .root_source_file = b.path("src/adead_models.zig"),
        .target = target,
        .optimize = optimize,
        .imports = &.{ .{ .name = "c", .module = c }, .{ .name = "shared", .module = shared } },
    });
    tests(b, models, target, optimize);
}

/// Builds the library with cargo.
fn built(b: *std.Build, cargo: adead.Cargo) adead.Library {
    const files = b.addWriteFiles();
    files.step.dependOn(cargo.run(b));
    // Also under the file name that programs look for.
    const library = cargo.file(b, "libadead_models.so");
    _ = files.addCopyFile(library, "libadead_models.so");
    _ = files.addCopyFile(library, "libadead_models.so.0");
    return .{ .include = b.path("../../include"), .folder = files.getDirectory() };
}

/// `zig build test` runs tests/, `zig build examples` the examples.
fn tests(
    b: *std.Build,
    models: *std.Build.Module,
    target: std.Build.ResolvedTarget,
    optimize: std.builtin.OptimizeMode,
) void {
    const step = b.step("test", "Run the tests");
    const text = b.path("../../tests/text");
    const sentences = b.path("../../tests/sentences");
    const training = b.path("../../tests/train");
    for ([_][]const u8{ "text", "sentences", "gguf", "train" }) |name| {
        const root = program(b, b.fmt("tests/{s}.zig", .{name}), models, target, optimize);
        const options = b.addOptions();
        options.addOptionPath("llama", text.path(b, "llama.gguf"));
        options.addOptionPath("qwen3", text.path(b, "qwen3.gguf"));
        options.addOptionPath("no_model", text.path(b, "make_tiny.py"));
        options.addOptionPath("folder_config", text.path(b, "llama-hf/config.json"));
        options.addOptionPath("tiny_config", sentences.path(b, "tiny/config.json"));
        root.addImport("options", options.createModule());
        for ([_]struct { []const u8, std.Build.LazyPath }{
            .{ "answer", text.path(b, "answer.txt") },
            .{ "answer_tokens", text.path(b, "answer.tokens") },
            .{ "blocks", text.path(b, "blocks.txt") },
            .{ "tiny_sentences", sentences.path(b, "tiny.txt") },
            .{ "tiny_hash", sentences.path(b, "tiny.sha256") },
            .{ "trainer", training.path(b, "trainer.json") },
        }) |file| root.addAnonymousImport(file[0], .{ .root_source_file = file[1] });
        step.dependOn(&b.addRunArtifact(b.addTest(.{ .name = name, .root_module = root })).step);
    }

    const examples = b.step("examples", "Run the examples");
    for ([_][]const u8{ "generate", "train" }) |name| {
        const exe = b.addExecutable(.{ .name = name, .root_module = program(b, b.fmt("examples/{s}.zig", .{name}), models, target, optimize) });
        examples.dependOn(&b.addInstallArtifact(exe, .{}).step);
        const run = b.addRunArtifact(exe);
        // The folder of the file that the program names.
        run.setCwd(b.path("../.."));
        examples.dependOn(&run.step);
    }
}

fn program(
    b: *std.Build,
    path: []const u8,
    models: *std.Build.Module,
    target: std.Build.ResolvedTarget,
    optimize: std.builtin.OptimizeMode,
) *std.Build.Module {
    return b.createModule(.{
        .root_source_file = b.path(path),
        .target = target,
        .optimize = optimize,
        .imports = &.{.{ .name = "adead_models", .module = models }},
    });
}
