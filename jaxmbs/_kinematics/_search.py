"""The point on Phi = 0 nearest to a start, without forming a matrix, and where redundant
constraints contradict each other.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar
from .._limits import EXACT
from .._linalg import (
    AbstractKKTMatrices,
    KKTSystem,
    leading,
    motion_solver,
    ProximalCholesky,
    saddle_point,
    scatter_add,
)
from .._solution import RESULTS
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem


# --------------------------------------------------------------------------------------------------
# The geometric constraints of a system among all its rows.
# --------------------------------------------------------------------------------------------------


def geometric_descriptor(
    system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike
) -> AbstractKKTMatrices:
    """M, as a metric, and the geometric rows of C, zero in the place of the others."""
    descriptor = system.descriptor(q, jnp.zeros((system.structure.nv,), q.dtype), t).metric()
    if system.structure.geometric.all():
        return descriptor
    return descriptor.mask_rows(system.structure.geometric)


def position_residual(
    system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike
) -> Float[Array, " rows"]:
    """Phi, zero in the place of velocity constraints."""
    residual = system.position_residual(q, t)
    structure = system.structure
    return scatter_add([residual], [structure.geometric_rows], len(structure.rows))


def scaled_geometric_matrix(
    system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike
) -> Float[Array, "geometric nv"]:
    """C_h without units: rows and columns of lengths relative to the characteristic length."""
    structure, length = system.structure, system.characteristic_length()
    rest = jnp.zeros((structure.nv,), q.dtype)
    matrix = system.constraint_matrix(q, rest, t)[structure.geometric_rows]
    rows = structure.residual_scale(length)[structure.geometric_rows]
    columns = structure.column_scale(length)
    return matrix * columns[None, :] / rows[:, None]


# --------------------------------------------------------------------------------------------------
# The point on Phi = 0 nearest to a start, without forming a matrix.
#
#     minimise f(q) = 1/2 d^T M(q0) d,  d = difference(q0, q),    subject to    Phi(q, t) = 0
#
# The unknown is a small step u along the velocities at the present configuration q, to which it
# leads by retract(q, u): there dPhi/du is the geometric rows of C, rotations included, and S = C
# M^-1 C^T has its sparse factor. One loop takes three kinds of steps, each of them one saddle-point
# system (see `saddle_point`), so that a program holds one copy of everything:
#
# - Away from Phi = 0: Gauss-Newton of minimum norm, u = -M^-1 C^T (S + mu)^-1 Phi. A redundant
#   mechanism often is redundant only where it is closed: off the solution set C has full rank, with
#   singular values that go to zero as it closes. Plain Gauss-Newton divides by them and wanders
#   along the solution set; a fixed truncation needs to know how small is small. Damping by the
#   squared residual needs no such number and keeps quadratic convergence, as the residual bounds
#   the distance to the solution set (Yamashita & Fukushima 2001, Computing Suppl. 15).
# - On it: Newton's step for grad f + C^T lambda = 0, Phi = 0, with the second derivative of the
#   Lagrangian f + lambda^T Phi. A step that increases the distance from the start, once the
#   mechanism is closed again, is rejected and reduced.
# - At the end: the same system with a random right-hand side, on which conjugate gradients meet a
#   direction of negative curvature if there is one: then the point is not a minimum.
#
# Optimistix has no solver whose step is itself an iteration with S, nor one that stops where
# rounding stops the progress: on long chains that is above any fixed tolerance that short ones
# meet.
# --------------------------------------------------------------------------------------------------


# Damping is the squared residual, at least this and at most 1.
FLOOR = 1e-12

# Steps are taken until they no longer change what double precision holds, or no longer shrink
# from so little.
_EPS = 4e-15
_ROUNDING = 1e-10

# The curvature below which a stationary point is not a minimum.
_FLAT = 1e-6

# Accuracy of Newton's steps (the next one corrects it) and of the search for negative curvature (a
# part of the random vector that is never as small).
_STEP_RTOL = 1e-6

# The smallest part of Newton's step that is tried.
_LEAST_PART = 1e-4


class Problem(eqx.Module):
    """Arguments of the assembled configuration."""

    system: AbstractSystem
    q: Float[Array, " nq"]
    t: Scalar


class Task(NamedTuple):
    """Task of the loop's steps; as data, so that a program contains the loop once.

    `offset` (rows,): Phi - offset is to vanish, up to whole `turns` (rows,) where those are not
    zero. `closing`: to close is all. `solving`: one step finds the shortest u with C u = `rate`
    (rows,). `count`: of steps at most.
    """

    offset: Float[Array, " rows"]
    turns: Float[Array, " rows"]
    rate: Float[Array, " rows"]
    closing: BoolScalar
    solving: BoolScalar
    count: IntScalar


class Point(NamedTuple):
    """State of the search. `u`: its last step, `moved`: the length of that; `growth`: the largest
    ratio of two successive steps that close; `kept`: the nearest closed configuration so far;
    `merit` is its Lagrangian; `part`: of Newton's step; `closed`: where it only closes, has it;
    `stationary`: only the search for negative curvature is left; `nearest`: it found none."""

    q: Float[Array, " nq"]
    u: Float[Array, " nv"]
    multipliers: Float[Array, " rows"]
    kept: Float[Array, " nq"]
    merit: Scalar
    part: Scalar
    moved: Scalar
    growth: Scalar
    closed: BoolScalar
    stationary: BoolScalar
    nearest: BoolScalar
    ended: BoolScalar
    count: IntScalar


def distance_of(problem: Problem, q: Float[Array, " nq"]) -> Scalar:
    """f(q) = 1/2 d^T M(q0) d."""
    system = problem.system
    return system.kinetic_energy(problem.q, system.difference(problem.q, q), problem.t)


def unit_of(problem: Problem) -> Float[Array, " nv"]:
    """A motion of all velocities by what counts as one of each: one characteristic length, one
    radian."""
    system = problem.system
    return system.column_scale()


def size_of(problem: Problem) -> Scalar:
    """The length of that motion in the metric of M(q0), for one velocity: what lengths of steps
    and slopes are relative to."""
    energy = problem.system.kinetic_energy(problem.q, unit_of(problem), problem.t)
    return jnp.sqrt(2 * energy / problem.system.structure.nv)


def slope_of(
    problem: Problem,
    q: Float[Array, " nq"],
    multipliers: Float[Array, " rows"],
    u: Float[Array, " nv"],
) -> Float[Array, " nv"]:
    """The derivative of the Lagrangian f + lambda^T Phi at retract(q, u), along u."""

    def lagrangian(step: Float[Array, " nv"]) -> Scalar:
        end = problem.system.retract(q, step)
        return distance_of(problem, end) + multipliers @ position_residual(
            problem.system, end, problem.t
        )

    return jax.grad(lagrangian)(u)


def close_steps(
    problem: Problem, max_steps: int, released: Bool[np.ndarray, " rows"] | None = None
) -> Float[Array, " nq"]:
    """A closed configuration, by the steps of the first kind alone; the last one met otherwise.
    `released` rows need not close."""
    problem, size = stop_gradient(problem), size_of(problem)
    system, t = problem.system, problem.t

    def going(here: tuple[Float[Array, " nq"], Scalar, Scalar, IntScalar]) -> BoolScalar:
        _, moved, before, count = here
        return ~still(moved, before) & (count < max_steps)

    def step(here: Any) -> Any:
        q, moved, _, count = here
        descriptor, gap = geometric_descriptor(system, q, t), position_residual(system, q, t)
        if released is not None and released.any():
            descriptor = descriptor.mask_rows(system.structure.geometric & ~released)
            gap = jnp.where(released, 0.0, gap)
        damping = damping_of(scaled_error(descriptor, gap, size))
        damped = KKTSystem(descriptor, ProximalCholesky(damping, max_steps=1, clean=False))
        step = -damped.response(damped.approximate_multipliers(gap))
        length = jnp.sqrt(step @ descriptor.mass(step)) / size
        return system.retract(q, step), length, moved, count + 1

    far = jnp.asarray(jnp.inf, problem.q.dtype)
    return lax.while_loop(going, step, (problem.q, far, far, jnp.asarray(0)))[0]


def still(moved: Scalar, before: Scalar) -> BoolScalar:
    """Is this, after a step of that length, the end of the steps?"""
    return (moved <= _EPS) | ((moved < _ROUNDING) & (moved > 0.3 * before))


def scaled_error(
    descriptor: AbstractKKTMatrices, gap: Float[Array, " rows"], size: Scalar
) -> Scalar:
    return jnp.max(jnp.abs(gap / descriptor.row_scale()), initial=0.0) / size


def damping_of(error: Scalar) -> Scalar:
    """mu of a step from there."""
    return jnp.clip(error**2, FLOOR, 1.0)


def _advance(problem: Problem, size: Scalar, task: Task, here: Point) -> Point:
    """One step of the loop."""
    system, q, t = problem.system, here.q, problem.t
    descriptor = geometric_descriptor(system, q, t)
    gap = position_residual(system, q, t) - task.offset
    gap = gap - task.turns * jnp.round(gap / jnp.where(task.turns > 0, task.turns, jnp.inf))
    gap = jnp.where(task.solving, -task.rate, gap)
    searching = ~(task.closing | task.solving)
    error = scaled_error(descriptor, gap, size)
    near = (error <= EXACT.nearly_closed) | task.solving
    sliding = near & searching
    distance = distance_of(problem, q)
    merit = distance + here.multipliers @ gap
    farther = sliding & (merit > (1 + 1e-9) * here.merit + (EXACT.closed * size) ** 2)
    checking = here.stationary

    rest = jnp.zeros((system.structure.nv,), q.dtype)
    slope, hessian = jax.linearize(lambda u: slope_of(problem, q, here.multipliers, u), rest)
    normal = np.random.default_rng(0).normal(size=system.structure.nv)
    probe = descriptor.mass(unit_of(problem) * normal)
    force = jnp.where(checking, probe, jnp.where(sliding, -slope, 0.0))
    # Below the regularisation Newton's step leaves out what is singular where it is closed.
    solver = ProximalCholesky(
        regularisation=jnp.where(near, motion_solver().regularisation, damping_of(error)),
        max_steps=jnp.where(near, motion_solver().max_steps, 1),
        clean=False,
    )
    found = saddle_point(
        KKTSystem(descriptor, solver),
        lambda u: hessian(u) + jnp.where(checking, _FLAT, 0.0) * descriptor.mass(u),
        (force, jnp.where(checking, 0.0, -gap)),
        rtol=_STEP_RTOL,
        max_steps=jnp.where(sliding & _going(task, here), 2 * system.structure.nv, 0),
    )
    multipliers = here.multipliers + jnp.where(sliding, found.multipliers, 0.0)
    part = jnp.where(sliding, here.part, 1.0)
    step = part * found.u
    moved = jnp.sqrt(step @ descriptor.mass(step)) / size
    resting = still(moved, here.moved)
    stationary = sliding & resting & (found.slope <= EXACT.closed * size)
    settled = near & (moved <= EXACT.last_step)
    ended = jnp.where(searching, resting & ~stationary, settled)
    checked = here._replace(nearest=found.convex & found.converged, ended=jnp.asarray(True))
    back = here._replace(q=here.kept, part=here.part / 8, ended=here.part <= _LEAST_PART)
    further = here._replace(
        q=system.retract(q, step),
        u=step,
        multipliers=multipliers,
        kept=jnp.where(near, q, here.kept),
        merit=jnp.where(near, distance + multipliers @ gap, here.merit),
        part=jnp.where(near, jnp.minimum(2 * part, 1.0), here.part),
        moved=moved,
        growth=jnp.where(near, here.growth, jnp.maximum(here.growth, moved / here.moved)),
        closed=jnp.where(searching, here.closed | near, settled),
        stationary=stationary,
        ended=ended | task.solving,
    )
    taken = _choose(checking, checked, _choose(farther, back, further))
    return taken._replace(count=here.count + 1)


def _choose(condition: BoolScalar, one: Point, other: Point) -> Point:
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), one, other)


def _going(task: Task, here: Point) -> BoolScalar:
    """Is there a step to take? In a batch, who has ended goes through those of the others, which
    must not cost more for that."""
    return ~here.ended & (here.count < task.count)


def search(problem: Problem, task: Task, q: Float[Array, " nq"]) -> Point:
    """The search from q to the end of the task, without derivative."""
    problem, size = stop_gradient(problem), size_of(problem)
    structure, dtype = problem.system.structure, problem.q.dtype
    no, far, one = jnp.asarray(False), jnp.asarray(jnp.inf, dtype), jnp.ones((), dtype)
    rows, rest = jnp.zeros((len(structure.rows),), dtype), jnp.zeros((structure.nv,), dtype)
    none = jnp.zeros((), dtype)
    point = Point(q, rest, rows, q, far, one, far, none, no, no, no, no, jnp.asarray(0))
    return lax.while_loop(
        lambda here: _going(task, here),
        lambda here: _advance(problem, size, task, here),
        point,
    )


def nearest_task(problem: Problem, max_steps: int) -> Task:
    """The task of reaching the closed configuration nearest to the start."""
    rows = jnp.zeros((len(problem.system.structure.rows),), problem.q.dtype)
    no = jnp.asarray(False)
    return Task(rows, rows, rows, no, no, jnp.asarray(2 * max_steps))


# --------------------------------------------------------------------------------------------------
# Assembly of a mechanism whose redundant constraints contradict each other.
#
# Where everything fits, C_h (the geometric rows of C) has rank r; parts that are a little off make
# its dependent rows independent, by as little. Gauss-Newton with the whole of C_h would divide what
# is off by what is off: it would go far, to where the contradiction happens to be least. So steps
# are taken across the r directions in which the constraints hold the mechanism, with U_r S_r V_r^T
# the nearest matrix of rank r,
#
#     step = -V_r S_r^-1 U_r^T Phi,
#
# and end where U_r^T Phi = 0. What is left of Phi there lies in the left null space of that matrix:
# no motion makes it smaller, to first order, but along those in which the mechanism moves freely.
# --------------------------------------------------------------------------------------------------


_MAX_STEPS = 50


def assemble_least_squares(
    system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike, rank: int
) -> tuple[Float[Array, " nq"], RESULTS]:
    """The configuration near q in which the geometric constraints contradict each other least,
    across the `rank` directions in which they hold the mechanism where everything fits.

    Lengths count relative to the characteristic length, against angles in radians, both of what
    is left of the constraints and of the way from q, which is short where the mechanism moves
    freely. Works under `jit` and `vmap`; not differentiable.

    **Returns:** q (nq,), and `RESULTS.least_squares_not_found` where steps do not end.
    """
    unit = system.column_scale()

    def going(here: tuple[Array, Array, Array, Array]) -> BoolScalar:
        _, moved, before, count = here
        return ~still(moved, before) & (count < _MAX_STEPS)

    def step(here: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        q, moved, _, count = here
        u, s, vt = leading(scaled_geometric_matrix(system, q, t), rank)
        step = -vt.T @ ((u.T @ system.scaled_residual(q, t)) / s)
        return system.retract(q, unit * step), jnp.linalg.norm(step), moved, count + 1

    far = jnp.asarray(jnp.inf, q.dtype)
    end, moved, before, _ = lax.while_loop(going, step, (q, far, far, jnp.asarray(0)))
    found = RESULTS.where(still(moved, before), RESULTS.successful, RESULTS.least_squares_not_found)
    return end, found
