"""Joints of fewer rows in the places of others."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._constraints import AbstractJoint, Release
from .._indices import Indices
from ._groups import ConstraintGroup, map_parts
from .base import ReleaseOption


def row_count(group: ConstraintGroup) -> int:
    """Number of rows of all joints of a group."""
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


def released_options(
    released: Sequence[tuple[ConstraintGroup, type[AbstractJoint], Release]],
    matrix: Float[Array, "rows nv"],
    frames: Sequence[Float[Array, "_ dim dim"]],
) -> list[ReleaseOption]:
    """One for each joint of the groups, from the rows of C of all of them, and the axes of each
    one's last marker."""
    options = []
    # Indexed one by one, arrays of JAX are a small program each.
    every_row, axes = np.asarray(matrix), [np.asarray(x) for x in frames]
    for (group, joint, release), rotations in zip(released, axes, strict=True):
        size = group.indices["order"].shape[0]
        for i, name in enumerate(group.names):
            axis = None
            if release.axis is not None:
                # Adding zero turns a printed -0 into 0.
                column = rotations[i, :, release.axis].round(12) + 0.0
                axis = tuple(column.tolist())
            first = group.indices["row"][i]
            rows = every_row[first : first + size]
            options.append(ReleaseOption(name, joint.kind, release.kind, axis, rows))
    return options
