from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._geometry import AbstractCoordinates, CoordinateFrame, FlatCoordinates
from .base import AbstractMarker, differentiated, MarkerKinematics


class CoordinateMarker(AbstractMarker):
    """Coordinates themselves: a body's own, for conditions, drivers and forces that act on these,
    or the states of a force, which have no velocities, so that no motion changes them at once
    (`moving`: which of both)."""

    located: ClassVar[bool] = False
    coordinates: FlatCoordinates = eqx.field(static=True)
    moving: bool = eqx.field(static=True)

    def frame(self, q: Float[Array, " nq"]) -> CoordinateFrame:
        return CoordinateFrame(q)

    def body_frame(self, q: Float[Array, " nq"]) -> CoordinateFrame:
        return CoordinateFrame(q)

    def kinematics(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> MarkerKinematics:
        still = jnp.zeros_like(q)
        directions = jnp.eye(v.shape[0], q.shape[0], dtype=q.dtype)
        return MarkerKinematics(
            CoordinateFrame(q),
            CoordinateFrame(v if self.moving else still),
            CoordinateFrame(still),
            jax.vmap(CoordinateFrame)(directions),
        )

    def turned(self, turn: Float[Array, " ..."]) -> "CoordinateMarker":
        raise TypeError("coordinates have no axes to turn.")

    def lever_arm(self) -> Float[Array, ""]:
        return jnp.zeros(())


class PoseMarker(AbstractMarker):
    """The coordinates of a body that has a frame of its own, in place of that frame: for conditions
    between bodies that are easier to write in these."""

    located: ClassVar[bool] = False
    coordinates: AbstractCoordinates = eqx.field(static=True)

    def frame(self, q: Float[Array, " nq"]) -> CoordinateFrame:
        return CoordinateFrame(q, self.coordinates)

    def body_frame(self, q: Float[Array, " nq"]) -> CoordinateFrame:
        return CoordinateFrame(q, self.coordinates)

    def kinematics(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> MarkerKinematics:
        return differentiated(self, q, v)

    def turned(self, turn: Float[Array, " ..."]) -> "PoseMarker":
        raise TypeError("coordinates have no axes to turn.")

    def lever_arm(self) -> Float[Array, ""]:
        return jnp.zeros(())
