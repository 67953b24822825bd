"""The array API's namespace is the module adead itself. docs/array-api.md lists what it lacks."""

from __future__ import annotations


from . import _adead as core
from . import _math as math
from ._adead import InvalidArgumentError, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = "2024.12"

# The standard's names of operations that have another name here.
subtract = core.sub
multiply = core.mul
divide = math.divide
negative = core.neg
cumulative_sum = core.cumsum
take_along_axis = core.gather
# Of bools: integers have no operations on bits.
bitwise_and = math.logical_and
bitwise_invert = math.logical_not
bitwise_or = math.logical_or
bitwise_xor = math.logical_xor


def array_namespace(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """Returns the module adead, as the array API standard requires. ``InvalidArgumentError`` for a version of the
    standard that adead does not have.
    """
    if api_version not in (None, VERSION):
        raise InvalidArgumentError(f"adead follows the array API {VERSION}, not {api_version}")
    from sys import modules

    return modules["adead"]
