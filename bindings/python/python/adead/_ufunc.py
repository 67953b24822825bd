"""NumPy's ufuncs on tensors: ``numpy.add(x, y)`` calls adead's operation, with the contract's bits."""

from __future__ import annotations


from . import _adead as core
from . import _math as math
from ._adead import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# By the ufunc's name: the operator's method, and the one for a tensor on the right.
OPERATORS = {
    "add": ("__add__", "__radd__"),
    "subtract": ("__sub__", "__rsub__"),
    "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"),
    "power": ("__pow__", "__rpow__"),
    "float_power": ("__pow__", "__rpow__"),
    "matmul": ("__matmul__", "__rmatmul__"),
    "floor_divide": ("__floordiv__", "__rfloordiv__"),
    "remainder": ("__mod__", "__rmod__"),
    "equal": ("__eq__", "__eq__"),
    "not_equal": ("__ne__", "__ne__"),
    "less": ("__lt__", "__gt__"),
    "less_equal": ("__le__", "__ge__"),
    "greater": ("__gt__", "__lt__"),
    "greater_equal": ("__ge__", "__le__"),
    "bitwise_and": ("__and__", "__rand__"),
    "bitwise_or": ("__or__", "__ror__"),
    "bitwise_xor": ("__xor__", "__rxor__"),
}
SAME = "abs exp log sqrt floor sin cos tanh log1p expm1 maximum minimum".split()
FUNCTIONS: dict[str, Any] = {name: getattr(core, name) for name in SAME}
FUNCTIONS |= {"absolute": core.abs, "fabs": core.abs, "negative": core.neg, "rint": core.round}
NAMES = "ceil trunc sign square reciprocal log2 log10 tan positive isnan isinf isfinite logical_not logical_and logical_or logical_xor".split()
FUNCTIONS |= {name: getattr(math, name) for name in NAMES} | {"invert": math.logical_not}
REDUCTIONS: dict[str, Any] = {"add": core.sum, "multiply": core.prod, "maximum": core.max, "minimum": core.min}
REDUCTIONS |= {"logical_and": math.all, "logical_or": math.any}


# The methods themselves, so that a call doesn't look them up by name.
METHODS = {name: (getattr(Tensor, own), getattr(Tensor, turned)) for name, (own, turned) in OPERATORS.items()}


def array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """Implements NumPy's protocol for ufuncs. TypeError for a function that adead doesn't have."""
    name: str = ufunc.__name__
    if method == "__call__" and not options:
        if name in METHODS:
            own, turned = METHODS[name]
            first, second = inputs
            return own(first, second) if type(first) is Tensor else turned(second, first)
        if name in FUNCTIONS:
            return FUNCTIONS[name](*inputs)
    if method == "reduce" and name in REDUCTIONS:
        options = {key: value for key, value in options.items() if value is not None}
        # As numpy.add.reduce, which reduces the first axis.
        return REDUCTIONS[name](inputs[0], **{"axis": 0, **options})
    arrays = f"numpy.{name}(numpy.asarray(x), …) has NumPy's arithmetic"
    if method != "__call__":
        raise TypeError(f"numpy.{name}.{method} is no operation of adead: {arrays}")
    if options and (name in METHODS or name in FUNCTIONS):
        raise TypeError(f"numpy.{name} of tensors takes no {', '.join(options)}: results are new tensors. {arrays}")
    raise TypeError(f"numpy.{name} is no operation of adead: {arrays}")
