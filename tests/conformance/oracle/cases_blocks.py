"""Cases of quantized_matmul and dequantize: products with, and values of, quantised blocks."""

from math import prod
from zlib import crc32

import exact
import exact_blocks
from cases_matmul import rand
from cases_moves import ids
from shapes import BLOCKS
from suite import operand
from tensors import float_bits, hexes, splitmix

ONE = 0x3F800000
SIGN = 0x80000000
WITH_MINIMA = ("q4_1", "q5_1", "q4_k", "q5_k")
# f16: zeros, the ends of the subnormals, the smallest normal, one, the largest, infinities, NaNs
FACTORS = (0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0x7C01)


class Bytes:
    """Bytes that depend on a name alone."""

    def __init__(self, name):
        self.seed, self.i = crc32(name.encode()), 0

    def below(self, n):
        self.i += 1
        return (splitmix(self.seed, self.i) >> 32) * n >> 32

    def take(self, n):
        return [self.below(256) for _ in range(n)]

    def factor(self):
        """An ordinary scale: 2^-12 … 2^-6, of either sign."""
        return self.below(2) << 15 | (3 + self.below(6)) << 10 | self.below(1024)


def free(form):
    """The bytes of a block besides its factors."""
    return BLOCKS[form][0] - (4 if form in WITH_MINIMA else 2)


def block(form, d, m, rest):
    """The bytes of a block of its factors (f16 patterns) and the others."""
    assert len(rest) == free(form)
    two = [d & 255, d >> 8]
    if form == "q6_k":
        return [*rest, *two]
    return [*two, *([m & 255, m >> 8] if form in WITH_MINIMA else []), *rest]


def matrix(rows):
    return operand("u8", (len(rows), len(rows[0])), hexes("u8", [byte for row in rows for byte in row]))


def sensible(form, name, *shape):
    """Rows of blocks with ordinary scales: shape is […, K]."""
    r, (size, elements) = Bytes(name), BLOCKS[form]
    count = shape[-1] // elements
    data = []
    for _ in range(prod(shape[:-1]) * count):
        data += block(form, r.factor(), r.factor(), r.take(free(form)))
    return operand("u8", (*shape[:-1], count * size), hexes("u8", data))


