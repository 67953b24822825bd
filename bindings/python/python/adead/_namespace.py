"""The array API's namespace is the module adead itself. docs/array-api.md lists what it lacks."""

from __future__ import annotations


from . import _adead as core
from . import _dtypes as dtypes
from . import _math as math
from ._adead import InvalidArgumentError, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from ._dtypes import DType

# The standard's names of operations that have another name here.
subtract = core.sub
multiply = core.mul
negative = core.neg
cumulative_sum = core.cumsum
take_along_axis = core.gather
# Of bools: integers have no operations on bits.
bitwise_and = math.logical_and
bitwise_invert = math.logical_not
bitwise_or = math.logical_or
bitwise_xor = math.logical_xor


class __array_namespace_info__:
    """What this namespace has, as the array API standard asks for. Operations choose their device themselves, so there is
    one device here, None.
    """

    def capabilities(self) -> dict[str, Any]:
        """Returns whether there are indices of bools and shapes that depend on data, and the most dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self) -> None:
        """Returns None: operations choose their device themselves."""
        return None

    def devices(self) -> list[None]:
        """Returns the one device, None."""
        return [None]

    def default_dtypes(self, *, device: None = None) -> dict[str, DType]:
        """Returns the dtypes that results have if nothing else decides."""
        return {"real floating": dtypes.float32, "integral": dtypes.int64, "indexing": dtypes.int64}

    def dtypes(self, *, device: None = None, kind: Any = None) -> dict[str, DType]:
        """Returns the standard's dtypes that there are, by name; only those of a kind, if it is given."""
        known = (dtypes.bool_, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.uint32, dtypes.float32)
        return {dtype.name: dtype for dtype in known if kind is None or dtypes.isdtype(dtype, kind)}


def array_namespace(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """Returns the module adead, as the array API standard requires. ``InvalidArgumentError`` for a version of the
    standard that adead does not have.
    """
    from sys import modules

    adead = modules["adead"]
    version = adead.__array_api_version__
    if api_version not in (None, version):
        raise InvalidArgumentError(f"adead follows the array API {version}, not {api_version}")
    return adead
