"""What `simulate` and `kinematics` print (`io/REFERENCE.md`), against closed forms."""

import csv
import dataclasses
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import ellipk
from typer.testing import CliRunner

from jaxmbs import SimulationError
from jaxmbs.cli import _simulate
from jaxmbs.cli._app import app
from jaxmbs.io import load_trajectory, read_model
from jaxmbs.results import RESULTS


# A physical pendulum, released at rest with its centre of mass level with the pin.
MASS, INERTIA, ARM, GRAVITY = 2.0, 0.5, 0.7, 9.81
PENDULUM = f"""
schema = 1
name = "pendulum"
dimension = 2
gravity = [0.0, -{GRAVITY}]
[[body]]
name = "bar"
mass = {MASS}
inertia = {INERTIA}
position = [{ARM}, 0.0]
angle = 0.3
[[joint]]
name = "A"
type = "revolute"
bodies = ["ground", "bar"]
at = [0.0, 0.0]
"""
LENGTH = (INERTIA + MASS * ARM**2) / (MASS * ARM)
PERIOD = 4 * np.sqrt(LENGTH / GRAVITY) * ellipk(0.5)

# A block that falls along two guides in one line: two rows too many.
BLOCK = """
schema = 1
name = "block"
dimension = 2
gravity = [0.0, -9.81]
[[body]]
name = "block"
mass = 3.0
inertia = 1.0
position = [0.5, 0.0]
velocity = [0.0, 1.0]
[[joint]]
name = "low"
type = "translational"
bodies = ["ground", "block"]
at = [0.0, -1.0]
axis = [0.0, 1.0]
[[joint]]
name = "high"
type = "translational"
bodies = ["ground", "block"]
at = [0.0, 1.0]
axis = [0.0, 1.0]
"""

CRANK = (
    PENDULUM
    + """
[[driver]]
name = "motor"
joint = "A"
coordinate = "rotation"
motion = { type = "polynomial", coefficients = [0.0, 2.0, 1.5] }
"""
)


class Result(NamedTuple):
    code: int
    out: str
    err: str


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    return Result(result.exit_code, result.stdout, result.stderr)


