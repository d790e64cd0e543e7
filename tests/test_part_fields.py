"""Fields of parts are declared once: with a unit, for files, sweeps and the reference."""

import copy
import dataclasses
import inspect
import tomllib
from pathlib import Path
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import pytest
from model_parts import BASES, driver, PARTS

from jaxmbs import Driver, forces, io, Model, motions, planar, spatial
from jaxmbs._constraints import AbstractJoint, AbstractPrimitive, Frames
from jaxmbs._constraints._fields import JOINT_NAME, planar_frames, PLANAR_PAIR, TWO_BODIES
from jaxmbs._constraints._primitives import Coincide
from jaxmbs._custom_types import Scalar
from jaxmbs._fields import (
    AbstractDeclared,
    Field,
    fields_of,
    keys_of,
    not_negative,
    number,
    part_name,
    positive,
    reference,
)
from jaxmbs._forces.base import AbstractJointForce, AbstractLoad
from jaxmbs._sweep._subjects import ModelSubject, with_values
from jaxmbs.io import _read, _registry, _write, model_from_tables, write_model


CLASSES = {
    cls
    for group in (
        _registry.BODIES,
        *_registry.JOINTS.values(),
        _registry.MOTIONS,
        _registry.ACTUATORS,
        _registry.CONTACT_SHAPES,
        _registry.CONTROLLERS,
        _registry.FORCES,
        _registry.FOLLOWS,
        _registry.COMPLIANCES,
        *_registry.TYPED_BODIES.values(),
        *_registry.ELEMENTS.values(),
    )
    for cls in group.values()
}
# Of several units at once, which their meaning says.
MIXED = {
    (forces.Bushing, "stiffness"),
    (forces.Bushing, "damping"),
    (planar.Pfaffian, "coefficients"),
    (spatial.Coupling, "coefficients"),
    (motions.Polynomial, "coefficients"),
}


@pytest.mark.parametrize("cls", sorted(CLASSES, key=str))
def test_every_field_is_declared_with_a_unit(cls: type):
    arguments = inspect.signature(cls).parameters
    fields = {f.name for f in dataclasses.fields(cls) if f.name in arguments}
    declared = fields_of(cls)
    assert declared.keys() == fields
    assert {key.argument for key in keys_of(cls).values()} == arguments.keys()
    for name, said in declared.items():
        numbers = "float" in str(said.form)
        assert bool(said.unit) == (numbers and (cls, name) not in MIXED), name
        assert all(own.meaning and own.admits for own in said.keys), name


def test_the_declared_key_is_the_field_or_a_way_to_give_it():
    ways = {key for cls in CLASSES for key in keys_of(cls)}
    for cls in CLASSES:
        for name, said in fields_of(cls).items():
            assert said.key == name or said.key == "body", (cls, name)
    assert {"points", "rotation", "carrier", "body"} <= ways


def _parts(model: Model) -> list[Any]:
    own = [*model.bodies, *model.joints, *model.drivers, *model.forces, *model.compliances]
    own += model.elements
    inner = [x for part in own for x in vars(part).values() if isinstance(x, AbstractDeclared)]
    return [*own, *inner]


def test_a_file_keeps_every_declared_field():
    """Of all parts of a dimension in one model."""
    met = set()
    for dimension in (2, 3):
        content = copy.deepcopy(dict(BASES[dimension]))
        for k, part in enumerate(p for p in PARTS.values() if p.dimension == dimension):
            content.setdefault(part.table, []).append(part.entry | {"name": f"part {k}"})
        model = model_from_tables(content)
        again = model_from_tables(tomllib.loads(write_model(model)))
        for one, other in zip(_parts(model), _parts(again), strict=True):
            met.add(type(one))
            for name in fields_of(one):
                assert eqx.tree_equal(getattr(one, name), getattr(other, name)), name
    assert met == {*CLASSES, Driver}


