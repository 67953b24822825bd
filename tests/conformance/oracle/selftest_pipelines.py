"""Pipelines for selftest.py: one written by hand, and random ones, read back from what is written and computed from it by
exact.py, from the outputs backwards. What is to be refused must be."""

from contextlib import suppress

import shapes
import tensors
from pipelines import Pipeline, exact
from selftest_ops import ACTIVATIONS, number, values
from suite import Suite, attribute_text, operand, operand_spec
from tensors import FLOATS, Tensor, bits, hexes

BY_HAND = """case pipeline/by_hand
op pipeline
in f32 2 bits:3f80000040000000
const f32 1,2 bits:4120000041a00000
in f32 1 bits:3f000000
do sub 1 0
reshape 3 2,1
do matmul 0 4 - 2 alpha=0x40000000
do neg 3
give 6
give 5
give 3
out f32 1,2 bits:c1100000c1900000
out f32 1 bits:42b50000
out f32 1,2 bits:4110000041900000
again
in f32 2 bits:4120000041a00000
in f32 1 bits:bf800000
out f32 1,2 bits:8000000080000000
out f32 1 bits:bf800000
out f32 1,2 bits:0000000000000000
end
"""


def record_by_hand(p):
    x = p.input(operand("f32", (2,), bits("f32", [1.0, 2.0])))
    c = p.constant(operand("f32", (1, 2), bits("f32", [10.0, 20.0])))
    b = p.input(operand("f32", (1,), bits("f32", [0.5])))
    d = p.do("sub", c, x)  # 9 18, then 0 0
    y = p.do("matmul", x, p.reshape(d, 2, 1), None, b, alpha=2.0)  # 2·(9 + 36) + 0.5, then -1
    p.give(p.do("neg", d), y, d)
    p.again(operand("f32", (2,), bits("f32", [10.0, 20.0])), operand("f32", (1,), bits("f32", [-1.0])))
    p.end()


class Written:
    """A case as its text says it."""

    def __init__(self, text):
        self.values, self.gives, self.runs = [], [], [([], [])]
        for line in text.splitlines():
            word, _, rest = line.partition(" ")
            inputs, expected = self.runs[-1]
            if word == "in":
                if len(self.runs) == 1:
                    self.values.append(("in", len(inputs)))
                inputs.append(operand_spec(rest))
            elif word in ("const", "reshape", "do"):
                self.values.append((word, rest.split(" ")))
            elif word == "give":
                self.gives.append(int(rest))
            elif word in ("out", "error"):
                expected.append(line)
            elif word == "again":
                self.runs.append(([], []))

    def value(self, at, inputs, known):
        if at not in known:
            word, rest = self.values[at]
            if word == "in":
                known[at] = tensors.make(*inputs[rest])
            elif word == "const":
                known[at] = tensors.make(*operand_spec(" ".join(rest)))
            elif word == "reshape":
                of, dims = self.value(int(rest[0]), inputs, known), rest[1]
                known[at] = Tensor(of.dtype, operand_spec(f"f32 {dims} fill:0")[1], of.data)
            else:
                operands = [None if text == "-" else self.value(int(text), inputs, known) for text in rest[1:] if "=" not in text]
                known[at] = exact(rest[0], operands, dict(text.split("=") for text in rest[1:] if "=" in text))
        return known[at]

    def wrong(self):
        """What its text expects and exact.py does not give."""
        for inputs, expected in self.runs:
            known = {}
            outputs = [self.value(at, inputs, known) for at in self.gives or [len(self.values) - 1]]
            got = [f"out {out.dtype} {','.join(map(str, out.shape)) or '-'} " +
                   (out.bits_text() if " bits:" in line else f"sha256:{out.sha256()}") for out, line in zip(outputs, expected)]
            if got != expected or len(outputs) != len(expected):
                return f"{expected} against {got}"
        return None


