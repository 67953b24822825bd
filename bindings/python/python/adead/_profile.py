"""Profiles: what a context's operations, kernels and transfers took, and where they ran: docs/profile.md."""

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
    """From when to when, in nanoseconds since the profile's beginning."""

    begin_ns: int
    end_ns: int

    @property
    def ns(self) -> int:
        """How long it is, in nanoseconds."""
        return self.end_ns - self.begin_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRecord:
    """A piece of work: an operation, a user's kernel, a transfer.

    ``activity`` is "operation", "kernel", "replay", "upload", "download", "copy" or "clear"; ``name`` the operation's or the
    kernel's, else the activity; ``operands`` what it worked on; ``device`` an id and ``reason`` why it ran there. ``thread`` is
    the caller's, ``stream`` 0 for the context's own. ``host`` is the call, ``work`` the work itself, None where the device
    gives no times; ``cycles`` of the processor's counter, None on GPUs. ``flops`` and ``bytes`` are 0 where nobody knows.
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
    """What was recorded of one kind and name, on one device, for one reason.

    Of ``count`` records ``timed`` have a time, and the other numbers are of those: nanoseconds, floating-point operations and
    bytes of all, and of them a nanosecond (``gflops``, ``gbytes``). ``of_peak`` is the share of the device's peak, which can be
    above 1.
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
    """A device that worked: nanoseconds of work other than transfers, the bytes that it was sent and that it sent back.

    ``peak_gflops`` and ``peak_gbytes`` are its best rates as the dispatcher knows them and ``figures`` where those are from,
    None where it knows none; ``calibrated`` is whether they were measured on this machine.
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
    """What a profile recorded; ``str`` of it is a table."""

    def __init__(self, session: "_Session") -> None:
        self._session = session

    @cached_property
    def _all(self) -> dict[str, Any]:
        made: dict[str, Any] = json.loads(self.to_json())
        made["records"] = [_record(fields) for fields in made["records"]]
        made["totals"] = [ProfileTotal(**fields) for fields in made["totals"]]
        # JSON has a number for whether.
        made["devices"] = [ProfileDevice(**{**use, "calibrated": use.get("calibrated") == 1}) for use in made["devices"]]
        return made

    @property
    def records(self) -> list[ProfileRecord]:
        """Every piece of work, in the order in which the calls returned."""
        return cast("list[ProfileRecord]", self._all["records"])

    @property
    def totals(self) -> list[ProfileTotal]:
        """By kind, name, device and reason; what took longest is first."""
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
        """From the profile's beginning to its end, in nanoseconds."""
        return int(self._all["ns"])

    @property
    def busy_ns(self) -> int:
        """Nanoseconds in which anything was under way: work on the CPU, work on a GPU, a transfer."""
        return int(self._all["busy_ns"])

    @property
    def overlapped_ns(self) -> int:
        """Of these, nanoseconds in which at least two of the three were."""
        return int(self._all["overlapped_ns"])

    @property
    def overlap(self) -> float:
        """The share of ``busy_ns`` that ``overlapped_ns`` is."""
        return float(self._all["overlap"])

    def to_json(self) -> str:
        """All of it as JSON."""
        return self._session.report("json")

    def to_trace(self) -> str:
        """A trace for Perfetto and chrome://tracing."""
        return self._session.report("trace")

    def __str__(self) -> str:
        return self._session.report("table")

    def __repr__(self) -> str:
        devices = ", ".join(device.id for device in self.devices)
        count = len(self.records)
        return f"ProfileReport({count} record{'' if count == 1 else 's'} in {self.ns / 1e6:.3f} ms on {devices or 'no device'})"


class Profile:
    """A profile under way, which ``Context.profile`` begins. ``finish``, or the end of a ``with`` block, ends it; collected, it
    ends too."""

    def __init__(self, session: "_Session") -> None:
        self._session = session
        self._report: ProfileReport | None = None

    def finish(self) -> ProfileReport:
        """Ends it, if it is under way, and gives what was recorded. Waits for what the context enqueued; synchronize streams of
        your own before."""
        if self._report is None:
            self._session.report("")
            self._report = ProfileReport(self._session)
        return self._report

    @property
    def report(self) -> ProfileReport:
        """What was recorded; NotReadyError while it is under way."""
        if self._report is None:
            raise NotReadyError("the profile is under way: finish() or the end of its with block gives its report")
        return self._report

    def __repr__(self) -> str:
        return "Profile(under way)" if self._report is None else f"Profile({self._report!r})"

    def __enter__(self) -> "Profile":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.finish()
