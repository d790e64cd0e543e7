"""Many cases closed side by side: on the branch of the start, and on to the nearest point where
mobility is left.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._custom_types import BoolScalar, IntScalar, Scalar
from .._limits import EXACT
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
from ._search import (
    damping_of,
    distance_of,
    FLOOR,
    geometric_descriptor,
    position_residual,
    Problem,
    scaled_error,
    size_of,
    unit_of,
)


# --------------------------------------------------------------------------------------------------
# A closed configuration on the branch of the start, for many cases side by side.
#
# `_search.py` and `_continuation.py` answer every case; side by side each case waits for the
# slowest one in their three nested loops, and takes part in all that any of them needs. Here every
# turn evaluates one configuration and factors S + mu D once, S = C M^-1 C^T, and its stage decides
# what follows. So a case waits for nobody, and the next one can take its place as soon as it has
# ended. What is left, the way along Phi = 0 to the nearest point, stands below: it needs
# more of each turn, and where the drivers leave no mobility it is one turn. The stages, with the
# decisions and numbers of `_continuation.py` where nothing else is said:
#
# - *aim*: where all is closed but the drivers, the tangent along which they move it;
# - *lead*: the drivers are moved in steps, each predicted by a cubic through the last points and
#   corrected until it is closed but for a part of its length (from a second correction with the
#   same factor on). Where no step can be taken the way is gone once more, with points that are
#   closed better;
# - *close*: Gauss-Newton of minimum norm with the drivers at their values, to rounding: the end of
#   the way, and the first that is tried where the joints are open or no driver has to move. (Where
#   mobility is left, the way ends without, as what follows closes too);
# - *hold*: the joints are closed with the drivers where they are at the start, if the answer of
#   that first closing would not be trusted. The way of the drivers begins there.
#
# Points on the way have to be closed well: with a tenth of a step left, two of 256 positions of a
# Sarrus linkage behind a crossing of branches were on the other one, and so were five of 81 of a
# Bricard linkage next to one; with a hundredth none.
#
# Cases that do not reach such a configuration are left to the search that answers every one: where
# a closing does not end, at the end of a branch or in a singular configuration.
# --------------------------------------------------------------------------------------------------


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
    structure, q = problem.system.structure, problem.q
    rest = jnp.zeros((structure.nv,), q.dtype)
    valid = is_state(structure, q, rest, problem.t)
    residual, closed = _residual_of_start(problem)
    of_joints = jnp.max(jnp.where(structure.driven, 0.0, residual), initial=0.0)
    drivers, rows = drivers_of(problem), _driven_rows(problem)
    return Start(
        valid=valid,
        closed=closed & valid,
        joined=of_joints <= EXACT.closed,
        driven=drivers.driven,
        open=drivers.open[rows],
        led=drivers.led[rows],
    )


def starts_closed(problem: Problem) -> BoolScalar:
    """Is the start closed to rounding?"""
    return _residual_of_start(problem)[1]


def _residual_of_start(problem: Problem) -> tuple[Float[Array, " rows"], BoolScalar]:
    """Scaled, and whether it is rounding."""
    system = problem.system
    gap = jnp.abs(position_residual(system, problem.q, problem.t))
    scaled = gap / system.residual_scale()
    return scaled, jnp.max(scaled, initial=0.0) <= _CLOSED_START


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
    near = found.error <= EXACT.nearly_closed
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
    configuration? Steps along it close the mechanism too."""
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
    settled = near & (found.moved <= EXACT.last_step)
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


# --------------------------------------------------------------------------------------------------
# From a closed configuration, or a nearly closed one where mobility is left, along Phi = 0 to the
# point nearest to the start, for many cases side by side.
#
# As above every turn evaluates one configuration and solves once. The stages:
#
# - *free*: the first such step, and a random motion with it. Where the constraints leave nothing of
#   both there is no mobility, and the point is the answer;
# - *slide*: the step that would lead to the nearest point if Phi were linear, accelerated
#   (`_accelerated`). It closes at the same time; with stronger damping, as what is redundant on
#   Phi = 0 is not next to it;
# - *weigh*: is the answer a minimum of the distance? That motion is taken away from it and must
#   come back by the same steps without acceleration, which it does if no curvature is negative or
#   far from that of the distance. They are a power iteration: it ends where the motion has come
#   back, or where it is an eigenvector that does.
#
# An answer is `sure` where all that held. All other cases are left to the search that answers every
# one: where steps do not end or slide too slowly, and in singular configurations.
# --------------------------------------------------------------------------------------------------


_FREE, _SLIDE, _WEIGH, _END_OF_SLIDE = range(4)

# A start that closes within this (`length_in`) is its own nearest point up to second order, which
# is rounding.
_UNMOVED = 1e-8

# What may be left of the residual at an answer, rows of unit length, relative to `size_of`.
_MET = 1e-11

