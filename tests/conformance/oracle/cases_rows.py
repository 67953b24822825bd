"""Cases of rope, cumsum, topk and argtopk."""

from cases_matmul import rand, wild
from cases_reduce import INF, NAN, patterns, row
from suite import operand
from tensors import FLOATS, INDEXES


def build(suite):
    rope(suite)
    cumsum(suite)
    topk(suite)
    errors(suite)


def rope(suite):
    def case(name, x, cos, sin, **attrs):
        for interleaved in (0, 1):
            both = {"interleaved": interleaved} if interleaved else {}
            suite.case(f"rope/{'interleaved' if interleaved else 'halves'}_{name}", "rope", [x, cos, sin], **both, **attrs)

    for dtype in FLOATS:
        for half in (1, 2, 3, 4, 7, 8, 16, 17, 32, 33, 64, 65):
            case(f"{dtype}_half{half}", rand(dtype, 3, 2 * half), rand(dtype, 3, half), rand(dtype, 3, half))
        case(f"{dtype}_heads", rand(dtype, 2, 3, 5, 16), rand(dtype, 5, 8), rand(dtype, 5, 8))
        case(f"{dtype}_each", rand(dtype, 2, 3, 5, 6), rand(dtype, 2, 3, 5, 3), rand(dtype, 2, 3, 5, 3))
        case(f"{dtype}_batch", rand(dtype, 2, 3, 5, 6), rand(dtype, 2, 1, 5, 3), rand(dtype, 2, 1, 5, 3))
        case(f"{dtype}_wild", wild(dtype, 20, 36), wild(dtype, 20, 18), wild(dtype, 20, 18))
        case(f"{dtype}_one_angle", rand(dtype, 4, 12), rand(dtype, 1), rand(dtype, 1))
    case("rank_1", rand("f32", 64), rand("f32", 32), rand("f32", 32))
    case("rank_8", rand("f32", 1, 2, 1, 2, 1, 2, 3, 8), rand("f32", 2, 1, 1, 3, 4), rand("f32", 2, 1, 1, 3, 4))
    case("row_angles", rand("f32", 6, 20), rand("f32", 6, 1), rand("f32", 6, 1))
    case("rank_0_tables", rand("f32", 6, 20), rand("f32"), rand("f32"))
    case("no_turn", wild("f32", 5, 8), operand("f32", (), "fill:3f800000"), operand("f32", (), "fill:00000000"))
    case("quarter", wild("f32", 5, 8), operand("f32", (), "fill:00000000"), operand("f32", (), "fill:3f800000"))
    case("negative_zeros", patterns(0x80000000, 0, 0x80000000, 0), row(1, -1), row(0, -0.0))
    case("infinite", row(INF, 1, INF, -INF), row(0.5, 0.5), row(0.5, 0.5))
    case("nan", row(1, 2, NAN, 4), row(0.5, 0.5), row(0.5, 0.5))
    case("subnormal", patterns(0x00000001, 0x80000001, 0x007FFFFF, 0x00800000), row(0.5, 0.75), row(0.25, -0.5))
    case("cancels", patterns(0x3F800001, 0x3F800003, 0x3F800002, 0x3F7FFFFF), row(0.1, 0.3), row(0.1, 0.3))
    case("no_rows", rand("f32", 0, 8), rand("f32", 4), rand("f32", 4))
    case("no_pairs", rand("f32", 3, 0), rand("f32", 0), rand("f32", 0))
    case("large", rand("f32", 4, 8, 100, 128), rand("f32", 100, 64), rand("f32", 100, 64))
    case("large_odd", rand("f32", 3, 2, 101, 130), rand("f32", 101, 65), rand("f32", 101, 65))


