"""Encodes values as quantised blocks of GGUF's formats."""

import ctypes
from ctypes import POINTER, c_int32, c_size_t, c_void_p
from typing import Literal, TypeAlias

import adead
import numpy
import numpy.typing

from ._library import check, library

BlockFormat: TypeAlias = Literal["q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q5_k", "q6_k"]

# ADEAD_BLOCK_FORMAT_…, in their order.
_FORMATS = ("q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q5_k", "q6_k")

_quantize = library.adead_quantize
_quantize.argtypes = [c_void_p, c_size_t, c_int32, c_void_p, c_size_t, POINTER(c_size_t)]
_quantize.restype = c_int32


def quantize(array: numpy.typing.ArrayLike, format: BlockFormat) -> "numpy.typing.NDArray[numpy.uint8]":
    """Encodes the rows of an array ``[..., K]`` of f32 or f16 as quantised blocks, uint8 ``[..., bytes of a row]``.

    The result is what ``adead.quantized_matmul`` takes as its second operand, and what a GGUF file stores. The same values give the
    same bytes on every machine. K must be a multiple of 32, of 256 for ``q4_k``, ``q5_k`` and ``q6_k``.

    Raises ``adead.ShapeMismatchError`` for another K, ``adead.DtypeMismatchError`` for elements of another type,
    ``adead.InvalidArgumentError`` for an unknown format, with the position of a value that is NaN or infinite, and for a block
    whose scale exceeds 65504.
    """
    if format not in _FORMATS:
        raise adead.InvalidArgumentError(f"format is {format!r}; it must be one of {', '.join(_FORMATS)}")
    given = numpy.asarray(array)
    if given.dtype.name not in ("float32", "float16"):
        raise adead.DtypeMismatchError(f"the array has elements of {given.dtype}; float32 and float16 can be quantised")
    block = 256 if format.endswith("_k") else 32
    if given.ndim == 0 or given.shape[-1] % block:
        raise adead.ShapeMismatchError(
            f"the array is {list(given.shape)}; {format} takes rows whose length is a multiple of {block}, the values of a block"
        )
    values = numpy.ascontiguousarray(given, numpy.float32)
    code, size = _FORMATS.index(format), c_size_t()
    check(_quantize(None, values.size, code, None, 0, size))
    # The size of a row, also for an array without rows.
    row = c_size_t()
    check(_quantize(None, values.shape[-1], code, None, 0, row))
    blocks = numpy.empty((*values.shape[:-1], row.value), numpy.uint8)
    assert blocks.nbytes == size.value
    check(_quantize(values.ctypes.data, values.size, code, blocks.ctypes.data, blocks.nbytes, ctypes.byref(size)))
    return blocks
