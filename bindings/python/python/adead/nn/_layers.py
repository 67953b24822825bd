"""Layers: classes over the runtime's layers, which every language shares."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from .._adead import Context, Tensor, default_context
from .._adead import _Module as _Module  # pyright: ignore[reportPrivateUsage]
from .._adead import _Weights as Weights  # pyright: ignore[reportPrivateUsage]

if TYPE_CHECKING:
    from typing_extensions import Buffer

    _Array = Tensor | Buffer
    _Activation = Literal["none", "relu", "sigmoid", "tanh", "gelu_tanh", "gelu_erf", "silu"]


class _Callable(Protocol):
    def __call__(self, x: Any, /) -> Tensor: ...


def _tensor(of: str, name: str, value: object, sides: str) -> Tensor:
    """Returns the value, or raises an error if it is not a tensor."""
    if not isinstance(value, Tensor):
        hint = f"{of}.load(weights, prefix, …) reads one, adead.Tensor(…) makes one of an array"
        raise TypeError(f"{of}: the {name} is a tensor {sides}, not a {type(value).__name__}: {hint}")
    return value


class _Layer:
    """A layer that the runtime computes."""

    def __init__(self, module: _Module, context: Context) -> None:
        self._module: _Module = module
        self.context: Context = context

    def __call__(self, x: "_Array") -> Tensor:
        return self._module.forward(x)


class Linear(_Layer):
    """Computes ``x·Wᵀ + bias`` of ``[…, inputs]``. If the context has no GPU, the weight, ``[outputs, inputs]``, is
    packed once.

    ``ShapeMismatchError`` if weight and bias don't fit.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None, context: Context | None = None) -> None:
        weight = _tensor("Linear", "weight", weight, "[outputs, inputs]")
        context = context or default_context()
        super().__init__(_Module.linear(context, weight, bias), context)
        self.outputs: int = weight.shape[0]
        self.inputs: int = weight.shape[1]
        self._has_bias: bool = bias is not None

    @staticmethod
    def load(weights: Weights, prefix: str, inputs: int, outputs: int, context: Context | None = None) -> "Linear":
        """Loads the layer of ``PREFIX.weight`` and ``PREFIX.bias``."""
        weight = weights.tensor(f"{prefix}.weight", [outputs, inputs])
        return Linear(weight, weights.tensor(f"{prefix}.bias", [outputs]), context)

    def __call__(self, x: "_Array", residual: "_Array | None" = None, activation: "_Activation" = "none") -> Tensor:
        """Computes ``activation(x·Wᵀ + residual + bias)`` as one product."""
        return self._module.forward(x, residual, activation)

    def __repr__(self) -> str:
        return f"Linear({self.inputs} to {self.outputs}{', bias' if self._has_bias else ''})"


class Embedding(_Layer):
    """Looks up rows of a table ``[count, width]`` by ids of any shape, i32, i64 or u32. ``InvalidArgumentError`` for an
    id outside the table."""

    def __init__(self, table: Tensor, context: Context | None = None) -> None:
        table = _tensor("Embedding", "table", table, "[count, width]")
        context = context or default_context()
        super().__init__(_Module.embedding(context, table), context)
        self.count: int = table.shape[0]
        self.width: int = table.shape[1]

    @staticmethod
    def load(weights: Weights, prefix: str, count: int, width: int, context: Context | None = None) -> "Embedding":
        """Loads the table ``PREFIX.weight``."""
        return Embedding(weights.tensor(f"{prefix}.weight", [count, width]), context)

    def __repr__(self) -> str:
        return f"Embedding({self.count} of {self.width})"


class LayerNorm(_Layer):
    """Normalises mean and variance over the last axis, multiplies by a weight and adds a bias, both ``[width]``."""

    def __init__(self, weight: Tensor, bias: Tensor, eps: float = 1e-5, context: Context | None = None) -> None:
        context = context or default_context()
        super().__init__(_Module.layer_norm(context, weight, bias, eps), context)
        self.eps: float = eps
        self._width: int = weight.size

    @staticmethod
    def load(weights: Weights, prefix: str, width: int, eps: float = 1e-5, context: Context | None = None) -> "LayerNorm":
        """Loads the layer of ``PREFIX.weight`` and ``PREFIX.bias``; ``eps`` is added to the variance."""
        weight, bias = (weights.tensor(f"{prefix}.{part}", [width]) for part in ("weight", "bias"))
        return LayerNorm(weight, bias, eps, context)

    def __repr__(self) -> str:
        return f"LayerNorm({self._width}, eps={self.eps})"


class ReLU(_Layer):
    """Computes max(x, 0)."""

    def __init__(self, context: Context | None = None) -> None:
        context = context or default_context()
        super().__init__(_Module.relu(context), context)

    def __repr__(self) -> str:
        return "ReLU()"


class GELU(_Layer):
    """Computes the Gaussian error linear unit, in its form with erf or with tanh."""

    def __init__(self, form: Literal["erf", "tanh"] = "erf", context: Context | None = None) -> None:
        context = context or default_context()
        super().__init__(_Module.gelu(context, form), context)
        self._form: Literal["erf", "tanh"] = form

    def __repr__(self) -> str:
        return f'GELU("{self._form}")'


