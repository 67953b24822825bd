"""Cases of the comparisons and of where."""

from cases_elementwise import specials
from cases_matmul import rand, wild
from cases_moves import SOURCES, anything, ids, numbers
from shapes import COMPARISONS
from suite import operand
from tensors import DOUBLES, DTYPES, FLOATS, hexes


def build(suite):
    for op in COMPARISONS:
        compare(suite, op)
    where(suite)
    errors(suite)


def few(dtype, *shape):
    """Elements that are often equal."""
    return rand(dtype, *shape, e=-3) if dtype == "bf16" else ids(dtype, *shape, bound=2 if dtype == "bool" else 3)


def compare(suite, op):
    def case(name, a, b):
        suite.case(f"compare/{op}_{name}", op, [a, b])

    for dtype in FLOATS:
        patterns = specials(dtype)[:24]
        square = [operand(dtype, shape, hexes(dtype, patterns)) for shape in ((len(patterns), 1), (len(patterns),))]
        case(f"{dtype}_specials", *square)
        case(f"{dtype}_wild", wild(dtype, 1003), wild(dtype, 1003))
        case(f"{dtype}_rand", rand(dtype, 3, 5), rand(dtype, 3, 5))
    for dtype in DTYPES:
        if dtype in DOUBLES:
            case(f"{dtype}_square", anything(dtype, 47, 1), anything(dtype, 47))
            nan = 0x7FF8 << 48
            few_of = [0, 1 << 63, 1, 1 << 63 | 1, 0x3FF << 52, 0x3FF << 52 | 1, 0xBFF << 52, 0x7FF << 52, 0xFFF << 52, nan, 1 << 63 | nan | 1]
            case(f"{dtype}_few", numbers(dtype, *few_of, shape=(len(few_of), 1)), numbers(dtype, *few_of))
        elif dtype not in FLOATS:
            values = SOURCES[dtype]
            case(f"{dtype}_square", numbers(dtype, *values, shape=(len(values), 1)), numbers(dtype, *values))
            case(f"{dtype}_few", few(dtype, 1003), few(dtype, 1003))
    case("bf16_few", few("bf16", 5003), few("bf16", 5003))
    case("row", wild("f32", 33, 65), wild("f32", 65))
    case("column", wild("f32", 33, 65), wild("f32", 33, 1))
    case("scalar", rand("f32", 2, 3, 4), operand("f32", (), "fill:00000000"))
    case("of_a_scalar", operand("f32", (1,), "fill:00000000"), rand("f32", 2, 3, 7))
    case("both", rand("f32", 5, 1, 7), rand("f32", 6, 1))
    case("rank_0", rand("f32"), rand("f32"))
    case("rank_8", rand("f32", 1, 2, 3, 1, 2, 1, 3, 2), rand("f32", 2, 1, 3, 2, 1, 2, 1, 2))
    case("empty", rand("f32", 0, 3), rand("f32", 3))
    case("large", wild("f32", 300, 701), wild("f32", 300, 701))


