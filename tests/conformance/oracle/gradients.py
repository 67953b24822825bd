"""Gradients of single operations (docs/contract.md, "Gradients"): what each operand receives from the gradient g of the result.
core/tests/gradients.rs reads them.

Every rule is written here a second time, from the document. Its operations are computed as those of the cases are: by oracle.c and,
where that is little work, by exact.py."""

import struct
from functools import reduce
from math import pi, prod, sqrt

import native
from suite import attribute_text, operand, operand_spec, own_seed, shape_text
from tensors import Tensor, bits, float_bits

HEADER = "format 1 adead-gradients"
# gelu's constants in the form with tanh.
LINEAR, CUBIC = 0x3FCC422A, 0x3D922279


class Rules:
    """Records nothing: each call computes a tensor."""

    def __init__(self, suite, name):
        self.suite, self.name = suite, name

    def do(self, op, *operands, **attrs):
        specs = [x and (x.dtype, x.shape, x.bits_text()) for x in operands]
        return self.suite.compute(self.name, op, specs, {key: attribute_text(value) for key, value in attrs.items()})

    def number(self, x, like):
        """A number, given as a float or as the bits of a binary32, rounded to the dtype of a tensor."""
        one = Tensor("f32", (), [x if isinstance(x, int) else float_bits(x)])
        return one if like.dtype == "f32" else self.do("cast", one, dtype=like.dtype)

    def scale(self, x, factor):
        return self.do("scale", x, alpha=factor)

    def rest(self, x):
        return self.do("sub", self.number(1.0, x), x)

    def only(self, condition, x):
        return self.do("where", condition, x, self.number(0.0, x))

    def summed(self, x, shape):
        """The SUM over the axes along which an operand of this shape was repeated."""
        lead = len(x.shape) - len(shape)
        axes = [axis for axis, n in enumerate(x.shape) if axis < lead or shape[axis - lead] != n]
        return reshaped(self.do("sum", x, axes=axes, keepdim=1) if axes else x, shape)

    def repeated(self, x, shape):
        ones = Tensor("f32", shape, [float_bits(1.0)] * prod(shape))
        return x if x.shape == tuple(shape) else self.do("mul", x, ones if x.dtype == "f32" else self.do("cast", ones, dtype=x.dtype))

    def mean(self, x):
        return self.do("mean", x, axis=-1, keepdim=1)

    def activation(self, kind, x, y, g):
        """The gradient by what an activation is of."""
        do = self.do
        if kind == "none":
            return g
        if kind == "relu":
            return self.only(do("greater", y, self.number(0.0, y)), g)
        if kind == "sigmoid":
            slope = do("mul", y, self.rest(y))
        elif kind == "tanh":
            slope = self.rest(do("mul", y, y))
        elif kind == "silu":
            s = do("sigmoid", x)
            slope = do("mul", s, do("add", do("mul", x, self.rest(s)), self.number(1.0, x)))
        elif kind == "gelu_erf":
            below = do("add", self.scale(do("erf", self.scale(x, 1 / sqrt(2))), 0.5), self.number(0.5, x))
            density = self.scale(self.bell(x, -0.5), 1 / sqrt(2 * pi))
            slope = do("add", below, do("mul", x, density))
        else:
            square, linear = do("mul", x, x), self.number(LINEAR, x)
            cubic = self.do_bits("scale", square, CUBIC)
            s = do("sigmoid", do("mul", x, do("add", cubic, linear)))
            product = do("mul", x, do("mul", s, self.rest(s)))
            triple = self.do_bits("scale", square, float_bits(3.0 * float_of(CUBIC)))
            slope = do("add", s, do("mul", product, do("add", triple, linear)))
        return do("mul", g, slope)

    def do_bits(self, op, x, alpha):
        """An operation whose attribute alpha has these bits."""
        return self.suite.compute(self.name, op, [(x.dtype, x.shape, x.bits_text())], {"alpha": f"0x{alpha:08x}"})

    def bell(self, x, factor):
        return self.do("exp", self.scale(self.do("mul", x, x), factor))

    # By operation: from its operands, its attributes, its result and g to the operands' gradients.

    def of_unary(self, op, x, attrs, y, g):
        do = self.do
        if op in ("relu", "sigmoid", "tanh", "silu"):
            return self.activation(op, x, y, g)
        if op == "gelu":
            return self.activation("gelu_" + attrs.get("form", "tanh"), x, y, g)
        if op == "scale":
            return self.scale(g, attrs["alpha"])
        if op == "neg":
            return do("neg", g)
        if op == "abs":
            zero = self.number(0.0, x)
            return do("where", do("greater", x, zero), g, self.only(do("less", x, zero), do("neg", g)))
        if op == "exp":
            return do("mul", g, y)
        if op == "log":
            return do("div", g, x)
        if op == "sqrt":
            return do("div", g, self.scale(y, 2.0))
        if op == "rsqrt":
            return do("mul", g, self.scale(do("mul", do("mul", y, y), y), -0.5))
        if op == "erf":
            return do("mul", g, self.scale(self.bell(x, -1.0), 2 / sqrt(pi)))
        if op == "clamp":
            return self.only(do("equal", x, y), g)
        if op == "sin":
            return do("mul", g, do("cos", x))
        if op == "cos":
            return do("mul", g, do("neg", do("sin", x)))
        if op == "log1p":
            return do("div", g, do("add", x, self.number(1.0, x)))
        assert op == "expm1", op
        return do("mul", g, do("add", y, self.number(1.0, y)))

    def of_binary(self, op, a, b, y, g):
        do = self.do
        if op == "add":
            parts = g, g
        elif op == "sub":
            parts = g, do("neg", g)
        elif op == "mul":
            parts = do("mul", g, b), do("mul", g, a)
        elif op == "div":
            part = do("div", g, b)
            parts = part, do("neg", do("mul", part, y))
        elif op in ("maximum", "minimum"):
            of_a, of_b = ("greater_equal", "less") if op == "maximum" else ("less_equal", "greater")
            parts = self.only(do(of_a, a, b), g), self.only(do(of_b, a, b), g)
        else:
            slope = do("mul", b, do("pow", a, do("sub", b, self.number(1.0, b))))
            by_a = do("mul", g, self.only(do("not_equal", b, self.number(0.0, b)), slope))
            above = do("greater", a, self.number(0.0, a))
            parts = by_a, do("mul", g, self.only(above, do("mul", y, do("log", a))))
        return [self.summed(part, x.shape) for part, x in zip(parts, (a, b))]

    def of_reduction(self, op, x, attrs, y, g):
        rank = len(x.shape)
        axes = [axis % rank for axis in attrs["axes"]] if "axes" in attrs else [attrs["axis"] % rank] if "axis" in attrs else range(rank)
        kept = [1 if axis in axes else n for axis, n in enumerate(x.shape)]
        g = reshaped(g, kept)
        if op in ("max", "min"):
            equal = self.do("equal", x, reshaped(y, kept))
            long = [axis for axis in range(rank) if kept[axis] != x.shape[axis]]
            many = self.do("sum", self.do("cast", equal, dtype=x.dtype), axes=long, keepdim=1)
            return self.only(equal, self.do("div", g, many))
        if op == "mean":
            g = self.scale(g, 1.0 / prod(x.shape[axis] for axis in axes))
        return self.repeated(g, x.shape)

    def of_softmax(self, y, g, axis):
        total = self.do("sum", self.do("mul", g, y), axis=axis, keepdim=1)
        return self.do("mul", y, self.do("sub", g, total))

    def of_norm(self, op, operands, attrs, g):
        do = self.do
        x, gamma, *others = [*operands, None, None, None][:4]
        beta, residual = others if op == "layernorm" else (None, others[0])
        h = do("add", x, residual) if residual else x
        d = do("sub", h, self.mean(h)) if op == "layernorm" else h
        factor = do("rsqrt", do("add", self.mean(do("mul", d, d)), self.number(attrs.get("eps", 1e-5), h)))
        n = do("mul", d, factor)
        u = do("mul", g, gamma) if gamma else g
        along = do("mul", n, self.mean(do("mul", u, n)))
        by_x = do("mul", factor, do("sub", do("sub", u, self.mean(u)) if op == "layernorm" else u, along))
        found = [by_x, gamma and self.summed(do("mul", g, n), gamma.shape)]
        if op == "layernorm":
            found.append(beta and self.summed(g, beta.shape))
        return (found + [residual and by_x])[:len(operands)]

    def of_matmul(self, operands, attrs, y, g):
        """For matrices of the same rank."""
        do = self.do
        a, b, c, bias = [*operands, None, None][:4]
        kind = attrs.get("activation", "none")
        before = y
        if kind in ("silu", "gelu_tanh", "gelu_erf"):
            before = do("matmul", *operands, **{**attrs, "activation": "none"})
        g = self.activation(kind, before, y, g)
        found = [None] * len(operands)
        if c:
            beta = attrs.get("beta", 1.0)
            found[2] = self.summed(g if beta == 1.0 else self.scale(g, beta), c.shape)
        if bias:
            found[3] = self.summed(g, bias.shape)
        if attrs.get("alpha", 1.0) != 1.0:
            g = self.scale(g, attrs["alpha"])
        ta, tb = attrs.get("trans_a", 0), attrs.get("trans_b", 0)
        given = {"precision": attrs["precision"]} if "precision" in attrs else {}
        a_shape = a.shape
        if len(b.shape) == 2 and len(a.shape) > 2 and not ta:
            a, g = (reshaped(x, (prod(x.shape[:-1]), x.shape[-1])) for x in (a, g))
        by_a = do("matmul", b, g, trans_a=tb, trans_b=1, **given) if ta else do("matmul", g, b, trans_a=0, trans_b=1 - tb, **given)
        by_b = do("matmul", g, a, trans_a=1, trans_b=ta, **given) if tb else do("matmul", a, g, trans_a=1 - ta, trans_b=0, **given)
        found[0], found[1] = reshaped(self.summed(by_a, a.shape), a_shape), self.summed(by_b, b.shape)
        return found

    def of_attention(self, operands, attrs, g):
        """For heads that have keys of their own."""
        do = self.do
        q, k, v, mask = [*operands, None][:4]
        factor = attrs.get("scale") or 1 / sqrt(q.shape[-1])
        (queries, keys), blocks = (q.shape[-2], k.shape[-2]), []
        for first in range(0, queries, 256):
            last = min(first + 256, queries)
            seen = lambda i: max(0, min(keys, i + 1 + keys - queries)) if attrs.get("causal") else keys  # noqa: E731
            count = seen(last - 1)
            part = [part_of(q, -2, first, last), part_of(k, -2, 0, count), part_of(v, -2, 0, count), part_of(g, -2, first, last)]
            if mask:
                part.append(mask if mask.shape[-2] == 1 else part_of(mask, -2, first, last))
                part[4] = part[4] if mask.shape[-1] == 1 else part_of(part[4], -1, 0, count)
            hidden = [int(j < seen(i)) for i in range(first, last) for j in range(count)] if attrs.get("causal") else None
            blocks.append(self.of_queries(part, factor, hidden, blind=bool(mask) or not seen(0)))
        by_q, by_k, by_v, by_scores = (list(found) for found in zip(*blocks))
        total = lambda found: reduce(lambda a, b: do("add", a, b), [longer(x, -2, keys) for x in found])  # noqa: E731
        found = [together(by_q, -2), total(by_k), total(by_v)]
        return found + [self.summed(together([longer(x, -1, keys) for x in by_scores], -2), mask.shape)] if mask else found

    def of_queries(self, operands, factor, hidden, blind):
        """Of some queries, and the keys that the last of them sees. `blind`: whether a query may see none."""
        do = self.do
        q, k, v, g, mask = [*operands, None][:5]
        scores = self.scale(do("matmul", q, k, trans_b=1), factor)
        if mask:
            scores = do("add", scores, mask)
        if hidden:
            scores = do("where", Tensor("bool", scores.shape[-2:], hidden), scores, self.number(float("-inf"), scores))
        weights = do("softmax", scores, axis=-1)
        if blind:
            weights = self.only(do("equal", weights, weights), weights)
        by_scores = self.of_softmax(weights, do("matmul", g, v, trans_b=1), -1)
        scaled = self.scale(by_scores, factor)
        return do("matmul", scaled, k), do("matmul", scaled, q, trans_a=1), do("matmul", weights, g, trans_a=1), by_scores


