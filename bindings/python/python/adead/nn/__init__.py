"""Layers of neural networks, and their weights from safetensors files.

A layer is made for a context, from tensors or by ``load`` from a file. It is called with arrays and returns a tensor.
Its bits equal those of its single operations, on every device. The runtime implements the layers for every language:
https://adead.github.io/adead/sentences.html.
"""

from .._adead import _Weights as Weights  # pyright: ignore[reportPrivateUsage]
from ._layers import Embedding as Embedding
from ._layers import FeedForward as FeedForward
from ._layers import GELU as GELU
from ._layers import LayerNorm as LayerNorm
from ._layers import Linear as Linear
from ._layers import MultiHeadAttention as MultiHeadAttention
from ._layers import ReLU as ReLU
from ._layers import Sequential as Sequential
from ._layers import TransformerConfig as TransformerConfig
from ._layers import TransformerEncoder as TransformerEncoder
from ._layers import TransformerLayer as TransformerLayer

__all__ = [
    "GELU",
    "Embedding",
    "FeedForward",
    "LayerNorm",
    "Linear",
    "MultiHeadAttention",
    "ReLU",
    "Sequential",
    "TransformerConfig",
    "TransformerEncoder",
    "TransformerLayer",
    "Weights",
]
