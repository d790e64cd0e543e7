import abc

from jaxtyping import Array, Float

from ..._custom_types import RealScalarLike, Scalar
from ..._fields import AbstractDeclared


class AbstractMotion(AbstractDeclared):
    """A prescribed value (m or rad) as a twice continuously differentiable function of time."""

    @abc.abstractmethod
    def __call__(self, t: RealScalarLike) -> Scalar:
        """The value at time t (s), measured from the reference configuration."""

    @abc.abstractmethod
    def knots(self) -> Float[Array, " knots"]:
        """Times (s) at which a higher derivative jumps; an integrator steps onto them."""

    def domain(self) -> tuple[Scalar, Scalar] | None:
        """First and last time at which the motion is defined; None: at all times."""
        return None
