"""Back onto the constraints, along the shortest way in the mass metric (where M need only be
semidefinite in that of a positive definite matrix in its place, as any leads back onto them).

Position: q* = retract(q, d) with d = -M^-1 C_h^T S_h^+ Phi repeated, C_h the geometric rows.
Velocity: v* = v - M^-1 C^T S^+ (C v + b), all rows. S^+ has minimum norm, so redundant rows do
not disturb it.

One loop takes both steps, which share C and, without velocity constraints, the factor of S; the
velocity moves where the configuration no longer does. The loop has no derivative; that is the
derivative of one more step from its end, (1 - M^-1 C^T S^+ C) along the state and -M^-1 C^T S^+
along the residual's parameters. Nothing is unrolled. What C changes of a step is left out, as
the step is zero there; a state that is close already, as of an integrator, has moved by no more
than that, but velocities may come from afar: then the whole step of v is differentiated.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar
from .._kinematics import position_residual
from .._linalg import (
    AbstractKKTMatrices,
    constrained,
    correction,
    corrections,
    damped_solver,
    KKTSystem,
    motion_solver,
    ProximalCholesky,
    REGULARISATION,
)
from .._linalg._arrays import pack_scalars
from .._programs import program
from .._solution import RESULTS
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem, Evaluation
from ._friction import accelerated
from ._state_evaluation import Packed, split


# A step squares what is left of Phi: from the second one more changes nothing but rounding, which
# may be larger far from the origin; from the first what does not shrink is rounding.
SMALL, _NOTHING = 1e-7, 1e-13

# Residuals of this size, scaled and for a state of size one, are as small as they become.
_ROUNDING = 1e-15

MOST_STEPS = 20

# A projection that leaves more than this (scaled residual, for a state of size one) has failed.
# Usual is rounding; next to a singular configuration a velocity keeps more, as the way to the
# constraints is the longer the nearer it is.
MET = 1e-8


def closed_enough(closure: Scalar, earlier: Scalar) -> BoolScalar:
    """Is the gap, which was `earlier` a step before, nothing but rounding?"""
    return (closure <= _NOTHING) | ((closure <= SMALL) & (closure > 0.5 * earlier))


# q and v.
State = tuple[Float[Array, " nq"], Float[Array, " nv"]]


class Projected(eqx.Module):
    """A state on the constraints. `met`: did it get there?"""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    met: BoolScalar


def _one_matrix(system: AbstractSystem) -> bool:
    """Do configurations and velocities go back by the same rows, or configurations nowhere?"""
    structure = system.structure
    return structure.holonomic or not structure.geometric.any()


def velocity_level_matrices(
    system: AbstractSystem, descriptor: AbstractKKTMatrices
) -> AbstractKKTMatrices:
    """M and C with zeros in the rows that are given at acceleration level: velocities go back by
    the others alone."""
    held = system.structure.velocity_level
    return descriptor if held.all() else descriptor.mask_rows(held)


def _factor_position_and_velocity(
    system: AbstractSystem, descriptor: AbstractKKTMatrices, solver: ProximalCholesky
) -> KKTSystem:
    """Factors of the geometric rows, and of those of velocities (with a leading axis): two matrices
    of one pattern, factored in one program."""
    given, rest = eqx.partition(velocity_level_matrices(system, descriptor), eqx.is_array)
    own = eqx.filter(descriptor.mask_rows(system.structure.geometric), eqx.is_array)
    pair = jax.tree.map(lambda one, other: jnp.stack([one, other]), own, given)
    return eqx.filter_vmap(lambda arrays: KKTSystem(eqx.combine(arrays, rest), solver))(pair)


def projection_factors(
    system: AbstractSystem, descriptor: AbstractKKTMatrices, solver: ProximalCholesky
) -> KKTSystem | None:
    """Factors for the ways back onto the constraints, of velocities and of the configuration, with
    a leading axis; without one if they are the same; None without constraints."""
    if not system.structure.rows:
        return None
    descriptor = descriptor.metric()
    if _one_matrix(system):
        return KKTSystem(velocity_level_matrices(system, descriptor), solver)
    arrays, rest = eqx.partition(
        _factor_position_and_velocity(system, descriptor, solver), eqx.is_array
    )
    return eqx.combine(jax.tree.map(lambda x: x[::-1], arrays), rest)


def both_corrections(
    system: AbstractSystem,
    descriptor: AbstractKKTMatrices,
    gap: Float[Array, " rows"],
    rate: Float[Array, " rows"],
    solver: ProximalCholesky,
) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
    """`correction` of a configuration, by the geometric rows alone, and of velocities, by all that
    are not given at acceleration level."""
    residuals, descriptor = jnp.stack([gap, rate]), descriptor.metric()
    if _one_matrix(system):
        move, change = corrections(velocity_level_matrices(system, descriptor), residuals, solver)
    else:
        pair = _factor_position_and_velocity(system, descriptor, solver)
        move, change = eqx.filter_vmap(KKTSystem.correction)(pair, residuals)
    return move, change


def position_error(system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike) -> Scalar:
    """The largest geometric residual, lengths relative to the characteristic length. Like all
    errors here it has no derivative."""
    system, q, t = stop_gradient((system, q, t))
    return jnp.max(jnp.abs(system.scaled_residual(q, t)), initial=0.0)


def velocity_error(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
) -> Scalar:
    """The largest |C v + b|, lengths relative to the characteristic length (1/s)."""
    system, q, v, t = stop_gradient((system, q, v, t))
    return _largest(system, system.velocity_residual(q, v, t))


def errors(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
) -> tuple[Scalar, Scalar]:
    """The largest geometric residual and the largest |C v + b|, rows as they are."""
    system, q, v, t = stop_gradient((system, q, v, t))
    position, velocity = system.position_residual(q, t), system.velocity_residual(q, v, t)
    return jnp.max(jnp.abs(position), initial=0.0), jnp.max(jnp.abs(velocity), initial=0.0)


def _largest(system: AbstractSystem, rows: Float[Array, " rows"]) -> Scalar:
    scale = system.residual_scale()
    return jnp.max(jnp.abs(rows / scale), initial=0.0)


class ProjectedEvaluation(NamedTuple):
    """A state, and the evaluation of the system there."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    evaluation: Evaluation


