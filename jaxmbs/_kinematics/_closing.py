"""Assembly of many cases side by side, in turns that cost alike.

`_search.py` and `_continuation.py` answer every case; side by side each case waits for the slowest
one in their three nested loops, and takes part in all that any of them needs. Here every turn
evaluates one configuration and solves once with S + mu D, S = C M^-1 C^T, and what follows is
decided by its stage. So a case waits for nobody, and the next one can take its place as soon as it
has ended. The stages, with the decisions and numbers of `_continuation.py` where nothing else is
said:

- *close*: Gauss-Newton of minimum norm; on Phi = 0 the step along it that would lead to the nearest
  point if Phi were linear, accelerated (`_accelerated`). If the drivers have moved the bodies far
  and a step has grown, continuation starts at once: that answer would not be trusted;
- *hold*: the joints are closed with the drivers where they are at the start, on its branch;
- *aim*, *check*: the tangents at the start and at the answer, compared with the chord;
- *lead*: the drivers are moved in steps, each predicted by a parabola and closed again;
- *settle*: as *close*, from a point on the right branch;
- *free*, *weigh*: is the answer a minimum of the distance? A random motion that the constraints
  leave is taken away from it and must come back by the same steps, which it does if no curvature is
  negative or far from that of the distance. Where nothing is left of it there is no mobility, and
  the answer is an isolated point.

An answer is `sure` where all that held. All other cases are left to the search that answers every
one: where a closing does not end or slides too slowly, at the end of a branch or in a singular
configuration.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._custom_types import BoolScalar, IntScalar, Scalar
from .._system import is_state
from ._continuation import (
    AIMED_AT,
    CORRECTED,
    CORRECTIONS,
    Drivers,
    drivers_of,
    GROWTH,
    LEAST,
    length_of,
    LONGEST,
    NEAR,
    ON_BRANCH,
    predicted_step,
    TANGENT,
)
from ._geometric_rows import geometric_descriptor, position_residual
from ._search import (
    CLOSED,
    damping_of,
    distance_of,
    FLOOR,
    NEARLY_CLOSED,
    Problem,
    scaled_error,
    SETTLED,
    size_of,
)


_CLOSE, _HOLD, _AIM, _CHECK, _LEAD, _SETTLE, _FREE, _WEIGH, _END = range(9)

# Steps end below the first number, or where two are below the second and no longer shrink, in the
# lengths of `size_of`.
_LAST, _ROUNDING = 1e-13, 1e-10

# A start is closed to rounding if its scaled residual is at most this: that of quaternions and
# points of a few characteristic lengths.
_CLOSED_START = 1e-14

# A start that closes within this (`length_of`) is its own nearest point up to second order, which
# is rounding.
_UNMOVED = 1e-8

# What may be left of the residual at an answer, rows of unit length, relative to `size_of`.
_MET = 1e-11

# The last step of a closing on the way of the drivers, and the residual before it, at most: those
# of the next one would be their squares.
_FOLLOWED = 1e-3

# By how much an answer may be farther from the start than the first closed point (`size_of`), which
# still moves by its small residual over a small singular value.
_FARTHER = 1e-4

# The length of the motion by which an answer is weighed (`length_of`); the part of it that
# constraints leave where there is no mobility; the part that is left when it has come back, and
# after how many turns.
_AWAY, _LEFT, _BACK, _WEIGHINGS = 1e-4, 1e-5, 1e-3, 16

# What is left at last must have shrunk by this factor in the last turn: a direction of slightly
# negative curvature, along which it grows, is all that is left after some turns.
_SHRINKS = 0.75

# Steps that are remembered for the acceleration; the part of one (squared) that makes it
# independent of the others; by how much longer than the plain step (squared) the suggested one may
# be.
_REMEMBERED, _INDEPENDENT, _LONGER = 3, 1e-12, 25.0

# A step along Phi = 0 of more than this (`size_of`) comes of curvature, and no other will end it.
_ASTRAY = 1.0

# Turns of one stage, and in all.
_CLOSINGS, _TURNS = 40, 400


class Lane(NamedTuple):
    """One case under way.

    `q`: evaluated next. `answer`: closed, with the drivers at their values, at the distance `far`
    from the start (`length_of`), with the `multipliers` of the conditions of the nearest point;
    `known`: was it found from the start? `distance`: of the first closed point of this search, by
    `distance_of` as a length (`size_of`). `here` to `step`: as of `_continuation._State`. `steps`,
    `last_step`: remembered by `_accelerated`. `away`: the motion that is weighed, of the length
    `first` at first. `moved`, `growth`: the last step of a closing, and the largest ratio of two.
    `count`: turns of this stage; `turns`: all. `joined`: are the joints closed at the start?
    """

    stage: IntScalar
    q: Float[Array, " nq"]
    answer: Float[Array, " nq"]
    far: Scalar
    distance: Scalar
    multipliers: Float[Array, " rows"]
    here: Float[Array, " nq"]
    slope: Float[Array, " nv"]
    bend: Float[Array, " nv"]
    s: Scalar
    last: Scalar
    step: Scalar
    steps: Float[Array, "remembered 2 nv"]
    last_step: Float[Array, "2 nv"]
    away: Float[Array, " nv"]
    first: Scalar
    moved: Scalar
    growth: Scalar
    count: IntScalar
    turns: IntScalar
    joined: BoolScalar
    known: BoolScalar
    sure: BoolScalar

    @property
    def ended(self) -> Bool[Array, "*lanes"]:
        """Is nothing left to do? (Of a batch: of each.)"""
        return self.stage == _END

    @property
    def predicted(self) -> tuple[Scalar, Float[Array, " nv"]]:
        """The next s on the way of the drivers, and the step to the point there."""
        return predicted_step(self.s, self.last, self.step, self.slope, self.bend)


class _At(NamedTuple):
    """The stage, as a flag of each."""

    close: BoolScalar
    hold: BoolScalar
    aim: BoolScalar
    check: BoolScalar
    lead: BoolScalar
    settle: BoolScalar
    free: BoolScalar
    weigh: BoolScalar


class _Measured(NamedTuple):
    """Results of the evaluation of a turn. `u` (nv,): the step, of the length `moved` (`size_of`),
    which leads to `q`; `near`: is Phi small before it? `slides`: also along Phi = 0? `chord` (nv,),
    of the length `gone`: from the start, or from `here`, to there. `probe`: the motion to be
    weighed. `error`, `residual`: of Phi before the step; `distance`: from the start, as in `Lane`.
    `multipliers`, `steps`, `last_step`: those of the next turn.
    """

    drivers: Drivers
    residual: Float[Array, " rows"]
    error: Scalar
    distance: Scalar
    near: BoolScalar
    slides: BoolScalar
    probe: Float[Array, " nv"]
    u: Float[Array, " nv"]
    moved: Scalar
    q: Float[Array, " nq"]
    chord: Float[Array, " nv"]
    gone: Scalar
    multipliers: Float[Array, " rows"]
    steps: Float[Array, "remembered 2 nv"]
    last_step: Float[Array, "2 nv"]


class _Followed(NamedTuple):
    """A step of the drivers by the `length`, to `s`: was it `taken`, was it `judged` at all, is it
    too small to be halved? `rate` (nv,): of the chord, `again`: the next step."""

    length: Scalar
    s: Scalar
    rate: Float[Array, " nv"]
    judged: BoolScalar
    taken: BoolScalar
    stopped: BoolScalar
    again: Scalar


class _Judged(NamedTuple):
    """Decisions after a turn. `closed`: has this closing ended, up to rounding? `settled`: less
    exactly; `stuck`: it will not end. `distrusted`: would its answer not be trusted? `unmoved`: is
    it where it started? `met`: is the residual rounding, and the point no farther than the first
    closed one? `away` (nv,), of the length `left`: of the motion that is weighed; `isolated`:
    nothing of it is possible; `back`: it has come back. `growth`, `joined`: of the next turn."""

    growth: Scalar
    joined: BoolScalar
    settled: BoolScalar
    distrusted: BoolScalar
    closed: BoolScalar
    stuck: BoolScalar
    unmoved: BoolScalar
    met: BoolScalar
    away: Float[Array, " nv"]
    left: Scalar
    isolated: BoolScalar
    back: BoolScalar


def starts_closed(problem: Problem) -> BoolScalar:
    """Is the start a state that is closed to rounding?"""
    system, q = problem.system, problem.q
    rest = jnp.zeros((system.structure.nv,), q.dtype)
    gap = jnp.max(jnp.abs(system.scaled_residual(q, problem.t)), initial=0.0)
    return (gap <= _CLOSED_START) & is_state(system.structure, q, rest, problem.t)


def begin_closing(problem: Problem) -> Lane:
    """A case at its start; at its end, unsure, where that is not a valid state."""
    q, structure, dtype = problem.q, problem.system.structure, problem.q.dtype
    rest, rows = jnp.zeros((structure.nv,), dtype), jnp.zeros((len(structure.rows),), dtype)
    valid = is_state(structure, q, rest, problem.t)
    steps = jnp.zeros((_REMEMBERED, 2, structure.nv), dtype)
    zero, one, far = (jnp.asarray(x, dtype) for x in (0.0, 1.0, jnp.inf))
    none, no = jnp.asarray(0), jnp.asarray(False)
    return Lane(
        stage=jnp.where(valid, _CLOSE, _END),
        q=q,
        answer=q,
        far=zero,
        distance=far,
        multipliers=rows,
        here=q,
        slope=rest,
        bend=rest,
        s=zero,
        last=zero,
        step=one,
        steps=steps,
        last_step=steps[0],
        away=rest,
        first=zero,
        moved=far,
        growth=zero,
        count=none,
        turns=none,
        joined=no,
        known=no,
        sure=no,
    )


def turn_closing(problem: Problem, lane: Lane) -> Lane:
    """The case after its next turn. Without derivative; there has to be a geometric row."""
    at = _At(*(lane.stage == k for k in range(_END)))
    found = _measured(problem, lane, at)
    followed = _followed(lane, at, found)
    seen = _judged(problem, lane, at, found)
    stage = _next_stage(lane, found, followed, seen)
    q, u, closed = found.q, found.u, seen.closed
    certain = (at.close & seen.unmoved & closed & seen.met) | (at.weigh & seen.back)

    def if_taken(new: Array, old: Array) -> Array:
        return jnp.where(followed.taken, new, old)

    answered = (at.close | at.settle) & closed
    stays = stage == lane.stage
    distance = jnp.where((stage == _SETTLE) & ~stays, jnp.inf, lane.distance)
    first = jnp.minimum(1.0, 0.5 * LONGEST / length_of(found.drivers, u))
    bend = (followed.rate - lane.slope) / (followed.length + lane.last)
    new = Lane(
        stage=stage,
        q=q,
        answer=jnp.where(answered, q, lane.answer),
        far=jnp.where(at.close & answered, found.gone, lane.far),
        distance=jnp.where(found.slides & jnp.isinf(distance), found.distance, distance),
        multipliers=found.multipliers,
        here=jnp.where(followed.taken | (at.hold & seen.settled), q, lane.here),
        slope=jnp.where(at.aim, u, if_taken(followed.rate, lane.slope)),
        bend=if_taken(bend, lane.bend),
        s=if_taken(followed.s, lane.s),
        last=if_taken(followed.length, lane.last),
        step=jnp.where(at.aim, first, followed.again),
        steps=jnp.where(stays, found.steps, 0.0),
        last_step=found.last_step,
        away=seen.away,
        first=jnp.where(at.free, seen.left, lane.first),
        moved=jnp.where(stays, found.moved, jnp.inf),
        growth=seen.growth,
        count=jnp.where(stays & ~followed.judged, lane.count + 1, 0),
        turns=lane.turns + 1,
        joined=seen.joined,
        known=lane.known | (at.close & closed),
        sure=certain | (at.free & seen.isolated & seen.met),
    )
    return new._replace(q=_next_place(problem, lane, new, followed.judged))


def _judged(problem: Problem, lane: Lane, at: _At, found: _Measured) -> _Judged:
    drivers, near = found.drivers, found.near
    growing = jnp.maximum(lane.growth, found.moved / lane.moved)
    growth = jnp.where(at.close & ~near, growing, lane.growth)
    residual = jnp.abs(found.residual) / problem.system.residual_scale()
    of_joints = jnp.where(problem.system.structure.driven, 0.0, residual)
    closed_joints = jnp.max(of_joints, initial=0.0) <= CLOSED

    settled = near & (found.moved <= SETTLED)
    shrinks = found.moved <= 0.5 * lane.moved
    rounding = (jnp.maximum(found.moved, lane.moved) <= _ROUNDING) & ~shrinks
    distrusted = at.close & drivers.driven & (found.gone > NEAR) & (growth >= 1)
    closed = (near & ((found.moved <= _LAST) | rounding)) | (settled & distrusted)
    astray = found.slides & (found.moved > _ASTRAY)
    stuck = (lane.count + 1 >= _CLOSINGS) | ~jnp.isfinite(found.moved) | astray

    away = jnp.where(at.free, found.probe, lane.away) + found.u
    left = length_of(drivers, away)
    met = (found.error <= _MET) & (jnp.max(residual, initial=0.0) <= CLOSED)
    # A step that was too bold may have led to another minimum, farther away.
    met = met & (~at.free | (found.distance <= lane.distance + _FARTHER))
    return _Judged(
        growth=growth,
        joined=jnp.where(lane.turns == 0, closed_joints, lane.joined),
        settled=settled,
        distrusted=distrusted,
        closed=closed,
        stuck=stuck,
        unmoved=found.gone <= _UNMOVED,
        met=met,
        away=away,
        left=left,
        isolated=left <= _LEFT * _AWAY,
        back=(left <= _BACK * lane.first) & (left <= _SHRINKS * length_of(drivers, lane.away)),
    )


def _next_stage(lane: Lane, found: _Measured, followed: _Followed, seen: _Judged) -> IntScalar:
    """The stage after this turn."""
    drivers, closed, stuck = found.drivers, seen.closed, seen.stuck
    # A start whose joints were open lies on no branch.
    onto_branch = jnp.where(seen.joined, _AIM, _HOLD)
    answered = jnp.where(seen.distrusted, onto_branch, _FREE)
    answered = jnp.where(seen.unmoved, _END, answered)
    given_up = jnp.where(drivers.driven & ~found.near, onto_branch, _END)
    after_close = jnp.where(closed, answered, jnp.where(stuck, given_up, _CLOSE))
    at_once = seen.distrusted & seen.joined & ~found.near
    after_close = jnp.where(at_once, _AIM, after_close)
    alone = lane.known & (found.gone > ON_BRANCH * lane.far)
    after_hold = jnp.where(alone, _SETTLE, _AIM)
    after_hold = jnp.where(seen.settled, after_hold, jnp.where(stuck, _END, _HOLD))
    # A closing that went the shorter way round has not gone this one.
    same = jnp.all(jnp.abs(drivers.led - drivers.open) <= 1)
    after_aim = jnp.where(lane.known & same & (seen.growth < GROWTH), _CHECK, _LEAD)
    off = length_of(drivers, found.chord - (lane.slope + found.u) / 2)
    after_check = jnp.where(off <= TANGENT * found.gone, _SETTLE, _LEAD)
    arrived = followed.taken & (followed.s >= 1)
    after_lead = jnp.where(arrived, _SETTLE, jnp.where(followed.stopped, _END, _LEAD))
    after_settle = jnp.where(closed, _FREE, jnp.where(stuck, _END, _SETTLE))
    after_free = jnp.where(seen.isolated | ~seen.met, _END, _WEIGH)
    done = seen.back | (lane.count + 1 >= _WEIGHINGS)
    after_weigh = jnp.where(done, _END, _WEIGH)
    # In the order of the stages.
    searching = after_close, after_hold, after_aim, after_check, after_lead, after_settle
    stage = jnp.asarray(_END)
    for k, after in enumerate((*searching, after_free, after_weigh)):
        stage = jnp.where(lane.stage == k, after, stage)
    return jnp.where(lane.turns + 1 >= _TURNS, _END, stage)


def _measured(problem: Problem, lane: Lane, at: _At) -> _Measured:
    system, t, drivers, size = problem.system, problem.t, drivers_of(problem), size_of(problem)
    descriptor = geometric_descriptor(system, lane.q, t)
    residual = position_residual(system, lane.q, t)
    led = (1 - lane.predicted[0]) * drivers.led
    gap = residual - jnp.where(at.hold, drivers.open, jnp.where(at.lead, led, 0.0))
    turns = jnp.where(at.hold | at.lead, drivers.turns, 0.0)
    gap = gap - turns * jnp.round(gap / jnp.where(turns > 0, turns, jnp.inf))
    error = scaled_error(descriptor, gap, size)
    near = error <= NEARLY_CLOSED
    slides = near & (at.close | at.settle)

    # The gradient of the distance along Phi = 0 (of its Lagrangian), as a motion downhill.
    rest = jnp.zeros((system.structure.nv,), lane.q.dtype)
    distance, slope = jax.value_and_grad(lambda u: distance_of(problem, system.retract(lane.q, u)))(
        rest
    )
    slope = slope + descriptor.apply_CT(lane.multipliers)
    downhill = descriptor.inverse_mass(jnp.where(slides | at.weigh, slope, 0.0))
    normal = np.random.default_rng(0).normal(size=system.structure.nv)
    probe = jnp.where(at.free, drivers.unit * (_AWAY * normal), 0.0)
    solving = at.aim | at.check
    right = jnp.where(solving, drivers.led, jnp.where(at.free, 0.0, gap))
    right = right + descriptor.apply_C(probe - downhill)
    mu = jnp.where(solving | at.free | at.weigh, FLOOR, damping_of(error))
    added, back = descriptor.damped_response(right, mu)
    u = -back - downhill
    steps, step = _accelerated(lane, u, drivers.unit, slides)

    q = system.retract(lane.q, step)
    start = jnp.where(at.lead | at.check, lane.here, problem.q)
    chord = system.difference(start, jnp.where(at.check, lane.answer, q))
    return _Measured(
        drivers=drivers,
        residual=residual,
        error=error,
        distance=jnp.sqrt(2 * distance) / size,
        near=near,
        slides=slides,
        probe=probe,
        u=u,
        moved=jnp.sqrt(u @ descriptor.mass(u)) / size,
        q=q,
        chord=chord,
        gone=length_of(drivers, chord),
        multipliers=lane.multipliers + jnp.where(slides | at.weigh, added, 0.0),
        steps=steps,
        last_step=jnp.where(slides, jnp.stack([step, u]), 0.0),
    )


def _accelerated(
    lane: Lane, u: Float[Array, " nv"], unit: Float[Array, " nv"], slides: BoolScalar
) -> tuple[Float[Array, "remembered 2 nv"], Float[Array, " nv"]]:
    """The steps to remember, and the one that they suggest in the place of u: Anderson's method
    (Walker & Ni 2011, SIAM Journal on Numerical Analysis 49, eqs. 2.1-2.2). Of each of the last
    steps two vectors are remembered: how it changed u, and where it led with that."""
    step, before = lane.last_step
    usable = slides & jnp.any(before != 0)
    change = u - before
    newest = jnp.stack([change / unit, step + change])
    steps = jnp.where(usable, jnp.concatenate([newest[None], lane.steps[:-1]]), 0.0)
    left, advance = u / unit, u
    basis: list[tuple[Array, Array]] = []
    for pair in steps:
        changed, led = _orthonormal(pair, basis)
        basis.append((changed, led))
        part = changed @ left
        left, advance = left - part * changed, advance - part * led
    length = jnp.mean((advance / unit) ** 2)
    far = (length > _LONGER * jnp.mean((u / unit) ** 2)) | (length > _ASTRAY**2)
    return steps, jnp.where(far, u, advance)


def _orthonormal(
    pair: Float[Array, "2 nv"], basis: Sequence[tuple[Array, Array]]
) -> tuple[Array, Array]:
    """The pair with its first vector orthogonal to those of the basis, and of length one; zero if
    it is not independent of them."""
    first, second = pair
    size = first @ first
    for other, along in basis:
        part = other @ first
        first, second = first - part * other, second - part * along
    rest = first @ first
    independent = rest > _INDEPENDENT * size
    inverse = jnp.where(independent, 1 / jnp.sqrt(jnp.where(independent, rest, 1.0)), 0.0)
    return inverse * first, inverse * second


def _followed(lane: Lane, at: _At, found: _Measured) -> _Followed:
    """As of `_continuation._lead`, but points on the way are closed up to `_FOLLOWED` only."""
    drivers = found.drivers
    s, predicted = lane.predicted
    length = s - lane.s
    rate = found.chord / length
    off = length_of(drivers, found.chord - predicted) / length_of(drivers, predicted)
    near = (found.moved <= _FOLLOWED) & (found.error <= _FOLLOWED)
    taken = at.lead & near & (off <= CORRECTED)
    failed = (lane.count + 1 >= CORRECTIONS) | ~jnp.isfinite(found.moved)
    judged = at.lead & (near | failed)
    factor = jnp.clip(jnp.sqrt(AIMED_AT / jnp.maximum(off, 1e-3)), 0.5, 2.0)
    longer = jnp.minimum(factor * length, LONGEST / jnp.maximum(length_of(drivers, rate), 1e-9))
    again = jnp.where(taken, longer, jnp.where(judged, length / 2, lane.step))
    stopped = judged & ~taken & (length / 2 < LEAST)
    return _Followed(length, s, rate, judged, taken, stopped, again)


def _next_place(problem: Problem, lane: Lane, new: Lane, judged: BoolScalar) -> Float[Array, " nq"]:
    """The configuration that is evaluated next."""
    stage, system = new.stage, problem.system
    changed = stage != lane.stage
    from_branch = changed & ((stage == _HOLD) | (stage == _AIM))
    q = jnp.where(from_branch, new.here, new.q)
    settling = changed & (stage == _SETTLE) & (lane.stage != _LEAD)
    q = jnp.where((stage == _CHECK) | (stage == _FREE) | settling, new.answer, q)
    leading = (stage == _LEAD) & (judged | changed)
    base = jnp.where(leading, new.here, new.answer)
    step = jnp.where(leading, new.predicted[1], new.away)
    return jnp.where(leading | (stage == _WEIGH), system.retract(base, step), q)