def test_units_are_those_of_the_laws():
    """As docstrings and the page of model files say them."""

    def of(cls: type, name: str) -> str:
        return fields_of(cls)[name].unit

    assert of(forces.SpringDamper, "stiffness") == "N/m"
    assert of(forces.SpringDamper, "damping") == "N s/m"
    assert of(forces.TorsionSpring, "stiffness") == "N m/rad"
    assert of(forces.TorsionSpring, "damping") == "N m s/rad"
    assert of(forces.CoulombFriction, "velocity") == of(planar.Body, "velocity") == "m/s"
    assert of(spatial.Body, "inertia") == of(planar.Body, "inertia") == "kg m2"
    assert of(spatial.Screw, "pitch") == of(planar.Distance, "length") == "m"


@pytest.mark.parametrize(("joint", "unit"), [("hinge", "rad"), ("slide", "m")])
def test_numbers_of_a_motion_have_the_unit_of_what_is_driven(joint: str, unit: str):
    coordinate = {"rad": "rotation", "m": "translation"}[unit]
    expected = {
        "sine": {"amplitude": unit, "offset": unit, "frequency": "Hz", "phase": "rad"},
        "linear": {"rate": f"{unit}/s", "offset": unit},
        "step": {"times": "s", "values": unit},
    }
    for word, units in expected.items():
        motion = PARTS[f"{word} motion"].entry["motion"]
        content = dict(BASES[2]) | {"driver": [driver(joint, coordinate, motion)]}
        subject = ModelSubject(model_from_tables(content), None)
        assert subject.unit("drivers.drive") == unit
        found = {key: subject.unit(f"drivers.drive.motion.{key}") for key in units}
        assert found == units


def test_the_page_is_what_parts_declare():
    page = Path(io.__file__).parent / "REFERENCE.md"
    assert page.read_text(encoding="utf-8") == io.reference()


def test_the_page_says_what_is_required():
    lines = io.reference().splitlines()
    for part in PARTS.values():
        table = part.entry.get("motion", part.entry)
        word = table.get("type", f"dimension {part.dimension}")
        cells = {line.split(" | ")[1]: line for line in lines if line.startswith(f"| {word} |")}
        for key in (k for k in table if k not in ("name", "type") and word != "prismatic"):
            assert key in cells, (word, key)
    assert any("| screw | pitch | a number | m | required |" in line for line in lines)
    assert any("| spring_damper | length | a number >= 0 | m | the dist" in line for line in lines)


class Clamp(AbstractJoint):
    """A pin with a number of its own, as someone who adds a joint writes it."""

    kind: ClassVar[str] = "clamp"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Any = eqx.field(converter=PLANAR_PAIR)
    grip: Scalar = eqx.field(default=0.5, converter=not_negative("grip", "Pa", "of the jaws"))

    def placements(self, references: Frames) -> Frames:
        del references
        return planar_frames(self.at, jnp.asarray(0.0))

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (Coincide(2),)


class Choke(AbstractJointForce):
    """A force with two numbers, one of them optional."""

    kind: ClassVar[str] = "choke"
    name: str = eqx.field(static=True, converter=part_name("a force"))
    joint: str = eqx.field(static=True, converter=reference("joint", "that it chokes"))
    area: Scalar = eqx.field(kw_only=True, converter=positive("area", "m2", "of the hole"))
    rise: Scalar = eqx.field(default=0.0, kw_only=True, converter=number("rise", "K", "of heat"))

    def load_on(self, joint: AbstractJoint) -> AbstractLoad:
        return forces.TorsionSpring("t", "J", damping=self.area).load_on(joint)


@pytest.fixture
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    joints = dict(_registry.JOINTS) | {2: {**_registry.JOINTS[2], "clamp": Clamp}}
    forces = {d: {**_registry.FORCES, "choke": Choke} for d in (2, 3)}
    types = dict(_registry.TYPES) | {"joint": joints, "force": forces}
    for module in (_registry, _read, _write):
        monkeypatch.setattr(module, "TYPES", types)


