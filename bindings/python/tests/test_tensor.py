"""Tensors: values in and out, NumPy, pickling, operators."""

import array
import copy
import gc
import io
import math
import pickle
import weakref

import numpy
import pytest

import adead


def test_numbers_and_lists():
    t = adead.Tensor([[1.0, 2], [3, 4]])
    assert (t.shape, t.dtype, t.ndim, t.size, t.nbytes, len(t)) == ((2, 2), "f32", 2, 4, 16, 2)
    assert t.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert adead.Tensor([1, 2]).dtype == "i64"
    assert adead.Tensor(5).shape == ()
    assert adead.Tensor([]).dtype == "f32"
    assert adead.Tensor([[], []]).shape == (2, 0)
    assert adead.Tensor([1, 2], "u32").tolist() == [1, 2]
    assert adead.Tensor([1, 2], dtype="bf16").tolist() == [1.0, 2.0]
    assert adead.Tensor([0, 1, 2, 3, 4, 5], shape=(2, 3)).shape == (2, 3)
    assert adead.Tensor([0.1]).item() == numpy.float32(0.1)


@pytest.mark.parametrize(
    "data, error",
    [
        ([[1.0], [2.0, 3.0]], adead.ShapeMismatchError),
        ([[1.0], 2.0], adead.ShapeMismatchError),
        ([1.0, [2.0]], adead.ShapeMismatchError),
        (["x"], TypeError),
        (object(), TypeError),
        (None, TypeError),
        (numpy.zeros(3, dtype=numpy.int8), adead.DtypeMismatchError),
        ([numpy.bool_(True)], TypeError),
        ([numpy.complex64(1)], TypeError),
        (numpy.zeros(3, dtype=">f4"), adead.DtypeMismatchError),
    ],
)
def test_what_is_no_tensor(data, error):
    with pytest.raises(error):
        adead.Tensor(data)


def test_integers_must_fit():
    with pytest.raises(adead.InvalidArgumentError, match="4294967296 does not fit in u32"):
        adead.Tensor([2**32], "u32")
    with pytest.raises(adead.DtypeMismatchError):
        adead.Tensor([1.5], "i32")
    with pytest.raises(adead.InvalidArgumentError, match="no dtype 'f65': expected .* or f64"):
        adead.Tensor([1.5], "f65")
    with pytest.raises(OverflowError):
        adead.Tensor([2**63])


def test_lists_that_contain_themselves():
    endless = [1.0]
    endless[0] = endless
    with pytest.raises(adead.ShapeMismatchError):
        adead.Tensor(endless)


@pytest.mark.parametrize("dtype", ["f32", "f16", "f64", "i32", "i64", "u32"])
def test_numpy_in_and_out_without_a_copy(dtype):
    names = {"f32": "float32", "f16": "float16", "f64": "float64", "i32": "int32", "i64": "int64", "u32": "uint32"}
    a = numpy.arange(24, dtype=names[dtype]).reshape(2, 3, 4)
    # Without the dtype, float64 would become f32.
    t = adead.asarray(a, dtype)
    assert (t.dtype, t.shape) == (dtype, (2, 3, 4))
    back = numpy.asarray(t)
    assert back.dtype == a.dtype and (back == a).all()
    assert back.ctypes.data == a.ctypes.data
    assert not back.flags.writeable
    assert numpy.asarray(adead.Tensor(a, dtype)).ctypes.data != a.ctypes.data
    assert t.tobytes() == a.tobytes()


def test_the_array_lives_as_long_as_the_tensor():
    a = numpy.arange(1000, dtype=numpy.float32)
    watched = weakref.ref(a)
    t = adead.asarray(a)
    rows = t[10:20].reshape(2, 5)
    del a, t
    gc.collect()
    assert watched() is not None and rows.tolist()[1][4] == 19.0
    del rows
    gc.collect()
    assert watched() is None


def test_strided_arrays():
    a = numpy.arange(60, dtype=numpy.float32).reshape(3, 4, 5)
    for view in (a.T, a[::2], a[:, ::-1], a[..., 1], a[:, 1:3, 2:], numpy.broadcast_to(a[0, 0], (7, 5)), a[:, :0]):
        assert (numpy.asarray(adead.Tensor(view)) == view).all()
        assert (numpy.asarray(adead.neg(view)) == -view).all()
    with pytest.raises(adead.InvalidArgumentError):
        adead.asarray(a.T, copy=False)
    askew = numpy.frombuffer(bytes(1) + a.tobytes(), dtype=numpy.float32, offset=1)
    assert not askew.flags.aligned
    assert adead.Tensor(askew).tobytes() == adead.asarray(askew).tobytes() == a.tobytes()


