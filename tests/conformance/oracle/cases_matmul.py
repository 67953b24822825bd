"""Cases of matmul and dot."""

from suite import operand, shape_text
from tensors import FLOATS, bits, hexes

SIZES = (0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 64, 65)
DEPTHS = (0, 1, 2, 3, 4, 7, 8, 9, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 257, 511, 512, 513, 1000)
ACTIVATIONS = ("none", "relu", "sigmoid", "tanh", "gelu_tanh", "gelu_erf", "silu")
NAN, INF, NEG_INF, NEG_ZERO = 0x7FC00000, 0x7F800000, 0xFF800000, 0x80000000


def rand(dtype, *shape, e=0):
    return operand(dtype, shape, f"rand:?:{e}" if e else "rand:?")


def wild(dtype, *shape):
    return operand(dtype, shape, "wild:?")


def explicit(*patterns):
    """A row of binary32 bit patterns."""
    return operand("f32", (len(patterns),), hexes("f32", patterns))


def build(suite):
    sizes(suite)
    depths(suite)
    transposes(suite)
    batches(suite)
    epilogues(suite)
    arithmetic(suite)
    large(suite)
    dots(suite)
    errors(suite)


def sizes(suite):
    for turn, k in ((0, 5), (5, 37), (9, 300)):
        for i, m in enumerate(SIZES):
            n = SIZES[(i + turn) % len(SIZES)]
            suite.case(f"matmul/{m}x{k}x{n}", "matmul", [rand("f32", m, k), rand("f32", k, n)])
    for dtype in ("f16", "bf16"):
        for i, m in enumerate(SIZES[1:]):
            n = SIZES[1 + (i + 4) % (len(SIZES) - 1)]
            suite.case(f"matmul/{dtype}_{m}x19x{n}", "matmul", [rand(dtype, m, 19), rand(dtype, 19, n)])
    suite.case("matmul/zero_all", "matmul", [rand("f32", 0, 0), rand("f32", 0, 0)])
    suite.case("matmul/zero_k_alpha_negative", "matmul", [rand("f32", 2, 0), rand("f32", 0, 3)], alpha=-1.0)
    suite.case("matmul/zero_k_bias", "matmul", [rand("f32", 2, 0), rand("f32", 0, 3), "none", rand("f32", 3)])


def depths(suite):
    for dtype in FLOATS:
        for k in DEPTHS:
            suite.case(f"matmul/{dtype}_depth_{k}", "matmul", [rand(dtype, 3, k), rand(dtype, k, 5)])
    for k in (1024, 1025, 2048, 4096, 5000):
        suite.case(f"matmul/depth_{k}", "matmul", [rand("f32", 2, k), rand("f32", k, 2)])
    for k in (255, 256, 257, 513):  # one row or one column: what a matrix-vector kernel sees
        suite.case(f"matmul/row_{k}", "matmul", [rand("f32", 1, k), rand("f32", k, 33)])
        suite.case(f"matmul/column_{k}", "matmul", [rand("f32", 33, k), rand("f32", k, 1)])


def transposes(suite):
    for dtype in FLOATS:
        for m, k, n in ((5, 7, 3), (17, 300, 33)):
            for ta in (0, 1):
                for tb in (0, 1):
                    a = (k, m) if ta else (m, k)
                    b = (n, k) if tb else (k, n)
                    suite.case(f"matmul/{dtype}_trans_{ta}{tb}_{m}x{k}x{n}", "matmul", [rand(dtype, *a), rand(dtype, *b)],
                               trans_a=ta, trans_b=tb)
    for ta, tb in ((1, 0), (0, 1), (1, 1)):
        a = (2, 6, 4) if ta else (2, 4, 6)
        b = (5, 6) if tb else (6, 5)
        suite.case(f"matmul/trans_{ta}{tb}_batched", "matmul", [rand("f32", *a), rand("f32", *b)], trans_a=ta, trans_b=tb)
        suite.case(f"matmul/trans_{ta}{tb}_one", "matmul", [rand("f32", 1, 1), rand("f32", 1, 1)], trans_a=ta, trans_b=tb)
    suite.case("matmul/trans_b_row", "matmul", [rand("f32", 9), rand("f32", 4, 9)], trans_b=1)
    suite.case("matmul/trans_a_column", "matmul", [rand("f32", 9, 4), rand("f32", 9)], trans_a=1)


