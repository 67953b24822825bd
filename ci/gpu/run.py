#!/usr/bin/env python3
"""Tests and measures adead on this machine's GPUs; writes report.json and report.txt. Part of a bundle of ci/gpu-pack.

    ./run                      everything
    ./run --quick              less of everything
    ./run --conformance        one part, or several: --conformance --tests --examples --bench

The exit status is 0 only if everything that ran passed. What is left out is named with its reason. Needs Python 3.9 and
nothing else; PyTorch, where it is there and sees the GPU, is measured beside adead.
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

sys.dont_write_bytecode = True  # the bundle may be on a medium that can't be written, and stays as it is
import machine  # noqa: E402

BUNDLE = Path(__file__).resolve().parent
PARTS = ["conformance", "tests", "examples", "bench"]


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for part in PARTS:
        parser.add_argument(f"--{part}", action="store_true", help=f"only this part ({part}), and others so named")
    parser.add_argument("--quick", action="store_true", help="GPU tests only, fewer sizes, less time for each")
    parser.add_argument("--no-peers", action="store_true", help="PyTorch is not measured")
    parser.add_argument("--python", help="a Python that has PyTorch (default: the first that has)")
    parser.add_argument("--out", type=Path, default=Path("."), help="where the reports go (default: this folder)")
    parser.add_argument("--limit", type=int, default=300, metavar="SECONDS", help="of one step (default: 300)")
    args = parser.parse_args()
    args.parts = [part for part in PARTS if getattr(args, part)] or PARTS
    return args


class Report:
    """What was done, and what became of it."""

    def __init__(self, args, environment):
        self.args, self.environment = args, environment
        self.steps = []
        self.log = (args.out / "log.txt").open("w")

    def step(self, part, name, command, environment=None, check=None):
        """Runs a command. It fails with a status but 0 and 77, when it takes too long, or where `check` finds a fault."""
        begin = time.monotonic()
        self.log.write(f"\n==== {part}: {name}\n$ {' '.join(map(str, command))}\n")
        self.log.flush()
        with tempfile.TemporaryFile("w+", errors="replace") as printed:
            process = subprocess.Popen(list(map(str, command)), cwd=BUNDLE, env=environment or self.environment,
                                       stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT,
                                       start_new_session=True)  # fmt: skip
            try:
                status = process.wait(self.args.limit)
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
            found |= {"result": "failed", "why": f"it took more than {self.args.limit} s"}
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


def one_line(step):
    text = f"{step['result']:<8} {step['part']}: {step['name']}"
    if "seconds" in step:
        text += f" ({step['seconds']:.1f} s)"
    for key in ("counts", "why"):
        if key in step:
            text += f": {step[key]}"
    if "left_out" in step:
        text += f"; left out: {'; '.join(step['left_out'])}"
    return text


def devices(environment):
    """What gpu-bench says there is; or why it can't."""
    done = subprocess.run([BUNDLE / "bin/gpu-bench", "--devices"], env=environment, capture_output=True, text=True)
    if done.returncode:
        return [], done.stderr.strip() or f"gpu-bench --devices: exit status {done.returncode}"
    found = json.loads(done.stdout)
    return found["devices"], found["no_gpu"]


def finds_gpu(environment):
    """Whether a GPU that is no program is found."""
    return any(device["kind"] not in ("cpu", "software") for device in devices(environment)[0])


def conformance(report, found):
    runner = BUNDLE / "bin/adead-conformance"
    report.step("conformance", "cpu, every instruction set", [runner, "--device", "cpu", "--all-isas"])
    for device in found:
        if device["id"] != "cpu":
            name = f"{device['id']} ({device['name']})"
            report.step("conformance", name, [runner, "--device", device["id"]])
            if not report.args.quick:
                verify = [BUNDLE / "bin/adead", "verify", "--device", device["id"]]
                report.step("conformance", f"{device['id']}, adead verify", verify)


def tests(report, manifest, gpu):
    for test in manifest["tests"]:
        if report.args.quick and not test["gpu"]:
            report.skip("tests", test["name"], "it has nothing to do with GPUs, and this is --quick")
            continue
        command = [BUNDLE / test["file"]]
        if not test["name"].endswith("(C)"):
            command += ["--nocapture", *(word for name in test["skip"] for word in ("--skip", name))]

        def complete(text):
            return "with a GPU here nothing may be left out" if gpu and "skipped: " in text else None

        report.step("tests", test["name"], command, check=complete if test["gpu"] else None)


def examples(report, manifest, gpu):
    for example in manifest["examples"]:
        if example["gpu"] and not gpu:
            report.skip("examples", example["name"], "no GPU")
        else:
            report.step("examples", example["name"], [BUNDLE / example["file"], *example["arguments"]])


def torch_python(report, environment):
    """A Python whose PyTorch sees a GPU; or why there is none."""
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


def bench(report, found, plain):
    """gpu-bench on the best GPU, PyTorch beside it, and the comparison. The text of that."""
    gpus = [device for device in found if device["id"] != "cpu"]
    if not gpus:
        report.skip("bench", "gpu-bench", "no GPU")
        return ""
    out = report.args.out
    mine, theirs = out / "bench-adead.json", out / "bench-torch.json"
    quick = ["--quick"] if report.args.quick else []
    report.step("bench", f"adead on {gpus[0]['name']}",
                [BUNDLE / "bin/gpu-bench", "--device", gpus[0]["id"], "--json", mine, *quick])  # fmt: skip
    if not mine.exists():
        return ""
    peers = []
    python, why = (None, "--no-peers") if report.args.no_peers else torch_python(report, plain)
    if python:
        # With the machine's own libraries, as its users have it.
        report.step("bench", "PyTorch", [python, BUNDLE / "benches/gpu_peers.py", "--items", mine, "--json", theirs, *quick],
                    environment=plain)  # fmt: skip
        peers = [theirs] if theirs.exists() else []
    else:
        report.skip("bench", "PyTorch", why)
    table = out / "bench.md"
    report.step("bench", "comparison", [machine.PYTHON, BUNDLE / "benches/gpu_compare.py", mine, *peers, "--out", table])
    return table.read_text() if table.exists() else ""


def text_report(results, table):
    """For people."""
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
        # What is kept between runs goes with the folder: every run starts from nothing.
        environment = {name: value for name, value in plain.items() if not name.startswith("ADEAD_")}
        environment |= {"ADEAD_CACHE_DIR": f"{scratch}/cache", "RUST_BACKTRACE": "1"}
        environment, notes = machine.vulkan(BUNDLE, Path(scratch), environment, finds_gpu)
        report = Report(args, environment)
        found, why = devices(environment)
        gpu = any(device["id"] != "cpu" for device in found)
        if not found:
            report.fail("devices", "gpu-bench --devices", why)
        elif not gpu:
            report.fail("devices", "a GPU", why or "there is none")
        report.step("devices", "adead info", [BUNDLE / "bin/adead", "info"])
        table = ""
        if found and "conformance" in args.parts:
            conformance(report, found)
        if "tests" in args.parts:
            tests(report, manifest, gpu)
        if "examples" in args.parts:
            examples(report, manifest, gpu)
        if "bench" in args.parts:
            table = bench(report, found, plain)
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
