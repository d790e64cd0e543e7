"""Kinematic analysis: the motion that drivers alone determine.

Every mobility is driven, so that Phi(q, t) = 0 determines q(t), and with its derivatives
C v = -b and C dv/dt = Gamma (Nikravesh 1988, chapter 5; Flores 2015, chapter 4). Redundant rows do
not disturb it: every solve has minimum norm.

Positions follow one another: from each one a prediction and Newton's method, in smaller steps
where that fails. This chain has no derivative. One more Newton step at each of the times, all at
once, has the derivative of the implicit function theorem, and velocities and accelerations come
with it from one factor of S = C M^-1 C^T.
"""

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from .. import _printing, _settings
from .._custom_types import BoolScalar, IntScalar, Numbers, Scalar, Setting
from .._kinematics import (
    close,
    geometric_descriptor,
    is_closed,
    open_constraints,
    position_residual,
    undefined,
)
from .._linalg import KKTSystem, motion_solver
from .._solution import RESULTS
from .._solvability import redundancy_at_precision, warn_at_precision
from .._stop_gradient import stop_gradient
from .._system import (
    AbstractSystem,
    is_state,
    named_vanishing_rows,
    refuse_acceleration_level,
    refuse_internal,
    takes_state,
)
from ._elastic_theory import limits_left_by_motion
from ._mobility import look_at_drivers, movers, null_space
from ._passages import Passage, passages_between, passed_lines, unsearched_remark
from ._projection import MET, position_error, velocity_error


# A prediction further off than this (scaled residual) may lead to another branch: the step is
# made smaller. So is one that fails, down to the smallest part of an interval.
_PREDICTED = 0.05
_LEAST_PART = 1e-7

# From this scaled residual one more step ends at rounding; steps at most.
_CLOSE = 1e-9
_MAX_STEPS = 20

# A random motion of which this much is left after the constraints took their part is not
# determined by them; at the start less is enough to look closely.
_FREE = 1e-3
_SUSPECT = 1e-5

# Velocities for which the dense look comes first, as it is cheap.
_SMALL = 300

# Next to a singular configuration ranks are decided coarsely.
_COARSE = 1e-3


class Kinematics(eqx.Module):
    """A motion that drivers determine, at its times.

    - `times` (n,): s. `q` (n, nq), `v` (n, nv), `acceleration` (n, nv).
    - `position_error`, `velocity_error` (n,): largest residual of the geometric rows and of
      C v + b, lengths relative to the characteristic length.
    - `reached` (n,): False for times after an early end (only seen inside a transformation).
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
    result: RESULTS
    system: AbstractSystem
    message: str = eqx.field(static=True, default="")
    passed: tuple[Passage, ...] = eqx.field(static=True, default=())
    passages_remark: str = eqx.field(static=True, default="")

    @property
    def passages(self) -> Float[np.ndarray, " k"]:
        """Times (s) of the singular configurations on the way."""
        return np.array([own.time for own in self.passed])

    def __str__(self) -> str:
        if self.times.ndim > 1:
            return _printing.batch("motions", self.times.shape[:-1])
        lines = [
            f"{self.times.shape[0]} states from {float(self.times[0]):g} s to "
            f"{float(self.times[-1]):g} s, as drivers prescribe them",
            f"closure within {_printing.largest(self.position_error)}, velocities within "
            f"{_printing.largest(self.velocity_error)}",
        ]
        lines += [
            *passed_lines(len(self.passed), self.passages, self.passed, self.passages_remark),
            *([self.message] if self.message else []),
        ]
        return "\n".join(lines)


class KinematicsError(RuntimeError):
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

    **Raises:** `ValueError` if a mobility is not driven, with the number and a body that moves.
    `KinematicsError`, which holds the motion until then, if a configuration cannot be reached
    (with the time and what stays open) or does not determine the velocities; with `throw=False`
    the `result` and the `message` say so instead.
    """
    throw = _settings.flag(throw, "throw")
    refuse_internal(system.structure, "kinematic analysis", "simulate the motion")
    advice = "simulate the motion, or leave the time_constant of drivers out"
    refuse_acceleration_level(system.structure, "kinematic analysis", advice)
    grid = _settings.increasing(times, "times", q.dtype, least=1)
    rest = jnp.zeros((system.structure.nv,), q.dtype)
    warn_at_precision(redundancy_at_precision(system, q, rest, grid[0]))
    if system.structure.nv <= _SMALL:
        _refuse_undriven(system, q, grid[0])
    found, free = _follow(system, q, grid)
    failed = found.result != RESULTS.successful
    if isinstance(failed, Tracer):
        remark = unsearched_remark("a transformation knows no numbers")
        return dataclasses.replace(found, passages_remark=remark)
    if bool(free[0] > _SUSPECT):
        _refuse_undriven(system, found.q[0], grid[0])
    if not bool(failed):
        return _with_passages(_with_limits(found))
    found = _with_passages(_with_limits(_until_failure(found, np.asarray(free))))
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
    """Where the chain is. `t`, `q`, `v`: the last point on it, `slope`: dv/dt there, by
    differences; `trial`: a configuration on the way to the next one, at `next`, after `tried` of
    Newton's steps; `part`: of the interval, of this step."""

    t: Scalar
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    slope: Float[Array, " nv"]
    next: Scalar
    trial: Float[Array, " nq"]
    tried: IntScalar
    part: Scalar
    ok: BoolScalar
    there: BoolScalar


