import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ._text import vector, verdict, verdict_of_states


class Wrench(eqx.Module):
    """What one joint or driver exerts on one body.

    - `force` (dim,) N; `torque` () in the plane, (3,) in space, N m, about `point`; along
      `axes`.
    - `point` (dim,): the joint's point on the body (m, world).
    - `force_unique`, `torque_unique`: the verdict of each component.
    - `unique`: the verdict of the joint's whole reaction, that of `analyze`.

    A batch has its axes in front of these.
    """

    force: Float[Array, "*batch dim"]
    torque: Float[Array, "..."]
    point: Float[Array, "*batch dim"]
    force_unique: Bool[Array, "*batch dim"]
    torque_unique: Bool[Array, "..."]
    unique: Bool[Array, "*batch"]
    name: str = eqx.field(static=True)
    body: str = eqx.field(static=True)
    axes: str = eqx.field(static=True)

    @property
    def determined(self) -> Bool[Array, "*batch"]:
        """Is nothing of it one of many?"""
        torque = self.torque_unique.reshape(*self.unique.shape, -1)
        return self.unique & jnp.all(self.force_unique, axis=-1) & jnp.all(torque, axis=-1)

    def __str__(self) -> str:
        if self.unique.ndim:
            found = verdict_of_states(self.determined)
            return f"{self.name} on {self.body} in {self.unique.size} states - {found}"
        found = verdict(self.unique, self.force_unique, self.torque_unique)
        return (
            f"{self.name} on {self.body}, {self.axes} axes: force {vector(self.force)} N, torque "
            f"{vector(self.torque)} N m about {vector(self.point, 1.0)} m - {found}"
        )
