"""``einsum``, computed as transpositions and matrix products."""

from __future__ import annotations

from math import prod

from ._adead import InvalidArgumentError, ShapeMismatchError, Tensor, matmul, mul
from ._common import permuted, tensor
from ._creation import arange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._kinds import Array


def einsum(formula: str, *operands: Array) -> Tensor:
    """Returns sums of products, as NumPy's function does: ``einsum("bij,bjk->bik", x, y)``.

    Operands are combined from left to right. Each pair becomes one matrix product, which sums over the letters that
    neither the later operands nor the result have. ``...`` stands for leading axes, which are broadcast. Without
    ``->``, the result has the letters that occur once, in alphabetical order.
    """
    given = [tensor(x) for x in operands]
    inputs, output = read(formula, given)
    sizes: dict[str, int] = {}
    values: list[tuple[Tensor, str]] = []
    for x, letters in zip(given, inputs):
        for letter, size in zip(letters, x.shape):
            known = sizes.setdefault(letter, size)
            if known != size and 1 not in (known, size):
                raise ShapeMismatchError(f"einsum: axis '{letter}' has {known} and {size} entries in {formula!r}")
            sizes[letter] = max(known, size) if 0 not in (known, size) else 0
        values.append(diagonal(x, letters))
    value, letters = values[0]
    for place, (other, others) in enumerate(values[1:], 1):
        later = set(output).union(*(letters for _, letters in values[place + 1 :]))
        value, letters = paired((value, letters), (other, others), later)
    value, letters = summed(value, letters, set(output))
    return permuted(value, [letters.index(letter) for letter in output])


def read(formula: str, operands: list[Tensor]) -> tuple[list[str], str]:
    """Returns the letters of each operand and of the result; an ellipsis becomes digits, one for each axis."""
    if not isinstance(formula, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"einsum: the formula is text, such as 'ij,jk->ik', not a {type(formula).__name__}")
    left, arrow, right = formula.replace(" ", "").partition("->")
    inputs = left.split(",")
    if len(inputs) != len(operands):
        raise InvalidArgumentError(f"einsum: {formula!r} has {len(inputs)} operands, and {len(operands)} were given")
    dots = 0
    for at, (letters, x) in enumerate(zip(inputs, operands)):
        before, found, after = letters.partition("...")
        rest = x.ndim - len(before) - len(after)
        if rest < 0 or (rest > 0 and not found):
            raise ShapeMismatchError(f"einsum: '{letters}' in {formula!r} doesn't fit the shape {list(x.shape)}")
        dots = max(dots, rest)
        # The last digit is the last of these axes, so that shapes are broadcast from the end.
        inputs[at] = before + "".join(str(9 - count) for count in range(rest, 0, -1)) + after
    axes = "".join(str(9 - count) for count in range(dots, 0, -1))
    every = "".join(inputs)
    if arrow:
        output = right.replace("...", axes)
    else:
        output = axes + "".join(
            sorted(letter for letter in set(every) if letter.isalpha() and every.count(letter) == 1)
        )
    for letter in every + output:
        if not (letter.isascii() and letter.isalnum()):
            raise InvalidArgumentError(f"einsum: {letter!r} in {formula!r} is no letter")
    for letter in output:
        if output.count(letter) > 1 or letter not in every:
            raise InvalidArgumentError(
                f"einsum: '{letter}' of the result must occur once there, and in an operand: {formula!r}"
            )
    return inputs, output


def diagonal(x: Tensor, letters: str) -> tuple[Tensor, str]:
    """Returns the elements at which axes with the same letter have the same index."""
    for letter in letters:
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            if x.shape[first] != x.shape[second]:
                raise ShapeMismatchError(
                    f"einsum: the axes '{letter}' have {x.shape[first]} and {x.shape[second]} entries"
                )
            rest = [at for at in range(x.ndim) if at not in (first, second)]
            ids = arange(x.shape[first])
            x = permuted(x, [first, second, *rest])[ids, ids]
            letters = letter + "".join(letters[at] for at in rest)
    return x, letters


def summed(x: Tensor, letters: str, kept: set[str]) -> tuple[Tensor, str]:
    """Sums over the letters that neither the other operands nor the result have."""
    gone = [at for at, letter in enumerate(letters) if letter not in kept]
    if not gone:
        return x, letters
    return x.sum(axes=gone), "".join(letter for letter in letters if letter in kept)


def paired(a: tuple[Tensor, str], b: tuple[Tensor, str], later: set[str]) -> tuple[Tensor, str]:
    """Multiplies two operands and sums over the letters that only they have."""
    (x, xs), (y, ys) = summed(*a, later | set(b[1])), summed(*b, later | set(a[1]))
    both = [letter for letter in xs if letter in ys]
    inner = [letter for letter in both if letter not in later]
    # Axes of size 1 are broadcast, which a matrix product does only for batches.
    if any(x.shape[xs.index(letter)] != y.shape[ys.index(letter)] for letter in inner):
        return summed(*broadcast(x, xs, y, ys), later)
    if not inner:
        return broadcast(x, xs, y, ys)
    batch = [letter for letter in both if letter in later]
    rows, cols = [letter for letter in xs if letter not in both], [letter for letter in ys if letter not in both]
    x = permuted(x, [xs.index(letter) for letter in [*batch, *rows, *inner]])
    y = permuted(y, [ys.index(letter) for letter in [*batch, *inner, *cols]])
    n = len(batch)
    (m, k), c = (x.shape[n : n + len(rows)], x.shape[n + len(rows) :]), y.shape[n + len(inner) :]
    product = matmul(x.reshape(*x.shape[:n], prod(m), prod(k)), y.reshape(*y.shape[:n], prod(k), prod(c)))
    return product.reshape(*product.shape[:n], *m, *c), "".join([*batch, *rows, *cols])


def broadcast(x: Tensor, xs: str, y: Tensor, ys: str) -> tuple[Tensor, str]:
    """Multiplies element by element, with the axes in the order of the letters of both."""
    letters = xs + "".join(letter for letter in ys if letter not in xs)
    y = permuted(y, [ys.index(letter) for letter in letters if letter in ys])
    sizes = iter(y.shape)
    y = y.reshape([next(sizes) if letter in ys else 1 for letter in letters])
    return mul(x.reshape([*x.shape, *[1] * (len(letters) - len(xs))]), y), letters
