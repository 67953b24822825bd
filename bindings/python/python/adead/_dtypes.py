"""Dtypes as objects. Each is a string too, so "f32" and ``adead.float32`` mean the same everywhere."""

from __future__ import annotations


from ._adead import InvalidArgumentError, Tensor
from ._adead import _computed_in as computed_in  # pyright: ignore[reportPrivateUsage]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from ._kinds import AnyDType

# By adead's name: NumPy's name, bytes of an element, kind.
_ALL = {
    "f32": ("float32", 4, "f"),
    "f16": ("float16", 2, "f"),
    "bf16": ("bfloat16", 2, "f"),
    "i32": ("int32", 4, "i"),
    "i64": ("int64", 8, "i"),
    "u32": ("uint32", 4, "u"),
    "bool": ("bool", 1, "b"),
    "u8": ("uint8", 1, "u"),
    "f64": ("float64", 8, "f"),
}
_NAMES = (
    {name: own for own, (name, _, _) in _ALL.items()}
    | {own: own for own in _ALL}
    | {"float": "f32", "int": "i64", "bool_": "bool", "half": "f16", "double": "f64", "d": "f64"}
)


class DType(str):
    """An element type: adead's name as a string, with the attributes of NumPy's dtypes. It equals its names and NumPy's
    dtype.
    """

    __slots__ = ()

    def __new__(cls, dtype: AnyDType) -> "DType":
        return str.__new__(cls, _own(dtype))

    @property
    def name(self) -> str:
        """NumPy's name, such as float32."""
        return _ALL[str(self)][0]

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return _ALL[str(self)][1]

    @property
    def kind(self) -> str:
        """One letter: f for floats, i for signed integers, u for unsigned ones, b for bools."""
        return _ALL[str(self)][2]

    def __eq__(self, other: object) -> bool:
        if str.__eq__(self, other) is True:
            return True
        return other is not None and _found(other) == str(self)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        # Equal strings must have equal hashes. Other libraries' dtypes are equal with another hash, as in NumPy.
        return str.__hash__(self)

    def __repr__(self) -> str:
        return f"adead.{self.name}"


def _found(dtype: object) -> str | None:
    """Returns adead's name for a dtype, or None."""
    if isinstance(dtype, str):
        name: Any = str(dtype)
    elif isinstance(dtype, type):
        name = dtype.__name__
    else:
        name = getattr(dtype, "name", None) or str(dtype).removeprefix("torch.")
    return _NAMES.get(name) if isinstance(name, str) else None


def _own(dtype: object) -> str:
    found = _found(dtype)
    if found is None:
        raise InvalidArgumentError(f"no dtype {dtype!r}: expected {', '.join(_ALL)}, or NumPy's names of them")
    return found


float32: DType = DType("f32")
float16: DType = DType("f16")
bfloat16: DType = DType("bf16")
int32: DType = DType("i32")
int64: DType = DType("i64")
uint32: DType = DType("u32")
uint8: DType = DType("u8")
bool_: DType = DType("bool")
float64: DType = DType("f64")

# In the order of the core's numbers, for Tensor.dtype.
IN_ORDER = (float32, float16, bfloat16, int32, int64, uint32, bool_, uint8, float64)

_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "",
    "numeric": "iuf",
}


def isdtype(dtype: AnyDType, kind: AnyDType | tuple[AnyDType, ...]) -> bool:
    """Returns whether a dtype is of a kind: "bool", "signed integer", "unsigned integer", "integral", "real floating",
    "numeric" or a dtype. For a tuple of kinds, any of them.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str) and not isinstance(kind, DType) and kind in _KINDS and kind != "bool":
        return DType(dtype).kind in _KINDS[kind]
    return DType(dtype) == DType(kind)


def _of(dtype: AnyDType | Tensor) -> DType:
    """Returns a dtype, or that of a tensor."""
    return dtype.dtype if isinstance(dtype, Tensor) else DType(dtype)


def result_type(*operands: AnyDType | Tensor | complex) -> DType:
    """Returns the dtype in which operands are computed: their own, or the smallest integer dtype that holds the values of
    all. Numbers take the dtype of the others, as far as their kind allows.

    ``InvalidArgumentError`` for dtypes that operations don't take together, such as f32 and i32.
    """
    dtypes = [_of(x) for x in operands if isinstance(x, str) or not isinstance(x, (int, float, complex))]
    kinds = {type(x) for x in operands if not isinstance(x, str) and isinstance(x, (int, float, complex))}
    if not dtypes:
        raise InvalidArgumentError("result_type: pass at least one dtype or tensor")
    found = dtypes[0]
    for dtype in dtypes[1:]:
        found = _together(found, dtype)
    # The kinds of numbers that a dtype takes.
    taken: dict[str, set[type]] = {"b": {bool}, "i": {int}, "u": {int}, "f": {int, float}}
    if kinds - taken[found.kind]:
        raise InvalidArgumentError(f"result_type: a number of another kind than {found}: cast the tensor first")
    return found


def _together(a: DType, b: DType) -> DType:
    found = computed_in(a, b)
    if found is not None:
        return DType(found)
    raise InvalidArgumentError(f"result_type: {a} and {b} are not computed together: cast one of them")


def can_cast(from_: AnyDType | Tensor, to: AnyDType) -> bool:
    """Returns whether ``result_type`` of both is the second: whether a cast of the first keeps all of its values."""
    try:
        return result_type(from_, to) == DType(to)
    except InvalidArgumentError:
        return False


class finfo:
    """The range and precision of a floating dtype, as Python's numbers."""

    def __init__(self, dtype: AnyDType | Tensor) -> None:
        self.dtype: DType = _of(dtype)
        # Bits of the significand, and the largest exponent.
        sizes = {"f32": (23, 127), "f16": (10, 15), "bf16": (7, 127), "f64": (52, 1023)}
        if self.dtype not in sizes:
            raise InvalidArgumentError(f"finfo: {self.dtype} is no floating dtype: expected f32, f16, bf16 or f64")
        digits, exponent = sizes[str(self.dtype)]
        self.bits: int = 8 * self.dtype.itemsize
        self.eps: float = 2.0**-digits
        self.max: float = (2.0 - self.eps) * 2.0**exponent
        self.min: float = -self.max
        self.smallest_normal: float = 2.0 ** (1 - exponent)

    def __repr__(self) -> str:
        return f"finfo({self.dtype}, min={self.min}, max={self.max}, eps={self.eps})"


class iinfo:
    """The range of an integer dtype."""

    def __init__(self, dtype: AnyDType | Tensor) -> None:
        self.dtype: DType = _of(dtype)
        if self.dtype.kind not in "iu":
            raise InvalidArgumentError(f"iinfo: {self.dtype} is no integer dtype: expected i32, i64, u32 or u8")
        self.bits: int = 8 * self.dtype.itemsize
        signed = self.dtype.kind == "i"
        self.min: int = -(1 << (self.bits - 1)) if signed else 0
        self.max: int = (1 << (self.bits - signed)) - 1

    def __repr__(self) -> str:
        return f"iinfo({self.dtype}, min={self.min}, max={self.max})"
