"""Measures the cost of a call from Python, and compares with NumPy and, if installed, PyTorch: in one run, as times and ratios.

    python python_calls.py [--rounds N]

Every round measures each library in turn. The shortest round counts, because other work on the machine only makes rounds longer.
"""

import argparse
import platform
import subprocess
import sys
import timeit

import adead

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch

    torch.set_num_threads(1)
except ImportError:
    torch = None

# A case, its statements by library, and the nanoseconds that adead may take.
CASES = [
    ("relu of 16", {"adead": "x.relu()", "numpy": "numpy.maximum(n, 0)", "torch": "torch.relu(t)"}, 250),
    ("matmul 4x4", {"adead": "a @ a", "numpy": "m @ m", "torch": "p @ p"}, 350),
    ("add of 16", {"adead": "x + x", "numpy": "n + n", "torch": "t + t"}, None),
    ("softmax of 16", {"adead": "x.softmax(-1)", "torch": "torch.softmax(t, -1)"}, None),
    ("relu of 16, function", {"adead": "adead.relu(x)"}, None),
    ("relu of 16, context", {"adead": "ctx.relu(x)"}, None),
    ("relu of 16, NumPy's array", {"adead": "adead.relu(n)"}, None),
    ("relu of 100,000", {"adead": "large.relu()", "numpy": "numpy.maximum(wide, 0)", "torch": "torch.relu(many)"}, None),
    ("from NumPy, shared", {"adead": "adead.asarray(n)", "torch": "torch.from_numpy(n)"}, None),
    ("to NumPy, shared", {"adead": "numpy.asarray(x)", "torch": "t.numpy()"}, None),
]


def names():
    """Returns the names that the statements use."""
    values = [float(i - 8) for i in range(16)]
    square = [[float(i == j) for j in range(4)] for i in range(4)]
    many = [i / 1000 - 50 for i in range(100_000)]
    names = {"adead": adead, "x": adead.Tensor(values), "a": adead.Tensor(square), "large": adead.Tensor(many)}
    names["ctx"] = adead.Context("cpu", threads=1)
    if numpy:
        f32 = numpy.float32
        names |= {"numpy": numpy, "n": f32(values), "m": f32(square), "wide": f32(many)}
    if torch:
        names |= {"torch": torch, "t": torch.tensor(values), "p": torch.tensor(square), "many": torch.tensor(many)}
    return names


def imports():
    """Returns the milliseconds of `import adead` without NumPy in a new process: the least of ten."""
    script = """
import sys, time
sys.modules["numpy"] = None
begin = time.perf_counter()
import adead
print(time.perf_counter() - begin)
"""
    command = [sys.executable, "-c", script]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(10)]
    return min(float(run.stdout) for run in runs) * 1e3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    versions = [f"adead {adead.__version__}"]
    versions += [f"{module.__name__} {module.__version__}" for module in (numpy, torch) if module]
    print(f"Python {platform.python_version()}, {', '.join(versions)}, {adead.hardware().cpu.model}")
    scope = names()
    libraries = [library for library in ("adead", "numpy", "torch") if library in scope]
    print(f"{'':28}" + "".join(f"{library:>12}" for library in libraries) + "   numpy/adead torch/adead")
    for case, statements, limit in CASES:
        timers = {}
        for library, statement in statements.items():
            if library in libraries and (numpy or not any(word in statement for word in ("numpy", "(n"))):
                timers[library] = timeit.Timer(statement, globals=scope)
        number = max(1, int(0.02 / timers["adead"].timeit(100) * 100)) if "adead" in timers else 1
        least = dict.fromkeys(timers, float("inf"))
        for _ in range(rounds):
            for library, timer in timers.items():
                least[library] = min(least[library], timer.timeit(number) / number * 1e9)
        line = f"{case:28}" + "".join(f"{least[l]:>9.0f} ns" if l in least else f"{'':12}" for l in libraries)
        for other in ("numpy", "torch"):
            line += f"{least[other] / least['adead']:>12.1f}" if other in least and "adead" in least else f"{'':>12}"
        if limit:
            line += f"   limit {limit} ns: {'kept' if least['adead'] <= limit else 'NOT KEPT'}"
        print(line)
    print(f"import adead: {imports():.1f} ms (limit 20 ms)")


if __name__ == "__main__":
    main()
