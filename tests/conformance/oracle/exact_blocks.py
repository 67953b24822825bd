"""Quantised blocks and their products, by docs/contract.md, in Python's integers.

A block of w becomes its integers; a row of x becomes blocks of integers with a scale each."""

from exact import F32, INF, MAGNITUDE, NAN, ONE, ZERO, add, div, fmaz, from_int, mul, neg, plus_zero, widen
from shapes import BLOCKS

TINY = 0x12800000  # 2^-90
MOST = from_int(127)


class Reader:
    """The bytes of a block, in order."""

    def __init__(self, data):
        self.data, self.at = list(data), 0

    def bytes(self, n):
        self.at += n
        return self.data[self.at - n:self.at]

    def f16(self):
        low, high = self.bytes(2)
        return widen("f16", high << 8 | low)

    def signed(self, n):
        return [byte - 256 if byte >= 128 else byte for byte in self.bytes(n)]


class Block:
    """Integers of the elements with their parts' scales and minima; m is None without minima."""

    def __init__(self, d, m, elements, scales, minima):
        self.d, self.m, self.elements = d, m, elements
        size = len(elements) // len(scales)
        self.scales = [scales[i // size] for i in range(len(elements))]
        self.minima = minima and [minima[i // size] for i in range(len(elements))]

    def values(self):
        """The elements as binary32."""
        for i, element in enumerate(self.elements):
            y = mul(mul(self.d, from_int(self.scales[i])), from_int(element))
            yield y if self.m is None else add(y, mul(self.m, from_int(self.minima[i])))


def nibbles(v):
    return [byte & 15 for byte in v] + [byte >> 4 for byte in v]


def parts(s):
    """The eight scales and the eight minima of twelve bytes."""
    scales = [s[j] % 64 for j in range(4)] + [(s[j + 4] & 15) + 16 * (s[j - 4] // 64) for j in range(4, 8)]
    minima = [s[j + 4] % 64 for j in range(4)] + [(s[j + 4] >> 4) + 16 * (s[j] // 64) for j in range(4, 8)]
    return scales, minima


def small_block(form, r):
    d, m = r.f16(), r.f16() if form.endswith("_1") else None
    if form == "q8_0":
        return Block(d, m, r.signed(32), [1], None)
    bits = sum(byte << 8 * i for i, byte in enumerate(r.bytes(4))) if form.startswith("q5") else 0
    offset = {"q4_0": 8, "q5_0": 16}.get(form, 0)
    elements = [nibble + 16 * (bits >> i & 1) - offset for i, nibble in enumerate(nibbles(r.bytes(16)))]
    return Block(d, m, elements, [1], m is not None and [1])


def k_block(form, r):
    d, m, (scales, minima) = r.f16(), neg(r.f16()), parts(r.bytes(12))
    h = r.bytes(32) if form == "q5_k" else [0] * 32
    v, elements = r.bytes(128), []
    for i in range(256):
        j = i // 32
        byte = v[32 * (j // 2) + i % 32]
        elements.append((byte >> 4 if j % 2 else byte & 15) + 16 * (h[i % 32] >> j & 1))
    return Block(d, m, elements, scales, minima)


def q6_block(r):
    v, h, scales, d = r.bytes(128), r.bytes(64), r.signed(16), r.f16()
    elements = []
    for i in range(256):
        a, b, c = i // 128, i % 128 // 32, i % 32
        byte = v[64 * a + 32 * (b % 2) + c]
        elements.append((byte & 15 if b < 2 else byte >> 4) + 16 * (h[32 * a + c] >> 2 * b & 3) - 32)
    return Block(d, None, elements, scales, None)


def decode(form, data):
    """The blocks of consecutive bytes."""
    size, blocks = BLOCKS[form][0], []
    for start in range(0, len(data), size):
        r = Reader(data[start:start + size])
        if form == "q6_k":
            blocks.append(q6_block(r))
        else:
            blocks.append(k_block(form, r) if form.endswith("_k") else small_block(form, r))
        assert r.at == size and len(blocks[-1].elements) == BLOCKS[form][1]
    return blocks


def rint(a):
    """A finite binary32 to the nearest integer, ties to even."""
    negative, n, e = F32.parts(a)
    if e >= 0:
        whole = n << e
    else:
        twice, unit = 2 * n, 1 << -e
        whole = (twice + unit) // (2 * unit)
        if (twice + unit) % (2 * unit) == 0 and whole % 2:
            whole -= 1
    return -whole if negative else whole


def cut(form, row):
    """A row of x as (dx, integers) of each block."""
    size, blocks = BLOCKS[form][1], []
    for start in range(0, len(row), size):
        x = row[start:start + size]
        m = max(element & MAGNITUDE for element in x)
        if m >= INF:
            blocks.append((NAN, [0] * size))
        elif m < TINY:
            blocks.append((ZERO, [0] * size))
        else:
            f = div(MOST, m)
            blocks.append((div(m, MOST), [rint(mul(element, f)) for element in x]))
            assert all(abs(q) <= 127 for q in blocks[-1][1])
    return blocks


def total(row, column):
    """The product of a row of x and a row of w."""
    t = None
    chunk = 256 // len(column[0].elements) if column else 1
    for start in range(0, len(column), chunk):
        p = ZERO
        for (dx, q), block in zip(row[start:start + chunk], column[start:start + chunk]):
            s = sum(scale * w * x for scale, w, x in zip(block.scales, block.elements, q))
            p = fmaz(from_int(s), mul(block.d, dx), p)
            if block.m is not None:
                m = sum(minimum * x for minimum, x in zip(block.minima, q))
                p = fmaz(from_int(m), mul(block.m, dx), p)
        t = p if t is None else fmaz(p, ONE, t)
    return ZERO if t is None else plus_zero(t)
