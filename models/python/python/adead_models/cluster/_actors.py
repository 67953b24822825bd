"""Actors with an open model, for the data sets and data frames of Ray and Dask."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

import adead
import numpy

from .._encoder import Rows, SentenceEncoder, encode_and_count
from .._generator import Generation, Options, TextGenerator
from ._kinds import generate_in_sequence, texts_of_generations


def column_of(batch: Mapping[str, Any], name: str) -> Any:
    """Returns a column of a batch. ``adead.InvalidArgumentError`` if there is none."""
    if name not in batch:
        raise adead.InvalidArgumentError(f"the batch has no column {name!r}; it has {', '.join(map(repr, batch))}")
    return batch[name]


def strings(values: Any, name: str) -> list[str]:
    """Returns the texts of a column. ``adead.InvalidArgumentError`` unless all are str."""
    texts = list(values)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise adead.InvalidArgumentError(
                f"row {number} of the batch has {type(text).__name__} in column {name!r}; it must be a str: remove such rows, or fill them"
            )
    return texts


class SentenceEmbedder:
    """Embeds sentences, as an actor: the model stays open between calls.

    ``column`` is the column of sentences, ``output`` the one that is added. The other arguments are those of ``SentenceEncoder``.
    Neither the division into batches nor the number of actors changes a bit. Truncated sentences are not reported.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        column: str = "text",
        output: str = "embedding",
        *,
        device: str | None = None,
        threads: int | None = None,
        precision: Literal["f32", "fixed24", "fixed16"] = "f32",
    ) -> None:
        self._encoder = SentenceEncoder(model, device, threads, precision=precision)
        self._column, self._output = column, output

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a batch of columns with one more, f32 [n, width], as ``map_batches`` of a Ray data set calls it."""
        return {**batch, self._output: self.encode(strings(column_of(batch, self._column), self._column))}

    def encode(self, sentences: Sequence[str]) -> Rows:
        """Returns the embeddings of n sentences, f32 [n, width]."""
        rows, _ = encode_and_count(self._encoder, sentences)
        return rows

    def width(self) -> int:
        """Returns the number of values in an embedding."""
        return self._encoder.width


class TextWriter:
    """Generates texts, as an actor: the model stays open between calls.

    ``column`` is the column of prompts. ``output`` is the name of the new column of texts; the columns named ``output`` plus
    ``_tokens`` and ``_finish`` have each text's tokens and finish. ``sequence_column`` is an integer column with the number of each
    row's sequence, such as the number of the row. Without it every row has the number ``sequence`` of the options. ``options`` are
    those of ``TextGenerator.generate``. Neither the division into batches nor the number of actors changes a text.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        column: str = "text",
        output: str = "generated",
        *,
        sequence_column: str | None = None,
        device: str | None = None,
        threads: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        self._generator = TextGenerator(model, device, threads)
        self._column, self._output, self._sequence_column = column, output, sequence_column
        self._options = options

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a batch of columns with three more, as ``map_batches`` of a Ray data set calls it."""
        prompts = strings(column_of(batch, self._column), self._column)
        sequences = None if self._sequence_column is None else list(map(int, column_of(batch, self._sequence_column)))
        texts = texts_of_generations(self.generate(prompts, sequences))
        # An array per row, as rows have different lengths.
        tokens = numpy.empty(len(texts), object)
        tokens[:] = [numpy.array(each, numpy.int64) for each in texts.tokens]
        return {
            **batch,
            self._output: numpy.array(texts.texts, object),
            f"{self._output}_tokens": tokens,
            f"{self._output}_finish": numpy.array(texts.finishes, object),
        }

    def generate(self, prompts: Sequence[str], sequences: Sequence[int] | None = None) -> list[Generation]:
        """Returns a text for each prompt. ``sequences`` has the number of each prompt's sequence."""
        if sequences is None:
            sequences = [self._options.get("sequence", 0)] * len(prompts)
        if len(sequences) != len(prompts):
            raise adead.InvalidArgumentError(f"sequences has {len(sequences)} numbers for {len(prompts)} prompts")
        if not self._options.get("temperature", 0.0):
            # The most likely tokens are the same in every sequence, and following numbers are computed at once.
            sequences = range(len(prompts))
        return generate_in_sequence(self._generator, prompts, sequences, self._options)
