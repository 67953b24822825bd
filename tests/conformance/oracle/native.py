"""oracle.c as a shared library: built once into a cache outside the source tree, called through ctypes."""

import ctypes
import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile
from array import array
from math import prod
from pathlib import Path

import shapes
from exact_fixed import LIMIT as FIXED
from tensors import FLOATS, TYPECODE, WIDTH, Tensor, parse_data

SOURCE = Path(__file__).with_name("oracle.c")
CODES = {dtype: code for code, dtype in enumerate(("f32", "f16", "bf16", "i32", "i64", "u32", "bool", "u8", "f64"))}


def kinds(first):
    """The names of one of oracle.c's enums, with their numbers."""
    names = re.search(rf"^enum {{ ({first},[^}}]*) }};", SOURCE.read_text(), re.MULTILINE)[1]
    return {name.lower(): code for code, name in enumerate(re.split(r",\s*", names))}


LIMIT = {"f32": 0, **FIXED}
KIND = kinds("NONE")
OF_TWO = kinds("ADD")
COMPARED = kinds("EQUAL")
WHOLE = {name.removeprefix("whole_"): code for name, code in kinds("WHOLE_NEG").items()}
FORMATS = kinds("Q8_0")


def build():
    # Contraction and excess precision would change E arithmetic.
    flags = ["-std=c99", "-O2", "-ffp-contract=off", "-fno-fast-math", "-fno-strict-aliasing", "-shared", "-fPIC"]
    if platform.machine().lower() in ("x86_64", "amd64"):
        flags += ["-msse2", "-mfpmath=sse"]
    source = SOURCE.read_bytes()
    tag = hashlib.sha256(source + " ".join(flags).encode()).hexdigest()[:16]
    cache = Path(tempfile.gettempdir()) / f"adead-oracle-{os.getuid()}"
    cache.mkdir(mode=0o700, exist_ok=True)
    if cache.stat().st_uid != os.getuid():  # a library someone else left there is not ours to load
        raise PermissionError(cache)
    library = cache / f"oracle-{tag}.so"
    if not library.exists():
        partial = library.with_suffix(f".{os.getpid()}")
        compiler = os.environ.get("CC", "gcc")
        subprocess.run([compiler, *flags, str(SOURCE), "-o", str(partial), "-lm"], check=True)
        partial.rename(library)
    return ctypes.CDLL(str(library))


LIB = build()


def call(name, *arguments):
    """Python ints become int64, floats binary32 by their bit pattern (see Bits), arrays their address."""
    converted = []
    for argument in arguments:
        if isinstance(argument, array):
            converted.append(ctypes.c_void_p(argument.buffer_info()[0]))
        elif argument is None:
            converted.append(ctypes.c_void_p(0))
        elif isinstance(argument, int):
            converted.append(ctypes.c_int64(argument))
        else:
            converted.append(argument)
    getattr(LIB, name)(*converted)


def as_float(bits):
    return ctypes.c_float.from_buffer_copy(bits.to_bytes(4, sys.byteorder))


def empty(width, n):
    return array(TYPECODE[width], bytes(width * n))


def make(dtype, shape, text):
    """The tensor a data field stands for; generators run in C."""
    kind, detail = parse_data(text)
    n = prod(shape)
    data = empty(WIDTH[dtype], n)
    if kind == "bits":
        width = 2 * WIDTH[dtype]
        data = array(data.typecode, (int(detail[i * width:(i + 1) * width], 16) for i in range(n)))
        assert len(detail) == n * width, (dtype, shape, text)
    elif kind == "fill":
        data = array(data.typecode, [detail]) * n
    elif kind == "rand":
        call("o_rand", CODES[dtype], n, detail[0], detail[1], data)
    elif kind == "wild":
        call("o_wild", CODES[dtype], n, detail[0], data)
    else:
        call("o_ids", CODES[dtype], n, detail[0], detail[1], data)
    return Tensor(dtype, shape, data)


def widen(tensor):
    if tensor is None:
        return None
    if tensor.dtype == "f32":
        return tensor.data
    out = empty(4, len(tensor.data))
    call("o_widen", CODES[tensor.dtype], len(tensor.data), tensor.data, out)
    return out


