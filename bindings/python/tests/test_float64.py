"""f64, which is stored, moved, compared and cast: every bit of a float64 comes back, and arithmetic is refused."""

import array
import copy
import math
import pickle
import struct

import numpy
import pytest

import adead

# Values that f32 can't hold, at the edges of f64 and between integers.
EDGES = [0.1, 1 / 3, 2.0**53 + 2, 1e300, -1e-300, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308]
EDGES += [math.inf, -math.inf, math.nan, 0.0, -0.0]
WIDE = numpy.array(EDGES)
# Signalling, and with bits and a sign of its own.
NANS = struct.pack("=QQ", 0x7FF0000000000001, 0xFFFC123456789ABC)


def wide(values=EDGES):
    return adead.Tensor(values, "f64")


def same(tensor, expected):
    """Returns whether a tensor is f64 and has the bits of NumPy's array."""
    expected = numpy.asarray(expected, dtype=numpy.float64)
    return tensor.dtype == "f64" and tensor.shape == expected.shape and tensor.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "dtype", ["f64", "float64", "double", "d", adead.float64, numpy.float64, numpy.dtype("float64"), numpy.double]
)
def test_its_names(dtype):
    x = adead.Tensor([0.1], dtype)
    assert same(x, [0.1]) and x.dtype == dtype == adead.float64 and adead.DType(dtype) is not None
    assert x.cast("f32").dtype == "f32" and same(x.cast("f32").cast(dtype), [numpy.float32(0.1)])
    assert adead.zeros(2, dtype).dtype == "f64" == adead.Tensor.zeros(2, dtype).dtype


def test_the_dtype_object():
    dtype = wide().dtype
    assert dtype is adead.float64 and isinstance(dtype, adead.DType) and f"{dtype}" == "f64"
    assert (dtype.name, dtype.itemsize, dtype.kind, repr(dtype)) == ("float64", 8, "f", "adead.float64")
    assert dtype == numpy.float64 == dtype and dtype != numpy.float32 and numpy.dtype(dtype.name) == dtype
    # Python's float is the default dtype, as before.
    assert adead.Tensor([1.0], float).dtype == "f32" == adead.Tensor([0.1]).dtype
    assert "f64" in adead.DTYPES and {adead.float64: 1}["f64"] == 1
    assert adead.isdtype("f64", "real floating") and not adead.isdtype("f64", ("integral", "bool"))
    theirs, ours = numpy.finfo("float64"), adead.finfo("f64")
    for name in ("bits", "eps", "max", "min", "smallest_normal"):
        assert getattr(ours, name) == getattr(theirs, name)
    with pytest.raises(adead.InvalidArgumentError, match="expected i32"):
        adead.iinfo("f64")
    assert adead.result_type(wide(), "f64", 1.5) == "f64" and adead.can_cast("f64", numpy.float64)
    assert not adead.can_cast("f64", "f32")
    with pytest.raises(adead.InvalidArgumentError, match="f64 and f32 are not computed together: cast one"):
        adead.result_type("f64", "f32")


def test_every_bit_comes_back():
    for data in (
        EDGES,
        tuple(EDGES),
        WIDE,
        array.array("d", EDGES),
        memoryview(WIDE),
        [numpy.float64(x) for x in EDGES],
    ):
        assert same(wide(data), WIDE) and same(adead.asarray(data, "f64"), WIDE)
    x = wide()
    assert x.numpy().dtype == numpy.float64 and x.numpy().tobytes() == WIDE.tobytes()
    assert struct.pack(f"={len(EDGES)}d", *x.tolist()) == WIDE.tobytes()
    assert all(struct.pack("d", one.item()) == struct.pack("d", given) for one, given in zip(x, EDGES, strict=True))
    assert (
        float(x[0]) == 0.1 and int(wide(2.0**60 + 256)) == 2**60 + 256 and bool(wide(5e-324)) and not bool(wide(-0.0))
    )
    assert x.nbytes == 8 * len(EDGES)
    nans = adead.Tensor.frombytes(NANS, "f64", 2)
    assert nans.tobytes() == NANS == nans.numpy().tobytes() == adead.Tensor(nans.numpy(), "f64").tobytes()
    for scalar in (0.1, numpy.float64(0.1), numpy.array(0.1)):
        assert same(wide(scalar), 0.1) and wide(scalar).item() == 0.1
    assert same(wide([[0.1, 2], [True, 4]]), [[0.1, 2], [1, 4]]) and wide([]).shape == (0,)


