"""Functions with NumPy's names beside NumPy's: the same arguments give the same values."""

import inspect

import numpy
import pytest

import adead

RNG = numpy.random.default_rng(1)
X = RNG.standard_normal((3, 4, 5)).astype(numpy.float32)
Y = RNG.standard_normal((4, 5)).astype(numpy.float32) + numpy.float32(3)


def close(found, expected):
    expected = numpy.asarray(expected)
    assert found.shape == expected.shape
    numpy.testing.assert_allclose(numpy.asarray(found), expected, rtol=2e-6, atol=2e-6)


def equal(found, expected):
    expected = numpy.asarray(expected)
    assert found.shape == expected.shape and found.dtype == expected.dtype, (found.dtype, expected.dtype)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1), (2, 0), (0, 1, 2), [1]], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(axis, keepdims):
    x, along = adead.Tensor(X), tuple(axis) if isinstance(axis, list) else axis
    for name in ("sum", "mean", "max", "min", "prod", "std", "var"):
        expected = getattr(numpy, name)(X, axis=along, keepdims=keepdims)
        close(getattr(adead, name)(x, axis=axis, keepdims=keepdims), expected)
        close(getattr(x, name)(axis=axis, keepdims=keepdims), expected)
        close(getattr(numpy, name)(x, axis=axis, keepdims=keepdims), expected)
    close(x.std(axis=axis, ddof=1), X.std(axis=along, ddof=1))
    close(x.var(axis=axis, correction=1), X.var(axis=along, ddof=1))
    for name in ("all", "any"):
        for array in (X > 0, X < 9, X > 9):
            equal(
                getattr(adead.Tensor(array), name)(axis=axis, keepdims=keepdims),
                getattr(array, name)(axis=along, keepdims=keepdims),
            )
    equal(
        adead.count_nonzero(X > 0, axis=axis, keepdims=keepdims),
        numpy.count_nonzero(X > 0, axis=along, keepdims=keepdims),
    )
    if not isinstance(axis, (tuple, list)):
        for name in ("argmax", "argmin"):
            equal(getattr(x, name)(axis=axis, keepdims=keepdims), getattr(X, name)(axis=axis, keepdims=keepdims))


def test_reductions_go_through_the_contract():
    x = adead.Tensor(X)
    assert x.sum(axis=(0, 2)).tobytes() == x.sum(axes=[0, 2]).tobytes() == numpy.sum(x, axis=(0, 2)).tobytes()
    away = x - x.mean()
    assert x.var().tobytes() == ((away * away).sum() / 60.0).tobytes()
    # f16 is computed in f32 and rounded once.
    half = x.cast("f16")
    assert half.std().dtype == "f16" and half.std().tobytes() == half.cast("f32").std().cast("f16").tobytes()


