"""Saddle-point systems of a Lagrangian's second derivative, by projected conjugate gradients.

    [ H  C^T ] [ u      ]   [ f ]
    [ C   0  ] [ lambda ] = [ g ]

H is known by its products alone. With M in its place the system is solved by one solve with
S = C M^-1 C^T; that is the preconditioner, under which conjugate gradients stay in the null space
of C (Gould, Hribar & Nocedal 2001, SIAM J. Sci. Comput. 23, algorithm 6.2). Where H is near M a
few steps do. The multipliers are carried along, so that the residual f - H u - C^T lambda stays as
small as the projected one and nothing is lost to rounding (ibid., section 6). Nothing is formed,
and S may be singular.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar
from ._kkt import KKTSystem


Pair = tuple[Float[Array, " nv"], Float[Array, " rows"]]
Product = Callable[[Float[Array, " nv"]], Float[Array, " nv"]]


class SaddlePoint(NamedTuple):
    """`u`, `multipliers`: the solution. `slope`: the length of P M^-1 f, with P the projector on
    the null space of C, in the metric of M (if g = 0). `convex`: conjugate gradients met no
    direction in the null space along which H is not positive. `converged`: to `rtol`.

    If conjugate gradients converge and met none, there is none along which f has a part: as long
    as all curvatures met are positive, they never make that part of the residual smaller.
    """

    u: Float[Array, " nv"]
    multipliers: Float[Array, " rows"]
    slope: Scalar
    convex: BoolScalar
    converged: BoolScalar


class _Carry(NamedTuple):
    solution: Pair
    left: Pair
    direction: Pair
    product: Scalar
    slope: Scalar
    scale: Scalar
    size: Scalar
    convex: BoolScalar
    count: IntScalar


def saddle_point(
    system: KKTSystem,
    hessian: Product,
    right: Pair,
    *,
    rtol: float,
    max_steps: RealScalarLike,
) -> SaddlePoint:
    """The solution of minimum-norm multipliers, for g in the range of C.

    **Arguments:**

    - `system`: M and C, factored.
    - `hessian`: u -> H u. `right`: f and g.
    - `rtol`: of the projected residual, relative to the right-hand side, in the metric of M^-1.
    - `max_steps`: products with H at most; with 0, H counts as M.
    """

    descriptor = system.descriptor

    def precondition(left: Pair) -> Pair:
        multipliers = system.approximate_multipliers(system.unconstrained_residual(*left))
        return system.acceleration(left[0], multipliers), multipliers

    def going(c: _Carry) -> BoolScalar:
        done = (c.size <= rtol**2 * c.scale) | ~c.convex | (c.count > max_steps)
        return (c.count == 0) | ~done

    def step(c: _Carry) -> _Carry:
        # The first step takes M for H and meets g; the others are those of conjugate gradients.
        starting = c.count == 0
        near = precondition(c.left)
        size = near[0] @ descriptor.mass(near[0])
        slope = jnp.where(starting, size, c.slope)
        # Of the right-hand side, projected or not: what is left of it may be rounding alone.
        scale = jnp.where(starting, c.scale + size, c.scale)
        product = c.left[0] @ near[0]
        old = jnp.where((c.count <= 1) | (c.product <= 0), 1.0, c.product)
        beta = jnp.where(c.count <= 1, 0.0, product / old)
        along = _add(near, beta, c.direction)
        pushed = hessian(along[0]), descriptor.apply_C(along[0])
        curvature = along[0] @ pushed[0]
        done = ~starting & (size <= rtol**2 * c.scale)
        convex = starting | done | (curvature > 0)
        length = jnp.where(convex & ~done, product / jnp.where(curvature > 0, curvature, 1.0), 0.0)
        length = jnp.where(starting, 1.0, length)
        solution = _add(c.solution, length, along)
        force = pushed[0] + descriptor.apply_CT(along[1])
        left = _add(c.left, -length, (force, pushed[1]))
        return _Carry(solution, left, along, product, slope, scale, size, convex, c.count + 1)

    zero = jnp.zeros_like(right[0]), jnp.zeros_like(right[1])
    none = jnp.zeros((), right[0].dtype)
    whole = right[0] @ descriptor.inverse_mass(right[0])
    yes, count = jnp.asarray(True), jnp.asarray(0)
    start = _Carry(zero, right, zero, none, none, whole, none, yes, count)
    end = lax.while_loop(going, step, start)
    converged = end.size <= rtol**2 * end.scale
    return SaddlePoint(*end.solution, jnp.sqrt(end.slope), end.convex, converged)


def _add(x: Pair, factor: Scalar, y: Pair) -> Pair:
    return x[0] + factor * y[0], x[1] + factor * y[1]
