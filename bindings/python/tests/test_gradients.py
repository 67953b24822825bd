"""Gradients of single operations against the oracle's bits (tests/conformance/gradients.txt)."""

import adead
import conformance
import pytest

TEXT = (conformance.CASES.parent / "gradients.txt").read_text(encoding="ascii")


def cases():
    header, *blocks = TEXT.split("\ncase ")
    assert header.strip() == "format 1 adead-gradients"
    for block in blocks:
        name, *lines = [line for line in block.splitlines() if line and line != "end"]
        yield pytest.param([line.partition(" ")[::2] for line in lines], id=name)


@pytest.fixture(scope="module")
def context():
    return adead.Context("cpu")


@pytest.mark.parametrize("lines", list(cases()))
def test_bits(context, lines):
    pipeline, values, given, expected, attributes = context.pipeline(), [], [], [], {}
    for word, rest in lines:
        if word == "op":
            operation = rest
        elif word == "attr":
            attributes.update([rest.split(" ", 1)])
        elif word == "in" and rest == "none":
            values.append(None)
        elif word == "in":
            given.append(conformance.operand(rest))
            values.append(pipeline.input(given[-1].shape, given[-1].dtype).value)
        elif word == "g":
            constant = pipeline.constant(conformance.operand(rest)).value
        else:
            number, rest = rest.split(" ", 1)
            expected.append((int(number), rest))
    others = (values[1:],) if operation == "concat" else values[1:]
    getattr(pipeline.switch(values[0]), operation)(*others, **attributes)
    # The loss is SUM(y·g).
    loss = pipeline.mul(constant).sum(axis="all").value
    for gradient in pipeline.switch(loss).gradients([values[number] for number, _ in expected]):
        # A copy, as g itself may be the gradient, and a pipeline gives no constant.
        pipeline.switch(gradient).scale(1.0).output()
    found = pipeline.compile().run(*given)
    assert conformance.check([f"out {rest}" for _, rest in expected], found, None) is None
