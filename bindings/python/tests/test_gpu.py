"""Buffers, kernels, streams: on the CPU's buffers everywhere, and on a GPU if there is one (Mesa's software GPU
works)."""

import dataclasses
import shutil
import struct

import numpy
import pytest

import adead


@pytest.fixture(params=["cpu", "gpu"])
def ctx(request):
    return adead.Context("cpu") if request.param == "cpu" else request.getfixturevalue("gpu")


def test_buffers(ctx):
    data = numpy.arange(6, dtype=numpy.int32).reshape(2, 3)
    buffer = ctx.buffer(data)
    assert (buffer.size, buffer.nbytes, buffer.dtype, buffer.shape) == (6, 24, "i32", (2, 3))
    assert buffer.device == ctx.device.id
    assert buffer.read().tolist() == data.tolist() and buffer.read_bytes() == data.tobytes()
    assert buffer.read(shape=6).shape == (6,) and buffer.read("f32", (3, 2)).dtype == "f32"
    assert buffer.read(offset=12).tolist() == [3, 4, 5] and buffer.read_bytes(4, 8) == data.tobytes()[4:12]
    buffer.write([7, 8], offset=4)
    assert buffer.read().tolist() == [[0, 7, 8], [3, 4, 5]]
    assert ctx.buffer(data.T).read().tolist() == data.T.tolist()
    assert ctx.buffer([1.0, 2.0], dtype="bf16").read().tolist() == [1.0, 2.0]
    assert ctx.buffer(size=3).read().tolist() == [0.0, 0.0, 0.0] == ctx.buffer(nbytes=12).read().tolist()
    assert (ctx.buffer(size=2, dtype="i64").shape, ctx.buffer(size=2, dtype=numpy.int64).nbytes) == ((2,), 16)
    assert (ctx.buffer(nbytes=16, dtype="i64").shape, ctx.buffer(size=0).nbytes) == ((2,), 0)
    odd = ctx.buffer(nbytes=7)
    assert odd.read_bytes() == bytes(7)
    with pytest.raises(adead.InvalidArgumentError, match="7 bytes"):
        odd.read()
    for call in (
        lambda: buffer.write([1] * 7),
        lambda: buffer.read(offset=28),
        lambda: buffer.read_bytes(25, 1),
        lambda: buffer.read(shape=7),
    ):
        with pytest.raises(adead.InvalidArgumentError):
            call()
    both = lambda: ctx.buffer(size=1, nbytes=4)  # noqa: E731
    for call in (ctx.buffer, lambda: ctx.buffer([1.0], size=4), lambda: ctx.buffer(object()), both):
        with pytest.raises(TypeError):
            call()
    for size in (1 << 62, 1 << 63):
        with pytest.raises((adead.InvalidArgumentError, adead.OutOfMemoryError)):
            ctx.buffer(size=size, dtype="i64")


def test_numbers_in_a_buffer_are_f32(ctx):
    for data in ([1, 2, 3], (1, 2, 3), [numpy.int64(1), 2, 3.0]):
        assert (ctx.buffer(data).dtype, ctx.buffer(data).read().tolist()) == ("f32", [1.0, 2.0, 3.0])
    assert ctx.buffer([1, 2, 3], dtype="i64").read().tolist() == [1, 2, 3]
    assert ctx.buffer(numpy.array([0.1, 1e300])).read().tolist() == [numpy.float32(0.1), float("inf")]
    for number in (1024, 3.0, numpy.int64(4), numpy.float32(2)):
        with pytest.raises(TypeError, match="size="):
            ctx.buffer(number)


def test_what_a_buffer_and_a_stream_say(ctx):
    buffer = ctx.buffer([[1, 2]], dtype="i32")
    assert repr(buffer) == f"Buffer(i32[1, 2], 8 bytes on {ctx.device.id})"
    stream = ctx.stream()
    assert repr(stream) == f"Stream({ctx.device.id})" and stream.device == ctx.device.id
    event = stream.event()
    event.wait()
    assert repr(event) == f"Event({ctx.device.id}, reached)" and repr(ctx.fence()).startswith("Event(")
    buffer.free()
    assert repr(buffer).endswith("freed)")
    for call in (buffer.read, buffer.free, lambda: buffer.write([1])):
        with pytest.raises(adead.InvalidArgumentError, match="freed"):
            call()
    with ctx.buffer([1.0]) as inside:
        pass
    with pytest.raises(adead.InvalidArgumentError):
        inside.read()


