"""The states of a report: those of a motion, or one."""

import functools
from typing import Any

import numpy as np
from jaxtyping import Array, Float

from .._checks import known_array, number, picked, shown
from .._dynamics import consistent_state, simulate, Statistics, Trajectory
from .._dynamics._friction import solve_with_friction
from .._dynamics._initial import check_state
from .._dynamics._passages import Passages
from .._dynamics._projection import errors
from .._errors import AnalysisError, ModelError
from .._formulations import AbstractFormulation, Accelerations, elastic_formulation
from .._programs import Compiling, program
from .._solution import RESULTS
from .._system import AbstractSystem, Model, MultibodySystem


# Of a model's motion so many states are saved, and of a trajectory at most so many are shown,
# unless another number is given.
SAVED, SHOWN = 101, 500


@functools.singledispatch
def system_of(subject: Any) -> AbstractSystem:
    """Whose report it is.

    **Raises:** `TypeError` for what is neither a model nor a trajectory.
    """
    raise TypeError(
        f"subject must be a Model or a Trajectory, got {shown(subject)}; of a system give the "
        "trajectory that simulate(...) returns."
    )


@system_of.register
def _(subject: Model) -> AbstractSystem:
    return subject.system()


@system_of.register
def _(subject: Trajectory) -> AbstractSystem:
    return subject.system


@functools.singledispatch
def motion_of(
    subject: Any,
    system: AbstractSystem,
    end: float | None,
    every: float | None,
    frames: int | None,
) -> Trajectory:
    """The motion to show: that of a model, its one state where there is no end, or a trajectory.

    **Arguments:** `subject` and its `system`; the others as of `write`.

    **Raises:** `ModelError` for settings that do not belong to it.
    """
    raise TypeError(f"subject must be a Model or a Trajectory, got {shown(subject)}.")


@motion_of.register
def _(
    subject: Model,
    system: MultibodySystem,
    end: float | None,
    every: float | None,
    frames: int | None,
) -> Trajectory:
    q, v = system.reference_q, system.initial_v
    formulation = elastic_formulation(system.structure)
    if end is None:
        if every is not None or frames is not None:
            raise ModelError(
                "every and frames divide a motion, which has an end; give end=1.0 (s)."
            )
        return still(system, q, v)
    if every is not None:
        return thinned(simulate(system, q, v, end, every=every, formulation=formulation), frames)
    times = np.linspace(0.0, end, frames or SAVED)
    return simulate(system, q, v, end, times=times, formulation=formulation)


@motion_of.register
def _(
    subject: Trajectory,
    system: AbstractSystem,
    end: float | None,
    every: float | None,
    frames: int | None,
) -> Trajectory:
    if end is not None or every is not None:
        raise ModelError("end and every are those of a model; a trajectory has its own times.")
    if subject.times.ndim > 1:
        raise ModelError("a report shows one trajectory; index the batch and write one by one.")
    return thinned(subject, frames)


def thinned(trajectory: Trajectory, frames: int | None) -> Trajectory:
    """A motion with at most this number of its saved states, evenly chosen, with the first and the
    last."""
    count, most = trajectory.times.shape[0], frames or SHOWN
    if count <= most:
        return trajectory
    return trajectory.at(np.round(np.linspace(0, count - 1, most)).astype(int))


def still(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: float = 0.0,
    *,
    assemble: bool = False,
) -> Trajectory:
    """One state as a trajectory: its accelerations and multipliers, friction included, with the
    compliances that there are.

    **Raises:** `ValueError` for a state that the constraints do not allow, `AnalysisError` where
    accelerations or multipliers cannot be found.
    """
    if assemble:
        q, v = consistent_state(system, q, v, t)
    now = number(t, q.dtype)
    check_state(system, q, v, now)
    formulation = elastic_formulation(system.structure)
    found, position, velocity = _loads(system, formulation, q, v, now)
    if failure := RESULTS[found.result]:
        raise AnalysisError(failure)
    none = known_array(np.asarray(0))
    return Trajectory(
        picked(now, None),
        picked(q, None),
        picked(v, None),
        picked(found.acceleration, None),
        picked(found.multipliers, None),
        picked(position, None),
        picked(velocity, None),
        known_array(np.ones(1, bool)),
        Passages.none(q.dtype),
        known_array(np.asarray(False)),
        Statistics(none, none, none),
        RESULTS.successful,
        system,
        "",
        formulation.elastic,
    )


@program(compiling=Compiling.ONCE)
def _loads(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Float[Array, ""],
) -> tuple[Accelerations, Float[Array, ""], Float[Array, ""]]:
    return solve_with_friction(system, q, v, t, formulation=formulation), *errors(system, q, v, t)
