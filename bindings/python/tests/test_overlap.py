"""Batches through a device, several at once, and items made ahead: on the CPU everywhere, and on a
GPU if there is one, which ADEAD_TEST_BACKEND may name."""

import gc
import os
import threading

import numpy
import pytest

import adead


@pytest.fixture(params=["cpu", "gpu"])
def ctx(request):
    if request.param == "cpu":
        return adead.Context("cpu")
    if backend := os.environ.get("ADEAD_TEST_BACKEND"):
        return adead.GPU(backend)
    return request.getfixturevalue("gpu")


@pytest.fixture(autouse=True)
def nothing_stays():
    """No thread is left, and none waits for the garbage collector to find it."""
    before = threading.active_count()
    yield
    assert threading.active_count() == before


def doubled(stage):
    y = stage.buffer(stage.input.shape, stage.input.dtype)
    stage.stream.run("add", [stage.input, stage.input], y)
    return y


def batch(n, shape=(20, 5)):
    return numpy.arange(numpy.prod(shape), dtype=numpy.float32).reshape(shape) + n


@pytest.mark.parametrize("depth", range(1, 6))
@pytest.mark.parametrize("count", [0, 1, 7])
def test_order(ctx, depth, count):
    before = ctx.memory()["allocations"]
    results = list(adead.overlap((batch(n) for n in range(count)), doubled, depth, context=ctx))
    assert len(results) == count
    for n, result in enumerate(results):
        assert (result.dtype, result.shape) == ("f32", (20, 5))
        assert numpy.array_equal(result.numpy(), 2 * batch(n))
    assert ctx.memory()["allocations"] == before


def test_a_kept_result_stays(ctx):
    """Also when its lane is used again, and the generator and the buffers are gone."""
    state = ctx.buffer(size=100)

    def replaced(stage):
        stage.stream.copy(stage.input.buffer, state)
        return state if stage.index % 2 else stage.input

    results = list(adead.overlap((batch(n, (100,)) for n in range(12)), replaced, 2, context=ctx))
    arrays = [result.numpy() for result in results]
    del results, state
    gc.collect()
    with ctx.buffer(size=100), ctx.buffer(size=100):
        for n, array in enumerate(arrays):
            assert numpy.array_equal(array, batch(n, (100,)))
    with ctx.stream() as stream, ctx.buffer(batch(3, (100,))) as buffer:
        download, other = stream.download(buffer), stream.download(buffer, 4, 8)
        tensor = download.read_tensor("f32", (100,))
        stream.clear(buffer)
        stream.synchronize()
        assert numpy.array_equal(tensor.numpy(), batch(3, (100,)))
        assert other.read() == batch(3, (100,))[1:3].tobytes()
        with pytest.raises(adead.InvalidArgumentError, match="taken before"):
            other.read()
        assert stream.download(buffer, 0, 0).read() == b""


def test_batches_of_every_kind(ctx):
    def back(stage):
        return stage.input

    batches = [
        batch(0, (3, 4)),
        batch(1, (0, 4)),
        numpy.arange(6, dtype=numpy.int64),
        numpy.arange(6, dtype=numpy.float16),
        batch(2, (4, 3)).T,
        adead.Tensor([1.5, 2.5]),
        adead.Tensor([1.5, 2.5], "bf16"),
        [[1.0, 2.0], [3.0, 4.0]],
        7.0,
    ]
    results = list(adead.overlap(batches, back, 2, context=ctx))
    for given, result in zip(batches, results, strict=True):
        expected = given if isinstance(given, adead.Tensor) else adead.Tensor(given)
        assert (result.dtype, result.shape, result.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())


def test_shared_state(ctx):
    state = ctx.buffer(size=100)

    def add(stage):
        y = stage.buffer(100)
        stage.stream.run("add", [stage.input, state], y)
        stage.stream.copy(y.buffer, state)
        return state

    batches = [numpy.full(100, n, "f4") for n in range(20)]
    totals = [result.numpy()[99] for result in adead.overlap(batches, add, 4, context=ctx)]
    assert totals == [n * (n + 1) / 2 for n in range(20)]
    # Without a result, only the end can be waited for.
    assert list(adead.overlap([batch(0, (100,))] * 3, lambda stage: add(stage) and None, context=ctx)) == [None] * 3


