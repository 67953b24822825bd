"""The measured items: operations, sizes and their operands."""

import zlib
from dataclasses import dataclass, replace

import numpy as np

MATMUL = """4x4x4 8x8x8 7x13x7 16x16x16 32x32x32 64x64x64 96x96x96 128x128x128 192x192x192 256x256x256 384x384x384
512x512x512 768x768x768 1024x1024x1024 1536x1536x1536 2048x2048x2048 1x1024x1024 1x4096x4096 4096x4096x1 8x1024x1024
32x384x384 128x384x1536 128x1536x384 4096x64x4096""".split()

# The right operand may be packed before the clock starts.
PACKED = "1x4096x4096 8x1024x1024 32x384x384 128x384x1536 128x1536x384".split()

QUICK = "16x16x16 64x64x64 256x256x256 1024x1024x1024 1x4096x4096".split()

# Products in exact integers. The peers compute them in fp32.
FIXED = "128x384x1536 512x512x512 1024x1024x1024 2048x2048x2048 4096x4096x4096".split()

# Bytes read and written per element. gamma and beta of layernorm are too small to count.
TRAFFIC = {"softmax": 8, "sigmoid": 8, "tanh": 8, "gelu": 8, "layernorm": 8, "relu": 8, "add": 12, "sum": 4,
           "transpose": 8}  # fmt: skip

ROW = 1024  # of softmax and layernorm


@dataclass(frozen=True)
class Item:
    """One line of a table."""

    group: str  # matmul, fixed, attention, memory, call
    op: str
    size: str
    shapes: tuple  # of the operands
    output: tuple
    work: float  # flops, bytes, or 1 for a call
    packed: bool = False  # whether adead's right operand is packed before the clock starts
    precision: str = "f32"  # of adead's product; the peers' is fp32

    @property
    def name(self):
        return f"{self.op} {self.size}"

    def inputs(self):
        """Returns the operands, which are the same in every process."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        # sum gets positive terms, so the total is not a small difference of large parts.
        low = 0.0 if self.op == "sum" else -2.0
        arrays = []
        for shape in self.shapes:
            array = aligned(shape)
            array[...] = rng.random(shape, dtype=np.float32) * (2.0 - low) + low
            arrays.append(array)
        return arrays


def aligned(shape):
    """Returns an array aligned to 64 bytes, so that all peers have the same alignment."""
    count = int(np.prod(shape, dtype=np.int64))
    memory = np.empty(count * 4 + 64, dtype=np.uint8)
    begin = -memory.ctypes.data % 64
    return memory[begin : begin + count * 4].view(np.float32).reshape(shape)


def matmul(size, packed=False):
    m, k, n = map(int, size.split("x"))
    name = f"{size} packed" if packed else size
    return Item("matmul", "matmul", name, ((m, k), (k, n)), (m, n), 2.0 * m * k * n, packed)


def fixed(size, precision):
    return replace(matmul(size), group="fixed", size=f"{size} {precision}", precision=precision)


def attention(heads, length, width):
    shape = (heads, length, width)
    flops = 4.0 * heads * length * length * width
    return Item("attention", "attention", f"{heads}x{length}x{width}", (shape,) * 3, shape, flops)


def shapes(op, n):
    """Returns the shapes of operands and result of an operation on n elements."""
    rows = (n // ROW, ROW)
    if op == "layernorm":
        return (rows, (ROW,), (ROW,)), rows
    if op == "softmax":
        return (rows,), rows
    if op == "transpose":
        side = int(n**0.5)
        return ((side, side),), (side, side)
    if op == "sum":
        return ((n,),), ()
    return ((n,),) * (2 if op == "add" else 1), (n,)


def items(quick=False):
    """Returns all items in the order of the tables."""
    every = [matmul(size) for size in (QUICK if quick else MATMUL)]
    every += [matmul(size, packed=True) for size in (PACKED[:1] if quick else PACKED)]
    every += [fixed(size, precision) for size in (FIXED[:1] if quick else FIXED) for precision in ("fixed24", "fixed16")]
    every += [attention(8, length, 64) for length in ((512,) if quick else (512, 2048))]
    for size, n in (("1M", 1 << 20),) if quick else (("64K", 1 << 16), ("1M", 1 << 20)):
        for op, bytes_each in TRAFFIC.items():
            every.append(Item("memory", op, size, *shapes(op, n), float(n * bytes_each)))
    for op in ("relu", "add"):
        every.append(Item("call", op, "16", *shapes(op, 16), 1.0))
    return every
