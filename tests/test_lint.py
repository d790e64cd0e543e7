"""Findings about models: planted defects are found and named, and nothing in good models."""

import copy
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomlkit
from typer.testing import CliRunner

import jaxmbs as jm
from jaxmbs import forces, spatial
from jaxmbs._forces import AbstractForce
from jaxmbs._lint import checked, RULES, Severity, with_possible_bodies
from jaxmbs.cli._app import app
from jaxmbs.io import model_from_tables


# ---------------------------------------------------------------------------------------------
# Good models, as the tables of their files: equal structures share a program
# ---------------------------------------------------------------------------------------------


def four_bar(rng: np.random.Generator | None = None) -> dict[str, Any]:
    """A parallelogram in the plane, driven, with a force of each kind."""
    crank, base, rate = np.array([0.3, 0.4]), np.array([1.0, 0.0]), 2.0
    mass, inertia = np.ones(3), 0.1 * np.ones(3)
    if rng is not None:
        crank = rng.uniform(0.2, 0.9) * np.array([np.cos(x := rng.uniform(0.5, 1.5)), np.sin(x)])
        base, rate = np.array([rng.uniform(0.5, 2.0), 0.0]), rng.uniform(-3, 3)
        mass, inertia = rng.uniform(0.1, 20, 3), rng.uniform(0.01, 1.0, 3)
    speed = rate * np.array([-crank[1], crank[0]])
    places = [crank / 2, crank + base / 2, base + crank / 2]
    motions = [(speed / 2, rate), (speed, 0.0), (speed / 2, rate)]
    bodies = [
        {
            "name": name,
            "mass": float(mass[k]),
            "inertia": float(inertia[k]),
            "position": places[k].tolist(),
            "velocity": motions[k][0].tolist(),
            "angular_velocity": float(motions[k][1]),
        }
        for k, name in enumerate(("crank", "coupler", "rocker"))
    ]
    pairs = {"A": ("ground", "crank"), "B": ("crank", "coupler"), "C": ("coupler", "rocker")}
    pairs["D"] = ("rocker", "ground")
    points = {"A": 0 * base, "B": crank, "C": crank + base, "D": base}
    joints = [
        {
            "name": name,
            "type": "revolute",
            "bodies": list(pair),
            "points": [points[name].tolist(), points[name].tolist()],
        }
        for name, pair in pairs.items()
    ]
    return {
        "schema": 1,
        "name": "four-bar",
        "dimension": 2,
        "gravity": [0.0, -9.81],
        "body": bodies,
        "joint": joints,
        "driver": [
            {
                "name": "motor",
                "joint": "A",
                "coordinate": "rotation",
                "motion": {"type": "linear", "offset": 0.0, "rate": float(rate)},
            }
        ],
        "force": [
            {
                "name": "spring",
                "type": "spring_damper",
                "bodies": ["crank", "ground"],
                "points": [[0.1, 0.3], [0.0, 1.0]],
                "stiffness": 100.0,
            },
            {"name": "push", "type": "applied", "body": "coupler", "force": [1.0, 0.0]},
            {"name": "coil", "type": "torsion_spring", "joint": "D", "torque": 0.1},
            {
                "name": "rub",
                "type": "coulomb_friction",
                "joint": "B",
                "coefficient": 0.1,
                "radius": 0.01,
                "velocity": 1e-3,
            },
        ],
    }


def pendulum(rng: np.random.Generator | None = None) -> dict[str, Any]:
    """One body in space on one hinge."""
    mass, moments, place = 2.0, np.array([0.1, 0.2, 0.25]), np.array([0.3, 0.0, -0.4])
    if rng is not None:
        mass, place = rng.uniform(0.1, 50), rng.normal(size=3)
        # Of three boxes along the axes: the triangle inequality is kept.
        squares = rng.uniform(0.01, 0.1, 3)
        moments = mass * (np.sum(squares) - squares)
    return {
        "schema": 1,
        "name": "pendulum",
        "dimension": 3,
        "gravity": [0.0, 0.0, -9.81],
        "body": [
            {
                "name": "bob",
                "mass": float(mass),
                "inertia": moments.tolist(),
                "position": place.tolist(),
            }
        ],
        "joint": [_hinge("hinge", "bob", [0.0, 0.0, 0.0])],
    }


