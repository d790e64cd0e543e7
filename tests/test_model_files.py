"""Model files: whatever MODEL.md section 1 admits is read, and means what is said there."""

import copy
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbs import Driver, mechanisms, Model
from jaxmbs.io import model_from_tables, read_model, write_model
from jaxmbs.io._registry import FORCES, JOINTS, MOTIONS, SYNONYMS


# ---------------------------------------------------------------------------------------------
# Every table that a model file may hold, each to be added to a small model
# ---------------------------------------------------------------------------------------------

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


def _joint(dimension: int, kind: str, rows: str = "", *, label: str = "", **keys: Any) -> None:
    entry = {"name": "J", "type": kind, "bodies": ["bar", "rod"]} | keys
    required = ("type", "bodies", *(k for k in keys if k not in ("bodies", "length", "carrier")))
    PARTS[label or f"{kind} {dimension}"] = Part(
        dimension, "joint", entry, required, tuple(rows.split()) or ("",)
    )


_AT = {2: [1.0, 0.5], 3: [1.0, 0.5, 0.25]}
_AXIS = {2: [1.0, 2.0], 3: [1.0, 2.0, 2.0]}
_PAIR = {d: [_AT[d], [2.0, *_AT[d][1:]]] for d in (2, 3)}
_ROW = {2: [1.0, 0.0, 0.5, -1.0, 0.0, 0.5], 3: [1.0, 0.0, 0.0, 0.0, 0.5, 0.0] * 2}

