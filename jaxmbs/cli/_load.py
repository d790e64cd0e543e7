"""From the MODEL argument to a model."""

import difflib
import sys
from pathlib import Path
from typing import Any

from .. import mechanisms
from .._checks import PATH, shown
from .._errors import ModelError
from .._system import Model


def load(argument: str) -> Model:
    """A model file, a file of another program (what it holds and the model does not is listed on
    standard error), or a built-in mechanism.

    **Raises:** `ModelError`.
    """
    # Only the command line reads files, so that Python users need no extra for mechanisms.
    from ..io import import_model, MODEL_FORMATS, read_model

    path = Path(argument)
    if path.suffix.lower() in MODEL_FORMATS:
        imported = import_model(path)
        tell(imported)
        return imported.model
    if path.suffix == ".toml" or _is_file(path):
        return read_model(path)
    return built_in(argument)


def tell(imported: Any) -> None:
    """Masses and omissions of a file of another program, printed to standard error."""
    from ..io import omission_lines

    for line in (*imported.masses.lines(), *omission_lines(imported.omissions)):
        print(f"jaxmbs: {line}", file=sys.stderr)


def source(argument: str) -> Path | None:
    """The file behind the MODEL argument; None for a built-in mechanism."""
    path = Path(argument)
    return path if _is_file(path) else None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        # A text that is too long or not permitted as a path is not a file.
        return False


def built_in(name: str) -> Model:
    """A built-in mechanism.

    **Raises:** `ModelError` that suggests the nearest name.
    """
    try:
        return mechanisms.get(name)
    except KeyError:
        close = difflib.get_close_matches(name, mechanisms.names(), n=1, cutoff=0.5)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ModelError(
            f"{shown(name, PATH)} is neither a .toml file, a robot's file nor a built-in "
            f"mechanism; the mechanisms are {', '.join(mechanisms.names())}.{hint}"
        ) from None
    except ValueError as error:
        raise ModelError(str(error)) from None
