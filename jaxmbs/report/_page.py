"""The page of a report: its numbers, its tables and sentences, and the file without external
resources that holds them.
"""

import functools
import itertools
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, UTC
from importlib import resources
from typing import Any

import jax
import numpy as np

from .._errors import optional
from .._mobility import is_left_out, LEFT_OUT
from .._printing import Column, Table
from .._reactions._report import verdict_of_states
from .._solution import RESULTS
from .._solvability import sharing
from .._system import ReleaseOption
from .._verdict import NOT_UNIQUE, UNIQUE, Verdict
from .._version import __version__
from ._contents import Contents, Spread
from ._opening import compliance_words, Drive, one_sided_words
from ._scene_data import lightened, packed, place_data, scene_data, steady, together


# --------------------------------------------------------------------------------------------------
# The numbers of a report as its page reads them: arrays in base 64, of little-endian bytes.
#
# What is drawn is rounded to single precision; what is shown as a number is the trajectory's own,
# to the last bit.
# --------------------------------------------------------------------------------------------------


def data_of(contents: Contents, drives: Sequence[Drive] = ()) -> dict[str, Any]:
    """Data of the page's program, ready for JSON: all numbers are finite."""
    times, many = np.asarray(contents.trajectory.times), contents.verdicts == NOT_UNIQUE
    bands, unbounded = contents.bands, []
    ends = np.stack([bands.low, bands.high])
    # Without bounds there are many such components, and of their ranges only this is to be said.
    free = np.all((np.isneginf(bands.low) & np.isposinf(bands.high)) | ~many, axis=0)
    unbounded = np.flatnonzero(free & many.any(axis=0))
    bounded = np.flatnonzero(~free)
    drawn, _ = lightened(contents.scene)
    return {
        "states": len(times),
        "times": packed(times, "f8"),
        "components": [c._asdict() for c in contents.components],
        "joints": _joints(contents),
        "values": _columns(contents.values, np.flatnonzero(np.isfinite(contents.values).any(0))),
        "bandLow": _columns(ends[0], bounded),
        "bandHigh": _columns(ends[1], bounded),
        "unbounded": unbounded.tolist(),
        "verdicts": steady(contents.verdicts, "i1"),
        "jointVerdicts": steady(contents.joint_verdicts, "i1"),
        "spread": _spread(contents.spread),
        "rank": steady(np.asarray(contents.solvability.rank), "i4"),
        "margin": packed(np.asarray(contents.solvability.margin), "f8"),
        "passages": contents.trajectory.known_passages(),
        "drives": [_drive(drive) for drive in drives],
        **scene_data(drawn),
        "places": place_data(drawn, contents.reactions),
    }


def _joints(contents: Contents) -> list[dict[str, Any]]:
    """Names and components of joints and drivers, and the place at which each acts, or -1."""
    places = {k: i for i, own in enumerate(together(contents.reactions)) for k in own}
    return [
        {
            "name": name,
            "place": places.get(k, -1),
            "components": [i for i, c in enumerate(contents.components) if c.constraint == k],
        }
        for k, name in enumerate(contents.reactions.names)
    ]


# Directions that turn by less than this (rad) are drawn as one.
_STEADY = 1e-5


def _spread(spread: Spread) -> dict[str, Any]:
    """Number of directions, and the directions themselves where there are one or two."""
    few = np.any((spread.count > 0) & (spread.count < 3), axis=0)
    kept = np.argwhere(few)
    there = np.arange(2) < spread.count[..., None]
    directions = np.where(there[..., None], spread.directions[..., :2, :], 0.0)
    return {
        "joints": list(spread.constraints),
        "count": steady(spread.count, "i1"),
        "kept": [
            {
                "joint": int(k),
                "part": int(part),
                "directions": steady(directions[:, k, part], "f4", _STEADY),
            }
            for k, part in kept
        ],
    }


def _drive(drive: Drive) -> dict[str, Any]:
    return {
        "name": drive.name,
        "kind": drive.kind,
        "load": packed(drive.load, "f8"),
        "loadUnit": drive.load_unit,
        "travel": None if drive.travel is None else packed(drive.travel, "f8"),
        "travelUnit": drive.travel_unit,
    }