def where(suite):
    def case(name, condition, a, b):
        suite.case(f"where/{name}", "where", [condition, a, b])

    def bools(*shape):
        return ids("bool", *shape, bound=2)

    for dtype in DTYPES:
        case(f"{dtype}_same", bools(5, 7), anything(dtype, 5, 7), anything(dtype, 5, 7))
        case(f"{dtype}_long", bools(2003), anything(dtype, 2003), anything(dtype, 2003))
        case(f"{dtype}_scalars", bools(3, 5), anything(dtype), anything(dtype, 1))
        case(f"{dtype}_all_broadcast", bools(4, 1, 1), anything(dtype, 3, 1), anything(dtype, 6))
    case("row", bools(65), wild("f32", 33, 65), wild("f32", 33, 65))
    case("column", bools(33, 1), wild("f32", 33, 65), wild("f32", 65))
    case("mask", bools(1, 1, 9, 9), rand("f32", 2, 3, 9, 9), operand("f32", (), "fill:ff800000"))
    case("all", operand("bool", (7,), "fill:01"), wild("f32", 7), wild("f32", 7))
    case("none", operand("bool", (7,), "fill:00"), wild("f32", 7), wild("f32", 7))
    case("any_byte_is_true", operand("bool", (5,), hexes("bool", [0, 1, 2, 0x80, 0xFF])), rand("f32", 5), rand("f32", 5))
    case("nan_keeps_its_bits", bools(4), operand("f32", (), "fill:ffc12345"), operand("f32", (), "fill:7f800001"))
    case("rank_0", bools(), wild("f32"), wild("f32"))
    case("rank_8", bools(1, 2, 1, 1, 2, 1, 3, 2), rand("f32", 2, 1, 3, 2, 1, 2, 1, 2), rand("f32", 3, 1, 1, 2, 1, 2))
    case("rank_8_i64", bools(1, 2, 1, 2, 1, 2, 1, 2), anything("i64", 2, 1, 2, 1, 2, 1, 2, 1), anything("i64", 2, 1, 2, 1, 2, 1))
    case("empty", bools(0, 3), rand("f32", 3), rand("f32"))
    case("large", bools(300, 701), wild("f32", 300, 701), wild("f32", 701))


def errors(suite):
    def bad(stem, op, name, status, operands, **attrs):
        suite.case(f"{stem}/error_{op}_{name}", op, operands, expect=status, **attrs)

    x = rand("f32", 2, 3)
    for op in COMPARISONS:
        bad("compare", op, "missing", "invalid_argument", [x])
        bad("compare", op, "surplus", "invalid_argument", [x, x, x])
        bad("compare", op, "mixed", "dtype_mismatch", [x, rand("f16", 2, 3)])
        bad("compare", op, "mixed_index", "dtype_mismatch", [numbers("i32", 1), numbers("i64", 1)])
        bad("compare", op, "bool_and_f32", "dtype_mismatch", [numbers("bool", 1), rand("f32", 1)])
        bad("compare", op, "shapes", "shape_mismatch", [x, rand("f32", 2)])
        bad("compare", op, "attribute", "invalid_argument", [x, x], axis=0)
    yes = numbers("bool", 1, shape=())
    bad("where", "where", "missing", "invalid_argument", [yes, x])
    bad("where", "where", "surplus", "invalid_argument", [yes, x, x, x])
    bad("where", "where", "condition_f32", "dtype_mismatch", [x, x, x])
    bad("where", "where", "condition_i32", "dtype_mismatch", [numbers("i32", 1), x, x])
    bad("where", "where", "condition_u8", "dtype_mismatch", [numbers("u8", 1), x, x])
    bad("where", "where", "bool_and_u8", "dtype_mismatch", [yes, yes, numbers("u8", 1)])
    bad("where", "where", "mixed", "dtype_mismatch", [yes, x, rand("bf16", 2, 3)])
    bad("where", "where", "shapes", "shape_mismatch", [yes, x, rand("f32", 4)])
    bad("where", "where", "condition_shape", "shape_mismatch", [numbers("bool", 1, 0), x, x])
    bad("where", "where", "attribute", "invalid_argument", [yes, x, x], axis=0)
    # What computes on floats takes no bools.
    bad("where", "pow", "bools", "dtype_mismatch", [yes, yes])
    for op in ("relu", "mean", "softmax"):
        bad("where", op, "bool", "dtype_mismatch", [numbers("bool", 1, 0)])
    # Nor bytes.
    bad("where", "pow", "u8s", "dtype_mismatch", [numbers("u8", 1), numbers("u8", 2)])
    for op in ("exp", "mean", "topk"):
        bad("where", op, "u8", "dtype_mismatch", [numbers("u8", 1, 0)])
    bad("where", "gather", "bool_ids", "dtype_mismatch", [x, numbers("bool", 1, 0, shape=(2, 1))])
