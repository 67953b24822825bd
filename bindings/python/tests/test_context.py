"""Contexts, the dispatcher, the report on the machine, errors."""

import numpy
import pytest

import adead


def test_versions():
    assert adead.__version__.count(".") == 2 and adead.CONTRACT == "adead-contract-2"
    assert "matmul" in adead.OPERATIONS and adead.STATUSES[2] == "shape_mismatch"


def test_a_class_for_each_status():
    classes = {getattr(adead, name) for name in adead.__all__ if name.endswith("Error")} - {adead.Error}
    assert {error.code: error.status for error in classes} == {
        name: number for number, name in enumerate(adead.STATUSES) if number > 0
    }
    assert all(issubclass(error, adead.Error) and error.__module__ == "adead" and error.__doc__ for error in classes)
    assert issubclass(adead.Error, Exception)
    with pytest.raises(adead.Error) as caught:
        adead.Context("quantum")
    assert isinstance(caught.value, adead.InvalidArgumentError)
    assert (caught.value.status, caught.value.code) == (1, "invalid_argument")
    assert "quantum" in str(caught.value)


def test_contexts():
    ctx = adead.Context("cpu", threads=2)
    assert ctx.device.id == "cpu" and ctx.device.units == 2 and [device.id for device in ctx.devices] == ["cpu"]
    assert repr(ctx).startswith("Context(cpu: ") and repr(ctx.device).startswith("Device(cpu: ")
    assert ctx.memory()["total"] > 0
    with adead.Context("cpu", isa=ctx.device.arch) as other:
        assert other.relu(adead.Tensor([-1.0])).tolist() == [0.0]
    with pytest.raises(adead.InvalidArgumentError, match="no instruction set"):
        adead.Context("cpu", isa="mmx")
    with pytest.raises(adead.BackendUnavailableError):
        adead.Context("cuda:99")
    with pytest.raises(adead.BackendUnavailableError):
        adead.GPU("cpu")
    with pytest.raises(OverflowError):
        adead.Context("cpu", threads=-1)
    assert isinstance(adead.default_context(), adead.Context)


def test_every_instruction_set_gives_the_same_bits():
    x = adead.Tensor(numpy.linspace(-3, 3, 999, dtype=numpy.float32))
    found = set()
    for isa in ("portable", "sse2", "avx2", "avx512", "neon"):
        for threads in (1, 3):
            try:
                found.add(adead.Context("cpu", isa=isa, threads=threads).softmax(x).tobytes())
            except adead.UnsupportedError:
                pass
    assert len(found) == 1


def test_what_is_divided_says_how():
    try:
        ctx = adead.Context("cpu,vulkan:0")
    except adead.BackendUnavailableError as error:
        pytest.skip(f"skipped: {error}")
    x = adead.Tensor.zeros((4096, 4096))
    why = ctx.explain("matmul", [x, x])
    assert len(why.estimates) == 2
    # The CPU is faster than a software GPU.
    if why.rows is None:
        assert why.split_ns is None and why.device == "cpu"
    else:
        assert len(why.rows) == 2 and sum(why.rows) == 4096 and why.split_ns > 0
    assert ctx.explain("matmul", [x[:1], x]).rows is None


def test_the_dispatcher():
    ctx = adead.Context("cpu")
    x = adead.Tensor([[1.0, 2.0]])
    assert ctx.select(1000) == "cpu" and ctx.forced == "cpu"
    why = ctx.explain("matmul", [x, x], trans_b=True)
    assert (why.device, why.family, why.elements, why.flops) == ("cpu", "matmul", 2, 4.0)
    assert "cpu" in str(why) and repr(why) == f"Explanation(cpu: {why.reason})"
    (estimate,) = why.estimates
    assert estimate.device == "cpu" and estimate.fits and estimate.total_ns >= estimate.compute_ns > 0
    assert why.rows is None and why.split_ns is None
    ctx.force(None)
    assert ctx.forced is None
    with pytest.raises(adead.InvalidArgumentError):
        ctx.force("cuda:7")
    assert ctx.threshold("matmul") is None
    ctx.set_threshold("matmul", 5000)
    assert ctx.threshold("matmul") == 5000
    ctx.set_threshold("matmul", None)
    assert ctx.threshold("matmul") is None
    with pytest.raises(adead.InvalidArgumentError, match="no family"):
        ctx.threshold("magic")
    with pytest.raises(adead.ShapeMismatchError):
        ctx.explain("matmul", [x, x])


