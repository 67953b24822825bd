"""Reads the conformance cases (tests/conformance/FORMAT.md) and runs them through the Python API.

    python conformance.py                       on the CPU
    python conformance.py --device vulkan:0     on that device; several times for several
    python conformance.py matmul/ softmax/      the cases whose id begins so
    python conformance.py --list                the ids of the cases
"""

import argparse
import hashlib
import pathlib
import sys

import numpy

import adead

CASES = pathlib.Path(__file__).resolve().parents[3] / "tests/conformance/cases"

# The types that hold the elements' bits.
BITS = {"f32": "<u4", "f16": "<u2", "bf16": "<u2", "i32": "<u4", "i64": "<u8", "u32": "<u4", "bool": "u1", "u8": "u1"}
BITS |= {"f64": "<u8"}
WILD = {
    "f32": "00000000 80000000 3f800000 bf800000 7f800000 ff800000 7fc00000 ffc12345 7f800001 00000001 80000001 007fffff"
    " 00800000 80800000 7f7fffff ff7fffff",
    "f16": "0000 8000 3c00 bc00 7c00 fc00 7e00 fe01 7c01 0001 8001 03ff 0400 8400 7bff fbff",
    "bf16": "0000 8000 3f80 bf80 7f80 ff80 7fc0 ffc1 7f81 0001 8001 007f 0080 8080 7f7f ff7f",
}


class Case:
    """A case, whose operands are not made yet."""

    def __init__(self, name):
        self.id = name
        self.op = ""
        self.attributes = {}
        self.inputs = []
        self.expected = ""
        self.requires = []
        self.pipeline = None


class Recorded:
    """A case's pipeline and its runs: the inputs, and the lines of the expected results."""

    def __init__(self):
        self.values = []
        self.outputs = []
        self.runs = [([], [])]

    def line(self, word, rest):
        """Reads a line; returns whether it is valid."""
        inputs, expected = self.runs[-1]
        if word == "in":
            if len(self.runs) == 1:
                self.values.append((word, len(inputs)))
            inputs.append(rest)
        elif word == "const":
            self.values.append((word, operand(rest)))
        elif word == "reshape":
            of, shape = rest.split(" ")
            self.values.append((word, (int(of), shape_of(shape))))
        elif word == "do":
            op, *words = rest.split(" ")
            operands = [None if word == "-" else int(word) for word in words if "=" not in word]
            self.values.append((word, (op, operands, dict(word.split("=") for word in words if "=" in word))))
        elif word == "give":
            self.outputs.append(int(rest))
        elif word in ("out", "error"):
            expected.append(f"{word} {rest}")
        elif word == "again":
            self.runs.append(([], []))
        else:
            return False
        return True

    def record(self, context, executed=None):
        """Records the pipeline. Its inputs become inputs, or constants if there are tensors for
        them."""
        pipeline, values = context.pipeline(), []
        for word, what in self.values:
            if word == "in" and executed is None:
                dtype, shape, _ = self.runs[0][0][what].split(" ", 2)
                pipeline.input(shape_of(shape), dtype)
            elif word == "in":
                pipeline.constant(executed[what])
            elif word == "const":
                pipeline.constant(what)
            elif word == "reshape":
                pipeline.switch(values[what[0]]).reshape(what[1])
            else:
                op, numbers, attributes = what
                operands = [None if number is None else values[number] for number in numbers]
                # The pipeline's value is the first operand. For concat, the others are one
                # sequence.
                others = (operands[1:],) if op == "concat" else operands[1:]
                getattr(pipeline.switch(operands[0]), op)(*others, **attributes)
            values.append(pipeline.value)
        for output in self.outputs:
            pipeline.switch(values[output]).output()
        return pipeline

    def fits(self, inputs):
        """Returns whether inputs are as recorded; other ones need another pipeline."""
        described = [[text.rsplit(" ", 1)[0] for text in texts] for texts in (inputs, self.runs[0][0])]
        return described[0] == described[1]

    def run(self, context):
        """Compiles, runs and executes it. Returns what is wrong; None if nothing is."""
        compiled, refused = attempt(lambda: self.record(context).compile(), (adead.Error, TypeError))
        for number, (texts, expected) in enumerate(self.runs):
            inputs = [operand(text) for text in texts]
            result, error = (None, refused) if refused else attempt(lambda: compiled.run(*inputs))
            wrong = check(expected, result, error)
            if wrong is not None:
                return f"run {number}, compiled: {wrong}"
            if self.fits(texts):
                again = attempt(lambda: self.record(context, inputs).execute(), (adead.Error, TypeError))
                wrong = check(expected, *again)
                if wrong is not None:
                    return f"run {number}, executed: {wrong}"
        return None


