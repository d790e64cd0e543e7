"""The content of a motion file, independent of the format, and its conversion back."""

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._dynamics import Kinematics, Statistics, Trajectory
from .._dynamics._passages import Passage
from .._errors import ModelError
from .._reactions import Reactions
from .._solution import RESULTS
from .._system import AbstractSystem, Structure


_STATES = ("times", "q", "v", "acceleration", "position_error", "velocity_error", "reached")
_ARRAYS = (*_STATES, "multipliers", "passages", "passage_count", "stopped")
_COUNTS = ("steps", "accepted", "rejected")
TEXTS = ("result", "message", "elastic", "passed", "passages_remark")


class Record(NamedTuple):
    """A motion as it is written.

    `arrays`: those of its class, by their names; `texts`: likewise; `error_unit`: that of
    its residuals of lengths; `reactions`: finds those of all joints, None if the motion has none;
    `system`: whose it is.
    """

    arrays: dict[str, np.ndarray]
    texts: dict[str, str]
    error_unit: str
    reactions: Callable[[], Reactions] | None
    system: AbstractSystem


@functools.singledispatch
def record_of(motion: Any) -> Record:
    """The record of a motion: a `Trajectory` or a `Kinematics`."""
    raise TypeError(f"only motions are written, got {type(motion).__name__}.")


@record_of.register
def _(motion: Trajectory) -> Record:
    arrays = {name: np.asarray(getattr(motion, name)) for name in _ARRAYS}
    counts = {name: np.asarray(getattr(motion.statistics, name)) for name in _COUNTS}
    texts = _texts_of(motion) | {"elastic": "yes" if motion.elastic else "no"}
    return Record(arrays | counts, texts, "m", motion.reactions, motion.system)


@record_of.register
def _(motion: Kinematics) -> Record:
    arrays = {name: np.asarray(getattr(motion, name)) for name in (*_STATES, "regular")}
    return Record(arrays, _texts_of(motion), "1", None, motion.system)


def _texts_of(motion: Trajectory | Kinematics) -> dict[str, str]:
    # Texts outlive the numbers of an enumeration that grows.
    return {
        "result": RESULTS[motion.result],
        "message": motion.message,
        "passed": json.dumps([own._asdict() for own in motion.passed]),
        "passages_remark": motion.passages_remark,
    }


def _passed(text: str) -> tuple[Passage, ...]:
    found = (Passage(**own) for own in json.loads(text))
    return tuple(x._replace(joints=tuple(x.joints), motions=tuple(x.motions)) for x in found)


def names_of(structure: Structure) -> dict[str, tuple[str, ...]]:
    """Names by which a file identifies its system."""
    return {
        "row_names": structure.row_names,
        "body_names": tuple(body.name for body in structure.bodies),
        "quantities": quantity_words(structure),
    }


def quantity_words(structure: Structure) -> tuple[str, ...]:
    """The quantity whose rate each velocity is."""
    return tuple(info.quantity.name for info in structure.velocities)


def trajectory_of(
    arrays: Mapping[str, np.ndarray],
    texts: Mapping[str, str],
    names: Mapping[str, tuple[str, ...]],
    system: AbstractSystem,
    path: str,
) -> Trajectory:
    """The trajectory that a file holds.

    **Raises:** `ModelError` for what is missing, and for a file of another system.
    """
    wanted = names_of(system.structure)
    there = {*arrays, *texts, *names}
    missing = sorted({"result", "message", *_ARRAYS, *_COUNTS, *wanted} - there)
    if missing:
        raise ModelError(f"{path!r} is no file of a trajectory: it has no {', '.join(missing)}.")
    for name, expected in wanted.items():
        if names[name] != expected:
            word = name.replace("_", " ")
            raise ModelError(f"{path!r} belongs to another system: its {word} differ.")
    own: dict[str, Any] = {name: jnp.asarray(arrays[name]) for name in _ARRAYS}
    return Trajectory(
        **own,
        statistics=Statistics(*(jnp.asarray(arrays[name]) for name in _COUNTS)),
        result=_result(texts["result"]),
        system=system,
        message=texts["message"],
        elastic=texts.get("elastic") == "yes",
        # Files of earlier versions have times alone.
        passed=_passed(texts.get("passed", "[]")),
        passages_remark=texts.get("passages_remark", ""),
    )


def _result(text: str) -> RESULTS:
    """The member with that text. One unknown to this version is still a failure;
    `message` keeps its text."""
    for number in range(len(RESULTS)):
        leaf = jnp.asarray(number, jnp.int32)
        member = jax.tree.unflatten(jax.tree.structure(RESULTS.successful), [leaf])
        if RESULTS[member] == text:
            return member
    return RESULTS.integrator_failed