def _hinge(name: str, body: str, at: Any, axis: Any = (0.0, 1.0, 0.0)) -> dict[str, Any]:
    pair = ["ground", body]
    return {"name": name, "type": "revolute", "bodies": pair, "at": list(at), "axis": list(axis)}


# ---------------------------------------------------------------------------------------------
# Defects, each planted in one of them
# ---------------------------------------------------------------------------------------------


def changed(make: Callable[[], dict[str, Any]], *path: Any, **values: Any) -> dict[str, Any]:
    content = copy.deepcopy(make())
    entry: Any = content
    for key in path:
        entry = entry[key]
    entry.update(values)
    return content


def at_rest() -> dict[str, Any]:
    content = four_bar()
    for body in content["body"]:
        body.update(velocity=[0.0, 0.0], angular_velocity=0.0)
    content["driver"][0]["motion"]["rate"] = 0.0
    return content


def with_motor(actuator: dict[str, Any], **keys: Any) -> dict[str, Any]:
    content = four_bar()
    joint = content["driver"][0]["joint"]
    motor = {"name": "engine", "type": "motor", "joint": joint, "actuator": actuator, **keys}
    content["force"].append(motor)
    return content


def with_stop(**keys: Any) -> dict[str, Any]:
    content = four_bar()
    joint = content["driver"][0]["joint"]
    stop = {"name": "buffer", "type": "joint_stop", "joint": joint, "stiffness": 1e4, **keys}
    content["force"].append(stop)
    return content


def with_contact() -> dict[str, Any]:
    """A sphere about a body of the four-bar, whose centre is behind the surface."""
    content = four_bar()
    body = content["body"][0]
    floor = {"type": "half_space", "normal": [0.0, 1.0], "at": [0.0, body["position"][1] + 0.01]}
    shapes = {"first": {"type": "sphere", "radius": 0.02}, "second": floor}
    contact = {"name": "touch", "type": "contact", "bodies": [body["name"], "ground"]}
    content["force"].append(contact | shapes | {"stiffness": 1e4})
    return content


def with_tendon(*forces: dict[str, Any]) -> dict[str, Any]:
    """A tendon along the four-bar."""
    content = four_bar()
    ends = [content["body"][k]["position"] for k in (0, -1)]
    bodies = [content["body"][k]["name"] for k in (0, -1)]
    tendon = {"name": "cord", "type": "path_tendon", "bodies": bodies, "points": ends}
    content["joint"].append(tendon)
    content["force"] += forces
    return content


def resting(offset: float = 0.0) -> dict[str, Any]:
    return {"type": "linear", "rate": 0.0, "offset": offset}


def with_inertia(*inertia: Any) -> dict[str, Any]:
    return changed(pendulum, "body", 0, inertia=list(inertia))


