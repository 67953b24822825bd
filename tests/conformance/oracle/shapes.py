"""docs/operations.md as checks: the result's dtype and shape, or the error status, of a call.

Order of the checks: operand count, dtypes, then shapes and attributes."""

import exact_functions
from tensors import DOUBLES, DTYPES, FLOATS, INDEXES

MAX_RANK = 8


class Rejected(Exception):
    def __init__(self, status, why):
        super().__init__(f"{status}: {why}")
        self.status = status


def invalid(why):
    raise Rejected("invalid_argument", why)


def bad_dtype(why):
    raise Rejected("dtype_mismatch", why)


def bad_shape(why):
    raise Rejected("shape_mismatch", why)


ACTIVATIONS = ("none", "relu", "sigmoid", "tanh", "gelu_tanh", "gelu_erf", "silu")
PRECISIONS = ("f32", "fixed24", "fixed16")
UNARY = tuple(exact_functions.UNARY)
BINARY = tuple(exact_functions.BINARY)
AXIS_ALL = {"axis": ("axis", "all"), "keepdim": ("flag", "0")}
AXES_ALL = {"axis": ("axis", None), "axes": ("ints", None), "keepdim": ("flag", "0")}
VALUES = ("sum", "mean", "max", "min", "prod")
PLACES = ("argmax", "argmin")
QUANTIZED = ("quantized_matmul", "dequantize")
# What a block of a format takes: bytes, elements.
BLOCKS = {"q8_0": (34, 32), "q4_0": (18, 32), "q4_1": (20, 32), "q5_0": (22, 32), "q5_1": (24, 32),
          "q4_k": (144, 256), "q5_k": (176, 256), "q6_k": (210, 256)}
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")

# Also defined on integers and bools.
WHOLE = ("neg", "abs", "add", "sub", "mul", "div", "maximum", "minimum", "sum", "prod", "max", "min", "argmax", "argmin")


def is_whole(op, dtype):
    """Whether the operation computes on integers or bools, if its first operand has this dtype."""
    return op in WHOLE and dtype not in FLOATS + DOUBLES


# op: (required operands, optional operands, attributes: kind or words, default)
OPS = {
    "matmul": (2, 2, {"trans_a": ("flag", "0"), "trans_b": ("flag", "0"), "alpha": ("f32", "0x3f800000"),
                      "beta": ("f32", "0x00000000"), "activation": (ACTIVATIONS, "none"),
                      "precision": (PRECISIONS, "f32")}),
    "dot": (2, 0, {}),
    "scale": (1, 0, {"alpha": ("f32", "0x3f800000")}),
    "clamp": (1, 0, {"min": ("f32", "0xff800000"), "max": ("f32", "0x7f800000")}),
    "gelu": (1, 0, {"form": (("erf", "tanh"), "erf")}),
    "softmax": (1, 0, {"axis": ("int", "-1")}),
    **{op: (1, 0, AXES_ALL) for op in VALUES},
    **{op: (1, 0, {**AXIS_ALL, "dtype": (INDEXES, "i64")}) for op in PLACES},
    "layernorm": (1, 3, {"eps": ("f32", "0x3727c5ac")}),
    "rmsnorm": (1, 2, {"eps": ("f32", "0x3727c5ac")}),
    "attention": (3, 1, {"causal": ("flag", "0"), "scale": ("f32", "0x00000000"), "precision": (PRECISIONS, "f32")}),
    "embedding": (2, 0, {}),
    "transpose": (1, 0, {"perm": ("ints", None)}),
    "concat": (1, 1 << 30, {"axis": ("int", "0")}),
    "slice": (1, 0, {"start": ("ints", ""), "stop": ("ints", ""), "step": ("ints", "")}),
    "pad": (2, 0, {"before": ("ints", ""), "after": ("ints", ""), "step": ("ints", "")}),
    "gather": (2, 0, {"axis": ("int", "-1")}),
    "cast": (1, 0, {"dtype": (DTYPES, "f32")}),
    **{op: (1, 0, {}) for op in UNARY},
    **{op: (2, 0, {}) for op in BINARY},
    **{op: (2, 0, {}) for op in COMPARISONS},
    "where": (3, 0, {}),
    "quantized_matmul": (2, 0, {"format": (tuple(BLOCKS), None)}),
    "dequantize": (1, 0, {"format": (tuple(BLOCKS), None)}),
    "rope": (3, 0, {"interleaved": ("flag", "0")}),
    "cumsum": (1, 0, {"axis": ("int", "-1")}),
    "topk": (1, 0, {"k": ("int", "1"), "axis": ("int", "-1")}),
    "argtopk": (1, 0, {"k": ("int", "1"), "axis": ("int", "-1"), "dtype": (INDEXES, "i64")}),
}
# ffn has an optional operand between required ones: x, w1, b1?, w2, b2?
REQUIRED_AT = {"ffn": (0, 1, 3)}
OPS["ffn"] = (4, 1, {"activation": (ACTIVATIONS, "relu"), "precision": (PRECISIONS, "f32")})


