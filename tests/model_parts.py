"""Every table that a model file may hold, each to be added to a small model."""

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


PLANAR: Mapping[str, Any] = {
    "schema": 1,
    "name": "small planar model",
    "dimension": 2,
    "gravity": [0.0, -9.81],
    "body": [
        {"name": "bar", "mass": 1.0, "inertia": 0.1, "position": [0.5, 0.0]},
        {"name": "rod", "mass": 2.0, "inertia": 0.2, "position": [1.5, 0.0]},
    ],
    "joint": [
        {"name": "hinge", "type": "revolute", "bodies": ["ground", "bar"], "at": [0.0, 0.0]},
        {
            "name": "slide",
            "type": "translational",
            "bodies": ["bar", "rod"],
            "at": [1.0, 0.0],
            "axis": [1.0, 0.0],
        },
    ],
}
SPATIAL: Mapping[str, Any] = {
    "schema": 1,
    "name": "small spatial model",
    "dimension": 3,
    "gravity": [0.0, 0.0, -9.81],
    "body": [
        {"name": "bar", "mass": 1.0, "inertia": [0.1, 0.2, 0.2], "position": [0.5, 0.0, 0.0]},
        {"name": "rod", "mass": 2.0, "inertia": [0.1, 0.2, 0.2], "position": [1.5, 0.0, 0.0]},
    ],
    "joint": [
        {
            "name": name,
            "type": kind,
            "bodies": ["ground", "bar"],
            "at": [0.5, 0.0, 0.0],
            "axis": [0.0, 0.0, 2.0],
        }
        for name, kind in (
            ("hinge", "revolute"),
            ("slide", "translational"),
            ("pin", "cylindrical"),
        )
    ],
}
BASES: Mapping[int, Mapping[str, Any]] = {2: PLANAR, 3: SPATIAL}


class Part(NamedTuple):
    """An entry of a table. `required`: keys that it cannot do without, besides the name.
    `rows`: suffixes of a joint's rows, "" for one row with the bare name."""

    dimension: int
    table: str
    entry: dict[str, Any]
    required: tuple[str, ...]
    rows: tuple[str, ...] = ("",)

    def content(self, **changes: Any) -> dict[str, Any]:
        """The small model with this entry, some of its keys changed, at the end of its table."""
        content: dict[str, Any] = copy.deepcopy(dict(BASES[self.dimension]))
        content.setdefault(self.table, []).append(copy.deepcopy(self.entry) | changes)
        return content


PARTS: dict[str, Part] = {}


def _body(dimension: int, label: str = "", **keys: Any) -> None:
    entry = {"name": "new", "mass": 1.5, "position": [0.1, 0.2, 0.3][:dimension]} | keys
    PARTS[f"body {dimension}{label}"] = Part(
        dimension, "body", entry, ("mass", "inertia", "position")
    )


