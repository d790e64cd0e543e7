from collections.abc import Callable, Sequence
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._constraints import Frames
from .._constraints._placing import unturned_frames
from .._custom_types import Numbers
from .._fields import Field, Moves, Naming, optional, point_or_points
from .._geometry import relative_rotation_vector
from ._elastic import AbstractElasticLoad
from ._fields import FORCE_NAME, TWO_BODIES
from .base import AbstractBodyForce


class PlanarBushingLoad(AbstractElasticLoad):
    """x = displacement of the second marker against the first in the second one's axes (m),
    then phi_2 - phi_1 (rad)."""

    stiffness: Float[Array, "3 3"]
    damping: Float[Array, "3 3"]
    preload: Float[Array, "3"]

    def deformation(self, frames: Frames) -> Float[Array, " n"]:
        first, second = frames
        displacement = second.rotation.T @ (second.origin - first.origin)
        return jnp.append(displacement, second.angle - first.angle)


class SpatialBushingLoad(AbstractElasticLoad):
    """x = displacement of the second marker against the first in the second one's axes (m),
    then twice the Rodrigues vector of the second's rotation against the first (rad)."""

    stiffness: Float[Array, "6 6"]
    damping: Float[Array, "6 6"]
    preload: Float[Array, "6"]

    def deformation(self, frames: Frames) -> Float[Array, " n"]:
        first, second = frames
        displacement = second.rotation.T @ (second.origin - first.origin)
        rotation = relative_rotation_vector(first.rotation.T @ second.rotation)
        return jnp.concatenate([displacement, rotation])


def _symmetric(value: Numbers, size: int, what: str) -> Float[Array, "n n"]:
    """A symmetric matrix, given as such or by its diagonal."""
    shape = _checks.shape_of(value)
    if shape not in ((size,), (size, size)):
        raise ValueError(
            f"{what} must be the {size} numbers on the diagonal of a matrix, or a {size} x {size} "
            f"matrix, got {_checks.shown(value)}."
        )
    array = _checks.real(value, shape, what)
    matrix = jnp.diag(array) if len(shape) == 1 else array
    known = _checks.concrete(matrix)
    if known is not None and np.max(np.abs(known - known.T)) > 1e-9 * np.max(np.abs(known)):
        raise ValueError(f"{what} must be a symmetric matrix, got {_checks.shown(known.tolist())}.")
    return matrix


def _matrix(key: str, units: str) -> Callable[[Numbers], Float[Array, "n n"]]:
    """A symmetric matrix, whose letters are those of a spatial bushing."""
    return Field(
        key,
        "",
        units,
        # A single number is refused with the size of the matrix, which a file does not contain.
        float | list[float] | list[list[float]],
        "a symmetric matrix, 3 x 3 (in space 6 x 6), or its diagonal",
        lambda value, what: _symmetric(value, _checks.shape_of(value)[-1], what),
        naming=Naming(("x", "y", "z", "rx", "ry", "rz"), symmetric=True),
        moves=Moves.over_motions,
    )


_AT = point_or_points()
_STIFFNESS = _matrix("stiffness", "against motion at the point: N/m, N/rad, N m/rad")
_DAMPING = optional(_matrix("damping", "of motion at the point: N s/m, N s/rad, N m s/rad"), "zero")


class Bushing(AbstractBodyForce):
    """An elastic, damped connection of two bodies at a point, against every relative motion:

        wrench on the second body = -stiffness x - damping dx/dt,

    with x the displacement and rotation of the second body against the first since the
    reference configuration: (x, y, angle) in the plane, (x, y, z, rx, ry, rz) in space,
    in axes that the second body carries and that are the world's in the reference configuration.
    The rotation is twice the Rodrigues vector, 2 tan(angle / 2) axis: the rotation vector to
    third order, so that bushings are for small rotations (short of half a turn, where it is
    infinite). At finite rotations the wrench is the one that has this stiffness's potential.

    **Arguments:** `bodies`: two names; `at`: world point (m) in the reference configuration, or
    two, one on each body, whose distance counts as displacement; `stiffness` (N/m, N/rad,
    N m/rad) and `damping` (default none): a symmetric matrix, or its diagonal, of size 3 in the
    plane and 6 in space.
    """

    kind: ClassVar[str] = "bushing"
    strengths: ClassVar[tuple[str, ...]] = ("stiffness", "damping")
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Float[Array, "2 dim"] = eqx.field(converter=_AT)
    stiffness: Float[Array, "n n"] = eqx.field(converter=_STIFFNESS)
    damping: Float[Array, "n n"] = eqx.field(converter=_DAMPING)

    def __init__(
        self,
        name: str,
        bodies: Sequence[str],
        *,
        at: Numbers,
        stiffness: Numbers,
        damping: Numbers | None = None,
    ):
        self.name = name
        self.bodies = TWO_BODIES(bodies)
        self.at = _AT(at)
        size = 3 if self.at.shape[1] == 2 else 6
        self.stiffness = _symmetric(stiffness, size, "stiffness")
        given = jnp.zeros(size) if damping is None else damping
        self.damping = _symmetric(given, size, "damping")

    def placements(self, references: Frames) -> Frames:
        del references
        return unturned_frames(self.at)

    def load(self) -> PlanarBushingLoad | SpatialBushingLoad:
        size = self.stiffness.shape[0]
        make = PlanarBushingLoad if size == 3 else SpatialBushingLoad
        return make(self.stiffness, self.damping, jnp.zeros(size))
