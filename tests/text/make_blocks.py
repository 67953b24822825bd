#!/usr/bin/env python3
"""Computes the bytes of quantised blocks by itself, from docs/contract.md, "Quantising".

    python3 make_blocks.py            writes blocks.txt: lines of FORMAT, the bits of f32 values, bytes
    python3 make_blocks.py --check    fails where they would be others

It shares nothing with adead. Python's floats are f64: rounded to f32, a sum, difference, product, quotient or root of two f32 is what
f32 arithmetic gives, because f64 has more than twice the bits of f32.
"""

import math
import struct
import sys
from pathlib import Path

HERE = Path(__file__).parent
EPSILON = 2.0**-40


def f(x):
    """Rounds to f32."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


def half(x):
    return struct.pack("<e", x)


def widened(data):
    return struct.unpack("<e", data)[0]


def inverse(d):
    if d == 0 or 1 / d > 3.4028235677973366e38 or 1 / d < -3.4028235677973366e38:
        return 0.0
    return f(1 / d)


def nearest(x, least, most):
    return min(max(round(x), least), most)


def total(terms):
    sum_ = 0.0
    for term in terms:
        sum_ = f(sum_ + term)
    return sum_


def largest(values):
    """The value of the largest magnitude, of equal ones the first; +0 without another."""
    found = 0.0
    for value in values:
        if abs(value) > abs(found):
            found = value
    return found


def nibbles(codes):
    return bytes(low | high << 4 for low, high in zip(codes[:16], codes[16:]))


def four_or_five(codes, bits):
    high = b"" if bits == 4 else struct.pack("<I", sum((code >> 4) << i for i, code in enumerate(codes)))
    return high + nibbles([code & 15 for code in codes])


def q8_0(x):
    d = f(abs(largest(x)) / 127)
    r = inverse(d)

    def away(value):
        whole = math.floor(abs(value))
        whole += abs(value) - whole >= 0.5
        return -whole if value < 0 else whole

    return half(d) + struct.pack("<32b", *(away(f(value * r)) for value in x))


def centred(bits):
    middle = 2 ** (bits - 1)

    def block(x):
        d = f(largest(x) / -middle)
        r = inverse(d)
        codes = [min(math.floor(f(f(value * r) + middle + 0.5)), 2 * middle - 1) for value in x]
        return half(d) + four_or_five(codes, bits)

    return block


def with_minimum(bits):
    most = 2**bits - 1

    def block(x):
        low = min(x)
        d = f(f(max(x) - low) / most)
        r = inverse(d)
        codes = [min(math.floor(f(f(f(value - low) * r) + 0.5)), most) for value in x]
        return half(d) + half(low) + four_or_five(codes, bits)

    return block


def affine(x, most, begin, steps):
    root = f(math.sqrt(f(total(f(v * v) for v in x) / 32)))
    w = [f(root + abs(v)) for v in x]
    low = min(0.0, min(x))
    span = f(max(x) - low)
    if span < EPSILON:
        return 0.0, -low

    def divided(factor):
        return [nearest(f(factor * f(v - low)), 0, most) for v in x]

    def error(codes, a, c):
        apart = [f(f(f(a * code) + c) - v) for code, v in zip(codes, x)]
        return total(f(weight * f(t * t)) for weight, t in zip(w, apart))

    factor = f(most / span)
    a, c = f(1 / factor), low
    best = error(divided(factor), a, c)
    all_w, all_x = total(w), total(f(weight * v) for weight, v in zip(w, x))
    for s in range(steps + 1):
        codes = divided(f(f(f(begin + f(f(0.1) * s)) + most) / span))
        weighted = [f(weight * code) for weight, code in zip(w, codes)]
        sum_l = total(weighted)
        sum_ll = total(f(part * code) for part, code in zip(weighted, codes))
        sum_xl = total(f(part * v) for part, v in zip(weighted, x))
        divisor = f(f(all_w * sum_ll) - f(sum_l * sum_l))
        if not divisor > 0:
            continue
        own = f(f(f(all_w * sum_xl) - f(all_x * sum_l)) / divisor)
        offset = f(f(f(sum_ll * all_x) - f(sum_l * sum_xl)) / divisor)
        if offset > 0:
            own, offset = f(sum_xl / sum_ll), 0.0
        apart = error(codes, own, offset)
        if apart < best:
            best, a, c = apart, own, offset
    return a, -c


def packed_scales(scales, minima):
    """6 bits each, in 12 bytes."""
    low = [scales[j] | (scales[j + 4] >> 4) << 6 for j in range(4)]
    middle = [minima[j] | (minima[j + 4] >> 4) << 6 for j in range(4)]
    high = [scales[j] & 15 | (minima[j] & 15) << 4 for j in range(4, 8)]
    return bytes(low + middle + high)


def parts_with_minima(bits, begin, steps):
    most = 2**bits - 1

    def block(x):
        parts = [x[i : i + 32] for i in range(0, 256, 32)]
        found = [affine(part, most, begin, steps) for part in parts]
        of_scales, of_minima = max(0.0, *(a for a, _ in found)), max(0.0, *(m for _, m in found))
        d, m = half(f(of_scales / 63)), half(f(of_minima / 63))

        def integers(values, of):
            factor = f(63 / of) if of >= EPSILON else 0.0
            return [nearest(f(factor * value), 0, 63) for value in values]

        scales, minima = integers([a for a, _ in found], of_scales), integers([m for _, m in found], of_minima)
        codes = []
        for part, scale, minimum in zip(parts, scales, minima):
            own, offset = f(widened(d) * scale), f(widened(m) * minimum)
            codes.append([nearest(f(f(v + offset) / own), 0, most) if own else 0 for v in part])
        high = bytes(sum((codes[j][c] >> 4) << j for j in range(8)) for c in range(32)) if bits == 5 else b""
        low = [bytes(codes[j][c] & 15 | (codes[j + 1][c] & 15) << 4 for c in range(32)) for j in range(0, 8, 2)]
        return d + m + packed_scales(scales, minima) + high + b"".join(low)

    return block


def symmetric(x):
    y = largest(x)
    if abs(y) < EPSILON:
        return 0.0

    def sums(factor):
        codes = [nearest(f(factor * v), -32, 31) for v in x]
        return (total(f(f(f(v * v) * v) * code) for v, code in zip(x, codes)),
                total(f(f(f(v * v) * code) * code) for v, code in zip(x, codes)))  # fmt: skip

    p, q = sums(f(-32 / y))
    a = f(p / q) if q else 0.0
    best = f(a * p)
    for s in range(-9, 10):
        if s:
            p, q = sums(f(-f(32 + f(f(0.1) * s)) / y))
            if q > 0 and f(p * p) > f(best * q):
                a = f(p / q)
                best = f(a * p)
    return a


def q6_k(x):
    parts = [x[i : i + 16] for i in range(0, 256, 16)]
    found = [symmetric(part) for part in parts]
    most = largest(found)
    if abs(most) < EPSILON:
        return bytes(210)
    factor = f(-128 / most)
    d = half(f(1 / factor))
    scales = [nearest(f(factor * a), -128, 127) for a in found]
    codes = []
    for part, scale in zip(parts, scales):
        own = f(widened(d) * scale)
        codes += [nearest(f(v / own), -32, 31) + 32 if own else 0 for v in part]
    low, high = b"", b""
    for base in (0, 128):
        four = [codes[base + 32 * b : base + 32 * b + 32] for b in range(4)]
        low += bytes(a & 15 | (b & 15) << 4 for pair in (0, 1) for a, b in zip(four[pair], four[pair + 2]))
        high += bytes(a >> 4 | b >> 4 << 2 | c >> 4 << 4 | e >> 4 << 6 for a, b, c, e in zip(*four))
    return low + high + struct.pack("<16b", *scales) + d


FORMATS = {
    "q8_0": (32, q8_0),
    "q4_0": (32, centred(4)),
    "q4_1": (32, with_minimum(4)),
    "q5_0": (32, centred(5)),
    "q5_1": (32, with_minimum(5)),
    "q4_k": (256, parts_with_minima(4, -1.0, 20)),
    "q5_k": (256, parts_with_minima(5, -0.5, 15)),
    "q6_k": (256, q6_k),
}


class Draw:
    def __init__(self, seed):
        self.state = seed

    def __call__(self):
        """A number between -1 and 1 of f32."""
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 40) / 2**23 - 1


def inputs(count, draw):
    """Blocks of so many values: drawn ones of several shapes, then special ones."""

    def normal():
        return sum(draw() for _ in range(6)) / 2

    yield [f(draw()) for _ in range(count)]
    yield [f(0.02 * normal()) for _ in range(count)]
    yield [f(0.02 * normal() * (20 if i % 61 == 7 else 1)) for i in range(count)]
    yield [f(math.exp(4 * draw()) * (1 if draw() > 0 else -1)) for _ in range(count)]
    yield [f(abs(draw()) + 0.5) for _ in range(count)]
    yield [f(-abs(draw()) - 0.5) for _ in range(count)]
    yield [f(40000 * draw()) for _ in range(count)]
    yield [f(3e-6 * draw()) for _ in range(count)]
    # Parts of other magnitudes, some of which a block's scale can't reach.
    yield [f(draw() * 10.0 ** (i * 8 // count - 5)) for i in range(count)]
    yield [round(8 * draw()) / 2 for _ in range(count)]
    yield [0.0] * count
    yield [0.0 if i % 2 else -0.0 for i in range(count)]
    yield [0.75] * count
    yield [-0.3125] * count
    yield [1.5 if i == 5 else 0.0 for i in range(count)]
    yield [f(-2.5e-3) if i == count - 1 else 0.0 for i in range(count)]
    # As large with either sign: the first counts.
    yield [(-1.0) ** i for i in range(count)]
    # Subnormal numbers, and numbers whose scale in f16 is 0.
    yield [f(1e-40 * draw()) for _ in range(count)]
    yield [f(1e-9 * draw()) for _ in range(count)]
    # Half of them nothing.
    yield [f(draw()) if i * 4 // count % 2 else 0.0 for i in range(count)]


def text():
    draw, lines = Draw(2029), []
    for name, (count, block) in FORMATS.items():
        for values in inputs(count, draw):
            data = b"".join(struct.pack("<f", value) for value in values)
            lines.append(f"{name} {data.hex()} {block(values).hex()}\n")
    return "".join(lines)


def main():
    path, contents = HERE / "blocks.txt", text()
    if "--check" not in sys.argv[1:]:
        path.write_text(contents)
    elif path.read_text() != contents:
        sys.exit(f"{path} is not what make_blocks.py writes")
    print(f"blocks.txt: {len(contents)} bytes")


if __name__ == "__main__":
    main()
