"""Model files with parameters, axes of bodies, shapes, sub-assemblies and cylinders: what they
mean, that nothing is lost when they are written, and that everything follows what is varied."""

import copy
import tomllib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from crane import CRANE

import jaxmbs as jm
from jaxmbs import mechanisms
from jaxmbs._sweep._subjects import ModelSubject
from jaxmbs.io import model_from_tables, write_model


_GROUPS = ("bodies", "joints", "drivers", "forces", "compliances", "elements", "gravity")


@pytest.fixture(scope="module")
def model() -> jm.Model:
    return model_from_tables(copy.deepcopy(CRANE))


def _changed(**parameters: Any) -> jm.Model:
    """The model of the same file with other parameters."""
    content = copy.deepcopy(CRANE)
    content["parameters"] |= parameters
    return model_from_tables(content)


def _assert_same(first: jm.Model, second: jm.Model, tolerance: float = 0.0) -> None:
    for group in _GROUPS:
        one, other = getattr(first, group), getattr(second, group)
        assert eqx.tree_equal(one, other, rtol=tolerance, atol=tolerance), group


def _body(model: jm.Model, name: str) -> Any:
    return next(body for body in model.bodies if body.name == name)


def _joint(model: jm.Model, name: str) -> Any:
    return next(joint for joint in model.joints if joint.name == name)


