from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .. import _settings
from .._custom_types import RealScalarLike, Scalar, Setting
from .._formulations._minimum_norm import effective_mass
from .._programs import Compiling, program
from .._system import AbstractSystem, Structure, takes_state


# Singular values of M^1/2 and C, relative to the largest, that leave accelerations undetermined.
# The pivots that `UdwadiaKalaba(semidefinite=True)` refuses, at most 1e-12 of their columns'
# squares, are below: lengths of columns only make a smallest value smaller.
_UNDETERMINED = 1.5e-6

# An eigenvalue of M below minus this, relative to the largest, is not rounding.
_NEGATIVE = 1e-12

# Of a direction, relative to its largest part: coordinates that have less have none.
_PART = 1e-6


class UndeterminedAccelerations(eqx.Module):
    """Accelerations that M dv/dt + C^T lambda = F, C dv/dt = Gamma leave undetermined.

    - `directions` (nv, k): accelerations that may be added to any solution, M a = 0 and C a = 0;
      orthonormal with lengths relative to the characteristic length. k = 0: all are determined.
    - `names`: the coordinates that have a part in them.
    - `singular_value`: the smallest of M^1/2 stacked on C, rows of C times the root of their
      effective mass, in velocities scaled to equal mass (massless ones count like the mean of the
      others), so that light bodies among heavy ones change nothing; relative to the largest. 0
      where something is not determined.
    - `indefinite`: has M a negative eigenvalue? Then it is not a mass matrix.
    """

    directions: Float[Array, "nv k"]
    singular_value: Scalar
    names: tuple[str, ...] = eqx.field(static=True)
    indefinite: bool = eqx.field(static=True)

    def __len__(self) -> int:
        return self.directions.shape[1]

    def __str__(self) -> str:
        if self.indefinite:
            return (
                "The mass matrix has a negative eigenvalue, so that it is none; look for a wrong "
                "sign, or an entry beside the diagonal that is too large."
            )
        value = float(self.singular_value)
        if not len(self):
            return f"All accelerations are determined (smallest singular value {value:.3g})."
        names = ", ".join(map(repr, self.names))
        alone = len(self.names) == len(self)
        what = "" if alone else f" in {len(self)} combination{'s' if len(self) > 1 else ''}"
        return (
            f"Nothing determines the acceleration of {names}{what} (singular value {value:.3g}). "
            "Give mass, add a constraint that ties it to the others, or leave it out."
        )


@takes_state(decides_rank=True)
def undetermined_accelerations(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike = 0.0,
    *,
    tolerance: Setting[float] = _UNDETERMINED,
) -> UndeterminedAccelerations:
    """Accelerations that neither mass nor constraints determine, by the names of coordinates.

    With a mass matrix that is positive semidefinite, accelerations are unique exactly if M and C,
    one over the other, have full column rank. Their null space is what remains open. Forces along
    it would accelerate without bound, so that motion with them is impossible; without such forces
    there are many motions. Dense, for concrete numbers: outside of `jit` and `vmap`.

    **Arguments:** `q` (nq,), `v` (nv,), `t` (s): the state. `tolerance`: singular values that are
    at most this count as zero, between 0 and 1.

    **Returns:** `UndeterminedAccelerations`, which prints as a sentence.

    **Raises:** `ValueError` for traced numbers.

    Source: Udwadia & Phohomsiri 2006, Proc. R. Soc. A 462:2097.
    """
    tolerance = _settings.known_number(tolerance, "tolerance", above=0, below=1)
    known = _matrices(system, q, v, jnp.asarray(t, q.dtype))
    if any(isinstance(x, Tracer) for x in known):
        raise ValueError(
            "undetermined_accelerations decides ranks: call it outside of jit and vmap."
        )
    return _undetermined(_Scaled(*map(np.asarray, known)), system.structure, tolerance)


@program(compiling=Compiling.ONCE)
def _matrices(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> tuple[Array, Array, Array, Array]:
    """The matrices of `_Scaled`."""
    unit, descriptor = system.column_scale(), system.descriptor(q, v, t)
    metric = jnp.diagonal(descriptor.metric().mass_matrix()) * unit**2
    mass = unit[:, None] * descriptor.mass_matrix() * unit[None]
    return mass, metric, descriptor.constraint_matrix() * unit[None], unit


class _Scaled(NamedTuple):
    """M, the diagonal of the metric in its place, and C in velocities without units, and what
    counts as one of each."""

    mass: np.ndarray
    metric: np.ndarray
    constraints: np.ndarray
    unit: np.ndarray


def _undetermined(
    known: _Scaled, structure: Structure, tolerance: float
) -> UndeterminedAccelerations:
    mass, metric, constraints, unit = known
    # As `UdwadiaKalaba` has it: M + C^T W C, whose null space is that of M and C.
    weights = np.asarray(effective_mass(jnp.asarray(metric), jnp.asarray(constraints)))
    both = mass + constraints.T @ (weights[:, None] * constraints)
    mean = np.mean(metric) if np.any(metric > 0) else 1.0
    size = np.sqrt(np.where(metric > 0, metric, mean))
    values, vectors = np.linalg.eigh(both / size[:, None] / size)
    values = values / (values[-1] if values[-1] > 0 else 1.0)
    directions, _ = np.linalg.qr(vectors[:, values <= tolerance**2] / size[:, None])
    parts = np.linalg.norm(directions, axis=1)
    named = parts > _PART * np.max(parts, initial=0.0)
    names = tuple(
        info.name.removesuffix(".rate")
        for info, own in zip(structure.velocities, named, strict=True)
        if own
    )
    own = np.linalg.eigvalsh(mass)
    return UndeterminedAccelerations(
        jnp.asarray(unit[:, None] * directions),
        jnp.asarray(np.sqrt(np.maximum(values[0], 0.0))),
        names,
        bool(own[0] < -_NEGATIVE * np.max(np.abs(own))),
    )
