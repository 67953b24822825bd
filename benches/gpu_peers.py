#!/usr/bin/env python3
"""Times PyTorch on a GPU at the items of `gpu-bench`, in the same way, with results in the same format.

    gpu-bench --json adead.json
    python3 benches/gpu_peers.py --items adead.json --json torch.json
    python3 benches/gpu_compare.py adead.json torch.json

32-bit floats, TF32 off. The operands are the same numbers. If --items has gpu-bench's results, PyTorch's results are compared
with them, because timings of different computations can't be compared. `gpu-bench --items` writes items without results.
"""

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as functional

SCHEMA = 1
SEED = 1
ALIGN = 256  # bytes, to which operands are aligned in the pool
COLD = 256 << 20  # bytes: more than any cache of today's GPUs
SETS = 256  # the most sets of operands that take turns
SUBMISSIONS = 16
BURST = 1000  # small pieces of work in a row
CHAIN = 10  # operations of a recorded chain
TOLERANCE = 1e-4  # of the largest value: a guard against comparing different computations, not a test
OF_FIXED16 = 1e-3  # of products with operands of 16 bits
MASK = (1 << 64) - 1


def signed(word):
    return word - (1 << 64) if word >> 63 else word


def shifted(z, bits):
    """Shifts to the right logically."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def numbers(count, device):
    """Returns the first numbers of gpu-bench's pool: (splitmix64(1, i) >> 40) / 2^23 - 1."""
    out = torch.empty(count, device=device)
    step = 1 << 24
    for first in range(0, count, step):
        many = min(step, count - first)
        i = torch.arange(first + 1, first + many + 1, dtype=torch.int64, device=device)
        z = i * signed(0x9E3779B97F4A7C15) + SEED
        z = (z ^ shifted(z, 30)) * signed(0xBF58476D1CE4E5B9)
        z = (z ^ shifted(z, 27)) * signed(0x94D049BB133111EB)
        z = z ^ shifted(z, 31)
        out[first : first + many] = (shifted(z, 40) - (1 << 23)).to(torch.float32) / (1 << 23)
    return out


def product(shape):
    return math.prod(shape)


def places(shapes):
    """Returns the positions of operands of these shapes, and the position after the last, in elements."""
    found, end = [], 0
    for shape in shapes:
        found.append(end)
        end = (4 * (end + product(shape)) + ALIGN - 1) // ALIGN * ALIGN // 4
    return found, end


def operation(item):
    """Returns the call from operands, and memory for the result if PyTorch accepts it, to the result."""
    axis = item.get("axis")
    calls = {
        "matmul": lambda x, out: torch.mm(*x, out=out),
        "attention": lambda x, out: functional.scaled_dot_product_attention(*x, is_causal=item["causal"]),
        "softmax": lambda x, out: torch.softmax(x[0], -1, out=out),
        "layernorm": lambda x, out: functional.layer_norm(x[0], x[0].shape[-1:], x[1], x[2]),
        "relu": lambda x, out: torch.clamp_min(x[0], 0, out=out),
        "gelu": lambda x, out: torch.ops.aten.gelu.out(x[0], out=out),
        "add": lambda x, out: torch.add(*x, out=out),
        "sum": lambda x, out: torch.sum(x[0]) if axis is None else torch.sum(x[0], axis, out=out),
        "transpose": lambda x, out: out.copy_(x[0].t()),
        "ffn": lambda x, out: torch.addmm(x[4], torch.relu_(torch.addmm(x[2], x[0], x[1])), x[3], out=out),
    }
    return calls[item["op"]]