def _columns(array: np.ndarray, columns: np.ndarray) -> dict[str, Any]:
    """Some columns of an array; all others are NaN."""
    return {"columns": columns.tolist(), **packed(array[:, columns], "f8")}


# --------------------------------------------------------------------------------------------------
# The tables and sentences of a report.
# --------------------------------------------------------------------------------------------------


# Of what is listed, so many entries.
_MOST_LINES = 40


def verdict_table(contents: Contents) -> Table:
    """Verdicts on all joints, and the largest of what they exert."""
    every, many = range(len(contents.reactions.names)), contents.trajectory.times.shape[0] > 1
    columns = contents.first.table().without("measure")
    if many:
        first = {"reaction": "reaction at first"}
        columns = [own._replace(title=first.get(own.title, own.title)) for own in columns]
        verdicts = [Verdict(contents.joint_verdicts[:, k]) for k in every]
        columns.append(Column("at all states", [verdict_of_states(x) for x in verdicts]))
    return Table(columns, np.any(contents.joint_verdicts != UNIQUE, axis=0).tolist())


def opening_words(contents: Contents) -> list[str]:
    """Sentences at the top, below those on which reactions are unique."""
    return [
        *compliance_words(contents),
        *one_sided_words(contents),
        contents.first.doubt(),
        contents.trajectory.message,
    ]


def drawing_words(contents: Contents) -> str:
    """A sentence on simplified surfaces; empty without any."""
    count = lightened(contents.scene)[1]
    if not count:
        return ""
    some = "One surface" if count == 1 else f"{count} surfaces"
    verb = "is" if count == 1 else "are"
    return f"{some} of very many triangles {verb} drawn by a convex hull or a box."


def rank_words(contents: Contents) -> list[str]:
    """Ranks and mobility."""
    first, found = contents.first, contents.mobility
    sentences = [f"{first.headline()}."] if bool(first.decided) else []
    if is_left_out(first):
        sentences.append(f"That mobility is of first order: {LEFT_OUT}; jm.mobility computes it.")
    if found is not None and not found.is_finite:
        sentences.append(" ".join([found.headline(), *found.sentences()]))
    return sentences


def interval_table(contents: Contents) -> Table:
    """Times between which ranks and verdicts stay the same."""
    report, names = contents.solvability, contents.reactions.names
    times = np.asarray(contents.trajectory.times)
    keys = [
        (int(report.rank[k]), tuple(contents.joint_verdicts[k].tolist())) for k in range(times.size)
    ]
    rows = []
    for (rank, verdicts), group in itertools.groupby(range(times.size), keys.__getitem__):
        own = list(group)
        many = [n for n, verdict in zip(names, verdicts, strict=True) if verdict == NOT_UNIQUE]
        counted = (report.rank, report.redundancy, report.mobility)
        counts = [str(int(x[own[0]])) for x in counted] if rank >= 0 else ["not decided", "", ""]
        begin, end = (f"{times[k]:.6g}" for k in (own[0], own[-1]))
        rows.append((begin, end, str(len(own)), *counts, ", ".join(many) or "none"))
    titles = ("from (s)", "to (s)", "states", "rank", "redundancy", "mobility", "not unique")
    return Table.of(titles, rows)


def passage_words(contents: Contents) -> str:
    """Sentences on the singular configurations that were passed."""
    lines = contents.trajectory.passage_lines() or ["no singular configuration was passed"]
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in lines)


def sharing_words(contents: Contents) -> list[str]:
    """The joints and drivers that share loads, class by class."""
    return [", ".join(own) for own in sharing(contents.first)] if contents.dependent else []


def release_words(contents: Contents) -> tuple[list[str], list[str], list[str]]:
    """Sets of joints that share a load; sets of releases; remarks on both."""
    dependent, found = contents.dependent, contents.releases
    shared = [", ".join(own) for own in dependent.sets] if dependent else []
    remarks = list(found.remarks()) if found else []
    if dependent and not dependent.complete:
        remarks.append("the search for sets that share a load was cut off")
    lines = ["; ".join(map(_words_of_release, own)) for own in found.sets] if found else []
    for name, own in (("sets that share a load", shared), ("sets of releases", lines)):
        if len(own) > _MOST_LINES:
            remarks.append(f"{len(own) - _MOST_LINES} more {name}")
    return shared[:_MOST_LINES], lines[:_MOST_LINES], remarks