def project_and_evaluate(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    solver: ProximalCholesky | None = None,
) -> ProjectedEvaluation:
    """The state on the constraints next to (q, v), without a derivative."""
    problem = _problem(system, t, solver, q)
    if not system.structure.rows:
        # What is left to do is to bring quaternions to unit length.
        q = system.retract(q, jnp.zeros_like(v))
        return ProjectedEvaluation(q, v, system.evaluation(q, v, problem.t))
    return _projection_loop(*stop_gradient((problem, q, v)))


def project_position(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    t: RealScalarLike,
    solver: ProximalCholesky,
) -> tuple[Float[Array, " nq"], BoolScalar]:
    """The configuration on the geometric constraints next to q, and whether it was found."""
    at_rest = jnp.zeros((system.structure.nv,), q.dtype)
    end = project_and_evaluate(system, q, at_rest, t, solver)
    q, _ = attach_projection_jvp(system, q, at_rest, t, end[:2], solver)
    return q, _largest(system, end.evaluation.gap) <= MET


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
    end = project_and_evaluate(system, q, v, t, solver)
    return Projected(*attach_projection_jvp(system, q, v, t, end[:2], solver), _met(system, end))


def _met(system: AbstractSystem, end: ProjectedEvaluation) -> BoolScalar:
    """Does a projected state satisfy the constraints?"""
    speed = jnp.maximum(1.0, jnp.max(jnp.abs(end.v), initial=0.0))
    closed = _largest(system, end.evaluation.gap) <= MET
    return closed & (_largest(system, end.evaluation.rate) <= MET * speed)


def project_velocity(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
) -> Projected:
    """The velocities next to v, in the mass metric, that all constraints allow at a closed q."""
    if not system.structure.rows:
        return Projected(q, v, jnp.asarray(True))
    problem = _problem(system, t, motion_solver(), q)
    if system.structure.holonomic:
        # These rows are linear in v: one step does, wherever C is taken.
        end = _velocity(problem, q, v, v)
    else:
        found = _projection_loop(*stop_gradient((problem, q, v))).v
        last = _velocity(problem, q, v, found)
        end = found + (last - stop_gradient(last))
    evaluation = stop_gradient(system).evaluation(*stop_gradient((q, end, problem.t)))
    return Projected(q, end, _met(system, ProjectedEvaluation(q, stop_gradient(end), evaluation)))


def project_unchecked(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    solver: ProximalCholesky | None = None,
) -> State:
    """`project` without looking whether it got there."""
    return attach_projection_jvp(
        system, q, v, t, project_and_evaluate(system, q, v, t, solver)[:2], solver
    )


def attach_projection_jvp(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    end: State,
    solver: ProximalCholesky | None = None,
) -> State:
    """The end of `project_and_evaluate` from there, if it is known, as a function of (q, v)."""
    if not system.structure.rows:
        return system.retract(q, jnp.zeros_like(v)), v
    return _ended(_problem(system, t, solver, q), q, v, stop_gradient(end))


class _Problem(eqx.Module):
    """Arguments of the projection besides the state. `close`: is the state near the constraints?"""

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


class _Progress(NamedTuple):
    """`going`: is there another evaluation? `final`: is it the last one, behind which nothing is
    moved? `gap`: the scaled one before the last step; `steps`: their count."""

    going: Scalar
    final: Scalar
    gap: Scalar
    steps: Scalar