def test_asarray():
    t = adead.Tensor([1.0])
    assert adead.asarray(t) is t
    assert adead.asarray(t, copy=True) is not t
    a = array.array("f", [1, 2, 3])
    assert adead.asarray(a, copy=False).tolist() == [1, 2, 3]
    assert adead.asarray([1.5], "f16").dtype == "f16"
    with pytest.raises(adead.InvalidArgumentError):
        adead.asarray([1.5], copy=False)
    with pytest.raises(adead.InvalidArgumentError):
        adead.asarray(a, "f16", copy=False)
    # While it is shared it can't be resized.
    kept = adead.asarray(a)
    with pytest.raises(BufferError):
        a.append(4)
    del kept
    gc.collect()
    a.append(4)


def test_bf16_goes_through_bytes():
    t = adead.Tensor([1.5, -2.0], "bf16")
    assert t.tobytes() == numpy.array([0x3FC0, 0xC000], dtype=numpy.uint16).tobytes()
    assert adead.Tensor.frombytes(t.tobytes(), "bf16", 2).tolist() == [1.5, -2.0]
    with pytest.raises(BufferError, match="bf16"):
        memoryview(t)
    with pytest.raises(adead.DtypeMismatchError, match="bf16"):
        t.numpy()
    with pytest.raises(adead.ShapeMismatchError):
        adead.Tensor.frombytes(b"abc", "bf16", 2)


def test_array_protocol():
    t = adead.Tensor([[1.0, 2.0]])
    assert t.__array__(numpy.float64).dtype == numpy.float64
    assert t.__array__(copy=True).flags.writeable
    assert t.__array__().base is not None
    with pytest.raises(ValueError):
        t.__array__(numpy.float64, copy=False)
    assert numpy.asarray(t, dtype=numpy.float64).tolist() == [[1.0, 2.0]]
    assert numpy.stack([t, t]).shape == (2, 1, 2)
    assert t.numpy().tolist() == t.tolist()
    assert numpy.exp(t).tobytes() == t.exp().tobytes()


def test_buffer_protocol():
    t = adead.Tensor([[1.0, 2.0], [3.0, 4.0]])
    view = memoryview(t)
    assert (view.format, view.shape, view.strides, view.readonly, view.itemsize) == ("f", (2, 2), (8, 4), True, 4)
    assert view.tolist() == t.tolist()
    assert bytes(t) == t.tobytes()
    with pytest.raises((BufferError, TypeError)):
        io.BytesIO(b"12345678").readinto(t)
    assert t.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    scalar = memoryview(adead.Tensor(2.0))
    assert scalar.ndim == 0 and scalar[()] == 2.0
    assert memoryview(adead.Tensor.zeros((3, 0, 2))).nbytes == 0


@pytest.mark.parametrize("dtype", adead.DTYPES)
def test_pickling(dtype):
    t = adead.Tensor([[1, 2, 3], [4, 5, 6]], dtype)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        same = pickle.loads(pickle.dumps(t, protocol))
        assert (same.dtype, same.shape, same.tobytes()) == (t.dtype, t.shape, t.tobytes())
    buffers = []
    data = pickle.dumps(t, 5, buffer_callback=buffers.append)
    assert len(buffers) == 1 and buffers[0].raw().nbytes == t.nbytes
    assert pickle.loads(data, buffers=buffers).tobytes() == t.tobytes()


def test_large_pickles_travel_out_of_band():
    t = adead.Tensor.zeros(1 << 20)
    buffers = []
    assert len(pickle.dumps(t, 5, buffer_callback=buffers.append)) < 300
    assert copy.copy(t) is t and copy.deepcopy([t])[0] is t


