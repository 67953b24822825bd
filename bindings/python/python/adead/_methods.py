"""The tensor's methods that are made of several operations. Each is imported at its first use."""

from ._adead import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# By the method's name: the module, and the function there.
METHODS = {
    **dict.fromkeys(("var", "std", "clip", "all", "any", "nonzero", "sort", "argsort"), "_math"),
    **dict.fromkeys(("squeeze", "flatten", "swapaxes", "repeat", "take"), "_shapes"),
    "astype": "_creation",
}
RENAMED = {
    "ravel": ("_shapes", "flatten"),
    "mT": ("_shapes", "matrix_transpose"),
    "_repr_html_": ("_html", "repr_html"),
    "__array_ufunc__": ("_ufunc", "array_ufunc"),
    "__array_namespace__": ("_namespace", "array_namespace"),
}
OPERATORS = "reversed invert pos floordiv rfloordiv mod rmod and rand or ror xor rxor".split()


class Later:
    """Imports a function at its first use. From then on, the class has the function itself."""

    __slots__ = ("_module", "_function", "_name")

    def __init__(self, name: str, module: str, function: str) -> None:
        self._name, self._module, self._function = name, module, function

    def __get__(self, tensor: "Tensor | None", owner: type) -> "Any":
        from importlib import import_module

        function = getattr(import_module("." + self._module, __package__), self._function)
        found: "Any" = property(function) if self._name == "mT" else function
        setattr(owner, self._name, found)
        return found.__get__(tensor, owner)


def add() -> None:
    """Gives the class its methods."""
    for name, module in METHODS.items():
        setattr(Tensor, name, Later(name, module, name))
    for name, (module, function) in RENAMED.items():
        setattr(Tensor, name, Later(name, module, function))
    for name in OPERATORS:
        setattr(Tensor, f"__{name}__", Later(f"__{name}__", "_operators", f"tensor_{name}"))
