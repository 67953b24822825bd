"""Cases of embedding, transpose, concat, slice, pad, gather and cast."""

from itertools import permutations
from math import prod

from cases_elementwise import specials
from cases_matmul import rand, wild
from suite import operand
from tensors import BESIDE, DOUBLES, DTYPES, FLOATS, INDEXES, WIDTH, bits, doubles, hexes

# Below what ids: gives numbers of dtypes of one byte
LIMITS = {"bool": 2, "u8": 256}


def ids(dtype, *shape, bound):
    return operand(dtype, shape, f"ids:?:{bound}")


def anything(dtype, *shape):
    """Any bits where the generators have them, any index or bool otherwise."""
    if dtype in DOUBLES:
        return operand(dtype, shape, hexes(dtype, doubles(prod(shape), sum(shape))))
    return operand(dtype, shape, "wild:?" if dtype in FLOATS else f"ids:?:{LIMITS.get(dtype, 1 << 31)}")


def numbers(dtype, *values, shape=None):
    mask = (1 << 8 * WIDTH[dtype]) - 1
    return operand(dtype, (len(values),) if shape is None else shape, hexes(dtype, [value & mask for value in values]))


def build(suite):
    embedding(suite)
    transpose(suite)
    concat(suite)
    slices(suite)
    pad(suite)
    gather(suite)
    cast(suite)
    errors(suite)


def embedding(suite):
    def case(name, *operands):
        suite.case(f"embedding/{name}", "embedding", operands)

    for dtype in DTYPES:
        for index in INDEXES:
            case(f"{dtype}_{index}", anything(dtype, 11, 3), ids(index, 5, bound=11))
    for index in INDEXES:
        case(f"ids_rank_0_{index}", anything("f32", 7, 4), numbers(index, 6, shape=()))
        case(f"ids_rank_2_{index}", anything("f32", 7, 2), ids(index, 3, 4, bound=7))
        case(f"ends_{index}", anything("f32", 7, 2), numbers(index, 0, 6, 6, 0, 3))
    case("table_rank_1", anything("f32", 9), ids("i64", 4, bound=9))
    case("table_rank_1_ids_rank_0", anything("f32", 9), numbers("i32", 8, shape=()))
    case("table_rank_3", anything("f32", 5, 2, 3), ids("i32", 4, bound=5))
    case("table_rank_4_ids_rank_3", anything("bf16", 5, 2, 1, 3), ids("i64", 2, 1, 2, bound=5))
    case("rank_8", anything("f32", 5, 2, 1, 2, 1), ids("i32", 2, 1, 1, 2, bound=5))
    case("repeated", anything("f32", 3, 2), numbers("i32", 1, 1, 1, 1))
    case("no_ids", anything("f32", 3, 2), ids("i64", 0, bound=3))
    case("no_ids_empty_table", anything("f32", 0, 2), ids("i64", 2, 0, bound=3))
    case("empty_rows", anything("f32", 3, 0), ids("i64", 2, bound=3))
    case("large", rand("f32", 1000, 65), ids("i64", 513, bound=1000))
    case("large_f16", rand("f16", 300, 130), ids("i32", 4, 33, bound=300))


def transpose(suite):
    def case(name, x, **attrs):
        suite.case(f"transpose/{name}", "transpose", [x], **attrs)

    for dtype in DTYPES:
        case(f"{dtype}_default", anything(dtype, 3, 5))
        case(f"{dtype}_perm", anything(dtype, 2, 3, 4), perm=(1, 2, 0))
        case(f"{dtype}_large", anything(dtype, 67, 130))
    for perm in permutations(range(3)):
        case(f"perm_{''.join(map(str, perm))}", anything("f32", 2, 3, 5), perm=perm)
    for perm in ((0, 2, 1, 3), (3, 2, 1, 0), (0, 1, 3, 2), (2, 0, 3, 1), (1, 0, 2, 3)):
        case(f"perm_{''.join(map(str, perm))}", anything("f32", 2, 3, 4, 2), perm=perm)
    case("perm_41302", anything("f32", 2, 3, 2, 3, 2), perm=(4, 1, 3, 0, 2))
    case("perm_rank_8", anything("f16", 2, 1, 2, 1, 3, 1, 2, 2), perm=(7, 6, 0, 1, 4, 5, 3, 2))
    case("perm_negative", anything("f32", 2, 3, 4), perm=(-1, 0, -2))
    case("perm_one", anything("f32", 5), perm=(0,))
    case("rank_0", anything("f32"))
    case("rank_1", anything("i64", 5))
    case("rank_8", anything("f32", 1, 2, 1, 3, 1, 2, 1, 2))
    case("zero_size", anything("f32", 3, 0, 2))
    case("zero_size_perm", anything("bf16", 0, 4), perm=(1, 0))
    case("ones", anything("f32", 1, 1, 1))
    case("large_heads", anything("f32", 33, 4, 65), perm=(1, 0, 2))