def narrowed(dtype, shape, wide):
    """A tensor of binary32 values."""
    data = wide[:]
    if dtype != "f32":
        data = empty(WIDTH[dtype], len(wide))
        call("o_narrow", CODES[dtype], len(wide), wide, data)
    return Tensor(dtype, shape, data)


def strides_of(shape):
    return [prod(shape[axis + 1:]) for axis in range(len(shape))]


def gather(data, shape, strides):
    out = empty(data.itemsize, prod(shape))
    if len(out):
        call("o_gather", data.itemsize, len(shape), array("q", shape), array("q", strides), data, out)
    return out


def spread(data, shape, target):
    """data of `shape`, broadcast to `target`."""
    if data is None or tuple(shape) == tuple(target):
        return data
    padded = (1,) * (len(target) - len(shape)) + tuple(shape)
    strides = [0 if size == 1 else stride for size, stride in zip(padded, strides_of(padded))]
    return gather(data, target, strides)


def cut(data, start, n):
    return None if data is None else data[start * n:(start + 1) * n]


def matmul(attrs, shape, a, b, c=None, bias=None):
    row, column = len(a.shape) == 1, len(b.shape) == 1
    a_shape, b_shape = ((1,) + a.shape if row else a.shape), (b.shape + (1,) if column else b.shape)
    M, K = a_shape[-2:][::-1] if attrs["trans_a"] else a_shape[-2:]
    N = b_shape[-2] if attrs["trans_b"] else b_shape[-1]
    batch = shapes.broadcast(a_shape[:-2], b_shape[:-2])
    A = spread(widen(a), a_shape, batch + a_shape[-2:])
    B = spread(widen(b), b_shape, batch + b_shape[-2:])
    C = spread(widen(c), c.shape, shape) if c else None
    out = array("I")
    for i in range(prod(batch)):
        part = empty(4, M * N)
        call("o_matmul", M, N, K, attrs["trans_a"], attrs["trans_b"], cut(A, i, M * K), cut(B, i, K * N),
             as_float(attrs["alpha"]), as_float(attrs["beta"]), cut(C, i, M * N), widen(bias),
             KIND[attrs["activation"]], LIMIT[attrs["precision"]], part)
        out += part
    return out


def attention(attrs, shape, q, k, v, mask=None):
    (Sq, D), (Sk, Dv) = q.shape[-2:], v.shape[-2:]
    heads = q.shape[-3] if len(q.shape) > 2 else 1
    kv_heads = k.shape[-3] if len(q.shape) > 2 else 1
    Q, K, V = widen(q), widen(k), widen(v)
    X = spread(widen(mask), mask.shape, q.shape[:-1] + (Sk,)) if mask else None
    out = array("I")
    for i in range(prod(q.shape[:-2])):
        kv = i // heads * kv_heads + i % heads // (heads // kv_heads)
        part = empty(4, Sq * Dv)
        call("o_attention", Sq, Sk, D, Dv, cut(Q, i, Sq * D), cut(K, kv, Sk * D), cut(V, kv, Sk * Dv),
             cut(X, i, Sq * Sk), attrs["causal"], as_float(attrs["scale"]), LIMIT[attrs["precision"]], part)
        out += part
    return out


def around(shape, axis):
    """(outer, n, inner) of an axis; all elements as one row for 'all'."""
    if axis == "all":
        return 1, prod(shape), 1
    axis %= len(shape)
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1:])


def reduced_lines(attrs, x):
    """How many lines, their length, and them: the axes that are reduced behind all others."""
    rank, axes = len(x.shape), shapes.reduced_axes(attrs, len(x.shape))
    kept = [axis for axis in range(rank) if axis not in axes]
    order = kept + axes
    data = gather(wide(x), [x.shape[axis] for axis in order], [strides_of(x.shape)[axis] for axis in order])
    return prod(x.shape[axis] for axis in kept), prod(x.shape[axis] for axis in axes), 1, data


def wide(x):
    """The elements as binary32 if they are floats, else as i64."""
    if x.dtype in FLOATS:
        return widen(x)
    out = empty(8, len(x.data))
    call("o_cast", CODES[x.dtype], CODES["i64"], len(out), x.data, out)
    return out


