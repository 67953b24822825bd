"""Cases of pipelines (pipeline.txt): what may be fused, and what looks as if it might be."""

from cases_matmul import INF, NAN, NEG_INF, NEG_ZERO, rand, wild
from cases_blocks import hostile, sensible
from cases_elementwise import specials
from pipelines import Pipeline
from suite import operand
from tensors import FLOATS, bits, hexes

ACTIVATIONS = (("relu", "relu", {}), ("sigmoid", "sigmoid", {}), ("tanh", "tanh", {}), ("silu", "silu", {}),
               ("gelu_erf", "gelu", {"form": "erf"}), ("gelu_tanh", "gelu", {"form": "tanh"}))


def build(suite):
    def begin(name):
        return Pipeline(suite, f"pipeline/{name}")

    products(begin)
    residuals(begin)
    activations(begin)
    runs(begin)
    large(begin)
    blocks(begin)
    moves(begin)
    quantized(begin)
    empty(begin)
    outputs(begin)
    errors(begin)
    digits(begin)


def mlp(p, x, d, h, e, dtype="f32"):
    w1, b1, w2 = (p.constant(rand(dtype, *dims)) for dims in ((d, h), (h,), (h, e)))
    hidden = p.do("relu", p.do("add", p.do("matmul", x, w1), b1))
    return p.do("matmul", hidden, w2)


def products(begin):
    for dtype in FLOATS:
        p = begin(f"mlp_{dtype}")
        mlp(p, p.input(rand(dtype, 3, 9, e=2)), 9, 16, 5, dtype)
        p.again(wild(dtype, 3, 9))
        p.again(rand(dtype, 3, 9))
        p.end()
    p = begin("mlp_of_constants")
    mlp(p, p.constant(rand("f32", 3, 9)), 9, 16, 5)
    p.end()
    p = begin("mlp_of_inputs")
    x, w, b, w2 = (p.input(rand("f32", *dims)) for dims in ((2, 5), (5, 7), (7,), (7, 3)))
    p.do("matmul", p.do("tanh", p.do("add", p.do("matmul", x, w), b)), w2)
    p.again(*(rand("f32", *dims, e=1) for dims in ((2, 5), (5, 7), (7,), (7, 3))))
    p.end()
    p = begin("mlp_deep")  # K of more than one block
    mlp(p, p.input(rand("f32", 2, 300)), 300, 520, 3)
    p.end()
    p = begin("mlp_batch")
    mlp(p, p.input(rand("f32", 2, 3, 5)), 5, 8, 4)
    p.end()
    p = begin("vector_times_matrix")  # rank 1: the row is as long as the whole result
    x, w, b = p.input(rand("f32", 6)), p.constant(rand("f32", 6, 9)), p.constant(rand("f32", 9))
    p.do("relu", p.do("add", p.do("matmul", x, w), b))
    p.end()
    p = begin("matrix_times_vector")  # the same, but no column of the result is the row's
    a, x, b = p.constant(rand("f32", 9, 6)), p.input(rand("f32", 6)), p.constant(rand("f32", 9))
    p.do("relu", p.do("add", p.do("matmul", a, x), b))
    p.end()
    p = begin("square_matrix_times_vector")
    a, x, b = p.constant(rand("f32", 6, 6)), p.input(rand("f32", 6)), p.constant(rand("f32", 6))
    p.do("add", p.do("matmul", a, x), b)
    p.end()
    p = begin("dot_plus_scalar")
    x, w, b = p.input(rand("f32", 300)), p.constant(rand("f32", 300)), p.constant(rand("f32"))
    p.do("gelu", p.do("add", p.do("dot", x, w), b))
    p.end()
    p = begin("transposed_scaled")
    x, w, b = p.input(rand("f32", 5, 4)), p.constant(rand("f32", 6, 5)), p.constant(rand("f32", 6))
    p.do("silu", p.do("add", p.do("matmul", x, w, trans_a=1, trans_b=1, alpha=-0.3), b))
    p.end()
    p = begin("batches_of_both")
    a, b, c = p.input(rand("f32", 2, 1, 3, 4)), p.constant(rand("f32", 3, 4, 5)), p.constant(rand("f32", 3, 1, 5))
    p.do("tanh", p.do("add", p.do("matmul", a, b), c))
    p.end()


def product(p, m=4, k=5, n=6, e=0, dtype="f32", **attrs):
    return p.do("matmul", p.input(rand(dtype, m, k, e=e)), p.constant(rand(dtype, k, n)), **attrs)


