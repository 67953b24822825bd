"""Tensors as flat arrays of bit patterns, and the data notation of FORMAT.md in plain Python."""

import hashlib
import sys
from array import array
from math import prod

from exact import F32, FLOAT_FORMATS, SIGN, narrow

WIDTH = {"f32": 4, "f16": 2, "bf16": 2, "i32": 4, "i64": 8, "u32": 4, "bool": 1, "u8": 1, "f64": 8}
TYPECODE = {1: "B", 2: "H", 4: "I", 8: "Q"}
FLOATS = ("f32", "f16", "bf16")
INDEXES = ("i32", "i64", "u32")
BYTES = ("bool", "u8")
# Only stored.
DOUBLES = ("f64",)
DTYPES = FLOATS + INDEXES + BYTES + DOUBLES
WORD = (1 << 64) - 1

WILD = {
    "f32": "00000000 80000000 3f800000 bf800000 7f800000 ff800000 7fc00000 ffc12345 "
           "7f800001 00000001 80000001 007fffff 00800000 80800000 7f7fffff ff7fffff",
    "f16": "0000 8000 3c00 bc00 7c00 fc00 7e00 fe01 7c01 0001 8001 03ff 0400 8400 7bff fbff",
    "bf16": "0000 8000 3f80 bf80 7f80 ff80 7fc0 ffc1 7f81 0001 8001 007f 0080 8080 7f7f ff7f",
}
WILD = {dtype: [int(word, 16) for word in text.split()] for dtype, text in WILD.items()}


class Tensor:
    def __init__(self, dtype, shape, data):
        self.dtype, self.shape = dtype, tuple(shape)
        self.data = data if isinstance(data, array) else array(TYPECODE[WIDTH[dtype]], data)
        assert len(self.data) == prod(self.shape), (dtype, shape, len(self.data))
        assert self.data.itemsize == WIDTH[dtype]

    def bytes(self):
        data = self.data
        if sys.byteorder == "big":
            data = data[:]
            data.byteswap()
        return data.tobytes()

    def bits_text(self):
        return "bits:" + "".join(f"{element:0{2 * WIDTH[self.dtype]}x}" for element in self.data)

    def sha256(self):
        return hashlib.sha256(self.bytes()).hexdigest()


def splitmix(seed, i):
    z = (seed + (i + 1) * 0x9E3779B97F4A7C15) & WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def rand_element(dtype, seed, exponent, i):
    z = splitmix(seed, i)
    fraction = {"f32": 23, "f16": 10, "bf16": 7}[dtype]
    whole = (z >> (63 - fraction)) - (1 << fraction)
    form = FLOAT_FORMATS[dtype]
    bits = form.round(whole < 0, abs(whole), exponent - fraction)
    _, n, e = form.parts(bits)
    assert n << (e + 200) == abs(whole) << (exponent - fraction + 200), "rand: not exact in the dtype"
    return bits


def wild_element(dtype, seed, i):
    z = splitmix(seed, i)
    if z & 3 == 0:
        return WILD[dtype][z >> 2 & 15]
    return z >> (32 if dtype == "f32" else 48)


# Patterns of f64 beside which roundings and limits are: midpoints of f32, f16, bf16 among normal and subnormal numbers, their largest
# and smallest numbers, what integers hold.
BESIDE = ("3ff0000010000000 3ff0000030000000 3ff0020000000000 3ff0060000000000 3ff0100000000000 3ff0300000000000 3690000000000000 "
          "36a0000000000000 36b8000000000000 380fffffe0000000 380ffffff0000000 3810000000000000 47efffffe0000000 47effffff0000000 "
          "47f0000000000000 3e60000000000000 3e70000000000000 3f0ffc0000000000 3f0ff80000000000 40effc0000000000 40effe0000000000 "
          "3780000000000000 3790000000000000 41dfffffffc00000 41e0000000000000 41efffffffe00000 41f0000000000000 43e0000000000000 "
          "43efffffffffffff 406fe00000000000 4070000000000000 3fe0000000000000 3ff0000000000000 3ff8000000000000 4004000000000000 "
          "4340000000000000 0010000000000000 0000000000000001 7fefffffffffffff 7ff0000000000000 7ff8000000000001 0000000000000000")
BESIDE = [int(word, 16) for word in BESIDE.split()]


def doubles(n, seed):
    """Patterns of f64: any bits, numbers of a binary32's size, numbers beside those of BESIDE, with both signs."""
    patterns = []
    for i in range(n):
        z = splitmix(seed, 2 * i)
        low = splitmix(seed, 2 * i + 1)
        kind, sign = z % 4, z & 1 << 63
        if kind == 0:
            patterns.append(low)
        elif kind == 1:
            patterns.append(sign | (1023 - 150 + (z >> 8) % 300) << 52 | low >> 12)
        else:
            patterns.append(sign | (BESIDE[(z >> 8) % len(BESIDE)] + (z >> 32) % 3 - 1) % (1 << 63))
    return patterns


def ids_element(seed, bound, i):
    return ((splitmix(seed, i) >> 32) * bound) >> 32


def parse_data(text):
    """('bits'|'fill'|'rand'|'wild'|'ids', numbers) of a data field."""
    kind, _, rest = text.partition(":")
    if kind == "bits":
        return kind, rest
    if kind == "fill":
        return kind, int(rest, 16)
    numbers = [int(word) for word in rest.split(":")]
    if kind == "rand" and len(numbers) == 1:
        numbers.append(0)
    return kind, numbers


def make(dtype, shape, text):
    """The tensor a data field stands for, without help from oracle.c."""
    kind, detail = parse_data(text)
    n, width = prod(shape), 2 * WIDTH[dtype]
    if kind == "bits":
        data = [int(detail[i * width:(i + 1) * width], 16) for i in range(n)]
        assert len(detail) == n * width, (dtype, shape, text)
    elif kind == "fill":
        data = [detail] * n
    elif kind == "rand":
        data = [rand_element(dtype, detail[0], detail[1], i) for i in range(n)]
    elif kind == "wild":
        data = [wild_element(dtype, detail[0], i) for i in range(n)]
    else:
        data = [ids_element(detail[0], detail[1], i) for i in range(n)]
    return Tensor(dtype, shape, data)


def float_bits(x):
    """The binary32 pattern of a Python number, rounded once (decimal constants of the case scripts)."""
    if x != x:
        return 0x7FC00000
    negative = str(x).startswith("-")
    if x in (float("inf"), float("-inf")):
        return 0xFF800000 if negative else 0x7F800000
    numerator, denominator = abs(x).as_integer_ratio()
    bits = F32.round(False, numerator, -(denominator.bit_length() - 1))
    return bits | SIGN if negative else bits


def bits(dtype, numbers):
    """A bits: field from numbers, floats rounded to the dtype."""
    if dtype in FLOATS:
        numbers = [narrow(dtype, float_bits(x)) for x in numbers]
    mask, width = (1 << 8 * WIDTH[dtype]) - 1, 2 * WIDTH[dtype]
    return "bits:" + "".join(f"{number & mask:0{width}x}" for number in numbers)


def hexes(dtype, patterns):
    """A bits: field from bit patterns."""
    return "bits:" + "".join(f"{pattern:0{2 * WIDTH[dtype]}x}" for pattern in patterns)