@pytest.mark.parametrize("depth", range(1, 6))
def test_exceptions_come_in_their_place(ctx, depth):
    before = ctx.memory()["allocations"]
    started = []

    def fails(stage):
        started.append(stage.index)
        if stage.index == 3:
            raise LookupError("batch 3 is bad")
        return doubled(stage)

    results = adead.overlap((batch(n) for n in range(100)), fails, depth, context=ctx)
    assert [numpy.array_equal(next(results).numpy(), 2 * batch(n)) for n in range(3)] == [True] * 3
    with pytest.raises(LookupError, match="batch 3 is bad"):
        next(results)
    assert started == [0, 1, 2, 3]
    assert list(results) == []
    del results

    def broken():
        yield batch(0)
        raise OSError("no more tape")

    results = adead.overlap(broken(), doubled, depth, context=ctx)
    assert next(results).shape == (20, 5)
    with pytest.raises(OSError, match="no more tape"):
        next(results)
    del results
    gc.collect()
    assert ctx.memory()["allocations"] == before


def test_what_only_the_device_finds(ctx):
    table = ctx.buffer([10.0, 11.0, 12.0])

    def look_up(stage):
        y = stage.buffer(2)
        stage.stream.run("embedding", [table, stage.input], y)
        return y

    results = adead.overlap([numpy.array(ids) for ids in ([1, 0], [7, 0], [0, 0])], look_up, 2, context=ctx)
    assert next(results).tolist() == [11.0, 10.0]
    with pytest.raises(adead.InvalidArgumentError, match="id 7 at position 0"):
        next(results)


@pytest.mark.parametrize("taken", [0, 1, 4])
def test_early_end(ctx, taken):
    before = ctx.memory()["allocations"]
    ended = threading.Event()

    def endless():
        try:
            n = 0
            while True:
                yield batch(n)
                n += 1
        finally:
            ended.set()

    results = adead.overlap(endless(), doubled, context=ctx)
    for n in range(taken):
        assert numpy.array_equal(next(results).numpy(), 2 * batch(n))
    results.close()
    if taken == 0:
        # Closing a generator that never began runs nothing; dropping it stops the thread.
        del results
        gc.collect()
    assert ended.is_set()
    assert ctx.memory()["allocations"] == before


def test_arguments(ctx):
    for depth in (0, -1, 65):
        with pytest.raises(adead.InvalidArgumentError, match=f"the depth is {depth}; it must be from 1 to 64"):
            adead.overlap([], doubled, depth, context=ctx)
    for shape, dtype in ((-1, "f32"), ((2, -3), "f32"), (2, "f31")):
        with pytest.raises(adead.InvalidArgumentError):
            next(adead.overlap([1.0], lambda stage, s=shape, d=dtype: stage.buffer(s, d), context=ctx))
    with pytest.raises(adead.InvalidArgumentError, match="at least 1 item ahead, not 0"):
        adead.DataLoader([], 0)


def test_downloads_as_tensors(ctx):
    buffer = ctx.buffer(batch(1))
    with ctx.stream() as stream:
        download = stream.download(buffer)
    with pytest.raises(adead.ShapeMismatchError, match="takes 8 bytes and the download has 400"):
        download.read_tensor("f32", 2)
    assert numpy.array_equal(download.read_tensor("f32", (20, 5)).numpy(), batch(1))
    with pytest.raises(adead.InvalidArgumentError, match="taken before"):
        download.read_tensor("f32", (20, 5))


@pytest.mark.parametrize("ahead", [1, 2, 5])
def test_loader_is_bounded(ahead):
    asked = threading.Semaphore(0)

    def numbers():
        for n in range(50):
            asked.release()
            yield n

    with adead.DataLoader(numbers(), ahead) as loader:
        for _ in range(ahead):
            asked.acquire()
        for n in range(40):
            assert next(loader) == n
            # The taken item made room for exactly one more.
            asked.acquire()
            assert not asked.acquire(blocking=False)


def test_loader_ends():
    assert list(adead.DataLoader(range(30))) == list(range(30))
    assert list(adead.DataLoader([])) == []

    def broken():
        yield 1
        yield 2
        raise ZeroDivisionError("third")

    loader = adead.DataLoader(broken(), 8)
    assert (next(loader), next(loader)) == (1, 2)
    with pytest.raises(ZeroDivisionError, match="third"):
        next(loader)
    with pytest.raises(StopIteration):
        next(loader)

    # Nothing refers to it any more.
    loader = adead.DataLoader(iter(int, 1))
    assert next(loader) == 0
    del loader
    gc.collect()

    # If a loader's batch fails, overlap raises the error.
    results = adead.overlap(adead.DataLoader(map(float, ["1", "2", "x"])), doubled, context=adead.Context("cpu"))
    assert (next(results).item(), next(results).item()) == (2.0, 4.0)
    with pytest.raises(ValueError, match="could not convert"):
        next(results)
