"""Models with the same bits on every device, computed by adead.

``SentenceEncoder`` opens the folder of a model of sentence-transformers, such as all-MiniLM-L6-v2. ``TextGenerator`` opens a language
model in a GGUF file. They raise the errors of the package ``adead``.
"""

from ._convert import ConversionWarning as ConversionWarning
from ._convert import convert as convert
from ._encoder import SentenceEncoder as SentenceEncoder
from ._encoder import TruncationWarning as TruncationWarning
from ._generator import Generation as Generation
from ._generator import Options as Options
from ._generator import TextGenerator as TextGenerator
from ._generator import TextStream as TextStream
from ._library import VERSION as __version__
from ._quantize import quantize as quantize

__all__ = [
    "ConversionWarning",
    "Generation",
    "Options",
    "SentenceEncoder",
    "TextGenerator",
    "TextStream",
    "TruncationWarning",
    "__version__",
    "convert",
    "quantize",
]
