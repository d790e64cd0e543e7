"""The page of a report: its numbers, its tables and sentences, and the file without external
resources that holds them.
"""

import base64
import functools
import itertools
import json
from collections.abc import Mapping
from datetime import datetime, UTC
from importlib import resources
from typing import Any

import jax
import numpy as np

from .._checks import listed
from .._errors import optional
from .._mobility import is_left_out, LEFT_OUT
from .._printing import Column, Table
from .._reactions import lines_of_multipliers
from .._reactions._report import verdict_of_states
from .._solution import RESULTS
from .._solvability import sharing
from .._solvability._report import one_sided_note
from .._system import ReleaseOption, Structure
from .._verdict import NOT_UNIQUE, UNIQUE, Verdict
from .._version import __version__
from ._contents import Contents


# --------------------------------------------------------------------------------------------------
# The numbers of a report as its page reads them: arrays in base 64, of little-endian bytes.
#
# What is drawn is rounded to single precision; what is shown as a number is the trajectory's own,
# to the last bit.
# --------------------------------------------------------------------------------------------------


def data_of(contents: Contents) -> dict[str, Any]:
    """Data of the page's program, ready for JSON: all numbers are finite."""
    drawing, reactions = contents.skeleton, contents.reactions
    places = reactions.layout.seconds
    joints = [
        {
            "name": name,
            "place": places[k],
            "components": [i for i, c in enumerate(contents.components) if c.constraint == k],
        }
        for k, name in enumerate(reactions.names)
    ]
    return {
        "dimension": 2 if drawing.planar else 3,
        "times": _packed(np.asarray(contents.trajectory.times), "f8"),
        "points": _packed(drawing.points, "f4"),
        "hubs": _packed(drawing.hubs, "f4"),
        "hubNames": list(drawing.hub_names),
        "spokes": [list(spoke) for spoke in drawing.spokes],
        "ground": list(drawing.ground),
        "places": [[place, list(own)] for place, own in drawing.joints],
        "strands": [
            {"kind": kind, "points": _packed(own, "f4"), "count": own.shape[1]}
            for kind, lines in (("rope", drawing.ropes), ("pulley", drawing.pulleys))
            for own in lines
        ],
        "low": drawing.low.tolist(),
        "high": drawing.high.tolist(),
        "size": drawing.size,
        "joints": joints,
        "components": [c._asdict() for c in contents.components],
        "values": _packed(contents.values, "f8"),
        "bandLow": _packed(contents.bands.low, "f8"),
        "bandHigh": _packed(contents.bands.high, "f8"),
        "verdicts": _packed(contents.verdicts, "i1"),
        "jointVerdicts": _packed(contents.joint_verdicts, "i1"),
        "spread": list(contents.spread.constraints),
        "ways": _packed(contents.spread.count, "i1"),
        "directions": _packed(contents.spread.directions, "f4"),
        "rank": _packed(np.asarray(contents.solvability.rank), "i4"),
        "margin": _packed(np.asarray(contents.solvability.margin), "f8"),
        "passages": contents.trajectory.known_passages(),
    }


def _packed(array: np.ndarray, kind: str) -> dict[str, Any]:
    """An array as its bytes; of more than one axis row by row."""
    values = np.ascontiguousarray(array, dtype=f"<{kind}")
    return {"type": kind, "data": base64.b64encode(values.tobytes()).decode("ascii")}


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
    columns += [
        Column(many * "largest " + what, [_most(contents, k, what) for k in every], unit)
        for what, unit in (("force", "N"), ("torque", "N m"))
    ]
    return Table(columns, np.any(contents.joint_verdicts != UNIQUE, axis=0).tolist())