def batches(suite):
    pairs = (((2,), (2,)), ((2,), ()), ((), (2,)), ((1,), (3,)), ((3,), (1,)), ((2, 3), (2, 3)), ((2, 1), (3,)),
             ((2, 1), (1, 3)), ((2, 3), ()), ((), (2, 3)), ((3,), (2, 1)), ((2, 1, 2), (3, 1)), ((0,), (0,)), ((0,), ()),
             ((0,), (1,)), ((2, 0), (1,)), ((2, 1, 1, 1, 1, 2), (1, 1, 1, 1, 2, 1)))
    for a, b in pairs:
        name = f"{'_'.join(map(str, a)) or 'none'}-{'_'.join(map(str, b)) or 'none'}"
        suite.case(f"matmul/batch_{name}", "matmul", [rand("f32", *a, 3, 5), rand("f32", *b, 5, 2)])
    for dtype in ("f16", "bf16"):
        suite.case(f"matmul/{dtype}_batch", "matmul", [rand(dtype, 2, 1, 3, 5), rand(dtype, 3, 5, 2)])
    suite.case("matmul/batch_8x33x70x17", "matmul", [rand("f32", 8, 33, 70), rand("f32", 8, 70, 17)])
    suite.case("matmul/batch_broadcast_4x3_16x300x16", "matmul", [rand("f32", 4, 1, 16, 300), rand("f32", 3, 300, 16)])
    for dtype in FLOATS:
        suite.case(f"matmul/{dtype}_vector_vector", "matmul", [rand(dtype, 7), rand(dtype, 7)])
        suite.case(f"matmul/{dtype}_vector_matrix", "matmul", [rand(dtype, 7), rand(dtype, 7, 3)])
        suite.case(f"matmul/{dtype}_matrix_vector", "matmul", [rand(dtype, 3, 7), rand(dtype, 7)])
    suite.case("matmul/vector_batch", "matmul", [rand("f32", 7), rand("f32", 2, 3, 7, 4)])
    suite.case("matmul/batch_vector", "matmul", [rand("f32", 2, 3, 4, 7), rand("f32", 7)])
    suite.case("matmul/vector_zero", "matmul", [rand("f32", 0), rand("f32", 0)])
    suite.case("matmul/vector_matrix_zero", "matmul", [rand("f32", 0), rand("f32", 0, 3)])


