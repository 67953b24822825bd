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
from adead_models.cluster._command import connect


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def logs_of(environment):
    logs = pathlib.Path(environment.get("RAY_TMPDIR", "/tmp")).glob("ray/session_latest/logs/ray_client_server*")
    return "\n".join(f"{log.name}:\n{log.read_text(errors='replace')[-2000:]}" for log in sorted(logs))


def test_a_cluster_that_starts_no_server_for_a_client_is_asked_again(caplog):
    asked = []

    def init(address, **options):
        asked.append((address, options))
        if len(asked) < 3:
            raise ConnectionAbortedError("Starting Ray client server failed")

    connect(init, "ray://head:10001", pause=0)
    assert asked == [("ray://head:10001", {"log_to_driver": False})] * 3
    assert caplog.text.count("the Ray cluster at ray://head:10001 started no server for this client") == 2

    asked.clear()
    with pytest.raises(ConnectionAbortedError):
        connect(init, "ray://head:10001", seconds=0)
    assert len(asked) == 1

    def refuse(*_, **options):
        raise ConnectionError("nobody answers")

    with pytest.raises(ConnectionError, match="nobody answers"):
        connect(refuse, "ray://head:10001")


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
        address = f"ray://127.0.0.1:{port}"
        given = ["--model", shared.ENCODER, "--in", folder / "sentences", "--out", folder / "ray", "--rows-per-shard", 8, "--keep", "id"]
        cluster = ["--cluster", address, "--workers", 2]
        command = [sys.executable, "-m", "adead_models.cluster", "embed", *given, *cluster]
        # `ray start` returns before its agents answer, so the command may have to ask again.
        ended = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, env=environment)
        assert ended.returncode == 0, logs_of(environment)
        assert ended.stdout.startswith("42 rows in 6 shards: 6 computed, 0 were finished\n")
    finally:
        head.terminate()
        head.communicate()
    assert shared.lines_of(folder / "ray") == shared.lines_of(done)
