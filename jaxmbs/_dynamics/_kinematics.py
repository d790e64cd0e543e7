"""Kinematic analysis: the motion that drivers alone determine; and inverse dynamics along it."""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from .. import _printing, _settings
from .._custom_types import BoolScalar, IntScalar, Numbers, Scalar, Setting
from .._errors import AbstractError, AnalysisError
from .._formulations import AbstractFormulation, Accelerations, chosen_formulation
from .._formulations._elastic_resolution import check_compliances
from .._kinematics import (
    close,
    geometric_descriptor,
    is_closed,
    open_constraints,
    position_residual,
    undefined,
)
from .._limits import EXACT
from .._linalg import KKTSystem, motion_solver
from .._printing import AbstractAnswer, Description
from .._programs import program
from .._solution import RESULTS
from .._solvability import redundancy_at_precision, refuse_at_precision
from .._stop_gradient import stop_gradient
from .._system import (
    AbstractSystem,
    is_state,
    named_vanishing_rows,
    refuse_acceleration_level,
    refuse_internal,
    takes_state,
)
from ._chunks import first_failure, first_in_batches, is_traced, lanes_of, room_of
from ._elastic_theory import limits_left, limits_left_by_motion
from ._friction import solve_with_friction
from ._passages import (
    look_at_drivers,
    movers,
    null_space,
    Passage,
    Passages,
    passages_between,
    passed_lines,
    unsearched_remark,
)
from ._projection import errors, position_error, velocity_error
from ._trajectory import first_of, Statistics, Trajectory


# --------------------------------------------------------------------------------------------------
# Kinematic analysis: the motion that drivers alone determine.
#
# Every mobility is driven, so that Phi(q, t) = 0 determines q(t), and with its derivatives C v = -b
# and C dv/dt = Gamma (Nikravesh 1988, chapter 5; Flores 2015, chapter 4). Redundant rows do not
# disturb it: every solve has minimum norm.
#
# Positions follow one another: from each one a prediction and Newton's method, in smaller steps
# where that fails. This chain has no derivative. One more Newton step at each of the times, all at
# once, has the derivative of the implicit function theorem, and velocities and accelerations come
# with with it from one factor of S = C M^-1 C^T.
#
# Where its numbers are known a motion is made in chunks of so many times: how many there are is
# data, and so is the last point of the chain, from which the next chunk goes on.
# --------------------------------------------------------------------------------------------------


# A prediction further off than this (scaled residual) may lead to another branch: the step is
# made smaller. So is one that fails, down to the smallest part of an interval.
_PREDICTED = 0.05
_LEAST_PART = 1e-7

# Steps at most, to the first time and to others, where more are those of a wrong branch or of a
# singular configuration.
_MAX_STEPS, _SLOW = 20, 7

# Where C is compared at both ends of a step: it ends where this part of a random motion is left, or
# after so many turns; who needs fewer than the third takes longer steps.
_LEFT, _TURNS, _FEW = 0.05, 8, 4

# Where it still changes its rank in a step that moves the bodies by no more than the first
# (characteristic lengths or radians), the next one is as long as the second, and leads across.
_SHORT, _ACROSS = 3e-3, 1.5e-2

# Newton's steps together may be this part of the step; of one from rest (where speeds were the
# second part of what they are) they may be as long as the third.
_CORRECTED, _RESTING, _ALLOWED = 0.2, 0.01, 0.05

# A prediction has to hold at this part of its step as well.
_ON_THE_WAY = 0.4

# A random motion of which this much is left after the constraints took their part is not
# determined by them; at the start less is enough to look closely.
_FREE = 1e-3
_SUSPECT = 1e-5

# Velocities for which the dense look comes first, as it is cheap.
_SMALL = 300


