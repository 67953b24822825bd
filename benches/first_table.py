#!/usr/bin/env python3
"""Measures the first papers' table in one run: what the CPU, a GPU and both together need for twelve kinds of work.

    python3 benches/first_table.py                      # every device that adead finds
    python3 benches/first_table.py --device cuda:0 --out table  # this GPU; writes table.md and results.json
    python3 benches/first_table.py --quick --only 'matmul 512|relu'

Needs Python 3.10, NumPy and the wheel of adead. PyTorch is measured beside it if it is installed. The columns:

    1 thread, all threads   the CPU, from host memory to host memory
    GPU, data there         operands are in the GPU's memory, and results stay there; the clock stops when the GPU is done
    GPU, from host          operands go to the GPU, and results come back, in each call
    hybrid                  the CPU and the GPU together, from host memory to host memory
    PyTorch                 f32 without TF32: on the CPU with all threads, and on CUDA with the data there

Weights of "inference" are where the device wants them in all columns, as in a server. A time is the median of the rounds, in which the
columns take turns. The speedup divides the time of one thread by that of the fastest column of adead. The first papers hoped for
15 ×, 20 ×, 40 × and 100–500 ×: the last but one column has the largest of these that the speedup reaches. --hope ROW=TEXT adds a
column with a row's own hope. Exit status 1: devices gave different bits.
"""

import argparse
import hashlib
import json
import platform
import re
import statistics
import sys
import time
from pathlib import Path

import adead
import numpy
from adead import nn

HOPES = (15, 20, 40, 100, 500)
RANDOM = numpy.random.default_rng(0)
ONE, ALL, THERE, HOST, HYBRID, TORCH, TORCH_THERE = (
    "1 thread", "all threads", "GPU, data there", "GPU, from host", "hybrid", "PyTorch, CPU", "PyTorch, CUDA",
)  # fmt: skip
OURS = (ONE, ALL, THERE, HOST, HYBRID)


def array(*dims, scale=1.0):
    return (RANDOM.standard_normal(dims) * scale).astype(numpy.float32)


def attention(ctx):
    return lambda q, k, v: ctx.attention(q, k, v, causal=True)


def mlp_weights(*widths):
    pairs = list(zip(widths, widths[1:]))
    return [value for a, b in pairs for value in (array(a, b, scale=a**-0.5), array(b, scale=0.1))]


MLP = mlp_weights(784, 512, 256, 10)
BLOCK = {"width": 768, "heads": 12, "hidden": 3072}
BLOCK_WEIGHTS = [
    array(rows, columns, scale=columns**-0.5) for rows, columns in ((3 * 768, 768), (768, 768), (3072, 768), (768, 3072))
]  # fmt: skip


def mlp(ctx):
    """Returns a network of three products, compiled."""
    p = ctx.pipeline().input((64, 784))
    for layer in range(0, len(MLP), 2):
        p.matmul(adead.Tensor(MLP[layer]), bias=adead.Tensor(MLP[layer + 1]))
        if layer + 2 < len(MLP):
            p.relu()
    return p.softmax(axis=-1).compile()


def block(ctx):
    """Returns a transformer encoder's block."""

    def linear(weight):
        return nn.Linear(adead.Tensor(weight), adead.Tensor(numpy.zeros(len(weight), numpy.float32)), ctx)

    def norm():
        return nn.LayerNorm(adead.Tensor(numpy.ones(768, numpy.float32)), adead.Tensor(numpy.zeros(768, numpy.float32)), 1e-12, ctx)

    qkv, output, inner, outer = map(linear, BLOCK_WEIGHTS)
    heads = nn.MultiHeadAttention(qkv, output, BLOCK["heads"])
    return nn.TransformerLayer(heads, norm(), nn.FeedForward(inner, outer, "gelu_erf"), norm())


TRAINED = mlp_weights(784, 512, 10)


def training(ctx):
    """Returns a step of a network of two layers, compiled: forward, backward, new weights."""
    p = ctx.pipeline().input((64, 784))
    x = p.value
    target = p.input((64, 10)).value
    weights = [p.input(weight.shape).value for weight in TRAINED]
    w1, b1, w2, b2 = weights
    error = p.switch(x).matmul(w1).add(b1).relu().matmul(w2).add(b2).sub(target).value
    p.switch(error).mul(error).mean(axis="all").output()
    for weight, slope in zip(weights, p.gradients(weights)):
        change = p.switch(slope).scale(0.01).value
        p.switch(weight).sub(change).output()
    return p.compile()