def epilogues(suite):
    a, b = (5, 9), (9, 4)
    for dtype in FLOATS:
        ab = [rand(dtype, *a), rand(dtype, *b)]
        for activation in ACTIVATIONS:
            suite.case(f"matmul/{dtype}_{activation}", "matmul", ab, activation=activation)
            suite.case(f"matmul/{dtype}_{activation}_all", "matmul", [*ab, rand(dtype, *a[:1], 4), rand(dtype, 4)],
                       alpha=1.5, beta=-0.75, activation=activation)
        for alpha in (0.0, -0.0, -1.0, 0.1, 3.0):
            suite.case(f"matmul/{dtype}_alpha_{alpha}", "matmul", ab, alpha=alpha)
        for shape in ((5, 4), (4,), (5, 1), (1, 4), (1, 1), (1,), ()):
            suite.case(f"matmul/{dtype}_c_{shape_text(shape).replace(',', 'x')}", "matmul", [*ab, rand(dtype, *shape)], beta=0.5)
        suite.case(f"matmul/{dtype}_bias", "matmul", [*ab, "none", rand(dtype, 4)])
        suite.case(f"matmul/{dtype}_c_bias", "matmul", [*ab, rand(dtype, 5, 1), rand(dtype, 4)], alpha=0.3, beta=1.0)
    ab = [rand("f32", *a), rand("f32", *b)]
    nans = operand("f32", (5, 4), "fill:7fc00000")
    suite.case("matmul/c_not_read", "matmul", [*ab, nans])
    suite.case("matmul/c_not_read_beta_minus_zero", "matmul", [*ab, nans], beta=-0.0)
    suite.case("matmul/c_nan", "matmul", [*ab, nans], beta=1.0)
    suite.case("matmul/c_wild", "matmul", [*ab, wild("f32", 5, 4), wild("f32", 4)], beta=-2.0)
    suite.case("matmul/c_batch", "matmul", [rand("f32", 2, 3, 5), rand("f32", 5, 4), rand("f32", 2, 1, 4)], beta=2.0)
    suite.case("matmul/c_batch_leading_one", "matmul", [rand("f32", 2, 3, 5), rand("f32", 5, 4), rand("f32", 1, 3, 4)], beta=2.0)
    suite.case("matmul/c_vector_result", "matmul", [rand("f32", 5), rand("f32", 5, 4), rand("f32", 4), rand("f32", 4)], beta=2.0)
    suite.case("matmul/c_column_result", "matmul", [rand("f32", 3, 5), rand("f32", 5), rand("f32", 3), rand("f32", 1)], beta=2.0)
    suite.case("matmul/c_scalar_result", "matmul", [rand("f32", 5), rand("f32", 5), rand("f32"), rand("f32", 1)], beta=2.0)
    # E keeps subnormals that M would flush: the scale, the addend and the result
    one = operand("f32", (1, 1), hexes("f32", [0x3F800000]))
    tiny = operand("f32", (1, 1), hexes("f32", [0x00000123]))
    suite.case("matmul/alpha_subnormal", "matmul", [*ab], alpha=2.0**-140)
    suite.case("matmul/alpha_makes_subnormal", "matmul", [rand("f32", 3, 4, e=-40), rand("f32", 4, 3, e=-40)], alpha=2.0**-50)
    suite.case("matmul/c_subnormal", "matmul", [one, operand("f32", (1, 1), "fill:00000000"), tiny], beta=1.0)
    suite.case("matmul/beta_makes_subnormal", "matmul", [one, operand("f32", (1, 1), "fill:00000000"), one], beta=2.0**-140)
    suite.case("matmul/bias_subnormal", "matmul", [one, operand("f32", (1, 1), "fill:00000000"), "none",
                                                    operand("f32", (1,), "fill:80000001")])
    # -0 = +0 * -1: an addend of +0 makes it +0, one of -0 keeps it, and an absent one leaves it alone
    nothing = [one, operand("f32", (1, 1), "fill:00000000")]
    for sign, pattern in (("plus", "00000000"), ("minus", "80000000")):
        zero = operand("f32", (1,), f"fill:{pattern}")
        suite.case(f"matmul/bias_{sign}_zero", "matmul", [*nothing, "none", zero], alpha=-1.0)
        suite.case(f"matmul/c_{sign}_zero", "matmul", [*nothing, zero], alpha=-1.0, beta=1.0)
    suite.case("matmul/alpha_minus_one_of_zero", "matmul", nothing, alpha=-1.0)
    suite.case("matmul/alpha_infinite", "matmul", [one, operand("f32", (1, 2), bits("f32", [0, 1]))], alpha=float("inf"))
    suite.case("matmul/alpha_overflow", "matmul", [rand("f32", 3, 4, e=50), rand("f32", 4, 3, e=50)], alpha=2.0**100)
    suite.case("matmul/activations_not_fused", "matmul", [rand("f32", 33, 40), rand("f32", 40, 17), rand("f32", 17), rand("f32", 17)],
               alpha=0.7, beta=0.3, activation="silu")