def parse(path):
    """Returns the cases of a file."""
    case, cases = None, []
    with open(path, encoding="ascii") as lines:
        header = next(lines).rstrip("\n")
        if header != f"format 1 {adead.CONTRACT}":
            raise ValueError(f"{path}: it begins with '{header}'")
        for number, line in enumerate(lines, 2):
            line = line.rstrip("\n")
            if not line or line.startswith("#"):
                continue
            word, _, rest = line.partition(" ")
            if word == "case" and case is None:
                case = Case(rest)
            elif case is None:
                raise ValueError(f"{path}:{number}: '{line}' makes no sense here")
            elif word == "op":
                case.op = rest
                case.pipeline = Recorded() if rest == "pipeline" else None
            elif word == "requires":
                case.requires.append(rest)
            elif word == "end":
                cases.append(case)
                case = None
            elif case.pipeline:
                if not case.pipeline.line(word, rest):
                    raise ValueError(f"{path}:{number}: '{line}' makes no sense here")
            elif word == "attr":
                name, _, value = rest.partition(" ")
                case.attributes[name] = value
            elif word == "in":
                case.inputs.append(rest)
            elif word in ("out", "error"):
                case.expected = line
            else:
                raise ValueError(f"{path}:{number}: '{line}' makes no sense here")
    if case is not None:
        raise ValueError(f"{path} ends inside a case")
    return cases


def load():
    """Returns every case of every file, in the order of names."""
    return [case for path in sorted(CASES.glob("*.txt")) for case in parse(path)]


def splitmix64(seed, n):
    z = numpy.arange(1, n + 1, dtype=numpy.uint64)
    z *= numpy.uint64(0x9E3779B97F4A7C15)
    z += numpy.uint64(seed % 2**64)
    z ^= z >> numpy.uint64(30)
    z *= numpy.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> numpy.uint64(27)
    z *= numpy.uint64(0x94D049BB133111EB)
    z ^= z >> numpy.uint64(31)
    return z


def rand(dtype, n, seed, exponent):
    z = splitmix64(seed, n)
    shift, half = {"f32": (40, 23), "f16": (53, 10), "bf16": (56, 7)}[dtype]
    # Exact: the number has few bits, and its exponent fits in f64.
    values = ((z >> numpy.uint64(shift)).astype(numpy.float64) - 2.0**half) * 2.0 ** (exponent - half)
    if dtype == "bf16":
        return (values.astype(numpy.float32).view(numpy.uint32) >> 16).astype("<u2").tobytes()
    return values.astype({"f32": "<f4", "f16": "<f2"}[dtype]).tobytes()


def wild(dtype, n, seed):
    z = splitmix64(seed, n)
    table = numpy.array([int(word, 16) for word in WILD[dtype].split()], dtype=numpy.uint64)
    bits = z >> numpy.uint64(64 - 8 * numpy.dtype(BITS[dtype]).itemsize)
    special = table[((z >> numpy.uint64(2)) & numpy.uint64(15)).astype(numpy.intp)]
    return numpy.where(z & numpy.uint64(3), bits, special).astype(BITS[dtype]).tobytes()


def ids(dtype, n, seed, bound):
    z = splitmix64(seed, n)
    return (((z >> numpy.uint64(32)) * numpy.uint64(bound)) >> numpy.uint64(32)).astype(BITS[dtype]).tobytes()


