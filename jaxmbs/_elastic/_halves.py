"""Which half of a split body each part acts on."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._bodies import AbstractBody, Frame, PlanarBody, SpatialBody
from .._checks import shown
from .._constraints import AbstractJoint
from .._constraints._fields import world_axes
from .._forces import AbstractBodyForce, AbstractForce
from .._geometry import PlanarFrame, SpatialFrame
from .._system import Model
from .._system._structure import GROUND


_Part = TypeVar("_Part", bound=eqx.Module)

# Points in the middle, by their share of the length, belong to neither end.
_MIDDLE = (0.4, 0.6)


class Halves(NamedTuple):
    """The names of the halves of a body, and the points (2, dim) of its ends in the world,
    reference configuration (m)."""

    body: str
    points: Float[Array, "2 dim"]

    @property
    def names(self) -> tuple[str, str]:
        """Names of the halves, by their ends."""
        return f"{self.body} start", f"{self.body} end"

    @property
    def length(self) -> Float[Array, ""]:
        """Length of the rod (m)."""
        return jnp.linalg.norm(self.points[1] - self.points[0])

    def at(self, point: Float[Array, " dim"], what: str) -> str:
        """The half whose end is nearer to the point.

        **Raises:** `ValueError` for a point in the middle.
        """
        start, end = np.asarray(self.points)
        share = float((np.asarray(point) - start) @ (end - start) / np.sum((end - start) ** 2))
        if _MIDDLE[0] <= share <= _MIDDLE[1]:
            raise ValueError(
                f"{what} acts in the middle of the body {shown(self.body)}, on neither half of it; "
                "move it to an end, or give other points."
            )
        return self.names[int(share > _MIDDLE[1])]


def references_of(model: Model) -> dict[str, Frame]:
    """The frames at which parts are held, and the ground's, in the reference configuration."""
    planar = PlanarFrame(jnp.zeros(2), jnp.asarray(0.0))
    ground = planar if model.dimension == 2 else SpatialFrame(jnp.zeros(3), world_axes())
    own = {name: site.reference for body in model.bodies for name, site in body.sites().items()}
    return {GROUND: ground, **own}


def halves_of_body(body: AbstractBody, halves: Halves) -> list[AbstractBody]:
    """Two bodies of half the mass and inertia, in the same place."""
    return [_half(body, name) for name in halves.names]


@functools.singledispatch
def _half(body: AbstractBody, name: str) -> AbstractBody:
    del name
    raise ValueError(
        f"body {shown(body.name)} is no rigid body of two halves; split a planar.Body or a "
        "spatial.Body."
    )


@_half.register(PlanarBody)
@_half.register(SpatialBody)
def _(body: PlanarBody | SpatialBody, name: str) -> AbstractBody:
    return _with_fields(body, name=name, mass=body.mass / 2, inertia=body.inertia / 2)


def joint_points(
    joints: Sequence[AbstractJoint], references: Mapping[str, Frame], body: str
) -> list[Float[Array, " dim"]]:
    """Points of the joints on the body, of those that have one."""
    return [
        frame.origin
        for joint in joints
        if joint.located and body in joint.bodies
        for name, frame in zip(joint.bodies, _placements(joint, references), strict=True)
        if name == body
    ]


def joint_on_halves(
    joint: AbstractJoint, references: Mapping[str, Frame], split: Mapping[str, Halves]
) -> AbstractJoint:
    """The joint at the nearer ends. One that has no point and turns alone may hold either half, as
    they turn together: it holds the first.

    **Raises:** `ValueError` that names it.
    """
    if not any(name in split for name in joint.bodies):
        return joint
    if not joint.located:
        names = (split[n].names[0] if n in split else n for n in joint.bodies)
        return _with_fields(joint, bodies=tuple(names))
    what = f"joint {shown(joint.name)}"
    return _on_halves(joint, what, _placements(joint, references), split)


def force_on_halves(
    force: AbstractForce, references: Mapping[str, Frame], split: Mapping[str, Halves]
) -> AbstractForce:
    """A force on bodies, likewise; those in joints follow their joints.

    **Raises:** `ValueError` that names it.
    """
    if not isinstance(force, AbstractBodyForce) or not any(n in split for n in force.bodies):
        return force
    return _on_halves(force, f"force {shown(force.name)}", _placements(force, references), split)


def _placements(part: Any, references: Mapping[str, Frame]) -> Sequence[Any]:
    return part.placements(tuple(references[name] for name in part.bodies))


def _on_halves(part: Any, what: str, frames: Sequence[Any], split: Mapping[str, Halves]) -> Any:
    names = [
        split[name].at(frame.origin, what) if name in split else name
        for name, frame in zip(part.bodies, frames, strict=True)
    ]
    return _with_fields(part, bodies=tuple(names))


def _with_fields(part: _Part, **fields: Any) -> _Part:
    """A copy with other fields. (Parts whose constructor takes other arguments than their fields
    are not made anew by it.)"""
    made = object.__new__(type(part))
    for name, value in (vars(part) | fields).items():
        object.__setattr__(made, name, value)
    return made
