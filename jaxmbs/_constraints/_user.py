from collections.abc import Sequence
from typing import ClassVar, Literal

import equinox as eqx
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import Numbers
from .._geometry import ANGLE, LENGTH
from . import _fields
from ._placing import unturned_frames
from ._primitives import PositionCondition, VelocityCondition
from .base import (
    AbstractJoint,
    AbstractPrimitive,
    Frames,
    PositionFunction,
    Row,
    VelocityFunction,
)


class Geometric(AbstractJoint):
    """A geometric constraint written as a plain function of marker frames and time.

    **Arguments:**

    - `function(frames, t)`: residual (rows,), zero when satisfied; smooth. An `eqx.Module`
      with array fields makes them parameters of the system.
    - `markers`: pairs (body, world point in the reference configuration); a body may come more
      than once. The markers have the world's axes then.
    - `rows`: how many rows, or their suffixes. `quantity`: the residual's unit, "length" or
      "angle".
    """

    kind: ClassVar[str] = "geometric"
    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    at: Float[Array, "markers dim"] = eqx.field(converter=_fields.MARKER_POINTS)
    function: PositionFunction
    labels: tuple[Row, ...] = eqx.field(static=True)

    def __init__(
        self,
        name: str,
        function: PositionFunction,
        markers: Sequence[tuple[str, Numbers]],
        *,
        rows: int | Sequence[str] = 1,
        quantity: Literal["length", "angle"] = "length",
    ):
        self.name = _checks.name(name, "a joint")
        self.bodies, self.at = _fields.markers(markers)
        self.function = _checks.function(function, "function", "frames, t")
        if quantity not in ("length", "angle"):
            raise ValueError(
                f"quantity must be 'length' or 'angle', got {_checks.shown(quantity)}."
            )
        self.labels = _fields.labels_of(rows, LENGTH if quantity == "length" else ANGLE)

    def placements(self, references: Frames) -> Frames:
        del references
        return unturned_frames(self.at)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (PositionCondition(self.function, self.labels),)


class Velocity(AbstractJoint):
    """A velocity constraint written as a plain function of marker frames, twists and time.

    **Arguments:** as `Geometric`, with `function(frames, twists, t)`: residual (rows,), linear,
    affine or nonlinear in the twists.
    """

    kind: ClassVar[str] = "velocity"
    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    at: Float[Array, "markers dim"] = eqx.field(converter=_fields.MARKER_POINTS)
    function: VelocityFunction
    labels: tuple[Row, ...] = eqx.field(static=True)

    def __init__(
        self,
        name: str,
        function: VelocityFunction,
        markers: Sequence[tuple[str, Numbers]],
        *,
        rows: int | Sequence[str] = 1,
    ):
        self.name = _checks.name(name, "a joint")
        self.bodies, self.at = _fields.markers(markers)
        self.function = _checks.function(function, "function", "frames, twists, t")
        self.labels = _fields.labels_of(rows, LENGTH)

    def placements(self, references: Frames) -> Frames:
        del references
        return unturned_frames(self.at)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (VelocityCondition(self.function, self.labels),)
