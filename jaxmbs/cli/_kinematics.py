"""`jaxmbs kinematics`: the motion that drivers prescribe, as a JSON document and as tables."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from .._dynamics import kinematics, KinematicsError
from .._dynamics._passages import Passage, passed_lines
from .._errors import AnalysisError, ModelError
from .._system import Model
from ..io._trajectory import body_motions, BodyMotion
from ._given_state import check_out, configuration_at, coordinates_of, save, singular, times_of
from ._output import make_console
from ._requests import Analyze, Kinematics as Request


class Answer(NamedTuple):
    """The printed results."""

    model: Model
    times: np.ndarray
    bodies: dict[str, BodyMotion]
    passed: tuple[Passage, ...]
    passages_remark: str
    out: Path | None


def answer(model: Model, request: Request) -> Answer:
    """Follow the drivers, and write the motion where it is wanted.

    **Raises:** `ModelError` for bad input, a mobility that no driver moves among it;
    `AnalysisError` where the mechanism cannot follow its drivers; the motion until then is
    written all the same.
    """
    out = request.out
    times = times_of(model, 0.0, request.end, request.every)
    check_out(out)
    system = model.system()
    # The first time, which the file's configuration belongs to, must be closed, or is closed.
    q = configuration_at(system, Analyze(assemble=request.assemble))
    try:
        found = kinematics(system, q, times)
    except ValueError as error:
        raise ModelError(str(error)) from None
    except KinematicsError as error:
        kept = save(error.kinematics, out)
        raise AnalysisError(f"{error}{kept}") from None
    save(found, out)
    arrays = (np.asarray(x) for x in (found.q, found.v, found.acceleration))
    bodies = body_motions(found.system.structure, *arrays)
    times = np.asarray(found.times)
    return Answer(model, times, bodies, found.passed, found.passages_remark, out)


def document(answer: Answer) -> dict[str, Any]:
    """The JSON document."""
    bodies = {
        name: {word: x.tolist() for word, x in (motion.states | motion.accelerations).items()}
        for name, motion in answer.bodies.items()
    }
    result = {
        "model": answer.model.name,
        "times": answer.times.tolist(),
        "bodies": bodies,
        "passages": [own.time for own in answer.passed],
        "singular": singular(answer.passed),
        "passages_remark": answer.passages_remark,
    }
    return result | ({"remark": answer.model.remark} if answer.model.remark else {})


def show(answer: Answer, console: Console | None = None) -> None:
    """Print the largest speeds and accelerations of each body, and when they occur."""
    console = console or make_console()
    console.print(f"[bold]{escape(answer.model.name)}[/bold]")
    times = answer.times
    console.print(f"{len(times)} times from {times[0]:g} s to {times[-1]:g} s; largest values")
    posed = {n: m for n, m in answer.bodies.items() if "position" in m.states}
    if posed:
        console.print(_body_table(posed, times))
    others = coordinates_of({n: m.states | m.accelerations for n, m in answer.bodies.items()})
    if others:
        console.print(_coordinate_table(others, times))
    passages = [own.time for own in answer.passed]
    for line in passed_lines(len(passages), passages, answer.passed, answer.passages_remark):
        console.print(Text(line))
    if answer.out is not None:
        console.print(Text(f"wrote {answer.out}"))
    if answer.model.remark:
        console.print(Text(answer.model.remark))


def _body_table(bodies: dict[str, BodyMotion], times: np.ndarray) -> Table:
    table = Table(pad_edge=False)
    table.add_column("body")
    for column in (
        "velocity (m/s)",
        "angular velocity (rad/s)",
        "acceleration (m/s^2)",
        "angular acceleration (rad/s^2)",
    ):
        table.add_column(column)
    for name, motion in bodies.items():
        known = motion.states | motion.accelerations
        words = ("velocity", "angular_velocity", "acceleration", "angular_acceleration")
        table.add_row(Text(name), *(_largest(known.get(word), times) for word in words))
    return table


def _coordinate_table(
    others: list[tuple[str, str, Mapping[str, np.ndarray]]], times: np.ndarray
) -> Table:
    table = Table(pad_edge=False)
    for column in ("body", "coordinate", "rate", "acceleration"):
        table.add_column(column)
    for body, word, known in others:
        sizes = (_largest(known[f"{word}.{what}"], times) for what in ("rate", "acceleration"))
        table.add_row(*map(Text, (body, word, *sizes)))
    return table


def _largest(values: np.ndarray | None, times: np.ndarray) -> str:
    if values is None:
        return ""
    sizes = np.linalg.norm(values.reshape(len(times), -1), axis=1)
    k = int(np.argmax(sizes))
    return f"{sizes[k]:.6g} at {times[k]:g} s"
