"""``Trainer``: a network that learns from arrays."""

import ctypes
import importlib.util
import json
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_double, c_float, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import adead
import numpy
import numpy.typing

from ._library import argument, check, context_options, text_of
from ._ranks import Ranks, Transport, join_through
from ._train_library import (
    DTYPE_I64,
    FitProgress,
    Parameter,
    Raised,
    TrainerInfo,
    trainer_count,
    trainer_create,
    trainer_destroy,
    trainer_evaluate,
    trainer_fit,
    trainer_inspect,
    trainer_join,
    trainer_load,
    trainer_parameter,
    trainer_predict,
    trainer_save,
    trainer_sha256,
    trainer_step,
)

Layer: TypeAlias = str | Mapping[str, Any]
Array: TypeAlias = numpy.typing.ArrayLike
Values: TypeAlias = numpy.typing.NDArray[numpy.float32]


@dataclass(frozen=True)
class Measured:
    """The result of ``Trainer.evaluate``."""

    loss: float
    """The mean loss."""
    accuracy: float
    """The fraction of the samples whose most likely class is the right one."""


def _find_nccl() -> None:
    """Sets ``ADEAD_NCCL`` to the library of the package nvidia-nccl, if that is installed and the variable is not set."""
    try:
        package = importlib.util.find_spec("nvidia.nccl")
    except ModuleNotFoundError:
        return
    for folder in (package.submodule_search_locations or ()) if package else ():
        library = os.path.join(folder, "lib", "libnccl.so.2")
        if os.path.exists(library):
            os.environ.setdefault("ADEAD_NCCL", library)