def test_integers_become_the_nearest_float64():
    whole = [2**53 + 1, 2**53 + 3, -(2**53) - 1, 2**63 - 1, -(2**63), 7]
    expected = numpy.array(whole, dtype=numpy.int64).astype(numpy.float64)
    for data in (whole, numpy.array(whole, dtype=numpy.int64), array.array("q", whole), adead.Tensor(whole)):
        assert same(wide(data), expected)
    assert wide(2**53 + 1).item() == 2.0**53 and same(adead.Tensor(whole).astype("f64"), expected)


def test_arrays_are_shared_or_copied():
    a = numpy.array(EDGES)
    shared = adead.asarray(a, "f64", copy=False)
    assert shared.numpy().ctypes.data == a.ctypes.data != adead.Tensor(a, "f64").numpy().ctypes.data
    assert adead.asarray(shared) is shared and adead.asarray(shared, "f64") is shared
    assert adead.asarray(a, "f64", copy=True).numpy().ctypes.data != a.ctypes.data
    grid = numpy.arange(24.0).reshape(2, 3, 4) / 7
    for view in (grid.T, grid[:, ::-1], grid[..., 1], grid[:, 1:, ::2], grid[:, :0]):
        assert same(wide(view), view) and same(adead.asarray(view, "f64"), view)
    askew = numpy.frombuffer(bytes(1) + a.tobytes(), dtype=numpy.float64, offset=1)
    assert not askew.flags.aligned and same(wide(askew), a)
    with pytest.raises(adead.DtypeMismatchError, match=r"'>d' elements of 8 bytes: pass f32, f16, f64"):
        wide(a.astype(">f8"))


def test_without_a_dtype_an_array_becomes_f32():
    narrow = WIDE[[0, 1, -1]]
    for found in (
        adead.Tensor(narrow),
        adead.asarray(narrow),
        adead.asarray(memoryview(wide(narrow))),
        adead.neg(-narrow),
    ):
        assert found.dtype == "f32" and found.tolist() == narrow.astype(numpy.float32).tolist()
    with pytest.raises(adead.InvalidArgumentError, match='float64 without dtype="f64"'):
        adead.asarray(narrow, copy=False)
    assert adead.Tensor(wide()).dtype == "f64" == adead.asarray(wide()).dtype


def test_the_buffer_protocol():
    x = wide([[0.1, 0.2], [0.3, 0.4]])
    view = memoryview(x)
    assert (view.format, view.itemsize, view.shape, view.strides, view.readonly) == ("d", 8, (2, 2), (16, 8), True)
    assert view.tolist() == x.tolist() == [[0.1, 0.2], [0.3, 0.4]]
    assert numpy.asarray(x).ctypes.data == x.numpy().ctypes.data and array.array("d", bytes(x)).tolist() == [
        0.1,
        0.2,
        0.3,
        0.4,
    ]
    assert x.__array__(numpy.float32).dtype == numpy.float32 and x.__array__(copy=False).dtype == numpy.float64


