"""Tensor operations, GPU kernels and opcode programs with the same bits on every device.

``Tensor`` is a value, and a ``Context`` computes. Every operation is a function of this module, and a method of
contexts and of tensors. ``GPU`` is the simple API for your own kernels. docs/operations.md describes the operations.
``overlap`` processes batches on a device and overlaps copies with the work. ``DataLoader`` makes batches ahead.
docs/overlap.md describes both.
"""

from ._adead import *
from ._adead import __all__ as __all__
from ._adead import __version__ as __version__

# Type checkers treat this name as true. The import of typing takes longer than all of this module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import nn as nn
    from ._overlap import DataLoader as DataLoader
    from ._overlap import Stage as Stage
    from ._overlap import overlap as overlap
    from ._profile import Profile as Profile
    from ._profile import ProfileDevice as ProfileDevice
    from ._profile import ProfileRecord as ProfileRecord
    from ._profile import ProfileReport as ProfileReport
    from ._profile import ProfileSpan as ProfileSpan
    from ._profile import ProfileTotal as ProfileTotal

    __all__ += ["DataLoader", "Stage", "overlap"]
    __all__ += ["Profile", "ProfileDevice", "ProfileRecord", "ProfileReport", "ProfileSpan", "ProfileTotal"]
else:
    _LATER = {name: "_overlap" for name in ("DataLoader", "Stage", "overlap")}
    _LATER |= {"Profile" + name: "_profile" for name in ("", "Device", "Record", "Report", "Span", "Total")}
    # Type checkers understand only the form above, and would take this for a change of the module's list.
    __all__ = [*__all__, *_LATER]

    def __getattr__(name):
        # Imported at the first use, because threads, queues and classes take longer to import than the rest.
        from importlib import import_module

        if name == "nn":
            return import_module(".nn", __name__)
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found = getattr(import_module("." + _LATER[name], __name__), name)
        return found

    def __dir__():
        return sorted({*globals(), *_LATER, "nn"})