class _Iterate(NamedTuple):
    """`packed`: a `_Progress`; `evaluation`: the arrays of the last evaluation."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    packed: Float[Array, " 4"]
    evaluation: Any


def _velocity(
    problem: _Problem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    end: Float[Array, " nv"],
) -> Float[Array, " nv"]:
    """The step at q from v to its `end`, where rows that are not linear in v are taken."""
    system, t = problem.system, problem.t
    descriptor = velocity_level_matrices(system, system.descriptor(q, end, t).metric())
    offset = descriptor.apply_C(end) - system.velocity_residual(q, end, t)
    return constrained(descriptor, descriptor.mass(v), offset, problem.solver)[0]


def _moved(
    problem: _Problem,
    end: State,
    tangents: Any,
    correction_of: Callable[[Float[Array, " rows"]], Float[Array, " nv"]],
) -> Float[Array, " nq"]:
    """Change of the end of q by the correction of a gap."""
    system, (q, v) = problem.system, end

    def gap(problem: _Problem, q: Float[Array, " nq"]) -> Float[Array, " rows"]:
        return position_residual(problem.system, q, problem.t)

    met, opened = eqx.filter_jvp(gap, (problem, q), tangents[:2])
    move = correction_of(jnp.zeros_like(met) if opened is None else opened)
    change = jnp.zeros_like(q) if tangents[1] is None else tangents[1]
    return jax.jvp(system.retract, (q, jnp.zeros_like(v)), (change, -move))[1]


def _converged_step_jvp(problem: _Problem, end: State, tangents: Any) -> State:
    """Change of the end by one more step from it, whose correction is zero."""
    system, (q, v) = problem.system, end
    descriptor = velocity_level_matrices(system, system.descriptor(q, v, problem.t).metric())
    if _one_matrix(system):
        geometric = every = KKTSystem(descriptor, problem.solver)
    else:
        arrays, rest = eqx.partition(
            _factor_position_and_velocity(system, descriptor, problem.solver), eqx.is_array
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


def _velocity_step_jvp(
    problem: _Problem,
    v: Float[Array, " nv"],
    end: State,
    tangents: Any,
) -> State:
    """Change of the end, with C along which v was projected from far away."""
    system = problem.system

    def correction_of(gap: Float[Array, " rows"]) -> Float[Array, " nv"]:
        descriptor = system.descriptor(*end, problem.t).metric()
        return correction(descriptor.mask_rows(system.structure.geometric), gap, problem.solver)

    moved = _moved(problem, end, tangents, correction_of)
    _, change = eqx.filter_jvp(
        _velocity, (problem, end[0], v, end[1]), (tangents[0], moved, tangents[2], None)
    )
    return moved, change


def _projection_loop(
    problem: _Problem, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> ProjectedEvaluation:
    system, t = problem.system, problem.t
    structure = system.structure
    linear = structure.holonomic
    scale = system.residual_scale()
    # Rows at acceleration level are in the equations and not in the projection.
    shared = problem.close and bool(structure.velocity_level.all()) and not structure.light

    def largest(rows: Float[Array, " rows"]) -> Scalar:
        return jnp.max(jnp.abs(rows / scale), initial=0.0)

    def move(here: _Iterate) -> _Iterate:
        progress = _Progress(*here.packed)
        ending = progress.final > 0
        evaluation = system.evaluation(here.q, here.v, t)
        closure, rest = largest(evaluation.gap), largest(evaluation.rate)
        # Where it is open, rows may contradict each other that are redundant where it is closed.
        there = closed_enough(closure, progress.gap)
        speed = jnp.maximum(1.0, jnp.max(jnp.abs(here.v), initial=0.0))
        # Where nothing is left, nothing is solved for.
        final = ending | ((closure <= _ROUNDING) & (rest <= _ROUNDING * speed))
        descriptor = velocity_level_matrices(system, evaluation.equations.descriptor.metric())
        rate = evaluation.rate
        if not linear:
            kept = there | ending | structure.geometric
            descriptor, rate = descriptor.mask_rows(kept), jnp.where(kept, rate, 0.0)
        factored = KKTSystem(descriptor, problem.solver)
        rights = jnp.stack([evaluation.gap, rate])

        # One at a time: batched, both took longer than one after the other.
        def respond(k: IntScalar, found: Float[Array, "2 nv"]) -> Float[Array, "2 nv"]:
            right = lax.dynamic_index_in_dim(rights, k, keepdims=False)
            response = factored.response(factored.approximate_multipliers(right))
            return found.at[k].set(response)

        none = jnp.zeros((2, structure.nv), here.v.dtype)
        step, change = lax.fori_loop(0, jnp.where(final, 0, 2), respond, none)
        # Nearly closed, velocities are mostly projected too: less is left to the next evaluation.
        v = jnp.where(there | (closure <= SMALL), here.v - change, here.v)
        q = system.retract(here.q, -step)
        # Geometric rows are linear in v: one step at the right place does.
        done = there & (linear | (rest <= SMALL * speed))
        usable = jnp.isfinite(closure) & jnp.isfinite(rest)
        more = ~done & usable & (progress.steps < MOST_STEPS)
        progress = _Progress(~final, ~more, closure, progress.steps + 1)
        # At the last evaluation, when all rows are kept, the factor is that of the equations.
        factor = factored.factor if shared else None
        evaluation = eqx.tree_at(
            lambda s: s.equations.factor, evaluation, factor, is_leaf=lambda x: x is None
        )
        return _Iterate(q, v, pack_scalars(progress, q.dtype), eqx.filter(evaluation, eqx.is_array))

    def evaluate_here() -> Evaluation:
        evaluation = system.evaluation(q, v, t)
        metric = evaluation.equations.descriptor.metric()
        factor = metric.factor(REGULARISATION) if shared else None
        return eqx.tree_at(
            lambda s: s.equations.factor, evaluation, factor, is_leaf=lambda x: x is None
        )

    shape, rest = eqx.partition(eqx.filter_eval_shape(evaluate_here), _is_shape)
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shape)
    start = _Iterate(q, v, jnp.array([1.0, 0.0, jnp.inf, 0.0], q.dtype), nothing)
    end = lax.while_loop(lambda x: x.packed[0] > 0, move, start)
    return ProjectedEvaluation(end.q, end.v, eqx.combine(end.evaluation, rest))


def _is_shape(x: Any) -> bool:
    return isinstance(x, jax.ShapeDtypeStruct)


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
        return end, _converged_step_jvp(problem, end, tangents)
    return end, _velocity_step_jvp(problem, v, end, tangents)


# --------------------------------------------------------------------------------------------------
# States of a motion between its steps, as they are saved: on the constraints, with accelerations
# and multipliers.
#
# The loop that projects a state evaluates it once more at its end; the formulation solves the
# equations of this evaluation. The derivative is that of the end
# (`_projection.attach_projection_jvp`) and of the formulation there.
# --------------------------------------------------------------------------------------------------


class SavedState(NamedTuple):
    """`position_error`, `velocity_error`: the largest geometric residual and the largest
    |C v + b|, rows as they are, without derivative."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    acceleration: Float[Array, " nv"]
    multipliers: Float[Array, " rows"]
    result: RESULTS
    position_error: Scalar
    velocity_error: Scalar