def work():
    """Returns the rows: a name, the operands, and a function that makes the call for a context."""
    rows = {}
    for n in (512, 1024, 2048, 4096):
        rows[f"matmul {n}"] = ((n, n), (n, n)), lambda ctx: ctx.matmul
    for name, n in (("10 K", 10_000), ("1 M", 1_000_000)):
        rows[f"vector add {name}"] = ((n,), (n,)), lambda ctx: ctx.add
    rows["reduce 1 M"] = ((1_000_000,),), lambda ctx: lambda x: ctx.sum(x, axis="all")
    rows["relu 1 M"] = ((1_000_000,),), lambda ctx: ctx.relu
    rows["attention 8×1024×64"] = ((1, 8, 1024, 64),) * 3, attention
    rows["ffn 512×768×3072"] = ((512, 768), (768, 3072), (3072,), (3072, 768), (768,)), lambda ctx: lambda *all: ctx.ffn(*all, activation="gelu_erf")
    rows["inference: MLP, 64 rows"] = ((64, 784),), mlp
    rows["inference: transformer block, 128×768"] = ((1, 128, 768),), block
    rows["training step: MLP, 64 rows"] = ((64, 784), (64, 10), *(weight.shape for weight in TRAINED)), training
    return rows


def torch_calls(torch):
    """Returns PyTorch's calls by row, which take tensors and a device."""
    functional = torch.nn.functional

    def made(weights, device):
        return [torch.from_numpy(weight).to(device) for weight in weights]

    def forward(x, weights):
        for layer in range(0, len(weights), 2):
            x = torch.addmm(weights[layer + 1], x, weights[layer])
            x = x.relu() if layer + 2 < len(weights) else x
        return x

    def inference(device):
        weights = made(MLP, device)
        return lambda x: forward(x, weights).softmax(-1)

    def encoder(device):
        layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, dropout=0, activation="gelu", batch_first=True)
        return layer.eval().to(device)

    def step(device):
        def run(x, target, *weights):
            weights = [weight.detach().requires_grad_() for weight in weights]
            with torch.enable_grad():
                loss = functional.mse_loss(forward(x, weights), target)
                slopes = torch.autograd.grad(loss, weights)
            return [loss.detach(), *(weight.detach() - 0.01 * slope for weight, slope in zip(weights, slopes))]

        return run

    return {
        "matmul": lambda device: torch.matmul, "vector": lambda device: torch.add, "reduce": lambda device: torch.sum,
        "relu": lambda device: torch.relu, "inference: MLP, 64 rows": inference, "training": step,
        "inference: transformer block, 128×768": encoder,
        "attention": lambda device: lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        "ffn": lambda device: lambda x, w1, b1, w2, b2: torch.addmm(b2, functional.gelu(torch.addmm(b1, x, w1)), w2),
    }  # fmt: skip


def many(result):
    return result if isinstance(result, (list, tuple)) else [result]


def adead_column(make, ctx, operands, there):
    """Returns a call that ends when its results are in host memory, or with `there` when the GPU has computed them."""
    call = make(ctx)
    if there:
        # A result of the GPU is only there, and so is what is computed from it.
        kept = [ctx.scale(operand, alpha=1.0) for operand in operands]
        ctx.wait()

        def run():
            result = call(*kept)
            ctx.wait()
            return result

        return run

    def from_host():
        result = call(*operands)
        for tensor in many(result):
            tensor.numpy()
        return result

    return from_host


def torch_column(torch, name, operands, device):
    calls = torch_calls(torch)
    make = calls.get(name) or calls[re.split(r"[ :]", name)[0]]
    call, kept = make(device), [torch.from_numpy(operand).to(device) for operand in operands]

    def run():
        with torch.no_grad():
            call(*kept)
            if device == "cuda":
                torch.cuda.synchronize()

    return run


def measure(calls, rounds, seconds):
    """Returns the median seconds of each call. The calls take turns."""
    counts = {}
    for column, call in calls.items():
        call()
        begun = time.perf_counter()
        call()
        counts[column] = max(1, min(10_000, int(seconds / max(time.perf_counter() - begun, 1e-7))))
    times = {column: [] for column in calls}
    for _ in range(rounds):
        for column, call in calls.items():
            begun = time.perf_counter()
            for _ in range(counts[column]):
                call()
            times[column].append((time.perf_counter() - begun) / counts[column])
    return {column: statistics.median(each) for column, each in times.items()}


