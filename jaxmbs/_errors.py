"""The error of models, and optional packages."""

import importlib
from types import ModuleType


class ModelError(ValueError):
    """A model that cannot be: one sentence that names the table, the entry and the fix."""


def optional(module: str, extra: str) -> ModuleType:
    """A module needed only by the functions of an extra.

    **Raises:** `ModelError` that names the extra to install.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ModelError(
            f"this needs {error.name}, which is not installed; install the extra with: "
            f"python -m pip install 'jaxmbs[{extra}]'"
        ) from None
