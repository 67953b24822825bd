"""The manifest of a job, ``manifest.jsonl``: the job's description, and a line for each shard that is finished.

Lines are appended as shards finish, and sorted when all have. A later run reads which shards are finished. Complete manifests of
equal jobs are equal, byte for byte.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import cast

import adead

from ._job import FORMAT, Input, Job, Json, Shard, differences
from ._progress import logger

NAME = "manifest.jsonl"
LOCK = ".lock"
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Entry:
    """A manifest's entry for a finished shard."""

    shard: int
    """The shard's number."""
    rows: int
    """How many rows it has."""
    output: str
    """The name of its output file, in the manifest's folder."""
    input_sha256: str
    """The hash of its texts."""
    sha256: str
    """The hash of its results."""
    truncated: int
    """How many of its sentences had more tokens than the model takes."""


class Manifest:
    """A job's manifest that is open for writing. It holds a lock, so that one run at a time writes to a folder."""

    def __init__(self, folder: Path, job: Job) -> None:
        """Opens the manifest in a folder, or starts it. ``adead.InvalidArgumentError`` if it is another job's."""
        self.path = folder / NAME
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # A file, and open for writing: NFS locks nothing else.
            self._locked = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise adead.IoError(f"{folder}: {error.strerror}") from error
        self.job, self.entries = job, dict[int, Entry]()
        try:
            self._lock()
            if self.path.exists():
                there, self.entries, end = _read(self.path)
                told = differences(there.description(), job.description())
                if told:
                    raise adead.InvalidArgumentError(
                        f"{self.path} is another job's: {told}; choose another output folder, or remove the manifest"
                    )
                # A line that a run did not finish.
                os.truncate(self.path, end)
            else:
                _replace(self.path, [_line(job.description())])
        except BaseException:
            self._unlock()
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise adead.InvalidArgumentError(f"another run writes to {self.path.parent}: wait for its end") from error
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
                raise adead.IoError(f"{self.path.parent / LOCK}: {error.strerror}") from error
            logger.warning("%s: this file system has no locks; only one run at a time may write there", self.path.parent)

    def _unlock(self) -> None:
        # Closing the file is not enough: a process that is being started has it too, until it runs its own program.
        with contextlib.suppress(OSError):
            fcntl.flock(self._locked, fcntl.LOCK_UN)
        os.close(self._locked)

    def add(self, entry: Entry) -> None:
        """Appends a finished shard. The entry is on disk when this returns."""
        if self.entries.get(entry.shard) == entry:
            return
        with self.path.open("ab") as file:
            file.write(_line(cast("dict[str, Json]", asdict(entry))))
            file.flush()
            os.fsync(file.fileno())
        self.entries[entry.shard] = entry

    def finish(self) -> str:
        """Sorts the lines when all shards are finished, and returns the job's hash."""
        entries = sorted(self.entries.values(), key=lambda entry: entry.shard)
        _replace(self.path, [_line(self.job.description()), *(_line(cast("dict[str, Json]", asdict(entry))) for entry in entries)])
        return hash_of_job(entries)

    def __enter__(self) -> "Manifest":
        return self

    def __exit__(self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None) -> None:
        self._unlock()


def hash_of_job(entries: Iterable[Entry]) -> str:
    """Returns the hash of a job: that of its shards' hashes, 32 bytes each, in the order of the shards."""
    hashed = hashlib.sha256()
    for entry in entries:
        hashed.update(bytes.fromhex(entry.sha256))
    return hashed.hexdigest()


def read_manifest(folder: str | os.PathLike[str]) -> tuple[Job, dict[int, Entry]]:
    """Reads a job and its finished shards by their numbers.

    ``adead.IoError`` if the folder has no manifest. ``adead.InvalidArgumentError`` for a malformed one, with the number of the line.
    """
    job, entries, _ = _read(Path(folder) / NAME)
    return job, entries


def _line(value: "dict[str, Json]") -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": ")).encode("utf-8") + b"\n"