class TestReading:
    def test_numbers_are_those_of_their_expressions(self, model: jm.Model):
        crank, weight = _body(model, "crank"), _body(model, "weight")
        mass = 7850.0 * 0.4 * 0.04 * 0.02
        np.testing.assert_allclose(crank.mass, mass, rtol=1e-15)
        np.testing.assert_allclose(crank.inertia, mass * (0.4**2 + 0.04**2) / 12, rtol=1e-14)
        np.testing.assert_allclose(weight.position, [0.4, -0.04], atol=1e-16)
        np.testing.assert_allclose([weight.mass, weight.angle], [1.2, 0.25], rtol=1e-15)
        np.testing.assert_allclose(_joint(model, "A").at, np.zeros((2, 2)), atol=1e-16)
        c, s = np.cos(0.25), np.sin(0.25)
        second = [0.4 - 0.04 * s, -0.04 + 0.04 * c]
        np.testing.assert_allclose(_joint(model, "B").at, [[0.4, 0.1], second], atol=1e-16)
        drive: Any = model.drivers[0].motion
        np.testing.assert_allclose(drive.coefficients, [0.0, 0.8 * np.pi], rtol=1e-15)
        np.testing.assert_array_equal(model.gravity, [0.0, -9.81])

    def test_order_and_names_of_parts(self, model: jm.Model):
        assert [body.name for body in model.bodies] == [
            *("crank", "weight", "lift barrel", "lift rod"),
            *("left shank", "left toe tip", "right shank", "right toe tip"),
        ]
        assert [joint.name for joint in model.joints] == [
            *("A", "B", "lift slide", "lift foot", "lift head"),
            *("left knee", "left toe pin", "right knee", "right toe pin"),
        ]
        assert _joint(model, "left toe pin").bodies == ("left shank", "left toe tip")
        assert _joint(model, "right knee").bodies == ("crank", "right shank")
        assert [force.name for force in model.forces] == [
            *("spring", "lift barrel thrust", "lift rod thrust", "lift spring")
        ]

    def test_uses_are_put_in_their_places(self, model: jm.Model):
        # The left leg hangs from the middle of the crank, straight down.
        left, toe = _body(model, "left shank"), _body(model, "left toe tip")
        np.testing.assert_allclose(left.position, [0.2, -0.1], atol=1e-16)
        np.testing.assert_allclose(toe.position, [0.2, -0.25], atol=1e-16)
        np.testing.assert_allclose([left.angle, toe.angle], -np.pi / 2, rtol=1e-15)
        np.testing.assert_allclose(left.velocity, [0.0, -0.5], atol=1e-16)
        np.testing.assert_allclose([left.mass, _body(model, "right shank").mass], [0.25, 0.5])
        right = np.array([0.3, 0.0]) + 0.3 * np.array([np.cos(0.5), -np.sin(0.5)])
        np.testing.assert_allclose(_body(model, "right toe tip").position, right, atol=1e-16)

    def test_a_cylinder_is_its_parts(self, model: jm.Model):
        ends = {"barrel": ["ground", "lift barrel"], "rod": ["lift rod", "crank"]}
        slide = {"name": "lift slide", "type": "translational", "axis": [-0.2, 0.5]}
        foot = {"name": "lift foot", "type": "revolute", "bodies": ends["barrel"]}
        head = {"name": "lift head", "type": "revolute", "bodies": ends["rod"]}
        joints = [
            slide | {"bodies": ["lift barrel", "lift rod"], "at": [0.4, -0.5]},
            foot | {"at": [0.4, -0.5]},
            head | {"at": [0.2, 0.0]},
        ]
        u = np.array([-0.2, 0.5]) / np.hypot(0.2, 0.5)
        first, second = np.array([0.4, -0.5]), np.array([0.2, 0.0])
        tube = 7850.0 * np.pi * (0.04**2 - 0.03**2) * 0.3
        bodies = [
            ("barrel", tube, tube * (3 * (0.04**2 + 0.03**2) + 0.3**2) / 12, first + 0.15 * u),
            ("rod", 2.0, 2.0 * (3 * 0.02**2 + 0.4**2) / 12, second - 0.2 * u),
        ]
        thrust = {"type": "applied", "follows": "body"}
        plain = {
            "schema": 1,
            "dimension": 2,
            "body": [
                {"name": f"lift {n}", "mass": m, "inertia": i, "position": p.tolist()}
                for n, m, i, p in bodies
            ]
            + [{"name": "crank", "mass": 1.0, "inertia": 1.0, "position": [0.0, 0.0]}],
            "force": [
                thrust
                | {
                    "name": f"lift {body} thrust",
                    "body": f"lift {body}",
                    "at": at.tolist(),
                    "force": (sign * 500.0 * u).tolist(),
                }
                for body, at, sign in (("barrel", first, -1.0), ("rod", second, 1.0))
            ]
            + [
                {
                    "name": "lift spring",
                    "type": "spring_damper",
                    "bodies": ["lift barrel", "lift rod"],
                    "points": [first.tolist(), second.tolist()],
                    "stiffness": 0.0,
                    "damping": 4.0,
                }
            ],
            "joint": joints,
        }
        wanted = model_from_tables(plain)
        for group, at in (
            ("bodies", slice(2, 4)),
            ("joints", slice(2, 5)),
            ("forces", slice(1, 4)),
        ):
            found, known = getattr(model, group)[at], getattr(wanted, group)
            known = known[:2] if group == "bodies" else known
            assert eqx.tree_equal(found, known, rtol=1e-13, atol=1e-15), group

    def test_files_without_any_of_this_hold_nothing_of_it(self):
        door = mechanisms.door()
        assert door.parameters is None
        assert model_from_tables(tomllib.loads(write_model(door))).parameters is None


