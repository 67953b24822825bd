"""Cases of matmul and ffn with `precision`: products of fixed-point numbers."""

from suite import operand
from tensors import FLOATS, hexes

PRECISIONS = ("fixed24", "fixed16")


def rand(dtype, *shape, e=0):
    return operand(dtype, shape, f"rand:?:{e}" if e else "rand:?")


def wild(dtype, *shape):
    return operand(dtype, shape, "wild:?")


def fill(pattern, *shape):
    return operand("f32", shape, f"fill:{pattern:08x}")


def explicit(rows):
    """A matrix of binary32 bit patterns."""
    return operand("f32", (len(rows), len(rows[0])), hexes("f32", [x for row in rows for x in row]))


def build(suite):
    for precision in PRECISIONS:
        shapes(suite, precision)
        arithmetic(suite, precision)
        epilogues(suite, precision)
        deep(suite, precision)
        ffn(suite, precision)
        errors(suite, precision)


def shapes(suite, precision):
    def case(name, operands, **attrs):
        suite.case(f"fixed/{precision}_{name}", "matmul", operands, precision=precision, **attrs)

    for m, k, n in ((1, 1, 1), (0, 3, 2), (3, 0, 2), (0, 0, 0), (2, 5, 3), (7, 64, 9), (8, 65, 24), (9, 127, 25), (17, 128, 33),
                    (5, 129, 8), (3, 255, 4), (33, 256, 1), (1, 257, 33), (5, 300, 7), (65, 300, 66), (130, 70, 129), (4, 1000, 3)):
        case(f"{m}x{k}x{n}", [rand("f32", m, k), rand("f32", k, n)])
    for dtype in FLOATS:
        for ta in (0, 1):
            for tb in (0, 1):
                a, b = ((300, 17) if ta else (17, 300)), ((33, 300) if tb else (300, 33))
                case(f"{dtype}_trans_{ta}{tb}", [rand(dtype, *a), rand(dtype, *b)], trans_a=ta, trans_b=tb)
        case(f"{dtype}_batch", [rand(dtype, 2, 1, 3, 5), rand(dtype, 3, 5, 2)])
        case(f"{dtype}_vector_vector", [rand(dtype, 7), rand(dtype, 7)])
        case(f"{dtype}_vector_matrix", [rand(dtype, 7), rand(dtype, 7, 3)])
        case(f"{dtype}_matrix_vector", [rand(dtype, 3, 7), rand(dtype, 7)])
    for a, b in (((2,), (2,)), ((2,), ()), ((), (2,)), ((1,), (3,)), ((2, 1), (1, 3)), ((0,), (1,)), ((2, 3), ())):
        name = f"{'_'.join(map(str, a)) or 'none'}-{'_'.join(map(str, b)) or 'none'}"
        case(f"batch_{name}", [rand("f32", *a, 3, 5), rand("f32", *b, 5, 2)])
    case("batch_k_0", [rand("f32", 2, 3, 0), rand("f32", 2, 0, 2)])
    case("batch_trans_11", [rand("f32", 2, 70, 9), rand("f32", 8, 70)], trans_a=1, trans_b=1)


