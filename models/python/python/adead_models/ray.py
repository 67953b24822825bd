"""Models on Ray: an engine for jobs of ``adead_models.cluster``, and actors for Ray Data. Needs ``pip install adead-models[ray]``."""

import itertools
import re
from dataclasses import dataclass, replace
from typing import Any

import adead

from .cluster._actors import SentenceEmbedder as SentenceEmbedder
from .cluster._actors import TextWriter as TextWriter
from .cluster._engine import Lost, MakeWorker, Outcome
from .cluster._extras import extra
from .cluster._worker import Done, Failure, Recipe, ShardWorker, Task

_ray: Any = extra("ray", "ray")

__all__ = ["RayEngine", "SentenceEmbedder", "TextWriter"]


@dataclass(frozen=True)
class RayEngine:
    """Computes shards in actors of the Ray cluster that ``ray.init`` connected to.

    Each actor takes ``num_cpus`` CPUs and ``num_gpus`` GPUs, and computes with ``num_cpus`` threads. Each actor sees only its own
    GPUs, so use ``device="cuda"``. ``resources`` are further Ray resources, such as ``{"node:10.0.0.7": 0.01}``.
    """

    workers: int = 1
    num_cpus: float = 1
    num_gpus: float = 0
    resources: dict[str, float] | None = None
    make_worker: MakeWorker = ShardWorker

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise adead.InvalidArgumentError(f"workers is {self.workers}; it must be at least 1")
        if not _ray.is_initialized():
            raise adead.InvalidArgumentError("Ray is not connected: call ray.init() first")

    def open(self, recipe: Recipe) -> "RayWorkers":
        """Begins a job. ``adead.InvalidArgumentError`` if no node of the cluster can have an actor."""
        total: dict[str, float] = _ray.cluster_resources()
        for name, needed in {"CPU": self.num_cpus, "GPU": self.num_gpus, **(self.resources or {})}.items():
            if needed > total.get(name, 0):
                raise adead.InvalidArgumentError(f"a worker needs {needed:g} {name}; the Ray cluster has {total.get(name, 0):g}")
        threads = recipe.threads or max(1, int(self.num_cpus))
        options = {
            "num_cpus": self.num_cpus,
            "num_gpus": self.num_gpus,
            "resources": self.resources,
            # This package gives a lost shard to another actor itself, and says so.
            "max_restarts": 0,
            "max_task_retries": 0,
        }
        return RayWorkers(replace(recipe, threads=threads), self, _ray.remote(_Actor).options(**options))


class _Actor:
    def __init__(self, make_worker: MakeWorker, recipe: Recipe) -> None:
        self._worker = make_worker(recipe)

    def run(self, task: Task) -> Done | Failure:
        return self._worker.run(task)


class RayWorkers:
    """Actors of a job, each with the reference of its shard's result."""

    def __init__(self, recipe: Recipe, engine: RayEngine, actor_class: Any) -> None:
        self._recipe, self._make, self._class = recipe, engine.make_worker, actor_class
        self.wanted: int = engine.workers
        self._numbers = itertools.count()
        self._actors: dict[str, Any] = {}
        self._results: dict[Any, tuple[str, Task]] = {}

    def start(self, wait: bool) -> str | None:
        # Ray places it when the cluster has room.
        actor = self._class.remote(self._make, self._recipe)
        name = f"actor {next(self._numbers)} ({actor._actor_id.hex()[:8]})"
        self._actors[name] = actor
        return name

    def submit(self, worker: str, task: Task) -> None:
        self._results[self._actors[worker].run.remote(task)] = (worker, task)

    def wait(self, seconds: float | None) -> list[Outcome]:
        ready, _ = _ray.wait(list(self._results), num_returns=1, timeout=seconds)
        return [self._outcome(reference) for reference in ready]

    def _outcome(self, reference: Any) -> Outcome:
        worker, task = self._results.pop(reference)
        try:
            return Outcome(worker, _ray.get(reference))
        except _ray.exceptions.RayTaskError as error:
            # Not of the shard, which ShardWorker catches: what can't be sent, for example.
            return Outcome(worker, Failure(task.shard.number, type(error).__name__, _plain(error), ""))
        except _ray.exceptions.RayError as error:
            if getattr(error, "actor_init_failed", False):
                # No other actor would do better: a package is missing on the node, for example.
                return Outcome(worker, Failure(task.shard.number, "ActorDiedError", _plain(error), ""))
            # It may be alive behind a broken connection.
            _ray.kill(self._actors.pop(worker))
            return Outcome(worker, Lost(_first_line(error)))

    def close(self) -> None:
        for actor in self._actors.values():
            _ray.kill(actor)
        self._actors.clear()
        self._results.clear()


def _plain(error: Exception) -> str:
    """Returns a message without the colours of a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in _plain(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"
