"""Cases of softmax, of reductions (reduce.txt) and of layernorm and rmsnorm (norm.txt)."""

import shapes
from cases_matmul import rand, wild
from suite import operand
from tensors import FLOATS, INDEXES, bits, hexes

INF, NAN = float("inf"), float("nan")


def row(*numbers, dtype="f32"):
    return operand(dtype, (len(numbers),), bits(dtype, numbers))


def patterns(*words, dtype="f32"):
    return operand(dtype, (len(words),), hexes(dtype, words))


def build(suite):
    softmax(suite)
    reduce(suite)
    norm(suite)
    errors(suite)


def softmax(suite):
    def case(name, *operands, **attrs):
        suite.case(f"softmax/{name}", "softmax", operands, **attrs)

    for dtype in FLOATS:
        for n in (1, 2, 31, 32, 33, 64, 1000, 1023, 1024, 1025, 3000):
            case(f"{dtype}_n{n}", rand(dtype, n, e=2))
        for axis in (-3, -2, -1, 0, 1, 2):
            case(f"{dtype}_axis{axis}", rand(dtype, 3, 4, 5, e=1), axis=axis)
        case(f"{dtype}_wild", wild(dtype, 40, 3))
        case(f"{dtype}_wild_long", wild(dtype, 3, 70))
        case(f"{dtype}_masked", row(-INF, 1, 2, -INF, 3, dtype=dtype))
        case(f"{dtype}_all_masked", row(-INF, -INF, -INF, dtype=dtype))
        case(f"{dtype}_infinite", row(1, INF, -INF, 2, dtype=dtype))
        case(f"{dtype}_nan", row(1, NAN, -INF, 2, dtype=dtype))
        case(f"{dtype}_far", row(0, -20, -87.5, -100, -104, -200, dtype=dtype))
    case("columns_1025", rand("f32", 1025, 3), axis=0)
    case("rows_2000x17", rand("f32", 2000, 17, e=3))
    case("inner_7x65x33", rand("f32", 7, 65, 33, e=3), axis=1)
    case("magnitude_6", rand("f32", 16, 100, e=6))
    case("row_inside_masked", operand("f32", (3, 2), bits("f32", [1, 2, -INF, -INF, 3, 4])))
    case("negative_zero", patterns(0x80000000, 0x00000000))
    case("subnormal", patterns(0x00000001, 0x80000001, 0x007FFFFF))
    case("largest", patterns(0x7F7FFFFF, 0xFF7FFFFF))
    case("one_infinite", row(INF))
    case("zero_rows", rand("f32", 0, 3))
    case("zero_axis", rand("f32", 3, 0))
    case("zero_other", rand("f32", 3, 0), axis=0)
    case("default_axis", rand("f32", 2, 3))


