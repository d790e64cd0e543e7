"""Explanation of a failed run: what happened, when, at which joint, and what to try."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._custom_types import Scalar
from .._formulations import AbstractFormulation, Accelerations
from .._kinematics import open_constraints, undefined
from .._linalg import motion_solver
from .._programs import Compiling, program
from .._solution import RESULTS
from .._system import AbstractSystem, smallest_rows, vanishing_sentence
from ._consistency import acceleration_residual
from ._contradictions import contradiction, nearly_singular
from ._elastic_theory import limits_left
from ._friction import solve_stage
from ._mobility import look_at_drivers, movers
from ._projection import project_position
from ._trajectory import Trajectory
from ._undetermined import undetermined_accelerations
from ._watched import kept_rows


# How far a failed run is followed to see why: relative to its duration, and at least (s).
_AHEAD = 1e-2
_AHEAD_AT_LEAST = 1e-6

# Where a run ends, what determines an acceleration by less than this has made it end.
_HARDLY = 1e-3


class SimulationError(RuntimeError):
    """A run that ended too early. `trajectory`: everything computed until then."""

    trajectory: Trajectory

    def __init__(self, trajectory: Trajectory):
        self.trajectory = trajectory

    def __str__(self) -> str:
        return self.trajectory.message


class SimulationInterrupted(KeyboardInterrupt):
    """A run that Ctrl-C has stopped. `trajectory`: everything computed until then, which `resume`
    goes on with."""

    trajectory: Trajectory

    def __init__(self, trajectory: Trajectory):
        self.trajectory = trajectory

    def __str__(self) -> str:
        return self.trajectory.message


def explain(
    system: AbstractSystem, formulation: AbstractFormulation, trajectory: Trajectory
) -> str:
    """A sentence or two for a trajectory whose result is a failure. Concrete values only."""
    t, q, v = trajectory.times[-1], trajectory.q[-1], trajectory.v[-1]
    left = limits_left(trajectory)
    if bool(trajectory.result == RESULTS.elastic_body_too_bent):
        return " ".join([RESULTS[trajectory.result], *left])
    text = f"The run ended at {float(t):.9g} s. {RESULTS[trajectory.result]}"
    dropped = ~kept_rows(formulation, system.structure)
    if dropped.any():
        names = [n for n, d in zip(system.structure.row_names, dropped, strict=True) if d]
        text += f" Dropped here: {', '.join(names)}."
    force, found = _state(system, formulation, q, v, t)
    if not bool(jnp.all(jnp.isfinite(force))):
        return f"{text} The force is not finite on {_bodies(system, force)}."
    if bool(trajectory.result == RESULTS.velocity_row_vanishes):
        return f"{text} There {vanishing_sentence(system, smallest_rows(system, q, v, t))}"
    open_ones = _undetermined(system, q, v, t)
    if open_ones:
        return f"{text} {open_ones}"
    if RESULTS[found.result]:
        return f"{text} {RESULTS[found.result]}{_unmet_constraints(system, q, v, t, found)}"
    return " ".join([text, *filter(None, [_hardest(system, trajectory)]), *left])


def _undetermined(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> str:
    """Accelerations that are undetermined, or barely determined, as where a run ends close to such
    a state; of systems whose mass matrix need only be semidefinite."""
    finite = all(bool(jnp.all(jnp.isfinite(x))) for x in (q, v, t))
    if not (system.structure.semidefinite and finite):
        return ""
    found = undetermined_accelerations(system, q, v, t, tolerance=_HARDLY)
    return str(found) if len(found) or found.indefinite else ""


@program(compiling=Compiling.ONCE)
def _state(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
) -> tuple[Float[Array, " nv"], Accelerations]:
    return system.force(q, v, t), solve_stage(system, formulation, q, v, t)


def _unmet_constraints(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    found: Accelerations,
) -> str:
    """The constraints at acceleration level that are not met."""
    structure = system.structure
    if structure.velocity_level.all():
        return ""
    equations = system.equations(q, v, t)
    left = np.abs(np.asarray(acceleration_residual(system, equations, found.acceleration)))
    # A tenth of the largest is more than rounding.
    rows = np.flatnonzero(left > 0.1 * np.max(left, initial=0.0))
    names = {structure.constraints[owner].name: None for owner in structure.row_owner[rows]}
    return f" This is asked for: {', '.join(map(repr, names))}." if names else ""


def _bodies(system: AbstractSystem, force: Float[Array, " nv"]) -> str:
    """Bodies on which the force is NaN or infinite."""
    columns = set(np.flatnonzero(~np.isfinite(np.asarray(force))).tolist())
    bodies = [b.name for b in system.structure.bodies if columns & {*b.columns}]
    return ", ".join(bodies) or "the system"


def _hardest(system: AbstractSystem, trajectory: Trajectory) -> str:
    """The probable cause of failure: a force that is NaN or infinite, joints or drivers that open,
    or the body with the largest acceleration; at the end or, where steps went to zero, a little
    later."""
    t, q, v = trajectory.times[-1], trajectory.q[-1], trajectory.v[-1]
    opened = open_constraints(system, system.scaled_residual(q, t))
    if opened:
        name, amount, unit = opened[0]
        return f"{name!r} is open by {amount:.3g} {unit} there."
    ahead = (RESULTS.step_too_small, RESULTS.step_not_solved)
    if not any(bool(trajectory.result == member) for member in ahead):
        return ""
    later = t + _AHEAD * (t - trajectory.times[0]) + _AHEAD_AT_LEAST
    unknown = undefined(system, q, later)
    if unknown:
        return unknown
    force, residual = _ahead(system, q, v, t, later)
    if not bool(jnp.all(jnp.isfinite(force))):
        return f"The force on {_bodies(system, force)} is not finite a little later."
    opened = open_constraints(system, residual)
    unmet = contradiction(system, q, v, t)
    if unmet:
        return unmet
    if opened:
        _, amount, unit = opened[0]
        names = ", ".join(repr(name) for name, other, _ in opened if other > 0.1 * amount)
        return (
            f"Not all constraints can be met a little later, at {float(later):.6g} s: {names} "
            f"stay open by up to {amount:.3g} {unit}. The mechanism may have reached the end of "
            f"its range, or they contradict each other. {look_at_drivers(system.structure)}"
        )
    singular = nearly_singular(system, q, v, t, _HARDLY)
    if singular:
        return singular
    acceleration = np.asarray(trajectory.acceleration[-1])
    if not np.any(acceleration):
        return ""
    length = float(system.characteristic_length())
    return f"What accelerates most is {movers(acceleration[:, None], system.structure, length)[0]}."


@program(compiling=Compiling.ONCE)
def _ahead(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    later: Scalar,
) -> tuple[Float[Array, " nv"], Float[Array, " geometric"]]:
    """The force where the motion would lead to, and what stays open next to there."""
    straight = system.retract(q, (later - t) * v)
    near, _ = project_position(system, straight, later, motion_solver())
    return system.force(straight, v, later), system.scaled_residual(near, later)
