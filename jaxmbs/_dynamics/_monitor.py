"""Detection of the singular configurations that a motion passes.

Along a motion the singular values of C M^-1/2 (rows of unit length) change continuously if they
are allowed to change sign, and so do their vectors u (left) and w = M^-1 C^T u / sigma (right).
A passage is a change of sign. No sample needs to come close for that to be seen: with values
taken positive, u or w, but not both, points the other way after it, so that the product of the
overlap of u with its predecessor and that of w turns negative.

The smallest values are carried along by inverse iteration with the factor of S + mu I,

    x <- S (S + mu I)^-2 x,

which leaves the null space (the redundancy) out. There are several, since values cross: the one
that will vanish need not be the smallest a step earlier, and where symmetry separates it from
the others, an iteration converges to it only because of a random component. The factor is that
of the evaluation at the end of a step (`_runge_kutta.py`).

Samples are the ends of steps where these are close enough together: where the vectors of the
smallest value are recognised from one to the next, and the motion between them is small relative
to the distance of the value from zero. A step may be longer than that, since its length follows
from the error of the motion. Then states within it are evaluated as well, by bisection. An
interval across which a value changed sign is narrowed down to a small part of the step, as
several may have done so and as the time is wanted: the next sample lies shortly before the zero
that the values predict, the one after it behind that. A state in which the vectors are lost,
which is one next to a singular configuration, is left out.
"""

import dataclasses
from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar
from .._kinematics import position_residual
from .._linalg import KKTSystem, ProximalCholesky
from .._linalg._many_states import many_states
from .._linalg._small_eigenproblem import ascending, eigenvectors, orthonormal, small_product
from .._solution import RESULTS
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem, vanishing_on_the_way, vanishing_rows
from ._state_evaluation import Packed, split


_REGULARISATION = 1e-7

# Inverse iterations at the start, and at each step from the vectors of the step before.
FIRST, EACH = 40, 2

# Singular values that are followed, and how much of something else is mixed into the last.
_MODES = 4
_MIXED_IN = 0.1

# Overlaps are at least cosines of what the vectors turn between samples. With less than the second
# the vectors are not recognised.
_TURNED = -0.3
_CLEAR = 0.6

# Between two samples velocities may move something by so much (characteristic lengths, radians),
# and by so many times the singular values at both.
_MOTION = 0.5
_MOTION_PER_VALUE = 2.0

# The place of the next sample in an interval that is too long, which is not the midpoint, since
# passages lie at these; the least part of a step; states within a step at most; how many times
# longer than an interval the next one may be.
_PART = 0.45
_LEAST_PART = 1 / 64
MOST_SAMPLES = 48
_GROWTH = 4.0

# Samples next to a passage that is expected: so far before it, and from there across it, in least
# parts; and the most of an interval with a passage that may be left of it.
_BEFORE = 0.35
_ACROSS = 0.9
_MOST_BACK = 0.8

# Below this a singular value belongs to the null space: there are fewer than are followed.
_NULL = 1e-8

# A step ends next to a singular configuration if this part of its change of the smallest
# singular value is left to it.
_BESIDE = 0.03

# Passages whose times are kept, later ones are counted; and those whose configurations are.
CAPACITY = 64
STATES = 16


class SingularCrossings(eqx.Module):
    """State that a monitor carries from step to step.

    `left` (rows, k), `right` (nv, k), `values` (k,): smallest singular values, the least first,
    and their vectors; `time`, and of the sample before the time and the `earlier_values` (k,) of
    the same vectors; of the interval before that one the `earlier_rate` of the smallest value (1/s)
    and the length `earlier_past` (s). `target`: the time of the next sample, where it lies within a
    step. `count`: the number of passages.
    """

    left: Float[Array, "rows k"]
    right: Float[Array, "nv k"]
    values: Float[Array, " k"]
    time: Scalar
    earlier_values: Float[Array, " k"]
    earlier_time: Scalar
    earlier_rate: Scalar
    earlier_past: Scalar
    target: Scalar
    count: IntScalar