def test_precision():
    ctx = adead.Context("cpu")
    x, w = (adead.Tensor(numpy.random.default_rng(i).standard_normal((8, 8), dtype=numpy.float32)) for i in (1, 2))
    said = {precision: ctx.matmul(x, w, precision=precision).tobytes() for precision in ("f32", "fixed24", "fixed16")}
    assert len(set(said.values())) == 3
    assert ctx.precision == "f32"
    for precision, expected in said.items():
        ctx.precision = precision
        assert ctx.precision == precision
        assert ctx.matmul(x, w).tobytes() == expected
        assert ctx.matmul(x, w, precision="f32").tobytes() == said["f32"]
        assert ctx.ffn(x, w, None, w).tobytes() == ctx.ffn(x, w, None, w, precision=precision).tobytes()
        assert ctx.attention(x, w, w).tobytes() == ctx.attention(x, w, w, precision=precision).tobytes()
    assert len({ctx.attention(x, w, w, precision=precision).tobytes() for precision in said}) == 3
    assert "products in fixed16" in repr(ctx)
    with pytest.raises(adead.InvalidArgumentError, match="precision is 'tf32'; it must be one of f32, fixed24, fixed16"):
        ctx.precision = "tf32"
    with pytest.raises(TypeError):
        ctx.precision = 3
    assert ctx.precision == "fixed16"
    for precision, expected in said.items():
        own = ctx.with_precision(precision)
        assert (own.precision, ctx.precision) == (precision, "fixed16")
        assert own.matmul(x, w).tobytes() == expected
        assert adead.nn.Linear(w.transpose(), context=own)(x).tobytes() == expected
    with pytest.raises(adead.InvalidArgumentError, match="precision is 'tf32'"):
        ctx.with_precision("tf32")


def test_packed_matrices():
    ctx = adead.Context("cpu")
    w = adead.Tensor(numpy.arange(12, dtype=numpy.float32).reshape(3, 4))
    packed = ctx.pack(w, trans_b=True)
    assert (packed.shape, packed.dtype) == ((4, 3), "f32") and packed.nbytes >= 48
    x = adead.Tensor([[1.0, 2.0, 3.0, 4.0]])
    assert ctx.matmul(x, packed).tobytes() == ctx.matmul(x, w, trans_b=True).tobytes()
    assert ctx.run("matmul", [x, packed], alpha=2.0).tolist() == (ctx.matmul(x, packed) * 2).tolist()
    assert repr(packed).startswith("Packed(f32[4, 3]")
    with pytest.raises(adead.InvalidArgumentError, match="trans_b"):
        ctx.matmul(x, packed, trans_b=True)
    with pytest.raises(adead.InvalidArgumentError, match="precision can't be fixed24"):
        ctx.matmul(x, packed, precision="fixed24")
    with pytest.raises(adead.DtypeMismatchError):
        ctx.pack(adead.Tensor([[1]]))
    with pytest.raises(TypeError):
        ctx.pack(packed)


def test_hardware():
    machine = adead.hardware()
    assert machine.cpu.threads >= machine.cpu.cores >= 1 and machine.memory_total >= machine.memory_available > 0
    assert machine.recommended and isinstance(machine.cpu.features, list) and machine.cpu.vendor
    assert all(cache.size > 0 and cache.level > 0 for cache in machine.cpu.caches)
    for gpu in machine.gpus:
        assert gpu.info.id == gpu.backends[0].id and gpu.info.kind
    assert repr(machine).startswith("Hardware(")


def test_exceptions_in_callbacks_pass_through():
    class Bad:
        def __index__(self):
            raise RuntimeError("index")

    class Worse:
        def __float__(self):
            raise RuntimeError("float")

    def operands():
        yield adead.Tensor([1.0])
        raise RuntimeError("operands")

    x = adead.Tensor([1.0])
    for call, text in [
        (lambda: x.softmax(Bad()), "index"),
        (lambda: x.scale(Worse()), "float"),
        (lambda: adead.concat(operands()), "operands"),
        (lambda: adead.default_context().run("concat", operands()), "operands"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            call()
    assert x.relu().tolist() == [1.0]
