"""The derivative of an assembled configuration.

It is that of the conditions of the minimum, grad f + C^T lambda = 0 and Phi = 0, at the end point:
one saddle-point system, independent of the path to it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._linalg import directional_derivative, KKTSystem, motion_solver, saddle_point
from ._continuation import Continuation, find
from ._geometric_rows import geometric_descriptor, position_residual
from ._search import Problem, slope_of


# Accuracy of the derivative.
_DERIVATIVE_RTOL = 1e-13


@eqx.filter_custom_jvp
def nearest(
    problem: Problem, max_steps: int
) -> tuple[Float[Array, " nq"], Float[Array, " rows"], Continuation]:
    """The nearest closed configuration on the branch of the start, its multipliers, and the path to
    it, which shows whether they are valid; otherwise the closed or last configuration reached.
    There has to be a geometric row."""
    return find(problem, max_steps)


@nearest.def_jvp
def _nearest_jvp(primals: Any, tangents: Any) -> Any:
    problem, max_steps = primals
    tangent, _ = tangents
    q, multipliers, way = nearest(problem, max_steps)
    system = problem.system
    rest = jnp.zeros((system.structure.nv,), q.dtype)

    def residual(given: Problem) -> tuple[Float[Array, " nv"], Float[Array, " rows"]]:
        return slope_of(given, q, multipliers, rest), position_residual(given.system, q, given.t)

    change = directional_derivative(residual, problem, tangent)
    descriptor = geometric_descriptor(system, q, problem.t)
    _, hessian = jax.linearize(lambda u: slope_of(problem, q, multipliers, u), rest)
    nv = rest.shape[0]

    def matrix(x: Float[Array, " unknowns"]) -> Float[Array, " unknowns"]:
        u, force = x[:nv], x[nv:]
        return jnp.concatenate([hessian(u) + descriptor.apply_CT(force), descriptor.apply_C(u)])

    def solve(_: Any, right: Float[Array, " unknowns"]) -> Float[Array, " unknowns"]:
        solution = saddle_point(
            KKTSystem(descriptor, motion_solver()),
            hessian,
            (right[:nv], right[nv:]),
            rtol=_DERIVATIVE_RTOL,
            max_steps=2 * nv,
        )
        return jnp.concatenate([solution.u, solution.multipliers])

    # One vector: where a part of the right-hand side does not vary, two have no transpose.
    x = lax.custom_linear_solve(matrix, -jnp.concatenate(change), solve, symmetric=True)
    none: Any = None
    still = Continuation(none, none, none, none, jnp.zeros_like(way.reached))
    return (q, multipliers, way), (system.rate(q, x[:nv]), x[nv:], still)
