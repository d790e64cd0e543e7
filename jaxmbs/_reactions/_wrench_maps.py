"""Maps from multipliers to forces and torques at points.

A joint's generalized reaction C_X^T lambda_X acts on a body as minus its force and torque about the
origin of the body's coordinates: linear velocities are in world axes, angular ones in body axes.
Moved to the joint's point, each is a matrix on lambda_X. Where a body's coordinates do not define a
frame of its own, the matrix is the change of the rows by displacements of the marker.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._system._places import Attachments, moments, PlaceLayout


class WrenchMaps(eqx.Module):
    """`force` (places, dim, width), `torque` (places, 1 or 3, width): times lambda_X the force
    (N), and the torque (N m) about the place's point, on its body; world axes."""

    force: Float[Array, "places dim width"]
    torque: Float[Array, "places turns width"]

    def of(
        self, multipliers: Float[Array, " rows"], layout: PlaceLayout
    ) -> tuple[Float[Array, "places dim"], Float[Array, "places turns"]]:
        """Force and torque of each place, from lambda."""
        own = jnp.append(multipliers, 0.0)[layout.indices["rows"]]
        force = jnp.einsum("pir,pr->pi", self.force, own)
        return force, jnp.einsum("pir,pr->pi", self.torque, own)


def wrench_maps(places: Attachments, matrix: Float[Array, "rows nv"]) -> WrenchMaps:
    """Maps from C. The wrench on the ground balances those of the constraint on its other
    bodies."""
    indices = places.layout.indices
    count, dim = places.point.shape
    if count == 0:
        return WrenchMaps(jnp.zeros((0, 0, 0)), jnp.zeros((0, 0, 0)))
    padded = jnp.pad(matrix, ((0, 1), (0, 1)))
    columns = indices["columns"][:, :, None]
    generalized = -padded[indices["rows"][:, None, :], columns]
    force, torque = generalized[:, :dim], generalized[:, dim:]
    if dim == 3:
        torque = jnp.einsum("pij,pjr->pir", places.body_axes, torque)
    torque = torque + jax.vmap(moments)(places.origin - places.point, force)
    if indices["unposed"].size:
        force = force.at[indices["unposed"]].set(-places.unposed[:, :dim])
        torque = torque.at[indices["unposed"]].set(-places.unposed[:, dim:])
    # What acts on the ground has no columns: it is zero up to here.
    ground = indices["ground"]
    of_ground = jnp.concatenate([places.point, jnp.zeros((1, dim), matrix.dtype)])[ground]
    moved = torque + jax.vmap(moments)(places.point - of_ground, force)

    def balanced(x: Float[Array, "places n width"], there: Float[Array, "places n width"]):
        return x - jnp.zeros((count + 1, *x.shape[1:]), x.dtype).at[ground].add(there)[:-1]

    return WrenchMaps(balanced(force, force), balanced(torque, moved))