def arithmetic(suite):
    for dtype in FLOATS:
        for k in (1, 2, 3, 4, 9):
            suite.case(f"matmul/{dtype}_wild_{k}", "matmul", [wild(dtype, 8, k), wild(dtype, k, 8)])
            suite.case(f"matmul/{dtype}_wild_{k}_33", "matmul", [wild(dtype, 33, k), wild(dtype, k, 31)])
    for dtype in ("f32", "bf16"):
        for e in (-61, -62, -63, -64, -65):  # products and sums around 2^-126
            suite.case(f"matmul/{dtype}_underflow{e}", "matmul", [rand(dtype, 4, 7, e=e), rand(dtype, 7, 4, e=e)])
            suite.case(f"matmul/{dtype}_underflow{e}_deep", "matmul", [rand(dtype, 16, 600, e=e), rand(dtype, 600, 15, e=e)])
        for e in (60, 62, 63):
            suite.case(f"matmul/{dtype}_overflow{e}", "matmul", [rand(dtype, 5, 40, e=e), rand(dtype, 40, 5, e=e)])
    suite.case("matmul/f16_overflow", "matmul", [rand("f16", 5, 40, e=8), rand("f16", 40, 5, e=8)])
    suite.case("matmul/f16_tiny", "matmul", [rand("f16", 5, 3, e=-4), rand("f16", 3, 5, e=-4)], alpha=2.0**-16)
    suite.case("matmul/f16_subnormal_input", "matmul",  # a binary32 normal: M sees its value
               [operand("f16", (2, 2), hexes("f16", [1, 0x8001, 0x3FF, 0x400])), operand("f16", (2, 2), hexes("f16", [0x6400, 0x3C00, 0x7BFF, 1]))])
    suite.case("matmul/bf16_subnormal_input", "matmul",  # a binary32 subnormal: M reads zero
               [operand("bf16", (2, 2), hexes("bf16", [1, 0x8001, 0x7F, 0x80])), operand("bf16", (2, 2), hexes("bf16", [0x7F00, 0x3F80, 0x7F7F, 0x7F00]))])
    suite.case("matmul/negative_zero_total", "matmul", [operand("f32", (2, 3), "fill:80000000"), rand("f32", 3, 2)], alpha=-1.0)
    suite.case("matmul/nan_one_row", "matmul", [operand("f32", (3, 2), bits("f32", [1, 2, float("nan"), 1, 3, 4])), rand("f32", 2, 3)])
    suite.case("matmul/inf_times_zero", "matmul", [operand("f32", (1, 2), bits("f32", [float("inf"), 1])), operand("f32", (2, 2), bits("f32", [0, 1, 1, 1]))])
    suite.case("matmul/nan_relu", "matmul", [operand("f32", (1, 1), "fill:ffc12345"), rand("f32", 1, 3)], activation="relu")


def large(suite):
    suite.case("matmul/128x128x128", "matmul", [rand("f32", 128, 128), rand("f32", 128, 128)])
    suite.case("matmul/256x300x200", "matmul", [rand("f32", 256, 300), rand("f32", 300, 200)])
    suite.case("matmul/1x4096x512", "matmul", [rand("f32", 1, 4096), rand("f32", 4096, 512)])
    suite.case("matmul/100x1000x10", "matmul", [rand("f32", 100, 1000), rand("f32", 1000, 10)])
    suite.case("matmul/67x769x130_trans_11", "matmul", [rand("f32", 769, 67), rand("f32", 130, 769)], trans_a=1, trans_b=1)
    suite.case("matmul/129x257x131_epilogue", "matmul", [rand("f32", 129, 257), rand("f32", 257, 131), rand("f32", 129, 1), rand("f32", 131)],
               alpha=0.125, beta=-1.0, activation="gelu_erf")
    for dtype in ("f16", "bf16"):
        suite.case(f"matmul/{dtype}_130x520x70", "matmul", [rand(dtype, 130, 520), rand(dtype, 520, 70)])
        suite.case(f"matmul/{dtype}_128x128x128", "matmul", [rand(dtype, 128, 128), rand(dtype, 128, 128)], trans_b=1)
    suite.case("matmul/program_1024", "matmul", ["f32 1024,1024 rand:1", "f32 1024,1024 rand:2"])


