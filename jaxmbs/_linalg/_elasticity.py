"""Multipliers that strain elastic parts least, among all that carry the load.

    minimise  1/2 lambda^T K lambda - lambda^T delta    over all lambda with  S lambda = b,

K = D diag(compliance) D^T, delta = D misfit, with D the columns that deformations add to C. The
conditions are K lambda + S y = delta, S lambda = b, whose matrix is symmetric and singular: the
null space of S and K both is what nothing decides.

Two loops solve it, with one factor of S + mu K + eps I (rows of unit length). Steps of
(S + mu K)^-1 (b - S lambda) end at some lambda that carries the load; what it lies off in the null
space of S is taken away by the proximal method of multipliers (Rockafellar 1976) for b = 0, where
r = -S y grows until it balances the strain. The first loop leaves aside what of b is outside of
the range of S, so that a configuration that is closed to rounding alone does not matter.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, Scalar
from .._stop_gradient import stop_gradient
from ._kkt_matrices import AbstractFactor, AbstractKKTMatrices


# mu K is at most so large against the diagonal of S. An error along a singular value s of C M^-1/2
# shrinks by about mu / s^2 a step, and rounding in the null space of S grows by 1 / mu.
_SOFTNESS = 1e-5

# eps: what is decided by compliances this much smaller than the largest, over mu, takes more steps.
_REGULARISATION = 1e-12

_MAX_STEPS = 60
_FIRST = 3

# The misfit that may be left over, relative, and the last change of the solution: more is a misfit
# that nothing takes up, and a solution that was not found.
_LEFT = 1e-6

# Solves that remove what nothing decides from a vector.
_CLEANING = 3


class Elasticity(eqx.Module):
    """What gives way at one state.

    - `extended`: M and C with columns more for the deformations, whose block of M is the identity.
    - `compliance`, `misfit` (n,): of the deformations.
    """

    extended: AbstractKKTMatrices
    compliance: Float[Array, " n"]
    misfit: Float[Array, " n"]

    @property
    def velocities(self) -> int:
        """How many columns are those of velocities."""
        return self.extended.shape[1] - self.compliance.shape[0]

    def gap(self) -> Float[Array, " rows"]:
        """delta: what the misfit makes of the rows."""
        still = jnp.zeros((self.velocities,), self.misfit.dtype)
        return self.extended.apply_C(jnp.concatenate([still, self.misfit]))

    def products(
        self, multipliers: Float[Array, " rows"]
    ) -> tuple[Float[Array, " rows"], Float[Array, " rows"]]:
        """S lambda and K lambda."""
        moved = self.extended.inverse_mass(self.extended.apply_CT(multipliers))
        n, still = self.velocities, jnp.zeros_like(self.compliance)
        held = self.extended.apply_C(jnp.concatenate([moved[:n], still]))
        eased = jnp.concatenate([jnp.zeros_like(moved[:n]), self.compliance * moved[n:]])
        return held, self.extended.apply_C(eased)

    def multipliers(
        self, right: Float[Array, " rows"], gap: Float[Array, " rows"]
    ) -> tuple[Float[Array, " rows"], BoolScalar]:
        """lambda for b = `right` and delta = `gap`, of least norm in what nothing decides, and
        whether it was found. Differentiable, forward and reverse, along directions that keep the
        rank of C."""

        def apply(x: Float[Array, "2 rows"]) -> Float[Array, "2 rows"]:
            held, strain = self.products(x[0])
            return jnp.stack([strain + self.products(x[1])[0], held])

        def solve(_: Any, b: Float[Array, "2 rows"]) -> tuple[Float[Array, "2 rows"], BoolScalar]:
            found, settled = solver.solve(b[0], b[1])
            return jnp.stack(found), settled

        solver = stop_gradient(_Solver.of(self))
        # One array, as JAX has no derivative of a solve of which one right-hand side has none.
        both = jnp.stack([gap, right])
        found, settled = lax.custom_linear_solve(apply, both, solve, symmetric=True, has_aux=True)
        return found[0], settled


class _Loop(NamedTuple):
    """A solution `x` with S x and K x, r, the last change of x, the size of what was missing before
    that and before the one before it, and how many steps there were."""

    x: Float[Array, " rows"]
    held: Float[Array, " rows"]
    strain: Float[Array, " rows"]
    r: Float[Array, " rows"]
    change: Float[Array, " rows"]
    size: Scalar
    previous: Scalar
    count: Any


class _Solver(eqx.Module):
    """The factor of S + mu K + eps I, and its mu; no derivative is taken of them. Vectors are those
    of rows of unit length."""

    elasticity: Elasticity
    factor: AbstractFactor
    mu: Scalar

    @classmethod
    def of(cls, elasticity: Elasticity) -> "_Solver":
        """At one state."""
        compliance = elasticity.compliance
        velocity = jnp.ones((elasticity.velocities,), compliance.dtype)
        largest = jnp.max(compliance, initial=0.0)
        largest = jnp.where(largest > 0, largest, 1.0)
        root = jnp.sqrt(compliance / largest)

        def scaled(velocity: Array, deformation: Array) -> AbstractKKTMatrices:
            columns = jnp.concatenate([velocity, deformation])
            return elasticity.extended.scale_columns(columns)

        rigid = scaled(velocity, 0 * root).schur_diagonal()
        elastic = scaled(0 * velocity, root).schur_diagonal()
        ratio = jnp.max(elastic / jnp.where(rigid > 0, rigid, 1.0), initial=0.0)
        softness = _SOFTNESS / jnp.where(ratio > 0, ratio, 1.0)
        factor = scaled(velocity, jnp.sqrt(softness) * root).factor(_REGULARISATION)
        return cls(elasticity, factor, softness / largest)

    def solve(
        self, gap: Float[Array, " rows"], right: Float[Array, " rows"]
    ) -> tuple[tuple[Float[Array, " rows"], Float[Array, " rows"]], BoolScalar]:
        """(lambda, y) with K lambda + S y = gap, S lambda = right, and whether it was found."""
        scale = self.factor.scale
        given = gap / scale
        carrying = self._carry(right / scale)
        relaxed = self._relax(given - carrying.strain)
        found = carrying.x + relaxed.x
        found = found - self._undecided(found)
        # Asked for by derivatives alone.
        beside = self._carry(given - self._products(found)[1]).x
        last = relaxed.change - self._undecided(relaxed.change)
        settled = (_size(last) <= _LEFT * _size(found)) & (
            _size(self._undecided(given)) <= _LEFT * _size(given)
        )
        return (found / scale, beside / scale), settled

    def _carry(self, right: Float[Array, " rows"]) -> _Loop:
        """Some lambda with S lambda = right, as far as that is in the range of S."""
        return self._iterate(lambda loop: right - loop.held, right)

    def _relax(self, gap: Float[Array, " rows"]) -> _Loop:
        """x in the null space of S with K x - gap in the range of S."""
        return self._iterate(lambda loop: self.mu * (gap + loop.r - loop.strain) - loop.held, gap)

    def _iterate(
        self, missing: Callable[[_Loop], Float[Array, " rows"]], like: Float[Array, " rows"]
    ) -> _Loop:
        """Until what is missing is rounding, or grows no smaller. (Changes do not tell: in what
        nothing decides they are rounding over eps. Nor do the first steps, until r has begun to
        balance the strain.)"""

        def going(loop: _Loop) -> BoolScalar:
            stalled = (loop.size > 0.5 * loop.previous) & (loop.count > _FIRST)
            return ~stalled & (loop.size > 0) & (loop.count < _MAX_STEPS)

        def step(loop: _Loop) -> _Loop:
            left = missing(loop)
            change = self.factor.solve(left)
            x = loop.x + change
            held, strain = self._products(x)
            r = loop.r - held / self.mu
            return _Loop(x, held, strain, r, change, _size(left), loop.size, loop.count + 1)

        none, far = jnp.zeros_like(like), jnp.asarray(jnp.inf, like.dtype)
        start = _Loop(none, none, none, none, none, far, 4 * far, jnp.asarray(0))
        return lax.while_loop(going, step, start)

    def _undecided(self, x: Float[Array, " rows"]) -> Float[Array, " rows"]:
        """The part of x in the null space of S and K."""
        return lax.fori_loop(
            0, _CLEANING, lambda _, part: _REGULARISATION * self.factor.solve(part), x
        )

    def _products(
        self, x: Float[Array, " rows"]
    ) -> tuple[Float[Array, " rows"], Float[Array, " rows"]]:
        held, strain = self.elasticity.products(x / self.factor.scale)
        return held / self.factor.scale, strain / self.factor.scale


def _size(x: Float[Array, " n"]) -> Scalar:
    return jnp.max(jnp.abs(x), initial=0.0)
