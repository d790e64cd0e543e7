"""The equations that are left of constraints at a singular configuration.

Of Phi(x) = 0, x the coordinates of the retraction from a configuration with Phi(0) = 0, the rows
that are independent there determine as many coordinates by the others (implicit function theorem).
With Z a basis of the right null space of C, Y of its complement, and U the left singular vectors
of the values that are not zero:

    x = Z z + Y w(z),    U^T Phi(x) = 0,    g(z) = N^T Phi(x)

g, as many equations as rows are redundant in as many unknowns as there are first-order motions, has
no constant and no linear part, and its zeros are all closed configurations nearby (the reduction of
Lyapunov and Schmidt; Golubitsky & Schaeffer 1985, Singularities and Groups in Bifurcation Theory I,
chapter VII). It is evaluated where it is asked for, by Newton's method for w, so that it is as
exact as Phi, and its derivative with it: nothing of it is a truncated series.
"""

import abc
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from .._checks import known_array
from .._custom_types import Scalar
from .._programs import program
from .._system import AbstractSystem


# Points of one call of the compiled program: as many as fill so many numbers, and no more than.
_NUMBERS, _MOST_POINTS = 2_000_000, 64

# Newton's method for w: it converges quadratically from where it starts, or not at all.
_MOST_NEWTON = 12


class Values(NamedTuple):
    """Values of a germ at points: g (points, p), dg/dz (points, p, k); `found`: False where there
    are none; `inner` (points, n): whatever finds them the sooner at points nearby."""

    value: np.ndarray
    slope: np.ndarray
    found: np.ndarray
    inner: np.ndarray


class AbstractGerm(abc.ABC):
    """Equations g(z) = 0 about z = 0, where g and its first derivative vanish."""

    # Number of unknowns, of equations, and the size below which a value is nothing but rounding.
    unknowns: int
    equations: int
    noise: float

    @abc.abstractmethod
    def __call__(self, z: np.ndarray, inner: np.ndarray | None = None) -> Values:
        """At points z (points, k)."""


class OutOfPatience(Exception):
    """More would have to be evaluated than was asked for."""


class Restricted(AbstractGerm):
    """A germ on a space (k, less), by an orthonormal basis."""

    def __init__(self, germ: AbstractGerm, basis: np.ndarray):
        self._germ, self._basis = germ, basis
        self.unknowns, self.equations = basis.shape[1], germ.equations
        self.noise = germ.noise

    def __call__(self, z: np.ndarray, inner: np.ndarray | None = None) -> Values:
        found = self._germ(z @ self._basis.T, inner)
        return found._replace(slope=found.slope @ self._basis)


