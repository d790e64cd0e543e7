"""Parameters, shapes, sub-assemblies and cylinders of model files that cannot be: each is refused
with one sentence; and commands that read and vary such files."""

import copy
import json
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from crane import CRANE
from typer.testing import CliRunner

import jaxmbs as jm
from jaxmbs._errors import ModelError
from jaxmbs.cli._app import app
from jaxmbs.io import model_from_tables
from jaxmbs.io._write import source_text


def _edit(edit: Any) -> dict[str, Any]:
    content = copy.deepcopy(CRANE)
    edit(content)
    return content


def _put(way: str, value: Any) -> Any:
    """Sets what lies at a place such as "body.0.mass", or adds to a list at "+"."""

    def edit(content: Any) -> None:
        *steps, last = way.split(".")
        for step in steps:
            content = content[int(step)] if step.isdigit() else content[step]
        if last == "+":
            content.append(value)
        else:
            content[last] = value

    return edit


REFUSED: dict[str, tuple[Any, str]] = {
    "parameters a list": (_put("parameters", [1.0]), r"\[parameters\] must be a table"),
    "parameter a text": (_put("parameters.g", "gee"), "'gee' is no parameter"),
    "parameter true": (_put("parameters.g", True), "g = True"),
    "parameter a table": (_put("parameters.g", {"x": 1}), "g = "),
    "parameter nan": (_put("parameters.g", float("nan")), "must be finite"),
    "parameter in quotes": (_put("parameters.g", "9.81"), "leave the quotes out"),
    "parameter's name": (_put("parameters.the length", 1.0), "'the length'"),
    "parameter a function": (_put("parameters.sin", 1.0), "'sin'"),
    "a circle": (_put("parameters.length", "10 * width"), "depends on itself"),
    "itself": (_put("parameters.length", "length + 1"), "length needs parameters.length"),
    "ragged": (_put("parameters.tip", [[1.0], 2.0]), "not of one size"),
    "zero": (_put("body.1.mass", "1 / (length - 0.4)"), "body 'weight': mass = .*divides by zero"),
    "negative": (_put("body.1.mass", "-length"), "body 'weight': mass must be greater"),
    "vector": (_put("body.1.mass", "tip"), "body 'weight': mass must be a number"),
    "too short": (_put("body.0.position", ["length"]), "body 'crank': position must be"),
    "unknown name": (_put("body.1.mass", "lenght"), "'lenght' is no parameter .*length"),
    "no body": (_put("joint.0.at.body", "crank 2"), "joint 'A': at = .*no body 'crank 2'"),
    "body in a circle": (
        _put("body.0.position", {"body": "weight", "point": [0, 0]}),
        "depends on itself",
    ),
    "other key": (_put("joint.0.at", {"body": "crank", "at": [0, 0]}), "joint 'A': at = "),
    "no axes": (_put("body.1.inertia", {"body": "crank", "point": 1}), "inertia must be a number"),
    "shape and inertia": (_put("body.0.inertia", 1.0), "`inertia` or `shape`"),
    "shape and mass": (_put("body.0.mass", 1.0), "body 'crank': give `mass`, or `density`"),
    "no mass": (lambda c: c["body"][0]["shape"].pop("density"), "body 'crank': give `mass`"),
    "no shape": (_put("body.0.shape", "box"), "body 'crank', shape must be a table"),
    "shape's type": (_put("body.0.shape.type", "cone"), "box, cylinder, tube, sphere; got 'cone'"),
    "shape's key": (_put("body.0.shape.radius", 1.0), "unknown key 'radius'"),
    "shape's size": (lambda c: c["body"][0]["shape"].pop("size"), "the key 'size' is missing"),
    "flat": (_put("body.0.shape.size", [1.0, 1.0]), "size must be a vector of 3"),
    "no assembly": (_put("use.0.assembly", "arm"), "no assembly 'arm'.* toe, leg"),
    "use a table": (_put("use", {"name": "u"}), r"written \[\[use\]\]"),
    "use's key": (_put("use.0.colour", 1), "use 'left': unknown key 'colour'"),
    "use's name": (_put("use.0.name", "left.leg"), "full stops"),
    "name twice": (_put("use.1.name", "left"), "use 'left': the name is used twice"),
    "same names": (_put("body.1.name", "left shank"), "left shank"),
    "two turns": (_put("use.0.angle", 1.0), "use 'left': give one of angle and direction"),
    "outer names": (_put("use.0.bodies", {}), "for each outer name of the assembly .top."),
    "outer body": (_put("use.0.bodies.top", "crane"), "'crane'"),
    "other parameter": (_put("use.0.parameters.size", 1.0), "'size' is no parameter"),
    "required": (lambda c: c["use"][0].pop("parameters"), "'reach' is missing"),
    "assembly's key": (_put("assembly.0.gravity", [0, 0]), "unknown key 'gravity'"),
    "assembly twice": (_put("assembly.0.name", "leg"), "assembly 'leg': the name is used twice"),
    "inner mistake": (_put("assembly.1.body.0.mass", "1 / 0"), "body 'left shank': mass = '1 / 0'"),
    "inner number": (_put("assembly.1.body.0.mass", -1.0), "body 'left shank': mass must be"),
    "inner key": (_put("assembly.1.body.0.weight", 1.0), "body 'left shank': unknown key 'weight'"),
    "uses itself": (
        _put("assembly.1.use.0.assembly", "leg"),
        "assembly 'leg' uses itself .leg uses leg",
    ),
    "marker axes": (
        _put(
            "assembly.1.compliance",
            [{"name": "c", "type": "joint", "joint": "knee", "compliance": [1e-6, 1e-6]}],
        ),
        "compliance 'left c': compliance = .*axes of a marker",
    ),
    "cylinder's end": (_put("cylinder.0.ends", ["ball", "none"]), "ends must be two of revolute"),
    "cylinder's shape": (
        _put("cylinder.0.rod", {"type": "box", "size": [1, 1, 1], "mass": 1}),
        "rod must be a table with the type cylinder or tube",
    ),
    "cylinder's bodies": (_put("cylinder.0.bodies", ["crank"]), "must name 2 bodies"),
    "cylinder's points": (_put("cylinder.0.points", [[0, 0]]), "cylinder 'lift'.* points"),
    "no length": (
        _put("cylinder.0.points", [[0, 0], [0, 0]]),
        "cylinder 'lift': points are one place",
    ),
    "thick rod": (_put("cylinder.0.rod.radius", 0.035), "'lift rod': .*0.035 .*inside, 0.03;"),
    "short rod": (
        _put("cylinder.0.rod.length", 0.1),
        "'lift rod': .*rod .0.1. together are shorter than the distance",
    ),
    "motion and force": (
        _put("cylinder.0.motion", {"type": "polynomial", "coefficients": [0.0, 1.0]}),
        "cylinder 'lift': give `motion` or `force`",
    ),
    "cylinder's rod": (lambda c: c["cylinder"][0].pop("rod"), "the key 'rod' is missing"),
    "a spring's length": (
        lambda c: (c["cylinder"][0].pop("damping"), c["cylinder"][0].update(length=1.0)),
        "give `stiffness` as well",
    ),
}


