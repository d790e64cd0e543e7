"""Objectives that are zero by what a joint is: the force of a driver of a rotation, the torque of a
point that is held."""

import functools
from typing import Any

import numpy as np
from jax import lax
from jaxtyping import Array

from .._dynamics import Trajectory
from .._programs import program
from .._reactions import wrench_maps
from .._system import AbstractSystem
from ._quantities import Attachment, attachment, Final, Force, MeanSquare, Peak, Torque


# Against the other one of force times length, and torque.
_ROUNDING = 1e-9


@functools.singledispatch
def zero_words(objective: Any, response: Trajectory) -> str:
    """The reason why an objective, or a quantity, is zero in every state of a run for any
    multipliers, and a better choice; empty if it is not zero, as far as that can be decided."""
    del objective, response
    return ""


@zero_words.register(Peak)
@zero_words.register(Final)
@zero_words.register(MeanSquare)
def _(objective: Peak | Final | MeanSquare, response: Trajectory) -> str:
    return zero_words(objective.quantity, response)


@zero_words.register
def _(objective: Force, response: Trajectory) -> str:
    at, sizes = _sizes(objective.joints, objective.body, response)
    if sizes[0] > _ROUNDING * sizes[1]:
        return ""
    return _words(objective.joints, at, "force", "torque", exerts=sizes[1] > 0)


@zero_words.register
def _(objective: Torque, response: Trajectory) -> str:
    at, sizes = _sizes(objective.joints, objective.body, response)
    if sizes[1] > _ROUNDING * sizes[0]:
        return ""
    return _words(objective.joints, at, "torque", "force", exerts=sizes[0] > 0)


def _words(joints: tuple[str, ...], at: Attachment, zero: str, other: str, *, exerts: bool) -> str:
    structure, names = at.system.structure, ", ".join(joints)
    kinds = {structure.constraint(name).kind.replace("_", " ") for name in joints}
    where = f"on {at.layout.bodies[at.places[0]]!r}"
    if not exerts:
        return (
            f"{names} ({', '.join(sorted(kinds))}) exerts no force and no torque {where}; ask for "
            "another body, or for a combination of its multipliers."
        )
    given = f"{joints[0]!r}" if len(joints) == 1 else repr(joints)
    written = f'"{joints[0]}"' if len(joints) == 1 else str([*joints]).replace("'", '"')
    point = " about its point" if zero == "torque" else ""
    return (
        f"{names} ({', '.join(sorted(kinds))}) exerts a {other} {where} and no {zero}{point}; ask "
        f"for its {other}, {other.capitalize()}({given}), in a study file {other} = {written}."
    )


def _sizes(
    joints: tuple[str, ...], body: str | None, response: Trajectory
) -> tuple[Attachment, tuple[float, float]]:
    """Bodies on which they act; the largest force times the characteristic length, and the largest
    torque, that multipliers of unit size make in any state."""
    at = attachment(response, joints, body)
    states = response.q, response.v, response.times
    length, *found = map(np.asarray, _maps(response.system, states))
    force, torque, points = (x[:, at.places] for x in found)
    arms = points - points[:, :1]
    if arms.shape[-1] == 2:
        moved = arms[..., :1] * force[:, :, 1] - arms[..., 1:] * force[:, :, 0]
        moved = moved[:, :, None]
    else:
        moved = np.cross(arms[..., None], force, axis=2)
    rows = at.layout.indices["rows"][at.places]
    return at, (float(length) * _largest(force, rows), _largest(torque + moved, rows))


def _largest(maps: np.ndarray, rows: np.ndarray) -> float:
    """The largest coefficient (n, places, components, width), summed over places, of a row."""
    total = np.zeros((*maps.shape[:1], maps.shape[2], int(rows.max()) + 1))
    for k, own in enumerate(rows):
        total[:, :, own] += maps[:, k]
    # What fills up the rows of a joint is zero.
    return float(np.max(np.abs(total), initial=0.0))


@program
def _maps(
    system: AbstractSystem, states: tuple[Array, Array, Array]
) -> tuple[Array, Array, Array, Array]:
    """The characteristic length; at each state from multipliers to forces and torques at all
    places, and their points."""

    def of_state(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        places = system.places(*state)
        maps = wrench_maps(places, system.constraint_matrix(*state))
        return maps.force, maps.torque, places.point

    return system.characteristic_length(), *lax.map(of_state, states)