def residuals(begin):
    """What is added behind a product: C comes before the bias, and a sum has one order."""
    for name, dims in (("row", (6,)), ("row_of_a_matrix", (1, 6)), ("column", (4, 1)), ("scalar", ()), ("one", (1,)), ("matrix", (4, 6))):
        for side in ("", "_left"):
            p = begin(f"add_{name}{side}")
            h, other = product(p), p.constant(rand("f32", *dims, e=3))
            p.do("relu", p.do("add", *((other, h) if side else (h, other))))
            p.end()
    for first, then, name in (((6,), (4, 6), "bias_then_residual"), ((4, 6), (6,), "residual_then_bias"), ((6,), (6,), "bias_twice"),
                              ((4, 6), (4, 6), "residual_twice"), ((4, 1), (1, 6), "column_then_row"), ((), (6,), "scalar_then_bias")):
        for dtype in FLOATS:
            p = begin(f"{name}_{dtype}")
            h = p.do("add", product(p, e=2, dtype=dtype), p.constant(rand(dtype, *first, e=1)))
            p.do("gelu", p.do("add", h, p.constant(rand(dtype, *then, e=3))))
            p.end()
    p = begin("residual_of_another_size")
    h, other = product(p, m=1), p.constant(rand("f32", 4, 6))
    p.do("relu", p.do("add", h, other))
    p.end()
    for op in ("sub", "mul", "div"):
        for side in ("", "_left"):
            p = begin(f"{op}_behind_product{side}")
            h, row = product(p), p.constant(rand("f32", 6))
            p.do("relu", p.do(op, *((row, h) if side else (h, row))))
            p.end()
    p = begin("residual_behind_c")
    x, w, c = p.input(rand("f32", 4, 5)), p.constant(rand("f32", 5, 6)), p.input(rand("f32", 4, 6))
    h = p.do("matmul", x, w, c, alpha=0.7, beta=-1.3)
    h = p.do("add", h, p.constant(rand("f32", 4, 6, e=2)))
    p.do("relu", p.do("add", h, p.constant(rand("f32", 6))))
    p.end()
    p = begin("bias_behind_c")
    x, w, c = p.input(rand("f32", 4, 5)), p.constant(rand("f32", 5, 6)), p.input(rand("f32", 4, 6))
    h = p.do("matmul", x, w, c, beta=-1.3)
    p.do("relu", p.do("add", h, p.constant(rand("f32", 6))))
    p.end()
    p = begin("residual_behind_unread_c")  # beta is 0: C is not read, whatever it holds
    x, w, c = p.input(rand("f32", 4, 5)), p.constant(rand("f32", 5, 6)), p.input(operand("f32", (4, 6), f"fill:{NAN:08x}"))
    h = p.do("matmul", x, w, c)
    p.do("add", h, p.constant(rand("f32", 4, 6)))
    p.end()
    p = begin("residual_behind_bias_of_product")
    x, w, b = p.input(rand("f32", 4, 5)), p.constant(rand("f32", 5, 6)), p.input(rand("f32", 6))
    h = p.do("matmul", x, w, None, b, activation="none")
    p.do("add", h, p.constant(rand("f32", 4, 6, e=2)))
    p.end()
    p = begin("bias_behind_activation_of_product")
    h = product(p, activation="tanh")
    p.do("relu", p.do("add", h, p.constant(rand("f32", 6))))
    p.end()
    p = begin("wild_residual")
    h, c = product(p, m=8, n=9), p.constant(wild("f32", 8, 9))
    p.do("add", p.do("add", h, c), p.constant(wild("f32", 9)))
    p.end()
    p = begin("minus_zeros")
    a, b = p.input(operand("f32", (2, 3), "fill:00000000")), p.constant(rand("f32", 3, 4))
    h = p.do("matmul", a, b, alpha=-1.0)
    h = p.do("add", h, p.constant(operand("f32", (2, 4), f"fill:{NEG_ZERO:08x}")))
    p.do("add", h, p.constant(operand("f32", (4,), hexes("f32", [NEG_ZERO, 0, NEG_ZERO, 0]))))
    p.end()
    p = begin("product_plus_itself")
    h = product(p)
    p.do("add", h, h)
    p.end()
    p = begin("product_minus_itself")
    h = product(p)
    p.do("sub", h, h)
    p.end()
    p = begin("product_used_twice")
    h = product(p)
    p.do("mul", h, p.do("relu", h))
    p.end()
    p = begin("two_products")
    x, w, v = p.input(rand("f32", 4, 5)), p.constant(rand("f32", 5, 6)), p.constant(rand("f32", 5, 6))
    h, g = p.do("matmul", x, w), p.do("matmul", x, v)
    p.do("sigmoid", p.do("add", p.do("add", h, g), p.constant(rand("f32", 6))))
    p.end()
    p = begin("late_residual")  # what is added is computed after the product
    x = p.input(rand("f32", 4, 6))
    h = p.do("matmul", x, p.constant(rand("f32", 6, 6)))
    r = p.do("exp", x)
    p.do("add", h, r)
    p.end()
    p = begin("computed_bias")
    x = p.input(rand("f32", 4, 6))
    h = p.do("matmul", x, p.constant(rand("f32", 6, 6)))
    p.do("gelu", p.do("add", h, p.do("mean", x, axis=0)), form="tanh")
    p.end()


