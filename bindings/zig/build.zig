//! The package `adead` for Zig projects. Cargo builds the library from the sources around this folder, or the build
//! takes an installed one:
//!
//!     const adead = b.dependency("adead", .{ .target = target, .optimize = optimize });
//!     exe.root_module.addImport("adead", adead.module("adead"));

const std = @import("std");
const compat = @import("build/compat.zig");

/// The folders of a C interface and of its library.
pub const Library = struct { include: std.Build.LazyPath, folder: std.Build.LazyPath };

/// How cargo builds a library.
pub const Cargo = struct {
    /// The program cargo.
    program: []const u8,
    /// Cargo's target folder; null is target/ of the sources.
    folder: ?[]const u8,
    profile: []const u8 = "release",
    package: []const u8,
    arguments: []const []const u8 = &.{},

    /// Reads the options of a package for `package`.
    pub fn options(b: *std.Build, package: []const u8) Cargo {
        return .{
            .program = b.option([]const u8, "cargo", "The cargo that builds it (default: cargo)") orelse "cargo",
            .folder = b.option([]const u8, "cargo-target-dir", "Where cargo builds (default: target/ of the sources)"),
            .package = package,
        };
    }

    /// Runs cargo. It always runs, because only cargo knows whether something changed.
    pub fn run(self: Cargo, b: *std.Build) *std.Build.Step {
        const step = b.addSystemCommand(&.{ self.program, "build", "--locked", "--quiet", "-p", self.package, "--profile", self.profile });
        step.addArgs(self.arguments);
        step.addArg("--manifest-path");
        step.addFileArg(b.path("../../Cargo.toml"));
        step.addArg("--target-dir");
        step.addDirectoryArg(self.to(b));
        step.setName(b.fmt("cargo build {s}", .{self.package}));
        step.has_side_effects = true;
        return &step.step;
    }

    /// Returns a file that cargo builds.
    pub fn file(self: Cargo, b: *std.Build, name: []const u8) std.Build.LazyPath {
        return self.to(b).path(b, b.fmt("{s}/{s}", .{ self.profile, name }));
    }

    fn to(self: Cargo, b: *std.Build) std.Build.LazyPath {
        return if (self.folder) |it| .{ .cwd_relative = it } else b.path("../../target");
    }
};

/// The files that the package of models compiles too.
const shared = .{ "call.zig", "callback.zig", "enums.zig", "failure.zig", "shared.zig" };

pub fn build(b: *std.Build) void {
    const target = b.standardTargetOptions(.{});
    const optimize = b.standardOptimizeOption(.{});
    const linkage = b.option(std.builtin.LinkMode, "linkage", "How to link libadead (default: static)") orelse .static;
    const prefix = b.option([]const u8, "adead-prefix", "Where adead is installed (default: cargo builds it)");
    const cargo: Cargo = .options(b, "adead-artifact");
    const minimal = b.option(bool, "minimal", "Without CUDA, AVX-512, integer arithmetic, quantised matrices, profiles, messages, batches, settings files, programs and layers (default: false)") orelse false;
    const gradients = b.option(bool, "gradients", "With gradients of pipelines (default: false)") orelse false;
    const library = if (prefix) |it| installed(b, it) else built(b, cargo, minimal, gradients);
    // For projects that translate the header themselves, for example by @cImport.
    b.addNamedLazyPath("include", library.include);
    b.addNamedLazyPath("lib", library.folder);
    // Copies, because a file can't belong to two modules of one program.
    const copies = b.addWriteFiles();
    inline for (shared) |name| _ = copies.addCopyFile(b.path("src/" ++ name), name);
    b.addNamedLazyPath("shared", copies.getDirectory());

    const header = b.addTranslateC(.{
        .root_source_file = library.include.path(b, "adead.h"),
        .target = target,
        .optimize = optimize,
    });
    const c = header.addModule("c");
    c.link_libc = true;
    switch (linkage) {
        .static => {
            c.addObjectFile(library.folder.path(b, "libadead.a"));
            c.linkSystemLibrary("unwind", .{});
        },
        .dynamic => {
            c.addLibraryPath(library.folder);
            c.addRPath(library.folder);
            c.linkSystemLibrary("adead", .{ .use_pkg_config = .no });
        },
    }
    const adead = b.addModule("adead", .{
        .root_source_file = b.path("src/adead.zig"),
        .target = target,
        .optimize = optimize,
        .imports = &.{.{ .name = "c", .module = c }},
    });
    tests(b, adead, library.include, minimal, gradients, target, optimize);
}

