"""Assembly where the driver travel is too large for one search to be reliable.

A start that is closed except for its drivers lies on a branch of configurations: those to which the
drivers move it without a jump. The nearest closed configuration that a search finds from afar may
belong to another branch, or none is found at all. Then the drivers are moved by continuation: with
r0 the residual of their rows at the start,

    Phi(q, t) - (1 - s) r0 = 0,    s from 0 to 1,

by a prediction and a search that only closes (Allgower & Georg 1990, Numerical Continuation
Methods, section 6.1). Only the residual Phi is continued; a driver is never evaluated at another
time.

- **Prediction.** A parabola through the last points; the tangent in the first step. So a
  configuration in which branches cross is passed straight on: none of its derivatives is needed
  there.
- **Steps.** One is taken if closing moves the prediction by little against the step, so that no
  step jumps; the next one is as long as that allows. Where none can be taken the branch has ended
  (a dead point), or cannot be followed any further.
- **Rank.** Between two points a and b the signed singular values of C that tend to zero follow from
  C_a^+ C_b: near 1 along a step, an eigenvalue is the ratio of the signed values of b and a,
  negative where one has passed zero in between. So 1 - C_a^+ C_b shrinks every motion unless the
  rank has changed; a power iteration decides, by the same solve that all steps take.
- **Trust.** The answer of a search is taken without a question where it is near, or where its
  steps have become shorter from the first one on. Otherwise the tangents at both ends are compared:
  on one branch their mean is the chord (the trapezoidal rule, whose error is of third order).
  Of 4000 prescribed positions of Bricard linkages that let pass 33 of 100 answers on the branch
  and none of 680 on others. Tangents cannot distinguish a branch that has just been crossed.

Each of these is a task of the one loop of `_search.py`, inside of a loop over tasks that has one
turn where the first search is trusted.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, IntScalar, Scalar
from .._limits import EXACT
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem
from ._search import nearest_task, Point, position_residual, Problem, search, Task, unit_of


# An answer is near where the bodies have moved by this much, in characteristic lengths and
# radians (root mean square).
NEAR = 0.05

# A chord may differ from the mean of the tangents at its ends by this part, and the steps of a
# search between them may grow by this factor.
TANGENT, GROWTH = 0.05, 2.0

# A start lies on a branch if to close its joints moves it by less than this part of what the
# drivers do.
ON_BRANCH = 0.01

# Closing may move a prediction by this part of the step; steps are chosen for the second number.
# No step moves the bodies by more than the third (as above), nor closes in more than the fourth.
CORRECTED, AIMED_AT, LONGEST, CORRECTIONS = 0.2, 0.05, 0.4, 8

# The smallest step, of the whole way of the drivers, and tasks at most.
LEAST, _TASKS = 1e-7, 4000

# The power iteration that compares two points: it ends where this part of a random motion is left,
# or after so many turns. A signed singular value that falls below the third, against what it was,
# counts as zero.
_LEFT, _TURNS, _ZERO = 0.05, 12, 0.02

# Stages, in the order of the functions that come after a look (`after`).
_DIRECT, _HOLD, _AIM, _CHECK, _LEAD, _COMPARE, _SETTLE, _END = range(8)


class Continuation(NamedTuple):
    """The path to an answer. `closed`, `nearest`: properties of the answer; `continued`: by
    continuation of the drivers; `ended`: they could not be moved further than the part `reached` of
    their travel; `rank_changed`: a singular configuration was met or passed on it."""

    nearest: BoolScalar
    continued: BoolScalar
    ended: BoolScalar
    rank_changed: BoolScalar
    reached: Scalar


class _State(NamedTuple):
    """State of the loop over tasks.

    `q`, `multipliers`, `nearest`: the answer, `growth`: of the steps of its search. `here`: the
    last point of the branch, at `s`, `before`: the one before; `slope` (nv,): of the chord between
    them (initially the tangent), `bend` (nv,): half the second derivative, `last`: the step between
    them; `step`: the next one. `probe` (nv,): a motion by which two points are compared, after
    `turns`, of the length `first` at first; `backwards`: the other way round.
    """

    stage: IntScalar
    q: Float[Array, " nq"]
    multipliers: Float[Array, " rows"]
    growth: Scalar
    here: Float[Array, " nq"]
    before: Float[Array, " nq"]
    slope: Float[Array, " nv"]
    bend: Float[Array, " nv"]
    s: Scalar
    last: Scalar
    step: Scalar
    probe: Float[Array, " nv"]
    first: Scalar
    turns: IntScalar
    backwards: BoolScalar
    way: Continuation
    count: IntScalar

    @property
    def predicted(self) -> tuple[Scalar, Float[Array, " nv"]]:
        """The next s, and the step to the point there."""
        return predicted_step(self.s, self.last, self.step, self.slope, self.bend)


class Drivers(NamedTuple):
    """Data known beforehand, in the rows of drivers and zero in the others. `open` (rows,): Phi;
    `led` (rows,): the same with the turns to be followed; `turns` (rows,): a full turn where a
    driver's coordinate is an angle. `unit` (nv,): a motion of all bodies by one characteristic
    length or one radian, in which motions are measured; `driven`: is there a driver to follow?"""

    open: Float[Array, " rows"]
    led: Float[Array, " rows"]
    turns: Float[Array, " rows"]
    unit: Float[Array, " nv"]
    driven: BoolScalar


def find(
    problem: Problem, max_steps: int
) -> tuple[Float[Array, " nq"], Float[Array, " rows"], Continuation]:
    """The answer, its multipliers, and the way to it; the closed or last configuration met where
    there is none. Without derivative; there has to be a geometric row."""
    problem = stop_gradient(problem)
    no, one = jnp.asarray(False), jnp.ones((), problem.q.dtype)
    if not problem.system.structure.driven.any():
        point = search(problem, nearest_task(problem, max_steps), problem.q)
        return *_answer(point), Continuation(point.nearest, no, no, no, one)
    start = drivers_of(problem)
    q, nothing, none = problem.q, jnp.zeros_like(start.open), jnp.zeros_like(one)
    rest, zero = jnp.zeros((problem.system.structure.nv,), q.dtype), jnp.asarray(0)
    way = Continuation(no, no, no, no, one)
    state = _State(
        zero, q, nothing, none, q, q, rest, rest, none, none, one, rest, one, zero, no, way, zero
    )

    def turn(state: _State) -> _State:
        task, begin = _task(problem, start, state, max_steps)
        point = search(problem, task, begin)
        after = [
            lambda s, p, stage=stage: stage(problem, start, s, p)
            for stage in (_direct, _hold, _aim, _check, _lead, _compare, _settle)
        ]
        new = lax.switch(state.stage, after, state, point)
        return new._replace(count=state.count + 1)

    end = lax.while_loop(lambda s: (s.stage != _END) & (s.count < _TASKS), turn, state)
    return end.q, end.multipliers, end.way


def _answer(point: Point) -> tuple[Float[Array, " nq"], Float[Array, " rows"]]:
    closed = jnp.where(point.closed, point.kept, point.q)
    multipliers = jnp.where(point.nearest, point.multipliers, 0.0)
    return jnp.where(point.nearest, point.q, closed), multipliers


def driver_way(system: AbstractSystem, q: Float[Array, " nq"], t: Scalar) -> Float[Array, " rows"]:
    """Distance that drivers are moved to zero (m or rad): the residual of their rows, with turns.

    Where a configuration does not count turns, a driver moves towards its value from the angle of
    the start, without whole turns; up to a quarter turn in the shorter direction."""
    excess, now, wanted = system.driver_readings(q, t)
    full, whole = 2 * np.pi, now - wanted
    angles = system.structure.angle_rows
    short = (jnp.abs(excess) <= np.pi / 2) | ~angles | (jnp.abs(excess) > np.pi)
    return jnp.where(short, excess, whole - full * jnp.trunc(whole / full))


def drivers_of(problem: Problem) -> Drivers:
    system, structure = problem.system, problem.system.structure
    excess = system.driver_readings(problem.q, problem.t)[0]
    unit = unit_of(problem)
    scaled = jnp.abs(excess) / system.residual_scale()
    angles = structure.driven & structure.angle_rows
    turns = jnp.asarray(np.where(angles, 2 * np.pi, 0.0), excess.dtype)
    led = driver_way(system, problem.q, problem.t)
    return Drivers(excess, led, turns, unit, jnp.max(scaled) > EXACT.closed)


def _task(
    problem: Problem, start: Drivers, state: _State, max_steps: int
) -> tuple[Task, Float[Array, " nq"]]:
    """The next task of the loop, and its starting configuration."""
    system, stage = problem.system, state.stage
    closing = (stage == _HOLD) | (stage == _LEAD)
    solving = (stage == _AIM) | (stage == _CHECK) | (stage == _COMPARE)
    s, predicted = state.predicted
    begin = jnp.where(stage == _DIRECT, problem.q, state.here)
    begin = jnp.where(stage == _HOLD, problem.q, begin)
    begin = jnp.where(stage == _CHECK, state.q, begin)
    # Two points are compared by the pseudoinverse at the earlier one.
    pair = state.before, state.here
    at, other = (jnp.where(state.backwards, pair[1 - k], pair[k]) for k in (0, 1))
    begin = jnp.where(stage == _COMPARE, at, begin)
    begin = jnp.where(stage == _LEAD, system.retract(state.here, predicted), begin)

    def along(q: Float[Array, " nq"]) -> Float[Array, " rows"]:
        def gap(u: Float[Array, " nv"]) -> Float[Array, " rows"]:
            return position_residual(system, system.retract(q, u), problem.t)

        return jax.jvp(gap, (jnp.zeros_like(state.probe),), (state.probe,))[1]

    rates = jax.vmap(along)(jnp.stack([at, other]))
    # Initially random rates of all rows, which mostly excite the nearly singular directions.
    rate = jnp.where(state.turns == 0, _random_rates(problem), rates[0] - rates[1])
    rate = jnp.where(stage == _COMPARE, rate, -start.led)
    held = jnp.where(stage == _LEAD, (1 - s) * start.led, start.open)
    steps = jnp.where(stage == _LEAD, CORRECTIONS, 2 * max_steps)
    # In a batch, who has ended still goes through the turns of the others: without a step.
    steps = jnp.where(stage == _END, 0, steps)
    task = Task(
        jnp.where(closing, held, 0.0),
        jnp.where(closing, start.turns, 0.0),
        rate,
        closing,
        solving,
        steps,
    )
    return task, begin


def predicted_step(
    s: Scalar, last: Scalar, step: Scalar, slope: Float[Array, " nv"], bend: Float[Array, " nv"]
) -> tuple[Scalar, Float[Array, " nv"]]:
    """The next s, and the step to the point there, by the parabola through the last points; numbers
    of `_State`."""
    length = jnp.minimum(step, 1 - s)
    end = jnp.where(step >= 1 - s, 1.0, s + length)
    return end, length * (slope + (last + length) * bend)


def _random_rates(problem: Problem) -> Float[Array, " rows"]:
    """Random rates of the geometric rows, always the same."""
    system, structure = problem.system, problem.system.structure
    normal = np.random.default_rng(0).normal(size=len(structure.rows)) * structure.geometric
    return jnp.asarray(normal) * system.residual_scale()


def length_of(start: Drivers, u: Float[Array, " nv"]) -> Scalar:
    """Length of a motion: the root mean square over the velocities."""
    return jnp.sqrt(jnp.mean((u / start.unit) ** 2))


def _to(state: _State, stage: IntScalar | int) -> _State:
    return state._replace(stage=jnp.asarray(stage))


# ---------------------------------------------------------------------------------------------
# What follows from each stage
# ---------------------------------------------------------------------------------------------


def _direct(problem: Problem, start: Drivers, state: _State, point: Point) -> _State:
    """Is the answer of the search trusted?"""
    q, multipliers = _answer(point)
    far = length_of(start, problem.system.difference(problem.q, q)) > NEAR
    asked = start.driven & (far & (point.growth >= 1) | ~point.nearest)
    way = state.way._replace(nearest=point.nearest)
    state = state._replace(q=q, multipliers=multipliers, growth=point.growth, way=way)
    return _to(state, jnp.where(asked, _HOLD, _END))


def _hold(problem: Problem, start: Drivers, state: _State, point: Point) -> _State:
    """The joints are closed, and drivers keep their values. A start whose joints were open
    lies on no branch: there the nearest is the answer if it is known."""
    system = problem.system
    opened = length_of(start, system.difference(problem.q, point.q))
    far = length_of(start, system.difference(problem.q, state.q))
    known = state.way.nearest & (opened > ON_BRANCH * far)
    state = state._replace(here=point.q, before=point.q)
    return _to(state, jnp.where(point.closed & ~known, _AIM, _END))


def _aim(problem: Problem, start: Drivers, state: _State, point: Point) -> _State:
    """The tangent at the start of the branch."""
    del problem
    step = jnp.minimum(1.0, 0.5 * LONGEST / length_of(start, point.u))
    # A search that went the shorter way round has not gone this one.
    same = jnp.all(jnp.abs(start.led - start.open) <= 1)
    check = state.way.nearest & same & (state.growth < GROWTH)
    return _to(state._replace(slope=point.u, step=step), jnp.where(check, _CHECK, _LEAD))


def _check(problem: Problem, start: Drivers, state: _State, point: Point) -> _State:
    """The tangent at the answer of the search: is it on the branch?"""
    chord = problem.system.difference(state.here, state.q)
    off = length_of(start, chord - (state.slope + point.u) / 2)
    return _to(state, jnp.where(off <= TANGENT * length_of(start, chord), _END, _LEAD))


def _lead(problem: Problem, start: Drivers, state: _State, point: Point) -> _State:
    """The prediction was closed, or not."""
    s, predicted = state.predicted
    step = s - state.s
    gone = problem.system.difference(state.here, point.q)
    slope = gone / step
    off = length_of(start, gone - predicted) / length_of(start, predicted)
    taken = point.closed & (off <= CORRECTED)
    factor = jnp.clip(jnp.sqrt(AIMED_AT / jnp.maximum(off, 1e-3)), 0.5, 2.0)
    longer = jnp.minimum(factor * step, LONGEST / jnp.maximum(length_of(start, slope), 1e-9))
    # An answer of the search is as good where the start cannot be left.
    stopped = ~taken & (step / 2 < LEAST)
    ended = stopped & (state.s > 0)
    way = state.way._replace(
        nearest=state.way.nearest & ~ended,
        continued=ended,
        ended=ended,
        reached=jnp.where(ended, state.s, 1.0),
    )

    def if_taken(new: Array, old: Array) -> Array:
        return jnp.where(taken, new, old)

    return state._replace(
        stage=jnp.where(taken, _COMPARE, jnp.where(stopped, _END, _LEAD)),
        q=jnp.where(ended, state.here, state.q),
        here=if_taken(point.q, state.here),
        before=if_taken(state.here, state.before),
        slope=if_taken(slope, state.slope),
        bend=if_taken((slope - state.slope) / (step + state.last), state.bend),
        s=if_taken(s, state.s),
        last=if_taken(step, state.last),
        step=if_taken(longer, step / 2),
        turns=jnp.asarray(0),
        # Where the start itself is singular, only a later point can decide.
        backwards=state.s == 0,
        way=way,
    )


def _compare(problem: Problem, start: Drivers, state: _State, point: Point) -> _State:
    """One more turn of the power iteration."""
    del problem
    first = jnp.where(state.turns == 0, length_of(start, point.u), state.first)
    size, before = length_of(start, point.u), length_of(start, state.probe)
    product = jnp.mean(point.u * state.probe / start.unit**2)
    small = size <= _LEFT * first
    done = small | (state.turns >= _TURNS)
    changed = done & ~small & (product > (1 - _ZERO) * before**2)
    back = done & state.backwards
    way = state.way._replace(rank_changed=state.way.rank_changed | changed)
    further = jnp.where(state.s >= 1, _SETTLE, _LEAD)
    return state._replace(
        stage=jnp.where(done & ~back, further, _COMPARE),
        probe=point.u,
        first=first,
        turns=jnp.where(done, 0, state.turns + 1),
        backwards=state.backwards & ~done,
        way=way,
    )


def _settle(problem: Problem, start: Drivers, state: _State, point: Point) -> _State:
    """End of the continuation, or of the search for the nearest configuration from there."""
    del problem, start
    q, multipliers = _answer(point)
    way = state.way._replace(nearest=point.nearest, continued=jnp.asarray(True))
    return _to(state, _END)._replace(q=q, multipliers=multipliers, way=way)
