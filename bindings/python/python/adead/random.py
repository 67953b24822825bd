"""Random tensors by Philox4x32-10: the same numbers in every process, on every device.

``rng = adead.random.default_rng(7)`` makes a generator. Draws are numbered from 0. Each element depends only on the
seed, the number of its draw and its position (https://adead.github.io/adead/contract.html, "Random tensors"). Logarithms,
roots and cosines of normal numbers are operations, so they have the contract's bits.
"""

from __future__ import annotations

from math import prod
from operator import index as whole

from ._adead import InvalidArgumentError, Tensor
from ._adead import _draw_integers as draw_integers  # pyright: ignore[reportPrivateUsage]
from ._adead import _draw_order as draw_order  # pyright: ignore[reportPrivateUsage]
from ._adead import _draw_units as draw_units  # pyright: ignore[reportPrivateUsage]
from ._common import dims_of, tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ._kinds import AnyDType, Array, Shape

__all__ = ["Generator", "default_rng"]


class Generator:
    """Draws random tensors. ``draws`` counts the draws. A generator with the same seed and count continues with the
    same numbers.

    Threads should not share a generator: the order of their calls would decide which numbers each thread gets.
    """

    def __init__(self, seed: int, draws: int = 0) -> None:
        for name, value in (("seed", seed), ("draws", draws)):
            if not 0 <= whole(value) < 1 << 64:
                raise InvalidArgumentError(f"{name} must be an unsigned 64-bit integer, got {value}")
        self.seed: int = whole(seed)
        self.draws: int = whole(draws)

    def __repr__(self) -> str:
        return f"adead.random.Generator(seed={self.seed}, draws={self.draws})"

    def _drawn(self, draw: Callable[..., Tensor], *arguments: object) -> Tensor:
        found = draw(self.seed, self.draws, *arguments)
        # A draw that fails doesn't count.
        self.draws += 1
        return found

    def random(self, size: Shape = (), dtype: AnyDType = "f32") -> Tensor:
        """Returns uniform numbers from 0 to below 1, as multiples of 2**-24. f16 and bf16 are rounded, so they may be
        1.
        """
        dims = dims_of(size)
        found = self._drawn(draw_units, dims)
        return found.cast(dtype)

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Shape = ()) -> Tensor:
        """Returns uniform numbers: low + (high − low)·u with u of ``random``, each step in f32."""
        return self.random(size) * (float(high) - float(low)) + float(low)

    def standard_normal(self, size: Shape = ()) -> Tensor:
        """Returns normal numbers with mean 0 and deviation 1, by the Box–Muller transform of two uniform numbers."""
        dims = dims_of(size)
        units = self._drawn(draw_units, (*dims, 2))
        first, second = units[..., 0], units[..., 1]
        # Above 0, so that the logarithm is finite.
        radius = ((first + 2.0**-24).log() * -2.0).sqrt()
        return radius * (second * 6.283185307179586).cos()

    def normal(self, loc: float = 0.0, scale: float = 1.0, size: Shape = ()) -> Tensor:
        """Returns normal numbers with this mean and deviation: z·scale + loc with z of ``standard_normal``."""
        if not scale >= 0:
            raise InvalidArgumentError(f"normal: the scale is at least 0, not {scale}")
        return self.standard_normal(size) * float(scale) + float(loc)

    def integers(self, low: int, high: int | None = None, size: Shape = ()) -> Tensor:
        """Returns integers from low to below high, as i64. A single number is high; low is then 0. At most 2**32
        different integers.
        """
        first, end = (0, whole(low)) if high is None else (whole(low), whole(high))
        dims = dims_of(size)
        if not 1 <= end - first <= 1 << 32 or not -(1 << 63) <= first or end > 1 << 63:
            raise InvalidArgumentError(
                f"integers: from 1 to 2**32 integers below high, not {end - first} from {first} to {end}"
            )
        return self._drawn(draw_integers, dims, first, end - first)

    def permutation(self, x: int | Array) -> Tensor:
        """Returns the numbers below x, or the entries of x's first axis, in random order."""
        if not isinstance(x, Tensor) and hasattr(x, "__index__"):
            count = whole(x)  # type: ignore[arg-type]
            if count < 0:
                raise InvalidArgumentError(f"permutation: {count} is negative")
            return self._drawn(draw_order, count)
        entries = tensor(x)
        return entries[self._drawn(draw_order, len(entries))]

    def choice(self, x: int | Array, size: Shape = (), replace: bool = True) -> Tensor:
        """Returns entries of x's first axis, or numbers below x, all with the same probability. With replace=False,
        each occurs at most once.
        """
        is_count = not isinstance(x, Tensor) and hasattr(x, "__index__")
        entries = None if is_count else tensor(x)
        count = whole(x) if entries is None else len(entries)  # type: ignore[arg-type]
        dims = dims_of(size)
        if replace:
            ids = self.integers(count, size=dims)
        else:
            wanted = prod(dims)
            if wanted > count:
                raise InvalidArgumentError(f"choice: {wanted} of {count} entries need replace=True")
            ids = self.permutation(count)[:wanted].reshape(dims)
        return ids if entries is None else entries[ids]


def default_rng(seed: int | None = None) -> Generator:
    """Makes a generator. Without a seed, the system chooses one; ``generator.seed`` is that seed."""
    if seed is None:
        from os import urandom

        seed = int.from_bytes(urandom(8), "little")
    return Generator(seed)
