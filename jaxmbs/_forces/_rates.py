"""From the twist of a frame to the rate of change of the frame's own numbers."""

import functools
from typing import Any

import jax.numpy as jnp

from .._constraints import Frames, Twists
from .._geometry import PlanarFrame, SpatialFrame, SpatialTwist


def rates(frames: Frames, twists: Twists) -> Frames:
    """The rate of change of each frame that moves with its twist."""
    return tuple(_rate(frame, twist) for frame, twist in zip(frames, twists, strict=True))


@functools.singledispatch
def _rate(frame: Any, twist: Any) -> Any:
    """The rate; in the plane it is the twist itself."""
    del frame
    return PlanarFrame(twist.linear, twist.angular)


@_rate.register(SpatialFrame)
def _(frame: SpatialFrame, twist: SpatialTwist) -> SpatialFrame:
    """Rdot = (w x) R, for each axis."""
    turning = jnp.cross(twist.angular[:, None], frame.rotation, axis=0)
    return SpatialFrame(twist.linear, turning)