def _chain(
    system: AbstractSystem, q: Float[Array, " nq"], times: Float[Array, " n"]
) -> tuple[Float[Array, "n nq"], Bool[Array, " n"]]:
    """Configurations without derivative, and how far they go. One loop of Newton's steps, each
    with one factor, which gives the velocity where they have converged."""
    rest = jnp.zeros((system.structure.nv,), q.dtype)
    yes, no, one = jnp.asarray(True), jnp.asarray(False), jnp.ones((), q.dtype)
    none = jnp.asarray(0)
    start = _Point(times[0], q, rest, rest, times[0], q, none, one, yes, no)

    def aimed(point: _Point, target: Scalar, interval: Scalar) -> _Point:
        """With a prediction of the next point."""
        left = target - point.t
        h = jnp.minimum(point.part * interval, left)
        t = jnp.where(h >= left, target, point.t + h)
        trial = system.retract(point.q, h * point.v + h**2 / 2 * point.slope)
        return point._replace(next=t, trial=trial, tried=none)

    def move(point: _Point, target: Scalar, interval: Scalar) -> _Point:
        trial, t = point.trial, point.next
        error = position_error(system, trial, t)
        rows = jnp.stack([position_residual(system, trial, t), _drift(system, trial, t)])
        back, v = jax.vmap(_rows_at(system, trial, t).correction)(rows)
        stepped = point._replace(trial=system.retract(trial, -back), tried=point.tried + 1)

        # The step that is left ends at rounding.
        done = error <= _CLOSE
        first = interval <= 0
        h = t - point.t
        known = (h > 0) & jnp.any(point.v != 0)
        slope = jnp.where(known, (-v - point.v) / jnp.where(known, h, 1.0), 0.0)
        arrived = stepped._replace(t=t, q=stepped.trial, v=-v, slope=slope)
        part = jnp.minimum(2 * point.part, 1.0)
        arrived = arrived._replace(part=part, there=t >= target)

        far = (point.tried == 0) & ~first & (error > _PREDICTED)
        lost = ~done & (far | (point.tried >= _MAX_STEPS) | ~jnp.isfinite(error))
        shorter = point._replace(part=point.part / 2)
        shorter = shorter._replace(ok=(shorter.part > _LEAST_PART) & ~first)
        chosen = _choose(done, arrived, _choose(lost, shorter, stepped))
        return _choose(done | lost, aimed(chosen, target, interval), chosen)

    def reach(
        point: _Point, given: tuple[Scalar, Scalar]
    ) -> tuple[_Point, tuple[Float[Array, " nq"], BoolScalar]]:
        target, interval = given
        point = aimed(point._replace(there=no, part=one), target, interval)
        point = lax.while_loop(
            lambda p: p.ok & ~p.there, lambda p: move(p, target, interval), point
        )
        return point, (point.q, point.there)

    intervals = jnp.diff(times, prepend=times[:1])
    return lax.scan(reach, start, (times, intervals))[1]


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
    right = jnp.stack([_drift(system, q, t), rows.descriptor.apply_C(probe)])
    v, held = jax.vmap(rows.correction)(right)
    offset = jnp.where(structure.geometric, system.acceleration_offset(q, -v, t), 0.0)
    acceleration = rows.correction(offset)
    free = jnp.max(jnp.abs((probe - held) / unit), initial=0.0)
    closure, speed = position_error(system, q, t), velocity_error(system, q, -v, t)
    return _State(q, -v, acceleration, closure, speed, free)


@eqx.filter_jit
def _follow(
    system: AbstractSystem, q: Float[Array, " nq"], times: Float[Array, " n"]
) -> tuple[Kinematics, Float[Array, " n"]]:
    """The motion, and how free it is at each time: more than 1 where it fails."""
    near, reached = _chain(*stop_gradient((system, q, times)))
    states = jax.vmap(lambda q, t: _state(system, q, t))(near, times)
    largest = jnp.maximum(1.0, jnp.max(jnp.abs(states.v), axis=1, initial=0.0))
    contradictory = states.velocity_error > MET * largest
    undetermined = reached & ((states.free > _FREE) | contradictory)
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
    found = Kinematics(times, *states[:5], reached, result, system)
    return found, jnp.where(undetermined, 1.0, 0.0) + states.free


# ---------------------------------------------------------------------------------------------
# What failed
# ---------------------------------------------------------------------------------------------


def _until_failure(found: Kinematics, free: np.ndarray) -> Kinematics:
    """The part that is known, and what ended it."""
    bad = (free >= 1) | ~np.asarray(found.reached)
    last = int(np.argmax(bad)) if bad.any() else len(bad)
    message = _explanation(found, last)
    arrays = ("times", "q", "v", "acceleration", "position_error", "velocity_error", "reached")
    kept = {name: getattr(found, name)[:last] for name in arrays}
    return dataclasses.replace(found, **kept, message=message)


def _with_limits(found: Kinematics) -> Kinematics:
    """With the elastic bodies that the motion takes beyond their theory."""
    left = limits_left_by_motion(found.system, found.times, found.q, found.v)
    message = "\n".join([*([found.message] if found.message else []), *left])
    return dataclasses.replace(found, message=message) if left else found


def _with_passages(found: Kinematics) -> Kinematics:
    """With the singular configurations on the way."""
    arrays = (np.asarray(x) for x in (found.times, found.q, found.v))
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
    free = null_space(matrix, structure, length, _COARSE)
    text = "the configuration is singular: the drivers do not determine the velocities"
    if free.shape[1]:
        return f"{text} there, {', '.join(movers(free, structure, length))} can move freely."
    scaled = np.abs(np.asarray(system.velocity_residual(found.q[index], found.v[index], t)))
    name = structure.row_names[int(np.argmax(scaled))]
    return f"{text} there, or contradict each other (row {name!r})."
