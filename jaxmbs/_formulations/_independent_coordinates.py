"""Formulations in independent coordinates: the equations projected onto a basis of the motions that
the constraints allow.
"""

from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .. import _settings
from .._custom_types import BoolScalar, Scalar, Setting
from .._limits import EXACT
from .._linalg import cholesky, cholesky_solve
from .._linalg._solvers import Pseudoinverse, reflect, substitute_lower, substitute_upper
from .._solution import RESULTS
from .._system import AbstractSystem, Equations, Structure
from .base import AbstractFormulation, Accelerations, outcome


# --------------------------------------------------------------------------------------------------
# The equations in coordinates in which mass is 1 and rows have length 1.
#
# With M = L L^T, w = L^T dv/dt, D the diagonal of S = C M^-1 C^T and mu = D^1/2 lambda,
#
#     w + J^T mu = w0      J w = g      J = D^-1/2 C L^-T,  w0 = L^-1 F,  g = D^-1/2 Gamma.
#
# L^-T replaces M^-1/2: the two differ by a rotation of w, which changes no
# pseudoinverse (C M^-1/2)^+ but for that rotation. J has no units.
# --------------------------------------------------------------------------------------------------


# A pivot of M this small against the diagonal of M is rounding.
_DEFINITE = 1e-12


class MassWeighted(eqx.Module):
    """`lower` L (nv, nv), `matrix` J (rows, nv), `row_scale` D^1/2 (rows,), `force` w0 (nv,),
    `offset` g (rows,), `definite`: is M positive definite."""

    lower: Float[Array, "nv nv"]
    matrix: Float[Array, "rows nv"]
    row_scale: Float[Array, " rows"]
    force: Float[Array, " nv"]
    offset: Float[Array, " rows"]
    definite: BoolScalar

    def __init__(
        self,
        mass: Float[Array, "nv nv"],
        constraints: Float[Array, "rows nv"],
        force: Float[Array, " nv"],
        offset: Float[Array, " rows"],
    ):
        self.lower = cholesky(mass)
        both = substitute_lower(self.lower, jnp.column_stack([constraints.T, force]))
        half, self.force = both[:, :-1].T, both[:, -1]
        # A row of zeros keeps the length 1.
        squares = jnp.sum(half**2, axis=1)
        self.row_scale = jnp.sqrt(jnp.where(squares > 0, squares, 1.0))
        self.matrix = half / self.row_scale[:, None]
        self.offset = offset / self.row_scale
        pivots = jnp.diagonal(self.lower) ** 2
        least = max(_DEFINITE, float(jnp.finfo(mass.dtype).eps))
        self.definite = jnp.all(pivots > least * jnp.diagonal(mass))

    def acceleration(self, w: Float[Array, " nv *k"]) -> Float[Array, " nv *k"]:
        """dv/dt = L^-T w, for one vector or the columns of a matrix."""
        return substitute_upper(self.lower, w)

    def weigh(self, force: Float[Array, " nv *k"]) -> Float[Array, " nv *k"]:
        """L^-1 f of a generalized force f, or of the columns of a matrix."""
        return substitute_lower(self.lower, force)

    def multipliers(self, mu: Float[Array, " rows"]) -> Float[Array, " rows"]:
        """lambda = D^-1/2 mu."""
        return mu / self.row_scale


def mass_weighted(equations: Equations) -> MassWeighted:
    """The equations as they are."""
    descriptor = equations.descriptor
    return MassWeighted(
        descriptor.mass_matrix(),
        descriptor.constraint_matrix(),
        equations.force,
        equations.offset,
    )


class NullSpace(AbstractFormulation):
    """The equations projected on the velocities that the constraints allow.

    With Z a basis of the null space of C and a_p a particular solution of C a_p = Gamma,

        dv/dt = a_p + Z u,     (Z^T M Z) u = Z^T (F - M a_p)

    (Wojtyra & Fraczek 2013, eq. 13; Garcia de Jalon & Bayo 1994), and the multipliers follow from
    C^T lambda = F - M dv/dt by least squares: those of minimum norm. Z has nv columns, those
    beyond the mobility are zero.
    """

    word: ClassVar[str] = "null-space"

    def solve(self, equations: Equations) -> Accelerations:
        scaled = mass_weighted(equations)
        mass, force = equations.descriptor.mass_matrix(), equations.force
        inverse = Pseudoinverse(scaled.matrix)
        # A basis Z0 of the null space of J at this state; Z0 - J^+ J Z0, with Z0 held, is one at
        # neighbouring states: that has a derivative, a decomposition has none.
        start = inverse.null_space
        right = jnp.column_stack([scaled.offset, -scaled.matrix @ start])
        solved = inverse.apply_columns(right) + jnp.pad(start, ((0, 0), (1, 0)))
        solved = scaled.acceleration(solved)
        particular, basis = solved[:, 0], solved[:, 1:]
        # The first columns are empty, and their unknowns zero.
        empty = jnp.where(jnp.arange(mass.shape[0]) < inverse.rank, 1.0, 0.0)
        reduced = basis.T @ mass @ basis + jnp.diag(empty)
        left = basis.T @ (force - mass @ particular)
        along = cholesky_solve(cholesky((reduced + reduced.T) / 2), left)
        acceleration = particular + basis @ along
        rest = scaled.weigh(force - mass @ acceleration)
        return outcome(
            acceleration,
            scaled.multipliers(inverse.apply_transposed(rest)),
            (~scaled.definite, RESULTS.mass_matrix_not_definite),
        )


