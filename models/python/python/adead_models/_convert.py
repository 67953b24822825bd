"""Converts models to GGUF files."""

import ctypes
import os
import warnings
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_int32, c_size_t, c_uint64, c_void_p
from typing import Literal, TypeAlias

from ._library import argument, check, library, text_of

Kind: TypeAlias = Literal[
    "f32", "f16", "bf16", "q8_0", "q6_k", "q5_k_m", "q5_k", "q5_1", "q5_0", "q4_k_m", "q4_k", "q4_1", "q4_0"
]

_Progress = ctypes.CFUNCTYPE(c_int32, c_void_p, c_uint64, c_uint64)
_Note = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)


class _Options(ctypes.Structure):
    """adead_convert_options."""

    _fields_ = [("struct_size", c_size_t), ("kind", c_char_p), ("progress", _Progress), ("note", _Note), ("user", c_void_p)]


_convert = library.adead_convert
_convert.argtypes, _convert.restype = [c_char_p, c_char_p, POINTER(_Options)], c_int32


class ConversionWarning(UserWarning):
    """A note for the user of a converted model, such as a tensor that is stored in another type."""


def convert(
    model: str | os.PathLike[str],
    file: str | os.PathLike[str],
    kind: Kind | None = None,
    *,
    progress: Callable[[int, int], object] | None = None,
) -> None:
    """Converts a model to the GGUF file ``file``. ``model`` is a Hugging Face folder, such as SmolLM2-135M-Instruct, or a GGUF
    file.

    ``kind`` is the type of stored matrices, or one of llama.cpp's mixtures q4_k_m and q5_k_m. None keeps the types that a folder
    has; for a GGUF file it is required. ``progress(written, all)`` receives the number of values written so far, and the total; an
    exception ends the conversion and is raised here. The file appears when it is complete, and then replaces a file of that name.
    The same model gives the same bytes on every machine. Warns with ``ConversionWarning``.

    ``adead.IoError`` if a file is missing, can't be read or can't be written, ``adead.InvalidArgumentError`` or
    ``adead.ShapeMismatchError`` for a malformed model, ``adead.UnsupportedError`` for another kind of model,
    ``adead.InvalidArgumentError`` for an unknown kind of values and for values that the kind can't hold.
    """
    raised: list[BaseException] = []
    notes: list[str] = []

    def told(_user: object, written: int, everything: int) -> int:
        # ctypes would print the exception and forget it.
        try:
            assert progress is not None
            progress(written, everything)
        except BaseException as error:
            raised.append(error)
            return 1
        return 0

    def noted(_user: object, text: bytes) -> None:
        notes.append(text_of(text))

    options = _Options(ctypes.sizeof(_Options), None if kind is None else argument(kind))
    options.progress = _Progress(told) if progress is not None else _Progress()
    options.note = _Note(noted)
    status = _convert(argument(os.fspath(model)), argument(os.fspath(file)), options)
    for note in notes:
        warnings.warn(note, ConversionWarning, stacklevel=2)
    if raised:
        raise raised[0]
    check(status)