def test_streams(ctx):
    x, y = ctx.buffer([[1.0, -2.0], [-3.0, 4.0]]), ctx.buffer(size=4)
    with ctx.stream() as stream:
        stream.run("relu", [x], y.view(shape=(2, 2)))
        event = stream.event()
        download = stream.download(y)
    event.wait()
    event.wait(1.0)
    assert event.query() and download.query() and stream.query()
    assert struct.unpack("4f", download.read()) == (1, 0, 0, 4)
    with pytest.raises(adead.InvalidArgumentError, match="taken before"):
        download.read()
    stream.upload(y, numpy.float32([5, 6]), 8)
    stream.copy(y, x, 8, source_offset=8, target_offset=0)
    stream.clear(y, 0, 8)
    stream.run("sum", [x], y.view(shape=(2,), offset=8), axis=1)
    stream.flush()
    stream.wait()
    assert y.read().tolist() == [0.0, 0.0, 11.0, 1.0] and x.read().tolist() == [[5, 6], [-3, 4]]
    ctx.event().wait()
    ctx.fence().wait()
    other = ctx.stream(high_priority=True)
    other.wait_for(stream.event())
    other.synchronize()
    view = x.view("i32", (4,))
    assert (view.dtype, view.shape, view.offset, view.buffer) == ("i32", (4,), 0, x) and "BufferView" in repr(view)
    with pytest.raises(adead.ShapeMismatchError):
        stream.run("relu", [x], y)
    with pytest.raises(TypeError, match="a buffer or a view"):
        stream.run("relu", [adead.Tensor([1.0])], y)
    with pytest.raises(adead.InvalidArgumentError):
        event.wait(-1.0)
    with pytest.raises(adead.InvalidArgumentError, match="another context"):
        adead.Context("cpu").stream().clear(x)


def test_what_only_the_device_finds(ctx):
    table, ids, out = ctx.buffer([[1.0], [2.0]]), ctx.buffer([0, 5], dtype="i64"), ctx.buffer(size=2)
    stream = ctx.stream()
    with pytest.raises(adead.InvalidArgumentError, match="id 5 at position 1"):
        stream.run("embedding", [table, ids], out.view(shape=(2, 1)))
        stream.synchronize()
    assert out.read().tolist() == [0.0, 0.0]


def test_the_simple_class(gpu, kernels):
    a = numpy.random.default_rng(1).standard_normal((512, 512), dtype=numpy.float32)
    b = numpy.random.default_rng(2).standard_normal((512, 512), dtype=numpy.float32)
    kernel = gpu.load_spirv(kernels / "matmul.spv")
    A, B, C = gpu.buffer(a), gpu.buffer(b), gpu.buffer(size=512 * 512)
    gpu.dispatch(kernel, A, B, C, groups=(32, 32, 1))
    gpu.wait()
    numpy.testing.assert_allclose(numpy.asarray(C.read()).reshape(512, 512), a @ b, rtol=1e-3, atol=1e-3)
    assert kernel.name == "main" and kernel.workgroup == (16, 16, 1) and len(kernel.parameters) == 3
    assert kernel.parameters[0].readonly and kernel.parameters[2].slot == (0, 2) and repr(kernel).startswith("Kernel(main")
    small = gpu.create_pipeline(kernel, constants={0: 2, 1: 2, 2: 2})
    x, y, z = gpu.buffer([[1.0, 2.0], [3.0, 4.0]]), gpu.buffer([[1.0, 0.0], [0.0, 1.0]]), gpu.buffer(size=4)
    gpu.dispatch(small, x, y, z, groups=1)
    assert z.read().tolist() == [1, 2, 3, 4]
    assert isinstance(gpu, adead.Context) and repr(gpu).startswith("Context(vulkan")


def test_a_kernel_from_its_source(gpu, kernels):
    if shutil.which("glslangValidator") is None:
        pytest.skip("no glslangValidator here")
    source = (kernels / "vecadd.comp").read_text()
    kernel = gpu.compile_kernel(source, name="vecadd.comp")
    a, b, c = gpu.buffer([1.0, 2.0]), gpu.buffer([0.5, 0.25]), gpu.buffer(size=2)
    gpu.dispatch(kernel, a, b, c, groups=1, push=numpy.uint32(2).tobytes())
    assert c.read().tolist() == [1.5, 2.25]
    with pytest.raises(adead.InvalidKernelError, match=r"wrong\.comp:\d+: .*nothing"):
        gpu.compile_kernel(source.replace("a[i]", "nothing[i]"), name="wrong.comp")
    with pytest.raises(adead.UnsupportedError, match="open a GPU"):
        adead.Context("cpu").compile_kernel(source)


