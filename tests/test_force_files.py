"""Forces in model files: what is read means what `io/REFERENCE.md` says."""

import tomllib
from typing import Any

import numpy as np
import pytest
from model_parts import FORCE_PARTS, Part, PARTS

from jaxmbs import forces, Model, planar
from jaxmbs.io import model_from_tables, write_model


@pytest.mark.parametrize("part", FORCE_PARTS.values(), ids=FORCE_PARTS)
def test_every_force_is_read(part: Part):
    (force,) = model_from_tables(part.content()).forces
    made: Any = force
    table = dict(part.entry)
    assert (made.name, made.kind) == (table.pop("name"), table.pop("type"))
    assert isinstance(made, forces.Following) == (table.pop("follows", "world") == "body")
    if "joint" in table:
        assert made.joint == table.pop("joint")
    else:
        bodies = table.pop("bodies", None) or [table.pop("body")]
        assert made.bodies == tuple(bodies)
    if made.kind == "bushing":
        place = table.pop("points", None) or [table.pop("at")] * 2
        assert np.array_equal(made.at, place)
        for key in ("stiffness", "damping"):
            value = np.array(table.pop(key))
            assert np.array_equal(getattr(made, key), np.diag(value) if value.ndim == 1 else value)
    for key, value in table.items():
        if isinstance(value, dict):
            inner: Any = getattr(made, key)
            # (A motion has no name of its type.)
            assert getattr(inner, "kind", value["type"]) == value["type"], key
            numbers = {x: own for x, own in value.items() if x != "type"}
            assert all(np.array_equal(getattr(inner, x), own) for x, own in numbers.items()), key
            continue
        assert np.array_equal(getattr(made, key), value), key


@pytest.mark.parametrize("follows", ["world", "body"])
def test_an_applied_force_acts_at_its_point_in_its_axes(follows: str):
    load = {"at": [0.5, 1.0], "force": [3.0, 0.0], "torque": 0.5, "follows": follows}
    content = PARTS["applied 2"].content(**load)
    del content["gravity"]
    system = model_from_tables(content).system()
    start = system.force(system.reference_q, system.initial_v, 0.0)
    assert np.allclose(start, [3.0, 0.0, 0.5 - 3.0, 0.0, 0.0, 0.0], atol=1e-14)
    # After a quarter turn the point lies at (-1, 0) from the centre of mass.
    turned = system.reference_q.at[2].set(np.pi / 2)
    expected = {"world": [3.0, 0.0, 0.5], "body": [0.0, 3.0, 0.5 - 3.0]}[follows]
    force = system.force(turned, system.initial_v, 0.0)
    assert np.allclose(force[:3], expected, atol=1e-14)


def _written(*loads: Any) -> str:
    """A hinge, a slide and some forces on two bodies, as a model file."""
    bodies = [
        planar.Body(name, mass=1.0, inertia=1.0, position=(0.0, 0.0)) for name in ("bar", "rod")
    ]
    joints = [
        planar.Revolute("hinge", ("ground", "bar"), (0.0, 0.0)),
        planar.Translational("slide", ("ground", "rod"), (0.0, 0.0), (1.0, 0.0)),
    ]
    return write_model(Model("m", 2, bodies=bodies, joints=joints, forces=loads))


def test_what_was_left_out_is_left_out():
    text = _written(
        forces.Applied("p", "bar", torque=2.0),
        forces.SpringDamper("s", ("bar", "rod"), points=[[0, 0], [1, 0]], stiffness=3.0),
        forces.CoulombFriction("c", "slide", coefficient=0.1, velocity=1e-3),
    )
    applied, spring, rub = tomllib.loads(text)["force"]
    assert set(applied) == {"name", "type", "body", "torque", "follows"}
    assert set(spring) == {"name", "type", "bodies", "points", "stiffness", "damping"}
    assert set(rub) == {"name", "type", "joint", "coefficient", "velocity"}
    read = model_from_tables(tomllib.loads(text))
    assert write_model(read) == text


def test_functions_cannot_be_written():
    load = forces.UserForce("f", lambda *_: (((0.0, 0.0), 0.0),), [("bar", (0.0, 0.0))])
    sentence = r"^force 'f' \(user\) is made of a Python function and cannot be written to a model"
    with pytest.raises(ValueError, match=sentence):
        _written(load)


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (
            {"type": "spring_damper", "points": [[0.5, 0.0]] * 2, "length": 0.5},
            r"force 'f': the two points coincide, so a spring of natural length 0\.5 has no dir",
        ),
        ({"type": "spring_damper", "length": -0.5}, r"force 'f': length must be at least 0"),
        (
            {"type": "spring_damper", "stiffness": [1.0, 2.0]},
            r"force 'f': stiffness must be a number, got \[1\.0, 2\.0\]",
        ),
        (
            {"type": "bushing", "points": [[0.5, 0.0]]},
            r"force 'f': points must hold one world point of 2 numbers for each of the two bodies",
        ),
        (
            {"type": "bushing", "points": [[0.0, 0.0]] * 2, "at": [0.0, 0.0]},
            r"force 'f': give `at` .* or `points` .* one of the two",
        ),
        (
            {"type": "coulomb_friction", "joint": "hinge", "coefficient": 0.1, "velocity": 0.1},
            r"force 'f': joint 'hinge' \(revolute\) turns, so its friction needs `radius`",
        ),
        (
            {"type": "coulomb_friction", "joint": "slide", "coefficient": -1.0, "velocity": 0.1},
            r"force 'f': coefficient must be at least 0, got -1\.",
        ),
    ],
)
def test_what_is_wrong_is_said(entry: dict[str, Any], sentence: str):
    base: dict[str, Any] = {"name": "f"}
    if "joint" not in entry:
        base |= {"bodies": ["bar", "rod"], "stiffness": 1.0}
        base |= {"points": [[0.0, 0.0], [1.0, 0.0]]}
    content = PARTS["applied 2"].content()
    content["force"] = [base | entry]
    with pytest.raises(ValueError, match=sentence):
        model_from_tables(content)