_joint(2, "revolute", ".x .y", at=_AT[2])
_joint(2, "revolute", ".x .y", points=_PAIR[2], label="revolute 2, points")
_joint(2, "translational", ".n .r", at=_AT[2], axis=_AXIS[2])
_joint(2, "prismatic", ".n .r", at=_AT[2], axis=_AXIS[2])
_joint(2, "fixed", ".x .y .r", at=_AT[2])
_joint(2, "point_on_line", at=_AT[2], axis=_AXIS[2])
_joint(2, "distance", points=_PAIR[2], length=1.25)
_joint(2, "gear", bodies=["rod", "ground"], ratio=-2.0, carrier="bar")
_joint(2, "knife_edge", bodies=["bar"], at=_AT[2], direction=_AXIS[2])
_joint(2, "pfaffian", coefficients=_ROW[2])
_joint(2, "pfaffian", ".1 .2", coefficients=[_ROW[2], _ROW[2][::-1]], label="pfaffian 2, two rows")
_joint(3, "revolute", ".x .y .z .a1 .a2", at=_AT[3], axis=_AXIS[3])
_joint(
    3, "revolute", ".x .y .z .a1 .a2", points=_PAIR[3], axis=_AXIS[3], label="revolute 3, points"
)
_joint(3, "translational", ".n1 .n2 .rx .ry .rz", at=_AT[3], axis=_AXIS[3])
_joint(3, "prismatic", ".n1 .n2 .rx .ry .rz", at=_AT[3], axis=_AXIS[3])
_joint(3, "fixed", ".x .y .z .rx .ry .rz", at=_AT[3])
_joint(3, "spherical", ".x .y .z", at=_AT[3])
_joint(3, "cylindrical", ".n1 .n2 .a1 .a2", at=_AT[3], axis=_AXIS[3])
_joint(3, "universal", ".x .y .z .a", at=_AT[3], axes=[[1.0, 1.0, 0.0], [0.0, 0.0, 3.0]])
_joint(3, "planar", ".n .a1 .a2", at=_AT[3], axis=_AXIS[3])
_joint(3, "screw", ".n1 .n2 .a1 .a2 .s", at=_AT[3], axis=_AXIS[3], pitch=0.01)
_joint(3, "point_on_line", ".n1 .n2", at=_AT[3], axis=_AXIS[3])
_joint(3, "point_on_plane", at=_AT[3], axis=_AXIS[3])
_joint(3, "parallel_axes", ".a1 .a2", axes=[[1.0, 2.0, 2.0], [2.0, 4.0, 4.0]])
_joint(3, "perpendicular_axes", axes=[[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
_joint(3, "distance", points=_PAIR[3], length=1.25)
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
    _ends = {"bodies": ["bar", "ground"], "points": _PAIR[_d]}
    _law: dict[str, Any] = {"stiffness": 100.0, "damping": 1.0}
    _wrench = {"body": "bar", "at": _AT[_d], "force": _AXIS[_d], "torque": _torque}
    _force(_d, "spring_damper", "bodies", "points", "stiffness", **_ends, **_law, length=0.3)
    _force(_d, "applied", "body", **_wrench)
    _force(_d, "applied", "body", **_wrench, follows="body", label=f"applied {_d}, following")
    _force(_d, "torsion_spring", "joint", joint="hinge", **_law, rest=0.1, torque=0.033)
    _rub: dict[str, Any] = {"coefficient": 0.1, "radius": 0.01, "velocity": 1e-3}
    _force(_d, "coulomb_friction", "joint", *_rub, joint="hinge", **_rub)
    _slow = {key: value for key, value in _rub.items() if key != "radius"}
    _label = f"coulomb_friction {_d}, sliding"
    _force(_d, "coulomb_friction", "joint", *_slow, joint="slide", **_slow, label=_label)
    _stiff: list[float] = [100.0, 200.0, 50.0] if _d == 2 else [100.0, 200.0, 300.0, 5.0, 6.0, 7.0]
    _mount = {"bodies": ["bar", "rod"], "stiffness": _stiff, "damping": _stiff[::-1]}
    _force(_d, "bushing", "bodies", "stiffness", "at", **_mount, at=_AT[_d])
    _full = (np.diag(_stiff) + 1.5).tolist()
    _mount |= {"stiffness": _full, "points": _PAIR[_d]}
    _force(_d, "bushing", "bodies", "points", **_mount, label=f"bushing {_d}, matrix")


JOINT_PARTS = {name: part for name, part in PARTS.items() if part.table == "joint"}
FORCE_PARTS = {name: part for name, part in PARTS.items() if part.table == "force"}
DRIVER_PARTS = {name: part for name, part in PARTS.items() if part.table == "driver"}


def _over(parts: Mapping[str, Part]) -> Any:
    return pytest.mark.parametrize("part", parts.values(), ids=parts)


_READ: dict[int, Model] = {}


def _model(part: Part) -> Model:
    """The small model with the part, read once for all that look at it."""
    if id(part) not in _READ:
        _READ[id(part)] = model_from_tables(part.content())
    return _READ[id(part)]


def _again(model: Model) -> Model:
    """The model, written and read again."""
    return model_from_tables(tomllib.loads(write_model(model)))


def _same(first: Model, second: Model) -> bool:
    """Do two models make the same system, leaf by leaf?"""
    return bool(eqx.tree_equal(first.system(), second.system()))


# ---------------------------------------------------------------------------------------------
# Reading
# ---------------------------------------------------------------------------------------------


def test_every_word_is_tried():
    for dimension in (2, 3):
        tried = {p.entry["type"] for p in JOINT_PARTS.values() if p.dimension == dimension}
        assert tried == set(JOINTS[dimension]) | set(SYNONYMS)
        tried = {p.entry["type"] for p in FORCE_PARTS.values() if p.dimension == dimension}
        assert tried == set(FORCES)
    assert set(MOTION_TABLES) == set(MOTIONS)


@_over({name: part for name, part in PARTS.items() if part.table in ("joint", "driver")})
def test_numbers_arrive_in_their_places(part: Part):
    model = _model(part)
    made: Any = model.joints[-1] if part.table == "joint" else model.drivers[-1].motion
    table = dict(part.entry if part.table == "joint" else part.entry["motion"])
    for key in ("name", "type", "bodies", "carrier"):
        table.pop(key, None)
    if "at" in table and made.kind != "knife_edge":
        table["at"] = [table["at"]] * 2
    if "points" in table and made.kind != "distance":
        table["at"] = table.pop("points")
    assert table
    for key, value in table.items():
        read = np.asarray(getattr(made, key))
        assert np.array_equal(read, np.reshape(value, read.shape)), key


@_over(JOINT_PARTS)
def test_joints_are_of_their_type_and_on_their_bodies(part: Part):
    joint = _model(part).joints[-1]
    word = part.entry["type"]
    assert joint.kind == ("translational" if word == "prismatic" else word)
    carrier = [part.entry["carrier"]] if "carrier" in part.entry else []
    assert list(joint.bodies) == part.entry["bodies"] + carrier


@_over(JOINT_PARTS)
def test_rows_are_named_as_agreed(part: Part):
    structure = _model(part).system().structure
    expected = tuple("J" + suffix for suffix in part.rows)
    assert structure.row_names[-len(expected) :] == expected
    assert [structure.row_names[i] for i in structure.rows_of("J")] == list(expected)


@_over(DRIVER_PARTS)
def test_a_driver_is_one_row_with_its_bare_name(part: Part):
    model = _model(part)
    assert isinstance(model.drivers[0], Driver)
    assert model.system().structure.row_names[-1] == "drive"


@pytest.mark.parametrize("dimension", [2, 3])
def test_body_keys_arrive_in_their_places(dimension: int):
    entry = PARTS[f"body {dimension}"].entry
    body = _model(PARTS[f"body {dimension}"]).bodies[-1]
    for key, value in entry.items():
        expected = np.diag(value) if key == "inertia" and dimension == 3 else value
        assert np.array_equal(getattr(body, key), expected), key


def test_rows_of_joints_come_before_rows_of_drivers_in_file_order():
    drives = [
        driver("slide", "translation", {"type": "linear", "rate": 1.0}) | {"name": "second"},
        driver("hinge", "rotation", {"type": "linear", "rate": 1.0}) | {"name": "first"},
    ]
    content = {"driver": drives, **PLANAR, "joint": PLANAR["joint"][::-1]}
    rows = model_from_tables(content).system().structure.row_names
    assert rows == ("slide.n", "slide.r", "hinge.x", "hinge.y", "second", "first")


def test_bodies_keep_their_order():
    content = dict(PLANAR) | {"body": PLANAR["body"][::-1]}
    names = [body.name for body in model_from_tables(content).system().structure.bodies]
    assert names == ["rod", "bar"]


# ---------------------------------------------------------------------------------------------
# Two ways to write one thing
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [2, 3])
def test_prismatic_is_translational(dimension: int):
    models = [
        model_from_tables(PARTS[f"{word} {dimension}"].content())
        for word in ("prismatic", "translational")
    ]
    assert _same(*models)


@_over({n: p for n, p in JOINT_PARTS.items() if "at" in p.entry and "knife" not in n})
def test_at_means_the_same_point_on_both_bodies(part: Part):
    twice = part.content()
    at = twice["joint"][-1].pop("at")
    twice["joint"][-1]["points"] = [at, at]
    assert _same(_model(part), model_from_tables(twice))


def test_points_are_one_for_each_body():
    content = PARTS["revolute 2, points"].content()
    system = model_from_tables(content).system()
    frames = system.marker_frames(system.reference_q)["J"]
    assert np.allclose([f.origin for f in frames], _PAIR[2], atol=1e-15)


def _spatial_body(**keys: Any) -> Model:
    entry = {"name": "top", "mass": 1.0, "inertia": [1.0, 1.0, 1.0], "position": [0.0, 0.0, 0.0]}
    return model_from_tables({"schema": 1, "dimension": 3, "body": [entry | keys]})


def test_orientation_rotation_and_long_quaternions_agree():
    # 120 degrees about (1, 1, 1): x to y, y to z, z to x.
    written = (
        {"orientation": [0.5, 0.5, 0.5, 0.5]},
        {"orientation": [3.0, 3.0, 3.0, 3.0]},
        {"rotation": [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]},
    )
    for keys in written:
        model = _spatial_body(**keys)
        assert np.allclose(model.system().reference_q[3:], 0.5, rtol=0, atol=1e-15), keys
        assert _same(model, _again(model)), keys


def test_angular_velocity_is_given_in_world_axes():
    # A quarter turn about x: the body's y axis is the world's z axis.
    w = np.array([1.0, 2.0, 3.0])
    half = np.sqrt(0.5)
    model = _spatial_body(orientation=[half, half, 0.0, 0.0], angular_velocity=w.tolist())
    system = model.system()
    assert np.allclose(system.initial_v[3:], [1.0, 3.0, -2.0], atol=1e-14)
    # The quaternion's rate for an angular velocity in world axes: (0, w) times it, halved.
    scalar, vector = half, np.array([half, 0.0, 0.0])
    rate = 0.5 * np.append(-w @ vector, scalar * w + np.cross(w, vector))
    assert np.allclose(system.rate(system.reference_q, system.initial_v)[3:], rate, atol=1e-14)


def _whole(value: Any, number: type) -> Any:
    """Ten times the numbers here and inside, made whole, as integers or with a point."""
    if isinstance(value, Mapping):
        return {
            k: v if k in ("schema", "dimension") else _whole(v, number) for k, v in value.items()
        }
    if isinstance(value, list):
        return [_whole(v, number) for v in value]
    return value if isinstance(value, str) else number(np.ceil(10 * value))


@_over({n: p for n, p in PARTS.items() if "matri" not in n})
def test_whole_numbers_may_be_written_without_a_point(part: Part):
    content = part.content()
    models = [model_from_tables(_whole(content, number)) for number in (int, float)]
    assert _same(*models)


def test_what_is_left_out_has_its_default():
    bare = {k: v for k, v in PLANAR.items() if k != "gravity"}
    system = model_from_tables(bare).system()
    assert np.array_equal(system.gravity, [0.0, 0.0])
    assert not np.any(system.initial_v)
    near = PARTS["distance 2"].content()
    del near["joint"][-1]["length"]
    distance: Any = model_from_tables(near).joints[-1]
    assert distance.length is None
    assert [float(row.length) for row in distance.primitives()] == [1.0]
    geared = PARTS["gear 2"].content()
    del geared["joint"][-1]["carrier"]
    geared["joint"][-1]["bodies"] = ["rod", "bar"]
    assert model_from_tables(geared).joints[-1].bodies == ("rod", "bar", "ground")


# ---------------------------------------------------------------------------------------------
# What is read means what is said
# ---------------------------------------------------------------------------------------------


def _motion_value(word: str, t: float) -> float:
    part = PARTS[f"{word} motion"]
    return float(_model(part).drivers[0].motion(t))


@pytest.mark.parametrize(
    ("word", "t", "value"),
    [
        ("sine", 0.75, 0.1 + 0.05 * np.sin(2 * np.pi * 0.5 * 0.75 - 0.2)),
        ("linear", 2.0, 0.1 + 1.5 * 2.0),
        ("polynomial", 2.0, 0.1 - 0.2 * 2.0 + 0.3 * 4.0),
        ("step", 0.0, 0.1),
        ("step", 0.75, 0.2),
        ("step", 1.25, 0.3 - 0.5 * (10 / 4**3 - 15 / 4**4 + 6 / 4**5)),
        ("step", 9.0, -0.2),
        ("table", 2.5, -0.2),
    ],
)
def test_motions_have_their_values(word: str, t: float, value: float):
    assert np.isclose(_motion_value(word, t), value, rtol=0, atol=1e-15)


def test_a_table_motion_is_the_cubic_that_its_values_lie_on():
    # The spline with not-a-knot ends through points of a cubic is that cubic.
    def cubic(t):
        return 0.3 * t**3 - t**2 + 0.1 * t + 0.2

    times = np.array([0.0, 0.4, 1.0, 1.7, 2.0])
    motion = {"type": "table", "times": times.tolist(), "values": cubic(times).tolist()}
    part = PARTS["table motion"].content(motion=motion)
    read = model_from_tables(part).drivers[0].motion
    for t in (0.0, 0.2, 0.9, 1.3, 1.99):
        assert np.isclose(float(read(t)), cubic(t), rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("dimension", "joint", "coordinate", "step"),
    [
        (2, "hinge", "rotation", (0.5 * np.cos(0.25) - 0.5, 0.5 * np.sin(0.25), 0.25)),
        (2, "slide", "translation", (0.0, 0.0, 0.0, 0.25, 0.0, 0.0)),
        (3, "slide", "translation", (0.0, 0.0, 0.25, 0.0, 0.0, 0.0)),
        (3, "hinge", "rotation", (0.0, 0.0, 0.0, 0.0, 0.0, 0.25)),
        (3, "pin", "translation", (0.0, 0.0, 0.25, 0.0, 0.0, 0.0)),
        (3, "pin", "rotation", (0.0, 0.0, 0.0, 0.0, 0.0, 0.25)),
    ],
)
def test_drivers_count_the_second_body_against_the_first(dimension, joint, coordinate, step):
    # Each step moves the joint's second body by +0.25 along or about the axis, as prescribed.
    part = PARTS[f"driven {joint} {coordinate} {dimension}"]
    system = _model(part).system()
    moves = np.zeros(system.structure.nv)
    moves[: len(step)] = step
    moved = system.retract(system.reference_q, jnp.asarray(moves))
    assert np.isclose(system.position_residual(system.reference_q, 0.0)[-1], -0.25, atol=1e-15)
    assert np.isclose(system.position_residual(moved, 0.0)[-1], 0.0, atol=1e-14)


# ---------------------------------------------------------------------------------------------
# Files
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", mechanisms.names())
def test_built_in_mechanisms_read_back_to_the_same_system(name: str, tmp_path: Path):
    model = mechanisms.get(name)
    path = tmp_path / "exported.toml"
    path.write_text(write_model(model), encoding="utf-8")
    back = read_model(path)
    assert (back.name, back.dimension) == (name, model.dimension)
    assert eqx.tree_equal(model.system(), back.system())


@pytest.mark.parametrize("name", ["four-bar-chain", "four-bar-chain-spatial"])
def test_chains_of_any_length_read_back(name: str):
    model = mechanisms.get(f"{name}:2")
    assert len(model.bodies) == 5
    assert _same(model, _again(model))


@_over(PARTS)
def test_every_part_reads_back_to_the_same_system(part: Part):
    model = _model(part)
    assert _same(model, _again(model))


# The pieces of MODEL.md section 1, put together.
_TEXT = """
schema = 1
name = "four-bar"
dimension = 2                       # 2 planar, 3 spatial
gravity = [0.0, -9.81]              # optional; absent = none

[[body]]
name = "crank"
mass = 1.0
inertia = 0.0833
position = [0.0, 0.5]
angle = 1.5707963
velocity = [0.0, 0.0]
angular_velocity = 0.0

[[joint]]
name = "A"
type = "revolute"
bodies = ["ground", "crank"]
at = [0.0, 0.0]

[[joint]]
name = "H"
type = "prismatic"
bodies = ["ground", "crank"]
at = [0.0, 0.0]
axis = [0, 1]

[[driver]]
name = "steering"
joint = "H"
coordinate = "translation"
motion = { type = "sine", offset = 0.0, amplitude = 0.05, frequency = 0.5, phase = 0.0 }

[[force]]
name = "spring"
type = "spring_damper"
bodies = ["crank", "ground"]
points = [[0.1, 0.2], [0.0, 0.4]]
stiffness = 100.0
damping = 0.0
length = 0.3

[[force]]
name = "push"
type = "applied"
body = "crank"
at = [0.0, 1.0]
force = [1.0, 0.0]
torque = 0.0

[[force]]
name = "motor"
type = "torsion_spring"
joint = "A"
stiffness = 0.0
damping = 0.0
rest = 0.0
torque = 0.033

[[force]]
name = "rub"
type = "coulomb_friction"
joint = "A"
coefficient = 0.1
radius = 0.01
velocity = 1e-3
"""


@pytest.mark.parametrize("kind", [str, Path])
def test_a_file_is_read(kind: type, tmp_path: Path):
    path = tmp_path / "four-bar.toml"
    path.write_text(_TEXT, encoding="utf-8")
    model = read_model(kind(path))
    structure = model.system().structure
    assert (model.name, model.dimension) == ("four-bar", 2)
    assert structure.row_names == ("A.x", "A.y", "H.n", "H.r", "steering")
    assert np.array_equal(model.system().gravity, [0.0, -9.81])
    assert float(model.bodies[0].coordinates()[2]) == 1.5707963
