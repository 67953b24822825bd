"""Functions that make tensors: ranges, filled tensors, and parts of matrices."""

from __future__ import annotations

from math import ceil
from operator import index as whole

from ._adead import InvalidArgumentError, ShapeMismatchError, Tensor, cast, where
from ._common import dims_of, tensor
from ._dtypes import float64
from ._shapes import _counted as counted  # pyright: ignore[reportPrivateUsage]
from ._shapes import broadcast_to, broadcast_arrays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal
    from ._kinds import AnyDType, Array, Number, Shape


def _count(name: str, value: int) -> int:
    if whole(value) < 0:
        raise InvalidArgumentError(f"{name}: {value} is negative")
    return whole(value)


def arange(start: Number, stop: Number | None = None, step: Number = 1, dtype: AnyDType | None = None) -> Tensor:
    """Returns start, start + step and so on, up to but without stop. A single number is the stop; the start is then 0.
    Ints become i64, floats f32.

    Float element i is i·step + start, computed in f32; with dtype f64, in f64 by Python.
    """
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise InvalidArgumentError("arange: the step can't be 0")
    if all(hasattr(number, "__index__") for number in (start, stop, step)):
        first, by = whole(start), whole(step)  # type: ignore[arg-type]
        count = len(range(first, whole(stop), by))  # type: ignore[arg-type]
        found = counted(count, first, by)
        return found if dtype is None else found.cast(dtype)
    count = max(0, ceil((float(stop) - float(start)) / float(step)))
    if float64 == dtype:
        return _doubles(count, float(step), float(start))
    found = counted(count).cast("f32") * float(step) + float(start)
    return found if dtype is None else found.cast(dtype)


def _doubles(count: int, step: float, start: float, last: float | None = None) -> Tensor:
    """Returns i·step + start as f64, which has no arithmetic of its own, with another last element if it is given."""
    from array import array

    found = array("d", (i * step + start for i in range(count)))
    if last is not None:
        found[-1] = last
    return Tensor(found, float64)


def linspace(
    start: Number, stop: Number, num: int = 50, *, endpoint: bool = True, dtype: AnyDType | None = None
) -> Tensor:
    """Returns evenly spaced numbers from start to stop. The last one is stop, unless endpoint is False.

    Element i is i·((stop − start) / n) + start, computed in f32; n is num − 1, or num without the endpoint. With dtype
    f64, it is computed in f64 by Python, as in NumPy.
    """
    count = _count("linspace", num)
    parts = count - 1 if endpoint else count
    step = (float(stop) - float(start)) / parts if parts > 0 else 0.0
    if float64 == dtype:
        return _doubles(count, step, float(start), float(stop) if endpoint and count > 1 else None)
    found = counted(count).cast("f32") * step + float(start)
    if endpoint and count > 1:
        # The last one is the stop itself, whatever the roundings before.
        found = where(counted(count) == count - 1, float(stop), found)
    return found if dtype is None else found.cast(dtype)


def zeros(shape: Shape, dtype: AnyDType | None = None) -> Tensor:
    """Returns a tensor of zeros, f32 if no dtype is given."""
    return Tensor.zeros(dims_of(shape), dtype)


def ones(shape: Shape, dtype: AnyDType | None = None) -> Tensor:
    """Returns a tensor of ones, f32 if no dtype is given."""
    return full(shape, 1, "f32" if dtype is None else dtype)


def empty(shape: Shape, dtype: AnyDType | None = None) -> Tensor:
    """Returns a tensor of zeros. Tensors can't be written later, so uninitialised values would be useless."""
    return zeros(shape, dtype)


def full(shape: Shape, fill_value: Number, dtype: AnyDType | None = None) -> Tensor:
    """Returns a tensor filled with one number. Without a dtype, a float becomes f32, an int i64 and a bool bool."""
    return broadcast_to(Tensor(fill_value, dtype), shape)


def zeros_like(x: Array, dtype: AnyDType | None = None) -> Tensor:
    """Returns zeros with the shape of x, and its dtype if no other is given."""
    x = tensor(x)
    return zeros(x.shape, x.dtype if dtype is None else dtype)


def ones_like(x: Array, dtype: AnyDType | None = None) -> Tensor:
    """Returns ones with the shape of x, and its dtype if no other is given."""
    x = tensor(x)
    return ones(x.shape, x.dtype if dtype is None else dtype)


def empty_like(x: Array, dtype: AnyDType | None = None) -> Tensor:
    """Returns zeros with the shape of x, as ``empty`` does."""
    return zeros_like(x, dtype)


def full_like(x: Array, fill_value: Number, dtype: AnyDType | None = None) -> Tensor:
    """Returns a tensor filled with one number, with the shape of x, and its dtype if no other is given."""
    x = tensor(x)
    return full(x.shape, fill_value, x.dtype if dtype is None else dtype)


def eye(n_rows: int, n_cols: int | None = None, k: int = 0, dtype: AnyDType | None = None) -> Tensor:
    """Returns a matrix with ones on a diagonal, k columns above the main one, and zeros elsewhere."""
    rows = _count("eye", n_rows)
    cols = rows if n_cols is None else _count("eye", n_cols)
    # A diagonal outside the matrix, however far.
    k = max(-rows, min(cols, whole(k)))
    return (counted(rows, k).reshape(rows, 1) == counted(cols)).cast("f32" if dtype is None else dtype)


def _triangle(name: str, x: Array, k: int, lower: bool) -> Tensor:
    x = tensor(x)
    if x.ndim < 2:
        raise ShapeMismatchError(f"{name}: a matrix has at least 2 dimensions, not the shape {list(x.shape)}")
    rows, cols = x.shape[-2:]
    row, col = counted(rows, k).reshape(rows, 1), counted(cols)
    return where(row >= col if lower else row <= col, x, Tensor.zeros((), x.dtype))


def tril(x: Array, k: int = 0) -> Tensor:
    """Returns matrices with zeros above a diagonal, k columns above the main one."""
    return _triangle("tril", x, k, True)


def triu(x: Array, k: int = 0) -> Tensor:
    """Returns matrices with zeros below a diagonal, k columns above the main one."""
    return _triangle("triu", x, k, False)


def meshgrid(*tensors: Array, indexing: Literal["xy", "ij"] = "xy") -> list[Tensor]:
    """Returns the coordinates of a grid: each vector repeated along the axes of the others. With "xy", the first two are swapped."""
    if indexing not in ("xy", "ij"):
        raise InvalidArgumentError(f"meshgrid: indexing is 'xy' or 'ij', not {indexing!r}")
    given = [tensor(x).reshape(-1) for x in tensors]
    places = list(range(len(given)))
    if indexing == "xy" and len(given) > 1:
        places[:2] = [1, 0]
    shaped = [x.reshape([-1 if at == place else 1 for at in range(len(given))]) for x, place in zip(given, places)]
    return broadcast_arrays(*shaped)


def astype(x: Array, /, dtype: AnyDType, *, copy: bool = True, device: None = None) -> Tensor:
    """Returns the values in another dtype. A float is rounded to the nearest value, ties to even. A float to an integer
    is rounded towards zero and saturates. ``copy`` has no effect, as tensors don't change; there is no ``device``.
    """
    if isinstance(x, (list, tuple, int, float)):
        # Numbers become f64 at once, because f32 on the way would lose digits.
        x = Tensor(x, float64 if float64 == dtype else None)
    return cast(x, dtype)
