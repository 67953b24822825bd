"""``TextGenerator``: generates text."""

import ctypes
import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypedDict, Unpack

import adead
import numpy
import numpy.typing

from ._library import argument
from ._text_library import Finish, GenerateOptions, Handle, StreamHandle, TextOptions

Values: TypeAlias = numpy.typing.NDArray[numpy.float32]


class Options(TypedDict, total=False):
    """Options for generating text: the keyword arguments of ``generate``, ``stream``, ``chat`` and ``chat_stream``. By default the
    most likely token is taken each time, for at most 512 tokens. The steps of sampling:
    https://adead.github.io/adead/text-generation.html
    """

    max_tokens: int
    """The most tokens of an answer; 512 by default."""
    stop: str | Sequence[str]
    """Stop texts: one that appears ends the answer, even across tokens, and is not part of it."""
    ignore_end: bool
    """Whether an answer continues after tokens that would end it."""
    json_schema: Mapping[str, object] | bool | str
    """A JSON schema, as a dict or as its text: the answer is JSON that it allows, and ends when the JSON is complete. ``{}`` allows any
    JSON. ``json.loads`` reads the answer, unless ``max_tokens`` cut it off."""
    temperature: float
    """The temperature. 0, the default, takes the most likely token; 1 samples by the model's own probabilities; more flattens the
    distribution.
    """
    top_k: int
    """The number of most likely tokens to sample from; 0, the default, is all."""
    top_p: float
    """Sample from the most likely tokens whose probabilities together reach this, 0 to 1; 1, the default, is all tokens."""
    min_p: float
    """The least probability of a token to sample, as a fraction of the most likely token's, 0 to 1; 0, the default, is all tokens."""
    repeat_penalty: float
    """The penalty for recent tokens; 1, the default, is none."""
    repeat_last: int
    """How many of the last tokens count as recent, including the prompt's; 64 by default."""
    seed: int
    """The seed of the random numbers, 0 to 2**64 - 1; 0 by default."""
    sequence: int
    """The number of the sequence; 0 by default. Sequences with the same seed and different numbers draw different random numbers."""


@dataclass(frozen=True)
class Generation:
    """A generated text."""

    text: str
    """The text, without the prompt."""
    tokens: list[int]
    """Its tokens, including the token that ended it, if one did. Tokens of a stop text are included here, but not in the text."""
    finish: Finish | None
    """Why it ended: the model ended it ("end"), a stop text appeared ("stop"), it reached ``max_tokens`` tokens ("max_tokens"), or
    it filled the context ("context_full"). None before its end.
    """
    prompt_tokens: int
    """The number of the prompt's tokens."""


class TextStream:
    """Iterates over the pieces of a text while it is generated. A piece is a str that is not empty and may have several tokens. The
    thread that asks for the next piece computes it, without the GIL.
    """

    def __init__(self, handle: StreamHandle) -> None:
        """``TextGenerator.stream`` makes it."""
        self._handle: StreamHandle | None = handle
        self._lock = threading.Lock()

    def __iter__(self) -> "TextStream":
        return self

    def __next__(self) -> str:
        with self._lock:
            piece = None if self._handle is None else self._handle.next()
        if piece is None:
            raise StopIteration
        return piece

    @property
    def generation(self) -> Generation:
        """The text generated so far. After the last piece it is complete. ``adead.InvalidArgumentError`` if the stream is closed."""
        with self._lock:
            if self._handle is None:
                raise adead.InvalidArgumentError("the stream is closed")
            return Generation(*self._handle.generation())

    def close(self) -> None:
        """Frees the memory, and ends the stream. Closing again does nothing."""
        with self._lock:
            self._handle = None

    def __enter__(self) -> "TextStream":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


