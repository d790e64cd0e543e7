"""Programs of a run in chunks (`_chunks.py`): its start, and its next chunk."""

import diffrax as dfx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._custom_types import IntScalar
from .._programs import sealed
from .._solution import RESULTS
from .._system import AbstractSystem
from ._choices import Chunk, Integration, Limits, StateChecks, Underway
from ._chunks import first_failure, first_in_batches, lanes_of
from ._elastic_theory import largest_deflection
from ._integrate import begin, go_on, Part
from ._projection import SavedState
from ._run import (
    controlled,
    controller_of,
    End,
    Ended,
    ends_within,
    event_of,
    outcome,
    passages_of,
    problem,
    saving,
    start_of,
    with_defaults,
)
from ._runge_kutta import Inside
from ._solver import Kept
from ._step_size import under_way
from ._trajectory import Statistics


def run_at_start(
    system: AbstractSystem,
    integration: Integration,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    span: Float[Array, " ends"],
) -> Underway:
    """The run between these times before its first step."""
    integration = with_defaults(integration)
    start = start_of(system, integration, q, v, span, integration.adjoint)
    controller = controlled(integration, system, q, v, span)
    inside = Inside(span, ends_within(integration))
    given = problem(
        system, integration, start, controller, inside, kept=Kept(last_step=True, record=False)
    )
    state = begin(span=span, y0=start.y, progress_meter=integration.progress, **given)
    bent = largest_deflection(system, q[None])
    found = StateChecks(
        jax.tree.map(lambda x: jnp.asarray(x, jnp.result_type(x)), RESULTS.successful),
        jnp.asarray(True),
        None if bent is None else jnp.zeros_like(bent),
    )
    return Underway(sealed(state), start, found)


def next_chunk(
    system: AbstractSystem,
    integration: Integration,
    underway: Underway,
    times: Float[Array, " times"],
    limits: Limits,
) -> tuple[Underway, Chunk]:
    """The next chunk, with saved states at these times (padded with infinity)."""
    integration, start = with_defaults(integration), underway.start
    controller = under_way(controller_of(integration, system, start.span))
    inside = Inside(times, ends_within(integration))
    given = problem(
        system, integration, start, controller, inside, kept=Kept(last_step=True, record=False)
    )
    found = go_on(
        span=start.span,
        y0=start.y,
        state=underway.state.opened(),
        part=Part(times, limits.count, limits.steps),
        progress_meter=integration.progress,
        **given,
    )
    state, count = found.state, found.count
    # The run has an end of its own where it does not come to all the times.
    early = found.finished & (count < limits.count)
    shown = early | (limits.shown & (count < limits.count))
    rows = (found.times, found.states)
    saved = first_in_batches(
        saving(given["args"], integration), rows, count + shown, lanes_of(system)
    )
    seen = underway.found
    findings = _with_states(system, seen, saved, found.states, count + early)
    last = jax.tree.map(
        lambda x: x[jnp.maximum(count + shown - 1, 0)],
        End(saved.q, saved.v, saved.acceleration, found.times),
    )
    result = outcome(
        system,
        Ended(state.result, state.controller_state, state.num_accepted_steps),
        findings,
        last,
        start.span,
    )
    done = Chunk(
        found.times,
        saved,
        count,
        shown,
        found.finished,
        jnp.minimum(found.times[count], start.span[-1]),
        result,
        state.result == dfx.RESULTS.event_occurred,
        event_of(state.event_mask),
        passages_of(state.solver_state[1], times.dtype),
        Statistics(state.num_steps, state.num_accepted_steps, state.num_rejected_steps),
    )
    return Underway(underway.state.with_arrays_of(state), start, findings), done


def _with_states(
    system: AbstractSystem,
    found: StateChecks,
    saved: SavedState,
    states: Float[Array, "rows state"],
    count: IntScalar,
) -> StateChecks:
    """The findings with those on the first `count` of the states."""
    among = jnp.arange(len(states)) < count
    results = jax.tree.map(lambda x: x[: len(states)], saved.result)
    failure = first_failure(results, among)
    failure = RESULTS.where(found.saved == RESULTS.successful, failure, found.saved)
    finite = found.finite & jnp.all(jnp.isfinite(states) | ~among[:, None])
    bent = largest_deflection(system, jnp.where(among[:, None], saved.q[: len(states)], 0.0))
    if found.bent is not None and bent is not None:
        bent = jnp.maximum(found.bent, bent)
    return StateChecks(failure, finite, bent)