def cumsum(suite):
    def case(name, x, **attrs):
        suite.case(f"cumsum/{name}", "cumsum", [x], **attrs)

    for dtype in FLOATS:
        for n in (1, 2, 31, 255, 256, 257, 511, 512, 513, 1000, 3000):
            case(f"{dtype}_n{n}", rand(dtype, n))
        for axis in (-3, -2, -1, 0, 1, 2):
            case(f"{dtype}_axis_{axis}", rand(dtype, 3, 4, 5), axis=axis)
        case(f"{dtype}_wild", wild(dtype, 40, 3))
        case(f"{dtype}_wild_axis_0", wild(dtype, 40, 3), axis=0)
        case(f"{dtype}_nan", row(1, NAN, 2, dtype=dtype))
        case(f"{dtype}_infinite", row(1, INF, 2, -INF, 3, dtype=dtype))
        case(f"{dtype}_negative_zeros", row(-0.0, -0.0, dtype=dtype))
        case(f"{dtype}_columns", rand(dtype, 600, 37), axis=0)
        case(f"{dtype}_ones", operand(dtype, (5000,), {"f32": "fill:3f800000", "f16": "fill:3c00", "bf16": "fill:3f80"}[dtype]))
    for n in (65535, 65536, 65537, 65793, 200000):
        case(f"n{n}", rand("f32", n))
    case("rows_700", rand("f32", 300, 700))
    case("columns_66000", rand("f32", 66000, 3), axis=0)
    case("inner", rand("f32", 5, 1100, 7), axis=1)
    case("inner_17", rand("f32", 2, 300, 17), axis=1)
    case("rank_8", rand("f32", 2, 1, 2, 1, 300, 1, 2, 2), axis=4)
    case("unit_axis", wild("f32", 4, 1, 5), axis=1)
    case("subnormal", patterns(0x00000001, 0x00000001, 0x80000003, 0x00800000))
    case("cancel", row(1e30, 1, -1e30, 1))
    case("overflow", row(3e38, 3e38, -3e38))
    case("block_after_infinity", operand("f32", (700,), "fill:7f000000"))
    case("nothing", rand("f32", 0))
    case("no_lines", rand("f32", 0, 3))
    case("no_elements", rand("f32", 3, 0))
    case("tens", operand("f32", (5000,), "fill:3dcccccd"))


def topk(suite):
    def case(name, x, **attrs):
        for op in ("topk", "argtopk"):
            suite.case(f"topk/{op}_{name}", op, [x], **attrs)

    fills = {"f32": "fill:3f800000", "f16": "fill:3c00", "bf16": "fill:3f80"}
    for dtype in FLOATS:
        for n in (1, 2, 3, 7, 31, 32, 33, 64, 1000, 1023, 1024, 1025, 2049, 5000):
            case(f"{dtype}_n{n}", rand(dtype, n), k=min(n, 5))
            case(f"{dtype}_all_n{n}", rand(dtype, n), k=n)
        for axis in (-3, -2, -1, 0, 1, 2):
            case(f"{dtype}_axis_{axis}", rand(dtype, 3, 4, 5), k=2, axis=axis)
        case(f"{dtype}_wild", wild(dtype, 40, 50), k=12)
        case(f"{dtype}_wild_all", wild(dtype, 3000), k=3000)
        case(f"{dtype}_few", operand(dtype, (7, 2000), "rand:?:-4" if dtype == "bf16" else "rand:?"), k=9)
        case(f"{dtype}_equal", operand(dtype, (3000,), fills[dtype]), k=2000)
        case(f"{dtype}_nan", row(1, NAN, 3, NAN, INF, dtype=dtype), k=4)
        case(f"{dtype}_zeros", row(-0.0, 0.0, -0.0, 0.0, dtype=dtype), k=4)
        case(f"{dtype}_infinite", row(-INF, 1, INF, -INF, INF, dtype=dtype), k=5)
        case(f"{dtype}_columns", rand(dtype, 1500, 37), k=3, axis=0)
    case("default", rand("f32", 6, 7))
    case("ties", row(1, 7, 7, 3, 7, 1), k=5)
    case("nan_patterns", patterns(0x7F800000, 0xFFC12345, 0x7FC00000, 0xFF800001, 0x7FFFFFFF), k=5)
    case("subnormals", patterns(0x80000001, 0x80000002, 0x00000001, 0x00000002, 0x807FFFFF), k=5)
    case("k_0", rand("f32", 3, 4), k=0)
    case("no_lines", rand("f32", 0, 4), k=2)
    case("nothing", rand("f32", 3, 0), k=0)
    case("nothing_other", rand("f32", 3, 0), k=2, axis=0)
    case("experts", rand("f32", 300, 64), k=8)
    case("experts_5", rand("f32", 301, 5), k=2)
    case("vocabulary", rand("f32", 3, 50257), k=50)
    case("vocabulary_wide", rand("f32", 2, 20000), k=3000)
    case("k_1024", rand("f32", 9000), k=1024)
    case("k_1025", rand("f32", 9000), k=1025)
    case("sorted", rand("f32", 300000), k=40)
    case("long_all", rand("f32", 20001), k=20001)
    case("inner", rand("f32", 5, 1100, 7), k=6, axis=1)
    case("inner_17", rand("f32", 2, 2300, 17), k=1500, axis=1)
    case("rank_8", rand("f32", 2, 1, 2, 1, 30, 1, 2, 2), k=3, axis=4)
    case("unit_axis", wild("f32", 4, 1, 5), axis=1)
    for dtype in INDEXES:
        suite.case(f"topk/argtopk_as_{dtype}", "argtopk", [rand("f32", 5, 90)], k=7, dtype=dtype)
        suite.case(f"topk/argtopk_as_{dtype}_long", "argtopk", [rand("bf16", 3000)], k=70, dtype=dtype)


