"""The functions of the contract in exact arithmetic, each in one place, constants as written in the text."""

from math import floor

from exact import (
    INF, MAGNITUDE, NAN, NEG_INF, ONE, SIGN, ZERO,
    add, canonical, div, fmaz, from_int, greater, is_inf, is_nan, is_zero, less, mul, neg, sqrt, sub, value,
)

HALF = 0x3F000000
TWO = 0x40000000
THREE = 0x40400000
NEG_105 = neg(from_int(105))
NEG_18 = neg(from_int(18))
EXP = "3efffffe 3e2aaa45 3d2aac27 3c091f97 3ab56890"


def horner(x, text):
    """Coefficients from the lowest to the highest; evaluated from the highest."""
    coefficients = [int(word, 16) for word in text.split()]
    q = coefficients.pop()
    while coefficients:
        q = fmaz(q, x, coefficients.pop())
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
    r, q, n = exp_core(x)
    return times_power(fmaz(fmaz(q, r, ONE), r, ONE), n)


def exp_core(x):
    """e^x = (1 + r + r·r·q)·2^n."""
    t = fmaz(x, 0x3FB8AA3B, 0x4B400000)
    n = signed32(t - 0x4B400000)
    nf = sub(t, 0x4B400000)
    r = fmaz(nf, neg(0x3F317200), x)
    r = fmaz(nf, neg(0x35BFBE8E), r)
    return r, horner(r, EXP), n


def less_one(r, q):
    """e^r - 1."""
    return fmaz(mul(r, r), q, r)


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
    return log_sum(sub(m, ONE), k, ZERO)


def log_sum(f, k, g):
    q = horner(f, "bf000000 3eaaaaa9 be8000f1 3e4cd07e be2a42d8 3e116ac1 be066736 3e028da1 bd9dc695")
    s = mul(k, 0x3F317200)
    h = add(s, f)
    l = add(fmaz(k, 0x35BFBE8E, sub(f, sub(h, s))), g)
    return add(h, fmaz(mul(f, f), q, l))


def tanh(x):
    if is_nan(x):
        return NAN
    a = x & MAGNITUDE
    if less(a, 0x3F6B851F):
        y = mul(a, a)
        q = horner(y, "beaaaaa6 3e088766 bd5cddb2 3cb13d3f bc067dd8 3b25b194 b9e403e9")
        result = a if less(a, 0x39000000) else fmaz(mul(a, y), q, a)
    else:
        r, q, n = exp_core(at_most(mul(TWO, a), from_int(20)))
        p = power_of_two(n)
        result = sub(ONE, div(TWO, fmaz(p, less_one(r, q), add(p, ONE))))
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
        r, q, n = exp_core(horner(d, "bfebc2c5 c02893ed bf57bddf bd2ab2c8 3c24525e bafb9c7e 395ce34f"))
        power = power_of_two(n)
        result = fmaz(neg(power), less_one(r, q), sub(ONE, power))
    return take_sign(result, x)


def log1p(x):
    if is_nan(x) or less(x, neg(ONE)):
        return NAN
    if x == neg(ONE):
        return NEG_INF
    if x == INF:
        return INF
    u = add(ONE, x)
    k = signed32(u - 0x3F3504F3) >> 23
    if k == 0:
        f, g = x, ZERO
    else:
        f, g = sub((u - (k << 23)) & 0xFFFFFFFF, ONE), div(sub(x, sub(u, ONE)), u)
    return take_sign(log_sum(f, from_int(k), g), x)


def expm1(x):
    if is_nan(x):
        return NAN
    v = NEG_18 if less(x, NEG_18) else x
    v = from_int(89) if greater(v, from_int(89)) else v
    t = fmaz(v, 0x3FB8AA3B, 0x4B400000)
    n = signed32(t - 0x4B400000)
    nf = sub(t, 0x4B400000)
    a = sub(v, mul(nf, 0x3F317200))
    g = mul(nf, 0x35BFBE8E)
    r = sub(a, g)
    w = sub(sub(a, r), g)
    u = add(mul(mul(r, r), horner(r, "3f000000 3e2aaaab 3d2aaa7b 3c088802 3ab69e56 3951217b")), w)
    p = power_of_two(min(n, 127))
    b = sub(p, ONE)
    d = mul(p, r)
    s = add(b, d)
    y = add(s, add(sub(d, sub(s, b)), mul(p, u)))
    return take_sign(mul(TWO, y) if n > 127 else y, x)


def sin(x):
    return angle(x, 0) ^ (x & SIGN) if not is_nan(x) and not is_inf(x) else NAN


def cos(x):
    return angle(x, 1) if not is_nan(x) and not is_inf(x) else NAN


def angle(x, quarters):
    """The sine of |x| and so many right angles."""
    a = x & MAGNITUDE
    h, l, q = reduced(a) if less(a, from_int(6400)) else reduced_exactly(a)
    z = mul(h, h)
    half = mul(HALF, z)
    one = sub(ONE, half)
    if (q + quarters) % 2 == 0:
        y = add(h, add(mul(mul(h, z), horner(z, "be2aaaa3 3c0883be b94caae3")), mul(l, one)))
    else:
        c = sub(mul(mul(z, z), horner(z, "3d2aaaa5 bab6060d 37ccf072")), mul(h, l))
        y = add(one, add(sub(sub(ONE, one), half), c))
    return neg(y) if (q + quarters) % 4 >= 2 else y