# Everything that stands in an assembly and turns with it.
_SPACE: dict[str, Any] = {
    "schema": 1,
    "dimension": 3,
    "assembly": [
        {
            "name": "unit",
            "body": [
                {
                    "name": name,
                    "mass": mass,
                    "inertia": [0.1, 0.2, 0.25],
                    "position": [x, 0.1, 0.0],
                    "orientation": [0.9, 0.1, -0.2, 0.3],
                    "velocity": [0.1, -0.2, 0.3],
                    "angular_velocity": [1.0, 0.5, -0.5],
                }
                for name, mass, x in (("a", 1.0, 0.0), ("b", 2.0, 0.6))
            ],
            "joint": [
                {
                    "name": "U",
                    "type": "universal",
                    "bodies": ["a", "b"],
                    "at": [0.3, 0.1, 0.1],
                    "axes": [[0, 1, 1], [0, 1, -1]],
                },
                {
                    "name": "P",
                    "type": "pfaffian",
                    "bodies": ["a", "b"],
                    "coefficients": [[1, 2, 0, 0, 0, 1, -1, 0, 3, 1, 0, 0]],
                },
            ],
            "force": [
                {
                    "name": "soft",
                    "type": "bushing",
                    "bodies": ["ground", "a"],
                    "points": [[0, 0, 0], [0.1, 0.05, 0]],
                    "stiffness": [100, 200, 300, 5, 6, 7],
                    "damping": (np.diag([1.0, 2, 3, 4, 5, 6]) + 0.2).tolist(),
                },
                {
                    "name": "push",
                    "type": "applied",
                    "body": "b",
                    "at": [0.7, 0, 0],
                    "force": [1, 2, 3],
                    "torque": [0.1, 0, 0.2],
                },
                {
                    "name": "spring",
                    "type": "spring_damper",
                    "bodies": ["ground", "b"],
                    "points": [[0, 1, 0], [0.6, 0.2, 0]],
                    "stiffness": 50.0,
                    "length": 0.5,
                },
            ],
        }
    ],
    "use": [{"name": "u", "assembly": "unit"}],
}


class TestPlaces:
    def test_what_happens_turns_with_the_place(self):
        """Accelerations of all that stands in an assembly are the same in another place, turned."""
        placed = copy.deepcopy(_SPACE)
        placed["use"][0] |= {"position": [1.0, -2.0, 0.5], "orientation": [0.7, -0.4, 0.5, 0.2]}

        @eqx.filter_jit
        def motion(system: Any) -> Any:
            q, v = system.reference_q, system.initial_v
            found = jm.formulations.MinimumNorm().solve(system.equations(q, v, 0.0))
            return q, v, found.acceleration

        first, second = (motion(model_from_tables(x).system()) for x in (_SPACE, placed))
        w, *u = np.array([0.7, -0.4, 0.5, 0.2]) / np.linalg.norm([0.7, -0.4, 0.5, 0.2])
        cross = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
        turn = np.eye(3) + 2 * w * cross + 2 * cross @ cross
        for k in range(2):
            place = np.array([1.0, -2.0, 0.5]) + turn @ first[0][7 * k : 7 * k + 3]
            np.testing.assert_allclose(second[0][7 * k : 7 * k + 3], place, atol=1e-14)
            for one, other in zip(first[1:], second[1:], strict=True):
                linear, angular = one[6 * k : 6 * k + 3], one[6 * k + 3 : 6 * k + 6]
                found = other[6 * k : 6 * k + 6]
                # Angular ones are along the body's own axes.
                scale = 1e-12 * (1 + np.max(np.abs(one)))
                np.testing.assert_allclose(found[:3], turn @ linear, atol=scale)
                np.testing.assert_allclose(found[3:], angular, atol=scale)
        assert np.max(np.abs(first[2])) > 1.0

    def test_a_direction_turns_z_by_the_shortest_rotation(self):
        for direction in ([0, 0, 2], [1, 2, 2], [0, 3, -4], [0, 0, -1]):
            content = copy.deepcopy(_SPACE)
            content["use"][0] |= {"direction": direction}
            content["assembly"][0]["body"][0] |= {
                "position": [0, 0, 1],
                "orientation": [1, 0, 0, 0],
            }
            body = _body(model_from_tables(content), "u a")
            unit = np.array(direction) / np.linalg.norm(direction)
            np.testing.assert_allclose(body.position, unit, atol=1e-15)
            angle = 2 * np.arctan2(np.linalg.norm(body.orientation[1:]), body.orientation[0])
            assert np.isclose(angle, np.arccos(unit[2]), atol=1e-7)

    def test_rotation_and_orientation_agree(self):
        turns = {"orientation": [0.5, 0.5, 0.5, 0.5], "rotation": [[0, 0, 1], [1, 0, 0], [0, 1, 0]]}
        models = []
        for key, value in turns.items():
            content = copy.deepcopy(_SPACE)
            content["use"][0][key] = value
            models.append(model_from_tables(content))
        _assert_same(*models, tolerance=1e-15)


