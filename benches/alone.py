#!/usr/bin/env python3
"""Times a decoder's operations by themselves on the CPU, beside PyTorch's, to find which one a training step waits for.

    python3 benches/alone.py [--threads 1] [--rounds 7] [--only softmax] [--quick] [--without-torch]

Needs the wheel of adead and numpy, and torch unless it is left out. The shapes are those of the GPT of 4 blocks of 256 in benches/train.py,
batch 16 × 128. Prints the least milliseconds of the rounds, in which both take turns, and PyTorch's time divided by adead's.
"""

import argparse
import time

import adead
import numpy


def cases(context, torch, rows):
    """Yields names with adead's function and PyTorch's."""
    draw = numpy.random.default_rng(7)

    def both(*shape):
        values = draw.standard_normal(shape, dtype=numpy.float32)
        return adead.Tensor(values), torch and torch.from_numpy(values)

    for k, n in ((256, 768), (256, 256), (256, 1024), (1024, 256)):
        (a, ta), (b, tb) = both(rows, k), both(k, n)
        yield f"product {rows} x {k} x {n}", lambda a=a, b=b: context.matmul(a, b), lambda a=ta, b=tb: a @ b
    keys = 128
    texts = rows // keys
    q, tq = both(texts, 8, keys, 32)
    for causal in (False, True):
        yield (
            f"attention{', causal' * causal}",
            lambda causal=causal: context.attention(q, q, q, causal=causal),
            lambda causal=causal: torch.nn.functional.scaled_dot_product_attention(tq, tq, tq, is_causal=causal),
        )
    scores, t_scores = both(texts, 8, keys, keys)
    hidden = numpy.where(numpy.tril(numpy.ones((keys, keys), bool)), numpy.array(scores), -numpy.inf).astype(numpy.float32)
    t_hidden = torch and torch.from_numpy(hidden)
    hidden = adead.Tensor(hidden)
    yield "softmax of 128", lambda: context.softmax(scores), lambda: t_scores.softmax(-1)
    yield "softmax of 128, causal", lambda: context.softmax(hidden), lambda: t_hidden.softmax(-1)
    yield "sum of 128", lambda: context.sum(scores, axis=-1), lambda: t_scores.sum(-1)
    yield "product of elements", lambda: context.mul(scores, scores), lambda: t_scores * t_scores
    x, tx = both(rows, 256)
    yield "layernorm of 256", lambda: context.layernorm(x), lambda: torch.nn.functional.layer_norm(tx, (256,))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="operations whose name has this in it")
    parser.add_argument("--quick", action="store_true", help="an eighth of the rows, and two rounds")
    parser.add_argument("--without-torch", action="store_true")
    options = parser.parse_args()
    torch = None
    if not options.without_torch:
        import torch

        torch.set_num_threads(options.threads)
    context = adead.Context("cpu", threads=options.threads)
    rows, rounds = (256, 2) if options.quick else (2048, options.rounds)
    print(f"{'operation':24} {'adead ms':>9} {'PyTorch ms':>11} {'ratio':>6}")
    for name, *functions in cases(context, torch, rows):
        if options.only not in name:
            continue
        least = [float("inf")] * len(functions)
        # The first round warms up.
        for number in range(rounds + 1):
            for side, function in enumerate(functions[: 2 if torch else 1]):
                begin = time.perf_counter()
                function()
                if number:
                    least[side] = min(least[side], time.perf_counter() - begin)
        theirs = f"{1e3 * least[1]:11.2f} {least[1] / least[0]:6.2f}" if torch else ""
        print(f"{name:24} {1e3 * least[0]:9.2f} {theirs}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