@pytest.mark.usefixtures("_registered")
class TestOfAnother:
    """A joint and a force that the package does not have, each with one line in the registry."""

    def content(self, **force: Any) -> dict[str, Any]:
        clamp = {"name": "C", "type": "clamp", "bodies": ["bar", "rod"], "points": [[1, 0], [1, 0]]}
        choke = {"name": "F", "type": "choke", "joint": "hinge", "area": 0.25} | force
        base = dict(BASES[2])
        return base | {"joint": [base["joint"][0], clamp], "force": [choke]}

    def test_is_read_and_written(self):
        model = model_from_tables(self.content(rise=2.0))
        clamp: Any = model.joints[-1]
        choke: Any = model.forces[0]
        assert (float(clamp.grip), float(choke.area), float(choke.rise)) == (0.5, 0.25, 2.0)
        text = write_model(model)
        tables = tomllib.loads(text)
        assert list(tables["force"][0]) == ["name", "type", "joint", "area", "rise"]
        assert tables["joint"][1] == {
            "name": "C",
            "type": "clamp",
            "bodies": ["bar", "rod"],
            "at": [1.0, 0.0],
            "grip": 0.5,
        }
        assert eqx.tree_equal(model_from_tables(tables), model)

    def test_is_refused_by_its_declarations(self):
        for force, said in (
            ({"area": 0.0}, "force 'F': area must be greater than zero"),
            ({"area": [1.0]}, r"force 'F': area must be a number, got \[1\.0\]"),
            ({"hole": 1.0}, "unknown key 'hole'; the keys are name, type, joint, area, rise"),
        ):
            with pytest.raises(ValueError, match=said):
                model_from_tables(self.content(**force))

    def test_is_varied_with_its_unit(self):
        subject = ModelSubject(model_from_tables(self.content()), None)
        named = ("forces.F.area", "forces.F.rise", "joints.C.grip", "joints.C.at.first.x")
        assert [subject.unit(subject.name(name)) for name in named] == ["m2", "K", "Pa", "m"]
        varied, _ = with_values(subject.model, {"joints.C.grip": 3.0, "forces.F.rise": 4.0})
        parts: tuple[Any, Any] = (varied.joints[-1], varied.forces[0])
        assert (float(parts[0].grip), float(parts[1].rise), float(parts[1].area)) == (3, 4, 0.25)
        with pytest.raises(ValueError, match=r"'joints\.C\.grip': grip must be at least 0"):
            subject.check({"joints.C.grip": -3.0})


class Undeclared(AbstractJointForce):
    """As written outside of the package."""

    kind: ClassVar[str] = "undeclared"
    name: str = eqx.field(static=True)
    joint: str = eqx.field(static=True)
    stiffness: Scalar

    def load_on(self, joint: AbstractJoint) -> AbstractLoad:
        return forces.TorsionSpring("t", "J", stiffness=self.stiffness).load_on(joint)


def test_without_declarations_there_is_no_unit():
    model = model_from_tables(BASES[2])
    own = Undeclared("own", "hinge", jnp.asarray(2.0))
    model = Model("m", 2, bodies=model.bodies, joints=model.joints, forces=[own])
    subject = ModelSubject(model, None)
    assert subject.name("forces.own.stiffness") == "forces.own.stiffness"
    assert subject.unit("forces.own.stiffness") == ""
    assert float(subject.value("forces.own.stiffness")) == 2.0
    with pytest.raises(ValueError, match=r"force 'own' \(undeclared\) is made of a Python"):
        write_model(model)


def test_a_declaration_checks_what_the_part_checks():
    said = fields_of(planar.Body)["mass"]
    assert isinstance(said, Field)
    with pytest.raises(ValueError, match=r"^mass must be greater than zero, got -1\.$"):
        said(-1.0)
