"""Cases of attention and ffn."""

from cases_matmul import ACTIVATIONS, rand, wild
from suite import operand, shape_text
from tensors import FLOATS, bits, hexes

INF, NAN = float("inf"), float("nan")
MINUS_INF = {"f32": "fill:ff800000", "f16": "fill:fc00", "bf16": "fill:ff80"}


def qkv(dtype, lead, sq, sk, d, dv=None, kv_lead=None, e=0):
    kv_lead = lead if kv_lead is None else kv_lead
    return [rand(dtype, *lead, sq, d, e=e), rand(dtype, *kv_lead, sk, d, e=e), rand(dtype, *kv_lead, sk, dv or d)]


def mask(rows, dtype="f32"):
    """Rows of '.' (0) and 'x' (-inf), digits stand for themselves, n for NaN, + for +inf."""
    value = {".": 0.0, "x": -INF, "n": NAN, "+": INF}
    numbers = [value[c] if c in value else float(c) for row in rows for c in row]
    return operand(dtype, (len(rows), len(rows[0])), bits(dtype, numbers))


def fixed(dims, numbers, dtype="f32"):
    return operand(dtype, dims, bits(dtype, numbers))


def build(suite):
    attention(suite)
    masks(suite)
    values_that_show(suite)
    ffn(suite)
    errors(suite)


def attention(suite):
    def case(name, operands, **attrs):
        suite.case(f"attention/{name}", "attention", operands, **attrs)

    for dtype in FLOATS:
        for sk in (1, 2, 63, 64, 65, 127, 128, 129, 200):
            case(f"{dtype}_sk{sk}", qkv(dtype, (), 3, sk, 8))
            case(f"{dtype}_sk{sk}_causal", qkv(dtype, (2,), 5, sk, 4, e=1), causal=1)
        for d, dv in ((1, 1), (8, 8), (64, 64), (80, 80), (300, 300), (8, 5), (5, 8), (1, 64), (257, 3), (300, 16)):
            case(f"{dtype}_d{d}_dv{dv}", qkv(dtype, (2,), 3, 70, d, dv))
        for lead, kv in (((4,), (2,)), ((4,), (1,)), ((2, 6), (2, 3)), ((2, 1), (2, 1)), ((2, 2, 4), (2, 2, 2))):
            case(f"{dtype}_heads_{shape_text(lead).replace(',', 'x')}_{shape_text(kv).replace(',', 'x')}",
                 qkv(dtype, lead, 3, 10, 4, kv_lead=kv))
        for sq, sk in ((1, 7), (3, 3), (7, 3), (5, 66), (70, 70), (66, 5), (2, 1), (64, 64), (65, 64)):
            case(f"{dtype}_causal_{sq}x{sk}", qkv(dtype, (2,), sq, sk, 8), causal=1)
        for scale in (1.0, 0.1, -0.5, 8.0):
            case(f"{dtype}_scale_{scale}", qkv(dtype, (), 4, 66, 6), scale=scale)
        case(f"{dtype}_gqa_causal_mask", [*qkv(dtype, (2, 4), 9, 130, 16, kv_lead=(2, 2)), rand(dtype, 9, 130, e=1)], causal=1)
        case(f"{dtype}_wild", [wild(dtype, 3, 4, 2), wild(dtype, 3, 5, 2), wild(dtype, 3, 5, 3)])
        case(f"{dtype}_wild_values", [rand(dtype, 3, 4, 4), rand(dtype, 3, 70, 4), wild(dtype, 3, 70, 9)])
        case(f"{dtype}_wild_mask", [*qkv(dtype, (3,), 4, 7, 4), wild(dtype, 3, 4, 7)])
    case("rank_8", qkv("f32", (1, 2, 1, 1, 2, 2), 2, 3, 4))
    case("rank_5_gqa", qkv("f32", (2, 1, 6), 3, 70, 4, kv_lead=(2, 1, 2)), causal=1)
    case("scale_minus_zero", qkv("f32", (), 2, 5, 4), scale=-0.0)
    case("large_4x128x128x64", qkv("f32", (4,), 128, 128, 64), causal=1)
    case("large_2x8x33x200x80", qkv("f32", (2, 8), 33, 200, 80, kv_lead=(2, 2)))
    case("large_1x700x64", qkv("f32", (), 1, 700, 64))
    case("decode_8x1x333x64_causal", qkv("f32", (8,), 1, 333, 64, kv_lead=(2,)), causal=1)
    # More blocks of queries than large GPUs have multiprocessors, twice.
    case("many_300x17x70x8_causal", qkv("f32", (300,), 17, 70, 8, kv_lead=(100,)), causal=1)
    case("many_280x20x130x64", qkv("f32", (280,), 20, 130, 64, kv_lead=(10,)))
    for e in (3, 5):
        case(f"sharp{e}", qkv("f32", (2,), 5, 200, 16, e=e))
    # zero sizes
    case("zero_queries", qkv("f32", (2,), 0, 5, 4))
    case("zero_keys", qkv("f32", (2,), 3, 0, 4))
    case("zero_keys_causal", qkv("f32", (2,), 3, 0, 4), causal=1)
    case("zero_depth_scaled", qkv("f32", (2,), 3, 5, 0, 2), scale=1.0)
    case("zero_depth", qkv("f32", (2,), 3, 5, 0, 2))  # 0 * (1 / sqrt(0)) is NaN
    case("zero_width", [rand("f32", 2, 3, 4), rand("f32", 2, 5, 4), rand("f32", 2, 5, 0)])
    case("zero_batch", qkv("f32", (0, 2), 3, 5, 4))
    case("zero_heads", qkv("f32", (2, 0), 3, 5, 4))
    # products that underflow: M flushes, the scale does not
    case("underflow", qkv("f32", (), 3, 5, 8, e=-64), scale=1.0)
    case("tiny_values", [rand("f32", 3, 4), rand("f32", 5, 4), rand("f32", 5, 4, e=-100)])
    case("subnormal_values", [rand("f32", 2, 4), rand("f32", 5, 4), operand("f32", (5, 2), "fill:007fffff")])
    case("scores_minus_zero", [fixed((1, 2), [-0.0, -0.0]), fixed((3, 2), [1] * 6), rand("f32", 3, 2)])


