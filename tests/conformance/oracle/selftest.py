"""Cross-checks exact.py (integers and Fractions) against oracle.c. Prints 'N passed, N failed'.

A seeded PRNG of the standard library drives it, so every run checks the same values."""

import math
import random
import re
import sys
import time
from array import array
from math import prod
from pathlib import Path

import exact
import exact_functions
import exact_ops
import native
import shapes
import tensors
from selftest_ops import operation_cases
from selftest_pipelines import pipeline_checks
from tensors import DTYPES, FLOATS, Tensor, doubles

EDGES = [0x00000000, 0x00000001, 0x00000002, 0x007FFFFF, 0x007FFFFE, 0x00400000, 0x00800000, 0x00800001, 0x00FFFFFF,
         0x01000000, 0x0C800000, 0x1F800000, 0x20000000, 0x33800000, 0x34000000, 0x3F000000, 0x3F7FFFFF, 0x3F800000,
         0x3F800001, 0x3FFFFFFF, 0x40000000, 0x4B000000, 0x4B800000, 0x5F000000, 0x5F7FFFFF, 0x7E800000, 0x7F000000,
         0x7F7FFFFF, 0x7F7FFFFE, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FC12345]
EDGES += [edge | 0x80000000 for edge in EDGES]


class Report:
    passed = failed = 0

    def compare(self, what, expected, got, inputs):
        for i, (e, g) in enumerate(zip(expected, got)):
            if e == g:
                self.passed += 1
                continue
            self.failed += 1
            if self.failed <= 20:
                shown = " ".join(f"{column[i]:08x}" for column in inputs)
                print(f"FAIL {what} {shown}: exact {e:x}, native {g:x}")


def random_bits(r):
    kind = r.random()
    if kind < 0.1:
        return r.choice(EDGES)
    if kind < 0.2:
        return r.getrandbits(1) << 31 | r.randrange(0x00C00000)  # around the smallest normal
    if kind < 0.6:
        return r.getrandbits(1) << 31 | (127 + r.randrange(-30, 31)) << 23 | sparse(r)
    return r.getrandbits(32)


def sparse(r):
    """A fraction with few bits set, so that products end in ties."""
    return r.choice([0, 1, 0x400000, 0x7FFFFF, 1 << r.randrange(23), r.getrandbits(23), r.getrandbits(12) << 11])


def encode(sign, exponent, fraction):
    return sign << 31 | max(0, min(254, exponent)) << 23 | fraction


def fmaz_triple(r):
    kind = r.randrange(8)
    if kind == 0:
        return r.choice(EDGES), r.choice(EDGES), r.choice(EDGES)
    if kind == 1:
        return random_bits(r), random_bits(r), random_bits(r)
    xa, sa, sb, sc = r.randrange(1, 255), r.getrandbits(1), r.getrandbits(1), r.getrandbits(1)
    fa, fb, fc = sparse(r), sparse(r), sparse(r)
    if kind in (2, 3):  # product and sum near 2^-126
        target = r.randrange(-3, 4) if kind == 2 else r.randrange(-30, 30)
        xb = 127 + 1 + target - (xa - 127) - r.randrange(2)
        xb = xb if 1 <= xb <= 254 else r.randrange(1, 255)
        return encode(sa, xa, fa), encode(sb, xb, fb), encode(sc, r.randrange(0, 5), fc)
    xb = max(1, min(254, 254 - xa + r.randrange(-60, 61)))
    a, b = encode(sa, xa, fa), encode(sb, xb, fb)
    if kind in (4, 5):  # c at a chosen distance from the product: ties and sticky bits
        near = xa + xb - 127 + r.choice([0, 1, -1, 22, 23, 24, 25, -22, -23, -24, -25, -26, r.randrange(-90, 91)])
        return a, b, encode(sc, near, fc)
    # cancellation: c is minus the rounded product, perhaps off by an ulp
    c = exact.mul(a, b) ^ 0x80000000
    if kind == 7 and not exact.is_nan(c) and not exact.is_inf(c):
        c = (c + r.choice([-2, -1, 1, 2])) & 0xFFFFFFFF
    return a, b, c


def check_fmaz(report, r, count):
    columns = [array("I", column) for column in zip(*(fmaz_triple(r) for _ in range(count)))]
    out = native.empty(4, count)
    native.call("o_fmaz", count, *columns, out)
    report.compare("fmaz", [exact.fmaz(*triple) for triple in zip(*columns)], out, columns)


