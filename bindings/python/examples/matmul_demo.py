"""Multiplies two matrices on the best GPU and compares the product with the CPU's. The kernel is the caller's
own; its sizes are specialization constants or push constants.

    python matmul_demo.py [KERNEL]: examples/kernels/matmul.spv, through Vulkan, or matmul.ptx, through CUDA;
    their sources lie beside them
"""

import pathlib
import sys

import adead

KERNELS = pathlib.Path(__file__).resolve().parents[3] / "examples/kernels"
M, N, K = 300, 500, 400


def main() -> int:
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else KERNELS / "matmul.spv"
    ptx = path.suffix == ".ptx"
    try:
        gpu = adead.GPU("cuda" if ptx else "vulkan")
    except adead.BackendUnavailableError as error:
        print(f"matmul_demo: no GPU to run on: {error}", file=sys.stderr)
        return 1
    if ptx:
        # This kernel of the module takes its sizes as push constants.
        kernel = gpu.create_pipeline(gpu.load_ptx(path), entry="matmul_mnk")
    else:
        # The kernel takes its sizes from the lengths of its buffers. Constants make a variant for these sizes
        # alone.
        kernel = gpu.create_pipeline(gpu.load_spirv(path), constants={0: M, 1: N, 2: K})
    push = (M, N, K) if ptx else None
    x = adead.Tensor([i % 101 / 101 - 0.5 for i in range(M * K)], shape=(M, K))
    y = adead.Tensor([i % 103 / 103 - 0.5 for i in range(K * N)], shape=(K, N))
    a, b, c = gpu.buffer(x), gpu.buffer(y), gpu.buffer(size=M * N)
    groups = (-(-N // 16), -(-M // 16), 1)

    # One run to warm up, because drivers finish compiling a kernel at its first run.
    gpu.dispatch(kernel, a, b, c, groups=groups, push=push)
    gpu.wait()

    # The caller's own stream measures the time.
    with gpu.stream() as stream:
        begin = stream.timestamp()
        stream.dispatch(kernel, a, b, c, groups=groups, push=push)
        end = stream.timestamp()
    nanoseconds = end.since(begin)

    # The kernel sums in its own order and is not an operation of adead, so the last bits may differ.
    expected = adead.Context("cpu").matmul(x, y)
    difference = (c.read(shape=(M, N)) - expected).abs().max().item()
    print(f"{M}x{N}x{K} on {gpu.device.name}: {nanoseconds / 1e6:.3f} ms")
    print(f"checked all of {M * N} elements: they differ by {difference:.2e} at most")
    return 0 if difference < 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())
