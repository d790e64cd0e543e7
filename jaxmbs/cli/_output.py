"""Standard output, standard error, and the exit status."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from .._errors import AnalysisError, ModelError
from ._interrupt import STATUS, stop, Stopped


@contextmanager
def refusing() -> Iterator[None]:
    """Bad input: one sentence on standard error, status 2. A failed analysis: status 1. Ctrl-C:
    status 130."""
    try:
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
    except AnalysisError as error:
        print(f"jaxmbs: {error}", file=sys.stderr)
        raise SystemExit(1) from None


def print_json(document: dict[str, Any]) -> None:
    """One JSON document; a number that is not finite would be a defect."""
    print(json.dumps(document, allow_nan=False))


def print_answer(verb: Any, answer: Any, json: bool) -> None:
    """The answer of a command's module, as its document or as people read it."""
    if json:
        print_json(verb.document(answer))
    else:
        verb.show(answer)


def make_console() -> Console:
    """A console that does not fold tables when the output is not a terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        return Console(highlight=False, width=140)
    return console


# --------------------------------------------------------------------------------------------------
# Figures that commands write.
# --------------------------------------------------------------------------------------------------


def write_figure(draw: Callable[[], Any], path: Path) -> None:
    """The figure that `draw` makes, without a display. Matplotlib is imported on first use.

    **Raises:** `ModelError` where it cannot be written.
    """
    import matplotlib

    matplotlib.use("Agg")
    try:
        draw().savefig(path, dpi=130)
    except OSError as error:
        raise ModelError(f"cannot write {str(path)!r}: {error.strerror}.") from None