class PassageRecord(eqx.Module):
    """The passages of a run. It is much larger than the rest of a monitor's state and changes
    seldom: apart from that, it is written in place and otherwise left alone. `numbers`: the
    `times` (s) of CAPACITY passages, the `states` of STATES, and behind them space for those
    beyond."""

    numbers: Float[Array, " numbers"]
    width: int = eqx.field(static=True)

    @staticmethod
    def empty(width: int, dtype: Any) -> "PassageRecord":
        """A record without any passage; `width`: of a state."""
        times = jnp.full((CAPACITY,), jnp.nan, dtype)
        return PassageRecord(
            jnp.concatenate([times, jnp.zeros(((STATES + 1) * width,), dtype)]), width
        )

    def add(
        self, count: IntScalar, time: Scalar, state: Float[Array, " width"], wanted: BoolScalar
    ) -> "PassageRecord":
        """The record with the passage after the first `count` ones, if it is `wanted`."""
        beyond = CAPACITY + STATES * self.width
        of_time = jnp.where(wanted & (count < CAPACITY), count, beyond)
        of_state = jnp.where(wanted & (count < STATES), CAPACITY + count * self.width, beyond)
        numbers = lax.dynamic_update_slice(self.numbers, time[None], (of_time,))
        return PassageRecord(lax.dynamic_update_slice(numbers, state, (of_state,)), self.width)

    @property
    def times(self) -> Float[Array, " capacity"]:
        return self.numbers[:CAPACITY]

    @property
    def states(self) -> Float[Array, "states width"]:
        """Time, q and v next to the passages."""
        return self.numbers[CAPACITY : CAPACITY + STATES * self.width].reshape(STATES, self.width)


class PackedCrossings(eqx.Module):
    """`SingularCrossings` as one array: in a small system each array that is carried costs as much
    as a solve. `numbers`: the leaves of a `SingularCrossings` in their order, counts as
    floating-point numbers; `shapes` of these leaves, with their types. `record`: of the
    passages."""

    numbers: Float[Array, " numbers"]
    shapes: tuple[jax.ShapeDtypeStruct, ...] = eqx.field(static=True)
    record: PassageRecord

    def __init__(self, crossings: SingularCrossings, record: PassageRecord):
        parts = jax.tree.leaves(crossings)
        self.shapes = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in parts)
        self.numbers = jnp.concatenate([x.ravel().astype(parts[0].dtype) for x in parts])
        self.record = record

    def opened(self) -> SingularCrossings:
        ends = np.cumsum([x.size for x in self.shapes])
        parts = zip(jnp.split(self.numbers, ends[:-1]), self.shapes, strict=True)
        return SingularCrossings(*(x.reshape(s.shape).astype(s.dtype) for x, s in parts))

    def place(self, name: str) -> slice:
        """Index of a leaf among the numbers."""
        k = [field.name for field in dataclasses.fields(SingularCrossings)].index(name)
        start = sum(x.size for x in self.shapes[:k])
        return slice(start, start + self.shapes[k].size)

    def leaf(self, name: str) -> Float[Array, " numbers"]:
        """The numbers of one leaf: opening all of them is as much as a solve, too."""
        return self.numbers[self.place(name)]

    def first(self, name: str) -> Scalar:
        """The first number of a leaf."""
        return self.numbers[self.place(name).start]

    @property
    def rate(self) -> Scalar:
        """Rate of the smallest value (1/s)."""
        past = self.first("time") - self.first("earlier_time")
        change = self.first("values") - self.first("earlier_values")
        return jnp.where(past > 0, change / jnp.where(past > 0, past, 1.0), 0.0)

    @property
    def expected(self) -> Scalar:
        """The time at which the smallest value vanishes, by the parabola of the last three samples;
        infinite if it does not go to zero."""
        value, rate, now = self.first("values"), self.rate, self.first("time")
        earlier, before = self.first("earlier_rate"), self.first("earlier_past")
        past = now - self.first("earlier_time")
        span = past + before
        bend = jnp.where(before > 0, (rate - earlier) / jnp.where(span > 0, span, 1.0), 0.0)
        falling = (value > 0) & (rate < 0)
        # Of rates that differ by more than half other values have been in between.
        slope = jnp.clip(rate + bend * past, 1.5 * rate, 0.5 * rate)
        left = value / jnp.where(falling, -slope, 1.0)
        mean = jnp.clip(slope + bend * left, 1.5 * rate, 0.5 * rate)
        return jnp.where(falling, now + value / jnp.where(falling, -mean, 1.0), jnp.inf)

    def near(self, t1: RealScalarLike) -> BoolScalar:
        """Does a step from here to t1 lead across a singular configuration, or close to one?"""
        value = self.first("values")
        change = (jnp.asarray(t1, value.dtype) - self.first("time")) * self.rate
        return (value > 0) & ((value + 1.5 * change <= 0) | (value - 0.5 * change <= 0))

    @property
    def fresh(self) -> BoolScalar:
        """Is nothing known yet?"""
        return ~jnp.any(self.leaf("left") != 0)

    def ends_next_to_one(self, step: Scalar) -> BoolScalar:
        """Did the last step, of this length (s), end next to a singular configuration, rather than
        across it?"""
        return jnp.abs(self.first("values")) < _BESIDE * jnp.abs(self.rate * step)


