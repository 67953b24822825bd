"""``ShardWorker``: an actor with an open model, which computes shards."""

import os
import traceback
from dataclasses import dataclass
from pathlib import Path

import adead

from .._library import VERSION
from ._job import Job, Shard
from ._kinds import KINDS, Compute, PromptError
from ._manifest import Entry
from ._parquet import output_name, read_output, read_rows, texts_of, write_output
from ._results import Result, hash_of_texts


@dataclass(frozen=True)
class Recipe:
    """The input of a worker: the job, and the paths of its files, by which every worker must see them."""

    job: Job
    model: str
    inputs: tuple[str, ...]
    out: str
    checks: bool = False
    """Whether shards are checked and not written."""
    device: str | None = None
    threads: int | None = None


@dataclass(frozen=True)
class Task:
    """A shard, and what the manifest says about it."""

    shard: Shard
    entry: Entry | None


@dataclass(frozen=True)
class Done:
    """A shard that is finished, or checked."""

    shard: int
    entry: Entry
    skipped: bool = False
    """Whether its output existed, with the manifest's hash."""
    stale: str | None = None
    """Why an output that the manifest names was computed again."""
    differences: tuple[str, ...] = ()
    """The differences that a check found."""


@dataclass(frozen=True)
class Failure:
    """An exception of a worker, as text: not every exception can be sent to another process."""

    shard: int
    kind: str
    """The name of its class."""
    message: str
    traceback: str


class ShardWorker:
    """Computes shards, one at a time. The model is opened for the first shard that needs it, and stays open."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self._compute: Compute | None = None

    def run(self, task: Task) -> Done | Failure:
        """Computes a shard or checks it. An exception comes back as a ``Failure``."""
        try:
            return self.check(task) if self.recipe.checks else self.compute(task)
        except Exception as error:
            return Failure(task.shard.number, type(error).__name__, str(error), traceback.format_exc())

    def compute(self, task: Task) -> Done:
        """Computes a shard and writes its output, unless the output is there already."""
        shard, job = task.shard, self.recipe.job
        table = read_rows(Path(self.recipe.inputs[shard.file]), shard, [job.column, *job.keep])
        texts = texts_of(table, shard, job.column)
        input_sha256 = hash_of_texts(texts)
        stale = None
        if task.entry is not None:
            stale = self._why_stale(task.entry, input_sha256)
            if stale is None:
                return Done(shard.number, task.entry, skipped=True)
        result, truncated = self._results(texts, shard)
        self.write(shard, result, table.select(list(job.keep)))
        entry = Entry(shard.number, shard.rows, shard.output, input_sha256, result.sha256(), truncated)
        return Done(shard.number, entry, stale=stale)

    def write(self, shard: Shard, result: Result, kept: object) -> None:
        """Writes a shard's output: to a file of another name, which is renamed when it is complete."""
        unfinished = Path(self.recipe.out) / output_name(shard)
        write_output(unfinished, shard, result, kept)
        self.publish(unfinished, Path(self.recipe.out) / shard.output)

    def publish(self, unfinished: Path, output: Path) -> None:
        """Renames a complete output file."""
        os.replace(unfinished, output)

    def check(self, task: Task) -> Done:
        """Computes a shard again, and compares with the manifest and with the output."""
        shard, job, entry = task.shard, self.recipe.job, task.entry
        if entry is None:
            raise adead.InvalidArgumentError(f"{shard} is not finished: run the job again")
        texts = texts_of(read_rows(Path(self.recipe.inputs[shard.file]), shard, [job.column]), shard, job.column)
        found: list[str] = []
        if (input_sha256 := hash_of_texts(texts)) != entry.input_sha256:
            found.append(f"{shard}: its texts have sha256 {input_sha256}; the manifest has {entry.input_sha256}")
        result, truncated = self._results(texts, shard)
        if (sha256 := result.sha256()) != entry.sha256:
            found.append(f"{shard}: computed again its results have sha256 {sha256}; the manifest has {entry.sha256}")
        if truncated != entry.truncated:
            found.append(f"{shard}: {truncated} sentences are truncated; the manifest has {entry.truncated}")
        try:
            output = self._output(entry)
        except adead.Error as error:
            found.append(f"{shard}: {error}")
        else:
            if (written := output.sha256()) != sha256:
                found.append(f"{shard}: {entry.output} has sha256 {written}; computed again {sha256}: {output.difference(result)}")
        return Done(shard.number, entry, differences=tuple(found))

    def _why_stale(self, entry: Entry, input_sha256: str) -> str | None:
        """Says why a finished output can't be used, or None."""
        if input_sha256 != entry.input_sha256:
            return f"its texts have sha256 {input_sha256}; the manifest has {entry.input_sha256}"
        try:
            sha256 = self._output(entry).sha256()
        except adead.Error as error:
            return str(error)
        return None if sha256 == entry.sha256 else f"{entry.output} has sha256 {sha256}; the manifest has {entry.sha256}"

    def _output(self, entry: Entry) -> Result:
        kind = KINDS[self.recipe.job.kind]
        return kind.result(read_output(Path(self.recipe.out) / entry.output, kind.columns))

    def _results(self, texts: list[str], shard: Shard) -> tuple[Result, int]:
        if self._compute is None:
            self._compute = self._open()
        try:
            return self._compute(texts, shard.row)
        except PromptError as error:
            raise adead.InvalidArgumentError(f"row {shard.start + error.number} of {shard.name}: {error.why}") from error

    def _open(self) -> Compute:
        """Opens the model, if it and this version are the job's: a worker with others would compute other bits."""
        job, kind, model = self.recipe.job, KINDS[self.recipe.job.kind], Path(self.recipe.model)
        if job.version != VERSION:
            raise adead.InvalidArgumentError(f"this worker has adead-models {VERSION}; the job needs {job.version}")
        here = kind.hashes(model)
        for name in sorted(here.keys() | job.model.keys()):
            if here.get(name) != job.model.get(name):
                raise adead.InvalidArgumentError(
                    f"{model}: {name} has sha256 {here.get(name)} on this worker; the job has {job.model.get(name)}"
                )
        return kind.open(model, job.options, self.recipe.device, self.recipe.threads)
