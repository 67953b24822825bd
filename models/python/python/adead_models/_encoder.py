"""``SentenceEncoder``: computes a row of f32 for each sentence."""

import ctypes
import os
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Literal, TypeAlias

import adead
import numpy
import numpy.typing

from ._library import BATCH_AUTO, EncodeOptions, Handle

Rows: TypeAlias = numpy.typing.NDArray[numpy.float32]

# The most sentences that are sorted by length at once; fewer at the start, because the caller waits for the first rows.
_SENTENCES = 4096
_FIRST = 64
# Bytes of text after which no further sentences are taken.
_BYTES = 4 << 20


class TruncationWarning(UserWarning):
    """Sentences had more tokens than the model takes. Only their first tokens were used. ``sentences`` lists their indices."""

    def __init__(self, sentences: list[int], count: int, max_tokens: int) -> None:
        super().__init__(f"cut to {max_tokens} tokens: {len(sentences)} of {count} sentences, sentence {sentences[0]} first")
        self.sentences = sentences


class SentenceEncoder:
    """A model of sentence-transformers on a device: tokenizer, network, pooling. Threads may share one.

    ``folder`` is the model's folder, such as all-MiniLM-L6-v2. ``device`` is "auto", "cpu", "cuda:1", "vulkan", "hybrid" or another
    device that ``adead.Context`` takes; None is the device of ``ADEAD_DEVICE`` or ``adead.toml``, else "auto". ``threads`` and
    ``isa`` apply to the CPU. ``precision`` is the precision of the model's matrix products: "fixed24" is as accurate as "f32",
    "fixed16" is faster. ``adead.IoError`` for a missing file, ``adead.InvalidArgumentError`` or ``adead.ShapeMismatchError`` for a
    malformed one, ``adead.UnsupportedError`` for another kind of model.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        device: str | None = None,
        threads: int | None = None,
        *,
        isa: str | None = None,
        precision: Literal["f32", "fixed24", "fixed16"] = "f32",
    ) -> None:
        self._handle: Handle | None = None
        self._handle = Handle(os.fspath(folder), device, isa, threads, precision)

    @property
    def width(self) -> int:
        """The number of values in an embedding."""
        return self._opened().width

    @property
    def max_tokens(self) -> int:
        """The most tokens of a sentence, including the special ones at its ends. Further tokens have no effect."""
        return self._opened().max_tokens

    @property
    def device(self) -> str:
        """The device that computes: "cpu", "cuda:0", or several separated by commas."""
        return self._opened().device

    def encode(self, sentences: str | Sequence[str], batch: int | None = None, padded: bool | None = None) -> Rows:
        """Returns the embeddings: [n, width] for n sentences, in order, and [width] for a str.

        ``batch`` is the most sentences computed at once, and ``padded`` says whether they are padded to one length. None suits the
        device; neither changes a bit. A ``TruncationWarning`` names sentences that were cut. ``adead.InvalidArgumentError`` for
        batches of 0 sentences or a str that UTF-8 can't encode, ``TypeError`` unless every sentence is a str.
        """
        handle, options = self._opened(), _options(batch, padded)
        alone = isinstance(sentences, str)
        rows, cut = _encode(handle, _utf8([sentences] if isinstance(sentences, str) else sentences, 0), options)
        _warn(cut, len(rows), handle.max_tokens, 3)
        return rows[0] if alone else rows

    def batch_embed(
        self,
        sentences: Iterable[str],
        batch: int | None = None,
        padded: bool | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> Generator[Rows, None, None]:
        """Embeds any number of sentences as they arrive. Returns an iterator of arrays [n, width], in the order of the sentences.

        A few thousand sentences are in memory at a time. The iterating thread takes the next sentences while a separate thread
        computes the earlier ones. Before each array, ``progress`` receives the number of sentences computed so far. An exception of
        ``sentences`` or ``progress`` ends the iterator and is raised; rows of earlier sentences may be missing. Closing the
        iterator waits for the current computation. Otherwise as ``encode``.
        """
        if isinstance(sentences, str):
            raise TypeError("sentences is one str; pass a list of it, or use encode")
        return _stream(self._opened(), iter(sentences), _options(batch, padded), progress)

    def close(self) -> None:
        """Frees the model's memory after running calls have ended. Later calls are an error. Closing again does nothing."""
        self._handle = None

    def __enter__(self) -> "SentenceEncoder":
        self._opened()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._handle is None:
            return "SentenceEncoder(closed)"
        return f"SentenceEncoder({self.width} values, {self.max_tokens} tokens at most, {self.device})"

    def _opened(self) -> Handle:
        if self._handle is None:
            raise adead.InvalidArgumentError("the encoder is closed")
        return self._handle