# The whole list of codes that are found, and a part that must be named with the first.
PLANTED: dict[str, tuple[Callable[[], dict[str, Any]], tuple[str, ...], str]] = {
    "a joint open by a millimetre": (
        lambda: changed(four_bar, "joint", 1, points=[[0.3, 0.4], [0.3, 0.401]]),
        ("JM301",),
        "B",
    ),
    "a driver that stands elsewhere": (
        lambda: changed(four_bar, "driver", 0, "motion", offset=0.05),
        ("JM301",),
        "motor",
    ),
    "a loop that never closes": (
        lambda: changed(four_bar, "joint", 2, points=[[1.3, 0.4], [7.0, 0.4]]),
        ("JM202", "JM301"),
        "C",
    ),
    "velocities that break a joint": (
        lambda: changed(four_bar, "body", 1, velocity=[0.0, 0.0]),
        ("JM302",),
        "B",
    ),
    "a body as light as dust": (
        lambda: changed(four_bar, "body", 1, mass=1e-6, inertia=1e-7),
        ("JM402", "JM402"),
        "coupler",
    ),
    "kg mm2": (lambda: changed(four_bar, "body", 2, inertia=1e5), ("JM403",), "rocker"),
    "an inertia of nothing": (
        lambda: changed(four_bar, "body", 0, inertia=1e-10),
        ("JM403",),
        "crank",
    ),
    "kg mm2 in its own body": (
        lambda: changed(four_bar, "body", 2, inertia=1e-7),
        ("JM403",),
        "rocker",
    ),
    "gravity in mm/s2": (lambda: changed(pendulum, gravity=[0.0, 0.0, -9810.0]), ("JM406",), "pen"),
    "gravity in km/s2": (
        lambda: changed(pendulum, gravity=[0.0, 0.0, -9.81e-3]),
        ("JM406",),
        "pen",
    ),
    "a centre of mass in mm": (
        lambda: changed(pendulum, "body", 0, position=[300.0, 0.0, -400.0]),
        ("JM405",),
        "bob",
    ),
    "a spring without stiffness": (
        lambda: changed(four_bar, "force", 0, stiffness=0.0),
        ("JM502",),
        "spring",
    ),
    "a force of zero": (
        lambda: changed(four_bar, "force", 1, force=[0.0, 0.0]),
        ("JM502",),
        "push",
    ),
    "a torsion spring of zero": (
        lambda: changed(four_bar, "force", 2, torque=0.0),
        ("JM502",),
        "coil",
    ),
    "friction of zero": (
        lambda: changed(four_bar, "force", 3, coefficient=0.0),
        ("JM502",),
        "rub",
    ),
    "a motor without a command": (
        lambda: with_motor({"type": "ideal"}, command=resting()),
        ("JM505",),
        "engine",
    ),
    "a motor of no gains": (
        lambda: with_motor(
            {"type": "dc_motor", "torque_constant": 0.1, "resistance": 1.0},
            controller={"type": "pid", "proportional": 0.0, "derivative": 0.0},
            reference=resting(1.0),
        ),
        ("JM505",),
        "engine",
    ),
    "a stop inside of the range": (
        lambda: with_stop(upper=-0.1),
        ("JM506",),
        "buffer",
    ),
    "a sphere within a half-space": (with_contact, ("JM507",), "touch"),
    "a tendon without a force": (with_tendon, ("JM508",), "cord"),
    "a driver that rests": (at_rest, ("JM503",), "motor"),
    "a broken triangle inequality": (
        lambda: with_inertia(0.1, 0.1, 0.25),
        ("JM401",),
        "bob",
    ),
    "a negative moment": (lambda: with_inertia(0.1, -0.1, 0.1), ("JM401",), "bob"),
    "products of inertia that are not symmetric": (
        lambda: with_inertia([0.2, 0.01, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.2]),
        ("JM401",),
        "bob",
    ),
    "a mass of zero": (lambda: changed(pendulum, "body", 0, mass=0.0), ("JM401",), "bob"),
}


def door(tilt: float) -> dict[str, Any]:
    """A pendulum on two hinges, of which one is tilted (rad)."""
    content = pendulum()
    axis = (np.sin(tilt), np.cos(tilt), 0.0)
    content["joint"].append(_hinge("other", "bob", [0.0, 1.0, 0.0], axis))
    return content


