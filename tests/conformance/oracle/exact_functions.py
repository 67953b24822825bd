"""The functions of the contract in exact arithmetic, each in one place, constants as written in the text."""

from math import floor

from exact import (
    INF, MAGNITUDE, NAN, NEG_INF, ONE, SIGN, ZERO,
    add, canonical, div, from_int, greater, is_inf, is_nan, is_zero, less, mul, neg, sqrt, sub, value,
)

HALF = 0x3F000000
TWO = 0x40000000
NEG_105 = neg(from_int(105))


def horner(x, text):
    """Coefficients from the lowest to the highest; evaluated from the highest."""
    coefficients = [int(word, 16) for word in text.split()]
    q = coefficients.pop()
    while coefficients:
        q = add(mul(q, x), coefficients.pop())
    return q


def signed32(bits):
    bits &= 0xFFFFFFFF
    return bits - (1 << 32) if bits >> 31 else bits


def power_of_two(n):
    assert -126 <= n <= 127
    return (n + 127) << 23


def at_most(a, limit):
    return a if less(a, limit) else limit


def take_sign(magnitude, x):
    return magnitude & MAGNITUDE | x & SIGN


def exp(x):
    if is_nan(x):
        return NAN
    x = NEG_105 if less(x, NEG_105) else x
    x = from_int(89) if greater(x, from_int(89)) else x
    r, u, n = exp_core(x)
    return times_power(add(ONE, add(u, r)), n)


def exp_core(x):
    """e^x = (1 + u + r)·2^n."""
    t = add(mul(x, 0x3FB8AA3B), 0x4B400000)
    n = signed32(t - 0x4B400000)
    nf = sub(t, 0x4B400000)
    r = add(mul(nf, neg(0x3F317200)), x)
    r = add(mul(nf, neg(0x35BFBE8E)), r)
    q = horner(r, "3efffffe 3e2aaa45 3d2aac27 3c091f97 3ab56890")
    return r, mul(mul(r, r), q), n


def times_power(x, n):
    first = n >> 1
    return mul(mul(x, power_of_two(first)), power_of_two(n - first))


def log(x):
    if is_nan(x):
        return NAN
    if is_zero(x):
        return NEG_INF
    if x & SIGN:
        return NAN
    if x == INF:
        return INF
    lowered = 0
    if x < 0x00800000:
        x, lowered = mul(x, power_of_two(23)), 23
    k = signed32(x - 0x3F3504F3) >> 23
    m = (x - (k << 23)) & 0xFFFFFFFF
    k = from_int(k - lowered)
    f = sub(m, ONE)
    R = horner(f, "3eaaaaaa be800114 3e4cd01b be2a38c7 3e116a09 be06c2ed 3e02d7b0 bd9ce31e")
    h = mul(HALF, mul(f, f))
    c = mul(mul(f, f), mul(f, R))
    lo = add(mul(k, 0x35BFBE8E), c)
    d = sub(f, h)
    e = sub(sub(f, d), h)
    s0 = mul(k, 0x3F317200)
    hi = add(s0, d)
    e2 = add(sub(s0, hi), d)
    return add(hi, add(lo, add(e, e2)))


def tanh(x):
    if is_nan(x):
        return NAN
    a = x & MAGNITUDE
    if less(a, 0x3F6B851F):
        y = mul(a, a)
        q = horner(y, "beaaaaa6 3e088766 bd5cddb2 3cb13d3f bc067dd8 3b25b194 b9e403e9")
        result = add(mul(a, mul(y, q)), a)
    else:
        result = sub(ONE, div(TWO, add(exp(at_most(mul(TWO, a), from_int(20))), ONE)))
    return take_sign(result, x)


def erf(x):
    if is_nan(x):
        return NAN
    a = x & MAGNITUDE
    if less(a, 0x3F547AE1):
        q = horner(mul(a, a), "3e0375d4 bec09397 3de713aa bcdbac93 3ba63a36 ba28e39d")
        result = add(mul(a, q), a)
    else:
        d = sub(at_most(a, 0x407CCCCD), 0x3F7F4000)
        r, u, n = exp_core(horner(d, "bfebc2c5 c02893ed bf57bddf bd2ab2c8 3c24525e bafb9c7e 395ce34f"))
        power = power_of_two(n)
        result = sub(sub(ONE, power), mul(power, add(u, r)))
    return take_sign(result, x)


def sigmoid(x):
    if is_nan(x):
        return NAN
    a = x | SIGN
    r, u, n = exp_core(NEG_105 if less(a, NEG_105) else a)
    h = add(ONE, add(u, r))
    l = sub(u, sub(sub(h, ONE), r))
    z, e = times_power(h, n), times_power(l, n)
    v = div(z, add(ONE, z))
    g = sub(ONE, v)
    remainder = sub(sub(z, v), mul(v, z))
    w = add(mul(add(remainder, mul(e, g)), g), v)
    return w if less(x, ZERO) else sub(ONE, w)


def gelu_tanh(x):
    return mul(x, sigmoid(mul(x, add(mul(mul(x, x), 0x3D922279), 0x3FCC422A))))


def gelu_erf(x):
    h = mul(HALF, x)
    return add(mul(h, erf(mul(x, 0x3F3504F3))), h)


def silu(x):
    return mul(x, sigmoid(x))


def relu(x):
    return NAN if is_nan(x) else x if greater(x, ZERO) else ZERO


def rsqrt(x):
    return div(ONE, sqrt(x))


def absolute(x):
    return canonical(x & MAGNITUDE)


def negate(x):
    return canonical(neg(x))


def identity(x):
    return canonical(x)


def to_integer(rule):
    """The integer that a rule makes of the exact value, with the sign of x where it is zero."""
    def function(x):
        if is_nan(x) or is_inf(x) or is_zero(x):
            return canonical(x)
        integer = rule(value(x))
        return take_sign(from_int(integer), x) if integer == 0 else from_int(integer)
    return function


def key(x):
    """The order of MAX: -0 below +0."""
    return -1 - (x ^ SIGN) if x & SIGN else x


def maximum(a, b):
    return NAN if is_nan(a) or is_nan(b) else max(a, b, key=key)


def minimum(a, b):
    return NAN if is_nan(a) or is_nan(b) else min(a, b, key=key)


def clamp(x, low, high):
    return minimum(maximum(x, low), high)


# The operations of one operand without attributes, and those of two: shapes.py and cases_elementwise.py list what stands here.
UNARY = {
    "neg": negate, "abs": absolute, "exp": exp, "log": log, "sqrt": sqrt, "rsqrt": rsqrt, "relu": relu,
    "sigmoid": sigmoid, "tanh": tanh, "silu": silu, "floor": to_integer(floor), "round": to_integer(round), "erf": erf,
}
BINARY = {"add": add, "sub": sub, "mul": mul, "div": div, "maximum": maximum, "minimum": minimum}
ACTIVATIONS = {
    "none": identity, "relu": relu, "sigmoid": sigmoid, "tanh": tanh, "gelu_tanh": gelu_tanh, "gelu_erf": gelu_erf,
    "silu": silu,
}
GELU = {"erf": gelu_erf, "tanh": gelu_tanh}
