#!/usr/bin/env python3
"""Times products, pipelines of products with constants, and attention in f32, fixed24 and fixed16, beside PyTorch's in fp32, in one
run, in turns.

    python3 benches/precision.py [--device cpu|cuda:0] [--threads 1] [--rounds 7] [--only attention] [--quick] [--without-torch]

Needs the wheel of adead and numpy, and torch unless it is left out. Operands are on the device. A right operand is multiplied as it is,
and packed in advance. Prints PyTorch's time in microseconds, and this divided by adead's; without PyTorch, f32's is the first. A time is
the median of the rounds; a round has as many calls one after the other as take some 20 ms. Packed or not, the results must be the same.
"""

import argparse
import functools
import statistics
import time

import adead
import numpy

PRECISIONS = ("f32", "fixed24", "fixed16")
COLUMNS = ("f32", "packed", "fixed24", "packed", "fixed16", "packed")
PRODUCTS = ((1, 4096, 4096), (8, 4096, 4096), (32, 384, 1536), (128, 1024, 4096), (512, 512, 512), (1024, 1024, 1024))
LARGE = ((4096, 4096, 4096),)
PIPELINES = ((1, 4096, 4), (8, 4096, 4), (32, 2048, 4), (128, 1024, 4))
ATTENTIONS = ((8, 12, 128, 32), (32, 12, 32, 32), (1, 8, 512, 64), (1, 4, 1024, 128))
SECONDS = 0.02


class Peer:
    """PyTorch on the same device, without TF32. It has no Vulkan: beside `vulkan:0` it takes `cuda:0`."""

    def __init__(self, torch, device, threads):
        self.torch, self.device = torch, device.replace("cpu:0", "cpu").replace("vulkan", "cuda")
        torch.set_num_threads(threads)
        torch.backends.cuda.matmul.allow_tf32 = False

    def tensor(self, values):
        return self.torch.from_numpy(values).to(self.device)

    def wait(self):
        if self.device != "cpu":
            self.torch.cuda.synchronize()


def items(contexts, peer, large, only):
    """Yields names with PyTorch's function and adead's, one for each column; None where there is none."""
    draw = numpy.random.default_rng(7)
    here = contexts["f32"]

    def operand(*shape):
        values = draw.standard_normal(shape, dtype=numpy.float32)
        return adead.Tensor(values), peer and peer.tensor(values)

    for m, k, n in PRODUCTS + (LARGE if large else ()):
        name = f"product {m} x {k} x {n}"
        if only not in name:
            continue
        (a, ta), (b, tb) = operand(m, k), operand(k, n)
        functions = []
        for context in contexts.values():
            packed = context.pack(b)
            first, second = (context.matmul(a, right).tobytes() for right in (b, packed))
            if first != second:
                raise SystemExit(f"{name}: with b packed the result differs")
            functions.append(lambda context=context, b=b: context.matmul(a, b))
            functions.append(lambda context=context, packed=packed: context.matmul(a, packed))
        if here.device.kind != "cpu":
            functions[1] = None  # A GPU packs for exact integers only.
        yield name, lambda ta=ta, tb=tb: ta @ tb, functions
    for rows, width, count in PIPELINES:
        name = f"pipeline {rows} x {width}, {count} products"
        if only not in name:
            continue
        x, tx = operand(rows, width)
        weights = [operand(width, width) for _ in range(count)]
        functions = []
        for context in contexts.values():
            pipeline = context.pipeline().input(x.shape)
            for weight, _ in weights:
                pipeline = pipeline.matmul(weight)
            # An input that only the device has leaves the results there.
            functions += [lambda run=pipeline.output().compile().run, own=context.scale(x, alpha=1 / 64): run(own), None]
        yield name, lambda tx=tx, weights=weights: functools.reduce(lambda x, w: x @ w[1], weights, tx), functions
    for shape in ATTENTIONS:
        name = f"attention {' x '.join(map(str, shape))}"
        if only not in name:
            continue
        (q, tq), (k, tk), (v, tv) = (operand(*shape) for _ in range(3))
        functions = []
        for context in contexts.values():
            functions += [lambda context=context: context.attention(q, k, v), None]
        yield name, lambda: peer.torch.nn.functional.scaled_dot_product_attention(tq, tk, tv), functions


def seconds(function, wait, calls):
    begin = time.perf_counter()
    for _ in range(calls):
        function()
    wait()
    return (time.perf_counter() - begin) / calls


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="items whose name has this in it")
    parser.add_argument("--quick", action="store_true", help="two rounds of one call each")
    parser.add_argument("--without-torch", action="store_true")
    options = parser.parse_args()
    peer = None
    if not options.without_torch:
        import torch

        peer = Peer(torch, options.device, options.threads)
    here = adead.Context(options.device, threads=options.threads)
    contexts = {precision: here.with_precision(precision) for precision in PRECISIONS}
    print(f"{'':30} {'µs':>9} " + " ".join(f"{column:>8}" for column in COLUMNS))
    for name, theirs, functions in items(contexts, peer, here.device.kind != "cpu", options.only):
        sides = [(theirs, peer.wait)] if peer else []
        sides += [(function, here.wait) for function in functions if function]
        calls = []
        for function, wait in sides:
            seconds(function, wait, 1)
            calls.append(1 if options.quick else max(1, min(1000, int(SECONDS / seconds(function, wait, 3)))))
        taken = [[] for _ in sides]
        for _ in range(2 if options.quick else options.rounds):
            for kept, (function, wait), count in zip(taken, sides, calls):
                kept.append(seconds(function, wait, count))
        medians = [statistics.median(kept) for kept in taken]
        ours = iter(medians[1:] if peer else medians)
        ratios = " ".join(f"{medians[0] / next(ours):8.2f}" if function else f"{'':8}" for function in functions)
        print(f"{name:30} {1e6 * medians[0]:9.1f} {ratios}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
