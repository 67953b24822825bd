"""The places of tensors' values: on a CPU context everywhere, and on a GPU if there is one (Mesa's
software GPU works)."""

import gc
import pickle
import threading

import numpy
import pytest

import adead

RANDOM = numpy.random.default_rng(7)


def values(*shape):
    return RANDOM.integers(-1000, 1000, shape).astype(numpy.float32) / 256


@pytest.fixture(scope="module")
def cpu():
    return adead.Context("cpu")


@pytest.fixture
def ctx(gpu):
    """Makes this test's own context on the GPU of `gpu`."""
    return adead.Context(gpu.device.id)


def same(a, b):
    assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def test_on_the_host(cpu):
    x = adead.Tensor(values(20, 30))
    assert x.places == ["cpu"]
    y = cpu.relu(x)
    assert y.places == ["cpu"]
    for there in (x.to("cpu"), x.to("cpu", ctx=cpu), x.to_cpu()):
        assert there.places == ["cpu"]
        same(there, x)
    assert cpu.tensor_cache("cpu") == dict.fromkeys(("budget", "used", "tensors", "hits", "misses", "evictions"), 0)
    cpu.set_tensor_cache(0)
    cpu.set_tensor_cache(2**64 - 1)
    with pytest.raises(adead.InvalidArgumentError, match="no device 'cuda:77' in this context: it has cpu"):
        x.to("cuda:77", ctx=cpu)
    with pytest.raises(adead.InvalidArgumentError, match="cuda:77"):
        cpu.tensor_cache("cuda:77")
    for call in (
        lambda: x.to(3),
        lambda: x.to("cpu", ctx="cpu"),
        lambda: x.to("cpu", cpu),
        lambda: cpu.tensor_cache(),
        lambda: cpu.set_tensor_cache("much"),
    ):
        with pytest.raises(TypeError):
            call()
    for bytes in (-1, 2**64):
        with pytest.raises(OverflowError):
            cpu.set_tensor_cache(bytes)
    with pytest.raises(AttributeError):
        x.places = []
    x.places.append("cuda:0")
    assert x.places == ["cpu"]


def test_results_stay(ctx, cpu):
    name = ctx.device.id
    x = adead.Tensor(values(30, 40))
    y = ctx.relu(x)
    assert (x.places, y.places) == (["cpu", name], [name])
    z = ctx.add(y, x)
    kept = ctx.tensor_cache(name)
    assert (kept["hits"], kept["misses"], kept["tensors"], kept["used"]) == (2, 1, 3, 3 * 4800)
    assert ctx.tensor_cache("cpu")["tensors"] == 0
    # A slice of it, in another shape, is in the same place.
    part = z[10:20].reshape(20, 20)
    assert (part.places, ctx.exp(part).places) == ([name], [name])
    expected = cpu.add(cpu.relu(x), x)
    same(ctx.exp(part), cpu.exp(expected[10:20].reshape(20, 20)))
    assert z.places == [name]
    same(z, expected)
    assert (z.places, part.places, y.places) == (["cpu", name], ["cpu", name], [name])
    del x, y, z, part
    assert ctx.tensor_cache(name)["tensors"] == 0


def test_moving(ctx, cpu):
    name = ctx.device.id
    x = adead.Tensor(values(50, 20))
    there = x.to(name, ctx=ctx)
    assert there.places == x.places == ["cpu", name]
    # A part of a GPU's name works, as when a context is opened.
    assert x.to(name.split(":")[0], ctx=ctx).places == ["cpu", name]
    hits = ctx.tensor_cache(name)["hits"]
    y = ctx.tanh(there)
    assert ctx.tensor_cache(name)["hits"] == hits + 1
    assert y.to_cpu().tolist() == cpu.tanh(x).tolist()
    assert y.places == ["cpu", name]
    with pytest.raises(adead.InvalidArgumentError, match=f"it has cpu, {name}"):
        x.to("cuda:77", ctx=ctx)
    assert ctx.relu(adead.Tensor.zeros((0, 3)).to(name, ctx=ctx)).tolist() == []
    # NumPy's memory may be shared too, as long as nothing writes to it.
    array = values(10, 100)
    shared = adead.asarray(array)
    assert shared.to(name, ctx=ctx).places == ["cpu", name]
    same(ctx.neg(shared), cpu.neg(array))
    del shared
    assert ctx.tensor_cache(name)["tensors"] == 2