def binary_pair(r):
    a = random_bits(r)
    if r.random() < 0.5:
        return a, random_bits(r)
    x = (a >> 23 & 255) + r.randrange(-26, 27)  # close exponents: rounding and cancellation in add and sub
    return a, encode(r.getrandbits(1), x, sparse(r))


def check_primitives(report, r, count):
    pairs = [binary_pair(r) for _ in range(count)]
    pairs += [(a, b) for a in EDGES for b in EDGES]
    a, b = (array("I", column) for column in zip(*pairs))
    for name, function in exact_functions.BINARY.items():
        out = native.empty(4, len(pairs))
        native.call("o_binary", native.OF_TWO[name], len(pairs), a, b, out)
        report.compare(name, [function(x, y) for x, y in pairs], out, (a, b))
    out = native.empty(4, len(pairs))
    native.call("o_unary", native.KIND["sqrt"], len(a), a, native.as_float(0), native.as_float(0), out)
    report.compare("sqrt", [exact.sqrt(x) for x in a], out, (a,))


def function_inputs(r, count):
    thresholds = [0x3F6B851F, 0x3F547AE1, 0x3F7F4000, 0x42D20000, 0x42B20000, 0x42B17218, 0x42AEAC50, 0x42CFF1B5, 0x407CCCCD, 0x41A00000, 0x41200000,
                  0x3F3504F3, 0x3FB504F3, 0x3F800000, 0x3F000000, 0x3FC00000, 0x40200000, 0x4A800000, 0x4B000000, 0x00800000, 0x3F317218, 0x40C00000, 0x34000000,
                  0x45C80000, 0x3F490FDB, 0x3FC90FDB, 0x40490FDB, 0x4B490FDB, 0x6F79BE45, 0x41900000, 0x3EB17218, 0x3F7FFFFF, 0x3ED413CD]
    inputs = list(EDGES)
    for threshold in thresholds:
        inputs += [(threshold + delta) | sign for delta in range(-8, 9) for sign in (0, 0x80000000)]
    while len(inputs) < count:
        kind = r.random()
        if kind < 0.7:
            inputs.append(r.getrandbits(1) << 31 | (127 + r.randrange(-12, 8)) << 23 | r.getrandbits(23))
        else:
            inputs.append(random_bits(r))
    return array("I", inputs)


def check_functions(report, r, count):
    functions = {**exact_functions.UNARY, **exact_functions.ACTIVATIONS}
    for name, function in functions.items():
        x = function_inputs(r, count)
        out = native.empty(4, len(x))
        native.call("o_unary", native.KIND[name], len(x), x, native.as_float(0), native.as_float(0), out)
        report.compare(name, [function(element) for element in x], out, (x,))


def ulp(x):
    return math.ldexp(1.0, max(math.frexp(x)[1] - 1, -126) - 23)


def check_accuracy(report, r, count):
    """Both halves could share a slip of the pen; the true value and the contract's error bounds can't."""
    functions = (("exp", math.exp, 0.99), ("log", math.log, 0.84), ("tanh", math.tanh, 1.08), ("erf", math.erf, 0.95),
                 ("sigmoid", lambda x: 1 / (1 + math.exp(-x)), 0.94), ("sin", math.sin, 0.84), ("cos", math.cos, 0.84),
                 ("log1p", math.log1p, 0.85), ("expm1", math.expm1, 1.06))
    for name, function, bound in functions:
        x = array("I", (r.getrandbits(1) << 31 | (127 + r.randrange(-24, 7)) << 23 | r.getrandbits(23) for _ in range(count)))
        out = native.empty(4, count)
        native.call("o_unary", native.KIND[name], count, x, native.as_float(0), native.as_float(0), out)
        worst = 0.0
        for element, got in zip(array("f", x.tobytes()), array("f", out.tobytes())):
            if name == "log" and element < 0 or name == "log1p" and element <= -1 or abs(got) == math.inf:
                continue
            true = function(element)
            worst = max(worst, abs(got - true) / ulp(true))
        report.passed += worst <= bound
        if worst > bound:
            report.failed += 1
            print(f"FAIL {name}: error of {worst:.3f} ulp, the contract says {bound}")


