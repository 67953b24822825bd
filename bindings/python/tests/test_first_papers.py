"""The first papers: each call that they name, with the names of their arguments, does what its name says."""

import numpy
import pytest

import adead


def matrices(n):
    random = numpy.random.default_rng(n)
    return [random.standard_normal((n, n), dtype=numpy.float32) for _ in range(2)]


@pytest.fixture(scope="module", params=["vulkan", "cuda"])
def matmul(request, kernels):
    """A GPU through each backend, and the kernel of C = A B for it."""
    try:
        gpu = adead.GPU(request.param)
    except adead.BackendUnavailableError as error:
        pytest.skip(str(error))
    load = {"vulkan": lambda: gpu.load_spirv(kernels / "matmul.spv"), "cuda": lambda: gpu.load_ptx(kernels / "matmul.ptx")}
    return gpu, load[request.param]()


def test_their_program(matmul):
    """As written, except for the kernel's path: it computes the whole product, and writes nothing beyond the buffer."""
    N = 512
    (gpu, kernel), (data_a, data_b) = matmul, matrices(N)

    A = gpu.buffer(data_a)
    B = gpu.buffer(data_b)
    C = gpu.buffer(size=N * N)
    gpu.dispatch(kernel, A, B, C, groups=(32, 32, 1))
    gpu.wait()
    result = C.read()

    assert (result.size, result.dtype, C.size, C.nbytes) == (N * N, "f32", N * N, 4 * N * N)
    expected = data_a.astype(numpy.float64) @ data_b.astype(numpy.float64)
    numpy.testing.assert_allclose(numpy.asarray(result).reshape(N, N), expected, rtol=1e-4, atol=1e-3)


def test_what_machine_this_is():
    report = adead.hardware()
    assert report.recommended_mode == report.recommended and report.recommended_mode in ("cpu", "gpu", "hybrid")
    assert report.cpu.threads >= 1 and report.memory_total > 0 and isinstance(report.gpus, list)


def test_a_recommended_mode_is_a_device_name(gpu):
    for mode in ("cpu", "gpu", "hybrid", adead.hardware().recommended_mode):
        assert adead.Context(mode).relu(adead.Tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]


def test_devices_are_opened_by_name():
    assert adead.Context("cpu").device.id == "cpu"
    assert "cpu" in [device.id for device in adead.Context("auto").devices]


def test_memory_on_a_device(gpu):
    data = numpy.arange(6, dtype=numpy.float32)
    with gpu.buffer(data) as buffer:
        assert buffer.read().tolist() == data.tolist()
        buffer.write(data[::-1])
        assert buffer.read().tolist() == data[::-1].tolist()
    empty = gpu.buffer(size=6)
    assert empty.read().tolist() == [0.0] * 6
    empty.free()
    with pytest.raises(adead.InvalidArgumentError, match="freed"):
        empty.read()


def test_a_kernel_of_ones_own(matmul):
    gpu, kernel = matmul
    pipeline = gpu.create_pipeline(kernel)
    assert pipeline.name == kernel.name and len(pipeline.parameters) == 3 and pipeline.push_bytes == 0


def test_order(gpu):
    x, y = gpu.buffer([-1.0, 2.0]), gpu.buffer(size=2)
    stream = gpu.stream()
    stream.run("relu", [x], y)
    event, fence = stream.event(), gpu.fence()
    gpu.stream().wait_for(event)
    event.wait()
    fence.wait()
    stream.wait()
    gpu.wait()
    assert y.read().tolist() == [0.0, 2.0] and gpu.event().wait() is None


def test_a_chain_is_its_operations():
    x, w1, w2 = (adead.Tensor(numpy.float32(values)) for values in ([[1, -2]], [[1, 0], [0, 1]], [[2], [3]]))
    ctx = adead.Context("cpu")
    chained = ctx.pipeline().matmul(x, w1).relu().matmul(w2).execute()
    assert chained.tolist() == [[2.0]] == ctx.matmul(ctx.relu(ctx.matmul(x, w1)), w2).tolist()


def test_a_program_runs(programs):
    ctx = adead.Context("cpu")
    program = adead.Program.load(programs / "mlp.adead")
    assert ctx.load_adead(programs / "mlp.adead").encode() == program.encode() == adead.Program.decode(program.encode()).encode()
    inputs = {slot.name: adead.Tensor.zeros(slot.shape, slot.dtype) for slot in program.slots if slot.direction == "in"}
    assert program.run(inputs, context=ctx).outputs


def test_the_decision():
    ctx = adead.Context("cpu")
    assert ctx.select(1024) == "cpu"
    x = adead.Tensor.zeros((4, 4))
    assert ctx.explain("matmul", [x, x]).device == "cpu"


def test_layouts():
    data = numpy.arange(64 * 96, dtype=numpy.float32).reshape(64, 96)
    optimizer = adead.GPUOptimizer()
    tiled = adead.optimize_matrix(data, tile_size=32)
    assert tiled.tobytes() == optimizer.optimize_matrix(data, tile_size=32).tobytes() == optimizer.optimize_matrix(data).tobytes()
    assert tiled.tobytes() == adead.optimize_matrix(data.ravel(), 64, 96, 32).tobytes()
    expected = data.reshape(2, 32, 3, 32).transpose(0, 2, 1, 3).ravel()
    assert tiled.tolist() == expected.tolist()
    assert adead.restore_matrix(tiled, 64, 96, tile_size=32).tolist() == data.ravel().tolist()
    assert optimizer.align(data[0, :10], alignment=64).tolist() == [*range(10), *[0.0] * 6]
    assert adead.align(data[0, :10]).nbytes == 256
    assert optimizer.coalesce(data[0, :6], stride=2).tolist() == [0, 2, 4, 1, 3, 5] and repr(optimizer) == "GPUOptimizer()"
    with pytest.raises(adead.ShapeMismatchError, match="rows and cols"):
        adead.optimize_matrix(data.ravel(), tile_size=32)
    with pytest.raises(adead.InvalidArgumentError, match="or neither"):
        adead.optimize_matrix(data, 64)