_BODY = {"name": "b", "mass": 1.0, "inertia": 1.0, "position": [0.0, 0.0]}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_sentence(name: str):
    edit, said = REFUSED[name]
    with pytest.raises(ModelError, match=said) as caught:
        model_from_tables(_edit(edit))
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert sentence.isprintable()
    assert len(sentence) < 400


def _tower(
    depth: int, width: int, bodies: Any = (_BODY,), parameters: Any = None
) -> dict[str, Any]:
    """Assemblies each of which uses the next one several times."""
    floors: list[dict[str, Any]] = [
        {"name": "f0", "body": list(bodies), "parameters": parameters or {}}
    ]
    for k in range(1, depth):
        uses = [{"name": f"u{n}", "assembly": f"f{k - 1}"} for n in range(width)]
        floors.append({"name": f"f{k}", "use": uses})
    use = {"name": "top", "assembly": f"f{depth - 1}"}
    return {"schema": 1, "dimension": 2, "assembly": floors, "use": [use]}


def test_small_files_cannot_make_endless_models():
    start = time.perf_counter()
    for content, said in (
        (_tower(15, 50), "a file may make 100000"),
        (_tower(30, 1), "16 are allowed"),
        (_tower(8, 10, []), "a file may make 100000"),
        (_tower(8, 10, [], {f"p{k}": 1.0 for k in range(10)}), "a file may make 100000"),
    ):
        with pytest.raises(ValueError, match=said):
            model_from_tables(content)
    assert time.perf_counter() - start < 2.0
    assert len(model_from_tables(_tower(4, 3)).bodies) == 27


