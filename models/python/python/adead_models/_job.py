"""``train``: runs training jobs, which files describe."""

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import adead

from ._library import argument, context_options, text_of
from ._train_library import JobOptions, JobProgress, Raised, RawOutcome, train_job


@dataclass(frozen=True)
class Step:
    """A step of a job."""

    epoch: int
    """The epoch, counted from 1."""
    step: int
    """The number of steps so far, of ``steps``."""
    steps: int
    loss: float
    """The loss of the step's batch."""


@dataclass(frozen=True)
class Epoch:
    """An epoch of a job."""

    epoch: int
    """Its number, counted from 1."""
    loss: float
    """The mean loss of its batches."""
    held_out_loss: float
    """The mean loss of the held-out samples."""
    accuracy: float
    """The fraction of the held-out samples whose most likely class is the right one."""
    seconds: float
    """Its duration, including its evaluation."""


@dataclass(frozen=True)
class Outcome:
    """The result of a job."""

    epochs: list[Epoch]
    """The epochs of this run; none on a rank above 0."""
    steps: int
    """The number of steps, including those before a checkpoint."""
    sha256: str
    """The SHA-256 of the trained parameters."""
    device: str
    """The device that trained."""


def train(
    job: str | os.PathLike[str],
    *,
    device: str | None = None,
    threads: int | None = None,
    resume: bool = False,
    epochs: int | None = None,
    ranks: str | None = None,
    patience: float = 300.0,
    progress: Callable[[Step | Epoch], object] | None = None,
) -> Outcome:
    """Runs a training job from a TOML file, which https://adead.github.io/adead/training.html describes.

    ``resume`` continues from the job's checkpoint, if it exists. ``epochs`` replaces the job's number of epochs. ``ranks`` and
    ``patience`` are as for ``Trainer.join``; None trains alone. ``progress`` receives each ``Step`` and each ``Epoch``; an
    exception ends the job and is raised. ``adead.IoError`` or ``adead.InvalidArgumentError`` if the job, its data or a checkpoint
    can't be read or is malformed.
    """
    if epochs is not None and not 0 < epochs < 1 << 32:
        raise adead.InvalidArgumentError(f"epochs is {epochs}; it must be at least 1")
    raised, found = Raised(), list[Epoch]()

    def told(_user: object, pointer: Any) -> int:
        event = pointer.contents
        new: Step | Epoch = Step(event.epoch, event.step, event.steps, event.loss)
        if event.epoch_is_over:
            new = Epoch(event.epoch, event.loss, event.held_out_loss, event.accuracy, event.seconds)
            found.append(new)
        tell = progress
        return 0 if tell is None else raised.call(lambda: tell(new))

    options = JobOptions(ctypes.sizeof(JobOptions), int(bool(resume)), epochs or 0)
    options.ranks, options.patience = None if ranks is None else argument(ranks), patience
    options.progress = JobProgress(told)
    outcome, name = RawOutcome(ctypes.sizeof(RawOutcome)), None if device is None else argument(device)
    raised.check(train_job(argument(os.fspath(job)), name, context_options(None, threads, "f32"), options, outcome))
    return Outcome(found, outcome.steps, text_of(outcome.sha256), text_of(outcome.device))
