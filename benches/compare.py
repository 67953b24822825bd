#!/usr/bin/env python3
"""Compares adead with NumPy, OpenBLAS, MKL, BLIS, PyTorch and ONNX Runtime, in one run, on this machine.

    python3 benches/compare.py                   # installs the peers below target/, builds adead, measures
    python3 benches/compare.py --without torch   # a smaller download
    python3 benches/compare.py --quick --only matmul

Every library has a process of its own. For each item the libraries take turns, round after round. Waiting processes are stopped,
so that their idle threads don't use the processor. docs/performance-log.md says how to read the results.
"""

import argparse
import contextlib
import glob
import importlib.metadata
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
import venv
from pathlib import Path

import peers as known
import plots
import report

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
DOCS = ROOT / "docs"
# Of the largest value, by group: a guard against comparing different computations, not a test. fixed16 has 15 bits.
TOLERANCE = {"fixed": 1e-2}
ELSE = 1e-4
REFERENCES = {"memcpy", "baseline"}  # timed, but never "the best peer"


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", default="1,2", help="thread counts, with commas (default: 1,2)")
    parser.add_argument("--only", default="", metavar="REGEX", help="items whose name matches, such as 'matmul 64x', or a group: call")
    parser.add_argument("--peers", help=f"these peers only: {','.join(known.NAMES)}")
    parser.add_argument("--without", default="", help="all peers but these; PyTorch is a download of several GB")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each library (default: 9)")
    parser.add_argument("--seconds", type=float, default=0.02, help="of one turn (default: 0.02)")
    parser.add_argument("--retries", type=int, default=2, help="of an item that other work disturbed (default: 2)")
    parser.add_argument("--quick", action="store_true", help="few items and 3 rounds: to see that it works")
    parser.add_argument("--out", type=Path, help="for results.json, table.md, matmul.svg (default: target/bench)")
    parser.add_argument("--venv", type=Path, help="a Python environment that has the peers; nothing is installed")
    parser.add_argument("--library", dest="built", type=Path, metavar="SO", help="a libadead.so; nothing is built")
    parser.add_argument("--baseline", type=Path, help="another libadead.so, timed beside the first")
    parser.add_argument("--update-docs", action="store_true", help="put the results into docs/performance-log.md")
    parser.add_argument("--from", dest="results", type=Path, help="a results.json to render instead of measuring")
    args = parser.parse_args()
    wanted = args.peers.split(",") if args.peers else known.NAMES
    unwanted = args.without.split(",") if args.without else []
    for name in [*wanted, *unwanted]:
        if name not in known.NAMES:
            parser.error(f"no peer '{name}': {', '.join(known.NAMES)}")
    args.peers = [name for name in known.NAMES if name in wanted and name not in unwanted]
    args.threads = [int(count) for count in args.threads.split(",")]
    if args.quick:
        args.rounds = 3
    return args


def target():
    """Returns cargo's target folder."""
    metadata = subprocess.check_output(["cargo", "metadata", "--no-deps", "--format-version=1"], cwd=ROOT)
    return Path(json.loads(metadata)["target_directory"])


def enter(path, create):
    """Restarts this script in that Python environment."""
    if Path(sys.prefix).resolve() == path.resolve():
        return
    if create and not (path / "bin/python").exists():
        print(f"creating {path}", file=sys.stderr)
        venv.create(path, with_pip=True)
    python = str(path / "bin/python")
    os.execv(python, [python, *sys.argv])


def install(wanted):
    """Installs what this environment lacks, from the registry."""
    packages = ["numpy", *(package for peer in wanted for package in known.PIP.get(peer, []))]
    missing = []
    for package in packages:
        try:
            importlib.metadata.distribution(package)
        except importlib.metadata.PackageNotFoundError:
            missing.append(package)
    if "torch" in missing:
        print("PyTorch takes about 5 GB; --without torch leaves it out", file=sys.stderr)
    if missing:
        print(f"installing {' '.join(missing)}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *missing], check=True)


def blis(folder, threads):
    """Finds Debian's BLIS, unpacked below `folder` without installing it, or else the system's."""
    variant = "serial" if threads == 1 else "openmp"
    pattern = str(folder / variant / "usr/lib/*" / f"blis-{variant}" / "libblis.so.4")
    if not glob.glob(pattern):
        (folder / variant).mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            subprocess.run(["apt-get", "download", f"libblis4-{variant}"], cwd=folder, check=True, capture_output=True)
            package = glob.glob(str(folder / f"libblis4-{variant}_*.deb"))[0]
            subprocess.run(["dpkg-deb", "-x", package, str(folder / variant)], check=True)
    return next(iter(glob.glob(pattern)), "libblis.so.4")


def compile_harness(out):
    library = out / "harness.so"
    sources = ["-I", str(ROOT / "include"), str(HERE / "harness.c")]
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(library), *sources, "-ldl"], check=True)
    return library


def build(folder):
    subprocess.run(["cargo", "build", "--release", "--locked", "--quiet", "-p", "adead-artifact"], cwd=ROOT, check=True)
    return folder / "release/libadead.so"


class Worker:
    """The process of a library, stopped while another one has its turn."""

    def __init__(self, name, threads, harness, library):
        self.name = name
        command = [sys.executable, str(HERE / "peers.py"), name, str(harness), str(threads), str(library)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=known.environment(threads), text=True)
        self.version = self.answer()["version"]

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended")
        self.process.send_signal(signal.SIGSTOP)
        return json.loads(line)

    def ask(self, **command):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def end(self):
        self.process.kill()
        self.process.wait()


