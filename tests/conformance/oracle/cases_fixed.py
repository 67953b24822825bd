"""Cases of matmul, ffn and attention with `precision`: products of fixed-point numbers."""

from cases_attention import INF, MINUS_INF, NAN, fixed, mask, qkv
from suite import operand, shape_text
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
        attention(suite, precision)
        attention_masks(suite, precision)
        attention_values(suite, precision)
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


def attention(suite, precision):
    def case(name, operands, **attrs):
        suite.case(f"fixed/{precision}_attention_{name}", "attention", operands, precision=precision, **attrs)

    case("plain", qkv("f32", (), 3, 5, 4))
    case("rank_5", qkv("f32", (2, 1, 6), 3, 70, 4, kv_lead=(2, 1, 2)), causal=1)
    for sk in (1, 2, 63, 64, 65, 130):
        case(f"sk{sk}", qkv("f32", (2,), 3, sk, 8))
        case(f"sk{sk}_causal", qkv("f32", (2,), 5, sk, 4, e=1), causal=1)
    for d, dv in ((1, 1), (3, 3), (16, 16), (32, 32), (64, 64), (80, 80), (128, 128), (300, 300), (8, 5), (5, 8), (1, 64), (64, 1), (80, 33)):
        case(f"d{d}_dv{dv}", qkv("f32", (2,), 3, 70, d, dv))
    for sq, sk in ((1, 7), (3, 3), (7, 3), (5, 66), (70, 70), (66, 5), (2, 1), (64, 64), (65, 64), (17, 130), (33, 200)):
        case(f"causal_{sq}x{sk}", qkv("f32", (2,), sq, sk, 8), causal=1)
    for sq in (16, 17, 64, 129):
        case(f"queries_{sq}", qkv("f32", (2,), sq, 70, 64))
    for lead, kv in (((4,), (2,)), ((4,), (1,)), ((2, 4), (2, 2))):
        name = f"heads_{shape_text(lead).replace(',', 'x')}_{shape_text(kv).replace(',', 'x')}"
        case(name, qkv("f32", lead, 3, 10, 4, kv_lead=kv))
        case(f"{name}_one_query", qkv("f32", lead, 1, 130, 64, kv_lead=kv))
        case(f"{name}_one_query_causal", qkv("f32", lead, 1, 130, 64, 80, kv_lead=kv), causal=1)
    case("decode_8x1x333x64", qkv("f32", (8,), 1, 333, 64, kv_lead=(2,)), causal=1)
    case("large_4x128x200x64", qkv("f32", (4,), 128, 200, 64, kv_lead=(2,)), causal=1)
    case("large_2x33x200x128", qkv("f32", (2,), 33, 200, 128))
    # More blocks of queries than large GPUs have multiprocessors.
    case("many_150x17x70x16", qkv("f32", (150,), 17, 70, 16, kv_lead=(50,)), causal=1)
    for scale in (1.0, 0.1, -0.5, 8.0, -0.0):
        case(f"scale_{scale}", qkv("f32", (), 4, 66, 6), scale=scale)
    for dtype in FLOATS:
        case(f"{dtype}_sk66", qkv(dtype, (2,), 4, 66, 16))
        case(f"{dtype}_gqa_causal_mask", [*qkv(dtype, (2, 4), 9, 130, 16, kv_lead=(2, 2)), rand(dtype, 9, 130, e=1)], causal=1)
        case(f"{dtype}_wild", [wild(dtype, 3, 4, 2), wild(dtype, 3, 5, 2), wild(dtype, 3, 5, 3)])
        case(f"{dtype}_wild_values", [rand(dtype, 3, 4, 4), rand(dtype, 3, 70, 4), wild(dtype, 3, 70, 9)])
        case(f"{dtype}_wild_mask", [*qkv(dtype, (3,), 4, 7, 4), wild(dtype, 3, 4, 7)])
        case(f"{dtype}_wild_scale", [wild(dtype, 3, 4, 1), wild(dtype, 3, 5, 1), rand(dtype, 3, 5, 3)], scale=2.0**-20)
    for e in (3, 5):
        case(f"sharp{e}", qkv("f32", (2,), 5, 200, 16, e=e))
    case("zero_queries", qkv("f32", (2,), 0, 5, 4))
    case("zero_keys", qkv("f32", (2,), 3, 0, 4))
    case("zero_depth_scaled", qkv("f32", (2,), 3, 5, 0, 2), scale=1.0)
    case("zero_depth", qkv("f32", (2,), 3, 5, 0, 2))  # 0 * (1 / sqrt(0)) is NaN
    case("zero_width", [rand("f32", 2, 3, 4), rand("f32", 2, 5, 4), rand("f32", 2, 5, 0)])
    case("zero_batch", qkv("f32", (0, 2), 3, 5, 4))


