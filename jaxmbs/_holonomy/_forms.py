"""Rows of constraints as differential forms, the condition of Frobenius, and the number of
integrable combinations.
"""

from typing import NamedTuple, TypeAlias

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .._constraints import RowKind
from .._custom_types import BoolScalar, IntScalar, PRNGKeyArray, RealScalarLike, Scalar
from .._linalg import BatchedQR, normalise_rows, pivoted_qr
from .._system import AbstractSystem, Structure


# --------------------------------------------------------------------------------------------------
# Rows of constraints as differential forms in local coordinates.
#
# A row A(q, t) v + c(q, t) = 0 is the form w = A J dx + c dt in coordinates x with q = retract(q0,
# x) and v = J(x) dx/dt. The velocities may be no rates of coordinates (angular velocities along
# body axes): J(0) = 1, and what J changes by holds the terms that make a rotation no integral of
# them. Geometric rows are among them, as dPhi = 0. Time is one coordinate more, so that rheonomic
# rows need no rule of their own. Coordinates are in units of the column scale, time in s.
# --------------------------------------------------------------------------------------------------


# Rows whose coefficients differ by more than this part of them between velocities are not linear.
_LINEAR = 1e-9


def velocity_rows(structure: Structure) -> np.ndarray:
    """Indices of the rows that restrict velocities and nothing else."""
    kinds = [row.kind is RowKind.velocity for row in structure.rows]
    return np.flatnonzero(np.array(kinds, dtype=bool))


def velocity_constraints(structure: Structure) -> tuple[int, ...]:
    """Indices of the constraints that have such rows."""
    return tuple(np.unique(structure.row_owner[velocity_rows(structure)]).tolist())


class Forms(eqx.Module):
    """The rows about one configuration, those that count: a function of x (n,), the nv coordinates
    and time. `counted` (rows,): the others are zero."""

    system: AbstractSystem
    q: Float[Array, " nq"]
    t: Scalar
    counted: Bool[Array, " rows"]

    @property
    def origin(self) -> Float[Array, " n"]:
        """x of the configuration itself."""
        return jnp.zeros((self.system.structure.nv + 1,), self.q.dtype)

    def __call__(self, x: Float[Array, " n"]) -> Float[Array, "rows n"]:
        rows = _rows_at(self.system, self.q, self.t, x)
        # Not a product: rows that are not linear may be NaN for velocities that are zero.
        return jnp.where(self.counted[:, None], rows, 0.0)

    def with_slope(
        self, x: Float[Array, " n"]
    ) -> tuple[Float[Array, "rows n"], Float[Array, "rows n n"]]:
        """W, with rows of unit length there, and its derivative along the coordinates (last axis):
        of rows divided by constants."""
        rows, push = jax.linearize(self, x)
        unit, lengths = normalise_rows(rows)
        slope = jax.vmap(push, out_axes=2)(jnp.eye(x.shape[0], dtype=x.dtype))
        return unit, slope / lengths[:, None, None]


def _rows_at(
    system: AbstractSystem, q: Float[Array, " nq"], t: Scalar, x: Float[Array, " n"]
) -> Float[Array, "rows n"]:
    unit = system.column_scale()
    place, time = x[:-1], t + x[-1]
    there = system.retract(q, unit * place)
    to_velocities = jax.jacfwd(lambda z: system.difference(there, system.retract(q, unit * z)))
    rest = jnp.zeros((system.structure.nv,), q.dtype)
    matrix = system.constraint_matrix(there, rest, time) @ to_velocities(place)
    offset = system.velocity_residual(there, rest, time)
    return jnp.concatenate([matrix, offset[:, None]], axis=1)


def linear_rows(
    system: AbstractSystem, q: Float[Array, " nq"], t: Scalar, key: PRNGKeyArray
) -> tuple[Bool[Array, " rows"], BoolScalar]:
    """Rows that are linear, or affine, in the velocities, as their coefficients are the same for
    several of these; and whether all coefficients are finite."""
    unit = system.column_scale()
    some, more = jr.normal(key, (2, system.structure.nv), q.dtype)
    # Against: of a row that one sign alone gives. Longer: of one that is linear up to some speed.
    chosen = jnp.stack([unit * some, -unit * some, 10 * unit * more])
    matrices = jax.vmap(lambda v: system.constraint_matrix(q, v, t))(chosen)
    matrices = matrices * unit[None, None]
    size = jnp.max(jnp.abs(matrices), axis=(0, 2), initial=0.0)
    change = jnp.max(jnp.abs(matrices - matrices[:1]), axis=(0, 2), initial=0.0)
    return change <= _LINEAR * size, jnp.all(jnp.isfinite(matrices))


