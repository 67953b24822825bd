"""``embed``, ``generate`` and ``check``: jobs over Parquet files."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, Unpack, cast

import adead

from .._generator import Options
from .._library import VERSION
from ._drive import Repeat, drive
from ._engine import Engine
from ._job import Input, Job, Json, input_paths
from ._kinds import KINDS, model_hashes
from ._local import LocalEngine
from ._manifest import Manifest, read_manifest
from ._parquet import count_rows, remove_unfinished
from ._progress import Status, logger
from ._worker import Done, Recipe, Task

PathLike: TypeAlias = str | os.PathLike[str]
Inputs: TypeAlias = PathLike | Sequence[PathLike]


@dataclass(frozen=True)
class Report:
    """The report of a run. Shards are given by their numbers."""

    sha256: str
    """The hash of the job: that of its shards' hashes, 32 bytes each, in order."""
    shards: int
    rows: int
    computed: tuple[int, ...]
    """Shards that this run computed, in order."""
    skipped: tuple[int, ...]
    """Shards that an earlier run had finished, and whose output has the manifest's hash."""
    stale: dict[int, str]
    """Shards that an earlier run had finished, and that were computed again, with the reason."""
    repeated: tuple[Repeat, ...]
    """Shards that were lost with their workers, in the order of the losses. They are in ``computed`` or ``skipped`` too."""
    truncated: int
    """How many sentences had more tokens than the model takes."""


@dataclass(frozen=True)
class CheckReport:
    """The report of a check that found no difference."""

    checked: tuple[int, ...]
    """The shards that were computed again."""
    rows: int
    repeated: tuple[Repeat, ...]


class CheckError(Exception):
    """A check found differences. ``differences`` has a line for each of them."""

    def __init__(self, differences: Sequence[str], checked: int) -> None:
        super().__init__(f"{len(differences)} differences in {checked} shards:\n" + "\n".join(differences))
        self.differences: list[str] = list(differences)


def embed(
    inputs: Inputs,
    out: PathLike,
    *,
    model: PathLike,
    column: str = "text",
    keep: Sequence[str] = (),
    rows_per_shard: int = 16384,
    precision: Literal["f32", "fixed24", "fixed16"] = "f32",
    engine: Engine | None = None,
    device: str | None = None,
    retries: int = 3,
    progress: Callable[[Status], object] | None = None,
) -> Report:
    """Embeds the sentences of Parquet files, and writes a Parquet file for each shard into the folder ``out``.

    ``inputs`` is a file, a folder or a list of them; a folder stands for its ``*.parquet`` files, sorted by name. ``model`` is the
    folder of a sentence encoder. Each file is cut into shards of ``rows_per_shard`` rows. An output has the columns ``row`` (the
    number of the row in the job), those of ``keep``, and ``embedding``, with f32 [width].

    ``engine`` computes: ``LocalEngine``, ``adead_models.ray.RayEngine`` or ``adead_models.dask.DaskEngine``; None is one process.
    All workers must see ``inputs``, ``model`` and ``out`` by the same paths. ``device`` is the device of each worker, as for
    ``SentenceEncoder``. Neither changes a bit.

    A shard that is lost with its worker is given to another one, ``retries`` times at most. To continue an interrupted run, call it
    again: it skips shards whose outputs have the hashes of the manifest. The logger ``adead.cluster`` gets a warning for each shard
    that is computed again. ``progress`` receives a ``Status`` after each shard; an exception ends the run.

    ``adead.IoError`` for a missing file. ``adead.InvalidArgumentError`` for a file without the column or with a null in it, for a
    manifest that is malformed or of another job, and for a worker with another model. ``WorkerLostError`` if a shard is lost too
    often.
    """
    options: dict[str, Json] = {"precision": precision}
    return _run("embed", inputs, out, model, column, keep, rows_per_shard, options, engine, device, retries, progress)


