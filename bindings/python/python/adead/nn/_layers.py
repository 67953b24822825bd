"""Layers: classes over the runtime's, which every language has."""

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
    """The value, where it is a tensor."""
    if not isinstance(value, Tensor):
        hint = f"{of}.load(weights, prefix, …) reads one, adead.Tensor(…) makes one of an array"
        raise TypeError(f"{of}: the {name} is a tensor {sides}, not a {type(value).__name__}: {hint}")
    return value


class _Layer:
    """What the runtime computes."""

    def __init__(self, module: _Module, context: Context) -> None:
        self._module: _Module = module
        self.context: Context = context

    def __call__(self, x: "_Array") -> Tensor:
        return self._module.forward(x)


class Linear(_Layer):
    """``x·Wᵀ + bias`` of ``[…, inputs]``. The weight, ``[outputs, inputs]``, is packed once where the context has no GPU.

    ``ShapeMismatchError`` where weight and bias don't fit.
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
        """The layer of ``PREFIX.weight`` and ``PREFIX.bias``."""
        weight = weights.tensor(f"{prefix}.weight", [outputs, inputs])
        return Linear(weight, weights.tensor(f"{prefix}.bias", [outputs]), context)

    def __call__(self, x: "_Array", residual: "_Array | None" = None, activation: "_Activation" = "none") -> Tensor:
        """``activation(x·Wᵀ + residual + bias)``, as one product."""
        return self._module.forward(x, residual, activation)

    def __repr__(self) -> str:
        return f"Linear({self.inputs} to {self.outputs}{', bias' if self._has_bias else ''})"


class Embedding(_Layer):
    """Rows of a table ``[count, width]`` by ids of any shape, i32, i64 or u32; ``InvalidArgumentError`` for others."""

    def __init__(self, table: Tensor, context: Context | None = None) -> None:
        table = _tensor("Embedding", "table", table, "[count, width]")
        context = context or default_context()
        super().__init__(_Module.embedding(context, table), context)
        self.count: int = table.shape[0]
        self.width: int = table.shape[1]

    @staticmethod
    def load(weights: Weights, prefix: str, count: int, width: int, context: Context | None = None) -> "Embedding":
        """The table ``PREFIX.weight``."""
        return Embedding(weights.tensor(f"{prefix}.weight", [count, width]), context)

    def __repr__(self) -> str:
        return f"Embedding({self.count} of {self.width})"


class LayerNorm(_Layer):
    """Mean and variance normalised over the last axis, times a weight, plus a bias, both ``[width]``."""

    def __init__(self, weight: Tensor, bias: Tensor, eps: float = 1e-5, context: Context | None = None) -> None:
        context = context or default_context()
        super().__init__(_Module.layer_norm(context, weight, bias, eps), context)
        self.eps: float = eps
        self._width: int = weight.size

    @staticmethod
    def load(weights: Weights, prefix: str, width: int, eps: float = 1e-5, context: Context | None = None) -> "LayerNorm":
        """The layer of ``PREFIX.weight`` and ``PREFIX.bias``; ``eps`` is added to the variance."""
        weight, bias = (weights.tensor(f"{prefix}.{part}", [width]) for part in ("weight", "bias"))
        return LayerNorm(weight, bias, eps, context)

    def __repr__(self) -> str:
        return f"LayerNorm({self._width}, eps={self.eps})"


class ReLU(_Layer):
    """max(x, 0)."""

    def __init__(self, context: Context | None = None) -> None:
        context = context or default_context()
        super().__init__(_Module.relu(context), context)

    def __repr__(self) -> str:
        return "ReLU()"


class GELU(_Layer):
    """The Gaussian error linear unit, in its form with erf or with tanh."""

    def __init__(self, form: Literal["erf", "tanh"] = "erf", context: Context | None = None) -> None:
        context = context or default_context()
        super().__init__(_Module.gelu(context, form), context)
        self._form: Literal["erf", "tanh"] = form

    def __repr__(self) -> str:
        return f'GELU("{self._form}")'


class Sequential:
    """Layers of which each takes the result of the one before: of this module, or anything that is called with a tensor."""

    def __init__(self, *layers: _Callable) -> None:
        self.layers: tuple[_Callable, ...] = layers

    def __call__(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x

    def __repr__(self) -> str:
        return f"Sequential({', '.join(map(repr, self.layers))})"


class FeedForward(_Layer):
    """``activation(x·W1ᵀ + b1)·W2ᵀ + b2``.

    ``ShapeMismatchError`` where the second does not take what the first returns.
    """

    def __init__(self, inner: Linear, outer: Linear, activation: "_Activation" = "gelu_erf") -> None:
        super().__init__(_Module.feed_forward(inner._module, outer._module, activation), inner.context)
        self._repr: str = f"FeedForward({inner!r}, {outer!r}, {activation})"

    def __call__(self, x: "_Array", residual: "_Array | None" = None) -> Tensor:
        """Its result plus a residual."""
        return self._module.forward(x, residual)

    def __repr__(self) -> str:
        return self._repr


class MultiHeadAttention(_Layer):
    """Self-attention: queries, keys and values as one product, then the heads, then the output's product.

    Of a layer that returns queries, keys and values behind each other, and the output's. ``ShapeMismatchError`` where they
    don't fit each other, ``InvalidArgumentError`` unless ``heads`` divides the width.
    """

    def __init__(self, qkv: Linear, output: Linear, heads: int) -> None:
        super().__init__(_Module.attention(qkv._module, output._module, heads), qkv.context)
        self.heads: int = heads

    @staticmethod
    def load(
        weights: Weights, prefixes: Sequence[str], width: int, heads: int, context: Context | None = None
    ) -> "MultiHeadAttention":
        """The layer of four linear ones, named by their prefixes: query, key, value, output; all of ``width`` to ``width``."""
        context = context or default_context()
        layer = MultiHeadAttention.__new__(MultiHeadAttention)
        _Layer.__init__(layer, _Module.load_attention(context, weights, prefixes, width, heads), context)
        layer.heads = heads
        return layer

    def __call__(
        self, x: "_Array", lengths: Sequence[int] | None = None, residual: "_Array | None" = None
    ) -> Tensor:
        """Attention within each sequence of ``[count, length, width]``, or of the one that ``[length, width]`` is, plus a
        residual. With ``lengths``, one for each, the rows behind them are padding, which nothing attends to.
        """
        return self._module.forward(x, residual, "none", lengths)

    def __repr__(self) -> str:
        return f"MultiHeadAttention({self.heads} heads)"


@dataclass(frozen=True)
class TransformerConfig:
    """What an encoder's layers are, all alike."""

    width: int
    """Values of a row."""
    heads: int
    """Heads of attention."""
    hidden: int
    """Values between the two products of the feed-forward part."""
    activation: "_Activation" = "gelu_erf"
    """Between those products."""
    eps: float = 1e-12
    """Added to variances."""


