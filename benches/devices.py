#!/usr/bin/env python3
"""Times large operations on several devices in one run, in turns, from host memory to host memory.

    adead calibrate
    python3 benches/devices.py cpu cuda:0 cuda:0,cuda:1 hybrid

Needs the packages adead and numpy, and 4 GB of memory. Prints medians of five, and whether all devices gave the same bits.
"""

import hashlib
import statistics
import sys
import time

import adead
import numpy

ROUNDS = 5


def array(*dims):
    return adead.Tensor(RANDOM.standard_normal(dims).astype("f4"))


RANDOM = numpy.random.default_rng(0)
small, large, heads, rows = array(4096, 4096), array(8192, 8192), array(4, 16, 2048, 64), array(16384, 4096)
WORK = {
    "matmul 4096": lambda context: context.matmul(small, small),
    "matmul 8192": lambda context: context.matmul(large, large),
    "attention 4x16x2048x64": lambda context: context.attention(heads, heads, heads),
    "softmax 16384x4096": lambda context: context.softmax(rows),
}

contexts = {device: adead.Context(device) for device in sys.argv[1:]} or sys.exit(__doc__)
different = False
for name, work in WORK.items():
    times = {device: [] for device in contexts}
    hashes = {hashlib.sha256(numpy.asarray(work(context)).tobytes()).digest() for context in contexts.values()}
    for _ in range(ROUNDS):
        for device, context in contexts.items():
            begun = time.perf_counter()
            numpy.asarray(work(context))
            times[device].append(time.perf_counter() - begun)
    different |= len(hashes) > 1
    shown = ", ".join(f"{device} {1e3 * statistics.median(each):.1f} ms" for device, each in times.items())
    print(f"{name}: {shown}; {'same bits' if len(hashes) == 1 else 'BITS DIFFER'}", flush=True)
sys.exit(different)
