"""What a joint exerts on its second body at n states, and whether all of it is unique, as NumPy
arrays. Reports, the viewer and pictures mark joints by it.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from .._verdict import NOT_DECIDED, NOT_UNIQUE, UNIQUE
from ._report import Axes, Reactions


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
