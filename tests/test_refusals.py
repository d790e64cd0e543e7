"""Bad input is refused with one sentence that says what is wrong: exit status 2, and nothing
on standard output."""

import copy
import math
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from model_parts import BASES, driver, MOTION_TABLES, Part, PARTS
from refusing import assert_says, refusal, written
from representatives import representatives, representatives_at
from typer.testing import CliRunner

from jaxmbs.cli._app import app


# One change to a small model

_MISSING = object()


def changed(dimension: int, place: str, value: Any) -> dict[str, Any]:
    """The small model with another value at `place`, such as "joint.0.at"; "joint.+" adds an
    entry to a table that may not be there yet."""
    content: dict[str, Any] = copy.deepcopy(dict(BASES[dimension]))
    *way, last = place.split(".")
    inner: Any = content
    for step in way:
        inner = inner.setdefault(step, []) if isinstance(inner, dict) else inner[int(step)]
    if value is _MISSING:
        del inner[last]
    elif last == "+":
        inner.append(value)
    else:
        inner[int(last) if last.isdigit() else last] = value
    return content


def _case(name: str, dimension: int, place: str, value: Any, *fragments: str) -> Any:
    return pytest.param(dimension, place, value, fragments, id=name)


def _joint(dimension: int, kind: str, name: str = "J", /, **keys: Any) -> dict[str, Any]:
    """The table of a joint of one type, some keys changed."""
    table = PARTS[f"{kind} {dimension}"].entry | {"name": name} | keys
    if "points" in keys:
        table.pop("at", None)
    return table


def _moved(kind: str, joint: str = "hinge", coordinate: str = "rotation", **keys: Any) -> Any:
    """A driver with a motion of one type, some keys changed."""
    return driver(joint, coordinate, {"type": kind, **MOTION_TABLES[kind], **keys})


def _load(kind: str, dimension: int = 2, **keys: Any) -> dict[str, Any]:
    """A force of one type, some keys changed."""
    return PARTS[f"{kind} {dimension}"].entry | keys


def _driven(kind: str, coordinate: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return _joint(3, kind), driver("J", coordinate, {"type": "linear", "rate": 1.0})


_BODY = {2: BASES[2]["body"][0], 3: BASES[3]["body"][0]}
_FLAT = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]