def document(*arguments: str) -> dict[str, Any]:
    """The one JSON document of a command that succeeds."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, ""), err
    return json.loads(out, parse_constant=refuse)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("motion")
    (folder / "pendulum.toml").write_text(PENDULUM)
    (folder / "block.toml").write_text(BLOCK)
    (folder / "crank.toml").write_text(CRANK)
    return folder


# One set of shapes, so that it is compiled once.
SWING = ("--end", f"{PERIOD}", "--every", f"{PERIOD / 7.5}", "--rtol", "1e-11", "--atol", "1e-12")


@pytest.fixture(scope="module")
def swung(folder: Path) -> dict[str, Any]:
    arguments = (*SWING, "--out", str(folder / "swing.csv"))
    return document("simulate", str(folder / "pendulum.toml"), *arguments)


def test_a_pendulum_comes_back_after_its_period(swung: dict[str, Any]):
    assert swung["model"] == "pendulum"
    assert swung["time"] == pytest.approx(PERIOD, abs=1e-12)
    (bar,) = swung["bodies"].values()
    assert list(bar) == ["position", "angle", "velocity", "angular_velocity"]
    np.testing.assert_allclose(bar["position"], [ARM, 0.0], atol=1e-8)
    np.testing.assert_allclose(bar["velocity"], [0.0, 0.0], atol=1e-8)
    assert bar["angle"] == pytest.approx(0.3, abs=1e-8)
    assert bar["angular_velocity"] == pytest.approx(0.0, abs=1e-8)
    assert list(swung["energy"]) == ["initial", "final"]
    np.testing.assert_allclose(list(swung["energy"].values()), 0.0, atol=1e-8)


def test_reaction_of_the_pendulum(swung: dict[str, Any]):
    reaction = swung["reactions"]["A"]
    # At rest: weight less what the fall accelerates.
    upwards = MASS * GRAVITY * (1 - ARM / LENGTH)
    np.testing.assert_allclose(reaction["force"], [0.0, upwards], atol=1e-7)
    assert reaction["torque"] == pytest.approx(0.0, abs=1e-12)
    assert reaction["unique"] is True


def test_numbers_of_the_run(swung: dict[str, Any]):
    assert swung["steps"] > 20
    assert swung["compile_seconds"] > swung["run_seconds"] > 0
    assert 0 <= swung["constraint_error"]["position"] < 1e-12
    assert 0 <= swung["constraint_error"]["velocity"] < 1e-12


@pytest.mark.usefixtures("swung")
def test_table_of_the_whole_motion(folder: Path):
    with (folder / "swing.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0])[:13] == [
        *("time", "bar.position.x", "bar.position.y", "bar.angle", "bar.velocity.x"),
        *("bar.velocity.y", "bar.angular_velocity", "A.force.x", "A.force.y", "A.torque"),
        *("A.unique", "error.position", "error.velocity"),
    ]
    # 0, DT, 2 DT, ... and the end.
    np.testing.assert_allclose(
        [float(line["time"]) for line in lines], [*PERIOD / 7.5 * np.arange(8), PERIOD], atol=1e-12
    )
    for line in lines:
        # The law of energy, at every saved time.
        height, rate = float(line["bar.position.y"]), float(line["bar.angular_velocity"])
        kinetic = 0.5 * (INERTIA + MASS * ARM**2) * rate**2
        assert kinetic + MASS * GRAVITY * height == pytest.approx(0.0, abs=1e-8)


@pytest.mark.usefixtures("swung")
def test_what_a_person_reads(folder: Path):
    out = folder / "swing.npz"
    code, text, err = run("simulate", str(folder / "pendulum.toml"), *SWING, "--out", str(out))
    assert (code, err) == (0, "")
    for said in ("minimum-norm", "bar", "revolute", "unique", "energy", "closed within", str(out)):
        assert said in text
    back = load_trajectory(out, read_model(folder / "pendulum.toml").system())
    assert back.times.shape == (9,)


@pytest.mark.usefixtures("swung")
def test_a_run_that_fails_keeps_what_it_has(folder: Path, monkeypatch: pytest.MonkeyPatch):
    whole = _simulate.simulate

    def failing(*arguments: Any, throw: bool, **named: Any):
        found = whole(*arguments, throw=throw, **named)
        if not throw:
            return found
        part = dataclasses.replace(
            found.at(slice(0, 3)), result=RESULTS.step_too_small, message="It went no further."
        )
        raise SimulationError(part)

    monkeypatch.setattr(_simulate, "simulate", failing)
    out = folder / "part.npz"
    code, text, err = run("simulate", str(folder / "pendulum.toml"), *SWING, "--out", str(out))
    assert (code, text) == (1, "")
    assert "It went no further." in err
    assert str(out) in err
    back = load_trajectory(out, read_model(folder / "pendulum.toml").system())
    assert back.times.shape == (3,)
    assert back.result == RESULTS.step_too_small


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--end 1 --drop A.z", r"--drop 'A.z' is no row; the rows are A.x, A.y."),
        ("--end 1 --drop A.x --drop A.x", "A.x twice"),
        ("--end 1 --drop A.x --formulation null-space", "leave out --formulation null-space"),
        ("--end 1 --limits soft", "--limits 'soft' is unknown; give --limits rigid"),
        ("--end 1 --formulation newton", "'newton' is unknown; the formulations are elimination"),
        ("--end 0", "--end must be a time (s) later than the start"),
        ("--end 1 --time 2", "--end must be a time (s) later than the start"),
        ("--end nan", "--end must be"),
        ("--end 1 --every 0", "--every must be greater than zero, got 0; it is in s."),
        ("--end 1 --rtol -1", "--rtol must be at least 0 and less than 1, got -1; 1e-8 is usual."),
        ("--end 1 --out swing.txt", "ends in .npz, .csv, .nc or .zarr"),
        ("--end 1 --out no/such/folder.csv", "there is no folder"),
    ],
)
def test_refusals(arguments: str, said: str, folder: Path):
    code, out, err = run("simulate", str(folder / "pendulum.toml"), *arguments.split(), "--json")
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


def test_velocities_that_break_a_constraint(folder: Path):
    path = folder / "broken.toml"
    path.write_text(PENDULUM.replace("angle = 0.3", "angle = 0.3\nvelocity = [0.0, 0.14]"))
    code, out, err = run("simulate", str(path), "--end", "1", "--json")
    assert (code, out) == (2, "")
    assert "row 'A.y' of 'A' by 0.14 m/s" in err
    assert "--assemble" in err


@pytest.mark.thorough
def test_reactions_that_are_not_unique_say_so(folder: Path):
    drop = ("--drop", "high.n", "--drop", "high.r")
    path = str(folder / "block.toml")
    found = document("simulate", path, "--end", "0.5", *drop)
    assert found["formulation"] == "elimination"
    block = found["bodies"]["block"]
    np.testing.assert_allclose(block["position"], [0.5, 0.5 - 9.81 / 8], atol=1e-9)
    np.testing.assert_allclose(block["velocity"], [0.0, 1.0 - 9.81 / 2], atol=1e-9)
    # Guided from below alone there is nothing to carry, but one could carry against the other.
    for name in ("low", "high"):
        assert found["reactions"][name]["unique"] is False
        np.testing.assert_allclose(found["reactions"][name]["force"], 0.0, atol=1e-10)
    code, text, _ = run("simulate", path, "--end", "0.5", *drop)
    assert code == 0
    for name in ("low", "high"):
        (line,) = [line for line in text.splitlines() if line.startswith(f"│{name}")]
        assert "NOT UNIQUE" in line


def test_kinematics_of_a_driven_crank(folder: Path):
    out = folder / "crank.csv"
    arguments = ("--end", "1.0", "--every", "0.3", "--out", str(out))
    found = document("kinematics", str(folder / "crank.toml"), *arguments)
    times = np.array([0.0, 0.3, 0.6, 0.9, 1.0])
    np.testing.assert_allclose(found["times"], times, atol=1e-14)
    turn, rate = 2.0 * times + 1.5 * times**2, 2.0 + 3.0 * times
    along = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    across = np.stack([-np.sin(turn), np.cos(turn)], axis=1)
    bar = found["bodies"]["bar"]
    expected = {
        "position": ARM * along,
        "angle": 0.3 + turn,
        "velocity": ARM * rate[:, None] * across,
        "angular_velocity": rate,
        "acceleration": ARM * (3.0 * across - rate[:, None] ** 2 * along),
        "angular_acceleration": np.full(5, 3.0),
    }
    assert list(bar) == list(expected)
    for word, values in expected.items():
        np.testing.assert_allclose(bar[word], values, atol=1e-9)
    assert out.read_text().startswith("time,bar.position.x,bar.position.y,bar.angle,")


def test_kinematics_wants_every_mobility_driven(folder: Path):
    arguments = ("--end", "1.0", "--every", "0.3", "--json")
    code, out, err = run("kinematics", str(folder / "pendulum.toml"), *arguments)
    assert (code, out) == (2, "")
    assert "bar" in err
