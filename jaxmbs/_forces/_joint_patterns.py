"""Forces with the same numbers in several places: by a pattern of names of joints, and by a kind of
joint; of contacts by patterns of names of bodies.
"""

import dataclasses
import fnmatch
import itertools
from collections.abc import Sequence
from typing import cast

from .. import _checks
from .._constraints import AbstractJoint
from .._fields import Field, optional, word
from ._contact import Contact
from .base import AbstractPatternForce, JOINT


JOINT_OR_PATTERN = cast(Field, JOINT)._replace(admits="a name, or a pattern of names (`*`, `?`)")
JOINT_KIND = optional(
    word("joint_kind", "type of the joints, of those that the pattern matches", "a type of joint"),
    "all types",
)


def in_each_joint(
    force: AbstractPatternForce, joints: Sequence[AbstractJoint]
) -> tuple[AbstractPatternForce, ...]:
    """The force, once for each joint that it means: the joint of that name, or else those whose
    names match the pattern, of one kind if that is given.

    **Raises:** `ValueError` for a pattern that matches no joint, and for a kind without a pattern.
    """
    pattern = force.joint
    exact = any(joint.name == pattern for joint in joints)
    if exact or not any(sign in pattern for sign in "*?["):
        if force.joint_kind is not None:
            raise ValueError(
                f"joint_kind chooses among the joints of a pattern, and {_checks.shown(pattern)} "
                "is one name; leave it out, or give a pattern such as joint = '*'."
            )
        return (force,)
    named = [joint for joint in joints if fnmatch.fnmatchcase(joint.name, pattern)]
    # A pattern means joints; a tendon is meant where its type is given.
    if force.joint_kind is None:
        named = [joint for joint in named if joint.constrains]
    meant = [joint for joint in named if force.joint_kind in (None, joint.kind)]
    if not meant:
        kind = "" if force.joint_kind is None else f" of type {_checks.shown(force.joint_kind)}"
        there = [f"{joint.name} ({joint.kind})" for joint in joints]
        raise ValueError(
            f"pattern {_checks.shown(pattern)} matches no joint{kind}; there are "
            f"{_checks.listed(there)}."
        )
    return tuple(
        dataclasses.replace(
            force, name=f"{force.name} in {joint.name}", joint=joint.name, joint_kind=None
        )
        for joint in meant
    )


def is_pattern(name: str, names: Sequence[str]) -> bool:
    """Does it mean all of these names that it matches? One that is a name is that name."""
    return name not in names and any(sign in name for sign in "*?[")


def meant_by(name: str, names: Sequence[str]) -> list[str]:
    """The names that a name or a pattern means."""
    return fnmatch.filter(names, name) if is_pattern(name, names) else [name]


def between_each_pair(contact: Contact, bodies: Sequence[str]) -> tuple[Contact, ...]:
    """The contact, once for each pair of bodies that it means.

    **Raises:** `ValueError` for a pattern that matches no body, or none beside the other one, and
    for one whose shape stands at a point of the world.
    """
    patterns = [is_pattern(name, bodies) for name in contact.bodies]
    if not any(patterns):
        return (contact,)
    meant = []
    sides = zip(contact.bodies, patterns, ("first", "second"), strict=True)
    for (name, pattern, side), shape in zip(sides, (contact.first, contact.second), strict=True):
        found = meant_by(name, bodies)
        if not found:
            raise ValueError(
                f"pattern {_checks.shown(name)} matches no body; there are "
                f"{_checks.listed(bodies)}."
            )
        if pattern and shape.is_placed():
            raise ValueError(
                f"{side} stands at a point of the world, and {_checks.shown(name)} means several "
                "bodies; give a sphere or a box without `at`, which stands at the body's own point."
            )
        meant.append(found)
    pairs: dict[frozenset[str], tuple[str, str]] = {}
    for one, two in itertools.product(*meant):
        if one != two:
            pairs.setdefault(frozenset((one, two)), (one, two))
    if not pairs:
        raise ValueError(
            f"patterns {_checks.listed(contact.bodies)} mean one body alone, and contact is "
            "between two."
        )
    return tuple(
        dataclasses.replace(contact, name=f"{contact.name} of {one} and {two}", bodies=(one, two))
        for one, two in pairs.values()
    )
