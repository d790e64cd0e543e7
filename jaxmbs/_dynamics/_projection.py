"""Back onto the constraints, along the shortest way in the mass metric.

Position: q* = retract(q, d) with d = -M^-1 C_h^T S_h^+ Phi repeated, C_h the geometric rows.
Velocity: v* = v - M^-1 C^T S^+ (C v + b), all rows. S^+ has minimum norm, so redundant rows do not
disturb it.

One loop takes both steps, which share C and, without velocity constraints, the factor of S; the
velocity moves where the configuration no longer does. The loop has no derivative; that is the
derivative of one more step of q from its end, (1 - M^-1 C^T S^+ C) along the state and
-M^-1 C^T S^+ along the residual's parameters, and there of the whole step of v: velocities may
come from afar, and with C changes the way along which they went. Nothing is unrolled.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, RealScalarLike, Scalar
from .._kinematics import geometric_gap
from .._linalg import (
    AbstractDescriptor,
    constrained,
    damped_solver,
    ProximalCholesky,
    SchurOperator,
)
from .._system import AbstractSystem


# A step squares what is left of Phi: from the second one more changes nothing but rounding, which
# may be larger far from the origin; from the first what does not shrink is rounding.
_SMALL, _NOTHING = 1e-7, 1e-13

_MAX_STEPS = 20

# A projection that leaves more than this (scaled residual, for a state of size one) has failed.
# Usual is rounding; next to a singular configuration a velocity keeps more, as the way to the
# constraints is the longer the nearer it is.
MET = 1e-8


class Projected(eqx.Module):
    """A state on the constraints. `met`: did it get there?"""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    met: BoolScalar


def correction(
    descriptor: AbstractDescriptor,
    residual: Float[Array, " rows"],
    solver: ProximalCholesky,
) -> Float[Array, " nv"]:
    """M^-1 C^T S^+ residual: the shortest change of velocity, in the mass metric, that changes
    C v by the residual."""
    return corrections(descriptor, residual[None], solver)[0]


def corrections(
    descriptor: AbstractDescriptor,
    residuals: Float[Array, "k rows"],
    solver: ProximalCholesky,
) -> Float[Array, "k nv"]:
    """`correction` of several residuals with one factor."""
    count, size = residuals.shape[0], descriptor.shape
    if not size[0]:
        return jnp.zeros((count, size[1]), residuals.dtype)
    operator = SchurOperator(descriptor)
    state = solver.init(operator, {})

    def one(residual: Float[Array, " rows"]) -> Float[Array, " nv"]:
        solution = lx.linear_solve(operator, residual, solver, state=state, throw=False)
        return descriptor.inverse_mass(descriptor.transpose(solution.value))

    return jax.vmap(one)(residuals)


def both_corrections(
    system: AbstractSystem,
    descriptor: AbstractDescriptor,
    gap: Float[Array, " rows"],
    rate: Float[Array, " rows"],
    solver: ProximalCholesky,
) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
    """`correction` of a configuration, by the geometric rows alone, and of velocities, by all."""
    geometric, residuals = system.structure.geometric, jnp.stack([gap, rate])
    if geometric.all() or not geometric.any():
        move, change = corrections(descriptor, residuals, solver)
        return move, change
    # Two matrices of one pattern: factored side by side, and compiled once.
    own, rest = eqx.partition(descriptor.keeping(geometric), eqx.is_array)
    pair = jax.tree.map(
        lambda one, other: jnp.stack([one, other]), own, eqx.filter(descriptor, eqx.is_array)
    )

    def one(arrays: Any, residual: Float[Array, " rows"]) -> Float[Array, " nv"]:
        return correction(eqx.combine(arrays, rest), residual, solver)

    move, change = jax.vmap(one)(pair, residuals)
    return move, change


def position_error(system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike) -> Scalar:
    """The largest geometric residual, lengths relative to the characteristic length."""
    return jnp.max(jnp.abs(system.scaled_residual(q, t)), initial=0.0)


def velocity_error(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
) -> Scalar:
    """The largest |C v + b|, lengths relative to the characteristic length (1/s)."""
    return _largest(system, system.velocity_residual(q, v, t))


def _largest(system: AbstractSystem, rows: Float[Array, " rows"]) -> Scalar:
    scale = jnp.where(system.structure.length_rows, system.characteristic_length(), 1.0)
    return jnp.max(jnp.abs(rows / scale), initial=0.0)


def project_position(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    t: RealScalarLike,
    solver: ProximalCholesky,
) -> tuple[Float[Array, " nq"], BoolScalar]:
    """The configuration on the geometric constraints next to q, and whether it was found."""
    at_rest = jnp.zeros((system.structure.nv,), q.dtype)
    q, _ = closer(system, q, at_rest, t, solver)
    return q, position_error(system, q, t) <= MET


def project(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    solver: ProximalCholesky | None = None,
) -> Projected:
    """The state on the constraints next to (q, v), in the mass metric: first the configuration,
    then the velocity. `solver`: default damped, for a state that is close already."""
    q, v = closer(system, q, v, t, solver)
    speed = jnp.maximum(1.0, jnp.max(jnp.abs(v), initial=0.0))
    closed = position_error(system, q, t) <= MET
    return Projected(q, v, closed & (velocity_error(system, q, v, t) <= MET * speed))


def closer(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    solver: ProximalCholesky | None = None,
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """`project` without looking whether it got there."""
    if not system.structure.rows:
        # What is left to do is to bring quaternions to unit length.
        return system.retract(q, jnp.zeros_like(v)), v
    solver = damped_solver() if solver is None else solver
    return _nearest(_Problem(system, jnp.asarray(t, q.dtype), solver), q, v)


class _Problem(eqx.Module):
    """What the way back depends on besides the state."""

    system: AbstractSystem
    t: Scalar
    solver: ProximalCholesky


class _Iterate(NamedTuple):
    """`status`: whether to go on (not zero), the scaled gap before the last step, and the count of
    steps: in one array, as in a small system each operation of its own costs as much as a solve's.
    """

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    status: Float[Array, " 3"]


def _move(
    problem: _Problem, descriptor: AbstractDescriptor, gap: Float[Array, " rows"]
) -> Float[Array, " nv"]:
    """What to take from q. Velocity constraints have no say in where the configuration goes."""
    geometric = problem.system.structure.geometric
    if not geometric.any():
        return jnp.zeros((problem.system.structure.nv,), gap.dtype)
    own = descriptor if geometric.all() else descriptor.keeping(geometric)
    return correction(own, gap, problem.solver)


def _velocity(
    problem: _Problem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    end: Float[Array, " nv"],
) -> Float[Array, " nv"]:
    """The step at q from v to its `end`, where rows that are not linear in v are taken."""
    system, t = problem.system, problem.t
    descriptor = system.descriptor(q, end, t)
    offset = descriptor.constrain(end) - system.velocity_residual(q, end, t)
    return constrained(descriptor, descriptor.mass(v), offset, problem.solver)[0]


def _moved(
    problem: _Problem, end: tuple[Float[Array, " nq"], Float[Array, " nv"]], tangents: Any
) -> Float[Array, " nq"]:
    """How the end of q changes: by what one more step takes from it. There Phi is zero, so that the
    change of the matrices of that step has no part in it."""
    system, (q, v) = problem.system, end

    def gap(problem: _Problem, q: Float[Array, " nq"]) -> Float[Array, " rows"]:
        return geometric_gap(problem.system, q, problem.t)

    met, opened = eqx.filter_jvp(gap, (problem, q), tangents)
    opened = jnp.zeros_like(met) if opened is None else opened
    move = _move(problem, system.descriptor(q, v, problem.t), opened)
    change = jnp.zeros_like(q) if tangents[1] is None else tangents[1]
    return jax.jvp(system.retract, (q, jnp.zeros_like(v)), (change, -move))[1]


@eqx.filter_custom_jvp
def _nearest(
    problem: _Problem, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    system, t = problem.system, problem.t
    linear = bool(system.structure.geometric.all())

    def closed(closure: Scalar, earlier: Scalar) -> BoolScalar:
        return (closure <= _NOTHING) | ((closure <= _SMALL) & (closure > 0.5 * earlier))

    def move(last: _Iterate) -> _Iterate:
        earlier, steps = last.status[1], last.status[2] + 1
        gap = geometric_gap(system, last.q, t)
        rate = system.velocity_residual(last.q, last.v, t)
        closure, rest = _largest(system, gap), _largest(system, rate)
        descriptor = system.descriptor(last.q, last.v, t)
        move, change = both_corrections(system, descriptor, gap, rate, problem.solver)
        # Where it is open, rows may contradict each other that are redundant where it is closed.
        there = closed(closure, earlier)
        v = jnp.where(there, last.v - change, last.v)
        q = system.retract(last.q, -move)
        # Geometric rows are linear in v: one step at the right place does.
        speed = jnp.maximum(1.0, jnp.max(jnp.abs(v), initial=0.0))
        done = there & (linear | (rest <= _SMALL * speed))
        usable = jnp.isfinite(closure) & jnp.isfinite(rest)
        more = ~done & usable & (steps < _MAX_STEPS)
        return _Iterate(q, v, jnp.stack([more.astype(q.dtype), closure, steps]))

    status = jnp.array([1.0, jnp.inf, 0.0], q.dtype)
    end = lax.while_loop(lambda x: x.status[0] > 0, move, _Iterate(q, v, status))
    return end.q, end.v


@_nearest.def_jvp
def _nearest_jvp(primals: Any, tangents: Any) -> Any:
    problem, q, v = primals
    end = _nearest(problem, q, v)
    moved = _moved(problem, end, tangents[:2])
    _, change = eqx.filter_jvp(
        _velocity, (problem, end[0], v, end[1]), (tangents[0], moved, tangents[2], None)
    )
    return end, (moved, change)
