"""Tensor operations and neural network layers with the same bits on every device.

``Tensor`` is a value, and a ``Context`` computes. Every operation is a function of this module, and a method of
contexts and of tensors; https://adead.github.io/adead/operations.html describes them. ``GPU`` is the simple API for your
own kernels. ``overlap`` processes batches on a device and overlaps copies with the work, and ``DataLoader`` makes
batches ahead: https://adead.github.io/adead/overlap.html describes both. Functions with NumPy's names make, cut and join
tensors, and ``random`` draws them.
"""

from ._adead import *
from ._adead import __all__ as __all__
from ._adead import __version__ as __version__
from ._methods import add as _add_methods

_add_methods()

# The array API's constants.
e: float = 2.718281828459045
inf: float = float("inf")
nan: float = float("nan")
newaxis: None = None
pi: float = 3.141592653589793
# The version of the standard.
__array_api_version__: str = "2024.12"

# Type checkers treat this name as true. The import of typing takes longer than all of this module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import nn as nn
    from . import random as random
    from ._creation import arange as arange
    from ._creation import astype as astype
    from ._creation import empty as empty
    from ._creation import empty_like as empty_like
    from ._creation import eye as eye
    from ._creation import full as full
    from ._creation import full_like as full_like
    from ._creation import linspace as linspace
    from ._creation import meshgrid as meshgrid
    from ._creation import ones as ones
    from ._creation import ones_like as ones_like
    from ._creation import tril as tril
    from ._creation import triu as triu
    from ._creation import zeros as zeros
    from ._creation import zeros_like as zeros_like
    from ._dtypes import DType as DType
    from ._dtypes import can_cast as can_cast
    from ._dtypes import result_type as result_type
    from ._dtypes import bfloat16 as bfloat16
    from ._dtypes import bool_ as bool_
    from ._dtypes import finfo as finfo
    from ._dtypes import float16 as float16
    from ._dtypes import float32 as float32
    from ._dtypes import float64 as float64
    from ._dtypes import iinfo as iinfo
    from ._dtypes import int32 as int32
    from ._dtypes import int64 as int64
    from ._dtypes import isdtype as isdtype
    from ._dtypes import uint32 as uint32
    from ._dtypes import uint8 as uint8
    from ._einsum import einsum as einsum
    from ._math import all as all
    from ._math import any as any
    from ._math import argsort as argsort
    from ._math import ceil as ceil
    from ._math import clip as clip
    from ._math import copysign as copysign
    from ._math import diff as diff
    from ._math import divide as divide
    from ._math import count_nonzero as count_nonzero
    from ._math import floor_divide as floor_divide
    from ._math import isfinite as isfinite
    from ._math import isinf as isinf
    from ._math import isnan as isnan
    from ._math import log10 as log10
    from ._math import log2 as log2
    from ._math import logaddexp as logaddexp
    from ._math import logical_and as logical_and
    from ._math import logical_not as logical_not
    from ._math import logical_or as logical_or
    from ._math import logical_xor as logical_xor
    from ._math import nonzero as nonzero
    from ._math import outer as outer
    from ._math import positive as positive
    from ._math import reciprocal as reciprocal
    from ._math import remainder as remainder
    from ._math import sign as sign
    from ._math import signbit as signbit
    from ._math import sort as sort
    from ._math import square as square
    from ._math import std as std
    from ._math import tan as tan
    from ._math import tensordot as tensordot
    from ._math import trunc as trunc
    from ._math import var as var
    from ._math import vecdot as vecdot
    from ._adead import cumsum as cumulative_sum
    from ._math import logical_and as bitwise_and
    from ._math import logical_not as bitwise_invert
    from ._math import logical_or as bitwise_or
    from ._math import logical_xor as bitwise_xor
    from ._adead import mul as multiply
    from ._adead import neg as negative
    from ._adead import sub as subtract
    from ._adead import gather as take_along_axis
    from ._shapes import broadcast_arrays as broadcast_arrays
    from ._shapes import broadcast_shapes as broadcast_shapes
    from ._shapes import broadcast_to as broadcast_to
    from ._shapes import expand_dims as expand_dims
    from ._shapes import flatten as flatten
    from ._shapes import flip as flip
    from ._shapes import matrix_transpose as matrix_transpose
    from ._shapes import moveaxis as moveaxis
    from ._shapes import permute_dims as permute_dims
    from ._shapes import repeat as repeat
    from ._shapes import reshape as reshape
    from ._shapes import roll as roll
    from ._shapes import split as split
    from ._shapes import squeeze as squeeze
    from ._shapes import stack as stack
    from ._shapes import swapaxes as swapaxes
    from ._shapes import take as take
    from ._shapes import tile as tile
    from ._shapes import unstack as unstack
    from ._overlap import DataLoader as DataLoader
    from ._overlap import Stage as Stage
    from ._overlap import overlap as overlap
    from ._profile import Profile as Profile
    from ._profile import ProfileDevice as ProfileDevice
    from ._profile import ProfileRecord as ProfileRecord
    from ._profile import ProfileReport as ProfileReport
    from ._profile import ProfileSpan as ProfileSpan
    from ._profile import ProfileTotal as ProfileTotal

    __all__ += ["DataLoader", "Stage", "overlap", "pi", "e", "inf", "nan", "newaxis"]
    __all__ += ["arange", "astype", "empty", "empty_like", "eye", "full", "full_like", "linspace", "meshgrid"]
    __all__ += ["ones", "ones_like", "tril", "triu", "zeros", "zeros_like"]
    __all__ += ["DType", "bfloat16", "bool_", "finfo", "float16", "float32", "float64", "iinfo", "int32", "int64"]
    __all__ += ["isdtype", "uint32", "uint8", "can_cast", "result_type", "copysign", "logaddexp", "signbit"]
    __all__ += ["einsum"]
    __all__ += ["all", "any", "argsort", "ceil", "clip", "count_nonzero", "diff", "floor_divide", "isfinite", "isinf"]
    __all__ += ["isnan", "log10", "log2", "logical_and", "logical_not", "logical_or", "logical_xor", "nonzero"]
    __all__ += ["outer", "positive", "reciprocal", "remainder", "sign", "sort", "square", "std", "tan"]
    __all__ += ["tensordot", "trunc", "var", "vecdot"]
    __all__ += ["bitwise_and", "bitwise_invert", "bitwise_or", "bitwise_xor"]
    __all__ += ["cumulative_sum", "divide", "multiply", "negative", "subtract", "take_along_axis"]
    __all__ += ["broadcast_arrays", "broadcast_shapes", "broadcast_to", "expand_dims", "flatten", "flip"]
    __all__ += ["matrix_transpose", "moveaxis", "permute_dims", "repeat", "reshape", "roll", "split"]
    __all__ += ["squeeze", "stack", "swapaxes", "take", "tile", "unstack"]
    __all__ += ["Profile", "ProfileDevice", "ProfileRecord", "ProfileReport", "ProfileSpan", "ProfileTotal"]
