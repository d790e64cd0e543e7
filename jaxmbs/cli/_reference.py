"""`jaxmbs reference` and `jaxmbs export`: texts that lie in the package as they are printed."""

from pathlib import Path

from .._errors import ModelError
from ..mechanisms._names import model_file, names
from . import _load
from ._computing import computing


_IO = Path(__file__).parent.parent / "io"


def text(schema: bool) -> str:
    """The page, or the JSON Schema."""
    return (_IO / ("model.schema.json" if schema else "REFERENCE.md")).read_text(encoding="utf-8")


def model_text(name: str) -> str:
    """A built-in mechanism as a model file.

    **Raises:** `ModelError` for a name that is unknown, and for what a model file does not hold.
    """
    if name.partition(":")[0] not in names():
        raise _load.unknown(name)
    known = model_file(name)
    if known is not None:
        return known
    # One that is made to a size, or that a model file does not hold.
    with computing("export") as export:
        return export.written(name)


def write(out: Path, text: str) -> None:
    """**Raises:** `ModelError` where it cannot be written."""
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ModelError(f"cannot write {str(out)!r}: {error.strerror}.") from None