def test_a_budget_loses_nothing(ctx, cpu):
    name, one = ctx.device.id, 64 * 64 * 4
    ctx.set_tensor_cache(4 * one)
    pairs = []
    for _ in range(12):
        x = adead.Tensor(values(64, 64))
        pairs.append((x, ctx.sigmoid(x)))
        assert ctx.tensor_cache(name)["used"] <= 4 * one
    kept = ctx.tensor_cache(name)
    assert (kept["budget"], kept["tensors"], kept["evictions"]) == (4 * one, 4, 20)
    assert (pairs[0][0].places, pairs[0][1].places, pairs[11][1].places) == (["cpu"], ["cpu"], [name])
    ctx.set_tensor_cache(0)
    assert ctx.tensor_cache(name)["tensors"] == 0
    # A single operation may use what it needs.
    product = ctx.matmul(pairs[3][1], pairs[4][1])
    for x, y in pairs:
        same(y, cpu.sigmoid(x))
    same(product, cpu.matmul(pairs[3][1], pairs[4][1]))


def pickle_out_of_band(y):
    buffers = []
    data = pickle.dumps(y, 5, buffer_callback=buffers.append)
    assert buffers[0].raw().nbytes == y.nbytes
    return pickle.loads(data, buffers=buffers).numpy()


# Each reads a tensor that is only on the GPU, and returns its values as a NumPy array.
READERS = {
    "numpy": lambda y: y.numpy(),
    "asarray": numpy.asarray,
    "astype": lambda y: y.__array__(numpy.float64, True).astype(numpy.float32),
    "buffer": lambda y: numpy.frombuffer(memoryview(y).cast("B"), numpy.float32).reshape(y.shape),
    "dlpack": numpy.from_dlpack,
    "dlpack_copy": lambda y: numpy.from_dlpack(y, copy=True),
    "adead": lambda y: adead.from_dlpack(y).numpy(),
    "adead_copy": lambda y: adead.asarray(y, copy=True).numpy(),
    "adead_dtype": lambda y: adead.asarray(y, dtype="f16", copy=True).numpy().astype(numpy.float32),
    "tensor": lambda y: adead.Tensor(y).numpy(),
    "tolist": lambda y: numpy.float32(y.tolist()),
    "tobytes": lambda y: numpy.frombuffer(y.tobytes(), numpy.float32).reshape(y.shape),
    "items": lambda y: numpy.float32([[y[i][j].item() for j in range(y.shape[1])] for i in range(len(y))]),
    "float": lambda y: numpy.float32([[float(number) for number in row] for row in y]),
    "pickle5": lambda y: pickle.loads(pickle.dumps(y, 5)).numpy(),
    "pickle_out_of_band": pickle_out_of_band,
    "pickle2": lambda y: pickle.loads(pickle.dumps(y, 2)).numpy(),
    "to_cpu": lambda y: y.to_cpu().numpy(),
    "to": lambda y: y.to("cpu").numpy(),
    "transposed": lambda y: y.T.T.numpy(),
    "operators": lambda y: (-(-y) * 1 + adead.Tensor.zeros(y.shape)).numpy(),
    "repr": lambda y: (repr(y), y.numpy())[1],
}


