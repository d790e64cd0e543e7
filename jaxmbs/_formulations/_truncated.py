from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import IntScalar
from .._linalg import cholesky, cholesky_solve, leading
from .._solution import RESULTS
from .._system import Equations
from ._mass_weighted import mass_weighted, MassWeighted
from .base import AbstractFormulation, Accelerations, outcome


# Of the strain in the null space, relative to its largest; steps that take away what it adds.
_REGULARISATION = 1e-10
_PROXIMAL_STEPS = 4

# The part of a misfit that may be left over.
_LEFT = 1e-6


class Truncated(AbstractFormulation):
    """The equations with C replaced by the nearest matrix of a known rank: the multipliers of
    minimum norm of a mechanism whose redundant constraints contradict each other a little.

    Parts that do not fit each other make dependent rows independent by as much as they are off.
    Taken at its word such a C blocks the motion and divides forces by what is off; with the rank
    that C has where everything fits, reactions that are unique there differ by as little as the
    parts do. Used for that alone: it has derivatives in F and Gamma, as C is held.

    **Arguments:** `rank`: of C where everything fits.
    """

    word: ClassVar[str] = "truncated"
    rank: int = eqx.field(static=True)

    def solve(self, equations: Equations) -> Accelerations:
        found = _solved(equations, self.rank)
        return outcome(
            found.acceleration,
            found.scaled.multipliers(found.multipliers),
            (~found.scaled.definite, RESULTS.mass_matrix_not_definite),
        )


class ElasticTruncated(AbstractFormulation):
    """`Truncated`, with multipliers that strain what is elastic least (`ElasticResolution`), and
    with the stress of parts that contradict each other.

    **Arguments:** `rank`: as of `Truncated`; `residual` (rows,): what is left of Phi where the
    parts contradict each other least (m, rad), zero in velocity rows.
    """

    word: ClassVar[str] = "truncated-elastic"
    elastic: ClassVar[bool] = True
    rank: int = eqx.field(static=True)
    residual: Float[Array, " rows"]

    def solve(self, equations: Equations) -> Accelerations:
        elasticity = equations.elasticity
        assert elasticity is not None
        found = _solved(equations, self.rank)
        length = found.scaled.row_scale
        columns = elasticity.extended.constraint_matrix()[:, elasticity.velocities :]
        root = columns * jnp.sqrt(elasticity.compliance)[None] / length[:, None]
        gap = (elasticity.gap() + self.residual) / length
        # In the left null space of the nearest matrix of that rank: A is definite there, if
        # compliances decide, and the identity elsewhere. What they do not decide stays at zero.
        identity = jnp.eye(length.shape[0], dtype=length.dtype)
        null = identity - found.held @ found.held.T
        soft = null @ root
        size = jnp.max(jnp.sum(soft**2, axis=1), initial=0.0)
        size = jnp.where(size > 0, size, 1.0)
        factor = cholesky(soft @ soft.T / size + identity - null + _REGULARISATION * null)
        left = null @ (gap - root @ (root.T @ found.multipliers)) / size

        def proximal(_: IntScalar, x: Float[Array, " rows"]) -> Float[Array, " rows"]:
            return cholesky_solve(factor, left + _REGULARISATION * x)

        change = null @ lax.fori_loop(0, _PROXIMAL_STEPS, proximal, jnp.zeros_like(left))
        missing = left - soft @ (soft.T @ change) / size
        taken_up = jnp.linalg.norm(missing) <= _LEFT * jnp.linalg.norm(left)
        return outcome(
            found.acceleration,
            found.scaled.multipliers(found.multipliers + change),
            (~found.scaled.definite, RESULTS.mass_matrix_not_definite),
            (~taken_up, RESULTS.misfit_not_taken_up),
        )


class _Solved(NamedTuple):
    """In rows of unit length: multipliers of least norm, and what the nearest matrix of the rank
    spans of the rows (rows, rank)."""

    scaled: MassWeighted
    acceleration: Float[Array, " nv"]
    multipliers: Float[Array, " rows"]
    held: Float[Array, "rows rank"]


def _solved(equations: Equations, rank: int) -> _Solved:
    scaled = mass_weighted(equations)
    u, s, vt = leading(lax.stop_gradient(scaled.matrix), rank)
    gap = (u.T @ (scaled.matrix @ scaled.force - scaled.offset)) / s
    acceleration = scaled.acceleration(scaled.force - vt.T @ gap)
    return _Solved(scaled, acceleration, u @ (gap / s), u)
