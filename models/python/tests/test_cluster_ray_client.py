"""The command on a Ray cluster of another process, by Ray Client. Apart from other tests of Ray, as a process connects to one cluster."""

import os
import pathlib
import socket
import subprocess
import sys
import time

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("ray")

import cluster_shared as shared


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


# Connects by Ray Client and leaves.
PROBE = "import sys, ray; ray.init(sys.argv[1], log_to_driver=False)"


def wait_for_clients(address, environment):
    """Returns once the cluster takes clients. `ray start` returns before its agents answer, and a client that comes
    earlier fails. Shows Ray's logs if that takes over five minutes."""
    end = time.monotonic() + 300
    while True:
        found = subprocess.run([sys.executable, "-c", PROBE, address], env=environment, capture_output=True, text=True)
        if found.returncode == 0:
            return
        if time.monotonic() > end:
            logs = pathlib.Path(environment.get("RAY_TMPDIR", "/tmp")).glob("ray/session_latest/logs/ray_client_server*")
            shown = "\n".join(f"{log.name}:\n{log.read_text(errors='replace')[-2000:]}" for log in sorted(logs))
            raise AssertionError(f"no client was taken in five minutes: {found.stderr[-2000:]}\n{shown}")
        time.sleep(1)


def test_the_command_on_a_cluster_of_another_process(folder, done):
    """By Ray Client, as from a machine outside the cluster."""
    port = free_port()
    # A token of this cluster alone, in a home of its own. The command presents it, as that of any cluster with tokens.
    environment = {**os.environ, "HOME": str(folder / "home"), "RAY_AUTH_MODE": "token"}
    # Ray gives a client's server 30 s to start, which a loaded machine may exceed.
    environment["RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S"] = "300"
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
        wait_for_clients(address, environment)
        given = ["--model", shared.ENCODER, "--in", folder / "sentences", "--out", folder / "ray", "--rows-per-shard", 8, "--keep", "id"]
        cluster = ["--cluster", address, "--workers", 2]
        command = [sys.executable, "-m", "adead_models.cluster", "embed", *given, *cluster]
        ended = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, env=environment)
        assert ended.returncode == 0 and ended.stdout.startswith("42 rows in 6 shards: 6 computed, 0 were finished\n")
    finally:
        head.terminate()
        head.communicate()
    assert shared.lines_of(folder / "ray") == shared.lines_of(done)