def concat(suite):
    def case(name, *operands, **attrs):
        suite.case(f"concat/{name}", "concat", operands, **attrs)

    for dtype in DTYPES:
        case(f"{dtype}_axis_0", anything(dtype, 2, 3), anything(dtype, 1, 3))
        case(f"{dtype}_axis_1", anything(dtype, 2, 3), anything(dtype, 2, 4), axis=1)
    for axis in (-3, -2, -1, 0, 1, 2):
        sizes = [[2, 3, 4] for _ in range(3)]
        for turn in range(3):
            sizes[turn][axis] = turn + 1
        case(f"axis{axis}", *(anything("f32", *size) for size in sizes), axis=axis)
    case("single", anything("f32", 2, 3))
    case("single_axis", anything("f16", 2, 3), axis=-1)
    case("five", *(anything("f32", n, 2) for n in (1, 2, 3, 2, 1)))
    case("five_last_axis", *(anything("f32", 3, n) for n in (1, 2, 3, 2, 1)), axis=-1)
    case("same_operand_shapes", *(anything("f32", 1) for _ in range(5)))
    case("zero_part", anything("f32", 2, 3), anything("f32", 0, 3), anything("f32", 1, 3))
    case("zero_part_first", anything("f32", 2, 0), anything("f32", 2, 3), axis=1)
    case("zero_all", anything("f32", 0, 3), anything("f32", 0, 3))
    case("zero_other", anything("f32", 2, 0), anything("f32", 3, 0))
    case("rank_8", anything("f32", 1, 2, 1, 2, 1, 2, 1, 2), anything("f32", 1, 2, 1, 2, 3, 2, 1, 2), axis=4)
    case("large", anything("f32", 33, 65), anything("f32", 33, 130), anything("f32", 33, 1), axis=1)
    case("long", anything("bf16", 1000), anything("bf16", 77))


LARGEST, SMALLEST = 2**31 - 1, -2**31


def slices(suite):
    def case(name, x, **attrs):
        suite.case(f"slice/{name}", "slice", [x], **attrs)

    for dtype in DTYPES:
        case(f"{dtype}_rows", anything(dtype, 5, 3), start=(1,), stop=(4,))
        case(f"{dtype}_columns", anything(dtype, 5, 7), start=(0, 2), stop=(5, -1))
        case(f"{dtype}_steps", anything(dtype, 5, 7), step=(2, 3))
        case(f"{dtype}_large", anything(dtype, 67, 131), start=(3, 1), stop=(LARGEST, -2), step=(1, 2))
        case(f"{dtype}_inside", anything(dtype, 3, 4, 5, 6), start=(1, 1, 1, 1), stop=(-1, -1, -1, -1))
    case("nothing_given", anything("f32", 3, 4))
    case("rank_0", anything("f32"))
    case("rank_8", anything("f32", 2, 3, 2, 3, 2, 3, 2, 3), start=(0, 1, 0, 1, 0, 1, 0, 1), step=(1, 1, 2, 1, 1, 2, 1, 2))
    case("negative", anything("f32", 10), start=(-7,), stop=(-2,))
    case("beyond", anything("f32", 10), start=(-100,), stop=(100,))
    case("limits", anything("f32", 10), start=(SMALLEST,), stop=(LARGEST,), step=(LARGEST,))
    case("empty", anything("f32", 10, 3), start=(5,), stop=(5,))
    case("stop_before_start", anything("f32", 10, 3), start=(5,), stop=(2,))
    case("start_beyond", anything("f32", 10, 3), start=(10,))
    case("of_nothing", anything("f32", 0, 3), start=(1,), stop=(5,))
    case("last", anything("f16", 9, 9), start=(-1, -1))
    case("step_over_the_end", anything("f32", 2, 10), step=(1, 4))
    case("middle_axis", anything("bf16", 4, 9, 5), start=(0, 2), stop=(4, 8), step=(1, 3))
    case("heads", anything("f32", 2, 33, 4, 16), start=(0, 16), stop=(2, 33))