def integers(op, attrs, dtype, shape, operands):
    """Arithmetic on integers and bools."""
    out = empty(8, prod(shape))
    if op in shapes.VALUES + shapes.PLACES:
        lines, n, _, data = reduced_lines(attrs, operands[0])
        call("o_fold_integers", WHOLE[op], lines, n, data, out)
    else:
        a, b = (spread(wide(operand), operand.shape, shape) for operand in (operands * 2)[:2])
        call("o_integers", WHOLE[op], len(out), a, b, out)
    data = empty(WIDTH[dtype], len(out))
    call("o_cast", CODES["i64"], CODES[dtype], len(out), out, data)
    return data


def greatest(attrs, shape, x):
    """Where the greatest elements of each line are in it."""
    at = array("q", bytes(8 * prod(shape)))
    call("o_topk", *around(x.shape, attrs["axis"]), attrs["k"], widen(x), at)
    return at


def floating(op, attrs, shape, operands):
    """A floating operation on binary32 buffers, before narrowing."""
    x = operands[0]
    out = empty(4, prod(shape))
    if op in ("matmul", "dot"):
        return matmul(attrs, shape, *operands)
    if op == "attention":
        return attention(attrs, shape, *operands)
    if op in shapes.BINARY:
        a, b = (spread(widen(operand), operand.shape, shape) for operand in operands)
        call("o_binary", OF_TWO[op], len(out), a, b, out)
    elif op in ("softmax", "cumsum"):
        call(f"o_{op}", *around(x.shape, attrs["axis"]), widen(x), out)
    elif op == "rope":
        pairs = x.shape[:-1] + (x.shape[-1] // 2,)
        cos, sin = (spread(widen(table), table.shape, pairs) for table in operands[1:])
        call("o_rope", prod(pairs[:-1]), pairs[-1], attrs["interleaved"], widen(x), cos, sin, out)
    elif op in shapes.VALUES:
        call("o_reduce", shapes.VALUES.index(op), *reduced_lines(attrs, x), out)
    elif op in ("layernorm", "rmsnorm"):
        vectors = 2 if op == "layernorm" else 1
        optional = [widen(operand) for operand in operands[1:]]
        *optional, residual = optional + [None] * (vectors + 1 - len(optional))
        data = widen(x)
        if residual is not None:
            call("o_binary", OF_TWO["add"], len(out), data, residual, out)
            data = widen(narrowed(x.dtype, x.shape, out))
        call(f"o_{op}", prod(x.shape[:-1]), x.shape[-1], data, *optional, as_float(attrs["eps"]), out)
    elif op == "ffn":
        w1, w2 = operands[1], operands[3]
        b2 = operands[4] if len(operands) > 4 else None
        call("o_ffn", prod(x.shape[:-1]), *w1.shape, w2.shape[1], widen(x), widen(w1), widen(operands[2]), widen(w2),
             widen(b2), KIND[attrs["activation"]], LIMIT[attrs["precision"]], out)
    else:
        kind = f"gelu_{attrs['form']}" if op == "gelu" else op
        # What an operation is given besides x: scale its factor, clamp its bounds.
        first, second = attrs.get("alpha", attrs.get("min", 0)), attrs.get("max", 0)
        call("o_unary", KIND[kind], len(out), widen(x), as_float(first), as_float(second), out)
    return out


def concat(attrs, shape, parts):
    axis = attrs["axis"] % len(shape)
    outer, width = prod(shape[:axis]), parts[0].data.itemsize
    out = array(TYPECODE[width])
    for o in range(outer):
        for part in parts:
            out += cut(part.data, o, prod(part.shape[axis:]))
    return out


def embedding(table, ids):
    n, out = prod(table.shape[1:]), array(table.data.typecode)
    for position in ids.data:
        if position >= table.shape[0]:  # negative ids are huge as bit patterns
            shapes.invalid("id out of range")
        out += cut(table.data, position, n)
    return out


def padded(x, value, padding, shape):
    """x between values, an axis at a time from the last one on."""
    data, dims = x.data, list(x.shape)
    for axis in reversed(range(len(dims))):
        before, after, step = padding[axis]
        inner = prod(shape[axis + 1:])
        width, out = dims[axis] * inner, array(data.typecode)
        for o in range(prod(dims[:axis])):
            out += value * (before * inner)
            for i in range(dims[axis]):
                out += value * ((step - 1) * inner if i else 0) + cut(data, o * dims[axis] + i, inner)
            out += value * (after * inner)
        data, dims[axis] = out, shape[axis]
    return data


def along(x, ids, axis):
    """Elements of x along an axis by id."""
    inner, n, m = prod(x.shape[axis + 1:]), x.shape[axis], ids.shape[axis]
    out = array(x.data.typecode)
    for position, element in enumerate(ids.data):
        if element >= n:  # negative ids are huge as bit patterns
            shapes.invalid("id out of range")
        out.append(x.data[(position // (m * inner) * n + element) * inner + position % inner])
    return out


def run(op, operands, given):
    """The result tensor; raises shapes.Rejected where the call is an error."""
    dtype, shape = shapes.result(op, [operand and (operand.dtype, operand.shape) for operand in operands], given)
    attrs = shapes.attributes(op, given)
    x = operands[0]
    if op == "dot":
        attrs = shapes.attributes("matmul", {})
    if op in shapes.QUANTIZED:
        data, K = empty(4, prod(shape)), shapes.block_elements(attrs["format"], operands[-1].shape[-1])
        if op == "dequantize":
            call("o_dequantize", FORMATS[attrs["format"]], prod(shape[:-1]), K, x.data, data)
        else:
            call("o_quantized_matmul", FORMATS[attrs["format"]], prod(shape[:-1]), shape[-1], K, x.data, operands[1].data, data)
        return Tensor(dtype, shape, data)
    if shapes.is_whole(op, x.dtype):
        data = integers(op, attrs, dtype, shape, list(operands))
    elif op == "embedding":
        data = embedding(*operands)
    elif op == "transpose":
        perm = attrs["perm"] or list(range(len(x.shape)))[::-1]
        data = gather(x.data, shape, [strides_of(x.shape)[axis] for axis in perm])
    elif op == "concat":
        data = concat(attrs, shape, operands)
    elif op == "slice":
        steps, starts = [taken.step for taken in shapes.sliced(attrs, x.shape)], [taken.start for taken in shapes.sliced(attrs, x.shape)]
        strides = strides_of(x.shape)
        first = sum(start * stride for start, stride in zip(starts, strides))
        data = gather(x.data[first:], shape, [step * stride for step, stride in zip(steps, strides)])
    elif op == "pad":
        data = padded(x, operands[1].data, shapes.padding(attrs, x.shape), shape)
    elif op == "gather":
        data = along(x, operands[1], attrs["axis"] % len(shape))
    elif op in shapes.COMPARISONS:
        a, b = (spread(widen(operand) if operand.dtype in FLOATS else operand.data, operand.shape, shape)
                for operand in operands)
        data = empty(1, prod(shape))
        call("o_compare", COMPARED[op], CODES["f32" if x.dtype in FLOATS else x.dtype], len(data), a, b, data)
    elif op == "where":
        condition, a, b = (spread(operand.data, operand.shape, shape) for operand in operands)
        data = empty(WIDTH[dtype], prod(shape))
        call("o_where", WIDTH[dtype], len(data), condition, a, b, data)
    elif op == "cast":
        data = x.data[:]
        if dtype != x.dtype:
            data = empty(WIDTH[dtype], len(x.data))
            call("o_cast", CODES[x.dtype], CODES[dtype], len(data), x.data, data)
    elif op == "argtopk":
        data = array(TYPECODE[WIDTH[dtype]], greatest(attrs, shape, x))
    elif op == "topk":
        axis = attrs["axis"] % len(shape)
        wide = along(Tensor("f32", x.shape, widen(x)), Tensor("i64", shape, greatest(attrs, shape, x)), axis)
        call("o_canonical", len(wide), wide)
        return narrowed(dtype, shape, wide)
    elif op in shapes.PLACES:
        at = array("q", bytes(8 * prod(shape)))
        call("o_place", int(op == "argmin"), *reduced_lines(attrs, x), at)
        data = array(TYPECODE[WIDTH[dtype]], at)
    else:
        return narrowed(dtype, shape, floating(op, attrs, shape, operands))
    return Tensor(dtype, shape, data)