def read_attribute(kind, text):
    try:
        if isinstance(kind, tuple):
            if text not in kind:
                invalid("a word is missing" if text is None else f"unknown word {text}")
            return text
        if kind == "flag":
            return {"0": 0, "1": 1}[text]
        if kind == "f32":
            assert text.startswith("0x") and len(text) == 10
            return int(text, 16)
        if kind == "ints":
            return None if text is None else [int(word) for word in text.split(",") if word]
        if kind == "axis" and text in (None, "all"):
            return text
        return int(text)
    except (KeyError, ValueError, AssertionError):
        invalid(f"bad value {text}")


def attributes(op, given):
    """Typed values with defaults."""
    known = OPS[op][2]
    for name in given:
        if name not in known:
            invalid(f"{op} has no attribute {name}")
    return {name: read_attribute(kind, given.get(name, default)) for name, (kind, default) in known.items()}


def check_operands(op, operands):
    required, optional, _ = OPS[op]
    if len(operands) > required + optional:
        invalid("surplus operand")
    for position in REQUIRED_AT.get(op, range(required)):
        if position >= len(operands) or operands[position] is None:
            invalid(f"operand {position} is missing")
    dtypes = [operand[0] for operand in operands if operand]
    if op in ("embedding", "gather"):
        if dtypes[1] not in INDEXES:
            bad_dtype("ids")
        return
    if op in ("transpose", "cast", "slice"):
        return
    if op in QUANTIZED:
        for dtype, needed in zip(reversed(dtypes), ("u8", "f32")):
            if dtype != needed:
                bad_dtype(f"{dtype} in the place of {needed}")
        return
    if op == "where":
        if dtypes[0] != "bool":
            bad_dtype("condition")
        dtypes = dtypes[1:]
    if len(set(dtypes)) != 1:
        bad_dtype("operands differ")
    if op in ("concat", "pad", "where") + COMPARISONS:
        return
    if dtypes[0] not in FLOATS and not is_whole(op, dtypes[0]):
        bad_dtype("not a floating dtype")


def broadcast(*shapes):
    rank = max(len(shape) for shape in shapes)
    result = []
    for position in range(-rank, 0):
        sizes = {shape[position] for shape in shapes if len(shape) >= -position} - {1}
        if len(sizes) > 1:
            bad_shape(f"{shapes} do not broadcast")
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def broadcast_to(shape, target):
    if broadcast(shape, target) != tuple(target):
        bad_shape(f"{shape} does not broadcast to {target}")


def axis_of(axis, rank):
    if not -rank <= axis < rank:
        invalid(f"axis {axis} out of range")
    return axis % rank


def at_least(rank, shape, what):
    if len(shape) < rank:
        bad_shape(f"{what} has rank {len(shape)}")


def same(what, *values):
    if len(set(values)) != 1:
        bad_shape(f"{what} differ: {values}")


def matmul_shape(attrs, a, b, c, bias):
    at_least(1, a, "a")
    at_least(1, b, "b")
    row, column = len(a) == 1, len(b) == 1
    if (row and attrs["trans_a"]) or (column and attrs["trans_b"]):
        invalid("the transpose flag of a rank-1 operand")
    a, b = ((1,) + a if row else a), (b + (1,) if column else b)
    m, k = reversed(a[-2:]) if attrs["trans_a"] else a[-2:]
    k2, n = reversed(b[-2:]) if attrs["trans_b"] else b[-2:]
    same("K", k, k2)
    shape = broadcast(a[:-2], b[:-2]) + (() if row else (m,)) + (() if column else (n,))
    if bias is not None:
        same("bias", bias, (n,))
    if c is not None:
        broadcast_to(c, shape)
    elif attrs["beta"] & 0x7FFFFFFF:
        invalid("c is missing")
    return shape


