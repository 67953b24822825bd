"""Tensor operations, GPU kernels and opcode programs with the same bits on every device.

``Tensor`` is a value, ``Context`` what computes; every operation is a function of this module, a method of contexts and of
tensors. ``GPU`` is the simple API for kernels of one's own. docs/operations.md describes the operations. ``overlap`` takes
batches through a device with copies beside the work, ``DataLoader`` makes them ahead: docs/overlap.md.
"""

from ._adead import *
from ._adead import __all__ as __all__
from ._adead import __version__ as __version__

# As type checkers know it; the module typing takes longer to import than all of this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._overlap import DataLoader as DataLoader
    from ._overlap import Stage as Stage
    from ._overlap import overlap as overlap

    __all__ += ["DataLoader", "Stage", "overlap"]
else:
    _OVERLAP = ("DataLoader", "Stage", "overlap")
    # Type checkers know no other form than the one above, which would change the module's own list.
    __all__ = [*__all__, *_OVERLAP]

    def __getattr__(name):
        # Imported when first asked for: what they stand on, threads and queues, takes longer than the rest.
        if name not in _OVERLAP:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import _overlap

        globals().update((one, getattr(_overlap, one)) for one in _OVERLAP)
        return globals()[name]

    def __dir__():
        return sorted({*globals(), *_OVERLAP})
