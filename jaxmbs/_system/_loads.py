"""Generalized forces and stored energy of the forces, all kinds together.

A load gives wrenches on marker frames; the transpose of the map from v to the markers' twists
makes generalized forces of them. Friction differs in what it sees besides: the force that the
joint's own rows exert, from their multipliers.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._bodies import AbstractMarker
from .._constraints import AbstractPrimitive, Frames, Twists
from .._custom_types import Scalar
from .._forces import AbstractLoad
from .._linalg import placed, taken
from ._groups import (
    ForceGroup,
    frames_and_twists,
    FrictionGroup,
    map_parts,
    slot_coordinates,
    slot_velocities,
    Vectors,
)


def generalized_loads(
    groups: Sequence[ForceGroup],
    q: Float[Array, " extended_q"],
    v: Float[Array, " extended_v"],
    t: Scalar,
) -> Float[Array, " extended_v"]:
    """The generalized force of all loads, from the ground-extended state."""
    forces = []
    for group in groups:
        parts = (group.load, group.markers)
        slots = (slot_coordinates(group, q), slot_velocities(group, v))
        forces.append(map_parts(_load, parts, *slots, shared=(t,)))
    return _total(groups, forces, v)


def generalized_friction(
    groups: Sequence[FrictionGroup],
    q: Float[Array, " extended_q"],
    v: Float[Array, " extended_v"],
    t: Scalar,
    multipliers: Float[Array, " rows"],
) -> Float[Array, " extended_v"]:
    """The generalized friction force of all joints, from the ground-extended state."""
    forces = []
    for group in groups:
        parts = (group.law, group.primitives, group.markers)
        slots = (slot_coordinates(group, q), slot_velocities(group, v))
        own = taken(multipliers, group.indices["rows"])
        forces.append(map_parts(_friction, parts, *slots, own, shared=(t,)))
    return _total(groups, forces, v)


def stored_energy(groups: Sequence[ForceGroup], q: Float[Array, " extended_q"]) -> Scalar:
    """The potential energy of all loads."""
    total = jnp.zeros((), q.dtype)
    for group in groups:
        parts = (group.load, group.markers)
        total = total + jnp.sum(map_parts(_potential, parts, slot_coordinates(group, q)))
    return total


def _total(
    groups: Sequence[ForceGroup | FrictionGroup],
    forces: Sequence[Vectors],
    v: Float[Array, " extended_v"],
) -> Float[Array, " extended_v"]:
    """The sum of what each part of a group exerts on each of its slots."""
    if not groups:
        return jnp.zeros_like(v)
    parts = [force for own in forces for force in own]
    places = [g.indices[f"v{k}"] for g in groups for k in range(len(g.markers))]
    return placed(parts, places, len(v))


# The functions below see ONE force.


def _load(
    part: tuple[AbstractLoad, tuple[AbstractMarker, ...]], qs: Vectors, vs: Vectors, t: Scalar
) -> Vectors:
    load, markers = part
    frames, twists, transpose = _motion(markers, qs, vs)
    return transpose(load.wrenches(frames, twists, t))


def _friction(part: Any, qs: Vectors, vs: Vectors, own: Float[Array, " n"], t: Scalar) -> Vectors:
    law, primitives, markers = part
    frames, twists, transpose = _motion(markers, qs, vs)
    force = _force_on_second(primitives, frames, own, t)
    return transpose(law.wrenches(frames, twists, force))


def _potential(
    part: tuple[AbstractLoad, tuple[AbstractMarker, ...]], qs: Vectors
) -> Float[Array, ""]:
    load, markers = part
    return load.potential(tuple(m.frame(q) for m, q in zip(markers, qs, strict=True)))


def _motion(
    markers: tuple[AbstractMarker, ...], qs: Vectors, vs: Vectors
) -> tuple[Frames, Twists, Callable[[Twists], Vectors]]:
    """Frames and twists of the markers, and the transpose of the map from v to the twists: from
    wrenches to the generalized force on each slot."""

    def moving(v: Vectors) -> tuple[Twists, Frames]:
        frames, twists = frames_and_twists(markers, qs, v)
        return twists, frames

    twists, transpose, frames = jax.vjp(moving, vs, has_aux=True)
    return frames, twists, lambda wrenches: transpose(wrenches)[0]


def _force_on_second(
    primitives: tuple[AbstractPrimitive, ...],
    frames: Frames,
    multipliers: Float[Array, " n"],
    t: Scalar,
) -> Float[Array, " dim"]:
    """The force (N, world axes) of geometric rows on the second body: the virtual work
    -lambda . dPhi of a displacement of its marker, all else fixed."""
    first, second = frames

    def residual(origin: Float[Array, " dim"]) -> Float[Array, " n"]:
        moved = eqx.tree_at(lambda frame: frame.origin, second, origin)
        return jnp.concatenate([p.position((first, moved), t) for p in primitives])

    _, transpose = jax.vjp(residual, second.origin)
    return transpose(-multipliers)[0]
