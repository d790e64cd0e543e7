"""Model files of built-in mechanisms that do not lie in the package."""

from .._errors import ModelError
from ..io import write_model
from ._load import built_in


def written(name: str) -> str:
    """A built-in mechanism as a model file.

    **Raises:** `ModelError` for what a model file does not hold.
    """
    model = built_in(name)
    try:
        return write_model(model)
    except ValueError as error:
        raise ModelError(f"{name!r} cannot be written as a model file: {error}") from None
