"""Indices and names of the numbers of bodies and states."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .._bodies import AbstractBody
from .._forces import AbstractForce
from .._geometry import PlanarPose, SpatialPose
from ._structure import BodyInfo, ColumnInfo


GROUND = "ground"


class Slot(NamedTuple):
    """Indices of a body's numbers in the ground-extended state, and of the body or its parts among
    the bodies of the structure."""

    infos: tuple[int, ...]
    q: np.ndarray
    v: np.ndarray


def slots_of(
    bodies: Sequence[AbstractBody], forces: Sequence[AbstractForce], dimension: int
) -> dict[str, Slot]:
    """Slots by the names of bodies, of their frames and of forces with states."""
    slots, nq, nv, first = {}, 0, 0, 0
    for body in bodies:
        kind, parts = body.inertia_properties().coordinates, body.parts()
        stop = first + (1 if parts is None else len(parts))
        own = Slot(
            tuple(range(first, stop)), np.arange(nq, nq + kind.nq), np.arange(nv, nv + kind.nv)
        )
        slots |= {name: own for name in (body.name, *body.sites())}
        nq, nv, first = nq + kind.nq, nv + kind.nv, stop
    for force in forces:
        states = force.states()
        if states is not None:
            count = len(states.names)
            slots[states_of(force)] = Slot((), np.arange(nq, nq + count), np.zeros(0, int))
            nq += count
    ground = PlanarPose() if dimension == 2 else SpatialPose()
    slots[GROUND] = Slot((), np.arange(nq, nq + ground.nq), np.arange(nv, nv + ground.nv))
    return slots


def names_of(body: AbstractBody) -> tuple[str, ...]:
    """Names of a body; a part of it may have its own."""
    return tuple({body.name: None} | {part.name: None for part in body.parts() or ()})


def _column_name(body: AbstractBody, name: str) -> str:
    """The system's name of a coordinate or velocity of a body."""
    return f"{body.name}.{name}" if body.parts() is None else name


def coordinate_infos(body: AbstractBody) -> Iterator[ColumnInfo]:
    """The info of each coordinate of a body."""
    kind = body.inertia_properties().coordinates
    for name, quantity in zip(kind.names, kind.measures, strict=True):
        yield ColumnInfo(_column_name(body, name), quantity)


def states_of(force: AbstractForce) -> str:
    """The key of a force's states among the slots; no body can have this name."""
    return f".{force.name}"


def state_infos(force: AbstractForce) -> Iterator[ColumnInfo]:
    """The info of each state of a force."""
    states = force.states()
    if states is not None:
        for name, quantity in zip(states.names, states.quantities, strict=True):
            yield ColumnInfo(f"{force.name}.{name}", quantity)


def velocity_infos(body: AbstractBody) -> Iterator[ColumnInfo]:
    """The info of each velocity of a body."""
    kind = body.inertia_properties().coordinates
    for name, quantity in zip(kind.velocity_names, kind.quantities, strict=True):
        yield ColumnInfo(_column_name(body, name), quantity)


def body_infos(body: AbstractBody, slot: Slot) -> Iterator[BodyInfo]:
    """The info of the body or of each of its parts; the coordinates of parts are in the order of
    their velocities."""
    kind, parts = body.inertia_properties().coordinates, body.parts()
    if parts is None:
        columns, (linear, angular) = tuple(slot.v.tolist()), kind.frame
        force, torque = columns[:linear], columns[linear : linear + angular]
        yield BodyInfo(body.name, kind.posed, columns, force, torque, tuple(slot.q.tolist()))
    for part in parts or ():
        force, torque = (tuple(slot.v[[*own]].tolist()) for own in (part.force, part.torque))
        coordinates = tuple(slot.q[[*part.force, *part.torque]].tolist())
        yield BodyInfo(part.name, False, (*force, *torque), force, torque, coordinates)


def quaternions_of(
    bodies: Sequence[AbstractBody], slots: dict[str, Slot]
) -> tuple[tuple[int, ...], ...]:
    """Indices of each quaternion in q."""
    return tuple(
        tuple(slots[body.name].q[list(places)].tolist())
        for body in bodies
        for places in body.inertia_properties().coordinates.quaternions
    )


def slot_indices(
    bodies: Sequence[tuple[str, ...]], slots: dict[str, Slot]
) -> dict[str, np.ndarray]:
    """`q{k}` and `v{k}`: indices of the k-th body of each part of a group."""
    indices = {}
    for k in range(len(bodies[0])):
        indices[f"q{k}"] = np.stack([slots[names[k]].q for names in bodies])
        indices[f"v{k}"] = np.stack([slots[names[k]].v for names in bodies])
    return indices