class CoordinatePartitioning(AbstractFormulation):
    """Dependent coordinates by independent ones (Wehage & Haug 1982, J. Mech. Des. 104:247).

    Pivoting on the columns of C finds dependent coordinates d whose columns C_d are independent
    and span all others. Then C_d a_d = Gamma - C_i a_i, so that

        dv/dt = a_p + B a_i,     (B^T M B) a_i = B^T (F - M a_p),

    a_p = C_d^+ Gamma in d and 0 in i, B = -C_d^+ C_i in d and 1 in i. Columns are measured by the
    roots of the diagonal of M. The multipliers are those of minimum norm that satisfy the
    dependent coordinates' equations C_d^T lambda = (F - M dv/dt)_d; the others follow.
    """

    word: ClassVar[str] = "coordinate-partitioning"

    def solve(self, equations: Equations) -> Accelerations:
        scaled = mass_weighted(equations)
        mass = equations.descriptor.mass_matrix()
        # All in coordinates that make the diagonal of M one.
        size = jnp.sqrt(jnp.diagonal(mass))
        mass = mass / size[:, None] / size[None, :]
        force = equations.force / size
        constraints = equations.descriptor.constraint_matrix()
        constraints = constraints / scaled.row_scale[:, None] / size[None, :]
        dependent = _dependent(constraints)
        chosen = jnp.where(dependent[None, :], constraints, 0.0)
        inverse = Pseudoinverse(chosen)
        units = jnp.diag(jnp.where(dependent, 0.0, 1.0))
        right = jnp.column_stack([scaled.offset, -constraints @ units])
        solved = inverse.apply_columns(right)
        particular, basis = solved[:, 0], solved[:, 1:] + units
        # The columns of dependent coordinates are empty, and their unknowns zero.
        reduced = basis.T @ mass @ basis + jnp.diag(dependent.astype(mass.dtype))
        left = basis.T @ (force - mass @ particular)
        independent = cholesky_solve(cholesky((reduced + reduced.T) / 2), left)
        acceleration = particular + basis @ independent
        # Zero columns of C_d leave the independent coordinates' equations out.
        rest = force - mass @ acceleration
        return outcome(
            acceleration / size,
            scaled.multipliers(inverse.apply_transposed(rest)),
            (~scaled.definite, RESULTS.mass_matrix_not_definite),
        )


def _dependent(constraints: Float[Array, "rows nv"]) -> Bool[Array, " nv"]:
    """The columns that pivoting takes before the rank is exhausted."""
    pivoted = reflect(lax.stop_gradient(constraints), pivoting=True)
    taken = jnp.arange(constraints.shape[1]) < pivoted.rank(EXACT.rank)
    return jnp.zeros_like(taken).at[pivoted.order].set(taken)


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
        first = jnp.arange(pivoted.order.shape[0]) < pivoted.rank(EXACT.rank)
        return _solved(scaled, jnp.zeros_like(first).at[pivoted.order].set(first), EXACT.follows)

    @property
    def label(self) -> str:
        return self.word + (f" of {', '.join(self.drop)}" if self.drop else "")

    def kept_rows(self, structure: Structure) -> Bool[np.ndarray, " rows"]:
        return np.array([name not in self.drop for name in structure.row_names], dtype=bool)

    def numbered(self, structure: Structure) -> AbstractFormulation:
        """With names, the same with the numbers of these rows.

        **Raises:** `ValueError` for a name that is not a row.
        """
        if not self.drop:
            return self
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
        return _solved(scaled, keep, EXACT.rank_coarse if self.off else EXACT.follows)

    def motion_only(self, system: AbstractSystem) -> AbstractFormulation:
        del system
        return NumberedElimination(self.rows, off=True)

    def dependence(self, equations: Equations) -> Float[Array, "rows dropped"]:
        """The columns of the dropped rows in the projector N N^T onto the left null space of C
        (rows of unit length): what `singular_between` compares. A constant."""
        pivoted = reflect(lax.stop_gradient(mass_weighted(equations).matrix), pivoting=True)
        outside = jnp.arange(pivoted.q.shape[0]) >= pivoted.rank(EXACT.rank)
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