def activations(begin):
    for name, op, attrs in ACTIVATIONS:
        p = begin(f"product_{name}")
        p.do(op, product(p, e=2), **attrs)
        p.end()
        # NaN, infinities, large and tiny values; a product reads subnormals as zero, times alpha it may give them
        p = begin(f"product_{name}_specials")
        x = p.input(operand("f32", (64, 1), hexes("f32", specials("f32"))))
        one = p.constant(operand("f32", (1, 1), bits("f32", [1.0])))
        p.do(op, p.do("matmul", x, one), **attrs)
        p.end()
        p = begin(f"product_{name}_subnormals")
        h = product(p, m=7, n=9, e=-1, alpha=2.0**-125)
        h = p.do("add", h, p.constant(operand("f32", (9,), hexes("f32", [0, 1, 0x80000001, 0x007FFFFF, 0x807FFFFF, NEG_ZERO,
                                                                        0x00800000, 0x00000400, 0x80000400]))))
        p.do(op, h, **attrs)
        p.end()
        for dtype in FLOATS[1:]:
            p = begin(f"product_{name}_{dtype}")
            p.do(op, p.do("add", product(p, e=2, dtype=dtype), p.constant(rand(dtype, 6))), **attrs)
            p.end()
    p = begin("activation_twice")
    p.do("tanh", p.do("relu", product(p)))
    p.end()
    p = begin("activation_no_product_has")
    p.do("exp", p.do("neg", p.do("abs", product(p))))
    p.end()
    p = begin("gelu_default_form")
    p.do("gelu", product(p, e=1))
    p.end()
    p = begin("overflow_before_relu")
    x, w = p.input(rand("f32", 4, 5, e=64)), p.constant(rand("f32", 5, 6, e=64))
    h = p.do("add", p.do("matmul", x, w), p.constant(operand("f32", (6,), hexes("f32", [INF, NEG_INF, NAN, 0, NEG_ZERO, 1]))))
    p.do("relu", h)
    p.end()
    p = begin("f16_overflow_between")  # the product is inf before something finite is taken off
    x, w = p.input(rand("f16", 4, 5, e=8)), p.constant(rand("f16", 5, 6, e=8))
    p.do("tanh", p.do("add", p.do("matmul", x, w), p.constant(rand("f16", 6, e=15))))
    p.end()


def long_run(p, x, row, other):
    """Twenty operations, each of another kind or with the value in another place."""
    y = p.do("mul", x, x)
    y = p.do("add", y, row)
    y = p.do("sub", other, y)
    y = p.do("abs", y)
    y = p.do("sqrt", y)
    y = p.do("sub", y, row)
    y = p.do("tanh", y)
    y = p.do("scale", y, alpha=1.7)
    y = p.do("exp", y)
    y = p.do("div", y, other)
    y = p.do("neg", y)
    y = p.do("sigmoid", y)
    y = p.do("log", y)
    y = p.do("silu", y)
    y = p.do("gelu", y, form="erf")
    y = p.do("div", row, p.do("add", y, x))
    y = p.do("relu", y)
    y = p.do("rsqrt", p.do("add", y, other))
    return p.do("gelu", y, form="tanh")


