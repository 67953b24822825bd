"""The array API standard's names: each is in the module adead, or in the list of docs/array-api.md of what is left."""

import inspect
import pathlib
import re

import numpy
import pytest

import adead

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/array-api.md"

# The functions, constants and dtypes of the standard's version 2024.12, without extensions.
STANDARD = """
abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh
bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor bool broadcast_arrays broadcast_to
can_cast ceil clip complex128 complex64 concat conj copysign cos cosh count_nonzero cumulative_prod cumulative_sum
diff divide e empty empty_like equal exp expand_dims expm1 eye finfo flip float32 float64 floor floor_divide from_dlpack full
full_like greater greater_equal hypot iinfo imag inf int16 int32 int64 int8 isdtype isfinite isinf isnan less less_equal
linspace log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor matmul matrix_transpose max maximum
mean meshgrid min minimum moveaxis multiply nan negative newaxis nextafter nonzero not_equal ones ones_like permute_dims pi
positive pow prod real reciprocal remainder repeat reshape result_type roll round searchsorted sign signbit sin sinh sort
sqrt square squeeze stack std subtract sum take take_along_axis tan tanh tensordot tile tril triu trunc uint16 uint32 uint64
uint8 unique_all unique_counts unique_inverse unique_values unstack var vecdot where zeros zeros_like
__array_namespace_info__
""".split()
METHODS = """
__abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__ __dlpack_device__ __eq__ __float__ __floordiv__
__ge__ __getitem__ __gt__ __index__ __int__ __invert__ __le__ __lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__
__or__ __pos__ __pow__ __rshift__ __setitem__ __sub__ __truediv__ __xor__ to_device T mT device dtype ndim shape size
""".split()


def left():
    """Returns the names in the first column of the page's table of what is missing."""
    missing = PAGE.read_text(encoding="utf-8").split("## What is missing")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in missing.splitlines() if line.startswith("| `")]
    return set(re.findall(r"`(\w+)`", " ".join(rows)))


def test_every_name_is_here_or_listed():
    xp = adead.Tensor([1.0]).__array_namespace__()
    assert xp is adead is adead.Tensor([1.0]).__array_namespace__(api_version="2024.12")
    missing = {name for name in STANDARD if not hasattr(xp, name)} | {
        name for name in METHODS if not hasattr(adead.Tensor, name)
    }
    assert missing == left()
    with pytest.raises(adead.InvalidArgumentError, match="2024.12, not 2020.1"):
        adead.Tensor(1).__array_namespace__(api_version="2020.1")


def test_a_function_of_the_standard_alone():
    """A function that is written for any array API gives NumPy's values."""

    def normalised(x):
        xp = x.__array_namespace__()
        centred = x - xp.mean(x, axis=-1, keepdims=True)
        scaled = xp.divide(centred, xp.std(x, axis=-1, keepdims=True))
        kept = xp.where(xp.isfinite(scaled), scaled, xp.zeros_like(scaled))
        return xp.concat(
            [xp.permute_dims(xp.expand_dims(kept, axis=0), (0, 2, 1)), xp.ones((1, 4, 3), dtype=xp.float32)], axis=0
        )

    array = numpy.random.default_rng(0).standard_normal((3, 4)).astype(numpy.float32)
    found = normalised(adead.Tensor(array))
    numpy.testing.assert_allclose(found, normalised(array), rtol=1e-5, atol=1e-5)
    assert found.shape == (2, 4, 3)


@pytest.mark.parametrize(
    "name, arguments",
    [
        *(
            ("subtract", 2),
            ("multiply", 2),
            ("divide", 2),
            ("negative", 1),
            ("pow", 2),
            ("floor_divide", 2),
            ("remainder", 2),
        ),
        *(("cumulative_sum", 1), ("matrix_transpose", 1), ("square", 1), ("reciprocal", 1), ("round", 1), ("trunc", 1)),
    ],
)
def test_names_of_the_standard(name, arguments):
    array = numpy.float32([[0.5, 1.75], [2.25, -3.5]])
    options = {"axis": -1} if name == "cumulative_sum" else {}
    given = [array if name != "pow" else abs(array)] * arguments
    found = getattr(adead, name)(*map(adead.Tensor, given), **options)
    numpy.testing.assert_allclose(found, getattr(numpy, name)(*given, **options), rtol=1e-6)


def test_signatures_take_the_standards_keywords():
    keywords = {
        "sum": "axis keepdims", "mean": "axis keepdims", "std": "axis correction keepdims", "all": "axis keepdims", "argmax": "axis keepdims",
        "sort": "axis descending", "squeeze": "axis", "stack": "axis", "roll": "shift axis", "tile": "repetitions", "linspace": "num dtype endpoint",
        "eye": "k dtype", "clip": "min max", "tensordot": "axes", "vecdot": "axis", "meshgrid": "indexing", "take": "axis", "repeat": "axis",
    }  # fmt: skip
    for name, words in keywords.items():
        known = set(inspect.signature(getattr(adead, name)).parameters)
        # NumPy's and the standard's word for an operation's keepdim.
        known |= {"keepdims"} if "keepdim" in known else set()
        assert set(words.split()) <= known, name
