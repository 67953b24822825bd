"""The two kinds of jobs: which files a model has, how it is opened, and what it computes for the texts of a shard."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

import adead
import numpy

from .._encoder import SentenceEncoder, encode_and_count
from .._generator import Generation, Options, TextGenerator
from ._job import Json, file_hash
from ._results import Embeddings, Result, Texts

# What a sentence encoder reads in its folder, and whether it must be there.
_FOLDER = {
    "config.json": True,
    "model.safetensors": True,
    "tokenizer.json": True,
    "modules.json": False,
    "sentence_bert_config.json": False,
    "1_Pooling/config.json": False,
}

# Sentences and prompts that are computed at once, at most: neither number changes a bit, both bound the memory.
_SENTENCES = 4096
_PROMPTS = 16

Compute: TypeAlias = Callable[[Sequence[str], int], tuple[Result, int]]


class Kind(Protocol):
    """A kind of job. ``options`` are those of the job's description."""

    @property
    def columns(self) -> Sequence[str]:
        """The result's columns in an output file."""
        ...

    def hashes(self, model: Path) -> dict[str, str]:
        """Returns the SHA-256 of each file of a model."""
        ...

    def open(self, model: Path, options: Mapping[str, Json], device: str | None, threads: int | None) -> Compute:
        """Opens a model. The result takes texts and the number of the first one in the job, and returns what the model computes for
        them, and how many of them were truncated."""
        ...

    def result(self, table: Any) -> Result:
        """Reads the results of an output file."""
        ...


class Embedding:
    """Embeddings of sentences."""

    columns = ("embedding",)

    def hashes(self, model: Path) -> dict[str, str]:
        return {name: file_hash(model / name) for name, needed in _FOLDER.items() if needed or (model / name).exists()}

    def open(self, model: Path, options: Mapping[str, Json], device: str | None, threads: int | None) -> Compute:
        encoder = SentenceEncoder(model, device, threads, **cast("Any", options))

        def compute(sentences: Sequence[str], _first: int) -> tuple[Result, int]:
            parts = [numpy.empty((0, encoder.width), numpy.float32)]
            truncated = 0
            for start in range(0, len(sentences), _SENTENCES):
                rows, cut = encode_and_count(encoder, sentences[start : start + _SENTENCES])
                parts.append(rows)
                truncated += cut
            return Embeddings(numpy.concatenate(parts)), truncated

        return compute

    def result(self, table: Any) -> Result:
        return Embeddings.of(table)


class Generating:
    """Texts that follow prompts. The text of row n of the job has the bits of ``generate`` with ``sequence`` + n."""

    columns = ("text", "tokens", "finish")

    def hashes(self, model: Path) -> dict[str, str]:
        return {"model.gguf": file_hash(model)}

    def open(self, model: Path, options: Mapping[str, Json], device: str | None, threads: int | None) -> Compute:
        generator, given = TextGenerator(model, device, threads), cast(Options, options)

        def compute(prompts: Sequence[str], first: int) -> tuple[Result, int]:
            start = given.get("sequence", 0) + first
            generations = generate_in_sequence(generator, prompts, range(start, start + len(prompts)), given)
            return texts_of_generations(generations), 0

        return compute

    def result(self, table: Any) -> Result:
        return Texts.of(table)


KINDS: dict[str, Kind] = {"embed": Embedding(), "generate": Generating()}


def texts_of_generations(generations: Sequence[Generation]) -> Texts:
    """Collects generations by column."""
    return Texts(
        [each.text for each in generations],
        [each.tokens for each in generations],
        [each.finish or "" for each in generations],
    )


class PromptError(adead.InvalidArgumentError):
    """A prompt that can't be answered: it has no tokens, or too many. ``number`` is its index among those given."""

    def __init__(self, number: int, prompt: str, why: str) -> None:
        super().__init__(f"prompt {number}, {prompt[:40]!r}: {why}")
        self.number, self.why = number, why


def generate_in_sequence(generator: TextGenerator, prompts: Sequence[str], sequences: Sequence[int], options: Options) -> list[Generation]:
    """Generates a text for each prompt, with the number of its sequence. Prompts with consecutive numbers are computed at once; how
    many at once does not change a bit.
    """
    generations: list[Generation] = []
    while (start := len(generations)) < len(prompts):
        stop = start + 1
        while stop < min(len(prompts), start + _PROMPTS) and sequences[stop] == sequences[stop - 1] + 1:
            stop += 1
        here: Options = {**options, "sequence": sequences[start]}
        try:
            generations += generator.generate_batch(prompts[start:stop], **here)
        except adead.InvalidArgumentError:
            # Of several prompts, the error does not say which.
            for number in range(start, stop):
                _generate_alone(generator, prompts[number], {**options, "sequence": sequences[number]}, number)
            raise
    return generations


def _generate_alone(generator: TextGenerator, prompt: str, options: Options, number: int) -> None:
    try:
        generator.generate(prompt, **options)
    except adead.InvalidArgumentError as error:
        raise PromptError(number, prompt, str(error)) from error


def model_hashes(kind: str, model: str | os.PathLike[str]) -> dict[str, str]:
    """Returns the SHA-256 of each file of a model."""
    return KINDS[kind].hashes(Path(model))
