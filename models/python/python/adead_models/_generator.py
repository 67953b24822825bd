"""``TextGenerator``: text in, text out."""

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
    """How text is generated: the keyword arguments of ``generate``, ``stream``, ``chat`` and ``chat_stream``. Without any, the most
    likely tokens are taken, 512 at most. docs/text-generation.md has the steps of sampling."""

    max_tokens: int
    """The most tokens of an answer; 512 if it is not given."""
    stop: str | Sequence[str]
    """Texts that end an answer, wherever tokens begin and end. The answer does not contain them."""
    ignore_end: bool
    """Whether an answer goes on after tokens that would end it."""
    json_schema: Mapping[str, object] | bool | str
    """A JSON schema, as a dict or as its text: the answer is JSON that it allows, and ends when the JSON is complete. ``{}`` allows any
    JSON. ``json.loads`` reads the answer, unless ``max_tokens`` cut it off."""
    temperature: float
    """The factor that flattens the distribution. 0, the default, takes the most likely token; 1 draws by the model's own
    probabilities."""
    top_k: int
    """The most tokens to draw from; 0, the default, is all."""
    top_p: float
    """The probability that the tokens to draw from reach together, 0 to 1; 1, the default, is all."""
    min_p: float
    """The least probability of a token to draw from, as a part of the most likely token's, 0 to 1; 0, the default, is all."""
    repeat_penalty: float
    """The penalty of recent tokens; 1, the default, is none."""
    repeat_last: int
    """How many of the last tokens are recent, the prompt's included; 64 if it is not given."""
    seed: int
    """The seed of the random numbers, 0 to 2**64 - 1; 0 if it is not given."""
    sequence: int
    """The number of the sequence; 0 if it is not given. Sequences of one seed draw different numbers."""


@dataclass(frozen=True)
class Generation:
    """A generated text."""

    text: str
    """The text, without the prompt."""
    tokens: list[int]
    """Its tokens. If a token ended it, that one is the last. Tokens of a stop text are here, and not in the text."""
    finish: Finish | None
    """Why it ended: the model ended it ("end"), a stop text came ("stop"), it has ``max_tokens`` tokens ("max_tokens"), or it filled
    the context ("context_full"). None before its end."""
    prompt_tokens: int
    """The number of the prompt's tokens."""


class TextStream:
    """A text that is generated piece by piece: an iterator of str. A piece is not empty and may have several tokens. Work is done by
    the thread that asks for the next piece, and the GIL is released meanwhile."""

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
        """What is generated so far; all of it behind the last piece. ``adead.InvalidArgumentError`` if the stream is closed."""
        with self._lock:
            if self._handle is None:
                raise adead.InvalidArgumentError("the stream is closed")
            return Generation(*self._handle.generation())

    def close(self) -> None:
        """Gives the memory back. No piece comes afterwards. Closing again does nothing."""
        with self._lock:
            self._handle = None

    def __enter__(self) -> "TextStream":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


class TextGenerator:
    """A model that writes text, in a GGUF file. Threads may share one.

    ``device`` is "cpu", "cuda:1", "vulkan" or what else ``adead.Context`` takes, and None what ``ADEAD_DEVICE`` or ``adead.toml``
    say, else "cpu". ``threads`` are of the CPU. ``context_length`` is the most tokens of a sequence, prompt and answer together;
    None is what the file says, the largest number too. ``chunk`` is how many tokens are computed at once at most; None is 512 on the CPU
    and 2,048 on a GPU.
    ``map`` maps the file instead of reading it: it must not change while the generator lives. ``progress(computed, all)`` is told how
    many tokens of a prompt are computed, after each chunk; what it raises is raised by the call. No choice changes a bit of a text.

    ``adead.IoError`` for a file that is missing, ``adead.InvalidArgumentError`` and ``adead.ShapeMismatchError`` for one that is
    malformed, ``adead.UnsupportedError`` for a model of another kind.
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
        """The number of different tokens."""
        return self._opened().vocabulary

    @property
    def width(self) -> int:
        """The number of values of an embedding."""
        return self._opened().width

    @property
    def has_chat_template(self) -> bool:
        """Whether the file has a chat template, which ``chat`` needs."""
        return self._opened().has_chat_template

    @property
    def device(self) -> str:
        """What it computes on: "cpu" or "cuda:0"."""
        return self._opened().device

    def generate(self, prompt: str, **options: Unpack[Options]) -> Generation:
        """Generates the text that follows a prompt. ``options`` are those of ``Options``. Ctrl-C ends it between two pieces.

        ``adead.InvalidArgumentError`` for a prompt without tokens or with more than the context length, and for options outside
        their ranges.
        """
        return _whole_text(self.stream(prompt, **options))

    def generate_batch(self, prompts: Sequence[str], **options: Unpack[Options]) -> list[Generation]:
        """Generates the texts that follow several prompts at once, which is faster than one by one. Each has the bits that it has
        alone, with the number of its sequence: ``sequence`` plus the number of its prompt. Otherwise as ``generate``; Ctrl-C waits for
        the end."""
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
        """Generates an answer to messages, which the model's chat template writes as a prompt. Each has a "role" ("system", "user",
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
        """The tokens of a text. The text of a special token, such as ``<|im_start|>``, becomes that token. A first token (bos) and a
        last one (eos) are added if the file says so."""
        return self._opened().tokenize(text)

    def detokenize(self, tokens: Sequence[int]) -> str:
        """The text of tokens. Special tokens have none; bytes that are not UTF-8 become U+FFFD."""
        return self._opened().detokenize(tokens)

    def perplexity(self, text: str) -> float:
        """e to the mean of the negative ``logprobs`` of a text. One that exceeds the context length is cut into parts of that
        length. ``adead.InvalidArgumentError`` for fewer than two tokens."""
        return self._opened().perplexity(text)

    def logprobs(self, tokens: Sequence[int]) -> Values:
        """The logarithm of the probability of each token but the first, given those before it: [n - 1] for n tokens.
        ``adead.InvalidArgumentError`` without tokens, for more than the context length, and for one outside the vocabulary."""
        return self._opened().logprobs(tokens)

    def embed(self, text: str) -> Values:
        """The mean of the last hidden states of a text's tokens: [width]. Those of ``SentenceEncoder`` say more about meaning."""
        return self._opened().embed(text)

    def close(self) -> None:
        """Gives the model's memory back, when calls and streams that are under way have ended; later calls are an error. Closing
        again does nothing."""
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
    """A number for the library: ctypes would cut it without a word."""
    if not least <= number <= most:
        raise adead.InvalidArgumentError(f"{name} is {number}; it must be from {least} to {most}")
    return number


def _options(given: Options) -> GenerateOptions:
    """Options for the library; they hold what they point to."""
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
