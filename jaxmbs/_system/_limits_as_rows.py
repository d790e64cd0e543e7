"""Rigid limits: stops of joints and one-sided rows as rows that are switched on and off."""

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._constraints import opens, RowKind, Switched, switched
from .._custom_types import Indices
from .._forces import JointStop, StopLoad, StopRows
from .._linalg import gather, Pattern
from ._blocks import pattern_of
from ._building import row_orders
from ._groups import BodyGroup, ConstraintGroup, ElementGroup, ForceGroup
from ._structure import ConstraintInfo, RowInfo, Structure


# What a stop is called where a joint has its name.
_SUFFIX = " (stop)"


def switched_groups(
    groups: Sequence[ConstraintGroup], forces: Sequence[ForceGroup], structure: Structure
) -> tuple[tuple[ConstraintGroup, ...], tuple[ForceGroup, ...], Structure]:
    """Constraints with their rows that open as switched ones, and behind them the stops of joints
    as such rows; the forces that are left; and the structure of all."""
    constraints = [_with_switches(group) for group in groups]
    infos: list[ConstraintInfo] = []
    rows: list[RowInfo] = []
    for force in forces:
        if isinstance(force.load, StopLoad):
            group, own, own_rows = _stops_as_rows(force, groups, structure, rows)
            constraints.append(group)
            infos += own
            rows += own_rows
    left = tuple(force for force in forces if not isinstance(force.load, StopLoad))
    return tuple(constraints), left, structure.with_constraints(tuple(infos), tuple(rows))


def places_of_rows(
    body_groups: tuple[BodyGroup, ...],
    element_groups: tuple[ElementGroup, ...],
    groups: tuple[ConstraintGroup, ...],
    structure: Structure,
    indices: Indices,
) -> tuple[Indices, Pattern]:
    """The indices and the pattern of a system with these constraints."""
    found = Indices(
        ground_q=indices["ground_q"],
        ground_v=indices["ground_v"],
        **row_orders(groups, structure.rows),
    )
    return found, pattern_of(body_groups, element_groups, groups, len(structure.rows))


def with_active(
    groups: Sequence[ConstraintGroup], structure: Structure, active: Float[Array, " limits"]
) -> tuple[ConstraintGroup, ...]:
    """The constraints with these of the `opening_rows` on."""
    whole = jnp.ones((len(structure.rows),)).at[np.array(structure.opening_rows, int)].set(active)
    return tuple(
        _replaced(group, "active", gather(whole, places))
        if (places := _switched_places(group)) is not None
        else group
        for group in groups
    )


def with_restitution(
    groups: Sequence[ConstraintGroup], structure: Structure, values: Float[Array, " limits"]
) -> tuple[ConstraintGroup, ...]:
    """The constraints with these coefficients of restitution of the `opening_rows`."""
    whole = jnp.zeros((len(structure.rows),)).at[np.array(structure.opening_rows, int)].set(values)
    return tuple(
        _replaced(group, "restitution", gather(whole, places))
        if (places := _switched_places(group)) is not None
        else group
        for group in groups
    )


def restitution(groups: Sequence[ConstraintGroup], structure: Structure) -> Float[Array, " limits"]:
    """The coefficient of restitution of each of the `opening_rows`."""
    whole = jnp.zeros((len(structure.rows),))
    for group in groups:
        places = _switched_places(group)
        if places is not None:
            whole = whole.at[places].set(_switch(group).restitution)
    return whole[np.array(structure.opening_rows, int)]


def _with_switches(group: ConstraintGroup) -> ConstraintGroup:
    # (A system that has its limits as rows already stays as it is.)
    if _switched_places(group) is not None or not any(map(opens, group.primitives)):
        return group
    (primitive,) = group.primitives
    return dataclasses.replace(group, primitives=(switched(primitive, len(group.names)),))


def _stops_as_rows(
    force: ForceGroup,
    groups: Sequence[ConstraintGroup],
    structure: Structure,
    before: Sequence[RowInfo],
) -> tuple[ConstraintGroup, list[ConstraintInfo], list[RowInfo]]:
    """The stops of one group of forces as constraints."""
    assert isinstance(force.load, StopLoad)
    primitive, stops = StopRows(force.load), force.stops
    count, size = len(stops), len(primitive.rows)
    first = len(structure.rows) + len(before)
    held = {
        name: bodies
        for group in groups
        for name, bodies in zip(group.names, group.bodies, strict=True)
    }
    infos, rows = [], []
    for k, stop in enumerate(stops):
        joint = structure.constraint(stop.joint)
        taken = stop.name in structure.constraint_names
        name = f"{stop.name}{_SUFFIX}" if taken else stop.name
        start = first + k * size
        infos.append(joint._replace(name=name, kind=JointStop.kind, start=start, stop=start + size))
        for row in primitive.rows:
            own = f"{name}.{row.suffix}" if size > 1 else name
            rows.append(RowInfo(own, RowKind.position, row.quantity, True, row.one_sided))
    slots = {f"{x}{k}": force.indices[f"{x}{k}"] for x in "qv" for k in range(len(force.markers))}
    indices = Indices(
        row=first + np.arange(count) * size,
        order=np.arange(size),
        located=np.zeros((count, len(force.markers))),
        **slots,
    )
    own = switched(primitive, count)
    own = dataclasses.replace(
        own, restitution=jnp.broadcast_to(force.load.restitution[:, None], (count, size))
    )
    group = ConstraintGroup(
        (own,),
        force.markers,
        indices,
        tuple(info.name for info in infos),
        tuple(held[stop.joint] for stop in stops),
        JointStop,
    )
    return group, infos, rows


def _switch(group: ConstraintGroup) -> Switched:
    (primitive,) = group.primitives
    assert isinstance(primitive, Switched)
    return primitive


def _switched_places(group: ConstraintGroup) -> np.ndarray | None:
    """The row of each switch of a group (joints, rows); None for a group without."""
    if not isinstance(group.primitives[0], Switched):
        return None
    return group.indices["row"][:, None] + np.arange(group.indices["order"].shape[0])


def _replaced(group: ConstraintGroup, word: str, values: Array) -> ConstraintGroup:
    return dataclasses.replace(
        group, primitives=(dataclasses.replace(_switch(group), **{word: values}),)
    )
