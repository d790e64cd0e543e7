"""x = A^+ b by a solver of lineax, with its derivative at constant rank, also of second order.

With r = b - A x and y = A'^T A^+T x (Golub & Pereyra 1973, eq. 4.12, times b),

    x' = A^+ (b' - A' x + A^+T A'^T r - A y) + y.

The term with r vanishes where the rows of A are independent, those with y where its columns are.
`lineax.linear_solve` has this derivative too, but checks each solve in it by a callback into
Python, which lives in one process: programs of derivatives could not be kept for the next one.
"""

from typing import Any

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import lineax as lx
from jax.core import ShapedArray
from jaxtyping import Array, Float

from .._stop_gradient import stop_gradient


def pseudosolve(
    operator: lx.AbstractLinearOperator,
    right: Float[Array, " m"],
    solver: lx.AbstractLinearSolver[Any],
    state: Any,
) -> Float[Array, " n"]:
    """x = A^+ b for b = `right`; `state` is what `solver.init` made of the operator. No derivative
    is taken of the state or of what the solver holds. A failed solve is NaN, and the caller
    reports it."""
    return _solved(operator, right, *stop_gradient((solver, state)))


def _solved(operator: Any, right: Any, solver: Any, state: Any) -> Array:
    size = operator.in_size()
    return eqxi.filter_primitive_bind(_pseudosolve_p, operator, right, solver, state, size)[0]


def _evaluate(operator: Any, right: Any, solver: Any, state: Any, size: int) -> tuple[Array]:
    del operator, size
    return (solver.compute(state, right, {})[0],)


def _shape(operator: Any, right: Any, solver: Any, state: Any, size: int) -> tuple[Any]:
    del operator, solver, state
    return (ShapedArray((size,), right.dtype),)


def _derivative(primals: Any, tangents: Any) -> tuple[tuple[Array], tuple[Array]]:
    operator, right, solver, state, _ = primals
    operator_change, right_change, *_ = tangents
    x = _solved(operator, right, solver, state)
    sides = [] if right_change is None else [right_change]
    outside = jnp.zeros_like(x)
    if jax.tree.leaves(operator_change):
        full = solver.assume_full_rank()
        rows, columns = operator.out_size(), operator.in_size()
        transposed, turned = operator.transpose(), solver.transpose(state, {})[0]
        left, weight = None, None
        if not full or rows > columns:
            left = right - operator.mv(x)
        if not full or columns > rows:
            weight = _solved(transposed, x, solver, turned)

        def products(operator: Any) -> list[Array | None]:
            turned = operator.transpose()
            above = [None if vector is None else turned.mv(vector) for vector in (left, weight)]
            return [operator.mv(x), *above]

        _, changes = eqx.filter_jvp(products, (operator,), (operator_change,))
        moved, of_left, of_weight = changes
        if moved is not None:
            sides.append(-moved)
        if of_left is not None:
            sides.append(_solved(transposed, of_left, solver, turned))
        if of_weight is not None:
            sides.append(-operator.mv(of_weight))
            outside = of_weight
    if not sides:
        return (x,), (outside,)
    inside = _solved(operator, sum(sides[1:], sides[0]), solver, state)
    return (x,), (inside + outside,)


def _transposed(inputs: Any, change: Any) -> Any:
    """A^+T of what comes from behind; nothing but the right-hand side is linear."""
    operator, _, solver, state, _ = inputs
    back = _solved(operator.transpose(), change[0], solver, solver.transpose(state, {})[0])
    nothing = jax.tree.map(lambda _: None, (operator, solver, state))
    return nothing[0], back, *nothing[1:], None


_pseudosolve_p = eqxi.create_vprim(
    "pseudosolve",
    eqxi.filter_primitive_def(_evaluate),
    eqxi.filter_primitive_def(_shape),
    eqxi.filter_primitive_jvp(_derivative),
    eqxi.filter_primitive_transpose(_transposed, materialise_zeros=True),
)