def workshop() -> dict[str, Any]:
    """Five defects side by side, each in a mechanism of its own."""
    cranks = {k: x for k, x in zip("123", (0.0, 1.0, 2.2), strict=True)}
    bodies = [_planar(f"crank {k}", [x + 0.15, -0.2]) for k, x in cranks.items()] + [
        _planar("beam", [1.4, -0.4])
    ]
    joints = []
    for k, x in cranks.items():
        joints.append(_pin(f"G{k}", ["ground", f"crank {k}"], [x, 0.0]))
        joints.append(_pin(f"B{k}", [f"crank {k}", "beam"], [x + 0.3, -0.4]))
    bodies.append(_planar("axle", [5.0, 0.0]))
    for name, y in (("left", 0.2), ("right", -0.2)):
        wheel = {"name": name, "type": "knife_edge", "bodies": ["axle"], "at": [5.0, y]}
        joints.append(wheel | {"direction": [1.0, 0.0]})
    bodies.append(_planar("carriage", [8.0, 0.5]))
    for name, y in (("rail 1", 0.0), ("rail 2", 1.0)):
        rail = {"name": name, "type": "translational", "bodies": ["ground", "carriage"]}
        joints.append(rail | {"at": [8.0, y], "axis": [1.0, 0.0]})
    bodies.append(_planar("lost", [10.0, 10.0]))
    bodies.append(_planar("arm", [12.0, 0.5]))
    joints.append(_pin("P", ["ground", "arm"], [12.0, 0.0]))
    drivers = [
        {
            "name": name,
            "joint": "P",
            "coordinate": "rotation",
            "motion": {"type": "linear", "rate": rate},
        }
        for name, rate in (("motor 1", 1.0), ("motor 2", 2.0))
    ]
    return {"schema": 1, "dimension": 2, "body": bodies, "joint": joints, "driver": drivers}


def linkage(*at: float) -> dict[str, Any]:
    """A four-bar in one line, with pins at zero and there."""
    ends = (0.0, *at)
    bodies = [_planar(n, [(ends[k] + ends[k + 1]) / 2, 0.0]) for k, n in enumerate("abc")]
    pairs = (("ground", "a"), ("a", "b"), ("b", "c"), ("c", "ground"))
    joints = [_pin("ABCD"[k], list(pair), [ends[k], 0.0]) for k, pair in enumerate(pairs)]
    return {"schema": 1, "dimension": 2, "body": bodies, "joint": joints}


def _planar(name: str, position: Any) -> dict[str, Any]:
    return {"name": name, "mass": 1.0, "inertia": 0.1, "position": position}


def _pin(name: str, bodies: Any, at: Any) -> dict[str, Any]:
    return {"name": name, "type": "revolute", "bodies": bodies, "at": at}


def findings_in(content: dict[str, Any], *ignore: str) -> jm.results.Findings:
    """As the command reads files."""
    possible, wrong = with_possible_bodies(content)
    return checked(model_from_tables(possible), 0.0, ignore, wrong)


def named(found: jm.results.Findings, code: str) -> set[str]:
    return {part.name for finding in found.of(code) for part in finding.parts}


