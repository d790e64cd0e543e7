"""Where constraints act on bodies: points and axes, for every constraint and each of its bodies."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._bodies import AbstractMarker
from .._constraints import AbstractPrimitive
from .._constraints._primitives import NoSlip
from .._constraints._primitives._velocity import _steepest_descent
from .._geometry import PlanarFrame, SpatialFrame
from .._indices import Indices
from ._groups import ConstraintGroup, map_parts, Primitives
from ._markers import of_markers
from ._structure import Structure


class PlaceLayout(NamedTuple):
    """Which place is whose: the (index of the) constraint and the name of the body of each, in
    row order and within a constraint in the order of its bodies; for each constraint the place
    on its second body (its only one). `ground`: the fixed frame's name.

    Indices: `rows` (places, width) of the place's constraint, padded with the number of rows;
    `columns` (places, 3 or 6) of the place's body, linear first, padded with nv where it has
    none; `ground` (places,) the same constraint's place on the ground, padded with the number
    of places.
    """

    constraints: tuple[int, ...]
    bodies: tuple[str, ...]
    seconds: tuple[int, ...]
    ground: str
    indices: Indices


class Attachments(eqx.Module):
    """Where each constraint acts on each of its bodies, in the world.

    - `point` (places, dim): the constraint's point on the body (m): its marker there, the first
      of them if it sees a body twice; for a rolling disk the point of contact.
    - `origin` (places, dim): to which the body's linear velocity refers (its centre of mass).
    - `body_axes`, `marker_axes` (places, dim, dim): as columns.
    """

    point: Float[Array, "places dim"]
    origin: Float[Array, "places dim"]
    body_axes: Float[Array, "places dim dim"]
    marker_axes: Float[Array, "places dim dim"]
    layout: PlaceLayout = eqx.field(static=True)


def no_places(structure: Structure) -> Attachments:
    """Of a system whose coordinates say nothing about points."""
    none = np.zeros((0, 0), dtype=int)
    indices = Indices(rows=none, columns=none, ground=none.ravel())
    seconds = (-1,) * len(structure.constraints)
    layout = PlaceLayout((), (), seconds, "", indices)
    axes = jnp.zeros((0, 0, 0))
    return Attachments(jnp.zeros((0, 0)), jnp.zeros((0, 0)), axes, axes, layout)


def places_of(
    groups: Sequence[ConstraintGroup],
    structure: Structure,
    ground: str,
    q: Float[Array, " extended_q"],
) -> Attachments:
    """The places of all constraints from the ground-extended coordinates."""
    if not groups:
        return no_places(structure)
    parts = []
    for group, seen in zip(groups, of_markers(_seen, groups, q), strict=True):
        slots = map_parts(_slots, group.primitives, seen)
        parts.append([x.reshape(-1, *x.shape[2:]) for x in slots])
    layout, first = _layout(groups, structure, ground)
    point, origin, body_axes, marker_axes = (
        jnp.concatenate(x)[first] for x in zip(*parts, strict=True)
    )
    return Attachments(point, origin, body_axes, marker_axes, layout)


class _Seen(NamedTuple):
    """A marker's frame; its body's origin and axes."""

    frame: PlanarFrame | SpatialFrame
    origin: Float[Array, " dim"]
    body_axes: Float[Array, "dim dim"]


def _seen(marker: AbstractMarker, q: Float[Array, " nq"]) -> _Seen:
    """Where the body's axes are the world's, the marker's are those in which it lies on it."""
    frame = marker.frame(q)
    on_body = marker.frame(jnp.asarray(marker.coordinates.origin, q.dtype))
    return _Seen(frame, q[: frame.origin.shape[0]], frame.rotation @ on_body.rotation.T)


def _slots(
    primitives: Primitives, seen: tuple[_Seen, ...]
) -> tuple[Float[Array, "slots ..."], ...]:
    """`point`, `origin`, `body_axes` and `marker_axes` of each slot of one joint."""
    slots = [
        (
            own.frame.origin
            + sum((_lever_arm(p, own.frame) for p in primitives), jnp.zeros_like(own.origin)),
            own.origin,
            own.body_axes,
            own.frame.rotation,
        )
        for own in seen
    ]
    return tuple(jnp.stack(parts) for parts in zip(*slots, strict=True))


@functools.singledispatch
def _lever_arm(
    primitive: AbstractPrimitive, frame: PlanarFrame | SpatialFrame
) -> Float[Array, " dim"]:
    """From a marker to the joint's point (m, world): the same point, ..."""
    del primitive
    return jnp.zeros_like(frame.origin)


@_lever_arm.register(NoSlip)
def _(primitive: NoSlip, frame: SpatialFrame) -> Float[Array, " dim"]:
    """... save where a disk touches the ground (the length of this is its `lever_arm`)."""
    return primitive.radius * _steepest_descent(frame.rotation[:, 2])


def _layout(
    groups: Sequence[ConstraintGroup], structure: Structure, ground: str
) -> tuple[PlaceLayout, np.ndarray]:
    """The layout, and which slot (group after group, joint after joint) each place is."""
    bodies = {b.name: (*b.force, *b.torque) for b in structure.bodies}
    body_of = {column: name for name, columns in bodies.items() for column in columns}
    index = {name: i for i, name in enumerate(structure.constraint_names)}
    slots = [
        (index[name], k, body_of.get(int(group.indices[f"v{k}"][i, 0]), ground))
        for group in groups
        for i, name in enumerate(group.names)
        for k in range(len(group.markers))
    ]
    first: dict[tuple[int, str], int] = {}
    second: dict[int, str] = {}
    for s in sorted(range(len(slots)), key=slots.__getitem__):
        constraint, k, body = slots[s]
        first.setdefault((constraint, body), s)
        if k <= 1:
            second[constraint] = body
    keys = {key: i for i, key in enumerate(first)}
    infos = structure.constraints
    layout = PlaceLayout(
        constraints=tuple(c for c, _ in keys),
        bodies=tuple(body for _, body in keys),
        seconds=tuple(keys[c, second[c]] for c in range(len(infos))),
        ground=ground,
        indices=Indices(
            rows=_padded(
                [range(infos[c].start, infos[c].stop) for c, _ in keys], len(structure.rows)
            ),
            columns=_padded([bodies.get(body, ()) for _, body in keys], structure.nv),
            ground=np.array([keys.get((c, ground), len(keys)) for c, _ in keys]),
        ),
    )
    return layout, np.array(list(first.values()))


def _padded(lists: Sequence[Sequence[int]], fill: int) -> np.ndarray:
    padded = np.full((len(lists), max(map(len, lists))), fill, dtype=int)
    for i, entries in enumerate(lists):
        padded[i, : len(entries)] = entries
    return padded
