"""The functions for text of the C library, include/adead/models.h."""

import ctypes
import threading
import weakref
from collections.abc import Callable, Sequence
from ctypes import POINTER, c_char_p, c_double, c_float, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Literal, TypeAlias

import adead
import numpy
import numpy.typing

from ._library import argument, check, destroys, function, text_of

Finish: TypeAlias = Literal["end", "stop", "max_tokens", "context_full"]

# ADEAD_FINISH_…, in their order; None is a text that has not ended.
_FINISHES: tuple[Finish | None, ...] = (None, "end", "stop", "max_tokens", "context_full")

_Progress = ctypes.CFUNCTYPE(None, c_void_p, c_size_t, c_size_t)


class TextOptions(ctypes.Structure):
    """adead_text_options."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("device", c_char_p),
        ("threads", c_size_t),
        ("context_length", c_size_t),
        ("chunk", c_size_t),
        ("map", c_int32),
        ("progress", _Progress),
        ("user", c_void_p),
    ]


class GenerateOptions(ctypes.Structure):
    """adead_generate_options."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("max_tokens", c_size_t),
        ("stop", POINTER(c_char_p)),
        ("stop_count", c_size_t),
        ("ignore_end", c_int32),
        ("temperature", c_float),
        ("top_k", c_size_t),
        ("top_p", c_float),
        ("min_p", c_float),
        ("repeat_penalty", c_float),
        ("repeat_last", c_size_t),
        ("seed", c_uint64),
        ("sequence", c_uint64),
        ("json_schema", c_char_p),
    ]


class _Message(ctypes.Structure):
    """adead_message."""

    _fields_ = [("role", c_char_p), ("content", c_char_p)]


_tokens, _size = POINTER(c_uint32), POINTER(c_size_t)
_open = function("adead_text_generator_open", c_char_p, POINTER(TextOptions), POINTER(c_void_p))
_destroy = destroys("adead_text_generator_destroy")
_context_length = function("adead_text_generator_context_length", c_void_p, _size)
_vocabulary = function("adead_text_generator_vocabulary", c_void_p, _size)
_width = function("adead_text_generator_width", c_void_p, _size)
_has_chat_template = function("adead_text_generator_has_chat_template", c_void_p, POINTER(c_int32))
_device = function("adead_text_generator_device", c_void_p, POINTER(c_char_p))
_create = function("adead_text_stream_create", c_void_p, c_char_p, POINTER(GenerateOptions), POINTER(c_void_p))
_create_chat = function(
    "adead_text_stream_create_chat", c_void_p, POINTER(_Message), c_size_t, POINTER(GenerateOptions), POINTER(c_void_p)
)
_generate_batch = function(
    "adead_text_generate_batch", c_void_p, POINTER(c_char_p), c_size_t, POINTER(GenerateOptions), POINTER(c_void_p)
)
_destroy_stream = destroys("adead_text_stream_destroy")
_next = function("adead_text_stream_next", c_void_p, POINTER(c_void_p), _size)
_generation = function("adead_text_stream_generation", c_void_p, POINTER(c_void_p))
_destroy_generation = destroys("adead_generation_destroy")
_generation_text = function("adead_generation_text", c_void_p, POINTER(c_void_p), _size)
_generation_tokens = function("adead_generation_tokens", c_void_p, POINTER(_tokens), _size)
_generation_prompt_tokens = function("adead_generation_prompt_tokens", c_void_p, _size)
_generation_finish = function("adead_generation_finish", c_void_p, POINTER(c_int32))
_tokenize = function("adead_text_tokenize", c_void_p, c_char_p, _tokens, c_size_t, _size)
_detokenize = function("adead_text_detokenize", c_void_p, _tokens, c_size_t, c_void_p, c_size_t, _size)
_perplexity = function("adead_text_perplexity", c_void_p, c_char_p, POINTER(c_double))
_logprobs = function("adead_text_logprobs", c_void_p, _tokens, c_size_t, c_void_p, c_size_t)
_embed = function("adead_text_embed", c_void_p, c_char_p, c_void_p, c_size_t)


def _array(tokens: Sequence[int]) -> "ctypes.Array[c_uint32]":
    for number, token in enumerate(tokens):
        if not 0 <= token < 1 << 32:
            raise adead.InvalidArgumentError(f"token {number} is {token}; it must be from 0 to {(1 << 32) - 1}")
    return (c_uint32 * len(tokens))(*tokens)


