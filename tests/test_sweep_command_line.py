"""What `jaxmbs sweep` prints and writes (`io/REFERENCE.md`)."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from typer.testing import CliRunner

import jaxmbs
from jaxmbs.cli._app import app


OVER = ("--over", "bodies.door.mass=1:2:3", "--over", "bodies.door.position.x=0:0.5:20")


def run(*arguments):
    return CliRunner().invoke(app, ["sweep", *map(str, arguments)], catch_exceptions=False)


def group_of(store) -> Any:
    return zarr.open_group(str(store), mode="r")


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """The document of a grid, and its store."""
    store = tmp_path_factory.mktemp("grid") / "s.zarr"
    result = run("door", *OVER, "--out", store, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout), store


def test_document(grid):
    document, store = grid
    assert document["model"] == "door"
    assert document["store"] == str(store)
    assert (document["cases"], document["computed"], document["failed"]) == (60, 60, 0)
    assert document["varied"] == ["bodies.door.mass", "bodies.door.position.x"]
    assert document["ranks"] == {"5": 60}
    assert [joint["name"] for joint in document["joints"]] == ["lower", "upper"]
    assert all(joint["never"] and joint["unique"] == 0.0 for joint in document["joints"])
    mass = group_of(store)["bodies.door.mass"][:]
    np.testing.assert_array_equal(mass, np.repeat([1.0, 1.5, 2.0], 20))


def test_text_of_a_sweep_that_is_done(grid):
    text = run("door", *OVER, "--out", grid[1]).stdout
    assert "60 cases (grid of 3 x 20)" in text
    assert "0 computed now" in text
    assert "never unique" in text
    assert "no case failed" in text


def assert_shared_sweep_is_the_same(grid: Any, store: Path, **variables: str) -> None:
    """By two processes of two devices each, with these variables of the environment."""
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(Path(jaxmbs.__file__).parent.parent),
    }
    shared = ("--processes", "2", "--devices", "2", "--chunk", "32", "--json")
    command = ("from jaxmbs.cli import main; main()", "sweep", "door", *OVER, "--out", str(store))
    done = subprocess.run(
        [sys.executable, "-c", *command, *shared],
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["computed"] == 60
    assert document["joints"] == grid[0]["joints"]
    one, other = (group_of(s) for s in (grid[1], store))
    for name in ("configuration", "reaction_unique", "rank", "result", "rechecked"):
        assert one[name][:].tobytes() == other[name][:].tobytes(), name


@pytest.mark.thorough
def test_processes_and_devices_change_no_bit(grid, tmp_path):
    assert_shared_sweep_is_the_same(grid, tmp_path / "s.zarr")


@pytest.mark.thorough
def test_processes_and_devices_keep_programs(grid, tmp_path):
    """And find them, each those of its own device."""
    home = {"JAXMBS_NO_CACHE": "", "XDG_CACHE_HOME": str(tmp_path)}
    for turn in range(2):
        assert_shared_sweep_is_the_same(grid, tmp_path / f"{turn}.zarr", **home)
    assert list(tmp_path.rglob("*.program"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--over", "bodies.door.mass=1:2"), "does not read NAME=LO:HI:COUNT"),
        (("--over", "bodies.door.mass=2:1:3"), "LO must not exceed HI"),
        (("--over", "bodies.door.mass=1:inf:3"), "with finite numbers"),
        (("--over", "bodies.door.mass=1:2:3", "--seed", "1"), "--seed belongs to --random"),
        (("--over", "bodies.door.mass=1:2:3", "--chunk", "0"), "--chunk must be at least 1"),
        (("--over", "mass=1:2:3"), "'mass' names nothing that can be varied"),
        (("--over", "bodies.door.mass=-1:2:3"), "mass must be greater than zero"),
        (("--over", "bodies.door.mass=1:2:3", "--devices", "2"), "--devices comes too late"),
        ((*OVER, "--over", "bodies.door.mass=1:2:3"), "is given twice"),
    ],
)
def test_refused(arguments, message, tmp_path):
    result = run("door", *arguments, "--out", tmp_path / "s.zarr")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "s.zarr").exists()


def test_random_cases(grid, tmp_path):
    del grid
    store = tmp_path / "s.zarr"
    ranges = ("--over", "bodies.door.mass=1:2", "--over", "bodies.door.position.x=0:0.5:9")
    result = run("door", *ranges, "--random", "5", "--seed", "3", "--out", store)
    assert result.exit_code == 0, result.stderr
    found = group_of(store)["bodies.door.mass"][:]
    np.testing.assert_allclose(found, 1 + np.random.default_rng(3).random((5, 2))[:, 0])
