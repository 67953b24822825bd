"""Messages of the runtime, through the module logging."""

import logging
import os
import subprocess
import sys
import threading

import pytest

import adead


def settle():
    """Lets the interpreter call back, which it does between two steps of the main thread."""
    for _ in range(100):
        pass


def told(caplog):
    settle()
    records = [record for record in caplog.records if record.name.startswith("adead.")]
    caplog.clear()
    return [(record.levelname, record.name, record.getMessage()) for record in records]


def test_messages(caplog):
    with caplog.at_level(logging.DEBUG, logger="adead"):
        ctx = adead.Context("cpu", threads=2)
        messages = told(caplog)
        opened = [text for level, name, text in messages if (level, name) == ("INFO", "adead.devices")]
        assert any(text.startswith(f"opened cpu: {ctx.device.name}") for text in opened), messages
        assert any((level, name) == ("DEBUG", "adead.config") for level, name, _ in messages)
        ctx.set_threshold("matmul", 4096)
        assert told(caplog) == [("DEBUG", "adead.dispatch", "the threshold of matmul is 4096 elements")]
        x = adead.Tensor([[0.5]])
        pipeline = ctx.pipeline().relu(x).exp()
        pipeline.execute()
        told(caplog)
        for _ in range(3):
            ctx.matmul(x, x)
        assert told(caplog) == []


def test_the_level_is_the_loggers(caplog):
    with caplog.at_level(logging.WARNING, logger="adead"):
        adead.Context("cpu")
        assert told(caplog) == []
    with caplog.at_level(logging.INFO, logger="adead"):
        adead.Context("cpu")
        messages = told(caplog)
        assert messages and {level for level, _, _ in messages} == {"INFO"}


def test_messages_of_threads(caplog):
    with caplog.at_level(logging.INFO, logger="adead.devices"):
        threads = [threading.Thread(target=lambda: [adead.Context("cpu") for _ in range(20)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        opened = [text for _, _, text in told(caplog) if text.startswith("opened cpu")]
        assert len(opened) == 80


def test_a_handler_may_call_adead(caplog):
    class Handler(logging.Handler):
        seen = 0

        def emit(self, record):
            if Handler.seen < 3:
                Handler.seen += 1
                adead.Context("cpu")

    logger, handler = logging.getLogger("adead.devices"), Handler()
    logger.addHandler(handler)
    try:
        with caplog.at_level(logging.INFO, logger="adead.devices"):
            adead.Context("cpu")
            settle()
            assert Handler.seen == 3
    finally:
        logger.removeHandler(handler)


def script(text, **environment):
    clean = {name: value for name, value in os.environ.items() if name not in ("ADEAD_LOG", "ADEAD_CONFIG")}
    return subprocess.run([sys.executable, "-c", text], env=clean | environment, capture_output=True, text=True, timeout=120)


OPEN = "import sys, adead\nadead.Context('cpu').relu(adead.Tensor([1.0]))\n"


def bad_calibration(folder):
    """Writes an invalid calibration of this machine, which causes a warning."""
    device = adead.Context("cpu").device
    machine = f"{device.name}; {device.arch}; {device.units} threads; {adead.CONTRACT}"
    number = 0xCBF29CE484222325
    for byte in machine.encode():
        number = (number ^ byte) * 0x100000001B3 % 2**64
    (folder / f"calibration-{number:016x}.toml").write_text("nonsense")


def test_nothing_is_printed_unasked(tmp_path):
    bad_calibration(tmp_path)
    done = script(OPEN + "assert 'logging' not in sys.modules", ADEAD_CACHE_DIR=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    # logging's handler of last resort prints nothing either, if the program uses logging for
    # something else.
    done = script("import logging\n" + OPEN, ADEAD_CACHE_DIR=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    # There was something to print.
    done = script("import logging\nlogging.basicConfig()\n" + OPEN, ADEAD_CACHE_DIR=str(tmp_path))
    lines = set(done.stderr.splitlines())
    assert sum(line.startswith("WARNING:adead.dispatch:figures of cpu: ") for line in lines) == 1
    # Also a message for each GPU, if there are any.
    assert all(line.startswith("WARNING:adead.dispatch:figures of ") and str(tmp_path) in line for line in lines)


def test_what_is_asked_for_is_printed(tmp_path):
    done = script(OPEN, ADEAD_LOG="info")
    assert done.returncode == 0 and done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines and all(line.startswith("adead.devices INFO: ") for line in lines), done.stderr
    done = script(OPEN, ADEAD_LOG="off")
    assert (done.returncode, done.stderr) == (0, "")
    config = tmp_path / "adead.toml"
    config.write_text('log = "debug"\n')
    done = script(OPEN, ADEAD_CONFIG=str(config))
    assert "adead.config DEBUG: " in done.stderr and str(config) in done.stderr
    # The environment takes precedence over the file, and the program's own handlers suffice.
    assert script(OPEN, ADEAD_CONFIG=str(config), ADEAD_LOG="error").stderr == ""
    own = "import logging\nlogging.basicConfig(format='mine %(message)s')\n" + OPEN
    lines = script(own, ADEAD_LOG="info").stderr.splitlines()
    assert lines and all(line.startswith("mine ") for line in lines)


@pytest.mark.parametrize("file", [False, True])
def test_a_wrong_level_is_an_error(tmp_path, file):
    config = tmp_path / "adead.toml"
    config.write_text('# adead\nlog = "loud"\n')
    environment = {"ADEAD_CONFIG": str(config)} if file else {"ADEAD_LOG": "loud"}
    done = script(OPEN, **environment)
    allowed = 'log must be "off", "error", "warn", "info", "debug" or "trace"'
    where = f"{config}, line 2: {allowed}" if file else f"ADEAD_LOG is 'loud'; {allowed}"
    assert done.returncode == 1 and f"adead.InvalidArgumentError: {where}" in done.stderr
