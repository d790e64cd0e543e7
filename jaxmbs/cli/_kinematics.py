"""`jaxmbs kinematics`: the motion that drivers prescribe, as a JSON document and as tables."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from .._dynamics._kinematics import Kinematics, kinematics, KinematicsError
from .._errors import ModelError
from .._system import Model
from ..io._body_motion import body_motions, BodyMotion, lettered
from ..io._trajectory import write_csv
from ._analyze import AnalysisFailed, configuration_at, make_console, Request
from ._simulate import check_out, times_of


class Answer(NamedTuple):
    """Everything that is printed."""

    model: Model
    times: np.ndarray
    bodies: dict[str, BodyMotion]
    found: Kinematics
    out: Path | None


def answer(model: Model, end: float, every: float, out: Path | None) -> Answer:
    """Follow the drivers, and write the motion where it is wanted.

    **Raises:** `ModelError` for bad input, a mobility that no driver moves among it;
    `AnalysisFailed` where the mechanism cannot follow its drivers; the motion until then is
    written all the same.
    """
    times = times_of(model, 0.0, end, every)
    check_out(out)
    system = model.system()
    # The first time, which the file's configuration belongs to, must be closed.
    q = configuration_at(system, Request())
    try:
        found = kinematics(system, q, times)
    except ValueError as error:
        raise ModelError(str(error)) from None
    except KinematicsError as error:
        _write(_answer(model, error.kinematics, out))
        kept = "" if out is None else f" What was computed until then is in {str(out)!r}."
        raise AnalysisFailed(f"{error}{kept}") from None
    result = _answer(model, found, out)
    _write(result)
    return result


def _answer(model: Model, found: Kinematics, out: Path | None) -> Answer:
    arrays = (np.asarray(x) for x in (found.q, found.v, found.acceleration))
    bodies = body_motions(found.system.structure, *arrays)
    return Answer(model, np.asarray(found.times), bodies, found, out)


def _write(answer: Answer) -> None:
    out, found = answer.out, answer.found
    if out is None:
        return
    try:
        if out.suffix.lower() == ".csv":
            write_csv(_columns(answer), out)
        else:
            names = ("times", "q", "v", "acceleration", "position_error", "velocity_error")
            arrays = {name: np.asarray(getattr(found, name)) for name in names}
            bodies = np.array([body.name for body in found.system.structure.bodies], dtype=str)
            np.savez_compressed(out, allow_pickle=False, body_names=bodies, **arrays)
    except OSError as error:
        raise ModelError(f"cannot write {str(out)!r}: {error.strerror}.") from None


def _columns(answer: Answer) -> dict[str, np.ndarray]:
    columns = {"time": answer.times}
    for name, motion in answer.bodies.items():
        for word, values in (motion.columns() | motion.rates()).items():
            columns |= lettered(f"{name}.{word}", values)
    return columns


def document(answer: Answer) -> dict[str, Any]:
    """The JSON document."""
    bodies = {
        name: {word: x.tolist() for word, x in (motion.columns() | motion.rates()).items()}
        for name, motion in answer.bodies.items()
    }
    result = {"model": answer.model.name, "times": answer.times.tolist(), "bodies": bodies}
    return result | ({"remark": answer.model.remark} if answer.model.remark else {})


def show(answer: Answer, console: Console | None = None) -> None:
    """Print the largest speeds and accelerations of each body, and when they occur."""
    console = console or make_console()
    console.print(f"[bold]{escape(answer.model.name)}[/bold]")
    times = answer.times
    console.print(f"{len(times)} times from {times[0]:g} s to {times[-1]:g} s; largest values")
    table = Table(pad_edge=False)
    table.add_column("body")
    for column in (
        "velocity (m/s)",
        "angular velocity (rad/s)",
        "acceleration (m/s^2)",
        "angular acceleration (rad/s^2)",
    ):
        table.add_column(column)
    for name, motion in answer.bodies.items():
        numbers = (
            motion.velocity,
            motion.angular_velocity,
            motion.acceleration,
            motion.angular_acceleration,
        )
        table.add_row(Text(name), *(_largest(x, times) for x in numbers))
    console.print(table)
    if answer.out is not None:
        console.print(Text(f"wrote {answer.out}"))
    if answer.model.remark:
        console.print(Text(answer.model.remark))


def _largest(values: np.ndarray | None, times: np.ndarray) -> str:
    if values is None:
        return ""
    sizes = np.linalg.norm(values.reshape(len(times), -1), axis=1)
    k = int(np.argmax(sizes))
    return f"{sizes[k]:.6g} at {times[k]:g} s"
