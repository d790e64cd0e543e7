"""Multipliers that strain elastic parts least, among all that carry the load.

    minimise  1/2 lambda^T K lambda - lambda^T delta    over all lambda with  S lambda = b,

K = D diag(c) D^T, delta = D (misfit + diag(c) load), with D the columns that deformations add to C
and c their compliances: a deformation is c (load - D^T lambda) + misfit. The
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
from ._kkt_matrices import AbstractFactor, AbstractKKTMatrices, SchurOperator


# mu K is at most so large against the diagonal of S. An error along a singular value s of C M^-1/2
# shrinks by about mu / s^2 a step, and rounding in the null space of S grows by 1 / mu.
_SOFTNESS = 1e-5

# eps: what is decided by compliances this much smaller than the largest, over mu, takes more steps.
_REGULARISATION = 1e-12

_RTOL = 1e-14
_MAX_STEPS = 60
_FIRST = 3

# The misfit that may be left over, relative, and the last change of the solution: more is a misfit
# that nothing takes up, and a solution that was not found.
_LEFT = 1e-6

# Solves that remove what nothing decides from a vector.
_CLEANING = 3


class Elasticity(eqx.Module):
    """Elasticity of the bodies and joints at one state.

    - `extended`: M and C with columns more for the deformations, whose block of M is the identity.
    - `compliance`, `misfit` (n,): of the deformations. `load` (n,): what applied forces push each
      of them with.
    - `geometric` (rows,): 1 in geometric rows and 0 in velocity rows. There a misfit has no effect:
      a wheel placed off its position rolls on without stress.
    """

    extended: AbstractKKTMatrices
    compliance: Float[Array, " n"]
    misfit: Float[Array, " n"]
    load: Float[Array, " n"]
    geometric: Float[Array, " rows"]

    @property
    def velocities(self) -> int:
        """Number of columns of velocities."""
        return self.extended.shape[1] - self.compliance.shape[0]

    def gap(self) -> Float[Array, " rows"]:
        """delta: what misfits and applied forces make of the rows."""
        misfit = self.geometric * self._of_deformations(self.misfit)
        return misfit + self._of_deformations(self.compliance * self.load)

    def deformation_forces(self, multipliers: Float[Array, " rows"]) -> Float[Array, " n"]:
        """D^T lambda - load: what each deformation carries, against it (of a rod its axial force,
        compression positive)."""
        return self.extended.apply_CT(multipliers)[self.velocities :] - self.load

    def _of_deformations(self, sizes: Float[Array, " n"]) -> Float[Array, " rows"]:
        still = jnp.zeros((self.velocities,), sizes.dtype)
        return self.extended.apply_C(jnp.concatenate([still, sizes]))

    def strain(self, multipliers: Float[Array, " rows"]) -> Float[Array, " rows"]:
        """K lambda."""
        pushed = self.extended.apply_CT(multipliers)[self.velocities :]
        return self._of_deformations(self.compliance * pushed)

    def multipliers(
        self,
        rigid: AbstractKKTMatrices,
        right: Float[Array, " rows"],
        gap: Float[Array, " rows"],
    ) -> tuple[Float[Array, " rows"], BoolScalar]:
        """lambda for b = `right` and delta = `gap`, of least norm in what nothing decides, and
        whether it was found. `rigid`: M and C. What is decided is differentiable, forward and
        reverse, along directions that keep the rank of C."""
        held = SchurOperator(rigid).mv

        # As one vector: of several right-hand sides JAX transposes all or none.
        def apply(both: Float[Array, " twice"]) -> Float[Array, " twice"]:
            multipliers, beside = jnp.split(both, 2)
            return jnp.concatenate([self.strain(multipliers) + held(beside), held(multipliers)])

        def solve(
            _: Any, both: Float[Array, " twice"]
        ) -> tuple[Float[Array, " twice"], BoolScalar]:
            found, settled = solver.solve(*jnp.split(both, 2))
            return jnp.concatenate(found), settled

        solver = stop_gradient(_Solver.of(rigid, self))
        both, settled = lax.custom_linear_solve(
            apply, jnp.concatenate([gap, right]), solve, symmetric=True, has_aux=True
        )
        return jnp.split(both, 2)[0], settled


class _Loop(NamedTuple):
    """A solution `x` with S x and mu K x, mu r, the last change of x, the size of what was missing
    before that and before the one before it, and how many steps there were."""

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

    rigid: AbstractKKTMatrices
    elasticity: Elasticity
    factor: AbstractFactor
    mu: Scalar

    @classmethod
    def of(cls, rigid: AbstractKKTMatrices, elasticity: Elasticity) -> "_Solver":
        """The elasticity at one state."""
        compliance = elasticity.compliance
        velocity = jnp.ones((elasticity.velocities,), compliance.dtype)
        largest = jnp.max(compliance, initial=0.0)
        largest = jnp.where(largest > 0, largest, 1.0)
        root = jnp.sqrt(compliance / largest)

        def scaled(velocity: Array, deformation: Array) -> AbstractKKTMatrices:
            columns = jnp.concatenate([velocity, deformation])
            return elasticity.extended.scale_columns(columns)

        elastic = scaled(0 * velocity, root).schur_diagonal()
        ratio = jnp.max(elastic / rigid.row_scale() ** 2, initial=0.0)
        softness = _SOFTNESS / jnp.where(ratio > 0, ratio, 1.0)
        factor = scaled(velocity, jnp.sqrt(softness) * root).factor(_REGULARISATION)
        return cls(rigid, elasticity, factor, softness / largest)

    def solve(
        self, gap: Float[Array, " rows"], right: Float[Array, " rows"]
    ) -> tuple[tuple[Float[Array, " rows"], Float[Array, " rows"]], BoolScalar]:
        """(lambda, y) with K lambda + S y = gap, S lambda = right, and whether it was found."""
        scale = self.factor.scale
        given = gap / scale
        particular = self._particular(right / scale)
        correction = self._null_space_correction(given - self._strain(particular.x))
        found = particular.x + correction.x
        found = found - self._undecided_part(found)
        # Needed by derivatives alone.
        beside = self._particular(given - self._strain(found)).x
        last = correction.change - self._undecided_part(correction.change)
        given_load, held = right / scale, SchurOperator(self.rigid).mv(found / scale) / scale
        settled = (
            (_size(last) <= _LEFT * _size(found))
            & (_size(self._undecided_part(given)) <= _LEFT * _size(given))
            # Next to a singular configuration the load is not carried before the steps stall.
            & (
                _size(given_load - held)
                <= _LEFT * jnp.maximum(_size(given_load), 1e-3 * _size(found))
            )
        )
        return (found / scale, beside / scale), settled

    def _particular(self, right: Float[Array, " rows"]) -> _Loop:
        """Some lambda with S lambda = right, as far as that is in the range of S."""
        return self._iterate(lambda loop: right - loop.held, right)

    def _null_space_correction(self, gap: Float[Array, " rows"]) -> _Loop:
        """x in the null space of S with K x - gap in the range of S."""
        pushed = self.mu * gap
        return self._iterate(lambda loop: pushed + loop.r - loop.strain - loop.held, pushed)

    def _iterate(
        self, missing: Callable[[_Loop], Float[Array, " rows"]], like: Float[Array, " rows"]
    ) -> _Loop:
        """Until what is missing is rounding, or grows no smaller. (Changes are not decisive: in
        undetermined components they are rounding over eps. Nor do the first steps, until r has
        begun to balance the strain.)"""

        enough = _RTOL * _size(like)

        def going(loop: _Loop) -> BoolScalar:
            stalled = (loop.size > 0.5 * loop.previous) & (loop.count > _FIRST)
            return ~stalled & (loop.size > enough) & (loop.count < _MAX_STEPS)

        def step(loop: _Loop) -> _Loop:
            left = missing(loop)
            change = self.factor.solve(left)
            x = loop.x + change
            held = SchurOperator(self.rigid).mv(x / self.factor.scale) / self.factor.scale
            # (S + mu K + eps I) change is what was missing.
            both = loop.held + loop.strain + left - _REGULARISATION * change
            strain, r = both - held, loop.r - held
            return _Loop(x, held, strain, r, change, _size(left), loop.size, loop.count + 1)

        none, far = jnp.zeros_like(like), jnp.asarray(jnp.inf, like.dtype)
        start = _Loop(none, none, none, none, none, far, 4 * far, jnp.asarray(0))
        return lax.while_loop(going, step, start)

    def _undecided_part(self, x: Float[Array, " rows"]) -> Float[Array, " rows"]:
        """The part of x in the null space of S and K."""
        return lax.fori_loop(
            0, _CLEANING, lambda _, part: _REGULARISATION * self.factor.solve(part), x
        )

    def _strain(self, x: Float[Array, " rows"]) -> Float[Array, " rows"]:
        """K x."""
        return self.elasticity.strain(x / self.factor.scale) / self.factor.scale


def _size(x: Float[Array, " n"]) -> Scalar:
    return jnp.max(jnp.abs(x), initial=0.0)
