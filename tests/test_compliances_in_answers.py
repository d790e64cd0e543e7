"""Commands and pages on models with compliances use them, and say so in their first line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import jaxmbs as jm
from jaxmbs import elastic, planar
from jaxmbs.cli._app import app
from jaxmbs.io import write_model
from jaxmbs.report import write


# A beam of 4 kg on two pins, pulled along itself by 12 N: how they share that follows from their
# stiffnesses, 1 to 3, once both are elastic.
STIFFNESS = {"A": 1e5, "B": 3e5}


def beam(joints: tuple[str, ...] = ("A", "B")) -> jm.Model:
    body = planar.Body("beam", mass=4.0, inertia=0.4, position=(0.5, 0.0))
    pins = [
        planar.Revolute(name, ("ground", "beam"), (x, 0.0)) for name, x in (("A", 0.0), ("B", 1.0))
    ]
    pull = jm.forces.Applied("pull", "beam", force=(12.0, 0.0))
    giving = [
        elastic.JointCompliance(f"soft {n}", n, compliance=(1 / STIFFNESS[n],) * 2) for n in joints
    ]
    return jm.Model(
        "beam",
        2,
        bodies=[body],
        joints=pins,
        forces=[pull],
        compliances=giving,
        gravity=(0.0, -10.0),
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    found = {}
    for word, joints in (("both", ("A", "B")), ("none", ())):
        path = folder / f"{word}.toml"
        path.write_text(write_model(beam(joints)), encoding="utf-8")
        found[word] = str(path)
    return found


def told(*arguments: str) -> Any:
    result = CliRunner().invoke(app, [*arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout) if "--json" in arguments else result.stdout


ASKED = ("--combination", "A.x - B.x", "--subset", "A")


class TestAnalyze:
    def test_document_keeps_its_words_and_has_more(self, files):
        """What stood there is of rigid bodies, as without compliances."""
        found, rigid = (told("analyze", files[k], *ASKED, "--json") for k in ("both", "none"))
        own = found.pop("elastic")
        assert found | {"model": ""} == rigid | {"model": ""}
        assert [joint["unique"] for joint in found["joints"]] == [False, False]
        assert own["compliances"] == ["soft A", "soft B"]
        assert [joint["unique"] for joint in own["joints"]] == [True, True]
        assert own["redundancy"] == 0
        assert own["sharing"] == []
        assert own["bodies"]["beam"]["A"] == {"force": True, "torque": True}
        assert own["combinations"][0]["unique"]
        assert own["subsets"][0]["unique"]

    def test_text(self, files):
        lines = told("analyze", files["both"], *ASKED).splitlines()
        assert lines[1].startswith("compliances soft A, soft B: they make 2 of the 2 reactions")
        text = "\n".join(lines)
        assert "combination A.x - B.x: not unique, with compliances unique" in text
        assert "subset A: not unique, with compliances unique" in text
        assert "elastic" not in told("analyze", files["none"])


class TestRanges:
    def test_values_are_those_of_the_springs(self, files):
        found = told("ranges", files["both"], "--json")
        assert found["elastic"]
        for joint in found["joints"]:
            assert joint["unique"]
            share = -12.0 * STIFFNESS[joint["name"]] / sum(STIFFNESS.values())
            np.testing.assert_allclose(joint["force"]["low"], [share, 20.0], atol=1e-6)
            np.testing.assert_allclose(joint["force"]["high"], [share, 20.0], atol=1e-6)

    def test_first_line(self, files):
        assert told("ranges", files["both"]).splitlines()[1].startswith("with compliances soft A")
        rigid = told("ranges", files["both"], "--rigid")
        assert rigid.splitlines()[1].startswith("of rigid bodies: compliances soft A, soft B are")
        assert "unbounded" in rigid
        assert not told("ranges", files["both"], "--rigid", "--json")["elastic"]


class TestReport:
    @pytest.mark.parametrize(
        "end", [None, pytest.param(0.1, marks=pytest.mark.thorough)], ids=["state", "motion"]
    )
    def test_command(self, files, tmp_path, end):
        more = () if end is None else ("--end", str(end), "--frames", "3")
        told("report", files["both"], "--out", str(tmp_path / "page.html"), *more)
        text = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert "With the compliances soft A, soft B: what they decide is unique" in text
        assert "All forces and torques can be trusted: every reaction is unique." in text
        assert "does not determine the reaction" not in text

    @pytest.mark.thorough
    def test_a_motion_of_rigid_bodies_says_so(self, tmp_path):
        system = beam().system()
        run = jm.simulate(system, system.reference_q, system.initial_v, 0.01)
        page = Path(tmp_path / "page.html")
        write(run, page)
        text = page.read_text(encoding="utf-8")
        assert "Of rigid bodies: the compliances soft A, soft B are not used here" in text
        assert "does not determine the reactions of A, B" in text


@pytest.mark.thorough
def test_simulate_tells_that_they_are_not_used(files):
    said = told("simulate", files["both"], "--end", "0.01")
    assert "compliances soft A, soft B are not used: reactions are those of rigid" in said
    assert "--formulation elastic uses them" in " ".join(said.split())
