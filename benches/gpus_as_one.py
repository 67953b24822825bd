#!/usr/bin/env python3
"""Measures one context of several GPUs beside a context of one, with operands and results that stay on them.

    python3 benches/gpus_as_one.py [--devices cuda:0 'cuda:*'] [--precision f32] [--rounds 7] [--only ITEM] [--quick]

Needs the packages adead and numpy. Rounds alternate. The output has medians, the speedup (the time of the first device divided by
the second's, the median of the rounds' ratios), and whether all bits are equal. A number that the host reads ends each round.

Items: a matrix on one GPU copied to the other; products of square matrices; the feed-forward block and the whole layer of language
models with made-up weights: SmolLM2-135M's sizes (64 sequences of 256 tokens) and those of a model of 7 billion weights (4 of 1,024).
`--quick` takes tiny sizes instead, to see that everything runs on any devices.
"""

import argparse
import hashlib
import statistics
import time

import adead
import numpy

RANDOM = numpy.random.default_rng(0)
# Width, heads, width of the feed-forward block, sequences, tokens of each.
TINY, SMALL, LARGE = (64, 4, 96, 2, 8), (576, 9, 1536, 64, 256), (4096, 32, 11008, 4, 1024)


def made_up(*dims):
    return adead.Tensor(RANDOM.standard_normal(dims, dtype="f4") * numpy.float32(dims[-1] ** -0.5))


def product(n):
    a, b = made_up(n, n), made_up(n, n)
    return lambda ctx, state: ctx.matmul(state, b), a


def block(sizes):
    width, _, inner, sequences, tokens = sizes
    norm, gate, up, down = made_up(width), made_up(width, inner), made_up(width, inner), made_up(inner, width)

    def run(ctx, x):
        y = ctx.rmsnorm(x, norm)
        y = ctx.mul(ctx.silu(ctx.matmul(y, gate)), ctx.matmul(y, up))
        return ctx.add(x, ctx.matmul(y, down))

    return run, made_up(sequences, tokens, width)


def layer(sizes):
    width, heads, _, sequences, tokens = sizes
    after, x = block(sizes)
    norm, weights = made_up(width), [made_up(width, width) for _ in range(4)]
    split, turned = (sequences, tokens, heads, width // heads), (0, 2, 1, 3)

    def run(ctx, x):
        y = ctx.rmsnorm(x, norm)
        q, k, v = (ctx.transpose(ctx.matmul(y, w).reshape(split), turned) for w in weights[:3])
        y = ctx.transpose(ctx.attention(q, k, v, causal=True), turned).reshape((sequences, tokens, width))
        return after(ctx, ctx.add(x, ctx.matmul(y, weights[3])))

    return run, x


ITEMS = {
    "matmul 2048": lambda: product(2048),
    "matmul 4096": lambda: product(4096),
    "matmul 8192": lambda: product(8192),
    "ffn 7B": lambda: block(LARGE),
    "layer 7B": lambda: layer(LARGE),
    "ffn SmolLM2": lambda: block(SMALL),
    "layer SmolLM2": lambda: layer(SMALL),
}
QUICK = {"matmul 64": lambda: product(64), "ffn tiny": lambda: block(TINY), "layer tiny": lambda: layer(TINY)}


def copying(devices, rounds):
    """Copies 256 MiB from one GPU to the other, beside the way through host memory."""
    first, second = (adead.Context(device) for device in devices)
    start = made_up(8192, 8192)
    direct, through = [], []
    for _ in range(rounds):
        for times, ends in ((direct, None), (through, "host")):
            x = first.add(start, start)
            finish(first, x)
            begin = time.perf_counter()
            finish(second, second.relu(numpy.asarray(x) if ends else x))
            times.append(time.perf_counter() - begin)
    sides = [1e3 * statistics.median(times) for times in (direct, through)]
    print(f"256 MiB to the other GPU: {sides[0]:.2f} ms, through the host {sides[1]:.1f} ms", flush=True)


def repeated(run, ctx, state, times):
    for _ in range(times):
        state = run(ctx, state)
    return state


def finish(ctx, x):
    """Waits for a result: reads a sum of each row."""
    return numpy.asarray(ctx.sum(x, axis=-1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", nargs=2, default=["cuda:0", "cuda:*"])
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--repeat", type=int, default=8, help="calls in a round, each with the result of the one before")
    parser.add_argument("--only", choices=ITEMS)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    contexts = [adead.Context(device, precision=options.precision) for device in options.devices]
    if len(contexts[1].devices) > 1 and not options.only and not options.quick:
        copying([device.id for device in contexts[1].devices[:2]], options.rounds)
    different = False
    for name, make in (QUICK if options.quick else ITEMS).items():
        if options.only not in (None, name):
            continue
        run, x = make()

        # The values are where the context leaves results, not in host memory.
        starts = {ctx: ctx.scale(x, 1.0) for ctx in contexts}
        hashes = {hashlib.sha256(numpy.asarray(run(ctx, x)).tobytes()).digest() for ctx in contexts}
        rounds = []
        for _ in range(options.rounds + 1):
            times = []
            for ctx in contexts:
                begin = time.perf_counter()
                finish(ctx, repeated(run, ctx, starts[ctx], options.repeat))
                times.append((time.perf_counter() - begin) / options.repeat)
            rounds.append(times)
        rounds = rounds[1:]
        first, second = (1e3 * statistics.median(times[side] for times in rounds) for side in (0, 1))
        speedup = statistics.median(times[0] / times[1] for times in rounds)
        different |= len(hashes) > 1
        bits = "same bits" if len(hashes) == 1 else "BITS DIFFER"
        print(f"{name:14} {first:9.3f} ms, together {second:9.3f} ms, {speedup:.2f} times as fast, {bits}", flush=True)
    raise SystemExit(different)


if __name__ == "__main__":
    main()
