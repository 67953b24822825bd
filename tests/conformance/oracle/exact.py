"""Exact arithmetic of the contract on bit patterns: the primitives.

A binary32 value is an int, its bit pattern. Every primitive forms the exact result with integers or Fractions and rounds
it once. Nothing here uses the float type, and nothing is shared with oracle.c.
"""

from fractions import Fraction
from math import isqrt

NAN = 0x7FC00000
INF = 0x7F800000
NEG_INF = 0xFF800000
ONE = 0x3F800000
ZERO = 0
NEG_ZERO = 0x80000000
SIGN = 0x80000000
MAGNITUDE = 0x7FFFFFFF


class Format:
    """A binary interchange format with `precision` significant bits and normal exponents emin … emax."""

    def __init__(self, width, precision, emin, emax):
        self.width, self.precision, self.emin, self.emax = width, precision, emin, emax
        self.fraction_bits = precision - 1
        self.sign = 1 << (width - 1)
        self.lsb = emin - self.fraction_bits  # exponent of the smallest subnormal
        self.inf = ((1 << (width - precision)) - 1) << self.fraction_bits
        self.nan = self.inf | 1 << (self.fraction_bits - 1)

    def is_nan(self, bits):
        return bits & (self.sign - 1) > self.inf

    def is_inf(self, bits):
        return bits & (self.sign - 1) == self.inf

    def parts(self, bits):
        """(negative, n, e) with magnitude n * 2^e exactly; finite values only."""
        field = (bits & (self.sign - 1)) >> self.fraction_bits
        fraction = bits & ((1 << self.fraction_bits) - 1)
        if field == 0:
            return bits >= self.sign, fraction, self.lsb
        return bits >= self.sign, fraction | 1 << self.fraction_bits, self.lsb + field - 1

    def encode(self, negative, n, e):
        """n * 2^e, which must have at most `precision` bits and no bit below lsb; infinite when too large."""
        sign = self.sign if negative else 0
        if n == 0:
            return sign
        top = n.bit_length() - 1 + e
        if top > self.emax:
            return sign | self.inf
        if top < self.emin:
            assert e >= self.lsb
            return sign | n << (e - self.lsb)
        shift = self.precision - n.bit_length()
        assert shift >= 0
        return sign | ((top - self.emin + 1) << self.fraction_bits) + (n << shift) - (1 << self.fraction_bits)

    def round(self, negative, n, e):
        """n * 2^e to nearest even with gradual underflow."""
        drop = max(n.bit_length() - self.precision, self.lsb - e)
        if drop > 0:
            n, e = round_half_even(n, drop), e + drop
        if n.bit_length() > self.precision:  # carried into a new bit
            n, e = n >> 1, e + 1
        return self.encode(negative, n, e)


def round_half_even(n, drop):
    """n / 2^drop to the nearest integer, ties to even."""
    quotient, rest, half = n >> drop, n & ((1 << drop) - 1), 1 << (drop - 1)
    return quotient + (rest > half or (rest == half and quotient & 1 == 1))


F32 = Format(32, 24, -126, 127)
F16 = Format(16, 11, -14, 15)
BF16 = Format(16, 8, -126, 127)
F64 = Format(64, 53, -1022, 1023)
FLOAT_FORMATS = {"f32": F32, "f16": F16, "bf16": BF16}
STORED_FLOATS = {**FLOAT_FORMATS, "f64": F64}
INTEGER_FORMATS = {"i32": (32, True), "i64": (64, True), "u32": (32, False), "u8": (8, False)}


def is_nan(a):
    return a & MAGNITUDE > INF


def is_inf(a):
    return a & MAGNITUDE == INF


def is_zero(a):
    return a & MAGNITUDE == 0


def canonical(a):
    return NAN if is_nan(a) else a


def plus_zero(a):
    return ZERO if a == NEG_ZERO else a


def value(a):
    negative, n, e = F32.parts(a)
    magnitude = Fraction(n) * (Fraction(2) ** e)
    return -magnitude if negative else magnitude


def signed(a):
    """(m, e): the exact value m * 2^e with m signed."""
    negative, n, e = F32.parts(a)
    return (-n if negative else n), e


def sum_exactly(m1, e1, m2, e2):
    e = min(e1, e2)
    return (m1 << (e1 - e)) + (m2 << (e2 - e)), e


# E primitives


def add(a, b):
    if is_nan(a) or is_nan(b):
        return NAN
    if is_inf(a) or is_inf(b):
        if is_inf(a) and is_inf(b):
            return a if a == b else NAN
        return a if is_inf(a) else b
    if is_zero(a) and is_zero(b):
        return a & b
    total, e = sum_exactly(*signed(a), *signed(b))
    return F32.round(total < 0, abs(total), e)  # an exact cancellation gives +0


def neg(a):
    return a ^ SIGN


def sub(a, b):
    return NAN if is_nan(b) else add(a, neg(b))


def mul(a, b):
    if is_nan(a) or is_nan(b):
        return NAN
    sign = (a ^ b) & SIGN
    if is_inf(a) or is_inf(b):
        return NAN if is_zero(a) or is_zero(b) else sign | INF
    _, n1, e1 = F32.parts(a)
    _, n2, e2 = F32.parts(b)
    return F32.round(sign != 0, n1 * n2, e1 + e2)


