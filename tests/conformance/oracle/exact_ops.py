"""Every operation in exact arithmetic, for small sizes: lists of bit patterns in, a list of bit patterns out.

Elements are addressed by multi-index, slowly and obviously; oracle.c walks strides instead.
"""

from itertools import product
from math import prod

import exact_blocks
import exact_fixed
import shapes
from exact import (
    INF, NAN, NEG_INF, NEG_ZERO, ONE, SIGN, ZERO,
    STORED_FLOATS, add, bits_of_int, canonical, cast, div, fmaz, from_int, int_of_bits, is_zero, mul, narrow, plus_zero, sqrt, sub, widen,
)
from exact_functions import ACTIVATIONS, BINARY, GELU, UNARY, clamp, exp, rsqrt, signed32


class View:
    """A tensor read by multi-index; indices are broadcast: surplus leading ones dropped, size-1 axes read at 0."""

    def __init__(self, shape, data):
        self.shape, self.data = tuple(shape), data

    def __getitem__(self, index):
        rank = len(self.shape)
        index = index[len(index) - rank:] if rank else ()
        at = 0
        for position, size in zip(index, self.shape):
            at = at * size + (0 if size == 1 else position)
        return self.data[at]


def indices(shape):
    return product(*(range(size) for size in shape))


def floats(tensor):
    return View(tensor.shape, [widen(tensor.dtype, element) for element in tensor.data])


# Reductions of a list


def chain(pairs):
    p = ZERO
    for a, b in pairs:
        p = fmaz(a, b, p)
    return p


def m_total(a, b):
    pairs = list(zip(a, b))
    partial = [chain(pairs[k:k + 256]) for k in range(0, len(pairs), 256)]
    if not partial:
        return ZERO
    t = partial[0]
    for p in partial[1:]:
        t = fmaz(p, ONE, t)
    return plus_zero(t)


def sum_of(x):
    if len(x) > 1024:
        return sum_of([sum_of(x[i:i + 1024]) for i in range(0, len(x), 1024)])
    lanes = [ZERO] * 32
    for i, element in enumerate(x):
        lanes[i % 32] = add(lanes[i % 32], element)
    s = 16
    while s:
        for lane in range(s):
            lanes[lane] = add(lanes[lane], lanes[lane + s])
        s //= 2
    return plus_zero(lanes[0])


def prod_of(x):
    if len(x) > 1024:
        return prod_of([prod_of(x[i:i + 1024]) for i in range(0, len(x), 1024)])
    lanes = [ONE] * 32
    for i, element in enumerate(x):
        lanes[i % 32] = mul(lanes[i % 32], element)
    s = 16
    while s:
        for lane in range(s):
            lanes[lane] = mul(lanes[lane], lanes[lane + s])
        s //= 2
    return canonical(lanes[0])


def mean_of(x):
    return div(sum_of(x), from_int(len(x)))


def max_key(a):
    """NaN above everything, then the numeric order with -0 below +0."""
    a = canonical(a)
    return -1 - (a ^ SIGN) if a & SIGN else a


def max_of(x):
    return canonical(max(x, key=max_key))


def argmax_of(x):
    keys = [max_key(element) for element in x]
    assert all(key == signed32(canonical(e) ^ (0x7FFFFFFF if canonical(e) & SIGN else 0)) for key, e in zip(keys, x))
    return keys.index(max(keys))


def min_key(a):
    """NaN above everything, then the numeric order backwards with +0 below -0: the largest key is the minimum's."""
    a = canonical(a)
    return max_key(a) if a == NAN else -1 - max_key(a)


def min_of(x):
    return canonical(max(x, key=min_key))


def argmin_of(x):
    keys = [min_key(element) for element in x]
    return keys.index(max(keys))


# Operations; each takes the operand tensors, typed attributes and the result's shape


def op_unary(function):
    return lambda attrs, shape, x: [function(element) for element in floats(x).data]


def op_binary(function):
    def run(attrs, shape, a, b):
        a, b = floats(a), floats(b)
        return [function(a[index], b[index]) for index in indices(shape)]
    return run