class TestWriting:
    def test_nothing_is_lost(self, model: jm.Model):
        text = write_model(model)
        assert tomllib.loads(text) == CRANE
        assert eqx.tree_equal(model_from_tables(tomllib.loads(text)), model)

    def test_what_is_varied_is_written(self, model: jm.Model):
        values = {
            "parameters.length": 0.5,
            "uses.right.angle": -0.6,
            "uses.right.parameters.reach": 0.3,
            "cylinders.lift.rod.radius": 0.025,
            "cylinders.lift.force": 700.0,
            "bodies.crank.shape.density": 2700.0,
            "bodies.weight.inertia": 0.03,
        }
        other = jm.vary(model, values)
        content = tomllib.loads(write_model(other))
        _assert_same(model_from_tables(content), other)
        assert content["parameters"] == CRANE["parameters"] | {"length": 0.5}
        assert content["use"][1]["parameters"] == {"reach": 0.3, "thickness": 0.05}
        assert (content["use"][1]["angle"], content["cylinder"][0]["force"]) == (-0.6, 700.0)
        assert content["body"][0]["shape"]["size"] == ["length", "width", 0.02]
        assert content["body"][1]["inertia"] == 0.03
        # The other keys of that body stay expressions.
        assert content["body"][1]["mass"] == "3 * length"

    def test_parts_that_do_not_follow_any_more_are_written_in_numbers(self, model: jm.Model):
        heavy = eqx.tree_at(lambda m: m.bodies[4].mass, model, jnp.asarray(7.0))
        text = write_model(heavy)
        assert text.startswith("# Parts were changed")
        assert not {"parameters", "use", "assembly"} & set(tomllib.loads(text))
        _assert_same(model_from_tables(tomllib.loads(text)), heavy)