class SingularValueMonitor(eqx.Module):
    """Follows the smallest singular values of C from step to step. Nothing it does has a
    derivative."""

    def init(
        self, system: AbstractSystem, y: Float[Array, " state"], t: RealScalarLike
    ) -> PackedCrossings:
        """The monitor's initial state, without any sample. y: q, v and the number of passages."""
        rows, nv = len(system.structure.rows), system.structure.nv
        left, right, values = (jnp.zeros((*n, min(_MODES, rows, nv))) for n in ((rows,), (nv,), ()))
        now = jnp.asarray(t, y.dtype)
        record = PassageRecord.empty(1 + system.structure.nq + nv, y.dtype)
        return PackedCrossings(
            SingularCrossings(
                left,
                right,
                values,
                now,
                values,
                now,
                jnp.zeros_like(now),
                jnp.zeros_like(now),
                now,
                jnp.asarray(0),
            ),
            record,
        )

    def step(
        self,
        system: AbstractSystem,
        y0: Float[Array, " state"],
        y1: Float[Array, " state"],
        t1: RealScalarLike,
        carried: PackedCrossings,
    ) -> tuple[PackedCrossings, BoolScalar]:
        """The monitor's state after the step from y0 to y1 at t1, and whether a singular
        configuration was passed."""
        system, y0, y1, now = stop_gradient((system, y0, y1, jnp.asarray(t1, y0.dtype)))
        first, beginning, nq = carried.fresh, carried.first("time"), system.structure.nq
        h = now - beginning
        rates = (system.rate(*_split(system, y)) for y in (y0, y1))
        k0, k1 = (jnp.zeros_like(y0).at[:nq].set(h * rate) for rate in rates)
        curve = dfx.ThirdOrderHermitePolynomialInterpolation(
            t0=beginning, t1=now, y0=y0, y1=y1, k0=k0, k1=k1
        )

        def sampled(state: tuple[Any, ...]) -> tuple[Any, ...]:
            last, any_passed, _, count = state
            start = first & (count == 0)
            again = last.first("target")
            t = jnp.where(start, beginning, jnp.where(count <= first, now, again))
            q, v = _split(system, jnp.where(start, y0, curve.evaluate(t)))
            factored = KKTSystem(
                system.descriptor(q, v, t).metric(), ProximalCholesky(_REGULARISATION, clean=False)
            )
            sample = Sample(t, q, v, jnp.max(jnp.abs(v) / system.column_scale(), initial=0.0))
            within = jnp.maximum(count - first, 0)
            after, passed, more = update(factored, sample, now, h, last, start, within)
            return after, passed | any_passed, more | start, count + 1

        # The first step evaluates its start as well: in the loop, which is compiled once.
        begun = (carried, jnp.asarray(False), jnp.asarray(True), jnp.asarray(0))
        return lax.while_loop(lambda state: state[2], sampled, begun)[:2]