def start(args, threads, harness, libraries):
    """Starts a worker for every peer that this machine has, and notes the missing ones."""
    workers = []
    for name in [*args.peers, *(["baseline"] if args.baseline else [])]:
        try:
            workers.append(Worker(name, threads, harness, libraries(name, threads)))
        except RuntimeError as error:
            print(f"without {name}: {error}", file=sys.stderr)
    return workers


def quartiles(values):
    """Returns the median and the middle half of the values."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return [middle, low, high]


def tolerance(group):
    return TOLERANCE.get(group, ELSE)


def difference(item, workers, out):
    """Returns the largest difference of each library's result from adead's, relative to the largest value."""
    import numpy as np

    file = out / "result.f32"

    def result(worker):
        return np.fromfile(file, dtype=np.float32) if worker.ask(save=str(file))["saved"] else None

    mine = next((result(worker) for worker in workers if worker.name == "adead"), None)
    found = {}
    for worker in workers:
        theirs = None if mine is None or worker.name == "adead" else result(worker)
        if theirs is not None:
            found[worker.name] = float(np.max(np.abs(mine - theirs)) / max(np.max(np.abs(mine)), 1e-30))
            if not found[worker.name] <= tolerance(item.group):
                print(f"{item.name}: adead and {worker.name} differ by {found[worker.name]:.2g}", file=sys.stderr)
    file.unlink(missing_ok=True)
    return found


def processor_seconds():
    """Returns the processor time that the machine has spent since it started, including time that a hypervisor took away."""
    fields = Path("/proc/stat").read_text().split("\n")[0].split()[1:]
    user, nice, system, _, _, irq, softirq, steal = map(int, fields[:8])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own_seconds(workers):
    """Returns the processor time of the driver and its workers."""
    ticks = 0
    for process in ["self", *(worker.process.pid for worker in workers)]:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def undisturbed(item, workers, args, out):
    """Measures, and repeats if something else used the processor meanwhile. Keeps the attempt with the least disturbance."""
    attempts = []
    while not attempts or (attempts[-1]["others"] > report.BUSY and len(attempts) <= args.retries):
        begin = time.monotonic(), processor_seconds(), own_seconds(workers)
        found = measure(item, workers, args, out)
        end = time.monotonic(), processor_seconds(), own_seconds(workers)
        passed, spent, own = (now - then for now, then in zip(end, begin))
        found["others"] = max(0.0, spent - own) / passed  # in cores
        attempts.append(found)
    return min(attempts, key=lambda found: found["others"])


def measure(item, workers, args, out):
    """Measures one item: every library in turn, round after round."""
    reps = {}
    for worker in workers:
        answer = worker.ask(prepare=vars(item), seconds=args.seconds)
        if "error" in answer:
            print(f"{item.name}: without {worker.name}: {answer['error']}", file=sys.stderr)
        if answer["reps"]:
            reps[worker] = answer["reps"]
    able = list(reps)
    times = {worker.name: [] for worker in able}
    for turn in range(args.rounds):
        first = turn % len(able)  # no library always follows the same one
        for worker in able[first:] + able[:first]:
            times[worker.name].append(worker.ask(time=reps[worker])["seconds"])
    found = dict(name=item.name, group=item.group, op=item.op, size=item.size, work=item.work, shapes=item.shapes)
    found["seconds"] = {name: quartiles(values) for name, values in times.items()}
    found["difference"] = difference(item, able, out)

    def ratio(name):
        return quartiles([theirs / mine for theirs, mine in zip(times[name], times["adead"])])

    rivals = [name for name in times if name != "adead" and name not in REFERENCES]
    if "adead" in times and rivals:
        found["best"] = min(rivals, key=lambda name: found["seconds"][name][0])
        found["ratio"] = ratio(found["best"])
    if "adead" in times and "baseline" in times:
        found["over_baseline"] = ratio("baseline")
    return found


def run(args, out, folder):
    if not args.venv:
        install(args.peers)
    import work  # needs NumPy

    adead = args.built or build(folder)
    harness = compile_harness(out)

    def libraries(name, threads):
        if name == "blis":
            return blis(folder / "bench-peers", threads)
        return {"adead": adead, "baseline": args.baseline}.get(name, "-")

    items = [item for item in work.items(args.quick) if args.only == item.group or re.search(args.only, item.name)]
    machine = report.machine(None if args.built else ROOT)
    results = {"machine": machine, "rounds": args.rounds, "versions": {}, "threads": {}}
    for threads in args.threads:
        workers = start(args, threads, harness, libraries)
        try:
            results["versions"].update({worker.name: worker.version for worker in workers})
            rows = results["threads"][str(threads)] = []
            for item in items:
                rows.append(undisturbed(item, workers, args, out))
                print(f"{threads} threads, {report.line(rows[-1])}", file=sys.stderr)
        finally:
            for worker in workers:
                worker.end()
    machine["load_after"] = os.getloadavg()[0]
    return results


def main():
    args = options()
    if args.results:
        results = json.loads(args.results.read_text())
        out = args.out or args.results.parent
    else:
        folder = target()
        enter(args.venv or folder / "bench-venv", create=not args.venv)
        out = args.out or folder / "bench"
        out.mkdir(parents=True, exist_ok=True)
        results = run(args, out.resolve(), folder)
        (out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    out.mkdir(parents=True, exist_ok=True)
    table = report.render(results)
    (out / "table.md").write_text(table)
    (out / "matmul.svg").write_text(plots.matmul(table))
    if args.update_docs:
        report.update(DOCS / "performance-log.md", table)
        plots.write()
    print(table)
    print(f"written to {out}", file=sys.stderr)
    rows = [row for rows in results["threads"].values() for row in rows]
    if any(not value <= tolerance(row["group"]) for row in rows for value in row["difference"].values()):
        sys.exit("results differ: these timings don't compare the same computation")


if __name__ == "__main__":
    main()