class TestPlantedDefects:
    @pytest.mark.parametrize("what", PLANTED)
    def test_each_is_found_named_and_nothing_else(self, what):
        make, codes, part = PLANTED[what]
        found = findings_in(make())
        assert tuple(x.code for x in found.found) == codes, str(found)
        assert any(part in name for name in named(found, codes[0]))
        assert part in str(found)

    def test_a_tendon_with_a_spring(self):
        spring = {"name": "pull", "type": "axial_spring", "joint": "cord", "stiffness": 10.0}
        assert not findings_in(with_tendon(spring)).of("JM508")

    @pytest.mark.parametrize("factor", [1e3, 1e4])
    def test_a_joint_in_other_units(self, factor):
        at = [0.3 * factor, 0.4 * factor]
        found = findings_in(changed(four_bar, "joint", 1, points=[at, at]))
        assert {"B", "crank", "coupler"} <= named(found, "JM404")
        assert not found.of("JM405")
        assert "is 500 m away" in str(found) or "is 5e+03 m away" in str(found)

    def test_a_small_bob_on_a_long_string_is_no_slip(self):
        bob = {"name": "bob", "mass": 0.1, "inertia": [4e-6] * 3, "position": [0.0, 0.0, -1.0]}
        content = pendulum() | {"body": [bob]}
        assert str(findings_in(content)).endswith("nothing found")

    @pytest.mark.thorough
    def test_side_by_side(self):
        found = findings_in(workshop(), "JM601")
        loop = {f"{joint}{k}" for joint in "GB" for k in "123"}
        assert named(found, "JM101") == loop
        shared = [{part.name for part in x.parts} for x in found.of("JM102")]
        assert {"left", "right"} in shared
        assert {"rail 1", "rail 2"} in shared
        assert {"motor 1", "motor 2"} in shared
        (against,) = found.of("JM201")
        assert {part.name for part in against.parts} == {"motor 1", "motor 2"}
        # 1 and 2 rad/s: the compromise of least squares is 1.5.
        assert dict(against.numbers)["largest"] == pytest.approx(0.5)
        assert named(found, "JM501") == {"lost"}
        assert found.worst == Severity.ERROR
        assert [x.severity for x in found.found] == sorted(
            (x.severity for x in found.found), reverse=True
        )

    @pytest.mark.thorough
    def test_drivers_that_agree_in_all_but_accelerations(self):
        content = pendulum()
        motions = [{"type": "polynomial", "coefficients": [0.0, 0.0, x]} for x in (1.0, 2.0)]
        content["driver"] = [
            {"name": f"d{k}", "joint": "hinge", "coordinate": "rotation", "motion": own}
            for k, own in enumerate(motions)
        ]
        (against,) = findings_in(content).of("JM201")
        assert {part.name for part in against.parts} == {"d0", "d1"}
        # 2 and 4 rad/s^2.
        assert dict(against.numbers)["largest"] == pytest.approx(1.0)
        content["driver"][1]["motion"] = motions[0]
        assert not findings_in(content).of("JM201")

    def test_a_dead_centre_is_no_redundancy(self):
        # Two branches meet in the flat parallelogram.
        (own,) = findings_in(linkage(1.0, 3.0, 2.0)).found
        assert own.code == "JM104"
        assert dict(own.numbers) == {"rank": 7.0, "generic_rank": 8.0}
        assert {part.name for part in own.parts} == set("ABCD")

    def test_a_stretched_linkage_moves_to_first_order_alone(self):
        found = findings_in(linkage(1.0, 3.0, 3.5))
        assert [x.code for x in found.found] == ["JM101", "JM104"]
        assert "to first order alone" in str(found)

    def test_islands(self):
        pair = [_planar("p", [9.0, 0.0]), _planar("q", [9.5, 0.0])]
        free = _pin("free", ["p", "q"], [9.2, 0.0])
        alone = {"schema": 1, "dimension": 2, "body": pair, "joint": [free]}
        assert findings_in(alone).found == ()
        held = _pin("held", ["ground", "arm"], [0.0, 0.0])
        content = alone | {"body": [_planar("arm", [1.0, 0.0]), *pair], "joint": [held, free]}
        assert named(findings_in(content), "JM504") == {"p", "q"}

    def test_hinges_that_are_aligned_and_nearly(self):
        aligned = findings_in(door(0.0))
        nearly, apart = (findings_in(door(tilt), "JM601") for tilt in (1e-4, 0.3))
        assert named(aligned, "JM102") == {"hinge", "other"}
        (suggestion,) = aligned.of("JM601")
        assert {part.name for part in suggestion.parts} <= {"hinge", "other"}
        assert "revolute -> " in suggestion.message
        assert not aligned.of("JM103")
        (near,) = nearly.of("JM103")
        assert {part.name for part in near.parts} == {"hinge", "other"}
        # The rows of both hinges are of order one, so that the tilt is of the order of its own.
        assert 1e-5 < dict(near.numbers)["radians"] < 1e-4
        assert "a misalignment of" in near.message
        assert not apart.of("JM103")

    @pytest.mark.parametrize("make", [four_bar, pendulum])
    def test_nothing_in_good_models(self, make, rng):
        for content in (make(), *(make(rng) for _ in range(5))):
            assert findings_in(content).found == ()

    @pytest.mark.thorough
    def test_built_in_mechanisms(self):
        # Its elastic rods decide what rigid bodies do not.
        elastic = jm.mechanisms.get("elastic-parallelogram")
        assert str(jm.lint(elastic)) == "elastic-parallelogram: nothing found"
        assert str(jm.lint(jm.mechanisms.slider_crank())) == "slider-crank: nothing found"


