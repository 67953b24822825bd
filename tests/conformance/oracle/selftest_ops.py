"""Random small calls of every operation for selftest.py: (op, operand tensors, attributes)."""

from math import prod

import shapes
from tensors import BYTES, DTYPES, FLOATS, INDEXES, WIDTH, Tensor, make

MIXES = ("rand", "rand", "small", "wild")


def values(r, dtype, shape):
    """A tensor with ordinary values, values of many magnitudes, or anything at all."""
    if dtype == "bool":
        return Tensor(dtype, shape, [r.getrandbits(1) for _ in range(prod(shape))])
    if dtype not in FLOATS:
        return Tensor(dtype, shape, [r.getrandbits(8 * WIDTH[dtype]) for _ in range(prod(shape))])
    mix = r.choice(MIXES)
    seed = r.getrandbits(64)
    if mix == "wild":
        return make(dtype, shape, f"wild:{seed}")
    if mix == "rand":
        return make(dtype, shape, f"rand:{seed}:{r.choice((0, 0, 2, 6, -3))}")
    # underflow country for products, with zeros of both signs
    data = list(make(dtype, shape, f"rand:{seed}:{-4 if dtype == 'f16' else -63}").data)
    for i in range(len(data)):
        if r.random() < 0.1:
            data[i] = r.choice((0, 1 << (8 * WIDTH[dtype] - 1)))
    return Tensor(dtype, shape, data)


def size(r, most=7):
    return r.randrange(0 if r.random() < 0.05 else 1, most + 1)


def shape(r, ranks, most=5):
    return tuple(size(r, most) for _ in range(r.choice(ranks)))


def faded(r, full):
    """A shape that broadcasts to `full`."""
    kept = [dim if r.random() < 0.7 else 1 for dim in full]
    return tuple(kept[r.randrange(len(kept) + 1) if r.random() < 0.3 else 0:])


def flag(r):
    return str(r.getrandbits(1))


def number(r):
    return r.choice(("0x3f800000", "0x00000000", "0xbf800000", "0x3f000000", "0x40490fdb", "0x1e3ce508", "0x7f000000"))


# As often f32 as the others.
PRECISIONS = ("f32", "f32", "fixed24", "fixed16")
ACTIVATIONS = ("none", "relu", "sigmoid", "tanh", "gelu_tanh", "gelu_erf", "silu")


def matmul(r, dtype):
    m, n = size(r), size(r)
    k = r.choice((0, 1, 2, 5, 16, 255, 256, 257, 520)) if r.random() < 0.6 else size(r, 20)
    if k > 20:
        m, n = min(m, 2), min(n, 2)
    batch = shape(r, (0, 0, 1, 2), 2)
    ta, tb = flag(r), flag(r)
    a = faded(r, batch) + ((k, m) if ta == "1" else (m, k))
    b = batch + ((n, k) if tb == "1" else (k, n))
    if r.random() < 0.15:
        a, ta = (k,), "0"
    if r.random() < 0.15:
        b, tb, n = (k,), "0", 1
    result = ((batch if len(b) > 1 else a[:-2]) if len(a) > 1 or len(b) > 1 else ()) + \
        ((m,) if len(a) > 1 else ()) + ((n,) if len(b) > 1 else ())
    beta = number(r)
    c = values(r, dtype, faded(r, result)) if beta not in ("0x00000000",) or r.random() < 0.2 else None
    bias = values(r, dtype, (n,)) if r.random() < 0.5 else None
    attrs = {"trans_a": ta, "trans_b": tb, "alpha": number(r), "beta": beta, "activation": r.choice(ACTIVATIONS),
             "precision": r.choice(PRECISIONS)}
    return [values(r, dtype, a), values(r, dtype, b), c, bias], attrs


def attention(r, dtype):
    groups, hkv, batch = r.choice((1, 1, 2, 3)), r.choice((1, 2)), shape(r, (0, 1, 2), 2)
    sq, sk = r.randrange(1, 4), r.choice((1, 2, 5, 63, 64, 65, 70, 130))
    d, dv = r.choice((1, 3, 8)), r.choice((1, 2, 5))
    lead_q, lead_k = batch + (groups * hkv,), batch + (hkv,)
    if r.random() < 0.25:
        lead_q = lead_k = ()
    if r.random() < 0.1:
        d = 260
    operands = [values(r, dtype, lead_q + (sq, d)), values(r, dtype, lead_k + (sk, d)), values(r, dtype, lead_k + (sk, dv))]
    if r.random() < 0.5:
        mask = values(r, dtype, faded(r, lead_q + (sq, sk)))
        data = list(mask.data)
        hidden = {"f32": 0xFF800000, "f16": 0xFC00, "bf16": 0xFF80}[dtype]
        share = r.choice((0, 0.3, 0.97))
        operands.append(Tensor(dtype, mask.shape, [hidden if r.random() < share else element for element in data]))
    scale = r.choice(("0x00000000", "0x3f000000", "0xbf800000"))
    return operands, {"causal": flag(r), "scale": scale, "precision": r.choice(PRECISIONS)}


