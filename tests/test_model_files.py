"""Model files: whatever `io/REFERENCE.md` admits is read, and means what is said there."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import keeps_points_in_at, MECHANISMS
from model_parts import (
    COMPLIANCE_PARTS,
    driver,
    DRIVER_PARTS,
    ELEMENT_PARTS,
    FORCE_PARTS,
    JOINT_PARTS,
    MOTION_TABLES,
    PAIR,
    Part,
    PARTS,
    PLANAR,
)
from representatives import representatives, representatives_at

from jaxmbs import Driver, mechanisms, Model
from jaxmbs.io import model_from_tables, read_model, write_model
from jaxmbs.io._registry import COMPLIANCES, ELEMENTS, FORCES, JOINTS, MOTIONS, SYNONYMS


def _over(parts: Mapping[str, Part]) -> Any:
    return pytest.mark.parametrize("part", parts.values(), ids=parts)


# One of each table and dimension: `test_part_fields.py` writes and reads all parts together.
_USUAL = (
    "body 2",
    "body 3, matrices",
    "gear 2",
    "knife_edge 2",
    "pfaffian 2, two rows",
    "coupling 3",
    "screw 3",
    "rolling_disk 3",
    "step motion",
    "driven pin translation 3",
    "bushing 2",
    "applied 3, following",
    "reflected_mass 3",
    "rod 2",
    "joint compliance 3",
)


def _over_usual(parts: Mapping[str, Part]) -> Any:
    """As `_over`; the usual run takes those of `_USUAL`."""
    kept = [part for name, part in parts.items() if name in _USUAL]
    return pytest.mark.parametrize("part", representatives(parts.values(), *kept), ids=parts)


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
        assert tried == set(FORCES) - ({"ball_spring"} if dimension == 2 else set())
        tried = {p.entry["type"] for p in COMPLIANCE_PARTS.values() if p.dimension == dimension}
        assert tried == set(COMPLIANCES)
    assert {p.entry["type"] for p in ELEMENT_PARTS.values()} == set(ELEMENTS[3])
    assert set(MOTION_TABLES) == set(MOTIONS)


@_over({name: part for name, part in PARTS.items() if part.table in ("joint", "driver")})
def test_numbers_arrive_in_their_places(part: Part):
    model = _model(part)
    made: Any = model.joints[-1] if part.table == "joint" else model.drivers[-1].motion
    table = dict(part.entry if part.table == "joint" else part.entry["motion"])
    for key in ("name", "type", "bodies", "carrier", "measures"):
        table.pop(key, None)
    if "at" in table and np.ndim(made.at) == 2:
        table["at"] = [table["at"]] * 2
    if "points" in table and keeps_points_in_at(type(made)):
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
    assert structure.row_names[len(structure.row_names) - len(expected) :] == expected
    if expected:
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


@_over_usual({n: p for n, p in JOINT_PARTS.items() if "at" in p.entry and "knife" not in n})
def test_at_means_the_same_point_on_both_bodies(part: Part):
    twice = part.content()
    at = twice["joint"][-1].pop("at")
    twice["joint"][-1]["points"] = [at, at]
    assert _same(_model(part), model_from_tables(twice))


def test_points_are_one_for_each_body():
    content = PARTS["revolute 2, points"].content()
    system = model_from_tables(content).system()
    frames = system.marker_frames(system.reference_q)["J"]
    assert np.allclose([f.origin for f in frames], PAIR[2], atol=1e-15)


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
        found = {
            k: v if k in ("schema", "dimension") else _whole(v, number) for k, v in value.items()
        }
        if "senses" in value:
            found["senses"] = [number(sense) for sense in value["senses"]]
        return found
    if isinstance(value, list):
        return [_whole(v, number) for v in value]
    return value if isinstance(value, str) else number(np.ceil(10 * value))


@_over_usual({n: p for n, p in PARTS.items() if "matri" not in n})
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


@pytest.mark.parametrize(
    "name",
    representatives(
        [m.name for m in MECHANISMS if m.in_files],
        "mobile-robot",
        "elastic-parallelogram",
        "driven-slider-crank",
        "whipple-bicycle",
    ),
)
def test_built_in_mechanisms_read_back_to_the_same_system(name: str, tmp_path: Path):
    model = mechanisms.get(name)
    path = tmp_path / "exported.toml"
    path.write_text(write_model(model), encoding="utf-8")
    back = read_model(path)
    assert (back.name, back.dimension) == (name, model.dimension)
    # Which numbers were chosen is said in the file.
    assert path.read_text(encoding="utf-8").startswith("# Chosen")
    assert eqx.tree_equal(model.system(), back.system())


@pytest.mark.parametrize(
    "name", representatives_at(["four-bar-chain", "four-bar-chain-spatial"], 0)
)
def test_chains_of_any_length_read_back(name: str):
    model = mechanisms.get(f"{name}:2")
    assert len(model.bodies) == 5
    assert _same(model, _again(model))


@_over_usual(PARTS)
def test_every_part_reads_back_to_the_same_system(part: Part):
    model = _model(part)
    assert _same(model, _again(model))


# The pieces of `io/REFERENCE.md`, put together.
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