def masks(suite):
    def case(name, operands, **attrs):
        suite.case(f"attention/mask_{name}", "attention", operands, **attrs)

    base = qkv("f32", (2, 2), 3, 5, 4)
    for shape in ((2, 2, 3, 5), (2, 1, 3, 5), (1, 2, 3, 5), (1, 1, 3, 5), (2, 3, 5), (1, 3, 5), (3, 5), (1, 5), (5,), (3, 1),
                  (2, 2, 3, 1), (2, 2, 1, 5), (2, 1, 1, 1), (1, 1), (1,), ()):
        case(f"shape_{shape_text(shape).replace(',', 'x')}", [*base, rand("f32", *shape, e=1)])
    for dtype in FLOATS:
        case(f"{dtype}_rank_2", [*qkv(dtype, (), 3, 5, 4), rand(dtype, 3, 5)])
        case(f"{dtype}_some", [*qkv(dtype, (), 3, 5, 4), mask(["..x.x", "xx..x", "x...."], dtype)])
        case(f"{dtype}_row_hidden", [*qkv(dtype, (), 3, 5, 4), mask([".....", "xxxxx", "x..xx"], dtype)])
        case(f"{dtype}_everything", [*qkv(dtype, (2,), 3, 70, 4), operand(dtype, (), MINUS_INF[dtype])])
        first = ["x" * 64 + "." * 6] * 2
        last = ["." * 64 + "x" * 6] * 2
        middle = ["." * 64 + "x" * 64 + "." * 5] * 2
        for name, rows in (("first_block", first), ("last_block", last), ("middle_block", middle)):
            case(f"{dtype}_{name}", [*qkv(dtype, (), 2, len(rows[0]), 4), mask(rows, dtype)])
    case("causal", [*qkv("f32", (), 4, 4, 4), rand("f32", 4, 4)], causal=1)
    # what the mask says of a key that causality hides is not read
    case("hidden_nan", [*qkv("f32", (), 3, 3, 4), mask(["0nn", "01n", "012"])], causal=1)
    case("hidden_infinite", [*qkv("f32", (), 3, 3, 4), mask(["0++", "01+", "012"])], causal=1)
    case("live_nan", [*qkv("f32", (), 3, 5, 4), mask(["..n..", ".....", "xxxxn"])])
    case("live_infinite", [*qkv("f32", (), 3, 5, 4), mask(["..+..", ".....", "xxxx+"])])
    case("nan_in_second_block", [*qkv("f32", (), 1, 70, 4), mask(["." * 66 + "n" + "..."])])
    case("nan_in_first_block", [*qkv("f32", (), 1, 70, 4), mask(["." * 6 + "n" + "." * 63])])
    case("infinite_in_second_block", [*qkv("f32", (), 1, 70, 4), mask(["." * 66 + "+" + "..."])])
    case("rising_blocks", [*qkv("f32", (), 2, 200, 4), mask(["0" * 64 + "3" * 64 + "6" * 64 + "9" * 8] * 2)])
    case("falling_blocks", [*qkv("f32", (), 2, 200, 4), mask(["9" * 64 + "6" * 64 + "3" * 64 + "0" * 8] * 2)])
    case("far", [*qkv("f32", (), 1, 130, 4), fixed((1, 130), [0] * 64 + [-90] * 64 + [-300] * 2)])
    case("far_rising", [*qkv("f32", (), 1, 130, 4), fixed((1, 130), [-300] * 64 + [-90] * 64 + [0] * 2)])
    case("nan_queries", [fixed((2, 2), [NAN, 1, 1, 2]), rand("f32", 5, 2), rand("f32", 5, 2)])
    # -inf is added to the score, it doesn't replace it
    case("over_infinite_score", [fixed((1, 1), [1]), fixed((4, 1), [1, INF, NAN, 2]), rand("f32", 4, 2), mask([".x.."])])
    case("over_infinite_score_only", [fixed((1, 1), [1]), fixed((3, 1), [1, INF, 2]), rand("f32", 3, 2), mask([".x."])])
    case("over_nan_score_only", [fixed((1, 1), [1]), fixed((3, 1), [1, NAN, 2]), rand("f32", 3, 2), mask([".x."])])
    # a weight of exp(-88) is subnormal: M reads it as zero beside a value that would show it
    case("subnormal_weights", [fixed((1, 1), [0]), fixed((4, 1), [0] * 4), fixed((4, 1), [1, 1e38, 1e38, 1e38]),
                               fixed((1, 4), [0, -88, -90, -100])])
    case("smallest_weights", [fixed((1, 1), [0]), fixed((3, 1), [0] * 3), fixed((3, 1), [1, 1e38, 1e38]),
                              operand("f32", (1, 3), hexes("f32", [0, 0xC2AEAC4F, 0xC2AEAC51]))])
    # a merge factor of exp(-90) is subnormal too, but merging is E and keeps it
    for name, order in (("rising", [-90] * 64 + [0]), ("falling", [0] * 64 + [-90])):
        huge = [1e38 if x else 1 for x in order]
        case(f"subnormal_merge_{name}", [fixed((1, 1), [0]), fixed((65, 1), [0] * 65), fixed((65, 1), huge), fixed((1, 65), order)])
    case("minus_zero", [*qkv("f32", (), 2, 5, 4), operand("f32", (), "fill:80000000")])
    case("subnormal", [*qkv("f32", (), 2, 5, 4), operand("f32", (), "fill:00000001")], scale=2.0**-149)