def _replace(path: Path, lines: Iterable[bytes]) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _read(path: Path) -> tuple[Job, dict[int, Entry], int]:
    """Returns the job, the shards, and how many bytes complete lines have."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise adead.IoError(f"{path}: {error.strerror}") from error
    end = content.rfind(b"\n") + 1
    lines = content[:end].splitlines()
    if not lines:
        raise adead.InvalidArgumentError(
            f"{path} has no complete line; its first line must describe the job: remove the file to start again"
        )
    job = _job(_object(path, 1, lines[0]), path)
    shards = job.shards()
    entries: dict[int, Entry] = {}
    for number, line in enumerate(lines[1:], 2):
        entry = _entry(_object(path, number, line), f"{path}, line {number}", shards)
        entries[entry.shard] = entry
    return job, entries, end


def _object(path: Path, number: int, line: bytes) -> "dict[str, Json]":
    advice = "remove the file to start again" if number == 1 else "remove the line to compute its shard again"
    try:
        value = json.loads(line)
    except ValueError as error:
        raise adead.InvalidArgumentError(f"{path}, line {number} is not JSON: {error}; {advice}") from error
    if not isinstance(value, dict):
        raise adead.InvalidArgumentError(f"{path}, line {number} is not a JSON object; {advice}")
    return cast("dict[str, Json]", value)


def _job(value: "dict[str, Json]", path: Path) -> Job:
    if value.get("format") != FORMAT:
        raise adead.InvalidArgumentError(f"{path}, line 1: format is {value.get('format')!r}; this version reads format {FORMAT}")
    try:
        inputs = cast("list[dict[str, Json]]", value["inputs"])
        job = Job(
            str(value["version"]),
            str(value["kind"]),
            {name: str(found) for name, found in cast("dict[str, Json]", value["model"]).items()},
            tuple(Input(str(file["name"]), _whole(file["rows"], 0)) for file in inputs),
            str(value["column"]),
            tuple(map(str, cast("list[Json]", value["keep"]))),
            _whole(value["rows_per_shard"], 1),
            cast("dict[str, Json]", value["options"]),
        )
        if job.kind not in ("embed", "generate"):
            raise ValueError(f"kind is {job.kind!r}")
        if job.description() != value:
            raise ValueError(differences(value, job.description()))
        return job
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise adead.InvalidArgumentError(
            f"{path}, line 1 does not describe a job: {type(error).__name__}: {error}; remove the file to start again"
        ) from error


def _entry(value: "dict[str, Json]", place: str, shards: list[Shard]) -> Entry:
    def wrong(what: str) -> adead.InvalidArgumentError:
        return adead.InvalidArgumentError(f"{place}: {what}; remove the line to compute its shard again")

    names = [field.name for field in fields(Entry)]
    if sorted(value) != sorted(names):
        raise wrong(f"it has {', '.join(sorted(value))}; it must have {', '.join(names)}")
    shard = value["shard"]
    if not isinstance(shard, int) or isinstance(shard, bool) or not 0 <= shard < len(shards):
        raise wrong(f"shard is {shard!r}; the job has shards 0 to {len(shards) - 1}")
    if value["rows"] != shards[shard].rows or value["output"] != shards[shard].output:
        raise wrong(
            f"rows and output of shard {shard} are {value['rows']!r} and {value['output']!r}; "
            f"they must be {shards[shard].rows} and {shards[shard].output!r}"
        )
    for name in ("input_sha256", "sha256"):
        if not isinstance(value[name], str) or not _HASH.fullmatch(str(value[name])):
            raise wrong(f"{name} is {value[name]!r}; it must be 64 hexadecimal digits")
    try:
        truncated = _whole(value["truncated"], 0)
    except ValueError as error:
        raise wrong(f"truncated: {error}") from error
    return Entry(shard, shards[shard].rows, shards[shard].output, str(value["input_sha256"]), str(value["sha256"]), truncated)


def _whole(value: Json, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{value!r} is not a whole number from {least}")
    return value