class Handle:
    """A generator of the library. It is destroyed with its last reference; each call holds one. Calls release the GIL."""

    context_length: int
    vocabulary: int
    width: int
    has_chat_template: bool
    device: str

    def __init__(self, path: str, options: TextOptions, progress: Callable[[int, int], object] | None) -> None:
        # What `progress` raised, by thread: the closure must not hold this object.
        self._raised = raised = threading.local()

        def told(_user: object, computed: int, everything: int) -> None:
            # ctypes would print the exception and forget it.
            try:
                assert progress is not None
                progress(computed, everything)
            except BaseException as error:
                raised.error = error

        self._told = _Progress(told) if progress is not None else _Progress()
        options.progress = self._told
        self._pointer = c_void_p()
        check(_open(argument(path), options, self._pointer))
        # Not at the end of the process, when threads may still be computing.
        weakref.finalize(self, _destroy, self._pointer).atexit = False
        length, vocabulary, width, template, device = c_size_t(), c_size_t(), c_size_t(), c_int32(), c_char_p()
        check(_context_length(self._pointer, length))
        check(_vocabulary(self._pointer, vocabulary))
        check(_width(self._pointer, width))
        check(_has_chat_template(self._pointer, template))
        check(_device(self._pointer, device))
        self.context_length, self.vocabulary, self.width = length.value, vocabulary.value, width.value
        self.has_chat_template, self.device = bool(template.value), text_of(device.value)

    def raise_of_progress(self) -> None:
        """Raises what ``progress`` raised."""
        error: BaseException | None = self._raised.__dict__.pop("error", None)
        if error is not None:
            raise error

    def stream(self, prompt: str, options: GenerateOptions) -> "StreamHandle":
        pointer = c_void_p()
        check(_create(self._pointer, argument(prompt), options, pointer))
        return StreamHandle(self, pointer)

    def chat(self, messages: list[tuple[str, str]], options: GenerateOptions) -> "StreamHandle":
        each = [_Message(argument(role), argument(content)) for role, content in messages]
        pointer = c_void_p()
        check(_create_chat(self._pointer, (_Message * len(each))(*each), len(each), options, pointer))
        return StreamHandle(self, pointer)

    def batch(self, prompts: list[str], options: GenerateOptions) -> "list[tuple[str, list[int], Finish | None, int]]":
        count = len(prompts)
        each, pointers = (c_char_p * count)(*map(argument, prompts)), (c_void_p * count)()
        status = _generate_batch(self._pointer, each, count, options, pointers)
        self.raise_of_progress()
        check(status)
        return [_parts_of(c_void_p(pointer)) for pointer in pointers]

    def tokenize(self, text: str) -> list[int]:
        encoded, count = argument(text), c_size_t()
        check(_tokenize(self._pointer, encoded, None, 0, count))
        tokens = (c_uint32 * count.value)()
        check(_tokenize(self._pointer, encoded, tokens, count.value, count))
        return list(tokens)

    def detokenize(self, tokens: Sequence[int]) -> str:
        array, length = _array(tokens), c_size_t()
        check(_detokenize(self._pointer, array, len(array), None, 0, length))
        text = ctypes.create_string_buffer(length.value + 1)
        check(_detokenize(self._pointer, array, len(array), text, length.value + 1, length))
        return text.raw[: length.value].decode("utf-8")

    def perplexity(self, text: str) -> float:
        out = c_double()
        check(_perplexity(self._pointer, argument(text), out))
        return out.value

    def logprobs(self, tokens: Sequence[int]) -> "numpy.typing.NDArray[numpy.float32]":
        array = _array(tokens)
        values = numpy.empty(max(len(array) - 1, 0), numpy.float32)
        check(_logprobs(self._pointer, array, len(array), values.ctypes.data, len(values)))
        return values

    def embed(self, text: str) -> "numpy.typing.NDArray[numpy.float32]":
        values = numpy.empty(self.width, numpy.float32)
        check(_embed(self._pointer, argument(text), values.ctypes.data, len(values)))
        return values


class StreamHandle:
    """A stream of the library. One thread at a time may use it."""

    def __init__(self, generator: Handle, pointer: c_void_p) -> None:
        self._generator, self._pointer = generator, pointer
        weakref.finalize(self, _destroy_stream, pointer).atexit = False

    def next(self) -> str | None:
        """The next piece, or None at the end."""
        text, length = c_void_p(), c_size_t()
        status = _next(self._pointer, text, length)
        self._generator.raise_of_progress()
        check(status)
        return None if text.value is None else ctypes.string_at(text.value, length.value).decode("utf-8")

    def generation(self) -> tuple[str, list[int], Finish | None, int]:
        """Text, tokens, finish and the number of the prompt's tokens, so far."""
        pointer = c_void_p()
        check(_generation(self._pointer, pointer))
        return _parts_of(pointer)


def _parts_of(pointer: c_void_p) -> tuple[str, list[int], Finish | None, int]:
    """Returns text, tokens, finish and the number of the prompt's tokens of a generation, and destroys it."""
    try:
        text, length = c_void_p(), c_size_t()
        tokens, count, finish, prompt = _tokens(), c_size_t(), c_int32(), c_size_t()
        check(_generation_text(pointer, text, length))
        check(_generation_tokens(pointer, tokens, count))
        check(_generation_finish(pointer, finish))
        check(_generation_prompt_tokens(pointer, prompt))
        whole = ctypes.string_at(text.value or 0, length.value).decode("utf-8")
        return whole, tokens[: count.value], _FINISHES[finish.value], prompt.value
    finally:
        _destroy_generation(pointer)