def check_constants(report):
    """Every constant in the contract's table of functions stands in both sources."""
    here = Path(__file__).resolve().parent
    contract = (here.parents[2] / "docs" / "contract.md").read_text(encoding="utf-8")
    # The angle of random tensors has its own oracle, in bindings/python/tests/test_random.py.
    contract = re.sub(r"## Random tensors.*?(?=\n## )", "", contract[contract.index("## Functions"):], flags=re.DOTALL)
    constants = re.findall(r"\b[0-9a-f]{8}\b", contract)
    for source in ("oracle.c", "exact_functions.py"):
        text = (here / source).read_text(encoding="utf-8").lower()
        for constant in constants:
            report.passed += constant in text
            if constant not in text:
                report.failed += 1
                print(f"FAIL {source}: {constant} of the contract is missing")


def check_casts(report, r):
    for source in DTYPES:
        width = 8 * tensors.WIDTH[source]
        values = list(range(1 << 16)) if width == 16 else cast_inputs(r, source, width)
        tensor = Tensor(source, (len(values),), values)
        for target in DTYPES:
            got = native.run("cast", [tensor], {"dtype": target})
            expected = [exact.cast(source, target, element) for element in values]
            report.compare(f"cast {source} {target}", expected, got.data, (tensor.data,))


def cast_inputs(r, source, width):
    values = [r.getrandbits(width) >> r.randrange(width) for _ in range(1500)]
    values += [-element & ((1 << width) - 1) for element in values]
    if source == "f64":
        values += doubles(6000, 5)
    if source == "f32":
        values += EDGES + [random_bits(r) for _ in range(2000)]
        # near every binary16 and bfloat16 rounding boundary, and near integers that saturate
        for _ in range(3000):
            x = r.randrange(100, 146) if r.random() < 0.7 else r.randrange(1, 192)
            fraction = (r.getrandbits(10) << 13) + r.choice([0, 0x1000, 0x0FFF, 0x1001, 0x8000, 0x7FFF, 0x8001])
            values.append(encode(r.getrandbits(1), x, fraction & 0x7FFFFF))
    return values


def check_generators(report):
    texts = [(dtype, f"rand:{seed}:{e}") for dtype in FLOATS for seed in (1, 2**64 - 1) for e in (-4, 0, 3, 15)]
    texts += [(dtype, f"rand:5:{e}") for dtype in ("f32", "bf16") for e in (-100, 100)]
    texts += [(dtype, f"wild:{seed}") for dtype in FLOATS for seed in (3, 2**63)]
    texts += [("bool", f"ids:{seed}:2") for seed in (7, 8)]
    texts += [("u8", f"ids:{seed}:{n}") for seed in (7, 8) for n in (1, 10, 256)]
    texts += [(dtype, f"ids:{seed}:{n}") for dtype in ("i32", "i64", "u32") for seed in (7, 8) for n in (1, 10, 2**31)]
    for dtype, text in texts:
        expected, got = tensors.make(dtype, (300,), text), native.make(dtype, (300,), text)
        report.compare(f"{dtype} {text}", expected.data, got.data, (expected.data,))


def check_operations(report, r):
    for op, operands, attrs in operation_cases(r):
        try:
            expected = exact_ops.run(op, operands, attrs)
        except shapes.Rejected as rejected:
            print(f"FAIL {op} {attrs}: {rejected}")
            report.failed += 1
            continue
        got = native.run(op, operands, attrs)
        assert len(expected) == prod(got.shape)
        wrong = sum(e != g for e, g in zip(expected, got.data))
        report.passed += wrong == 0
        report.failed += wrong != 0
        if wrong:
            described = " ".join(f"{t.dtype}{list(t.shape)}" if t else "none" for t in operands)
            print(f"FAIL {op} {described} {attrs}: {wrong} of {len(expected)} elements differ")


def check_pipelines(report, r):
    for wrong in pipeline_checks(r):
        report.passed += wrong is None
        report.failed += wrong is not None
        if wrong:
            print(f"FAIL {wrong}")


def main():
    report, r = Report(), random.Random(20240601)
    for name, check in (
        ("generators", lambda: check_generators(report)),
        ("fmaz", lambda: check_fmaz(report, r, 400_000)),
        ("primitives", lambda: check_primitives(report, r, 30_000)),
        ("functions", lambda: check_functions(report, r, 8_000)),
        ("accuracy", lambda: check_accuracy(report, r, 100_000)),
        ("constants", lambda: check_constants(report)),
        ("casts", lambda: check_casts(report, r)),
        ("operations", lambda: check_operations(report, r)),
        ("pipelines", lambda: check_pipelines(report, r)),
    ):
        started, before = time.monotonic(), report.passed + report.failed
        check()
        print(f"{name}: {report.passed + report.failed - before} checks, {time.monotonic() - started:.1f} s")
    print(f"{report.passed} passed, {report.failed} failed")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
