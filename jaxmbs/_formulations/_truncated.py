from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._linalg import leading
from .._solution import RESULTS
from .._system import Equations
from ._mass_weighted import mass_weighted, MassWeighted
from .base import AbstractFormulation, Accelerations, outcome


class Truncated(AbstractFormulation):
    """The equations with C replaced by the nearest matrix of a known rank: the multipliers of
    minimum norm of a mechanism whose redundant constraints contradict each other a little.

    Parts that do not fit each other make dependent rows independent by as much as they are off.
    With its full numerical rank such a C blocks the motion and divides forces by the errors; with
    the rank of C without errors, reactions that are unique there change only by the order of the
    errors. Used for that alone: it has derivatives in F and Gamma, as C is held.

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

    **Arguments:** `rank`: as of `Truncated`; `decided`: how many directions of the left null space
    compliances decide where everything fits (others only seem to, by as much as parts are off);
    `residual` (rows,): what is left of Phi where the parts contradict each other least (m, rad),
    zero in velocity rows.
    """

    word: ClassVar[str] = "truncated-elastic"
    rank: int = eqx.field(static=True)
    decided: int = eqx.field(static=True)
    residual: Float[Array, " rows"]

    @property
    def elastic(self) -> bool:
        return True

    def solve(self, equations: Equations) -> Accelerations:
        elasticity = equations.elasticity
        assert elasticity is not None
        found = _solved(equations, self.rank)
        length = found.scaled.row_scale
        columns = elasticity.extended.constraint_matrix()[:, elasticity.velocities :]
        root = columns * jnp.sqrt(elasticity.compliance)[None] / length[:, None]
        gap = (elasticity.gap() + self.residual) / length
        # In the left null space of the nearest matrix of that rank. What compliances do not decide
        # stays at zero.
        null = jnp.eye(length.shape[0], dtype=length.dtype) - found.held @ found.held.T
        u, s, _ = leading(lax.stop_gradient(null @ root), self.decided)
        strain = gap - root @ (root.T @ found.multipliers)
        change = u @ ((u.T @ strain) / s**2)
        return outcome(
            found.acceleration,
            found.scaled.multipliers(found.multipliers + change),
            (~found.scaled.definite, RESULTS.mass_matrix_not_definite),
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
