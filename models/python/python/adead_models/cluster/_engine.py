"""Engines place shards on workers: ``Engine`` starts workers, ``Workers`` are the running ones."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from ._worker import Done, Failure, Recipe, ShardWorker, Task

MakeWorker: TypeAlias = Callable[[Recipe], ShardWorker]


@dataclass(frozen=True)
class Lost:
    """A worker was lost, and with it the shard that it computed."""

    why: str


@dataclass(frozen=True)
class Outcome:
    """The outcome of a shard on a worker."""

    worker: str
    result: "Done | Failure | Lost"


class Workers(Protocol):
    """Workers of one job. Each computes one shard at a time."""

    @property
    def wanted(self) -> int:
        """The number of workers to start, if there are as many shards."""
        ...

    def start(self, wait: bool) -> str | None:
        """Starts one more worker and returns its name. None if the cluster has no place for it now; with ``wait`` there is no other
        worker, and that is an error after a time."""
        ...

    def submit(self, worker: str, task: Task) -> None:
        """Gives an idle worker a shard."""
        ...

    def wait(self, seconds: float | None) -> list[Outcome]:
        """Waits until a shard is finished, failed or lost. After ``seconds`` the list is empty."""
        ...

    def close(self) -> None:
        """Stops all workers, whatever they do."""
        ...


class Engine(Protocol):
    """A place that computes shards: this machine, a Ray cluster, a Dask cluster."""

    def open(self, recipe: Recipe) -> Workers:
        """Begins a job. Workers are started later, one by one."""
        ...


def processors() -> int:
    """Returns the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
