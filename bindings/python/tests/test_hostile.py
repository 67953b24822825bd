"""No call with any arguments ends the process, hangs, or raises an exception that is neither
Python's nor adead's."""

import math

import numpy
import pytest

import adead

ODD = [
    None,
    True,
    -1,
    0,
    3,
    2**31,
    2**63,
    -(2**63),
    2**200,
    0.5,
    -0.0,
    math.nan,
    math.inf,
    "",
    "x",
    "all",
    "f32",
    "\0\udcff",
    b"",
    b"\x03\x02\x23\x07" * 8,
    bytearray(7),
    [],
    [[]],
    [1.0, [2.0]],
    (1, 2, 3),
    {"x": 1},
    {1: 2.5},
    object(),
    int,
    slice(None, None, -1),
    numpy.zeros((2, 2), dtype=numpy.float32),
    numpy.zeros((0, 3), dtype=numpy.int64),
    numpy.zeros(2, dtype=complex),
    numpy.array("text"),
    numpy.broadcast_to(numpy.float32(1), (3, 3)),
]

ALLOWED = (adead.Error, TypeError, ValueError, OverflowError, BufferError, IndexError, KeyError, OSError, UnicodeError)
# These rightly take long, or all of the machine's memory.
LONG = {"DeterministicAllocator", "ArenaAllocator", "alloc"}
LONG |= {"arange", "linspace", "eye", "ones", "full", "broadcast_to", "repeat", "tile"}


def made():
    """Makes an object of each class that can be made here, and adds the module."""
    ctx = adead.Context("cpu", threads=1)
    tensor = adead.Tensor([[1.0, 2.0], [3.0, 4.0]])
    buffer = ctx.buffer(tensor)
    stream = ctx.stream()
    allocator = adead.DeterministicAllocator(64, 10)
    pipeline = ctx.pipeline().relu(tensor)
    return [
        adead,
        ctx,
        tensor,
        ctx.pack(tensor),
        buffer,
        buffer.view(shape=4),
        ctx.pipeline(),
        pipeline,
        pipeline.value,
        pipeline.compile(),
        stream,
        stream.event(),
        stream.download(buffer),
        stream.record(),
        adead.hardware(),
        adead.Layout.tiled(2, 2, 1),
        allocator,
        allocator.memory(allocator.alloc(8)),
        ctx.explain("relu", [tensor]),
        ctx.device,
        adead.Tensor,
        adead.Program,
        adead.Layout,
    ]


def calls():
    for owner in made():
        for name in dir(owner):
            if name.startswith("__") and name not in ("__getitem__", "__add__", "__matmul__", "__dlpack__", "__array__"):
                continue
            if name not in LONG and callable(getattr(owner, name)):
                yield owner, name


@pytest.mark.parametrize("how", ["one", "two", "keywords"])
def test_anything_may_be_given(how):
    count = 0
    for owner, name in calls():
        function = getattr(owner, name)
        for first in ODD:
            if how == "one":
                tries = [((), {}), ((first,), {})]
            elif how == "two":
                tries = [((second, first), {}) for second in (ODD[0], ODD[4], adead.Tensor([1.0]), "softmax", [ODD[-5]])]
            else:
                names = ("axis", "dtype", "shape", "alpha", "perm", "size", "offset", "groups", "copy", "device")
                tries = [((adead.Tensor([[1.0]]),), {key: first}) for key in names]
            for arguments, keywords in tries:
                count += 1
                try:
                    function(*arguments, **keywords)
                except ALLOWED as error:
                    assert not isinstance(error, adead.InternalError), (owner, name, arguments, keywords)
    assert count > 5000
    assert adead.Tensor([-1.0]).relu().tolist() == [0.0]