class TestVarying:
    """Everything follows a parameter, as if the file had been written with it."""

    @pytest.mark.parametrize(
        ("name", "value"),
        [("length", 0.55), ("width", 0.07), ("tip", [0.3, 0.2]), ("g", 1.62)],
    )
    def test_as_in_another_file(self, model: jm.Model, name: str, value: Any):
        found = jm.vary(model, {f"parameters.{name}": value})
        _assert_same(found, _changed(**{name: value}), 1e-15)
        assert not eqx.tree_equal(found.bodies, model.bodies) or name in ("g", "tip")

    def test_a_number_that_is_named_wins_over_its_expression(self, model: jm.Model):
        values = {"parameters.length": 0.5, "bodies.weight.mass": 9.0, "joints.B.at.first.x": 0.7}
        found = jm.vary(model, values)
        assert float(_body(found, "weight").mass) == 9.0
        np.testing.assert_allclose(_joint(found, "B").at[0], [0.7, 0.1])
        np.testing.assert_allclose(_joint(found, "A").at, 0.0, atol=1e-16)

    def test_what_is_given_in_the_axes_of_a_body_follows_the_body(self, model: jm.Model):
        values = {"bodies.crank.position": [0.2, 0.3], "bodies.crank.angle": 0.5}
        # The lift's head is in the crank.
        found = jm.vary(model, values | {"cylinders.lift.barrel.length": 0.6})
        c, s = 0.2 * np.cos(0.5), 0.2 * np.sin(0.5)
        np.testing.assert_allclose(_joint(found, "A").at, [[0.2 - c, 0.3 - s]] * 2, atol=1e-15)
        np.testing.assert_allclose(_body(found, "left shank").position, [0.2, 0.2], atol=1e-15)
        assert float(_body(found, "weight").angle) == 0.75

    def test_inside_of_a_program_with_derivatives(self, model: jm.Model):
        subject = ModelSubject(model, None)

        def numbers(length: Any) -> Any:
            place = subject.place({"parameters.length": length})
            found: Any = place.system.bodies if False else place
            q, system = found.q, found.system
            return jnp.concatenate(
                [q, system.mass_matrix(q).ravel(), system.force(q, found.v, 0.0)]
            )

        value, slope = jax.jit(lambda x: jax.jvp(numbers, (x,), (jnp.ones(()),)))(0.45)
        steps = [_changed(length=0.45 + h).system() for h in (0.0, 1e-6, -1e-6)]

        def known(system: Any) -> np.ndarray:
            q = system.reference_q
            return np.concatenate(
                [q, system.mass_matrix(q).ravel(), system.force(q, system.initial_v, 0.0)]
            )

        middle, more, less = (known(system) for system in steps)
        np.testing.assert_allclose(value, middle, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(slope, (more - less) / 2e-6, rtol=1e-5, atol=1e-4)
        assert np.count_nonzero(slope) > 20

    def test_sweeps_and_designs_know_the_names(self, model: jm.Model):
        def masses(system: Any, q: Any, v: Any, t: Any) -> Any:
            del v, t
            return jnp.diag(system.mass_matrix(q))

        lengths = np.array([0.3, 0.4, 0.5])
        cases = jm.Cases({"parameters.length": lengths, "uses.right.position.x": lengths})
        found = jm.sweep(masses, model, cases, assemble=False, width=4)
        np.testing.assert_allclose(found.answers()[:, 3], 3 * lengths, rtol=1e-14)
        study = jm.design.Study(model, ["parameters.length", "bodies.crank.shape.size.z"])
        assert study.given == (0.4, 0.02)
        units = [study.subject.unit(name) for name in (*study.names, "uses.right.angle")]
        assert units == ["", "m", "rad"]

    @pytest.mark.parametrize(
        ("values", "said"),
        [
            ({"parameters.lenght": 1.0}, "parameters.length"),
            ({"uses.left.parameters.foot": 1.0}, "no such number"),
            ({"parameters.length": [1.0, 2.0]}, "shape"),
            ({"parameters.length": "long"}, "a number or an array"),
            ({"parameters.length": -1.0}, "'parameters.length'"),
            ({"parameters.length": 0.0}, "divides by zero"),
            ({"parameters.length.x": 1.0}, "no entry 'x'"),
            ({"parameters.tip": [1.0, 0.0], "parameters.tip.x": 1.0}, "twice"),
            ({"time": 1.0}, "of the state"),
            ({"joints.B.rotation": 1.0}, "of the state"),
        ],
    )
    def test_what_cannot_be_varied(self, model: jm.Model, values: Any, said: str):
        with pytest.raises(ValueError, match=said):
            jm.vary(model, values)

    def test_models_of_python_are_varied_too(self):
        door = mechanisms.door()
        name = f"bodies.{door.bodies[0].name}.mass"
        body: Any = jm.vary(door, {name: 3.0}).bodies[0]
        assert float(body.mass) == 3.0


def _point_body(name: str, mass: Any, x: Any = 0.0) -> dict[str, Any]:
    return {"name": name, "mass": mass, "inertia": [1.0, 1.0, 1.0], "position": [x, 0.0, 0.0]}


# A motor between two bodies, and a ball joint's drive in an assembly.
_MOTOR: dict[str, Any] = {
    "schema": 1,
    "name": "motor",
    "dimension": 3,
    "gravity": [0.0, 0.0, "-x"],
    "parameters": {"rotor": 0.5, "ratio": 2.0, "x": 1.0, "y": "2 * x", "spare": 3.0},
    "body": [_point_body("a", "max(x, 2)"), _point_body("b", "y", "x")],
    "element": [
        {
            "name": "motor",
            "type": "reflected_inertia",
            "bodies": ["a", "b"],
            "axis": [0, 0, 1],
            "inertia": "rotor * ratio**2",
        }
    ],
    "assembly": [
        {
            "name": "unit",
            "parameters": {"w": 2.0},
            "body": [_point_body("c", "w")],
            "element": [
                {
                    "name": "drive",
                    "type": "ball_inertia",
                    "bodies": ["c", "ground"],
                    "inertia": "0.1 * w",
                }
            ],
        }
    ],
    "use": [{"name": "u", "assembly": "unit", "position": [1.0, 0.0, 0.0]}],
}


class TestElements:
    """Armatures follow parameters, and are varied by name."""

    def test_they_are_varied(self):
        model = model_from_tables(copy.deepcopy(_MOTOR))
        for values, wanted in (
            ({}, [2.0, 0.2]),
            ({"parameters.ratio": 200.0}, [20000.0, 0.2]),
            ({"elements.motor.inertia": 9.0}, [9.0, 0.2]),
            ({"uses.u.parameters.w": 5.0}, [2.0, 0.5]),
            ({"elements.u drive.inertia": 7.0}, [2.0, 7.0]),
        ):
            found = [own.inertia for own in jm.vary(model, values).elements]  # pyright: ignore[reportAttributeAccessIssue]
            np.testing.assert_allclose(found, wanted, rtol=1e-15)

        def inertia(ratio: Any) -> Any:
            element: Any = jm.vary(model, {"parameters.ratio": ratio}).elements[0]
            return element.inertia

        np.testing.assert_allclose(jax.grad(inertia)(3.0), 2 * 0.5 * 3.0, rtol=1e-15)
        study = jm.design.Study(model, ["elements.motor.inertia", "elements.motor.axis.z"])
        assert study.given == (2.0, 1.0)
        assert study.subject.unit("elements.motor.inertia") == "kg m2"


class TestWritingWhatIsNamed:
    """A model varied twice is the one that was written in between."""

    @pytest.mark.parametrize(
        ("values", "way", "written"),
        [
            ({"parameters.x": 1.5}, "parameters.x", 1.5),
            ({"parameters.spare": 7.0}, "parameters.spare", 7.0),
            ({"parameters.y": 5.0}, "parameters.y", 5.0),
            ({"bodies.a.mass": 9.0}, "body.0.mass", 9.0),
            # The number that it has already, and keeps from now on.
            ({"bodies.a.mass": 2.0}, "body.0.mass", 2.0),
            ({"elements.motor.inertia": 9.0}, "element.0.inertia", 9.0),
            ({"uses.u.parameters.w": 5.0}, "use.0.parameters.w", 5.0),
            ({"gravity.y": 1.0}, "gravity", [0.0, 1.0, -1.0]),
        ],
    )
    def test_as_through_a_file(self, values: Any, way: str, written: Any):
        found = jm.vary(model_from_tables(copy.deepcopy(_MOTOR)), values)
        content: Any = tomllib.loads(write_model(found))
        value = content
        for step in way.split("."):
            value = value[int(step) if step.isdigit() else step]
        assert value == written
        assert len(content["parameters"]) == 5
        then = {"parameters.x": 3.0, "parameters.rotor": 0.25}
        read = model_from_tables(content)
        _assert_same(read, found)
        _assert_same(jm.vary(read, then), jm.vary(found, then))

    @pytest.mark.thorough
    def test_of_a_shape_a_place_and_a_driver(self, model: jm.Model):
        values = {
            "bodies.crank.shape.size": [0.5, 0.05, 0.02],
            "uses.left.angle": -1.0,
            "drivers.motor": 0.3,
        }
        found = jm.vary(model, values)
        content: Any = tomllib.loads(write_model(found))
        assert content["body"][0]["shape"]["size"] == values["bodies.crank.shape.size"]
        assert content["use"][0]["angle"] == -1.0
        assert "direction" not in content["use"][0]
        assert content["driver"][0]["motion"]["coefficients"] == [0.3]
        then = {"parameters.length": 0.55}
        _assert_same(jm.vary(model_from_tables(content), then), jm.vary(found, then), 1e-15)
        drive: Any = jm.vary(found, then).drivers[0]
        np.testing.assert_array_equal(drive.motion.coefficients, [0.3])