class Bench:
    def __init__(self, items, device, quick):
        self.device, self.cuda = device, device.type == "cuda"
        # The same efforts as in gpu-bench.
        self.seconds, self.least = (0.06, 3) if quick else (0.2, 5)
        room = max([places(item["shapes"])[1] for item in items], default=0)
        least = COLD // 4 if self.cuda else 0
        self.inputs = numbers(max(room, least), device)
        self.results = torch.zeros(max([product(item["output"]) for item in items] + [least]), device=device)
        self.ballast = torch.zeros(COLD // 4 if self.cuda else 1, device=device)

    def synchronize(self):
        if self.cuda:
            torch.cuda.synchronize()

    def samples(self, one, least=None):
        begin, found = time.perf_counter(), []
        while len(found) < (least or self.least) or (
            time.perf_counter() - begin < self.seconds and len(found) < 1000
        ):
            found.append(one())
        return found

    def completion(self, work):
        begin = time.perf_counter()
        work()
        self.synchronize()
        return time.perf_counter() - begin

    def on_host(self, work, calls=SUBMISSIONS):
        begin = time.perf_counter()
        for _ in range(calls):
            work()
        seconds = time.perf_counter() - begin
        self.synchronize()
        return seconds

    def recorded(self, work):
        """Captures a graph of that work, as PyTorch's documentation says: after a warm-up on another stream."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            work()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        return graph

    def on_device(self, before, graph):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        before()
        begin.record()
        graph.replay()
        end.record()
        self.synchronize()
        return begin.elapsed_time(end) * 1e-3

    def operation(self, item):
        """Times an item, and compares its result with gpu-bench's."""
        call = operation(item)
        offsets, stride = places(item["shapes"])
        out_stride = places([item["output"]])[1]

        def of_set(number):
            base = number * stride
            x = [
                self.inputs[base + at : base + at + product(shape)].view(shape)
                for at, shape in zip(offsets, item["shapes"])
            ]
            at = number * out_stride
            out = self.results[at : at + product(item["output"])].view(item["output"])
            return x, out

        x, out = of_set(0)

        def run():
            return call(x, out)

        found = {}
        found["first"] = times([self.completion(run)], 1)
        result = run().reshape(-1)
        difference = compare(item, result)
        one = self.completion(run)
        found["completion"] = times(self.samples(lambda: self.completion(run)), 1)
        runs = repeats(one, 5e-3, 100)

        def many(count=runs):
            for _ in range(count):
                run()

        found["queued"] = times(self.samples(lambda: self.completion(many)), runs)
        if self.cuda:
            runs = repeats(one, 2e-3, 200)
            graph = self.recorded(lambda: many(runs))

            def before():
                self.ballast.zero_()
                run()

            found["hot"] = times(self.samples(lambda: self.on_device(before, graph)), runs)
            graph = None
            room = min(self.inputs.numel() // stride, self.results.numel() // max(out_stride, 1))
            wanted = -(-COLD // (4 * (stride + out_stride)))
            sets = min(max(wanted, 2), SETS, room)
            if sets >= 2:
                all_sets = [of_set(number) for number in range(sets)]

                def each():
                    for operands, place in all_sets:
                        call(operands, place)

                graph = self.recorded(each)
                found["cold"] = times(self.samples(lambda: self.on_device(self.ballast.zero_, graph)), sets)
        return found, difference

    def latency(self, name):
        x = torch.full((1024,), -0.5, device=self.device)
        y, b = torch.zeros_like(x), torch.full_like(x, 2.0)
        least = self.least * 3
        found, calls = {}, BURST
        if name.startswith("10 x"):
            if not self.cuda:
                return None

            def chain():
                for _ in range(CHAIN // 2):
                    torch.clamp_min(x, 0, out=y)
                    torch.clamp_min(y, 0, out=x)

            graph = self.recorded(chain)
            work, calls = graph.replay, BURST // CHAIN
            found["hot"] = times(self.samples(lambda: self.on_device(self.ballast.zero_, graph)), 1)
        elif name.startswith("relu"):

            def work():
                torch.clamp_min(x, 0, out=y)
        else:

            def work():
                torch.add(x, b, out=y)

        work()
        self.synchronize()
        found["completion"] = times(self.samples(lambda: self.completion(work), least), 1)
        found["host"] = times(self.samples(lambda: self.on_host(work), least), SUBMISSIONS)
        found["enqueued"] = times(self.samples(lambda: self.on_host(work, calls), least), calls)
        return found

    def transfer(self, item):
        kind, size, unit = item["name"].split()[:3]
        bytes_ = int(size) << {"KiB": 10, "MiB": 20}[unit]
        device = torch.zeros(bytes_, dtype=torch.uint8, device=self.device)
        host = torch.full((bytes_,), 7, dtype=torch.uint8)
        if kind == "copy":
            other = torch.zeros_like(device)
            found = {"completion": times(self.samples(lambda: self.completion(lambda: other.copy_(device))), 1)}
            if self.cuda:
                runs = repeats(found["completion"]["median"], 2e-3, 100)

                def many():
                    for _ in range(runs):
                        other.copy_(device)

                graph = self.recorded(many)
                before = lambda: other.copy_(device)  # noqa: E731
                found["hot"] = times(self.samples(lambda: self.on_device(before, graph)), runs)
            return found
        memories = {"completion": host}
        if self.cuda:
            memories["pinned"] = host.pin_memory()
        found = {}
        for name, memory in memories.items():
            to, source = (device, memory) if kind == "upload" else (memory, device)
            to.copy_(source)
            found[name] = times(self.samples(lambda: self.completion(lambda: to.copy_(source))), 1)
        return found


def repeats(one, seconds, most):
    return min(max(math.ceil(seconds / max(one, 1e-9)), 1), most)


def times(samples, runs):
    """Returns the seconds of one run: the median and the middle half of the samples."""
    ordered = sorted(sample / runs for sample in samples)

    def at(share):
        return ordered[round((len(ordered) - 1) * share)]

    return {"median": at(0.5), "low": at(0.25), "high": at(0.75), "samples": len(ordered), "runs": runs}


def compare(item, result):
    """Returns the largest difference from gpu-bench's sample, relative to the largest value."""
    expected = item.get("sample")
    if expected is None:
        return None
    count = result.numel()
    samples = min(64, count)
    at = [i * count // samples for i in range(samples)]
    mine = result[torch.tensor(at, device=result.device)].cpu().double()
    theirs = torch.tensor(expected, dtype=torch.float64)
    # A sum of many terms of both signs is small compared with the error of any order of addition.
    scale = math.sqrt(product(item["shapes"][0]) / product(item["output"])) if item["op"] == "sum" else 0.0
    return float((mine - theirs).abs().max() / max(theirs.abs().max().item(), scale, 1e-30))


def about(device):
    """Describes the machine and the versions."""
    facts = {"torch": torch.__version__, "cuda": torch.version.cuda, "python": sys.version.split()[0]}
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        facts |= {"name": properties.name, "units": properties.multi_processor_count}
        facts |= {"memory": properties.total_memory, "l2": getattr(properties, "L2_cache_size", 0)}
        facts["capability"] = f"{properties.major}.{properties.minor}"
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        try:
            facts["driver"] = subprocess.check_output(query, text=True).split("\n")[0]
        except (OSError, subprocess.CalledProcessError):
            facts["driver"] = ""
    return facts


def line(entry):
    times = entry.get("seconds", {})
    shown = " ".join(f"{name} {value['median'] * 1e6:.1f} µs" for name, value in times.items() if name != "first")
    note = entry.get("error") or ""
    if entry.get("difference") is not None:
        note += f" differs by {entry['difference']:.1e}"
    return f"{entry['name']:<34} {shown} {note}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=Path, required=True, help="results of gpu-bench, or what gpu-bench --items prints")
    parser.add_argument("--json", type=Path, required=True, help="where the results go")
    parser.add_argument("--quick", action="store_true", help="less time for each item")
    parser.add_argument("--device", default="cuda", help="cuda, or cpu to try this program")
    args = parser.parse_args()
    given = json.loads(args.items.read_text())
    items = given["items"] if isinstance(given, dict) else given
    device = torch.device(args.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        sys.exit("PyTorch sees no GPU")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    torch.set_grad_enabled(False)
    begin = time.perf_counter()
    operations = [item for item in items if item["op"] is not None]
    bench = Bench([item for item in operations if "skipped" not in item], device, args.quick)
    entries, wrong = [], []
    for item in items:
        kept = ("name", "group", "op", "causal", "axis", "shapes", "output", "flops", "bytes")
        entry = {key: item[key] for key in kept if key in item}
        if "skipped" in item:
            continue
        try:
            if item["group"] == "latency":
                seconds = bench.latency(item["name"])
            elif item["group"] == "transfer":
                seconds = bench.transfer(item)
            else:
                seconds, entry["difference"] = bench.operation(item)
            if seconds is None:
                continue
            entry["seconds"] = seconds
        except RuntimeError as error:  # an item that PyTorch can't do is left out, with the reason
            entry["error"] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        if not (entry.get("difference") or 0.0) <= (OF_FIXED16 if item.get("precision") == "fixed16" else TOLERANCE):
            wrong.append(item["name"])
        entries.append(entry)
        print(line(entry), flush=True)
    results = {"schema": SCHEMA, "peer": "torch", "version": torch.__version__, "device": about(device)}
    results |= {"quick": args.quick, "took": time.perf_counter() - begin, "items": entries}
    args.json.write_text(json.dumps(results, indent=1) + "\n")
    if wrong:
        sys.exit(f"results differ from gpu-bench's, so these timings don't compare: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