def dots(suite):
    for dtype in FLOATS:
        for k in (*DEPTHS, 1024, 5000):
            suite.case(f"dot/{dtype}_{k}", "dot", [rand(dtype, k), rand(dtype, k)])
        for k in (1, 2, 5, 20):
            suite.case(f"dot/{dtype}_wild_{k}", "dot", [wild(dtype, k), wild(dtype, k)])
    for k in (65536, 100003, 1 << 20):
        suite.case(f"dot/{k}", "dot", [rand("f32", k), rand("f32", k)])
    for e in (-62, -63, -64):
        suite.case(f"dot/underflow{e}", "dot", [rand("f32", 700, e=e), rand("f32", 700, e=e)])
    one = 0x3F800000

    def dot(name, a, b):
        suite.case(f"dot/{name}", "dot", [explicit(*a), explicit(*b)])

    dot("flush_negative", [0x1C800000], [0x9C800000])  # -2^-140 becomes -0, stored as +0
    dot("flush_then_add", [0x1C800000, 0x1C800000], [0x9C800000, 0x3F800000])
    dot("negative_zeros", [NEG_ZERO, NEG_ZERO], [one, one])
    # products just below 2^-126: what 24 bits round up to it stays, what they don't is flushed
    dot("rounds_up_to_smallest", [0x20000400], [0x1FFFF800])  # (1 + 2^-13)(1 - 2^-13) 2^-126
    dot("rounds_below_smallest", [0x20000800], [0x1FFFF000])  # (1 + 2^-12)(1 - 2^-12) 2^-126
    dot("tie_to_smallest", [0x20118E00], [0x1FE12000])  # 18631 * 1801 = 2^25 - 1
    dot("tie_to_smallest_negative", [0xA0118E00], [0x1FE12000])
    dot("just_smallest", [0x20000000], [0x20000000])
    dot("difference_below_smallest", [0x00800001, 0x00800000], [one, 0xBF800000])
    dot("difference_of_smallest", [0x01000001, 0x00800000], [one, 0xBF800000])
    dot("subnormal_a", [0x007FFFFF], [0x7F000000])
    dot("subnormal_b", [0x7F000000], [0x80000001])
    dot("subnormal_times_inf", [INF], [0x00000001])
    dot("subnormal_keeps_sum", [one, 0x007FFFFF], [one, 0x7F7FFFFF])
    dot("nan_payload", [0xFFC12345], [one])
    dot("nan_signaling", [0x7F800001], [one])
    dot("inf", [INF, one], [one, one])
    dot("inf_minus_inf", [INF, NEG_INF], [one, one])
    dot("inf_product_opposes_sum", [NEG_INF, INF], [one, one])
    dot("inf_times_zero", [INF], [0])
    dot("overflow_product", [0x7F7FFFFF], [0x40000000])
    dot("overflow_rounding", [0x7F7FFFFF, 0x73000000], [one, one])  # half an ulp over: rounds to even, to infinity
    dot("no_overflow_rounding", [0x7F7FFFFF, 0x72FFFFFF], [one, one])
    dot("overflow_avoided_inside", [0x7F7FFFFF, 0x7F7FFFFF], [0xBF800000, 0x40000000])  # the product alone would be infinite
    dot("residual", [0xBF800000, 0x3F801000], [0x3F802002, 0x3F801001])  # the product is not rounded before the sum
    dot("residual_sparse", [0xBF800000, 0x3F800001], [0x3F800002, 0x3F800001])
    dot("cancel_exactly", [0x3FC00000, 0x3FC00000], [0x3FC00000, 0xBFC00000])
    dot("tie_down", [one, 0x33800000], [one, one])
    dot("tie_up", [0x3F800001, 0x33800000], [one, one])
    dot("tie_broken_by_product", [one, 0x33800001], [one, 0x3F800001])
    dot("tie_then_tiny", [one, 0x33800000, 0x01000000], [one, one, one])
    # 1.5 * (1 + 2^-23) is a tie that a sum 70 and more places below breaks
    dot("tie_broken_from_far", [0x0D800000, 0x3F800001], [one, 0x3FC00000])
    dot("tie_broken_from_far_negative", [0x8D800000, 0x3F800001], [one, 0x3FC00000])
    dot("tie_not_broken", [0x00000000, 0x3F800001], [one, 0x3FC00000])
    dot("tie_not_broken_flushed", [0x1C800000, 0x3F800001], [0x1C800000, 0x3FC00000])
    # the block cut decides the bits: 2^24 in block 0, ones in block 1
    big = [0x4B800000] + [0] * 255
    dot("blocks_merge", big + [one] * 3, [one] * 259)
    dot("blocks_negative_zero", [0] * 256 + [0x1C800000], [one] * 256 + [0x9C800000])