def reduced(a):
    t = add(mul(a, 0x3F22F983), 0x4B400000)
    n = sub(t, 0x4B400000)
    r = sub(sub(a, mul(n, 0x3FC91000)), mul(n, 0xB6960000))
    w = mul(n, 0x32888000)
    h = sub(r, w)
    return h, sub(sub(sub(r, h), w), mul(n, 0x2C34611A)), t - 0x4B400000


def reduced_exactly(a):
    """By one long product, not by windows of it: the text says which of its bits count."""
    m, shift = a & 0x7FFFFF | 0x800000, (a >> 23) - 120
    bits = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163AB  # 224 bits behind the point
    window = bits >> (224 + 32 - shift - 96) & ((1 << 96) - 1)
    p = (m * window >> 32) % 2**64
    q, f = p >> 62, p % 2**62
    if f >= 2**61:
        q, f = q + 1, f - 2**62
    g = abs(f) << 2
    z = 64 - g.bit_length()
    r = ((g << z) >> 32) * 0xC90FDAA2 >> 33
    scale = power_of_two(-30 - z)
    h, l = mul(from_int(r - r % 128), scale), mul(from_int(r % 128), scale)
    return (neg(h), neg(l), q) if f < 0 else (h, l, q)


def upper(x):
    return x & 0xFFFFF000


def odd_integer(y):
    return not is_inf(y) and value(y) % 2 == 1


def power(x, y):
    if is_zero(y) or x == ONE:
        return ONE
    if is_nan(x) or is_nan(y):
        return NAN
    a = x & MAGNITUDE
    if a in (ZERO, INF):
        y_positive = y & SIGN == 0
        result = ZERO if (a == ZERO) == y_positive else INF
    elif x & SIGN and not is_inf(y) and value(y) % 1 != 0:
        return NAN
    else:
        result = exp2_of(log2(a), y)
    return result | SIGN if x & SIGN and odd_integer(y) else result


def log2(a):
    lowered = 0
    if a < 0x00800000:
        a, lowered = mul(a, power_of_two(23)), 23
    k = signed32(a - 0x3F3504F3) >> 23
    m = (a - (k << 23)) & 0xFFFFFFFF
    k = from_int(k - lowered)
    f, t = sub(m, ONE), add(m, ONE)
    v = div(ONE, t)
    s = mul(f, v)
    s_h, t_h = upper(s), upper(t)
    t_l = sub(m, sub(t_h, ONE))
    s_l = mul(sub(sub(f, mul(s_h, t_h)), mul(s_h, t_l)), v)
    z = mul(s, s)
    r = add(mul(mul(z, z), horner(z, "3f1999c0 3edb3de0 3eb3dc68")), mul(s_l, add(s_h, s)))
    square = mul(s_h, s_h)
    g_h = upper(add(add(square, THREE), r))
    g_l = sub(r, sub(sub(g_h, THREE), square))
    p = mul(s_h, g_h)
    p_l = add(mul(s_l, g_h), mul(g_l, s))
    p_h = upper(add(p, p_l))
    p_l = sub(p_l, sub(p_h, p))
    z_h = mul(p_h, 0x3F764000)
    z_l = add(mul(p_h, 0xB8F623C6), mul(p_l, 0x3F76384F))
    h = upper(add(add(z_h, z_l), k))
    return h, sub(z_l, sub(sub(h, k), z_h))


def exp2_of(logarithm, y):
    h, l = logarithm
    limit = 0x53800000
    y = limit if greater(y, limit) else neg(limit) if less(y, neg(limit)) else y
    y_h = upper(y)
    low = add(mul(sub(y, y_h), h), mul(y, l))
    high = mul(y_h, h)
    total = add(high, low)
    if greater(total, from_int(160)):
        high, low = from_int(160), ZERO
    elif less(total, from_int(-160)):
        high, low = from_int(-160), ZERO
    t = add(add(high, low), 0x4B400000)
    n = signed32(t - 0x4B400000)
    d = sub(high, sub(t, 0x4B400000))
    d_h = upper(add(d, low))
    d_l = sub(low, sub(d_h, d))
    p = mul(d_h, 0x3F317000)
    w = add(mul(d_l, 0x3F317218), mul(d_h, 0x3805FDF4))
    r = add(p, w)
    u = add(mul(mul(r, r), horner(r, EXP)), sub(w, sub(r, p)))
    e = add(ONE, r)
    return times_power(add(e, add(sub(r, sub(e, ONE)), u)), n)


def sigmoid(x):
    if is_nan(x):
        return NAN
    a = x | SIGN
    r, q, n = exp_core(NEG_105 if less(a, NEG_105) else a)
    h = add(ONE, less_one(r, q))
    l = fmaz(mul(r, r), q, sub(r, sub(h, ONE)))
    z = times_power(h, n)
    v = div(ONE, add(ONE, z))
    y = mul(h, v)
    remainder = fmaz(neg(y), z, sub(h, y))
    w = times_power(fmaz(fmaz(l, v, remainder), v, y), n)
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
    "sin": sin, "cos": cos, "log1p": log1p, "expm1": expm1,
}
BINARY = {"add": add, "sub": sub, "mul": mul, "div": div, "maximum": maximum, "minimum": minimum, "pow": power}
ACTIVATIONS = {
    "none": identity, "relu": relu, "sigmoid": sigmoid, "tanh": tanh, "gelu_tanh": gelu_tanh, "gelu_erf": gelu_erf,
    "silu": silu,
}
GELU = {"erf": gelu_erf, "tanh": gelu_tanh}
