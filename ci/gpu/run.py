#!/usr/bin/env python3
"""Tests and measures adead on this machine's GPUs; writes report.json and report.txt. Part of a bundle of ci/gpu-pack.

    ./run                      everything except the next three
    ./run --sanitizer          every CUDA kernel under compute-sanitizer's four tools
    ./run --soak 10            several threads keep the device busy for 10 minutes, then open and drop contexts for 10 minutes
    ./run --overlap-runs 300   the tests of overlapped batches through Vulkan, 300 times, 16 at once: none may hang
    ./run --quick              less of everything
    ./run --conformance        one part, or several: --conformance --tests --examples --bench --sanitizer --soak

GPUs are tested and measured through both CUDA and Vulkan, if available. The exit status is 0 only if everything that ran passed.
Each skipped step is listed with its reason. Needs only Python 3.9. If PyTorch is installed and sees the GPU, it is measured too.
"""

import argparse
import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True  # the bundle may be on a read-only medium, and must not change
import machine  # noqa: E402

BUNDLE = Path(__file__).resolve().parent
PARTS = ["conformance", "tests", "examples", "bench"]
# Folders of CUDA's tools besides PATH.
CUDA_TOOLS = ["/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer", "/opt/nvidia/compute-sanitizer"]
SANITIZERS = ["memcheck", "racecheck", "initcheck", "synccheck"]


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for part in PARTS:
        parser.add_argument(f"--{part}", action="store_true", help=f"only this part ({part}), and others so named")
    parser.add_argument("--sanitizer", action="store_true", help="CUDA's kernels under compute-sanitizer")
    parser.add_argument("--soak", type=float, nargs="?", const=10, metavar="MINUTES", help="adead-soak and adead-churn (default: 10 minutes each)")
    parser.add_argument("--overlap-runs", type=int, metavar="N", help="run the tests of overlapped batches N times")
    parser.add_argument("--calls", type=int, default=200, help="random calls of each operation (default: 200)")
    parser.add_argument("--quick", action="store_true", help="GPU tests only, fewer sizes, less time for each")
    parser.add_argument("--stand-in", action="store_true", help="the GPU is a program: what is measured is as small as can be")
    parser.add_argument("--no-peers", action="store_true", help="PyTorch is not measured")
    parser.add_argument("--python", help="a Python that has PyTorch (default: the first that has)")
    parser.add_argument("--out", type=Path, default=Path("."), help="where the reports go (default: this folder)")
    parser.add_argument("--limit", type=int, default=300, metavar="SECONDS", help="of one step (default: 300)")
    args = parser.parse_args()
    named = [part for part in [*PARTS, "sanitizer", "soak", "overlap_runs"] if getattr(args, part) not in (None, False)]
    args.parts = named or PARTS
    return args


