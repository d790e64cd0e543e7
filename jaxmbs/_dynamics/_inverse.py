import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._custom_types import IntScalar, Numbers, Setting
from .._formulations import AbstractFormulation, Accelerations, chosen_formulation
from .._formulations._elastic_resolution import check_compliances
from .._programs import program
from .._solution import RESULTS
from .._system import AbstractSystem, takes_state
from ._batches import first_failure, first_in_batches, is_traced, lanes_of, room_of
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
    trajectory = _in_chunks(found, chosen)
    if trajectory is None:
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


class _Loads(NamedTuple):
    """Forces of a state, and its errors (see `Trajectory`)."""

    found: Accelerations
    position_error: Float[Array, ""]
    velocity_error: Float[Array, ""]


def _loads(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Float[Array, ""],
) -> _Loads:
    return _Loads(solve_with_friction(system, formulation, q, v, t), *errors(system, q, v, t))


@program
def _loaded(found: Kinematics, formulation: AbstractFormulation) -> Trajectory:
    states = found.q, found.v, found.times
    loads = jax.vmap(lambda *x: _loads(found.system, formulation, *x))(*states)
    first = RESULTS.successful
    if found.times.shape[0]:
        first = first_failure(loads.found.result)
    result = RESULTS.where(found.result == RESULTS.successful, first, found.result)
    return _trajectory(found, formulation, loads, result)


@program
def _chunk(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    states: tuple[Float[Array, "n nq"], Float[Array, "n nv"], Float[Array, " n"]],
    count: IntScalar,
) -> _Loads:
    """Loads of the first `count` states."""
    lanes = lanes_of(system)
    return first_in_batches(lambda x: _loads(system, formulation, *x), states, count, lanes)


def _in_chunks(found: Kinematics, formulation: AbstractFormulation) -> Trajectory | None:
    """As `_loaded`, so many states at a time: their number is data. None inside of a
    transformation."""
    if is_traced((found, formulation)):
        return None
    states = tuple(np.asarray(x) for x in (found.q, found.v, found.times))
    room, most = room_of(found.system), len(states[0])
    chunks: list[_Loads] = []
    for k in range(0, max(most, 1), room):
        count = min(room, most - k)
        places = np.minimum(np.arange(k, k + room), max(most - 1, 0))
        given = tuple(x[places] if most else np.zeros((room, *x.shape[1:])) for x in states)
        data: Any = jax.device_put((given, np.asarray(count)))
        loads = _chunk(found.system, formulation, *data)
        if is_traced(loads):
            return None
        chunks.append(jax.tree.map(lambda x, n=count: np.asarray(x)[:n], loads))
    loads = jax.tree.map(lambda *x: np.concatenate(x), *chunks)
    result = found.result
    if not RESULTS[result]:
        codes, well = (jax.tree.leaves(x)[0] for x in (loads.found.result, RESULTS.successful))
        bad = np.flatnonzero(codes != np.asarray(well))
        if bad.size:
            result = jax.tree.map(lambda x: jnp.asarray(x[bad[0]]), loads.found.result)
    loads = jax.device_put(loads)
    return _trajectory(found, formulation, loads, result)


def _trajectory(
    found: Kinematics, formulation: AbstractFormulation, loads: _Loads, result: RESULTS
) -> Trajectory:
    none = jnp.asarray(0)
    return Trajectory(
        found.times,
        found.q,
        found.v,
        found.acceleration,
        loads.found.multipliers,
        loads.position_error,
        loads.velocity_error,
        found.reached,
        jnp.zeros((0,), found.q.dtype),
        none,
        jnp.asarray(False),
        Statistics(none, none, none),
        result,
        found.system,
        found.message,
        formulation.elastic,
    )
