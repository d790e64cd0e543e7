"""A closed configuration on the branch of the start, for many cases side by side.

`_search.py` and `_continuation.py` answer every case; side by side each case waits for the slowest
one in their three nested loops, and takes part in all that any of them needs. Here every turn
evaluates one configuration and factors S + mu D once, S = C M^-1 C^T, and its stage decides what
follows. So a case waits for nobody, and the next one can take its place as soon as it has
ended. What is left, the way along Phi = 0 to the nearest point, is in `_sliding.py`: it needs more
of each turn, and where the drivers leave no mobility it is one turn. The stages, with the decisions
and numbers of `_continuation.py` where nothing else is said:

- *aim*: where all is closed but the drivers, the tangent along which they move it;
- *lead*: the drivers are moved in steps, each predicted by a cubic through the last points and
  corrected until it is closed but for a part of its length (from a second correction with the same
  factor on). Where no step can be taken the way is gone once more, with points that are closed
  better;
- *close*: Gauss-Newton of minimum norm with the drivers at their values, to rounding: the end of
  the way, and the first that is tried where the joints are open or no driver has to move. (Where
  mobility is left, the way ends without, as what follows closes too);
- *hold*: the joints are closed with the drivers where they are at the start, if the answer of that
  first closing would not be trusted. The way of the drivers begins there.

Points on the way have to be closed well: with a tenth of a step left, two of 256 positions of a
Sarrus linkage behind a crossing of branches were on the other one, and so were five of 81 of a
Bricard linkage next to one; with a hundredth none.

Cases that do not reach such a configuration are left to the search that answers every one: where a
closing does not end, at the end of a branch or in a singular configuration.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._custom_types import BoolScalar, IntScalar, Scalar
from .._system import AbstractSystem, is_state
from ._continuation import (
    AIMED_AT,
    CORRECTED,
    CORRECTIONS,
    drivers_of,
    LEAST,
    LONGEST,
    NEAR,
    ON_BRANCH,
    predicted_step,
)
from ._geometric_rows import geometric_descriptor, position_residual
from ._search import (
    CLOSED,
    damping_of,
    FLOOR,
    NEARLY_CLOSED,
    Problem,
    scaled_error,
    SETTLED,
    size_of,
    unit_of,
)


_AIM, _LEAD, _CLOSE, _HOLD, _END = range(5)

# Steps end below the first number, or where two are below the second and no longer shrink, in the
# lengths of `size_of`; or where the next one, by the order of their convergence, would be below the
# third.
_LAST, _ROUNDING, _NEXT = 1e-13, 1e-10, 1e-14

# A start is closed to rounding if its scaled residual is at most this: that of quaternions and
# points of a few characteristic lengths.
_CLOSED_START = 1e-14

# On the way of the drivers, the last correction of a point at most, as a part of the step: the next
# one would be its square. A way that ends so is gone once more, carefully: next to a singular
# configuration points have to be closed well.
_FOLLOWED, _CAREFULLY = 0.01, 0.001

# Turns of one stage, and in all.
_CLOSINGS, _TURNS = 40, 400


class Start(NamedTuple):
    """Properties of a case's start: is it a `valid` state, is it `closed` to
    rounding, are the joints closed (`joined`), has a driver to move (`driven`)? `open`, `led`
    (drivers,): as of `Drivers`, in the rows of drivers alone."""

    valid: BoolScalar
    closed: BoolScalar
    joined: BoolScalar
    driven: BoolScalar
    open: Float[Array, " drivers"]
    led: Float[Array, " drivers"]


class Lane(NamedTuple):
    """One case under way.

    `q`: evaluated next. `answer`: where a closing ended, at the distance `far` from the start
    (`length_of`), and is there one (`known`)? At the end it is the result if it is `reached`.
    `here` to `step`: as of `_continuation._State`, with one difference more: `twist` (nv,), a sixth
    of the third derivative, and `before`, the step before the last. `careful`: does the way of the
    drivers take more corrections? `moved`, `growth`: the last step of a closing, and the largest
    ratio of two. `count`: turns of this stage; `turns`: all.
    """

    stage: IntScalar
    q: Float[Array, " nq"]
    answer: Float[Array, " nq"]
    far: Scalar
    known: BoolScalar
    reached: BoolScalar
    careful: BoolScalar
    here: Float[Array, " nq"]
    slope: Float[Array, " nv"]
    bend: Float[Array, " nv"]
    twist: Float[Array, " nv"]
    s: Scalar
    last: Scalar
    before: Scalar
    step: Scalar
    moved: Scalar
    growth: Scalar
    count: IntScalar
    turns: IntScalar

    @property
    def ended(self) -> Bool[Array, "*lanes"]:
        """Is nothing left to do? (Of a batch: of each.)"""
        return self.stage == _END

    @property
    def predicted(self) -> tuple[Scalar, Float[Array, " nv"]]:
        """The next s on the way of the drivers, and the step to the point there. What is left of
        the way is divided evenly: points are closed roughly, and that is little against steps of
        one size only."""
        left = 1 - self.s
        even = left / jnp.ceil(left / self.step)
        bend = self.bend + (even + self.last + self.before) * self.twist
        return predicted_step(self.s, self.last, even, self.slope, bend)


class _Measured(NamedTuple):
    """Results of the evaluation of a turn. `u` (nv,): the first step; `last` (nv,), of the length
    `moved` (`size_of`): the last one, which leads to `q`; `error`: of Phi before that. `chord`
    (nv,), of the length `gone`: from the start, or from `here`, to there. `unit` (nv,): as of
    `Drivers`."""

    error: Scalar
    u: Float[Array, " nv"]
    last: Float[Array, " nv"]
    moved: Scalar
    q: Float[Array, " nq"]
    chord: Float[Array, " nv"]
    gone: Scalar
    unit: Float[Array, " nv"]


class _Followed(NamedTuple):
    """A step of the drivers by the `length`, to `s`: was it `judged` at all, was it `taken`, is it
    too small to be halved (`stopped`)? `rate` (nv,): of the chord, `again`: the next step."""

    length: Scalar
    s: Scalar
    rate: Float[Array, " nv"]
    judged: BoolScalar
    taken: BoolScalar
    stopped: BoolScalar
    again: Scalar


def look_at_start(problem: Problem) -> Start:
    """The start of a case, looked at once before its turns."""
    system, structure, q, t = problem.system, problem.system.structure, problem.q, problem.t
    rest = jnp.zeros((structure.nv,), q.dtype)
    valid = is_state(structure, q, rest, t)
    residual = jnp.abs(position_residual(system, q, t)) / system.residual_scale()
    closed = jnp.max(residual, initial=0.0) <= _CLOSED_START
    of_joints = jnp.max(jnp.where(structure.driven, 0.0, residual), initial=0.0)
    drivers, rows = drivers_of(problem), _driven_rows(problem)
    return Start(
        valid=valid,
        closed=closed & valid,
        joined=of_joints <= CLOSED,
        driven=drivers.driven,
        open=drivers.open[rows],
        led=drivers.led[rows],
    )


def begin_closing(problem: Problem, start: Start) -> Lane:
    """A case at its start; at its end, where that is not a valid state."""
    q, structure, dtype = problem.q, problem.system.structure, problem.q.dtype
    rest = jnp.zeros((structure.nv,), dtype)
    zero, one, far = (jnp.asarray(x, dtype) for x in (0.0, 1.0, jnp.inf))
    none, no = jnp.asarray(0), jnp.asarray(False)
    first = jnp.where(start.driven & start.joined, _AIM, _CLOSE)
    return Lane(
        stage=jnp.where(start.valid, first, _END),
        q=q,
        answer=q,
        far=zero,
        known=no,
        reached=no,
        careful=no,
        here=q,
        slope=rest,
        bend=rest,
        twist=rest,
        s=zero,
        last=zero,
        before=zero,
        step=one,
        moved=far,
        growth=zero,
        count=none,
        turns=none,
    )


def turn_closing(problem: Problem, start: Start, lane: Lane) -> Lane:
    """The case after its next turn. Without derivative; there has to be a geometric row."""
    aim, lead, close = (lane.stage == k for k in (_AIM, _LEAD, _CLOSE))
    found = _measured(problem, start, lane)
    followed = _followed(lane, found)
    taken = followed.taken
    near = found.error <= NEARLY_CLOSED
    growing = jnp.maximum(lane.growth, found.moved / lane.moved)
    growth = jnp.where(close & ~near, growing, lane.growth)
    closed = near & is_last(found.moved, lane.moved, order=2)

    stage, reached = _next_stage(problem, start, lane, found, followed, (growth, near, closed))
    stays = stage == lane.stage
    arrived = lead & (stage == _CLOSE)
    answered = (close & closed) | (lead & reached)
    first = jnp.minimum(1.0, 0.5 * LONGEST / length_in(found.unit, found.u))

    def if_taken(new: Array, old: Array) -> Array:
        return jnp.where(taken, new, old)

    # Divided differences.
    two = followed.length + lane.last
    bend = (followed.rate - lane.slope) / two
    twist = (bend - lane.bend) / (two + lane.before)
    here = jnp.where(taken | ((lane.stage == _HOLD) & (stage == _AIM)), found.q, lane.here)
    again = lead & ((stage == _AIM) | (stage == _HOLD))
    new = lane._replace(
        stage=stage,
        q=found.q,
        answer=jnp.where(answered, found.q, lane.answer),
        far=jnp.where(answered, found.gone, lane.far),
        known=lane.known | answered,
        reached=reached,
        careful=lane.careful | again,
        here=jnp.where(again, problem.q, here),
        slope=jnp.where(aim, found.u, if_taken(followed.rate, lane.slope)),
        bend=jnp.where(again, 0.0, if_taken(bend, lane.bend)),
        twist=jnp.where(again, 0.0, if_taken(jnp.where(lane.last > 0, twist, 0.0), lane.twist)),
        s=jnp.where(again, 0.0, if_taken(followed.s, lane.s)),
        last=jnp.where(again, 0.0, if_taken(followed.length, lane.last)),
        before=jnp.where(again, 0.0, if_taken(lane.last, lane.before)),
        step=jnp.where(aim, first, jnp.where(followed.judged, followed.again, lane.step)),
        moved=jnp.where(stays | arrived, found.moved, jnp.inf),
        growth=growth,
        count=jnp.where(stays & ~followed.judged, lane.count + 1, 0),
        turns=lane.turns + 1,
    )
    return new._replace(q=_next_place(problem, lane, new, followed.judged))


def is_last(moved: Scalar, before: Scalar, order: int) -> BoolScalar:
    """Is what is left after a step of this length rounding? `order`: of convergence."""
    shrinks = moved <= 0.5 * before
    rounding = (jnp.maximum(moved, before) <= _ROUNDING) & ~shrinks
    ratio = jnp.where(jnp.isfinite(before), moved / before, 1.0)
    return (moved <= _LAST) | rounding | (shrinks & (moved * ratio**order <= _NEXT))


def _stays_mobile(system: AbstractSystem) -> bool:
    """Are there fewer geometric rows than velocities, so that mobility is left in every
    configuration? Steps along it close the mechanism too (`_sliding.py`)."""
    return int(np.count_nonzero(system.structure.geometric)) < system.structure.nv


def _next_stage(
    problem: Problem,
    start: Start,
    lane: Lane,
    found: _Measured,
    followed: _Followed,
    closing: tuple[Scalar, BoolScalar, BoolScalar],
) -> tuple[IntScalar, BoolScalar]:
    """The stage after this turn, and whether the case is `reached`; `closing`: the growth of steps,
    and whether this closing is near its end, and at it."""
    growth, near, closed = closing
    stuck = (lane.count + 1 >= _CLOSINGS) | ~jnp.isfinite(found.moved)
    # The end of the way of the drivers, or a first closing: only the latter has to be trusted.
    on_branch = lane.s >= 1
    trusted = on_branch | ~start.driven | (found.gone <= NEAR) | (growth < 1)
    hopeless = stuck & (on_branch | ~start.driven | near)
    after_close = jnp.where(closed, jnp.where(trusted, _END, _HOLD), _CLOSE)
    after_close = jnp.where(stuck & ~closed, jnp.where(hopeless, _END, _HOLD), after_close)
    # A start whose joints were open lies on no branch: there the nearest is the answer if it is
    # known.
    settled = near & (found.moved <= SETTLED)
    alone = lane.known & (found.gone > ON_BRANCH * lane.far)
    after_hold = jnp.where(settled, jnp.where(alone, _END, _AIM), jnp.where(stuck, _END, _HOLD))
    arrived = followed.taken & (followed.s >= 1)
    once_more = jnp.where(start.joined, _AIM, _HOLD)
    given_up = jnp.where(lane.careful, _END, once_more)
    there = _END if _stays_mobile(problem.system) else _CLOSE
    after_lead = jnp.where(arrived, there, jnp.where(followed.stopped, given_up, _LEAD))
    # In the order of the stages.
    after = jnp.asarray(_LEAD), after_lead, after_close, after_hold
    stage = jnp.asarray(_END)
    for k, then in enumerate(after):
        stage = jnp.where(lane.stage == k, then, stage)
    reached = (lane.stage == _CLOSE) & closed & trusted
    reached = reached | ((lane.stage == _HOLD) & settled & alone) | (arrived & (there == _END))
    return jnp.where(lane.turns + 1 >= _TURNS, _END, stage), reached


def _driven_rows(problem: Problem) -> np.ndarray:
    return np.flatnonzero(problem.system.structure.driven)


def length_in(unit: Float[Array, " nv"], u: Float[Array, " nv"]) -> Scalar:
    """Length of a motion: the root mean square over the velocities, as `length_of`."""
    return jnp.sqrt(jnp.mean((u / unit) ** 2))


def _measured(problem: Problem, start: Start, lane: Lane) -> _Measured:
    system, t, size, unit = problem.system, problem.t, size_of(problem), unit_of(problem)
    structure, rows = system.structure, _driven_rows(problem)
    aim, lead, hold = (lane.stage == k for k in (_AIM, _LEAD, _HOLD))
    descriptor = geometric_descriptor(system, lane.q, t)
    led = (1 - lane.predicted[0]) * start.led
    held = jnp.where(hold, start.open, jnp.where(lead, led, 0.0))
    whole = np.where(structure.angle_rows[rows], 2 * np.pi, np.inf)

    def gap_at(q: Float[Array, " nq"]) -> Float[Array, " rows"]:
        residual = position_residual(system, q, t)
        gap = residual[rows] - held
        # Turns count only where drivers are on their way.
        turned = jnp.where(hold | lead, np.where(np.isfinite(whole), whole, 0.0), 0.0)
        return residual.at[rows].set(gap - turned * jnp.round(gap / whole))

    gap = gap_at(lane.q)
    before = scaled_error(descriptor, gap, size)
    inverse = descriptor.damped_inverse(jnp.where(aim, FLOOR, damping_of(before)))
    right = jnp.where(aim, jnp.zeros_like(gap).at[rows].set(start.led), gap)
    u = -inverse(right)[1]
    q = system.retract(lane.q, u)
    # Close to a solution a second step with the same factor gains most of a turn at half its cost.
    # (From afar it leads elsewhere.)
    twice = lead | (lane.s >= 1)
    gap = gap_at(q)
    second = jnp.where(twice, -inverse(gap)[1], 0.0)
    q = system.retract(q, second)
    last = jnp.where(twice, second, u)
    chord = system.difference(jnp.where(lead, lane.here, problem.q), q)
    return _Measured(
        error=jnp.where(twice, scaled_error(descriptor, gap, size), before),
        u=u,
        last=last,
        moved=jnp.sqrt(last @ descriptor.mass(last)) / size,
        q=q,
        chord=chord,
        gone=length_in(unit, chord),
        unit=unit,
    )


def _followed(lane: Lane, found: _Measured) -> _Followed:
    """As of `_continuation._lead`, but points on the way are closed up to `_FOLLOWED` only."""
    s, predicted = lane.predicted
    length = s - lane.s
    rate = found.chord / length
    whole = length_in(found.unit, predicted)
    off = length_in(found.unit, found.chord - predicted) / whole
    lead, close_by = lane.stage == _LEAD, off <= CORRECTED
    limit = jnp.where(lane.careful, _CAREFULLY, _FOLLOWED)
    near = length_in(found.unit, found.last) <= limit * whole
    grows = (lane.count > 0) & (found.moved > lane.moved)
    failed = (lane.count + 1 >= CORRECTIONS) | ~jnp.isfinite(found.moved) | ~close_by | grows
    taken, judged = lead & near & close_by, lead & (near | failed)
    # The error of a cubic.
    factor = jnp.clip(jnp.cbrt(AIMED_AT / jnp.maximum(off, 1e-3)), 0.5, 2.0)
    longer = jnp.minimum(factor * length, LONGEST / jnp.maximum(length_in(found.unit, rate), 1e-9))
    again = jnp.where(taken, longer, length / 2)
    stopped = judged & ~taken & (length / 2 < LEAST)
    return _Followed(length, s, rate, judged, taken, stopped, again)


def _next_place(problem: Problem, lane: Lane, new: Lane, judged: BoolScalar) -> Float[Array, " nq"]:
    """The configuration that is evaluated next."""
    stage, system = new.stage, problem.system
    changed = stage != lane.stage
    again = (lane.stage == _LEAD) & ((stage == _AIM) | (stage == _HOLD))
    q = jnp.where((changed & (stage == _HOLD)) | again, problem.q, new.q)
    leading = (stage == _LEAD) & (judged | changed)
    return jnp.where(leading, system.retract(new.here, new.predicted[1]), q)
