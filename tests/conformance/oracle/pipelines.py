"""Pipelines (docs/pipelines.md): values by number, each an input, a constant or computed of earlier ones.

What one gives is what its operations give one after another, each result rounded to its dtype: nothing here is fused. Like
single operations it is computed by oracle.c and, where that is little work, by exact.py."""

from math import prod

import exact_ops
import native
import shapes
import tensors
from suite import EXACT_WORK, INLINE, attribute_text, needed, operand_spec, own_seed, shape_text, work
from tensors import Tensor


class Node:
    """A value. `spec` of what is given: dtype, shape, data. `op` is 'reshape' for a value in another shape."""

    def __init__(self, kind, spec=None, op=None, operands=(), attrs=None, shape=None):
        self.kind, self.spec, self.op, self.operands, self.attrs = kind, spec, op, operands, attrs or {}
        self.shape = shape


def exact(op, operands, attrs):
    described = [operand and (operand.dtype, operand.shape) for operand in operands]
    dtype, shape = shapes.result(op, described, attrs)
    return Tensor(dtype, shape, exact_ops.run(op, operands, attrs))


def same_elements(before, after):
    if prod(before) != prod(after):
        shapes.bad_shape(f"{before} can't become {after}")
    if len(after) > shapes.MAX_RANK:
        shapes.bad_shape("rank above 8")


class Pipeline:
    """Records a case and writes it with `end`. Values are their numbers; the first error ends the recording."""

    def __init__(self, suite, name):
        self.suite, self.name = suite, name
        self.nodes, self.outputs = [], []
        self.runs = [[]]  # the inputs of each, as specs
        self.statuses = {}  # of runs that fail

    # Recording

    def input(self, text):
        self.runs[0].append(self.spec(text, len(self.nodes)))
        return self.add(Node("in", self.runs[0][-1]))

    def constant(self, text):
        return self.add(Node("const", self.spec(text, len(self.nodes))))

    def do(self, op, *operands, **attrs):
        attrs = {key: attribute_text(value) for key, value in attrs.items()}
        return self.add(Node("do", op=op, operands=operands, attrs=attrs))

    def reshape(self, value, *shape):
        return self.add(Node("do", op="reshape", operands=(value,), shape=shape))

    def give(self, *values):
        self.outputs += values

    def again(self, *texts, expect=None):
        """Another run with other inputs."""
        if expect:
            self.statuses[len(self.runs)] = expect
        self.runs.append([self.spec(text, f"{len(self.runs)}.{i}") for i, text in enumerate(texts)])

    def spec(self, text, place):
        return operand_spec(text.replace("?", own_seed(self.name, place)))

    def add(self, node):
        self.nodes.append(node)
        return len(self.nodes) - 1

    # What it gives

    def described(self):
        """Dtype and shape of each value; raises where an operation or an output is refused."""
        all = []
        for node in self.nodes:
            if node.spec:
                all.append(node.spec[:2])
            elif node.op == "reshape":
                dtype, shape = all[node.operands[0]]
                same_elements(shape, node.shape)
                all.append((dtype, node.shape))
            else:
                all.append(shapes.result(node.op, [None if i is None else all[i] for i in node.operands], node.attrs))
        for output in self.given_out():
            if self.root(output).spec:
                shapes.invalid("an output that is not computed")
        return all

    def root(self, i):
        while self.nodes[i].op == "reshape":
            i = self.nodes[i].operands[0]
        return self.nodes[i]

    def given_out(self):
        """The values that come out: without any said, the last one."""
        if not self.nodes:
            shapes.invalid("an empty pipeline")
        return self.outputs or [len(self.nodes) - 1]

    def check_inputs(self, specs):
        if len(specs) != len(self.runs[0]):
            shapes.invalid("another number of inputs")
        for spec, recorded in zip(specs, self.runs[0]):
            if spec[0] != recorded[0]:
                shapes.bad_dtype("an input of another dtype")
            if spec[1] != recorded[1]:
                shapes.bad_shape("an input of another shape")

    def evaluate(self, specs, make, run):
        """All values of a run with these inputs; raises where a run fails."""
        self.check_inputs(specs)
        values, given = [], iter(specs)
        for node in self.nodes:
            if node.kind == "in":
                values.append(make(*next(given)))
            elif node.spec:
                values.append(make(*node.spec))
            elif node.op == "reshape":
                of = values[node.operands[0]]
                values.append(Tensor(of.dtype, node.shape, of.data))
            else:
                values.append(run(node.op, [None if i is None else values[i] for i in node.operands], node.attrs))
        return values

    def work(self):
        all = self.described()
        operations = [(node, shape) for node, (_, shape) in zip(self.nodes, all) if node.kind == "do" and node.op != "reshape"]
        return sum(work(node.op, [None if i is None else all[i] for i in node.operands], shape) for node, shape in operations)

    def compute(self, specs):
        """The outputs of a run."""
        values = self.evaluate(specs, native.make, native.run)
        if self.work() * len(self.runs) <= EXACT_WORK:
            for i, (theirs, mine) in enumerate(zip(values, self.evaluate(specs, tensors.make, exact))):
                assert mine.data == theirs.data, f"{self.name}: exact.py and oracle.c differ in value {i}"
            self.suite.counts["exact"] += 1
        return [values[i] for i in self.given_out()]

    # What is written

    def line(self, node):
        if node.spec:
            return f"{node.kind} {node.spec[0]} {shape_text(node.spec[1])} {node.spec[2]}"
        if node.op == "reshape":
            return f"reshape {node.operands[0]} {shape_text(node.shape)}"
        operands = ["-" if i is None else str(i) for i in node.operands]
        return " ".join(["do", node.op, *operands, *(f"{key}={value}" for key, value in node.attrs.items())])

    def expectation(self, run):
        try:
            outputs = self.compute(self.runs[run])
        except shapes.Rejected as rejected:
            assert rejected.status == self.statuses.get(run), f"{self.name}: {rejected} in run {run}"
            return [f"error {rejected.status}"]
        assert run not in self.statuses, f"{self.name}: no error in run {run}"
        return ["out {} {} {}".format(out.dtype, shape_text(out.shape), out.bits_text() if len(out.data) <= INLINE
                                      else f"sha256:{out.sha256()}") for out in outputs]

    def end(self, expect=None):
        """Computes what it gives and writes it. `expect`: the status where recording or compiling fails."""
        lines = ["op pipeline", *(self.line(node) for node in self.nodes), *(f"give {value}" for value in self.outputs)]
        specs = [spec for run in self.runs for spec in run] + [node.spec for node in self.nodes if node.spec]
        dtypes, needs = {spec[0] for spec in specs}, set().union(*(needed(node.op, None, node.attrs) for node in self.nodes))
        try:
            all = self.described()
            dtypes |= {dtype for dtype, _ in all}
            needs = set().union(*(needed(node.op, all[node.operands[0]][0], node.attrs) for node in self.nodes if node.operands))
        except shapes.Rejected as rejected:
            assert rejected.status == expect and len(self.runs) == 1, f"{self.name}: {rejected}, expected {expect}"
            lines.append(f"error {expect}")
        else:
            assert expect is None, f"{self.name}: no error, expected {expect}"
            for i, run in enumerate(self.runs):
                if i:
                    lines.append("again")
                    lines += [f"in {dtype} {shape_text(shape)} {data}" for dtype, shape, data in run]
                lines += self.expectation(i)
        self.suite.write(self.name, lines, dtypes, errors=bool(expect or self.statuses), needs=needs)