class Reduction(AbstractGerm):
    """The germ of a system's geometric rows at a closed configuration.

    `free` Z (nv, k), `dependent` Y (nv, nv - k), without units; `kept`, `dropped`: the last
    singular value of C that counts and the first that does not, relative to the first one; `noise`:
    what is left of Phi in the redundant rows and what was dropped are nothing that they say.
    `scaled_residual`: Phi there; `open_by`: the largest of it in the redundant rows. After
    `patience` numbers of C evaluations raise `OutOfPatience`.
    """

    def __init__(
        self,
        system: AbstractSystem,
        q: Float[Array, " nq"],
        t: Scalar,
        tolerance: float,
        rounding: float,
        patience: float = np.inf,
    ):
        self._state = system, q, t
        self._size = max(1, int(np.sum(system.structure.geometric)) * system.structure.nv)
        self._chunk, self.patience = min(_MOST_POINTS, 1 + _NUMBERS // self._size), patience
        self._row_scale = np.ones(())
        start, matrix = self._evaluate(np.zeros((1, system.structure.nv)))
        self.scaled_residual, self.rounding = start[0], rounding
        sizes = np.linalg.norm(matrix[0], axis=1)
        self._row_scale = np.where(sizes > 0, sizes, 1.0)
        scaled = matrix[0] / self._row_scale[:, None]
        left, values, right = decomposed(scaled)
        first = np.max(values, initial=0.0)
        rank = int(np.sum(values > tolerance * first))
        self.kept = float(values[rank - 1] / first) if rank else 1.0
        self.dropped = float(np.max(values[rank:], initial=0.0) / first) if rank else 0.0
        self._kept, self._redundant = left[:, :rank], left[:, rank:]
        self.dependent, self.free = right[:rank].T, right[rank:].T
        self.unknowns, self.equations = right.shape[0] - rank, left.shape[0] - rank
        open_by = np.abs((start[0] / self._row_scale) @ self._redundant)
        self.open_by = float(np.max(open_by, initial=0.0))
        self.noise = max(rounding, 4.0 * self.open_by, self.dropped)

    def __call__(self, z: np.ndarray, inner: np.ndarray | None = None) -> Values:
        w = np.zeros((len(z), self.dependent.shape[1])) if inner is None else inner.copy()
        found, going = np.zeros(len(z), bool), np.ones(len(z), bool)
        value = np.full((len(z), self.equations), np.nan)
        slope = np.full((len(z), self.equations, self.unknowns), np.nan)
        previous = np.full(len(z), np.inf)
        for _ in range(_MOST_NEWTON):
            at = np.flatnonzero(going)
            if not at.size:
                break
            residual, matrix = self._evaluate(self.coordinates(z[at], w[at]))
            kept = residual @ self._kept
            across = np.einsum("ri,brx->bix", self._kept, matrix)
            inverse = _inverses(across @ self.dependent)
            size = np.max(np.abs(kept), axis=1, initial=0.0)
            fine = np.isfinite(size) & np.all(np.isfinite(inverse), axis=(1, 2))
            # It has converged where a step more makes nothing better.
            done = fine & ((size <= 1e-15) | ((size <= self.noise) & (size >= 0.25 * previous[at])))
            step = -np.einsum("bij,bj->bi", inverse, kept)
            moved = fine & ~done & (np.max(np.abs(step), axis=1, initial=0.0) < 1.0)
            if np.any(done):
                found[at[done]] = True
                here = at[done]
                value[here] = residual[done] @ self._redundant
                along = -inverse[done] @ (across[done] @ self.free)
                tangent = self.free[None] + self.dependent[None] @ along
                slope[here] = np.einsum("ri,brx->bix", self._redundant, matrix[done]) @ tangent
            w[at[moved]] += step[moved]
            previous[at] = size
            going[at] = moved
        return Values(value, slope, found, w)

    def weights(self, combinations: np.ndarray) -> np.ndarray:
        """Weights of the rows in combinations (n, p) of the equations."""
        return combinations @ self._redundant.T

    def coordinates(self, z: np.ndarray, inner: np.ndarray) -> np.ndarray:
        """x (points, nv) of points z."""
        return z @ self.free.T + inner @ self.dependent.T

    def matrices(self, z: np.ndarray, inner: np.ndarray) -> np.ndarray:
        """dPhi/dx (points, rows, nv), rows of unit length at the configuration."""
        return self._evaluate(self.coordinates(z, inner))[1]

    def tangents(self, z: np.ndarray, inner: np.ndarray) -> np.ndarray:
        """dx/dz (points, nv, k)."""
        across = np.einsum("ri,brx->bix", self._kept, self.matrices(z, inner))
        along = -_inverses(across @ self.dependent) @ (across @ self.free)
        return self.free[None] + self.dependent[None] @ along

    def _evaluate(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        residuals, matrices, chunk = [], [], self._chunk
        for start in range(0, len(x), chunk):
            self.patience -= chunk * self._size
            if self.patience < 0:
                raise OutOfPatience
            some = x[start : start + chunk]
            padded = np.concatenate([some, np.zeros((chunk - len(some), x.shape[1]))])
            residual, matrix = _residual_and_slope(*self._state, known_array(padded))
            residuals.append(np.asarray(residual)[: len(some)])
            matrices.append(np.asarray(matrix)[: len(some)])
        return (
            np.concatenate(residuals) / self._row_scale,
            np.concatenate(matrices) / self._row_scale[..., None],
        )


def decomposed(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Singular values and all singular vectors on the left and on the right."""
    rows, columns = matrix.shape
    if 0 in matrix.shape:
        return np.eye(rows), np.zeros(0), np.eye(columns)
    return np.linalg.svd(matrix)


def _inverses(matrices: np.ndarray) -> np.ndarray:
    """Inverses of square matrices (points, n, n); NaN for singular ones."""
    try:
        return np.linalg.inv(matrices)
    except np.linalg.LinAlgError:
        pass
    found: list[Any] = []
    for matrix in matrices:
        try:
            found.append(np.linalg.inv(matrix))
        except np.linalg.LinAlgError:
            found.append(np.full_like(matrix, np.nan))
    return np.stack(found)


@program
def _residual_and_slope(
    system: AbstractSystem, q: Float[Array, " nq"], t: Scalar, x: Float[Array, "points nv"]
) -> tuple[Float[Array, "points rows"], Float[Array, "points rows nv"]]:
    """Phi and its derivative in the coordinates of the retraction from q, all without units."""
    unit = system.column_scale()

    def residual(x: Float[Array, " nv"]) -> tuple[Array, Array]:
        phi = system.scaled_residual(system.retract(q, unit * x), t)
        return phi, phi

    def both(x: Float[Array, " nv"]) -> tuple[Array, Array]:
        matrix, phi = jax.jacfwd(residual, has_aux=True)(x)
        return phi, matrix

    return jax.vmap(both)(x)
