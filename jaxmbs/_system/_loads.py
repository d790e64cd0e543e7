"""Generalized forces and stored energy of the forces, all kinds together.

A load gives wrenches on marker frames; the transpose of the map from v to the markers' twists makes
generalized forces of them. Friction has a further argument: the force and the couple that the
joint's own rows exert, from their multipliers.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._constraints import Frames, Twists
from .._custom_types import Scalar
from .._forces import (
    AbstractFrictionLaw,
    AbstractOneSidedLoad,
    AbstractStatefulLoad,
    BristleContactLoad,
    Clearance,
    ContactLoad,
    ContactState,
    ControlledMotorLoad,
    Exerted,
    MotorLoad,
    MotorState,
    StopLoad,
    StopState,
)
from .._linalg import gather, scatter_add
from ._groups import (
    ForceGroup,
    frames_of,
    FrictionGroup,
    map_parts,
    position,
    Primitives,
    rates_of,
    twists,
)


def generalized_loads(
    groups: Sequence[ForceGroup],
    q: Float[Array, " extended_q"],
    v: Float[Array, " extended_v"],
    t: Scalar,
) -> Float[Array, " extended_v"]:
    """The generalized force of all loads, from the ground-extended state."""
    frames, twists, transpose = _motion(groups, q, v)
    wrenches = [
        map_parts(lambda load, f, w: load.wrenches(f, w, t), group.load, own, moving)
        for group, own, moving in zip(groups, frames, twists, strict=True)
    ]
    return transpose(wrenches)


def wrenches_of(
    groups: Sequence[ForceGroup],
    q: Float[Array, " extended_q"],
    v: Float[Array, " extended_v"],
    t: Scalar,
) -> list[Twists]:
    """The wrenches of each group's loads at their markers, from the ground-extended state."""
    found = []
    for group, (frames, rates) in zip(groups, rates_of(groups, q, v), strict=True):
        moving = map_parts(twists, frames, rates)
        found.append(
            map_parts(lambda load, f, w: load.wrenches(f, w, t), group.load, frames, moving)
        )
    return found


def generalized_friction(
    groups: Sequence[FrictionGroup],
    q: Float[Array, " extended_q"],
    v: Float[Array, " extended_v"],
    t: Scalar,
    multipliers: Float[Array, " rows"],
) -> Float[Array, " extended_v"]:
    """The generalized friction force of all joints, from the ground-extended state."""
    frames, twists, transpose = _motion(groups, q, v)
    wrenches = []
    for group, own, moving in zip(groups, frames, twists, strict=True):
        rows = gather(multipliers, group.indices["rows"])
        parts = (group.law, group.primitives)
        wrenches.append(map_parts(_friction, parts, own, moving, rows, shared=(t,)))
    return transpose(wrenches)


class FrictionMaps(eqx.Module):
    """Maps of the slip and the pressing forces of joints with friction; one entry per contact.

    - `slip` (contacts, 3, nv): slips (m/s) by velocities. `pressing` (contacts, 3, rows): the
      components of the force (N) that presses the contact together, by multipliers. Both padded
      with zeros. `direction` (contacts, 3): how far each slip is developed, of size 1 at most;
      friction is against it. `coefficient` (contacts,): of its law.
    - `joints`: whose contact it is. `laws`: which law, counted from 0. `sizes`: how many slips, and
      how many components of the pressing force, each has. `signed`: does that count with its sign,
      as the tension of a rope, and not by its size?
    """

    slip: Float[Array, "contacts 3 nv"]
    pressing: Float[Array, "contacts 3 rows"]
    direction: Float[Array, "contacts 3"]
    coefficient: Float[Array, " contacts"]
    joints: tuple[str, ...] = eqx.field(static=True)
    laws: tuple[int, ...] = eqx.field(static=True)
    sizes: tuple[tuple[int, int], ...] = eqx.field(static=True)
    signed: tuple[bool, ...] = eqx.field(static=True)


