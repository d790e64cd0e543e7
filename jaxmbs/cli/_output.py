"""Standard output, standard error, and the exit status."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .._errors import AnalysisError, ModelError
from ._interrupt import STATUS, stop, Stopped


if TYPE_CHECKING:
    from .._printing import Description


# Sections of docs/guide/messages.md, by what their messages contain. (The texts of `RESULTS` have
# sections of their own. Messages that end with a command to copy name none.)
SECTIONS: Mapping[str, str] = MappingProxyType(
    {
        "is not closed at": "not-closed",
        "velocities break the constraints": "velocities",
        "one state is meant": "batch",
        "must be a quaternion of length 1": "quaternion",
        "must be positive definite": "inertia",
        "breaks the triangle inequality": "inertia",
        "at the precision of the": "precision",
        "not certified:": "not-certified",
    }
)


def with_section(text: str) -> str:
    """The message with the section of the page on messages that explains it, if there is one."""
    # Where nothing was computed, nothing is imported for it.
    solution = sys.modules.get("jaxmbs._solution")
    results = solution.sentences().values() if solution is not None else ()
    named = [name for name, known in results if known and known in text]
    named += [section for part, section in SECTIONS.items() if part in text]
    if not named:
        return text
    end = "." if text.endswith(".") else ""
    return f"{text.removesuffix('.')} [{named[0]}]{end}"


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
        print(f"jaxmbs: {with_section(str(error))}", file=sys.stderr)
        raise SystemExit(2) from None
    except AnalysisError as error:
        print(f"jaxmbs: {with_section(str(error))}", file=sys.stderr)
        raise SystemExit(1) from None


def print_json(document: Mapping[str, Any]) -> None:
    """One JSON document; a number that is not finite would be a defect."""
    print(json.dumps(document, allow_nan=False))


def print_answer(told: "Description", json: bool) -> None:
    """An answer as its JSON document, or as people read it."""
    if json:
        print_json(told.data())
    else:
        show(told)


def show(told: "Description") -> None:
    """Print sentences and tables, marked rows in bold type."""
    console = make_console()
    if told.title:
        console.print(Text(told.title, style="bold"))
    _print_lines(console, told.head)
    for table in told.tables:
        _print_lines(console, [table.title])
        written = Table(pad_edge=False)
        for heading in table.headings:
            written.add_column(Text(heading))
        for row, marked in table.marked_rows:
            written.add_row(*map(Text, row), style="bold" if marked else "")
        console.print(written)
    _print_lines(console, told.notes)


def _print_lines(console: Console, sentences: Iterable[str]) -> None:
    """Lines are folded for a terminal alone: what is piped on is searched line by line."""
    for sentence in filter(None, sentences):
        console.print(Text(sentence), soft_wrap=not console.is_terminal)


def make_console() -> Console:
    """A console that does not fold tables when the output is not a terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        return Console(highlight=False, width=140)
    return console


# --------------------------------------------------------------------------------------------------
# Figures that commands write.
# --------------------------------------------------------------------------------------------------


def write_figure(draw: Callable[[], Any], path: Path | None) -> None:
    """The figure that `draw` makes, where a path is given, without a display. Matplotlib is
    imported on first use.

    **Raises:** `ModelError` where it cannot be written.
    """
    if path is None:
        return
    import matplotlib

    matplotlib.use("Agg")
    try:
        draw().savefig(path, dpi=130)
    except OSError as error:
        raise ModelError(f"cannot write {str(path)!r}: {error.strerror}.") from None
