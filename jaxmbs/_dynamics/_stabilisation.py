import abc

import equinox as eqx
from jaxtyping import Array, Float

from .. import _settings
from .._custom_types import Numbers, Scalar, Setting
from .._system import Evaluation


# Above this rate (1/s) beta^2 times rounding of a position of 1 m is an acceleration of 1e8 m/s^2,
# and no step of an integrator is short enough.
_FASTEST = 1e12


class AbstractStabilisation(eqx.Module):
    """Stabilisation against drift from the constraints."""

    @property
    @abc.abstractmethod
    def projecting(self) -> bool:
        """Are states brought back onto the constraints after each step?"""

    @abc.abstractmethod
    def offset(self, said: Evaluation) -> Float[Array, " rows"] | None:
        """The term added to Gamma; None for none."""


class Projection(AbstractStabilisation):
    """Mass-orthogonal projection of position and velocity after each step: no drift."""

    @property
    def projecting(self) -> bool:
        return True

    def offset(self, said: Evaluation) -> None:
        del said


class Baumgarte(AbstractStabilisation):
    """Gamma - 2 alpha (C v + b) - beta^2 Phi in the place of Gamma (Baumgarte 1972, Comput. Meth.
    Appl. Mech. Eng. 1): drift decays like an oscillator. Cheaper than projection, and neither
    exact nor free of tuning; velocity rows have no Phi.

    **Arguments:** `alpha`, `beta`: 1/s, greater than zero; equal values damp critically.
    """

    alpha: Scalar
    beta: Scalar

    def __init__(self, alpha: Setting[Numbers] = 10.0, beta: Setting[Numbers] = 10.0):
        self.alpha = _settings.between(alpha, "alpha", above=0, most=_FASTEST)
        self.beta = _settings.between(beta, "beta", above=0, most=_FASTEST)

    @property
    def projecting(self) -> bool:
        return False

    def offset(self, said: Evaluation) -> Float[Array, " rows"]:
        return -2 * self.alpha * said.rate - self.beta**2 * said.gap