def values_that_show(suite):
    """NaN and infinity in v where the key is hidden: they show inside a live block, not in a skipped one."""
    def case(name, sq, sk, special, **attrs):
        at, value = special
        v = [0.25 * (j % 7) - 0.5 for j in range(sk) for _ in range(2)]
        v[2 * at] = value
        operands = [rand("f32", sq, 3), rand("f32", sk, 3), fixed((sk, 2), v)]
        rows = attrs.pop("rows", None)
        suite.case(f"attention/value_{name}", "attention", operands + ([mask(rows)] if rows else []), **attrs)

    for label, value in (("nan", NAN), ("inf", INF), ("minus_inf", -INF)):
        case(f"{label}_causal_same_block", 3, 3, (2, value), causal=1)
        case(f"{label}_causal_later_block", 66, 66, (65, value), causal=1)
        case(f"{label}_masked_same_block", 1, 4, (1, value), rows=[".x.."])
        case(f"{label}_masked_other_block", 1, 70, (66, value), rows=["." * 64 + "x" * 6])
        case(f"{label}_masked_live_block", 1, 70, (66, value), rows=["." * 65 + "x" * 5])
        case(f"{label}_seen", 2, 4, (1, value))
    case("nan_row_hidden", 1, 4, (1, NAN), rows=["xxxx"])
    case("nan_causal_rows_without_key", 5, 2, (0, NAN), causal=1)
    case("largest", 2, 4, (1, 3.4e38))