def runs(begin):
    for dtype in FLOATS:
        p = begin(f"run_long_{dtype}")
        x, row, other = p.input(rand(dtype, 3, 7, e=1)), p.constant(rand(dtype, 7)), p.constant(rand(dtype, 3, 7))
        long_run(p, x, row, other)
        p.again(wild(dtype, 3, 7))
        p.end()
        p = begin(f"run_wild_{dtype}")
        x, other = p.input(wild(dtype, 301)), p.constant(wild(dtype, 301))
        p.do("sub", p.do("mul", p.do("add", x, other), other), x)
        p.end()
    p = begin("run_square")
    x = p.input(rand("f32", 3, 7))
    p.do("mul", p.do("mul", x, x), p.do("neg", x))
    p.end()
    p = begin("run_square_of_computed")
    x = p.do("exp", p.input(rand("f32", 3, 7)))
    p.do("tanh", p.do("mul", x, x))
    p.end()
    p = begin("run_over_itself")  # one but where it is none
    x = p.do("neg", p.input(wild("f32", 64)))
    p.do("exp", p.do("div", x, x))
    p.end()
    for op in ("sub", "div"):
        for name, dims in (("whole", (3, 7)), ("row", (7,)), ("column", (3, 1)), ("scalar", ())):
            p = begin(f"run_{op}_{name}_left_and_right")
            x, other = p.input(rand("f32", 3, 7)), p.constant(rand("f32", *dims))
            p.do(op, other, p.do("exp", p.do(op, p.do("neg", x), other)))
            p.end()
    p = begin("run_grows")  # a row and a column, then operands of both forms
    row, column = p.input(rand("f32", 1, 7)), p.input(rand("f32", 3, 1))
    y = p.do("mul", p.do("sub", p.do("exp", row), p.do("tanh", column)), row)
    p.do("div", column, p.do("abs", y))
    p.again(wild("f32", 1, 7), wild("f32", 3, 1))
    p.end()
    p = begin("run_value_before_value")  # a value is needed again after what was made of it
    x = p.input(rand("f32", 3, 7))
    a = p.do("exp", x)
    b = p.do("mul", a, p.constant(rand("f32", 3, 7)))
    p.do("div", a, p.do("sub", b, a))
    p.end()
    p = begin("run_two_branches")
    x = p.input(rand("f32", 3, 7))
    a, b = p.do("sigmoid", p.do("scale", x, alpha=2.0)), p.do("tanh", p.do("neg", x))
    p.do("add", p.do("sub", a, b), p.do("mul", b, a))
    p.end()
    p = begin("run_scalar")
    x, other = p.input(rand("f32")), p.constant(rand("f32"))
    p.do("gelu", p.do("sub", other, p.do("mul", x, x)))
    p.end()
    p = begin("run_rank_8")
    x, other = p.input(rand("f32", 1, 2, 1, 2, 1, 2, 1, 3)), p.constant(rand("f32", 2, 1, 1, 1, 1))
    p.do("relu", p.do("sub", other, p.do("tanh", x)))
    p.end()
    p = begin("run_casts")
    x = p.do("cast", p.do("exp", p.input(rand("f32", 3, 7, e=2))), dtype="f16")
    y = p.do("cast", p.do("mul", x, x), dtype="bf16")
    p.do("sqrt", p.do("cast", p.do("add", y, p.constant(rand("bf16", 7))), dtype="f32"))
    p.end()
    p = begin("run_gradual_underflow")
    x = p.input(rand("f32", 60, e=-63))
    p.do("scale", p.do("mul", x, p.constant(rand("f32", 60, e=-63))), alpha=2.0**100)
    p.end()


def large(begin):
    """Runs that are divided in parts of some thousand elements, a product and a block that several threads share."""
    for dtype in FLOATS:
        p = begin(f"large_{dtype}")
        x, row, other = p.input(rand(dtype, 40, 1001, e=1)), p.constant(rand(dtype, 1001)), p.constant(rand(dtype, 40, 1001))
        long_run(p, x, row, other)
        p.again(wild(dtype, 40, 1001))
        p.end()
    for name, dims in (("flat", (40039,)), ("cube", (7, 33, 129)), ("long_rows", (3, 20011))):
        p = begin(f"large_{name}")
        x, one = p.input(rand("f32", *dims)), p.constant(rand("f32"))
        p.do("sub", one, p.do("exp", p.do("mul", x, p.do("neg", x))))
        p.end()
    for name, dims in (("column", (129, 1)), ("row_and_column", (129, 1)), ("row_of_a_matrix", (1, 257))):
        p = begin(f"large_{name}")
        x, other = p.input(rand("f32", 129, 257)), p.constant(rand("f32", *dims))
        y = p.do("tanh", p.do("div", other, p.do("exp", x)))
        p.do("sub", y, p.constant(rand("f32", 257)) if name == "row_and_column" else other)
        p.end()
    p = begin("large_square_column")  # as many elements as a row has
    x, other = p.input(rand("f32", 129, 129)), p.constant(rand("f32", 129, 1))
    p.do("sub", other, p.do("exp", x))
    p.end()
    for name, dims in (("cube_matrix", (33, 129)), ("cube_rows", (7, 1, 129))):  # each ends like a row, and is repeated otherwise
        p = begin(f"large_{name}")
        x, other = p.input(rand("f32", 7, 33, 129)), p.constant(rand("f32", *dims))
        p.do("tanh", p.do("div", other, p.do("exp", x)))
        p.end()
    p = begin("large_prefix_given")
    x, row = p.input(rand("f32", 129, 257)), p.constant(rand("f32", 257))
    a = p.do("sub", row, p.do("exp", x))
    b = p.do("mul", a, p.do("tanh", a))
    p.give(b, a)
    p.end()
    p = begin("large_mlp")
    mlp(p, p.input(rand("f32", 65, 130)), 130, 257, 67)
    p.again(rand("f32", 65, 130, e=3))
    p.end()
    p = begin("large_block")
    block(p, p.input(rand("f32", 2, 33, 48)), "f32", 2, 33, 48, heads=4, hidden=96)
    p.end()


