"""Functions made of several operations: statistics, bounds, logic, rounding. Each step has the contract's bits."""

from __future__ import annotations

from math import prod

from . import _adead as core
from ._adead import InvalidArgumentError, ShapeMismatchError, Tensor, where
from ._common import axes_of, axis_of, boolean, floating, is_float, reduced, tensor
from ._shapes import broadcast_arrays, flip, moveaxis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from ._kinds import Array, Axes, Number


def var(
    x: Array,
    /,
    axis: Axes = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    ddof: float | None = None,
    **_numpy: None,
) -> Tensor:
    """Returns the variance over some or all axes: the sum of the squared distances from the mean, divided by n − correction.

    ``ddof`` is NumPy's name for the correction. f16 and bf16 are computed in f32 and rounded once.
    """
    x = floating("var", tensor(x))
    dims = axes_of("var", axis, x.ndim)
    wide, along = x.cast("f32"), reduced("var", x, axis)
    count = prod(x.shape[at] for at in dims)
    away = wide - wide.mean(axis=along, keepdim=True)
    total = (away * away).sum(axis=along, keepdim=keepdims)
    rest = max(count - (correction if ddof is None else ddof), 0.0)
    return (total / float(rest)).cast(x.dtype)


def std(
    x: Array,
    /,
    axis: Axes = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    ddof: float | None = None,
    **_numpy: None,
) -> Tensor:
    """Returns the standard deviation over some or all axes: the square root of ``var`` with the same arguments."""
    x = floating("std", tensor(x))
    return var(x.cast("f32"), axis, correction=correction, keepdims=keepdims, ddof=ddof).sqrt().cast(x.dtype)


def clip(x: Array, /, min: Array | Number | None = None, max: Array | Number | None = None, **_numpy: None) -> Tensor:  # noqa: A002
    """Limits the elements to the range from min to max. Bounds are numbers, or tensors that are broadcast; None is no
    bound.

    Numbers are rounded to f32. If min is above max, the result is max; NaN stays NaN.
    """
    x = tensor(x)
    if min is not None:
        x = core.maximum(x, min)
    return x if max is None else core.minimum(x, max)


def divide(x: Array | Number, y: Array | Number) -> Tensor:
    """Returns x / y. Integers and bools are computed in f32; ``floor_divide`` and ``div`` have their own division."""
    return core.div(_real(x), _real(y))


def _real(x: Any) -> Any:
    """Returns integers and bools as f32; leaves numbers as they are."""
    if isinstance(x, (int, float)):
        return float(x)
    x = tensor(x)
    return x if is_float(x) else x.cast("f32")


def floor_divide(x: Array | Number, y: Array | Number) -> Tensor:
    """Returns the floor of x / y: exact for integers, and 0 if y is 0. Floats are divided in f32, and the quotient is
    rounded first; NumPy's is exact.
    """
    found = core.div(x, y)
    return core.floor(found) if is_float(found) else found


def remainder(x: Array | Number, y: Array | Number) -> Tensor:
    """Returns x − floor(x / y)·y, with the sign of y: exact for integers. For floats, each step is rounded to f32;
    NumPy's result is exact. With an infinite y, a finite x of the same sign stays as it is.
    """
    found = core.sub(x, core.mul(floor_divide(x, y), y))
    if not is_float(found) or (isinstance(y, (int, float)) and abs(y) < float("inf")):
        return found
    a, b = (tensor(of).cast(found.dtype) for of in (x, y))
    apart = logical_and(a != 0, (a < 0) != (b < 0))
    return where(logical_and(isinf(b), isfinite(a)), where(apart, b, a), found)


def ceil(x: Array) -> Tensor:
    """Returns the smallest integer ≥ x for each element. Integers stay as they are."""
    x = tensor(x)
    return core.neg(core.floor(core.neg(x))) if is_float(x) else x


def trunc(x: Array) -> Tensor:
    """Returns the integer part of each element, towards zero. Integers stay as they are."""
    x = tensor(x)
    if not is_float(x):
        return x
    return where(x < 0, ceil(x), core.floor(x))


def sign(x: Array) -> Tensor:
    """Returns −1, 0 or 1 for each element; NaN stays NaN."""
    x = tensor(x)
    if is_float(x):
        return where(x > 0, 1.0, where(x < 0, -1.0, x + 0.0))
    return core.sub((x > 0).cast(x.dtype), (x < 0).cast(x.dtype))


def square(x: Array) -> Tensor:
    """Returns x·x for each element."""
    return core.mul(x, x)


def signbit(x: Array) -> Tensor:
    """Returns whether each element is below 0 or −0. NaN has no sign here."""
    x = floating("signbit", tensor(x))
    return logical_or(x < 0, core.div(1.0, x) < 0)