_body(2, inertia=0.3, angle=0.3, velocity=[0.4, 0.5], angular_velocity=0.6)
_body(
    3,
    inertia=[0.3, 0.4, 0.5],
    orientation=[0.6, 0.0, 0.8, 0.0],
    velocity=[0.4, 0.5, 0.6],
    angular_velocity=[0.7, 0.8, 0.9],
)
_body(
    3,
    ", matrices",
    inertia=[[0.3, 0.01, 0.0], [0.01, 0.4, 0.02], [0.0, 0.02, 0.5]],
    rotation=[[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
)


_POSE = {
    "position": [0.1, 0.2, 0.3],
    "orientation": [0.6, 0.0, 0.8, 0.0],
    "velocity": [0.4, 0.5, 0.6],
    "angular_velocity": [0.7, 0.8, 0.9],
}
PARTS["massless 3"] = Part(3, "body", {"name": "new", "type": "massless", **_POSE}, ("position",))
PARTS["slender 3"] = Part(
    3,
    "body",
    {"name": "new", "type": "slender", "mass": 0.5, "inertia": [0.1, 0.1, 0.0], **_POSE},
    ("mass", "inertia", "position"),
)


# Keys of joints that may be left out.
_OPTIONAL = (
    *("length", "carrier", "closed", "senses", "pressure_angle", "helix_angle", "flank"),
    *("profile", "radii", "centre", "radius", "pitch_curve", "face"),
)


def _joint(dimension: int, kind: str, rows: str = "", *, label: str = "", **keys: Any) -> None:
    entry = {"name": "J", "type": kind, "bodies": ["bar", "rod"]} | keys
    required = ("type", "bodies", *(k for k in keys if k not in ("bodies", *_OPTIONAL)))
    PARTS[label or f"{kind} {dimension}"] = Part(
        dimension, "joint", entry, required, tuple(rows.split()) or ("",)
    )


_AT = {2: [1.0, 0.5], 3: [1.0, 0.5, 0.25]}
_AXIS = {2: [1.0, 2.0], 3: [1.0, 2.0, 2.0]}
PAIR = {d: [_AT[d], [2.0, *_AT[d][1:]]] for d in (2, 3)}
_CURVE = {
    2: [[0.0, 0.0], [0.5, 0.1], [1.0, 0.5], [1.5, 1.1], [1.9, 2.0]],
    3: [[0.0, 0.0, 0.2], [0.5, 0.1, 0.1], [1.0, 0.5, 0.25], [1.5, 1.1, 0.4], [1.9, 2.0, 0.7]],
}
_OUTLINE = [[2.0, 0.0], [1.4, 0.8], [0.4, 1.0], [-0.4, 0.3], [-0.2, -0.7], [0.6, -1.1], [1.5, -0.8]]
_ROW = {2: [1.0, 0.0, 0.5, -1.0, 0.0, 0.5], 3: [1.0, 0.0, 0.0, 0.0, 0.5, 0.0] * 2}

_joint(2, "revolute", ".x .y", at=_AT[2])
_joint(2, "revolute", ".x .y", points=PAIR[2], label="revolute 2, points")
_joint(2, "translational", ".n .r", at=_AT[2], axis=_AXIS[2])
_joint(2, "prismatic", ".n .r", at=_AT[2], axis=_AXIS[2])
_joint(2, "fixed", ".x .y .r", at=_AT[2])
_joint(2, "point_on_line", at=_AT[2], axis=_AXIS[2])
_joint(2, "point_on_curve", at=_AT[2], curve=_CURVE[2], closed=False)
_joint(2, "point_on_curve", at=_AT[2], curve=_OUTLINE, closed=True, label="closed curve 2")
_joint(2, "cam", at=_AT[2], profile=_OUTLINE, radius=0.05, pitch_curve=True)
_joint(
    2,
    "cam",
    at=_AT[2],
    radii=[0.5, 0.55, 0.5, 0.45, 0.5, 0.55],
    centre=[0.1, 0.2],
    face=[1.0, 0.5],
    label="cam 2, radii and face",
)
_joint(2, "distance", points=PAIR[2], length=1.25)
_joint(2, "gear", bodies=["rod", "ground"], ratio=-2.0, carrier="bar")
_ROPE: dict[str, Any] = {
    "bodies": ["bar", "ground", "rod"],
    "points": [[0.5, 0.1], [0.8, 2.0], [1.5, 0.2]],
    "radii": [0.0, 0.2, 0.0],
    "senses": [0.0, -1.0, 0.0],
}
PARTS["rope 2"] = Part(
    2,
    "joint",
    {"name": "J", "type": "rope", **_ROPE, "length": 5.0},
    ("type", "bodies", "points"),
)
_joint(2, "belt", ".1 .2", points=PAIR[2], radii=[0.2, 0.3], senses=[1.0, -1.0], carrier="ground")
_TEETH: dict[str, Any] = {"carrier": "ground", "pressure_angle": 0.25, "flank": -1}
_joint(2, "gear_pair", points=PAIR[2], teeth=[40, 20], **_TEETH)
_joint(2, "rack_and_pinion", points=PAIR[2], **_TEETH)
_joint(2, "knife_edge", bodies=["bar"], at=_AT[2], direction=_AXIS[2])
_joint(2, "pfaffian", coefficients=_ROW[2])
_joint(2, "pfaffian", ".1 .2", coefficients=[_ROW[2], _ROW[2][::-1]], label="pfaffian 2, two rows")
_joint(3, "revolute", ".x .y .z .a1 .a2", at=_AT[3], axis=_AXIS[3])
_joint(3, "revolute", ".x .y .z .a1 .a2", points=PAIR[3], axis=_AXIS[3], label="revolute 3, points")
_joint(3, "translational", ".n1 .n2 .rx .ry .rz", at=_AT[3], axis=_AXIS[3])
_joint(3, "prismatic", ".n1 .n2 .rx .ry .rz", at=_AT[3], axis=_AXIS[3])
_joint(3, "fixed", ".x .y .z .rx .ry .rz", at=_AT[3])
_joint(3, "spherical", ".x .y .z", at=_AT[3])
_joint(3, "cylindrical", ".n1 .n2 .a1 .a2", at=_AT[3], axis=_AXIS[3])
_joint(
    3,
    "coupling",
    bodies=["ground", "bar", "bar", "rod"],
    measures=["rotation", "translation"],
    points=PAIR[3],
    axes=[[1.0, 1.0, 0.0], [0.0, 0.0, 3.0]],
    coefficients=[0.0, 0.5],
)
_HELICAL: dict[str, Any] = _TEETH | {"helix_angle": 0.25}
_joint(3, "gear_pair", points=PAIR[3], axis=_AXIS[3], teeth=[-60, 20], **_HELICAL)
_joint(3, "rack_and_pinion", points=PAIR[3], axis=_AXIS[3], **_HELICAL)
_joint(
    3,
    "bevel_pair",
    apex=_AT[3],
    axes=[[1.0, 0.0, 0.0], [0.0, 2.0, 1.0]],
    teeth=[20, 40],
    radius=0.25,
    **_TEETH,
)
_joint(
    3,
    "worm_pair",
    points=PAIR[3],
    axes=[[0.0, 1.0, 0.0], [0.0, 0.0, 2.0]],
    teeth=[2, 40],
    lead_angle=-0.125,
    **_TEETH,
)
_joint(3, "universal", ".x .y .z .a", at=_AT[3], axes=[[1.0, 1.0, 0.0], [0.0, 0.0, 3.0]])
_joint(3, "planar", ".n .a1 .a2", at=_AT[3], axis=_AXIS[3])
_joint(3, "screw", ".n1 .n2 .a1 .a2 .s", at=_AT[3], axis=_AXIS[3], pitch=0.01)
_joint(3, "point_on_line", ".n1 .n2", at=_AT[3], axis=_AXIS[3])
_joint(3, "point_on_curve", ".n1 .n2", at=_AT[3], curve=_CURVE[3], closed=False)
_joint(3, "point_on_plane", at=_AT[3], axis=_AXIS[3])
_joint(3, "parallel_axes", ".a1 .a2", axes=[[1.0, 2.0, 2.0], [2.0, 4.0, 4.0]])
_joint(3, "perpendicular_axes", axes=[[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
_joint(3, "distance", points=PAIR[3], length=1.25)
_EYELETS = [[0.5, 0.1, 0.0], [0.8, 2.0, 0.1], [1.5, 0.2, 0.3]]
_joint(3, "rope", bodies=_ROPE["bodies"], points=_EYELETS, length=5.0)
_NORMAL = np.cross(np.diff(_EYELETS, axis=0)[0], np.diff(_EYELETS, axis=0)[1]).tolist()
_PULLEY = _ROPE | {"points": _EYELETS, "axes": [[0.0] * 3, _NORMAL, [0.0] * 3]}
PARTS["rope 3, pulleys"] = Part(
    3,
    "joint",
    {"name": "J", "type": "rope", **_PULLEY, "length": 5.0},
    ("type", "bodies", "points"),
)
PARTS["path_tendon 3, pulleys"] = Part(
    3, "joint", {"name": "J", "type": "path_tendon", **_PULLEY}, ("type", "bodies", "points"), ()
)
for _dimension, _held in ((2, _ROPE), (3, {"bodies": _ROPE["bodies"], "points": _EYELETS})):
    PARTS[f"path_tendon {_dimension}"] = Part(
        _dimension,
        "joint",
        {"name": "J", "type": "path_tendon", **_held},
        ("type", "bodies", "points"),
        (),
    )
PARTS["joint_tendon 3"] = Part(
    3,
    "joint",
    {
        "name": "J",
        "type": "joint_tendon",
        "bodies": ["ground", "bar", "bar", "rod"],
        "measures": ["rotation", "translation"],
        "points": PAIR[3],
        "axes": [[1.0, 1.0, 0.0], [0.0, 0.0, 3.0]],
        "ratios": [0.5, -1.0],
    },
    ("type", "bodies", "measures", "points", "axes", "ratios"),
    (),
)
_joint(3, "rolling_disk", ".x .y .z", bodies=["bar"], axis=[0.0, 1.0, 0.5], radius=0.5)
_joint(3, "pfaffian", coefficients=_ROW[3])
_joint(3, "pfaffian", ".1 .2", coefficients=[_ROW[3], _ROW[3][::-1]], label="pfaffian 3, two rows")


MOTION_TABLES: dict[str, dict[str, Any]] = {
    "sine": {"offset": 0.1, "amplitude": 0.05, "frequency": 0.5, "phase": -0.2},
    "linear": {"offset": 0.1, "rate": 1.5},
    "polynomial": {"coefficients": [0.1, -0.2, 0.3]},
    "table": {"times": [0.0, 1.0, 2.5, 3.0], "values": [0.1, 0.3, -0.2, 0.5]},
    "step": {"times": [0.5, 1.0, 2.0], "values": [0.1, 0.3, -0.2]},
}


def driver(joint: str, coordinate: str, motion: Mapping[str, Any]) -> dict[str, Any]:
    """A driver's table."""
    return {"name": "drive", "joint": joint, "coordinate": coordinate, "motion": dict(motion)}


for _word, _motion in MOTION_TABLES.items():
    PARTS[f"{_word} motion"] = Part(
        2,
        "driver",
        driver("hinge", "rotation", {"type": _word, **_motion}),
        ("joint", "coordinate", "motion"),
    )
for _dimension, _name, _coordinate in (
    (2, "hinge", "rotation"),
    (2, "slide", "translation"),
    (3, "hinge", "rotation"),
    (3, "slide", "translation"),
    (3, "pin", "rotation"),
    (3, "pin", "translation"),
):
    PARTS[f"driven {_name} {_coordinate} {_dimension}"] = Part(
        _dimension,
        "driver",
        driver(_name, _coordinate, {"type": "polynomial", "coefficients": [0.25]}),
        ("joint", "coordinate", "motion"),
    )


def _force(dimension: int, kind: str, *required: str, label: str = "", **keys: Any) -> None:
    entry = {"name": "load", "type": kind} | keys
    required = ("type", *required)
    PARTS[label or f"{kind} {dimension}"] = Part(dimension, "force", entry, required)


for _d, _torque in ((2, 0.5), (3, [0.5, 0.25, 0.125])):
    _ends = {"bodies": ["bar", "ground"], "points": PAIR[_d]}
    _law: dict[str, Any] = {"stiffness": 100.0, "damping": 1.0}
    _wrench = {"body": "bar", "at": _AT[_d], "force": _AXIS[_d], "torque": _torque}
    _force(_d, "spring_damper", "bodies", "points", "stiffness", **_ends, **_law, length=0.3)
    _rope = _ROPE if _d == 2 else {"bodies": _ROPE["bodies"], "points": _EYELETS}
    _force(_d, "elastic_rope", "bodies", "points", "stiffness", **_rope, **_law, length=3.5)
    if _d == 3:
        _label = "elastic_rope 3, pulleys"
        _needed = ("bodies", "points", "stiffness")
        _force(_d, "elastic_rope", *_needed, **_PULLEY, **_law, length=3.5, label=_label)
    _force(_d, "applied", "body", **_wrench)
    _force(_d, "applied", "body", **_wrench, follows="body", label=f"applied {_d}, following")
    _force(_d, "torsion_spring", "joint", joint="hinge", **_law, rest=0.1, torque=0.033)
    _rub: dict[str, Any] = {"coefficient": 0.1, "radius": 0.01, "velocity": 1e-3}
    _force(_d, "coulomb_friction", "joint", *_rub, joint="hinge", **_rub)
    _slow = {key: value for key, value in _rub.items() if key != "radius"}
    _label = f"coulomb_friction {_d}, sliding"
    _force(_d, "coulomb_friction", "joint", *_slow, joint="slide", **_slow, label=_label)
    _slow |= {"length": 0.2, "bearing": "first"} | ({"radius": 0.05} if _d == 3 else {})
    _label = f"coulomb_friction {_d}, bearings"
    _force(_d, "coulomb_friction", "joint", joint="slide", **_slow, label=_label)
    _sticks: dict[str, Any] = {"presliding": 1e-4, "relaxation_time": 2e-3}
    _slow = {key: value for key, value in _slow.items() if key != "velocity"}
    _label = f"coulomb_friction {_d}, sticking"
    _force(_d, "coulomb_friction", "joint", joint="slide", **_slow, **_sticks, label=_label)
    _label = f"coulomb_friction {_d}, pattern"
    _all: dict[str, Any] = {"joint": "*", "joint_kind": "revolute"}
    _force(_d, "coulomb_friction", "joint", *_rub, **_all, **_rub, label=_label)
    _loss: dict[str, Any] = {"sliding": 0.2, "viscous": 0.1, "velocity": 0.05}
    _loss |= {"breakaway": 0.3, "stribeck_speed": 0.5}
    _force(_d, "joint_friction", "joint", joint="hinge", **_loss)
    _label = f"joint_friction {_d}, sticking"
    _held: dict[str, Any] = {"sliding": 0.2, "viscous": 0.1, "breakaway": 0.3} | _sticks
    _held["stribeck_speed"] = 0.5
    _force(_d, "joint_friction", "joint", joint="hinge", **_held, label=_label)
    _label = f"joint_friction {_d}, sliding"
    _along: dict[str, Any] = {"joint": "slide", "coordinate": "translation"}
    _force(_d, "joint_friction", "joint", **_along, viscous=2.0, label=_label)
    _stiff: list[float] = [100.0, 200.0, 50.0] if _d == 2 else [100.0, 200.0, 300.0, 5.0, 6.0, 7.0]
    _mount = {"bodies": ["bar", "rod"], "stiffness": _stiff, "damping": _stiff[::-1]}
    _force(_d, "bushing", "bodies", "stiffness", "at", **_mount, at=_AT[_d])
    _full = (np.diag(_stiff) + 1.5).tolist()
    _mount |= {"stiffness": _full, "points": PAIR[_d]}
    _force(_d, "bushing", "bodies", "points", **_mount, label=f"bushing {_d}, matrix")

    _motor: dict[str, Any] = {
        "actuator": {"type": "dc_motor", "torque_constant": 0.05, "resistance": 0.4},
        "ratio": 20.0,
    }
    _feedback: dict[str, Any] = {
        "controller": {"type": "pid", "proportional": 5.0, "integral": 2.0, "derivative": 0.5},
        "reference": {"type": "linear", "rate": 0.5, "offset": 0.1},
        "limits": [-20.0, 24.0],
    }
    _force(_d, "motor", "joint", "actuator", joint="hinge", **_motor, **_feedback)
    _given: dict[str, Any] = {"command": {"type": "linear", "rate": 0.5, "offset": 3.0}}
    _label = f"motor {_d}, sliding"
    _motor = {"actuator": {"type": "ideal"}}
    _force(_d, "motor", "joint", "actuator", **_along, **_motor, **_given, label=_label)
    _motor = {"actuator": {"type": "torque_speed", "speeds": [0.0, 9.0], "torques": [2.0, 0.0]}}
    _force(_d, "motor", "joint", "actuator", joint="hinge", **_motor, **_given, label=f"servo {_d}")

    _stop: dict[str, Any] = {"stiffness": 300.0, "exponent": 1.5, "lower": -0.5, "upper": 0.9}
    _loss: dict[str, Any] = {"restitution": 0.6, "impact_speed": 1.5}
    _force(_d, "joint_stop", "joint", "stiffness", joint="hinge", **_stop, **_loss)
    _label = f"joint_stop {_d}, sliding"
    _loss = {"damping": 0.4}
    _force(_d, "joint_stop", "joint", "stiffness", **_along, **_stop, **_loss, label=_label)
    _place, _normal = [5.0, *[3.0] * (_d - 1)], [*[0.0] * (_d - 1), 2.0]
    _turn: dict[str, Any] = {"angle": 0.5} if _d == 2 else {"orientation": [0.6, 0.0, 0.8, 0.0]}
    _capsule = {"type": "capsule", "radius": 0.1, "points": PAIR[_d]}
    _touch: dict[str, Any] = {"bodies": ["bar", "rod"], "second": _capsule, "stiffness": 1e5}
    _touch |= {"first": {"type": "sphere", "radius": 0.25, "at": _place}, "exponent": 1.25}
    _touch |= {"damping": 0.3, "friction": 0.4, "tangential_stiffness": 1e4}
    _touch |= {"tangential_damping": 3.0, "relaxation_time": 0.002}
    _force(_d, "contact", "bodies", "first", "second", "stiffness", **_touch)
    _box = {"type": "box", "size": [0.5, 0.25, 0.125][:_d], "at": _place, **_turn}
    _touch = {"bodies": ["rod", "ground"], "first": _box, "stiffness": 1e5}
    _touch |= {"second": {"type": "half_space", "normal": _normal, "at": [-9.0] * _d}}
    _touch |= {"restitution": 0.75, "impact_speed": 2.0, "friction": 0.4}
    _touch |= {"transition_speed": 0.01, "rolling_resistance": 0.02, "rolling_speed": 0.1}
    _corners = [[5.0, 3.0, 3.0], [6.0, 3.0, 3.0], [5.0, 4.5, 3.0], [5.0, 3.0, 4.0]]
    _hull = {"type": "polytope", "vertices": [x[:_d] for x in _corners[: _d + 1]]}
    _label = f"contact {_d}, polytope"
    _ends = ("first", "second", "stiffness")
    _force(_d, "contact", *_ends, **(_touch | {"first": _hull}), label=_label)
    _label = f"contact {_d}, on the ground"
    _force(_d, "contact", "first", "second", "stiffness", **_touch, label=_label)


for _d in (2, 3):
    _force(_d, "axial_spring", "joint", joint="slide", **_law, rest=0.1, force=0.5)
_force(3, "ball_spring", "bodies", bodies=["bar", "rod"], **_law, rest=[0.1, 0.2, 0.3])


def _element(kind: str, **keys: Any) -> None:
    entry = {"name": "drive", "type": kind, "bodies": ["ground", "rod"]} | keys
    PARTS[f"{kind} 3"] = Part(3, "element", entry, ("type", "bodies", *keys))


_element("reflected_inertia", axis=_AXIS[3], inertia=0.1)
_element("reflected_mass", at=_AT[3], axis=_AXIS[3], mass=0.1)
_element("ball_inertia", inertia=0.1)


for _d in (2, 3):
    _tilts: Any = 1e-6 if _d == 2 else [1e-6, 2e-6, 3e-6]
    _gives: dict[str, Any] = {"body": "bar", "points": PAIR[_d], "stiffness": 1e6}
    PARTS[f"rod {_d}"] = Part(
        _d,
        "compliance",
        {"name": "soft", "type": "rod", **_gives, "misfit": 1e-4},
        ("type", "body", "points", "stiffness"),
    )
    _gives = {"joint": "hinge", "compliance": _AXIS[_d], "tilt_compliance": _tilts}
    PARTS[f"joint compliance {_d}"] = Part(
        _d,
        "compliance",
        {
            "name": "soft",
            "type": "joint",
            **_gives,
            "misfit": _AT[_d],
            "tilt_misfit": copy.copy(_tilts),
        },
        ("type", "joint"),
    )


JOINT_PARTS = {name: part for name, part in PARTS.items() if part.table == "joint"}
FORCE_PARTS = {name: part for name, part in PARTS.items() if part.table == "force"}
ELEMENT_PARTS = {name: part for name, part in PARTS.items() if part.table == "element"}
COMPLIANCE_PARTS = {name: part for name, part in PARTS.items() if part.table == "compliance"}
DRIVER_PARTS = {name: part for name, part in PARTS.items() if part.table == "driver"}
