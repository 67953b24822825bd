"""``adead.random`` beside Philox4x32-10 in Python's integers, by the rules of docs/contract.md, "Random tensors"."""

import math
import sys
from pathlib import Path

import numpy
import pytest

import adead

DRAWS = Path(__file__).resolve().parents[3] / "tests/random"
sys.path.insert(0, str(DRAWS))
from draws import philox  # noqa: E402


def words(seed, draw, count):
    halves = [[number & 0xFFFFFFFF, number >> 32] for number in (seed, draw)]
    return [word for block in range(-(-count // 4)) for word in philox([block, *halves[1], 5], halves[0])][:count]


@pytest.mark.parametrize("seed, draw", [(7, 0), (0, 3), (2**64 - 1, 2**40 + 1)])
def test_numbers_are_those_of_the_contract(seed, draw):
    units = [(word >> 8) * 2.0**-24 for word in words(seed, draw, 23)]
    assert adead.random.Generator(seed, draw).random(23).tolist() == units
    integers = [(word * 1000 >> 32) - 500 for word in words(seed, draw, 6)]
    assert adead.random.Generator(seed, draw).integers(-500, 500, (2, 3)).reshape(-1).tolist() == integers
    order = list(range(9))
    for last, word in zip(range(8, 0, -1), words(seed, draw, 8)):
        other = word * (last + 1) >> 32
        order[last], order[other] = order[other], order[last]
    assert adead.random.Generator(seed, draw).permutation(9).tolist() == order
    pairs = [word >> 8 for word in words(seed, draw, 20)]
    normal = [
        math.sqrt(-2 * math.log((a + 1) * 2.0**-24)) * math.cos(2 * math.pi * b * 2.0**-24)
        for a, b in zip(pairs[::2], pairs[1::2])
    ]
    numpy.testing.assert_allclose(adead.random.Generator(seed, draw).standard_normal(10), normal, rtol=1e-5, atol=1e-5)


def test_draws_are_those_of_every_language():
    rng = adead.random.default_rng(7)
    calls = {
        "uniform 0 1, 2×3": lambda: rng.uniform(0, 1, (2, 3)),
        "uniform -2.5 4, 5": lambda: rng.uniform(-2.5, 4, 5),
        "standard normal, 2×2": lambda: rng.standard_normal((2, 2)),
        "normal 3 0.5, 4": lambda: rng.normal(3, 0.5, 4),
        "integers -10 to 90, 6": lambda: rng.integers(-10, 90, 6),
        "permutation of 8": lambda: rng.permutation(8),
    }
    lines = [line for line in (DRAWS / "draws.txt").read_text("utf-8").splitlines() if line[0] != "#"]
    for line in lines:
        call, expected = line.split(": ")
        drawn = calls[call]().numpy().reshape(-1)
        digits = 2 * drawn.itemsize
        assert " ".join(f"{bits:0{digits}x}" for bits in drawn.view(f"u{drawn.itemsize}")) == expected, call
    assert len(lines) == rng.draws == 6


def test_a_seed_gives_the_same_bits():
    def drawn(rng):
        return b"".join(
            x.tobytes()
            for x in (
                rng.random((3, 5)),
                rng.normal(1, 2, 8),
                rng.uniform(-1, 1, 4),
                rng.integers(10, size=5),
                rng.permutation(6),
            )
        )

    rng = adead.random.default_rng(7)
    first = drawn(rng)
    assert first == drawn(adead.random.default_rng(7)) != drawn(rng) and rng.draws == 10
    assert drawn(adead.random.default_rng(8)) != first and repr(rng) == "adead.random.Generator(seed=7, draws=10)"
    with adead.Context("cpu", threads=2):
        assert drawn(adead.random.default_rng(7)) == first
    # Published, so that other languages can compare: the first numbers of seed 7.
    assert adead.random.default_rng(7).random(4).tobytes().hex() == "055f1c3f176b503f0c7d3c3f394f113f"
    assert adead.random.default_rng().seed != adead.random.default_rng().seed


def test_distributions():
    rng = adead.random.default_rng(3)
    x = rng.random((100, 1000)).numpy()
    assert 0 <= x.min() and x.max() < 1 and abs(x.mean() - 0.5) < 0.005 and abs(x.var() - 1 / 12) < 0.005
    z = rng.standard_normal((100, 1000)).numpy()
    assert abs(z.mean()) < 0.01 and abs(z.std() - 1) < 0.01 and numpy.isfinite(z).all() and (abs(z) > 3.5).any()
    y = rng.normal(5.0, 0.5, 100_000).numpy()
    assert abs(y.mean() - 5) < 0.01 and abs(y.std() - 0.5) < 0.01
    k = rng.integers(3, 7, 100_000).numpy()
    assert k.dtype == numpy.int64 and abs(numpy.bincount(k)[3:] / 100_000 - 0.25).max() < 0.01 and k.min() == 3
    assert sorted(rng.permutation(1000).tolist()) == list(range(1000))


def test_entries_are_chosen():
    rng = adead.random.default_rng(1)
    x = adead.Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert sorted(rng.permutation(x).tolist()) == x.tolist() and rng.choice(x, (4, 2)).shape == (4, 2, 2)
    assert sorted(rng.choice(5, 5, replace=False).tolist()) == [0, 1, 2, 3, 4] and rng.choice(3).shape == ()
    assert rng.random().shape == () and rng.random(3, "f16").dtype == "f16" and rng.random((0, 2)).size == 0
    assert (
        rng.integers(-(2**63), -(2**63) + 2**32).dtype == "i64" and rng.integers(2**63 - 1, 2**63).item() == 2**63 - 1
    )


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda rng: adead.random.default_rng(-1), "seed must be an unsigned 64-bit integer, got -1"),
        (lambda rng: adead.random.default_rng(2**64), "unsigned 64-bit"),
        (lambda rng: rng.random((2, -1)), "can't be -1"),
        (lambda rng: rng.integers(5, 5), "not 0 from 5 to 5"),
        (lambda rng: rng.integers(2**33), "2[*][*]32"),
        (lambda rng: rng.integers(2**63, 2**63 + 1), "2[*][*]32"),
        (lambda rng: rng.normal(0, -1), "at least 0, not -1"),
        (lambda rng: rng.choice(3, 4, replace=False), "4 of 3 entries need replace=True"),
        (lambda rng: rng.permutation(-1), "-1 is negative"),
        (lambda rng: rng.random((2**20, 2**20)), "at most 17179869184 elements"),
    ],
)
def test_bad_arguments_draw_nothing(call, text):
    rng = adead.random.default_rng(7)
    with pytest.raises(adead.InvalidArgumentError, match=text):
        call(rng)
    assert rng.draws == 0