def _most(contents: Contents, constraint: int, what: str) -> str:
    """The largest magnitude over the states in which all of it is unique."""
    own = [
        k
        for k, c in enumerate(contents.components)
        if c.constraint == constraint and c.what == what
    ]
    if not own:
        return ""
    sizes = np.linalg.norm(contents.values[:, own], axis=1)
    known = sizes[np.isfinite(sizes)]
    if not known.size:
        return "not unique"
    rounding = contents.components[own[0]].rounding
    largest = float(known.max())
    number = f"{0.0 if largest <= rounding else largest:.6g}"
    return number if known.size == sizes.size else f"{number} where it is unique"


def head_of(contents: Contents) -> list[str]:
    """Sentences at the top."""
    first, structure, trajectory = contents.first, contents.first.structure, contents.trajectory
    sentences = _of_compliances(structure, trajectory.elastic)
    if bool(first.decided):
        sentences.append(f"{first.headline()}.")
    found = contents.mobility
    if is_left_out(first):
        sentences.append(f"That mobility is of first order: {LEFT_OUT}; jm.mobility computes it.")
    if found is not None and not found.is_finite:
        sentences.append(" ".join([found.headline(), *found.sentences()]))
    many = [
        name
        for k, name in enumerate(structure.constraint_names)
        if np.any(contents.joint_verdicts[:, k] == NOT_UNIQUE)
    ]
    if many:
        plural = "s" if len(many) > 1 else ""
        sentences.append(
            f"{_WITH[trajectory.elastic]} does not determine the reaction{plural} of "
            f"{listed(many)}: any number that a program gives for what is not unique is one of "
            "many."
        )
    elif structure.constraints:
        sentences.append("Every reaction is unique.")
    sentences += _one_sided_sentences(contents)
    if first.doubt():
        sentences.append(first.doubt())
    if trajectory.message:
        sentences.append(trajectory.message)
    return sentences


def _one_sided_sentences(contents: Contents) -> list[str]:
    """Where forces of rows that act one way only have the wrong sign, or one that is not known."""
    structure, trajectory = contents.first.structure, contents.trajectory
    if not structure.one_sided_rows:
        return []
    owners = structure.row_owner[[*structure.one_sided_rows]]
    many = contents.joint_verdicts != UNIQUE
    multipliers = np.array(trajectory.multipliers)
    multipliers[:, [*structure.one_sided_rows]] = np.where(
        many[:, owners], np.nan, multipliers[:, [*structure.one_sided_rows]]
    )
    scale = trajectory.system.residual_scale()
    times = np.asarray(trajectory.times)
    lines = lines_of_multipliers(structure, scale, multipliers, times)
    unknown = [structure.constraint_names[k] for k in dict.fromkeys(owners) if many[:, k].any()]
    sentences = [f"{one_sided_note(structure)}", *(f"{x[0].upper()}{x[1:]}." for x in lines)]
    if unknown:
        sentences.append(
            f"Whether {listed(unknown)} can exert their forces is not known where these are not "
            "unique."
        )
    return sentences


_WITH = {
    False: "A model of rigid bodies",
    True: "The model, even with its compliances,",
}


def _of_compliances(structure: Structure, elastic: bool) -> list[str]:
    """Statement whether the compliances of the model enter what follows."""
    if not structure.compliances:
        return []
    names = listed([own.name for own in structure.compliances])
    if elastic:
        return [
            f"With the compliances {names}: what they decide is unique, and depends on which parts "
            "are elastic; rank and redundancy count their deformations."
        ]
    ways = "simulate(..., formulation=ElasticResolution()) uses them"
    if structure.semidefinite:
        ways = "they need a mass for every body, and some have none"
    return [f"Of rigid bodies: the compliances {names} are not used here ({ways})."]


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


def page(words: dict[str, Any], data: dict[str, Any]) -> str:
    """The report as HTML. `words`: its text; `data`: what its program reads."""
    # In a script element only "</" ends the text: so the data contain no "<".
    numbers = json.dumps(data, allow_nan=False).replace("<", "\\u003c")
    return _template().render(
        **words,
        data=_markup(numbers),
        style=_markup(_text("page.css")),
        program=_markup("\n".join(map(_text, _PROGRAM))),
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
