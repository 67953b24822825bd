"""Cases of add, sub, mul, div (binary.txt) and of scale, gelu and the one-operand functions (unary.txt)."""

from cases_matmul import rand, wild
from shapes import BINARY, UNARY, WHOLE
from suite import operand
from tensors import FLOATS, WIDTH, float_bits, hexes

# Those that take turns in the cases of shapes: cases that exist keep their operation when another comes.
IN_TURN = ("add", "sub", "mul", "div")

SPECIALS = {
    "f32": [0x00000000, 0x00000001, 0x00000002, 0x00400000, 0x007FFFFF, 0x00800000, 0x00800001, 0x0D800000, 0x20000000,
            0x32000000, 0x33800000, 0x34000000, 0x39800000, 0x3E800000, 0x3F000000, 0x3F3504F3, 0x3F7FFFFF, 0x3F800000,
            0x3F800001, 0x3FB504F3, 0x40000000, 0x40490FDB, 0x41200000, 0x42B17218, 0x5F000000, 0x7F000000, 0x7F7FFFFF,
            0x7F800000, 0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FC12345],
    "f16": [0x0000, 0x0001, 0x0002, 0x0200, 0x03FF, 0x0400, 0x0401, 0x1000, 0x2000, 0x3000, 0x3800, 0x39A8, 0x3BFF, 0x3C00,
            0x3C01, 0x3DA8, 0x4000, 0x4248, 0x4500, 0x4900, 0x4C00, 0x5800, 0x5BFF, 0x6000, 0x7000, 0x7BFE, 0x7BFF, 0x7C00,
            0x7C01, 0x7DFF, 0x7E00, 0x7E01],
    "bf16": [0x0000, 0x0001, 0x0002, 0x0040, 0x007F, 0x0080, 0x0081, 0x0D80, 0x2000, 0x3200, 0x3380, 0x3400, 0x3980, 0x3E80,
             0x3F00, 0x3F35, 0x3F7F, 0x3F80, 0x3F81, 0x3FB5, 0x4000, 0x4049, 0x4120, 0x42B1, 0x5F00, 0x7F00, 0x7F7F, 0x7F80,
             0x7F81, 0x7FBF, 0x7FC0, 0x7FC1],
}

# (op, threshold): where a function's method changes or its result saturates, over- or underflows
THRESHOLDS = {
    "exp": {"min": 0xC2D20000, "zero": 0xC2CFF1B5, "subnormal": 0xC2AEAC50, "overflow": 0x42B17218, "max": 0x42B20000, "ln2_half": 0x3EB17218,
            "tiny": 0x33000000},
    "log": {"sqrt_half": 0x3F3504F3, "sqrt_2": 0x3FB504F3, "one": 0x3F800000, "normal": 0x00800000, "subnormal": 0x00012345},
    "tanh": {"switch": 0x3F6B851F, "ten": 0x41200000, "one": 0x41102CB4, "tiny": 0x39000000},
    "sigmoid": {"min": 0xC2D20000, "small": 0xC2AEAC50, "one": 0x41851592, "zero": 0x33800000},
    "silu": {"min": 0xC2D20000, "small": 0xC2AEAC50, "zero": 0x00800000},
    "gelu": {"switch": 0x3F963EFD, "limit": 0x40B2C1B0, "negative": 0xC0B2C1B0, "left": 0xBF963EFD},
    "sqrt": {"one": 0x3F800000, "normal": 0x00800000},
    "rsqrt": {"one": 0x3F800000, "four": 0x40800000, "normal": 0x00800000},
    "relu": {"zero": 0x00800000},
    "scale": {"normal": 0x01000000},
    "floor": {"one": 0x3F800000, "minus_one": 0xBF800000, "integers": 0x4B000000, "negative_integers": 0xCB000000,
              "halves": 0x4A800000, "minus_zero": 0x80000020},
    "round": {"half": 0x3F000000, "one_and_a_half": 0x3FC00000, "two_and_a_half": 0xC0200000, "integers": 0x4B000000,
              "halves": 0x4A800000, "negative_halves": 0xCA800000},
    "erf": {"switch": 0x3F547AE1, "limit": 0x407CCCCD, "negative": 0xC07CCCCD, "tiny": 0x00800000},
    "sin": {"large": 0x45C80000, "negative_large": 0xC5C80000, "quarter": 0x3FC90FDB, "half": 0x40490FDB, "eighth": 0x3F490FDB,
            "nearest": 0x6F79BE45, "largest": 0x7F7FFFDF, "tiny": 0x39800000},
    "cos": {"large": 0x45C80000, "negative_large": 0xC5C80000, "quarter": 0x3FC90FDB, "half": 0x40490FDB, "eighth": 0x3F490FDB,
            "nearest": 0x6F79BE45, "largest": 0x7F7FFFDF, "tiny": 0x39800000},
    "log1p": {"minus_one": 0xBF7FFFF0, "sqrt_2": 0x3ED413CD, "sqrt_half": 0xBE95F61A, "one": 0x3F800000, "large": 0x4B800000,
              "largest": 0x7F7FFFDF, "normal": 0x00800000},
    "expm1": {"min": 0xC1900000, "overflow": 0x42B17218, "last": 0x42B0C0A5, "ln2_half": 0x3EB17218, "negative_half": 0xBEB17218,
              "exact": 0x4188C270, "normal": 0x00800000},
    "clamp": {"low": 0xBF800000, "high": 0x3F000000},
}