def ffn(r, dtype):
    d, h, e = size(r), size(r), size(r)
    w = [values(r, dtype, dims) for dims in ((d, h), (h,), (h, e), (e,))]
    w[1] = w[1] if r.random() < 0.5 else None
    w[3] = w[3] if r.random() < 0.5 else None
    return [values(r, dtype, shape(r, (0, 1, 2), 3) + (d,)), *w], \
        {"activation": r.choice(ACTIVATIONS), "precision": r.choice(PRECISIONS)}


def reduction(r, dtype, op):
    dims = shape(r, (0, 1, 2, 3)) if r.random() < 0.8 else (r.choice((1025, 1100, 40)),)
    if op in ("max", "min") + shapes.PLACES:
        dims = tuple(max(1, dim) for dim in dims)
    attrs = {"keepdim": flag(r)}
    if dims and op in shapes.VALUES and r.random() < 0.4:
        axes = [axis - r.choice((0, len(dims))) for axis in r.sample(range(len(dims)), r.randrange(1, len(dims) + 1))]
        attrs["axes"] = ",".join(map(str, axes))
    else:
        attrs["axis"] = "all" if not dims or r.random() < 0.3 else str(r.randrange(-len(dims), len(dims)))
    if op in shapes.PLACES:
        attrs["dtype"] = r.choice(INDEXES)
    return [values(r, dtype, dims)], attrs


def norm(r, dtype, op):
    dims = shape(r, (0, 1, 2), 3) + (r.choice((1, 2, 5, 31, 33, 64, 1030)),)
    operands = [values(r, dtype, dims)]
    operands.append(values(r, dtype, dims[-1:]) if r.random() < 0.6 else None)
    if op == "layernorm":
        operands.append(values(r, dtype, dims[-1:]) if r.random() < 0.6 else None)
    if r.random() < 0.5:
        operands.append(values(r, dtype, dims))
    return operands, {"eps": r.choice(("0x3727c5ac", "0x00000000", "0x3f800000"))}


def softmax(r, dtype):
    dims = shape(r, (1, 2, 3)) if r.random() < 0.9 else (1030,)
    return [values(r, dtype, dims)], {"axis": str(r.randrange(-len(dims), len(dims)))}


def topk(r, dtype, op):
    (x,), attrs = softmax(r, dtype)
    if r.random() < 0.5 and x.data:
        x = Tensor(dtype, x.shape, [r.choice(x.data[:3]) for _ in x.data])
    attrs["k"] = str(r.randrange(x.shape[int(attrs["axis"])] + 1))
    if op == "argtopk":
        attrs["dtype"] = r.choice(INDEXES)
    return [x], attrs


def rope(r, dtype):
    pairs = shape(r, (1, 2, 3, 4), 4)
    tables = faded(r, pairs)
    operands = [values(r, dtype, dims) for dims in (pairs[:-1] + (2 * pairs[-1],), tables, tables)]
    return operands, {"interleaved": flag(r)}


def embedding(r):
    rows = size(r) or 1
    ids = shape(r, (0, 1, 2), 4)
    kind = r.choice(INDEXES)
    return [values(r, r.choice(DTYPES), (rows,) + shape(r, (0, 1, 2), 4)),
            Tensor(kind, ids, [r.randrange(rows) for _ in range(prod(ids))])], {}


def transpose(r):
    dims = shape(r, (0, 1, 2, 3, 4, 5), 4)
    perm = list(range(len(dims)))
    r.shuffle(perm)
    attrs = {"perm": ",".join(map(str, perm))} if perm and r.random() < 0.8 else {}
    return [values(r, r.choice(DTYPES), dims)], attrs


def concat(r):
    dims, dtype = list(shape(r, (1, 2, 3), 4)), r.choice(DTYPES)
    axis = r.randrange(len(dims))
    parts = []
    for _ in range(r.randrange(1, 5)):
        dims[axis] = r.randrange(4)
        parts.append(values(r, dtype, tuple(dims)))
    return parts, {"axis": str(axis - len(dims) if r.random() < 0.5 else axis)}


def sliced(r):
    dims = shape(r, (0, 1, 2, 3, 4), 5)
    given = lambda low, high: ",".join(str(r.randrange(low, high)) for _ in range(r.randrange(len(dims) + 1)))
    return [values(r, r.choice(DTYPES), dims)], {"start": given(-7, 7), "stop": given(-7, 7), "step": given(1, 4)}


def padded(r):
    dims, dtype = shape(r, (0, 1, 2, 3), 4), r.choice(DTYPES)
    given = lambda: ",".join(str(r.randrange(3)) for _ in range(r.randrange(len(dims) + 1)))
    steps = ",".join(str(1 + r.randrange(3)) for _ in range(r.randrange(len(dims) + 1)))
    operands = [values(r, dtype, dims), values(r, dtype, (1,) * r.randrange(3))]
    return operands, {"before": given(), "after": given(), "step": steps}


