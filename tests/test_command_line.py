"""What the command line prints (`io/REFERENCE.md`), for the mechanisms whose answers are
known (MECHANISMS.md)."""

import functools
import importlib
import itertools
import json
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives
from typer.testing import CliRunner

from jaxmbs import cli, mechanisms, Model
from jaxmbs._solvability._expression import parse_combination
from jaxmbs.cli._app import app
from jaxmbs.io import model_from_tables, write_model
from jaxmbs.motions import Step


# Running it


def run(*arguments: str) -> str:
    """What a command that succeeds prints."""
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    return result.stdout


def document_of(text: str) -> dict[str, Any]:
    """The one JSON document that the text is; no number in it may be NaN or infinite."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


@functools.cache
def analysed(*arguments: str) -> dict[str, Any]:
    """The document of one analysis, which several tests look at."""
    return document_of(run("analyze", *arguments, "--json"))


def saved(model: Model, folder: Path) -> str:
    """The path of a file of the model."""
    path = folder / "model.toml"
    path.write_text(write_model(model), encoding="utf-8")
    return str(path)


def unique_joints(document: Mapping[str, Any]) -> list[str]:
    """Joints and drivers whose reaction is unique, in row order."""
    return [joint["name"] for joint in document["joints"] if joint["unique"]]


def numpy_ranks(matrix: np.ndarray, slices: Mapping[str, slice]) -> dict[str, int]:
    """rank C_X + rank C_Y - rank C of every joint X, with Y all other rows."""
    rank = functools.partial(np.linalg.matrix_rank, rtol=1e-9)
    return {
        name: int(rank(matrix[rows]) + rank(np.delete(matrix, rows, axis=0)) - rank(matrix))
        for name, rows in slices.items()
    }


# The mobile robot

ASKED = ("--subset", "B,W1", "--combination", "W1 - W2", "--combination", "W1 + W2")
UNIQUE = ["A", "D", "E", "F", "G", "H", "W5", "steering"]
JOINTS = [*"ABCDEFGH", "W1", "W2", "W3", "W4", "W5", "steering"]
BODIES = {
    "platform": ["A", "B", "C", "H", "W3", "W4", "steering"],
    "front knuckle": ["B", "D", "W1"],
    "rear knuckle": ["C", "E", "W2"],
    "front rod": ["D", "F"],
    "rear rod": ["E", "G"],
    "rack": ["F", "G", "H", "steering"],
    "trolley": ["A", "W5"],
}
# Steering angle (deg) of the front wheel for each displacement of the rack, in units of a.
STEERED = {0.5: -23.787215, 1.0: -49.152640, -0.5: 24.624318, -0.9: 46.593833}
_A = 0.05


def displaced(rack: float) -> Model:
    """The robot whose rack moves by so many a in the first second."""
    return mechanisms.mobile_robot(rack=Step(times=[0.0, 1.0], values=[0.0, rack * _A]))


@pytest.fixture
def robot() -> dict[str, Any]:
    return analysed("mobile-robot", *ASKED)


class TestRobot:
    """Section 1 of MECHANISMS.md. (The tests of a class share what has been compiled.)"""

    def test_counts_and_ranks(self, robot):
        expected = {
            "model": "mobile-robot",
            "dimension": 2,
            "method": "qr",
            "coordinates": 21,
            "constraints": 22,
            "rank": 20,
            "redundancy": 2,
            "mobility": 1,
            "rank_geometric": 17,
            "rank_velocity": 4,
        }
        assert {key: robot[key] for key in expected} == expected
        assert robot["rank_gap"] > 1e10
        assert robot["scale"]["length"] == pytest.approx(0.15, abs=0.005)

    def test_configuration_is_the_reference(self, robot):
        assert list(robot["configuration"]) == list(BODIES)
        assert robot["configuration"]["platform"] == {"position": [0.0, 0.0], "angle": 0.0}
        trolley = robot["configuration"]["trolley"]
        assert trolley["position"] == pytest.approx([-0.55, 0.0], abs=1e-15)

    def test_joints_in_row_order(self, robot):
        keys = {"name", "type", "rows", "unique", "multipliers_unique", "measure"}
        assert all(keys <= set(joint) for joint in robot["joints"])
        assert [joint["name"] for joint in robot["joints"]] == JOINTS
        kinds = ["revolute"] * 7 + ["translational"] + ["knife_edge"] * 5 + ["driver"]
        assert [joint["type"] for joint in robot["joints"]] == kinds
        assert [joint["rows"] for joint in robot["joints"]] == [2] * 8 + [1] * 6

    def test_verdicts(self, robot):
        assert unique_joints(robot) == UNIQUE
        for joint in robot["joints"]:
            assert joint["multipliers_unique"] == joint["unique"]
            assert (joint["measure"] <= 1e-6) == joint["unique"]
            assert joint["measure"] <= 1 + 1e-12

    def test_reactions_on_bodies(self, robot):
        assert {body: list(on) for body, on in robot["bodies"].items()} == BODIES
        both = {"force": True, "torque": True}
        neither = {"force": False, "torque": False}
        # W3 and W4 push along the line through the platform's centre of mass: no torque.
        special = {("platform", "W3"), ("platform", "W4")}
        for body, joints in robot["bodies"].items():
            for joint, verdict in joints.items():
                expected = both if joint in UNIQUE else neither
                if (body, joint) in special:
                    expected = {"force": False, "torque": True}
                assert verdict == expected, (body, joint)

    def test_rows_that_can_go(self, robot):
        assert robot["removable_rows"] == ["B.y", "C.y", "W1", "W2", "W3", "W4"]
        assert robot["complete_removal"] == ["W3", "W4"]

    def test_dependent_sets(self, robot):
        assert robot["dependent_sets"] == [
            ["W3", "W4"],
            ["B", "C", "W1", "W2", "W3"],
            ["B", "C", "W1", "W2", "W4"],
        ]

    def test_subsets_and_combinations(self, robot):
        (subset,) = robot["subsets"]
        assert subset["names"] == ["B", "W1"]
        assert subset["unique"] is False
        assert subset["bodies"] == {
            "platform": {"force": False, "torque": False},
            "front knuckle": {"force": True, "torque": True},
        }
        verdicts = [(c["expression"], c["unique"]) for c in robot["combinations"]]
        assert verdicts == [("W1 - W2", True), ("W1 + W2", False)]

    @pytest.mark.parametrize("method", representatives(["svd", "rank"], "rank"))
    def test_methods_agree(self, robot, method: str):
        other = analysed("mobile-robot", *ASKED, "--method", method)
        assert other["method"] == method

        def verdicts(value: Any) -> Any:
            """Without what belongs to the method."""
            if isinstance(value, dict):
                own = ("method", "measure", "rank_gap")
                return {k: verdicts(v) for k, v in value.items() if k not in own}
            return [verdicts(v) for v in value] if isinstance(value, list) else value

        assert verdicts(other) == verdicts(robot)
        assert other["rank_gap"] > 1e10

    def test_rank_method_compares_ranks(self):
        system = mechanisms.mobile_robot().system()
        matrix = system.constraint_matrix(system.reference_q, system.initial_v, 0.0)
        slices = {c.name: slice(c.start, c.stop) for c in system.structure.constraints}
        expected = numpy_ranks(np.asarray(matrix), slices)
        answer = analysed("mobile-robot", *ASKED, "--method", "rank")
        assert {j["name"]: j["measure"] for j in answer["joints"]} == expected
        assert [name for name, excess in expected.items() if excess == 0] == UNIQUE

    @pytest.mark.thorough
    def test_singularity(self):
        found = analysed("mobile-robot", "--singular")["singularity"]
        expected = {"generic_rank": 20, "rank": 20, "singular": False}
        assert {key: found[key] for key in expected} == expected

    def test_releases(self):
        sets = analysed("mobile-robot", *ASKED, "--releases")["releases"]
        assert sets
        assert all(len(chosen) == 2 for chosen in sets)
        assert all({"joint", "from", "to"} <= set(option) for s in sets for option in s)
        pairs = [{option["joint"] for option in chosen} for chosen in sets]
        # Two wheels on one axle: one of them, and one more of the other loop, must go.
        assert {"W3", "W4"} in pairs
        assert {"W1", "W3"} in pairs
        assert all(pair & {"W3", "W4"} for pair in pairs)
        assert not any({"W1", "W2"} == pair for pair in pairs)
        wheel = {"joint": "W3", "from": "knife_edge", "to": "none"}
        assert any(wheel.items() <= option.items() for s in sets for option in s)

    @pytest.mark.parametrize("rack", representatives(STEERED, 0.5))
    def test_displaced_racks(self, rack: float, tmp_path: Path):
        delta = np.radians(STEERED[rack])
        path = saved(displaced(rack), tmp_path)
        sum_ = f"(W1 + W2) * {np.cos(delta):.15f} + W3 + W4"
        asked = ("--subset", "B,W1", "--combination", sum_, "--combination", "W1 + W2")
        found = document_of(run("analyze", path, "--time", "1", "--assemble", *asked, "--json"))
        poses = found["configuration"]
        for body, sign in (("front knuckle", 1), ("rear knuckle", -1)):
            steered = np.degrees(poses[body]["angle"] - poses["platform"]["angle"])
            assert steered == pytest.approx(sign * STEERED[rack], abs=1e-6)
        assert (found["rank"], found["redundancy"], found["mobility"]) == (20, 2, 1)
        assert unique_joints(found) == UNIQUE
        removable = ["B.x", "B.y", "C.x", "C.y", "W1", "W2", "W3", "W4"]
        assert found["removable_rows"] == removable
        assert [c["unique"] for c in found["combinations"]] == [True, False]
        (subset,) = found["subsets"]
        assert subset["bodies"]["front knuckle"] == {"force": True, "torque": True}

    def test_a_moved_driver_needs_assembly(self, tmp_path: Path):
        path = saved(displaced(0.5), tmp_path)
        assert document_of(run("analyze", path, *ASKED, "--json"))["configuration"]
        refused = CliRunner().invoke(app, ["analyze", path, "--time", "1", "--json"])
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "driver 'steering' is open by 0.025 m" in refused.stderr
        assert "--assemble" in refused.stderr

    @pytest.mark.thorough
    def test_assembly_of_what_is_closed_changes_nothing(self, robot):
        moved = analysed("mobile-robot", "--assemble")
        for body, pose in robot["configuration"].items():
            there = moved["configuration"][body]
            assert there["position"] == pytest.approx(pose["position"], abs=1e-12)
            assert there["angle"] == pytest.approx(pose["angle"], abs=1e-12)
        assert unique_joints(moved) == UNIQUE

    def test_text(self):
        text = run("analyze", "mobile-robot", *ASKED)
        lines = {line.strip("│ ").split(" ")[0]: line for line in text.splitlines()}
        for joint in JOINTS:
            assert ("not unique" in lines[joint]) == (joint not in UNIQUE), lines[joint]
        for said in ("rank 20", "p = 2", "mobility 1", "B.y, C.y, W1, W2, W3, W4", "Chosen"):
            assert said in text
        assert "W1 - W2: unique" in text
        assert "W1 + W2: not unique" in text

    def test_demo(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.chdir(tmp_path)
        text = run("demo")
        assert [path.name for path in tmp_path.iterdir()] == ["mobile-robot.png"]
        # Row numbers 6 and 21, 18 and 21, 19 and 21 of the paper.
        for rows in ("C.y and W4", "W1 and W4", "W2 and W4"):
            (line,) = [line for line in text.splitlines() if rows in line]
            assert line.endswith("rank 20")
        (tmp_path / "mobile-robot.png").unlink()
        answer = document_of(run("demo", "--json"))
        assert answer["pictures"] == ["mobile-robot.png"]
        assert (tmp_path / "mobile-robot.png").read_bytes().startswith(b"\x89PNG")


# The parallelogram

_LOWER, _UPPER = [*"ABCDEFGH"], [*"KLMN"]


class TestParallelogram:
    """Section 2 of MECHANISMS.md."""

    def test_verdicts(self):
        found = analysed("parallelogram")
        counts = ("coordinates", "constraints", "rank", "redundancy", "mobility")
        assert [found[key] for key in counts] == [42, 36, 35, 1, 7]
        assert [joint["name"] for joint in found["joints"]] == _LOWER + _UPPER
        assert unique_joints(found) == _UPPER
        assert found["dependent_sets"] == [_LOWER]

    def test_rows_of_the_self_stress(self):
        # It acts along the links, which lie across x.
        found = analysed("parallelogram")
        rows = [f"{joint}.{axis}" for joint in _LOWER for axis in "yz"]
        assert found["removable_rows"] == rows
        assert found["complete_removal"] == ["H.z"]

    def test_configuration_in_space(self):
        platform = analysed("parallelogram")["configuration"]["platform"]
        assert platform["position"] == pytest.approx([0.25, 0.75, 0.5], abs=1e-15)
        # A quarter turn about x: the body's y axis is the plate's normal.
        assert np.abs(platform["orientation"]) == pytest.approx([0.5**0.5, 0.5**0.5, 0, 0])

    def test_singular_configuration(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        # The real mobility, which nobody asks for here, would take ten seconds.
        monkeypatch.setattr(importlib.import_module("jaxmbs._mobility._mobility"), "_PATIENCE", 1e6)
        model = mechanisms.parallelogram(np.pi / 2)
        path = saved(model, tmp_path)
        found = document_of(run("analyze", path, "--singular", "--json"))
        expected = {"generic_rank": 35, "rank": 34, "singular": True}
        assert {key: found["singularity"][key] for key in expected} == expected
        assert (found["rank"], found["redundancy"]) == (34, 2)
        assert unique_joints(found) == []


# The other mechanisms

# coordinates, constraints, rank; joints with a unique reaction; dependent sets.
_SARRUS = ["A1", "A2", "A3", "B1", "B2", "B3"]
_CRANKS = [["G1", "P1"], ["G2", "P2"], ["G3", "P3"]]
_STOPS = ["stop1", "stop2", "stop3"]
_LEGS = ["leg1", "leg2", "leg3", "leg4"]
_CHAIN = [*(f"G{i}" for i in range(5)), *(f"{side}{i}" for side in "LR" for i in range(1, 5))]
KNOWN = {
    "slider-crank": ((9, 8, 8), ["A", "B", "C", "D"], []),
    "door": ((6, 10, 5), [], [["lower", "upper"]]),
    "bennett": ((18, 20, 17), [], [["J1", "J2", "J3", "J4"]]),
    "sarrus": ((30, 30, 29), [], [_SARRUS]),
    "three-crank-parallelogram": (
        (24, 30, 23),
        [],
        [_CRANKS[i] + _CRANKS[j] for i, j in ((0, 1), (0, 2), (1, 2))],
    ),
    "table": ((6, 7, 6), _STOPS, [_LEGS]),
    "four-bar-chain": ((27, 26, 26), _CHAIN, []),
    "four-bar-chain-spatial": ((54, 65, 53), None, None),
}


# In the plane and in space; with as many constraints as their rank, and with more.
FEW = ("slider-crank", "door", "table")


class TestOthers:
    """Section 4 of MECHANISMS.md."""

    @pytest.mark.parametrize("name", representatives(KNOWN, *FEW))
    def test_verdicts(self, name: str):
        found = analysed(name)
        (coordinates, constraints, rank), unique, sets = KNOWN[name]
        counts = ("coordinates", "constraints", "rank", "redundancy", "mobility")
        expected = [coordinates, constraints, rank, constraints - rank, coordinates - rank]
        assert [found[key] for key in counts] == expected
        assert (found["model"], found["rank_velocity"]) == (name, 0)
        assert unique is None or unique_joints(found) == unique
        assert sets is None or found["dependent_sets"] == sets
        assert len(found["complete_removal"]) == constraints - rank

    @pytest.mark.thorough
    def test_spatial_chain(self):
        # Bars that are held in two places, and whatever lies between them, make a loop; a
        # planar loop of spatial hinges is dependent, and hinges without a loop are not.
        found = analysed("four-bar-chain-spatial")
        assert found["redundancy"] == 3 * 4
        assert [joint["name"] for joint in found["joints"]] == _CHAIN
        assert unique_joints(found) == []
        loops = [
            [f"G{i}", f"G{j}", *(f"{side}{k}" for side in "LR" for k in range(i + 1, j + 1))]
            for i, j in itertools.combinations(range(5), 2)
        ]
        order = sorted(loops, key=lambda loop: (len(loop), [_CHAIN.index(n) for n in loop]))
        assert found["dependent_sets"] == order

    def test_what_was_not_asked_is_not_there(self):
        asked = {"subsets", "combinations", "singularity", "releases"}
        assert not asked & set(analysed("table"))

    def test_rank_gap(self):
        # Null where nothing is dropped, also with more rows than columns.
        for name, none_dropped in (("slider-crank", True), ("table", True), ("door", False)):
            gap = analysed(name)["rank_gap"]
            assert gap is None if none_dropped else gap > 1e10

    def test_rows_that_can_go(self):
        for name, removable in (("slider-crank", []), ("table", _LEGS)):
            assert analysed(name)["removable_rows"] == removable
            assert analysed(name)["complete_removal"] == removable[-1:]

    # What this class has analysed, so that nothing is compiled again.
    @pytest.mark.parametrize("count", representatives([len(FEW), len(KNOWN)], len(FEW)))
    def test_demo_of_all(self, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        names = FEW if count == len(FEW) else tuple(KNOWN)
        monkeypatch.setattr(mechanisms, "names", lambda: names)
        monkeypatch.chdir(tmp_path)
        text = run("demo", "--all")
        assert {path.name for path in tmp_path.iterdir()} == {f"{name}.png" for name in names}
        assert all(f"{name}.png" in text for name in names)

    def test_tolerance(self, tmp_path: Path):
        # Hinges 1 um out of line: the door cannot turn, unless so little is neglected.
        content = tomllib.loads(write_model(mechanisms.door()))
        content["joint"][1]["at"][0] = 1e-6
        path = saved(model_from_tables(content), tmp_path)
        ranks = {
            tolerance: analysed(path, "--tolerance", tolerance)["rank"]
            for tolerance in ("1e-9", "1e-4")
        }
        assert ranks == {"1e-9": 6, "1e-4": 5}


# The other commands, and the program itself


def test_list():
    text = run("list")
    assert [line.split()[0] for line in text.splitlines()] == list(mechanisms.names())
    answer = document_of(run("list", "--json"))
    assert list(answer["mechanisms"]) == list(mechanisms.names())


def test_export(tmp_path: Path):
    text = run("export", "mobile-robot")
    model = mechanisms.mobile_robot()
    assert eqx.tree_equal(model_from_tables(tomllib.loads(text)).system(), model.system())
    # Which numbers were chosen is said here as well.
    assert text.startswith("# Chosen")
    path = tmp_path / "robot.toml"
    assert str(path) in run("export", "mobile-robot", "--out", str(path))
    assert path.read_text(encoding="utf-8") == text
    path.unlink()
    answer = document_of(run("export", "mobile-robot", "--out", str(path), "--json"))
    assert answer["text"] == path.read_text(encoding="utf-8") == text


def test_velocities_that_break_a_constraint_are_no_matter_of_analyze(tmp_path: Path):
    content = tomllib.loads(write_model(mechanisms.slider_crank()))
    content["body"][0]["velocity"] = [1.0, 2.0]
    found = document_of(run("analyze", saved(model_from_tables(content), tmp_path), "--json"))
    assert found["rank"] == 8


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("", "analyze list export demo"),
        (
            "analyze",
            "MODEL --method qr|svd|rank --tolerance --time --assemble --subset --combination "
            "--singular --releases --json",
        ),
        ("flexibility", "MODEL --reaction --elastic --subset --tolerance --plot --json"),
        ("list", "--json"),
        ("export", "NAME --out --json"),
        ("demo", "--all --json"),
    ],
)
def test_help(command: str, words: str):
    text = run(*command.split(), "--help")
    assert [word for word in ("--help", *words.split()) if word not in text] == []


def test_main_switches_double_precision_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "argv", ["jaxmbs", "list", "--json"])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code in (0, None)
    printed = capsys.readouterr()
    assert printed.err == ""
    assert document_of(printed.out)
    assert jnp.zeros(1).dtype == jnp.float64


def test_the_installed_program(tmp_path: Path):
    program = Path(sysconfig.get_path("scripts")) / "jaxmbs"

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    done = call("analyze", "table", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = document_of(done.stdout)
    assert (found["rank"], unique_joints(found)) == (6, _STOPS)
    # In single precision a unique reaction would measure 1e-7.
    assert max(j["measure"] for j in found["joints"] if j["unique"]) < 1e-14
    refused = call("analyze", "tabel", "--json")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("jaxmbs: 'tabel'")
    assert "'table'" in refused.stderr


# Combinations of multipliers

_ROWS = ("W1", "W10", "B.x", "B.y", "left wheel", "a-b", "a", "-c", "2nd")


@pytest.mark.parametrize(
    ("expression", "coefficients"),
    [
        ("W1", {"W1": 1}),
        ("W10", {"W10": 1}),
        ("W1 - W10", {"W1": 1, "W10": -1}),
        ("W10-W1", {"W10": 1, "W1": -1}),
        ("  B.x+B.y ", {"B.x": 1, "B.y": 1}),
        ("-W1", {"W1": -1}),
        ("+W1", {"W1": 1}),
        ("- -W1", {"W1": 1}),
        ("W1 - -W10", {"W1": 1, "W10": 1}),
        ("-(W1 - W10)", {"W1": -1, "W10": 1}),
        ("B.x - (B.y - W1)", {"B.x": 1, "B.y": -1, "W1": 1}),
        ("B.x - B.y - W1", {"B.x": 1, "B.y": -1, "W1": -1}),
        ("2 * W1", {"W1": 2}),
        ("W1 * 2", {"W1": 2}),
        ("2 W1", {"W1": 2}),
        ("2W1", {"W1": 2}),
        ("2 (W1 + 3 W10)", {"W1": 2, "W10": 6}),
        ("(W1 + W10) 0.5", {"W1": 0.5, "W10": 0.5}),
        ("(W1 + W10) * .25 + B.x", {"W1": 0.25, "W10": 0.25, "B.x": 1}),
        ("W1 / 4", {"W1": 0.25}),
        ("W1 / 4 / 2", {"W1": 0.125}),
        ("W1 / -4", {"W1": -0.25}),
        ("1 + W1 - 1", {"W1": 1}),
        ("(1 + 1) W1", {"W1": 2}),
        ("2 * 3 * W1", {"W1": 6}),
        ("1e-1 W1 - 2.5E+1*W10", {"W1": 0.1, "W10": -25}),
        ("2. W1", {"W1": 2}),
        ("((W1))", {"W1": 1}),
        ("W1 + W1", {"W1": 2}),
        ("left wheel + W1", {"left wheel": 1, "W1": 1}),
        ("2 left wheel", {"left wheel": 2}),
        ("'left wheel' - \"W1\"", {"left wheel": 1, "W1": -1}),
        ("a-b", {"a-b": 1}),
        ("a - W1", {"a": 1, "W1": -1}),
        ("'a' + 'a-b'", {"a": 1, "a-b": 1}),
        ("-c", {"-c": 1}),
        ("W1 - -c", {"W1": 1, "-c": -1}),
        ("2nd", {"2nd": 1}),
        ("3 2nd", {"2nd": 3}),
    ],
)
def test_combinations_are_read(expression: str, coefficients: dict[str, float]):
    read = parse_combination(expression, _ROWS)
    assert dict(zip(_ROWS, read, strict=True)) == pytest.approx(
        dict.fromkeys(_ROWS, 0.0) | coefficients
    )


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("W2", "at 'W2'"),
        ("W12", "at 'W12'"),
        ("W10.5", "at 'W10.5'"),
        ("W1x", "at 'W1x'"),
        ("B.y + w1", "at 'w1'"),
        ("B", "at 'B'"),
        ("B.z", "at 'B.z'"),
        ("'W1", "quoted"),
        ("'W2'", "quoted"),
        ("W1 +", "end"),
        ("W1 * ", "end"),
        ("* W1", "at '* W1'"),
        ("(W1", "closing"),
        ("W1)", "operator"),
        ("()", "at ')'"),
        ("W1 W10", "linear"),
        ("W1 * (1 + W10)", "linear"),
        ("W1 / W10", "divisor"),
        ("W1 / (1 - 1)", "divisor"),
        ("W1 - W1", "zero"),
        ("W1 - 1", "constant"),
        ("3", "constant"),
        ("", "end"),
        ("W1, W10", "at ', W10'"),
    ],
)
def test_combinations_that_mean_nothing_are_refused(expression: str, said: str):
    with pytest.raises(ValueError, match="combination") as refused:
        parse_combination(expression, _ROWS)
    assert repr(expression) in str(refused.value)
    assert said in str(refused.value)
