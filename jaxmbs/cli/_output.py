"""What goes to standard output and standard error, and the exit status."""

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._errors import ModelError
from .._programs import keep_programs


class AnalysisFailed(RuntimeError):
    """The input is sound, and the analysis did not succeed: exit status 1."""


@contextmanager
def refusing() -> Iterator[None]:
    """Bad input: one sentence on standard error, status 2. A failed analysis: status 1."""
    try:
        yield
    except ModelError as error:
        print(f"jaxmbs: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except AnalysisFailed as error:
        print(f"jaxmbs: {error}", file=sys.stderr)
        raise SystemExit(1) from None


def print_json(document: dict[str, Any]) -> None:
    """One JSON document; a number that is not finite would be a defect."""
    print(json.dumps(document, allow_nan=False))


def keep_programs_quietly() -> None:
    """Keep compiled programs where the platform keeps such files; one sentence on standard error
    if that cannot be."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        keep_programs()
    for warning in caught:
        print(f"jaxmbs: {warning.message}", file=sys.stderr)
