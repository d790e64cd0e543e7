"""Rows of constraints as differential forms in local coordinates.

A row A(q, t) v + c(q, t) = 0 is the form w = A J dx + c dt in coordinates x with q = retract(q0, x)
and v = J(x) dx/dt. The velocities may be no rates of coordinates (angular velocities along body
axes): J(0) = 1, and what J changes by holds the terms that make a rotation no integral of them.
Geometric rows are among them, as dPhi = 0. Time is one coordinate more, so that rheonomic rows need
no rule of their own. Coordinates are in units of the column scale, time in s.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float

from .._constraints import RowKind
from .._custom_types import BoolScalar, PRNGKeyArray, Scalar
from .._linalg import normalise_rows
from .._system import AbstractSystem, Structure


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