def reduce(suite):
    def case(name, op, *operands, **attrs):
        suite.case(f"reduce/{op}_{name}", op, operands, **attrs)

    for op in shapes.VALUES + shapes.PLACES:
        for dtype in FLOATS:
            for axis in ("all", 0, 1, 2, -1, -3):
                case(f"{dtype}_axis_{axis}", op, rand(dtype, 3, 4, 5), axis=axis)
            for axis in ("all", -2):
                case(f"{dtype}_keepdim_{axis}", op, rand(dtype, 3, 4, 5), axis=axis, keepdim=1)
            for n in (1, 31, 32, 33, 63, 1000):
                case(f"{dtype}_n{n}", op, rand(dtype, n))
            case(f"{dtype}_wild", op, wild(dtype, 50, 4), axis=1)
            case(f"{dtype}_long", op, rand(dtype, 3, 2500), axis=1)
            case(f"{dtype}_nan", op, row(1, 5, NAN, 7, INF, dtype=dtype))
            case(f"{dtype}_infinite", op, row(1, -INF, 2, INF, dtype=dtype))
            case(f"{dtype}_minus_infinite", op, row(-INF, -INF, dtype=dtype))
            case(f"{dtype}_zeros", op, row(-0.0, 0.0, -0.0, 0.0, dtype=dtype))
            case(f"{dtype}_negative_zeros", op, row(-0.0, -0.0, dtype=dtype))
        case("all_default", op, rand("f32", 6, 7))
        case("rank_0", op, rand("f32"))
        case("rank_0_keepdim", op, rand("f32"), keepdim=1)
        case("rank_8", op, rand("f32", 2, 1, 2, 1, 3, 1, 2, 2), axis=4)
        case("all_over_blocks", op, rand("f32", 41, 53))
        case("inner_axis", op, rand("f32", 5, 1100, 7), axis=1)
        case("outer_axis", op, rand("f32", 2049, 3), axis=0)
        case("wide", op, rand("f32", 333, 257), axis=0)
        case("unit_axis", op, wild("f32", 4, 1, 5), axis=1)
        case("zero_result", op, rand("f32", 0, 3), axis=1)
        case("zero_both", op, rand("f32", 0, 0), axis=1)
        for n in (1023, 1024, 1025, 1056, 2048, 2049, 10000, 1 << 20, (1 << 20) + 1, 2200000):
            case(f"n{n}", op, rand("f32", n))
    for op in shapes.VALUES:
        for axes in ((0, 1), (1, 2), (0, 2), (-1, 0), (2, 0, 1), (1,)):
            case("axes_" + "_".join(map(str, axes)), op, rand("f32", 3, 4, 5), axes=axes)
        for dtype in FLOATS:
            case(f"{dtype}_axes", op, rand(dtype, 5, 3, 7, 2), axes=(0, 2))
            case(f"{dtype}_axes_keepdim", op, wild(dtype, 4, 3, 5, 2), axes=(3, 1), keepdim=1)
        case("axes_over_blocks", op, rand("f32", 40, 3, 60), axes=(0, 2))
        case("axes_over_blocks_inner", op, rand("f32", 40, 3, 60, 2), axes=(0, 2))
        case("axes_of_ones_between", op, rand("f32", 2, 6, 1, 7, 3), axes=(1, 3))
        case("axes_of_one", op, wild("f32", 1, 5, 1), axes=(0, 2))
        case("axes_every_other", op, rand("f32", 2, 3, 2, 3, 2, 3, 2, 3), axes=(0, 2, 4, 6))
        case("axes_f32_adjacent_long", op, rand("f32", 3, 50, 50), axes=(1, 2))
        case("axes_nothing_left", op, rand("f32", 2, 0, 3), axes=(0, 2))
    for op in ("sum", "mean", "prod"):
        case("axes_of_nothing", op, rand("f32", 0, 2, 3), axes=(0, 2))
        case("zero_axis", op, rand("f32", 2, 0), axis=1)
        case("zero_all", op, rand("f32", 0))
        case("zero_all_keepdim", op, rand("f32", 3, 0), keepdim=1)
        case("f16_zero_axis", op, rand("f16", 2, 0), axis=-1, keepdim=1)
        case("bf16_zero_axis", op, rand("bf16", 0, 2), axis=0)
        # lanes: 2^24 swallows a one in its own lane only
        case("lanes", op, row(*([16777216] + [1] * 95)))
        case("cancel", op, row(1e30, 1, -1e30, *([0] * 29), 1e30, 1, 1e30))
        case("subnormal", op, patterns(0x00000001, 0x00000001, 0x80000003))
        case("overflow", op, row(3e38, *([0] * 31), 3e38))
        case("overflow_avoided_by_lanes", op, row(3e38, -3e38, *([0] * 30), 1, 1))
        case("f16_overflow", op, rand("f16", 3000, e=15))
        case("f16_fill", op, operand("f16", (70000,), "fill:3c00"))
        case("tens", op, operand("f32", (5000,), "fill:3dcccccd"))
    for op in ("prod",):
        case("ones_and_tens", op, row(*([1, 10, 0.5] * 30)))
        case("negative", op, operand("f32", (1025,), "fill:bf800000"))
        case("infinity_times_zero", op, row(INF, 0, 1))
        case("zero_of_either_sign", op, row(-0.0, 3, 2))
        case("near_one_n3000", op, operand("f32", (3000,), "fill:3f800347"))
        case("near_one_columns", op, operand("f32", (3000, 5), "fill:3f7ffcb9"), axis=0)
    for op in ("max", "min") + shapes.PLACES:
        case("ties", op, row(1, 7, 7, 3, 7))
        case("ties_long", op, operand("f32", (5000,), "fill:3f800000"))
        case("positive_zero_last", op, row(-0.0, -1, -0.0, 0.0, 0.0))
        case("nan_negative", op, patterns(0x7F800000, 0xFFC12345, 0x7FC00000, 0xFF800001))
        case("nan_last", op, row(*([1] * 63), NAN))
        case("negatives", op, row(-3, -1.5, -1.25, -7))
        case("subnormals", op, patterns(0x80000001, 0x80000002, 0x807FFFFF))
        case("subnormal_over_zero", op, patterns(0x00000000, 0x00000001, 0x80000001))
        case("all_negative_infinite_rows", op, operand("f32", (2, 3), "fill:ff800000"), axis=1)
        case("zero_columns_axis_0", op, rand("f32", 3, 0), axis=0)
    for dtype in INDEXES:
        for op in shapes.PLACES:
            case(f"as_{dtype}", op, rand("f32", 5, 9), axis=1, dtype=dtype)
            case(f"as_{dtype}_all", op, rand("bf16", 20, 30), dtype=dtype, keepdim=1)


