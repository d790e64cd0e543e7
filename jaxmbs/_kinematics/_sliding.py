"""From a closed configuration, or a nearly closed one where mobility is left, along Phi = 0 to the
point nearest to the start, for many cases side by side.

As in `_closing.py` every turn evaluates one configuration and solves once. The stages:

- *free*: the first such step, and a random motion with it. Where the constraints leave nothing of
  both there is no mobility, and the point is the answer;
- *slide*: the step that would lead to the nearest point if Phi were linear, accelerated
  (`_accelerated`). It closes at the same time; with stronger damping, as what is redundant on
  Phi = 0 is not next to it;
- *weigh*: is the answer a minimum of the distance? That motion is taken away from it and must come
  back by the same steps without acceleration, which it does if no curvature is negative or far from
  that of the distance. They are a power iteration: it ends where the motion has come back, or where
  it is an eigenvector that does.

An answer is `sure` where all that held. All other cases are left to the search that answers every
one: where steps do not end or slide too slowly, and in singular configurations.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._custom_types import BoolScalar, IntScalar, Scalar
from ._closing import is_last, length_in
from ._geometric_rows import geometric_descriptor, position_residual
from ._search import (
    CLOSED,
    damping_of,
    distance_of,
    FLOOR,
    NEARLY_CLOSED,
    Problem,
    scaled_error,
    size_of,
    unit_of,
)


_FREE, _SLIDE, _WEIGH, _END = range(4)

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
        return self.stage == _END


class _Measured(NamedTuple):
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
    found = _measured(problem, lane)
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
    stage = jnp.where(sure | given_up, _END, stage)
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


def _has_come_back(lane: Slide, found: _Measured) -> BoolScalar:
    """Has the motion that is weighed come back, or is it one that does, an eigenvector?"""
    before, after = lane.away / found.unit, found.away / found.unit
    size, left = jnp.sqrt(jnp.mean(before**2)), jnp.sqrt(jnp.mean(after**2))
    back = (left <= _BACK * _AWAY) & (left <= _SHRINKS * size)
    part = jnp.mean(before * after) / jnp.where(size > 0, size, 1.0) ** 2
    off = jnp.sqrt(jnp.mean((after - part * before) ** 2))
    return back | ((off <= _ALIKE * size) & (jnp.abs(part) <= _RETURNS))


def _measured(problem: Problem, lane: Slide) -> _Measured:
    free, slide, weigh = (lane.stage == k for k in (_FREE, _SLIDE, _WEIGH))
    system, t, size, unit = problem.system, problem.t, size_of(problem), unit_of(problem)
    descriptor = geometric_descriptor(system, lane.q, t)
    gap = position_residual(system, lane.q, t)
    error = scaled_error(descriptor, gap, size)
    near = error <= NEARLY_CLOSED
    slides = (error <= _SLIDES_FROM) & slide
    closed = jnp.max(jnp.abs(gap) / system.residual_scale(), initial=0.0) <= CLOSED

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
    return _Measured(
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
