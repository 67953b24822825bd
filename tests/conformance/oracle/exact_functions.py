"""The functions of the contract in exact arithmetic, each in one place, constants as written in the text."""

from exact import (
    INF, MAGNITUDE, NAN, NEG_INF, ONE, SIGN, ZERO,
    add, canonical, div, from_int, greater, is_nan, is_zero, less, mul, neg, sqrt, sub,
)

HALF = 0x3F000000
TWO = 0x40000000


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


def minimum(a, b):
    return a if less(a, b) else b


def take_sign(magnitude, x):
    return magnitude & MAGNITUDE | x & SIGN


def exp(x):
    if is_nan(x):
        return NAN
    low, high = neg(from_int(105)), from_int(89)
    x = low if less(x, low) else x
    x = high if greater(x, high) else x
    t = add(mul(x, 0x3FB8AA3B), 0x4B400000)
    n = signed32(t - 0x4B400000)
    nf = sub(t, 0x4B400000)
    r = add(mul(nf, neg(0x3F317200)), x)
    r = add(mul(nf, neg(0x35BFBE8E)), r)
    q = horner(r, "3efffffe 3e2aaa45 3d2aac27 3c091f97 3ab56890")
    s = add(mul(mul(r, r), q), r)
    first = n >> 1
    return mul(mul(add(ONE, s), power_of_two(first)), power_of_two(n - first))


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
        result = sub(ONE, div(TWO, add(exp(minimum(mul(TWO, a), from_int(20))), ONE)))
    return take_sign(result, x)


def erf(x):
    if is_nan(x):
        return NAN
    a = x & MAGNITUDE
    if less(a, 0x3F6B851F):
        q = horner(mul(a, a), "3e0375d4 bec093a0 3de716b0 bcdc003a 3baa2075 ba52d067 38a6e1a6")
        result = add(mul(a, q), a)
    else:
        q = horner(minimum(a, 0x407CCCCD), "392a07a3 bf9091f3 bf222b2c bddd7990 3ccd0a7f bb878c9b 39e008cd b7abbdd8")
        result = sub(ONE, exp(q))
    return take_sign(result, x)


def sigmoid(x):
    if is_nan(x):
        return NAN
    z = exp(x | SIGN)
    return div(z if less(x, ZERO) else ONE, add(ONE, z))


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


UNARY = {
    "neg": negate, "abs": absolute, "exp": exp, "log": log, "sqrt": sqrt, "rsqrt": rsqrt, "relu": relu,
    "sigmoid": sigmoid, "tanh": tanh, "silu": silu,
}
ACTIVATIONS = {
    "none": identity, "relu": relu, "sigmoid": sigmoid, "tanh": tanh, "gelu_tanh": gelu_tanh, "gelu_erf": gelu_erf,
    "silu": silu,
}
GELU = {"erf": gelu_erf, "tanh": gelu_tanh}