class Kinematics(AbstractAnswer):
    """A motion that drivers determine, at its times.

    - `times` (n,): s. `q` (n, nq), `v` (n, nv), `acceleration` (n, nv).
    - `position_error`, `velocity_error` (n,): largest residual of the geometric rows and of
      C v + b, lengths relative to the characteristic length.
    - `reached` (n,): False for times after an early end (only seen inside a transformation).
    - `regular` (n,): False where, on the way from the time before, the motion passed a singular
      configuration, or came so close to one (about 3e-3 of the characteristic length or rad) that
      the two cannot be told apart. Elsewhere each step has kept the rank of C, and so its branch.
    - `result`: a `RESULTS` member, `message`: what it means here. `system`: whose motion it is.
    - `passed`: singular configurations on the way, between the times as well, with what is not
      determined there (`Passage`); `passages` (k,): their times (s). `passages_remark`: where they
      were not looked for, and what to try: inside a transformation, and in systems of more than
      400 rows or velocities.
    """

    times: Float[Array, " n"]
    q: Float[Array, "n nq"]
    v: Float[Array, "n nv"]
    acceleration: Float[Array, "n nv"]
    position_error: Float[Array, " n"]
    velocity_error: Float[Array, " n"]
    reached: Bool[Array, " n"]
    regular: Bool[Array, " n"]
    result: RESULTS
    system: AbstractSystem
    message: str = eqx.field(static=True, default="")
    passed: tuple[Passage, ...] = eqx.field(static=True, default=())
    passages_remark: str = eqx.field(static=True, default="")

    @property
    def passages(self) -> Float[np.ndarray, " k"]:
        """Times (s) of the singular configurations on the way."""
        return np.array([own.time for own in self.passed])

    def described(self) -> Description:
        if self.times.ndim > 1:
            return _printing.batch("motions", self.times.shape[:-1])
        first, last = np.asarray(self.times)[[0, -1]]
        return Description(
            [
                f"{self.times.shape[0]} states from {first:g} s to {last:g} s, as drivers "
                "prescribe them",
                f"closed within {_printing.largest(self.position_error)}, velocities within "
                f"{_printing.largest(self.velocity_error)}",
                *self.passage_lines(),
                self.message,
            ]
        )

    def passage_lines(self) -> list[str]:
        """Sentences on the singular configurations on the way."""
        return passed_lines(len(self.passed), self.passages, self.passed, self.passages_remark)


class KinematicsError(AbstractError, RuntimeError):
    """A motion that ended too early. `kinematics`: everything computed until then."""

    kinematics: Kinematics

    def __init__(self, kinematics: Kinematics):
        self.kinematics = kinematics

    def __str__(self) -> str:
        return self.kinematics.message


@takes_state(decides_rank=True)
def kinematics(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    times: Setting[Numbers],
    *,
    throw: Setting[bool] = True,
) -> Kinematics:
    """Positions, velocities and accelerations of a system whose drivers determine them.

    Masses and forces mean nothing here. Differentiable, forward and reverse, in the times and
    every array of the system (in q the derivative is zero: it chooses the branch alone). Under
    `jit`, `vmap` and differentiation failures are told by the `result` alone. A singular
    configuration between two of the times is passed on the predicted branch.

    **Arguments:** `q` (nq,): closed, or nearly so, at the first time; `times` (n,): s, increasing.

    **Returns:** `Kinematics`.

    **Raises:** `ValueError` if a mobility is not driven, with the number and a body that moves, or
    if nothing but the rounding of the system's numbers holds it, as for `simulate`.
    `KinematicsError`, which holds the motion until then, if a configuration cannot be reached
    (with the time and what stays open) or does not determine the velocities; with `throw=False`
    the `result` and the `message` say so instead.
    """
    throw = _settings.flag(throw, "throw")
    refuse_internal(system.structure, "kinematic analysis", "simulate the motion")
    advice = "simulate the motion, or leave the time_constant of drivers out"
    refuse_acceleration_level(system.structure, "kinematic analysis", advice)
    grid = _settings.increasing(times, "times", q.dtype, least=1)
    begin = first_of(grid)
    rest = jnp.zeros((system.structure.nv,), q.dtype)
    # Within their precision a mobility is not driven, and the rounding alone holds it.
    inexact = redundancy_at_precision(system, q, rest, begin)
    refuse_at_precision(inexact, "a kinematic analysis")
    if system.structure.nv <= _SMALL:
        _refuse_undriven(system, q, begin)
    in_chunks = _in_chunks(system, q, grid)
    if in_chunks is None:
        found, _ = _follow(system, q, grid)
        remark = unsearched_remark("a transformation knows no numbers (see `regular`)")
        return dataclasses.replace(found, passages_remark=remark)
    found, free = in_chunks
    if free[0] > _SUSPECT:
        _refuse_undriven(system, jnp.asarray(np.asarray(found.q)[0]), begin)
    if not RESULTS[found.result]:
        return _with_passages(_with_limits(found))
    found = _with_passages(_with_limits(_until_failure(found, free)))
    if throw:
        raise KinematicsError(found)
    return found