def copysign(x: Array, y: Array | Number) -> Tensor:
    """Returns x with the sign of y for each element."""
    x, y = floating("copysign", tensor(x)), tensor(y)
    size = abs(x)
    return where(signbit(y.cast(x.dtype)), -size, size)


def logaddexp(x: Array | Number, y: Array | Number) -> Tensor:
    """Returns log(exp(x) + exp(y)) for each element, as the larger of both plus log1p(exp(−|x − y|)); no step overflows."""
    most = core.maximum(x, y)
    apart = abs(core.sub(x, y))
    # Infinities of one sign are no distance apart.
    apart = where(apart != apart, where(most != most, most, 0.0), apart)
    return most + core.log1p(core.exp(-apart))


def reciprocal(x: Array) -> Tensor:
    """Returns 1 / x for each element."""
    return core.div(1.0, x)


def log2(x: Array) -> Tensor:
    """Returns the logarithm to base 2: the natural one times 1/ln 2, both rounded to f32."""
    return core.scale(core.log(x), alpha=1.4426950408889634)


def log10(x: Array) -> Tensor:
    """Returns the logarithm to base 10: the natural one times 1/ln 10, both rounded to f32."""
    return core.scale(core.log(x), alpha=0.4342944819032518)


def tan(x: Array) -> Tensor:
    """Returns the tangent of x in radians: sin(x) / cos(x), each rounded."""
    return core.div(core.sin(x), core.cos(x))


def positive(x: Array) -> Tensor:
    """Returns x itself."""
    return tensor(x)


def isnan(x: Array) -> Tensor:
    """Returns whether each element is NaN."""
    return core.not_equal(x, x)


def isinf(x: Array) -> Tensor:
    """Returns whether each element is infinite."""
    x = tensor(x)
    # Comparisons alone, which f64 has too.
    return logical_or(x == float("inf"), x == -float("inf")) if is_float(x) else core.not_equal(x, x)


def isfinite(x: Array) -> Tensor:
    """Returns whether each element is neither infinite nor NaN."""
    x = tensor(x)
    return logical_and(x < float("inf"), x > -float("inf")) if is_float(x) else core.equal(x, x)


def logical_not(x: Array) -> Tensor:
    """Returns whether each element is false. Takes bools."""
    return core.equal(boolean("logical_not", tensor(x)), False)


def _two(name: str, x: Any, y: Any) -> tuple[Tensor, Tensor]:
    return boolean(name, tensor(x)), boolean(name, tensor(y))


def logical_and(x: Array | bool, y: Array | bool) -> Tensor:
    """Returns whether both elements are true. Takes bools, which are broadcast."""
    a, b = _two("logical_and", x, y)
    return where(a, b, a)


def logical_or(x: Array | bool, y: Array | bool) -> Tensor:
    """Returns whether one of the elements is true, or both. Takes bools, which are broadcast."""
    a, b = _two("logical_or", x, y)
    return where(a, a, b)


def logical_xor(x: Array | bool, y: Array | bool) -> Tensor:
    """Returns whether exactly one of the elements is true. Takes bools, which are broadcast."""
    return core.not_equal(*_two("logical_xor", x, y))


def diff(x: Array, axis: int = -1, n: int = 1, prepend: Array | None = None, append: Array | None = None) -> Tensor:
    """Returns the differences of neighbouring entries of an axis; repeats this n times. ``prepend`` and ``append`` are
    joined to x on the axis first.
    """
    x = tensor(x)
    at = axis_of("diff", axis, x.ndim)
    if prepend is not None or append is not None:
        x = core.concat([tensor(part) for part in (prepend, x, append) if part is not None], axis=at)
    if n < 0:
        raise InvalidArgumentError(f"diff: n is at least 0, not {n}")
    before = (slice(None),) * at
    for _ in range(n):
        x = core.sub(x[(*before, slice(1, None))], x[(*before, slice(None, -1))])
    return x


def _truth(x: Array) -> Tensor:
    """Returns whether each element is not 0, as 0 or 1 in i64."""
    return tensor(x).cast("bool").cast("i64")


def all(x: Array, /, axis: Axes = None, *, keepdims: bool = False, **_numpy: None) -> Tensor:  # noqa: A001
    """Returns whether all elements are true over some or all axes; true for no elements. NaN is true."""
    ones = _truth(x)
    return ones.prod(axis=reduced("all", ones, axis), keepdim=keepdims) != 0