def pad(suite):
    def case(name, x, value, **attrs):
        suite.case(f"pad/{name}", "pad", [x, value], **attrs)

    for dtype in DTYPES:
        case(f"{dtype}_both", anything(dtype, 3, 5), anything(dtype), before=(1, 2), after=(2, 1))
        case(f"{dtype}_first_axis", anything(dtype, 3, 5), anything(dtype, 1), before=(2,))
        case(f"{dtype}_last_axis", anything(dtype, 3, 5), anything(dtype, 1, 1), after=(0, 3))
        case(f"{dtype}_large", anything(dtype, 63, 61), anything(dtype), before=(1, 3), after=(2, 1))
        case(f"{dtype}_steps", anything(dtype, 3, 5), anything(dtype), before=(1, 2), after=(2, 1), step=(2, 3))
        case(f"{dtype}_steps_of_rows", anything(dtype, 17, 33), anything(dtype), step=(3,))
    case("steps_of_images", anything("f32", 2, 3, 7, 9), operand("f32", (), "fill:00000000"), after=(0, 0, 1), step=(1, 1, 2, 2))
    case("steps_of_one", anything("f32", 1, 4), anything("f32"), before=(0, 1), step=(LARGEST, 2))
    case("steps_of_nothing", anything("f32", 0, 3), anything("f32"), before=(2,), after=(1, 1), step=(5, 2))
    case("nothing_given", wild("f32", 3, 4), wild("f32"))
    case("zeros", wild("f32", 3, 4), wild("f32"), before=(0, 0), after=(0, 0))
    case("rank_0", wild("f32"), wild("f32"))
    case("rank_8", anything("f32", 1, 2, 1, 2, 1, 2, 1, 2), anything("f32"), before=(1, 0, 1, 0, 0, 1, 0, 1), after=(0, 1, 0, 1))
    case("of_nothing", anything("f32", 0, 3), anything("f32"), before=(2,), after=(0, 1))
    case("to_nothing", anything("f32", 0, 3), anything("f32"), after=(0, 1))
    case("nan_keeps_its_bits", wild("f32", 4), operand("f32", (), "fill:ffc12345"), after=(3,))
    case("i64_value", numbers("i64", 1, 2), numbers("i64", -5, shape=()), before=(1,), after=(2,))
    case("images", anything("f16", 2, 3, 7, 9), operand("f16", (), "fill:0000"), before=(0, 0, 1, 1), after=(0, 0, 1, 1))


def gather(suite):
    def case(name, x, index, **attrs):
        suite.case(f"gather/{name}", "gather", [x, index], **attrs)

    for dtype in DTYPES:
        for index in INDEXES:
            case(f"{dtype}_{index}", anything(dtype, 3, 7, 2), ids(index, 3, 4, 2, bound=7), axis=1)
    for axis in (-3, -2, -1, 0, 1, 2):
        shape = [4, 5, 6]
        bound, shape[axis] = shape[axis], 3
        case(f"axis{axis}", anything("f32", 4, 5, 6), ids("i64", *shape, bound=bound), axis=axis)
    case("default_axis", anything("f32", 4, 5), ids("i32", 4, 9, bound=5))
    case("rank_1", anything("f32", 9), ids("u32", 4, bound=9))
    case("rank_8", anything("f32", 1, 2, 1, 2, 3, 2, 1, 2), ids("i32", 1, 2, 1, 2, 4, 2, 1, 2, bound=3), axis=4)
    case("ends", anything("f32", 2, 7), numbers("i64", 0, 6, 6, 0, shape=(2, 2)))
    case("no_ids", anything("f32", 3, 2), ids("i64", 3, 0, bound=2))
    case("no_ids_of_nothing", anything("f32", 3, 0), ids("i64", 3, 0, bound=2))
    case("nothing_elsewhere", anything("f32", 0, 5), ids("i64", 0, 3, bound=5))
    case("repeated", anything("f32", 3, 2), numbers("i32", 1, 1, 1, 1, 1, 1, shape=(3, 2)))
    case("large", rand("f32", 300, 65), ids("i64", 300, 80, bound=65))
    case("large_first_axis", rand("bf16", 1000, 33), ids("i32", 600, 33, bound=1000), axis=0)