# ---------------------------------------------------------------------------------------------
# What is driven
# ---------------------------------------------------------------------------------------------


def _refuse_undriven(system: AbstractSystem, q: Float[Array, " nq"], t: Scalar) -> None:
    structure = system.structure
    rows = system.constraint_matrix(q, jnp.zeros((structure.nv,), q.dtype), t)
    if isinstance(rows, Tracer):
        return
    matrix, length = np.asarray(rows), float(system.characteristic_length())
    free = null_space(matrix, structure, length)
    if free.shape[1]:
        rest = jnp.zeros((structure.nv,), q.dtype)
        vanishing = named_vanishing_rows(system, q, rest, t)
        count = free.shape[1]
        raise ValueError(
            f"{count} mobilit{'y is' if count == 1 else 'ies are'} not driven: "
            f"{', '.join(movers(free, structure, length))}. Add a driver for each, or use "
            f"simulate.{f' At rest {vanishing}' if vanishing else ''}"
        )
    free = null_space(matrix[structure.geometric_rows], structure, length)
    if free.shape[1]:
        raise ValueError(
            f"velocity constraints determine {free.shape[1]} of the velocities "
            f"({', '.join(movers(free, structure, length))}), so that positions follow from the "
            "motion before: use simulate."
        )


# ---------------------------------------------------------------------------------------------
# The motion
# ---------------------------------------------------------------------------------------------


def _rows_at(system: AbstractSystem, q: Float[Array, " nq"], t: Scalar) -> KKTSystem:
    """By the geometric rows, which determine the motion."""
    return KKTSystem(geometric_descriptor(system, q, t), motion_solver())


def _drift(system: AbstractSystem, q: Float[Array, " nq"], t: Scalar) -> Float[Array, " rows"]:
    """b = dPhi/dt, zero in the place of velocity constraints."""
    rest = jnp.zeros((system.structure.nv,), q.dtype)
    return jnp.where(system.structure.geometric, system.velocity_residual(q, rest, t), 0.0)


class _Point(NamedTuple):
    """State of the chain. `t`, `q`, `v`: the last point on it, `slope`: dv/dt there, by
    differences; `trial`: a configuration on the way to the next one, at `next`, after `tried` of
    Newton's steps, `corrected` their length; `middle`: the prediction within the step;
    `probe`: a motion by which C is compared at both, `size` its length; `part`: of
    the interval, of this step; `across`: does it lead across a singular configuration, `barred`:
    none does from this point. `answer`: at the end of the interval, `regular`: of this interval."""

    t: Scalar
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    slope: Float[Array, " nv"]
    next: Scalar
    trial: Float[Array, " nq"]
    middle: Float[Array, " nq"]
    tried: IntScalar
    corrected: Scalar
    probe: Float[Array, " nv"]
    size: Scalar
    part: Scalar
    across: BoolScalar
    barred: BoolScalar
    answer: Float[Array, " nq"]
    regular: BoolScalar
    there: BoolScalar
    ok: BoolScalar


class _Way(NamedTuple):
    """Points of the chain at the times: configurations without derivative, how far they go, and
    whether each step to them has kept the rank."""

    q: Float[Array, "n nq"]
    reached: Bool[Array, " n"]
    regular: Bool[Array, " n"]


def _before(q: Any, time: Any, nv: int, like: Any) -> _Point:
    """The chain before its first point, with the numbers of NumPy or JAX (`like`)."""
    rest = like.zeros((nv,), q.dtype)
    nothing, one = like.zeros((), q.dtype), like.ones((), q.dtype)
    yes, no, none = like.asarray(True), like.asarray(False), like.asarray(0)
    begin = time, q, rest, rest, time, q, q, none, nothing, rest, one, one
    return _Point(*begin, no, no, q, yes, no, yes)


