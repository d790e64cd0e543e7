"""Symmetric positive semidefinite systems S x = b, b in the range of S, by one Cholesky factor.

S + mu I is positive definite whatever the rank of S. The proximal iteration

    x <- x + (S + mu I)^-1 (b - S x)  =  (S + mu I)^-1 (b + mu x),    x = 0 at first,

converges to the solution of minimum norm: an eigenvector of S with eigenvalue s keeps the error
(mu / (s + mu))^k, and the null space is never entered. S is scaled to unit diagonal D first, so
that the norm is lambda^T D lambda and independent of units.

A right-hand side leaves the range by rounding, and the null-space part of x grows by eps / mu a
step. So does everything in a derivative. Where x itself is wanted (and not C^T x alone) K = mu (S
+ mu I)^-1, which tends to the projector on the null space when it is repeated, cleans both.
"""

import functools
from typing import Any

import jax.numpy as jnp
import lineax as lx
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar
from ._kkt_matrices import AbstractFactor, dense_factor
from ._schur import SchurOperator


# mu where multipliers are wanted, or a state is brought back onto the constraints.
REGULARISATION = 1e-8

# Solves that remove the null space from a vector.
_CLEANING = 3


class ProximalCholesky(lx.AbstractLinearSolver[AbstractFactor]):
    """Lineax solver of symmetric positive semidefinite systems; the pseudoinverse in the metric
    of the diagonal, with its derivative at constant rank.

    **Arguments:**

    - `regularisation`: mu, relative to the unit diagonal.
    - `rtol`: iterations end when the right-hand side is met to this, relative to its size.
    - `max_steps`: iterations at most.
    - `clean`: remove the null space from right-hand side and solution. Without, x may hold a part
      of about 1e-9 |x| in the null space and its derivative there is left out: enough where only
      C^T x is used.
    """

    regularisation: RealScalarLike = 1e-7
    rtol: float = 1e-14
    max_steps: int | IntScalar = 20
    clean: bool | BoolScalar = True

    def init(self, operator: lx.AbstractLinearOperator, options: dict[str, Any]) -> AbstractFactor:
        del options
        return factorise(operator, self.regularisation)

    def compute(
        self, state: AbstractFactor, vector: Float[Array, " rows"], options: dict[str, Any]
    ) -> tuple[Float[Array, " rows"], lx.RESULTS, dict[str, Any]]:
        del options
        right = vector / state.scale
        # Known beforehand, it spares the loop what cleaning needs, a quarter of its operations.
        approach = self._cleaned if self.clean is not False else self._approached
        x, steps = approach(state, right)
        return x / state.scale, lx.RESULTS.successful, {"num_steps": steps.astype(int)}

    def _approached(
        self, factor: AbstractFactor, right: Float[Array, " rows"]
    ) -> tuple[Float[Array, " rows"], Scalar]:
        """x in the scaled rows by the iteration alone, and the number of its steps."""
        mu = self.regularisation
        size = jnp.max(jnp.abs(right), initial=0.0)

        def step(carry: Any) -> Any:
            x, (_, previous, count) = carry
            solved = factor.solve(right + mu * x)
            # mu (new - x) is what is still missing of the right-hand side.
            left = mu * jnp.max(jnp.abs(solved - x), initial=0.0)
            # Not so where it is no number.
            further = (left > self.rtol * size) & (left <= 0.5 * previous)
            further = further & (count + 1 < self.max_steps)
            return solved, jnp.stack([further.astype(x.dtype), left, count + 1])

        start = jnp.asarray([1.0, jnp.inf, 0.0], right.dtype)
        x, status = lax.while_loop(
            lambda carry: carry[1][0] > 0, step, (jnp.zeros_like(right), start)
        )
        return x, status[2]

    def _cleaned(
        self, factor: AbstractFactor, right: Float[Array, " rows"]
    ) -> tuple[Float[Array, " rows"], Scalar]:
        """The same, with right-hand side and x cleaned as far as `clean` says it."""
        mu = self.regularisation
        rough = 1 - self.clean
        first = _CLEANING * rough
        # One loop holds the one copy of the solve, for all that it is needed for: programs stay
        # small. Whether to go on, what was missing, the count and the stage stand in one array: in
        # a small system each operation of its own costs as much as a solve's.

        def step(carry: Any) -> Any:
            x, right, part, status = carry
            _, previous, count, stage = status
            solving = stage == _CLEANING
            solved = factor.solve(jnp.where(solving, right + mu * x, part))
            # mu (new - x) is what is still missing of the right-hand side.
            left = mu * jnp.max(jnp.abs(solved - x), initial=0.0)
            size = jnp.max(jnp.abs(right), initial=0.0)
            count = count + solving
            met = (left <= self.rtol * size) | (left > 0.5 * previous) | ~jnp.isfinite(left)
            done = solving & (met | (count >= self.max_steps))
            part = mu * solved
            cleaned = stage == _CLEANING - 1
            right = jnp.where(cleaned, right - part, right)
            x = jnp.where(solving, solved, x)
            last = stage == 2 * _CLEANING
            x = jnp.where(last, x - part, x)
            part = jnp.where(solving, x, part)
            end = last | (done & (rough > 0))
            stage = jnp.where(solving & ~done, stage, stage + 1)
            left = jnp.where(solving, left, jnp.inf)
            status = jnp.stack([(~end).astype(x.dtype), left, count, stage])
            return x, right, part, status

        start = jnp.asarray([1.0, jnp.inf, 0.0, first], right.dtype)
        x, _, _, status = lax.while_loop(
            lambda carry: carry[3][0] > 0, step, (jnp.zeros_like(right), right, right, start)
        )
        return x, status[2]

    def transpose(
        self, state: AbstractFactor, options: dict[str, Any]
    ) -> tuple[AbstractFactor, dict[str, Any]]:
        return state, options

    def conj(
        self, state: AbstractFactor, options: dict[str, Any]
    ) -> tuple[AbstractFactor, dict[str, Any]]:
        return state, options

    def assume_full_rank(self) -> bool:
        return not self.clean


def motion_solver() -> ProximalCholesky:
    """The solver where only C^T x is used: accelerations and projections.

    Next to a singular configuration x grows as 1 / sigma while C^T x stays finite, and singular
    values below sqrt(mu) are left out. What collects in the null space does not matter here,
    so mu is smaller: the motion is disturbed only within about 3e-5 of a passage.
    """
    return ProximalCholesky(regularisation=1e-9, clean=False)


def damped_solver() -> ProximalCholesky:
    """The solver that brings a state back which has left the constraints a little.

    Two steps reach singular values far above 1e-4. Along smaller ones nothing is moved: the
    residual there is as much smaller than the distance, and rounding divided by such a value
    would be the larger error.
    """
    return ProximalCholesky(regularisation=REGULARISATION, max_steps=2, clean=False)


@functools.singledispatch
def factorise(
    operator: lx.AbstractLinearOperator, regularisation: RealScalarLike
) -> AbstractFactor:
    """The factor of D^-1/2 S D^-1/2 + mu I of a positive semidefinite operator."""
    if not lx.is_positive_semidefinite(operator):
        raise ValueError(
            "ProximalCholesky solves positive semidefinite systems only; tag the operator with "
            "lineax.positive_semidefinite_tag, or use PivotedQR."
        )
    return dense_factor(operator.as_matrix(), regularisation)


@factorise.register
def _(operator: SchurOperator, regularisation: RealScalarLike) -> AbstractFactor:
    return operator.descriptor.factor(regularisation)