def test_indexing():
    t = adead.Tensor(numpy.arange(24, dtype=numpy.int64).reshape(4, 3, 2))
    assert t[1].shape == (3, 2) and t[-1][-1].tolist() == [22, 23]
    assert t[1:3].shape == (2, 3, 2) and t[2:1].shape == (0, 3, 2) and t[:99].shape == (4, 3, 2)
    assert [row.shape for row in t] == [(3, 2)] * 4
    assert t[3][2][1].item() == 23 == int(t[3][2][1])
    for index in (4, -5):
        with pytest.raises(IndexError):
            t[index]
    with pytest.raises(TypeError):
        t["x"]
    with pytest.raises(IndexError):
        adead.Tensor(1.0)[0]


def test_scalars():
    assert float(adead.Tensor([[2.5]])) == 2.5 and bool(adead.Tensor(1)) and not bool(adead.Tensor(0.0))
    with pytest.raises(adead.ShapeMismatchError):
        adead.Tensor([1.0, 2.0]).item()


def test_repr_says_what_it_is():
    assert repr(adead.Tensor([[0.1, 2.0]])) == "Tensor(f32[1, 2], [[0.1, 2.0]])"
    assert repr(adead.Tensor([1] * 9)) == "Tensor(i64[9], [1, 1, 1, 1, 1, 1, 1, 1, 1])"
    assert repr(adead.Tensor(0.5)) == "Tensor(f32[], 0.5)"
    assert repr(adead.Tensor.zeros((1 << 40, 0))) == "Tensor(f32[1099511627776, 0], [])"
    lines = ["Tensor(f32[3, 3], [[1.0, 0.0, 0.0],", "                   [0.0, 1.0, 0.0],", "                   [0.0, 0.0, 1.0]])"]
    assert repr(adead.Tensor(numpy.eye(3, dtype=numpy.float32))).split("\n") == lines
    assert repr(adead.Tensor([[[1], [2]], [[3], [4]]])).count("\n") == 4


def test_repr_of_many_values_shows_the_ends():
    assert repr(adead.Tensor(list(range(2000)))) == "Tensor(i64[2000], [0, 1, 2, …, 1997, 1998, 1999])"
    text = repr(adead.Tensor(numpy.arange(10000, dtype=numpy.int32).reshape(100, 100)))
    assert text.startswith("Tensor(i32[100, 100], [[0, 1, 2, …, 97, 98, 99],\n") and text.count("\n") == 6
    assert text.endswith("[9900, 9901, 9902, …, 9997, 9998, 9999]])") and "\n                       …,\n" in text
    # Also of a matrix whose rows are few and long, and of one with many short rows.
    assert repr(adead.Tensor.zeros((2, 5000))).count("…") == 2
    assert repr(adead.Tensor.zeros((5000, 2))).count("…") == 1


def test_too_much_is_an_error():
    with pytest.raises(adead.OutOfMemoryError):
        adead.Tensor.zeros((1 << 40,))
    with pytest.raises(adead.InvalidArgumentError):
        adead.Tensor.zeros((1 << 62, 1 << 62))
    with pytest.raises(adead.InvalidArgumentError, match="-1"):
        adead.Tensor.zeros((-1,))
    with pytest.raises(adead.OutOfMemoryError):
        adead.Tensor.zeros((1 << 55, 0)).tolist()


def test_operators():
    a, b = adead.Tensor([[1.0, 2.0], [3.0, 4.0]]), adead.Tensor([[2.0, 2.0], [4.0, 4.0]])
    assert (a + b).tolist() == [[3, 4], [7, 8]] and (a - b).tolist() == [[-1, 0], [-1, 0]]
    assert (a * b).tolist() == [[2, 4], [12, 16]] and (a / b).tolist() == [[0.5, 1], [0.75, 1]]
    assert (a @ b).tolist() == [[10, 10], [22, 22]] and (-a).tolist() == [[-1, -2], [-3, -4]]
    assert abs(-a).tolist() == a.tolist() and a.T.tolist() == [[1, 3], [2, 4]]
    assert (a + 1).tolist() == (1 + a).tolist() == [[2, 3], [4, 5]]
    assert (1 - a).tolist() == [[0, -1], [-2, -3]] and (2 / a).tolist()[0] == [2, 1]
    assert (adead.Tensor([1.0], "f16") * 3).dtype == "f16"
    array = numpy.array([[1, 0], [0, 1]], dtype=numpy.float32)
    assert type(array @ a) is type(a @ array) is type(array - a) is adead.Tensor
    assert (array @ a).tolist() == (a @ array).tolist() == a.tolist()
    assert (array - a).tolist() == [[0, -2], [-3, -3]]
    for wrong in ("x", [1.0], None):
        with pytest.raises(TypeError):
            a + wrong
    with pytest.raises(TypeError):
        a @ 2


