"""The reference and the JSON Schema of model files say what the reader does."""

import copy
import itertools
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from crane import CRANE
from helpers import MECHANISMS
from model_parts import PARTS
from representatives import representatives
from typer.testing import CliRunner

from jaxmbs import io, mechanisms
from jaxmbs._constraints import Driver
from jaxmbs._fields import keys_of
from jaxmbs.cli._app import app
from jaxmbs.io import _examples, _registry, model_from_tables, write_model
from jaxmbs.io._expansion import Assembly, Cylinder, SHAPES, USES


FOLDER = Path(io.__file__).parent


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = io.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def _examples_of(kind: str, dimension: int) -> list[dict[str, Any]]:
    """The examples of one table, as entries."""
    typed: dict[str, Any] = {
        "joint": _examples.JOINTS[dimension],
        "force": _examples.FORCES if dimension == 2 else _examples.SPATIAL_FORCES,
        "element": _examples.ELEMENTS,
        "compliance": {word: (own,) for word, own in _examples.COMPLIANCES.items()},
    }
    plain: dict[str, Any] = {
        "body": _examples.BODIES[dimension],
        "driver": (_examples.DRIVER,),
        "use": _examples.USES[dimension],
        "assembly": (_examples.ASSEMBLIES[dimension],),
        "cylinder": (_examples.CYLINDERS[dimension],),
        "visual": _visuals(dimension),
    }
    if kind in plain:
        return [dict(entry) for entry in plain[kind]]
    several = [(word, entry) for word, own in typed[kind].items() for entry in own]
    return [{"name": f"new {k}", "type": word, **x} for k, (word, x) in enumerate(several)]


def _visuals(dimension: int) -> list[dict[str, Any]]:
    """Visual shapes of that dimension; the mesh is one that exists."""
    mesh = str(Path(__file__).parent / "wedge.stl")
    found: list[dict[str, Any]] = [
        {"type": word, **entry}
        for word, several in _examples.VISUALS.items()
        for entry in several
        if len(entry["at"]) == dimension
    ]
    return [entry | ({"file": mesh} if "file" in entry else {}) for entry in found]


