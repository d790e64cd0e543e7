"""Parts are checked when they are made: every argument of every public part, given what it cannot
be, is refused with one sentence that names it."""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from modal_bodies import random_cloud
from model_parts import PARTS

import jaxmbs as jm
from jaxmbs import elastic, forces, generalized, motions, planar, shapes, spatial
from jaxmbs._checks import LARGEST, SMALLEST
from jaxmbs.io import model_from_tables


NAMESPACES = (planar, spatial, forces, motions, generalized, elastic, shapes)
# What functions of the user return, what numbers measure, what an elastic body is made of
# (and what holds that, in `test_body_compliance.py`), and what is asked of one.
NO_PARTS = {
    generalized.PlanarFrame,
    generalized.SpatialFrame,
    generalized.Quantity,
    spatial.ReducedBody,
    # Of mass and inertia, which are tried as tables (`test_expressions.py`).
    shapes.Box,
    shapes.Cylinder,
    shapes.Sphere,
    shapes.Tube,
    spatial.SecondOrder,
    elastic.AbstractStart,
    elastic.BodyCompliance,
    elastic.Flexibility,
    elastic.SplitRod,
    elastic.StaticStart,
    elastic.SubsetAnswer,
    elastic.SuddenStart,
    generalized.AccelerationConstraint,
    generalized.PfaffianConstraint,
    generalized.PositionConstraint,
    generalized.ServoConstraint,
    generalized.VelocityConstraint,
}


