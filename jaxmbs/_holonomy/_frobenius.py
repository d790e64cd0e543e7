"""The condition of Frobenius at one configuration.

Forms w_i are integrable where dw_i(X, Y) = 0 for all X and Y on which all forms vanish. With
W the matrix of the forms, dw(X, Y) = -W [X, Y], so that W^+ dw(X, Y) is what the Lie bracket of two
motions that the rows allow has across these motions: a displacement that the rows forbid, by which
a small loop in the two fails to close, over its area. It depends neither on how rows are scaled
and combined nor on which of them are redundant. The measure is the root of the sum of its squares
over pairs of an orthonormal basis.
"""

from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._custom_types import IntScalar, RealScalarLike, Scalar
from .._linalg import BatchedQR, pivoted_qr


class Split(NamedTuple):
    """W^+ (n, rows) and the projector (n, n) onto what the forms allow."""

    inverse: Float[Array, "n rows"]
    allowed: Float[Array, "n n"]


# Singular vectors on the left, singular values, singular vectors on the right.
Decomposition: TypeAlias = tuple[Float[Array, "rows k"], Float[Array, " k"], Float[Array, "k n"]]


class PointMeasures(NamedTuple):
    """Measures of sets of rows at one configuration. `rank`: of the forms; `bracket`: the measure;
    `passing`: the component of time in the admissible directions, zero where no velocity satisfies
    all rows."""

    rank: Int[Array, " sets"]
    bracket: Float[Array, " sets"]
    passing: Float[Array, " sets"]


class TimeMeasures(NamedTuple):
    """Time dependence of constraints at one configuration. `rank`: of their own forms; `change`:
    zero where these neither contain dt nor span another space at another time."""

    rank: Int[Array, " constraints"]
    change: Float[Array, " constraints"]


def decompose(matrix: Float[Array, "rows n"]) -> Decomposition:
    """Singular values and vectors."""
    left, values, right = jnp.linalg.svd(matrix, full_matrices=False)
    return left, values, right


def rank_of(values: Float[Array, " k"], tolerance: RealScalarLike) -> IntScalar:
    """The rank, from singular values."""
    return jnp.sum(values > tolerance * values[0])


def split(
    decomposition: Decomposition,
    rank: IntScalar,
) -> Split:
    """The splitting for the nearest matrix of that rank."""
    left, values, right = decomposition
    kept = jnp.arange(values.shape[0]) < rank
    right = jnp.where(kept[:, None], right, 0.0)
    inverse = jnp.where(kept, 1 / jnp.where(kept, values, 1.0), 0.0)
    n = right.shape[1]
    return Split(
        (right.T * inverse[None]) @ left.T, jnp.eye(n, dtype=right.dtype) - right.T @ right
    )


def measure_sets(
    matrix: Float[Array, "rows n"],
    slope: Float[Array, "rows n n"],
    sets: Bool[Array, "sets rows"],
    velocity: Int[np.ndarray, " velocity"],
    tolerance: RealScalarLike,
) -> PointMeasures:
    """Measures of each set of rows, from W and its derivative. `velocity`: indices of the rows that
    may be not exact."""
    own_slope = slope[velocity]
    twice = own_slope - jnp.swapaxes(own_slope, 1, 2)

    def of_set(rows: Bool[Array, " rows"]) -> tuple[IntScalar, Scalar, Scalar]:
        found = decompose(jnp.where(rows[:, None], matrix, 0.0))
        rank = rank_of(found[1], tolerance)
        inverse, allowed = split(found, rank)
        own = allowed @ jnp.where(rows[velocity, None, None], twice, 0.0) @ allowed
        across = inverse[:, velocity]
        square = jnp.einsum("iab,jab,ij->", own, own, across.T @ across)
        return rank, jnp.sqrt(jnp.maximum(square, 0.0) / 2), allowed[-1, -1]

    return PointMeasures(*jax.vmap(of_set)(sets))


def measure_time(
    matrix: Float[Array, "rows n"],
    rate: Float[Array, "rows n"],
    own_rows: Int[np.ndarray, "constraints width"],
    tolerance: Scalar,
) -> TimeMeasures:
    """Measures of the own rows of each constraint, counted from 1 (0 is none), from W and its
    derivative along time."""
    matrix, rate = (jnp.pad(x, ((1, 0), (0, 0))) for x in (matrix, rate))

    def of_constraint(rows: Int[Array, " width"]) -> tuple[IntScalar, Scalar]:
        # A decomposition in array operations: two of LAPACK may wait for each other (see
        # `AbstractCriterion.measure`).
        found = pivoted_qr(matrix[rows].T, tolerance, BatchedQR())
        turned = jnp.linalg.norm(rate[rows] @ found.null_space)
        return found.rank, jnp.maximum(turned, jnp.max(jnp.abs(matrix[rows, -1]), initial=0.0))

    return TimeMeasures(*jax.vmap(of_constraint)(jnp.asarray(own_rows)))
