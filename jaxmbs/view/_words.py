"""Sentences and tables of one state, in plain text and as HTML in which names are escaped."""

import html
from collections.abc import Sequence

import jax
import numpy as np

from .._checks import listed
from .._solvability import Solvability
from .._verdict import NOT_DECIDED, NOT_UNIQUE, UNIQUE
from ..report._contents import Component, Contents
from ..report._opening import compliance_words, one_sided_words, WITH
from ._session import Session


# The look of a verdict, from the best to the worst.
LOOKS = ("unique", "in doubt", "not unique")


def solvability_at(contents: Contents, state: int) -> Solvability:
    """The verdicts of one state."""
    return jax.tree.map(lambda x: x[state], contents.solvability)


def looks_of(contents: Contents, state: int) -> list[str]:
    """One of `LOOKS` for each constraint: in doubt is what is not decided, and all that counts as
    unique at a state whose ranks are marginal."""
    doubtful = bool(solvability_at(contents, state).doubtful)
    found = []
    for verdict in contents.joint_verdicts[state]:
        unsure = verdict == NOT_DECIDED or (doubtful and verdict == UNIQUE)
        found.append("not unique" if verdict == NOT_UNIQUE else LOOKS[int(unsure)])
    return found


def sentences_of(contents: Contents, state: int) -> list[str]:
    """Redundancy and mobility; which reactions are not unique; what is in doubt."""
    report, names = solvability_at(contents, state), contents.reactions.names
    verdicts = contents.joint_verdicts[state]
    found = []
    if bool(report.decided):
        found.append(f"{report.headline()}.")
    many = [name for name, verdict in zip(names, verdicts, strict=True) if verdict == NOT_UNIQUE]
    if many:
        plural = "s" if len(many) > 1 else ""
        with_ = WITH[contents.trajectory.elastic]
        found.append(f"{with_} does not determine the reaction{plural} of {listed(many)}.")
    elif names and np.all(verdicts == UNIQUE) and not bool(report.doubtful):
        found.append("Every reaction is unique.")
    found += compliance_words(contents)
    # (That rows are held both ways is said where something follows from it.)
    note, *lines = one_sided_words(contents, state) or [""]
    found += [note, *lines] if lines else []
    doubt = report.doubt()
    return [*found, doubt] if doubt else found


# --------------------------------------------------------------------------------------------------
# Numbers, and words where there is none.
# --------------------------------------------------------------------------------------------------


def component_words(contents: Contents, state: int, k: int) -> str:
    """The number of a component, or between which ones it lies where it is not unique."""
    words = _words_of(contents, state, k)
    return _in_doubt(contents, state, words) if contents.verdicts[state, k] == UNIQUE else words


def _in_doubt(contents: Contents, state: int, words: str) -> str:
    """Words of a unique quantity, marked where the rank decision is marginal."""
    return f"{words} (in doubt)" if bool(contents.solvability.doubtful[state]) else words


def _words_of(contents: Contents, state: int, k: int) -> str:
    component, verdict = contents.components[k], contents.verdicts[state, k]
    if verdict == NOT_DECIDED:
        return "not decided"
    if verdict == UNIQUE:
        value = float(contents.values[state, k])
        return "not known" if np.isnan(value) else _number(value, component)
    low, high = (float(x[state, k]) for x in (contents.bands.low, contents.bands.high))
    if np.isnan(low) or np.isnan(high):
        return "not unique, no answer"
    least, most = _number(low, component), _number(high, component)
    if np.isinf(low) and np.isinf(high):
        return "not unique, unbounded"
    if np.isinf(low):
        return f"not unique, at most {most}"
    if np.isinf(high):
        return f"not unique, at least {least}"
    return f"not unique, from {least} to {most}"


def _number(value: float, component: Component) -> str:
    return "0" if abs(value) <= component.rounding else f"{value:.6g}"


# --------------------------------------------------------------------------------------------------
# Parts of the page.
# --------------------------------------------------------------------------------------------------