def _options(batch: int | None, padded: bool | None) -> EncodeOptions:
    if batch is not None and batch < 1:
        raise adead.InvalidArgumentError(f"a batch has at least 1 sentence, not {batch}")
    size = BATCH_AUTO if batch is None else min(batch, BATCH_AUTO - 1)
    return EncodeOptions(ctypes.sizeof(EncodeOptions), size, -1 if padded is None else int(bool(padded)))


def _utf8(sentences: Iterable[str], first: int) -> list[bytes]:
    """Encodes sentences for the library. `first` is the index of the first one."""
    texts: list[bytes] = []
    for sentence in sentences:
        number = first + len(texts)
        # Type checkers know it already; callers without them don't.
        if not isinstance(sentence, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"sentence {number} is {type(sentence).__name__}, not str")
        try:
            texts.append(sentence.encode("utf-8"))
        except UnicodeEncodeError as error:
            raise adead.InvalidArgumentError(f"sentence {number} can't be encoded as UTF-8: {error}") from error
    return texts


def _encode(handle: Handle, texts: list[bytes], options: EncodeOptions) -> tuple[Rows, list[int]]:
    """Returns the rows, and the indices of sentences that were cut."""
    rows = numpy.empty((len(texts), handle.width), numpy.float32)
    truncated = (ctypes.c_uint8 * len(texts))()
    handle.encode(texts, options, rows.ctypes.data, truncated)
    return rows, [number for number, cut in enumerate(truncated) if cut]


def encode_and_count(encoder: SentenceEncoder, sentences: Sequence[str]) -> tuple[Rows, int]:
    """Returns the embeddings and the number of cut sentences, without a warning: ``warnings`` belong to a process, and actors are
    threads.
    """
    rows, cut = _encode(encoder._opened(), _utf8(sentences, 0), _options(None, None))  # pyright: ignore[reportPrivateUsage]
    return rows, len(cut)


def _warn(cut: list[int], count: int, max_tokens: int, level: int) -> None:
    if cut:
        warnings.warn(TruncationWarning(cut, count, max_tokens), stacklevel=level)


def _windows(sentences: Iterator[str]) -> Iterator[tuple[int, list[bytes]]]:
    """Yields the sentences to compute at once, with the index of the first one: few at first, then more."""
    first, most = 0, _FIRST
    while True:
        window: list[bytes] = []
        size = 0
        for sentence in sentences:
            window += _utf8([sentence], first + len(window))
            size += len(window[-1])
            if len(window) == most or size >= _BYTES:
                break
        if not window:
            return
        yield first, window
        first, most = first + len(window), min(2 * most, _SENTENCES)


def _stream(
    handle: Handle, sentences: Iterator[str], options: EncodeOptions, progress: Callable[[int], object] | None
) -> Generator[Rows, None, None]:
    # While a GPU computes, another thread tokenizes the next window. On the CPU, one window uses all cores.
    threads = 1 if handle.device == "cpu" else 2
    under_way: deque[tuple[int, Future[tuple[Rows, list[int]]]]] = deque()

    def oldest() -> Rows:
        first, future = under_way.popleft()
        rows, cut = future.result()
        _warn([first + row for row in cut], len(rows), handle.max_tokens, 4)
        if progress is not None:
            progress(first + len(rows))
        return rows

    pool = ThreadPoolExecutor(threads, "adead-models")
    try:
        for first, window in _windows(sentences):
            under_way.append((first, pool.submit(_encode, handle, window, options)))
            if len(under_way) > threads:
                yield oldest()
        while under_way:
            yield oldest()
    finally:
        pool.shutdown(cancel_futures=True)
