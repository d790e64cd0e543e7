"""Holonomic constraints, by the condition of Frobenius here and at configurations nearby."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .. import _settings
from .._constraints import Driver
from .._custom_types import BoolScalar, PRNGKeyArray, RealScalarLike, Scalar, Setting
from .._kinematics import close_neighbour
from .._limits import EXACT, RANK
from .._programs import program
from .._solvability._state import check_numbers
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem, Structure, takes_state
from .._verdict import Verdict
from ._forms import (
    follow_way,
    Forms,
    linear_rows,
    measure_sets,
    measure_time,
    PointMeasures,
    Reached,
    TimeMeasures,
    velocity_constraints,
    velocity_rows,
)
from ._report import Holonomy, Integrability, NO_COUNT


# Ways along which is measured what can be reached.
_WAYS = 3

# A part of time below this in what rows allow: only at speeds of a million do they let time pass.
_PASSING = 1e-12

# Directions that are reached are doubtful up to so many times the threshold, and down to this part.
_REACHED_BAND = 10.0


@takes_state(decides_rank=True)
def holonomy(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    t: RealScalarLike = 0.0,
    *,
    key: Setting[PRNGKeyArray],
    samples: Setting[int] = 8,
    spread: Setting[RealScalarLike] = 0.05,
    tolerance: Setting[RealScalarLike] = EXACT.rank,
) -> Holonomy:
    """The velocity constraints that are holonomic: constraints on positions, written as rates.

    A constraint A(q, t) v + c(q, t) = 0 is holonomic if it can be written f(q, t) = 0, given the
    geometric constraints. That is so iff dw_i(X, Y) = 0 for its forms w_i = A_i dq + c_i dt and all
    X, Y that satisfy it and the geometric constraints (Frobenius); of one row in three coordinates
    it is Lemma 1 of Zhao et al. 2018. Time is one coordinate more, so rheonomic rows are decided as
    well. The verdict is for each constraint alone, and for all together, which may be holonomic
    where none is (wheels that leave a vehicle one degree of freedom).

    Here means: to first order at this configuration. Nearby means: at random configurations on the
    geometric constraints too, at times a little earlier or later. This identifies measures that
    vanish only here. How many independent combinations of the rows are holonomic follows from the
    dimension of what can be reached, along random ways from there.

    Works under `jit` and `vmap`; ranks are data. No verdict depends on units, on the order or scale
    of rows, or on rows that repeat others. Not differentiable. A row that is not linear in the
    velocities is not decided: there is no such condition for it. Geometric constraints are
    holonomic; the report also shows whether they depend on time. A driver that rests at all these
    times holds its joint fixed, and may make a system holonomic that is not so when it moves.

    **Arguments:**

    - `q` (nq,), `t` (s): the configuration. Where it is not closed the report states that.
    - `key`: a JAX random key. `samples`: number of neighbours, at least 1. `spread`: their
      distance, in characteristic lengths, radians and seconds, 0.001 to 1.
    - `tolerance`: of ranks (relative to the largest singular value) and of the measure.

    **Returns:** a `Holonomy`.

    **Raises:** `TypeError` or `ValueError` for an invalid state of the system, or an invalid
    setting.

    Zhao et al. 2018, definitions 1 and 2, lemma 1; Bloch 2003, Nonholonomic Mechanics
    and Control (Frobenius' theorem).
    """
    key = _settings.random_key(key, "key")
    samples = _settings.whole_number(samples, "samples", least=1)
    nearest, advice = system.tolerances.least_spread, "neighbours are about 0.05 away"
    spread = _settings.between(spread, "spread", least=nearest, most=1, advice=advice)
    limit = _settings.between(tolerance, "tolerance", RANK)
    options = _Options(key, samples, spread.astype(q.dtype), limit.astype(q.dtype))
    return _holonomy(system, q, jnp.asarray(t, q.dtype), options)


class _Options(NamedTuple):
    key: PRNGKeyArray
    samples: int
    spread: Scalar
    tolerance: Scalar


class _Points(NamedTuple):
    """Configurations at which rows are evaluated, the given one first. `counted`: closed,
    and with finite coefficients; the others are copies of the first. `rows` (rows,): which are
    forms; `linear` (rows,): which are linear in the velocities."""

    q: Float[Array, "points nq"]
    t: Float[Array, " points"]
    counted: Bool[Array, " points"]
    rows: Bool[Array, " rows"]
    linear: Bool[Array, " rows"]


@program
def _holonomy(
    system: AbstractSystem, q: Float[Array, " nq"], t: Scalar, options: _Options
) -> Holonomy:
    system, q, t = stop_gradient((system, q, t))
    structure = system.structure
    points = _points(system, q, t, options)
    rest = jnp.zeros((structure.nv,), q.dtype)
    check = check_numbers(system, q, system.characteristic_length(), q, rest, t)
    valid = check.valid & points.counted[0]
    coarse = jnp.full(points.t.shape, system.tolerances.rank_nearby, q.dtype)
    tolerances = jnp.maximum(options.tolerance, coarse.at[0].set(0.0))
    sets = jnp.asarray(_sets(structure))
    own_rows = _own_rows(structure)

    def look(at: tuple[Array, Array, Array]) -> tuple[PointMeasures | None, TimeMeasures]:
        forms = Forms(system, at[0], at[1], points.rows & valid)
        matrix, slope = forms.with_slope(forms.origin)
        of_time = measure_time(matrix, slope[:, :, -1], own_rows, at[2])
        if not len(sets):
            return None, of_time
        return measure_sets(matrix, slope, sets, velocity_rows(structure), at[2]), of_time

    found, of_time = lax.map(look, (points.q, points.t, tolerances))
    each, together = _nothing(structure, q.dtype, valid)
    if found is not None:
        whole = _integrability(system, points, found, options, valid, check.rounding)
        each, together = (jax.tree.map(lambda x, k=k: x[k], whole) for k in (slice(-1), -1))
    scleronomic, resting = _scleronomic(structure, points, of_time, valid, options.tolerance)
    return Holonomy(
        result=check.result(),
        residual=check.residual,
        each=each,
        together=together,
        scleronomic=scleronomic,
        resting=resting,
        linear=_all_of(structure, points.linear),
        counted=points.counted[1:],
        rounding=check.rounding,
        tolerance=options.tolerance,
        length=system.characteristic_length(),
        structure=structure,
    )


def _points(
    system: AbstractSystem, q: Float[Array, " nq"], t: Scalar, options: _Options
) -> _Points:
    structure, unit = system.structure, system.column_scale()

    def neighbour(key: PRNGKeyArray) -> tuple[Array, Array, BoolScalar]:
        of_q, of_t = jr.split(key)
        step = options.spread * unit * jr.normal(of_q, (structure.nv,), q.dtype)
        time = t + options.spread * jr.uniform(of_t, (), q.dtype, -1.0, 1.0)
        at = system.retract(q, step)
        if not structure.geometric.any():
            return at, time, jnp.asarray(True)
        at, _, closed = close_neighbour(system, at, time)
        return at, time, closed

    of_velocities, of_places = jr.split(options.key)
    near, times, closed = jax.vmap(neighbour)(jr.split(of_places, options.samples))
    # Where no neighbour was found the configuration itself is stored, and does not count.
    near = jnp.where(closed[:, None], near, q)
    times = jnp.where(closed, times, t)
    places = jnp.concatenate([q[None], near]), jnp.concatenate([t[None], times])
    linear, finite = jax.vmap(lambda q, t: linear_rows(system, q, t, of_velocities))(*places)
    counted = jnp.concatenate([jnp.ones((1,), bool), closed]) & finite
    linear = jnp.all(linear | ~counted[:, None], axis=0)
    asked = structure.geometric.copy()
    asked[velocity_rows(structure)] = True
    return _Points(*places, counted, linear & asked, linear)


def _sets(structure: Structure) -> Bool[np.ndarray, "sets rows"]:
    """The geometric rows; with those of each velocity constraint; with all. None where there are
    no velocity rows."""
    velocity = np.isin(np.arange(len(structure.rows)), velocity_rows(structure))
    own = [
        structure.geometric | (velocity & (structure.row_owner == k))
        for k in velocity_constraints(structure)
    ]
    if not own:
        return np.zeros((0, len(structure.rows)), bool)
    return np.stack([structure.geometric, *own, structure.geometric | velocity])


def _own_rows(structure: Structure) -> Int[np.ndarray, "constraints width"]:
    """Rows of each constraint, counted from 1, filled up with 0."""
    width = max((c.stop - c.start for c in structure.constraints), default=0)
    rows = np.zeros((len(structure.constraints), width), int)
    for k, own in enumerate(structure.constraints):
        rows[k, : own.stop - own.start] = np.arange(own.start, own.stop) + 1
    return rows


def _all_of(structure: Structure, rows: Bool[Array, " rows"]) -> Bool[Array, " constraints"]:
    """Is it so of all rows of each constraint?"""
    own = jnp.concatenate([jnp.ones((1,), bool), rows])[_own_rows(structure)]
    return jnp.all(own, axis=1)


def _integrability(
    system: AbstractSystem,
    points: _Points,
    found: PointMeasures,
    options: _Options,
    valid: BoolScalar,
    rounding: Scalar,
) -> Integrability:
    """Integrability of each velocity constraint, and of all together last."""
    structure, threshold = system.structure, jnp.maximum(options.tolerance, rounding)
    linear = _linear_sets(structure, points.linear)
    ranks = jnp.where(points.counted[:, None], found.rank, 0)
    generic = jnp.max(ranks, axis=0)
    regular = (points.counted[:, None] & (ranks == generic[None]))[:, 1:]
    passing = (found.passing > _PASSING)[:, 1:]
    measure = jnp.where(regular, found.bracket[:, 1:], 0.0)
    here, nearby = measure[0], jnp.max(measure[1:], axis=0)
    decided_here = valid & linear & regular[0] & passing[0]
    known = valid & linear & jnp.any(regular[1:], axis=0)
    decided = known & jnp.all(passing | ~regular, axis=0)
    integrable = Verdict.where(decided, jnp.maximum(here, nearby) <= threshold)
    rank = generic[1:] - generic[0]
    # For one row the verdict is sufficient.
    more = known & integrable.not_unique & (rank > 1)
    beyond, reached, near = _reached(system, points, generic[1:], more, rounding, options)
    count = jnp.where(integrable.unique, rank, jnp.clip(rank - beyond, 0, rank - 1))
    # Where rounding is the threshold, below it is nothing but that.
    exact = threshold <= options.tolerance
    lowest = jnp.where(exact, jnp.maximum(EXACT.doubtful_below * threshold, rounding), threshold)
    doubtful = (measure > lowest) & (measure < EXACT.doubtful_above * threshold)
    return Integrability(
        rank=jnp.where(known, rank, NO_COUNT),
        integrable_rows=jnp.where(decided & (reached | ~more), count, NO_COUNT),
        freedoms=jnp.where(decided, structure.nv - generic[1:], NO_COUNT),
        measure_here=jnp.where(decided_here, here, jnp.nan),
        measure=jnp.where(decided, nearby, jnp.nan),
        here=Verdict.where(decided_here, here <= threshold),
        integrable=integrable,
        linear=linear,
        consistent=jnp.all(passing | ~regular, axis=0),
        doubtful=jnp.any(doubtful, axis=0) | (near & more),
    )


def _linear_sets(structure: Structure, linear: Bool[Array, " rows"]) -> Bool[Array, " sets"]:
    asked = _sets(structure)[1:] & ~structure.geometric
    return jnp.all(linear[None] | ~jnp.asarray(asked), axis=1)


def _reached(
    system: AbstractSystem,
    points: _Points,
    rank: Int[Array, " sets"],
    asked: Bool[Array, " sets"],
    rounding: Scalar,
    options: _Options,
) -> tuple[Int[Array, " sets"], Bool[Array, " sets"], Bool[Array, " sets"]]:
    """Dimensions reachable under sets of rows, whose forms have that rank, beyond the velocities
    they allow; whether it is known, and whether a dimension is marginal. For the requested sets."""
    sets = _sets(system.structure)[1:]
    many = np.flatnonzero(np.sum(sets & ~system.structure.geometric, axis=1) > 1)
    none = jnp.zeros(sets.shape[:1], int), jnp.zeros(sets.shape[:1], bool)
    if not many.size:
        return *none, none[1]
    ways = min(_WAYS, options.samples)
    # Neighbours that count first.
    order = jnp.argsort(~points.counted[1:], stable=True)[:ways] + 1
    keys = jr.split(jr.fold_in(options.key, 1), ways)

    def from_neighbour(at: tuple[Array, Array, Array]) -> Reached:
        forms = Forms(system, at[0], at[1], points.rows)
        follow = jax.vmap(lambda rows, rank: follow_way(forms, rows, rank, at[2]))
        return follow(jnp.asarray(sets[many]), rank[many])

    def follow_ways() -> Reached:
        return lax.map(from_neighbour, (points.q[order], points.t[order], keys))

    def stay() -> Reached:
        shape = ways, many.size
        values = jnp.zeros((*shape, system.structure.nv + 1), points.q.dtype)
        return Reached(values, jnp.zeros(shape, bool))

    found = lax.cond(jnp.any(asked), follow_ways, stay)
    counted = found.integrated & points.counted[order][:, None]
    least = jnp.maximum(EXACT.reached, rounding)
    above, below = (
        jnp.max(jnp.where(counted, jnp.sum(found.values > x, axis=-1), 0), axis=0)
        for x in (_REACHED_BAND * least, least / _REACHED_BAND)
    )
    beyond = jnp.max(jnp.where(counted, jnp.sum(found.values > least, axis=-1), 0), axis=0)
    known = jnp.any(counted, axis=0)
    return (
        none[0].at[many].set(beyond),
        none[1].at[many].set(known),
        none[1].at[many].set(above != below),
    )


def _scleronomic(
    structure: Structure,
    points: _Points,
    found: TimeMeasures,
    valid: BoolScalar,
    tolerance: Scalar,
) -> tuple[Verdict, Bool[Array, " constraints"]]:
    """Verdict on each constraint; and the drivers at rest: their prescribed value depends on time
    all the same."""
    ranks = jnp.where(points.counted[:, None], found.rank, 0)
    regular = points.counted[:, None] & (ranks == jnp.max(ranks, axis=0, keepdims=True))
    change = jnp.max(jnp.where(regular, found.change, 0.0), axis=0)
    driven = np.array([c.kind == Driver.kind for c in structure.constraints], dtype=bool)
    decided = valid & _all_of(structure, points.rows)
    still = change <= tolerance
    return Verdict.where(decided, ~driven & still), decided & driven & still


def _nothing(
    structure: Structure, dtype: np.dtype, valid: BoolScalar
) -> tuple[Integrability, Integrability]:
    """Integrability of a system without velocity rows: trivially integrable."""

    def of(shape: tuple[int, ...]) -> Integrability:
        zero, no = jnp.zeros(shape, int), jnp.zeros(shape, bool)
        yes = Verdict.where(jnp.broadcast_to(valid, shape), jnp.ones(shape, bool))
        none = jnp.where(valid, jnp.zeros(shape, dtype), jnp.nan)
        return Integrability(
            rank=jnp.where(valid, zero, NO_COUNT),
            integrable_rows=jnp.where(valid, zero, NO_COUNT),
            freedoms=jnp.full(shape, NO_COUNT),
            measure_here=none,
            measure=none,
            here=yes,
            integrable=yes,
            linear=~no,
            consistent=~no,
            doubtful=no,
        )

    return of((0,)), of(())
