"""The numbers of which reactions are made, each with its verdict."""

from typing import NamedTuple

import numpy as np

from .._reactions import Reactions
from .._reactions._text import ROUNDING
from .._reactions._wrench import largest


# A component's verdict, where there is one.
UNIQUE, NOT_UNIQUE = 1, 0


class Component(NamedTuple):
    """One number that a constraint exerts: of a force, a torque or a coordinate. `place`: which of
    these, from 0; `rounding`: what is smaller is printed as 0."""

    constraint: int
    what: str
    place: int
    label: str
    unit: str
    rounding: float


def components_of(
    reactions: Reactions,
) -> tuple[tuple[Component, ...], np.ndarray, np.ndarray]:
    """The components of all constraints, in row order: their values and verdicts at all states."""
    wrenches = {n: reactions.wrench(n) for n in reactions.names if reactions.has_wrench(n)}
    most = largest(list(wrenches.values()))
    components: list[Component] = []
    values, verdicts = [np.zeros((len(reactions.doubtful), 0))], []
    for constraint, name in enumerate(reactions.names):
        if name not in wrenches:
            own, numbers = _on_coordinates(reactions, constraint)
            components += own
            values.append(numbers)
            verdicts += [reactions.unique(name).numbers()] * len(own)
            continue
        wrench, count = wrenches[name], len(reactions.doubtful)
        for what, unit, size in (("force", "N", most[0]), ("torque", "N m", most[1])):
            numbers = np.asarray(getattr(wrench, what)).reshape(count, -1)
            letters = ("z",) if numbers.shape[1] == 1 else tuple("xyz")
            for place in range(numbers.shape[1]):
                label = f"{what} {letters[place]}"
                floor = ROUNDING * size
                components.append(Component(constraint, what, place, label, unit, floor))
            values.append(numbers)
            unique = getattr(wrench, f"{what}_unique").numbers().reshape(count, -1)
            verdicts += list(unique.T)
    states = len(reactions.doubtful)
    told = np.stack(verdicts, axis=1) if verdicts else np.zeros((states, 0), int)
    return tuple(components), np.concatenate(values, axis=1), told


def _on_coordinates(reactions: Reactions, constraint: int) -> tuple[list[Component], np.ndarray]:
    """The generalized reaction of a constraint that acts at no point."""
    structure = reactions.structure
    info = structure.constraints[constraint]
    numbers = np.asarray(reactions.generalized_reactions)[:, constraint, : len(info.columns)]
    rounding = ROUNDING * float(np.max(np.abs(numbers), initial=0.0))
    own = [
        Component(
            constraint,
            "generalized",
            place,
            structure.velocities[column].name,
            structure.velocities[column].quantity.force_unit,
            rounding,
        )
        for place, column in enumerate(info.columns)
    ]
    return own, numbers


def joint_verdicts_of(reactions: Reactions) -> np.ndarray:
    found = [
        (reactions.wrench(n).determined if reactions.has_wrench(n) else reactions.unique(n))
        for n in reactions.names
    ]
    if not found:
        return np.zeros((len(reactions.doubtful), 0), int)
    return np.stack([verdict.numbers() for verdict in found], axis=1)
