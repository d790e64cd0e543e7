"""Back onto the constraints, along the shortest way in the mass metric.

Position: q* = retract(q, d) with d = -M^-1 C_h^T S_h^+ Phi repeated, C_h the geometric rows.
Velocity: v* = v - M^-1 C^T S^+ (C v + b), all rows. S^+ has minimum norm, so redundant rows do not
disturb it.

One loop takes both steps, which share C and, without velocity constraints, the factor of S; the
velocity moves where the configuration no longer does. The loop has no derivative; that is the
derivative of one more step from its end, (1 - M^-1 C^T S^+ C) along the state and -M^-1 C^T S^+
along the residual's parameters. Nothing is unrolled. What C changes of a step is left out, as the
step is zero there; a state that is close already, as of an integrator, has moved by no more than
that, but velocities may come from afar: then the whole step of v is differentiated.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, RealScalarLike, Scalar
from .._fixed import fixed
from .._kinematics import geometric_gap
from .._linalg import (
    AbstractDescriptor,
    AbstractFactor,
    constrained,
    damped_solver,
    motion_solver,
    ProximalCholesky,
    pseudosolve,
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


# q and v.
State = tuple[Float[Array, " nq"], Float[Array, " nv"]]


class Projected(eqx.Module):
    """A state on the constraints. `met`: did it get there?"""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    met: BoolScalar


class Factored(eqx.Module):
    """M and C with the factor of S."""

    descriptor: AbstractDescriptor
    factor: AbstractFactor
    solver: ProximalCholesky

    def __init__(self, descriptor: AbstractDescriptor, solver: ProximalCholesky):
        self.descriptor, self.solver = descriptor, solver
        self.factor = solver.init(SchurOperator(descriptor), {})

    def correction(self, residual: Float[Array, " rows"]) -> Float[Array, " nv"]:
        """M^-1 C^T S^+ residual: the shortest change of velocity, in the mass metric, that changes
        C v by the residual."""
        operator = SchurOperator(self.descriptor)
        multipliers = pseudosolve(operator, residual, self.solver, self.factor)
        return self.descriptor.inverse_mass(self.descriptor.transpose(multipliers))


def correction(
    descriptor: AbstractDescriptor,
    residual: Float[Array, " rows"],
    solver: ProximalCholesky,
) -> Float[Array, " nv"]:
    """`Factored.correction` of one residual."""
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
    return jax.vmap(Factored(descriptor, solver).correction)(residuals)


def _one_matrix(system: AbstractSystem) -> bool:
    """Do configurations and velocities go back by the same rows, or configurations nowhere?"""
    geometric = system.structure.geometric
    return bool(geometric.all() or not geometric.any())


def _side_by_side(
    system: AbstractSystem, descriptor: AbstractDescriptor, solver: ProximalCholesky
) -> Factored:
    """By the geometric rows, and by all (with a leading axis): two matrices of one pattern,
    factored in one program."""
    given, rest = eqx.partition(descriptor, eqx.is_array)
    own = eqx.filter(descriptor.keeping(system.structure.geometric), eqx.is_array)
    pair = jax.tree.map(lambda one, other: jnp.stack([one, other]), own, given)
    return eqx.filter_vmap(lambda arrays: Factored(eqx.combine(arrays, rest), solver))(pair)


def both_corrections(
    system: AbstractSystem,
    descriptor: AbstractDescriptor,
    gap: Float[Array, " rows"],
    rate: Float[Array, " rows"],
    solver: ProximalCholesky,
) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
    """`correction` of a configuration, by the geometric rows alone, and of velocities, by all."""
    residuals = jnp.stack([gap, rate])
    if _one_matrix(system):
        move, change = corrections(descriptor, residuals, solver)
    else:
        pair = _side_by_side(system, descriptor, solver)
        move, change = eqx.filter_vmap(Factored.correction)(pair, residuals)
    return move, change


def position_error(system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike) -> Scalar:
    """The largest geometric residual, lengths relative to the characteristic length. Like all
    errors here it has no derivative."""
    system, q, t = fixed((system, q, t))
    return jnp.max(jnp.abs(system.scaled_residual(q, t)), initial=0.0)


def velocity_error(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
) -> Scalar:
    """The largest |C v + b|, lengths relative to the characteristic length (1/s)."""
    system, q, v, t = fixed((system, q, v, t))
    return _largest(system, system.velocity_residual(q, v, t))


def errors(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
) -> tuple[Scalar, Scalar]:
    """The largest geometric residual and the largest |C v + b|, rows as they are."""
    system, q, v, t = fixed((system, q, v, t))
    position, velocity = system.position_residual(q, t), system.velocity_residual(q, v, t)
    return jnp.max(jnp.abs(position), initial=0.0), jnp.max(jnp.abs(velocity), initial=0.0)


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
    then the velocity. `solver`: default damped, for a state that is close already (whose
    derivative leaves out what C changes of so small a step)."""
    return _looked_at(system, *closer(system, q, v, t, solver), t)


def _looked_at(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
) -> Projected:
    """Whether a projected state is where it should be."""
    speed = jnp.maximum(1.0, jnp.max(jnp.abs(v), initial=0.0))
    closed = position_error(system, q, t) <= MET
    return Projected(q, v, closed & (velocity_error(system, q, v, t) <= MET * speed))