def _chain(
    system: AbstractSystem,
    start: _Point,
    times: Float[Array, " n"],
    intervals: Float[Array, " n"],
    count: Any,
) -> tuple[_Point, _Way]:
    """The chain at the first `count` of the times, from a point on; `intervals`: from the time
    before each. One loop of Newton's steps, each with one factor, which gives the velocity where
    they have converged, and compares C there with C at the point before."""
    structure, unit = system.structure, system.column_scale()
    scale = system.residual_scale()
    dtype = start.q.dtype
    rest = jnp.zeros((structure.nv,), dtype)
    yes, no, one = jnp.asarray(True), jnp.asarray(False), jnp.ones((), dtype)
    none = jnp.asarray(0)
    random = jnp.asarray(np.random.default_rng(0).normal(size=structure.nv), dtype)

    def predicted(point: _Point, h: Scalar) -> Float[Array, " nq"]:
        return system.retract(point.q, h * point.v + h**2 / 2 * point.slope)

    def length(motion: Float[Array, " nv"]) -> Scalar:
        return jnp.sqrt(jnp.mean((motion / unit) ** 2))

    def aimed(point: _Point, target: Scalar, interval: Scalar) -> _Point:
        """With a prediction of the next point. What C changed most by is changed most again."""
        left, speed = target - point.t, length(point.v)
        h = jnp.where(
            point.across,
            _ACROSS / jnp.where(speed > 0, speed, _ACROSS / left),
            point.part * interval,
        )
        h = jnp.minimum(h, left)
        t = jnp.where(h >= left, target, point.t + h)
        probe = point.probe / jnp.where(point.size > 0, point.size, 1.0) + unit * random
        probe = probe / length(probe)
        # (In one program for both.)
        ends = jnp.stack([h, _ON_THE_WAY * h])
        trial, middle = jax.vmap(lambda h: predicted(point, h))(ends)
        point = point._replace(next=t, trial=trial, middle=middle, tried=none, corrected=0 * one)
        return point._replace(probe=probe, size=one)

    def residuals(point: _Point) -> Float[Array, "2 rows"]:
        """At the trial, and on the way to the prediction: drivers may go there and back."""
        trials = jnp.stack([point.trial, point.middle])
        at = jnp.stack([point.next, point.t + _ON_THE_WAY * (point.next - point.t)])
        return jax.vmap(lambda q, t: position_residual(system, q, t))(trials, at)

    def rates(point: _Point) -> Float[Array, "2 rows"]:
        """dPhi/dt at the trial, and how far C there differs from C before, times the probe."""
        lanes = (
            jnp.stack([point.trial, point.trial, point.q, point.q]),
            jnp.stack([rest, point.probe, rest, point.probe]),
            jnp.stack([point.next, point.next, point.t, point.t]),
        )
        drift, there, before, here = jax.vmap(system.velocity_residual)(*lanes)
        change = (there - drift) - (here - before)
        return jnp.where(structure.geometric, jnp.stack([drift, change]), 0.0)

    def move(point: _Point, target: Scalar, interval: Scalar) -> _Point:
        trial, t, first = point.trial, point.next, interval <= 0
        open_by = residuals(point)
        error, on_the_way = jnp.max(jnp.abs(open_by / scale[None]), axis=1, initial=0.0)
        rows = jnp.concatenate([open_by[:1], rates(point)])
        back, v, probe = jax.vmap(_rows_at(system, trial, t).correction)(rows)
        correction, speed, size, before = jax.vmap(length)(jnp.stack([back, v, probe, point.v]))
        closer = point._replace(
            trial=system.retract(trial, -back),
            tried=point.tried + 1,
            corrected=point.corrected + correction,
            probe=probe,
            size=size,
        )

        # The step that is left ends at rounding.
        closed = (error <= EXACT.last_residual) & (first | (correction <= EXACT.last_step))
        same_rank = first | (size <= _LEFT)
        h = t - point.t
        # A motion that begins at rest has no prediction.
        resting = ~point.across & (before <= _RESTING * speed)
        limit = jnp.where(resting, _ALLOWED, _CORRECTED * h * before)
        away = ~first & (closer.corrected > limit + EXACT.last_step)
        done = closed & (same_rank | point.across) & ~away
        known = (h > 0) & jnp.any(point.v != 0)
        slope = jnp.where(known, (-v - point.v) / jnp.where(known, h, 1.0), 0.0)
        part = jnp.where(point.tried < _FEW, jnp.minimum(2 * point.part, 1.0), point.part)
        answered = closer._replace(
            answer=closer.trial, there=t >= target, regular=point.regular & same_rank
        )
        # What is next to a singular configuration is not a point to go on from.
        stays = point.across & (t >= target)
        new = {"t": t, "q": closer.trial, "v": -v, "slope": slope, "part": part, "barred": no}
        kept = {name: jnp.where(stays, getattr(point, name), x) for name, x in new.items()}
        arrived = answered._replace(across=no, **kept)

        off = jnp.maximum(error, on_the_way) > _PREDICTED
        far = away | ((point.tried == 0) & ~first & off)
        grows = (point.tried >= _FEW) & (size > point.size)
        turned = closed & (grows | (point.tried >= _TURNS))
        slow = ~closed & (point.tried >= jnp.where(first, _MAX_STEPS, _SLOW))
        lost = ~done & (far | turned | slow | ~jnp.isfinite(error))
        across = lost & (h * before <= _SHORT) & ~point.barred
        part = jnp.where(across, point.part, point.part / 2)
        shorter = point._replace(
            part=part,
            probe=probe,
            size=size,
            across=across,
            barred=point.barred | point.across,
            ok=(part > _LEAST_PART) & ~first,
        )
        chosen = _choose(done, arrived, _choose(lost, shorter, closer))
        return _choose(done | lost, aimed(chosen, target, interval), chosen)

    def reach(k: IntScalar, so_far: tuple[_Point, _Way]) -> tuple[_Point, _Way]:
        point, way = so_far
        target, interval = times[k], intervals[k]
        point = point._replace(there=no, part=one, regular=yes, barred=no)
        point = aimed(point, target, interval)
        point = lax.while_loop(
            lambda p: p.ok & ~p.there, lambda p: move(p, target, interval), point
        )
        new = _Way(point.answer, point.there, point.regular & point.there)
        return point, jax.tree.map(lambda rows, x: rows.at[k].set(x), way, new)

    empty = jnp.zeros((len(times),), bool)
    way = _Way(jnp.zeros((len(times), structure.nq), dtype), empty, empty)
    return lax.fori_loop(0, count, reach, (start, way))