def test_text_and_pickles():
    assert repr(wide([0.1, 1e300, -0.0, 5e-324])) == "Tensor(f64[4], [0.1, 1e300, -0.0, 5e-324])"
    assert repr(wide([math.nan, math.inf])) == "Tensor(f64[2], [NaN, inf])" and repr(wide(0.1)) == "Tensor(f64[], 0.1)"
    assert "adead.Tensor, f64, 2" in wide([0.1, 0.2])._repr_html_()
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert same(pickle.loads(pickle.dumps(wide(), protocol)), WIDE)
    buffers = []
    data = pickle.dumps(wide(), 5, buffer_callback=buffers.append)
    assert len(buffers) == 1 and same(pickle.loads(data, buffers=buffers), WIDE)
    assert same(copy.deepcopy(wide()), WIDE) and pickle.loads(pickle.dumps(adead.float64)) == "f64"


def test_casts_round_once():
    # Beside a midpoint of f16 by less than f32 can tell: two roundings would go to the even neighbour.
    beside = [1 + 2**-11 + 2**-40, 1 + 3 * 2**-11 - 2**-40, 65519.99999999]
    x = wide(beside)
    for found in (
        x.cast("f16"),
        x.astype(numpy.float16),
        adead.Tensor(numpy.array(beside), "f16"),
        adead.Tensor(beside, "f16"),
    ):
        assert found.dtype == "f16" and found.tobytes() == numpy.array(beside).astype(numpy.float16).tobytes()
    assert adead.cast(numpy.array(beside), "f16").tobytes() == x.cast("f16").tobytes()
    bf16 = 1 + 2**-8 + 2**-40
    assert adead.Tensor([bf16], "bf16").tolist() == wide([bf16]).cast("bf16").tolist() == [1 + 2**-7]
    with numpy.errstate(over="ignore"):
        assert wide().cast("f32").tobytes() == WIDE.astype(numpy.float32).tobytes() == wide().astype(float).tobytes()
    back = numpy.array([0.1, 1e-45, math.inf, -0.0], dtype=numpy.float32)
    assert same(adead.Tensor(back).astype("f64"), back) and same(adead.astype(back, adead.float64), back)
    assert same(adead.Tensor([0.1], "f16").cast("f64"), [numpy.float16(0.1)]) and same(
        adead.Tensor([True]).cast("f64"), [1.0]
    )
    # Towards zero, saturating; NaN is 0.
    assert wide([1.9, -1.9, 1e300, -1e300, math.nan, 2.0**53 + 2]).cast("i64").tolist() == [
        1,
        -1,
        2**63 - 1,
        -(2**63),
        0,
        2**53 + 2,
    ]
    assert wide([2147483646.9, 1e10, -1.0]).cast("i32").tolist() == [2147483646, 2147483647, -1]
    assert wide([4294967295.0, -1.0]).cast("u32").tolist() == [4294967295, 0] and wide([256.0, 7.9]).cast(
        "u8"
    ).tolist() == [255, 7]
    assert wide([0.0, -0.0, 5e-324, math.nan]).cast("bool").tolist() == [False, False, True, True]
    # An array goes to an integer dtype without f32 on the way.
    exact = numpy.array([2.0**53 + 2, 16777217.0])
    for found in (
        adead.Tensor(exact, "i64"),
        adead.asarray(exact, "i64"),
        adead.cast(exact, "i64"),
        adead.astype(exact, "i64"),
    ):
        assert found.tolist() == [2**53 + 2, 16777217]
    assert (
        same(adead.astype(exact, "f64"), exact)
        and same(adead.cast(exact, "f64"), exact)
        and same(adead.astype([0.1], "f64"), [0.1])
    )
    assert same(adead.default_context().run("cast", [exact], dtype="f64"), exact)