def attention_shape(q, k, v, mask):
    same("ranks", len(q), len(k), len(v))
    if not 2 <= len(q) <= MAX_RANK:
        bad_shape("rank")
    same("D", q[-1], k[-1])
    same("Sk", k[-2], v[-2])
    if len(q) > 2:
        same("leading dimensions", q[:-3], k[:-3], v[:-3])
        same("Hkv", k[-3], v[-3])
        if k[-3] == 0 and q[-3] != 0 or k[-3] and q[-3] % k[-3]:
            bad_shape("Hq is no multiple of Hkv")
    if mask is not None:
        broadcast_to(mask, q[:-1] + (k[-2],))
    return q[:-1] + (v[-1],)


def ffn_shape(x, w1, b1, w2, b2):
    at_least(1, x, "x")
    same("ranks of w1, w2", len(w1), len(w2), 2)
    same("D", x[-1], w1[0])
    same("H", w1[1], w2[0])
    if b1 is not None:
        same("b1", b1, w1[1:])
    if b2 is not None:
        same("b2", b2, w2[1:])
    return x[:-1] + w2[1:]


def reduced_axes(attrs, rank):
    """The axes that are reduced, ascending."""
    axis, axes = attrs["axis"], attrs.get("axes")
    if axes is not None:
        if axis is not None:
            invalid("axis and axes")
        axes = [axis_of(axis, rank) for axis in axes]
        if not axes or len(set(axes)) != len(axes):
            invalid("axes")
        return sorted(axes)
    return list(range(rank)) if axis in (None, "all") else [axis_of(axis, rank)]


def reduced_shape(op, attrs, x):
    axes = reduced_axes(attrs, len(x))
    kept = [size for axis, size in enumerate(x) if axis not in axes]
    if 0 in [x[axis] for axis in axes] and 0 not in kept and op not in ("sum", "mean", "prod"):
        invalid("an extreme of nothing")
    if attrs["keepdim"]:
        return tuple(1 if axis in axes else size for axis, size in enumerate(x))
    return tuple(kept)


def transposed_shape(attrs, x):
    perm = attrs["perm"]
    if perm is None:
        return x[::-1]
    if len(perm) != len(x):
        invalid("perm has another length than the rank")
    perm = [axis_of(axis, len(x)) for axis in perm]
    if len(set(perm)) != len(perm):
        invalid("perm repeats an axis")
    return tuple(x[axis] for axis in perm)


def concat_shape(attrs, shapes):
    at_least(1, shapes[0], "operand 0")
    same("ranks", *[len(shape) for shape in shapes])
    axis = axis_of(attrs["axis"], len(shapes[0]))
    same("other dimensions", *[shape[:axis] + shape[axis + 1:] for shape in shapes])
    return shapes[0][:axis] + (sum(shape[axis] for shape in shapes),) + shapes[0][axis + 1:]


def sliced(attrs, x):
    """The indices that are taken of each axis, as Python's own slices have them."""
    lists = [attrs[name] for name in ("start", "stop", "step")]
    if any(len(numbers) > len(x) for numbers in lists):
        invalid("a list is longer than the rank")
    start, stop, step = ([*numbers, *[None] * (len(x) - len(numbers))] for numbers in lists)
    if any(number is not None and number < 1 for number in step):
        invalid("a step below 1")
    return [range(size)[slice(a, b, c)] for size, a, b, c in zip(x, start, stop, step)]


def padding(attrs, x):
    """Elements before and behind each axis, and the distance between neighbours."""
    lists = ((attrs["before"], 0), (attrs["after"], 0), (attrs["step"], 1))
    for numbers, least in lists:
        if len(numbers) > len(x) or any(number < least for number in numbers):
            invalid("before, after or step")
    full = [[*numbers, *[least] * (len(x) - len(numbers))] for numbers, least in lists]
    return list(zip(*full))