def _models() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every example, added to the small models of the reference."""
    for dimension in (2, 3):
        base = copy.deepcopy(dict(_examples.BASES[dimension]))
        kinds = ["body", "joint", "driver", "visual", "assembly", "use", "cylinder"]
        # Most examples of forces are of the plane.
        kinds += ["force", "compliance"] if dimension == 2 else ["force", "element"]
        whole = copy.deepcopy(base)
        for kind in kinds:
            whole[kind] = [*whole.get(kind, []), *_examples_of(kind, dimension)]
        yield f"all of dimension {dimension}", whole
        shapes = [
            {"name": word, "shape": {"type": word, **own}, "position": [0.0] * dimension}
            for word, own in _examples.SHAPES.items()
        ]
        motions = [
            _examples.DRIVER | {"name": word, "motion": {"type": word, **own}}
            for word, own in _examples.MOTIONS.items()
        ]
        yield f"shapes of dimension {dimension}", base | {"body": [*base["body"], *shapes]}
        if dimension == 2:
            yield "motions", base | {"driver": motions}
            yield "motors", base | {"force": _motors()}
        contacts = _contacts(dimension)
        yield f"contacts of dimension {dimension}", base | {"force": contacts}


def _motors() -> list[dict[str, Any]]:
    """Every actuator with every controller."""
    (motor, _) = _examples.FORCES["motor"]
    pairs = itertools.product(_examples.ACTUATORS.items(), _examples.CONTROLLERS.items())
    return [
        {"name": f"{actuator} {controller}", "type": "motor", **motor}
        | {"actuator": {"type": actuator, **first}, "controller": {"type": controller, **second}}
        for (actuator, first), (controller, second) in pairs
    ]


def _contacts(dimension: int) -> list[dict[str, Any]]:
    """Every shape against a sphere or a half-space."""
    (contact, _) = _examples.FORCES["contact"]
    found: list[dict[str, Any]] = []
    for word, several in _examples.CONTACT_SHAPES.items():
        for k, own in enumerate(several):
            # Boxes and polytopes of each dimension have an example of their own.
            shown = own.get("size") or (own.get("vertices") or [[0.0, 0.0]])[0]
            size = len(shown)
            if size != dimension and word in ("box", "polytope"):
                continue
            lifted = {
                key: _in_space(value) if dimension == 3 and size == 2 else value
                for key, value in own.items()
            }
            second: dict[str, Any] = {"type": "sphere", "radius": 0.0}
            shapes = {"first": {"type": word, **lifted}, "second": second}
            found.append({"name": f"{word} {k}", "type": "contact", **contact, **shapes})
    return found


def _in_space(value: Any) -> Any:
    """A point, or points, of the plane in space."""
    if isinstance(value, list):
        return [_in_space(x) for x in value] if isinstance(value[0], list) else [*value, 0.0]
    return value


EXAMPLES = dict(_models())


@pytest.mark.parametrize(
    "name", representatives(EXAMPLES, *(x for x in EXAMPLES if "dim" in x or x == "motors"))
)
def test_every_example_is_read_and_fits_the_schema(name: str, validator: Any):
    content = EXAMPLES[name]
    validator.validate(content)
    model = model_from_tables(copy.deepcopy(content))
    assert tomllib.loads(write_model(model)) == content | {"name": "model"}


def test_every_key_has_an_example():
    def keys(cls: type) -> set[str]:
        return set(keys_of(cls)) - {"name"}

    def shown(entries: Any) -> set[str]:
        return {key for entry in entries for key in entry}

    for dimension in (2, 3):
        for word, cls in _registry.JOINTS[dimension].items():
            # A class of both dimensions may have keys of space.
            spatial = {
                k for k, own in keys_of(cls).items() if own.said.meaning.startswith("in spac")
            }
            needed = keys(cls) - (spatial if dimension == 2 else set())
            assert needed == shown(_examples.JOINTS[dimension][word]), word
        assert keys(_registry.BODIES[dimension]) <= shown(_examples.BODIES[dimension])
        for word, cls in _registry.TYPED_BODIES[dimension].items():
            typed = [own for own in _examples.BODIES[dimension] if own.get("type") == word]
            assert keys(cls) == shown(typed) - {"name", "type"}, word
        for word, cls in _registry.ELEMENTS[dimension].items():
            assert keys(cls) == shown(_examples.ELEMENTS[word]), word
        assert keys(USES[dimension]) <= shown(_examples.USES[dimension])
    forces = _examples.ALL_FORCES
    for word, cls in _registry.FORCES.items():
        extra = {"follows"} if word == "applied" else set()
        assert keys(cls) | extra == shown(forces[word]), word
    for word, cls in _registry.CONTACT_SHAPES.items():
        assert keys(cls) == shown(_examples.CONTACT_SHAPES[word]), word
    for word, cls in _registry.VISUALS.items():
        assert keys(cls) <= shown(_examples.VISUALS[word]), word
    for classes, examples in (
        (_registry.MOTIONS, _examples.MOTIONS),
        (_registry.ACTUATORS, _examples.ACTUATORS),
        (_registry.CONTROLLERS, _examples.CONTROLLERS),
        (_registry.COMPLIANCES, _examples.COMPLIANCES),
        (SHAPES, _examples.SHAPES),
    ):
        for word, cls in classes.items():
            # One of density and mass is given.
            assert keys(cls) - {"density", "mass"} <= set(examples[word]), word
    assert keys(Driver) == set(_examples.DRIVER) - {"name"}
    assert keys(Cylinder) == shown(_examples.CYLINDERS.values()) - {"name"}
    assert keys(Assembly) <= shown(_examples.ASSEMBLIES.values())


def test_the_files_beside_the_reader_are_what_it_says():
    assert (FOLDER / "REFERENCE.md").read_text(encoding="utf-8") == io.reference()
    schema = (FOLDER / "model.schema.json").read_text(encoding="utf-8")
    assert json.loads(schema) == io.json_schema()


def test_whole_files_of_the_page_are_read(validator: Any):
    blocks = io.reference().split("```toml\n")[1:]
    whole = [text.split("```")[0] for text in blocks]
    files = [tomllib.loads(text) for text in whole if "\nschema = 1" in f"\n{text}"]
    assert len(files) == 2
    for content in files:
        validator.validate(content)
        model_from_tables(content)


def test_the_schema_refuses_what_no_reader_accepts(validator: Any):
    """Numbers out of bounds, and arrays of another length."""
    body: Any = {"name": "b", "mass": 1.0, "inertia": [1.0, 1.0, 1.0], "position": [0.0, 0.0, 0.0]}
    joint: Any = {"name": "j", "type": "revolute", "bodies": ["ground", "b"], "at": [0.0, 0.0, 0.0]}
    joint["axis"] = [0.0, 0.0, 1.0]
    disk: Any = {
        "name": "d",
        "type": "rolling_disk",
        "bodies": ["b"],
        "axis": [0, 1, 0],
        "radius": 1,
    }
    content: Any = {"schema": 1, "dimension": 3, "gravity": [0.0, 0.0, -9.81], "body": [body]}
    content["joint"] = [joint, disk]
    validator.validate(content)
    for part, change in (
        (body, {"mass": -1.0}),
        (body, {"mass": 0}),
        (body, {"position": [0.0, 0.0]}),
        (joint, {"at": [0.0, 0.0]}),
        (joint, {"axis": [0.0, 0.0, 1.0, 0.0]}),
        (joint, {"bodies": ["ground", "b", "c"]}),
        (disk, {"radius": -0.1}),
        (content, {"gravity": [0.0, -9.81]}),
    ):
        kept = dict(part)
        part.update(change)
        assert not validator.is_valid(content), change
        with pytest.raises(ValueError, match=next(iter(change))):
            model_from_tables(copy.deepcopy(content))
        part.update(kept)


def test_the_schema_accepts_what_the_reader_accepts(validator: Any):
    for part in PARTS.values():
        assert validator.is_valid(part.content()), part
    assert validator.is_valid(dict(CRANE))
    for mechanism in MECHANISMS:
        if mechanism.in_files:
            text = write_model(mechanisms.get(mechanism.name))
            assert validator.is_valid(tomllib.loads(text)), mechanism.name


def test_the_schema_refuses_unknown_and_missing_keys(validator: Any):
    assert not validator.is_valid(dict(CRANE) | {"units": "mm"})
    for part in PARTS.values():
        assert not validator.is_valid(part.content(colour="red")), part
        # Whether friction needs a radius its joint decides, and a velocity whether it sticks.
        for key in (key for key in part.required if key not in ("radius", "velocity")):
            content = part.content()
            del content[part.table][-1][key]
            assert not validator.is_valid(content), (part, key)
    for way in (
        ("use", 0),
        ("cylinder", 0),
        ("cylinder", 0, "rod"),
        ("assembly", 1),
        ("assembly", 1, "body", 0),
        ("body", 0, "shape"),
        ("driver", 0, "motion"),
        ("joint", 0, "at"),
    ):
        content: Any = copy.deepcopy(CRANE)
        table = content
        for step in way:
            table = table[step]
        table["colour"] = "red"
        assert not validator.is_valid(content), way
        with pytest.raises(ValueError, match=r"colour|body = "):
            model_from_tables(content)


def test_the_command_prints_both(tmp_path: Path):
    def printed(*options: str) -> str:
        done = CliRunner().invoke(app, ["reference", *options], catch_exceptions=False)
        assert (done.exit_code, done.stderr) == (0, "")
        return done.stdout

    assert printed() == io.reference()
    assert json.loads(printed("--schema")) == io.json_schema()
    assert json.loads(printed("--schema", "--json"))["text"] == printed("--schema")
    out = tmp_path / "model.schema.json"
    assert printed("--schema", "--out", str(out)) == f"wrote {out}\n"
    assert out.read_bytes() == (FOLDER / "model.schema.json").read_bytes()
    refused = CliRunner().invoke(app, ["reference", "--out", str(tmp_path)])
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "cannot write" in refused.stderr