def test_creation():
    assert same(adead.full((2, 2), 0.1, "f64"), numpy.full((2, 2), 0.1)) and same(
        adead.full_like(wide([1.0]), 0.1), [0.1]
    )
    assert same(adead.zeros((2, 3), "f64"), numpy.zeros((2, 3))) and same(adead.ones(3, numpy.float64), numpy.ones(3))
    assert same(adead.zeros_like(wide()), numpy.zeros(len(EDGES))) and same(
        adead.ones_like(wide()), numpy.ones(len(EDGES))
    )
    assert same(adead.eye(3, 4, 1, "f64"), numpy.eye(3, 4, 1)) and same(adead.empty(2, "f64"), [0.0, 0.0])
    assert same(adead.arange(5, dtype="f64"), numpy.arange(5.0)) and same(
        adead.arange(0.0, 1.0, 0.1, "f64"), numpy.arange(0.0, 1.0, 0.1)
    )
    assert same(adead.arange(2, 8, 3, dtype=adead.float64), [2.0, 5.0]) and same(
        adead.arange(1.0, 0.0, dtype="f64"), []
    )
    for arguments in ((0.0, 1.0, 11), (-1.0, 1e10, 7), (0.1, 0.1, 3), (1.0, 2.0, 1), (1.0, 2.0, 0), (5.0, -5.0)):
        for endpoint in (True, False):
            found = adead.linspace(*arguments, endpoint=endpoint, dtype="f64")
            assert same(found, numpy.linspace(*arguments, endpoint=endpoint)), arguments
    grid = wide([[0.1, 0.2], [0.3, 0.4]])
    assert same(adead.tril(grid), [[0.1, 0.0], [0.3, 0.4]]) and same(adead.triu(grid, 1), [[0.0, 0.2], [0.0, 0.0]])
    assert same(adead.meshgrid(wide([0.1, 0.2]), wide([0.3]))[0], [[0.1, 0.2]])
    assert adead.random.default_rng(1).random(3, "f64").tolist() == adead.random.default_rng(1).random(3).tolist()


def test_moves_keep_every_bit():
    a = numpy.arange(24.0).reshape(2, 3, 4) / 7
    x = wide(a)
    places = [
        0,
        -1,
        (1, 2),
        (slice(None), 1),
        (..., slice(None, None, -2)),
        (None, 0),
        ([1, 0],),
        (slice(None), [2, 0], 1),
    ]
    for index in (*places, a > 1.5):
        assert same(x[index], a[index])
    assert [row.tolist() for row in x] == a.tolist() and [row.tolist() for row in reversed(x)] == a[::-1].tolist()
    assert same(x.T, a.T) and same(x.reshape(4, -1), a.reshape(4, -1)) and same(adead.flip(x, 1), numpy.flip(a, 1))
    for name in ("stack", "concat"):
        assert same(getattr(adead, name)([x, x], axis=1), getattr(numpy, name)([a, a], axis=1))
    assert same(adead.concat([x, a]), numpy.concat([a, a])) and same(adead.concat([a, x]), numpy.concat([a, a]))
    for mixed in ([x, a], [a, x]):
        assert same(adead.stack(mixed), numpy.stack([a, a]))
        assert all(same(part, a) for part in adead.broadcast_arrays(*mixed))
    assert adead.stack([a, a]).dtype == "f32"
    assert same(adead.broadcast_to(wide([0.1]), (2, 2)), numpy.full((2, 2), 0.1)) and same(
        adead.tile(x, (2, 1, 1)), numpy.tile(a, (2, 1, 1))
    )
    assert (
        same(adead.roll(x, 1, 2), numpy.roll(a, 1, 2))
        and same(x.repeat(2, 0), a.repeat(2, 0))
        and same(x.take([1, 0], 2), a.take([1, 0], 2))
    )
    assert [part.tolist() for part in adead.split(x, 2, 2)] == [part.tolist() for part in numpy.split(a, 2, 2)]
    assert same(adead.embedding(wide([[0.1], [0.2]]), adead.Tensor([1, 0])), [[0.2], [0.1]])
    assert same(adead.take_along_axis(x, adead.Tensor(numpy.zeros((2, 3, 1), numpy.int64)), axis=2), a[:, :, :1])
    assert same(adead.pad(wide([0.1]), wide(0.2), before=[1], after=[0]), [0.2, 0.1])
    nans = adead.Tensor.frombytes(NANS, "f64", 2)
    assert adead.concat([nans, nans[::-1]]).tobytes() == NANS + NANS[8:] + NANS[:8]
    assert adead.where(adead.Tensor([True, False]), nans, nans).tobytes() == NANS