_BODIES = [
    _case("no body", 2, "body", [], "no body", "[[body]]"),
    _case("one bracket", 2, "body", dict(_BODY[2]), "[body]", "[[body]]"),
    _case("no table", 2, "body.0", 3, "body number 1", "3"),
    _case("no name", 2, "body.0.name", _MISSING, "body number 1", "'name'", "missing"),
    _case("empty name", 2, "body.0.name", "", "body", "name", "''"),
    _case("mass 0", 2, "body.0.mass", 0.0, "body 'bar'", "mass", "greater than zero", "0"),
    _case("mass < 0", 3, "body.0.mass", -2.5, "body 'bar'", "mass", "greater than zero", "-2.5"),
    _case("inertia 0", 2, "body.0.inertia", 0.0, "body 'bar'", "inertia", "greater than zero"),
    _case("moment 0", 3, "body.1.inertia", [1.0, 1.0, 0.0], "body 'rod'", "positive definite"),
    _case("moment < 0", 3, "body.0.inertia", [1.0, -1.0, 1.5], "positive definite", "-1"),
    _case(
        "not definite",
        3,
        "body.0.inertia",
        [[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        *("body 'bar'", "inertia", "positive definite", "-1, 1, 3"),
    ),
    _case(
        "not symmetric",
        3,
        "body.0.inertia",
        [[1.0, 0.125, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        *("body 'bar'", "inertia", "symmetric", "0.125"),
    ),
    _case(
        "triangle inequality",
        3,
        "body.0.inertia",
        [1.0, 3.5, 2.0],
        *("body 'bar'", "inertia", "triangle inequality", "1, 2, 3.5"),
    ),
    _case("one moment in space", 3, "body.0.inertia", 0.1, "body 'bar'", "inertia", "0.1"),
    _case("three in the plane", 2, "body.0.inertia", [0.1] * 3, "body 'bar'", "inertia", "number"),
    _case("two moments", 3, "body.0.inertia", [1.0, 1.0], "inertia", "three principal moments"),
    _case("stretched", 3, "body.0.rotation", [*_FLAT[:2], [0.0, 0.0, 2.0]], "not orthogonal"),
    _case("mirrored", 3, "body.0.rotation", [*_FLAT[:2], [0.0, 0.0, -1.0]], "reflection", "-1"),
    _case("flat", 3, "body.1.rotation", _FLAT, "body 'rod'", "rotation", "not orthogonal"),
    _case("zero quaternion", 3, "body.0.orientation", [0.0] * 4, "orientation", "zero length"),
    _case("angle in space", 3, "body.0.angle", 0.1, "body 'bar'", "unknown key 'angle'"),
    _case("rotation in the plane", 2, "body.0.rotation", _FLAT, "unknown key 'rotation'"),
    _case("used twice", 2, "body.1.name", "bar", "body", "'bar'", "twice", "rename"),
    _case("fixed frame", 2, "body.1.name", "ground", "body", "'ground'", "fixed frame"),
]
_JOINTS = [
    _case("unknown type", 2, "joint.0.type", "hinge", "joint 'hinge'", "'hinge'", "revolute"),
    _case("spatial type", 2, "joint.0.type", "screw", "joint 'hinge'", "'screw'", "dimension 3"),
    _case("planar type", 3, "joint.0.type", "gear", "joint 'hinge'", "'gear'", "dimension 2"),
    _case("no type", 2, "joint.0.type", _MISSING, "joint 'hinge'", "'type'", "missing"),
    _case("number as type", 2, "joint.0.type", 3, "joint 'hinge'", "'type'"),
    _case("key of another type", 2, "joint.0.axis", [0.0, 1.0], "joint 'hinge'", "key 'axis'"),
    _case("no place", 2, "joint.0.at", _MISSING, "joint 'hinge'", "`at`", "`points`"),
    _case("two places", 2, "joint.0.points", [[0.0, 0.0]] * 2, "hinge", "`at`", "`points`"),
    _case("body unknown", 2, "joint.0.bodies", ["ground", "box"], "'hinge'", "'box'", "declared"),
    _case("itself", 2, "joint.1.bodies", ["rod", "rod"], "joint 'slide'", "'rod'", "itself"),
    _case("ground itself", 2, "joint.0.bodies", ["ground"] * 2, "joint 'hinge'", "'ground'"),
    _case("one body", 2, "joint.0.bodies", ["bar"], "joint 'hinge'", "2 bodies", "['bar']"),
    _case("three", 2, "joint.0.bodies", ["ground", "bar", "rod"], "joint 'hinge'", "2 bodies"),
    _case("text as bodies", 2, "joint.0.bodies", "bar", "joint 'hinge'", "bodies", "'bar'"),
    _case(
        "edge on ground", 2, "joint.+", _joint(2, "knife_edge", bodies=["ground"]), "'J'", "ground"
    ),
    _case(
        "disk on ground",
        *(3, "joint.+", _joint(3, "rolling_disk", bodies=["ground"]), "joint 'J'", "ground"),
    ),
    _case("row of ground", 2, "joint.+", _joint(2, "pfaffian", bodies=["ground", "bar"]), "ground"),
    _case("edge of two", 2, "joint.+", _joint(2, "knife_edge", bodies=["bar", "rod"]), "one body"),
    _case("carrier", 2, "joint.+", _joint(2, "gear", carrier="arm"), "'J'", "'arm'", "declared"),
    _case("own carrier", 2, "joint.+", _joint(2, "gear", carrier="rod"), "'J'", "carrier 'rod'"),
    _case("radius 0", 3, "joint.+", _joint(3, "rolling_disk", radius=0.0), "'J'", "radius", "0"),
    _case("lying disk", 3, "joint.+", _joint(3, "rolling_disk", axis=[0.0, 0.0, 1.0]), "vertical"),
    _case("length 0", 2, "joint.+", _joint(2, "distance", length=0.0), "'J'", "length", "0"),
    _case("no distance", 2, "joint.+", _joint(2, "distance", points=[[1.0, 1.0]] * 2), "coincide"),
    _case("used twice", 2, "joint.1.name", "hinge", "joint", "'hinge'", "twice", "rename"),
    *(
        _case(f"{kind} {d} without axis", d, "joint.+", _joint(d, kind, **{key: zero}), "'J'", key)
        for kind, d, key, zero in (
            ("translational", 2, "axis", [0.0, 0.0]),
            ("point_on_line", 2, "axis", [0.0, 0.0]),
            ("knife_edge", 2, "direction", [0.0, 0.0]),
            ("revolute", 3, "axis", [0.0, 0.0, 0.0]),
            ("translational", 3, "axis", [0.0, 0.0, 0.0]),
            ("cylindrical", 3, "axis", [0.0, 0.0, 0.0]),
            ("planar", 3, "axis", [0.0, 0.0, 0.0]),
            ("screw", 3, "axis", [0.0, 0.0, 0.0]),
            ("point_on_line", 3, "axis", [0.0, 0.0, 0.0]),
            ("point_on_plane", 3, "axis", [0.0, 0.0, 0.0]),
            ("universal", 3, "axes", [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]),
            ("parallel_axes", 3, "axes", [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
            ("perpendicular_axes", 3, "axes", [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]),
            ("rolling_disk", 3, "axis", [0.0, 0.0, 0.0]),
        )
    ),
]
_DRIVERS = [
    _case("joint unknown", 2, "driver.+", _moved("linear", "pivot"), "driver 'drive'", "'pivot'"),
    _case("sliding hinge", 2, "driver.+", _moved("linear", "hinge", "translation"), "'hinge'"),
    _case("turning slide", 2, "driver.+", _moved("linear", "slide"), "'slide'", "rotation"),
    _case("no such word", 2, "driver.+", _moved("linear", "hinge", "angle"), "'hinge'", "angle"),
    _case(
        "named as joint", 2, "driver.+", _moved("linear") | {"name": "slide"}, "'slide'", "twice"
    ),
    _case("motion unknown", 2, "driver.+", _moved("linear", type="ramp"), "'ramp'", "linear, "),
    _case("no motion", 2, "driver.+", _moved("linear") | {"motion": "linear"}, "motion", "table"),
    _case("untyped", 2, "driver.+", _moved("linear") | {"motion": {"rate": 1.0}}, "'type'"),
    _case("other's key", 2, "driver.+", _moved("linear", phase=0.1), "'drive'", "'phase'", "rate"),
    _case("no rate", 2, "driver.+", _moved("linear") | {"motion": {"type": "linear"}}, "'rate'"),
    _case(
        "no term", 2, "driver.+", _moved("polynomial", coefficients=[]), "'drive'", "coefficients"
    ),
    *(
        _case(f"{kind}, times {what}", 2, "driver.+", _moved(kind, times=times), "'drive'", *said)
        for kind, size in (("table", 4), ("step", 3))
        for what, times, said in (
            ("going back", [0.0, 1.0, 0.5, 3.0][:size], ("increase", "entry 3", "0.5")),
            ("standing still", [0.0, 1.0, 1.0, 3.0][:size], ("increase", "entry 3", "1")),
            ("missing", [0.0], ("times", "values", "1 and")),
        )
    ),
]
_FORCES = [
    _case(
        "unknown type", 2, "force.+", _load("applied", type="gust"), "'load'", "'gust'", "applied"
    ),
    _case("no type", 2, "force.+", {"name": "load", "body": "bar"}, "force 'load'", "'type'"),
    _case(
        "body unknown", 2, "force.+", _load("applied", body="box"), "'load'", "'box'", "declared"
    ),
    _case("ground", 2, "force.+", _load("applied", body="ground"), "force 'load'", "ground"),
    _case("nothing", 2, "force.+", {"name": "load", "type": "applied", "body": "bar"}, "`torque`"),
    _case("follows", 2, "force.+", _load("applied", follows="wind"), "follows", "'wind'", "'body'"),
    _case("planar torque", 2, "force.+", _load("applied", torque=[0.0, 0.0, 1.0]), "torque"),
    _case("spatial torque", 3, "force.+", _load("applied", 3, torque=1.0), "'load'", "torque"),
    _case("end unknown", 2, "force.+", _load("spring_damper", bodies=["bar", "box"]), "'box'"),
    _case("one end", 2, "force.+", _load("spring_damper", bodies=["bar"]), "'load'", "2 bodies"),
    _case("own spring", 2, "force.+", _load("spring_damper", bodies=["bar"] * 2), "itself"),
    _case("joint unknown", 2, "force.+", _load("torsion_spring", joint="pivot"), "'pivot'"),
    _case(
        "rub unknown", 2, "force.+", _load("coulomb_friction", joint="pivot"), "'load'", "'pivot'"
    ),
    _case("twist a slide", 2, "force.+", _load("torsion_spring", joint="slide"), "'slide'"),
]
_HEAD = [
    _case("no schema", 2, "schema", _MISSING, "'schema'", "missing", "1"),
    _case("another schema", 2, "schema", 2, "schema", "1", "2"),
    _case("schema as text", 2, "schema", "1", "schema", "'1'"),
    _case("schema true", 2, "schema", True, "schema", "True"),
    _case("no dimension", 2, "dimension", _MISSING, "'dimension'", "missing", "2 (planar)"),
    _case("dimension 1", 2, "dimension", 1, "dimension", "2 (planar) or 3 (spatial)", "got 1"),
    _case("dimension 2.0", 2, "dimension", 2.0, "dimension", "2 (planar)", "got 2.0"),
    _case("dimension of another", 2, "dimension", 3, "body 'bar'"),
    _case("unknown key", 2, "bodies", [], "'bodies'", "body"),
    _case("name", 2, "name", 4, "name", "4"),
    _case("gravity as a number", 2, "gravity", 9.81, "gravity", "9.81"),
    _case("gravity too long", 2, "gravity", [0.0, 0.0, -9.81], "gravity", "2 numbers"),
    _case("gravity too short", 3, "gravity", [0.0, -9.81], "gravity", "3 numbers"),
    _case("gravity not finite", 2, "gravity", [0.0, math.inf], "gravity", "finite", "inf"),
    _case("gravity as text", 2, "gravity", [0.0, "g"], "gravity", "number", "'g'"),
    _case("gravity true", 2, "gravity", [0.0, True], "gravity", "number", "True"),
]


@pytest.mark.parametrize(
    ("dimension", "place", "value", "fragments"),
    [*_HEAD, *_BODIES, *_JOINTS, *_DRIVERS, *_FORCES],
)
def test_what_is_wrong_is_named(
    dimension: int, place: str, value: Any, fragments: tuple[str, ...], tmp_path: Path
):
    path = written(changed(dimension, place, value), tmp_path)
    assert_says(refusal("analyze", path), *fragments)


@pytest.mark.parametrize(
    ("kind", "given", "offered"),
    [
        ("revolute", "translation", ("revolute", "rotation")),
        ("translational", "rotation", ("translational", "translation")),
        ("cylindrical", "twist", ("rotation", "translation")),
    ],
)
def test_coordinates_that_a_joint_has_are_offered(
    kind: str, given: str, offered: tuple[str, ...], tmp_path: Path
):
    joint, motion = _driven(kind, given)
    content = changed(3, "joint.+", joint) | {"driver": [motion]}
    sentence = refusal("analyze", written(content, tmp_path))
    assert_says(sentence, "driver 'drive'", "joint 'J'", given, *offered)


_UNDRIVEN = sorted(
    {p.entry["type"] for p in PARTS.values() if p.table == "joint" and p.dimension == 3}
    - {"revolute", "translational", "prismatic", "cylindrical"}
)


# Tendons have the one coordinate, as slides have.
@pytest.mark.parametrize(
    ("kind", "coordinate"),
    [
        (kind, coordinate)
        for coordinate in ("rotation", "translation")
        for kind in _UNDRIVEN
        if not (kind.endswith("_tendon") and coordinate == "translation")
    ],
)
def test_no_other_joint_is_driven(kind: str, coordinate: str, tmp_path: Path):
    joint, motion = _driven(kind, coordinate)
    content = changed(3, "joint.+", joint) | {"driver": [motion]}
    sentence = refusal("analyze", written(content, tmp_path))
    assert_says(sentence, "driver 'drive'", "joint 'J'", kind, coordinate)


@pytest.mark.parametrize("moments", [[1.0, 1.0, 2.0], [0.1, 0.2, 0.3], [0.5, 0.01, 0.51]])
def test_moments_of_a_thin_plate_or_rod_are_accepted(moments: list[float], tmp_path: Path):
    # Whatever comes next is refused instead: the file is read to its end.
    content = changed(3, "body.0.inertia", moments) | {"force": [{"name": "load"}]}
    assert_says(refusal("analyze", written(content, tmp_path)), "force 'load'", "'type'")


# The same mistake, everywhere

_over_parts = pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)


def _numbers(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every number inside."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _numbers(inner, (*way, key))
    elif not isinstance(value, str | bool):
        yield way


def _arrays(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every array of numbers, or of such arrays, inside."""
    if isinstance(value, dict):
        for key, inner in value.items():
            # Polynomials have as many terms as they want.
            if (value.get("type"), key) != ("coupling", "coefficients"):
                yield from _arrays(inner, (*way, key))
    elif isinstance(value, list) and not isinstance(value[0], str):
        # A polynomial has as many terms, a curve as many points, a polytope as many vertices, and a
        # Pfaffian constraint as many rows, as it wants.
        free = (("motion", "coefficients"), ("curve",), ("radii",), ("first", "vertices"))
        if way not in free and not (way == ("coefficients",) and isinstance(value[0], list)):
            yield way
        for k, inner in enumerate(value):
            yield from _arrays(inner, (*way, k))


def _first_of_each_array(ways: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    return (way for way in ways if not any(step for step in way if isinstance(step, int)))


def _alone(part: Part) -> dict[str, Any]:
    """The small model with the part, without the bodies and joints that it can do without."""
    content = part.content()
    own = content[part.table][-1]
    if part.table == "body":
        return content | {"body": [own], "joint": []}
    on = own.get("joint", "")
    # A pattern of names matches them all.
    named = [j for j in content["joint"] if j is own or on in (j["name"], "*")]
    return content | {"joint": named}


def _with(part: Part, way: tuple[Any, ...], change: Callable[[Any], Any]) -> dict[str, Any]:
    """The part, in which `change` has been made to what lies at `way`, and what it stands on."""
    content = _alone(part)
    *outer, last = way
    inner: Any = content[part.table][-1]
    for step in outer:
        inner = inner[step]
    inner[last] = change(inner[last])
    return content


def _unsaid(part: Part, way: tuple[Any, ...], change: Any, folder: Path, *said: str) -> list[str]:
    """The refusal of a change, if it does not name the part, the key and what it should."""
    sentence = refusal("analyze", written(_with(part, way, change), folder), modes=("--json",))
    key = way[1] if way[0] == "motion" else way[0]
    wanted = (f"{part.table} '{part.entry['name']}'", *said)
    clear = re.search(rf"\b{key}\b", sentence) and all(word in sentence for word in wanted)
    return [] if clear else [f"{way}: {sentence}"]


# The entries of one array are read alike.
@pytest.mark.parametrize(
    "chosen",
    [pytest.param(iter, marks=pytest.mark.thorough), _first_of_each_array],
    ids=["all", "first of each array"],
)
@_over_parts
def test_every_number_is_a_finite_number(
    part: Part, chosen: Callable[[Iterable[Any]], Iterator[Any]], tmp_path: Path
):
    wrong = ((math.nan, "nan"), (math.inf, "inf"), (-math.inf, "-inf"))
    wrong += ((True, "True"),)
    unclear: list[str] = []
    for way in chosen(_numbers(part.entry)):
        for value, shown in wrong:
            said = ("number", f"got {shown}.")
            unclear += _unsaid(part, way, lambda _, x=value: x, tmp_path, *said)
        # A text may be an expression; one that is a number was meant to be that.
        said = ("'0.5'", "number in quotes")
        unclear += _unsaid(part, way, lambda _: "0.5", tmp_path, *said)
    assert not unclear


@_over_parts
def test_every_array_has_its_length(part: Part, tmp_path: Path):
    unclear: list[str] = []
    for way in _arrays(part.entry):
        for change in (lambda x: x[:-1], lambda x: [*x, x[-1]], lambda _: []):
            unclear += _unsaid(part, way, change, tmp_path)
    assert not unclear


def test_an_array_of_wrong_length_is_shown(tmp_path: Path):
    path = written(changed(2, "body.0.position", [0.5, 0.25, 0.125]), tmp_path)
    assert_says(refusal("analyze", path), "body 'bar'", "position", "2 numbers", "0.125")


@_over_parts
def test_every_key_is_known(part: Part, tmp_path: Path):
    sentence = refusal("analyze", written(part.content(colour="red"), tmp_path))
    assert_says(sentence, part.table, part.entry["name"], "unknown key 'colour'", "name")


@_over_parts
def test_every_key_that_is_needed_must_stand(part: Part, tmp_path: Path):
    for key in part.required:
        content = _alone(part)
        del content[part.table][-1][key]
        sentence = refusal("analyze", written(content, tmp_path))
        # A force of a pattern may be named with its first joint.
        patterned = part.entry.get("joint") == "*" and " in hinge" in sentence
        name = f"{part.entry['name']} in hinge" if patterned else part.entry["name"]
        assert_says(sentence, f"{part.table} '{name}'")
        assert f"'{key}'" in sentence or f"`{key}`" in sentence, sentence


@pytest.mark.parametrize("name", [n for n in PARTS if n.endswith(("2", "step motion"))])
def test_names_hold_no_comma_full_stop_or_quote(name: str, tmp_path: Path):
    for mark in (",", ".", "'", '"'):
        content = PARTS[name].content(name=f"left{mark}right")
        sentence = refusal("analyze", written(content, tmp_path))
        assert_says(sentence, PARTS[name].table, f"left{mark}right", "full stops")


def test_force_names_are_used_once(tmp_path: Path):
    content = dict(BASES[2]) | {"force": [_load("applied"), _load("torsion_spring")]}
    assert_says(refusal("analyze", written(content, tmp_path)), "force", "'load'", "twice")


# Configurations that are not closed


@pytest.mark.parametrize(
    ("dimension", "joint", "amount"),
    representatives_at(
        [
            (2, _joint(2, "revolute", "hinge 2", points=[[1.0, 0.0], [1.0, -0.003]]), "0.003 m"),
            (2, _joint(2, "distance", length=1.25), "0.25 m"),
            (
                3,
                _joint(3, "perpendicular_axes", axes=[[1.0, 0.0, 0.0], [-0.01, 1.0, 0.0]]),
                "0.01 rad",
            ),
            (3, _joint(3, "universal", axes=[[1.0, 0.0, 0.0], [0.01, 0.0, 1.0]]), "0.01 rad"),
            (3, _joint(3, "rolling_disk", axis=[0.0, 2.0, 0.0]), "0.5 m"),
        ],
        *(0, 2),
    ),
    ids=["points apart", "another length", "axes askew", "cross askew", "disk in the air"],
)
def test_an_open_joint_is_named_with_its_gap(
    dimension: int, joint: dict[str, Any], amount: str, tmp_path: Path
):
    path = written(changed(dimension, "joint.+", joint), tmp_path)
    sentence = refusal("analyze", path)
    assert_says(sentence, f"joint '{joint['name']}'", f"by {amount}", "--assemble")


def test_an_open_driver_is_named_with_its_gap(tmp_path: Path):
    path = written(changed(2, "driver.+", _moved("linear")), tmp_path)
    assert_says(refusal("analyze", path), "driver 'drive'", "by 0.1 rad", "--assemble")
    # 0.1 + 1.5 t
    late = refusal("analyze", path, "--time", "2")
    assert_says(late, "driver 'drive'", "by 3.1 rad", "time 2", "--assemble")


def test_a_residual_of_1e_8_of_the_characteristic_length_is_closed(tmp_path: Path):
    # Every joint lies 0.5 m from the centres of mass of its bodies.
    for gap, status in ((0.9e-8 * 0.5, 0), (1.1e-8 * 0.5, 2)):
        joint = dict(BASES[2]["joint"][0]) | {"points": [[0.0, 0.0], [gap, 0.0]]}
        del joint["at"]
        path = written(changed(2, "joint.0", joint), tmp_path)
        result = CliRunner().invoke(app, ["analyze", path, "--json"], catch_exceptions=False)
        assert result.exit_code == status, gap
        assert bool(result.stdout) == (status == 0)


def test_what_cannot_be_closed_is_a_failed_analysis(tmp_path: Path):
    # The bar's ends are 1 m apart, the points of the ground that they are pinned to 3 m.
    pin = _joint(2, "revolute", "pin", bodies=["ground", "bar"], points=[[3.0, 0.0], [1.0, 0.0]])
    path = written(changed(2, "joint.+", pin), tmp_path)
    assert_says(refusal("analyze", path), "joint 'pin'", "by 2 m", "--assemble")
    sentence = refusal("analyze", path, "--assemble", status=1)
    gaps = dict(re.findall(r"'(\w+)' by ([\d.]+) m\b", sentence))
    assert set(gaps) == {"hinge", "pin"}
    # However the bar lies, its ends are at least 2 m away from their points, together. What is
    # said of a joint is the larger of its two components.
    assert sum(map(float, gaps.values())) * math.sqrt(2) >= 2


# Files and options


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("schema = \n", ("TOML", "line 1")),
        ("schema = 1\nschema = 1\n", ("TOML", "line 2")),
        ("[[body]\n", ("TOML",)),
        ("\udcff\udcfe", ("TOML",)),
        ("", ("'schema'", "missing")),
    ],
    ids=["no value", "key twice", "bracket", "not text", "empty"],
)
def test_what_is_no_model_file_is_refused(text: str, fragments: tuple[str, ...], tmp_path: Path):
    path = tmp_path / "broken.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    sentence = refusal("analyze", str(path))
    assert_says(sentence, *fragments)
    assert "broken.toml" in sentence or not text


def test_what_cannot_be_read_is_refused(tmp_path: Path):
    folder = tmp_path / "folder.toml"
    folder.mkdir()
    assert_says(refusal("analyze", str(folder)), "folder.toml", "directory")
    assert_says(refusal("analyze", str(tmp_path)), str(tmp_path), "mobile-robot")
    assert_says(refusal("analyze", str(tmp_path / "none.toml")), "none.toml", "No such file")


@pytest.mark.parametrize("verb", ["analyze", "export"])
def test_unknown_mechanisms_are_refused_with_the_nearest_name(verb: str):
    assert_says(refusal(verb, "mobil-robot"), "'mobil-robot'", "'mobile-robot'", "bennett")
    assert_says(refusal(verb, "door:2"), "'door:2'", "four-bar-chain")
    for count in ("0", "-1", "two", "1.5"):
        assert_says(refusal(verb, f"four-bar-chain:{count}"), f"four-bar-chain:{count}", "whole")


@pytest.mark.parametrize("verb", ["analyze", "export"])
def test_a_name_too_long_for_a_file_is_refused(verb: str):
    assert_says(refusal(verb, "x" * 300), "x" * 20, "mobile-robot")


def test_exports_that_cannot_be_written_are_refused(tmp_path: Path):
    for out in (tmp_path / "nowhere" / "door.toml", tmp_path):
        assert_says(refusal("export", "door", "--out", str(out)), str(out), "write")


@pytest.mark.parametrize(
    ("option", "value", "fragments"),
    [
        *(("--tolerance", t, ("--tolerance", t)) for t in ("0", "-1", "nan", "inf", "1")),
        *(("--time", t, ("--time", t)) for t in ("nan", "inf")),
        ("--subset", "hinge,door", ("'door'", "hinge.x")),
        ("--subset", "hinge,,slide", ("--subset", "'hinge,,slide'", "empty")),
        ("--subset", "", ("--subset", "empty")),
        *(
            ("--combination", text, (f"combination '{text}'", *said))
            for text, *said in (
                ("slide.n - W2", "'W2'", "hinge.x"),
                ("hinge.x * slide.n", "linear"),
                ("hinge.x + slide.n)", "')'"),
                ("hinge.x / 0", "divisor"),
                ("0 * hinge.x", "zero"),
                ("hinge.x + 1", "constant"),
                ("1e999 * hinge.x", "finite"),
                ("", "end"),
            )
        ),
        # More of each kind.
        *(
            pytest.param(
                "--combination", text, (f"combination '{text}'", *said), marks=pytest.mark.thorough
            )
            for text, *said in (
                ("hinge", "'hinge'", "hinge.x"),
                ("hinge.x slide.n", "linear"),
                ("(hinge.x + slide.n", "parenthesis"),
                ("hinge.x +", "end"),
                ("1 / hinge.x", "divisor"),
                ("hinge.x - hinge.x", "zero"),
                ("2", "constant"),
                ("1e200 * 1e200 * hinge.x", "finite"),
            )
        ),
    ],
)
def test_options_that_mean_nothing_are_refused(
    option: str, value: str, fragments: tuple[str, ...], tmp_path: Path
):
    path = written(dict(BASES[2]), tmp_path)
    assert_says(refusal("analyze", path, option, value), *fragments)


@pytest.mark.parametrize("time", representatives(["-0.001", "3.001"], "3.001"))
def test_times_outside_a_table_are_refused(time: str, tmp_path: Path):
    path = written(changed(2, "driver.+", _moved("table")), tmp_path)
    for assemble in ((), ("--assemble",)):
        sentence = refusal("analyze", path, "--time", time, *assemble)
        assert_says(sentence, "driver 'drive'", time, "table", "0 s", "3 s", "--time")


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (("analyze", "door", "--method", "lu"), ("--method", "'lu'", "qr", "svd", "rank")),
        (("analyze", "door", "--tolerance", "small"), ("--tolerance", "number")),
        (("analyze", "door", "--colour"), ("--colour",)),
        (("analyze",), ("MODEL",)),
        (("export",), ("NAME",)),
        (("analyse", "door"), ("'analyse'",)),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("mode", [(), ("--json",)], ids=["text", "json"])
def test_words_that_are_no_command_are_refused(
    arguments: tuple[str, ...], fragments: tuple[str, ...], mode: tuple[str, ...]
):
    result = CliRunner().invoke(app, [*arguments, *mode], catch_exceptions=False)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert_says(result.stderr, *fragments)