def test_operators():
    x, y = adead.Tensor(X), adead.Tensor(Y)
    close(x**2, X**2)
    close(2**x, 2**X)
    close(y**x, Y**X)
    close(y**-0.5, Y**-0.5)
    equal(x // y, numpy.floor(X / Y))
    equal(x // 2, X // 2)
    close(7 // y, 7 // Y)
    close(x % y, X % Y)
    close(x % 2.0, X % numpy.float32(2))
    close(5 % y, numpy.float32(5) % Y)
    assert (+x) is x
    equal(Y // x if False else Y + x, Y + X)
    a, b = X > 0, Y > 3
    for function in (
        lambda p, q: p & q,
        lambda p, q: p | q,
        lambda p, q: p ^ q,
        lambda p, q: ~p & q,
        lambda p, q: p & True,
        lambda p, q: False | q,
    ):
        equal(function(adead.Tensor(a), adead.Tensor(b)), function(a, b))
        equal(function(adead.Tensor(a), b), function(a, b))
    before = x
    x += 1
    x *= y
    x **= 2
    x -= y
    x /= 3.0
    x //= 1
    assert x is not before and before.tobytes() == X.tobytes()
    close(x, (((X + 1) * Y) ** 2 - Y) / 3 // 1)
    for wrong in (lambda: x & x, lambda: ~x, lambda: adead.Tensor([True]) & 1):
        with pytest.raises(adead.DtypeMismatchError, match="bools"):
            wrong()
    for wrong in (lambda: x // "a", lambda: x & None, lambda: x ** [1], lambda: pow(x, 2, 3)):
        with pytest.raises(TypeError):
            wrong()


@pytest.mark.parametrize(
    "name",
    "abs exp sqrt floor sin cos tanh log1p expm1 ceil trunc sign square reciprocal log2 log10 tan isnan isinf isfinite positive negative".split(),
)
def test_elementwise(name):
    for array in (
        Y,
        X if name not in ("sqrt", "log1p", "log2", "log10", "tan") else Y,
        numpy.float32([0.0, 1.0, numpy.inf, numpy.nan]),
    ):
        with numpy.errstate(all="ignore"):
            expected = getattr(numpy, name)(array)
            found = getattr(adead, name)(adead.Tensor(array))
        assert found.tobytes() == getattr(numpy, name)(adead.Tensor(array)).tobytes()
        if expected.dtype == bool:
            equal(found, expected)
        else:
            close(found, expected)


def test_numbers_are_operands():
    x = adead.Tensor(X)
    equal(adead.maximum(x, 0.5), numpy.maximum(X, numpy.float32(0.5)))
    equal(adead.where(x > 0, x, 0), numpy.where(X > 0, X, numpy.float32(0)))
    equal(adead.where(X > 0, 1, X), numpy.where(X > 0, numpy.float32(1), X))
    equal(adead.where(X > 0, adead.Tensor(2), -1), numpy.where(X > 0, 2, -1))
    equal(adead.less(x, 0), X < 0)
    equal(adead.clip(x, -0.5, 0.5), X.clip(numpy.float32(-0.5), numpy.float32(0.5)))
    equal(x.clip(min=0), X.clip(0, None))
    equal(numpy.clip(x, None, 0.25), X.clip(None, numpy.float32(0.25)))
    equal(x.clip(adead.Tensor(Y) - 4, Y), X.clip(Y - 4, Y))
    # The other operand's dtype is the number's.
    assert adead.maximum(x.cast("f16"), 0.1).dtype == "f16" and adead.equal(
        adead.Tensor([2**53 + 1]), 2**53
    ).tolist() == [False]


def test_joining_and_cutting():
    x = adead.Tensor(X)
    for axis in (0, 1, -1, 3):
        equal(adead.stack([x, x + 1], axis=axis), numpy.stack([X, X + 1], axis=axis))
    for sections, axis in ((3, 0), (2, 1), ([1, 3], 2), ([2], -1), ([0, 7], 1)):
        parts = adead.split(x, sections, axis=axis)
        expected = numpy.split(X, sections, axis=axis)
        assert len(parts) == len(expected)
        for part, array in zip(parts, expected):
            equal(part, array)
    assert [part.tobytes() for part in adead.unstack(x, axis=1)] == [
        numpy.ascontiguousarray(X[:, at]).tobytes() for at in range(4)
    ]
    one = X[:1, None]
    for axis in (None, 0, 1, (0, 1), -4):
        equal(adead.squeeze(adead.Tensor(one), axis=axis), numpy.squeeze(one, axis=axis))
        equal(numpy.squeeze(adead.Tensor(one), axis=axis), numpy.squeeze(one, axis=axis))
    for axis in (0, -1, 3, (0, 2)):
        equal(adead.expand_dims(x, axis), numpy.expand_dims(X, axis))
    for error, text, call in (
        (
            adead.ShapeMismatchError,
            r"stack: shapes must be equal, got \[3, 4, 5\] and \[4, 5\]",
            lambda: adead.stack([x, x[0]]),
        ),
        (
            adead.ShapeMismatchError,
            "4 entries of axis 1 can't be cut into 3 equal parts",
            lambda: adead.split(x, 3, axis=1),
        ),
        (
            adead.ShapeMismatchError,
            r"squeeze: axis 1 has 4 entries, not one: the shape is \[3, 4, 5\]",
            lambda: x.squeeze(1),
        ),
        (adead.InvalidArgumentError, "squeeze: axis 3 is out of range for 3 dimensions", lambda: x.squeeze(3)),
        (
            adead.ShapeMismatchError,
            r"shape \[3, 4, 5\] doesn't broadcast to \[3, 4, 1\]",
            lambda: adead.broadcast_to(x, (3, 4, 1)),
        ),
        (adead.ShapeMismatchError, r"\[3, 4, 5\] and \[3, 5\] don't broadcast", lambda: x + x[:, 0]),
        (
            adead.ShapeMismatchError,
            r"\[3, 4, 5\] and \[4, 4\] don't broadcast",
            lambda: adead.broadcast_arrays(x, Y[:, :4]),
        ),
        (adead.InvalidArgumentError, "name an axis twice", lambda: x.std(axis=(0, -3))),
    ):
        with pytest.raises(error, match=text):
            call()


def test_turning_and_repeating():
    x = adead.Tensor(X)
    for axis in (None, 0, (0, 2), -1):
        equal(adead.flip(x, axis=axis), numpy.flip(X, axis=axis))
    for shift, axis in ((2, None), (1, 0), (-7, 2), ((1, 2), (0, 1)), (0, 1)):
        equal(adead.roll(x, shift, axis=axis), numpy.roll(X, shift, axis=axis))
    equal(adead.moveaxis(x, 0, -1), numpy.moveaxis(X, 0, -1))
    equal(adead.moveaxis(x, [0, 1], [-1, 0]), numpy.moveaxis(X, [0, 1], [-1, 0]))
    equal(adead.swapaxes(x, 0, 2), numpy.swapaxes(X, 0, 2))
    equal(adead.permute_dims(x, (2, 0, 1)), X.transpose(2, 0, 1))
    equal(x.mT, X.swapaxes(-1, -2))
    equal(adead.broadcast_to(x[0, 0], (2, 5)), numpy.broadcast_to(X[0, 0], (2, 5)))
    for times in (2, (2, 3), (1, 2, 1, 2), (0, 1)):
        equal(adead.tile(x, times), numpy.tile(X, times))
    for repeats, axis in ((2, None), (3, 1), ([0, 1, 2], 0)):
        equal(adead.repeat(x, repeats, axis=axis), numpy.repeat(X, repeats, axis=axis))
    equal(adead.take(x, [3, -1, 0], axis=1), numpy.take(X, [3, -1, 0], axis=1))
    equal(x.take([[0, 59]]), X.take([[0, 59]]))
    equal(x.ravel(), X.ravel())
    equal(adead.Tensor(X > 0).flatten(), (X > 0).ravel())
    for found, expected in zip(adead.nonzero(x > 0), numpy.nonzero(X > 0), strict=True):
        equal(found, expected)


def test_creation():
    for arguments in ((5,), (2, 9), (9, 2, -3), (3, 3), (0, 10, 4), (-2, -9)):
        equal(adead.arange(*arguments), numpy.arange(*arguments))
    for arguments in ((5.0,), (0.5, 3.25, 0.25), (1, 0, -0.125), (3.0, 1.0)):
        close(adead.arange(*arguments), numpy.arange(*arguments))
    for arguments, options in (
        ((0, 1), {}),
        ((-2, 3, 7), {}),
        ((1, 2, 4), {"endpoint": False}),
        ((3, 4, 1), {}),
        ((3, 4, 0), {}),
    ):
        close(adead.linspace(*arguments, **options), numpy.linspace(*arguments, **options))
    assert adead.linspace(0, 0.1, 10)[-1].item() == numpy.float32(0.1)
    for arguments in ((3,), (2, 4), (4, 3, 1), (3, 5, -2)):
        equal(adead.eye(*arguments), numpy.eye(*arguments, dtype=numpy.float32))
    equal(adead.full((2, 3), 7), numpy.full((2, 3), 7))
    equal(adead.full(3, True), numpy.full(3, True))
    equal(adead.ones((2, 0)), numpy.ones((2, 0), numpy.float32))
    equal(adead.ones_like(adead.Tensor([1, 2])), numpy.ones_like([1, 2]))
    equal(adead.zeros_like(X), numpy.zeros_like(X))
    for k in (-1, 0, 2):
        equal(adead.tril(X, k), numpy.tril(X, k))
        equal(adead.triu(X, k), numpy.triu(X, k))
    for indexing in ("xy", "ij"):
        for found, expected in zip(
            adead.meshgrid(Y[0], Y[:, 0], X[0, 0], indexing=indexing),
            numpy.meshgrid(Y[0], Y[:, 0], X[0, 0], indexing=indexing),
        ):
            equal(found, expected)
    with pytest.raises(adead.InvalidArgumentError, match="step can't be 0"):
        adead.arange(0, 1, 0)


def test_differences():
    for axis, n in ((-1, 1), (0, 2), (1, 0)):
        close(adead.diff(X, axis=axis, n=n), numpy.diff(X, n=n, axis=axis))


def test_sorting():
    array = numpy.float32([[2, 1, 2, 1, 0.5], [numpy.inf, 3, -numpy.inf, 3, 3]])
    x = adead.Tensor(array)
    for axis in (0, 1):
        equal(adead.sort(x, axis=axis), numpy.sort(array, axis=axis))
        equal(adead.argsort(x, axis=axis), numpy.argsort(array, axis=axis, kind="stable"))
    equal(adead.sort(x, descending=True), -numpy.sort(-array))
    equal(x.argsort(descending=True), numpy.argsort(-array, kind="stable"))


@pytest.mark.parametrize(
    "formula, shapes",
    [
        *(
            ("ij,jk->ik", [(2, 3), (3, 4)]),
            ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
            ("ij->ji", [(2, 3)]),
            ("ij->", [(2, 3)]),
            ("ii->i", [(3, 3)]),
        ),
        *(
            ("ii", [(3, 3)]),
            ("i,j->ij", [(2,), (3,)]),
            ("i,i", [(3,), (3,)]),
            ("ij,j", [(2, 3), (3,)]),
            ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
        ),
        *(
            ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
            ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
            ("i...->...", [(2, 3, 4)]),
        ),
        *(
            ("ijk,ij->k", [(2, 3, 4), (2, 3)]),
            ("ij,ij->ij", [(2, 3), (2, 3)]),
            ("iij->j", [(3, 3, 2)]),
            ("ab,cd->dcba", [(1, 2), (3, 2)]),
            ("ij, kj", [(2, 3), (4, 3)]),
        ),
        *(
            ("ij,ij->", [(1, 3), (2, 3)]),
            ("i,i,i->i", [(3,), (3,), (3,)]),
            ("...", [(2, 3)]),
            ("ik,jk->ij", [(0, 3), (2, 3)]),
            ("ik,jk->ij", [(2, 0), (2, 0)]),
        ),
    ],
)
def test_einsum(formula, shapes):
    arrays = [RNG.standard_normal(shape).astype(numpy.float32) for shape in shapes]
    close(adead.einsum(formula, *map(adead.Tensor, arrays)), numpy.einsum(formula, *arrays))
    if formula == "ij,jk->ik":
        assert adead.einsum(formula, *arrays).tobytes() == adead.matmul(*arrays).tobytes()


def test_products():
    close(adead.outer(X[0, 0], Y[0]), numpy.outer(X[0, 0], Y[0]))
    close(adead.tensordot(X, Y), numpy.tensordot(X, Y))
    close(adead.tensordot(X, Y, axes=([1, 2], [0, 1])), numpy.tensordot(X, Y, axes=([1, 2], [0, 1])))
    close(adead.tensordot(X, Y, axes=(2, 1)), numpy.tensordot(X, Y, axes=(2, 1)))
    close(adead.vecdot(X, Y), (X * Y).sum(-1))
    for formula, text in (
        ("ij,jk", r"has 2 operands, and 1"),
        ("ijkl->i", r"doesn't fit the shape \[3, 4, 5\]"),
        ("ijk->z", "'z' of the result"),
    ):
        with pytest.raises(adead.Error, match=text):
            adead.einsum(formula, X)
    with pytest.raises(adead.ShapeMismatchError, match="axis 'j' has 4 and 5"):
        adead.einsum("ijk,j->i", X, Y[0])


def test_numpys_functions():
    x = adead.Tensor(X)
    for found in (numpy.add(x, Y), numpy.add(Y, x), Y + x, x + Y):
        assert isinstance(found, adead.Tensor) and found.tobytes() == (x + adead.Tensor(Y)).tobytes()
    assert (Y - x).tobytes() == (adead.Tensor(Y) - x).tobytes() and (Y < x).tobytes() == (x > Y).tobytes()
    assert (numpy.float32(2) * x).tobytes() == (2 * x).tobytes() == numpy.multiply(2.0, x).tobytes()
    assert numpy.matmul(x, Y.T).tobytes() == (x @ Y.T).tobytes() and numpy.power(x, 2).tobytes() == (x**2).tobytes()
    assert (
        numpy.maximum(x, Y).tobytes() == adead.maximum(x, Y).tobytes()
        and numpy.absolute(x).tobytes() == abs(x).tobytes()
    )
    assert (
        numpy.add.reduce(x).tobytes() == x.sum(axis=0).tobytes()
        and numpy.maximum.reduce(x, axis=(0, 1)).tobytes() == x.max(axis=(0, 1)).tobytes()
    )
    for call, text in (
        (lambda: numpy.arctan(x), r"numpy.arctan is no operation of adead: numpy.arctan\(numpy.asarray\(x\)"),
        (lambda: numpy.add.accumulate(x), "numpy.add.accumulate is no operation"),
        (lambda: numpy.add(x, x, out=X.copy()), "takes no out"),
    ):
        with pytest.raises(TypeError, match=text):
            call()


def test_dtypes_are_objects_and_strings():
    x = adead.Tensor([1.0])
    assert (
        x.dtype == "f32" == adead.float32
        and x.dtype == numpy.float32
        and x.dtype == numpy.dtype("float32")
        and x.dtype != "f16"
    )
    assert (
        isinstance(x.dtype, adead.DType) and isinstance(x.dtype, str) and x.dtype is x.dtype and f"{x.dtype}" == "f32"
    )
    assert (x.dtype.name, x.dtype.itemsize, x.dtype.kind, repr(x.dtype)) == ("float32", 4, "f", "adead.float32")
    assert [adead.DType(name) for name in adead.DTYPES] == list(adead.DTYPES) and {adead.int64: 1}["i64"] == 1
    assert adead.DType(numpy.bool_) == "bool" == adead.DType(bool) and adead.DType("bfloat16") is not None
    for dtype in (adead.float16, numpy.float16, numpy.dtype("f2"), "float16", "f16"):
        assert x.cast(dtype).dtype == x.astype(dtype).dtype == adead.Tensor([1.0], dtype).dtype == "f16"
    assert (
        adead.isdtype(x.dtype, "real floating")
        and adead.isdtype("u8", ("bool", "integral"))
        and not adead.isdtype("bool", "numeric")
    )
    assert (
        adead.isdtype("i32", adead.int32) and adead.iinfo("i32").max == 2**31 - 1 and adead.iinfo(adead.uint8).min == 0
    )
    for name in ("float32", "float16", "float64"):
        theirs, ours = numpy.finfo(name), adead.finfo(name)
        assert (ours.bits, ours.eps, ours.max, ours.min, ours.smallest_normal) == (
            theirs.bits,
            theirs.eps,
            theirs.max,
            theirs.min,
            theirs.smallest_normal,
        )
    for wrong in (
        lambda: adead.DType("f65"),
        lambda: adead.DType(None),
        lambda: adead.iinfo("f32"),
        lambda: adead.finfo("i32"),
    ):
        with pytest.raises(adead.InvalidArgumentError, match="expected"):
            wrong()


def test_signatures_show_defaults_that_are_true():
    x = adead.Tensor(X)
    assert str(inspect.signature(adead.softmax)) == "(x, axis=-1)"
    assert str(inspect.signature(adead.Tensor.sum)) == "(self, /, axis=None, keepdim=False, axes=None, *, keepdims=None)"
    assert str(inspect.signature(adead.matmul)).endswith("alpha=1.0, beta=0.0, activation='none', precision=None)")
    assert str(inspect.signature(adead.layernorm)).endswith("eps=1e-05)")
    for name in (
        "softmax",
        "sum",
        "argmax",
        "gelu",
        "clamp",
        "cumsum",
        "topk",
        "argtopk",
        "rmsnorm",
        "cast",
        "scale",
        "slice",
        "transpose",
    ):
        defaults = {
            p.name: p.default
            for p in inspect.signature(getattr(adead, name)).parameters.values()
            if p.default is not p.empty
        }
        assert getattr(adead, name)(x, **defaults).tobytes() == getattr(adead, name)(x).tobytes(), name
    for name in adead.OPERATIONS:
        text = getattr(adead, name).__doc__
        assert len(text) > 100 and all(
            f"\n\n{parameter}: " in text for parameter in inspect.signature(getattr(adead, name)).parameters
        ), name
    for name in adead.__all__:
        value = getattr(adead, name)
        assert not inspect.isfunction(value) or value.__doc__, name


def test_html():
    assert '<td style="text-align:right">2.5</td>' in adead.Tensor([[1.0, 2.5]])._repr_html_()
    assert (
        "f32, 100 × 100" in (text := adead.zeros((100, 100))._repr_html_())
        and text.count("<tr>") == 21
        and "⋯" in text
        and "⋮" in text
    )
    assert (
        "<pre>" in adead.Tensor(X)._repr_html_()
        and "scalar" in adead.Tensor(1)._repr_html_()
        and "True" in adead.Tensor([True])._repr_html_()
    )


def test_remainders_of_infinities():
    x, y = numpy.float32([5, -5, 0, numpy.inf, numpy.nan, 3])[:, None], numpy.float32([numpy.inf, -numpy.inf, 2, -3, 0])
    with numpy.errstate(all="ignore"):
        expected = x % y
    assert numpy.array_equal((adead.Tensor(x) % adead.Tensor(y)).numpy(), expected, equal_nan=True)
    assert (adead.Tensor([5.0, -5.0]) % float("inf")).tolist() == [5.0, float("inf")]


def test_integers_of_two_dtypes_are_computed_in_one_that_holds_both():
    for a, b, expected in (
        ("u8", "i32", "i32"),
        ("u8", "u32", "u32"),
        ("i32", "u32", "i64"),
        ("i32", "i64", "i64"),
        ("bool", "u8", "u8"),
    ):
        x, y = adead.Tensor([1, 1, 0], a), adead.Tensor([1, 0, 0], b)
        assert (x + y).dtype == (y * x).dtype == adead.maximum(x, y).dtype == adead.where(x == y, x, y).dtype == expected
        assert (x + y).tolist() == ([2, 1, 0]) and (x == y).tolist() == [True, False, True]
        assert adead.result_type(x, b) == expected == adead.result_type(b, x, 7)
        assert adead.can_cast(a, expected) and adead.can_cast(b, expected)
    assert adead.result_type("f16") == "f16" == adead.result_type("f16", 2.0) and not adead.can_cast("f32", "f16")
    assert not adead.can_cast("i64", "i32") and not adead.can_cast("i32", "f32")
    for wrong in (("f32", "i32"), ("bool", "f32"), (1, 2.0), ("i32", 0.5), ("f32", 1j)):
        with pytest.raises(adead.InvalidArgumentError, match="result_type"):
            adead.result_type(*wrong)
    with pytest.raises(adead.DtypeMismatchError):
        adead.Tensor([1]) + adead.Tensor([1.0])


def test_signs_and_sums_of_exponentials():
    x = numpy.float32([-0.0, 0.0, -1.5, 2.0, numpy.inf, -numpy.inf])
    assert numpy.array_equal(adead.signbit(adead.Tensor(x)).numpy(), numpy.signbit(x))
    a, b = x[:, None], x
    found = adead.copysign(adead.Tensor(a), adead.Tensor(b)).numpy()
    assert found.tobytes() == numpy.copysign(a, b).tobytes()
    with numpy.errstate(all="ignore"):
        expected = numpy.logaddexp(a * 50, b)
    numpy.testing.assert_allclose(adead.logaddexp(adead.Tensor(a * 50), adead.Tensor(b)), expected, rtol=1e-6)
    assert numpy.isnan(adead.logaddexp(adead.Tensor([numpy.nan]), 1.0).item())


def test_arguments_of_the_standard():
    x = adead.Tensor([3.0, 1.0, 2.0])
    assert adead.sort(x, stable=False).tolist() == [1, 2, 3] and adead.argsort(x, stable=True).tolist() == [1, 2, 0]
    assert adead.repeat(x, adead.Tensor([1, 0, 2])).tolist() == [3, 2, 2] == adead.repeat(x, [1, 0, 2]).tolist()
    assert adead.diff(x, prepend=adead.Tensor([0.0]), append=[5.0]).tolist() == [3, -2, 1, 3]
    assert adead.astype(x, "i32", copy=False).dtype == "i32" and adead.eye(2, k=2**70).tolist() == [[0, 0], [0, 0]]
    assert adead.iinfo(adead.Tensor([1], "u8")).max == 255 and adead.finfo(x).eps == 2.0**-23
    assert adead.ceil(adead.Tensor([3])).tolist() == [3] == adead.trunc(adead.Tensor([3])).tolist()
    assert adead.vecdot(adead.Tensor([1, 2]), adead.Tensor([3, 4])).item() == 11
    info = adead.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] and info.default_device() is None and info.devices() == [None]
    assert set(info.default_dtypes()) == {"real floating", "integral", "indexing"}
    assert info.dtypes(kind=("bool", "unsigned integer")) == {"bool": "bool", "uint8": "u8", "uint32": "u32"}
    assert "float32" in info.dtypes() and adead.__array_api_version__ == "2024.12"