# By how much an answer may be farther from the start than the first nearly closed point
# (`size_of`), which still moves by its small residual over a small singular value.
_FARTHER = 1e-4

# The length of the motion by which an answer is weighed (`length_in`); the part of it that
# constraints leave where there is no mobility; the part that is left when it has come back, and
# after how many turns.
_AWAY, _LEFT, _BACK, _WEIGHINGS = 1e-4, 1e-4, 1e-3, 16

# What is left at last must have shrunk by this factor in the last turn: a direction of slightly
# negative curvature, along which it grows, is all that is left after some turns.
_SHRINKS = 0.75

# The motion counts as an eigenvector if no more than this part of it turns aside in a turn, and
# comes back if no more than the second part of it is left: one part in a thousand of it may lie
# along a direction of negative curvature, as above.
_ALIKE, _RETURNS = 5e-4, 0.5

# By how much longer than the plain step (squared) the suggested one may be. (With three steps
# remembered those of a robot were 4.7 in place of 4.8, and a case took a tenth longer.)
_LONGER = 25.0

# A step along Phi = 0 of more than this (`size_of`) comes of curvature, and no other will end it.
_ASTRAY = 1.0

# From this error on a step that closes slides as well; by how much its damping is that of a larger
# one.
_SLIDES_FROM, _STRONGER = 1e-3, 10.0

# Turns along Phi = 0 at most.
_SLIDES = 40


class Slide(NamedTuple):
    """One case under way.

    `q`: evaluated next. `answer`: closed, with the `multipliers` of the conditions of the nearest
    point. `distance`: of the first nearly closed point, by `distance_of` as a length (`size_of`).
    `last_step`: the step that was made, and the one without acceleration. `away`: the motion that
    is weighed. `moved`: the last step. `count`: turns of this stage.
    """

    stage: IntScalar
    q: Float[Array, " nq"]
    answer: Float[Array, " nq"]
    multipliers: Float[Array, " rows"]
    distance: Scalar
    last_step: Float[Array, "2 nv"]
    away: Float[Array, " nv"]
    isolated: BoolScalar
    moved: Scalar
    count: IntScalar
    sure: BoolScalar

    @property
    def ended(self) -> Bool[Array, "*lanes"]:
        """Is nothing left to do? (Of a batch: of each.)"""
        return self.stage == _END_OF_SLIDE


class _MeasuredSlide(NamedTuple):
    """Results of the evaluation of a turn. `u` (nv,): the step, of the length `moved` (`size_of`),
    which leads to `q`; `met`: is Phi rounding before it, `near`: is it small? `distance`: from the
    start, as in `Slide`. `away` (nv,): what is left of the motion to be weighed. `multipliers`,
    `steps`, `last_step`: those of the next turn. `unit` (nv,): as of `length_in`."""

    near: BoolScalar
    met: BoolScalar
    distance: Scalar
    u: Float[Array, " nv"]
    moved: Scalar
    q: Float[Array, " nq"]
    away: Float[Array, " nv"]
    multipliers: Float[Array, " rows"]
    last_step: Float[Array, "2 nv"]
    unit: Float[Array, " nv"]


def begin_sliding(problem: Problem, q: Float[Array, " nq"]) -> Slide:
    """A case at a configuration where `turn_closing` has ended."""
    structure, dtype = problem.system.structure, q.dtype
    rest, rows = jnp.zeros((structure.nv,), dtype), jnp.zeros((len(structure.rows),), dtype)
    far = jnp.asarray(jnp.inf, dtype)
    return Slide(
        stage=jnp.asarray(_FREE),
        q=q,
        answer=q,
        multipliers=rows,
        distance=far,
        last_step=jnp.zeros((2, structure.nv), dtype),
        away=rest,
        isolated=jnp.asarray(False),
        moved=far,
        count=jnp.asarray(0),
        sure=jnp.asarray(False),
    )


