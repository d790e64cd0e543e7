from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from .._custom_types import BoolScalar, Scalar
from .._linalg._pivoted_qr import Pseudoinverse, RANK_TOLERANCE, reflect
from .._solution import RESULTS
from .._system import Equations, Structure
from ._mass_weighted import mass_weighted, MassWeighted
from .base import AbstractFormulation, Accelerations, outcome


# A dropped row of unit length that is this far from all combinations of the kept ones does not
# follow from them.
_LOST = 1e-6


class Elimination(AbstractFormulation):
    """Rows that follow from the others are dropped; their multipliers are zero (Wojtyra &
    Fraczek 2013, section 3.1).

    What the dropped rows carried is carried by others then, so reactions that are not unique
    depend on the choice. A choice that is right at one state may be singular at another: the
    kept rows alone determine the motion here, with errors of rounding over the smallest singular
    value of the kept rows, and below 1e-9 of that the result says so.

    **Arguments:** `drop`: names of rows, such as `("C.y", "W4")`. Empty: at each state the rows
    that pivoting (Businger & Golub 1965) finds last, which suits single states; in a motion the
    choice changes, and with it multipliers jump.

    **Raises:** `ValueError` for a name given twice, and, when it is used, for one that is no row
    (`solve`).
    """

    word: ClassVar[str] = "elimination"
    drop: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, drop: Sequence[str] = ()):
        names = (drop,) if isinstance(drop, str) else tuple(drop)
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"drop names {', '.join(twice)} twice; name each row once.")
        self.drop = names

    def solve(self, equations: Equations) -> Accelerations:
        scaled = mass_weighted(equations)
        keep = self._kept(equations.structure, scaled)
        matrix = jnp.where(keep[:, None], scaled.matrix, 0.0)
        inverse = Pseudoinverse(matrix)
        missing = jnp.where(keep, scaled.offset, 0.0) - matrix @ scaled.force
        w = scaled.force + inverse.apply(missing)
        mu = jnp.where(keep, inverse.apply_transposed(scaled.force - w), 0.0)
        singular, dependent = _verdicts(scaled.matrix, keep, inverse)
        return outcome(
            scaled.acceleration(w),
            scaled.multipliers(mu),
            (~scaled.definite, RESULTS.mass_matrix_not_definite),
            (singular, RESULTS.elimination_singular),
            (dependent, RESULTS.elimination_incomplete),
        )

    def reference(self, equations: Equations) -> Float[Array, "rows dropped"]:
        """What `margin` compares a later state with: the columns of the projector on the left
        null space of C (rows of unit length) that belong to the dropped rows."""
        dropped = self._dropped(equations.structure)
        matrix = mass_weighted(equations).matrix
        units = jnp.eye(matrix.shape[0], dtype=matrix.dtype)[:, dropped]
        return _onto_null_space(matrix, units)

    def margin(self, equations: Equations, reference: Float[Array, "rows dropped"]) -> Scalar:
        """A smooth function of the state that changes its sign where the named elimination
        becomes singular: an event.

        With N a basis of the left null space of C the kept rows lose the rank of C where
        det N_D = 0, D the dropped rows. The sign of that depends on the basis; det (N_D) det
        (N_ref^T N) does not, and is det (P P_ref)_DD with the projectors P = N N^T. It is positive
        at the reference state, which should be renewed when N has turned by a large angle.
        1 where rows are chosen by pivoting.

        **Arguments:** `reference`: from `reference`, at an earlier state.
        """
        dropped = self._dropped(equations.structure)
        moved = _onto_null_space(mass_weighted(equations).matrix, reference)
        return jnp.linalg.det(moved[dropped])

    def _dropped(self, structure: Structure) -> np.ndarray:
        unknown = [name for name in self.drop if name not in structure.row_names]
        if unknown:
            raise ValueError(
                f"Elimination drops {', '.join(map(repr, unknown))}, which is no row; the rows "
                f"are {', '.join(structure.row_names)}."
            )
        return np.array([structure.row_names.index(name) for name in self.drop], dtype=int)

    def _kept(self, structure: Structure, scaled: MassWeighted) -> Bool[Array, " rows"]:
        if self.drop:
            keep = np.ones(len(structure.rows), dtype=bool)
            keep[self._dropped(structure)] = False
            return jnp.asarray(keep)
        pivoted = reflect(scaled.matrix.T, pivoting=True)
        first = jnp.arange(len(structure.rows)) < pivoted.rank(RANK_TOLERANCE)
        return jnp.zeros_like(first).at[pivoted.order].set(first)


def _verdicts(
    matrix: Float[Array, "rows nv"], keep: Bool[Array, " rows"], inverse: Pseudoinverse
) -> tuple[BoolScalar, BoolScalar]:
    """Do the kept rows fail to give all rows; do they depend on each other?"""
    matrix = lax.stop_gradient(matrix)
    # An orthonormal basis of what the kept rows span, with columns of zeros behind it.
    basis = lax.stop_gradient(inverse.state.right)
    outside = matrix - (matrix @ basis) @ basis.T
    lost = jnp.max(jnp.linalg.norm(outside, axis=1), initial=0.0) > _LOST
    kept = jnp.sum(keep & jnp.any(matrix != 0, axis=1))
    return lost, inverse.rank < kept


def _onto_null_space(
    matrix: Float[Array, "rows nv"], columns: Float[Array, "rows k"]
) -> Float[Array, "rows k"]:
    return columns - matrix @ Pseudoinverse(matrix).apply_columns(columns)
