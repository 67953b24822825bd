"""``x[…]``: integers, slices, ``...``, None, and arrays of bools or integers, with NumPy's rules.

Indices are checked and combined in host memory. The values are moved by ``slice``, ``transpose`` and ``embedding``, on
the device of the default context.
"""

from __future__ import annotations

from math import prod
from operator import index as whole

from ._adead import ShapeMismatchError, Tensor, asarray, embedding
from ._adead import _flat_index as flat_index  # pyright: ignore[reportPrivateUsage]
from ._adead import _positions as positions  # pyright: ignore[reportPrivateUsage]
from ._adead import slice as sliced
from ._common import permuted
from ._shapes import broadcast_to, broadcast_shapes, flip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INTEGERS = ("i64", "i32", "u32", "u8")
ALL = slice(None)


def part(x: Tensor, index: Any) -> Tensor:
    """Returns ``x[index]``."""
    entries, apart = listed(x, index if isinstance(index, tuple) else (index,))
    if not any(isinstance(entry, Tensor) for entry in entries):
        return basic(x, entries)
    x, entries = without_masks(x, entries)
    return advanced(x, entries, apart)


def read(entry: Any) -> Any:
    """Returns an entry of an index as an int, a slice, None, an ellipsis or a tensor."""
    if entry is None or entry is ... or isinstance(entry, slice):
        return entry
    if isinstance(entry, bool) or (getattr(entry, "ndim", None) == 0 and str(getattr(entry, "dtype", "")) == "bool"):
        raise TypeError("an index can't be one bool: pass an array of bools, or None for a new axis")
    if not isinstance(entry, (Tensor, list)) and not getattr(entry, "ndim", 0) and hasattr(entry, "__index__"):
        return whole(entry)
    if isinstance(entry, (str, bytes)) or not (
        isinstance(entry, (Tensor, list)) or hasattr(entry, "__array__") or hasattr(entry, "__dlpack__")
    ):
        kinds = "an int, a slice, ..., None, or an array of ints or bools"
        raise TypeError(f"an index is {kinds}, not a {type(entry).__name__}")
    # NumPy reads an empty list as integers too.
    ids = Tensor([], "i64") if isinstance(entry, list) and not entry else asarray(entry)
    if ids.dtype != "bool" and ids.dtype not in INTEGERS:
        raise IndexError(f"arrays of indices are integers or bools, not {ids.dtype}: cast them to i64")
    return ids


def listed(x: Tensor, index: tuple[Any, ...]) -> tuple[list[Any], bool]:
    """Returns an entry for each axis and new axis, and whether an ellipsis that stands for no axis is between arrays."""
    entries = [read(entry) for entry in index]
    taken = sum(takes(entry) for entry in entries)
    dots = [at for at, entry in enumerate(entries) if entry is ...]
    if len(dots) > 1:
        raise IndexError("an index has at most one ellipsis")
    if taken > x.ndim:
        raise IndexError(f"too many indices: {taken} for a tensor of {x.ndim} dimensions, {list(x.shape)}")
    rest = [ALL] * (x.ndim - taken)
    if not dots:
        return entries + rest, False
    before, after = entries[: dots[0]], entries[dots[0] + 1 :]
    return before + rest + after, not rest and any(map(selects, before)) and any(map(selects, after))


def takes(entry: Any) -> int:
    """Returns the number of x's axes that an entry covers."""
    if entry is None or entry is ...:
        return 0
    return entry.ndim if isinstance(entry, Tensor) and entry.dtype == "bool" else 1


def selects(entry: Any) -> bool:
    """Returns whether an entry counts as an array of indices beside others."""
    return isinstance(entry, (int, Tensor))


def basic(x: Tensor, entries: list[Any]) -> Tensor:
    """Returns a part by ints, slices and new axes."""
    start: list[int] = []
    stop: list[int] = []
    step: list[int] = []
    kept: list[int] = []
    shape: list[int] = []
    turned: list[int] = []
    for entry in entries:
        axis = len(start)
        if entry is None:
            shape.append(1)
            continue
        size = x.shape[axis]
        if isinstance(entry, int):
            first, by, count = inside(entry, size, axis), 1, 1
        else:
            first, end, by = entry.indices(size)
            count = len(range(first, end, by))
            shape.append(count)
        # The operation has steps from 1 on: a line from its other end, which is turned afterwards.
        if by < 0:
            first, by = first + (count - 1) * by, -by
            if count > 1:
                turned.append(axis)
        start.append(first if count else 0)
        stop.append(first + (count - 1) * by + 1 if count else 0)
        step.append(by)
        kept.append(count)
    if tuple(kept) != x.shape:
        x = sliced(x, start, stop, step)
    if turned:
        x = flip(x, axis=tuple(turned))
    return x if tuple(shape) == x.shape else x.reshape(shape)


def inside(index: int, size: int, axis: int) -> int:
    """Returns an index counted from the front. Raises an error if it is out of range."""
    if not -size <= index < size:
        raise IndexError(f"index {index} is outside {size} entries of axis {axis}")
    return index + size if index < 0 else index


def without_masks(x: Tensor, entries: list[Any]) -> tuple[Tensor, list[Any]]:
    """Returns the tensor with the axes of each mask as one axis, and the positions of a mask's true elements in its place."""
    shape: list[int] = []
    found: list[Any] = []
    axis = 0
    for entry in entries:
        count = takes(entry)
        dims = x.shape[axis : axis + count]
        if isinstance(entry, Tensor) and entry.dtype == "bool":
            if entry.shape != dims:
                axes = f"axis {axis}" if count == 1 else f"axes {axis} to {axis + count - 1}"
                raise IndexError(f"a mask of shape {list(entry.shape)} is for {axes}, which have {list(dims)}")
            entry = positions(entry)
            dims = (prod(dims),)
        shape.extend(dims)
        found.append(entry)
        axis += count
    return x.reshape(shape) if len(shape) < x.ndim else x, found


def advanced(x: Tensor, entries: list[Any], apart: bool) -> Tensor:
    """Returns a part by arrays of indices, and ints, slices and new axes beside them."""
    at = [place for place, entry in enumerate(entries) if selects(entry)]
    # From here on, each entry is an axis.
    x = basic(x, [ALL if selects(entry) else entry for entry in entries])
    ids = [entries[place] for place in at]
    ids = [
        Tensor(inside(each, x.shape[place], place)) if isinstance(each, int) else each for each, place in zip(ids, at)
    ]
    try:
        shape = broadcast_shapes(*(each.shape for each in ids))
    except ShapeMismatchError as error:
        raise IndexError(f"arrays of indices are broadcast: {error}") from None
    flat = flat_index([broadcast_to(each, shape) for each in ids], [x.shape[place] for place in at])
    rest = [axis for axis in range(x.ndim) if axis not in at]
    rows = permuted(x, at + rest).reshape([prod(x.shape[place] for place in at), *(x.shape[axis] for axis in rest)])
    found = embedding(rows, flat)
    # The indices' axes take the place of neighbouring arrays, and stand first otherwise.
    together = at[-1] - at[0] + 1 == len(at) and not apart
    before = at[0] if together else 0
    count = len(shape)
    lines = list(range(count, found.ndim))
    return permuted(found, lines[:before] + list(range(count)) + lines[before:])
