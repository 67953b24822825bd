"""``MpiTransport``: training on processes that MPI starts, with the hash of one process."""

import pathlib
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("mpi4py")

EXAMPLE = pathlib.Path(__file__).resolve().parents[1] / "examples/train_mpi.py"


def run(ranks, *arguments):
    start = pathlib.Path(sys.executable).with_name("mpiexec")
    command = [str(start) if start.exists() else shutil.which("mpiexec"), "-n", str(ranks), sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_example_has_one_hash_with_any_number_of_ranks():
    found = set()
    for ranks in (1, 2, 3):
        done = run(ranks, str(EXAMPLE))
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    assert len(found) == 1 and found.pop().startswith("sha256 ")


def test_parts_of_all_lengths_arrive_in_pieces():
    done = run(3, "-c", """
from adead_models import mpi

mpi.MOST_AT_ONCE = 5
ranks = mpi.MpiTransport()
for length in (0, 1, 5, 23, 1000):
    parts = [bytes([ranks.rank, to]) * length for to in range(3)]
    found = ranks.exchange(parts)
    for other in range(3):
        assert found[other] == (b"" if other == ranks.rank else bytes([other, ranks.rank]) * length), (length, other)
if ranks.rank == 0:
    print("of", ranks.size)
""")
    assert (done.returncode, done.stdout) == (0, "of 3\n"), done.stderr
