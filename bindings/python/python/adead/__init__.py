"""Tensor operations, GPU kernels and opcode programs with the same bits on every device.

``Tensor`` is a value, ``Context`` what computes; every operation is a function of this module, a method of contexts and of
tensors. ``GPU`` is the simple API for kernels of one's own. docs/operations.md describes the operations.
"""

from ._adead import *
from ._adead import __all__ as __all__
from ._adead import __version__ as __version__