def advice_of(contents: Contents) -> str:
    """The first set of releases as workshops say it, in a sentence; empty if there is none."""
    words = contents.releases.advice() if contents.releases else ""
    return f"{words[0].upper()}{words[1:]}." if words else ""


def _words_of_release(option: ReleaseOption) -> str:
    """A release in words, without the joint's name."""
    kind, to = (text.replace("_", " ") for text in (option.kind, option.to))
    return str(option._replace(kind=kind, to=to))


def method_of(contents: Contents, notes: Mapping[str, str]) -> list[tuple[str, str]]:
    """The method of computation."""
    first, trajectory = contents.first, contents.trajectory
    now = datetime.now(UTC)
    states = trajectory.times.shape[0]
    lines = [
        ("program", f"jaxmbs {__version__}, JAX {jax.__version__}"),
        ("date", now.strftime("%Y-%m-%d %H:%M UTC")),
        ("precision of numbers", f"{trajectory.q.dtype}"),
        (
            "verdicts",
            f"method {first.layout.method}, rank tolerance {float(first.tolerance):.3g} relative "
            f"to the first pivot after scaling, characteristic length {float(first.length):.6g} m",
        ),
    ]
    if np.isfinite(first.margin):
        gap = (
            ""
            if not np.isfinite(first.rank_gap)
            else (f", {float(first.rank_gap):.3g} times the first dropped one")
        )
        lines.append(("rank at the start", f"last kept pivot {float(first.margin):.3g}{gap}"))
    if states > 1:
        steps = trajectory.statistics
        lines += [
            ("states shown", f"{states}"),
            ("steps", f"{int(steps.accepted)} accepted, {int(steps.rejected)} rejected"),
            (
                "closure",
                f"residuals at most {float(np.max(trajectory.position_error)):.1e} (m, rad), of "
                f"velocities {float(np.max(trajectory.velocity_error)):.1e} (m/s, rad/s)",
            ),
        ]
    if bool(trajectory.result != RESULTS.successful):
        lines.append(("result", RESULTS[trajectory.result]))
    lines += [(name, text) for name, text in notes.items() if text]
    return lines


# --------------------------------------------------------------------------------------------------
# The page itself: one file without external resources.
# --------------------------------------------------------------------------------------------------


# The parts of the page's program, in their order.
_PROGRAM = ("numbers.js", "scene.js", "curves.js", "time.js")
# three.js with its renderer and OrbitControls in one file: see docs/theory/decisions.md.
_THREE = "three.min.js"


def page(words: dict[str, Any], data: dict[str, Any]) -> str:
    """The report as HTML. `words`: its text; `data`: what its program reads."""
    # In a script element only "</" ends the text: so the data contain no "<".
    numbers = json.dumps(data, allow_nan=False).replace("<", "\\u003c")
    return _template().render(
        **words,
        data=_markup(numbers),
        style=_markup(_text("page.css")),
        program=_markup("\n".join(map(_text, _PROGRAM))),
        three=_markup(_text(_THREE)),
        plotly=_markup(_plotly()),
    )


def check_extra() -> None:
    """
    **Raises:** `ModelError` where what pages are made with is not installed.
    """
    _markup("")
    _plotly()


@functools.cache
def _template() -> Any:
    jinja2 = optional("jinja2", "report")
    # Names of parts may hold anything that is printed.
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_text("page.html"))


def _markup(text: str) -> Any:
    """A text of ours, which is not escaped."""
    return optional("markupsafe", "report").Markup(text)


def _text(name: str) -> str:
    return (resources.files("jaxmbs.report") / name).read_text(encoding="utf-8")


@functools.cache
def _plotly() -> str:
    """The program that draws, as its package carries it."""
    return optional("plotly.offline", "report").get_plotlyjs()
