"""Elastic ropes over pulleys: springs along a way, which never push."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._constraints import Frames, Twists
from .._constraints._ropes import (
    AbstractWay,
    check_way,
    drawn_way,
    ROPE_AXES,
    ROPE_BODIES,
    rope_length,
    ROPE_POINTS,
    ROPE_RADII,
    ROPE_SENSES,
    Way,
    way_orientations,
)
from .._custom_types import RealScalarLike, Scalar
from .._fields import not_negative, optional, positive
from ._springs import rates
from .base import AbstractBodyForce, AbstractOneSidedLoad, Clearance, FORCE_NAME


class ElasticRopeLoad(AbstractOneSidedLoad, AbstractWay):
    """Tension along a rope's way: a spring and a damper where it is taut, nothing where slack."""

    stiffness: Scalar
    damping: Scalar
    length: Scalar
    radii: Float[Array, " n"]
    wound: Float[Array, " n"]
    around: bool = eqx.field(static=True)

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        del t

        def rate(twists: Twists) -> Scalar:
            return jax.jvp(self._way, (frames,), (rates(frames, twists),))[1]

        speed, transpose = jax.vjp(rate, twists)
        elongation = self._way(frames) - self.length
        pull = self.stiffness * elongation + self.damping * speed
        tension = jnp.where((elongation > 0) & (pull > 0), pull, 0.0)
        # A length that is not known is not that of a slack rope.
        tension = jnp.where(jnp.isnan(elongation), elongation, tension)
        (wrenches,) = transpose(-tension)
        return wrenches

    def potential(self, frames: Frames) -> Scalar:
        elongation = self._way(frames) - self.length
        taut = (elongation > 0) | jnp.isnan(elongation)
        return 0.5 * self.stiffness * jnp.where(taut, elongation, 0.0) ** 2

    def clearance(self, frames: Frames, twists: Twists) -> Clearance:
        speed = jax.jvp(self._way, (frames,), (rates(frames, twists),))[1]
        return Clearance(self.length - self._way(frames), jnp.abs(speed), self.length)

    def drawn(self, frames: Frames) -> tuple[Float[Array, "m dim"], Float[Array, "n k dim"]]:
        points = jnp.stack([frame.origin for frame in frames])
        return drawn_way(points, self.radii, self.wound, way_orientations(frames, self.around))

    def _way(self, frames: Frames) -> Scalar:
        points = jnp.stack([frame.origin for frame in frames])
        return rope_length(points, self.radii, self.wound, way_orientations(frames, self.around))


class ElasticRope(AbstractBodyForce):
    """An elastic rope without mass through points of bodies and around pulleys, over which it
    slides without friction. With L the length of its way,

        tension = stiffness (L - length) + damping dL/dt  where L > length,

    never less than zero, and zero where L <= length (slack). With damping the tension may jump
    where the rope becomes taut. The potential energy is stiffness (L - length)^2 / 2 of a taut
    rope. That the rope stays on its pulleys is not checked; in space
    the tension is NaN where it leaves the plane of a pulley by more than 0.1 rad.

    **Arguments:** `bodies`, `points`, `radii`, `senses`, `axes`: as of a `Rope`; `stiffness`: N/m,
    of the whole rope (EA / length); `damping`: N s/m; `length`: m, > 0, without tension; that of
    the way in the reference configuration if left out.
    """

    kind: ClassVar[str] = "elastic_rope"
    strengths: ClassVar[tuple[str, ...]] = ("stiffness", "damping")
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=ROPE_BODIES)
    points: Float[Array, "n dim"] = eqx.field(kw_only=True, converter=ROPE_POINTS)
    stiffness: Scalar = eqx.field(
        kw_only=True, converter=not_negative("stiffness", "N/m", "of the whole rope")
    )
    damping: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=not_negative("damping", "N s/m", "of the whole rope")
    )
    radii: Float[Array, " n"] | None = eqx.field(default=None, kw_only=True, converter=ROPE_RADII)
    senses: Float[Array, " n"] | None = eqx.field(default=None, kw_only=True, converter=ROPE_SENSES)
    axes: Float[Array, "n 3"] | None = eqx.field(default=None, kw_only=True, converter=ROPE_AXES)
    length: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            positive("length", "m", "without tension"),
            "that of its way",
            lambda rope: rope.natural_length(),
        ),
    )

    def __check_init__(self):
        """A rope can take its way."""
        check_way(self._own_way)

    @property
    def _own_way(self) -> Way:
        return Way(self.bodies, self.points, self.radii, self.senses, self.axes)

    def placements(self, references: Frames) -> Frames:
        del references
        return self._own_way.frames()

    def load(self) -> ElasticRopeLoad:
        radii, way, wound = self._own_way.reference()
        length = way if self.length is None else self.length
        around = self.axes is not None
        return ElasticRopeLoad(self.stiffness, self.damping, length, radii, wound, around)

    def natural_length(self) -> Scalar:
        """Length (m) without tension of a rope without a given one."""
        return self._own_way.reference()[1]
