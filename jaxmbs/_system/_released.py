"""Joints of fewer rows in the places of others."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._constraints import Release
from .._indices import Indices
from ._groups import ConstraintGroup, map_parts


def row_count(group: ConstraintGroup) -> int:
    """How many rows all joints of a group have."""
    return len(group.names) * group.indices["order"].shape[0]


def released_group(group: ConstraintGroup, release: Release, start: int) -> ConstraintGroup:
    """The group with the release's joints in the places of its own, rows from `start` on."""
    count = len(group.names)
    size = sum(len(p.rows) for p in release.primitives)
    markers = group.markers
    if release.turns is not None:
        markers = tuple(
            map_parts(lambda m, turn=turn: m.turned(jnp.asarray(turn)), marker)
            for marker, turn in zip(markers, release.turns, strict=True)
        )
    primitives = jax.tree.map(
        lambda x: jnp.broadcast_to(x, (count, *x.shape)) if eqx.is_array(x) else x,
        release.primitives,
    )
    slots = {
        f"{letter}{k}": group.indices[f"{letter}{k}"]
        for letter in "qv"
        for k in range(len(markers))
    }
    indices = Indices(
        row=start + np.arange(count) * size,
        order=np.arange(size),
        located=group.indices["located"],
        **slots,
    )
    return ConstraintGroup(primitives, markers, indices, group.names, group.bodies, group.joint)
