"""Runs in chunks: one program for any duration and any number of saved states.

A run whose numbers are known is made by a program that saves a few states and is called again
and again. What differs from run to run is data: the times of the chunk, the first and the last
time of the run, on which steps depend, and the state that is carried from one chunk to the next.
That contains the next step as it was chosen, what the controller and the monitor carry, and the
last step for its interpolation. So neither the steps nor the states depend on the chunks, and a
run that was stopped between two of them goes on as if it had not been.

A chunk is computed within a moment: by then the run can say where it is, and can be stopped.

Their programs are in `_chunk_programs.py`, which is loaded where one is traced.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from .._checks import known_array
from .._custom_types import IntScalar
from .._formulations import AbstractFormulation
from .._loading import late
from .._programs import program
from .._solution import RESULTS
from .._system import AbstractSystem
from ._choices import Chunk, Integration, Limits, Underway
from ._trajectory import Trajectory


if TYPE_CHECKING:
    from . import _chunk_programs as programs
else:
    programs = late(f"{__package__}._chunk_programs")


# --------------------------------------------------------------------------------------------------
# Many states, a few at a time: of a number that a program knows, or that is data.
# --------------------------------------------------------------------------------------------------


# Saved states are evaluated as many at a time as have about this many rows: a small mechanism
# costs the starts of its operations, a large one the memory of its batch.
_LANES = 256

# States that a chunk holds at most, and numbers: the shape of its program.
STATES = 1024
_NUMBERS = 1_000_000


def lanes_of(system: AbstractSystem) -> int:
    """States that are evaluated at once."""
    return max(1, _LANES // max(1, len(system.structure.rows)))


def room_of(system: AbstractSystem) -> int:
    """States that a chunk holds at most."""
    structure = system.structure
    numbers = structure.nq + 2 * structure.nv + len(structure.rows)
    return max(1, min(STATES, _NUMBERS // max(1, numbers)))


def is_traced(tree: Any) -> bool:
    """Is any of its numbers being traced?"""
    return any(isinstance(x, Tracer) for x in jax.tree.leaves(tree))


def in_batches(function: Callable[[Any], Any], arguments: Any, size: int) -> Any:
    """`function` of each of the arguments along their first axis, `size` at a time. The last one
    is repeated to fill the last batch: a smaller one would be compiled apart."""
    count = len(jax.tree.leaves(arguments)[0])
    if min(size, count) == 1:
        return lax.map(function, arguments)
    batches = -(-count // min(size, count))
    places = np.minimum(np.arange(batches * min(size, count)), count - 1).reshape(batches, -1)
    results = lax.map(jax.vmap(function), jax.tree.map(lambda x: x[places], arguments))
    return jax.tree.map(lambda x: x.reshape(places.size, *x.shape[2:])[:count], results)


def first_in_batches(
    function: Callable[[Any], Any], rows: Any, count: IntScalar, lanes: int
) -> Any:
    """`function` of the first `count` of the rows, so many at a time; others are zeros."""
    most = len(rows[0])
    lanes = min(lanes, most)
    batched = function if lanes == 1 else jax.vmap(function)

    def batch(k: IntScalar) -> Any:
        places = jnp.minimum(k * lanes + jnp.arange(lanes), jnp.maximum(count - 1, 0))
        chosen = jax.tree.map(lambda x: x[places], rows)
        if lanes > 1:
            return batched(chosen)
        return jax.tree.map(lambda x: x[None], batched(jax.tree.map(lambda x: x[0], chosen)))

    def one(k: IntScalar, all_rows: Any) -> Any:
        return jax.tree.map(
            lambda a, b: lax.dynamic_update_slice_in_dim(a, b, k * lanes, 0), all_rows, batch(k)
        )

    shapes = eqx.filter_eval_shape(batch, jnp.asarray(0))
    room = -(-most // lanes) * lanes
    empty = jax.tree.map(lambda x: jnp.zeros((room, *x.shape[1:]), x.dtype), shapes)
    return lax.fori_loop(0, -(-count // lanes), one, empty)


def first_failure(saved: RESULTS, among: Any = True) -> RESULTS:
    """The first of the results along their axis, among these, that is a failure; success if there
    is none."""
    bad = (saved != RESULTS.successful) & among
    worst = jax.tree.map(lambda x: x[jnp.argmax(bad)], saved)
    return RESULTS.where(jnp.any(bad), worst, RESULTS.successful)


# The first chunk has so many states and steps. One that takes less than the first of these times
# (s) is followed by one four times as long, one that takes more than the second by one of half the
# length.
_FIRST_STATES, _FIRST_STEPS = 128, 128
_SHORT, _LONG = 0.05, 0.3


@program
def begun(
    system: AbstractSystem,
    integration: Integration,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    span: Float[Array, " ends"],
) -> Underway:
    """The run between these times before its first step."""
    return programs.run_at_start(system, integration, q, v, span)


@program
def chunk(
    system: AbstractSystem,
    integration: Integration,
    underway: Underway,
    times: Float[Array, " times"],
    limits: Limits,
) -> tuple[Underway, Chunk]:
    """The next chunk, with saved states at these times (padded with infinity)."""
    return programs.next_chunk(system, integration, underway, times, limits)


class Rows(NamedTuple):
    """Saved states of one chunk, or of all."""

    times: Float[np.ndarray, " n"]
    q: Float[np.ndarray, "n nq"]
    v: Float[np.ndarray, "n nv"]
    acceleration: Float[np.ndarray, "n nv"]
    multipliers: Float[np.ndarray, "n rows"]
    position_error: Float[np.ndarray, " n"]
    velocity_error: Float[np.ndarray, " n"]
    reached: Bool[np.ndarray, " n"]


class Unfinished(eqx.Module):
    """A run that was stopped between two chunks, and what it takes to go on with it. `times`: all
    at which states are to be saved, and how many of them are: `saved`. `formulation`: with the
    names that messages contain."""

    integration: Integration
    formulation: AbstractFormulation
    underway: Underway
    times: Float[np.ndarray, " times"]
    saved: int = eqx.field(static=True)


class Run(NamedTuple):
    """The trajectory of a run, and the event that ended it. If it was `interrupted`, the trajectory
    holds what is left."""

    trajectory: Trajectory
    event: Any
    interrupted: bool


class _Done(NamedTuple):
    """The run until now, and its last chunk. `rows`: the states of the chunks before, and of this
    one, and so on. One object, as Ctrl-C may come between any two statements."""

    underway: Underway
    saved: int
    rows: tuple[Any, Rows] | None
    last: Chunk | None


def run_in_chunks(
    system: AbstractSystem,
    rest: Unfinished,
    before: Trajectory | None,
    tell: Callable[[float], Any],
) -> Run:
    """The rest of a run behind the trajectory of what was `before`. `tell`: called after each chunk
    with the time (s) that is reached.

    **Raises:** `KeyboardInterrupt` before the end of the first chunk.
    """
    integration, times = rest.integration, rest.times
    rows = None if before is None else (None, _rows_before(before))
    done = _Done(rest.underway, rest.saved, rows, None)
    room = room_of(system)
    count, steps = min(_FIRST_STATES, room), _FIRST_STEPS
    interrupted = False
    try:
        while not _is_over(done, times):
            began = time.perf_counter()
            first = done.last is None
            done = _following(system, integration, done, times, Limits(count, steps, False))
            tell(float(_last_of(done).reached))
            seconds = time.perf_counter() - began
            if seconds < _SHORT:
                count, steps = min(4 * count, room), min(4 * steps, integration.max_steps)
            # The first may have been compiled.
            elif seconds > _LONG and not first:
                count, steps = max(count // 2, 1), max(steps // 2, 1)
    except KeyboardInterrupt:
        if done.last is None:
            raise
        interrupted = True
    # Within the last step there may be more states than a chunk has room for.
    while interrupted and not (_is_over(done, times) or bool(_last_of(done).shown)):
        done = _following(system, integration, done, times, Limits(room, 0, True))
    last = _last_of(done)
    trajectory = _trajectory_of(system, integration, done)
    if interrupted:
        left = Unfinished(integration, rest.formulation, done.underway, times, done.saved)
        trajectory = dataclasses.replace(trajectory, unfinished=left)
    elif integration.progress is not None:
        integration.progress.close(done.underway.state.opened().progress_meter_state)
    return Run(trajectory, last.event, interrupted)


def _last_of(done: _Done) -> Chunk:
    assert done.last is not None
    return done.last


def _is_over(done: _Done, times: Float[np.ndarray, " times"]) -> bool:
    """Is nothing left to do?"""
    if done.last is None:
        return False
    return done.saved == len(times) or (bool(done.last.finished) and bool(done.last.shown))


def _following(
    system: AbstractSystem,
    integration: Integration,
    done: _Done,
    times: Float[np.ndarray, " times"],
    limits: Limits,
) -> _Done:
    """The run until the end of the next chunk, computed."""
    own = times[done.saved : done.saved + limits.count + 1]
    padded = np.full((room_of(system) + 1,), np.inf, times.dtype)
    padded[: len(own)] = own
    count = min(limits.count, len(times) - done.saved)
    limits = Limits(*(np.asarray(x) for x in (count, limits.steps, limits.shown)))
    underway, last = chunk(system, integration, done.underway, known_array(padded), limits)
    jax.block_until_ready(last)
    new = _rows_of(last)
    rows = (done.rows, new) if len(new.times) else done.rows
    return _Done(underway, done.saved + int(last.count), rows, last)


def _rows_of(done: Chunk) -> Rows:
    """The states of a chunk that are shown: copies, as the chunk has room for many more."""
    count, found = int(done.count), done.saved
    rows = count + int(done.shown)
    return Rows(
        np.array(np.asarray(done.times)[:rows]),
        np.array(np.asarray(found.q)[:rows]),
        np.array(np.asarray(found.v)[:rows]),
        np.array(np.asarray(found.acceleration)[:rows]),
        np.array(np.asarray(found.multipliers)[:rows]),
        np.array(np.asarray(found.position_error)[:rows]),
        np.array(np.asarray(found.velocity_error)[:rows]),
        np.arange(rows) < count,
    )


def _rows_before(trajectory: Trajectory) -> Rows:
    """The states of a run that was stopped, without that in which it was."""
    rows = Rows(*(np.asarray(getattr(trajectory, name)) for name in Rows._fields))
    return Rows(*(x[rows.reached] for x in rows))


def _trajectory_of(system: AbstractSystem, integration: Integration, done: _Done) -> Trajectory:
    last, chunks, rows = _last_of(done), [], done.rows
    while rows is not None:
        rows, own = rows
        chunks.append(own)
    chunks.reverse()
    whole: Any = jax.device_put(Rows(*map(np.concatenate, zip(*chunks, strict=True))))
    return Trajectory(
        whole.times,
        whole.q,
        whole.v,
        whole.acceleration,
        whole.multipliers,
        whole.position_error,
        whole.velocity_error,
        whole.reached,
        last.passages,
        last.stopped,
        last.statistics,
        last.result,
        system,
        elastic=integration.formulation.elastic,
    )
