#!/usr/bin/env python3
"""Writes draws.txt: what a generator with seed 7 draws, by the rules of docs/contract.md ("Random tensors") and the exact arithmetic of
tests/conformance/oracle. Every language's tests compare their draws with it.

    tests/random/draws.py            writes it
    tests/random/draws.py --check    fails if it differs
"""

import struct
import sys
from itertools import count
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "conformance/oracle"))

import exact  # noqa: E402
from exact_functions import cos, log  # noqa: E402

HEAD = """# Draws 0 to 5 of the seed 7: elements in hexadecimal, as integers of their bits, row-major. Written by draws.py.
"""


def philox(counter, key):
    for _ in range(10):
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        high = [second >> 32 ^ counter[1] ^ key[0], first >> 32 ^ counter[3] ^ key[1]]
        counter = [high[0], second & 0xFFFFFFFF, high[1], first & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


def words(draw):
    for block in count():
        yield from philox([block, draw, 0, 5], [7, 0])


def f32(number):
    return struct.unpack("<I", struct.pack("<f", number))[0]


def units(draw, elements):
    return [f32((word >> 8) * 2.0**-24) for word, _ in zip(words(draw), range(elements))]


def uniform(draw, low, high, elements):
    return [exact.add(exact.mul(u, f32(high - low)), f32(low)) for u in units(draw, elements)]


def standard_normal(draw, elements):
    pairs = units(draw, 2 * elements)
    radius = [exact.sqrt(exact.mul(log(exact.add(u, f32(2.0**-24))), f32(-2.0))) for u in pairs[::2]]
    return [exact.mul(r, cos(exact.mul(u, 0x40C90FDB))) for r, u in zip(radius, pairs[1::2])]


def normal(draw, mean, deviation, elements):
    return [exact.add(exact.mul(z, f32(deviation)), f32(mean)) for z in standard_normal(draw, elements)]


def integers(draw, low, different, elements):
    return [(low + (word * different >> 32)) % 2**64 for word, _ in zip(words(draw), range(elements))]


def permutation(draw, entries):
    order = list(range(entries))
    for last, word in zip(range(entries - 1, 0, -1), words(draw)):
        other = word * (last + 1) >> 32
        order[last], order[other] = order[other], order[last]
    return order


def text():
    lines = [
        ("uniform 0 1, 2×3", uniform(0, 0.0, 1.0, 6), 8),
        ("uniform -2.5 4, 5", uniform(1, -2.5, 4.0, 5), 8),
        ("standard normal, 2×2", standard_normal(2, 4), 8),
        ("normal 3 0.5, 4", normal(3, 3.0, 0.5, 4), 8),
        ("integers -10 to 90, 6", integers(4, -10, 100, 6), 16),
        ("permutation of 8", permutation(5, 8), 16),
    ]
    return HEAD + "".join(f"{call}: {' '.join(f'{n:0{digits}x}' for n in found)}\n" for call, found, digits in lines)


def main():
    path = HERE / "draws.txt"
    if sys.argv[1:] == ["--check"]:
        if path.read_text("utf-8") != text():
            sys.exit("tests/random/draws.txt is not what tests/random/draws.py writes")
    elif sys.argv[1:]:
        sys.exit("usage: tests/random/draws.py [--check]")
    else:
        path.write_text(text(), "utf-8")


if __name__ == "__main__":
    main()
