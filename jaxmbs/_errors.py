"""Errors of this package, and optional packages."""

import importlib
from types import ModuleType


class AbstractError(Exception):
    """An error of this package's own: of a model or file (`io.ModelError`), of a design
    (`design.DesignError`), of a computation (`results.AnalysisError`,
    `results.KinematicsError`, `SimulationError`). A wrong argument raises Python's `TypeError` or
    `ValueError`."""


class ModelError(AbstractError, ValueError):
    """A model that cannot be: one sentence that names the table, the entry and the fix."""


class AnalysisError(AbstractError, RuntimeError):
    """A computation without a result, for sound input: it does not converge, or constraints
    contradict each other."""


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
