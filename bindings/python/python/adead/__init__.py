"""Tensor operations, GPU kernels and opcode programs with the same bits on every device.

``Tensor`` is a value, ``Context`` what computes; every operation is a function of this module, a method of contexts and of
tensors. ``GPU`` is the simple API for kernels of one's own. docs/operations.md describes the operations. ``overlap`` takes
batches through a device with copies beside the work, ``DataLoader`` makes them ahead: docs/overlap.md.
"""

from typing import TYPE_CHECKING

from ._adead import *
from ._adead import __all__ as __all__
from ._adead import __version__ as __version__
from ._overlap import DataLoader as DataLoader
from ._overlap import Stage as Stage
from ._overlap import overlap as overlap

if TYPE_CHECKING:
    __all__ += ["DataLoader", "Stage", "overlap"]
else:
    # Type checkers know no other form than the one above, which would change the module's own list.
    __all__ = [*__all__, "DataLoader", "Stage", "overlap"]