def attention_masks(suite, precision):
    def case(name, operands, **attrs):
        suite.case(f"fixed/{precision}_attention_mask_{name}", "attention", operands, precision=precision, **attrs)

    base = qkv("f32", (2, 2), 3, 5, 4)
    for shape in ((2, 2, 3, 5), (2, 1, 3, 5), (1, 2, 3, 5), (3, 5), (2, 2, 1, 5), (5,), (3, 1), (2, 2, 3, 1), ()):
        case(f"shape_{shape_text(shape).replace(',', 'x')}", [*base, rand("f32", *shape, e=1)])
    case("some", [*qkv("f32", (), 3, 5, 4), mask(["..x.x", "xx..x", "x...."])])
    case("row_hidden", [*qkv("f32", (), 3, 5, 4), mask([".....", "xxxxx", "x..xx"])])
    case("everything", [*qkv("f32", (2,), 3, 70, 4), operand("f32", (), MINUS_INF["f32"])])
    blocks = {"first_block": "x" * 64 + "." * 6, "last_block": "." * 64 + "x" * 6, "middle_block": "." * 64 + "x" * 64 + "." * 5}
    for name, row in blocks.items():
        case(name, [*qkv("f32", (4,), 2, len(row), 16, kv_lead=(2,)), mask([row])])
    case("causal", [*qkv("f32", (), 4, 4, 4), rand("f32", 4, 4)], causal=1)
    # what the mask says of a key that causality hides is not read
    case("hidden_nan", [*qkv("f32", (), 3, 3, 4), mask(["0nn", "01n", "012"])], causal=1)
    case("live_nan", [*qkv("f32", (), 3, 5, 4), mask(["..n..", ".....", "xxxxn"])])
    case("live_infinite", [*qkv("f32", (), 3, 5, 4), mask(["..+..", ".....", "xxxx+"])])
    case("nan_in_second_block", [*qkv("f32", (), 1, 70, 4), mask(["." * 66 + "n" + "..."])])
    # Each block has weights of its own scale: its largest is 1.
    case("rising_blocks", [*qkv("f32", (), 2, 130, 4), mask(["0" * 64 + "3" * 64 + "6" * 2])])
    case("falling_blocks", [*qkv("f32", (), 2, 130, 4), mask(["6" * 64 + "3" * 64 + "0" * 2])])
    case("far", [*qkv("f32", (), 1, 130, 4), fixed((1, 130), [0] * 64 + [-90] * 64 + [-300] * 2)])
    # Weights down to less than half of the last bit, and the two sides of what is rounded to zero: half of 2^-22 and of 2^-14.
    case("fading", [rand("f32", 1, 4), fill(0, 64, 4), rand("f32", 64, 4), fixed((64,), [-j / 4 for j in range(64)])])
    for name, around in (("fixed24", -15.942385), ("fixed16", -10.397208)):
        near = [0, *(around + j * 1e-6 for j in range(-3, 4))]
        case(f"vanishing_{name}", [fill(0, 1, 1), fill(0, 8, 1), fixed((8, 8), [float(i == j) for i in range(8) for j in range(8)]),
                                   fixed((8,), near)])
    case("subnormal_weights", [fill(0, 1, 1), fill(0, 4, 1), fixed((4, 1), [1, 1e38, 1e38, 1e38]), fixed((4,), [0, -88, -90, -100])])


# The bits of 2^-126, of the largest number below 2^-124, of 2^-124 and those around the limit of its significand, of the largest number.
EDGES = [0x00800000, 0x017FFFFF, 0x01800000, 0x01FEFEFE, 0x01FEFEFF, 0x01FEFF00, 0x7F7FFFFF]


