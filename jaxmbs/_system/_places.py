"""Points and axes at which constraints act, for every constraint and each of its bodies."""

import collections
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._bodies import AbstractMarker
from .._constraints import AbstractPrimitive, Frames
from .._constraints._primitives import _steepest_descent, NoSlip
from .._custom_types import Indices, Scalar
from .._geometry import PlanarFrame, SpatialFrame
from ._groups import blocks, ConstraintGroup, map_parts, of_markers, Primitives, rates_of
from ._structure import Structure


class PlaceLayout(NamedTuple):
    """Owner of each place: the (index of the) constraint, and its name of the body (`bodies`, "bar"
    or "bar.A"), in row order and within a constraint in the order of its bodies; `owners`: the
    body's own name ("bar"). For each constraint the place on its second body (its only one).
    `ground`: the fixed frame's name.

    A constraint on coordinates has no place (its second is -1).

    Indices: `rows` (places, width) of the place's constraint, padded with the number of rows;
    `columns` (places, 3 or 6) of the frame that the place's body begins with, linear first, padded
    with nv where it has none; `ground` (places,) the same constraint's place on the ground, padded
    with the number of places; `unposed` (n,) the places whose wrench C does not determine: on
    bodies whose velocities do not begin with those of a frame, and on one that the constraint holds
    at several sites, where C has the sum of their wrenches.
    """

    constraints: tuple[int, ...]
    bodies: tuple[str, ...]
    owners: tuple[str, ...]
    seconds: tuple[int, ...]
    ground: str
    indices: Indices

    def places_on(self, body: str) -> tuple[int, ...]:
        """The places on a body, or at the frame of that name alone. A body whose own name is also
        that of one of its frames is meant as a whole."""
        names = self.owners if body in self.owners else self.bodies
        return tuple(k for k, name in enumerate(names) if name == body)


class Attachments(eqx.Module):
    """Points where each constraint acts on each of its bodies, in the world.

    - `point` (places, dim): the constraint's point on the body (m): its marker there, the first of
      them if it acts on a body twice; for a rolling disk the point of contact.
    - `origin` (places, dim): to which the body's linear velocity refers (its centre of mass).
    - `body_axes`, `marker_axes` (places, dim, dim): as columns.
    - `unposed` (n, 3 or 6, width): for the places of that name the change of the constraint's rows
      by translations along the world's axes, and rotations about the place's point.
    """

    point: Float[Array, "places dim"]
    origin: Float[Array, "places dim"]
    body_axes: Float[Array, "places dim dim"]
    marker_axes: Float[Array, "places dim dim"]
    unposed: Float[Array, "n motions width"]
    layout: PlaceLayout = eqx.field(static=True)


def no_places(structure: Structure) -> Attachments:
    """The attachments of a system whose coordinates do not locate points."""
    none = np.zeros((0, 0), dtype=int)
    indices = Indices(rows=none, columns=none, ground=none.ravel(), unposed=none.ravel())
    seconds = (-1,) * len(structure.constraints)
    layout = PlaceLayout((), (), (), seconds, "", indices)
    axes = jnp.zeros((0, 0, 0))
    return Attachments(jnp.zeros((0, 0)), jnp.zeros((0, 0)), axes, axes, axes, layout)


def places_of(
    groups: Sequence[ConstraintGroup],
    structure: Structure,
    ground: str,
    q: Float[Array, " extended_q"],
    v: Float[Array, " extended_v"],
    t: Scalar,
) -> Attachments:
    """The places of all constraints from the ground-extended state."""
    located = [group for group in groups if all(m.located for m in group.markers)]
    if not located:
        return no_places(structure)
    parts = []
    for group, seen in zip(located, of_markers(_seen, located, q), strict=True):
        slots = map_parts(_slots, group.primitives, seen)
        parts.append([x.reshape(-1, *x.shape[2:]) for x in slots])
    motions = 3 if parts[0][0].shape[1] == 2 else 6
    layout, slots = _layout(located, structure, ground, motions)
    first = np.array([own[0] for own in slots])
    point, origin, body_axes, marker_axes = (
        jnp.concatenate(x)[first] for x in zip(*parts, strict=True)
    )
    unposed = _unposed(located, layout, slots, point, (q, v, t))
    return Attachments(point, origin, body_axes, marker_axes, unposed, layout)


def _unposed(
    groups: Sequence[ConstraintGroup],
    layout: PlaceLayout,
    slots: Sequence[Sequence[int]],
    point: Float[Array, "places dim"],
    state: tuple[Float[Array, " extended_q"], Float[Array, " extended_v"], Scalar],
) -> Float[Array, "n motions width"]:
    """`Attachments.unposed`; of a place on which a constraint has several markers the sum."""
    q, v, t = state
    width, dim = layout.indices["rows"].shape[1], point.shape[1]
    motions, places = layout.indices["columns"].shape[1], layout.indices["unposed"]
    if not places.size:
        return jnp.zeros((0, motions, width), q.dtype)
    blocks, origins = [], []
    for group, (frames, rates) in zip(groups, rates_of(groups, q, v), strict=True):
        found = map_parts(rows_by_displacements, group.primitives, frames, rates, shared=(t,))
        own = jnp.stack([x[:, group.indices["order"]] for x in found], axis=1)
        missing = ((0, 0), (0, 0), (0, width - own.shape[2]), (0, 0))
        blocks.append(jnp.pad(own, missing).reshape(-1, width, motions))
        origins.append(jnp.stack([frame.origin for frame in frames], axis=1).reshape(-1, dim))
    block, origin = jnp.concatenate(blocks), jnp.concatenate(origins)
    counts = np.array([len(slots[place]) for place in places])
    own_slots = _padded([slots[place] for place in places], 0)
    held = np.arange(own_slots.shape[1]) < counts[:, None]
    own = jnp.swapaxes(block[own_slots], -2, -1)
    arms = origin[own_slots] - point[places][:, None]
    linear = own[..., :dim, :]
    turning = own[..., dim:, :] + jax.vmap(jax.vmap(moments))(arms, linear)
    changes = jnp.concatenate([linear, turning], axis=-2)
    return jnp.sum(jnp.where(held[..., None, None], changes, 0.0), axis=1)