def from_hex(dtype, text):
    digits = 2 * numpy.dtype(BITS[dtype]).itemsize
    values = [int(text[at : at + digits], 16) for at in range(0, len(text), digits)]
    return numpy.array(values, dtype=BITS[dtype]).tobytes()


def shape_of(text):
    return [] if text == "-" else [int(length) for length in text.split(",")]


def operand(text):
    """Makes the tensor that an `in` line describes; None for an absent one."""
    if text == "none":
        return None
    dtype, shape, data = text.split(" ", 2)
    shape = shape_of(shape)
    n = int(numpy.prod(shape, dtype=object))
    kind, _, rest = data.partition(":")
    numbers = rest.split(":")
    if kind == "bits":
        elements = from_hex(dtype, rest)
    elif kind == "fill":
        elements = from_hex(dtype, rest) * n
    elif kind == "rand":
        elements = rand(dtype, n, int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0)
    elif kind == "wild":
        elements = wild(dtype, n, int(numbers[0]))
    elif kind == "ids":
        elements = ids(dtype, n, int(numbers[0]), int(numbers[1]))
    else:
        raise ValueError(f"data '{data}'")
    return adead.Tensor.frombytes(elements, dtype, shape)


def to_hex(dtype, elements):
    digits = 2 * numpy.dtype(BITS[dtype]).itemsize
    return "".join(f"{int(bits):0{digits}x}" for bits in numpy.frombuffer(elements, dtype=BITS[dtype]))


def attempt(call, errors=adead.Error):
    """Returns the result of a call, and the error that it raises."""
    try:
        return call(), None
    except errors as error:
        return None, error


def check(expected, result, error):
    """Compares a tensor, or a tuple of several, with `expected`: a line for each, or an error's
    line. Returns what is wrong; None if nothing is."""
    if error is not None:
        # Python itself raises an error for a parameter that a pipeline's method does not have.
        code = error.code if isinstance(error, adead.Error) else "invalid_argument"
        return None if expected == [f"error {code}"] else f"expected {expected}, got {error} ({code})"
    results = result if isinstance(result, tuple) else (result,)
    if len(results) != len(expected) or expected[0].startswith("error"):
        return f"expected {expected}, got {result!r}"
    wrong = [check_tensor(*line.split(" ")[1:], tensor) for line, tensor in zip(expected, results)]
    return next((text for text in wrong if text is not None), None)


def check_tensor(dtype, shape, value, result):
    if result.dtype != dtype or list(result.shape) != shape_of(shape):
        return f"expected {dtype} {shape}, got {result!r}"
    kind, _, value = value.partition(":")
    if kind == "sha256":
        got = hashlib.sha256(memoryview(result.tobytes())).hexdigest()
    elif kind == "bits":
        got = to_hex(dtype, result.tobytes())
    else:
        raise ValueError(f"expectation '{kind}'")
    return None if got == value else f"expected {value}, got {got}"


def run(context, case):
    """Runs a case and returns what is wrong; None if nothing is."""
    if case.pipeline:
        return case.pipeline.run(context)
    operands = [operand(text) for text in case.inputs]
    return check([case.expected], *attempt(lambda: context.run(case.op, operands, **case.attributes)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true", help="print the ids instead of running them")
    parser.add_argument("--device", action="append", help="on this device; several times for several")
    parser.add_argument("prefixes", nargs="*", help="only cases whose id begins so")
    arguments = parser.parse_args()
    if sys.byteorder != "little":
        sys.exit("the runner reads and writes elements as little-endian machines have them")
    cases = load()
    if arguments.prefixes:
        cases = [case for case in cases if case.id.startswith(tuple(arguments.prefixes))]
    if not cases:
        sys.exit("there is no such case")
    if arguments.list:
        print("\n".join(case.id for case in cases))
        return
    total = 0
    for device in arguments.device or ["cpu"]:
        context, failed = adead.Context(device), 0
        for case in cases:
            wrong = run(context, case)
            if wrong is not None:
                failed += 1
                print(f"FAIL {case.id}: {wrong}")
        print(f"{device}: {len(cases)} ran, {failed} failed, 0 skipped")
        total += failed
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    main()