SOURCES = {
    "bool": [0, 1, 1, 0],
    "i32": [0, 1, -1, 2, -2, 255, 256, 257, 2047, 2048, 2049, 2050, 4097, 65503, 65504, 65519, 65520, 65521, -65520, 16777215, 16777216,
            16777217, 16777218, 16777219, -16777217, 33554433, 33554434, 33554435, 2**30 + 1, 2**31 - 64, 2**31 - 65, 2**31 - 63,
            2**31 - 1, -2**31, -2**31 + 1, -2**31 + 65],
    "u32": [0, 1, 2, 2047, 2049, 65519, 65520, 16777217, 16777219, 2**31 - 1, 2**31, 2**31 + 1, 2**31 + 128, 2**31 + 129, 2**31 + 384,
            2**32 - 128, 2**32 - 129, 2**32 - 127, 2**32 - 1],
    "i64": [0, 1, -1, 2049, 65519, 65520, -65520, 2**24 + 1, 2**24 + 3, -2**24 - 1, 2**31, -2**31, 2**31 - 1, -2**31 - 1, 2**32, 2**32 - 1, 2**32 + 5,
            -2**32, 2**53 + 1, 2**62 + 2**38, 2**62 + 2**38 + 1, 2**62 + 3 * 2**38, 2**62 + 3 * 2**38 - 1, 2**63 - 2**38, 2**63 - 2**38 - 1,
            2**63 - 1, -2**63, -2**63 + 1, -2**63 + 2**38, 0x123456789ABCDEF0, -0x123456789ABCDEF0],
    "u8": [0, 1, 2, 3, 16, 100, 126, 127, 128, 129, 130, 200, 253, 254, 255],
}

# Numbers around what u8 holds, both signs.
ENDS = [0.0, 0.25, 0.5, 0.875, 1.0, 1.5, 1.875, 127.0, 127.5, 128.0, 128.5, 254.0, 254.5, 255.0, 255.5, 256.0, 257.0, 300.0, 65504.0]

# binary32 around what integers and the short formats can hold
NEAR = [0x3EFFFFFF, 0x3F000000, 0x3F7FFFFF, 0x3FBFFFFF, 0x3FC00000, 0x40200000, 0x4AFFFFFF, 0x4B000001, 0x4EFFFFFF, 0x4F000000,
        0x4F000001, 0x4F7FFFFF, 0x4F800000, 0x5EFFFFFF, 0x5F000000, 0x5F7FFFFF, 0x7149F2CA, 0x477FE000, 0x477FEFFF, 0x477FF000,
        0x477FF001, 0x47800000, 0x387FC000, 0x387FE000, 0x387FDFFF, 0x38800000, 0x33000000, 0x33000001, 0x32FFFFFF, 0x33800000,
        0x33C00000, 0x34200000]
ROUNDING = [0x3F801000, 0x3F803000, 0x3F800FFF, 0x3F801001, 0x3F808000, 0x3F818000, 0x3F807FFF, 0x3F808001, 0x7F7F7FFF, 0x7F7F8000,
            0x7F7FFFFF, 0x00008000, 0x00018000, 0x00007FFF, 0x00008001, 0x007F8000, 0x007FFFFF, 0x00000001, 0x38801000, 0x38803000,
            0x387FF000, 0x33400000, 0x33BFFFFF, 0x33C00001, 0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7F800000, 0x3F800000, 0x00000000,
            0x3C7FF000, 0x3C7FEFFF]