def shown(seconds):
    if seconds is None:
        return ""
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def markdown(results):
    columns = [column for column in (*OURS, TORCH, TORCH_THERE) if any(column in row["seconds"] for row in results["rows"])]
    hoped = any(row["hope"] for row in results["rows"])
    head = ["", *columns, "speedup", "reaches", *(["hoped for"] if hoped else []), "bits"]
    lines = [head, ["---", *["--:"] * (len(head) - 1)]]
    for row in results["rows"]:
        fastest = min((row["seconds"][column], column) for column in OURS if column in row["seconds"])[1]
        cells = [f"**{shown(row['seconds'].get(column))}**" if column == fastest else shown(row["seconds"].get(column)) for column in columns]
        reached = f"{row['reaches']} ×" if row["reaches"] else "none"
        bits = "same" if row["same_bits"] else "DIFFERENT"
        lines.append([row["name"], *cells, f"{row['speedup']:.1f} ×", reached, *([row["hope"]] if hoped else []), bits])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    notes = "".join(f"- {note}\n" for note in results["notes"])
    machine = ", ".join(results["machine"]["devices"])
    return f"{table}\n\nThe first papers hoped for 15 ×, 20 ×, 40 × and 100–500 ×.\n\n- Machine: {machine}; adead {results['machine']['adead']}\n{notes}"


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="the GPU (default: the first that adead finds and that is not software; none: no GPU)")
    parser.add_argument("--only", default="", metavar="REGEX", help="rows whose name matches")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each column (default: 5)")
    parser.add_argument("--seconds", type=float, default=0.2, help="of one turn (default: 0.2)")
    parser.add_argument("--quick", action="store_true", help="1 short round, without matmul 4096: to see that it works")
    parser.add_argument("--without-torch", action="store_true", help="leave PyTorch out")
    parser.add_argument("--hope", action="append", default=[], metavar="ROW=TEXT", help="what was hoped for in a row; may be repeated")
    parser.add_argument("--out", type=Path, help="a folder for table.md and results.json")
    return parser.parse_args()


def gpu_of(name):
    """Returns the id of the GPU to measure, or None."""
    if name == "none":
        return None
    if name:
        return adead.Context(name).device.id
    hardware = [gpu.info for gpu in adead.hardware().gpus if gpu.info.kind != "software"]
    return hardware[0].id if hardware else None


def main():
    args = options()
    if args.quick:
        args.rounds, args.seconds = 1, 0.02
    hopes = dict(hope.split("=", 1) for hope in args.hope)
    torch, notes = None, []
    if not args.without_torch:
        try:
            import torch
        except ImportError:
            notes.append("PyTorch is not installed, so it has no column")
    if torch:
        torch.backends.cuda.matmul.allow_tf32 = False
        notes.append(f"PyTorch {torch.__version__}")
    gpu = gpu_of(args.device)
    contexts = {ONE: adead.Context("cpu", threads=1), ALL: adead.Context("cpu")}
    if gpu:
        contexts |= {THERE: adead.Context(gpu), HOST: adead.Context(gpu), HYBRID: adead.Context(f"cpu,{gpu}")}
        notes.append(f"GPU: {contexts[THERE].device.name} ({gpu})")
    else:
        notes.append("no GPU was measured")
    peers = {}
    if torch:
        peers = {TORCH: "cpu"} | ({TORCH_THERE: "cuda"} if gpu and torch.cuda.is_available() else {})
    rows, different = [], False
    for name, (shapes, make) in work().items():
        if not re.search(args.only, name) or (args.quick and name == "matmul 4096"):
            continue
        # Inputs have unit variance, as the layers' weights expect; weights of a step are those that it starts with.
        operands = [array(*shape) for shape in shapes]
        if name.startswith("training"):
            operands[2:] = TRAINED
        calls, hashes = {}, set()
        for column, ctx in contexts.items():
            try:
                call = adead_column(make, ctx, operands, column == THERE)
                hashes.add(hashlib.sha256(b"".join(tensor.tobytes() for tensor in many(call()))).hexdigest())
                calls[column] = call
            except adead.Error as error:
                notes.append(f"{name}, {column}: {error}")
        for column, device in peers.items():
            try:
                call = torch_column(torch, name, operands, device)
                call()
                calls[column] = call
            except (RuntimeError, TypeError, AttributeError) as error:
                notes.append(f"{name}, {column}: {error}")
        seconds = measure(calls, args.rounds, args.seconds)
        speedup = seconds[ONE] / min(seconds[column] for column in OURS if column in seconds)
        reaches = max((hope for hope in HOPES if speedup >= hope), default=None)
        different |= len(hashes) > 1
        rows.append({
            "name": name, "seconds": seconds, "speedup": speedup, "reaches": reaches, "hope": hopes.get(name, ""),
            "same_bits": len(hashes) == 1, "sha256": sorted(hashes),
        })  # fmt: skip
        print(f"{name}: {', '.join(f'{column} {shown(each)}' for column, each in seconds.items())}", file=sys.stderr, flush=True)
    if not rows:
        sys.exit(f"no row matches '{args.only}': {', '.join(work())}")
    devices = [f"{device.name} ({device.id}, {device.units} units)" for device in contexts.get(HYBRID, contexts[ALL]).devices]
    machine = {"devices": devices, "adead": adead.__version__, "contract": adead.CONTRACT, "python": platform.python_version()}
    results = {"schema": 1, "machine": machine, "rows": rows, "notes": notes, "hoped": "15, 20, 40, 100–500"}
    text = markdown(results)
    print(text)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / "table.md").write_text(text, encoding="utf-8")
        (args.out / "results.json").write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.exit(different)


main()