def _rolling(**place: Any) -> dict[str, Any]:
    """A wheel in an assembly, in a place."""
    body = {"name": "wheel", "mass": 1.0, "inertia": [0.1, 0.2, 0.1], "position": [0.0, 0.0, 0.3]}
    disk = {"name": "roll", "type": "rolling_disk", "bodies": ["wheel"], "radius": 0.3}
    assembly = {"name": "corner", "body": [body], "joint": [disk | {"axis": [0, 1, 0]}]}
    use = {"name": "left", "assembly": "corner", **place}
    return {"schema": 1, "dimension": 3, "assembly": [assembly], "use": [use]}


def test_a_disk_rolls_on_the_plane_of_the_world():
    model = model_from_tables(_rolling(position=[1.0, 2.0, 0.0], orientation=[0.8, 0.0, 0.0, 0.6]))
    joint: Any = model.joints[0]
    np.testing.assert_allclose(joint.axis, [-0.96, 0.28, 0.0], atol=1e-15)
    tilted = [0.8, 0.6, 0.0, 0.0]
    with pytest.raises(ModelError, match=r"joint 'left roll': axis .*world's plane z = 0"):
        model_from_tables(_rolling(orientation=tilted))
    with pytest.raises(ModelError, match=r"joints.left roll.axis: .*world's plane z = 0"):
        jm.vary(model, {"uses.left.orientation": tilted})

    def axis(turn: Any) -> Any:
        changed: Any = jm.vary(model, {"uses.left.orientation": turn}).joints[0]
        return changed.axis

    assert np.all(np.isnan(jax.vmap(axis)(jnp.array([tilted]))))


def test_a_rod_that_is_varied_stays_in_its_barrel():
    model = model_from_tables(_edit(lambda content: None))
    with pytest.raises(ModelError, match="does not go in"):
        jm.vary(model, {"cylinders.lift.rod.radius": 0.05})


def test_a_body_without_mass_has_no_shape():
    shape = {"type": "sphere", "radius": 0.1, "density": 1.0}
    body = {"name": "b", "type": "massless", "position": [0.0, 0.0, 0.0], "shape": shape}
    with pytest.raises(ModelError, match="body 'b': a body of type 'massless' has no mass"):
        model_from_tables({"schema": 1, "dimension": 3, "body": [body]})


def test_long_chains_of_parameters_are_read():
    chain = {"p0": 1.0} | {f"p{k}": f"p{k - 1} + 1" for k in range(1, 3000)}
    body = {"name": "b", "mass": "p2999", "inertia": 1.0, "position": [0.0, 0.0]}
    content = {"schema": 1, "dimension": 2, "parameters": chain, "body": [body]}
    body: Any = model_from_tables(content).bodies[0]
    assert float(body.mass) == 3000.0


def test_commands_read_and_vary_such_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    content = {
        **{"schema": 1, "name": "arm", "dimension": 2, "parameters": {"length": 1.0}},
        "body": [{"name": "arm", "mass": 1.0, "inertia": 0.1, "position": ["length / 2", 0.0]}],
        "joint": [{"name": "A", "type": "revolute", "bodies": ["ground", "arm"], "at": [0, 0]}],
    }
    Path("arm.toml").write_text(source_text(content, []), encoding="utf-8")
    options = ["--over", "parameters.length=0.5:1.5:3", "--out", "store.zarr", "--json"]
    done = CliRunner().invoke(app, ["sweep", "arm.toml", *options], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["cases"], answer["model"]) == (3, "arm")
