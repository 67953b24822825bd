"""Helpers for functions made of operations: arguments as tensors, axes as indices."""

from __future__ import annotations

from operator import index

from ._adead import DtypeMismatchError, InvalidArgumentError, Tensor, asarray

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._kinds import Axes, Shape, Values

# The floats that operations compute on, in f32. f64 is only moved, compared and cast.
FLOATS = ("f32", "f16", "bf16")


def tensor(x: Values) -> Tensor:
    """Returns a tensor of a tensor, an array or numbers."""
    return x if type(x) is Tensor else asarray(x)


def together(values: Iterable[Values]) -> list[Tensor]:
    """Returns tensors that are used together: float64 arrays stay f64 beside an f64 tensor, and become f32 otherwise."""
    given = list(values)
    if not any(type(x) is Tensor and x.dtype == "f64" for x in given):
        return [tensor(x) for x in given]
    return [asarray(x, "f64") if str(getattr(x, "dtype", "")) == "float64" else tensor(x) for x in given]


def dims_of(shape: Shape) -> tuple[int, ...]:
    """Returns a shape as a tuple; a number is one dimension."""
    dims = (index(shape),) if hasattr(shape, "__index__") else tuple(index(dim) for dim in shape)
    for dim in dims:
        if dim < 0:
            raise InvalidArgumentError(f"a dimension can't be {dim}: the shape is {list(dims)}")
    return dims


def axis_of(name: str, axis: int, rank: int) -> int:
    """Returns an axis as an index from the front."""
    at = index(axis)
    if not -rank <= at < rank:
        raise InvalidArgumentError(f"{name}: axis {at} is out of range for {rank} dimensions")
    return at + rank if at < 0 else at


def axes_of(name: str, axis: Axes, rank: int) -> tuple[int, ...]:
    """Returns axes as indices from the front; None is all of them."""
    if axis is None:
        return tuple(range(rank))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    found = tuple(axis_of(name, each, rank) for each in axes)
    if len(set(found)) < len(found):
        raise InvalidArgumentError(f"{name}: axes {tuple(axes)} name an axis twice")
    return found


def reduced(name: str, x: Tensor, axis: Axes) -> tuple[int, ...] | int | None:
    """Checks the axes, and returns them in the form that operations take."""
    if axis is None or not isinstance(axis, (tuple, list)):
        return axis
    return axes_of(name, tuple(axis), x.ndim)


def permuted(x: Tensor, order: tuple[int, ...] | list[int]) -> Tensor:
    """Returns the tensor with its axes in this order; without a copy if the order is unchanged."""
    return x if list(order) == list(range(x.ndim)) else x.transpose(list(order))


def floating(name: str, x: Tensor) -> Tensor:
    """Returns the tensor if its dtype is floating."""
    if x.dtype not in FLOATS:
        raise DtypeMismatchError(
            f'{name}: computes on f32, f16 and bf16, not {x.dtype}; cast it first, as in x.astype("f32")'
        )
    return x


def is_float(x: Tensor) -> bool:
    """Returns whether the dtype is floating: one that operations compute on, or f64."""
    return x.dtype.kind == "f"


def boolean(name: str, x: Tensor) -> Tensor:
    """Returns the tensor if its dtype is bool."""
    if x.dtype != "bool":
        raise DtypeMismatchError(f"{name}: takes bools, not {x.dtype}; compare first, as in x != 0")
    return x
