"""Damping of modes."""

import abc
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float

from .. import _settings
from .._checks import shown
from .._custom_types import NumberList, Setting


class AbstractDamping(eqx.Module):
    """Damping of the modes of an elastic body."""

    @abc.abstractmethod
    def matrix(self, omega: Float[np.ndarray, " modes"]) -> Float[np.ndarray, "modes modes"]:
        """The damping matrix of modes of unit modal mass and angular frequencies `omega` (rad/s).

        **Raises:** `ValueError` where numbers for each mode were given and there are more or fewer.
        """


class ModalDamping(AbstractDamping):
    """Each mode with its own damping ratio: D = diag(2 zeta_i omega_i).

    **Arguments:** `ratio`: zeta, at least 0 (1 is critical), one for all modes or one for each in
    the order of their frequencies.
    """

    ratio: Float[np.ndarray, " ratios"] | float

    def __init__(self, ratio: Setting[float | NumberList] = 0.0):
        self.ratio = _not_negative(ratio)

    def matrix(self, omega: Float[np.ndarray, " modes"]) -> Float[np.ndarray, "modes modes"]:
        if np.ndim(self.ratio) and np.shape(self.ratio) != omega.shape:
            raise ValueError(
                f"ratio must be one number, or one for each of {len(omega)} modes, got "
                f"{np.size(self.ratio)}."
            )
        return np.diag(2 * self.ratio * omega)


class StiffnessDamping(AbstractDamping):
    """Damping in proportion to the stiffness: D = beta K, so the ratio beta omega / 2 grows with
    the frequency.

    **Arguments:** `beta`: s, at least 0.
    """

    beta: float

    def __init__(self, beta: Setting[float]):
        self.beta = _settings.known_number(beta, "beta", least=0)

    def matrix(self, omega: Float[np.ndarray, " modes"]) -> Float[np.ndarray, "modes modes"]:
        return np.diag(self.beta * omega**2)


def _not_negative(ratio: Any) -> Float[np.ndarray, " ratios"] | float:
    if not _settings.holds_numbers(ratio) or np.ndim(ratio) == 0:
        return _settings.known_number(ratio, "ratio", least=0)
    ratios = np.asarray(_settings.vector(ratio, "ratio"), float)
    if np.any(ratios < 0):
        raise ValueError(f"ratio must be at least 0, got {shown(ratios.tolist())}.")
    return ratios
