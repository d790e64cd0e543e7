"""What `jaxmbs design` prints and writes."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from representatives import representatives
from typer.testing import CliRunner

import jaxmbs as jm
from jaxmbs import planar
from jaxmbs.cli import _design
from jaxmbs.cli._app import app
from jaxmbs.io import write_model


GRAVITY = 10.0

STUDY = """
schema = 1
model = "beam.toml"

[objective]
kind = "mean-square"
force = "A"

[[parameter]]
name = "bodies.beam.position.x"
low = 0.1
high = 0.9

[[parameter]]
name = "bodies.beam.mass"
low = 2.0
high = 4.0
start = 3.5

[[constraint]]
kind = "peak"
force = "B"
at_most = 12.0
"""


def run(*arguments):
    return CliRunner().invoke(app, ["design", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A beam on a pin and a roller 1 m apart: A carries m g (1 - x), B the rest."""
    found = tmp_path_factory.mktemp("study")
    body = planar.Body("beam", mass=3.0, inertia=0.2, position=(0.2, 0.0))
    pin = planar.Revolute("A", ("ground", "beam"), (0.0, 0.0))
    roller = planar.PointOnLine("B", ("beam", "ground"), (1.0, 0.0), (1.0, 0.0))
    model = jm.Model("beam", 2, bodies=[body], joints=[pin, roller], gravity=(0.0, -GRAVITY))
    (found / "beam.toml").write_text(write_model(model), encoding="utf-8")
    (found / "study.toml").write_text(STUDY, encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def document(folder):
    arguments = ("--json", "--sensitivity", "--plot", folder / "way.png")
    result = run(folder / "study.toml", "--store", folder / "study.npz", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


@pytest.mark.thorough
def test_document(document, folder):
    """The force in A is least for the lightest beam, as far on B as B may carry."""
    assert document["model"] == "beam"
    assert document["unit"] == "N^2"
    assert document["converged"]
    assert document["start"] == pytest.approx((35.0 * 0.8) ** 2, rel=1e-9)
    assert document["value"] == pytest.approx((20.0 * 0.4) ** 2, rel=1e-6)
    position, mass = document["parameters"]
    assert position["name"] == "bodies.beam.position.x"
    assert position["to"] == pytest.approx(0.6, abs=1e-6)
    assert (mass["unit"], mass["from"], mass["at_bound"]) == ("kg", 3.5, True)
    assert mass["to"] == pytest.approx(2.0, abs=1e-6)
    (limit,) = document["constraints"]
    assert limit["at_most"] == 12.0
    assert limit["value"] == pytest.approx(12.0, rel=1e-6)
    assert len(document["history"]) == document["iterations"] + 1
    assert document["history"][0] == document["start"]
    assert document["history"][-1] == pytest.approx(document["value"], rel=1e-6)
    # d (m g (1 - x))^2
    slope = document["sensitivity"]
    assert slope["bodies.beam.position.x"] == pytest.approx(-2 * 20.0**2 * 0.4, rel=1e-6)
    assert slope["bodies.beam.mass"] == pytest.approx(2 * 2.0 * (GRAVITY * 0.4) ** 2, rel=1e-6)


@pytest.mark.thorough
def test_picture(document, folder):
    assert document["plot"] == str(folder / "way.png")
    assert (folder / "way.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "way.png").stat().st_size > 10_000


@pytest.mark.thorough
def test_text_of_a_study_that_is_kept(document, folder):
    result = run(folder / "study.toml", "--store", folder / "study.npz")
    assert result.exit_code == 0
    assert f"objective 784 -> {document['value']:.6g} N^2" in result.stdout
    assert "at its bound" in result.stdout
    assert "constraint: 12, at most 12" in result.stdout


@pytest.mark.thorough
def test_many_starts(folder):
    text = STUDY.split("[[constraint]]")[0] + (
        '[optimiser]\nmethod = "adam"\nsteps = 9\nrate = 0.2\n\n[starts]\ncount = 4\nseed = 2\n'
    )
    path = folder / "many.toml"
    path.write_text(text, encoding="utf-8")
    result = run(path, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    told = json.loads(result.stdout)
    assert told["starts"]["count"] == 4
    assert told["starts"]["failures"] == {}
    assert told["value"] == min(told["starts"]["values"])
    assert np.isfinite(told["history"]).all()


REFUSED = {
    'model = "beam.toml"': {
        "": "the key 'model' is missing",
        'model = "none.toml"': "cannot read",
        'model = "dor"': "Did you mean 'door'?",
        'model = "beam.toml"\nthing = 1': "the file: unknown key 'thing'",
        'model = "beam.toml"\n[run]\nkind = "driven"': "of kind 'driven': the key 'end' is missing",
        'model = "beam.toml"\n[run]\nkind = "driven"\nend = 0.0': "[run]: end must be greater than",
        'model = "beam.toml"\n[run]\nkind = "motion"\nend = "1"': "[run]: end must be a number,",
        'model = "beam.toml"\n[run]\nkind = "motion"\nend = 0.0': "end of the run must lie behind",
        'model = "beam.toml"\n[run]\nend = 1.0': "of kind 'state': unknown key 'end'",
        'model = "beam.toml"\n[optimiser]\nmethod = "newton"': "must be 'adam', 'bfgs', 'slsqp' or",
        'model = "beam.toml"\n[optimiser]\nmethod = "slsqp"\nrate = 1.0': "': unknown key 'rate'",
        'model = "beam.toml"\n[optimiser]\nmethod = "adam"': "use SLSQP() or TrustRegion()",
        'model = "beam.toml"\n[starts]\ncount = 3': "go with method 'adam' and no [[constraint]]",
        'model = "beam.toml"\n[optimiser]\nmethod = "bfgs"': "use SLSQP() or TrustRegion()",
        'model = "beam.toml"\n[[parameter]]\nname = "x"': "the key 'low' is missing",
    },
    "schema = 1": {
        "": "the key 'schema' is missing at the head of the file; set it to 1.",
        "schema = 1 2": "is not a TOML file",
    },
    'kind = "mean-square"\nforce = "A"': {
        'kind = "mean"\nforce = "A"': "kind must be 'peak', 'final' or 'mean-square'",
        'kind = "peak"\nforce = 3': "[objective], force: joints must be a list of names",
        'kind = "peak"': "give `force` or `torque` (of a joint, or several) or `combination`",
        'kind = "peak"\nforce = "A"\nexponent = -1.0': "exponent must be at least 1",
        'kind = "final"\nforce = "A"\nexponent = 2.0': "and force: unknown key 'exponent'",
        'kind = "peak"\nforce = "Q"': "'Q'",
        'kind = "peak"\nforce = "A"\ntorque = "A"': "one of the three",
        'kind = "peak"\ntorque = "A"': "ask for its force, Force('A'), in a study",
        'kind = "peak"\ncombination = "B.n"\nbody = "beam"': "and combination: unknown key 'body'",
    },
    "low = 0.1": {
        "": "the key 'low' is missing",
        "low = nan": "low must be a finite number",
        "low = 0.9": "must be finite and increase",
        "low = 0.3": "starts at 0.2, outside of its bounds",
    },
    "bodies.beam.position.x": {"bodies.beam.size": "'beam' has no such number"},
    "low = 2.0": {"low = -2.0": "mass must be greater than zero"},
}


CASES = [(old, new, message) for old, news in REFUSED.items() for new, message in news.items()]
# Known after a gradient only, as tests/test_zero_objectives.py says of the same words.
AFTERWARDS = [case for case in CASES if "in a study" in case[2]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    representatives(CASES, *(case for case in CASES if case not in AFTERWARDS)),
)
def test_refused(old, new, message, folder):
    assert STUDY.count(old) == 1
    path = folder / "refused.toml"
    path.write_text(STUDY.replace(old, new), encoding="utf-8")
    result = run(path)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_files_that_cannot_be(folder):
    assert "cannot read" in run(folder / "nothing.toml").stderr
    result = run(folder / "study.toml", "--plot", folder / "way.txt")
    assert result.exit_code == 2
    assert "--plot writes .png, .pdf or .svg" in result.stderr


def test_the_page_on_study_files_names_every_key_and_word(tmp_path):
    """And its study is one."""
    text = (Path(__file__).parent.parent / "docs/guide/study-file.md").read_text(encoding="utf-8")
    kinds = (_design._RUNS, _design._OPTIMISERS, _design._OBJECTIVES)
    words = {word for own in kinds for word in own}
    keys = {
        key for own in (*kinds, _design._QUANTITIES) for kind in own.values() for key in kind.keys
    }
    keys |= {*_design._QUANTITIES, "name", "low", "high", "start", "at_most", "seed", "kind"}
    tables = {"run", "objective", "optimiser", "starts"} | {"parameter", "constraint"}
    assert {*_design._KEYS} == tables | {"schema", "model"}
    table = text[text.index("## Keys") :]
    named = set(re.findall(r"`\[?\[?\"?([\w-]+)\"?\]?\]?`", table))
    assert words | keys | tables <= named
    path = tmp_path / "study.toml"
    path.write_text(re.findall(r"```toml\n(.*?)```", text, flags=re.S)[0], encoding="utf-8")
    study = _design.read_study(path)
    assert {*study.bounds} == {"bodies.crank.position.x", "bodies.piston.mass"}
    (constraint,) = study.constraints
    assert constraint.bound == 5.0
