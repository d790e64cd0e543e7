from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .. import _settings
from .._custom_types import Numbers, Scalar, Setting
from .._linalg import cholesky, cholesky_solve
from .._solution import RESULTS
from .._system import Equations
from .base import AbstractFormulation, Accelerations, check_mass, outcome


# Iterations end when |J w - g| (J: C M^-1/2 in rows of unit length) is at most the first of these,
# and have failed when it is above the second: relative to what it was at first, plus as many
# kg^(1/2) m/s^2, below which there is nothing but rounding.
_MET = 1e-15
_FAILED = (1e-8, 1e-12)

# In M + alpha C^T D^-1 C of double precision nothing is left of M above this penalty.
_LARGEST = 1e15


class AugmentedLagrangian(AbstractFormulation):
    """Penalties corrected by multipliers (Bayo, Garcia de Jalon & Serna 1988, Comput. Methods
    Appl. Mech. Eng. 71:183).

        (M + alpha C^T D^-1 C) a = F - C^T lambda + alpha C^T D^-1 Gamma
        lambda <- lambda + alpha D^-1 (C a - Gamma),         lambda = 0 at first,

    with D the diagonal of C M^-1 C^T, so that alpha has no unit. An error of a singular value s of
    C M^-1/2 in rows of unit length shrinks by 1 / (1 + alpha s^2) an iteration. The multipliers
    never leave the range of C: they are those of minimum norm. Each iteration solves for the
    change of a alone: solving for a itself would leave an error of alpha times rounding.

    **Arguments:** `penalty`: alpha, greater than zero and at most 1e15. `iterations`: at most,
    1 or more.

    **Raises:** `TypeError` or `ValueError` for one that cannot be.
    """

    word: ClassVar[str] = "augmented-lagrangian"
    penalty: Scalar
    iterations: int = eqx.field(static=True)

    def __init__(self, penalty: Setting[Numbers] = 1e7, iterations: Setting[int] = 20):
        self.penalty = _settings.between(penalty, "penalty", above=0, most=_LARGEST)
        self.iterations = _settings.whole_number(iterations, "iterations", least=1)

    @property
    def inverts_mass(self) -> bool:
        return True

    def solve(self, equations: Equations) -> Accelerations:
        if equations.descriptor.semidefinite:
            check_mass(self, equations.structure)
        descriptor, force = equations.descriptor, equations.force
        row_scale = descriptor.row_scale()
        matrix = descriptor.constraint_matrix() / row_scale[:, None]
        offset = equations.offset / row_scale
        penalty = self.penalty.astype(force.dtype)
        lower = cholesky(descriptor.mass_matrix() + penalty * matrix.T @ matrix)

        def violation(mu):
            return matrix @ descriptor.inverse_mass(force - matrix.T @ mu) - offset

        def correct(mu, violated):
            change = cholesky_solve(lower, matrix.T @ (penalty * violated))
            new = mu + penalty * (violated - matrix @ change)
            return new, violation(new)

        def iterate(carry, _):
            going = _largest(carry[1]) > _MET * (size + 1)
            return lax.cond(going, correct, lambda *same: same, *carry), None

        start = jnp.zeros_like(offset)
        first = violation(start)
        size = _largest(first)
        (mu, left), _ = lax.scan(iterate, (start, first), length=self.iterations)
        missed = _largest(left) > _FAILED[0] * size + _FAILED[1]
        acceleration = descriptor.inverse_mass(force - matrix.T @ mu)
        return outcome(
            acceleration,
            mu / row_scale,
            (missed, RESULTS.augmented_lagrangian_not_converged),
        )


def _largest(x: Float[Array, " rows"]) -> Scalar:
    return jnp.max(jnp.abs(x), initial=0.0)