def part_of(x, axis, first, last):
    """The elements from `first` to before `last` along an axis, the last (-1) or the one before it (-2)."""
    inner, count = prod(x.shape[axis + 1 :]) if axis < -1 else 1, x.shape[axis]
    rows = [x.data[i : i + count * inner] for i in range(0, len(x.data), count * inner)]
    shape = list(x.shape)
    shape[axis] = last - first
    return Tensor(x.dtype, tuple(shape), [value for row in rows for value in row[first * inner : last * inner]])


def longer(x, axis, count):
    """Zeros behind the elements along such an axis."""
    inner, have = x.shape[-1] if axis < -1 else 1, x.shape[axis]
    shape = list(x.shape)
    shape[axis] = count
    rows = [x.data[i : i + have * inner] for i in range(0, len(x.data), have * inner)] if have else [[]] * prod(shape[:axis])
    return Tensor(x.dtype, tuple(shape), [value for row in rows for value in [*row, *[0] * ((count - have) * inner)]])


def together(blocks, axis):
    """Joins blocks along such an axis: -2."""
    shape = list(blocks[0].shape)
    shape[axis] = sum(x.shape[axis] for x in blocks)
    outer = prod(shape[:axis])
    step = lambda x: len(x.data) // max(outer, 1)  # noqa: E731
    data = [value for i in range(outer) for x in blocks for value in x.data[i * step(x) : (i + 1) * step(x)]]
    return Tensor(blocks[0].dtype, tuple(shape), data)