def arithmetic(suite, precision):
    def case(name, a, b, **attrs):
        suite.case(f"fixed/{precision}_{name}", "matmul", [a, b], precision=precision, **attrs)

    most = 0x7F7F7F if precision == "fixed24" else 0x7F7F
    one = 0x3F800000

    def number(x):
        """An integer of at most 24 bits as binary32."""
        sign, n = (0x80000000, -x) if x < 0 else (0, x)
        if n == 0:
            return sign
        e = n.bit_length()
        return sign | (126 + e) << 23 | ((n << (24 - e)) & 0x7FFFFF)

    def halves(x):
        """x / 2."""
        bits = number(x)
        return bits - (1 << 23) if bits & 0x7FFFFFFF else bits

    # The largest fixes the scale at 0, so that halves are ties.
    ties = [number(most), *(halves(x) for x in (1, 3, 5, -1, -3, 7, -5, 2 * 1001 + 1))]
    case("ties", explicit([ties]), explicit([[one if i == j else 0 for j in range(len(ties))] for i in range(len(ties))]))
    # What is just below and above the limit: the scale is one less.
    above = 0xFEFEFF if precision == "fixed24" else 0xFEFF00
    for name, m in (("limit", above - 1), ("above_limit", above)):
        line = [0x4B000000 | m & 0x7FFFFF, 0x3F800000, 0x40400000, 0xC0400000]
        case(name, explicit([line]), explicit([[x] for x in (one, one, 0, one)]))
    # Digits of -128, of 127, of both.
    patterns = (0x808080, 0x7F8080, 0x8080, 0x80, -0x80, -0x8080, -0x7F8080, 0x7F7F7F, -0x7F7F7F, 0x7F7F, 0x4080, -0x4080)
    digits = [number(x) for x in patterns if abs(x) <= most]
    case("digits", explicit([digits, digits[::-1]]), explicit([[x, digits[-1 - i]] for i, x in enumerate(digits)]))
    case("largest_sum", fill(number(most), 2, 300), fill(number(most), 300, 3))
    case("largest_sum_negative", fill(number(-most), 2, 300), fill(number(most), 300, 3))
    case("minus_128_sum", fill(number(0x4080), 2, 300), fill(number(-0x4080), 300, 3))
    case("cancels", explicit([[one, one, one]]), explicit([[one], [0xBF800000], [0]]))
    case("zeros", fill(0, 3, 40), rand("f32", 40, 2), alpha=-1.0)
    case("minus_zeros", fill(0x80000000, 3, 40), fill(0x80000000, 40, 2))
    case("zero_line", explicit([[0, 0x80000000], [one, one]]), rand("f32", 2, 3))
    for name, bits in (("inf", 0x7F800000), ("minus_inf", 0xFF800000), ("nan", 0xFFC12345), ("signaling", 0x7F800001)):
        case(f"{name}_row", explicit([[one, bits], [one, one]]), rand("f32", 2, 3))
        case(f"{name}_column", rand("f32", 3, 2), explicit([[one, bits], [one, one]]))
        case(f"{name}_times_zeros", explicit([[bits, 0]]), fill(0, 2, 2))
    case("nan_relu", fill(0x7FC00000, 1, 1), rand("f32", 1, 3), activation="relu")
    for e in (-100, -61, -64, -70, -75):
        case(f"tiny{e}", rand("f32", 4, 70, e=e), rand("f32", 70, 5, e=e))
    for e in (60, 62, 64, 100):
        case(f"huge{e}", rand("f32", 4, 70, e=e), rand("f32", 70, 5, e=e))
    case("tiny_times_huge", rand("f32", 4, 70, e=-100), rand("f32", 70, 5, e=100))
    case("subnormals", explicit([[1, 2, 3, 0x7FFFFF], [1, 0, 0, 0x80000001]]), explicit([[0x7F000000, one]] * 4))
    case("subnormal_times_subnormal", fill(0x007FFFFF, 2, 5), fill(0x80000001, 5, 2))
    case("subnormal_result_tie", explicit([[3]]), explicit([[0x3E800000, 0x3F000000, 0x3F400000, 0x3E000000]]))
    case("negative_underflow", explicit([[1]]), explicit([[0xBE800000, 0xBF000000, 0xBF000001]]))
    case("largest_times_largest", fill(0x7F7FFFFF, 2, 3), fill(0xFF7FFFFF, 3, 2))
    case("largest_times_one", fill(0x7F7FFFFF, 2, 1), fill(one, 1, 2))
    for dtype in FLOATS:
        for k in (1, 2, 3, 9):
            case(f"{dtype}_wild_{k}", wild(dtype, 8, k), wild(dtype, k, 8))


