"""Products of fixed-point numbers, by docs/contract.md, in Python's integers and fractions."""

from fractions import Fraction

from exact import F32, INF, MAGNITUDE, NAN, ZERO, mul, round_half_even, value

# The largest magnitude of an element that is cut, by precision.
LIMIT = {"fixed24": 8355711, "fixed16": 32639}

# The scale of attention's values, beside their rows' own; and the least magnitude (2^-124) of a row that isn't zeros.
COMMON = {"fixed24": 20, "fixed16": 12}
LEAST_ROW = 0x01800000


def rint(x):
    """A fraction to the nearest integer, ties to even: Python's own rounding."""
    return round(x)


def scale(line, limit):
    """The largest s with rint(|x|max * 2^s) <= limit; None of a line that is not finite, 0 of a line of zeros."""
    largest = max((x & MAGNITUDE for x in line), default=0)
    if largest >= INF:
        return None
    if largest == 0:
        return 0
    x = value(largest)
    s = -200
    assert rint(x * Fraction(2) ** s) <= limit
    step = 256
    while step:
        if rint(x * Fraction(2) ** (s + step)) <= limit:
            s += step
        step //= 2
    return s


def cut(x, s):
    return rint(value(x) * Fraction(2) ** s)


def rounded(total, e):
    """total * 2^e: 24 bits, then what a subnormal keeps of them; every zero is +0."""
    negative, n = total < 0, abs(total)
    drop = n.bit_length() - 24
    if drop > 0:
        n, e = round_half_even(n, drop), e + drop
    bits = F32.round(negative, n, e)
    return ZERO if bits & MAGNITUDE == 0 else bits


class Line:
    """A line of an operand along K: its scale, and its elements as integers."""

    def __init__(self, precision, line):
        self.scale = scale(line, LIMIT[precision])
        self.numbers = [] if self.scale is None else [cut(x, self.scale) for x in line]
        assert all(abs(q) <= LIMIT[precision] for q in self.numbers)


class Values:
    """A key's row of values in attention: its elements as integers, and the factor of its weights."""

    def __init__(self, precision, row):
        line = Line(precision, row)
        if line.scale is None:
            self.factor = NAN
        elif max((x & MAGNITUDE for x in row), default=0) < LEAST_ROW:
            self.factor = ZERO
        else:
            self.factor = COMMON[precision] - line.scale + 127 << 23
        self.numbers = [0] * len(row) if self.factor in (NAN, ZERO) else line.numbers


def weighted(precision, weights, rows, width):
    """The weights of a block's keys by their values: `width` totals."""
    line = Line(precision, [mul(p, row.factor) for p, row in zip(weights, rows)])
    if line.scale is None:
        return [NAN] * width
    sums = (sum(w * row.numbers[d] for w, row in zip(line.numbers, rows)) for d in range(width))
    return [rounded(n, -line.scale - COMMON[precision]) for n in sums]


def total(a, b):
    """The product of two lines."""
    if a.scale is None or b.scale is None:
        return NAN
    return rounded(sum(x * y for x, y in zip(a.numbers, b.numbers)), -a.scale - b.scale)