def float_of(pattern):
    return struct.unpack("<f", struct.pack("<I", pattern))[0]


def reshaped(x, shape):
    return Tensor(x.dtype, shape, x.data)


UNARY = ("neg", "abs", "exp", "log", "sqrt", "rsqrt", "relu", "sigmoid", "tanh", "silu", "erf", "sin", "cos", "log1p", "expm1")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "pow")


class Writer:
    def __init__(self, suite):
        self.suite, self.lines = suite, []

    def case(self, name, op, operands, rule, g="rand", **attrs):
        """Writes a case: `rule` gets the rules, the operands, the result and g. Operands and g are texts; '?' becomes a seed."""
        name = f"gradients/{op}_{name}" if name else f"gradients/{op}"
        given = {key: attribute_text(value) for key, value in attrs.items()}
        specs = [None if text == "none" else operand_spec(text.replace("?", own_seed(name, i))) for i, text in enumerate(operands)]
        inputs = [spec and native.make(*spec) for spec in specs]
        y = self.suite.compute(name, op, specs, given)
        upstream = operand_spec(operand(y.dtype, y.shape, f"{g}:?").replace("?", own_seed(name, "g")))
        # The loss is SUM(y·g), so that y's gradient is 1·g.
        gradient = native.run("scale", [native.make(*upstream)], {"alpha": attribute_text(1.0)})
        found = rule(Rules(self.suite, name), inputs, y, gradient)
        found = found if isinstance(found, list) else [found]
        text = lambda x: f"{x.dtype} {shape_text(x.shape)} {x.bits_text()}"  # noqa: E731
        self.lines += [f"case {name}", f"op {op}", *(f"attr {key} {value}" for key, value in given.items())]
        self.lines += ["in none" if x is None else f"in {text(x)}" for x in inputs]
        self.lines.append(f"g {text(native.make(*upstream))}")
        self.lines += [f"by {i} {text(by)}" for i, by in enumerate(found) if by is not None]
        self.lines += ["end", ""]


