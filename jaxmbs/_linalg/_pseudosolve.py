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

    What fails is NaN, and the question that asked tells. In programs that take a derivative
    lineax checks the solve by a callback into Python, which nobody can ask it not to.
    """
    return lx.linear_solve(operator, right, solver, state=state, throw=False).value