def errors(suite):
    def bad(op, name, status, operands, **attrs):
        stem, label = ("topk", f"error_{op}_{name}") if op.endswith("topk") else (op, f"error_{name}")
        suite.case(f"{stem}/{label}", op, operands, expect=status, **attrs)

    x, table = rand("f32", 2, 6), rand("f32", 2, 3)
    bad("rope", "missing", "invalid_argument", [x, table])
    bad("rope", "surplus", "invalid_argument", [x, table, table, table])
    bad("rope", "mixed", "dtype_mismatch", [x, table, rand("f16", 2, 3)])
    bad("rope", "integers", "dtype_mismatch", ["i32 2,6 ids:1:9", "i32 2,3 ids:1:9", "i32 2,3 ids:1:9"])
    bad("rope", "rank_0", "shape_mismatch", [rand("f32"), rand("f32"), rand("f32")])
    bad("rope", "odd", "shape_mismatch", [rand("f32", 2, 5), table, table])
    bad("rope", "tables_differ", "shape_mismatch", [x, table, rand("f32", 3)])
    bad("rope", "table_long", "shape_mismatch", [x, x, x])
    bad("rope", "table_rows", "shape_mismatch", [x, rand("f32", 3, 3), rand("f32", 3, 3)])
    bad("rope", "table_rank", "shape_mismatch", [x, rand("f32", 1, 2, 3), rand("f32", 1, 2, 3)])
    bad("rope", "attribute", "invalid_argument", [x, table, table], axis=0)
    bad("rope", "interleaved", "invalid_argument", [x, table, table], interleaved=2)
    bad("cumsum", "missing", "invalid_argument", [])
    bad("cumsum", "surplus", "invalid_argument", [x, x])
    bad("cumsum", "integers", "dtype_mismatch", ["i32 2,3 ids:1:9"])
    bad("cumsum", "bools", "dtype_mismatch", ["bool 2,3 ids:1:2"])
    bad("cumsum", "axis_high", "invalid_argument", [x], axis=2)
    bad("cumsum", "axis_low", "invalid_argument", [x], axis=-3)
    bad("cumsum", "axis_all", "invalid_argument", [x], axis="all")
    bad("cumsum", "rank_0", "shape_mismatch", [rand("f32")])
    bad("cumsum", "attribute", "invalid_argument", [x], keepdim=1)
    for op in ("topk", "argtopk"):
        bad(op, "missing", "invalid_argument", [])
        bad(op, "surplus", "invalid_argument", [x, x])
        bad(op, "integers", "dtype_mismatch", ["i32 2,3 ids:1:9"])
        bad(op, "k_high", "invalid_argument", [x], k=7)
        bad(op, "k_high_axis", "invalid_argument", [x], k=3, axis=0)
        bad(op, "k_negative", "invalid_argument", [x], k=-1)
        bad(op, "nothing", "invalid_argument", [rand("f32", 3, 0)])
        bad(op, "axis_high", "invalid_argument", [x], axis=2)
        bad(op, "axis_low", "invalid_argument", [x], axis=-3)
        bad(op, "axis_all", "invalid_argument", [x], axis="all")
        bad(op, "rank_0", "shape_mismatch", [rand("f32")])
        bad(op, "attribute", "invalid_argument", [x], keepdim=1)
    bad("topk", "dtype", "invalid_argument", [x], dtype="i32")
    bad("argtopk", "dtype_float", "invalid_argument", [x], dtype="f32")
