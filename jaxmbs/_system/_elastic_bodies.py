"""Bodies that deform by modes, and what constraints and forces exert on them."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._bodies import ModalElasticity
from .._custom_types import Scalar
from ._groups import BodyGroup, ConstraintGroup, ForceGroup, map_parts
from ._loads import wrenches_of
from ._markers import frames_of
from ._structure import Structure


class _Pushed(NamedTuple):
    """Forces (N, world) at points of bodies (m), which are known by their first columns."""

    columns: Int[np.ndarray, " n"]
    forces: Float[Array, "n 3"]
    points: Float[Array, "n 3"]


def elasticities(
    groups: Sequence[BodyGroup], structure: Structure
) -> tuple[tuple[ModalElasticity, tuple[int, ...]], ...]:
    """Elasticities of the bodies that deform by modes, stacked by kind, each with the indices of
    its bodies."""
    place = {body.columns[0]: k for k, body in enumerate(structure.bodies) if body.columns}
    found = []
    for group in groups:
        if group.inertia.deforms:
            bodies = tuple(place[k] for k in group.indices["v"][:, 0].tolist())
            stacked = map_parts(lambda inertia: inertia.elasticity(), group.inertia)
            found.append((stacked, bodies))
    return tuple(found)


def body_loads(
    system: Any,
    bodies: tuple[int, ...],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    multipliers: Float[Array, " rows"],
) -> tuple[Float[Array, "bodies 3"], Float[Array, "bodies 3 3"]]:
    """`AbstractSystem.body_loads` of a `MultibodySystem`."""
    infos = [system.structure.bodies[k] for k in bodies]
    columns = np.array([info.columns[0] for info in infos], int)
    origins = q[np.array([info.coordinates[:3] for info in infos], int)]
    state, matrix = (*system._with_ground(q, v), t), system.constraint_matrix(q, v, t)
    total = jnp.zeros_like(origins)
    moment = jnp.zeros((*origins.shape, 3), origins.dtype)
    on_joints = _of_constraints(system.constraint_groups, state[0], matrix, multipliers)
    for pushed in (*on_joints, *_of_forces(system.force_groups, state)):
        own = np.asarray(pushed.columns[:, None] == columns[None], float)
        if own.any():
            arms = pushed.points[:, None] - origins[None]
            total = total + own.T @ pushed.forces
            moment = moment + jnp.einsum("nk,na,nkb->kab", own, pushed.forces, arms)
    return total, moment


def _of_constraints(
    groups: Sequence[ConstraintGroup],
    q: Float[Array, " extended_q"],
    matrix: Float[Array, "rows nv"],
    multipliers: Float[Array, " rows"],
) -> Iterator[_Pushed]:
    for group, frames in zip(groups, frames_of(groups, q), strict=True):
        rows = group.indices["row"][:, None] + np.arange(len(group.indices["order"]))
        for k, (marker, frame) in enumerate(zip(group.markers, frames, strict=True)):
            own = group.indices[f"v{k}"]
            if marker.located and own.shape[1] >= 3 and own.max() < matrix.shape[1]:
                blocks = matrix[rows[:, :, None], own[:, None, :3]]
                force = -jnp.einsum("nr,nra->na", multipliers[rows], blocks)
                yield _Pushed(own[:, 0], force, frame.origin)


def _of_forces(
    groups: Sequence[ForceGroup],
    state: tuple[Float[Array, " extended_q"], Float[Array, " extended_v"], Scalar],
) -> Iterator[_Pushed]:
    frames = frames_of(groups, state[0])
    wrenches = wrenches_of(groups, *state) if groups else []
    for group, own, exerted in zip(groups, frames, wrenches, strict=True):
        for k, marker in enumerate(group.markers):
            if marker.located and group.indices[f"v{k}"].shape[1]:
                first = group.indices[f"v{k}"][:, 0]
                yield _Pushed(first, exerted[k].linear, own[k].origin)
