"""The components of reactions, each with its verdict."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from .._reactions import Axes, Reactions
from .._reactions._report import ROUNDING, rounding_scales
from .._verdict import NOT_DECIDED, NOT_UNIQUE, UNIQUE


class Component(NamedTuple):
    """One number that a constraint exerts: of a force, a torque or a coordinate. `place`: which of
    these, from 0; `rounding`: what is smaller is printed as 0."""

    constraint: int
    what: str
    place: int
    label: str
    unit: str
    rounding: float


class SecondWrench(NamedTuple):
    """Force and torque of a constraint on its second body at n states, world axes: `force`,
    `torque` (n, 2 or 3; n, 1 or 3), and the verdicts of their components, as numbers."""

    force: Float[np.ndarray, "n dim"]
    torque: Float[np.ndarray, "n turns"]
    force_verdict: Int[np.ndarray, "n dim"]
    torque_verdict: Int[np.ndarray, "n turns"]


def second_wrench(reactions: Reactions, constraint: int) -> SecondWrench | None:
    """The wrench, from reactions as NumPy arrays; None for a constraint that acts at no point."""
    place = reactions.layout.seconds[constraint]
    if place < 0:
        return None
    own = (
        np.asarray(x)[:, Axes.WORLD, place]
        for x in (
            reactions.force,
            reactions.torque,
            reactions.force_unique.numbers(),
            reactions.torque_unique.numbers(),
        )
    )
    return SecondWrench(*own)


def components_of(
    reactions: Reactions,
) -> tuple[tuple[Component, ...], Float[np.ndarray, "n components"], np.ndarray]:
    """The components of all constraints, in row order: their values and verdicts at all states."""
    states = len(reactions.doubtful)
    rounding = _rounding(reactions)
    components: list[Component] = []
    values, verdicts = [np.zeros((states, 0))], [np.zeros((states, 0), int)]
    for constraint, name in enumerate(reactions.names):
        wrench = second_wrench(reactions, constraint)
        if wrench is None:
            own, numbers = _on_coordinates(reactions, constraint)
            components += own
            values.append(numbers)
            told = reactions.unique(name).numbers()
            verdicts.append(np.repeat(told[:, None], len(own), axis=1))
            continue
        components += _of_wrench(constraint, wrench, rounding)
        values += [wrench.force, wrench.torque]
        verdicts += [wrench.force_verdict, wrench.torque_verdict]
    return tuple(components), np.concatenate(values, axis=1), np.concatenate(verdicts, axis=1)


def _of_wrench(
    constraint: int, wrench: SecondWrench, rounding: tuple[float, float]
) -> list[Component]:
    """Its force, then its torque."""
    found = []
    parts = (("force", "N", wrench.force), ("torque", "N m", wrench.torque))
    for (what, unit, numbers), floor in zip(parts, rounding, strict=True):
        letters = "z" if numbers.shape[1] == 1 else "xyz"
        for place in range(numbers.shape[1]):
            label = f"{what} {letters[place]}"
            found.append(Component(constraint, what, place, label, unit, floor))
    return found


def _rounding(reactions: Reactions) -> tuple[float, float]:
    """The force and the torque below which numbers are rounding: of unique ones alone, as the
    others are arbitrary."""
    found = [second_wrench(reactions, k) for k in range(len(reactions.names))]
    own = [wrench for wrench in found if wrench is not None]
    seconds = [place for place in reactions.layout.seconds if place >= 0]
    arm = np.max(np.abs(np.asarray(reactions.arm[:, seconds])), initial=0.0)
    largest_force = max((_largest(x.force, x.force_verdict) for x in own), default=0.0)
    largest_torque = max((_largest(x.torque, x.torque_verdict) for x in own), default=0.0)
    force, torque = rounding_scales(largest_force, largest_torque, float(arm))
    return ROUNDING * force, ROUNDING * torque


def _largest(numbers: Float[np.ndarray, "n _"], verdict: Int[np.ndarray, "n _"]) -> float:
    return float(np.max(np.abs(numbers), initial=0.0, where=verdict == UNIQUE))


def _on_coordinates(
    reactions: Reactions, constraint: int
) -> tuple[list[Component], Float[np.ndarray, "n columns"]]:
    """The generalized reaction of a constraint that acts at no point."""
    structure = reactions.structure
    info = structure.constraints[constraint]
    numbers = np.asarray(reactions.generalized_reactions)[:, constraint, : len(info.columns)]
    told = np.asarray(reactions.unique(reactions.names[constraint]).numbers())[:, None]
    rounding = ROUNDING * _largest(numbers, np.broadcast_to(told, numbers.shape))
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


def joint_verdicts_of(reactions: Reactions) -> Int[np.ndarray, "n constraints"]:
    """Is everything that a constraint exerts unique: the whole reaction and all components?"""
    found = [np.zeros((len(reactions.doubtful), 0), int)]
    for constraint, name in enumerate(reactions.names):
        told = [reactions.unique(name).numbers()[:, None]]
        wrench = second_wrench(reactions, constraint)
        if wrench is not None:
            told += [wrench.force_verdict, wrench.torque_verdict]
        every = np.concatenate(told, axis=1)
        undecided = np.any(every == NOT_DECIDED, axis=1)
        many = np.any(every == NOT_UNIQUE, axis=1)
        verdict = np.where(many, NOT_UNIQUE, np.where(undecided, NOT_DECIDED, UNIQUE))
        found.append(verdict[:, None])
    return np.concatenate(found, axis=1)
