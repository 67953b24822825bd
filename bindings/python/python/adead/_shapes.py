"""Functions that move elements: they join, cut, flip and repeat axes, and keep all bits."""

from __future__ import annotations

from math import prod
from operator import index as whole

from ._adead import InvalidArgumentError, ShapeMismatchError, Tensor, concat, embedding, where
from ._common import axes_of, axis_of, dims_of, permuted, tensor, together

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ._kinds import Array, Axes, Shape


def _counted(count: int, start: int = 0, step: int = 1) -> Tensor:
    """Returns integers as i64."""
    from array import array

    return Tensor(array("q", range(start, start + count * step, step)))


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Returns the shape that all shapes broadcast to. ``ShapeMismatchError`` names two that don't."""
    found: tuple[int, ...] = ()
    for shape in map(tuple, shapes):
        rank = max(len(found), len(shape))
        a, b = (1,) * (rank - len(found)) + found, (1,) * (rank - len(shape)) + shape
        if any(x != y and 1 not in (x, y) for x, y in zip(a, b)):
            raise ShapeMismatchError(
                f"shapes {list(found)} and {list(shape)} don't broadcast: counted from the end, dimensions must be equal or 1"
            )
        found = tuple(y if x == 1 else x for x, y in zip(a, b))
    return found


def broadcast_to(x: Array, shape: Shape) -> Tensor:
    """Returns the elements repeated to a shape, counted from the last axis. ``ShapeMismatchError`` if x doesn't broadcast to it."""
    x, dims = tensor(x), dims_of(shape)
    if x.shape == dims:
        return x
    if broadcast_shapes(x.shape, dims) != dims:
        raise ShapeMismatchError(f"a tensor of shape {list(x.shape)} doesn't broadcast to {list(dims)}")
    # A move that broadcasts: every element is chosen from x.
    return where(Tensor.zeros(dims, "bool"), x, x)


def broadcast_arrays(*tensors: Array) -> list[Tensor]:
    """Returns all tensors in the shape that they broadcast to."""
    given = together(tensors)
    shape = broadcast_shapes(*(x.shape for x in given))
    return [broadcast_to(x, shape) for x in given]


def reshape(x: Array, shape: Shape) -> Tensor:
    """Returns the same values in another shape, without a copy. One dimension may be -1; it is computed from the
    others.
    """
    return tensor(x).reshape(shape)


def permute_dims(x: Array, axes: Sequence[int]) -> Tensor:
    """Returns the tensor with its axes in this order."""
    x = tensor(x)
    order = axes_of("permute_dims", tuple(axes), x.ndim)
    if len(order) != x.ndim:
        raise InvalidArgumentError(f"permute_dims: axes {tuple(axes)} must name all {x.ndim} axes")
    return permuted(x, order)


def matrix_transpose(x: Array, /) -> Tensor:
    """Returns the tensor with its last two axes swapped."""
    x = tensor(x)
    if x.ndim < 2:
        raise ShapeMismatchError(f"matrix_transpose: a matrix has at least 2 dimensions, not the shape {list(x.shape)}")
    return swapaxes(x, -1, -2)


def swapaxes(x: Array, /, axis1: int, axis2: int) -> Tensor:
    """Returns the tensor with two axes swapped."""
    x = tensor(x)
    order = list(range(x.ndim))
    a, b = axis_of("swapaxes", axis1, x.ndim), axis_of("swapaxes", axis2, x.ndim)
    order[a], order[b] = order[b], order[a]
    return permuted(x, order)