class Report:
    """The steps that ran, and their results."""

    def __init__(self, args, environment):
        self.args, self.environment = args, environment
        self.steps = []
        self.log = (args.out / "log.txt").open("w")

    def step(self, part, name, command, environment=None, check=None, limit=None, live=False, folder=""):
        """Runs a command, in a folder of the bundle. It fails with a status other than 0 and 77, if it takes too long, or if `check`
        finds a fault. `live` shows its output at once."""
        begin = time.monotonic()
        limit = limit or self.args.limit
        self.log.write(f"\n==== {part}: {name}\n$ {' '.join(map(str, command))}\n")
        self.log.flush()
        with tempfile.TemporaryFile("w+", errors="replace") as printed:
            process = subprocess.Popen(list(map(str, command)), cwd=BUNDLE / folder, env=environment or self.environment,
                                       stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT,
                                       start_new_session=True)  # fmt: skip
            try:
                if live:
                    follow(process, printed, begin + limit)
                status = process.wait(max(0, begin + limit - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                status = None
            printed.seek(0)
            text = printed.read()
        self.log.write(text)
        lines = text.splitlines()
        skips = sorted(set(re.findall(r"skipped: (.*)", text)))
        found = {"part": part, "name": name, "result": "passed", "seconds": round(time.monotonic() - begin, 1)}
        if status is None:
            found |= {"result": "failed", "why": f"it took more than {limit:.0f} s"}
        elif status == 77:
            found |= {"result": "skipped", "why": (skips or lines[-1:] or ["it does not say why"])[0]}
        elif status != 0:
            found |= {"result": "failed", "why": f"exit status {status}"}
        fault = check(text) if check and found["result"] == "passed" else None
        if fault:
            found |= {"result": "failed", "why": fault}
        counted = [line for line in lines if re.search(r"^test result: | ran, \d+ failed", line)]
        if counted:
            found["counts"] = counted[-1].split("; finished")[0]
        calls = {op: int(n) for n, op in re.findall(r"(\d+) random calls of (\w+) equal", text)}
        if calls:
            found["random_calls"] = calls
        if skips and status != 77:
            found["left_out"] = skips
        if found["result"] == "failed":
            found["output"] = lines[-30:]
        self.add(found)
        return found

    def skip(self, part, name, why):
        self.add({"part": part, "name": name, "result": "skipped", "why": why})

    def fail(self, part, name, why):
        self.add({"part": part, "name": name, "result": "failed", "why": why})

    def add(self, found):
        self.steps.append(found)
        print(one_line(found), flush=True)
        for line in found.get("output", []):
            print(f"    {line}", flush=True)

    def passed(self):
        return all(step["result"] != "failed" for step in self.steps)


def follow(process, printed, end):
    """Shows what a process prints into a file, until the process ends or its time is up."""
    done = False
    # Opened again, so that the process's own file position does not change.
    with open(f"/proc/self/fd/{printed.fileno()}", errors="replace") as file:
        while not done:
            done = process.poll() is not None or time.monotonic() > end
            for line in file:
                print(f"    {line}", end="", flush=True)
            time.sleep(0 if done else 0.5)


def one_line(step):
    text = f"{step['result']:<8} {step['part']}: {step['name']}"
    if "seconds" in step:
        text += f" ({step['seconds']:.1f} s)"
    for key in ("counts", "why"):
        if key in step:
            text += f": {step[key]}"
    if "random_calls" in step:
        counts = sorted(set(step["random_calls"].values()))
        text += f"; random calls of each of {len(step['random_calls'])} operations: {' to '.join(map(str, counts))}"
    if "left_out" in step:
        text += f"; left out: {'; '.join(step['left_out'])}"
    return text


def devices(environment):
    """Returns the devices that gpu-bench lists, or the reason why it can't."""
    done = subprocess.run([BUNDLE / "bin/gpu-bench", "--devices"], env=environment, capture_output=True, text=True)
    if done.returncode:
        return [], done.stderr.strip() or f"gpu-bench --devices: exit status {done.returncode}"
    found = json.loads(done.stdout)
    return found["devices"], found["no_gpu"]


def finds_gpu(environment):
    """Returns whether Vulkan finds a hardware GPU."""
    found = devices(environment)[0]
    return any(device["id"].startswith("vulkan:") and device["kind"] != "software" for device in found)


def by_backend(found):
    """Returns the first GPU of each backend, CUDA's before Vulkan's. Software GPUs count only if there is no other."""
    gpus = [device for device in found if device["kind"] != "cpu"]
    first = {}
    for device in [gpu for gpu in gpus if gpu["kind"] != "software"] or gpus:
        first.setdefault(device["id"].split(":")[0], device)
    return first


def conformance(report, found):
    runner = BUNDLE / "bin/adead-conformance"
    # A stand-in runs all cases in other steps. Here only the bundle is tested.
    some = ["softmax/"] if report.args.stand_in else []
    report.step("conformance", "cpu, every instruction set", [runner, "--device", "cpu", "--all-isas", *some])
    for device in found:
        if device["id"] != "cpu":
            name = f"{device['id']} ({device['name']})"
            report.step("conformance", name, [runner, "--device", device["id"], *some])
            if not report.args.quick:
                verify = [BUNDLE / "bin/adead", "verify", "--device", device["id"]]
                report.step("conformance", f"{device['id']}, adead verify", verify)


def tests(report, manifest, backends):
    for test in manifest["tests"]:
        of_c = test["name"].endswith("(C)")
        # Only ci/gpu-pack links the bundle's C programs, so each of them runs where the bundle is tested.
        if report.args.quick and not test["gpu"] and not (report.args.stand_in and of_c):
            report.skip("tests", test["name"], "it has nothing to do with GPUs, and this is --quick")
            continue
        command = [BUNDLE / test["file"]]
        if report.args.stand_in and re.search("(gpu_operations|gpu_products|hybrid|residence|pipeline)$", test["file"]):
            report.skip("tests", test["name"], "ci/lavapipe and ci/cuda-emulated run it")
            continue
        if not of_c:
            command += ["--nocapture", *(word for name in test["skip"] for word in ("--skip", name))]

        def complete(text):
            # A reason begins with the missing backend; without a name that is Vulkan.
            lines = re.findall(r"skipped: (?:(cuda|vulkan): )?", text)
            left_out = {backend or "vulkan" for backend in lines} & set(backends)
            return f"with {' and '.join(sorted(left_out))} here nothing may be left out" if left_out else None

        check = complete if test["gpu"] else None
        for backend in backends if test["every_backend"] else [None]:
            name, environment = test["name"], None
            if backend:
                name += f" through {backend}"
                environment = report.environment | {"ADEAD_TEST_BACKEND": backend}
                if not report.args.quick:
                    environment |= {"ADEAD_TEST_CALLS": str(report.args.calls)}
            report.step("tests", name, command, environment=environment, check=check)
        for device in backends.values() if test.get("every_device") else []:
            environment = report.environment | {"ADEAD_TEST_DEVICE": device["id"]}
            report.step("tests", f"{test['name']} on {device['id']}", command, environment=environment, check=check)
        if test["every_backend"] and not backends:
            report.skip("tests", test["name"], "no GPU")


def examples(report, manifest, backends):
    for example in manifest["examples"]:
        if example["backend"] and example["backend"] not in backends:
            report.skip("examples", example["name"], f"no GPU through {example['backend']}")
        else:
            tiny = ["--tiny"] if report.args.stand_in and example["file"] == "bin/overlap_demo" else []
            command = [BUNDLE / example["file"], *example["arguments"], *tiny]
            report.step("examples", example["name"], command, folder=example["folder"])


def sanitizer(report, backends):
    """Runs every kernel under each of compute-sanitizer's tools: the conformance cases launch all kernels."""
    path = os.pathsep.join([report.environment.get("PATH", ""), *CUDA_TOOLS])
    tool = shutil.which("compute-sanitizer", path=path)
    if "cuda" not in backends or not tool:
        report.skip("sanitizer", "compute-sanitizer", "no GPU through CUDA" if tool else "it is not installed")
        return
    few = report.environment | {"ADEAD_TEST_BACKEND": "cuda", "ADEAD_TEST_CALLS": "2" if report.args.quick else "6"}
    random = ["--exact", "--nocapture"]
    work = {
        "adead verify": [BUNDLE / "bin/adead", "verify", "--device", backends["cuda"]["id"]],
        "random calls": [BUNDLE / "tests/adead-core-gpu_operations",
                         "every_operation_equals_its_reference_on_random_calls", *random],
        "random products": [BUNDLE / "tests/adead-core-gpu_products",
                            "every_product_equals_its_reference_on_random_calls", *random],
    }  # fmt: skip

    def clean(text):
        summaries = re.findall(r"========= (?:ERROR|RACECHECK) SUMMARY: (\d+) (?:error|hazard)", text)
        if not summaries:
            return "it gives no summary"
        return f"{', '.join(summaries)} errors" if any(map(int, summaries)) else None

    for kind in SANITIZERS:
        for name, command in work.items():
            watched = [tool, "--tool", kind, "--error-exitcode", "9", "--print-limit", "20", *command]
            report.step("sanitizer", f"{kind}: {name}", watched, environment=few, check=clean, limit=150)


def soak(report, backends):
    """Keeps the preferred GPU busy from several threads."""
    minutes = report.args.soak
    if not backends:
        report.skip("soak", "adead-soak", "no GPU")
        return
    device = next(iter(backends.values()))["id"]
    command = [BUNDLE / "bin/adead-soak", "--device", device, "--seconds", str(round(60 * minutes))]
    report.step("soak", f"{minutes:g} minutes on {device}", command, limit=60 * minutes + 180, live=True)


def churn(report, backends):
    """Runs threads that open contexts, use them and drop them, through every backend at once."""
    minutes = report.args.soak
    if not backends:
        report.skip("soak", "adead-churn", "no GPU")
        return
    ids = ",".join(device["id"] for device in backends.values())
    command = [BUNDLE / "bin/adead-churn", "--devices", ids, "--threads", "16", "--seconds", str(round(60 * minutes))]
    report.step("soak", f"{minutes:g} minutes of contexts on {ids}", command, limit=60 * minutes + 180, live=True)


def overlap_runs(report, manifest, backends):
    """Repeats the tests whose contexts once hung NVIDIA's Vulkan driver. Ends at the first run that fails or hangs."""
    test = next((test for test in manifest["tests"] if test["name"] == "adead: overlap"), None)
    if "vulkan" not in backends or not test:
        report.skip("overlap-runs", "overlap", "it is not in the bundle" if not test else "no GPU through Vulkan")
        return
    environment = report.environment | {"ADEAD_TEST_BACKEND": "vulkan"}
    command = [BUNDLE / test["file"], "--test-threads", "16"]
    times = []
    for i in range(report.args.overlap_runs):
        begin = time.monotonic()
        try:
            done = subprocess.run(command, cwd=BUNDLE, env=environment, capture_output=True, timeout=60)
        except subprocess.TimeoutExpired:
            report.fail("overlap-runs", "overlap", f"run {i + 1} hangs")
            return
        times.append(time.monotonic() - begin)
        if done.returncode:
            report.log.write(done.stdout.decode(errors="replace"))
            report.fail("overlap-runs", "overlap", f"run {i + 1}: exit status {done.returncode}")
            return
    name = f"{len(times)} runs of overlap, each {min(times):.1f} to {max(times):.1f} s"
    report.add({"part": "overlap-runs", "name": name, "result": "passed", "seconds": round(sum(times), 1)})


def torch_python(report, environment):
    """Returns a Python whose PyTorch sees a GPU, or the reason why there is none."""
    code = "import sys, torch; sys.exit(0 if torch.cuda.is_available() else 'PyTorch sees no GPU')"
    wanted = [report.args.python] if report.args.python else ["python3", "python", machine.PYTHON]
    why = []
    for name in dict.fromkeys(wanted):
        path = shutil.which(name, path=environment.get("PATH"))
        if path:
            done = subprocess.run([path, "-c", code], env=environment, capture_output=True, text=True)
            if done.returncode == 0:
                return path, None
            why.append(f"{path}: {(done.stderr.strip().splitlines() or ['no reason'])[-1]}")
    return None, "; ".join(why) or f"there is no {' or '.join(wanted)}"


def bench(report, backends, plain):
    """Runs gpu-bench through each backend, PyTorch, and the comparisons. Returns the comparisons' text."""
    if not backends:
        report.skip("bench", "gpu-bench", "no GPU")
        return ""
    out = report.args.out
    quick = ["--quick"] if report.args.quick else []
    few = ["--only", "relu 1024x1024"] if report.args.stand_in else []
    measured = {}
    for backend, device in backends.items():
        mine = out / f"bench-{backend}.json"
        report.step("bench", f"adead on {device['id']} ({device['name']})",
                    [BUNDLE / "bin/gpu-bench", "--device", device["id"], "--json", mine, *quick, *few])  # fmt: skip
        if mine.exists():
            measured[backend] = mine
        tiny = ["--tiny"] if report.args.stand_in or device["kind"] == "software" else []
        report.step("bench", f"overlap on {device['id']}",
                    [BUNDLE / "bin/gpu-bench", "--overlap", "--device", device["id"],
                     "--json", out / f"overlap-{backend}.json", *quick, *tiny], live=True)  # fmt: skip
    if not measured:
        return ""
    theirs, peers = out / "bench-torch.json", []
    python, why = (None, "--no-peers") if report.args.no_peers else torch_python(report, plain)
    if python:
        # With the machine's own libraries, as its users have it. The items are the same for every backend.
        items = next(iter(measured.values()))
        report.step("bench", "PyTorch", [python, BUNDLE / "benches/gpu_peers.py", "--items", items, "--json", theirs, *quick],
                    environment=plain)  # fmt: skip
        peers = [theirs] if theirs.exists() else []
    else:
        report.skip("bench", "PyTorch", why)
    text = ""
    for backend, mine in measured.items():
        table = out / f"bench-{backend}.md"
        command = [machine.PYTHON, BUNDLE / "benches/gpu_compare.py", mine, *peers, "--out", table]
        report.step("bench", f"comparison, {backend}", command)
        text += f"# {backends[backend]['id']}\n\n{table.read_text()}\n" if table.exists() else ""
    return text


def text_report(results, table):
    """Formats the results as text."""
    steps = results["steps"]
    counts = {result: sum(step["result"] == result for step in steps) for result in ("passed", "failed", "skipped")}
    host = results["host"]
    lines = [
        f"adead {results['bundle']['commit']} ({results['bundle']['profile']}), {results['date']}, {results['seconds']:.0f} s",
        f"{host['system']}; {host['cpu']}, {host['threads']} threads; {host['memory']}; glibc {host['libc']}",
        *(f"nvidia-smi: {', '.join(gpu.values())}" for gpu in host["nvidia_smi"]),
        *(f"{device['id']}: {device['name']}, {device['kind']}, {device['arch']}, {device['driver']}"
          for device in results["devices"]),
        *(f"Vulkan: {note}" for note in results["vulkan"]["notes"]),
        "",
        *map(one_line, steps),
        "",
        *(f"not in the bundle: {what}: {why}" for what, why in results["bundle"]["left_out"].items()),
        f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped",
    ]  # fmt: skip
    return "\n".join([*lines, "", table]) if table else "\n".join([*lines, ""])


def main():
    args = options()
    args.out = args.out.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    manifest = json.loads((BUNDLE / "manifest.json").read_text())
    begin = time.monotonic()
    plain = dict(os.environ)
    plain.setdefault("PATH", os.defpath)
    with tempfile.TemporaryDirectory(prefix="adead-") as scratch:
        # The cache is in this folder, so every run starts without one.
        environment = {name: value for name, value in plain.items() if not name.startswith("ADEAD_")}
        environment |= {"ADEAD_CACHE_DIR": f"{scratch}/cache", "RUST_BACKTRACE": "1"}
        environment, notes = machine.vulkan(BUNDLE, Path(scratch), environment, finds_gpu)
        report = Report(args, environment)
        found, why = devices(environment)
        backends = by_backend(found)
        if not found:
            report.fail("devices", "gpu-bench --devices", why)
        elif not backends:
            report.fail("devices", "a GPU", why or "there is none")
        report.step("devices", "adead info", [BUNDLE / "bin/adead", "info"])
        table = ""
        if found and "conformance" in args.parts:
            conformance(report, found)
        if "tests" in args.parts:
            tests(report, manifest, backends)
        if "examples" in args.parts:
            examples(report, manifest, backends)
        if "sanitizer" in args.parts:
            sanitizer(report, backends)
        if "overlap_runs" in args.parts:
            overlap_runs(report, manifest, backends)
        if "soak" in args.parts:
            soak(report, backends)
            churn(report, backends)
        if "bench" in args.parts:
            table = bench(report, backends, plain)
    results = {
        "schema": 1,
        "date": datetime.date.today().isoformat(),
        "commit": manifest["commit"],
        "passed": report.passed(),
        "seconds": round(time.monotonic() - begin, 1),
        "options": [part for part in args.parts] + (["quick"] if args.quick else []),
        "bundle": {key: manifest[key] for key in ("commit", "built", "profile", "left_out")},
        "host": machine.facts(),
        "devices": found,
        "vulkan": {
            "notes": notes,
            "environment": {
                name: environment[name]
                for name in ("LD_LIBRARY_PATH", "VK_DRIVER_FILES", "VK_ICD_FILENAMES")
                if name in environment
            },
        },
        "steps": report.steps,
    }
    (args.out / "report.json").write_text(json.dumps(results, indent=1) + "\n")
    text = text_report(results, table)
    (args.out / "report.txt").write_text(text)
    print(f"\n{text}")
    print(f"written to {args.out}")
    sys.exit(0 if report.passed() else 1)


if __name__ == "__main__":
    main()
