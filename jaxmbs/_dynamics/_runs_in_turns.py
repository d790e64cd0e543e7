"""Runs that are made step by step from outside: many of them side by side, each of which is
replaced by the next one when it has ended (`_sweep/_turns.py`).

The steps and the states are those of a run as one program (`_whole_run.py`). What is saved within a
step is interpolated when that has been made, and evaluated when the run has ended. No derivative.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, IntScalar
from .._system import AbstractSystem
from ._batches import in_batches, lanes_of
from ._integrate import begin, one_step, under_way
from ._integration import Integration
from ._run import controlled, controller_of, problem, saving, with_defaults
from ._solver import Kept
from ._trajectory import Statistics, Trajectory
from ._whole_run import (
    Beginning,
    beginning_of,
    inside_of,
    rows_reached,
    RunEnd,
    RunResult,
    trajectory_of,
)


class RunLane(NamedTuple):
    """A run between two steps. `begun`: at its start; `state`: Diffrax's; `saved` (times + 1,
    state): `count` of them so far; `ended`: the run is complete."""

    begun: Beginning
    state: Any
    saved: Float[Array, "rows state"]
    count: IntScalar
    ended: BoolScalar


def begin_run(
    system: AbstractSystem,
    integration: Integration,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    grid: Float[Array, " times"],
) -> RunLane:
    """The run with states at these times before its first step."""
    integration = with_defaults(integration)
    controller = controlled(integration, system, q, v, grid)
    begun = beginning_of(system, integration, q, v, grid, integration.adjoint)
    given = _diffrax_arguments(system, integration, begun, controller)
    span, y0 = begun.start.span, begun.start.y
    state = begin(span=span, y0=y0, progress_meter=integration.progress, **given)
    saved = jnp.zeros((len(grid) + 1, len(y0)), y0.dtype)
    return RunLane(begun, state, saved, jnp.asarray(0), span[0] >= span[-1])


def turn_run(system: AbstractSystem, integration: Integration, lane: RunLane) -> RunLane:
    """Attempt one more step, and interpolate the states to be saved within it."""
    integration, start = with_defaults(integration), lane.begun.start
    controller = under_way(controller_of(integration, system, start.span))
    given = _diffrax_arguments(system, integration, lane.begun, controller)
    state, ended = one_step(
        span=start.span,
        y0=start.y,
        state=lane.state,
        progress_meter=integration.progress,
        **given,
    )
    last = state.solver_state[-1]
    curve = given["solver"].interpolation_cls(t0=last.t0, t1=last.t1, **last.dense)
    times = jnp.append(start.span, jnp.inf)

    def save(carry: tuple[IntScalar, Array]) -> tuple[IntScalar, Array]:
        k, saved = carry
        row = curve.evaluate(times[k])
        return k + 1, lax.dynamic_update_index_in_dim(saved, row, k, 0)

    count, saved = lax.while_loop(
        lambda carry: times[carry[0]] <= last.t1, save, (lane.count, lane.saved)
    )
    return RunLane(lane.begun, state, saved, count, ended)


def trajectory_of_lane(
    system: AbstractSystem, integration: Integration, lane: RunLane
) -> Trajectory:
    """The trajectory of a run that has ended."""
    integration, start, state = with_defaults(integration), lane.begun.start, lane.state
    given = _diffrax_arguments(
        system, integration, lane.begun, under_way(controller_of(integration, system, start.span))
    )
    # The state in which the run ended stands in the place of all that it did not reach.
    rows = rows_reached(len(start.span), lane.count)
    ys = lane.saved.at[lane.count].set(state.y)[rows]
    times = jnp.append(start.span, state.tprev).at[lane.count].set(state.tprev)[rows]
    saved = in_batches(saving(given["args"], integration), (times, ys), lanes_of(system))
    steps = Statistics(state.num_steps, state.num_accepted_steps, state.num_rejected_steps)
    end = RunEnd(state.result, state.controller_state, steps, state.event_mask)
    finite = jnp.isfinite(ys).all()
    made = RunResult(times, saved, lane.count, finite, state.solver_state[1], end)
    return trajectory_of(system, integration, lane.begun, made)


def _diffrax_arguments(
    system: AbstractSystem, integration: Integration, begun: Beginning, controller: Any
) -> dict[str, Any]:
    """Arguments of Diffrax."""
    start = begun.start
    inside, kept = inside_of(integration, start.span), Kept(last_step=True, record=False)
    return problem(system, integration, start, controller, inside, kept=kept)
