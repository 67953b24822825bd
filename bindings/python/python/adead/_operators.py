"""The tensor's operators that are made of several operations."""

from __future__ import annotations


from . import _math as math
from ._adead import DtypeMismatchError, Tensor
from ._common import is_float

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any
    from ._kinds import Array, Number


def _known(other: Any) -> bool:
    """Returns whether an operator takes the object: a number, a tensor or an array."""
    return isinstance(other, (Tensor, int, float)) or hasattr(other, "__array__") or hasattr(other, "__dlpack__")


def _wide(x: Any) -> Any:
    """Returns integers and bools as f32, as the other operators do if the other operand is a float."""
    return x.cast("f32") if isinstance(x, Tensor) and not is_float(x) else x


def _divided(function: Any, x: Any, y: Any, other: Any) -> Tensor:
    if not _known(other):
        return NotImplemented  # type: ignore[no-any-return]
    if isinstance(other, float):
        x, y = _wide(x), _wide(y)
    found: Tensor = function(x, y)
    return found


def tensor_floordiv(self: Tensor, other: Array | Number, /) -> Tensor:
    """Returns floor(self / other): exact for integers, else of the rounded quotient."""
    return _divided(math.floor_divide, self, other, other)


def tensor_rfloordiv(self: Tensor, other: Array | Number, /) -> Tensor:
    """Returns floor(other / self): exact for integers, else of the rounded quotient."""
    return _divided(math.floor_divide, other, self, other)


def tensor_mod(self: Tensor, other: Array | Number, /) -> Tensor:
    """Returns self − floor(self / other)·other: exact for integers, else each step is rounded."""
    return _divided(math.remainder, self, other, other)


def tensor_rmod(self: Tensor, other: Array | Number, /) -> Tensor:
    """Returns other − floor(other / self)·self: exact for integers, else each step is rounded."""
    return _divided(math.remainder, other, self, other)


def tensor_reversed(self: Tensor) -> Iterator[Tensor]:
    """Iterates over the entries of the first axis, from the last one on."""
    return (self[at] for at in range(len(self) - 1, -1, -1))


def tensor_pos(self: Tensor) -> Tensor:
    """Returns the tensor itself."""
    return self


def tensor_invert(self: Tensor) -> Tensor:
    """Returns whether each element is false. Takes bools."""
    return math.logical_not(self)


def _logical(function: Any, x: Tensor, y: Any) -> Tensor:
    if not _known(y):
        return NotImplemented  # type: ignore[no-any-return]
    if isinstance(y, (int, float)) and not isinstance(y, bool):
        raise DtypeMismatchError(f"&, | and ^ take bools, not {y}: compare first, as in x != 0")
    found: Tensor = function(x, y)
    return found


def tensor_and(self: Tensor, other: Array | bool, /) -> Tensor:
    """Returns whether both elements are true. Takes bools."""
    return _logical(math.logical_and, self, other)


def tensor_or(self: Tensor, other: Array | bool, /) -> Tensor:
    """Returns whether one of the elements is true. Takes bools."""
    return _logical(math.logical_or, self, other)


def tensor_xor(self: Tensor, other: Array | bool, /) -> Tensor:
    """Returns whether exactly one of the elements is true. Takes bools."""
    return _logical(math.logical_xor, self, other)


tensor_rand, tensor_ror, tensor_rxor = tensor_and, tensor_or, tensor_xor
