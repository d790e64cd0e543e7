"""Compliances: deformation of bodies and joints under load.

A compliance as the user writes it has a name and a place. The evaluated object has neither: a
deformation, by which a few coordinates eta displace the markers of joints. To a constraint these
are velocities more, so that C has columns more, D, with no mass and with the stiffness of the
part. The rigid motion stays what it is; reactions that it leaves undecided are those that strain
the parts least (`jaxmbs.formulations.ElasticResolution`).
"""

import abc
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from .._fields import AbstractDeclared, part_name
from .._geometry import Quantity


class Direction(NamedTuple):
    """One deformation: its name, and what it is."""

    name: str
    quantity: Quantity


class AbstractDeformation(eqx.Module):
    """`n` uncoupled deformations eta of a body or joint.

    - `compliance` (n,): deformation per unit of its generalized force, at least zero; zero is
      rigid.
    - `misfit` (n,): what each is without any force: parts that were made too long, heated, mounted
      askew.
    """

    compliance: eqx.AbstractVar[Float[Array, " n"]]
    misfit: eqx.AbstractVar[Float[Array, " n"]]

    @property
    @abc.abstractmethod
    def directions(self) -> tuple[Direction, ...]:
        """The direction of each deformation. Must be known without the values of any array."""

    @abc.abstractmethod
    def displacements(self, marker: Any, body: Any) -> Float[Array, "motions n"]:
        """Motion of a marker by a unit of each: translation along the world's axes (m), rotation
        about these (rad). `marker`: its frame, planar or spatial; `body`: that of its body."""


class AbstractCompliance(AbstractDeclared):
    """A named compliance as the user writes it. `kind` is its name in model files."""

    kind: ClassVar[str]
    name: eqx.AbstractVar[str]


class AbstractBodyCompliance(AbstractCompliance):
    """The compliance of a body: all markers of joints on it are displaced."""

    body: eqx.AbstractVar[str]

    @abc.abstractmethod
    def deformation(self, reference: Any) -> AbstractDeformation:
        """The deformation to evaluate; `reference`: the body's frame in the reference
        configuration.

        **Raises:** `ValueError` for a body of the other dimension.
        """

    @abc.abstractmethod
    def check_points(self, points: Callable[[], list[np.ndarray]]) -> None:
        """Check the points where joints hold the body: `points` finds these (dim,), m, from its
        frame and along its axes, those that are known.

        **Raises:** `ValueError` where its deformation is not defined.
        """


class AbstractJointCompliance(AbstractCompliance):
    """The compliance of a joint: its marker on body 2 is displaced (on a single body, the marker
    there)."""

    joint: eqx.AbstractVar[str]

    @abc.abstractmethod
    def deformation(self, dimension: int) -> AbstractDeformation:
        """The deformation to evaluate, in the plane (2) or in space (3).

        **Raises:** `ValueError` for numbers of the other dimension.
        """


# --------------------------------------------------------------------------------------------------
# Declarations that compliances share.
# --------------------------------------------------------------------------------------------------


COMPLIANCE_NAME = part_name("a compliance")
