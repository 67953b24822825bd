"""The progress of a run, and its display in a terminal."""

import logging
import time
from dataclasses import dataclass
from typing import TextIO

logger = logging.getLogger("adead.cluster")


@dataclass(frozen=True)
class Status:
    """The progress of a run."""

    shards_done: int
    shards: int
    rows_done: int
    rows: int
    rows_computed: int
    """Rows that this run computed: those of ``rows_done`` without the skipped ones."""


class Terminal(logging.Handler):
    """Shows a run's progress in one line of a terminal, and log messages above it. A stream that is not a terminal receives only
    the messages.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream, self._shows = stream, stream.isatty()
        self._begun = time.monotonic()
        self._shown = 0

    def __call__(self, status: Status) -> None:
        if self._shows:
            self._show(line_of(status, time.monotonic() - self._begun))

    def emit(self, record: logging.LogRecord) -> None:
        """Writes a log message."""
        if self._shown:
            self._show("")
            self._stream.write("\r")
            self._shown = 0
        print(self.format(record), file=self._stream, flush=True)

    def close(self) -> None:
        """Ends the line."""
        if self._shown:
            print(file=self._stream, flush=True)
            self._shown = 0
        super().close()

    def _show(self, line: str) -> None:
        print(f"\r{line:{self._shown}}", end="", file=self._stream, flush=True)
        self._shown = max(self._shown, len(line))


def line_of(status: Status, seconds: float) -> str:
    """Returns the line of a run that takes ``seconds`` so far."""
    line = f"{status.shards_done} of {status.shards} shards, {status.rows_done:,} of {status.rows:,} rows"
    if status.rows_computed and seconds > 0:
        rate = status.rows_computed / seconds
        line += f", {rate:,.0f} rows/s, {_duration((status.rows - status.rows_done) / rate)} left"
    return line


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