def ffn(suite):
    def case(name, operands, **attrs):
        suite.case(f"ffn/{name}", "ffn", operands, **attrs)

    def weights(dtype, d, h, e, b1=True, b2=True):
        return [rand(dtype, d, h), rand(dtype, h) if b1 else "none", rand(dtype, h, e), *([rand(dtype, e)] if b2 else [])]

    for dtype in FLOATS:
        for b1 in (0, 1):
            for b2 in (0, 1):
                case(f"{dtype}_bias_{b1}{b2}", [rand(dtype, 3, 5), *weights(dtype, 5, 7, 4, b1, b2)])
        for activation in ACTIVATIONS:
            case(f"{dtype}_{activation}", [rand(dtype, 4, 6, e=1), *weights(dtype, 6, 9, 3)], activation=activation)
        case(f"{dtype}_rank_1", [rand(dtype, 6), *weights(dtype, 6, 3, 5)])
        case(f"{dtype}_rank_4", [rand(dtype, 2, 1, 2, 6), *weights(dtype, 6, 3, 4)])
        case(f"{dtype}_deep", [rand(dtype, 3, 300), *weights(dtype, 300, 520, 5)], activation="gelu_erf")
        case(f"{dtype}_wild", [wild(dtype, 6, 2), wild(dtype, 2, 5), wild(dtype, 5), wild(dtype, 5, 6), wild(dtype, 6)], activation="none")
    for m, d, h, e in ((1, 1, 1, 1), (1, 64, 256, 64), (17, 65, 130, 33), (64, 128, 512, 128)):
        case(f"{m}x{d}x{h}x{e}", [rand("f32", m, d), *weights("f32", d, h, e)], activation="gelu_tanh")
    # the hidden values are not stored as f16: they overflow it, and keep more digits than it has
    case("f16_hidden_overflows", [rand("f16", 2, 8, e=8), rand("f16", 8, 6, e=6), "none", rand("f16", 6, 3, e=-4)])
    case("f16_output_overflows", [rand("f16", 2, 8, e=8), rand("f16", 8, 6, e=6), "none", rand("f16", 6, 3, e=4)])
    case("hidden_subnormal", [rand("f32", 2, 3), operand("f32", (3, 2), "fill:00000000"), operand("f32", (2,), hexes("f32", [0x007FFFFF, 0x00800000])),
                              operand("f32", (2, 2), "fill:7f000000")])  # the second product reads a subnormal as zero
    case("bias_minus_zero", [rand("f32", 2, 3), operand("f32", (3, 2), "fill:00000000"), operand("f32", (2,), "fill:80000000"),
                             rand("f32", 2, 2), operand("f32", (2,), "fill:80000000")], activation="none")
    case("nan_relu", [operand("f32", (1, 2), bits("f32", [NAN, 1])), *weights("f32", 2, 2, 2)])
    case("default_activation", [rand("f32", 3, 5), *weights("f32", 5, 7, 4)])
    case("zero_rows", [rand("f32", 0, 5), *weights("f32", 5, 7, 4)])
    case("zero_depth", [rand("f32", 3, 0), *weights("f32", 0, 7, 4)])
    case("zero_hidden", [rand("f32", 3, 5), *weights("f32", 5, 0, 4)])
    case("zero_hidden_no_bias", [rand("f32", 3, 5), *weights("f32", 5, 0, 4, False, False)])
    case("zero_result", [rand("f32", 3, 5), *weights("f32", 5, 7, 0)])