class TextGenerator:
    """A language model in a GGUF file, which generates text. Threads may share one.

    ``device`` is "cpu", "cuda:1", "vulkan" or another device that ``adead.Context`` takes; None is the device of ``ADEAD_DEVICE``
    or ``adead.toml``, else "cpu". ``threads`` is the number of CPU threads. ``context_length`` is the most tokens of a sequence,
    prompt and answer together; the file's is the default and the maximum. ``chunk`` is the most tokens computed at once; None is
    512 on the CPU and 2,048 on a GPU. ``map`` maps the file instead of reading it: the file must not change while the generator
    lives. After each chunk of a prompt, ``progress(computed, all)`` receives the number of tokens computed so far, and the total;
    the call raises its exceptions. None of these changes a bit of a text.

    ``adead.IoError`` for a missing file, ``adead.InvalidArgumentError`` or ``adead.ShapeMismatchError`` for a malformed one,
    ``adead.UnsupportedError`` for another kind of model.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        device: str | None = None,
        threads: int | None = None,
        *,
        context_length: int | None = None,
        chunk: int | None = None,
        map: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> None:
        self._handle: Handle | None = None
        options = TextOptions(ctypes.sizeof(TextOptions), None if device is None else argument(device))
        options.threads = 0 if threads is None else _whole("threads", threads, 1)
        options.context_length = 0 if context_length is None else _whole("context_length", context_length, 1)
        options.chunk = 0 if chunk is None else _whole("chunk", chunk, 1)
        options.map = bool(map)
        self._handle = Handle(os.fspath(path), options, progress)

    @property
    def context_length(self) -> int:
        """The most tokens of a sequence, prompt and answer together."""
        return self._opened().context_length

    @property
    def vocabulary(self) -> int:
        """The number of tokens in the vocabulary."""
        return self._opened().vocabulary

    @property
    def width(self) -> int:
        """The number of values in an embedding."""
        return self._opened().width

    @property
    def has_chat_template(self) -> bool:
        """Whether the file has a chat template, which ``chat`` needs."""
        return self._opened().has_chat_template

    @property
    def device(self) -> str:
        """The device that computes: "cpu" or "cuda:0"."""
        return self._opened().device

    def generate(self, prompt: str, **options: Unpack[Options]) -> Generation:
        """Generates the text that follows a prompt. ``options`` are those of ``Options``. Ctrl-C ends it between two pieces.

        ``adead.InvalidArgumentError`` if the prompt has no tokens or more than the context length, or an option is outside its
        range.
        """
        return _whole_text(self.stream(prompt, **options))

    def generate_batch(self, prompts: Sequence[str], **options: Unpack[Options]) -> list[Generation]:
        """Generates the texts that follow several prompts at once, which is faster than one by one. Each text has the same bits as
        alone. Prompt i uses the sequence number ``sequence`` + i. Otherwise as ``generate``; Ctrl-C waits for the end.
        """
        handle = self._opened()
        # A str is a sequence of its characters.
        if isinstance(prompts, str):
            raise TypeError("prompts is a str; it must be a sequence of them")
        return [Generation(*parts) for parts in handle.batch(list(prompts), _options(options))]

    def stream(self, prompt: str, **options: Unpack[Options]) -> TextStream:
        """Generates the text that follows a prompt piece by piece. The first piece computes the prompt. Otherwise as
        ``generate``."""
        handle = self._opened()
        return TextStream(handle.stream(prompt, _options(options)))

    def chat(self, messages: Sequence[Mapping[str, str]], **options: Unpack[Options]) -> Generation:
        """Generates an answer to messages. The model's chat template makes the prompt. Each message has a "role" ("system", "user",
        "assistant") and a "content". Otherwise as ``generate``.

        ``adead.UnsupportedError`` if the file has no chat template, ``adead.InvalidArgumentError`` if the template refuses the
        messages.
        """
        return _whole_text(self.chat_stream(messages, **options))

    def chat_stream(self, messages: Sequence[Mapping[str, str]], **options: Unpack[Options]) -> TextStream:
        """Generates an answer to messages piece by piece. Otherwise as ``chat``."""
        handle = self._opened()
        return TextStream(handle.chat([_message(*numbered) for numbered in enumerate(messages)], _options(options)))

    def tokenize(self, text: str) -> list[int]:
        """Returns the tokens of a text. The text of a special token, such as ``<|im_start|>``, becomes that token. The file decides
        whether a first token (bos) and a last one (eos) are added.
        """
        return self._opened().tokenize(text)

    def detokenize(self, tokens: Sequence[int]) -> str:
        """Returns the text of tokens. Special tokens have no text. Bytes that are not UTF-8 become U+FFFD."""
        return self._opened().detokenize(tokens)

    def perplexity(self, text: str) -> float:
        """Returns the perplexity of a text: e to the mean of its negative ``logprobs``. A text beyond the context length is cut
        into parts of that length. ``adead.InvalidArgumentError`` for fewer than two tokens.
        """
        return self._opened().perplexity(text)

    def logprobs(self, tokens: Sequence[int]) -> Values:
        """Returns the log-probability of each token except the first, given the tokens before it: [n - 1] for n tokens.
        ``adead.InvalidArgumentError`` if there are no tokens or more than the context length, or one is outside the vocabulary.
        """
        return self._opened().logprobs(tokens)

    def embed(self, text: str) -> Values:
        """Returns the mean of the last hidden states of a text's tokens: [width]. To compare meanings, use ``SentenceEncoder``."""
        return self._opened().embed(text)

    def close(self) -> None:
        """Frees the model's memory after running calls and streams have ended. Later calls are an error. Closing again does
        nothing.
        """
        self._handle = None

    def __enter__(self) -> "TextGenerator":
        self._opened()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._handle is None:
            return "TextGenerator(closed)"
        return f"TextGenerator({self.vocabulary} tokens, context length {self.context_length}, {self.device})"

    def _opened(self) -> Handle:
        if self._handle is None:
            raise adead.InvalidArgumentError("the generator is closed")
        return self._handle


