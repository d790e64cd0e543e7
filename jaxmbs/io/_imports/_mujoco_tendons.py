"""Tendons of a compiled MuJoCo model: their lengths as coordinates, and what acts along them."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ._description import (
    CoordinateRange,
    Dynamics,
    HeldTendon,
    JointCoordinate,
    Omission,
    Tendon,
)


# Neighbouring points of a tendon that are as close as this (m) have no direction between them.
_COINCIDE = 1e-12


class Tendons(NamedTuple):
    """The tendons that are carried, by their index; their lengths in the reference configuration
    (m); and what is not carried."""

    carried: Mapping[int, Tendon]
    lengths: Mapping[int, float]
    omissions: tuple[Omission, ...]


class _Flags(NamedTuple):
    """The laws that the file switches off."""

    springs: bool
    dampers: bool
    limits: bool
    friction: bool


def tendon_name(model: Any, tendon: int) -> str:
    """The name of a tendon; an unnamed one gets a name."""
    return model.tendon(tendon).name or f"tendon {tendon + 1}"


def tendons(
    mujoco: Any,
    model: Any,
    data: Any,
    coordinates: Mapping[int, JointCoordinate],
    links: Mapping[int, str],
) -> Tendons:
    """All tendons in the state of `data`.

    **Arguments:** `coordinates`: of the joints that have one, by their index; `links`: names of the
    links, by the index of their bodies.
    """
    if not model.ntendon:
        return Tendons({}, {}, ())
    mujoco.mj_tendon(model, data)
    flags = _flags(mujoco, model)
    carried: dict[int, Tendon] = {}
    lengths: dict[int, float] = {}
    omissions: list[Omission] = []
    for k in range(model.ntendon):
        name = tendon_name(model, k)
        shape = _shape(mujoco, model, data, k, coordinates, links)
        if isinstance(shape, str):
            omissions.append(Omission("tendon", name, shape))
            continue
        length = float(data.ten_length[k])
        slack, dynamics = _passive(model, k, length, flags, along_joints=bool(shape.coordinates))
        ranges = ()
        if model.tendon_limited[k]:
            told = _range_told(model, k, name)
            omissions.append(told)
            if not flags.limits:
                bounds = _bounds(model.tendon_range[k], length, bool(shape.coordinates))
                ranges = (CoordinateRange("translation", *bounds, told=(told,)),)
        omissions.extend(_left_out(model, k, name))
        lengths[k] = length
        carried[k] = shape._replace(name=name, dynamics=dynamics, ranges=ranges, slack=slack)
    return Tendons(carried, lengths, tuple(omissions))


def _flags(mujoco: Any, model: Any) -> _Flags:
    def is_off(word: str) -> bool:
        return bool(model.opt.disableflags & getattr(mujoco.mjtDisableBit, f"mjDSBL_{word}"))

    limits = is_off("LIMIT") or is_off("CONSTRAINT")
    friction = is_off("FRICTIONLOSS") or is_off("CONSTRAINT")
    return _Flags(is_off("SPRING"), is_off("DAMPER"), limits, friction)


def _shape(
    mujoco: Any,
    model: Any,
    data: Any,
    tendon: int,
    coordinates: Mapping[int, JointCoordinate],
    links: Mapping[int, str],
) -> Tendon | str:
    """The tendon without what acts along it, or the reason why it is not carried."""
    kinds = mujoco.mjtWrap
    first, count = int(model.tendon_adr[tendon]), int(model.tendon_num[tendon])
    wraps = range(first, first + count)
    types = [int(model.wrap_type[k]) for k in wraps]
    objects = [int(model.wrap_objid[k]) for k in wraps]
    if all(kind == int(kinds.mjWRAP_JOINT) for kind in types):
        missing = [joint for joint in objects if joint not in coordinates]
        if missing:
            return f"acts on joint {model.joint(missing[0]).name!r}, which has no one coordinate"
        ratios = tuple(float(model.wrap_prm[k]) for k in wraps)
        return Tendon("", tuple(coordinates[joint] for joint in objects), ratios)
    for kind, number in zip(types, objects, strict=True):
        if kind in (int(kinds.mjWRAP_SPHERE), int(kinds.mjWRAP_CYLINDER)):
            what = "sphere" if kind == int(kinds.mjWRAP_SPHERE) else "cylinder"
            return f"wraps around the {what} {model.geom(number).name!r}, which is not carried"
        if kind == int(kinds.mjWRAP_PULLEY):
            return "is divided by a pulley into branches, which are not carried"
    points = np.array([data.site_xpos[site] for site in objects])
    own = tuple(links[int(model.site_bodyid[site])] for site in objects)
    if np.any(np.linalg.norm(np.diff(points, axis=0), axis=1) < _COINCIDE):
        return "has neighbouring sites that coincide, so that it has no direction between them"
    return Tendon("", (), (), own, points)


def _passive(
    model: Any, k: int, length: float, flags: _Flags, *, along_joints: bool
) -> tuple[CoordinateRange | None, tuple[Dynamics, ...]]:
    """The spring where it has a dead band, and everything else along the tendon."""
    stiffness = 0.0 if flags.springs else float(model.tendon_stiffness[k])
    low, high = map(float, model.tendon_lengthspring[k])
    own = Dynamics(
        "translation",
        stiffness=stiffness if low == high else 0.0,
        damping=0.0 if flags.dampers else float(model.tendon_damping[k]),
        rest=low - length if low == high else 0.0,
        friction=0.0 if flags.friction else float(model.tendon_frictionloss[k]),
    )
    if not stiffness or low == high:
        return None, (own,)
    bounds = _bounds((low, high), length, along_joints)
    return CoordinateRange("translation", *bounds, stiffness=stiffness), (own,)


def _bounds(ends: Any, length: float, along_joints: bool) -> tuple[float | None, float]:
    """From the reference configuration; the length of a way is never below zero."""
    low, high = map(float, ends)
    return (low - length if along_joints or low > 0 else None), high - length


def _range_told(model: Any, k: int, name: str) -> Omission:
    low, high = model.tendon_range[k]
    return Omission("limit", name, f"its range {low:g} to {high:g} is not kept")


def _left_out(model: Any, k: int, name: str) -> Iterator[Omission]:
    if _of(model, "tendon_armature", k):
        yield Omission("tendon", name, "its armature is not carried")
    if _of(model, "tendon_actfrclimited", k):
        low, high = model.tendon_actfrcrange[k]
        why = f"the force of its actuators is not held between {low:g} and {high:g}"
        yield Omission("limit", name, why)
    words = ("tendon_stiffnesspoly", "tendon_dampingpoly", "tendon_springyield")
    plastic = getattr(model, "tendon_plasticadr", None)
    if any(_of(model, word, k) for word in words) or (plastic is not None and plastic[k] >= 0):
        yield Omission("tendon", name, "of its law only the linear terms are carried")


def _of(model: Any, array: str, k: int) -> bool:
    """Is an entry of an array that only newer versions have other than zero?"""
    found = getattr(model, array, None)
    return found is not None and bool(np.any(found[k]))


def held_tendon(
    model: Any, equality: int, name: str, found: Tendons
) -> tuple[HeldTendon, tuple[Tendon, ...]] | str:
    """An equality between two tendons, or of one with a number, as a tendon whose length is held,
    with the tendon that is needed for that; or the reason why it is not carried.

    MuJoCo counts lengths from `qpos0`, the model from the reference configuration: of a linear
    polynomial y = c_0 + c_1 x remains s_1 - c_1 s_2 = c_0 + c_1 dx - dy.
    """
    first, second = int(model.eq_obj1id[equality]), int(model.eq_obj2id[equality])
    used = [k for k in (first, second) if k >= 0]
    missing = [k for k in used if k not in found.carried]
    if missing:
        return f"holds tendon {tendon_name(model, missing[0])!r}, which is not carried"
    coefficients = np.array(model.eq_data[equality, :5])
    away = {k: found.lengths[k] - float(model.tendon_length0[k]) for k in used}
    value = float(coefficients[0]) - away[first]
    if second < 0:
        return HeldTendon(name, found.carried[first].name, value), ()
    if np.any(coefficients[2:]):
        return "is a polynomial of more than first degree between two tendons"
    pair = found.carried[first], found.carried[second]
    if not all(own.coordinates for own in pair):
        return "couples a tendon through sites with another one"
    slope = float(coefficients[1])
    both = Tendon(
        f"{name} tendon",
        (*pair[0].coordinates, *pair[1].coordinates),
        (*pair[0].ratios, *(-slope * own for own in pair[1].ratios)),
    )
    return HeldTendon(name, both.name, value + slope * away[second]), (both,)