def epilogues(suite, precision):
    def case(name, operands, **attrs):
        suite.case(f"fixed/{precision}_{name}", "matmul", operands, precision=precision, **attrs)

    for dtype in FLOATS:
        ab = [rand(dtype, 5, 9), rand(dtype, 9, 4)]
        for activation in ("none", "relu", "gelu_erf", "gelu_tanh", "silu"):
            case(f"{dtype}_{activation}_all", [*ab, rand(dtype, 5, 4), rand(dtype, 4)], alpha=1.5, beta=-0.75, activation=activation)
        for i, shape in enumerate(((4,), (5, 1), (1, 1), ())):
            case(f"{dtype}_c_{i}", [*ab, rand(dtype, *shape)], beta=0.5)
    case("bias", [rand("f32", 70, 130), rand("f32", 130, 90), "none", rand("f32", 90)])
    case("c_batch", [rand("f32", 2, 3, 5), rand("f32", 5, 4), rand("f32", 2, 1, 4)], beta=2.0)
    case("zero_k_bias", [rand("f32", 2, 0), rand("f32", 0, 3), "none", rand("f32", 3)], alpha=-1.0)
    case("alpha_makes_subnormal", [rand("f32", 3, 4, e=-40), rand("f32", 4, 3, e=-40)], alpha=2.0**-50)


def deep(suite, precision):
    def case(name, operands, **attrs):
        suite.case(f"fixed/{precision}_{name}", "matmul", operands, precision=precision, **attrs)

    # More than 32-bit sums of digits' products hold, and more than 64-bit sums of the largest numbers.
    for k in (43690, 43691, 65537, 140000):
        case(f"depth_{k}", [rand("f32", 2, k), rand("f32", k, 2)])
        case(f"depth_{k}_largest", [fill(0x4AFEFEFE, 1, k), fill(0x4AFEFEFE, k, 2)])
    case("depth_140000_smallest", [fill(0x4AFEFEFE, 1, 140000), fill(0xCAFEFEFE, 140000, 2)])


def ffn(suite, precision):
    def case(name, operands, **attrs):
        suite.case(f"fixed/{precision}_ffn_{name}", "ffn", operands, precision=precision, **attrs)

    def weights(dtype, d, h, e, b1=True, b2=True):
        return [rand(dtype, d, h), rand(dtype, h) if b1 else "none", rand(dtype, h, e), *([rand(dtype, e)] if b2 else [])]

    for dtype in FLOATS:
        for b1 in (0, 1):
            for b2 in (0, 1):
                case(f"{dtype}_bias_{b1}{b2}", [rand(dtype, 3, 5), *weights(dtype, 5, 7, 4, b1, b2)], activation="silu")
        case(f"{dtype}_deep", [rand(dtype, 3, 300), *weights(dtype, 300, 520, 5)], activation="gelu_erf")
        case(f"{dtype}_wild", [wild(dtype, 6, 2), wild(dtype, 2, 5), wild(dtype, 5), wild(dtype, 5, 6), wild(dtype, 6)], activation="none")
    for m, d, h, e in ((1, 1, 1, 1), (0, 3, 4, 2), (3, 0, 4, 2), (3, 4, 0, 2), (1, 64, 256, 64), (17, 65, 130, 33), (64, 128, 512, 128)):
        case(f"{m}x{d}x{h}x{e}", [rand("f32", m, d), *weights("f32", d, h, e)], activation="gelu_tanh")
    case("rank_4", [rand("f32", 2, 1, 2, 6), *weights("f32", 6, 3, 4)])
    # A hidden row with a NaN is not finite.
    case("hidden_nan", [explicit([[0x7FC00000, 0], [0x3F800000, 0]]), *weights("f32", 2, 3, 2)], activation="none")
    # Subnormal hidden values count with their value.
    case("hidden_subnormal", [rand("f32", 2, 3), fill(0, 3, 2), operand("f32", (2,), hexes("f32", [0x007FFFFF, 0x00800000])), fill(0x7F000000, 2, 2)])


def errors(suite, precision):
    f = rand
    suite.case(f"fixed/{precision}_error_k", "matmul", [f("f32", 2, 3), f("f32", 4, 2)], expect="shape_mismatch", precision=precision)
    suite.case(f"fixed/{precision}_error_dot", "dot", [f("f32", 3), f("f32", 3)], expect="invalid_argument", precision=precision)
    suite.case(f"fixed/{precision}_error_word", "matmul", [f("f32", 2, 3), f("f32", 3, 2)], expect="invalid_argument", precision=f"{precision}x")
