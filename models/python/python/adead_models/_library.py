"""The C library in this package, include/adead/models.h: its functions, and its errors as exceptions of ``adead``."""

import ctypes
import sys
import weakref
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_int32, c_size_t, c_uint8, c_void_p
from pathlib import Path

import adead

_NAME = {"darwin": "libadead_models.dylib", "win32": "adead_models.dll"}.get(sys.platform, "libadead_models.so")
library = ctypes.CDLL(str(Path(__file__).with_name(_NAME)))

# ADEAD_PRECISION_…, in their order.
PRECISIONS = ("f32", "fixed24", "fixed16")

BATCH_AUTO = ctypes.c_size_t(-1).value


class ContextOptions(ctypes.Structure):
    """adead_context_options."""

    _fields_ = [("struct_size", c_size_t), ("isa", c_char_p), ("threads", c_size_t), ("precision", c_int32)]


class EncodeOptions(ctypes.Structure):
    """adead_encode_options."""

    _fields_ = [("struct_size", c_size_t), ("batch", c_size_t), ("padded", c_int32)]


_last_error = library.adead_models_last_error
_last_error.argtypes, _last_error.restype = [], c_char_p
_version = library.adead_models_version
_version.argtypes, _version.restype = [], c_char_p
_destroy = library.adead_sentence_encoder_destroy
_destroy.argtypes, _destroy.restype = [c_void_p], None
_open = library.adead_sentence_encoder_open
_open.argtypes, _open.restype = [c_char_p, c_char_p, POINTER(ContextOptions), POINTER(c_void_p)], c_int32
_width = library.adead_sentence_encoder_width
_width.argtypes, _width.restype = [c_void_p, POINTER(c_size_t)], c_int32
_max_tokens = library.adead_sentence_encoder_max_tokens
_max_tokens.argtypes, _max_tokens.restype = [c_void_p, POINTER(c_size_t)], c_int32
_device = library.adead_sentence_encoder_device
_device.argtypes, _device.restype = [c_void_p, POINTER(c_char_p)], c_int32
_encode = library.adead_sentence_encoder_encode
_encode.argtypes, _encode.restype = (
    [c_void_p, POINTER(c_char_p), POINTER(c_size_t), c_size_t, POINTER(EncodeOptions), c_void_p, c_size_t, POINTER(c_uint8)],
    c_int32,
)


def text_of(text: bytes | None) -> str:
    """A text of the library."""
    return (text or b"").decode("utf-8")


VERSION = text_of(_version())

_classes = {error.status: error for error in adead.Error.__subclasses__()}


def check(status: int) -> None:
    """Raises the error of this thread's last call, if it failed."""
    if status:
        raise _classes.get(status, adead.Error)(text_of(_last_error()))


def function(name: str, *arguments: object) -> Callable[..., int]:
    """A function that returns a status."""
    function = getattr(library, name)
    function.argtypes, function.restype = arguments, c_int32
    return function  # type: ignore[no-any-return]


def destroys(name: str) -> Callable[[c_void_p], None]:
    """A function that releases a handle."""
    function = getattr(library, name)
    function.argtypes, function.restype = [c_void_p], None
    return function  # type: ignore[no-any-return]


def context_options(isa: str | None, threads: int | None, precision: str) -> ContextOptions:
    """Returns the options for opening a device. ``adead.InvalidArgumentError`` for 0 threads or an unknown precision."""
    if threads is not None and threads < 1:
        raise adead.InvalidArgumentError(f"threads is {threads}; it must be at least 1")
    if precision not in PRECISIONS:
        raise adead.InvalidArgumentError(f"precision is {precision!r}; it must be one of {', '.join(PRECISIONS)}")
    name = None if isa is None else argument(isa)
    return ContextOptions(ctypes.sizeof(ContextOptions), name, threads or 0, PRECISIONS.index(precision))


class Handle:
    """An encoder of the library. It is destroyed with its last reference; each call holds one."""

    def __init__(self, folder: str, device: str | None, isa: str | None, threads: int | None, precision: str) -> None:
        options = context_options(isa, threads, precision)
        self._pointer = c_void_p()
        check(_open(argument(folder), None if device is None else argument(device), options, self._pointer))
        # Not at the end of the process, when threads may still be computing.
        weakref.finalize(self, _destroy, self._pointer).atexit = False
        width, most, device_name = c_size_t(), c_size_t(), c_char_p()
        check(_width(self._pointer, width))
        check(_max_tokens(self._pointer, most))
        check(_device(self._pointer, device_name))
        self.width, self.max_tokens, self.device = width.value, most.value, text_of(device_name.value)

    def encode(self, texts: list[bytes], options: EncodeOptions, rows: int, truncated: "ctypes.Array[c_uint8]") -> None:
        """Writes a row of ``self.width`` f32 for each text to the address ``rows``. Releases the GIL."""
        count = len(texts)
        pointers, lengths = (c_char_p * count)(*texts), (c_size_t * count)(*map(len, texts))
        check(_encode(self._pointer, pointers, lengths, count, options, rows, count * self.width, truncated))


def argument(text: str) -> bytes:
    """A text that ends with NUL for the library."""
    # Type checkers know it already; callers without them don't.
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"a text is {type(text).__name__}, not str")
    try:
        encoded = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise adead.InvalidArgumentError(f"{text!r} can't be encoded as UTF-8: {error}") from error
    if b"\0" in encoded:
        raise adead.InvalidArgumentError(f"{text!r} has a NUL in it")
    return encoded
