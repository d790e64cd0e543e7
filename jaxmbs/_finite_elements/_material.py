import equinox as eqx

from .. import _settings
from .._custom_types import Setting


class Material(eqx.Module):
    """A linear elastic, isotropic material.

    **Arguments:**

    - `young`: modulus of elasticity E (Pa), > 0. `poisson`: Poisson's ratio, between -1 and 0.5.
    - `density`: kg/m^3, > 0.

    **Raises:** `TypeError` for a value that is not a number, `ValueError` for one out of its range.
    """

    young: float
    poisson: float
    density: float

    def __init__(self, *, young: Setting[float], poisson: Setting[float], density: Setting[float]):
        self.young = _settings.known_number(
            young, "young", above=0, advice="of steel it is about 2.1e11 Pa"
        )
        self.poisson = _settings.known_number(
            poisson, "poisson", above=-1, below=0.5, advice="of most metals it is about 0.3"
        )
        self.density = _settings.known_number(
            density, "density", above=0, advice="of steel it is about 7800 kg/m^3"
        )

    @property
    def lame(self) -> tuple[float, float]:
        """Lame's constants lambda and mu (Pa)."""
        mu = self.young / (2 * (1 + self.poisson))
        return 2 * mu * self.poisson / (1 - 2 * self.poisson), mu