def cast(suite):
    for source in DTYPES:
        for target in DTYPES:
            def case(name, x):
                suite.case(f"cast/{source}_{target}{name}", "cast", [x], dtype=target)

            if source in FLOATS:
                sign = 1 << (8 * WIDTH[source] - 1)
                case("_specials", operand(source, (64,), hexes(source, specials(source))))
                case("_wild", wild(source, 5003))
                if target == "u8":
                    case("_bytes", rand(source, 1003, e=9))
                    case("_ends", operand(source, (2 * len(ENDS),), bits(source, [x * s for s in (1, -1) for x in ENDS])))
                case("_rand", rand(source, 3, 5, e=4))
                case("_integers", rand(source, 1003, e={"f32": 23, "f16": 10, "bf16": 7}[source]))
                case("_halves", rand(source, 1003, e={"f32": 22, "f16": 9, "bf16": 6}[source]))
                if source == "f32":
                    case("_near", operand(source, (64,), hexes(source, [b | s for s in (0, sign) for b in NEAR])))
                    case("_rounding", operand(source, (64,), hexes(source, [b | s for s in (0, sign) for b in ROUNDING])))
            elif source in DOUBLES:
                beside = [(b + by) % (1 << 63) | s for b in BESIDE for by in (-1, 0, 1) for s in (0, 1 << 63)]
                case("", numbers(source, *beside))
                case("_any", anything(source, 401))
            else:
                case("", numbers(source, *SOURCES[source]))
                case("_ids", anything(source, 1003))
    # long enough to meet nearly every 16-bit pattern
    suite.case("cast/f16_f32_wild_long", "cast", [wild("f16", 400000)])
    suite.case("cast/bf16_f16_wild_long", "cast", [wild("bf16", 400000)], dtype="f16")
    suite.case("cast/f16_i32_wild_long", "cast", [wild("f16", 400000)], dtype="i32")
    suite.case("cast/default", "cast", [rand("f16", 2, 3)])
    suite.case("cast/rank_0", "cast", [rand("f32")], dtype="bf16")
    suite.case("cast/zero_size", "cast", [rand("f32", 2, 0)], dtype="i64")
    suite.case("cast/rank_8", "cast", [rand("f32", 1, 2, 1, 2, 1, 2, 1, 2)], dtype="f16")
    suite.case("cast/f32_f16_small", "cast", [rand("f32", 4001, e=-14)], dtype="f16")
    suite.case("cast/f32_f16_subnormal", "cast", [rand("f32", 4001, e=-20)], dtype="f16")
    suite.case("cast/f32_bf16_subnormal", "cast", [operand("f32", (64,), hexes("f32", range(0x7F60, 0x7F60 + 64 * 9, 9)))], dtype="bf16")


