"""Models with the same bits on every device, computed by adead.

``SentenceEncoder`` opens the folder of a model of sentence-transformers, such as all-MiniLM-L6-v2. ``TextGenerator`` opens a
language model in a GGUF file. ``Trainer`` trains a network with arrays. ``train`` runs a training job from a file. They raise the
errors of the package ``adead``.
"""

from ._convert import ConversionWarning as ConversionWarning
from ._convert import convert as convert
from ._encoder import SentenceEncoder as SentenceEncoder
from ._encoder import TruncationWarning as TruncationWarning
from ._generator import Generation as Generation
from ._generator import Options as Options
from ._generator import TextGenerator as TextGenerator
from ._generator import TextStream as TextStream
from ._job import Epoch as Epoch
from ._job import Outcome as Outcome
from ._job import Step as Step
from ._job import train as train
from ._library import VERSION as __version__
from ._quantize import quantize as quantize
from ._ranks import Transport as Transport
from ._train import Measured as Measured
from ._train import Trainer as Trainer

__all__ = [
    "ConversionWarning",
    "Epoch",
    "Generation",
    "Measured",
    "Options",
    "Outcome",
    "SentenceEncoder",
    "Step",
    "TextGenerator",
    "TextStream",
    "Trainer",
    "Transport",
    "TruncationWarning",
    "__version__",
    "convert",
    "quantize",
    "train",
]