def specials(dtype):
    """Both signs of each value: 64 in all."""
    sign = 1 << (8 * WIDTH[dtype] - 1)
    return [pattern | s for s in (0, sign) for pattern in SPECIALS[dtype]]


def build(suite):
    binary(suite)
    unary(suite)
    errors(suite)


def binary(suite):
    pairs = (((), ()), ((), (3,)), ((3,), ()), ((1,), (5,)), ((5,), (1,)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 3), (2, 1)),
             ((2, 1), (1, 3)), ((4, 1, 3), (2, 1)), ((2, 3, 4), ()), ((), (2, 3, 4)), ((2, 3, 4), (3, 1)), ((1, 1), (1, 1, 1)),
             ((2, 1, 3, 1), (1, 4, 1, 5)), ((2, 1, 2, 1, 2, 1, 2, 1), (1, 2, 1, 2, 1, 2, 1, 2)),
             ((0,), (1,)), ((0,), ()), ((1,), (0,)), ((2, 0), (2, 1)), ((3, 1, 0), (1, 2, 1)), ((0, 3), (3,)), ((0,), (0,)))
    for turn, (a, b) in enumerate(pairs):
        dims = "-".join("x".join(map(str, shape)) or "scalar" for shape in (a, b))
        for dtype, op in (("f32", IN_TURN[turn % 4]), ("f32", IN_TURN[(turn + 1) % 4]), (FLOATS[1 + turn % 2], IN_TURN[(turn + 2) % 4])):
            suite.case(f"binary/{op}_{dtype}_{dims}", op, [rand(dtype, *a), rand(dtype, *b)])
    for n in range(1, 68):  # every remainder of every vector width
        op = IN_TURN[n % 4]
        suite.case(f"binary/{op}_n{n}", op, [rand("f32", n), rand("f32", n)])
    for op in BINARY:
        for dtype in FLOATS:
            suite.case(f"binary/{op}_{dtype}_wild", op, [wild(dtype, 5003), wild(dtype, 5003)])
            suite.case(f"binary/{op}_{dtype}_wild_broadcast", op, [wild(dtype, 37, 1, 19), wild(dtype, 11, 1)])
            patterns = specials(dtype)
            suite.case(f"binary/{op}_{dtype}_specials", op, [operand(dtype, (64, 1), hexes(dtype, patterns)),
                                                             operand(dtype, (64,), hexes(dtype, patterns))])
            few = hexes(dtype, patterns[0:1] + patterns[5:6] + patterns[27:28] + patterns[32:33] + patterns[59:60])
            suite.case(f"binary/{op}_{dtype}_signs", op, [operand(dtype, (5, 1), few), operand(dtype, (5,), few)])
        suite.case(f"binary/{op}_large", op, [rand("f32", 100003), rand("f32", 100003)])
        suite.case(f"binary/{op}_row", op, [rand("f32", 129, 257), rand("f32", 257)])
        suite.case(f"binary/{op}_column", op, [rand("f32", 129, 257), rand("f32", 129, 1)])
        suite.case(f"binary/{op}_scalar", op, [rand("f32"), rand("f32", 1001)])
    for e in (-63, -64, -70):  # gradual underflow
        suite.case(f"binary/mul_underflow{e}", "mul", [rand("f32", 1000, e=e), rand("f32", 1000, e=e)])
        suite.case(f"binary/div_underflow{e}", "div", [rand("f32", 1000, e=e), rand("f32", 1000, e=-e)])
    suite.case("binary/add_subnormal", "add", ["f32 4 bits:007fffff000000010080000080800000", "f32 4 bits:0000000180000001807fffff007fffff"])
    suite.case("binary/sub_subnormal", "sub", ["f32 3 bits:0080000100ffffff80800001", "f32 3 bits:0080000000800000807fffff"])
    suite.case("binary/div_by_zero", "div", ["f32 4 bits:3f800000bf80000000000000ffc12345", "f32 - bits:80000000"])
    halves = operand("f32", (33,), hexes("f32", [float_bits(n / 2) for n in range(-16, 17)]))
    bases = [sign * base for base in (0.5, 1.0, 1.5, 3.0) for sign in (1, -1)]
    suite.case("binary/pow_integers", "pow", [operand("f32", (8, 1), hexes("f32", map(float_bits, bases))), halves])
    # Powers that are moderate numbers, and those at the ends of the range.
    suite.case("binary/pow_moderate", "pow", [operand("f32", (1001,), hexes("f32", range(0x3F000000, 0x3F000000 + 1001 * 16381, 16381))),
                                              operand("f32", (1001,), hexes("f32", range(0x40000000, 0x40000000 + 1001 * 52001, 52001)))])
    suite.case("binary/pow_ends", "pow", [operand("f32", (), hexes("f32", [float_bits(2.0)])),
                                          operand("f32", (602,), hexes("f32", [float_bits(n / 2 + 1 / 64) for n in range(-301, 301)]))])
    suite.case("binary/div_thirds", "div", ["f32 - bits:3f800000", "f32 4 bits:40400000414000003dcccccd00000003"])


