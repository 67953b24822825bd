"""Profiles: how long a context's operations, kernels and transfers took, and where they ran.
docs/profile.md is the guide."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from ._adead import NotReadyError

if TYPE_CHECKING:
    from ._adead import _Session

__all__ = ["Profile", "ProfileDevice", "ProfileRecord", "ProfileReport", "ProfileSpan", "ProfileTotal"]


@dataclass(frozen=True, slots=True)
class ProfileSpan:
    """A begin and an end, in nanoseconds since the profile's start."""

    begin_ns: int
    end_ns: int

    @property
    def ns(self) -> int:
        """The duration, in nanoseconds."""
        return self.end_ns - self.begin_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRecord:
    """A piece of work: an operation, a user's kernel or a transfer.

    ``activity`` is "operation", "kernel", "replay", "upload", "download", "copy" or "clear". ``name`` is the
    operation's or the kernel's name, or else the activity. ``operands`` describes the operands. ``device`` is an id,
    and ``reason`` says why the work ran there. ``thread`` is the caller's, and ``stream`` 0 is the context's own.
    ``host`` is the time of the call. ``work`` is the time of the work itself, None if the device measures no times.
    ``cycles`` counts the processor's cycles; None on GPUs. ``flops`` and ``bytes`` are 0 if unknown.
    """

    activity: str
    name: str
    operands: str
    device: str
    reason: str
    thread: int
    stream: int
    host: ProfileSpan
    work: ProfileSpan | None
    cycles: int | None
    flops: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileTotal:
    """The total of records with one kind, name, device and reason.

    Of ``count`` records, ``timed`` have a time. The other numbers cover only those: the total
    nanoseconds, floating-point operations and bytes, and the last two per nanosecond (``gflops``,
    ``gbytes``). ``of_peak`` is the fraction of the device's peak rate, and can exceed 1.
    """

    activity: str
    name: str
    device: str
    reason: str
    count: int
    timed: int
    ns: int
    min_ns: int
    max_ns: int
    mean_ns: float
    flops: int
    bytes: int
    gflops: float
    gbytes: float
    of_peak: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDevice:
    """A device that worked: nanoseconds of work other than transfers, and the bytes uploaded to and
    downloaded from it.

    ``peak_gflops`` and ``peak_gbytes`` are its peak rates as the dispatcher knows them, and
    ``figures`` is their source; None if unknown. ``calibrated`` says whether they were measured on
    this machine.
    """

    id: str
    work_ns: int
    uploaded: int
    downloaded: int
    peak_gflops: float | None = None
    peak_gbytes: float | None = None
    calibrated: bool = False
    figures: str | None = None


def _record(fields: dict[str, Any]) -> ProfileRecord:
    work = fields.get("work")
    spans: dict[str, Any] = {"host": ProfileSpan(**fields["host"]), "work": work and ProfileSpan(**work)}
    return ProfileRecord(**{"cycles": None, **fields, **spans})


class ProfileReport:
    """The report of a profile. ``str(report)`` is a table."""

    def __init__(self, session: "_Session") -> None:
        self._session = session

    @cached_property
    def _all(self) -> dict[str, Any]:
        made: dict[str, Any] = json.loads(self.to_json())
        made["records"] = [_record(fields) for fields in made["records"]]
        made["totals"] = [ProfileTotal(**fields) for fields in made["totals"]]
        # JSON has 0 or 1 for a bool.
        made["devices"] = [ProfileDevice(**{**use, "calibrated": use.get("calibrated") == 1}) for use in made["devices"]]
        return made

    @property
    def records(self) -> list[ProfileRecord]:
        """Every piece of work, in the order in which the calls returned."""
        return cast("list[ProfileRecord]", self._all["records"])

    @property
    def totals(self) -> list[ProfileTotal]:
        """By kind, name, device and reason; the one with the longest total time is first."""
        return cast("list[ProfileTotal]", self._all["totals"])

    @property
    def devices(self) -> list[ProfileDevice]:
        """The devices that worked."""
        return cast("list[ProfileDevice]", self._all["devices"])

    @property
    def dropped(self) -> int:
        """Records beyond the limit, which are only counted."""
        return int(self._all["dropped"])

    @property
    def ns(self) -> int:
        """Nanoseconds from the profile's start to its end."""
        return int(self._all["ns"])

    @property
    def busy_ns(self) -> int:
        """Nanoseconds during which there was work on the CPU, work on a GPU, or a transfer."""
        return int(self._all["busy_ns"])

    @property
    def overlapped_ns(self) -> int:
        """Nanoseconds of ``busy_ns`` during which at least two of the three overlapped."""
        return int(self._all["overlapped_ns"])

    @property
    def overlap(self) -> float:
        """The ratio of ``overlapped_ns`` to ``busy_ns``."""
        return float(self._all["overlap"])

    def to_json(self) -> str:
        """Returns the whole report as JSON."""
        return self._session.report("json")

    def to_trace(self) -> str:
        """Returns a trace for Perfetto and chrome://tracing."""
        return self._session.report("trace")

    def __str__(self) -> str:
        return self._session.report("table")

    def __repr__(self) -> str:
        devices = ", ".join(device.id for device in self.devices)
        count = len(self.records)
        return f"ProfileReport({count} record{'' if count == 1 else 's'} in {self.ns / 1e6:.3f} ms on {devices or 'no device'})"


class Profile:
    """An active profile, which ``Context.profile`` starts. ``finish``, the end of a ``with`` block,
    and garbage collection end it."""

    def __init__(self, session: "_Session") -> None:
        self._session = session
        self._report: ProfileReport | None = None

    def finish(self) -> ProfileReport:
        """Ends the profile, if it is active, and returns its report. Waits for everything that the
        context has enqueued; synchronise your own streams before."""
        if self._report is None:
            self._session.report("")
            self._report = ProfileReport(self._session)
        return self._report

    @property
    def report(self) -> ProfileReport:
        """The report; NotReadyError while the profile is active."""
        if self._report is None:
            raise NotReadyError("the profile is under way: finish() or the end of its with block gives its report")
        return self._report

    def __repr__(self) -> str:
        return "Profile(under way)" if self._report is None else f"Profile({self._report!r})"

    def __enter__(self) -> "Profile":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.finish()
