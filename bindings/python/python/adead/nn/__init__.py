"""Layers of neural networks, and their weights from safetensors files.

A layer is made for a context, of tensors or by ``load`` of a file's, and then takes arrays and returns a tensor. The bits are
those of the operations by themselves, on every device, and those of the same layers in every language: docs/sentences.md.
"""

from ._layers import GELU as GELU
from ._layers import Embedding as Embedding
from ._layers import FeedForward as FeedForward
from ._layers import LayerNorm as LayerNorm
from ._layers import Linear as Linear
from ._layers import ReLU as ReLU
from ._layers import Sequential as Sequential
from ._transformer import MultiHeadAttention as MultiHeadAttention
from ._transformer import TransformerConfig as TransformerConfig
from ._transformer import TransformerEncoder as TransformerEncoder
from ._transformer import TransformerLayer as TransformerLayer
from ._weights import Weights as Weights

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