class Sequential:
    """Applies layers one after another. A layer is one of this module's, or any function of a tensor."""

    def __init__(self, *layers: _Callable) -> None:
        self.layers: tuple[_Callable, ...] = layers

    def __call__(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x

    def __repr__(self) -> str:
        return f"Sequential({', '.join(map(repr, self.layers))})"


class FeedForward(_Layer):
    """Computes ``activation(x·W1ᵀ + b1)·W2ᵀ + b2``.

    ``ShapeMismatchError`` if the second layer does not fit the result of the first.
    """

    def __init__(self, inner: Linear, outer: Linear, activation: "_Activation" = "gelu_erf") -> None:
        super().__init__(_Module.feed_forward(inner._module, outer._module, activation), inner.context)
        self._repr: str = f"FeedForward({inner!r}, {outer!r}, {activation})"

    def __call__(self, x: "_Array", residual: "_Array | None" = None) -> Tensor:
        """Computes the result plus a residual."""
        return self._module.forward(x, residual)

    def __repr__(self) -> str:
        return self._repr


class MultiHeadAttention(_Layer):
    """Computes self-attention: queries, keys and values as one product, then the heads, then the output's product.

    ``qkv`` is a layer that returns queries, keys and values in this order; ``output`` is the output's layer.
    ``ShapeMismatchError`` if they don't fit each other, ``InvalidArgumentError`` unless ``heads`` divides the width.
    """

    def __init__(self, qkv: Linear, output: Linear, heads: int) -> None:
        super().__init__(_Module.attention(qkv._module, output._module, heads), qkv.context)
        self.heads: int = heads

    @staticmethod
    def load(
        weights: Weights, prefixes: Sequence[str], width: int, heads: int, context: Context | None = None
    ) -> "MultiHeadAttention":
        """Loads the layer from four linear ones by their prefixes: query, key, value, output; each maps ``width`` to
        ``width``."""
        context = context or default_context()
        layer = MultiHeadAttention.__new__(MultiHeadAttention)
        _Layer.__init__(layer, _Module.load_attention(context, weights, prefixes, width, heads), context)
        layer.heads = heads
        return layer

    def __call__(
        self, x: "_Array", lengths: Sequence[int] | None = None, residual: "_Array | None" = None
    ) -> Tensor:
        """Computes attention within each sequence of ``[count, length, width]``, or of the single one ``[length,
        width]``, plus a residual. With ``lengths``, one for each sequence, the rows beyond them are padding, which no
        row attends to.
        """
        return self._module.forward(x, residual, "none", lengths)

    def __repr__(self) -> str:
        return f"MultiHeadAttention({self.heads} heads)"


@dataclass(frozen=True)
class TransformerConfig:
    """The configuration of an encoder's layers, which are all alike."""

    width: int
    """The size of a row."""
    heads: int
    """The number of attention heads."""
    hidden: int
    """The size between the two products of the feed-forward part."""
    activation: "_Activation" = "gelu_erf"
    """The function between those products."""
    eps: float = 1e-12
    """The number added to variances."""


class TransformerLayer(_Layer):
    """A layer that normalises after each part, as BERT does: ``h = norm(x + attention(x))``, then ``norm(h +
    feed_forward(h))``.
    """

    def __init__(
        self, attention: MultiHeadAttention, attention_norm: LayerNorm, feed_forward: FeedForward, output_norm: LayerNorm
    ) -> None:
        parts = attention._module, attention_norm._module, feed_forward._module, output_norm._module
        super().__init__(_Module.transformer_layer(*parts), attention.context)

    @staticmethod
    def load(
        weights: Weights, prefix: str, config: TransformerConfig, context: Context | None = None
    ) -> "TransformerLayer":
        """Loads the layer under a prefix, by BERT's names: ``PREFIX.attention.self.query.weight`` and so on."""
        context = context or default_context()
        sizes = config.width, config.heads, config.hidden, config.activation, config.eps
        layer = TransformerLayer.__new__(TransformerLayer)
        _Layer.__init__(layer, _Module.load_transformer_layer(context, weights, prefix, sizes), context)
        return layer

    def __call__(self, x: "_Array", lengths: Sequence[int] | None = None) -> Tensor:
        """Computes the result, with ``lengths`` as for ``MultiHeadAttention``."""
        return self._module.forward(x, None, "none", lengths)

    def __repr__(self) -> str:
        return "TransformerLayer()"


class TransformerEncoder(_Layer):
    """Applies transformer layers one after another."""

    def __init__(self, layers: Sequence[TransformerLayer]) -> None:
        layers = tuple(layers)
        context = layers[0].context if layers else default_context()
        super().__init__(_Module.transformer_encoder([layer._module for layer in layers]), context)
        self.layers: tuple[TransformerLayer, ...] = layers

    @staticmethod
    def load(
        weights: Weights, prefix: str, layers: int, config: TransformerConfig, context: Context | None = None
    ) -> "TransformerEncoder":
        """Loads ``layers`` layers under a prefix: ``PREFIX.0``, ``PREFIX.1`` and so on."""
        return TransformerEncoder([TransformerLayer.load(weights, f"{prefix}.{i}", config, context) for i in range(layers)])

    def __call__(self, x: "_Array", lengths: Sequence[int] | None = None) -> Tensor:
        """Computes the result for sequences ``[count, length, width]``, or for a single one ``[length, width]``. A
        sequence's rows have the same bits alone, among other sequences, and padded with ``lengths``.
        """
        return self._module.forward(x, None, "none", lengths)

    def __repr__(self) -> str:
        return f"TransformerEncoder({len(self.layers)} layers)"
