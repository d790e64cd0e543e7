"""The descriptor form at one state with the factor of S + mu I: the KKT system, solved.

    [ M  C^T ] [ a      ]   [ f ]
    [ C   0  ] [ lambda ] = [ g ]

Functions of M, C and their factor at a state: multipliers of least norm, the accelerations that
they cause, the shortest step back onto the constraints, the admissible motion. Units are those of
the rows and columns: m or rad for those of C v, N or N m for f and lambda.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import IntScalar
from ._kkt_matrices import AbstractFactor, AbstractKKTMatrices
from ._proximal import ProximalCholesky
from ._pseudosolve import pseudosolve
from ._schur import SchurOperator


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