# --------------------------------------------------------------------------------------------------
# The condition of Frobenius at one configuration.
#
# Forms w_i are integrable where dw_i(X, Y) = 0 for all X and Y on which all forms vanish. With W
# the matrix of the forms, dw(X, Y) = -W [X, Y], so that W^+ dw(X, Y) is what the Lie bracket of two
# motions that the rows allow has across these motions: a displacement that the rows forbid, by
# which a small loop in the two fails to close, over its area. It depends neither on how rows are
# scaled and combined nor on which of them are redundant. The measure is the root of the sum of its
# squares over pairs of an orthonormal basis.
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# Number of integrable combinations of rows, from the dimension of the reachable set.
#
# The motions that rows allow, and their Lie brackets of any depth, span the directions of all
# configurations that can be reached; forms that vanish on these are what is integrable of the rows.
# Nested brackets would need one derivative more of the rows for each depth. By the orbit theorem
# (Sussmann 1973, Trans. AMS 180, theorem 4.1) the same space is spanned by the allowed directions
# at all points of the orbit, brought back by the flows that lead there. So one way of random
# pieces, along which rows are differentiated once, gives it whatever the depth: each piece adds a
# dimension until there is none left to add.
#
# The flows are those of x' = P(x) u with constant u, P the projector onto what the rows allow. With
# W of constant rank dP = -W^+ dW P - (W^+ dW P)^T (Golub & Pereyra 1973, SIAM J. Numer. Anal. 10),
# so that no decomposition is differentiated.
# --------------------------------------------------------------------------------------------------


# Length of the way, in characteristic lengths, radians and seconds. A bracket of depth d shows by
# about the d-th power of it over d!.
_LENGTH = 1.0
_FEWEST_PIECES = 8

_RTOL, _ATOL = 1e-10, 1e-11
_MOST_STEPS = 512


class Reached(NamedTuple):
    """`values` (n,): singular values of the directions beyond those that the rows allow.
    `integrated`: False if the way could not be followed."""

    values: Float[Array, " n"]
    integrated: BoolScalar


# x, and the derivative of the projection.
_State = tuple[Float[Array, " n"], Float[Array, "n n"]]


def follow_way(
    forms: Forms, rows: Bool[Array, " rows"], rank: IntScalar, key: PRNGKeyArray
) -> Reached:
    """Along one random way from the configuration of the forms, of one set of rows, whose forms
    have that rank."""
    n = forms.system.structure.nv + 1
    # One more than there are dimensions to add.
    pieces = max(_FEWEST_PIECES, len(velocity_rows(forms.system.structure)) + 2)

    def split_of(matrix: Float[Array, "rows n"]) -> Split:
        return split(decompose(jnp.where(rows[:, None], matrix, 0.0)), rank)

    def slope(s: RealScalarLike, state: _State, u: Float[Array, " n"]) -> _State:
        del s
        x, back = state
        matrix, change = forms.with_slope(x)
        inverse, allowed = split_of(matrix)
        along, weights = allowed @ u, u @ inverse
        change = jnp.where(rows[:, None, None], change, 0.0)
        forward = jnp.einsum("rac,a->rc", change, along)
        across = jnp.einsum("rac,r->ac", change, weights)
        return along, back @ (inverse @ forward + allowed @ across)

    def piece(state: _State, u: Float[Array, " n"]) -> tuple[_State, tuple[Array, Array]]:
        x, back = state
        directions = back @ split_of(normalise_rows(forms(x))[0]).allowed
        solution = dfx.diffeqsolve(
            dfx.ODETerm(jax.jit(slope)),
            dfx.Dopri8(),
            0.0,
            _LENGTH / pieces,
            _LENGTH / pieces,
            state,
            u,
            stepsize_controller=dfx.PIDController(rtol=_RTOL, atol=_ATOL),
            adjoint=dfx.ForwardMode(),
            max_steps=_MOST_STEPS,
            throw=False,
        )
        end = jax.tree.map(lambda y: y[-1], solution.ys)
        return end, (directions, solution.result == dfx.RESULTS.successful)

    start = forms.origin, jnp.eye(n, dtype=forms.q.dtype)
    freedoms = jnp.maximum(n - rank, 1)
    # About of unit length in what is allowed.
    chosen = jr.normal(key, (pieces, n), forms.q.dtype) / jnp.sqrt(freedoms)
    _, (directions, done) = lax.scan(piece, start, chosen)
    # Those at the start are allowed themselves.
    beyond = directions[1:] - directions[0] @ directions[1:]
    known = jnp.all(done) & jnp.all(jnp.isfinite(beyond))
    stacked = jnp.where(known, jnp.swapaxes(beyond, 0, 1).reshape(n, -1), 0.0)
    return Reached(jnp.linalg.svd(stacked, compute_uv=False), known)