class TransformerLayer(_Layer):
    """A layer that is normalised behind each part, as BERT's are: ``h = norm(x + attention(x))``, then
    ``norm(h + feed_forward(h))``.
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
        """The layer under a prefix, by BERT's names: ``PREFIX.attention.self.query.weight`` and so on."""
        context = context or default_context()
        sizes = config.width, config.heads, config.hidden, config.activation, config.eps
        layer = TransformerLayer.__new__(TransformerLayer)
        _Layer.__init__(layer, _Module.load_transformer_layer(context, weights, prefix, sizes), context)
        return layer

    def __call__(self, x: "_Array", lengths: Sequence[int] | None = None) -> Tensor:
        """Its result, with ``lengths`` as of ``MultiHeadAttention``."""
        return self._module.forward(x, None, "none", lengths)

    def __repr__(self) -> str:
        return "TransformerLayer()"


class TransformerEncoder(_Layer):
    """Transformer layers one after another."""

    def __init__(self, layers: Sequence[TransformerLayer]) -> None:
        layers = tuple(layers)
        context = layers[0].context if layers else default_context()
        super().__init__(_Module.transformer_encoder([layer._module for layer in layers]), context)
        self.layers: tuple[TransformerLayer, ...] = layers

    @staticmethod
    def load(
        weights: Weights, prefix: str, layers: int, config: TransformerConfig, context: Context | None = None
    ) -> "TransformerEncoder":
        """So many layers under a prefix: ``PREFIX.0``, ``PREFIX.1`` and so on."""
        return TransformerEncoder([TransformerLayer.load(weights, f"{prefix}.{i}", config, context) for i in range(layers)])

    def __call__(self, x: "_Array", lengths: Sequence[int] | None = None) -> Tensor:
        """Its result for sequences ``[count, length, width]``, or the one of ``[length, width]``. A sequence's rows have the
        same bits alone, among others, and padded with ``lengths``.
        """
        return self._module.forward(x, None, "none", lengths)

    def __repr__(self) -> str:
        return f"TransformerEncoder({len(self.layers)} layers)"