def allowed(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
) -> Projected:
    """The velocities next to v, in the mass metric, that all constraints allow at a closed q."""
    if not system.structure.rows:
        return Projected(q, v, jnp.asarray(True))
    problem = _problem(system, t, motion_solver(), q)
    if system.structure.geometric.all():
        # These rows are linear in v: one step does, wherever C is taken.
        return _looked_at(system, q, _velocity(problem, q, v, v), t)
    end = _nearest(*fixed((problem, q, v)))[1]
    last = _velocity(problem, q, v, end)
    return _looked_at(system, q, end + (last - fixed(last)), t)


def closer(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    solver: ProximalCholesky | None = None,
) -> State:
    """`project` without looking whether it got there."""
    if not system.structure.rows:
        # What is left to do is to bring quaternions to unit length.
        return system.retract(q, jnp.zeros_like(v)), v
    problem = _problem(system, t, solver, q)
    return _ended(problem, q, v, _nearest(*fixed((problem, q, v))))


def led(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    end: State,
) -> State:
    """The end to which `closer` led from there, if it is known, as a function of (q, v)."""
    if not system.structure.rows:
        return closer(system, q, v, t)
    return _ended(_problem(system, t, None, q), q, v, fixed(end))


class _Problem(eqx.Module):
    """What the way back depends on besides the state. `close`: is that not far away?"""

    system: AbstractSystem
    t: Scalar
    solver: ProximalCholesky
    close: bool = eqx.field(static=True)


def _problem(
    system: AbstractSystem,
    t: RealScalarLike,
    solver: ProximalCholesky | None,
    q: Float[Array, " nq"],
) -> _Problem:
    close = solver is None
    solver = damped_solver() if solver is None else solver
    return _Problem(system, jnp.asarray(t, q.dtype), solver, close)


class _Iterate(NamedTuple):
    """`status`: whether to go on (not zero), the scaled gap before the last step, and the count of
    steps: in one array, as in a small system each operation of its own costs as much as a solve's.
    """

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    status: Float[Array, " 3"]


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
    problem: _Problem,
    end: State,
    tangents: Any,
    taken: Callable[[Float[Array, " rows"]], Float[Array, " nv"]],
) -> Float[Array, " nq"]:
    """How the end of q changes, by what is `taken` for a gap."""
    system, (q, v) = problem.system, end

    def gap(problem: _Problem, q: Float[Array, " nq"]) -> Float[Array, " rows"]:
        return geometric_gap(problem.system, q, problem.t)

    met, opened = eqx.filter_jvp(gap, (problem, q), tangents[:2])
    move = taken(jnp.zeros_like(met) if opened is None else opened)
    change = jnp.zeros_like(q) if tangents[1] is None else tangents[1]
    return jax.jvp(system.retract, (q, jnp.zeros_like(v)), (change, -move))[1]


def _once_more(problem: _Problem, end: State, tangents: Any) -> State:
    """How the end changes, by one more step from it that has nothing to do."""
    system, (q, v) = problem.system, end
    descriptor = system.descriptor(q, v, problem.t)
    if _one_matrix(system):
        geometric = every = Factored(descriptor, problem.solver)
    else:
        arrays, rest = eqx.partition(
            _side_by_side(system, descriptor, problem.solver), eqx.is_array
        )
        geometric, every = (
            eqx.combine(jax.tree.map(lambda x, k=k: x[k], arrays), rest) for k in range(2)
        )
    moved = _moved(problem, end, tangents, geometric.correction)

    def rate(problem: _Problem, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Any:
        return problem.system.velocity_residual(q, v, problem.t)

    met, rates = eqx.filter_jvp(rate, (problem, q, v), (tangents[0], moved, tangents[2]))
    change = every.correction(jnp.zeros_like(met) if rates is None else rates)
    return moved, (jnp.zeros_like(v) if tangents[2] is None else tangents[2]) - change


def _from_afar(
    problem: _Problem,
    v: Float[Array, " nv"],
    end: State,
    tangents: Any,
) -> State:
    """How the end changes, with C the way on which v went from far away."""
    system = problem.system

    def taken(gap: Float[Array, " rows"]) -> Float[Array, " nv"]:
        descriptor = system.descriptor(*end, problem.t)
        return correction(descriptor.keeping(system.structure.geometric), gap, problem.solver)

    moved = _moved(problem, end, tangents, taken)
    _, change = eqx.filter_jvp(
        _velocity, (problem, end[0], v, end[1]), (tangents[0], moved, tangents[2], None)
    )
    return moved, change


def _nearest(problem: _Problem, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> State:
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


@eqx.filter_custom_jvp
def _ended(problem: _Problem, q: Float[Array, " nq"], v: Float[Array, " nv"], end: State) -> State:
    """The end, which has a derivative."""
    del problem, q, v
    return end


@_ended.def_jvp
def _ended_jvp(primals: Any, tangents: Any) -> Any:
    problem, q, v, end = primals
    # What the derivative is made of changes with the state too.
    end = _ended(problem, q, v, end)
    if problem.close:
        return end, _once_more(problem, end, tangents)
    return end, _from_afar(problem, v, end, tangents)
