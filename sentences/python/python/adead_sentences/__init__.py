"""Sentence embeddings with the same bits on every device: models of sentence-transformers, run by adead.

``SentenceEncoder`` opens the folder of a model, such as all-MiniLM-L6-v2. Its errors are those of the package ``adead``.
"""

from ._encoder import SentenceEncoder as SentenceEncoder
from ._encoder import TruncationWarning as TruncationWarning
from ._library import VERSION as __version__

__all__ = ["SentenceEncoder", "TruncationWarning", "__version__"]