class Sample(NamedTuple):
    """A state of a motion: its `time`, `q`, `v`, and the greatest `speed` there is in it
    (characteristic lengths or radians per second)."""

    time: Scalar
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    speed: Scalar


def update(
    factored: KKTSystem,
    sample: Sample,
    end: Scalar,
    step: Scalar,
    carried: PackedCrossings,
    start: BoolScalar,
    count: IntScalar | Scalar,
) -> tuple[PackedCrossings, BoolScalar, BoolScalar]:
    """Add a sample to the monitor's state.

    `step`: length of the step, which ends at `end`; `count`: number of samples within it. The
    sample at the `start` has no predecessor. Where the vectors change too much between this sample
    and the previous one, only the `target` changes.

    **Returns:** the new state; whether a singular configuration was passed since the previous
    sample; whether a sample at `target` is needed.
    """
    last, now = carried.opened(), sample.time
    left, right, values = _smallest(factored, last, start)
    moved = _by_column(factored.descriptor.mass)(right)
    overlaps = small_product(last.left.T, left) * small_product(last.right.T, moved)
    cosines = jnp.sum(overlaps, axis=0)
    turned = (cosines < _TURNED) & ~start
    same = jnp.argmax(jnp.abs(overlaps), axis=0)
    before = last.values[same]
    # The least of those that turned.
    which, passed = jnp.argmax(turned), jnp.any(turned)

    samples = [
        jnp.stack([last.earlier_time, last.earlier_values[same[which]]]),
        jnp.stack([last.time, before[which]]),
        jnp.stack([now, -values[which]]),
    ]
    zero = _zero(jnp.stack(samples))
    # On the way out the earlier value belongs to the other sign.
    earlier = jnp.where(start, values, jnp.where(turned, -before, before))

    past, least = now - last.time, _LEAST_PART * step
    clear = jnp.minimum(jnp.abs(cosines[0]), jnp.abs(jnp.sum(overlaps[0]))) > _CLEAR
    recognised = clear & (sample.speed * past <= _allowed(last.values[0] + values[0]))
    short = past <= least
    kept = start | (count >= MOST_SAMPLES) | (recognised & (short | ~passed))
    # Onward as far as the motion may lead from here, but not much farther than it was followed yet.
    far = _allowed(values[0]) / jnp.maximum(sample.speed, jnp.finfo(values.dtype).tiny)
    far = jnp.minimum(far, jnp.where(passed, jnp.inf, _GROWTH * past))
    onward = jnp.where(kept, jnp.minimum(far, _toward_zero(values, earlier, past, least)), past)
    # Back to shortly before the passage, or across it where that is so near.
    back = jnp.maximum(zero - last.time - _BEFORE * least, _ACROSS * least)
    back = jnp.where(passed & clear, jnp.minimum(back, _MOST_BACK * past), _PART * past)
    target = jnp.where(kept | short, now + onward, last.time + back)
    target = jnp.where(count >= MOST_SAMPLES - 1, end, jnp.minimum(target, end))

    state = jnp.concatenate([now[None], sample.q, sample.v])
    record = carried.record.add(last.count, zero, state, kept & passed)
    after = SingularCrossings(
        left,
        right,
        values,
        now,
        earlier,
        last.time,
        carried.rate,
        last.time - last.earlier_time,
        target,
        last.count + passed,
    )
    # The target in any case.
    numbers = PackedCrossings(after, record).numbers
    taken = kept | np.isin(np.arange(len(numbers)), carried.place("target").start)
    numbers = jnp.where(taken, numbers, carried.numbers)
    carried = eqx.tree_at(lambda c: (c.numbers, c.record), carried, (numbers, record))
    return carried, kept & passed, ~start & ~(kept & (now >= end))


def _allowed(values: Scalar) -> Scalar:
    """The motion that is allowed between two samples, by the sum of their smallest values."""
    return _MOTION + _MOTION_PER_VALUE * values


