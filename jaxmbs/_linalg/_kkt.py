"""The descriptor form at one state, solved: with the factor of S + mu I, beside a free motion, and
as a saddle point.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar
from ._kkt_matrices import AbstractFactor, AbstractKKTMatrices, SchurOperator, unit_rows
from ._solvers import ProximalCholesky, pseudosolve


# --------------------------------------------------------------------------------------------------
# The descriptor form at one state with the factor of S + mu I: the KKT system, solved.
#
#     [ M  C^T ] [ a      ]   [ f ]
#     [ C   0  ] [ lambda ] = [ g ]
#
# Functions of M, C and their factor at a state: multipliers of least norm, the accelerations that
# they cause, the shortest step back onto the constraints, the admissible motion. Units are those of
# the rows and columns: m or rad for those of C v, N or N m for f and lambda.
# --------------------------------------------------------------------------------------------------


class KKTSystem(eqx.Module):
    """M and C with the factor of S + mu I, S = C M^-1 C^T.

    **Arguments:**

    - `descriptor`: M and C.
    - `solver`: how multipliers are iterated with that factor, and its mu.
    - `factor`: if it is there already, for the mu of the solver.
    """

    descriptor: AbstractKKTMatrices
    factor: AbstractFactor
    solver: ProximalCholesky

    def __init__(
        self,
        descriptor: AbstractKKTMatrices,
        solver: ProximalCholesky,
        factor: AbstractFactor | None = None,
    ):
        self.descriptor, self.solver = descriptor, solver
        self.factor = descriptor.factor(solver.regularisation) if factor is None else factor

    def with_solver(self, solver: ProximalCholesky) -> "KKTSystem":
        """The system with another solver of the same mu."""
        return KKTSystem(self.descriptor, solver, self.factor)

    def unconstrained_residual(
        self, force: Float[Array, " nv"], offset: Float[Array, " rows"]
    ) -> Float[Array, " rows"]:
        """C M^-1 f - g, which multipliers are to take away."""
        return self.descriptor.apply_C(self.descriptor.inverse_mass(force)) - offset

    def multipliers(self, right: Float[Array, " rows"]) -> Float[Array, " rows"]:
        """S^+ right in the metric of S's diagonal, with its derivative at constant rank
        (`pseudosolve`), which is that of lambda where rows have unit length, and that of
        C^T lambda always."""
        return pseudosolve(SchurOperator(self.descriptor), right, self.solver, self.factor)

    def approximate_multipliers(
        self, right: Float[Array, " rows"], steps: int | IntScalar | None = None
    ) -> Float[Array, " rows"]:
        """S^+ right in at most so many proximal steps, if not those of the solver, without a
        derivative."""
        solver = self.solver
        if steps is not None:
            solver = eqx.tree_at(lambda s: s.max_steps, solver, steps)
        return solver.compute(self.factor, right, {})[0]

    def proximal(
        self, right: Float[Array, "rows k"], start: Float[Array, "rows k"], steps: int
    ) -> Float[Array, "rows k"]:
        """The given number of proximal steps of several columns, in scaled rows (see
        `AbstractFactor`): multipliers for a start of zero, null parts of the start for a right-hand
        side of zero (see `ProximalCholesky`). Without a derivative."""
        solve, mu = jax.vmap(self.factor.solve, 1, 1), self.solver.regularisation
        return lax.fori_loop(0, steps, lambda _, x: solve(right + mu * x), start)

    def inverse_iteration(self, x: Float[Array, " rows"]) -> Float[Array, " rows"]:
        """S (S + mu I)^-2 x, in scaled rows: one step towards the left singular vectors of C M^-1/2
        with the smallest nonzero values. The product with S removes the null space, which enters
        the solves by rounding. Without a derivative."""
        twice = lax.fori_loop(0, 2, lambda _, x: self.factor.solve(x), x)
        scale = self.factor.scale
        return self.descriptor.apply_C(self.response(twice / scale)) / scale

    def response(self, multipliers: Float[Array, " rows"]) -> Float[Array, " nv"]:
        """M^-1 C^T lambda."""
        return self.descriptor.inverse_mass(self.descriptor.apply_CT(multipliers))

    def correction(self, rate: Float[Array, " rows"]) -> Float[Array, " nv"]:
        """M^-1 C^T S^+ rate: the shortest change of velocity, in the mass metric, that changes
        C v by the rate."""
        return self.response(self.multipliers(rate))

    def acceleration(
        self, force: Float[Array, " nv"], multipliers: Float[Array, " rows"]
    ) -> Float[Array, " nv"]:
        """M^-1 (f - C^T lambda)."""
        return self.descriptor.inverse_mass(force - self.descriptor.apply_CT(multipliers))


def correction(
    descriptor: AbstractKKTMatrices, rate: Float[Array, " rows"], solver: ProximalCholesky
) -> Float[Array, " nv"]:
    """`KKTSystem.correction` of one rate."""
    return corrections(descriptor, rate[None], solver)[0]


def corrections(
    descriptor: AbstractKKTMatrices, rates: Float[Array, "k rows"], solver: ProximalCholesky
) -> Float[Array, "k nv"]:
    """`correction` of several rates with one factor."""
    count, size = rates.shape[0], descriptor.shape
    if not size[0]:
        return jnp.zeros((count, size[1]), rates.dtype)
    return jax.vmap(KKTSystem(descriptor, solver).correction)(rates)


# --------------------------------------------------------------------------------------------------
# The motion that constraints allow next to a free one, at constant rank, and its derivative.
#
#     M a + C^T lambda = F,    C a = Gamma in the sense of least squares,
#
# lambda of least norm, all in rows of unit length: C and Gamma divided by the roots of the diagonal
# of S = C M^-1 C^T. What is differentiated is that (Golub & Pereyra 1973), with e = Gamma - C a
# left over where rows contradict each other:
#
#     M da + C^T dlambda = dF - dM a - dC^T lambda,
#     C da = dGamma - dC a + z,    C^T z = dC^T e,
#
# two more solves with the same factor. The component of dlambda in the null space of C^T is left
# out: multipliers that are unique have none there.
# --------------------------------------------------------------------------------------------------


@eqx.filter_custom_jvp
def constrained(
    descriptor: AbstractKKTMatrices,
    force: Float[Array, " nv"],
    offset: Float[Array, " rows"],
    solver: ProximalCholesky,
) -> tuple[Float[Array, " nv"], Float[Array, " rows"]]:
    """a and lambda for F = `force` and Gamma = `offset`.

    A `solver` that does not clean leaves rounding in the null space of C^T, which is nothing in a;
    the derivative is always that of the cleaned solution.
    """
    rows = unit_rows(descriptor)
    system = KKTSystem(rows, solver)
    multipliers = system.multipliers(system.unconstrained_residual(force, offset / rows.scale))
    return system.acceleration(force, multipliers), multipliers / rows.scale


@constrained.def_jvp
def _constrained_jvp(primals: Any, tangents: Any) -> Any:
    descriptor, force, offset, given = primals
    rows = unit_rows(descriptor)
    # In rows of unit length the pseudoinverse in the metric of the diagonal of S is the ordinary
    # one, whose derivative `pseudosolve` knows.
    system = KKTSystem(rows, ProximalCholesky(given.regularisation))
    multipliers = system.multipliers(system.unconstrained_residual(force, offset / rows.scale))
    motion = system.acceleration(force, multipliers)
    left = offset / rows.scale - rows.apply_C(motion)

    def conditions(descriptor: AbstractKKTMatrices, force: Any, offset: Any) -> Any:
        rows = unit_rows(descriptor)
        balance = force - rows.mass(motion) - rows.apply_CT(multipliers)
        rate = offset / rows.scale - rows.apply_C(motion)
        return balance, rate, rows.apply_CT(left), rows.scale

    met, changes = eqx.filter_jvp(conditions, (descriptor, force, offset), tangents[:3])
    # What does not change has no tangent.
    balance, rate, against, longer = (
        jnp.zeros_like(x) if change is None else change
        for x, change in zip(met, changes, strict=True)
    )
    # What the null space holds of the first one, the second removes.
    rough = system.with_solver(given)
    apart = rough.multipliers(system.unconstrained_residual(against, jnp.zeros_like(rate)))
    change = system.multipliers(system.unconstrained_residual(balance, rate + apart))
    lengthened = (change - multipliers / rows.scale * longer) / rows.scale
    return (motion, multipliers / rows.scale), (system.acceleration(balance, change), lengthened)


# --------------------------------------------------------------------------------------------------
# Saddle-point systems of a Lagrangian's second derivative, by projected conjugate gradients.
#
#     [ H  C^T ] [ u      ]   [ f ]
#     [ C   0  ] [ lambda ] = [ g ]
#
# H is known by its products alone. With M in its place the system is solved by one solve with S = C
# M^-1 C^T; that is the preconditioner, under which conjugate gradients stay in the null space of C
# (Gould, Hribar & Nocedal 2001, SIAM J. Sci. Comput. 23, algorithm 6.2). Where H is near M a few
# steps do. The multipliers are carried along, so that the residual f - H u - C^T lambda stays as
# small as the projected one and nothing is lost to rounding (ibid., section 6). Nothing is formed,
# and S may be singular.
# --------------------------------------------------------------------------------------------------


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
