"""Printing of results: one description of each, and its writers as text and as HTML.

A result says once, in `described`, what there is to tell: sentences, tables and data. Writers turn
any description into output: `text` and `html` here, tables of a terminal and JSON in
`cli/_output.py`, the tables of a report in `report/page.html`.
"""

import abc
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from ._solution import RESULTS


# --------------------------------------------------------------------------------------------------
# Descriptions, and results that have one.
# --------------------------------------------------------------------------------------------------


class Column(NamedTuple):
    """A column of a table: its title, a cell for each row, and the unit of its numbers."""

    title: str
    cells: Sequence[str]
    unit: str = ""

    @property
    def heading(self) -> str:
        return f"{self.title} ({self.unit})" if self.unit else self.title


class Table(NamedTuple):
    """Columns of equally many cells. `marked`: the rows that a reader must not miss. `title`: the
    sentence above it."""

    columns: Sequence[Column]
    marked: Sequence[bool] = ()
    title: str = ""

    @classmethod
    def of(cls, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> "Table":
        """The table of these rows."""
        return cls([Column(title, [row[k] for row in rows]) for k, title in enumerate(titles)])

    @property
    def headings(self) -> list[str]:
        return [column.heading for column in self.columns]

    @property
    def rows(self) -> list[tuple[str, ...]]:
        return list(zip(*(column.cells for column in self.columns), strict=True))

    def without(self, title: str) -> list[Column]:
        """All columns but that one."""
        return [column for column in self.columns if column.title != title]

    @property
    def marked_rows(self) -> list[tuple[tuple[str, ...], bool]]:
        """Each row, and whether it is marked."""
        rows = self.rows
        return list(zip(rows, self.marked or [False] * len(rows), strict=True))


class Description(NamedTuple):
    """Sentences, tables and data of a result.

    - `head`, `notes`: sentences before and after the `tables`; empty ones are left out.
    - `data`: makes the same as a JSON document, where there is one.
    - `title`: whose result it is.
    """

    head: Sequence[str] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    data: Callable[[], Mapping[str, Any]] = dict
    title: str = ""


class AbstractAnswer(eqx.Module):
    """A result that can be printed, and that a notebook shows with its tables."""

    @abc.abstractmethod
    def described(self) -> Description:
        """The description of this result. Concrete values only."""

    def __str__(self) -> str:
        return text(self.described())

    def _repr_html_(self) -> str:
        return html(self.described())


def rows_of_last_table(answer: AbstractAnswer) -> list[tuple[str, ...]]:
    """The rows of the last table, as texts. Deprecated: `described().tables` holds all tables."""
    warnings.warn(
        "rows() is now described().tables[-1].rows; it works in this version.",
        DeprecationWarning,
        stacklevel=2,
    )
    tables = answer.described().tables
    return tables[-1].rows if tables else []


# --------------------------------------------------------------------------------------------------
# Writers.
# --------------------------------------------------------------------------------------------------


def text(told: Description) -> str:
    """Sentences and tables as text, with an empty line between them."""
    blocks = ["\n".join(filter(None, [told.title, *told.head]))]
    for table in told.tables:
        blocks += [table.title, table_text(table)]
    return "\n\n".join(filter(None, [*blocks, "\n".join(filter(None, told.notes))]))


def table_text(table: Table) -> str:
    """Columns padded to one width, with a rule under the headings."""
    lines = [tuple(table.headings), *table.rows]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    rule = "  ".join("-" * width for width in widths)
    head, *rows = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
    return "\n".join([head, rule, *rows])


def html(told: Description) -> str:
    """Paragraphs, and tables with their titles as captions."""

    def paragraphs(sentences: Iterable[str]) -> Iterable[str]:
        return (f"<p>{escape(sentence)}</p>" for sentence in sentences if sentence)

    tables = map(_html_table, told.tables)
    head = paragraphs([told.title, *told.head])
    return "".join([*head, *tables, *paragraphs(told.notes)])


def _html_table(table: Table) -> str:
    """The first cell of each row is that row's heading."""
    title = escape(table.title)
    caption = f'<caption style="text-align:left">{title}</caption>' if title else ""
    head = "".join(f'<th scope="col">{escape(word)}</th>' for word in table.headings)
    rows = (
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in others)
        + "</tr>"
        for first, *others in table.rows
    )
    body = "".join(rows)
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


# --------------------------------------------------------------------------------------------------
# Numbers and sentences of several results.
# --------------------------------------------------------------------------------------------------


# A vector is printed up to this length, of a longer one its ends.
_PRINTED = 24

MARGINAL = "a rank decision is marginal; `analyze` says how."


def array(values: Any) -> str:
    """A vector on one line, six digits of each number."""
    text = np.array2string(
        np.asarray(values),
        threshold=_PRINTED,
        edgeitems=4,
        separator=", ",
        max_line_width=10**6,
        formatter={"float_kind": lambda x: f"{x:.6g}"},
    )
    return " ".join(text.split())


def complex_number(value: Any) -> str:
    """A complex number, six digits of each part."""
    return f"{float(np.real(value)):+.6g} {float(np.imag(value)):+.6g}i"


def largest(values: Any) -> str:
    """The largest magnitude among numbers; 0 where there are none."""
    return f"{float(np.max(np.abs(np.asarray(values)), initial=0.0)):.2g}"


def more(names: Sequence[str], most: int) -> str:
    """The number of names beyond the first ones, in words; empty if there are none."""
    return f" and {len(names) - most} more" if len(names) > most else ""


def batch(what: str, shape: tuple[int, ...]) -> Description:
    """The description of batched results."""
    return Description([f"{int(np.prod(shape))} {what} (index them to print one)"])


def outcome(result: RESULTS) -> str:
    """Message of a computation that failed; empty for one that succeeded."""
    # Of cases of a sweep the number is one of NumPy's.
    return RESULTS[jax.tree.map(np.asarray, result)]


def undecided(result: RESULTS) -> str:
    """The sentence on an answer without verdicts."""
    return f"Nothing was decided. {outcome(result)}".strip()
