"""What is said where numbers that are not exact would decide a motion or forces."""

import warnings
from typing import Any

import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._custom_types import RealScalarLike
from .._linalg._concrete_rank import RANK_TOLERANCE
from .._system import AbstractSystem
from ._analyze import scaled_constraint_matrix
from ._criteria import PRECISION_FACTOR


def warn_at_precision(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
) -> None:
    """Warn where rows are independent by the numbers as they stand, and redundant within their
    precision: then accelerations and forces are those of the error. Nothing is computed of a system
    of exact numbers, and nothing is said of traced ones."""
    precision: Any = system.precision
    if precision is None or not system.structure.has_loops:
        return
    if any(isinstance(x, Tracer) for x in (precision, q, v, t)):
        return
    scaled = scaled_constraint_matrix(system, q, v, t)[0]
    if isinstance(scaled, Tracer) or not np.all(np.isfinite(matrix := np.asarray(scaled))):
        return
    values = np.linalg.svd(matrix, compute_uv=False)
    limit = PRECISION_FACTOR * float(precision)
    written, within = (
        int(np.sum(values > part * np.max(values, initial=0.0)))
        for part in (RANK_TOLERANCE, max(RANK_TOLERANCE, limit))
    )
    if written == within:
        return
    warnings.warn(
        f"The mechanism is redundant at the precision of its numbers ({float(precision):.2g} of "
        f"the characteristic length, or rad): its rank is {written} by the numbers as they stand, "
        f"and {within} within their precision. So its mobility is {system.structure.nv - written} "
        f"where {system.structure.nv - within} is meant, and motion and forces that rest on the "
        "difference are those of rounding, not of the mechanism. Give more digits, replace the "
        "redundant joints (jaxmbs analyze --releases), or state precision = 0 where the numbers "
        "are exact.",
        stacklevel=3,
    )
