"""``LocalEngine``: processes of this machine."""

import itertools
import multiprocessing
import signal
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import Any

import adead

from ._engine import Lost, MakeWorker, Outcome, processors
from ._worker import Recipe, ShardWorker, Task


@dataclass(frozen=True)
class LocalEngine:
    """Computes shards in processes of this machine.

    Python starts them with the method "spawn": a script that uses it needs ``if __name__ == "__main__":``. Each process uses
    ``threads`` threads; None divides the processors between the workers.
    """

    workers: int = 1
    threads: int | None = None
    make_worker: MakeWorker = ShardWorker

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise adead.InvalidArgumentError(f"workers is {self.workers}; it must be at least 1")

    def open(self, recipe: Recipe) -> "LocalWorkers":
        """Begins a job."""
        threads = self.threads or max(1, processors() // self.workers)
        return LocalWorkers(replace(recipe, threads=recipe.threads or threads), self)


class LocalWorkers:
    """Processes, each with a pipe."""

    def __init__(self, recipe: Recipe, engine: LocalEngine) -> None:
        self._recipe, self._make = recipe, engine.make_worker
        self.wanted: int = engine.workers
        self._context = multiprocessing.get_context("spawn")
        self._numbers = itertools.count()
        self._running: dict[str, tuple[SpawnProcess, Any]] = {}

    def start(self, wait: bool) -> str | None:
        here, there = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(there, self._make, self._recipe), daemon=True)
        process.start()
        # The process has a copy. Without this one, reading fails when the process is gone.
        there.close()
        name = f"process {next(self._numbers)} (pid {process.pid})"
        self._running[name] = (process, here)
        return name

    def submit(self, worker: str, task: Task) -> None:
        try:
            self._running[worker][1].send(task)
        except OSError:
            # The process is gone; reading reports it.
            pass

    def wait(self, seconds: float | None) -> list[Outcome]:
        names = {connection: name for name, (_, connection) in self._running.items()}
        outcomes: list[Outcome] = []
        ready: list[Any] = list(wait(list(names), seconds))
        for connection in ready:
            name = names[connection]
            try:
                outcomes.append(Outcome(name, connection.recv()))
            except (EOFError, OSError):
                process, _ = self._running.pop(name)
                process.join()
                connection.close()
                outcomes.append(Outcome(name, Lost(f"its process ended with exit code {process.exitcode}")))
        return outcomes

    def close(self) -> None:
        for process, connection in self._running.values():
            process.kill()
            process.join()
            connection.close()
        self._running.clear()


def _serve(connection: Any, make_worker: MakeWorker, recipe: Recipe) -> None:
    # Ctrl-C goes to every process of a terminal. The one that started this one ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker = make_worker(recipe)
    try:
        while True:
            task: Task = connection.recv()
            connection.send(worker.run(task))
    except (EOFError, OSError):
        # That process is gone.
        return
