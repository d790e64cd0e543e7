from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks
from .._constraints import Frames, one_or_all, own_coordinates, Twists
from .._custom_types import RealScalarLike, Scalar
from .._geometry import CoordinateTwist
from .base import AbstractBodyForce, AbstractLoad


# Of one body q is an array (n,), of several a tuple of such; likewise v and the result.
ForceFunction: TypeAlias = Callable[[Any, Any, RealScalarLike], Any]
PotentialFunction: TypeAlias = Callable[[Any], Float[Array, ""]]


class GeneralizedLoad(AbstractLoad):
    """A user's function of coordinates, velocities and time; a Module's arrays are its
    parameters."""

    function: ForceFunction
    energy: PotentialFunction | None

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        q, v = one_or_all([f.values for f in frames]), one_or_all([w.rates for w in twists])
        found = self.function(q, v, t)
        each = (found,) if len(frames) == 1 else tuple(found)
        if len(each) != len(frames) or any(
            jnp.shape(own) != twist.rates.shape for own, twist in zip(each, twists, strict=True)
        ):
            shapes = ", ".join(str(list(twist.rates.shape)) for twist in twists)
            raise ValueError(
                f"a generalized force must return arrays of the velocities' shapes, {shapes}; "
                f"got {', '.join(str(list(jnp.shape(own))) for own in each)}."
            )
        return tuple(CoordinateTwist(jnp.asarray(own, frames[0].dtype)) for own in each)

    def potential(self, frames: Frames) -> Scalar:
        if self.energy is None:
            return jnp.zeros((), frames[0].dtype)
        return jnp.asarray(self.energy(one_or_all([f.values for f in frames])))


class GeneralizedForce(AbstractBodyForce):
    """A force on the coordinates of a body, or of several.

    **Arguments:**

    - `bodies`: their names, or one. `function(q, v, t)`: the generalized force (nv,) on the body,
      of several bodies a tuple of these; so are q and v. An `eqx.Module` with array fields makes
      them parameters of the system.
    - `potential(q)`: energy (J) that the force stores, to be counted in the system's energy;
      default none. The function must supply its forces all the same.
    """

    kind: ClassVar[str] = "generalized"
    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    function: ForceFunction
    potential: PotentialFunction | None

    def __init__(
        self,
        name: str,
        bodies: str | Sequence[str],
        function: ForceFunction,
        *,
        potential: PotentialFunction | None = None,
    ):
        self.name = _checks.name(name, "a force")
        self.bodies = _checks.body_names(bodies, None)
        self.function = _checks.function(function, "function", "q, v, t")
        self.potential = _checks.optional_function(potential, "potential", "q")

    def placements(self, references: Frames) -> Frames:
        return own_coordinates(self.bodies, references)

    def load(self) -> GeneralizedLoad:
        return GeneralizedLoad(self.function, self.potential)
