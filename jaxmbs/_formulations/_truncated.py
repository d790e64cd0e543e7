from typing import ClassVar

import equinox as eqx
from jax import lax

from .._linalg import leading
from .._solution import RESULTS
from .._system import Equations
from ._mass_weighted import mass_weighted
from .base import AbstractFormulation, Accelerations, outcome


class Truncated(AbstractFormulation):
    """The equations with C replaced by the nearest matrix of a known rank: the multipliers of
    minimum norm of a mechanism whose redundant constraints contradict each other a little.

    Parts that do not fit each other make dependent rows independent by as much as they are off.
    Taken at its word such a C blocks the motion and divides forces by what is off; with the rank
    that C has where everything fits, reactions that are unique there differ by as little as the
    parts do. Used for that alone: it has derivatives in F and Gamma, as C is held.

    **Arguments:** `rank`: of C where everything fits.
    """

    word: ClassVar[str] = "truncated"
    rank: int = eqx.field(static=True)

    def solve(self, equations: Equations) -> Accelerations:
        scaled = mass_weighted(equations)
        u, s, vt = leading(lax.stop_gradient(scaled.matrix), self.rank)
        gap = (u.T @ (scaled.matrix @ scaled.force - scaled.offset)) / s
        return outcome(
            scaled.acceleration(scaled.force - vt.T @ gap),
            scaled.multipliers(u @ (gap / s)),
            (~scaled.definite, RESULTS.mass_matrix_not_definite),
        )
