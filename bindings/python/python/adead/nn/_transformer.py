"""Self-attention and the encoders made of it."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._adead import Context, InvalidArgumentError, ShapeMismatchError, Tensor, default_context
from ._layers import FeedForward, LayerNorm, Linear
from ._weights import Weights

if TYPE_CHECKING:
    from ._layers import _Activation  # pyright: ignore[reportPrivateUsage]


def _mask(lengths: Sequence[int], length: int) -> Tensor:
    """What is added to the scores, ``[count, 1, 1, length]``: 0 for a row of a sequence, −inf for padding."""
    for own in lengths:
        if not 1 <= own <= length:
            raise InvalidArgumentError(f"a sequence of {own} rows can't be padded to {length}")
    added = array("f", (0.0 if at < own else float("-inf") for own in lengths for at in range(length)))
    return Tensor(added, "f32", (len(lengths), 1, 1, length))


class MultiHeadAttention:
    """Self-attention: queries, keys and values as one product, then the heads, then the output's product.

    Of a layer that returns queries, keys and values behind each other, and the output's. ``ShapeMismatchError`` where they
    don't fit each other, ``InvalidArgumentError`` unless ``heads`` divides the width.
    """

    def __init__(self, qkv: Linear, output: Linear, heads: int) -> None:
        width = output.inputs
        if qkv.outputs != 3 * width:
            raise ShapeMismatchError(f"attention: {qkv.outputs} values are no queries, keys and values of {width}")
        if heads < 1 or width % heads:
            raise InvalidArgumentError(f"attention: {heads} heads don't divide a width of {width}")
        self.context: Context = qkv.context
        self.heads: int = heads
        self._qkv, self._output = qkv, output

    @staticmethod
    def load(
        weights: Weights, prefixes: Sequence[str], width: int, heads: int, context: Context | None = None
    ) -> "MultiHeadAttention":
        """The layer of four linear ones, named by their prefixes: query, key, value, output; all of ``width`` to ``width``."""
        query, key, value, output = prefixes
        context = context or default_context()
        parts = query, key, value
        weight = context.concat([weights.tensor(f"{part}.weight", [width, width]) for part in parts], axis=0)
        bias = context.concat([weights.tensor(f"{part}.bias", [width]) for part in parts], axis=0)
        return MultiHeadAttention(Linear(weight, bias, context), Linear.load(weights, output, width, width, context), heads)

    def __call__(self, x: Tensor, lengths: Sequence[int] | None = None, residual: Tensor | None = None) -> Tensor:
        """Attention within each sequence of ``[count, length, width]``, or of the one that ``[length, width]`` is, plus a
        residual. With ``lengths``, one for each, the rows behind them are padding, which nothing attends to.
        """
        width, heads = self._output.inputs, self.heads
        if x.ndim not in (2, 3) or x.shape[-1] != self._qkv.inputs:
            raise ShapeMismatchError(f"attention: x is {list(x.shape)}; it must be [count, length, {self._qkv.inputs}]")
        count, length = x.shape[:-1] if x.ndim == 3 else (1, x.shape[0])
        if lengths is not None and len(lengths) != count:
            raise ShapeMismatchError(f"attention: {len(lengths)} lengths for {count} sequences")
        mask = None if lengths is None else _mask(lengths, length)
        qkv = self._qkv(x).reshape(count, length, 3, heads, width // heads)
        # Queries, keys and values, each [count, heads, length, width / heads].
        apart = self.context.transpose(qkv, [2, 0, 3, 1, 4])
        attended = self.context.attention(apart[0], apart[1], apart[2], mask)
        joined = self.context.transpose(attended, [0, 2, 1, 3]).reshape(*x.shape[:-1], width)
        return self._output(joined, residual)

    def __repr__(self) -> str:
        return f"MultiHeadAttention({self.heads} heads of {self._output.inputs // self.heads})"


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


class TransformerLayer:
    """A layer that is normalised behind each part, as BERT's are: ``h = norm(x + attention(x))``, then
    ``norm(h + feed_forward(h))``.
    """

    def __init__(
        self, attention: MultiHeadAttention, attention_norm: LayerNorm, feed_forward: FeedForward, output_norm: LayerNorm
    ) -> None:
        self._attention, self._attention_norm = attention, attention_norm
        self._feed_forward, self._output_norm = feed_forward, output_norm

    @staticmethod
    def load(
        weights: Weights, prefix: str, config: TransformerConfig, context: Context | None = None
    ) -> "TransformerLayer":
        """The layer under a prefix, by BERT's names: ``PREFIX.attention.self.query.weight`` and so on."""
        width, hidden, eps = config.width, config.hidden, config.eps
        parts = [f"{prefix}.attention.{part}" for part in ("self.query", "self.key", "self.value", "output.dense")]
        inner = Linear.load(weights, f"{prefix}.intermediate.dense", width, hidden, context)
        outer = Linear.load(weights, f"{prefix}.output.dense", hidden, width, context)
        return TransformerLayer(
            MultiHeadAttention.load(weights, parts, width, config.heads, context),
            LayerNorm.load(weights, f"{prefix}.attention.output.LayerNorm", width, eps, context),
            FeedForward(inner, outer, config.activation),
            LayerNorm.load(weights, f"{prefix}.output.LayerNorm", width, eps, context),
        )

    def __call__(self, x: Tensor, lengths: Sequence[int] | None = None) -> Tensor:
        """Its result, with ``lengths`` as of ``MultiHeadAttention``."""
        h = self._attention_norm(self._attention(x, lengths, x))
        return self._output_norm(self._feed_forward(h, h))

    def __repr__(self) -> str:
        return f"TransformerLayer({self._attention!r}, {self._feed_forward!r})"


class TransformerEncoder:
    """Transformer layers one after another."""

    def __init__(self, layers: Sequence[TransformerLayer]) -> None:
        self.layers: tuple[TransformerLayer, ...] = tuple(layers)

    @staticmethod
    def load(
        weights: Weights, prefix: str, layers: int, config: TransformerConfig, context: Context | None = None
    ) -> "TransformerEncoder":
        """So many layers under a prefix: ``PREFIX.0``, ``PREFIX.1`` and so on."""
        return TransformerEncoder([TransformerLayer.load(weights, f"{prefix}.{i}", config, context) for i in range(layers)])

    def __call__(self, x: Tensor, lengths: Sequence[int] | None = None) -> Tensor:
        """Its result for sequences ``[count, length, width]``, or the one of ``[length, width]``. A sequence's rows have the
        same bits alone, among others, and padded with ``lengths``.
        """
        for layer in self.layers:
            x = layer(x, lengths)
        return x

    def __repr__(self) -> str:
        first = f", each {self.layers[0]!r}" if self.layers else ""
        return f"TransformerEncoder({len(self.layers)} layers{first})"
