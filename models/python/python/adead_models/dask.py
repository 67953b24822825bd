"""Models on Dask: an engine for jobs of ``adead_models.cluster``, actors, and data frames. Needs ``pip install adead-models[dask]``."""

import itertools
import os
import queue
import threading
import time
from dataclasses import dataclass, replace
from typing import Any, Literal, Unpack

import adead

from ._generator import Options
from .cluster._actors import SentenceEmbedder as SentenceEmbedder
from .cluster._actors import TextWriter as TextWriter
from .cluster._actors import column_of, strings
from .cluster._engine import Lost, MakeWorker, Outcome
from .cluster._extras import extra
from .cluster._results import Texts
from .cluster._worker import Done, Failure, Recipe, ShardWorker, Task

_distributed: Any = extra("distributed", "dask")

__all__ = ["DaskEngine", "SentenceEmbedder", "TextWriter", "embed_frame", "generate_frame"]


@dataclass(frozen=True)
class DaskEngine:
    """Computes shards in actors of a Dask cluster, one on each of its workers.

    ``client`` is a ``distributed.Client``. ``workers`` is the number of actors; None is one for each worker that the cluster has
    when the job begins. Workers that come later are used if there are fewer than ``workers``. ``threads`` is the number of threads
    of an actor; None is that of the Dask worker. ``resources`` are Dask's, such as ``{"GPU": 1}``. A job waits up to ``patience``
    seconds for its first worker.
    """

    client: Any
    workers: int | None = None
    threads: int | None = None
    resources: dict[str, float] | None = None
    patience: float = 300
    make_worker: MakeWorker = ShardWorker

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise adead.InvalidArgumentError(f"workers is {self.workers}; it must be at least 1")

    def open(self, recipe: Recipe) -> "DaskWorkers":
        """Begins a job."""
        return DaskWorkers(replace(recipe, threads=recipe.threads or self.threads), self)


class _Actor:
    def __init__(self, make_worker: MakeWorker, recipe: Recipe) -> None:
        threads = recipe.threads or int(_distributed.get_worker().state.nthreads)
        self._worker = make_worker(replace(recipe, threads=threads))

    def run(self, task: Task) -> Done | Failure:
        return self._worker.run(task)


class DaskWorkers:
    """Actors of a job. A thread for each shard that is computed waits for its result."""

    def __init__(self, recipe: Recipe, engine: DaskEngine) -> None:
        self._recipe, self._engine, self._client = recipe, engine, engine.client
        self.wanted: int = engine.workers or max(1, len(self._client.nthreads()))
        self._numbers = itertools.count()
        # The future of each actor, the actor, and the address of Dask's worker.
        self._actors: dict[str, tuple[Any, Any, str]] = {}
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._closed = threading.Event()

    def start(self, wait: bool) -> str | None:
        if wait:
            self._wait_for_worker()
        until = time.monotonic() + self._engine.patience
        while True:
            taken = {address for _, _, address in self._actors.values()}
            free = sorted(self._client.nthreads().keys() - taken)
            if not free:
                return None
            # Dask's scheduler chooses one of the free workers. If it has lost them meanwhile, it takes another.
            future = self._client.submit(
                _Actor,
                self._engine.make_worker,
                self._recipe,
                actor=True,
                pure=False,
                workers=free,
                allow_other_workers=True,
                resources=self._engine.resources,
            )
            actor = self._started(future, set(free), until)
            if actor is not None:
                break
            future.release()
        address = str(actor._address)
        name = f"actor {next(self._numbers)} on {address}"
        self._actors[name] = (future, actor, address)
        return name

    def _started(self, future: Any, free: set[str], until: float) -> Any:
        """Waits for an actor. Returns None if it waits for workers that are all gone: Dask might then keep it waiting forever."""
        while True:
            try:
                return future.result(timeout=1)
            except TimeoutError as error:
                if time.monotonic() > until:
                    text = f"Dask starts no actor: TimeoutError: none was there after {self._engine.patience:g} s"
                    raise adead.BackendUnavailableError(text) from error
                if not free & self._client.nthreads().keys():
                    return None
            except Exception as error:
                raise adead.BackendUnavailableError(f"Dask starts no actor: {type(error).__name__}: {error}") from error

    def _wait_for_worker(self) -> None:
        patience = self._engine.patience
        try:
            self._client.wait_for_workers(1, timeout=patience)
        except TimeoutError as error:
            raise adead.BackendUnavailableError(f"the Dask cluster has no worker, and none came in {patience:g} s") from error

    def submit(self, worker: str, task: Task) -> None:
        threading.Thread(target=self._await, args=(worker, task), name="adead-models-dask", daemon=True).start()

    def _await(self, worker: str, task: Task) -> None:
        future, actor, _ = self._actors[worker]
        try:
            pending = actor.run(task)
            while True:
                try:
                    self._outcomes.put(Outcome(worker, pending.result(timeout=1)))
                    return
                except TimeoutError:
                    # Calls of an actor that is lost don't always end.
                    if self._closed.is_set():
                        return
                    if future.status != "finished":
                        raise OSError(f"the actor is {future.status}") from None
        except Exception as error:
            self._outcomes.put(Outcome(worker, Lost(f"{type(error).__name__}: {error}")))

    def wait(self, seconds: float | None) -> list[Outcome]:
        try:
            outcome = self._outcomes.get(timeout=seconds)
        except queue.Empty:
            return []
        if isinstance(outcome.result, Lost):
            future, _, _ = self._actors.pop(outcome.worker)
            future.release()
        return [outcome]

    def close(self) -> None:
        self._closed.set()
        for future, _, _ in self._actors.values():
            future.release()
        self._actors.clear()


