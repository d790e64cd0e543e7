"""Actuators of a compiled MuJoCo model, at constant control inputs: springs, dampers and constant
forces in joints, and forces on bodies."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._checks import listed, shown
from ..._errors import ModelError
from ._description import Dynamics, Link, Omission, Wrench
from ._mujoco_tree import body_name, Drive, has_flag


_WHY = (
    "has an activation of its own, acts on a tendon or on several coordinates, or is no linear law "
    "of length and velocity"
)


class Actuation(NamedTuple):
    """Forces in each joint, by its name, and on links; and the actuators that were not carried."""

    in_joints: Mapping[str, tuple[Dynamics, ...]]
    wrenches: tuple[Wrench, ...]
    omissions: tuple[Omission, ...]


class _Law(NamedTuple):
    """force = constant + along length + against velocity, of a transmission (its own units)."""

    constant: float
    length: float
    velocity: float


_STILL = _Law(0.0, 0.0, 0.0)


def actuation(
    mujoco: Any,
    model: Any,
    data: Any,
    drives: Mapping[int, Drive],
    links: Sequence[Link],
    controls: Mapping[str, float],
) -> Actuation:
    """The actuation by all actuators, at the given control inputs, by name, and at those of the
    keyframe for the others.

    **Raises:** `ModelError` for an input of an actuator that there is none of.
    """
    count = len(model.actuator_trntype)
    names = [model.actuator(k).name or f"actuator {k + 1}" for k in range(count)]
    for name in controls:
        if name not in names:
            raise ModelError(f"there is no actuator {shown(name)}; there are {listed(names)}.")
    joints: dict[str, tuple[Dynamics, ...]] = {}
    wrenches: list[Wrench] = []
    omissions: list[Omission] = []
    for k, name in enumerate(names):
        kind = int(model.actuator_trntype[k])
        disabled = _is_disabled(mujoco, model, k)
        law = _STILL if disabled else _law(mujoco, model, data, k, controls.get(name))
        gear = np.array(model.actuator_gear[k])
        drive = None
        if kind == int(mujoco.mjtTrn.mjTRN_JOINT):
            drive = drives.get(int(model.actuator_trnid[k, 0]))
        if disabled:
            omissions.append(Omission("actuator", name, "is switched off in the file"))
        if law is not None and drive is not None:
            own = _in_joint(mujoco, model, k, name, law, float(gear[0]), drive)
            joints[drive.joint] = (*joints.get(drive.joint, ()), own)
            omissions.extend(_limits(model, k, name))
            continue
        constant = law is not None and not law.length and not law.velocity
        at_site = kind == int(mujoco.mjtTrn.mjTRN_SITE) and int(model.actuator_trnid[k, 1]) < 0
        bare = not _of(model, "actuator_armature", k) and not _of(model, "actuator_damping", k)
        if not disabled and law is not None and constant and at_site and bare:
            wrenches.append(_at_site(model, data, k, name, law.constant * gear))
        elif not disabled:
            omissions.append(Omission("actuator", name, _WHY))
    wrenches.extend(_gravity_compensation(mujoco, model, links))
    return Actuation(joints, tuple(wrenches), tuple(omissions))


def _is_disabled(mujoco: Any, model: Any, k: int) -> bool:
    """All of them may be, or those of a group."""
    group = int(model.actuator_group[k])
    by_group = 0 <= group <= 30 and bool(int(model.opt.disableactuator) >> group & 1)
    return by_group or has_flag(mujoco, model, "ACTUATION")


def _law(mujoco: Any, model: Any, data: Any, k: int, given: float | None) -> _Law | None:
    """The force of an actuator with its control input held; None for any other law."""
    gains, biases = mujoco.mjtGain, mujoco.mjtBias
    gain, bias = int(model.actuator_gaintype[k]), int(model.actuator_biastype[k])
    still = int(model.actuator_dyntype[k]) == int(mujoco.mjtDyn.mjDYN_NONE)
    known = gain in (int(gains.mjGAIN_FIXED), int(gains.mjGAIN_AFFINE))
    if not (still and known and bias in (int(biases.mjBIAS_NONE), int(biases.mjBIAS_AFFINE))):
        return None
    # Until version 4 each actuator had one input.
    addresses = getattr(model, "actuator_ctrladr", None)
    place = k if addresses is None else int(addresses[k])
    control = float(data.ctrl[place]) if given is None else float(given)
    if model.actuator_ctrllimited[k] and not has_flag(mujoco, model, "CLAMPCTRL"):
        control = float(np.clip(control, *model.actuator_ctrlrange[k]))
    terms = control * np.array(model.actuator_gainprm[k, :3])
    if gain == int(gains.mjGAIN_FIXED):
        terms[1:] = 0.0
    if bias == int(biases.mjBIAS_AFFINE):
        terms = terms + np.array(model.actuator_biasprm[k, :3])
    return _Law(*map(float, terms))


def _in_joint(
    mujoco: Any, model: Any, k: int, name: str, law: _Law, gear: float, drive: Drive
) -> Dynamics:
    """The dynamics along the joint's coordinate: the length of the transmission is `gear` times
    MuJoCo's."""
    stiffness = -law.length * gear**2
    damping = float(_of(model, "actuator_damping", k))
    if has_flag(mujoco, model, "DAMPER"):
        damping = 0.0
    return Dynamics(
        drive.coordinate.word,
        name,
        stiffness=stiffness,
        damping=(damping - law.velocity) * gear**2,
        # The coordinate of the model is zero in the reference configuration.
        effort=law.constant * gear - stiffness * drive.reference,
        armature=float(_of(model, "actuator_armature", k)) * gear**2,
    )


def _of(model: Any, array: str, k: int) -> Any:
    """An entry of an array that only newer versions have."""
    found = getattr(model, array, None)
    return 0.0 if found is None else found[k]


def _limits(model: Any, k: int, name: str) -> list[Omission]:
    found = []
    if model.actuator_forcelimited[k]:
        low, high = model.actuator_forcerange[k]
        why = f"the model does not hold its force between {low:g} and {high:g}"
        found.append(Omission("limit", name, why))
    if np.any(_of(model, "actuator_dampingpoly", k)):
        why = "of its damping only the linear term is carried"
        found.append(Omission("actuator", name, why))
    return found


def _at_site(model: Any, data: Any, k: int, name: str, wrench: np.ndarray) -> Wrench:
    """Force and torque along the axes of a site, which turn with its body."""
    site = int(model.actuator_trnid[k, 0])
    axes = np.array(data.site_xmat[site]).reshape(3, 3)
    link = body_name(model, int(model.site_bodyid[site]))
    force, torque = axes @ wrench[:3], axes @ wrench[3:]
    return Wrench(name, link, np.array(data.site_xpos[site]), force, torque, turns=True)


def _gravity_compensation(mujoco: Any, model: Any, links: Sequence[Link]) -> list[Wrench]:
    """The forces that carry a part of each body's weight, at its centre of mass."""
    passive = not (has_flag(mujoco, model, "SPRING") and has_flag(mujoco, model, "DAMPER"))
    if has_flag(mujoco, model, "GRAVITY") or not passive:
        return []
    shares = {body_name(model, k): float(model.body_gravcomp[k]) for k in range(1, model.nbody)}
    gravity = np.array(model.opt.gravity)
    return [
        Wrench(
            f"{link.name} gravity compensation",
            link.name,
            link.center,
            -shares[link.name] * link.mass * gravity,
            np.zeros(3),
            turns=False,
        )
        for link in links
        if link.mass and shares.get(link.name)
    ]
