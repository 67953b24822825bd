"""The command on a Ray cluster of another process, by Ray Client. Apart from other tests of Ray, as a process connects to one cluster."""

import os
import pathlib
import socket
import subprocess
import sys

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("ray")

import cluster_shared as shared


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def test_the_command_on_a_cluster_of_another_process(folder, done):
    """By Ray Client, as from a machine outside the cluster."""
    port = free_port()
    # A token of this cluster alone, in a home of its own. The command presents it, as that of any cluster with tokens.
    environment = {**os.environ, "HOME": str(folder / "home"), "RAY_AUTH_MODE": "token"}
    (folder / "home").mkdir()
    ray = pathlib.Path(sys.executable).with_name("ray")
    subprocess.run([ray, "get-auth-token", "--generate"], env=environment, check=True, capture_output=True)
    options = {"node-ip-address": "127.0.0.1", "ray-client-server-port": port, "port": 0, "num-cpus": 2}
    options |= {"min-worker-port": 0, "max-worker-port": 0}
    head = subprocess.Popen(
        [ray, "start", "--head", "--block", "--disable-usage-stats", "--include-dashboard=false"]
        + [f"--{name}={value}" for name, value in options.items()],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    try:
        begun = []
        while "Ray runtime started" not in "".join(begun):
            begun.append(head.stdout.readline())
            assert begun[-1], begun
        given = ["--model", shared.ENCODER, "--in", folder / "sentences", "--out", folder / "ray", "--rows-per-shard", 8, "--keep", "id"]
        cluster = ["--cluster", f"ray://127.0.0.1:{port}", "--workers", 2]
        command = [sys.executable, "-m", "adead_models.cluster", "embed", *given, *cluster]
        ended = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, env=environment)
        assert ended.returncode == 0 and ended.stdout.startswith("42 rows in 6 shards: 6 computed, 0 were finished\n")
    finally:
        head.terminate()
        head.communicate()
    assert shared.lines_of(folder / "ray") == shared.lines_of(done)