# Models that are open in this process, by what they were opened with: a worker's, for all partitions that it computes.
_open: dict[tuple[Any, str, str], Any] = {}
_opening = threading.Lock()


def _opened(make: Any, model: str, **arguments: Any) -> Any:
    # Arguments may be lists, such as that of stop texts.
    key = (make, model, repr(sorted(arguments.items())))
    with _opening:
        if key not in _open:
            _open[key] = make(model, **arguments)
        return _open[key]


def embed_frame(
    frame: Any,
    model: str | os.PathLike[str],
    column: str = "text",
    *,
    output: str = "embedding",
    device: str | None = None,
    threads: int | None = None,
    precision: Literal["f32", "fixed24", "fixed16"] = "f32",
) -> Any:
    """Adds embeddings to a Dask data frame, partition by partition: a column ``output`` of Arrow's type list<float>.

    The result is lazy, and has the rows and partitions of ``frame``. Each process opens the model once. The partitions don't change
    a bit. ``adead.InvalidArgumentError`` if the frame has no ``column``, and, during the computation, for a row without a str in
    it.
    """
    column_of(dict.fromkeys(frame.columns), column)
    pandas, pa = extra("pandas", "dask"), extra("pyarrow", "dask")
    added = {output: pandas.ArrowDtype(pa.list_(pa.float32()))}
    arguments = {"device": device, "threads": threads, "precision": precision}
    return frame.map_partitions(_embed_partition, os.fspath(model), column, output, arguments, meta=_meta(frame, added))


def _embed_partition(frame: Any, model: str, column: str, output: str, arguments: dict[str, Any]) -> Any:
    pandas, pa = extra("pandas", "dask"), extra("pyarrow", "dask")
    embedder = _opened(SentenceEmbedder, model, **arguments)
    rows = embedder.encode(strings(frame[column], column))
    offsets = pa.array(range(0, rows.size + 1, rows.shape[1]), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, pa.array(rows.reshape(-1)))
    return frame.assign(**{output: pandas.Series(pandas.arrays.ArrowExtensionArray(lists), index=frame.index)})


def generate_frame(
    frame: Any,
    model: str | os.PathLike[str],
    column: str = "text",
    *,
    output: str = "generated",
    sequence_column: str | None = None,
    device: str | None = None,
    threads: int | None = None,
    **options: Unpack[Options],
) -> Any:
    """Adds texts that follow prompts to a Dask data frame, partition by partition: the columns named ``output``, ``output`` plus
    ``_tokens`` and ``output`` plus ``_finish``.

    ``sequence_column`` and ``options`` are those of ``TextWriter``. Otherwise as ``embed_frame``.
    """
    for name in (column,) if sequence_column is None else (column, sequence_column):
        column_of(dict.fromkeys(frame.columns), name)
    pandas, pa = extra("pandas", "dask"), extra("pyarrow", "dask")
    text, tokens = pandas.ArrowDtype(pa.string()), pandas.ArrowDtype(pa.list_(pa.uint32()))
    added = {output: text, f"{output}_tokens": tokens, f"{output}_finish": text}
    arguments = {"device": device, "threads": threads, **options}
    return frame.map_partitions(_generate_partition, os.fspath(model), column, output, sequence_column, arguments, meta=_meta(frame, added))


def _generate_partition(frame: Any, model: str, column: str, output: str, sequence_column: str | None, arguments: dict[str, Any]) -> Any:
    pandas = extra("pandas", "dask")
    writer = _opened(TextWriter, model, **arguments)
    sequences = None if sequence_column is None else list(map(int, frame[sequence_column]))
    generations = writer.generate(strings(frame[column], column), sequences)
    texts = Texts([each.text for each in generations], [each.tokens for each in generations], [each.finish for each in generations])
    names = {"text": output, "tokens": f"{output}_tokens", "finish": f"{output}_finish"}
    columns = {
        names[name]: pandas.Series(pandas.arrays.ArrowExtensionArray(values), index=frame.index) for name, values in texts.columns().items()
    }
    return frame.assign(**columns)


def _meta(frame: Any, added: dict[str, Any]) -> Any:
    """Returns an empty data frame with the columns of the result."""
    pandas = extra("pandas", "dask")
    return frame._meta.assign(**{name: pandas.Series([], dtype=dtype, index=frame._meta.index) for name, dtype in added.items()})
