"""``quantize``: bytes of the oracle of tests/text, shapes, errors."""

import pathlib

import adead
import numpy
import pytest

from adead_models import quantize

BLOCKS = pathlib.Path(__file__).resolve().parents[3] / "tests/text/blocks.txt"


def test_bytes_are_those_of_the_oracle():
    for line in BLOCKS.read_text().splitlines():
        name, values, blocks = line.split()
        array = numpy.frombuffer(bytes.fromhex(values), "<f4")
        assert quantize(array, name).tobytes() == bytes.fromhex(blocks), line


def test_rows_are_operands():
    rows = numpy.linspace(-1, 1, 3 * 256, dtype=numpy.float32).reshape(3, 256)
    blocks = quantize(rows, "q4_k")
    assert blocks.shape == (3, 144) and blocks.dtype == numpy.uint8
    context = adead.Context("cpu")
    back = numpy.asarray(context.dequantize(blocks, format="q4_k"))
    # A block has no minimum above 0, so the last ones have 15 steps from 0 to 1.
    assert abs(back - rows).max() < 0.5 / 15
    assert quantize(rows.astype(numpy.float16), "q8_0").shape == (3, 272)
    assert quantize(rows[:, ::2][:, :128], "q8_0").tobytes() == quantize(rows[:, ::2].copy(), "q8_0").tobytes()
    assert quantize(numpy.zeros((0, 64), numpy.float32), "q4_0").shape == (0, 36)


def test_what_is_wrong_is_said():
    with pytest.raises(adead.InvalidArgumentError, match="format is 'q3_k'; it must be one of q8_0, q4_0"):
        quantize(numpy.zeros(32, numpy.float32), "q3_k")
    with pytest.raises(adead.ShapeMismatchError, match=r"the array is \[2, 32\]; q4_k takes rows .* multiple of 256"):
        quantize(numpy.zeros((2, 32), numpy.float32), "q4_k")
    with pytest.raises(adead.DtypeMismatchError, match="elements of float64"):
        quantize(numpy.zeros(32), "q8_0")
    with pytest.raises(adead.InvalidArgumentError, match="value 33 is NaN; q8_0 takes finite values"):
        quantize(numpy.array([0.0] * 33 + [numpy.nan] * 31, numpy.float32)[:64], "q8_0")
