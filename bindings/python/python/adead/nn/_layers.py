"""Layers of one or two operations."""

from typing import TYPE_CHECKING, Any, Literal, Protocol

from .._adead import Context, Packed, ShapeMismatchError, Tensor, default_context
from ._weights import Weights

if TYPE_CHECKING:
    from typing_extensions import Buffer

    _Array = Tensor | Buffer
    _Activation = Literal["none", "relu", "sigmoid", "tanh", "gelu_tanh", "gelu_erf", "silu"]


class _Layer(Protocol):
    def __call__(self, x: Any, /) -> Tensor: ...


def _matrix(of: str, name: str, value: object, sides: str) -> Tensor:
    """The value, where it is a matrix."""
    if not isinstance(value, Tensor):
        hint = f"{of}.load(weights, prefix, …) reads one, adead.Tensor(…) makes one of an array"
        raise TypeError(f"{of}: the {name} is a tensor {sides}, not a {type(value).__name__}: {hint}")
    if value.ndim != 2:
        raise ShapeMismatchError(f"{of}: the {name} is {list(value.shape)}; it must be {sides}")
    return value


class Linear:
    """``x·Wᵀ + bias`` of ``[…, inputs]``. The weight, ``[outputs, inputs]``, is packed once where the context has no GPU.

    ``ShapeMismatchError`` where weight and bias don't fit.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None, context: Context | None = None) -> None:
        weight = _matrix("Linear", "weight", weight, "[outputs, inputs]")
        self.outputs: int = weight.shape[0]
        self.inputs: int = weight.shape[1]
        if bias is not None and bias.shape != (self.outputs,):
            raise ShapeMismatchError(f"linear: the bias is {list(bias.shape)} and the weight {list(weight.shape)}")
        self.context: Context = context or default_context()
        self._bias = bias
        alone = [device.id for device in self.context.devices] == ["cpu"]
        self._matrix: Packed | Tensor = self.context.pack(weight, trans_b=True) if alone else self.context.transpose(weight)

    @staticmethod
    def load(weights: Weights, prefix: str, inputs: int, outputs: int, context: Context | None = None) -> "Linear":
        """The layer of ``PREFIX.weight`` and ``PREFIX.bias``."""
        weight = weights.tensor(f"{prefix}.weight", [outputs, inputs])
        return Linear(weight, weights.tensor(f"{prefix}.bias", [outputs]), context)

    def __call__(self, x: "_Array", residual: "_Array | None" = None, activation: "_Activation" = "none") -> Tensor:
        """``activation(x·Wᵀ + residual + bias)``, as one product."""
        beta = 0.0 if residual is None else 1.0
        return self.context.matmul(x, self._matrix, residual, self._bias, beta=beta, activation=activation)

    def __repr__(self) -> str:
        return f"Linear({self.inputs} to {self.outputs}{'' if self._bias is None else ', bias'})"


class Embedding:
    """Rows of a table ``[count, width]`` by ids of any shape, i32, i64 or u32."""

    def __init__(self, table: Tensor, context: Context | None = None) -> None:
        table = _matrix("Embedding", "table", table, "[count, width]")
        self.count: int = table.shape[0]
        self.width: int = table.shape[1]
        self.context: Context = context or default_context()
        self._table = table

    @staticmethod
    def load(weights: Weights, prefix: str, count: int, width: int, context: Context | None = None) -> "Embedding":
        """The table ``PREFIX.weight``."""
        return Embedding(weights.tensor(f"{prefix}.weight", [count, width]), context)

    def __call__(self, ids: "_Array") -> Tensor:
        """The rows. ``InvalidArgumentError`` for an id outside the table."""
        return self.context.embedding(self._table, ids)

    def __repr__(self) -> str:
        return f"Embedding({self.count} of {self.width})"


class LayerNorm:
    """Mean and variance normalised over the last axis, times a weight, plus a bias, both ``[width]``."""

    def __init__(self, weight: Tensor, bias: Tensor, eps: float = 1e-5, context: Context | None = None) -> None:
        self.context: Context = context or default_context()
        self.eps: float = eps
        self._weight, self._bias = weight, bias

    @staticmethod
    def load(weights: Weights, prefix: str, width: int, eps: float = 1e-5, context: Context | None = None) -> "LayerNorm":
        """The layer of ``PREFIX.weight`` and ``PREFIX.bias``; ``eps`` is added to the variance."""
        weight, bias = (weights.tensor(f"{prefix}.{part}", [width]) for part in ("weight", "bias"))
        return LayerNorm(weight, bias, eps, context)

    def __call__(self, x: "_Array") -> Tensor:
        return self.context.layernorm(x, self._weight, self._bias, eps=self.eps)

    def __repr__(self) -> str:
        return f"LayerNorm({self._weight.size}, eps={self.eps})"


class ReLU:
    """max(x, 0)."""

    def __init__(self, context: Context | None = None) -> None:
        self.context: Context = context or default_context()

    def __call__(self, x: "_Array") -> Tensor:
        return self.context.relu(x)

    def __repr__(self) -> str:
        return "ReLU()"


class GELU:
    """The Gaussian error linear unit, in its form with erf or with tanh."""

    def __init__(self, form: Literal["erf", "tanh"] = "erf", context: Context | None = None) -> None:
        self.context: Context = context or default_context()
        self._form: Literal["erf", "tanh"] = form

    def __call__(self, x: "_Array") -> Tensor:
        return self.context.gelu(x, form=self._form)

    def __repr__(self) -> str:
        return f'GELU("{self._form}")'


class Sequential:
    """Layers of which each takes the result of the one before."""

    def __init__(self, *layers: _Layer) -> None:
        self.layers: tuple[_Layer, ...] = layers

    def __call__(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x

    def __repr__(self) -> str:
        return f"Sequential({', '.join(map(repr, self.layers))})"


class FeedForward:
    """``activation(x·W1ᵀ + b1)·W2ᵀ + b2``.

    ``ShapeMismatchError`` where the second does not take what the first returns.
    """

    def __init__(self, inner: Linear, outer: Linear, activation: "_Activation" = "gelu_erf") -> None:
        if inner.outputs != outer.inputs:
            text = f"the first layer returns {inner.outputs} values and the second takes {outer.inputs}"
            raise ShapeMismatchError(f"feed-forward: {text}")
        self._inner, self._outer = inner, outer
        self._activation: _Activation = activation

    def __call__(self, x: "_Array", residual: "_Array | None" = None) -> Tensor:
        """Its result plus a residual."""
        return self._outer(self._inner(x, activation=self._activation), residual)

    def __repr__(self) -> str:
        return f"FeedForward({self._inner!r}, {self._outer!r}, {self._activation})"
