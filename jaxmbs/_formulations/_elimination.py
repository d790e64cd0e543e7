from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .. import _settings
from .._custom_types import BoolScalar, Scalar, Setting
from .._linalg._concrete_rank import RANK_TOLERANCE
from .._linalg._pivoted_qr import Pseudoinverse, reflect
from .._solution import RESULTS
from .._system import Equations, Structure
from ._mass_weighted import mass_weighted, MassWeighted
from .base import AbstractFormulation, Accelerations, outcome


# A dropped row of unit length that is this far from all combinations of the kept ones does not
# follow from them; and off the constraints, where rows that depend on each other do so but nearly.
_LOST = 1e-6
_LOST_OFF = 1e-3


class Elimination(AbstractFormulation):
    """Rows that follow from the others are dropped; their multipliers are zero (Wojtyra &
    Fraczek 2013, section 3.1).

    What the dropped rows carried is carried by others then, so reactions that are not unique
    depend on the choice. A choice that is right at one state may be singular at another: the
    kept rows alone determine the motion here, with errors of rounding over the smallest singular
    value of the kept rows, and below 1e-9 of that the result reports it.

    **Arguments:** `drop`: names of rows, such as `("C.y", "W4")`. Empty: at each state the rows
    that pivoting (Businger & Golub 1965) finds last, which suits single states; in a motion the
    choice changes, and with it multipliers jump.

    **Raises:** `ValueError` for a name given twice, and, when it is used, for one that is not a row
    (`solve`); `TypeError` for a value that is not a name.
    """

    word: ClassVar[str] = "elimination"
    drop: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, drop: Setting[Sequence[str]] = ()):
        given = (drop,) if isinstance(drop, str) else drop
        names = _settings.names(given, "drop", '("C.y", "W4")')
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"drop names {', '.join(twice)} twice; name each row once.")
        self.drop = names

    def solve(self, equations: Equations) -> Accelerations:
        if self.drop:
            return self.numbered(equations.structure).solve(equations)
        scaled = mass_weighted(equations)
        pivoted = reflect(scaled.matrix.T, pivoting=True)
        first = jnp.arange(pivoted.order.shape[0]) < pivoted.rank(RANK_TOLERANCE)
        return _solved(scaled, jnp.zeros_like(first).at[pivoted.order].set(first), _LOST)

    def numbered(self, structure: Structure) -> "NumberedElimination":
        """The same with the numbers of the named rows.

        **Raises:** `ValueError` for a name that is not a row.
        """
        unknown = [name for name in self.drop if name not in structure.row_names]
        if unknown:
            raise ValueError(
                f"Elimination drops {', '.join(map(repr, unknown))}, which is no row; the rows "
                f"are {', '.join(structure.row_names)}."
            )
        numbers = [structure.row_names.index(name) for name in self.drop]
        return NumberedElimination(jnp.asarray(numbers, dtype=int))


class NumberedElimination(AbstractFormulation):
    """Elimination of rows by their numbers, which are data: what is compiled for one choice serves
    all that drop as many. `off`: for states off the constraints by an error of integration."""

    word: ClassVar[str] = Elimination.word
    rows: Int[Array, " dropped"]
    off: bool = eqx.field(static=True, default=False)

    def solve(self, equations: Equations) -> Accelerations:
        scaled = mass_weighted(equations)
        everything = jnp.ones((scaled.matrix.shape[0],), bool)
        keep = everything.at[self.rows].set(False)
        return _solved(scaled, keep, _LOST_OFF if self.off else _LOST)

    def dependence(self, equations: Equations) -> Float[Array, "rows dropped"]:
        """The columns of the dropped rows in the projector N N^T onto the left null space of C
        (rows of unit length): what `singular_between` compares. A constant."""
        pivoted = reflect(lax.stop_gradient(mass_weighted(equations).matrix), pivoting=True)
        outside = jnp.arange(pivoted.q.shape[0]) >= pivoted.rank(RANK_TOLERANCE)
        null_space = jnp.where(outside, pivoted.q, 0.0)
        return null_space @ null_space[self.rows].T


def singular_between(
    before: Float[Array, "rows dropped"], after: Float[Array, "rows dropped"]
) -> BoolScalar:
    """Does an elimination become singular between two states, whose `dependence` this is?

    The kept rows lose rank where det N_D = 0, D the dropped rows. The sign of that depends on the
    basis N; that of det (before^T after) = det N_D det (N^T N') det N'_D does not. It is
    negative if the kept rows lost rank on the way an odd number of times, or N turned by more
    than a right angle: between states close enough only the former.
    """
    diagonal = jnp.diagonal(reflect(before.T @ after, pivoting=False).r)
    # Each reflection turns the sign once.
    return (-1) ** diagonal.shape[0] * jnp.prod(jnp.sign(diagonal)) < 0


def _solved(scaled: MassWeighted, keep: Bool[Array, " rows"], lost: float) -> Accelerations:
    matrix = jnp.where(keep[:, None], scaled.matrix, 0.0)
    inverse = Pseudoinverse(matrix)
    missing = jnp.where(keep, scaled.offset, 0.0) - matrix @ scaled.force
    w = scaled.force + inverse.apply(missing)
    mu = jnp.where(keep, inverse.apply_transposed(scaled.force - w), 0.0)
    outside, dependent = _verdicts(scaled.matrix, keep, inverse)
    return outcome(
        scaled.acceleration(w),
        scaled.multipliers(mu),
        (~scaled.definite, RESULTS.mass_matrix_not_definite),
        (outside > lost, RESULTS.elimination_singular),
        (dependent, RESULTS.elimination_incomplete),
    )


def _verdicts(
    matrix: Float[Array, "rows nv"], keep: Bool[Array, " rows"], inverse: Pseudoinverse
) -> tuple[Scalar, BoolScalar]:
    """The largest distance of rows from all combinations of the kept ones, and whether those
    depend on each other."""
    matrix = lax.stop_gradient(matrix)
    # An orthonormal basis of the span of the kept rows, followed by columns of zeros.
    basis = lax.stop_gradient(inverse.state.right)
    outside = matrix - (matrix @ basis) @ basis.T
    kept = jnp.sum(keep & jnp.any(matrix != 0, axis=1))
    return jnp.max(jnp.linalg.norm(outside, axis=1), initial=0.0), inverse.rank < kept