def errors(suite):
    def bad(name, status, operands, op="matmul", **attrs):
        suite.case(f"{op}/error_{name}", op, operands, expect=status, **attrs)

    f = rand
    bad("missing", "invalid_argument", [f("f32", 2, 2)])
    bad("none_operand", "invalid_argument", [f("f32", 2, 2), "none"])
    bad("surplus", "invalid_argument", [f("f32", 2, 2), f("f32", 2, 2), f("f32", 2, 2), f("f32", 2), f("f32", 2)])
    bad("integers", "dtype_mismatch", ["i32 2,2 ids:1:5", "i32 2,2 ids:2:5"])
    bad("f64", "dtype_mismatch", ["f64 2,2 fill:3ff0000000000000"] * 2)
    bad("mixed", "dtype_mismatch", [f("f32", 2, 2), f("f16", 2, 2)])
    bad("mixed_bias", "dtype_mismatch", [f("f32", 2, 2), f("f32", 2, 2), "none", f("bf16", 2)])
    bad("mixed_c", "dtype_mismatch", [f("f16", 2, 2), f("f16", 2, 2), f("f32", 2, 2)], beta=1.0)
    bad("k", "shape_mismatch", [f("f32", 2, 3), f("f32", 4, 2)])
    bad("k_trans_a", "shape_mismatch", [f("f32", 2, 3), f("f32", 3, 2)], trans_a=1)
    bad("k_trans_b", "shape_mismatch", [f("f32", 2, 3), f("f32", 3, 2)], trans_b=1)
    bad("k_vector", "shape_mismatch", [f("f32", 3), f("f32", 4, 2)])
    bad("batch", "shape_mismatch", [f("f32", 2, 2, 3), f("f32", 3, 3, 2)])
    bad("rank_0", "shape_mismatch", [f("f32"), f("f32", 3, 2)])
    bad("bias_length", "shape_mismatch", [f("f32", 2, 3), f("f32", 3, 4), "none", f("f32", 3)])
    bad("bias_one", "shape_mismatch", [f("f32", 2, 3), f("f32", 3, 4), "none", f("f32", 1)])
    bad("bias_rank", "shape_mismatch", [f("f32", 2, 3), f("f32", 3, 4), "none", f("f32", 1, 4)])
    bad("bias_column", "shape_mismatch", [f("f32", 2, 3), f("f32", 3), "none", f("f32", 2)])
    bad("c_shape", "shape_mismatch", [f("f32", 2, 3), f("f32", 3, 4), f("f32", 3, 4)], beta=1.0)
    bad("c_shape_not_read", "shape_mismatch", [f("f32", 2, 3), f("f32", 3, 4), f("f32", 2)])
    bad("c_larger", "shape_mismatch", [f("f32", 2, 3), f("f32", 3, 4), f("f32", 2, 2, 4)], beta=1.0)
    bad("c_missing", "invalid_argument", [f("f32", 2, 3), f("f32", 3, 4)], beta=1.0)
    bad("trans_a_vector", "invalid_argument", [f("f32", 3), f("f32", 3, 4)], trans_a=1)
    bad("trans_b_vector", "invalid_argument", [f("f32", 2, 3), f("f32", 3)], trans_b=1)
    bad("activation", "invalid_argument", [f("f32", 2, 3), f("f32", 3, 4)], activation="softmax")
    bad("attribute", "invalid_argument", [f("f32", 2, 3), f("f32", 3, 4)], axis=0)
    bad("missing", "invalid_argument", [f("f32", 3)], op="dot")
    bad("surplus", "invalid_argument", [f("f32", 3), f("f32", 3), f("f32", 3)], op="dot")
    bad("integers", "dtype_mismatch", ["i64 3 ids:1:5", "i64 3 ids:2:5"], op="dot")
    bad("mixed", "dtype_mismatch", [f("f32", 3), f("bf16", 3)], op="dot")
    bad("k", "shape_mismatch", [f("f32", 3), f("f32", 4)], op="dot")
    bad("k_one", "shape_mismatch", [f("f32", 3), f("f32", 1)], op="dot")
    bad("rank_2", "shape_mismatch", [f("f32", 3, 1), f("f32", 3, 1)], op="dot")
    bad("rank_0", "shape_mismatch", [f("f32"), f("f32")], op="dot")
    bad("attribute", "invalid_argument", [f("f32", 3), f("f32", 3)], op="dot", alpha=1.0)