def friction_maps(
    groups: Sequence[FrictionGroup],
    q: Float[Array, " extended_q"],
    v: Float[Array, " extended_v"],
    t: Scalar,
    multipliers: Float[Array, " rows"],
) -> FrictionMaps:
    """The maps of all friction laws, from the ground-extended state."""
    if not groups:
        none = jnp.zeros((0,), q.dtype)
        slip, pressing = (jnp.zeros((0, 3, x.shape[0]), q.dtype) for x in (v, multipliers))
        return FrictionMaps(slip, pressing, jnp.zeros((0, 3), q.dtype), none, (), (), (), ())

    # Of each group, a tuple with an array for each contact of its law.
    def slips(v: Float[Array, " extended_v"]) -> list[tuple[Float[Array, "n slip"], ...]]:
        motions = zip(groups, rates_of(groups, q, v), strict=True)
        return [map_parts(_slips, group.law, *motion) for group, motion in motions]

    def pressings(
        multipliers: Float[Array, " rows"],
    ) -> list[tuple[Float[Array, "n pressing"], ...]]:
        return [
            map_parts(
                _pressings,
                (group.law, group.primitives),
                frames,
                gather(multipliers, group.indices["rows"]),
                shared=(t,),
            )
            for group, frames in zip(groups, frames_of(groups, q), strict=True)
        ]

    def padded(x: Float[Array, "n few *columns"]) -> Float[Array, "n 3 *columns"]:
        return jnp.pad(x, ((0, 0), (0, 3 - x.shape[1]), *((0, 0) for _ in x.shape[2:])))

    motions = zip(groups, rates_of(groups, q, v), strict=True)
    resisting = [x for g, motion in motions for x in map_parts(_resisting, g.law, *motion)]

    # Contacts of one kind side by side, group by group.
    slip = [x for own in jax.jacfwd(slips)(v) for x in own]
    pressing = [x for own in jax.jacfwd(pressings)(multipliers) for x in own]
    ends = np.cumsum([len(group.names) for group in groups])
    counts = [len(own) for own in pressings(multipliers)]
    kinds = [
        (group, range(int(end) - len(group.names), int(end)))
        for group, end, count in zip(groups, ends, counts, strict=True)
        for _ in range(count)
    ]
    return FrictionMaps(
        slip=jnp.concatenate([padded(x) for x in slip]),
        pressing=jnp.concatenate([padded(x) for x in pressing]),
        direction=jnp.concatenate([padded(way) for _, way in resisting]),
        coefficient=jnp.concatenate([coefficient for coefficient, _ in resisting]),
        joints=tuple(name for group, _ in kinds for name in group.names),
        laws=tuple(law for _, own in kinds for law in own),
        sizes=tuple(
            (s.shape[1], p.shape[1])
            for s, p in zip(slip, pressing, strict=True)
            for _ in range(s.shape[0])
        ),
        signed=tuple(group.law.signed for group, own in kinds for _ in own),
    )


def state_rates(
    groups: Sequence[ForceGroup],
    friction: Sequence[FrictionGroup],
    q: Float[Array, " extended_q"],
    v: Float[Array, " extended_v"],
    t: Scalar,
) -> Float[Array, " extended_q"]:
    """The rates of the states that loads have, in their places; at least one load has some."""
    stateful = [group for group in groups if isinstance(group.load, AbstractStatefulLoad)]
    found, places = [], []
    for group, (frames, rates) in zip(stateful, rates_of(stateful, q, v), strict=True):
        found.append(map_parts(_state_rates, group.load, frames, rates, shared=(t,)))
        places.append(group.indices[f"q{len(group.markers) - 1}"])
    sticking = [group for group in friction if group.law.sticks]
    for group, (frames, rates) in zip(sticking, rates_of(sticking, q, v), strict=True):
        found.append(map_parts(_bristle_rates, group.law, frames, rates))
        places.append(group.indices[f"q{len(group.markers) - 1}"])
    return scatter_add(found, places, q.shape[0])


def motor_states(
    groups: Sequence[ForceGroup],
    q: Float[Array, " extended_q"],
    v: Float[Array, " extended_v"],
    t: Scalar,
) -> MotorState:
    """The state of each motor, from the ground-extended state; at least one group is of motors."""
    own = [group for group in groups if group.motors]
    found = [
        map_parts(_motor_state, group.load, frames, rates, shared=(t,))
        for group, (frames, rates) in zip(own, rates_of(own, q, v), strict=True)
    ]
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), *found)


def stop_states(
    groups: Sequence[ForceGroup], q: Float[Array, " extended_q"], v: Float[Array, " extended_v"]
) -> StopState:
    """The state of each stop, from the ground-extended state; at least one group is of stops."""
    own = [group for group in groups if group.stops]
    found = [
        map_parts(_stop_state, group.load, frames, rates)
        for group, (frames, rates) in zip(own, rates_of(own, q, v), strict=True)
    ]
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), *found)


def stop_depths(
    groups: Sequence[ForceGroup], q: Float[Array, " extended_q"]
) -> Float[Array, "stops 2"]:
    """Penetration of the bounds of each stop, likewise."""
    own = [group for group in groups if group.stops]
    found = [
        map_parts(lambda load, frames: load.depths(frames), group.load, frames)
        for group, frames in zip(own, frames_of(own, q), strict=True)
    ]
    return jnp.concatenate(found) if found else jnp.zeros((0, 2), q.dtype)


def contact_states(
    groups: Sequence[ForceGroup],
    q: Float[Array, " extended_q"],
    v: Float[Array, " extended_v"],
) -> ContactState:
    """The state of each contact, from the ground-extended state; at least one group is of
    contacts."""
    own = [group for group in groups if group.contacts]
    found = [
        map_parts(_contact_state, group.load, frames, rates)
        for group, (frames, rates) in zip(own, rates_of(own, q, v), strict=True)
    ]
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), *found)


