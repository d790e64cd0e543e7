from jaxtyping import Array, Float

from .. import _checks
from .._constraints import AbstractJoint, Frames
from .._constraints.base import AbstractCoordinate
from .._custom_types import Scalar
from ._elastic import AbstractElasticLoad


class CoordinateLoad(AbstractElasticLoad):
    """A force along, or a moment about, a joint's axis that depends on the joint's coordinate."""

    coordinate: AbstractCoordinate
    rest: Scalar
    stiffness: Float[Array, "1 1"]
    damping: Float[Array, "1 1"]
    preload: Float[Array, "1"]

    def deformation(self, frames: Frames) -> Float[Array, " n"]:
        return self.coordinate.excess(frames, self.rest)[None]


def coordinate_load(
    joint: AbstractJoint,
    coordinate: str,
    advice: str,
    *,
    rest: Scalar,
    stiffness: Scalar,
    damping: Scalar,
    preload: Scalar,
) -> CoordinateLoad:
    """The load on the translation or rotation of a joint.

    **Raises:** `ValueError` for a joint that has none.
    """
    coordinates = joint.coordinates()
    if coordinate not in coordinates:
        raise ValueError(
            f"joint {_checks.shown(joint.name)} ({joint.kind}) has no {coordinate}; {advice}."
        )
    return CoordinateLoad(
        coordinate=coordinates[coordinate],
        rest=rest,
        stiffness=stiffness[None, None],
        damping=damping[None, None],
        preload=preload[None],
    )