@pytest.fixture(autouse=True)
def _nobody_checks_annotations() -> Iterator[None]:
    """As for a user: the sentences are those of the parts themselves."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def _function(*arguments: Any) -> Any:
    return jnp.zeros(1)


def _written(dimension: int) -> list[Any]:
    """What no model file holds."""
    space = {2: planar, 3: spatial}[dimension]
    markers = [("bar", np.ones(dimension)), ("rod", np.zeros(dimension))]
    return [
        space.Particle("dot", mass=1.0, position=np.ones(dimension)),
        space.Geometric("own", _function, markers),
        space.Velocity("own", _function, markers),
        forces.UserForce("own", _function, markers, potential=_function),
        forces.StatefulForce("own", _function, _function, markers, states=["x", "y"]),
    ]


def _generalized() -> list[Any]:
    """What has coordinates of its own, and what acts on these."""
    return [
        generalized.Body(
            "arm",
            ["x", "y"],
            mass_matrix=_function,
            force=_function,
            energy=_function,
            first_moment=_function,
            frames={"tip": _function},
            start=[1.0, 2.0],
            velocity=[0.0, 1.0],
            size=0.5,
        ),
        generalized.Element(
            "own",
            ("arm", "leg"),
            mass_matrix=_function,
            force=_function,
            energy=_function,
            first_moment=_function,
        ),
        generalized.Condition("own", "arm", _function),
        generalized.RateCondition("own", ("arm", "leg"), _function, rows=["a", "b"]),
        generalized.AccelerationCondition("own", "arm", _function, _function, rows=["a", "b"]),
        generalized.Force("own", "arm", _function, potential=_function),
    ]


def _elastic() -> spatial.ModalBody:
    """Each argument given."""
    return spatial.ModalBody(
        "link",
        random_cloud(modes=2).reduced(),
        position=(1.0, 2.0, 3.0),
        orientation=(1.0, 0.0, 2.0, 0.0),
        velocity=(0.1, 0.2, 0.3),
        angular_velocity=(0.0, 1.0, 0.0),
        modal_coordinates=(0.1, 0.2),
        modal_velocities=(0.3, 0.4),
    )


def _looks() -> list[Any]:
    """One visual shape of each kind."""
    place: dict[str, Any] = {"at": (0.1, 0.2, 0.3), "color": "#4682b4"}
    turned = place | {"orientation": (1.0, 0.0, 2.0, 0.0)}
    along = place | {"axis": (0.0, 1.0, 0.0)}
    return [
        shapes.VisualBox("arm", (0.1, 0.2, 0.3), **turned),
        shapes.VisualCylinder("arm", 0.1, 0.4, **along),
        shapes.VisualCapsule("arm", 0.1, 0.4, **along),
        shapes.VisualSphere("arm", 0.1, **place),
        shapes.VisualTube("arm", 0.2, 0.1, 0.4, **along),
        shapes.VisualPolygon("arm", [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)], 0.1, **turned),
        shapes.VisualMesh("arm", Path(__file__).parent / "wedge.stl", scale=0.5, **turned),
    ]


def examples() -> dict[str, Any]:
    """A part of every public class, each argument given."""
    found: dict[str, Any] = {}
    for label, part in PARTS.items():
        model = model_from_tables(part.content())
        group = {"body": "bodies", "joint": "joints", "driver": "drivers", "force": "forces"}
        group |= {"compliance": "compliances", "element": "elements"}
        made = getattr(model, group[part.table])[-1]
        found[label] = made
        if part.table == "driver":
            found[f"{label} itself"] = made.motion
        for within in ("actuator", "controller", "first", "second"):
            if getattr(made, within, None) is not None:
                found[f"{label}, {within}"] = getattr(made, within)
    for dimension in (2, 3):
        found |= {f"{type(x).__name__} {dimension}": x for x in _written(dimension)}
    found |= {f"generalized {type(x).__name__}": x for x in _generalized()}
    found |= {type(x).__name__: x for x in _looks()}
    return found | {"modal body": _elastic()}


EXAMPLES = examples()
# One of each class, of the two dimensions where it has both.
CHOSEN = {
    (type(part), getattr(getattr(part, "at", None), "shape", None)): label
    for label, part in EXAMPLES.items()
}


def arguments_of(part: Any) -> dict[str, Any]:
    """What the part may have been made with."""
    fields = vars(part)
    own: dict[str, Any] = {}
    for name, parameter in inspect.signature(type(part)).parameters.items():
        if name == "markers":
            own[name] = list(zip(fields["bodies"], np.asarray(fields["at"]), strict=True))
        elif name == "coordinates":
            own[name] = fields["kind"].names
        elif name == "states":
            own[name] = fields["internal"].names
        elif name == "start" and "internal" in fields:
            own[name] = fields["internal"].start
        elif name in fields:
            own[name] = fields[name]
        elif name not in ("rotation", "carrier", "rows", "quantity"):
            assert parameter.default is not parameter.empty, name
    if "carrier" in inspect.signature(type(part)).parameters:
        own["bodies"], own["carrier"] = own["bodies"][:2], own["bodies"][2]
    return own


def wrong_numbers(value: Any, optional: bool) -> Iterator[Any]:
    """What is no number where a number is meant, no vector where a vector is."""
    array = np.asarray(value, dtype=float)
    for bad in (np.nan, np.inf, -np.inf, 1e300, -1e300):
        yield np.full(array.shape, bad)
        yield np.full(array.shape, bad).tolist()
    yield from ("1", b"1", True, {}, [[[1.0]]], 10**400, 1j, object(), jnp.asarray(True))
    yield np.full(array.shape, "1")
    yield np.full(array.shape, True)
    if not optional:
        yield None
    if array.ndim:
        yield np.concatenate([array, array])[: len(array) + 1]
        yield 1.0


_WORDS = (3, None, True, "", ["a"])
WRONG: dict[str, tuple[Any, ...]] = {
    # True: of a body whose displacements of second order are not known.
    "stiffening": ("yes", 3, 1.0, True),
    "name": (
        *_WORDS,
        "  ",
        " a",
        "a,b",
        "a.b",
        "a'b",
        "a\nb",
        "a\tb",
        "\x1b[1m",
        "\x00",
        "\u202ea",
    ),
    "joint": _WORDS,
    "body": _WORDS,
    "coordinate": _WORDS,
    "joint_kind": (3, True, {}, len),
    "bearing": (3, True, "third", len),
    "carrier": _WORDS,
    "motion": (3.0, None, "sine", len),
    "actuator": (3.0, None, "ideal", len, {}),
    "first": (3.0, None, "sphere", len, {}),
    "second": (3.0, None, "sphere", len, {}),
    "controller": (3.0, "pid", len, {}),
    "reference": (3.0, "sine", len, {}),
    "command": (3.0, "sine", len, {}),
    "limits": ("1", True, {}, [[[1.0]]], 1j, 0.0, -1.0, np.inf, [1.0], [1.0, -1.0], [np.nan, 1.0]),
    "measures": (3, None, [], ["rotation"], ["rotation", "angle"], "rotation", [1, 2]),
    "bodies": (3, None, True, [], [3, 4], [None], ["a", "a"], ["a", "b", "c", "d", "a"], "", {}),
    "markers": (3, None, [], "ab", [3], [("a",)], [(3, (0.0, 0.0))], [("a", "xy")], [("a", None)]),
    "complete": (3, None, "yes"),
    "closed": (3, None, "yes", 1.0),
    "pitch_curve": (3, None, "yes", 1.0),
    "offset": ("f", None, [1.0, 2.0, 3.0], [[1.0, 2.0]], float("nan"), {}, True),
    "semidefinite": (3, None, "yes"),
    "coordinates": (3, None, [], ["a", "a"], [3], ["a.b"], [""]),
    "frames": (3, "x", [], {"a": 3}, {"a.b": _function}, {3: _function}),
    "lengths": (3, None, ["z"], [3]),
    "parts": (3, "x", [], {"a": 3}, {"a": (["z"], [])}, {"a": ([],)}, {"a.b": ([], [])}),
    "states": (3, None, [], ["a", "a"], [3], ["a.b"], [""]),
    "quantities": (
        3,
        "x",
        {"z": generalized.ANGLE},
        {"x": "m"},
        {"x": generalized.Quantity("a", "m", 0.0)},
    ),
    "reduced": (3, None, "x", [], {}, len, np.eye(3)),
    "rows": (0, -1, True, 2.5, None, [], ["a", "a"], [3]),
    "quantity": ("mass", 3, None),
    "color": (3, "mauve", "#12", (1.0, 0.0), (2.0, 0.0, 0.0), len),
    "file": (3, None, "", "lost.stl", "part.step"),
    "scale": (0.0, -1.0, "1", (1.0, 0.0, 1.0), (1.0, 2.0), np.nan, True),
    "rotation": (np.diag([1.0, 1.0, -1.0]), np.zeros((3, 3)), "1", np.full((3, 3), np.nan)),
}
# A polynomial may have as many terms, a table as many entries, a Pfaffian row as many columns.
_ANY_LENGTH = ("coefficients", "radii", "vertices", "outline")
# A sphere is of the plane or of space by the point alone.
_ANY_DIMENSION = (shapes.ContactSphere, *(type(x) for x in _looks()))


def _is_longer(value: Any, given: Any) -> bool:
    """Is it the same, and some more numbers?"""
    if (
        not isinstance(value, np.ndarray)
        or value.dtype != float
        or np.ndim(value) != np.ndim(given)
        # What is left out has no length.
        or given is None
    ):
        return False
    return len(value) > len(given)


def sentence(make: Callable[[], Any], what: str) -> str:
    """With which it is refused."""
    try:
        made = make()
    except (ValueError, TypeError) as error:
        return str(error)
    raise AssertionError(f"{what} is accepted: {made}")


def _refused(part: Any, argument: str, bad: Any) -> None:
    what = f"{type(part).__name__}({argument}={str(bad)[:50]})"
    changed = arguments_of(part) | {argument: bad}
    if argument == "rotation":
        del changed["orientation"]
    said = sentence(lambda: type(part)(**changed), what)
    words = {
        "at": ("at", "points"),
        "markers": ("marker",),
        "rows": ("rows",),
        "states": ("state", "name"),
        "coordinates": ("coordinate", "name"),
        "frames": ("frame", "name"),
        "parts": ("parts", "body", "name"),
    }
    assert any(word in said for word in words.get(argument, (argument,))), f"{what}: {said}"
    assert len(said.splitlines()) == 1, f"{what}: {said}"
    assert said.isprintable(), f"{what}: {said}"
    assert said.endswith("."), f"{what}: {said}"
    assert len(said) < 350, f"{what}: {said}"


def test_every_public_part_is_tried():
    classes = {
        x
        for namespace in NAMESPACES
        # (Some are loaded with their first use.)
        for x in (getattr(namespace, name) for name in dir(namespace))
        if inspect.isclass(x) and x.__module__.startswith("jaxmbs")
    }
    assert {cls for cls, _ in CHOSEN} == {*classes, jm.Driver} - NO_PARTS


@pytest.mark.parametrize("label", CHOSEN.values())
def test_every_argument_is_checked(label: str):
    part = EXAMPLES[label]
    signature = inspect.signature(type(part)).parameters
    tried = 0
    for argument, parameter in signature.items():
        own = arguments_of(part)
        bad: Iterator[Any] | tuple[Any, ...] = WRONG.get(argument, ())
        optional = parameter.default is None
        if argument not in WRONG and callable(own[argument]):
            bad = (3, "f") if optional else (3, "f", None)
        elif argument not in WRONG:
            bad = wrong_numbers(own[argument], optional)
        for value in bad:
            any_length = argument in _ANY_LENGTH or (
                argument == "at" and type(part) in _ANY_DIMENSION
            )
            if any_length and _is_longer(value, own[argument]):
                continue
            _refused(part, argument, value)
            tried += 1
    # (An ideal actuator has no argument.)
    assert tried > 10 or not signature


def test_what_is_traced_is_not_looked_at():
    def mass(x: Any) -> Any:
        return planar.Body("a", mass=x, inertia=1.0, position=(0.0, x)).mass

    assert float(jax.jit(mass)(-1e300)) == -1e300


@pytest.mark.parametrize(
    ("size", "mass"), [(1e-6, 1e-12), (1e-3, 1e-9), (1.0, 1.0), (1e7, 1e12), (1.5e11, 2e29)]
)
def test_sizes_of_machines_and_of_planets_are_accepted(size: float, mass: float):
    inertia = min(0.4 * mass * size**2, LARGEST)
    body = planar.Body("a", mass=mass, inertia=inertia, position=(size, 0.0), velocity=(3e8, 0.0))
    planar.Revolute("A", ("ground", "a"), (size, 0.0))
    forces.SpringDamper(
        "s", ("ground", "a"), points=[(0.0, 0.0), (size, 0.0)], stiffness=1e15, damping=1e12
    )
    assert float(body.mass) == mass


@pytest.mark.parametrize("size", [SMALLEST, LARGEST])
def test_ten_numbers_at_the_ends_of_the_range_are_numbers(size: float):
    """What the range is chosen for."""
    product = np.prod(np.full(10, size))
    assert np.isfinite(product)
    assert product > np.finfo(float).tiny


def test_systems_are_made_of_their_parts():
    body = planar.Body("a", mass=1.0, inertia=1.0, position=(0.0, 0.0))
    joint = planar.Revolute("A", ("ground", "a"), (0.0, 0.0))
    bad: tuple[Any, ...] = (body, [joint], ["a"], "a", None, 3, {"a": body})
    for wrong in bad:
        said = sentence(lambda x=wrong: jm.MultibodySystem(x), "bodies")
        assert said.startswith("bodies")
        assert sentence(lambda x=wrong: jm.Model("m", 2, bodies=x), "bodies") == said
    for word in ("joints", "drivers", "forces"):
        others: tuple[Any, ...] = ([body], "a", 3)
        for wrong in others:
            said = sentence(lambda x=wrong, w=word: jm.MultibodySystem([body], **{w: x}), word)
            assert said.startswith(word)
    names: tuple[Any, ...] = ("", "a\nb", 3, None)
    for name in names:
        assert "name" in sentence(lambda x=name: jm.Model(x, 2, bodies=[body]), "name")


@pytest.mark.parametrize(
    ("constraints", "beginning"),
    [
        ([_function], "constraints must be a dictionary such as {"),
        ({"c": _function}, "constraints, entry 1 must be a constraint, got "),
    ],
)
def test_constraints_of_generalized_systems(constraints: Any, beginning: str):
    keys: Any = {"mass_matrix": _function, "force": _function, "constraints": constraints}
    said = sentence(lambda: jm.GeneralizedSystem(["x"], **keys), "constraints")
    assert said.startswith(beginning)