def norm(suite):
    for dtype in FLOATS:
        for n in (1, 2, 5, 31, 33, 64, 100, 1024, 1025, 3000):
            g, b = rand(dtype, n), rand(dtype, n)
            rows = 3 if n < 20 else 2
            suite.case(f"norm/layernorm_{dtype}_n{n}", "layernorm", [rand(dtype, rows, n), g, b])
            suite.case(f"norm/rmsnorm_{dtype}_n{n}", "rmsnorm", [rand(dtype, rows, n), g])
        x = rand(dtype, 2, 3, 7, e=2)
        suite.case(f"norm/layernorm_{dtype}_plain", "layernorm", [x])
        suite.case(f"norm/layernorm_{dtype}_gamma", "layernorm", [x, rand(dtype, 7)])
        suite.case(f"norm/layernorm_{dtype}_beta", "layernorm", [x, "none", rand(dtype, 7)])
        suite.case(f"norm/rmsnorm_{dtype}_plain", "rmsnorm", [x])
        for op in ("layernorm", "rmsnorm"):
            suite.case(f"norm/{op}_{dtype}_wild", op, [wild(dtype, 30, 2), wild(dtype, 2)])
            suite.case(f"norm/{op}_{dtype}_large", op, [rand(dtype, 50, 257, e=3), rand(dtype, 257)], eps=1e-6)
            for n in (1, 5, 33, 100, 1024, 1025, 3000):
                vectors = [rand(dtype, n)] * (2 if op == "layernorm" else 1)
                suite.case(f"norm/{op}_{dtype}_residual_n{n}", op, [rand(dtype, 3, n), *vectors, rand(dtype, 3, n, e=2)])
            none = ["none"] * (2 if op == "layernorm" else 1)
            suite.case(f"norm/{op}_{dtype}_residual_wild", op, [wild(dtype, 30, 2), *none, wild(dtype, 30, 2)])
            suite.case(f"norm/{op}_{dtype}_residual_rank_4", op, [rand(dtype, 2, 3, 2, 7), *none, rand(dtype, 2, 3, 2, 7)])
            suite.case(f"norm/{op}_{dtype}_residual_long", op, [rand(dtype, 2, 20000), *none, rand(dtype, 2, 20000, e=1)])
    for op in ("layernorm", "rmsnorm"):
        def case(name, *operands, **attrs):
            suite.case(f"norm/{op}_{name}", op, operands, **attrs)

        for eps in (0.0, 1e-12, 0.5, 1e-40):
            case(f"eps_{eps}", rand("f32", 2, 9), eps=eps)
        case("constant", operand("f32", (2, 6), "fill:40490fdb"))
        case("constant_eps_0", operand("f32", (1, 6), "fill:3f800000"), eps=0.0)
        case("zeros", operand("f32", (1, 5), "fill:80000000"))
        case("zeros_eps_0", operand("f32", (1, 5), "fill:00000000"), eps=0.0)
        case("nan", row(1, NAN, 2))
        case("infinite", row(1, INF, 2))
        case("square_overflows", row(1e30, 2e30, -1e30))
        case("square_underflows", row(1e-30, 2e-30, -1e-30), eps=0.0)
        case("subnormals", patterns(0x00000001, 0x00000101, 0x80010000), eps=0.0)
        case("rank_1", rand("f32", 17))
        case("rank_5", rand("f32", 2, 1, 3, 2, 5), rand("f32", 5))
        case("zero_rows", rand("f32", 0, 4), rand("f32", 4))
        case("zero_n", rand("f32", 3, 0))
        case("zero_n_gamma", rand("f32", 3, 0), rand("f32", 0))
        case("gamma_zero", rand("f32", 2, 4), operand("f32", (4,), "fill:80000000"))
        case("rows_64x768", rand("f32", 64, 768), rand("f32", 768))
        none = ["none"] * (2 if op == "layernorm" else 1)
        case("residual_rank_1", rand("f32", 17), *none, rand("f32", 17))
        case("residual_cancels", row(1, -2, 3), *none, row(-1, 2, -3), eps=0.0)
        case("residual_overflows", row(3e38, 1, 2), *none, row(3e38, 1, 2))
        case("residual_infinities", row(INF, 1), *none, row(-INF, 1))
        case("residual_subnormal", patterns(0x00000001, 0x00000002), *none, patterns(0x00000003, 0x80000001), eps=0.0)
        case("residual_zero_rows", rand("f32", 0, 4), *none, rand("f32", 0, 4))
        case("residual_zero_n", rand("f32", 3, 0), *none, rand("f32", 3, 0))
        case("residual_64x768", rand("f32", 64, 768), *[rand("f32", 768)] * len(none), rand("f32", 64, 768))


