import abc

import equinox as eqx
import jax
from jaxtyping import Array, Float

from .._constraints import Frames, Twists
from .._custom_types import RealScalarLike, Scalar
from ._rates import rates
from .base import AbstractLoad


class AbstractElasticLoad(AbstractLoad):
    """A linear law of a deformation x of the markers:

        stress = stiffness x + damping dx/dt - preload,

    with wrenches of the power -stress . dx/dt. So they balance each other wherever x does not
    change in a rigid motion, and give back what is stored, however large x is.
    """

    stiffness: eqx.AbstractVar[Float[Array, "n n"]]
    damping: eqx.AbstractVar[Float[Array, "n n"]]
    preload: eqx.AbstractVar[Float[Array, " n"]]

    @abc.abstractmethod
    def deformation(self, frames: Frames) -> Float[Array, " n"]:
        """x (m, rad)."""

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        del t

        def rate(twists: Twists) -> Float[Array, " n"]:
            return jax.jvp(self.deformation, (frames,), (rates(frames, twists),))[1]

        speed, transpose = jax.vjp(rate, twists)
        elastic = self.stiffness @ self.deformation(frames) - self.preload
        (wrenches,) = transpose(-elastic - self.damping @ speed)
        return wrenches

    def potential(self, frames: Frames) -> Scalar:
        x = self.deformation(frames)
        return 0.5 * x @ self.stiffness @ x