def product_of(precision):
    """The product of a row and a column."""
    if precision == "f32":
        return m_total
    lines = {}  # an operand's lines are cut once

    def cut_line(line):
        key = tuple(line)
        if key not in lines:
            lines[key] = exact_fixed.Line(precision, line)
        return lines[key]
    return lambda row, column: exact_fixed.total(cut_line(row), cut_line(column))


def op_matmul(attrs, shape, a, b, c, bias):
    row, column = len(a.shape) == 1, len(b.shape) == 1
    a, b = floats(a), floats(b)
    if row:
        a = View((1,) + a.shape, a.data)
    if column:
        b = View(b.shape + (1,), b.data)
    depth = a.shape[-2] if attrs["trans_a"] else a.shape[-1]
    c, bias = c and floats(c), bias and floats(bias)
    product = product_of(attrs["precision"])
    out = []
    for index in indices(shape):
        full = list(index)
        n = 0 if column else full.pop()
        m = 0 if row else full.pop()
        batch = tuple(full)
        a_row = [a[batch + ((k, m) if attrs["trans_a"] else (m, k))] for k in range(depth)]
        b_column = [b[batch + ((n, k) if attrs["trans_b"] else (k, n))] for k in range(depth)]
        t = mul(product(a_row, b_column), attrs["alpha"])
        if not is_zero(attrs["beta"]):
            t = add(t, mul(attrs["beta"], c[index]))
        if bias:
            t = add(t, bias[(n,)])
        out.append(ACTIVATIONS[attrs["activation"]](t))
    return out


def op_dot(attrs, shape, a, b):
    return [canonical(m_total(floats(a).data, floats(b).data))]


def op_quantized_matmul(attrs, shape, x, w):
    depth, size, form = x.shape[-1], w.shape[1], attrs["format"]
    rows = [exact_blocks.cut(form, x.data[r * depth:(r + 1) * depth]) for r in range(prod(shape[:-1]))]
    columns = [exact_blocks.decode(form, w.data[n * size:(n + 1) * size]) for n in range(w.shape[0])]
    return [canonical(exact_blocks.total(row, column)) for row in rows for column in columns]


def op_dequantize(attrs, shape, w):
    return [element for block in exact_blocks.decode(attrs["format"], w.data) for element in block.values()]


def op_scale(attrs, shape, x):
    return [mul(element, attrs["alpha"]) for element in floats(x).data]


def op_clamp(attrs, shape, x):
    return [clamp(element, attrs["min"], attrs["max"]) for element in floats(x).data]


def op_gelu(attrs, shape, x):
    return [GELU[attrs["form"]](element) for element in floats(x).data]


def row_at(x, axis, index):
    return [x[index[:axis] + (i,) + index[axis + 1:]] for i in range(x.shape[axis])]


def softmax_of(x):
    m = max_of(x)
    e = [exp(sub(element, m)) for element in x]
    total = sum_of(e)
    return [div(element, total) for element in e]