def _whole_text(stream: TextStream) -> Generation:
    with stream:
        for _piece in stream:
            pass
        return stream.generation


def _whole(name: str, number: int, least: int, most: int = (1 << 8 * ctypes.sizeof(ctypes.c_size_t)) - 1) -> int:
    """Checks a number for the library: ctypes would truncate it silently."""
    if not least <= number <= most:
        raise adead.InvalidArgumentError(f"{name} is {number}; it must be from {least} to {most}")
    return number


def _options(given: Options) -> GenerateOptions:
    """Returns options for the library, which keep alive what they point to."""
    unknown = given.keys() - Options.__annotations__.keys()
    if unknown:
        raise TypeError(f"unknown option {min(unknown)!r}; known are {', '.join(Options.__annotations__)}")
    stop = given.get("stop", ())
    stops = [argument(text) for text in ([stop] if isinstance(stop, str) else stop)]
    options = GenerateOptions(ctypes.sizeof(GenerateOptions))
    options.max_tokens = _whole("max_tokens", given.get("max_tokens", 512), 0)
    options.stop, options.stop_count = (ctypes.c_char_p * len(stops))(*stops), len(stops)
    options.ignore_end = bool(given.get("ignore_end", False))
    if "json_schema" in given:
        schema = given["json_schema"]
        options.json_schema = argument(schema if isinstance(schema, str) else json.dumps(schema))
    options.temperature = given.get("temperature", 0.0)
    options.top_k = _whole("top_k", given.get("top_k", 0), 0)
    options.top_p = given.get("top_p", 1.0)
    options.min_p = given.get("min_p", 0.0)
    options.repeat_penalty = given.get("repeat_penalty", 1.0)
    options.repeat_last = _whole("repeat_last", given.get("repeat_last", 64), 0)
    options.seed = _whole("seed", given.get("seed", 0), 0, (1 << 64) - 1)
    options.sequence = _whole("sequence", given.get("sequence", 0), 0, (1 << 64) - 1)
    return options


def _message(number: int, message: Mapping[str, str]) -> tuple[str, str]:
    try:
        return message["role"], message["content"]
    except KeyError as error:
        raise adead.InvalidArgumentError(f"message {number} has no {error}; it must have 'role' and 'content'") from error
