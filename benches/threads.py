#!/usr/bin/env python3
"""Compares operations of 100,000 to 4 million values on several threads of the CPU with PyTorch's.

    python3 benches/threads.py [--threads 4 16] [--rounds 4] [--seconds 0.1] [--wheel before=FOLDER] [--without-torch]

Needs the wheel of adead and numpy. If PyTorch is installed, it is measured too. `--wheel NAME=FOLDER` measures another build of
adead, from a folder with its package, and may be repeated. Each column is a process of its own in each round. Operands are tensors,
and results are dropped, so their memory is used again. Prints the medians over the rounds in microseconds of a call, and PyTorch's time
divided by adead's.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time

SIZES = (100_000, 300_000, 1_000_000, 2_000_000, 4_000_000)


def microseconds(call, seconds):
    """The median of a call's times, in so many seconds."""
    times = []
    for _ in range(3):
        call()
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return 1e6 * statistics.median(times)


def calls_of_adead(threads, x, y):
    import adead

    ctx = adead.Context("cpu", threads=threads)
    x, y = adead.Tensor(x), adead.Tensor(y)
    rows = x.reshape(-1, 1000)
    return {
        "relu": lambda: ctx.relu(x), "add": lambda: ctx.add(x, y), "sum": lambda: ctx.sum(x, axis="all"), "exp": lambda: ctx.exp(x),
        "softmax": lambda: ctx.softmax(rows, axis=-1),
    }  # fmt: skip


def calls_of_torch(threads, x, y):
    import torch

    torch.set_num_threads(threads)
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    rows = x.reshape(-1, 1000)
    return {
        "relu": lambda: torch.relu(x), "add": lambda: torch.add(x, y), "sum": lambda: torch.sum(x), "exp": lambda: torch.exp(x),
        "softmax": lambda: torch.softmax(rows, -1),
    }  # fmt: skip


def measure(what, threads, seconds):
    """Measures one library and prints the times as JSON."""
    import numpy

    random, times = numpy.random.default_rng(7), {}
    for n in SIZES:
        x, y = (random.random(n, numpy.float32) for _ in range(2))
        calls = calls_of_torch(threads, x, y) if what == "PyTorch" else calls_of_adead(threads, x, y)
        times |= {f"{name} {n:,}": microseconds(call, seconds) for name, call in calls.items()}
    print(json.dumps(times))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[os.cpu_count()])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.1, help="of each call in a round")
    parser.add_argument("--wheel", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--without-torch", action="store_true")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        return measure(options.measure, options.threads[0], options.seconds)
    columns = {name: {"PYTHONPATH": folder} for name, folder in (wheel.split("=", 1) for wheel in options.wheel)} | {"adead": {}}
    if importlib.util.find_spec("torch") and not options.without_torch:
        columns["PyTorch"] = {}
    for threads in options.threads:
        rounds = []
        for _ in range(options.rounds):
            rounds.append({})
            for column, more in columns.items():
                command = [sys.executable, __file__, "--measure", column, "--threads", str(threads), "--seconds", str(options.seconds)]
                rounds[-1][column] = json.loads(subprocess.run(command, env=os.environ | more, check=True, stdout=subprocess.PIPE).stdout)
        print(f"{threads} threads, µs{'':>12} " + " ".join(f"{column:>10}" for column in columns), flush=True)
        for name in rounds[0]["adead"]:
            medians = [statistics.median(one[column][name] for one in rounds) for column in columns]
            ratio = statistics.median(one["PyTorch"][name] / one["adead"][name] for one in rounds) if "PyTorch" in columns else None
            print(f"{name:<24} " + " ".join(f"{median:10.1f}" for median in medians) + (f"  ratio {ratio:.2f}" if ratio else ""), flush=True)


if __name__ == "__main__":
    main()