def rand(dtype, *shape):
    return operand(dtype, shape, "rand:?")


def wild(dtype, *shape):
    return operand(dtype, shape, "wild:?")


def text(suite):
    """The contents of the file."""
    writer = Writer(suite)
    case = writer.case
    for op in UNARY:
        rule = lambda r, xs, y, g, op=op: r.of_unary(op, xs[0], {}, y, g)  # noqa: E731
        for dtype in ("f32", "f16", "bf16"):
            case(f"{dtype}", op, [rand(dtype, 3, 7)], rule)
        case("wild", op, [wild("f32", 48)], rule, g="wild")
    for form in ("tanh", "erf"):
        rule = lambda r, xs, y, g, form=form: r.of_unary("gelu", xs[0], {"form": form}, y, g)  # noqa: E731
        case(form, "gelu", [rand("f32", 3, 7)], rule, form=form)
        case(f"{form}_wild", "gelu", [wild("f32", 48)], rule, g="wild", form=form)
    case("", "scale", [rand("f32", 5)], lambda r, xs, y, g: r.of_unary("scale", xs[0], {"alpha": -0.3}, y, g), alpha=-0.3)
    case("", "clamp", [operand("f32", (7,), bits("f32", [-2, -1, -0.5, 0, 0.5, 1, 2]))],
         lambda r, xs, y, g: r.of_unary("clamp", xs[0], {}, y, g), min=-1.0, max=1.0)
    for op in BINARY:
        rule = lambda r, xs, y, g, op=op: r.of_binary(op, *xs, y, g)  # noqa: E731
        case("same", op, [rand("f32", 3, 4), rand("f32", 3, 4)], rule)
        case("row", op, [rand("f32", 3, 4), rand("f32", 4)], rule)
        case("column", op, [rand("f32", 2, 1), rand("f32", 5, 2, 3)], rule)
        case("f16", op, [rand("f16", 3, 4), rand("f16", 1, 4)], rule)
        case("wild", op, [wild("f32", 48), wild("f32", 48)], rule, g="wild")
    for op in ("sum", "mean", "max", "min"):
        for name, attrs in (("all", {}), ("axis", {"axis": 1}), ("kept", {"axis": -1, "keepdim": 1}), ("axes", {"axes": (0, 2)})):
            case(name, op, [rand("f32", 3, 5, 2)], lambda r, xs, y, g, op=op, attrs=attrs: r.of_reduction(op, xs[0], attrs, y, g), **attrs)
        ties = operand("f32", (2, 4), bits("f32", [1, 3, 3, 2, 0, 0, 0, 0]))
        case("ties", op, [ties], lambda r, xs, y, g, op=op: r.of_reduction(op, xs[0], {"axis": 1}, y, g), axis=1)
    for axis in (-1, 0):
        case(f"axis{axis}", "softmax", [rand("f32", 4, 5)], lambda r, xs, y, g, axis=axis: r.of_softmax(y, g, axis), axis=axis)
    for op, vectors in (("layernorm", 2), ("rmsnorm", 1)):
        x, gamma, beta = rand("f32", 3, 40), rand("f32", 40), [rand("f32", 40)] * (vectors - 1)
        none = ["none"] * (vectors - 1)
        rule = lambda r, xs, y, g, op=op: r.of_norm(op, xs, {"eps": 1e-3}, g)  # noqa: E731
        for name, operands in (("plain", [x]), ("gamma", [x, gamma]), ("all", [x, gamma, *beta]), ("residual", [x, gamma, *beta, x]),
                               ("only_residual", [x, "none", *none, x])):
            case(name, op, operands, rule, eps=1e-3)
    for ta in (0, 1):
        for tb in (0, 1):
            a, b = (rand("f32", 9, 4) if ta else rand("f32", 4, 9)), (rand("f32", 5, 9) if tb else rand("f32", 9, 5))
            for name, attrs in (("", {}), ("_fixed24", {"precision": "fixed24"})):
                attrs = {"trans_a": ta, "trans_b": tb, **attrs}
                case(f"{ta}{tb}{name}", "matmul", [a, b], lambda r, xs, y, g, attrs=attrs: r.of_matmul(xs, attrs, y, g), **attrs)
    rows = [rand("f32", 4, 9), rand("f32", 9, 5)]
    for kind in ("relu", "sigmoid", "tanh", "silu", "gelu_tanh", "gelu_erf"):
        attrs = {"activation": kind}
        case(kind, "matmul", [*rows, "none", rand("f32", 5)], lambda r, xs, y, g, attrs=attrs: r.of_matmul(xs, attrs, y, g), **attrs)
    attrs = {"alpha": 0.5, "beta": -2.0}
    case("c", "matmul", [*rows, rand("f32", 4, 1), rand("f32", 5)], lambda r, xs, y, g: r.of_matmul(xs, attrs, y, g), **attrs)
    case("rows", "matmul", [rand("f32", 2, 3, 9), rows[1]], lambda r, xs, y, g: r.of_matmul(xs, {}, y, g))
    case("batches", "matmul", [rand("f32", 2, 3, 9), rand("f32", 2, 9, 5)], lambda r, xs, y, g: r.of_matmul(xs, {}, y, g))
    case("shared", "matmul", [rand("f32", 2, 3, 9), rand("f32", 1, 9, 5)], lambda r, xs, y, g: r.of_matmul(xs, {}, y, g))
    heads = [rand("f32", 2, 3, 5, 8), rand("f32", 2, 3, 7, 8), rand("f32", 2, 3, 7, 6)]
    for name, operands, attrs in (("plain", heads, {}), ("causal", heads, {"causal": 1}), ("scale", heads, {"scale": 0.3}),
                                  ("mask", [*heads, rand("f32", 2, 1, 5, 7)], {}),
                                  ("nan", [heads[0], wild("f32", 2, 3, 7, 8), heads[2]], {"causal": 1}),
                                  ("many", [rand("f32", 600, 3), rand("f32", 4, 3), rand("f32", 4, 2), rand("f32", 1, 4)], {}),
                                  ("many_causal", [rand("f32", 270, 2), rand("f32", 268, 2), rand("f32", 268, 1)], {"causal": 1}),
                                  ("many_mask", [rand("f32", 258, 1), rand("f32", 3, 1), rand("f32", 3, 2), rand("f32", 258, 3)],
                                   {"causal": 1})):
        case(name, "attention", operands, lambda r, xs, y, g, attrs=attrs: r.of_attention(xs, attrs, g), **attrs)
    moves(case)
    return HEADER + "\n\n" + "\n".join(writer.lines)