def turn_sliding(problem: Problem, lane: Slide) -> Slide:
    """The case after its next turn. Without derivative; there has to be a geometric row."""
    free, slide, weigh = (lane.stage == k for k in (_FREE, _SLIDE, _WEIGH))
    found = _measured_slide(problem, lane)
    unknown = jnp.isinf(lane.distance) & found.near
    distance = jnp.where(unknown, found.distance, lane.distance)
    isolated = jnp.where(free, length_in(found.unit, found.u) <= _LEFT * _AWAY, lane.isolated)
    gone = length_in(found.unit, problem.system.difference(problem.q, lane.q))
    at_once = free & found.met & (isolated | (gone <= _UNMOVED))

    closed = slide & found.met & is_last(found.moved, lane.moved, order=1)
    # A step that was too bold may have led to another minimum, farther away.
    met = found.distance <= distance + _FARTHER
    astray = (found.near & (found.moved > _ASTRAY)) | ~jnp.isfinite(found.moved)
    stuck = ((free | slide) & astray) | (slide & (lane.count + 1 >= _SLIDES))
    back = weigh & _has_come_back(lane, found)
    sure = at_once | (closed & met & isolated) | back
    given_up = (weigh & (lane.count + 1 >= _WEIGHINGS)) | (closed & ~met) | (stuck & ~closed)

    stage = jnp.where(free, _SLIDE, jnp.where(closed, _WEIGH, lane.stage))
    stage = jnp.where(sure | given_up, _END_OF_SLIDE, stage)
    slid = slide | (free & ~at_once)
    q = jnp.where(slid, found.q, lane.q)
    answer = jnp.where(slid, found.q, lane.answer)
    weighed = problem.system.retract(answer, found.away)
    return Slide(
        stage=stage,
        q=jnp.where(stage == _WEIGH, weighed, q),
        answer=answer,
        multipliers=found.multipliers,
        distance=distance,
        last_step=found.last_step,
        away=found.away,
        isolated=isolated,
        moved=jnp.where(slide, found.moved, jnp.inf),
        count=jnp.where(stage == lane.stage, lane.count + 1, 0),
        sure=sure,
    )


def _has_come_back(lane: Slide, found: _MeasuredSlide) -> BoolScalar:
    """Has the motion that is weighed come back, or is it one that does, an eigenvector?"""
    before, after = lane.away / found.unit, found.away / found.unit
    size, left = jnp.sqrt(jnp.mean(before**2)), jnp.sqrt(jnp.mean(after**2))
    back = (left <= _BACK * _AWAY) & (left <= _SHRINKS * size)
    part = jnp.mean(before * after) / jnp.where(size > 0, size, 1.0) ** 2
    off = jnp.sqrt(jnp.mean((after - part * before) ** 2))
    return back | ((off <= _ALIKE * size) & (jnp.abs(part) <= _RETURNS))


def _measured_slide(problem: Problem, lane: Slide) -> _MeasuredSlide:
    free, slide, weigh = (lane.stage == k for k in (_FREE, _SLIDE, _WEIGH))
    system, t, size, unit = problem.system, problem.t, size_of(problem), unit_of(problem)
    descriptor = geometric_descriptor(system, lane.q, t)
    gap = position_residual(system, lane.q, t)
    error = scaled_error(descriptor, gap, size)
    near = error <= EXACT.nearly_closed
    slides = (error <= _SLIDES_FROM) & slide
    closed = jnp.max(jnp.abs(gap) / system.residual_scale(), initial=0.0) <= EXACT.closed

    # The gradient of the distance along Phi = 0 (of its Lagrangian), as a motion downhill.
    rest = jnp.zeros((system.structure.nv,), lane.q.dtype)
    distance, slope = jax.value_and_grad(lambda u: distance_of(problem, system.retract(lane.q, u)))(
        rest
    )
    slope = slope + descriptor.apply_CT(lane.multipliers)
    downhill = descriptor.inverse_mass(jnp.where(slides | free | weigh, slope, 0.0))
    normal = np.random.default_rng(0).normal(size=system.structure.nv)
    probe = jnp.where(free, unit * (_AWAY * normal), 0.0)
    right = gap + descriptor.apply_C(probe - downhill)
    mu = jnp.where(weigh, FLOOR, damping_of(jnp.where(slide, _STRONGER, 1.0) * error))
    added, back = descriptor.damped_inverse(mu)(right)
    u = probe - back - downhill
    step = _accelerated(lane, u, unit, slides)
    return _MeasuredSlide(
        near=near,
        met=(error <= _MET) & closed,
        distance=jnp.sqrt(2 * distance) / size,
        u=u,
        moved=jnp.sqrt(u @ descriptor.mass(u)) / size,
        q=system.retract(lane.q, step),
        away=jnp.where(weigh, lane.away + u, _AWAY * normal * unit),
        multipliers=lane.multipliers + jnp.where(slides | weigh, added, 0.0),
        last_step=jnp.where(slides, jnp.stack([step, u]), 0.0),
        unit=unit,
    )


def _accelerated(
    lane: Slide, u: Float[Array, " nv"], unit: Float[Array, " nv"], slides: BoolScalar
) -> Float[Array, " nv"]:
    """The step that the last one suggests in the place of u: Anderson's method with one step
    remembered (Walker & Ni 2011, SIAM Journal on Numerical Analysis 49, eqs. 2.1-2.2, m = 1), by
    what it changed u, and where it led with that."""
    step, before = lane.last_step
    change = (u - before) / unit
    size = change @ change
    usable = slides & jnp.any(before != 0) & (size > 0)
    part = jnp.where(usable, change @ (u / unit) / jnp.where(usable, size, 1.0), 0.0)
    advance = u - part * (step + u - before)
    length = jnp.mean((advance / unit) ** 2)
    far = (length > _LONGER * jnp.mean((u / unit) ** 2)) | (length > _ASTRAY**2)
    return jnp.where(far, u, advance)