def near(threshold, before=31, count=64):
    return operand("f32", (count,), hexes("f32", range(threshold - before, threshold - before + count)))


def spread(threshold, step=9, count=1001):
    """A long run across a threshold, every `step`-th pattern."""
    return operand("f32", (count,), hexes("f32", range(threshold - step * (count // 2), threshold + step * (count // 2) + 1, step)))


def unary(suite):
    forms = [(op, {}, op) for op in UNARY]
    forms += [("gelu", {"form": "erf"}, "gelu_erf"), ("gelu", {"form": "tanh"}, "gelu_tanh"), ("scale", {"alpha": -1.7}, "scale"),
              ("clamp", {"min": -1.0, "max": 0.5}, "clamp")]
    for op, attrs, name in forms:
        for dtype in FLOATS:
            suite.case(f"unary/{name}_{dtype}_specials", op, [operand(dtype, (64,), hexes(dtype, specials(dtype)))], **attrs)
            suite.case(f"unary/{name}_{dtype}_wild", op, [wild(dtype, 5003)], **attrs)
            suite.case(f"unary/{name}_{dtype}_rand", op, [rand(dtype, 3, 7)], **attrs)
            suite.case(f"unary/{name}_{dtype}_rand_3", op, [rand(dtype, 1501, e=3)], **attrs)
        for e in (-20, 0, 1, 2, 4, 5, 6, 7):
            suite.case(f"unary/{name}_magnitude{e}", op, [rand("f32", 2003, e=e)], **attrs)
        suite.case(f"unary/{name}_rank_0", op, [rand("f32")], **attrs)
        suite.case(f"unary/{name}_zero_size", op, [rand("f32", 2, 0, 3)], **attrs)
        suite.case(f"unary/{name}_rank_8", op, [rand("f32", 1, 2, 1, 2, 1, 2, 1, 3)], **attrs)
        for where, threshold in THRESHOLDS.get(op, {}).items():
            suite.case(f"unary/{name}_near_{where}", op, [near(threshold)], **attrs)
    for op, where in (("exp", "overflow"), ("exp", "subnormal"), ("tanh", "switch"), ("log", "sqrt_half")):
        suite.case(f"unary/{op}_around_{where}", op, [spread(THRESHOLDS[op][where])])
    suite.case("unary/gelu_around_switch", "gelu", [spread(THRESHOLDS["gelu"]["switch"])])
    for op in ("exp", "tanh", "sigmoid", "relu"):
        for n in (1, 3, 7, 15, 17, 31, 33, 63, 67):
            suite.case(f"unary/{op}_n{n}", op, [rand("f32", n, e=2)])
        suite.case(f"unary/{op}_large", op, [rand("f32", 100003, e=4)])
    suite.case("unary/gelu_default", "gelu", [rand("f32", 9, e=1)])
    suite.case("unary/scale_default", "scale", [wild("f32", 40)])
    suite.case("unary/clamp_default", "clamp", [wild("f32", 40)])
    suite.case("unary/round_ties", "round", [operand("f32", (20,), hexes("f32", [float_bits(n / 2) for n in range(-10, 10)]))])
    inf, nan = float("inf"), float("nan")
    bounds = {"low": (0.0, inf), "high": (-inf, -0.0), "zeros": (-0.0, 0.0), "crossed": (1.0, -1.0), "crossed_zeros": (0.0, -0.0),
              "nan_low": (nan, 1.0), "nan_high": (-1.0, nan), "infinite": (inf, inf)}
    for dtype in FLOATS:
        for name, (low, high) in bounds.items():
            suite.case(f"unary/clamp_{dtype}_{name}", "clamp", [operand(dtype, (64,), hexes(dtype, specials(dtype)))], min=low, max=high)
    for dtype in FLOATS:
        for alpha in (0.0, -0.0, 0.1, 2.0**-140, 2.0**100, float("inf")):
            name = str(alpha).replace("+", "")
            suite.case(f"unary/scale_{dtype}_{name}", "scale", [operand(dtype, (64,), hexes(dtype, specials(dtype)))], alpha=alpha)


def errors(suite):
    def bad(stem, name, op, status, operands, **attrs):
        suite.case(f"{stem}/error_{op}_{name}", op, operands, expect=status, **attrs)

    x = rand("f32", 2, 3)
    for op in BINARY:
        bad("binary", "missing", op, "invalid_argument", [x])
        bad("binary", "none", op, "invalid_argument", ["none", x])
        bad("binary", "surplus", op, "invalid_argument", [x, x, x])
        if op not in WHOLE:
            bad("binary", "integers", op, "dtype_mismatch", ["i32 3 ids:1:9", "i32 3 ids:1:9"])
        bad("binary", "f64", op, "dtype_mismatch", ["f64 1 fill:3ff0000000000000", "f64 1 fill:3ff0000000000000"])
        bad("binary", "mixed", op, "dtype_mismatch", [x, rand("f16", 2, 3)])
        bad("binary", "shapes", op, "shape_mismatch", [x, rand("f32", 2)])
        bad("binary", "attribute", op, "invalid_argument", [x, x], alpha=1.0)
    bad("binary", "zero_and_two", "add", "shape_mismatch", [rand("f32", 0), rand("f32", 2)])
    bad("binary", "mixed_half", "mul", "dtype_mismatch", [rand("bf16", 3), rand("f16", 3)])
    bad("binary", "mixed_index", "sub", "dtype_mismatch", [rand("f32", 3), "u32 3 ids:1:9"])
    for op in (*UNARY, "scale", "gelu", "clamp"):
        bad("unary", "missing", op, "invalid_argument", [])
        bad("unary", "surplus", op, "invalid_argument", [x, x])
        if op not in WHOLE:
            bad("unary", "integers", op, "dtype_mismatch", ["i32 3 ids:1:9"])
        bad("unary", "f64", op, "dtype_mismatch", ["f64 1 fill:3ff0000000000000"])
        bad("unary", "attribute", op, "invalid_argument", [x], axis=0)
    bad("unary", "alpha", "exp", "invalid_argument", [x], alpha=1.0)
    bad("unary", "form", "gelu", "invalid_argument", [x], form="sigmoid")
    bad("unary", "i64", "relu", "dtype_mismatch", ["i64 3 ids:1:9"])
