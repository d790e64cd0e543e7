"""From the MODEL argument to a model."""

import difflib
import sys
from pathlib import Path
from typing import Any, TYPE_CHECKING

from .._errors import ModelError
from .._quoting import PATH, shown
from ..mechanisms import names


if TYPE_CHECKING:
    from .._system import Model


def check(argument: str) -> None:
    """Refuse, before anything is loaded, a name that is unknown and a model file that is not there.

    **Raises:** `ModelError`.
    """
    from ..io._toml import read_toml

    path = Path(argument)
    if _is_file(path):
        return
    if path.suffix == ".toml":
        read_toml(path)
    if not path.suffix and argument.partition(":")[0] not in names():
        raise unknown(argument)


def load(argument: str) -> "Model":
    """A model file, a file of another program (what it holds and the model does not is listed on
    standard error), or a built-in mechanism.

    **Raises:** `ModelError`.
    """
    path = Path(argument)
    if not (path.suffix or _is_file(path)):
        return built_in(argument)
    # Only the command line reads files, so that Python users need no extra for mechanisms.
    from .. import io

    if path.suffix == ".toml":
        return io.read_model(path)
    if path.suffix.lower() in io.MODEL_FORMATS:
        imported = io.import_model(path)
        tell(imported)
        return imported.model
    return io.read_model(path) if _is_file(path) else built_in(argument)


def tell(imported: Any) -> None:
    """Masses, control inputs and omissions of a file of another program, printed to standard
    error."""
    from ..io import omission_lines
    from ..io._imports import input_lines

    own = (*imported.masses.lines(), *input_lines(imported.inputs))
    for line in (*own, *omission_lines(imported.omissions)):
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


def built_in(name: str) -> "Model":
    """A built-in mechanism.

    **Raises:** `ModelError` that suggests the nearest name.
    """
    from ..mechanisms import get

    try:
        return get(name)
    except KeyError:
        raise unknown(name) from None
    except ValueError as error:
        raise ModelError(str(error)) from None


def unknown(name: str) -> ModelError:
    """The refusal of a name, which suggests the nearest."""
    known = names()
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return ModelError(
        f"{shown(name, PATH)} is neither a .toml file, a robot's file nor a built-in "
        f"mechanism; the mechanisms are {', '.join(known)}.{hint}"
    )
