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
from typing import Any, NamedTuple

import jax.numpy as jnp
import lineax as lx
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import IntScalar, RealScalarLike, Scalar
from ._cholesky import cholesky
from ._descriptor import AbstractFactor, DenseFactor
from ._schur import SchurOperator


# How often K is repeated.
_REPEATED = 3


class _Turn(NamedTuple):
    """`stage`: 0, of the right-hand side `base` the null space is removed; 1, it is solved for; 2,
    of the solution `base` the null space is removed. `y`: what is repeated, x in stage 1."""

    stage: IntScalar
    base: Float[Array, " rows"]
    y: Float[Array, " rows"]
    status: Float[Array, " 3"]
    steps: Scalar


def _beginning(size: Scalar) -> Float[Array, " 3"]:
    return jnp.stack([jnp.ones_like(size), jnp.full_like(size, jnp.inf), jnp.zeros_like(size)])


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
    clean: bool = True

    def init(self, operator: lx.AbstractLinearOperator, options: dict[str, Any]) -> AbstractFactor:
        del options
        return factorise(operator, self.regularisation)

    def compute(
        self, state: AbstractFactor, vector: Float[Array, " rows"], options: dict[str, Any]
    ) -> tuple[Float[Array, " rows"], lx.RESULTS, dict[str, Any]]:
        del options
        right = vector / state.scale
        x, steps = self._cleaned(state, right) if self.clean else self._met(state, right)
        return x / state.scale, lx.RESULTS.successful, {"num_steps": steps.astype(int)}

    def _step(
        self,
        state: AbstractFactor,
        right: Float[Array, " rows"],
        x: Float[Array, " rows"],
        size: Scalar,
        status: Float[Array, " 3"],
    ) -> tuple[Float[Array, " rows"], Float[Array, " 3"]]:
        """The next x, and `status`: whether to go on after it, what it misses of the right-hand
        side and the count of steps. One array, as in a small system each operation of its own
        costs as much as a solve's."""
        mu, previous, count = self.regularisation, status[1], status[2] + 1
        new = state.solve(right + mu * x)
        # mu (new - x) is what is still missing of the right-hand side.
        left = mu * jnp.max(jnp.abs(new - x), initial=0.0)
        met = left <= self.rtol * size
        stalled = left > 0.5 * previous
        more = ~met & ~stalled & (count < self.max_steps)
        return new, jnp.stack([more.astype(size.dtype), left, count])

    # A loop holds the one copy of the solve, the first included: programs stay small.

    def _met(
        self, state: AbstractFactor, right: Float[Array, " rows"]
    ) -> tuple[Float[Array, " rows"], Scalar]:
        """x, and in how many steps."""
        size = jnp.max(jnp.abs(right), initial=0.0)
        x, status = lax.while_loop(
            lambda c: c[1][0] > 0,
            lambda c: self._step(state, right, c[0], size, c[1]),
            (jnp.zeros_like(right), _beginning(size)),
        )
        return x, status[2]

    def _cleaned(
        self, state: AbstractFactor, right: Float[Array, " rows"]
    ) -> tuple[Float[Array, " rows"], Scalar]:
        """The same, the null space removed from the right-hand side before and from x after.

        First K is repeated on the right-hand side, then come the steps, then K is repeated on x.
        """

        def turn(carry: _Turn) -> _Turn:
            solving = carry.stage == 1
            # K y = mu (S + mu I)^-1 y is a step from zero for the right-hand side mu y.
            wanted = jnp.where(solving, carry.base, self.regularisation * carry.y)
            x = jnp.where(solving, carry.y, 0.0)
            size = jnp.max(jnp.abs(wanted), initial=0.0)
            y, status = self._step(state, wanted, x, size, carry.status)
            ended = jnp.where(solving, status[0] == 0, status[2] == _REPEATED)
            stage = carry.stage + ended
            base = jnp.where(ended, jnp.where(solving, y, carry.base - y), carry.base)
            y = jnp.where(ended & ~solving, 0.0, y)
            steps = jnp.where(solving, status[2], carry.steps)
            return _Turn(stage, base, y, jnp.where(ended, _beginning(size), status), steps)

        none = jnp.zeros((), right.dtype)
        start = _Turn(jnp.asarray(0), right, right, _beginning(none), none)
        end = lax.while_loop(lambda carry: carry.stage < 3, turn, start)
        return end.base, end.steps

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
    return ProximalCholesky(regularisation=1e-8, max_steps=2, clean=False)


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
    matrix = operator.as_matrix()
    diagonal = jnp.diagonal(matrix)
    scale = jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1.0))
    scaled = matrix / scale[:, None] / scale[None, :]
    shift = jnp.where(diagonal > 0, regularisation, 1.0)
    return DenseFactor(scale, cholesky(scaled + jnp.diag(shift)))


@factorise.register
def _(operator: SchurOperator, regularisation: RealScalarLike) -> AbstractFactor:
    return operator.descriptor.factor(regularisation)
