from collections.abc import Sequence
from typing import Annotated

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from .._verdict import Verdict
from ._text import vector, verdict, verdict_of_states


class Wrench(eqx.Module):
    """Force and torque of one joint or driver on one body.

    - `force` (dim,) N; `torque` () in the plane, (3,) in space, N m, about `point`; along
      `axes`.
    - `point` (dim,): the joint's point on the body (m, world). `arm`: its distance (m) from the
      body's centre of mass (of the ground: from the world's origin).
    - `force_unique`, `torque_unique`: the verdict of each component.
    - `unique`: the verdict of the joint's whole reaction, that of `analyze`.

    A batch has its axes in front of these.
    """

    force: Float[Array, "*batch dim"] | Float[np.ndarray, "*batch dim"]
    torque: Float[Array, "..."] | Float[np.ndarray, "..."]
    point: Float[Array, "*batch dim"] | Float[np.ndarray, "*batch dim"]
    arm: Float[Array, "*batch"] | Float[np.ndarray, "*batch"]
    force_unique: Annotated[Verdict, "*batch dim"]
    torque_unique: Annotated[Verdict, "..."]
    unique: Annotated[Verdict, "*batch"]
    name: str = eqx.field(static=True)
    body: str = eqx.field(static=True)
    axes: str = eqx.field(static=True)

    @property
    def determined(self) -> Verdict:
        """Is nothing of it one of many?"""
        torque = self.torque_unique.reshape(*self.unique.shape, -1)
        return self.unique & self.force_unique.all(axis=-1) & torque.all(axis=-1)

    def __str__(self) -> str:
        if self.unique.ndim:
            found = verdict_of_states(self.determined)
            return f"{self.name} on {self.body} in {self.unique.size} states - {found}"
        found = verdict(self.unique, self.force_unique, self.torque_unique)
        force, torque = largest([self])
        return (
            f"{self.name} on {self.body}, {self.axes} axes: force {vector(self.force, force)} N, "
            f"torque {vector(self.torque, torque)} N m about {vector(self.point, 1.0)} m - {found}"
        )


def largest(wrenches: Sequence[Wrench]) -> tuple[float, float]:
    """The force (N) and the torque (N m) relative to which others count as rounding."""
    force = max((_most(w.force) for w in wrenches), default=0.0)
    torque = max((_most(w.torque) for w in wrenches), default=0.0)
    arm = max((_most(w.arm) for w in wrenches), default=0.0)
    return rounding_scales(force, torque, arm)


def rounding_scales(force: float, torque: float, arm: float) -> tuple[float, float]:
    """`largest`, from the largest force, torque and arm.

    All come from one solution, whose error goes with the largest of them. A torque about the
    joint's point is the moment about the centre of mass less that of the force along `arm`: where
    the two cancel, what is left of them has the size of force * arm / 1e16, however small all
    torques are; and so for forces, the other way round.
    """
    return max(force, torque / arm if arm > 0 else 0.0), max(torque, force * arm)


def _most(numbers: Float[Array, "..."] | Float[np.ndarray, "..."]) -> float:
    return float(np.max(np.abs(np.asarray(numbers)), initial=0.0))
