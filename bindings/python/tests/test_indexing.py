"""``x[…]`` beside NumPy's: the same index of a tensor and an array gives the same values."""

import random

import numpy
import pytest

import adead

N = numpy.newaxis
A = numpy.arange(5 * 4 * 3, dtype=numpy.float32).reshape(5, 4, 3)
MASK = A % 7 < 3


def same(array, index, tensor_index=None):
    expected = array[index]
    found = adead.Tensor(array)[index if tensor_index is None else tensor_index]
    assert found.shape == expected.shape, index
    assert found.tobytes() == numpy.ascontiguousarray(expected).tobytes(), index


@pytest.mark.parametrize(
    "index",
    [
        *(
            3,
            -1,
            slice(2, 4),
            slice(None, None, 2),
            slice(None, None, -1),
            slice(-2, 0, -2),
            slice(9, 1, -3),
            slice(3, 1),
            slice(4, 4, -1),
        ),
        *(
            (1, 2),
            (1, 2, 0),
            (-1, -4, -3),
            (slice(None), 1),
            (slice(1, 3), slice(None), -1),
            (..., 0),
            (0, ...),
            (1, ..., 2),
            ...,
        ),
        *(
            N,
            (N, 2),
            (..., N),
            (slice(None), N, 1),
            (0, N, ..., N),
            (),
            (1, N, 2, N, 0, N),
            (slice(None), slice(3, None, -2), slice(1, 2)),
        ),
        *(
            [0, 2],
            [-1, 0, 0],
            [[0, 1], [4, 3]],
            ([0, 1], [1, 2]),
            ([[0], [2]], [1, 3]),
            (slice(None), [3, 0]),
            (..., [2, 0, 1]),
        ),
        *(
            ([0, 1], slice(None), [2, 0]),
            (0, slice(None), [1, 2]),
            (slice(1, 4), [0, 1], [1, 2]),
            (slice(None, None, -1), [1, 1], N),
        ),
        *(
            ([0, 1], N, [1, 2]),
            (N, [0, 1], [1, 2]),
            (1, [0, 3]),
            ([0, 3], 1),
            (slice(None), 1, [0, 2]),
            ([], slice(1, 3)),
            [],
        ),
        *((slice(None), [1, 2], ..., [0, 1]), ([0, 1], ..., [0, 1], [2, 0]), (slice(None), 1, ..., [0, 1])),
        *(
            MASK,
            MASK[:, :, 0],
            MASK[:, 0, 0],
            (slice(None), MASK[0]),
            (slice(1, 3), MASK[0, :, 0]),
            (..., MASK[0, 0]),
            (MASK[:, :, 1], 0),
        ),
        *(
            (MASK[:, 0, 0], slice(None), [0]),
            (MASK[:, 0, 0], N, 1),
            numpy.zeros(5, bool),
            numpy.ones((5, 4, 3), bool),
            (1, MASK[1]),
        ),
        *(
            numpy.int32(2),
            (numpy.uint8(1), numpy.int64(-1)),
            numpy.array(3),
            (numpy.array([1, 2], numpy.int32), numpy.array([[0], [3]], numpy.uint32)),
        ),
    ],
    ids=repr,
)
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "float16"])
def test_parts_are_numpys(index, dtype):
    same(A.astype(dtype), index)


def test_tensors_are_indices():
    for index in ([0, 3, -1], [[1, 2], [0, 0]]):
        for dtype in ("i64", "i32"):
            same(A, numpy.array(index), adead.Tensor(index, dtype))
    same(A, A > 20, adead.Tensor(A) > 20.0)
    same(A, (slice(None), A[0] > 3, N), (slice(None), adead.Tensor(A[0]) > 3, None))


def test_drawn_indices_are_numpys():
    draw = random.Random(7)

    def entry(size):
        kind = draw.randrange(6)
        if kind == 0 and size:
            return draw.randrange(-size, size)
        if kind <= 2:
            ends = [draw.choice([None, *range(-size - 1, size + 2)]) for _ in range(2)]
            return slice(*ends, draw.choice([None, 1, 2, 3, -1, -2]))
        if kind == 3:
            return [draw.randrange(-size, size) for _ in range(3 * (size > 0))]
        if kind == 4 and size:
            return numpy.array([draw.random() < 0.5 for _ in range(size)], bool)
        return slice(None)

    compared = 0
    for _ in range(3000):
        shape = [draw.choice([0, 1, 2, 3, 4, 5]) for _ in range(draw.randrange(1, 5))]
        array = numpy.arange(numpy.prod(shape), dtype=numpy.int32).reshape(shape)
        index = [entry(size) for size in shape[: draw.randrange(len(shape) + 1)]]
        for extra in (N, ...):
            if draw.random() < 0.3:
                index.insert(draw.randrange(len(index) + 1), extra)
        try:
            array[tuple(index)]
        except IndexError:
            with pytest.raises(IndexError):
                adead.Tensor(array)[tuple(index)]
        else:
            same(array, tuple(index))
            compared += 1
    assert compared > 2000


def test_iteration():
    x = adead.Tensor(A)
    assert [row.tolist() for row in x] == A.tolist() and len(list(x[:0])) == 0
    first, *_, last = x
    assert first.tobytes() == x[0].tobytes() and last.tobytes() == x[-1].tobytes()
    assert [value.item() for value in reversed(adead.Tensor([1, 2, 3]))] == [3, 2, 1]
    assert adead.Tensor(2.5)[()].item() == 2.5 == adead.Tensor(2.5)[...].item() and adead.Tensor(2.5)[None].shape == (
        1,
    )
    with pytest.raises(TypeError, match="a scalar has no entries"):
        iter(adead.Tensor(1.0))


@pytest.mark.parametrize(
    "index, error, text",
    [
        (5, IndexError, "index 5 is outside 5 entries"),
        ((0, -5), IndexError, "index -5 is outside 4 entries of axis 1"),
        ((0, 0, 0, 0), IndexError, r"too many indices: 4 for a tensor of 3 dimensions, \[5, 4, 3\]"),
        ((..., 0, ...), IndexError, "at most one ellipsis"),
        ([0, 7], IndexError, "index 7 is outside 5 entries"),
        (([0, 1], [0, 1, 2]), IndexError, r"\[2\] and \[3\] don't broadcast"),
        (numpy.ones(4, bool), IndexError, r"a mask of shape \[4\] is for axis 0, which have \[5\]"),
        (numpy.ones((5, 3), bool), IndexError, r"a mask of shape \[5, 3\] is for axes 0 to 1, which have \[5, 4\]"),
        ([0.5], IndexError, "integers or bools, not f32"),
        ("x", TypeError, "an index is an int, .* not a str"),
        (1.0, TypeError, "not a float"),
        (True, TypeError, "one bool"),
        (slice(None, None, 0), ValueError, "zero"),
    ],
)
def test_bad_indices_are_named(index, error, text):
    with pytest.raises(error, match=text):
        adead.Tensor(A)[index]


def test_values_can_not_be_assigned():
    x = adead.Tensor(A)
    with pytest.raises(TypeError, match="item assignment"):
        x[0] = 1.0
