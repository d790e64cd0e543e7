"""Messages for numbers of limited precision that would decide a motion or forces."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from .._checks import listed
from .._custom_types import RealScalarLike
from .._limits import Tolerances
from .._system import AbstractSystem
from ._analyze import scaled_constraint_matrix


# A row takes part in a combination of rows of unit length from this coefficient on.
_PART = 1e-3


_ADVICE = (
    "give more digits, replace the redundant joints (jaxmbs analyze --releases), or state "
    "precision = 0 where the numbers are exact."
)


class RedundancyAtPrecision(NamedTuple):
    """Rows that are independent for the numbers as written, and redundant within their `precision`:
    the two ranks, how many velocities there are, and the joints and drivers of these rows."""

    precision: float
    written: int
    within: int
    velocities: int
    joints: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"The mechanism is redundant at the precision of its numbers ({self.precision:.2g} of "
            f"the characteristic length, or rad): its rank is {self.written} by the numbers as "
            f"they stand, and {self.within} within their precision. So its mobility is "
            f"{self.velocities - self.written} where {self.velocities - self.within} is meant, as "
            f"{listed(self.joints)} {'is' if len(self.joints) == 1 else 'are'} off by less than "
            "that"
        )


def redundancy_at_precision(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    kept: Bool[np.ndarray, " rows"] | None = None,
) -> RedundancyAtPrecision | None:
    """The redundancy of the `kept` rows (default all) that is decided by the precision of the
    model's numbers, or None. Nothing is computed for a system of exact numbers or a traced one."""
    precision: Any = system.precision
    if precision is None or not system.structure.has_loops:
        return None
    if any(isinstance(x, Tracer) for x in (precision, q, v, t)):
        return None
    scaled = scaled_constraint_matrix(system, q, v, t)[0]
    if isinstance(scaled, Tracer) or not np.all(np.isfinite(matrix := np.asarray(scaled))):
        return None
    rows = np.arange(len(matrix)) if kept is None else np.flatnonzero(kept)
    matrix = matrix[rows]
    left, values, _ = np.linalg.svd(matrix, full_matrices=False)
    tolerances = Tolerances(np.asarray(precision))
    written, within = (
        int(np.sum(values > part * np.max(values, initial=0.0)))
        for part in (tolerances.rank, max(tolerances.rank, float(tolerances.rows)))
    )
    if written == within:
        return None
    structure = system.structure
    own = rows[np.any(np.abs(left[:, within:written]) > _PART, axis=1)]
    joints = dict.fromkeys(structure.constraint_names[structure.row_owner[k]] for k in own)
    return RedundancyAtPrecision(float(precision), written, within, structure.nv, tuple(joints))


def warn_at_precision(found: RedundancyAtPrecision | None, stacklevel: int = 3) -> None:
    """Warn that accelerations and forces may be those of the error."""
    if found is None:
        return
    warnings.warn(
        f"{found}, and motion and forces that rest on the difference are those of rounding, not of "
        f"the mechanism; {_ADVICE}",
        stacklevel=stacklevel,
    )


def refuse_at_precision(found: RedundancyAtPrecision | None, what: str) -> None:
    """Refuse `what`, which uses every row as written.

    **Raises:** `ValueError`.
    """
    if found is not None:
        raise ValueError(
            f"{found}, and {what} takes the numbers as they stand: motion and forces would be "
            f"those of rounding; {_ADVICE}"
        )
