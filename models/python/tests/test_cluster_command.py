"""The command of jobs over Parquet files, its progress, and what it says without extras."""

import io
import json
import logging
import subprocess
import sys

import pytest

pyarrow = pytest.importorskip("pyarrow")

import cluster_shared as shared
from adead_models import cluster
from adead_models.cluster._command import main
from adead_models.cluster._progress import Terminal, line_of


def test_a_terminal_shows_progress_below_messages():
    status = cluster.Status(2, 4, 1500, 3000, 1000)
    assert line_of(status, 10.0) == "2 of 4 shards, 1,500 of 3,000 rows, 100 rows/s, 15 s left"
    assert line_of(status, 1000.0) == "2 of 4 shards, 1,500 of 3,000 rows, 1 rows/s, 25 min 0 s left"
    assert line_of(cluster.Status(1, 4, 500, 3000, 0), 1.0) == "1 of 4 shards, 500 of 3,000 rows"

    class Screen(io.StringIO):
        def isatty(self):
            return True

    screen, file = Screen(), io.StringIO()
    for stream in (screen, file):
        terminal = Terminal(stream)
        terminal(status)
        terminal.emit(logging.makeLogRecord({"msg": "lost"}))
        terminal(status)
        terminal.close()
    assert file.getvalue() == "lost\n"
    parts = screen.getvalue().split("\r")
    assert parts[1].startswith("2 of 4 shards") and parts[2].strip() == "" and parts[3] == "lost\n" and parts[4].endswith("left\n")


def command(*arguments):
    done = subprocess.run([sys.executable, "-m", "adead_models.cluster", *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_the_command(folder, done):
    out = folder / "out"
    given = ["--model", shared.ENCODER, "--in", folder / "sentences", "--out", out]
    cut = ["--keep", "id", "--rows-per-shard", 8]
    status, printed, told = command("embed", *given, *cut, "--workers", 2)
    assert (status, told) == (0, "")
    assert printed.splitlines()[0] == "42 rows in 6 shards: 6 computed, 0 were finished"
    assert "3 sentences had more tokens" in printed and printed.splitlines()[-1].startswith("sha256 ")
    assert shared.lines_of(out) == shared.lines_of(done)
    shared.changed(out, 1, 2)
    status, printed, told = command("check", *given, "--shards", "0,1")
    assert (status, printed) == (1, "") and "error: 1 differences in 2 shards:\nshard 1 (a.parquet" in told
    status, printed, told = command("embed", *given, *cut, "--json")
    assert status == 0 and json.loads(printed)["computed"] == [1] and "shard 1 (a.parquet, rows 8 to 15) is computed again" in told
    status, printed, _ = command("check", *given, "--workers", 2)
    assert (status, printed) == (0, "6 shards with 42 rows have the manifest's hashes\n")
    given = ["--model", shared.GENERATOR, "--in", folder / "prompts", "--out", folder / "texts", "--column", "prompt"]
    drawn = ["--max-tokens", 12, "--ignore-end", "--temperature", 1.5, "--top-k", 60, "--seed", 42]
    status, printed, _ = command("generate", *given, *drawn, "--rows-per-shard", 3, "--json")
    assert status == 0 and json.loads(printed)["sha256"] == shared.generate(folder, folder / "same").sha256
    assert command("embed")[0] == 2


def test_the_command_refuses_unknown_clusters(folder, capsys):
    given = ["--model", str(shared.ENCODER), "--in", str(folder / "sentences"), "--out", str(folder / "out")]
    for url in ("slurm://host", "ray://", "here"):
        assert main(["embed", *given, "--cluster", url]) == 1
        assert f"cluster is '{url}'; it must be local, ray://HOST:PORT" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["embed", *given, "--workers", "0"])
    assert "'0' is not a whole number from 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "missing", "extra"), [("ray", "ray", "ray"), ("dask", "distributed", "dask"), ("cluster", "pyarrow", "cluster")]
)
def test_a_missing_extra_is_told(folder, module, missing, extra):
    code = f"""
import sys
sys.modules[{missing!r}] = None
import adead_models.{module}
adead_models.cluster.embed({str(folder / "sentences")!r}, {str(folder / "out")!r}, model={str(shared.ENCODER)!r})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"ImportError: the Python package '{missing}' is missing: pip install adead-models[{extra}]"