def div(a, b):
    if is_nan(a) or is_nan(b):
        return NAN
    sign = (a ^ b) & SIGN
    if is_inf(a):
        return NAN if is_inf(b) else sign | INF
    if is_inf(b):
        return sign
    if is_zero(b):
        return NAN if is_zero(a) else sign | INF
    quotient = abs(value(a)) / abs(value(b))
    # 2^400 resolves 120 places below the smallest subnormal; the sticky bit keeps the rest.
    scaled = quotient * (1 << 400)
    whole = scaled.numerator // scaled.denominator
    return F32.round(sign != 0, 2 * whole + (scaled.denominator != 1), -401)


def sqrt(a):
    if is_nan(a):
        return NAN
    if is_zero(a):
        return a
    if a & SIGN:
        return NAN
    if is_inf(a):
        return a
    _, n, e = F32.parts(a)
    n, e = n << (80 + (e & 1)), e - 80 - (e & 1)
    root = isqrt(n)
    return F32.round(False, 2 * root + (root * root != n), e // 2 - 1)


def order(a):
    """A key that orders non-NaN values numerically; both zeros give 0."""
    return -(a & MAGNITUDE) if a & SIGN else a


def less(a, b):
    return not is_nan(a) and not is_nan(b) and order(a) < order(b)


def greater(a, b):
    return less(b, a)


# M primitive


def read_zero(a):
    """Subnormals read as zeros of the same sign."""
    return a & SIGN if a & 0x7F800000 == 0 else a


def fmaz(a, b, c):
    a, b, c = read_zero(a), read_zero(b), read_zero(c)
    if is_nan(a) or is_nan(b) or is_nan(c):
        return NAN
    product_sign = (a ^ b) & SIGN
    if is_inf(a) or is_inf(b):
        if is_zero(a) or is_zero(b) or (is_inf(c) and c & SIGN != product_sign):
            return NAN
        return product_sign | INF
    if is_inf(c):
        return c
    if is_zero(c) and (is_zero(a) or is_zero(b)):
        return product_sign & c
    m1, e1 = signed(a)
    m2, e2 = signed(b)
    total, e = sum_exactly(m1 * m2, e1 + e2, *signed(c))
    negative, n = total < 0, abs(total)
    drop = n.bit_length() - 24  # 24 bits wherever the exponent lies: it is unbounded here
    if drop > 0:
        n, e = round_half_even(n, drop), e + drop
    if n == 0:
        return ZERO
    if n.bit_length() + e <= -126:  # n * 2^e < 2^-126
        return SIGN if negative else ZERO
    if n.bit_length() > 24:
        n, e = n >> 1, e + 1
    return F32.encode(negative, n, e)


# Storage and conversions


def widen(dtype, bits):
    if dtype == "f32":
        return bits
    form = FLOAT_FORMATS[dtype]
    if form.is_nan(bits):
        return NAN
    sign = bits & form.sign != 0
    if form.is_inf(bits):
        return NEG_INF if sign else INF
    _, n, e = form.parts(bits)
    return F32.encode(sign, n, e)


def narrow(dtype, bits):
    form = FLOAT_FORMATS[dtype]
    if is_nan(bits):
        return form.nan
    sign = form.sign if bits & SIGN else 0
    if is_inf(bits):
        return sign | form.inf
    negative, n, e = F32.parts(bits)
    return form.round(negative, n, e)


def from_int(whole):
    return F32.round(whole < 0, abs(whole), 0)


def to_int(dtype, form, bits):
    """Towards zero, saturating, NaN gives 0; the result is a Python int."""
    width, has_sign = INTEGER_FORMATS[dtype]
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if has_sign else (0, (1 << width) - 1)
    if form.is_nan(bits):
        return 0
    if form.is_inf(bits):
        return low if bits & form.sign else high
    negative, n, e = form.parts(bits)
    whole = n << e if e >= 0 else n >> -e
    return max(low, min(high, -whole if negative else whole))


def convert(form, target, bits):
    """A float of one format to the nearest one of another; NaN becomes the target's."""
    if form.is_nan(bits):
        return target.nan
    if form.is_inf(bits):
        return (target.sign if bits & form.sign else 0) | target.inf
    return target.round(*form.parts(bits))


def int_of_bits(dtype, bits):
    width, has_sign = INTEGER_FORMATS[dtype]
    return bits - (1 << width) if has_sign and bits >> (width - 1) else bits


def bits_of_int(dtype, whole):
    return whole & ((1 << INTEGER_FORMATS[dtype][0]) - 1)


def cast(source, target, bits):
    if source == target:
        return bits
    to = STORED_FLOATS.get(target)
    if source in STORED_FLOATS:
        form = STORED_FLOATS[source]
        if to:
            return convert(form, to, bits)
        return int(bits & ~form.sign != 0) if target == "bool" else bits_of_int(target, to_int(target, form, bits))
    whole = int(bits != 0) if source == "bool" else int_of_bits(source, bits)
    if to:
        return to.round(whole < 0, abs(whole), 0)
    return int(whole != 0) if target == "bool" else bits_of_int(target, whole)