def split(p, x, batch, length, heads, each):
    """[batch·length, heads·each] as [batch, heads, length, each]."""
    return p.do("transpose", p.reshape(x, batch, length, heads, each), perm=[0, 2, 1, 3])


def block(p, x, dtype, batch, length, width, heads=2, hidden=12, kv_heads=None, mask=None, norm="layernorm", **attrs):
    """A transformer's block: attention and a feed-forward network, each added to what goes in, and a norm before each."""
    each, kv_heads = width // heads, kv_heads or heads
    weights = [p.constant(rand(dtype, *dims, e=-1)) for dims in ((width, width), (width, kv_heads * each), (width, kv_heads * each), (width, width))]
    gamma, beta, bias = (p.constant(rand(dtype, width)) for _ in range(3))
    normed = p.do(norm, x, gamma, *([beta] if norm == "layernorm" else []))
    flat = p.reshape(normed, batch * length, width)
    q, k, v = (p.do("matmul", flat, w) for w in weights[:3])
    q = p.do("add", q, bias)
    q = split(p, q, batch, length, heads, each)
    k, v = (split(p, value, batch, length, kv_heads, each) for value in (k, v))
    mixed = p.do("attention", q, k, v, *([mask] if mask is not None else []), **attrs)
    joined = p.reshape(p.do("transpose", mixed, perm=[0, 2, 1, 3]), batch, length, width)
    h = p.do("add", p.do("matmul", joined, weights[3]), x)
    h2 = p.do(norm, h, gamma)
    w1, b1, w2, b2 = (p.constant(rand(dtype, *dims)) for dims in ((width, hidden), (hidden,), (hidden, width), (width,)))
    wide = p.do("gelu", p.do("add", p.do("matmul", h2, w1), b1))
    return p.do("add", p.do("add", p.do("matmul", wide, w2), b2), h)


