#!/usr/bin/env python3
"""Simulates jobs of `adead_models.cluster` on more machines than there are: the jobs' real loop, with workers of a virtual clock.

    python3 benches/scale.py [--rows 1e9] [--workers 8,64,512] [--rows-per-shard 4096,16384,65536] [--rate 7500] [--seed 1] [--json]

Needs the wheels of adead and adead-models with the extra `cluster`. The model of cost, whose numbers are options:

- A worker opens its model in --open seconds. A shard takes --shard seconds (reading and writing Parquet files, the way to the worker
  and back) and its rows divided by --rate. One worker in --slow-one-in is slower by the factor --slow.
- A worker is lost every --mtbf hours on average, in the middle of a shard. Another one takes its place.
- The driver takes --driver seconds for each outcome: the engine's message, and a line of the manifest with fsync. Outcomes wait for it.

Prints for each cut: the hours, the efficiency (work at the full rate divided by workers times hours), the repeated shards, how busy the
driver is, and how long the last shards take while workers are idle. docs/scale.md says what follows.
"""

import argparse
import heapq
import json
import random
import sys
from dataclasses import dataclass

from adead_models.cluster._drive import drive
from adead_models.cluster._engine import Lost, Outcome
from adead_models.cluster._job import Input, Job, Shard
from adead_models.cluster._manifest import Entry
from adead_models.cluster._worker import Done, Task


@dataclass(frozen=True)
class Costs:
    rate: float
    open: float
    shard: float
    driver: float
    mtbf: float
    slow: float
    slow_one_in: int


class VirtualWorkers:
    """Workers of a virtual clock, as the loop of jobs sees workers."""

    def __init__(self, wanted: int, costs: Costs, seed: int) -> None:
        self.wanted, self._costs, self._random = wanted, costs, random.Random(seed)
        self.now = self.driver = self.idle_from = 0.0
        self._events: list[tuple[float, int, Outcome]] = []
        self._started: dict[str, float] = {}
        self._opened: set[str] = set()
        self._count = 0

    def start(self, wait: bool) -> str | None:
        name = f"worker {self._count}"
        self._count += 1
        slow = self._random.randrange(self._costs.slow_one_in) == 0
        self._started[name] = self._costs.slow if slow else 1.0
        return name

    def submit(self, worker: str, task: Task) -> None:
        costs, factor = self._costs, self._started[worker]
        seconds = costs.shard + task.shard.rows / costs.rate * factor
        if worker not in self._opened:
            self._opened.add(worker)
            seconds += costs.open
        # How long it goes on from now: that does not depend on how long it has run.
        left = self._random.expovariate(1 / (costs.mtbf * 3600))
        number = task.shard.number
        if left < seconds:
            del self._started[worker]
            self._push(left, Outcome(worker, Lost("its machine is gone")))
        else:
            entry = Entry(number, task.shard.rows, task.shard.output, "", "", 0)
            self._push(seconds, Outcome(worker, Done(number, entry)))

    def _push(self, seconds: float, outcome: Outcome) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now + seconds, self._count, outcome))

    def wait(self, seconds: float | None) -> list[Outcome]:
        at, _, outcome = heapq.heappop(self._events)
        # The driver takes one outcome after another.
        self.now = max(self.now, at) + self._costs.driver
        self.driver += self._costs.driver
        return [outcome]

    def close(self) -> None:
        pass


class VirtualEngine:
    def __init__(self, workers: VirtualWorkers) -> None:
        self._workers = workers

    def open(self, recipe: object) -> VirtualWorkers:
        return self._workers


def shards_of(rows: int, per_shard: int) -> list[Shard]:
    """The cut of a job with one input file."""
    return Job("", "embed", {}, (Input("sentences.parquet", rows),), "text", (), per_shard, {}).shards()


def simulate(rows: int, workers: int, per_shard: int, costs: Costs, seed: int) -> dict[str, float]:
    virtual = VirtualWorkers(workers, costs, seed)
    tasks = [Task(shard, None) for shard in shards_of(rows, per_shard)]
    finished: list[tuple[float, int]] = []
    repeated: list[int] = []
    drive(
        VirtualEngine(virtual), None, tasks, 10,  # type: ignore[arg-type]
        lambda done: finished.append((virtual.now, done.entry.rows)), lambda task, _: repeated.append(task.shard.number),
    )  # fmt: skip
    if sum(count for _, count in finished) != rows or len(finished) != len(tasks):
        sys.exit(f"FAILED: {len(finished)} of {len(tasks)} shards were finished")
    seconds = virtual.now
    # When the last shard was given out: from then on workers are idle.
    last_given = finished[-min(workers, len(finished))][0]
    return {
        "workers": workers,
        "rows_per_shard": per_shard,
        "shards": len(tasks),
        "hours": seconds / 3600,
        "efficiency": rows / costs.rate / (workers * seconds),
        "repeated": len(repeated),
        "driver": virtual.driver / seconds,
        "tail_minutes": (seconds - last_given) / 60,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(float(part)) for part in text.split(",")]  # noqa: E731
    parser.add_argument("--rows", type=float, default=1e9)
    parser.add_argument("--workers", type=numbers, default=[8, 64, 512])
    parser.add_argument("--rows-per-shard", type=numbers, default=[1024, 4096, 16384, 65536, 262144])
    parser.add_argument("--rate", type=float, default=7500, help="sentences a second of a worker: an H200, 128 tokens each")
    parser.add_argument("--open", type=float, default=5)
    parser.add_argument("--shard", type=float, default=0.3)
    parser.add_argument("--driver", type=float, default=0.01)
    parser.add_argument("--mtbf", type=float, default=500, help="hours until a worker is lost")
    parser.add_argument("--slow", type=float, default=2)
    parser.add_argument("--slow-one-in", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    names = Costs.__dataclass_fields__
    costs = Costs(**{name: getattr(options, name) for name in names})
    if min(options.rows, costs.rate, costs.mtbf, costs.slow, costs.slow_one_in, *options.workers, *options.rows_per_shard) <= 0:
        parser.error("rows, workers, rates, hours and factors are above 0")
    if not options.json:
        print("workers  rows a shard   shards    hours  efficiency  repeated  driver  tail, min")
    for workers in options.workers:
        for per_shard in options.rows_per_shard:
            found = simulate(int(options.rows), workers, per_shard, costs, options.seed)
            if options.json:
                print(json.dumps(found))
                continue
            print(
                f"{workers:7d} {per_shard:13d} {found['shards']:8d} {found['hours']:8.2f} {found['efficiency']:11.3f} "
                f"{found['repeated']:9d} {found['driver']:7.1%} {found['tail_minutes']:10.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