def cumsum_of(x):
    y, totals = [], []
    for start in range(0, len(x), 256):
        p = ZERO
        for element in x[start:start + 256]:
            p = add(p, element)
            y.append(p)
        totals.append(p)
    if len(totals) > 1:
        before = cumsum_of(totals)
        y = y[:256] + [add(before[i // 256 - 1], y[i]) for i in range(256, len(y))]
    return y


def greatest(x):
    """The indices of the elements in the order of MAX, the greatest first; equal ones stay as they are."""
    def rank(i):
        u = canonical(x[i])
        return u ^ SIGN if u < SIGN else ~u & ~SIGN
    return sorted(range(len(x)), key=rank, reverse=True)


def op_along(function):
    """Each line along an axis becomes another, of which the first elements are taken."""
    def run(attrs, shape, x):
        x, axis, done = floats(x), attrs["axis"] % len(x.shape), {}
        for index in indices(shape):
            key = index[:axis] + (0,) + index[axis + 1:]
            if key not in done:
                done[key] = function(row_at(x, axis, key))
        return [done[index[:axis] + (0,) + index[axis + 1:]][index[axis]] for index in indices(shape)]
    return run


def op_rope(attrs, shape, x, cos, sin):
    x, cos, sin, half, out = floats(x), floats(cos), floats(sin), shape[-1] // 2, []
    for *row, i in indices(shape):
        if attrs["interleaved"]:
            pair, first, second = i // 2, i // 2 * 2, i // 2 * 2 + 1
        else:
            pair, first, second = i % half, i % half, i % half + half
        row = tuple(row)
        a, b, c, s = x[row + (first,)], x[row + (second,)], cos[row + (pair,)], sin[row + (pair,)]
        out.append(sub(mul(a, c), mul(b, s)) if i == first else add(mul(b, c), mul(a, s)))
    return out


def op_reduce(function, elements=None):
    def run(attrs, shape, x):
        x, rank = (elements or floats)(x), len(x.shape)
        axes = shapes.reduced_axes(attrs, rank)
        kept = [axis for axis in range(rank) if axis not in axes]
        lines = {index: [] for index in indices([x.shape[axis] for axis in kept])}
        for index in indices(x.shape):
            lines[tuple(index[axis] for axis in kept)].append(x[index])
        return [function(line) for line in lines.values()]
    return run


def norm(x, center, gamma, beta, eps):
    if center:
        mu = mean_of(x)
        x = [sub(element, mu) for element in x]
    v = mean_of([mul(element, element) for element in x])
    r = rsqrt(add(v, eps))
    y = [mul(element, r) for element in x]
    if gamma:
        y = [mul(element, g) for element, g in zip(y, floats(gamma).data)]
    if beta:
        y = [add(element, b) for element, b in zip(y, floats(beta).data)]
    return y


def op_norm(center):
    def run(attrs, shape, x, gamma=None, *others):
        beta, residual = [*([] if center else [None]), *others, None, None][:2]
        data, n, out = floats(x).data, x.shape[-1], []
        if residual:
            stored = [narrow(x.dtype, add(*both)) for both in zip(data, floats(residual).data)]
            data = [widen(x.dtype, element) for element in stored]
        for start in range(0, len(data), n or 1):
            out += norm(data[start:start + n], center, gamma, beta, attrs["eps"])
        return out
    return run


def attend(q, keys, values, mask_row, visible, scale, precision):
    """One query: the list of Dv results, or None where every block was skipped."""
    m, l, totals, product = NEG_INF, ZERO, None, product_of(precision)
    cut = precision != "f32" and [exact_fixed.Values(precision, row) for row in values]
    for start in range(0, len(keys), 64):
        block = range(start, min(start + 64, len(keys)))
        x = []
        for j in block:
            if not visible(j):
                x.append(NEG_INF)
                continue
            score = mul(product(q, keys[j]), scale)
            x.append(add(score, mask_row[j]) if mask_row else score)
        m_b = max_of(x)
        if m_b == NEG_INF:
            continue
        p = [exp(sub(element, m_b)) for element in x]
        l_b = sum_of(p)
        if cut:
            o_b = exact_fixed.weighted(precision, p, [cut[j] for j in block], len(values[0]))
        else:
            o_b = [plus_zero(chain(zip(p, (values[j][d] for j in block)))) for d in range(len(values[0]))]
        m_new = max_of([m, m_b])
        a, c = exp(sub(m, m_new)), exp(sub(m_b, m_new))
        l = add(mul(l, a), mul(l_b, c))
        totals = [add(mul(old, a), mul(new, c)) for old, new in zip(totals or [ZERO] * len(o_b), o_b)]
        m = m_new
    return totals and [div(total, l) for total in totals]


def op_attention(attrs, shape, q, k, v, mask):
    (s_q, depth), (s_k, d_v) = q.shape[-2:], v.shape[-2:]
    q, k, v = floats(q), floats(k), floats(v)
    mask = mask and floats(mask)
    scale = attrs["scale"]
    if is_zero(scale):
        scale = div(ONE, sqrt(from_int(depth)))
    out = []
    for head in indices(shape[:-2]):
        kv_head = head
        if head:
            group = q.shape[-3] // k.shape[-3]
            kv_head = head[:-1] + (head[-1] // group,)
        keys = [[k[kv_head + (j, d)] for d in range(depth)] for j in range(s_k)]
        values = [[v[kv_head + (j, d)] for d in range(d_v)] for j in range(s_k)]
        for i in range(s_q):
            query = [q[head + (i, d)] for d in range(depth)]
            mask_row = [mask[head + (i, j)] for j in range(s_k)] if mask else None
            def visible(j):
                return not attrs["causal"] or j <= i + (s_k - s_q)
            out += attend(query, keys, values, mask_row, visible, scale, attrs["precision"]) or [ZERO] * d_v
    return out


def dense(rows, w, b, product):
    columns = [[w[(k, n)] for k in range(w.shape[0])] for n in range(w.shape[1])]
    result = [[product(row, column) for column in columns] for row in rows]
    if b:
        result = [[add(t, b[(n,)]) for n, t in enumerate(row)] for row in result]
    return result


def op_ffn(attrs, shape, x, w1, b1, w2, b2):
    depth, data = x.shape[-1], floats(x).data
    rows = [data[r * depth:(r + 1) * depth] for r in range(prod(x.shape[:-1]))]
    function, product = ACTIVATIONS[attrs["activation"]], product_of(attrs["precision"])
    hidden = [[function(t) for t in row] for row in dense(rows, floats(w1), b1 and floats(b1), product)]
    return [canonical(t) for row in dense(hidden, floats(w2), b2 and floats(b2), product) for t in row]


def op_embedding(attrs, shape, table, ids):
    width = prod(table.shape[1:])
    return [element for i in ids.data for element in table.data[i * width:(i + 1) * width]]


def op_transpose(attrs, shape, x):
    rank = len(x.shape)
    perm = attrs["perm"] if attrs["perm"] is not None else list(range(rank))[::-1]
    perm, view, out = [axis % rank for axis in perm], View(x.shape, x.data), []
    for index in indices(shape):
        source = [0] * rank
        for position, axis in zip(index, perm):
            source[axis] = position
        out.append(view[tuple(source)])
    return out


def op_concat(attrs, shape, *parts):
    axis, out = attrs["axis"] % len(shape), []
    for index in indices(shape):
        at = index[axis]
        for part in parts:
            if at < part.shape[axis]:
                out.append(View(part.shape, part.data)[index[:axis] + (at,) + index[axis + 1:]])
                break
            at -= part.shape[axis]
    return out


def op_slice(attrs, shape, x):
    view, taken = View(x.shape, x.data), shapes.sliced(attrs, x.shape)
    return [view[tuple(places[i] for places, i in zip(taken, index))] for index in indices(shape)]


def op_pad(attrs, shape, x, value):
    """Where x is not, the value is."""
    view, out = View(x.shape, x.data), []
    places = [range(before, before + size * step, step)
              for size, (before, _, step) in zip(x.shape, shapes.padding(attrs, x.shape))]
    for index in indices(shape):
        inside = all(position in taken for position, taken in zip(index, places))
        source = tuple(taken.index(position) for position, taken in zip(index, places)) if inside else None
        out.append(view[source] if inside else value.data[0])
    return out


def op_gather(attrs, shape, x, ids):
    axis, view, out = attrs["axis"] % len(shape), View(x.shape, x.data), []
    for index, element in zip(indices(shape), ids.data):
        out.append(view[index[:axis] + (element,) + index[axis + 1:]])
    return out


def value(dtype, element):
    """A number whose order is that of values; None of NaN."""
    if dtype == "bool":
        return int(element != 0)
    if dtype not in STORED_FLOATS:
        return int_of_bits(dtype, element)
    form = STORED_FLOATS[dtype]
    if form.is_nan(element):
        return None
    return -(element & ~form.sign) if element & form.sign else element


def op_compare(holds):
    def run(attrs, shape, a, b):
        a, b = (View(x.shape, [value(x.dtype, element) for element in x.data]) for x in (a, b))
        return [int(holds(a[index], b[index])) for index in indices(shape)]
    return run


def ordered(holds):
    return op_compare(lambda a, b: a is not None and b is not None and holds(a, b))


# Integers and bools, in Python's integers; what is stored are a result's lowest bits


def wholes(x):
    return View(x.shape, [value(x.dtype, element) for element in x.data])


def op_whole(function):
    def run(attrs, shape, *operands):
        operands = [wholes(operand) for operand in operands]
        return [function(*(operand[index] for operand in operands)) for index in indices(shape)]
    return run


WHOLE = {
    "neg": op_whole(lambda x: -x), "abs": op_whole(abs),
    "add": op_whole(lambda a, b: a + b), "sub": op_whole(lambda a, b: a - b), "mul": op_whole(lambda a, b: a * b),
    "div": op_whole(lambda a, b: a // b if b else 0), "maximum": op_whole(max), "minimum": op_whole(min),
    "sum": op_reduce(sum, wholes), "prod": op_reduce(prod, wholes), "max": op_reduce(max, wholes),
    "min": op_reduce(min, wholes),
    "argmax": op_reduce(lambda x: x.index(max(x)), wholes), "argmin": op_reduce(lambda x: x.index(min(x)), wholes),
}


def op_where(attrs, shape, condition, a, b):
    condition, a, b = (View(x.shape, x.data) for x in (condition, a, b))
    return [a[index] if condition[index] else b[index] for index in indices(shape)]


COMPARED = {
    "equal": ordered(lambda a, b: a == b),
    "not_equal": op_compare(lambda a, b: a is None or b is None or a != b),
    "less": ordered(lambda a, b: a < b),
    "less_equal": ordered(lambda a, b: a <= b),
    "greater": ordered(lambda a, b: b < a),
    "greater_equal": ordered(lambda a, b: b <= a),
}
RUN = {
    "matmul": op_matmul, "dot": op_dot, "quantized_matmul": op_quantized_matmul, "dequantize": op_dequantize,
    "scale": op_scale, "gelu": op_gelu, "softmax": op_along(softmax_of),
    "sum": op_reduce(sum_of), "mean": op_reduce(mean_of), "max": op_reduce(max_of),
    "min": op_reduce(min_of), "prod": op_reduce(prod_of),
    "layernorm": op_norm(True), "rmsnorm": op_norm(False), "attention": op_attention, "ffn": op_ffn,
    "clamp": op_clamp, "cumsum": op_along(cumsum_of), "rope": op_rope,
    "topk": op_along(lambda x: [x[i] for i in greatest(x)]),
    **{name: op_unary(function) for name, function in UNARY.items()},
    **{name: op_binary(function) for name, function in BINARY.items()},
}
INDEX = {"argmax": op_reduce(argmax_of), "argmin": op_reduce(argmin_of), "argtopk": op_along(greatest)}
MOVES = {"embedding": op_embedding, "transpose": op_transpose, "concat": op_concat, "slice": op_slice, "pad": op_pad,
         "gather": op_gather, "where": op_where, **COMPARED}


def run(op, operands, given):
    """The result's bit patterns; raises shapes.Rejected where the call is an error."""
    dtype, shape = shapes.result(op, [operand and (operand.dtype, operand.shape) for operand in operands], given)
    attrs = shapes.attributes(op, given)
    if op == "embedding":
        check_ids(operands[1], operands[0].shape[0])
    if op == "gather":
        check_ids(operands[1], operands[0].shape[attrs["axis"] % len(shape)])
    if op == "cast":
        return [cast(operands[0].dtype, dtype, element) for element in operands[0].data]
    if op in ("matmul", "attention", "ffn"):
        operands = list(operands) + [None] * ({"matmul": 4, "attention": 4, "ffn": 5}[op] - len(operands))
    if shapes.is_whole(op, operands[0].dtype):
        found = WHOLE[op](attrs, shape, *operands)
        return [int(x != 0) if dtype == "bool" else bits_of_int(dtype, x) for x in found]
    if op in MOVES:
        return MOVES[op](attrs, shape, *operands)
    if op in INDEX:
        return [bits_of_int(dtype, at) for at in INDEX[op](attrs, shape, *operands)]
    return [narrow(dtype, element) for element in RUN[op](attrs, shape, *operands)]


def check_ids(ids, bound):
    width = {"i32": 32, "i64": 64, "u32": 33}[ids.dtype]
    for element in ids.data:
        if element >> (width - 1) or element >= bound:
            shapes.invalid(f"id {element:x} out of range")