def drawn(r, suite, index):
    """A chain with branches of matrices."""
    p, dtype = Pipeline(suite, f"pipeline/drawn_{index}"), FLOATS[index % 3]
    rows, n = r.randrange(1, 4), r.randrange(1, 5)

    def given(*shape, constant=True):
        tensor = values(r, dtype, shape)
        text = operand(dtype, shape, hexes(dtype, tensor.data))
        return p.constant(text) if constant else p.input(text)

    live = [(given(rows, n, constant=False), (rows, n))]
    for _ in range(r.randrange(1, 9)):
        x, (rows, n) = r.choice(live[-2:])
        kind = r.randrange(7)
        if kind == 0:
            to = r.randrange(1, 5)
            bias = given(to) if r.random() < 0.5 else None
            attrs = {"alpha": number(r), "activation": r.choice(ACTIVATIONS)}
            live.append((p.do("matmul", x, given(n, to), None, bias, **attrs), (rows, to)))
        elif kind == 1:
            pair = [x, given(*r.choice(((rows, n), (n,), (rows, 1), ())))]
            live.append((p.do(r.choice(shapes.BINARY), *(pair if r.random() < 0.5 else pair[::-1])), (rows, n)))
        elif kind == 2:
            others = [value for value, dims in live if dims == (rows, n)]
            live.append((p.do(r.choice(shapes.BINARY), x, r.choice(others)), (rows, n)))
        elif kind == 3:
            live.append((p.reshape(x, n, rows), (n, rows)))
        elif kind == 4:
            live.append((p.do("layernorm", x, given(n)), (rows, n)))
        else:
            live.append((p.do(r.choice(shapes.UNARY), x), (rows, n)))
    computed = [value for value, _ in live if not p.root(value).spec]
    if not computed:
        computed = [p.do("exp", live[-1][0])]
    p.give(*r.sample(computed, r.randrange(1, min(3, len(computed)) + 1)))
    dims = p.runs[0][0][1]
    p.again(operand(dtype, dims, hexes(dtype, values(r, dtype, dims).data)))
    p.end()


def refused(status, record):
    """Whether recording, or the second run, ends with this status, and with no other one."""
    outcomes = []
    for expect in (status, None, *{"invalid_argument", "shape_mismatch", "dtype_mismatch"} - {status}):
        p = Pipeline(Suite(), "pipeline/refused")
        ended = record(p, expect)
        outcome = False
        with suppress(AssertionError):
            p.end(None if ended else expect)
            outcome = True
        outcomes.append(outcome)
    return outcomes == [True, False, False, False]


def refusals():
    def shape(p, _):
        p.do("add", p.do("neg", p.input("f32 2 rand:?")), p.constant("f32 3 rand:?"))

    def dtype(p, _):
        p.do("add", p.do("neg", p.input("f32 2 rand:?")), p.constant("f16 2 rand:?"))

    def elements(p, _):
        p.reshape(p.do("neg", p.input("f32 2 rand:?")), 3)

    def attribute(p, _):
        p.do("neg", p.input("f32 2 rand:?"), alpha=attribute_text(1.0))

    def gives(p, _):
        p.give(p.reshape(p.constant("f32 2 rand:?"), 2, 1))

    def empty(p, _):
        pass

    def again(*texts):
        def record(p, expect):
            p.do("embedding", p.constant("f32 2 rand:?"), p.input("i32 2 bits:0000000000000001"))
            p.again(*texts, expect=expect)
            return True
        return record

    yield "shape_mismatch", shape
    yield "dtype_mismatch", dtype
    yield "shape_mismatch", elements
    yield "invalid_argument", attribute
    yield "invalid_argument", gives
    yield "invalid_argument", empty
    yield "invalid_argument", again()
    yield "dtype_mismatch", again("u32 2 bits:0000000000000001")
    yield "shape_mismatch", again("i32 1 bits:00000000")
    yield "invalid_argument", again("i32 2 bits:0000000000000002")


def pipeline_checks(r, count=150):
    """What is wrong of each check, or None."""
    suite = Suite()
    record_by_hand(Pipeline(suite, "pipeline/by_hand"))
    yield None if suite.files["pipeline"] == [BY_HAND] else f"by hand: {suite.files['pipeline'][0]}"
    for index in range(count):
        drawn(r, suite, index)
    for text in suite.files["pipeline"]:
        wrong = Written(text).wrong()
        yield wrong and f"{text}: {wrong}"
    for i, (status, record) in enumerate(refusals()):
        yield None if refused(status, record) else f"refusal {i} is not {status}"