/// Returns the folders of an installed library.
pub fn installed(b: *std.Build, prefix: []const u8) Library {
    const root: std.Build.LazyPath = .{ .cwd_relative = prefix };
    return .{ .include = root.path(b, "include"), .folder = root.path(b, "lib") };
}

/// Builds the library with cargo.
fn built(b: *std.Build, options: Cargo, minimal: bool, gradients: bool) Library {
    var cargo = options;
    if (minimal) cargo.profile = "minimal";
    cargo.arguments = if (minimal and gradients)
        &.{ "--no-default-features", "--features", "autograd" }
    else if (minimal) &.{"--no-default-features"} else if (gradients) &.{ "--features", "autograd" } else &.{};
    const run = cargo.run(b);
    // Makes the static library's unwinder local to it, as cmake/build.cmake does.
    const own = b.addSystemCommand(&.{ "objcopy", "--localize-symbol=_Unwind_Backtrace" });
    own.addFileArg(cargo.file(b, "libadead.a"));
    const archive = own.addOutputFileArg("libadead.a");
    own.step.dependOn(run);
    // The shared library also has the file name that installed programs look for.
    const files = b.addWriteFiles();
    files.step.dependOn(run);
    const library = cargo.file(b, "libadead.so");
    _ = files.addCopyFile(library, "libadead.so");
    _ = files.addCopyFile(library, "libadead.so.0");
    _ = files.addCopyFile(archive, "libadead.a");
    return .{ .include = b.path("../../include"), .folder = files.getDirectory() };
}

/// `zig build test` runs tests/ and every conformance case. `zig build conformance -- --list` lists the cases.
fn tests(
    b: *std.Build,
    adead: *std.Build.Module,
    include: std.Build.LazyPath,
    minimal: bool,
    gradients: bool,
    target: std.Build.ResolvedTarget,
    optimize: std.builtin.OptimizeMode,
) void {
    const step = b.step("test", "Run the tests and the conformance cases");
    const on_cpu = program(b, "tests/api.zig", adead, target, optimize);
    const library = b.addOptions();
    library.addOption(bool, "minimal", minimal);
    library.addOption(bool, "gradients", gradients);
    on_cpu.addImport("library", library.createModule());
    on_cpu.addAnonymousImport("draws", .{ .root_source_file = b.path("../../tests/random/draws.txt") });
    const api = b.addRunArtifact(b.addTest(.{ .root_module = on_cpu }));
    step.dependOn(&api.step);
    const plain = b.step("api", "Run the tests of the API alone, and the gradients' cases where the library has gradients");
    plain.dependOn(&api.step);
    const gpus = b.step("gpu", "Run the tests of GPUs");
    const sentences = b.path("../../tests/sentences");
    // The program states its device. A variable that is added to the environment makes Zig 0.17 keep the environment
    // from the time when it configured the build, and with that the GPU's drivers.
    for ([_][2][]const u8{
        .{ "nn", "cpu" },      .{ "nn", "vulkan" },      .{ "safetensors", "cpu" },
        .{ "overlap", "cpu" }, .{ "overlap", "vulkan" },
    }) |which| {
        const layers = program(b, b.fmt("tests/{s}.zig", .{which[0]}), adead, target, optimize);
        const options = b.addOptions();
        options.addOption([]const u8, "device", which[1]);
        options.addOptionPath("model", sentences.path(b, "tiny/model.safetensors"));
        layers.addImport("options", options.createModule());
        for ([_][2][]const u8{
            .{ "tiny_model", "tiny/model.safetensors" },
            .{ "tiny_tokens", "tiny_tokens.json" },
            .{ "tiny_bits", "tiny_bits.npy" },
        }) |file| layers.addAnonymousImport(file[0], .{ .root_source_file = sentences.path(b, file[1]) });
        const run = b.addRunArtifact(b.addTest(.{ .name = b.fmt("{s}_{s}", .{ which[0], which[1] }), .root_module = layers }));
        if (std.mem.eql(u8, which[1], "cpu")) {
            step.dependOn(&run.step);
        } else {
            run.has_side_effects = true;
            gpus.dependOn(&run.step);
        }
    }

    papers(b, adead, .{ .cpu = step, .vulkan = gpus, .cuda = b.step("cuda", "Run the tests of GPUs through CUDA") }, target, optimize);

    const cases = b.addTranslateC(.{ .root_source_file = b.path("../c/tests/cases.h"), .target = target, .optimize = optimize });
    cases.addIncludePath(include);
    const root = program(b, "tests/conformance.zig", adead, target, optimize);
    root.addImport("cases", cases.createModule());
    root.addIncludePath(include);
    root.addCSourceFiles(.{ .root = b.path("../c/tests"), .files = &.{ "cases.c", "sha256.c" } });
    const runner = b.addExecutable(.{ .name = "conformance", .root_module = root });
    const all = b.addRunArtifact(runner);
    all.addDirectoryArg(b.path("../../tests/conformance/cases"));
    step.dependOn(&all.step);
    if (gradients) {
        const slopes = b.addRunArtifact(runner);
        slopes.addFileArg(b.path("../../tests/conformance/gradients.txt"));
        step.dependOn(&slopes.step);
        plain.dependOn(&slopes.step);
    }
    const some = b.addRunArtifact(runner);
    compat.passArguments(b, some);
    b.step("conformance", "The conformance runner, with arguments").dependOn(&some.step);

    // A separate step, because a software driver is slow. It is skipped on machines without a GPU.
    const kernels = b.addOptions();
    kernels.addOptionPath("vecadd", b.path("../../examples/kernels/vecadd.spv"));
    kernels.addOptionPath("reduce", b.path("../../examples/kernels/reduce.spv"));
    const on_gpu = program(b, "tests/gpu.zig", adead, target, optimize);
    on_gpu.addImport("kernels", kernels.createModule());
    const gpu = b.addRunArtifact(b.addTest(.{ .name = "gpu", .root_module = on_gpu }));
    gpu.has_side_effects = true;
    gpus.dependOn(&gpu.step);

    const examples = b.step("examples", "Run the examples");
    for ([_][]const u8{ "quickstart", "same_bits", "layers", "overlap", "guide" }) |name| {
        const example = program(b, b.fmt("examples/{s}.zig", .{name}), adead, target, optimize);
        const exe = b.addExecutable(.{ .name = name, .root_module = example });
        const install = b.addInstallArtifact(exe, .{});
        examples.dependOn(&install.step);
        const run = b.addRunArtifact(exe);
        // The folder in which the programs find the files that they open.
        run.setCwd(b.path("../.."));
        examples.dependOn(&run.step);
    }
    const flat = b.addExecutable(.{ .name = "flat", .root_module = program(b, "tests/flat.zig", adead, target, optimize) });
    b.step("flat", "100,000 cycles of everything leave no memory behind").dependOn(&b.addRunArtifact(flat).step);
}

