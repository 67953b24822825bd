"""The tensors of a safetensors file by name."""

import json
import math
import mmap
import os
from collections.abc import Sequence
from typing import Literal, NoReturn, cast

from .._adead import Context, DtypeMismatchError, Error, InvalidArgumentError, IoError, ShapeMismatchError, Tensor, asarray

# Bytes of the header at most, as the format's own library has it.
_LONGEST = 100_000_000
_NAMES = {1: "BOOL U8 I8 F8_E4M3 F8_E5M2", 2: "U16 I16 F16 BF16", 4: "U32 I32 F32", 8: "U64 I64 F64"}
_SIZES = {name: size for size, names in _NAMES.items() for name in names.split()}
_HALVES: dict[str, Literal["f16", "bf16"]] = {"F16": "f16", "BF16": "bf16"}


class Weights:
    """A safetensors file in memory as the system maps it: what is not used is not read.

    The file must not be changed while this, or a tensor from it, is there. ``IoError`` if it can't be read,
    ``InvalidArgumentError`` if it is no safetensors file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        try:
            with open(path, "rb") as file:
                # An empty file can't be mapped.
                size = os.fstat(file.fileno()).st_size
                self._map = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b"")
        except OSError as error:
            raise IoError(f"{self._path}: {error.strerror}") from error
        try:
            self._found = _header(self._map)
        # Of JSON that nests too deep, and of text that is no UTF-8.
        except (ValueError, RecursionError) as error:
            raise InvalidArgumentError(f"{self._path}: no safetensors file: {error}") from None

    @property
    def path(self) -> str:
        """The file."""
        return self._path

    def names(self) -> list[str]:
        """Every tensor's name, sorted."""
        return sorted(self._found)

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's dimensions. ``InvalidArgumentError`` if there is none of that name."""
        return self._info(name)[1]

    def tensor(self, name: str, shape: Sequence[int]) -> Tensor:
        """A tensor as f32, f16 and bf16 widened. Without a copy where the file has f32 at an address that suits it.

        ``InvalidArgumentError`` if there is none of that name, ``ShapeMismatchError`` if its dimensions are others,
        ``DtypeMismatchError`` if it has other elements.
        """
        dtype, found, contents = self._info(name)
        if found != tuple(shape):
            self._refuse(ShapeMismatchError, name, f"is {list(found)}; it must be {list(shape)}")
        if dtype in _HALVES:
            # Whatever the default context is.
            return Context("cpu", threads=1).cast(Tensor.frombytes(contents, _HALVES[dtype], found), "f32")
        if dtype != "F32":
            self._refuse(DtypeMismatchError, name, f"has elements of {dtype}; F32, F16 and BF16 are taken")
        return _floats(contents, found)

    def _info(self, name: str) -> tuple[str, tuple[int, ...], memoryview]:
        if name not in self._found:
            self._refuse(InvalidArgumentError, name, f"is not among the file's {len(self._found)} tensors")
        return self._found[name]

    def _refuse(self, error: type[Error], name: str, text: str) -> NoReturn:
        raise error(f"{self._path}: the tensor '{name}' {text}")

    def __repr__(self) -> str:
        return f"Weights({self._path}, {len(self._found)} tensors)"


def _floats(contents: memoryview, shape: tuple[int, ...]) -> Tensor:
    """Bytes of the file as f32, shared where they are aligned."""
    if not contents.nbytes:
        return Tensor.frombytes(b"", "f32", shape)
    return asarray(contents.cast("f")).reshape(shape)


def _header(contents: memoryview) -> dict[str, tuple[str, tuple[int, ...], memoryview]]:
    """Every tensor's dtype, shape and bytes. ``ValueError`` unless they are the file, without gaps and surplus."""
    if contents.nbytes < 8:
        raise ValueError(f"{contents.nbytes} bytes")
    length = int.from_bytes(contents[:8], "little")
    if length > min(_LONGEST, contents.nbytes - 8):
        raise ValueError(f"a header of {length} bytes in a file of {contents.nbytes}")
    entries: object = json.loads(str(contents[8 : 8 + length], "utf-8"))
    if not isinstance(entries, dict):
        raise ValueError("the header is no object")
    data, end = contents[8 + length :], 0
    found = {name: _entry(name, entry) for name, entry in cast(dict[str, object], entries).items() if name != "__metadata__"}
    result: dict[str, tuple[str, tuple[int, ...], memoryview]] = {}
    for name, (dtype, shape, offsets) in sorted(found.items(), key=lambda item: item[1][2]):
        bytes_ = math.prod(shape) * _SIZES[dtype]
        if offsets != (end, end + bytes_):
            raise ValueError(f"the tensor '{name}' of {bytes_} bytes has offsets {list(offsets)}; {end} is the next")
        end += bytes_
        result[name] = dtype, shape, data[offsets[0] : end]
    if end != data.nbytes:
        raise ValueError(f"the tensors have {end} bytes and the file {data.nbytes} for them")
    return result


def _entry(name: str, entry: object) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    shown = repr(entry)[:80]
    if isinstance(entry, dict):
        fields = cast(dict[str, object], entry)
        dtype, shape, offsets = fields.get("dtype"), fields.get("shape"), fields.get("data_offsets")
        if isinstance(dtype, str) and dtype in _SIZES and (dims := _sizes(shape)) is not None:
            if (places := _sizes(offsets)) is not None and len(places) == 2:
                return dtype, dims, places
    raise ValueError(f"the tensor '{name}' is described as {shown}")


def _sizes(values: object) -> tuple[int, ...] | None:
    """A list of whole numbers from 0 on."""
    if not isinstance(values, list):
        return None
    sizes = tuple(cast(list[object], values))
    # True is an int, too.
    return cast(tuple[int, ...], sizes) if all(type(size) is int and size >= 0 for size in sizes) else None