def blocks(begin):
    for dtype in FLOATS:
        p = begin(f"block_{dtype}")
        block(p, p.input(rand(dtype, 2, 3, 6)), dtype, 2, 3, 6)
        p.again(rand(dtype, 2, 3, 6, e=3))
        p.end()
    p = begin("block_causal_grouped_rms")
    block(p, p.input(rand("f32", 1, 5, 8)), "f32", 1, 5, 8, heads=4, kv_heads=2, norm="rmsnorm", causal=1, scale=0.6)
    p.end()
    p = begin("block_computed_mask")
    x, ids = p.input(rand("f32", 1, 4, 6)), p.input(operand("f32", (1, 4), bits("f32", [0.0, 0.0, 1.0, 0.0])))
    mask = p.do("scale", ids, alpha=-1e30)
    block(p, x, "f32", 1, 4, 6, mask=mask)
    p.again(rand("f32", 1, 4, 6), operand("f32", (1, 4), bits("f32", [1.0, 0.0, 0.0, 1.0])))
    p.end()
    for norm in ("layernorm", "rmsnorm"):
        for dtype in FLOATS:
            p = begin(f"residual_{norm}_{dtype}")
            x, w = p.input(rand(dtype, 4, 9)), p.constant(rand(dtype, 9, 9))
            h = p.do("add", p.do("matmul", x, w), x)
            p.do(norm, h, p.constant(rand(dtype, 9)), eps=1e-3)
            p.end()
    for dtype in FLOATS:
        p = begin(f"ffn_gated_{dtype}")
        x, w1, w2, w3 = p.input(rand(dtype, 3, 6)), *(p.constant(rand(dtype, *dims)) for dims in ((6, 10), (10, 6), (6, 10)))
        gate = p.do("silu", p.do("matmul", x, w1))
        p.do("add", p.do("matmul", p.do("mul", gate, p.do("matmul", x, w3)), w2), x)
        p.end()
        p = begin(f"ffn_residual_norm_{dtype}")
        x, w1, b1, w2, b2 = p.input(rand(dtype, 3, 6)), *(p.constant(rand(dtype, *dims)) for dims in ((6, 10), (10,), (10, 6), (6,)))
        h = p.do("ffn", x, w1, b1, w2, b2, activation="gelu_tanh")
        p.do("layernorm", p.do("add", x, h))
        p.end()
    p = begin("ffn_no_bias")
    x, w1, w2 = p.input(rand("f32", 3, 6)), p.constant(rand("f32", 6, 10)), p.constant(rand("f32", 10, 6))
    p.do("add", p.do("ffn", x, w1, None, w2), p.input(rand("f32", 6)))
    p.end()
    p = begin("softmax_of_product")
    p.do("softmax", p.do("add", product(p), p.constant(rand("f32", 6))), axis=0)
    p.end()
    p = begin("softmax_by_parts")
    x = p.input(rand("f32", 4, 33, e=3))
    e = p.do("exp", p.do("sub", x, p.do("max", x, axis=-1, keepdim=1)))
    p.do("div", e, p.do("sum", e, axis=-1, keepdim=1))
    p.again(wild("f32", 4, 33))
    p.end()
    p = begin("classifier")
    h = p.do("add", product(p, e=2), p.constant(rand("f32", 6)))
    p.give(p.do("argmax", h, axis=-1, dtype="i32"), p.do("softmax", h), p.do("max", h))
    p.again(rand("f32", 4, 5))
    p.end()


def moves(begin):
    # Elementwise steps on integers between steps on floats.
    p = begin("integers")
    x = p.input(rand("f32", 5, 40, e=4))
    at = p.do("argmax", x, axis=1, keepdim=1)
    steps = p.do("mul", p.do("sub", p.do("cast", x, dtype="i64"), at), p.constant(operand("i64", (40,), "ids:?:9")))
    p.give(p.do("cast", p.do("abs", steps)), p.do("sum", p.do("neg", steps), axis=0))
    p.again(rand("f32", 5, 40, e=4))
    p.end()
    p = begin("embedding_mean_norm")
    table, ids = p.constant(rand("f32", 11, 6)), p.input(operand("i64", (2, 5), "ids:?:11"))
    h = p.do("mean", p.do("embedding", table, ids), axis=1)
    p.do("rmsnorm", p.do("relu", h))
    p.again(operand("i64", (2, 5), "ids:?:11"))
    p.end()
    p = begin("concat_of_branches")
    x, w, v = p.input(rand("f32", 3, 5)), p.constant(rand("f32", 5, 4)), p.constant(rand("f32", 5, 2))
    parts = [p.do("relu", p.do("matmul", x, w)), x, p.do("tanh", p.do("matmul", x, v)), x]
    p.do("scale", p.do("concat", *parts, axis=1), alpha=-2.0)
    p.end()
    p = begin("transposed_twice")
    x = p.do("exp", p.do("transpose", p.do("neg", p.input(rand("f32", 3, 5)))))
    p.do("sub", p.do("transpose", x, perm=[1, 0]), p.constant(rand("f32", 5)))
    p.end()
    p = begin("reshape_between")
    h = p.reshape(p.do("relu", product(p)), 3, 8)
    p.do("add", p.do("matmul", h, p.constant(rand("f32", 8, 6))), p.constant(rand("f32", 6)))
    p.end()
    p = begin("reshape_before_bias")  # a row of the product's new shape
    p.do("relu", p.do("add", p.reshape(product(p), 2, 12), p.constant(rand("f32", 12))))
    p.end()
    p = begin("reshape_in_a_run")
    x = p.do("exp", p.input(rand("f32", 4, 6)))
    y = p.do("sub", p.reshape(x, 2, 2, 6), p.constant(rand("f32", 2, 6)))
    p.do("mul", p.reshape(y, 24), p.reshape(x, 24))
    p.end()
    p = begin("reshape_of_given")
    x, c = p.input(rand("f32", 4, 6)), p.constant(rand("f32", 3))
    p.do("add", p.reshape(p.reshape(x, 24), 2, 4, 3), p.reshape(c, 1, 1, 3))
    p.end()
    p = begin("reshape_to_scalar")
    x, y = p.input(rand("f32", 7)), p.constant(rand("f32", 7, 1))
    p.reshape(p.do("tanh", p.do("matmul", x, y)))
    p.end()


