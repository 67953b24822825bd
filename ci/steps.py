"""The steps of ci/test and ci/full. The step that should begin first is at the top."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    name: str
    title: str
    # A line of bash, run from the project's root; None if the step is not part of ci/test or of ci/full. Exit status 77: it can't
    # run here, and said why.
    test: str | None
    full: str | None
    # Steps that must have ended before, if they run in the same call.
    after: tuple[str, ...] = ()
    # Resources that only one step at a time may use: cargo's folders, which cargo locks.
    holds: tuple[str, ...] = ()
    # Whether nothing may run beside it.
    alone: bool = False
    # Paths that later steps use, from the root; {cargo} is cargo's folder. With --keep-going, later steps run only if these
    # exist.
    leaves: tuple[str, ...] = ()


def both(name, title, command, **more):
    return Step(name, title, command, command, **more)


def script(name, title, path, **more):
    """Makes a step from a script that does more with --full."""
    return Step(name, title, path, f"{path} --full", **more)


# As released, whatever ci/test has set: with link-time optimisation, in cargo's usual folder.
RELEASED = "env -u CARGO_TARGET_DIR -u CARGO_PROFILE_RELEASE_LTO -u CARGO_PROFILE_RELEASE_CODEGEN_UNITS"

STEPS = [
    script("tools", "what the steps need is installed", "ci/tools", alone=True),
    both("format", "sources are formatted, versions are one, guides show what runs",
         "cargo fmt --all --check; ci/versions; ci/guide; ci/guide --self-test"),
    both("build", "Rust's tests, examples and programs are built", "ci/rust-test", after=("format",), holds=("debug",),
         leaves=("{cargo}/debug/adead", "{cargo}/debug/adead-soak")),
    both("libraries", "what each language loads is built", "ci/libraries", after=("format",), holds=("release",),
         leaves=("{cargo}/release/libadead.so", "{cargo}/release/adead")),
    script("cuda", "CUDA's kernels on the processor", "ci/cuda-emulated", after=("build",)),
    script("c", "C: header, CMake, pkg-config, symbols", "ci/c-test", after=("libraries",),
           leaves=("target/c/bindings/c/tests/conformance", "target/c/bindings/c/tests/api_papers")),
    script("lavapipe", "Vulkan on Mesa's software GPU: the validation layer says nothing", "ci/lavapipe", after=("build", "c")),
    script("zig", "Zig", "ci/zig-test", after=("libraries",)),
    both("rust", "Rust: tests, documentation's examples", "ci/rust-test --all", after=("build",), holds=("debug",)),
    script("python", "Python: module, types, examples", "ci/python-test", after=("libraries",)),
    script("node", "Node.js: modules, types, packages", "ci/node-test", after=("libraries",)),
    script("cpp", "C++17 and C++20, with exceptions and without", "ci/cpp-test", after=("libraries",),
           leaves=("target/cpp/gcc/bindings/cpp/tests/cpp_conformance_17",)),
    both("bundle", "the bundle for GPU machines, on what stands in for GPUs", "ci/gpu-pack test", after=("build", "c", "cuda")),
    both("lint", "clippy and documentation without a warning", "ci/lint", after=("build", "rust", "cuda", "lavapipe"), holds=("debug",)),
    both("minimal", "the C library without what is optional: size, conformance", f"{RELEASED} ci/minimal", after=("libraries",)),
    both("recipes", "packages of Conan and vcpkg from the checkout", "ci/recipes", after=("libraries", "minimal")),
    both("gradients", "the C library with gradients, from C, C++ and Zig", "ci/gradients", after=("zig",)),
    both("models", "a real model gives sentence-transformers' values, and one hash in every language", "ci/models",
         after=("build", "c", "cpp", "python", "node")),
    both("cluster", "jobs on Ray and Dask, training over MPI: one hash, also when workers are killed", "ci/cluster", after=("libraries", "python")),
    script("text", "a real language model: one hash however its answers are computed", "ci/text", after=("build",)),
    script("train", "networks learn digits and texts: one hash of their weights, ONNX's numbers", "ci/train", after=("libraries", "python")),
    both("ids", "every language runs the same conformance cases", "ci/same-ids", after=("c", "cpp", "python", "node", "zig", "models")),
    # Late: cargo takes the clone's crates for this folder's, so steps after it compile again.
    both("install", "each package from a clean clone, as its guide says first", "ci/install", after=("libraries", "zig")),
    both("readme", "what the README shows", "ci/readme", after=("libraries",)),
    both("release", "every instruction set, vector instructions inlined", 'ci/inlined; "${CARGO_TARGET_DIR:-target}/release/adead" '
         "verify --all-isas", after=("libraries",)),
    both("docs", "links lead somewhere, plots show the log's numbers", "ci/docs"),
    both("report", "the report in a browser", "ci/report", after=("libraries", "cuda")),
    both("oracle", "the oracle agrees with itself and with the cases", "python3 tests/conformance/oracle/selftest.py; "
         "python3 tests/conformance/oracle/generate.py --check; python3 tests/random/draws.py --check"),
    both("kernels", "the SPIR-V is what its sources give", "ci/kernels --check"),
    both("cuda-kernels", "the PTX and machine code are what their sources give", "ci/cuda-kernels --check"),
    Step("site", "the site with each language's reference, in a browser", None, "ci/docs --full", after=("python", "zig"), holds=("debug",)),
    Step("levels", "the same bits at other optimisation levels", None, "ci/levels", holds=("debug",)),
    Step("gguf", "ten million mutated GGUF files: no panic, little memory", None,
         "ADEAD_EXHAUSTIVE=1 ci/rust-test models:gguf_campaign", after=("build",), holds=("debug",)),
    Step("aarch64", "NEON", None, "ci/aarch64", holds=("debug",)),
    Step("sanitize", "core and facade under AddressSanitizer", None, "ci/sanitize", holds=("debug",)),
    Step("packages", "every package, installed elsewhere; one hash; sizes", None, "ci/release-check", after=("ids", "models")),
]  # fmt: skip
