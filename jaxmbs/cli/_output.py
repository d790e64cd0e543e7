"""Standard output, standard error, and the exit status."""

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._errors import ModelError
from .._programs import keep_programs
from ._interrupt import STATUS, stop, Stopped
from ._progress import progress


class AnalysisFailed(RuntimeError):
    """The input is sound, and the analysis did not succeed: exit status 1."""


@contextmanager
def refusing() -> Iterator[None]:
    """Bad input: one sentence on standard error, status 2. A failed analysis: status 1. Ctrl-C:
    status 130. Until then progress is shown where a person waits for it."""
    try:
        with progress():
            yield
    except Stopped as error:
        stop(str(error))
        raise SystemExit(STATUS) from None
    except KeyboardInterrupt:
        stop()
        raise SystemExit(STATUS) from None
    except ModelError as error:
        print(f"jaxmbs: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except AnalysisFailed as error:
        print(f"jaxmbs: {error}", file=sys.stderr)
        raise SystemExit(1) from None


def print_json(document: dict[str, Any]) -> None:
    """One JSON document; a number that is not finite would be a defect."""
    print(json.dumps(document, allow_nan=False))


def keep_programs_quietly(quiet: bool = False) -> None:
    """Keep compiled programs in the platform's cache folder; one sentence on standard error if that
    fails, unless quiet."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        keep_programs()
    for warning in [] if quiet else caught:
        print(f"jaxmbs: {warning.message}", file=sys.stderr)
