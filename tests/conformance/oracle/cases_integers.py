"""Cases of arithmetic on integers and bools."""

import shapes
from cases_matmul import rand
from cases_moves import SOURCES, ids, numbers
from suite import operand
from tensors import BYTES, INDEXES

INTEGERS = INDEXES + BYTES
# Whole words of 32 bits, which the generator of ids makes, are every u32 and i32.
BOUND = {"bool": 2, "u8": 256}


def any_bits(dtype, *shape):
    """Any elements; of i64 those that 32 bits hold."""
    return ids(dtype, *shape, bound=BOUND.get(dtype, (1 << 32) - 1))


def build(suite):
    for op in shapes.WHOLE:
        if op in shapes.VALUES + shapes.PLACES:
            reduction(suite, op)
        else:
            elementwise(suite, op)
    errors(suite)


def elementwise(suite, op):
    count = shapes.OPS[op][0]

    def case(name, *operands):
        suite.case(f"integers/{op}_{name}", op, operands[:count])

    for dtype in INTEGERS:
        values = SOURCES[dtype]
        if count == 1:
            case(f"{dtype}_values", numbers(dtype, *values))
        else:
            # Every pair of the values.
            case(f"{dtype}_square", numbers(dtype, *values, shape=(len(values), 1)), numbers(dtype, *values))
        case(f"{dtype}_long", any_bits(dtype, 2003), any_bits(dtype, 2003))
        case(f"{dtype}_small", ids(dtype, 3, 5, bound=2), ids(dtype, 3, 5, bound=2))
        case(f"{dtype}_empty", ids(dtype, 0, 3, bound=2), ids(dtype, 3, bound=2))
    case("any_byte_is_true", operand("bool", (5,), "bits:000102ff80"), operand("bool", (5,), "bits:0002ff0104"))
    case("rank_0", numbers("i64", -7, shape=()), numbers("i64", 2, shape=()))
    case("rank_8", any_bits("i32", 1, 2, 3, 1, 2, 1, 3, 2), any_bits("i32", 2, 1, 3, 2, 1, 2, 1, 2))
    if count == 2:
        case("row", any_bits("i32", 33, 65), any_bits("i32", 65))
        case("column", any_bits("u8", 33, 65), any_bits("u8", 33, 1))
        case("scalar", any_bits("i64", 2, 3, 4), numbers("i64", -3, shape=()))
        case("of_a_scalar", numbers("u32", 1 << 31, shape=(1,)), any_bits("u32", 2, 3, 7))
        case("both", any_bits("u8", 5, 1, 7), any_bits("u8", 6, 1))
        case("large", any_bits("i32", 300, 701), any_bits("i32", 300, 701))


def reduction(suite, op):
    def case(name, x, **attrs):
        suite.case(f"integers/{op}_{name}", op, [x], **attrs)

    for dtype in INTEGERS:
        case(f"{dtype}_values", numbers(dtype, *SOURCES[dtype]))
        for axis in (0, 1, -1):
            case(f"{dtype}_axis_{axis}", any_bits(dtype, 3, 4, 5), axis=axis)
        case(f"{dtype}_keepdim", any_bits(dtype, 3, 4, 5), axis=1, keepdim=1)
        case(f"{dtype}_long_lines", any_bits(dtype, 3, 2500), axis=1)
        case(f"{dtype}_columns", any_bits(dtype, 300, 7), axis=0)
        case(f"{dtype}_equal", ids(dtype, 5, 300, bound=2), axis=1)
        for n in (1, 127, 128, 129, 257):
            case(f"{dtype}_n{n}", any_bits(dtype, n))
        case(f"{dtype}_n200000", any_bits(dtype, 200000))
        if op in ("sum", "prod"):
            case(f"{dtype}_nothing", ids(dtype, 0, 3, bound=2), axis=0)
    case("rank_0", numbers("i64", -7, shape=()))
    case("any_byte_is_true", operand("bool", (2, 3), "bits:000002ff8001"), axis=1)
    case("zero_result", ids("i32", 0, 3, bound=2), axis=1)
    case("many_lines", any_bits("i32", 1000, 3), axis=1)
    case("inner", any_bits("i64", 5, 200, 7), axis=1)
    if op in shapes.VALUES:
        for dtype in ("i32", "i64", "u8", "bool"):
            case(f"{dtype}_axes", any_bits(dtype, 5, 3, 7, 2), axes=(0, 2))
            case(f"{dtype}_axes_keepdim", any_bits(dtype, 4, 3, 50, 2), axes=(2, 0), keepdim=1)
    else:
        for dtype in ("i32", "u32"):
            case(f"as_{dtype}", any_bits("i64", 5, 300), axis=1, dtype=dtype)


def errors(suite):
    def bad(op, name, status, operands, **attrs):
        suite.case(f"integers/error_{op}_{name}", op, operands, expect=status, **attrs)

    x = ids("i32", 2, 3, bound=9)
    for op in ("add", "sub", "mul", "div", "maximum", "minimum"):
        bad(op, "mixed", "dtype_mismatch", [x, ids("i64", 2, 3, bound=9)])
        bad(op, "float", "dtype_mismatch", [x, rand("f32", 2, 3)])
        bad(op, "bool", "dtype_mismatch", [x, ids("bool", 2, 3, bound=2)])
        bad(op, "shapes", "shape_mismatch", [x, ids("i32", 2, bound=9)])
        bad(op, "missing", "invalid_argument", [x])
    for op in ("max", "min", "argmax", "argmin"):
        bad(op, "nothing", "invalid_argument", [ids("i64", 0, bound=9)])
        bad(op, "axis", "invalid_argument", [x], axis=2)