def moveaxis(x: Array, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Returns the tensor with some axes moved to new positions; the other axes keep their order."""
    x = tensor(x)
    old = axes_of("moveaxis", tuple(dims) if not isinstance(dims := source, int) else dims, x.ndim)
    new = axes_of("moveaxis", tuple(dims) if not isinstance(dims := destination, int) else dims, x.ndim)
    if len(old) != len(new):
        raise InvalidArgumentError(f"moveaxis: {len(old)} axes can't move to {len(new)} places")
    order = [axis for axis in range(x.ndim) if axis not in old]
    for place, axis in sorted(zip(new, old)):
        order.insert(place, axis)
    return permuted(x, order)


def expand_dims(x: Array, axis: int | tuple[int, ...] = 0) -> Tensor:
    """Returns the tensor with new axes of size 1 at these positions of the result."""
    x = tensor(x)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    places = axes_of("expand_dims", axis, x.ndim + count)
    rest = iter(x.shape)
    return x.reshape([1 if place in places else next(rest) for place in range(x.ndim + count)])


def squeeze(x: Array, /, axis: Axes = None) -> Tensor:
    """Returns the tensor without these axes of size 1, or without all of them. ``ShapeMismatchError`` for an axis of another size."""
    x = tensor(x)
    axes = [at for at, size in enumerate(x.shape) if size == 1] if axis is None else axes_of("squeeze", axis, x.ndim)
    for at in axes:
        if x.shape[at] != 1:
            raise ShapeMismatchError(
                f"squeeze: axis {at} has {x.shape[at]} entries, not one: the shape is {list(x.shape)}"
            )
    return x.reshape([size for at, size in enumerate(x.shape) if at not in axes])


def flatten(x: Array, /) -> Tensor:
    """Returns the elements as one row-major axis, without a copy."""
    return tensor(x).reshape(-1)


def stack(tensors: Sequence[Array], axis: int = 0) -> Tensor:
    """Joins tensors of the same shape along a new axis. ``ShapeMismatchError`` names two shapes that differ."""
    given = together(tensors)
    if not given:
        raise InvalidArgumentError("stack: pass at least one tensor")
    for x in given:
        if x.shape != given[0].shape:
            raise ShapeMismatchError(f"stack: shapes must be equal, got {list(given[0].shape)} and {list(x.shape)}")
    place = axis_of("stack", axis, given[0].ndim + 1)
    return concat([expand_dims(x, place) for x in given], axis=place)


def unstack(x: Array, axis: int = 0) -> tuple[Tensor, ...]:
    """Returns the entries of an axis as tensors without it."""
    x = tensor(x)
    return tuple(moveaxis(x, axis_of("unstack", axis, x.ndim), 0))


def split(x: Array, sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Cuts an axis into that many equal parts, or before each of these indices. ``ShapeMismatchError`` if parts wouldn't be equal."""
    x = tensor(x)
    at = axis_of("split", axis, x.ndim)
    size = x.shape[at]
    if hasattr(sections, "__index__"):
        count = whole(sections)
        if count < 1:
            raise InvalidArgumentError(f"split: an axis is cut into at least one part, not {count}")
        if size % count:
            raise ShapeMismatchError(f"split: {size} entries of axis {at} can't be cut into {count} equal parts")
        ends = [size // count * part for part in range(1, count + 1)]
    else:
        ends = [whole(end) for end in sections] + [size]
    before = (slice(None),) * at
    starts = [0, *ends[:-1]]
    return [x[(*before, slice(start, end))] for start, end in zip(starts, ends)]


def take(x: Array, /, indices: Array | Sequence[int], axis: int | None = None) -> Tensor:
    """Returns the entries of an axis with these indices; without an axis, the row-major elements with these indices.
    IndexError for an index out of range.
    """
    x = tensor(x)
    ids = tensor(indices)
    if axis is None:
        return flatten(x)[ids]
    return x[(slice(None),) * axis_of("take", axis, x.ndim) + (ids,)]


def flip(x: Array, axis: Axes = None) -> Tensor:
    """Returns the tensor with the entries of these axes, or of all axes, in reverse order."""
    x = tensor(x)
    for at in axes_of("flip", axis, x.ndim):
        if x.shape[at] > 1:
            x = _chosen(x, _counted(x.shape[at], x.shape[at] - 1, -1), at)
    return x


def _chosen(x: Tensor, ids: Tensor, axis: int) -> Tensor:
    """Returns entries of an axis by valid indices."""
    rest = [at for at in range(x.ndim) if at != axis]
    found = embedding(permuted(x, [axis, *rest]), ids)
    return permuted(found, [*range(1, axis + 1), 0, *range(axis + 1, x.ndim)])


def roll(x: Array, shift: int | tuple[int, ...], axis: Axes = None) -> Tensor:
    """Returns the tensor with entries moved along axes. Entries moved beyond one end enter at the other. Without an
    axis, the row-major elements are moved.
    """
    x = tensor(x)
    if axis is None:
        if isinstance(shift, tuple):
            raise InvalidArgumentError(f"roll: shifts {shift} need one axis each")
        return roll(flatten(x), shift, 0).reshape(x.shape)
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    shifts = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise InvalidArgumentError(f"roll: {len(shifts)} shifts for {len(axes)} axes")
    for each, by in zip(axes, shifts):
        at = axis_of("roll", each, x.ndim)
        size = x.shape[at]
        if size > 1 and (by := by % size):
            before = (slice(None),) * at
            x = concat([x[(*before, slice(size - by, None))], x[(*before, slice(size - by))]], axis=at)
    return x


def tile(x: Array, repetitions: Shape) -> Tensor:
    """Returns the tensor repeated that many times along each of the last axes."""
    x, times = tensor(x), dims_of(repetitions)
    rank = max(x.ndim, len(times))
    dims = (1,) * (rank - x.ndim) + x.shape
    times = (1,) * (rank - len(times)) + times
    for at in range(rank):
        x = x.reshape([*(size * count for size, count in zip(dims[:at], times)), *dims[at:]])
        if times[at] != 1:
            ids = [entry for _ in range(times[at]) for entry in range(dims[at])]
            x = (
                _chosen(x, Tensor(ids, "i64"), at)
                if prod(x.shape)
                else Tensor.zeros([*x.shape[:at], len(ids), *x.shape[at + 1 :]], x.dtype)
            )
    return x


def repeat(x: Array, /, repeats: int | Sequence[int], axis: int | None = None) -> Tensor:
    """Returns the tensor with each entry of an axis repeated that many times; without an axis, each of the row-major
    elements.
    """
    x = tensor(x)
    if axis is None:
        return repeat(flatten(x), repeats, 0)
    at = axis_of("repeat", axis, x.ndim)
    size = x.shape[at]
    one = hasattr(repeats, "__index__") or getattr(repeats, "ndim", 1) == 0
    each: Any = repeats
    counts = [int(each)] * size if one else [int(count) for count in each]
    if len(counts) != size or min(counts, default=0) < 0:
        raise InvalidArgumentError(
            f"repeat: axis {at} has {size} entries; pass as many counts from 0 on, not {counts[:8]}"
        )
    return _chosen(x, Tensor([entry for entry, count in enumerate(counts) for _ in range(count)], "i64"), at)