def head_html(session: Session) -> str:
    """Messages, and the verdicts of the state that is shown."""
    picture = session.picture
    lines = sentences_of(picture.contents, session.state)
    lines += picture.contents.bands.notes
    lines += [picture.note] if picture.note else []
    if picture.without_forces:
        lines.append(f"No forces are shown: {picture.without_forces}")
    if session.unset and session.motion is not picture:
        plural = "s" if session.unset > 1 else ""
        have = "have" if session.unset > 1 else "has"
        lines.append(
            f"{session.unset} independent motion{plural} {have} no control, as no coordinate of a "
            "joint changes with them."
        )
    refused = [f'<p role="alert" style="{_REFUSED}">{html.escape(session.message)}</p>']
    told = [f"<p>{html.escape(line)}</p>" for line in lines]
    return _in_box("head", [*(refused if session.message else []), *told])


_REFUSED = "border:2px solid #b3261e;padding:0.4em;font-weight:600"
_TABLE = "border-collapse:collapse;width:100%"


def table_html(session: Session) -> str:
    """Table of the reactions of all joints and drivers on body 2."""
    contents, state = session.picture.contents, session.state
    looks, rows = looks_of(contents, state), []
    for constraint, name in enumerate(contents.reactions.names):
        rows.append(_row(f"<b>{html.escape(name)}</b>", looks[constraint]))
        rows += [_row(html.escape(x), y) for x, y in reaction_rows(contents, state, constraint)]
    return _in_box("reactions", [f'<table style="{_TABLE}">{"".join(rows)}</table>'])


def reaction_rows(contents: Contents, state: int, constraint: int) -> list[tuple[str, str]]:
    """Rows of a constraint's reaction: titles, and numbers or words. A unique vector takes one row,
    and so do components with the same words."""
    rows = []
    groups: dict[tuple[str, str], list[int]] = {}
    for k, component in enumerate(contents.components):
        if component.constraint == constraint:
            groups.setdefault((component.what, component.unit), []).append(k)
    for (what, unit), own in groups.items():
        words = [_words_of(contents, state, k) for k in own]
        labels = [contents.components[k].label.removeprefix(f"{what} ") for k in own]
        vector = len(own) > 1 and what != "generalized"
        if vector and np.all(contents.verdicts[state, own] == UNIQUE):
            known = _in_doubt(contents, state, f"({', '.join(words)})")
            rows.append((f"{what} ({unit})", known))
            continue
        words = [component_words(contents, state, k) for k in own]
        for said in dict.fromkeys(words):
            named = [label for label, x in zip(labels, words, strict=True) if x == said]
            which = "" if len(named) == len(own) and vector else f" {', '.join(named)}"
            title = which.strip() if what == "generalized" else f"{what}{which}"
            rows.append((f"{title} ({unit})", said))
    return rows


def _row(head: str, cell: str) -> str:
    style = "text-align:left;font-weight:400;white-space:nowrap"
    return f'<tr><th scope="row" style="{style}">{head}</th><td style="{_CELL}">{cell}</td></tr>'


_CELL = "text-align:right;overflow-wrap:anywhere"


def state_html(session: Session) -> str:
    """The numbers of the state that is shown, to the last digit."""
    q = ", ".join(map(repr, session.q.tolist()))
    values = ", ".join(f"{name!r}: {value!r}" for name, value in session.values.items())
    residual = float(session.picture.residual[session.state])
    style = "font-family:monospace;overflow-wrap:anywhere;user-select:all"
    parts = (
        ("q", f"[{q}]"),
        ("values", f"{{{values}}}"),
        ("residual", f"{residual:.3g}"),
    )
    told = [
        f'<p><b>{title}</b><br><span data-{title} style="{style}">{html.escape(text)}</span></p>'
        for title, text in parts
    ]
    return _in_box("state", told)


def _in_box(name: str, parts: Sequence[str]) -> str:
    """`name`: by which tests and readers find it."""
    inside = "".join(parts)
    style = "font-size:0.85em;padding:0 0.8em;line-height:1.35"
    return f'<div data-part="{name}" style="{style}">{inside}</div>'
