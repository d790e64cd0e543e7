"""Back onto the constraints, along the shortest way in the mass metric.

Position: q* = retract(q, d) with d = -M^-1 C_h^T S_h^+ Phi repeated, C_h the geometric rows.
Velocity: v* = v - M^-1 C^T S^+ (C v + b), all rows. S^+ has minimum norm, so redundant rows do not
disturb it.

One loop takes both steps, which share C and, without velocity constraints, the factor of S: C a
little beside the configuration at which the velocity's residual is taken, so that the product of
both residuals is left. The velocity moves where the configuration hardly does. Usually that is
one pass. The loop has no derivative; that is the derivative of one more step of each from its end,
(1 - M^-1 C^T S^+ C) along the state and -M^-1 C^T S^+ along the residual's parameters. Nothing is
unrolled.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar
from .._kinematics import geometric_gap
from .._linalg import AbstractDescriptor, damped_solver, ProximalCholesky, SchurOperator
from .._system import AbstractSystem


# A step squares what is left of Phi: where that was small, one more changes nothing but rounding,
# which may be larger far from the origin. The velocity keeps the product of both residuals.
_SMALL, _NOTHING = 1e-7, 1e-14

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
    if not descriptor.shape[0]:
        return jnp.zeros((descriptor.shape[1],), residual.dtype)
    return _corrections(descriptor, solver)(residual[None])[0]


def _corrections(
    descriptor: AbstractDescriptor, solver: ProximalCholesky
) -> Callable[[Float[Array, "k rows"]], Float[Array, "k nv"]]:
    """`correction` of several residuals, time and again with one factor."""
    operator = SchurOperator(descriptor)
    state = solver.init(operator, {})

    def one(residual: Float[Array, " rows"]) -> Float[Array, " nv"]:
        solution = lx.linear_solve(operator, residual, solver, state=state, throw=False)
        return descriptor.inverse_mass(descriptor.transpose(solution.value))

    return jax.vmap(one)


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
    scale = jnp.where(system.structure.length_rows, system.characteristic_length(), 1.0)
    return jnp.max(jnp.abs(system.velocity_residual(q, v, t) / scale), initial=0.0)


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
    return _told(system, *closer(system, q, v, t, solver), t)


def project_pair(
    system: AbstractSystem,
    q: Float[Array, "2 nq"],
    v: Float[Array, "2 nv"],
    t: RealScalarLike,
) -> tuple[Projected, Projected]:
    """`project` of the first state, and what becomes of the second one, next to it, in the same
    steps. With the first one's C it comes near the constraints only (`met` is not told apart):
    enough to see how far from each other they are on them, and it takes no factor of its own."""
    ends = _closer(system, q, v, t, damped_solver())
    first = _told(system, ends[0][0], ends[1][0], t)
    return first, Projected(ends[0][1], ends[1][1], first.met)


def _told(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
) -> Projected:
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
    solver = damped_solver() if solver is None else solver
    q, v = _closer(system, q[None], v[None], t, solver)
    return q[0], v[0]


def _closer(
    system: AbstractSystem,
    q: Float[Array, "k nq"],
    v: Float[Array, "k nv"],
    t: RealScalarLike,
    solver: ProximalCholesky,
) -> tuple[Float[Array, "k nq"], Float[Array, "k nv"]]:
    if not system.structure.rows:
        # What is left to do is to bring quaternions to unit length.
        return jax.vmap(system.retract)(q, jnp.zeros_like(v)), v
    return _nearest(_Problem(system, jnp.asarray(t, q.dtype), solver), q, v)


class _Problem(eqx.Module):
    """What the way back depends on besides the state."""

    system: AbstractSystem
    t: Scalar
    solver: ProximalCholesky


class _Iterate(NamedTuple):
    """Several states, the first of which leads: its C serves all of them. `closure`, `rate`: its
    residuals, the first one before the last step of q, the second one after it."""

    q: Float[Array, "k nq"]
    v: Float[Array, "k nv"]
    closure: Scalar
    rate: Scalar
    steps: IntScalar


def _step(
    problem: _Problem, q: Float[Array, "k nq"], v: Float[Array, "k nv"]
) -> tuple[Float[Array, "k nq"], Float[Array, "k nv"], Float[Array, " rows"]]:
    """Configurations after a step, by what their velocities then change, and the residual of the
    first velocity there."""
    system, t, solver = problem.system, problem.t, problem.solver
    structure = system.structure
    descriptor = system.descriptor(q[0], v[0], t)
    correct = _corrections(descriptor, solver)
    if structure.geometric.any():
        # Velocity constraints have no say in where the configuration goes.
        every = structure.geometric.all()
        geometric = descriptor if every else descriptor.keeping(structure.geometric)
        move = correct if every else _corrections(geometric, solver)
        gaps = jax.vmap(lambda q: geometric_gap(system, q, t))(q)
        q = jax.vmap(system.retract)(q, -move(gaps))
    rates = jax.vmap(lambda q, v: system.velocity_residual(q, v, t))(q, v)
    return q, correct(rates), rates[0]


def _one_more(
    problem: _Problem, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """A step of q and from there one of v: what is differentiated."""
    after = _step(problem, q[None], v[None])[0]
    return after[0], v - _step(problem, after, v[None])[1][0]


@eqx.filter_custom_jvp
def _nearest(
    problem: _Problem, q: Float[Array, "k nq"], v: Float[Array, "k nv"]
) -> tuple[Float[Array, "k nq"], Float[Array, "k nv"]]:
    system, t = problem.system, problem.t
    structure = system.structure
    linear = bool(structure.geometric.all())
    lengths = np.asarray(structure.length_rows)

    def going(last: _Iterate) -> BoolScalar:
        # Geometric rows are linear in v: one step at the right place does.
        speed = jnp.maximum(1.0, jnp.max(jnp.abs(last.v[0]), initial=0.0))
        done = (last.closure <= _SMALL) & (last.closure * last.rate <= _NOTHING * speed)
        done = done & (linear | (last.rate <= _SMALL * speed))
        usable = jnp.isfinite(last.closure) & jnp.isfinite(last.rate)
        return (last.steps == 0) | (~done & usable & (last.steps < _MAX_STEPS))

    def move(last: _Iterate) -> _Iterate:
        closure = position_error(system, last.q[0], t)
        q, change, left = _step(problem, last.q, last.v)
        # Where it is open, rows may contradict each other that are redundant where it is closed.
        v = jnp.where(closure <= _SMALL, last.v - change, last.v)
        scale = jnp.where(lengths, system.characteristic_length(), 1.0)
        rate = jnp.max(jnp.abs(left / scale), initial=0.0)
        return _Iterate(q, v, closure, rate, last.steps + 1)

    infinite = jnp.asarray(jnp.inf, q.dtype)
    start = _Iterate(q, v, infinite, infinite, jnp.asarray(0))
    end = lax.while_loop(going, move, start)
    return end.q, end.v


@_nearest.def_jvp
def _nearest_jvp(primals: Any, tangents: Any) -> Any:
    problem, q, v = primals
    end = _nearest(problem, q, v)

    def again(problem: _Problem, q: Float[Array, "k nq"], v: Float[Array, "k nv"]) -> Any:
        return jax.vmap(lambda q, v: _one_more(problem, q, v))(q, v)

    _, change = eqx.filter_jvp(again, (problem, *end), tangents)
    return end, change