def rows_by_displacements(
    primitives: Primitives, frames: Frames, rates: Frames, t: Scalar
) -> tuple[Float[Array, "rows motions"], ...]:
    """Derivative of the rows by displacements of the marker of each slot."""
    changes = tuple(frame.displacements() for frame in frames)
    return blocks(primitives, frames, changes, rates, t)


def moments(
    arm: Float[Array, " dim"], force: Float[Array, "dim width"]
) -> Float[Array, "turns width"]:
    """Moments arm x force: a number in the plane, a vector in space."""
    if arm.shape[0] == 2:
        return (arm[0] * force[1] - arm[1] * force[0])[None]
    return jnp.cross(arm[:, None], force, axis=0)


class _Seen(NamedTuple):
    """A marker's frame, and its body's."""

    frame: PlanarFrame | SpatialFrame
    body: PlanarFrame | SpatialFrame


def _seen(marker: AbstractMarker, q: Float[Array, " nq"]) -> _Seen:
    frame: Any = marker.frame(q)
    body: Any = marker.body_frame(q)
    return _Seen(frame, body)


def _slots(
    primitives: Primitives, seen: tuple[_Seen, ...]
) -> tuple[Float[Array, "slots ..."], ...]:
    """`point`, `origin`, `body_axes` and `marker_axes` of each slot of one joint."""
    slots = [
        (
            own.frame.origin
            + sum((_lever_arm(p, own.frame) for p in primitives), jnp.zeros_like(own.body.origin)),
            own.body.origin,
            own.body.rotation,
            own.frame.rotation,
        )
        for own in seen
    ]
    return tuple(jnp.stack(parts) for parts in zip(*slots, strict=True))


@functools.singledispatch
def _lever_arm(
    primitive: AbstractPrimitive, frame: PlanarFrame | SpatialFrame
) -> Float[Array, " dim"]:
    """Vector from a marker to the joint's point (m, world): zero, ..."""
    del primitive
    return jnp.zeros_like(frame.origin)


@_lever_arm.register(NoSlip)
def _(primitive: NoSlip, frame: SpatialFrame) -> Float[Array, " dim"]:
    """... save where a disk touches the ground (the length of this is its `lever_arm`)."""
    return primitive.radius * _steepest_descent(frame.rotation[:, 2])


def _layout(
    groups: Sequence[ConstraintGroup], structure: Structure, ground: str, motions: int
) -> tuple[PlaceLayout, list[list[int]]]:
    """The layout, and which slots (group after group, joint after joint) each place is made of."""
    infos = structure.constraints
    index = {name: i for i, name in enumerate(structure.constraint_names)}
    slots = [
        (index[name], k, bodies[k], _frame_columns(marker, group.indices[f"v{k}"][i]))
        for group in groups
        for i, (name, bodies) in enumerate(zip(group.names, group.bodies, strict=True))
        for k, marker in enumerate(group.markers)
    ]
    found: dict[tuple[int, str], list[int]] = {}
    second: dict[int, str] = {}
    for s in sorted(range(len(slots)), key=lambda s: slots[s][:2]):
        constraint, k, body, _ = slots[s]
        found.setdefault((constraint, body), []).append(s)
        if k <= 1:
            second[constraint] = body
    keys = {key: i for i, key in enumerate(found)}
    owners = [structure.owner(body) for _, body in found]
    held = collections.Counter((c, owner) for (c, _), owner in zip(found, owners, strict=True))
    columns = [slots[own[0]][3] for own in found.values()]
    posed = np.array(
        [
            len(own) > 0 and held[c, owner] == 1
            for (c, _), owner, own in zip(found, owners, columns, strict=True)
        ]
    )
    layout = PlaceLayout(
        constraints=tuple(c for c, _ in keys),
        bodies=tuple(body for _, body in keys),
        owners=tuple(owners),
        seconds=tuple(keys[c, second[c]] if c in second else -1 for c in range(len(infos))),
        ground=ground,
        indices=Indices(
            rows=_padded(
                [range(infos[c].start, infos[c].stop) for c, _ in keys], len(structure.rows)
            ),
            columns=_padded(
                [
                    # Those of the ground follow the last one, and are zero.
                    [min(c, structure.nv) for c in own] if alone else []
                    for own, alone in zip(columns, posed, strict=True)
                ],
                structure.nv,
                motions,
            ),
            ground=np.array([keys.get((c, ground), len(keys)) for c, _ in keys]),
            unposed=np.flatnonzero(~posed),
        ),
    )
    return layout, list(found.values())


def _frame_columns(marker: AbstractMarker, columns: np.ndarray) -> list[int]:
    """Among a body's columns those of the frame that its velocities begin with."""
    return columns[: sum(marker.coordinates.frame)].tolist()


def _padded(lists: Sequence[Sequence[int]], fill: int, least: int = 0) -> np.ndarray:
    padded = np.full((len(lists), max(least, *map(len, lists))), fill, dtype=int)
    for i, entries in enumerate(lists):
        padded[i, : len(entries)] = entries
    return padded