def hostile(form, *shape):
    """Any bytes: shape is […, K]."""
    size, elements = BLOCKS[form]
    return ids("u8", *shape[:-1], shape[-1] // elements * size, bound=256)


def extreme(form):
    """Blocks of equal bytes, as they are and with the scale 1: among them the least and the greatest elements."""
    rows = [[byte] * BLOCKS[form][0] for byte in (0x00, 0x80, 0xFF)]
    rows += [block(form, 0x3C00, 0x3800, [byte] * free(form)) for byte in (0x00, 0x7F, 0x80, 0x88, 0xFF)]
    return matrix(rows)


def factors(form):
    """A row for each special factor: as d, as m, as both."""
    r = Bytes(f"factors {form}")
    pairs = [(d, r.factor()) for d in FACTORS]
    if form in WITH_MINIMA:
        pairs += [(r.factor(), m) for m in FACTORS] + [(d, d) for d in (0x8000, 0x7BFF, 0x7C00)]
    return matrix([block(form, d, m, r.take(free(form))) for d, m in pairs])


def fill(pattern, *shape):
    return operand("f32", shape, f"fill:{pattern:08x}")


def rows_of(rows):
    """A matrix of binary32 patterns."""
    return operand("f32", (len(rows), len(rows[0])), hexes("f32", [x for row in rows for x in row]))


def near_ties(n):
    """A block in which x·f is a tie only once it is rounded, or nearly one."""
    r = Bytes(f"ties {n}")
    m = ONE + 0x123457
    f = exact.div(float_bits(127.0), m)
    x = [m]
    while len(x) < n:
        tie = float_bits(r.below(126) + 0.5)
        guess = exact.div(tie, f)
        for candidate in range(guess - 2, guess + 3):
            exactly = exact.value(candidate) * exact.value(f)
            if exact.mul(candidate, f) == tie and exactly != exact.value(tie) and len(x) < n:
                x.append(candidate | r.below(2) * SIGN)
    return x


def special_rows(size):
    """Blocks of x by what is special in them."""
    r = Bytes(f"x {size}")

    def plain(e=0):
        return [r.below(2) * SIGN | (127 + e - 1 - r.below(6)) << 23 | r.below(1 << 23) for _ in range(size)]

    def one(pattern, e=0):
        x = plain(e)
        x[r.below(size)] = pattern
        return x

    tiny = exact_blocks.TINY
    return {
        "zero": [SIGN * r.below(2) for _ in range(size)],
        "below_2_-90": one(tiny - 1, -90),
        "2_-90": one(tiny, -90),
        "minus_2_-90": one(tiny | SIGN, -90),
        "subnormal": [SIGN * r.below(2) | r.below(1 << 23) for _ in range(size)],
        "subnormal_beside_one": [ONE, *(SIGN * r.below(2) | r.below(1 << 23) for _ in range(size - 1))],
        "nan": one(0xFFC12345),
        "infinity": one(0x7F800000),
        "minus_infinity": one(0xFF800000),
        "huge": one(0xFF7FFFFF, 128),
        "ties": [float_bits(x) for x in (127.0, *((i * 4 % 127 + 0.5) * (-1) ** (i // 3) for i in range(size - 1)))],
        "near_ties": near_ties(size),
        "plain": plain(),
    }


def build(suite):
    for form in BLOCKS:
        products(suite, form)
        numbers(suite, form)
        values(suite, form)
    errors(suite)


def products(suite, form):
    """Shapes: K of one block, of chunks of 256 and of a rest; the sizes around which kernels tile."""
    def case(name, x, w):
        suite.case(f"quantized_matmul/{form}_{name}", "quantized_matmul", [x, w], format=form)

    size, elements = BLOCKS[form]
    small = elements == 32
    one, three, full, more, most = (32, 96, 256, 288, 576) if small else (256, 512, 256, 768, 512)
    for k, n, lead in ((one, 1, ()), (three, 3, (5,)), (full, 16, (2,)), (more, 17, (1, 3)), (most, 33, (9,)), (three, 40, (1,))):
        shape = "x".join(map(str, (*lead, k, n)))
        case(f"shape_{shape}", rand("f32", *lead, k), sensible(form, f"{form} {k} {n}", n, k))
    case("hostile", rand("f32", 9, more), hostile(form, 40, more))
    case("hostile_large", rand("f32", 37, 1024 + one), hostile(form, 131, 1024 + one))
    case("zero_k", rand("f32", 2, 0), operand("u8", (3, 0), "bits:"))
    if form not in ("q4_0", "q6_k"):
        return
    case("hostile_rank_8", rand("f32", 1, 2, 1, 1, 3, 1, 1, full), hostile(form, 16, full))
    case("zero_n", rand("f32", 2, one), operand("u8", (0, size * one // elements), "bits:"))
    case("zero_rows", rand("f32", 0, one), hostile(form, 3, one))


def numbers(suite, form):
    """What is special in x, in the factors, in the elements."""
    def case(name, x, w):
        suite.case(f"quantized_matmul/{form}_{name}", "quantized_matmul", [x, w], format=form)

    elements = BLOCKS[form][1]
    special = special_rows(elements)
    if elements == 32:  # another block before or behind, as small where it would hide what is special
        def beside(name):
            return special["minus_2_-90" if "2_-90" in name else "plain"]

        x = [row + beside(name) if i % 2 else beside(name) + row for i, (name, row) in enumerate(special.items())]
    else:
        x = list(special.values())
    case("x_special", rows_of(x), sensible(form, f"{form} special", 3, len(x[0])))
    case("x_special_w_extreme", rows_of([special[name] for name in ("zero", "huge", "ties", "plain")]), extreme(form))
    for e in (-89, 100):
        case(f"x_2_{e}", rand("f32", 3, 2 * elements, e=e), hostile(form, 9, 2 * elements))
    case("factors", rand("f32", 2, elements), factors(form))
    case("factors_x_huge", rows_of([special["huge"]]), factors(form))
    case("factors_x_zero", fill(SIGN, 1, elements), factors(form))
    cancels(case, form)
    merges(case, form)
    if elements == 256:
        beyond_24_bits(case, form)


def cancels(case, form):
    """Sums of which what is left is what rounding took away: below 2^-126 M has it as zero."""
    elements = BLOCKS[form][1]
    r, rows = Bytes(f"{form} cancels"), []
    for n in range(8):
        d, rest = 1 + r.below(8), r.take(free(form))
        m = 1 + r.below(8)
        if form in ("q4_k", "q5_k") and n % 2:  # d and m cancel in each block: scales, minima and elements of 1
            m, rest = d, [1] * 8 + [0x11] * 4 + [0] * (free(form) - 140) + [0x11] * 128
        other = rest if n < 6 else r.take(free(form))
        rows.append([*block(form, d, m, rest), *block(form, d | 0x8000, m | 0x8000, other)])
    w = matrix(rows)
    for name, pattern in (("tiny", 0x13012345), ("one", 0xBF812345)):
        x = [[pattern + i * n for i in (0, 1) for _ in range(elements)] for n in range(2)]
        case(f"cancels_{name}", rows_of(x), w)


def ones(form):
    """The bytes besides the factors of a block whose first element is 1 and whose others are 0."""
    zero = {"q4_0": 0x88, "q5_0": 0xFF}.get(form, 0)
    rest = [zero] * free(form)
    if form == "q5_0":
        rest = [0xFF] * 4 + [0] * 16
    if form == "q6_k":
        rest = [0] * 128 + [0xAA] * 64 + [1] * 16
    if form in ("q4_k", "q5_k"):
        rest[:12] = [1] * 4 + [0] * 4 + [1] * 4
    at = {"q5_0": 4, "q5_1": 4, "q4_k": 12, "q5_k": 44}.get(form, 0)
    rest[at] += 1
    return rest


def merges(case, form):
    """Chunks, and a chunk's two products, of which what is left is below 2^-126."""
    elements = BLOCKS[form][1]
    nothing = [] if elements == 256 else block(form, 0, 0, ones(form)) * 7
    rows = [[*block(form, d, 0, ones(form)), *nothing, *block(form, d | 0x8000, 0, ones(form))] for d in (1, 2, 5)]
    x = [[0x13012345] * 256 + [0x13012345 + n] * elements for n in (0, 1, -1)]
    case("merge_tiny", rows_of(x), matrix(rows))
    if form in ("q4_k", "q5_k"):
        equal = [1] * 8 + [0x11] * 4 + [0] * (free(form) - 140) + [0x11] * 128
        x = [[0x13012345 + 0x10001 * n] * 256 for n in range(3)]
        case("minimum_tiny", rows_of(x), matrix([block(form, d, d, equal) for d in (1, 3, 0x83FF)]))


def beyond_24_bits(case, form):
    """Integers that binary32 does not hold: the largest scales and elements."""
    r = Bytes(f"{form} sums")
    x = [[0x3F000000 | r.below(1 << 23) | sign for _ in range(256)] for sign in (0, SIGN)]
    x += [[0x3F700000 | r.below(1 << 20) for _ in range(256)], [ONE] * 256]
    rows = []
    for n in range(5):
        if form == "q6_k":
            v, h, scales = ([0xFF] * 128, [0xFF] * 64, [127] * 16) if n % 2 else ([0] * 128, [0] * 64, [128] * 16)
            if n > 1:
                scales = [(128 + r.below(8)) if n % 2 == 0 else 127 - r.below(8) for _ in range(16)]
            rest = v + h + scales
        else:
            rest = [0xFF] * free(form)
            if n > 1:
                rest = [0xFF - (r.below(2) if i < 12 else 17 * r.below(2)) for i in range(free(form))]
        rows.append(block(form, 0x3C01 + n, 0x3800 + 0x8000 * (n % 2), rest))
    case("sums_beyond_24_bits", rows_of(x), matrix(rows))


def values(suite, form):
    def case(name, w):
        suite.case(f"dequantize/{form}_{name}", "dequantize", [w], format=form)

    size, elements = BLOCKS[form]
    case("rank_1", sensible(form, f"{form} v1", 2 * elements))
    case("rank_2", sensible(form, f"{form} v2", 5, 3 * elements))
    case("rank_3", hostile(form, 2, 3, elements))
    case("hostile", hostile(form, 33, 5 * elements))
    case("extreme", extreme(form))
    case("factors", factors(form))
    if form not in ("q4_0", "q6_k"):
        return
    case("rank_8", hostile(form, 1, 2, 1, 1, 2, 1, 1, elements))
    case("zero_k", operand("u8", (3, 0), "bits:"))
    case("zero_rows", operand("u8", (0, size), "bits:"))


def errors(suite):
    def bad(op, name, status, operands, **attrs):
        suite.case(f"{op}/error_{name}", op, operands, expect=status, **attrs)

    x, w = rand("f32", 2, 32), hostile("q4_0", 3, 32)
    op, q4 = "quantized_matmul", {"format": "q4_0"}
    bad(op, "format_missing", "invalid_argument", [x, w])
    for word in ("q4_2", "f16", "0"):
        bad(op, f"format_{word}", "invalid_argument", [x, w], format=word)
    bad(op, "attribute", "invalid_argument", [x, w], **q4, alpha=2.0)
    bad(op, "missing", "invalid_argument", [x], **q4)
    bad(op, "none", "invalid_argument", ["none", w], **q4)
    bad(op, "surplus", "invalid_argument", [x, w, x], **q4)
    for dtype in ("f16", "bf16"):
        bad(op, f"x_{dtype}", "dtype_mismatch", [rand(dtype, 2, 32), w], **q4)
    bad(op, "x_u8", "dtype_mismatch", [w, w], **q4)
    bad(op, "w_f32", "dtype_mismatch", [x, rand("f32", 3, 18)], **q4)
    bad(op, "w_i32", "dtype_mismatch", [x, ids("i32", 3, 18, bound=256)], **q4)
    bad(op, "w_bool", "dtype_mismatch", [x, ids("bool", 3, 18, bound=2)], **q4)
    bad(op, "dtype_before_format", "dtype_mismatch", [x, rand("f32", 3, 18)])
    bad(op, "part_of_a_block", "shape_mismatch", [x, ids("u8", 3, 17, bound=256)], **q4)
    bad(op, "another_format", "shape_mismatch", [x, w], format="q8_0")
    bad(op, "k_less", "shape_mismatch", [rand("f32", 2, 31), w], **q4)
    bad(op, "k_more", "shape_mismatch", [rand("f32", 2, 64), w], **q4)
    bad(op, "k_zero", "shape_mismatch", [rand("f32", 2, 0), w], **q4)
    bad(op, "w_rank_1", "shape_mismatch", [x, hostile("q4_0", 32)], **q4)
    bad(op, "w_rank_3", "shape_mismatch", [x, hostile("q4_0", 1, 3, 32)], **q4)
    bad(op, "w_rank_0", "shape_mismatch", [x, ids("u8", bound=256)], **q4)
    bad(op, "x_rank_0", "shape_mismatch", [rand("f32"), w], **q4)
    bad(op, "k_rows_of_q6_k", "shape_mismatch", [rand("f32", 2, 224), hostile("q6_k", 3, 256)], format="q6_k")

    op = "dequantize"
    bad(op, "format_missing", "invalid_argument", [w])
    bad(op, "format_word", "invalid_argument", [w], format="q2_k")
    bad(op, "attribute", "invalid_argument", [w], **q4, axis=0)
    bad(op, "missing", "invalid_argument", [], **q4)
    bad(op, "surplus", "invalid_argument", [w, w], **q4)
    bad(op, "f32", "dtype_mismatch", [rand("f32", 3, 18)], **q4)
    bad(op, "bool", "dtype_mismatch", [ids("bool", 3, 18, bound=2)], **q4)
    bad(op, "part_of_a_block", "shape_mismatch", [ids("u8", 3, 19, bound=256)], **q4)
    bad(op, "part_of_a_k_block", "shape_mismatch", [ids("u8", 3, 72, bound=256)], format="q4_k")
    bad(op, "rank_0", "shape_mismatch", [ids("u8", bound=256)], **q4)