def errors(suite):
    def bad(op, name, status, operands, **attrs):
        suite.case(f"{op}/error_{name}", op, operands, expect=status, **attrs)

    table = rand("f32", 4, 3)
    bad("embedding", "missing", "invalid_argument", [table])
    bad("embedding", "surplus", "invalid_argument", [table, numbers("i32", 1), numbers("i32", 1)])
    for dtype in FLOATS:
        bad("embedding", f"ids_{dtype}", "dtype_mismatch", [table, rand(dtype, 2)])
    bad("embedding", "ids_u8", "dtype_mismatch", [table, numbers("u8", 0, 1)])
    for index in INDEXES:
        bad("embedding", f"beyond_{index}", "invalid_argument", [table, numbers(index, 0, 4)])
        bad("embedding", f"far_beyond_{index}", "invalid_argument", [table, numbers(index, 2**31 - 1)])
    bad("embedding", "negative_i32", "invalid_argument", [table, numbers("i32", 1, -1)])
    bad("embedding", "negative_i64", "invalid_argument", [table, numbers("i64", -1)])
    bad("embedding", "u32_largest", "invalid_argument", [table, numbers("u32", 2**32 - 1)])
    bad("embedding", "i64_low_bits_fit", "invalid_argument", [table, numbers("i64", 2**32)])
    bad("embedding", "last_of_many", "invalid_argument", [table, numbers("i64", *([1] * 63), 4)])
    bad("embedding", "empty_table", "invalid_argument", [rand("f32", 0, 3), numbers("i32", 0)])
    bad("embedding", "empty_rows", "invalid_argument", [rand("f32", 3, 0), numbers("i32", 3)])
    bad("embedding", "table_rank_0", "shape_mismatch", [rand("f32"), numbers("i32", 0)])
    bad("embedding", "rank_9", "shape_mismatch", [rand("f32", 2, 1, 1, 1, 1, 1), operand("i32", (1, 1, 1, 1), "fill:00000000")])
    bad("embedding", "attribute", "invalid_argument", [table, numbers("i32", 1)], axis=0)

    x = rand("f32", 2, 3)
    bad("transpose", "missing", "invalid_argument", [])
    bad("transpose", "surplus", "invalid_argument", [x, x])
    bad("transpose", "perm_short", "invalid_argument", [x], perm=(0,))
    bad("transpose", "perm_long", "invalid_argument", [x], perm=(0, 1, 2))
    bad("transpose", "perm_repeats", "invalid_argument", [x], perm=(1, 1))
    bad("transpose", "perm_repeats_negative", "invalid_argument", [x], perm=(1, -1))
    bad("transpose", "perm_high", "invalid_argument", [x], perm=(0, 2))
    bad("transpose", "perm_low", "invalid_argument", [x], perm=(-3, 1))
    bad("transpose", "attribute", "invalid_argument", [x], axis=0)

    bad("concat", "missing", "invalid_argument", [])
    bad("concat", "none", "invalid_argument", ["none"])
    bad("concat", "mixed", "dtype_mismatch", [x, rand("f16", 2, 3)])
    bad("concat", "mixed_index", "dtype_mismatch", [numbers("i32", 1), numbers("i64", 1)])
    bad("concat", "ranks", "shape_mismatch", [x, rand("f32", 3)])
    bad("concat", "dimensions", "shape_mismatch", [x, rand("f32", 2, 4)])
    bad("concat", "dimensions_third", "shape_mismatch", [x, x, rand("f32", 3, 3)], axis=1)
    bad("concat", "rank_0", "shape_mismatch", [rand("f32"), rand("f32")])
    bad("concat", "axis_high", "invalid_argument", [x, x], axis=2)
    bad("concat", "axis_low", "invalid_argument", [x, x], axis=-3)
    bad("concat", "attribute", "invalid_argument", [x, x], keepdim=1)

    bad("slice", "missing", "invalid_argument", [])
    bad("slice", "surplus", "invalid_argument", [x, x])
    bad("slice", "step_0", "invalid_argument", [x], step=(0,))
    bad("slice", "step_negative", "invalid_argument", [x], step=(1, -1))
    for name in ("start", "stop", "step"):
        bad("slice", f"{name}_long", "invalid_argument", [x], **{name: (1, 1, 1)})
    bad("slice", "rank_0", "invalid_argument", [rand("f32")], start=(0,))
    bad("slice", "attribute", "invalid_argument", [x], axis=0)

    bad("pad", "missing", "invalid_argument", [x])
    bad("pad", "surplus", "invalid_argument", [x, rand("f32"), rand("f32")])
    bad("pad", "mixed", "dtype_mismatch", [x, rand("f16")])
    bad("pad", "value", "shape_mismatch", [x, rand("f32", 2)])
    bad("pad", "value_of_nothing", "shape_mismatch", [x, rand("f32", 0)])
    bad("pad", "negative", "invalid_argument", [x, rand("f32")], before=(-1,))
    bad("pad", "negative_after", "invalid_argument", [x, rand("f32")], after=(0, -1))
    bad("pad", "long", "invalid_argument", [x, rand("f32")], after=(0, 1, 0))
    bad("pad", "no_step", "invalid_argument", [x, rand("f32")], step=(1, 0))
    bad("pad", "long_step", "invalid_argument", [x, rand("f32")], step=(1, 1, 1))
    bad("pad", "attribute", "invalid_argument", [x, rand("f32")], axis=0)

    places = numbers("i32", 0, 1, shape=(2, 1))
    bad("gather", "missing", "invalid_argument", [x])
    bad("gather", "surplus", "invalid_argument", [x, places, places])
    bad("gather", "ids_f32", "dtype_mismatch", [x, x])
    bad("gather", "ids_u8", "dtype_mismatch", [x, numbers("u8", 0, 1, shape=(2, 1))])
    for index in INDEXES:
        bad("gather", f"beyond_{index}", "invalid_argument", [x, numbers(index, 0, 3, shape=(2, 1))])
    bad("gather", "negative_i32", "invalid_argument", [x, numbers("i32", 0, -1, shape=(2, 1))])
    bad("gather", "negative_i64", "invalid_argument", [x, numbers("i64", -1, 0, shape=(2, 1))])
    bad("gather", "i64_low_bits_fit", "invalid_argument", [x, numbers("i64", 2**32, 0, shape=(2, 1))])
    bad("gather", "of_nothing", "invalid_argument", [rand("f32", 2, 0), places])
    bad("gather", "ranks", "shape_mismatch", [x, numbers("i32", 0, 1)])
    bad("gather", "dimensions", "shape_mismatch", [x, numbers("i32", 0, 0, 0, shape=(3, 1))])
    bad("gather", "rank_0", "shape_mismatch", [rand("f32"), numbers("i32", 0, shape=())])
    bad("gather", "axis_high", "invalid_argument", [x, places], axis=2)
    bad("gather", "attribute", "invalid_argument", [x, places], keepdim=1)

    bad("cast", "missing", "invalid_argument", [])
    bad("cast", "surplus", "invalid_argument", [x, x])
    bad("cast", "attribute", "invalid_argument", [x], axis=0)
    bad("cast", "dtype", "invalid_argument", [x], dtype="f128")