def moves(case):
    """Operations that move elements."""
    ids = operand("i64", (6,), "ids:?:4")
    one = lambda n: Tensor("f32", (), [float_bits(n)])  # noqa: E731

    def embedding(r, xs, y, g):
        n, named = xs[0].shape[0], []
        for i in xs[1].data:
            named += [float_bits(float(i == row)) for row in range(n)]
        return [r.do("matmul", Tensor("f32", (len(xs[1].data), n), named), reshaped(g, (len(xs[1].data), xs[0].shape[1])), trans_a=1)]

    case("", "embedding", [rand("f32", 4, 3), ids], embedding)
    case("", "transpose", [rand("f32", 2, 3, 4)], lambda r, xs, y, g: r.do("transpose", g, perm=(1, 2, 0)), perm=(2, 0, 1))
    case("", "concat", [rand("f32", 2, 3), rand("f32", 2, 1)], lambda r, xs, y, g: [
        r.do("slice", g, start=(0, 0), stop=(2, 3)), r.do("slice", g, start=(0, 3), stop=(2, 4))], axis=1)
    case("", "slice", [rand("f32", 7, 5)], lambda r, xs, y, g: r.do("pad", g, one(0.0), before=(1, 0), after=(1, 1), step=(2, 3)),
         start=(1, 0), stop=(6, 4), step=(2, 3))
    case("part", "slice", [rand("f32", 4, 5)], lambda r, xs, y, g: r.do("pad", g, one(0.0), before=(0, 1), after=(0, 1)),
         start=(0, 1), stop=(4, 4))

    def pad(r, xs, y, g):
        inside = r.do("slice", g, start=(1, 0), stop=(3, 3))
        return [inside, r.do("sub", r.do("sum", g), r.do("sum", inside))]

    case("", "pad", [rand("f32", 2, 3), rand("f32")], pad, before=(1, 0), after=(0, 2))
    case("", "where", [operand("bool", (3,), "bits:010001"), rand("f32", 2, 3), rand("f32", 3)], lambda r, xs, y, g: [
        None, r.only(xs[0], g), r.summed(r.do("where", xs[0], r.number(0.0, g), g), (3,))])
    case("", "cast", [rand("f16", 5)], lambda r, xs, y, g: r.do("cast", g, dtype="f16"), dtype="f32")
    case("", "cumsum", [rand("f32", 3, 9)], lambda r, xs, y, g: r.do(
        "add", r.do("sub", r.do("sum", g, axis=1, keepdim=1), r.do("cumsum", g, axis=1)), g), axis=1)
    case("", "dot", [rand("f32", 9), rand("f32", 9)], lambda r, xs, y, g: [r.do("mul", xs[1], g), r.do("mul", xs[0], g)])

    def scattered(r, g, ids, x, axis):
        """What ids along an axis took goes back."""
        count, n = ids.shape[axis], x.shape[axis]
        outer, inner = prod(x.shape[:axis]), prod(x.shape[axis + 1:])
        numbers = Tensor(ids.dtype, (n, 1), list(range(n)))
        named = r.do("equal", reshaped(ids, (outer, count, 1, inner)), numbers)
        return reshaped(r.do("sum", r.only(named, reshaped(g, (outer, count, 1, inner))), axes=(1,), keepdim=1), x.shape)

    for axis, shape in ((1, (3, 7)), (0, (5, 4))):
        case(f"axis{axis}", "gather", [rand("f32", 3, 4), operand("i32", shape, f"ids:?:{3 if axis == 0 else 4}")],
             lambda r, xs, y, g, axis=axis: [scattered(r, g, xs[1], xs[0], axis)], axis=axis)
    case("", "topk", [rand("f32", 2, 9)], lambda r, xs, y, g: scattered(r, g, r.do("argtopk", xs[0], k=3, dtype="i32"), xs[0], 1), k=3)
    for interleaved in (0, 1):
        case(str(interleaved), "rope", [rand("f32", 2, 3, 8), rand("f32", 3, 4), rand("f32", 3, 4)], lambda r, xs, y, g, i=interleaved: r.do(
            "rope", g, xs[1], r.do("neg", xs[2]), interleaved=i), interleaved=interleaved)

    def ffn(r, xs, y, g, kind, **given):
        x, w1, b1, w2, b2 = xs
        first = [x, w1, None, b1]
        z = r.do("matmul", *first, **given)
        h = r.do("matmul", *first, activation=kind, **given)
        by_h, by_w2, _, by_b2 = r.of_matmul([h, w2, None, b2], given, y, g)
        by_x, by_w1, _, by_b1 = r.of_matmul(first, given, z, r.activation(kind, z, h, by_h))
        return [by_x, by_w1, by_b1, by_w2, by_b2]

    layers = [rand("f32", 3, 6), rand("f32", 6, 8), rand("f32", 8), rand("f32", 8, 5), rand("f32", 5)]
    for kind, given in (("relu", {}), ("gelu_tanh", {}), ("silu", {"precision": "fixed24"})):
        case(kind, "ffn", layers, lambda r, xs, y, g, kind=kind, given=given: ffn(r, xs, y, g, kind, **given), activation=kind, **given)
