from typing import Any

import lineax as lx
from jaxtyping import Array, Float


def pseudosolve(
    operator: lx.AbstractLinearOperator,
    right: Float[Array, " m"],
    solver: lx.AbstractLinearSolver[Any],
    state: Any,
) -> Float[Array, " n"]:
    """x = A^+ b for b = `right`, with the derivative at constant rank (Golub & Pereyra 1973), also
    of second order. `state` is what `solver.init` made of the operator.

    A failed solve is NaN, and the caller reports it. In programs that take a derivative lineax
    checks the solve by a callback into Python, which cannot be switched off.
    """
    return lx.linear_solve(operator, right, solver, state=state, throw=False).value
