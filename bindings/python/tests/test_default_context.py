"""The default context: set, and entered by thread and task."""

import asyncio
import threading

import pytest

import adead


@pytest.fixture(autouse=True)
def restored():
    before = adead.default_context()
    yield
    adead.set_default_context(before)


def test_it_can_be_set():
    ctx = adead.Context("cpu")
    adead.set_default_context(ctx)
    assert adead.default_context() is ctx
    found = []
    thread = threading.Thread(target=lambda: found.append(adead.default_context()))
    thread.start()
    thread.join()
    assert found == [ctx]
    adead.set_default_context(None)
    assert adead.default_context() is not ctx and adead.default_context() is adead.default_context()
    for wrong in ("cpu", 1):
        with pytest.raises(TypeError):
            adead.set_default_context(wrong)


def test_a_with_block_has_its_own():
    outer, inner = adead.Context("cpu"), adead.Context("cpu")
    before = adead.default_context()
    with outer as entered:
        assert entered is outer and adead.default_context() is outer
        with inner, outer:
            assert adead.default_context() is outer
        assert adead.default_context() is outer
        adead.set_default_context(inner)
        assert adead.default_context() is outer
    assert adead.default_context() is inner
    adead.set_default_context(before)
    with pytest.raises(RuntimeError):
        with outer:
            raise RuntimeError
    assert adead.default_context() is before
    # Left without having been entered.
    outer.__exit__(None, None, None)
    assert adead.default_context() is before


def test_operators_and_functions_use_it():
    ctx = adead.Context("cpu")
    with ctx, ctx.profile() as profile:
        x = adead.Tensor([1.0, -2.0])
        assert (adead.relu(-x).tolist(), (x @ x).item(), x.exp().size) == ([0.0, 2.0], 5.0, 2)
    assert [record.name for record in profile.report.records] == ["neg", "relu", "matmul", "exp"]


def test_other_threads_keep_theirs():
    before, found = adead.default_context(), []
    with adead.Context("cpu"):
        thread = threading.Thread(target=lambda: found.append(adead.default_context()))
        thread.start()
        thread.join()
    assert found == [before]


def test_tasks_keep_theirs():
    async def task(ctx):
        with ctx:
            for _ in range(3):
                await asyncio.sleep(0)
                assert adead.default_context() is ctx

    async def all_of_them():
        await asyncio.gather(*(task(adead.Context("cpu")) for _ in range(4)))

    before = adead.default_context()
    asyncio.run(all_of_them())
    assert adead.default_context() is before