/// Runs the first papers' calls, on each device in the step for that device.
fn papers(
    b: *std.Build,
    adead: *std.Build.Module,
    steps: struct { cpu: *std.Build.Step, vulkan: *std.Build.Step, cuda: *std.Build.Step },
    target: std.Build.ResolvedTarget,
    optimize: std.builtin.OptimizeMode,
) void {
    const examples = b.path("../../examples");
    inline for (.{ "cpu", "vulkan", "cuda" }) |device| {
        const root = program(b, "tests/papers.zig", adead, target, optimize);
        const options = b.addOptions();
        options.addOption([]const u8, "device", device);
        options.addOptionPath("spv", examples.path(b, "kernels/matmul.spv"));
        options.addOptionPath("ptx", examples.path(b, "kernels/matmul.ptx"));
        options.addOptionPath("program", examples.path(b, "programs/mlp.adead"));
        root.addImport("options", options.createModule());
        root.addAnonymousImport("mlp", .{ .root_source_file = examples.path(b, "programs/mlp.adead") });
        const run = b.addRunArtifact(b.addTest(.{ .name = "papers_" ++ device, .root_module = root }));
        run.has_side_effects = !std.mem.eql(u8, device, "cpu");
        @field(steps, device).dependOn(&run.step);
    }
}

fn program(
    b: *std.Build,
    path: []const u8,
    adead: *std.Build.Module,
    target: std.Build.ResolvedTarget,
    optimize: std.builtin.OptimizeMode,
) *std.Build.Module {
    return b.createModule(.{
        .root_source_file = b.path(path),
        .target = target,
        .optimize = optimize,
        .imports = &.{.{ .name = "adead", .module = adead }},
    });
}