def clearances(
    groups: Sequence[ForceGroup],
    q: Float[Array, " extended_q"],
    v: Float[Array, " extended_v"],
) -> Clearance:
    """Clearance of each load of these groups, which are one-sided, likewise."""
    found = [
        map_parts(_clearance, group.load, frames, rates)
        for group, (frames, rates) in zip(groups, rates_of(groups, q, v), strict=True)
    ]
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), *found)


def stored_energy(groups: Sequence[ForceGroup], q: Float[Array, " extended_q"]) -> Scalar:
    """The potential energy of all loads."""
    total = jnp.zeros((), q.dtype)
    for group, frames in zip(groups, frames_of(groups, q), strict=True):
        total = total + jnp.sum(
            map_parts(lambda load, own: load.potential(own), group.load, frames)
        )
    return total


def _motion(
    groups: Sequence[ForceGroup | FrictionGroup],
    q: Float[Array, " extended_q"],
    v: Float[Array, " extended_v"],
) -> tuple[list[Frames], list[Twists], Callable[[list[Twists]], Float[Array, " extended_v"]]]:
    """Frames and twists of each group's markers, and the transpose of the map from v to the
    twists: from wrenches to the generalized force."""
    if not groups:
        return [], [], lambda wrenches: jnp.zeros_like(v)

    def moving(v: Float[Array, " extended_v"]) -> tuple[list[Twists], list[Frames]]:
        motion = rates_of(groups, q, v)
        found = [map_parts(twists, frames, rates) for frames, rates in motion]
        return found, [frames for frames, _ in motion]

    found, transpose, frames = jax.vjp(moving, v, has_aux=True)
    return frames, found, lambda wrenches: transpose(wrenches)[0]


# The functions below apply to ONE joint, or one force.


def _state_rates(
    load: AbstractStatefulLoad, frames: Frames, rates: Frames, t: Scalar
) -> Float[Array, " n"]:
    *held, states = frames
    moving = twists(tuple(held), rates[:-1])
    return load.state_rates(tuple(held), moving, states.values, t)


def _bristle_rates(law: AbstractFrictionLaw, frames: Frames, rates: Frames) -> Float[Array, " n"]:
    return law.state_rates(frames, twists(frames, rates))


def _motor_state(
    load: MotorLoad | ControlledMotorLoad, frames: Frames, rates: Frames, t: Scalar
) -> MotorState:
    return load.motor_state(frames, twists(frames, rates), t)


def _stop_state(load: StopLoad, frames: Frames, rates: Frames) -> StopState:
    return load.stop_state(frames, twists(frames, rates))


def _contact_state(
    load: ContactLoad | BristleContactLoad, frames: Frames, rates: Frames
) -> ContactState:
    return load.contact_state(frames, twists(frames, rates))


def _clearance(load: AbstractOneSidedLoad, frames: Frames, rates: Frames) -> Clearance:
    return load.clearance(frames, twists(frames, rates))


def _friction(
    part: tuple[AbstractFrictionLaw, Primitives],
    frames: Frames,
    twists: Twists,
    own: Float[Array, " n"],
    t: Scalar,
) -> Twists:
    law, primitives = part
    return law.wrenches(frames, twists, _exerted(primitives, law.own(frames), own, t))


def _slips(
    law: AbstractFrictionLaw, frames: Frames, rates: Frames
) -> tuple[Float[Array, " slip"], ...]:
    own = law.own(frames)
    return law.slips(own, twists(own, law.own(rates)))


def _resisting(
    law: AbstractFrictionLaw, frames: Frames, rates: Frames
) -> tuple[tuple[Scalar, Float[Array, " slip"]], ...]:
    return law.resisting(frames, twists(frames, rates))


def _pressings(
    part: tuple[AbstractFrictionLaw, Primitives], frames: Frames, own: Float[Array, " n"], t: Scalar
) -> tuple[Float[Array, " pressing"], ...]:
    law, primitives = part
    frames = law.own(frames)
    return law.pressings(frames, _exerted(primitives, frames, own, t))


def _exerted(
    primitives: Primitives, frames: Frames, multipliers: Float[Array, " n"], t: Scalar
) -> Exerted:
    """The action of geometric rows on the second body: the covector of the twist of its marker,
    from the virtual work -lambda . dPhi of a displacement of that, all else fixed."""
    first, second, *others = frames

    def residual_rate(twist: Any) -> Float[Array, " n"]:
        def residual(moved: Any) -> Float[Array, " n"]:
            return position(primitives, (first, moved, *others), t)

        return jax.jvp(residual, (second,), (second.rate(twist),))[1]

    zero = jax.tree.map(jnp.zeros_like, second.twist(second))
    _, transpose = jax.vjp(residual_rate, zero)
    wrench = transpose(-multipliers)[0]
    return Exerted(wrench.linear, wrench.angular, multipliers)
