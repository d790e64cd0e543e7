"""Spatial joints that are described by one direction on each body."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._geometry import SpatialFrame
from .._fields import JOINT_NAME, SPATIAL_PAIR, TWO_AXES, TWO_BODIES
from .._placing import triad
from .._primitives import AxesParallel, AxesPerpendicular, Coincide
from ..base import AbstractJoint, AbstractPrimitive, Frames, Release
from ._located import point_releases
from ._turns import AS_IS, onto_axis


class Universal(AbstractJoint):
    """Points coincide and two axes, one on each body, stay perpendicular: rows
    `.x .y .z .a`.

    **Arguments:** `bodies`: two names; `at`: world point (m), or two; `axes`: two world
    directions, reference configuration (perpendicular there).
    """

    kind: ClassVar[str] = "universal"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Float[Array, "2 3"] = eqx.field(converter=SPATIAL_PAIR)
    axes: Float[Array, "2 3"] = eqx.field(converter=TWO_AXES)

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        del references
        return _each(self.at, self.axes)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (Coincide(3), AxesPerpendicular())

    @classmethod
    def releases(cls) -> tuple[Release, ...]:
        ball = Release("spherical", (Coincide(3),))
        return (ball, *point_releases())


class ParallelAxes(AbstractJoint):
    """Two body directions stay parallel: rows `.a1 .a2`.

    **Arguments:** `bodies`: two names; `axes`: two world directions, reference configuration.
    """

    kind: ClassVar[str] = "parallel_axes"
    located: ClassVar[bool] = False
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    axes: Float[Array, "2 3"] = eqx.field(converter=TWO_AXES)

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        return _each(jnp.stack([frame.origin for frame in references]), self.axes)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (AxesParallel(),)

    @classmethod
    def releases(cls) -> tuple[Release, ...]:
        return tuple(
            Release("perpendicular_axes", (AxesPerpendicular(),), (AS_IS, onto_axis(k)), 2)
            for k in range(2)
        )


class PerpendicularAxes(AbstractJoint):
    """Two body directions stay perpendicular: one row.

    **Arguments:** `bodies`: two names; `axes`: two world directions, reference configuration.
    """

    kind: ClassVar[str] = "perpendicular_axes"
    located: ClassVar[bool] = False
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    axes: Float[Array, "2 3"] = eqx.field(converter=TWO_AXES)

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        return _each(jnp.stack([frame.origin for frame in references]), self.axes)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (AxesPerpendicular(),)


def _each(points: Float[Array, "2 3"], axes: Float[Array, "2 3"]) -> tuple[SpatialFrame, ...]:
    return tuple(SpatialFrame(p, triad(axis)) for p, axis in zip(points, axes, strict=True))