def errors(suite):
    def bad(op, name, status, operands, **attrs):
        suite.case(f"{op}/error_{name}", op, operands, expect=status, **attrs)

    q, k, v = qkv("f32", (4,), 3, 5, 4, 6, kv_lead=(2,))
    bad("attention", "missing", "invalid_argument", [q, k])
    bad("attention", "none", "invalid_argument", [q, "none", v])
    bad("attention", "surplus", "invalid_argument", [q, k, v, rand("f32", 3, 5), rand("f32", 3, 5)])
    bad("attention", "integers", "dtype_mismatch", ["i32 2,2 ids:1:5"] * 3)
    bad("attention", "mixed", "dtype_mismatch", [q, k, rand("f16", 2, 5, 6)])
    bad("attention", "mixed_mask", "dtype_mismatch", [q, k, v, rand("bf16", 3, 5)])
    bad("attention", "rank_1", "shape_mismatch", [rand("f32", 4)] * 3)
    bad("attention", "ranks", "shape_mismatch", [q, rand("f32", 5, 4), v])
    bad("attention", "depth", "shape_mismatch", [q, rand("f32", 2, 5, 3), v])
    bad("attention", "keys", "shape_mismatch", [q, k, rand("f32", 2, 6, 6)])
    bad("attention", "heads", "shape_mismatch", [q, rand("f32", 3, 5, 4), rand("f32", 3, 5, 6)])
    bad("attention", "heads_fewer", "shape_mismatch", [rand("f32", 2, 3, 4), rand("f32", 4, 5, 4), rand("f32", 4, 5, 6)])
    bad("attention", "value_heads", "shape_mismatch", [q, k, rand("f32", 4, 5, 6)])
    bad("attention", "batch", "shape_mismatch", [rand("f32", 2, 4, 3, 4), rand("f32", 3, 4, 5, 4), rand("f32", 3, 4, 5, 4)])
    bad("attention", "batch_one", "shape_mismatch", [rand("f32", 2, 4, 3, 4), rand("f32", 1, 4, 5, 4), rand("f32", 1, 4, 5, 4)])
    bad("attention", "mask_shape", "shape_mismatch", [q, k, v, rand("f32", 3, 4)])
    bad("attention", "mask_rank", "shape_mismatch", [q, k, v, rand("f32", 1, 4, 3, 5)])
    bad("attention", "mask_larger", "shape_mismatch", [rand("f32", 1, 4), rand("f32", 5, 4), rand("f32", 5, 4), rand("f32", 3, 5)])
    bad("attention", "attribute", "invalid_argument", [q, k, v], alpha=1.0)
    x, w1, b1, w2, b2 = (rand("f32", *dims) for dims in ((3, 5), (5, 7), (7,), (7, 4), (4,)))
    bad("ffn", "missing", "invalid_argument", [x, w1])
    bad("ffn", "w2_none", "invalid_argument", [x, w1, b1, "none", b2])
    bad("ffn", "surplus", "invalid_argument", [x, w1, b1, w2, b2, b2])
    bad("ffn", "integers", "dtype_mismatch", ["i32 3,5 ids:1:5", "i32 5,7 ids:1:5", "none", "i32 7,4 ids:1:5"])
    bad("ffn", "mixed", "dtype_mismatch", [x, w1, b1, w2, rand("f16", 4)])
    bad("ffn", "rank_0", "shape_mismatch", [rand("f32"), w1, b1, w2, b2])
    bad("ffn", "depth", "shape_mismatch", [rand("f32", 3, 4), w1, b1, w2, b2])
    bad("ffn", "hidden", "shape_mismatch", [x, w1, b1, rand("f32", 6, 4), b2])
    bad("ffn", "w1_rank", "shape_mismatch", [x, rand("f32", 1, 5, 7), b1, w2, b2])
    bad("ffn", "w2_rank", "shape_mismatch", [x, w1, b1, rand("f32", 7), "none"])
    bad("ffn", "b1_length", "shape_mismatch", [x, w1, rand("f32", 1), w2, b2])
    bad("ffn", "b2_length", "shape_mismatch", [x, w1, b1, w2, rand("f32", 7)])
    bad("ffn", "b1_rank", "shape_mismatch", [x, w1, rand("f32", 1, 7), w2, b2])
    bad("ffn", "activation", "invalid_argument", [x, w1, b1, w2, b2], activation="softmax")
    bad("ffn", "attribute", "invalid_argument", [x, w1, b1, w2, b2], trans_a=1)
