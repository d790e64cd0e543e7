from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import Scalar
from .._fields import Field, Moves, number, positive, reference
from .._geometry import LENGTH
from ._fields import COMPLIANCE_NAME
from .base import AbstractBodyCompliance, AbstractDeformation, Direction


def _two_ends(value: Any, what: str) -> Float[Array, "2 dim"]:
    shape = _checks.shape_of(value)
    if shape not in ((2, 2), (2, 3)):
        raise ValueError(
            f"{what} must be two world points [[..], [..]], the ends of the rod, got "
            f"{_checks.shown(value)}."
        )
    return _checks.real(value, shape, what)


_ENDS = Field(
    "points",
    "m",
    "the ends, in the reference configuration",
    list[list[float]],
    "two world points",
    _two_ends,
    moves=Moves.point,
)


class AxialDeformation(AbstractDeformation):
    """Uniform axial strain: the elongation (m) of the length between two points.

    `middle`, `direction` (dim,): in the body's frame, m; the direction is over the length, so that
    `along @ (x - middle)` is -1/2 and 1/2 at the two points.
    """

    compliance: Float[Array, " n"]
    misfit: Float[Array, " n"]
    middle: Float[Array, " dim"]
    direction: Float[Array, " dim"]

    @property
    def directions(self) -> tuple[Direction, ...]:
        return (Direction("elongation", LENGTH),)

    def displacements(self, marker: Any, body: Any) -> Float[Array, "motions n"]:
        from_middle = body.rotation.T @ (marker.origin - body.origin) - self.middle
        share = self.direction @ from_middle
        unit = self.direction / jnp.linalg.norm(self.direction)
        moved = share * (body.rotation @ unit)
        return jnp.concatenate([moved, jnp.zeros(2 * moved.shape[0] - 3, moved.dtype)])[:, None]


class Rod(AbstractBodyCompliance):
    """A body that is elastic along one line: a rod between the points of its joints,

        elongation = tension / stiffness + misfit.

    The tension is the mean of what the joints at its two ends pull with, half of the difference of
    their axial forces; what they differ by accelerates the body, or is its weight. Joints between
    the ends take their part of the elongation.

    **Arguments:** `body`: its name; `points`: two world points (m), reference configuration;
    `stiffness`: axial, of the whole length (N/m, > 0), E A / l of a prismatic rod; `misfit`: by how
    much (m) it is too long for where its ends are in the reference configuration, default 0:
    tolerances, thermal expansion, preload.
    """

    kind: ClassVar[str] = "rod"
    name: str = eqx.field(static=True, converter=COMPLIANCE_NAME)
    body: str = eqx.field(static=True, converter=reference("body", "which gives way"))
    points: Float[Array, "2 dim"] = eqx.field(kw_only=True, converter=_ENDS)
    stiffness: Scalar = eqx.field(
        kw_only=True, converter=positive("stiffness", "N/m", "axial, of the whole length")
    )
    misfit: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("misfit", "m", "by how much it is too long")
    )

    def __check_init__(self):
        """A rod has a direction."""
        known = _checks.concrete(self.points[1] - self.points[0])
        if known is not None and not np.any(known):
            raise ValueError(
                "the two points coincide, so that the rod has no direction; give the points of "
                "the joints at its ends."
            )

    def check_points(self, points: Callable[[], list[np.ndarray]]) -> None:
        """Uniform strain is defined at all points."""

    def deformation(self, reference: Any) -> AxialDeformation:
        if reference.dimension != self.points.shape[1]:
            raise ValueError(
                f"its points are of dimension {self.points.shape[1]} and its body is of dimension "
                f"{reference.dimension or 'none'}."
            )
        start, end = (reference.rotation.T @ (p - reference.origin) for p in self.points)
        between = end - start
        return AxialDeformation(
            compliance=1 / self.stiffness[None],
            misfit=self.misfit[None],
            middle=(start + end) / 2,
            direction=between / (between @ between),
        )
