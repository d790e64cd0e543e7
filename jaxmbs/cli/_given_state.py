"""Time, configuration and motion of a command's question."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Array, Float

from .._checks import as_array, shown
from .._constraints import AbstractMotion
from .._dynamics import consistent_state, Kinematics, Trajectory
from .._dynamics._initial import check_state
from .._dynamics._passages import Passage
from .._dynamics._trajectory import saved_times
from .._errors import AnalysisError, ModelError
from .._forces import Motor
from .._kinematics import assemble, is_closed, open_constraints
from .._printing import Column, Description, Table
from .._programs import Compiling, program
from .._system import LARGEST, Model, MultibodySystem


# --------------------------------------------------------------------------------------------------
# Time and configuration of a command's question.
# --------------------------------------------------------------------------------------------------


def check_time(model: Model, time: float) -> None:
    """Refuse a time that is not finite, or outside the table of a driver or motor."""
    if not abs(time) <= LARGEST:
        raise ModelError(
            f"--time must be a finite number of seconds (at most {LARGEST:g}), got {time:g}."
        )
    for owner, motion in motions_of(model):
        domain = motion.domain()
        if domain is not None and not float(domain[0]) <= time <= float(domain[1]):
            raise ModelError(
                f"{owner}: time {time:g} s is outside its table, which runs from "
                f"{float(domain[0]):g} s to {float(domain[1]):g} s; choose --time within it or "
                "extend the table."
            )


def motions_of(model: Model) -> Iterator[tuple[str, AbstractMotion]]:
    """The motions that are given over time, those of drivers and motors, each with its owner in
    words."""
    for driver in model.drivers:
        yield f"driver {shown(driver.name)}", driver.motion
    for motor in model.forces:
        if isinstance(motor, Motor):
            for word in ("reference", "command"):
                motion = getattr(motor, word)
                if motion is not None:
                    yield f"the {word} of motor {shown(motor.name)}", motion


@program(compiling=Compiling.ONCE)
def _scaled_residual(system: MultibodySystem, q: Any, t: Any) -> Any:
    """As one program; operation by operation they are forty."""
    return system.scaled_residual(q, t)


def configuration_at(
    system: MultibodySystem, t: float = 0.0, assembled: bool = False
) -> Float[Array, " nq"]:
    """The reference configuration, or the assembled one."""
    q = system.reference_q
    if assembled:
        return assemble(system, q, t).q
    residual = _scaled_residual(system, q, as_array(t))
    if bool(is_closed(residual, system.precision)):
        return q
    name, amount, unit = open_constraints(system, residual)[0]
    kind = "driver" if system.structure.constraint(name).kind == "driver" else "joint"
    raise ModelError(
        f"the reference configuration is not closed at time {t:g} s: {kind} {shown(name)} is open "
        f"by {amount:.3g} {unit}; correct the points, or let --assemble close it."
    )


def of_model(model: Model, told: Description, out: Path | None = None) -> Description:
    """An answer under the name of its model, with the file that was written and the model's remark
    at the end."""
    remark = {"remark": model.remark} if model.remark else {}
    return told._replace(
        title=model.name,
        notes=[*told.notes, "" if out is None else f"wrote {out}", model.remark],
        data=lambda: {"model": model.name, **told.data(), **remark},
    )


def in_order(data: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """The entries of a document with these keys, as far as there are such."""
    return {key: data[key] for key in keys if key in data}


# --------------------------------------------------------------------------------------------------
# Motions of commands: where and when they start and end, and where they are written to.
# --------------------------------------------------------------------------------------------------


def initial_state(
    system: MultibodySystem, start: float, assembled: bool
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """The state of the model file, or the nearest one that the constraints allow.

    **Raises:** `ModelError` for one that they do not allow, `AnalysisError` if none is found.
    """
    q, v = configuration_at(system, start, assembled), system.initial_v
    if assembled:
        try:
            return consistent_state(system, q, v, start)
        except ValueError as error:
            raise AnalysisError(str(error)) from None
    try:
        check_state(system, q, v, as_array(start))
    except ValueError as error:
        # What follows the semicolon is advice for Python.
        what = str(error).rsplit(";", 1)[0]
        raise ModelError(
            f"{what}; correct them, or let --assemble move to the nearest that the constraints "
            "allow."
        ) from None
    return q, v


def times_of(model: Model, start: float, end: float, every: float | None) -> Float[Array, " times"]:
    """The saved times: start, start + every, ... and end.

    **Raises:** `ModelError`.
    """
    for owner, motion in motions_of(model):
        domain = motion.domain()
        if domain is not None and not (float(domain[0]) <= start and end <= float(domain[1])):
            raise ModelError(
                f"{owner}: its table runs from {float(domain[0]):g} s to {float(domain[1]):g} s "
                f"and does not hold all times from {start:g} s to {end:g} s; choose --time and "
                "--end within it or extend the table."
            )
    try:
        times = saved_times(start, end, every, None, np.dtype(float))
    except ValueError as error:
        raise ModelError(f"--{error}") from None
    if not increases(times):
        raise ModelError(
            f"--end {end:g} is too close to the start at {start:g} s, or --every too small, for "
            "double precision; choose a later end, or fewer times."
        )
    return times


def increases(times: Float[Array, " times"] | np.ndarray) -> bool:
    """Is each time later than the one before, in double precision?"""
    # Compiled programs take what is smaller for zero.
    return bool(np.all(np.diff(times) >= np.finfo(float).tiny))


def check_out(out: Path | None) -> None:
    """Refuse before the run what could not be written after it.

    **Raises:** `ModelError`.
    """
    if out is not None:
        from ..io._trajectory import check_path

        check_path(out)


def save(motion: Trajectory | Kinematics, out: Path | None, units: bool = False) -> str:
    """Write it where it is wanted; returns a sentence to add to a message. `units`: columns of a
    .csv are named with them.

    **Raises:** `ModelError` if it cannot be written.
    """
    if out is None:
        return ""
    from ..io import save_trajectory

    try:
        save_trajectory(motion, out, units=units)
    except OSError as error:
        raise ModelError(f"cannot write {str(out)!r}: {error.strerror}.") from None
    return f" What was computed until then is in {str(out)!r}."


def singular(passed: tuple[Passage, ...]) -> list[dict[str, Any]]:
    """Undetermined motions and reactions in the singular configurations of a motion."""
    return [
        {
            "time": own.time,
            "rank": own.rank,
            "generic_rank": own.nearby,
            "not_unique": list(own.joints),
            "free": list(own.motions),
        }
        for own in passed
    ]


def body_tables(
    bodies: Mapping[str, Mapping[str, Any]],
    posed: Mapping[str, str],
    others: Mapping[str, tuple[str, str]],
    cell: Callable[[Any], str],
) -> list[Table]:
    """Tables of quantities of bodies, by name and word: one of bodies with a place, and one of the
    coordinates that others have.

    **Arguments:** `posed`: words and their units; `others`: titles, each with the end of the word
    after that of a coordinate, and its unit. `cell`: of a quantity.
    """
    tables = []
    own = {name: known for name, known in bodies.items() if "position" in known}
    if own:
        columns = [
            Column(
                word.replace("_", " "),
                [cell(known[word]) if word in known else "" for known in own.values()],
                unit,
            )
            for word, unit in posed.items()
        ]
        tables.append(Table([Column("body", list(own)), *columns]))
    named = [
        (name, word.removesuffix(".rate"))
        for name, known in bodies.items()
        for word in known
        if word.endswith(".rate")
    ]
    if named:
        columns = [
            Column(title, [cell(bodies[name][word + end]) for name, word in named], unit)
            for title, (end, unit) in others.items()
        ]
        body, coordinate = map(list, zip(*named, strict=True))
        tables.append(Table([Column("body", body), Column("coordinate", coordinate), *columns]))
    return tables