def generate(
    inputs: Inputs,
    out: PathLike,
    *,
    model: PathLike,
    column: str = "text",
    keep: Sequence[str] = (),
    rows_per_shard: int = 256,
    engine: Engine | None = None,
    device: str | None = None,
    retries: int = 3,
    progress: Callable[[Status], object] | None = None,
    **options: Unpack[Options],
) -> Report:
    """Generates a text for each prompt of Parquet files. ``model`` is a GGUF file, ``options`` are those of ``TextGenerator.generate``.

    The text of row n of the job is that of ``generate`` with ``sequence`` + n, so the cut into shards does not change it. An output has
    the columns ``row``, those of ``keep``, ``text``, ``tokens`` and ``finish``. Otherwise as ``embed``. Unknown options are a
    ``TypeError``.
    """
    unknown = options.keys() - Options.__annotations__.keys()
    if unknown:
        raise TypeError(f"unknown option {min(unknown)!r}; known are {', '.join(Options.__annotations__)}")
    given = dict(cast("dict[str, Json]", options))
    if "stop" in given and not isinstance(given["stop"], str):
        given["stop"] = list(cast("Sequence[str]", given["stop"]))
    return _run("generate", inputs, out, model, column, keep, rows_per_shard, given, engine, device, retries, progress)


def check(
    inputs: Inputs,
    out: PathLike,
    *,
    model: PathLike,
    shards: Sequence[int] | None = None,
    engine: Engine | None = None,
    device: str | None = None,
    retries: int = 3,
    progress: Callable[[Status], object] | None = None,
) -> CheckReport:
    """Computes shards of a finished or unfinished job again, and compares them with the manifest and the outputs in ``out``.

    ``shards`` are their numbers; None is all shards of the job. Nothing is written. ``CheckError`` names the shards that differ.
    ``adead.InvalidArgumentError`` for a shard that the job does not have or that is not finished. Otherwise as ``embed``.
    """
    _check_retries(retries)
    job, entries = read_manifest(out)
    paths = input_paths(inputs)
    _compare_inputs(job, paths)
    every = job.shards()
    chosen = range(len(every)) if shards is None else sorted(set(shards))
    for number in chosen:
        if not 0 <= number < len(every):
            raise adead.InvalidArgumentError(f"shard {number} does not exist; the job has {len(every)} shards, from 0")
        if number not in entries:
            raise adead.InvalidArgumentError(f"{every[number]} is not finished: run the job again")
    # Before any worker opens it.
    _compare_model(job, Path(model))
    tasks = [Task(every[number], entries[number]) for number in chosen]
    recipe = _recipe(job, model, paths, out, device, checks=True)
    tally = _Tally(tasks, progress)
    drive(engine or LocalEngine(), recipe, tasks, retries, tally.finished, tally.repeated)
    done = tally.done
    found = [line for number in chosen for line in done[number].differences]
    if found:
        raise CheckError(found, len(tasks))
    return CheckReport(tuple(chosen), sum(task.shard.rows for task in tasks), tuple(tally.repeats))


def _run(
    kind: str,
    inputs: Inputs,
    out: PathLike,
    model: PathLike,
    column: str,
    keep: Sequence[str],
    rows_per_shard: int,
    options: dict[str, Json],
    engine: Engine | None,
    device: str | None,
    retries: int,
    progress: Callable[[Status], object] | None,
) -> Report:
    _check_retries(retries)
    paths = input_paths(inputs)
    job = _describe(kind, paths, Path(model), column, keep, rows_per_shard, options)
    with Manifest(Path(out), job) as manifest:
        remove_unfinished(Path(out))
        tasks = [Task(shard, manifest.entries.get(shard.number)) for shard in job.shards()]
        tally = _Tally(tasks, progress)

        def finished(result: Done) -> None:
            manifest.add(result.entry)
            tally.finished(result)

        try:
            drive(engine or LocalEngine(), _recipe(job, model, paths, out, device), tasks, retries, finished, tally.repeated)
        finally:
            # No worker writes any more.
            remove_unfinished(Path(out))
        return _report(job, manifest.finish(), tally)


