"""Equality constraints of a compiled MuJoCo model, which close loops and couple joints. MuJoCo
holds them by stiff springs, the model exactly."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import Polynomial

from ._description import CoordinateCoupling, Joint, Matrix, Omission, Vector
from ._geometry import rotation_vector
from ._mujoco_tree import body_name, Drive, has_flag


# A weld with a larger error (rad) than rounding is reported.
_TURNED = 1e-6


class Constraints(NamedTuple):
    """Joints, couplings, and what could not be carried."""

    joints: tuple[Joint, ...]
    couplings: tuple[CoordinateCoupling, ...]
    omissions: tuple[Omission, ...]


class _Held(NamedTuple):
    """A frame that a constraint holds: its link, point and axes."""

    link: str
    point: Vector
    axes: Matrix


def constraints(mujoco: Any, model: Any, data: Any, drives: Mapping[int, Drive]) -> Constraints:
    """The constraints of all equality elements: `connect` a spherical joint, `weld` a fixed one,
    `joint` a coupling."""
    kinds = mujoco.mjtEq
    joints: list[Joint] = []
    couplings: list[CoordinateCoupling] = []
    omissions: list[Omission] = []
    disabled = any(has_flag(mujoco, model, word) for word in ("CONSTRAINT", "EQUALITY"))
    for k in range(model.neq):
        name = model.equality(k).name or f"equality {k + 1}"
        kind = int(model.eq_type[k])
        of_joint = kind == int(kinds.mjEQ_JOINT) and int(model.eq_obj1id[k]) in drives
        if of_joint and not model.equality(k).name:
            name = f"{drives[int(model.eq_obj1id[k])].joint} mimic"
        if disabled or not model.eq_active0[k]:
            omissions.append(Omission("equality", name, "is not active in the file"))
        elif kind == int(kinds.mjEQ_CONNECT):
            first, second = _frames(mujoco, model, data, k, welded=False)
            points = np.stack([first.point, second.point])
            joints.append(Joint(name, "spherical", first.link, second.link, points))
        elif kind == int(kinds.mjEQ_WELD):
            first, second = _frames(mujoco, model, data, k, welded=True)
            points = np.stack([first.point, second.point])
            # Without torques it holds the point alone.
            held = float(model.eq_data[k, 10]) != 0
            kind_held = "fixed" if held else "spherical"
            joints.append(Joint(name, kind_held, first.link, second.link, points))
            turned = float(np.linalg.norm(rotation_vector(first.axes.T @ second.axes)))
            if held and turned > _TURNED:
                why = (
                    f"holds the orientation of the reference configuration, which is {turned:.3g} "
                    "rad away from that in the file"
                )
                omissions.append(Omission("equality", name, why))
        elif of_joint:
            couplings.append(_coupling(model, k, name, drives))
        else:
            omissions.append(Omission("equality", name, "couples tendons or flexible parts"))
    return Constraints(tuple(joints), tuple(couplings), tuple(omissions))


def _frames(mujoco: Any, model: Any, data: Any, k: int, *, welded: bool) -> tuple[_Held, _Held]:
    """The frames that the constraint joins: two sites, or anchors in two bodies."""
    first, second = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
    if int(model.eq_objtype[k]) == int(mujoco.mjtObj.mjOBJ_SITE):
        return _site(model, data, first), _site(model, data, second)
    numbers = np.array(model.eq_data[k])
    # Of a weld the anchor is that in the second body, and behind it stands the pose of the second
    # in the first.
    anchors = (numbers[3:6], numbers[:3]) if welded else (numbers[:3], numbers[3:6])
    turn = _matrix(mujoco, numbers[6:10]) if welded else np.eye(3)
    one = _anchor(model, data, first, anchors[0], turn)
    return one, _anchor(model, data, second, anchors[1], np.eye(3))


def _site(model: Any, data: Any, site: int) -> _Held:
    axes = np.array(data.site_xmat[site]).reshape(3, 3)
    link = body_name(model, int(model.site_bodyid[site]))
    return _Held(link, np.array(data.site_xpos[site]), axes)


def _anchor(model: Any, data: Any, body: int, anchor: Vector, turn: Matrix) -> _Held:
    axes = np.array(data.xmat[body]).reshape(3, 3)
    return _Held(body_name(model, body), data.xpos[body] + axes @ anchor, axes @ turn)


def _matrix(mujoco: Any, quaternion: np.ndarray) -> Matrix:
    found = np.zeros(9)
    mujoco.mju_quat2Mat(found, quaternion / np.linalg.norm(quaternion))
    return found.reshape(3, 3)


def _coupling(model: Any, k: int, name: str, drives: Mapping[int, Drive]) -> CoordinateCoupling:
    """MuJoCo counts from `qpos0`, the model from the reference configuration: y = P(x) becomes
    s_1 = P(dx + s_2) - dy."""
    first = int(model.eq_obj1id[k])
    second = int(model.eq_obj2id[k])
    away = drives[first].reference - float(model.qpos0[int(model.jnt_qposadr[first])])
    polynomial = Polynomial(np.array(model.eq_data[k, :5]))
    if second < 0:
        value = float(polynomial.coef[0]) - away
        coordinate = drives[first].coordinate
        return CoordinateCoupling(name, coordinate, None, (value,), drives[first].joint)
    start = drives[second].reference - float(model.qpos0[int(model.jnt_qposadr[second])])
    shifted = (polynomial(Polynomial([start, 1.0])) - away).coef
    used = [j for j, c in enumerate(shifted) if c != 0 or j == 1]
    coefficients = tuple(map(float, shifted[: max(used) + 1]))
    pair = drives[first].coordinate, drives[second].coordinate
    return CoordinateCoupling(name, *pair, coefficients)