def quantized(begin):
    """Products with quantised constants, between operations that are fused elsewhere."""
    for form, k, n in (("q8_0", 64, 17), ("q4_0", 288, 5), ("q5_1", 32, 40), ("q6_k", 512, 9)):
        p = begin(f"quantized_{form}")
        x, w, bias = p.input(rand("f32", 3, k)), p.constant(sensible(form, f"pipeline {form}", n, k)), p.constant(rand("f32", n))
        p.do("silu", p.do("add", p.do("quantized_matmul", p.do("scale", x, alpha=0.75), w, format=form), bias))
        p.again(wild("f32", 3, k))
        p.again(rand("f32", 3, k, e=-89))
        p.end()
    p = begin("quantized_inputs")
    x, w = p.input(rand("f32", 2, 256)), p.input(hostile("q4_k", 7, 256))
    p.do("quantized_matmul", x, w, format="q4_k")
    p.again(rand("f32", 2, 256), hostile("q4_k", 7, 256))
    p.end()
    p = begin("dequantized")
    x, w = p.input(rand("f32", 2, 96)), p.constant(sensible("q5_0", "pipeline dequantized", 11, 96))
    p.do("relu", p.do("matmul", x, p.do("dequantize", w, format="q5_0"), trans_b=1))
    p.again(rand("f32", 2, 96))
    p.end()
    p = begin("quantized_rows")  # of an embedding's table
    table, rows = p.constant(sensible("q4_1", "pipeline table", 20, 64)), p.input(operand("i32", (3,), "ids:?:20"))
    p.do("dequantize", p.do("embedding", table, rows), format="q4_1")
    p.again(operand("i32", (3,), "ids:?:20"))
    p.end()
    p = begin("error_quantized_format")
    p.do("quantized_matmul", p.input(rand("f32", 2, 32)), p.constant(hostile("q4_0", 3, 32)))
    p.end("invalid_argument")
    p = begin("error_quantized_k")
    p.do("quantized_matmul", p.input(rand("f32", 2, 64)), p.constant(hostile("q4_0", 3, 32)), format="q4_0")
    p.end("shape_mismatch")


def empty(begin):
    for name, m, k, h, n in (("rows", 0, 5, 4, 3), ("depth", 2, 0, 4, 3), ("hidden", 2, 5, 0, 3), ("columns", 2, 5, 4, 0)):
        p = begin(f"empty_{name}")
        p.do("add", mlp(p, p.input(rand("f32", m, k)), k, h, n), p.constant(rand("f32", n)))
        p.again(rand("f32", m, k))
        p.end()
    p = begin("empty_run")
    x = p.input(rand("f32", 2, 0, 3))
    p.do("sub", p.constant(rand("f32", 3)), p.do("mul", p.do("exp", x), x))
    p.end()
    p = begin("empty_keys")
    q, k, v = (p.input(rand("f32", *dims)) for dims in ((2, 3, 4), (2, 0, 4), (2, 0, 5)))
    p.do("sub", p.do("attention", q, k, v), p.constant(rand("f32", 5)))
    p.end()
    p = begin("empty_sum")
    p.do("exp", p.do("sum", p.do("neg", p.input(rand("f32", 3, 0))), axis=1))
    p.end()


def outputs(begin):
    p = begin("given_and_goes_on")
    h = p.do("add", product(p), p.constant(rand("f32", 6)))
    p.give(h, p.do("relu", h))
    p.end()
    p = begin("given_product")
    h = product(p)
    y = p.do("tanh", p.do("add", h, p.constant(rand("f32", 6))))
    p.give(y, h)
    p.again(rand("f32", 4, 5))
    p.end()
    for name, order in (("order", (0, 1, 2)), ("another_order", (2, 0, 1))):  # one after another: they differ in nothing else
        p = begin(f"given_in_{name}")
        x = p.input(rand("f32", 3, 7))
        a = p.do("exp", x)
        b = p.do("neg", a)
        c = p.do("mul", b, x)
        p.give(*((a, b, c)[i] for i in order))
        p.end()
    p = begin("given_twice")
    x = p.input(rand("f32", 3, 7))
    a = p.do("exp", x)
    b = p.do("neg", a)
    p.give(a, b, a)
    p.end()
    p = begin("given_in_two_shapes")
    h = p.do("relu", product(p))
    p.give(p.reshape(h, 24), h, p.reshape(h, 2, 3, 4))
    p.end()
    p = begin("needed_by_none")
    x = p.input(rand("f32", 3, 7))
    a = p.do("exp", x)
    p.do("matmul", a, p.input(rand("f32", 7, 5)))
    p.give(p.do("neg", a))
    p.again(rand("f32", 3, 7), wild("f32", 7, 5))
    p.end()
    p = begin("unused_input")
    p.input(wild("f16", 5))
    p.do("exp", p.input(rand("f32", 3)))
    p.end()
    p = begin("one_operation")
    p.do("softmax", p.input(rand("f32", 3, 7)))
    p.end()