def attention_values(suite, precision):
    def case(name, operands, **attrs):
        suite.case(f"fixed/{precision}_attention_{name}", "attention", operands, precision=precision, **attrs)

    def one(sq, sk, at, value, rows=None, **attrs):
        """Small numbers in v but for one element of the first column."""
        v = [0.25 * (j % 7) - 0.5 for j in range(sk) for _ in range(2)]
        v[2 * at] = value
        return [rand("f32", sq, 3), rand("f32", sk, 3), fixed((sk, 2), v), *([mask(rows)] if rows else [])]

    # A hidden key in a live block has a weight of 0, which NaN outlives and a huge value doesn't change. A skipped block is not read.
    for label, value in (("nan", NAN), ("inf", INF), ("minus_inf", -INF), ("huge", 3e38)):
        case(f"v_{label}_seen", one(2, 4, 1, value))
        case(f"v_{label}_causal_same_block", one(3, 3, 2, value), causal=1)
        case(f"v_{label}_masked_same_block", one(1, 4, 1, value, [".x.."]))
    for label, value in (("nan", NAN), ("inf", INF)):
        case(f"v_{label}_causal_later_block", one(66, 66, 65, value), causal=1)
        case(f"v_{label}_masked_other_block", one(1, 70, 66, value, ["." * 64 + "x" * 6]))
        case(f"v_{label}_masked_live_block", one(1, 70, 66, value, ["." * 65 + "x" * 5]))
    case("v_nan_row_hidden", one(1, 4, 1, NAN, ["xxxx"]))
    case("v_nan_causal_rows_without_key", one(5, 2, 0, NAN), causal=1)
    for label, value in (("nan", NAN), ("inf", INF), ("minus_inf", -INF)):
        case(f"q_{label}", [fixed((3, 2), [value, 1, 1, 2, 0, -1]), rand("f32", 5, 2), rand("f32", 5, 2)])
        case(f"q_{label}_row_without_key", [fixed((3, 2), [value, 1, 1, 2, 0, -1]), rand("f32", 2, 2), rand("f32", 2, 2)], causal=1)
        case(f"k_{label}", [rand("f32", 2, 2), fixed((3, 2), [1, 2, value, 1, 0, -1]), rand("f32", 3, 2)])
        # A hidden key has no score.
        case(f"k_{label}_hidden", [rand("f32", 3, 2), fixed((3, 2), [1, 2, -1, 1, 0, value]), rand("f32", 3, 2)], causal=1)
    case("q_zeros", [fill(0, 2, 4), rand("f32", 5, 4), rand("f32", 5, 4)])
    case("minus_zeros", [fill(0x80000000, 2, 4), fill(0x80000000, 5, 4), fill(0x80000000, 5, 2)])
    case("q_subnormal", [fill(0x00000003, 2, 4), rand("f32", 5, 4, e=126), rand("f32", 5, 4)], scale=2.0**22)
    case("k_subnormal", [rand("f32", 2, 4, e=126), explicit([[1, 2, 3, 0x7FFFFF], [1, 0, 0, 0x80000001]]), rand("f32", 2, 4)], scale=2.0**10)
    # Rows at the edges: below 2^-124 they are zeros, and the factors of weights reach 2^126 and 2^-126.
    case("v_edges", [fill(0, 2, 4), rand("f32", 7, 4), explicit([[x, 0x80000001, x ^ 0x80000000] for x in EDGES])])
    case("v_edges_low", [rand("f32", 3, 4), rand("f32", 6, 4), explicit([[x, 3, 0] for x in EDGES[:6]])])
    case("v_small_with_large_weight", [fill(0, 1, 1), fill(0, 3, 1), fixed((3, 2), [1e-37, -3e-37, 1, 2, -1e30, 3e38]), fixed((3,), [0, -80, -160])])
    case("v_subnormal", [rand("f32", 2, 4), rand("f32", 5, 4), fill(0x007FFFFF, 5, 2)])
    case("v_smallest", [rand("f32", 2, 4), rand("f32", 5, 4), fill(0x00000001, 5, 2)])
    case("v_largest", [rand("f32", 2, 4), rand("f32", 5, 4), fill(0x7F7FFFFF, 5, 2)])
    case("v_tiny", [rand("f32", 3, 4), rand("f32", 5, 4), rand("f32", 5, 4, e=-100)])
    # Far apart in one column, in one row, and in the two blocks of a column.
    q, k = rand("f32", 3, 4), rand("f32", 66, 4)
    apart = {"columns": lambda j, d: j % 2, "rows": lambda j, d: d, "blocks": lambda j, d: j < 64, "last": lambda j, d: j == 65}
    for name, is_large in apart.items():
        v = [(j % 5 - 1.5) * (1e30 if is_large(j, d) else 1e-30) for j in range(66) for d in range(2)]
        case(f"v_apart_in_{name}", [q, k, fixed((66, 2), v)])
    numbers = [x * (1e15 if (j + x) % 2 else 1e-15) for j in range(3) for x in (1, 2, 3, 4)]
    case("q_apart", [fixed((3, 4), numbers), rand("f32", 5, 4), rand("f32", 5, 4)], scale=1e-15)
    case("k_apart", [rand("f32", 2, 4), fixed((3, 4), numbers), rand("f32", 3, 4)], scale=1e-15)
    case("scores_overflow", [rand("f32", 2, 4, e=70), rand("f32", 5, 4, e=70), rand("f32", 5, 4)])
    case("underflow", qkv("f32", (), 3, 5, 8, e=-64), scale=1.0)
    # The largest of digits' sums, in scores and in a whole block.
    most = 0x4AFEFEFE if precision == "fixed24" else 0x46FEFE00
    case("largest_sums", [fill(most, 2, 300), fill(most, 64, 300), fill(most, 64, 3)], scale=2.0**-60)
    case("largest_sums_negative", [fill(most, 2, 300), fill(most | 0x80000000, 64, 300), fill(most | 0x80000000, 64, 3)], scale=2.0**-60)


def errors(suite, precision):
    f = rand
    suite.case(f"fixed/{precision}_error_k", "matmul", [f("f32", 2, 3), f("f32", 4, 2)], expect="shape_mismatch", precision=precision)
    suite.case(f"fixed/{precision}_error_dot", "dot", [f("f32", 3), f("f32", 3)], expect="invalid_argument", precision=precision)
    suite.case(f"fixed/{precision}_error_word", "matmul", [f("f32", 2, 3), f("f32", 3, 2)], expect="invalid_argument", precision=f"{precision}x")
    suite.case(f"fixed/{precision}_attention_error_word", "attention", qkv("f32", (), 3, 5, 4), expect="invalid_argument",
               precision=f"{precision}x")
    suite.case(f"fixed/{precision}_attention_error_width", "attention", [f("f32", 3, 4), f("f32", 5, 3), f("f32", 5, 4)],
               expect="shape_mismatch", precision=precision)
