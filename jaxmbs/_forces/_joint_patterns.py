"""Forces with the same numbers in several joints: by a pattern of names, and by a kind of joint."""

import dataclasses
import fnmatch
from collections.abc import Sequence
from typing import cast

from .. import _checks
from .._constraints import AbstractJoint
from .._fields import Field, optional, word
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
