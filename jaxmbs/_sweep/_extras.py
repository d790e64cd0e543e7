import importlib
from types import ModuleType

from .._errors import ModelError


def extra(module: str) -> ModuleType:
    """A module of the extra `sweep`, which only those need who ask for what it does.

    **Raises:** `ModelError` that says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ModelError(
            f"a sweep needs {error.name} for this, which is not installed; install the extra "
            "with: python -m pip install 'jaxmbs[sweep]'"
        ) from None