@functools.singledispatch
def nearly_projected(
    solver: Any, system: AbstractSystem, t: Scalar, y: Float[Array, " state"]
) -> Float[Array, " state"]:
    """A state of a method's solution, so near to the constraints that the derivative of the way
    onto them is that at its end."""
    del solver, system, t
    return y


@eqx.filter_custom_jvp
def saved_state(packed: Packed, t: Scalar, y: Float[Array, " state"]) -> SavedState:
    """The state that a run saves for y = (q, v, passages) of its solution. The formulation of the
    arguments is that of the run."""
    return _saved(packed, t, y)


@program
def _saved(packed: Packed, t: Scalar, y: Float[Array, " state"]) -> SavedState:
    given = packed.opened()
    system = given.system
    q, v = split(system, y)
    if given.stabilisation.projecting:
        end = project_and_evaluate(system, q, v, t)
    else:
        end = ProjectedEvaluation(q, v, system.evaluation(q, v, t))
    found = accelerated(system, given.formulation, end.evaluation.equations, end.q, end.v, t)
    gap, rate = (
        jnp.max(jnp.abs(x), initial=0.0) for x in (end.evaluation.gap, end.evaluation.rate)
    )
    return SavedState(end.q, end.v, found.acceleration, found.multipliers, found.result, gap, rate)


@saved_state.def_jvp
def _saved_state_jvp(primals: Any, tangents: Any) -> Any:
    saved = saved_state(*primals)
    end = stop_gradient((saved.q, saved.v))

    def again(packed: Packed, t: Scalar, y: Float[Array, " state"]) -> tuple[Array, ...]:
        given = packed.opened()
        system = given.system
        q, v = split(system, y)
        if given.stabilisation.projecting:
            q, v = attach_projection_jvp(system, q, v, t, end)
        equations = system.evaluation(q, v, t).equations
        found = accelerated(system, given.formulation, equations, q, v, t)
        return q, v, found.acceleration, found.multipliers

    _, changes = eqx.filter_jvp(again, primals, tangents)
    still = jax.tree.map(lambda x: jnp.zeros_like(x) if eqx.is_inexact_array(x) else None, saved)
    return saved, SavedState(*changes, *still[4:])
