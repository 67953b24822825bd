#!/usr/bin/env python3
"""Measures a run of elementwise operations on the CPU: x·a + b, gelu, ·c, + residual, with rows a, b and c of 1,024 values.

    python3 benches/runs.py [--threads 1 2] [--elements 65536 1048576] [--rounds 15] [--quick]

Needs the packages adead and numpy. Columns: the run as a pipeline; its operations one by one; a pipeline of gelu alone and one of the
other four operations; and, if they are installed, numexpr and PyTorch, eager and compiled. numexpr has no erf, so all compute the tanh
form of gelu with `--form tanh`, and numexpr is left out otherwise. Libraries take turns. A number is the median of the rounds, in µs,
and a ratio is a peer's time divided by the pipeline's, the median of the rounds' ratios. The exit status is 1 if the pipeline's
bits are not those of its operations.
"""

import argparse
import statistics
import sys
import time

import adead
import numpy

ROW = 1024
# A turn lasts at least this long.
TURN_S = 0.02
# Of gelu's tanh form.
NUMBERS = {"half": 0.5, "one": 1, "k": 0.7978845608, "j": 0.044715}


def turn(call):
    begin, count = time.perf_counter(), 0
    while count == 0 or time.perf_counter() - begin < TURN_S:
        call()
        count += 1
    return (time.perf_counter() - begin) / count


def calls(threads, elements, form):
    """Returns what is measured, by name. The first two results must have the same bits."""
    ctx = adead.Context("cpu", threads=threads)
    random = numpy.random.default_rng(0)
    dims = (elements // ROW, ROW)
    arrays = [random.standard_normal(shape, dtype="f4") for shape in (dims, dims, ROW, ROW, ROW)]
    x, residual, a, b, c = map(adead.Tensor, arrays)

    def recorded(*names):
        pipeline = ctx.pipeline().input(dims)
        value = pipeline.value
        pipeline = pipeline.input(dims)
        other = pipeline.value
        pipeline = pipeline.switch(value)
        steps = {
            "mul": lambda p: p.mul(a),
            "shift": lambda p: p.add(b),
            "gelu": lambda p: p.gelu(form=form),
            "scale": lambda p: p.mul(c),
            "add": lambda p: p.add(other),
        }
        for name in names:
            pipeline = steps[name](pipeline)
        compiled = pipeline.compile()
        return lambda: compiled(x, residual)

    def single():
        return ctx.add(ctx.mul(ctx.gelu(ctx.add(ctx.mul(x, a), b), form=form), c), residual)

    found = {
        "pipeline": recorded("mul", "shift", "gelu", "scale", "add"),
        "one by one": single,
        "gelu alone": recorded("gelu"),
        "the others": recorded("mul", "shift", "scale", "add"),
    }
    try:
        if form == "tanh":
            import numexpr

            numexpr.set_num_threads(threads)
            # Constants in the text would make it compute in doubles.
            values = dict(zip("xrabc", arrays)) | {name: numpy.float32(number) for name, number in NUMBERS.items()}
            text = "half*H*(one+tanh(k*(H+j*H*H*H)))*c+r".replace("H", "(x*a+b)")
            found["numexpr"] = lambda: numexpr.evaluate(text, local_dict=values)
    except ImportError:
        pass
    try:
        import torch

        torch.set_num_threads(threads)
        tx, tr, ta, tb, tc = map(torch.from_numpy, arrays)
        approximate = "tanh" if form == "tanh" else "none"

        def eager(tx, tr, ta, tb, tc):
            return torch.nn.functional.gelu(tx * ta + tb, approximate=approximate) * tc + tr

        compiled = torch.compile(eager)
        found["PyTorch"] = lambda: eager(tx, tr, ta, tb, tc)
        found["compiled"] = lambda: compiled(tx, tr, ta, tb, tc)
    except ImportError:
        pass
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--elements", type=int, nargs="+", default=[65_536, 1_048_576])
    parser.add_argument("--form", choices=["erf", "tanh"], default="erf")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--quick", action="store_true", help="one round, to see that everything runs")
    options = parser.parse_args()
    rounds = 1 if options.quick else options.rounds
    same = True
    for threads in options.threads:
        for elements in options.elements:
            if elements < ROW or elements % ROW:
                parser.error(f"--elements: {elements} is not a positive multiple of {ROW}")
            measured = calls(threads, elements, options.form)
            first, second = (measured[name]() for name in ("pipeline", "one by one"))
            same &= numpy.asarray(first).tobytes() == numpy.asarray(second).tobytes()
            turns = [{name: turn(call) for name, call in measured.items()} for _ in range(rounds)]
            print(f"{elements} elements, threads: {threads}")
            for name in measured:
                us = 1e6 * statistics.median(times[name] for times in turns)
                ratio = statistics.median(times[name] / times["pipeline"] for times in turns)
                print(f"  {name:<12} {us:9.1f} µs  {ratio:5.2f}")
    print("the pipeline has the bits of its operations" if same else "DIFFERENT BITS")
    sys.exit(not same)


if __name__ == "__main__":
    main()
