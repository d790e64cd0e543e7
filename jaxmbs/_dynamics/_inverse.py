import dataclasses

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float

from .._custom_types import Numbers, Setting
from .._formulations import AbstractFormulation, Accelerations, chosen_formulation
from .._formulations._elastic_resolution import check_compliances
from .._programs import program
from .._solution import RESULTS
from .._system import AbstractSystem, takes_state
from ._elastic_theory import limits_left, limits_left_by_motion
from ._friction import solve_with_friction
from ._kinematics import Kinematics, kinematics
from ._projection import errors
from ._trajectory import Statistics, Trajectory


@takes_state(decides_rank=True)
def inverse_dynamics(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    times: Setting[Numbers],
    *,
    formulation: Setting[AbstractFormulation | None] = None,
    throw: Setting[bool] = True,
) -> Trajectory:
    """The forces of a motion that drivers determine: driving forces and torques, and the
    reaction of every joint.

    The motion is that of `kinematics`; its multipliers solve M dv/dt + C^T lambda = F, friction
    included (Flores 2015, chapter 5). `reactions()` of the result gives the physical wrenches
    with their verdicts, and `reactions().driving(name)` the force or torque of a driver.
    Differentiable as `kinematics` is.

    **Arguments:** `q` (nq,): closed, or nearly so, at the first time; `times` (n,): s, increasing;
    `formulation`: which of the possible multipliers, default as of `simulate`.

    **Returns:** a `Trajectory` without steps of an integrator; its errors are those of
    `Trajectory`, rows as they are, its passages those of `kinematics`.

    **Raises:** as `kinematics`; `RuntimeError` if the multipliers cannot be found.
    """
    chosen = chosen_formulation(formulation, system.structure)
    check_compliances(chosen, system.structure)
    found = kinematics(system, q, times, throw=throw)
    trajectory = _loaded(found, chosen)
    # Of a motion that ended early as well: what is known of it is on the way.
    passed = jnp.asarray(found.passages, q.dtype)
    trajectory = dataclasses.replace(
        trajectory,
        passages=passed,
        passage_count=jnp.asarray(len(passed)),
        passed=found.passed,
        passages_remark=found.passages_remark,
    )
    trajectory = _with_limits(trajectory)
    failed = trajectory.result != RESULTS.successful
    if throw and not isinstance(failed, Tracer) and bool(failed):
        raise RuntimeError(RESULTS[trajectory.result])
    return trajectory


def _with_limits(trajectory: Trajectory) -> Trajectory:
    """With the elastic bodies that forces take beyond their theory, beside those that the motion
    does."""
    left = limits_left(trajectory)
    if not left:
        return trajectory
    by_motion = limits_left_by_motion(
        trajectory.system, trajectory.times, trajectory.q, trajectory.v
    )
    lines = [one for one in trajectory.message.splitlines() if one not in by_motion]
    return dataclasses.replace(trajectory, message="\n".join([*lines, *left]))


@program
def _loaded(found: Kinematics, formulation: AbstractFormulation) -> Trajectory:
    system = found.system

    def state(
        q: Float[Array, " nq"], v: Float[Array, " nv"], t: Float[Array, ""]
    ) -> tuple[Accelerations, Float[Array, ""], Float[Array, ""]]:
        return solve_with_friction(system, formulation, q, v, t), *errors(system, q, v, t)

    loads, position, velocity = jax.vmap(state)(found.q, found.v, found.times)
    bad = loads.result != RESULTS.successful
    first = RESULTS.successful
    if found.times.shape[0]:
        worst = jax.tree.map(lambda x: x[jnp.argmax(bad)], loads.result)
        first = RESULTS.where(jnp.any(bad), worst, RESULTS.successful)
    none = jnp.asarray(0)
    return Trajectory(
        found.times,
        found.q,
        found.v,
        found.acceleration,
        loads.multipliers,
        position,
        velocity,
        found.reached,
        jnp.zeros((0,), found.q.dtype),
        none,
        jnp.asarray(False),
        Statistics(none, none, none),
        RESULTS.where(found.result == RESULTS.successful, first, found.result),
        system,
        found.message,
        formulation.elastic,
    )