def any(x: Array, /, axis: Axes = None, *, keepdims: bool = False, **_numpy: None) -> Tensor:  # noqa: A001
    """Returns whether any element is true over some or all axes; false for no elements. NaN is true."""
    ones = _truth(x)
    return ones.sum(axis=reduced("any", ones, axis), keepdim=keepdims) != 0


def count_nonzero(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """Returns how many elements are not 0 over some or all axes, as i64."""
    ones = _truth(x)
    return ones.sum(axis=reduced("count_nonzero", ones, axis), keepdim=keepdims)


def nonzero(x: Array, /) -> tuple[Tensor, ...]:
    """Returns the indices of the elements that are not 0, in row-major order: one i64 tensor for each axis."""
    x = tensor(x)
    if x.ndim == 0:
        raise ShapeMismatchError("nonzero: a scalar has no axis; at least one dimension is needed")
    return tuple(core.embedding(_places(x.shape, at), core._positions(x.cast("bool"))) for at in range(x.ndim))  # pyright: ignore[reportPrivateUsage]


def _places(shape: tuple[int, ...], axis: int) -> Tensor:
    """Returns the index along an axis of each element of a shape, row-major."""
    from ._creation import arange
    from ._shapes import broadcast_to

    line = arange(shape[axis]).reshape(
        [-1 if at == axis and shape[at] else size if at == axis else 1 for at, size in enumerate(shape)]
    )
    return broadcast_to(line, shape).reshape(-1)


def sort(x: Array, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """Sorts the elements of each line, ascending or descending. NaN sorts above all numbers, and −0 below +0. Sorting is
    always stable.
    """
    x = floating("sort", tensor(x))
    at = axis_of("sort", axis, x.ndim)
    found = core.topk(x, k=x.shape[at], axis=at)
    return found if descending else flip(found, axis=at)


def argsort(x: Array, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """Returns the indices that sort each line, as i64, in the order of ``sort``. Of equal elements, the one with the
    lower index comes first.
    """
    x = floating("argsort", tensor(x))
    at = axis_of("argsort", axis, x.ndim)
    size = x.shape[at]
    if descending:
        return core.argtopk(x, k=size, axis=at)
    # From the back, the higher index is first among equals: positions in the flipped line give the lower one again.
    found = flip(core.argtopk(flip(x, axis=at), k=size, axis=at), axis=at)
    back = Tensor(list(range(size - 1, -1, -1)), "i64")
    return core.embedding(back, found) if size else found


def outer(x: Array, y: Array) -> Tensor:
    """Returns the products of each element of x with each of y, as a matrix."""
    return core.mul(tensor(x).reshape(-1, 1), tensor(y).reshape(1, -1))


def vecdot(x: Array, y: Array, *, axis: int = -1) -> Tensor:
    """Returns the inner products along an axis, as matrix products of a row and a column; of integers, as sums of products."""
    a, b = broadcast_arrays(x, y)
    at = axis_of("vecdot", axis, a.ndim)
    a, b = moveaxis(a, at, -1), moveaxis(b, at, -1)
    if not is_float(a):
        return (a * b).sum(axis=-1).cast(a.dtype)
    return core.matmul(a.reshape(*a.shape[:-1], 1, a.shape[-1]), b.reshape(*b.shape, 1)).reshape(a.shape[:-1])


def tensordot(x: Array, y: Array, axes: int | tuple[Any, Any] = 2) -> Tensor:
    """Returns the product over the last axes of x and the first of y, or over pairs of axes, as one matrix product."""
    a, b = tensor(x), tensor(y)
    if isinstance(axes, int):
        if not 0 <= axes <= (a.ndim if a.ndim < b.ndim else b.ndim):
            raise InvalidArgumentError(f"tensordot: {axes} axes of tensors with {a.ndim} and {b.ndim} dimensions")
        axes = (tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes)))
    of_a, of_b = axes_of("tensordot", axes[0], a.ndim), axes_of("tensordot", axes[1], b.ndim)
    sizes = [a.shape[at] for at in of_a], [b.shape[at] for at in of_b]
    if sizes[0] != sizes[1]:
        raise ShapeMismatchError(
            f"tensordot: axes {of_a} of {list(a.shape)} and {of_b} of {list(b.shape)} have different sizes"
        )
    rows, cols = [at for at in range(a.ndim) if at not in of_a], [at for at in range(b.ndim) if at not in of_b]
    inner = prod(sizes[0])
    shapes = [a.shape[at] for at in rows], [b.shape[at] for at in cols]
    left = a.transpose([*rows, *of_a]).reshape(prod(shapes[0]), inner)
    right = b.transpose([*of_b, *cols]).reshape(inner, prod(shapes[1]))
    return core.matmul(left, right).reshape(shapes[0] + shapes[1])
