"""The loop of a job: gives shards to workers, and those of lost workers to others."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import adead

from ._engine import Engine, Lost, Outcome, Workers
from ._worker import Done, Failure, Recipe, Task


@dataclass(frozen=True)
class Repeat:
    """A shard that was lost with its worker, and given to another."""

    shard: int
    worker: str
    why: str


class WorkerLostError(RuntimeError):
    """A shard was lost with its worker more often than a job allows."""


def drive(
    engine: Engine,
    recipe: Recipe,
    tasks: Sequence[Task],
    retries: int,
    finished: Callable[[Done], None],
    repeated: Callable[[Task, Repeat], None],
) -> None:
    """Runs tasks, and calls ``finished`` for each as it ends, in no order. The first failure stops all workers and is raised."""
    if not tasks:
        return
    workers = engine.open(recipe)
    try:
        _Loop(workers, tasks, min(workers.wanted, len(tasks)), retries, finished, repeated).run()
    finally:
        workers.close()


class _Loop:
    def __init__(
        self,
        workers: Workers,
        tasks: Sequence[Task],
        wanted: int,
        retries: int,
        finished: Callable[[Done], None],
        repeated: Callable[[Task, Repeat], None],
    ) -> None:
        self._workers, self._wanted, self._retries = workers, wanted, retries
        self._finished, self._repeated = finished, repeated
        self._waiting = deque(tasks)
        self._idle: list[str] = []
        self._busy: dict[str, Task] = {}
        self._losses: dict[int, int] = {}

    def run(self) -> None:
        while self._waiting or self._busy:
            missing = self._start()
            while self._waiting and self._idle:
                worker, task = self._idle.pop(), self._waiting.popleft()
                self._busy[worker] = task
                self._workers.submit(worker, task)
            # A worker that the cluster had no place for may find one.
            for outcome in self._workers.wait(1.0 if missing and self._waiting else None):
                self._take(outcome)

    def _start(self) -> bool:
        """Starts workers for the shards that wait; says whether some are missing."""
        while len(self._idle) + len(self._busy) < min(self._wanted, len(self._waiting) + len(self._busy)):
            worker = self._workers.start(wait=not self._idle and not self._busy)
            if worker is None:
                return True
            self._idle.append(worker)
        return False

    def _take(self, outcome: Outcome) -> None:
        task = self._busy.pop(outcome.worker, None)
        result = outcome.result
        if task is None:
            # An idle worker is gone.
            self._idle.remove(outcome.worker)
        elif isinstance(result, Done):
            self._idle.append(outcome.worker)
            self._finished(result)
        elif isinstance(result, Failure):
            raise _error_of(task, result)
        else:
            self._lost(task, outcome.worker, result)

    def _lost(self, task: Task, worker: str, lost: Lost) -> None:
        number = task.shard.number
        self._losses[number] = losses = self._losses.get(number, 0) + 1
        if losses > self._retries:
            raise WorkerLostError(
                f"{task.shard} was lost with its worker {losses} times, the last time with {worker}: {lost.why}. "
                "A shard that needs more memory than a worker has may be the reason: use fewer rows per shard"
            )
        # First, as others may wait for little but this one.
        self._waiting.appendleft(task)
        self._repeated(task, Repeat(number, worker, lost.why))


def _error_of(task: Task, failure: Failure) -> Exception:
    """Returns the exception of a worker: those of adead with their class."""
    text = failure.message if str(task.shard) in failure.message else f"{task.shard}: {failure.message}"
    found = getattr(adead, failure.kind, None)
    if isinstance(found, type) and issubclass(found, adead.Error):
        return found(text)
    error = RuntimeError(f"{task.shard}: {failure.kind}: {failure.message}")
    error.add_note(failure.traceback)
    return error