def test_where_takes_numbers_at_full_precision():
    x, mask = wide([0.1, 0.2]), adead.Tensor([True, False])
    assert same(adead.where(mask, x, 1 / 3), [0.1, 1 / 3]) and same(adead.where(mask, 2**53 + 1, x), [2.0**53, 0.2])
    assert same(adead.where(mask, x, numpy.array([0.3, 0.4])), [0.1, 0.4]) and same(
        adead.where(mask, numpy.array([0.3, 0.4]), x), [0.3, 0.2]
    )


@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
def test_comparisons(name):
    ours, theirs = getattr(adead, name), getattr(numpy, name)
    others = numpy.array(EDGES[1:] + EDGES[:1])
    for a, b in ((WIDE, WIDE), (WIDE, others), (WIDE[:, None], WIDE)):
        expected = theirs(a, b).tolist()
        assert ours(wide(a), wide(b)).tolist() == expected == ours(wide(a), b).tolist() == ours(a, wide(b)).tolist()
        assert (
            theirs(wide(a), wide(b)).tolist() == expected == theirs(wide(a), b).tolist() == theirs(a, wide(b)).tolist()
        )
    # Numbers that are equal as f32.
    for number in (0.1, 0.1 + 1e-15, numpy.float64(1 / 3), 2**53 + 2, 2**53 + 1, math.inf, math.nan, 0, True):
        expected = theirs(WIDE, number).tolist()
        assert ours(wide(), number).tolist() == expected == theirs(wide(), number).tolist(), number
        assert ours(number, wide()).tolist() == theirs(number, WIDE).tolist() == theirs(number, wide()).tolist(), number


def test_operators_compare_at_full_precision():
    x, near = wide([0.1]), 0.1 + 1e-16
    assert (x == 0.1).item() and not (x == float(numpy.float32(0.1))).item() and (x < float(numpy.float32(0.1))).item()
    assert not (x == near).item() and (x < near).item()
    assert (x == numpy.array([0.1])).item() and (numpy.array([0.1]) == x).item() and (0.1 >= x).item()
    assert (wide([2.0**53]) == 2**53 + 1).item() and not (wide([2.0**53 + 2]) == 2**53).item()
    assert numpy.array_equal(wide([1.0, 2.0]), [1.0, 2.0])
    with pytest.raises(OverflowError):
        x == 10**400


def test_functions_of_comparisons_alone():
    for name in ("isnan", "isinf", "isfinite"):
        assert getattr(adead, name)(wide()).tolist() == getattr(numpy, name)(WIDE).tolist()
        assert getattr(numpy, name)(wide()).tolist() == getattr(numpy, name)(WIDE).tolist()
    assert adead.any(wide([0.0, 5e-324])) and not adead.all(wide([0.0, 5e-324])) and wide().all().item() is False
    assert adead.count_nonzero(wide()).item() == numpy.count_nonzero(WIDE)
    assert wide().nonzero()[0].tolist() == WIDE.nonzero()[0].tolist() and same(adead.positive(wide()), WIDE)


