"""Collects cases, computes what they must return and writes them in the format of FORMAT.md.

Expectations come from oracle.c; where the work is small exact.py computes them too and a difference aborts."""

from math import prod
from zlib import crc32

import exact_ops
import native
import shapes
import tensors
from tensors import WIDTH, float_bits

HEADER = "format 1 adead-contract-2"
INLINE = 64  # longer results are hashed, longer inputs generated
EXACT_WORK = 60000  # rough count of exact primitives per case (a few microseconds each)
FUNCTION_COST = 25


class Suite:
    def __init__(self):
        self.files = {}
        self.ids = set()
        self.counts = {"cases": 0, "exact": 0, "errors": 0}

    def case(self, name, op, operands, expect=None, **attrs):
        """name: 'stem/name'. operands: 'dtype shape data' texts or 'none'. expect: an error status, for error cases.

        A '?' in a data text becomes a seed that depends on the case's name and the operand's place, so that adding a
        case never changes another one.
        Attribute values: words and ints as they are, floats become binary32, lists comma-separated."""
        attrs = {key: attribute_text(value) for key, value in attrs.items()}
        specs = [None if text == "none" else operand_spec(text.replace("?", own_seed(name, i)))
                 for i, text in enumerate(operands)]
        lines = [f"op {op}"]
        lines += [f"attr {key} {value}" for key, value in attrs.items()]
        lines += ["in none" if spec is None else "in {} {} {}".format(spec[0], shape_text(spec[1]), spec[2])
                  for spec in specs]
        dtypes = {spec[0] for spec in specs if spec}
        if expect is None:
            result = self.compute(name, op, specs, attrs)
            dtypes.add(result.dtype)
            data = result.bits_text() if len(result.data) <= INLINE else f"sha256:{result.sha256()}"
            lines.append(f"out {result.dtype} {shape_text(result.shape)} {data}")
            sizes = [(spec[0], spec[1]) for spec in specs if spec] + [(result.dtype, result.shape)]
            large = sum(WIDTH[dtype] * prod(shape) for dtype, shape in sizes) > 64 << 20
        else:
            self.confirm_error(name, op, specs, attrs, expect)
            dtypes |= {attrs["dtype"]} & {"f16", "bf16", "i64"} if "dtype" in attrs else set()
            lines.append(f"error {expect}")
            large = False
        needs = needed(op, specs[0][0], attrs) if specs and specs[0] else set()
        self.write(name, lines, dtypes, large, errors=expect is not None, needs=needs)

    def write(self, name, lines, dtypes, large=False, errors=False, needs=frozenset()):
        """Adds a case: its lines between `case` and what it requires."""
        assert name not in self.ids and set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_.-/"), name
        self.ids.add(name)
        lines = [f"case {name}", *lines, *(f"requires {word}" for word in ("f16", "bf16", "i64") if word in dtypes)]
        lines += ["requires large"] if large else []
        lines += [f"requires {word}" for word in sorted(needs)]
        lines.append("end")
        assert all(len(line) < 262144 for line in lines), name
        self.files.setdefault(name.split("/")[0], []).append("\n".join(lines) + "\n")
        self.counts["cases"] += 1
        self.counts["errors"] += errors

    def compute(self, name, op, specs, attrs):
        operands = [spec and native.make(*spec) for spec in specs]
        result = native.run(op, operands, attrs)
        if work(op, specs, result.shape) <= EXACT_WORK:
            plain = [spec and tensors.make(*spec) for spec in specs]
            for spec, mine, theirs in zip(specs, plain, operands):
                assert mine is None or mine.data == theirs.data, f"{name}: input {spec} differs"
            exact = exact_ops.run(op, plain, attrs)
            assert exact == result.data.tolist(), f"{name}: exact.py and oracle.c differ"
            self.counts["exact"] += 1
        return result

    def confirm_error(self, name, op, specs, attrs, expect):
        """The hand-written status must be what the checks of shapes.py find."""
        operands = [spec and tensors.make(*spec) for spec in specs]
        try:
            exact_ops.run(op, operands, attrs)
        except shapes.Rejected as rejected:
            assert rejected.status == expect, f"{name}: {rejected}, expected {expect}"
        else:
            raise AssertionError(f"{name}: no error, expected {expect}")

    def texts(self):
        """File name -> contents."""
        return {f"{stem}.txt": HEADER + "\n\n" + "\n".join(cases) for stem, cases in self.files.items()}


def needed(op, dtype, attrs):
    """What an operation needs, by its name, its first operand's dtype (None if unknown) and attributes, that a minimal library lacks."""
    if op == "attention" and attrs.get("precision", "f32") != "f32":
        return {"integers"}
    return {"integers"} if shapes.is_whole(op, dtype) else {"quantized"} if op in shapes.QUANTIZED else set()


def own_seed(name, place):
    return str(crc32(f"{name}#{place}".encode()) % 100000)


def attribute_text(value):
    if isinstance(value, float):
        return f"0x{float_bits(value):08x}"
    if isinstance(value, (list, tuple)):
        return ",".join(str(element) for element in value)
    return str(value)


def operand_spec(text):
    dtype, shape, data = text.split(" ")
    return dtype, () if shape == "-" else tuple(int(size) for size in shape.split(",")), data


def shape_text(shape):
    return ",".join(str(size) for size in shape) or "-"


def operand(dtype, shape, data):
    return f"{dtype} {shape_text(shape)} {data}"


def work(op, specs, shape):
    """Roughly how many exact primitives the case takes."""
    out, inputs = prod(shape), [spec[1] for spec in specs if spec]
    elements = sum(prod(dims) for dims in inputs)
    if op == "matmul":
        depth = max(prod(inputs[0]) // max(1, prod(inputs[0][:-1])), inputs[0][-2] if len(inputs[0]) > 1 else 0)
        return out * (depth + FUNCTION_COST)
    if op == "attention":
        (s_q, depth), (s_k, d_v) = inputs[0][-2:], inputs[2][-2:]
        return prod(inputs[0][:-2]) * s_q * s_k * (depth + d_v + FUNCTION_COST)
    if op == "ffn":
        rows = prod(inputs[0][:-1])
        hidden, width = [dims for dims in inputs if len(dims) == 2][-1]
        return rows * (hidden * (inputs[0][-1] + FUNCTION_COST) + hidden * width)
    if op == "quantized_matmul":
        return out * (inputs[0][-1] // 8 + FUNCTION_COST)
    if op in shapes.UNARY or op in ("gelu", "clamp", "softmax"):
        return out * FUNCTION_COST
    return elements * 3 + out
