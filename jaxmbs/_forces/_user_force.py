from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks
from .._constraints import Frames, Twists
from .._constraints._fields import MARKER_POINTS, markers as markers_of
from .._constraints._placing import unturned_frames
from .._custom_types import Numbers, RealScalarLike, Scalar
from .base import AbstractBodyForce, AbstractLoad


# One pair (force, torque) for each marker.
WrenchFunction: TypeAlias = Callable[[Frames, Twists, RealScalarLike], Sequence[tuple[Any, Any]]]
PotentialFunction: TypeAlias = Callable[[Frames], Scalar]


class UserLoad(AbstractLoad):
    """A user's function of marker frames, twists and time; a Module's arrays are its
    parameters."""

    function: WrenchFunction
    energy: PotentialFunction | None

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        return wrenches_of(frames, twists, self.function(frames, twists, t))

    def potential(self, frames: Frames) -> Scalar:
        dtype = frames[0].dtype
        return jnp.zeros((), dtype) if self.energy is None else jnp.asarray(self.energy(frames))


class UserForce(AbstractBodyForce):
    """A force written as a plain function of marker frames, twists and time.

    **Arguments:**

    - `function(frames, twists, t)`: for each marker the pair (force, torque) on its body, at the
      marker's origin, world axes (N; N m, a number in the plane, a vector in space). An
      `eqx.Module` with array fields makes them parameters of the system.
    - `markers`: pairs (body, world point in the reference configuration); a body may come more
      than once. The markers have the world's axes then.
    - `potential(frames)`: energy (J) that the force stores, to be counted in the system's
      energy; default none. The function must supply its forces all the same.
    """

    kind: ClassVar[str] = "user"
    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    at: Float[Array, "markers dim"] = eqx.field(converter=MARKER_POINTS)
    function: WrenchFunction
    potential: PotentialFunction | None

    def __init__(
        self,
        name: str,
        function: WrenchFunction,
        markers: Sequence[tuple[str, Numbers]],
        *,
        potential: PotentialFunction | None = None,
    ):
        self.name = _checks.name(name, "a force")
        self.bodies, self.at = markers_of(markers)
        self.function = _checks.function(function, "function", "frames, twists, t")
        self.potential = _checks.optional_function(potential, "potential", "frames")

    def placements(self, references: Frames) -> Frames:
        del references
        return unturned_frames(self.at)

    def load(self) -> UserLoad:
        return UserLoad(self.function, self.potential)


def wrenches_of(frames: Frames, twists: Twists, pairs: Sequence[tuple[Any, Any]]) -> Twists:
    """The pairs that a user's function returned for the markers, as covectors of their twists.

    **Raises:** `ValueError` for another number of pairs, or other shapes.
    """
    result = tuple(pairs)
    if len(result) != len(frames):
        raise ValueError(
            f"a force function returned {len(result)} pair(s) (force, torque) for "
            f"{len(frames)} marker(s); return one for each, in their order."
        )
    return tuple(
        _wrench(frame, twist, pair)
        for frame, twist, pair in zip(frames, twists, result, strict=True)
    )


def _wrench(frame: Any, twist: Any, pair: tuple[Any, Any]) -> Any:
    """One marker's pair as the covector of its twist."""
    force, torque = (jnp.asarray(x, frame.origin.dtype) for x in pair)
    wanted = (twist.linear.shape, twist.angular.shape)
    if (force.shape, torque.shape) != wanted:
        raise ValueError(
            f"a force function returned a force of shape {list(force.shape)} and a torque of shape "
            f"{list(torque.shape)}; return shapes {list(wanted[0])} and {list(wanted[1])}."
        )
    return frame.wrench(force, torque)