ARITHMETIC = [
    lambda x: x + x,
    lambda x: x * 2.0,
    lambda x: 1 - x,
    lambda x: x / numpy.array([1.0, 2.0]),
    lambda x: 2 // x,
    lambda x: x % 2,
    lambda x: x**2,
    lambda x: x @ x,
    lambda x: -x,
    abs,
    lambda x: x + adead.Tensor([1.0, 2.0]),
    lambda x: adead.Tensor([1, 2]) * x,
    lambda x: x.sum(),
    lambda x: x.mean(),
    lambda x: x.max(axis=0),
    lambda x: x.argmax(),
    lambda x: x.exp(),
    lambda x: x.softmax(),
    lambda x: numpy.add(x, 1.0),
    lambda x: numpy.sqrt(x),
    lambda x: adead.Context("cpu").relu(x),
    lambda x: adead.Context("cpu").run("cumsum", [x]),
    lambda x: adead.divide(x, 2),
    adead.sort,
    adead.argsort,
    adead.var,
    adead.std,
    adead.ceil,
    adead.trunc,
    adead.sign,
    adead.signbit,
    adead.square,
    adead.diff,
    adead.tan,
    lambda x: adead.clip(x, 0, 1),
    lambda x: adead.outer(x, x),
    lambda x: adead.vecdot(x, x),
    lambda x: adead.einsum("i,i->", x, x),
]


@pytest.mark.parametrize("compute", ARITHMETIC)
def test_arithmetic_is_refused_with_the_remedy(compute):
    with pytest.raises(adead.DtypeMismatchError, match=r'cast (it first|one of them), as in x\.astype\("f32"\)$'):
        compute(wide([0.5, 1.5]))


def test_two_dtypes_are_refused_with_the_remedy():
    x, other = wide([1.0]), adead.Tensor([1.0])
    for call in (
        lambda: x == other,
        lambda: other < x,
        lambda: adead.where(x > 0, x, other),
        lambda: adead.concat([other, x]),
    ):
        with pytest.raises(
            adead.DtypeMismatchError, match=r'operands are f\d\d and f\d\d; cast one of them, as in x\.astype\("f32"\)'
        ):
            call()
    with pytest.raises(IndexError, match="integers or bools, not f64"):
        other[x]
    with pytest.raises(adead.DtypeMismatchError, match="ids must be i32, i64 or u32, not f64$"):
        adead.embedding(other.reshape(1, 1), x)


def test_pipelines_and_buffers():
    ctx = adead.Context("cpu")
    compiled = ctx.pipeline().input((2,), "f64").concat([numpy.array([0.3])]).compile()
    for data in (wide([0.1, 0.2]), numpy.array([0.1, 0.2])):
        assert same(compiled.run(data), [0.1, 0.2, 0.3])
    assert ctx.pipeline().input((2,), "f64").less(numpy.array([0.1 + 1e-15, 0.2])).compile().run(
        wide([0.1, 0.2])
    ).tolist() == [True, False]
    buffer = ctx.buffer([0.1, 0.2], dtype="f64")
    assert (buffer.dtype, buffer.nbytes) == ("f64", 16) and same(buffer.read(), [0.1, 0.2])
    buffer.write(numpy.array([1 / 3]), offset=8)
    assert (
        same(buffer.read(), [0.1, 1 / 3])
        and same(ctx.buffer(wide()).read(), WIDE)
        and same(ctx.buffer(WIDE, dtype="f64").read(), WIDE)
    )
    assert ctx.buffer(WIDE).dtype == "f32"
    double = lambda stage: stage.input  # noqa: E731
    assert [part.tolist() for part in adead.overlap([wide([0.1]), wide([0.2])], double, context=ctx)] == [[0.1], [0.2]]


def test_programs():
    lines = ["input x f64[2]", "const c f64[2] = 0.1 0.3", "output y bool[2]", "output z f64[4]"]
    lines += ["y = equal x c", "z = concat x c axis=0", "halt"]
    program = adead.Program.assemble("\n".join([".adead 1", *lines, ""]))
    for data in (wide([0.1, 0.3 + 1e-16]), numpy.array([0.1, 0.3 + 1e-16])):
        found = program.run({"x": data}).outputs
        assert found["y"].tolist() == [True, False] and same(found["z"], [0.1, 0.3 + 1e-16, 0.1, 0.3])