def errors(suite):
    def bad(stem, op, name, status, operands, **attrs):
        label = f"error_{name}" if stem == op else f"error_{op}_{name}"
        suite.case(f"{stem}/{label}", op, operands, expect=status, **attrs)

    x = rand("f32", 2, 3)
    for op, stem in (("softmax", "softmax"), *((op, "reduce") for op in shapes.VALUES + shapes.PLACES)):
        bad(stem, op, "missing", "invalid_argument", [])
        bad(stem, op, "surplus", "invalid_argument", [x, x])
        if op not in shapes.WHOLE:
            bad(stem, op, "integers", "dtype_mismatch", ["i32 2,3 ids:1:9"])
        bad(stem, op, "f64", "dtype_mismatch", ["f64 2,3 fill:3ff0000000000000"])
        bad(stem, op, "axis_high", "invalid_argument", [x], axis=2)
        bad(stem, op, "axis_low", "invalid_argument", [x], axis=-3)
        bad(stem, op, "attribute", "invalid_argument", [x], alpha=1.0)
        if op != "softmax":
            bad(stem, op, "axis_rank_0", "invalid_argument", [rand("f32")], axis=0)
    bad("softmax", "softmax", "rank_0", "shape_mismatch", [rand("f32")])
    bad("softmax", "softmax", "keepdim", "invalid_argument", [x], keepdim=1)
    bad("softmax", "softmax", "axis_all", "invalid_argument", [x], axis="all")
    bad("reduce", "sum", "dtype_attribute", "invalid_argument", [x], dtype="f32")
    for op in shapes.VALUES:
        bad("reduce", op, "axes_and_axis", "invalid_argument", [x], axis=0, axes=(1,))
        bad("reduce", op, "axes_twice", "invalid_argument", [x], axes=(1, -1))
        bad("reduce", op, "axes_high", "invalid_argument", [x], axes=(0, 2))
    for op in shapes.PLACES:
        bad("reduce", op, "dtype_float", "invalid_argument", [x], dtype="f32")
        bad("reduce", op, "axes", "invalid_argument", [x], axes=(0, 1))
    for op in ("max", "min"):
        bad("reduce", op, "axes_of_nothing", "invalid_argument", [rand("f32", 0, 2, 3)], axes=(0, 2))
    for op in ("max", "min") + shapes.PLACES:
        bad("reduce", op, "nothing", "invalid_argument", [rand("f32", 0)])
        bad("reduce", op, "nothing_all", "invalid_argument", [rand("f32", 3, 0)])
        bad("reduce", op, "nothing_axis", "invalid_argument", [rand("f32", 3, 0)], axis=1)
        bad("reduce", op, "nothing_keepdim", "invalid_argument", [rand("f32", 0, 2)], axis=0, keepdim=1)
    for op in ("layernorm", "rmsnorm"):
        parameters = 2 if op == "layernorm" else 1
        bad("norm", op, "missing", "invalid_argument", [])
        bad("norm", op, "surplus", "invalid_argument", [x] + [rand("f32", 3)] * parameters + [x, x])
        bad("norm", op, "residual_shape", "shape_mismatch", [x] + ["none"] * parameters + [rand("f32", 1, 3)])
        bad("norm", op, "residual_rank", "shape_mismatch", [x] + ["none"] * parameters + [rand("f32", 1, 2, 3)])
        bad("norm", op, "residual_dtype", "dtype_mismatch", [x] + ["none"] * parameters + [rand("f16", 2, 3)])
        bad("norm", op, "integers", "dtype_mismatch", ["i64 2,3 ids:1:9"])
        bad("norm", op, "mixed", "dtype_mismatch", [x, rand("bf16", 3)])
        bad("norm", op, "gamma_length", "shape_mismatch", [x, rand("f32", 2)])
        bad("norm", op, "gamma_one", "shape_mismatch", [x, rand("f32", 1)])
        bad("norm", op, "gamma_rank", "shape_mismatch", [x, rand("f32", 1, 3)])
        bad("norm", op, "rank_0", "shape_mismatch", [rand("f32")])
        bad("norm", op, "attribute", "invalid_argument", [x], axis=-1)
    bad("norm", "layernorm", "beta_length", "shape_mismatch", [x, rand("f32", 3), rand("f32", 4)])
    bad("norm", "layernorm", "mixed_beta", "dtype_mismatch", [x, "none", rand("f16", 3)])