@pytest.mark.parametrize("reader", READERS)
def test_reading(ctx, cpu, reader):
    # Multiples of one half, which f16 represents exactly.
    x = numpy.float32(RANDOM.integers(-400, 400, (6, 25))) / 2
    y = ctx.relu(x)
    assert y.places == [ctx.device.id]
    read = READERS[reader](y)
    assert (read.shape, read.dtype, read.tobytes()) == ((6, 25), numpy.float32, cpu.relu(x).tobytes())
    # A second call changes nothing.
    assert READERS[reader](y).tobytes() == read.tobytes()


def test_what_is_shared_stays(ctx):
    x = values(40, 40)
    y = ctx.abs(x)
    array, view = y.numpy(), memoryview(y)
    assert array.ctypes.data == numpy.asarray(view).ctypes.data and not array.flags.writeable
    ctx.set_tensor_cache(0)
    del y, ctx
    gc.collect()
    assert numpy.array_equal(array, numpy.abs(x)) and view[3, 5] == abs(x[3, 5])


def test_repr_and_places_of_other_dtypes(ctx, cpu):
    x = adead.Tensor(values(30, 30))
    for dtype in ("f16", "bf16", "i32", "i64", "u32"):
        y = ctx.cast(ctx.abs(x), dtype=dtype)
        assert y.places == [ctx.device.id]
        expected = cpu.cast(cpu.abs(x), dtype=dtype)
        assert repr(y) == repr(expected)
        same(y, expected)


def test_contexts_share_tensors(ctx, gpu, cpu):
    x = adead.Tensor(values(40, 40))
    y = ctx.exp(x)
    expected = cpu.exp(x)
    # Another context of the same GPU, the CPU, and the default context by an operator.
    same(gpu.matmul(y, y), cpu.matmul(expected, expected))
    z = ctx.neg(y)
    same(cpu.abs(z), expected)
    same(ctx.neg(y) + y, cpu.sub(expected, expected))
    last = ctx.mul(y, y)
    name = ctx.device.id
    del ctx
    gc.collect()
    assert last.places == [name]
    same(last, cpu.mul(expected, expected))


def test_pipelines(ctx, cpu):
    x, w = values(8, 30), adead.Tensor(values(30, 50))
    chain = ctx.pipeline().input((8, 30)).matmul(w).relu().compile()
    expected = cpu.relu(cpu.matmul(x, w))
    there = ctx.neg(cpu.neg(x))
    for given, places in ((adead.Tensor(x), ["cpu"]), (there, [ctx.device.id])):
        y = chain.run(given)
        assert y.places == places
        same(y, expected)


def test_wrong_data_is_the_calls_error(ctx):
    table = ctx.relu(values(50, 8))
    with pytest.raises(adead.InvalidArgumentError):
        ctx.embedding(table, numpy.full(200, 50))
    assert ctx.embedding(table, numpy.full(200, 49)).tolist()[0] == table[49].tolist()


def test_threads(ctx, cpu):
    ctx.set_tensor_cache(6 << 10)
    shared = adead.Tensor(values(24, 24))
    far, wrong = ctx.exp(shared), []
    expected = cpu.matmul(cpu.exp(shared), shared).tobytes()

    def work(seed):
        for i in range(20):
            y = ctx.matmul(far, shared)
            z = ctx.relu(y) if i % 3 else y.to_cpu()
            if i % 2 and y.tobytes() != expected:
                wrong.append((seed, i))
            del z

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for i in range(50):
        ctx.set_tensor_cache((6 << 10) * (i % 2))
        far.places, repr(far)
    for thread in threads:
        thread.join()
    assert not wrong
    del far, shared
    gc.collect()
    assert ctx.tensor_cache(ctx.device.id)["tensors"] == 0


def test_a_profile_shows_who_reads(ctx):
    with ctx.profile() as profile:
        y = ctx.relu(values(30, 30))
        y.places, repr(ctx), y.shape
    assert [record.activity for record in profile.report.records] == ["upload", "operation"]
    with ctx.profile() as profile:
        y.tolist()
        y.tolist()
    (record,) = profile.report.records
    assert (record.activity, record.device, record.bytes) == ("download", ctx.device.id, 3600)