class TestRules:
    def test_codes_are_different_and_texts_are_sentences(self):
        codes = [rule.code for rule in RULES]
        assert len(set(codes)) == len(codes) == 25
        assert codes == sorted(codes)
        assert all(rule.text.endswith(".") and len(rule.text) > 80 for rule in RULES)

    def test_each_rule_is_left_out_where_that_is_asked(self):
        model = model_from_tables(changed(four_bar, "force", 0, stiffness=0.0))
        assert jm.lint(model).worst == Severity.WARNING
        assert jm.lint(model, ignore=["JM502"]).found == ()
        with pytest.raises(ValueError, match="JM999"):
            jm.lint(model, ignore=["JM999"])


def _zero(kind: type[AbstractForce]) -> AbstractForce:
    """A force of this kind that does nothing."""
    required: dict[str, Any] = {"name": "it", "bodies": ["block"], "joint": "rail"}
    if kind in (forces.SpringDamper, forces.Bushing, forces.BallSpring, forces.ElasticRope):
        required["bodies"] = ["ground", "block"]
    if kind in (forces.SpringDamper, forces.ElasticRope):
        required |= {"points": [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)], "length": 1.0}
    if kind is forces.Bushing:
        required["at"] = (0.0, 0.0, 0.0)
    if kind is forces.CoulombFriction:
        required |= {"velocity": 0.01, "radius": 0.1}
    if kind is forces.JointFriction:
        required |= {"velocity": 0.01, "stribeck_speed": 0.1, "coordinate": "translation"}
    if kind in (forces.Applied, forces.Following):
        required["force"] = (0.0, 0.0, 0.0)
    else:
        nothing: Any = [0.0] * 6 if kind is forces.Bushing else 0.0
        required |= dict.fromkeys(kind.strengths, nothing)
    known = {field.name for field in dataclasses.fields(kind)}
    return kind(**{name: x for name, x in required.items() if name in known})


KINDS = [
    kind for name in forces.__all__ if issubclass(kind := getattr(forces, name), AbstractForce)
]
BY_NUMBERS = [kind for kind in KINDS if kind.strengths]


@pytest.mark.parametrize("kind", BY_NUMBERS, ids=lambda kind: kind.__name__)
def test_a_force_of_each_kind_without_its_numbers(kind):
    block = spatial.Body("block", mass=1.0, inertia=np.eye(3), position=(1.0, 0.0, 0.0))
    joint = spatial.Revolute if kind is forces.TorsionSpring else spatial.Translational
    rail = joint("rail", ("ground", "block"), (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))
    model = jm.Model("sledge", 3, bodies=[block], joints=[rail], forces=[_zero(kind)])
    (found,) = jm.lint(model).of("JM502")
    assert all(name in found.message for name in kind.strengths if name != "torque")


def test_forces_by_numbers_are_all_but_those_of_functions():
    # (A motor has a rule of its own, and a stop has a stiffness above zero.)
    assert {kind.__name__ for kind in KINDS} - {kind.__name__ for kind in BY_NUMBERS} == {
        "JointStop",
        "Contact",
        "Motor",
        "StatefulForce",
        "UserForce",
    }


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lint models")
    contents = {
        "good": four_bar(),
        "idle": changed(four_bar, "force", 1, force=[0.0, 0.0]),
        "impossible": with_inertia(0.1, 0.1, 0.25),
    }
    contents["unknown"] = four_bar() | {"colour": 3}
    contents["expression"] = changed(pendulum, "body", 0, mass="m") | {"parameters": {"m": -1.0}}
    contents["twice"] = contents["impossible"] | {"colour": 3}
    paths = {name: folder / f"{name}.toml" for name in contents}
    for name, content in contents.items():
        paths[name].write_text(tomlkit.dumps(content))
    return {name: str(path) for name, path in paths.items()}