def gather_shape(attrs, x, ids):
    at_least(1, x, "x")
    axis = axis_of(attrs["axis"], len(x))
    same("ranks", len(x), len(ids))
    same("other dimensions", x[:axis] + x[axis + 1:], ids[:axis] + ids[axis + 1:])
    return ids


def block_elements(format, size):
    """How many elements the bytes of a row hold."""
    bytes, elements = BLOCKS[format]
    if size % bytes:
        bad_shape(f"{size} bytes are not whole blocks of {bytes}")
    return size // bytes * elements


def quantized_shape(attrs, x, w):
    at_least(1, x, "x")
    same("rank of w", len(w), 2)
    same("K", x[-1], block_elements(attrs["format"], w[1]))
    return x[:-1] + w[:1]


def result(op, operands, given):
    """(dtype, shape) of the call; operands are (dtype, shape) or None; raises Rejected."""
    check_operands(op, operands)
    attrs = attributes(op, given)
    required, optional, _ = OPS[op]
    padded = list(operands) + [None] * (0 if op == "concat" else required + optional - len(operands))
    dtype = padded[0][0]
    shapes = [tuple(operand[1]) if operand else None for operand in padded]
    if any(shape is not None and len(shape) > MAX_RANK for shape in shapes):
        bad_shape("rank above 8")
    x = shapes[0]
    if op == "matmul":
        shape = matmul_shape(attrs, *shapes)
    elif op == "dot":
        same("ranks", len(x), len(shapes[1]), 1)
        same("K", *shapes)
        shape = ()
    elif op in BINARY:
        shape = broadcast(*shapes)
    elif op in COMPARISONS:
        shape, dtype = broadcast(*shapes), "bool"
    elif op == "where":
        shape, dtype = broadcast(*shapes), padded[1][0]
    elif op == "rope":
        at_least(1, x, "x")
        same("the last dimension's halves", x[-1] % 2, 0)
        same("cos and sin", *shapes[1:])
        broadcast_to(shapes[1], x[:-1] + (x[-1] // 2,))
        shape = x
    elif op in ("softmax", "cumsum"):
        at_least(1, x, "x")
        axis_of(attrs["axis"], len(x))
        shape = x
    elif op in ("topk", "argtopk"):
        at_least(1, x, "x")
        axis, dtype = axis_of(attrs["axis"], len(x)), attrs.get("dtype", dtype)
        if not 0 <= attrs["k"] <= x[axis]:
            invalid("k")
        shape = x[:axis] + (attrs["k"],) + x[axis + 1:]
    elif op in VALUES + PLACES:
        shape = reduced_shape(op, attrs, x)
        dtype = attrs.get("dtype", dtype)
    elif op in ("layernorm", "rmsnorm"):
        at_least(1, x, "x")
        for parameter in shapes[1:-1]:
            if parameter is not None:
                same("gamma, beta", parameter, x[-1:])
        if shapes[-1] is not None:
            same("x and residual", x, shapes[-1])
        shape = x
    elif op == "attention":
        shape = attention_shape(*shapes)
    elif op == "ffn":
        shape = ffn_shape(*shapes)
    elif op == "embedding":
        at_least(1, x, "table")
        shape = shapes[1] + x[1:]
    elif op == "transpose":
        shape = transposed_shape(attrs, x)
    elif op == "concat":
        shape = concat_shape(attrs, shapes)
    elif op == "slice":
        shape = tuple(len(taken) for taken in sliced(attrs, x))
    elif op == "pad":
        if shapes[1] and set(shapes[1]) != {1}:
            bad_shape("value has not one element")
        shape = tuple(before + after + (size - 1) * step + 1 if size else before + after
                      for size, (before, after, step) in zip(x, padding(attrs, x)))
    elif op == "gather":
        shape = gather_shape(attrs, *shapes)
    elif op == "quantized_matmul":
        shape = quantized_shape(attrs, *shapes)
    elif op == "dequantize":
        at_least(1, x, "w")
        shape, dtype = x[:-1] + (block_elements(attrs["format"], x[-1]),), "f32"
    elif op == "cast":
        shape, dtype = x, attrs["dtype"]
    else:
        shape = x
    if len(shape) > MAX_RANK:
        bad_shape("rank of the result above 8")
    return dtype, shape
