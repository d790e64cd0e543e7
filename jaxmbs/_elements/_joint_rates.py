"""Relative velocities of two spatial marker frames, in which reflected inertias are quadratic."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._constraints import AbstractCoordinate
from .._geometry import rotated, SpatialFrame


class AbstractJointRate(eqx.Module):
    """Relative velocity of two frames, linear in their rates of change."""

    @abc.abstractmethod
    def __call__(
        self, frames: tuple[SpatialFrame, ...], rates: tuple[SpatialFrame, ...]
    ) -> Float[Array, " n"]:
        """The relative velocity (m/s or rad/s) of the second frame against the first, when their
        numbers change at `rates`."""


class CoordinateRate(AbstractJointRate):
    """The rate of a joint's coordinate."""

    coordinate: AbstractCoordinate

    def __call__(
        self, frames: tuple[SpatialFrame, ...], rates: tuple[SpatialFrame, ...]
    ) -> Float[Array, " n"]:
        zero = jnp.zeros((), frames[0].dtype)
        return jax.jvp(lambda f: self.coordinate.excess(f, zero)[None], (frames,), (rates,))[1]


class RelativeSpin(AbstractJointRate):
    """The angular velocity of the second frame against the first, along the second one's axes."""

    def __call__(
        self, frames: tuple[SpatialFrame, ...], rates: tuple[SpatialFrame, ...]
    ) -> Float[Array, " n"]:
        first, second = (f.twist(rate).angular for f, rate in zip(frames, rates, strict=True))
        return rotated(frames[1].rotation.T, second - first)