def _toward_zero(
    values: Float[Array, " k"], earlier: Float[Array, " k"], past: Scalar, least: Scalar
) -> Scalar:
    """Time to the sample that follows, by the value that vanishes next if all go on as they did:
    shortly before that, or across it where it is near."""
    fall = earlier - values
    left = jnp.min(jnp.where(fall > 0, values * past / jnp.where(fall > 0, fall, 1.0), jnp.inf))
    return jnp.where(
        left > least / 2, jnp.maximum(left - _BEFORE * least, least / 2), _ACROSS * least
    )


def _split(
    system: AbstractSystem, y: Float[Array, " state"]
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    nq = system.structure.nq
    return y[:nq], y[nq : nq + system.structure.nv]


def _smallest(
    factored: KKTSystem, last: SingularCrossings, start: BoolScalar
) -> tuple[Float[Array, "rows k"], Float[Array, "nv k"], Float[Array, " k"]]:
    """Left and right singular vectors and values, the smallest nonzero ones first."""
    descriptor, scale = factored.descriptor, factored.factor.scale

    def iterate(_: IntScalar, x: Float[Array, "rows k"]) -> Float[Array, "rows k"]:
        return orthonormal(_by_column(factored.inverse_iteration)(x))

    others = jnp.zeros_like(last.values).at[-1:].set(_MIXED_IN)
    others = jnp.where(start, 1.0, others)
    # Rates of the rows in some motion have no part in the null space.
    motions = np.random.default_rng(0).normal(size=(descriptor.shape[1], last.left.shape[1]))
    rates = _by_column(descriptor.apply_C)(jnp.asarray(motions))
    known = last.left + others[None] * rates / scale[:, None]
    basis = lax.fori_loop(0, jnp.where(start, FIRST, EACH), iterate, known)
    return _values(factored, basis)


def _values(
    factored: KKTSystem, basis: Float[Array, "rows k"]
) -> tuple[Float[Array, "rows k"], Float[Array, "nv k"], Float[Array, " k"]]:
    """Left and right singular vectors and values within the space of an orthonormal basis."""
    descriptor, scale = factored.descriptor, factored.factor.scale

    def force_and_motion(x: Float[Array, " rows"]) -> Float[Array, "2 nv"]:
        force = descriptor.apply_CT(x / scale)
        return jnp.stack([force, descriptor.inverse_mass(force)])

    force, motion = jax.vmap(many_states(force_and_motion), 1, 2)(basis)
    squares, turn = eigenvectors(small_product(force.T, motion))
    found = squares > _NULL**2
    order = ascending(jnp.where(found, squares, jnp.inf))
    found, turn = found[order], turn[:, order]
    values = jnp.where(found, jnp.sqrt(jnp.where(found, squares[order], 1.0)), 0.0)
    scaled = turn / jnp.where(found, values, jnp.inf)[None]
    return small_product(basis, turn), small_product(motion, scaled), values


def _by_column(function: Any) -> Any:
    """The function applied to all columns, which are the last axis of all that it computes."""
    return jax.vmap(many_states(function), 1, 1)


def _zero(samples: Float[Array, "3 2"]) -> Scalar:
    """Zero of a quantity between the last two of three samples (time, value): inverse
    quadratic interpolation, or the chord where that leaves the interval."""
    (a, fa), (b, fb), (c, fc) = samples
    chord = b + (c - b) * fb / jnp.where(fb == fc, 1.0, fb - fc)
    distinct = (fa != fb) & (fa != fc) & (fb != fc)
    ab, ac, bc = (jnp.where(distinct, x, 1.0) for x in (fa - fb, fa - fc, fb - fc))
    curve = a * fb * fc / (ab * ac) - b * fa * fc / (ab * bc) + c * fa * fb / (ac * bc)
    inside = distinct & (curve >= b) & (curve <= c)
    return jnp.where(inside, curve, chord)


# --------------------------------------------------------------------------------------------------
# Runs that come to a state at which a velocity row that is nonlinear in v vanishes. Behind it the
# motion is one of several, whatever the method: no step leads across, and the run says why it ends.
# --------------------------------------------------------------------------------------------------


# Where a run ends, a row that is smaller than this has made it end, ...
_HARDLY = 1e-3

# ... or one that would vanish within such a part of the run from there, or within so many steps
# of mean length.
_AHEAD = 1e-2
_STEPS_AHEAD = 10.0


def vanishes_in_step(
    terms: Any,
    t0: Any,
    t1: Any,
    y0: Float[Array, " state"],
    y1: Float[Array, " state"],
    args: Packed,
) -> BoolScalar:
    """Does a velocity row vanish in a step? Without derivatives."""
    args, t0, t1, y0, y1 = stop_gradient((args, t0, t1, y0, y1))
    system = args.opened().system
    (q, first), (_, last) = split(system, y0), split(system, y1)
    start, end = (split(system, terms.vf(t, y, args))[1] for t, y in ((t0, y0), (t1, y1)))
    t, h = jnp.asarray(t0, y0.dtype), jnp.asarray(t1 - t0, y0.dtype)
    return jnp.any(vanishing_on_the_way(system, q, t, (first, last), (start, end), h))


def with_vanishing_rows(
    result: RESULTS,
    system: AbstractSystem,
    end: tuple[Float[Array, " nq"], Float[Array, " nv"], Float[Array, " nv"], Scalar],
    grid: Float[Array, " times"],
    steps: IntScalar,
) -> RESULTS:
    """The result of a run over these times that ended so (q, v, dv/dt, t) after so many steps, if
    it is that a step could not be made."""
    q, v, acceleration, t = stop_gradient(end)
    start, last = grid[0], grid[-1]
    mean = (t - start) / jnp.maximum(steps, 1)
    ahead = jnp.maximum(_AHEAD * (last - start), _STEPS_AHEAD * mean)
    ends, slopes = (v, v + ahead * acceleration), (acceleration, acceleration)
    later = vanishing_on_the_way(system, q, t, ends, slopes, ahead)
    vanishing = jnp.any(vanishing_rows(system, q, v, t, _HARDLY) | later)
    for member in (RESULTS.step_too_small, RESULTS.step_not_solved, RESULTS.integrator_failed):
        ended = vanishing & (result == member)
        result = RESULTS.where(ended, RESULTS.velocity_row_vanishes, result)
    return result


# --------------------------------------------------------------------------------------------------
# Are redundant rows redundant only where the mechanism closes?
#
# The rows of a Bennett linkage depend on each other on the constraints, but off them, where the
# stages of a Runge-Kutta method lie, they do not, and there they prescribe contradictory
# accelerations. (Those of a plane mechanism built of spatial joints depend on each other
# everywhere.) Slopes are to be taken on the constraints then.
#
# To find out, a configuration q' is made as a stage makes one, by a straight step along an
# admissible velocity; q is the one on the constraints next to it. A left null vector x of C at q
# is one of C at q' too, up to the distance between the two, unless its row becomes independent.
# --------------------------------------------------------------------------------------------------


# The straight step, relative to the characteristic length or in radians. With twice as much the
# rows of the spatial parallelogram lose 0.01 to 0.05, with this less than 0.005: they become
# independent with a higher power of the distance, which does not disturb.
_STEP = 0.05

# Null vectors that are tried: drawn at random, few may have no part in what is lost.
_TRIED = 4

# x loses the square of the distance between q and q', about _STEP^4, or all of its part in what
# is lost.
_LOST = 1e-2

# Relative square of the null part of a random vector that counts as none; and that of a single one
# with which there is no null vector whatever, as a random one hardly ever has so little of it.
_NONE, _NONE_AT_ALL = 1e-8, 1e-16

# Newton steps from q' to q. Singular values much below the root of the regularisation count as
# null, of which each of the solves leaves the part mu / (s + mu).
_STEPS, _LOOSENED, _SOLVES = 4, 1e-8, 6


class _Trial(NamedTuple):
    """`place` (nq,): evaluated next; `away` (nq,): q'; `vectors` (tried, rows): random ones, and
    their null parts as soon as these are known; `fraction` (tried,): what is left of their squares
    there; `evaluations`: their number; `redundant`: can there be null vectors at all?"""

    place: Float[Array, " nq"]
    away: Float[Array, " nq"]
    vectors: Float[Array, "tried rows"]
    fraction: Float[Array, " tried"]
    evaluations: IntScalar
    redundant: BoolScalar


def rank_increases_off_manifold(
    system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike
) -> BoolScalar:
    """Do rows that depend on each other at q (nq,), which is closed, become independent next to
    it? Also true where that cannot be decided. It has no derivative."""
    if not (len(system.structure.rows) and system.structure.nv):
        return jnp.asarray(False)
    return _rank_increases(*stop_gradient((system, q, jnp.asarray(t, q.dtype))))


@many_states
def _rank_increases(system: AbstractSystem, q: Float[Array, " nq"], t: Scalar) -> BoolScalar:
    rows, nv = len(system.structure.rows), system.structure.nv
    random = np.random.default_rng(0)
    unit = system.column_scale()
    motion = unit * jnp.asarray(random.normal(size=nv), q.dtype)
    vectors = jnp.asarray(random.normal(size=(rows, _TRIED)).T, q.dtype)

    def evaluated(trial: _Trial) -> _Trial:
        """At q the motion is made admissible and leads to q'; from there to the constraints; there
        null vectors are taken, which are tried at q'."""
        first, closed, last = (trial.evaluations == k for k in (0, _STEPS, _STEPS + 1))
        here = jnp.where(last, trial.away, trial.place)
        descriptor = system.descriptor(here, jnp.zeros_like(motion), t)
        factored = KKTSystem(descriptor, ProximalCholesky(_LOOSENED))
        scale = factored.factor.scale
        rates = jnp.where(first, descriptor.apply_C(motion), position_residual(system, here, t))

        def solve(k: IntScalar, found: Float[Array, "n rows"]) -> Float[Array, "n rows"]:
            """The way back, or the null part of a vector."""
            back, vector = k == 0, trial.vectors[jnp.maximum(k - 1, 0)]
            right, start = jnp.where(back, rates / scale, 0.0), jnp.where(back, 0.0, vector)
            solution = factored.proximal(right[:, None], start[:, None], _SOLVES)[:, 0]
            return found.at[k].set(solution)

        # Those alone that this evaluation is for: at q one vector, to see whether there are any.
        of_vectors = closed | last
        begin = jnp.where(of_vectors, 1, 0)
        end = jnp.where(of_vectors, _TRIED + 1, jnp.where(first, 2, 1))
        found = lax.fori_loop(begin, end, solve, jnp.zeros((_TRIED + 1, rows), q.dtype))
        shortest = factored.response(found[0] / scale)
        admissible = motion - shortest
        admissible = admissible * (_STEP / _largest(admissible / unit))
        there = system.retract(here, jnp.where(first, admissible, -shortest))

        rest, left = found[1:], _squares(trial.vectors)
        fraction = jnp.where(left > 0, _squares(rest) / jnp.where(left > 0, left, 1.0), 1.0)
        # What is left of a vector that has no null part is rounding.
        rest = jnp.where((fraction > _NONE)[:, None], rest, 0.0)
        return _Trial(
            there,
            jnp.where(first, there, trial.away),
            jnp.where(closed, rest, trial.vectors),
            jnp.where(of_vectors, fraction, 1.0),
            trial.evaluations + 1,
            ~first | ~(fraction[0] <= _NONE_AT_ALL),
        )

    start = _Trial(q, q, vectors, jnp.ones((_TRIED,), q.dtype), jnp.asarray(0), jnp.asarray(True))
    end = lax.while_loop(
        lambda trial: trial.redundant & (trial.evaluations < _STEPS + 2), evaluated, start
    )
    return ~jnp.all(end.fraction > 1 - _LOST)


def _squares(vectors: Float[Array, "k n"]) -> Float[Array, " k"]:
    return jnp.sum(vectors**2, axis=1)


def _largest(x: Float[Array, " n"]) -> Scalar:
    return jnp.maximum(jnp.max(jnp.abs(x)), jnp.finfo(x.dtype).tiny)