else:
    _LATER = {name: "_overlap" for name in ("DataLoader", "Stage", "overlap")}
    _LATER |= {"Profile" + name: "_profile" for name in ("", "Device", "Record", "Report", "Span", "Total")}
    _FUNCTIONS = {
        "_creation": (
            "arange astype empty empty_like eye full full_like linspace meshgrid ones ones_like tril triu "
            "zeros zeros_like"
        ),
        "_dtypes": (
            "DType bfloat16 bool_ can_cast finfo float16 float32 float64 iinfo int32 int64 isdtype result_type uint32 uint8"
        ),
        "_einsum": "einsum",
        "_math": (
            "all any argsort ceil clip copysign count_nonzero diff divide floor_divide isfinite isinf isnan log10 log2 logaddexp "
            "logical_and logical_not logical_or logical_xor nonzero outer positive reciprocal remainder sign signbit "
            "sort square std tan tensordot trunc var vecdot"
        ),
        "_namespace": "bitwise_and bitwise_invert bitwise_or bitwise_xor cumulative_sum multiply negative subtract take_along_axis",
        "_shapes": (
            "broadcast_arrays broadcast_shapes broadcast_to expand_dims flatten flip matrix_transpose "
            "moveaxis permute_dims repeat reshape roll split squeeze stack swapaxes take tile unstack"
        ),
    }
    _LATER |= {name: module for module, names in _FUNCTIONS.items() for name in names.split()}
    # Type checkers understand only the form above, and would take this for a change of the module's list.
    __all__ = [*__all__, *_LATER, "pi", "e", "inf", "nan", "newaxis"]

    def __getattr__(name):
        # Imported at the first use, because threads, queues and classes take longer to import than the rest.
        from importlib import import_module

        # The array API's name. It is not in __all__, as it would hide Python's own.
        if name == "bool":
            name = "bool_"
        # Of the array API, for programs that look it up.
        if name == "__array_namespace_info__":
            return getattr(import_module("._namespace", __name__), name)
        if name in ("nn", "random"):
            return import_module("." + name, __name__)
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found = getattr(import_module("." + _LATER[name], __name__), name)
        return found

    def __dir__():
        return sorted({*globals(), *_LATER, "nn", "random"})
