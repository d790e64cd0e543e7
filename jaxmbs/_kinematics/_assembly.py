"""Assembly: from a configuration that does not close to the nearest one that does.

The assembled configuration is defined as the point on Phi = 0 nearest to the start q0:

    minimise 1/2 d^T M(q0) d    subject to    Phi(q0 + d, t) = 0,

with d the retraction coordinates from q0. Two stages find it: Gauss-Newton with
minimum-norm steps, in the metric of the diagonal of M, closes the mechanism (redundant rows do not
hurt a minimum-norm step), and Gauss-Newton on the KKT equations

    M(q0) d + (dPhi/dd)^T lambda = 0,     Phi = 0

slides along the closed configurations to the nearest one (the limit of Gauss-Newton alone is
close to it, not equal). Multipliers are those of minimum norm.

Everything happens in coordinates z that are d divided by the square roots of the diagonal of
M(q0), with rows of dPhi/dz made of unit length at q0, so that no decision depends on units. (A
Cholesky factor of M would make them orthonormal, at the price of a second LAPACK call beside those
of the iteration; see AbstractCriterion.measure for why there must be none.)

The solvers see neither the start nor the parameters as differentiable (optimistix treats an
initial guess as having no derivative, and its default implicit adjoint fails or silently
returns zero on redundant rows). So the result carries its own derivative, that of the KKT
system, solved in the least-squares sense: exact along every direction that keeps the
mechanism closed and its rank.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import optimistix as optx
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, RealScalarLike, Scalar
from .._linalg import normalise_rows, RegularisedGaussNewton
from .._solution import RESULTS
from .._system import AbstractSystem


# Residuals at most this large count as closed, lengths relative to the characteristic length.
CLOSED = 1e-8

# Singular values of the KKT matrix below this, relative to the largest, count as zero; they are
# the squares of those of the scaled dPhi/dz.
_KKT_RANK = 1e-12

# Stiffness against opening, and the curvature below which a stationary point is no minimum;
# rounding of the former stays below the latter.
_STIFF = 1e6
_FLAT = 1e-6

# Steps are taken until they no longer change what double precision holds.
_EPS = 4e-15


_Unknowns = tuple[Float[Array, " nv"], Float[Array, " geometric"]]


class Assembly(eqx.Module):
    """The outcome of `assemble`.

    - `q` (nq,): the configuration. `result`: a `RESULTS` member.
    - `residual` (geometric rows,): what is left of Phi, lengths relative to the characteristic
      length. `distance`: sqrt(d^T M d) from the start (m sqrt(kg)).
    """

    q: Float[Array, " nq"]
    residual: Float[Array, " geometric"]
    distance: Scalar
    result: RESULTS


def assemble(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    t: RealScalarLike = 0.0,
    *,
    max_steps: int = 100,
    throw: bool = True,
) -> Assembly:
    """The closed configuration nearest to q in the mass metric of q, drivers at time t.

    Redundant constraints do not disturb it. Differentiable, forward and reverse, in q, t and
    every array of the system; along a direction that breaks closure or rank the derivative
    means nothing, as there is none.

    **Arguments:** `q` (nq,): the start; `t`: s; `max_steps`: of each of the two stages.

    **Returns:** an `Assembly`.

    **Raises:** `RuntimeError` if the mechanism does not close (naming the joint that stays
    open and by how much) or the nearest point is not found. Under `jit` or `vmap` that error is
    raised at run time without the names; with `throw=False` the `result` says so instead.
    """
    assembly = _assemble(system, q, jnp.asarray(t, q.dtype), max_steps)
    if throw:
        failed = assembly.result != RESULTS.successful
        if not isinstance(failed, Tracer) and bool(failed):
            raise RuntimeError(_explanation(system, q, t, assembly))
        checked = assembly.result.error_if(assembly.q, failed)
        assembly = eqx.tree_at(lambda a: a.q, assembly, checked)
    return assembly


@eqx.filter_jit
def close(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    t: RealScalarLike = 0.0,
    *,
    max_steps: int = 100,
) -> tuple[Float[Array, " nq"], Float[Array, " geometric"]]:
    """A closed configuration near q, not exactly the nearest, and what is left of Phi there
    (lengths relative to the characteristic length).

    The first stage of `assemble` alone: cheaper, and not differentiable.
    """
    arrays, rest = eqx.partition(_Problem(system, q, jnp.asarray(t, q.dtype)), eqx.is_array)
    problem = eqx.combine(lax.stop_gradient(arrays), rest)
    scale = _scale(problem)
    closed_q = system.retract(q, scale.step * (_gauss_newton(problem, scale, max_steps)))
    return closed_q, system.scaled_residual(closed_q, t)


def is_closed(residual: Float[Array, " geometric"]) -> BoolScalar:
    """Does this scaled residual (lengths relative to the characteristic length) count as
    closed?"""
    return jnp.all(jnp.abs(residual) <= CLOSED)


def open_constraints(
    system: AbstractSystem, residual: Float[Array, " geometric"]
) -> list[tuple[str, float, str]]:
    """Joints and drivers that are not closed, the worst first: name, largest residual, unit
    ("m" or "rad"). Concrete arguments only."""
    structure = system.structure
    scaled = np.abs(np.asarray(residual))
    length = float(system.characteristic_length())
    worst: dict[str, tuple[float, float, str]] = {}
    for value, row in zip(scaled, structure.geometric_rows, strict=True):
        if value <= CLOSED:
            continue
        name = structure.constraints[structure.row_owner[row]].name
        is_length = bool(structure.length_rows[row])
        entry = (value, value * length if is_length else value, "m" if is_length else "rad")
        worst[name] = max(worst.get(name, entry), entry)
    order = sorted(worst.items(), key=lambda item: -item[1][0])
    return [(name, amount, unit) for name, (_, amount, unit) in order]


def _explanation(
    system: AbstractSystem, start: Float[Array, " nq"], t: RealScalarLike, assembly: Assembly
) -> str:
    text = RESULTS[assembly.result]
    if bool(is_closed(assembly.residual)):
        return text
    still_open = open_constraints(system, _least_residual(system, start, t))
    if not still_open:
        return text
    named = [f"{name!r} by {amount:.3g} {unit}" for name, amount, unit in still_open[:3]]
    more = f" and {len(still_open) - 3} more" if len(still_open) > 3 else ""
    return f"{text} Still open: {', '.join(named)}{more}."


@eqx.filter_jit
def _least_residual(
    system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike
) -> Float[Array, " geometric"]:
    """What is left of Phi where it is smallest (least squares): how far a mechanism that does
    not close is from closing. A globalised method, as the smallest residual is not zero."""

    def residual(step: Float[Array, " nv"], _: None) -> Float[Array, " geometric"]:
        return system.scaled_residual(system.retract(q, length * step), t)

    length = jnp.where(system.structure.length_columns, system.characteristic_length(), 1.0)
    step = optx.least_squares(
        residual,
        optx.LevenbergMarquardt(1e-10, 1e-10),
        jnp.zeros_like(length),
        max_steps=1000,
        throw=False,
    ).value
    return residual(step, None)


@eqx.filter_jit
def _assemble(
    system: AbstractSystem, q: Float[Array, " nq"], t: Scalar, max_steps: int
) -> Assembly:
    problem = _Problem(system, q, t)
    z, _, nearest = _nearest(problem, max_steps)
    step = _scale(problem).step * z
    closed_q = system.retract(q, step)
    residual = system.scaled_residual(closed_q, t)
    result = RESULTS.where(nearest, RESULTS.successful, RESULTS.assembly_not_nearest)
    result = RESULTS.where(is_closed(residual), result, RESULTS.assembly_did_not_close)
    square = step @ system.mass_matrix(q) @ step
    moved = square > 0
    distance = jnp.where(moved, jnp.sqrt(jnp.where(moved, square, 1.0)), 0.0)
    return Assembly(closed_q, residual, distance, result)


class _Problem(eqx.Module):
    """What the assembled configuration depends on."""

    system: AbstractSystem
    q: Float[Array, " nq"]
    t: Scalar


class _Scale(eqx.Module):
    """Dimensionless coordinates z with d = step * z, and the scale of each row; constants."""

    step: Float[Array, " nv"]
    row: Float[Array, " geometric"]


def _scale(problem: _Problem) -> _Scale:
    arrays, rest = eqx.partition(problem, eqx.is_array)
    fixed = eqx.combine(lax.stop_gradient(arrays), rest)
    system, q, t = fixed.system, fixed.q, fixed.t
    inertia = jnp.diagonal(system.mass_matrix(q))
    # z is of order one for a motion by one characteristic length, or one radian.
    length = jnp.where(system.structure.length_columns, system.characteristic_length(), 1.0)
    size = jnp.sqrt(jnp.mean(inertia * length**2))
    step = size / jnp.sqrt(inertia)
    v = jnp.zeros((system.structure.nv,), q.dtype)
    rows = system.constraint_matrix(q, v, t)[system.structure.geometric_rows]
    return _Scale(step, normalise_rows(rows * step[None, :])[1])


def _closure(
    problem: _Problem, scale: _Scale, z: Float[Array, " nv"]
) -> Float[Array, " geometric"]:
    """Phi at z, rows scaled."""
    q = problem.system.retract(problem.q, scale.step * z)
    return problem.system.position_residual(q, problem.t) / scale.row


def _kkt(problem: _Problem, scale: _Scale, unknowns: _Unknowns) -> _Unknowns:
    """Residual of the KKT equations at (z, lambda)."""
    z, multipliers = unknowns
    closure, transpose = jax.vjp(lambda x: _closure(problem, scale, x), z)
    return _weigh(problem, scale, z) + transpose(multipliers)[0], closure


def _weigh(problem: _Problem, scale: _Scale, z: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """M(q0) z in the dimensionless coordinates, with a diagonal of order one."""
    mass = problem.system.mass_matrix(problem.q)
    size = lax.stop_gradient(jnp.mean(scale.step**2 * jnp.diagonal(mass)))
    return scale.step * (mass @ (scale.step * z)) / size


def _least_curvature(problem: _Problem, scale: _Scale, unknowns: _Unknowns) -> Scalar:
    """Smallest eigenvalue of the Lagrangian's second derivative along closed configurations
    (positive at a minimum): directions that open the mechanism are made stiff."""
    z, multipliers = unknowns
    hessian, rows = jax.jacfwd(lambda x: _kkt(problem, scale, (x, multipliers)))(z)
    symmetric = (hessian + hessian.T) / 2
    return jnp.linalg.eigvalsh(symmetric + _STIFF * rows.T @ rows)[0]


def _gauss_newton(problem: _Problem, scale: _Scale, max_steps: int) -> Float[Array, " nv"]:
    """z of a closed configuration, by steps of minimum norm; the best one met otherwise."""
    start = jnp.zeros((problem.system.structure.nv,), problem.q.dtype)
    return optx.least_squares(
        lambda z, _: _closure(problem, scale, z),
        RegularisedGaussNewton(_EPS, _EPS),
        start,
        max_steps=max_steps,
        throw=False,
    ).value


@eqx.filter_custom_jvp
def _nearest(
    problem: _Problem, max_steps: int
) -> tuple[Float[Array, " nv"], Float[Array, " geometric"], BoolScalar]:
    """z and multipliers of the nearest closed configuration, and whether that is what they
    are; z of the closed or best configuration met otherwise."""
    scale = _scale(problem)
    start = jnp.zeros((problem.system.structure.nv,), problem.q.dtype)
    if problem.system.structure.geometric_rows.size == 0:
        return start, jnp.zeros((0,), start.dtype), jnp.asarray(True)
    closed = _gauss_newton(problem, scale, max_steps)
    # The equations are linear in the multipliers, so that zero is as good a start as any.
    guess = jnp.zeros(problem.system.structure.geometric_rows.shape, start.dtype)
    z, multipliers = optx.least_squares(
        lambda unknowns, _: _kkt(problem, scale, unknowns),
        RegularisedGaussNewton(_EPS, _EPS),
        (closed, guess),
        max_steps=max_steps,
        throw=False,
    ).value
    slope, gap = _kkt(problem, scale, (z, multipliers))
    # A stationary point that is farther away than the point it was sought from is no nearest
    # one, but a saddle or a point on another branch.
    distances = [jnp.sqrt(x @ _weigh(problem, scale, x)) for x in (z, closed)]
    nearer = distances[0] <= distances[1] * (1 + 1e-6) + CLOSED
    stationary = jnp.max(jnp.abs(slope)) <= CLOSED
    convex = _least_curvature(problem, scale, (z, multipliers)) > -_FLAT
    nearest = stationary & nearer & convex & (jnp.max(jnp.abs(gap)) <= CLOSED)
    return jnp.where(nearest, z, closed), jnp.where(nearest, multipliers, guess), nearest


@_nearest.def_jvp
def _nearest_jvp(primals: Any, tangents: Any) -> Any:
    problem, max_steps = primals
    tangent, _ = tangents
    z, multipliers, nearest = _nearest(problem, max_steps)
    scale = _scale(problem)

    def residual(given: _Problem) -> Float[Array, " unknowns"]:
        slope, closure = _kkt(given, scale, (z, multipliers))
        return jnp.concatenate([slope, closure])

    def residual_of(unknowns: Float[Array, " unknowns"]) -> Float[Array, " unknowns"]:
        parts = (unknowns[: z.shape[0]], unknowns[z.shape[0] :])
        return jnp.concatenate(_kkt(problem, scale, parts))

    _, change = eqx.filter_jvp(residual, (problem,), (tangent,))
    matrix = jax.jacfwd(residual_of)(jnp.concatenate([z, multipliers]))
    solution = lx.linear_solve(
        lx.MatrixLinearOperator(matrix), -change, lx.SVD(rcond=_KKT_RANK), throw=False
    ).value
    z_dot, multipliers_dot = solution[: z.shape[0]], solution[z.shape[0] :]
    return (z, multipliers, nearest), (z_dot, multipliers_dot, None)
