import equinox as eqx
from jaxtyping import Array, Float

from ..._custom_types import RealScalarLike
from ..._geometry import LENGTH
from ..base import AbstractGeometricPrimitive, Frames, Row


class Coincide(AbstractGeometricPrimitive):
    """Two points coincide: P_1 - P_2 = 0 along the world axes (Nikravesh 1988, eq. 4.7)."""

    dimension: int = eqx.field(static=True)

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(Row(s, LENGTH) for s in ("x", "y", "z")[: self.dimension])

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        first, second = frames
        return first.origin - second.origin
