"""Messages of the runtime, for the loggers below ``logging.getLogger("adead")``. docs/logging.md is
the guide."""

import sys

from ._adead import _LOG_LEVEL

_started = False


def _start() -> None:
    """Adds a handler that prints messages, if ADEAD_LOG or adead.toml asks for it. Otherwise only
    the program's own handlers print."""
    import logging

    logger = logging.getLogger("adead")
    if _LOG_LEVEL is None:
        logger.addHandler(logging.NullHandler())
        return
    logging.addLevelName(5, "TRACE")
    if logger.level == logging.NOTSET:
        logger.setLevel(_LOG_LEVEL)
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(name)s %(levelname)s: %(message)s"))
        logger.addHandler(handler)


def deliver(messages: list[tuple[int, str, str]]) -> None:
    """Passes messages, each with a level and a logger's name, to their loggers."""
    global _started
    # A program that has not imported logging has no handlers.
    if _LOG_LEVEL is None and "logging" not in sys.modules:
        return
    import logging

    if not _started:
        _started = True
        _start()
    for level, name, message in messages:
        logging.getLogger(name).log(level, "%s", message)