def gathered(r):
    dims = [1 + size for size in shape(r, (1, 2, 3), 4)]
    axis = r.randrange(len(dims))
    index = dims[:axis] + [r.randrange(5)] + dims[axis + 1:]
    ids = [r.randrange(dims[axis]) for _ in range(prod(index))]
    return [values(r, r.choice(DTYPES), tuple(dims)), Tensor(r.choice(INDEXES), tuple(index), ids)], {"axis": str(axis)}


def blocks(r):
    """Blocks of any bytes; the factors of most are made ordinary."""
    form = r.choice(tuple(shapes.BLOCKS))
    bytes, elements = shapes.BLOCKS[form]
    count, n, tame = size(r, 4 if elements == 256 else 20), size(r, 4), r.random() < 0.7
    data = values(r, "u8", (n, count * bytes)).data
    factors = (209,) if form == "q6_k" else (1, 3) if form in ("q4_1", "q5_1", "q4_k", "q5_k") else (1,)
    for start in range(0, len(data) if tame else 0, bytes):
        for at in factors:  # the high byte of an f16
            data[start + at] = data[start + at] & 0x83 | 0x20
    return form, count * elements, Tensor("u8", (n, count * bytes), data)


def quantized(r):
    form, k, w = blocks(r)
    lead = shape(r, (0, 1, 2), 3)
    if r.random() < 0.2:
        x = make("f32", lead + (k,), f"rand:{r.getrandbits(64)}:{r.choice((-90, -89, 100))}")
    else:
        x = values(r, "f32", lead + (k,))
    return [x, w], {"format": form}


def integers(r, op):
    """A call on integers or bools."""
    dtype = r.choice(INDEXES + BYTES)
    if op in shapes.VALUES + shapes.PLACES:
        (x,), attrs = reduction(r, "f32", op)
        return [values(r, dtype, x.shape)], attrs
    full = shape(r, (0, 1, 2, 3, 4))
    pair = [values(r, dtype, full), values(r, dtype, faded(r, full))]
    return pair[:shapes.OPS[op][0]], {}


def operation_cases(r, rounds=90):
    for index in range(rounds):
        dtype = FLOATS[index % 3]
        yield "matmul", *matmul(r, dtype)
        yield "matmul", *matmul(r, dtype)
        k = (size(r, 600),)
        yield "dot", [values(r, dtype, k), values(r, dtype, k)], {}
        for op in shapes.BINARY:
            full = shape(r, (0, 1, 2, 3, 4))
            pair = [values(r, dtype, full), values(r, dtype, faded(r, full))]
            yield op, pair[::-1] if r.random() < 0.5 else pair, {}
        for op in shapes.COMPARISONS:
            full, kind = shape(r, (0, 1, 2, 3, 4)), r.choice(DTYPES)
            pair = [values(r, kind, full), values(r, kind, faded(r, full))]
            if r.random() < 0.5 and pair[0].shape == pair[1].shape:
                pair[1] = Tensor(kind, full, [r.choice(both) for both in zip(*(x.data for x in pair))])
            yield op, pair[::-1] if r.random() < 0.5 else pair, {}
        full, kind = shape(r, (0, 1, 2, 3, 4)), r.choice(DTYPES)
        yield "where", [values(r, "bool", faded(r, full)), values(r, kind, full), values(r, kind, faded(r, full))], {}
        for op in shapes.WHOLE:
            yield op, *integers(r, op)
        for op in shapes.UNARY:
            yield op, [values(r, dtype, shape(r, (0, 1, 2)))], {}
        yield "scale", [values(r, dtype, shape(r, (0, 1, 2)))], {"alpha": number(r)}
        yield "clamp", [values(r, dtype, shape(r, (0, 1, 2)))], {"min": number(r), "max": number(r)}
        yield "gelu", [values(r, dtype, shape(r, (0, 1, 2)))], {"form": r.choice(("erf", "tanh"))}
        yield "softmax", *softmax(r, dtype)
        yield "cumsum", *softmax(r, dtype)
        yield "rope", *rope(r, dtype)
        for op in ("topk", "argtopk"):
            yield op, *topk(r, dtype, op)
        for op in shapes.VALUES + shapes.PLACES:
            yield op, *reduction(r, dtype, op)
        for op in ("layernorm", "rmsnorm"):
            yield op, *norm(r, dtype, op)
        yield "attention", *attention(r, dtype)
        yield "attention", *attention(r, dtype)
        yield "ffn", *ffn(r, dtype)
        yield "quantized_matmul", *quantized(r)
        form, _, w = blocks(r)
        yield "dequantize", [w], {"format": form}
        yield "embedding", *embedding(r)
        yield "transpose", *transpose(r)
        yield "slice", *sliced(r)
        yield "pad", *padded(r)
        yield "gather", *gathered(r)
        yield "concat", *concat(r)
        yield "cast", [values(r, r.choice(DTYPES), shape(r, (0, 1, 2)))], {"dtype": r.choice(DTYPES)}