class TestCommand:
    """On files."""

    def run(self, *arguments: str) -> Any:
        return CliRunner().invoke(app, ["lint", *arguments])

    def test_text(self, files):
        done = self.run(files["good"])
        assert (done.exit_code, done.stdout) == (0, "nothing found in 1 file\n")
        done = self.run(files["good"], files["idle"], files["impossible"])
        assert done.exit_code == 1
        first, second, last = done.stdout.splitlines()
        lines = Path(files["idle"]).read_text().splitlines()
        number = lines.index('name = "push"') + 1
        assert first.startswith(
            f"{files['idle']}:{number}: warning JM502 [idle-force] force 'push'"
        )
        assert "error JM401 [impossible-body] body 'bob': its inertia breaks" in second
        assert last == "2 findings in 3 files"

    def test_what_counts(self, files):
        assert self.run(files["idle"], "--fail-on", "error").exit_code == 0
        assert self.run(files["impossible"], "--fail-on", "error").exit_code == 1
        assert self.run(files["idle"], "--ignore", "JM502").exit_code == 0

    @pytest.mark.parametrize("extra", [["unknown"], ["good", "unknown"], ["missing"], []])
    def test_bad_input(self, files, extra):
        done = self.run(*(files.get(name, "nowhere.toml") for name in extra))
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.startswith("jaxmbs: ")
        assert self.run(files["good"], "--ignore", "JM1").exit_code == 2

    def test_bodies_that_cannot_be_by_a_parameter(self, files):
        done = self.run(files["expression"])
        assert done.exit_code == 1
        assert "JM401 [impossible-body] body 'bob': its mass must be greater" in done.stdout

    def test_a_body_that_cannot_be_and_another_mistake(self, files):
        done = self.run(files["twice"])
        assert (done.exit_code, done.stdout) == (2, "")
        assert "colour" in done.stderr
        assert "'bob': its inertia breaks the triangle inequality" in done.stderr

    def test_one_form_at_a_time(self, files):
        assert self.run(files["good"], "--json", "--format", "sarif").exit_code == 2

    def test_json(self, files):
        told = json.loads(self.run(files["idle"], "--json").stdout)
        (own,) = told["files"]
        (finding,) = own["findings"]
        assert own["model"] == "four-bar"
        assert (finding["code"], finding["severity"]) == ("JM502", "warning")
        assert finding["parts"] == [{"kind": "force", "name": "push"}]

    def test_sarif(self, files):
        done = self.run(files["idle"], files["impossible"], "--format", "sarif")
        told = json.loads(done.stdout)
        assert told["version"] == "2.1.0"
        (run,) = told["runs"]
        rules = run["tool"]["driver"]["rules"]
        assert {rule["id"] for rule in rules} == {rule.code for rule in RULES}
        for result, file in zip(run["results"], ("idle", "impossible"), strict=True):
            assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
            assert result["level"] in ("note", "warning", "error")
            assert result["message"]["text"].endswith(".")
            (place,) = result["locations"]
            physical = place["physicalLocation"]
            # A URI holds no spaces.
            assert physical["artifactLocation"]["uri"] == files[file].replace(" ", "%20")
            assert physical["region"]["startLine"] > 1
            assert place["logicalLocations"][0]["kind"] in ("body", "force")

    def test_rules(self):
        assert "JM601 release (note)" in self.run("--rules").stdout
        assert len(json.loads(self.run("--rules", "--json").stdout)["rules"]) == len(RULES)
