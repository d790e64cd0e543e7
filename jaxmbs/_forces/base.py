"""Forces: what acts on marker frames besides the constraints."""

import abc
from typing import ClassVar

import equinox as eqx

from .._constraints import Frames, Twists
from .._custom_types import RealScalarLike


class AbstractLoad(eqx.Module):
    """The law of a force, without name and place, so that it stacks."""

    @abc.abstractmethod
    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        """The wrench on each marker's body at the marker, world axes, as a twist's covector."""


class AbstractForce(eqx.Module):
    """A named force as the user writes it. `kind` is its word in model files."""

    kind: ClassVar[str]
    name: eqx.AbstractVar[str]
    bodies: eqx.AbstractVar[tuple[str, ...]]

    @abc.abstractmethod
    def placements(self, references: Frames) -> Frames:
        """The world frame of each marker in the reference configuration."""

    @abc.abstractmethod
    def load(self) -> AbstractLoad:
        """The law."""