def _check_retries(retries: int) -> None:
    # Before anything is written.
    if retries < 0:
        raise adead.InvalidArgumentError(f"retries is {retries}; it must be at least 0")


class _Tally:
    """Collects the reports of workers."""

    def __init__(self, tasks: Sequence[Task], progress: Callable[[Status], object] | None) -> None:
        self._tasks, self._progress = {task.shard.number: task for task in tasks}, progress
        self._rows = sum(task.shard.rows for task in tasks)
        self._rows_done = self._computed = 0
        self.done: dict[int, Done] = {}
        self.repeats: list[Repeat] = []

    def finished(self, result: Done) -> None:
        self.done[result.shard] = result
        if result.stale is not None:
            logger.warning("%s is computed again: %s", self._tasks[result.shard].shard, result.stale)
        self._rows_done += result.entry.rows
        self._computed += 0 if result.skipped else result.entry.rows
        if self._progress is not None:
            self._progress(Status(len(self.done), len(self._tasks), self._rows_done, self._rows, self._computed))

    def repeated(self, task: Task, repeat: Repeat) -> None:
        self.repeats.append(repeat)
        logger.warning("%s was lost with %s: %s; it is computed again", task.shard, repeat.worker, repeat.why)


def _report(job: Job, sha256: str, tally: _Tally) -> Report:
    ordered = [tally.done[number] for number in sorted(tally.done)]
    return Report(
        sha256,
        len(ordered),
        job.rows,
        tuple(each.shard for each in ordered if not each.skipped),
        tuple(each.shard for each in ordered if each.skipped),
        {each.shard: each.stale for each in ordered if each.stale is not None},
        tuple(tally.repeats),
        sum(each.entry.truncated for each in ordered),
    )


def _describe(
    kind: str, paths: list[Path], model: Path, column: str, keep: Sequence[str], rows_per_shard: int, options: dict[str, Json]
) -> Job:
    if rows_per_shard < 1:
        raise adead.InvalidArgumentError(f"rows_per_shard is {rows_per_shard}; it must be at least 1")
    if isinstance(keep, str):
        raise TypeError("keep is a str; it must be a sequence of them")
    taken = {"row", *KINDS[kind].columns}
    for name in keep:
        if name in taken:
            raise adead.InvalidArgumentError(f"keep has {name!r}; the output has a column of this name already")
        taken.add(name)
    files = tuple(Input(path.name, count_rows(path, [column, *keep], column)) for path in paths)
    return Job(VERSION, kind, model_hashes(kind, model), files, column, tuple(keep), rows_per_shard, options)


def _recipe(job: Job, model: PathLike, paths: list[Path], out: PathLike, device: str | None, checks: bool = False) -> Recipe:
    inputs = tuple(map(str, paths))
    return Recipe(job, str(Path(model).resolve()), inputs, str(Path(out).resolve()), checks, device)


def _compare_inputs(job: Job, paths: list[Path]) -> None:
    if len(paths) != len(job.inputs):
        raise adead.InvalidArgumentError(f"inputs are {len(paths)} files; the job has {len(job.inputs)}")
    for file, path in zip(job.inputs, paths):
        rows = count_rows(path, [job.column], job.column)
        if rows != file.rows:
            raise adead.InvalidArgumentError(f"{path} has {rows} rows; the job's {file.name} has {file.rows}")


def _compare_model(job: Job, model: Path) -> None:
    here = model_hashes(job.kind, model)
    for name in sorted(here.keys() | job.model.keys()):
        if here.get(name) != job.model.get(name):
            raise adead.InvalidArgumentError(f"{model}: {name} has sha256 {here.get(name)}; the job has {job.model.get(name)}")
