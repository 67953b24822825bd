"""Models with the same bits on every device, computed by adead.

``SentenceEncoder`` opens the folder of a model of sentence-transformers, such as all-MiniLM-L6-v2. It raises the errors of the package
``adead``.
"""

from ._encoder import SentenceEncoder as SentenceEncoder
from ._encoder import TruncationWarning as TruncationWarning
from ._library import VERSION as __version__

__all__ = ["SentenceEncoder", "TruncationWarning", "__version__"]
