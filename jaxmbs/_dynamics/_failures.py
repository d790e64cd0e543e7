"""What a failed run says: what happened, when, at which joint, and what to try."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._custom_types import Scalar
from .._formulations import AbstractFormulation, Accelerations
from .._kinematics import open_constraints
from .._solution import RESULTS
from .._system import AbstractSystem
from ._friction import solve_with_friction
from ._trajectory import Trajectory
from ._watched import kept_rows


class SimulationError(RuntimeError):
    """A run that ended too early. `trajectory`: everything computed until then."""

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
    text = f"The run ended at {float(t):.9g} s. {RESULTS[trajectory.result]}"
    dropped = ~kept_rows(formulation, system.structure)
    if dropped.any():
        names = [n for n, d in zip(system.structure.row_names, dropped, strict=True) if d]
        text += f" Dropped here: {', '.join(names)}."
    force, found = _state(system, formulation, q, v, t)
    if not bool(jnp.all(jnp.isfinite(force))):
        columns = np.flatnonzero(~np.isfinite(np.asarray(force)))
        bodies = [
            body.name
            for body in system.structure.bodies
            if set(columns.tolist()) & {*body.force, *body.torque}
        ]
        return f"{text} The force is not finite on {', '.join(bodies) or 'the system'}."
    if RESULTS[found.result]:
        return f"{text} {RESULTS[found.result]}"
    worst = _hardest(system, trajectory)
    return f"{text} {worst}" if worst else text


@eqx.filter_jit
def _state(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
) -> tuple[Float[Array, " nv"], Accelerations]:
    return system.force(q, v, t), solve_with_friction(system, formulation, q, v, t)


def _hardest(system: AbstractSystem, trajectory: Trajectory) -> str:
    """Which joint or driver cannot be followed: the one that opens, or carries most."""
    opened = open_constraints(
        system, trajectory.system.scaled_residual(trajectory.q[-1], trajectory.times[-1])
    )
    if opened:
        name, amount, unit = opened[0]
        return f"{name!r} is open by {amount:.3g} {unit} there."
    drivers = [c for c in system.structure.constraints if c.kind == "driver"]
    if drivers and trajectory.result == RESULTS.step_too_small:
        size = np.abs(np.asarray(trajectory.multipliers[-1]))
        name = max(drivers, key=lambda c: size[c.start : c.stop].max(initial=0.0)).name
        return (
            f"Driver {name!r} is the one that carries most: the mechanism may have reached the "
            "end of what it can follow."
        )
    return ""