class Trainer:
    """A network in training. The weights depend only on the description and the samples: they have the same bits on every device,
    with every number of threads, and in every language.

    ``model`` is a list of layers, such as ``["flatten", {"linear": 256}, "relu", {"linear": 10}]``, or a dict like a job's
    ``[model]``. ``optimizer`` is a dict like a job's ``[optimizer]``, such as ``{"kind": "adam", "rate": 0.001}``.
    https://adead.github.io/adead/training.html lists all layers and keys. ``input`` is the shape of a sample; omit it for a ``gpt``. ``loss`` is "cross_entropy", whose targets
    are classes (int64), "mse" or "binary_cross_entropy", whose targets are float32 and have the shape of the outputs. ``batch`` is
    the number of samples in a step. ``shards`` is the number of parts of a batch, whose gradients are added: in a tree, or
    with ``gradient_sum="fixed"`` as integers, which have no order. ``seed`` determines parameters, dropout and the order of samples. ``steps`` is the number of steps of the whole training, which a
    schedule needs. ``storage`` is the type to which values between layers are rounded. ``loss_scale`` is the factor of the loss
    before gradients are computed: a power of two or "dynamic". With ``recompute`` the backward pass computes values of layers again
    instead of keeping them: it takes less memory and gives the same bits. ``device``, ``threads``, ``isa`` and ``precision`` are as
    for ``SentenceEncoder``.

    ``adead.InvalidArgumentError`` or ``adead.ShapeMismatchError`` if the description does not define a network. Threads may share a
    trainer; their calls run one after another.
    """

    def __init__(
        self,
        model: Sequence[Layer] | Mapping[str, Any],
        optimizer: Mapping[str, Any],
        *,
        batch: int,
        input: Sequence[int] = (),
        loss: Literal["cross_entropy", "mse", "binary_cross_entropy"] = "cross_entropy",
        shards: int = 1,
        gradient_sum: Literal["tree", "fixed"] = "tree",
        seed: int = 0,
        steps: int | None = None,
        storage: Literal["f16", "bf16"] | None = None,
        recompute: bool = False,
        loss_scale: float | Literal["dynamic"] | None = None,
        device: str | None = None,
        threads: int | None = None,
        isa: str | None = None,
        precision: Literal["f32", "fixed24", "fixed16"] = "f32",
    ) -> None:
        self._lock = threading.RLock()
        self._pointer: c_void_p | None = None
        self._ranks: Ranks | None = None
        layers = model if isinstance(model, Mapping) else {"kind": "layers", "layers": list(model)}
        description = {
            "model": layers,
            "optimizer": optimizer,
            "input": list(input),
            "loss": loss,
            "batch": batch,
            "shards": shards,
            "gradient_sum": gradient_sum,
            "seed": seed,
            "steps": steps,
            "storage": storage,
            "recompute": recompute,
            "loss_scale": loss_scale,
        }
        pointer, options = c_void_p(), context_options(isa, threads, precision)
        name = None if device is None else argument(device)
        check(trainer_create(argument(json.dumps(description)), name, options, pointer))
        self._pointer = pointer
        # Not at the end of the process, when threads may still be computing.
        self._finalizer = weakref.finalize(self, trainer_destroy, pointer)
        self._finalizer.atexit = False
        info = self._info()
        self._dtypes = [numpy.int64 if kind == DTYPE_I64 else numpy.float32 for kind in (info.sample_type, info.target_type)]
        self._sizes, self._outputs = (info.sample_size, info.target_size), info.output_size

    def _opened(self) -> c_void_p:
        if self._pointer is None:
            raise adead.InvalidArgumentError("the trainer is closed")
        return self._pointer

    def _info(self) -> TrainerInfo:
        info = TrainerInfo(ctypes.sizeof(TrainerInfo))
        with self._lock:
            check(trainer_inspect(self._opened(), info))
        return info

    def _array(self, values: Array, which: int) -> tuple["numpy.typing.NDArray[Any]", int]:
        """Returns samples or targets in the form that the library takes, and their number."""
        name, dtype, size = ("x", "targets")[which], self._dtypes[which], self._sizes[which]
        array = numpy.asarray(values)
        if array.dtype != dtype:
            kinds = "iu" if dtype == numpy.int64 else "fiu"
            if array.dtype.kind not in kinds:
                raise adead.DtypeMismatchError(f"{name} is {array.dtype}; the network takes {numpy.dtype(dtype)}")
            array = array.astype(dtype)
        array = numpy.ascontiguousarray(array)
        if array.ndim == 0 or array.size != len(array) * size:
            raise adead.ShapeMismatchError(f"{name} is {list(array.shape)}; a sample has {size} values")
        return array, len(array)

    def _pair(self, x: Array, targets: Array) -> tuple["numpy.typing.NDArray[Any]", "numpy.typing.NDArray[Any]", int]:
        (samples, count), (wanted, other) = self._array(x, 0), self._array(targets, 1)
        if count != other:
            raise adead.ShapeMismatchError(f"there are {count} samples and {other} targets")
        return samples, wanted, count

    @property
    def steps(self) -> int:
        """The number of steps so far."""
        return int(self._info().steps)

    @property
    def batch(self) -> int:
        """The number of samples in a step."""
        return int(self._info().batch)

    @property
    def device(self) -> str:
        """The device that trains, such as "cpu" or "cuda:0"."""
        return text_of(self._info().device)

    def step(self, x: Array, targets: Array) -> float:
        """Trains with one batch and returns the loss before the step.

        ``adead.ShapeMismatchError`` unless the number of samples is ``batch``; ``adead.InvalidArgumentError`` for a class that does
        not exist, or a loss that is not finite. After an error nothing has changed.
        """
        (samples, wanted, count), loss = self._pair(x, targets), c_float()
        with self._lock:
            self._check(trainer_step(self._opened(), samples.ctypes.data, wanted.ctypes.data, count, loss))
        return loss.value

    def _check(self, status: int) -> None:
        """Checks the status of a call in which ranks may have exchanged bytes."""
        (self._ranks.check if self._ranks else check)(status)

    def fit(
        self, x: Array, targets: Array, epochs: int = 1, progress: Callable[[int, int, float], object] | None = None
    ) -> float:
        """Trains with all samples ``epochs`` times, in an order that the seed determines for each epoch, and returns the mean loss
        of the last epoch. Samples that don't fill a batch are skipped in that epoch.

        ``progress(epoch, step, loss)`` is called after each step; an exception ends the training and is raised. Errors are those of
        ``step``; steps before an error keep their effect.
        """
        samples, wanted, count = self._pair(x, targets)
        if not 0 < epochs < 1 << 32:
            raise adead.InvalidArgumentError(f"epochs is {epochs}; it must be at least 1")
        raised, loss = Raised(), c_double()

        def told(_user: object, epoch: int, step: int, loss: float) -> int:
            tell = progress
            return 0 if tell is None else raised.call(lambda: tell(epoch, step, loss))

        data, function = (samples.ctypes.data, wanted.ctypes.data), FitProgress(told)
        with self._lock:
            status = trainer_fit(self._opened(), *data, count, epochs, function, None, loss)
            self._check(0 if raised.error else status)
            raised.check(status)
        return loss.value

    def predict(self, x: Array) -> Values:
        """Returns the network's outputs for n samples: [n, …]. Uses the averages of the parameters if the optimiser keeps averages.
        """
        samples, count = self._array(x, 0)
        out = numpy.empty((count, self._outputs), numpy.float32)
        with self._lock:
            check(trainer_predict(self._opened(), samples.ctypes.data, count, out.ctypes.data, out.size))
        return out

    def evaluate(self, x: Array, targets: Array) -> Measured:
        """Computes the mean loss and the accuracy on samples with known classes. ``adead.UnsupportedError`` for a loss without
        classes.
        """
        (samples, wanted, count), loss, accuracy = self._pair(x, targets), c_double(), c_double()
        with self._lock:
            check(trainer_evaluate(self._opened(), samples.ctypes.data, wanted.ctypes.data, count, loss, accuracy))
        return Measured(loss.value, accuracy.value)

    def parameters(self) -> dict[str, Values]:
        """Returns copies of the parameters by name; their averages, if the optimiser keeps averages."""
        count, found = c_size_t(), dict[str, Values]()
        with self._lock:
            check(trainer_count(self._opened(), count))
            for index in range(count.value):
                info = Parameter(ctypes.sizeof(Parameter))
                check(trainer_parameter(self._opened(), index, info, None, 0))
                values = numpy.empty(tuple(info.dims[: info.rank]), numpy.float32)
                check(trainer_parameter(self._opened(), index, info, values.ctypes.data, values.size))
                found[text_of(info.name)] = values
        return found

    def sha256(self) -> str:
        """Returns the SHA-256 of the parameters in the order of their names: float32, little endian. ``adead train`` prints it too."""
        text = ctypes.create_string_buffer(65)
        with self._lock:
            check(trainer_sha256(self._opened(), text, 65))
        return text_of(text.value)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes parameters, optimiser and step to a safetensors file, atomically."""
        with self._lock:
            check(trainer_save(self._opened(), argument(os.fspath(path))))

    def load(self, path: str | os.PathLike[str]) -> None:
        """Continues from a file of ``save``. The next steps have the same bits as without the interruption.

        ``adead.IoError``, ``adead.InvalidArgumentError`` or ``adead.ShapeMismatchError`` if the file can't be read or belongs to
        another network or optimiser.
        """
        with self._lock:
            check(trainer_load(self._opened(), argument(os.fspath(path))))

    def join(self, place: str | Transport = "env", patience: float = 300.0) -> None:
        """Joins other processes, which then train together.

        ``place`` names this process's rank: "0/4@host:29500" is rank 0 of 4, and rank 0 listens on that address. "env" reads the
        variables of torchrun, Open MPI, MPICH or Slurm. A transport, such as ``adead_models.mpi.MpiTransport()``, moves the bytes
        itself: then there is no other connection, and ``patience`` has no effect. All ranks receive the parameters and the step of rank 0. After joining,
        each rank makes the same calls with the same samples, and computes its part of every batch. ``patience`` is how many seconds
        a rank may take to connect, and to compute its part of a step. If every rank has its own NVIDIA GPU and finds NCCL,
        gradients go through NCCL: the file that the variable ``ADEAD_NCCL`` names, that of the package ``nvidia-nccl``, or the
        system's. Otherwise they go over TCP. ``adead.IoError`` if a rank does not connect or is lost,
        ``adead.InvalidArgumentError`` if there are more ranks than shards, or the ranks' trainers differ.
        """
        if not isinstance(place, str):
            with self._lock:
                ranks = Ranks(place)
                ranks.check(join_through(self._opened(), ranks.raw))
                self._ranks = ranks
            return
        _find_nccl()
        with self._lock:
            check(trainer_join(self._opened(), argument(place), patience))
            self._ranks = None

    def close(self) -> None:
        """Frees the memory. Later calls are an error. Closing again does nothing."""
        with self._lock:
            if self._pointer is not None:
                self._pointer = None
                self._finalizer()

    def __enter__(self) -> "Trainer":
        self._opened()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._pointer is None:
            return "Trainer(closed)"
        info = self._info()
        return f"Trainer({info.steps} steps, batches of {info.batch}, {text_of(info.device)})"