def test_push_constants_and_recordings(gpu, kernels):
    kernel = gpu.load_spirv((kernels / "vecadd.spv").read_bytes())
    a, b, c = gpu.buffer([1.0, 2.0]), gpu.buffer([10.0, 20.0]), gpu.buffer(size=2)
    gpu.dispatch(kernel, a, b, c, groups=[1], push=struct.pack("I", 2))
    assert c.read().tolist() == [11, 22] and kernel.push_bytes == 4
    stream = gpu.stream()
    with stream.record() as recording:
        stream.dispatch(kernel, c, b, c, groups=(1, 1), push=struct.pack("I", 2))
    for _ in range(3):
        stream.replay(recording)
    begin = stream.timestamp()
    stream.synchronize()
    assert begin.since(begin) == 0
    assert c.read().tolist() == [41, 82]
    unfinished = stream.record()
    with pytest.raises(adead.InvalidArgumentError, match="not finished"):
        stream.replay(unfinished)
    with pytest.raises(RuntimeError, match="changed my mind"):
        with unfinished:
            stream.dispatch(kernel, a, b, c, groups=1, push=struct.pack("I", 2))
            raise RuntimeError("changed my mind")
    with pytest.raises(adead.InvalidArgumentError, match="not finished"):
        stream.replay(unfinished)
    stream.synchronize()
    assert c.read().tolist() == [41, 82]
    with pytest.raises(adead.InvalidArgumentError):
        with recording:
            pass


def test_what_a_dispatch_refuses(gpu, kernels):
    kernel = gpu.load_spirv(kernels / "vecadd.spv")
    a = gpu.buffer([1.0])
    push = struct.pack("I", 1)
    with pytest.raises(adead.InvalidArgumentError):
        gpu.dispatch(kernel, a, a, groups=1, push=push)
    with pytest.raises(adead.InvalidArgumentError):
        gpu.dispatch(kernel, a, a, a, groups=1)
    with pytest.raises(adead.InvalidArgumentError, match="one to three"):
        gpu.dispatch(kernel, a, a, a, groups=(1, 1, 1, 1), push=push)
    with pytest.raises(TypeError, match="takes buffers"):
        gpu.dispatch(kernel, a, a, [1.0], groups=1, push=push)
    with pytest.raises(adead.InvalidArgumentError, match="another context"):
        gpu.dispatch(kernel, a, a, adead.Context("cpu").buffer([1.0]), groups=1, push=push)
    with pytest.raises(adead.IoError, match="no-such.spv"):
        gpu.load_spirv("no-such.spv")
    with pytest.raises(adead.InvalidKernelError):
        gpu.load_spirv(b"\x03\x02\x23\x07" + bytes(64))
    with pytest.raises(adead.Error):
        gpu.load_spirv(kernels / "vecadd.spv", entry="other")
    with pytest.raises(adead.UnsupportedError, match="does not accept PTX"):
        gpu.load_ptx(kernels / "vecadd.ptx")
    with pytest.raises(TypeError):
        gpu.load_spirv(7)
    with pytest.raises(adead.UnsupportedError):
        adead.Context("cpu").load_spirv(kernels / "vecadd.spv")


def test_operations_on_a_gpu_have_the_cpus_bits(gpu):
    x = adead.Tensor(numpy.random.default_rng(3).standard_normal((33, 65), dtype=numpy.float32))
    cpu = adead.Context("cpu")
    for name in ("softmax", "gelu", "sum", "layernorm", "transpose"):
        assert getattr(gpu, name)(x).tobytes() == getattr(cpu, name)(x).tobytes(), name
    assert gpu.memory()["total"] > 0 and gpu.select(10) == gpu.device.id


def test_push_constants_are_numbers_by_their_types(vulkan, kernels):
    kernel = vulkan.load_spirv(kernels / "vecadd.spv")
    ((name, kind, offset),) = kernel.push_constants
    assert (kind, offset, kernel.push_bytes) == ("u32", 0, 4)
    a, b = vulkan.buffer([1.0, 2.0]), vulkan.buffer([10.0, 20.0])
    fields = dataclasses.make_dataclass("Fields", [name])
    for push in (2, 2.0, [2], (2,), numpy.int32(2), {name: 2}, fields(2), struct.pack("I", 2), numpy.uint32([2])):
        c = vulkan.buffer(size=2)
        vulkan.dispatch(kernel, a, b, c, groups=1, push=push)
        assert c.read().tolist() == [11, 22]
    stream = vulkan.stream()
    stream.dispatch(kernel, b, b, c, groups=1, push=[2])
    stream.wait()
    assert c.read().tolist() == [20, 40]
    for push, words in ((0.5, "whole number"), (-1, "u32"), ([1, 2], "got 2 numbers"), ({"m": 1}, "'m'"), ({}, "missing")):
        with pytest.raises(adead.InvalidArgumentError, match=words):
            vulkan.dispatch(kernel, a, b, c, groups=1, push=push)
    for push in (object(), "x", [None], {name: "x"}):
        with pytest.raises(TypeError, match="push constants"):
            vulkan.dispatch(kernel, a, b, c, groups=1, push=push)