def errors(begin):
    def bad(name, status, record):
        p = begin(f"error_{name}")
        x, w = p.input(rand("f32", 2, 3)), p.constant(rand("f32", 3, 4))
        record(p, x, p.do("relu", p.do("matmul", x, w)))
        p.end(status)

    bad("shape", "shape_mismatch", lambda p, x, h: p.do("add", h, x))
    bad("depth", "shape_mismatch", lambda p, x, h: p.do("matmul", h, x))
    bad("dtype", "dtype_mismatch", lambda p, x, h: p.do("add", h, p.do("cast", h, dtype="f16")))
    bad("integers", "dtype_mismatch", lambda p, x, h: p.do("exp", p.do("argmax", h)))
    bad("attribute", "invalid_argument", lambda p, x, h: p.do("exp", h, alpha=1.0))
    bad("word", "invalid_argument", lambda p, x, h: p.do("gelu", h, form="sigmoid"))
    bad("axis", "invalid_argument", lambda p, x, h: p.do("softmax", h, axis=2))
    bad("c_missing", "invalid_argument", lambda p, x, h: p.do("matmul", x, p.constant(rand("f32", 3, 4)), beta=1.0))
    bad("then_goes_on", "shape_mismatch", lambda p, x, h: p.do("relu", p.do("sub", p.do("add", h, x), h)))
    bad("reshape", "shape_mismatch", lambda p, x, h: p.reshape(h, 3, 3))
    bad("gives_input", "invalid_argument", lambda p, x, h: p.give(x))
    bad("gives_reshaped_input", "invalid_argument", lambda p, x, h: p.give(h, p.reshape(x, 6)))
    bad("gives_input_last", "invalid_argument", lambda p, x, h: p.input(rand("f32", 3)))

    def run(name, status, *texts):
        p = begin(f"error_run_{name}")
        table, ids, x = p.constant(rand("f32", 5, 3)), p.input(operand("u32", (4,), "ids:?:5")), p.input(rand("f32", 4, 3))
        p.do("relu", p.do("sub", p.do("embedding", table, ids), x))
        p.again(*texts, expect=status)
        p.again(operand("u32", (4,), "ids:?:5"), rand("f32", 4, 3))  # the next one is as if nothing had been
        p.end()

    good = operand("u32", (4,), "ids:?:5")
    run("id", "invalid_argument", operand("u32", (4,), "bits:00000001000000000000000500000004"), rand("f32", 4, 3))
    run("dtype", "dtype_mismatch", operand("i32", (4,), "ids:?:5"), rand("f32", 4, 3))
    run("shape", "shape_mismatch", good, rand("f32", 4, 1))
    run("too_few", "invalid_argument", good)
    run("too_many", "invalid_argument", good, rand("f32", 4, 3), rand("f32", 4, 3))


def digits(begin):
    """Constants that are right operands of products in exact integers: devices may keep their digits."""
    for precision in ("fixed24", "fixed16"):
        for rows, dtype in ((1, "f32"), (4, "f32"), (3, "f16"), (9, "f32")):
            p = begin(f"digits_{precision}_{rows}_{dtype}")
            x, w = p.input(rand(dtype, rows, 70, e=3)), p.constant(rand(dtype, 70, 40))
            y = p.do("matmul", x, w, precision=precision)
            y = p.do("add", y, p.constant(rand(dtype, 40)))
            # The same matrix again, and one that is read transposed.
            y = p.do("relu", p.do("matmul", y, p.constant(rand(dtype, 70, 40)), trans_b=1, precision=precision))
            p.do("matmul", y, w, precision=precision)
            p.again(wild(dtype, rows, 70))
            p.end()
        p = begin(f"digits_{precision}_ffn")
        x, w1, w2 = p.input(rand("f32", 3, 20)), p.constant(rand("f32", 20, 33)), p.constant(rand("f32", 33, 7))
        p.do("ffn", x, w1, None, w2, None, precision=precision)
        p.end()
