"""x = A^+ b by a solver of lineax and its factor, with the derivative at constant rank.

The rule is that of `lineax.linear_solve` (Golub & Pereyra 1973), with which values agree:

    dx = A^+ (db - dA x + A^+T dA^T (b - A x)) + (I - A^+ A) dA^T A^+T x,

of which a solver that assumes full rank leaves the parts out that are zero then. But lineax checks
every solve of a derivative while the program runs, by a callback into Python, and a program with
such a callback is neither kept in JAX's compilation cache nor exported for another platform. Here
a solve that fails gives what is no number, as its value does, and the question that asked tells.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
from jax import lax
from jaxtyping import Array, Float

from .._fixed import fixed


def pseudosolve(
    operator: lx.AbstractLinearOperator,
    right: Float[Array, " m"],
    solver: lx.AbstractLinearSolver[Any],
    state: Any,
) -> Float[Array, " n"]:
    """A^+ b for b = `right`; `state` is what `solver.init` made of the operator."""
    return _solve(operator, right, fixed(state), solver)


@eqx.filter_custom_jvp
def _solve(
    operator: lx.AbstractLinearOperator,
    right: Float[Array, " m"],
    state: Any,
    solver: lx.AbstractLinearSolver[Any],
) -> Float[Array, " n"]:
    def solve(_: Any, right: Float[Array, " m"]) -> Float[Array, " n"]:
        return solver.compute(state, right, {})[0]

    if not lx.is_symmetric(operator):
        return solve(None, right)
    # Loops that end by themselves cannot be transposed, but a symmetric solve is its own
    # transpose. The matrix is asked for only where it has a derivative, which it never has here.
    return lax.custom_linear_solve(lambda x: x, right, solve, symmetric=True)


@_solve.def_jvp
def _solve_jvp(primals: Any, tangents: Any) -> Any:
    operator, right, state, solver = primals
    d_operator, d_right, _, _ = tangents
    x = _solve(*primals)
    inside = jnp.zeros_like(right) if d_right is None else d_right
    outside = jnp.zeros_like(x)
    if any(leaf is not None for leaf in jax.tree.leaves(d_operator)):
        rows, columns = operator.out_size(), operator.in_size()
        full = solver.assume_full_rank()
        other, _ = solver.transpose(state, {})

        def changed(product: Any) -> Array:
            value, change = eqx.filter_jvp(product, (operator,), (d_operator,))
            return jnp.zeros_like(value) if change is None else change

        inside = inside - changed(lambda a: a.mv(x))
        if not (full and rows <= columns):
            left = right - operator.mv(x)
            across = changed(lambda a: a.transpose().mv(left))
            inside = inside + _solve(operator.transpose(), across, other, solver)
        if not (full and columns <= rows):
            multipliers = _solve(operator.transpose(), x, other, solver)
            outside = changed(lambda a: a.transpose().mv(multipliers))
            inside = inside - operator.mv(outside)
    return x, _solve(operator, inside, state, solver) + outside