def _choose(condition: BoolScalar, one: _Point, other: _Point) -> _Point:
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), one, other)


class _State(NamedTuple):
    """One state of the motion; `free`: how much of a random motion its rows leave."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    acceleration: Float[Array, " nv"]
    position_error: Scalar
    velocity_error: Scalar
    free: Scalar


def _state(system: AbstractSystem, near: Float[Array, " nq"], t: Scalar) -> _State:
    """From a configuration that is exact to rounding, without derivative, with one factor."""
    structure = system.structure
    unit = system.column_scale()
    signs = np.random.default_rng(0).choice((-1.0, 1.0), structure.nv)
    probe = unit * jnp.asarray(signs, near.dtype)
    rows = _rows_at(system, near, t)
    q = system.retract(near, -rows.correction(position_residual(system, near, t)))
    # The same factor, as nothing changed but the derivative.
    rows = KKTSystem(geometric_descriptor(system, q, t), motion_solver(), rows.factor)

    drift, allowed = _drift(system, q, t), rows.descriptor.apply_C(probe)

    def refined(_: IntScalar, x: Float[Array, "3 nv"]) -> Float[Array, "3 nv"]:
        """One more correction of -v, of what the rows leave of the probe, and of the acceleration
        at that v: next to a singular configuration the factor has lost digits."""
        offset = jnp.where(structure.geometric, system.acceleration_offset(q, -x[0], t), 0.0)
        left = jnp.stack([drift, allowed, offset]) - jax.vmap(rows.descriptor.apply_C)(x)
        return x + jax.vmap(rows.correction)(left)

    v, held, acceleration = lax.fori_loop(0, 3, refined, jnp.zeros((3, structure.nv), near.dtype))
    free = jnp.max(jnp.abs((probe - held) / unit), initial=0.0)
    closure, speed = position_error(system, q, t), velocity_error(system, q, -v, t)
    return _State(q, -v, acceleration, closure, speed, free)


@program
def _follow(
    system: AbstractSystem, q: Float[Array, " nq"], times: Float[Array, " n"]
) -> tuple[Kinematics, Float[Array, " n"]]:
    """The motion, and how free it is at each time: more than 1 where it fails."""
    still, begin, grid = stop_gradient((system, q, times))
    intervals = jnp.diff(grid, prepend=grid[:1])
    start = _before(begin, grid[0], system.structure.nv, jnp)
    _, way = _chain(still, start, grid, intervals, len(times))
    states = jax.vmap(lambda q, t: _state(system, q, t))(way.q, times)
    reached = way.reached
    undetermined = reached & _not_determined(states)
    rates = jnp.concatenate([states.v, states.acceleration], axis=1)
    result = RESULTS.where(
        jnp.all(jnp.isfinite(rates)), RESULTS.successful, RESULTS.state_not_finite
    )
    short = ~jnp.all(reached) | jnp.any(undetermined)
    result = RESULTS.where(short, RESULTS.step_too_small, result)
    result = RESULTS.where(reached[0], result, RESULTS.assembly_did_not_close)
    rest = jnp.zeros((system.structure.nv,), q.dtype)
    valid = is_state(system.structure, q, rest, times[0])
    result = RESULTS.where(valid, result, RESULTS.state_not_valid)
    found = Kinematics(times, *states[:5], reached, way.regular, result, system)
    return found, jnp.where(undetermined, 1.0, 0.0) + states.free


def _not_determined(states: _State) -> Bool[Array, " n"]:
    """Are velocities free, or do the rows contradict each other?"""
    largest = jnp.maximum(1.0, jnp.max(jnp.abs(states.v), axis=1, initial=0.0))
    return (states.free > _FREE) | (states.velocity_error > EXACT.velocity * largest)


class _Chunk(NamedTuple):
    """The motion at the times of a chunk."""

    way: _Way
    states: _State
    undetermined: Bool[Array, " n"]


@program
def _chunk(
    system: AbstractSystem,
    point: _Point,
    times: Float[Array, " n"],
    intervals: Float[Array, " n"],
    count: IntScalar,
) -> tuple[_Point, _Chunk]:
    """The motion from a point of the chain on, at the first `count` of the times."""
    point, way = _chain(system, point, times, intervals, count)
    lanes = lanes_of(system)
    states = first_in_batches(lambda x: _state(system, *x), (way.q, times), count, lanes)
    states = jax.tree.map(lambda x: x[: len(times)], states)
    return point, _Chunk(way, states, way.reached & _not_determined(states))


def _in_chunks(
    system: AbstractSystem, q: Float[Array, " nq"], grid: Float[Array, " n"]
) -> tuple[Kinematics, Float[np.ndarray, " n"]] | None:
    """As `_follow`, in chunks, until it fails; None inside of a transformation."""
    if is_traced((system, q, grid)):
        return None
    times, room, nv = np.asarray(grid), room_of(system), system.structure.nv
    intervals = np.diff(times, prepend=times[:1])
    point = _before(np.asarray(q), times[0], nv, np)
    chunks: list[_Chunk] = []
    for k in range(0, len(times), room):
        own = slice(k, k + room)
        count = len(times[own])
        # Padded with the last one.
        places = np.minimum(np.arange(k, k + room), len(times) - 1)
        data: Any = jax.device_put((point, times[places], intervals[places], np.asarray(count)))
        point, chunk = _chunk(system, *data)
        if is_traced(chunk):
            return None
        chunks.append(jax.tree.map(lambda x, n=count: np.asarray(x)[:n], chunk))
        if not chunks[-1].way.reached.all():
            break
    way, states, undetermined = jax.tree.map(lambda *x: np.concatenate(x), *chunks)
    times = times[: len(undetermined)]
    result = RESULTS.successful
    if not (np.isfinite(states.v).all() and np.isfinite(states.acceleration).all()):
        result = RESULTS.state_not_finite
    if not way.reached.all() or undetermined.any():
        result = RESULTS.step_too_small
    if not way.reached[0]:
        result = RESULTS.assembly_did_not_close
    known: Any = jax.device_put((times, states, way, result))
    known_times, states, way, result = known
    found = Kinematics(
        known_times,
        states.q,
        states.v,
        states.acceleration,
        states.position_error,
        states.velocity_error,
        way.reached,
        way.regular,
        result,
        system,
    )
    return found, np.where(undetermined, 1.0, 0.0) + np.asarray(states.free)


# ---------------------------------------------------------------------------------------------
# What failed
# ---------------------------------------------------------------------------------------------


def _until_failure(found: Kinematics, free: np.ndarray) -> Kinematics:
    """The part that is known, and what ended it."""
    bad = (free >= 1) | ~np.asarray(found.reached)
    last = int(np.argmax(bad)) if bad.any() else len(bad)
    message = _explanation(found, last)
    arrays = (
        "times",
        "q",
        "v",
        "acceleration",
        "position_error",
        "velocity_error",
        "reached",
        "regular",
    )
    kept = {name: jnp.asarray(np.asarray(getattr(found, name))[:last]) for name in arrays}
    return dataclasses.replace(found, **kept, message=message)


def _with_limits(found: Kinematics) -> Kinematics:
    """With the elastic bodies that the motion takes beyond their theory."""
    left = limits_left_by_motion(found.system, found.times, found.q, found.v)
    message = "\n".join([*([found.message] if found.message else []), *left])
    return dataclasses.replace(found, message=message) if left else found


def _with_passages(found: Kinematics) -> Kinematics:
    """With the singular configurations on the way."""
    arrays = (np.asarray(x) for x in (found.times, found.q, found.v, found.regular))
    passed, remark = passages_between(found.system, *arrays)
    return dataclasses.replace(found, passed=passed, passages_remark=remark)


def _explanation(found: Kinematics, index: int) -> str:
    if index == len(found.times):
        return RESULTS[found.result]
    system, t = found.system, found.times[index]
    when = f"At {float(t):.9g} s"
    if bool(found.reached[index]):
        return f"{when} {_undetermined(found, index)}"
    before = max(index - 1, 0)
    unknown = undefined(system, found.q[before], t)
    if unknown:
        return unknown
    _, residual = close(system, found.q[before], t)
    advice = (
        "assemble the start first, or start closer"
        if index == 0
        else f"the motion is known until {float(found.times[before]):.9g} s"
    )
    if bool(is_closed(residual)):
        return (
            f"{when} the configuration could not be followed, though the mechanism closes "
            f"there: it has to change its branch on the way; {advice}."
        )
    name, amount, unit = open_constraints(system, residual)[0]
    return (
        f"{when} no configuration nearby satisfies all joints and drivers: {name!r} stays open "
        f"by {amount:.3g} {unit}; {advice}. {look_at_drivers(system.structure)}"
    )


def _undetermined(found: Kinematics, index: int) -> str:
    system, t = found.system, found.times[index]
    structure = system.structure
    rest = jnp.zeros((structure.nv,), found.q.dtype)
    matrix = np.asarray(system.constraint_matrix(found.q[index], rest, t))
    length = float(system.characteristic_length())
    free = null_space(matrix, structure, length, system.tolerances.rank_coarse)
    text = "the configuration is singular: the drivers do not determine the velocities"
    if free.shape[1]:
        return f"{text} there, {', '.join(movers(free, structure, length))} can move freely."
    scaled = np.abs(np.asarray(system.velocity_residual(found.q[index], found.v[index], t)))
    name = structure.row_names[int(np.argmax(scaled))]
    return f"{text} there, or contradict each other (row {name!r})."


@takes_state(decides_rank=True)
def inverse_dynamics(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    times: Setting[Numbers],
    *,
    formulation: Setting[AbstractFormulation | None] = None,
    throw: Setting[bool] = True,
) -> Trajectory:
    """The forces of a motion that drivers determine: driving forces and torques, and the
    reaction of every joint.

    The motion is that of `kinematics`; its multipliers solve M dv/dt + C^T lambda = F, friction
    included (Flores 2015, chapter 5). `reactions()` of the result gives the physical wrenches
    with their verdicts, and `reactions().driving(name)` the force or torque of a driver.
    Differentiable as `kinematics` is.

    **Arguments:** `q` (nq,): closed, or nearly so, at the first time; `times` (n,): s, increasing;
    `formulation`: which of the possible multipliers, default as of `simulate`.

    **Returns:** a `Trajectory` without steps of an integrator; its errors are those of
    `Trajectory`, rows as they are, its passages those of `kinematics`.

    **Raises:** as `kinematics`; `AnalysisError` if the multipliers cannot be found.
    """
    chosen = chosen_formulation(formulation, system.structure)
    check_compliances(chosen, system.structure)
    found = kinematics(system, q, times, throw=throw)
    trajectory = _inverse_in_chunks(found, chosen)
    if trajectory is None:
        trajectory = _loaded(found, chosen)
    # Of a motion that ended early as well: what is known of it is on the way.
    passed = jnp.asarray(found.passages, q.dtype)
    count = jnp.asarray(len(passed))
    passes = Passages(passed, count, passed=found.passed, remark=found.passages_remark)
    trajectory = dataclasses.replace(trajectory, passes=passes)
    trajectory = _with_actuator_limits(trajectory)
    failed = trajectory.result != RESULTS.successful
    if throw and not isinstance(failed, Tracer) and bool(failed):
        raise AnalysisError(RESULTS[trajectory.result])
    return trajectory


def _with_actuator_limits(trajectory: Trajectory) -> Trajectory:
    """With the elastic bodies that forces take beyond their theory, beside those that the motion
    does."""
    left = limits_left(trajectory)
    if not left:
        return trajectory
    by_motion = limits_left_by_motion(
        trajectory.system, trajectory.times, trajectory.q, trajectory.v
    )
    lines = [one for one in trajectory.message.splitlines() if one not in by_motion]
    return dataclasses.replace(trajectory, message="\n".join([*lines, *left]))


class _Loads(NamedTuple):
    """Forces of a state, and its errors (see `Trajectory`)."""

    found: Accelerations
    position_error: Float[Array, ""]
    velocity_error: Float[Array, ""]


def _loads(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Float[Array, ""],
) -> _Loads:
    return _Loads(
        solve_with_friction(system, q, v, t, formulation=formulation), *errors(system, q, v, t)
    )


@program
def _loaded(found: Kinematics, formulation: AbstractFormulation) -> Trajectory:
    states = found.q, found.v, found.times
    loads = jax.vmap(lambda *x: _loads(found.system, formulation, *x))(*states)
    first = RESULTS.successful
    if found.times.shape[0]:
        first = first_failure(loads.found.result)
    result = RESULTS.where(found.result == RESULTS.successful, first, found.result)
    return _trajectory(found, formulation, loads, result)


@program
def _inverse_chunk(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    states: tuple[Float[Array, "n nq"], Float[Array, "n nv"], Float[Array, " n"]],
    count: IntScalar,
) -> _Loads:
    """Loads of the first `count` states."""
    lanes = lanes_of(system)
    return first_in_batches(lambda x: _loads(system, formulation, *x), states, count, lanes)


def _inverse_in_chunks(found: Kinematics, formulation: AbstractFormulation) -> Trajectory | None:
    """As `_loaded`, so many states at a time: their number is data. None inside of a
    transformation."""
    if is_traced((found, formulation)):
        return None
    states = tuple(np.asarray(x) for x in (found.q, found.v, found.times))
    room, most = room_of(found.system), len(states[0])
    chunks: list[_Loads] = []
    for k in range(0, max(most, 1), room):
        count = min(room, most - k)
        places = np.minimum(np.arange(k, k + room), max(most - 1, 0))
        given = tuple(x[places] if most else np.zeros((room, *x.shape[1:])) for x in states)
        data: Any = jax.device_put((given, np.asarray(count)))
        loads = _inverse_chunk(found.system, formulation, *data)
        if is_traced(loads):
            return None
        chunks.append(jax.tree.map(lambda x, n=count: np.asarray(x)[:n], loads))
    loads = jax.tree.map(lambda *x: np.concatenate(x), *chunks)
    result = found.result
    if not RESULTS[result]:
        codes, well = (jax.tree.leaves(x)[0] for x in (loads.found.result, RESULTS.successful))
        bad = np.flatnonzero(codes != np.asarray(well))
        if bad.size:
            result = jax.tree.map(lambda x: jnp.asarray(x[bad[0]]), loads.found.result)
    loads = jax.device_put(loads)
    return _trajectory(found, formulation, loads, result)


def _trajectory(
    found: Kinematics, formulation: AbstractFormulation, loads: _Loads, result: RESULTS
) -> Trajectory:
    none = jnp.asarray(0)
    return Trajectory(
        found.times,
        found.q,
        found.v,
        found.acceleration,
        loads.found.multipliers,
        loads.position_error,
        loads.velocity_error,
        found.reached,
        Passages.none(found.q.dtype),
        jnp.asarray(False),
        Statistics(none, none, none),
        result,
        found.system,
        found.message,
        formulation.elastic,
    )
