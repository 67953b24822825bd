"""Optional packages, imported when they are first needed."""

import importlib
from typing import Any


def extra(module: str, name: str) -> Any:
    """Imports a module of an optional package. ``name`` is the extra of adead-models that installs it.

    The result is ``Any``, so that this package has the same types whether the optional package is installed or not.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A package that is installed and lacks one of its own parts is another error.
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise ImportError(f"the Python package {error.name!r} is missing: pip install adead-models[{name}]") from error
