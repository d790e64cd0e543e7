"""`jaxmbs reference`: what a model file may hold, for people and for editors."""

import json
from pathlib import Path

from .._errors import ModelError


def text(schema: bool) -> str:
    """The page, or the JSON Schema."""
    from ..io import json_schema, reference

    return json.dumps(json_schema(), indent=1) + "\n" if schema else reference()


def write(out: Path, text: str) -> None:
    """**Raises:** `ModelError` where it cannot be written."""
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ModelError(f"cannot write {str(out)!r}: {error.strerror}.") from None