def test_integers_and_a_float_are_computed_in_f32():
    x = adead.Tensor([1, 2, 3])
    for got, expected in (
        (x * 2.0, [2.0, 4.0, 6.0]),
        (x / 2, [0.5, 1.0, 1.5]),
        (x / numpy.float32(2), [0.5, 1.0, 1.5]),
        (6 / x, [6.0, 3.0, 2.0]),
        (x / adead.Tensor([2, 4, 8]), [0.5, 0.5, 0.375]),
        (adead.divide(x, 2), [0.5, 1.0, 1.5]),
        (x**2.0, [1.0, 4.0, 9.0]),
        (x // 2.0, [0.0, 1.0, 1.0]),
    ):
        assert (got.dtype, got.tolist()) == ("f32", expected)


INTEGERS = ["i32", "i64", "u32", "u8"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic_is_numpys(dtype):
    kind = numpy.dtype(str(adead.DType(dtype).name))
    ends = numpy.iinfo(kind)
    values = numpy.array([0, 1, 2, 3, 7, 100, ends.max, ends.max - 1, ends.min, ends.min + 5, ends.min + 1], kind)
    a, b = numpy.repeat(values, len(values)), numpy.tile(values, len(values))
    x, y = adead.Tensor(a), adead.Tensor(b)
    with numpy.errstate(all="ignore"):
        for function in (
            lambda p, q: p + q,
            lambda p, q: p - q,
            lambda p, q: p * q,
            lambda p, q: p // q,
            lambda p, q: numpy.maximum(p, q),
            lambda p, q: numpy.minimum(p, q),
            lambda p, q: -p,
            lambda p, q: abs(p),
            lambda p, q: p + 1,
            lambda p, q: 3 - p,
            lambda p, q: p * numpy.int64(2) if isinstance(p, adead.Tensor) else p * kind.type(2),
            lambda p, q: p // 7,
            lambda p, q: p % 7,
            lambda p, q: numpy.square(p),
            lambda p, q: p**0,
            lambda p, q: p**1,
            lambda p, q: p**5,
            lambda p, q: numpy.sign(p),
        ):
            expected, found = function(a, b), function(x, y)
            assert found.dtype == dtype and numpy.array_equal(found.numpy(), expected), (found, expected)
        expected = a % numpy.where(b == 0, kind.type(1), b)
        assert numpy.array_equal((x % adead.where(y == 0, 1, y)).numpy(), expected)
    with pytest.raises(OverflowError if dtype == "i64" else adead.InvalidArgumentError):
        x + (int(ends.max) + 1)
    with pytest.raises(adead.DtypeMismatchError, match="cast one of them"):
        x + adead.Tensor([1.0])
    with pytest.raises(ValueError, match="power -1"):
        x**-1
    with pytest.raises(adead.DtypeMismatchError, match="pow: computes on f32"):
        x ** numpy.array([2, 3], kind).repeat(len(values) ** 2 // 2 + 1)[: len(a)]
    with pytest.raises(adead.DtypeMismatchError, match="cast"):
        x / adead.Tensor([1.0])
    assert adead.floor(x).tolist() == adead.round(x).tolist() == x.tolist() and adead.floor(x).dtype == dtype


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
def test_integers_are_reduced(dtype):
    array = numpy.arange(60).reshape(3, 4, 5) % 7 % 256
    array = array.astype(adead.DType(dtype).name)
    x = adead.Tensor(array)
    for axis in (None, 0, (0, 2), -1):
        for name in ("sum", "prod", "max", "min"):
            expected, found = getattr(numpy, name)(array, axis=axis), getattr(x, name)(axis=axis)
            assert numpy.array_equal(found.numpy(), expected), (name, axis)
            assert found.dtype == (dtype if name in ("max", "min") else "i64")
        assert numpy.allclose(x.mean(axis=axis).numpy(), array.mean(axis=axis))
    assert x.argmax(axis=2).tolist() == array.argmax(axis=2).tolist() and x.argmin().item() == array.argmin()
    assert adead.count_nonzero(x, axis=1).tolist() == numpy.count_nonzero(array, axis=1).tolist()
    large = adead.Tensor(numpy.ones(2**24 + 3, "u1"))
    assert large.sum().item() == 2**24 + 3 == adead.count_nonzero(large).item()


def test_bools_count():
    x = adead.Tensor([True, False, True])
    assert ((x + 1).dtype, (x + 1).tolist()) == ("i64", [2, 1, 2])
    assert ((x + x).dtype, (x + x).tolist(), (x * x).tolist()) == ("bool", [True, False, True], [True, False, True])
    assert ((x > 0).sum().item(), (x.cast("i32") + True).tolist()) == (2, [2, 1, 2])
    assert (adead.Tensor([5.0, 1.0]) > 2).mean().item() == 0.5


def test_comparisons():
    a, b = adead.Tensor([1.0, numpy.nan, -0.0]), adead.Tensor([2.0, numpy.nan, 0.0])
    for got, expected in (
        (a == b, [False, False, True]),
        (a != b, [True, True, False]),
        (a < b, [True, False, False]),
        (a <= b, [True, False, True]),
        (a > b, [False, False, False]),
        (a >= 1, [True, False, False]),
        (0 < a, [True, False, False]),
        (a == 1, [True, False, False]),
        (numpy.float32([2, 0, 0]) > a, [True, False, False]),
        (a == b.numpy(), [False, False, True]),
        (adead.less(a, b), [True, False, False]),
    ):
        assert (got.dtype, got.shape, got.tolist()) == ("bool", (3,), expected)
    assert adead.where(a < b, a, b).tolist()[0] == 1.0
    assert (adead.Tensor([[1], [2]]) == adead.Tensor([1, 2])).tolist() == [[True, False], [False, True]]
    # Integers are compared exactly.
    ids = adead.Tensor([2**62 + 1, -1])
    assert (ids == 2**62 + 1).tolist() == [True, False] and (ids > -1).tolist() == [True, False]
    assert (adead.Tensor([1, 2], "u32") > -1).tolist() == [True, True]
    assert (adead.Tensor([True, False]) == True).tolist() == [True, False]  # noqa: E712
    with pytest.raises(adead.DtypeMismatchError, match="cast one of them"):
        a == ids[:1]
    with pytest.raises(TypeError, match="make a Tensor of the list"):
        a == [1.0]
    with pytest.raises(TypeError):
        a < "x"
    assert a is a and (a != None) and not (a == None) and a != "x"  # noqa: E711
    assert a in [a] and {a: 1}[a] == 1 and len({a, b, a}) == 2


def test_truth():
    with pytest.raises(adead.ShapeMismatchError, match="neither true nor false"):
        bool(adead.Tensor([1.0, 2.0]))
    with pytest.raises(adead.ShapeMismatchError, match="0 elements"):
        bool(adead.Tensor.zeros(0))
    assert adead.Tensor(1) == 1 and not adead.Tensor([1.0]) == 2


def test_operations_along_rows():
    x = adead.Tensor([[1.0, numpy.nan, 3.0, 3.0, -0.0, 0.0]])
    assert x.argtopk(6).tolist() == [[1, 2, 3, 0, 5, 4]] and x.argtopk(2, dtype="u32").dtype == "u32"
    assert numpy.array_equal(x.topk(4).numpy(), [[numpy.nan, 3, 3, 1]], equal_nan=True)
    assert x.topk(1, axis=0).tobytes() == x.tobytes() and x.gather(x.argtopk(3)).tobytes() == x.topk(3).tobytes()
    with pytest.raises(adead.InvalidArgumentError, match=r"k is 7; axis 1 of \[1, 6\] has 6 elements"):
        x.topk(7)
    values = numpy.arange(1000, dtype="f4").reshape(2, 500)
    for axis in (0, 1, -1):
        assert numpy.array_equal(adead.cumsum(values, axis=axis).numpy(), values.cumsum(axis))
    random = numpy.random.default_rng(3)
    x, r, gamma = (adead.Tensor(random.random(dims, dtype="f4")) for dims in ((5, 8), (5, 8), (8,)))
    for dtype in ("f32", "f16", "bf16"):
        a, b, g = (tensor.cast(dtype) for tensor in (x, r, gamma))
        assert a.rmsnorm(g, residual=b).tobytes() == (a + b).rmsnorm(g).tobytes()
        assert a.layernorm(g, g, b).tobytes() == (a + b).layernorm(g, g).tobytes()
    angles = numpy.arange(5)[:, None] * numpy.array([1, 0.1, 0.01, 0.001])
    cos, sin = numpy.cos(angles).astype("f4"), numpy.sin(angles).astype("f4")
    for interleaved, first, second in ((False, slice(4), slice(4, 8)), (True, slice(0, 8, 2), slice(1, 8, 2))):
        turned = x.rope(cos, sin, interleaved=interleaved).numpy()
        expected = (x.numpy()[:, first] + 1j * x.numpy()[:, second]) * numpy.exp(1j * angles)
        assert numpy.allclose(turned[:, first] + 1j * turned[:, second], expected, atol=1e-6)


def test_u8():
    x = adead.Tensor(b"abc")
    assert (x.dtype, x.shape, x.nbytes, x.tolist()) == ("u8", (3,), 3, [97, 98, 99])
    array = numpy.array([[0, 255]], dtype=numpy.uint8)
    y = adead.Tensor(array)
    assert y.dtype == "u8" and y.numpy().dtype == numpy.uint8 and numpy.array_equal(numpy.asarray(y), array)
    assert y.cast("f32").tolist() == [[0.0, 255.0]] and adead.Tensor([-1.0, 2.5, 300.0]).cast("u8").tolist() == [0, 2, 255]


def test_bools():
    x = adead.Tensor([[True, False, True]])
    assert (x.dtype, x.shape, x.nbytes, x.tolist()) == ("bool", (1, 3), 3, [[True, False, True]])
    assert repr(x) == "Tensor(bool[1, 3], [[True, False, True]])" and x[0][1].item() is False
    array = numpy.array([True, False, False])
    y = adead.Tensor(array)
    assert y.dtype == "bool" and y.numpy().dtype == numpy.bool_ and numpy.array_equal(numpy.asarray(y), array)
    assert adead.Tensor([0, 2], dtype=bool).tolist() == [False, True]
    assert adead.Tensor([0.5, 0.0], dtype="bool").tolist() == adead.Tensor([0.5, 0.0]).cast("bool").tolist() == [True, False]
    assert adead.Tensor([True, 2]).tolist() == [1, 2] and x.cast("f32").tolist() == [[1.0, 0.0, 1.0]]
    assert adead.concat([x[0], y]).tolist() == [True, False, True, True, False, False]
    assert x.T.tolist() == [[True], [False], [True]] and x.cast("i32").dtype == "i32"
    mask = adead.where(x, adead.Tensor(1.0), adead.Tensor([[0.0], [5.0]]))
    assert mask.tolist() == [[1.0, 0.0, 1.0], [1.0, 5.0, 1.0]]
    with pytest.raises(adead.DtypeMismatchError, match="computes on f32, f16 and bf16, not bool"):
        x.relu()
    with pytest.raises(adead.DtypeMismatchError, match="condition is bool"):
        adead.where(adead.Tensor([1.0]), x, x)


def test_numbers_of_numpy():
    assert adead.Tensor([numpy.float32(1), 2.0]).tolist() == [1.0, 2.0]
    assert adead.Tensor([numpy.int64(1), 2]).dtype == "i64" and adead.Tensor(numpy.int32(7)).item() == 7
    assert adead.Tensor([numpy.float16(0.5)], dtype=numpy.float16).dtype == "f16"
    x = adead.Tensor([1.0, 2.0])
    assert (x * numpy.int64(2)).tolist() == [2, 4] == (numpy.float32(2) * x).tolist() == (x * numpy.float64(2)).tolist()


def test_dtypes_by_numpys_names():
    for dtype in (numpy.float32, numpy.dtype("float32"), "float32", "f32", float):
        assert adead.Tensor([1, 2], dtype=dtype).dtype == "f32"
    x = adead.Tensor([1.0, 2.0])
    assert x.cast(numpy.float16).dtype == "f16" == x.cast("float16").dtype and x.cast(int).dtype == "i64"
    assert adead.cast(x, dtype=numpy.dtype("uint32")).dtype == "u32" and x.argmax(dtype=numpy.int32).dtype == "i32"
    assert adead.Tensor.zeros(2, numpy.int32).dtype == "i32" == adead.asarray([1], numpy.int32).dtype
    assert adead.Tensor.frombytes(b"abcd", numpy.float32, 1).size == 1
    assert adead.Tensor([1.0], dtype=numpy.float64).dtype == "f64"
    for wrong in (numpy.int8, dict, 5, numpy.dtype("complex64")):
        with pytest.raises(TypeError, match="pass a name"):
            adead.Tensor([1.0], dtype=wrong)
    with pytest.raises(adead.InvalidArgumentError, match="no dtype 'f33'"):
        adead.Tensor([1.0], dtype="f33")


def test_float64_narrows_to_the_nearest_f32():
    wide = numpy.array([[0.1, 1e-50, 1 + 2**-24, 1 + 3 * 2**-24], [1e300, -1e39, float("nan"), -0.0]])
    with numpy.errstate(over="ignore"):
        expected = wide.astype(numpy.float32)
    for found in (adead.Tensor(wide), adead.Tensor(wide, dtype="f32"), adead.asarray(wide), adead.Tensor(wide.T).T):
        assert found.dtype == "f32" and numpy.asarray(found).tobytes() == expected.tobytes()
    assert adead.Tensor(wide[:, ::2]).tolist()[0] == expected[0, ::2].tolist()
    assert adead.Tensor(wide[::-1])[1].tolist() == expected[0].tolist()
    x = adead.Tensor([[1.0, 2.0, 3.0, 4.0]])
    assert (x + wide[:1]).tobytes() == (wide[:1] + x).tobytes() == (x + expected[:1]).tobytes()
    assert adead.relu(wide[:1]).tobytes() == adead.relu(expected[:1]).tobytes()
    assert adead.Tensor(wide[:1], dtype="f16").dtype == "f16" and adead.Tensor(numpy.zeros((0, 3))).shape == (0, 3)
    assert adead.Tensor(wide[1:], dtype="i64").tolist() == [[2**63 - 1, -(2**63), 0, 0]]
    with pytest.raises(adead.InvalidArgumentError, match="float64"):
        adead.asarray(wide, copy=False)


def test_a_dimension_may_be_left_open():
    x = adead.Tensor(list(range(6)))
    assert x.reshape(-1, 2).shape == (3, 2) == x.reshape((3, -1)).shape and x.reshape(2, 3).reshape(-1).shape == (6,)
    assert adead.Tensor([1, 2, 3, 4], shape=(2, -1)).shape == (2, 2)
    with pytest.raises(adead.ShapeMismatchError, match="multiple of 4"):
        x.reshape(4, -1)
    with pytest.raises(adead.InvalidArgumentError, match="at most one"):
        x.reshape(-1, -1)
    with pytest.raises(adead.InvalidArgumentError, match="-2"):
        x.reshape(-2)


def test_errors_say_what_to_do():
    x = adead.Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with pytest.raises(adead.ShapeMismatchError, match=r"\[2, 3\] has 6 elements, not one: .* tolist"):
        x.item()
    with pytest.raises(adead.InvalidArgumentError, match=r"takes at most 1 operand \(x\); 2 were given"):
        adead.Context("cpu").run("relu", [x, x])
    for axis in ((0, 1), [0]):
        with pytest.raises(adead.InvalidArgumentError, match="one integer"):
            x.softmax(axis=axis)
    with pytest.raises(adead.InvalidArgumentError, match="pass axis or axes, not both"):
        x.sum(axes=[0], axis=(0, 1))
    for norm in (adead.layernorm, adead.rmsnorm):
        for eps in (-1, float("nan")):
            with pytest.raises(adead.InvalidArgumentError, match="at least 0"):
                norm(x, eps=eps)


def test_operations_are_the_same_everywhere():
    x = adead.Tensor([[0.5, -1.0, 2.0], [1.0, 0.0, -3.0]])
    ctx = adead.Context("cpu")
    unary = ["neg", "abs", "exp", "log", "sqrt", "rsqrt", "relu", "sigmoid", "tanh", "gelu", "silu", "floor", "round"]
    unary += ["erf", "clamp", "softmax", "sum"]
    for name in unary:
        first = getattr(adead, name)(x).tobytes()
        assert first == getattr(ctx, name)(x).tobytes() == getattr(x, name)().tobytes(), name
        assert first == ctx.run(name, [x]).tobytes() == getattr(adead, name)(numpy.asarray(x)).tobytes(), name
    assert set(adead.OPERATIONS) <= set(adead.__all__)
    for name in adead.OPERATIONS:
        assert callable(getattr(ctx, name)) and (name == "concat" or callable(getattr(x, name)))


def test_arguments():
    x = adead.Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert adead.sum(x, axis=0).tolist() == adead.sum(x, 0).tolist() == x.sum(axis="0").tolist() == [4, 6]
    assert x.sum("all").item() == 10 == x.sum().item()
    assert x.sum(1, True).shape == (2, 1) == x.sum(1, keepdim=1).shape
    assert adead.matmul(x, x, alpha=0.5, trans_b=True).tolist() == [[2.5, 5.5], [5.5, 12.5]]
    assert adead.matmul(a=x, b=x).tolist() == (x @ x).tolist()
    assert x.transpose(perm=(1, 0)).tolist() == x.transpose([-1, 0]).tolist() == x.T.tolist()
    assert x.cast("f16").dtype == "f16" and x.argmax(axis=1, dtype="u32").dtype == "u32"
    assert x.scale(numpy.float32(0.1)).tobytes() == x.scale(0.1).tobytes() == (x * 0.1).tobytes()
    assert x.softmax(numpy.int64(-1)).tobytes() == x.softmax().tobytes() == x.softmax(axis=None).tobytes()
    assert adead.concat([x, x], axis=1).shape == (2, 4)
    assert adead.layernorm(x, None, adead.Tensor([1.0, 2.0])).shape == (2, 2)
    w = adead.Tensor([[1.0, 0.0], [0.0, 1.0]])
    assert x.ffn(w, None, w).tolist() == x.tolist() == adead.ffn(x, w, None, w, activation="none").tolist()
    assert adead.Tensor(2.0).transpose([]).item() == 2.0


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda x: x.relu(1), TypeError, "at most 0"),
        (lambda x: adead.relu(), adead.InvalidArgumentError, r"operand 0 \(x\) is missing"),
        (lambda x: adead.matmul(b=x), adead.InvalidArgumentError, r"operand 0 \(a\) is missing"),
        (lambda x: adead.relu(None), adead.InvalidArgumentError, "relu"),
        (lambda x: adead.relu(x, x=x), TypeError, "twice"),
        (lambda x: x.sum(foo=1), TypeError, "no parameter 'foo'"),
        (lambda x: x.softmax(7), adead.InvalidArgumentError, "axis"),
        (lambda x: x.softmax(0.5), adead.InvalidArgumentError, "axis is '0.5'; it must be one integer"),
        (lambda x: x.softmax("x"), adead.InvalidArgumentError, "axis is 'x'; it must be one integer"),
        (lambda x: x.cast("f65"), adead.InvalidArgumentError, "no dtype 'f65'"),
        (lambda x: x.sum(keepdim=3), adead.InvalidArgumentError, "keepdim is '3'; it must be 0 or 1"),
        (lambda x: x.transpose([0, 0]), adead.InvalidArgumentError, "perm"),
        (lambda x: x.softmax(object()), TypeError, "axis can't be a object"),
        (lambda x: adead.matmul(x, 1), TypeError, "an operand is a tensor"),
        (lambda x: adead.where(x > 0, adead.Tensor([1, 2, 3]), 0.5), adead.DtypeMismatchError, "0.5 is a float"),
        (lambda x: x.sum(keepdims=True, keepdim=True), TypeError, "got 'keepdim' twice"),
        (lambda x: x.sum(out=x), TypeError, "no parameter 'out'"),
        (lambda x: adead.default_context().run("nothing", [x]), adead.InvalidArgumentError, "no operation 'nothing'"),
        (lambda x: adead.default_context().run("relu", [x], axis=1), adead.InvalidArgumentError, "no attribute 'axis'"),
        (lambda x: adead.matmul(x, adead.Tensor.zeros((4, 5))), adead.ShapeMismatchError, r"\(3\) must equal B's rows \(4\)"),
        (lambda x: adead.Context("cpu").relu(adead.default_context().pack(x)), adead.InvalidArgumentError, "packed"),
    ],
)
def test_what_is_wrong_is_said(call, error, text):
    x = adead.Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with pytest.raises(error, match=text):
        call(x)


def test_constants_of_exact_floats():
    # 0.1's nearest f32, rounded once from the f64.
    x = adead.Tensor([1.0])
    for value in (0.1, 1 / 3, 1e-45, 3.4028234663852886e38, math.inf, 16777217.0):
        assert x.scale(value).tobytes() == numpy.float32(value).tobytes()
