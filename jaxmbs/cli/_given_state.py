"""Time, configuration and motion of a command's question."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Array, Float

from .._checks import as_array, shown
from .._dynamics import consistent_state, Kinematics, Trajectory
from .._dynamics._initial import check_state
from .._dynamics._passages import Passage
from .._dynamics._trajectory import saved_times
from .._errors import AnalysisError, ModelError
from .._kinematics import assemble, is_closed, open_constraints
from .._programs import Compiling, program
from .._system import LARGEST, Model, MultibodySystem
from ._requests import Analyze, Analyze as Request


# --------------------------------------------------------------------------------------------------
# Time and configuration of a command's question.
# --------------------------------------------------------------------------------------------------


def check_time(model: Model, time: float) -> None:
    """Refuse a time that is not finite, or outside the table of a driver."""
    if not abs(time) <= LARGEST:
        raise ModelError(
            f"--time must be a finite number of seconds (at most {LARGEST:g}), got {time:g}."
        )
    for driver in model.drivers:
        domain = driver.motion.domain()
        if domain is not None and not float(domain[0]) <= time <= float(domain[1]):
            raise ModelError(
                f"driver {shown(driver.name)}: time {time:g} s is outside its table, which runs "
                f"from {float(domain[0]):g} s to {float(domain[1]):g} s; choose --time within "
                "it or extend the table."
            )


@program(compiling=Compiling.ONCE)
def _scaled_residual(system: MultibodySystem, q: Any, t: Any) -> Any:
    """As one program; operation by operation they are forty."""
    return system.scaled_residual(q, t)


def configuration_at(system: MultibodySystem, request: Request):
    """The reference configuration, or the assembled one."""
    q, t = system.reference_q, request.time
    if request.assemble:
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


# --------------------------------------------------------------------------------------------------
# Motions of commands: where and when they start and end, and where they are written to.
# --------------------------------------------------------------------------------------------------


def initial_state(
    system: MultibodySystem, start: float, assemble: bool
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """The state of the model file, or the nearest one that the constraints allow.

    **Raises:** `ModelError` for one that they do not allow, `AnalysisError` if none is found.
    """
    q = configuration_at(system, Analyze(time=start, assemble=assemble))
    v = system.initial_v
    if assemble:
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
    for driver in model.drivers:
        domain = driver.motion.domain()
        if domain is not None and not (float(domain[0]) <= start and end <= float(domain[1])):
            raise ModelError(
                f"driver {shown(driver.name)}: its table runs from {float(domain[0]):g} s to "
                f"{float(domain[1]):g} s and does not hold all times from {start:g} s to "
                f"{end:g} s; choose --time and --end within it or extend the table."
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


def save(motion: Trajectory | Kinematics, out: Path | None) -> str:
    """Write it where it is wanted; returns a sentence to add to a message.

    **Raises:** `ModelError` if it cannot be written.
    """
    if out is None:
        return ""
    from ..io import save_trajectory

    try:
        save_trajectory(motion, out)
    except OSError as error:
        raise ModelError(f"cannot write {str(out)!r}: {error.strerror}.") from None
    return f" What was computed until then is in {str(out)!r}."


def passages(trajectory: Trajectory) -> list[float]:
    """Times at which the motion passed singular configurations."""
    found = np.asarray(trajectory.passages)
    return found[np.isfinite(found)].tolist()


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


def coordinates_of(
    states: Mapping[str, Mapping[str, Any]],
) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Bodies' coordinates of their own: body, name, and the data of that body by name."""
    return [
        (body, word.removesuffix(".rate"), known)
        for body, known in states.items()
        for word in known
        if word.endswith(".rate")
    ]
