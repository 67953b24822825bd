"""A job's description: its model, its input rows, and how they are cut into shards."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import adead

Json: TypeAlias = "str | int | float | bool | None | list[Json] | dict[str, Json]"

FORMAT = 1


@dataclass(frozen=True)
class Input:
    """An input file, as the description has it."""

    name: str
    rows: int


@dataclass(frozen=True)
class Shard:
    """Rows that one worker computes at once: a range of one input file."""

    number: int
    """Its index in the job."""
    file: int
    """The number of its input file."""
    name: str
    """That file's name."""
    start: int
    """The number of its first row in that file."""
    rows: int
    """How many rows it has, at least 1."""
    row: int
    """The number of its first row in the job."""
    output: str
    """The name of the output file."""

    def __str__(self) -> str:
        return f"shard {self.number} ({self.name}, rows {self.start} to {self.start + self.rows - 1})"


@dataclass(frozen=True)
class Job:
    """A job. Jobs with equal descriptions have equal hashes, on any machines and with any number of workers.

    Paths, devices, threads and the number of workers are not part of it, as they don't change the result.
    """

    version: str
    """The version of adead-models that computes it."""
    kind: str
    """"embed" or "generate"."""
    model: Mapping[str, str]
    """The SHA-256 of each file of the model."""
    inputs: tuple[Input, ...]
    column: str
    """The column of texts."""
    keep: tuple[str, ...]
    """Columns that the output has too."""
    rows_per_shard: int
    options: Mapping[str, Json]
    """Options that change the result, such as the seed."""

    def description(self) -> dict[str, Json]:
        """Returns the description as a manifest has it."""
        return {
            "format": FORMAT,
            "version": self.version,
            "kind": self.kind,
            "model": dict(self.model),
            "inputs": [{"name": file.name, "rows": file.rows} for file in self.inputs],
            "column": self.column,
            "keep": list(self.keep),
            "rows_per_shard": self.rows_per_shard,
            "options": dict(self.options),
        }

    @property
    def rows(self) -> int:
        """The number of rows of all inputs."""
        return sum(file.rows for file in self.inputs)

    def shards(self) -> list[Shard]:
        """Cuts each input file into ranges of ``rows_per_shard`` rows; the last range of a file may be shorter."""
        cuts = [
            (number, start, min(self.rows_per_shard, file.rows - start))
            for number, file in enumerate(self.inputs)
            for start in range(0, file.rows, self.rows_per_shard)
        ]
        digits = max(5, len(str(len(cuts) - 1)))
        shards: list[Shard] = []
        row = 0
        for number, (file, start, rows) in enumerate(cuts):
            name = self.inputs[file].name
            shards.append(Shard(number, file, name, start, rows, row, f"part-{number:0{digits}}.parquet"))
            row += rows
        return shards


def differences(there: Mapping[str, Json], here: Mapping[str, Json]) -> str:
    """Says in which fields two descriptions differ."""
    told: list[str] = []
    for name in sorted(there.keys() | here.keys()):
        if there.get(name) != here.get(name):
            told.append(f"{name} is {_short(there.get(name))} there and {_short(here.get(name))} here")
    return "; ".join(told)


def _short(value: Json) -> str:
    text = json.dumps(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def input_paths(inputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Lists input files: those named, and of a folder its ``*.parquet`` files by name."""
    given = [inputs] if isinstance(inputs, (str, os.PathLike)) else list(inputs)
    paths: list[Path] = []
    for each in map(Path, given):
        if each.is_dir():
            found = sorted(each.glob("*.parquet"))
            if not found:
                raise adead.InvalidArgumentError(f"{each} has no *.parquet file")
            paths += found
        elif each.exists():
            paths.append(each)
        else:
            raise adead.IoError(f"{each}: there is no such file")
    if not paths:
        raise adead.InvalidArgumentError("inputs is empty; it must name at least 1 Parquet file or folder")
    # Workers have other working directories.
    return [path.resolve() for path in paths]


def file_hash(path: Path) -> str:
    """Returns the SHA-256 of a file, in hexadecimal."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise adead.IoError(f"{path}: {error.strerror}") from error
